//! The one channel through which the library speaks.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;

use crate::context;
use crate::error::{Result, check, text};
use crate::queue_core::lock;
use crate::sys;

/// How important a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Something failed that no return value can tell.
    Error,
    /// Something works worse than it could.
    Warn,
    /// Something that is worth knowing once.
    Info,
    /// Everything.
    Debug,
}

impl Level {
    fn as_raw(self) -> sys::vt_log_level {
        match self {
            Level::Error => sys::VT_LOG_ERROR,
            Level::Warn => sys::VT_LOG_WARN,
            Level::Info => sys::VT_LOG_INFO,
            Level::Debug => sys::VT_LOG_DEBUG,
        }
    }

    fn from_raw(raw: sys::vt_log_level) -> Level {
        match raw {
            sys::VT_LOG_ERROR => Level::Error,
            sys::VT_LOG_WARN => Level::Warn,
            sys::VT_LOG_INFO => Level::Info,
            _ => Level::Debug,
        }
    }
}

type Hook = Box<dyn Fn(Level, &str) + Send + Sync>;

/// Hooks are kept for good: a call of a replaced one may still be running on some thread.
static HOOKS: Mutex<Vec<&'static Hook>> = Mutex::new(Vec::new());

/// Sends messages of `level` and above to `hook`, in place of the hook set before. It may not call the runtime; a panic in it is
/// caught. Hooks are kept for the rest of the process.
///
/// ```
/// use vllm_cpp_sys::log;
///
/// log::set(log::Level::Warn, |level, message| eprintln!("{level:?}: {message}"))?;
/// log::silence()?;
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
pub fn set(level: Level, hook: impl Fn(Level, &str) + Send + Sync + 'static) -> Result<()> {
    let hook: Hook = Box::new(hook);
    let hook: &'static Hook = Box::leak(Box::new(hook));
    lock(&HOOKS).push(hook);
    let user: *const Hook = hook;
    // SAFETY: the hook lives for ever.
    check(unsafe { sys::vt_log_set(Some(call), user.cast_mut().cast(), level.as_raw()) })
}

/// Silences the library.
pub fn silence() -> Result<()> {
    // SAFETY: no hook, nothing to keep alive.
    check(unsafe { sys::vt_log_set(None, std::ptr::null_mut(), sys::VT_LOG_OFF) })
}

unsafe extern "C" fn call(user: *mut c_void, level: sys::vt_log_level, message: *const c_char) {
    // SAFETY: a hook that lives for ever.
    let hook = unsafe { &*user.cast::<Hook>() };
    // As for a value that is dropped: whatever happens in there stays there, and the thread's record isn't touched.
    context::contain(|| hook(Level::from_raw(level), &text(message)));
}
