//! Rows of one combined kernel for the working-set solver: the whole matrix if it may be held, else rows on demand.

use crate::gram::{Coefficients, Combined};
use rayon::prelude::*;
use std::collections::HashMap;

/// Rows per task of a product.
const CHUNK: usize = 32;
/// Rows computed together.
const AT_ONCE: usize = 256;

/// The combined kernel K of a training Gram.
#[derive(Debug)]
pub(crate) struct Rows<'g> {
    n: usize,
    diagonal: Vec<f64>,
    combined: Combined<'g>,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Matrix(Vec<f32>),
    /// At most so many rows; all are forgotten when that is reached, since the solver's working set drifts.
    Some(usize, HashMap<usize, Vec<f32>>),
}

impl<'g> Rows<'g> {
    /// Holds at most `memory` bytes.
    pub(crate) fn new(combined: Combined<'g>, n: usize, memory: u64) -> Self {
        let diagonal = combined.diagonal();
        let held = if (4 * n as u64).saturating_mul(n as u64) <= memory {
            Held::Matrix(combined.matrix())
        } else {
            Held::Some(
                (memory / (4 * n as u64 + 64)).max(2) as usize,
                HashMap::new(),
            )
        };
        Rows {
            n,
            diagonal,
            combined,
            held,
        }
    }

    /// Rows on demand, those in `first` at once: for kernels so dear to read that rows nobody asks for should not be made.
    pub(crate) fn on_demand(
        combined: Combined<'g>,
        n: usize,
        memory: u64,
        first: &[usize],
    ) -> Self {
        let capacity = (memory / (4 * n as u64 + 64)).max(2) as usize;
        let first = &first[..first.len().min(capacity)];
        let mut values = vec![0.0; first.len() * n];
        combined.rows(first, &mut values);
        let rows = first.iter().copied();
        let held = rows.zip(values.chunks(n).map(<[f32]>::to_vec)).collect();
        Rows {
            n,
            diagonal: combined.diagonal(),
            combined,
            held: Held::Some(capacity, held),
        }
    }

    /// K_ii.
    pub(crate) fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }

    /// The entries of row i at the active samples, into the front of `out`.
    pub(crate) fn fetch(&mut self, i: usize, active: &[u32], everyone: bool, out: &mut [f32]) {
        let n = self.n;
        let row: &[f32] = match &mut self.held {
            Held::Matrix(values) => &values[i * n..(i + 1) * n],
            Held::Some(capacity, rows) => {
                if !rows.contains_key(&i) && rows.len() >= *capacity {
                    rows.clear();
                }
                let combined = &self.combined;
                rows.entry(i).or_insert_with(|| {
                    let mut row = vec![0.0; n];
                    combined.rows(&[i], &mut row);
                    row
                })
            }
        };
        if everyone {
            out[..n].copy_from_slice(row);
        } else {
            for (o, &k) in out.iter_mut().zip(active) {
                *o = row[k as usize];
            }
        }
    }

    /// So many rows at most may be asked for at once by [`Rows::hold`].
    pub(crate) fn capacity(&self) -> usize {
        match &self.held {
            Held::Matrix(_) => self.n,
            Held::Some(capacity, _) => *capacity,
        }
    }

    /// Has these rows ready for [`Rows::row`].
    pub(crate) fn hold(&mut self, samples: &[usize]) {
        let n = self.n;
        let Held::Some(capacity, rows) = &mut self.held else {
            return;
        };
        let is_missing = |i: &&usize| !rows.contains_key(*i);
        let mut missing: Vec<usize> = samples.iter().filter(is_missing).copied().collect();
        if rows.len() + missing.len() > *capacity {
            rows.clear();
            missing = samples.to_vec();
        }
        for part in missing.chunks(AT_ONCE) {
            let mut values = vec![0.0; part.len() * n];
            self.combined.rows(part, &mut values);
            for (&i, row) in part.iter().zip(values.chunks(n)) {
                rows.insert(i, row.to_vec());
            }
        }
    }

    /// Has the rows of the samples with a coefficient ready, as far as memory allows: a product needs them, and steps ask for them.
    pub(crate) fn hold_support(&mut self, a: &[f64]) {
        let support: Vec<usize> = (0..self.n).filter(|&i| a[i] != 0.0).collect();
        let capacity = self.capacity();
        // Then the whole matrix costs what half of its rows cost.
        let halved = self.combined.is_halved() && 2 * support.len() > self.n;
        match &self.held {
            Held::Matrix(_) => {}
            Held::Some(..) if halved && capacity >= self.n => {
                self.held = Held::Matrix(self.combined.matrix());
            }
            Held::Some(..) if support.len() <= capacity => self.hold(&support),
            Held::Some(..) => {}
        }
    }

    /// Row i, which is held.
    pub(crate) fn row(&self, i: usize) -> &[f32] {
        match &self.held {
            Held::Matrix(values) => &values[i * self.n..(i + 1) * self.n],
            Held::Some(_, rows) => rows.get(&i).map_or(&[], |row| row),
        }
    }

    /// K A from the kernels themselves, for several numbers per sample.
    pub(crate) fn exact_products(&self, a: &[f64], outputs: usize) -> Vec<f64> {
        self.combined.product(Coefficients::new(a, outputs))
    }

    /// K a from the kernels themselves, not from rows rounded to f32.
    pub(crate) fn exact_product(&self, a: &[f64]) -> Vec<f64> {
        self.combined.product(Coefficients::single(a))
    }

    /// scores += K a.
    pub(crate) fn add_product(&self, a: &[f64], scores: &mut [f64]) {
        match &self.held {
            Held::Matrix(values) => {
                scores
                    .par_chunks_mut(CHUNK)
                    .zip(values.par_chunks(CHUNK * self.n))
                    .for_each(|(scores, rows)| {
                        for (s, row) in scores.iter_mut().zip(rows.chunks(self.n)) {
                            *s += crate::math::mixed_dot(row, a);
                        }
                    });
            }
            Held::Some(_, rows) => {
                let change = |i: &usize| a[*i] != 0.0;
                let moved: Vec<usize> = (0..self.n).filter(change).collect();
                if let Some(held) = moved
                    .iter()
                    .map(|i| rows.get(i))
                    .collect::<Option<Vec<_>>>()
                {
                    for (&i, row) in moved.iter().zip(held) {
                        let a = a[i];
                        scores
                            .iter_mut()
                            .zip(row)
                            .for_each(|(s, &k)| *s += a * f64::from(k));
                    }
                    return;
                }
                let product = self.combined.fast_product(Coefficients::single(a));
                for (s, p) in scores.iter_mut().zip(product) {
                    *s += p;
                }
            }
        }
    }
}
