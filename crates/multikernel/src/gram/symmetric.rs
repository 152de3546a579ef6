//! A symmetric statistic in memory: the lower half computed once, in blocks, then mirrored.

use crate::error::{Error, Result};
use crate::huge_pages::zeros;
use crate::kernel::statistic::Operand;
use crate::observe::{Observer, Progress};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Rows that are mirrored together.
const BLOCK: usize = 256;

/// t(x_i, x_j) for all pairs of samples of an operand, row after row.
pub(super) fn statistic(x: &Operand, observer: &dyn Observer) -> Result<Vec<f32>> {
    let n = x.len();
    let mut values = zeros(n * n);
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let total = (n as u64 * (n as u64 + 1)) / 2;
    let block = x.lower_rows();
    // Each thread takes the longest block of rows that is left, so that they end together.
    let queue = Mutex::new(values.chunks_mut(block * n.max(1)).enumerate().rev());
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.next()
    };
    rayon::broadcast(|_| {
        while let Some((b, out)) = next() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let rows = b * block..(b * block + block).min(n);
            x.lower(rows.clone(), out);
            let pairs: u64 = rows.map(|i| i as u64 + 1).sum();
            let done = done.fetch_add(pairs, Ordering::Relaxed) + pairs;
            let progress = Progress::Work {
                stage: "computing kernels",
                done,
                total,
            };
            if observer.progress(&progress).is_break() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    if stop.into_inner() {
        return Err(Error::Stopped);
    }
    mirror(&mut values, n);
    Ok(values)
}

/// Copies the lower half to the upper.
pub(super) fn mirror(values: &mut [f32], n: usize) {
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        let (above, below) = values.split_at_mut(end * n);
        let block = &mut above[start * n..];
        // Inside the diagonal block.
        for i in 1..end - start {
            let (upper, lower) = block.split_at_mut(i * n);
            for (j, row) in upper.chunks_mut(n).enumerate() {
                row[start + i] = lower[start + j];
            }
        }
        // Right of it: as many rows at a time as a cache line of the columns below holds values.
        block
            .par_chunks_mut(LINE * n)
            .enumerate()
            .for_each(|(g, rows)| copy_columns(below, start + LINE * g, rows, end, n));
    }
}

/// Values of a cache line.
const LINE: usize = 16;
/// Rows of a tile that is turned in registers.
const TURNED: usize = 8;

/// Columns `first..` of `from` become the ends, from column `end` on, of `rows`. All rows have n values.
#[multiversion::multiversion(targets("x86_64+avx2", "x86_64+avx512f+avx512vl"))]
fn copy_columns(from: &[f32], first: usize, rows: &mut [f32], end: usize, n: usize) {
    let width = rows.len() / n;
    let mut j = end;
    let mut from = from;
    if width == LINE {
        while let Some((eight, rest)) = from.split_at_checked(TURNED * n) {
            let mut turned = [[0.0f32; TURNED]; LINE];
            for (r, row) in eight.chunks_exact(n).enumerate() {
                for (c, v) in row[first..first + LINE].iter().enumerate() {
                    turned[c][r] = *v;
                }
            }
            for (row, turned) in rows.chunks_exact_mut(n).zip(&turned) {
                row[j..j + TURNED].copy_from_slice(turned);
            }
            j += TURNED;
            from = rest;
        }
    }
    for row in from.chunks_exact(n) {
        for (c, v) in row[first..first + width].iter().enumerate() {
            rows[c * n + j] = *v;
        }
        j += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_any_size() {
        for n in [1, 2, 15, 256, 257, 300, 700] {
            let value = |i: usize, j: usize| (i * 1000 + j) as f32;
            let mut values: Vec<f32> = (0..n * n)
                .map(|k| {
                    if k % n <= k / n {
                        value(k / n, k % n)
                    } else {
                        -1.0
                    }
                })
                .collect();
            mirror(&mut values, n);
            for i in 0..n {
                for j in 0..n {
                    assert_eq!(
                        values[i * n + j],
                        value(i.max(j), i.min(j)),
                        "n {n} at {i}, {j}"
                    );
                }
            }
        }
    }
}
