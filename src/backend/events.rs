//! The functions of the C table for events.

use std::any::TypeId;
use std::ffi::c_void;

use super::Events;
use super::methods::{answer, asked, backend, guard, limit, queue_of, submitted, waited};
use crate::error::{Error, Result, Status};
use crate::event::EventFlags;
use crate::sys;

/// An event, and whose it is: the runtime takes tables with equal functions for one table, and a linker may fold functions of
/// different backends into one.
#[repr(C)]
struct Tagged<E> {
    owner: TypeId,
    event: E,
}

/// # Safety
///
/// `event` was made by `event_create` of a table for some backend of this crate and not destroyed yet.
unsafe fn event_of<'a, B: Events>(event: *mut c_void) -> Result<&'a B::Event> {
    // SAFETY: a box that begins with its owner, whatever the owner is.
    if unsafe { *event.cast::<TypeId>() } != TypeId::of::<B>() {
        return Err(Error::new(Status::InvalidArgument, "the event is of another type of backend"));
    }
    // SAFETY: so it is one of this type.
    Ok(unsafe { &(*event.cast::<Tagged<B::Event>>()).event })
}

pub(super) unsafe extern "C" fn event_create<B: Events>(this: *mut c_void, flags: u32, out: *mut *mut c_void) -> sys::vt_status {
    // SAFETY: the table's `self`.
    let backend = unsafe { backend::<B>(this) };
    let flags = EventFlags { blocking: flags & sys::VT_EVENT_BLOCKING != 0, timing: flags & sys::VT_EVENT_TIMING != 0 };
    let outcome = guard(c"event_create", || backend.event_create(flags));
    let outcome = outcome.map(|event| {
        let event = Box::new(Tagged { owner: TypeId::of::<B>(), event });
        // SAFETY: an out-parameter of the runtime.
        unsafe { *out = Box::into_raw(event).cast() };
    });
    answer(c"event_create", outcome)
}

pub(super) unsafe extern "C" fn event_destroy<B: Events>(this: *mut c_void, event: *mut c_void) {
    // SAFETY: the table's `self`, and the box of `event_create` of the same device, which nobody uses any more.
    let (backend, event) = unsafe { (backend::<B>(this), Box::from_raw(event.cast::<Tagged<B::Event>>())) };
    // Of a method that panics nobody hears.
    let _ = guard(c"event_destroy", || {
        backend.event_destroy(event.event);
        Ok(())
    });
}

pub(super) unsafe extern "C" fn event_record<B: Events>(
    this: *mut c_void,
    event: *mut c_void,
    queue: *mut c_void,
) -> sys::vt_status {
    // SAFETY: the table's `self`, event and queue.
    let outcome =
        guard(c"event_record", || unsafe { backend::<B>(this).event_record(event_of::<B>(event)?, queue_of::<B>(queue)) });
    submitted(c"event_record", outcome)
}

pub(super) unsafe extern "C" fn event_query<B: Events>(this: *mut c_void, event: *mut c_void) -> sys::vt_status {
    // SAFETY: the table's `self` and event.
    asked(c"event_query", guard(c"event_query", || unsafe { backend::<B>(this).event_query(event_of::<B>(event)?) }))
}

pub(super) unsafe extern "C" fn event_wait<B: Events>(this: *mut c_void, event: *mut c_void, timeout_ns: u64) -> sys::vt_status {
    // SAFETY: the table's `self` and event.
    let outcome = guard(c"event_wait", || unsafe { backend::<B>(this).event_wait(event_of::<B>(event)?, limit(timeout_ns)) });
    waited(c"event_wait", outcome, timeout_ns)
}

pub(super) unsafe extern "C" fn queue_after_event<B: Events>(
    this: *mut c_void,
    queue: *mut c_void,
    event: *mut c_void,
) -> sys::vt_status {
    // SAFETY: the table's `self` and queue; the event's owner is checked.
    let outcome = guard(c"queue_after_event", || unsafe {
        backend::<B>(this).queue_after_event(queue_of::<B>(queue), event_of::<B>(event)?)
    });
    submitted(c"queue_after_event", outcome)
}
