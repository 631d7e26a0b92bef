//! The memory orders of the C code, and what a mutant changes.

use std::collections::HashMap;
use std::sync::OnceLock;

pub use loom::sync::atomic::Ordering;

/// One atomic access of the C code after another, each with its orders: written by `scripts/check-models --update`.
const SITES: &str = include_str!("../../sites.txt");

/// The environment variable that names the mutant to run.
pub const MUTANT: &str = "VT_MUTANT";

/// A change of the protocol that some scenario must notice.
pub struct Mutant {
    pub name: String,
    /// Accesses that go without one half of their orders, or both.
    pub weaken: Vec<(&'static str, Ordering)>,
    /// A wait, a poll or a check that is left out.
    pub skip: Option<&'static str>,
}

struct Orders {
    sites: HashMap<&'static str, Vec<Ordering>>,
    skipped: Option<&'static str>,
}

fn order_of(word: &str) -> Ordering {
    match word {
        "relaxed" => Ordering::Relaxed,
        "acquire" => Ordering::Acquire,
        "release" => Ordering::Release,
        "acq_rel" => Ordering::AcqRel,
        "seq_cst" => Ordering::SeqCst,
        _ => panic!("unknown memory order {word}"),
    }
}

fn sites() -> impl Iterator<Item = (&'static str, Vec<Ordering>)> {
    SITES.lines().map(|line| {
        let (site, orders) = line.split_once(": ").expect("a site and its orders");
        (site, orders.split(' ').map(order_of).collect())
    })
}

/// Every order weakened by one step.
pub fn weakened() -> Vec<Mutant> {
    let mut out = Vec::new();
    for (site, orders) in sites() {
        let weaker: &[Ordering] = match orders[0] {
            Ordering::Relaxed => &[],
            Ordering::SeqCst => &[Ordering::AcqRel],
            Ordering::AcqRel => &[Ordering::Acquire, Ordering::Release],
            _ => &[Ordering::Relaxed],
        };
        out.extend(weaker.iter().map(|&to| Mutant { name: format!("{site} -> {to:?}"), weaken: vec![(site, to)], skip: None }));
    }
    out
}

fn load() -> Orders {
    let mut sites: HashMap<_, _> = sites().collect();
    let mut skipped = None;
    if let Ok(name) = std::env::var(MUTANT) {
        let all = crate::mutants::all();
        let mutant = all.into_iter().find(|mutant| mutant.name == name).expect("a mutant of the list");
        for (site, to) in mutant.weaken {
            sites.get_mut(site).expect("a site of the list")[0] = to;
        }
        skipped = mutant.skip;
    }
    Orders { sites, skipped }
}

fn orders() -> &'static Orders {
    static ORDERS: OnceLock<Orders> = OnceLock::new();
    ORDERS.get_or_init(load)
}

/// The order of a site.
pub fn at(site: &str) -> Ordering {
    at_both(site)[0]
}

/// The orders of a compare-and-exchange, for success and for failure.
pub fn at_both(site: &str) -> &'static [Ordering] {
    orders().sites.get(site).unwrap_or_else(|| panic!("no site {site} in C"))
}

/// Whether the mutant that runs leaves this out.
pub fn skipped(what: &str) -> bool {
    orders().skipped == Some(what)
}
