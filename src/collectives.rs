//! Collectives beside all-reduce and all-gather: with a root, with parts that belong to ranks, and with a count for every rank.

use std::ptr::{null, null_mut};

use crate::batch::Batch;
use crate::comm::{Comm, CommCall};
use crate::comm_op::{Accesses, Call, Operation, ReduceOp};
use crate::dtype::{Reducible, Scalar};
use crate::error::Result;
use crate::queue::Queue;
use crate::slice::{Slice, SliceMut};
use crate::track::Mode;

/// What a rank is in its group, as the operations need it.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) rank: usize,
    pub(crate) world: usize,
}

/// A root as C takes it. What is too large is no rank, which C says.
fn raw_root(root: usize) -> i32 {
    i32::try_from(root).unwrap_or(i32::MAX)
}

/// The elements of all counts; `None` if they overflow, or if there isn't a count for every rank.
fn total(counts: &[usize], world: usize) -> Option<usize> {
    let sum = counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count));
    sum.filter(|_| counts.len() == world)
}

/// Where the part of a rank begins, in elements. Only of counts that [`total`] has passed.
fn part_start(counts: &[usize], rank: usize) -> usize {
    counts.iter().take(rank).sum()
}

impl<'a, 'c> Operation<'a, 'c> {
    fn moving<T: Scalar>(call: Call<'c>, send: Slice<'a, T>, recv: SliceMut<'a, T>, count: usize) -> Operation<'a, 'c> {
        let accesses = Accesses::Two([send.access(), recv.access(Mode::Write)]);
        Operation::new(accesses, call, send.pointer(), recv.pointer(), count, T::DTYPE.as_raw())
    }

    fn sending<T: Scalar>(call: Call<'c>, send: Slice<'a, T>) -> Operation<'a, 'c> {
        let accesses = Accesses::One([send.access()]);
        Operation::new(accesses, call, send.pointer(), null_mut(), send.len(), T::DTYPE.as_raw())
    }

    fn receiving<T: Scalar>(call: Call<'c>, recv: SliceMut<'a, T>) -> Operation<'a, 'c> {
        let accesses = Accesses::One([recv.access(Mode::Write)]);
        Operation::new(accesses, call, null(), recv.pointer(), recv.len(), T::DTYPE.as_raw())
    }

    /// In place: `send` and `recv` begin at elements of one buffer.
    fn updating<T: Scalar>(call: Call<'c>, buffer: SliceMut<'a, T>, send: usize, recv: usize, count: usize) -> Operation<'a, 'c> {
        let accesses = Accesses::One([buffer.access(Mode::Update)]);
        let at = |element: usize| buffer.pointer().wrapping_add(element * size_of::<T>());
        Operation::new(accesses, call, at(send), at(recv), count, T::DTYPE.as_raw())
    }

    fn reduce<T: Reducible>(
        place: Place,
        send: Slice<'a, T>,
        recv: SliceMut<'a, T>,
        op: ReduceOp,
        root: usize,
    ) -> Operation<'a, 'c> {
        let call = Call::Reduce(op.as_raw(), raw_root(root));
        if place.rank != root {
            return Operation::sending(call, send);
        }
        let (sent, received) = (send.len(), recv.len());
        Operation::moving(call, send, recv, sent)
            .refuse_if(sent != received, || format!("reduce sends {sent} elements and receives {received}"))
    }

    fn reduce_in_place<T: Reducible>(place: Place, buffer: SliceMut<'a, T>, op: ReduceOp, root: usize) -> Operation<'a, 'c> {
        let call = Call::Reduce(op.as_raw(), raw_root(root));
        if place.rank != root {
            return Operation::sending(call, buffer.into());
        }
        let count = buffer.len();
        Operation::updating(call, buffer, 0, 0, count)
    }

    fn broadcast<T: Scalar>(place: Place, buffer: SliceMut<'a, T>, root: usize) -> Operation<'a, 'c> {
        let mode = if place.rank == root { Mode::Read } else { Mode::Write };
        let accesses = Accesses::One([buffer.access(mode)]);
        let call = Call::Broadcast(raw_root(root));
        Operation::new(accesses, call, null(), buffer.pointer(), buffer.len(), T::DTYPE.as_raw())
    }

    fn gather<T: Scalar>(place: Place, send: Slice<'a, T>, recv: SliceMut<'a, T>, root: usize) -> Operation<'a, 'c> {
        let call = Call::Gather(raw_root(root));
        if place.rank != root {
            return Operation::sending(call, send);
        }
        let (sent, received, world) = (send.len(), recv.len(), place.world);
        let wrong = sent.checked_mul(world) != Some(received);
        Operation::moving(call, send, recv, sent)
            .refuse_if(wrong, || format!("gather of {world} ranks sends {sent} elements and receives {received}"))
    }

    fn scatter<T: Scalar>(place: Place, send: Slice<'a, T>, recv: SliceMut<'a, T>, root: usize) -> Operation<'a, 'c> {
        let call = Call::Scatter(raw_root(root));
        if place.rank != root {
            return Operation::receiving(call, recv);
        }
        let (sent, received, world) = (send.len(), recv.len(), place.world);
        let wrong = received.checked_mul(world) != Some(sent);
        Operation::moving(call, send, recv, received)
            .refuse_if(wrong, || format!("scatter to {world} ranks sends {sent} elements and receives {received}"))
    }

    fn reduce_scatter<T: Reducible>(place: Place, send: Slice<'a, T>, recv: SliceMut<'a, T>, op: ReduceOp) -> Operation<'a, 'c> {
        let (sent, received, world) = (send.len(), recv.len(), place.world);
        let wrong = received.checked_mul(world) != Some(sent);
        Operation::moving(Call::ReduceScatter(op.as_raw()), send, recv, received)
            .refuse_if(wrong, || format!("reduce_scatter of {world} ranks sends {sent} elements and receives {received}"))
    }

    fn reduce_scatter_in_place<T: Reducible>(place: Place, buffer: SliceMut<'a, T>, op: ReduceOp) -> Operation<'a, 'c> {
        let (len, world) = (buffer.len(), place.world);
        let count = len / world.max(1);
        Operation::updating(Call::ReduceScatter(op.as_raw()), buffer, 0, place.rank * count, count)
            .refuse_if(count * world != len, || format!("{len} elements can't be shared by {world} ranks"))
    }

    fn all_to_all<T: Scalar>(place: Place, send: Slice<'a, T>, recv: SliceMut<'a, T>) -> Operation<'a, 'c> {
        let (sent, received, world) = (send.len(), recv.len(), place.world);
        let wrong = sent != received || sent % world.max(1) != 0;
        Operation::moving(Call::AllToAll, send, recv, sent / world.max(1))
            .refuse_if(wrong, || format!("all_to_all of {world} ranks sends {sent} elements and receives {received}"))
    }

    fn all_to_all_in_place<T: Scalar>(place: Place, buffer: SliceMut<'a, T>) -> Operation<'a, 'c> {
        let (len, world) = (buffer.len(), place.world);
        let count = len / world.max(1);
        Operation::updating(Call::AllToAll, buffer, 0, 0, count)
            .refuse_if(count * world != len, || format!("{len} elements can't be shared by {world} ranks"))
    }

    fn all_gatherv<T: Scalar>(place: Place, send: Slice<'a, T>, recv: SliceMut<'a, T>, counts: &'c [usize]) -> Operation<'a, 'c> {
        let (sent, received) = (send.len(), recv.len());
        let wrong = total(counts, place.world) != Some(received) || counts[place.rank] != sent;
        Operation::moving(Call::AllGatherV(counts), send, recv, sent).refuse_if(wrong, || {
            format!("all_gatherv with counts {counts:?} on rank {} sends {sent} elements and receives {received}", place.rank)
        })
    }

    fn all_gatherv_in_place<T: Scalar>(place: Place, buffer: SliceMut<'a, T>, counts: &'c [usize]) -> Operation<'a, 'c> {
        let len = buffer.len();
        let wrong = total(counts, place.world) != Some(len);
        let own = if wrong { 0 } else { part_start(counts, place.rank) };
        Operation::updating(Call::AllGatherV(counts), buffer, own, 0, len)
            .refuse_if(wrong, || format!("all_gatherv with counts {counts:?} has a buffer of {len} elements"))
    }

    fn reduce_scatterv<T: Reducible>(
        place: Place,
        send: Slice<'a, T>,
        recv: SliceMut<'a, T>,
        counts: &'c [usize],
        op: ReduceOp,
    ) -> Operation<'a, 'c> {
        let (sent, received) = (send.len(), recv.len());
        let wrong = total(counts, place.world) != Some(sent) || counts[place.rank] != received;
        Operation::moving(Call::ReduceScatterV(counts, op.as_raw()), send, recv, received).refuse_if(wrong, || {
            format!("reduce_scatterv with counts {counts:?} on rank {} sends {sent} elements and receives {received}", place.rank)
        })
    }

    fn all_to_allv<T: Scalar>(
        place: Place,
        send: Slice<'a, T>,
        send_counts: &'c [usize],
        recv: SliceMut<'a, T>,
        recv_counts: &'c [usize],
    ) -> Operation<'a, 'c> {
        let (sent, received) = (send.len(), recv.len());
        let wrong = total(send_counts, place.world) != Some(sent) || total(recv_counts, place.world) != Some(received);
        Operation::moving(Call::AllToAllV(send_counts, recv_counts), send, recv, sent).refuse_if(wrong, || {
            format!("all_to_allv with counts {send_counts:?} and {recv_counts:?} sends {sent} elements and receives {received}")
        })
    }
}

/// The type of an argument of an operation.
macro_rules! argument {
    (Slice, $life:lifetime, $t:ident) => { impl Into<Slice<$life, $t>> };
    (SliceMut, $life:lifetime, $t:ident) => { impl Into<SliceMut<$life, $t>> };
    (Counts, $life:lifetime, $t:ident) => { &[usize] };
    (Op, $life:lifetime, $t:ident) => { ReduceOp };
    (Root, $life:lifetime, $t:ident) => { usize };
}

/// Its value.
macro_rules! value {
    (Slice, $name:ident) => {
        $name.into()
    };
    (SliceMut, $name:ident) => {
        $name.into()
    };
    ($kind:ident, $name:ident) => {
        $name
    };
}

/// Makes each operation a method of a communicator, of a call with options, and of a batch.
macro_rules! operations {
    ($($(#[$doc:meta])* fn $name:ident<T: $bound:ident>($($arg:ident: $kind:ident),+);)+) => {
        impl Comm {
            $(
                $(#[$doc])*
                pub fn $name<'b, T: $bound>(&mut self, queue: &Queue, $($arg: argument!($kind, 'b, T)),+) -> Result<()> {
                    self.call().$name(queue, $($arg),+)
                }
            )+
        }

        impl CommCall<'_> {
            $(
                #[doc = concat!("See [`Comm::", stringify!($name), "`].")]
                pub fn $name<'b, T: $bound>(self, queue: &Queue, $($arg: argument!($kind, 'b, T)),+) -> Result<()> {
                    let place = self.place();
                    self.run(queue, Operation::$name(place, $(value!($kind, $arg)),+))
                }
            )+
        }

        impl<'a> Batch<'a> {
            $(
                #[doc = concat!("See [`Comm::", stringify!($name), "`].")]
                pub fn $name<T: $bound>(
                    &mut self,
                    comm: &'a Comm,
                    queue: &'a Queue,
                    $($arg: argument!($kind, 'a, T)),+
                ) -> Result<()> {
                    self.add(comm, queue, Operation::$name(comm.place(), $(value!($kind, $arg)),+))
                }
            )+
        }
    };
}

operations! {
    /// Reduces the ranks' `send` element by element; the root gets the result in `recv`, which other ranks don't use.
    fn reduce<T: Reducible>(send: Slice, recv: SliceMut, op: Op, root: Root);

    /// As [`Comm::reduce`]: at the root, the result takes the place of what it gives.
    fn reduce_in_place<T: Reducible>(buffer: SliceMut, op: Op, root: Root);

    /// Copies the root's `buffer` into everybody's.
    fn broadcast<T: Scalar>(buffer: SliceMut, root: Root);

    /// Gathers the ranks' `send` in rank order in the root's `recv`, which is `world` times as long; other ranks don't use theirs.
    fn gather<T: Scalar>(send: Slice, recv: SliceMut, root: Root);

    /// Gives each rank its part of the root's `send`, which is `world` times as long as `recv`; other ranks don't use theirs.
    fn scatter<T: Scalar>(send: Slice, recv: SliceMut, root: Root);

    /// Reduces the ranks' `send`; each rank gets its part of the result, in rank order. `send` is `world` times as long as `recv`.
    fn reduce_scatter<T: Reducible>(send: Slice, recv: SliceMut, op: Op);

    /// As [`Comm::reduce_scatter`]: the rank's own part of `buffer` becomes the result, the others stay as they are.
    fn reduce_scatter_in_place<T: Reducible>(buffer: SliceMut, op: Op);

    /// Part `i` of rank `j`'s `send` becomes part `j` of rank `i`'s `recv`. Both hold one part for each rank.
    fn all_to_all<T: Scalar>(send: Slice, recv: SliceMut);

    /// As [`Comm::all_to_all`], in place.
    fn all_to_all_in_place<T: Scalar>(buffer: SliceMut);

    /// As [`Comm::all_gather`], with a count for every rank, the same on all ranks. Parts follow each other in `recv`.
    ///
    /// ```
    /// use vllm_cpp_sys::{CommGroup, Device, DeviceBuf, Queue, batch};
    ///
    /// let comms = CommGroup::new(2)?.into_comms()?;
    /// let queue = Queue::new(Device::cpu(0))?;
    /// let parts = [DeviceBuf::from_slice(Device::cpu(0), &[1i32])?, DeviceBuf::from_slice(Device::cpu(0), &[2i32, 3])?];
    /// let mut all = [DeviceBuf::<i32>::zeroed(Device::cpu(0), 3)?, DeviceBuf::<i32>::zeroed(Device::cpu(0), 3)?];
    /// let [first, second] = &mut all;
    /// batch(|b| {
    ///     b.all_gatherv(&comms[0], &queue, &parts[0], first, &[1, 2])?;
    ///     b.all_gatherv(&comms[1], &queue, &parts[1], second, &[1, 2])
    /// })?;
    /// assert_eq!(all[0].to_vec()?, [1, 2, 3]);
    /// assert_eq!(all[1].to_vec()?, [1, 2, 3]);
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    fn all_gatherv<T: Scalar>(send: Slice, recv: SliceMut, counts: Counts);

    /// As [`Comm::all_gatherv`]; the rank's own part lies in its place already.
    fn all_gatherv_in_place<T: Scalar>(buffer: SliceMut, counts: Counts);

    /// As [`Comm::reduce_scatter`], with a count for every rank, the same on all ranks. Parts follow each other in `send`.
    fn reduce_scatterv<T: Reducible>(send: Slice, recv: SliceMut, counts: Counts, op: Op);

    /// As [`Comm::all_to_all`], with a count for every pair. What a rank sends to another one is what that one receives from it.
    /// Parts follow each other.
    fn all_to_allv<T: Scalar>(send: Slice, send_counts: Counts, recv: SliceMut, recv_counts: Counts);
}
