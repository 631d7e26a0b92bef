//! Two ranks, each a thread with an asynchronous queue, sum four numbers.

use std::thread;

use vllm_cpp_sys::{Comm, CommGroup, Device, DeviceBuf, Queue, ReduceOp, Result};

/// One rank. The sum is queued like any other work; reading waits for it.
fn run(mut comm: Comm) -> Result<Vec<f32>> {
    let queue = Queue::new_async(Device::cpu(0))?;
    let mut data = DeviceBuf::from_slice(Device::cpu(0), &[1.0, 2.0, 3.0, 4.0])?;
    comm.all_reduce_in_place(&queue, &mut data, ReduceOp::Sum)?;
    data.to_vec()
}

fn main() -> Result<()> {
    let comms = CommGroup::new(2)?.into_comms()?;
    let ranks: Vec<_> = comms.into_iter().map(|comm| thread::spawn(|| run(comm))).collect();
    for (rank, thread) in ranks.into_iter().enumerate() {
        let sums = thread.join().unwrap()?;
        println!("rank {rank}: {sums:?}"); // [2.0, 4.0, 6.0, 8.0]
    }
    Ok(())
}
