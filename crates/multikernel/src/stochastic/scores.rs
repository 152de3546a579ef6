//! The scores (K_m ĉ)_i of all kernels and classes at the samples of one block after the other.
//!
//! At a block's start the scores of its samples are gathered; inside the block every update leaves its kernel values with the
//! block's samples, and a sample that is visited takes in all updates before it; at its end the block's updates reach everyone.
//! * **Stored**: the scores of all samples are kept, and the end of a block is one pass over the rows of the samples that were
//!   updated: all updates of a tile of columns while it is in cache, all threads.
//! * **On the fly**: nothing is kept; the start of a block is a product of its samples' rows with all coefficients.
//!
//! Both read the same f32 rows, so they agree to the rounding of f64 sums.

use super::rows::Rows;
use crate::gram::Gram;
use crate::math::{dot, mixed_dot};
use rayon::prelude::*;

/// Samples side by side in the stored scores of a class: a line of the cache, so that the scores of one sample lie line after
/// line.
const SIDE: usize = 8;
/// Samples per task of a pass: their scores stay in cache while all updates pass.
const TILE: usize = 256;
/// Sums kept in registers at a time.
const LANES: usize = 4 * SIDE;
/// Samples of a block per task when their scores are gathered.
const GATHER: usize = 64;
/// Samples whose kernel values are turned from row after row to sample after sample at a time: they stay in cache.
const TRANSPOSE: usize = 64;
/// Below so many numbers a loop is over before other threads would have woken up.
const SMALL: usize = 1 << 14;

/// Where the scores at the start of a block come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// Scores of all samples, kernels and classes are kept in memory.
    Stored,
    /// Scores are computed for every block.
    OnTheFly,
}

/// Scores of one block of samples, current after every update.
#[derive(Debug)]
pub(super) struct Scores<'g> {
    rows: Rows<'g>,
    outputs: usize,
    samples: usize,
    /// Kernel after kernel, in it [`SIDE`] samples after others, in it class after class; none on the fly.
    stored: Option<Vec<f64>>,
    /// The block's samples, in the order in which they are visited.
    block: Vec<usize>,
    /// Sample and place of the block's samples by sample: neighbours share lines of the stored scores.
    sorted: Vec<(usize, usize)>,
    /// Where in `sorted` the sample of a place stands.
    ranks: Vec<usize>,
    /// Of the block: sample after sample as sorted, in it class after class, in it one number per kernel.
    current: Vec<f64>,
    updates: Vec<Update>,
    /// What the kernel values of every update are multiplied by: its change times the factors of the rows.
    slopes: Vec<f64>,
    /// The kernels' values between updated samples and those of the block: sample after sample as sorted.
    values: Vec<f32>,
    most_values: usize,
}

/// A change of ĉ inside the block.
#[derive(Debug)]
struct Update {
    sample: usize,
    class: usize,
    change: f64,
    /// Where its kernel values begin.
    values: usize,
}

impl<'g> Scores<'g> {
    /// Uses about `memory` bytes; a storage asked for is taken whatever it needs.
    pub(super) fn new(gram: &'g Gram, outputs: usize, memory: u64, asked: Option<Storage>) -> Self {
        let samples = gram.n_rows();
        let numbers = gram.n_kernels() * outputs * samples.next_multiple_of(TILE);
        // Half as much again for the updates of a block; a block of the size chosen for it rarely needs it all.
        let bytes = 12 * numbers as u64;
        let storage = asked.unwrap_or(if bytes <= memory {
            Storage::Stored
        } else {
            Storage::OnTheFly
        });
        let stored = (storage == Storage::Stored).then(|| vec![0.0; numbers]);
        let most_values = match storage {
            Storage::Stored => numbers,
            Storage::OnTheFly => numbers.min((memory / 16) as usize),
        };
        let rest = match storage {
            Storage::Stored => memory.saturating_sub(bytes),
            Storage::OnTheFly => memory - 4 * most_values as u64,
        };
        Scores {
            rows: Rows::new(gram, rest),
            outputs,
            samples,
            stored,
            block: Vec::new(),
            sorted: Vec::new(),
            ranks: Vec::new(),
            current: Vec::new(),
            updates: Vec::new(),
            slopes: Vec::new(),
            values: Vec::new(),
            most_values,
        }
    }

    pub(super) fn storage(&self) -> Storage {
        match self.stored {
            Some(_) => Storage::Stored,
            None => Storage::OnTheFly,
        }
    }

    /// The largest block whose rows and scores there is memory for.
    pub(super) fn most_samples(&self) -> u64 {
        let each = self.rows.bytes_per_sample() + 8 * self.width() as u64;
        self.rows.bytes_of_block() / each.max(1)
    }

    /// Numbers per sample.
    fn width(&self) -> usize {
        self.outputs * self.rows.kernels()
    }

    /// Begins a block; ĉ as it is now.
    pub(super) fn begin(&mut self, block: &[usize], coefficients: &[f64]) {
        let width = self.width();
        let (kernels, outputs) = (self.rows.kernels(), self.outputs);
        self.block.clear();
        self.block.extend_from_slice(block);
        self.sorted.clear();
        self.sorted.extend(
            block
                .iter()
                .copied()
                .enumerate()
                .map(|(place, i)| (i, place)),
        );
        self.sorted.sort_unstable();
        self.ranks.resize(block.len(), 0);
        for (rank, &(_, place)) in self.sorted.iter().enumerate() {
            self.ranks[place] = rank;
        }
        // every number is written below
        self.current.resize(block.len() * width, 0.0);
        match &self.stored {
            Some(stored) => {
                let each = stored.len() / kernels.max(1);
                let gather = |(samples, out): (&[(usize, usize)], &mut [f64])| {
                    let line_of = |i: usize| i / SIDE * (outputs * SIDE);
                    let same =
                        |a: &(usize, usize), b: &(usize, usize)| line_of(a.0) == line_of(b.0);
                    let mut rest = out;
                    for neighbours in samples.chunk_by(same) {
                        let (out, later) = rest.split_at_mut(neighbours.len() * width);
                        rest = later;
                        for (m, scores) in stored.chunks(each).enumerate() {
                            let (lines, _) = scores[line_of(neighbours[0].0)..].as_chunks::<SIDE>();
                            for (k, line) in lines.iter().take(outputs).enumerate() {
                                let outs = out.chunks_exact_mut(width);
                                for (out, (i, _)) in outs.zip(neighbours) {
                                    out[k * kernels + m] = line[i % SIDE];
                                }
                            }
                        }
                    }
                };
                if block.len() * width < SMALL {
                    gather((&self.sorted, &mut self.current));
                } else {
                    let parts = self.sorted.par_chunks(GATHER);
                    parts
                        .zip(self.current.par_chunks_mut(GATHER * width))
                        .for_each(gather);
                }
            }
            None => {
                self.rows.prepare(block);
                let by_class: Vec<f64> = (0..outputs)
                    .flat_map(|k| coefficients.iter().skip(k).step_by(outputs).copied())
                    .collect();
                let rows = &self.rows;
                let pairs = self
                    .sorted
                    .par_iter()
                    .zip(self.current.par_chunks_mut(width));
                pairs.for_each(|(&(i, _), out)| {
                    for m in 0..kernels {
                        let (row, factor) = rows.get(m, i);
                        for (k, c) in by_class.chunks(row.len()).enumerate() {
                            out[k * kernels + m] = factor * mixed_dot(row, c);
                        }
                    }
                });
            }
        }
    }

    /// Whether rows of some of these samples would have to be made for an update.
    pub(super) fn lacks_rows(&self, samples: &[usize]) -> bool {
        self.rows.lacks(samples)
    }

    /// Has the rows of these samples of the block made at once, because they are likely to be updated.
    pub(super) fn expect(&mut self, samples: &[usize]) {
        self.rows.prepare(samples);
    }

    /// The scores of the sample at a place of the block when it was visited, before that when the block began: class after
    /// class, in it one number per kernel.
    pub(super) fn at(&self, place: usize) -> &[f64] {
        let (width, rank) = (self.width(), self.ranks[place]);
        &self.current[rank * width..(rank + 1) * width]
    }

    /// Brings the scores of the sample at a place of the block up to date; once for each place, in their order.
    pub(super) fn visit(&mut self, place: usize) {
        let (width, rank, kernels) = (self.width(), self.ranks[place], self.rows.kernels());
        let scores = &mut self.current[rank * width..(rank + 1) * width];
        for (update, slopes) in self.updates.iter().zip(self.slopes.chunks_exact(kernels)) {
            let values = &self.values[update.values + rank * kernels..];
            let scores = &mut scores[update.class * kernels..(update.class + 1) * kernels];
            add_values(scores, &values[..kernels], slopes);
        }
    }

    /// ĉ of the sample at a place of the block, visited last, has changed.
    pub(super) fn update(&mut self, place: usize, changes: &[(usize, f64)]) {
        let sample = self.block[place];
        self.rows.prepare(&[sample]);
        let kernels = self.rows.kernels();
        let values = self.values.len();
        let (of_rows, factors): (Vec<&[f32]>, Vec<f64>) =
            (0..kernels).map(|m| self.rows.get(m, sample)).unzip();
        for &(class, change) in changes {
            self.updates.push(Update {
                sample,
                class,
                change,
                values,
            });
            self.slopes
                .extend(factors.iter().map(|factor| factor * change));
        }
        // Samples visited already get values too, though nobody reads them: in the order of the samples all of a row passes
        // through the cache once, and threads share the work.
        self.values.resize(values + self.block.len() * kernels, 0.0);
        let transpose = |(samples, out): (&[(usize, usize)], &mut [f32])| {
            for (m, row) in of_rows.iter().enumerate() {
                for (value, &(j, _)) in out[m..].iter_mut().step_by(kernels).zip(samples) {
                    *value = row[j];
                }
            }
        };
        let out = &mut self.values[values..];
        let tiles = self.sorted.chunks(TRANSPOSE);
        tiles
            .zip(out.chunks_mut(TRANSPOSE * kernels))
            .for_each(transpose);
    }

    /// Whether the block's updates fill the memory meant for them: end it, and begin another with the samples left.
    pub(super) fn is_full(&self) -> bool {
        !self.updates.is_empty() && self.values.len() >= self.most_values
    }

    /// Ends the block.
    pub(super) fn end(&mut self) {
        if let Some(stored) = &mut self.stored
            && !self.updates.is_empty()
        {
            // updates by class, in the order in which they were made
            let outputs = self.outputs;
            self.updates.sort_by_key(|u| u.class);
            let (rows, updates, samples) = (&self.rows, &self.updates, self.samples);
            let tiles = samples.div_ceil(TILE);
            stored
                .par_chunks_mut(outputs * TILE)
                .enumerate()
                .for_each(|(task, scores)| {
                    let (m, tile) = (task / tiles, task % tiles);
                    let (from, to) = (tile * TILE, ((tile + 1) * TILE).min(samples));
                    let mut terms: Vec<(&[f32], f64)> = Vec::with_capacity(updates.len());
                    for same in updates.chunk_by(|a, b| a.class == b.class) {
                        terms.clear();
                        terms.extend(same.iter().map(|update| {
                            let (row, factor) = rows.get(m, update.sample);
                            (&row[from..to], factor * update.change)
                        }));
                        add_rows(&terms, to - from, same[0].class, outputs, scores);
                    }
                });
        }
        self.updates.clear();
        self.slopes.clear();
        self.values.clear();
        self.rows.end_block();
    }

    /// Multiplies all scores.
    pub(super) fn fold(&mut self, factor: f64) {
        if let Some(stored) = &mut self.stored {
            stored.iter_mut().for_each(|s| *s *= factor);
        }
        self.current.iter_mut().for_each(|s| *s *= factor);
        self.updates.iter_mut().for_each(|u| u.change *= factor);
        self.slopes.iter_mut().for_each(|s| *s *= factor);
    }

    /// All coefficients are 0 now.
    pub(super) fn forget(&mut self) {
        if let Some(stored) = &mut self.stored {
            stored.fill(0.0);
        }
        self.current.fill(0.0);
        self.updates.clear();
        self.slopes.clear();
        self.values.clear();
    }

    /// Σ_i ⟨x_i, (K_m ĉ)_i⟩ for every kernel, from the stored scores, for any x of one row per sample; none on the fly.
    /// Not inside a block.
    pub(super) fn products(&self, x: &[f64]) -> Option<Vec<f64>> {
        let stored = self.stored.as_ref()?;
        let each = stored.len() / self.rows.kernels();
        let mut arranged = vec![0.0; each];
        for (i, x) in x.chunks(self.outputs).enumerate() {
            let from = i / SIDE * (self.outputs * SIDE) + i % SIDE;
            for (k, x) in x.iter().enumerate() {
                arranged[from + k * SIDE] = *x;
            }
        }
        Some(
            stored
                .par_chunks(each)
                .map(|scores| dot(scores, &arranged))
                .collect(),
        )
    }

    /// Σ_m β_m (K_m ĉ)_i, row after row, from the stored scores; none on the fly. Not inside a block.
    pub(super) fn combined(&self, weights: &[f64]) -> Option<Vec<f64>> {
        let stored = self.stored.as_ref()?;
        let outputs = self.outputs;
        let each = stored.len() / self.rows.kernels();
        let mut out = vec![0.0; self.samples * outputs];
        out.par_chunks_mut(outputs * TILE)
            .enumerate()
            .for_each(|(tile, out)| {
                let mut sums = vec![0.0; outputs * TILE];
                for (m, &weight) in weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
                    let scores = &stored[m * each + tile * outputs * TILE..][..sums.len()];
                    for (sum, score) in sums.iter_mut().zip(scores) {
                        *sum += weight * score;
                    }
                }
                for (at, out) in out.chunks_mut(outputs).enumerate() {
                    let from = at / SIDE * (outputs * SIDE) + at % SIDE;
                    for (k, out) in out.iter_mut().enumerate() {
                        *out = sums[from + k * SIDE];
                    }
                }
            });
        Some(out)
    }
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn add_values(scores: &mut [f64], values: &[f32], slopes: &[f64]) {
    for ((s, v), slope) in scores.iter_mut().zip(values).zip(slopes) {
        *s += slope * f64::from(*v);
    }
}

/// Adds Σ change·row to the scores of one class in a tile, several columns in registers while all rows pass.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn add_rows(
    terms: &[(&[f32], f64)],
    columns: usize,
    class: usize,
    outputs: usize,
    scores: &mut [f64],
) {
    let (lines, _) = scores.as_chunks_mut::<SIDE>();
    let groups = columns / LANES;
    for group in 0..groups {
        let mut sums = [[0.0; SIDE]; LANES / SIDE];
        for (row, change) in terms {
            let Some(row) = row
                .get(group * LANES..)
                .and_then(|r| r.first_chunk::<LANES>())
            else {
                continue;
            };
            let (row, _) = row.as_chunks::<SIDE>();
            for (sums, row) in sums.iter_mut().zip(row) {
                for l in 0..SIDE {
                    sums[l] += change * f64::from(row[l]);
                }
            }
        }
        for (s, sums) in sums.iter().enumerate() {
            let line = &mut lines[(group * (LANES / SIDE) + s) * outputs + class];
            for l in 0..SIDE {
                line[l] += sums[l];
            }
        }
    }
    for column in groups * LANES..columns {
        let sum = &mut lines[column / SIDE * outputs + class][column % SIDE];
        for (row, change) in terms {
            *sum += change * f64::from(row[column]);
        }
    }
}
