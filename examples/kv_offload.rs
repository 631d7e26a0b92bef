//! KV-cache offload: pages go to the host on a side queue, and nobody ever waits for them.
//!
//! Hundreds of copies of 16 to 512 KiB are queued as one operation; an event behind it is asked once per step whether it is complete.
//! Until then the pages stay in use by the transfer and the engine goes on; afterwards they are free for something else. On the way
//! back the main queue is made to wait for the pages, not the host.

use std::ops::Range;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use vllm_cpp_sys::{Device, DeviceBuf, Event, PinnedBuf, Queue, QueueOptions, Result, Slice, SliceMut};

const PAGES: usize = 240;
const PAGE_KIB: [usize; 6] = [16, 32, 64, 128, 256, 512];
/// For so many steps the link to the host carries nothing, so that it is certain what is asserted of a transfer in flight.
const HELD_STEPS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// The pages of the cache: ranges of one buffer, and behind them the part that the steps write.
struct Layout {
    pages: Vec<Range<usize>>,
    active: Range<usize>,
}

fn layout() -> Layout {
    let mut end = 0;
    let mut take = |bytes: usize| {
        end += bytes;
        end - bytes..end
    };
    let pages = (0..PAGES).map(|page| take(PAGE_KIB[page % PAGE_KIB.len()] << 10)).collect();
    Layout { pages, active: take(4096) }
}

/// The pages of some memory, each for itself.
fn pages_mut<'a>(memory: SliceMut<'a, u8>, pages: &[Range<usize>]) -> Result<Vec<SliceMut<'a, u8>>> {
    let (mut rest, mut parts) = (memory, Vec::new());
    for page in pages {
        let (part, behind) = rest.split_at_mut(page.len())?;
        parts.push(part);
        rest = behind;
    }
    Ok(parts)
}

struct Engine {
    main: Queue,
    side: Queue,
    layout: Layout,
    cache: DeviceBuf<u8>,
    host: PinnedBuf<u8>,
    stepped: Event,
    steps: usize,
}

impl Engine {
    fn new(device: Device) -> Result<Engine> {
        let layout = layout();
        // A transfer in the background: its worker yields to everybody else.
        let background = QueueOptions::default().asynchronous(true).name("kv-offload").priority(10);
        Ok(Engine {
            main: Queue::new_async(device)?,
            side: Queue::with_options(device, &background)?,
            cache: DeviceBuf::zeroed(device, layout.active.end)?,
            host: PinnedBuf::zeroed(device, layout.active.start)?,
            layout,
            stepped: Event::new(device)?,
            steps: 0,
        })
    }

    /// One decode step: it writes its own part of the cache, and the host waits for it as it would for a token.
    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        let number = self.steps as u8;
        let active = self.cache.slice_mut(self.layout.active.clone());
        self.main.host_task((active,), move |(active,)| {
            active.fill(number);
            Ok(())
        })?;
        self.stepped.record(&self.main)?;
        self.stepped.wait(PATIENCE)?;
        assert_eq!(self.cache.slice(self.layout.active.clone()).read()?[0], number);
        Ok(())
    }

    /// Fills every page on the main queue, each with a byte of its own.
    fn fill_pages(&mut self, byte: impl Fn(usize) -> u8) -> Result<()> {
        for (page, range) in self.layout.pages.iter().enumerate() {
            self.main.fill(self.cache.slice_mut(range.clone()), byte(page))?;
        }
        Ok(())
    }

    /// Queues the copies of all pages to the host behind what the main queue holds. `done` completes when they have arrived.
    fn offload(&mut self, done: &Event) -> Result<()> {
        // The crate would order the batch by itself. In C, or through raw pointers, the event does it.
        let filled = Event::new(self.cache.device())?;
        filled.record(&self.main)?;
        self.side.after_event(&filled)?;
        let from: Vec<Slice<'_, u8>> = self.layout.pages.iter().map(|page| self.cache.slice(page.clone())).collect();
        let to = pages_mut(self.host.as_slice_mut(), &self.layout.pages)?;
        self.side.copy_batch(to.into_iter().zip(from))?;
        done.record(&self.side)
    }

    /// Queues the copies of all pages back to the cache. Later work of the main queue comes after them; the host goes on.
    fn load(&mut self) -> Result<()> {
        let (free, loaded) = (Event::new(self.cache.device())?, Event::new(self.cache.device())?);
        free.record(&self.main)?;
        self.side.after_event(&free)?;
        let from: Vec<Slice<'_, u8>> = self.layout.pages.iter().map(|page| self.host.slice(page.clone())).collect();
        let to = pages_mut(self.cache.slice_mut(..self.layout.active.start), &self.layout.pages)?;
        self.side.copy_batch(to.into_iter().zip(from))?;
        loaded.record(&self.side)?;
        self.main.after_event(&loaded) // events may be dropped at once: who waits for a record goes on waiting for it
    }
}

/// Whether the pages of `memory` hold their bytes.
fn holds(memory: &[u8], pages: &[Range<usize>], byte: impl Fn(usize) -> u8) -> bool {
    pages.iter().enumerate().all(|(page, range)| memory[range.clone()] == vec![byte(page); range.len()])
}

fn written(page: usize) -> u8 {
    page as u8
}

fn reused(page: usize) -> u8 {
    !written(page)
}

/// Sends the pages to the host while steps go on. Answers how many steps ran while data was moving.
fn offload_between_steps(engine: &mut Engine) -> Result<usize> {
    // The link is busy with something else at first.
    let (open, gate) = mpsc::channel::<()>();
    engine.side.host_func_once(move || {
        let _ = gate.recv_timeout(PATIENCE); // ends when `open` is dropped
        Ok(())
    })?;
    let offloaded = Event::new(engine.cache.device())?;
    engine.fill_pages(written)?;
    engine.offload(&offloaded)?; // returns at once, with hundreds of copies queued
    for _ in 0..HELD_STEPS {
        engine.step()?;
        assert!(!offloaded.query()?, "nothing has gone over the link yet, and the steps go on");
    }
    drop(open);

    // The loop of an engine: a question, a step. The event is never waited for.
    let (begin, mut moving) = (Instant::now(), 0);
    while !offloaded.query()? {
        assert!(begin.elapsed() < PATIENCE, "the transfer doesn't end");
        engine.step()?;
        moving += 1;
    }
    assert!(engine.side.query()?, "the event stands behind the last copy");
    Ok(moving)
}

/// The transfer is complete, so the pages are free: the main queue writes them for another request. The host has the old ones.
fn use_again(engine: &mut Engine) -> Result<()> {
    engine.fill_pages(reused)?;
    assert!(holds(&engine.host.read()?, &engine.layout.pages, written), "all pages had arrived when the event was complete");
    assert!(holds(&engine.cache.read()?, &engine.layout.pages, reused), "and were used again afterwards");
    Ok(())
}

/// The first request returns. What the main queue runs next sees its pages.
fn load_before_a_step(engine: &mut Engine) -> Result<()> {
    engine.load()?;
    let pages = engine.layout.pages.clone();
    engine.main.host_task((&engine.cache,), move |(cache,)| {
        assert!(holds(cache, &pages, written), "the pages are back");
        Ok(())
    })?;
    engine.main.synchronize() // a failed assertion in a task is an error of its queue
}

pub fn run() -> Result<()> {
    let mut engine = Engine::new(Device::cpu(0))?;
    let moving = offload_between_steps(&mut engine)?;
    use_again(&mut engine)?;
    load_before_a_step(&mut engine)?;
    let mib = engine.layout.active.start >> 20;
    println!(
        "{PAGES} pages, {mib} MiB, went to the host and back; {} steps ran meanwhile, {moving} of them with data moving",
        engine.steps
    );
    engine.side.close()?;
    engine.main.close()
}

#[allow(dead_code)] // the test that includes this file calls run()
fn main() -> Result<()> {
    run()
}
