//! How well each kernel predicts by itself, without training n times: leave-one-out of least-squares SVMs.
//!
//! With H = [K + I/C, 1; 1ᵀ, 0] the least-squares SVM of targets y has (a, b) = H⁻¹(y, 0), and without sample i it would predict
//! y_i − a_i/(H⁻¹)_ii there (Cawley 2006): one inverse for all samples, and for all classes, each against the others. Kernels are ranked
//! so in the experiments of OBSCURE.
//!
//! With A = K + I/C, u = A⁻¹1 and b = uᵀy/uᵀ1, eliminating the border gives a = A⁻¹y − bu and
//! (H⁻¹)_ii = (A⁻¹)_ii − u_i²/uᵀ1.
//!
//! Cost: n³ for each kernel.

use crate::data::Targets;
use crate::eigen::{spectrum, spectrum_bytes};
use crate::error::{Error, Result, check_positive};
use crate::gram::Gram;
use crate::math::{cholesky, dot, solve_lower_columns};
use crate::observe::{self, Observer};

/// Leave-one-out error of each kernel by itself: share of wrong classes, or mean squared error of numbers.
pub fn leave_one_out(
    gram: &Gram,
    targets: &Targets,
    c: f64,
    observer: &dyn Observer,
) -> Result<Vec<f64>> {
    let n = gram.n_rows();
    check_positive("C", c)?;
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
    let needed = spectrum_bytes(n);
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
        let inverse = Inverse::of(&kernel, n, c)?;
        let residuals = left_out_residuals(&inverse, &y, outputs);
        let left_out = |i: usize, k: usize| y[i * outputs + k] - residuals[i * outputs + k];
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

/// A⁻¹ = GᵀDG for A = K + I/C, with a diagonal D.
struct Inverse {
    n: usize,
    /// Row after row.
    g: Vec<f64>,
    d: Vec<f64>,
}

impl Inverse {
    /// From the Cholesky factor; from the eigenvectors, which take about ten times as long, if A is not positive definite.
    fn of(kernel: &[f32], n: usize, c: f64) -> Result<Self> {
        let regularised = || {
            let mut a: Vec<f64> = kernel.iter().map(|&v| f64::from(v)).collect();
            a.iter_mut().step_by(n + 1).for_each(|v| *v += 1.0 / c);
            a
        };
        let mut factor = regularised();
        if cholesky(&mut factor, n).is_some() {
            let mut g = vec![0.0; n * n];
            g.iter_mut().step_by(n + 1).for_each(|v| *v = 1.0);
            solve_lower_columns(&factor, &mut g, n);
            let d = vec![1.0; n];
            return Ok(Inverse { n, g, d });
        }
        drop(factor);
        let Some(found) = spectrum(regularised(), n, f64::INFINITY) else {
            let why = "the eigenvalues of a kernel matrix cannot be found: the iteration does not converge";
            return Err(Error::input("", why, ""));
        };
        let d = found.values.iter().map(|v| v.recip()).collect();
        let g = found.vectors;
        Ok(Inverse { n, g, d })
    }

    /// A⁻¹x.
    fn times(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.n];
        for (row, d) in self.g.chunks(self.n).zip(&self.d) {
            let along = d * dot(row, x);
            out.iter_mut().zip(row).for_each(|(o, g)| *o += along * g);
        }
        out
    }

    /// The diagonal of A⁻¹.
    fn diagonal(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.n];
        for (row, d) in self.g.chunks(self.n).zip(&self.d) {
            out.iter_mut().zip(row).for_each(|(o, g)| *o += d * g * g);
        }
        out
    }
}

/// a_i/(H⁻¹)_ii of every sample, for each output.
fn left_out_residuals(inverse: &Inverse, y: &[f64], outputs: usize) -> Vec<f64> {
    let n = inverse.n;
    let u = inverse.times(&vec![1.0; n]);
    let total: f64 = u.iter().sum();
    let mut scales = inverse.diagonal();
    scales
        .iter_mut()
        .zip(&u)
        .for_each(|(s, u)| *s -= u * u / total);
    let mut residuals = vec![0.0; n * outputs];
    for k in 0..outputs {
        let y: Vec<f64> = y.iter().skip(k).step_by(outputs).copied().collect();
        let b = dot(&u, &y) / total;
        let a = inverse.times(&y);
        for i in 0..n {
            residuals[i * outputs + k] = (a[i] - b * u[i]) / scales[i];
        }
    }
    residuals
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bordered system solved by Gauss and Jordan.
    fn by_elimination(kernel: &[f32], n: usize, c: f64) -> Vec<Vec<f64>> {
        let size = n + 1;
        let mut h = vec![vec![0.0; 2 * size]; size];
        for (i, row) in h.iter_mut().enumerate() {
            for (j, v) in row[..size].iter_mut().enumerate() {
                *v = match (i < n, j < n) {
                    (true, true) => {
                        f64::from(kernel[i * n + j]) + if i == j { 1.0 / c } else { 0.0 }
                    }
                    (false, false) => 0.0,
                    _ => 1.0,
                };
            }
            row[size + i] = 1.0;
        }
        for i in 0..size {
            let best = (i..size)
                .max_by(|&a, &b| h[a][i].abs().total_cmp(&h[b][i].abs()))
                .unwrap();
            h.swap(i, best);
            let pivot = h[i][i];
            h[i].iter_mut().for_each(|v| *v /= pivot);
            let row = h[i].clone();
            for (_, other) in h.iter_mut().enumerate().filter(|(j, _)| *j != i) {
                let factor = other[i];
                other
                    .iter_mut()
                    .zip(&row)
                    .for_each(|(v, r)| *v -= factor * r);
            }
        }
        h.into_iter().map(|row| row[size..].to_vec()).collect()
    }

    #[test]
    fn it_is_the_inverse_of_the_bordered_matrix_definite_or_not() {
        let n = 9;
        let outputs = 2;
        for shift in [3.0, 0.0, -1.0] {
            let kernel: Vec<f32> = (0..n * n)
                .map(|e| {
                    let (i, j) = ((e / n) as f32, (e % n) as f32);
                    (-(i - j).powi(2) / 4.0).exp() + if i == j { shift } else { 0.0 }
                })
                .collect();
            let y: Vec<f64> = (0..n * outputs)
                .map(|i| ((i * 5) % 7) as f64 - 3.0)
                .collect();
            let inverse = Inverse::of(&kernel, n, 4.0).unwrap();
            assert_eq!(inverse.d.iter().any(|&d| d < 0.0), shift < 0.0);
            let found = left_out_residuals(&inverse, &y, outputs);
            let h = by_elimination(&kernel, n, 4.0);
            for i in 0..n {
                for k in 0..outputs {
                    let a: f64 = (0..n).map(|j| h[i][j] * y[j * outputs + k]).sum();
                    let apart = found[i * outputs + k] - a / h[i][i];
                    assert!(
                        apart.abs() < 1e-9 * (a / h[i][i]).abs().max(1.0),
                        "{shift}: {i}, {k}: {apart}"
                    );
                }
            }
        }
    }
}
