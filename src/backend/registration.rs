//! From a backend to its table, and into the registry.

use std::ffi::CString;

use super::methods::{self, Registered};
use super::{Backend, Events, PinnedMemory, events};
use crate::context;
use crate::device::Device;
use crate::error::{Error, Result, check};
use crate::sys;

/// A backend on its way into the registry.
///
/// ```no_run
/// # use vllm_cpp_sys::backend::{Events, PinnedMemory, Registration};
/// # use vllm_cpp_sys::{Device, DeviceType, Result};
/// # fn example<B: PinnedMemory + Events>(backend: B) -> Result<()> {
/// let registration = Registration::new(backend).with_pinned_memory().with_events();
/// // SAFETY: the backend keeps the promises of `Registration::register`.
/// unsafe { registration.register(Device::new(DeviceType::Xpu, 0), "mine") }
/// # }
/// ```
#[derive(Debug)]
pub struct Registration<B> {
    backend: B,
    ops: sys::vt_backend_ops,
}

impl<B: Backend> Registration<B> {
    /// Begins with what every backend has.
    pub fn new(backend: B) -> Registration<B> {
        let ops = sys::vt_backend_ops {
            struct_size: size_of::<sys::vt_backend_ops>(),
            abi_major: sys::VT_BACKEND_ABI_MAJOR,
            abi_minor: sys::VT_BACKEND_ABI_MINOR,
            alloc: Some(methods::alloc::<B>),
            free: Some(methods::free::<B>),
            copy: Some(methods::copy::<B>),
            memset: Some(methods::memset::<B>),
            queue_create: Some(methods::queue_create::<B>),
            queue_destroy: Some(methods::queue_destroy::<B>),
            queue_synchronize: Some(methods::queue_synchronize::<B>),
            queue_query: Some(methods::queue_query::<B>),
            queue_get_ticket: Some(methods::queue_get_ticket::<B>),
            queue_wait_ticket: Some(methods::queue_wait_ticket::<B>),
            queue_host_call: Some(methods::queue_host_call::<B>),
            get_info: Some(methods::get_info::<B>),
            flush: Some(methods::flush::<B>),
            ..Default::default()
        };
        Registration { backend, ops }
    }

    /// Adds pinned memory.
    pub fn with_pinned_memory(mut self) -> Registration<B>
    where
        B: PinnedMemory,
    {
        self.ops.pinned_alloc = Some(methods::pinned_alloc::<B>);
        self.ops.pinned_free = Some(methods::pinned_free::<B>);
        self
    }

    /// Adds events.
    pub fn with_events(mut self) -> Registration<B>
    where
        B: Events,
    {
        self.ops.event_create = Some(events::event_create::<B>);
        self.ops.event_destroy = Some(events::event_destroy::<B>);
        self.ops.event_record = Some(events::event_record::<B>);
        self.ops.event_query = Some(events::event_query::<B>);
        self.ops.event_wait = Some(events::event_wait::<B>);
        self.ops.queue_after_event = Some(events::queue_after_event::<B>);
        self
    }

    /// Registers the backend for `device`, for the rest of the process. Where that is refused, the backend is dropped: the place is
    /// taken, or `caps` of its facts ask for a group of methods that wasn't added.
    ///
    /// # Safety
    ///
    /// Safe code uses the device from here on, so the backend keeps these promises:
    ///
    /// - a block from `alloc` or `pinned_alloc` is as long as asked for and overlaps no other memory until it is freed; host code may
    ///   use the bytes of pinned memory, and of all blocks where the facts say `host_addressable`;
    /// - operations of one queue take effect in the order of submission, and touch only the ranges that they were given;
    /// - an operation counts as complete, by whichever method that is asked, only when its effects are visible to the thread that
    ///   asks and it will touch no memory any more; one that failed or was cancelled touches none either;
    /// - host calls are run in their place in that order; after `queue_after_event` the queue's later work comes after the record;
    /// - a queue's `QueueDone` is let go after its last work.
    pub unsafe fn register(self, device: Device, name: &str) -> Result<()> {
        context::enter("vt_backend_register")?;
        let name = CString::new(name).map_err(|_| Error::invalid("vt_backend_register", "the name holds a zero byte"))?;
        let registered = Box::into_raw(Box::new(Registered { backend: self.backend, ops: self.ops }));
        // SAFETY: the name is copied; table and backend live for ever, unless they are refused.
        let outcome = check(unsafe {
            sys::vt_backend_register(device.as_raw(), name.as_ptr(), &raw const (*registered).ops, registered.cast())
        });
        if outcome.is_err() {
            // SAFETY: a refused table isn't kept.
            drop(unsafe { Box::from_raw(registered) });
        }
        outcome
    }
}
