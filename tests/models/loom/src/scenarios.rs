//! What the ranks do. Each scenario runs in every order of its accesses, within the bound, that the memory orders allow. It fails
//! where two accesses of plain memory race, a value is wrong, a call ends otherwise than it must, or a rank waits forever.

use std::sync::Arc;

use crate::op::{Kind, Op};
use crate::state::{Buffer, Inproc, Status};

pub struct Scenario {
    pub name: &'static str,
    /// Preemptions of a thread that could go on.
    pub preemptions: usize,
    pub body: fn(),
}

/// The quick ones come first.
pub const ALL: &[Scenario] = &[
    Scenario { name: "turns", preemptions: 3, body: turns },
    Scenario { name: "small", preemptions: 2, body: small },
    Scenario { name: "refusals", preemptions: 2, body: refusals },
    Scenario { name: "refusals_in_a_row", preemptions: 2, body: refusals_in_a_row },
    Scenario { name: "refusals_in_front", preemptions: 2, body: refusals_in_front },
    Scenario { name: "death", preemptions: 2, body: death },
    Scenario { name: "death_after_refusal", preemptions: 2, body: death_after_refusal },
    Scenario { name: "large", preemptions: 2, body: large },
    Scenario { name: "messages", preemptions: 2, body: messages },
    Scenario { name: "message_death", preemptions: 2, body: message_death },
    Scenario { name: "message_refusals", preemptions: 2, body: message_refusals },
    Scenario { name: "causes", preemptions: 2, body: causes },
    Scenario { name: "large_timeout", preemptions: 3, body: large_timeout },
    Scenario { name: "message_timeout", preemptions: 2, body: message_timeout },
    Scenario { name: "large_abort", preemptions: 1, body: large_abort },
    Scenario { name: "message_abort", preemptions: 1, body: message_abort },
];

pub fn run(scenario: &Scenario) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(scenario.preemptions);
    model.check(scenario.body);
}

/// Runs the body of each rank on a thread of its own. Then the rank goes.
fn ranks(world: usize, body: fn(&Arc<Inproc>, usize)) {
    let group = Inproc::create(world);
    let rank = move |group: Arc<Inproc>, rank: usize| {
        body(&group, rank);
        group.rank_gone(rank);
    };
    let others: Vec<_> = (1..world)
        .map(|index| {
            let group = group.clone();
            loom::thread::spawn(move || rank(group, index))
        })
        .collect();
    rank(group.clone(), 0);
    group.unref();
    for other in others {
        other.join().unwrap();
    }
}

/// What rank `rank` gives to operation `number`.
fn input(rank: usize, number: u64) -> u64 {
    100 * number + 10 * rank as u64
}

fn sum(world: usize, number: u64) -> u64 {
    (0..world).map(|rank| input(rank, number)).sum()
}

/// A call of a group that nothing has poisoned.
fn expect(mut op: Op, status: Status) {
    assert_eq!(op.run(), status, "operation {} of rank {}", op.number, op.rank);
    assert_eq!(op.group.query(), None, "operation {} of rank {}", op.number, op.rank);
}

fn small_reduce(group: &Arc<Inproc>, rank: usize, number: u64) {
    let (send, recv) = (Buffer::new(1), Buffer::new(1));
    send.set(0, input(rank, number));
    expect(Op::new(group, Kind::Small, rank, &send, &recv), Status::Ok);
    assert_eq!(recv.get(0), sum(group.ranks.len(), number), "operation {number}");
}

fn refuse(group: &Arc<Inproc>, kind: Kind, rank: usize, text: u64) {
    expect(Op::refused(group, kind, rank, text), Status::Ok);
}

/// A call that rank 1 refuses for `text`.
fn hears(group: &Arc<Inproc>, kind: Kind, text: u64) {
    let buffer = Buffer::new(1);
    expect(Op::new(group, kind, 0, &buffer, &buffer.clone()), Status::Refused(1, text));
}

/// Posts are used again by the operation after the next.
fn small() {
    ranks(2, |group, rank| (1..=3).for_each(|number| small_reduce(group, rank, number)));
}

/// Two queues of one rank.
fn turns() {
    let group = Inproc::create(1);
    let queue = |group: Arc<Inproc>| {
        let buffer = Buffer::new(1);
        assert_eq!(Op::new(&group, Kind::Small, 0, &buffer, &buffer.clone()).run(), Status::Ok);
        group.unref();
    };
    let other = group.clone();
    let other = loom::thread::spawn(move || queue(other));
    queue(group);
    other.join().unwrap();
}

/// Buffers are written before each call and read after it; a peer still inside would race with that.
struct Buffers {
    send: Arc<Buffer>,
    recv: Arc<Buffer>,
}

impl Buffers {
    fn new(elements: usize) -> Buffers {
        Buffers { send: Buffer::new(elements), recv: Buffer::new(elements) }
    }

    fn fill(&self, value: u64) {
        for index in 0..self.send.len() {
            self.send.set(index, value);
        }
    }

    fn expect(&self, value: u64) {
        for index in 0..self.recv.len() {
            assert_eq!(self.recv.get(index), value);
        }
    }

    /// The buffers are the caller's alone.
    fn take_back(&self) {
        self.fill(0);
        for index in 0..self.recv.len() {
            self.recv.set(index, 0);
        }
    }
}

fn large() {
    ranks(2, |group, rank| {
        let buffers = Buffers::new(2);
        for number in 1..=2 {
            buffers.fill(input(rank, number));
            expect(Op::new(group, Kind::Large, rank, &buffers.send, &buffers.recv), Status::Ok);
            buffers.expect(sum(2, number));
            buffers.take_back();
        }
    });
}

/// One call during which the group may be poisoned for `cause`.
fn poisoned(group: &Arc<Inproc>, kind: Kind, rank: usize, deadline: u32, cause: Status) {
    let buffers = Buffers::new(if kind == Kind::Large { 2 } else { 1 });
    buffers.fill(input(rank, 1));
    let status = Op::new(group, kind, rank, &buffers.send, &buffers.recv).run_until(deadline);
    assert!(status == Status::Ok || status == cause, "{status:?}");
    if status == Status::Ok && kind == Kind::Large {
        buffers.expect(sum(2, 1));
    }
    buffers.take_back();
    if status != Status::Ok {
        assert_eq!(group.query(), Some(cause));
    }
}

fn large_timeout() {
    ranks(2, |group, rank| poisoned(group, Kind::Large, rank, if rank == 0 { 0 } else { u32::MAX }, Status::Timeout));
}

fn with_abort(kind: [Kind; 2]) {
    let group = Inproc::create(2);
    let rank = move |group: Arc<Inproc>, rank: usize| {
        poisoned(&group, kind[rank], rank, u32::MAX, Status::Aborted);
        group.unref();
    };
    let (first, second) = (group.clone(), group.clone());
    let first = loom::thread::spawn(move || rank(first, 0));
    let second = loom::thread::spawn(move || rank(second, 1));
    loom::thread::yield_now();
    group.poison(Status::Aborted);
    group.unref();
    first.join().unwrap();
    second.join().unwrap();
}

fn large_abort() {
    with_abort([Kind::Large, Kind::Large]);
}

fn message_abort() {
    with_abort(ENDS);
}

/// Both ranks find a cause at once: one is kept, and both name it.
fn causes() {
    ranks(2, |group, rank| {
        group.poison(if rank == 0 { Status::Aborted } else { Status::Timeout });
        let seen = group.query();
        assert!(rank == 0 || seen.is_none() || seen == group.query());
    });
}

fn refusals_of(kind: Kind, group: &Arc<Inproc>, rank: usize) {
    for number in 1..=2 {
        if rank == 1 { refuse(group, kind, rank, number) } else { hears(group, kind, number) }
    }
}

/// Rank 1 refuses without waiting.
fn refusals() {
    ranks(2, |group, rank| refusals_of(Kind::Small, group, rank));
}

/// Rank 1 is two refusals ahead, one of them in a run, and refuses on: the second text of the run stands for the third too.
fn refusals_in_a_row() {
    let group = Inproc::create(2);
    (1..=2).for_each(|text| refuse(&group, Kind::Small, 1, text));
    let other = group.clone();
    let other = loom::thread::spawn(move || {
        (3..=4).for_each(|text| refuse(&other, Kind::Small, 1, text));
        other.rank_gone(1);
    });
    [1, 2, 3, 3].into_iter().for_each(|text| hears(&group, Kind::Small, text));
    lost(&group, Kind::Small, 0);
    other.join().unwrap();
}

/// Refusals of both, then a call that meets.
fn refusals_in_front() {
    ranks(2, |group, rank| {
        if rank == 1 {
            refuse(group, Kind::Small, rank, 1);
            refuse(group, Kind::Small, rank, 2);
        } else {
            refuse(group, Kind::Small, rank, 3);
            hears(group, Kind::Small, 2);
        }
        small_reduce(group, rank, 3);
    });
}

fn lost(group: &Arc<Inproc>, kind: Kind, rank: usize) {
    let buffer = Buffer::new(1);
    assert_eq!(Op::new(group, kind, rank, &buffer, &Buffer::new(1)).run(), Status::PeerLost);
}

/// Rank 1 goes after its call; rank 0 makes one more.
fn death() {
    ranks(2, |group, rank| {
        small_reduce(group, rank, 1);
        if rank == 0 {
            lost(group, Kind::Small, rank);
        }
    });
}

/// The alarm word says something before rank 1 publishes for the last time and goes.
fn death_after_refusal() {
    ranks(2, |group, rank| {
        refusals_of(Kind::Small, group, rank);
        small_reduce(group, rank, 3);
        if rank == 0 {
            lost(group, Kind::Small, rank);
        }
    });
}

const ENDS: [Kind; 2] = [Kind::Send, Kind::Recv];

fn messages() {
    ranks(2, |group, rank| {
        let buffers = Buffers::new(1);
        for number in 1..=3 {
            buffers.fill(input(rank, number));
            expect(Op::new(group, ENDS[rank], rank, &buffers.send, &buffers.recv), Status::Ok);
            if rank == 1 {
                buffers.expect(input(0, number));
            }
            buffers.take_back();
        }
    });
}

fn message_timeout() {
    ranks(2, |group, rank| poisoned(group, ENDS[rank], rank, if rank == 0 { 0 } else { u32::MAX }, Status::Timeout));
}

fn message_death() {
    ranks(2, |group, rank| {
        let buffers = Buffers::new(1);
        expect(Op::new(group, ENDS[rank], rank, &buffers.send, &buffers.recv), Status::Ok);
        if rank == 0 {
            lost(group, ENDS[rank], rank);
        }
    });
}

/// Refusals, then a message whose post must be free.
fn message_refusals() {
    ranks(2, |group, rank| {
        refusals_of(ENDS[rank], group, rank);
        let buffers = Buffers::new(1);
        expect(Op::new(group, ENDS[rank], rank, &buffers.send, &buffers.recv), Status::Ok);
    });
}
