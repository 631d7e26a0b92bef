use std::rc::Rc;
use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new(Device::cpu(0)).unwrap();
    let counter = Rc::new(0);
    queue
        .host_func_once(move || {
            drop(counter);
            Ok(())
        })
        .unwrap();
}
