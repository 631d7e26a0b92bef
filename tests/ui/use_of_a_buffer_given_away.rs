use vllm_cpp_sys::*;

fn main() {
    let x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 2).unwrap();
    let tensor = x.into_dlpack(&[2], None).unwrap();
    println!("{:?} {:?}", tensor.shape(), x.to_vec());
}
