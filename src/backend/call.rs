//! What the runtime hands to a backend to be called once.

use std::ffi::c_void;
use std::fmt;

use crate::error::{Error, Result, Status};
use crate::sys;

/// Host code that a queue runs in stream order: a host function, or the part of a collective.
///
/// It is run once, or cancelled once where the work may not run. One that is dropped is cancelled.
pub struct HostCall {
    raw: sys::vt_host_call,
    settled: bool,
}

impl HostCall {
    /// # Safety
    ///
    /// `raw` is a call that the runtime has handed over, and nobody else runs, cancels or drops it.
    pub(super) unsafe fn new(raw: sys::vt_host_call) -> HostCall {
        HostCall { raw, settled: false }
    }

    /// Runs it, and answers its failure.
    pub fn run(mut self) -> Result<()> {
        self.settled = true;
        let Some(run) = self.raw.run else { return Err(Error::new(Status::Internal, "a host call without a function")) };
        // SAFETY: the call was handed over by the runtime, and is run once.
        let status = unsafe { run(self.payload()) };
        if status < 0 { Err(Error::from_raw(status)) } else { Ok(()) }
    }

    /// Says that it won't be run, and why.
    pub fn cancel(mut self, error: &Error) {
        self.cancel_once(error);
    }

    fn cancel_once(&mut self, error: &Error) {
        self.settled = true;
        if let Some(cancel) = self.raw.cancel {
            error.publish_from(c"queue_host_call");
            // SAFETY: as in `run`, in place of it.
            unsafe { cancel(self.payload()) };
        }
    }

    fn payload(&mut self) -> *mut c_void {
        self.raw.payload.as_mut_ptr().cast()
    }
}

impl Drop for HostCall {
    fn drop(&mut self) {
        if !self.settled {
            self.cancel_once(&Error::new(Status::Internal, "the backend dropped a host call without running it"));
        }
        if let Some(drop_payload) = self.raw.drop {
            // SAFETY: the last use of the payload, once.
            unsafe { drop_payload(self.payload()) };
        }
    }
}

impl fmt::Debug for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostCall")
    }
}

/// Says that a queue has run its last work, when it is dropped. That may call the runtime, so it is to be dropped outside of host
/// calls and without locks that the backend's methods take.
pub struct QueueDone {
    done: Option<unsafe extern "C" fn(*mut c_void)>,
    user: *mut c_void,
}

// SAFETY: the runtime takes the word from any thread.
unsafe impl Send for QueueDone {}

impl QueueDone {
    /// # Safety
    ///
    /// The runtime expects `done(user)` once.
    pub(super) unsafe fn new(done: Option<unsafe extern "C" fn(*mut c_void)>, user: *mut c_void) -> QueueDone {
        QueueDone { done, user }
    }
}

impl Drop for QueueDone {
    fn drop(&mut self) {
        if let Some(done) = self.done {
            // SAFETY: as the runtime expects: once.
            unsafe { done(self.user) };
        }
    }
}

impl fmt::Debug for QueueDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueueDone")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// What the runtime sees of one call, in order.
    type Seen = Mutex<Vec<String>>;

    unsafe fn seen<'a>(payload: *mut c_void) -> &'a Seen {
        // SAFETY: the payload of `call`.
        unsafe { &**payload.cast::<*const Seen>() }
    }

    unsafe extern "C" fn run(payload: *mut c_void) -> sys::vt_status {
        // SAFETY: the payload of `call`.
        unsafe { seen(payload) }.lock().unwrap().push("run".into());
        Error::new(Status::Aborted, "no more").publish()
    }

    unsafe extern "C" fn cancel(payload: *mut c_void) {
        // SAFETY: the payload of `call`; the record is of this thread.
        unsafe {
            seen(payload).lock().unwrap().push(format!("cancel: {}", Error::from_raw((*sys::vt_last_error()).status).message))
        };
    }

    unsafe extern "C" fn drop_it(payload: *mut c_void) {
        // SAFETY: the payload of `call`.
        unsafe { seen(payload) }.lock().unwrap().push("drop".into());
    }

    fn call(seen: &Seen) -> HostCall {
        let mut raw = sys::vt_host_call { run: Some(run), cancel: Some(cancel), drop: Some(drop_it), ..Default::default() };
        raw.payload[0] = std::ptr::from_ref(seen).expose_provenance() as u64;
        // SAFETY: made here, for nobody else.
        unsafe { HostCall::new(raw) }
    }

    #[test]
    fn a_call_is_run_or_cancelled_once_and_dropped_once() {
        let seen = Seen::default();
        assert_eq!(call(&seen).run().unwrap_err().message, "no more");
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), ["run", "drop"]);
        call(&seen).cancel(&Error::new(Status::Aborted, "the queue failed"));
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), ["cancel: the queue failed", "drop"]);
        drop(call(&seen));
        let words = ["cancel: the backend dropped a host call without running it", "drop"];
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), words);
    }
}
