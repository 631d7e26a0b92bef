use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new(Device::cpu(0)).unwrap();
    let x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 5).unwrap();
    queue.fill(x.as_slice(), 0).unwrap();
}
