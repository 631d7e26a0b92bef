use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new(Device::cpu(0)).unwrap();
    let text = String::from("a graph runs its functions at each launch");
    let graph = queue.capture(|q| {
        q.host_func(move || {
            drop(text);
            Ok(())
        })
    });
    graph.unwrap().launch(&queue).unwrap();
}
