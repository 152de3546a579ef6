//! The learner that OBSCURE and online learning share: θ = Σ_i c_i φ(x_i, ·), its length in every kernel, and the link from
//! θ to the weight vectors w_m = (1/q) β_m θ_m, β the norm's dual map of the lengths.
//!
//! It knows neither data nor step rules: whoever drives it says which sample's coefficients change, by how much, and what the
//! kernels' scores of that sample are.
//!
//! θ = σ θ̂: scaling all of it costs one multiplication, and an update is divided by σ instead of folding σ into coefficients
//! and scores. One scalar serves all classes, since every class is scaled alike.

use super::objective::Gradient;
use crate::norm::BlockNorm;

/// Below this scale the coefficients are multiplied by it and it starts from 1 again: far above where numbers end.
const LEAST_SCALE: f64 = 1e-60;

/// θ and w, up to the scores, which are kept elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Learner {
    norm: BlockNorm,
    outputs: usize,
    /// ĉ: sample after sample, one number per output.
    coefficients: Vec<f64>,
    /// σ
    scale: f64,
    /// ‖θ̂_m‖²
    squares: Vec<f64>,
    /// β
    weights: Vec<f64>,
    /// ‖θ̂‖_{2,q}
    length: f64,
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

/// How the scores are to follow: `Fold` all scores by a factor, or forget them.
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub(crate) enum Follow {
    Nothing,
    Fold(f64),
    Forget,
}

impl Learner {
    pub(crate) fn new(norm: BlockNorm, samples: usize, outputs: usize, kernels: usize) -> Self {
        let mut learner = Learner {
            norm,
            outputs,
            coefficients: vec![0.0; samples * outputs],
            scale: 1.0,
            squares: vec![0.0; kernels],
            weights: vec![0.0; kernels],
            length: 0.0,
            sums: None,
        };
        learner.link();
        learner
    }

    /// q, the dual exponent.
    pub(crate) fn q(&self) -> f64 {
        self.norm.r_dual()
    }

    /// ‖θ‖_{2,q} = q ‖w‖_{2,p}.
    pub(crate) fn length(&self) -> f64 {
        self.scale * self.length
    }

    /// β.
    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// What scores K ĉ are multiplied by, beside β, to be scores of w.
    pub(crate) fn score_factor(&self) -> f64 {
        self.scale / self.q()
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
        let factor = self.score_factor().powi(2);
        self.squares.iter().map(|q| factor * q).collect()
    }

    /// The scores of a sample from its kernels' scores (K_m ĉ)_i: one row of kernels for each output.
    pub(crate) fn scores(&self, kernel_scores: &[f64], out: &mut [f64]) {
        let factor = self.score_factor();
        weighted_sums(kernel_scores, &self.weights, out);
        out.iter_mut().for_each(|f| *f *= factor);
    }

    /// θ ← factor·θ, 0 ≤ factor ≤ 1.
    pub(crate) fn shrink(&mut self, factor: f64) -> Follow {
        self.scale *= factor;
        if self.scale == 0.0 {
            if let Some(sums) = &mut self.sums {
                // what was summed so far must survive without θ̂
                for (late, c) in sums.late.iter_mut().zip(&self.coefficients) {
                    *late -= c * sums.scales;
                }
                sums.scales = 0.0;
            }
            self.coefficients.fill(0.0);
            self.squares.fill(0.0);
            self.scale = 1.0;
            self.link();
            return Follow::Forget;
        }
        if self.scale < LEAST_SCALE {
            let factor = self.scale;
            self.coefficients.iter_mut().for_each(|c| *c *= factor);
            self.squares.iter_mut().for_each(|q| *q *= factor * factor);
            self.length *= factor;
            self.scale = 1.0;
            if let Some(sums) = &mut self.sums {
                sums.scales /= factor;
            }
            return Follow::Fold(factor);
        }
        Follow::Nothing
    }

    /// θ ← θ − step·z for a gradient z at sample i, given the sample's scores (K_m ĉ)_i and K_m(i, i).
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
        let mut squares = 0.0;
        let kernels = self.weights.len();
        for &(k, slope) in gradient.entries() {
            let change = -step * slope / self.scale;
            changes.push((k, change));
            squares += change * change;
            self.coefficients[i * self.outputs + k] += change;
            if let Some(sums) = &mut self.sums {
                sums.late[i * self.outputs + k] += change * sums.scales;
            }
            let row = &kernel_scores[k * kernels..(k + 1) * kernels];
            for (q, f) in self.squares.iter_mut().zip(row) {
                *q += 2.0 * change * f;
            }
        }
        for (q, d) in self.squares.iter_mut().zip(diagonal) {
            *q = (*q + squares * d).max(0.0);
        }
        self.link();
    }

    /// θ ← min(1, limit/‖θ‖_{2,q}) θ.
    pub(crate) fn project(&mut self, limit: f64) -> Follow {
        let length = self.length();
        if length > limit {
            self.shrink(limit / length)
        } else {
            Follow::Nothing
        }
    }

    /// Replaces ‖θ̂_m‖² by what a computation from scratch gave.
    pub(crate) fn refresh(&mut self, squares: Vec<f64>) {
        self.squares = squares;
        self.squares.iter_mut().for_each(|q| *q = q.max(0.0));
        self.link();
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
            sums.scales += self.scale;
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

    fn link(&mut self) {
        self.length = self
            .norm
            .dual_map_of_squares(&self.squares, &mut self.weights);
    }
}

/// Σ_m row_m β_m for every row, in a fixed order.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn weighted_sums(rows: &[f64], weights: &[f64], out: &mut [f64]) {
    const LANES: usize = 8;
    let (betas, rest_of_betas) = weights.as_chunks::<LANES>();
    for (out, row) in out.iter_mut().zip(rows.chunks_exact(weights.len())) {
        let mut lanes = [0.0; LANES];
        let (parts, rest) = row.as_chunks::<LANES>();
        for (r, b) in parts.iter().zip(betas) {
            for l in 0..LANES {
                lanes[l] += r[l] * b[l];
            }
        }
        let rest: f64 = rest.iter().zip(rest_of_betas).map(|(r, b)| r * b).sum();
        *out = lanes.iter().sum::<f64>() + rest;
    }
}
