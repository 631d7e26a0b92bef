//! The validation layer from Rust: what it reports, and that it has nothing to say about the examples.

use std::sync::{Arc, Mutex, MutexGuard};

use vllm_cpp_sys::validate::{self, Kind, Report, Severity, Touch};
use vllm_cpp_sys::{Arena, Device, DeviceBuf, Event, PinnedBuf, Queue, Result, sys};

#[path = "../examples/async_output.rs"]
#[allow(dead_code)]
mod async_output;
#[path = "../examples/decode_graphs.rs"]
#[allow(dead_code)]
mod decode_graphs;
#[path = "../examples/kv_offload.rs"]
#[allow(dead_code)]
mod kv_offload;
#[path = "../examples/tensor.rs"]
#[allow(dead_code)]
mod tensor;

/// Validation is a state of the process, so one test at a time has it.
struct Watch {
    reports: Arc<Mutex<Vec<Report>>>,
    _turn: MutexGuard<'static, ()>,
}

impl Watch {
    fn begin() -> Watch {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&reports);
        validate::set(move |report| sink.lock().unwrap().push(report.clone()));
        validate::enable().unwrap();
        Watch { reports, _turn: turn }
    }

    fn take(&self) -> Vec<Report> {
        std::mem::take(&mut self.reports.lock().unwrap())
    }

    fn expect_quiet(&self) {
        let reports = self.take();
        assert!(reports.is_empty(), "{reports:#?}");
    }

    fn expect_one(&self, kind: Kind) -> Report {
        let mut reports = self.take();
        assert!(reports.len() == 1 && reports[0].kind == kind, "expected {kind:?}: {reports:#?}");
        reports.remove(0)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        validate::disable().unwrap();
        validate::unset();
    }
}

fn cpu() -> Device {
    Device::cpu(0)
}

#[test]
fn a_race_is_a_report_with_both_calls() -> Result<()> {
    let watch = Watch::begin();
    assert!(validate::is_enabled());
    let (a, b) = (Queue::new_async(cpu())?, Queue::new_async(cpu())?);
    let x = DeviceBuf::<u8>::zeroed(cpu(), 100)?;
    let before = validate::count(Kind::Race);
    validate::touch(&a, x.slice(..60), Touch::Write)?;
    validate::touch(&b, x.slice(60..), Touch::Write)?;
    watch.expect_quiet();
    validate::touch(&b, x.slice(50..60), Touch::Read)?;
    let report = watch.expect_one(Kind::Race);
    assert_eq!((report.severity, report.bytes), (Severity::Error, 10));
    assert_eq!(report.now.as_ref().unwrap().queue_id, b.id());
    assert_eq!(report.before.as_ref().unwrap().queue_id, a.id());
    assert_eq!(report.before.as_ref().unwrap().function, "vt_validate_touch");
    assert!(report.to_string().starts_with("race: vt_validate_touch"), "{report}");
    assert_eq!(validate::count(Kind::Race), before + 1);
    let event = Event::new(cpu())?;
    validate::touch(&a, &x, Touch::Write)?;
    watch.expect_one(Kind::Race); // with the reads and writes of b
    event.record(&a)?;
    b.after_event(&event)?;
    validate::touch(&b, &x, Touch::Write)?;
    watch.expect_quiet();
    a.synchronize()?;
    b.synchronize()
}

#[test]
fn a_view_tells_that_the_host_uses_memory() -> Result<()> {
    let watch = Watch::begin();
    let queue = Queue::new_async(cpu())?;
    let mut x = DeviceBuf::<u8>::zeroed(cpu(), 100)?;
    // A kernel of the program's own, which the buffer knows nothing of.
    validate::touch(&queue, &x, Touch::Read)?;
    drop(x.read()?);
    watch.expect_quiet();
    drop(x.write()?);
    let report = watch.expect_one(Kind::Pending);
    assert_eq!(report.before.unwrap().queue_id, queue.id());
    queue.synchronize()?;
    drop(x.write()?);
    queue.fill(&mut x, 7)?; // this the view waits for
    assert_eq!(x.read()?[0], 7);
    watch.expect_quiet();
    Ok(())
}

#[test]
fn a_host_task_tells_what_it_uses() -> Result<()> {
    let watch = Watch::begin();
    let (a, b) = (Queue::new_async(cpu())?, Queue::new_async(cpu())?);
    let mut x = PinnedBuf::<u8>::zeroed(cpu(), 100)?;
    a.host_task((&mut x,), |(x,)| {
        x.fill(1);
        Ok(())
    })?;
    watch.expect_quiet();
    let mut out = [0u8; 100];
    // SAFETY: nobody orders the copy behind the task, which is what the test is about; both end before the memory goes.
    let status = unsafe { sys::vt_copy(b.as_raw(), out.as_mut_ptr().cast(), x.as_mut_ptr().cast(), 100) };
    assert_eq!(status, sys::VT_OK);
    watch.expect_one(Kind::Race);
    a.synchronize()?;
    b.synchronize()
}

#[test]
fn safe_programs_are_in_order() -> Result<()> {
    let watch = Watch::begin();
    let (a, b) = (Queue::new_async(cpu())?, Queue::new_async(cpu())?);
    let mut x = DeviceBuf::<f32>::zeroed(cpu(), 1000)?;
    for step in 0..100 {
        let mut y = DeviceBuf::<f32>::zeroed(cpu(), 1000)?;
        a.host_task((&mut x,), |(x,)| {
            x.iter_mut().for_each(|x| *x += 1.0);
            Ok(())
        })?;
        b.copy(&mut y, &x)?; // waits for the task
        if step % 10 == 0 {
            assert_eq!(y.read()?[0], step as f32 + 1.0);
        }
    } // dropped while work is pending
    let arena = Arena::new(cpu(), 4096)?;
    drop(arena);
    a.synchronize()?;
    b.synchronize()?;
    watch.expect_quiet();
    Ok(())
}

#[test]
fn examples_are_in_order() {
    let watch = Watch::begin();
    async_output::run(&mut |_| ()).unwrap();
    watch.expect_quiet();
    decode_graphs::run().unwrap();
    // A slot is waited for before it is used again, also the first time, when that is for nothing.
    assert!(watch.take().iter().all(|report| report.kind == Kind::UnrecordedEvent));
    kv_offload::run().unwrap();
    watch.expect_quiet();
    tensor::run().unwrap();
    watch.expect_quiet();
}
