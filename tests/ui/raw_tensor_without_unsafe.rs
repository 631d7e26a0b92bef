use vllm_cpp_sys::dlpack::ManagedTensor;

fn main() {
    let tensor = ManagedTensor::from_raw(std::ptr::null_mut());
    println!("{}", tensor.is_err());
}
