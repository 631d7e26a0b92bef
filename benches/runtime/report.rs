//! Medians, the table, and the records.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::figures::{self, Figure};
use crate::program::{Listed, Sample};
use crate::stats::{MUST_REPEAT_WITHIN, median, spread};

/// The samples of one side of a case.
#[derive(Default)]
pub struct Side {
    ns: Vec<f64>,
    wrong: bool,
}

impl Side {
    pub fn add(&mut self, sample: Sample) {
        self.ns.push(sample.ns);
        self.wrong |= !sample.right;
    }

    fn summary(&self, timer: f64) -> Option<Summary> {
        if self.ns.is_empty() {
            return None;
        }
        Some(Summary { ns: (median(&self.ns) - timer).max(0.0), spread: spread(&self.ns) })
    }
}

pub struct Row {
    name: String,
    operations: u32,
    pub c: Side,
    pub rust: Side,
    pub bare: Side,
}

impl Row {
    pub fn new(listed: &Listed) -> Row {
        let (c, rust, bare) = Default::default();
        Row { name: listed.name.clone(), operations: listed.operations, c, rust, bare }
    }

    fn is_wrong(&self) -> bool {
        [&self.c, &self.rust, &self.bare].iter().any(|side| side.wrong)
    }
}

#[derive(Serialize, Clone, Copy)]
pub struct Summary {
    pub ns: f64,
    /// The distance of the quartiles over the median.
    pub spread: f64,
}

#[derive(Serialize)]
pub struct Record {
    pub name: String,
    /// Timed at once in a sample; the times are of one.
    pub operations: u32,
    pub c: Option<Summary>,
    pub rust: Option<Summary>,
    /// C over the library without the looks at the hooks.
    pub without_hooks: Option<Summary>,
    pub right: bool,
}

#[derive(Serialize)]
pub struct Report {
    rounds: usize,
    processors: u32,
    /// Of the last minute, when the rounds were over.
    load: f64,
    pub records: Vec<Record>,
    figures: Vec<Figure>,
}

/// What the other rows are held against.
const REFERENCES: [&str; 4] = ["empty", "memcpy", "ping_pong", "wake"];

/// Two looks at the clock, taken off where a sample is one operation.
pub const TIMER: &str = "timer";

fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}

impl Report {
    pub fn new(rows: Vec<Row>, rounds: usize, processors: u32) -> Report {
        let timer = rows.iter().find(|row| row.name == TIMER);
        let timer = |side: fn(&Row) -> &Side| timer.map_or(0.0, |row| median(&side(row).ns));
        let (c_timer, rust_timer) = (timer(|row| &row.c), timer(|row| &row.rust));
        let own = |row: &Row, timer: f64| if row.operations == 1 && row.name != TIMER { timer } else { 0.0 };
        let record = |row: &Row| Record {
            name: row.name.clone(),
            operations: row.operations,
            c: row.c.summary(own(row, c_timer)),
            rust: row.rust.summary(own(row, rust_timer)),
            without_hooks: row.bare.summary(own(row, c_timer)),
            right: !row.is_wrong(),
        };
        let records: Vec<Record> = rows.iter().map(record).collect();
        let figures = figures::all(&records);
        Report { rounds, processors, load: load(), records, figures }
    }

    /// A case whose work was not done.
    pub fn wrong(&self) -> Option<&str> {
        self.records.iter().find(|record| !record.right).map(|record| record.name.as_str())
    }

    fn ns(&self, name: &str) -> f64 {
        let record = self.records.iter().find(|record| record.name == name);
        record.and_then(|record| record.c).map_or(f64::NAN, |c| c.ns)
    }

    fn cells(&self, record: &Record) -> Vec<String> {
        let text = |side: Option<Summary>, f: fn(Summary) -> String| side.map_or("-".into(), f);
        let ns = |side| text(side, |side| format!("{:.2}", side.ns));
        let spread = |side| text(side, |side| format!("{:.0} %", side.spread * 100.0));
        let both = record.c.zip(record.rust);
        let c = record.c.map_or(f64::NAN, |c| c.ns);
        vec![
            record.name.clone(),
            record.operations.to_string(),
            ns(record.c),
            spread(record.c),
            ns(record.rust),
            spread(record.rust),
            both.map_or("-".into(), |(c, rust)| format!("{:+.2}", rust.ns - c.ns)),
            both.map_or("-".into(), |(c, rust)| format!("{:.2}x", rust.ns / c.ns)),
            format!("{:.1}x", c / self.ns("empty")),
            format!("{:.2}x", c / self.ns("ping_pong")),
        ]
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header([
            "case",
            "at once",
            "C ns",
            "spread",
            "Rust ns",
            "spread",
            "Rust - C",
            "Rust / C",
            "/ empty call",
            "/ one way",
        ]);
        table.add_rows(self.records.iter().map(|record| self.cells(record)));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} rounds on {} processors, load {:.1}; medians", self.rounds, self.processors, self.load)?;
        writeln!(f, "{}", self.table())?;
        self.figures.iter().try_for_each(|figure| writeln!(f, "{figure}"))?;
        for record in self.records.iter().filter(|record| REFERENCES.contains(&record.name.as_str())) {
            if let Some(c) = record.c.filter(|c| c.spread > MUST_REPEAT_WITHIN) {
                let (name, spread) = (&record.name, c.spread * 100.0);
                writeln!(
                    f,
                    "the reference '{name}' did not repeat (quartiles {spread:.0} % apart): too busy a machine to judge by it"
                )?;
            }
        }
        Ok(())
    }
}
