//! A tensor in the manner of candle over `DeviceBuf`: `relu(x w + b)`, captured once and run for several inputs.
//!
//! One difference matters: nothing is allocated inside a capture, so the results have their memory before (an `Arena` serves as well).

use vllm_cpp_sys::{Device, DeviceBuf, Queue, Result};

struct Tensor {
    data: DeviceBuf<f32>,
    shape: (usize, usize),
}

impl Tensor {
    fn new(values: &[f32], shape: (usize, usize), device: Device) -> Result<Tensor> {
        assert_eq!(values.len(), shape.0 * shape.1);
        Ok(Tensor { data: DeviceBuf::from_slice(device, values)?, shape })
    }

    fn zeros(shape: (usize, usize), device: Device) -> Result<Tensor> {
        Ok(Tensor { data: DeviceBuf::zeroed(device, shape.0 * shape.1)?, shape })
    }

    /// `self = a b`.
    fn matmul(&mut self, queue: &Queue, a: &Tensor, b: &Tensor) -> Result<()> {
        let (inner, columns) = b.shape;
        assert!(a.shape.1 == inner && self.shape == (a.shape.0, columns), "shapes don't fit");
        queue.host_task((&a.data, &b.data, &mut self.data), move |(a, b, out)| {
            let cell = |i| (0..inner).map(|k| a[i / columns * inner + k] * b[k * columns + i % columns]).sum();
            out.iter_mut().enumerate().for_each(|(i, out)| *out = cell(i));
            Ok(())
        })
    }

    /// Adds `row` to each row.
    fn add(&mut self, queue: &Queue, row: &Tensor) -> Result<()> {
        assert_eq!(row.shape, (1, self.shape.1), "shapes don't fit");
        queue.host_task((&row.data, &mut self.data), |(row, out)| {
            out.chunks_exact_mut(row.len()).flat_map(|out| out.iter_mut().zip(row)).for_each(|(out, row)| *out += row);
            Ok(())
        })
    }

    fn relu(&mut self, queue: &Queue) -> Result<()> {
        queue.host_task((&mut self.data,), |(out,)| {
            out.iter_mut().for_each(|out| *out = out.max(0.0));
            Ok(())
        })
    }
}

pub fn run() -> Result<()> {
    let device = Device::cpu(0);
    let queue = Queue::new_async(device)?;
    let w = Tensor::new(&[1.0, -1.0, 0.5, 2.0, 0.0, 3.0], (3, 2), device)?;
    let b = Tensor::new(&[0.5, -4.0], (1, 2), device)?;
    let mut x = Tensor::zeros((2, 3), device)?;
    let mut y = Tensor::zeros((2, 2), device)?;
    let layer = queue.capture(|queue| {
        y.matmul(queue, &x, &w)?;
        y.add(queue, &b)?;
        y.relu(queue)
    })?;
    for (input, expected) in
        [([1.0, 2.0, 3.0, 0.0, 0.0, 0.0], [2.5, 8.0, 0.5, 0.0]), ([-9.0, 0.0, 1.0, 4.0, 2.0, 0.0], [0.0, 8.0, 5.5, 0.0])]
    {
        x.data.copy_from_slice(&input)?; // waits for an earlier run, if one still reads it
        layer.launch(&queue)?;
        assert_eq!(y.data.to_vec()?, expected); // waits for this run
        println!("{input:?} gives {expected:?}");
    }
    Ok(())
}

#[allow(dead_code)] // the test that includes this file calls run()
fn main() -> Result<()> {
    run()
}
