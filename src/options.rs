//! Memory with options: shared with other processes, or laid where a hint says.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use crate::alloc::{Alloc, Kind};
use crate::context;
use crate::error::{Result, check};
use crate::sys;

/// How to allocate, for [`crate::DeviceBuf::zeroed_with`] and [`crate::PinnedBuf::zeroed_with`]. Hints never fail an allocation: what
/// became of them tells [`AllocInfo`], and a line of the log the first time.
///
/// ```
/// use vllm_cpp_sys::{AllocOptions, Device, PinnedBuf};
///
/// let options = AllocOptions::default().huge_pages(true).numa_node(0);
/// let staging = PinnedBuf::<u8>::zeroed_with(Device::cpu(0), 4 << 20, &options)?;
/// match staging.alloc_info()?.numa_node {
///     Some(node) => println!("on node {node}"),
///     None => println!("wherever there was room"),
/// }
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct AllocOptions {
    flags: u32,
    numa_node: Option<u32>,
}

impl AllocOptions {
    /// Other processes may map the memory, see [`crate::DeviceBuf::export_fd`]. Since they may write it at any time it has no views:
    /// host code copies in and out.
    ///
    /// ```
    /// use std::fs::File;
    /// use std::os::unix::fs::FileExt;
    /// use vllm_cpp_sys::{AllocOptions, Device, DeviceBuf};
    ///
    /// let options = AllocOptions::default().shareable(true);
    /// let mut buffer = DeviceBuf::<u8>::zeroed_with(Device::cpu(0), 5, &options)?;
    /// buffer.copy_from_slice(b"hello")?;
    /// assert!(buffer.read().is_err());
    ///
    /// // The other process gets the descriptor over a socket, and maps it.
    /// let memory = buffer.export_fd()?;
    /// let mut seen = [0; 5];
    /// File::from(memory.fd).read_exact_at(&mut seen, memory.offset as u64)?;
    /// assert_eq!(&seen, b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shareable(self, on: bool) -> AllocOptions {
        self.flag(sys::VT_ALLOC_SHAREABLE, on)
    }

    /// A hint: on large pages.
    pub fn huge_pages(self, on: bool) -> AllocOptions {
        self.flag(sys::VT_ALLOC_HUGE_PAGES, on)
    }

    /// A hint: on this node of the host.
    pub fn numa_node(self, node: u32) -> AllocOptions {
        AllocOptions { numa_node: Some(node), ..self }
    }

    fn flag(self, bit: u32, on: bool) -> AllocOptions {
        let flags = if on { self.flags | bit } else { self.flags & !bit };
        AllocOptions { flags, ..self }
    }

    pub(crate) fn is_shareable(&self) -> bool {
        self.flags & sys::VT_ALLOC_SHAREABLE != 0
    }

    pub(crate) fn as_raw(&self, kind: Kind) -> sys::vt_alloc_options {
        sys::vt_alloc_options {
            struct_size: size_of::<sys::vt_alloc_options>(),
            kind: if matches!(kind, Kind::Pinned) { sys::VT_MEMORY_PINNED } else { sys::VT_MEMORY_DEVICE },
            flags: self.flags,
            // No machine has a node above.
            numa_node: self.numa_node.map_or(-1, |node| i32::try_from(node).unwrap_or(i32::MAX)),
        }
    }
}

/// What became of [`AllocOptions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocInfo {
    /// Other processes may map it.
    pub shareable: bool,
    /// The hint was followed.
    pub huge_pages: bool,
    /// The hint that was followed.
    pub numa_node: Option<u32>,
}

/// A descriptor for the memory of a buffer. It is closed by `exec`; another process maps `bytes` bytes at `offset`, shared.
#[derive(Debug)]
#[non_exhaustive]
pub struct SharedMemory {
    /// The descriptor. The memory lives as long as it, a mapping, or the buffer.
    pub fd: OwnedFd,
    /// Where the memory begins: a multiple of the page size.
    pub offset: usize,
    /// Its size in whole pages.
    pub bytes: usize,
}

pub(crate) fn info_of(alloc: &Arc<Alloc>) -> Result<AllocInfo> {
    let mut raw = sys::vt_memory_info { struct_size: size_of::<sys::vt_memory_info>(), ..Default::default() };
    // SAFETY: any address will do; `raw` says how large it is.
    check(unsafe { sys::vt_memory_get_info(alloc.device.as_raw(), alloc.pointer.as_ptr().cast(), &mut raw) })?;
    Ok(AllocInfo {
        shareable: raw.flags & sys::VT_ALLOC_SHAREABLE != 0,
        huge_pages: raw.flags & sys::VT_ALLOC_HUGE_PAGES != 0,
        numa_node: u32::try_from(raw.numa_node).ok(),
    })
}

pub(crate) fn export(alloc: &Arc<Alloc>) -> Result<SharedMemory> {
    context::enter("vt_memory_export_fd")?;
    let (mut fd, mut offset, mut bytes) = (-1, 0, 0);
    let pointer = alloc.pointer.as_ptr().cast();
    // SAFETY: valid out-parameters.
    check(unsafe { sys::vt_memory_export_fd(alloc.device.as_raw(), pointer, &mut fd, &mut offset, &mut bytes) })?;
    // SAFETY: an open descriptor that is the caller's.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    Ok(SharedMemory { fd, offset, bytes })
}
