//! A buffer of either kind, and its parts.

use vllm_cpp_sys::{DeviceBuf, PinnedBuf, Result, Slice, SliceMut};

use crate::program::{LEN, Part};
use crate::support::CPU;

pub enum Memories {
    Device(DeviceBuf<u32>),
    Pinned(PinnedBuf<u32>),
}

impl Memories {
    pub fn new(pinned: bool, data: &[u32]) -> Result<Memories> {
        Ok(match pinned {
            true => Memories::Pinned(PinnedBuf::from_slice(CPU, data)?),
            false => Memories::Device(DeviceBuf::from_slice(CPU, data)?),
        })
    }

    pub fn slice(&self, part: Part) -> Slice<'_, u32> {
        let range = part.start..part.start + part.len;
        match self {
            Memories::Device(buffer) => buffer.slice(range),
            Memories::Pinned(buffer) => buffer.slice(range),
        }
    }

    pub fn slice_mut(&mut self, part: Part) -> SliceMut<'_, u32> {
        let range = part.start..part.start + part.len;
        match self {
            Memories::Device(buffer) => buffer.slice_mut(range),
            Memories::Pinned(buffer) => buffer.slice_mut(range),
        }
    }

    /// Two parts, unless they overlap.
    pub fn two(&mut self, dst: Part, src: Part) -> Option<(SliceMut<'_, u32>, Slice<'_, u32>)> {
        let all = self.slice_mut(Part { buffer: 0, start: 0, len: LEN });
        if dst.start + dst.len <= src.start {
            let (low, high) = all.split_at_mut(src.start).ok()?;
            return Some((cut(low, dst.start, dst.len), cut(high, 0, src.len).into()));
        }
        if src.start + src.len <= dst.start {
            let (low, high) = all.split_at_mut(dst.start).ok()?;
            return Some((cut(high, 0, dst.len), cut(low, src.start, src.len).into()));
        }
        None
    }

    pub fn close(self) -> Result<()> {
        match self {
            Memories::Device(buffer) => buffer.close(),
            Memories::Pinned(buffer) => buffer.close(),
        }
    }
}

/// A part of a slice that lives as long as the slice.
fn cut(slice: SliceMut<'_, u32>, start: usize, len: usize) -> SliceMut<'_, u32> {
    let (_, tail) = slice.split_at_mut(start).unwrap();
    tail.split_at_mut(len).unwrap().0
}
