//! The example of async output: results and order are asserted there, and here that a warm step allocates nothing. One test only: the
//! counter is of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "../examples/async_output.rs"]
mod async_output;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_result_arrives_one_step_later_and_a_warm_step_allocates_nothing() {
    let (mut warm, mut end) = (0, 0);
    let mut watch = |step| match step {
        100 => warm = ALLOCATIONS.load(Ordering::Relaxed),
        _ => end = ALLOCATIONS.load(Ordering::Relaxed),
    };
    async_output::run(&mut watch).unwrap();
    assert!(warm > 0, "the counter counts");
    assert_eq!(end - warm, 0, "allocations in {} steps", async_output::STEPS - 101);
}
