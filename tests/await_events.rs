//! Awaiting events, with an executor written here and with one from the registry.

mod support;

use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use support::{CPU, Gate, async_queue, fail_before};
use vllm_cpp_sys::*;

/// A waker that counts.
#[derive(Default)]
struct Alarm {
    rings: AtomicU32,
    rung: Condvar,
    lock: Mutex<()>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        let _guard = self.lock.lock().unwrap();
        self.rings.fetch_add(1, Ordering::Relaxed);
        self.rung.notify_all();
    }
}

impl Alarm {
    fn rings(&self) -> u32 {
        self.rings.load(Ordering::Relaxed)
    }

    /// Sleeps until it has rung so often.
    fn wait(&self, rings: u32) {
        let guard = self.lock.lock().unwrap();
        let waited = self.rung.wait_timeout_while(guard, Duration::from_secs(20), |()| self.rings() < rings).unwrap();
        assert!(!waited.1.timed_out(), "a wake-up was lost");
    }
}

fn poll<F: Future + Unpin>(future: &mut F, alarm: &Arc<Alarm>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(alarm));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// The smallest executor: polls when woken, never else. Answers how often it has polled too.
fn block_on<F: Future>(future: F) -> (F::Output, u32) {
    let mut future = pin!(future);
    let alarm = Arc::new(Alarm::default());
    let waker = Waker::from(Arc::clone(&alarm));
    for polls in 1.. {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return (output, polls),
            Poll::Pending => alarm.wait(polls),
        }
    }
    unreachable!()
}

fn recorded(queue: &Queue) -> Event {
    let event = Event::new(CPU).unwrap();
    event.record(queue).unwrap();
    event
}

#[test]
fn what_is_complete_is_ready_at_once() {
    let event = Event::new(CPU).unwrap();
    let (outcome, polls) = block_on((&event).into_future());
    assert_eq!((outcome, polls), (Ok(()), 1));
    let synchronous = Queue::new(CPU).unwrap();
    event.record(&synchronous).unwrap();
    assert_eq!(block_on(event.into_future()), (Ok(()), 1));
    let queue = async_queue();
    let event = recorded(&queue);
    queue.synchronize().unwrap();
    assert_eq!(block_on(event.into_future()), (Ok(()), 1));
}

#[test]
fn a_pending_event_is_polled_twice_and_wakes_once() {
    let (queue, gate) = (async_queue(), Gate::default());
    gate.block(&queue).unwrap();
    let mut future = recorded(&queue).into_future();
    let alarm = Arc::new(Alarm::default());
    assert_eq!(poll(&mut future, &alarm), Poll::Pending);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(alarm.rings(), 0);
    gate.open();
    alarm.wait(1);
    assert_eq!(poll(&mut future, &alarm), Poll::Ready(Ok(())));
    queue.synchronize().unwrap();
    assert_eq!(alarm.rings(), 1);
    while Arc::strong_count(&alarm) > 1 {
        std::thread::yield_now(); // the ringing thread is about to let its waker go
    }
}

#[test]
fn a_future_stands_for_the_record_of_its_time() {
    let (first, second) = (async_queue(), async_queue());
    let (gates, event) = ([Gate::default(), Gate::default()], Event::new(CPU).unwrap());
    gates[0].block(&first).unwrap();
    event.record(&first).unwrap();
    let early = (&event).into_future();
    gates[1].block(&second).unwrap();
    event.record(&second).unwrap();
    let mut late = (&event).into_future();
    gates[0].open();
    assert_eq!(pollster::block_on(early), Ok(())); // the second queue is still held back
    let alarm = Arc::new(Alarm::default());
    assert_eq!(poll(&mut late, &alarm), Poll::Pending);
    gates[1].open();
    assert_eq!(pollster::block_on(late), Ok(()));
}

#[test]
fn work_behind_the_record_does_not_delay_it() {
    let (queue, gate) = (async_queue(), Gate::default());
    let event = recorded(&queue);
    let future = (&event).into_future();
    gate.block(&queue).unwrap();
    assert_eq!(pollster::block_on(future), Ok(()));
    gate.open();
}

#[test]
fn the_failure_before_a_record_is_its_error() {
    let queue = async_queue();
    let event = Event::new(CPU).unwrap();
    fail_before(&queue, |q| event.record(q));
    let error = pollster::block_on(event.into_future()).unwrap_err();
    assert_eq!((error.status, error.message.as_str()), (Status::NotFound, "stop"));

    let (queue, gate) = (async_queue(), Gate::default());
    gate.block(&queue).unwrap();
    queue.host_func(|| panic!("a bug")).unwrap();
    let mut pending = recorded(&queue).into_future();
    let alarm = Arc::new(Alarm::default());
    assert_eq!(poll(&mut pending, &alarm), Poll::Pending);
    gate.open();
    let error = pollster::block_on(pending).unwrap_err();
    assert!(error.status == Status::Internal && error.message.contains("a bug"), "{error}");
}

#[test]
fn a_dropped_future_wakes_nobody_and_keeps_nothing() {
    let (queue, gate) = (async_queue(), Gate::default());
    gate.block(&queue).unwrap();
    let event = recorded(&queue);
    let alarms = [Arc::new(Alarm::default()), Arc::new(Alarm::default())];
    let (mut kept, mut dropped) = ((&event).into_future(), (&event).into_future());
    assert_eq!(poll(&mut dropped, &alarms[0]), Poll::Pending);
    assert_eq!(poll(&mut kept, &alarms[1]), Poll::Pending);
    drop(dropped);
    assert_eq!(Arc::strong_count(&alarms[0]), 1);
    gate.open();
    alarms[1].wait(1);
    assert_eq!(poll(&mut kept, &alarms[1]), Poll::Ready(Ok(())));
    assert_eq!(alarms[0].rings(), 0);
}

#[test]
fn the_last_waker_given_is_woken() {
    let (queue, gate) = (async_queue(), Gate::default());
    gate.block(&queue).unwrap();
    let mut future = recorded(&queue).into_future();
    let (first, last) = (Arc::new(Alarm::default()), Arc::new(Alarm::default()));
    assert_eq!(poll(&mut future, &first), Poll::Pending);
    assert_eq!(poll(&mut future, &last), Poll::Pending);
    gate.open();
    last.wait(1);
    assert_eq!((first.rings(), Arc::strong_count(&first)), (0, 1));
}

#[test]
fn a_thousand_futures_in_any_order() {
    let queues: Vec<Queue> = (0..4).map(|_| async_queue()).collect();
    let gate = Gate::default();
    queues.iter().for_each(|queue| gate.block(queue).unwrap());
    let mut futures: Vec<EventFuture> = (0..1000)
        .map(|i| {
            let queue = &queues[i % 4];
            queue.host_func(|| Ok(())).unwrap();
            recorded(queue).into_future()
        })
        .collect();
    futures.reverse();
    for i in 0..1000 {
        futures.swap(i, i * 7919 % 1000);
    }
    let alarms: Vec<Arc<Alarm>> = (0..1000).map(|_| Arc::new(Alarm::default())).collect();
    for (future, alarm) in futures.iter_mut().zip(&alarms) {
        assert_eq!(poll(future, alarm), Poll::Pending);
    }
    gate.open();
    for (future, alarm) in futures.iter_mut().zip(&alarms) {
        alarm.wait(1);
        assert_eq!(poll(future, alarm), Poll::Ready(Ok(())));
    }
}

#[test]
fn no_wake_up_is_lost() {
    let queue = async_queue();
    let event = Event::new(CPU).unwrap();
    for round in 0..3000 {
        queue
            .host_func(move || {
                (0..round % 300).for_each(|_| std::hint::spin_loop());
                Ok(())
            })
            .unwrap();
        event.record(&queue).unwrap();
        let (outcome, polls) = block_on((&event).into_future());
        assert!(outcome.is_ok() && polls <= 2, "{polls} polls");
    }
}

#[test]
fn a_future_outlives_event_and_queue_and_goes_to_any_thread() {
    let gate = Gate::default();
    let future = {
        let queue = async_queue();
        gate.block(&queue).unwrap();
        recorded(&queue).into_future()
    };
    let waiting = std::thread::spawn(|| pollster::block_on(future));
    gate.open();
    assert_eq!(waiting.join().unwrap(), Ok(()));
}

#[test]
fn what_is_recorded_in_a_capture_cannot_be_awaited() {
    let (queue, event) = (async_queue(), Event::new(CPU).unwrap());
    queue.capture(|q| event.record(q)).unwrap();
    let error = pollster::block_on((&event).into_future()).unwrap_err();
    assert_eq!(error.status, Status::FailedPrecondition);
    event.record(&queue).unwrap();
    assert_eq!(pollster::block_on(event.into_future()), Ok(()));
}

#[test]
fn a_capture_of_another_thread_is_left_alone() {
    let (queue, gate, end) = (async_queue(), Gate::default(), Gate::default());
    gate.block(&queue).unwrap();
    let future = recorded(&queue).into_future();
    let (began, begins) = mpsc::channel();
    std::thread::scope(|scope| {
        let capture = scope.spawn(|| {
            queue.capture(|q| {
                began.send(()).unwrap();
                end.wait();
                q.host_func(|| Ok(()))
            })
        });
        begins.recv().unwrap();
        let waiting = scope.spawn(|| pollster::block_on(future));
        std::thread::sleep(Duration::from_millis(10)); // the thread of the library asks meanwhile
        gate.open();
        assert_eq!(waiting.join().unwrap(), Ok(()));
        end.open();
        assert_eq!(capture.join().unwrap().unwrap().node_count(), Ok(1));
    });
}

#[test]
fn a_callback_may_not_await() {
    let (queue, other) = (async_queue(), async_queue());
    let event = recorded(&other);
    let future = Mutex::new(event.into_future());
    queue.host_func(move || pollster::block_on(&mut *future.lock().unwrap())).unwrap();
    assert_eq!(queue.close().unwrap_err().status, Status::FailedPrecondition);
}

#[test]
fn a_waker_that_panics_harms_nobody_else() {
    struct Bomb;
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            panic!("woken");
        }
    }
    let (queue, gate) = (async_queue(), Gate::default());
    gate.block(&queue).unwrap();
    let event = recorded(&queue);
    let (mut first, mut second) = ((&event).into_future(), (&event).into_future());
    let (waker, alarm) = (Waker::from(Arc::new(Bomb)), Arc::new(Alarm::default()));
    assert_eq!(Pin::new(&mut first).poll(&mut Context::from_waker(&waker)), Poll::Pending);
    assert_eq!(poll(&mut second, &alarm), Poll::Pending);
    gate.open();
    alarm.wait(1);
    assert_eq!(poll(&mut second, &alarm), Poll::Ready(Ok(())));
}

#[test]
fn an_awaited_timing_event_has_its_time() {
    let queue = async_queue();
    let flags = EventFlags { timing: true, ..EventFlags::default() };
    let events = [(); 2].map(|()| Event::with_flags(CPU, flags).unwrap());
    for _ in 0..100 {
        events[0].record(&queue).unwrap();
        queue.host_func(|| Ok(())).unwrap();
        events[1].record(&queue).unwrap();
        // The stamp is an operation of the record.
        let stamp = format!("EventFuture(operation {} of queue {})", queue.ticket().unwrap(), queue.id());
        assert_eq!(format!("{:?}", (&events[1]).into_future()), stamp);
        let both = async {
            (&events[0]).await?;
            (&events[1]).await
        };
        pollster::block_on(both).unwrap();
        Event::elapsed(&events[0], &events[1]).unwrap();
    }
}

#[test]
fn tasks_of_one_executor_overlap() {
    let (first, second) = (async_queue(), async_queue());
    let (here, there) = (Gate::default(), Gate::default());
    here.block(&first).unwrap();
    there.block(&second).unwrap();
    let mut tasks = [recorded(&first).into_future(), recorded(&second).into_future()];
    let alarm = Arc::new(Alarm::default());
    assert!(tasks.iter_mut().all(|task| poll(task, &alarm).is_pending()));
    there.open(); // the second one completes first
    alarm.wait(1);
    assert_eq!(poll(&mut tasks[1], &alarm), Poll::Ready(Ok(())));
    assert_eq!(poll(&mut tasks[0], &alarm), Poll::Pending);
    here.open();
    assert_eq!(pollster::block_on(&mut tasks[0]), Ok(()));
}
