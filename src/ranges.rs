//! Sets of bytes of an allocation.

/// A set of bytes: sorted ranges that neither overlap nor touch, so a set that is written piece by piece stays short.
#[derive(Clone, Default)]
pub(crate) struct Ranges(Vec<(usize, usize)>);

impl Ranges {
    pub(crate) fn add(&mut self, start: usize, end: usize) {
        if start >= end {
            return;
        }
        let first = self.0.partition_point(|range| range.1 < start);
        let last = self.0.partition_point(|range| range.0 <= end);
        let hull = self.0[first..last].iter().fold((start, end), |hull, range| (hull.0.min(range.0), hull.1.max(range.1)));
        self.0.splice(first..last, [hull]);
    }

    pub(crate) fn remove(&mut self, start: usize, end: usize) {
        let hit = self.hit(start, end);
        if hit.is_empty() {
            return;
        }
        let (low, high) = (self.0[hit.start].0, self.0[hit.end - 1].1);
        let left = [(low, start), (end, high)].into_iter().filter(|range| range.0 < range.1);
        self.0.splice(hit, left);
    }

    pub(crate) fn overlaps(&self, start: usize, end: usize) -> bool {
        !self.hit(start, end).is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.0.iter().copied()
    }

    /// The indices of the ranges that share a byte with `start..end`.
    fn hit(&self, start: usize, end: usize) -> std::ops::Range<usize> {
        if start >= end {
            return 0..0;
        }
        self.0.partition_point(|range| range.1 <= start)..self.0.partition_point(|range| range.0 < end)
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    /// Against a set of single bytes.
    #[test]
    fn sets_of_bytes() {
        let mut seed = 1u32;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as usize % below
        };
        for _ in 0..200 {
            let (mut ranges, mut model) = (Ranges::default(), [false; 32]);
            for _ in 0..20 {
                let start = random(32);
                let end = start + random(33 - start);
                assert_eq!(ranges.overlaps(start, end), model[start..end].contains(&true));
                let adds = random(3) > 0;
                if adds {
                    ranges.add(start, end)
                } else {
                    ranges.remove(start, end)
                }
                model[start..end].fill(adds);
                let listed: Vec<usize> = ranges.iter().flat_map(|range| range.0..range.1).collect();
                let expected: Vec<usize> = (0..32).filter(|&byte| model[byte]).collect();
                assert_eq!(listed, expected);
                assert!(ranges.0.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", ranges.0);
            }
        }
    }
}
