//! A block of samples of Crammer and Singer's problem: row steps on the block's own kernel, in cache (see `crammer_singer.rs`).

use super::CombinedRows;
use super::best_row::best_row;
use super::class_matrix::{ClassMatrix, add_one};
use super::crammer_singer::MulticlassState;
use crate::problem::MulticlassProblem;
use rayon::prelude::*;

/// Samples times classes of a block.
const BLOCK_NUMBERS: usize = 16_384;
/// The least number of samples of a block.
const LEAST_BLOCK: usize = 128;
/// The largest number of samples of a block.
pub(super) const MOST_BLOCK: usize = 1024;
/// Samples among which the best one moves; with many classes half of them.
const PART: usize = 32;
/// From this number on, classes are many.
const MANY: usize = 32;
/// Samples that are looked at at a time.
const LANES: usize = 8;
/// Row steps of a block at most, per sample.
const MOST_STEPS: u64 = 10;
/// A block is left when what its best step promises has fallen to this share of the first: more would be too exact for
/// margins that will change.
const REST_SHARE: f64 = 0.03;

/// Samples of a block: its numbers should stay in cache.
pub(super) fn samples_of_block(classes: usize) -> usize {
    (BLOCK_NUMBERS / classes).clamp(LEAST_BLOCK, MOST_BLOCK)
}

/// Samples among which the best one moves: with many classes looking at them costs more than the steps it saves.
fn samples_together(classes: usize) -> usize {
    if classes > MANY { PART / 2 } else { PART }
}

pub(super) fn promised(violation: f64, d: f64) -> f64 {
    let violation = violation.max(0.0);
    violation * violation / d
}

/// A block of samples in compact arrays, class after class.
pub(super) struct Block {
    /// Samples.
    size: usize,
    /// The same with those that fill up the last part.
    width: usize,
    classes: Vec<usize>,
    costs: Vec<f64>,
    n_classes: usize,
    /// The kernel among them, one row of `width` per sample.
    kernel: Vec<f32>,
    /// K_ii, at least the least curvature; ∞ for samples that cannot move any more.
    diagonal: Vec<f64>,
    a: Vec<f64>,
    before: Vec<f64>,
    margins: Vec<f64>,
    /// 0 where a class is inside of its bound, else ∞.
    barred: Vec<f64>,
}

impl Block {
    pub(super) fn new(
        rows: &CombinedRows<'_>,
        problem: &MulticlassProblem<'_>,
        state: &MulticlassState,
        block: &[usize],
        least: f64,
    ) -> Self {
        let (k, size) = (problem.n_classes, block.len());
        let width = size.next_multiple_of(PART);
        let mut kernel = vec![0.0; size * width];
        kernel
            .par_chunks_mut(width.max(1))
            .zip(block)
            .for_each(|(out, &i)| {
                let row = rows.row(i);
                out.iter_mut().zip(block).for_each(|(o, &j)| *o = row[j]);
            });
        let classes: Vec<usize> = block.iter().map(|&i| problem.classes[i] as usize).collect();
        let costs: Vec<f64> = block.iter().map(|&i| problem.costs[i]).collect();
        let spread = |of: &ClassMatrix| {
            let mut values = vec![0.0; k * width];
            for (class, values) in values.chunks_mut(width.max(1)).enumerate() {
                let own = values.iter_mut().zip(block);
                own.for_each(|(v, &i)| *v = of.at(i, class));
            }
            values
        };
        let a = spread(&state.a);
        let barred = (0..k * width)
            .map(|at| {
                let (class, b) = (at / width, at % width);
                let inside = b < size && a[at] < if class == classes[b] { costs[b] } else { 0.0 };
                if inside { 0.0 } else { f64::INFINITY }
            })
            .collect();
        Block {
            size,
            width,
            n_classes: k,
            diagonal: (0..size)
                .map(|b| f64::from(kernel[b * width + b]).max(least))
                .collect(),
            kernel,
            classes,
            costs,
            before: a.clone(),
            a,
            margins: spread(&state.margins),
            barred,
        }
    }

    /// Row steps until every sample rests; how many.
    pub(super) fn improve(&mut self, enough: f64) -> u64 {
        let (width, k) = (self.width, self.n_classes);
        let together = samples_together(k);
        let parts = width / together;
        let (mut row, mut margins, mut next) = (vec![0.0; k], vec![0.0; k], vec![0.0; k]);
        let mut candidates = Vec::with_capacity(k);
        let mut steps = 0;
        let mut first = 0.0f64;
        let mut idle = 0;
        let mut part = 0;
        while idle < parts && steps < MOST_STEPS * self.size as u64 {
            let (promise, b) = self.best_of_part(part * together, together, enough);
            part = (part + 1) % parts;
            if steps == 0 {
                first = first.max(promise);
            }
            if b == usize::MAX || promise < REST_SHARE * first {
                idle += 1;
                continue;
            }
            idle = 0;
            for class in 0..k {
                row[class] = self.a[class * width + b];
                margins[class] = self.margins[class * width + b];
            }
            let (y, cost, d) = (self.classes[b], self.costs[b], self.diagonal[b]);
            best_row(&row, &margins, d, y, cost, &mut next, &mut candidates);
            let kernel = &self.kernel[b * width..(b + 1) * width];
            let mut changed = false;
            for class in 0..k {
                let change = next[class] - row[class];
                if change != 0.0 {
                    changed = true;
                    let own = class * width..(class + 1) * width;
                    let bound = if class == y { cost } else { 0.0 };
                    self.a[class * width + b] = next[class];
                    self.barred[class * width + b] = match next[class] < bound {
                        true => 0.0,
                        false => f64::INFINITY,
                    };
                    add_one(&mut self.margins[own], kernel, change);
                }
            }
            if changed {
                steps += 1;
            } else {
                self.diagonal[b] = f64::INFINITY; // round-off: it promises nothing any more
            }
        }
        steps
    }

    /// What the best step of the samples `from..from + together` promises, and whose it is; `usize::MAX` if all of them rest.
    fn best_of_part(&self, from: usize, together: usize, enough: f64) -> (f64, usize) {
        let mut best = (0.0, usize::MAX);
        for from in (from..from + together).step_by(LANES) {
            let (mut top, mut low) = ([f64::NEG_INFINITY; LANES], [f64::INFINITY; LANES]);
            let mut inner = [0.0; LANES];
            extremes_of_part(
                [&self.margins, &self.a, &self.barred],
                self.width,
                from,
                &mut top,
                &mut low,
                &mut inner,
            );
            for b in from..(from + LANES).min(self.size) {
                let j = b - from;
                let own = self.margins[self.classes[b] * self.width + b];
                let share = self.costs[b] * (top[j] - own) + inner[j];
                let promise = promised(top[j] - low[j], self.diagonal[b]);
                if share > enough && promise > best.0 {
                    best = (promise, b);
                }
            }
        }
        best
    }

    /// Writes the coefficients back; what changed, class after class.
    pub(super) fn finish(
        self,
        state: &mut MulticlassState,
        block: &[usize],
    ) -> Vec<Vec<(usize, f64)>> {
        let mut changes = vec![Vec::new(); self.n_classes];
        for (class, changes) in changes.iter_mut().enumerate() {
            for (b, &i) in block.iter().enumerate() {
                let (now, before) = (
                    self.a[class * self.width + b],
                    self.before[class * self.width + b],
                );
                if now != before {
                    changes.push((b, now - before));
                    *state.a.at_mut(i, class) = now;
                }
            }
        }
        changes
    }
}

/// The largest margin, the smallest of classes inside, and ⟨A_i, E_i⟩ for the samples `from..from + LANES`.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn extremes_of_part(
    [margins, a, barred]: [&[f64]; 3],
    width: usize,
    from: usize,
    top: &mut [f64; LANES],
    low: &mut [f64; LANES],
    inner: &mut [f64; LANES],
) {
    for at in (from..margins.len()).step_by(width) {
        let (e, a) = (&margins[at..at + LANES], &a[at..at + LANES]);
        let barred = &barred[at..at + LANES];
        for j in 0..LANES {
            top[j] = if e[j] > top[j] { e[j] } else { top[j] };
            let inside = e[j] + barred[j];
            low[j] = if inside < low[j] { inside } else { low[j] };
            inner[j] += a[j] * e[j];
        }
    }
}
