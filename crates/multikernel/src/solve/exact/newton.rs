//! Newton steps for the kernel weights.
//!
//! Problem: min over β of J(β) = max_a Σ d_i(a_i) − ½ Σ_m β_m aᵀK_m a, on the simplex at r = 1, on the unit ball of ‖·‖_p,
//! p = r/(2−r), at 1 < r < 2. J is convex in β, with
//!   ∂J/∂β_m = −½ q_m,   H_ml = ∂²J/∂β_m∂β_l = (K_m a)_Fᵀ P (K_l a)_F,
//! F the samples strictly inside a piece of their dual term (they alone follow a change of β) and P the inverse of
//! K_β,FF + diag(curvature of d) on the subspace Σ a_F = const where there is a bias (Chapelle and Rakotomamonjy 2008).
//!
//! At r = 1, where the weight map loses its guarantee, the quadratic model is minimised on the simplex over the kernels that matter
//! (weight, or nearly the largest q); the caller solves for a at the new β and halves the step while the objective has not fallen.
//! Convexity makes the halved step succeed unless β is optimal already.
//!
//! At r > 1 the step goes to the fixed point of the weight map T(β)_m ∝ (β_m √q_m)^(2−r) as the model foretells it: with x = ln β
//! and ∂ ln q_m/∂x_l = −2 H_ml β_l/q_m, D = diag(βq) and B = diag(β),
//!   ((r−1) D + (2−r) B H B) Δx = D (ln T(β) − ln β + c),   c such that ‖β‖_p stays as it is.
//!
//! The coefficients follow: Δa_F = −P Σ_m Δβ_m (K_m a)_F.
//!
//! Cost: |F|³/3 for the factor, |F|² per kernel that matters.

use super::CombinedRows;
use super::newton_scalar::FreeSamples;
use crate::math;

/// Kernels that enter the model at most.
pub(super) const MOST_KERNELS: usize = 512;
/// Kernels at most where the model is minimised on the simplex, in steps on pairs of them.
pub(super) const MOST_ON_SIMPLEX: usize = 64;
/// Halvings after which the step is as good as none: round-off decides.
const MOST_HALVINGS: u32 = 8;
/// Newton steps on coefficients in one call at most.
pub(super) const MOST_STEPS: usize = 40;

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

/// The quadratic model of J in the weights of some kernels.
pub(super) struct WeightModel {
    /// The kernels that matter.
    pub(super) kernels: Vec<usize>,
    /// H_ml = ⟨z_m, z_l⟩: row after row, a column for each kernel.
    pub(super) z: Vec<f64>,
    /// The samples that the model knows how to move, where it does.
    pub(super) free: Option<FreeSamples>,
}

impl WeightModel {
    /// Its minimiser on the simplex, around β with the quadratic forms q.
    pub(super) fn on_simplex(&self, weights: &[f64], forms: &[f64]) -> Option<Vec<f64>> {
        let kernels = &self.kernels;
        let hessian = math::products_of_columns(&self.z, kernels.len());
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

    /// Δx to the fixed point of the weight map at 1 < r < 2, for residuals ln T(β) − ln β.
    pub(super) fn to_fixed_point(
        &self,
        weights: &[f64],
        forms: &[f64],
        residual: &[f64],
        r: f64,
    ) -> Option<Vec<f64>> {
        let all = math::products_of_columns(&self.z, self.kernels.len());
        let of_kernels = self.kernels.iter().enumerate();
        let (places, kernels): (Vec<usize>, Vec<usize>) = of_kernels
            .filter(|&(_, &m)| weights[m] > 0.0 && forms[m] > 0.0)
            .unzip();
        let k = kernels.len();
        let share: Vec<f64> = kernels.iter().map(|&m| weights[m] * forms[m]).collect();
        let mut matrix = vec![0.0; k * k];
        for i in 0..k {
            let row = &all[places[i] * self.kernels.len()..];
            for j in 0..=i {
                let both = weights[kernels[i]] * weights[kernels[j]];
                matrix[i * k + j] = (2.0 - r) * both * row[places[j]];
            }
            matrix[i * k + i] += (r - 1.0) * share[i];
        }
        math::cholesky(&mut matrix, k)?;
        let scaled = kernels.iter().zip(&share).map(|(&m, d)| d * residual[m]);
        let (u, v) = (
            solved(&matrix, scaled.collect()),
            solved(&matrix, share.clone()),
        );
        let p = r / (2.0 - r);
        let growth = |x: &[f64]| -> f64 {
            let each = kernels.iter().zip(x);
            each.map(|(&m, x)| weights[m].powf(p) * x).sum()
        };
        let c = -growth(&u) / growth(&v);
        // Kernels that do not matter take the map's own step.
        let mut shift = residual.to_vec();
        for ((&m, u), v) in kernels.iter().zip(u).zip(v) {
            shift[m] = u + c * v;
        }
        shift.iter().all(|v| v.is_finite()).then_some(shift)
    }
}

/// Kernels with weight, and those whose q says that they should have some; no more than `most`.
pub(super) fn kernels_that_matter(weights: &[f64], forms: &[f64], most: usize) -> Vec<usize> {
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
    order.truncate(most);
    order.sort_unstable();
    order
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

/// Newton steps on coefficients for as long as they lower the `gap`, to the best state that they reach. A step says what the gap is
/// after it; none where there is no step.
pub(super) fn while_gap_falls<S: Clone>(
    state: &mut S,
    mut gap: f64,
    target: f64,
    most_steps: usize,
    stop: &mut dyn FnMut() -> bool,
    mut step: impl FnMut(&mut S) -> Option<f64>,
) {
    let mut least = gap;
    let mut best = state.clone();
    for _ in 0..most_steps {
        if gap <= target || stop() {
            break;
        }
        gap = match step(state) {
            Some(gap) => gap,
            None => break,
        };
        if gap < least {
            least = gap;
            best = state.clone();
        }
    }
    *state = best;
}

/// The combined kernel among some samples, in f64: weights a million times apart leave nothing of the smaller kernels in f32.
pub(super) fn exact_kernel_among(rows: &CombinedRows<'_>, samples: &[usize]) -> Vec<f64> {
    let part = rows.gram().subset(samples);
    let mut matrix = vec![0.0; samples.len() * samples.len()];
    let weights = rows.weights().iter().enumerate();
    for (m, &w) in weights.filter(|(_, w)| **w > 0.0) {
        let kernel = part.kernel(m).matrix();
        let each = matrix.iter_mut().zip(kernel);
        each.for_each(|(x, k)| *x += w * f64::from(k));
    }
    matrix
}

/// Adds a share of the mean diagonal to the diagonal of an n×n matrix.
pub(super) fn add_ridge(matrix: &mut [f64], n: usize, share: f64) {
    let mean = (0..n).map(|k| matrix[k * n + k]).sum::<f64>() / n.max(1) as f64;
    (0..n).for_each(|k| matrix[k * n + k] += share * mean);
}

/// The solution of LLᵀx = b.
pub(super) fn solved(factor: &[f64], mut b: Vec<f64>) -> Vec<f64> {
    math::solve_lower(factor, &mut b);
    math::solve_upper(factor, &mut b);
    b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::digits;
    use crate::gram::{Coefficients, Gram, KernelSet, Options};
    use crate::kernel::KernelSpec;
    use crate::loss::Loss;
    use crate::norm::{Norm, NormSpec};
    use crate::problem::{Limits, Problem, Status};
    use crate::solve::exact::newton_scalar::weight_model;
    use crate::solve::exact::smo::{self, ScalarState};
    use crate::solve::exact::solve;

    const N: usize = 300;

    fn kernels() -> KernelSet {
        let views = digits().unwrap().views;
        let views = views.select(&(0..N).collect::<Vec<_>>()).unwrap();
        let specs = KernelSpec::parse("rbf:width=mean*0.3|mean|mean*3").unwrap();
        KernelSet::new(&specs, &views, &Options::default(), &()).unwrap()
    }

    fn targets() -> Vec<f64> {
        let labels = digits().unwrap().labels.unwrap();
        let sign = |i: usize| 2.0 * (labels.number(i).unwrap() % 2.0) - 1.0;
        (0..N).map(sign).collect()
    }

    /// The coefficients at fixed weights, and the rows they were found with.
    fn at<'g>(
        gram: &'g Gram,
        problem: &Problem<'_>,
        weights: &[f64],
    ) -> (CombinedRows<'g>, ScalarState) {
        let mut rows = CombinedRows::new(gram, weights, u64::MAX);
        let mut state = ScalarState {
            a: vec![0.0; N],
            scores: vec![0.0; N],
        };
        smo::solve(&mut rows, problem, &mut state, 1e-9, u64::MAX, &mut || {
            false
        });
        (rows, state)
    }

    #[test]
    fn coefficients_follow_the_weights() {
        let (set, targets) = (kernels(), targets());
        let gram = set.gram();
        let old: Vec<f64> = (0..gram.n_kernels())
            .map(|m| 0.1 + 0.03 * m as f64)
            .collect();
        // A fiftieth more and less by turns.
        let new: Vec<f64> = (0..old.len())
            .map(|m| old[m] * if m % 2 == 0 { 1.02 } else { 0.98 })
            .collect();
        let losses = [
            (Loss::Hinge, true),
            (Loss::Hinge, false),
            (Loss::Squared, true),
            (Loss::Epsilon(0.1), true),
        ];
        for (loss, bias) in losses {
            let problem = Problem {
                loss,
                targets: &targets,
                costs: &[0.3; N],
                bias,
            };
            let (mut rows, state) = at(gram, &problem, &old);
            let forms = gram.quadratic_forms(Coefficients::single(&state.a));
            let all = (0..old.len()).collect();
            let model = weight_model(&mut rows, &problem, &state, all, None, true).unwrap();
            let free = model.free.as_ref().unwrap();
            let found = free.follow(&model, &problem, &state.a, &old, &new);
            assert!(crate::problem::dual_linear(&problem, &found).is_finite());
            let truth = at(gram, &problem, &new).1.a;
            let apart = |x: &[f64], y: &[f64]| -> f64 {
                x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum()
            };
            let (left, way) = (apart(&found, &truth), apart(&state.a, &truth));
            assert!(left <= 0.05 * way, "{loss} {bias}: {left} of {way}");
            // Forms without a look at the samples that did not move.
            let quick = free.forms(&model, gram, &state.a, &found, &forms).unwrap();
            let direct = gram.quadratic_forms(Coefficients::single(&found));
            for (quick, direct) in quick.iter().zip(direct) {
                assert!((quick - direct).abs() <= 1e-9 * direct, "{quick} {direct}");
            }
        }
    }

    #[test]
    fn newton_steps_make_rounds_few_near_r_1() {
        let (set, targets) = (kernels(), targets());
        // The extrapolated map needs 21 and 9.
        for (spec, most) in [("lp:1.05", 12), ("lp:4/3", 6)] {
            let problem = Problem {
                loss: Loss::Hinge,
                targets: &targets,
                costs: &[0.3; N],
                bias: true,
            };
            let limits = Limits {
                tolerance: 1e-6,
                max_rounds: 200,
                deadline: None,
                memory: 1 << 30,
                confirm: true,
            };
            let spec: NormSpec = spec.parse().unwrap();
            let norm = Norm::new(spec.clone(), set.gram().n_kernels(), &[], &[]).unwrap();
            let solution = solve(set.gram(), &norm, &problem, &limits, None, &());
            assert_eq!(solution.status, Status::Converged);
            let rounds = solution.history.len();
            assert!(rounds <= most, "{spec}: {rounds} rounds");
        }
    }
}
