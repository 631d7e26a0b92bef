use vllm_cpp_sys::*;

fn main() {
    let arena = Arena::new(Device::cpu(0), 1024).unwrap();
    let x = arena.scope(|scope| scope.alloc::<f32>(5).unwrap()).unwrap();
    println!("{:?}", x.to_vec());
}
