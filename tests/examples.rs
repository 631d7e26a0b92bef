//! The examples that show a pattern are tests as well: they assert results and order. `async_output.rs` has a test file of its own.

#[path = "../examples/decode_graphs.rs"]
mod decode_graphs;
#[path = "../examples/kv_offload.rs"]
mod kv_offload;
#[path = "../examples/tensor.rs"]
mod tensor;

#[test]
fn every_request_gets_its_tokens_from_padded_graphs() {
    decode_graphs::run().unwrap();
}

#[test]
fn pages_go_to_the_host_and_back_while_steps_go_on() {
    kv_offload::run().unwrap();
}

#[test]
fn a_captured_layer_of_tensors_runs_for_several_inputs() {
    tensor::run().unwrap();
}
