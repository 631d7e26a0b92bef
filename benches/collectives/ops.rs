//! The operations, through the C interface on synchronous queues: what an engine's rank thread would call.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use vllm_cpp_sys::sys;

use crate::harness::run_ranks;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Op {
    AllReduce,
    AllGather,
    SendRecv,
    Barrier,
}

impl Op {
    pub const ALL: [Op; 4] = [Op::AllReduce, Op::AllGather, Op::SendRecv, Op::Barrier];

    pub fn name(self) -> &'static str {
        match self {
            Op::AllReduce => "all_reduce",
            Op::AllGather => "all_gather",
            Op::SendRecv => "send_recv",
            Op::Barrier => "barrier",
        }
    }

    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.name() == name)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    F32,
    Bf16,
}

impl Dtype {
    pub fn name(self) -> &'static str {
        if self == Dtype::F32 { "f32" } else { "bf16" }
    }

    fn size(self) -> usize {
        if self == Dtype::F32 { 4 } else { 2 }
    }

    fn id(self) -> sys::vt_dtype {
        (if self == Dtype::F32 { sys::VT_DTYPE_F32 } else { sys::VT_DTYPE_BF16 }) as sys::vt_dtype
    }
}

/// One row: `bytes` is the size of the result on a rank.
pub struct Case {
    pub op: Op,
    pub dtype: Dtype,
    pub bytes: usize,
    pub world: usize,
}

impl Case {
    pub fn all(op: Op, world: usize, sizes: &[usize]) -> Vec<Case> {
        let row = |dtype, bytes| Case { op, dtype, bytes, world };
        match op {
            Op::AllReduce => sizes.iter().flat_map(|&b| [row(Dtype::F32, b), row(Dtype::Bf16, b)]).collect(),
            Op::AllGather => sizes.iter().filter(|&&b| b >= 4 * world).map(|&b| row(Dtype::F32, b)).collect(),
            Op::SendRecv if world == 2 => sizes.iter().map(|&b| row(Dtype::F32, b)).collect(),
            Op::SendRecv => Vec::new(),
            Op::Barrier => vec![row(Dtype::F32, 0)],
        }
    }

    pub fn has_limit(&self) -> bool {
        self.op == Op::AllReduce && self.world == 2
    }

    fn count(&self) -> usize {
        self.bytes / self.dtype.size()
    }
}

pub struct Round {
    pub times_us: Vec<f64>,
    pub correct: bool,
}

/// Timed calls of one round: about a tenth of a second.
pub fn iterations(bytes: usize) -> usize {
    ((48 << 20) / bytes.max(1)).clamp(7, 1000)
}

fn check(status: sys::vt_status, what: &str) {
    if status != sys::VT_OK as sys::vt_status {
        // SAFETY: the record and its message belong to this thread and are valid until its next failure.
        let message = unsafe { std::ffi::CStr::from_ptr((*sys::vt_last_error()).message) };
        panic!("{what}: {}", message.to_string_lossy());
    }
}

struct Group(*mut sys::vt_comm_group);

// SAFETY: a group may be used from any thread.
unsafe impl Sync for Group {}

impl Group {
    fn new(world: usize) -> Group {
        let mut group = null_mut();
        // SAFETY: the out-parameter is valid.
        check(unsafe { sys::vt_comm_group_create(world as i32, null(), &mut group) }, "vt_comm_group_create");
        Group(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: this is the one reference.
        unsafe { sys::vt_comm_group_release(self.0) }
    }
}

struct Rank {
    index: usize,
    comm: *mut sys::vt_comm,
    queue: *mut sys::vt_queue,
    data: Vec<u8>,
    correct: bool,
}

// SAFETY: a rank is handed from its thread to the main thread at the end, and used by one at a time.
unsafe impl Send for Rank {}

impl Rank {
    fn new(group: &Group, case: &Case, index: usize) -> Rank {
        let (mut comm, mut queue) = (null_mut(), null_mut());
        let device = sys::vt_device { type_: sys::VT_DEVICE_CPU, index: 0 };
        // SAFETY: the group is alive and the out-parameters are valid.
        unsafe {
            check(sys::vt_comm_group_get_comm(group.0, index as i32, &mut comm), "vt_comm_group_get_comm");
            check(sys::vt_queue_create(device, null(), &mut queue), "vt_queue_create");
        }
        Rank { index, comm, queue, data: vec![0; case.bytes], correct: true }
    }

    /// Elements that this rank fills before a call: all of them, or its own part of a gather.
    fn own(&self, case: &Case) -> std::ops::Range<usize> {
        let part = case.count() / case.world;
        if case.op == Op::AllGather { self.index * part..(self.index + 1) * part } else { 0..case.count() }
    }

    fn fill(&mut self, case: &Case, iteration: usize) {
        let (range, index) = (self.own(case), self.index);
        let size = case.dtype.size();
        for (offset, element) in self.data[range.start * size..range.end * size].chunks_exact_mut(size).enumerate() {
            store(element, value(index, range.start + offset, iteration));
        }
    }

    fn call(&mut self, case: &Case) {
        let data: *mut c_void = self.data.as_mut_ptr().cast();
        let (count, part) = (case.count(), case.count() / case.world);
        let dtype = case.dtype.id();
        // SAFETY: comm and queue are alive and `data` holds `count` elements; the calls return when peers no longer touch it.
        let status = unsafe {
            match case.op {
                Op::AllReduce => {
                    let sum = sys::VT_REDUCE_SUM as sys::vt_reduce_op;
                    sys::vt_comm_all_reduce(self.comm, self.queue, data, data, count, dtype, sum, null())
                }
                Op::AllGather => {
                    let own = data.byte_add(self.index * part * case.dtype.size());
                    sys::vt_comm_all_gather(self.comm, self.queue, own, data, part, dtype, null())
                }
                Op::SendRecv if self.index == 0 => sys::vt_comm_send(self.comm, self.queue, data, count, dtype, 1, null()),
                Op::SendRecv => sys::vt_comm_recv(self.comm, self.queue, data, count, dtype, 0, null()),
                Op::Barrier => sys::vt_comm_barrier(self.comm, self.queue, null()),
            }
        };
        check(status, case.op.name());
    }

    /// Compares the whole result with what it must be.
    fn verify(&mut self, case: &Case, iteration: usize) {
        let part = (case.count() / case.world).max(1);
        let size = case.dtype.size();
        self.correct &= self
            .data
            .chunks_exact(size)
            .take(if case.op == Op::AllGather { part * case.world } else { case.count() })
            .enumerate()
            .all(|(i, element)| {
                let expected = match case.op {
                    Op::AllReduce => (0..case.world).map(|rank| value(rank, i, iteration)).sum(),
                    Op::AllGather => value(i / part, i, iteration),
                    _ => value(0, i, iteration),
                };
                load(element) == expected
            });
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        // SAFETY: this is the one reference.
        unsafe { sys::vt_queue_release(self.queue) }
    }
}

/// Small whole numbers: their sums are exact in every type.
fn value(rank: usize, i: usize, iteration: usize) -> f32 {
    ((i + iteration) % 7 + rank + 1) as f32
}

fn store(element: &mut [u8], value: f32) {
    let bytes = value.to_le_bytes();
    element.copy_from_slice(if element.len() == 4 { &bytes } else { &bytes[2..] });
}

fn load(element: &[u8]) -> f32 {
    let mut bytes = [0; 4];
    bytes[4 - element.len()..].copy_from_slice(element);
    f32::from_le_bytes(bytes)
}

pub fn run(case: &Case) -> Round {
    let group = Group::new(case.world);
    let (times_us, mut ranks) = run_ranks(
        case.world,
        iterations(case.bytes),
        |index| Rank::new(&group, case, index),
        |rank, iteration| {
            if iteration == 1 {
                rank.verify(case, 0);
            }
            rank.fill(case, iteration);
        },
        |rank, _| rank.call(case),
    );
    ranks.iter_mut().for_each(|rank| rank.verify(case, times_us.len() - 1));
    Round { times_us, correct: ranks.iter().all(|rank| rank.correct) }
}
