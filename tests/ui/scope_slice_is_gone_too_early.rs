use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new(Device::cpu(0)).unwrap();
    let mut x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 2).unwrap();
    queue
        .scope(|scope| {
            let input = vec![1.0, 2.0];
            scope.copy_from_slice(&mut x, &input)
        })
        .unwrap();
}
