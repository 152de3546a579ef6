//! Sums over the columns of a formula, for dense rows: ℓ1, χ², intersection.
//!
//! A matrix product's structure without its multiplication: samples on the column side lie in panels of [`LANES`], one
//! lane each, so that nothing is summed across lanes; samples on the row side come in groups of [`GROUP`], so that
//! each panel value loaded serves several pairs.

use super::formulas::{Formula, TERMS_IN_F32};
use multiversion::multiversion;
use std::ops::Range;

/// Samples of a panel.
const LANES: usize = 16;
/// Samples of a group: 4 × 16 sums of f32 fill half of the sixteen AVX2 registers.
const GROUP: usize = 4;
/// Samples in panels: value k of lane l of panel p stands at (p·width + k)·LANES + l.
#[derive(Debug)]
pub(super) struct Panels {
    samples: usize,
    width: usize,
    values: Vec<f32>,
}

impl Panels {
    pub(super) fn new(width: usize, rows: &[f32]) -> Self {
        let samples = rows.len().checked_div(width).unwrap_or(0);
        let mut values = vec![0.0; samples.div_ceil(LANES) * width * LANES];
        for (i, row) in rows.chunks_exact(width.max(1)).enumerate() {
            let first = i / LANES * width * LANES + i % LANES;
            for (k, &x) in row.iter().enumerate() {
                values[first + k * LANES] = x;
            }
        }
        Panels {
            samples,
            width,
            values,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<f32>()
    }

    pub(super) fn block<F: Formula>(
        &self,
        rows: &[usize],
        other: &Panels,
        cols: Range<usize>,
        out: &mut [f32],
    ) {
        if self.width == 0 || cols.is_empty() {
            out.fill(0.0);
            return;
        }
        debug_assert!(cols.end <= other.samples);
        // Rows that do not fill a group go one by one, so that a single row is not paid for four times.
        let (grouped, single) = rows.split_at(rows.len() / GROUP * GROUP);
        let (grouped_out, single_out) = out.split_at_mut(grouped.len() * cols.len());
        for (rows, size, out) in [(grouped, GROUP, grouped_out), (single, 1, single_out)] {
            if rows.is_empty() {
                continue;
            }
            let groups = self.grouped(rows, size);
            if size == GROUP {
                sweep::<F, GROUP, { 2 * GROUP }>(&groups, other, &cols, out);
            } else {
                sweep::<F, 1, 2>(&groups, other, &cols, out);
            }
        }
    }

    /// Groups side by side: value k of row r of group g stands at (g·width + k)·size + r.
    fn grouped(&self, rows: &[usize], size: usize) -> Vec<f32> {
        let mut groups = vec![0.0; rows.len() * self.width];
        for (r, &i) in rows.iter().enumerate() {
            let first = r / size * self.width * size + r % size;
            let sample = &self.values[i / LANES * self.width * LANES + i % LANES..];
            for k in 0..self.width {
                groups[first + k * size] = sample[k * LANES];
            }
        }
        groups
    }
}

/// Groups of SIZE rows against panels, with two vectors of sums for each row.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn sweep<F: Formula, const SIZE: usize, const VECTORS: usize>(
    groups: &[f32],
    other: &Panels,
    cols: &Range<usize>,
    out: &mut [f32],
) {
    let width = other.width;
    for p in cols.start / LANES..cols.end.div_ceil(LANES) {
        let panel = &other.values[p * width * LANES..(p + 1) * width * LANES];
        // The part of the panel that was asked for.
        let lanes = (p * LANES).max(cols.start)..((p + 1) * LANES).min(cols.end);
        let places = out.chunks_exact_mut(cols.len() * SIZE);
        for (group, out) in groups.chunks_exact(width * SIZE).zip(places) {
            let total = tile::<F, SIZE, VECTORS>(group, panel);
            for (total, out) in total.iter().zip(out.chunks_exact_mut(cols.len())) {
                for j in lanes.clone() {
                    out[j - cols.start] = total[j % LANES] as f32;
                }
            }
        }
    }
}

/// As many sums as a vector register of AVX2 holds. Written with whole arrays by value, because that is the form that the
/// compiler keeps in registers (arrays of arrays, or sums updated in place, ran five to ten times slower).
type Vector = [f32; 8];

#[inline(always)]
fn add<F: Formula>(sums: Vector, x: f32, y: Vector) -> Vector {
    std::array::from_fn(|l| sums[l] + F::term(x, y[l]))
}

#[inline(always)]
fn tile<F: Formula, const SIZE: usize, const VECTORS: usize>(
    group: &[f32],
    panel: &[f32],
) -> [[f64; LANES]; SIZE] {
    let mut total = [[0.0_f64; LANES]; SIZE];
    let chunks = group
        .chunks(TERMS_IN_F32 * SIZE)
        .zip(panel.chunks(TERMS_IN_F32 * LANES));
    for (group, panel) in chunks {
        let (group, _) = group.as_chunks::<SIZE>();
        let (panel, _) = panel.as_chunks::<LANES>();
        let mut sums = [Vector::default(); VECTORS];
        for (x, y) in group.iter().zip(panel) {
            let y: [Vector; 2] =
                std::array::from_fn(|half| std::array::from_fn(|l| y[half * 8 + l]));
            sums = std::array::from_fn(|v| add::<F>(sums[v], x[v / 2], y[v % 2]));
        }
        for (total, sums) in total.iter_mut().zip(sums.as_chunks::<2>().0) {
            for (total, sum) in total.iter_mut().zip(sums.as_flattened()) {
                *total += f64::from(*sum);
            }
        }
    }
    total
}
