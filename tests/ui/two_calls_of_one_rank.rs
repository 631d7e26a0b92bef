use std::time::Duration;
use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new(Device::cpu(0)).unwrap();
    let mut comm = CommGroup::new(1).unwrap().into_comms().unwrap().remove(0);
    let call = comm.call().timeout(Duration::from_secs(1));
    comm.barrier(&queue).unwrap();
    call.barrier(&queue).unwrap();
}
