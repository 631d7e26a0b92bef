//! Async output: the result of a step travels to the host while the next step already runs.
//!
//! ```text
//! main    | step k-1 | step k            | step k+1 ...
//! copies             | result k-1 to host | result k ...
//! host      submit k, then wait for result k-1 | submit k+1, then wait for result k
//! ```
//!
//! Each step: the main queue runs the captured step and records `ready`; the copy queue waits for that, copies the result to pinned
//! memory and records `copied`; the host waits for `copied` one step later. Four slots take turns, and a warm step allocates nothing.

use std::sync::mpsc;
use std::time::Duration;

use vllm_cpp_sys::{Device, DeviceBuf, Event, EventFlags, Graph, MemoryKind, PinnedBuf, Queue, ReadView, Result};

const SLOTS: usize = 4;
const BATCH: usize = 64; // a step gives 64 token ids: 256 bytes
pub const STEPS: usize = 1000;
/// No wait of this program is longer: a broken order shows as an error, not as a hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// The way of one step's result to the host.
struct Slot {
    /// Where the result waits for its copy, so that the next step may overwrite `Engine::tokens`.
    staged: DeviceBuf<i32>,
    pinned: PinnedBuf<i32>,
    /// `staged` is filled.
    ready: Event,
    /// `pinned` is filled. The host sleeps while it waits for this one.
    copied: Event,
}

impl Slot {
    fn new(device: Device) -> Result<Slot> {
        Ok(Slot {
            staged: DeviceBuf::zeroed(device, BATCH)?,
            pinned: PinnedBuf::zeroed(device, BATCH)?,
            ready: Event::new(device)?,
            copied: Event::with_flags(device, EventFlags { blocking: true, ..EventFlags::default() })?,
        })
    }
}

struct Engine {
    main: Queue,
    copies: Queue,
    tokens: DeviceBuf<i32>,
    step: Graph,
    slots: [Slot; SLOTS],
    submitted: usize,
}

impl Engine {
    fn new(device: Device) -> Result<Engine> {
        let (main, copies) = (Queue::new_async(device)?, Queue::new_async(device)?);
        let mut tokens = DeviceBuf::zeroed(device, BATCH)?;
        // Captured once; the host task stands where an engine launches its kernels.
        let step = main.capture(|queue| {
            queue.host_task((&mut tokens,), |(tokens,)| {
                tokens.iter_mut().enumerate().for_each(|(i, token)| *token = next_token(i, *token));
                Ok(())
            })
        })?;
        let slots = [Slot::new(device)?, Slot::new(device)?, Slot::new(device)?, Slot::new(device)?];
        Ok(Engine { main, copies, tokens, step, slots, submitted: 0 })
    }

    /// Queues one step and the way of its result to the host. Nothing here waits.
    fn submit(&mut self) -> Result<()> {
        let slot = &mut self.slots[self.submitted % SLOTS];
        self.step.launch(&self.main)?;
        self.main.copy(&mut slot.staged, &self.tokens)?;
        slot.ready.record(&self.main)?;

        // The crate would order this copy by itself, as both queues use `staged`. In C, or through raw pointers, the event does it.
        self.copies.after_event(&slot.ready)?;
        self.copies.copy(&mut slot.pinned, &slot.staged)?;
        slot.copied.record(&self.copies)?;
        self.submitted += 1;
        Ok(())
    }

    /// Waits for the result of a step, and for nothing else: the main queue goes on.
    fn collect(&self, step: usize) -> Result<ReadView<'_, i32>> {
        assert!(step < self.submitted && step + SLOTS >= self.submitted, "the slot holds another step's result by now");
        let slot = &self.slots[step % SLOTS];
        slot.copied.wait(PATIENCE)?;
        slot.pinned.read()
    }
}

/// What the model says: the token that follows `token` in row `row`.
fn next_token(row: usize, token: i32) -> i32 {
    (token * 5 + row as i32 + 1) % 32_000
}

/// Runs the steps, each result awaited one step later. `watch` hears of each step.
pub fn run(watch: &mut dyn FnMut(usize)) -> Result<()> {
    let device = Device::cpu(0);
    let mut engine = Engine::new(device)?;
    let mut expected = [0; BATCH];
    let mut check = |tokens: &[i32]| {
        expected.iter_mut().enumerate().for_each(|(i, token)| *token = next_token(i, *token));
        assert_eq!(tokens, expected, "results come complete, and in the order of the steps");
    };
    let blocks = || Ok((device.memory_stats(MemoryKind::Device)?.live_count, device.memory_stats(MemoryKind::Pinned)?.live_count));
    let before = blocks()?;

    engine.submit()?;
    for step in 1..STEPS {
        engine.submit()?; // step number `step` is on its way, and only now
        check(&engine.collect(step - 1)?); // the host waits for the one before
        watch(step);
    }
    assert_eq!(blocks()?, before, "the pool of slots is all the memory that there is");

    // The point of it all: a step is held back, and the result of the step before arrives nevertheless.
    let (open, gate) = mpsc::channel::<()>();
    engine.main.host_func_once(move || {
        let _ = gate.recv_timeout(PATIENCE); // ends when `open` is dropped
        Ok(())
    })?;
    engine.submit()?;
    check(&engine.collect(STEPS - 1)?);
    assert!(!engine.main.query()?, "the main queue is still at work");
    assert!(!engine.slots[STEPS % SLOTS].copied.query()?, "so this result can't be there");
    drop(open);
    check(&engine.collect(STEPS)?);

    engine.main.close()?;
    engine.copies.close()
}

#[allow(dead_code)] // the test that includes this file calls run()
fn main() -> Result<()> {
    run(&mut |_| ())?;
    println!("{STEPS} steps, each result read one step later through {SLOTS} pinned slots; the main queue was never waited for");
    Ok(())
}
