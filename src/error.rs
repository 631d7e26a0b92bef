//! The one error type, and turning a status of the C runtime into it.

use std::ffi::{CStr, CString};
use std::fmt;

use crate::sys;

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of a failure. Each says what the caller should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// The work has not completed, or a ring that may not be waited for is full. Ask again later.
    NotReady,
    /// The caller broke a rule that the message names. Nothing was done. Fix the call.
    InvalidArgument,
    /// Memory or another resource is exhausted. Free something, or ask for less.
    OutOfMemory,
    /// This device, build or provider can't do it. Choose another way.
    Unsupported,
    /// No such device, provider or object.
    NotFound,
    /// The place is taken by something else.
    AlreadyExists,
    /// The call is right, the moment is not: inside a capture, from a callback, while a view is open. Call it elsewhere.
    FailedPrecondition,
    /// A deadline passed.
    Timeout,
    /// Somebody aborted.
    Aborted,
    /// A rank has gone.
    PeerLost,
    /// The ranks did not make the same call. The communicator stays usable.
    Mismatch,
    /// The device is lost.
    DeviceLost,
    /// A defect of this library or of a plug-in; also a panic in a callback.
    Internal,
}

const STATUSES: [(Status, sys::vt_status, &str); 13] = [
    (Status::NotReady, sys::VT_NOT_READY, "NOT_READY"),
    (Status::InvalidArgument, sys::VT_ERR_INVALID_ARGUMENT, "INVALID_ARGUMENT"),
    (Status::OutOfMemory, sys::VT_ERR_OUT_OF_MEMORY, "OUT_OF_MEMORY"),
    (Status::Unsupported, sys::VT_ERR_UNSUPPORTED, "UNSUPPORTED"),
    (Status::NotFound, sys::VT_ERR_NOT_FOUND, "NOT_FOUND"),
    (Status::AlreadyExists, sys::VT_ERR_ALREADY_EXISTS, "ALREADY_EXISTS"),
    (Status::FailedPrecondition, sys::VT_ERR_FAILED_PRECONDITION, "FAILED_PRECONDITION"),
    (Status::Timeout, sys::VT_ERR_TIMEOUT, "TIMEOUT"),
    (Status::Aborted, sys::VT_ERR_ABORTED, "ABORTED"),
    (Status::PeerLost, sys::VT_ERR_PEER_LOST, "PEER_LOST"),
    (Status::Mismatch, sys::VT_ERR_MISMATCH, "MISMATCH"),
    (Status::DeviceLost, sys::VT_ERR_DEVICE_LOST, "DEVICE_LOST"),
    (Status::Internal, sys::VT_ERR_INTERNAL, "INTERNAL"),
];

impl Status {
    pub(crate) fn from_raw(raw: sys::vt_status) -> Status {
        STATUSES.iter().find(|row| row.1 == raw).map_or(Status::Internal, |row| row.0)
    }

    fn row(self) -> &'static (Status, sys::vt_status, &'static str) {
        // Every variant has a row; the last one stands in for none.
        STATUSES.iter().find(|row| row.0 == self).unwrap_or(&STATUSES[12])
    }

    /// The number in the C interface.
    pub fn as_raw(self) -> sys::vt_status {
        self.row().1
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().2)
    }
}

/// Where a native error code comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Domain {
    /// This library.
    Vt,
    /// `errno`.
    Errno,
    /// The CUDA runtime or driver.
    Cuda,
    /// NCCL.
    Nccl,
    /// MPI.
    Mpi,
}

impl Domain {
    fn from_raw(raw: sys::vt_error_domain) -> Domain {
        match raw {
            sys::VT_DOMAIN_ERRNO => Domain::Errno,
            sys::VT_DOMAIN_CUDA => Domain::Cuda,
            sys::VT_DOMAIN_NCCL => Domain::Nccl,
            sys::VT_DOMAIN_MPI => Domain::Mpi,
            _ => Domain::Vt,
        }
    }

    fn as_raw(self) -> sys::vt_error_domain {
        match self {
            Domain::Vt => sys::VT_DOMAIN_VT,
            Domain::Errno => sys::VT_DOMAIN_ERRNO,
            Domain::Cuda => sys::VT_DOMAIN_CUDA,
            Domain::Nccl => sys::VT_DOMAIN_NCCL,
            Domain::Mpi => sys::VT_DOMAIN_MPI,
        }
    }
}

/// A failed call: what failed, and why.
///
/// ```
/// use vllm_cpp_sys::{Device, DeviceType, Queue, Status};
///
/// let error = Queue::new(Device::new(DeviceType::Xpu, 3)).unwrap_err();
/// assert_eq!(error.status, Status::NotFound);
/// assert_eq!(error.function, "vt_queue_create");
/// println!("{error}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The kind of the failure.
    pub status: Status,
    /// Where `native` comes from.
    pub domain: Domain,
    /// The code of `domain`, 0 where there is none.
    pub native: i64,
    /// What went wrong, with the values.
    pub message: String,
    /// The function that failed.
    pub function: String,
}

impl Error {
    /// Makes an error, for callbacks that want to fail.
    pub fn new(status: Status, message: impl Into<String>) -> Error {
        Error { status, domain: Domain::Vt, native: 0, message: message.into(), function: String::new() }
    }

    pub(crate) fn refused(function: &str, message: impl Into<String>) -> Error {
        Error { function: function.into(), ..Error::new(Status::FailedPrecondition, message) }
    }

    pub(crate) fn invalid(function: &str, message: impl Into<String>) -> Error {
        Error { function: function.into(), ..Error::new(Status::InvalidArgument, message) }
    }

    /// Copies the record of the failed call that answered `raw`.
    #[cold]
    pub(crate) fn from_raw(raw: sys::vt_status) -> Error {
        let status = Status::from_raw(raw);
        if raw >= 0 {
            return Error::new(status, "the work has not completed, or the queue's ring is full");
        }
        // SAFETY: the record belongs to this thread and stays as it is until the next failure here.
        let record = unsafe { &*sys::vt_last_error() };
        if record.status != raw {
            return Error::new(status, "the call left no record");
        }
        Error {
            status,
            domain: Domain::from_raw(record.domain),
            native: record.native,
            message: text(record.message),
            function: text(record.function),
        }
    }

    /// Makes this error the record of the thread: how a callback hands it to the C runtime.
    pub(crate) fn publish(&self) -> sys::vt_status {
        self.publish_from(c"host function")
    }

    /// The same, for a function of that name.
    pub(crate) fn publish_from(&self, function: &'static CStr) -> sys::vt_status {
        // Messages end at a zero byte in C, so none may lie inside.
        let message = CString::new(self.message.replace('\0', " ")).unwrap_or_default();
        let raw = self.status.as_raw();
        // SAFETY: the format takes one string; the function name is a constant, the message is copied.
        unsafe { sys::vt_error_set(raw, self.domain.as_raw(), self.native, function.as_ptr(), c"%s".as_ptr(), message.as_ptr()) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if !self.function.is_empty() {
            write!(f, " in {}", self.function)?;
        }
        write!(f, ": {}", self.message)?;
        if self.domain != Domain::Vt {
            write!(f, " ({:?} {})", self.domain, self.native)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Turns a status into a result, copying the thread's record at once.
#[inline]
pub(crate) fn check(status: sys::vt_status) -> Result<()> {
    if status == sys::VT_OK { Ok(()) } else { Err(Error::from_raw(status)) }
}

/// Reads a query: `true` for done, `false` for "not yet".
pub(crate) fn check_ready(status: sys::vt_status) -> Result<bool> {
    if status == sys::VT_NOT_READY { Ok(false) } else { check(status).map(|()| true) }
}

/// Copies a C string; NULL is empty.
pub(crate) fn text(pointer: *const std::ffi::c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the C runtime hands out terminated strings that live at least until its next call.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
