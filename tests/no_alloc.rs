//! The hot path allocates nothing once it is warm. One test only: the counter is of the process.

mod support;

use support::{CPU, async_queue};
use vllm_cpp_sys::*;

#[path = "support/counting.rs"]
mod counting;

#[test]
fn a_warm_step_allocates_nothing() {
    let (main, copies) = (async_queue(), async_queue());
    let events: Vec<Event> = (0..4).map(|_| Event::new(CPU).unwrap()).collect();
    let mut x = DeviceBuf::from_slice(CPU, &[1.0f32; 256]).unwrap();
    let mut y = DeviceBuf::<f32>::zeroed(CPU, 256).unwrap();
    let mut results: Vec<_> = (0..4).map(|_| PinnedBuf::<f32>::zeroed(CPU, 256).unwrap()).collect();
    let mut comm = CommGroup::new(1).unwrap().into_comms().unwrap().remove(0);
    let graph = main.capture(|q| q.copy(&mut y, &x)).unwrap();
    let mut step = |i: usize| {
        main.copy(x.slice_mut(0..128), results[i % 4].slice(0..128)).unwrap();
        graph.launch(&main).unwrap();
        comm.all_reduce_in_place(&main, &mut y, ReduceOp::Sum).unwrap();
        events[i % 4].record(&main).unwrap();
        copies.after_event(&events[i % 4]).unwrap();
        copies.copy(&mut results[i % 4], &y).unwrap();
        events[i % 4].record(&copies).unwrap();
        let seen = results[(i + 3) % 4].read().unwrap();
        assert_eq!(seen.len(), 256);
    };
    (0..100).for_each(&mut step);
    let before = counting::allocations();
    (100..1100).for_each(&mut step);
    let after = counting::allocations();
    assert_eq!(after - before, 0, "allocations in 1000 steps");
}
