//! Eigenvalues of symmetric matrices: all of them, with eigenvectors ([`spectrum`]); or the ends of the spectrum of a
//! matrix that can only be multiplied with ([`extremes`]: Lanczos, with full reorthogonalisation, which takes a few
//! dozen products and makes no ghost eigenvalues).

mod symmetric;
mod tridiagonal;

use crate::math::dot;
use crate::random::Random;
pub(crate) use symmetric::{spectrum, spectrum_bytes};
use tridiagonal::{implicit_ql, turned};

/// Estimates of the smallest and the largest eigenvalue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extremes {
    /// Never below the true smallest eigenvalue, up to rounding.
    pub(crate) smallest: f64,
    /// Never above the true largest eigenvalue, up to rounding.
    pub(crate) largest: f64,
}

/// Products between two looks at the residuals.
const LOOK_EVERY: usize = 5;

/// The ends of the spectrum of the n×n matrix that `multiply` multiplies with: writes K·x into its second argument.
/// Stops when both are within `tolerance` × the largest magnitude of an eigenvalue, or after `max_products`.
pub(crate) fn extremes(
    n: usize,
    mut multiply: impl FnMut(&[f64], &mut [f64]),
    tolerance: f64,
    max_products: usize,
) -> Extremes {
    let mut random = Random::new(0);
    let mut q: Vec<f64> = (0..n).map(|_| random.normal()).collect();
    let length = norm(&q).max(f64::MIN_POSITIVE);
    scale(&mut q, 1.0 / length);
    let mut basis: Vec<Vec<f64>> = vec![q];
    let mut diagonal = Vec::new();
    let mut beside = Vec::new();
    let mut w = vec![0.0; n];
    let limit = max_products.min(n);
    let mut found = Extremes {
        smallest: 0.0,
        largest: 0.0,
    };
    for step in 1..=limit {
        let q = &basis[step - 1];
        multiply(q, &mut w);
        diagonal.push(dot(q, &w));
        // Twice is enough (Kahan): after the second pass the basis is orthogonal to working precision.
        for _ in 0..2 {
            for q in &basis {
                let along = dot(q, &w);
                w.iter_mut().zip(q).for_each(|(w, q)| *w -= along * q);
            }
        }
        let left = norm(&w);
        let size = diagonal
            .iter()
            .chain(&beside)
            .fold(0.0f64, |m, v| m.max(v.abs()));
        let exhausted = left <= 1e-12 * size || step == limit;
        if exhausted || step % LOOK_EVERY == 0 {
            let ritz = ritz_values(&diagonal, &beside);
            let (mut smallest, mut largest) = (ritz[0], ritz[0]);
            for &pair in &ritz {
                if pair.0 < smallest.0 {
                    smallest = pair;
                }
                if pair.0 > largest.0 {
                    largest = pair;
                }
            }
            found = Extremes {
                smallest: smallest.0,
                largest: largest.0,
            };
            // An eigenvalue lies within left·|last component| of each Ritz value.
            let allowed = tolerance * smallest.0.abs().max(largest.0.abs());
            let worst = left * smallest.1.abs().max(largest.1.abs());
            if exhausted || worst <= allowed {
                break;
            }
        }
        beside.push(left);
        basis.push(w.iter().map(|v| v / left).collect());
    }
    found
}

/// Eigenvalues of a symmetric tridiagonal matrix, each with the last component of its eigenvector.
fn ritz_values(diagonal: &[f64], beside: &[f64]) -> Vec<(f64, f64)> {
    let n = diagonal.len();
    let mut d = diagonal.to_vec();
    let mut e = beside[..n - 1].to_vec();
    e.push(0.0);
    let mut last = vec![0.0; n];
    last[n - 1] = 1.0;
    implicit_ql(&mut d, &mut e, 0.0, |m, rotations| {
        for (&rotation, i) in rotations.iter().zip((0..m).rev()) {
            (last[i], last[i + 1]) = turned(rotation, last[i], last[i + 1]);
        }
    });
    d.into_iter().zip(last).collect()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn scale(a: &mut [f64], factor: f64) {
    a.iter_mut().for_each(|v| *v *= factor);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Q D Qᵀ with a random orthogonal Q (a product of reflections).
    fn with_spectrum(eigenvalues: &[f64], seed: u64) -> Vec<Vec<f64>> {
        let n = eigenvalues.len();
        let mut random = Random::new(seed);
        let mut k: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                (0..n)
                    .map(|j| if i == j { eigenvalues[i] } else { 0.0 })
                    .collect()
            })
            .collect();
        for _ in 0..3 {
            let mut v: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            let length = norm(&v);
            scale(&mut v, 1.0 / length);
            let reflect = |x: &mut [f64]| {
                let along = 2.0 * dot(&v, x);
                x.iter_mut().zip(&v).for_each(|(x, v)| *x -= along * v);
            };
            k.iter_mut().for_each(|row| reflect(row));
            for j in 0..n {
                let mut column: Vec<f64> = k.iter().map(|row| row[j]).collect();
                reflect(&mut column);
                k.iter_mut().zip(column).for_each(|(row, v)| row[j] = v);
            }
        }
        k
    }

    fn of(k: &[Vec<f64>], max_products: usize) -> Extremes {
        let multiply = |x: &[f64], y: &mut [f64]| {
            y.iter_mut().zip(k).for_each(|(y, row)| *y = dot(row, x));
        };
        extremes(k.len(), multiply, 1e-9, max_products)
    }

    #[test]
    fn finds_a_lonely_negative_eigenvalue_quickly() {
        let mut spectrum: Vec<f64> = (0..200).map(|i| 0.9_f64.powi(i)).collect();
        spectrum[100] = -0.05;
        let found = of(&with_spectrum(&spectrum, 1), 60);
        assert!((found.smallest + 0.05).abs() < 1e-8, "{found:?}");
        assert!((found.largest - 1.0).abs() < 1e-8, "{found:?}");
    }

    #[test]
    fn is_exact_when_the_space_is_exhausted() {
        for n in 1..8 {
            let spectrum: Vec<f64> = (0..n).map(|i| i as f64 - 2.5).collect();
            let found = of(&with_spectrum(&spectrum, n as u64), 100);
            assert!((found.smallest + 2.5).abs() < 1e-10, "n {n}: {found:?}");
            assert!(
                (found.largest - (n as f64 - 3.5)).abs() < 1e-10,
                "n {n}: {found:?}"
            );
        }
    }

    #[test]
    fn identity_and_zero_end_after_one_product() {
        let found = of(&with_spectrum(&[1.0; 50], 3), 60);
        assert!((found.smallest - 1.0).abs() < 1e-9 && (found.largest - 1.0).abs() < 1e-9);
        let found = of(&vec![vec![0.0; 20]; 20], 60);
        assert_eq!((found.smallest, found.largest), (0.0, 0.0));
    }
}
