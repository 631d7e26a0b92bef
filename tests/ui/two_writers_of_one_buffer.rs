use vllm_cpp_sys::*;

fn main() {
    let mut x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 5).unwrap();
    let mut head = x.slice_mut(..3);
    let mut tail = x.slice_mut(3..);
    head.copy_from_slice(&[1.0; 3]).unwrap();
    tail.copy_from_slice(&[1.0; 2]).unwrap();
}
