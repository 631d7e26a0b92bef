//! Ranks as threads, a barrier that costs little, and times.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::stats::median;

/// Asked once: the answer takes longer than most of what is measured here.
pub fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Puts this thread on a processor of its own, round robin, as MPI launchers do. Best effort: where it is refused, the scheduler decides.
fn pin(rank: usize) {
    // SAFETY: an all-zero set is valid, and the calls get its size.
    unsafe {
        let (mut allowed, mut wanted): (libc::cpu_set_t, libc::cpu_set_t) = (std::mem::zeroed(), std::mem::zeroed());
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &mut allowed) == 0 {
            let cpus: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed)).collect();
            libc::CPU_SET(cpus[rank % cpus.len()], &mut wanted);
            libc::sched_setaffinity(0, size, &wanted);
        }
    }
}

/// Waits for a condition: spins for a while where every thread has a processor, then yields.
pub fn wait_until(threads: usize, ready: impl Fn() -> bool) {
    let spins = if threads <= processors() { 20_000 } else { 16 };
    let mut polls = 0;
    while !ready() {
        polls += 1;
        if polls < spins { std::hint::spin_loop() } else { std::thread::yield_now() }
    }
}

#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicUsize);

/// A barrier of one counter that only grows.
pub struct Barrier {
    threads: usize,
    arrived: Line,
}

impl Barrier {
    pub fn new(threads: usize) -> Self {
        Barrier { threads, arrived: Line::default() }
    }

    pub fn wait(&self) {
        let ticket = self.arrived.0.fetch_add(1, Ordering::AcqRel);
        let round_end = (ticket / self.threads + 1) * self.threads;
        wait_until(self.threads, || self.arrived.0.load(Ordering::Acquire) >= round_end);
    }
}

fn now_ns() -> u64 {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    EPOCH.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// What one round may take on a machine that is busy with other things.
const BUDGET: Duration = Duration::from_millis(1500);

/// Runs up to `iterations` timed calls on `world` threads, fewer where time runs out. `rank(r)` makes what one rank needs; `before` and
/// `timed` get it by turns. Answers one time per iteration in us, and what the ranks became.
pub fn run_ranks<R: Send>(
    world: usize,
    iterations: usize,
    rank: impl Fn(usize) -> R + Sync,
    before: impl Fn(&mut R, usize) + Sync,
    timed: impl Fn(&mut R, usize) + Sync,
) -> (Vec<f64>, Vec<R>) {
    let barrier = Barrier::new(world);
    let begin = Instant::now();
    let out_of_time = AtomicBool::new(false);
    let one_rank = |index: usize| {
        pin(index);
        let mut state = rank(index);
        let mut spans = Vec::with_capacity(iterations);
        for iteration in 0..iterations {
            // One rank decides; the barrier tells the others.
            if index == 0 && iteration > 2 && begin.elapsed() > BUDGET {
                out_of_time.store(true, Ordering::Relaxed);
            }
            barrier.wait();
            if out_of_time.load(Ordering::Relaxed) {
                break;
            }
            before(&mut state, iteration);
            barrier.wait();
            let start = now_ns();
            timed(&mut state, iteration);
            spans.push((start, now_ns()));
        }
        (spans, state)
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..world)
            .map(|index| {
                scope.spawn({
                    let one_rank = &one_rank;
                    move || one_rank(index)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank panicked")).collect()
    });
    let times = (0..results[0].0.len())
        .map(|i| {
            let start = results.iter().map(|(spans, _)| spans[i].0).min().unwrap_or(0);
            let end = results.iter().map(|(spans, _)| spans[i].1).max().unwrap_or(0);
            (end - start) as f64 / 1000.0
        })
        .collect();
    (times, results.into_iter().map(|(_, state)| state).collect())
}

/// What the harness itself adds to every time.
pub fn empty_call_us() -> f64 {
    median(&run_ranks(2, 2000, |_| (), |_, _| (), |_, _| ()).0)
}
