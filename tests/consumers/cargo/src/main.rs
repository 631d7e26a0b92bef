//! Adds up the values of two ranks three times: through the safe types, through the bindings, and in C.

use std::error::Error;
use std::ffi::CStr;

use vllm_cpp_sys::{Comm, CommGroup, Device, DeviceBuf, Queue, ReduceOp, sys};

unsafe extern "C" {
    fn two_ranks_sum(values: *mut i32, count: usize) -> sys::vt_status;
}

fn main() -> Result<(), Box<dyn Error>> {
    assert_eq!(sys::VT_VERSION, unsafe { sys::vt_version() });
    with_safe_types()?;
    with_bindings()?;
    in_c()?;
    println!("two ranks agree on 11 22 33 44, three times");
    Ok(())
}

/// Each rank is a thread with a queue of its own.
fn with_safe_types() -> Result<(), Box<dyn Error>> {
    let ranks = CommGroup::new(2)?.into_comms()?;
    let sums = std::thread::scope(|scope| {
        let threads: Vec<_> = ranks.into_iter().map(|comm| scope.spawn(move || rank_sum(comm))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank panicked")).collect::<Result<Vec<_>, _>>()
    })?;
    assert_eq!(sums, [[11.0, 22.0, 33.0, 44.0]; 2]);
    Ok(())
}

fn rank_sum(mut comm: Comm) -> Result<[f32; 4], vllm_cpp_sys::Error> {
    let queue = Queue::new_async(Device::cpu(0))?;
    let scale = if comm.rank() == 0 { 1.0 } else { 10.0 };
    let mut values = DeviceBuf::from_fn(Device::cpu(0), 4, |i| (i + 1) as f32 * scale)?;
    comm.all_reduce_in_place(&queue, &mut values, ReduceOp::Sum)?;
    let sums = values.read()?;
    Ok([sums[0], sums[1], sums[2], sums[3]])
}

/// The text of this thread's last error, for code that calls the C interface itself.
fn check(status: sys::vt_status) -> Result<(), Box<dyn Error>> {
    if status >= sys::VT_OK {
        return Ok(());
    }
    let message = unsafe { CStr::from_ptr((*sys::vt_last_error()).message) };
    Err(message.to_string_lossy().into_owned().into())
}

fn with_bindings() -> Result<(), Box<dyn Error>> {
    let cpu = sys::vt_device { type_: sys::VT_DEVICE_CPU, index: 0 };
    let mut values = [[1.0f32, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]];
    let mut queue = std::ptr::null_mut();
    let mut group = std::ptr::null_mut();
    unsafe {
        check(sys::vt_queue_create(cpu, std::ptr::null(), &mut queue))?;
        check(sys::vt_comm_group_create(2, std::ptr::null(), &mut group))?;
        check(sys::vt_comm_batch_begin())?;
        for (rank, own) in (0..).zip(&mut values) {
            let mut comm = std::ptr::null_mut();
            check(sys::vt_comm_group_get_comm(group, rank, &mut comm))?;
            let own = own.as_mut_ptr().cast();
            check(sys::vt_comm_all_reduce(comm, queue, own, own, 4, sys::VT_DTYPE_F32, sys::VT_REDUCE_SUM, std::ptr::null()))?;
        }
        check(sys::vt_comm_batch_end())?;
        sys::vt_comm_group_release(group);
        sys::vt_queue_release(queue);
    }
    assert_eq!(values, [[11.0, 22.0, 33.0, 44.0]; 2]);
    Ok(())
}

fn in_c() -> Result<(), Box<dyn Error>> {
    let mut values = [[1, 2, 3, 4], [10, 20, 30, 40]];
    check(unsafe { two_ranks_sum(values.as_flattened_mut().as_mut_ptr(), 4) })?;
    assert_eq!(values, [[11, 22, 33, 44]; 2]);
    Ok(())
}
