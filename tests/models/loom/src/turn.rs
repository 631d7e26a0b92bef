//! `turn.c`: turns, numbers, failures and endings.

use loom::sync::atomic::AtomicU64;

use crate::op::{Op, Stage};
use crate::orders::{at, skipped};
use crate::refused::refused_run_holds;
use crate::state::{ALARM_POISONED, RefusedRun, Status, Turns};

pub fn turn_take(turns: &Turns) -> u32 {
    turns.next.fetch_add(1, at("turn.vt__turn_take next fetch_add"))
}

pub fn turn_has_come(turns: &Turns, ticket: u32) -> bool {
    turns.serving.load(at("turn.vt__turn_has_come serving load")) == ticket || skipped("the wait for the turn")
}

pub fn turn_pass(turns: &Turns) {
    let ticket = turns.serving.load(at("turn.vt__turn_pass serving load"));
    turns.serving.store(ticket + 1, at("turn.vt__turn_pass serving store"));
}

impl Op {
    pub fn op_started(&mut self) {
        let turns = self.turns();
        let number = turns.number.get() + 1;
        turns.number.set(number);
        self.number = number;
        self.stage = Stage::Prepare;
        self.cursor = 0;
    }

    pub fn op_end(&mut self, status: Status) -> bool {
        self.status = if self.refusal.is_some() { Status::Ok } else { status };
        self.stage = Stage::End;
        if self.number != 0 {
            turn_pass(self.turns());
        }
        true
    }

    pub fn op_step_failed(&mut self) -> bool {
        self.stage = Stage::Quiesce;
        if self.refusal.is_some() {
            return self.op_end(Status::Ok);
        }
        let poisoned = self.group.alarm.load(at("turn.vt__op_step_failed alarm load")) & ALARM_POISONED != 0;
        if !poisoned || !(self.group.is_quiet() || skipped("the wait for quiet")) {
            return false;
        }
        let cause = self.group.cause.get();
        self.op_end(cause)
    }

    pub fn op_blocked(&mut self, peer: usize, word: &AtomicU64, run: Option<&RefusedRun>, number: u64) -> bool {
        let group = self.group.clone();
        let alarm = group.alarm.load(at("turn.vt__op_blocked alarm load"));
        if alarm == 0 || skipped("the look at the alarm") {
            return false;
        }
        if alarm & ALARM_POISONED != 0 {
            return self.op_step_failed();
        }
        let gone = group.ranks[peer].gone.load(at("turn.vt__op_blocked gone load")) != 0;
        if gone
            && (skipped("the second look at the word of who has gone") || word.load(at("turn.vt__op_blocked word load")) < number)
            && !run.is_some_and(|run| refused_run_holds(&group, run, number))
        {
            group.poison(Status::PeerLost);
        }
        false
    }
}
