//! Backends written in Rust: devices that this library doesn't know yet.
//!
//! A backend implements [`Backend`], and where its device can do more, [`PinnedMemory`] and [`Events`]. [`Registration`] makes the C
//! table of it. What a table of C functions promises is told in `vllm_vt/backend.h` and `docs/backends.md`; here
//!
//! - objects have types: a method gets the `Queue` and the `Event` that the same backend made;
//! - a method that panics fails with [`Status::Internal`](crate::Status::Internal) and the panic's text, and the caller goes on;
//! - nothing is forgotten: a [`HostCall`] that the backend loses is cancelled, a [`QueueDone`] that it loses says "done";
//! - a group of methods is there wholly or not at all.
//!
//! Two things can't be checked. Methods that get addresses are `unsafe` to call; only the runtime calls them. And the runtime, hence
//! all safe code that uses the device, relies on what the methods promise, so [`Registration::register`] is `unsafe`: who calls it
//! vouches for the backend.
//!
//! Methods may be called from any thread, also several at once. They may call the runtime for other devices, but not for their own.
//! Graphs have no trait: such a backend fills [`crate::sys::vt_backend_ops`] itself.

use std::ptr::NonNull;
use std::time::Duration;

use crate::device::DeviceInfo;
use crate::error::Result;
use crate::event::EventFlags;

mod call;
mod events;
mod methods;
mod registration;

pub use call::{HostCall, QueueDone};
pub use registration::Registration;

/// How the user wants a queue. A backend takes from it what has a meaning for its device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueRequest {
    /// The id of the queue, which no other queue of this process has had.
    pub id: u64,
    /// `VT_QUEUE_*` bits, see [`crate::sys`].
    pub flags: u32,
    /// Operations that fit before submission waits: a power of two.
    pub ring_capacity: u32,
    /// The name of the worker, if one is wished.
    pub name: Option<String>,
    /// CPUs on which a worker may run; 0 for any.
    pub cpu_mask: u64,
    /// The priority of a worker, from -20 to 19.
    pub priority: i32,
}

/// A device and its queues. The methods are named as in `vt_backend_ops`.
///
/// Arguments were checked before: byte counts aren't 0, ranges don't overlap. A method that fails leaves everything as it was.
pub trait Backend: Send + Sync + 'static {
    /// An ordered stream of work.
    type Queue: Send + Sync + 'static;

    /// The facts of the device. Called at registration too: `caps` says what else the table must hold.
    fn get_info(&self) -> Result<DeviceInfo>;

    /// Memory of the device, aligned to 64 bytes, for nobody else until it is freed.
    fn alloc(&self, bytes: usize) -> Result<NonNull<u8>>;

    /// Takes memory back.
    ///
    /// # Safety
    ///
    /// `block` came from `alloc` of this backend, and nothing uses it any more.
    unsafe fn free(&self, block: NonNull<u8>) -> Result<()>;

    /// Queues a copy. Either address is of a device of this backend or of the host. An error of
    /// [`Status::NotReady`](crate::Status::NotReady) says that the queue is full and was made with `VT_QUEUE_FAIL_FULL`.
    ///
    /// # Safety
    ///
    /// Both ranges are valid until the copy has run.
    unsafe fn copy(&self, queue: &Self::Queue, dst: *mut u8, src: *const u8, bytes: usize) -> Result<()>;

    /// Queues a fill.
    ///
    /// # Safety
    ///
    /// The range is valid until the fill has run.
    unsafe fn memset(&self, queue: &Self::Queue, dst: *mut u8, value: u8, bytes: usize) -> Result<()>;

    /// Makes a queue.
    fn queue_create(&self, request: &QueueRequest) -> Result<Self::Queue>;

    /// Ends a queue without waiting: what it holds still runs, then `done` is let go, on a thread that may call the runtime. A
    /// synchronous queue has nothing left, which is the default.
    fn queue_destroy(&self, queue: Self::Queue, done: QueueDone) {
        drop(queue);
        drop(done);
    }

    /// Waits for everything submitted, and answers the failure that stuck to the queue.
    fn queue_synchronize(&self, queue: &Self::Queue) -> Result<()>;

    /// Answers whether everything submitted has completed, or the failure. Never blocks.
    fn queue_query(&self, queue: &Self::Queue) -> Result<bool>;

    /// The ticket of the last operation submitted: 0 before the first, then growing by at least one each.
    fn queue_get_ticket(&self, queue: &Self::Queue) -> Result<u64>;

    /// Waits for the operation of a ticket that was given out, for ever where `timeout` is `None`. Answers whether it has completed
    /// in time, or the failure that stuck to the queue at or before it.
    fn queue_wait_ticket(&self, queue: &Self::Queue, ticket: u64, timeout: Option<Duration>) -> Result<bool>;

    /// Queues host code. A failure of it sticks to an asynchronous queue, and is the answer of a synchronous one.
    fn queue_host_call(&self, queue: &Self::Queue, call: HostCall) -> Result<()>;

    /// Submits what the device holds back: by default nothing, since work is submitted as it comes.
    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

/// Host memory that the device copies from and to without staging. A device with asynchronous queues must have it.
pub trait PinnedMemory: Backend {
    /// As [`Backend::alloc`], where host code may use the bytes.
    fn pinned_alloc(&self, bytes: usize) -> Result<NonNull<u8>>;

    /// Takes memory back.
    ///
    /// # Safety
    ///
    /// `block` came from `pinned_alloc` of this backend, and nothing uses it any more.
    unsafe fn pinned_free(&self, block: NonNull<u8>) -> Result<()>;
}

/// Marks in a queue. A device with asynchronous queues must have them; elsewhere the runtime's own are right.
pub trait Events: Backend {
    /// A mark: complete until it is recorded.
    type Event: Send + Sync + 'static;

    /// Makes an event.
    fn event_create(&self, flags: EventFlags) -> Result<Self::Event>;

    /// Ends an event. Who waits for a record of it goes on waiting.
    fn event_destroy(&self, event: Self::Event) {
        drop(event);
    }

    /// Replaces the record: the event completes when everything submitted to `queue` so far has completed.
    fn event_record(&self, event: &Self::Event, queue: &Self::Queue) -> Result<()>;

    /// Answers whether the latest record has completed, or the failure of the work before it. Never blocks.
    fn event_query(&self, event: &Self::Event) -> Result<bool>;

    /// Waits for the latest record as [`Backend::queue_wait_ticket`] does.
    fn event_wait(&self, event: &Self::Event, timeout: Option<Duration>) -> Result<bool>;

    /// Makes later work of `queue` come after the latest record, without blocking the host. The event may be one of another device
    /// that has a backend of this type.
    fn queue_after_event(&self, queue: &Self::Queue, event: &Self::Event) -> Result<()>;
}
