use std::sync::Mutex;
use vllm_cpp_sys::*;

static LEAKED: Mutex<Option<&'static mut [f32]>> = Mutex::new(None);

fn main() {
    let queue = Queue::new(Device::cpu(0)).unwrap();
    let mut x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 5).unwrap();
    queue
        .host_task((&mut x,), |(x,)| {
            *LEAKED.lock().unwrap() = Some(x);
            Ok(())
        })
        .unwrap();
}
