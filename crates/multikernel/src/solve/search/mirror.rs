//! The alternating mirror descent of MixNorm-MKL (Nath, Dinesh, Raman, Bhattacharyya, Ben-Tal, Ramakrishnan, NIPS 2009).
//!
//! Problem: min ½ (max_j Σ_k ‖w_jk‖)² + Σ C_i ℓ, groups j of kernels (j, k); one group is r = 1.
//! The combined kernel is Σ_j (1/γ_j) Σ_k λ_jk K_jk, γ on the simplex over groups, λ_j on the simplex inside of group j.
//! Round: for fixed γ, entropic mirror descent on λ with the SVM solved at every step,
//!   ∂_jk = −q_jk/(2γ_j),  λ_jk ∝ λ_jk exp(−step ∂_jk),  step = length √(2 ln max_j n_j) / ‖∂‖_∞
//! (what all kernels of a group have in common does not move λ, so ‖∂‖_∞ is taken around the middle of each group). The
//! paper's length is 1/√t for step t, which is safe where nothing is known of J; here it is halved when J has risen, and
//! grows while J falls, which is never worse by more than a constant and mostly much faster;
//! when that has come near enough to its optimum, γ_j = √W_j / Σ √W, W_j = Σ_k λ_jk q_jk, exactly.
//! Theory promises the optimum to the mean of the steps, not to the last one: λ goes on from the mean of some steps where
//! that is better, and the mean of the coefficients is offered as a lower bound.
//! Stop: relative duality gap, from the mixed dual norm.
//! Cost: one SVM for each step; the number of kernels enters the number of steps by a logarithm.

use crate::solve::exact::svm::{Plane, Svm};

/// Steps between the first two means; this grows.
const STEPS: usize = 20;
/// How the length of steps changes when J has risen, and when it has not.
const SHRINK: f64 = 0.5;
const GROW: f64 = 1.2;
/// Near enough: what λ may still gain, as a share of what γ's change could.
const ENOUGH: f64 = 0.3;
/// A group whose output is below this share of the largest would get an infinite weight.
const LEAST_OUTPUT: f64 = 1e-6;

/// Searches from equal shares; `groups` holds the group of each kernel, none for a single group.
pub(super) fn search(svm: &mut Svm<'_>, kernels: usize, groups: Option<&[usize]>) {
    let one = vec![0; kernels];
    let mut descent = Descent::new(groups.unwrap_or(&one));
    // None: it is over.
    while descent.descend(svm).is_some() && descent.share_among_groups(svm) {}
}

struct Descent<'a> {
    group: &'a [usize],
    n_groups: usize,
    /// Kernels of the largest group.
    most: f64,
    lambda: Vec<f64>,
    gamma: Vec<f64>,
    /// W_j
    outputs: Vec<f64>,
    /// Of steps, relative to the first.
    length: f64,
    /// J at the last step for the present γ.
    last: Option<f64>,
    mean: Mean,
    window: usize,
}

/// Weighted means of shares and coefficients.
#[derive(Default)]
struct Mean {
    steps: usize,
    weight: f64,
    lambda: Vec<f64>,
    coefficients: Vec<f64>,
}

impl<'a> Descent<'a> {
    fn new(group: &'a [usize]) -> Self {
        let n_groups = group.iter().max().map_or(0, |g| g + 1);
        let mut sizes = vec![0.0; n_groups];
        group.iter().for_each(|&j| sizes[j] += 1.0);
        Descent {
            group,
            n_groups,
            most: sizes.iter().fold(1.0, |a, &b| a.max(b)),
            lambda: group.iter().map(|&j| 1.0 / sizes[j]).collect(),
            gamma: vec![1.0 / n_groups as f64; n_groups],
            outputs: vec![0.0; n_groups],
            length: 1.0,
            last: None,
            mean: Mean::default(),
            window: STEPS,
        }
    }

    fn combined(&self, lambda: &[f64]) -> Vec<f64> {
        let kernels = lambda.iter().zip(self.group);
        kernels.map(|(l, &j)| l / self.gamma[j]).collect()
    }

    /// Steps on λ until it is γ's turn; none when it is over.
    fn descend(&mut self, svm: &mut Svm<'_>) -> Option<()> {
        loop {
            let at = svm.at(&self.combined(&self.lambda))?;
            let pull: Vec<f64> = at
                .forms()
                .iter()
                .zip(self.group)
                .map(|(q, &j)| 0.5 * q / self.gamma[j])
                .collect();
            self.outputs.fill(0.0);
            let mut top = vec![0.0f64; self.n_groups];
            let mut bottom = vec![f64::INFINITY; self.n_groups];
            let kernels = self.group.iter().zip(&self.lambda);
            for ((&j, l), (q, p)) in kernels.zip(at.forms().iter().zip(&pull)) {
                self.outputs[j] += l * q;
                top[j] = top[j].max(*p);
                bottom[j] = bottom[j].min(*p);
            }
            let ranges = top.iter().zip(&bottom).map(|(t, b)| 0.5 * (t - b));
            let spread = ranges.fold(0.0, f64::max);
            if self.n_groups > 1 {
                // What λ may gain is at most its linear model's gain; γ's gain is known exactly.
                let outputs = self.outputs.iter().zip(&self.gamma);
                let have: f64 = outputs.map(|(w, g)| 0.5 * w / g).sum();
                let of_lambda = top.iter().sum::<f64>() - have;
                let roots: f64 = self.outputs.iter().map(|w| w.sqrt()).sum();
                let of_gamma = have - 0.5 * roots * roots;
                if of_lambda <= ENOUGH * of_gamma || self.most == 1.0 || spread == 0.0 {
                    return Some(());
                }
            } else if spread == 0.0 && !svm.sharpen() {
                return None; // all kernels are alike
            }
            if let Some(last) = self.last {
                self.length *= if at.value > last { SHRINK } else { GROW };
            }
            self.last = Some(at.value);
            let step = self.length * (2.0 * self.most.ln()).sqrt() / spread.max(f64::MIN_POSITIVE);
            self.mean
                .add(step * spread, &self.lambda, at.coefficients());
            if self.mean.steps >= self.window {
                if self.take_mean(svm, &at)? && self.n_groups > 1 {
                    return Some(());
                }
                continue;
            }
            let mut totals = vec![0.0; self.n_groups];
            for ((l, p), &j) in self.lambda.iter_mut().zip(&pull).zip(self.group) {
                // relative to the group's largest, so that nothing overflows
                *l *= (step * (p - top[j])).exp();
                totals[j] += *l;
            }
            for (l, &j) in self.lambda.iter_mut().zip(self.group) {
                *l /= totals[j];
            }
        }
    }

    /// Goes on from the mean of some steps if that is better than the last one, and offers the mean of their coefficients.
    /// True if the mean was taken; none when it is over.
    fn take_mean(&mut self, svm: &mut Svm<'_>, last: &Plane) -> Option<bool> {
        let Mean {
            weight,
            lambda,
            coefficients,
            ..
        } = std::mem::take(&mut self.mean);
        let divided = |sum: Vec<f64>| -> Vec<f64> { sum.iter().map(|x| x / weight).collect() };
        if svm.offer(divided(coefficients)) {
            return None;
        }
        let lambda = divided(lambda);
        let at = svm.at(&self.combined(&lambda))?;
        let better = at.value < last.value;
        if better {
            self.last = Some(at.value);
            self.lambda = lambda;
            self.outputs.fill(0.0);
            for ((&j, l), q) in self.group.iter().zip(&self.lambda).zip(at.forms()) {
                self.outputs[j] += l * q;
            }
        }
        self.window += STEPS;
        Some(better)
    }

    /// The exact γ; false when nothing changes any more.
    fn share_among_groups(&mut self, svm: &mut Svm<'_>) -> bool {
        self.last = None;
        let roots: Vec<f64> = self.outputs.iter().map(|w| w.sqrt()).collect();
        let largest = roots.iter().fold(0.0f64, |a, &b| a.max(b));
        if largest == 0.0 {
            return false;
        }
        let before = self.gamma.clone();
        for (g, root) in self.gamma.iter_mut().zip(&roots) {
            *g = root.max(LEAST_OUTPUT * largest);
        }
        let total: f64 = self.gamma.iter().sum();
        self.gamma.iter_mut().for_each(|g| *g /= total);
        let mut both = self.gamma.iter().zip(&before);
        let still = both.all(|(a, b)| (a - b).abs() <= 1e-12 * a);
        !(still && self.most == 1.0) || svm.sharpen()
    }
}

impl Mean {
    fn add(&mut self, weight: f64, lambda: &[f64], coefficients: &[f64]) {
        self.lambda.resize(lambda.len(), 0.0);
        self.coefficients.resize(coefficients.len(), 0.0);
        let add = |sum: &mut [f64], x: &[f64]| {
            sum.iter_mut().zip(x).for_each(|(s, x)| *s += weight * x);
        };
        add(&mut self.lambda, lambda);
        add(&mut self.coefficients, coefficients);
        self.weight += weight;
        self.steps += 1;
    }
}
