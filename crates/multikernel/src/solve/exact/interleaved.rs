//! The interleaved algorithm of Kloft et al. (JMLR 2011, Algorithm 2): chunks of coefficients and weight steps in turn.
//!
//! Problem: ℓp-norm MKL (their Optimization Problem (14)), min ½ Ω(g)² + Σ C_i ℓ(f_i + b, y_i), 1 < p < ∞.
//! Inputs: those of [`super::solve`].
//!
//! Kept: the outputs F_m = K_m a of every kernel on every sample (their g_m,i), n × M numbers.
//! Iteration, with the paper's lines: the Q samples that violate optimality most under f = Σ θ_m F_m (line 3) are optimised
//! with all others fixed (line 4); F_m follows from the rows of the samples that changed (line 5); the quadratic terms
//! q_m = Σ_i F_m,i a_i (line 6) give the weights by eq. (16) (line 9); f is combined anew (line 13).
//!
//! Two things are not as printed. The weights step waits until the gap of the coefficients alone is less than the gap of the
//! whole problem: a weight step on coefficients far from their optimum can raise the objective, and Theorem 4 assumes that
//! it does not. And the end is the duality gap, not the change of the objective (line 8), which says nothing about the optimum.
//! At p = 1 the weight step is θ_m ∝ ‖w_m‖: the gap may then stand still above the tolerance, and the status says so.
//!
//! Cost: per iteration Q rows of every kernel, O(nM) sums and 8nM bytes.

use super::run::{SolvedPoint, SolverRun};
use super::smo::{self, ScalarState, cold_start};
use super::{CombinedRows, Limits, Solution, Start, Status};
use crate::gram::{Coefficients, Gram};
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{Objective, Problem};
use rayon::prelude::*;

/// Q: about what the paper saw in practice.
const CHUNK: usize = 40;
/// Steps on a chunk per sample in it.
const STEPS_PER_SAMPLE: u64 = 10;
/// The share of the whole gap below which the coefficients' own gap lets the weights move.
const WEIGHT_SHARE: f64 = 0.1;
/// Chunks per weight step at most: beyond, round-off holds the coefficients' gap up.
const MOST_CHUNKS: usize = 2000;

/// Solves the problem by chunks and analytic weights; `start` makes it a warm start.
///
/// `Limits::max_rounds` counts weight steps, as in [`super::solve`].
pub fn solve(
    gram: &Gram,
    norm: &Norm,
    problem: &Problem<'_>,
    limits: &Limits,
    start: Option<Start>,
    observer: &dyn Observer,
) -> Solution {
    let objective = Objective::Scalar(*problem);
    let mut run = SolverRun::new(gram, norm, objective, limits, observer);
    let start = start.unwrap_or_else(|| Start {
        coefficients: cold_start(problem),
        weights: norm.initial_weights(gram.n_kernels()),
    });
    let mut theta = start.weights;
    let mut outputs = KernelScores::new(gram, &start.coefficients);
    let mut state = ScalarState {
        scores: outputs.combine(&theta),
        a: start.coefficients,
    };
    let mut chunks = 0;
    // Updates of the outputs gather round-off.
    let mut fresh = true;
    let status = loop {
        let q = outputs.forms(&state.a); // line 6
        let now = objective.certificate(norm, &state.a, &theta, &state.scores, &q);
        let reached = now.relative_gap() <= limits.tolerance;
        if reached && !fresh {
            outputs = KernelScores::new(gram, &state.a);
            state.scores = outputs.combine(&theta);
            fresh = true;
            continue;
        }
        let own_gap = smo::gap(problem, &state);
        let settled = own_gap <= WEIGHT_SHARE * (now.primal - now.dual) || chunks >= MOST_CHUNKS;
        let late = run.is_late();
        if settled || late || reached {
            run.record(SolvedPoint {
                coefficients: state.a.clone(),
                weights: theta.clone(),
                forms: q.clone(),
                certificate: now,
                exact: false,
            });
            if reached {
                break Status::Converged;
            }
            if let Some(status) = run.ending(late) {
                break status;
            }
            let s: Vec<f64> = q.iter().map(|q| q.sqrt()).collect();
            norm.weights(&s, &mut theta); // line 9
            state.scores = outputs.combine(&theta); // line 13
            chunks = 0;
        }
        let chunk = worst(problem, &state); // line 3
        let moved = optimise(gram, problem, &theta, &chunk, &mut state, &mut run.steps); // line 4
        outputs.follow(gram, &moved); // line 5
        state.scores = outputs.combine(&theta); // line 13
        fresh &= moved.is_empty();
        chunks = match moved.is_empty() {
            true => MOST_CHUNKS,
            false => chunks + 1,
        };
    };
    Solution {
        // The outputs' own are rounded.
        forms: None,
        ..run.finish(status)
    }
}

/// F_m = K_m a, kernel after kernel.
struct KernelScores {
    n: usize,
    values: Vec<f64>,
}

impl KernelScores {
    /// From the kernels themselves.
    fn new(gram: &Gram, a: &[f64]) -> Self {
        let n = a.len();
        let values = (0..gram.n_kernels())
            .flat_map(|m| gram.kernel(m).product(Coefficients::single(a)))
            .collect();
        KernelScores { n, values }
    }

    /// f = Σ θ_m F_m
    fn combine(&self, weights: &[f64]) -> Vec<f64> {
        let mut scores = vec![0.0; self.n];
        for (outputs, w) in self.values.chunks(self.n).zip(weights) {
            if *w != 0.0 {
                scores
                    .iter_mut()
                    .zip(outputs)
                    .for_each(|(s, o)| *s += w * o);
            }
        }
        scores
    }

    /// q_m = Σ_i F_m,i a_i
    fn forms(&self, a: &[f64]) -> Vec<f64> {
        let form = |outputs: &[f64]| crate::math::dot(outputs, a).max(0.0);
        self.values.chunks(self.n).map(form).collect()
    }

    /// Adds what the changes of some coefficients do: one row of every kernel each.
    fn follow(&mut self, gram: &Gram, moved: &[(usize, f64)]) {
        let samples: Vec<usize> = moved.iter().map(|(i, _)| *i).collect();
        let n = self.n;
        self.values
            .par_chunks_mut(n)
            .enumerate()
            .for_each(|(m, outputs)| {
                let mut rows = vec![0.0f32; samples.len() * n];
                gram.kernel(m).rows(&samples, &mut rows);
                for (row, (_, h)) in rows.chunks(n).zip(moved) {
                    outputs
                        .iter_mut()
                        .zip(row)
                        .for_each(|(o, k)| *o += h * f64::from(*k));
                }
            });
    }
}

/// The samples that violate optimality most: with a bias half of them want up, half down.
fn worst(problem: &Problem<'_>, state: &ScalarState) -> Vec<usize> {
    let n = state.a.len();
    let (up, down): (Vec<f64>, Vec<f64>) = (0..n)
        .map(|i| {
            let (up, down) = smo::pulls(problem, state, i);
            (up, -down)
        })
        .unzip();
    let mut order: Vec<usize> = (0..n).collect();
    let mut chosen: Vec<usize> = Vec::new();
    if problem.bias {
        for pull in [&up, &down] {
            order.sort_by(|&i, &j| pull[j].total_cmp(&pull[i]).then(i.cmp(&j)));
            let able = order.iter().filter(|&&i| pull[i] > f64::NEG_INFINITY);
            chosen.extend(able.take(CHUNK / 2));
        }
    } else {
        let pull = |i: usize| up[i].max(down[i]);
        order.sort_by(|&i, &j| pull(j).total_cmp(&pull(i)).then(i.cmp(&j)));
        let able = order.iter().filter(|&&i| pull(i) > f64::NEG_INFINITY);
        chosen.extend(able.take(CHUNK));
    }
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Optimises the samples of the chunk, all others fixed; who moved, and by how much.
fn optimise(
    gram: &Gram,
    problem: &Problem<'_>,
    weights: &[f64],
    chunk: &[usize],
    state: &mut ScalarState,
    steps: &mut u64,
) -> Vec<(usize, f64)> {
    let pick = |v: &[f64]| -> Vec<f64> { chunk.iter().map(|&i| v[i]).collect() };
    let (targets, costs) = (pick(problem.targets), pick(problem.costs));
    let part = Problem {
        targets: &targets,
        costs: &costs,
        ..*problem
    };
    let block = gram.subset(chunk);
    let mut rows = CombinedRows::new(&block, weights, u64::MAX);
    let mut inner = ScalarState {
        a: pick(&state.a),
        scores: pick(&state.scores),
    };
    // The chunk's scores hold what the others add, so it has no gap of its own to stop at.
    let most = (STEPS_PER_SAMPLE * chunk.len() as u64).max(1);
    let outcome = smo::solve(
        &mut rows,
        &part,
        &mut inner,
        f64::NEG_INFINITY,
        most,
        &mut || false,
    );
    *steps += outcome.steps;
    let mut moved = Vec::new();
    for (&i, a) in chunk.iter().zip(inner.a) {
        if a != state.a[i] {
            moved.push((i, a - state.a[i]));
            state.a[i] = a;
        }
    }
    moved
}
