//! The table and the records.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::ops::{Case, Op};
use crate::stats::{MUST_REPEAT_WITHIN, median, spread};

#[derive(Serialize)]
pub struct Record {
    transport: &'static str,
    op: &'static str,
    dtype: &'static str,
    bytes: usize,
    world: usize,
    median_us: f64,
    p99_us: f64,
    limit_us: Option<f64>,
    pub correct: bool,
    #[serde(skip)]
    limit_spread: f64,
    #[serde(skip)]
    bus_factor: f64,
}

impl Record {
    pub fn new(case: &Case, median_us: f64, p99_us: f64, limits: &[f64], correct: bool) -> Record {
        let n = case.world as f64;
        let limit_us = (!limits.is_empty()).then(|| median(limits));
        Record {
            transport: "inproc",
            op: case.op.name(),
            dtype: case.dtype.name(),
            bytes: case.bytes,
            world: case.world,
            median_us,
            p99_us,
            limit_us,
            correct,
            limit_spread: if limits.is_empty() { 0.0 } else { spread(limits) },
            // The share of the bytes that must cross between ranks, as nccl-tests defines the bus bandwidth.
            bus_factor: match case.op {
                Op::AllReduce => 2.0 * (n - 1.0) / n,
                Op::AllGather => (n - 1.0) / n,
                Op::SendRecv => 1.0,
                Op::Barrier => 0.0,
            },
        }
    }

    pub fn limit_repeats(&self) -> bool {
        self.limit_spread <= MUST_REPEAT_WITHIN
    }

    fn cells(&self) -> Vec<String> {
        let algbw = self.bytes as f64 / self.median_us / 1000.0;
        let limit = |f: &dyn Fn(f64) -> String| self.limit_us.map_or("-".into(), f);
        vec![
            self.op.into(),
            self.dtype.into(),
            self.bytes.to_string(),
            self.world.to_string(),
            format!("{:.3}", self.median_us),
            format!("{:.3}", self.p99_us),
            format!("{algbw:.2}"),
            format!("{:.2}", algbw * self.bus_factor),
            limit(&|us| format!("{us:.3}")),
            limit(&|us| format!("{:.2}x", self.median_us / us)),
            limit(&|_| format!("{:.0} %", self.limit_spread * 100.0)),
            if self.correct { "yes" } else { "NO" }.into(),
        ]
    }
}

impl std::fmt::Display for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {} bytes", self.op, self.dtype, self.bytes)
    }
}

pub fn table(records: &[Record]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_NO_BORDERS);
    table.set_header([
        "op",
        "dtype",
        "bytes",
        "world",
        "median us",
        "p99 us",
        "algbw GB/s",
        "busbw GB/s",
        "limit us",
        "of limit",
        "limit spread",
        "correct",
    ]);
    for record in records {
        table.add_row(record.cells());
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
