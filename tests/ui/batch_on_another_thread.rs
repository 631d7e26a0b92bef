use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new(Device::cpu(0)).unwrap();
    let comms = CommGroup::new(1).unwrap().into_comms().unwrap();
    batch(|b| std::thread::scope(|scope| scope.spawn(|| b.barrier(&comms[0], &queue)).join().unwrap())).unwrap();
}
