//! The pools behind [`crate::DeviceBuf::zeroed_async`].

use crate::context;
use crate::device::Device;
use crate::error::{Result, check};
use crate::sys;

/// What a device's pool holds, see [`Device::pool_stats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Bytes in use, as asked for.
    pub requested_bytes: u64,
    /// Bytes in use, rounding included.
    pub used_bytes: u64,
    /// Bytes that were given back and are kept.
    pub cached_bytes: u64,
    /// The highest number of bytes used and cached so far.
    pub peak_bytes: u64,
    /// How many bytes are kept at most, but for what pending work may still use.
    pub limit_bytes: u64,
    /// Allocations that were served from what was kept.
    pub hits: u64,
    /// Allocations for which the device was asked.
    pub misses: u64,
}

impl Device {
    /// Reads what the device's pool holds.
    pub fn pool_stats(self) -> Result<PoolStats> {
        let mut raw = sys::vt_pool_stats { struct_size: size_of::<sys::vt_pool_stats>(), ..Default::default() };
        // SAFETY: `raw` says how large it is.
        check(unsafe { sys::vt_pool_get_stats(self.as_raw(), &mut raw) })?;
        Ok(PoolStats {
            requested_bytes: raw.requested_bytes,
            used_bytes: raw.used_bytes,
            cached_bytes: raw.cached_bytes,
            peak_bytes: raw.peak_bytes,
            limit_bytes: raw.limit_bytes,
            hits: raw.hits,
            misses: raw.misses,
        })
    }

    /// Sets how many bytes the device's pool may keep, and gives back to the device what is above.
    pub fn set_pool_limit(self, bytes: usize) -> Result<()> {
        context::enter("vt_pool_set_limit")?;
        // SAFETY: takes any device.
        check(unsafe { sys::vt_pool_set_limit(self.as_raw(), bytes) })
    }

    /// Gives memory that is kept back to the device, until at most `keep_bytes` are left. What pending work may still use stays.
    ///
    /// ```
    /// use vllm_cpp_sys::{Device, DeviceBuf, Queue};
    ///
    /// let queue = Queue::new_async(Device::cpu(0))?;
    /// drop(DeviceBuf::<u8>::zeroed_async(&queue, 1 << 20)?);
    /// queue.synchronize()?;
    /// Device::cpu(0).trim_pool(0)?;
    /// assert_eq!(Device::cpu(0).pool_stats()?.cached_bytes, 0);
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    pub fn trim_pool(self, keep_bytes: usize) -> Result<()> {
        context::enter("vt_pool_trim")?;
        // SAFETY: takes any device.
        check(unsafe { sys::vt_pool_trim(self.as_raw(), keep_bytes) })
    }
}
