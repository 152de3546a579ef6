//! What a run is worth: the look at the end of an epoch, the certificate of the result, the bounds of the theorems.

use super::feasible::{FeasibleNear, FeasiblePoint};
use super::run::Run;
use super::{Bounds, Epoch, Method, Solution, Stage, Validation, bounds};
use crate::gram::Coefficients;
use crate::problem::{Certificate, Round, Status};

/// A look corrects the dual point for clipped samples if they are at most a quarter of all: its cost grows with their square.
const FEW: usize = 4;

impl Run<'_> {
    /// A = c/q, the coefficients of the model.
    fn model_coefficients(&self) -> Vec<f64> {
        let factor = self.theta.score_factor();
        let kept = self.expansion.coefficients().iter();
        kept.map(|c| factor * c).collect()
    }

    /// Objective and a lower bound of the optimum, and lengths computed from scratch on the way.
    pub(super) fn look(&mut self, stage: Stage) -> Epoch {
        let (gram, outputs) = (self.task.gram, self.task.objective.outputs());
        let kept = self.expansion.coefficients().to_vec();
        // β before the lengths are computed anew: the same but for rounding, and as good a w as any
        let weights = self.theta.weights().to_vec();
        let (squares, mut scores) = match self.expansion.scores.look(&kept, &weights) {
            Some(seen) => seen,
            None => {
                let kept = Coefficients::new(&kept, outputs);
                let scores = gram.combine(&weights).product(kept);
                (gram.quadratic_forms(kept), scores)
            }
        };
        self.theta.refresh(squares);
        let factor = self.theta.score_factor();
        scores.iter_mut().for_each(|s| *s *= factor);
        let coefficients = self.model_coefficients();
        let forms = self.theta.model_forms();
        let asked = self.task.limits.tolerance > 0.0;
        let few = if asked {
            self.samples.active.len() / FEW
        } else {
            0
        };
        let dual = self
            .near(&coefficients, &forms)
            .dual(few, |_, scale, change| {
                // (τA + E)ᵀK(τA + E) = τ²AᵀKA + 2τEᵀKA + EᵀKE
                let cross = self.expansion.scores.products(change)?;
                let own = gram.quadratic_forms(Coefficients::new(change, outputs));
                let terms = forms.iter().zip(cross).zip(own);
                let of = |((q, c), e)| scale * scale * q + 2.0 * scale * factor * c + e;
                Some(terms.map(of).collect())
            });
        let validation = self.task.validation;
        Epoch {
            stage,
            look: Round {
                seconds: self.watch.seconds(),
                primal: self.primal(&weights, &forms, &scores),
                dual,
                steps: self.steps,
            },
            updates: self.updates,
            validation: validation.map(|v| v.measure(&weights, &coefficients)),
        }
    }

    fn near<'r>(&'r self, coefficients: &'r [f64], forms: &'r [f64]) -> FeasibleNear<'r> {
        FeasibleNear {
            objective: self.task.objective,
            norm: self.task.norm,
            coefficients,
            forms,
        }
    }

    /// Ω(g) with g_m = β_m √(A_mᵀK_m A_m).
    fn norm_of(&self, weights: &[f64], forms: &[f64]) -> f64 {
        let pairs = forms.iter().zip(weights);
        let g: Vec<f64> = pairs.map(|(q, beta)| beta * q.max(0.0).sqrt()).collect();
        self.task.norm.value(&g)
    }

    fn primal(&self, weights: &[f64], forms: &[f64], scores: &[f64]) -> f64 {
        0.5 * self.norm_of(weights, forms).powi(2) + self.task.objective.risk(scores)
    }

    /// The result with its certificate, from the kernels themselves.
    pub(super) fn finish(self, status: Status) -> Solution {
        let (gram, objective) = (self.task.gram, self.task.objective);
        let outputs = objective.outputs();
        let mean = self.expansion.mean_coefficients(self.theta.q());
        let coefficients = mean.unwrap_or_else(|| self.model_coefficients());
        let a = Coefficients::new(&coefficients, outputs);
        let forms = gram.quadratic_forms(a);
        let s: Vec<f64> = forms.iter().map(|q| q.sqrt()).collect();
        let mut weights = vec![0.0; s.len()];
        self.task.norm.dual_map(&s, &mut weights);
        let scores = gram.combine(&weights).product(a);
        let FeasiblePoint {
            coefficients: feasible,
            dual,
        } = self
            .near(&coefficients, &forms)
            .point(|x, _, _| gram.quadratic_forms(Coefficients::new(x, outputs)));
        let certificate = Certificate {
            primal: self.primal(&weights, &forms, &scores),
            dual,
            risk: objective.risk(&scores),
            bias: 0.0,
        };
        let reached = certificate.relative_gap() <= self.task.limits.tolerance;
        Solution {
            bounds: self.bounds(&weights, &forms, &scores),
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
            storage: self.expansion.scores.storage(),
            history: self.history,
        }
    }

    /// What theorems 3 and 4 promise.
    fn bounds(&self, weights: &[f64], forms: &[f64], scores: &[f64]) -> Bounds {
        let (objective, q) = (self.task.objective, self.theta.q());
        let (shares, lengths) = (&self.samples.shares, &self.samples.lengths);
        let gradient = match objective.lipschitz() {
            Some(slope) => {
                let longest = self.samples.active.iter().map(|&i| shares[i] * lengths[i]);
                slope * longest.fold(0.0, f64::max)
            }
            None => self.largest_gradient,
        };
        let mut shares = self.samples.active.iter().map(|&i| shares[i]);
        let settings = self.task.settings;
        let counted = objective.counts_mistakes()
            && shares.all(|share| (share - 1.0).abs() <= 1e-12)
            && settings.method == Method::Obscure
            && self.online_updates.iter().any(|u| *u > 0);
        let online_updates = counted.then(|| {
            let rows = scores.chunks(objective.outputs()).enumerate();
            let losses = rows
                .map(|(i, row)| f64::from(self.online_updates[i]) * objective.loss(i, row))
                .sum();
            let norm = self.norm_of(weights, forms);
            bounds::online_updates(settings.eta, q, gradient, norm, losses)
        });
        let excess = bounds::excess(self.lambda, q, self.radius, gradient, self.batch_steps);
        Bounds {
            gradient,
            radius: self.radius,
            excess: excess.map(|excess| 1.0 / self.lambda * excess),
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
