//! Safe calls in orders that nobody wants: forgotten values, any drop order, late threads, panics. A program of its own, so that it can
//! be run with the C objects built for the address sanitizer (`VT_BUILD_SANITIZE=address`): a use after free, a late write or a leak
//! ends it. The first part ends with nothing alive; the second forgets values on purpose.

mod support;

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use support::{CPU, Gate, async_queue, delay, forget};
use vllm_cpp_sys::*;

fn main() {
    // Panics are part of the programme: only the one that ends a case is told.
    std::panic::set_hook(Box::new(|panic| *LAST_PANIC.lock().unwrap() = panic.to_string()));
    let tidy: [(&str, fn()); 21] = [
        ("buffers dropped while work is pending", buffers_dropped_while_work_is_pending),
        ("queues dropped before their buffers", queues_dropped_before_their_buffers),
        ("every drop order of queue, source, target and graph", every_drop_order),
        ("a graph launched after its queue and buffers were dropped", a_graph_outlives_what_it_was_made_of),
        ("a failed queue with work behind the failure", a_failed_queue),
        ("buffers dropped by callbacks", buffers_dropped_by_callbacks),
        ("buffers dropped inside a capture", buffers_dropped_inside_a_capture),
        ("submissions of other threads around a capture", submissions_around_a_capture),
        ("late drops from other threads", late_drops_from_other_threads),
        ("a rank that panics", a_rank_that_panics),
        ("a panic with everything open", a_panic_with_everything_open),
        ("an abort while peers write", an_abort_while_peers_write),
        ("an arena that goes first", an_arena_that_goes_first),
        ("a queue that joins a capture under its batch", a_queue_that_joins_under_its_batch),
        ("reclaim() against the thread that frees", reclaim_against_the_thread_that_frees),
        ("pool buffers that follow each other", pool_buffers_that_follow_each_other),
        ("pool buffers without contents", pool_buffers_without_contents),
        ("a pool buffer of two queues", a_pool_buffer_of_two_queues),
        ("pool buffers dropped while others use them", pool_buffers_dropped_while_others_use_them),
        ("a pool buffer whose queue fails first", a_pool_buffer_whose_queue_fails_first),
        ("shareable buffers have no views", shareable_buffers_have_no_views),
    ];
    let forgetful: [(&str, fn()); 2] =
        [("forgotten views", forgotten_views), ("forgotten queues, graphs, buffers and ranks", forgotten_handles)];
    for (name, case) in tidy {
        run(name, case);
    }
    run("nothing is left", nothing_is_left);
    for (name, case) in forgetful {
        run(name, case);
    }
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

fn run(name: &str, case: fn()) {
    let begin = Instant::now();
    if catch_unwind(case).is_err() {
        println!("FAILED  {name}: {}", LAST_PANIC.lock().unwrap());
        std::process::exit(1);
    }
    println!("ok  {name} ({} ms)", begin.elapsed().as_millis());
}

/// Each round's memory is the last one's, which is still being read and written.
fn pool_buffers_that_follow_each_other() {
    let queue = async_queue();
    let mut results: Vec<_> = (0..50).map(|_| PinnedBuf::<u8>::zeroed(CPU, 4096).unwrap()).collect();
    let gate = Gate::default();
    gate.block(&queue).unwrap();
    let before = CPU.pool_stats().unwrap();
    for (value, result) in results.iter_mut().enumerate() {
        let mut scratch = DeviceBuf::<u8>::zeroed_async(&queue, 4096).unwrap();
        queue.fill(scratch.slice_mut(0..4000), value as u8).unwrap();
        queue.copy(result, &scratch).unwrap();
    }
    assert!(CPU.pool_stats().unwrap().hits >= before.hits + 49, "each one is the one before");
    // Nothing has run: other queues and the host get other memory, which is clean.
    let other = async_queue();
    let clean = DeviceBuf::<u8>::zeroed_async(&other, 4096).unwrap();
    assert_eq!(clean.read().unwrap()[..], [0; 4096]);
    gate.open();
    for (value, result) in results.iter().enumerate() {
        let seen = result.read().unwrap();
        assert!(seen[..4000].iter().all(|&byte| byte == value as u8) && seen[4000..] == [0; 96]);
    }
}

/// Memory without contents, for whichever queue comes first: it comes after the last owner.
fn pool_buffers_without_contents() {
    let (queue, other) = (async_queue(), async_queue());
    let mut result = PinnedBuf::<u8>::zeroed(CPU, 4096).unwrap();
    let gate = Gate::default();
    gate.block(&queue).unwrap();
    let mut scratch = DeviceBuf::<u8>::zeroed_async(&queue, 4096).unwrap();
    queue.fill(&mut scratch, 7).unwrap();
    queue.copy(&mut result, &scratch).unwrap();
    drop(scratch);
    // SAFETY: filled by the next call.
    let mut next = unsafe { DeviceBuf::<u8>::uninit_async(&queue, 4096).unwrap() };
    other.fill(&mut next, 9).unwrap();
    gate.open();
    queue.synchronize().unwrap();
    assert_eq!(next.read().unwrap()[..], [9; 4096]);
    assert_eq!(result.read().unwrap()[..], [7; 4096]);
}

/// Two queues use the buffer when it is dropped: that one of them is through is not enough.
fn a_pool_buffer_of_two_queues() {
    let (first, second, third) = (async_queue(), async_queue(), async_queue());
    let mut result = PinnedBuf::<u8>::zeroed(CPU, 4096).unwrap();
    let gates = [Gate::default(), Gate::default()];
    gates[0].block(&first).unwrap();
    gates[1].block(&second).unwrap();
    let mut scratch = DeviceBuf::<u8>::zeroed_async(&first, 4096).unwrap();
    first.fill(&mut scratch, 5).unwrap();
    second.copy(&mut result, &scratch).unwrap();
    drop(scratch);
    gates[0].open();
    first.synchronize().unwrap();
    let kept: Vec<_> = (0..4).map(|_| DeviceBuf::<u8>::zeroed_async(&third, 4096).unwrap()).collect();
    third.synchronize().unwrap();
    gates[1].open();
    assert_eq!(result.read().unwrap()[..], [5; 4096]);
    drop(kept);
}

/// Uses on several queues and in a graph, dropped in the middle of it, queues first or last.
fn pool_buffers_dropped_while_others_use_them() {
    for round in 0..40u8 {
        let (first, second) = (async_queue(), async_queue());
        let mut result = PinnedBuf::<u8>::zeroed(CPU, 4096).unwrap();
        let mut scratch = DeviceBuf::<u8>::zeroed_async(&first, 4096).unwrap();
        first.fill(&mut scratch, round).unwrap();
        delay(&second, 1).unwrap();
        if round % 3 == 0 {
            let graph = second.capture(|q| q.copy(&mut result, &scratch)).unwrap();
            graph.launch(&second).unwrap();
        } else {
            second.copy(&mut result, &scratch).unwrap();
        }
        if round % 2 == 0 {
            drop(first);
            drop(scratch);
        } else {
            drop(scratch);
            drop(first);
        }
        let third = async_queue();
        for _ in 0..4 {
            let mut next = DeviceBuf::<u8>::zeroed_async(&third, 4096).unwrap();
            third.fill(&mut next, 0xEE).unwrap(); // would overwrite memory that was freed too early
        }
        assert_eq!(result.read().unwrap()[..], [round; 4096]);
    }
}

/// The memory was never zeroed: whatever is tried, nobody reads it.
fn a_pool_buffer_whose_queue_fails_first() {
    let (queue, other) = (async_queue(), async_queue());
    let mut lost = None;
    support::fail_before(&queue, |queue| {
        let mut buffer = DeviceBuf::<u8>::zeroed_async(queue, 4096)?;
        queue.fill(&mut buffer, 1)?;
        lost = Some(buffer);
        Ok(())
    });
    let mut lost = lost.unwrap();
    let mut target = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
    for _ in 0..3 {
        assert_eq!(lost.read().unwrap_err().status, Status::NotFound);
        assert_eq!(lost.write().unwrap_err().status, Status::NotFound);
        assert_eq!(lost.to_vec().unwrap_err().status, Status::NotFound);
        assert_eq!(other.copy(&mut target, &lost).unwrap_err().status, Status::NotFound);
        assert!(other.host_task((&lost,), |_| panic!("it has no contents")).is_err());
    }
    other.fill(lost.slice_mut(..2048), 2).unwrap();
    assert!(lost.slice(..4096).read().is_err());
    let graph = other.capture(|q| q.copy(&mut target, &lost)).unwrap();
    for _ in 0..3 {
        assert!(graph.launch(&other).is_err());
    }
    assert_eq!(target.read().unwrap()[..], [0; 4096]);
}

fn shareable_buffers_have_no_views() {
    let options = AllocOptions::default().shareable(true);
    let queue = async_queue();
    let mut buffer = DeviceBuf::<u8>::zeroed_with(CPU, 5000, &options).unwrap();
    assert!(buffer.alloc_info().unwrap().shareable);
    let memory = buffer.export_fd().unwrap();
    buffer.copy_from_slice(&[3; 5000]).unwrap();
    queue.fill(buffer.slice_mut(..100), 4).unwrap();
    assert_eq!(buffer.read().unwrap_err().status, Status::Unsupported);
    assert_eq!(buffer.write().unwrap_err().status, Status::Unsupported);
    assert!(queue.host_task((&buffer,), |_| Ok(())).is_err());
    assert!(buffer.to_dlpack(&[5000], None).is_err());
    let seen = buffer.to_vec().unwrap();
    assert!(seen[..100] == [4; 100] && seen[100..] == [3; 4900]);
    drop(buffer);
    assert!(memory.bytes >= 5000);
    let plain = source(1);
    assert_eq!(plain.export_fd().unwrap_err().status, Status::InvalidArgument);
    let mut pinned = PinnedBuf::<u8>::zeroed_with(CPU, 100, &options).unwrap();
    assert!(pinned.write().is_err());
}

fn source(value: u8) -> DeviceBuf<u8> {
    DeviceBuf::from_slice(CPU, &[value; 4096]).unwrap()
}

fn buffers_dropped_while_work_is_pending() {
    let queue = async_queue();
    let mut result = PinnedBuf::<u8>::zeroed(CPU, 4096).unwrap();
    for value in 0..50 {
        let mut middle = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
        let gate = Gate::default();
        gate.block(&queue).unwrap();
        {
            let source = source(value);
            queue.copy(&mut middle, &source).unwrap();
        }
        queue.copy(&mut result, &middle).unwrap();
        drop(middle);
        drop(source(0xEE)); // would overwrite memory that was freed too early
        gate.open();
        assert_eq!(result.read().unwrap()[..], [value; 4096]);
    }
}

fn queues_dropped_before_their_buffers() {
    for _ in 0..20 {
        let (first, second) = (async_queue(), async_queue());
        let source = source(5);
        let mut middle = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
        let mut target = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
        delay(&first, 1).unwrap();
        first.copy(&mut middle, &source).unwrap();
        second.copy(&mut target, &middle).unwrap();
        drop(first);
        drop(source);
        drop(second);
        assert_eq!(target.read().unwrap()[..], [5; 4096]);
    }
}

/// All 24 orders, each dropped while the launch is pending.
fn every_drop_order() {
    for order in 0..24u32 {
        let queue = async_queue();
        let mut target = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
        let source = source(order as u8);
        let graph = queue.capture(|q| q.copy(&mut target, &source)).unwrap();
        delay(&queue, 1).unwrap();
        graph.launch(&queue).unwrap();
        queue.copy(&mut target, &source).unwrap();
        let mut things: Vec<Box<dyn Any>> = vec![Box::new(queue), Box::new(source), Box::new(target), Box::new(graph)];
        let mut code = order;
        while !things.is_empty() {
            let count = things.len() as u32;
            drop(things.remove((code % count) as usize));
            code /= count;
        }
    }
}

fn a_graph_outlives_what_it_was_made_of() {
    let mut result = PinnedBuf::<u8>::zeroed(CPU, 4096).unwrap();
    let graph = {
        let (queue, side) = (async_queue(), async_queue());
        let (fork, join) = (Event::new(CPU).unwrap(), Event::new(CPU).unwrap());
        let source = source(9);
        let mut middle = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
        let capture = queue.capture(|q| {
            fork.record(q)?;
            side.after_event(&fork)?;
            side.copy(&mut middle, &source)?;
            join.record(&side)?;
            q.after_event(&join)?;
            q.copy(&mut result, &middle)
        });
        capture.unwrap()
    };
    drop(source(0xEE));
    for _ in 0..3 {
        let queue = async_queue();
        graph.launch(&queue).unwrap();
    }
    drop(graph);
    assert_eq!(result.read().unwrap()[..], [9; 4096]);
}

fn a_failed_queue() {
    let queue = async_queue();
    let gate = Gate::default();
    let mut target = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
    gate.block(&queue).unwrap();
    queue.host_func(|| panic!("a bug")).unwrap();
    for value in 0..10 {
        let source = source(value);
        queue.copy(&mut target, &source).unwrap();
    }
    gate.open();
    assert_eq!(queue.synchronize().unwrap_err().status, Status::Internal);
    assert!(target.read().is_err());
    assert_eq!(target.read().unwrap()[..], [0; 4096]);
}

fn buffers_dropped_by_callbacks() {
    for queue in [Queue::new(CPU).unwrap(), async_queue()] {
        let (buffer, event) = (source(1), Event::new(CPU).unwrap());
        let other = async_queue();
        let graph = queue.capture(|q| q.host_func(|| Ok(()))).unwrap();
        queue
            .host_func_once(move || {
                drop((buffer, event, graph, other));
                Ok(())
            })
            .unwrap();
        let unused = source(2);
        queue.host_func(move || if unused.is_empty() { panic!() } else { Ok(()) }).unwrap();
        // A value that panics when it is dropped.
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let bomb = Bomb;
        queue
            .host_func(move || {
                let _ = &bomb;
                Ok(())
            })
            .unwrap();
        queue.close().unwrap();
    }
}

fn buffers_dropped_inside_a_capture() {
    let queue = async_queue();
    let mut target = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
    let (first, second) = (source(1), source(2));
    let capture = queue.capture(|q| {
        q.copy(&mut target, &first)?;
        drop(first); // the graph has it
        drop(second); // nobody has it
        Ok(())
    });
    let graph = capture.unwrap();
    graph.launch(&queue).unwrap();
    assert_eq!(target.read().unwrap()[..], [1; 4096]);
    let third = source(3);
    let aborted = catch_unwind(AssertUnwindSafe(|| {
        queue.capture(|q| {
            let third = third;
            q.copy(&mut target, &third)?;
            panic!("after recording");
        })
    }));
    assert!(aborted.is_err());
    queue.fill(&mut target, 0).unwrap();
}

/// Another thread's calls run outside the capture, or are refused.
fn submissions_around_a_capture() {
    for queue in [Queue::new(CPU).unwrap(), async_queue()] {
        let stop = AtomicU32::new(0);
        let mut target = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
        let source = source(3);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let source = DeviceBuf::from_slice(CPU, &[1u8; 64]).unwrap();
                    let mut own = DeviceBuf::<u8>::zeroed(CPU, 64).unwrap();
                    while stop.load(Ordering::Relaxed) == 0 {
                        match queue.copy(&mut own, &source) {
                            Ok(()) => assert_eq!(own.read().unwrap()[..], [1; 64]),
                            Err(error) => assert_eq!(error.status, Status::FailedPrecondition, "{error}"),
                        }
                    }
                });
            }
            for _ in 0..200 {
                let graph = queue.capture(|q| q.copy(&mut target, &source)).unwrap();
                assert_eq!(graph.node_count().unwrap(), 1);
                graph.launch(&queue).unwrap();
            }
            stop.store(1, Ordering::Relaxed);
        });
        assert_eq!(target.read().unwrap()[..], [3; 4096]);
        queue.close().unwrap();
    }
}

fn late_drops_from_other_threads() {
    let done = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..4)
        .map(|value| {
            let done = done.clone();
            let (sender, receiver) = mpsc::channel::<Box<dyn Any + Send>>();
            let dropper = thread::spawn(move || receiver.into_iter().for_each(drop));
            thread::spawn(move || {
                for _ in 0..50 {
                    let queue = async_queue();
                    let mut target = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
                    let source = source(value);
                    let graph = queue.capture(|q| q.copy(&mut target, &source)).unwrap();
                    graph.launch(&queue).unwrap();
                    sender.send(Box::new(source)).unwrap();
                    sender.send(Box::new(queue)).unwrap();
                    sender.send(Box::new(graph)).unwrap();
                    assert_eq!(target.read().unwrap()[..], [value; 4096]);
                    sender.send(Box::new(target)).unwrap();
                }
                drop(sender);
                dropper.join().unwrap();
                done.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(done.load(Ordering::Relaxed), 4);
}

fn a_rank_that_panics() {
    for round in 0..10 {
        let comms = CommGroup::new(3).unwrap().into_comms().unwrap();
        let rank = |mut comm: Comm| {
            thread::spawn(move || {
                let queue = async_queue();
                let mut x = DeviceBuf::from_slice(CPU, &[1.0f32; 50_000]).unwrap();
                comm.all_reduce_in_place(&queue, &mut x, ReduceOp::Sum)?;
                assert!(comm.rank() != round % 3, "a bug"); // with the operation in flight
                queue.close()?;
                let queue = Queue::new(CPU)?;
                comm.all_reduce_in_place(&queue, &mut x, ReduceOp::Sum)
            })
        };
        let threads: Vec<_> = comms.into_iter().map(rank).collect();
        let outcomes: Vec<_> = threads.into_iter().map(thread::JoinHandle::join).collect();
        for (rank, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Err(_) => assert_eq!(rank, round % 3),
                Ok(outcome) => assert_eq!(outcome.unwrap_err().status, Status::Aborted),
            }
        }
    }
}

/// Everything is dropped while the thread unwinds. A second panic would end the process.
fn a_panic_with_everything_open() {
    let gate = Gate::default();
    let opened = gate.clone();
    let thread = thread::spawn(move || {
        let (queue, main, event) = (async_queue(), async_queue(), Event::new(CPU).unwrap());
        let comms = CommGroup::new(2).unwrap().into_comms().unwrap();
        let aborted = CommGroup::new(2).unwrap().into_comms().unwrap();
        aborted[1].abort("before the panic").unwrap();
        let (mut x, mut y, arena) = (source(1), source(2), Arena::new(CPU, 4096).unwrap());
        let lent = source(4).into_dlpack(&[4096], None).unwrap();
        let graph = queue.capture(|q| q.copy(&mut y, &x)).unwrap();
        opened.block(&queue).unwrap();
        queue.fill(&mut x, 3).unwrap();
        event.record(&queue).unwrap();
        let mut awaited = std::future::IntoFuture::into_future(&event);
        let _ = std::pin::Pin::new(&mut awaited).poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        graph.launch(&queue).unwrap();
        let (mut z, mut w) = (source(5), source(6));
        let view = z.write().unwrap();
        let _: Result<Graph> = main.capture(|main| {
            main.fill(&mut w, 7)?;
            batch(|b| {
                b.barrier(&comms[0], &queue)?;
                arena.scope(|scope| {
                    let _taken = scope.alloc::<u8>(64);
                    panic!("with everything open");
                })
            })
        });
        drop((view, awaited, lent));
    });
    thread::sleep(Duration::from_millis(1));
    gate.open();
    let payload = thread.join().unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"with everything open"));
}

/// Every rank gives its buffer up as soon as its call has failed.
fn an_abort_while_peers_write() {
    for round in 0..20 {
        let comms = CommGroup::new(3).unwrap().into_comms().unwrap();
        let handle = comms[round % 3].abort_handle();
        let rank = |mut comm: Comm| {
            thread::spawn(move || {
                let queue = async_queue();
                loop {
                    let mut x = DeviceBuf::from_slice(CPU, &[1.0f32; 100_000]).unwrap();
                    let outcome = comm.all_reduce_in_place(&queue, &mut x, ReduceOp::Sum).and_then(|()| queue.synchronize());
                    if let Err(error) = outcome {
                        drop(x);
                        return error.status;
                    }
                }
            })
        };
        let threads: Vec<_> = comms.into_iter().map(rank).collect();
        thread::sleep(Duration::from_millis(1 + round as u64 % 5));
        handle.abort("enough").unwrap();
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), Status::Aborted));
    }
}

fn an_arena_that_goes_first() {
    let queue = async_queue();
    let mut result = PinnedBuf::<u8>::zeroed(CPU, 256).unwrap();
    let graph = {
        let mut arena = Arena::new(CPU, 4096).unwrap();
        for _ in 0..3 {
            let mut x = arena.alloc::<u8>(256).unwrap();
            delay(&queue, 1).unwrap();
            queue.fill(&mut x, 4).unwrap();
            arena.reset().unwrap();
        }
        let mut x = arena.alloc::<u8>(256).unwrap();
        let capture = queue.capture(|q| {
            q.fill(&mut x, 6)?;
            q.copy(&mut result, &x)
        });
        capture.unwrap()
    };
    graph.launch(&queue).unwrap();
    assert_eq!(result.read().unwrap()[..], [6; 256]);
}

/// What the batch uses is gone when the graph, if there is one, runs.
fn a_queue_that_joins_under_its_batch() {
    let comms = CommGroup::new(1).unwrap().into_comms().unwrap();
    let (main, side) = (async_queue(), async_queue());
    let (fork, join) = (Event::new(CPU).unwrap(), Event::new(CPU).unwrap());
    let (x, mut y) = (source(3), source(0));
    let capture = main.capture(|main| {
        let outcome = batch(|b| {
            b.all_reduce(&comms[0], &side, &x, &mut y, ReduceOp::Max)?;
            fork.record(main)?;
            side.after_event(&fork)
        });
        join.record(&side)?;
        main.after_event(&join)?;
        outcome
    });
    drop((x, y));
    thread::sleep(Duration::from_millis(5));
    if let Ok(graph) = capture {
        graph.launch(&main).unwrap();
    }
    main.close().unwrap();
}

/// Memory goes back by itself, although calls of reclaim() keep taking the list away.
fn reclaim_against_the_thread_that_frees() {
    for _ in 0..3 {
        let queue = async_queue();
        let gate = Gate::default();
        gate.block(&queue).unwrap();
        for _ in 0..200 {
            queue.fill(&mut source(0), 1).unwrap();
        }
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(100) {
            assert!(reclaim() >= 200);
        }
        gate.open();
        queue.close().unwrap();
        let begin = Instant::now();
        while CPU.memory_stats(MemoryKind::Device).unwrap().live_bytes != 0 {
            assert!(begin.elapsed() < Duration::from_secs(5), "{} items are left", reclaim());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Everything goes back by itself within a second.
fn nothing_is_left() {
    let begin = Instant::now();
    let counts = || -> Vec<usize> {
        // SAFETY: takes any number.
        (0..sys::VT_HANDLE_KIND_COUNT).map(|kind| unsafe { sys::vt_handle_get_live_count(kind) }).collect()
    };
    let memory = || [MemoryKind::Device, MemoryKind::Pinned].map(|kind| CPU.memory_stats(kind).unwrap().live_bytes);
    while counts().iter().any(|&count| count != 0) || memory() != [0, 0] {
        assert!(begin.elapsed() < Duration::from_secs(5), "alive: {:?}, bytes: {:?}", counts(), memory());
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(reclaim(), 0);
}

fn forgotten_views() {
    let queue = async_queue();
    let mut target = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
    let source = forget(source(3));
    let graph = queue.capture(|q| q.copy(&mut target, source)).unwrap();
    let bytes: &'static [u8] = forget(source.read().unwrap());
    graph.launch(&queue).unwrap(); // reads as well
    std::mem::forget(target.write().unwrap());
    assert_eq!(graph.launch(&queue).unwrap_err().status, Status::FailedPrecondition);
    assert_eq!(queue.fill(&mut target, 1).unwrap_err().status, Status::FailedPrecondition);
    forget(graph);
    drop(target);
    queue.close().unwrap();
    assert_eq!(bytes, [3; 4096]);
}

fn forgotten_handles() {
    let queue = async_queue();
    let mut target = DeviceBuf::<u8>::zeroed(CPU, 4096).unwrap();
    let source = source(8);
    let graph = queue.capture(|q| q.copy(&mut target, &source)).unwrap();
    forget(source);
    delay(&queue, 2).unwrap();
    graph.launch(&queue).unwrap();
    forget(graph);
    forget(queue);
    assert_eq!(target.read().unwrap()[..], [8; 4096]);

    let options = CommGroupOptions::default().timeout(Duration::from_millis(30));
    let mut comms = CommGroup::with_options(2, &options).unwrap().into_comms().unwrap();
    forget(Mutex::new(comms.pop()));
    let queue = Queue::new(CPU).unwrap();
    assert_eq!(comms[0].barrier(&queue).unwrap_err().status, Status::Timeout);
}
