use vllm_cpp_sys::*;

fn main() {
    let arena = Arena::new(Device::cpu(0), 1024).unwrap();
    let x = arena.alloc::<f32>(5).unwrap();
    drop(arena);
    println!("{:?}", x.to_vec());
}
