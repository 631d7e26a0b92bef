//! Decode graphs: one captured graph for each padded batch size, replayed step by step.
//!
//! The number of running requests changes from step to step, but a graph has fixed shapes. So a step takes the smallest graph that
//! fits and fills it up with padding rows. Input and result travel through two slots in turn, each with a blocking event: before the
//! host writes a slot again, it waits for the step that used it, which has nearly always finished by then.
//!
//! The sampled tokens stay on the device as the next step's input, so the host may be a step ahead: it decides who runs, and learns
//! the tokens later.

use std::collections::VecDeque;

use vllm_cpp_sys::{Device, DeviceBuf, Event, EventFlags, Graph, PinnedBuf, Queue, Result};

const SIZES: [usize; 7] = [1, 2, 4, 8, 16, 24, 32];
const MOST: usize = 32;
const SLOTS: usize = 2;
const REQUESTS: usize = 80;
/// The row of the device's state that padding reads and writes.
const PADDING: i32 = MOST as i32;
/// In place of a prompt: go on with the token that was sampled last.
const GO_ON: i32 = -1;

const VOCABULARY: usize = 1000;
const HIDDEN: usize = 8;

/// What the graphs work on. Their addresses are baked in: they stay, only their contents change.
struct Model {
    embeddings: DeviceBuf<i32>,
    /// For each row of the batch, the row of `last`, and a prompt token or `GO_ON`.
    input: DeviceBuf<i32>,
    /// The token that was sampled last, for each running request, and one for padding.
    last: DeviceBuf<i32>,
    hidden: DeviceBuf<i32>,
    sampled: DeviceBuf<i32>,
}

impl Model {
    fn new(device: Device) -> Result<Model> {
        Ok(Model {
            embeddings: DeviceBuf::from_fn(device, VOCABULARY * HIDDEN, embedding)?,
            input: DeviceBuf::zeroed(device, 2 * MOST)?,
            last: DeviceBuf::zeroed(device, MOST + 1)?,
            hidden: DeviceBuf::zeroed(device, MOST * HIDDEN)?,
            sampled: DeviceBuf::zeroed(device, MOST)?,
        })
    }

    /// Records the step of `batch` rows. The host tasks stand where an engine launches kernels.
    fn capture(&mut self, queue: &Queue, batch: usize) -> Result<Graph> {
        let Model { embeddings, input, last, hidden, sampled } = self;
        let (input, mut hidden) = (input.slice(..2 * batch), hidden.slice_mut(..batch * HIDDEN));
        queue.capture(|queue| {
            queue.host_task((&*embeddings, input, &*last, &mut hidden), |(embeddings, input, last, hidden)| {
                for (row, hidden) in input.chunks_exact(2).zip(hidden.chunks_exact_mut(HIDDEN)) {
                    let token = if row[1] == GO_ON { last[row[0] as usize] } else { row[1] } as usize;
                    hidden.copy_from_slice(&embeddings[token * HIDDEN..][..HIDDEN]);
                }
                Ok(())
            })?;
            queue.host_task((&hidden, input, last, sampled.slice_mut(..batch)), |(hidden, input, last, sampled)| {
                for ((row, hidden), sampled) in input.chunks_exact(2).zip(hidden.chunks_exact(HIDDEN)).zip(sampled) {
                    *sampled = sample(hidden);
                    last[row[0] as usize] = *sampled;
                }
                Ok(())
            })
        })
    }
}

fn embedding(index: usize) -> i32 {
    (index * 7919 % 1009) as i32
}

fn sample(hidden: &[i32]) -> i32 {
    hidden.iter().fold(0, |sum, value| (sum * 31 + value) % VOCABULARY as i32)
}

/// The same model on the host, for one request: what the graphs must give.
fn expected(prompt: i32, length: usize) -> Vec<i32> {
    let next = |&token: &i32| {
        let hidden: Vec<i32> = (0..HIDDEN).map(|i| embedding(token as usize * HIDDEN + i)).collect();
        Some(sample(&hidden))
    };
    std::iter::successors(Some(prompt), next).skip(1).take(length).collect()
}

struct Request {
    prompt: i32,
    length: usize,
    tokens: Vec<i32>,
}

/// A request that is in the batch: its number, its row of `Model::last`, and how many steps of it were submitted.
#[derive(Clone, Copy)]
struct Running {
    request: usize,
    row: i32,
    submitted: usize,
}

/// The way of one step's input to the device and of its result back.
struct Slot {
    input: PinnedBuf<i32>,
    sampled: PinnedBuf<i32>,
    done: Event,
    /// Whose tokens `sampled` holds.
    batch: Vec<usize>,
}

impl Slot {
    fn new(device: Device) -> Result<Slot> {
        Ok(Slot {
            input: PinnedBuf::zeroed(device, 2 * MOST)?,
            sampled: PinnedBuf::zeroed(device, MOST)?,
            done: Event::with_flags(device, EventFlags { blocking: true, ..EventFlags::default() })?,
            batch: Vec::with_capacity(MOST),
        })
    }

    /// Waits for the step that used the slot last, and hands its tokens out.
    fn collect(&mut self, requests: &mut [Request]) -> Result<()> {
        self.done.synchronize()?; // complete at once where the slot is new
        for (&request, &token) in self.batch.iter().zip(&*self.sampled.read()?) {
            requests[request].tokens.push(token);
        }
        self.batch.clear();
        Ok(())
    }
}

struct Engine {
    queue: Queue,
    model: Model,
    graphs: Vec<(usize, Graph)>,
    slots: [Slot; SLOTS],
    /// How often each graph was launched.
    launches: [usize; SIZES.len()],
}

impl Engine {
    fn new(device: Device) -> Result<Engine> {
        let queue = Queue::new_async(device)?;
        let mut model = Model::new(device)?;
        let graphs = SIZES.iter().map(|&size| Ok((size, model.capture(&queue, size)?))).collect::<Result<_>>()?;
        Ok(Engine { queue, model, graphs, slots: [Slot::new(device)?, Slot::new(device)?], launches: [0; SIZES.len()] })
    }

    /// Queues one step of the running requests: input, graph, result, event. `slot` is free. Nothing here waits.
    fn submit(&mut self, slot: usize, running: &[Running], requests: &[Request]) -> Result<()> {
        let slot = &mut self.slots[slot];
        let fit = SIZES.iter().position(|&size| size >= running.len()).expect("at most 32 requests run");
        let (size, graph) = &self.graphs[fit];

        let mut input = slot.input.write()?;
        input.chunks_exact_mut(2).for_each(|row| row.copy_from_slice(&[PADDING, 0]));
        for (row, running) in input.chunks_exact_mut(2).zip(running) {
            let first = running.submitted == 0;
            row.copy_from_slice(&[running.row, if first { requests[running.request].prompt } else { GO_ON }]);
        }
        drop(input); // an open view would keep the copy out
        slot.batch.extend(running.iter().map(|running| running.request));

        self.queue.copy(self.model.input.slice_mut(..2 * size), slot.input.slice(..2 * size))?;
        graph.launch(&self.queue)?;
        self.queue.copy(slot.sampled.slice_mut(..*size), self.model.sampled.slice(..*size))?;
        slot.done.record(&self.queue)?;
        self.launches[fit] += 1;
        Ok(())
    }
}

/// Who runs, and who comes next.
struct Scheduler {
    requests: Vec<Request>,
    admitted: usize,
    running: Vec<Running>,
    /// Rows of `Model::last`.
    free: VecDeque<i32>,
}

impl Scheduler {
    fn new() -> Scheduler {
        let request = |i| Request { prompt: (i * 37 % VOCABULARY) as i32, length: 34 + i % 9, tokens: Vec::new() };
        Scheduler {
            requests: (0..REQUESTS).map(request).collect(),
            admitted: 0,
            running: Vec::with_capacity(MOST),
            free: (0..PADDING).collect(),
        }
    }

    fn is_done(&self) -> bool {
        self.admitted == REQUESTS && self.running.is_empty()
    }

    /// Lets the next request in if there is a row for it. One comes at each step.
    fn admit(&mut self) {
        if self.admitted == REQUESTS {
            return;
        }
        if let Some(row) = self.free.pop_front() {
            self.running.push(Running { request: self.admitted, row, submitted: 0 });
            self.admitted += 1;
        }
    }

    /// Takes out who has had its last step submitted: lengths are known before the tokens are. The row may be given away at once, as
    /// the queue runs one step after the other.
    fn retire(&mut self) {
        self.running.iter_mut().for_each(|running| running.submitted += 1);
        self.running.retain(|running| {
            let goes_on = running.submitted < self.requests[running.request].length;
            if !goes_on {
                self.free.push_back(running.row);
            }
            goes_on
        });
    }
}

/// Serves all requests.
pub fn run() -> Result<()> {
    let mut engine = Engine::new(Device::cpu(0))?;
    let mut scheduler = Scheduler::new();
    let (mut steps, mut rows) = (0, 0);
    while !scheduler.is_done() {
        let slot = steps % SLOTS;
        engine.slots[slot].collect(&mut scheduler.requests)?; // the result of two steps ago
        scheduler.admit();
        rows += scheduler.running.len();
        engine.submit(slot, &scheduler.running, &scheduler.requests)?;
        scheduler.retire();
        steps += 1;
    }
    for last in 0..SLOTS {
        engine.slots[(steps + last) % SLOTS].collect(&mut scheduler.requests)?;
    }

    for (i, request) in scheduler.requests.iter().enumerate() {
        assert_eq!(request.tokens, expected(request.prompt, request.length), "request {i} got its own tokens, in order");
    }
    for ((size, graph), launches) in engine.graphs.iter().zip(engine.launches) {
        assert_eq!(graph.node_count()?, 2, "the graph of {size} rows has two operations");
        assert!(launches > 0, "the graph of {size} rows was used");
    }
    let padded: usize = engine.launches.iter().zip(SIZES).map(|(launches, size)| launches * size).sum();
    assert!(padded > rows, "some steps were padded");
    println!("{REQUESTS} requests in {steps} steps of {rows} rows and {} of padding", padded - rows);
    println!("launches of the graphs of {SIZES:?} rows: {:?}", engine.launches);
    engine.queue.close()
}

#[allow(dead_code)] // the test that includes this file calls run()
fn main() -> Result<()> {
    run()
}
