//! Group norms Ω on g = (‖w_1‖ … ‖w_M‖): value, dual value, and the maps that give the kernel weights β.
//!
//! With s_m = √(aᵀK_m a) and g_m = β_m s_m, two maps give the same β at the optimum:
//! * the **primal map**, the minimiser of ½ Σ g_m²/β_m for fixed w — for a block norm β_m = (g_m/Ω(g))^(2−r) (Kloft, Prop. 2);
//! * the **dual map**, the gradient of ½Ω*² in s over s — for a block norm β_m = (s_m/Ω*(s))^(r*−2) (OBSCURE's link function).
//!
//! Powers near r = 1 live in this module only. Where g (or s) is 0 altogether the maps give [`Norm::initial_weights`].

mod block;
mod elastic;
mod fixed;
mod mixed;
mod nonisotropic;
mod spec;

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use block::{AlongLine, BlockNorm};
pub use spec::{Exponent, NORMS, NormInfo, NormSpec};

use crate::error::{Error, Result};

/// Outputs below this share of the largest are as good as none for r > 2.
const LEAST_OUTPUT: f64 = 1e-6;
/// A weight of 0 whose kernel has output again returns with this share of what the dual map gives it.
const RETURN_SHARE: f64 = 1e-3;
/// The largest factor by which a weight step for r > 2 raises a weight.
const FASTEST_GROWTH: f64 = 10.0;

/// A norm that can be computed: what the user wrote, and what follows from it for the kernels at hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Norm {
    spec: NormSpec,
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Block(BlockNorm),
    /// The block norm of OM-2's corollary for so many kernels.
    BlockFor(usize, BlockNorm),
    Mixed(mixed::Groups),
    /// 0 < μ < 1
    Elastic(f64),
    NonIsotropic(nonisotropic::NonIsotropic),
    /// Weights that stay, one for each kernel.
    Fixed(Vec<f64>),
}

impl Norm {
    /// Makes what the user wrote computable for `n_kernels` kernels.
    ///
    /// `groups` (the group of each kernel) is needed by `mixed` only, `matrix` (E, row by row) by `noniso` only.
    pub fn new(spec: NormSpec, n_kernels: usize, groups: &[usize], matrix: &[f64]) -> Result<Self> {
        let shape = match &spec {
            NormSpec::Lp(p) => Shape::Block(BlockNorm::lp(*p)),
            NormSpec::Block(r) => Shape::Block(BlockNorm::block(*r)),
            NormSpec::BlockAuto => Shape::BlockFor(n_kernels, BlockNorm::auto(n_kernels)),
            NormSpec::Mixed if groups.len() != n_kernels || groups.is_empty() => {
                return Err(Error::input(
                    "norm mixed",
                    format!(
                        "there are groups for {} of {n_kernels} kernels",
                        groups.len()
                    ),
                    "name the group of every kernel",
                ));
            }
            NormSpec::Mixed => Shape::Mixed(mixed::Groups::new(groups)),
            NormSpec::Elastic(mu) if !(0.0..=1.0).contains(mu) => {
                return Err(Error::input(
                    "norm elastic",
                    format!("μ is {mu}"),
                    "give a number from 0 to 1",
                ));
            }
            // at its ends the elastic net is a block norm, and 1/μ or 1/(1−μ) would be infinite
            NormSpec::Elastic(0.0) => Shape::Block(BlockNorm::block(Exponent::new(1.0)?)),
            NormSpec::Elastic(1.0) => Shape::Block(BlockNorm::block(Exponent::new(2.0)?)),
            NormSpec::Elastic(mu) => Shape::Elastic(*mu),
            NormSpec::NonIsotropic(_) => {
                Shape::NonIsotropic(nonisotropic::NonIsotropic::new(matrix, n_kernels)?)
            }
        };
        Ok(Self { spec, shape })
    }

    /// Kloft's ℓp norm on the kernel weights, 1 ≤ p ≤ ∞.
    pub fn lp(p: f64) -> Result<Self> {
        Self::new(NormSpec::Lp(Exponent::new(p)?), 0, &[], &[])
    }

    /// The block norm ‖g‖_r, 1 ≤ r ≤ ∞.
    pub fn block(r: f64) -> Result<Self> {
        Self::new(NormSpec::Block(Exponent::new(r)?), 0, &[], &[])
    }

    /// The block norm of OM-2's corollary.
    pub fn block_auto(n_kernels: usize) -> Self {
        Self {
            spec: NormSpec::BlockAuto,
            shape: Shape::BlockFor(n_kernels, BlockNorm::auto(n_kernels)),
        }
    }

    /// MixNorm; `groups` holds the group of each kernel.
    pub fn mixed(groups: &[usize]) -> Result<Self> {
        Self::new(NormSpec::Mixed, groups.len(), groups, &[])
    }

    /// The elastic net, 0 ≤ μ ≤ 1.
    pub fn elastic(mu: f64) -> Result<Self> {
        Self::new(NormSpec::Elastic(mu), 0, &[], &[])
    }

    /// The non-isotropic norm of the matrix E (row by row), which came from `file`.
    pub fn non_isotropic(
        file: impl Into<PathBuf>,
        matrix: &[f64],
        n_kernels: usize,
    ) -> Result<Self> {
        Self::new(NormSpec::NonIsotropic(file.into()), n_kernels, &[], matrix)
    }

    /// Weights that were chosen before and stay: the norm lp:inf of kernels that are multiplied by them.
    ///
    /// # Errors
    /// If a weight is negative or not finite, or all are 0.
    pub fn fixed(weights: Vec<f64>) -> Result<Self> {
        let wrong = |w: &&f64| !(w.is_finite() && **w >= 0.0);
        if weights.iter().find(wrong).is_some() || weights.iter().all(|w| *w == 0.0) {
            return Err(Error::input(
                "kernel weights",
                "they are not numbers from 0 on, or all of them are 0",
                "give finite weights, some of them positive",
            ));
        }
        Ok(Self {
            spec: NormSpec::Lp(Exponent::new(f64::INFINITY)?),
            shape: Shape::Fixed(weights),
        })
    }

    /// Whether there are no weights to learn: r = 2, or weights that were given.
    pub fn fixes_weights(&self) -> bool {
        match &self.shape {
            Shape::Block(block) | Shape::BlockFor(_, block) => block.r() == 2.0,
            Shape::Fixed(_) => true,
            _ => false,
        }
    }

    /// Whether a kernel without output has an infinite weight at the optimum: r > 2 and mixed norms.
    pub(crate) fn rewards_silence(&self) -> bool {
        match &self.shape {
            Shape::Block(block) | Shape::BlockFor(_, block) => block.r() > 2.0,
            Shape::Mixed(_) => true,
            _ => false,
        }
    }

    /// What the user wrote.
    pub fn spec(&self) -> &NormSpec {
        &self.spec
    }

    /// The block norm this is; none for mixed, elastic and non-isotropic norms.
    pub fn as_block(&self) -> Option<&BlockNorm> {
        match &self.shape {
            Shape::Block(block) | Shape::BlockFor(_, block) => Some(block),
            _ => None,
        }
    }

    /// The group of each kernel for mixed norms, numbered without holes; none for others.
    pub fn groups(&self) -> Option<&[usize]> {
        match &self.shape {
            Shape::Mixed(groups) => Some(groups.of_kernel()),
            _ => None,
        }
    }

    /// Ω(g).
    pub fn value(&self, g: &[f64]) -> f64 {
        match &self.shape {
            Shape::Block(block) | Shape::BlockFor(_, block) => block.value(g),
            Shape::Mixed(groups) => groups.value(g),
            Shape::Elastic(mu) => elastic::value(*mu, g),
            Shape::NonIsotropic(norm) => norm.value(g),
            Shape::Fixed(weights) => fixed::value(weights, g),
        }
    }

    /// Ω*(s).
    pub fn dual(&self, s: &[f64]) -> f64 {
        match &self.shape {
            Shape::Block(block) | Shape::BlockFor(_, block) => block.dual(s),
            Shape::Mixed(groups) => groups.dual(s),
            Shape::Elastic(mu) => elastic::dual(*mu, s),
            Shape::NonIsotropic(norm) => norm.dual(s),
            Shape::Fixed(weights) => fixed::dual(weights, s),
        }
    }

    /// The weights that belong to the group norms g: the minimiser of ½ Σ g_m²/β_m.
    ///
    /// False, and β untouched, where g does not determine β: r = ∞ and mixed norms.
    #[must_use = "r = ∞ and mixed norms have no primal map"]
    pub fn primal_map(&self, g: &[f64], beta: &mut [f64]) -> bool {
        match &self.shape {
            Shape::Block(block) | Shape::BlockFor(_, block) => return block.primal_map(g, beta),
            Shape::Mixed(_) => return false,
            Shape::Elastic(mu) => elastic::primal_map(*mu, g, beta),
            Shape::NonIsotropic(norm) => norm.primal_map(g, beta),
            Shape::Fixed(weights) => beta.copy_from_slice(weights),
        }
        true
    }

    /// The weights that belong to s_m = √(aᵀK_m a): ∇½Ω*² is β_m s_m.
    ///
    /// Kernels with equal claims (r = 1, mixed) share. A kernel with s_m = 0 gets weight 0 (1 for r = 2).
    pub fn dual_map(&self, s: &[f64], beta: &mut [f64]) {
        match &self.shape {
            Shape::Block(block) | Shape::BlockFor(_, block) => block.dual_map(s, beta),
            Shape::Mixed(groups) => groups.dual_map(s, beta),
            Shape::Elastic(mu) => elastic::dual_map(*mu, s, beta),
            Shape::NonIsotropic(norm) => norm.dual_map(s, beta),
            Shape::Fixed(weights) => beta.copy_from_slice(weights),
        }
    }

    /// Scales weights to where the maps put theirs, keeping their ratios; elastic and mixed norms leave them as they are,
    /// since there other ratios go with another scale.
    pub fn normalize_weights(&self, beta: &mut [f64]) {
        match &self.shape {
            Shape::Block(block) | Shape::BlockFor(_, block) => block.normalize_weights(beta),
            Shape::NonIsotropic(norm) if block::largest(beta) > 0.0 => norm.normalize(beta),
            _ => {}
        }
    }

    /// The weights to start with: the dual map of kernels that are all alike.
    pub fn initial_weights(&self, n_kernels: usize) -> Vec<f64> {
        match &self.shape {
            Shape::Block(block) | Shape::BlockFor(_, block) => {
                vec![block.initial_weight(n_kernels); n_kernels]
            }
            Shape::Elastic(mu) => vec![elastic::initial_weight(*mu, n_kernels); n_kernels],
            Shape::Fixed(weights) => weights.clone(),
            Shape::Mixed(_) | Shape::NonIsotropic(_) => {
                let mut beta = vec![0.0; n_kernels];
                self.dual_map(&vec![1.0; n_kernels], &mut beta);
                beta
            }
        }
    }

    /// The weight step of an alternation with (nearly) exact solves for the coefficients: replaces the weights β, for which
    /// s was computed, by the next ones.
    ///
    /// The primal map of g_m = β_m s_m for r ≤ 2, elastic and non-isotropic norms (never increases the primal objective);
    /// the dual map of s for r ≥ 2 (never decreases the dual), because there the primal map runs away and for r < 2 the dual
    /// map oscillates; for mixed norms one of each. Keeps β while s = 0. The primal map would keep a weight of 0 for ever,
    /// which a kernel gets when its s happens to be 0: with an output again, it returns.
    pub fn weights(&self, s: &[f64], beta: &mut [f64]) {
        let top = block::largest(s);
        if top == 0.0 {
            return;
        }
        match &self.shape {
            Shape::Fixed(weights) => beta.copy_from_slice(weights),
            Shape::Mixed(groups) => groups.alternate(s, beta, LEAST_OUTPUT, FASTEST_GROWTH),
            Shape::Block(block) | Shape::BlockFor(_, block) if block.r() >= 2.0 => {
                // A kernel may have no output at the optimum, where its weight would be infinite: outputs below a millionth
                // of the largest count as that (which costs at most as much of the objective), and no weight grows too fast
                // for the coefficients to follow.
                let floored: Vec<f64> = s.iter().map(|s| s.max(LEAST_OUTPUT * top)).collect();
                let old = beta.to_vec();
                block.dual_map(&floored, beta);
                if block.r() > 2.0 {
                    for (beta, old) in beta.iter_mut().zip(old).filter(|(_, old)| *old > 0.0) {
                        *beta = beta.min(FASTEST_GROWTH * old);
                    }
                }
            }
            _ => {
                if s.iter()
                    .zip(&*beta)
                    .any(|(s, beta)| *s > 0.0 && *beta == 0.0)
                {
                    let mut claims = vec![0.0; s.len()];
                    self.dual_map(s, &mut claims);
                    for (beta, claim) in beta.iter_mut().zip(claims).filter(|(b, _)| **b == 0.0) {
                        *beta = RETURN_SHARE * claim;
                    }
                }
                // only ratios matter: dividing by the largest keeps the products in range
                let g: Vec<f64> = s
                    .iter()
                    .zip(beta.iter())
                    .map(|(s, beta)| s / top * beta)
                    .collect();
                let _ = self.primal_map(&g, beta);
            }
        }
    }
}

impl fmt::Display for Norm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

/// A norm as it is stored: enough to build it again, and checked again when it is.
#[derive(Serialize, Deserialize)]
struct Stored {
    written: NormSpec,
    #[serde(default, skip_serializing_if = "is_zero")]
    n_kernels: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    matrix: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weights: Vec<f64>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl From<Norm> for Stored {
    fn from(norm: Norm) -> Self {
        let mut stored = Stored {
            written: norm.spec,
            n_kernels: 0,
            groups: Vec::new(),
            matrix: Vec::new(),
            weights: Vec::new(),
        };
        match norm.shape {
            Shape::Fixed(weights) => stored.weights = weights,
            Shape::Block(_) | Shape::Elastic(_) => {}
            Shape::BlockFor(n_kernels, _) => stored.n_kernels = n_kernels,
            Shape::Mixed(groups) => {
                stored.groups = groups.of_kernel().to_vec();
                stored.n_kernels = stored.groups.len();
            }
            Shape::NonIsotropic(norm) => {
                stored.matrix = norm.matrix().to_vec();
                stored.n_kernels = stored.matrix.len().isqrt();
            }
        }
        stored
    }
}

impl TryFrom<Stored> for Norm {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        if !stored.weights.is_empty() {
            return Norm::fixed(stored.weights);
        }
        Norm::new(
            stored.written,
            stored.n_kernels,
            &stored.groups,
            &stored.matrix,
        )
    }
}

#[cfg(test)]
mod tests;
