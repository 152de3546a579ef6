//! θ seen through its lengths: ‖θ_m‖ in every kernel, and the link to the weight vectors w_m = (1/q) β_m θ_m (or another factor), β
//! the norm's dual map of the lengths. Its coefficients are kept by whoever drives it: samples of a training set, or of a stream.
//!
//! θ = σ θ̂: scaling all of it costs one multiplication, and an update is divided by σ instead of folding σ into coefficients
//! and scores. One scalar serves all classes, since every class is scaled alike.

use crate::norm::BlockNorm;

/// Below this σ the coefficients are multiplied by it and it starts from 1 again, far above the smallest number.
const LEAST_SCALE: f64 = 1e-60;

/// θ and w, up to coefficients and scores, which are kept elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Theta {
    norm: BlockNorm,
    /// The factor of the link.
    link: f64,
    at: Lengths,
}

/// Where θ is, as far as lengths tell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lengths {
    /// σ
    pub(crate) scale: f64,
    /// ‖θ̂‖_{2,q}
    pub(crate) length: f64,
    /// ‖θ̂_m‖²
    pub(crate) squares: Vec<f64>,
    /// β
    pub(crate) weights: Vec<f64>,
}

/// How coefficients and scores follow when θ̂ is rescaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rescale {
    /// They stay: only σ has changed.
    Nothing,
    /// All of them are multiplied by a factor.
    By(f64),
    /// All of them are 0 now.
    Reset,
}

impl Theta {
    /// θ = 0.
    pub(crate) fn new(norm: BlockNorm, kernels: usize) -> Self {
        let mut theta = Theta::restored(
            norm,
            Lengths {
                scale: 1.0,
                length: 0.0,
                squares: vec![0.0; kernels],
                weights: vec![0.0; kernels],
            },
        );
        theta.link();
        theta
    }

    /// A θ that was kept in a file.
    pub(crate) fn restored(norm: BlockNorm, at: Lengths) -> Self {
        Theta {
            norm,
            link: 1.0 / norm.r_dual(),
            at,
        }
    }

    /// With another factor than 1/q in the link.
    pub(crate) fn with_link(self, link: f64) -> Self {
        Theta { link, ..self }
    }

    /// Its numbers, for a file.
    pub(crate) fn lengths(&self) -> &Lengths {
        &self.at
    }

    /// q, the dual exponent.
    pub(crate) fn q(&self) -> f64 {
        self.norm.r_dual()
    }

    /// ‖θ‖_{2,q}, which is q ‖w‖_{2,p} with the usual link.
    pub(crate) fn length(&self) -> f64 {
        self.at.scale * self.at.length
    }

    /// ‖φ(x)‖_{2,q} of a sample with these ‖φ_m(x)‖².
    pub(crate) fn length_of(&self, diagonal: &[f64]) -> f64 {
        self.norm
            .dual_map_of_squares(diagonal, &mut vec![0.0; diagonal.len()])
    }

    /// β.
    pub(crate) fn weights(&self) -> &[f64] {
        &self.at.weights
    }

    /// What scores K ĉ are multiplied by, beside β, to be scores of w.
    pub(crate) fn score_factor(&self) -> f64 {
        self.at.scale * self.link
    }

    /// A_mᵀK_m A_m of the model.
    pub(crate) fn model_forms(&self) -> Vec<f64> {
        let factor = self.score_factor().powi(2);
        self.at.squares.iter().map(|q| factor * q).collect()
    }

    /// The scores of a sample from its kernels' scores (K_m ĉ)_i: one row of kernels for each output.
    pub(crate) fn scores(&self, kernel_scores: &[f64], out: &mut [f64]) {
        let factor = self.score_factor();
        weighted_sums(kernel_scores, &self.at.weights, out);
        out.iter_mut().for_each(|f| *f *= factor);
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
            for (q, f) in self.at.squares.iter_mut().zip(scores) {
                *q += 2.0 * change * f;
            }
        }
        for (q, d) in self.at.squares.iter_mut().zip(diagonal) {
            *q = (*q + squares * d).max(0.0);
        }
        self.link();
    }

    /// θ ← factor·θ, 0 ≤ factor ≤ 1.
    #[must_use]
    pub(super) fn scale_by(&mut self, factor: f64) -> Rescale {
        self.at.scale *= factor;
        if self.at.scale == 0.0 {
            self.at.squares.fill(0.0);
            self.at.scale = 1.0;
            self.link();
            return Rescale::Reset;
        }
        if self.at.scale < LEAST_SCALE {
            let factor = self.at.scale;
            self.at
                .squares
                .iter_mut()
                .for_each(|q| *q *= factor * factor);
            self.at.length *= factor;
            self.at.scale = 1.0;
            return Rescale::By(factor);
        }
        Rescale::Nothing
    }

    /// Replaces ‖θ̂_m‖² by what a computation from scratch gave.
    pub(crate) fn refresh(&mut self, squares: Vec<f64>) {
        self.at.squares = squares;
        self.at.squares.iter_mut().for_each(|q| *q = q.max(0.0));
        self.link();
    }

    /// σ
    pub(crate) fn scale(&self) -> f64 {
        self.at.scale
    }

    fn link(&mut self) {
        let Lengths {
            squares, weights, ..
        } = &mut self.at;
        self.at.length = self.norm.dual_map_of_squares(squares, weights);
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
