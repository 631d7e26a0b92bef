//! Communicators: one rank's end of a group.

use std::ffi::CString;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::collectives::Place;
use crate::comm_op::{Operation, ReduceOp};
use crate::context;
use crate::dtype::{Reducible, Scalar};
use crate::error::{Error, Result, check, text};
use crate::event::WaitMode;
use crate::queue::Queue;
use crate::queue_core::lock;
use crate::reaper::{self, Handle};
use crate::slice::{Slice, SliceMut};
use crate::sys;
use crate::track;

/// The communicator as abort handles see it: gone once the rank is.
struct Shared(Mutex<Option<NonNull<sys::vt_comm>>>);

// SAFETY: a communicator may be aborted by any thread.
unsafe impl Send for Shared {}
// SAFETY: as above; the mutex keeps it alive meanwhile.
unsafe impl Sync for Shared {}

/// One rank's end of a group.
///
/// Move each into its own thread (`Send`, not `Sync`); operations take `&mut self`, in the same order on every rank. One thread can
/// drive several ranks with [`crate::batch`]. A communicator that is dropped by a panic aborts its group, so that no peer waits for
/// it; one that is dropped otherwise leaves, and its peers get [`crate::Status::PeerLost`] where they need it.
///
/// ```
/// use vllm_cpp_sys::{CommGroup, Device, DeviceBuf, Queue, ReduceOp};
///
/// let ranks: Vec<_> = CommGroup::new(2)?
///     .into_comms()?
///     .into_iter()
///     .map(|mut comm| {
///         std::thread::spawn(move || {
///             let queue = Queue::new(Device::cpu(0))?;
///             let mut x = DeviceBuf::from_slice(Device::cpu(0), &[1.0f32 + comm.rank() as f32, 10.0])?;
///             comm.all_reduce_in_place(&queue, &mut x, ReduceOp::Sum)?;
///             x.to_vec()
///         })
///     })
///     .collect();
/// for rank in ranks {
///     assert_eq!(rank.join().unwrap()?, [3.0, 20.0]);
/// }
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
pub struct Comm {
    raw: NonNull<sys::vt_comm>,
    shared: Arc<Shared>,
    rank: usize,
    world: usize,
}

// SAFETY: any thread may use a communicator; it isn't `Sync`, so one at a time.
unsafe impl Send for Comm {}

impl Comm {
    /// Takes over one reference.
    pub(crate) fn new(raw: NonNull<sys::vt_comm>) -> Comm {
        // SAFETY: a live communicator.
        let (rank, world) = unsafe { (sys::vt_comm_get_rank(raw.as_ptr()), sys::vt_comm_get_world(raw.as_ptr())) };
        let shared = Arc::new(Shared(Mutex::new(Some(raw))));
        Comm { raw, shared, rank: rank as usize, world: world as usize }
    }

    /// The rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    pub fn world(&self) -> usize {
        self.world
    }

    /// The name of the transport: `inproc`.
    pub fn transport(&self) -> String {
        // SAFETY: a live communicator.
        text(unsafe { sys::vt_comm_get_transport(self.as_raw()) })
    }

    /// The C communicator, borrowed.
    pub fn as_raw(&self) -> *mut sys::vt_comm {
        self.raw.as_ptr()
    }

    pub(crate) fn place(&self) -> Place {
        Place { rank: self.rank, world: self.world }
    }

    /// Answers what poisoned the group, if anything did.
    pub fn query(&self) -> Result<()> {
        // SAFETY: a live communicator.
        check(unsafe { sys::vt_comm_query(self.as_raw()) })
    }

    /// Leaves the group as dropping does, and answers what poisoned it, if anything did.
    pub fn close(self) -> Result<()> {
        self.query()
    }

    /// Something that can abort the group from any thread.
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle { shared: Arc::clone(&self.shared) }
    }

    /// Aborts the group: every call in progress on any rank ends with [`crate::Status::Aborted`].
    pub fn abort(&self, reason: &str) -> Result<()> {
        self.abort_handle().abort(reason)
    }

    /// Prepares a call with options.
    ///
    /// ```
    /// use std::time::Duration;
    /// use vllm_cpp_sys::{CommGroup, Device, Queue, Status};
    ///
    /// let mut comms = CommGroup::new(2)?.into_comms()?;
    /// let queue = Queue::new(Device::cpu(0))?;
    /// let error = comms[0].call().timeout(Duration::from_millis(20)).barrier(&queue).unwrap_err();
    /// assert_eq!(error.status, Status::Timeout); // rank 1 never came
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    pub fn call(&mut self) -> CommCall<'_> {
        let raw = sys::vt_comm_call { struct_size: size_of::<sys::vt_comm_call>(), ..Default::default() };
        CommCall { comm: self, raw }
    }

    /// Reduces the ranks' `send` element by element; every rank gets the result in `recv`.
    pub fn all_reduce<'s, 'r, T: Reducible>(
        &mut self,
        queue: &Queue,
        send: impl Into<Slice<'s, T>>,
        recv: impl Into<SliceMut<'r, T>>,
        op: ReduceOp,
    ) -> Result<()> {
        self.call().all_reduce(queue, send, recv, op)
    }

    /// As [`Comm::all_reduce`], in place.
    pub fn all_reduce_in_place<'b, T: Reducible>(
        &mut self,
        queue: &Queue,
        buffer: impl Into<SliceMut<'b, T>>,
        op: ReduceOp,
    ) -> Result<()> {
        self.call().all_reduce_in_place(queue, buffer, op)
    }

    /// Gathers the ranks' `send` in rank order; `recv` is `world` times as long.
    pub fn all_gather<'s, 'r, T: Scalar>(
        &mut self,
        queue: &Queue,
        send: impl Into<Slice<'s, T>>,
        recv: impl Into<SliceMut<'r, T>>,
    ) -> Result<()> {
        self.call().all_gather(queue, send, recv)
    }

    /// As [`Comm::all_gather`]; the rank's own part lies in its place already.
    pub fn all_gather_in_place<'b, T: Scalar>(&mut self, queue: &Queue, buffer: impl Into<SliceMut<'b, T>>) -> Result<()> {
        self.call().all_gather_in_place(queue, buffer)
    }

    /// Sends to one rank. Completes when the receiver has taken the data.
    pub fn send<'b, T: Scalar>(&mut self, queue: &Queue, buffer: impl Into<Slice<'b, T>>, peer: usize) -> Result<()> {
        self.call().send(queue, buffer, peer)
    }

    /// Receives from one rank.
    pub fn recv<'b, T: Scalar>(&mut self, queue: &Queue, buffer: impl Into<SliceMut<'b, T>>, peer: usize) -> Result<()> {
        self.call().recv(queue, buffer, peer)
    }

    /// Meets all ranks.
    pub fn barrier(&mut self, queue: &Queue) -> Result<()> {
        self.call().barrier(queue)
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A failure means that the group is poisoned already.
            let _ = self.abort(&format!("rank {} panicked", self.rank));
        }
        *lock(&self.shared.0) = None;
        reaper::release(Handle::Comm(self.raw));
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Comm(rank {} of {})", self.rank, self.world)
    }
}

/// A call with options, see [`Comm::call`]. Its operations are those of [`Comm`].
pub struct CommCall<'c> {
    pub(crate) comm: &'c mut Comm,
    pub(crate) raw: sys::vt_comm_call,
}

impl CommCall<'_> {
    /// The deadline, counted from when the operation reaches the head of its queue.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        // The largest number means "for ever", which C refuses; 0 would mean the group's own deadline.
        self.raw.timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).max(1);
        self
    }

    /// The caller's own number of this call, compared between the ranks; 0 for none.
    pub fn sequence(mut self, sequence: u64) -> Self {
        self.raw.sequence = sequence;
        self
    }

    /// How this rank waits for the others, in place of the group's way. By default it spins where they run on processors of their own,
    /// else yields, and sleeps after 0.1 ms; `Block` sleeps after a few polls; `Yield` and `Spin` never sleep.
    pub fn wait(mut self, wait: WaitMode) -> Self {
        self.raw.wait = wait.as_raw();
        self
    }

    pub(crate) fn place(&self) -> Place {
        self.comm.place()
    }

    pub(crate) fn run(self, queue: &Queue, operation: Operation<'_, '_>) -> Result<()> {
        if context::is_batching() {
            return Err(Error::refused("vt_comm", "inside a batch, use the operations of the batch"));
        }
        let (comm, opts) = (self.comm.as_raw(), &self.raw);
        track::run(&queue.core, operation.accesses.as_ref(), |queue| {
            // SAFETY: live handles; the tracker has admitted the accesses of this call.
            unsafe { operation.call.issue(comm, queue, opts) }
        })
    }

    /// See [`Comm::all_reduce`].
    pub fn all_reduce<'s, 'r, T: Reducible>(
        self,
        queue: &Queue,
        send: impl Into<Slice<'s, T>>,
        recv: impl Into<SliceMut<'r, T>>,
        op: ReduceOp,
    ) -> Result<()> {
        self.run(queue, Operation::all_reduce(send.into(), recv.into(), op))
    }

    /// See [`Comm::all_reduce_in_place`].
    pub fn all_reduce_in_place<'b, T: Reducible>(
        self,
        queue: &Queue,
        buffer: impl Into<SliceMut<'b, T>>,
        op: ReduceOp,
    ) -> Result<()> {
        self.run(queue, Operation::all_reduce_in_place(buffer.into(), op))
    }

    /// See [`Comm::all_gather`].
    pub fn all_gather<'s, 'r, T: Scalar>(
        self,
        queue: &Queue,
        send: impl Into<Slice<'s, T>>,
        recv: impl Into<SliceMut<'r, T>>,
    ) -> Result<()> {
        let world = self.comm.world;
        self.run(queue, Operation::all_gather(send.into(), recv.into(), world))
    }

    /// See [`Comm::all_gather_in_place`].
    pub fn all_gather_in_place<'b, T: Scalar>(self, queue: &Queue, buffer: impl Into<SliceMut<'b, T>>) -> Result<()> {
        let (rank, world) = (self.comm.rank, self.comm.world);
        self.run(queue, Operation::all_gather_in_place(buffer.into(), rank, world))
    }

    /// See [`Comm::send`].
    pub fn send<'b, T: Scalar>(self, queue: &Queue, buffer: impl Into<Slice<'b, T>>, peer: usize) -> Result<()> {
        self.run(queue, Operation::send(buffer.into(), peer))
    }

    /// See [`Comm::recv`].
    pub fn recv<'b, T: Scalar>(self, queue: &Queue, buffer: impl Into<SliceMut<'b, T>>, peer: usize) -> Result<()> {
        self.run(queue, Operation::recv(buffer.into(), peer))
    }

    /// See [`Comm::barrier`].
    pub fn barrier(self, queue: &Queue) -> Result<()> {
        self.run(queue, Operation::barrier())
    }
}

/// Aborts a group from any thread, also while its ranks are inside calls. It doesn't keep the rank in the group.
///
/// ```
/// use vllm_cpp_sys::{CommGroup, Device, Queue, Status};
///
/// let mut comms = CommGroup::new(2)?.into_comms()?;
/// let handle = comms[0].abort_handle();
/// let watchdog = std::thread::spawn(move || handle.abort("the request was cancelled"));
/// let queue = Queue::new(Device::cpu(0))?;
/// let error = comms[0].barrier(&queue).unwrap_err(); // rank 1 never comes
/// assert_eq!(error.status, Status::Aborted);
/// watchdog.join().unwrap()?;
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
#[derive(Clone)]
pub struct AbortHandle {
    shared: Arc<Shared>,
}

impl AbortHandle {
    /// Aborts the group. Refused once the rank has left it.
    pub fn abort(&self, reason: &str) -> Result<()> {
        let reason = CString::new(reason.replace('\0', " ")).unwrap_or_default();
        let comm = lock(&self.shared.0);
        let Some(raw) = *comm else { return Err(Error::refused("vt_comm_abort", "the rank has left the group")) };
        // SAFETY: a live communicator, kept so by the lock; the reason is copied.
        check(unsafe { sys::vt_comm_abort(raw.as_ptr(), reason.as_ptr()) })
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AbortHandle")
    }
}
