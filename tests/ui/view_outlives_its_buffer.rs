use vllm_cpp_sys::*;

fn main() {
    let x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 5).unwrap();
    let view = x.read().unwrap();
    drop(x);
    println!("{}", view[0]);
}
