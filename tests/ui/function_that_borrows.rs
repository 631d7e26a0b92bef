use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new_async(Device::cpu(0)).unwrap();
    let counter = std::sync::atomic::AtomicU32::new(0);
    queue
        .host_func(|| {
            counter.store(1, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
}
