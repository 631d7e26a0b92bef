//! `collective.c`, `slices.c` and `verdict.c`: turn, prepare, publish, meet, move, leave.

use crate::op::{Kind, Op, Stage};
use crate::orders::{at, skipped};
use crate::refused::{refused_run_holds, refused_run_text};
use crate::state::{ALARM_POISONED, ALARM_REFUSED, Payload, Post, Status};
use crate::turn::turn_has_come;

impl Op {
    fn post(&self, rank: usize) -> &Post {
        &self.group.ranks[rank].posts[(self.number & 1) as usize]
    }

    pub fn collective_publish(&self) {
        let post = self.post(self.rank);
        post.told.set(self.told());
        post.number.store(self.number, at("collective.publish number store"));
    }

    /// Whether `peer` has reached `number` in its word; where it hasn't, whether the operation has ended by that.
    fn has_reached(&mut self, peer: usize, leaving: bool, number: u64, out_ended: &mut bool) -> bool {
        let group = self.group.clone();
        let rank = &group.ranks[peer];
        let word = if leaving { &rank.left } else { &rank.posts[(number & 1) as usize].number };
        if word.load(at("collective.has_reached word load")) >= number {
            return true;
        }
        let run = if leaving { None } else { Some(&rank.refused) };
        if run.is_some_and(|run| refused_run_holds(&group, run, number)) {
            return true;
        }
        *out_ended = self.op_blocked(peer, word, run, number);
        false
    }

    fn all_reached(&mut self, leaving: bool, number: u64, out_ended: &mut bool) -> bool {
        let world = self.group.ranks.len();
        *out_ended = false;
        while self.cursor < world && self.has_reached(self.cursor, leaving, number, out_ended) {
            self.cursor += 1;
        }
        if self.cursor == world {
            self.cursor = 0;
            return true;
        }
        let alarm = self.group.alarm.load(at("collective.all_reached alarm load"));
        let some_went = alarm & !ALARM_REFUSED != 0;
        for rank in self.cursor + 1..world {
            if some_went && !*out_ended {
                self.has_reached(rank, leaving, number, out_ended);
            }
        }
        false
    }

    fn step_leave(&mut self) -> bool {
        let mut ended = false;
        if skipped("the wait for all to leave") || self.all_reached(true, self.number, &mut ended) {
            self.op_end(Status::Ok)
        } else {
            ended
        }
    }

    /// Reduces this rank's slice of all send buffers into all receive buffers; a slice has two chunks.
    fn collective_move(&self) -> bool {
        let world = self.group.ranks.len();
        let chunks = self.send.len() / world;
        for index in self.rank * chunks..(self.rank + 1) * chunks {
            if self.gate_is_closed() {
                return false;
            }
            let addresses: Vec<_> = (0..world)
                .map(|rank| match self.post(rank).told.get().payload {
                    Payload::Addresses { send, recv } => (send, recv),
                    _ => panic!("rank {rank} told no addresses"),
                })
                .collect();
            let sum = addresses.iter().map(|(send, _)| send.get(index)).sum();
            for (_, recv) in &addresses {
                recv.set(index, sum);
            }
        }
        true
    }

    fn step_move(&mut self) -> bool {
        if !self.gate_enter() {
            return self.op_step_failed();
        }
        let moved = self.collective_move();
        self.gate_leave();
        if !moved {
            return self.op_step_failed();
        }
        self.group.ranks[self.rank].left.store(self.number, at("collective.step_move left store"));
        self.stage = Stage::Leave;
        self.step_leave()
    }

    fn collective_small(&self) {
        let elements = (0..self.group.ranks.len()).map(|rank| match self.post(rank).told.get().payload {
            Payload::Elements(value) => value,
            _ => panic!("rank {rank} told no elements"),
        });
        let sum = elements.sum();
        self.recv.set(0, sum);
    }

    fn check_runs(&self) -> Status {
        for (index, rank) in self.group.ranks.iter().enumerate() {
            if refused_run_holds(&self.group, &rank.refused, self.number) {
                return Status::Refused(index, refused_run_text(&rank.refused, self.number));
            }
        }
        Status::Ok
    }

    fn collective_verdict(&self) -> Status {
        let alarm = self.group.alarm.load(at("verdict.vt__collective_verdict alarm load"));
        if alarm & ALARM_REFUSED != 0 && !skipped("the look at the runs") {
            let status = self.check_runs();
            if status != Status::Ok {
                return status;
            }
        }
        let told: Vec<_> = (0..self.group.ranks.len()).map(|rank| self.post(rank).told.get()).collect();
        for (rank, told) in told.iter().enumerate() {
            if let Payload::Text(text) = told.payload {
                return Status::Refused(rank, text);
            }
        }
        if told.iter().all(|other| other.key == told[0].key) { Status::Ok } else { Status::Mismatch }
    }

    fn step_meet(&mut self) -> bool {
        let mut ended = false;
        if !skipped("the wait for all to publish") && !self.all_reached(false, self.number, &mut ended) {
            return ended;
        }
        self.turns().met.set(true);
        let verdict = self.collective_verdict();
        if verdict != Status::Ok {
            return self.op_end(verdict);
        }
        if self.kind == Kind::Large {
            return self.step_move();
        }
        self.collective_small();
        self.op_end(Status::Ok)
    }

    pub fn collective_is_prepared(&mut self, out_ended: &mut bool) -> bool {
        *out_ended = false;
        self.turns().met.get() || self.number == 1 || self.all_reached(false, self.number - 1, out_ended)
    }

    fn step_prepare(&mut self) -> bool {
        if self.refusal.is_some() {
            return self.op_refuse();
        }
        let mut ended = false;
        if !skipped("the wait for the post to be free") && !self.collective_is_prepared(&mut ended) {
            return ended;
        }
        self.turns().met.set(false);
        self.collective_publish();
        self.stage = Stage::Meet;
        self.step_meet()
    }

    fn step_token(&mut self) -> bool {
        let alarm = self.group.alarm.load(at("collective.step_token alarm load"));
        if alarm & ALARM_POISONED != 0 {
            return self.op_step_failed();
        }
        if !turn_has_come(self.turns(), self.ticket) {
            return false;
        }
        self.op_started();
        if self.group.ranks.len() == 1 {
            self.recv.set(0, self.send.get(0));
            return self.op_end(Status::Ok);
        }
        self.step_prepare()
    }

    pub fn collective_step(&mut self) -> bool {
        match self.stage {
            Stage::Token => self.step_token(),
            Stage::Prepare => self.step_prepare(),
            Stage::Meet => self.step_meet(),
            Stage::Leave => self.step_leave(),
            Stage::Quiesce => self.op_step_failed(),
            Stage::End => true,
        }
    }
}
