//! The combined kernel Σ_m β_m K_m of a Gram for fixed weights.

use super::family::{CACHED_ROWS, Family, Map};
use super::grid::{Basis, RowTable, Table};
use super::lookup::Exponentials;
use super::products::{Row, TOGETHER, add_rows};
use super::symmetric::mirror;
use super::{Coefficients, Gram, Look};
use crate::kernel::Profile;
use crate::math::dot;
use crate::pages::zeros;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Columns summed in f64 at a time: a tile stays in the first cache.
const TILE: usize = 512;
/// Looking up one family takes as long as reading so many stored matrices.
const STORED: usize = 12;
/// So many kernels of a family are summed for a single value before that takes longer than a table is worth.
const SUMMED: usize = 16;
/// From so many families on a row is dear.
const DEAR: usize = 8;
/// Rows per task in products.
const ROWS: usize = 32;
/// Sums of rows that are held at once, and their bytes.
const SUMS_AT_ONCE: usize = 16;
const SUMS_BYTES: usize = 64 << 20;

/// A family's share of the combination.
#[derive(Debug)]
enum Part<'g> {
    Scaled(&'g Family, f64),
    Table(&'g Family, Mixture<'g>),
}

/// Σ_m β_m φ_m over the kernels of a family.
#[derive(Debug)]
struct Mixture<'g> {
    basis: &'g Basis,
    beta: Vec<f64>,
    /// For values in f32.
    rows: InRows,
    /// For values in f64: made when it is first asked for, which most combinations never are.
    table: OnceLock<Table>,
}

/// How values in f32 are found.
#[derive(Debug)]
enum InRows {
    /// The sum is one of a few exponentials, which are computed.
    Few(Exponentials),
    Table(RowTable),
}

impl<'g> Mixture<'g> {
    fn new(family: &'g Family, basis: &'g Basis, beta: Vec<f64>) -> Self {
        let rows = match few(family, &beta) {
            Some(few) => InRows::Few(few),
            None => InRows::Table(basis.combine_fast(&beta)),
        };
        Mixture {
            basis,
            beta,
            rows,
            table: OnceLock::new(),
        }
    }

    /// For values in f64.
    fn table(&self) -> &Table {
        self.table.get_or_init(|| self.basis.combine(&self.beta))
    }

    /// Its value at t, from the family's own profiles if they are not many.
    fn at(&self, family: &Family, t: f32) -> f64 {
        if self.beta.len() > SUMMED {
            return self.table().at(t);
        }
        let each = self.beta.iter().zip(&family.profiles);
        let weighted = each.filter(|(b, _)| **b != 0.0);
        weighted
            .map(|(b, (profile, factor))| b * factor * profile.value(f64::from(t)))
            .sum()
    }

    /// Its values in f32.
    fn values(&self, t: &[f32], out: &mut [f32]) {
        match &self.rows {
            InRows::Few(few) => few.values(t, out),
            InRows::Table(table) => table.look_up(t, out),
        }
    }
}

/// Σ_m β_m K_m between the row samples and the column samples of a [`Gram`].
#[derive(Debug)]
pub struct Combined<'g> {
    gram: &'g Gram,
    parts: Vec<Part<'g>>,
    /// Centring: subtracted from row i and from column j, and added everywhere. Numbered as the families number.
    shifts: Option<(Vec<f64>, Vec<f64>, f64)>,
    error_bound: f64,
    rows_error_bound: f64,
    /// Rows of all statistics are there, or next to it, and have no factors.
    is_plain: bool,
}

impl<'g> Combined<'g> {
    pub(super) fn new(gram: &'g Gram, beta: &[f64]) -> Self {
        assert_eq!(beta.len(), gram.n_kernels, "one weight per kernel");
        let mut parts = Vec::new();
        let mut error_bound = 0.0;
        let mut rows_error_bound = 0.0;
        let mut shifts: Option<(Vec<f64>, Vec<f64>, f64)> = None;
        for family in gram.families.iter() {
            if family.members.iter().all(|&m| beta[m] == 0.0) {
                continue;
            }
            let beta: Vec<f64> = family.members.iter().map(|&m| beta[m]).collect();
            parts.push(match &family.map {
                Map::Scaled(factor) => Part::Scaled(family, beta[0] * factor),
                Map::Table(basis) => {
                    let worst = family.factors.as_ref().map_or(1.0, |(rows, cols)| {
                        let largest = |f: &[f64]| f.iter().fold(0.0f64, |m, &v| m.max(v));
                        largest(rows) * largest(cols)
                    });
                    for (b, bound) in beta.iter().zip(basis.bounds()) {
                        error_bound += worst * b.abs() * bound.0;
                        rows_error_bound += worst * b.abs() * bound.2;
                    }
                    Part::Table(family, Mixture::new(family, basis, beta.clone()))
                }
            });
            if let Some(centring) = &family.centring {
                let mix = |means: &[f64]| -> Vec<f64> {
                    means
                        .par_chunks(beta.len())
                        .map(|row| row.iter().zip(&beta).map(|(r, b)| r * b).sum())
                        .collect()
                };
                let rows = mix(&centring.row_means);
                let cols = mix(&centring.col_means);
                let grand: f64 = centring.grand.iter().zip(&beta).map(|(c, b)| c * b).sum();
                match &mut shifts {
                    None => shifts = Some((rows, cols, grand)),
                    Some((r, c, g)) => {
                        r.iter_mut().zip(rows).for_each(|(a, b)| *a += b);
                        c.iter_mut().zip(cols).for_each(|(a, b)| *a += b);
                        *g += grand;
                    }
                }
            }
        }
        let is_plain = parts.iter().all(|part: &Part<'_>| {
            part.family().factors.is_none() && !part.family().computes_rows()
        });
        Combined {
            gram,
            is_plain,
            parts,
            shifts,
            error_bound,
            rows_error_bound,
        }
    }

    /// How far a value may be from Σ β_m φ_m(t) of the stored statistic in products, diagonals and sums, which are in f64.
    pub fn error_bound(&self) -> f64 {
        self.error_bound
    }

    /// How far a value of [`Combined::rows`] may be from Σ β_m φ_m(t) of the stored statistic, in exact arithmetic, beside its
    /// own rounding to f32: rows of a family may be computed in f32.
    pub fn rows_error_bound(&self) -> f64 {
        self.rows_error_bound
    }

    /// Combined rows, row after row into `out`. Many rows are spread over the threads, a few are not.
    ///
    /// # Panics
    /// If `out` is not as long as the rows asked for.
    pub fn rows(&self, rows: &[usize], out: &mut [f32]) {
        let n = self.gram.n_cols();
        assert_eq!(out.len(), rows.len() * n);
        let block = self.block_rows();
        // A few cheap rows are done before other threads would have woken up.
        if rows.len() <= CACHED_ROWS {
            self.rows_on_this_thread(rows, out);
        } else {
            out.par_chunks_mut(block * n)
                .zip(rows.par_chunks(block))
                .for_each(|(out, rows)| self.rows_on_this_thread(rows, out));
        }
    }

    /// The whole combined matrix, row after row, in new memory.
    pub fn matrix(&self) -> Vec<f32> {
        let mut out = zeros(self.gram.n_rows() * self.gram.n_cols());
        self.matrix_into(&mut out);
        out
    }

    /// The whole combined matrix, row after row; of a symmetric one the lower half is computed where that is faster. One matrix after
    /// the other in the same memory takes less time than each in memory of its own, which the system has to clear.
    ///
    /// # Panics
    /// If `out` is not as long as the matrix.
    pub fn matrix_into(&self, out: &mut [f32]) {
        let n = self.gram.n_cols();
        assert_eq!(out.len(), self.gram.n_rows() * n);
        if self.is_halved() {
            let view = self.on(self.gram);
            out.par_chunks_mut(ROWS * n.max(1))
                .enumerate()
                .for_each(|(b, out)| view.lower_rows(ROWS * b, out, |_| n));
            mirror(out, n);
        } else {
            let rows: Vec<usize> = (0..self.gram.n_rows()).collect();
            self.rows(&rows, out);
        }
    }

    /// The lower half of a symmetric combined matrix with the diagonal, row after row.
    ///
    /// # Panics
    /// If rows and columns are different samples, or `out` is not as long as the half.
    pub fn lower_into(&self, out: &mut [f32]) {
        let n = self.gram.n_rows();
        assert!(self.gram.symmetric && out.len() == n * (n + 1) / 2);
        let view = self.on(self.gram);
        if self.computes_rows() {
            let all: Vec<usize> = (0..n).collect();
            let mut rows = zeros(self.block_rows().min(n) * n);
            let mut out = out;
            for some in all.chunks(self.block_rows()) {
                let rows = &mut rows[..some.len() * n];
                view.rows_here(some, rows);
                for (&i, row) in some.iter().zip(rows.chunks(n)) {
                    let (half, rest) = out.split_at_mut(i + 1);
                    half.copy_from_slice(&row[..=i]);
                    out = rest;
                }
            }
        } else {
            view.lower_rows(0, out, |i| i + 1);
        }
    }

    /// The diagonal of a training Gram.
    ///
    /// # Panics
    /// If rows and columns are different samples.
    pub fn diagonal(&self) -> Vec<f64> {
        assert!(self.gram.symmetric);
        let rows = &self.gram.rows;
        let mut sums = vec![0.0; self.gram.n_rows()];
        for part in &self.parts {
            let family = part.family();
            // Distances of samples from themselves are all the same.
            let mut last = (f32::NAN, f64::NAN);
            for (i, sum) in sums.iter_mut().enumerate() {
                let i = rows.get(i);
                let t = family.diagonal[i];
                if t != last.0 {
                    let value = match part {
                        Part::Scaled(_, factor) => factor * f64::from(t),
                        Part::Table(_, mixture) => mixture.at(family, t),
                    };
                    last = (t, value);
                }
                let factor = family.factors.as_ref().map_or(1.0, |f| f.0[i] * f.1[i]);
                *sum += factor * last.1;
            }
        }
        if let Some((row_means, col_means, grand)) = &self.shifts {
            for (i, sum) in sums.iter_mut().enumerate() {
                let i = rows.get(i);
                *sum += grand - row_means[i] - col_means[i];
            }
        }
        sums
    }

    /// K_β A: `outputs` numbers for each row sample.
    ///
    /// # Panics
    /// If there is not one row of coefficients per column sample.
    pub fn product(&self, a: Coefficients<'_>) -> Vec<f64> {
        let rows: Vec<usize> = (0..self.gram.n_rows()).collect();
        self.product_rows(&rows, a)
    }

    /// (K_β A)_i for the rows named.
    ///
    /// # Panics
    /// If there is not one row of coefficients per column sample.
    pub fn product_rows(&self, rows: &[usize], a: Coefficients<'_>) -> Vec<f64> {
        self.product_by(rows, a, Look::Exact)
    }

    /// As [`Combined::product`], from values as [`Combined::rows`] has them: faster, and as far from the truth as these.
    pub(crate) fn fast_product(&self, a: Coefficients<'_>) -> Vec<f64> {
        let rows: Vec<usize> = (0..self.gram.n_rows()).collect();
        self.product_by(&rows, a, Look::Fast)
    }

    /// Kᵀ A, one row per column sample, from values as [`Combined::rows`] has them.
    pub(crate) fn fast_transposed_product(&self, a: Coefficients<'_>) -> Vec<f64> {
        assert_eq!(a.len(), self.gram.n_rows());
        let rows: Vec<usize> = (0..a.len()).collect();
        self.on(self.gram).sum_of_rows(&rows, a, Look::Fast)
    }

    fn product_by(&self, rows: &[usize], a: Coefficients<'_>, look: Look) -> Vec<f64> {
        assert_eq!(a.len(), self.gram.n_cols());
        let support = a.support();
        // Gathering a value costs about as much as looking it up: of a symmetric matrix whole rows are read instead.
        let whole = self.gram.symmetric && matches!(self.gram.cols, super::Index::All(_));
        let all = rows.len() == a.len() && rows.iter().enumerate().all(|(k, &i)| k == i);
        let rows_pay = match a.outputs() {
            1 => support.len() < a.len(),
            // Sums for every output need memory, which rows that are not stored were to save.
            _ => !self.computes_rows(),
        };
        if whole && all && rows_pay {
            return self.on(self.gram).sum_of_rows(&support, a, look);
        }
        let few = support.len() < a.len() / 2;
        if few {
            let values: Vec<f64> = support.iter().flat_map(|&j| a.row(j)).copied().collect();
            let all: Vec<usize> = (0..self.gram.n_rows()).collect();
            let gram = self.gram.block(&all, &support);
            let a = Coefficients::new(&values, a.outputs());
            return self.on(&gram).dense_product(rows, a, look);
        }
        self.on(self.gram).dense_product(rows, a, look)
    }

    /// The same combination on other samples of the same families.
    fn on<'a>(&'a self, gram: &'a Gram) -> View<'a> {
        View { of: self, gram }
    }

    pub(super) fn rows_on_this_thread(&self, rows: &[usize], out: &mut [f32]) {
        self.on(self.gram).rows_here(rows, out);
    }

    /// Whether [`Combined::matrix`] computes one half and copies it to the other: copying takes about as long as looking up one family
    /// or reading a dozen stored matrices, so there must be more than that.
    pub(crate) fn is_halved(&self) -> bool {
        self.gram.symmetric && !self.computes_rows() && self.cost() > STORED
    }

    /// Whether a row takes so long that one that nobody will ask for should not be made.
    pub(crate) fn is_dear(&self) -> bool {
        self.is_halved() && self.cost() > DEAR * STORED
    }

    fn cost(&self) -> usize {
        cost(self.parts.iter().map(Part::family))
    }

    fn computes_rows(&self) -> bool {
        self.parts.iter().any(|part| part.family().computes_rows())
    }

    fn block_rows(&self) -> usize {
        self.parts
            .iter()
            .map(|part| part.family().block_rows())
            .max()
            .unwrap_or(ROWS)
    }
}

impl Gram {
    /// Whether rows of all kernels take so long to make as [`Combined::is_dear`] asks.
    pub(crate) fn has_dear_rows(&self) -> bool {
        cost(self.families.iter().map(|family| &**family)) > DEAR * STORED
    }
}

/// What an entry costs, in stored matrices to be read.
fn cost<'a>(families: impl Iterator<Item = &'a Family>) -> usize {
    let costs = families.map(|family| match family.map {
        Map::Scaled(_) => 1,
        Map::Table(_) => STORED,
    });
    costs.sum()
}

/// The kernels of the family with a weight, if they are few and exponentials.
fn few(family: &Family, beta: &[f64]) -> Option<Exponentials> {
    let weighted = beta
        .iter()
        .zip(&family.profiles)
        .filter(|(b, _)| **b != 0.0);
    let each = weighted.map(|(b, (profile, factor))| match profile {
        Profile::Exp { width } => Some((b * factor, *width)),
        _ => None,
    });
    Exponentials::new(&each.collect::<Option<Vec<_>>>()?)
}

impl<'g> Part<'g> {
    fn family(&self) -> &'g Family {
        match self {
            Part::Scaled(family, _) | Part::Table(family, ..) => family,
        }
    }
}

/// The whole matrices of kernels of one family, each into its own memory. A row of the statistic is fetched once for all of them.
pub(super) fn matrices(kernels: &[Combined<'_>], outs: Vec<&mut [f32]>) {
    let tables = kernels.iter().map(|one| one.on(one.gram).only_table());
    let tables: Option<Vec<_>> = tables.collect();
    let (Some(tables), Some(first)) = (tables, kernels.first()) else {
        for (one, out) in kernels.iter().zip(outs) {
            one.matrix_into(out);
        }
        return;
    };
    let (gram, block) = (first.gram, first.block_rows());
    let n = gram.n_cols();
    let rows: Vec<usize> = (0..gram.n_rows()).map(|i| gram.rows.get(i)).collect();
    let mut tasks: Vec<(&[usize], Vec<&mut [f32]>)> = rows
        .chunks(block)
        .map(|rows| (rows, Vec::with_capacity(outs.len())))
        .collect();
    for out in outs {
        for (task, part) in tasks.iter_mut().zip(out.chunks_mut(block * n)) {
            task.1.push(part);
        }
    }
    tasks.into_par_iter().for_each(|(rows, mut outs)| {
        tables[0].0.for_rows(rows, |r, t| {
            for ((_, mixture), out) in tables.iter().zip(&mut outs) {
                mixture.values(t, &mut out[r * n..(r + 1) * n]);
            }
        });
    });
}

/// Room for a tile of a statistic, and of values of a few parts.
struct Room {
    t: Vec<f32>,
    values: [Vec<f32>; TOGETHER],
}

impl Room {
    fn new() -> Room {
        Room {
            t: vec![0.0; TILE],
            values: std::array::from_fn(|_| vec![0.0; TILE]),
        }
    }
}

/// A combination seen on some rows and columns.
struct View<'a> {
    of: &'a Combined<'a>,
    gram: &'a Gram,
}

impl<'a> View<'a> {
    fn dense_product(&self, rows: &[usize], a: Coefficients<'_>, look: Look) -> Vec<f64> {
        let k = a.outputs();
        let block = self.of.block_rows();
        let mut out = vec![0.0; rows.len() * k];
        if a.len() == 0 {
            return out;
        }
        out.par_chunks_mut(block * k)
            .zip(rows.par_chunks(block))
            .for_each(|(out, rows)| {
                // Not rounded to f32: large coefficients would show the rounding in their scores.
                self.for_sums(rows, look, |r, values| {
                    let out = &mut out[r * k..(r + 1) * k];
                    if k == 1 {
                        out[0] = dot(values, a.values);
                    } else {
                        for (v, a) in values.iter().zip(a.values.chunks(k)) {
                            for (o, a) in out.iter_mut().zip(a) {
                                *o += v * a;
                            }
                        }
                    }
                });
            });
        out
    }

    /// Σ_j a_j K_j over the rows j of the support, for each output: Kᵀ A, which is K A where K is symmetric.
    fn sum_of_rows(&self, support: &[usize], a: Coefficients<'_>, look: Look) -> Vec<f64> {
        let (n, k) = (self.gram.n_cols(), a.outputs());
        // Sums of so many rows each are added up in order: the same for any number of threads, and in bounded memory.
        let together = ROWS * k.div_ceil(8);
        let at_once = (SUMS_BYTES / (8 * n * k).max(1)).clamp(1, SUMS_AT_ONCE);
        // Output after output.
        let mut out = vec![0.0; n * k];
        for some in support.chunks(together * at_once) {
            let parts: Vec<Vec<f64>> = some
                .par_chunks(together)
                .map(|rows| {
                    let mut sums = vec![0.0; n * k];
                    for rows in rows.chunks(ROWS) {
                        self.for_sums(rows, look, |r, values| {
                            for (&a, sums) in a.row(rows[r]).iter().zip(sums.chunks_mut(n)) {
                                if a != 0.0 {
                                    add_multiple(a, values, sums);
                                }
                            }
                        });
                    }
                    sums
                })
                .collect();
            for part in parts {
                add_multiple(1.0, &part, &mut out);
            }
        }
        if k == 1 {
            return out;
        }
        let of_sample = |i: usize| out.iter().skip(i).step_by(n.max(1)).copied();
        (0..n).flat_map(of_sample).collect()
    }

    /// Combined rows on this thread.
    fn rows_here(&self, rows: &[usize], out: &mut [f32]) {
        let n = self.gram.n_cols();
        if let Some((family, mixture)) = self.only_table() {
            let samples: Vec<usize> = rows.iter().map(|&i| self.gram.rows.get(i)).collect();
            family.for_rows(&samples, |r, t| {
                mixture.values(t, &mut out[r * n..(r + 1) * n]);
            });
            return;
        }
        self.for_sums(rows, Look::Fast, |r, sums| {
            round(sums, &mut out[r * n..(r + 1) * n]);
        });
    }

    /// The rows from `first` on of a symmetric matrix up to their diagonals, where the statistics are there or next to it; row i has
    /// room for `length(i)` values.
    fn lower_rows(&self, first: usize, out: &mut [f32], length: impl Fn(usize) -> usize) {
        let (mut sums, mut room) = (vec![0.0; self.gram.n_cols()], Room::new());
        let only = self.only_table();
        let (mut out, mut i) = (out, first);
        while !out.is_empty() {
            let (row, rest) = out.split_at_mut(length(i));
            let (sample, row) = (self.gram.rows.get(i), &mut row[..=i]);
            match only {
                Some((family, mixture)) => {
                    for (k, row) in row.chunks_mut(TILE).enumerate() {
                        let cols = k * TILE..k * TILE + row.len();
                        if let Some(t) = family.piece(sample, cols, &mut room.t) {
                            mixture.values(t, row);
                        }
                    }
                }
                None => {
                    self.sum_row(sample, Look::Fast, &mut sums[..=i], &mut room);
                    round(&sums[..=i], row);
                }
            }
            out = rest;
            i += 1;
        }
    }

    /// The one table, if there is nothing else in the combination: its values need no sum and go straight into the result.
    fn only_table(&self) -> Option<(&'a Family, &'a Mixture<'a>)> {
        match (&self.of.parts[..], &self.of.shifts, &self.gram.cols) {
            ([Part::Table(family, mixture)], None, super::Index::All(_))
                if family.factors.is_none() =>
            {
                Some((family, mixture))
            }
            _ => None,
        }
    }

    /// Row of sample i of every part, if all of them lie in memory as they are.
    fn plain_rows(&self, i: usize) -> Option<Vec<Row<'_>>> {
        let (super::Index::All(_), None) = (&self.gram.cols, &self.of.shifts) else {
            return None;
        };
        self.of
            .parts
            .iter()
            .map(|part| match part {
                // The part's factor is the family's times the weight.
                Part::Scaled(family, factor) => Some((family.plain_row(i)?.0, *factor)),
                Part::Table(..) => None,
            })
            .collect()
    }

    /// The first columns of the combined row of sample i before it is rounded, as many as `sums` is long.
    fn sum_row(&self, i: usize, look: Look, sums: &mut [f64], room: &mut Room) {
        sums.fill(0.0);
        if let Some(rows) = self.plain_rows(i) {
            add_rows(&rows, sums);
            return;
        }
        if look == Look::Fast && self.add_in_tiles(i, sums, room).is_some() {
            self.shift(i, sums);
            return;
        }
        for part in &self.of.parts {
            let family = part.family();
            // A short row is computed where there is room already.
            let piece = match family.n_cols <= TILE {
                true => family.piece(i, 0..family.n_cols, &mut room.t),
                false => None,
            };
            match piece {
                Some(t) => self.add(part, i, t, look, sums),
                None => family.for_rows(&[i], |_, t| self.add(part, i, t, look, sums)),
            }
        }
        self.shift(i, sums);
    }

    /// Adds the parts' values in f32, a few parts at a time to a tile of columns, so that the sums are seldom touched. None, and nothing
    /// added, where the statistics are not there or have factors or their columns are to be gathered.
    fn add_in_tiles(&self, i: usize, sums: &mut [f64], room: &mut Room) -> Option<()> {
        if !self.of.is_plain || !matches!(self.gram.cols, super::Index::All(_)) {
            return None;
        }
        for (k, sums) in sums.chunks_mut(TILE).enumerate() {
            let cols = k * TILE..k * TILE + sums.len();
            for parts in self.of.parts.chunks(TOGETHER) {
                let mut rows: [Row<'_>; TOGETHER] = [(&[], 0.0); TOGETHER];
                for ((row, part), values) in rows.iter_mut().zip(parts).zip(&mut room.values) {
                    *row = match part {
                        Part::Scaled(family, factor) => {
                            (family.piece(i, cols.clone(), values)?, *factor)
                        }
                        Part::Table(family, mixture) => {
                            let t = family.piece(i, cols.clone(), &mut room.t)?;
                            let values = &mut values[..t.len()];
                            mixture.values(t, values);
                            (values, 1.0)
                        }
                    };
                }
                add_rows(&rows[..parts.len()], sums);
            }
        }
        Some(())
    }

    /// Hands out combined rows before they are rounded.
    fn for_sums(&self, rows: &[usize], look: Look, mut each: impl FnMut(usize, &[f64])) {
        let n = self.gram.n_cols();
        let samples: Vec<usize> = rows.iter().map(|&i| self.gram.rows.get(i)).collect();
        // Rows that lie in memory are summed one at a time, so that the sums stay in the first cache.
        if !self.of.computes_rows() {
            let (mut sums, mut room) = (vec![0.0; n], Room::new());
            for (r, &i) in samples.iter().enumerate() {
                self.sum_row(i, look, &mut sums, &mut room);
                each(r, &sums);
            }
            return;
        }
        let mut sums = vec![0.0f64; samples.len() * n];
        for part in &self.of.parts {
            part.family().for_rows(&samples, |r, t| {
                self.add(part, samples[r], t, look, &mut sums[r * n..(r + 1) * n]);
            });
        }
        for ((r, sums), &i) in sums.chunks_mut(n.max(1)).enumerate().zip(&samples) {
            self.shift(i, sums);
            each(r, sums);
        }
    }

    /// Centres the first columns of the row of sample i.
    fn shift(&self, i: usize, sums: &mut [f64]) {
        let Some((row_means, col_means, grand)) = &self.of.shifts else {
            return;
        };
        for (j, sum) in sums.iter_mut().enumerate() {
            // In an order that is the same for (i, j) and (j, i).
            *sum += grand - (row_means[i] + col_means[self.gram.cols.get(j)]);
        }
    }

    /// Adds a part's values of sample i with the first columns to `sums`; `t` is the statistic's whole row.
    fn add(&self, part: &Part<'_>, i: usize, t: &[f32], look: Look, sums: &mut [f64]) {
        let factors = part.family().factors.as_ref();
        match (&self.gram.cols, factors) {
            (super::Index::All(_), None) => {
                add_values(part, &t[..sums.len()], look, sums);
            }
            // Gathered first, so that looking up sees them side by side.
            (super::Index::Some(cols), None) => {
                let mut gathered = [0.0f32; TILE];
                for (cols, sums) in cols.chunks(TILE).zip(sums.chunks_mut(TILE)) {
                    let gathered = &mut gathered[..cols.len()];
                    for (g, &j) in gathered.iter_mut().zip(cols) {
                        *g = t[j];
                    }
                    add_values(part, gathered, look, sums);
                }
            }
            (cols, _) => {
                for (j, sum) in sums.iter_mut().enumerate() {
                    let j = cols.get(j);
                    let value = match part {
                        Part::Scaled(_, factor) => factor * f64::from(t[j]),
                        Part::Table(_, mixture) => mixture.table().at(t[j]),
                    };
                    *sum += factors.map_or(1.0, |f| f.0[i] * f.1[j]) * value;
                }
            }
        }
    }
}

/// Adds a part's values for these values of its statistic.
fn add_values(part: &Part<'_>, t: &[f32], look: Look, sums: &mut [f64]) {
    match part {
        Part::Scaled(_, factor) => scaled(t, *factor, sums),
        Part::Table(_, mixture) if look == Look::Fast => {
            let mut values = [0.0f32; TILE];
            for (t, sums) in t.chunks(TILE).zip(sums.chunks_mut(TILE)) {
                let values = &mut values[..t.len()];
                mixture.values(t, values);
                scaled(values, 1.0, sums);
            }
        }
        Part::Table(_, mixture) => mixture.table().add(t, sums),
    }
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn scaled(t: &[f32], factor: f64, sums: &mut [f64]) {
    for (sum, t) in sums.iter_mut().zip(t) {
        *sum += factor * f64::from(*t);
    }
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn add_multiple(a: f64, values: &[f64], sums: &mut [f64]) {
    for (sum, v) in sums.iter_mut().zip(values) {
        *sum += a * v;
    }
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn round(sums: &[f64], out: &mut [f32]) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = *sum as f32;
    }
}
