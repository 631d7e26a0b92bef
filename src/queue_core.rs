//! The C queue behind [`crate::Queue`]: progress by tickets, and making one queue wait for another.
//!
//! A core holds one reference to the C queue. Uses of buffers hold cores, so a ticket can be asked for as long as anybody
//! remembers it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::context;
use crate::device::Device;
use crate::error::{Error, Result, Status, check, check_ready};
use crate::event_future::Watch;
use crate::lock::Lock;
use crate::reaper::{self, Handle};
use crate::sys;

/// Locks; a panic elsewhere can't have left these data half-changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far an operation has come.
pub(crate) enum Progress {
    Done,
    Pending,
    /// It will not touch memory any more.
    Failed(Error),
}

/// Asks for many operations of a queue, and remembers: they complete in order.
#[derive(Default)]
pub(crate) struct Asked {
    queue: u64,
    done: u64,
    pending: u64,
}

impl Asked {
    pub(crate) fn progress(&mut self, queue: &QueueCore, ticket: u64) -> Progress {
        if self.queue != queue.id {
            *self = Asked { queue: queue.id, done: 0, pending: u64::MAX };
        }
        if ticket <= self.done {
            return Progress::Done;
        }
        if ticket >= self.pending {
            return Progress::Pending;
        }
        let progress = queue.progress(ticket);
        match progress {
            Progress::Done => self.done = ticket,
            Progress::Pending => self.pending = ticket,
            Progress::Failed(_) => {}
        }
        progress
    }
}

pub(crate) struct QueueCore {
    raw: NonNull<sys::vt_queue>,
    pub(crate) id: u64,
    pub(crate) device: Device,
    /// Operations are done when the call returns.
    pub(crate) synchronous: bool,
    /// The last ticket that anybody has read, or an earlier one.
    seen: AtomicU64,
    /// (queue, ticket): later work of this queue comes after that operation of the other queue already.
    known: Lock<Vec<(u64, u64)>>,
    /// With which other queues are made to wait for this one.
    edge: Mutex<Option<RawEvent>>,
    pub(crate) watch: Arc<Watch>,
}

// SAFETY: all functions used on the C queue may be called from any thread.
unsafe impl Send for QueueCore {}
// SAFETY: as above, also on one queue at the same time.
unsafe impl Sync for QueueCore {}

impl QueueCore {
    /// Takes over one reference.
    pub(crate) fn new(raw: NonNull<sys::vt_queue>, device: Device) -> QueueCore {
        // SAFETY: `raw` is a live queue.
        let (id, synchronous) = unsafe { (sys::vt_queue_get_id(raw.as_ptr()), sys::vt_queue_is_synchronous(raw.as_ptr()) != 0) };
        QueueCore {
            raw,
            id,
            device,
            synchronous,
            seen: AtomicU64::new(0),
            known: Lock::default(),
            edge: Mutex::default(),
            watch: Arc::default(),
        }
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut sys::vt_queue {
        self.raw.as_ptr()
    }

    pub(crate) fn is_capturing(&self) -> bool {
        // SAFETY: a live queue.
        unsafe { sys::vt_queue_is_capturing(self.raw()) != 0 }
    }

    /// The ticket of the last operation. Where it can't be read, as in a callback, one that stands for the last of whenever it is asked
    /// for.
    #[inline]
    pub(crate) fn ticket(&self) -> u64 {
        let mut ticket = 0;
        // SAFETY: a live queue and a valid out-parameter.
        if unsafe { sys::vt_queue_get_ticket(self.raw(), &mut ticket) } != sys::VT_OK {
            return u64::MAX;
        }
        // relaxed: C has ordered the operation before whatever comes after the load, see `seen`.
        self.seen.store(ticket, Ordering::Relaxed);
        ticket
    }

    /// A ticket that was given out by now, without asking C: every one that this thread noted, unless another thread has just stored an
    /// earlier one.
    #[inline]
    pub(crate) fn seen(&self) -> u64 {
        // relaxed: pairs with the store in `ticket`. Whoever stored it had submitted before; what is submitted now comes later.
        self.seen.load(Ordering::Relaxed)
    }

    /// The ticket of an operation for which C was called. Where C has refused it, parts of it may be queued all the same; 0 says that
    /// none is left, so that nobody is told twice of what the call has answered.
    #[inline]
    pub(crate) fn last_ticket(&self, submitted: bool) -> u64 {
        let ticket = self.ticket();
        if !submitted && self.is_settled(ticket) { 0 } else { ticket }
    }

    /// What a ticket that couldn't be read stands for now.
    fn given(&self, ticket: u64) -> u64 {
        if ticket == u64::MAX { self.ticket() } else { ticket }
    }

    /// Asks for an operation without blocking.
    pub(crate) fn progress(&self, ticket: u64) -> Progress {
        let ticket = self.given(ticket);
        // SAFETY: a live queue; time-out 0 polls.
        match unsafe { sys::vt_queue_wait_ticket(self.raw(), ticket, 0) } {
            sys::VT_OK => Progress::Done,
            sys::VT_NOT_READY => Progress::Pending,
            status => {
                let error = Error::from_raw(status);
                if self.is_usable() && ticket != u64::MAX { Progress::Failed(error) } else { Progress::Pending }
            }
        }
    }

    /// Asks whether an operation has completed. Its failure, and whatever keeps this thread from asking, is an error.
    pub(crate) fn query(&self, ticket: u64) -> Result<bool> {
        // SAFETY: a live queue; time-out 0 polls.
        check_ready(unsafe { sys::vt_queue_wait_ticket(self.raw(), ticket, 0) })
    }

    /// Blocks for a limited time, and answers whether the operation is settled.
    pub(crate) fn settles_within(&self, ticket: u64, time: Duration) -> bool {
        // SAFETY: a live queue.
        let status = unsafe { sys::vt_queue_wait_ticket(self.raw(), ticket, time.as_nanos() as u64) };
        let settled = status == sys::VT_OK || self.is_settled(ticket);
        if !settled && status != sys::VT_ERR_TIMEOUT {
            std::thread::sleep(time); // refused: another thread is capturing the queue
        }
        settled
    }

    /// Whether this thread may ask at all. Ticket 0 is complete on any queue, so a refusal is one of the thread, not of the work.
    fn is_usable(&self) -> bool {
        // SAFETY: a live queue; time-out 0 polls.
        unsafe { sys::vt_queue_wait_ticket(self.raw(), 0, 0) == sys::VT_OK }
    }

    pub(crate) fn is_settled(&self, ticket: u64) -> bool {
        !matches!(self.progress(ticket), Progress::Pending)
    }

    /// Blocks until an operation has completed, and answers its failure. When this returns `Err` for another reason (a callback),
    /// the operation isn't settled.
    pub(crate) fn wait(&self, ticket: u64) -> Result<()> {
        context::enter("vt_queue_wait_ticket")?;
        let ticket = self.given(ticket);
        // A capture allows polls only. One of another thread may begin at any time.
        if !context::is_capturing() && !self.is_capturing() {
            // SAFETY: a live queue.
            match check(unsafe { sys::vt_queue_wait_ticket(self.raw(), ticket, sys::VT_WAIT_FOREVER) }) {
                Err(error) if error.status == Status::FailedPrecondition && self.is_usable() => {}
                outcome => return outcome,
            }
        }
        let mut pause = Duration::from_micros(10);
        loop {
            match self.progress(ticket) {
                Progress::Done => return Ok(()),
                Progress::Failed(error) => return Err(error),
                Progress::Pending => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    pub(crate) fn comes_after(&self, other: u64, ticket: u64) -> bool {
        self.known.lock().iter().any(|&(id, known)| id == other && known >= ticket)
    }

    /// Notes that later work of this queue comes after an operation of another one.
    pub(crate) fn note_after(&self, other: u64, ticket: u64) {
        let mut known = self.known.lock();
        if let Some(entry) = known.iter_mut().find(|entry| entry.0 == other) {
            entry.1 = entry.1.max(ticket);
            return;
        }
        // Forgetting only costs an event; ids of queues that are gone would pile up otherwise.
        if known.len() == 64 {
            known.clear();
        }
        known.push((other, ticket));
    }

    /// Makes later work of this queue come after an operation of `other`. The host isn't blocked unless this queue is synchronous
    /// or `other` is capturing.
    pub(crate) fn order_after(&self, other: &QueueCore, ticket: u64) -> Result<()> {
        if self.comes_after(other.id, ticket) {
            return Ok(());
        }
        match other.progress(ticket) {
            Progress::Done => return Ok(()),
            Progress::Failed(error) => return Err(error),
            Progress::Pending => {}
        }
        if self.synchronous || other.is_capturing() {
            return other.wait(ticket);
        }
        // Taken out for the time of the call, which may block on a full ring: nobody else can make another record of it.
        let kept = lock(&other.edge).take();
        let event = kept.map_or_else(|| RawEvent::new(other.device, 0), Ok)?;
        let covered = other.ticket();
        if let Err(error) = event.record(other) {
            return if other.is_capturing() { other.wait(ticket) } else { Err(error) };
        }
        // SAFETY: live handles.
        let outcome = check(unsafe { sys::vt_queue_after_event(self.raw(), event.raw()) });
        *lock(&other.edge) = Some(event);
        match outcome {
            Ok(()) if covered != u64::MAX => self.note_after(other.id, covered),
            // Devices that can't wait for each other: the host waits.
            Err(error) if error.status == Status::InvalidArgument => return other.wait(ticket),
            outcome => return outcome,
        }
        Ok(())
    }
}

impl Drop for QueueCore {
    fn drop(&mut self) {
        reaper::release(Handle::Queue(self.raw));
    }
}

/// An event without the notes of [`crate::Event`].
pub(crate) struct RawEvent(NonNull<sys::vt_event>);

// SAFETY: all functions on events may be called from any thread.
unsafe impl Send for RawEvent {}
// SAFETY: as above, also on one event at the same time.
unsafe impl Sync for RawEvent {}

impl RawEvent {
    pub(crate) fn new(device: Device, flags: u32) -> Result<RawEvent> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: a valid out-parameter.
        check(unsafe { sys::vt_event_create(device.as_raw(), flags, &mut raw) })?;
        Ok(RawEvent(NonNull::new(raw).ok_or_else(|| Error::invalid("vt_event_create", "no event was made"))?))
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut sys::vt_event {
        self.0.as_ptr()
    }

    #[inline]
    pub(crate) fn record(&self, queue: &QueueCore) -> Result<()> {
        // SAFETY: live handles.
        check(unsafe { sys::vt_event_record(self.raw(), queue.raw()) })
    }
}

impl Drop for RawEvent {
    fn drop(&mut self) {
        reaper::release(Handle::Event(self.0));
    }
}

/// One operation, as a buffer remembers it: which bytes it uses, on which queue, and when it has completed.
#[derive(Clone)]
pub(crate) struct Use {
    pub(crate) queue: Arc<QueueCore>,
    pub(crate) ticket: u64,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) write: bool,
    /// It gives the bytes their first contents: where it failed, they have none, and nobody may ever read them.
    pub(crate) first: bool,
}

impl Use {
    /// Whether the bytes may be without contents still.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.first && !matches!(self.queue.progress(self.ticket), Progress::Done)
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.queue.is_settled(self.ticket)
    }

    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.queue.progress(self.ticket), Progress::Failed(_))
    }
}
