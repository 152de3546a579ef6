//! Rows of every kernel by itself, for solvers whose weights change at every step.

use super::family::{Family, Map};
use super::grid::RowTable;
use super::{Gram, Index};
use rayon::prelude::*;

/// Rows per task where they lie in memory; more where they are computed. Fixed, so that results do not depend on the threads.
const ROWS: usize = 8;

/// The kernels of a Gram one by one: rows that lie in memory as they are, the others made when asked for.
#[derive(Debug)]
pub(crate) struct EveryKernel<'g> {
    gram: &'g Gram,
    places: Vec<Place>,
    /// Per family, a table for each of its kernels (none for families of one scaled kernel).
    tables: Vec<Vec<RowTable>>,
    made: usize,
}

/// Where a kernel's rows are found.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// In the family's memory, to be multiplied by the factor.
    There { family: usize, factor: f64 },
    /// Among the rows that are made, at this place.
    Made(usize),
}

impl<'g> EveryKernel<'g> {
    pub(crate) fn new(gram: &'g Gram) -> Self {
        let mut places = vec![Place::Made(0); gram.n_kernels];
        let mut made = 0;
        let mut tables = Vec::new();
        for (f, family) in gram.families.iter().enumerate() {
            let there = family.factors.is_none()
                && family.centring.is_none()
                && (family.n_rows == 0 || family.held_row(0).is_some())
                && matches!(gram.cols, Index::All(_));
            match &family.map {
                Map::Scaled(factor) if there => {
                    places[family.members[0]] = Place::There {
                        family: f,
                        factor: *factor,
                    };
                    tables.push(Vec::new());
                    continue;
                }
                Map::Scaled(_) => tables.push(Vec::new()),
                Map::Table(basis) => tables.push(basis.each(is_plain(family))),
            }
            for &m in &family.members {
                places[m] = Place::Made(made);
                made += 1;
            }
        }
        EveryKernel {
            gram,
            places,
            tables,
            made,
        }
    }

    /// Number of kernels whose rows must be made.
    pub(crate) fn n_made(&self) -> usize {
        self.made
    }

    /// What the rows of kernel m are to be multiplied by.
    pub(crate) fn factor(&self, m: usize) -> f64 {
        match self.places[m] {
            Place::Made(_) => 1.0,
            Place::There { factor, .. } => factor,
        }
    }

    /// Row i of kernel m, to be multiplied by its factor; `made` is what [`EveryKernel::make`] wrote for sample i.
    pub(crate) fn row<'a>(&'a self, m: usize, i: usize, made: &'a [f32]) -> &'a [f32] {
        let n = self.gram.n_cols();
        match self.places[m] {
            Place::Made(at) => &made[at * n..(at + 1) * n],
            Place::There { family, .. } => {
                let i = self.gram.rows.get(i);
                let row = self.gram.families[family].held_row(i);
                row.expect("other rows are made")
            }
        }
    }

    /// Makes the rows named: sample after sample, in it kernel after kernel, rounded to f32.
    ///
    /// # Panics
    /// If `out` does not hold as many rows as are made for so many samples.
    pub(crate) fn make(&self, rows: &[usize], out: &mut [f32]) {
        let width = self.made * self.gram.n_cols();
        assert_eq!(out.len(), rows.len() * width);
        if width == 0 {
            return;
        }
        let families = self.gram.families.iter();
        let block = families.map(|f| f.block_rows()).max().unwrap_or(ROWS);
        let block = if self.gram.families.iter().any(|f| f.computes_rows()) {
            block
        } else {
            ROWS
        };
        out.par_chunks_mut(block * width)
            .zip(rows.par_chunks(block))
            .for_each(|(out, rows)| self.make_here(rows, out));
    }

    fn make_here(&self, rows: &[usize], out: &mut [f32]) {
        let n = self.gram.n_cols();
        let width = self.made * n;
        let samples: Vec<usize> = rows.iter().map(|&i| self.gram.rows.get(i)).collect();
        let all = matches!(self.gram.cols, Index::All(_));
        let mut gathered = Vec::new();
        for (family, tables) in self.gram.families.iter().zip(&self.tables) {
            let Place::Made(first) = self.places[family.members[0]] else {
                continue;
            };
            family.for_rows(&samples, |r, t| {
                let t = if all {
                    t
                } else {
                    gathered.clear();
                    gathered.extend((0..n).map(|j| t[self.gram.cols.get(j)]));
                    &gathered
                };
                for c in 0..family.members.len() {
                    let out = &mut out[r * width + (first + c) * n..][..n];
                    match &family.map {
                        Map::Table(_) => match &tables[c] {
                            RowTable::Exact(table) if !is_plain(family) => {
                                let value = |t: f32| table.at(t);
                                self.fill(family, c, samples[r], t, value, out);
                            }
                            table => table.look_up(t, out),
                        },
                        Map::Scaled(factor) => {
                            let value = |t: f32| factor * f64::from(t);
                            self.fill(family, c, samples[r], t, value, out);
                        }
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

/// Whether values need nothing after they are looked up. Factors may blow up the rounding of a look-up in f32.
fn is_plain(family: &Family) -> bool {
    family.factors.is_none() && family.centring.is_none()
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
                let every = super::EveryKernel::new(&gram);
                let rows: Vec<usize> = (0..gram.n_rows()).rev().collect();
                let n = gram.n_cols();
                let mut made = vec![0.0; rows.len() * every.n_made() * n];
                every.make(&rows, &mut made);
                for m in 0..gram.n_kernels() {
                    let alone = gram.kernel(m).matrix();
                    for (r, &i) in rows.iter().enumerate() {
                        let width = every.n_made() * n;
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
