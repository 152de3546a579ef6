//! Exact MKL for all classes together: one score per class, one set of kernel weights, to a duality gap that the user
//! chooses.
//!
//! Problem: min ½ Ω(g)² + Σ C_i max_k ([k ≠ y_i] + f_ik − f_{i,y_i}), no bias (Crammer and Singer's loss), for any norm
//! Ω (see `certificate`). Coefficients are one row of A per sample.
//!
//! Method: the outer loop of [`super::solve`] with blocks of rows of A on the combined kernel (`crammer_singer.rs`). Large problems start
//! from the weights and coefficients of a quarter of their samples.
//!
//! Stop: relative duality gap of the same (A, β), confirmed by the kernels at the end.
//!
//! Cost: per round one combined matrix, one product and one histogram of the pairs of support samples, for any number of
//! kernels per statistic; per row step one kernel row for each class that changes.

use super::joint::Joint;
use super::outer_loop;
use super::{Limits, Solution, Start};
use crate::gram::Gram;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::MulticlassProblem;

/// Solves the problem; `start` makes it a warm start. Coefficients are row after row, one number per class.
///
/// # Panics
/// If classes, costs and start do not fit the kernels.
pub fn solve(
    gram: &Gram,
    norm: &Norm,
    problem: &MulticlassProblem<'_>,
    limits: &Limits,
    start: Option<Start>,
    observer: &dyn Observer,
) -> Solution {
    let n = gram.n_rows();
    assert!(problem.classes.len() == n && problem.costs.len() == n);
    if let Some(start) = &start {
        assert_eq!(start.coefficients.len(), n * problem.n_classes);
    }
    let mut work = Joint::new(*problem);
    outer_loop::solve(gram, norm, &mut work, limits, start, observer)
}
