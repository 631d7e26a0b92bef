//! What the runtime itself costs, from C and from Rust.
//!
//! `cargo bench --bench runtime -- [--quick] [--rounds N] [--cases copy,submit,...] [--json FILE] [--plots]`
//!
//! Rounds go through all cases; in each, C and Rust take turns, so that what else the machine does falls on both alike. C is a program of
//! its own (`loops.c`), in which C calls C; Rust goes through the safe types, look-ups excepted. A third program is the C one over a library
//! without the looks at the hooks. The table shows medians beside an empty call and the way of one cache line, of the same rounds.
//! `--quick` only asks whether the work is done; `--plots` makes criterion's report in target/criterion besides.

mod cases;
mod figures;
mod plots;
mod program;
mod report;
#[path = "../support/stats.rs"]
mod stats;

use std::path::PathBuf;

use cases::{Shared, Work};
use program::{Listed, Program};
use report::Row;

/// Cases that look at a hook on their way.
const HOOKED: [&str; 6] = ["arena", "copy", "host_func", "record", "replay_copies", "submit"];

struct Args {
    rounds: usize,
    cases: Vec<String>,
    json: Option<PathBuf>,
    plots: bool,
}

fn parse() -> Result<Args, lexopt::Error> {
    use lexopt::prelude::*;
    let mut args = Args { rounds: 501, cases: Vec::new(), json: None, plots: false };
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("bench") | Long("test") => {} // cargo adds it
            Long("quick") => args.rounds = 3,
            Long("rounds") => args.rounds = parser.value()?.parse()?,
            Long("cases") => args.cases = parser.value()?.string()?.split(',').map(String::from).collect(),
            Long("json") => args.json = Some(parser.value()?.into()),
            Long("plots") => args.plots = true,
            _ => return Err(arg.unexpected()),
        }
    }
    Ok(args)
}

/// The processors of this thread: it goes on with the first, workers get the others. Where there is but one, they share it.
fn take_processor() -> (u64, u64) {
    // SAFETY: an all-zero set is valid, and the calls get its size.
    unsafe {
        let (mut allowed, mut wanted): (libc::cpu_set_t, libc::cpu_set_t) = (std::mem::zeroed(), std::mem::zeroed());
        let size = size_of::<libc::cpu_set_t>();
        libc::sched_getaffinity(0, size, &mut allowed);
        let found = (0..64).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed)).fold(0u64, |mask, cpu| mask | 1 << cpu);
        let first = found & found.wrapping_neg();
        if found != 0 {
            libc::CPU_SET(first.trailing_zeros() as usize, &mut wanted);
            libc::sched_setaffinity(0, size, &wanted);
        }
        (first, if found == first { found } else { found & !first })
    }
}

/// A case with what it is done by.
struct Entry {
    listed: Listed,
    work: Option<Box<dyn Work>>,
    hooked: bool,
    row: Row,
}

fn entries(shipped: &Program, shared: &Shared, chosen: &[String]) -> Vec<Entry> {
    let references = ["timer", "empty", "memcpy", "ping_pong", "wake"];
    let wanted =
        |name: &str| chosen.is_empty() || references.contains(&name) || chosen.iter().any(|chosen| chosen.as_str() == name);
    let listed = shipped.cases.iter().filter(|listed| wanted(&listed.name));
    listed
        .map(|listed| Entry {
            work: cases::work(&listed.name, shared),
            hooked: HOOKED.contains(&listed.name.as_str()),
            row: Row::new(listed),
            listed: listed.clone(),
        })
        .collect()
}

/// One round of one case. Who begins changes from round to round.
fn take_turns(entry: &mut Entry, shipped: &mut Program, bare: &mut Program, round: usize) {
    let Entry { listed, work, hooked, row } = entry;
    for turn in 0..3 {
        match (turn + round) % 3 {
            0 => row.c.add(shipped.sample(&listed.name)),
            1 if *hooked => row.bare.add(bare.sample(&listed.name)),
            1 => {}
            _ => {
                if let Some(work) = work {
                    row.rust.add(cases::sample(&mut **work, listed.operations));
                }
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = parse()?;
    let (mask, workers) = take_processor();
    let (mut shipped, mut bare) = (Program::shipped(mask, workers), Program::without_hooks(mask, workers));
    let mut entries = entries(&shipped, &Shared::new(workers), &args.cases);
    for round in 0..args.rounds {
        entries.iter_mut().for_each(|entry| take_turns(entry, &mut shipped, &mut bare, round));
    }
    if args.plots {
        plots::draw(&mut shipped, entries.iter_mut().filter_map(|entry| Some((&entry.listed, &mut **entry.work.as_mut()?))));
    }
    let report =
        report::Report::new(entries.into_iter().map(|entry| entry.row).collect(), args.rounds, (mask | workers).count_ones());
    println!("{report}");
    if let Some(path) = args.json {
        std::fs::write(&path, serde_json::to_string_pretty(&report)?)?;
    }
    match report.wrong() {
        None => Ok(()),
        Some(name) => Err(format!("{name}: the work was not done").into()),
    }
}
