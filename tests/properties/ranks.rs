//! Random programs of collectives and messages on several ranks, each a thread with one buffer, against one thread's arithmetic.

use std::thread;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use vllm_cpp_sys::*;

use crate::support::CPU;

/// Elements of each rank's buffer: more than what small operations carry in one message.
const LEN: usize = 1024;

#[derive(Debug, Clone)]
enum Step {
    Reduce {
        op: usize,
        count: usize,
        in_place: bool,
    },
    /// A part of the first elements of every rank, repeated over the buffer.
    Gather {
        in_place: bool,
    },
    Barrier,
    /// Every rank sends to the one so far ahead.
    Ring {
        ahead: usize,
        count: usize,
    },
    Message {
        from: usize,
        to: usize,
        count: usize,
    },
    /// Two operations in one batch.
    Batch {
        op: usize,
        count: usize,
    },
    /// A captured reduction, launched twice.
    Graph {
        op: usize,
        count: usize,
    },
    /// One rank gives another count.
    Odd {
        rank: usize,
        count: usize,
    },
    /// One rank gives buffers of different lengths.
    Refused {
        rank: usize,
    },
}

#[derive(Debug, Clone)]
pub struct Program {
    world: usize,
    asynchronous: Vec<bool>,
    steps: Vec<Step>,
}

const OPS: [ReduceOp; 5] = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::Prod, ReduceOp::Avg];

fn step(world: usize) -> impl Strategy<Value = Step> {
    let count = || prop::sample::select(vec![0, 1, 5, 64, 255, 256, 257, 1000, LEN]);
    let (op, rank) = (0..OPS.len(), 0..world);
    prop_oneof![
        4 => (op.clone(), count(), any::<bool>()).prop_map(|(op, count, in_place)| Step::Reduce { op, count, in_place }),
        2 => any::<bool>().prop_map(|in_place| Step::Gather { in_place }),
        1 => Just(Step::Barrier),
        2 => (rank.clone(), count()).prop_map(|(ahead, count)| Step::Ring { ahead, count }),
        2 => (rank.clone(), rank.clone(), count()).prop_map(|(from, to, count)| Step::Message { from, to, count }),
        1 => (op.clone(), count()).prop_map(|(op, count)| Step::Batch { op, count }),
        1 => (op, count()).prop_map(|(op, count)| Step::Graph { op, count }),
        1 => (rank.clone(), count()).prop_map(|(rank, count)| Step::Odd { rank, count }),
        1 => rank.prop_map(|rank| Step::Refused { rank }),
    ]
}

pub fn programs() -> impl Strategy<Value = Program> {
    (1..=4usize).prop_flat_map(|world| {
        (vec(any::<bool>(), world), vec(step(world), 1..12)).prop_map(move |(asynchronous, steps)| Program {
            world,
            asynchronous,
            steps,
        })
    })
}

/// The buffers of all ranks.
type State = Vec<Vec<i32>>;

fn reduced(state: &State, op: usize, i: usize) -> i32 {
    let values = state.iter().map(|row| row[i]);
    let sum = || values.clone().fold(0i32, i32::wrapping_add);
    match OPS[op] {
        ReduceOp::Sum => sum(),
        ReduceOp::Max => values.max().unwrap(),
        ReduceOp::Min => values.min().unwrap(),
        ReduceOp::Prod => values.fold(1, i32::wrapping_mul),
        _ => sum() / state.len() as i32,
    }
}

fn reduce(state: &mut State, op: usize, count: usize) {
    for i in 0..count {
        let value = reduced(state, op, i);
        state.iter_mut().for_each(|row| row[i] = value);
    }
}

/// What a step makes of the buffers; what fails leaves them alone.
fn model(state: &mut State, step: &Step) {
    let world = state.len();
    match *step {
        Step::Reduce { op, count, .. } | Step::Batch { op, count } => reduce(state, op, count),
        Step::Graph { op, count } => (0..2).for_each(|_| reduce(state, op, count)),
        Step::Gather { .. } => {
            let part = LEN / world;
            let all: Vec<i32> = (0..world).flat_map(|rank| state[rank][rank * part..(rank + 1) * part].to_vec()).collect();
            state.iter_mut().for_each(|row| row[..world * part].copy_from_slice(&all));
        }
        Step::Ring { ahead, count } => {
            let before = state.clone();
            (0..world).for_each(|rank| state[(rank + ahead) % world][..count].copy_from_slice(&before[rank][..count]));
        }
        Step::Message { from, to, count } if from != to => {
            let sent = state[from][..count].to_vec();
            state[to][..count].copy_from_slice(&sent);
        }
        Step::Message { .. } | Step::Barrier | Step::Odd { .. } | Step::Refused { .. } => {}
    }
}

pub fn run(program: &Program) {
    let mut state: State =
        (0..program.world).map(|rank| (0..LEN).map(|i| (rank * 7 + i * 3) as i32 % 100 - 50).collect()).collect();
    let mut states = vec![state.clone()];
    for step in &program.steps {
        model(&mut state, step);
        states.push(state.clone());
    }
    let options = CommGroupOptions::default().timeout(Duration::from_secs(20));
    let comms = CommGroup::with_options(program.world, &options).unwrap().into_comms().unwrap();
    thread::scope(|scope| {
        let start = |comm: Comm| scope.spawn(|| Rank::new(comm, program, &states[0]).run(program, &states));
        let threads: Vec<_> = comms.into_iter().map(start).collect();
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        outcomes.into_iter().for_each(|outcome| outcome.unwrap_or_else(|payload| std::panic::resume_unwind(payload)));
    });
}

struct Rank {
    comm: Comm,
    asynchronous: bool,
    queue: Queue,
    x: DeviceBuf<i32>,
    y: DeviceBuf<i32>,
}

fn queue(asynchronous: bool) -> Queue {
    if asynchronous { Queue::new_async(CPU).unwrap() } else { Queue::new(CPU).unwrap() }
}

impl Rank {
    fn new(comm: Comm, program: &Program, state: &State) -> Rank {
        let asynchronous = program.asynchronous[comm.rank()];
        let x = DeviceBuf::from_slice(CPU, &state[comm.rank()]).unwrap();
        Rank { comm, asynchronous, queue: queue(asynchronous), x, y: DeviceBuf::zeroed(CPU, LEN).unwrap() }
    }

    fn run(mut self, program: &Program, states: &[State]) {
        for (number, step) in program.steps.iter().enumerate() {
            let outcome = self.step(step);
            let finished = outcome.and_then(|()| if number % 3 == 2 { self.queue.synchronize() } else { Ok(()) });
            finished.unwrap_or_else(|error| panic!("step {number}: {error}"));
            if number % 2 == 1 {
                self.check(&states[number + 1]);
            }
        }
        self.check(&states[program.steps.len()]);
        self.queue.close().unwrap();
    }

    fn check(&self, state: &State) {
        assert_eq!(self.x.to_vec().unwrap(), state[self.comm.rank()], "rank {}", self.comm.rank());
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        match *step {
            Step::Reduce { op, count, in_place: true } => {
                self.comm.all_reduce_in_place(&self.queue, self.x.slice_mut(..count), OPS[op])
            }
            Step::Reduce { op, count, in_place: false } => {
                self.comm.all_reduce(&self.queue, self.x.slice(..count), self.y.slice_mut(..count), OPS[op])?;
                self.queue.copy(self.x.slice_mut(..count), self.y.slice(..count))
            }
            Step::Gather { in_place } => self.gather(in_place),
            Step::Barrier => self.comm.barrier(&self.queue),
            Step::Ring { ahead, count } => self.ring(ahead, count),
            Step::Message { from, to, count } => self.message(from, to, count),
            Step::Batch { op, count } => {
                let (comm, queue, x) = (&self.comm, &self.queue, &mut self.x);
                batch(|b| {
                    b.barrier(comm, queue)?;
                    b.all_reduce_in_place(comm, queue, x.slice_mut(..count), OPS[op])
                })
            }
            Step::Graph { op, count } => {
                let (comm, x) = (&mut self.comm, &mut self.x);
                let graph = self.queue.capture(|q| comm.all_reduce_in_place(q, x.slice_mut(..count), OPS[op]))?;
                graph.launch(&self.queue)?;
                graph.launch(&self.queue)
            }
            Step::Odd { rank, count } => self.odd(rank, count),
            Step::Refused { rank } => self.refused(rank),
        }
    }

    fn gather(&mut self, in_place: bool) -> Result<()> {
        let (rank, world) = (self.comm.rank(), self.comm.world());
        let part = LEN / world;
        if in_place {
            return self.comm.all_gather_in_place(&self.queue, self.x.slice_mut(..part * world));
        }
        let own = self.x.slice(rank * part..(rank + 1) * part);
        self.comm.all_gather(&self.queue, own, self.y.slice_mut(..part * world))?;
        self.queue.copy(self.x.slice_mut(..part * world), self.y.slice(..part * world))
    }

    fn ring(&mut self, ahead: usize, count: usize) -> Result<()> {
        let (rank, world) = (self.comm.rank(), self.comm.world());
        let (comm, queue, x, y) = (&self.comm, &self.queue, &self.x, &mut self.y);
        batch(|b| {
            b.send(comm, queue, x.slice(..count), (rank + ahead) % world)?;
            b.recv(comm, queue, y.slice_mut(..count), (rank + world - ahead) % world)
        })?;
        self.queue.copy(self.x.slice_mut(..count), self.y.slice(..count))
    }

    fn message(&mut self, from: usize, to: usize, count: usize) -> Result<()> {
        let rank = self.comm.rank();
        if from == to {
            return Ok(());
        }
        if rank == from {
            self.comm.send(&self.queue, self.x.slice(..count), to)?;
        }
        if rank == to {
            self.comm.recv(&self.queue, self.x.slice_mut(..count), from)?;
        }
        Ok(())
    }

    /// A call that must fail with `expected`, at once or later. An asynchronous queue that failed is replaced.
    fn fails(&mut self, outcome: Result<()>, expected: Status) -> Result<()> {
        let later = outcome.is_ok();
        let error = outcome.and_then(|()| self.queue.synchronize()).unwrap_err();
        assert_eq!(error.status, expected, "{error}");
        if later {
            assert!(self.asynchronous);
            self.queue = queue(true);
        }
        self.comm.query()
    }

    fn odd(&mut self, odd: usize, count: usize) -> Result<()> {
        let count = if self.comm.rank() == odd { LEN - count } else { count };
        if self.comm.world() == 1 || LEN - count == count {
            return Ok(());
        }
        let outcome = self.comm.all_reduce(&self.queue, self.x.slice(..count), self.y.slice_mut(..count), ReduceOp::Sum);
        self.fails(outcome, Status::Mismatch)
    }

    fn refused(&mut self, refused: usize) -> Result<()> {
        let own = self.comm.rank() == refused;
        if self.comm.world() == 1 {
            return Ok(());
        }
        let len = if own { 3 } else { 4 };
        let outcome = self.comm.all_reduce(&self.queue, self.x.slice(..4), self.y.slice_mut(..len), ReduceOp::Sum);
        self.fails(outcome, if own { Status::InvalidArgument } else { Status::Mismatch })
    }
}
