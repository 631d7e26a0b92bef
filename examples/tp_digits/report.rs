//! What the program says: a progress bar on a terminal, the table, the records.

use std::path::Path;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::data::Digits;
use crate::world::Outcome;

/// One line of the `--json` file.
#[derive(Serialize)]
pub struct Record {
    pub world: usize,
    /// Share of right answers on the test third.
    pub accuracy: f64,
    images_per_s: f64,
    /// Mean time of one all-reduce, from the end of the task before it to the begin of the task behind it: with the time on the
    /// queue, and with waiting for the slowest rank.
    all_reduce_us: f64,
    /// Of one byte per image: the class that was read.
    pub classes_sha256: String,
    #[serde(skip)]
    accuracy_all: f64,
    #[serde(skip)]
    all_reduce_share: f64,
}

impl Record {
    pub fn new(world: usize, digits: &Digits, outcome: &Outcome) -> Record {
        Record {
            world,
            accuracy: digits.test_accuracy(&outcome.classes),
            images_per_s: outcome.images_per_s,
            all_reduce_us: outcome.all_reduce.as_secs_f64() * 1e6,
            classes_sha256: Sha256::digest(&outcome.classes).iter().map(|byte| format!("{byte:02x}")).collect(),
            accuracy_all: digits.accuracy(&outcome.classes),
            all_reduce_share: outcome.all_reduce_share,
        }
    }
}

/// A bar that is invisible where the output isn't a terminal.
pub fn progress(world: usize, passes: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} passes").expect("the template is right");
    ProgressBar::new(passes as u64).with_style(style).with_message(format!("ranks: {world}"))
}

pub fn print_table(records: &[Record]) {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["ranks", "right (all)", "right (test)", "images/s", "all-reduce", "of the time", "classes (SHA-256)"]);
    for record in records {
        let cells = [
            record.world.to_string(),
            format!("{:.2} %", 100.0 * record.accuracy_all),
            format!("{:.2} %", 100.0 * record.accuracy),
            format!("{:.0}", record.images_per_s),
            format!("{:.1} us", record.all_reduce_us),
            format!("{:.1} %", 100.0 * record.all_reduce_share),
            format!("{}...", &record.classes_sha256[..16]),
        ];
        table.add_row(cells.map(|cell| Cell::new(cell).set_alignment(CellAlignment::Right)));
    }
    println!("{table}");
}

pub fn write_json(path: &Path, records: &[Record]) -> std::io::Result<()> {
    std::fs::write(path, serde_json::to_string_pretty(records)? + "\n")
}
