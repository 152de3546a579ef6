//! Newton steps for the kernel weights at r = 1, where the weight map loses its guarantee.
//!
//! Problem: min over β ≥ 0, Σβ = 1 of J(β) = max_a Σ d_i(a_i) − ½ Σ_m β_m aᵀK_m a, convex in β, with
//!   ∂J/∂β_m = −½ q_m,   ∂²J/∂β_m∂β_l = (K_m a)_Fᵀ P (K_l a)_F,
//! F the samples strictly inside a piece of their dual term (they alone follow a change of β) and P the inverse of
//! K_β,FF + diag(curvature of d) on the subspace Σ a_F = const where there is a bias (Chapelle and Rakotomamonjy 2008).
//! The quadratic model is minimised on the simplex over the kernels that matter (weight, or nearly the largest q); the
//! caller solves for a at the new β and halves the step while the objective has not fallen. Convexity makes the halved
//! step succeed unless β is optimal already.
//!
//! Cost: |F|³/3 for the factor, |F|² per kernel that matters.

use super::rows::Rows;
use super::smo;
use crate::certificate::Problem;
use crate::gram::{Coefficients, Gram};
use crate::math;

/// More free samples than this make the factor too dear.
const MOST_FREE: usize = 6000;
/// At most so many kernels enter the model.
const MOST_KERNELS: usize = 64;
/// After so many halvings the step is as good as none: round-off decides.
const MOST_HALVINGS: u32 = 8;
/// Ridge on the free samples' kernel, relative to its mean diagonal: duplicates make it singular.
const RIDGE: f64 = 1e-9;

/// The best weights so far and the step from there that is being tried.
#[derive(Debug)]
pub(crate) struct Newton {
    best: Vec<f64>,
    primal: f64,
    halvings: u32,
}

impl Newton {
    pub(crate) fn new() -> Self {
        Newton {
            best: Vec::new(),
            primal: f64::INFINITY,
            halvings: 0,
        }
    }

    /// Replaces β by the next weights, given what the solver found for them; `newton_point` is the minimiser of the
    /// quadratic model around β, if that can be made.
    pub(crate) fn step(
        &mut self,
        forms: &[f64],
        primal: f64,
        weights: &mut [f64],
        newton_point: impl FnOnce(&[f64]) -> Option<Vec<f64>>,
    ) {
        if primal > self.primal && self.halvings < MOST_HALVINGS {
            self.halvings += 1;
            for (w, best) in weights.iter_mut().zip(&self.best) {
                *w = 0.5 * (*w + best);
            }
            return;
        }
        self.best = weights.to_vec();
        self.primal = primal;
        self.halvings = 0;
        match newton_point(weights) {
            Some(next) => weights.copy_from_slice(&next),
            None => {
                // The map's own step: slow, but downhill.
                let s = forms.iter().map(|q| q.sqrt());
                weights.iter_mut().zip(s).for_each(|(w, s)| *w *= s);
                let total: f64 = weights.iter().sum();
                if total > 0.0 {
                    weights.iter_mut().for_each(|w| *w /= total);
                } else {
                    weights.copy_from_slice(&self.best);
                }
            }
        }
    }
}

/// The minimiser of the quadratic model around β on the simplex; none if the model cannot be made.
pub(super) fn newton_point(
    gram: &Gram,
    rows: &mut Rows<'_>,
    problem: &Problem<'_>,
    state: &smo::Coefficients,
    weights: &[f64],
    forms: &[f64],
) -> Option<Vec<f64>> {
    let kernels = kernels_that_matter(weights, forms);
    let free = free_samples(problem, &state.a);
    if free.is_empty() || free.len() > MOST_FREE {
        return None;
    }
    let f = free.len();
    let mut matrix = free_matrix(rows, problem, state, &free);
    math::cholesky(&mut matrix, f)?;
    // z_m = L⁻¹ (K_m a)_F, with the part along L⁻¹1 taken out where there is a bias.
    let scores = gram.kernel_scores(&free, &kernels, Coefficients::single(&state.a));
    let column = |c: usize| -> Vec<f64> {
        let mut z: Vec<f64> = (0..f).map(|i| scores[i * kernels.len() + c]).collect();
        math::solve_lower(&matrix, &mut z);
        z
    };
    let mut z: Vec<Vec<f64>> = (0..kernels.len()).map(column).collect();
    if problem.bias {
        let mut ones = vec![1.0; f];
        math::solve_lower(&matrix, &mut ones);
        let size = math::dot(&ones, &ones);
        for z in &mut z {
            let along = math::dot(z, &ones) / size;
            z.iter_mut().zip(&ones).for_each(|(z, o)| *z -= along * o);
        }
    }
    minimize_model(weights, forms, &kernels, &z)
}

/// The minimiser on the simplex of the quadratic model whose Hessian is ⟨z_m, z_l⟩ for the kernels named.
pub(super) fn minimize_model(
    weights: &[f64],
    forms: &[f64],
    kernels: &[usize],
    z: &[Vec<f64>],
) -> Option<Vec<f64>> {
    let k = kernels.len();
    let mut hessian = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..=i {
            let value = math::dot(&z[i], &z[j]);
            hessian[i * k + j] = value;
            hessian[j * k + i] = value;
        }
    }
    let at: Vec<f64> = kernels.iter().map(|&m| weights[m]).collect();
    let gradient: Vec<f64> = kernels.iter().map(|&m| -0.5 * forms[m]).collect();
    let total: f64 = weights.iter().sum();
    let x = quadratic_on_simplex(&gradient, &hessian, &at, total)?;
    let mut next = vec![0.0; weights.len()];
    for (&m, x) in kernels.iter().zip(x) {
        next[m] = x / total;
    }
    Some(next)
}

/// Kernels with weight, and those whose q says that they should have some.
pub(super) fn kernels_that_matter(weights: &[f64], forms: &[f64]) -> Vec<usize> {
    let heaviest = weights.iter().fold(0.0f64, |a, &b| a.max(b));
    let largest = forms.iter().fold(0.0f64, |a, &b| a.max(b));
    let mut order: Vec<usize> = (0..weights.len()).collect();
    let claim = |m: usize| {
        let heavy = if weights[m] > 1e-9 * heaviest {
            1.0
        } else {
            0.0
        };
        heavy + forms[m] / largest.max(f64::MIN_POSITIVE)
    };
    order.sort_by(|&a, &b| claim(b).total_cmp(&claim(a)).then(a.cmp(&b)));
    order.truncate(MOST_KERNELS);
    order.sort_unstable();
    order
}

/// Samples strictly inside a piece of their dual term.
pub(super) fn free_samples(problem: &Problem<'_>, a: &[f64]) -> Vec<usize> {
    (0..a.len())
        .filter(|&i| {
            let (c, y) = (problem.costs[i], problem.targets[i]);
            let (low, high) = problem.loss.feasible(c, y);
            let (left, right) = problem.loss.dual_slopes(a[i], c, y);
            a[i] > low && a[i] < high && left == right
        })
        .collect()
}

/// K_FF plus the curvature of the dual terms, lower half.
fn free_matrix(
    rows: &mut Rows<'_>,
    problem: &Problem<'_>,
    state: &smo::Coefficients,
    free: &[usize],
) -> Vec<f64> {
    let f = free.len();
    let active: Vec<u32> = free.iter().map(|&i| i as u32).collect();
    let mut row = vec![0.0f32; state.a.len()];
    let mut matrix = vec![0.0; f * f];
    let mean = free.iter().map(|&i| rows.diagonal()[i]).sum::<f64>() / f as f64;
    for (k, &i) in free.iter().enumerate() {
        rows.fetch(i, &active, false, &mut row);
        let out = &mut matrix[k * f..k * f + k + 1];
        out.iter_mut()
            .zip(&row)
            .for_each(|(o, r)| *o = f64::from(*r));
        let bend = problem
            .loss
            .dual_curvature(state.a[i], problem.costs[i], problem.targets[i]);
        out[k] += bend + RIDGE * mean;
    }
    matrix
}

/// min gᵀx + ½ (x−x₀)ᵀH(x−x₀) over x ≥ 0, Σx = Σx₀ (scaled to `total`), by steps on the steepest pair.
fn quadratic_on_simplex(g: &[f64], h: &[f64], x0: &[f64], total: f64) -> Option<Vec<f64>> {
    let k = g.len();
    let sum: f64 = x0.iter().sum();
    if sum.is_nan() || sum <= 0.0 {
        return None;
    }
    let mut x: Vec<f64> = x0.iter().map(|v| v * total / sum).collect();
    let mut slope: Vec<f64> = (0..k)
        .map(|i| {
            let moved: f64 = (0..k).map(|j| h[i * k + j] * (x[j] - x0[j])).sum();
            g[i] + moved
        })
        .collect();
    let size = g.iter().fold(0.0f64, |a, v| a.max(v.abs()));
    for _ in 0..200 * k * k {
        let mut low = 0;
        let mut high = usize::MAX;
        for i in 0..k {
            if slope[i] < slope[low] {
                low = i;
            }
            if x[i] > 0.0 && (high == usize::MAX || slope[i] > slope[high]) {
                high = i;
            }
        }
        if high == usize::MAX || slope[high] - slope[low] <= 1e-12 * size {
            break;
        }
        let bend = h[low * k + low] + h[high * k + high] - 2.0 * h[low * k + high];
        let step = ((slope[high] - slope[low]) / bend.max(f64::MIN_POSITIVE)).min(x[high]);
        x[low] += step;
        x[high] -= step;
        for i in 0..k {
            slope[i] += step * (h[i * k + low] - h[i * k + high]);
        }
    }
    x.iter().all(|v| v.is_finite()).then_some(x)
}
