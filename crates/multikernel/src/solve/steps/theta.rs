//! θ seen through its lengths: ‖θ_m‖ in every kernel, and the link to the weight vectors w_m = (1/q) β_m θ_m (or another factor), β
//! the norm's dual map of the lengths. Its coefficients are kept by whoever drives it: samples of a training set, or of a stream.
//!
//! θ = σ θ̂: scaling all of it costs one multiplication, and an update is divided by σ instead of folding σ into coefficients
//! and scores. One scalar serves all classes, since every class is scaled alike.

use crate::norm::BlockNorm;

/// Below this scale the coefficients are multiplied by it and it starts from 1 again: far above where numbers end.
const LEAST_SCALE: f64 = 1e-60;

/// θ and w, up to coefficients and scores, which are kept elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Theta {
    norm: BlockNorm,
    /// The factor of the link.
    link: f64,
    /// σ
    scale: f64,
    /// ‖θ̂_m‖²
    squares: Vec<f64>,
    /// β
    weights: Vec<f64>,
    /// ‖θ̂‖_{2,q}
    length: f64,
}

/// How coefficients and scores are to follow: `Fold` all of them by a factor, or forget them.
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub(crate) enum Follow {
    Nothing,
    Fold(f64),
    Forget,
}

/// The numbers of a θ, for a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lengths {
    pub(crate) scale: f64,
    pub(crate) length: f64,
    pub(crate) squares: Vec<f64>,
    pub(crate) weights: Vec<f64>,
}

impl Theta {
    /// θ = 0.
    pub(crate) fn new(norm: BlockNorm, kernels: usize) -> Self {
        let mut theta = Theta {
            norm,
            link: 1.0 / norm.r_dual(),
            scale: 1.0,
            squares: vec![0.0; kernels],
            weights: vec![0.0; kernels],
            length: 0.0,
        };
        theta.link();
        theta
    }

    /// A θ that was kept in a file.
    pub(crate) fn restored(norm: BlockNorm, lengths: Lengths) -> Self {
        Theta {
            norm,
            link: 1.0 / norm.r_dual(),
            scale: lengths.scale,
            squares: lengths.squares,
            weights: lengths.weights,
            length: lengths.length,
        }
    }

    /// With another factor than 1/q in the link.
    pub(crate) fn with_link(self, link: f64) -> Self {
        Theta { link, ..self }
    }

    /// Its numbers, for a file.
    pub(crate) fn lengths(&self) -> Lengths {
        Lengths {
            scale: self.scale,
            length: self.length,
            squares: self.squares.clone(),
            weights: self.weights.clone(),
        }
    }

    /// q, the dual exponent.
    pub(crate) fn q(&self) -> f64 {
        self.norm.r_dual()
    }

    /// ‖θ‖_{2,q}, which is q ‖w‖_{2,p} with the usual link.
    pub(crate) fn length(&self) -> f64 {
        self.scale * self.length
    }

    /// ‖φ(x)‖_{2,q} of a sample with these K_m(x, x).
    pub(crate) fn length_of(&self, diagonal: &[f64], spare: &mut [f64]) -> f64 {
        self.norm.dual_map_of_squares(diagonal, spare)
    }

    /// β.
    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// What scores K ĉ are multiplied by, beside β, to be scores of w.
    pub(crate) fn score_factor(&self) -> f64 {
        self.scale * self.link
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

    /// What is added to ĉ for a step along −slope.
    pub(crate) fn change(&self, step: f64, slope: f64) -> f64 {
        -step * slope / self.scale
    }

    /// The lengths after changes at a sample: what is added to ĉ of an output, and the sample's scores (K_m ĉ) of that output; given
    /// its K_m(x, x).
    pub(crate) fn add<'s>(
        &mut self,
        changes: impl Iterator<Item = (f64, &'s [f64])>,
        diagonal: &[f64],
    ) {
        let mut squares = 0.0;
        for (change, scores) in changes {
            squares += change * change;
            for (q, f) in self.squares.iter_mut().zip(scores) {
                *q += 2.0 * change * f;
            }
        }
        for (q, d) in self.squares.iter_mut().zip(diagonal) {
            *q = (*q + squares * d).max(0.0);
        }
        self.link();
    }

    /// θ ← factor·θ, 0 ≤ factor ≤ 1.
    pub(crate) fn shrink(&mut self, factor: f64) -> Follow {
        self.scale *= factor;
        if self.scale == 0.0 {
            self.squares.fill(0.0);
            self.scale = 1.0;
            self.link();
            return Follow::Forget;
        }
        if self.scale < LEAST_SCALE {
            let factor = self.scale;
            self.squares.iter_mut().for_each(|q| *q *= factor * factor);
            self.length *= factor;
            self.scale = 1.0;
            return Follow::Fold(factor);
        }
        Follow::Nothing
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

    /// σ
    pub(crate) fn scale(&self) -> f64 {
        self.scale
    }

    fn link(&mut self) {
        self.length = self
            .norm
            .dual_map_of_squares(&self.squares, &mut self.weights);
    }
}

/// Σ_m row_m β_m for every row, in a fixed order.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
pub(crate) fn weighted_sums(rows: &[f64], weights: &[f64], out: &mut [f64]) {
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
