//! What this thread is capturing: the buffers that the graph will hold, and what comes after what inside it.
//!
//! Branches of a graph run at the same time. Where two branches use the same bytes, and the events of the user don't order them, the
//! capture adds the missing order itself, as a queue outside a capture would. To know, it keeps for each member queue a vector clock:
//! how many operations of every other member its next operation comes after.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::alloc::Alloc;
use crate::context;
use crate::error::{Error, Result, check};
use crate::graph_track::{self, GraphTrack};
use crate::queue_core::{QueueCore, RawEvent};
use crate::sys;
use crate::track::Access;

thread_local! {
    static CURRENT: RefCell<Option<Builder>> = const { RefCell::new(None) };
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

type Clock = Vec<u32>;

/// What an event recorded in a capture stands for.
#[derive(Clone)]
pub(crate) struct Snapshot {
    capture: u64,
    clock: Clock,
}

struct Member {
    queue: Arc<QueueCore>,
    clock: Clock,
}

/// One use of a range inside the capture.
struct Node {
    member: usize,
    position: u32,
    start: usize,
    end: usize,
    write: bool,
}

/// A capture in progress.
pub(crate) struct Builder {
    id: u64,
    pub(crate) track: Arc<GraphTrack>,
    pub(crate) allocs: Vec<Arc<Alloc>>,
    /// The queues that take part: the first one, and those that have joined.
    members: Vec<Member>,
    /// Queues outside the capture that the open batch has operations of.
    batched: Vec<u64>,
    nodes: HashMap<*const Alloc, Vec<Node>>,
    edge: Option<RawEvent>,
}

fn merge(into: &mut Clock, other: &Clock) {
    into.resize(into.len().max(other.len()), 0);
    into.iter_mut().zip(other).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
}

impl Builder {
    fn has(&self, queue: &QueueCore) -> bool {
        self.members.iter().any(|member| member.queue.id == queue.id)
    }

    fn member(&mut self, queue: &Arc<QueueCore>) -> usize {
        if let Some(index) = self.members.iter().position(|member| member.queue.id == queue.id) {
            return index;
        }
        self.members.push(Member { queue: Arc::clone(queue), clock: Clock::new() });
        self.members.len() - 1
    }

    fn begin_operation(&mut self, queue: &Arc<QueueCore>, accesses: &[Access<'_>]) -> Result<()> {
        let member = self.member(queue);
        for access in accesses {
            graph_track::link(&self.track, access)?;
            if let Entry::Vacant(entry) = self.nodes.entry(Arc::as_ptr(access.alloc)) {
                entry.insert(Vec::new());
                self.allocs.push(Arc::clone(access.alloc));
            }
            for other in self.unordered(member, access) {
                self.order(member, other)?;
            }
        }
        Ok(())
    }

    /// The members with a conflicting operation that the next one of `member` doesn't come after.
    fn unordered(&self, member: usize, access: &Access<'_>) -> Vec<usize> {
        let clock = &self.members[member].clock;
        let nodes = self.nodes.get(&Arc::as_ptr(access.alloc)).map_or(&[][..], Vec::as_slice);
        let mut others: Vec<usize> = nodes
            .iter()
            .filter(|node| node.member != member && access.conflicts(node.start, node.end, node.write))
            .filter(|node| clock.get(node.member).copied().unwrap_or(0) < node.position)
            .map(|node| node.member)
            .collect();
        others.sort_unstable();
        others.dedup();
        others
    }

    /// Makes the next operation of `member` come after everything that `other` has recorded.
    fn order(&mut self, member: usize, other: usize) -> Result<()> {
        let event = match self.edge.take() {
            Some(event) => event,
            None => RawEvent::new(self.members[other].queue.device, 0)?,
        };
        let event = self.edge.insert(event);
        event.record(&self.members[other].queue)?;
        // SAFETY: live handles.
        check(unsafe { sys::vt_queue_after_event(self.members[member].queue.raw(), event.raw()) })?;
        let clock = self.members[other].clock.clone();
        merge(&mut self.members[member].clock, &clock);
        Ok(())
    }

    fn end_operation(&mut self, queue: &Arc<QueueCore>, accesses: &[Access<'_>]) {
        let member = self.member(queue);
        let clock = &mut self.members[member].clock;
        clock.resize(clock.len().max(member + 1), 0);
        clock[member] += 1;
        let position = clock[member];
        for access in accesses {
            let (start, end, write) = (access.start, access.end, access.writes());
            let nodes = self.nodes.entry(Arc::as_ptr(access.alloc)).or_default();
            let same = |node: &&mut Node| node.member == member && (node.start, node.end, node.write) == (start, end, write);
            match nodes.iter_mut().find(same) {
                Some(node) => node.position = position,
                None => nodes.push(Node { member, position, start, end, write }),
            }
        }
    }
}

/// Answers whether operations on `queue` by this thread are being recorded. The C queue can't be asked: it may be in the capture of
/// another thread, which may end at any time.
#[inline]
pub(crate) fn is_recording(queue: &QueueCore) -> bool {
    context::is_capturing() && with(|builder| builder.has(queue)).unwrap_or(false)
}

fn with<R>(f: impl FnOnce(&mut Builder) -> R) -> Option<R> {
    CURRENT.try_with(|current| current.borrow_mut().as_mut().map(f)).ok().flatten()
}

/// Begins on this thread, before the C queue is told.
pub(crate) fn start(queue: &Arc<QueueCore>) -> Result<()> {
    let builder = Builder {
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        track: Arc::default(),
        allocs: Vec::new(),
        members: vec![Member { queue: Arc::clone(queue), clock: Clock::new() }],
        batched: Vec::new(),
        nodes: HashMap::new(),
        edge: None,
    };
    let placed = CURRENT.try_with(|current| *current.borrow_mut() = Some(builder));
    placed.map_err(|_| Error::refused("vt_graph_begin_capture", "this thread is ending"))?;
    context::set_capturing(true);
    Ok(())
}

/// Ends on this thread.
pub(crate) fn stop() -> Option<Builder> {
    context::set_capturing(false);
    CURRENT.try_with(|current| current.borrow_mut().take()).ok().flatten()
}

pub(crate) fn begin_operation(queue: &Arc<QueueCore>, accesses: &[Access<'_>]) -> Result<()> {
    with(|builder| builder.begin_operation(queue, accesses)).unwrap_or_else(|| Err(Error::refused("", "no capture is open")))
}

pub(crate) fn end_operation(queue: &Arc<QueueCore>, accesses: &[Access<'_>]) {
    with(|builder| builder.end_operation(queue, accesses));
}

/// What an event recorded now on a member would stand for.
pub(crate) fn snapshot(queue: &Arc<QueueCore>) -> Option<Snapshot> {
    with(|builder| {
        let member = builder.member(queue);
        Snapshot { capture: builder.id, clock: builder.members[member].clock.clone() }
    })
}

/// Makes `queue` wait for an event of this capture, in `wait`, and notes that: a queue that wasn't part of the capture is from now on.
pub(crate) fn join(queue: &Arc<QueueCore>, snapshot: &Snapshot, wait: impl FnOnce() -> Result<()>) -> Result<()> {
    if with(|builder| builder.batched.contains(&queue.id)).unwrap_or(false) {
        let text = "the open batch has operations on the queue from before it would join the capture: let it join first";
        return Err(Error::refused("vt_queue_after_event", text));
    }
    wait()?;
    with(|builder| {
        if builder.id == snapshot.capture {
            let member = builder.member(queue);
            merge(&mut builder.members[member].clock, &snapshot.clock);
        }
    });
    Ok(())
}

/// Keeps a queue that isn't part of this thread's capture out of it until [`end_batch`]: the operations that a batch holds are recorded
/// or run at its end, as the queue is by then, and what they use was noted when they were added.
pub(crate) fn batch_outside(queue: &QueueCore) {
    if context::is_capturing() {
        with(|builder| builder.batched.push(queue.id));
    }
}

/// Lets the queues of an open batch join again.
pub(crate) fn end_batch() {
    with(|builder| builder.batched.clear());
}
