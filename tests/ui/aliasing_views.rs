use vllm_cpp_sys::*;

fn main() {
    let mut x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 5).unwrap();
    let reading = x.read().unwrap();
    let mut writing = x.write().unwrap();
    writing[0] = reading[1];
}
