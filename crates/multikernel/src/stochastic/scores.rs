//! The scores (K_m ĉ)_i of all kernels and classes at the samples of one block after the other.
//!
//! At a block's start the scores of its samples are current; inside the block every update leaves its kernel values with the block's
//! samples, and a sample that is visited takes in those it has not seen yet, in the order in which they were made.
//! * **Stored**: the scores of all samples are kept. At its end a block leaves the kernel values of its updates with all samples, which
//!   take them in when a block has them again, or all at once when there are many: with all threads, each score once.
//! * **On the fly**: nothing is kept; the start of a block is a product of its samples' rows with all coefficients.
//!
//! Both read the same f32 rows, so they agree to the rounding of f64 sums.

use super::rows::Rows;
use super::theta::weighted_sums;
use crate::gram::Gram;
use crate::math::mixed_dot;
use crate::pages::zeros;
use rayon::prelude::*;

/// Samples per task.
const TILE: usize = 64;
/// Samples that take in an update together: their scores stay in cache while all updates pass.
const TOGETHER: usize = 8;
/// Numbers that are added at a time where kernels come in such groups.
const LANES: usize = 4;
/// Columns and rows that are turned at a time.
const SIDE: usize = 8;
/// There is memory for at least so many updates of all samples.
const LEAST_UPDATES: usize = 16;
/// Numbers per task: fewer are done before another thread would have woken up.
const SMALL: usize = 1 << 14;
/// Samples in a block: few, so that few updates are taken in by one thread,
const STORED_BLOCK: u64 = 64;
/// and many, so that there is work for all threads when it starts.
const BLOCK_ON_THE_FLY: u64 = 256;

/// Where the scores at the start of a block come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// Scores of all samples, kernels and classes are kept in memory.
    Stored,
    /// Scores are computed for every block.
    OnTheFly,
}

/// Scores of samples, current when they are visited.
#[derive(Debug)]
pub(super) struct Scores<'g> {
    rows: Rows<'g>,
    outputs: usize,
    storage: Storage,
    /// The block's samples, in the order in which they are visited.
    block: Vec<usize>,
    /// Stored: of all samples; on the fly: of the block's, in its order. Sample after sample, in it class after class, in it one
    /// number per kernel.
    kept: Vec<f64>,
    /// The updates that the scores of each of these samples have taken in: the first so many.
    taken: Vec<usize>,
    updates: Vec<Update>,
    /// What the kernel values of every update are multiplied by: its change times the factors of the rows.
    slopes: Vec<f64>,
    /// Updates of blocks before this one.
    before: usize,
    /// Their kernels' values between updated samples and all samples: update after update, sample after sample.
    values: Vec<f32>,
    /// So many of them are in use,
    used_values: usize,
    /// and so many are enough.
    most_values: usize,
    /// The same for the updates of this block and its samples,
    near: Vec<f32>,
    /// which are of these samples.
    updated: Vec<usize>,
}

/// A change of ĉ of one class.
#[derive(Debug)]
struct Update {
    class: usize,
    /// Where its kernel values begin.
    values: usize,
}

impl<'g> Scores<'g> {
    /// Uses about `memory` bytes; a storage asked for is taken whatever it needs.
    pub(super) fn new(gram: &'g Gram, outputs: usize, memory: u64, asked: Option<Storage>) -> Self {
        let samples = gram.n_rows();
        let of_update = gram.n_kernels() * samples;
        let numbers = of_update * outputs;
        let values = of_update * outputs.max(LEAST_UPDATES);
        // They are enough before they are too many.
        let bytes = (8 * numbers + 4 * (values + of_update)) as u64;
        let storage = asked.unwrap_or(if bytes <= memory {
            Storage::Stored
        } else {
            Storage::OnTheFly
        });
        let (kept, most_values, rest) = match storage {
            Storage::Stored => (numbers, values, memory.saturating_sub(bytes)),
            Storage::OnTheFly => {
                let most = values.min((memory / 16) as usize);
                (0, most, memory - 4 * most as u64)
            }
        };
        Scores {
            rows: Rows::new(gram, rest),
            outputs,
            storage,
            block: Vec::new(),
            kept: zeros(kept),
            taken: vec![0; if kept > 0 { samples } else { 0 }],
            updates: Vec::new(),
            slopes: Vec::new(),
            before: 0,
            values: match storage {
                Storage::Stored => zeros(values + of_update),
                Storage::OnTheFly => Vec::new(),
            },
            used_values: 0,
            most_values,
            near: Vec::new(),
            updated: Vec::new(),
        }
    }

    pub(super) fn storage(&self) -> Storage {
        self.storage
    }

    /// The samples that a block should have, if there is memory for their rows and scores.
    pub(super) fn block_size(&self) -> usize {
        let (scores, wanted) = match self.storage {
            Storage::Stored => (0, STORED_BLOCK),
            Storage::OnTheFly => (8 * self.width() as u64, BLOCK_ON_THE_FLY),
        };
        let each = self.rows.bytes_per_sample() + scores;
        wanted.min(self.rows.bytes_of_block() / each.max(1)).max(1) as usize
    }

    /// Numbers per sample.
    fn width(&self) -> usize {
        self.outputs * self.rows.kernels()
    }

    /// Begins a block; ĉ as it is now.
    pub(super) fn begin(&mut self, block: &[usize], coefficients: &[f64]) {
        self.block.clear();
        self.block.extend_from_slice(block);
        if self.storage == Storage::Stored {
            self.take_in_block();
            return;
        }
        let (kernels, outputs, width) = (self.rows.kernels(), self.outputs, self.width());
        self.taken.clear();
        self.taken.resize(block.len(), 0);
        // every number is written below
        self.kept.resize(block.len() * width, 0.0);
        self.rows.prepare(block);
        let by_class: Vec<f64> = (0..outputs)
            .flat_map(|k| coefficients.iter().skip(k).step_by(outputs).copied())
            .collect();
        let rows = &self.rows;
        let pairs = block.par_iter().zip(self.kept.par_chunks_mut(width));
        pairs.for_each(|(&i, out)| {
            for m in 0..kernels {
                let (row, factor) = rows.get(m, i);
                for (k, c) in by_class.chunks(row.len()).enumerate() {
                    out[k * kernels + m] = factor * mixed_dot(row, c);
                }
            }
        });
    }

    /// Whether rows of some of these samples would have to be made for an update.
    pub(super) fn lacks_rows(&self, samples: &[usize]) -> bool {
        self.rows.lacks(samples)
    }

    /// Has the rows of these samples of the block made at once, because they are likely to be updated.
    pub(super) fn expect(&mut self, samples: &[usize]) {
        self.rows.prepare(samples);
    }

    /// Where the scores of the sample at a place of the block are kept.
    fn slot(&self, place: usize) -> usize {
        match self.storage {
            Storage::Stored => self.block[place],
            Storage::OnTheFly => place,
        }
    }

    /// The scores of the sample at a place of the block, with the updates that they have taken in: class after class, in it one number
    /// per kernel.
    pub(super) fn at(&self, place: usize) -> &[f64] {
        let (width, slot) = (self.width(), self.slot(place));
        &self.kept[slot * width..(slot + 1) * width]
    }

    /// Brings the scores of the sample at a place of the block up to date.
    pub(super) fn visit(&mut self, place: usize) {
        let (width, slot, kernels) = (self.width(), self.slot(place), self.rows.kernels());
        let taken = std::mem::replace(&mut self.taken[slot], self.updates.len());
        if taken < self.updates.len() {
            take(
                &mut self.kept[slot * width..(slot + 1) * width],
                &self.updates[taken..],
                &self.slopes[taken * kernels..],
                &self.near[place * kernels..],
            );
        }
    }

    /// The block's samples take in the updates of the blocks before.
    fn take_in_block(&mut self) {
        let (width, kernels) = (self.width(), self.rows.kernels());
        if self.updates.is_empty() {
            return;
        }
        let (updates, slopes, values) = (by_class(&self.updates), &self.slopes, &self.values);
        let mut samples = self.block.clone();
        samples.sort_unstable();
        samples.dedup();
        // Their scores, apart from each other, for several threads.
        let mut apart = Vec::with_capacity(samples.len());
        let (mut kept, mut taken, mut from) = (&mut self.kept[..], &mut self.taken[..], 0);
        for j in samples {
            let (own, later) = kept[(j - from) * width..].split_at_mut(width);
            let Some((own_taken, later_taken)) = taken[j - from..].split_first_mut() else {
                break;
            };
            apart.push((j, own, own_taken));
            (kept, taken, from) = (later, later_taken, j + 1);
        }
        let enough = SMALL / (updates.len() * kernels) + 1;
        apart
            .into_par_iter()
            .with_min_len(enough)
            .for_each(|(j, scores, taken)| {
                let values = &values[j * kernels..];
                take_together(scores, &[*taken], &updates, slopes, values);
                *taken = updates.len();
            });
    }

    /// Brings the scores of all samples up to date. Not inside a block.
    pub(super) fn settle(&mut self) {
        let (width, kernels) = (self.width(), self.rows.kernels());
        if !self.updates.is_empty() {
            let (updates, slopes, values) = (by_class(&self.updates), &self.slopes, &self.values);
            let tiles = self.kept.par_chunks_mut(TILE * width).enumerate();
            let taken = self.taken.par_chunks(TILE);
            tiles.zip(taken).for_each(|((tile, kept), taken)| {
                let parts = kept.chunks_mut(TOGETHER * width);
                for (part, (kept, taken)) in parts.zip(taken.chunks(TOGETHER)).enumerate() {
                    let first = tile * TILE + part * TOGETHER;
                    let values = &values[first * kernels..];
                    take_together(kept, taken, &updates, slopes, values);
                }
            });
        }
        self.no_updates();
    }

    /// There are none that anybody has not taken in.
    fn no_updates(&mut self) {
        self.updates.clear();
        self.slopes.clear();
        self.before = 0;
        self.used_values = 0;
        self.near.clear();
        self.updated.clear();
        self.taken.fill(0);
    }

    /// ĉ of the sample at a place of the block, visited last, has changed.
    pub(super) fn update(&mut self, place: usize, changes: &[(usize, f64)]) {
        let sample = self.block[place];
        self.rows.prepare(&[sample]);
        let kernels = self.rows.kernels();
        let values = self.near.len();
        self.near.resize(values + self.block.len() * kernels, 0.0);
        let factors: Vec<f64> = (0..kernels)
            .map(|m| {
                let (row, factor) = self.rows.get(m, sample);
                let near = self.near[values + m..].iter_mut().step_by(kernels);
                for (value, &j) in near.zip(&self.block) {
                    *value = row[j];
                }
                factor
            })
            .collect();
        for &(class, change) in changes {
            self.updates.push(Update { class, values });
            self.slopes
                .extend(factors.iter().map(|factor| factor * change));
        }
        self.updated.push(sample);
    }

    /// Leaves the kernel values of the block's updates with all samples.
    fn spread(&mut self) {
        let (kernels, samples) = (self.rows.kernels(), self.taken.len());
        let each = samples * kernels;
        let from = self.used_values;
        let of_block = self.block.len() * kernels;
        for update in &mut self.updates[self.before..] {
            update.values = from + update.values / of_block * each;
        }
        self.before = self.updates.len();
        self.used_values = from + self.updated.len() * each;
        // Only if nobody asked whether they are full.
        if self.values.len() < self.used_values {
            self.values.resize(self.used_values, 0.0);
        }
        let columns = (SMALL / kernels).next_multiple_of(SIDE);
        let rows = &self.rows;
        let values = self.values[from..self.used_values].par_chunks_mut(each);
        values.zip(&self.updated).for_each(|(values, &sample)| {
            values
                .par_chunks_mut(columns * kernels)
                .enumerate()
                .for_each(|(task, values)| {
                    let of_kernels = (0..kernels).map(|m| rows.get(m, sample).0);
                    let of_kernels = of_kernels.map(|row| &row[task * columns..]);
                    turn(&of_kernels.collect::<Vec<_>>(), values);
                });
        });
        self.near.clear();
        self.updated.clear();
    }

    /// Whether updates fill the memory meant for them: end the block, and begin another with the samples left.
    pub(super) fn is_full(&self) -> bool {
        let used = match self.storage {
            Storage::Stored => {
                self.used_values + self.updated.len() * self.taken.len() * self.rows.kernels()
            }
            Storage::OnTheFly => self.near.len(),
        };
        used > 0 && used >= self.most_values
    }

    /// Ends the block.
    pub(super) fn end(&mut self) {
        match self.storage {
            Storage::Stored => {
                let full = self.is_full();
                if !self.updated.is_empty() {
                    self.spread();
                }
                if full {
                    self.settle();
                }
            }
            Storage::OnTheFly => self.no_updates(),
        }
        self.rows.end_block();
    }

    /// Multiplies all scores.
    pub(super) fn fold(&mut self, factor: f64) {
        self.kept.iter_mut().for_each(|s| *s *= factor);
        self.slopes.iter_mut().for_each(|s| *s *= factor);
    }

    /// All coefficients are 0 now.
    pub(super) fn forget(&mut self) {
        self.kept.fill(0.0);
        self.no_updates();
    }

    /// Σ_i ⟨x_i, (K_m ĉ)_i⟩ for every kernel, from the stored scores, for any x of one row per sample; none on the fly.
    /// They must be settled.
    pub(super) fn products(&self, x: &[f64]) -> Option<Vec<f64>> {
        let (outputs, width, kernels) = (self.outputs, self.width(), self.rows.kernels());
        let stored = self.all()?.par_chunks(TILE * width);
        let parts = stored.zip(x.par_chunks(TILE * outputs)).map(|(kept, x)| {
            let mut sums = vec![0.0; kernels];
            let scores = kept.chunks_exact(kernels).zip(x);
            for (scores, x) in scores.filter(|(_, x)| **x != 0.0) {
                for (sum, score) in sums.iter_mut().zip(scores) {
                    *sum += x * score;
                }
            }
            sums
        });
        // in the order of the samples, so that bits do not depend on the number of threads
        let parts: Vec<Vec<f64>> = parts.collect();
        let mut sums = vec![0.0; kernels];
        for part in parts {
            for (sum, part) in sums.iter_mut().zip(part) {
                *sum += part;
            }
        }
        Some(sums)
    }

    /// Σ_m β_m (K_m ĉ)_i, row after row, from the stored scores; none on the fly. They must be settled.
    pub(super) fn combined(&self, weights: &[f64]) -> Option<Vec<f64>> {
        let stored = self.all()?;
        let mut out = vec![0.0; stored.len() / weights.len().max(1)];
        out.par_chunks_mut(TILE * self.outputs)
            .zip(stored.par_chunks(TILE * self.width()))
            .for_each(|(out, kept)| weighted_sums(kept, weights, out));
        Some(out)
    }

    /// The stored scores; none on the fly.
    fn all(&self) -> Option<&[f64]> {
        debug_assert!(
            self.updates.is_empty(),
            "scores are settled before all are looked at"
        );
        (self.storage == Storage::Stored).then_some(&self.kept)
    }
}

/// Adds what `updates` change to the scores of one sample; `values` are from its kernel values for the first update on.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn take(scores: &mut [f64], updates: &[Update], slopes: &[f64], values: &[f32]) {
    let kernels = (slopes.len() / updates.len().max(1)).max(1);
    for (update, slopes) in updates.iter().zip(slopes.chunks_exact(kernels)) {
        add_values(scores, update, &values[update.values..], slopes);
    }
}

/// The updates with their numbers, class after class, so that the scores of a sample are passed once and in their order.
fn by_class(updates: &[Update]) -> Vec<(usize, &Update)> {
    let mut order: Vec<(usize, &Update)> = updates.iter().enumerate().collect();
    order.sort_by_key(|(_, update)| update.class);
    order
}

/// The same for all updates and samples side by side, each from the update on that it has not taken in.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn take_together(
    kept: &mut [f64],
    taken: &[usize],
    updates: &[(usize, &Update)],
    slopes: &[f64],
    values: &[f32],
) {
    let kernels = (slopes.len() / updates.len().max(1)).max(1);
    let width = kept.len() / taken.len().max(1);
    for (number, update) in updates {
        let slopes = &slopes[number * kernels..][..kernels];
        let samples = kept.chunks_exact_mut(width).zip(taken);
        let values = values[update.values..].chunks(kernels);
        for ((scores, taken), values) in samples.zip(values) {
            if number >= taken {
                add_values(scores, update, values, slopes);
            }
        }
    }
}

#[inline(always)]
fn add_values(scores: &mut [f64], update: &Update, values: &[f32], slopes: &[f64]) {
    let kernels = slopes.len();
    let scores = &mut scores[update.class * kernels..][..kernels];
    // Few kernels are over before a loop over many has begun.
    if let (scores, []) = scores.as_chunks_mut::<LANES>() {
        let values = values.as_chunks::<LANES>().0;
        let slopes = slopes.as_chunks::<LANES>().0;
        for ((score, value), slope) in scores.iter_mut().zip(values).zip(slopes) {
            *score = std::array::from_fn(|l| score[l] + slope[l] * f64::from(value[l]));
        }
        return;
    }
    for ((score, value), slope) in scores.iter_mut().zip(&values[..kernels]).zip(slopes) {
        *score += slope * f64::from(*value);
    }
}

/// Rows to columns: the numbers of all rows at the first column, then at the second, as many as `out` has room for.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn turn(rows: &[&[f32]], out: &mut [f32]) {
    let kernels = rows.len();
    let (groups, rest) = rows.as_chunks::<SIDE>();
    for (tile, out) in out.chunks_mut(TILE * kernels).enumerate() {
        let (from, columns) = (tile * TILE, out.len() / kernels);
        for (group, rows) in groups.iter().enumerate() {
            let rows = rows.map(|row| row[from..][..columns].as_chunks::<SIDE>());
            for (part, out) in out.chunks_mut(SIDE * kernels).enumerate() {
                for (c, out) in out.chunks_mut(kernels).enumerate() {
                    let column = rows.map(|(whole, end)| whole.get(part).map_or(end, |r| r)[c]);
                    out.as_chunks_mut::<SIDE>().0[group] = column;
                }
            }
        }
        for (r, row) in rest.iter().enumerate() {
            let out = out[groups.len() * SIDE + r..].iter_mut().step_by(kernels);
            out.zip(&row[from..]).for_each(|(out, value)| *out = *value);
        }
    }
}
