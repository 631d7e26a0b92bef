//! Dividing a group, leaving it politely, and what is known of it.

use std::ptr::{NonNull, null_mut};

use crate::comm::{Comm, CommCall};
use crate::context;
use crate::error::{Error, Result, Status, check};
use crate::sys;

/// What a communicator promises, see [`Comm::guarantees`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarantees {
    /// The same bits on every rank, in every run, for every size and algorithm.
    pub same_bits: bool,
    /// Half types accumulate in `f32` and are rounded once.
    pub wide_halves: bool,
    /// NaN propagates, and minimum and maximum are those of IEEE 754-2019.
    pub nan_propagates: bool,
    /// A mismatch is found on all ranks, before anybody's memory is touched.
    pub mismatch_found: bool,
    /// A send completes after its receive was matched.
    pub send_is_matched: bool,
    /// Nobody writes to a rank's memory after its call has returned.
    pub quiet_return: bool,
}

/// How a communicator is, see [`Comm::health`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The number of ranks.
    pub world: usize,
    /// The ranks that have not gone.
    pub alive: usize,
    /// The number of the last operation that this rank has begun; 0 before the first.
    pub last_sequence: u64,
    /// What poisoned the group, if anything did.
    pub poison: Option<Status>,
}

impl Comm {
    /// Divides the group: the ranks that give the same colour make a new group, in the order of their keys, then of their ranks. A rank
    /// without a colour is in none. All ranks call it, each on a thread of its own; the group itself goes on.
    ///
    /// ```
    /// use vllm_cpp_sys::CommGroup;
    ///
    /// let ranks: Vec<_> = CommGroup::new(4)?
    ///     .into_comms()?
    ///     .into_iter()
    ///     .map(|mut comm| std::thread::spawn(move || comm.split(Some(comm.rank() as u32 / 2), 0)))
    ///     .collect();
    /// for (rank, thread) in ranks.into_iter().enumerate() {
    ///     let pair = thread.join().unwrap()?.expect("every rank has a colour");
    ///     assert_eq!((pair.rank(), pair.world()), (rank % 2, 2));
    /// }
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    pub fn split(&mut self, color: Option<u32>, key: i32) -> Result<Option<Comm>> {
        self.call().split(color, key)
    }

    /// Waits until all ranks have come here, then leaves the group. Dropping waits for nobody.
    pub fn finalize(mut self) -> Result<()> {
        self.call().finalize()
    }

    /// What the transport promises.
    pub fn guarantees(&self) -> Result<Guarantees> {
        let mut bits = 0;
        // SAFETY: a live communicator and a valid out-parameter.
        check(unsafe { sys::vt_comm_get_guarantees(self.as_raw(), &mut bits) })?;
        let has = |bit| bits & bit != 0;
        Ok(Guarantees {
            same_bits: has(sys::VT_COMM_GUARANTEE_SAME_BITS),
            wide_halves: has(sys::VT_COMM_GUARANTEE_WIDE_HALVES),
            nan_propagates: has(sys::VT_COMM_GUARANTEE_NAN_PROPAGATES),
            mismatch_found: has(sys::VT_COMM_GUARANTEE_MISMATCH_FOUND),
            send_is_matched: has(sys::VT_COMM_GUARANTEE_SEND_IS_MATCHED),
            quiet_return: has(sys::VT_COMM_GUARANTEE_QUIET_RETURN),
        })
    }

    /// How the group is, without waiting for anybody.
    pub fn health(&self) -> Result<Health> {
        let mut raw = sys::vt_comm_health { struct_size: size_of::<sys::vt_comm_health>(), ..Default::default() };
        // SAFETY: a live communicator and a valid out-parameter of the size that it says.
        check(unsafe { sys::vt_comm_get_health(self.as_raw(), &mut raw) })?;
        Ok(Health {
            world: raw.world as usize,
            alive: raw.alive as usize,
            last_sequence: raw.last_sequence,
            poison: (raw.status != sys::VT_OK).then(|| Status::from_raw(raw.status)),
        })
    }
}

impl CommCall<'_> {
    /// See [`Comm::split`].
    pub fn split(self, color: Option<u32>, key: i32) -> Result<Option<Comm>> {
        context::enter("vt_comm_split")?;
        // A colour that C's numbers don't hold is one that C refuses, which is how the peers hear of it.
        let color = color.map_or(sys::VT_COMM_SPLIT_NONE, |color| i32::try_from(color).unwrap_or(i32::MIN));
        let mut raw = null_mut();
        // SAFETY: a live communicator and a valid out-parameter.
        check(unsafe { sys::vt_comm_split(self.comm.as_raw(), color, key, &self.raw, &mut raw) })?;
        Ok(NonNull::new(raw).map(Comm::new))
    }

    fn finalize(self) -> Result<()> {
        context::enter("vt_comm_finalize")?;
        if context::is_batching() {
            return Err(Error::refused("vt_comm_finalize", "inside a batch"));
        }
        // SAFETY: a live communicator.
        check(unsafe { sys::vt_comm_finalize(self.comm.as_raw(), &self.raw) })
    }
}
