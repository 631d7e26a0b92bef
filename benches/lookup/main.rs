//! What a look-up of an operation's provider costs, beside an empty call that isn't inlined.
//!
//! `cargo bench --bench lookup -- [--quick]`

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::ptr;
use std::thread;
use std::time::Instant;

use vllm_cpp_sys::{OpId, sys};

const CALLS: u32 = 20_000;

unsafe extern "C" fn some_function() {}

unsafe extern "C" fn wants_all(_: *mut c_void, _: *mut sys::vt_op_question) -> c_int {
    1
}

unsafe extern "C" fn wants_none(_: *mut c_void, _: *mut sys::vt_op_question) -> c_int {
    0
}

type Supports = unsafe extern "C" fn(*mut c_void, *mut sys::vt_op_question) -> c_int;

/// An operation whose providers have these predicates, best first.
fn operation(name: &str, supports: &[Option<Supports>]) -> sys::vt_op_id {
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
    op
}

fn look_up(op: sys::vt_op_id) {
    let mut found = ptr::null();
    // SAFETY: a valid out-parameter.
    let status = unsafe { sys::vt_op_get(black_box(op), sys::VT_DEVICE_CPU, ptr::null(), &mut found) };
    black_box((status, found));
}

#[inline(never)]
extern "C" fn empty(op: sys::vt_op_id) -> sys::vt_status {
    black_box(op)
}

fn call_nothing(op: sys::vt_op_id) {
    black_box(empty(black_box(op)));
}

/// Median and least ns per call over bursts.
fn measure(bursts: usize, op: sys::vt_op_id, call: fn(sys::vt_op_id)) -> (f64, f64) {
    call(op); // the first one on a thread allocates its counters
    let mut times: Vec<f64> = (0..bursts)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..CALLS {
                call(op);
            }
            begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0])
}

fn report(what: &str, (median, least): (f64, f64)) {
    println!("{what:<44} {median:>8.2} {least:>8.2}");
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let bursts = if quick { 50 } else { 1000 };
    let plain = operation("bench.plain", &[None]);
    let asked = operation("bench.asked", &[Some(wants_all)]);
    let declined = operation("bench.declined", &[Some(wants_none), None]);

    println!("{:<44} {:>8} {:>8}", "ns per call", "median", "least");
    report("an empty call", measure(bursts, plain, call_nothing));
    report("look-up, the best provider takes all", measure(bursts, plain, look_up));
    report("look-up, the best provider is asked", measure(bursts, asked, look_up));
    report("look-up, the best provider refuses", measure(bursts, declined, look_up));
    let pair: Vec<_> = (0..2).map(|_| thread::spawn(move || measure(bursts, plain, look_up))).collect();
    for (i, thread) in pair.into_iter().enumerate() {
        report(&format!("look-up, two threads at once: thread {i}"), thread.join().expect("no panic"));
    }
}
