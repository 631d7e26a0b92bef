//! A backend over host memory, with one worker thread a queue: what `docs/backends.md` shows of Rust.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{HashMap, VecDeque};
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use vllm_cpp_sys::backend::{Backend, Events, HostCall, PinnedMemory, QueueDone, QueueRequest};
use vllm_cpp_sys::{DeviceInfo, Error, EventFlags, Result, Status, sys};

/// One operation. The runtime keeps the ranges valid until it has run.
enum Work {
    Copy { dst: *mut u8, src: *const u8, bytes: usize },
    Fill { dst: *mut u8, value: u8, bytes: usize },
    Call(HostCall),
    After(Arc<Stream>, u64),
}

// SAFETY: addresses of memory that any thread may use.
unsafe impl Send for Work {}

#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    submitted: u64,
    completed: u64,
    failed: Option<(u64, Error)>,
    done: Option<QueueDone>,
}

impl State {
    /// What the queue answers about a ticket: `None` while that is pending.
    fn outcome(&self, ticket: u64) -> Option<Result<bool>> {
        match &self.failed {
            Some((failed, error)) if *failed <= ticket => Some(Err(error.clone())),
            _ => (self.completed >= ticket).then_some(Ok(true)),
        }
    }
}

/// A queue, shared with its worker and with the events that were recorded on it.
#[derive(Default)]
pub struct Stream {
    state: Mutex<State>,
    moved: Condvar,
}

impl Stream {
    fn submit(&self, work: Work) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        if let Some((_, error)) = &state.failed {
            let error = error.clone();
            drop(state);
            if let Work::Call(call) = work {
                call.cancel(&error);
            }
            return Err(error);
        }
        state.work.push_back(work);
        state.submitted += 1;
        self.moved.notify_all();
        Ok(())
    }

    fn wait(&self, ticket: u64, timeout: Option<Duration>) -> Result<bool> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some(outcome) = state.outcome(ticket) {
                return outcome;
            }
            state = match deadline {
                None => self.moved.wait(state).unwrap(),
                Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                    None => return Ok(false),
                    Some(left) => self.moved.wait_timeout(state, left).unwrap().0,
                },
            };
        }
    }

    fn submitted(&self) -> u64 {
        self.state.lock().unwrap().submitted
    }

    /// The worker: runs what comes, until the queue has ended and nothing is left.
    fn work(&self) {
        let mut state = self.state.lock().unwrap();
        loop {
            let Some(work) = state.work.pop_front() else {
                if let Some(done) = state.done.take() {
                    drop(state); // the last word may call the runtime: outside of the lock
                    drop(done);
                    return;
                }
                state = self.moved.wait(state).unwrap();
                continue;
            };
            let failed = state.failed.clone();
            drop(state);
            let outcome = run(work, failed);
            state = self.state.lock().unwrap();
            state.completed += 1;
            if let (Err(error), None) = (outcome, &state.failed) {
                state.failed = Some((state.completed, error));
            }
            self.moved.notify_all();
        }
    }
}

/// Runs an operation; behind a failed one it is dropped, or cancelled.
fn run(work: Work, failed: Option<(u64, Error)>) -> Result<()> {
    match (work, failed) {
        (Work::Call(call), Some((_, error))) => call.cancel(&error),
        (_, Some(_)) => {}
        // SAFETY: the runtime keeps the ranges valid until the copy has run, and they don't overlap.
        (Work::Copy { dst, src, bytes }, None) => unsafe { src.copy_to_nonoverlapping(dst, bytes) },
        // SAFETY: likewise.
        (Work::Fill { dst, value, bytes }, None) => unsafe { dst.write_bytes(value, bytes) },
        (Work::Call(call), None) => return call.run(),
        (Work::After(other, ticket), None) => return other.wait(ticket, None).map(drop),
    }
    Ok(())
}

/// The device. A test says in which method it panics.
#[derive(Default)]
pub struct HostBackend {
    blocks: Mutex<HashMap<usize, Layout>>,
    pub panics_in: Arc<Mutex<Option<&'static str>>>,
    pub loses_calls: Arc<Mutex<bool>>,
}

impl HostBackend {
    pub fn controlled_by(panics_in: Arc<Mutex<Option<&'static str>>>) -> HostBackend {
        HostBackend { panics_in, ..HostBackend::default() }
    }

    fn enter(&self, method: &'static str) {
        let armed = *self.panics_in.lock().unwrap() == Some(method);
        assert!(!armed, "no luck in {method}");
    }

    fn take_block(&self, bytes: usize) -> Result<NonNull<u8>> {
        let error = || Error::new(Status::OutOfMemory, format!("no room for {bytes} bytes"));
        let layout = Layout::from_size_align(bytes, 64).map_err(|_| error())?;
        // SAFETY: the runtime asks for at least one byte.
        let block = NonNull::new(unsafe { alloc(layout) }).ok_or_else(error)?;
        self.blocks.lock().unwrap().insert(block.as_ptr().addr(), layout);
        Ok(block)
    }

    fn give_block(&self, block: NonNull<u8>) -> Result<()> {
        let layout = self.blocks.lock().unwrap().remove(&block.as_ptr().addr());
        let layout = layout.ok_or_else(|| Error::new(Status::InvalidArgument, "no block of this device"))?;
        // SAFETY: allocated with this layout, and taken out of the table: freed once.
        unsafe { dealloc(block.as_ptr(), layout) };
        Ok(())
    }
}

impl Backend for HostBackend {
    type Queue = Arc<Stream>;

    fn get_info(&self) -> Result<DeviceInfo> {
        self.enter("get_info");
        let mut info = DeviceInfo::default();
        info.unified_memory = true;
        info.host_addressable = true;
        info.caps = sys::VT_CAP_ASYNC_QUEUES | sys::VT_CAP_EVENTS | sys::VT_CAP_AUX_QUEUE;
        info.name = "host memory, by Rust".into();
        Ok(info)
    }

    fn alloc(&self, bytes: usize) -> Result<NonNull<u8>> {
        self.enter("alloc");
        self.take_block(bytes)
    }

    unsafe fn free(&self, block: NonNull<u8>) -> Result<()> {
        self.enter("free");
        self.give_block(block)
    }

    unsafe fn copy(&self, queue: &Arc<Stream>, dst: *mut u8, src: *const u8, bytes: usize) -> Result<()> {
        self.enter("copy");
        queue.submit(Work::Copy { dst, src, bytes })
    }

    unsafe fn memset(&self, queue: &Arc<Stream>, dst: *mut u8, value: u8, bytes: usize) -> Result<()> {
        self.enter("memset");
        queue.submit(Work::Fill { dst, value, bytes })
    }

    fn queue_create(&self, request: &QueueRequest) -> Result<Arc<Stream>> {
        self.enter("queue_create");
        let queue = Arc::new(Stream::default());
        let worker = Arc::clone(&queue);
        let name = request.name.clone().unwrap_or_else(|| format!("host-{}", request.id));
        let started = std::thread::Builder::new().name(name).spawn(move || worker.work());
        started.map_err(|error| Error::new(Status::OutOfMemory, format!("no worker: {error}")))?;
        Ok(queue)
    }

    fn queue_destroy(&self, queue: Arc<Stream>, done: QueueDone) {
        queue.state.lock().unwrap().done = Some(done);
        queue.moved.notify_all();
    }

    fn queue_synchronize(&self, queue: &Arc<Stream>) -> Result<()> {
        self.enter("queue_synchronize");
        queue.wait(queue.submitted(), None).map(drop)
    }

    fn queue_query(&self, queue: &Arc<Stream>) -> Result<bool> {
        self.enter("queue_query");
        queue.wait(queue.submitted(), Some(Duration::ZERO))
    }

    fn queue_get_ticket(&self, queue: &Arc<Stream>) -> Result<u64> {
        self.enter("queue_get_ticket");
        Ok(queue.submitted())
    }

    fn queue_wait_ticket(&self, queue: &Arc<Stream>, ticket: u64, timeout: Option<Duration>) -> Result<bool> {
        self.enter("queue_wait_ticket");
        queue.wait(ticket, timeout)
    }

    fn queue_host_call(&self, queue: &Arc<Stream>, call: HostCall) -> Result<()> {
        self.enter("queue_host_call");
        if *self.loses_calls.lock().unwrap() {
            return Err(Error::new(Status::Unsupported, "this call is lost"));
        }
        queue.submit(Work::Call(call))
    }

    fn flush(&self) -> Result<()> {
        self.enter("flush");
        Ok(())
    }
}

impl PinnedMemory for HostBackend {
    fn pinned_alloc(&self, bytes: usize) -> Result<NonNull<u8>> {
        self.enter("pinned_alloc");
        self.take_block(bytes)
    }

    unsafe fn pinned_free(&self, block: NonNull<u8>) -> Result<()> {
        self.enter("pinned_free");
        self.give_block(block)
    }
}

/// An event is the place of its latest record.
#[derive(Default)]
pub struct Mark(Mutex<Option<(Arc<Stream>, u64)>>);

impl Mark {
    fn get(&self) -> Option<(Arc<Stream>, u64)> {
        self.0.lock().unwrap().clone()
    }
}

impl Events for HostBackend {
    type Event = Mark;

    fn event_create(&self, _flags: EventFlags) -> Result<Mark> {
        self.enter("event_create");
        Ok(Mark::default())
    }

    fn event_record(&self, event: &Mark, queue: &Arc<Stream>) -> Result<()> {
        self.enter("event_record");
        let state = queue.state.lock().unwrap();
        if let Some((_, error)) = &state.failed {
            return Err(error.clone());
        }
        *event.0.lock().unwrap() = Some((Arc::clone(queue), state.submitted));
        Ok(())
    }

    fn event_query(&self, event: &Mark) -> Result<bool> {
        self.enter("event_query");
        event.get().map_or(Ok(true), |(queue, ticket)| queue.wait(ticket, Some(Duration::ZERO)))
    }

    fn event_wait(&self, event: &Mark, timeout: Option<Duration>) -> Result<bool> {
        self.enter("event_wait");
        event.get().map_or(Ok(true), |(queue, ticket)| queue.wait(ticket, timeout))
    }

    fn queue_after_event(&self, queue: &Arc<Stream>, event: &Mark) -> Result<()> {
        self.enter("queue_after_event");
        match event.get() {
            Some((other, ticket)) if !Arc::ptr_eq(&other, queue) => queue.submit(Work::After(other, ticket)),
            _ => Ok(()),
        }
    }
}
