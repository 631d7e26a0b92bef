//! Reads 1797 handwritten digits with a network that is split over several ranks.
//!
//! Each rank is a thread with a main queue for the computation and a copy queue for the results, as an inference engine has them.
//! `rank.rs` is the part to read: a step is captured once for each batch size and replayed, and its result is awaited while the next
//! one already runs. `world.rs` starts the ranks, `model.rs` is plain arithmetic, `data.rs` the files, `report.rs` the output.

mod data;
mod model;
mod rank;
mod report;
mod world;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use data::Digits;
use report::Record;

const WORLDS: [usize; 3] = [1, 2, 4];
const PASSES: usize = 50;
/// What the network must get right of the images that it wasn't trained on.
const LEAST_ACCURACY: f64 = 0.97;

const HELP: &str = "\
Reads 1797 handwritten digits with a network that is split over 1, 2 and 4 ranks.

Usage: tp_digits [--json FILE]

  --json FILE  write a list of {world, accuracy, images_per_s, all_reduce_us, classes_sha256} to FILE
  -h, --help   print this

It fails unless every world reads the same digits, and 97 % of the test third rightly.";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tp_digits: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let Some(arguments) = parse_arguments()? else {
        println!("{HELP}");
        return Ok(());
    };
    let digits = Digits::load();
    let network = data::network();
    let mut records = Vec::new();
    for world in WORLDS {
        let bar = report::progress(world, PASSES);
        let outcome = world::run(world, &digits, &network, PASSES, &|| bar.inc(1))?;
        bar.finish_and_clear();
        records.push(Record::new(world, &digits, &outcome));
    }
    report::print_table(&records);
    if let Some(path) = arguments.json {
        report::write_json(&path, &records).map_err(|error| format!("can't write {}: {error}", path.display()))?;
    }
    verify(&records)
}

struct Arguments {
    json: Option<PathBuf>,
}

/// `None`: the user wants help.
fn parse_arguments() -> Result<Option<Arguments>, lexopt::Error> {
    use lexopt::prelude::*;
    let mut json = None;
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("json") => json = Some(arguments.value()?.into()),
            Short('h') | Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(Arguments { json }))
}

fn verify(records: &[Record]) -> Result<(), Box<dyn Error>> {
    for record in records {
        if record.classes_sha256 != records[0].classes_sha256 {
            return Err(format!("worlds of {} and {} ranks read different digits", records[0].world, record.world).into());
        }
        if record.accuracy < LEAST_ACCURACY {
            return Err(format!("only {:.2} % of the test third is right", 100.0 * record.accuracy).into());
        }
    }
    println!("All worlds read the same digits.");
    Ok(())
}
