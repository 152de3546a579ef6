//! Rows of every kernel by itself, for solvers whose weights change at every step.

use super::family::{Family, Map};
use super::profile_table::RowTable;
use super::row_plan::{RowPlan, Way};
use super::{Gram, Index};
use rayon::prelude::*;

/// Rows per task where they lie in memory; more where they are computed. Fixed, so that results do not depend on the threads.
const ROWS: usize = 8;

/// The kernels of a Gram one by one: rows that lie in memory as they are, the others computed when asked for.
#[derive(Debug)]
pub(crate) struct KernelRows<'g> {
    gram: &'g Gram,
    places: Vec<Place>,
    /// Per family, a table for each of its kernels (none for families of one scaled kernel).
    tables: Vec<Vec<RowTable>>,
    computed: usize,
    block_rows: usize,
}

/// Where a kernel's rows are found.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// In the family's memory, to be multiplied by the factor.
    Stored { family: usize, factor: f64 },
    /// Among the rows that are computed, at this place.
    Computed(usize),
}

impl<'g> KernelRows<'g> {
    pub(crate) fn new(gram: &'g Gram) -> Self {
        let mut places = vec![Place::Computed(0); gram.n_kernels];
        let mut computed = 0;
        let mut tables = Vec::new();
        for (f, family) in gram.families.iter().enumerate() {
            let plan = RowPlan::choose(std::iter::once(&**family), gram);
            tables.push(match &family.map {
                Map::Scaled(_) => Vec::new(),
                // Factors would show the rounding of a look-up in f32.
                Map::Table(basis) => basis.each(family.is_plain()),
            });
            for &m in &family.members {
                places[m] = match &family.map {
                    Map::Scaled(factor) if plan.way == Way::Stored => Place::Stored {
                        family: f,
                        factor: *factor,
                    },
                    _ => {
                        computed += 1;
                        Place::Computed(computed - 1)
                    }
                };
            }
        }
        let plan = gram.row_plan();
        KernelRows {
            gram,
            places,
            tables,
            computed,
            block_rows: if plan.computes() {
                plan.block_rows
            } else {
                ROWS
            },
        }
    }

    /// Number of kernels whose rows must be computed.
    pub(crate) fn n_computed(&self) -> usize {
        self.computed
    }

    /// What the rows of kernel m are to be multiplied by.
    pub(crate) fn factor(&self, m: usize) -> f64 {
        match self.places[m] {
            Place::Computed(_) => 1.0,
            Place::Stored { factor, .. } => factor,
        }
    }

    /// Row i of kernel m, to be multiplied by its factor; `computed` is what [`KernelRows::compute`] wrote for sample i.
    pub(crate) fn row<'a>(&'a self, m: usize, i: usize, computed: &'a [f32]) -> &'a [f32] {
        let n = self.gram.n_cols();
        match self.places[m] {
            Place::Computed(at) => &computed[at * n..(at + 1) * n],
            Place::Stored { family, .. } => {
                let i = self.gram.rows.get(i);
                let row = self.gram.families[family].held_row(i);
                row.expect("other rows are computed")
            }
        }
    }

    /// Computes the rows named: sample after sample, in it kernel after kernel, rounded to f32.
    ///
    /// # Panics
    /// If `out` does not hold the rows that are computed for these samples.
    pub(crate) fn compute(&self, rows: &[usize], out: &mut [f32]) {
        let width = self.computed * self.gram.n_cols();
        assert_eq!(out.len(), rows.len() * width);
        if width == 0 {
            return;
        }
        out.par_chunks_mut(self.block_rows * width)
            .zip(rows.par_chunks(self.block_rows))
            .for_each(|(out, rows)| self.compute_here(rows, out));
    }

    fn compute_here(&self, rows: &[usize], out: &mut [f32]) {
        let n = self.gram.n_cols();
        let width = self.computed * n;
        let samples: Vec<usize> = rows.iter().map(|&i| self.gram.rows.get(i)).collect();
        let mut gathered = Vec::new();
        for (family, tables) in self.gram.families.iter().zip(&self.tables) {
            let Place::Computed(first) = self.places[family.members[0]] else {
                continue;
            };
            family.for_rows(&samples, |r, t| {
                let t = match &self.gram.cols {
                    Index::All(_) => t,
                    Index::Some(cols) => {
                        gathered.clear();
                        gathered.extend(cols.iter().map(|&j| t[j]));
                        &gathered
                    }
                };
                let outs = out[r * width + first * n..].chunks_mut(n);
                for (c, out) in outs.take(family.members.len()).enumerate() {
                    match (&family.map, tables.get(c)) {
                        (Map::Scaled(factor), _) => {
                            let value = |t: f32| factor * f64::from(t);
                            self.fill(family, c, samples[r], t, value, out);
                        }
                        (_, Some(RowTable::Exact(table))) if !family.is_plain() => {
                            self.fill(family, c, samples[r], t, |t| table.at(t), out);
                        }
                        (_, Some(table)) => table.look_up(t, out),
                        (_, None) => unreachable!("every kernel over a table has one of its own"),
                    }
                }
            });
        }
    }

    /// The row of member c at a sample: values with the family's factors and centring.
    fn fill(
        &self,
        family: &Family,
        c: usize,
        i: usize,
        t: &[f32],
        value: impl Fn(f32) -> f64,
        out: &mut [f32],
    ) {
        let width = family.members.len();
        for (j, (out, t)) in out.iter_mut().zip(t).enumerate() {
            let j = self.gram.cols.get(j);
            let factor = family.factors.as_ref().map_or(1.0, |f| f.0[i] * f.1[j]);
            let shift = family.centring.as_ref().map_or(0.0, |centring| {
                centring.grand[c]
                    - centring.row_means[i * width + c]
                    - centring.col_means[j * width + c]
            });
            *out = (factor * value(*t) + shift) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::data::{Dense, View, ViewData, Views};
    use crate::gram::{KernelSet, Options};
    use crate::kernel::KernelSpec;

    #[test]
    fn every_kernel_has_the_rows_it_has_alone() {
        let values = (0..60).map(|k| (k * k % 23) as f32).collect();
        let views = Views::new(vec![View {
            name: "x".into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(30, 2, values).unwrap()),
        }])
        .unwrap();
        let specs: Vec<KernelSpec> = [
            "rbf:width=3|9,normalize=center",
            "poly:normalize=spherical",
            "rbf:width=20",
            "linear",
        ]
        .iter()
        .flat_map(|s| KernelSpec::parse(s).unwrap())
        .collect();
        for memory in [0, u64::MAX] {
            let options = Options {
                memory,
                ..Options::default()
            };
            let Ok(set) = KernelSet::new(&specs, &views, &options, &()) else {
                continue;
            };
            let some = [3, 9, 27, 1, 14, 8, 20, 2, 11, 6];
            for gram in [set.gram().clone(), set.gram().subset(&some)] {
                let every = super::KernelRows::new(&gram);
                let rows: Vec<usize> = (0..gram.n_rows()).rev().collect();
                let n = gram.n_cols();
                let mut made = vec![0.0; rows.len() * every.n_computed() * n];
                every.compute(&rows, &mut made);
                for m in 0..gram.n_kernels() {
                    let alone = gram.kernel(m).matrix();
                    for (r, &i) in rows.iter().enumerate() {
                        let width = every.n_computed() * n;
                        let row = every.row(m, i, &made[r * width..(r + 1) * width]);
                        let factor = every.factor(m);
                        for (j, v) in row.iter().enumerate() {
                            let (got, want) = (factor * f64::from(*v), f64::from(alone[i * n + j]));
                            assert!(
                                (got - want).abs() <= 1e-6 * want.abs().max(1.0),
                                "kernel {m} at {i}, {j}: {got} instead of {want}"
                            );
                        }
                    }
                }
            }
        }
    }
}
