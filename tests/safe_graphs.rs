//! Graphs through the safe types.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use support::{CPU, Gate, async_queue, delay, fail_before};
use vllm_cpp_sys::*;

#[test]
fn a_captured_copy_runs_at_launch_and_sees_changed_bytes() {
    for queue in [Queue::new(CPU).unwrap(), async_queue()] {
        let mut source = DeviceBuf::from_slice(CPU, &[1u8, 2]).unwrap();
        let mut target = DeviceBuf::<u8>::zeroed(CPU, 2).unwrap();
        let graph = queue.capture(|q| q.copy(&mut target, &source)).unwrap();
        assert_eq!(graph.node_count().unwrap(), 1);
        queue.synchronize().unwrap();
        assert_eq!(*target.read().unwrap(), [0, 0]);
        for round in [3u8, 4, 5] {
            source.copy_from_slice(&[round, round]).unwrap();
            graph.launch(&queue).unwrap();
            assert_eq!(*target.read().unwrap(), [round, round]);
        }
    }
}

#[test]
fn a_graph_owns_its_buffers() {
    let mut result = PinnedBuf::<u32>::zeroed(CPU, 1000).unwrap();
    let graph = {
        let queue = async_queue();
        let source = DeviceBuf::from_slice(CPU, &[6u32; 1000]).unwrap();
        let mut middle = DeviceBuf::<u32>::zeroed(CPU, 1000).unwrap();
        let capture = queue.capture(|q| {
            q.copy(&mut middle, &source)?;
            q.copy(&mut result, &middle)
        });
        capture.unwrap()
    };
    let other = async_queue();
    delay(&other, 20).unwrap();
    graph.launch(&other).unwrap();
    drop(graph);
    drop(other);
    assert_eq!(result.to_vec().unwrap(), [6; 1000]); // waits for a launch of a graph that is gone
}

#[test]
fn a_view_keeps_launches_out() {
    let queue = async_queue();
    let source = DeviceBuf::from_slice(CPU, &[1u8; 4]).unwrap();
    let mut target = DeviceBuf::<u8>::zeroed(CPU, 4).unwrap();
    let graph = queue.capture(|q| q.copy(&mut target, &source)).unwrap();

    let view = target.write().unwrap();
    let error = graph.launch(&queue).unwrap_err();
    assert_eq!(error.status, Status::FailedPrecondition);
    assert!(error.message.contains("a view of one of the graph's buffers is open"), "{error}");
    drop(view);
    let reading = source.read().unwrap(); // the graph only reads it too
    graph.launch(&queue).unwrap();
    drop(reading);
    std::mem::forget(target.read().unwrap());
    assert_eq!(graph.launch(&queue).unwrap_err().status, Status::FailedPrecondition);
    assert_eq!(graph.launch(&queue).unwrap_err().status, Status::FailedPrecondition);
    queue.close().unwrap();
}

#[test]
fn eager_work_and_launches_on_different_queues_are_ordered() {
    let (first, second) = (async_queue(), async_queue());
    let mut source = DeviceBuf::from_slice(CPU, &[0u32; 256]).unwrap();
    let mut target = DeviceBuf::<u32>::zeroed(CPU, 256).unwrap();
    let graph = first.capture(|q| q.copy(&mut target, &source)).unwrap();
    for round in 1..20u32 {
        second
            .host_task((&mut source,), move |(x,)| {
                std::thread::sleep(Duration::from_micros(300));
                x.fill(round);
                Ok(())
            })
            .unwrap();
        graph.launch(&first).unwrap(); // after the write on the second queue
        let mut seen = PinnedBuf::<u32>::zeroed(CPU, 256).unwrap();
        second.copy(&mut seen, &target).unwrap(); // after the launch
        assert_eq!(seen.to_vec().unwrap(), [round; 256]);
    }
}

#[test]
fn a_launch_waits_for_an_operation_in_submission() {
    let (eager, launching) = (Queue::new(CPU).unwrap(), async_queue());
    let mut x = DeviceBuf::<u32>::zeroed(CPU, 1).unwrap();
    let mut y = DeviceBuf::<u32>::zeroed(CPU, 1).unwrap();
    let graph = launching.capture(|q| q.copy(&mut y, &x)).unwrap();
    let running = Gate::default();
    std::thread::scope(|scope| {
        let started = running.clone();
        let task = move |(x,): (&mut [u32],)| {
            started.open();
            std::thread::sleep(Duration::from_millis(50));
            x[0] = 1;
            Ok(())
        };
        scope.spawn(|| eager.host_task((&mut x,), task).unwrap()); // runs in the call
        running.wait();
        graph.launch(&launching).unwrap();
    });
    assert_eq!(y.to_vec().unwrap(), [1]);
}

#[test]
fn two_graphs_that_share_a_buffer_are_ordered() {
    let (first, second) = (async_queue(), async_queue());
    let mut shared = DeviceBuf::<u32>::zeroed(CPU, 1).unwrap();
    let add = |(x,): (&mut [u32],)| {
        let before = x[0];
        std::thread::sleep(Duration::from_micros(200));
        x[0] = before + 1;
        Ok(())
    };
    let one = first.capture(|q| q.host_task((&mut shared,), add)).unwrap();
    let two = second.capture(|q| q.host_task((&mut shared,), add)).unwrap();
    std::thread::scope(|scope| {
        for (graph, queue) in [(&one, &first), (&two, &second)] {
            scope.spawn(move || (0..50).try_for_each(|_| graph.launch(queue)).unwrap());
        }
    });
    assert_eq!(shared.read().unwrap()[0], 100);
}

#[test]
fn branches_overlap_and_join() {
    let (main, side) = (async_queue(), async_queue());
    let (fork, join) = (Event::new(CPU).unwrap(), Event::new(CPU).unwrap());
    let (here, there) = (Gate::default(), Gate::default());
    let capture = main.capture(|q| {
        fork.record(q)?;
        side.after_event(&fork)?;
        let (own, other) = (here.clone(), there.clone());
        q.host_func(move || {
            own.open();
            other.wait();
            Ok(())
        })?;
        let (own, other) = (there.clone(), here.clone());
        side.host_func(move || {
            own.open();
            other.wait();
            Ok(())
        })?;
        join.record(&side)?;
        q.after_event(&join)
    });
    let graph = capture.unwrap();
    let begin = std::time::Instant::now();
    graph.launch(&main).unwrap();
    main.synchronize().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(5), "the branches did not overlap");
}

#[test]
fn branches_that_use_the_same_bytes_are_ordered() {
    let (main, side) = (async_queue(), async_queue());
    let (fork, join) = (Event::new(CPU).unwrap(), Event::new(CPU).unwrap());
    let mut x = DeviceBuf::<u32>::zeroed(CPU, 64).unwrap();
    let mut y = DeviceBuf::<u32>::zeroed(CPU, 64).unwrap();
    let capture = main.capture(|q| {
        fork.record(q)?;
        side.after_event(&fork)?;
        q.host_task((&mut x,), |(x,)| {
            std::thread::sleep(Duration::from_millis(10));
            x.fill(8);
            Ok(())
        })?;
        side.copy(&mut y, &x)?; // no event says so, but it comes after the task
        join.record(&side)?;
        q.after_event(&join)
    });
    capture.unwrap().launch(&main).unwrap();
    assert_eq!(y.to_vec().unwrap(), [8; 64]);
}

#[test]
fn an_unjoined_fork_is_refused_and_named() {
    let (main, side) = (async_queue(), async_queue());
    let fork = Event::new(CPU).unwrap();
    let mut x = DeviceBuf::<u8>::zeroed(CPU, 4).unwrap();
    let capture = main.capture(|q| {
        fork.record(q)?;
        side.after_event(&fork)?;
        side.fill(&mut x, 1)
    });
    let error = capture.unwrap_err();
    assert_eq!(error.status, Status::FailedPrecondition);
    assert!(error.message.contains(&side.id().to_string()), "{error}");
    main.fill(&mut x, 2).unwrap();
    side.fill(&mut x, 3).unwrap();
    assert_eq!(x.to_vec().unwrap(), [3; 4]);
}

#[test]
fn an_error_or_a_panic_aborts_the_capture() {
    let queue = async_queue();
    let mut x = DeviceBuf::<u8>::zeroed(CPU, 4).unwrap();
    let error = queue.capture(|q| {
        q.fill(&mut x, 1)?;
        Err(Error::new(Status::Unsupported, "not today"))
    });
    assert_eq!(error.unwrap_err().message, "not today");
    let panicked = catch_unwind(AssertUnwindSafe(|| queue.capture(|_| panic!("in the capture"))));
    assert!(panicked.is_err() && !queue.is_capturing());
    let nested = queue.capture(|q| q.capture(|_| Ok(())).map(|_| ()));
    assert!(nested.unwrap_err().message.contains("inside another capture"));
    queue.fill(&mut x, 2).unwrap();
    assert_eq!(x.to_vec().unwrap(), [2; 4]);
}

#[test]
fn a_function_that_runs_once_is_refused_in_a_capture() {
    let queue = async_queue();
    let error = queue.capture(|q| q.host_func_once(|| Ok(()))).unwrap_err();
    assert_eq!(error.status, Status::FailedPrecondition);
    assert!(error.message.contains("use host_func in a capture"));
}

#[test]
fn the_stored_graph_owns_its_buffers_and_is_replaced() {
    let queue = async_queue();
    assert_eq!(queue.replay().unwrap_err().status, Status::FailedPrecondition);
    let mut result = PinnedBuf::<u8>::zeroed(CPU, 64).unwrap();
    for value in [3u8, 4] {
        let source = DeviceBuf::from_slice(CPU, &[value; 64]).unwrap();
        queue.capture_stored(|q| q.copy(&mut result, &source)).unwrap();
        drop(source);
        delay(&queue, 5).unwrap();
        queue.replay().unwrap();
        queue.replay().unwrap();
    }
    assert_eq!(result.to_vec().unwrap(), [4; 64]);
    let kept = queue.capture_stored(|_| Err(Error::new(Status::Aborted, "keep the old one")));
    assert!(kept.is_err());
    queue.replay().unwrap();
    queue.close().unwrap();
}

#[test]
fn buffers_are_usable_inside_their_capture() {
    let (main, other) = (async_queue(), async_queue());
    let mut x = DeviceBuf::<u8>::zeroed(CPU, 4).unwrap();
    let mut y = DeviceBuf::<u8>::zeroed(CPU, 4).unwrap();
    delay(&main, 20).unwrap();
    main.fill(&mut x, 5).unwrap(); // pending on the queue that begins to capture
    main.fill(&mut y, 5).unwrap();
    let capture = main.capture(|q| {
        other.fill(&mut y, 6)?; // comes after
        assert_eq!(x.to_vec()?, [5; 4]); // waits by asking: a capture allows no more
        other.fill(&mut x, 6)?; // runs now
        q.fill(x.slice_mut(0..2), 7)
    });
    let graph = capture.unwrap();
    assert_eq!(y.to_vec().unwrap(), [6; 4]);
    assert_eq!(x.to_vec().unwrap(), [6; 4]);
    graph.launch(&main).unwrap();
    assert_eq!(x.to_vec().unwrap(), [7, 7, 6, 6]);
}

#[test]
fn closures_go_with_the_graph() {
    let queue = Queue::new(CPU).unwrap();
    let (sender, receiver) = mpsc::channel();
    let graph = queue.capture(|q| q.host_func(move || sender.send(1).map_err(|_| Error::new(Status::Aborted, "gone")))).unwrap();
    graph.launch(&queue).unwrap();
    graph.launch(&queue).unwrap();
    assert!(receiver.try_recv().is_ok() && receiver.try_recv().is_ok());
    drop(graph);
    assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}

#[test]
fn a_failed_launch_is_reported_for_every_part_and_until_the_next_one() {
    let mut x = DeviceBuf::<u8>::zeroed(CPU, 64).unwrap();
    let mut y = DeviceBuf::<u8>::zeroed(CPU, 64).unwrap();
    let good = async_queue();
    let capture = good.capture(|q| {
        q.fill(&mut x, 7)?;
        q.fill(&mut y, 7)
    });
    let graph = capture.unwrap();
    let launch_and_fail = || {
        let bad = async_queue();
        fail_before(&bad, |q| graph.launch(q));
    };
    launch_and_fail();
    let failed = Err(Status::NotFound);
    let read = |x: &DeviceBuf<u8>| x.to_vec().map(|bytes| bytes[0]).map_err(|error| error.status);
    assert_eq!(read(&x), failed);
    assert_eq!(read(&x), Ok(0));
    assert_eq!(y.slice(0..32).to_vec().unwrap_err().status, Status::NotFound);
    assert_eq!(read(&y), failed);
    assert_eq!(read(&y), Ok(0));

    launch_and_fail();
    assert_eq!(read(&x), failed);
    graph.launch(&good).unwrap();
    assert_eq!((read(&x), read(&y)), (Ok(7), Ok(7)));

    launch_and_fail();
    drop(graph);
    assert_eq!(read(&y), failed);
    assert_eq!((read(&y), read(&x)), (Ok(7), failed));
}

#[test]
fn a_launch_reports_failed_input_once() {
    let (first, second, third) = (async_queue(), async_queue(), async_queue());
    let mut x = DeviceBuf::<u8>::zeroed(CPU, 64).unwrap();
    let mut y = DeviceBuf::<u8>::zeroed(CPU, 32).unwrap();
    let capture = second.capture(|q| {
        q.fill(x.slice_mut(0..16), 5)?; // what it writes first is no input
        q.copy(&mut y, x.slice(0..32))
    });
    let graph = capture.unwrap();
    fail_before(&first, |q| {
        q.fill(x.slice_mut(0..16), 1)?;
        q.fill(x.slice_mut(32..64), 1)?;
        q.fill(&mut y, 1)
    });
    graph.launch(&second).unwrap();
    assert_eq!(y.to_vec().unwrap()[0], 5);
    assert_eq!(x.slice(0..16).to_vec().unwrap(), [5; 16]); // written since
    assert_eq!(x.slice(32..64).to_vec().unwrap_err().status, Status::NotFound);
    fail_before(&third, |q| q.fill(x.slice_mut(16..32), 1));
    let error = graph.launch(&second).unwrap_err();
    assert_eq!((error.status, error.message.as_str()), (Status::NotFound, "stop"));
    graph.launch(&second).unwrap();
    second.synchronize().unwrap();
}

#[test]
fn a_launch_reports_what_a_launch_left_unwritten() {
    let (one, two, good) = (async_queue(), async_queue(), async_queue());
    let mut x = DeviceBuf::<u32>::zeroed(CPU, 4).unwrap();
    let mut y = DeviceBuf::<u32>::zeroed(CPU, 4).unwrap();
    let add_one = |(x,): (&mut [u32],)| {
        x.iter_mut().for_each(|x| *x += 1);
        Ok(())
    };
    let count = good.capture(|q| q.host_task((&mut x,), add_one)).unwrap();
    let copy = good.capture(|q| q.copy(&mut y, &x)).unwrap();
    fail_before(&one, |q| count.launch(q));
    assert_eq!(copy.launch(&good).unwrap_err().status, Status::NotFound);
    copy.launch(&good).unwrap();
    fail_before(&two, |q| count.launch(q));
    assert_eq!(count.launch(&good).unwrap_err().status, Status::NotFound); // reads what it writes
    count.launch(&good).unwrap();
    copy.launch(&good).unwrap();
    assert_eq!(y.to_vec().unwrap(), [1; 4]);
}

/// Captures when the thread-local values of its thread are dropped.
struct Late(Queue, mpsc::Sender<Result<()>>);

impl Drop for Late {
    fn drop(&mut self) {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.0.capture(|q| q.host_func(|| Ok(()))).map(|_| ())));
        let outcome = outcome.unwrap_or_else(|_| Err(Error::new(Status::Internal, "it panicked")));
        self.1.send(outcome.and_then(|()| self.0.host_func(|| Ok(())))).unwrap();
    }
}

#[test]
fn a_capture_at_the_end_of_a_thread_is_refused_or_works() {
    thread_local! { static LATE: std::cell::RefCell<Option<Late>> = const { std::cell::RefCell::new(None) }; }
    for captures_first in [false, true] {
        let (sender, receiver) = mpsc::channel();
        let work = move || {
            let early = async_queue();
            if captures_first {
                early.capture(|_| Ok(())).unwrap();
            }
            LATE.set(Some(Late(async_queue(), sender)));
            early.capture(|_| Ok(())).unwrap();
        };
        std::thread::spawn(work).join().unwrap();
        match receiver.recv().unwrap() {
            Ok(()) => {}
            Err(error) => assert_eq!((error.status, error.message.as_str()), (Status::FailedPrecondition, "this thread is ending")),
        }
    }
}

#[test]
fn a_capture_leaves_the_queues_of_other_captures_alone() {
    let (own, other) = (async_queue(), async_queue());
    let mut x = DeviceBuf::<u8>::zeroed(CPU, 4).unwrap();
    let mut y = DeviceBuf::<u8>::zeroed(CPU, 4).unwrap();
    let (began, end) = (Gate::default(), Gate::default());
    std::thread::scope(|scope| {
        let their = scope.spawn(|| {
            other.capture(|_| {
                began.open();
                end.wait();
                Ok(())
            })
        });
        began.wait();
        let capture = own.capture(|q| {
            assert_eq!(other.fill(&mut x, 1).unwrap_err().status, Status::FailedPrecondition);
            q.fill(&mut y, 1)
        });
        end.open();
        their.join().unwrap().unwrap();
        let view = x.write().unwrap();
        capture.unwrap().launch(&own).unwrap(); // `x` is no part of it
        drop(view);
    });
    assert_eq!(y.to_vec().unwrap(), [1; 4]);
}

#[test]
fn a_captured_function_runs_at_each_of_five_launches() {
    for queue in [Queue::new(CPU).unwrap(), async_queue()] {
        let runs = Arc::new(AtomicU32::new(0));
        let counter = runs.clone();
        let capture = queue.capture(|q| {
            q.host_func(move || {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        });
        let graph = capture.unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 0);
        (0..5).for_each(|_| graph.launch(&queue).unwrap());
        queue.synchronize().unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 5);
        drop(graph);
        queue.close().unwrap();
        assert_eq!(Arc::strong_count(&runs), 1);
    }
}

#[test]
fn a_panic_in_a_captured_function_is_an_error_of_the_launch() {
    let synchronous = Queue::new(CPU).unwrap();
    let graph = synchronous.capture(|q| q.host_func(|| panic!("in a graph"))).unwrap();
    for _ in 0..2 {
        let error = graph.launch(&synchronous).unwrap_err();
        assert!(error.status == Status::Internal && error.message.contains("in a graph"), "{error}");
    }
    let queue = async_queue();
    graph.launch(&queue).unwrap();
    let error = queue.synchronize().unwrap_err();
    assert!(error.status == Status::Internal && error.message.contains("in a graph"), "{error}");
}

#[test]
fn a_function_that_waits_for_its_own_queue_fails_and_does_not_deadlock() {
    for own in [Arc::new(Queue::new(CPU).unwrap()), Arc::new(async_queue())] {
        let event = Arc::new(Event::new(CPU).unwrap());
        event.record(&own).unwrap();
        let (queue, inside) = (Arc::downgrade(&own), event.clone());
        let waits = move || {
            let queue = queue.upgrade().unwrap();
            let answers = [queue.synchronize(), inside.synchronize(), queue.wait_ticket(1), queue.host_func(|| Ok(()))];
            assert!(answers.iter().all(|answer| answer.as_ref().unwrap_err().status == Status::FailedPrecondition));
            inside.record(&queue)
        };
        let graph = own.capture(|q| q.host_func(waits.clone())).unwrap();
        let outcome = graph.launch(&own).and_then(|()| own.synchronize());
        assert_eq!(outcome.unwrap_err().status, Status::FailedPrecondition);
        if own.is_synchronous() {
            assert_eq!(own.host_func(waits).unwrap_err().status, Status::FailedPrecondition);
        }
    }
}

/// Tells when it is dropped.
struct Dropped(Arc<AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_captured_closure_is_dropped_once_whatever_goes_first() {
    for queue_first in [false, true] {
        for launches in 0..3 {
            let (drops, runs) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
            let (queue, gate) = (async_queue(), Gate::default());
            let (state, counter) = (Dropped(drops.clone()), runs.clone());
            let capture = queue.capture(|q| {
                q.host_func(move || {
                    let alive = state.0.load(Ordering::SeqCst) == 0;
                    counter.fetch_add(alive.into(), Ordering::SeqCst);
                    Ok(())
                })
            });
            let graph = capture.unwrap();
            gate.block(&queue).unwrap();
            (0..launches).for_each(|_| graph.launch(&queue).unwrap());
            if queue_first {
                drop(queue);
                drop(graph);
            } else {
                drop(graph);
                drop(queue);
            }
            assert_eq!(drops.load(Ordering::SeqCst), u32::from(launches == 0));
            gate.open();
            while drops.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            assert_eq!((drops.load(Ordering::SeqCst), runs.load(Ordering::SeqCst)), (1, launches));
        }
    }
}
