//! The learner of OBSCURE: [`Theta`] with coefficients of a fixed set of samples, and the mean of its iterates.
//!
//! It knows neither data nor step rules: whoever drives it says which sample's coefficients change, by how much, and what the
//! kernels' scores of that sample are. Online learning drives the same θ with samples that come and go.

use crate::norm::BlockNorm;
use crate::problem::Gradient;
use crate::solve::steps::{Follow, Theta};

/// θ and w, up to the scores, which are kept elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Learner {
    theta: Theta,
    outputs: usize,
    /// ĉ: sample after sample, one number per output.
    coefficients: Vec<f64>,
    sums: Option<Sums>,
}

/// Σ_t θ_t = Σ_t σ_t θ̂_t without touching every coefficient at every step: θ̂ at the end counts with Σ σ_t, and what was
/// added to it on the way is taken back for the steps before.
#[derive(Debug, Clone)]
struct Sums {
    steps: u64,
    scales: f64,
    late: Vec<f64>,
}

impl Learner {
    pub(crate) fn new(norm: BlockNorm, samples: usize, outputs: usize, kernels: usize) -> Self {
        Learner {
            theta: Theta::new(norm, kernels),
            outputs,
            coefficients: vec![0.0; samples * outputs],
            sums: None,
        }
    }

    /// q, the dual exponent.
    pub(crate) fn q(&self) -> f64 {
        self.theta.q()
    }

    /// ‖θ‖_{2,q} = q ‖w‖_{2,p}.
    pub(crate) fn length(&self) -> f64 {
        self.theta.length()
    }

    /// β.
    pub(crate) fn weights(&self) -> &[f64] {
        self.theta.weights()
    }

    /// What scores K ĉ are multiplied by, beside β, to be scores of w.
    pub(crate) fn score_factor(&self) -> f64 {
        self.theta.score_factor()
    }

    /// ĉ, sample after sample: coefficients in the unit in which scores are kept.
    pub(crate) fn kept_coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// A = c/q, the coefficients of a model.
    pub(crate) fn model_coefficients(&self) -> Vec<f64> {
        let factor = self.score_factor();
        self.coefficients.iter().map(|c| factor * c).collect()
    }

    /// A_mᵀK_m A_m of the model.
    pub(crate) fn model_forms(&self) -> Vec<f64> {
        self.theta.model_forms()
    }

    /// θ ← factor·θ, 0 ≤ factor ≤ 1.
    pub(crate) fn shrink(&mut self, factor: f64) -> Follow {
        let follow = self.theta.shrink(factor);
        self.follow(follow)
    }

    /// θ ← θ − step·z for a gradient z at sample i, given K_m(i, i) and the sample's scores (K_m ĉ)_i of the gradient's
    /// outputs: one row of kernels for each.
    ///
    /// `changes` takes what was added to ĉ_i.
    pub(crate) fn add(
        &mut self,
        i: usize,
        step: f64,
        gradient: &Gradient,
        kernel_scores: &[f64],
        diagonal: &[f64],
        changes: &mut Vec<(usize, f64)>,
    ) {
        changes.clear();
        for &(k, slope) in gradient.entries() {
            let change = self.theta.change(step, slope);
            changes.push((k, change));
            self.coefficients[i * self.outputs + k] += change;
            if let Some(sums) = &mut self.sums {
                sums.late[i * self.outputs + k] += change * sums.scales;
            }
        }
        let rows = kernel_scores.chunks(diagonal.len());
        let changed = changes.iter().map(|(_, change)| *change).zip(rows);
        self.theta.add(changed, diagonal);
    }

    /// θ ← min(1, limit/‖θ‖_{2,q}) θ.
    pub(crate) fn project(&mut self, limit: f64) -> Follow {
        let follow = self.theta.project(limit);
        self.follow(follow)
    }

    /// Replaces ‖θ̂_m‖² by what a computation from scratch gave.
    pub(crate) fn refresh(&mut self, squares: Vec<f64>) {
        self.theta.refresh(squares);
    }

    /// Coefficients and sums follow θ.
    fn follow(&mut self, follow: Follow) -> Follow {
        match follow {
            Follow::Nothing => {}
            Follow::Forget => {
                if let Some(sums) = &mut self.sums {
                    // what was summed so far must survive without θ̂
                    for (late, c) in sums.late.iter_mut().zip(&self.coefficients) {
                        *late -= c * sums.scales;
                    }
                    sums.scales = 0.0;
                }
                self.coefficients.fill(0.0);
            }
            Follow::Fold(factor) => {
                self.coefficients.iter_mut().for_each(|c| *c *= factor);
                if let Some(sums) = &mut self.sums {
                    sums.scales /= factor;
                }
            }
        }
        follow
    }

    /// From here on θ is summed after every step.
    pub(crate) fn start_sums(&mut self) {
        self.sums = Some(Sums {
            steps: 0,
            scales: 0.0,
            late: vec![0.0; self.coefficients.len()],
        });
    }

    /// A step has ended.
    pub(crate) fn count(&mut self) {
        if let Some(sums) = &mut self.sums {
            sums.steps += 1;
            sums.scales += self.theta.scale();
        }
    }

    /// A = c/q of the mean θ; none if nothing was summed.
    pub(crate) fn mean_coefficients(&self) -> Option<Vec<f64>> {
        let sums = self.sums.as_ref().filter(|sums| sums.steps > 0)?;
        let factor = 1.0 / (sums.steps as f64 * self.q());
        let pairs = self.coefficients.iter().zip(&sums.late);
        Some(
            pairs
                .map(|(c, late)| factor * (c * sums.scales - late))
                .collect(),
        )
    }
}
