//! What one thread may do with queues, buffers, events and graphs, in slots.

use proptest::collection::vec;
use proptest::prelude::*;

/// Elements of every buffer.
pub const LEN: usize = 8;
pub const SLOTS: usize = 3;

/// A part of a buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    pub buffer: usize,
    pub start: usize,
    pub len: usize,
}

/// How the closure of a capture ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    Returns,
    Fails,
    Panics,
}

/// How the host asks for an event.
#[derive(Debug, Clone, Copy)]
pub enum Ask {
    Query,
    Synchronize,
    Await,
}

#[derive(Debug, Clone)]
pub enum Op {
    NewQueue {
        queue: usize,
        asynchronous: bool,
    },
    CloseQueue {
        queue: usize,
    },
    Synchronize {
        queue: usize,
    },
    NewBuffer {
        buffer: usize,
        pinned: bool,
        seed: u8,
    },
    CloseBuffer {
        buffer: usize,
    },
    Copy {
        queue: usize,
        dst: Part,
        src: Part,
    },
    Fill {
        queue: usize,
        dst: Part,
        byte: u8,
    },
    /// `dst = 3 * dst + src`; without a source where both are of one buffer.
    Task {
        queue: usize,
        dst: Part,
        src: Part,
    },
    Upload {
        dst: Part,
        seed: u8,
    },
    ScopeUpload {
        queue: usize,
        dst: Part,
        seed: u8,
    },
    Read {
        src: Part,
    },
    ForgetView {
        part: Part,
        write: bool,
    },
    /// Runs the operations while the view is open.
    WithView {
        part: Part,
        write: bool,
        ops: Vec<Op>,
    },
    Pause {
        queue: usize,
    },
    /// A task that fails before it writes. One asynchronous queue of a program does so.
    FailTask {
        queue: usize,
        dst: Part,
    },
    Once {
        queue: usize,
    },
    NewEvent {
        event: usize,
    },
    Record {
        event: usize,
        queue: usize,
    },
    After {
        queue: usize,
        event: usize,
    },
    AskEvent {
        event: usize,
        ask: Ask,
    },
    Capture {
        graph: usize,
        queue: usize,
        stored: bool,
        fate: Fate,
        ops: Vec<Op>,
    },
    /// In a capture: runs the operations on another queue that joins and is joined.
    Fork {
        queue: usize,
        ops: Vec<Op>,
    },
    Launch {
        graph: usize,
        queue: usize,
    },
    Replay {
        queue: usize,
    },
    DropGraph {
        graph: usize,
    },
    Reclaim,
}

/// Operations, and in which order what is left at the end is dropped.
#[derive(Debug, Clone)]
pub struct Program {
    pub ops: Vec<Op>,
    pub drops: Vec<usize>,
}

fn slot() -> std::ops::Range<usize> {
    0..SLOTS
}

fn part() -> impl Strategy<Value = Part> {
    let lens = prop_oneof![3 => Just(LEN), 1 => 0..LEN, 3 => Just(LEN / 2)];
    (slot(), 0..=LEN, lens).prop_map(|(buffer, start, len)| Part { buffer, start: start.min(LEN - len), len })
}

fn work() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (slot(), part(), part()).prop_map(|(queue, dst, src)| Op::Copy { queue, dst, src }),
        2 => (slot(), part(), 0..9u8).prop_map(|(queue, dst, byte)| Op::Fill { queue, dst, byte }),
        4 => (slot(), part(), part()).prop_map(|(queue, dst, src)| Op::Task { queue, dst, src }),
        2 => slot().prop_map(|queue| Op::Pause { queue }),
        2 => part().prop_map(|src| Op::Read { src }),
        1 => (part(), any::<u8>()).prop_map(|(dst, seed)| Op::Upload { dst, seed }),
        1 => (slot(), part(), any::<u8>()).prop_map(|(queue, dst, seed)| Op::ScopeUpload { queue, dst, seed }),
    ]
}

fn order() -> impl Strategy<Value = Op> {
    let ask = prop_oneof![Just(Ask::Query), Just(Ask::Synchronize), Just(Ask::Await)];
    prop_oneof![
        3 => (slot(), slot()).prop_map(|(event, queue)| Op::Record { event, queue }),
        3 => (slot(), slot()).prop_map(|(queue, event)| Op::After { queue, event }),
        2 => (slot(), ask).prop_map(|(event, ask)| Op::AskEvent { event, ask }),
        1 => slot().prop_map(|event| Op::NewEvent { event }),
        1 => slot().prop_map(|queue| Op::Synchronize { queue }),
    ]
}

fn lifetime() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (slot(), any::<bool>()).prop_map(|(queue, asynchronous)| Op::NewQueue { queue, asynchronous }),
        1 => slot().prop_map(|queue| Op::CloseQueue { queue }),
        2 => (slot(), any::<bool>(), any::<u8>()).prop_map(|(buffer, pinned, seed)| Op::NewBuffer { buffer, pinned, seed }),
        1 => slot().prop_map(|buffer| Op::CloseBuffer { buffer }),
        1 => slot().prop_map(|graph| Op::DropGraph { graph }),
        1 => Just(Op::Reclaim),
    ]
}

fn trouble() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (part(), any::<bool>()).prop_map(|(part, write)| Op::ForgetView { part, write }),
        3 => (slot(), part()).prop_map(|(queue, dst)| Op::FailTask { queue, dst }),
        1 => slot().prop_map(|queue| Op::Once { queue }),
    ]
}

fn replay() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (slot(), slot()).prop_map(|(graph, queue)| Op::Launch { graph, queue }),
        1 => slot().prop_map(|queue| Op::Replay { queue }),
    ]
}

/// Operations that hold no others.
fn flat() -> impl Strategy<Value = Op> {
    prop_oneof![16 => work(), 5 => order(), 4 => lifetime(), 2 => trouble(), 5 => replay()]
}

/// Operations that hold others at most so deep.
fn op(depth: u32) -> BoxedStrategy<Op> {
    if depth == 0 {
        return flat().boxed();
    }
    let inner = || vec(op(depth - 1), 0..6);
    let fate = prop_oneof![8 => Just(Fate::Returns), 1 => Just(Fate::Fails), 1 => Just(Fate::Panics)];
    let stored = prop_oneof![4 => Just(false), 1 => Just(true)];
    prop_oneof![
        16 => flat(),
        4 => (slot(), slot(), stored, fate, inner())
            .prop_map(|(graph, queue, stored, fate, ops)| Op::Capture { graph, queue, stored, fate, ops }),
        2 => (slot(), inner()).prop_map(|(queue, ops)| Op::Fork { queue, ops }),
        2 => (part(), any::<bool>(), inner()).prop_map(|(part, write, ops)| Op::WithView { part, write, ops }),
    ]
    .boxed()
}

pub fn programs() -> impl Strategy<Value = Program> {
    (vec(op(3), 1..40), vec(0..100usize, 4 * SLOTS)).prop_map(|(ops, drops)| Program { ops, drops })
}
