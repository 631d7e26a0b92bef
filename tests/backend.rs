//! A backend written in Rust serves xpu:0, and the safe types use it like any other device.

#[path = "support/host_backend.rs"]
mod host_backend;
mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use host_backend::HostBackend;
use support::Gate;
use vllm_cpp_sys::backend::Registration;
use vllm_cpp_sys::*;

const XPU: Device = Device::new(DeviceType::Xpu, 0);

struct Controls {
    panics_in: Arc<Mutex<Option<&'static str>>>,
    loses_calls: Arc<Mutex<bool>>,
    turn: Mutex<()>,
}

fn controls() -> &'static Controls {
    static CONTROLS: OnceLock<Controls> = OnceLock::new();
    CONTROLS.get_or_init(|| {
        let backend = HostBackend::default();
        let controls =
            Controls { panics_in: backend.panics_in.clone(), loses_calls: backend.loses_calls.clone(), turn: Mutex::default() };
        // SAFETY: the backend keeps the promises of `register`.
        unsafe { Registration::new(backend).with_pinned_memory().with_events().register(XPU, "host").unwrap() };
        controls
    })
}

/// Registers on first use. Tests take turns: some make the backend panic.
fn turn() -> MutexGuard<'static, ()> {
    controls().turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Runs `f` while the backend panics in a method.
fn with_panic<T>(method: &'static str, f: impl FnOnce() -> Result<T>) -> Result<T> {
    *controls().panics_in.lock().unwrap() = Some(method);
    let outcome = f();
    *controls().panics_in.lock().unwrap() = None;
    outcome
}

fn assert_panic_error<T: std::fmt::Debug>(method: &'static str, outcome: Result<T>) {
    let error = outcome.expect_err(method);
    assert_eq!(error.status, Status::Internal, "{error}");
    assert_eq!(error.message, format!("a backend's method {method} panicked: no luck in {method}"));
    assert_eq!(error.function, method);
}

static ENDED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn note_end(ran: *mut std::ffi::c_void) {
    // SAFETY: the test waits for this call, so its counter is alive.
    let ran = unsafe { &*ran.cast::<AtomicU32>() };
    ENDED.store(1 + ran.load(Ordering::Relaxed), Ordering::Release);
}

#[test]
fn a_queue_that_is_dropped_runs_its_work_and_then_ends() {
    let _turn = turn();
    let (gate, ran) = (Gate::default(), Arc::new(AtomicU32::new(0)));
    let queue = Queue::new(XPU).unwrap();
    let user = Arc::as_ptr(&ran).cast_mut().cast();
    // SAFETY: a live queue, and a counter that lives until the hook was called.
    assert_eq!(unsafe { sys::vt_queue_on_destroy(queue.as_raw(), Some(note_end), user) }, sys::VT_OK);
    gate.block(&queue).unwrap();
    let counter = ran.clone();
    queue
        .host_func(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
    drop(queue); // doesn't wait
    assert_eq!((ran.load(Ordering::Relaxed), ENDED.load(Ordering::Acquire)), (0, 0));
    gate.open();
    for _ in 0..10_000 {
        if ENDED.load(Ordering::Acquire) != 0 {
            assert_eq!(ENDED.load(Ordering::Acquire), 2, "ended before its work had run");
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    std::mem::forget(ran); // the hook may still come
    panic!("the queue never ended");
}

#[test]
fn copies_fills_and_host_code_run_in_order() {
    let _turn = turn();
    let queue = Queue::new(XPU).unwrap();
    assert!(!queue.is_synchronous());
    assert_eq!(XPU.info().unwrap().name, "host memory, by Rust");
    let source = DeviceBuf::from_fn(XPU, 1000, |i| i as u32).unwrap();
    let mut target = DeviceBuf::<u32>::zeroed(XPU, 1000).unwrap();
    let mut result = PinnedBuf::<u32>::zeroed(XPU, 1000).unwrap();
    queue.copy(&mut target, &source).unwrap();
    queue.fill(target.slice_mut(..10), 0xFF).unwrap();
    queue
        .host_task((&mut target,), |(values,)| {
            values.iter_mut().skip(10).for_each(|value| *value *= 2);
            Ok(())
        })
        .unwrap();
    queue.copy(&mut result, &target).unwrap();
    let result = result.to_vec().unwrap();
    assert!(result[..10].iter().all(|&value| value == u32::MAX));
    assert!(result[10..].iter().enumerate().all(|(i, &value)| value == 2 * (i as u32 + 10)));
    assert!(queue.ticket().unwrap() >= 4);
    XPU.flush().unwrap();
    queue.close().unwrap();
}

#[test]
fn events_order_queues_and_can_be_waited_for() {
    let _turn = turn();
    let (first, second) = (Queue::new(XPU).unwrap(), Queue::new(XPU).unwrap());
    let (gate, order) = (Gate::default(), Arc::new(Mutex::new(Vec::new())));
    let event = Event::new(XPU).unwrap();
    assert!(event.query().unwrap(), "complete until it is recorded");
    gate.block(&first).unwrap();
    for (queue, number) in [(&first, 1), (&second, 2)] {
        if number == 2 {
            event.record(&first).unwrap();
            second.after_event(&event).unwrap();
        }
        let order = order.clone();
        queue
            .host_func(move || {
                order.lock().unwrap().push(number);
                Ok(())
            })
            .unwrap();
    }
    assert!(!event.query().unwrap());
    assert!(!second.query().unwrap());
    assert_eq!(event.wait(Duration::from_millis(5)).unwrap_err().status, Status::Timeout);
    gate.open();
    event.synchronize().unwrap();
    second.synchronize().unwrap();
    assert_eq!(*order.lock().unwrap(), [1, 2]);
    let timing = EventFlags { timing: true, ..EventFlags::default() };
    assert_eq!(Event::with_flags(XPU, timing).unwrap_err().status, Status::Unsupported);
}

#[test]
fn buffers_of_two_queues_are_ordered_by_the_backends_events() {
    let _turn = turn();
    let (first, second) = (Queue::new(XPU).unwrap(), Queue::new(XPU).unwrap());
    let mut buffer = DeviceBuf::<u8>::zeroed(XPU, 64).unwrap();
    let mut copy = DeviceBuf::<u8>::zeroed(XPU, 64).unwrap();
    let gate = Gate::default();
    gate.block(&first).unwrap();
    first.fill(&mut buffer, 5).unwrap();
    second.copy(&mut copy, &buffer).unwrap();
    drop((first, buffer)); // in flight
    gate.open();
    assert_eq!(copy.to_vec().unwrap(), [5; 64]);
}

#[test]
fn a_failure_sticks_and_what_stands_behind_is_cancelled() {
    let _turn = turn();
    let queue = Queue::new(XPU).unwrap();
    let gate = Gate::default();
    let ran = Arc::new(AtomicU32::new(0));
    gate.block(&queue).unwrap();
    queue.host_func(|| Err(Error::new(Status::Aborted, "enough"))).unwrap();
    let behind = ran.clone();
    queue
        .host_func(move || {
            behind.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
    gate.open();
    let error = queue.synchronize().unwrap_err();
    assert_eq!((error.status, error.message.as_str()), (Status::Aborted, "enough"));
    assert_eq!(queue.host_func(|| Ok(())).unwrap_err().status, Status::Aborted);
    assert_eq!(queue.close().unwrap_err().status, Status::Aborted);
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    for _ in 0..1000 {
        if Arc::strong_count(&ran) == 1 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the cancelled function wasn't dropped");
}

#[test]
fn a_method_that_panics_fails_with_its_text_and_the_device_goes_on() {
    let _turn = turn();
    let queue = Queue::new(XPU).unwrap();
    let event = Event::new(XPU).unwrap();
    let source = DeviceBuf::from_slice(XPU, &[1u8; 32]).unwrap();
    let mut target = DeviceBuf::<u8>::zeroed(XPU, 32).unwrap();
    assert_panic_error("copy", with_panic("copy", || queue.copy(&mut target, &source)));
    assert_panic_error("memset", with_panic("memset", || queue.fill(&mut target, 9)));
    assert_panic_error("alloc", with_panic("alloc", || DeviceBuf::<u8>::zeroed(XPU, 8)));
    assert_panic_error("pinned_alloc", with_panic("pinned_alloc", || PinnedBuf::<u8>::zeroed(XPU, 8)));
    assert_panic_error("queue_create", with_panic("queue_create", || Queue::new(XPU)));
    assert_panic_error("queue_synchronize", with_panic("queue_synchronize", || queue.synchronize()));
    assert_panic_error("queue_query", with_panic("queue_query", || queue.query()));
    assert_panic_error("queue_get_ticket", with_panic("queue_get_ticket", || queue.ticket()));
    assert_panic_error("queue_wait_ticket", with_panic("queue_wait_ticket", || queue.wait_ticket(0)));
    assert_panic_error("queue_host_call", with_panic("queue_host_call", || queue.host_func(|| Ok(()))));
    assert_panic_error("event_create", with_panic("event_create", || Event::new(XPU)));
    assert_panic_error("event_record", with_panic("event_record", || event.record(&queue)));
    assert_panic_error("event_query", with_panic("event_query", || event.query()));
    assert_panic_error("event_wait", with_panic("event_wait", || event.synchronize()));
    assert_panic_error("queue_after_event", with_panic("queue_after_event", || queue.after_event(&event)));
    assert_panic_error("get_info", with_panic("get_info", || XPU.info()));
    assert_panic_error("flush", with_panic("flush", || XPU.flush()));
    queue.copy(&mut target, &source).unwrap();
    assert_eq!(target.to_vec().unwrap(), [1; 32]);
    assert_panic_error("free", with_panic("free", || source.close()));
}

#[test]
fn a_call_that_the_backend_loses_is_dropped_once() {
    let _turn = turn();
    let queue = Queue::new(XPU).unwrap();
    let kept = Arc::new(());
    let inside = kept.clone();
    *controls().loses_calls.lock().unwrap() = true;
    let outcome = queue.host_func(move || {
        let _ = &inside;
        Ok(())
    });
    *controls().loses_calls.lock().unwrap() = false;
    assert_eq!(outcome.unwrap_err().message, "this call is lost");
    assert_eq!(Arc::strong_count(&kept), 1);
    queue.close().unwrap();
}

#[test]
fn a_backend_that_is_refused_is_dropped() {
    let _turn = turn();
    let backend = HostBackend::default();
    let kept = backend.panics_in.clone();
    // SAFETY: refused, so nothing uses it.
    let error = unsafe { Registration::new(backend).register(XPU, "bare").unwrap_err() };
    assert!(error.message.contains("pinned_alloc"), "{error}");
    // SAFETY: as above.
    let error = unsafe { Registration::new(HostBackend::default()).with_pinned_memory().register(XPU, "half").unwrap_err() };
    assert!(error.message.contains("event_create"), "{error}");
    let whole = HostBackend::controlled_by(kept.clone());
    // SAFETY: as above.
    let error = unsafe { Registration::new(whole).with_pinned_memory().with_events().register(XPU, "second").unwrap_err() };
    assert_eq!(error.status, Status::AlreadyExists);
    let panicking = HostBackend::controlled_by(kept.clone());
    *kept.lock().unwrap() = Some("get_info");
    // SAFETY: as above.
    let outcome = unsafe { Registration::new(panicking).register(Device::new(DeviceType::Xpu, 1), "panics") };
    assert_panic_error("get_info", outcome);
    assert_eq!(Arc::strong_count(&kept), 1);
    assert_eq!(Device::new(DeviceType::Xpu, 1).info().unwrap_err().status, Status::NotFound);
}
