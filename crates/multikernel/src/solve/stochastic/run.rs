//! A run over a training set: epochs, their blocks, and the visits of the samples in them.

use super::expansion::SampleExpansion;
use super::scores::Scores;
use super::two_stages::two_stages;
use super::watch::Watch;
use super::{Epoch, Method, Stage, StochasticSettings, Validation};
use crate::gram::Gram;
use crate::norm::{BlockNorm, Norm};
use crate::observe::{Observer, Progress};
use crate::problem::{Limits, Objective, Status, relative_gap};
use crate::random::Random;
use crate::solve::steps::{Algorithm, Subgradient, Theta, Visit};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) gram: &'a Gram,
    pub(super) norm: &'a Norm,
    pub(super) objective: &'a Objective<'a>,
    pub(super) settings: &'a StochasticSettings,
    pub(super) limits: &'a Limits,
    pub(super) validation: Option<&'a Validation<'a>>,
}

/// A run in progress.
pub(super) struct Run<'a> {
    pub(super) task: Task<'a>,
    pub(super) watch: Watch<'a>,
    random: Random,
    pub(super) theta: Theta,
    pub(super) expansion: SampleExpansion<'a>,
    pub(super) samples: Samples,
    /// Samples in a block.
    block: usize,
    /// λ = 1/Σ C_i
    pub(super) lambda: f64,
    pub(super) radius: f64,
    pub(super) largest_gradient: f64,
    /// Updates of stage 1 at each sample.
    pub(super) online_updates: Vec<u32>,
    pub(super) steps: u64,
    pub(super) batch_steps: u64,
    pub(super) updates: u64,
    pub(super) history: Vec<Epoch>,
}

/// What is known of the samples before any step.
pub(super) struct Samples {
    /// Those that count.
    pub(super) active: Vec<usize>,
    /// C_i over the mean cost.
    pub(super) shares: Vec<f64>,
    kernels: usize,
    /// K_m(i, i), sample after sample.
    diagonal: Vec<f64>,
    /// ‖φ(x_i)‖_{2,q}
    pub(super) lengths: Vec<f64>,
}

impl Samples {
    fn new(gram: &Gram, costs: &[f64], theta: &Theta) -> Self {
        let (n, kernels) = (gram.n_rows(), gram.n_kernels());
        let active: Vec<usize> = (0..n).filter(|&i| costs[i] > 0.0).collect();
        let mean = costs.iter().sum::<f64>() / active.len().max(1) as f64;
        let diagonal = diagonal_by_sample(gram);
        let rows = diagonal.chunks(kernels.max(1));
        Samples {
            shares: costs.iter().map(|c| c / mean).collect(),
            lengths: rows.map(|row| theta.length_of(row)).collect(),
            active,
            kernels,
            diagonal,
        }
    }

    /// z at a sample with these scores.
    fn subgradient(&self, objective: &Objective<'_>, i: usize, scores: &[f64]) -> Subgradient<'_> {
        let slopes = objective.gradient(i, scores, self.shares[i]);
        let terms = slopes.entries().iter().map(|&(k, z)| z * scores[k]);
        Subgradient {
            margin: -terms.sum::<f64>(),
            slopes,
            diagonal: &self.diagonal[i * self.kernels..(i + 1) * self.kernels],
            sample_length: self.lengths[i],
        }
    }
}

/// K_m(i, i), sample after sample, never negative.
pub(super) fn diagonal_by_sample(gram: &Gram) -> Vec<f64> {
    let kernels = gram.n_kernels();
    let mut diagonal = vec![0.0; gram.n_rows() * kernels];
    for m in 0..kernels {
        let values = gram.self_values(m).into_iter();
        for (out, value) in diagonal[m..].iter_mut().step_by(kernels).zip(values) {
            *out = value.max(0.0);
        }
    }
    diagonal
}

impl<'a> Run<'a> {
    pub(super) fn new(task: Task<'a>, norm: BlockNorm, observer: &'a dyn Observer) -> Self {
        let Task {
            gram,
            objective,
            settings,
            limits,
            ..
        } = task;
        let (n, outputs) = (gram.n_rows(), objective.outputs());
        let theta = Theta::new(norm, gram.n_kernels());
        let scores = Scores::new(gram, outputs, limits.memory, settings.storage);
        Run {
            task,
            watch: Watch::of(limits, observer),
            random: Random::new(settings.seed),
            samples: Samples::new(gram, objective.costs(), &theta),
            theta,
            block: settings.block.unwrap_or_else(|| scores.block_size()).max(1),
            expansion: SampleExpansion::new(scores, n, outputs),
            lambda: 1.0 / objective.costs().iter().sum::<f64>(),
            radius: f64::INFINITY,
            largest_gradient: 0.0,
            online_updates: vec![0; n],
            steps: 0,
            batch_steps: 0,
            updates: 0,
            history: Vec::new(),
        }
    }

    /// All epochs, or as many as it takes.
    pub(super) fn run(&mut self) -> Status {
        let Task {
            objective,
            settings,
            ..
        } = self.task;
        let at_zero = objective.risk(&vec![0.0; self.expansion.coefficients().len()]);
        // nothing to learn: no sample counts, or 0 is without loss
        if self.samples.active.is_empty() || at_zero == 0.0 {
            self.radius = 0.0;
            return Status::MaxIterations;
        }
        let mut online = match settings.method {
            Method::Om2 => Algorithm::Om2,
            Method::PassiveAggressive { c } => Algorithm::PassiveAggressive { c },
            Method::Obscure => {
                let (lambda, q) = (self.lambda, self.theta.q());
                let epoch = |stage, n, algorithm: &mut Algorithm| {
                    if stage == Stage::Batch
                        && settings.average.begins_at(settings.epochs) == Some(n)
                    {
                        self.expansion.start_mean();
                    }
                    self.epoch(stage, algorithm)
                };
                let (status, radius) = two_stages(settings, lambda, q, at_zero, epoch);
                self.radius = radius;
                return status;
            }
        };
        for _ in 0..settings.epochs {
            if let ControlFlow::Break(status) = self.epoch(Stage::Online, &mut online) {
                return status;
            }
        }
        Status::MaxIterations
    }

    /// One epoch and a look. Gives P, or a status if the run ends with it.
    fn epoch(&mut self, stage: Stage, algorithm: &mut Algorithm) -> ControlFlow<Status, f64> {
        let Task {
            settings, limits, ..
        } = self.task;
        if self.history.len() >= limits.max_rounds {
            return ControlFlow::Break(Status::MaxIterations);
        }
        let name = match stage {
            Stage::Online if settings.method != Method::Obscure => "pass",
            Stage::Online => "stage 1",
            Stage::Batch => "stage 2",
        };
        let drawn = settings
            .sampling
            .draw(&mut self.random, self.samples.active.len());
        let order: Vec<usize> = drawn.into_iter().map(|i| self.samples.active[i]).collect();
        let mut ended = None;
        for (b, block) in order.chunks(self.block).enumerate() {
            ended = self.watch.interrupted(name, b * self.block, order.len());
            if ended.is_some() {
                break;
            }
            self.visit_block(block, stage, algorithm);
        }
        let now = self.look(stage);
        self.history.push(now);
        let stopped = self.tell(&now);
        // Stage 1 gives R, and w may be anywhere: a gap counts in stage 2.
        let reached = relative_gap(now.look.primal, now.look.dual) <= limits.tolerance;
        let converged = (reached && stage == Stage::Batch).then_some(Status::Converged);
        match ended.or(stopped).or(converged) {
            Some(status) => ControlFlow::Break(status),
            None => ControlFlow::Continue(now.look.primal),
        }
    }

    /// The observer hears of the last epoch.
    fn tell(&self, now: &Epoch) -> Option<Status> {
        let round = self.history.len();
        let stopped = self.watch.tell(&Progress::Round {
            round,
            primal: now.look.primal,
            dual: now.look.dual,
        });
        let second = now
            .validation
            .and_then(|value| self.watch.tell(&Progress::Validation { round, value }));
        stopped.or(second)
    }

    fn visit_block(&mut self, block: &[usize], stage: Stage, algorithm: &mut Algorithm) {
        let mut scores = vec![0.0; self.task.objective.outputs()];
        self.expansion.begin(block);
        self.expect(block);
        // a block may be ended and begun again: where it began
        let mut first = 0;
        for (at, &i) in block.iter().enumerate() {
            if self.expansion.scores.is_full(at - first) {
                first = at;
                self.expansion.scores.end();
                self.expansion.begin(&block[first..]);
            }
            self.scores_at(at - first, &mut scores);
            let z = self.samples.subgradient(self.task.objective, i, &scores);
            self.largest_gradient = self.largest_gradient.max(z.length());
            let mut visit = Visit {
                theta: &mut self.theta,
                expansion: self.expansion.at(i, at - first),
                z,
            };
            if algorithm.step(&mut visit) != 0.0 {
                self.updates += 1;
                self.online_updates[i] += u32::from(stage == Stage::Online);
            }
            self.expansion.end_round(self.theta.scale());
            self.steps += 1;
            self.batch_steps += u64::from(stage == Stage::Batch);
        }
        self.expansion.scores.end();
    }

    /// Has values made at once for the samples of the block that would be updated now: most of those that will be.
    fn expect(&mut self, block: &[usize]) {
        let objective = self.task.objective;
        let places = block.iter().enumerate();
        let lacking: Vec<(usize, usize)> = places
            .map(|(place, &i)| (place, i))
            .filter(|(_, i)| self.expansion.scores.lacks_values(*i))
            .collect();
        let likely: Vec<usize> = lacking
            .into_par_iter()
            .with_min_len(self.expansion.scores.samples_per_task())
            .filter(|&(place, i)| {
                let mut scores = vec![0.0; objective.outputs()];
                self.scores_at(place, &mut scores);
                !objective.gradient(i, &scores, 1.0).is_none()
            })
            .map(|(_, i)| i)
            .collect();
        self.expansion.scores.expect(&likely);
    }

    /// The scores of the sample at a place of the block.
    fn scores_at(&self, place: usize, scores: &mut [f64]) {
        let factor = self.theta.score_factor();
        let kept = &self.expansion.scores;
        kept.weighted(place, self.theta.weights(), scores);
        scores.iter_mut().for_each(|f| *f *= factor);
    }
}
