//! OMCL (`solve/steps/omcl.rs`) on stored data, in several passes.

use super::kernel_values::KernelValues;
use super::run::diagonal_by_sample;
use super::watch::Watch;
use crate::gram::Gram;
use crate::observe::Observer;
use crate::problem::Status;
use crate::random::Random;
use crate::solve::steps::omcl::{Combiner, KernelChange, kernel_changes};
use rayon::prelude::*;
use std::time::Instant;

/// Samples per task of an update.
const TILE: usize = 256;

/// What is to be learned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OmclTask<'a> {
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
    pub(crate) status: Status,
}

/// Both layers on a training set.
struct Layers<'a> {
    task: OmclTask<'a>,
    kernels: usize,
    /// K_m(i, i), sample after sample.
    diagonal: Vec<f64>,
    values: KernelValues<'a>,
    /// What the values of each kernel are to be multiplied by.
    factors: Vec<f64>,
    /// u: sample after sample, class after class, kernel after kernel.
    scores: Vec<f64>,
    /// Coefficients of the lower layer, in the same order.
    coefficients: Vec<f64>,
    combiner: Combiner,
}

impl OmclTask<'_> {
    /// Bytes of the scores and coefficients that are kept.
    pub(crate) fn score_bytes(&self) -> u64 {
        3 * 8 * (self.classes.len() * self.n_classes * self.gram.n_kernels()) as u64
    }

    pub(crate) fn run(&self, observer: &dyn Observer) -> Combined {
        let n = self.classes.len();
        let mut layers = Layers::new(*self);
        let mut watch = Watch::new(self.deadline, observer);
        let mut random = Random::new(self.seed);
        let (mut steps, mut passes) = (0, 0);
        let mut ended = None;
        'passes: while passes < self.epochs {
            let mut order: Vec<usize> = (0..n).collect();
            random.shuffle(&mut order);
            for (t, &i) in order.iter().enumerate() {
                ended = watch.interrupted("passes", passes * n + t, self.epochs * n);
                if ended.is_some() {
                    break 'passes;
                }
                layers.step(i);
                steps += 1;
            }
            passes += 1;
        }
        let weights = layers.combiner.model_weights();
        Combined {
            coefficients: layers.model_coefficients(&weights),
            weights,
            steps,
            passes,
            status: ended.unwrap_or(Status::MaxIterations),
        }
    }
}

impl<'a> Layers<'a> {
    fn new(task: OmclTask<'a>) -> Self {
        let kernels = task.gram.n_kernels();
        let mut combiner = Combiner::new(kernels);
        (0..task.n_classes).for_each(|_| combiner.add_class());
        let memory = task.memory.saturating_sub(task.score_bytes());
        let values = KernelValues::new(task.gram, memory);
        let size = task.classes.len() * task.n_classes * kernels;
        Layers {
            task,
            kernels,
            diagonal: diagonal_by_sample(task.gram),
            factors: values.factors(),
            values,
            scores: vec![0.0; size],
            coefficients: vec![0.0; size],
            combiner,
        }
    }

    /// Numbers per sample.
    fn width(&self) -> usize {
        self.task.n_classes * self.kernels
    }

    /// One round of OMCL.
    fn step(&mut self, i: usize) {
        let (c, y) = (self.task.c, self.task.classes[i] as usize);
        let u = self.scores[i * self.width()..(i + 1) * self.width()].to_vec();
        let mut scores = vec![0.0; self.task.n_classes];
        self.combiner.scores(&u, &mut scores);
        self.combiner.step(c, &u, &scores, y);
        let diagonal = &self.diagonal[i * self.kernels..(i + 1) * self.kernels];
        let changes = kernel_changes(c, &u, y, diagonal);
        if !changes.is_empty() {
            self.take_in(i, &changes);
        }
    }

    /// Coefficients of a sample change, and the scores of all.
    fn take_in(&mut self, i: usize, changes: &[KernelChange]) {
        let (width, kernels) = (self.width(), self.kernels);
        self.values.prepare(&[i]);
        let values = self.values.get(i);
        for KernelChange { class, m, change } in changes {
            self.coefficients[i * width + class * kernels + m] += change;
        }
        let tiles = self.scores.par_chunks_mut(TILE * width).enumerate();
        tiles.for_each(|(tile, scores)| {
            let values = values[tile * TILE * kernels..].chunks(kernels);
            for (scores, values) in scores.chunks_mut(width).zip(values) {
                for KernelChange { class, m, change } in changes {
                    let change = change * self.factors[*m];
                    scores[class * kernels + m] += change * f64::from(values[*m]);
                }
            }
        });
        self.values.forget();
    }

    /// Coefficients kernel after kernel with the upper layer taken in.
    fn model_coefficients(&self, weights: &[f64]) -> Vec<f64> {
        let (n, k) = (self.task.classes.len(), self.task.n_classes);
        let mut coefficients = vec![0.0; self.kernels * n * k];
        for (row, out) in coefficients.chunks_mut(k).enumerate() {
            let (m, i) = (row / n, row % n);
            for from in 0..k {
                let value = self.coefficients[i * self.width() + from * self.kernels + m];
                if value != 0.0 {
                    for (class, out) in out.iter_mut().enumerate() {
                        *out += self.combiner.share(class, from, m) * value / weights[m];
                    }
                }
            }
        }
        coefficients
    }
}
