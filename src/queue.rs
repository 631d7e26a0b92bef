//! Ordered streams of work.

use std::ffi::CString;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use crate::context;
use crate::device::Device;
use crate::dtype::Element;
use crate::error::{Error, Result, Status, check, check_ready};
use crate::event::Event;
use crate::graph::GraphCore;
use crate::queue_core::QueueCore;
use crate::slice::{Slice, SliceMut};
use crate::sys;
use crate::track::{self, Access, Mode};

/// How to make a queue.
///
/// ```
/// use vllm_cpp_sys::{Device, Queue, QueueOptions};
///
/// let options = QueueOptions::default().asynchronous(true).name("copies").ring_capacity(64);
/// let queue = Queue::with_options(Device::cpu(0), &options)?;
/// assert!(!queue.is_synchronous());
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct QueueOptions {
    flags: u32,
    ring_capacity: u32,
    name: Option<String>,
    cpu_mask: u64,
    priority: i32,
}

impl QueueOptions {
    /// CPU: a worker thread runs the work behind the caller's back. Other devices are asynchronous anyway.
    pub fn asynchronous(self, on: bool) -> QueueOptions {
        self.flag(sys::VT_QUEUE_ASYNC, on)
    }

    /// A submission to a full ring answers [`Status::NotReady`] and queues nothing, instead of waiting.
    pub fn fail_full(self, on: bool) -> QueueOptions {
        self.flag(sys::VT_QUEUE_FAIL_FULL, on)
    }

    /// Operations that fit before submission waits; 0 for the default of 1024.
    pub fn ring_capacity(self, operations: u32) -> QueueOptions {
        QueueOptions { ring_capacity: operations, ..self }
    }

    /// The name of the worker thread.
    pub fn name(self, name: impl Into<String>) -> QueueOptions {
        QueueOptions { name: Some(name.into()), ..self }
    }

    /// CPUs 0 to 63 on which the worker may run, best effort; 0 for any.
    pub fn cpu_mask(self, mask: u64) -> QueueOptions {
        QueueOptions { cpu_mask: mask, ..self }
    }

    /// The priority of the worker, from -20 (urgent) to 19, best effort.
    pub fn priority(self, priority: i32) -> QueueOptions {
        QueueOptions { priority, ..self }
    }

    fn flag(self, bit: u32, on: bool) -> QueueOptions {
        let flags = if on { self.flags | bit } else { self.flags & !bit };
        QueueOptions { flags, ..self }
    }
}

/// An ordered stream of work on a device.
///
/// Operations of one queue run in order. Operations of different queues are ordered where they use the same bytes of a buffer and one
/// of them writes: the later one is made to wait. More order comes from [`Event`]s.
///
/// A CPU queue is synchronous unless asked otherwise: the work is done when the call returns. An asynchronous queue that failed is
/// dead: what stands behind the failed operation does not run.
///
/// Dropping a queue doesn't wait: what it holds still runs. [`Queue::close`] waits, and answers the failure.
pub struct Queue {
    pub(crate) core: Arc<QueueCore>,
    /// The graph that the C queue keeps, see [`Queue::replay`].
    pub(crate) stored: Mutex<Option<GraphCore>>,
}

impl Queue {
    /// Creates a queue: a synchronous one on a CPU.
    pub fn new(device: Device) -> Result<Queue> {
        Queue::with_options(device, &QueueOptions::default())
    }

    /// Creates a queue that works behind the caller's back.
    pub fn new_async(device: Device) -> Result<Queue> {
        Queue::with_options(device, &QueueOptions::default().asynchronous(true))
    }

    /// Creates a queue.
    pub fn with_options(device: Device, options: &QueueOptions) -> Result<Queue> {
        context::enter("vt_queue_create")?;
        let name = options.name.as_deref().map(CString::new).transpose();
        let name = name.map_err(|_| Error::invalid("vt_queue_create", "the name holds a zero byte"))?;
        let raw_options = sys::vt_queue_options {
            struct_size: size_of::<sys::vt_queue_options>(),
            flags: options.flags,
            ring_capacity: options.ring_capacity,
            name: name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()),
            cpu_mask: options.cpu_mask,
            priority: options.priority,
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the options and the name outlive the call, which copies them.
        check(unsafe { sys::vt_queue_create(device.as_raw(), &raw_options, &mut raw) })?;
        let raw = NonNull::new(raw).ok_or_else(|| Error::new(Status::Internal, "vt_queue_create answered NULL"))?;
        Ok(Queue { core: Arc::new(QueueCore::new(raw, device)), stored: Mutex::default() })
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.core.device
    }

    /// An id that no other queue of this process has had.
    pub fn id(&self) -> u64 {
        self.core.id
    }

    /// Whether operations are done when the call returns.
    pub fn is_synchronous(&self) -> bool {
        self.core.synchronous
    }

    /// The C queue, borrowed.
    #[inline]
    pub fn as_raw(&self) -> *mut sys::vt_queue {
        self.core.raw()
    }

    /// Copies `src` to `dst`, which has as many elements.
    #[inline]
    pub fn copy<'d, 's, T: Element>(&self, dst: impl Into<SliceMut<'d, T>>, src: impl Into<Slice<'s, T>>) -> Result<()> {
        let (dst, src) = (dst.into(), src.into());
        if dst.len() != src.len() {
            return Err(lengths_differ(dst.len(), src.len()));
        }
        let (to, from, bytes) = (dst.pointer(), src.pointer(), src.bytes());
        let call = |raw| {
            // SAFETY: both ranges are as long as said, and the tracker keeps them alive until the copy has run.
            unsafe { sys::vt_copy(raw, to.cast(), from.cast(), bytes) }
        };
        self.submit([dst.access(Mode::Write), src.access()], call)
    }

    /// Fills `dst` with one byte value.
    #[inline]
    pub fn fill<'d, T: Element>(&self, dst: impl Into<SliceMut<'d, T>>, byte: u8) -> Result<()> {
        let dst = dst.into();
        let (to, bytes) = (dst.pointer(), dst.bytes());
        // SAFETY: the range is as long as said, and the tracker keeps it alive until the fill has run.
        self.submit([dst.access(Mode::Write)], |raw| unsafe { sys::vt_memset(raw, to.cast(), i32::from(byte), bytes) })
    }

    #[inline]
    pub(crate) fn submit<const N: usize>(
        &self,
        accesses: [Access<'_>; N],
        call: impl FnOnce(*mut sys::vt_queue) -> sys::vt_status,
    ) -> Result<()> {
        track::run(&self.core, &accesses, |raw| check(call(raw)))
    }

    /// Makes later work come after the event's latest record. The host isn't blocked, unless the queue is synchronous.
    pub fn after_event(&self, event: &Event) -> Result<()> {
        event.make_wait(&self.core)
    }

    /// Waits until everything submitted so far has completed, and answers the failure that stuck to the queue.
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        context::enter("vt_queue_synchronize")?;
        // SAFETY: a live queue.
        check(unsafe { sys::vt_queue_synchronize(self.as_raw()) })
    }

    /// Asks whether everything submitted so far has completed, without blocking.
    pub fn query(&self) -> Result<bool> {
        context::enter("vt_queue_query")?;
        // SAFETY: a live queue.
        check_ready(unsafe { sys::vt_queue_query(self.as_raw()) })
    }

    /// The ticket of the last operation submitted; 0 before the first one.
    pub fn ticket(&self) -> Result<u64> {
        context::enter("vt_queue_get_ticket")?;
        let mut ticket = 0;
        // SAFETY: a live queue and a valid out-parameter.
        check(unsafe { sys::vt_queue_get_ticket(self.as_raw(), &mut ticket) })?;
        Ok(ticket)
    }

    /// Waits until the operation of `ticket`, and all before it, have completed.
    pub fn wait_ticket(&self, ticket: u64) -> Result<()> {
        context::enter("vt_queue_wait_ticket")?;
        // SAFETY: a live queue; a ticket that wasn't given out is refused.
        check(unsafe { sys::vt_queue_wait_ticket(self.as_raw(), ticket, sys::VT_WAIT_FOREVER) })
    }

    /// Whether the queue is in a capture.
    pub fn is_capturing(&self) -> bool {
        self.core.is_capturing()
    }

    /// Waits for the work, gives the queue up and answers the failure that stuck to it.
    pub fn close(self) -> Result<()> {
        context::enter("vt_queue_destroy")?;
        if context::is_capturing() || self.core.is_capturing() {
            return Err(Error::refused("vt_queue_destroy", "illegal inside a capture"));
        }
        // SAFETY: a live queue. The reference taken here is the one that is destroyed; the core keeps its own.
        check(unsafe { sys::vt_queue_retain(self.as_raw()) })?;
        // SAFETY: as above.
        check(unsafe { sys::vt_queue_destroy(self.as_raw()) })
    }
}

#[cold]
fn lengths_differ(dst: usize, src: usize) -> Error {
    Error::invalid("vt_copy", format!("the destination has {dst} elements, the source {src}"))
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({} on {})", self.core.id, self.core.device)
    }
}
