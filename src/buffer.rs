//! Typed memory of a device, and pinned host memory.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::alloc::{Alloc, Kind};
use crate::device::Device;
use crate::dtype::Element;
use crate::error::{Error, Result, Status};
use crate::options::{self, AllocInfo, AllocOptions, SharedMemory};
use crate::queue::Queue;
use crate::slice::{Slice, SliceMut};
use crate::sys;
use crate::track::{Access, Mode};
use crate::view::{ReadView, WriteView};

#[inline]
fn bytes_of<T: Element>(len: usize) -> Result<usize> {
    const { assert!(align_of::<T>() <= 64, "device memory is aligned to 64 bytes") };
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize);
    bytes.ok_or_else(|| *overflow(len, size_of::<T>()))
}

/// In a box: an error that is made in place of the answer would keep the answer in memory.
#[cold]
fn overflow(len: usize, size: usize) -> Box<Error> {
    Error::new(Status::OutOfMemory, format!("{len} elements of {size} bytes overflow")).into()
}

impl<T: Element> DeviceBuf<T> {
    pub(crate) fn from_alloc(alloc: Arc<Alloc>, len: usize) -> DeviceBuf<T> {
        DeviceBuf { alloc, len, elements: PhantomData }
    }
}

macro_rules! buffer {
    ($(#[$doc:meta])* $name:ident, $kind:expr) => {
        $(#[$doc])*
        pub struct $name<T: Element> {
            alloc: Arc<Alloc>,
            len: usize,
            elements: PhantomData<T>,
        }

        impl<T: Element> $name<T> {
            /// Allocates `len` elements without contents.
            ///
            /// # Safety
            ///
            /// The elements are written before anything reads them.
            #[inline]
            pub unsafe fn uninit(device: Device, len: usize) -> Result<Self> {
                Ok(Self { alloc: Alloc::uninit(device, bytes_of::<T>(len)?, $kind)?, len, elements: PhantomData })
            }

            /// Allocates `len` elements of zero bytes.
            pub fn zeroed(device: Device, len: usize) -> Result<Self> {
                // SAFETY: zeroed before anybody sees it.
                let buffer = unsafe { Self::uninit(device, len)? };
                buffer.alloc.zero()?;
                Ok(buffer)
            }

            /// Allocates `len` elements of zero bytes with options.
            pub fn zeroed_with(device: Device, len: usize, options: &AllocOptions) -> Result<Self> {
                let alloc = Alloc::uninit_with(device, bytes_of::<T>(len)?, $kind, options)?;
                alloc.zero()?;
                Ok(Self { alloc, len, elements: PhantomData })
            }

            /// Reads what became of the options.
            pub fn alloc_info(&self) -> Result<AllocInfo> {
                options::info_of(&self.alloc)
            }

            /// Gives a file descriptor through which another process can map the memory. Only of buffers that were allocated
            /// [`AllocOptions::shareable`].
            pub fn export_fd(&self) -> Result<SharedMemory> {
                options::export(&self.alloc)
            }

            /// Allocates a copy of `source`.
            pub fn from_slice(device: Device, source: &[T]) -> Result<Self> {
                // SAFETY: written at once; the buffer is gone if that fails.
                let mut buffer = unsafe { Self::uninit(device, source.len())? };
                buffer.copy_from_slice(source)?;
                Ok(buffer)
            }

            /// Allocates `len` elements, each the value of `f` for its index.
            pub fn from_fn(device: Device, len: usize, f: impl FnMut(usize) -> T) -> Result<Self> {
                Self::from_slice(device, &(0..len).map(f).collect::<Vec<T>>())
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

            /// The device that the memory belongs to.
            pub fn device(&self) -> Device {
                self.alloc.device
            }

            /// All of it, for reading.
            #[inline]
            pub fn as_slice(&self) -> Slice<'_, T> {
                Slice::new(&self.alloc, 0, self.len)
            }

            /// All of it.
            #[inline]
            pub fn as_slice_mut(&mut self) -> SliceMut<'_, T> {
                SliceMut::new(&self.alloc, 0, self.len)
            }

            /// A part of it, for reading.
            ///
            /// # Panics
            ///
            /// Where the range doesn't lie within the buffer, as for a slice; [`Slice::slice`] answers an error.
            #[inline]
            pub fn slice(&self, range: impl RangeBounds<usize>) -> Slice<'_, T> {
                self.as_slice().part(range).expect("the range lies within the buffer")
            }

            /// A part of it.
            ///
            /// # Panics
            ///
            /// As for `slice`.
            #[inline]
            pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> SliceMut<'_, T> {
                let part = self.as_slice().part(range).expect("the range lies within the buffer");
                let (access, len) = (part.access(), part.len());
                SliceMut::new(&self.alloc, access.start, len)
            }

            /// Waits for pending writes and opens the elements for reading. While the view is open, work that writes them is refused.
            pub fn read(&self) -> Result<ReadView<'_, T>> {
                self.as_slice().read()
            }

            /// Waits for pending work and opens the elements for writing. While the view is open, work that uses them is refused.
            pub fn write(&mut self) -> Result<WriteView<'_, T>> {
                WriteView::open(self.as_slice_mut())
            }

            /// Waits for pending writes and copies the elements out.
            pub fn to_vec(&self) -> Result<Vec<T>> {
                self.as_slice().to_vec()
            }

            /// Waits for pending writes and copies the elements out. The lengths must be the same.
            pub fn copy_to_slice(&self, out: &mut [T]) -> Result<()> {
                self.as_slice().copy_to_slice(out)
            }

            /// Waits for pending work and copies the elements in. The lengths must be the same. `source` is free again on return.
            pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()> {
                self.as_slice_mut().copy_from_slice(source)
            }

            /// The address, for the C interface.
            ///
            /// # Safety
            ///
            /// The caller keeps the buffer alive, and orders what is done with the address against all other uses.
            pub unsafe fn as_mut_ptr(&self) -> *mut T {
                self.alloc.pointer.as_ptr().cast()
            }

            /// Waits for the work on the buffer, frees it and answers the failure of either. Memory that a graph holds is freed with
            /// the graph. Dropping the buffer frees it as well, later and without waiting.
            pub fn close(self) -> Result<()> {
                self.alloc.close()
            }
        }

        impl<T: Element> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}<{}>({} elements on {})", stringify!($name), std::any::type_name::<T>(), self.len, self.alloc.device)
            }
        }
    };
}

buffer! {
    /// Memory of a device: `len` elements of `T`.
    ///
    /// Work in flight keeps the memory alive, so the buffer may be dropped at any time.
    ///
    /// ```
    /// use vllm_cpp_sys::{Device, DeviceBuf, Queue};
    ///
    /// let queue = Queue::new_async(Device::cpu(0))?;
    /// let source = DeviceBuf::from_slice(Device::cpu(0), &[1.0f32, 2.0, 3.0])?;
    /// let mut target = DeviceBuf::zeroed(Device::cpu(0), 3)?;
    /// queue.copy(&mut target, &source)?;
    /// drop(source); // the copy may still be running
    /// assert_eq!(*target.read()?, [1.0, 2.0, 3.0]); // waits for it
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    DeviceBuf, Kind::Device
}

buffer! {
    /// Host memory that a device copies from and to without staging.
    ///
    /// ```
    /// use vllm_cpp_sys::{Device, DeviceBuf, PinnedBuf, Queue};
    ///
    /// let queue = Queue::new_async(Device::cpu(0))?;
    /// let logits = DeviceBuf::from_slice(Device::cpu(0), &[7i32, 9])?;
    /// let mut host = PinnedBuf::zeroed(Device::cpu(0), 1)?;
    /// queue.copy(&mut host, logits.slice(1..))?;
    /// assert_eq!(host.read()?[0], 9);
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    PinnedBuf, Kind::Pinned
}

impl<T: Element> DeviceBuf<T> {
    /// Allocates `len` elements from the device's pool, for work of `queue` from now on, and queues zeroing them. Nothing waits, and
    /// once the pool is warm the device isn't asked.
    ///
    /// Other queues, views and graphs may use the buffer like any other: they come after the zeroing. Dropping it gives the memory back
    /// in the order of the one queue that still uses it; where several do, when they are through. Where the queue failed before it had
    /// zeroed the memory, every read answers that failure.
    ///
    /// ```
    /// use vllm_cpp_sys::{Device, DeviceBuf, Queue};
    ///
    /// let device = Device::cpu(0);
    /// let queue = Queue::new_async(device)?;
    /// let mut sums = DeviceBuf::<f32>::zeroed(device, 256)?;
    /// for step in 0..10 {
    ///     let mut scratch = DeviceBuf::<f32>::zeroed_async(&queue, 256)?;
    ///     queue.host_task((&mut scratch,), move |(scratch,)| {
    ///         scratch.fill(step as f32);
    ///         Ok(())
    ///     })?;
    ///     queue.host_task((&mut sums, &scratch), |(sums, scratch)| {
    ///         sums.iter_mut().zip(scratch).for_each(|(sum, x)| *sum += x);
    ///         Ok(())
    ///     })?;
    /// } // the scratch goes, and comes again in the next step
    /// assert_eq!(sums.to_vec()?[255], 45.0);
    /// assert!(device.pool_stats()?.hits > 0);
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    pub fn zeroed_async(queue: &Queue, len: usize) -> Result<DeviceBuf<T>> {
        let alloc = Alloc::uninit_after(&queue.core, bytes_of::<T>(len)?)?;
        if alloc.bytes != 0 {
            let (pointer, bytes) = (alloc.pointer.as_ptr().cast(), alloc.bytes);
            let access = Access { alloc: &alloc, start: 0, end: bytes, mode: Mode::Write };
            // SAFETY: the range is the whole block, which the tracker keeps alive.
            queue.submit([access], |raw| unsafe { sys::vt_memset(raw, pointer, 0, bytes) })?;
            alloc.tracker().mark_first();
        }
        Ok(DeviceBuf { alloc, len, elements: PhantomData })
    }

    /// As [`DeviceBuf::zeroed_async`], without contents.
    ///
    /// # Safety
    ///
    /// The elements are written before anything reads them, by work that doesn't fail.
    pub unsafe fn uninit_async(queue: &Queue, len: usize) -> Result<DeviceBuf<T>> {
        let alloc = Alloc::uninit_after(&queue.core, bytes_of::<T>(len)?)?;
        Ok(DeviceBuf { alloc, len, elements: PhantomData })
    }
}
