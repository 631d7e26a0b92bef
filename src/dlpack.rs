//! Tensors from and to other libraries of the process, without a copy.
//!
//! [DLPack](https://dmlc.github.io/dlpack/latest/) is a C structure with an address, a shape and a *deleter*. Who gives a tensor away
//! is its producer; the consumer calls the deleter, once, when it needs the memory no longer. A [`ManagedTensor`] holds such a structure
//! on the way between the two, and calls the deleter if the tensor doesn't arrive.
//!
//! - **Giving.** [`DeviceBuf::into_dlpack`](crate::DeviceBuf::into_dlpack) gives a buffer away,
//!   [`DeviceBuf::to_dlpack`](crate::DeviceBuf::to_dlpack) lets others read it. Until the deleter is called the tensor counts as an
//!   open view: launches of graphs that conflict with it are refused, as is work that writes what others read.
//! - **Taking.** [`DeviceBuf::from_dlpack`](crate::DeviceBuf::from_dlpack) makes a buffer of a tensor. The deleter is called when the
//!   buffer is gone and the work on it has completed.
//! - **The stream rule.** The consumer says on which queue it will work. The producer makes that queue wait for pending work on the
//!   memory, and doesn't block the host. Without a queue, the work has completed when the call returns.
//!
//! What crosses the border is raw, so taking a pointer in is `unsafe`; the rest is not.
//!
//! ```
//! use vllm_cpp_sys::dlpack::ManagedTensor;
//! use vllm_cpp_sys::{Device, DeviceBuf, Queue};
//!
//! let queue = Queue::new_async(Device::cpu(0))?;
//! let mut x = DeviceBuf::<f32>::zeroed(Device::cpu(0), 6)?;
//! queue.fill(&mut x, 0)?;
//! let raw = x.into_dlpack(&[2, 3], None)?.into_raw(); // a DLManagedTensorVersioned for anybody
//!
//! // SAFETY: made above, by this crate, and not used by anybody else.
//! let tensor = unsafe { ManagedTensor::from_raw(raw)? };
//! assert_eq!(tensor.shape(), [2, 3]);
//! let y = DeviceBuf::<f32>::from_dlpack(tensor, None)?;
//! assert_eq!(y.to_vec()?, [0.0; 6]);
//! # Ok::<(), vllm_cpp_sys::Error>(())
//! ```

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::alloc::{Alloc, Block, Kind};
use crate::buffer::DeviceBuf;
use crate::context;
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, Status};
use crate::queue::Queue;
use crate::queue_core::QueueCore;
use crate::track::{self, Mode};
use crate::view::Lease;

mod abi;

pub use abi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, READ_ONLY, VERSION};

/// A tensor between producer and consumer. Dropping it calls the deleter.
pub struct ManagedTensor {
    raw: NonNull<DLManagedTensorVersioned>,
    /// The queue that this crate's producer was told of: the memory may be used after what that holds.
    consumer: Option<Arc<QueueCore>>,
}

// SAFETY: who made it promised that the deleter may be called on any thread; the rest is numbers.
unsafe impl Send for ManagedTensor {}
// SAFETY: shared, it can only be read.
unsafe impl Sync for ManagedTensor {}

impl ManagedTensor {
    /// Takes a tensor over. Refused where the pointer is NULL, or, after its deleter was called, where the major version is unknown.
    ///
    /// # Safety
    ///
    /// The structure is a valid one that was handed to the caller: shape and strides hold `ndim` numbers (the strides may be NULL), and
    /// the memory holds that many initialised elements until the deleter is called. Until then nobody else writes them, nor reads them
    /// unless the tensor is read-only. The deleter may be called on any thread, and nobody else calls it. Where the producer was told of
    /// a queue, [`DeviceBuf::from_dlpack`] is given that queue.
    pub unsafe fn from_raw(raw: *mut DLManagedTensorVersioned) -> Result<ManagedTensor> {
        let raw = NonNull::new(raw).ok_or_else(|| Error::invalid("dlpack", "the tensor is NULL"))?;
        let tensor = ManagedTensor { raw, consumer: None };
        // SAFETY: a valid structure; the version lies first in every version.
        let version = unsafe { (*raw.as_ptr()).version };
        if version.major != VERSION.major {
            let text = format!("a tensor of DLPack {}.{}, not {}.x", version.major, version.minor, VERSION.major);
            return Err(Error::new(Status::Unsupported, text));
        }
        let DLTensor { ndim, shape, .. } = *tensor.tensor();
        if ndim < 0 || (ndim > 0 && shape.is_null()) {
            return Err(Error::invalid("dlpack", format!("a tensor of {ndim} dimensions with its shape at {shape:?}")));
        }
        Ok(tensor)
    }

    /// Takes a tensor over that has the form from before version 1.
    ///
    /// # Safety
    ///
    /// As for [`ManagedTensor::from_raw`].
    pub unsafe fn from_raw_legacy(raw: *mut DLManagedTensor) -> Result<ManagedTensor> {
        let legacy = NonNull::new(raw).ok_or_else(|| Error::invalid("dlpack", "the tensor is NULL"))?;
        let versioned = Box::new(DLManagedTensorVersioned {
            version: VERSION,
            manager_ctx: legacy.as_ptr().cast(),
            deleter: Some(delete_legacy),
            flags: 0,
            // SAFETY: a valid structure.
            dl_tensor: unsafe { (*legacy.as_ptr()).dl_tensor },
        });
        // SAFETY: valid, as the caller says of the tensor inside; its deleter calls the given one.
        unsafe { ManagedTensor::from_raw(Box::into_raw(versioned)) }
    }

    /// Hands the tensor out: the receiver calls the deleter.
    pub fn into_raw(mut self) -> *mut DLManagedTensorVersioned {
        self.consumer = None;
        let raw = self.raw.as_ptr();
        std::mem::forget(self);
        raw
    }

    /// Hands the tensor out in the form from before version 1, which can't say "read-only": such a tensor is refused.
    pub fn into_raw_legacy(self) -> Result<*mut DLManagedTensor> {
        if self.is_read_only() {
            return Err(Error::new(Status::Unsupported, "the form from before DLPack 1 can't say that a tensor is read-only"));
        }
        let dl_tensor = *self.tensor();
        let manager_ctx = self.into_raw().cast();
        Ok(Box::into_raw(Box::new(DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(delete_versioned) })))
    }

    fn tensor(&self) -> &DLTensor {
        // SAFETY: a valid structure of a version that is known, or this crate's.
        unsafe { &(*self.raw.as_ptr()).dl_tensor }
    }

    /// The lengths of the dimensions.
    pub fn shape(&self) -> &[i64] {
        self.numbers(self.tensor().shape).unwrap_or(&[])
    }

    /// The strides in elements; `None` where the producer left them out, which means row-major order.
    pub fn strides(&self) -> Option<&[i64]> {
        self.numbers(self.tensor().strides)
    }

    fn numbers(&self, numbers: *const i64) -> Option<&[i64]> {
        if self.tensor().ndim == 0 {
            return Some(&[]);
        }
        // SAFETY: the structure says how many there are, and keeps them until the deleter is called.
        (!numbers.is_null()).then(|| unsafe { std::slice::from_raw_parts(numbers, self.tensor().ndim as usize) })
    }

    /// The device. Refused where this crate has no name for it.
    pub fn device(&self) -> Result<Device> {
        abi::device_from_dlpack(self.tensor().device)
    }

    /// The type of the elements. Refused where this crate has no name for it.
    pub fn dtype(&self) -> Result<DType> {
        abi::dtype_from_dlpack(self.tensor().dtype)
    }

    /// Whether the consumer may not write.
    pub fn is_read_only(&self) -> bool {
        // SAFETY: a valid structure.
        unsafe { (*self.raw.as_ptr()).flags & READ_ONLY != 0 }
    }

    /// The number of elements, which must lie densely in row-major order.
    fn dense_len(&self) -> Result<usize> {
        let mut len = 1i64;
        let mut expected = self.shape().to_vec();
        for place in expected.iter_mut().rev() {
            let extent = std::mem::replace(place, len);
            let product = len.checked_mul(extent).filter(|_| extent >= 0);
            len = product.ok_or_else(|| Error::invalid("dlpack", format!("the shape {:?} is none", self.shape())))?;
        }
        // A stride of a dimension that has one place is never used; of an empty tensor none is.
        let used = |axis: &usize| len > 0 && self.shape()[*axis] != 1;
        let dense = |strides: &[i64]| (0..strides.len()).filter(used).all(|axis| strides[axis] == expected[axis]);
        match self.strides() {
            Some(strides) if !dense(strides) => {
                let text =
                    format!("a tensor of shape {:?} with strides {strides:?}: copy it to row-major order first", self.shape());
                Err(Error::new(Status::Unsupported, text))
            }
            _ => Ok(len as usize),
        }
    }

    /// The block of memory, for `T`. It takes the tensor with it.
    fn into_block<T: Scalar>(mut self) -> Result<(Block, usize)> {
        let device = self.device()?;
        let dtype = self.dtype()?;
        if dtype != T::DTYPE {
            return Err(Error::invalid("dlpack", format!("the tensor holds {dtype}, not {}", T::DTYPE)));
        }
        if self.is_read_only() {
            return Err(Error::new(Status::Unsupported, "the tensor is read-only: copy it"));
        }
        let len = self.dense_len()?;
        let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize);
        let bytes = bytes.ok_or_else(|| Error::invalid("dlpack", format!("a tensor of {len} elements")))?;
        let DLTensor { data, byte_offset, .. } = *self.tensor();
        let address = data.cast::<u8>().wrapping_add(byte_offset as usize);
        if bytes > 0 && (data.is_null() || !address.addr().is_multiple_of(align_of::<T>())) {
            let text = format!("elements of {} at {data:?} + {byte_offset} bytes", T::DTYPE);
            return Err(Error::invalid("dlpack", text));
        }
        let pointer = NonNull::new(address).filter(|_| bytes > 0).unwrap_or(NonNull::<T>::dangling().cast());
        let kind = Kind::Foreign(self.raw);
        self.consumer = None;
        std::mem::forget(self);
        Ok((Block { pointer, bytes, device, kind }, len))
    }
}

impl Drop for ManagedTensor {
    fn drop(&mut self) {
        // SAFETY: a valid structure, given back once.
        unsafe { delete(self.raw) };
    }
}

impl fmt::Debug for ManagedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DLTensor { device, dtype, .. } = self.tensor();
        write!(f, "ManagedTensor(shape {:?}, {dtype:?}, {device:?})", self.shape())
    }
}

/// Calls the deleter.
///
/// # Safety
///
/// A valid structure that nobody uses afterwards.
pub(crate) unsafe fn delete(raw: NonNull<DLManagedTensorVersioned>) {
    // SAFETY: the caller's. The deleter frees the structure, so it is read first.
    unsafe {
        if let Some(deleter) = (*raw.as_ptr()).deleter {
            deleter(raw.as_ptr());
        }
    }
}

unsafe extern "C" fn delete_legacy(raw: *mut DLManagedTensorVersioned) {
    // SAFETY: the box of `from_raw_legacy`, and the tensor that it was made of.
    unsafe {
        let legacy: *mut DLManagedTensor = Box::from_raw(raw).manager_ctx.cast();
        if let Some(deleter) = (*legacy).deleter {
            deleter(legacy);
        }
    }
}

unsafe extern "C" fn delete_versioned(raw: *mut DLManagedTensor) {
    // SAFETY: the box of `into_raw_legacy`, and the tensor that it was made of.
    unsafe { delete(NonNull::new_unchecked(Box::from_raw(raw).manager_ctx.cast())) };
}

/// A tensor of this crate, with all that its structure points to.
struct Export {
    tensor: DLManagedTensorVersioned,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _lease: Lease,
}

// SAFETY: the addresses are those of its own parts, and of memory that the lease holds.
unsafe impl Send for Export {}

unsafe extern "C" fn delete_export(raw: *mut DLManagedTensorVersioned) {
    // SAFETY: the box of `export`, given back once.
    drop(unsafe { Box::from_raw((*raw).manager_ctx.cast::<Export>()) });
}

fn shape_of(shape: &[usize], len: usize) -> Result<(Vec<i64>, Vec<i64>)> {
    let elements = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
    if elements != Some(len) {
        return Err(Error::invalid("dlpack", format!("the shape {shape:?} doesn't have the buffer's {len} elements")));
    }
    let ndim = i32::try_from(shape.len()).map_err(|_| Error::invalid("dlpack", "too many dimensions"))?;
    let mut strides = vec![1i64; ndim as usize];
    for axis in (1..strides.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis] as i64);
    }
    Ok((shape.iter().map(|&extent| extent as i64).collect(), strides))
}

fn export<T: Scalar>(buffer: &DeviceBuf<T>, shape: &[usize], consumer: Option<&Queue>, mode: Mode) -> Result<ManagedTensor> {
    context::enter("dlpack")?;
    let (shape, strides) = shape_of(shape, buffer.len())?;
    let (device, dtype) = (abi::device_to_dlpack(buffer.device())?, abi::dtype_to_dlpack(T::DTYPE)?);
    let whole = buffer.as_slice();
    if whole.alloc().shareable {
        return Err(whole.alloc().no_views("dlpack")); // who imports it would have views
    }
    let consumer = consumer.map(|queue| Arc::clone(&queue.core));
    let lease = Lease::open(track::Access { mode, ..whole.access() }, consumer.as_ref())?;
    let data: *mut c_void = if buffer.is_empty() { std::ptr::null_mut() } else { whole.pointer().cast() };
    let (ndim, null) = (shape.len() as i32, std::ptr::null_mut());
    let dl_tensor = DLTensor { data, device, ndim, dtype, shape: null, strides: null, byte_offset: 0 };
    let flags = if mode == Mode::Read { READ_ONLY } else { 0 };
    let (version, manager_ctx, deleter) = (VERSION, std::ptr::null_mut(), Some(delete_export as unsafe extern "C" fn(_)));
    let tensor = DLManagedTensorVersioned { version, manager_ctx, deleter, flags, dl_tensor };
    let export = Box::into_raw(Box::new(Export { tensor, shape, strides, _lease: lease }));
    // SAFETY: the box just made, which stays where it is until its deleter takes it back.
    unsafe {
        (*export).tensor.manager_ctx = export.cast();
        (*export).tensor.dl_tensor.shape = (*export).shape.as_mut_ptr();
        (*export).tensor.dl_tensor.strides = (*export).strides.as_mut_ptr();
        Ok(ManagedTensor { raw: NonNull::new_unchecked(&raw mut (*export).tensor), consumer })
    }
}

impl<T: Scalar> DeviceBuf<T> {
    /// Gives the buffer away as a tensor of that shape, in row-major order. It is gone in any case; the memory is freed after the
    /// deleter was called.
    ///
    /// The consumer works on `consumer`, in stream order; without one, pending work has completed on return. Graphs that use the buffer
    /// can't be launched meanwhile. See [`dlpack`](crate::dlpack).
    pub fn into_dlpack(self, shape: &[usize], consumer: Option<&Queue>) -> Result<ManagedTensor> {
        export(&self, shape, consumer, Mode::Update)
    }

    /// Lets others read the buffer, as a read-only tensor of that shape. Until the deleter is called, work that writes it is refused.
    ///
    /// The stream rule is that of [`DeviceBuf::into_dlpack`].
    pub fn to_dlpack(&self, shape: &[usize], consumer: Option<&Queue>) -> Result<ManagedTensor> {
        export(self, shape, consumer, Mode::Read)
    }

    /// Makes a buffer of a tensor that may be written and lies densely in row-major order. The deleter is called when the buffer is
    /// gone and the work on it has completed, or at once where this is refused.
    ///
    /// Where the producer was told of a queue, name it here: other work on the buffer comes after what that queue holds by now. A tensor
    /// that came from a buffer of this crate, and not by way of a raw pointer, knows its queue.
    pub fn from_dlpack(tensor: ManagedTensor, queue: Option<&Queue>) -> Result<DeviceBuf<T>> {
        context::enter("dlpack")?;
        let on_host = tensor.device()?.info()?.host_addressable;
        let told = tensor.consumer.clone();
        let (block, len) = tensor.into_block::<T>()?;
        let alloc = Alloc::from_block(block, on_host);
        let whole = track::Access { alloc: &alloc, start: 0, end: alloc.bytes, mode: Mode::Update };
        for queue in told.iter().chain(queue.map(|queue| &queue.core)) {
            track::note_pending(queue, &whole);
        }
        Ok(DeviceBuf::from_alloc(alloc, len))
    }
}
