//! Groups of ranks.

use std::fmt;
use std::ptr::NonNull;
use std::time::Duration;

use crate::comm::Comm;
use crate::context;
use crate::device::Device;
use crate::error::{Error, Result, Status, check};
use crate::event::WaitMode;
use crate::reaper::{self, Handle};
use crate::sys;

/// How to make a group.
#[derive(Debug, Clone, Default)]
pub struct CommGroupOptions {
    timeout: Option<Duration>,
    devices: Vec<Device>,
    wait: WaitMode,
}

impl CommGroupOptions {
    /// The deadline of calls that name none; 60 s by default.
    pub fn timeout(self, timeout: Duration) -> CommGroupOptions {
        CommGroupOptions { timeout: Some(timeout), ..self }
    }

    /// One device for each rank; `cpu:0` for all by default.
    pub fn devices(self, devices: impl Into<Vec<Device>>) -> CommGroupOptions {
        CommGroupOptions { devices: devices.into(), ..self }
    }

    /// How ranks wait for each other in calls that say nothing else, see [`CommCall::wait`](crate::CommCall::wait).
    pub fn wait(self, wait: WaitMode) -> CommGroupOptions {
        CommGroupOptions { wait, ..self }
    }
}

/// A group of ranks in this process.
///
/// ```
/// use vllm_cpp_sys::CommGroup;
///
/// let comms = CommGroup::new(4)?.into_comms()?;
/// assert_eq!(comms[3].rank(), 3);
/// assert_eq!(comms[3].world(), 4);
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
pub struct CommGroup {
    raw: NonNull<sys::vt_comm_group>,
}

// SAFETY: all functions on groups may be called from any thread.
unsafe impl Send for CommGroup {}
// SAFETY: as above, also on one group at the same time.
unsafe impl Sync for CommGroup {}

impl CommGroup {
    /// Creates a group of `world` ranks.
    pub fn new(world: usize) -> Result<CommGroup> {
        CommGroup::with_options(world, &CommGroupOptions::default())
    }

    /// Creates a group with options.
    pub fn with_options(world: usize, options: &CommGroupOptions) -> Result<CommGroup> {
        context::enter("vt_comm_group_create")?;
        if !options.devices.is_empty() && options.devices.len() != world {
            let text = format!("{} devices for {world} ranks", options.devices.len());
            return Err(Error::invalid("vt_comm_group_create", text));
        }
        let devices: Vec<sys::vt_device> = options.devices.iter().map(|device| device.as_raw()).collect();
        let timeout_ns = options.timeout.map_or(0, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).max(1));
        let raw_options = sys::vt_comm_group_options {
            struct_size: size_of::<sys::vt_comm_group_options>(),
            timeout_ns,
            devices: if devices.is_empty() { std::ptr::null() } else { devices.as_ptr() },
            wait: options.wait.as_raw(),
            ..Default::default()
        };
        let mut raw = std::ptr::null_mut();
        let world = i32::try_from(world).unwrap_or(i32::MAX);
        // SAFETY: the options and the devices outlive the call, which copies them; there is one device for each rank.
        check(unsafe { sys::vt_comm_group_create(world, &raw_options, &mut raw) })?;
        let raw = NonNull::new(raw).ok_or_else(|| Error::new(Status::Internal, "vt_comm_group_create answered NULL"))?;
        Ok(CommGroup { raw })
    }

    /// The number of ranks.
    pub fn world(&self) -> usize {
        // SAFETY: a live group.
        unsafe { sys::vt_comm_group_get_world(self.as_raw()) as usize }
    }

    /// The C group, borrowed.
    pub fn as_raw(&self) -> *mut sys::vt_comm_group {
        self.raw.as_ptr()
    }

    /// Splits the group into its ranks, in order.
    pub fn into_comms(self) -> Result<Vec<Comm>> {
        (0..self.world()).map(|rank| self.comm(rank)).collect()
    }

    fn comm(&self, rank: usize) -> Result<Comm> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: a live group and a valid out-parameter.
        check(unsafe { sys::vt_comm_group_get_comm(self.as_raw(), rank as i32, &mut raw) })?;
        // SAFETY: borrowed from the group, which is alive.
        check(unsafe { sys::vt_comm_retain(raw) })?;
        Ok(Comm::new(NonNull::new(raw).ok_or_else(|| Error::new(Status::Internal, "vt_comm_group_get_comm answered NULL"))?))
    }
}

impl Drop for CommGroup {
    fn drop(&mut self) {
        reaper::release(Handle::Group(self.raw));
    }
}

impl fmt::Debug for CommGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommGroup({} ranks)", self.world())
    }
}
