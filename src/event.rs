//! Marks in a queue that other queues and the host can wait for.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::capture::{self, Snapshot};
use crate::context;
use crate::device::Device;
use crate::error::{Result, check, check_ready};
use crate::queue::Queue;
use crate::queue_core::{QueueCore, RawEvent, lock};
use crate::sys;

/// Properties of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventFlags {
    /// A host that waits sleeps at once instead of spinning first.
    pub blocking: bool,
    /// Records carry a time, see [`Event::elapsed`].
    pub timing: bool,
}

/// What the latest record stands for.
#[derive(Clone)]
enum Mark {
    None,
    /// Everything on a queue up to a ticket.
    Ticket(u64, u64),
    Captured(Snapshot),
}

/// A mark in a queue. An event that was never recorded counts as complete; who waits takes the latest record.
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
pub struct Event {
    raw: RawEvent,
    device: Device,
    /// The number of records, and the latest one.
    mark: Mutex<(u64, Mark)>,
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
        Ok(Event { raw: RawEvent::new(device, blocking | timing)?, device, mark: Mutex::new((0, Mark::None)) })
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The C event, borrowed.
    pub fn as_raw(&self) -> *mut sys::vt_event {
        self.raw.raw()
    }

    /// Completes when everything submitted to `queue` so far has completed. Replaces the earlier record.
    pub fn record(&self, queue: &Queue) -> Result<()> {
        context::enter("vt_event_record")?;
        let mut mark = lock(&self.mark);
        // Taken first: the record covers at least this much.
        let stands_for = match capture::is_recording(&queue.core) {
            true => capture::snapshot(&queue.core).map_or(Mark::None, Mark::Captured),
            false => Mark::Ticket(queue.core.id, queue.core.ticket()),
        };
        self.raw.record(&queue.core)?;
        *mark = (mark.0 + 1, stands_for);
        Ok(())
    }

    /// Makes a queue wait, and notes what its later work comes after.
    pub(crate) fn make_wait(&self, queue: &Arc<QueueCore>) -> Result<()> {
        context::enter("vt_queue_after_event")?;
        // SAFETY: live handles.
        let wait = || check(unsafe { sys::vt_queue_after_event(queue.raw(), self.as_raw()) });
        let mark = lock(&self.mark);
        if let Mark::Captured(snapshot) = &mark.1 {
            // Recorded, or refused at once. The lock is held: whether the queue joins a capture here must be certain.
            return capture::join(queue, snapshot, wait);
        }
        let (count, stands_for) = mark.clone();
        drop(mark); // a synchronous queue blocks here
        wait()?;
        // Another record may have come in between: then the queue took one or the other, and nothing is noted.
        match stands_for {
            Mark::Ticket(id, ticket) if ticket != u64::MAX && lock(&self.mark).0 == count => queue.note_after(id, ticket),
            _ => {}
        }
        Ok(())
    }

    /// Waits until the event has completed.
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

    /// Asks whether the event has completed, without blocking.
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
