use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new(Device::cpu(0)).unwrap();
    let mut x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 5).unwrap();
    queue.copy(x.slice_mut(0..2), x.slice(1..3)).unwrap();
}
