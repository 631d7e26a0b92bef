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

use crate::alloc::Alloc;
use crate::context;
use crate::error::{Error, Result};
use crate::queue_core::{Progress, QueueCore, Use, lock};
use crate::ranges::Ranges;
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
    reads: Ranges,
    writes: Ranges,
    /// What it reads before it writes it: a failed earlier write of these bytes matters to a launch.
    inputs: Ranges,
    /// Of failed launches that were reported for a part of `writes`: the rest.
    owed: Vec<Owed>,
}

/// Bytes that a launch failed to write and that nobody was told of yet.
struct Owed {
    queue: u64,
    ticket: u64,
    bytes: Ranges,
}

impl Link {
    fn new(track: &Arc<GraphTrack>) -> Link {
        let (reads, writes, inputs) = (Ranges::default(), Ranges::default(), Ranges::default());
        Link { track: Arc::clone(track), reads, writes, inputs, owed: Vec::new() }
    }

    /// Answers whether the allocation may forget the graph: nothing runs or will run, and nobody is to be told of a failure.
    fn is_over(&self) -> bool {
        self.track.is_over(|launch| match launch.queue.progress(launch.ticket) {
            Progress::Done => true,
            Progress::Pending => false,
            Progress::Failed(_) => {
                let owed = self.owed.iter().find(|owed| (owed.queue, owed.ticket) == (launch.queue.id, launch.ticket));
                owed.map_or(&self.writes, |owed| &owed.bytes).is_empty()
            }
        })
    }

    fn conflicts(&self, access: &Access<'_>) -> bool {
        self.writes.overlaps(access.start, access.end) || (access.writes() && self.reads.overlaps(access.start, access.end))
    }

    /// Notes a range that the graph uses, in the order of the capture.
    fn extend(&mut self, access: &Access<'_>) {
        if access.mode != Mode::Write {
            let mut inputs = Ranges::default();
            inputs.add(access.start, access.end);
            self.writes.iter().for_each(|(start, end)| inputs.remove(start, end));
            inputs.iter().for_each(|(start, end)| self.inputs.add(start, end));
            self.reads.add(access.start, access.end);
        }
        if access.writes() {
            self.writes.add(access.start, access.end);
        }
    }

    /// Forgets that the launch on `queue` failed to write the bytes of an access, and answers whether it did.
    pub(crate) fn forget_failure(&mut self, access: &Access<'_>, queue: &QueueCore) -> bool {
        let Some(ticket) = self.track.failed_launch(queue) else { return false };
        self.owed.retain(|owed| owed.queue != queue.id || owed.ticket == ticket);
        let known = self.owed.iter().position(|owed| owed.queue == queue.id);
        let mut owed = match known {
            Some(at) => self.owed.swap_remove(at),
            None => Owed { queue: queue.id, ticket, bytes: self.writes.clone() },
        };
        let failed = owed.bytes.overlaps(access.start, access.end);
        owed.bytes.remove(access.start, access.end);
        self.owed.push(owed);
        failed
    }
}

/// Notes an operation of a queue, in place of earlier ones of that queue.
fn upsert(uses: &mut Vec<Use>, queue: &Arc<QueueCore>, ticket: u64) {
    if let Some(entry) = uses.iter_mut().find(|entry| entry.queue.id == queue.id) {
        entry.ticket = entry.ticket.max(ticket);
        return;
    }
    if uses.len() >= 8 {
        uses.retain(|entry| !matches!(entry.queue.progress(entry.ticket), Progress::Done));
    }
    uses.push(Use { queue: Arc::clone(queue), ticket, start: 0, end: usize::MAX, write: true, first: false });
}

impl GraphTrack {
    pub(crate) fn add_launches(&self, uses: &mut Vec<Use>) {
        uses.extend(lock(&self.state).launches.iter().cloned());
    }

    /// Collects the launches for a host that waits for all of them.
    pub(crate) fn collect_launches(&self, waits: &mut Few<Wait>) {
        collect(&lock(&self.state).launches, None, waits);
    }

    /// The ticket of the last launch on a queue, where that has failed.
    fn failed_launch(&self, queue: &QueueCore) -> Option<u64> {
        let state = lock(&self.state);
        let launch = state.launches.iter().find(|launch| launch.queue.id == queue.id)?;
        launch.has_failed().then_some(launch.ticket)
    }

    /// Says that the graph is gone: allocations forget it when its launches have completed.
    pub(crate) fn retire(&self) {
        self.dead.store(true, Ordering::Release);
    }

    /// Answers whether there will be no more launches, and each one `is_through`.
    fn is_over(&self, is_through: impl Fn(&Use) -> bool) -> bool {
        // acquire: the launches were noted before.
        self.dead.load(Ordering::Acquire) && lock(&self.state).launches.iter().all(is_through)
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
    tracker.links.retain(|link| !link.is_over());
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
    at_rest(accesses, tracks, |state| {
        state.submissions += 1;
        collect(&state.launches, queue, waits);
    })
}

/// Lets launches in again; `ticket` is that of the operation, 0 where it has completed.
pub(crate) fn let_in(tracks: &Few<Arc<GraphTrack>>, queue: &Arc<QueueCore>, ticket: u64) {
    let gate = lock(&GATE);
    for track in tracks.iter() {
        let mut state = lock(&track.state);
        state.submissions -= 1;
        if ticket != 0 {
            upsert(&mut state.foreign, queue, ticket);
        }
    }
    moved(gate);
}

/// Refuses launches of graphs that conflict with a view, until [`close_view`]; collects the launches that the view, or the queue that
/// works on it (`None`: the host), waits for.
pub(crate) fn open_view(
    access: &Access<'_>,
    queue: Option<&QueueCore>,
    tracks: &mut Few<Arc<GraphTrack>>,
    waits: &mut Few<Wait>,
) -> Result<()> {
    at_rest(std::slice::from_ref(access), tracks, |state| {
        state.views += 1;
        collect(&state.launches, queue, waits);
    })
}

pub(crate) fn close_view(tracks: &Few<Arc<GraphTrack>>) {
    let _gate = lock(&GATE);
    tracks.iter().for_each(|track| lock(&track.state).views -= 1);
}

/// As [`close_view`], where a queue may still use the memory until `ticket`.
pub(crate) fn end_lease(tracks: &Few<Arc<GraphTrack>>, queue: &Arc<QueueCore>, ticket: u64) {
    let _gate = lock(&GATE);
    for track in tracks.iter() {
        let mut state = lock(&track.state);
        state.views -= 1;
        if ticket != 0 {
            upsert(&mut state.foreign, queue, ticket);
        }
    }
}

/// Collects the operations that work on `queue` (`None`: the host) doesn't come after yet.
fn collect(uses: &[Use], queue: Option<&QueueCore>, waits: &mut Few<Wait>) {
    for entry in uses {
        let ordered = queue.is_some_and(|queue| queue.id == entry.queue.id || queue.comes_after(entry.queue.id, entry.ticket));
        if !ordered {
            waits.after(&entry.queue, entry.ticket);
        }
    }
}

/// Notes that a graph being captured uses a range: from now on, who uses the buffer tells the graph.
pub(crate) fn link(track: &Arc<GraphTrack>, access: &Access<'_>) -> Result<()> {
    let _gate = lock(&GATE);
    let mut tracker = access.alloc.tracker();
    tracker.check_views(access)?;
    tracker.links.retain(|link| !link.is_over());
    let mut state = lock(&track.state);
    for entry in tracker.conflicting(access) {
        upsert(&mut state.foreign, &entry.queue, entry.ticket);
    }
    for other in tracker.links.iter().filter(|link| !Arc::ptr_eq(&link.track, track) && link.conflicts(access)) {
        add_neighbour(&mut state.neighbours, &other.track);
        add_neighbour(&mut lock(&other.track.state).neighbours, track);
    }
    if !tracker.links.iter().any(|link| Arc::ptr_eq(&link.track, track)) {
        tracker.links.push(Link::new(track));
    }
    if let Some(own) = tracker.links.iter_mut().find(|link| Arc::ptr_eq(&link.track, track)) {
        own.extend(access);
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
    allocs: &'a [Arc<Alloc>],
    queue: &'a Arc<QueueCore>,
    /// Queues that failed before this launch.
    failed: Few<Arc<QueueCore>>,
    /// Whether the call into C was made, and whether C took it.
    called: bool,
    submitted: bool,
}

impl<'a> Launch<'a> {
    /// Refuses where a view is open, and where something failed that should have written what the graph reads; makes the queue wait
    /// for conflicting work of other queues.
    pub(crate) fn begin(track: &'a GraphTrack, allocs: &'a [Arc<Alloc>], queue: &'a Arc<QueueCore>) -> Result<Launch<'a>> {
        let mut waits = Few::new();
        enter(track, queue, &mut waits)?;
        let mut launch = Launch { track, allocs, queue, failed: Few::new(), called: false, submitted: false };
        for wait in waits.iter() {
            match queue.order_after(&wait.queue, wait.ticket) {
                Err(error) if !wait.queue.is_settled(wait.ticket) || launch.reads_failure(&wait.queue) => return Err(error),
                Err(_) => launch.failed.push(Arc::clone(&wait.queue)),
                Ok(()) => {}
            }
        }
        Ok(launch)
    }

    /// Answers whether a queue failed to write something that the graph reads. Such a failure is then forgotten: it is reported once.
    fn reads_failure(&self, queue: &QueueCore) -> bool {
        let owed = |alloc: &&Arc<Alloc>| forget_failure(alloc, self.track, queue, Mode::Read, |link| &link.inputs);
        self.allocs.iter().filter(owed).count() > 0 // not any(): all of them are to be forgotten
    }

    /// Finishes; `submitted`: C has taken the launch, and what it writes has no older failure any more.
    pub(crate) fn end(mut self, submitted: bool) {
        (self.called, self.submitted) = (true, submitted);
        if !submitted {
            return;
        }
        for queue in self.failed.iter() {
            for alloc in self.allocs {
                forget_failure(alloc, self.track, queue, Mode::Write, |link| &link.writes);
            }
        }
    }
}

/// Forgets that a queue failed to write some of the bytes that a graph uses, and answers whether it did.
fn forget_failure(alloc: &Arc<Alloc>, track: &GraphTrack, queue: &QueueCore, mode: Mode, of: impl Fn(&Link) -> &Ranges) -> bool {
    let mut tracker = alloc.tracker();
    let own = tracker.links.iter().find(|link| std::ptr::eq(Arc::as_ptr(&link.track), track));
    let bytes = own.map(|link| of(link).clone()).unwrap_or_default();
    let owed = |&(start, end): &(usize, usize)| tracker.forget_failure(&Access { alloc, start, end, mode }, queue);
    bytes.iter().filter(owed).count() > 0 // not any(): all of them are to be forgotten
}

/// Waits until no conflicting submission is in progress, and announces a launch.
fn enter(track: &GraphTrack, queue: &QueueCore, waits: &mut Few<Wait>) -> Result<()> {
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
    collect(&state.foreign, Some(queue), waits);
    neighbours(&state).for_each(|other| collect(&lock(&other.state).launches, Some(queue), waits));
    // Pending launches of the graph itself are ordered by C.
    let others = state.launches.iter().filter(|launch| launch.queue.id != queue.id);
    others.filter(|launch| launch.has_failed()).for_each(|launch| waits.after(&launch.queue, launch.ticket));
    state.launching += 1;
    Ok(())
}

fn neighbours(state: &State) -> impl Iterator<Item = Arc<GraphTrack>> {
    state.neighbours.iter().filter_map(Weak::upgrade)
}

/// Finishes, whatever the call into C answered.
impl Drop for Launch<'_> {
    fn drop(&mut self) {
        let ticket = if self.called && !self.queue.synchronous { self.queue.last_ticket(self.submitted) } else { 0 };
        let gate = lock(&GATE);
        let mut state = lock(&self.track.state);
        state.launching -= 1;
        for queue in self.failed.iter() {
            // What it failed to write for this graph to read was reported.
            state.foreign.retain(|entry| entry.queue.id != queue.id || !entry.is_settled());
            if self.submitted {
                state.launches.retain(|launch| launch.queue.id != queue.id || !launch.is_settled());
            }
        }
        if ticket != 0 {
            upsert(&mut state.launches, self.queue, ticket);
        }
        drop(state);
        moved(gate);
    }
}
