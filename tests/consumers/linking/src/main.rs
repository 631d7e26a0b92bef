//! Prints what the program sees of the runtime.

use std::ffi::{CStr, c_char, c_int};

mod early;

unsafe extern "C" {
    fn survey_text(buffer: *mut c_char, capacity: usize) -> c_int;
}

fn main() {
    let mut buffer = vec![0; 16384];
    // SAFETY: the buffer has as much room as is said.
    assert_eq!(unsafe { survey_text(buffer.as_mut_ptr(), buffer.len()) }, 0);
    // SAFETY: survey_text() ends its text with a NUL.
    print!("{}", unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_str().expect("names are ASCII"));
}
