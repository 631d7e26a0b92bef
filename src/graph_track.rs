//! What is known about one graph: its launches, and what they conflict with.
//!
//! A graph uses its buffers at every launch without borrowing them. So that a launch looks at a handful of numbers and not at every
//! buffer, the other side does the work: whoever uses a buffer that graphs hold tells each of them. A [`GraphTrack`] counts open views
//! and operations in submission, keeps the last operation of each queue that used one of its buffers, and knows its neighbours: graphs
//! that share a buffer with it which one of the two writes.
//!
//! One mutex, the gate, guards all of this in the process. It is never held over a call that may block: submissions in progress are
//! counted, and a conflicting one waits for the gate's condition variable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use crate::context;
use crate::error::{Error, Result};
use crate::queue_core::{QueueCore, Use, lock};
use crate::track::{Access, Few, Mode, Wait};

/// Holds the number of threads that wait for the gate to move.
static GATE: Mutex<usize> = Mutex::new(0);
static GATE_MOVED: Condvar = Condvar::new();

#[derive(Default)]
pub(crate) struct GraphTrack {
    /// Changed with the gate held, except at the end of the allocation that holds it.
    state: Mutex<State>,
    /// There will be no more launches.
    dead: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The last launch on each queue.
    launches: Vec<Use>,
    /// The last operation of each queue that conflicts with the graph.
    foreign: Vec<Use>,
    /// Open host views that conflict with the graph.
    views: usize,
    /// Conflicting operations between begin and finish.
    submissions: usize,
    /// Launches of this graph between begin and finish.
    launching: usize,
    neighbours: Vec<Weak<GraphTrack>>,
}

/// An allocation's note of a graph that holds it: the bytes that the graph reads and writes.
pub(crate) struct Link {
    pub(crate) track: Arc<GraphTrack>,
    reads: (usize, usize),
    writes: (usize, usize),
}

impl Link {
    fn conflicts(&self, access: &Access<'_>) -> bool {
        access.conflicts(self.writes.0, self.writes.1, true) || access.conflicts(self.reads.0, self.reads.1, false)
    }
}

fn extend(range: &mut (usize, usize), access: &Access<'_>) {
    *range = if range.0 < range.1 { (range.0.min(access.start), range.1.max(access.end)) } else { (access.start, access.end) };
}

/// Notes an operation of a queue, in place of earlier ones of that queue.
fn upsert(uses: &mut Vec<Use>, queue: &Arc<QueueCore>, ticket: u64, write: bool) {
    if let Some(entry) = uses.iter_mut().find(|entry| entry.queue.id == queue.id) {
        entry.ticket = entry.ticket.max(ticket);
        entry.write |= write;
        return;
    }
    if uses.len() >= 8 {
        uses.retain(|entry| !entry.is_settled());
    }
    uses.push(Use { queue: Arc::clone(queue), ticket, start: 0, end: usize::MAX, write });
}

impl GraphTrack {
    pub(crate) fn add_launches(&self, uses: &mut Vec<Use>) {
        uses.extend(lock(&self.state).launches.iter().cloned());
    }

    /// Collects the launches for a host that waits for all of them.
    pub(crate) fn collect_launches(&self, waits: &mut Few<Wait>) {
        collect(&lock(&self.state).launches, None, true, waits);
    }

    /// Says that the graph is gone: allocations forget it when its launches have completed.
    pub(crate) fn retire(&self) {
        self.dead.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        // acquire: the launches were noted before.
        self.dead.load(Ordering::Acquire) && lock(&self.state).launches.iter().all(Use::is_settled)
    }

    fn is_launching(&self) -> bool {
        lock(&self.state).launching > 0
    }
}

/// Waits for the gate to move. A thread inside a batch may be the one that keeps it from moving.
fn wait_for_move(mut gate: MutexGuard<'static, usize>) -> Result<MutexGuard<'static, usize>> {
    if context::is_batching() {
        return Err(Error::refused("", "a batch of this thread, or a conflicting launch, is in progress"));
    }
    *gate += 1;
    let mut gate = GATE_MOVED.wait(gate).unwrap_or_else(PoisonError::into_inner);
    *gate -= 1;
    Ok(gate)
}

/// Lets the gate go after a submission has ended.
fn moved(gate: MutexGuard<'static, usize>) {
    let waiters = *gate;
    drop(gate);
    if waiters > 0 {
        GATE_MOVED.notify_all(); // a system call
    }
}

/// Collects the graphs that conflict with an access, and forgets those that are over.
fn conflicting_tracks(access: &Access<'_>, tracks: &mut Few<Arc<GraphTrack>>) {
    let mut tracker = access.alloc.tracker();
    tracker.links.retain(|link| !link.track.is_over());
    for link in tracker.links.iter().filter(|link| link.conflicts(access)) {
        if !tracks.iter().any(|track| Arc::ptr_eq(track, &link.track)) {
            tracks.push(Arc::clone(&link.track));
        }
    }
}

/// Waits until no conflicting launch is in submission, then runs `mark` on each conflicting graph, all under the gate.
fn at_rest(accesses: &[Access<'_>], tracks: &mut Few<Arc<GraphTrack>>, mut mark: impl FnMut(&mut State)) -> Result<()> {
    let mut gate = lock(&GATE);
    accesses.iter().for_each(|access| conflicting_tracks(access, tracks));
    while tracks.iter().any(|track| track.is_launching()) {
        gate = match wait_for_move(gate) {
            Ok(gate) => gate,
            Err(error) => {
                *tracks = Few::new();
                return Err(error);
            }
        };
    }
    tracks.iter().for_each(|track| mark(&mut lock(&track.state)));
    Ok(())
}

/// Keeps launches of graphs that conflict with an operation out, until [`let_in`].
pub(crate) fn keep_out(
    accesses: &[Access<'_>],
    queue: Option<&QueueCore>,
    tracks: &mut Few<Arc<GraphTrack>>,
    waits: &mut Few<Wait>,
) -> Result<()> {
    let report = accesses.iter().any(|access| access.mode != Mode::Write);
    at_rest(accesses, tracks, |state| {
        state.submissions += 1;
        collect(&state.launches, queue, report, waits);
    })
}

/// Lets launches in again; `ticket` is that of the operation, 0 where it has completed.
pub(crate) fn let_in(tracks: &Few<Arc<GraphTrack>>, queue: &Arc<QueueCore>, ticket: u64) {
    let gate = lock(&GATE);
    for track in tracks.iter() {
        let mut state = lock(&track.state);
        state.submissions -= 1;
        if ticket != 0 {
            upsert(&mut state.foreign, queue, ticket, true);
        }
    }
    moved(gate);
}

/// Refuses launches of graphs that conflict with a view, until [`close_view`]; collects the launches that the view waits for.
pub(crate) fn open_view(access: &Access<'_>, tracks: &mut Few<Arc<GraphTrack>>, waits: &mut Few<Wait>) -> Result<()> {
    at_rest(std::slice::from_ref(access), tracks, |state| {
        state.views += 1;
        collect(&state.launches, None, true, waits);
    })
}

pub(crate) fn close_view(tracks: &Few<Arc<GraphTrack>>) {
    let _gate = lock(&GATE);
    tracks.iter().for_each(|track| lock(&track.state).views -= 1);
}

/// Collects the operations that work on `queue` (`None`: the host) doesn't come after yet.
fn collect(uses: &[Use], queue: Option<&QueueCore>, report: bool, waits: &mut Few<Wait>) {
    for entry in uses {
        let ordered = queue.is_some_and(|queue| queue.id == entry.queue.id || queue.comes_after(entry.queue.id, entry.ticket));
        if !ordered {
            waits.push(Wait { queue: Arc::clone(&entry.queue), ticket: entry.ticket, report: report && entry.write });
        }
    }
}

/// Notes that a graph being captured uses a range: from now on, who uses the buffer tells the graph.
pub(crate) fn link(track: &Arc<GraphTrack>, access: &Access<'_>) -> Result<()> {
    let _gate = lock(&GATE);
    let mut tracker = access.alloc.tracker();
    tracker.check_views(access)?;
    tracker.links.retain(|link| !link.track.is_over());
    let mut state = lock(&track.state);
    for entry in tracker.conflicting(access) {
        upsert(&mut state.foreign, &entry.queue, entry.ticket, entry.write);
    }
    for other in tracker.links.iter().filter(|link| !Arc::ptr_eq(&link.track, track) && link.conflicts(access)) {
        add_neighbour(&mut state.neighbours, &other.track);
        add_neighbour(&mut lock(&other.track.state).neighbours, track);
    }
    if !tracker.links.iter().any(|link| Arc::ptr_eq(&link.track, track)) {
        tracker.links.push(Link { track: Arc::clone(track), reads: (0, 0), writes: (0, 0) });
    }
    if let Some(own) = tracker.links.iter_mut().find(|link| Arc::ptr_eq(&link.track, track)) {
        extend(if access.writes() { &mut own.writes } else { &mut own.reads }, access);
    }
    Ok(())
}

fn add_neighbour(neighbours: &mut Vec<Weak<GraphTrack>>, track: &Arc<GraphTrack>) {
    neighbours.retain(|entry| entry.strong_count() > 0);
    if !neighbours.iter().any(|entry| std::ptr::eq(entry.as_ptr(), Arc::as_ptr(track))) {
        neighbours.push(Arc::downgrade(track));
    }
}

/// A launch between its begin and its finish.
pub(crate) struct Launch<'a> {
    track: &'a GraphTrack,
    queue: &'a Arc<QueueCore>,
}

impl<'a> Launch<'a> {
    /// Refuses where a view is open; makes the queue wait for conflicting work of other queues.
    pub(crate) fn begin(track: &'a GraphTrack, queue: &'a Arc<QueueCore>) -> Result<Launch<'a>> {
        let mut waits = Few::new();
        let mut gate = lock(&GATE);
        loop {
            let state = lock(&track.state);
            if state.views > 0 {
                return Err(Error::refused("vt_graph_launch", "a view of one of the graph's buffers is open, or was forgotten"));
            }
            let busy = state.submissions > 0 || neighbours(&state).any(|other| other.is_launching());
            if !busy {
                break;
            }
            drop(state);
            gate = wait_for_move(gate)?;
        }
        let mut state = lock(&track.state);
        collect(&state.foreign, Some(queue), false, &mut waits);
        neighbours(&state).for_each(|other| collect(&lock(&other.state).launches, Some(queue), false, &mut waits));
        state.launching += 1;
        drop(state);
        drop(gate);
        let launch = Launch { track, queue };
        for wait in waits.iter() {
            match queue.order_after(&wait.queue, wait.ticket) {
                Err(error) if !wait.queue.is_settled(wait.ticket) => return Err(error),
                _ => {}
            }
        }
        Ok(launch)
    }
}

fn neighbours(state: &State) -> impl Iterator<Item = Arc<GraphTrack>> {
    state.neighbours.iter().filter_map(Weak::upgrade)
}

/// Finishes, whatever the call into C answered.
impl Drop for Launch<'_> {
    fn drop(&mut self) {
        let ticket = if self.queue.synchronous { 0 } else { self.queue.ticket() };
        let gate = lock(&GATE);
        let mut state = lock(&self.track.state);
        state.launching -= 1;
        if ticket != 0 {
            upsert(&mut state.launches, self.queue, ticket, true);
        }
        drop(state);
        moved(gate);
    }
}
