use vllm_cpp_sys::*;

fn main() {
    let arena = Arena::new(Device::cpu(0), 1024).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| arena.alloc::<f32>(5).unwrap().len());
    });
}
