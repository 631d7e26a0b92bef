use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new_async(Device::cpu(0)).unwrap();
    let x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 2).unwrap();
    let mut output = [1.0; 2];
    queue
        .scope(|scope| {
            scope.copy_to_slice(&mut output, &x)?;
            println!("{}", output[0]);
            Ok(())
        })
        .unwrap();
}
