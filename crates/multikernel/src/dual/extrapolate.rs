//! Longer weight steps: Anderson's extrapolation of the weight map on ln β.
//!
//! The map β → T(β) (norm.rs) goes a fraction of the way to its fixed point, the smaller the nearer r is to 1. With
//! x = ln β and residuals e = ln T(β) − ln β of the last few rounds, the next x is the combination of the mapped points
//! whose combined residual is smallest, each kernel counted by its share β_m q_m of the regulariser. A step after which
//! the objective rose is forgotten, with all before it.

use crate::math;
use crate::norm::Norm;

/// Rounds remembered.
const MEMORY: usize = 5;
/// The longest step of one kernel's ln β.
const LONGEST: f64 = 3.0;

#[derive(Debug)]
pub(super) struct Extrapolation {
    /// (x, e) of earlier rounds.
    past: Vec<(Vec<f64>, Vec<f64>)>,
    primal: f64,
}

impl Extrapolation {
    pub(super) fn new() -> Self {
        Extrapolation {
            past: Vec::new(),
            primal: f64::INFINITY,
        }
    }

    /// Replaces β by the next weights, given s and q for them and the objective reached with them.
    pub(super) fn step(
        &mut self,
        norm: &Norm,
        s: &[f64],
        q: &[f64],
        primal: f64,
        beta: &mut [f64],
    ) {
        let old = beta.to_vec();
        norm.weights(s, beta);
        if primal > self.primal {
            self.past.clear();
        }
        self.primal = primal;
        let log = |v: f64| v.max(f64::MIN_POSITIVE).ln();
        let x: Vec<f64> = old.iter().map(|&b| log(b)).collect();
        let e: Vec<f64> = beta.iter().zip(&x).map(|(&b, x)| log(b) - x).collect();
        let share: Vec<f64> = old.iter().zip(q).map(|(b, q)| b * q).collect();
        let total: f64 = share.iter().sum();
        self.past.push((x, e));
        if self.past.len() > MEMORY {
            self.past.remove(0);
        }
        if self.past.len() < 2 || !(total > 0.0 && total.is_finite()) {
            return;
        }
        let Some(next) = self.combine(&share) else {
            return;
        };
        let Some((x, _)) = self.past.last() else {
            return;
        };
        for ((b, next), x) in beta.iter_mut().zip(next).zip(x) {
            if *b > 0.0 {
                *b = (x + (next - x).clamp(-LONGEST, LONGEST)).exp();
            }
        }
        rescale(norm, beta);
    }

    /// x + e of the newest, moved along differences of earlier rounds so that the weighted residual is least.
    fn combine(&self, share: &[f64]) -> Option<Vec<f64>> {
        let (newest, earlier) = self.past.split_last()?;
        let k = earlier.len();
        let mut normal = vec![0.0; k * k];
        let mut right = vec![0.0; k];
        let difference = |i: usize, m: usize| newest.1[m] - earlier[i].1[m];
        for m in 0..share.len() {
            for i in 0..k {
                let di = share[m] * difference(i, m);
                right[i] += di * newest.1[m];
                for j in 0..=i {
                    normal[i * k + j] += di * difference(j, m);
                }
            }
        }
        let trace: f64 = (0..k).map(|i| normal[i * k + i]).sum();
        for i in 0..k {
            normal[i * k + i] += 1e-8 * trace;
        }
        math::cholesky(&mut normal, k)?;
        let mut gamma = right;
        math::solve_lower(&normal, &mut gamma);
        math::solve_upper(&normal, &mut gamma);
        let next = (0..share.len()).map(|m| {
            let moved: f64 = (0..k)
                .map(|i| {
                    let step = newest.0[m] - earlier[i].0[m] + difference(i, m);
                    gamma[i] * step
                })
                .sum();
            newest.0[m] + newest.1[m] - moved
        });
        let next: Vec<f64> = next.collect();
        next.iter().all(|v| v.is_finite()).then_some(next)
    }
}

/// Scales β to where the norm's maps keep it: the regulariser is Ω² = min Σ g²/β over such β.
fn rescale(norm: &Norm, beta: &mut [f64]) {
    if let Some(block) = norm.as_block() {
        block.normalize_weights(beta);
    }
}
