//! Blocks of memory, and the allocations that buffers share.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::context;
use crate::device::Device;
use crate::dlpack::{self, DLManagedTensorVersioned};
use crate::error::{Error, Result, Status, check};
use crate::lock::{Guard, Lock};
use crate::options::AllocOptions;
use crate::queue_core::QueueCore;
use crate::reaper;
use crate::sys;
use crate::track::{Access, Mode, Tracker};

/// Where a block came from, and so how it goes back.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Device,
    Pinned,
    /// Device memory of the pool, which takes it back in the order of a queue.
    Pool,
    /// The slab of an arena goes with the arena.
    Arena(NonNull<sys::vt_arena>),
    /// Of another library, which is told by its deleter.
    Foreign(NonNull<DLManagedTensorVersioned>),
}

/// Memory, without an owner that frees it.
pub(crate) struct Block {
    pub(crate) pointer: NonNull<u8>,
    pub(crate) bytes: usize,
    pub(crate) device: Device,
    pub(crate) kind: Kind,
}

// SAFETY: a block is an address; who may touch the bytes is decided elsewhere.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Calls a function that allocates; once more where memory that waits for its work may have come free.
    fn new(device: Device, bytes: usize, kind: Kind, call: impl Fn(&mut *mut c_void) -> sys::vt_status) -> Result<Block> {
        let mut pointer = std::ptr::null_mut();
        match check(call(&mut pointer)) {
            Err(error) if error.status == Status::OutOfMemory => {
                reaper::reclaim();
                check(call(&mut pointer))?;
            }
            other => other?,
        }
        let pointer = NonNull::new(pointer.cast()).ok_or_else(|| Error::new(Status::Internal, "vt_alloc answered NULL"))?;
        Ok(Block { pointer, bytes, device, kind })
    }

    /// Gives memory of the pool back behind what `queue` holds, which is all that may still use it. Hands the block back where it can't.
    pub(crate) fn free_after(self, queue: &QueueCore) -> std::result::Result<(), Block> {
        // SAFETY: the block is its only owner; who uses the memory comes before the end of the queue's work.
        let status = unsafe { sys::vt_free_async(queue.raw(), self.pointer.as_ptr().cast()) };
        if status == sys::VT_OK { Ok(()) } else { Err(self) }
    }

    /// Gives the memory back. A failure is in the thread's record and in the log: nobody here could act on it.
    #[inline]
    pub(crate) fn free(self) {
        let _ = self.free_checked();
    }

    #[inline]
    fn free_checked(self) -> Result<()> {
        let pointer = self.pointer.as_ptr().cast();
        // SAFETY: the block is its only owner, and nothing uses the memory any more.
        unsafe {
            match self.kind {
                Kind::Device | Kind::Pool => check(sys::vt_free(self.device.as_raw(), pointer)),
                Kind::Pinned => check(sys::vt_pinned_free(self.device.as_raw(), pointer)),
                Kind::Arena(arena) => {
                    sys::vt_arena_release(arena.as_ptr());
                    Ok(())
                }
                Kind::Foreign(tensor) => {
                    dlpack::delete(tensor);
                    Ok(())
                }
            }
        }
    }
}

/// One allocation. Buffers, slices, graphs and the calls in progress share it; the last of them gives it back.
pub(crate) struct Alloc {
    block: Option<Block>,
    pub(crate) pointer: NonNull<u8>,
    pub(crate) bytes: usize,
    pub(crate) device: Device,
    /// Host code may touch the bytes.
    pub(crate) on_host: bool,
    /// Another process may write the bytes: no views, only copies.
    pub(crate) shareable: bool,
    tracker: Lock<Tracker>,
    /// What the tracker knows, in one word, so that most operations needn't lock it: see [`Tracker::owner`]. Changed under the lock.
    /// Reading it without is enough: what it could miss is not in conflict, or the borrow that a conflict needs has come over from
    /// the other thread, and this word with it.
    owner: AtomicU64,
}

/// The tracker, locked.
pub(crate) struct TrackerGuard<'a> {
    owner: &'a AtomicU64,
    tracker: Guard<'a, Tracker>,
}

impl Deref for TrackerGuard<'_> {
    type Target = Tracker;

    #[inline]
    fn deref(&self) -> &Tracker {
        &self.tracker
    }
}

impl DerefMut for TrackerGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Tracker {
        &mut self.tracker
    }
}

impl Drop for TrackerGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.owner.store(self.tracker.owner(), Ordering::Relaxed);
    }
}

// SAFETY: an address and a lock; the bytes are touched only by who holds a view or an operation that the tracker has admitted.
unsafe impl Send for Alloc {}
// SAFETY: as above.
unsafe impl Sync for Alloc {}

impl Alloc {
    /// Allocates; the contents are undefined.
    pub(crate) fn uninit(device: Device, bytes: usize, kind: Kind) -> Result<Arc<Alloc>> {
        context::enter("vt_alloc")?;
        let on_host = matches!(kind, Kind::Pinned) || device.is_on_host()?;
        // SAFETY: a valid out-parameter.
        let block = Block::new(device, bytes, kind, |pointer| unsafe {
            match kind {
                Kind::Pinned => sys::vt_pinned_alloc(device.as_raw(), bytes, pointer),
                _ => sys::vt_alloc(device.as_raw(), bytes, pointer),
            }
        })?;
        Ok(Alloc::from_block(block, on_host))
    }

    /// Allocates with options; the contents are undefined.
    pub(crate) fn uninit_with(device: Device, bytes: usize, kind: Kind, options: &AllocOptions) -> Result<Arc<Alloc>> {
        context::enter("vt_alloc_with")?;
        let on_host = matches!(kind, Kind::Pinned) || device.info()?.host_addressable;
        let raw = options.as_raw(kind);
        // SAFETY: the options and the out-parameter are valid.
        let block =
            Block::new(device, bytes, kind, |pointer| unsafe { sys::vt_alloc_with(device.as_raw(), bytes, &raw, pointer) })?;
        Ok(Alloc::make(block, on_host && !options.is_shareable(), options.is_shareable()))
    }

    /// Allocates for work of a queue, behind what it holds; the contents are undefined.
    pub(crate) fn uninit_after(queue: &Arc<QueueCore>, bytes: usize) -> Result<Arc<Alloc>> {
        context::enter("vt_alloc_async")?;
        let on_host = queue.device.is_on_host()?;
        // SAFETY: a live queue and a valid out-parameter.
        let block =
            Block::new(queue.device, bytes, Kind::Pool, |pointer| unsafe { sys::vt_alloc_async(queue.raw(), bytes, pointer) })?;
        let alloc = Alloc::from_block(block, on_host);
        if !queue.synchronous && bytes != 0 {
            alloc.tracker().note_start(queue, queue.ticket(), bytes);
        }
        Ok(alloc)
    }

    pub(crate) fn from_block(block: Block, on_host: bool) -> Arc<Alloc> {
        Alloc::make(block, on_host, false)
    }

    fn make(block: Block, on_host: bool, shareable: bool) -> Arc<Alloc> {
        let shared = Arc::<Alloc>::new_uninit();
        // In place: `Arc::new` would make it elsewhere first, and copying what was just stored is slow.
        // SAFETY: nobody else has it, and it is written wholly before anybody reads it.
        unsafe {
            Arc::as_ptr(&shared).cast_mut().cast::<Alloc>().write(Alloc {
                pointer: block.pointer,
                bytes: block.bytes,
                device: block.device,
                on_host,
                shareable,
                block: Some(block),
                tracker: Lock::default(),
                owner: AtomicU64::new(0),
            });
            shared.assume_init()
        }
    }

    /// Why host code may not touch the bytes.
    pub(crate) fn no_views(&self, function: &str) -> Error {
        let text = if self.shareable {
            "another process may write this memory: copy it".to_string()
        } else {
            format!("memory of {} can't be touched by host code: copy it", self.device)
        };
        Error { function: function.into(), ..Error::new(Status::Unsupported, text) }
    }

    #[inline]
    pub(crate) fn tracker(&self) -> TrackerGuard<'_> {
        TrackerGuard { owner: &self.owner, tracker: self.tracker.lock() }
    }

    /// Notes an operation.
    #[inline]
    pub(crate) fn note(&self, access: &Access<'_>, queue: &Arc<QueueCore>, ticket: u64) {
        let mut tracker = self.tracker.lock();
        if !tracker.note_again(access, queue, ticket) {
            TrackerGuard { owner: &self.owner, tracker }.note(access, queue, ticket);
        }
    }

    /// Answers whether an operation on a queue can't meet a view, a graph or work of another queue here.
    #[inline]
    pub(crate) fn is_free_for(&self, queue: u64) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        owner == 0 || owner == queue
    }

    /// Fills all of it with zero bytes before anybody else sees it.
    pub(crate) fn zero(self: &Arc<Alloc>) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        if self.on_host {
            // SAFETY: the host may touch these bytes, and nobody else knows them yet.
            unsafe { self.pointer.as_ptr().write_bytes(0, self.bytes) };
            return Ok(());
        }
        let queue = crate::Queue::new(self.device)?;
        let access = Access { alloc: self, start: 0, end: self.bytes, mode: Mode::Write };
        let pointer: *mut c_void = self.pointer.as_ptr().cast();
        // SAFETY: the range is the whole block, which the tracker keeps alive.
        queue.submit([access], |raw| unsafe { sys::vt_memset(raw, pointer, 0, self.bytes) })?;
        queue.synchronize()
    }

    /// Waits for the work, and frees. Where something else still holds the allocation, that frees it.
    pub(crate) fn close(self: Arc<Alloc>) -> Result<()> {
        let outcome = crate::view::wait_for_all(&self);
        let Some(mut alloc) = Arc::into_inner(self) else { return outcome };
        let mut tracker = alloc.take_tracker();
        match alloc.block.take() {
            Some(block) if !context::in_callback() && !context::is_capturing() && tracker.is_through() => {
                outcome.and(block.free_checked())
            }
            Some(block) => {
                reaper::free(block, tracker);
                outcome
            }
            None => outcome,
        }
    }

    fn take_tracker(&mut self) -> Tracker {
        std::mem::take(self.tracker.get_mut())
    }
}

impl Drop for Alloc {
    fn drop(&mut self) {
        // What no queue has used behind the caller's back goes at once.
        if *self.owner.get_mut() == 0 && !context::in_callback() && !context::is_capturing() {
            return self.block.take().map_or((), Block::free);
        }
        let tracker = self.take_tracker();
        if let Some(block) = self.block.take() {
            reaper::free(block, tracker);
        }
    }
}
