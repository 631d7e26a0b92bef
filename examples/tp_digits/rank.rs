//! One rank: its queues, its captured steps, and the loop that runs them.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use vllm_cpp_sys::{
    Arena, ArenaScope, Comm, Device, DeviceBuf, Event, EventFlags, Graph, PinnedBuf, Queue, QueueOptions, ReduceOp, Result,
};

use crate::data::{Layer, PIXELS};
use crate::model::{Shard, Start, best_class, bias_relu, dense, relu};

const BATCH: usize = 64;
const SLOTS: usize = 2;
const ARENA_BYTES: usize = 256 << 10;

/// What a rank found, and how long it took.
pub struct Answers {
    /// One class per image.
    pub classes: Vec<u8>,
    pub elapsed: Duration,
    pub all_reduce: Stopwatch,
}

/// Runs one rank over all images: one pass to warm up, then `passes` timed ones.
pub fn run(comm: Comm, network: &[Layer], images: &PinnedBuf<f32>, passes: usize, after_pass: &dyn Fn()) -> Result<Answers> {
    let mut rank = Rank::open(comm, network, images)?;
    let mut classes = vec![0; rank.count];
    rank.pass(&mut classes)?;
    rank.meet()?;
    let begin = Instant::now();
    for _ in 0..passes {
        rank.pass(&mut classes)?;
        if rank.comm.rank() == 0 {
            after_pass();
        }
    }
    let elapsed = begin.elapsed();
    let all_reduce = rank.close()?;
    Ok(Answers { classes, elapsed, all_reduce })
}

struct Rank<'a> {
    comm: Comm,
    images: &'a PinnedBuf<f32>,
    count: usize,
    main: Queue,
    copies: Queue,
    input: DeviceBuf<f32>,
    classes: DeviceBuf<u8>,
    /// The step of `BATCH` images.
    full: Graph,
    /// The step of the images that are left at the end.
    rest: Graph,
    slots: [Slot; SLOTS],
    stopwatch: Arc<Mutex<Stopwatch>>,
}

/// The way of one step's result to the host. There are two, so that one can be awaited while the other is filled.
struct Slot {
    /// Where the result waits for its copy, so that the next step may overwrite `Rank::classes`.
    staged: DeviceBuf<u8>,
    pinned: PinnedBuf<u8>,
    /// `staged` is filled.
    ready: Event,
    /// `pinned` is filled.
    copied: Event,
    /// The images in it.
    images: Range<usize>,
}

impl Slot {
    fn new(device: Device) -> Result<Slot> {
        Ok(Slot {
            staged: DeviceBuf::zeroed(device, BATCH)?,
            pinned: PinnedBuf::zeroed(device, BATCH)?,
            ready: Event::new(device)?,
            copied: Event::with_flags(device, EventFlags { blocking: true, ..EventFlags::default() })?,
            images: 0..0,
        })
    }
}

impl<'a> Rank<'a> {
    fn open(mut comm: Comm, network: &[Layer], images: &'a PinnedBuf<f32>) -> Result<Rank<'a>> {
        let cpu = Device::cpu(0);
        let options = QueueOptions::default().asynchronous(true);
        let main = Queue::with_options(cpu, &options.clone().name("main"))?;
        let copies = Queue::with_options(cpu, &options.name("copies"))?;

        let count = images.len() / PIXELS;
        let mut step = Step {
            weights: Weights::load(cpu, &Shard::cut(network, comm.rank(), comm.world()))?,
            // These two are used by all steps: their addresses are baked into the graphs.
            input: DeviceBuf::zeroed(cpu, BATCH * PIXELS)?,
            classes: DeviceBuf::zeroed(cpu, BATCH)?,
            stopwatch: Arc::default(),
        };
        // Both steps take their activations from the same bytes of the arena: on one queue they never run at once. The graphs keep
        // the arena's memory, so the arena itself may go.
        let arena = Arena::new(cpu, ARENA_BYTES)?;
        let full = arena.scope(|scope| step.capture(&main, &mut comm, scope, BATCH))??;
        let rest = arena.scope(|scope| step.capture(&main, &mut comm, scope, count % BATCH))??;

        let slots = [Slot::new(cpu)?, Slot::new(cpu)?];
        let Step { input, classes, stopwatch, .. } = step;
        Ok(Rank { comm, images, count, main, copies, input, classes, full, rest, slots, stopwatch })
    }

    /// Reads all images. While step k computes, the host waits for the result of step k - 1.
    fn pass(&mut self, classes: &mut [u8]) -> Result<()> {
        let mut in_flight = None;
        for (step, first) in (0..self.count).step_by(BATCH).enumerate() {
            let slot = step % SLOTS;
            self.submit(slot, first..self.count.min(first + BATCH))?;
            if let Some(previous) = in_flight.replace(slot) {
                self.collect(previous, classes)?;
            }
        }
        in_flight.map_or(Ok(()), |last| self.collect(last, classes))
    }

    /// Queues the step of some images, and the way of its result to the host. Nothing here waits.
    fn submit(&mut self, slot: usize, images: Range<usize>) -> Result<()> {
        let slot = &mut self.slots[slot];
        let batch = images.len();
        let pixels = images.start * PIXELS..images.end * PIXELS;
        self.main.copy(self.input.slice_mut(..batch * PIXELS), self.images.slice(pixels))?;
        let graph = if batch == BATCH { &self.full } else { &self.rest };
        graph.launch(&self.main)?;
        self.main.copy(slot.staged.slice_mut(..batch), self.classes.slice(..batch))?;
        slot.ready.record(&self.main)?;

        // The crate would order this copy by itself, as both queues use `staged`. An event orders what it can't know of.
        self.copies.after_event(&slot.ready)?;
        self.copies.copy(slot.pinned.slice_mut(..batch), slot.staged.slice(..batch))?;
        slot.copied.record(&self.copies)?;
        slot.images = images;
        Ok(())
    }

    /// Waits for the result in a slot. The main queue goes on.
    fn collect(&self, slot: usize, classes: &mut [u8]) -> Result<()> {
        let slot = &self.slots[slot];
        slot.copied.synchronize()?;
        slot.pinned.slice(..slot.images.len()).copy_to_slice(&mut classes[slot.images.clone()])
    }

    /// Waits until all ranks are here, and restarts the stopwatch.
    fn meet(&mut self) -> Result<()> {
        self.comm.barrier(&self.main)?;
        self.main.synchronize()?;
        *self.stopwatch.lock().unwrap() = Stopwatch::default();
        Ok(())
    }

    /// Waits for both queues and answers their failures, if any. Everything else is given back by being dropped.
    fn close(self) -> Result<Stopwatch> {
        self.main.close()?;
        self.copies.close()?;
        Ok(*self.stopwatch.lock().unwrap())
    }
}

/// A rank's share of the network in device memory.
struct Weights {
    hidden1: DeviceBuf<f32>,
    hidden2: DeviceBuf<f32>,
    scores: DeviceBuf<f32>,
    /// Outputs of each.
    widths: [usize; 3],
}

impl Weights {
    fn load(device: Device, shard: &Shard) -> Result<Weights> {
        Ok(Weights {
            hidden1: DeviceBuf::from_slice(device, &shard.hidden1.values)?,
            hidden2: DeviceBuf::from_slice(device, &shard.hidden2.values)?,
            scores: DeviceBuf::from_slice(device, &shard.scores.values)?,
            widths: [shard.hidden1.outputs, shard.hidden2.outputs, shard.scores.outputs],
        })
    }
}

/// What a step works on.
struct Step {
    weights: Weights,
    input: DeviceBuf<f32>,
    classes: DeviceBuf<u8>,
    stopwatch: Arc<Mutex<Stopwatch>>,
}

impl Step {
    /// Records the step of `batch` images. The host tasks stand where an engine for GPUs launches kernels.
    fn capture(&mut self, queue: &Queue, comm: &mut Comm, arena: &ArenaScope<'_>, batch: usize) -> Result<Graph> {
        let Weights { hidden1: layer1, hidden2: layer2, scores: layer3, widths } = &self.weights;
        let [_, width, share] = *widths;
        let mut hidden1 = arena.alloc::<f32>(batch * widths[0])?;
        let mut hidden2 = arena.alloc::<f32>(batch * width)?;
        let mut scores = arena.alloc::<f32>(batch * share)?;
        let mut gathered = arena.alloc::<f32>(batch * share * comm.world())?;
        let input = self.input.slice(..batch * PIXELS);
        let classes = self.classes.slice_mut(..batch);
        let (start, stop) = (self.stopwatch.clone(), self.stopwatch.clone());

        queue.capture(|queue| {
            queue.host_task(
                (layer1, layer2, input, &mut hidden1, &mut hidden2),
                move |(layer1, layer2, input, hidden1, sums)| {
                    dense(layer1, Start::Bias, input, hidden1, batch);
                    relu(hidden1);
                    dense(layer2, Start::Zero, hidden1, sums, batch);
                    start.lock().unwrap().start(); // the all-reduce stands next in the queue
                    Ok(())
                },
            )?;
            comm.all_reduce_in_place(queue, &mut hidden2, ReduceOp::Sum)?;
            queue.host_task((layer2, layer3, &mut hidden2, &mut scores), move |(layer2, layer3, hidden2, scores)| {
                stop.lock().unwrap().stop();
                bias_relu(layer2, hidden2, width);
                dense(layer3, Start::Bias, hidden2, scores, batch);
                Ok(())
            })?;
            comm.all_gather(queue, &scores, &mut gathered)?;
            queue.host_task((&gathered, classes), move |(gathered, classes)| {
                best_class(gathered, share, classes);
                Ok(())
            })
        })
    }
}

/// Adds up the time from the task before an all-reduce to the task behind it. Waiting for the slowest rank is part of that.
#[derive(Clone, Copy, Default)]
pub struct Stopwatch {
    started: Option<Instant>,
    pub total: Duration,
    pub laps: u32,
}

impl Stopwatch {
    fn start(&mut self) {
        self.started = Some(Instant::now());
    }

    fn stop(&mut self) {
        if let Some(started) = self.started.take() {
            self.total += started.elapsed();
            self.laps += 1;
        }
    }
}
