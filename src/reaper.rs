//! Giving back what can't be given back at once.
//!
//! Memory may be freed only when the operations that use it have completed, handles and memory not from a callback, and memory not
//! by a thread that is capturing. `Drop` may not wait. So what isn't free to go is put on a list of the process: a thread, started
//! when the list gets its first item and ended when there is nothing left, asks for the tickets and frees what is through. The list is
//! looked through on allocation as well. Operations are asked for, never assumed: memory of an operation that never ends is never
//! freed.

use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::Duration;

use crate::alloc::{Block, Kind};
use crate::context;
use crate::queue_core::lock;
use crate::sys;
use crate::track::Tracker;

/// One reference to a C object.
pub(crate) enum Handle {
    Queue(NonNull<sys::vt_queue>),
    Event(NonNull<sys::vt_event>),
    Graph(NonNull<sys::vt_graph>),
    Comm(NonNull<sys::vt_comm>),
    Group(NonNull<sys::vt_comm_group>),
}

// SAFETY: any thread may release a reference.
unsafe impl Send for Handle {}

impl Handle {
    fn release(self) {
        // SAFETY: the handle owns one reference, which goes here.
        unsafe {
            match self {
                Handle::Queue(raw) => sys::vt_queue_release(raw.as_ptr()),
                Handle::Event(raw) => sys::vt_event_release(raw.as_ptr()),
                Handle::Graph(raw) => sys::vt_graph_release(raw.as_ptr()),
                Handle::Comm(raw) => sys::vt_comm_release(raw.as_ptr()),
                Handle::Group(raw) => sys::vt_comm_group_release(raw.as_ptr()),
            }
        }
    }
}

enum Item {
    Handle(Handle),
    Memory(Block, Tracker),
}

struct List {
    items: Vec<Item>,
    /// Items that somebody is looking at outside the lock.
    taken: usize,
    has_thread: bool,
}

static LIST: Mutex<List> = Mutex::new(List { items: Vec::new(), taken: 0, has_thread: false });

/// Gives up a reference: now, or soon where this thread runs a callback.
pub(crate) fn release(handle: Handle) {
    if context::in_callback() { push(Item::Handle(handle)) } else { handle.release() }
}

/// Frees a block once its uses have completed. Never waits.
pub(crate) fn free(block: Block, mut tracker: Tracker) {
    // In a callback nothing may be looked at: the thread may hold a lock further up.
    if context::in_callback() || context::is_capturing() {
        return push(Item::Memory(block, tracker));
    }
    if tracker.is_through() {
        return block.free();
    }
    // What the pool gave, and only one queue uses, goes back in the order of that queue.
    let queue = tracker.only_queue().filter(|queue| matches!(block.kind, Kind::Pool) && !queue.is_capturing());
    let left = match queue {
        Some(queue) => block.free_after(queue),
        None => Err(block),
    };
    if let Err(block) = left {
        push(Item::Memory(block, tracker));
    }
}

/// Frees what has become free to go, and answers how many blocks and handles still wait for their work.
///
/// Nobody has to call this: a thread of the library does the same while there is something to free.
pub fn reclaim() -> usize {
    if !context::in_callback() && !context::is_capturing() {
        sweep();
    }
    let list = lock(&LIST);
    list.items.len() + list.taken
}

fn push(item: Item) {
    let mut list = lock(&LIST);
    list.items.push(item);
    if !list.has_thread {
        // Without a thread, allocations look through the list.
        list.has_thread = std::thread::Builder::new().name("vt-reaper".into()).spawn(run).is_ok();
    }
}

fn run() {
    let mut pause = Duration::from_micros(50);
    loop {
        sweep();
        {
            let mut list = lock(&LIST);
            // What another thread looks at may come back to the list, and nobody else would look at it again.
            if list.items.is_empty() && list.taken == 0 {
                list.has_thread = false;
                return;
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// Looks at every item outside the lock: freeing may run drops of the user, which may come back here.
fn sweep() {
    let items = {
        let mut list = lock(&LIST);
        list.taken += list.items.len();
        std::mem::take(&mut list.items)
    };
    let taken = items.len();
    let kept: Vec<Item> = items.into_iter().filter_map(finish).collect();
    let mut list = lock(&LIST);
    list.taken -= taken;
    list.items.extend(kept);
}

/// Finishes an item, or gives it back.
fn finish(item: Item) -> Option<Item> {
    match item {
        Item::Handle(handle) => handle.release(),
        Item::Memory(block, mut tracker) => {
            if !tracker.is_through() {
                return Some(Item::Memory(block, tracker));
            }
            block.free();
        }
    }
    None
}
