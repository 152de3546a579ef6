//! Rows of a combination, made as its plan says.

use super::accumulate::{ScaledRow, TOGETHER, add_rows, round};
use super::combined::Combined;
use super::family::Family;
use super::row_plan::{RowPlan, Way};
use super::term::{Mixture, TILE, Term};
use super::{Gram, Index, Precision};

/// A row that is asked for, and the memory for its first columns.
pub(super) type Place<'a> = (usize, &'a mut [f32]);

/// A combination seen on some rows and columns.
pub(super) struct CombinedRows<'a> {
    pub(super) of: &'a Combined<'a>,
    pub(super) gram: &'a Gram,
    pub(super) plan: RowPlan,
}

/// Memory for a tile of a statistic, and for the values of a few terms.
struct Scratch {
    t: Vec<f32>,
    values: [Vec<f32>; TOGETHER],
}

impl Scratch {
    fn new() -> Scratch {
        Scratch {
            t: vec![0.0; TILE],
            values: std::array::from_fn(|_| vec![0.0; TILE]),
        }
    }
}

impl<'a> CombinedRows<'a> {
    /// Combined rows, rounded to f32, on this thread: of each as many columns as there is memory for.
    pub(super) fn fill(&self, places: &mut [Place<'_>]) {
        let table = match self.plan.is_one_table {
            true => self.of.only_table(),
            false => None,
        };
        match table {
            Some((family, mixture)) if self.plan.computes() => {
                family.for_rows(&self.samples(places), |r, t| {
                    let out = &mut *places[r].1;
                    mixture.values(&t[..out.len()], out);
                });
            }
            Some((family, mixture)) => {
                for (i, out) in places {
                    fill_from_table(family, mixture, self.gram.rows.get(*i), out);
                }
            }
            None => {
                let samples = self.samples(places);
                let lengths: Vec<usize> = places.iter().map(|(_, out)| out.len()).collect();
                self.for_sums_of(&samples, &lengths, Precision::Fast, |r, sums| {
                    round(sums, places[r].1);
                });
            }
        }
    }

    fn samples(&self, places: &[Place<'_>]) -> Vec<usize> {
        places.iter().map(|(i, _)| self.gram.rows.get(*i)).collect()
    }

    /// Hands out whole combined rows before they are rounded.
    pub(super) fn for_sums(
        &self,
        rows: &[usize],
        precision: Precision,
        each: impl FnMut(usize, &[f64]),
    ) {
        let samples: Vec<usize> = rows.iter().map(|&i| self.gram.rows.get(i)).collect();
        let lengths = vec![self.gram.n_cols(); rows.len()];
        self.for_sums_of(&samples, &lengths, precision, each);
    }

    /// The same for the first columns of each row, as many as `lengths` says.
    fn for_sums_of(
        &self,
        samples: &[usize],
        lengths: &[usize],
        precision: Precision,
        mut each: impl FnMut(usize, &[f64]),
    ) {
        let n = self.gram.n_cols();
        if !self.plan.computes() {
            // One row at a time, so that the sums stay in the first cache.
            let (mut sums, mut scratch) = (vec![0.0; n], Scratch::new());
            for (r, (&i, &length)) in samples.iter().zip(lengths).enumerate() {
                let sums = &mut sums[..length];
                self.sum_row(i, precision, sums, &mut scratch);
                each(r, sums);
            }
            return;
        }
        let mut sums = vec![0.0f64; samples.len() * n];
        for term in &self.of.terms {
            term.family().for_rows(samples, |r, t| {
                let sums = &mut sums[r * n..][..lengths[r]];
                self.add(term, samples[r], t, precision, sums);
            });
        }
        for (r, &i) in samples.iter().enumerate() {
            let sums = &mut sums[r * n..][..lengths[r]];
            self.shift(i, sums);
            each(r, sums);
        }
    }

    /// The first columns of the combined row of sample i before it is rounded, as many as `sums` is long.
    fn sum_row(&self, i: usize, precision: Precision, sums: &mut [f64], scratch: &mut Scratch) {
        sums.fill(0.0);
        match (self.plan.way, precision) {
            (Way::Stored, _) => {
                let rows = self.of.terms.iter().filter_map(|term| match term {
                    Term::Multiple(family, factor) => Some((family.held_row(i)?, *factor)),
                    Term::Mixture(..) => None,
                });
                return add_rows(&rows.collect::<Vec<ScaledRow<'_>>>(), sums);
            }
            (Way::Tiles, Precision::Fast) => self.add_tiles(i, sums, scratch),
            _ => {
                for term in &self.of.terms {
                    let family = term.family();
                    // A short row is computed where there is memory already.
                    let piece = match family.n_cols <= TILE {
                        true => family.piece(i, 0..family.n_cols, &mut scratch.t),
                        false => None,
                    };
                    match piece {
                        Some(t) => self.add(term, i, t, precision, sums),
                        None => family.for_rows(&[i], |_, t| self.add(term, i, t, precision, sums)),
                    }
                }
            }
        }
        self.shift(i, sums);
    }

    /// Adds the terms' values in f32, a few terms at a time to a tile of columns, so that the sums are seldom touched.
    fn add_tiles(&self, i: usize, sums: &mut [f64], scratch: &mut Scratch) {
        for (k, sums) in sums.chunks_mut(TILE).enumerate() {
            let cols = k * TILE..k * TILE + sums.len();
            for terms in self.of.terms.chunks(TOGETHER) {
                let mut rows: [ScaledRow<'_>; TOGETHER] = [(&[], 0.0); TOGETHER];
                for ((row, term), values) in rows.iter_mut().zip(terms).zip(&mut scratch.values) {
                    let there = "this plan is for statistics that need not be computed";
                    *row = match term {
                        Term::Multiple(family, factor) => {
                            let t = family.piece(i, cols.clone(), values);
                            (t.expect(there), *factor)
                        }
                        Term::Mixture(family, mixture) => {
                            let t = family.piece(i, cols.clone(), &mut scratch.t);
                            let t = t.expect(there);
                            let values = &mut values[..t.len()];
                            mixture.values(t, values);
                            (values, 1.0)
                        }
                    };
                }
                add_rows(&rows[..terms.len()], sums);
            }
        }
    }

    /// Adds a term's values of sample i with the first columns to `sums`; `t` is the statistic's whole row.
    fn add(&self, term: &Term<'_>, i: usize, t: &[f32], precision: Precision, sums: &mut [f64]) {
        match (&self.gram.cols, &term.family().factors) {
            (Index::All(_), None) => term.add(&t[..sums.len()], precision, sums),
            // Gathered first, so that looking up sees them side by side.
            (Index::Some(cols), None) => {
                let mut gathered = [0.0f32; TILE];
                for (cols, sums) in cols.chunks(TILE).zip(sums.chunks_mut(TILE)) {
                    let gathered = &mut gathered[..cols.len()];
                    for (g, &j) in gathered.iter_mut().zip(cols) {
                        *g = t[j];
                    }
                    term.add(gathered, precision, sums);
                }
            }
            // Factors may be large, and would show the rounding of values in f32.
            (cols, Some(factors)) => {
                let cols = (0..sums.len()).map(|j| cols.get(j));
                term.add_times(cols.map(|j| (t[j], factors.0[i] * factors.1[j])), sums);
            }
        }
    }

    /// Centres the first columns of the row of sample i.
    fn shift(&self, i: usize, sums: &mut [f64]) {
        let Some(shifts) = &self.of.shifts else {
            return;
        };
        for (j, sum) in sums.iter_mut().enumerate() {
            // In an order that is the same for (i, j) and (j, i).
            *sum += shifts.grand - (shifts.rows[i] + shifts.cols[self.gram.cols.get(j)]);
        }
    }
}

/// The first columns of the row of a sample, from one table over a statistic that need not be computed.
fn fill_from_table(family: &Family, mixture: &Mixture<'_>, sample: usize, out: &mut [f32]) {
    if let Some(t) = family.held_row(sample) {
        return mixture.values(&t[..out.len()], out);
    }
    let mut tile = [0.0f32; TILE];
    for (k, out) in out.chunks_mut(TILE).enumerate() {
        let cols = k * TILE..k * TILE + out.len();
        if let Some(t) = family.piece(sample, cols, &mut tile) {
            mixture.values(t, out);
        }
    }
}
