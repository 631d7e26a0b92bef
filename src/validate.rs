//! A checker for mistakes of order: ranges that two queues use without an order, memory used after it was freed or taken back.
//!
//! The safe types of this crate rule most of them out. It is for what goes past them: raw pointers, an engine's own kernels, C code in
//! the same process. `VT_VALIDATE=1` turns it on for a whole process; `docs/validation.md` says how to read a report. A report never
//! changes what a call does or answers.
//!
//! Views and host tasks tell the layer what they use; a kernel's ranges are told by [`touch`].
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use vllm_cpp_sys::{Device, DeviceBuf, Queue, validate};
//!
//! let reports = Arc::new(Mutex::new(Vec::new()));
//! let sink = Arc::clone(&reports);
//! validate::set(move |report| sink.lock().unwrap().push(report.clone()));
//! validate::enable()?;
//!
//! let (a, b) = (Queue::new_async(Device::cpu(0))?, Queue::new_async(Device::cpu(0))?);
//! let x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 16)?;
//! validate::touch(&a, &x, validate::Touch::Write)?; // a kernel of the program's own
//! validate::touch(&b, &x, validate::Touch::Read)?; // another one, which nothing orders behind it
//! let report = reports.lock().unwrap().pop().unwrap();
//! assert_eq!(report.kind, validate::Kind::Race);
//! assert_eq!(report.before.unwrap().queue_id, a.id());
//! # a.synchronize()?;
//! # validate::disable()?;
//! # Ok::<(), vllm_cpp_sys::Error>(())
//! ```

use std::ffi::c_void;
use std::fmt;
use std::sync::Mutex;

use crate::context;
use crate::dtype::Element;
use crate::error::{Result, check, text};
use crate::queue::Queue;
use crate::queue_core::lock;
use crate::slice::Slice;
use crate::sys;
use crate::track::Access;

/// What was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Two queues use a range, one of them writes it, and nothing orders them.
    Race,
    /// A range of a block that was freed.
    UseAfterFree,
    /// A range that an arena took back.
    UseAfterReset,
    /// A range that leaves its block.
    OutOfBounds,
    /// The host uses or frees memory on which work is pending.
    Pending,
    /// A block was freed that a live graph holds.
    FreedUnderGraph,
    /// A call broke a rule of captures, and was refused.
    Capture,
    /// Somebody waits for an event that was never recorded.
    UnrecordedEvent,
    /// A table is full: something may be missed.
    Limit,
}

const KINDS: [Kind; sys::VT_VALIDATE_KIND_COUNT as usize] = [
    Kind::Race,
    Kind::UseAfterFree,
    Kind::UseAfterReset,
    Kind::OutOfBounds,
    Kind::Pending,
    Kind::FreedUnderGraph,
    Kind::Capture,
    Kind::UnrecordedEvent,
    Kind::Limit,
];

impl Kind {
    fn as_raw(self) -> sys::vt_validate_kind {
        self as sys::vt_validate_kind
    }

    fn from_raw(raw: sys::vt_validate_kind) -> Kind {
        usize::try_from(raw).ok().and_then(|index| KINDS.get(index)).copied().unwrap_or(Kind::Limit)
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// A mistake.
    Error,
    /// Legal, and worth a look.
    Notice,
}

/// One call that a report is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Site {
    /// The function of the C library, `vt_copy` for one.
    pub function: String,
    /// Where it was called from, in words; empty where that isn't known.
    pub symbol: String,
    /// The queue; 0 for the host.
    pub queue_id: u64,
    /// The operation's ticket on its queue; 0 for none.
    pub sequence: u64,
}

/// What the layer has to say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Report {
    /// What was seen.
    pub kind: Kind,
    /// How bad it is.
    pub severity: Severity,
    /// The address of the range that the later call uses; 0 where it isn't about one.
    pub address: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// The call that made the report; `None` for a full table.
    pub now: Option<Site>,
    /// What it is in conflict with, where that is known.
    pub before: Option<Site>,
    /// All of it in words.
    pub message: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

/// How a range is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Touch {
    /// It is read.
    Read,
    /// It is written, and perhaps read.
    Write,
}

impl Touch {
    fn as_raw(self) -> u32 {
        match self {
            Touch::Read => sys::VT_TOUCH_READ,
            Touch::Write => sys::VT_TOUCH_WRITE,
        }
    }
}

/// Begins to follow what is done. Work that is in flight stays unknown.
pub fn enable() -> Result<()> {
    context::enter("vt_validate_enable")?;
    // SAFETY: no arguments.
    check(unsafe { sys::vt_validate_enable() })
}

/// Ends it, and forgets what is known.
pub fn disable() -> Result<()> {
    context::enter("vt_validate_disable")?;
    // SAFETY: no arguments.
    check(unsafe { sys::vt_validate_disable() })
}

/// Answers whether it is on.
#[inline]
pub fn is_enabled() -> bool {
    // SAFETY: no arguments.
    unsafe { sys::vt_validate_is_enabled() != 0 }
}

/// How many reports of a kind there were in this process.
pub fn count(kind: Kind) -> u64 {
    // SAFETY: no pointers.
    unsafe { sys::vt_validate_get_count(kind.as_raw()) }
}

type Hook = Box<dyn Fn(&Report) + Send + Sync>;

/// Hooks are kept for good: a call of a replaced one may still be running on some thread.
static HOOKS: Mutex<Vec<&'static Hook>> = Mutex::new(Vec::new());

/// Sends reports to `hook`, in place of the hook set before. It is called on the thread that made the call, and may not call the
/// runtime; a panic in it is caught. Hooks are kept for the rest of the process.
pub fn set(hook: impl Fn(&Report) + Send + Sync + 'static) {
    let hook: Hook = Box::new(hook);
    let hook: &'static Hook = Box::leak(Box::new(hook));
    lock(&HOOKS).push(hook);
    let user: *const Hook = hook;
    // SAFETY: the hook lives for ever.
    unsafe { sys::vt_validate_set(Some(call), user.cast_mut().cast()) };
}

/// Takes the hook away; the log gets the reports in any case.
pub fn unset() {
    // SAFETY: no hook, nothing to keep alive.
    unsafe { sys::vt_validate_set(None, std::ptr::null_mut()) };
}

/// Declares that work of the queue uses a range, for kernels that the runtime doesn't see. To be called right behind the call that
/// submits the work. Does nothing where validation is off.
pub fn touch<'a, T: Element>(queue: &Queue, range: impl Into<Slice<'a, T>>, how: Touch) -> Result<()> {
    context::enter("vt_validate_touch")?;
    let slice = range.into();
    let bytes = slice.len() * size_of::<T>();
    // SAFETY: the queue lives; the range is only looked at as numbers.
    check(unsafe { sys::vt_validate_touch(queue.core.raw(), slice.pointer().cast(), bytes, how.as_raw()) })
}

fn range_of(access: &Access<'_>) -> (*const c_void, usize) {
    (access.alloc.pointer.as_ptr().wrapping_byte_add(access.start).cast(), access.end - access.start)
}

fn mode_of(access: &Access<'_>) -> u32 {
    if access.writes() { sys::VT_TOUCH_READ | sys::VT_TOUCH_WRITE } else { sys::VT_TOUCH_READ }
}

/// A view is open. The layer only looks on, so its own refusals (in a forked child) don't matter.
pub(crate) fn view_opened(access: &Access<'_>) {
    let (pointer, bytes) = range_of(access);
    // SAFETY: the range is only looked at as numbers.
    let _ = unsafe { sys::vt_validate_host_access(pointer, bytes, mode_of(access)) };
}

/// A host task was submitted.
pub(crate) fn task_submitted(queue: *mut sys::vt_queue, accesses: &[Access<'_>]) {
    if !is_enabled() {
        return;
    }
    for access in accesses {
        let (pointer, bytes) = range_of(access);
        // SAFETY: the queue took the task, so it lives; the range is only looked at as numbers.
        let _ = unsafe { sys::vt_validate_touch(queue, pointer, bytes, mode_of(access)) };
    }
}

/// # Safety
///
/// The texts of `site` are valid.
unsafe fn site(site: &sys::vt_validate_site) -> Option<Site> {
    if site.function.is_null() {
        return None;
    }
    let function = text(site.function);
    Some(Site { function, symbol: text(site.symbol), queue_id: site.queue_id, sequence: site.sequence })
}

unsafe extern "C" fn call(user: *mut c_void, report: *const sys::vt_validate_report) {
    // SAFETY: a hook that lives for ever, and a report that is valid during the call.
    let (hook, raw) = unsafe { (&*user.cast::<Hook>(), &*report) };
    context::contain(|| {
        // SAFETY: as above.
        let (now, before) = unsafe { (site(&raw.now), site(&raw.before)) };
        hook(&Report {
            kind: Kind::from_raw(raw.kind),
            severity: if raw.severity == sys::VT_SEVERITY_NOTICE { Severity::Notice } else { Severity::Error },
            address: raw.ptr.addr(),
            bytes: raw.bytes,
            now,
            before,
            message: text(raw.message),
        });
    });
}
