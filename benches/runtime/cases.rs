//! The Rust half: the work of `loops.c` through the safe types.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use vllm_cpp_sys::{Arena, Device, DeviceBuf, Event, Graph, OpId, Queue, QueueOptions, sys};

use crate::program::Sample;

const CPU: Device = Device::cpu(0);
const COPY: usize = 64;
const NODES: u64 = 1000;
const PAGES: usize = 300;
const PAGE: usize = 16384;
const FORKS: u32 = 40;
const ARENA_STEP: u32 = 256;
const BLOCK: usize = 4096;

/// One case. A sample is the time of `run` between `before` and what `is_right` finds.
pub trait Work {
    fn before(&mut self) {}
    fn run(&mut self, operations: u32);
    fn is_right(&mut self) -> bool {
        true
    }
}

fn once(work: &mut dyn Work, operations: u32) -> Sample {
    work.before();
    let begin = Instant::now();
    work.run(operations);
    let ns = begin.elapsed().as_nanos() as f64 / f64::from(operations);
    Sample { ns, right: work.is_right() }
}

/// The first turn is for caches and branch predictors, as in `loops.c`.
pub fn sample(work: &mut dyn Work, operations: u32) -> Sample {
    let warm = operations == 1 || once(work, operations).right;
    let sample = once(work, operations);
    Sample { right: sample.right && warm, ..sample }
}

/// What cases share, as those of `loops.c` do: how warm caches and workers are is part of what is measured.
pub struct Shared {
    now: Rc<Queue>,
    main: Rc<Queue>,
    side: Rc<Queue>,
    pages: Rc<RefCell<PageBufs>>,
}

impl Shared {
    /// The workers of the queues run on the processors of a mask.
    pub fn new(workers: u64) -> Shared {
        let options = QueueOptions::default().asynchronous(true).cpu_mask(workers);
        let asynchronous = || Rc::new(Queue::with_options(CPU, &options).expect("a queue"));
        let now = Rc::new(Queue::new(CPU).expect("a queue"));
        Shared { now, main: asynchronous(), side: asynchronous(), pages: Rc::new(RefCell::new(PageBufs::new())) }
    }
}

/// The work of a name of `loops.c`; `None` where it has no Rust form.
pub fn work(name: &str, shared: &Shared) -> Option<Box<dyn Work>> {
    let (now, main) = (|| Rc::clone(&shared.now), || Rc::clone(&shared.main));
    Some(match name {
        "timer" => Box::new(Nothing),
        "empty" => Box::new(Empty),
        "memcpy" => Box::new(Memcpy { source: [9; COPY], target: [0; COPY] }),
        "lookup" => Box::new(LookUp::new("bench.plain", &[None])),
        "lookup_asked" => Box::new(LookUp::new("bench.asked", &[Some(wants_all)])),
        "lookup_refused" => Box::new(LookUp::new("bench.refused", &[Some(wants_none), None])),
        "arena" => Box::new(Bump(Arena::new(CPU, ARENA_STEP as usize * COPY).expect("an arena"))),
        "alloc" => Box::new(Alloc),
        "pool" => Box::new(Pool(now())),
        "copy" | "eager_copies" => Box::new(Copies::new(now(), Pace::AtOnce)),
        "replay_copies" => Box::new(Copies::new(now(), Pace::AtOnce).captured()),
        "submit" | "submit_one" => Box::new(Copies::new(main(), Pace::Awake)),
        "submit_asleep" => Box::new(Copies::new(main(), Pace::Asleep)),
        "round_trip" => Box::new(Copies { waits: true, ..Copies::new(main(), Pace::Awake) }),
        "round_trip_asleep" => Box::new(Copies { waits: true, ..Copies::new(main(), Pace::Asleep) }),
        "host_func" => Box::new(Calls::new(now())),
        "replay_calls" => Box::new(Calls::new(now()).captured()),
        "eager" => Box::new(Calls::new(main())),
        "replay" => Box::new(Calls::new(main()).captured()),
        "record" => Box::new(Marks::new(shared, |it| it.event.record(&it.main.queue))),
        "query" => Box::new(Marks::new(shared, |it| it.event.query().map(|_| ()))),
        "wait" => Box::new(Marks::new(shared, |it| it.event.synchronize())),
        "after_event" => Box::new(Marks::new(shared, |it| it.side.after_event(&it.event))),
        "fork_join" => Box::new(Forks::new(shared)),
        "replay_fork_join" => Box::new(Forks::new(shared).captured()),
        "pages_calls" => Box::new(Pages::new(shared)),
        "pages_calls_done" => Box::new(Pages { waits: true, ..Pages::new(shared) }),
        "pages_batch" => Box::new(Pages { batch: true, ..Pages::new(shared) }),
        "pages_batch_done" => Box::new(Pages { batch: true, waits: true, ..Pages::new(shared) }),
        _ => return None,
    })
}

struct Nothing;

impl Work for Nothing {
    fn run(&mut self, _: u32) {}
}

struct Empty;

#[inline(never)]
extern "C" fn empty(argument: *const c_void) -> c_int {
    black_box(argument);
    0
}

impl Work for Empty {
    fn run(&mut self, operations: u32) {
        for _ in 0..operations {
            black_box(empty(ptr::null()));
        }
    }
}

struct Memcpy {
    source: [u8; COPY],
    target: [u8; COPY],
}

impl Work for Memcpy {
    fn run(&mut self, operations: u32) {
        let bytes = black_box(COPY);
        for _ in 0..operations {
            self.target[..bytes].copy_from_slice(&self.source[..bytes]);
            black_box(&mut self.target);
        }
    }

    fn is_right(&mut self) -> bool {
        self.target == self.source
    }
}

type Supports = unsafe extern "C" fn(*mut c_void, *mut sys::vt_op_question) -> c_int;

unsafe extern "C" fn some_function() {}

unsafe extern "C" fn wants_all(_: *mut c_void, _: *mut sys::vt_op_question) -> c_int {
    1
}

unsafe extern "C" fn wants_none(_: *mut c_void, _: *mut sys::vt_op_question) -> c_int {
    0
}

/// Through the bindings: providers have C function types.
struct LookUp {
    op: sys::vt_op_id,
    found: *const sys::vt_op_provider,
    expected: *const sys::vt_op_provider,
}

impl LookUp {
    fn new(name: &str, supports: &[Option<Supports>]) -> LookUp {
        let op = OpId::intern(name).expect("a name").as_raw();
        for (i, supports) in supports.iter().enumerate() {
            let provider = sys::vt_op_provider {
                struct_size: size_of::<sys::vt_op_provider>(),
                name: [c"first".as_ptr(), c"second".as_ptr()][i],
                priority: -(i as i32),
                fn_: Some(some_function),
                supports: *supports,
                user: ptr::null_mut(),
            };
            // SAFETY: the provider and its name are copied; `user` isn't used.
            assert_eq!(unsafe { sys::vt_op_provider_register(op, sys::VT_DEVICE_CPU, &provider) }, sys::VT_OK);
        }
        let mut work = LookUp { op, found: ptr::null(), expected: ptr::null() };
        work.run(1);
        work.expected = work.found;
        work
    }
}

impl Work for LookUp {
    fn run(&mut self, operations: u32) {
        for _ in 0..operations {
            // SAFETY: a valid out-parameter.
            black_box(unsafe { sys::vt_op_get(self.op, sys::VT_DEVICE_CPU, ptr::null(), &mut self.found) });
        }
    }

    fn is_right(&mut self) -> bool {
        !self.found.is_null() && self.found == self.expected
    }
}

struct Bump(Arena);

impl Work for Bump {
    fn run(&mut self, operations: u32) {
        for _ in 0..operations / ARENA_STEP {
            self.0.reset().expect("a reset");
            for _ in 0..ARENA_STEP {
                black_box(self.0.alloc::<u8>(COPY).expect("room"));
            }
        }
    }

    fn is_right(&mut self) -> bool {
        self.0.stats().is_ok_and(|stats| stats.used == ARENA_STEP as usize * COPY)
    }
}

struct Alloc;

impl Work for Alloc {
    fn run(&mut self, operations: u32) {
        for _ in 0..operations {
            // SAFETY: nobody reads the elements.
            black_box(unsafe { DeviceBuf::<u8>::uninit(CPU, BLOCK) }.expect("memory"));
        }
    }
}

/// Through the bindings: the safe form fills the block with zeros as well.
struct Pool(Rc<Queue>);

impl Work for Pool {
    fn run(&mut self, operations: u32) {
        for _ in 0..operations {
            let mut block = ptr::null_mut();
            // SAFETY: a live queue and a valid out-parameter; the block is given back once, and nobody uses it.
            let statuses = unsafe {
                (sys::vt_alloc_async(self.0.as_raw(), BLOCK, &mut block), sys::vt_free_async(self.0.as_raw(), black_box(block)))
            };
            assert_eq!(statuses, (sys::VT_OK, sys::VT_OK));
        }
    }
}

/// What the worker of a queue did before a sample.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// There is none.
    AtOnce,
    /// It has just run something: it looks for more.
    Awake,
    /// It has had nothing to do for long enough to have gone to sleep.
    Asleep,
}

struct Copies {
    queue: Rc<Queue>,
    source: DeviceBuf<u8>,
    target: DeviceBuf<u8>,
    graph: Option<Graph>,
    pace: Pace,
    waits: bool,
}

impl Copies {
    fn new(queue: Rc<Queue>, pace: Pace) -> Copies {
        let source = DeviceBuf::from_slice(CPU, &[9; COPY]).expect("memory");
        let target = DeviceBuf::zeroed(CPU, COPY).expect("memory");
        Copies { queue, source, target, graph: None, pace, waits: false }
    }

    fn copy(&mut self, times: u64) {
        for _ in 0..times {
            self.queue.copy(&mut self.target, &self.source).expect("a copy");
        }
    }

    fn captured(mut self) -> Copies {
        let (source, target) = (&self.source, &mut self.target);
        let graph = self.queue.capture(|queue| (0..NODES).try_for_each(|_| queue.copy(&mut *target, source)));
        self.graph = Some(graph.expect("a graph"));
        self
    }
}

impl Work for Copies {
    fn before(&mut self) {
        match self.pace {
            Pace::AtOnce => {}
            Pace::Awake => {
                self.copy(4);
                self.queue.synchronize().expect("no failure");
            }
            Pace::Asleep => thread::sleep(Duration::from_millis(2)),
        }
        // Through the address: a view would note itself in the buffer.
        // SAFETY: nothing is queued, and the range is the whole buffer.
        unsafe { self.target.as_mut_ptr().write_bytes(0, COPY) };
    }

    fn run(&mut self, operations: u32) {
        match &self.graph {
            Some(graph) => graph.launch(&self.queue).expect("a launch"),
            None if self.waits => {
                for _ in 0..operations {
                    self.copy(1);
                    self.queue.synchronize().expect("no failure");
                }
            }
            None => self.copy(operations.into()),
        }
    }

    fn is_right(&mut self) -> bool {
        self.queue.synchronize().is_ok() && self.target.to_vec().is_ok_and(|bytes| bytes == [9; COPY])
    }
}

static CALLS: AtomicU64 = AtomicU64::new(0);

/// As cheap as the increment in C: one thread at a time calls it.
fn count() -> vllm_cpp_sys::Result<()> {
    CALLS.store(CALLS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    Ok(())
}

struct Calls {
    queue: Rc<Queue>,
    graph: Option<Graph>,
}

impl Calls {
    fn new(queue: Rc<Queue>) -> Calls {
        Calls { queue, graph: None }
    }

    fn captured(mut self) -> Calls {
        let graph = self.queue.capture(|queue| (0..NODES).try_for_each(|_| queue.host_func(count)));
        self.graph = Some(graph.expect("a graph"));
        self
    }
}

impl Work for Calls {
    fn before(&mut self) {
        (0..4).for_each(|_| self.queue.host_func(count).expect("a call"));
        self.queue.synchronize().expect("no failure");
        CALLS.store(0, Ordering::Relaxed);
    }

    fn run(&mut self, operations: u32) {
        match &self.graph {
            Some(graph) => graph.launch(&self.queue).expect("a launch"),
            None => (0..operations).for_each(|_| self.queue.host_func(count).expect("a call")),
        }
        if !self.queue.is_synchronous() {
            self.queue.synchronize().expect("no failure");
        }
    }

    fn is_right(&mut self) -> bool {
        CALLS.load(Ordering::Relaxed) == NODES
    }
}

struct Marks {
    main: Copies,
    side: Rc<Queue>,
    event: Event,
    call: fn(&Marks) -> vllm_cpp_sys::Result<()>,
}

impl Marks {
    fn new(shared: &Shared, call: fn(&Marks) -> vllm_cpp_sys::Result<()>) -> Marks {
        let main = Copies::new(Rc::clone(&shared.main), Pace::Awake);
        Marks { main, side: Rc::clone(&shared.side), event: Event::new(CPU).expect("an event"), call }
    }
}

impl Work for Marks {
    fn before(&mut self) {
        self.main.before();
        self.event.record(&self.main.queue).expect("a record");
        self.event.synchronize().expect("no failure");
    }

    fn run(&mut self, operations: u32) {
        for _ in 0..operations {
            (self.call)(self).expect("an answer");
        }
    }

    fn is_right(&mut self) -> bool {
        self.event.query().is_ok_and(|complete| complete)
    }
}

struct Forks {
    queue: Rc<Queue>,
    parts: Parts,
    graph: Option<Graph>,
}

struct Parts {
    side: Rc<Queue>,
    fork: Event,
    join: Event,
    source: DeviceBuf<u8>,
    target: DeviceBuf<u8>,
}

impl Parts {
    fn fork_and_join(&mut self, main: &Queue, times: u32) -> vllm_cpp_sys::Result<()> {
        for _ in 0..times {
            self.fork.record(main)?;
            self.side.after_event(&self.fork)?;
            self.side.copy(&mut self.target, &self.source)?;
            self.join.record(&self.side)?;
            main.after_event(&self.join)?;
        }
        Ok(())
    }
}

impl Forks {
    fn new(shared: &Shared) -> Forks {
        let Copies { queue, source, target, .. } = Copies::new(Rc::clone(&shared.main), Pace::Awake);
        let event = || Event::new(CPU).expect("an event");
        let parts = Parts { side: Rc::clone(&shared.side), fork: event(), join: event(), source, target };
        Forks { queue, parts, graph: None }
    }

    fn captured(mut self) -> Forks {
        let parts = &mut self.parts;
        let graph = self.queue.capture(|queue| parts.fork_and_join(queue, FORKS));
        self.graph = Some(graph.expect("a graph"));
        self
    }
}

impl Work for Forks {
    fn before(&mut self) {
        self.queue.fill(&mut self.parts.target, 0).expect("a fill");
        self.queue.synchronize().expect("no failure");
    }

    fn run(&mut self, operations: u32) {
        match &self.graph {
            Some(graph) => graph.launch(&self.queue).expect("a launch"),
            None => self.parts.fork_and_join(&self.queue, operations).expect("forks and joins"),
        }
        self.queue.synchronize().expect("no failure");
    }

    fn is_right(&mut self) -> bool {
        self.parts.target.to_vec().is_ok_and(|bytes| bytes == [9; COPY])
    }
}

struct PageBufs {
    pages: DeviceBuf<u8>,
    store: DeviceBuf<u8>,
}

impl PageBufs {
    fn new() -> PageBufs {
        let pages = DeviceBuf::from_fn(CPU, PAGES * PAGE, |_| 7).expect("memory");
        PageBufs { pages, store: DeviceBuf::zeroed(CPU, PAGES * PAGE).expect("memory") }
    }

    fn copy_each(&mut self, queue: &Queue) {
        for page in 0..PAGES {
            let range = page * PAGE..(page + 1) * PAGE;
            queue.copy(self.store.slice_mut(range.clone()), self.pages.slice(range)).expect("a copy");
        }
    }

    /// Through the bindings, as C makes it: `Queue::copy_batch` looks at the ranges as well.
    fn copy_batch(&mut self, queue: &Queue) {
        // SAFETY: both buffers outlive the batch, which `is_right` waits for, and nobody else uses them.
        let (from, to) = unsafe { (self.pages.as_mut_ptr(), self.store.as_mut_ptr()) };
        let copy = |page: usize| sys::vt_copy_op {
            dst: to.wrapping_add(page * PAGE).cast(),
            src: from.wrapping_add(page * PAGE).cast_const().cast(),
            bytes: PAGE,
        };
        let ops: [_; PAGES] = std::array::from_fn(copy);
        // SAFETY: as above; the entries are copied.
        assert_eq!(unsafe { sys::vt_copy_batch(queue.as_raw(), ops.as_ptr(), PAGES) }, sys::VT_OK);
    }
}

struct Pages {
    main: Copies,
    bufs: Rc<RefCell<PageBufs>>,
    batch: bool,
    waits: bool,
}

impl Pages {
    fn new(shared: &Shared) -> Pages {
        let main = Copies::new(Rc::clone(&shared.main), Pace::Awake);
        Pages { main, bufs: Rc::clone(&shared.pages), batch: false, waits: false }
    }
}

impl Work for Pages {
    fn before(&mut self) {
        // SAFETY: nothing is queued, and the range is the whole buffer.
        unsafe { self.bufs.borrow_mut().store.as_mut_ptr().write_bytes(0, PAGES * PAGE) };
        self.main.before();
    }

    fn run(&mut self, _: u32) {
        let (queue, mut bufs) = (&*self.main.queue, self.bufs.borrow_mut());
        if self.batch {
            bufs.copy_batch(queue);
        } else {
            bufs.copy_each(queue);
        }
        if self.waits {
            queue.synchronize().expect("no failure");
        }
    }

    fn is_right(&mut self) -> bool {
        let (synchronized, bufs) = (self.main.queue.synchronize().is_ok(), self.bufs.borrow());
        synchronized && bufs.store.read().is_ok_and(|store| bufs.pages.read().is_ok_and(|pages| *store == *pages))
    }
}
