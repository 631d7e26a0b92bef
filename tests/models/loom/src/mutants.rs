//! Changes that the scenarios must notice, and those that change nothing, each with its reason.

use crate::orders::Ordering::{Acquire, Relaxed};
use crate::orders::{Mutant, Ordering, weakened};

const SKIPPED: &[&str] = &[
    "the wait for the turn",
    "the wait for quiet",
    "the look at the alarm",
    "the second look at the word of who has gone",
    "the claim of the cause",
    "the closing of the gates",
    "the closing of a gate that is found open",
    "the looks whether the gate is closed",
    "the bit of refusals",
    "the look whether the post is free",
    "the wait for all to leave",
    "the look at the runs",
    "the wait for all to publish",
    "the wait for the post to be free",
    "the sender's wait",
    "the wait for the other side",
    "the wait for the side's post",
];

type Together = (&'static str, &'static [(&'static str, Ordering)]);

/// Orders of which one is enough: without all of them something breaks.
const TOGETHER: &[Together] = &[(
    "all that shows the cause where a gate was found closed",
    &[
        ("gate.close_gates gate fetch_or", Acquire),
        ("gate.vt__inproc_is_quiet gate fetch_or", Acquire),
        ("turn.vt__op_step_failed alarm load", Relaxed),
    ],
)];

const AGAIN: &str = "the word is loaded again, acquiring, before anything depends on it";
const CAUSE: &str = "the cause is read after an acquire load of the alarm";
const OWN_ORDER: &str = "what the word announces has a release and an acquire of its own";

/// Mutants that no scenario can notice, and why.
pub const EQUIVALENT: &[(&str, &str)] = &[
    ("collective.all_reached alarm load -> Relaxed", AGAIN),
    ("collective.step_token alarm load -> Relaxed", AGAIN),
    ("message.step_token alarm load -> Relaxed", AGAIN),
    ("turn.vt__op_blocked alarm load -> Relaxed", AGAIN),
    ("turn.vt__op_blocked word load -> Relaxed", "the flag was acquired after the last publication: the load finds it"),
    (
        "turn.vt__op_step_failed alarm load -> Relaxed",
        "the gates, which are looked at next, were closed after the cause was written",
    ),
    ("verdict.vt__collective_verdict alarm load -> Relaxed", "the bit was seen, acquiring, where the run stood in for a post"),
    ("gate.close_gates gate fetch_or -> Acquire", CAUSE),
    ("gate.close_gates gate fetch_or -> Release", "who closes a gate reads nothing that its owner wrote before"),
    ("gate.vt__inproc_is_quiet gate fetch_or -> Acquire", CAUSE),
    (
        "gate.vt__gate_enter gate compare_exchange_weak -> Relaxed",
        "what comes before was ordered by the posts, and what comes after by the leaving",
    ),
    ("group.rank_gone alarm fetch_add -> Relaxed", OWN_ORDER),
    ("refused.add alarm fetch_or -> Relaxed", OWN_ORDER),
    ("refused.vt__refused_run_holds alarm load -> Relaxed", OWN_ORDER),
    ("skip the closing of the gates", "who waits for quiet closes them too: only later, which the spin model notices"),
];

pub fn all() -> Vec<Mutant> {
    let skipped = SKIPPED.iter().map(|&what| Mutant { name: format!("skip {what}"), weaken: Vec::new(), skip: Some(what) });
    let together = TOGETHER.iter().map(|(what, weaken)| Mutant { name: format!("{what}"), weaken: weaken.to_vec(), skip: None });
    weakened().into_iter().chain(skipped).chain(together).collect()
}
