//! What the machine allows, measured in the same run.
//!
//! The limit of an all-reduce of two ranks is the time of one cache line from one core to the other, plus, from 1 KiB up, the time in which
//! two threads each do `a = b = a + b` on half of the elements, with operands that the other thread wrote last.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::harness::{run_ranks, wait_until};
use crate::stats::median;

#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// Half the time of a round trip between two threads, each writing a line of its own.
pub fn one_way_line_us() -> f64 {
    const TRIPS: u64 = 2000;
    let lines = [Line::default(), Line::default()];
    let rounds = run_ranks(
        2,
        21,
        |rank| rank,
        |_, _| (),
        |rank, iteration| {
            let base = iteration as u64 * TRIPS;
            for trip in base + 1..=base + TRIPS {
                if *rank == 0 {
                    lines[0].0.store(trip, Ordering::Release);
                    wait_until(2, || lines[1].0.load(Ordering::Acquire) >= trip);
                } else {
                    wait_until(2, || lines[0].0.load(Ordering::Acquire) >= trip);
                    lines[1].0.store(trip, Ordering::Release);
                }
            }
        },
    );
    median(&rounds.0) / TRIPS as f64 / 2.0
}

/// An array that two threads use by turns, ordered by the harness's barrier.
struct Shared(Vec<f32>);

impl Shared {
    fn half(&self, which: usize) -> *mut [f32] {
        let half = self.0.len() / 2;
        let start = self.0.as_ptr().cast_mut();
        // SAFETY: `which` is 0 or 1, so the range lies inside the vector.
        unsafe { std::ptr::slice_from_raw_parts_mut(start.add(which * half), half) }
    }
}

/// See the module's comment. In us.
pub fn all_reduce_limit(bytes: usize) -> f64 {
    let line = one_way_line_us();
    if bytes < 1024 {
        return line;
    }
    let (a, b) = (Shared(vec![1.0; bytes / 4]), Shared(vec![2.0; bytes / 4]));
    let times = run_ranks(
        2,
        crate::ops::iterations(bytes),
        |rank| rank,
        |rank, iteration| {
            // SAFETY: between two barriers each half is touched by one thread only.
            let (a, b) = unsafe { (&mut *a.half(1 - *rank), &mut *b.half(1 - *rank)) };
            a.fill(iteration as f32);
            b.fill(1.0);
        },
        |rank, _| {
            // SAFETY: between two barriers each half is touched by one thread only.
            let (a, b) = unsafe { (&mut *a.half(*rank), &mut *b.half(*rank)) };
            for (x, y) in a.iter_mut().zip(b.iter_mut()) {
                let sum = *x + *y;
                *x = sum;
                *y = sum;
            }
        },
    );
    line + median(&times.0)
}
