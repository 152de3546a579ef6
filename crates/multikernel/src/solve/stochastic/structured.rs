//! OBSCURE for structured outputs: labellings, trees, rankings; whatever has an oracle for the most violating output.
//!
//! Problem: min ½ ‖w‖²_{2,p} + Σ C_i max_y [Δ(y_i, y) − w·(φ(x_i, y_i) − φ(x_i, y))], 1 < p ≤ 2, φ = (φ_1, …, φ_M).
//! Its dual: max Σ_iy a_iy Δ(y_i, y) − ½ Ω*(s)² over a_iy ≥ 0, Σ_y a_iy ≤ C_i, s_m = ‖Σ a_iy (φ_m(x_i, y_i) − φ_m(x_i, y))‖.
//!
//! Method: the two stages of [`obscure`](super::obscure) with z = φ(x_i, ŷ) − φ(x_i, y_i), ŷ the most violating output. So
//! θ is a combination of differences with coefficients ≥ 0; divided by q and cut to Σ_y a_iy ≤ C_i they are dual feasible,
//! which gives the result a certificate. Stop: epochs done, or relative gap ≤ tolerance (looked at when the epochs end).
//!
//! Cost of an epoch: two oracle calls per sample (one to learn, one to look at the objective), and the updates.

use super::Stage;
use super::settings::{StochasticSettings, check_settings};
use super::two_stages::two_stages;
use super::watch::Watch;
use crate::error::{Error, Result};
use crate::norm::{BlockNorm, Norm};
use crate::observe::{Observer, Progress};
use crate::problem::{Certificate, Gradient, Limits, Round, Status};
use crate::random::Random;
use crate::solve::steps::{Algorithm, Expansion, Rescale, Subgradient, Theta, Visit};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// A structured problem: its samples, outputs and joint feature maps φ_m(x, y), seen through the questions OBSCURE asks.
pub trait Structure: Sync {
    /// An output y.
    type Output: Clone + PartialEq + Send + Sync;
    /// θ = (θ_1, …, θ_M), in whatever form answers questions fast.
    type State: Send + Sync;

    /// Number of samples.
    fn len(&self) -> usize;

    /// Whether there is no sample.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of kernels M.
    fn n_kernels(&self) -> usize;

    /// y_i.
    fn truth(&self, i: usize) -> &Self::Output;

    /// Δ(y_i, y) ≥ 0: what answering y costs; 0 for y_i.
    fn delta(&self, i: usize, y: &Self::Output) -> f64;

    /// ⟨φ_m(x_i, y), φ_m(x_j, z)⟩ of every kernel.
    fn kernels(&self, i: usize, y: &Self::Output, j: usize, z: &Self::Output, out: &mut [f64]);

    /// θ = 0.
    fn zero(&self) -> Self::State;

    /// θ ← θ + c (φ(x_i, y) − φ(x_i, z)).
    fn add(&self, state: &mut Self::State, i: usize, y: &Self::Output, z: &Self::Output, c: f64);

    /// θ ← factor·θ.
    fn scale(&self, state: &mut Self::State, factor: f64);

    /// ⟨θ_m, φ_m(x_i, y) − φ_m(x_i, z)⟩ of every kernel.
    fn products(
        &self,
        state: &Self::State,
        i: usize,
        y: &Self::Output,
        z: &Self::Output,
        out: &mut [f64],
    );

    /// The oracle: the y with the largest Σ_m weights_m ⟨θ_m, φ_m(x_i, y)⟩, plus Δ(y_i, y) if `violating`.
    fn best(&self, state: &Self::State, weights: &[f64], i: usize, violating: bool)
    -> Self::Output;

    /// ‖φ_m(x_i, y) − φ_m(x_i, z)‖² of every kernel.
    fn squared_lengths(&self, i: usize, y: &Self::Output, z: &Self::Output, out: &mut [f64]) {
        let mut part = vec![0.0; out.len()];
        out.fill(0.0);
        for (a, b, sign) in [(y, y, 1.0), (z, z, 1.0), (y, z, -2.0)] {
            self.kernels(i, a, i, b, &mut part);
            out.iter_mut().zip(&part).for_each(|(o, p)| *o += sign * p);
        }
        out.iter_mut().for_each(|o| *o = o.max(0.0));
    }
}

/// A trained structured model: f(x, y) = Σ_m β_m ⟨θ_m, φ_m(x, y)⟩.
#[derive(Debug)]
pub struct Structured<S: Structure> {
    /// θ, divided by q: the model is linear in it with weights β.
    pub state: S::State,
    /// β
    pub weights: Vec<f64>,
    /// The differences φ(x_i, y_i) − φ(x_i, y) that θ is made of: sample, y, coefficient ≥ 0.
    pub terms: Vec<(usize, S::Output, f64)>,
    /// P of the model and D of the terms cut to a feasible point.
    pub certificate: Certificate,
    /// Why it stopped.
    pub status: Status,
    /// One entry per epoch; its dual is −∞ except in the last, since the bound costs as much as an epoch.
    pub history: Vec<Round>,
}

impl<S: Structure> Structured<S> {
    /// The best output of sample i.
    pub fn predict(&self, structure: &S, i: usize) -> S::Output {
        structure.best(&self.state, &self.weights, i, false)
    }
}

/// Trains on the samples named, with one cost C_i for each.
///
/// Of the settings, `average`, `storage` and `block` do not matter here.
///
/// # Errors
/// If the norm is not a block norm with 1 < r ≤ 2, a setting makes no sense, or there is not one positive finite cost per sample.
pub fn obscure_structured<S: Structure>(
    structure: &S,
    samples: &[usize],
    costs: &[f64],
    norm: &Norm,
    settings: &StochasticSettings,
    limits: &Limits,
    observer: &dyn Observer,
) -> Result<Structured<S>> {
    let block = check_settings(norm, settings)?;
    if let Some(i) = samples.iter().find(|i| **i >= structure.len()) {
        return Err(Error::input(
            format!("sample {}", i + 1),
            format!("there are {} samples", structure.len()),
            "name samples that exist",
        ));
    }
    let good = costs.iter().all(|c| *c > 0.0 && c.is_finite());
    if samples.is_empty() || costs.len() != samples.len() || !good {
        return Err(Error::input(
            "costs",
            format!("there are {} for {} samples", costs.len(), samples.len()),
            "give one positive finite cost for each sample, and at least one sample",
        ));
    }
    let watch = Watch::of(limits, observer);
    let mut run = StructuredRun::new(structure, samples, costs, norm, block, watch);
    let status = run.both_stages(settings);
    Ok(run.finish(status, limits.tolerance))
}

/// θ̂ over differences of outputs.
struct Differences<'a, S: Structure> {
    structure: &'a S,
    /// θ̂
    state: S::State,
    /// ĉ, for the k-th of the samples: output and coefficient.
    terms: Vec<Terms<S>>,
}

/// Outputs of a sample, and their coefficients.
type Terms<S> = Vec<(<S as Structure>::Output, f64)>;

impl<S: Structure> Differences<'_, S> {
    /// θ̂ ← factor·θ̂.
    fn multiply(&mut self, factor: f64) {
        self.structure.scale(&mut self.state, factor);
        for (_, c) in self.terms.iter_mut().flatten() {
            *c *= factor;
        }
    }
}

/// The only score of a visit is w·(φ(x_i, y_i) − φ(x_i, ŷ)), in which the loss falls.
struct AtOutput<'a, 's, S: Structure> {
    all: &'a mut Differences<'s, S>,
    /// Which of the samples named.
    k: usize,
    sample: usize,
    worst: &'a S::Output,
}

impl<S: Structure> Expansion for AtOutput<'_, '_, S> {
    fn rescale(&mut self, rescale: Rescale) {
        match rescale {
            Rescale::Nothing => {}
            Rescale::By(factor) => self.all.multiply(factor),
            Rescale::Reset => {
                self.all.state = self.all.structure.zero();
                self.all.terms.iter_mut().for_each(Vec::clear);
            }
        }
    }

    fn kernel_scores(&mut self, _: usize, out: &mut [f64]) {
        let structure = self.all.structure;
        let truth = structure.truth(self.sample);
        structure.products(&self.all.state, self.sample, truth, self.worst, out);
    }

    fn add(&mut self, changes: &[(usize, f64)]) {
        let structure = self.all.structure;
        let truth = structure.truth(self.sample);
        for &(_, c) in changes {
            structure.add(&mut self.all.state, self.sample, truth, self.worst, c);
            let own = &mut self.all.terms[self.k];
            match own.iter_mut().find(|(y, _)| y == self.worst) {
                Some((_, known)) => *known += c,
                None => own.push((self.worst.clone(), c)),
            }
        }
    }
}

struct StructuredRun<'a, S: Structure> {
    samples: &'a [usize],
    costs: &'a [f64],
    norm: &'a Norm,
    watch: Watch<'a>,
    theta: Theta,
    expansion: Differences<'a, S>,
    steps: u64,
    history: Vec<Round>,
}

impl<'a, S: Structure> StructuredRun<'a, S> {
    fn new(
        structure: &'a S,
        samples: &'a [usize],
        costs: &'a [f64],
        norm: &'a Norm,
        block: BlockNorm,
        watch: Watch<'a>,
    ) -> Self {
        StructuredRun {
            samples,
            costs,
            norm,
            watch,
            theta: Theta::new(block, structure.n_kernels()),
            expansion: Differences {
                structure,
                state: structure.zero(),
                terms: samples.iter().map(|_| Vec::new()).collect(),
            },
            steps: 0,
            history: Vec::new(),
        }
    }

    fn both_stages(&mut self, settings: &StochasticSettings) -> Status {
        let mut random = Random::new(settings.seed);
        let at_zero = self.primal().0;
        let lambda = 1.0 / self.costs.iter().sum::<f64>();
        let q = self.theta.q();
        let (status, _) = two_stages(settings, lambda, q, at_zero, |stage, _, algorithm| {
            let name = match stage {
                Stage::Online => "stage 1",
                Stage::Batch => "stage 2",
            };
            let order = settings.sampling.draw(&mut random, self.samples.len());
            for (at, &k) in order.iter().enumerate() {
                if let Some(status) = self.watch.interrupted(name, at, order.len()) {
                    return ControlFlow::Break(status);
                }
                self.step(k, algorithm);
            }
            self.refresh();
            let (primal, _) = self.primal();
            let dual = f64::NEG_INFINITY;
            self.history.push(Round {
                seconds: self.watch.seconds(),
                primal,
                dual,
                steps: self.steps,
            });
            let round = self.history.len();
            match self.watch.tell(&Progress::Round {
                round,
                primal,
                dual,
            }) {
                Some(status) => ControlFlow::Break(status),
                None => ControlFlow::Continue(primal),
            }
        });
        status
    }

    /// What the oracle multiplies ⟨θ̂_m, ·⟩ by.
    fn oracle_weights(&self) -> Vec<f64> {
        let factor = self.theta.score_factor();
        let weights = self.theta.weights().iter();
        weights.map(|b| factor * b).collect()
    }

    /// The most violating output of a sample, and the loss there.
    fn violation(&self, weights: &[f64], i: usize) -> (S::Output, f64) {
        let Differences {
            structure, state, ..
        } = &self.expansion;
        let worst = structure.best(state, weights, i, true);
        let mut products = vec![0.0; weights.len()];
        structure.products(state, i, &worst, structure.truth(i), &mut products);
        let margin = crate::math::dot(weights, &products);
        let loss = (structure.delta(i, &worst) + margin).max(0.0);
        (worst, loss)
    }

    fn step(&mut self, k: usize, algorithm: &mut Algorithm) {
        self.steps += 1;
        let sample = self.samples[k];
        let (worst, loss) = self.violation(&self.oracle_weights(), sample);
        let structure = self.expansion.structure;
        let truth = structure.truth(sample);
        let mean = self.costs.iter().sum::<f64>() / self.costs.len() as f64;
        let mut diagonal = vec![0.0; structure.n_kernels()];
        let slopes = match loss > 0.0 && worst != *truth {
            true => {
                structure.squared_lengths(sample, &worst, truth, &mut diagonal);
                Gradient::scalar(-self.costs[k] / mean)
            }
            false => Gradient::NONE,
        };
        let z = Subgradient {
            slopes,
            margin: structure.delta(sample, &worst) - loss,
            sample_length: self.theta.length_of(&diagonal),
            diagonal: &diagonal,
        };
        let expansion = AtOutput {
            all: &mut self.expansion,
            k,
            sample,
            worst: &worst,
        };
        algorithm.step(&mut Visit {
            theta: &mut self.theta,
            expansion,
            z,
        });
    }

    /// ‖θ̂_m‖² from scratch: rounding adds up otherwise.
    fn refresh(&mut self) {
        let Differences {
            structure,
            state,
            terms,
        } = &self.expansion;
        let squares = forms(*structure, state, self.samples, terms);
        self.theta.refresh(squares);
    }

    /// P of the current w, and the share of it that the losses have.
    fn primal(&self) -> (f64, f64) {
        let weights = self.oracle_weights();
        let losses: Vec<f64> = self
            .samples
            .par_iter()
            .map(|&i| self.violation(&weights, i).1)
            .collect();
        let risk: f64 = losses.iter().zip(self.costs).map(|(l, c)| l * c).sum();
        // ‖w‖_{2,p} = ‖θ‖_{2,q}/q
        let norm = self.theta.length() / self.theta.q();
        (0.5 * norm * norm + risk, risk)
    }

    fn finish(mut self, status: Status, tolerance: f64) -> Structured<S> {
        self.refresh();
        let (primal, risk) = self.primal();
        self.expansion.multiply(self.theta.score_factor());
        let certificate = Certificate {
            primal,
            dual: self.dual(),
            risk,
            bias: 0.0,
        };
        if let Some(look) = self.history.last_mut() {
            look.dual = certificate.dual;
        }
        let reached = certificate.relative_gap() <= tolerance;
        let samples = self.samples.iter();
        Structured {
            terms: samples
                .zip(self.expansion.terms)
                .flat_map(|(&i, own)| own.into_iter().map(move |(y, c)| (i, y, c)))
                .collect(),
            state: self.expansion.state,
            weights: self.theta.weights().to_vec(),
            certificate,
            status: match status {
                Status::MaxIterations if reached => Status::Converged,
                other => other,
            },
            history: self.history,
        }
    }

    /// D of the terms (in the model's unit), cut sample by sample to Σ_y a_iy ≤ C_i and then scaled as well as that allows.
    fn dual(&self) -> f64 {
        let structure = self.expansion.structure;
        let mut state = structure.zero();
        let mut cut = self.expansion.terms.clone();
        let (mut linear, mut room) = (0.0, f64::INFINITY);
        for ((own, &i), &cost) in cut.iter_mut().zip(self.samples).zip(self.costs) {
            let total: f64 = own.iter().map(|(_, a)| a).sum();
            if total == 0.0 {
                continue;
            }
            let factor = (cost / total).min(1.0);
            room = room.min(cost / (factor * total));
            for (y, a) in own {
                *a *= factor;
                linear += *a * structure.delta(i, y);
                structure.add(&mut state, i, structure.truth(i), y, *a);
            }
        }
        let s: Vec<f64> = forms(structure, &state, self.samples, &cut)
            .iter()
            .map(|q| q.sqrt())
            .collect();
        let square = self.norm.dual(&s).powi(2);
        if square == 0.0 {
            return 0.0;
        }
        let scale = (linear / square).min(room);
        scale * linear - 0.5 * scale * scale * square
    }
}

/// ‖θ_m‖² = Σ_iy c_iy ⟨θ_m, φ_m(x_i, y_i) − φ_m(x_i, y)⟩, never negative.
fn forms<S: Structure>(
    structure: &S,
    state: &S::State,
    samples: &[usize],
    terms: &[Terms<S>],
) -> Vec<f64> {
    let kernels = structure.n_kernels();
    let of_sample = |(&i, own): (&usize, &Terms<S>)| {
        let (mut sums, mut products) = (vec![0.0; kernels], vec![0.0; kernels]);
        for (y, c) in own {
            structure.products(state, i, structure.truth(i), y, &mut products);
            sums.iter_mut()
                .zip(&products)
                .for_each(|(s, p)| *s += c * p);
        }
        sums
    };
    let parts: Vec<Vec<f64>> = samples.par_iter().zip(terms).map(of_sample).collect();
    let mut all = vec![0.0; kernels];
    for part in parts {
        all.iter_mut().zip(part).for_each(|(a, p)| *a += p);
    }
    all.iter_mut().for_each(|q| *q = q.max(0.0));
    all
}
