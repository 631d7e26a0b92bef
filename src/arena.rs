//! A bump allocator for one step's activations.

use std::cell::Cell;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::alloc::{Alloc, Block, Kind};
use crate::context;
use crate::device::Device;
use crate::dtype::Element;
use crate::error::{Error, Result, Status, check};
use crate::slice::SliceMut;
use crate::sys;

/// How full an arena is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArenaStats {
    /// Bytes.
    pub capacity: usize,
    /// Bytes, rounding included.
    pub used: usize,
    /// Highest `used` so far.
    pub high_water: usize,
    /// Resets so far.
    pub resets: u64,
}

/// One slab of device memory, given out in order and taken back at once.
///
/// What is given out borrows the arena, so a reset can't come too early for the host; work in flight on the old contents is ordered
/// before work on the new ones like any use of the same bytes. A graph that was captured with parts of the arena keeps the slab.
///
/// New memory holds zero bytes, or what an earlier step left there.
///
/// ```
/// use vllm_cpp_sys::{Arena, Device, Queue};
///
/// let queue = Queue::new_async(Device::cpu(0))?;
/// let mut arena = Arena::new(Device::cpu(0), 4096)?;
/// for step in 0..3 {
///     let mut hidden = arena.alloc::<f32>(100)?;
///     queue.host_task((&mut hidden,), move |(hidden,)| {
///         hidden.fill(step as f32);
///         Ok(())
///     })?;
///     assert_eq!(hidden.to_vec()?[99], step as f32);
///     arena.reset()?;
/// }
/// assert_eq!(arena.stats()?.high_water, 448);
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
pub struct Arena {
    raw: NonNull<sys::vt_arena>,
    alloc: Arc<Alloc>,
    /// How many scopes are open.
    depth: Cell<u32>,
}

// SAFETY: any thread may use it, one at a time; `Cell` keeps it from being shared.
unsafe impl Send for Arena {}

impl Arena {
    /// Creates an arena of `capacity` bytes.
    pub fn new(device: Device, capacity: usize) -> Result<Arena> {
        context::enter("vt_arena_create")?;
        let on_host = device.is_on_host()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: a valid out-parameter.
        check(unsafe { sys::vt_arena_create(device.as_raw(), capacity, &mut raw) })?;
        let raw = NonNull::new(raw).ok_or_else(|| Error::new(Status::Internal, "vt_arena_create answered NULL"))?;
        let mut pointer = std::ptr::null_mut();
        // SAFETY: a live arena; an empty request at its begin gives the address of the slab.
        let status = unsafe { sys::vt_arena_alloc(raw.as_ptr(), 0, &mut pointer) };
        let pointer = NonNull::new(pointer.cast()).unwrap_or(NonNull::dangling());
        // The arena itself is released with the allocation, when nothing uses the slab any more.
        let alloc = Alloc::from_block(Block { pointer, bytes: capacity, device, kind: Kind::Arena(raw) }, on_host);
        check(status)?;
        alloc.zero()?;
        Ok(Arena { raw, alloc, depth: Cell::new(0) })
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.alloc.device
    }

    /// Takes room for `len` elements. Refused while a scope is open: take it from the scope.
    #[inline]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<SliceMut<'_, T>> {
        self.alloc_at(0, len)
    }

    #[inline]
    fn alloc_at<T: Element>(&self, depth: u32, len: usize) -> Result<SliceMut<'_, T>> {
        const { assert!(align_of::<T>() <= 64, "an arena gives memory aligned to 64 bytes") };
        // Too large a product is refused as too large a request.
        match self.take(depth, len.saturating_mul(size_of::<T>())) {
            Ok(start) => Ok(SliceMut::new(&self.alloc, start, len)),
            Err(error) => Err(*error),
        }
    }

    /// Takes bytes, and answers where they begin. In registers: an error beside it would take the answer through memory, in stores
    /// that the next load has to wait for.
    #[inline]
    fn take(&self, depth: u32, bytes: usize) -> std::result::Result<usize, Box<Error>> {
        context::enter("vt_arena_alloc")?;
        if depth != self.depth.get() {
            return Err(inner_scope_is_open());
        }
        let mut pointer = std::ptr::null_mut();
        // SAFETY: a live arena and a valid out-parameter.
        check(unsafe { sys::vt_arena_alloc(self.raw.as_ptr(), bytes, &mut pointer) })?;
        Ok(if bytes == 0 { 0 } else { pointer as usize - self.alloc.pointer.as_ptr() as usize })
    }

    /// Gives back everything; the high-water mark stays.
    pub fn reset(&mut self) -> Result<()> {
        context::enter("vt_arena_reset")?;
        // A scope that a panic left would be closed by now.
        self.depth.set(0);
        // SAFETY: a live arena; nothing that was given out is left, since it borrows the arena.
        check(unsafe { sys::vt_arena_reset(self.raw.as_ptr()) })
    }

    /// Runs `f` with a nested scope, and gives back what it took.
    ///
    /// ```
    /// use vllm_cpp_sys::{Arena, Device};
    ///
    /// let arena = Arena::new(Device::cpu(0), 1024)?;
    /// let kept = arena.alloc::<f32>(16)?;
    /// arena.scope(|scope| scope.alloc::<f32>(100).map(|scratch| scratch.len()))??;
    /// assert_eq!(arena.stats()?.used, 64);
    /// # drop(kept);
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    pub fn scope<R>(&self, f: impl FnOnce(&ArenaScope<'_>) -> R) -> Result<R> {
        self.scope_at(0, f)
    }

    fn scope_at<R>(&self, depth: u32, f: impl FnOnce(&ArenaScope<'_>) -> R) -> Result<R> {
        context::enter("vt_arena_get_mark")?;
        if depth != self.depth.get() {
            return Err(Error::refused("vt_arena_get_mark", "an inner scope is open already"));
        }
        let mut mark = sys::vt_arena_mark::default();
        // SAFETY: a live arena and a valid out-parameter.
        check(unsafe { sys::vt_arena_get_mark(self.raw.as_ptr(), &mut mark) })?;
        self.depth.set(depth + 1);
        let scope = ArenaScope { arena: self, depth: depth + 1, mark, closed: Cell::new(false) };
        let outcome = f(&scope);
        scope.close()?;
        Ok(outcome)
    }

    /// Reads how full the arena is.
    pub fn stats(&self) -> Result<ArenaStats> {
        let mut raw = sys::vt_arena_stats { struct_size: size_of::<sys::vt_arena_stats>(), ..Default::default() };
        // SAFETY: a live arena; `raw` says how large it is.
        check(unsafe { sys::vt_arena_get_stats(self.raw.as_ptr(), &mut raw) })?;
        Ok(ArenaStats { capacity: raw.capacity, used: raw.used, high_water: raw.high_water, resets: raw.resets })
    }
}

#[cold]
fn inner_scope_is_open() -> Box<Error> {
    Error::refused("vt_arena_alloc", "an inner scope is open: take the memory from it").into()
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arena({} bytes on {})", self.alloc.bytes, self.alloc.device)
    }
}

/// A nested scope of an arena, see [`Arena::scope`].
pub struct ArenaScope<'a> {
    arena: &'a Arena,
    depth: u32,
    mark: sys::vt_arena_mark,
    closed: Cell<bool>,
}

impl ArenaScope<'_> {
    /// Takes room for `len` elements until the scope ends.
    #[inline]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<SliceMut<'_, T>> {
        self.arena.alloc_at(self.depth, len)
    }

    /// Runs `f` with a further nested scope.
    pub fn scope<R>(&self, f: impl FnOnce(&ArenaScope<'_>) -> R) -> Result<R> {
        self.arena.scope_at(self.depth, f)
    }

    fn close(&self) -> Result<()> {
        if self.closed.replace(true) {
            return Ok(());
        }
        self.arena.depth.set(self.depth - 1);
        // SAFETY: a live arena; what was given out in the scope borrowed it.
        check(unsafe { sys::vt_arena_rewind(self.arena.raw.as_ptr(), self.mark) })
    }
}

/// Also when `f` panics. A failure to rewind leaves the memory taken until the next reset.
impl Drop for ArenaScope<'_> {
    fn drop(&mut self) {
        let _ = self.close();
    }
}
