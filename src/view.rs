//! Host access to the bytes of buffers.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::alloc::Alloc;
use crate::context;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::graph_track::{self, GraphTrack};
use crate::queue_core::QueueCore;
use crate::slice::{Slice, SliceMut};
use crate::track::{self, Access, Few, Mode, Wait};
use crate::validate;

/// What a view holds: conflicting work is refused until it is dropped. A forgotten one keeps it refused for ever.
struct Hold<'a> {
    access: Access<'a>,
    tracks: Few<Arc<GraphTrack>>,
}

impl<'a> Hold<'a> {
    fn open(access: Access<'a>) -> Result<Hold<'a>> {
        context::enter("view")?;
        if !access.alloc.on_host {
            return Err(access.alloc.no_views("view"));
        }
        let mut waits = Few::new();
        let linked = announce(&access, None, &mut waits)?;
        let mut hold = Hold { access, tracks: Few::new() };
        if linked {
            graph_track::open_view(&access, None, &mut hold.tracks, &mut waits)?;
        }
        wait_for(&access, &waits)?;
        validate::view_opened(&access);
        Ok(hold)
    }
}

/// Notes that a view is open, collects what it has to wait for, and answers whether graphs hold the allocation.
fn announce(access: &Access<'_>, queue: Option<&QueueCore>, waits: &mut Few<Wait>) -> Result<bool> {
    let mut tracker = access.alloc.tracker();
    tracker.open_view(access)?;
    tracker.collect(access, queue, waits);
    Ok(!tracker.links.is_empty())
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.access.alloc.tracker().close_view(&self.access);
        if !self.tracks.is_empty() {
            graph_track::close_view(&self.tracks);
        }
    }
}

/// A view through which a stranger looks, on the host or on a queue: it owns its part of the allocation.
pub(crate) struct Lease {
    alloc: Arc<Alloc>,
    start: usize,
    end: usize,
    mode: Mode,
    tracks: Few<Arc<GraphTrack>>,
    /// Where the stranger works. By the end it may have queued work on the memory.
    consumer: Option<Arc<QueueCore>>,
}

impl Lease {
    /// Makes the consumer's queue wait for pending work, or waits for it.
    pub(crate) fn open(access: Access<'_>, consumer: Option<&Arc<QueueCore>>) -> Result<Lease> {
        if consumer.is_some_and(|queue| queue.is_capturing()) {
            return Err(Error::refused("dlpack", "the consumer's queue is being captured"));
        }
        let mut waits = Few::new();
        let linked = announce(&access, consumer.map(|queue| &**queue), &mut waits)?;
        let Access { start, end, mode, .. } = access;
        let mut lease =
            Lease { alloc: Arc::clone(access.alloc), start, end, mode, tracks: Few::new(), consumer: consumer.cloned() };
        if linked {
            graph_track::open_view(&access, consumer.map(|queue| &**queue), &mut lease.tracks, &mut waits)?;
        }
        match consumer {
            None => wait_for(&access, &waits)?,
            Some(queue) => order_after(queue, &access, &waits)?,
        }
        Ok(lease)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let access = Access { alloc: &self.alloc, start: self.start, end: self.end, mode: self.mode };
        let used = self.consumer.as_ref().map(|queue| (queue, track::note_pending(queue, &access)));
        self.alloc.tracker().close_view(&access);
        match used {
            _ if self.tracks.is_empty() => {}
            Some((queue, ticket)) => graph_track::end_lease(&self.tracks, queue, ticket),
            None => graph_track::close_view(&self.tracks),
        }
    }
}

/// Makes a queue wait for all of them.
fn order_after(queue: &QueueCore, access: &Access<'_>, waits: &Few<Wait>) -> Result<()> {
    for wait in waits.iter() {
        match queue.order_after(&wait.queue, wait.ticket) {
            Err(error) if wait.matters_to(std::slice::from_ref(access)) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Waits for all of them. The first failure that matters is answered, and then forgotten: the memory is at rest.
fn wait_for(access: &Access<'_>, waits: &Few<Wait>) -> Result<()> {
    let mut outcome = Ok(());
    for wait in waits.iter() {
        match wait.queue.wait(wait.ticket) {
            Err(error) if outcome.is_ok() && wait.matters_to(std::slice::from_ref(access)) => outcome = Err(error),
            _ => {}
        }
    }
    outcome
}

/// Waits for all work on an allocation.
pub(crate) fn wait_for_all(alloc: &Arc<Alloc>) -> Result<()> {
    context::enter("close")?;
    let access = Access { alloc, start: 0, end: alloc.bytes, mode: Mode::Update };
    let mut waits = Few::new();
    {
        let tracker = alloc.tracker();
        tracker.collect(&access, None, &mut waits);
        tracker.links.iter().for_each(|link| link.track.collect_launches(&mut waits));
    }
    wait_for(&access, &waits)
}

/// The elements of a range, open for reading. See [`Slice::read`].
pub struct ReadView<'a, T: Element> {
    pointer: *const T,
    len: usize,
    _hold: Hold<'a>,
    elements: PhantomData<&'a [T]>,
}

// SAFETY: it gives `&[T]` only, and `Element` is `Sync`; the hold may be dropped by any thread.
unsafe impl<T: Element> Send for ReadView<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for ReadView<'_, T> {}

impl<'a, T: Element> ReadView<'a, T> {
    pub(crate) fn open(slice: Slice<'a, T>) -> Result<ReadView<'a, T>> {
        let hold = Hold::open(slice.access())?;
        Ok(ReadView { pointer: slice.pointer().cast(), len: slice.len(), _hold: hold, elements: PhantomData })
    }
}

impl<T: Element> Deref for ReadView<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: initialised, aligned, in bounds; writers have completed, and new ones are refused or ruled out by the borrow.
        unsafe { std::slice::from_raw_parts(self.pointer, self.len) }
    }
}

/// The elements of a range, open for writing. See [`SliceMut::write`].
pub struct WriteView<'a, T: Element> {
    pointer: *mut T,
    len: usize,
    _hold: Hold<'a>,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: it is like `&mut [T]`, and `Element` is `Send`; the hold may be dropped by any thread.
unsafe impl<T: Element> Send for WriteView<'_, T> {}
// SAFETY: shared, it gives `&[T]` only, and `Element` is `Sync`.
unsafe impl<T: Element> Sync for WriteView<'_, T> {}

impl<'a, T: Element> WriteView<'a, T> {
    pub(crate) fn open(slice: SliceMut<'a, T>) -> Result<WriteView<'a, T>> {
        // Update: a failed earlier write is reported, since the view shows the bytes.
        let hold = Hold::open(slice.access(Mode::Update))?;
        Ok(WriteView { pointer: slice.pointer().cast(), len: slice.len(), _hold: hold, elements: PhantomData })
    }
}

impl<T: Element> Deref for WriteView<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: as for deref_mut().
        unsafe { std::slice::from_raw_parts(self.pointer, self.len) }
    }
}

impl<T: Element> DerefMut for WriteView<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: initialised, aligned, in bounds; all work on the range has completed, and new work is refused or ruled out by the
        // borrow.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.len) }
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for ReadView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for WriteView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
