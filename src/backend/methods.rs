//! The functions of the C table: from C's arguments to a method, and from its outcome to a status. No panic passes.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
use std::time::Duration;

use super::{Backend, HostCall, PinnedMemory, QueueDone, QueueRequest};
use crate::context;
use crate::device::DeviceInfo;
use crate::error::{Error, Result, Status, text};
use crate::sys;

/// What `self` of the table points to, for good once it is registered.
pub(super) struct Registered<B> {
    pub(super) backend: B,
    pub(super) ops: sys::vt_backend_ops,
}

/// # Safety
///
/// `this` is the `self` of a table for `B`.
pub(super) unsafe fn backend<'a, B>(this: *mut c_void) -> &'a B {
    // SAFETY: registered by `Registration`, and alive as long as the runtime calls.
    unsafe { &(*this.cast::<Registered<B>>()).backend }
}

/// # Safety
///
/// `queue` was made by `queue_create` of a table for `B` and not destroyed yet.
pub(super) unsafe fn queue_of<'a, B: Backend>(queue: *mut c_void) -> &'a B::Queue {
    // SAFETY: a box that the runtime keeps.
    unsafe { &*queue.cast::<B::Queue>() }
}

/// Runs a method.
pub(super) fn guard<T>(method: &'static CStr, f: impl FnOnce() -> Result<T>) -> Result<T> {
    context::catch(format_args!("backend's method {}", method.to_string_lossy()), f)
}

/// The status of a method that does its work at once.
pub(super) fn answer(method: &'static CStr, outcome: Result<()>) -> sys::vt_status {
    match outcome {
        Ok(()) => sys::VT_OK,
        // NOT_READY isn't a failure in C: it would pass for success.
        Err(error) if error.status == Status::NotReady => Error { status: Status::Internal, ..error }.publish_from(method),
        Err(error) => error.publish_from(method),
    }
}

/// The status of a method that submits: the queue may be full.
pub(super) fn submitted(method: &'static CStr, outcome: Result<()>) -> sys::vt_status {
    match outcome {
        Err(error) if error.status == Status::NotReady => sys::VT_NOT_READY,
        outcome => answer(method, outcome),
    }
}

/// The status of a method that asks.
pub(super) fn asked(method: &'static CStr, outcome: Result<bool>) -> sys::vt_status {
    match outcome {
        Ok(false) => sys::VT_NOT_READY,
        outcome => answer(method, outcome.map(|_| ())),
    }
}

/// The status of a method that waits for `timeout_ns`.
pub(super) fn waited(method: &'static CStr, outcome: Result<bool>, timeout_ns: u64) -> sys::vt_status {
    let error = match (outcome, timeout_ns) {
        (Ok(false), 0) => return sys::VT_NOT_READY,
        (Ok(false), sys::VT_WAIT_FOREVER) => Error::new(Status::Internal, "the backend gave up a wait without a limit"),
        (Ok(false), _) => Error::new(Status::Timeout, format!("the work isn't done after {timeout_ns} ns")),
        (outcome, _) => return answer(method, outcome.map(|_| ())),
    };
    error.publish_from(method)
}

pub(super) fn limit(timeout_ns: u64) -> Option<Duration> {
    (timeout_ns != sys::VT_WAIT_FOREVER).then(|| Duration::from_nanos(timeout_ns))
}

pub(super) unsafe extern "C" fn get_info<B: Backend>(this: *mut c_void, out: *mut sys::vt_device_info) -> sys::vt_status {
    // SAFETY: the table's `self`.
    let backend = unsafe { backend::<B>(this) };
    let outcome = guard(c"get_info", || backend.get_info());
    // SAFETY: the runtime's struct is this version's.
    answer(c"get_info", outcome.map(|info| write_info(&info, unsafe { &mut *out })))
}

fn write_info(info: &DeviceInfo, out: &mut sys::vt_device_info) {
    out.unified_memory = info.unified_memory.into();
    out.host_addressable = info.host_addressable.into();
    (out.compute_major, out.compute_minor) = info.compute;
    out.memory_free = info.memory_free;
    out.memory_total = info.memory_total;
    out.caps = info.caps;
    out.name = [0; 64];
    let room = info.name.floor_char_boundary(out.name.len() - 1);
    for (to, from) in out.name.iter_mut().zip(&info.name.as_bytes()[..room]) {
        *to = *from as c_char;
    }
}

/// Hands a block to the runtime; one that is not aligned is given back.
///
/// # Safety
///
/// `out` is valid; `block` may be given to `free`.
unsafe fn hand_out(
    method: &'static CStr,
    block: Result<NonNull<u8>>,
    out: *mut *mut c_void,
    free: impl FnOnce(NonNull<u8>),
) -> sys::vt_status {
    let outcome = block.and_then(|block| {
        if !block.as_ptr().addr().is_multiple_of(64) {
            free(block);
            return Err(Error::new(Status::Internal, "the backend's block isn't aligned to 64 bytes"));
        }
        // SAFETY: an out-parameter of the runtime.
        unsafe { *out = block.as_ptr().cast() };
        Ok(())
    });
    answer(method, outcome)
}

pub(super) unsafe extern "C" fn alloc<B: Backend>(this: *mut c_void, bytes: usize, out: *mut *mut c_void) -> sys::vt_status {
    // SAFETY: the table's `self`.
    let backend = unsafe { backend::<B>(this) };
    let block = guard(c"alloc", || backend.alloc(bytes));
    // SAFETY: the block is the backend's own, and nobody else knows it.
    unsafe { hand_out(c"alloc", block, out, |block| drop(guard(c"free", || backend.free(block)))) }
}

pub(super) unsafe extern "C" fn free<B: Backend>(this: *mut c_void, ptr: *mut c_void) -> sys::vt_status {
    // SAFETY: the table's `self`; the runtime frees what `alloc` gave, once.
    let outcome = guard(c"free", || unsafe { backend::<B>(this).free(NonNull::new_unchecked(ptr.cast())) });
    answer(c"free", outcome)
}

pub(super) unsafe extern "C" fn pinned_alloc<B: PinnedMemory>(
    this: *mut c_void,
    bytes: usize,
    out: *mut *mut c_void,
) -> sys::vt_status {
    // SAFETY: the table's `self`.
    let backend = unsafe { backend::<B>(this) };
    let block = guard(c"pinned_alloc", || backend.pinned_alloc(bytes));
    // SAFETY: as in `alloc`.
    unsafe { hand_out(c"pinned_alloc", block, out, |block| drop(guard(c"pinned_free", || backend.pinned_free(block)))) }
}

pub(super) unsafe extern "C" fn pinned_free<B: PinnedMemory>(this: *mut c_void, ptr: *mut c_void) -> sys::vt_status {
    // SAFETY: as in `free`.
    let outcome = guard(c"pinned_free", || unsafe { backend::<B>(this).pinned_free(NonNull::new_unchecked(ptr.cast())) });
    answer(c"pinned_free", outcome)
}

pub(super) unsafe extern "C" fn copy<B: Backend>(
    this: *mut c_void,
    queue: *mut c_void,
    dst: *mut c_void,
    src: *const c_void,
    bytes: usize,
) -> sys::vt_status {
    // SAFETY: the table's `self` and queue; the caller of vt_copy() vouches for the ranges.
    let outcome = guard(c"copy", || unsafe { backend::<B>(this).copy(queue_of::<B>(queue), dst.cast(), src.cast(), bytes) });
    submitted(c"copy", outcome)
}

pub(super) unsafe extern "C" fn memset<B: Backend>(
    this: *mut c_void,
    queue: *mut c_void,
    dst: *mut c_void,
    value: u8,
    bytes: usize,
) -> sys::vt_status {
    // SAFETY: as in `copy`.
    let outcome = guard(c"memset", || unsafe { backend::<B>(this).memset(queue_of::<B>(queue), dst.cast(), value, bytes) });
    submitted(c"memset", outcome)
}

pub(super) unsafe extern "C" fn queue_create<B: Backend>(
    this: *mut c_void,
    options: *const sys::vt_queue_options,
    id: u64,
    out: *mut *mut c_void,
) -> sys::vt_status {
    // SAFETY: the table's `self`, and options of this version.
    let (backend, options) = unsafe { (backend::<B>(this), &*options) };
    let name = (!options.name.is_null()).then(|| text(options.name));
    let (ring_capacity, cpu_mask) = (options.ring_capacity, options.cpu_mask);
    let request = QueueRequest { id, flags: options.flags, ring_capacity, name, cpu_mask, priority: options.priority };
    let outcome = guard(c"queue_create", || backend.queue_create(&request));
    // SAFETY: an out-parameter of the runtime.
    answer(c"queue_create", outcome.map(|queue| unsafe { *out = Box::into_raw(Box::new(queue)).cast() }))
}

pub(super) unsafe extern "C" fn queue_destroy<B: Backend>(
    this: *mut c_void,
    queue: *mut c_void,
    done: Option<unsafe extern "C" fn(*mut c_void)>,
    user: *mut c_void,
) {
    // SAFETY: the table's `self`; the box of `queue_create`, which nobody uses any more; the runtime expects one word.
    let (backend, queue, done) =
        unsafe { (backend::<B>(this), Box::from_raw(queue.cast::<B::Queue>()), QueueDone::new(done, user)) };
    // Of a method that panics nobody hears; what it held was dropped, so the runtime got its word.
    let _ = guard(c"queue_destroy", || {
        backend.queue_destroy(*queue, done);
        Ok(())
    });
}

pub(super) unsafe extern "C" fn queue_synchronize<B: Backend>(this: *mut c_void, queue: *mut c_void) -> sys::vt_status {
    // SAFETY: the table's `self` and queue.
    let outcome = guard(c"queue_synchronize", || unsafe { backend::<B>(this).queue_synchronize(queue_of::<B>(queue)) });
    answer(c"queue_synchronize", outcome)
}

pub(super) unsafe extern "C" fn queue_query<B: Backend>(this: *mut c_void, queue: *mut c_void) -> sys::vt_status {
    // SAFETY: the table's `self` and queue.
    asked(c"queue_query", guard(c"queue_query", || unsafe { backend::<B>(this).queue_query(queue_of::<B>(queue)) }))
}

pub(super) unsafe extern "C" fn queue_get_ticket<B: Backend>(
    this: *mut c_void,
    queue: *mut c_void,
    out: *mut u64,
) -> sys::vt_status {
    // SAFETY: the table's `self` and queue.
    let outcome = guard(c"queue_get_ticket", || unsafe { backend::<B>(this).queue_get_ticket(queue_of::<B>(queue)) });
    // SAFETY: an out-parameter of the runtime.
    answer(c"queue_get_ticket", outcome.map(|ticket| unsafe { *out = ticket }))
}

pub(super) unsafe extern "C" fn queue_wait_ticket<B: Backend>(
    this: *mut c_void,
    queue: *mut c_void,
    ticket: u64,
    timeout_ns: u64,
) -> sys::vt_status {
    // SAFETY: the table's `self` and queue.
    let (backend, queue) = unsafe { (backend::<B>(this), queue_of::<B>(queue)) };
    let outcome = guard(c"queue_wait_ticket", || backend.queue_wait_ticket(queue, ticket, limit(timeout_ns)));
    waited(c"queue_wait_ticket", outcome, timeout_ns)
}

pub(super) unsafe extern "C" fn queue_host_call<B: Backend>(
    this: *mut c_void,
    queue: *mut c_void,
    call: *const sys::vt_host_call,
) -> sys::vt_status {
    // SAFETY: the table's `self` and queue; the call is handed over, whatever is answered.
    let (backend, queue, call) = unsafe { (backend::<B>(this), queue_of::<B>(queue), HostCall::new(*call)) };
    submitted(c"queue_host_call", guard(c"queue_host_call", || backend.queue_host_call(queue, call)))
}

pub(super) unsafe extern "C" fn flush<B: Backend>(this: *mut c_void) -> sys::vt_status {
    // SAFETY: the table's `self`.
    answer(c"flush", guard(c"flush", || unsafe { backend::<B>(this) }.flush()))
}
