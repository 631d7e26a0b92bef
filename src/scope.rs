//! Borrowing user slices for several operations.

use std::marker::PhantomData;
use std::time::Duration;

use crate::context;
use crate::dtype::Element;
use crate::error::{Error, Result, check};
use crate::queue::Queue;
use crate::slice::{Slice, SliceMut};
use crate::sys;
use crate::track::{self, Mode};

/// Copies to and from borrowed slices, see [`Queue::scope`].
pub struct Scope<'q, 'env> {
    queue: &'q Queue,
    /// Invariant: what is borrowed outlives the scope.
    env: PhantomData<&'env mut &'env ()>,
}

impl Queue {
    /// Runs `f` with a scope that may queue copies from and to slices of the caller, and then waits for them, also when `f` fails or
    /// panics.
    ///
    /// ```
    /// use vllm_cpp_sys::{Device, DeviceBuf, Queue};
    ///
    /// let queue = Queue::new_async(Device::cpu(0))?;
    /// let mut buffer = DeviceBuf::<u32>::zeroed(Device::cpu(0), 3)?;
    /// let (input, mut output) = ([1, 2, 3], [0; 2]);
    /// queue.scope(|scope| {
    ///     scope.copy_from_slice(&mut buffer, &input)?;
    ///     scope.copy_to_slice(&mut output, buffer.slice(1..))
    /// })?;
    /// assert_eq!(output, [2, 3]);
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    pub fn scope<'env, R>(&self, f: impl FnOnce(&Scope<'_, 'env>) -> Result<R>) -> Result<R> {
        context::enter("scope")?;
        let scope = Scope { queue: self, env: PhantomData };
        let outcome = f(&scope);
        let waited = scope.wait();
        std::mem::forget(scope); // it has waited
        outcome.and_then(|value| waited.map(|()| value))
    }
}

impl<'env> Scope<'_, 'env> {
    /// Copies from a slice, which has as many elements.
    pub fn copy_from_slice<'d, T: Element>(&self, dst: impl Into<SliceMut<'d, T>>, src: &'env [T]) -> Result<()> {
        let dst = dst.into();
        self.check(dst.len(), src.len())?;
        let (to, bytes) = (dst.pointer(), dst.bytes());
        track::run(&self.queue.core, &[dst.access(Mode::Write)], |raw| {
            // SAFETY: the tracker keeps the destination; the source is borrowed until the scope has waited.
            check(unsafe { sys::vt_copy(raw, to.cast(), src.as_ptr().cast(), bytes) })
        })
    }

    /// Copies to a slice, which has as many elements.
    pub fn copy_to_slice<'s, T: Element>(&self, dst: &'env mut [T], src: impl Into<Slice<'s, T>>) -> Result<()> {
        let src = src.into();
        self.check(src.len(), dst.len())?;
        let (from, bytes) = (src.pointer(), src.bytes());
        track::run(&self.queue.core, &[src.access()], |raw| {
            // SAFETY: the tracker keeps the source; the destination is borrowed until the scope has waited.
            check(unsafe { sys::vt_copy(raw, dst.as_mut_ptr().cast(), from.cast(), bytes) })
        })
    }

    fn check(&self, buffer: usize, slice: usize) -> Result<()> {
        if context::is_capturing() {
            return Err(Error::refused(
                "scope",
                "a graph would use the slices after the scope: copy through a PinnedBuf in a capture",
            ));
        }
        if buffer != slice {
            return Err(Error::invalid("scope", format!("the buffer's range has {buffer} elements, the slice {slice}")));
        }
        Ok(())
    }

    /// Returns when the slices are free again: when the last operation has completed or can't run any more.
    fn wait(&self) -> Result<()> {
        let core = &self.queue.core;
        let ticket = self.queue.ticket()?;
        loop {
            match core.wait(ticket) {
                Err(_) if !core.is_settled(ticket) => std::thread::sleep(Duration::from_millis(1)),
                outcome => return outcome,
            }
        }
    }
}

/// For a panic in the closure.
impl Drop for Scope<'_, '_> {
    fn drop(&mut self) {
        let _ = self.wait();
    }
}
