//! `inproc.h`: what the ranks share. Plain fields are cells whose every access loom checks against all others.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64};

/// Less than in C, so that a run is longer than its texts.
pub const REFUSED_TEXTS: u64 = 2;

pub const GATE_CLOSED: u32 = 1;
pub const GATE_ONE: u32 = 2;

pub const ALARM_POISONED: u32 = 1;
pub const ALARM_REFUSED: u32 = 2;
pub const ALARM_GONE: u32 = 4;

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Status {
    Ok,
    /// The rank and the text of a refusal.
    Refused(usize, u64),
    /// The ranks called different things.
    Mismatch,
    Aborted,
    Timeout,
    PeerLost,
}

/// Elements of a caller.
pub struct Buffer(Box<[UnsafeCell<u64>]>);

// SAFETY: the elements are loom's cells, which find every access that races with another.
unsafe impl Sync for Buffer {}
// SAFETY: as above.
unsafe impl Send for Buffer {}

impl Buffer {
    pub fn new(elements: usize) -> Arc<Buffer> {
        Arc::new(Buffer((0..elements).map(|_| UnsafeCell::new(0)).collect()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn get(&self, index: usize) -> u64 {
        // SAFETY: loom ends the run where this races with a write.
        self.0[index].with(|value| unsafe { *value })
    }

    pub fn set(&self, index: usize, value: u64) {
        // SAFETY: loom ends the run where this races with any other access.
        self.0[index].with_mut(|to| unsafe { *to = value });
    }
}

/// A plain field of the shared state.
pub struct Plain<T>(UnsafeCell<T>);

// SAFETY: loom's cells find every access that races with another.
unsafe impl<T> Sync for Plain<T> {}
// SAFETY: as above; the values are numbers and addresses.
unsafe impl<T> Send for Plain<T> {}

impl<T: Clone> Plain<T> {
    pub fn new(value: T) -> Plain<T> {
        Plain(UnsafeCell::new(value))
    }

    pub fn get(&self) -> T {
        // SAFETY: loom ends the run where this races with a write.
        self.0.with(|value| unsafe { (*value).clone() })
    }

    pub fn set(&self, value: T) {
        // SAFETY: loom ends the run where this races with any other access.
        self.0.with_mut(|to| unsafe { *to = value });
    }
}

/// The payload of a post.
#[derive(Clone)]
pub enum Payload {
    None,
    Elements(u64),
    Addresses { send: Arc<Buffer>, recv: Arc<Buffer> },
    Text(u64),
}

/// What ranks compare, and what travels with it.
#[derive(Clone)]
pub struct Told {
    pub key: u64,
    pub payload: Payload,
}

pub struct Post {
    pub number: AtomicU64,
    pub told: Plain<Told>,
}

pub struct Turns {
    pub next: AtomicU32,
    pub serving: AtomicU32,
    pub number: Plain<u64>,
    pub met: Plain<bool>,
}

pub struct RefusedRun {
    pub last: AtomicU64,
    pub first: Plain<u64>,
    pub texts: [Plain<u64>; REFUSED_TEXTS as usize],
}

pub struct Rank {
    pub turns: Turns,
    pub gate: AtomicU32,
    pub gone: AtomicU32,
    pub left: AtomicU64,
    pub posts: [Post; 2],
    pub refused: RefusedRun,
}

pub struct ChannelSide {
    pub turns: Turns,
    pub posts: [Post; 2],
    pub refused: RefusedRun,
}

/// Messages from rank 0 to rank 1: channels don't touch one another.
pub struct Channel {
    pub sender: ChannelSide,
    pub receiver: ChannelSide,
    pub taken: AtomicU64,
}

pub struct Inproc {
    pub alarm: AtomicU32,
    pub ranks: Vec<Rank>,
    pub channel: Channel,
    pub refs: AtomicU32,
    pub claimed: AtomicU32,
    pub cause: Plain<Status>,
    /// Stands for the memory of the group: read by every step, written where it is freed.
    pub memory: Plain<()>,
}

impl Post {
    pub fn new() -> Post {
        let told = Told { key: 0, payload: Payload::None };
        Post { number: AtomicU64::new(0), told: Plain::new(told) }
    }
}

impl Turns {
    fn new() -> Turns {
        Turns { next: AtomicU32::new(0), serving: AtomicU32::new(0), number: Plain::new(0), met: Plain::new(false) }
    }
}

impl RefusedRun {
    fn new() -> RefusedRun {
        RefusedRun { last: AtomicU64::new(0), first: Plain::new(0), texts: std::array::from_fn(|_| Plain::new(0)) }
    }
}

impl Rank {
    pub fn new() -> Rank {
        Rank {
            turns: Turns::new(),
            gate: AtomicU32::new(0),
            gone: AtomicU32::new(0),
            left: AtomicU64::new(0),
            posts: [Post::new(), Post::new()],
            refused: RefusedRun::new(),
        }
    }
}

impl ChannelSide {
    fn new() -> ChannelSide {
        ChannelSide { turns: Turns::new(), posts: [Post::new(), Post::new()], refused: RefusedRun::new() }
    }
}

impl Channel {
    pub fn new() -> Channel {
        Channel { sender: ChannelSide::new(), receiver: ChannelSide::new(), taken: AtomicU64::new(0) }
    }
}
