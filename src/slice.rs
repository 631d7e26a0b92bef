//! Parts of buffers, as operations take them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::alloc::Alloc;
use crate::buffer::{DeviceBuf, PinnedBuf};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::track::{Access, Mode};
use crate::view::{ReadView, WriteView};

/// A range of a buffer that operations may read. A value like `&[T]`, without access to the bytes: see [`Slice::read`].
pub struct Slice<'a, T> {
    alloc: &'a Arc<Alloc>,
    /// In bytes.
    start: usize,
    len: usize,
    elements: PhantomData<&'a [T]>,
}

impl<T> Clone for Slice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slice<'_, T> {}

impl<T> fmt::Debug for Slice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice<{}>({} elements on {})", std::any::type_name::<T>(), self.len, self.alloc.device)
    }
}

/// A range of a buffer that operations may write; nobody else has it. See [`SliceMut::write`] for the bytes.
pub struct SliceMut<'a, T> {
    alloc: &'a Arc<Alloc>,
    start: usize,
    len: usize,
    elements: PhantomData<&'a mut [T]>,
}

impl<T> fmt::Debug for SliceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SliceMut<{}>({} elements on {})", std::any::type_name::<T>(), self.len, self.alloc.device)
    }
}

/// Resolves a range like the index of a slice: where it begins, and its length.
#[inline]
fn resolve(range: impl RangeBounds<usize>, len: usize) -> Option<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&start) => start.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Some((start, end - start)),
        _ => None,
    }
}

#[cold]
fn outside(len: usize) -> Error {
    Error::invalid("slice", format!("the range does not lie within {len} elements"))
}

/// How many elements of another type lie in the bytes. Elements have no padding and every bit pattern is one, so any bytes will do.
fn cast_len<U: Element>(pointer: *mut u8, bytes: usize) -> Result<usize> {
    let (size, align) = (size_of::<U>(), align_of::<U>());
    if size == 0 || !bytes.is_multiple_of(size) {
        return Err(Error::invalid("cast", format!("{bytes} bytes are no number of elements of {size} bytes")));
    }
    if !pointer.addr().is_multiple_of(align) {
        return Err(Error::invalid("cast", format!("the slice doesn't begin at a multiple of {align} bytes")));
    }
    Ok(bytes / size)
}

impl<'a, T: Element> Slice<'a, T> {
    #[inline]
    pub(crate) fn new(alloc: &'a Arc<Alloc>, start: usize, len: usize) -> Slice<'a, T> {
        Slice { alloc, start, len, elements: PhantomData }
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A part of it.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'a, T>> {
        self.part(range).ok_or_else(|| outside(self.len))
    }

    #[inline]
    pub(crate) fn part(&self, range: impl RangeBounds<usize>) -> Option<Slice<'a, T>> {
        let (start, len) = resolve(range, self.len)?;
        Some(Slice::new(self.alloc, self.start + start * size_of::<T>(), len))
    }

    /// The same bytes as elements of another type: bytes of a page as the floats that they hold.
    ///
    /// ```
    /// use vllm_cpp_sys::{Device, DeviceBuf};
    ///
    /// let page = DeviceBuf::from_slice(Device::cpu(0), &[0u8, 0, 0x80, 0x3F, 0, 0, 0, 0x40])?;
    /// assert_eq!(page.as_slice().cast::<f32>()?.to_vec()?, [1.0, 2.0]);
    /// assert!(page.slice(1..5).cast::<f32>().is_err()); // not aligned
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    pub fn cast<U: Element>(&self) -> Result<Slice<'a, U>> {
        let len = cast_len::<U>(self.pointer(), self.bytes())?;
        Ok(Slice::new(self.alloc, self.start, len))
    }

    /// Waits for pending writes and opens the elements for reading. While the view is open, work that writes them is refused.
    pub fn read(&self) -> Result<ReadView<'a, T>> {
        ReadView::open(*self)
    }

    /// Waits for pending writes and copies the elements out.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        crate::transfer::to_vec(*self)
    }

    /// Waits for pending writes and copies the elements out. The lengths must be the same.
    pub fn copy_to_slice(&self, out: &mut [T]) -> Result<()> {
        crate::transfer::copy_out(*self, out)
    }

    /// The address, for the C interface.
    ///
    /// # Safety
    ///
    /// The caller keeps the buffer alive, and orders what is done with the address against all other uses.
    pub unsafe fn as_ptr(&self) -> *const T {
        self.pointer().cast()
    }

    #[inline]
    pub(crate) fn pointer(&self) -> *mut u8 {
        // SAFETY: within the allocation.
        unsafe { self.alloc.pointer.as_ptr().add(self.start) }
    }

    pub(crate) fn alloc(&self) -> &'a Arc<Alloc> {
        self.alloc
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    #[inline]
    pub(crate) fn access(&self) -> Access<'a> {
        Access { alloc: self.alloc, start: self.start, end: self.start + self.bytes(), mode: Mode::Read }
    }
}

impl<'a, T: Element> SliceMut<'a, T> {
    #[inline]
    pub(crate) fn new(alloc: &'a Arc<Alloc>, start: usize, len: usize) -> SliceMut<'a, T> {
        SliceMut { alloc, start, len, elements: PhantomData }
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same range for reading.
    #[inline]
    pub fn as_slice(&self) -> Slice<'_, T> {
        Slice::new(self.alloc, self.start, self.len)
    }

    /// The same range for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> SliceMut<'_, T> {
        SliceMut::new(self.alloc, self.start, self.len)
    }

    /// A part of it, for reading.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        self.as_slice().slice(range)
    }

    /// A part of it.
    #[inline]
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<SliceMut<'_, T>> {
        let (start, len) = resolve(range, self.len).ok_or_else(|| outside(self.len))?;
        Ok(SliceMut::new(self.alloc, self.start + start * size_of::<T>(), len))
    }

    /// Two parts that may be used independently of each other.
    pub fn split_at_mut(self, middle: usize) -> Result<(SliceMut<'a, T>, SliceMut<'a, T>)> {
        let (start, len) = resolve(middle.., self.len).ok_or_else(|| outside(self.len))?;
        let head = SliceMut::new(self.alloc, self.start, start);
        Ok((head, SliceMut::new(self.alloc, self.start + start * size_of::<T>(), len)))
    }

    /// As [`Slice::cast`].
    pub fn cast<U: Element>(self) -> Result<SliceMut<'a, U>> {
        let len = cast_len::<U>(self.pointer(), self.bytes())?;
        Ok(SliceMut::new(self.alloc, self.start, len))
    }

    /// As [`Slice::read`].
    pub fn read(&self) -> Result<ReadView<'_, T>> {
        self.as_slice().read()
    }

    /// Waits for all pending work on the elements and opens them for writing. While the view is open, work that uses them is refused.
    pub fn write(&mut self) -> Result<WriteView<'_, T>> {
        WriteView::open(self.reborrow())
    }

    /// As [`Slice::to_vec`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.as_slice().to_vec()
    }

    /// As [`Slice::copy_to_slice`].
    pub fn copy_to_slice(&self, out: &mut [T]) -> Result<()> {
        self.as_slice().copy_to_slice(out)
    }

    /// Waits for pending work and copies the elements in. The lengths must be the same. `source` is free again on return.
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()> {
        crate::transfer::copy_in(self.reborrow(), source)
    }

    /// The address, for the C interface.
    ///
    /// # Safety
    ///
    /// As for [`Slice::as_ptr`].
    pub unsafe fn as_mut_ptr(&mut self) -> *mut T {
        self.as_slice().pointer().cast()
    }

    pub(crate) fn alloc(&self) -> &'a Arc<Alloc> {
        self.alloc
    }

    #[inline]
    pub(crate) fn pointer(&self) -> *mut u8 {
        self.as_slice().pointer()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    #[inline]
    pub(crate) fn access(&self, mode: Mode) -> Access<'a> {
        Access { alloc: self.alloc, start: self.start, end: self.start + self.bytes(), mode }
    }
}

impl<'a, T: Element> From<SliceMut<'a, T>> for Slice<'a, T> {
    fn from(slice: SliceMut<'a, T>) -> Self {
        Slice::new(slice.alloc, slice.start, slice.len)
    }
}

impl<'a, T: Element> From<&'a SliceMut<'_, T>> for Slice<'a, T> {
    fn from(slice: &'a SliceMut<'_, T>) -> Self {
        slice.as_slice()
    }
}

impl<'a, T: Element> From<&'a mut SliceMut<'_, T>> for SliceMut<'a, T> {
    fn from(slice: &'a mut SliceMut<'_, T>) -> Self {
        slice.reborrow()
    }
}

macro_rules! from_buffers {
    ($($buffer:ident),*) => {
        $(
            impl<'a, T: Element> From<&'a $buffer<T>> for Slice<'a, T> {
                #[inline]
                fn from(buffer: &'a $buffer<T>) -> Self {
                    buffer.as_slice()
                }
            }

            impl<'a, T: Element> From<&'a mut $buffer<T>> for SliceMut<'a, T> {
                #[inline]
                fn from(buffer: &'a mut $buffer<T>) -> Self {
                    buffer.as_slice_mut()
                }
            }
        )*
    };
}

from_buffers!(DeviceBuf, PinnedBuf);
