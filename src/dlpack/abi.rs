//! The structures of DLPack 1 as they lie in memory, and what its numbers mean here.

use std::ffi::c_void;

use crate::device::{Device, DeviceType};
use crate::dtype::DType;
use crate::error::{Error, Result, Status};

/// The version of the structure that this crate writes. Another minor version differs in numbers only.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 1 };

/// A bit of [`DLManagedTensorVersioned::flags`]: the consumer may not write.
pub const READ_ONLY: u64 = 1;

/// Which version of the structure this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DLPackVersion {
    /// Another layout behind `flags`.
    pub major: u32,
    /// Other numbers, the same layout.
    pub minor: u32,
}

/// Where the bytes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DLDevice {
    /// CPU 1, CUDA 2, Vulkan 7, Metal 8, oneAPI 14.
    pub device_type: i32,
    /// The index; 0 for host memory.
    pub device_id: i32,
}

/// What an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DLDataType {
    /// Signed integer 0, unsigned 1, IEEE float 2, bfloat 4.
    pub code: u8,
    /// Of one lane.
    pub bits: u8,
    /// 1 for anything but vectors.
    pub lanes: u16,
}

/// Bytes, and how they are to be read.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct DLTensor {
    /// NULL where there are no elements.
    pub data: *mut c_void,
    /// Where `data` lies.
    pub device: DLDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The type of the elements.
    pub dtype: DLDataType,
    /// The lengths of the dimensions.
    pub shape: *mut i64,
    /// In elements; NULL stands for row-major order.
    pub strides: *mut i64,
    /// Added to `data`.
    pub byte_offset: u64,
}

/// A tensor with its deleter, as DLPack had it before version 1.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Gives the tensor back, this structure with it. `None` where there is nothing to give back.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// A tensor with its deleter.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensorVersioned {
    /// Of another major version, only what lies before `dl_tensor` may be looked at.
    pub version: DLPackVersion,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Gives the tensor back, this structure with it. `None` where there is nothing to give back.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// [`READ_ONLY`] and others.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

const _: () = {
    assert!(size_of::<usize>() == 8 && size_of::<DLDevice>() == 8 && size_of::<DLDataType>() == 4);
    assert!(std::mem::offset_of!(DLTensor, device) == 8 && std::mem::offset_of!(DLTensor, ndim) == 16);
    assert!(std::mem::offset_of!(DLTensor, dtype) == 20 && std::mem::offset_of!(DLTensor, shape) == 24);
    assert!(std::mem::offset_of!(DLTensor, strides) == 32 && std::mem::offset_of!(DLTensor, byte_offset) == 40);
    assert!(size_of::<DLTensor>() == 48);
    assert!(std::mem::offset_of!(DLManagedTensor, manager_ctx) == 48 && std::mem::offset_of!(DLManagedTensor, deleter) == 56);
    assert!(size_of::<DLManagedTensor>() == 64);
    assert!(std::mem::offset_of!(DLManagedTensorVersioned, manager_ctx) == 8);
    assert!(std::mem::offset_of!(DLManagedTensorVersioned, deleter) == 16);
    assert!(std::mem::offset_of!(DLManagedTensorVersioned, flags) == 24);
    assert!(std::mem::offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
    assert!(size_of::<DLManagedTensorVersioned>() == 80);
};

const DEVICES: [(DeviceType, i32); 5] =
    [(DeviceType::Cpu, 1), (DeviceType::Cuda, 2), (DeviceType::Vulkan, 7), (DeviceType::Metal, 8), (DeviceType::Xpu, 14)];

/// All CPU devices of this process share the host's memory, which has no index there.
pub(super) fn device_to_dlpack(device: Device) -> Result<DLDevice> {
    let row = DEVICES.iter().find(|row| row.0 == device.kind());
    let device_type = row.ok_or_else(|| Error::new(Status::Unsupported, format!("DLPack has no number for {device}")))?.1;
    let device_id = if device.kind() == DeviceType::Cpu { 0 } else { device.index() };
    Ok(DLDevice { device_type, device_id })
}

pub(super) fn device_from_dlpack(device: DLDevice) -> Result<Device> {
    let row = DEVICES.iter().find(|row| row.1 == device.device_type);
    let unknown = || Error::new(Status::Unsupported, format!("a tensor on a device of DLPack's type {}", device.device_type));
    let kind = row.ok_or_else(unknown)?.0;
    if kind == DeviceType::Cpu && device.device_id != 0 {
        let text = format!("a tensor in host memory with device id {}: it must be 0", device.device_id);
        return Err(Error::new(Status::InvalidArgument, text));
    }
    Ok(Device::new(kind, device.device_id))
}

const DTYPES: [(DType, u8, u8); 8] = [
    (DType::I8, 0, 8),
    (DType::I32, 0, 32),
    (DType::I64, 0, 64),
    (DType::U8, 1, 8),
    (DType::F16, 2, 16),
    (DType::F32, 2, 32),
    (DType::F64, 2, 64),
    (DType::BF16, 4, 16),
];

pub(super) fn dtype_to_dlpack(dtype: DType) -> Result<DLDataType> {
    let row = DTYPES.iter().find(|row| row.0 == dtype);
    let &(_, code, bits) = row.ok_or_else(|| Error::new(Status::Unsupported, format!("DLPack has no number for {dtype}")))?;
    Ok(DLDataType { code, bits, lanes: 1 })
}

pub(super) fn dtype_from_dlpack(dtype: DLDataType) -> Result<DType> {
    let DLDataType { code, bits, lanes } = dtype;
    let row = DTYPES.iter().find(|row| (row.1, row.2, 1) == (code, bits, lanes));
    let text = || format!("elements of DLPack's type code {code} with {bits} bits and {lanes} lanes");
    row.map(|row| row.0).ok_or_else(|| Error::new(Status::Unsupported, text()))
}
