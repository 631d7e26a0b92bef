//! What the runtime is meant to reach. Nothing here fails a run: times depend on the machine.

use std::fmt;

use serde::Serialize;

use crate::report::{Record, TIMER};

#[derive(Serialize)]
pub struct Figure {
    what: String,
    value: f64,
    limit: f64,
    unit: &'static str,
}

impl Figure {
    fn new(what: impl Into<String>, value: f64, limit: f64, unit: &'static str) -> Figure {
        Figure { what: what.into(), value, limit, unit }
    }

    fn is_met(&self) -> bool {
        self.value <= self.limit
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { what, value, limit, unit } = self;
        let verdict = if self.is_met() { "met" } else { "NOT MET" };
        write!(f, "{verdict:>8}  {what}: {value:.2} {unit}, at most {limit:.2} {unit}")
    }
}

/// Rust may be slower by so much, or by 2 %.
const RUST_NS: f64 = 5.0;

/// Two builds of the same code lie this far apart by where the linker happens to put it.
const LAYOUT_NS: f64 = 1.0;

/// The figures of the cases that were measured.
pub fn all(records: &[Record]) -> Vec<Figure> {
    let c = |name: &str| records.iter().find(|record| record.name == name)?.c.map(|c| c.ns);
    let mut figures = Vec::new();
    let mut add = |what: &str, value: Option<f64>, limit, unit| {
        figures.extend(value.map(|value| Figure::new(what, value, limit, unit)));
    };
    let over = |a: &str, b: &str| Some(c(a)? - c(b)?);
    let of = |a: &str, b: &str| Some(c(a)? / c(b)?);
    add("synchronous copy of 64 bytes over memcpy", over("copy", "memcpy"), 10.0, "ns");
    add("look-up of a provider", c("lookup"), 3.0, "ns");
    add("arena allocation", c("arena"), 5.0, "ns");
    add("asynchronous submit, bursts of 64, worker awake", c("submit"), 100.0, "ns");
    add("replay of 1000 host functions over eager, asynchronous", of("replay", "eager"), 0.5, "x");
    add("replay of 1000 host functions over eager, synchronous", of("replay_calls", "host_func"), 0.5, "x");
    add("replay of 1000 copies over eager, synchronous", of("replay_copies", "eager_copies"), 0.5, "x");
    figures.extend(records.iter().filter(|record| record.name != TIMER).filter_map(rust_over_c));
    figures.extend(records.iter().filter_map(hooks));
    figures
}

fn rust_over_c(record: &Record) -> Option<Figure> {
    let (c, rust) = (record.c?, record.rust?);
    let limit = RUST_NS.max(0.02 * c.ns);
    Some(Figure::new(format!("Rust over C: {}", record.name), rust.ns - c.ns, limit, "ns"))
}

fn hooks(record: &Record) -> Option<Figure> {
    let (with, without) = (record.c?, record.without_hooks?);
    let limit = LAYOUT_NS.max(0.02 * with.ns);
    Some(Figure::new(format!("hooks that nobody set: {}", record.name), with.ns - without.ns, limit, "ns"))
}
