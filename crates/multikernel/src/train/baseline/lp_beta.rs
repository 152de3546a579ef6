//! LP-β and LP-B (Gehler, Nowozin, ICCV 2009): an SVM for every kernel by itself, then a linear program for their mixture.
//!
//! Problem of the second stage, with f_{m,k}(x_i) the score of class k by kernel m, from SVMs that did not see x_i:
//!   min over β, ξ ≥ 0, ρ of −ρ + (1/νN) Σ_i ξ_i,  Σ_m β_m = 1,
//!   Σ_m β_m (f_{m,y_i}(x_i) − f_{m,k}(x_i)) + ξ_i ≥ ρ  for every sample i and class k ≠ y_i.
//! LP-B has weights for every class, Σ_m β_{m,k} = 1 for each k. Two classes have one score f_m, which stands for f_m/2 and −f_m/2.
//!
//! Only the worst class of each sample is in the program at first; those that are violated enter, and it is solved again, until none is.

use crate::error::{Error, Result};
use microlp::{ComparisonOp, LinearExpr, OptimizationDirection, Problem, Variable};

/// A constraint is violated beyond this.
const VIOLATED: f64 = 1e-6;
/// Times that constraints may enter.
const ROUNDS: usize = 50;

/// Scores of samples that the SVMs did not see.
pub(crate) struct Scores<'a> {
    /// One list for each kernel: sample after sample, one number for each class, or a single one for two classes.
    pub(crate) kernels: &'a [Vec<f64>],
    pub(crate) classes: &'a [u32],
    pub(crate) n_classes: usize,
}

impl Scores<'_> {
    /// f_{m,k}(x_i)
    fn score(&self, m: usize, i: usize, k: usize) -> f64 {
        let list = &self.kernels[m];
        match list.len() == self.classes.len() {
            true => 0.5 * list[i] * if k == 1 { 1.0 } else { -1.0 },
            false => list[i * self.n_classes + k],
        }
    }

    fn combined(&self, weights: &[f64], i: usize, k: usize) -> f64 {
        let kernels = self.kernels.len();
        let own = match weights.len() == kernels {
            true => weights,
            false => &weights[k * kernels..(k + 1) * kernels],
        };
        let terms = own.iter().enumerate().filter(|(_, w)| **w != 0.0);
        terms.map(|(m, w)| w * self.score(m, i, k)).sum()
    }

    /// The class other than the true one with the largest score.
    fn rival(&self, weights: &[f64], i: usize) -> usize {
        let own = self.classes[i] as usize;
        let others = (0..self.n_classes).filter(|&k| k != own);
        let scored = others.map(|k| (k, self.combined(weights, i, k)));
        let first = (usize::from(own == 0), f64::NEG_INFINITY);
        scored.fold(first, |a, b| if b.1 > a.1 { b } else { a }).0
    }

    /// Share of samples whose own class does not have the largest score.
    pub(crate) fn error(&self, weights: &[f64]) -> f64 {
        let n = self.classes.len();
        let wrong = (0..n).filter(|&i| {
            let rival = self.rival(weights, i);
            self.combined(weights, i, rival) >= self.combined(weights, i, self.classes[i] as usize)
        });
        wrong.count() as f64 / n.max(1) as f64
    }
}

/// The weights: one for each kernel, or class after class one for each kernel. `stop` is asked between two programs.
pub(crate) fn mixture(
    scores: &Scores<'_>,
    nu: f64,
    by_class: bool,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Vec<f64>> {
    let (m, n) = (scores.kernels.len(), scores.classes.len());
    let sets = if by_class { scores.n_classes } else { 1 };
    let mut weights = vec![1.0 / m as f64; m * sets];
    // The linear program wants numbers near 1; the scale of the scores changes ρ and ξ alone.
    let all = scores.kernels.iter().flatten();
    let size = all.fold(0.0f64, |a, f| a.max(f.abs()));
    if !(size > 0.0 && size.is_finite()) {
        return Ok(weights);
    }
    let program = Program {
        scores,
        nu,
        by_class,
        size,
    };
    let mut rivals: Vec<(usize, usize)> = (0..n).map(|i| (i, scores.rival(&weights, i))).collect();
    let mut present: Vec<Vec<bool>> = vec![vec![false; scores.n_classes]; n];
    rivals.iter().for_each(|&(i, k)| present[i][k] = true);
    for _ in 0..ROUNDS {
        if stop() {
            break;
        }
        let solution = program.solve(&rivals)?;
        weights = solution.weights;
        let before = rivals.len();
        for (i, present) in present.iter_mut().enumerate() {
            let rival = scores.rival(&weights, i);
            let gain = scores.combined(&weights, i, scores.classes[i] as usize)
                - scores.combined(&weights, i, rival);
            let reached = gain / size + solution.slack[i];
            if !present[rival] && reached < solution.margin - VIOLATED {
                present[rival] = true;
                rivals.push((i, rival));
            }
        }
        if rivals.len() == before {
            break;
        }
    }
    Ok(weights)
}

/// The linear program; scores are divided by `size`.
struct Program<'a> {
    scores: &'a Scores<'a>,
    nu: f64,
    by_class: bool,
    size: f64,
}

/// β, ρ and ξ of a linear program.
struct Solved {
    weights: Vec<f64>,
    margin: f64,
    slack: Vec<f64>,
}

impl Program<'_> {
    /// With the constraints of these samples and classes.
    fn solve(&self, rivals: &[(usize, usize)]) -> Result<Solved> {
        let (m, n) = (self.scores.kernels.len(), self.scores.classes.len());
        let sets = if self.by_class {
            self.scores.n_classes
        } else {
            1
        };
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let weights: Vec<Variable> = (0..m * sets)
            .map(|_| problem.add_var(0.0, (0.0, 1.0)))
            .collect();
        let margin = problem.add_var(-1.0, (f64::NEG_INFINITY, f64::INFINITY));
        let slack: Vec<Variable> = (0..n)
            .map(|_| problem.add_var(1.0 / (self.nu * n as f64), (0.0, f64::INFINITY)))
            .collect();
        for own in weights.chunks(m) {
            problem.add_constraint(own.iter().map(|&w| (w, 1.0)), ComparisonOp::Eq, 1.0);
        }
        for &(i, k) in rivals {
            let own = self.scores.classes[i] as usize;
            let mut row = LinearExpr::empty();
            for kernel in 0..m {
                let score = |class: usize| self.scores.score(kernel, i, class);
                if self.by_class {
                    row.add(weights[own * m + kernel], score(own) / self.size);
                    row.add(weights[k * m + kernel], -score(k) / self.size);
                } else {
                    row.add(weights[kernel], (score(own) - score(k)) / self.size);
                }
            }
            row.add(slack[i], 1.0);
            row.add(margin, -1.0);
            problem.add_constraint(row, ComparisonOp::Ge, 0.0);
        }
        let solution = problem
            .solve()
            .ok()
            .and_then(|outcome| outcome.into_solution().ok())
            .ok_or_else(|| {
                Error::input(
                    "lp-beta",
                    "its linear program could not be solved",
                    "give another C, or the solver exact",
                )
            })?;
        let value = |variable: &Variable| solution.var_value(*variable);
        let mut found: Vec<f64> = weights.iter().map(|w| value(w).max(0.0)).collect();
        for own in found.chunks_mut(m) {
            let total: f64 = own.iter().sum();
            own.iter_mut().for_each(|w| *w /= total);
        }
        Ok(Solved {
            weights: found,
            margin: value(&margin),
            slack: slack.iter().map(value).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The objective of the program at some weights, over all classes, with the best ρ.
    fn objective(scores: &Scores<'_>, weights: &[f64], nu: f64) -> f64 {
        let n = scores.classes.len();
        let margins: Vec<f64> = (0..n)
            .map(|i| {
                let rival = scores.rival(weights, i);
                scores.combined(weights, i, scores.classes[i] as usize)
                    - scores.combined(weights, i, rival)
            })
            .collect();
        let at = |rho: f64| -> f64 {
            let slack: f64 = margins.iter().map(|g| (rho - g).max(0.0)).sum();
            slack / (nu * n as f64) - rho
        };
        margins
            .iter()
            .map(|&rho| at(rho))
            .fold(f64::INFINITY, f64::min)
    }

    fn random_scores(
        random: &mut Random,
        m: usize,
        n: usize,
        k: usize,
    ) -> (Vec<Vec<f64>>, Vec<u32>) {
        let classes: Vec<u32> = (0..n).map(|i| (i % k) as u32).collect();
        let columns = if k == 2 { 1 } else { k };
        let kernels = (0..m)
            .map(|kernel| {
                let strength = kernel as f64 * 0.4;
                (0..n * columns)
                    .map(|at| {
                        let (i, c) = (at / columns, at % columns);
                        let own = match columns {
                            1 => {
                                if classes[i] == 1 {
                                    1.0
                                } else {
                                    -1.0
                                }
                            }
                            _ => {
                                if classes[i] as usize == c {
                                    1.0
                                } else {
                                    -1.0
                                }
                            }
                        };
                        strength * own + random.normal()
                    })
                    .collect()
            })
            .collect();
        (kernels, classes)
    }

    #[test]
    fn no_other_weights_are_better() {
        let mut random = Random::new(2);
        for (m, n, k) in [(3, 40, 2), (4, 60, 3), (2, 50, 5)] {
            let (kernels, classes) = random_scores(&mut random, m, n, k);
            let scores = Scores {
                kernels: &kernels,
                classes: &classes,
                n_classes: k,
            };
            for nu in [0.1, 0.5] {
                for by_class in [false, true] {
                    let best = mixture(&scores, nu, by_class, &mut || false).unwrap();
                    let value = objective(&scores, &best, nu);
                    let sets = if by_class { k } else { 1 };
                    for own in best.chunks(m) {
                        assert!((own.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                    }
                    for _ in 0..200 {
                        let mut other: Vec<f64> =
                            (0..m * sets).map(|_| random.uniform().powi(3)).collect();
                        for (own, best) in other.chunks_mut(m).zip(best.chunks(m)) {
                            let total: f64 = own.iter().sum();
                            own.iter_mut()
                                .zip(best)
                                .for_each(|(w, b)| *w = 0.5 * (*w / total + b));
                        }
                        let there = objective(&scores, &other, nu);
                        assert!(value <= there + 1e-5 * value.abs(), "{value} and {there}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_kernel_that_knows_gets_the_weight() {
        let mut random = Random::new(4);
        let (mut kernels, classes) = random_scores(&mut random, 3, 90, 3);
        for (i, row) in kernels[1].chunks_mut(3).enumerate() {
            row.iter_mut()
                .enumerate()
                .for_each(|(k, f)| *f = if classes[i] as usize == k { 4.0 } else { -4.0 });
        }
        let scores = Scores {
            kernels: &kernels,
            classes: &classes,
            n_classes: 3,
        };
        let weights = mixture(&scores, 0.2, false, &mut || false).unwrap();
        assert!(weights[1] > 0.6, "{weights:?}");
        assert_eq!(scores.error(&weights), 0.0);
    }
}
