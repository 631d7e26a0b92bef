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
