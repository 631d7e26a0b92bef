//! A tensor in the manner of candle over `DeviceBuf`: `relu(x + b)`, captured once and run for several inputs.
//!
//! One difference matters: nothing is allocated inside a capture, so results have their memory before (an `Arena` serves as well).

use vllm_cpp_sys::{Device, DeviceBuf, Queue, Result};

struct Tensor(DeviceBuf<f32>);

impl Tensor {
    fn new(values: &[f32]) -> Result<Tensor> {
        Ok(Tensor(DeviceBuf::from_slice(Device::cpu(0), values)?))
    }

    /// `self = relu(a + b)`; a task of the queue, as a kernel launch would be.
    fn relu_of_sum(&mut self, queue: &Queue, a: &Tensor, b: &Tensor) -> Result<()> {
        queue.host_task((&a.0, &b.0, &mut self.0), |(a, b, out)| {
            out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out = (a + b).max(0.0));
            Ok(())
        })
    }
}

pub fn run() -> Result<()> {
    let queue = Queue::new_async(Device::cpu(0))?;
    let bias = Tensor::new(&[0.5, -4.0])?;
    let (mut x, mut y) = (Tensor::new(&[0.0; 2])?, Tensor::new(&[0.0; 2])?);
    let layer = queue.capture(|queue| y.relu_of_sum(queue, &x, &bias))?;
    for (input, expected) in [([1.0, 2.0], [1.5, 0.0]), ([-9.0, 7.0], [0.0, 3.0])] {
        x.0.copy_from_slice(&input)?; // waits for an earlier run, if one still reads it
        layer.launch(&queue)?;
        assert_eq!(y.0.to_vec()?, expected); // waits for this run
    }
    Ok(())
}

#[allow(dead_code)] // the test that includes this file calls run()
fn main() -> Result<()> {
    run()
}
