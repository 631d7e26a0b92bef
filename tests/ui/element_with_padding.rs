use vllm_cpp_sys::*;

#[derive(Clone, Copy)]
struct Padded(#[allow(dead_code)] u8, #[allow(dead_code)] u32);

fn main() {
    DeviceBuf::<Padded>::zeroed(Device::cpu(0), 5).unwrap();
}
