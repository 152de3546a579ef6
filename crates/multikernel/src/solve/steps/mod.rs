//! Steps that stream and batch share, one file for each algorithm and in its paper's letters: OBSCURE and Pegasos-MKL
//! ([`obscure`]), OM-2 ([`om2`]), PA-I ([`passive_aggressive`]), OMCL ([`omcl`]).
//!
//! All but OMCL step in one vector θ = Σ_i c_i φ(x_i, ·), whose link gives w ([`Theta`]). An algorithm sees a [`Visit`]: θ,
//! and z = ∂ℓ(w, x_t, y_t) at the sample of round t. Coefficients and scores are kept by whoever drives it, as an
//! [`Expansion`]: over a training set (`solve/stochastic`), over structured outputs there, over the support of a stream
//! (`online`). One visit has the cost of the scores that the expansion is asked for.

pub(crate) mod obscure;
pub(crate) mod om2;
pub(crate) mod omcl;
pub(crate) mod passive_aggressive;
mod theta;

pub(crate) use theta::{Lengths, Rescale, Theta, weighted_sums};

use crate::problem::Gradient;
use obscure::Stage2;

/// The algorithms whose rounds are steps of θ.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Algorithm {
    /// OBSCURE's Algorithm 1.
    Stage1 {
        /// η
        eta: f64,
    },
    /// OBSCURE's Algorithm 2, and Pegasos-MKL.
    Stage2(Stage2),
    /// OM-2's Algorithm 1.
    Om2,
    /// PA-I on the average kernel, in θ at r = 2.
    PassiveAggressive {
        /// C
        c: f64,
    },
}

impl Algorithm {
    /// One round. Gives the η of −η z; 0 if nothing of z was added.
    pub(crate) fn step(&mut self, visit: &mut Visit<'_, impl Expansion>) -> f64 {
        match self {
            Algorithm::Stage1 { eta } => obscure::stage_1(*eta, visit),
            Algorithm::Stage2(stage) => stage.step(visit),
            Algorithm::Om2 => om2::step(visit),
            Algorithm::PassiveAggressive { c } => passive_aggressive::step(*c, visit),
        }
    }
}

/// z = ∂ℓ(w, x, y) at one sample: its slopes in the scores, and how long the sample is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subgradient<'a> {
    /// ∂ℓ/∂f_k of the scores with a slope.
    pub(crate) slopes: Gradient,
    /// −w·z, which is the margin of a hinge loss.
    pub(crate) margin: f64,
    /// ‖φ_m(x)‖²
    pub(crate) diagonal: &'a [f64],
    /// ‖φ(x)‖_{2,q}
    pub(crate) sample_length: f64,
}

impl Subgradient<'_> {
    /// ‖z‖_{2,q}
    pub(crate) fn length(&self) -> f64 {
        self.slopes.length() * self.sample_length
    }

    /// ‖z‖²_{2,q}
    pub(crate) fn square(&self) -> f64 {
        self.slopes.square() * self.sample_length * self.sample_length
    }
}

/// Who keeps θ̂ = Σ_i ĉ_i φ(x_i, ·): its coefficients, and the scores computed from them.
pub(crate) trait Expansion {
    /// Coefficients and scores follow θ̂.
    fn rescale(&mut self, rescale: Rescale);

    /// (K_m ĉ)_k of the sample visited, for every kernel m.
    fn kernel_scores(&mut self, k: usize, out: &mut [f64]);

    /// Adds to ĉ_k of the sample visited, for some k.
    fn add(&mut self, changes: &[(usize, f64)]);
}

/// Round t of an algorithm: θ, and z at the sample drawn.
#[derive(Debug)]
pub(crate) struct Visit<'a, E> {
    pub(crate) theta: &'a mut Theta,
    pub(crate) expansion: E,
    pub(crate) z: Subgradient<'a>,
}

impl<E: Expansion> Visit<'_, E> {
    /// θ ← factor·θ, 0 ≤ factor ≤ 1; w stays the link of it.
    pub(crate) fn scale(&mut self, factor: f64) {
        if factor < 1.0 {
            let rescale = self.theta.scale_by(factor);
            self.expansion.rescale(rescale);
        }
    }

    /// θ ← min(1, limit/‖θ‖_{2,q}) θ.
    pub(crate) fn project(&mut self, limit: f64) {
        let length = self.theta.length();
        if length > limit {
            self.scale(limit / length);
        }
    }

    /// θ ← θ − η z, and w by the link. Gives η; 0 if nothing was added.
    pub(crate) fn subtract(&mut self, eta: f64) -> f64 {
        let slopes = self.z.slopes.entries();
        if eta == 0.0 || slopes.is_empty() {
            return 0.0;
        }
        let kernels = self.z.diagonal.len();
        let mut rows = vec![0.0; slopes.len() * kernels];
        let mut changes = [(0, 0.0); 2];
        let changes = &mut changes[..slopes.len()];
        for ((change, &(k, slope)), row) in
            changes.iter_mut().zip(slopes).zip(rows.chunks_mut(kernels))
        {
            *change = (k, -eta * slope / self.theta.scale());
            self.expansion.kernel_scores(k, row);
        }
        let changed = changes.iter().map(|(_, change)| *change);
        self.theta
            .add(changed.zip(rows.chunks(kernels)), self.z.diagonal);
        self.expansion.add(changes);
        eta
    }
}
