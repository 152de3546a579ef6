//! The values of all kernels at some samples, as far as they are needed and as far as memory goes.

use crate::gram::{Gram, KernelRows};
use crate::huge_pages::zeros;
use rayon::prelude::*;

/// Bytes that are asked for at once, enough to come in huge pages.
const SLAB: usize = 16 << 20;
/// The most samples whose rows are made at a time.
const MADE_TOGETHER: u64 = 32;
/// Rows that are turned at a time.
const SIDE: usize = 4;
/// Columns of the rows that are turned at a time.
const COLUMNS: usize = 128;
/// Numbers per task; fewer are done before another thread would have woken up.
const SMALL: usize = 1 << 14;

/// Supplies values between a sample and all samples: sample after sample, in it one number per kernel. The kernels' rows lie elsewhere,
/// each in a piece; turned like this, whoever looks at one pair of samples finds all kernels in one place.
///
/// Every epoch visits every sample once, so no sample is more likely to be asked for than another: the first ones are held
/// until the bytes allowed are used up, the others are made anew.
#[derive(Debug)]
pub(super) struct KernelValues<'g> {
    every: KernelRows<'g>,
    kernels: usize,
    /// Samples whose rows are made at a time, and memory for them.
    made_together: usize,
    made: Vec<f32>,
    /// Which of the places below each sample has.
    places: Vec<Option<u32>>,
    /// Memory for places, `per_slab` in each.
    slabs: Vec<Vec<f32>>,
    per_slab: usize,
    /// Places in use; the first of them are held, up to a number.
    used: usize,
    most_held: usize,
    /// Samples that have the others.
    passing: Vec<usize>,
    /// Bytes for those.
    for_passing: u64,
}

impl<'g> KernelValues<'g> {
    /// Uses at most `memory` bytes: all of them to hold values if that is enough for every sample, else half of them, and the other
    /// half for values that pass.
    pub(super) fn new(gram: &'g Gram, memory: u64) -> Self {
        let (samples, kernels) = (gram.n_rows(), gram.n_kernels());
        let numbers = (kernels * gram.n_cols()).max(1);
        let each = 4 * numbers as u64;
        let every = KernelRows::new(gram);
        let bytes_of_made = 4 * (every.n_computed() * gram.n_cols()).max(1) as u64;
        let made_together = (memory / 8 / bytes_of_made).clamp(1, MADE_TOGETHER);
        let memory = memory.saturating_sub(made_together * bytes_of_made);
        let fits = memory / each >= samples as u64;
        let held = if fits { memory } else { memory / 2 };
        KernelValues {
            every,
            made_together: made_together as usize,
            made: Vec::new(),
            kernels,
            places: vec![None; samples],
            slabs: Vec::new(),
            per_slab: (SLAB / 4 / numbers).max(1),
            used: 0,
            most_held: samples.min((held / each) as usize),
            passing: Vec::new(),
            for_passing: if fits { memory } else { memory - held },
        }
    }

    /// Numbers per sample.
    fn width(&self) -> usize {
        self.kernels * self.places.len()
    }

    /// Bytes that the values of one sample take.
    pub(super) fn bytes_per_sample(&self) -> u64 {
        4 * self.width() as u64
    }

    /// Bytes that values may take that are not held.
    pub(super) fn bytes_for_passing(&self) -> u64 {
        self.for_passing
    }

    /// Samples whose values may still be made.
    pub(super) fn room(&self) -> usize {
        let passing = self.for_passing / self.bytes_per_sample().max(1);
        let passing = passing as usize - self.passing.len().min(passing as usize);
        passing + self.most_held.saturating_sub(self.used)
    }

    /// What the values of each kernel are to be multiplied by.
    pub(super) fn factors(&self) -> Vec<f64> {
        (0..self.kernels).map(|m| self.every.factor(m)).collect()
    }

    /// Whether values of this sample are still to be made.
    pub(super) fn lacks(&self, sample: usize) -> bool {
        self.places[sample].is_none()
    }

    /// Sees to it that the values of these samples are there until they may be forgotten.
    pub(super) fn prepare(&mut self, samples: &[usize]) {
        let first = self.used;
        let mut missing: Vec<usize> = Vec::new();
        for &i in samples {
            // named twice (with replacement), made once
            if self.places[i].is_none() {
                missing.push(i);
                self.places[i] = Some(self.used as u32);
                if self.used >= self.most_held {
                    self.passing.push(i);
                }
                self.used += 1;
            }
        }
        let width = self.width();
        while self.slabs.len() * self.per_slab < self.used {
            let left = self.places.len() - self.slabs.len() * self.per_slab;
            self.slabs.push(zeros(left.min(self.per_slab) * width));
        }
        let slabs = self.slabs.iter_mut().skip(first / self.per_slab);
        let places = slabs.flat_map(|slab| slab.chunks_exact_mut(width));
        let mut places = places.skip(first % self.per_slab);
        let made = &mut self.made;
        let (every, kernels, samples) = (&self.every, self.kernels, self.places.len());
        let of_made = every.n_computed() * samples;
        for missing in missing.chunks(self.made_together) {
            if of_made > 0 {
                made.resize(missing.len() * of_made, 0.0);
                every.compute(missing, made);
            }
            let out: Vec<&mut [f32]> = places.by_ref().take(missing.len()).collect();
            out.into_par_iter()
                .zip(missing)
                .enumerate()
                .for_each(|(at, (out, &i))| {
                    let made = made.get(at * of_made..(at + 1) * of_made).unwrap_or(&[]);
                    let rows: Vec<&[f32]> = (0..kernels).map(|m| every.row(m, i, made)).collect();
                    let columns = (SMALL / kernels + 1).next_multiple_of(COLUMNS);
                    let parts = out.par_chunks_mut(columns * kernels).enumerate();
                    parts.for_each(|(part, out)| turn(&rows, part * columns, out));
                });
        }
    }

    /// The values of a sample, to be multiplied by the kernels' factors; it must have been prepared.
    pub(super) fn get(&self, sample: usize) -> &[f32] {
        let width = self.width();
        match self.places[sample] {
            Some(place) => {
                let place = place as usize;
                let slab = &self.slabs[place / self.per_slab];
                &slab[place % self.per_slab * width..][..width]
            }
            None => {
                debug_assert!(false, "values are prepared before they are read");
                &[]
            }
        }
    }

    /// Values that are not held may be forgotten.
    pub(super) fn forget(&mut self) {
        for i in self.passing.drain(..) {
            self.places[i] = None;
        }
        self.used = self.used.min(self.most_held);
    }
}

/// Rows to columns: the numbers of all rows at column `from`, then at the next, as many as `out` has room for.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn turn(rows: &[&[f32]], from: usize, out: &mut [f32]) {
    let kernels = rows.len();
    let (groups, rest) = rows.as_chunks::<SIDE>();
    let mut turned = [[0.0; SIDE]; COLUMNS];
    for (tile, out) in out.chunks_mut(COLUMNS * kernels).enumerate() {
        let (from, columns) = (from + tile * COLUMNS, out.len() / kernels);
        for (group, rows) in groups.iter().enumerate() {
            let rows = rows.map(|row| &row[from..][..columns]);
            for (c, turned) in turned[..columns].iter_mut().enumerate() {
                *turned = rows.map(|row| row[c]);
            }
            for (out, turned) in out.chunks_exact_mut(kernels).zip(&turned) {
                out.as_chunks_mut::<SIDE>().0[group] = *turned;
            }
        }
        for (r, row) in rest.iter().enumerate() {
            let out = out[groups.len() * SIDE + r..].iter_mut().step_by(kernels);
            out.zip(&row[from..]).for_each(|(out, value)| *out = *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, View, ViewData, Views};
    use crate::gram::{KernelSet, Options};
    use crate::kernel::KernelSpec;

    /// Kernels whose rows lie in memory beside kernels whose rows are made; more columns than are turned at a time.
    fn kernels(n: usize) -> KernelSet {
        let view = |name: &str, columns: usize| {
            let values = (0..n * columns).map(|x| (x * 7919 % 1009) as f32 / 1009.0);
            View {
                name: name.into(),
                columns: Vec::new(),
                data: ViewData::Dense(Dense::new(n, columns, values.collect()).unwrap()),
            }
        };
        let views = Views::new(vec![view("x", 2), view("y", 3)]).unwrap();
        let mut specs = KernelSpec::parse("rbf:width=0.1|0.3|1|3").unwrap();
        specs.extend(KernelSpec::parse("linear").unwrap());
        KernelSet::new(&specs, &views, &Options::default(), &()).unwrap()
    }

    #[test]
    fn values_are_those_of_the_rows() {
        let n = 2 * COLUMNS + 7;
        let set = kernels(n);
        let every = KernelRows::new(set.gram());
        let (made, kernels) = (every.n_computed(), set.gram().n_kernels());
        assert!(made > 0 && made < kernels && !kernels.is_multiple_of(SIDE));
        let mut rows = KernelValues::new(set.gram(), u64::MAX);
        rows.prepare(&[5, 0, n - 1, 5]);
        let mut own = vec![0.0; made * n];
        for i in [0, 5, n - 1] {
            every.compute(&[i], &mut own);
            for m in 0..kernels {
                let row: Vec<f32> = rows
                    .get(i)
                    .iter()
                    .skip(m)
                    .step_by(kernels)
                    .copied()
                    .collect();
                assert_eq!(row, every.row(m, i, &own), "kernel {m}, sample {i}");
            }
        }
    }

    #[test]
    fn values_that_are_held_and_those_that_pass_share_the_memory() {
        let n = 120;
        let set = kernels(n);
        let each = KernelValues::new(set.gram(), 0).bytes_per_sample();
        for samples in [4, 30, 119, 121, 1000] {
            let memory = samples * each;
            let mut rows = KernelValues::new(set.gram(), memory);
            let all: Vec<usize> = (0..n).collect();
            // Twice: values that are held from the first pass stay where they are.
            for _ in 0..2 {
                for &i in &all {
                    if rows.lacks(i) && rows.room() == 0 {
                        rows.forget();
                        assert!(rows.room() > 0);
                    }
                    rows.prepare(&[i]);
                    let numbers = rows.made_together * rows.every.n_computed() * n;
                    let bytes = rows.used as u64 * each + 4 * numbers as u64;
                    assert!(bytes <= memory, "{bytes} bytes of {memory}");
                }
            }
            rows.forget();
            let held = rows.places.iter().flatten().count();
            assert!(held == rows.most_held.min(n) && (samples < 130 || held == n));
            assert!(samples < 30 || held > 0);
        }
    }
}
