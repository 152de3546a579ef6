//! Given kernel matrices that are not positive semidefinite: found before any work is lost, and what may be done.
//!
//! A matrix counts as indefinite when its smallest eigenvalue is below −1e-4·max|K|·n. Up to [`EXACT`] samples that
//! eigenvalue is estimated by Lanczos on the whole matrix. Above, a scan of all pairs for |k_ij|² > k_ii k_jj (two
//! samples are enough to prove it) and a seeded principal submatrix decide whether the whole matrix is looked at.

use crate::data::Pairwise;
use crate::eigen::extremes;
use crate::error::{Error, Result};
use crate::math::mixed_dot;
use crate::random::Random;
use rayon::prelude::*;
use std::str::FromStr;

/// Up to so many samples the whole matrix is always looked at.
const EXACT: usize = 1000;
/// Tolerated: so much of max|K|·n.
const TOLERATED: f64 = 1e-4;

/// What to do with an indefinite matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indefinite {
    /// Refuse it.
    #[default]
    Error,
    /// Add the size of the smallest eigenvalue to the diagonal.
    Shift,
    /// Take it as it is: the problem may have no optimum, and the certificate says how far one got.
    Allow,
}

impl FromStr for Indefinite {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "error" => Ok(Indefinite::Error),
            "shift" => Ok(Indefinite::Shift),
            "allow" => Ok(Indefinite::Allow),
            _ => Err(Error::input(
                "indefinite",
                format!("'{text}' is not known"),
                "write error, shift or allow",
            )),
        }
    }
}

/// Checks a square symmetric matrix; gives back another if it was changed, and what was done, in a sentence.
pub(super) fn check(
    matrix: &Pairwise,
    name: &str,
    policy: Indefinite,
) -> Result<Option<(Pairwise, String)>> {
    if policy == Indefinite::Allow {
        return Ok(None);
    }
    let n = matrix.rows();
    let largest = largest_entry(matrix);
    let floor = -TOLERATED * largest * n as f64;
    if n > EXACT && !suspicious(matrix, largest) {
        return Ok(None);
    }
    let everyone: Vec<usize> = (0..n).collect();
    let smallest = smallest_eigenvalue(matrix, &everyone);
    if smallest >= floor {
        return Ok(None);
    }
    if policy == Indefinite::Error {
        return Err(Error::input(
            format!("kernel matrix '{name}'"),
            format!(
                "it is not positive semidefinite: its smallest eigenvalue is about {smallest:.3}, its largest entry {largest:.3}"
            ),
            "repair the matrix, or say what to do with it: --indefinite shift or --indefinite allow",
        ));
    }
    // The estimate is never below the true eigenvalue: a little more makes it safe.
    let shift = -1.01 * smallest;
    let mut values = Vec::with_capacity(n * n);
    for i in 0..n {
        values.extend_from_slice(matrix.row(i));
        values[i * n + i] += shift as f32;
    }
    let note =
        format!("kernel matrix '{name}' is indefinite: {shift:.3} was added to its diagonal");
    Ok(Some((Pairwise::new(n, n, values)?, note)))
}

fn largest_entry(matrix: &Pairwise) -> f64 {
    let of_row = |_, row: &[f32]| row.iter().fold(0.0f32, |a, v| a.max(v.abs()));
    matrix
        .map_rows(of_row)
        .into_iter()
        .fold(0.0, f32::max)
        .into()
}

/// Whether two samples prove, or a sample of the samples suggests, that the matrix is indefinite.
fn suspicious(matrix: &Pairwise, largest: f64) -> bool {
    let n = matrix.rows();
    let diagonal: Vec<f32> = matrix.map_rows(|i, row| row[i]);
    let slack = (TOLERATED * largest) as f32;
    let proved = matrix.map_rows(|i, row| {
        let own = diagonal[i];
        own < -slack
            || row
                .iter()
                .zip(&diagonal)
                .any(|(k, other)| k.abs() > (own.max(0.0) * other.max(0.0)).sqrt() + slack)
    });
    if proved.contains(&true) {
        return true;
    }
    let some = Random::new(0).sample(n, EXACT);
    smallest_eigenvalue(matrix, &some) < -TOLERATED * largest * some.len() as f64
}

/// An estimate, never below the truth, for the principal submatrix of the samples named.
fn smallest_eigenvalue(matrix: &Pairwise, samples: &[usize]) -> f64 {
    let m = samples.len();
    let everyone = m == matrix.rows();
    let part: Vec<f32> = if everyone {
        Vec::new()
    } else {
        let mut values = Vec::with_capacity(m * m);
        for some in samples.chunks(16) {
            for &i in some {
                let row = matrix.row(i);
                values.extend(samples.iter().map(|&j| row[j]));
            }
            // The system reads ahead, so more than these rows is in memory by now.
            matrix.release();
        }
        values
    };
    let multiply = |x: &[f64], out: &mut [f64]| {
        if everyone {
            out.copy_from_slice(&matrix.map_rows(|_, row| mixed_dot(row, x)));
        } else {
            out.par_iter_mut()
                .zip(part.par_chunks(m))
                .for_each(|(o, row)| *o = mixed_dot(row, x));
        }
    };
    // The threshold is loose, so a loose estimate will do.
    extremes(m, multiply, 1e-4, 60).smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n: usize, entry: impl Fn(usize, usize) -> f32) -> Pairwise {
        Pairwise::new(n, n, (0..n * n).map(|k| entry(k / n, k % n)).collect()).unwrap()
    }

    #[test]
    fn kernels_pass_and_others_are_named() {
        for n in [2, 50, 1200] {
            let good = matrix(n, |i, j| (-((i as f32 - j as f32) / 5.0).powi(2)).exp());
            assert!(check(&good, "good", Indefinite::Error).unwrap().is_none());
            // One pair that no kernel can have.
            let bad = matrix(n, |i, j| match (i, j) {
                (0, 1) | (1, 0) => 3.0,
                _ if i == j => 1.0,
                _ => 0.0,
            });
            let error = check(&bad, "bad", Indefinite::Error)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("'bad'") && error.contains("eigenvalue is about -2.000"),
                "{error}"
            );
            assert!(check(&bad, "bad", Indefinite::Allow).unwrap().is_none());
            let (shifted, note) = check(&bad, "bad", Indefinite::Shift).unwrap().unwrap();
            assert!(note.contains("was added to its diagonal"), "{note}");
            assert!(
                check(&shifted, "shifted", Indefinite::Error)
                    .unwrap()
                    .is_none()
            );
        }
    }

    #[test]
    fn a_spread_negative_direction_is_found_in_a_large_matrix() {
        let n = 1500;
        let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        let bad = matrix(n, |i, j| {
            f32::from(u8::from(i == j)) * 2.0 - 0.01 * sign(i) * sign(j)
        });
        assert!(check(&bad, "bad", Indefinite::Error).is_err());
    }
}
