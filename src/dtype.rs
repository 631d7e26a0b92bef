//! Element types: what may live in a buffer, and what communicators can move and reduce.

use std::fmt;

use crate::error::text;
use crate::sys;

/// A type whose values may live in device memory.
///
/// # Safety
///
/// The type has no padding, every bit pattern is a valid value, and its alignment is at most 64.
#[diagnostic::on_unimplemented(
    message = "`{Self}` may not live in device memory",
    note = "elements are numbers, `F16` and `Bf16`; the features `half` and `bytemuck` add types of those crates"
)]
pub unsafe trait Element: Copy + Send + Sync + 'static {}

/// An element that the runtime knows by number, so communicators can move it.
///
/// # Safety
///
/// `DTYPE` has the size and the meaning of the type.
pub unsafe trait Scalar: Element {
    /// The number.
    const DTYPE: DType;
}

/// A scalar that communicators can reduce.
///
/// # Safety
///
/// The runtime reduces arrays of `DTYPE`.
pub unsafe trait Reducible: Scalar {}

/// The number of an element type in the C interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DType(sys::vt_dtype);

impl DType {
    /// IEEE 754 binary32.
    pub const F32: DType = DType(sys::VT_DTYPE_F32);
    /// IEEE 754 binary16.
    pub const F16: DType = DType(sys::VT_DTYPE_F16);
    /// bfloat16.
    pub const BF16: DType = DType(sys::VT_DTYPE_BF16);
    /// 8-bit signed.
    pub const I8: DType = DType(sys::VT_DTYPE_I8);
    /// 32-bit signed.
    pub const I32: DType = DType(sys::VT_DTYPE_I32);
    /// 64-bit signed.
    pub const I64: DType = DType(sys::VT_DTYPE_I64);
    /// IEEE 754 binary64.
    pub const F64: DType = DType(sys::VT_DTYPE_F64);
    /// 8-bit unsigned.
    pub const U8: DType = DType(sys::VT_DTYPE_U8);

    /// The number in the C interface.
    pub const fn as_raw(self) -> sys::vt_dtype {
        self.0
    }

    /// The short name: `bf16`.
    pub fn name(self) -> String {
        // SAFETY: takes any number.
        text(unsafe { sys::vt_dtype_get_name(self.0) })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// An IEEE 754 binary16 by its bits.
///
/// ```
/// use vllm_cpp_sys::F16;
///
/// assert_eq!(F16::from_f32(1.0), F16(0x3C00));
/// assert_eq!(F16(0xC000).to_f32(), -2.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct F16(pub u16);

impl F16 {
    /// Rounds to nearest, ties to even; overflow gives infinity.
    pub fn from_f32(value: f32) -> F16 {
        // SAFETY: a plain conversion.
        F16(unsafe { sys::vt_f16_from_f32(value) })
    }

    /// Exact.
    pub fn to_f32(self) -> f32 {
        // SAFETY: a plain conversion.
        unsafe { sys::vt_f16_to_f32(self.0) }
    }
}

/// A bfloat16 by its bits.
///
/// ```
/// use vllm_cpp_sys::Bf16;
///
/// assert_eq!(Bf16::from_f32(1.00390625), Bf16(0x3F80)); // a tie goes to even
/// assert_eq!(Bf16(0x4040).to_f32(), 3.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Bf16(pub u16);

impl Bf16 {
    /// Rounds to nearest, ties to even; overflow gives infinity.
    pub fn from_f32(value: f32) -> Bf16 {
        // SAFETY: a plain conversion.
        Bf16(unsafe { sys::vt_bf16_from_f32(value) })
    }

    /// Exact.
    pub fn to_f32(self) -> f32 {
        // SAFETY: a plain conversion.
        unsafe { sys::vt_bf16_to_f32(self.0) }
    }
}

macro_rules! elements {
    ($($kind:ty),*) => {
        $(
            #[diagnostic::do_not_recommend] // error messages would depend on features
            // SAFETY: plain numbers: no padding, every bit pattern is one.
            unsafe impl $crate::Element for $kind {}
        )*
    };
}

macro_rules! reducible {
    ($($kind:ty => $dtype:ident),*) => {
        $(
            #[diagnostic::do_not_recommend] // as above
            // SAFETY: the number names exactly this type.
            unsafe impl $crate::Scalar for $kind {
                const DTYPE: $crate::DType = $crate::DType::$dtype;
            }
            #[diagnostic::do_not_recommend] // as above
            // SAFETY: one of the eight types that all reduce operations take.
            unsafe impl $crate::Reducible for $kind {}
        )*
    };
}

elements!(f32, f64, F16, Bf16, i8, u8, i16, u16, i32, u32, i64, u64);
reducible!(f32 => F32, f64 => F64, F16 => F16, Bf16 => BF16, i8 => I8, u8 => U8, i32 => I32, i64 => I64);

#[cfg(feature = "half")]
mod half_types {
    //! The types of the crate `half` have the bits of ours.

    use super::{Bf16, F16};

    elements!(half::f16, half::bf16);
    reducible!(half::f16 => F16, half::bf16 => BF16);

    macro_rules! conversions {
        ($($ours:ident <=> $theirs:ty),*) => {
            $(
                impl From<$theirs> for $ours {
                    fn from(value: $theirs) -> $ours {
                        $ours(value.to_bits())
                    }
                }

                impl From<$ours> for $theirs {
                    fn from(value: $ours) -> $theirs {
                        <$theirs>::from_bits(value.0)
                    }
                }
            )*
        };
    }

    conversions!(F16 <=> half::f16, Bf16 <=> half::bf16);
}
