//! One operation of a communicator before it is issued: which bytes it uses, and the call into C.

use std::ffi::c_void;
use std::ptr::null;

use crate::dtype::{Reducible, Scalar};
use crate::error::{Error, Result, check};
use crate::slice::{Slice, SliceMut};
use crate::sys;
use crate::track::{Access, Mode};

/// How elements are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReduceOp {
    /// Integers wrap.
    Sum,
    /// IEEE 754-2019 maximum.
    Max,
    /// IEEE 754-2019 minimum.
    Min,
    /// Integers wrap.
    Prod,
    /// The sum divided by the world; integers truncate.
    Avg,
}

impl ReduceOp {
    /// The number in the C interface.
    pub const fn as_raw(self) -> sys::vt_reduce_op {
        match self {
            ReduceOp::Sum => sys::VT_REDUCE_SUM,
            ReduceOp::Max => sys::VT_REDUCE_MAX,
            ReduceOp::Min => sys::VT_REDUCE_MIN,
            ReduceOp::Prod => sys::VT_REDUCE_PROD,
            ReduceOp::Avg => sys::VT_REDUCE_AVG,
        }
    }
}

/// The ranges of an operation.
pub(crate) enum Accesses<'a> {
    None,
    One([Access<'a>; 1]),
    Two([Access<'a>; 2]),
}

impl<'a> AsRef<[Access<'a>]> for Accesses<'a> {
    fn as_ref(&self) -> &[Access<'a>] {
        match self {
            Accesses::None => &[],
            Accesses::One(accesses) => accesses,
            Accesses::Two(accesses) => accesses,
        }
    }
}

/// The operation, with what only it has. Roots and peers are ranks.
#[derive(Clone, Copy)]
pub(crate) enum Call<'c> {
    AllReduce(sys::vt_reduce_op),
    AllGather,
    Send(i32),
    Recv(i32),
    Barrier,
    Reduce(sys::vt_reduce_op, i32),
    Broadcast(i32),
    Gather(i32),
    Scatter(i32),
    ReduceScatter(sys::vt_reduce_op),
    AllToAll,
    AllGatherV(&'c [usize]),
    ReduceScatterV(&'c [usize], sys::vt_reduce_op),
    AllToAllV(&'c [usize], &'c [usize]),
}

/// `'c`: the counts, which C copies.
pub(crate) struct Operation<'a, 'c> {
    pub(crate) accesses: Accesses<'a>,
    pub(crate) call: Issue<'c>,
}

/// The call itself. The addresses are those of `accesses`.
pub(crate) struct Issue<'c> {
    call: Call<'c>,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: sys::vt_dtype,
    /// What is wrong with the arguments here. The peers are told all the same.
    refusal: Option<Error>,
}

impl<'a, 'c> Operation<'a, 'c> {
    pub(crate) fn new(
        accesses: Accesses<'a>,
        call: Call<'c>,
        send: *const u8,
        recv: *mut u8,
        count: usize,
        dtype: sys::vt_dtype,
    ) -> Operation<'a, 'c> {
        let call = Issue { call, send: send.cast(), recv: recv.cast(), count, dtype, refusal: None };
        Operation { accesses, call }
    }

    pub(crate) fn refuse_if(mut self, wrong: bool, why: impl FnOnce() -> String) -> Operation<'a, 'c> {
        if wrong {
            self.call.refusal = Some(Error::invalid("vt_comm", why()));
        }
        self
    }
}

impl<'a> Operation<'a, 'static> {
    pub(crate) fn all_reduce<T: Reducible>(send: Slice<'a, T>, recv: SliceMut<'a, T>, op: ReduceOp) -> Operation<'a, 'static> {
        let accesses = Accesses::Two([send.access(), recv.access(Mode::Write)]);
        let call = Call::AllReduce(op.as_raw());
        let (from, to, dtype) = (send.pointer(), recv.pointer(), T::DTYPE.as_raw());
        Operation::new(accesses, call, from, to, send.len(), dtype)
            .refuse_if(send.len() != recv.len(), || format!("all_reduce sends {} elements and receives {}", send.len(), recv.len()))
    }

    pub(crate) fn all_reduce_in_place<T: Reducible>(buffer: SliceMut<'a, T>, op: ReduceOp) -> Operation<'a, 'static> {
        let pointer = buffer.pointer();
        let accesses = Accesses::One([buffer.access(Mode::Update)]);
        Operation::new(accesses, Call::AllReduce(op.as_raw()), pointer, pointer, buffer.len(), T::DTYPE.as_raw())
    }

    pub(crate) fn all_gather<T: Scalar>(send: Slice<'a, T>, recv: SliceMut<'a, T>, world: usize) -> Operation<'a, 'static> {
        let accesses = Accesses::Two([send.access(), recv.access(Mode::Write)]);
        let (from, to, dtype) = (send.pointer(), recv.pointer(), T::DTYPE.as_raw());
        let wrong = send.len().checked_mul(world) != Some(recv.len());
        Operation::new(accesses, Call::AllGather, from, to, send.len(), dtype)
            .refuse_if(wrong, || format!("all_gather of {world} ranks sends {} elements and receives {}", send.len(), recv.len()))
    }

    pub(crate) fn all_gather_in_place<T: Scalar>(buffer: SliceMut<'a, T>, rank: usize, world: usize) -> Operation<'a, 'static> {
        let count = buffer.len() / world.max(1);
        let wrong = count * world != buffer.len();
        // A rank's part lies within the buffer, since the count is rounded down.
        let own = buffer.pointer().wrapping_add(rank * count * size_of::<T>());
        let accesses = Accesses::One([buffer.access(Mode::Update)]);
        Operation::new(accesses, Call::AllGather, own, buffer.pointer(), count, T::DTYPE.as_raw())
            .refuse_if(wrong, || format!("{} elements can't be shared by {world} ranks", buffer.len()))
    }

    pub(crate) fn send<T: Scalar>(buffer: Slice<'a, T>, peer: usize) -> Operation<'a, 'static> {
        let call = Call::Send(i32::try_from(peer).unwrap_or(i32::MAX));
        let accesses = Accesses::One([buffer.access()]);
        Operation::new(accesses, call, buffer.pointer(), std::ptr::null_mut(), buffer.len(), T::DTYPE.as_raw())
    }

    pub(crate) fn recv<T: Scalar>(buffer: SliceMut<'a, T>, peer: usize) -> Operation<'a, 'static> {
        let call = Call::Recv(i32::try_from(peer).unwrap_or(i32::MAX));
        let accesses = Accesses::One([buffer.access(Mode::Write)]);
        Operation::new(accesses, call, std::ptr::null(), buffer.pointer(), buffer.len(), T::DTYPE.as_raw())
    }

    pub(crate) fn barrier() -> Operation<'a, 'static> {
        Operation::new(Accesses::None, Call::Barrier, std::ptr::null(), std::ptr::null_mut(), 0, sys::VT_DTYPE_U8)
    }
}

impl Issue<'_> {
    /// Issues the call.
    ///
    /// # Safety
    ///
    /// Live handles, and a session that has begun with the accesses of the operation.
    pub(crate) unsafe fn issue(
        self,
        comm: *mut sys::vt_comm,
        queue: *mut sys::vt_queue,
        opts: *const sys::vt_comm_call,
    ) -> Result<()> {
        let Issue { call, send, recv, count, refusal, .. } = self;
        // An unknown type makes C refuse the call too, which is how the peers hear of it.
        let dtype = if refusal.is_some() { -1 } else { self.dtype };
        // Counts that are refused here may be too few for C to read.
        let array = |counts: &[usize]| if refusal.is_some() { null() } else { counts.as_ptr() };
        // SAFETY: the ranges are as long as said; the session keeps them alive and conflicting uses away.
        let status = unsafe {
            match call {
                Call::AllReduce(op) => sys::vt_comm_all_reduce(comm, queue, send, recv, count, dtype, op, opts),
                Call::AllGather => sys::vt_comm_all_gather(comm, queue, send, recv, count, dtype, opts),
                Call::Send(peer) => sys::vt_comm_send(comm, queue, send, count, dtype, peer, opts),
                Call::Recv(peer) => sys::vt_comm_recv(comm, queue, recv, count, dtype, peer, opts),
                Call::Barrier => sys::vt_comm_barrier(comm, queue, opts),
                Call::Reduce(op, root) => sys::vt_comm_reduce(comm, queue, send, recv, count, dtype, op, root, opts),
                Call::Broadcast(root) => sys::vt_comm_broadcast(comm, queue, recv, count, dtype, root, opts),
                Call::Gather(root) => sys::vt_comm_gather(comm, queue, send, recv, count, dtype, root, opts),
                Call::Scatter(root) => sys::vt_comm_scatter(comm, queue, send, recv, count, dtype, root, opts),
                Call::ReduceScatter(op) => sys::vt_comm_reduce_scatter(comm, queue, send, recv, count, dtype, op, opts),
                Call::AllToAll => sys::vt_comm_all_to_all(comm, queue, send, recv, count, dtype, opts),
                Call::AllGatherV(counts) => sys::vt_comm_all_gatherv(comm, queue, send, recv, array(counts), null(), dtype, opts),
                Call::ReduceScatterV(counts, op) => {
                    sys::vt_comm_reduce_scatterv(comm, queue, send, recv, array(counts), dtype, op, opts)
                }
                Call::AllToAllV(sent, received) => {
                    let (sent, received) = (array(sent), array(received));
                    sys::vt_comm_all_to_allv(comm, queue, send, sent, null(), recv, received, null(), dtype, opts)
                }
            }
        };
        refusal.map_or_else(|| check(status), Err)
    }
}
