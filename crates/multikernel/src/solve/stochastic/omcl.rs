//! OMCL on stored data: PA-I for every kernel by itself, and PA-I on top of all their scores, several passes.

use super::rows::Rows;
use crate::gram::Gram;
use crate::observe::{Observer, Progress};
use crate::random::Random;
use crate::solve::steps::{Combiner, passive_aggressive_step};
use rayon::prelude::*;
use std::time::{Duration, Instant};

/// Samples per task of an update.
const TILE: usize = 256;
/// The observer hears of unfinished passes at most so often.
const QUIET: Duration = Duration::from_millis(100);

/// What is to be learned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) gram: &'a Gram,
    pub(crate) classes: &'a [u32],
    pub(crate) n_classes: usize,
    /// C of both layers.
    pub(crate) c: f64,
    pub(crate) epochs: usize,
    pub(crate) seed: u64,
    pub(crate) deadline: Option<Instant>,
    /// Bytes for rows of kernels.
    pub(crate) memory: u64,
}

/// What came out.
#[derive(Debug)]
pub(crate) struct Combined {
    /// Kernel after kernel, in it sample after sample, one number per class; to be weighted.
    pub(crate) coefficients: Vec<f64>,
    pub(crate) weights: Vec<f64>,
    pub(crate) steps: u64,
    /// Passes that were done.
    pub(crate) passes: usize,
    /// The time was up, or the observer asked to stop.
    pub(crate) late: bool,
    pub(crate) stopped: bool,
}

impl Job<'_> {
    /// Bytes of the scores and coefficients that are kept.
    pub(crate) fn score_bytes(&self) -> u64 {
        3 * 8 * (self.classes.len() * self.n_classes * self.gram.n_kernels()) as u64
    }

    pub(crate) fn run(&self, observer: &dyn Observer) -> Combined {
        let (n, k, f) = (self.classes.len(), self.n_classes, self.gram.n_kernels());
        let width = k * f;
        let mut diagonal = vec![0.0; n * f];
        for m in 0..f {
            for (i, value) in self.gram.self_values(m).into_iter().enumerate() {
                diagonal[i * f + m] = value.max(0.0);
            }
        }
        let mut combiner = Combiner::new(f);
        (0..k).for_each(|_| combiner.add_class());
        let mut rows = Rows::new(self.gram, self.memory.saturating_sub(self.score_bytes()));
        let factors = rows.factors();
        // sample after sample, class after class, kernel after kernel
        let mut scores = vec![0.0; n * width];
        let mut own = vec![0.0; n * width];
        let mut random = Random::new(self.seed);
        let mut result = Combined {
            coefficients: Vec::new(),
            weights: Vec::new(),
            steps: 0,
            passes: 0,
            late: false,
            stopped: false,
        };
        let mut told = Instant::now();
        'passes: for pass in 0..self.epochs {
            let mut order: Vec<usize> = (0..n).collect();
            random.shuffle(&mut order);
            for (t, &i) in order.iter().enumerate() {
                if self.deadline.is_some_and(|d| Instant::now() >= d) {
                    result.late = true;
                    break 'passes;
                }
                if told.elapsed() >= QUIET {
                    told = Instant::now();
                    let progress = Progress::Work {
                        stage: "passes",
                        done: (pass * n + t) as u64,
                        total: (self.epochs * n) as u64,
                    };
                    if observer.progress(&progress).is_break() {
                        result.stopped = true;
                        break 'passes;
                    }
                }
                let y = self.classes[i] as usize;
                let u = scores[i * width..(i + 1) * width].to_vec();
                self.combine(&mut combiner, &u, y);
                let changes = self.changes(&u, y, &diagonal[i * f..(i + 1) * f]);
                result.steps += 1;
                if changes.is_empty() {
                    continue;
                }
                rows.prepare(&[i]);
                for &(class, m, change) in &changes {
                    own[i * width + class * f + m] += change;
                }
                let values = rows.get(i);
                scores
                    .par_chunks_mut(TILE * width)
                    .enumerate()
                    .for_each(|(tile, scores)| {
                        let values = values[tile * TILE * f..].chunks(f);
                        for (scores, values) in scores.chunks_mut(width).zip(values) {
                            for &(class, m, change) in &changes {
                                let change = change * factors[m];
                                scores[class * f + m] += change * f64::from(values[m]);
                            }
                        }
                    });
                rows.forget();
            }
            result.passes += 1;
        }
        result.weights = combiner
            .weights()
            .into_iter()
            .map(|w| if w == 0.0 { 1.0 } else { w })
            .collect();
        result.coefficients = vec![0.0; f * n * k];
        for m in 0..f {
            for i in 0..n {
                let out = &mut result.coefficients[(m * n + i) * k..(m * n + i + 1) * k];
                for from in 0..k {
                    let value = own[i * width + from * f + m];
                    if value != 0.0 {
                        for (class, out) in out.iter_mut().enumerate() {
                            *out += combiner.share(class, from, m) * value / result.weights[m];
                        }
                    }
                }
            }
        }
        result
    }

    fn combine(&self, combiner: &mut Combiner, u: &[f64], y: usize) {
        let mut scores = vec![0.0; self.n_classes];
        combiner.scores(u, &mut scores);
        if let Some(rival) = rival(scores.iter().copied(), y) {
            combiner.step(self.c, y, rival, scores[y] - scores[rival], u);
        }
    }

    /// Class, kernel, change of a coefficient.
    fn changes(&self, u: &[f64], y: usize, diagonal: &[f64]) -> Vec<(usize, usize, f64)> {
        let f = diagonal.len();
        let mut changes = Vec::new();
        for (m, d) in diagonal.iter().enumerate() {
            let own = |k: usize| u[k * f + m];
            let Some(rival) = rival((0..self.n_classes).map(own), y) else {
                continue;
            };
            let (loss, square) = (1.0 - (own(y) - own(rival)), 2.0 * d);
            if loss > 0.0 && square > 0.0 {
                let step = passive_aggressive_step(self.c, loss, square);
                changes.push((y, m, step));
                changes.push((rival, m, -step));
            }
        }
        changes
    }
}

/// The first of the largest other than y.
fn rival(scores: impl Iterator<Item = f64>, y: usize) -> Option<usize> {
    let others = scores.enumerate().filter(|(k, _)| *k != y);
    others
        .reduce(|a, b| if b.1 > a.1 { b } else { a })
        .map(|(k, _)| k)
}
