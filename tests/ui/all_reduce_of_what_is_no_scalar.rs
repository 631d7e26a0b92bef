use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new(Device::cpu(0)).unwrap();
    let mut comm = CommGroup::new(1).unwrap().into_comms().unwrap().remove(0);
    let mut x = DeviceBuf::<u64>::zeroed(Device::cpu(0), 5).unwrap();
    comm.all_reduce_in_place(&queue, &mut x, ReduceOp::Sum).unwrap();
}
