//! Registers a provider before `main`, or while the library is loaded.

use vllm_cpp_sys as _; // holds the runtime that the C part calls

#[link(name = "survey", kind = "static")]
unsafe extern "C" {
    fn survey_early();
}

extern "C" fn register() {
    // SAFETY: survey_early() takes nothing and may be called on any thread.
    unsafe { survey_early() };
}

#[used]
#[unsafe(link_section = ".init_array")]
static EARLY: extern "C" fn() = register;
