//! Sums over the columns of a function of two values, for dense rows: ℓ1, χ², intersection.
//!
//! A matrix product's structure without its multiplication: samples on the column side lie in panels of [`LANES`], one
//! lane each, so that nothing is summed across lanes; samples on the row side come in groups of [`GROUP`], so that
//! each panel value loaded serves several pairs.

use multiversion::multiversion;
use std::ops::Range;

/// Samples of a panel.
const LANES: usize = 16;
/// Samples of a group: 4 × 16 sums of f32 fill half of the sixteen AVX2 registers.
const GROUP: usize = 4;
/// f32 terms summed before the sum goes on in f64.
const CHUNK: usize = 256;

/// What is summed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Term {
    /// |x−y|
    L1,
    /// (x−y)²/(x+y)
    Chi2,
    /// min(x, y)
    Minimum,
}

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

    pub(super) fn block(
        &self,
        term: Term,
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
            match term {
                Term::L1 => l1(&groups, size, other, &cols, out),
                Term::Chi2 => chi2(&groups, size, other, &cols, out),
                Term::Minimum => minimum(&groups, size, other, &cols, out),
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

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn l1(groups: &[f32], size: usize, other: &Panels, cols: &Range<usize>, out: &mut [f32]) {
    sweep(groups, size, other, cols, out, |x, y| (x - y).abs());
}

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn chi2(groups: &[f32], size: usize, other: &Panels, cols: &Range<usize>, out: &mut [f32]) {
    // 0/0: the numerator is 0, so any positive denominator gives the 0 we want.
    sweep(groups, size, other, cols, out, |x, y| {
        let difference = x - y;
        difference * (difference / (x + y).max(f32::MIN_POSITIVE))
    });
}

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn minimum(groups: &[f32], size: usize, other: &Panels, cols: &Range<usize>, out: &mut [f32]) {
    sweep(
        groups,
        size,
        other,
        cols,
        out,
        |x, y| if x < y { x } else { y },
    );
}

#[inline(always)]
fn sweep(
    groups: &[f32],
    size: usize,
    other: &Panels,
    cols: &Range<usize>,
    out: &mut [f32],
    term: impl Fn(f32, f32) -> f32 + Copy,
) {
    if size == GROUP {
        sweep_groups::<GROUP, { 2 * GROUP }>(groups, other, cols, out, term);
    } else {
        sweep_groups::<1, 2>(groups, other, cols, out, term);
    }
}

#[inline(always)]
fn sweep_groups<const SIZE: usize, const VECTORS: usize>(
    groups: &[f32],
    other: &Panels,
    cols: &Range<usize>,
    out: &mut [f32],
    term: impl Fn(f32, f32) -> f32 + Copy,
) {
    let width = other.width;
    for p in cols.start / LANES..cols.end.div_ceil(LANES) {
        let panel = &other.values[p * width * LANES..(p + 1) * width * LANES];
        // The part of the panel that was asked for.
        let lanes = (p * LANES).max(cols.start)..((p + 1) * LANES).min(cols.end);
        let places = out.chunks_exact_mut(cols.len() * SIZE);
        for (group, out) in groups.chunks_exact(width * SIZE).zip(places) {
            let total = tile::<SIZE, VECTORS>(group, panel, term);
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
fn add(sums: Vector, x: f32, y: Vector, term: impl Fn(f32, f32) -> f32 + Copy) -> Vector {
    std::array::from_fn(|l| sums[l] + term(x, y[l]))
}

#[inline(always)]
fn tile<const SIZE: usize, const VECTORS: usize>(
    group: &[f32],
    panel: &[f32],
    term: impl Fn(f32, f32) -> f32 + Copy,
) -> [[f64; LANES]; SIZE] {
    let mut total = [[0.0_f64; LANES]; SIZE];
    let chunks = group.chunks(CHUNK * SIZE).zip(panel.chunks(CHUNK * LANES));
    for (group, panel) in chunks {
        let (group, _) = group.as_chunks::<SIZE>();
        let (panel, _) = panel.as_chunks::<LANES>();
        // Two vectors for each row.
        let mut sums = [Vector::default(); VECTORS];
        for (x, y) in group.iter().zip(panel) {
            let y: [Vector; 2] =
                std::array::from_fn(|half| std::array::from_fn(|l| y[half * 8 + l]));
            sums = std::array::from_fn(|v| add(sums[v], x[v / 2], y[v % 2], term));
        }
        for (total, sums) in total.iter_mut().zip(sums.as_chunks::<2>().0) {
            for (total, sum) in total.iter_mut().zip(sums.as_flattened()) {
                *total += f64::from(*sum);
            }
        }
    }
    total
}
