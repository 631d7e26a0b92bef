//! Distributions and their change since the last run, as criterion draws them: target/criterion/report/index.html.

use std::time::Duration;

use criterion::Criterion;

use crate::cases::{self, Work};
use crate::program::{Listed, Program, Sample};

/// As many samples as `iterations` operations take; the rest of the last one counts in proportion.
fn timed(iterations: u64, operations: u32, mut sample: impl FnMut() -> Sample) -> Duration {
    let samples = iterations.div_ceil(operations.into());
    let total: f64 = (0..samples).map(|_| sample().ns).sum();
    Duration::from_nanos((total / samples as f64 * iterations as f64) as u64)
}

pub fn draw<'a>(c: &mut Program, cases: impl Iterator<Item = (&'a Listed, &'a mut (dyn Work + 'static))>) {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .with_plots();
    for (listed, work) in cases {
        let mut group = criterion.benchmark_group(&listed.name);
        group.bench_function("C", |bencher| {
            bencher.iter_custom(|iterations| timed(iterations, listed.operations, || c.sample(&listed.name)));
        });
        group.bench_function("Rust", |bencher| {
            bencher.iter_custom(|iterations| timed(iterations, listed.operations, || cases::sample(work, listed.operations)));
        });
        group.finish();
    }
    criterion.final_summary();
}
