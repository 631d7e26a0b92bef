use vllm_cpp_sys::*;

fn main() {
    let comm = CommGroup::new(1).unwrap().into_comms().unwrap().remove(0);
    std::thread::scope(|scope| {
        scope.spawn(|| comm.rank());
    });
}
