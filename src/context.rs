//! What this thread is doing right now, and running callbacks that C made.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result, Status};
use crate::sys;

thread_local! {
    static CALLBACK_DEPTH: Cell<u32> = const { Cell::new(0) };
    static CAPTURING: Cell<bool> = const { Cell::new(false) };
    static BATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Answers whether this thread runs a callback, from which the runtime may not be called.
#[inline]
pub(crate) fn in_callback() -> bool {
    CALLBACK_DEPTH.get() > 0
}

/// Answers whether this thread is inside [`crate::Queue::capture`].
#[inline]
pub(crate) fn is_capturing() -> bool {
    CAPTURING.get()
}

pub(crate) fn set_capturing(on: bool) {
    CAPTURING.set(on);
}

/// Answers whether this thread is inside [`crate::batch`].
#[inline]
pub(crate) fn is_batching() -> bool {
    BATCHING.get()
}

pub(crate) fn set_batching(on: bool) {
    BATCHING.set(on);
}

/// The door of every call that touches the runtime: C refuses it in a callback too, but only after this crate has waited for locks.
#[inline]
pub(crate) fn enter(function: &str) -> Result<()> {
    if in_callback() { Err(refuse_in_callback(function)) } else { Ok(()) }
}

#[cold]
fn refuse_in_callback(function: &str) -> Error {
    Error::refused(function, "called from a callback, which may not call the runtime")
}

/// Runs a callback of the user: a panic becomes an error.
pub(crate) fn callback(what: &str, f: impl FnOnce() -> Result<()>) -> sys::vt_status {
    CALLBACK_DEPTH.set(CALLBACK_DEPTH.get() + 1);
    let status = match catch(what, f) {
        Ok(()) => sys::VT_OK,
        // NOT_READY isn't a failure in C: it would pass for success.
        Err(error) if error.status == Status::NotReady => Error::new(Status::Internal, error.message).publish(),
        Err(error) => error.publish(),
    };
    CALLBACK_DEPTH.set(CALLBACK_DEPTH.get() - 1);
    status
}

/// Runs code of the user: a panic becomes an error.
pub(crate) fn catch<T>(what: impl fmt::Display, f: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let text = format!("a {what} panicked: {}", panic_text(&*payload));
        drop_payload(payload);
        Err(Error::new(Status::Internal, text))
    })
}

/// Drops a value of the user where a panic must not pass.
pub(crate) fn discard<T>(value: T) {
    contain(move || drop(value));
}

/// Runs code of the user that can't report anything: a panic ends here.
pub(crate) fn contain(f: impl FnOnce()) {
    CALLBACK_DEPTH.set(CALLBACK_DEPTH.get() + 1);
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        drop_payload(payload);
    }
    CALLBACK_DEPTH.set(CALLBACK_DEPTH.get() - 1);
}

/// Dropping what a panic carries may panic too, without end: what the second one carries is leaked.
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
        std::mem::forget(second);
    }
}

/// The text of a panic.
fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}
