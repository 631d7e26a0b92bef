//! A shared library with a copy of the runtime. It exports two functions for its host.

use std::ffi::{c_char, c_int};

mod early;

unsafe extern "C" {
    fn survey_register(name: *const c_char) -> c_int;
    fn survey_text(buffer: *mut c_char, capacity: usize) -> c_int;
}

/// # Safety
///
/// `name` is a C string that lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_register(name: *const c_char) -> c_int {
    // SAFETY: as promised by the caller.
    unsafe { survey_register(name) }
}

/// # Safety
///
/// `buffer` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_text(buffer: *mut c_char, capacity: usize) -> c_int {
    // SAFETY: as promised by the caller.
    unsafe { survey_text(buffer, capacity) }
}
