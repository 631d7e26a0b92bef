//! Who uses which bytes: what makes safe calls sound on queues that work behind the caller's back.
//!
//! Every allocation has a [`Tracker`]. It remembers the last operations (queue, ticket, byte range, read or write), the host views
//! that are open, and the graphs that hold the allocation. An operation goes through a [`Session`]:
//!
//! 1. *begin* refuses where a conflicting view is open; makes the queue wait for conflicting operations of other queues; and, where
//!    a graph holds one of the buffers, keeps conflicting launches out until *finish* (see [`crate::graph_track`]);
//! 2. the call into C;
//! 3. *finish* notes (queue, ticket) for each buffer. A synchronous queue has done the work by then: nothing to note.
//!
//! Two threads can't be between begin and finish with conflicting accesses, because the arguments are `&` and `&mut` borrows. Graphs
//! hold buffers without borrowing them, hence their gate.

use std::sync::Arc;

use crate::alloc::Alloc;
use crate::capture;
use crate::context;
use crate::error::{Error, Result};
use crate::graph_track::{self, GraphTrack};
use crate::queue_core::{Progress, QueueCore, Use};
use crate::sys;

/// What an operation does with a range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    /// Overwrites without reading: a failed earlier write doesn't matter.
    Write,
    Update,
}

/// A range of bytes that an operation uses. Public in name only: sealed traits mention it.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    pub(crate) alloc: &'a Arc<Alloc>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) mode: Mode,
}

impl Access<'_> {
    pub(crate) fn writes(&self) -> bool {
        self.mode != Mode::Read
    }

    pub(crate) fn conflicts(&self, start: usize, end: usize, write: bool) -> bool {
        (write || self.writes()) && self.start < end && start < self.end
    }
}

/// An operation to wait for.
pub(crate) struct Wait {
    pub(crate) queue: Arc<QueueCore>,
    pub(crate) ticket: u64,
    /// Its failure matters to who waits: it wrote what is now read.
    pub(crate) report: bool,
}

/// A short list that usually needs no heap.
pub(crate) struct Few<T> {
    inline: [Option<T>; 4],
    rest: Vec<T>,
}

impl<T> Few<T> {
    pub(crate) fn new() -> Few<T> {
        Few { inline: [None, None, None, None], rest: Vec::new() }
    }

    pub(crate) fn push(&mut self, value: T) {
        match self.inline.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some(value),
            None => self.rest.push(value),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.inline.iter().flatten().chain(&self.rest)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inline[0].is_none()
    }
}

struct View {
    start: usize,
    end: usize,
    write: bool,
}

/// What is known about one allocation.
#[derive(Default)]
pub(crate) struct Tracker {
    uses: Vec<Use>,
    views: Vec<View>,
    pub(crate) links: Vec<graph_track::Link>,
}

/// Stands for more than one queue, see [`Tracker::owner`].
const MANY_OWNERS: u64 = u64::MAX;

/// More notes than this are thinned out.
const MANY_USES: usize = 16;

impl Tracker {
    /// The one queue that has uses here; 0 for none. [`MANY_OWNERS`] where there are several, or views or graphs.
    pub(crate) fn owner(&self) -> u64 {
        if !self.views.is_empty() || !self.links.is_empty() {
            return MANY_OWNERS;
        }
        let mut queues = self.uses.iter().map(|entry| entry.queue.id);
        let first = queues.next().unwrap_or(0);
        if queues.all(|id| id == first) { first } else { MANY_OWNERS }
    }

    pub(crate) fn check_views(&self, access: &Access<'_>) -> Result<()> {
        match self.views.iter().find(|view| access.conflicts(view.start, view.end, view.write)) {
            None => Ok(()),
            Some(view) => {
                let kind = if view.write { "a write view" } else { "a read view" };
                Err(Error::refused(
                    "",
                    format!("{kind} of bytes {}..{} of the buffer is open, or was forgotten", view.start, view.end),
                ))
            }
        }
    }

    pub(crate) fn open_view(&mut self, access: &Access<'_>) -> Result<()> {
        self.check_views(access)?;
        self.views.push(View { start: access.start, end: access.end, write: access.writes() });
        Ok(())
    }

    pub(crate) fn close_view(&mut self, access: &Access<'_>) {
        let same = |view: &View| (view.start, view.end, view.write) == (access.start, access.end, access.writes());
        if let Some(position) = self.views.iter().position(same) {
            self.views.swap_remove(position);
        }
    }

    pub(crate) fn conflicting<'s>(&'s self, access: &Access<'_>) -> impl Iterator<Item = &'s Use> {
        self.uses.iter().filter(move |entry| access.conflicts(entry.start, entry.end, entry.write))
    }

    /// Collects what an operation on `queue` (`None`: the host) has to wait for.
    pub(crate) fn collect(&self, access: &Access<'_>, queue: Option<&QueueCore>, waits: &mut Few<Wait>) {
        for entry in self.conflicting(access) {
            let ordered = queue.is_some_and(|queue| queue.id == entry.queue.id || queue.comes_after(entry.queue.id, entry.ticket));
            if !ordered {
                let report = entry.write && access.mode != Mode::Write;
                waits.push(Wait { queue: Arc::clone(&entry.queue), ticket: entry.ticket, report });
            }
        }
    }

    /// Notes an operation. Operations of one queue run in order, so the note replaces those that it covers.
    fn note(&mut self, access: &Access<'_>, queue: &Arc<QueueCore>, ticket: u64) {
        let (start, end, write) = (access.start, access.end, access.writes());
        let same = |entry: &&mut Use| entry.queue.id == queue.id && (entry.start, entry.end, entry.write) == (start, end, write);
        if let Some(entry) = self.uses.iter_mut().find(same) {
            entry.ticket = entry.ticket.max(ticket);
            return;
        }
        let covered = |entry: &Use| {
            entry.queue.id == queue.id
                && start <= entry.start
                && entry.end <= end
                && (write || !entry.write)
                && entry.ticket <= ticket
        };
        self.uses.retain(|entry| !covered(entry));
        if self.uses.len() >= MANY_USES {
            self.thin_out();
        }
        self.uses.push(Use { queue: Arc::clone(queue), ticket, start, end, write });
    }

    /// Forgets what has completed; what is left becomes one note for each queue.
    fn thin_out(&mut self) {
        self.uses.retain(|entry| match entry.queue.progress(entry.ticket) {
            Progress::Done => false,
            Progress::Pending => true,
            Progress::Failed(_) => entry.write, // who reads next is to be told
        });
        if self.uses.len() < MANY_USES {
            return;
        }
        for entry in std::mem::take(&mut self.uses) {
            match self.uses.iter_mut().find(|merged| merged.queue.id == entry.queue.id) {
                None => self.uses.push(entry),
                Some(merged) => {
                    merged.ticket = merged.ticket.max(entry.ticket);
                    merged.start = merged.start.min(entry.start);
                    merged.end = merged.end.max(entry.end);
                    merged.write |= entry.write;
                }
            }
        }
    }

    /// Forgets what has completed or failed: after its failure was reported.
    pub(crate) fn forget_settled(&mut self) {
        self.uses.retain(|entry| !entry.is_settled());
    }

    /// Answers whether nothing can use the memory any more. For an allocation that nobody holds.
    pub(crate) fn is_through(&mut self) -> bool {
        for link in std::mem::take(&mut self.links) {
            link.track.add_launches(&mut self.uses);
        }
        self.forget_settled();
        self.uses.is_empty()
    }
}

/// An operation between its begin and its finish.
pub(crate) struct Session<'q, 'a, A: AsRef<[Access<'a>]>> {
    queue: &'q Arc<QueueCore>,
    accesses: A,
    /// Graphs whose launches are kept out.
    tracks: Few<Arc<GraphTrack>>,
    recording: bool,
    borrows: std::marker::PhantomData<Access<'a>>,
}

impl<'q, 'a, A: AsRef<[Access<'a>]>> Session<'q, 'a, A> {
    pub(crate) fn begin(queue: &'q Arc<QueueCore>, accesses: A) -> Result<Session<'q, 'a, A>> {
        context::enter("")?;
        let recording = capture::is_recording(queue);
        let mut session = Session { queue, accesses, tracks: Few::new(), recording, borrows: std::marker::PhantomData };
        if recording {
            capture::begin_operation(queue, session.accesses.as_ref())?;
            return Ok(session);
        }
        let mut waits = Few::new();
        let mut linked = false;
        for access in session.accesses.as_ref().iter().filter(|access| !access.alloc.is_free_for(queue.id)) {
            let tracker = access.alloc.tracker();
            tracker.check_views(access)?;
            tracker.collect(access, Some(queue), &mut waits);
            linked |= !tracker.links.is_empty();
        }
        if linked {
            graph_track::keep_out(session.accesses.as_ref(), Some(queue), &mut session.tracks, &mut waits)?;
        }
        session.order(&waits)?;
        Ok(session)
    }

    fn order(&self, waits: &Few<Wait>) -> Result<()> {
        for wait in waits.iter() {
            match self.queue.order_after(&wait.queue, wait.ticket) {
                Err(error) if wait.report || !wait.queue.is_settled(wait.ticket) => {
                    self.accesses.as_ref().iter().for_each(|access| access.alloc.tracker().forget_settled());
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Finishes, whatever the call into C answered: what was queued of it is noted.
impl<'a, A: AsRef<[Access<'a>]>> Drop for Session<'_, 'a, A> {
    fn drop(&mut self) {
        let accesses = self.accesses.as_ref();
        if self.recording {
            return capture::end_operation(self.queue, accesses);
        }
        let ticket = note_all(self.queue, accesses);
        if !self.tracks.is_empty() {
            graph_track::let_in(&self.tracks, self.queue, ticket);
        }
    }
}

/// Notes an operation that was just submitted, and answers its ticket; 0 where it has completed.
#[inline]
fn note_all(queue: &Arc<QueueCore>, accesses: &[Access<'_>]) -> u64 {
    let ticket = if queue.synchronous { 0 } else { queue.ticket() };
    if ticket != 0 {
        accesses.iter().for_each(|access| access.alloc.tracker().note(access, queue, ticket));
    }
    ticket
}

/// Runs one operation: `call` submits it to the C queue.
#[inline]
pub(crate) fn run(
    queue: &Arc<QueueCore>,
    accesses: &[Access<'_>],
    call: impl FnOnce(*mut sys::vt_queue) -> Result<()>,
) -> Result<()> {
    context::enter("")?;
    if context::is_capturing() || !accesses.iter().all(|access| access.alloc.is_free_for(queue.id)) {
        let _session = Session::begin(queue, accesses)?;
        return call(queue.raw());
    }
    let outcome = call(queue.raw());
    note_all(queue, accesses);
    outcome
}
