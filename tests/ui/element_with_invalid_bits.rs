use vllm_cpp_sys::*;

fn upload<T: Element>(_values: &[T]) {}

fn main() {
    upload(&[true]);
}
