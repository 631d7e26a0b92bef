//! Sweeps the collectives over sizes, in the manner of nccl-tests.
//!
//! `cargo bench --bench collectives -- [--quick] [--worlds 2,4] [--ops all_reduce,...] [--max-bytes N] [--json FILE]`
//!
//! A time is the last rank's end minus the first rank's start. Every rank rewrites its own input before every call, since operands that
//! are still in the caller's cache make any algorithm look better than it is. The machine is noisy: rows are measured in rounds, with the
//! limit in between, and the median of the rounds is printed.

mod harness;
mod limit;
mod ops;
mod report;
#[path = "../support/stats.rs"]
mod stats;

use ops::{Case, Op};
use report::Record;

struct Args {
    quick: bool,
    worlds: Vec<usize>,
    ops: Vec<Op>,
    max_bytes: usize,
    json: Option<std::path::PathBuf>,
}

fn parse() -> Result<Args, lexopt::Error> {
    use lexopt::prelude::*;
    let mut args = Args { quick: false, worlds: vec![2, 4], ops: Op::ALL.to_vec(), max_bytes: 64 << 20, json: None };
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("bench") | Long("test") => {} // cargo adds it
            Long("quick") => args.quick = true,
            Long("worlds") => args.worlds = list(&parser.value()?.string()?, |s| s.parse().ok())?,
            Long("ops") => args.ops = list(&parser.value()?.string()?, Op::from_name)?,
            Long("max-bytes") => args.max_bytes = parser.value()?.parse()?,
            Long("json") => args.json = Some(parser.value()?.into()),
            _ => return Err(arg.unexpected()),
        }
    }
    Ok(args)
}

fn list<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, lexopt::Error> {
    text.split(',').map(|s| parse(s).ok_or_else(|| format!("'{s}' is not a value of this list").into())).collect()
}

fn sizes(args: &Args) -> Vec<usize> {
    let all = [8, 64, 1 << 10, 4 << 10, 8 << 10, 64 << 10, 640 << 10, 1 << 20, 16 << 20, 64 << 20];
    let quick = [8, 1 << 10, 8 << 10, 1 << 20];
    let chosen: &[usize] = if args.quick { &quick } else { &all };
    chosen.iter().copied().filter(|&bytes| bytes <= args.max_bytes).collect()
}

/// Rounds of the row and of its limit by turns; the limit is measured further until it repeats, or patience ends.
fn measure(case: &Case, rounds: usize) -> Record {
    let mut round_medians = Vec::new();
    let mut limits = Vec::new();
    let mut samples = Vec::new();
    let mut correct = true;
    for _ in 0..rounds {
        if case.has_limit() {
            limits.push(limit::all_reduce_limit(case.bytes));
        }
        let round = ops::run(case);
        correct &= round.correct;
        round_medians.push(stats::median(&round.times_us));
        samples.extend(round.times_us);
    }
    while case.has_limit() && limits.len() < 4 * rounds && stats::spread(&limits) > stats::MUST_REPEAT_WITHIN {
        limits.push(limit::all_reduce_limit(case.bytes));
    }
    Record::new(case, stats::median(&round_medians), stats::percentile(&samples, 0.99), &limits, correct)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = parse()?;
    let rounds = if args.quick { 3 } else { 7 };
    println!("{} processors; {} rounds a row; times in us", harness::processors(), rounds);
    println!("one-way cache line: {:.3} us; an empty call: {:.3} us", limit::one_way_line_us(), harness::empty_call_us());
    let mut records = Vec::new();
    for &world in &args.worlds {
        for &op in &args.ops {
            for case in Case::all(op, world, &sizes(&args)) {
                records.push(measure(&case, rounds));
            }
        }
    }
    println!("{}", report::table(&records));
    for record in records.iter().filter(|record| !record.limit_repeats()) {
        println!("{record}: the limit did not repeat within 15 %: this machine is too busy to judge the row");
    }
    if let Some(path) = args.json {
        std::fs::write(&path, serde_json::to_string_pretty(&records)?)?;
    }
    if records.iter().any(|record| !record.correct) {
        return Err("a result was wrong".into());
    }
    Ok(())
}
