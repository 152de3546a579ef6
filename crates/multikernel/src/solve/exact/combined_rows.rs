//! Rows of one combined kernel for the working-set solver: the whole matrix if it may be held, else rows on demand.

use crate::gram::{Coefficients, Combined, Gram};
use rayon::prelude::*;

/// Rows per task of a product.
const CHUNK: usize = 32;
/// Rows computed together.
const AT_ONCE: usize = 256;

/// When more than a sixth of the rows were asked for one by one, the others will be too.
const WHOLE_SHARE: usize = 6;

/// The combined kernel K = Σ β_m K_m of a training Gram.
pub(crate) struct CombinedRows<'g> {
    gram: &'g Gram,
    weights: Vec<f64>,
    n: usize,
    diagonal: Vec<f64>,
    combined: Combined<'g>,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Matrix(Vec<f32>),
    Some(SomeRows),
}

/// Rows of some samples, in blocks of those that were made together.
#[derive(Debug)]
struct SomeRows {
    /// How many there may be; all are forgotten when that is reached, since the solver's working set drifts.
    capacity: usize,
    count: usize,
    /// With more rows than this, the whole matrix is made instead.
    whole_from: usize,
    /// For every sample the block of its row, and the place there.
    places: Vec<Option<(usize, usize)>>,
    blocks: Vec<Vec<f32>>,
}

impl SomeRows {
    /// No row yet, and room for `memory` bytes.
    fn new(n: usize, memory: u64) -> Self {
        SomeRows {
            capacity: (memory / (4 * n as u64 + 64)).max(2) as usize,
            count: 0,
            whole_from: usize::MAX,
            places: vec![None; n],
            blocks: Vec::new(),
        }
    }

    fn get(&self, i: usize) -> Option<&[f32]> {
        let (block, place) = self.places[i]?;
        let n = self.places.len();
        Some(&self.blocks[block][place * n..(place + 1) * n])
    }

    /// Has the rows of these samples, which are no more than the capacity.
    fn hold(&mut self, samples: &[usize], combined: &Combined<'_>) {
        let missing = |all: &Self| -> Vec<usize> {
            let missing = samples.iter().filter(|&&i| all.places[i].is_none());
            missing.copied().collect()
        };
        let mut wanted = missing(self);
        if self.count + wanted.len() > self.capacity {
            self.count = 0;
            self.places.fill(None);
            self.blocks.clear();
            wanted = missing(self);
        }
        let n = self.places.len();
        for part in wanted.chunks(AT_ONCE) {
            let mut values = vec![0.0; part.len() * n];
            combined.rows(part, &mut values);
            for (place, &i) in part.iter().enumerate() {
                self.places[i] = Some((self.blocks.len(), place));
            }
            self.count += part.len();
            self.blocks.push(values);
        }
    }
}

impl<'g> CombinedRows<'g> {
    /// The whole matrix if `memory` bytes hold it and it is not expensive to make, else rows on demand.
    pub(crate) fn new(gram: &'g Gram, weights: &[f64], memory: u64) -> Self {
        let combined = gram.combine(weights);
        let plan = *combined.row_plan();
        let n = gram.n_rows();
        let fits = (4 * n as u64).saturating_mul(n as u64) <= memory;
        let held = if fits && !(plan.halves_matrices() && plan.is_expensive()) {
            Held::Matrix(combined.matrix())
        } else {
            let mut some = SomeRows::new(n, memory);
            // Many problems never ask for most of the rows; where there are many statistics that is worth waiting for.
            if fits {
                some.whole_from = n / WHOLE_SHARE;
            }
            Held::Some(some)
        };
        Self::holding(gram, weights, combined, held)
    }

    /// Rows on demand, those in `first` at once: where most rows are never asked for, and should not be made.
    pub(crate) fn on_demand(gram: &'g Gram, weights: &[f64], memory: u64, first: &[usize]) -> Self {
        let combined = gram.combine(weights);
        let mut held = SomeRows::new(gram.n_rows(), memory);
        held.hold(&first[..first.len().min(held.capacity)], &combined);
        Self::holding(gram, weights, combined, Held::Some(held))
    }

    fn holding(gram: &'g Gram, weights: &[f64], combined: Combined<'g>, held: Held) -> Self {
        CombinedRows {
            gram,
            weights: weights.to_vec(),
            n: gram.n_rows(),
            diagonal: combined.diagonal(),
            combined,
            held,
        }
    }

    /// The kernels that are combined.
    pub(crate) fn gram(&self) -> &'g Gram {
        self.gram
    }

    /// β
    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// K_ii.
    pub(crate) fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }

    /// The standard deviation, about, of the rounding of the entries to f32.
    pub(crate) fn rounding(&self) -> f64 {
        let largest = self.diagonal.iter().fold(0.0f64, |x, k| x.max(k.abs()));
        0.25 * f64::from(f32::EPSILON) * largest
    }

    /// The entries of row i at the active samples, into the front of `out`.
    pub(crate) fn fetch(&mut self, i: usize, active: &[u32], everyone: bool, out: &mut [f32]) {
        self.hold(&[i]);
        let row = self.row(i);
        if everyone {
            out[..row.len()].copy_from_slice(row);
        } else {
            for (o, &k) in out.iter_mut().zip(active) {
                *o = row[k as usize];
            }
        }
    }

    /// How many rows [`CombinedRows::hold`] may be asked for at once.
    pub(crate) fn capacity(&self) -> usize {
        match &self.held {
            Held::Matrix(_) => self.n,
            Held::Some(rows) => rows.capacity,
        }
    }

    /// Has these rows ready for [`CombinedRows::row`].
    pub(crate) fn hold(&mut self, samples: &[usize]) {
        if let Held::Some(rows) = &mut self.held {
            rows.hold(samples, &self.combined);
            if rows.count > rows.whole_from {
                self.hold_all();
            }
        }
    }

    /// Rows that are held go first: together with the matrix they may be more than the memory.
    fn hold_all(&mut self) {
        self.held = Held::Matrix(Vec::new());
        self.held = Held::Matrix(self.combined.matrix());
    }

    /// Has the rows of the samples with a coefficient ready, as far as memory allows: a product needs them, and steps ask for them.
    pub(crate) fn hold_support(&mut self, a: &[f64]) {
        let support: Vec<usize> = (0..self.n).filter(|&i| a[i] != 0.0).collect();
        let capacity = self.capacity();
        // Then the whole matrix costs what half of its rows cost.
        let halved = self.combined.row_plan().halves_matrices() && 2 * support.len() > self.n;
        match &self.held {
            Held::Matrix(_) => {}
            Held::Some(_) if halved && capacity >= self.n => self.hold_all(),
            Held::Some(_) if support.len() <= capacity => self.hold(&support),
            Held::Some(_) => {}
        }
    }

    /// Row i, which is held.
    pub(crate) fn row(&self, i: usize) -> &[f32] {
        match &self.held {
            Held::Matrix(values) => &values[i * self.n..(i + 1) * self.n],
            Held::Some(rows) => rows.get(i).unwrap_or(&[]),
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
            Held::Some(rows) => {
                let change = |i: &usize| a[*i] != 0.0;
                let moved: Vec<usize> = (0..self.n).filter(change).collect();
                if let Some(held) = moved
                    .iter()
                    .map(|&i| rows.get(i))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, View, ViewData, Views};
    use crate::gram::{KernelSet, Options};
    use crate::kernel::KernelSpec;

    #[test]
    fn expensive_rows_are_made_when_asked_for_and_then_all_of_them() {
        let n = 60;
        let views = (0..10).map(|v| View {
            name: format!("v{v}"),
            columns: Vec::new(),
            data: ViewData::Dense(
                Dense::new(
                    n,
                    1,
                    (0..n).map(|i| ((i * i + v * i) % 13) as f32).collect(),
                )
                .unwrap(),
            ),
        });
        let views = Views::new(views.collect()).unwrap();
        let specs = KernelSpec::parse("rbf:gamma=0.1|0.3|1").unwrap();
        let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
        let beta = vec![1.0; set.gram().n_kernels()];
        let whole = set.gram().combine(&beta).matrix();
        let mut rows = CombinedRows::new(set.gram(), &beta, u64::MAX);
        let everyone: Vec<u32> = (0..n as u32).collect();
        let mut row = vec![0.0; n];
        for i in 0..n {
            rows.fetch(i, &everyone, true, &mut row);
            assert_eq!(row, whole[i * n..(i + 1) * n], "row {i}");
            let is_whole = matches!(rows.held, Held::Matrix(_));
            assert_eq!(is_whole, i >= n / WHOLE_SHARE, "row {i}");
        }
    }
}
