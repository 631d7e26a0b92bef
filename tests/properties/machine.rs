//! Runs a program on the library and on the model at once, and compares.

use std::any::Any;
use std::cell::RefCell;
use std::future::IntoFuture;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

use vllm_cpp_sys::*;

use crate::memories::Memories;
use crate::model::{Access, Answer, Effect, FAILURE, Graph as ModelGraph, Memory, Mode};
use crate::program::{Ask, Fate, LEN, Op, Part, Program, SLOTS};
use crate::support::{CPU, forget_borrowed};

struct QueueSlot {
    queue: Rc<Queue>,
    failed: bool,
    stored: Option<Rc<ModelGraph>>,
}

#[derive(Clone)]
struct BufferSlot {
    memory: Rc<RefCell<Memories>>,
    block: usize,
}

/// What the latest record of an event was.
#[derive(Clone, Copy, PartialEq)]
enum Record {
    Eager,
    Captured(usize),
}

struct EventSlot {
    event: Rc<Event>,
    record: Record,
}

/// The capture in progress.
struct Capture {
    id: usize,
    members: Vec<usize>,
    current: usize,
    graph: ModelGraph,
    failed: Answer,
}

struct Machine {
    queues: Vec<QueueSlot>,
    buffers: Vec<BufferSlot>,
    events: Vec<EventSlot>,
    graphs: Vec<Option<(Rc<Graph>, Rc<ModelGraph>)>>,
    memory: Memory,
    capture: Option<Capture>,
    captures: usize,
    has_failed: bool,
}

/// Thrown by a closure that panics as planned.
struct Planned;

fn answer<T>(outcome: Result<T>) -> Answer {
    outcome.map(|_| ()).map_err(|error| error.status)
}

fn numbers(seed: u8, len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| u32::from(seed) * 1000 + i).collect()
}

fn new_queue(asynchronous: bool) -> QueueSlot {
    let queue = if asynchronous { Queue::new_async(CPU) } else { Queue::new(CPU) };
    QueueSlot { queue: Rc::new(queue.unwrap()), failed: false, stored: None }
}

fn new_event() -> EventSlot {
    EventSlot { event: Rc::new(Event::new(CPU).unwrap()), record: Record::Eager }
}

pub fn run(program: &Program) {
    let mut machine = Machine::new();
    machine.run(&program.ops);
    machine.end(&program.drops);
}

/// The programme, and what all operations share.
impl Machine {
    fn new() -> Machine {
        let mut memory = Memory::default();
        let buffer = |seed: usize| {
            let data = numbers(seed as u8, LEN);
            let block = memory.allocate(data.clone().try_into().unwrap());
            BufferSlot { memory: Rc::new(RefCell::new(Memories::new(seed == 1, &data).unwrap())), block }
        };
        Machine {
            buffers: (0..SLOTS).map(buffer).collect(),
            queues: (0..SLOTS).map(|slot| new_queue(slot != 2)).collect(),
            events: (0..SLOTS).map(|_| new_event()).collect(),
            graphs: (0..SLOTS).map(|_| None).collect(),
            memory,
            capture: None,
            captures: 0,
            has_failed: false,
        }
    }

    /// Reads everything, then drops everything in the order of the program.
    fn end(mut self, drops: &[usize]) {
        for buffer in 0..SLOTS {
            for _ in 0..2 {
                self.read(Part { buffer, start: 0, len: LEN });
            }
        }
        let mut things: Vec<Box<dyn Any>> = Vec::new();
        self.queues.into_iter().for_each(|slot| things.push(Box::new(slot.queue)));
        self.buffers.into_iter().for_each(|slot| things.push(Box::new(slot.memory)));
        self.events.into_iter().for_each(|slot| things.push(Box::new(slot.event)));
        self.graphs.into_iter().for_each(|slot| things.push(Box::new(slot)));
        for drop_at in drops {
            drop(things.swap_remove(drop_at % things.len()));
        }
    }

    fn run(&mut self, ops: &[Op]) {
        for op in ops {
            self.step(op);
        }
    }

    fn step(&mut self, op: &Op) {
        match op {
            &Op::NewQueue { queue, asynchronous } => self.new_queue(queue, asynchronous),
            &Op::CloseQueue { queue } => self.close_queue(queue),
            &Op::Synchronize { queue } => self.synchronize(queue),
            &Op::NewBuffer { buffer, pinned, seed } => self.new_buffer(buffer, pinned, seed),
            &Op::CloseBuffer { buffer } => self.close_buffer(buffer),
            &Op::Copy { queue, dst, src } => self.copy(queue, dst, src),
            &Op::Fill { queue, dst, byte } => self.fill(queue, dst, byte),
            &Op::Task { queue, dst, src } => self.task(queue, dst, src),
            &Op::Upload { dst, seed } => self.upload(dst, seed),
            &Op::ScopeUpload { queue, dst, seed } => self.scope_upload(queue, dst, seed),
            &Op::Read { src } => self.read(src),
            &Op::ForgetView { part, write } => self.with_view(part, write, None),
            Op::WithView { part, write, ops } => self.with_view(*part, *write, Some(ops)),
            &Op::Pause { queue } => self.pause(queue),
            &Op::FailTask { queue, dst } => self.fail_task(queue, dst),
            &Op::Once { queue } => self.once(queue),
            &Op::NewEvent { event } => self.events[event] = new_event(),
            &Op::Record { event, queue } => self.record(event, queue),
            &Op::After { queue, event } => self.after(queue, event),
            &Op::AskEvent { event, ask } => self.ask(event, ask),
            Op::Capture { graph, queue, stored, fate, ops } => self.capture(*graph, *queue, *stored, *fate, ops),
            Op::Fork { queue, ops } => self.fork(*queue, ops),
            &Op::Launch { graph, queue } => self.launch(graph, queue),
            &Op::Replay { queue } => self.replay(queue),
            &Op::DropGraph { graph } => self.graphs[graph] = None,
            Op::Reclaim => drop(reclaim()),
        }
    }

    /// The slot that an operation goes to: in a capture, its queues stand for the one whose turn it is.
    fn slot(&self, queue: usize) -> usize {
        match &self.capture {
            Some(capture) if capture.members.contains(&queue) => capture.current,
            _ => queue,
        }
    }

    fn is_recording(&self, slot: usize) -> bool {
        self.capture.as_ref().is_some_and(|capture| capture.current == slot)
    }

    /// A call on the capturing queue that is refused fails the capture.
    fn refused(&mut self, slot: usize) -> Answer {
        let refused = Err(Status::FailedPrecondition);
        if let Some(capture) = self.capture.as_mut().filter(|capture| capture.current == slot) {
            capture.failed = refused;
        }
        refused
    }

    /// What work on a queue should answer; then it has its effect.
    fn work(&mut self, slot: usize, accesses: &[Access], effect: Effect) -> Answer {
        if let Some(capture) = self.capture.as_mut().filter(|capture| capture.current == slot) {
            return self.memory.record(&mut capture.graph, accesses, effect);
        }
        if self.queues[slot].failed {
            return self.memory.refuse(accesses);
        }
        self.memory.admit(accesses)?;
        self.memory.apply(&effect);
        Ok(())
    }

    /// Whether a view of the buffer is open, which keeps it from being dropped.
    fn is_borrowed(&self, buffer: usize) -> bool {
        self.buffers[buffer].memory.try_borrow_mut().is_err()
    }
}

/// Queues and buffers come and go.
impl Machine {
    fn new_queue(&mut self, queue: usize, asynchronous: bool) {
        if self.capture.is_some() {
            return assert_eq!(answer(Queue::new(CPU)), Err(Status::FailedPrecondition));
        }
        self.queues[queue] = new_queue(asynchronous);
    }

    fn close_queue(&mut self, queue: usize) {
        if self.capture.is_some() {
            return;
        }
        let old = std::mem::replace(&mut self.queues[queue], new_queue(true));
        let expected = if old.failed { Err(FAILURE) } else { Ok(()) };
        assert_eq!(answer(Rc::into_inner(old.queue).unwrap().close()), expected);
    }

    fn new_buffer(&mut self, buffer: usize, pinned: bool, seed: u8) {
        if self.is_borrowed(buffer) {
            return;
        }
        let data = numbers(seed, LEN);
        let made = Memories::new(pinned, &data);
        if self.capture.is_some() {
            return assert_eq!(answer(made), Err(Status::FailedPrecondition));
        }
        let block = self.memory.allocate(data.try_into().unwrap());
        self.buffers[buffer] = BufferSlot { memory: Rc::new(RefCell::new(made.unwrap())), block };
    }

    fn close_buffer(&mut self, buffer: usize) {
        if self.is_borrowed(buffer) || self.capture.is_some() {
            return;
        }
        let memory = Rc::new(RefCell::new(Memories::new(false, &[0; LEN]).unwrap()));
        let block = self.memory.allocate([0; LEN]);
        let old = std::mem::replace(&mut self.buffers[buffer], BufferSlot { memory, block });
        let closed = Rc::into_inner(old.memory).unwrap().into_inner().close();
        assert_eq!(answer(closed), self.memory.close_block(old.block));
    }
}

/// Work on bytes.
impl Machine {
    /// Runs `call` with the slices of two parts and their blocks, where the borrow checker would allow that.
    fn with_parts(
        &mut self,
        dst: Part,
        src: Part,
        call: impl FnOnce(&mut Machine, (usize, SliceMut<'_, u32>), (usize, Slice<'_, u32>)),
    ) {
        let (to, from) = (self.buffers[dst.buffer].clone(), self.buffers[src.buffer].clone());
        let Ok(mut target) = to.memory.try_borrow_mut() else { return };
        if dst.buffer == src.buffer {
            let Some((target, source)) = target.two(dst, src) else { return };
            return call(self, (to.block, target), (from.block, source));
        }
        let Ok(source) = from.memory.try_borrow() else { return };
        call(self, (to.block, target.slice_mut(dst)), (from.block, source.slice(src)))
    }

    fn copy(&mut self, queue: usize, dst: Part, src: Part) {
        let slot = self.slot(queue);
        self.with_parts(dst, src, |machine, (to, target), (from, source)| {
            let outcome = machine.queues[slot].queue.copy(target, source);
            let accesses = [Access::new(to, dst, Mode::Write), Access::new(from, src, Mode::Read)];
            let effect = Effect::Copy { to: (to, dst.start), from: (from, src.start), len: dst.len };
            let fits = dst.len == src.len;
            let expected = if fits { machine.work(slot, &accesses, effect) } else { Err(Status::InvalidArgument) };
            assert_eq!(answer(outcome), expected);
        });
    }

    fn fill(&mut self, queue: usize, dst: Part, byte: u8) {
        let (slot, to) = (self.slot(queue), self.buffers[dst.buffer].clone());
        let Ok(mut target) = to.memory.try_borrow_mut() else { return };
        let outcome = self.queues[slot].queue.fill(target.slice_mut(dst), byte);
        let effect = Effect::Set { block: to.block, start: dst.start, values: vec![u32::from_ne_bytes([byte; 4]); dst.len] };
        assert_eq!(answer(outcome), self.work(slot, &[Access::new(to.block, dst, Mode::Write)], effect));
    }

    fn task(&mut self, queue: usize, dst: Part, src: Part) {
        let slot = self.slot(queue);
        if dst.buffer == src.buffer {
            return self.task_alone(slot, dst);
        }
        let len = dst.len.min(src.len);
        let (dst, src) = (Part { len, ..dst }, Part { len, ..src });
        self.with_parts(dst, src, |machine, (to, target), (from, source)| {
            let outcome = machine.queues[slot].queue.host_task((target, source), |(target, source)| {
                target.iter_mut().zip(source).for_each(|(to, from)| *to = to.wrapping_mul(3).wrapping_add(*from));
                Ok(())
            });
            let accesses = [Access::new(to, dst, Mode::Update), Access::new(from, src, Mode::Read)];
            let effect = Effect::Task { to: (to, dst.start), from: Some((from, src.start)), len };
            assert_eq!(answer(outcome), machine.work(slot, &accesses, effect));
        });
    }

    fn task_alone(&mut self, slot: usize, dst: Part) {
        let to = self.buffers[dst.buffer].clone();
        let Ok(mut target) = to.memory.try_borrow_mut() else { return };
        let outcome = self.queues[slot].queue.host_task((target.slice_mut(dst),), |(target,)| {
            target.iter_mut().for_each(|to| *to = to.wrapping_mul(3).wrapping_add(1));
            Ok(())
        });
        let effect = Effect::Task { to: (to.block, dst.start), from: None, len: dst.len };
        assert_eq!(answer(outcome), self.work(slot, &[Access::new(to.block, dst, Mode::Update)], effect));
    }

    fn upload(&mut self, dst: Part, seed: u8) {
        let to = self.buffers[dst.buffer].clone();
        let Ok(mut target) = to.memory.try_borrow_mut() else { return };
        let values = numbers(seed, dst.len);
        let outcome = target.slice_mut(dst).copy_from_slice(&values);
        let expected = self.memory.admit(&[Access::new(to.block, dst, Mode::Update)]);
        assert_eq!(answer(outcome), expected);
        if expected.is_ok() {
            self.memory.apply(&Effect::Set { block: to.block, start: dst.start, values });
        }
    }

    fn scope_upload(&mut self, queue: usize, dst: Part, seed: u8) {
        let (slot, to) = (self.slot(queue), self.buffers[dst.buffer].clone());
        let Ok(mut target) = to.memory.try_borrow_mut() else { return };
        let values = numbers(seed, dst.len);
        let outcome = self.queues[slot].queue.scope(|scope| scope.copy_from_slice(target.slice_mut(dst), &values));
        let effect = Effect::Set { block: to.block, start: dst.start, values };
        let expected = match self.capture {
            Some(_) => Err(Status::FailedPrecondition),
            None => self.work(slot, &[Access::new(to.block, dst, Mode::Write)], effect),
        };
        assert_eq!(answer(outcome), expected);
    }

    fn read(&mut self, src: Part) {
        let from = self.buffers[src.buffer].clone();
        let Ok(source) = from.memory.try_borrow() else { return };
        let outcome = source.slice(src).to_vec();
        let expected = self.memory.admit(&[Access::new(from.block, src, Mode::Read)]);
        assert_eq!(outcome.as_ref().map(|_| ()).map_err(|error| error.status), expected);
        if let Ok(bytes) = outcome {
            assert_eq!(bytes, self.memory.bytes(from.block, src));
        }
    }

    /// Opens a view, runs operations under it and closes it; without operations it is forgotten.
    fn with_view(&mut self, part: Part, write: bool, ops: Option<&[Op]>) {
        let of = self.buffers[part.buffer].clone();
        let access = Access::new(of.block, part, if write { Mode::Update } else { Mode::Read });
        if write {
            let Ok(mut memory) = of.memory.try_borrow_mut() else { return };
            let mut slice = memory.slice_mut(part);
            let opened = slice.write();
            assert_eq!(opened.as_ref().map(|_| ()).map_err(|error| error.status), self.memory.open_view(access));
            let Ok(mut view) = opened else { return };
            view.iter_mut().for_each(|element| *element ^= 1);
            self.memory.apply(&Effect::Set { block: of.block, start: part.start, values: view.to_vec() });
            self.under(view, access, ops);
        } else {
            let Ok(memory) = of.memory.try_borrow() else { return };
            let opened = memory.slice(part).read();
            assert_eq!(opened.as_ref().map(|_| ()).map_err(|error| error.status), self.memory.open_view(access));
            let Ok(view) = opened else { return };
            assert_eq!(*view, *self.memory.bytes(of.block, part));
            self.under(view, access, ops);
        }
    }

    fn under<V>(&mut self, view: V, access: Access, ops: Option<&[Op]>) {
        let Some(ops) = ops else { return forget_borrowed(view) };
        self.run(ops);
        drop(view);
        self.memory.close_view(access);
    }
}

/// Work without bytes, and failures.
impl Machine {
    fn synchronize(&mut self, queue: usize) {
        let slot = self.slot(queue);
        let expected = match (&self.capture, self.queues[slot].failed) {
            (Some(_), _) => self.refused(slot),
            (None, true) => Err(FAILURE),
            (None, false) => Ok(()),
        };
        assert_eq!(answer(self.queues[slot].queue.synchronize()), expected);
    }

    fn pause(&mut self, queue: usize) {
        let slot = self.slot(queue);
        let outcome = self.queues[slot].queue.host_func(|| {
            std::thread::sleep(Duration::from_micros(100));
            Ok(())
        });
        assert_eq!(answer(outcome), self.work(slot, &[], Effect::Nothing));
    }

    fn once(&mut self, queue: usize) {
        let slot = self.slot(queue);
        let expected = match (self.is_recording(slot), self.queues[slot].failed) {
            (true, _) => Err(Status::FailedPrecondition),
            (false, true) => Err(FAILURE),
            (false, false) => Ok(()),
        };
        assert_eq!(answer(self.queues[slot].queue.host_func_once(|| Ok(()))), expected);
    }

    fn fail_task(&mut self, queue: usize, dst: Part) {
        let to = self.buffers[dst.buffer].clone();
        let Ok(mut target) = to.memory.try_borrow_mut() else { return };
        let asynchronous = !self.queues[queue].queue.is_synchronous();
        if self.capture.is_some() || (asynchronous && self.has_failed) {
            return;
        }
        let task = |_: (&mut [u32],)| Err(Error::new(FAILURE, "planned"));
        let outcome = answer(self.queues[queue].queue.host_task((target.slice_mut(dst),), task));
        let access = Access::new(to.block, dst, Mode::Update);
        let admitted = self.memory.admit(&[access]);
        if !asynchronous {
            return assert_eq!(outcome, admitted.and(Err(FAILURE)));
        }
        assert_eq!(outcome, admitted);
        if admitted.is_ok() {
            assert_eq!(answer(self.queues[queue].queue.synchronize()), Err(FAILURE));
            self.memory.fail(access);
            (self.queues[queue].failed, self.has_failed) = (true, true);
        }
    }
}

/// Events.
impl Machine {
    fn record(&mut self, event: usize, queue: usize) {
        let slot = self.slot(queue);
        let outcome = answer(self.events[event].event.record(&self.queues[slot].queue));
        if self.queues[slot].failed {
            return assert_eq!(outcome, Err(FAILURE));
        }
        assert_eq!(outcome, Ok(()));
        let capture = self.capture.as_ref().filter(|capture| capture.current == slot);
        self.events[event].record = capture.map_or(Record::Eager, |capture| Record::Captured(capture.id));
    }

    fn after(&mut self, queue: usize, event: usize) {
        let (slot, record) = (self.slot(queue), self.events[event].record);
        let own = self.capture.as_ref().is_some_and(|capture| record == Record::Captured(capture.id));
        let recording = self.is_recording(slot);
        if own && !recording {
            return; // would join
        }
        let expected = match record {
            _ if own => Ok(()),
            _ if recording => self.refused(slot),
            Record::Captured(_) => Err(Status::FailedPrecondition),
            Record::Eager if self.queues[slot].failed => Err(FAILURE),
            Record::Eager => Ok(()),
        };
        assert_eq!(answer(self.queues[slot].queue.after_event(&self.events[event].event)), expected);
    }

    fn ask(&mut self, event: usize, ask: Ask) {
        let EventSlot { event, record } = &self.events[event];
        let outcome = match ask {
            Ask::Query => answer(event.query()),
            Ask::Synchronize => answer(event.synchronize()),
            Ask::Await => answer(pollster::block_on((&**event).into_future())),
        };
        let blocks = matches!(ask, Ask::Synchronize) && self.capture.is_some();
        let refused = *record != Record::Eager || blocks;
        assert_eq!(outcome, if refused { Err(Status::FailedPrecondition) } else { Ok(()) });
    }
}

/// Graphs.
impl Machine {
    fn capture(&mut self, graph: usize, queue: usize, stored: bool, fate: Fate, ops: &[Op]) {
        let real = self.queues[self.slot(queue)].queue.clone();
        if self.capture.is_some() || self.queues[queue].failed {
            let expected = if self.capture.is_some() { Status::FailedPrecondition } else { FAILURE };
            return assert_eq!(answer(real.capture(|_| panic!("a refused capture runs its closure"))), Err(expected));
        }
        self.captures += 1;
        let (id, members) = (self.captures, vec![queue]);
        self.capture = Some(Capture { id, members, current: queue, graph: ModelGraph::default(), failed: Ok(()) });
        let body = |_: &Queue| {
            self.run(ops);
            match fate {
                Fate::Returns => Ok(()),
                Fate::Fails => Err(Error::new(Status::Unsupported, "planned")),
                Fate::Panics => resume_unwind(Box::new(Planned)),
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| match stored {
            true => real.capture_stored(body).map(|()| None),
            false => real.capture(body).map(Some),
        }));
        match outcome {
            Err(payload) if payload.is::<Planned>() => self.capture = None,
            Err(payload) => resume_unwind(payload),
            Ok(outcome) => self.end_capture(outcome, graph, queue, fate),
        }
    }

    fn end_capture(&mut self, outcome: Result<Option<Graph>>, graph: usize, queue: usize, fate: Fate) {
        let capture = self.capture.take().unwrap();
        let expected = if fate == Fate::Fails { Err(Status::Unsupported) } else { capture.failed };
        assert_eq!(outcome.as_ref().map(|_| ()).map_err(|error| error.status), expected);
        match outcome {
            Ok(Some(real)) => self.graphs[graph] = Some((Rc::new(real), Rc::new(capture.graph))),
            Ok(None) => self.queues[queue].stored = Some(Rc::new(capture.graph)),
            Err(_) => {}
        }
    }

    /// The other queue takes part from an event of the current one to an event of its own.
    fn fork(&mut self, queue: usize, ops: &[Op]) {
        let Some(capture) = self.capture.as_mut().filter(|capture| !capture.members.contains(&queue)) else { return };
        if self.queues[queue].failed {
            return;
        }
        capture.members.push(queue);
        let outer = std::mem::replace(&mut capture.current, queue);
        let (main, side) = (self.queues[outer].queue.clone(), self.queues[queue].queue.clone());
        let [fork, join] = [(); 2].map(|()| Event::new(CPU).unwrap());
        fork.record(&main).unwrap();
        side.after_event(&fork).unwrap();
        self.run(ops);
        join.record(&side).unwrap();
        main.after_event(&join).unwrap();
        self.capture.as_mut().unwrap().current = outer;
    }

    fn launch(&mut self, graph: usize, queue: usize) {
        let slot = self.slot(queue);
        let Some((real, model)) = self.graphs[graph].clone() else { return };
        let failed = self.queues[slot].failed;
        let expected = if self.is_recording(slot) { self.refused(slot) } else { self.memory.launch(&model, failed) };
        assert_eq!(answer(real.launch(&self.queues[slot].queue)), expected);
    }

    fn replay(&mut self, queue: usize) {
        let slot = self.slot(queue);
        let QueueSlot { stored, failed, .. } = &self.queues[slot];
        let expected = match (self.is_recording(slot), stored.clone()) {
            (true, _) => self.refused(slot),
            (false, None) => Err(Status::FailedPrecondition),
            (false, Some(model)) => self.memory.launch(&model, *failed),
        };
        assert_eq!(answer(self.queues[slot].queue.replay()), expected);
    }
}
