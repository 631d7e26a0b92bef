//! Elements from the types that bytemuck vouches for.

use bytemuck::{Pod, TransparentWrapper, Zeroable};

use crate::dtype::{Bf16, Element, F16};

/// Makes an element of a plain-old-data type of yours.
///
/// ```
/// use vllm_cpp_sys::{Device, DeviceBuf, Plain};
///
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Slot {
///     page: u32,
///     offset: u32,
/// }
/// // SAFETY: two integers without padding. With bytemuck's feature `derive`, these two lines are a derive.
/// unsafe impl bytemuck::Zeroable for Slot {}
/// unsafe impl bytemuck::Pod for Slot {}
///
/// let slots = DeviceBuf::from_fn(Device::cpu(0), 4, |i| Plain(Slot { page: i as u32, offset: 7 }))?;
/// let view = slots.read()?;
/// assert_eq!((view[3].page, view[3].offset), (3, 7));
/// let words: &[u32] = bytemuck::cast_slice(&view);
/// assert_eq!(words[6..], [3, 7]);
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Plain<T>(pub T);

#[diagnostic::do_not_recommend] // error messages would depend on features
// SAFETY: `Pod` promises no padding, that every bit pattern is valid, and `Copy`; buffers check the alignment.
unsafe impl<T: Pod + Send + Sync> Element for Plain<T> {}
// SAFETY: the same representation as `T`.
unsafe impl<T: Zeroable> Zeroable for Plain<T> {}
// SAFETY: as above.
unsafe impl<T: Pod> Pod for Plain<T> {}
// SAFETY: `repr(transparent)`.
unsafe impl<T> TransparentWrapper<T> for Plain<T> {}

impl<T> std::ops::Deref for Plain<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for Plain<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for Plain<T> {
    fn from(value: T) -> Plain<T> {
        Plain(value)
    }
}

// SAFETY: a `u16` of which every bit pattern is a number.
unsafe impl Zeroable for F16 {}
// SAFETY: as above.
unsafe impl Pod for F16 {}
// SAFETY: a `u16` of which every bit pattern is a number.
unsafe impl Zeroable for Bf16 {}
// SAFETY: as above.
unsafe impl Pod for Bf16 {}
