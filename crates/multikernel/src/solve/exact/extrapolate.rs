//! Longer weight steps: Anderson's extrapolation of the weight map on ln β.
//!
//! The map β → T(β) (norm.rs) goes a fraction of the way to its fixed point, the smaller the nearer r is to 1. With
//! x = ln β and residuals e = ln T(β) − ln β of the last few rounds, the next x is the combination of the mapped points
//! whose combined residual is smallest, each kernel counted by its share β_m q_m of the regulariser. The first steps have too few earlier
//! rounds for that: there the map's Jacobian, which for ℓ_r lies between 0 (q_m falls as β_m⁻²) and 2 − r (q_m stays), makes 2/r times
//! the map's step the best constant one. A step after which
//! the objective rose is taken back, all before it is forgotten, and the map goes on alone for a while. Where a Newton step can be had
//! for less than the rounds that it saves (`newton.rs`), it takes the place of the extrapolation.

use crate::math;
use crate::norm::Norm;

/// Rounds remembered.
const MEMORY: usize = 5;
/// The most steps of the map itself between two extrapolations that failed.
const LONGEST_REST: u32 = 64;
/// The longest step of one kernel's ln β, if the map's own is not longer.
const LONGEST: f64 = 3.0;

/// Number of first steps that are lengthened.
const LENGTHENED: usize = 2;
/// The least r for which they are.
const LENGTHENED_FROM: f64 = 1.1;

#[derive(Debug)]
pub(super) struct Extrapolation {
    /// (x, e) of earlier rounds.
    past: Vec<(Vec<f64>, Vec<f64>)>,
    primal: f64,
    /// The map's own answer where the last extrapolated step began; empty after a step of the map itself.
    plain: Vec<f64>,
    /// Steps of the map to be made before the next extrapolation, and how many there were last time.
    rest: (u32, u32),
}

/// How many times the map's own steps the first ones are; none where that is once. Very near r = 1, where weights go to zero, longer
/// ones save no rounds.
fn constant_length(norm: &Norm) -> Option<f64> {
    let r = norm.as_block()?.r();
    (LENGTHENED_FROM..2.0).contains(&r).then_some(2.0 / r)
}

impl Extrapolation {
    pub(super) fn new() -> Self {
        Extrapolation {
            past: Vec::new(),
            primal: f64::INFINITY,
            plain: Vec::new(),
            rest: (0, 0),
        }
    }

    /// Replaces β by the next weights, given s and q for them and the objective reached with them. `newton` may know better than earlier
    /// rounds where to go: Δx from β and its residuals.
    pub(super) fn step(
        &mut self,
        norm: &Norm,
        s: &[f64],
        q: &[f64],
        primal: f64,
        beta: &mut [f64],
        newton: impl FnOnce(&[f64], &[f64]) -> Option<Vec<f64>>,
    ) {
        if primal > self.primal && !self.plain.is_empty() {
            // The extrapolation led uphill: take the map's step instead, and trust it for longer than the last time.
            beta.copy_from_slice(&self.plain);
            self.plain.clear();
            self.past.clear();
            let longer = (2 * self.rest.1).clamp(1, LONGEST_REST);
            self.rest = (longer, longer);
            return;
        }
        let old = beta.to_vec();
        norm.weights(s, beta);
        self.plain.clear();
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
        if self.rest.0 > 0 {
            self.rest.0 -= 1;
            return;
        }
        let Some((x, e)) = self.past.last() else {
            return;
        };
        let length = constant_length(norm);
        let next: Option<Vec<f64>> = match newton(&old, e) {
            Some(shift) => Some(x.iter().zip(shift).map(|(x, d)| x + d).collect()),
            None if self.past.len() <= LENGTHENED && length.is_some() => {
                length.map(|length| x.iter().zip(e).map(|(x, e)| x + length * e).collect())
            }
            None if self.past.len() < 2 || !(total > 0.0 && total.is_finite()) => None,
            None => self.combine(&share),
        };
        let Some(next) = next else {
            return;
        };
        self.plain = beta.to_vec();
        for ((b, next), (x, e)) in beta.iter_mut().zip(next).zip(x.iter().zip(e)) {
            if *b > 0.0 {
                let longest = LONGEST.max(e.abs());
                *b = (x + (next - x).clamp(-longest, longest)).exp();
            }
        }
        norm.normalize_weights(beta);
    }

    /// x + e of the newest, moved along differences of earlier rounds so that the weighted residual is least.
    fn combine(&self, share: &[f64]) -> Option<Vec<f64>> {
        let (newest, earlier) = self.past.split_last()?;
        let k = earlier.len();
        let mut normal = vec![0.0; k * k];
        let mut right = vec![0.0; k];
        let difference = |i: usize, m: usize| newest.1[m] - earlier[i].1[m];
        for (m, share) in share.iter().enumerate() {
            for i in 0..k {
                let di = share * difference(i, m);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::norm::NormSpec;

    #[test]
    fn the_first_steps_are_longer_than_the_maps() {
        let q = [4.0, 1.0, 0.25, 1e-12];
        let s = q.map(f64::sqrt);
        for (name, length) in [("lp:4/3", 1.75), ("lp:2", 1.5), ("lp:1.05", 1.0)] {
            let norm = name.parse::<NormSpec>().unwrap();
            let norm = Norm::new(norm, 4, &[], &[]).unwrap();
            let start = norm.initial_weights(4);
            let (mut plain, mut found) = (start.clone(), start);
            norm.weights(&s, &mut plain);
            Extrapolation::new().step(&norm, &s, &q, 1.0, &mut found, |_, _| None);
            let ratio = |b: &[f64]| (b[0] / b[1]).ln();
            let lengthened = ratio(&found) / ratio(&plain);
            assert!((lengthened - length).abs() < 1e-9, "{name}: {lengthened}");
            // A step that the map makes long is not cut short.
            assert!(found[3] <= plain[3] * 1.0001, "{name}: {found:?}");
        }
    }
}
