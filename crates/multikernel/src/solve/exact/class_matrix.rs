//! One number per sample and class, laid out for updates by kernel rows: tiles of samples, in a tile class after class.
//!
//! A tile of one class is contiguous, so that a kernel row adds to it at full width; all classes of a tile are
//! neighbours, so that the rows' part of a tile is read from memory once for all classes; and tiles are the tasks of the
//! threads, so that sums do not depend on their number.

use rayon::prelude::*;

/// Samples of a tile.
pub(super) const TILE: usize = 256;

/// An n×K matrix in tiles; the last tile is filled up with zeros.
#[derive(Debug, Clone)]
pub(super) struct ClassMatrix {
    n: usize,
    classes: usize,
    values: Vec<f64>,
}

impl ClassMatrix {
    pub(super) fn zeros(n: usize, classes: usize) -> Self {
        ClassMatrix {
            n,
            classes,
            values: vec![0.0; n.div_ceil(TILE) * TILE * classes],
        }
    }

    /// From one row per sample.
    pub(super) fn from_rows(rows: &[f64], classes: usize) -> Self {
        let mut matrix = ClassMatrix::zeros(rows.len() / classes, classes);
        for (i, row) in rows.chunks(classes).enumerate() {
            for (k, value) in row.iter().enumerate() {
                *matrix.at_mut(i, k) = *value;
            }
        }
        matrix
    }

    /// One row per sample.
    pub(super) fn to_rows(&self) -> Vec<f64> {
        let mut rows = Vec::with_capacity(self.n * self.classes);
        for i in 0..self.n {
            rows.extend((0..self.classes).map(|k| self.at(i, k)));
        }
        rows
    }

    fn place(&self, i: usize, k: usize) -> usize {
        (i / TILE * self.classes + k) * TILE + i % TILE
    }

    pub(super) fn at(&self, i: usize, k: usize) -> f64 {
        self.values[self.place(i, k)]
    }

    pub(super) fn at_mut(&mut self, i: usize, k: usize) -> &mut f64 {
        let place = self.place(i, k);
        &mut self.values[place]
    }

    /// The tiles in order, each TILE numbers for every class.
    pub(super) fn tiles(&self) -> impl IndexedParallelIterator<Item = &[f64]> {
        self.values.par_chunks(TILE * self.classes)
    }

    /// Adds Σ_b change[b]_k row_b to every class k; `changes` holds, class after class, the (row, factor) that are not 0.
    pub(super) fn add_rows(&mut self, rows: &[&[f32]], changes: &[Vec<(usize, f64)>]) {
        let n = self.n;
        self.values
            .par_chunks_mut(TILE * self.classes)
            .enumerate()
            .for_each(|(t, tile)| {
                let (from, to) = (t * TILE, ((t + 1) * TILE).min(n));
                for (values, changes) in tile.chunks_mut(TILE).zip(changes) {
                    let values = &mut values[..to - from];
                    let mut four = changes.chunks_exact(4);
                    for c in &mut four {
                        let row = |b: usize| &rows[c[b].0][from..to];
                        let factors = [c[0].1, c[1].1, c[2].1, c[3].1];
                        add_four(values, [row(0), row(1), row(2), row(3)], factors);
                    }
                    for (b, factor) in four.remainder() {
                        add_one(values, &rows[*b][from..to], *factor);
                    }
                }
            });
    }
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn add_four(values: &mut [f64], rows: [&[f32]; 4], factors: [f64; 4]) {
    let n = values.len();
    let [a, b, c, d] = rows.map(|row| &row[..n]);
    let [fa, fb, fc, fd] = factors;
    for j in 0..n {
        let first = fa * f64::from(a[j]) + fb * f64::from(b[j]);
        let second = fc * f64::from(c[j]) + fd * f64::from(d[j]);
        values[j] += first + second;
    }
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
pub(super) fn add_one(values: &mut [f64], row: &[f32], factor: f64) {
    for (v, r) in values.iter_mut().zip(row) {
        *v += factor * f64::from(*r);
    }
}
