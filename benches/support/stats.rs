//! What both benchmarks say about samples.

pub fn percentile(samples: &[f64], p: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * p).round() as usize]
}

pub fn median(samples: &[f64]) -> f64 {
    percentile(samples, 0.5)
}

/// How well samples repeat: the distance of the quartiles over the median.
pub fn spread(samples: &[f64]) -> f64 {
    (percentile(samples, 0.75) - percentile(samples, 0.25)) / median(samples)
}

/// A reference is believed when the quartiles of its samples lie this close together.
pub const MUST_REPEAT_WITHIN: f64 = 0.15;
