//! What the tests share.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::any::Any;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use vllm_cpp_sys::{Device, Error, Queue, Result, Status};

pub const CPU: Device = Device::cpu(0);

/// Holds a queue back until it is opened.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Queues a host function that waits for the gate, for at most ten seconds.
    pub fn block(&self, queue: &Queue) -> Result<()> {
        let gate = self.clone();
        queue.host_func(move || {
            gate.wait();
            Ok(())
        })
    }

    pub fn wait(&self) {
        let (open, moved) = &*self.0;
        let guard = open.lock().unwrap();
        drop(moved.wait_timeout_while(guard, Duration::from_secs(10), |open| !*open).unwrap());
    }

    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

/// Queues a pause.
pub fn delay(queue: &Queue, milliseconds: u64) -> Result<()> {
    queue.host_func(move || {
        std::thread::sleep(Duration::from_millis(milliseconds));
        Ok(())
    })
}

/// Queues what `work` does behind a failure, so that it never runs, and waits for the failure.
pub fn fail_before(queue: &Queue, work: impl FnOnce(&Queue) -> Result<()>) {
    let gate = Gate::default();
    gate.block(queue).unwrap();
    queue.host_func(|| Err(Error::new(Status::NotFound, "stop"))).unwrap();
    work(queue).unwrap();
    gate.open();
    assert_eq!(queue.synchronize().unwrap_err().status, Status::NotFound);
}

pub fn async_queue() -> Queue {
    Queue::new_async(CPU).unwrap()
}

/// Forgotten values, kept reachable, so that a leak checker sees what is meant.
static KEPT: Mutex<Vec<&'static (dyn Any + Send + Sync)>> = Mutex::new(Vec::new());

/// Forgets a value.
pub fn forget<T: Any + Send + Sync>(value: T) -> &'static T {
    let value: &'static T = Box::leak(Box::new(value));
    KEPT.lock().unwrap().push(value);
    value
}

/// Addresses of forgotten values that borrow.
static KEPT_BORROWERS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Forgets a value that borrows something.
pub fn forget_borrowed<T>(value: T) {
    KEPT_BORROWERS.lock().unwrap().push(Box::into_raw(Box::new(value)).addr());
}
