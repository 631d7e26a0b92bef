//! Field report R034: gathering into a buffer of another type would reinterpret bits.
use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new(Device::cpu(0)).unwrap();
    let mut comm = CommGroup::new(1).unwrap().into_comms().unwrap().remove(0);
    let send = DeviceBuf::<F16>::zeroed(Device::cpu(0), 5).unwrap();
    let mut recv = DeviceBuf::<f32>::zeroed(Device::cpu(0), 5).unwrap();
    comm.all_gather(&queue, send.as_slice(), recv.as_slice_mut()).unwrap();
}
