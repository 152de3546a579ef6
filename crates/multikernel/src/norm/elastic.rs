//! Elastic net: Ω² = (1−μ)‖g‖₁² + μ‖g‖₂², 0 < μ < 1.
//!
//! Ω(g)² = min over θ on the simplex of Σ g_m²/β_m with 1/β_m = (1−μ)/θ_m + μ, so θ_m ∝ g_m for fixed w. Dually
//! Ω*(s)² = max over θ of Σ β_m s_m², whose optimum is a soft threshold: θ_m ∝ (s_m − τ)₊ with μτ = (1−μ) Σ (s_m − τ)₊.

use super::block::largest;
use super::spec::{NormInfo, NormSpec, finite};
use crate::error::Error;

pub(super) const ELASTIC: NormInfo = NormInfo {
    name: "elastic",
    argument: Some("MU"),
    means: "Ω² = (1−μ)‖g‖₁² + μ‖g‖₂², 0 ≤ μ ≤ 1",
    read: |mu| match finite(mu) {
        Some(mu) if (0.0..=1.0).contains(&mu) => Ok(NormSpec::Elastic(mu)),
        _ => Err(Error::input(
            "norm",
            format!("'{mu}' is not a mixing parameter"),
            "give a number from 0 (sparse) to 1 (sum kernel), such as elastic:0.5",
        )),
    },
};

pub(super) fn value(mu: f64, g: &[f64]) -> f64 {
    let top = largest(g);
    if top == 0.0 || !top.is_finite() {
        return top;
    }
    let sum: f64 = g.iter().map(|g| g.abs() / top).sum();
    let squares: f64 = g.iter().map(|g| (g / top) * (g / top)).sum();
    top * ((1.0 - mu) * sum * sum + mu * squares).sqrt()
}

pub(super) fn dual(mu: f64, s: &[f64]) -> f64 {
    let top = largest(s);
    if top == 0.0 || !top.is_finite() {
        return top;
    }
    let threshold = Threshold::new(mu, s, top);
    let sum: f64 = s
        .iter()
        .map(|s| threshold.weight(s.abs() / top) * (s / top) * (s / top))
        .sum();
    top * sum.sqrt()
}

pub(super) fn dual_map(mu: f64, s: &[f64], beta: &mut [f64]) {
    let top = largest(s);
    if top == 0.0 {
        beta.fill(initial_weight(mu, s.len()));
        return;
    }
    let threshold = Threshold::new(mu, s, top);
    for (beta, s) in beta.iter_mut().zip(s) {
        *beta = threshold.weight(s.abs() / top);
    }
}

pub(super) fn primal_map(mu: f64, g: &[f64], beta: &mut [f64]) {
    let top = largest(g);
    if top == 0.0 {
        beta.fill(initial_weight(mu, g.len()));
        return;
    }
    let sum: f64 = g.iter().map(|g| g.abs() / top).sum();
    for (beta, g) in beta.iter_mut().zip(g) {
        *beta = weight(mu, g.abs() / top / sum);
    }
}

pub(super) fn initial_weight(mu: f64, n_kernels: usize) -> f64 {
    weight(mu, 1.0 / n_kernels as f64)
}

fn weight(mu: f64, theta: f64) -> f64 {
    theta / ((1.0 - mu) + mu * theta)
}

/// The soft threshold as a distance below the largest entry, which is 1: for μ → 0 the threshold itself
/// is too close to 1 to be subtracted.
struct Threshold {
    mu: f64,
    below_top: f64,
    total: f64,
}

impl Threshold {
    fn new(mu: f64, s: &[f64], top: f64) -> Self {
        let mut distances: Vec<f64> = s.iter().map(|s| 1.0 - s.abs() / top).collect();
        distances.sort_unstable_by(f64::total_cmp);
        let mut below_top = 0.0;
        let mut sum = 0.0;
        let mut active = 0.0;
        for distance in distances {
            if active > 0.0 && distance >= below_top {
                break;
            }
            sum += distance;
            active += 1.0;
            below_top = (mu + (1.0 - mu) * sum) / (mu + (1.0 - mu) * active);
        }
        Self {
            mu,
            below_top,
            total: active * below_top - sum,
        }
    }

    fn weight(&self, relative: f64) -> f64 {
        let above = (self.below_top - (1.0 - relative)).max(0.0);
        weight(self.mu, above / self.total)
    }
}
