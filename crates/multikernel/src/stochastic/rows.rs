//! The rows of all kernels at some samples, as far as they are needed and as far as memory goes.

use crate::gram::{EveryKernel, Gram};
use crate::pages::zeros;

/// Supplies rows: those that lie in memory anyway, those made and held, and those made for one block of samples.
///
/// Every epoch visits every sample once, so no row is more likely to be asked for than another: the first rows made are held
/// until the bytes allowed are used up, the others are made anew in every epoch.
#[derive(Debug)]
pub(super) struct Rows<'g> {
    every: EveryKernel<'g>,
    kernels: usize,
    /// Numbers that are made per sample.
    width: usize,
    /// Where the made rows of each sample are.
    slots: Vec<Slot>,
    chunks: Vec<Vec<f32>>,
    /// Chunks from here on are forgotten at the end of the block.
    held: usize,
    /// Samples that may still be held.
    room: u64,
    /// Bytes for the rows of a block.
    of_block: u64,
    passing: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Slot {
    Nowhere,
    At { chunk: u32, place: u32 },
}

impl<'g> Rows<'g> {
    /// Uses at most `memory` bytes: all of them to hold rows if that is enough for every sample, else half of them, and the other
    /// half for the rows of a block.
    pub(super) fn new(gram: &'g Gram, memory: u64) -> Self {
        let every = EveryKernel::new(gram);
        let width = every.n_made() * gram.n_cols();
        let each = 4 * width.max(1) as u64;
        let fits = memory / each >= gram.n_rows() as u64;
        let of_block = if fits { memory } else { memory - memory / 2 };
        Rows {
            every,
            kernels: gram.n_kernels(),
            width,
            slots: vec![Slot::Nowhere; gram.n_rows()],
            chunks: Vec::new(),
            held: 0,
            room: if fits { memory } else { memory / 2 } / each,
            of_block,
            passing: Vec::new(),
        }
    }

    /// Bytes that the rows of one sample take while they are in use.
    pub(super) fn bytes_per_sample(&self) -> u64 {
        4 * self.width as u64
    }

    /// Bytes that the rows of all samples of a block may take.
    pub(super) fn bytes_of_block(&self) -> u64 {
        self.of_block
    }

    pub(super) fn kernels(&self) -> usize {
        self.kernels
    }

    /// Whether rows of some of these samples are still to be made.
    pub(super) fn lacks(&self, samples: &[usize]) -> bool {
        let missing = |i: &usize| matches!(self.slots[*i], Slot::Nowhere);
        self.width > 0 && samples.iter().any(missing)
    }

    /// Sees to it that the rows of these samples are there until the end of the block.
    pub(super) fn prepare(&mut self, samples: &[usize]) {
        if self.width == 0 {
            return;
        }
        let mut missing: Vec<usize> = Vec::new();
        for &i in samples {
            if matches!(self.slots[i], Slot::Nowhere) {
                missing.push(i);
                // named twice (with replacement), made once
                self.slots[i] = Slot::At {
                    chunk: self.chunks.len() as u32,
                    place: missing.len() as u32 - 1,
                };
            }
        }
        if missing.is_empty() {
            return;
        }
        let mut values = zeros(missing.len() * self.width);
        self.every.make(&missing, &mut values);
        // held chunks come before passing ones
        if missing.len() as u64 <= self.room && self.passing.is_empty() {
            self.room -= missing.len() as u64;
            self.held += 1;
        } else {
            self.passing.extend(missing);
        }
        self.chunks.push(values);
    }

    /// Row i of kernel m and the factor it is to be multiplied by; the sample must have been prepared.
    pub(super) fn get(&self, m: usize, i: usize) -> (&[f32], f64) {
        let made: &[f32] = match self.slots[i] {
            Slot::At { chunk, place } => {
                let from = place as usize * self.width;
                &self.chunks[chunk as usize][from..from + self.width]
            }
            Slot::Nowhere => {
                debug_assert!(self.width == 0, "rows are prepared before they are read");
                &[]
            }
        };
        self.every.row(m, i, made)
    }

    /// The block is over: rows that are not held may be forgotten.
    pub(super) fn end_block(&mut self) {
        for i in self.passing.drain(..) {
            self.slots[i] = Slot::Nowhere;
        }
        self.chunks.truncate(self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, View, ViewData, Views};
    use crate::gram::{KernelSet, Options};
    use crate::kernel::KernelSpec;

    #[test]
    fn rows_that_are_held_and_those_of_a_block_share_the_memory() {
        let n = 120;
        let view = View {
            name: "x".into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(n, 1, (0..n).map(|i| i as f32).collect()).unwrap()),
        };
        let views = Views::new(vec![view]).unwrap();
        let specs = KernelSpec::parse("rbf:width=1|10|100").unwrap();
        let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
        let each = Rows::new(set.gram(), 0).bytes_per_sample();
        assert!(each > 0, "rows are made");
        for samples in [2, 30, 119, 120, 1000] {
            let memory = samples * each;
            let mut rows = Rows::new(set.gram(), memory);
            let block = (rows.bytes_of_block() / each).min(n as u64) as usize;
            assert!(block > 0);
            let all: Vec<usize> = (0..n).collect();
            // Twice: rows that are held from the first pass stay where they are.
            for block in all.chunks(block).chain(all.chunks(block)) {
                rows.prepare(block);
                let used: usize = rows.chunks.iter().map(|chunk| 4 * chunk.len()).sum();
                assert!(used as u64 <= memory, "{used} bytes of {memory}");
                rows.end_block();
            }
            let held = rows.slots.iter().filter(|s| matches!(s, Slot::At { .. }));
            let held = held.count() as u64;
            assert!(held <= samples && (samples < n as u64 || held == n as u64));
        }
    }
}
