//! Several operations of communicators at once.

use std::marker::PhantomData;

use crate::capture;
use crate::comm::Comm;
use crate::comm_op::{Accesses, Operation, ReduceOp};
use crate::context;
use crate::dtype::{Reducible, Scalar};
use crate::error::{Error, Result, check};
use crate::queue::Queue;
use crate::slice::{Slice, SliceMut};
use crate::sys;
use crate::track::Session;

/// Operations that are collected, see [`batch`]. What they use stays borrowed until the batch has ended.
pub struct Batch<'a> {
    sessions: Vec<Session<'a, 'a, Accesses<'a>>>,
    ended: bool,
    /// Not `Send`: a batch belongs to the thread.
    not_send: PhantomData<*const ()>,
}

/// Collects operations of any communicators in `f`, then runs them together: none runs before `f` has returned, and they can't
/// deadlock on their order. So one thread can drive all ranks of a group. An error or a panic in `f` abandons all of it, and tells the
/// peers.
///
/// In a capture, operations on its queues are recorded. A queue that has operations in the batch can't join the capture before the
/// batch has ended.
///
/// ```
/// use vllm_cpp_sys::{batch, CommGroup, Device, DeviceBuf, Queue, ReduceOp};
///
/// let comms = CommGroup::new(3)?.into_comms()?;
/// let queue = Queue::new(Device::cpu(0))?;
/// let mut buffers = (1..=3).map(|i| DeviceBuf::from_slice(Device::cpu(0), &[i])).collect::<Result<Vec<_>, _>>()?;
/// batch(|b| {
///     for (comm, buffer) in comms.iter().zip(&mut buffers) {
///         b.all_reduce_in_place(comm, &queue, buffer, ReduceOp::Sum)?;
///     }
///     Ok(())
/// })?;
/// assert_eq!(buffers[2].to_vec()?, [6]);
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
pub fn batch<'a, R>(f: impl FnOnce(&mut Batch<'a>) -> Result<R>) -> Result<R> {
    let mut batch = Batch::begin()?;
    let value = f(&mut batch)?;
    batch.end()?;
    Ok(value)
}

impl<'a> Batch<'a> {
    fn begin() -> Result<Batch<'a>> {
        context::enter("vt_comm_batch_begin")?;
        if context::is_batching() {
            return Err(Error::refused("vt_comm_batch_begin", "this thread is inside a batch already"));
        }
        // SAFETY: the end or the abandonment follows on this thread: a batch never leaves its closure.
        check(unsafe { sys::vt_comm_batch_begin() })?;
        context::set_batching(true);
        Ok(Batch { sessions: Vec::new(), ended: false, not_send: PhantomData })
    }

    fn end(mut self) -> Result<()> {
        self.ended = true;
        // SAFETY: begun on this thread; the sessions keep what the operations use.
        check(unsafe { sys::vt_comm_batch_end() })?;
        self.sessions.iter_mut().for_each(Session::submitted);
        Ok(())
    }

    pub(crate) fn add(&mut self, comm: &'a Comm, queue: &'a Queue, operation: Operation<'a, '_>) -> Result<()> {
        let session = Session::begin(&queue.core, operation.accesses)?;
        if !session.is_recording() {
            capture::batch_outside(&queue.core);
        }
        // Kept in any case: the batch may hold the call.
        self.sessions.push(session);
        // SAFETY: live handles, borrowed for as long as the batch; the session has begun.
        unsafe { operation.call.issue(comm.as_raw(), queue.as_raw(), std::ptr::null()) }
    }

    /// See [`Comm::all_reduce`].
    pub fn all_reduce<T: Reducible>(
        &mut self,
        comm: &'a Comm,
        queue: &'a Queue,
        send: impl Into<Slice<'a, T>>,
        recv: impl Into<SliceMut<'a, T>>,
        op: ReduceOp,
    ) -> Result<()> {
        self.add(comm, queue, Operation::all_reduce(send.into(), recv.into(), op))
    }

    /// See [`Comm::all_reduce_in_place`].
    pub fn all_reduce_in_place<T: Reducible>(
        &mut self,
        comm: &'a Comm,
        queue: &'a Queue,
        buffer: impl Into<SliceMut<'a, T>>,
        op: ReduceOp,
    ) -> Result<()> {
        self.add(comm, queue, Operation::all_reduce_in_place(buffer.into(), op))
    }

    /// See [`Comm::all_gather`].
    pub fn all_gather<T: Scalar>(
        &mut self,
        comm: &'a Comm,
        queue: &'a Queue,
        send: impl Into<Slice<'a, T>>,
        recv: impl Into<SliceMut<'a, T>>,
    ) -> Result<()> {
        self.add(comm, queue, Operation::all_gather(send.into(), recv.into(), comm.world()))
    }

    /// See [`Comm::all_gather_in_place`].
    pub fn all_gather_in_place<T: Scalar>(
        &mut self,
        comm: &'a Comm,
        queue: &'a Queue,
        buffer: impl Into<SliceMut<'a, T>>,
    ) -> Result<()> {
        self.add(comm, queue, Operation::all_gather_in_place(buffer.into(), comm.rank(), comm.world()))
    }

    /// See [`Comm::send`]. To oneself it needs the matching receive in the same batch.
    pub fn send<T: Scalar>(
        &mut self,
        comm: &'a Comm,
        queue: &'a Queue,
        buffer: impl Into<Slice<'a, T>>,
        peer: usize,
    ) -> Result<()> {
        self.add(comm, queue, Operation::send(buffer.into(), peer))
    }

    /// See [`Comm::recv`].
    pub fn recv<T: Scalar>(
        &mut self,
        comm: &'a Comm,
        queue: &'a Queue,
        buffer: impl Into<SliceMut<'a, T>>,
        peer: usize,
    ) -> Result<()> {
        self.add(comm, queue, Operation::recv(buffer.into(), peer))
    }

    /// See [`Comm::barrier`].
    pub fn barrier(&mut self, comm: &'a Comm, queue: &'a Queue) -> Result<()> {
        self.add(comm, queue, Operation::barrier())
    }
}

/// Abandons what wasn't ended. The sessions finish afterwards.
impl Drop for Batch<'_> {
    fn drop(&mut self) {
        context::set_batching(false);
        if !self.ended {
            // SAFETY: begun on this thread. A failure means that the batch was ended behind our back: nothing is left to abandon.
            unsafe { sys::vt_comm_batch_abandon() };
        }
        capture::end_batch();
    }
}
