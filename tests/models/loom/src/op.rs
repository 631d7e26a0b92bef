//! `comm.h` and `run.c`: an operation, and running it on a thread.

use std::sync::Arc;

use crate::state::{Buffer, Inproc, Status};

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// All-reduce by sum of one element, which travels in the post.
    Small,
    /// All-reduce by sum of buffers, whose addresses travel.
    Large,
    Send,
    Recv,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Stage {
    Token,
    Prepare,
    Meet,
    Leave,
    Quiesce,
    End,
}

pub struct Op {
    pub group: Arc<Inproc>,
    pub kind: Kind,
    pub rank: usize,
    pub send: Arc<Buffer>,
    pub recv: Arc<Buffer>,
    pub refusal: Option<u64>,
    pub number: u64,
    pub ticket: u32,
    pub cursor: usize,
    pub stage: Stage,
    pub status: Status,
}

impl Op {
    pub fn new(group: &Arc<Inproc>, kind: Kind, rank: usize, send: &Arc<Buffer>, recv: &Arc<Buffer>) -> Op {
        Op {
            group: group.clone(),
            kind,
            rank,
            send: send.clone(),
            recv: recv.clone(),
            refusal: None,
            number: 0,
            ticket: 0,
            cursor: 0,
            stage: Stage::Token,
            status: Status::Ok,
        }
    }

    /// A call that was refused before it was queued: it only tells its peers.
    pub fn refused(group: &Arc<Inproc>, kind: Kind, rank: usize, text: u64) -> Op {
        let none = Buffer::new(0);
        Op { refusal: Some(text), ..Op::new(group, kind, rank, &none, &none) }
    }

    pub fn is_message(&self) -> bool {
        self.kind == Kind::Send || self.kind == Kind::Recv
    }

    /// Waits for the end. The deadline passes at the poll of that number.
    pub fn run_until(&mut self, deadline: u32) -> Status {
        self.begin();
        let mut polls = 0;
        while !self.step() {
            if polls == deadline {
                self.expire();
            } else {
                loom::thread::yield_now();
            }
            polls += 1;
        }
        self.status
    }

    pub fn run(&mut self) -> Status {
        self.run_until(u32::MAX)
    }
}
