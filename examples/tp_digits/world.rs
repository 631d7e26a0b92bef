//! All ranks of one world, each on its own thread.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use vllm_cpp_sys::{CommGroup, Device, Error, PinnedBuf, Result, Status};

use crate::data::{Digits, Layer};
use crate::rank::{self, Answers};

/// What a world of ranks found, and how fast.
pub struct Outcome {
    /// One class per image.
    pub classes: Vec<u8>,
    pub images_per_s: f64,
    /// Mean over all steps and ranks.
    pub all_reduce: Duration,
    /// Of the time that the run took.
    pub all_reduce_share: f64,
}

/// Reads all digits with `world` ranks, `passes` times. `after_pass` is called after each.
pub fn run(
    world: usize,
    digits: &Digits,
    network: &[Layer],
    passes: usize,
    after_pass: &(dyn Fn() + Sync),
) -> std::result::Result<Outcome, Box<dyn std::error::Error>> {
    let images = PinnedBuf::from_slice(Device::cpu(0), &digits.pixels)?;
    let comms = CommGroup::new(world)?.into_comms()?;
    let answers = thread::scope(|scope| {
        let start = |comm| scope.spawn(|| rank::run(comm, network, &images, passes, after_pass));
        let ranks: Vec<_> = comms.into_iter().map(start).collect();
        // A rank that fails or panics drops its communicator: then no peer waits for it.
        ranks.into_iter().map(|rank| rank.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    summarise(all_or_cause(answers)?, passes)
}

/// Where several ranks failed, one is the cause: the others answer that it aborted, has gone, or made another call.
fn all_or_cause(answers: Vec<Result<Answers>>) -> Result<Vec<Answers>> {
    let (answers, errors): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    let mut errors: Vec<Error> = errors.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|error| matches!(error.status, Status::Aborted | Status::PeerLost | Status::Mismatch));
    errors.into_iter().next().map_or_else(|| answers.into_iter().collect(), Err)
}

fn summarise(mut ranks: Vec<Answers>, passes: usize) -> std::result::Result<Outcome, Box<dyn std::error::Error>> {
    if let Some(other) = ranks.iter().position(|rank| rank.classes != ranks[0].classes) {
        return Err(format!("ranks 0 and {other} of {} read different digits", ranks.len()).into());
    }
    let slowest = ranks.iter().map(|rank| rank.elapsed).max().unwrap_or_default().as_secs_f64();
    let reducing: Duration = ranks.iter().map(|rank| rank.all_reduce.total).sum();
    let reduces: u32 = ranks.iter().map(|rank| rank.all_reduce.laps).sum();
    let world = ranks.len() as f64;
    let classes = ranks.swap_remove(0).classes;
    Ok(Outcome {
        images_per_s: (passes * classes.len()) as f64 / slowest,
        all_reduce: reducing / reduces,
        all_reduce_share: reducing.as_secs_f64() / world / slowest,
        classes,
    })
}
