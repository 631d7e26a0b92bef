//! Models of the in-process protocols. `vt-models` runs the scenarios, then the mutants; `vt-models SCENARIO...` runs these, and
//! `vt-models --equivalent` shows that those mutants that change nothing are noticed by no scenario.

use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

mod collective;
mod gate;
mod group;
mod message;
mod mutants;
mod op;
mod orders;
mod refused;
mod scenarios;
mod state;
mod turn;

use orders::{MUTANT, Mutant};
use scenarios::{ALL, Scenario};

fn run_named(names: &[String]) {
    for name in names {
        let scenario = ALL.iter().find(|scenario| scenario.name == name).expect("a scenario");
        scenarios::run(scenario);
    }
}

/// Runs a scenario in a process of its own, which a failure ends. Answers whether it passed.
fn passes(scenario: &Scenario, mutant: Option<&Mutant>) -> bool {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.arg(scenario.name);
    match mutant {
        Some(mutant) => command.env(MUTANT, &mutant.name).stderr(Stdio::null()),
        None => command.env_remove(MUTANT),
    };
    command.status().expect("the program starts").success()
}

fn seconds(begin: Instant) -> f64 {
    Duration::as_secs_f64(&begin.elapsed())
}

fn check_scenario(scenario: &Scenario) -> bool {
    let begin = Instant::now();
    let passed = passes(scenario, None);
    println!("{:22} {} in {:.1} s", scenario.name, if passed { "holds" } else { "FAILS" }, seconds(begin));
    passed
}

fn is_equivalent(mutant: &Mutant) -> bool {
    mutants::EQUIVALENT.iter().any(|(known, _)| *known == mutant.name)
}

/// Whether the mutant is noticed, or known to change nothing.
fn check_mutant(mutant: &Mutant) -> bool {
    let begin = Instant::now();
    let name = &mutant.name;
    let noticed = ALL.iter().find(|scenario| !passes(scenario, Some(mutant)));
    let equivalent = is_equivalent(mutant);
    let what = match (noticed, equivalent) {
        (Some(scenario), false) => format!("noticed by {}", scenario.name),
        (None, true) => "changes nothing".to_owned(),
        (Some(scenario), true) => format!("FOUND by {}, but listed as equivalent", scenario.name),
        (None, false) => "NOT NOTICED".to_owned(),
    };
    println!("{name:75} {what} in {:.1} s", seconds(begin));
    noticed.is_some() != equivalent
}

/// Runs `check` for each of `items` on as many threads as there are processors. Answers how many failed.
fn failures<T: Sync>(items: &[T], check: fn(&T) -> bool) -> usize {
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    if !check(item) {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    failed.into_inner()
}

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let only_equivalent = names == ["--equivalent"];
    if !names.is_empty() && !only_equivalent {
        run_named(&names);
        return ExitCode::SUCCESS;
    }
    if failures(ALL, check_scenario) > 0 {
        return ExitCode::FAILURE;
    }
    let mut mutants = mutants::all();
    mutants.retain(|mutant| is_equivalent(mutant) == only_equivalent);
    let failed = failures(&mutants, check_mutant);
    println!("{} scenarios hold; {} mutants, {failed} of them not as they must be", ALL.len(), mutants.len());
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
