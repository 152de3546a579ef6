//! The scores (K_m ĉ)_i of all kernels and classes at the samples that are visited.
//!
//! An update changes ĉ of one sample for one or two classes, and with it the scores of everyone. They are left as they are until many
//! updates wait. A sample that is visited needs Σ_m β_m (K_m ĉ)_i of every class, and the kernels' own scores only for the classes that
//! it changes: it adds one number per update that waits, its kernels' values weighted by β, not one per update and kernel.
//! * **Stored**: the scores of all samples are kept. When enough updates wait all samples take them in at once: with all threads,
//!   each score read and written once.
//! * **On the fly**: nothing is kept; at the start of a block its samples' scores are computed from all coefficients.
//!
//! Both read the same f32 values, so they agree to the rounding of f64 sums.

use super::kernel_values::KernelValues;
use crate::gram::Gram;
use crate::huge_pages::zeros;
use crate::solve::steps::weighted_sums;
use rayon::prelude::*;

/// Numbers of the scores that take in updates together: they stay in cache while all updates pass.
const TOGETHER: usize = 1 << 15;
/// The fewest samples that take in updates together: their values for an update lie side by side.
const LEAST_TOGETHER: usize = 8;
/// The most samples that take in updates together.
const MOST_TOGETHER: usize = 64;
/// Kernels that are added at a time, as long as this number is left.
const WIDE: usize = 8;
/// Kernels that are added at a time after that.
const NARROW: usize = 4;
/// The fewest updates that wait before all scores take them in.
const LEAST_UPDATES: usize = 16;
/// Numbers that are read beside those of one pair of samples, a line of the cache.
const LINE: usize = 16;
/// Numbers per task; fewer are done before another thread would have woken up.
const SMALL: usize = 1 << 14;
/// Samples in a block with stored scores: few, so that few updates are made after it has begun.
const STORED_BLOCK: u64 = 64;
/// Samples in a block on the fly: many, so that there is work for all threads when it begins.
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
    rows: KernelValues<'g>,
    /// What the values of each kernel are to be multiplied by, and the scores that are kept, which are sums of them.
    factors: Vec<f64>,
    outputs: usize,
    storage: Storage,
    /// The block's samples, in the order in which they are visited.
    block: Vec<usize>,
    /// Stored: of all samples; on the fly: of the block's, in its order. Sample after sample, in it class after class, in it one
    /// number per kernel.
    kept: Vec<f64>,
    /// Changes of ĉ that these scores have not taken in, oldest first.
    updates: Vec<Update>,
    /// The number of updates at which all scores take them in.
    most_updates: usize,
    /// The kernels' values of the block's samples for the updates before the block: sample after sample, update after update.
    before: Vec<f32>,
}

/// A change of ĉ of one sample: classes and what is added.
#[derive(Debug, Clone, Copy)]
struct Update {
    sample: usize,
    changes: [(usize, f64); 2],
}

impl<'g> Scores<'g> {
    /// Uses about `memory` bytes; a storage asked for is taken whatever it needs.
    pub(super) fn new(gram: &'g Gram, outputs: usize, memory: u64, asked: Option<Storage>) -> Self {
        let (samples, kernels) = (gram.n_rows(), gram.n_kernels());
        let numbers = samples * kernels * outputs;
        // A visit passes over the updates that wait; once they are enough, all scores are passed over: about as much.
        let enough = (samples * outputs * kernels) as f64 / (kernels + LINE) as f64;
        let most_updates = (enough.sqrt() as usize / 3).max(LEAST_UPDATES);
        let before = STORED_BLOCK * (most_updates * kernels) as u64;
        let bytes = 8 * numbers as u64 + 4 * before;
        let least = bytes + 4 * (LEAST_UPDATES * samples * kernels) as u64;
        let storage = asked.unwrap_or(if least <= memory {
            Storage::Stored
        } else {
            Storage::OnTheFly
        });
        let (kept, rest) = match storage {
            Storage::Stored => (numbers, memory.saturating_sub(bytes)),
            Storage::OnTheFly => (0, memory),
        };
        let rows = KernelValues::new(gram, rest);
        Scores {
            factors: rows.factors(),
            rows,
            outputs,
            storage,
            block: Vec::new(),
            kept: zeros(kept),
            updates: Vec::new(),
            most_updates,
            before: Vec::new(),
        }
    }

    pub(super) fn storage(&self) -> Storage {
        self.storage
    }

    /// The samples that a block should have, if there is memory for their values and scores.
    pub(super) fn block_size(&self) -> usize {
        let (scores, wanted) = match self.storage {
            Storage::Stored => (0, STORED_BLOCK),
            Storage::OnTheFly => (8 * self.width() as u64, BLOCK_ON_THE_FLY),
        };
        let each = self.rows.bytes_per_sample() + scores;
        wanted
            .min(self.rows.bytes_for_passing() / each.max(1))
            .max(1) as usize
    }

    fn kernels(&self) -> usize {
        self.factors.len()
    }

    /// Numbers per sample.
    fn width(&self) -> usize {
        self.outputs * self.kernels()
    }

    /// Samples whose scores take in updates together.
    fn together(&self) -> usize {
        (TOGETHER / self.width()).clamp(LEAST_TOGETHER, MOST_TOGETHER)
    }

    /// Samples whose scores are enough work for a thread.
    pub(super) fn samples_per_task(&self) -> usize {
        SMALL / self.width() + 1
    }

    /// Begins a block; ĉ as it is now.
    pub(super) fn begin(&mut self, block: &[usize], coefficients: &[f64]) {
        self.block.clear();
        self.block.extend_from_slice(block);
        match self.storage {
            Storage::Stored => self.gather(),
            Storage::OnTheFly => self.compute(coefficients),
        }
    }

    /// Values of one sample and one update after the other lie far apart: they are brought together with all threads.
    fn gather(&mut self) {
        let kernels = self.kernels();
        let of_sample = self.updates.len() * kernels;
        // every number is written below
        self.before.resize(self.block.len() * of_sample, 0.0);
        if of_sample == 0 {
            return;
        }
        let of_updates: Vec<&[f32]> = self
            .updates
            .iter()
            .map(|update| self.rows.get(update.sample))
            .collect();
        self.before
            .par_chunks_mut(of_sample)
            .zip(&self.block)
            .with_min_len(SMALL / of_sample + 1)
            .for_each(|(before, &i)| copy_values(before, &of_updates, i, kernels));
    }

    /// The scores of the block's samples from all coefficients.
    fn compute(&mut self, coefficients: &[f64]) {
        let (outputs, width, kernels) = (self.outputs, self.width(), self.kernels());
        self.kept.clear();
        self.kept.resize(self.block.len() * width, 0.0);
        self.rows.prepare(&self.block);
        let rows = &self.rows;
        let pairs = self.block.par_iter().zip(self.kept.par_chunks_mut(width));
        pairs.for_each(|(&i, out)| {
            let values = rows.get(i).chunks_exact(kernels);
            for (values, c) in values.zip(coefficients.chunks_exact(outputs)) {
                add_row(out, values, c);
            }
        });
    }

    /// Whether the values of this sample would have to be made for an update.
    pub(super) fn lacks_values(&self, sample: usize) -> bool {
        self.rows.lacks(sample)
    }

    /// Has the values of these samples of the block made at once, because they are likely to be updated.
    pub(super) fn expect(&mut self, samples: &[usize]) {
        let room = self.rows.room();
        self.rows.prepare(&samples[..samples.len().min(room)]);
    }

    /// The scores that are kept of the sample at a place of the block.
    fn kept_at(&self, place: usize) -> &[f64] {
        let at = match self.storage {
            Storage::Stored => self.block[place],
            Storage::OnTheFly => place,
        };
        &self.kept[at * self.width()..][..self.width()]
    }

    /// The kernels' values between an update and the sample at a place of the block.
    fn values_at(&self, place: usize, update: &Update) -> &[f32] {
        let kernels = self.kernels();
        &self.rows.get(update.sample)[self.block[place] * kernels..][..kernels]
    }

    /// Σ_m β_m (K_m ĉ)_i of every class for the sample at a place of the block.
    pub(super) fn weighted(&self, place: usize, weights: &[f64], out: &mut [f64]) {
        let weights = product(weights, &self.factors);
        weighted_sums(self.kept_at(place), &weights, out);
        let of_sample = self.before.len() / self.block.len();
        let (earlier, later) = self.updates.split_at(of_sample / self.kernels());
        let values = &self.before[place * of_sample..][..of_sample];
        add_weighted(out, earlier, values, &weights);
        for update in later {
            let values = self.values_at(place, update);
            add_weighted(out, std::slice::from_ref(update), values, &weights);
        }
    }

    /// (K_m ĉ)_i of one class and all kernels for the sample at a place of the block.
    pub(super) fn of_class(&self, place: usize, class: usize, out: &mut [f64]) {
        let kernels = self.kernels();
        let mut scores = self.kept_at(place)[class * kernels..][..kernels].to_vec();
        for update in &self.updates {
            for &(_, change) in update.changes.iter().filter(|(k, _)| *k == class) {
                let values = self.values_at(place, update);
                for (score, value) in scores.iter_mut().zip(values) {
                    *score += change * f64::from(*value);
                }
            }
        }
        out.copy_from_slice(&product(&scores, &self.factors));
    }

    /// ĉ of the sample at a place of the block has changed: classes and what was added.
    pub(super) fn update(&mut self, place: usize, changes: &[(usize, f64)]) {
        let sample = self.block[place];
        self.rows.prepare(&[sample]);
        let mut both = [(0, 0.0); 2];
        both[..changes.len()].copy_from_slice(changes);
        self.updates.push(Update {
            sample,
            changes: both,
        });
    }

    /// Brings the scores of all samples up to date.
    fn settle(&mut self) {
        if self.storage == Storage::Stored && !self.updates.is_empty() {
            self.pass(|_, _| ());
        }
        self.no_updates();
    }

    /// The scores of all samples take in the updates, and are looked at while they are in cache: a number of samples at a time, the first
    /// of which is given. Answers in the order of the samples, so that nothing depends on the number of threads.
    fn pass<T: Send>(&mut self, look: impl Fn(usize, &[f64]) -> T + Sync) -> Vec<T> {
        let (width, kernels, together) = (self.width(), self.kernels(), self.together());
        let changes = by_class(&self.updates, &self.rows);
        self.kept
            .par_chunks_mut(together * width)
            .enumerate()
            .map(|(part, kept)| {
                take_in(kept, width, part * together, kernels, &changes);
                look(part * together, kept)
            })
            .collect()
    }

    /// All scores take in the updates. Σ_i ⟨x_i, (K_m ĉ)_i⟩ for every kernel, for any x of one row per sample, and Σ_m β_m (K_m ĉ)_i, row
    /// after row; none on the fly.
    pub(super) fn look(&mut self, x: &[f64], weights: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
        if self.storage == Storage::OnTheFly {
            return None;
        }
        let (outputs, kernels) = (self.outputs, self.kernels());
        let weights = product(weights, &self.factors);
        let parts = self.pass(|first, kept| {
            let mut combined = vec![0.0; kept.len() / kernels];
            weighted_sums(kept, &weights, &mut combined);
            (products(kept, &x[first * outputs..], kernels), combined)
        });
        self.no_updates();
        let mut sums = vec![0.0; kernels];
        let mut combined = Vec::with_capacity(x.len());
        for (of_part, combined_part) in parts {
            add(&mut sums, &of_part);
            combined.extend(combined_part);
        }
        Some((product(&sums, &self.factors), combined))
    }

    /// There are none that scores have not taken in.
    fn no_updates(&mut self) {
        self.updates.clear();
        self.before.clear();
        self.rows.forget();
    }

    /// Whether there is no room for an update of the sample at a place of the block: end it, and begin another with the samples left.
    pub(super) fn is_full(&self, place: usize) -> bool {
        let no_room = self.rows.room() == 0 && self.rows.lacks(self.block[place]);
        self.has_enough() || no_room && !self.updates.is_empty()
    }

    /// On the fly updates are those of a block, whose values are there anyway.
    fn has_enough(&self) -> bool {
        self.storage == Storage::Stored && self.updates.len() >= self.most_updates
    }

    /// Ends the block, because all its samples were visited or because it is full.
    pub(super) fn end(&mut self) {
        if self.storage == Storage::OnTheFly || self.has_enough() || self.rows.room() == 0 {
            self.settle();
        }
    }

    /// Multiplies all scores.
    pub(super) fn fold(&mut self, factor: f64) {
        self.kept.iter_mut().for_each(|s| *s *= factor);
        for update in &mut self.updates {
            update.changes = update.changes.map(|(k, change)| (k, factor * change));
        }
    }

    /// All coefficients are 0 now.
    pub(super) fn forget(&mut self) {
        self.kept.fill(0.0);
        self.no_updates();
    }

    /// Σ_i ⟨x_i, (K_m ĉ)_i⟩ for every kernel, for any x of one row per sample; none on the fly. Right after a look.
    pub(super) fn products(&self, x: &[f64]) -> Option<Vec<f64>> {
        debug_assert!(self.updates.is_empty(), "somebody has looked");
        if self.storage == Storage::OnTheFly {
            return None;
        }
        let (outputs, width, kernels) = (self.outputs, self.width(), self.kernels());
        let together = self.together();
        let stored = self.kept.par_chunks(together * width);
        let parts: Vec<Vec<f64>> = stored
            .zip(x.par_chunks(together * outputs))
            .map(|(kept, x)| products(kept, x, kernels))
            .collect();
        let mut sums = vec![0.0; kernels];
        parts.iter().for_each(|part| add(&mut sums, part));
        Some(product(&sums, &self.factors))
    }
}

/// Σ x·scores over some samples and all their classes, for every kernel.
fn products(kept: &[f64], x: &[f64], kernels: usize) -> Vec<f64> {
    let mut sums = vec![0.0; kernels];
    let scores = kept.chunks_exact(kernels).zip(x);
    for (scores, x) in scores.filter(|(_, x)| **x != 0.0) {
        for (sum, score) in sums.iter_mut().zip(scores) {
            *sum += x * score;
        }
    }
    sums
}

fn add(to: &mut [f64], numbers: &[f64]) {
    to.iter_mut().zip(numbers).for_each(|(to, x)| *to += x);
}

/// a_m b_m
fn product(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

/// Adds what updates change to the weighted scores of a sample, given its kernels' values, update after update.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn add_weighted(out: &mut [f64], updates: &[Update], values: &[f32], weights: &[f64]) {
    let (wide, rest) = weights.as_chunks::<WIDE>();
    let (narrow, rest) = rest.as_chunks::<NARROW>();
    for (update, values) in updates.iter().zip(values.chunks_exact(weights.len())) {
        let (of_wide, of_rest) = values.as_chunks::<WIDE>();
        let (of_narrow, of_rest) = of_rest.as_chunks::<NARROW>();
        let mut lanes = [0.0; WIDE];
        for (value, weight) in of_wide.iter().zip(wide) {
            lanes = std::array::from_fn(|l| lanes[l] + weight[l] * f64::from(value[l]));
        }
        let mut sums: [f64; NARROW] = std::array::from_fn(|l| lanes[l] + lanes[l + NARROW]);
        for (value, weight) in of_narrow.iter().zip(narrow) {
            sums = std::array::from_fn(|l| sums[l] + weight[l] * f64::from(value[l]));
        }
        let of_rest = of_rest.iter().zip(rest);
        let sum = of_rest.fold(sums.iter().sum::<f64>(), |sum, (value, weight)| {
            sum + weight * f64::from(*value)
        });
        for (class, change) in update.changes {
            out[class] += change * sum;
        }
    }
}

/// One sample's values for one update after the other.
fn copy_values(out: &mut [f32], of_updates: &[&[f32]], sample: usize, kernels: usize) {
    for (out, values) in out.chunks_exact_mut(kernels).zip(of_updates) {
        // Few numbers, too few for a call.
        let (out, rest) = out.as_chunks_mut::<NARROW>();
        let (values, of_rest) = values[sample * kernels..][..kernels].as_chunks::<NARROW>();
        out.iter_mut().zip(values).for_each(|(out, v)| *out = *v);
        rest.iter_mut().zip(of_rest).for_each(|(out, v)| *out = *v);
    }
}

/// Adds c_k times the kernels' values to the scores of every class k.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn add_row(scores: &mut [f64], values: &[f32], c: &[f64]) {
    for (scores, &c) in scores.chunks_exact_mut(values.len()).zip(c) {
        if c != 0.0 {
            for (score, value) in scores.iter_mut().zip(values) {
                *score += c * f64::from(*value);
            }
        }
    }
}

/// A change of ĉ for one class.
#[derive(Debug, Clone, Copy)]
struct Change<'v> {
    class: usize,
    change: f64,
    /// The kernels' values between its sample and all samples.
    values: &'v [f32],
}

/// Class after class, so that the scores of a sample are passed once and in their order.
fn by_class<'v>(updates: &[Update], rows: &'v KernelValues<'_>) -> Vec<Change<'v>> {
    let changes = updates.iter().flat_map(|update| {
        let values = rows.get(update.sample);
        update.changes.map(|(class, change)| Change {
            class,
            change,
            values,
        })
    });
    let mut changes: Vec<Change<'_>> = changes.filter(|change| change.change != 0.0).collect();
    changes.sort_by_key(|change| change.class);
    changes
}

/// Adds the changes to the scores of some samples, the first of which is given.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn take_in(kept: &mut [f64], width: usize, first: usize, kernels: usize, changes: &[Change<'_>]) {
    for changes in changes.chunk_by(|a, b| a.class == b.class) {
        let class = changes[0].class;
        for (sample, kept) in kept.chunks_exact_mut(width).enumerate() {
            let scores = &mut kept[class * kernels..][..kernels];
            let from = (first + sample) * kernels;
            let (wide, rest) = scores.as_chunks_mut::<WIDE>();
            let of_rest = from + WIDE * wide.len();
            for (at, scores) in wide.iter_mut().enumerate() {
                add_changes(scores, changes, from + WIDE * at);
            }
            let (narrow, rest) = rest.as_chunks_mut::<NARROW>();
            let of_each = of_rest + NARROW * narrow.len();
            for (at, scores) in narrow.iter_mut().enumerate() {
                add_changes(scores, changes, of_rest + NARROW * at);
            }
            for (at, score) in rest.iter_mut().enumerate() {
                add_changes(std::array::from_mut(score), changes, of_each + at);
            }
        }
    }
}

#[inline(always)]
fn add_changes<const N: usize>(scores: &mut [f64; N], changes: &[Change<'_>], from: usize) {
    let mut sums = *scores;
    for change in changes {
        let values = &change.values[from..][..N];
        sums = std::array::from_fn(|l| sums[l] + change.change * f64::from(values[l]));
    }
    *scores = sums;
}
