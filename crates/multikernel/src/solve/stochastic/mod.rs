//! OBSCURE and Pegasos-MKL: p-norm MKL by stochastic steps in the primal, for any convex loss (Orabona, Jie, Caputo 2010, 2012).
//!
//! Problem: min ½ ‖w‖²_{2,p} + Σ C_i ℓ(f_i, y_i), 1 < p ≤ 2, without a bias; ℓ any loss of one score, or Crammer and Singer's
//! of one score per class. The authors write λ/2·‖w‖² + (1/N) Σ ℓ: the same divided by Σ C_i, with λ = 1/Σ C_i. Samples are
//! drawn alike; one with cost C_i has its subgradient multiplied by C_i over the mean cost, which makes the mean of the
//! subgradients that of the problem.
//!
//! Method: mirror descent on θ = Σ_i c_i φ(x_i, ·) with w_m = (1/q)(‖θ_m‖/‖θ‖_{2,q})^{q−2} θ_m, q = p/(p−1).
//! * Stage 1 (Algorithm 1): θ ← θ − η z for `online_epochs`; then R² = 2P(w) ≥ ‖w*‖², not more than 2P(0).
//! * Stage 2 (Algorithm 2): steps that shrink with what was seen (`steps.rs`), projection on ‖w‖ ≤ R, for `epochs`.
//!
//! [`Radius::Infinite`] is Pegasos-MKL, whose first step would forget stage 1: it has none.
//!
//! Result: A = c/q and β = the dual map of s(A), as in every model. The certificate's dual end comes from A made feasible
//! (`feasible.rs`). Stop: epochs done, or relative gap ≤ tolerance.
//!
//! Cost of an epoch: the values of all kernels at the samples that get an update, made once if memory allows to hold them; two classes
//! × N × M operations for each update, with all threads; and M operations for each visit and class, and each visit and update that
//! waits to be taken in (`scores.rs`).

mod bounds;
mod chain;
mod feasible;
mod learner;
pub(crate) mod omcl;
mod rows;
mod scores;
mod structured;
#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use chain::{ChainState, Chains, Neighbours};
pub use scores::Storage;
pub use structured::{Structure, Structured, obscure_structured};

use crate::error::{Error, Result};
use crate::gram::{Coefficients, Gram};
use crate::norm::{BlockNorm, Norm};
use crate::observe::{Observer, Progress};
use crate::problem::{Certificate, Limits, Objective, Round, Status, relative_gap};
use crate::random::Random;
use crate::solve::steps::{Adaptive, Follow, Rule, Seen};
use feasible::{Around, Point};
use learner::Learner;
use rayon::prelude::*;
use scores::Scores;
use std::time::{Duration, Instant};

/// The observer hears of unfinished epochs at most so often.
const QUIET: Duration = Duration::from_millis(100);
/// A look corrects the dual point for clipped samples if they are at most one in so many: its cost grows with their square.
const FEW: usize = 4;

/// How OBSCURE runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The algorithm.
    pub method: Method,
    /// η of stage 1: larger is faster, and makes R less tight.
    pub eta: f64,
    /// Epochs of stage 1.
    pub online_epochs: usize,
    /// Epochs of stage 2.
    pub epochs: usize,
    /// R of stage 2.
    pub radius: Radius,
    /// How samples are drawn.
    pub sampling: Sampling,
    /// Which iterate is returned.
    pub average: Average,
    /// Seed of the draws.
    pub seed: u64,
    /// Where scores come from; by default stored if the memory allows.
    pub storage: Option<Storage>,
    /// Samples in a block; by default as many as work well together and the memory allows.
    pub block: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            method: Method::Obscure,
            eta: 2.0,
            online_epochs: 1,
            epochs: 50,
            radius: Radius::FromStageOne,
            sampling: Sampling::Permutation,
            average: Average::Last,
            seed: 0,
            storage: None,
            block: None,
        }
    }
}

/// The algorithms that step through samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// OBSCURE in its two stages, or Pegasos-MKL with [`Radius::Infinite`].
    Obscure,
    /// OM-2's steps, `epochs` passes over the samples; hinge losses only. It minimises no objective with a given C: the
    /// certificate tells how far its predictor is from the optimum of that.
    Om2,
    /// PA-I on the average kernel, `epochs` passes; hinge losses and r = 2 only.
    PassiveAggressive {
        /// C
        c: f64,
    },
}

/// R, the bound of ‖w‖_{2,p} in stage 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Radius {
    /// √(2P) after stage 1, not more than √(2P(0)).
    FromStageOne,
    /// Pegasos-MKL: no bound, steps 1/(λt), no stage 1.
    Infinite,
    /// A bound that is known.
    Given(f64),
}

/// How an epoch's samples are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Every sample once, in a new order every time.
    Permutation,
    /// With replacement, as the theorem assumes.
    WithReplacement,
}

/// Which θ makes the result: w is the link of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Average {
    /// The last.
    Last,
    /// The mean of θ over stage 2.
    Whole,
    /// The mean of θ over the second half of stage 2.
    SecondHalf,
}

/// Samples that are not trained on, to watch.
#[derive(Debug, Clone, Copy)]
pub struct Validation<'a> {
    /// The kernels between them (rows) and the training samples (columns).
    pub gram: &'a Gram,
    /// Their classes or targets; costs do not matter.
    pub objective: Objective<'a>,
}

/// Which part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Stage 1.
    Online,
    /// Stage 2.
    Batch,
}

/// One look, at the end of an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epoch {
    /// Stage it belongs to.
    pub stage: Stage,
    /// Objective of the current iterate, a lower bound of the optimum, time and steps (samples visited).
    pub look: Round,
    /// Steps so far that changed θ.
    pub updates: u64,
    /// On the validation samples: share of right answers; mean squared error where the targets are numbers.
    pub validation: Option<f64>,
}

/// Coefficients and weights, where they stand and how they got there.
#[derive(Debug, Clone)]
pub struct Solution {
    /// A, sample after sample, one number per class (one for scalar losses).
    pub coefficients: Vec<f64>,
    /// β
    pub weights: Vec<f64>,
    /// P of the model, and D of `feasible`, from the kernels.
    pub certificate: Certificate,
    /// A dual feasible point, as a start for exact solvers.
    pub feasible: Vec<f64>,
    /// Why it stopped.
    pub status: Status,
    /// Samples visited.
    pub steps: u64,
    /// Steps that changed θ beside its scale.
    pub updates: u64,
    /// Where scores came from.
    pub storage: Storage,
    /// What the theorems promise.
    pub bounds: Bounds,
    /// One entry per epoch.
    pub history: Vec<Epoch>,
}

/// Trains by OBSCURE.
///
/// # Errors
/// If the norm is not a block norm with 1 < r ≤ 2, the problem asks for a bias, or a setting makes no sense.
///
/// # Panics
/// If the problem has not one target and cost per sample of the Gram.
pub fn obscure(
    gram: &Gram,
    norm: &Norm,
    objective: &Objective<'_>,
    settings: &Settings,
    limits: &Limits,
    validation: Option<&Validation<'_>>,
    observer: &dyn Observer,
) -> Result<Solution> {
    check_bias(objective)?;
    let block_norm = check_settings(norm, settings)?;
    check_method(objective, settings, &block_norm)?;
    assert_eq!(gram.n_rows(), objective.len(), "one target per sample");
    let mut run = Run::new(gram, norm, block_norm, objective, settings, limits);
    run.validation = validation;
    let status = run.both_stages(observer);
    Ok(run.finish(status))
}

fn check_bias(objective: &Objective<'_>) -> Result<()> {
    match objective {
        Objective::Scalar(problem) if problem.bias => Err(Error::input(
            "OBSCURE",
            "a bias is asked for",
            "leave it out, or add a constant kernel",
        )),
        _ => Ok(()),
    }
}

/// Online steps are made for hinge losses and samples that count alike.
fn check_method(objective: &Objective<'_>, settings: &Settings, norm: &BlockNorm) -> Result<()> {
    let name = match settings.method {
        Method::Obscure => return Ok(()),
        Method::Om2 => "om2",
        Method::PassiveAggressive { .. } => "pa1",
    };
    let wrong = |found: &str, remedy: &str| Err(Error::input(name, found, remedy));
    if let Method::PassiveAggressive { c } = settings.method
        && !(c > 0.0 && c.is_finite() && norm.r() == 2.0)
    {
        return wrong("it needs a positive C and the norm block:2", "give these");
    }
    let hinge = match objective {
        Objective::Scalar(problem) => problem.loss == crate::loss::Loss::Hinge,
        Objective::Multiclass(_) => true,
    };
    if !hinge {
        return wrong(
            "its steps tell classes apart, by hinge losses",
            "give labels of classes without another loss, or the solver exact or obscure",
        );
    }
    let costs = objective.costs();
    if costs.iter().any(|c| *c != costs[0]) {
        return wrong(
            "its steps know no weights of samples or classes",
            "leave the weights out, or give another solver",
        );
    }
    Ok(())
}

fn check_settings(norm: &Norm, settings: &Settings) -> Result<BlockNorm> {
    let block = norm
        .as_block()
        .filter(|block| block.r() > 1.0 && block.r() <= 2.0)
        .ok_or_else(|| {
            Error::input(
                "OBSCURE",
                format!("the norm is {norm}"),
                "give block:R with 1 < R ≤ 2, such as block:1.01 for few kernels, or block:auto",
            )
        })?;
    let positive = |name: &str, value: f64| {
        if value > 0.0 && !value.is_nan() {
            Ok(())
        } else {
            Err(Error::input(
                format!("OBSCURE, {name}"),
                format!("it is {value}"),
                "give a positive number",
            ))
        }
    };
    positive("eta", settings.eta)?;
    if settings.eta.is_infinite() {
        return Err(Error::input(
            "OBSCURE, eta",
            "it is infinite",
            "give a number",
        ));
    }
    if let Radius::Given(radius) = settings.radius {
        positive("radius", radius)?;
    }
    Ok(*block)
}

/// A run in progress.
struct Run<'a> {
    gram: &'a Gram,
    norm: &'a Norm,
    objective: &'a Objective<'a>,
    settings: &'a Settings,
    limits: &'a Limits,
    validation: Option<&'a Validation<'a>>,
    begin: Instant,
    told: Instant,
    random: Random,
    learner: Learner,
    scores: Scores<'a>,
    /// Samples that count.
    active: Vec<usize>,
    /// Samples in a block.
    block: usize,
    /// C_i over the mean cost.
    shares: Vec<f64>,
    lambda: f64,
    /// K_m(i, i), sample after sample.
    diagonal: Vec<f64>,
    /// ‖φ(x_i)‖_{2,q}
    lengths: Vec<f64>,
    radius: f64,
    largest_gradient: f64,
    online_updates: Vec<u32>,
    steps: u64,
    batch_steps: u64,
    updates: u64,
    history: Vec<Epoch>,
}

impl<'a> Run<'a> {
    fn new(
        gram: &'a Gram,
        norm: &'a Norm,
        block_norm: BlockNorm,
        objective: &'a Objective<'a>,
        settings: &'a Settings,
        limits: &'a Limits,
    ) -> Self {
        let (n, kernels, outputs) = (gram.n_rows(), gram.n_kernels(), objective.outputs());
        let costs = objective.costs();
        let active: Vec<usize> = (0..n).filter(|&i| costs[i] > 0.0).collect();
        let total: f64 = costs.iter().sum();
        let mean = total / active.len().max(1) as f64;
        let mut diagonal = vec![0.0; n * kernels];
        for m in 0..kernels {
            for (i, value) in gram.self_values(m).into_iter().enumerate() {
                diagonal[i * kernels + m] = value.max(0.0);
            }
        }
        let mut spare = vec![0.0; kernels];
        let lengths = diagonal
            .chunks(kernels.max(1))
            .map(|row| block_norm.dual_map_of_squares(row, &mut spare))
            .collect();
        let scores = Scores::new(gram, outputs, limits.memory, settings.storage);
        let now = Instant::now();
        Run {
            gram,
            norm,
            objective,
            settings,
            limits,
            validation: None,
            begin: now,
            told: now,
            random: Random::new(settings.seed),
            learner: Learner::new(block_norm, n, outputs, kernels),
            block: settings.block.unwrap_or_else(|| scores.block_size()).max(1),
            scores,
            shares: costs.iter().map(|c| c / mean).collect(),
            lambda: 1.0 / total,
            active,
            diagonal,
            lengths,
            radius: f64::INFINITY,
            largest_gradient: 0.0,
            online_updates: vec![0; n],
            steps: 0,
            batch_steps: 0,
            updates: 0,
            history: Vec::new(),
        }
    }

    fn both_stages(&mut self, observer: &dyn Observer) -> Status {
        let at_zero = self
            .objective
            .risk(&vec![0.0; self.learner.kept_coefficients().len()]);
        // nothing to learn: no sample counts, or 0 is without loss
        if self.active.is_empty() || at_zero == 0.0 {
            self.radius = 0.0;
            return Status::MaxIterations;
        }
        let online = match self.settings.method {
            Method::Obscure => None,
            Method::Om2 => Some(Rule::Om2),
            Method::PassiveAggressive { c } => Some(Rule::PassiveAggressive(c)),
        };
        if let Some(mut rule) = online {
            for _ in 0..self.settings.epochs {
                if let Some(status) = self.epoch(Stage::Online, &mut rule, observer) {
                    return status;
                }
            }
            return Status::MaxIterations;
        }
        let mut rule = Rule::Constant(self.settings.eta);
        // Pegasos' first step forgets all that came before, and it needs no R.
        let online_epochs = match self.settings.radius {
            Radius::Infinite => 0,
            Radius::FromStageOne | Radius::Given(_) => self.settings.online_epochs,
        };
        for _ in 0..online_epochs {
            if let Some(status) = self.epoch(Stage::Online, &mut rule, observer) {
                return status;
            }
        }
        let primal = match self.history.last() {
            Some(epoch) => epoch.look.primal.min(at_zero),
            None => at_zero,
        };
        self.radius = match self.settings.radius {
            Radius::FromStageOne => (2.0 * primal).sqrt(),
            Radius::Infinite => f64::INFINITY,
            Radius::Given(radius) => radius,
        };
        let mut rule = Rule::Adaptive(Adaptive::new(self.lambda, self.learner.q(), self.radius));
        for done in 0..self.settings.epochs {
            let sum_from = match self.settings.average {
                Average::Last => None,
                Average::Whole => Some(0),
                Average::SecondHalf => Some(self.settings.epochs / 2),
            };
            if sum_from == Some(done) {
                self.learner.start_sums();
            }
            if let Some(status) = self.epoch(Stage::Batch, &mut rule, observer) {
                return status;
            }
        }
        Status::MaxIterations
    }

    /// One epoch and a look; a status if the run ends with it.
    fn epoch(&mut self, stage: Stage, rule: &mut Rule, observer: &dyn Observer) -> Option<Status> {
        if self.history.len() >= self.limits.max_rounds {
            return Some(Status::MaxIterations);
        }
        let order: Vec<usize> = match self.settings.sampling {
            Sampling::Permutation => {
                let mut order = self.active.clone();
                self.random.shuffle(&mut order);
                order
            }
            Sampling::WithReplacement => {
                let count = self.active.len();
                (0..count)
                    .map(|_| self.active[self.random.below(count)])
                    .collect()
            }
        };
        let mut ended = None;
        for (b, block) in order.chunks(self.block).enumerate() {
            if self.limits.deadline.is_some_and(|d| Instant::now() >= d) {
                ended = Some(Status::TimeLimit);
                break;
            }
            if self.told.elapsed() >= QUIET {
                self.told = Instant::now();
                let progress = Progress::Work {
                    stage: match stage {
                        Stage::Online if self.settings.method != Method::Obscure => "pass",
                        Stage::Online => "stage 1",
                        Stage::Batch => "stage 2",
                    },
                    done: (b * self.block) as u64,
                    total: order.len() as u64,
                };
                if observer.progress(&progress).is_break() {
                    ended = Some(Status::Stopped);
                    break;
                }
            }
            self.do_block(block, stage, rule);
        }
        let now = self.look(stage);
        let round = self.history.len() + 1;
        self.history.push(now);
        let mut told = observer.progress(&Progress::Round {
            round,
            primal: now.look.primal,
            dual: now.look.dual,
        });
        if let Some(value) = now.validation {
            let second = observer.progress(&Progress::Validation { round, value });
            told = if told.is_break() { told } else { second };
        }
        if ended.is_some() {
            return ended;
        }
        if told.is_break() {
            return Some(Status::Stopped);
        }
        // Stage 1 gives R, and w may be anywhere: a gap counts in stage 2.
        let reached = relative_gap(now.look.primal, now.look.dual) <= self.limits.tolerance;
        (reached && stage == Stage::Batch).then_some(Status::Converged)
    }

    fn do_block(&mut self, block: &[usize], stage: Stage, rule: &mut Rule) {
        let kernels = self.learner.weights().len();
        let mut scores = vec![0.0; self.objective.outputs()];
        // of the classes that change: at most two
        let mut of_classes = vec![0.0; 2 * kernels];
        let mut changes = Vec::with_capacity(2);
        self.scores.begin(block, self.learner.kept_coefficients());
        self.expect(block);
        // a block may be ended and begun again: where it began
        let mut first = 0;
        for (at, &i) in block.iter().enumerate() {
            if self.scores.is_full(at - first) {
                first = at;
                self.scores.end();
                let kept = self.learner.kept_coefficients();
                self.scores.begin(&block[first..], kept);
            }
            let place = at - first;
            self.visit(place, &mut scores);
            let gradient = self.objective.gradient(i, &scores, self.shares[i]);
            let length = gradient.length() * self.lengths[i];
            self.largest_gradient = self.largest_gradient.max(length);
            let step = rule.next(&Seen {
                length: self.learner.length(),
                gradient: length,
                // w·z of a hinge loss
                margin: -gradient
                    .entries()
                    .iter()
                    .map(|&(k, z)| z * scores[k])
                    .sum::<f64>(),
                slopes: gradient.length().powi(2),
                diagonal: &self.diagonal[i * kernels..(i + 1) * kernels],
            });
            if step.shrink < 1.0 {
                let follow = self.learner.shrink(step.shrink);
                self.follow(follow);
            }
            if !gradient.is_none() {
                for (&(class, _), out) in gradient
                    .entries()
                    .iter()
                    .zip(of_classes.chunks_mut(kernels))
                {
                    self.scores.of_class(place, class, out);
                }
                self.learner.add(
                    i,
                    step.step,
                    &gradient,
                    &of_classes,
                    &self.diagonal[i * kernels..(i + 1) * kernels],
                    &mut changes,
                );
                self.scores.update(place, &changes);
                self.updates += 1;
                if stage == Stage::Online {
                    self.online_updates[i] += 1;
                }
            }
            let follow = self.learner.project(rule.longest());
            self.follow(follow);
            self.learner.count();
            self.steps += 1;
            self.batch_steps += u64::from(stage == Stage::Batch);
        }
        self.scores.end();
    }

    /// Has values made at once for the samples of the block that would be updated now: most of those that will be.
    fn expect(&mut self, block: &[usize]) {
        let places = block.iter().enumerate();
        let lacking: Vec<(usize, usize)> = places
            .map(|(place, &i)| (place, i))
            .filter(|(_, i)| self.scores.lacks_values(*i))
            .collect();
        let likely: Vec<usize> = lacking
            .into_par_iter()
            .with_min_len(self.scores.samples_per_task())
            .filter(|&(place, i)| {
                let mut scores = vec![0.0; self.objective.outputs()];
                self.visit(place, &mut scores);
                !self.objective.gradient(i, &scores, 1.0).is_none()
            })
            .map(|(_, i)| i)
            .collect();
        self.scores.expect(&likely);
    }

    /// The scores of the sample at a place of the block.
    fn visit(&self, place: usize, scores: &mut [f64]) {
        let factor = self.learner.score_factor();
        self.scores.weighted(place, self.learner.weights(), scores);
        scores.iter_mut().for_each(|f| *f *= factor);
    }

    fn follow(&mut self, follow: Follow) {
        match follow {
            Follow::Nothing => {}
            Follow::Fold(factor) => self.scores.fold(factor),
            Follow::Forget => self.scores.forget(),
        }
    }

    /// Objective and a lower bound of the optimum, and lengths computed from scratch on the way.
    fn look(&mut self, stage: Stage) -> Epoch {
        let outputs = self.objective.outputs();
        let kept = self.learner.kept_coefficients();
        // β before the lengths are computed anew: the same but for rounding, and as good a w as any
        let weights = self.learner.weights().to_vec();
        let (squares, mut scores) = match self.scores.look(kept, &weights) {
            Some(seen) => seen,
            None => {
                let kept = Coefficients::new(kept, outputs);
                let scores = self.gram.combine(&weights).product(kept);
                (self.gram.quadratic_forms(kept), scores)
            }
        };
        self.learner.refresh(squares);
        let factor = self.learner.score_factor();
        scores.iter_mut().for_each(|s| *s *= factor);
        let coefficients = self.learner.model_coefficients();
        let forms = self.learner.model_forms();
        let primal = self.primal(&weights, &forms, &scores);
        let around = Around {
            objective: self.objective,
            norm: self.norm,
            coefficients: &coefficients,
            forms: &forms,
        };
        let asked = self.limits.tolerance > 0.0;
        let few = if asked { self.active.len() / FEW } else { 0 };
        let dual = around.dual(few, |_, scale, change| {
            // (τA + E)ᵀK(τA + E) = τ²AᵀKA + 2τEᵀKA + EᵀKE
            let cross = self.scores.products(change)?;
            let own = self
                .gram
                .quadratic_forms(Coefficients::new(change, outputs));
            Some(
                forms
                    .iter()
                    .zip(cross)
                    .zip(own)
                    .map(|((q, c), e)| scale * scale * q + 2.0 * scale * factor * c + e)
                    .collect(),
            )
        });
        let validation = self
            .validation
            .map(|validation| validation.measure(&weights, &coefficients));
        Epoch {
            stage,
            look: Round {
                seconds: self.begin.elapsed().as_secs_f64(),
                primal,
                dual,
                steps: self.steps,
            },
            updates: self.updates,
            validation,
        }
    }

    fn primal(&self, weights: &[f64], forms: &[f64], scores: &[f64]) -> f64 {
        let g: Vec<f64> = forms
            .iter()
            .zip(weights)
            .map(|(q, beta)| beta * q.max(0.0).sqrt())
            .collect();
        0.5 * self.norm.value(&g).powi(2) + self.objective.risk(scores)
    }

    /// The result with its certificate, from the kernels themselves.
    fn finish(self, status: Status) -> Solution {
        let outputs = self.objective.outputs();
        let coefficients = self
            .learner
            .mean_coefficients()
            .unwrap_or_else(|| self.learner.model_coefficients());
        let a = Coefficients::new(&coefficients, outputs);
        let forms = self.gram.quadratic_forms(a);
        let s: Vec<f64> = forms.iter().map(|q| q.sqrt()).collect();
        let mut weights = vec![0.0; s.len()];
        self.norm.dual_map(&s, &mut weights);
        let scores = self.gram.combine(&weights).product(a);
        let primal = self.primal(&weights, &forms, &scores);
        let around = Around {
            objective: self.objective,
            norm: self.norm,
            coefficients: &coefficients,
            forms: &forms,
        };
        let Point {
            coefficients: feasible,
            dual,
        } = around.point(|x, _, _| self.gram.quadratic_forms(Coefficients::new(x, outputs)));
        let bounds = self.bounds(&weights, &forms, &scores);
        let certificate = Certificate {
            primal,
            dual,
            risk: self.objective.risk(&scores),
            bias: 0.0,
        };
        let reached = certificate.relative_gap() <= self.limits.tolerance;
        Solution {
            coefficients,
            weights,
            certificate,
            feasible,
            status: match status {
                Status::MaxIterations if reached => Status::Converged,
                Status::Converged if !reached => Status::MaxIterations,
                other => other,
            },
            steps: self.steps,
            updates: self.updates,
            storage: self.scores.storage(),
            bounds,
            history: self.history,
        }
    }

    fn bounds(&self, weights: &[f64], forms: &[f64], scores: &[f64]) -> Bounds {
        let q = self.learner.q();
        let longest = self
            .active
            .iter()
            .map(|&i| self.shares[i] * self.lengths[i])
            .fold(0.0, f64::max);
        let gradient = match self.objective.lipschitz() {
            Some(slope) => slope * longest,
            None => self.largest_gradient,
        };
        let alike = self
            .active
            .iter()
            .all(|&i| (self.shares[i] - 1.0).abs() <= 1e-12);
        let counted = self.objective.counts_mistakes()
            && alike
            && self.settings.method == Method::Obscure
            && self.online_updates.iter().any(|u| *u > 0);
        let online_updates = counted.then(|| {
            let g: Vec<f64> = forms
                .iter()
                .zip(weights)
                .map(|(q, b)| b * q.sqrt())
                .collect();
            let rows = scores.chunks(self.objective.outputs()).enumerate();
            let losses = rows
                .map(|(i, row)| f64::from(self.online_updates[i]) * self.objective.loss(i, row))
                .sum();
            bounds::online_updates(self.settings.eta, q, gradient, self.norm.value(&g), losses)
        });
        let total = 1.0 / self.lambda;
        Bounds {
            gradient,
            radius: self.radius,
            excess: bounds::excess(self.lambda, q, self.radius, gradient, self.batch_steps)
                .map(|excess| total * excess),
            online_updates,
        }
    }
}

impl Validation<'_> {
    fn measure(&self, weights: &[f64], coefficients: &[f64]) -> f64 {
        let outputs = self.objective.outputs();
        let a = Coefficients::new(coefficients, outputs);
        let scores = self.gram.combine(weights).product(a);
        self.objective.quality(&scores)
    }
}
