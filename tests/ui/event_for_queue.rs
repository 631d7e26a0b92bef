use vllm_cpp_sys::*;

fn main() {
    let mut comm = CommGroup::new(1).unwrap().into_comms().unwrap().remove(0);
    let event = Event::new(Device::cpu(0)).unwrap();
    comm.barrier(&event).unwrap();
}
