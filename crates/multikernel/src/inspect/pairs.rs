//! What needs all kernels at once: their products with each other, and the samples that none of them tells apart.

use crate::math::rows_times_rows;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of the result per task.
const ROWS: usize = 256;
/// Entries per kernel that are multiplied in f32 before the sum goes on in f64.
const WIDTH: usize = 4096;
/// So few kernels are multiplied without the matrix product, which reads the machine's caches from files when it is first used: that
/// takes longer.
const FEW: usize = 64;
/// Entries per kernel that are then multiplied in f32: as many of few kernels fit in the first cache.
const FEW_WIDTH: usize = 256;
/// ‖φ(x) − φ(x')‖² over k(x,x) + k(x',x') below which a kernel does not tell two samples apart.
const SAME_SAMPLE: f64 = 1e-6;
/// So many pairs are listed.
const LISTED: usize = 10;

/// The lower halves of M symmetric matrices, one after the other, scaled so that the dot product of two of them is
/// the alignment of their matrices.
pub(super) struct Packed {
    kernels: usize,
    /// Entries of one lower half.
    length: usize,
    values: Vec<f32>,
}

impl Packed {
    pub(super) fn new(kernels: usize, n: usize) -> Self {
        let length = n * (n + 1) / 2;
        Packed {
            kernels,
            length,
            values: vec![0.0; kernels * length],
        }
    }

    /// Room for each kernel's lower half.
    pub(super) fn rows_mut(&mut self) -> rayon::slice::ChunksExactMut<'_, f32> {
        self.values.par_chunks_exact_mut(self.length)
    }

    /// The same, one after the other.
    pub(super) fn halves_mut(&mut self) -> std::slice::ChunksExactMut<'_, f32> {
        self.values.chunks_exact_mut(self.length)
    }

    /// Multiplies a lower half by `factor`, and what lies off the diagonal by √2, because it stands for two entries.
    pub(super) fn normalise(half: &mut [f32], factor: f64) {
        let beside = (factor * std::f64::consts::SQRT_2) as f32;
        let mut start = 0;
        for i in 0.. {
            if start == half.len() {
                break;
            }
            let row = &mut half[start..start + i + 1];
            row[..i].iter_mut().for_each(|v| *v *= beside);
            row[i] *= factor as f32;
            start += i + 1;
        }
    }

    /// All dot products, row after row.
    pub(super) fn products(&self) -> Vec<Vec<f32>> {
        let starts: Vec<usize> = (0..self.kernels).step_by(ROWS).collect();
        let lower: Vec<Vec<f64>> = starts
            .par_iter()
            .map(|&from| self.lower_block(from, (from + ROWS).min(self.kernels)))
            .collect();
        let at = |a: usize, b: usize| {
            let (a, b) = (a.max(b), a.min(b));
            let from = a / ROWS * ROWS;
            let width = (from + ROWS).min(self.kernels);
            lower[a / ROWS][(a - from) * width + b] as f32
        };
        (0..self.kernels)
            .map(|a| (0..self.kernels).map(|b| at(a, b)).collect())
            .collect()
    }

    /// Products of kernels `from..to` with kernels `0..to`.
    fn lower_block(&self, from: usize, to: usize) -> Vec<f64> {
        let mut sums = vec![0.0; (to - from) * to];
        if to <= FEW {
            for start in (0..self.length).step_by(FEW_WIDTH) {
                let end = (start + FEW_WIDTH).min(self.length);
                add_lower_products(&self.values, self.length, start..end, &mut sums);
            }
            return sums;
        }
        let mut part = vec![0.0; sums.len()];
        let mut block = Vec::with_capacity(to * WIDTH);
        for start in (0..self.length).step_by(WIDTH) {
            let end = (start + WIDTH).min(self.length);
            block.clear();
            for m in 0..to {
                block.extend_from_slice(
                    &self.values[m * self.length + start..m * self.length + end],
                );
            }
            let width = end - start;
            rows_times_rows(&block[from * width..], &block, width, &mut part);
            sums.iter_mut()
                .zip(&part)
                .for_each(|(s, p)| *s += f64::from(*p));
        }
        sums
    }
}

/// Adds the products of some entries of rows a ≥ b, all of the same length, to the lower half of `sums`.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn add_lower_products(rows: &[f32], length: usize, some: Range<usize>, sums: &mut [f64]) {
    const LANES: usize = 8;
    let kernels = sums.len().isqrt();
    let row = |m: usize| rows[m * length..][some.clone()].as_chunks::<LANES>();
    for (a, sums) in sums.chunks_mut(kernels).enumerate() {
        let (left, left_rest) = row(a);
        for b in (0..=a).step_by(4) {
            // What is beyond a is computed and forgotten.
            let others: [_; 4] = std::array::from_fn(|k| row((b + k).min(a)));
            let [(p, _), (q, _), (r, _), (s, _)] = others;
            let mut lanes = [[0.0f32; LANES]; 4];
            for ((left, p), (q, (r, s))) in left.iter().zip(p).zip(q.iter().zip(r.iter().zip(s))) {
                lanes = [
                    std::array::from_fn(|l| lanes[0][l] + left[l] * p[l]),
                    std::array::from_fn(|l| lanes[1][l] + left[l] * q[l]),
                    std::array::from_fn(|l| lanes[2][l] + left[l] * r[l]),
                    std::array::from_fn(|l| lanes[3][l] + left[l] * s[l]),
                ];
            }
            let products = lanes.iter().zip(&others);
            for (sum, (lanes, (_, rest))) in sums[b..=a].iter_mut().zip(products) {
                let rest = left_rest.iter().zip(*rest).map(|(a, b)| a * b);
                *sum += f64::from(lanes.iter().sum::<f32>() + rest.sum::<f32>());
            }
        }
    }
}

/// One bit for each pair of different samples: no kernel so far tells them apart.
pub(super) struct SameToAll {
    n: usize,
    words: Vec<AtomicU64>,
    /// Words of one sample's row.
    row: usize,
}

impl SameToAll {
    pub(super) fn new(n: usize) -> Self {
        let row = n.div_ceil(64);
        SameToAll {
            n,
            words: (0..n * row).map(|_| AtomicU64::new(u64::MAX)).collect(),
            row,
        }
    }

    /// Clears the pairs that this kernel tells apart.
    pub(super) fn keep(&self, values: &[f32]) {
        let n = self.n;
        let diagonal: Vec<f64> = (0..n).map(|i| f64::from(values[i * n + i])).collect();
        for (i, row) in values.chunks_exact(n).enumerate() {
            for (w, chunk) in row[..i].chunks(64).enumerate() {
                let word = &self.words[i * self.row + w];
                if word.load(Ordering::Relaxed) == 0 {
                    continue;
                }
                let mut bits = 0;
                for (k, &v) in chunk.iter().enumerate() {
                    let sum = diagonal[i] + diagonal[w * 64 + k];
                    let same = sum - 2.0 * f64::from(v) <= SAME_SAMPLE * sum.abs();
                    bits |= u64::from(same) << k;
                }
                word.fetch_and(bits, Ordering::Relaxed);
            }
        }
    }

    /// How many pairs are left, and the first few (earlier, later).
    pub(super) fn pairs(&self) -> (u64, Vec<(usize, usize)>) {
        let mut count = 0;
        let mut first = Vec::new();
        for i in 0..self.n {
            for w in 0..i.div_ceil(64) {
                // Bits from the diagonal on were never asked about.
                let below = i - w * 64;
                let asked = if below >= 64 {
                    u64::MAX
                } else {
                    (1 << below) - 1
                };
                let mut bits = self.words[i * self.row + w].load(Ordering::Relaxed) & asked;
                count += u64::from(bits.count_ones());
                while bits != 0 && first.len() < LISTED {
                    first.push((w * 64 + bits.trailing_zeros() as usize, i));
                    bits &= bits - 1;
                }
            }
        }
        (count, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn products_are_the_frobenius_products() {
        // Both ways of multiplying, and what does not fill their blocks.
        for (kernels, n) in [(70, 100), (FEW, 30), (6, 61), (1, 1)] {
            frobenius_products(kernels, n);
        }
    }

    fn frobenius_products(kernels: usize, n: usize) {
        let mut random = Random::new(5);
        let mut packed = Packed::new(kernels, n);
        let mut full = Vec::new();
        for half in packed.values.chunks_mut(n * (n + 1) / 2) {
            half.iter_mut().for_each(|v| *v = random.normal() as f32);
            let at = |i: usize, j: usize| {
                let (i, j) = (i.max(j), i.min(j));
                f64::from(half[i * (i + 1) / 2 + j])
            };
            full.push((0..n * n).map(|k| at(k / n, k % n)).collect::<Vec<f64>>());
            Packed::normalise(half, 0.5);
        }
        let products = packed.products();
        for a in [0, 1, 33, 63, 64, 69].into_iter().filter(|&a| a < kernels) {
            for b in [0, 5, 63, 64, 69].into_iter().filter(|&b| b < kernels) {
                let expected: f64 = full[a].iter().zip(&full[b]).map(|(x, y)| x * y).sum();
                let found = f64::from(products[a][b]);
                assert!((found - 0.25 * expected).abs() < 0.05, "{a}, {b}: {found}");
            }
        }
    }

    #[test]
    fn only_samples_that_no_kernel_tells_apart_remain() {
        let n = 130;
        // Points on a line; 3 = 128 and 70 = 71 in the first description, only 3 = 128 in the second.
        let kernel = |pairs: &[(usize, usize)]| -> Vec<f32> {
            let mut x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            pairs.iter().for_each(|&(a, b)| x[b] = x[a]);
            let value = |a: f32, b: f32| (-(a - b).powi(2)).exp();
            (0..n * n).map(|k| value(x[k / n], x[k % n])).collect()
        };
        let same = SameToAll::new(n);
        same.keep(&kernel(&[(3, 128), (70, 71)]));
        assert_eq!(same.pairs(), (2, vec![(70, 71), (3, 128)]));
        same.keep(&kernel(&[(3, 128)]));
        assert_eq!(same.pairs(), (1, vec![(3, 128)]));
    }
}
