//! `gate.c`: poison, gates and the quiet after it.

use crate::op::Op;
use crate::orders::{at, at_both, skipped};
use crate::state::{ALARM_POISONED, GATE_CLOSED, GATE_ONE, Inproc, Status};

impl Inproc {
    fn close_gates(&self) {
        for rank in &self.ranks {
            rank.gate.fetch_or(GATE_CLOSED, at("gate.close_gates gate fetch_or"));
        }
    }

    pub fn poison(&self, cause: Status) {
        let order = at_both("gate.vt__inproc_poison claimed compare_exchange_strong");
        if self.claimed.compare_exchange(0, 1, order[0], order[1]).is_err() && !skipped("the claim of the cause") {
            return;
        }
        self.cause.set(cause);
        self.alarm.fetch_or(ALARM_POISONED, at("gate.vt__inproc_poison alarm fetch_or"));
        if !skipped("the closing of the gates") {
            self.close_gates();
        }
    }

    /// None while all is well.
    pub fn query(&self) -> Option<Status> {
        let poisoned = self.alarm.load(at("gate.vt__inproc_query alarm load")) & ALARM_POISONED != 0;
        poisoned.then(|| self.cause.get())
    }

    pub fn is_quiet(&self) -> bool {
        for rank in &self.ranks {
            let mut seen = rank.gate.load(at("gate.vt__inproc_is_quiet gate load"));
            if seen & GATE_CLOSED == 0 {
                if skipped("the closing of a gate that is found open") {
                    continue;
                }
                seen = rank.gate.fetch_or(GATE_CLOSED, at("gate.vt__inproc_is_quiet gate fetch_or")) | GATE_CLOSED;
            }
            if seen != GATE_CLOSED {
                return false;
            }
        }
        true
    }
}

impl Op {
    pub fn gate_enter(&self) -> bool {
        let gate = &self.group.ranks[self.rank].gate;
        let mut seen = gate.load(at("gate.vt__gate_enter gate load"));
        let order = at_both("gate.vt__gate_enter gate compare_exchange_weak");
        while seen & GATE_CLOSED == 0 || skipped("the looks whether the gate is closed") {
            match gate.compare_exchange_weak(seen, seen + GATE_ONE, order[0], order[1]) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    pub fn gate_leave(&self) {
        self.group.ranks[self.rank].gate.fetch_sub(GATE_ONE, at("gate.vt__gate_leave gate fetch_sub"));
    }

    pub fn gate_is_closed(&self) -> bool {
        let gate = &self.group.ranks[self.rank].gate;
        let seen = gate.load(at("gate.vt__gate_is_closed gate load"));
        seen & GATE_CLOSED != 0 && !skipped("the looks whether the gate is closed")
    }
}
