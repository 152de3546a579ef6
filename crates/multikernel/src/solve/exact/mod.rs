//! Exact MKL: coefficients and kernel weights to a duality gap that the user chooses.
//!
//! Problem: min ½ Ω(g)² + Σ C_i ℓ(f_i + b, y_i) (see `certificate`), for any norm Ω and scalar loss ℓ here, for Crammer and Singer's loss of
//! all classes in [`multiclass`].
//!
//! Method (`outer_loop.rs`): alternate (i) a working-set solver on the combined kernel K_β (`smo.rs`, `crammer_singer.rs`), warm started, to
//! an accuracy tied to the current gap, with (ii) the norm's weight map, extrapolated, or Newton steps (`weight_steps.rs`). r = 2 needs no
//! (ii). Large problems start from the weights of a quarter of their samples.
//!
//! Beside it stand the algorithms of Kloft et al. as published, [`wrapper`] and [`interleaved`], their Tikhonov form ([`tikhonov`]), and
//! what methods that search among weights ask for (`svm.rs`).
//!
//! Stop: relative duality gap (P − D)/max(|P|, |D|) of the same (a, β), confirmed by the kernels at the end. The result is the best point
//! that was seen (`run.rs`).
//!
//! Cost: per round one combined matrix (after the first round the rows of support samples, and others on demand), one product and one
//! histogram of the pairs of support samples, for any number of kernels per statistic; per working-set step two rows.

mod best_row;
mod class_block;
mod class_matrix;
mod combined_rows;
mod crammer_singer;
mod extrapolate;
pub mod interleaved;
mod joint;
mod kernel_outputs;
pub mod multiclass;
pub(crate) mod newton;
mod newton_multiclass;
mod newton_scalar;
mod outer_loop;
mod run;
mod scalar;
mod smo;
pub(crate) mod svm;
pub mod tikhonov;
mod weight_steps;
mod work;
mod working_set;
pub mod wrapper;

use crate::gram::Gram;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{Limits, Problem, Round, Solution, Start, Status};
use combined_rows::CombinedRows;
use scalar::Scalar;

/// Solves the problem; `start` makes it a warm start.
pub fn solve(
    gram: &Gram,
    norm: &Norm,
    problem: &Problem<'_>,
    limits: &Limits,
    start: Option<Start>,
    observer: &dyn Observer,
) -> Solution {
    let mut work = Scalar::with_outputs(*problem, gram, limits.memory);
    outer_loop::solve(gram, norm, &mut work, limits, start, observer)
}
