//! `message.c`: a message from rank 0 to rank 1.

use loom::sync::atomic::AtomicU64;

use crate::op::{Kind, Op, Stage};
use crate::orders::{at, skipped};
use crate::refused::{refused_run_holds, refused_run_text};
use crate::state::{ALARM_POISONED, Channel, ChannelSide, Inproc, Payload, RefusedRun, Status};
use crate::turn::turn_has_come;

impl Op {
    pub fn side<'a>(&self, channel: &'a Channel, own: bool) -> &'a ChannelSide {
        if (self.kind == Kind::Send) == own { &channel.sender } else { &channel.receiver }
    }

    pub fn message_publish(&self) {
        let post = &self.side(&self.group.channel, true).posts[(self.number & 1) as usize];
        post.told.set(self.told());
        post.number.store(self.number, at("message.publish number store"));
    }

    fn reached(&mut self, word: &AtomicU64, run: Option<&RefusedRun>, number: u64, out_ended: &mut bool) -> bool {
        *out_ended = false;
        if word.load(at("message.reached word load")) >= number
            || run.is_some_and(|run| refused_run_holds(&self.group, run, number))
        {
            return true;
        }
        *out_ended = self.op_blocked(1 - self.rank, word, run, number);
        false
    }

    fn peer_has_come(&mut self, number: u64, out_ended: &mut bool) -> bool {
        let group = self.group.clone();
        let peer = self.side(&group.channel, false);
        self.reached(&peer.posts[(number & 1) as usize].number, Some(&peer.refused), number, out_ended)
    }

    fn copy(&self) -> bool {
        let post = &self.side(&self.group.channel, false).posts[(self.number & 1) as usize];
        let Payload::Addresses { send, .. } = post.told.get().payload else { panic!("the sender told no address") };
        for index in 0..send.len() {
            if self.gate_is_closed() {
                return false;
            }
            self.recv.set(index, send.get(index));
        }
        true
    }

    fn step_copy(&mut self) -> bool {
        if !self.gate_enter() {
            return self.op_step_failed();
        }
        let copied = self.copy();
        self.gate_leave();
        if !copied {
            return self.op_step_failed();
        }
        self.group.channel.taken.store(self.number, at("message.step_copy taken store"));
        self.op_end(Status::Ok)
    }

    fn message_step_leave(&mut self) -> bool {
        let group = self.group.clone();
        let mut ended = false;
        if skipped("the sender's wait") || self.reached(&group.channel.taken, None, self.number, &mut ended) {
            self.op_end(Status::Ok)
        } else {
            ended
        }
    }

    fn message_verdict(&self) -> Status {
        let channel: &Channel = &self.group.channel;
        let told = |side: &ChannelSide| side.posts[(self.number & 1) as usize].told.get();
        for (rank, side) in [&channel.sender, &channel.receiver].into_iter().enumerate() {
            if refused_run_holds(&self.group, &side.refused, self.number) {
                return Status::Refused(rank, refused_run_text(&side.refused, self.number));
            }
        }
        for (rank, side) in [&channel.sender, &channel.receiver].into_iter().enumerate() {
            if let Payload::Text(text) = told(side).payload {
                return Status::Refused(rank, text);
            }
        }
        if told(&channel.sender).key == told(&channel.receiver).key { Status::Ok } else { Status::Mismatch }
    }

    fn message_step_meet(&mut self) -> bool {
        let mut ended = false;
        if !skipped("the wait for the other side") && !self.peer_has_come(self.number, &mut ended) {
            return ended;
        }
        self.turns().met.set(true);
        let verdict = self.message_verdict();
        if verdict != Status::Ok {
            return self.op_end(verdict);
        }
        if self.kind == Kind::Recv {
            return self.step_copy();
        }
        self.stage = Stage::Leave;
        self.message_step_leave()
    }

    pub fn message_is_prepared(&mut self, out_ended: &mut bool) -> bool {
        *out_ended = false;
        self.turns().met.get() || self.number == 1 || self.peer_has_come(self.number - 1, out_ended)
    }

    fn message_step_prepare(&mut self) -> bool {
        if self.refusal.is_some() {
            return self.op_refuse();
        }
        let mut ended = false;
        if !skipped("the wait for the side's post") && !self.message_is_prepared(&mut ended) {
            return ended;
        }
        self.turns().met.set(false);
        self.message_publish();
        self.stage = Stage::Meet;
        self.message_step_meet()
    }

    fn message_step_token(&mut self) -> bool {
        let alarm = self.group.alarm.load(at("message.step_token alarm load"));
        if alarm & ALARM_POISONED != 0 {
            return self.op_step_failed();
        }
        if !turn_has_come(self.turns(), self.ticket) {
            return false;
        }
        self.op_started();
        self.message_step_prepare()
    }

    pub fn message_step(&mut self) -> bool {
        match self.stage {
            Stage::Token => self.message_step_token(),
            Stage::Prepare => self.message_step_prepare(),
            Stage::Meet => self.message_step_meet(),
            Stage::Leave => self.message_step_leave(),
            Stage::Quiesce => self.op_step_failed(),
            Stage::End => true,
        }
    }

    pub fn own_run<'a>(&self, group: &'a Inproc) -> &'a RefusedRun {
        if self.is_message() { &self.side(&group.channel, true).refused } else { &group.ranks[self.rank].refused }
    }
}
