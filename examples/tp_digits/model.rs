//! One rank's share of the network, and the arithmetic on it.
//!
//! With a world of N, a rank computes (1) an N-th of the outputs of layer 1, from all inputs: *column-parallel*; (2) for all outputs
//! of layer 2, the part that comes from those: *row-parallel*, to be summed over the ranks; (3) an N-th of the classes, padded so
//! that every rank has as many.

use std::ops::Range;

use crate::data::{CLASSES, Layer};

/// A block of a layer: some of its inputs, some of its outputs.
///
/// `values` holds a row of `outputs` weights for each input, so that the inner loop runs over outputs (which vectorises without
/// reordering a sum), and the bias as the last row.
pub struct Block {
    pub outputs: usize,
    pub values: Vec<f32>,
}

/// One rank's blocks of the three layers.
pub struct Shard {
    pub hidden1: Block,
    pub hidden2: Block,
    pub scores: Block,
}

impl Shard {
    /// Cuts rank `rank`'s share out of the network. The hidden layers must split evenly.
    pub fn cut(network: &[Layer], rank: usize, world: usize) -> Shard {
        let [first, second, last] = network else { panic!("the network has three layers") };
        let width = first.outputs / world;
        assert_eq!(width * world, first.outputs, "layer 1 doesn't split over {world} ranks");
        let mine = rank * width..(rank + 1) * width;
        let share = CLASSES.div_ceil(world); // 3 of 10 at a world of 4: the last rank has one that exists
        Shard {
            hidden1: Block::cut(first, 0..first.inputs, mine.clone()),
            hidden2: Block::cut(second, mine, 0..second.outputs),
            scores: Block::cut(last, 0..last.inputs, rank * share..(rank + 1) * share),
        }
    }
}

impl Block {
    /// Outputs past the end of the layer get zeros.
    fn cut(layer: &Layer, inputs: Range<usize>, outputs: Range<usize>) -> Block {
        let column = |values: &dyn Fn(usize) -> f32| -> Vec<f32> {
            outputs.clone().map(|o| if o < layer.outputs { values(o) } else { 0.0 }).collect()
        };
        let weights = inputs.clone().flat_map(|i| column(&|o| layer.weights[o * layer.inputs + i]));
        let values = weights.chain(column(&|o| layer.bias[o])).collect();
        Block { outputs: outputs.len(), values }
    }
}

/// What a sum begins with.
#[derive(Clone, Copy, PartialEq)]
pub enum Start {
    Bias,
    Zero,
}

/// `output[batch][outputs] = start + input[batch][inputs] * weights`, for a block's `values`.
pub fn dense(values: &[f32], start: Start, input: &[f32], output: &mut [f32], batch: usize) {
    let (inputs, outputs) = (input.len() / batch, output.len() / batch);
    let (weights, bias) = values.split_at(inputs * outputs);
    for (input, output) in input.chunks_exact(inputs).zip(output.chunks_exact_mut(outputs)) {
        match start {
            Start::Bias => output.copy_from_slice(bias),
            Start::Zero => output.fill(0.0),
        }
        for (x, row) in input.iter().zip(weights.chunks_exact(outputs)) {
            for (sum, weight) in output.iter_mut().zip(row) {
                *sum += x * weight;
            }
        }
    }
}

pub fn relu(values: &mut [f32]) {
    for value in values {
        *value = value.max(0.0);
    }
}

/// Adds the bias of a block, its last row, to each row of `sums`; then ReLU.
pub fn bias_relu(values: &[f32], sums: &mut [f32], outputs: usize) {
    let bias = &values[values.len() - outputs..];
    for row in sums.chunks_exact_mut(outputs) {
        for (sum, bias) in row.iter_mut().zip(bias) {
            *sum += bias;
        }
    }
    relu(sums);
}

/// Picks the best class of each image. `gathered` is `[world][batch][share]`: rank r holds the classes from `r * share` on.
pub fn best_class(gathered: &[f32], share: usize, classes: &mut [u8]) {
    let batch = classes.len();
    for (b, best) in classes.iter_mut().enumerate() {
        let score = |class: usize| gathered[(class / share * batch + b) * share + class % share];
        *best = (1..CLASSES).fold(0, |best, class| if score(class) > score(best) { class } else { best }) as u8;
    }
}
