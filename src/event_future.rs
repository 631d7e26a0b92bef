//! Awaiting events, with any executor.
//!
//! An [`EventFuture`] stands for one record: (queue, ticket). What has completed by then is answered at once. Else the task's waker goes
//! to the [`Watch`] of the queue. Its thread waits in the C runtime for the earliest of the awaited tickets, one slice of time after the
//! other, wakes who waits for it, and ends when nobody has waited for a while. So no task is polled in vain, and nothing is needed of
//! the queue's backend but to wait for a ticket.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::context;
use crate::error::{Error, Result, Status};
use crate::event::Event;
use crate::queue_core::{QueueCore, lock};

/// How long a thread sleeps before it looks for earlier tickets that came meanwhile. Later ones needn't disturb it.
const SLICE: Duration = Duration::from_millis(2);

/// How long a thread stays when nobody waits.
const LINGER: Duration = Duration::from_millis(100);

/// Who waits for which operation of one queue.
#[derive(Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    /// By ticket, then by the number of the future.
    wakers: BTreeMap<(u64, u64), Waker>,
    /// Kept alive while somebody waits.
    queue: Option<Arc<QueueCore>>,
    next: u64,
    has_thread: bool,
}

impl Watch {
    /// Wakes `waker` once when the operation is settled, in place of the one given with `key` before. Answers the key.
    fn register(self: &Arc<Watch>, queue: &Arc<QueueCore>, ticket: u64, key: Option<u64>, waker: &Waker) -> Result<u64> {
        let mut state = lock(&self.state);
        if !state.has_thread {
            let watch = Arc::clone(self);
            let thread = std::thread::Builder::new().name("vt-watch".into()).spawn(move || watch.run());
            thread.map_err(|error| Error::new(Status::OutOfMemory, format!("no thread to await an event: {error}")))?;
            state.has_thread = true;
        }
        let key = key.unwrap_or(state.next);
        state.next = state.next.max(key + 1);
        state.queue.get_or_insert_with(|| Arc::clone(queue));
        let before = state.wakers.insert((ticket, key), waker.clone());
        drop(state);
        self.arrived.notify_one();
        before.into_iter().for_each(discard);
        Ok(key)
    }

    fn cancel(&self, ticket: u64, key: u64) {
        let mut state = lock(&self.state);
        let waker = state.wakers.remove(&(ticket, key));
        let queue = if state.wakers.is_empty() { state.queue.take() } else { None };
        drop(state); // what goes may run code of the user, and end the queue
        waker.into_iter().for_each(discard);
        drop(queue);
    }

    fn run(&self) {
        while let Some((queue, ticket)) = self.earliest() {
            if !queue.settles_within(ticket, SLICE) {
                continue;
            }
            for waker in self.take(ticket) {
                // A panic in an executor ends here: other tasks wait.
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                    discard(payload);
                }
            }
        }
    }

    /// What to wait for next; `None` ends the thread.
    fn earliest(&self) -> Option<(Arc<QueueCore>, u64)> {
        let state = lock(&self.state);
        let nobody = |state: &mut State| state.wakers.is_empty();
        let waited = self.arrived.wait_timeout_while(state, LINGER, nobody);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let earliest = state.wakers.first_key_value().map(|entry| entry.0.0);
        let next = state.queue.clone().zip(earliest);
        state.has_thread = next.is_some();
        next
    }

    /// Takes all who wait for operations up to `ticket`.
    fn take(&self, ticket: u64) -> Vec<Waker> {
        let mut state = lock(&self.state);
        let later = state.wakers.split_off(&(ticket + 1, 0));
        let settled = std::mem::replace(&mut state.wakers, later);
        let queue = if state.wakers.is_empty() { state.queue.take() } else { None };
        drop(state);
        drop(queue);
        settled.into_values().collect()
    }
}

/// Drops a value of the user where a panic must not pass.
fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(move || drop(value))) {
        std::mem::forget(payload); // it could panic again
    }
}

/// What an event stood for when the future was made.
pub(crate) enum Awaited {
    /// It was never recorded.
    Nothing,
    /// Everything on a queue up to a ticket.
    Work(Arc<QueueCore>, u64),
    Captured,
}

/// Completes when an event has: made by `event.await` or [`IntoFuture::into_future`].
///
/// It stands for the record that was the latest when it was made, whatever becomes of the event. The failure of the queue at or before
/// that record is its error. It works with any executor, needs none of its threads, and may be dropped at any time. Whoever awaits an
/// earlier record of a queue after a later one may be woken 2 ms late.
#[must_use = "a future does nothing unless it is awaited"]
pub struct EventFuture {
    awaited: Awaited,
    /// Of the waker that the queue's watch keeps.
    key: Option<u64>,
}

impl EventFuture {
    fn cancel(&mut self) {
        if let (Awaited::Work(queue, ticket), Some(key)) = (&self.awaited, self.key.take()) {
            queue.watch.cancel(*ticket, key);
        }
    }

    fn poll_once(&mut self, context: &Context<'_>) -> Result<bool> {
        context::enter("event.await")?;
        let (queue, ticket) = match &self.awaited {
            Awaited::Nothing => return Ok(true),
            Awaited::Captured => {
                return Err(Error::refused("event.await", "the event was recorded in a capture: the host can't wait for it"));
            }
            Awaited::Work(queue, ticket) => (queue, *ticket),
        };
        if queue.query(ticket)? {
            return Ok(true);
        }
        self.key = Some(queue.watch.register(queue, ticket, self.key, context.waker())?);
        Ok(false)
    }
}

impl Future for EventFuture {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let outcome = match self.poll_once(context) {
            Ok(false) => return Poll::Pending,
            Ok(true) => Ok(()),
            Err(error) => Err(error),
        };
        self.cancel();
        Poll::Ready(outcome)
    }
}

impl Drop for EventFuture {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl std::fmt::Debug for EventFuture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.awaited {
            Awaited::Work(queue, ticket) => write!(f, "EventFuture(operation {ticket} of queue {})", queue.id),
            Awaited::Nothing => f.write_str("EventFuture(complete)"),
            Awaited::Captured => f.write_str("EventFuture(captured)"),
        }
    }
}

impl IntoFuture for &Event {
    type Output = Result<()>;
    type IntoFuture = EventFuture;

    fn into_future(self) -> EventFuture {
        EventFuture { awaited: self.awaited(), key: None }
    }
}

impl IntoFuture for Event {
    type Output = Result<()>;
    type IntoFuture = EventFuture;

    fn into_future(self) -> EventFuture {
        (&self).into_future()
    }
}
