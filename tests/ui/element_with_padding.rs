use vllm_cpp_sys::*;

#[derive(Clone, Copy)]
struct Padded(#[allow(dead_code)] u8, #[allow(dead_code)] u32);

fn upload<T: Element>(_values: &[T]) {}

fn main() {
    upload(&[Padded(1, 2)]);
}
