//! A timeline of all queues in a file, for [Perfetto](https://ui.perfetto.dev) or chrome://tracing.
//!
//! Each queue has a track with its name, a launch holds its nodes, and a collective says its rank, type, count and number. The
//! environment variable `VT_TRACE=FILE` does the same for a whole process.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::context;
use crate::error::{Error, Result, check};
use crate::sys;

/// Begins a trace file. `%p` in the path stands for the process id. An existing file is overwritten. One file at a time: a second
/// one is refused.
///
/// ```
/// use vllm_cpp_sys::{Device, DeviceBuf, Queue, trace};
///
/// let path = std::env::temp_dir().join(format!("trace-{}.json", std::process::id()));
/// trace::begin(&path)?;
/// let queue = Queue::new_async(Device::cpu(0))?;
/// let mut x = DeviceBuf::<u8>::zeroed(queue.device(), 100)?;
/// queue.fill(&mut x, 7)?;
/// queue.synchronize()?;
/// trace::end()?;
///
/// let text = std::fs::read_to_string(&path)?;
/// assert!(text.contains(r#""name":"memset""#) && text.contains(r#""bytes":100"#));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn begin(path: impl AsRef<Path>) -> Result<()> {
    context::enter("vt_trace_file_begin")?;
    let path = CString::new(path.as_ref().as_os_str().as_bytes());
    let path = path.map_err(|_| Error::invalid("vt_trace_file_begin", "the path holds a zero byte"))?;
    // SAFETY: the path outlives the call, which copies it.
    check(unsafe { sys::vt_trace_file_begin(path.as_ptr()) })
}

/// Completes the trace file. An operation that is running is left out. The exit of the process completes it as well, but can only log
/// a failed write, which this answers.
pub fn end() -> Result<()> {
    context::enter("vt_trace_file_end")?;
    // SAFETY: no arguments.
    check(unsafe { sys::vt_trace_file_end() })
}
