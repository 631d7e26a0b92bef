//! Naming a device and asking what it can do.

use std::fmt;

use crate::context;
use crate::error::{Result, check, text};
use crate::sys;

/// A type of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceType {
    /// The host.
    Cpu,
    /// NVIDIA.
    Cuda,
    /// Apple.
    Metal,
    /// Any GPU through Vulkan.
    Vulkan,
    /// Intel.
    Xpu,
}

impl DeviceType {
    /// The number in the C interface.
    pub const fn as_raw(self) -> sys::vt_device_type {
        match self {
            DeviceType::Cpu => sys::VT_DEVICE_CPU,
            DeviceType::Cuda => sys::VT_DEVICE_CUDA,
            DeviceType::Metal => sys::VT_DEVICE_METAL,
            DeviceType::Vulkan => sys::VT_DEVICE_VULKAN,
            DeviceType::Xpu => sys::VT_DEVICE_XPU,
        }
    }

    /// The short name: `cpu`.
    pub fn name(self) -> String {
        // SAFETY: takes any number.
        text(unsafe { sys::vt_device_type_get_name(self.as_raw()) })
    }
}

/// One device: a type and an index from 0 to 15.
///
/// ```
/// use vllm_cpp_sys::Device;
///
/// let cpu = Device::cpu(0);
/// assert_eq!(cpu.to_string(), "cpu:0");
/// assert!(cpu.info()?.host_addressable);
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    kind: DeviceType,
    index: i32,
}

impl Device {
    /// Names a device. Whether it exists shows when it is used.
    pub const fn new(kind: DeviceType, index: i32) -> Device {
        Device { kind, index }
    }

    /// Names a CPU device.
    pub const fn cpu(index: i32) -> Device {
        Device::new(DeviceType::Cpu, index)
    }

    /// The type.
    pub const fn kind(self) -> DeviceType {
        self.kind
    }

    /// The index.
    pub const fn index(self) -> i32 {
        self.index
    }

    /// The C form.
    pub const fn as_raw(self) -> sys::vt_device {
        sys::vt_device { type_: self.kind.as_raw(), index: self.index }
    }

    /// Counts the registered devices of a type. Their indices need not be contiguous.
    pub fn count(kind: DeviceType) -> Result<usize> {
        let mut count = 0;
        // SAFETY: `count` is a valid out-parameter.
        check(unsafe { sys::vt_device_get_count(kind.as_raw(), &mut count) })?;
        Ok(count as usize)
    }

    /// Reads the facts of the device.
    pub fn info(self) -> Result<DeviceInfo> {
        let mut raw = sys::vt_device_info { struct_size: size_of::<sys::vt_device_info>(), ..Default::default() };
        // SAFETY: `raw` says how large it is.
        check(unsafe { sys::vt_device_get_info(self.as_raw(), &mut raw) })?;
        Ok(DeviceInfo {
            unified_memory: raw.unified_memory != 0,
            host_addressable: raw.host_addressable != 0,
            compute: (raw.compute_major, raw.compute_minor),
            memory_free: raw.memory_free,
            memory_total: raw.memory_total,
            caps: raw.caps,
            name: text(raw.name.as_ptr()),
        })
    }

    /// Whether host code may touch the device's memory. Asked with every allocation, so a CPU isn't asked how much memory is free.
    pub(crate) fn is_on_host(self) -> Result<bool> {
        Ok(self.kind == DeviceType::Cpu || self.info()?.host_addressable)
    }

    /// Submits whatever the device holds back. It does not wait for completion.
    pub fn flush(self) -> Result<()> {
        context::enter("vt_device_flush")?;
        // SAFETY: takes any device.
        check(unsafe { sys::vt_device_flush(self.as_raw()) })
    }

    /// Reads what is allocated on the device.
    pub fn memory_stats(self, kind: MemoryKind) -> Result<MemoryStats> {
        let mut raw = sys::vt_memory_stats { struct_size: size_of::<sys::vt_memory_stats>(), ..Default::default() };
        let number = match kind {
            MemoryKind::Device => sys::VT_MEMORY_DEVICE,
            MemoryKind::Pinned => sys::VT_MEMORY_PINNED,
        };
        // SAFETY: `raw` says how large it is.
        check(unsafe { sys::vt_memory_get_stats(self.as_raw(), number, &mut raw) })?;
        Ok(MemoryStats { live_bytes: raw.live_bytes, peak_bytes: raw.peak_bytes, live_count: raw.live_count })
    }
}

impl Default for Device {
    fn default() -> Device {
        Device::cpu(0)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.index)
    }
}

/// Facts of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Host and device share one memory.
    pub unified_memory: bool,
    /// Host code may read and write device memory; narrower than `unified_memory`.
    pub host_addressable: bool,
    /// Compute capability, (0, 0) where the notion has no meaning.
    pub compute: (i32, i32),
    /// Bytes; 0 if unknown.
    pub memory_free: u64,
    /// Bytes; 0 if unknown.
    pub memory_total: u64,
    /// `VT_CAP_*` bits, see [`crate::sys`].
    pub caps: u32,
    /// The device's own name.
    pub name: String,
}

/// A kind of memory, for [`Device::memory_stats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// What [`crate::DeviceBuf`] and [`crate::Arena`] use.
    Device,
    /// What [`crate::PinnedBuf`] uses.
    Pinned,
}

/// What is allocated on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Bytes, as requested.
    pub live_bytes: u64,
    /// Highest `live_bytes` so far.
    pub peak_bytes: u64,
    /// Blocks.
    pub live_count: u64,
}
