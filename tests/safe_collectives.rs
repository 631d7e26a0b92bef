//! Collectives with roots, parts and counts through the safe types, against a plain model.

mod support;

use std::thread;

use support::{CPU, async_queue};
use vllm_cpp_sys::*;

const ROOTS: [usize; 2] = [0, 1];

/// Runs `f` on a thread for each rank of groups of 1 to 4, on a synchronous and an asynchronous queue.
fn everywhere(f: impl Fn(&mut Comm, &Queue) + Send + Sync + Clone + 'static) {
    for world in 1..=4 {
        let start = |mut comm: Comm| {
            let f = f.clone();
            thread::spawn(move || {
                f(&mut comm, &Queue::new(CPU).unwrap());
                f(&mut comm, &async_queue());
            })
        };
        let threads: Vec<_> = CommGroup::new(world).unwrap().into_comms().unwrap().into_iter().map(start).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Element `i` of what a rank gives.
fn given(rank: usize, i: usize) -> i32 {
    (rank * 1000 + i * 7 + 1) as i32
}

fn give(rank: usize, len: usize) -> DeviceBuf<i32> {
    DeviceBuf::from_fn(CPU, len, |i| given(rank, i)).unwrap()
}

fn sum(world: usize, i: usize) -> i32 {
    (0..world).map(|rank| given(rank, i)).sum()
}

fn room(len: usize) -> DeviceBuf<i32> {
    DeviceBuf::from_fn(CPU, len, |_| -1).unwrap()
}

/// Small enough to travel with the call, and not.
const COUNTS: [usize; 3] = [0, 5, 3001];

fn roots(world: usize) -> impl Iterator<Item = usize> {
    ROOTS.into_iter().filter(move |root| *root < world)
}

#[test]
fn a_root_gets_the_reduction() {
    everywhere(|comm, queue| {
        let (rank, world) = (comm.rank(), comm.world());
        for (count, root) in COUNTS.into_iter().flat_map(|count| roots(world).map(move |root| (count, root))) {
            let expected: Vec<_> = (0..count).map(|i| sum(world, i)).collect();
            let (send, mut recv) = (give(rank, count), room(count));
            comm.reduce(queue, &send, &mut recv, ReduceOp::Sum, root).unwrap();
            assert_eq!(recv.to_vec().unwrap(), if rank == root { expected.clone() } else { vec![-1; count] });
            let mut both = give(rank, count);
            comm.reduce_in_place(queue, &mut both, ReduceOp::Sum, root).unwrap();
            assert_eq!(both.to_vec().unwrap(), if rank == root { expected } else { send.to_vec().unwrap() });
        }
    });
}

#[test]
fn a_root_gives_to_all() {
    everywhere(|comm, queue| {
        let (rank, world) = (comm.rank(), comm.world());
        for (count, root) in COUNTS.into_iter().flat_map(|count| roots(world).map(move |root| (count, root))) {
            let mut buffer = give(rank, count);
            comm.broadcast(queue, &mut buffer, root).unwrap();
            assert_eq!(buffer.to_vec().unwrap(), give(root, count).to_vec().unwrap());
            let send = give(rank, count * world);
            let mut recv = room(count);
            comm.scatter(queue, &send, &mut recv, root).unwrap();
            let expected: Vec<_> = (0..count).map(|i| given(root, rank * count + i)).collect();
            assert_eq!(recv.to_vec().unwrap(), expected);
        }
    });
}

#[test]
fn a_root_gathers() {
    everywhere(|comm, queue| {
        let (rank, world) = (comm.rank(), comm.world());
        for (count, root) in COUNTS.into_iter().flat_map(|count| roots(world).map(move |root| (count, root))) {
            let mut recv = room(if rank == root { count * world } else { 0 });
            comm.gather(queue, &give(rank, count), &mut recv, root).unwrap();
            let expected: Vec<_> = (0..recv.len()).map(|i| given(i / count.max(1), i % count.max(1))).collect();
            assert_eq!(recv.to_vec().unwrap(), expected);
        }
    });
}

#[test]
fn parts_of_a_reduction() {
    everywhere(|comm, queue| {
        let (rank, world) = (comm.rank(), comm.world());
        for count in COUNTS {
            let expected: Vec<_> = (0..count).map(|i| sum(world, rank * count + i)).collect();
            let mut both = give(rank, count * world);
            let mut recv = room(count);
            comm.reduce_scatter(queue, &both, &mut recv, ReduceOp::Sum).unwrap();
            assert_eq!(recv.to_vec().unwrap(), expected);
            comm.reduce_scatter_in_place(queue, &mut both, ReduceOp::Sum).unwrap();
            let own = rank * count..(rank + 1) * count;
            let kept = |i: usize| if own.contains(&i) { sum(world, i) } else { given(rank, i) };
            assert_eq!(both.to_vec().unwrap(), (0..count * world).map(kept).collect::<Vec<_>>());
        }
    });
}

#[test]
fn all_ranks_exchange_their_parts() {
    everywhere(|comm, queue| {
        let (rank, world) = (comm.rank(), comm.world());
        for count in COUNTS {
            let expected: Vec<_> = (0..count * world).map(|i| given(i / count, rank * count + i % count)).collect();
            let mut both = give(rank, count * world);
            let mut recv = room(count * world);
            comm.all_to_all(queue, &both, &mut recv).unwrap();
            assert_eq!(recv.to_vec().unwrap(), expected);
            comm.all_to_all_in_place(queue, &mut both).unwrap();
            assert_eq!(both.to_vec().unwrap(), expected);
        }
    });
}

/// Uneven counts, nothing among them.
fn counts(world: usize, size: usize) -> Vec<usize> {
    (0..world).map(|rank| rank * size).collect()
}

#[test]
fn a_count_for_every_rank() {
    everywhere(|comm, queue| {
        let (rank, world) = (comm.rank(), comm.world());
        for size in [3, 700] {
            let counts = counts(world, size);
            let (all, own) = (counts.iter().sum(), counts[rank]);
            let before: usize = counts[..rank].iter().sum();
            let gathered: Vec<_> = (0..world).flat_map(|r| (0..r * size).map(move |i| given(r, i))).collect();
            let mut recv = room(all);
            comm.all_gatherv(queue, &give(rank, own), &mut recv, &counts).unwrap();
            assert_eq!(recv.to_vec().unwrap(), gathered);
            let placed = |i: usize| if (before..before + own).contains(&i) { given(rank, i - before) } else { -1 };
            let mut both = DeviceBuf::from_fn(CPU, all, placed).unwrap();
            comm.all_gatherv_in_place(queue, &mut both, &counts).unwrap();
            assert_eq!(both.to_vec().unwrap(), gathered);
            let mut part = room(own);
            comm.reduce_scatterv(queue, &give(rank, all), &mut part, &counts, ReduceOp::Sum).unwrap();
            assert_eq!(part.to_vec().unwrap(), (before..before + own).map(|i| sum(world, i)).collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_count_for_every_pair() {
    everywhere(|comm, queue| {
        let (rank, world) = (comm.rank(), comm.world());
        let between = |from: usize, to: usize| (from * 3 + to) * 100;
        let sent: Vec<_> = (0..world).map(|to| between(rank, to)).collect();
        let received: Vec<_> = (0..world).map(|from| between(from, rank)).collect();
        let mut recv = room(received.iter().sum());
        comm.all_to_allv(queue, &give(rank, sent.iter().sum()), &sent, &mut recv, &received).unwrap();
        let begin = |from: usize| (0..rank).map(|to| between(from, to)).sum::<usize>();
        let part = |from: usize| (0..between(from, rank)).map(move |i| given(from, begin(from) + i));
        assert_eq!(recv.to_vec().unwrap(), (0..world).flat_map(part).collect::<Vec<_>>());
    });
}

#[test]
fn one_thread_drives_a_broadcast() {
    let comms = CommGroup::new(2).unwrap().into_comms().unwrap();
    let queue = async_queue();
    let (mut a, mut b) = (give(0, 9), give(1, 9));
    batch(|batch| {
        batch.broadcast(&comms[0], &queue, &mut a, 1)?;
        batch.broadcast(&comms[1], &queue, &mut b, 1)
    })
    .unwrap();
    assert_eq!(a.to_vec().unwrap(), give(1, 9).to_vec().unwrap());
    assert_eq!(b.to_vec().unwrap(), a.to_vec().unwrap());
}

/// Rank 0 makes a bad call, which is refused with `status`; its peer hears of it, and both go on.
fn refused(bad: impl Fn(&mut Comm, &Queue) -> Result<()>, good: impl Fn(&mut Comm, &Queue) -> Result<()> + Send + 'static) {
    let mut comms = CommGroup::new(2).unwrap().into_comms().unwrap();
    let mut peer = comms.pop().unwrap();
    let other = thread::spawn(move || {
        let queue = Queue::new(CPU).unwrap();
        let error = good(&mut peer, &queue).unwrap_err();
        peer.barrier(&queue).unwrap();
        error
    });
    let queue = Queue::new(CPU).unwrap();
    assert_eq!(bad(&mut comms[0], &queue).unwrap_err().status, Status::InvalidArgument);
    comms[0].barrier(&queue).unwrap();
    assert_eq!(other.join().unwrap().status, Status::Mismatch);
}

#[test]
fn lengths_that_do_not_fit_are_told_to_the_peers() {
    refused(
        |comm, queue| comm.scatter(queue, &give(0, 7), &mut room(4), 0),
        |comm, queue| comm.scatter(queue, &give(1, 0), &mut room(4), 0),
    );
    refused(
        |comm, queue| comm.reduce_scatter_in_place(queue, &mut give(0, 7), ReduceOp::Sum),
        |comm, queue| comm.reduce_scatter_in_place(queue, &mut give(1, 8), ReduceOp::Sum),
    );
    refused(
        |comm, queue| comm.all_gatherv(queue, &give(0, 1), &mut room(3), &[1]),
        |comm, queue| comm.all_gatherv(queue, &give(1, 2), &mut room(3), &[1, 2]),
    );
    refused(
        |comm, queue| comm.all_to_allv(queue, &give(0, 4), &[2, 1], &mut room(4), &[2, 2]),
        |comm, queue| comm.all_to_allv(queue, &give(1, 4), &[2, 2], &mut room(4), &[2, 2]),
    );
    refused(
        |comm, queue| comm.reduce_scatterv(queue, &give(0, 4), &mut room(1), &[usize::MAX, 5], ReduceOp::Sum),
        |comm, queue| comm.reduce_scatterv(queue, &give(1, 4), &mut room(2), &[2, 2], ReduceOp::Sum),
    );
}

#[test]
fn a_root_that_is_no_rank_is_refused_and_told() {
    refused(
        |comm, queue| comm.broadcast(queue, &mut give(0, 4), usize::MAX),
        |comm, queue| comm.broadcast(queue, &mut give(1, 4), 0),
    );
    refused(
        |comm, queue| comm.gather(queue, &give(0, 4), &mut room(8), 2),
        |comm, queue| comm.gather(queue, &give(1, 4), &mut room(8), 1),
    );
}

#[test]
fn different_roots_and_counts_are_a_mismatch_and_touch_nothing() {
    let mut comms = CommGroup::new(2).unwrap().into_comms().unwrap();
    let run = |mut comm: Comm, root: usize, counts: [usize; 2]| {
        thread::spawn(move || {
            let queue = Queue::new(CPU).unwrap();
            let mut buffer = give(comm.rank(), 4);
            let rooted = comm.broadcast(&queue, &mut buffer, root).unwrap_err();
            let rank = comm.rank();
            let counted = comm.reduce_scatterv(&queue, &give(rank, 4), buffer.slice_mut(..counts[rank]), &counts, ReduceOp::Sum);
            assert_eq!((rooted.status, counted.unwrap_err().status), (Status::Mismatch, Status::Mismatch));
            assert_eq!(buffer.to_vec().unwrap(), give(rank, 4).to_vec().unwrap());
        })
    };
    let second = run(comms.pop().unwrap(), 1, [1, 3]);
    let first = run(comms.pop().unwrap(), 0, [2, 2]);
    first.join().unwrap();
    second.join().unwrap();
}
