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
use crate::queue_core::{Asked, Progress, QueueCore, Use};
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
    #[inline]
    pub(crate) fn writes(&self) -> bool {
        self.mode != Mode::Read
    }

    pub(crate) fn conflicts(&self, start: usize, end: usize, write: bool) -> bool {
        (write || self.writes()) && self.shares(start, end)
    }

    /// Whether the access on a queue is the same as a noted one.
    #[inline]
    fn is_again(&self, entry: &Use, queue: &Arc<QueueCore>) -> bool {
        let same = (entry.start, entry.end, entry.write) == (self.start, self.end, self.writes());
        same && Arc::ptr_eq(&entry.queue, queue)
    }

    /// Whether there is a byte that lies in both ranges.
    fn shares(&self, start: usize, end: usize) -> bool {
        self.start.max(start) < self.end.min(end)
    }
}

/// An operation to wait for.
pub(crate) struct Wait {
    pub(crate) queue: Arc<QueueCore>,
    pub(crate) ticket: u64,
}

impl Wait {
    /// Answers whether an error of this wait stops who waits: it still has to wait, or it reads what the failed queue should have
    /// written. Such a failure is then forgotten for these bytes: it is reported once.
    pub(crate) fn matters_to(&self, accesses: &[Access<'_>]) -> bool {
        if !self.queue.is_settled(self.ticket) {
            return true;
        }
        let reads = accesses.iter().filter(|access| access.mode != Mode::Write);
        let owed = reads.filter(|access| access.alloc.tracker().forget_failure(access, &self.queue));
        owed.count() > 0 // not any(): all of them are to be forgotten
    }
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

impl Few<Wait> {
    /// Adds an operation. Those of one queue complete in order: the last one stands for all.
    pub(crate) fn after(&mut self, queue: &Arc<QueueCore>, ticket: u64) {
        match self.inline.iter_mut().flatten().chain(&mut self.rest).find(|wait| wait.queue.id == queue.id) {
            Some(wait) => wait.ticket = wait.ticket.max(ticket),
            None => self.push(Wait { queue: Arc::clone(queue), ticket }),
        }
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
    /// In the order of their begins, so that the thousand pages of a cache are searched and not looked through.
    uses: Vec<Use>,
    /// No use has more bytes than this.
    widest: usize,
    /// Where the last one was noted: pages are mostly used one after the other.
    last: usize,
    /// The queue of all uses, 0 or [`MANY_OWNERS`]. Where some were forgotten, it may still say "many" of one.
    users: u64,
    /// So many uses are looked through for those that can be forgotten.
    many: usize,
    views: Vec<View>,
    pub(crate) links: Vec<graph_track::Link>,
}

/// Stands for more than one queue, see [`Tracker::owner`].
const MANY_OWNERS: u64 = u64::MAX;

/// Fewer notes aren't worth looking through.
const FEW_USES: usize = 16;

impl Tracker {
    /// The one queue that has uses here; 0 for none. [`MANY_OWNERS`] where there are several, or views or graphs.
    #[inline]
    pub(crate) fn owner(&self) -> u64 {
        if !self.views.is_empty() || !self.links.is_empty() {
            return MANY_OWNERS;
        }
        self.users
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
        let from = self.uses.partition_point(|entry| entry.start + self.widest <= access.start);
        let near = self.uses[from..].iter().take_while(|entry| entry.start < access.end);
        near.filter(move |entry| access.conflicts(entry.start, entry.end, entry.write))
    }

    /// Collects what an operation on `queue` (`None`: the host) has to wait for.
    pub(crate) fn collect(&self, access: &Access<'_>, queue: Option<&QueueCore>, waits: &mut Few<Wait>) {
        for entry in self.conflicting(access) {
            let ordered = queue.is_some_and(|queue| queue.id == entry.queue.id || queue.comes_after(entry.queue.id, entry.ticket));
            if !ordered {
                waits.after(&entry.queue, entry.ticket);
            }
        }
    }

    /// Notes an operation that is the last one again, or what followed it the last time: pages are mostly used in turn. Answers whether
    /// it was. Who owns the allocation stays as it is.
    #[inline]
    pub(crate) fn note_again(&mut self, access: &Access<'_>, queue: &Arc<QueueCore>, ticket: u64) -> bool {
        let (at, entry) = match self.uses.get_mut(self.last..) {
            Some([entry, ..]) if !entry.first && access.is_again(entry, queue) => (self.last, entry),
            Some([_, entry, ..]) if !entry.first && access.is_again(entry, queue) => (self.last + 1, entry),
            _ => return false,
        };
        entry.ticket = entry.ticket.max(ticket);
        self.last = at;
        true
    }

    /// Notes an operation. Operations of one queue run in order, so the note replaces those that it covers.
    #[inline(never)]
    pub(crate) fn note(&mut self, access: &Access<'_>, queue: &Arc<QueueCore>, ticket: u64) {
        let (start, end, write) = (access.start, access.end, access.writes());
        let from = self.first_from(start);
        self.last = from;
        let mut begin_there = self.uses[from..].iter_mut().take_while(|entry| entry.start == start);
        if let Some(entry) = begin_there.find(|entry| access.is_again(entry, queue)) {
            entry.first = entry.is_unwritten();
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
        let mut first = false;
        if self.uses[from..].iter().take_while(|entry| entry.start <= end).any(covered) {
            first = self.uses.iter().any(|entry| covered(entry) && entry.is_unwritten());
            self.uses.retain(|entry| !covered(entry));
        }
        if self.uses.len() >= self.many.max(FEW_USES) {
            self.forget_completed();
        }
        self.push(Use { queue: Arc::clone(queue), ticket, start, end, write, first });
    }

    /// The index of the first use that begins at `start` or later.
    fn first_from(&self, start: usize) -> usize {
        match self.uses.get(self.last..) {
            Some([last, next, ..]) if last.start < start && next.start == start => self.last + 1,
            _ => self.uses.partition_point(|entry| entry.start < start),
        }
    }

    /// Notes that what a queue holds comes before all else: of new memory that its earlier work may still use.
    pub(crate) fn note_start(&mut self, queue: &Arc<QueueCore>, ticket: u64, bytes: usize) {
        self.push(Use { queue: Arc::clone(queue), ticket, start: 0, end: bytes, write: true, first: false });
    }

    /// Says that the operations noted so far give the memory its first contents.
    pub(crate) fn mark_first(&mut self) {
        self.uses.iter_mut().for_each(|entry| entry.first = true);
    }

    /// The one queue that all uses are on. For an allocation that nobody holds.
    pub(crate) fn only_queue(&self) -> Option<&Arc<QueueCore>> {
        let (first, rest) = self.uses.split_first()?;
        rest.iter().all(|entry| entry.queue.id == first.queue.id).then_some(&first.queue)
    }

    fn push(&mut self, entry: Use) {
        self.users = match self.users {
            0 => entry.queue.id,
            users if users == entry.queue.id => users,
            _ => MANY_OWNERS,
        };
        self.widest = self.widest.max(entry.end - entry.start);
        let at = self.uses.partition_point(|other| other.start <= entry.start);
        self.uses.insert(at, entry);
    }

    /// Forgets what has completed. What is pending stays as it is, however much it is: ranges that were put together would order what
    /// has no byte in common.
    fn forget_completed(&mut self) {
        let before = std::mem::take(&mut self.uses);
        (self.users, self.widest) = (0, 0);
        let mut asked = Asked::default();
        for entry in before {
            let keep = match asked.progress(&entry.queue, entry.ticket) {
                Progress::Done => false,
                Progress::Pending => true,
                Progress::Failed(_) => entry.write, // who reads next is to be told
            };
            if keep {
                self.push(entry);
            }
        }
        self.many = 2 * self.uses.len();
    }

    /// Forgets that `queue` failed to write the bytes of an access, and answers whether it did. A failure to give them their first
    /// contents is never forgotten.
    pub(crate) fn forget_failure(&mut self, access: &Access<'_>, queue: &QueueCore) -> bool {
        let mut forgotten = false;
        self.users = 0;
        for entry in std::mem::take(&mut self.uses) {
            let overlap = entry.queue.id == queue.id && entry.write && access.shares(entry.start, entry.end);
            if !overlap || !entry.has_failed() {
                self.push(entry);
                continue;
            }
            forgotten = true;
            if entry.first {
                self.push(entry);
                continue;
            }
            let rest = [(entry.start, access.start), (access.end, entry.end)];
            for (start, end) in rest.into_iter().filter(|range| range.0 < range.1) {
                self.push(Use { start, end, ..entry.clone() });
            }
        }
        for link in &mut self.links {
            forgotten |= link.forget_failure(access, queue);
        }
        forgotten
    }

    /// Answers whether nothing can use the memory any more. For an allocation that nobody holds.
    pub(crate) fn is_through(&mut self) -> bool {
        for link in std::mem::take(&mut self.links) {
            link.track.add_launches(&mut self.uses);
        }
        self.uses.retain(|entry| !entry.is_settled());
        self.uses.is_empty()
    }
}

/// An operation between its begin and its finish.
pub(crate) struct Session<'q, 'a, A: AsRef<[Access<'a>]>> {
    queue: &'q Arc<QueueCore>,
    accesses: A,
    /// Graphs whose launches are kept out.
    tracks: Few<Arc<GraphTrack>>,
    /// Queues that failed to write what this operation overwrites.
    failed: Few<Arc<QueueCore>>,
    recording: bool,
    /// Whether the call into C may have been made, and whether C has taken it.
    begun: bool,
    submitted: bool,
    borrows: std::marker::PhantomData<Access<'a>>,
}

impl<'q, 'a, A: AsRef<[Access<'a>]>> Session<'q, 'a, A> {
    pub(crate) fn begin(queue: &'q Arc<QueueCore>, accesses: A) -> Result<Session<'q, 'a, A>> {
        context::enter("")?;
        let (recording, borrows) = (capture::is_recording(queue), std::marker::PhantomData);
        let mut session =
            Session { queue, accesses, tracks: Few::new(), failed: Few::new(), recording, begun: false, submitted: false, borrows };
        if recording {
            capture::begin_operation(queue, session.accesses.as_ref())?;
        } else {
            session.come_after_others()?;
        }
        session.begun = true;
        Ok(session)
    }

    fn come_after_others(&mut self) -> Result<()> {
        let mut waits = Few::new();
        let mut linked = false;
        for access in self.accesses.as_ref().iter().filter(|access| !access.alloc.is_free_for(self.queue.id)) {
            let tracker = access.alloc.tracker();
            tracker.check_views(access)?;
            tracker.collect(access, Some(self.queue), &mut waits);
            linked |= !tracker.links.is_empty();
        }
        if linked {
            graph_track::keep_out(self.accesses.as_ref(), Some(self.queue), &mut self.tracks, &mut waits)?;
        }
        for wait in waits.iter() {
            match self.queue.order_after(&wait.queue, wait.ticket) {
                Err(error) if wait.matters_to(self.accesses.as_ref()) => return Err(error),
                Err(_) => self.failed.push(Arc::clone(&wait.queue)),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Whether the operation goes into the graph that this thread is capturing.
    pub(crate) fn is_recording(&self) -> bool {
        self.recording
    }

    /// Says that C has taken the operation: what it overwrites without reading has no older failure any more.
    pub(crate) fn submitted(&mut self) {
        self.submitted = true;
        for queue in self.failed.iter() {
            for access in self.accesses.as_ref().iter().filter(|access| access.mode == Mode::Write) {
                access.alloc.tracker().forget_failure(access, queue);
            }
        }
    }
}

/// Finishes, whatever the call into C answered: what was queued of it is noted.
impl<'a, A: AsRef<[Access<'a>]>> Drop for Session<'_, 'a, A> {
    fn drop(&mut self) {
        let accesses = self.accesses.as_ref();
        if self.recording {
            return if self.begun {
                capture::end_operation(self.queue, accesses)
            };
        }
        let ticket = if self.begun { note_all(self.queue, accesses, self.submitted) } else { 0 };
        if !self.tracks.is_empty() {
            graph_track::let_in(&self.tracks, self.queue, ticket);
        }
    }
}

/// Notes an operation that was just submitted, and answers its ticket; 0 where it has completed.
#[inline]
fn note_all(queue: &Arc<QueueCore>, accesses: &[Access<'_>], submitted: bool) -> u64 {
    let ticket = if queue.synchronous || accesses.is_empty() { 0 } else { queue.last_ticket(submitted) };
    if ticket != 0 {
        accesses.iter().for_each(|access| access.alloc.note(access, queue, ticket));
    }
    ticket
}

/// Notes everything that a queue holds by now as a use.
pub(crate) fn note_pending(queue: &Arc<QueueCore>, access: &Access<'_>) -> u64 {
    note_all(queue, std::slice::from_ref(access), true)
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
        return run_in_session(queue, accesses, call);
    }
    // An outcome that is kept over the notes costs as much as the rest.
    if let Err(error) = call(queue.raw()) {
        return Err(note_refused(queue, accesses, error));
    }
    if !queue.synchronous {
        note_all(queue, accesses, true);
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn note_refused(queue: &Arc<QueueCore>, accesses: &[Access<'_>], error: Error) -> Error {
    note_all(queue, accesses, false);
    error
}

/// Where others use the same bytes, or may do so. Not inlined, for the sake of those who are alone.
#[inline(never)]
fn run_in_session(
    queue: &Arc<QueueCore>,
    accesses: &[Access<'_>],
    call: impl FnOnce(*mut sys::vt_queue) -> Result<()>,
) -> Result<()> {
    let mut session = Session::begin(queue, accesses)?;
    let outcome = call(queue.raw());
    if outcome.is_ok() {
        session.submitted();
    }
    outcome
}
