//! Communicators through the safe types.

mod support;

use std::thread;
use std::time::{Duration, Instant};

use support::{CPU, async_queue};
use vllm_cpp_sys::*;

/// Runs `f` on a thread for each rank, and gives the results in rank order.
fn ranks<R: Send + 'static>(world: usize, f: impl Fn(Comm) -> R + Send + Sync + Clone + 'static) -> Vec<thread::Result<R>> {
    let comms = CommGroup::new(world).unwrap().into_comms().unwrap();
    let start = |comm| {
        let f = f.clone();
        thread::spawn(move || f(comm))
    };
    let threads: Vec<_> = comms.into_iter().map(start).collect();
    threads.into_iter().map(thread::JoinHandle::join).collect()
}

fn all<R: Send + 'static>(world: usize, f: impl Fn(Comm) -> R + Send + Sync + Clone + 'static) -> Vec<R> {
    ranks(world, f).into_iter().map(|outcome| outcome.unwrap()).collect()
}

fn queues() -> [Queue; 2] {
    [Queue::new(CPU).unwrap(), async_queue()]
}

#[test]
fn all_reduce_gives_every_rank_the_sum() {
    for world in [1, 2, 3, 4] {
        all(world, move |mut comm| {
            for queue in queues() {
                let send = DeviceBuf::from_fn(CPU, 1000, |i| (comm.rank() + i) as f32).unwrap();
                let mut recv = DeviceBuf::<f32>::zeroed(CPU, 1000).unwrap();
                comm.all_reduce(&queue, &send, &mut recv, ReduceOp::Sum).unwrap();
                let ranks_sum = (world * (world - 1) / 2) as f32;
                let expected: Vec<f32> = (0..1000).map(|i| (i * world) as f32 + ranks_sum).collect();
                assert_eq!(recv.to_vec().unwrap(), expected);
                comm.all_reduce_in_place(&queue, recv.slice_mut(..5), ReduceOp::Max).unwrap();
                assert_eq!(recv.to_vec().unwrap(), expected);
            }
        });
    }
}

#[test]
fn known_values() {
    all(2, |mut comm| {
        let queue = Queue::new(CPU).unwrap();
        let row = [[1.0f32, 2.0], [2.0, 4.0]][comm.rank()].map(Bf16::from_f32);
        let mut x = DeviceBuf::from_slice(CPU, &row).unwrap();
        comm.all_reduce_in_place(&queue, &mut x, ReduceOp::Sum).unwrap();
        assert_eq!(x.to_vec().unwrap(), [3.0, 6.0].map(Bf16::from_f32));
    });
    all(4, |mut comm| {
        let queue = Queue::new(CPU).unwrap();
        let rows = [[5, 1, 9, 2], [3, 8, 0, 2], [7, 8, 4, 2], [1, 6, 9, 2]];
        let mut x = DeviceBuf::<i32>::from_slice(CPU, &rows[comm.rank()]).unwrap();
        comm.all_reduce_in_place(&queue, &mut x, ReduceOp::Min).unwrap();
        assert_eq!(x.to_vec().unwrap(), [1, 1, 0, 2]);
    });
}

#[test]
fn all_gather_and_messages() {
    all(3, |mut comm| {
        let rank = comm.rank();
        for queue in queues() {
            let send = DeviceBuf::from_slice(CPU, &[rank as i64; 100]).unwrap();
            let mut recv = DeviceBuf::<i64>::zeroed(CPU, 300).unwrap();
            comm.all_gather(&queue, &send, &mut recv).unwrap();
            let expected: Vec<i64> = (0..300).map(|i| i / 100).collect();
            assert_eq!(recv.to_vec().unwrap(), expected);
            queue.copy(recv.slice_mut(rank * 100..(rank + 1) * 100), &send).unwrap();
            comm.all_gather_in_place(&queue, &mut recv).unwrap();
            assert_eq!(recv.to_vec().unwrap(), expected);

            let mut token = DeviceBuf::from_slice(CPU, &[9u8; 3]).unwrap();
            match rank {
                0 => comm.send(&queue, &token, 2).unwrap(),
                2 => {
                    queue.fill(&mut token, 0).unwrap();
                    comm.recv(&queue, &mut token, 0).unwrap();
                    assert_eq!(token.to_vec().unwrap(), [9; 3]);
                }
                _ => {}
            }
            comm.barrier(&queue).unwrap();
            queue.close().unwrap();
        }
    });
}

#[test]
fn a_length_that_does_not_fit_is_told_to_the_peers() {
    let begin = Instant::now();
    let outcomes = all(2, |mut comm| {
        let queue = Queue::new(CPU).unwrap();
        let send = DeviceBuf::<f32>::zeroed(CPU, 4).unwrap();
        let mut recv = DeviceBuf::<f32>::zeroed(CPU, 4 + comm.rank()).unwrap();
        let error = comm.all_reduce(&queue, &send, &mut recv, ReduceOp::Sum).unwrap_err();
        comm.barrier(&queue).unwrap(); // the group goes on
        error
    });
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(outcomes[0].status, Status::Mismatch);
    assert_eq!(outcomes[1].status, Status::InvalidArgument);
    assert_eq!(outcomes[1].message, "all_reduce sends 4 elements and receives 5");
}

#[test]
fn a_mismatch_leaves_the_buffers_and_the_group_alone() {
    all(2, |mut comm| {
        let queue = Queue::new(CPU).unwrap();
        let mut x = DeviceBuf::from_slice(CPU, &[1i32, 2, 3]).unwrap();
        let op = if comm.rank() == 0 { ReduceOp::Sum } else { ReduceOp::Max };
        assert_eq!(comm.all_reduce_in_place(&queue, &mut x, op).unwrap_err().status, Status::Mismatch);
        assert_eq!(x.to_vec().unwrap(), [1, 2, 3]);
        let sequence = 7 + comm.rank() as u64;
        assert_eq!(comm.call().sequence(sequence).barrier(&queue).unwrap_err().status, Status::Mismatch);
        comm.call().sequence(7).barrier(&queue).unwrap();
    });
}

#[test]
fn a_rank_that_panics_aborts_its_group() {
    let begin = Instant::now();
    let outcomes = ranks(3, |mut comm| {
        let queue = Queue::new(CPU).unwrap();
        let mut x = DeviceBuf::from_slice(CPU, &[1.0f32]).unwrap();
        if comm.rank() == 1 {
            panic!("rank 1 has a bug");
        }
        comm.all_reduce_in_place(&queue, &mut x, ReduceOp::Sum).unwrap_err()
    });
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(outcomes[1].is_err());
    for rank in [0, 2] {
        let error = outcomes[rank].as_ref().unwrap();
        assert_eq!(error.status, Status::Aborted);
        assert!(error.message.contains("rank 1 panicked"), "{error}");
    }
}

#[test]
fn a_rank_that_leaves_is_missed() {
    let mut comms = CommGroup::new(2).unwrap().into_comms().unwrap();
    let handle = comms[1].abort_handle();
    drop(comms.pop());
    assert_eq!(handle.abort("too late").unwrap_err().status, Status::FailedPrecondition);
    let queue = Queue::new(CPU).unwrap();
    assert_eq!(comms[0].barrier(&queue).unwrap_err().status, Status::PeerLost);
    assert_eq!(comms[0].query().unwrap_err().status, Status::PeerLost);
}

#[test]
fn a_forgotten_rank_ends_in_a_time_out() {
    let options = CommGroupOptions::default().timeout(Duration::from_millis(50));
    let mut comms = CommGroup::with_options(2, &options).unwrap().into_comms().unwrap();
    std::mem::forget(comms.pop());
    let queue = async_queue();
    comms[0].barrier(&queue).unwrap();
    let error = queue.synchronize().unwrap_err();
    assert_eq!(error.status, Status::Timeout);
    assert!(error.message.contains("rank 1"), "{error}");
}

#[test]
fn an_abort_ends_a_queued_operation() {
    let mut comms = CommGroup::new(2).unwrap().into_comms().unwrap();
    let queue = async_queue();
    let mut x = DeviceBuf::from_slice(CPU, &[1.0f32; 100_000]).unwrap();
    comms[0].all_reduce_in_place(&queue, &mut x, ReduceOp::Sum).unwrap();
    let handle = comms[1].abort_handle();
    thread::spawn(move || handle.abort("cancelled").unwrap());
    let error = queue.synchronize().unwrap_err();
    assert_eq!(error.status, Status::Aborted);
    assert!(error.message.contains("cancelled"), "{error}");
    assert_eq!(x.read().unwrap_err().status, Status::Aborted); // told once
    x.write().unwrap().fill(0.0);
}

#[test]
fn one_thread_drives_all_ranks_in_a_batch() {
    let comms = CommGroup::new(5).unwrap().into_comms().unwrap();
    for queue in queues() {
        let mut sums: Vec<_> = (0..5).map(|i| DeviceBuf::from_slice(CPU, &[i]).unwrap()).collect();
        let tokens: Vec<_> = (0..5).map(|i| DeviceBuf::from_slice(CPU, &[10 * i]).unwrap()).collect();
        let mut got: Vec<_> = (0..5).map(|_| DeviceBuf::<i32>::zeroed(CPU, 1).unwrap()).collect();
        let outcome = batch(|b| {
            for (rank, (comm, sum)) in comms.iter().zip(&mut sums).enumerate() {
                b.all_reduce_in_place(comm, &queue, sum, ReduceOp::Sum)?;
                b.send(comm, &queue, &tokens[rank], (rank + 1) % 5)?;
            }
            for (rank, (comm, got)) in comms.iter().zip(&mut got).enumerate() {
                b.recv(comm, &queue, got, (rank + 4) % 5)?;
                b.barrier(comm, &queue)?;
            }
            Ok(())
        });
        outcome.unwrap();
        for rank in 0..5 {
            assert_eq!(sums[rank].to_vec().unwrap(), [10]);
            assert_eq!(got[rank].to_vec().unwrap(), [10 * ((rank as i32 + 4) % 5)]);
        }
    }
}

#[test]
fn batches_in_a_capture() {
    let comms = CommGroup::new(2).unwrap().into_comms().unwrap();
    let (main, side) = (async_queue(), async_queue());
    let (fork, join) = (Event::new(CPU).unwrap(), Event::new(CPU).unwrap());
    let mut x = DeviceBuf::from_slice(CPU, &[1i32; 100]).unwrap();
    let mut y = DeviceBuf::from_slice(CPU, &[2i32; 100]).unwrap();
    for forks in ["not at all", "before the batch", "inside the batch"] {
        let capture = main.capture(|main| {
            let join_capture = || {
                fork.record(main)?;
                side.after_event(&fork)
            };
            if forks == "before the batch" {
                join_capture()?;
            }
            batch(|b| {
                b.all_reduce_in_place(&comms[0], main, &mut x, ReduceOp::Sum)?;
                if forks == "inside the batch" {
                    join_capture()?;
                }
                b.all_reduce_in_place(&comms[1], if forks == "not at all" { main } else { &side }, &mut y, ReduceOp::Sum)
            })?;
            if forks == "not at all" {
                return Ok(());
            }
            join.record(&side)?;
            main.after_event(&join)
        });
        let graph = capture.unwrap();
        x.write().unwrap().fill(1);
        y.write().unwrap().fill(2);
        graph.launch(&main).unwrap();
        assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![3; 100], vec![3; 100]), "{forks}");
    }
}

#[test]
fn a_queue_may_not_join_a_capture_under_its_open_batch() {
    let comms = CommGroup::new(1).unwrap().into_comms().unwrap();
    let (main, side) = (async_queue(), async_queue());
    let (fork, join) = (Event::new(CPU).unwrap(), Event::new(CPU).unwrap());
    let x = DeviceBuf::from_slice(CPU, &[1i32; 100]).unwrap();
    let mut y = DeviceBuf::<i32>::zeroed(CPU, 100).unwrap();
    let capture = main.capture(|main| {
        batch(|b| {
            b.all_reduce(&comms[0], &side, &x, &mut y, ReduceOp::Sum)?; // `side` is not in the capture
            fork.record(main)?;
            let error = side.after_event(&fork).unwrap_err();
            assert_eq!(error.status, Status::FailedPrecondition);
            assert!(error.message.contains("open batch"), "{error}");
            Ok(())
        })?;
        side.after_event(&fork)?; // now it may
        join.record(&side)?;
        main.after_event(&join)
    });
    assert_eq!(capture.unwrap().node_count().unwrap(), 0);
    assert_eq!(y.to_vec().unwrap(), [1; 100]); // it ran at the end of the batch
}

/// Two ranks on two queues work on parts of one buffer: no queue may wait for the other.
#[test]
fn collectives_on_interleaved_parts_of_a_buffer_meet() {
    let options = CommGroupOptions::default().timeout(Duration::from_secs(5));
    let mut comms = CommGroup::with_options(2, &options).unwrap().into_comms().unwrap();
    let (one, two) = (async_queue(), async_queue());
    let mut x = DeviceBuf::from_slice(CPU, &[1.0f32; 640]).unwrap();
    for (rank, queue) in [&one, &two].into_iter().enumerate() {
        for i in 0..40 {
            let at = 16 * i + 8 * rank;
            comms[rank].all_reduce_in_place(queue, x.slice_mut(at..at + 8), ReduceOp::Sum).unwrap();
        }
    }
    assert_eq!(x.to_vec().unwrap(), [2.0; 640]);

    let mut graphs = Vec::new();
    for (rank, queue) in [&one, &two].into_iter().enumerate() {
        let (comm, x) = (&mut comms[rank], &mut x);
        let capture = queue.capture(|q| {
            comm.all_reduce_in_place(q, x.slice_mut(8 * rank..8 * rank + 8), ReduceOp::Sum)?;
            comm.all_reduce_in_place(q, x.slice_mut(32 + 8 * rank..40 + 8 * rank), ReduceOp::Sum)
        });
        graphs.push(capture.unwrap());
    }
    graphs[0].launch(&one).unwrap();
    graphs[1].launch(&two).unwrap();
    assert_eq!(x.slice(0..48).to_vec().unwrap(), [[4.0; 16], [2.0; 16], [4.0; 16]].concat());
}

#[test]
fn an_abandoned_batch_runs_nothing() {
    let mut comms = CommGroup::new(1).unwrap().into_comms().unwrap();
    let queue = Queue::new(CPU).unwrap();
    let mut x = DeviceBuf::from_slice(CPU, &[1u8]).unwrap();
    let mut y = DeviceBuf::<u8>::zeroed(CPU, 1).unwrap();
    let error = batch(|b| {
        b.send(&comms[0], &queue, &x, 0)?;
        b.recv(&comms[0], &queue, &mut y, 0)?;
        Err::<(), _>(Error::new(Status::Aborted, "changed my mind"))
    });
    assert_eq!(error.unwrap_err().message, "changed my mind");
    assert_eq!(y.to_vec().unwrap(), [0]);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| batch::<()>(|_| panic!("in the batch"))));
    assert!(panicked.is_err());
    batch(|b| {
        b.send(&comms[0], &queue, &x, 0)?;
        b.recv(&comms[0], &queue, &mut y, 0)
    })
    .unwrap();
    assert_eq!(y.to_vec().unwrap(), [1]);
    let error = batch(|_| comms[0].all_reduce_in_place(&queue, &mut x, ReduceOp::Sum)).unwrap_err();
    assert!(error.message.contains("use the operations of the batch"));
}

#[test]
fn collectives_in_graphs_meet_at_each_launch() {
    all(2, |mut comm| {
        let queue = async_queue();
        let mut x = DeviceBuf::from_slice(CPU, &[1 + comm.rank() as i32; 10]).unwrap();
        let graph = queue.capture(|q| comm.all_reduce_in_place(q, &mut x, ReduceOp::Sum)).unwrap();
        for _ in 0..3 {
            graph.launch(&queue).unwrap();
        }
        assert_eq!(x.to_vec().unwrap(), [12; 10]); // 3, 6, 12
        comm.barrier(&queue).unwrap();
        queue.close().unwrap();
    });
}

#[test]
fn ranks_go_quietly_after_an_abort_and_a_loss_and_close_says_why() {
    let comms = CommGroup::new(3).unwrap().into_comms().unwrap();
    let handle = comms[1].abort_handle();
    comms[0].abort("enough").unwrap();
    for comm in comms {
        let error = comm.close().unwrap_err();
        assert!(error.status == Status::Aborted && error.message.contains("enough"), "{error}");
    }
    assert_eq!(handle.abort("late").unwrap_err().status, Status::FailedPrecondition);

    let mut comms = CommGroup::new(2).unwrap().into_comms().unwrap();
    let queue = Queue::new(CPU).unwrap();
    drop(comms.remove(1)); // a peer that has gone
    assert_eq!(comms[0].barrier(&queue).unwrap_err().status, Status::PeerLost);
    assert_eq!(comms.remove(0).close().unwrap_err().status, Status::PeerLost);
    CommGroup::new(1).unwrap().into_comms().unwrap().remove(0).close().unwrap();
}

/// That the modes differ in what a wait costs is for the suite in C.
#[test]
fn ranks_wait_in_any_mode_of_the_group_or_of_a_call() {
    for mode in [WaitMode::Default, WaitMode::Block, WaitMode::Yield, WaitMode::Spin] {
        let comms = CommGroup::with_options(2, &CommGroupOptions::default().wait(mode)).unwrap().into_comms().unwrap();
        let rank = |mut comm: Comm| {
            let queue = Queue::new(CPU).unwrap();
            let mut sum = DeviceBuf::from_slice(CPU, &[1i32]).unwrap();
            comm.all_reduce_in_place(&queue, &mut sum, ReduceOp::Sum).unwrap();
            comm.call().wait(WaitMode::Block).all_reduce_in_place(&queue, &mut sum, ReduceOp::Sum).unwrap();
            sum.to_vec().unwrap()
        };
        let threads: Vec<_> = comms.into_iter().map(|comm| thread::spawn(move || rank(comm))).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), [4]);
        }
    }
}

#[test]
fn a_group_is_divided_and_goes_on() {
    all(4, |mut comm| {
        let queue = Queue::new(CPU).unwrap();
        let color = (comm.rank() != 3).then_some(comm.rank() as u32 % 2);
        let part = comm.split(color, -(comm.rank() as i32)).unwrap();
        let Some(mut part) = part else {
            assert_eq!(comm.rank(), 3);
            return comm.barrier(&queue).unwrap();
        };
        // Ranks 0 and 2 in one group, the larger key last; rank 1 alone.
        assert_eq!((part.rank(), part.world()), [(1, 2), (0, 1), (0, 2)][comm.rank()]);
        let mut x = DeviceBuf::<i32>::from_slice(CPU, &[comm.rank() as i32]).unwrap();
        part.all_reduce_in_place(&queue, &mut x, ReduceOp::Sum).unwrap();
        assert_eq!(x.to_vec().unwrap(), [if comm.rank() == 1 { 1 } else { 2 }]);
        comm.barrier(&queue).unwrap();
    });
}

#[test]
fn a_color_that_is_no_number_of_c_is_refused_and_told() {
    let statuses = all(2, |mut comm| {
        let color = if comm.rank() == 0 { u32::MAX } else { 0 };
        comm.split(Some(color), 0).unwrap_err().status
    });
    assert_eq!(statuses, [Status::InvalidArgument, Status::Mismatch]);
}

#[test]
fn health_and_guarantees_are_told() {
    let mut comms = CommGroup::new(2).unwrap().into_comms().unwrap();
    let told = comms[0].guarantees().unwrap();
    assert!(told.same_bits && told.wide_halves && told.nan_propagates);
    assert!(told.mismatch_found && told.send_is_matched && told.quiet_return);
    let health = comms[0].health().unwrap();
    assert_eq!((health.world, health.alive, health.last_sequence, health.poison), (2, 2, 0, None));
    comms.pop().unwrap().abort("enough").unwrap();
    let health = comms[0].health().unwrap();
    assert_eq!((health.alive, health.poison), (1, Some(Status::Aborted)));
}

#[test]
fn ranks_leave_politely_together_or_hear_who_did_not_come() {
    all(3, |comm| comm.finalize().unwrap());
    let comms = CommGroup::with_options(2, &CommGroupOptions::default().timeout(Duration::from_millis(30))).unwrap();
    let first = comms.into_comms().unwrap().remove(0);
    assert!(matches!(first.finalize().unwrap_err().status, Status::Timeout | Status::PeerLost));
}
