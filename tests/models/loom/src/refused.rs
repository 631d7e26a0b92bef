//! `refused.c`: runs of refusals.

use crate::op::Op;
use crate::orders::{at, skipped};
use crate::state::{ALARM_REFUSED, Inproc, REFUSED_TEXTS, RefusedRun, Status};

fn goes_on(run: &RefusedRun, number: u64) -> bool {
    let last = run.last.load(at("refused.goes_on last load"));
    last != 0 && last + 1 == number
}

pub fn refused_run_text(run: &RefusedRun, number: u64) -> u64 {
    run.texts[(number - run.first.get()).min(REFUSED_TEXTS - 1) as usize].get()
}

fn add(group: &Inproc, run: &RefusedRun, number: u64, text: u64) {
    if !goes_on(run, number) {
        run.first.set(number);
    }
    let index = number - run.first.get();
    if index < REFUSED_TEXTS {
        run.texts[index as usize].set(text);
    }
    run.last.store(number, at("refused.add last store"));
    if !skipped("the bit of refusals") {
        group.alarm.fetch_or(ALARM_REFUSED, at("refused.add alarm fetch_or"));
    }
}

pub fn refused_run_holds(group: &Inproc, run: &RefusedRun, number: u64) -> bool {
    if group.alarm.load(at("refused.vt__refused_run_holds alarm load")) & ALARM_REFUSED == 0 {
        return false;
    }
    run.last.load(at("refused.vt__refused_run_holds last load")) >= number && run.first.get() <= number
}

impl Op {
    pub fn op_refuse(&mut self) -> bool {
        let group = self.group.clone();
        let run = self.own_run(&group);
        let mut ended = false;
        if !goes_on(run, self.number) && (self.is_prepared(&mut ended) || skipped("the look whether the post is free")) {
            self.publish();
        } else if ended {
            return true;
        } else {
            add(&group, run, self.number, self.refusal.expect("a refused call"));
        }
        self.turns().met.set(false);
        self.op_end(Status::Ok)
    }
}
