//! Tensors to and from other libraries. The other library is written here, with raw pointers.

mod support;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use support::{CPU, Gate, async_queue, delay, fail_before};
use vllm_cpp_sys::dlpack::*;
use vllm_cpp_sys::*;

/// A producer: a tensor over a vector, whose deleter counts.
struct Foreign {
    tensor: DLManagedTensorVersioned,
    data: Vec<f32>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    deleted: Arc<AtomicUsize>,
}

unsafe extern "C" fn delete_foreign(raw: *mut DLManagedTensorVersioned) {
    // SAFETY: the box that `foreign` made.
    let foreign = unsafe { Box::from_raw((*raw).manager_ctx.cast::<Foreign>()) };
    foreign.deleted.fetch_add(1, Ordering::SeqCst);
}

/// A 2 x 3 tensor of 0 to 5, changed by `change` before anybody sees it.
fn foreign(deleted: &Arc<AtomicUsize>, change: impl FnOnce(&mut DLManagedTensorVersioned)) -> *mut DLManagedTensorVersioned {
    let dl_tensor = DLTensor {
        data: null_mut(),
        device: DLDevice { device_type: 1, device_id: 0 },
        ndim: 2,
        dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
        shape: null_mut(),
        strides: null_mut(),
        byte_offset: 0,
    };
    let tensor =
        DLManagedTensorVersioned { version: VERSION, manager_ctx: null_mut(), deleter: Some(delete_foreign), flags: 0, dl_tensor };
    let data = (0..6).map(|i| i as f32).collect();
    let foreign = Box::new(Foreign { tensor, data, shape: vec![2, 3], strides: vec![3, 1], deleted: deleted.clone() });
    let foreign = Box::into_raw(foreign);
    // SAFETY: the box just made.
    unsafe {
        (*foreign).tensor.manager_ctx = foreign.cast();
        (*foreign).tensor.dl_tensor.data = (*foreign).data.as_mut_ptr().cast();
        (*foreign).tensor.dl_tensor.shape = (*foreign).shape.as_mut_ptr();
        (*foreign).tensor.dl_tensor.strides = (*foreign).strides.as_mut_ptr();
        change(&mut (*foreign).tensor);
        &raw mut (*foreign).tensor
    }
}

/// What becomes of a changed tensor, and how often its deleter was called by the end.
fn import(change: impl FnOnce(&mut DLManagedTensorVersioned)) -> (Result<Vec<f32>>, usize) {
    let deleted = Arc::default();
    let raw = foreign(&deleted, change);
    // SAFETY: a valid tensor, or one that is refused.
    let outcome = unsafe { ManagedTensor::from_raw(raw) }
        .and_then(|tensor| DeviceBuf::<f32>::from_dlpack(tensor, None))
        .and_then(|buffer| buffer.to_vec());
    (outcome, deleted.load(Ordering::SeqCst))
}

fn refused(status: Status, words: &str, change: impl FnOnce(&mut DLManagedTensorVersioned)) {
    let (outcome, deletions) = import(change);
    let error = outcome.unwrap_err();
    assert!(error.status == status && error.message.contains(words), "{error}");
    assert_eq!(deletions, 1, "{error}");
}

#[test]
fn a_foreign_tensor_becomes_a_buffer_and_goes_back_once() {
    assert_eq!(import(|_| ()), (Ok(vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), 1));
    let no_strides = |tensor: &mut DLManagedTensorVersioned| tensor.dl_tensor.strides = null_mut();
    assert_eq!(import(no_strides), (Ok(vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), 1));
    let part = |tensor: &mut DLManagedTensorVersioned| {
        // SAFETY: the shape has two numbers.
        unsafe { *tensor.dl_tensor.shape = 1 };
        tensor.dl_tensor.byte_offset = 12;
    };
    assert_eq!(import(part), (Ok(vec![3.0, 4.0, 5.0]), 1));
    let scalar = |tensor: &mut DLManagedTensorVersioned| tensor.dl_tensor.ndim = 0;
    assert_eq!(import(scalar), (Ok(vec![0.0]), 1));
    let empty = |tensor: &mut DLManagedTensorVersioned| {
        // SAFETY: the shape has two numbers.
        unsafe { *tensor.dl_tensor.shape = 0 };
        tensor.dl_tensor.data = null_mut();
    };
    assert_eq!(import(empty), (Ok(vec![]), 1));
}

#[test]
fn the_stride_of_a_dimension_with_one_place_does_not_matter() {
    let column = |tensor: &mut DLManagedTensorVersioned| {
        // SAFETY: shape and strides have two numbers.
        unsafe {
            tensor.dl_tensor.shape.copy_from(&[1i64, 6] as *const i64, 2);
            tensor.dl_tensor.strides.copy_from(&[77i64, 1] as *const i64, 2);
        }
    };
    assert_eq!(import(column).0.unwrap().len(), 6);
}

#[test]
fn what_cannot_be_taken_is_refused_and_given_back() {
    // SAFETY: shape and strides have two numbers.
    let set = |at: *mut i64, values: [i64; 2]| unsafe { at.copy_from(values.as_ptr(), 2) };
    refused(Status::Unsupported, "strides [1, 2]", |t| set(t.dl_tensor.strides, [1, 2]));
    refused(Status::Unsupported, "strides [-3, 1]", |t| set(t.dl_tensor.strides, [-3, 1]));
    refused(Status::InvalidArgument, "the shape [-2, 3] is none", |t| set(t.dl_tensor.shape, [-2, 3]));
    refused(Status::InvalidArgument, "is none", |t| set(t.dl_tensor.shape, [i64::MAX, i64::MAX]));
    refused(Status::InvalidArgument, "elements", |t| {
        set(t.dl_tensor.shape, [i64::MAX / 2, 2]);
        t.dl_tensor.strides = null_mut();
    });
    refused(Status::InvalidArgument, "-1 dimensions", |t| t.dl_tensor.ndim = -1);
    refused(Status::InvalidArgument, "its shape at 0x0", |t| t.dl_tensor.shape = null_mut());
    refused(Status::InvalidArgument, "elements of f32 at", |t| t.dl_tensor.data = null_mut());
    refused(Status::InvalidArgument, "+ 2 bytes", |t| t.dl_tensor.byte_offset = 2);
    refused(Status::InvalidArgument, "the tensor holds i32, not f32", |t| t.dl_tensor.dtype.code = 0);
    refused(Status::Unsupported, "type code 5 with 64 bits", |t| t.dl_tensor.dtype = DLDataType { code: 5, bits: 64, lanes: 1 });
    refused(Status::Unsupported, "4 lanes", |t| t.dl_tensor.dtype.lanes = 4);
    refused(Status::Unsupported, "DLPack's type 10", |t| t.dl_tensor.device.device_type = 10);
    refused(Status::NotFound, "cuda:3", |t| t.dl_tensor.device = DLDevice { device_type: 2, device_id: 3 });
    refused(Status::InvalidArgument, "device id 1", |t| t.dl_tensor.device.device_id = 1);
    refused(Status::Unsupported, "read-only", |t| t.flags = READ_ONLY);
    refused(Status::Unsupported, "DLPack 2.0, not 1.x", |t| t.version = DLPackVersion { major: 2, minor: 0 });
}

#[test]
fn null_is_refused_and_a_missing_deleter_is_fine() {
    // SAFETY: NULL is refused.
    let errors = unsafe { [ManagedTensor::from_raw(null_mut()).err(), ManagedTensor::from_raw_legacy(null_mut()).err()] };
    errors.into_iter().for_each(|error| assert_eq!(error.unwrap().status, Status::InvalidArgument));
    let deleted = Arc::default();
    let raw = foreign(&deleted, |tensor| tensor.deleter = None);
    // SAFETY: a valid tensor, which is given back by hand at the end.
    let tensor = unsafe { ManagedTensor::from_raw(raw) }.unwrap();
    assert_eq!(DeviceBuf::<f32>::from_dlpack(tensor, None).unwrap().to_vec().unwrap()[5], 5.0);
    // SAFETY: nobody uses it any more.
    unsafe { delete_foreign(raw) };
}

#[test]
fn the_deleter_waits_for_the_work() {
    let (deleted, gate, queue) = (Arc::default(), Gate::default(), async_queue());
    // SAFETY: a valid tensor.
    let tensor = unsafe { ManagedTensor::from_raw(foreign(&deleted, |_| ())) }.unwrap();
    let mut buffer = DeviceBuf::<f32>::from_dlpack(tensor, None).unwrap();
    let mut result = PinnedBuf::<f32>::zeroed(CPU, 6).unwrap();
    gate.block(&queue).unwrap();
    queue.fill(buffer.slice_mut(..3), 0).unwrap();
    queue.copy(&mut result, &buffer).unwrap();
    drop(buffer);
    reclaim();
    assert_eq!(deleted.load(Ordering::SeqCst), 0);
    gate.open();
    assert_eq!(result.to_vec().unwrap(), [0.0, 0.0, 0.0, 3.0, 4.0, 5.0]);
    while deleted.load(Ordering::SeqCst) == 0 {
        reclaim();
    }
    assert_eq!(deleted.load(Ordering::SeqCst), 1);
}

#[test]
fn a_graph_keeps_a_foreign_tensor() {
    let (deleted, queue) = (Arc::<AtomicUsize>::default(), async_queue());
    let mut result = DeviceBuf::<f32>::zeroed(CPU, 6).unwrap();
    let graph = {
        // SAFETY: a valid tensor.
        let tensor = unsafe { ManagedTensor::from_raw(foreign(&deleted, |_| ())) }.unwrap();
        let buffer = DeviceBuf::<f32>::from_dlpack(tensor, None).unwrap();
        queue.capture(|q| q.copy(&mut result, &buffer)).unwrap()
    };
    graph.launch(&queue).unwrap();
    assert_eq!(result.to_vec().unwrap()[4], 4.0);
    assert_eq!(deleted.load(Ordering::SeqCst), 0);
    drop(graph);
    drop(result); // its note of the graph goes with it
    while deleted.load(Ordering::SeqCst) == 0 {
        reclaim();
    }
}

#[test]
fn a_panic_gives_a_tensor_back_once() {
    let deleted = Arc::<AtomicUsize>::default();
    let panicked = std::panic::catch_unwind(|| {
        // SAFETY: a valid tensor.
        let tensor = unsafe { ManagedTensor::from_raw(foreign(&deleted, |_| ())) }.unwrap();
        let _buffer = DeviceBuf::<f32>::from_dlpack(tensor, None).unwrap();
        panic!("with a tensor");
    });
    assert!(panicked.is_err());
    assert_eq!(deleted.load(Ordering::SeqCst), 1);
}

#[test]
fn the_queue_that_a_producer_was_told_of_comes_first() {
    let (deleted, gate, queue) = (Arc::default(), Gate::default(), async_queue());
    let raw = foreign(&deleted, |_| ());
    gate.block(&queue).unwrap();
    // The producer still writes, in order of that queue.
    // SAFETY: the tensor is valid, and holds six floats.
    let data = unsafe { (*raw).dl_tensor.data }.addr();
    queue
        .host_func(move || {
            // SAFETY: six floats that whoever reads them waits for.
            unsafe { std::slice::from_raw_parts_mut(data as *mut f32, 6) }.fill(9.0);
            Ok(())
        })
        .unwrap();
    // SAFETY: a valid tensor, written in order of the queue.
    let tensor = unsafe { ManagedTensor::from_raw(raw) }.unwrap();
    let buffer = DeviceBuf::<f32>::from_dlpack(tensor, Some(&queue)).unwrap();
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| buffer.to_vec());
        std::thread::sleep(std::time::Duration::from_millis(5));
        gate.open();
        assert_eq!(reading.join().unwrap().unwrap(), [9.0; 6]);
    });
}

#[test]
fn a_tensor_of_this_crate_knows_the_queue_that_its_producer_was_told_of() {
    let (work, consumer) = (async_queue(), async_queue());
    for named in [None, Some(&consumer), Some(&async_queue())] {
        let gate = Gate::default();
        gate.block(&work).unwrap();
        let mut buffer = DeviceBuf::<f32>::zeroed(CPU, 64).unwrap();
        work.host_task((&mut buffer,), |(x,)| {
            x.fill(7.0);
            Ok(())
        })
        .unwrap();
        let tensor = buffer.into_dlpack(&[64], Some(&consumer)).unwrap();
        let buffer = DeviceBuf::<f32>::from_dlpack(tensor, named).unwrap();
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| buffer.to_vec());
            std::thread::sleep(std::time::Duration::from_millis(5));
            gate.open();
            assert_eq!(reading.join().unwrap().unwrap(), [7.0; 64]);
        });
    }
}

#[test]
fn a_tensor_given_back_by_a_callback_frees_its_buffer() {
    let (consumer, other) = (async_queue(), async_queue());
    let mut buffer = DeviceBuf::<f32>::zeroed(CPU, 64).unwrap();
    let tensor = buffer.to_dlpack(&[64], Some(&consumer)).unwrap();
    let gate = Gate::default();
    gate.block(&consumer).unwrap();
    other
        .host_func_once(move || {
            drop(tensor);
            Ok(())
        })
        .unwrap();
    other.synchronize().unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| buffer.copy_from_slice(&[1.0; 64]));
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(!writing.is_finished(), "the consumer's queue isn't through");
        gate.open();
        writing.join().unwrap().unwrap();
    });
    buffer.close().unwrap();
}

/// What a consumer sees.
fn floats(raw: *const DLManagedTensorVersioned) -> Vec<f32> {
    // SAFETY: a valid tensor of floats whose work has completed.
    unsafe {
        let DLTensor { data, ndim, shape, .. } = (*raw).dl_tensor;
        let len: i64 = std::slice::from_raw_parts(shape, ndim as usize).iter().product();
        std::slice::from_raw_parts(data.cast(), len as usize).to_vec()
    }
}

/// A consumer that is through.
fn delete(raw: *mut DLManagedTensorVersioned) {
    // SAFETY: a valid tensor that nobody uses any more.
    unsafe { (*raw).deleter.unwrap()(raw) }
}

#[test]
fn an_exported_buffer_says_what_it_is() {
    let buffer = DeviceBuf::from_fn(CPU, 24, |i| i as f32).unwrap();
    let raw = buffer.into_dlpack(&[2, 3, 4], None).unwrap().into_raw();
    // SAFETY: a valid tensor.
    let tensor = unsafe { &*raw };
    assert_eq!((tensor.version, tensor.flags), (VERSION, 0));
    let DLTensor { device, ndim, dtype, shape, strides, byte_offset, .. } = tensor.dl_tensor;
    assert_eq!((device, ndim, byte_offset), (DLDevice { device_type: 1, device_id: 0 }, 3, 0));
    assert_eq!(dtype, DLDataType { code: 2, bits: 32, lanes: 1 });
    // SAFETY: three numbers each.
    let (shape, strides) = unsafe { (std::slice::from_raw_parts(shape, 3), std::slice::from_raw_parts(strides, 3)) };
    assert_eq!((shape, strides), (&[2, 3, 4][..], &[12, 4, 1][..]));
    assert_eq!(floats(raw)[23], 23.0);
    delete(raw);
}

/// The numbers of a type on the way out, and the type on the way back.
fn round_trip<T: Scalar + PartialEq + std::fmt::Debug>(values: [T; 3], code: u8, bits: u8) {
    let buffer = DeviceBuf::from_slice(CPU, &values).unwrap();
    let tensor = buffer.into_dlpack(&[3, 1], None).unwrap();
    assert_eq!((tensor.dtype().unwrap(), tensor.device().unwrap()), (T::DTYPE, CPU));
    let raw = tensor.into_raw();
    // SAFETY: a valid tensor.
    assert_eq!(unsafe { (*raw).dl_tensor.dtype }, DLDataType { code, bits, lanes: 1 });
    // SAFETY: a valid tensor.
    let back = unsafe { ManagedTensor::from_raw(raw) }.unwrap();
    assert_eq!(DeviceBuf::<T>::from_dlpack(back, None).unwrap().to_vec().unwrap(), values);
}

#[test]
fn every_scalar_goes_there_and_back() {
    round_trip([1.5f32, -2.0, 0.0], 2, 32);
    round_trip([1.5f64, -2.0, 0.0], 2, 64);
    round_trip([F16(1), F16(2), F16(3)], 2, 16);
    round_trip([Bf16(1), Bf16(2), Bf16(3)], 4, 16);
    round_trip([1i8, -2, 3], 0, 8);
    round_trip([1u8, 2, 3], 1, 8);
    round_trip([1i32, -2, 3], 0, 32);
    round_trip([1i64, -2, 3], 0, 64);
}

#[test]
fn the_form_from_before_version_1_goes_there_and_back() {
    let deleted = Arc::default();
    // SAFETY: a valid tensor.
    let tensor = unsafe { ManagedTensor::from_raw(foreign(&deleted, |_| ())) }.unwrap();
    let legacy = tensor.into_raw_legacy().unwrap();
    // SAFETY: a valid tensor.
    let back = unsafe { ManagedTensor::from_raw_legacy(legacy) }.unwrap();
    assert_eq!((back.shape(), back.strides()), (&[2, 3][..], Some(&[3, 1][..])));
    let buffer = DeviceBuf::<f32>::from_dlpack(back, None).unwrap();
    assert_eq!(buffer.to_vec().unwrap()[5], 5.0);
    assert_eq!(deleted.load(Ordering::SeqCst), 0);
    drop(buffer);
    assert_eq!(deleted.load(Ordering::SeqCst), 1);

    let dropped = foreign(&deleted, |_| ());
    // SAFETY: a valid tensor.
    let legacy = unsafe { ManagedTensor::from_raw(dropped) }.unwrap().into_raw_legacy().unwrap();
    // SAFETY: a valid tensor that nobody uses any more.
    unsafe { (*legacy).deleter.unwrap()(legacy) };
    assert_eq!(deleted.load(Ordering::SeqCst), 2);

    let shared = DeviceBuf::<f32>::zeroed(CPU, 4).unwrap();
    let error = shared.to_dlpack(&[4], None).unwrap().into_raw_legacy().unwrap_err();
    assert_eq!(error.status, Status::Unsupported);
}

#[test]
fn a_wrong_shape_is_refused() {
    let buffer = DeviceBuf::<f32>::zeroed(CPU, 6).unwrap();
    for shape in [&[2usize, 2][..], &[], &[usize::MAX, 2], &[0]] {
        let error = buffer.to_dlpack(shape, None).unwrap_err();
        assert!(error.status == Status::InvalidArgument && error.message.contains("6 elements"), "{error}");
    }
    let empty = DeviceBuf::<f32>::zeroed(CPU, 0).unwrap().into_dlpack(&[3, 0], None).unwrap().into_raw();
    // SAFETY: a valid tensor.
    assert_eq!(unsafe { (*empty).dl_tensor.data }, null_mut::<c_void>());
    delete(empty);
}

#[test]
fn without_a_queue_an_export_waits_for_the_work() {
    let queue = async_queue();
    let mut buffer = DeviceBuf::<f32>::zeroed(CPU, 4).unwrap();
    delay(&queue, 20).unwrap();
    queue
        .host_task((&mut buffer,), |(x,)| {
            x.fill(5.0);
            Ok(())
        })
        .unwrap();
    let raw = buffer.into_dlpack(&[4], None).unwrap().into_raw();
    assert_eq!(floats(raw), [5.0; 4]);
    delete(raw);
}

#[test]
fn the_consumers_queue_waits_and_the_host_does_not() {
    let (producer, consumer, gate) = (async_queue(), async_queue(), Gate::default());
    let mut buffer = DeviceBuf::<f32>::zeroed(CPU, 4).unwrap();
    gate.block(&producer).unwrap();
    producer
        .host_task((&mut buffer,), |(x,)| {
            x.fill(5.0);
            Ok(())
        })
        .unwrap();
    let raw = buffer.into_dlpack(&[4], Some(&consumer)).unwrap().into_raw();
    assert!(!producer.query().unwrap(), "the call waited");
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (address, output) = (raw.addr(), seen.clone());
    consumer
        .host_func(move || {
            *output.lock().unwrap() = floats(address as *const _);
            Ok(())
        })
        .unwrap();
    gate.open();
    consumer.synchronize().unwrap();
    assert_eq!(*seen.lock().unwrap(), [5.0; 4]);
    delete(raw);
}

#[test]
fn memory_lives_until_the_consumers_queue_is_through() {
    let (consumer, gate) = (async_queue(), Gate::default());
    let buffer = DeviceBuf::from_slice(CPU, &[3.0f32; 4096]).unwrap();
    let raw = buffer.into_dlpack(&[4096], Some(&consumer)).unwrap().into_raw();
    gate.block(&consumer).unwrap();
    // SAFETY: a valid tensor.
    let data = unsafe { (*raw).dl_tensor.data }.addr();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let output = seen.clone();
    consumer
        .host_func(move || {
            // SAFETY: queued before the deleter was called, so the memory is kept.
            *output.lock().unwrap() = unsafe { std::slice::from_raw_parts(data as *const f32, 4096) }.to_vec();
            Ok(())
        })
        .unwrap();
    delete(raw);
    let other = DeviceBuf::from_slice(CPU, &[8.0f32; 4096]).unwrap(); // would get memory that was freed too early
    gate.open();
    consumer.synchronize().unwrap();
    assert_eq!(*seen.lock().unwrap(), [3.0; 4096]);
    drop(other);
}

#[test]
fn what_is_given_away_counts_as_a_view() {
    let queue = async_queue();
    let source = DeviceBuf::from_slice(CPU, &[1.0f32; 4]).unwrap();
    let mut target = DeviceBuf::<f32>::zeroed(CPU, 4).unwrap();
    let graph = queue.capture(|q| q.copy(&mut target, &source)).unwrap();
    graph.launch(&queue).unwrap();

    let reading = source.to_dlpack(&[4], None).unwrap();
    assert!(reading.is_read_only());
    graph.launch(&queue).unwrap(); // reads as well
    let given = target.into_dlpack(&[4], None).unwrap().into_raw();
    assert_eq!(floats(given), [1.0; 4]);
    assert_eq!(graph.launch(&queue).unwrap_err().status, Status::FailedPrecondition);
    delete(given);
    graph.launch(&queue).unwrap();

    let mut source = source; // the tensor doesn't borrow it
    assert_eq!(queue.fill(&mut source, 7).unwrap_err().status, Status::FailedPrecondition);
    assert_eq!(source.to_vec().unwrap(), [1.0; 4]);
    drop(reading);
    queue.fill(&mut source, 0).unwrap();
    assert_eq!(source.to_vec().unwrap(), [0.0; 4]);
}

#[test]
fn a_launch_comes_after_what_a_consumer_queued() {
    let (queue, consumer, gate) = (async_queue(), async_queue(), Gate::default());
    let source = DeviceBuf::from_slice(CPU, &[2.0f32; 4]).unwrap();
    let mut target = DeviceBuf::<f32>::zeroed(CPU, 4).unwrap();
    let graph = queue.capture(|q| q.copy(&mut target, &source)).unwrap();
    let raw = target.into_dlpack(&[4], Some(&consumer)).unwrap().into_raw();
    gate.block(&consumer).unwrap();
    // SAFETY: a valid tensor.
    let data = unsafe { (*raw).dl_tensor.data }.addr();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let output = seen.clone();
    consumer
        .host_func(move || {
            // SAFETY: queued before the deleter was called, so launches wait for it.
            *output.lock().unwrap() = unsafe { std::slice::from_raw_parts(data as *const f32, 4) }.to_vec();
            Ok(())
        })
        .unwrap();
    delete(raw);
    graph.launch(&queue).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(5));
    gate.open();
    queue.synchronize().unwrap();
    assert_eq!(*seen.lock().unwrap(), [0.0; 4]);
}

#[test]
fn what_failed_before_an_export_is_told() {
    let queue = async_queue();
    let mut buffer = DeviceBuf::<f32>::zeroed(CPU, 4).unwrap();
    fail_before(&queue, |q| q.fill(&mut buffer, 1));
    assert_eq!(buffer.to_dlpack(&[4], None).unwrap_err().status, Status::NotFound);
    drop(buffer.to_dlpack(&[4], None).unwrap()); // told once
    fail_before(&async_queue(), |q| q.fill(&mut buffer, 1));
    let consumer = async_queue();
    assert_eq!(buffer.to_dlpack(&[4], Some(&consumer)).unwrap_err().status, Status::NotFound);
    consumer
        .capture(|q| {
            assert_eq!(buffer.to_dlpack(&[4], Some(q)).unwrap_err().status, Status::FailedPrecondition);
            Ok(())
        })
        .unwrap();
    queue_after_refusal(buffer);
}

/// A refused export leaves no view behind.
fn queue_after_refusal(mut buffer: DeviceBuf<f32>) {
    let queue = async_queue();
    queue.fill(&mut buffer, 0).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0.0; 4]);
}
