//! `group.c`: the life of a group, and what its transport table leads to.

use std::sync::Arc;

use loom::sync::atomic::AtomicU32;

use crate::op::{Kind, Op};
use crate::orders::{at, at_both};
use crate::state::{ALARM_GONE, Channel, Inproc, Payload, Plain, Rank, Status, Told, Turns};
use crate::turn::turn_take;

impl Inproc {
    /// A group whose ranks have all joined.
    pub fn create(world: usize) -> Arc<Inproc> {
        let group = Inproc {
            alarm: AtomicU32::new(0),
            ranks: (0..world).map(|_| Rank::new()).collect(),
            channel: Channel::new(),
            refs: AtomicU32::new(0),
            claimed: AtomicU32::new(0),
            cause: Plain::new(Status::Ok),
            memory: Plain::new(()),
        };
        group.refs.store(1, at("group.vt__inproc_create refs store"));
        for _ in 0..world {
            group.join();
        }
        Arc::new(group)
    }

    pub fn join(&self) {
        self.refs.fetch_add(1, at("group.vt__inproc_join refs fetch_add"));
    }

    pub fn unref(&self) {
        let order = at_both("group.vt__inproc_unref refs fetch_sub");
        if self.refs.fetch_sub(1, order[0]) == 1 {
            self.memory.set(());
        }
    }

    pub fn rank_gone(&self, rank: usize) {
        self.ranks[rank].gone.store(1, at("group.rank_gone gone store"));
        self.alarm.fetch_add(ALARM_GONE, at("group.rank_gone alarm fetch_add"));
        self.unref();
    }
}

impl Op {
    pub fn turns(&self) -> &Turns {
        if self.is_message() { &self.side(&self.group.channel, true).turns } else { &self.group.ranks[self.rank].turns }
    }

    /// What this rank publishes.
    pub fn told(&self) -> Told {
        let payload = match (self.refusal, self.kind) {
            (Some(text), _) => Payload::Text(text),
            (None, Kind::Small) => Payload::Elements(self.send.get(0)),
            (None, _) => Payload::Addresses { send: self.send.clone(), recv: self.recv.clone() },
        };
        // The two sides of a message call different operations.
        let key = if self.is_message() { 0 } else { self.kind as u64 };
        Told { key, payload }
    }

    pub fn publish(&self) {
        if self.is_message() { self.message_publish() } else { self.collective_publish() }
    }

    pub fn is_prepared(&mut self, out_ended: &mut bool) -> bool {
        if self.is_message() { self.message_is_prepared(out_ended) } else { self.collective_is_prepared(out_ended) }
    }

    pub fn begin(&mut self) {
        self.ticket = turn_take(self.turns());
    }

    pub fn step(&mut self) -> bool {
        self.group.memory.get();
        if self.is_message() { self.message_step() } else { self.collective_step() }
    }

    pub fn expire(&self) {
        self.group.poison(Status::Timeout);
    }
}
