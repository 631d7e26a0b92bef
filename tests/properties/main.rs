//! Random programs against models in plain Rust: answers, refusals and bytes must agree.
//!
//! `cargo test` runs the same programs each time. `PROPTEST_CASES=10000 cargo test --test properties` runs so many others; with
//! `PROPTEST_RNG_SEED` as well, a chosen set. A program that disagrees is shrunk to a short one before it is shown.

mod machine;
mod memories;
mod model;
mod program;
mod ranks;
#[path = "../support/mod.rs"]
mod support;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// The same programs each time, unless the environment asks for others.
fn runner(cases: u32) -> TestRunner {
    let mut config = Config { failure_persistence: None, max_shrink_iters: 5000, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
        if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
            config.rng_seed = RngSeed::Fixed(20);
        }
    }
    TestRunner::new(config)
}

fn check<S: Strategy>(cases: u32, programs: S, run: impl Fn(&S::Value)) {
    let outcome = runner(cases).run(&programs, |program| {
        run(&program);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn one_thread_agrees_with_the_model() {
    check(400, program::programs(), machine::run);
}

#[test]
fn ranks_agree_with_the_model() {
    check(600, ranks::programs(), ranks::run);
}
