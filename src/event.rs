//! Marks in a queue that other queues and the host can wait for.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::capture::{self, Snapshot};
use crate::context;
use crate::device::Device;
use crate::error::{Result, check, check_ready};
use crate::event_future::Awaited;
use crate::lock::{Guard, Lock};
use crate::queue::Queue;
use crate::queue_core::{QueueCore, RawEvent};
use crate::sys;

/// Properties of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventFlags {
    /// A host that waits sleeps at once instead of spinning first.
    pub blocking: bool,
    /// Records carry a time, see [`Event::elapsed`].
    pub timing: bool,
}

/// How a host thread waits for an event, or a rank for its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitMode {
    /// As the event's flags say; without one it spins for some tens of microseconds, then sleeps.
    #[default]
    Default,
    /// Sleeps at once: costs no CPU time, and the time that it takes to be woken.
    Block,
    /// Polls without end, and offers its CPU to others in between.
    Yield,
    /// Polls without end: the shortest wait, at the price of a whole CPU.
    Spin,
}

impl WaitMode {
    pub(crate) fn as_raw(self) -> sys::vt_wait_mode {
        match self {
            WaitMode::Default => sys::VT_WAIT_MODE_DEFAULT,
            WaitMode::Block => sys::VT_WAIT_MODE_BLOCK,
            WaitMode::Yield => sys::VT_WAIT_MODE_YIELD,
            WaitMode::Spin => sys::VT_WAIT_MODE_SPIN,
        }
    }
}

/// What the latest record stands for.
enum Mark {
    None,
    Queue(Record),
    Captured(Snapshot),
}

/// Everything on a queue up to a ticket. Where other threads submit meanwhile, which one that is lies between two.
struct Record {
    queue: Arc<QueueCore>,
    at_least: u64,
    at_most: u64,
}

/// A mark in a queue. An event that was never recorded counts as complete; who waits takes the latest record. An event keeps the queue
/// of that record alive.
///
/// ```
/// use vllm_cpp_sys::{Device, Event, Queue};
///
/// let (main, side) = (Queue::new_async(Device::cpu(0))?, Queue::new_async(Device::cpu(0))?);
/// let event = Event::new(Device::cpu(0))?;
/// event.record(&main)?;
/// side.after_event(&event)?; // later work of `side` comes after earlier work of `main`
/// event.synchronize()?;
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
///
/// In asynchronous code an event, or a reference to one, is awaited. Any executor will do:
///
/// ```
/// use vllm_cpp_sys::{Device, DeviceBuf, Event, PinnedBuf, Queue, Result};
///
/// async fn sum(queue: &Queue) -> Result<u64> {
///     let input = DeviceBuf::from_fn(queue.device(), 1000, |i| i as u64)?;
///     let mut result = PinnedBuf::<u64>::zeroed(queue.device(), 1)?;
///     queue.host_task((&input, &mut result), |(input, result)| {
///         result[0] = input.iter().sum();
///         Ok(())
///     })?;
///     let done = Event::new(queue.device())?;
///     done.record(queue)?;
///     done.await?; // the thread is free for other tasks meanwhile
///     Ok(result.read()?[0])
/// }
///
/// # fn main() -> Result<()> {
/// let queue = Queue::new_async(Device::cpu(0))?;
/// assert_eq!(pollster::block_on(sum(&queue))?, 499_500);
/// # Ok(())
/// # }
/// ```
pub struct Event {
    raw: RawEvent,
    device: Device,
    mark: Lock<Mark>,
    /// How many records were begun. Changed under the lock.
    records: AtomicU64,
}

impl Event {
    /// Creates an event.
    pub fn new(device: Device) -> Result<Event> {
        Event::with_flags(device, EventFlags::default())
    }

    /// Creates an event with properties.
    pub fn with_flags(device: Device, flags: EventFlags) -> Result<Event> {
        context::enter("vt_event_create")?;
        let blocking = if flags.blocking { sys::VT_EVENT_BLOCKING } else { 0 };
        let timing = if flags.timing { sys::VT_EVENT_TIMING } else { 0 };
        Ok(Event {
            raw: RawEvent::new(device, blocking | timing)?,
            device,
            mark: Lock::new(Mark::None),
            records: AtomicU64::new(0),
        })
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The C event, borrowed.
    #[inline]
    pub fn as_raw(&self) -> *mut sys::vt_event {
        self.raw.raw()
    }

    /// Completes when everything submitted to `queue` so far has completed. Replaces the earlier record.
    #[inline]
    pub fn record(&self, queue: &Queue) -> Result<()> {
        context::enter("vt_event_record")?;
        let mut mark = self.mark.lock();
        // relaxed: changed under the lock only; for who reads it without, see `make_wait`.
        self.records.store(self.records.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let at_least = queue.core.seen();
        match &mut *mark {
            // The usual case touches no reference count.
            Mark::Queue(record) if Arc::ptr_eq(&record.queue, &queue.core) && !context::is_capturing() => {
                self.raw.record(&queue.core)?;
                (record.at_least, record.at_most) = (at_least, queue.core.ticket());
                Ok(())
            }
            _ => self.record_anew(mark, &queue.core, at_least),
        }
    }

    #[inline(never)]
    fn record_anew(&self, mut mark: Guard<'_, Mark>, queue: &Arc<QueueCore>, at_least: u64) -> Result<()> {
        let snapshot = if capture::is_recording(queue) { capture::snapshot(queue) } else { None };
        self.raw.record(queue)?;
        let stands_for = match snapshot {
            Some(snapshot) => Mark::Captured(snapshot),
            None => Mark::Queue(Record { queue: Arc::clone(queue), at_least, at_most: queue.ticket() }),
        };
        let before = std::mem::replace(&mut *mark, stands_for);
        drop(mark);
        drop(before); // may end a queue
        Ok(())
    }

    /// What the latest record stands for, for a future.
    pub(crate) fn awaited(&self) -> Awaited {
        match &*self.mark.lock() {
            Mark::None => Awaited::Nothing,
            Mark::Queue(record) => Awaited::Work(Arc::clone(&record.queue), record.at_most),
            Mark::Captured(_) => Awaited::Captured,
        }
    }

    /// Makes a queue wait, and notes what its later work comes after.
    pub(crate) fn make_wait(&self, queue: &Arc<QueueCore>) -> Result<()> {
        context::enter("vt_queue_after_event")?;
        // SAFETY: live handles.
        let wait = || check(unsafe { sys::vt_queue_after_event(queue.raw(), self.as_raw()) });
        let mark = self.mark.lock();
        if let Mark::Captured(snapshot) = &*mark {
            // Recorded, or refused at once. The lock is held: whether the queue joins a capture here must be certain.
            return capture::join(queue, snapshot, wait);
        }
        let stands_for = match &*mark {
            Mark::Queue(record) => Some((record.queue.id, record.at_least)),
            _ => None,
        };
        let records = self.records.load(Ordering::Relaxed); // relaxed: changed under the lock
        drop(mark); // a synchronous queue blocks here
        wait()?;
        // Another record may have come in between: then the queue took one or the other, and nothing is noted. relaxed: the number
        // changes before C is told, so where the queue took that record, C has made the change visible with it.
        match stands_for {
            Some((id, ticket)) if self.records.load(Ordering::Relaxed) == records => queue.note_after(id, ticket),
            _ => {}
        }
        Ok(())
    }

    /// Waits until the event has completed.
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        context::enter("vt_event_synchronize")?;
        // SAFETY: a live event.
        check(unsafe { sys::vt_event_synchronize(self.as_raw()) })
    }

    /// Waits for a limited time: [`crate::Status::Timeout`] says that it passed; the work goes on.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        context::enter("vt_event_wait")?;
        let nanoseconds = u64::try_from(timeout.as_nanos()).unwrap_or(sys::VT_WAIT_FOREVER);
        // SAFETY: a live event.
        check(unsafe { sys::vt_event_wait(self.as_raw(), nanoseconds) })
    }

    /// Waits as [`Event::wait`] does, in a way that is chosen for this call. Backends may refuse it as [`crate::Status::Unsupported`].
    pub fn wait_by(&self, mode: WaitMode, timeout: Duration) -> Result<()> {
        context::enter("vt_event_wait_by")?;
        let nanoseconds = u64::try_from(timeout.as_nanos()).unwrap_or(sys::VT_WAIT_FOREVER);
        let mode = mode.as_raw();
        // SAFETY: a live event.
        check(unsafe { sys::vt_event_wait_by(self.as_raw(), mode, nanoseconds) })
    }

    /// Asks whether the event has completed, without blocking.
    #[inline]
    pub fn query(&self) -> Result<bool> {
        context::enter("vt_event_query")?;
        // SAFETY: a live event.
        check_ready(unsafe { sys::vt_event_query(self.as_raw()) })
    }

    /// The time between two completed events that were made with `timing`.
    pub fn elapsed(start: &Event, end: &Event) -> Result<Duration> {
        let mut nanoseconds = 0;
        // SAFETY: live events and a valid out-parameter.
        check(unsafe { sys::vt_event_get_elapsed(start.as_raw(), end.as_raw(), &mut nanoseconds) })?;
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event(on {})", self.device)
    }
}
