//! Processes that end while everything is still held somewhere. Each case runs this program again and looks at how it ended.

mod support;

use std::cell::RefCell;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use support::{CPU, async_queue, delay};
use vllm_cpp_sys::*;

const RUNS: usize = 20;

/// Who holds the objects when the process ends.
const HOLDERS: [(&str, fn()); 5] = [
    ("a static", || KEPT.lock().unwrap().push(Everything::new())),
    ("a thread-local of main", || LOCAL.set(Some(Everything::new()))),
    ("a thread-local of another thread", in_another_thread),
    ("threads inside calls", threads_inside_calls),
    ("a function of atexit", at_exit),
];

/// How the process ends, and its exit code.
const EXITS: [(&str, fn(), i32); 4] = [
    ("returns", || (), 0),
    ("exits", || std::process::exit(7), 7),
    ("panics", || panic!("as planned"), 101),
    // SAFETY: ends the process.
    ("ends at once", || unsafe { libc::_exit(9) }, 9),
];

static KEPT: Mutex<Vec<Everything>> = Mutex::new(Vec::new());

thread_local! {
    static LOCAL: RefCell<Option<Everything>> = const { RefCell::new(None) };
}

/// One of each kind, in use.
#[allow(dead_code, reason = "kept, not read")]
struct Everything {
    queues: [Queue; 2],
    event: Event,
    awaited: EventFuture,
    buffer: DeviceBuf<u8>,
    pinned: PinnedBuf<u8>,
    graph: Graph,
    group: CommGroup,
    comms: Mutex<Vec<Comm>>,
    arena: Mutex<Arena>,
}

impl Everything {
    fn new() -> Everything {
        let queues = [Queue::new(CPU).unwrap(), async_queue()];
        let (mut buffer, event) = (DeviceBuf::zeroed(CPU, 4096).unwrap(), Event::new(CPU).unwrap());
        let mut pinned = PinnedBuf::zeroed(CPU, 4096).unwrap();
        let graph = queues[1].capture(|q| q.copy(&mut pinned, &buffer)).unwrap();
        let comms = CommGroup::new(1).unwrap().into_comms().unwrap();
        batch(|b| b.barrier(&comms[0], &queues[1])).unwrap();
        delay(&queues[1], 2).unwrap(); // pending when the process ends
        queues[1].fill(&mut buffer, 3).unwrap();
        graph.launch(&queues[1]).unwrap();
        event.record(&queues[1]).unwrap();
        let mut awaited = (&event).into_future();
        let _ = Pin::new(&mut awaited).poll(&mut Context::from_waker(Waker::noop()));
        let arena = Mutex::new(Arena::new(CPU, 4096).unwrap());
        let group = CommGroup::new(2).unwrap();
        Everything { queues, event, awaited, buffer, pinned, graph, group, comms: Mutex::new(comms), arena }
    }
}

fn in_another_thread() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        LOCAL.set(Some(Everything::new()));
        sender.send(()).unwrap();
        thread::sleep(Duration::from_secs(60));
    });
    receiver.recv().unwrap();
}

fn threads_inside_calls() {
    let mut comms = CommGroup::new(2).unwrap().into_comms().unwrap();
    let rank = comms.remove(0);
    let (sender, receiver) = mpsc::channel();
    let ready = sender.clone();
    thread::spawn(move || {
        let (mut comm, queue) = (rank, Queue::new(CPU).unwrap());
        ready.send(()).unwrap();
        comm.barrier(&queue) // the other rank never comes
    });
    thread::spawn(move || {
        let queue = async_queue();
        delay(&queue, 60_000).unwrap();
        sender.send(()).unwrap();
        queue.synchronize()
    });
    (0..2).for_each(|_| receiver.recv().unwrap());
    KEPT.lock().unwrap().push(Everything { comms: Mutex::new(comms), ..Everything::new() });
}

/// The function uses what it finds, and drops it.
fn at_exit() {
    extern "C" fn end() {
        for everything in KEPT.lock().unwrap().drain(..) {
            everything.queues[1].synchronize().unwrap();
            assert_eq!(everything.pinned.to_vec().unwrap()[4095], 3);
        }
    }
    // SAFETY: the function uses statics only.
    assert_eq!(unsafe { libc::atexit(end) }, 0);
    KEPT.lock().unwrap().push(Everything::new());
}

fn main() {
    if let Ok(case) = std::env::var("VT_TEST_EXIT") {
        let (holder, exit) = case.split_once('/').unwrap();
        HOLDERS.iter().find(|row| row.0 == holder).unwrap().1();
        return EXITS.iter().find(|row| row.0 == exit).unwrap().1();
    }
    for (holder, _) in HOLDERS {
        for (exit, _, code) in EXITS {
            for run in 0..RUNS {
                check(holder, exit, code, run);
            }
            println!("ok  {holder} holds everything, main {exit}: {RUNS} runs");
        }
    }
}

fn check(holder: &str, exit: &str, code: i32, run: usize) {
    let output = child(&format!("{holder}/{exit}"));
    let text = String::from_utf8_lossy(&output.stderr);
    // The planned panic says so in its own words; nobody else says anything.
    let quiet = if code == 101 { text.matches("panicked at").count() == 1 && text.contains("as planned") } else { text.is_empty() };
    if output.status.code() != Some(code) || !quiet {
        println!("FAILED  {holder} holds everything, main {exit}, run {run}: {}\n{text}", output.status);
        std::process::exit(1);
    }
}

/// Runs this program for one case, for at most 30 seconds.
fn child(case: &str) -> Output {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.env("VT_TEST_EXIT", case).env("RUST_BACKTRACE", "0").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let (pid, (done, finished)) = (child.id() as i32, mpsc::channel::<()>());
    let watchdog = thread::spawn(move || {
        if finished.recv_timeout(Duration::from_secs(30)) == Err(mpsc::RecvTimeoutError::Timeout) {
            // SAFETY: a child that nobody has waited for yet.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    watchdog.join().unwrap();
    output
}
