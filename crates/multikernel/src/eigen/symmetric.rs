//! Eigenvalues of a whole symmetric matrix, and the eigenvectors of the lowest ones (Golub and Van Loan, Matrix
//! Computations, sections 8.3 and 5.1.7).
//!
//! 1. Householder reflections H_i make it tridiagonal: H_1 … H_{n−1} A H_{n−1} … H_1 = T. The update of one step and the
//!    product with the next reflection share one pass through the matrix, because reading it is what takes the time.
//! 2. Implicit QL diagonalises T. Its rotations are gathered and turn the eigenvectors of T strip by strip: a
//!    strip of components of all eigenvectors fits into the cache.
//! 3. The eigenvectors that are wanted go back through the reflections, 64 of them at a time: H_i H_{i+1} … = I − V W Vᵀ
//!    (Schreiber and Van Loan 1989).
//!
//! Threads share the passes, the strips and the vectors, all in fixed pieces, so that the bits do not depend on their
//! number.

use super::tridiagonal::{Rotation, implicit_ql, turned};
use crate::math::{Matrix, dot, multiply};
use rayon::prelude::*;

/// A pass goes through this many rows or more in one piece.
const PIECE: usize = 128;
/// A pass has at most this many pieces.
const MOST_PIECES: usize = 16;
/// Rows that a pass takes together.
const TOGETHER: usize = 4;
/// Components of all eigenvectors that are turned together.
const STRIP: usize = 32;
/// Rotations that are gathered before the strips are turned, for each row of the matrix.
const GATHERED: usize = 64;
/// Reflections that are applied together.
const REFLECTIONS: usize = 64;
/// Eigenvectors that go back through the reflections together.
const VECTORS: usize = 64;

/// Eigenvalues and eigenvectors of a symmetric matrix.
#[derive(Debug)]
pub(crate) struct Spectrum {
    /// All eigenvalues, ascending.
    pub(crate) values: Vec<f64>,
    /// Orthonormal eigenvectors of the first eigenvalues, one after the other.
    pub(crate) vectors: Vec<f64>,
}

/// Bytes that [`spectrum`] needs for an n×n matrix, the matrix and all eigenvectors included.
pub(crate) fn spectrum_bytes(n: usize) -> u64 {
    let n = n as u64;
    8 * n * (3 * n + (STRIP + 2 * GATHERED + MOST_PIECES) as u64)
}

/// All eigenvalues, and the eigenvectors of those below `limit`, of the symmetric n×n matrix whose lower half
/// `matrix` holds; none if the iteration does not converge.
pub(crate) fn spectrum(mut matrix: Vec<f64>, n: usize, limit: f64) -> Option<Spectrum> {
    let (mut d, mut e, scales) = tridiagonal(&mut matrix, n);
    let mut turned = Strips::unit(n);
    let size = d.iter().chain(&e).fold(0.0f64, |m, v| m.max(v.abs()));
    let converged = implicit_ql(&mut d, &mut e, size, |m, rotations| {
        turned.gather(m, rotations)
    });
    turned.turn();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| d[a].total_cmp(&d[b]));
    let values: Vec<f64> = order.iter().map(|&i| d[i]).collect();
    order.truncate(values.partition_point(|&v| v < limit));
    let mut vectors = turned.rows(&order);
    drop(turned);
    reflect(&mut vectors, &matrix, n, &scales);
    converged.then_some(Spectrum { values, vectors })
}

/// Makes the matrix tridiagonal: returns the diagonal, the numbers beside it with one more place, and the scale τ_i of
/// each reflection H_i = I − τ_i v vᵀ. Its v, of i components, replaces the beginning of row i of the matrix.
fn tridiagonal(a: &mut [f64], n: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (mut d, mut e, mut scales) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    // What the last reflection still has to take off: v wᵀ + w vᵀ.
    let (mut v, mut w) = (vec![0.0; n], vec![0.0; n]);
    let mut sums = vec![0.0; MOST_PIECES * n];
    for i in (0..n).rev() {
        let (above, row) = a.split_at_mut(i * n);
        let row = &mut row[..=i];
        for (j, a) in row.iter_mut().enumerate() {
            *a -= v[i] * w[j] + w[i] * v[j];
        }
        d[i] = row[i];
        if i == 0 {
            break;
        }
        let x = &mut row[..i];
        (e[i - 1], scales[i]) = reflection(x);
        let product = update_and_multiply(above, n, (&v[..i], &w[..i]), x, &mut sums);
        // w = p − ½τ(pᵀv) v with p = τ A v.
        let along = 0.5 * scales[i] * scales[i] * dot(product, x);
        for ((w, p), v) in w.iter_mut().zip(product).zip(&*x) {
            *w = scales[i] * p - along * v;
        }
        v[..i].copy_from_slice(x);
    }
    (d, e, scales)
}

/// Replaces x by the v of the reflection I − τ v vᵀ that takes x to (0, …, 0, β); returns β and τ.
fn reflection(x: &mut [f64]) -> (f64, f64) {
    let (last, before) = x.split_last_mut().expect("there is a component");
    let length = dot(before, before).sqrt();
    let alpha = std::mem::replace(last, 1.0);
    if length == 0.0 {
        return (alpha, 0.0);
    }
    let beta = -alpha.hypot(length).copysign(alpha);
    before.iter_mut().for_each(|v| *v /= alpha - beta);
    (beta, (beta - alpha) / beta)
}

/// One pass through the lower half of the leading matrix A, of as many rows as x has components: takes v wᵀ + w vᵀ off,
/// and returns A x, which is in `sums`.
fn update_and_multiply<'s>(
    a: &mut [f64],
    n: usize,
    (v, w): (&[f64], &[f64]),
    x: &[f64],
    sums: &'s mut [f64],
) -> &'s [f64] {
    let rows = x.len();
    let pieces = (rows / PIECE).clamp(1, MOST_PIECES);
    // Pieces of a triangle of about the same area.
    let end = |piece: usize| match piece == pieces {
        true => rows,
        false => (rows as f64 * (piece as f64 / pieces as f64).sqrt()) as usize,
    };
    let mut jobs = Vec::with_capacity(pieces);
    let mut rest = &mut a[..rows * n];
    for (piece, sums) in sums.chunks_mut(n).take(pieces).enumerate() {
        let (first, end) = (end(piece), end(piece + 1));
        let now;
        (now, rest) = rest.split_at_mut((end - first) * n);
        jobs.push((first, now, &mut sums[..end]));
    }
    let work = |(first, rows, sums): (usize, &mut [f64], &mut [f64])| {
        pass(rows, n, first, (v, w), x, sums);
    };
    match jobs.len() {
        1 => jobs.into_iter().for_each(work),
        _ => jobs.into_par_iter().for_each(work),
    }
    let (total, others) = sums.split_at_mut(n * (pieces - 1));
    let (total, others) = (&mut others[..rows], &*total);
    for (piece, other) in others.chunks(n).enumerate() {
        let other = &other[..end(piece + 1)];
        total.iter_mut().zip(other).for_each(|(t, o)| *t += o);
    }
    total
}

/// The part of a pass in whole rows of length n, of which the first is row `first` of the matrix.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn pass(
    rows: &mut [f64],
    n: usize,
    first: usize,
    (v, w): (&[f64], &[f64]),
    x: &[f64],
    sums: &mut [f64],
) {
    sums.fill(0.0);
    let mut at = first;
    for some in rows.chunks_mut(TOGETHER * n) {
        let mut some = some.chunks_mut(n);
        if some.len() == TOGETHER {
            let rows: [&mut [f64]; TOGETHER] =
                std::array::from_fn(|_| some.next().expect("as many rows as are taken together"));
            few_rows(rows, at, (v, w), x, sums);
            at += TOGETHER;
        } else {
            for row in some {
                few_rows([row], at, (v, w), x, sums);
                at += 1;
            }
        }
    }
}

/// R rows of the lower half, of which the first is row `at`.
#[inline(always)]
fn few_rows<const R: usize>(
    rows: [&mut [f64]; R],
    at: usize,
    (v, w): (&[f64], &[f64]),
    x: &[f64],
    sums: &mut [f64],
) {
    const LANES: usize = 8;
    let own = |of: &[f64]| -> [f64; R] { std::array::from_fn(|r| of[at + r]) };
    let (vr, wr, xr) = (own(v), own(w), own(x));
    let mut dots = [[0.0; LANES]; R];
    let whole = at / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        let lanes =
            |of: &[f64]| -> [f64; LANES] { *of[start..].first_chunk().expect("a whole chunk") };
        let (v, w, x) = (lanes(v), lanes(w), lanes(x));
        let mut sum = lanes(sums);
        for r in 0..R {
            let a: &mut [f64; LANES] = rows[r][start..].first_chunk_mut().expect("a whole chunk");
            for l in 0..LANES {
                a[l] -= vr[r] * w[l] + wr[r] * v[l];
                dots[r][l] += a[l] * x[l];
                sum[l] += a[l] * xr[r];
            }
        }
        sums[start..start + LANES].copy_from_slice(&sum);
    }
    for r in 0..R {
        let mut along: f64 = dots[r].iter().sum();
        for j in whole..at + r {
            let a = &mut rows[r][j];
            *a -= vr[r] * w[j] + wr[r] * v[j];
            along += *a * x[j];
            sums[j] += *a * xr[r];
        }
        let diagonal = &mut rows[r][at + r];
        *diagonal -= 2.0 * vr[r] * wr[r];
        sums[at + r] += along + *diagonal * xr[r];
    }
}

/// A square matrix in strips of columns, and the sweeps of rotations that its rows have yet to be turned by.
struct Strips {
    n: usize,
    /// For each strip its rows, one after the other.
    strips: Vec<[f64; STRIP]>,
    /// Where each sweep begins, and how many rotations it has.
    sweeps: Vec<(usize, usize)>,
    rotations: Vec<Rotation>,
}

impl Strips {
    /// The unit matrix.
    fn unit(n: usize) -> Self {
        let mut strips = vec![[0.0; STRIP]; n * n.div_ceil(STRIP)];
        for i in 0..n {
            strips[i / STRIP * n + i][i % STRIP] = 1.0;
        }
        Strips {
            n,
            strips,
            sweeps: Vec::new(),
            rotations: Vec::with_capacity(GATHERED * n),
        }
    }

    /// Takes a sweep, as [`implicit_ql`] gives it.
    fn gather(&mut self, m: usize, rotations: &[Rotation]) {
        if self.rotations.len() + rotations.len() > GATHERED * self.n {
            self.turn();
        }
        self.sweeps.push((m, rotations.len()));
        self.rotations.extend_from_slice(rotations);
    }

    /// Turns the rows by all that was gathered.
    fn turn(&mut self) {
        let (sweeps, rotations) = (&self.sweeps, &self.rotations);
        self.strips
            .par_chunks_mut(self.n)
            .for_each(|strip| turn_strip(strip, sweeps, rotations));
        self.sweeps.clear();
        self.rotations.clear();
    }

    /// Some rows, one after the other.
    fn rows(&self, which: &[usize]) -> Vec<f64> {
        let mut out = vec![0.0; which.len() * self.n];
        out.par_chunks_mut(self.n)
            .zip(which)
            .for_each(|(out, &row)| {
                for (out, strip) in out.chunks_mut(STRIP).zip(self.strips.chunks(self.n)) {
                    out.copy_from_slice(&strip[row][..out.len()]);
                }
            });
        out
    }
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn turn_strip(strip: &mut [[f64; STRIP]], sweeps: &[(usize, usize)], mut rotations: &[Rotation]) {
    for &(m, count) in sweeps {
        let (now, rest) = rotations.split_at(count);
        rotations = rest;
        let mut lower = strip[m];
        for (&(c, s), at) in now.iter().zip((0..m).rev()) {
            let (above, below) = strip.split_at_mut(at + 1);
            let (upper, done) = (&above[at], &mut below[0]);
            for l in 0..STRIP {
                (lower[l], done[l]) = turned((c, s), upper[l], lower[l]);
            }
        }
        strip[m - count] = lower;
    }
}

/// Applies the reflections H_1, H_2, … of [`tridiagonal`] to vectors of n components, one after the other.
fn reflect(vectors: &mut [f64], reflectors: &[f64], n: usize, scales: &[f64]) {
    for first in (1..n).step_by(REFLECTIONS) {
        let end = (first + REFLECTIONS).min(n);
        let (count, width) = (end - first, end - 1);
        let mut panel = vec![0.0; count * width];
        for (i, row) in (first..end).zip(panel.chunks_mut(width)) {
            row[..i].copy_from_slice(&reflectors[i * n..i * n + i]);
        }
        let panel = Matrix::of_rows(&panel, width);
        let factor = block_factor(panel, &scales[first..end]);
        let factor = Matrix::of_rows(&factor, count);
        vectors.par_chunks_mut(VECTORS * n).for_each(|x| {
            let some = x.len() / n;
            let (mut along, mut weights) = (vec![0.0; some * count], vec![0.0; some * count]);
            let rows = Matrix::new(x, some, width, n);
            multiply(rows, panel.transposed(), 1.0, 0.0, &mut along, count);
            let along = Matrix::of_rows(&along, count);
            multiply(along, factor, 1.0, 0.0, &mut weights, count);
            multiply(Matrix::of_rows(&weights, count), panel, -1.0, 1.0, x, n);
        });
    }
}

/// The upper triangle W of H_1 H_2 … H_k = I − V W Vᵀ, for the reflections whose v are the rows of `panel`.
fn block_factor(panel: Matrix<'_, f64>, scales: &[f64]) -> Vec<f64> {
    let k = scales.len();
    let mut products = vec![0.0; k * k];
    multiply(panel, panel.transposed(), 1.0, 0.0, &mut products, k);
    let mut factor = vec![0.0; k * k];
    for (j, scale) in scales.iter().enumerate() {
        for i in 0..j {
            let sum: f64 = (i..j)
                .map(|l| factor[i * k + l] * products[l * k + j])
                .sum();
            factor[i * k + j] = -scale * sum;
        }
        factor[j * k + j] = *scale;
    }
    factor
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn check(a: &[f64], n: usize) -> Spectrum {
        let found = spectrum(a.to_vec(), n, f64::INFINITY).unwrap();
        assert_eq!((found.values.len(), found.vectors.len()), (n, n * n));
        assert!(found.values.is_sorted());
        let size = found.values.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        for (i, (vector, value)) in found.vectors.chunks(n).zip(&found.values).enumerate() {
            for (row, v) in a.chunks(n).zip(vector) {
                let apart = (dot(row, vector) - value * v).abs();
                assert!(
                    apart < 1e-13 * n as f64 * size,
                    "n {n}, vector {i}: {apart}"
                );
            }
            for (j, other) in found.vectors.chunks(n).enumerate() {
                let expected = f64::from(u8::from(i == j));
                let apart = (dot(vector, other) - expected).abs();
                assert!(apart < 1e-13 * n as f64, "n {n}, {i} and {j}: {apart}");
            }
        }
        found
    }

    fn symmetric(n: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let value = random.normal();
                (a[i * n + j], a[j * n + i]) = (value, value);
            }
        }
        a
    }

    #[test]
    fn vectors_are_orthonormal_and_belong_to_their_values() {
        // Around the sizes of strips, blocks of reflections and pieces of a pass.
        for n in [1, 2, 3, 5, 8, 31, 33, 64, 66, 130, 300] {
            let a = symmetric(n, n as u64);
            let found = check(&a, n);
            let trace: f64 = (0..n).map(|i| a[i * n + i]).sum();
            assert!((found.values.iter().sum::<f64>() - trace).abs() < 1e-11 * n as f64);
        }
    }

    #[test]
    fn equal_and_vanishing_values_are_no_trouble() {
        for n in [1, 4, 40] {
            let unit: Vec<f64> = (0..n * n)
                .map(|e| f64::from(u8::from(e % (n + 1) == 0)))
                .collect();
            assert!(check(&unit, n).values.iter().all(|&v| v == 1.0));
            assert!(check(&vec![0.0; n * n], n).values.iter().all(|&v| v == 0.0));
            // One eigenvalue n, the others 0.
            let found = check(&vec![1.0; n * n], n).values;
            assert!((found[n - 1] - n as f64).abs() < 1e-12);
            assert!(found[..n - 1].iter().all(|v| v.abs() < 1e-12));
        }
    }

    #[test]
    fn only_vectors_below_the_limit_are_made() {
        let n = 50;
        let a = symmetric(n, 3);
        let all = spectrum(a.clone(), n, f64::INFINITY).unwrap();
        let some = spectrum(a, n, 0.0).unwrap();
        let negative = all.values.iter().filter(|v| **v < 0.0).count();
        assert_eq!(some.values, all.values);
        assert_eq!(some.vectors.len(), negative * n);
        for (a, b) in some.vectors.iter().zip(&all.vectors) {
            assert!((a - b).abs() < 1e-12);
        }
    }
}
