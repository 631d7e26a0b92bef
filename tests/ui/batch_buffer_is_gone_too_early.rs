use vllm_cpp_sys::*;

fn main() {
    let queue = Queue::new(Device::cpu(0)).unwrap();
    let comms = CommGroup::new(1).unwrap().into_comms().unwrap();
    batch(|b| {
        let mut x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 5)?;
        b.all_reduce_in_place(&comms[0], &queue, &mut x, ReduceOp::Sum)
    })
    .unwrap();
}
