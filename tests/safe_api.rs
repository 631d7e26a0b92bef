//! Queues, buffers, views, events and the arena through the safe types.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use support::{CPU, Gate, async_queue, delay, fail_before};
use vllm_cpp_sys::op::Policy;
use vllm_cpp_sys::*;

fn both_queues() -> [Queue; 2] {
    [Queue::new(CPU).unwrap(), async_queue()]
}

#[test]
fn copies_and_fills_arrive_on_both_kinds_of_queue() {
    for queue in both_queues() {
        let source = DeviceBuf::from_fn(CPU, 100, |i| i as i32).unwrap();
        let mut target = DeviceBuf::<i32>::zeroed(CPU, 100).unwrap();
        queue.copy(&mut target, &source).unwrap();
        queue.fill(target.slice_mut(90..), 0xFF).unwrap();
        let mut expected: Vec<i32> = (0..100).collect();
        expected[90..].fill(-1);
        assert_eq!(target.to_vec().unwrap(), expected);
        queue.close().unwrap();
    }
}

#[test]
fn empty_buffers_are_buffers() {
    let queue = async_queue();
    let mut empty = DeviceBuf::<f32>::zeroed(CPU, 0).unwrap();
    let source = PinnedBuf::<f32>::from_slice(CPU, &[]).unwrap();
    queue.copy(&mut empty, &source).unwrap();
    assert!(empty.is_empty() && empty.read().unwrap().is_empty());
    empty.close().unwrap();
}

#[test]
fn lengths_must_match() {
    let queue = async_queue();
    let source = DeviceBuf::<u8>::zeroed(CPU, 3).unwrap();
    let mut target = DeviceBuf::<u8>::zeroed(CPU, 4).unwrap();
    let error = queue.copy(&mut target, &source).unwrap_err();
    assert_eq!(error.status, Status::InvalidArgument);
    assert_eq!(error.message, "the destination has 4 elements, the source 3");
    assert!(target.copy_from_slice(&[1, 2]).unwrap_err().message.contains("4 elements, the slice 2"));
    assert!(source.as_slice().slice(2..5).is_err());
    assert_eq!(DeviceBuf::<u64>::zeroed(CPU, usize::MAX / 4).unwrap_err().status, Status::OutOfMemory);
}

#[test]
fn a_second_queue_waits_for_the_first_where_it_uses_the_same_bytes() {
    let (first, second) = (async_queue(), async_queue());
    let source = DeviceBuf::from_slice(CPU, &[7u32; 1000]).unwrap();
    let mut middle = DeviceBuf::<u32>::zeroed(CPU, 1000).unwrap();
    let mut target = DeviceBuf::<u32>::zeroed(CPU, 1000).unwrap();
    delay(&first, 30).unwrap();
    first.copy(&mut middle, &source).unwrap();
    second.copy(&mut target, &middle).unwrap(); // after a write
    assert_eq!(target.to_vec().unwrap(), [7; 1000]);

    delay(&second, 30).unwrap();
    second.copy(&mut target, &middle).unwrap();
    first.fill(&mut middle, 0).unwrap(); // after a read
    assert_eq!(target.to_vec().unwrap(), [7; 1000]);
    assert_eq!(middle.to_vec().unwrap(), [0; 1000]);
}

#[test]
fn readers_and_disjoint_ranges_do_not_wait_for_each_other() {
    let (first, second) = (async_queue(), async_queue());
    let gate = Gate::default();
    gate.block(&first).unwrap();
    let source = DeviceBuf::from_slice(CPU, &[5u8; 64]).unwrap();
    let mut halves = DeviceBuf::<u8>::zeroed(CPU, 128).unwrap();
    let (mut low, mut high) = halves.as_slice_mut().split_at_mut(64).unwrap();
    first.copy(&mut low, &source).unwrap();
    second.copy(&mut high, &source).unwrap();
    assert_eq!(high.to_vec().unwrap(), [5; 64]); // the first queue is still blocked
    assert!(!first.query().unwrap());
    gate.open();
    assert_eq!(halves.to_vec().unwrap(), [5; 128]);
}

#[test]
fn a_view_waits_for_its_own_work_only() {
    let queue = async_queue();
    let gate = Gate::default();
    let source = DeviceBuf::from_slice(CPU, &[1u8, 2]).unwrap();
    let mut target = PinnedBuf::<u8>::zeroed(CPU, 2).unwrap();
    queue.copy(&mut target, &source).unwrap();
    gate.block(&queue).unwrap();
    assert_eq!(*target.read().unwrap(), [1, 2]); // not for what came later
    assert!(!queue.query().unwrap());
    gate.open();
    queue.close().unwrap();
}

/// Field report R063: the source of a transfer is changed, dropped or copied again while the transfer is pending.
#[test]
fn pinned_memory_may_be_used_while_a_transfer_is_pending() {
    for len in [10, 10_000, 1 << 20] {
        let queue = async_queue();
        let mut target = DeviceBuf::<f32>::zeroed(CPU, len).unwrap();
        let mut source = PinnedBuf::from_slice(CPU, &vec![1.0f32; len]).unwrap();

        delay(&queue, 100).unwrap();
        queue.copy(&mut target, &source).unwrap();
        let begin = Instant::now();
        source.write().unwrap().fill(2.0); // waits
        assert!(begin.elapsed() >= Duration::from_millis(60), "the view did not wait for the transfer of {len}");
        assert!(target.read().unwrap().iter().all(|&x| x == 1.0));

        delay(&queue, 100).unwrap();
        queue.copy(&mut target, &source).unwrap();
        drop(source); // doesn't wait, and doesn't free
        assert!(!queue.query().unwrap());
        let other = PinnedBuf::from_slice(CPU, &vec![3.0f32; len]).unwrap(); // would take the place
        assert!(target.read().unwrap().iter().all(|&x| x == 2.0));

        delay(&queue, 100).unwrap();
        queue.copy(&mut target, &other).unwrap();
        let mut again = DeviceBuf::<f32>::zeroed(CPU, len).unwrap();
        async_queue().copy(&mut again, &target).unwrap(); // on another queue, which is dropped
        assert!(again.read().unwrap().iter().all(|&x| x == 3.0));
    }
}

#[test]
fn a_scope_waits_for_what_it_borrowed() {
    let queue = async_queue();
    let mut buffer = DeviceBuf::<u8>::zeroed(CPU, 100_000).unwrap();
    let mut output = vec![0; 100_000];
    let input = vec![7; 100_000];
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        queue.scope::<()>(|scope| {
            delay(&queue, 400)?; // longer than a panic takes
            scope.copy_from_slice(&mut buffer, &input)?;
            scope.copy_to_slice(&mut output, &buffer)?;
            panic!("with copies in flight");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(output, input); // the panic had to wait
    drop(input);
    let short = [1u8; 3];
    let error = queue.scope(|scope| scope.copy_from_slice(&mut buffer, &short)).unwrap_err();
    assert!(error.message.contains("100000 elements, the slice 3"), "{error}");
    let outcome = queue.scope(|scope| {
        let graph = queue.capture(|_| scope.copy_from_slice(buffer.slice_mut(0..3), &short));
        assert!(graph.unwrap_err().message.contains("after the scope"));
        Ok(())
    });
    outcome.unwrap();
    queue.host_func(|| Err(Error::new(Status::Aborted, "stop"))).unwrap();
    let outcome = queue.scope(|scope| scope.copy_from_slice(buffer.slice_mut(0..3), &short));
    assert_eq!(outcome.unwrap_err().status, Status::Aborted);
}

#[test]
fn a_forgotten_view_keeps_work_refused() {
    let queue = async_queue();
    let source = DeviceBuf::from_slice(CPU, &[1u8; 8]).unwrap();
    let mut target = DeviceBuf::<u8>::zeroed(CPU, 8).unwrap();
    std::mem::forget(source.read().unwrap());
    queue.copy(&mut target, &source).unwrap(); // reading is still fine
    std::mem::forget(target.slice_mut(0..4).write().unwrap());
    let error = queue.copy(&mut target, &source).unwrap_err();
    assert_eq!(error.status, Status::FailedPrecondition);
    assert_eq!(error.message, "a write view of bytes 0..4 of the buffer is open, or was forgotten");
    assert!(target.read().is_err());
    queue.fill(target.slice_mut(4..), 9).unwrap(); // elsewhere it is free
    assert_eq!(*target.slice(4..).read().unwrap(), [9; 4]);
}

#[test]
fn host_functions_run_in_order_and_once() {
    for queue in both_queues() {
        let calls = Arc::new(AtomicU32::new(0));
        for expected in 0..10 {
            let calls = calls.clone();
            let call = move || {
                assert_eq!(calls.fetch_add(1, Ordering::Relaxed), expected);
                Ok(())
            };
            if expected % 2 == 0 { queue.host_func(call).unwrap() } else { queue.host_func_once(call).unwrap() }
        }
        queue.close().unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 10);
    }
}

#[test]
fn errors_and_panics_of_callbacks_stick_to_the_queue() {
    let queue = async_queue();
    queue.host_func(|| Err(Error::new(Status::NotFound, "no such page"))).unwrap();
    let error = queue.synchronize().unwrap_err();
    assert_eq!((error.status, error.message.as_str()), (Status::NotFound, "no such page"));
    assert_eq!(queue.close().unwrap_err().status, Status::NotFound);

    let queue = async_queue();
    queue.host_func_once(|| panic!("index {} is wrong", 3)).unwrap();
    let error = queue.close().unwrap_err();
    assert_eq!((error.status, error.message.as_str()), (Status::Internal, "a host function panicked: index 3 is wrong"));

    let queue = Queue::new(CPU).unwrap(); // a synchronous queue answers at once, and lives
    assert_eq!(queue.host_func(|| panic!("now")).unwrap_err().status, Status::Internal);
    queue.host_func(|| Ok(())).unwrap();
}

#[test]
fn the_runtime_is_refused_in_a_callback() {
    let queue = Arc::new(async_queue());
    let inner = queue.clone();
    let buffer = Arc::new(DeviceBuf::<u8>::zeroed(CPU, 4).unwrap());
    let seen = buffer.clone();
    queue
        .host_func(move || {
            assert_eq!(seen.read().unwrap_err().status, Status::FailedPrecondition);
            inner.host_func(|| Ok(()))
        })
        .unwrap();
    let error = queue.synchronize().unwrap_err();
    assert_eq!(error.status, Status::FailedPrecondition);
    assert!(error.message.contains("callback"), "{error}");
}

#[test]
fn what_depended_on_failed_work_reports_it_once() {
    let (first, second) = (async_queue(), async_queue());
    let source = DeviceBuf::from_slice(CPU, &[1u8; 8]).unwrap();
    let mut target = DeviceBuf::<u8>::zeroed(CPU, 8).unwrap();
    let gate = Gate::default();
    gate.block(&first).unwrap();
    first.host_func(|| Err(Error::new(Status::Aborted, "stop"))).unwrap();
    first.copy(&mut target, &source).unwrap(); // never runs
    gate.open();
    assert!(first.synchronize().is_err());
    let mut other = DeviceBuf::<u8>::zeroed(CPU, 8).unwrap();
    let error = second.copy(&mut other, &target).unwrap_err();
    assert_eq!((error.status, error.message.as_str()), (Status::Aborted, "stop"));
    assert_eq!(target.to_vec().unwrap(), [0; 8]); // at rest
    second.copy(&mut other, &target).unwrap();
    second.fill(&mut target, 3).unwrap();
    second.close().unwrap();
}

#[test]
fn a_failure_is_reported_for_every_part_that_it_left_unwritten() {
    let (first, second) = (async_queue(), async_queue());
    let mut x = DeviceBuf::<u8>::zeroed(CPU, 64).unwrap();
    fail_before(&first, |q| {
        q.fill(x.slice_mut(0..32), 1)?;
        q.fill(x.slice_mut(32..64), 1)
    });
    let read = |range: std::ops::Range<usize>| x.slice(range).to_vec().map(|_| ()).map_err(|error| error.status);
    assert_eq!(read(0..8), Err(Status::NotFound));
    assert_eq!(read(0..8), Ok(()));
    assert_eq!(read(4..12), Err(Status::NotFound));
    assert_eq!(read(0..32), Err(Status::NotFound));
    assert_eq!(read(0..32), Ok(()));
    assert_eq!(read(32..64), Err(Status::NotFound));
    assert_eq!(read(0..64), Ok(()));

    let third = async_queue();
    fail_before(&second, |q| q.fill(x.slice_mut(0..32), 1));
    fail_before(&third, |q| q.fill(x.slice_mut(32..64), 1));
    let fourth = async_queue();
    let both = |x: &DeviceBuf<u8>| {
        let mut target = DeviceBuf::<u8>::zeroed(CPU, 64).unwrap();
        fourth.copy(&mut target, x).map_err(|error| error.status)
    };
    assert_eq!(both(&x), Err(Status::NotFound)); // one of the two
    assert_eq!(both(&x), Err(Status::NotFound)); // the other
    assert_eq!(both(&x), Ok(()));
    fourth.close().unwrap();
}

#[test]
fn what_was_overwritten_has_not_failed() {
    let (first, second) = (async_queue(), async_queue());
    let mut x = DeviceBuf::<u8>::zeroed(CPU, 8).unwrap();
    fail_before(&first, |q| q.fill(&mut x, 1));
    second.fill(x.slice_mut(0..4), 2).unwrap();
    assert_eq!(x.slice(0..4).to_vec().unwrap(), [2; 4]);
    assert_eq!(x.to_vec().unwrap_err().status, Status::NotFound);
    assert_eq!(x.to_vec().unwrap(), [2, 2, 2, 2, 0, 0, 0, 0]);
}

#[test]
fn many_pending_operations_on_one_buffer_stay_apart() {
    let (first, second) = (async_queue(), async_queue());
    let gate = Gate::default();
    let mut x = DeviceBuf::<u8>::zeroed(CPU, 400).unwrap();
    gate.block(&first).unwrap();
    for i in 0..100 {
        first.fill(x.slice_mut(4 * i..4 * i + 2), 1).unwrap();
    }
    for i in 0..100 {
        second.fill(x.slice_mut(4 * i + 2..4 * i + 4), 2).unwrap();
    }
    second.synchronize().unwrap(); // not held back by the first one
    assert!(!first.query().unwrap());
    assert_eq!(x.slice(398..400).to_vec().unwrap(), [2; 2]);
    gate.open();
    assert_eq!(x.to_vec().unwrap(), [1, 1, 2, 2].repeat(100));
}

#[test]
fn events_order_queues_and_tell_the_host() {
    let (main, side) = (async_queue(), async_queue());
    let gate = Gate::default();
    let event = Event::with_flags(CPU, EventFlags { blocking: true, timing: false }).unwrap();
    assert!(event.query().unwrap()); // never recorded
    gate.block(&main).unwrap();
    event.record(&main).unwrap();
    side.after_event(&event).unwrap();
    assert!(!event.query().unwrap() && !side.query().unwrap());
    assert_eq!(event.wait(Duration::from_millis(5)).unwrap_err().status, Status::Timeout);
    for mode in [WaitMode::Default, WaitMode::Block, WaitMode::Yield, WaitMode::Spin] {
        assert_eq!(event.wait_by(mode, Duration::from_millis(5)).unwrap_err().status, Status::Timeout);
    }
    gate.open();
    event.wait_by(WaitMode::Spin, Duration::MAX).unwrap();
    event.synchronize().unwrap();
    side.synchronize().unwrap();

    let timing = || Event::with_flags(CPU, EventFlags { blocking: false, timing: true }).unwrap();
    let (start, end) = (timing(), timing());
    start.record(&main).unwrap();
    delay(&main, 20).unwrap();
    end.record(&main).unwrap();
    end.synchronize().unwrap();
    assert!(Event::elapsed(&start, &end).unwrap() >= Duration::from_millis(20));
}

#[test]
fn a_full_ring_can_refuse() {
    let options = QueueOptions::default().asynchronous(true).ring_capacity(2).fail_full(true);
    let queue = Queue::with_options(CPU, &options).unwrap();
    let gate = Gate::default();
    gate.block(&queue).unwrap();
    let refused = (0..4).find_map(|_| queue.host_func(|| Ok(())).err());
    assert_eq!(refused.unwrap().status, Status::NotReady);
    gate.open();
    queue.close().unwrap();
}

#[test]
fn an_arena_gives_takes_back_and_refuses() {
    let mut arena = Arena::new(CPU, 256).unwrap();
    let first = arena.alloc::<u8>(40).unwrap();
    assert_eq!(first.to_vec().unwrap(), [0; 40]);
    let error = arena.alloc::<i64>((1 << 61) - 8).unwrap_err();
    assert_eq!(error.status, Status::OutOfMemory);
    assert_eq!(arena.stats().unwrap().used, 64);
    let inner = arena.scope(|scope| {
        let scratch = scope.alloc::<f32>(16).unwrap();
        assert_eq!(arena.alloc::<u8>(1).unwrap_err().status, Status::FailedPrecondition);
        let used = scope.scope(|deeper| deeper.alloc::<u8>(1).map(|_| arena.stats().unwrap().used)).unwrap().unwrap();
        (scratch.len(), used)
    });
    assert_eq!(inner.unwrap(), (16, 192));
    assert_eq!(arena.stats().unwrap().used, 64);
    arena.reset().unwrap();
    assert_eq!((arena.stats().unwrap().used, arena.stats().unwrap().high_water), (0, 192));
}

#[test]
fn a_panic_closes_a_scope() {
    let arena = Arena::new(CPU, 256).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        arena.scope(|scope| {
            let _scratch = scope.alloc::<u8>(100);
            panic!("in the scope");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(arena.stats().unwrap().used, 0);
    arena.alloc::<u8>(256).unwrap();
}

#[test]
fn a_step_may_reuse_the_arena_while_the_last_one_runs() {
    let (main, side) = (async_queue(), async_queue());
    let mut arena = Arena::new(CPU, 4096).unwrap();
    let mut results = PinnedBuf::<u32>::zeroed(CPU, 8).unwrap();
    for step in 0..8 {
        let mut x = arena.alloc::<u32>(512).unwrap();
        let task = move |(x,): (&mut [u32],)| {
            std::thread::sleep(Duration::from_millis(2));
            x.fill(step);
            Ok(())
        };
        main.host_task((&mut x,), task).unwrap();
        let at = step as usize;
        side.copy(results.slice_mut(at..=at), x.slice(511..).unwrap()).unwrap();
        arena.reset().unwrap();
    }
    assert_eq!(*results.read().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn devices_and_errors_say_what_they_are() {
    assert!(Device::count(DeviceType::Cpu).unwrap() >= 1);
    let error = DeviceBuf::<u8>::zeroed(Device::cpu(9), 1).unwrap_err();
    assert_eq!(error.status, Status::NotFound);
    assert!(error.to_string().starts_with("NOT_FOUND in vt_"), "{error}");
    assert_eq!(Queue::new(Device::cpu(-1)).unwrap_err().status, Status::InvalidArgument);
    assert_eq!(DType::BF16.to_string(), "bf16");
    assert_eq!(OpId::intern("vt.all_reduce").unwrap().provider(DeviceType::Cpu).unwrap(), "vt-native");
}

#[test]
fn the_choice_of_providers_is_steered_and_watched() {
    let op = OpId::intern("vt.all_gather").unwrap();
    assert!(op.is_registered(DeviceType::Cpu) && !op.is_registered(DeviceType::Vulkan));
    let before = op::generation();
    let found = op.statistics(DeviceType::Cpu, "vt-native").unwrap().selections;
    assert_eq!(op.find(DeviceType::Cpu, &Policy::default()).unwrap(), "vt-native");
    let statistics = op.statistics(DeviceType::Cpu, "vt-native").unwrap();
    assert_eq!((statistics.selections, statistics.declines), (found + 1, 0));
    assert_eq!(op.last_selected(DeviceType::Cpu).as_deref(), Some("vt-native"));
    assert_eq!(op.last_selected(DeviceType::Vulkan), None);
    let policy = Policy { names: Some(&["absent", "vt-native"]), strict: false };
    assert_eq!(op.find(DeviceType::Cpu, &policy).unwrap(), "vt-native");
    let error = op.find(DeviceType::Cpu, &Policy { strict: true, ..policy }).unwrap_err();
    assert_eq!(error.status, Status::NotFound);
    assert!(error.message.contains("\"absent\""), "{error}");
    let names: Vec<String> = (0..40).map(|i| format!("absent-{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let text = op.explain(DeviceType::Cpu, &Policy { names: Some(&names), strict: false }).unwrap();
    assert!(text.contains("\"absent-39\": refuses: it is not registered\n"), "{text}");
    op::disable("absent-7").unwrap();
    assert!(op::generation() > before);
    op::enable("absent-7").unwrap();
    assert_eq!(op::enable("absent-7").unwrap_err().status, Status::NotFound);
    assert_eq!(op::disable("a\0b").unwrap_err().status, Status::InvalidArgument);
    assert_eq!(op.find(DeviceType::Cpu, &Policy { names: Some(&[]), strict: false }).unwrap_err().status, Status::NotFound);
}

#[test]
fn what_a_dead_queue_refuses_is_told_by_the_call_alone() {
    let (dead, good) = (async_queue(), async_queue());
    let mut x = DeviceBuf::from_slice(CPU, &[1u8, 2, 3]).unwrap();
    let graph = good.capture(|q| q.fill(&mut x, 7)).unwrap();
    fail_before(&dead, |_| Ok(()));
    assert_eq!(dead.fill(&mut x, 9).unwrap_err().status, Status::NotFound);
    assert_eq!(x.to_vec().unwrap(), [1, 2, 3]);
    assert_eq!(graph.launch(&dead).unwrap_err().status, Status::NotFound);
    assert_eq!(x.to_vec().unwrap(), [1, 2, 3]);
}
