use vllm_cpp_sys::*;

fn main() {
    let error = Error { status: Status::Aborted, domain: Domain::Vt, native: 0, message: String::new(), function: String::new() };
    println!("{error}");
}
