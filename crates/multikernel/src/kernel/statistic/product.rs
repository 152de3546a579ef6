//! Dot products and squared distances of dense rows, by matrix products.

use super::Statistic;
use super::formulas::{Dot, Formula, SquaredDistance, TERMS_IN_F32, with_formula};
use crate::math;
use multiversion::multiversion;
use rayon::prelude::*;
use std::ops::Range;

/// Below this fraction of ‖x‖² + ‖y‖² the difference ‖x‖² + ‖y‖² − 2x·y has lost too many digits of f32 and the
/// distance is summed directly.
const CANCELLED: f32 = 1.0 / 64.0;

/// Rows of numbers, one after the other.
#[derive(Debug)]
pub(super) struct DenseRows {
    pub(super) width: usize,
    pub(super) values: Vec<f32>,
}

impl DenseRows {
    pub(super) fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.width..(i + 1) * self.width]
    }

    pub(super) fn dot(
        &self,
        rows: &[usize],
        other: &DenseRows,
        cols: Range<usize>,
        out: &mut [f32],
    ) {
        let right = &other.values[cols.start * self.width..cols.end * self.width];
        if self.width == 1 && !cols.is_empty() {
            for (&i, out) in rows.iter().zip(out.chunks_exact_mut(cols.len())) {
                column::<Dot>(self.values[i], right, out);
            }
            return;
        }
        match run(rows) {
            Some(run) => {
                let left = &self.values[run.start * self.width..run.end * self.width];
                math::rows_times_rows(left, right, self.width, out);
            }
            None => {
                let mut left = Vec::with_capacity(rows.len() * self.width);
                for &i in rows {
                    left.extend_from_slice(self.row(i));
                }
                math::rows_times_rows(&left, right, self.width, out);
            }
        }
    }

    /// ‖x‖² of this operand's samples are `squares`, those of the other's `other_squares`.
    pub(super) fn squared_distance(
        &self,
        squares: &[f64],
        rows: &[usize],
        (other, other_squares): (&DenseRows, &[f64]),
        cols: Range<usize>,
        out: &mut [f32],
    ) {
        if cols.is_empty() {
            return;
        }
        if self.width == 1 {
            for (&i, out) in rows.iter().zip(out.chunks_exact_mut(cols.len())) {
                column::<SquaredDistance>(self.values[i], &other.values[cols.clone()], out);
            }
            return;
        }
        self.dot(rows, other, cols.clone(), out);
        for (&i, out) in rows.iter().zip(out.chunks_exact_mut(cols.len())) {
            self.distances(squares, i, (other, other_squares), cols.clone(), out);
        }
    }

    /// Makes squared distances of sample i from its dot products.
    pub(super) fn distances(
        &self,
        squares: &[f64],
        i: usize,
        (other, other_squares): (&DenseRows, &[f64]),
        cols: Range<usize>,
        dots: &mut [f32],
    ) {
        let left = squares[i] as f32;
        let right = &other_squares[cols.clone()];
        if distances_from_dots(left, right, dots) > 0 {
            for ((j, t), &right) in cols.zip(dots).zip(right) {
                if *t <= CANCELLED * (left + right as f32) {
                    *t = direct(self.row(i), other.row(j));
                }
            }
        }
    }
}

/// A statistic of samples that have one number each: matrix products save nothing there, and differences of them lose digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneColumn(pub(super) Statistic);

impl OneColumn {
    /// t of x with every y.
    pub(crate) fn with_all(self, x: f32, y: &[f32], out: &mut [f32]) {
        with_formula!(self.0, F => column::<F>(x, y, out));
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn column<F: Formula>(x: f32, y: &[f32], out: &mut [f32]) {
    for (t, y) in out.iter_mut().zip(y) {
        *t = F::term(x, *y);
    }
}

/// Σ(x−y)²
#[multiversion(targets("x86_64+avx2+fma"))]
fn direct(x: &[f32], y: &[f32]) -> f32 {
    let mut total = 0.0_f64;
    for (x, y) in x.chunks(TERMS_IN_F32).zip(y.chunks(TERMS_IN_F32)) {
        let (x_whole, x_rest) = x.as_chunks::<16>();
        let (y_whole, y_rest) = y.as_chunks::<16>();
        let mut lanes = [0.0_f32; 16];
        for (x, y) in x_whole.iter().zip(y_whole) {
            // By value, which is the form that the compiler keeps in registers.
            lanes = std::array::from_fn(|l| lanes[l] + SquaredDistance::term(x[l], y[l]));
        }
        for (lane, (x, y)) in lanes.iter_mut().zip(x_rest.iter().zip(y_rest)) {
            *lane += SquaredDistance::term(*x, *y);
        }
        total += lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>();
    }
    total as f32
}

/// Makes squared distances from dot products; how many of them have lost too many digits. Branchless, so that it
/// vectorises.
#[multiversion(targets("x86_64+avx2"))]
fn distances_from_dots(left: f32, right: &[f64], dots: &mut [f32]) -> u32 {
    let mut cancelled = 0;
    for (t, &right) in dots.iter_mut().zip(right) {
        let sum = left + right as f32;
        *t = sum - 2.0 * *t;
        cancelled += u32::from(*t <= CANCELLED * sum);
    }
    cancelled
}

/// The rows as a range, if they follow one another.
fn run(rows: &[usize]) -> Option<Range<usize>> {
    let first = *rows.first()?;
    rows.windows(2)
        .all(|w| w[1] == w[0] + 1)
        .then(|| first..first + rows.len())
}

/// The point from which distances are measured: close to the mean of every column, so that norms are as small as
/// distances, but rounded to a sixteenth of the column's extent. Data on a grid (pixels, counts, flags) then stays on
/// it, and subtracting the centre is exact.
pub(super) fn centre(width: usize, values: &[f32]) -> Vec<f32> {
    if width == 0 {
        return Vec::new();
    }
    let rows = values.len() / width;
    // Blocks of rows of a fixed size, so that the sums do not depend on the threads.
    let of_block = |block: &[f32]| {
        let mut ends = vec![(0.0_f64, f32::INFINITY, f32::NEG_INFINITY); width];
        for row in block.chunks_exact(width) {
            for ((sum, lowest, highest), &x) in ends.iter_mut().zip(row) {
                *sum += f64::from(x);
                *lowest = lowest.min(x);
                *highest = highest.max(x);
            }
        }
        ends
    };
    let blocks: Vec<_> = values.par_chunks(256 * width).map(of_block).collect();
    let (mut sums, mut lowest, mut highest) = (
        vec![0.0_f64; width],
        vec![f32::INFINITY; width],
        vec![f32::NEG_INFINITY; width],
    );
    for block in blocks {
        for (k, (sum, low, high)) in block.into_iter().enumerate() {
            sums[k] += sum;
            lowest[k] = lowest[k].min(low);
            highest[k] = highest[k].max(high);
        }
    }
    (0..width)
        .map(|k| {
            let extent = f64::from(highest[k]) - f64::from(lowest[k]);
            if extent > 0.0 {
                let step = 2.0_f64.powi(extent.log2().floor() as i32 - 4);
                ((sums[k] / rows as f64 / step).round() * step) as f32
            } else {
                lowest[k]
            }
        })
        .collect()
}
