//! Many copies as one operation.

use std::sync::Arc;

use crate::dtype::Element;
use crate::error::{Error, Result, check};
use crate::queue::Queue;
use crate::slice::{Slice, SliceMut};
use crate::sys;
use crate::track::{self, Access, Mode};

/// The rows of a block in a slice: how many, and their elements.
///
/// ```
/// use vllm_cpp_sys::{Device, DeviceBuf, Queue, Rows};
///
/// let queue = Queue::new(Device::cpu(0))?;
/// let matrix = DeviceBuf::from_slice(Device::cpu(0), &[1, 2, 3, 4, 5, 6])?; // two rows of three
/// let mut left = DeviceBuf::<i32>::zeroed(Device::cpu(0), 4)?;
/// queue.copy_2d(&mut left, 2, &matrix, 3, Rows { rows: 2, width: 2 })?;
/// assert_eq!(left.to_vec()?, [1, 2, 4, 5]);
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// How many.
    pub rows: usize,
    /// Elements of each.
    pub width: usize,
}

impl Rows {
    /// The elements from the first one of the first row to the last one of the last row.
    fn extent(&self, pitch: usize) -> Option<usize> {
        if self.rows == 0 || self.width == 0 {
            return Some(0);
        }
        pitch.checked_mul(self.rows - 1)?.checked_add(self.width)
    }

    fn check(&self, side: &str, pitch: usize, len: usize) -> Result<usize> {
        if self.rows != 0 && pitch < self.width {
            let text = format!("the {side}'s pitch is {pitch}, less than the width of {}", self.width);
            return Err(Error::invalid("vt_copy_2d", text));
        }
        self.extent(pitch).filter(|&extent| extent <= len).ok_or_else(|| {
            let text = format!("{} rows with a pitch of {pitch} don't fit the {side}, which has {len} elements", self.rows);
            Error::invalid("vt_copy_2d", text)
        })
    }
}

/// Puts ranges that touch into one, so that a batch of neighbouring pages costs what one copy does. Pages mostly come in order: the
/// stable sort takes runs as they are.
fn join_neighbours(accesses: &mut Vec<Access<'_>>) {
    accesses.sort_by_key(|access| (Arc::as_ptr(access.alloc), access.writes(), access.start));
    accesses.dedup_by(|next, last| {
        let touches = Arc::ptr_eq(next.alloc, last.alloc) && next.mode == last.mode && next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
}

impl Queue {
    /// Copies many ranges as one operation, such as the pages of a cache on their way to the host: either all of the copies are queued
    /// or none is. In each pair the destination has as many elements as the source.
    ///
    /// ```
    /// use vllm_cpp_sys::{Device, DeviceBuf, PinnedBuf, Queue};
    ///
    /// let queue = Queue::new_async(Device::cpu(0))?;
    /// let cache = DeviceBuf::from_slice(Device::cpu(0), &[1, 2, 3, 4])?;
    /// let mut host = PinnedBuf::<i32>::zeroed(Device::cpu(0), 4)?;
    /// let (low, high) = host.as_slice_mut().split_at_mut(2)?;
    /// queue.copy_batch([(low, cache.slice(2..)), (high, cache.slice(..2))])?;
    /// assert_eq!(host.to_vec()?, [3, 4, 1, 2]);
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    pub fn copy_batch<'d, 's, T, D, S>(&self, copies: impl IntoIterator<Item = (D, S)>) -> Result<()>
    where
        T: Element,
        D: Into<SliceMut<'d, T>>,
        S: Into<Slice<'s, T>>,
    {
        let pairs: Vec<(SliceMut<'d, T>, Slice<'s, T>)> = copies.into_iter().map(|(dst, src)| (dst.into(), src.into())).collect();
        for (i, (dst, src)) in pairs.iter().enumerate() {
            if dst.len() != src.len() {
                let text = format!("destination {i} has {} elements, its source {}", dst.len(), src.len());
                return Err(Error::invalid("vt_copy_batch", text));
            }
        }
        let op = |(dst, src): &(SliceMut<'d, T>, Slice<'s, T>)| sys::vt_copy_op {
            dst: dst.pointer().cast(),
            src: src.pointer().cast(),
            bytes: src.bytes(),
        };
        let ops: Vec<_> = pairs.iter().map(op).collect();
        let mut accesses: Vec<Access<'_>> = pairs
            .iter()
            .map(|(dst, _)| dst.access(Mode::Write))
            .chain(pairs.iter().map(|(_, src)| src.access()))
            .filter(|access| access.start < access.end)
            .collect();
        join_neighbours(&mut accesses);
        track::run(&self.core, &accesses, |raw| {
            // SAFETY: all ranges are as long as said, and the tracker keeps them alive until the copies have run; `ops` is copied.
            check(unsafe { sys::vt_copy_batch(raw, ops.as_ptr(), ops.len()) })
        })
    }

    /// Copies the rows of a block, as one operation. Rows begin `dst_pitch` and `src_pitch` elements apart; what lies between them is
    /// left alone.
    pub fn copy_2d<'d, 's, T: Element>(
        &self,
        dst: impl Into<SliceMut<'d, T>>,
        dst_pitch: usize,
        src: impl Into<Slice<'s, T>>,
        src_pitch: usize,
        block: Rows,
    ) -> Result<()> {
        let (mut dst, src) = (dst.into(), src.into());
        let written = block.check("destination", dst_pitch, dst.len())?;
        let read = block.check("source", src_pitch, src.len())?;
        let (dst, src) = (dst.slice_mut(..written)?, src.slice(..read)?);
        let (to, from, size) = (dst.pointer(), src.pointer(), size_of::<T>());
        // With gaps the extent isn't overwritten wholly: what failed to be written before still matters.
        let mode = if written == block.rows * block.width { Mode::Write } else { Mode::Update };
        self.submit([dst.access(mode), src.access()], |raw| {
            let (width, rows) = (block.width * size, block.rows);
            // SAFETY: both blocks lie in the slices, and the tracker keeps those alive until the copy has run.
            unsafe { sys::vt_copy_2d(raw, to.cast(), dst_pitch * size, from.cast(), src_pitch * size, width, rows) }
        })
    }
}
