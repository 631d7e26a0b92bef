//! What should happen: every operation at once, in the order of the calls. Sets of elements are bits.

use std::collections::BTreeMap;

use vllm_cpp_sys::Status;

use crate::program::{LEN, Part};

/// What failing tasks fail with.
pub const FAILURE: Status = Status::NotFound;

pub type Answer = Result<(), Status>;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    Read,
    /// Without reading.
    Write,
    Update,
}

#[derive(Debug, Clone, Copy)]
pub struct Access {
    pub block: usize,
    pub elements: u8,
    pub mode: Mode,
}

impl Access {
    pub fn new(block: usize, part: Part, mode: Mode) -> Access {
        let elements = (part.start..part.start + part.len).fold(0, |set, element| set | 1 << element);
        Access { block, elements, mode }
    }

    fn writes(&self) -> bool {
        self.mode != Mode::Read
    }
}

/// What an operation does to memory.
#[derive(Debug, Clone)]
pub enum Effect {
    Nothing,
    Set { block: usize, start: usize, values: Vec<u32> },
    Copy { to: (usize, usize), from: (usize, usize), len: usize },
    Task { to: (usize, usize), from: Option<(usize, usize)>, len: usize },
}

/// One allocation.
#[derive(Default)]
struct Block {
    data: [u32; LEN],
    /// Elements that a failed queue didn't write and that nobody was told of.
    owed: u8,
    /// Open and forgotten views: elements, and whether they write.
    views: Vec<(u8, bool)>,
}

/// What a graph uses of a block.
#[derive(Default)]
struct Link {
    reads: u8,
    writes: u8,
    inputs: u8,
}

#[derive(Default)]
pub struct Graph {
    effects: Vec<Effect>,
    links: BTreeMap<usize, Link>,
}

#[derive(Default)]
pub struct Memory(Vec<Block>);

impl Memory {
    pub fn allocate(&mut self, data: [u32; LEN]) -> usize {
        self.0.push(Block { data, ..Block::default() });
        self.0.len() - 1
    }

    pub fn bytes(&self, block: usize, part: Part) -> &[u32] {
        &self.0[block].data[part.start..part.start + part.len]
    }

    fn has_view_against(&self, access: &Access) -> bool {
        let against = |view: &(u8, bool)| view.0 & access.elements != 0 && (view.1 || access.writes());
        self.0[access.block].views.iter().any(against)
    }

    /// Whether somebody is to be told of a failure who reads this. Then he is told.
    fn owes(&mut self, block: usize, elements: u8) -> bool {
        let owed = &mut self.0[block].owed;
        let owes = *owed & elements != 0;
        *owed &= !elements;
        owes
    }

    fn check_views(&self, accesses: &[Access]) -> Answer {
        if accesses.iter().any(|access| self.has_view_against(access)) { Err(Status::FailedPrecondition) } else { Ok(()) }
    }

    /// Work on a queue that is well, or by the host.
    pub fn admit(&mut self, accesses: &[Access]) -> Answer {
        self.check_views(accesses)?;
        let reads = accesses.iter().filter(|access| access.mode != Mode::Write);
        if reads.filter(|access| self.owes(access.block, access.elements)).count() > 0 {
            return Err(FAILURE);
        }
        for access in accesses.iter().filter(|access| access.mode == Mode::Write) {
            self.owes(access.block, access.elements);
        }
        Ok(())
    }

    /// Work that a queue refuses because it has failed: that is told at once, and to nobody else.
    pub fn refuse(&self, accesses: &[Access]) -> Answer {
        self.check_views(accesses).and(Err(FAILURE))
    }

    /// Work that was queued and then failed: who reads is told.
    pub fn fail(&mut self, access: Access) {
        self.0[access.block].owed |= access.elements;
    }

    pub fn open_view(&mut self, access: Access) -> Answer {
        self.admit(&[access])?;
        self.0[access.block].views.push((access.elements, access.writes()));
        Ok(())
    }

    pub fn close_view(&mut self, access: Access) {
        let views = &mut self.0[access.block].views;
        let position = views.iter().position(|view| *view == (access.elements, access.writes()));
        views.swap_remove(position.unwrap());
    }

    /// What waits for everything on a block, and whether that has failed.
    pub fn close_block(&mut self, block: usize) -> Answer {
        if self.owes(block, u8::MAX) { Err(FAILURE) } else { Ok(()) }
    }

    pub fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Nothing => {}
            Effect::Set { block, start, values } => self.0[*block].data[*start..start + values.len()].copy_from_slice(values),
            Effect::Copy { to, from, len } => {
                let source = self.0[from.0].data;
                self.0[to.0].data[to.1..to.1 + len].copy_from_slice(&source[from.1..from.1 + len]);
            }
            Effect::Task { to, from, len } => {
                let source = from.map_or([1; LEN], |from| self.0[from.0].data);
                let start = from.map_or(0, |from| from.1);
                for i in 0..*len {
                    let place = &mut self.0[to.0].data[to.1 + i];
                    *place = place.wrapping_mul(3).wrapping_add(source[start + i]);
                }
            }
        }
    }

    /// Recording an operation into a graph.
    pub fn record(&mut self, graph: &mut Graph, accesses: &[Access], effect: Effect) -> Answer {
        for access in accesses {
            self.check_views(std::slice::from_ref(access))?;
            let link = graph.links.entry(access.block).or_default();
            if access.mode != Mode::Write {
                link.inputs |= access.elements & !link.writes;
                link.reads |= access.elements;
            }
            if access.writes() {
                link.writes |= access.elements;
            }
        }
        graph.effects.push(effect);
        Ok(())
    }

    /// A launch on a queue that is well, or has failed.
    pub fn launch(&mut self, graph: &Graph, failed: bool) -> Answer {
        for (&block, link) in &graph.links {
            let views = &self.0[block].views;
            if views.iter().any(|view| view.0 & link.writes != 0 || (view.1 && view.0 & link.reads != 0)) {
                return Err(Status::FailedPrecondition);
            }
        }
        if failed {
            return Err(FAILURE);
        }
        if graph.links.iter().filter(|(block, link)| self.owes(**block, link.inputs)).count() > 0 {
            return Err(FAILURE);
        }
        for (&block, link) in &graph.links {
            self.owes(block, link.writes);
        }
        graph.effects.iter().for_each(|effect| self.apply(effect));
        Ok(())
    }
}
