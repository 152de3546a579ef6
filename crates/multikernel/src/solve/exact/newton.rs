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

use super::outputs::Outputs;
use super::rows::Rows;
use super::smo;
use crate::gram::{Coefficients, Gram};
use crate::math;
use crate::problem::Problem;

/// More free samples than this make the factor too dear.
const MOST_FREE: usize = 6000;
/// At most so many kernels enter the model,
pub(super) const MOST_KERNELS: usize = 512;
/// and so many where it is minimised on the simplex, in steps on pairs of them.
pub(super) const MOST_ON_SIMPLEX: usize = 64;
/// After so many halvings the step is as good as none: round-off decides.
const MOST_HALVINGS: u32 = 8;
/// Steps of a search for the shift that keeps a sum: outwards, and then between two shifts.
const DOUBLINGS: u32 = 60;
const HALVINGS: u32 = 60;
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
    let kernels = kernels_that_matter(weights, forms, MOST_ON_SIMPLEX);
    Model::new(gram, rows, problem, state, kernels, None, false)?.on_simplex(weights, forms)
}

/// The quadratic model of J.
pub(super) struct Model {
    /// The kernels that matter.
    kernels: Vec<usize>,
    free: Vec<usize>,
    /// The factor L of K_β,FF + curvature.
    factor: Vec<f64>,
    /// z_m = L⁻¹ (K_m a)_F, with the part along L⁻¹1 taken out where there is a bias: H_ml = ⟨z_m, z_l⟩. Row after row, a column for each
    /// kernel.
    z: Vec<f64>,
    /// (K_m a)_F, sample after sample.
    scores: Vec<f64>,
}

impl Model {
    /// Around coefficients that were solved for with these weights; none if there are too many free samples, or none. `outputs` has
    /// K_m a where it is known; `exact` asks for it in f64, which [`Model::forms`] needs and steps do not.
    pub(super) fn new(
        gram: &Gram,
        rows: &mut Rows<'_>,
        problem: &Problem<'_>,
        state: &smo::Coefficients,
        kernels: Vec<usize>,
        outputs: Option<&Outputs>,
        exact: bool,
    ) -> Option<Model> {
        let free = free_samples(problem, &state.a);
        if free.is_empty() || free.len() > MOST_FREE {
            return None;
        }
        let f = free.len();
        let mut factor = free_matrix(rows, problem, state, &free);
        math::cholesky(&mut factor, f)?;
        let scores = match outputs {
            Some(outputs) => outputs.at(&free, &kernels),
            None if exact => gram.kernel_scores(&free, &kernels, Coefficients::single(&state.a)),
            None => gram.fast_kernel_scores(&free, &kernels, Coefficients::single(&state.a)),
        };
        let k = kernels.len();
        let mut z = scores.clone();
        math::solve_lower_columns(&factor, &mut z, k);
        if problem.bias {
            let mut ones = vec![1.0; f];
            math::solve_lower(&factor, &mut ones);
            let size = math::dot(&ones, &ones);
            let mut along = vec![0.0; k];
            for (row, one) in z.chunks(k).zip(&ones) {
                along.iter_mut().zip(row).for_each(|(a, z)| *a += one * z);
            }
            for (row, one) in z.chunks_mut(k).zip(&ones) {
                let one = one / size;
                row.iter_mut().zip(&along).for_each(|(z, a)| *z -= one * a);
            }
        }
        Some(Model {
            kernels,
            free,
            factor,
            z,
            scores,
        })
    }

    /// Its minimiser on the simplex.
    pub(super) fn on_simplex(&self, weights: &[f64], forms: &[f64]) -> Option<Vec<f64>> {
        minimize_model(weights, forms, &self.kernels, &self.z)
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
        let solved = |mut x: Vec<f64>| {
            math::solve_lower(&matrix, &mut x);
            math::solve_upper(&matrix, &mut x);
            x
        };
        let scaled = kernels.iter().zip(&share).map(|(&m, d)| d * residual[m]);
        let (u, v) = (solved(scaled.collect()), solved(share.clone()));
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

    /// The quadratic forms of other coefficients that differ in free samples alone; `forms` are those of the model's own, `a`. None where
    /// not all kernels matter.
    pub(super) fn forms(
        &self,
        gram: &Gram,
        a: &[f64],
        other: &[f64],
        forms: &[f64],
    ) -> Option<Vec<f64>> {
        let k = self.kernels.len();
        if k != forms.len() {
            return None;
        }
        let change: Vec<f64> = other.iter().zip(a).map(|(other, a)| other - a).collect();
        // (a + d)ᵀK(a + d) = aᵀKa + 2 dᵀKa + dᵀKd
        let mut sums = gram.quadratic_forms(Coefficients::single(&change));
        for (&i, scores) in self.free.iter().zip(self.scores.chunks(k)) {
            let each = sums.iter_mut().zip(scores);
            each.for_each(|(sum, score)| *sum += 2.0 * change[i] * score);
        }
        let each = sums.iter().zip(forms);
        Some(each.map(|(sum, form)| (sum + form).max(0.0)).collect())
    }

    /// The coefficients that belong to new weights, made feasible; `a` belongs to the old ones.
    pub(super) fn follow(
        &self,
        problem: &Problem<'_>,
        a: &[f64],
        old: &[f64],
        new: &[f64],
    ) -> Vec<f64> {
        let f = self.free.len();
        let change: Vec<f64> = self.kernels.iter().map(|&m| old[m] - new[m]).collect();
        let rows = self.z.chunks(change.len());
        let mut shift: Vec<f64> = rows.map(|row| math::dot(row, &change)).collect();
        math::solve_upper(&self.factor, &mut shift);
        let bounds = |i: usize| problem.loss.feasible(problem.costs[i], problem.targets[i]);
        let moved = |t: f64| -> Vec<f64> {
            let each = self.free.iter().zip(&shift);
            each.map(|(&i, s)| {
                let (low, high) = bounds(i);
                (a[i] + s + t).clamp(low, high)
            })
            .collect()
        };
        let mut next = moved(0.0);
        let total: f64 = self.free.iter().map(|&i| a[i]).sum();
        let missing = |next: &[f64]| total - next.iter().sum::<f64>();
        if problem.bias && missing(&next) != 0.0 {
            // Bounds took from the sum: all of them move until it is as it was.
            let (mut low, mut high) = (0.0, 0.0);
            let mut step = missing(&next) / f as f64;
            for _ in 0..DOUBLINGS {
                match missing(&next) {
                    m if m * step <= 0.0 => break,
                    _ => (low, high) = (high, high + step),
                }
                step *= 2.0;
                next = moved(high);
            }
            for _ in 0..HALVINGS {
                let middle = 0.5 * (low + high);
                next = moved(middle);
                match missing(&next) * (high - low) > 0.0 {
                    true => low = middle,
                    false => high = middle,
                }
            }
        }
        let mut all = a.to_vec();
        for (&i, next) in self.free.iter().zip(next) {
            all[i] = next;
        }
        all
    }
}

/// The minimiser on the simplex of the quadratic model whose Hessian is ⟨z_m, z_l⟩ for the kernels named, the columns of `z`.
pub(super) fn minimize_model(
    weights: &[f64],
    forms: &[f64],
    kernels: &[usize],
    z: &[f64],
) -> Option<Vec<f64>> {
    let hessian = math::products_of_columns(z, kernels.len());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::digits;
    use crate::gram::{KernelSet, Options};
    use crate::kernel::KernelSpec;
    use crate::loss::Loss;
    use crate::norm::{Norm, NormSpec};
    use crate::problem::{Limits, Status};
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
    ) -> (Rows<'g>, smo::Coefficients) {
        let mut rows = Rows::new(gram.combine(weights), N, u64::MAX);
        let mut state = smo::Coefficients {
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
            let model = Model::new(gram, &mut rows, &problem, &state, all, None, true).unwrap();
            let found = model.follow(&problem, &state.a, &old, &new);
            assert!(crate::problem::dual_linear(&problem, &found).is_finite());
            let truth = at(gram, &problem, &new).1.a;
            let apart = |x: &[f64], y: &[f64]| -> f64 {
                x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum()
            };
            let (left, way) = (apart(&found, &truth), apart(&state.a, &truth));
            assert!(left <= 0.05 * way, "{loss} {bias}: {left} of {way}");
            // Forms without a look at the samples that did not move.
            let quick = model.forms(gram, &state.a, &found, &forms).unwrap();
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
