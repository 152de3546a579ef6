//! How well each kernel predicts by itself, without training n times: leave-one-out of least-squares SVMs.
//!
//! With H = [K + I/C, 1; 1ᵀ, 0] the least-squares SVM of targets y has (a, b) = H⁻¹(y, 0), and without sample i it would predict
//! y_i − a_i/(H⁻¹)_ii there (Cawley 2006): one inverse for all samples, and for all classes, each against the others. Kernels are ranked
//! so in the experiments of OBSCURE.
//!
//! Cost: n³ for each kernel.

use crate::data::Targets;
use crate::error::{Error, Result};
use crate::gram::Gram;
use crate::observe::{self, Observer};
use faer::Mat;
use faer::linalg::solvers::DenseSolveCore;

/// Leave-one-out error of each kernel by itself: share of wrong classes, or mean squared error of numbers.
pub fn leave_one_out(
    gram: &Gram,
    targets: &Targets,
    c: f64,
    observer: &dyn Observer,
) -> Result<Vec<f64>> {
    let n = gram.n_rows();
    if !(c > 0.0 && c.is_finite()) {
        return Err(Error::input(
            "C",
            format!("it is {c}"),
            "give a positive finite number",
        ));
    }
    let (y, outputs) = match targets {
        Targets::Classes { names, index } => (super::indicators(index, names.len()), names.len()),
        Targets::Real(values) => (values.clone(), 1),
        Targets::None => (Vec::new(), 1),
    };
    if y.len() != n * outputs {
        return Err(Error::input(
            "labels",
            "there is not one for each sample",
            "give labels, of which one after another is left out",
        ));
    }
    let needed = 3 * 8 * (n as u64 + 1).pow(2);
    if needed > gram.spare_memory() {
        return Err(Error::Memory {
            what: "the inverse of a kernel matrix".into(),
            needed,
            available: gram.spare_memory(),
            remedy: "allow more memory, or give fewer samples".into(),
        });
    }
    let mut errors = Vec::with_capacity(gram.n_kernels());
    for m in 0..gram.n_kernels() {
        observe::work(observer, "kernels alone", m, gram.n_kernels())?;
        let kernel = gram.kernel(m).matrix();
        let bordered = Mat::from_fn(n + 1, n + 1, |i, j| match (i < n, j < n) {
            (true, true) => f64::from(kernel[i * n + j]) + if i == j { 1.0 / c } else { 0.0 },
            (false, false) => 0.0,
            _ => 1.0,
        });
        let inverse = bordered.partial_piv_lu().inverse();
        let coefficient = |i: usize, k: usize| -> f64 {
            (0..n).map(|j| inverse[(i, j)] * y[j * outputs + k]).sum()
        };
        let left_out =
            |i: usize, k: usize| y[i * outputs + k] - coefficient(i, k) / inverse[(i, i)];
        let wrong: f64 = match targets {
            Targets::Classes { index, .. } => (0..n)
                .filter(|&i| {
                    let scores: Vec<f64> = (0..outputs).map(|k| left_out(i, k)).collect();
                    let best =
                        (0..outputs).fold(0, |a, b| if scores[b] > scores[a] { b } else { a });
                    best != index[i] as usize || scores.iter().any(|s| s.is_nan())
                })
                .count() as f64,
            _ => (0..n).map(|i| (left_out(i, 0) - y[i]).powi(2)).sum(),
        };
        errors.push(wrong / n as f64);
    }
    Ok(errors)
}
