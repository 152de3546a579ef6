//! The engine: what solvers and models ask of the kernels, answered without ever showing them a matrix.
//!
//! Three questions, each answered in blocks, on rayon's current pool, with the same bits for any number of threads:
//! 1. combined rows Σ_m β_m K_m[i, :] ([`Combined::rows`], [`Combined::matrix`]);
//! 2. quadratic forms Σ_y a_yᵀ K_m a_y ([`Gram::quadratic_forms`]) and per-kernel scores (K_m A)_i
//!    ([`Gram::kernel_scores`]) for all m;
//! 3. products K_β A ([`Combined::product`]).
//!
//! Kernels over one statistic are a family: one table look-up or one histogram entry per pair, whatever their
//! number (`grid.rs`). f32 is stored, f64 is summed.

mod build;
mod clip;
mod combined;
mod definite;
mod every;
mod family;
mod forms;
mod grid;
mod lookup;
mod products;
mod set;
mod symmetric;

pub use clip::Projection;
pub use combined::Combined;
pub use definite::{Indefinite, Repair};
pub(crate) use every::EveryKernel;
pub use set::{Kernel, KernelSet, Normalizer, Options, Reference};

use crate::error::Result;
use crate::math::mixed_dot;
use crate::observe::{self, Observer};
use crate::pages::zeros;
use family::{Family, Map};
use lookup::Exponentials;
use rayon::prelude::*;
use std::sync::Arc;

/// Support rows per task in histograms; fixed, so that sums do not depend on the threads.
const CHUNK: usize = 64;

/// Matrices that are made together: they share a statistic, and each needs a table of its own.
const MATRICES: usize = 64;

/// All kernels between row samples and column samples. For training both are the same samples.
///
/// Clones and subsets share everything.
#[derive(Debug, Clone)]
pub struct Gram {
    families: Vec<Arc<Family>>,
    n_kernels: usize,
    rows: Index,
    cols: Index,
    symmetric: bool,
    spare: u64,
}

/// Samples of a Gram among those the families know.
#[derive(Debug, Clone)]
enum Index {
    All(usize),
    Some(Arc<[usize]>),
}

impl Index {
    fn len(&self) -> usize {
        match self {
            Index::All(n) => *n,
            Index::Some(list) => list.len(),
        }
    }

    fn get(&self, i: usize) -> usize {
        match self {
            Index::All(_) => i,
            Index::Some(list) => list[i],
        }
    }

    fn compose(&self, of: &[usize]) -> Index {
        Index::Some(of.iter().map(|&i| self.get(i)).collect())
    }
}

/// How kernel values come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// In f64: products and certificates.
    Exact,
    /// In f32 where that is faster: rows, which are rounded to f32 anyway, and models that are rough anyway.
    Fast,
}

/// Coefficients of the samples: `outputs` numbers each, sample after sample. Most are often zero.
#[derive(Debug, Clone, Copy)]
pub struct Coefficients<'a> {
    values: &'a [f64],
    outputs: usize,
}

impl<'a> Coefficients<'a> {
    /// `values` holds `outputs` numbers for each sample.
    ///
    /// # Panics
    /// If the length is no multiple of `outputs`.
    pub fn new(values: &'a [f64], outputs: usize) -> Self {
        assert!(outputs > 0 && values.len().is_multiple_of(outputs));
        Coefficients { values, outputs }
    }

    /// One number per sample.
    pub fn single(values: &'a [f64]) -> Self {
        Coefficients { values, outputs: 1 }
    }

    /// Numbers per sample.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    fn row(&self, i: usize) -> &'a [f64] {
        &self.values[i * self.outputs..(i + 1) * self.outputs]
    }

    fn len(&self) -> usize {
        self.values.len() / self.outputs
    }

    /// The samples with a coefficient other than zero.
    fn support(&self) -> Vec<usize> {
        (0..self.len())
            .filter(|&i| self.row(i).iter().any(|&v| v != 0.0))
            .collect()
    }

    /// Sum over the samples, one number per output.
    fn sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.outputs];
        for row in self.values.chunks(self.outputs) {
            for (s, v) in sums.iter_mut().zip(row) {
                *s += v;
            }
        }
        sums
    }
}

impl Gram {
    /// Number of kernels.
    pub fn n_kernels(&self) -> usize {
        self.n_kernels
    }

    /// Number of row samples.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Number of column samples.
    pub fn n_cols(&self) -> usize {
        self.cols.len()
    }

    /// Bytes of the memory given to the set that it does not use itself: a solver may hold so much.
    pub fn spare_memory(&self) -> u64 {
        self.spare
    }

    /// The same, with other bytes for a solver.
    pub(crate) fn with_spare_memory(self, spare: u64) -> Gram {
        Gram { spare, ..self }
    }

    /// Number of statistics: what the cost grows with.
    pub fn n_families(&self) -> usize {
        self.families.len()
    }

    /// The kernels among the samples named (of a training Gram), without copying.
    pub fn subset(&self, samples: &[usize]) -> Gram {
        Gram {
            rows: self.rows.compose(samples),
            cols: self.cols.compose(samples),
            ..self.clone()
        }
    }

    /// The kernels between the row samples and the column samples named, without copying.
    pub fn block(&self, rows: &[usize], cols: &[usize]) -> Gram {
        Gram {
            rows: self.rows.compose(rows),
            cols: self.cols.compose(cols),
            symmetric: false,
            ..self.clone()
        }
    }

    /// The kernels between the row samples named and all column samples, without copying.
    pub(crate) fn only_rows(&self, rows: &[usize]) -> Gram {
        Gram {
            rows: self.rows.compose(rows),
            symmetric: false,
            ..self.clone()
        }
    }

    /// Some of the kernels, numbered anew in the order given, without copying.
    ///
    /// # Panics
    /// If a kernel does not exist or is named twice.
    pub fn select_kernels(&self, kernels: &[usize]) -> Gram {
        let families: Vec<Arc<Family>> = self
            .families
            .iter()
            .filter_map(|family| family.restricted(kernels))
            .map(Arc::new)
            .collect();
        assert_eq!(
            families.iter().map(|f| f.members.len()).sum::<usize>(),
            kernels.len(),
            "kernels that exist, each once"
        );
        Gram {
            families,
            n_kernels: kernels.len(),
            ..self.clone()
        }
    }

    /// These kernels and after them one whose value is 1 everywhere.
    pub(crate) fn with_constant(&self) -> Gram {
        // Families know more samples than a subset asks for.
        let known = |index: &Index| match index {
            Index::All(n) => *n,
            Index::Some(list) => list.iter().max().map_or(0, |&last| last + 1),
        };
        let (n_rows, n_cols) = (known(&self.rows), known(&self.cols));
        let mut families = self.families.clone();
        families.push(Arc::new(Family {
            members: vec![self.n_kernels],
            source: Arc::new(family::Source::Same(vec![1.0; n_cols])),
            profiles: vec![(crate::kernel::Profile::Identity, 1.0)],
            map: Map::Scaled(1.0),
            n_rows,
            n_cols,
            diagonal: vec![1.0; n_rows],
            factors: None,
            centring: None,
        }));
        Gram {
            families,
            n_kernels: self.n_kernels + 1,
            ..self.clone()
        }
    }

    /// The combination Σ_m β_m K_m, ready for questions.
    ///
    /// # Panics
    /// If there is not one weight per kernel.
    pub fn combine(&self, beta: &[f64]) -> Combined<'_> {
        Combined::new(self, beta)
    }

    /// One kernel alone.
    pub fn kernel(&self, m: usize) -> Combined<'_> {
        let mut beta = vec![0.0; self.n_kernels];
        beta[m] = 1.0;
        self.combine(&beta)
    }

    /// All kernels as matrices, kernel after kernel, row after row, in new memory.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::error::Error::Stopped) if the observer asks to stop.
    pub fn matrices(&self, observer: &dyn Observer) -> Result<Vec<f32>> {
        let mut out = zeros(self.n_kernels * self.n_rows() * self.n_cols());
        self.matrices_into(&mut out, observer)?;
        Ok(out)
    }

    /// The same into memory that is given. Kernels of one family share the reading, or the computing, of their statistic.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::error::Error::Stopped) if the observer asks to stop.
    ///
    /// # Panics
    /// If `out` is not as long as the matrices together.
    pub fn matrices_into(&self, out: &mut [f32], observer: &dyn Observer) -> Result<()> {
        let each = self.n_rows() * self.n_cols();
        assert_eq!(out.len(), self.n_kernels * each);
        if each == 0 {
            return Ok(());
        }
        let mut outs: Vec<Option<&mut [f32]>> = out.chunks_mut(each).map(Some).collect();
        let mut done = 0;
        for members in self
            .families
            .iter()
            .flat_map(|f| f.members.chunks(MATRICES))
        {
            observe::work(observer, "computing kernels", done, self.n_kernels)?;
            let kernels: Vec<Combined<'_>> = members.iter().map(|&m| self.kernel(m)).collect();
            let outs = members.iter().filter_map(|&m| outs[m].take()).collect();
            combined::matrices(&kernels, outs);
            done += members.len();
        }
        Ok(())
    }

    /// k_m(x, x) of the row samples; empty where it is not known (new samples of a given matrix).
    pub fn self_values(&self, m: usize) -> Vec<f64> {
        let found = self.families.iter().find_map(|family| {
            let c = family.members.iter().position(|&k| k == m)?;
            let all: Vec<f64> = family.self_values(c).collect();
            Some(if all.is_empty() {
                all
            } else {
                (0..self.n_rows()).map(|i| all[self.rows.get(i)]).collect()
            })
        });
        found.unwrap_or_default()
    }

    /// Σ_y a_yᵀ K_m a_y for every kernel m of a training Gram, never negative.
    ///
    /// Cost: one visit per pair of samples with coefficients and statistic.
    ///
    /// # Panics
    /// If there is not one row of coefficients per sample, or rows and columns are different samples.
    pub fn quadratic_forms(&self, a: Coefficients<'_>) -> Vec<f64> {
        assert!(self.symmetric && a.len() == self.n_rows());
        let mut q = self.signed_quadratic_forms(a);
        for q in &mut q {
            *q = q.max(0.0);
        }
        q
    }

    /// As [`Gram::quadratic_forms`], but an indefinite kernel's negative value is kept.
    pub fn signed_quadratic_forms(&self, a: Coefficients<'_>) -> Vec<f64> {
        assert!(self.symmetric && a.len() == self.n_rows());
        let support = a.support();
        let samples: Vec<usize> = support.iter().map(|&i| self.rows.get(i)).collect();
        let k = a.outputs;
        let mut q = vec![0.0; self.n_kernels];
        let compact: Vec<f64> = support.iter().flat_map(|&i| a.row(i)).copied().collect();
        let mut joint = (k > 1).then(|| self.joint_forms(&samples, &compact, k).into_iter());
        let everyone: Vec<usize> = (0..samples.len()).collect();
        for family in self.families.iter() {
            let values = joint.as_mut().and_then(Iterator::next);
            let values = values.unwrap_or_else(|| {
                let mut coefficients = compact.clone();
                if let Some((factors, _)) = &family.factors {
                    for (v, &i) in coefficients.iter_mut().zip(&samples) {
                        *v *= factors[i];
                    }
                }
                match family.near(&samples, &samples) {
                    Some(near) => family_forms(&near, &everyone, &coefficients),
                    None => family_forms(family, &samples, &coefficients),
                }
            });
            for (&m, v) in family.members.iter().zip(values) {
                q[m] = v;
            }
            if let Some(centring) = &family.centring {
                let sums = a.sums();
                let width = family.members.len();
                for (c, &m) in family.members.iter().enumerate() {
                    for (y, sum) in sums.iter().enumerate() {
                        let along: f64 = support
                            .iter()
                            .zip(&samples)
                            .map(|(&i, &s)| a.row(i)[y] * centring.row_means[s * width + c])
                            .sum();
                        q[m] += -2.0 * sum * along + sum * sum * centring.grand[c];
                    }
                }
            }
        }
        q
    }

    /// (K_m A)_i for the rows and kernels named: row after row, in it kernel after kernel, in it one number per output.
    ///
    /// # Panics
    /// If there is not one row of coefficients per column sample.
    pub fn kernel_scores(
        &self,
        rows: &[usize],
        kernels: &[usize],
        a: Coefficients<'_>,
    ) -> Vec<f64> {
        self.scores_by(rows, kernels, a, Look::Exact)
    }

    /// As [`Gram::kernel_scores`], from values as [`Combined::rows`] has them where that is faster.
    pub(crate) fn fast_kernel_scores(
        &self,
        rows: &[usize],
        kernels: &[usize],
        a: Coefficients<'_>,
    ) -> Vec<f64> {
        self.scores_by(rows, kernels, a, Look::Fast)
    }

    fn scores_by(
        &self,
        rows: &[usize],
        kernels: &[usize],
        a: Coefficients<'_>,
        look: Look,
    ) -> Vec<f64> {
        assert_eq!(a.len(), self.n_cols());
        let support = a.support();
        let cols: Vec<usize> = support.iter().map(|&j| self.cols.get(j)).collect();
        let rows: Vec<usize> = rows.iter().map(|&i| self.rows.get(i)).collect();
        let k = a.outputs;
        let sums = a.sums();
        let width = kernels.len() * k;
        let mut out = vec![0.0; rows.len() * width];
        let everyone: Vec<usize> = (0..rows.len().max(cols.len())).collect();
        for family in self.families.iter() {
            // Place among the kernels asked for, and number in the family.
            let wanted: Vec<(usize, usize)> = kernels
                .iter()
                .enumerate()
                .filter_map(|(p, m)| Some((p, family.members.iter().position(|k| k == m)?)))
                .collect();
            if wanted.is_empty() {
                continue;
            }
            let members: Vec<usize> = wanted.iter().map(|&(_, c)| c).collect();
            let near = family.near(&rows, &cols);
            let (family, rows, cols) = match &near {
                Some(near) => (near, &everyone[..rows.len()], &everyone[..cols.len()]),
                None => (&**family, &rows[..], &cols[..]),
            };
            // Coefficients output after output, so that each output's pass over a row is contiguous.
            let mut coefficients: Vec<f64> = (0..k)
                .flat_map(|y| support.iter().map(move |&j| a.row(j)[y]))
                .collect();
            let along = mean_products(family, cols, &coefficients);
            if let Some((_, factors)) = &family.factors {
                for row in coefficients.chunks_mut(cols.len().max(1)) {
                    row.iter_mut()
                        .zip(cols)
                        .for_each(|(v, &j)| *v *= factors[j]);
                }
            }
            let block = family.block_rows();
            out.par_chunks_mut(block * width)
                .zip(rows.par_chunks(block))
                .for_each(|(out, rows)| {
                    let mut scorer = RowScorer::new(family, &members, cols, look);
                    family.for_rows(rows, |r, t| {
                        let row = &mut out[r * width..(r + 1) * width];
                        let factor = family.factors.as_ref().map_or(1.0, |f| f.0[rows[r]]);
                        for y in 0..k {
                            let coefficients = &coefficients[y * cols.len()..(y + 1) * cols.len()];
                            let scores = scorer.scores(t, coefficients);
                            for (&(p, c), score) in wanted.iter().zip(scores) {
                                row[p * k + y] = factor * score;
                                if let Some(centring) = &family.centring {
                                    let mean =
                                        centring.row_means[rows[r] * family.members.len() + c];
                                    row[p * k + y] -= along[y * family.members.len() + c]
                                        + sums[y] * (mean - centring.grand[c]);
                                }
                            }
                        }
                    });
                });
        }
        out
    }
}

/// Σ_j a_jy r̄_m(j) per output and member of a centred family; empty if it is not centred.
fn mean_products(family: &Family, cols: &[usize], coefficients: &[f64]) -> Vec<f64> {
    let Some(centring) = &family.centring else {
        return Vec::new();
    };
    let width = family.members.len();
    coefficients
        .chunks(cols.len().max(1))
        .flat_map(|a| {
            (0..width).map(move |c| {
                a.iter()
                    .zip(cols)
                    .map(|(a, &j)| a * centring.col_means[j * width + c])
                    .sum()
            })
        })
        .collect()
}

/// Σ_j a_j φ_m(t_j) for some members m, from one row of the statistic.
struct RowScorer<'a> {
    members: &'a [usize],
    way: Way<'a>,
    cols: &'a [usize],
    /// The columns are those that rows begin with.
    first: bool,
    gathered: Vec<f32>,
    scores: Vec<f64>,
}

/// How a [`RowScorer`] does it.
enum Way<'a> {
    Scaled(f64),
    Histogram(&'a grid::Basis, grid::Histogram),
    /// Each member by itself, with room for its values.
    Each(Vec<Exponentials>, Vec<f32>),
}

impl<'a> RowScorer<'a> {
    /// For these columns.
    fn new(family: &'a Family, members: &'a [usize], cols: &'a [usize], look: Look) -> Self {
        let values = cols.len();
        let way = match &family.map {
            Map::Scaled(factor) => Way::Scaled(*factor),
            Map::Table(basis) => {
                let each = (look == Look::Fast && basis.is_dear_for(values, members.len()))
                    .then(|| members.iter().map(|&c| family.exponential(c)).collect());
                match each.flatten() {
                    Some(each) => Way::Each(each, vec![0.0; values]),
                    None => Way::Histogram(basis, basis.histogram()),
                }
            }
        };
        RowScorer {
            members,
            way,
            cols,
            first: cols.iter().enumerate().all(|(k, &j)| k == j),
            gathered: Vec::new(),
            scores: vec![0.0; members.len()],
        }
    }

    fn scores(&mut self, t: &[f32], a: &[f64]) -> &[f64] {
        let t = if self.first {
            &t[..self.cols.len()]
        } else {
            self.gathered.clear();
            self.gathered.extend(self.cols.iter().map(|&j| t[j]));
            &self.gathered
        };
        match &mut self.way {
            Way::Scaled(factor) => self.scores[0] = *factor * mixed_dot(t, a),
            Way::Histogram(basis, histogram) => {
                self.scores.fill(0.0);
                histogram.clear();
                histogram.add(t, a);
                basis.sums_of(histogram, self.members, &mut self.scores);
            }
            Way::Each(each, values) => {
                for (score, one) in self.scores.iter_mut().zip(each) {
                    one.values(t, values);
                    *score = mixed_dot(values, a);
                }
            }
        }
        &self.scores
    }
}

/// aᵀ K_m a for the members of a family; `a` holds a number for each of `samples`.
fn family_forms(family: &Family, samples: &[usize], a: &[f64]) -> Vec<f64> {
    let n = family.n_cols;
    match &family.map {
        // Most samples count: whole rows at the speed of memory beat half of them entry by entry.
        Map::Scaled(factor) if 2 * samples.len() > n => {
            // A sample may be there more than once.
            let mut everyone = vec![0.0; n];
            for (&i, &a) in samples.iter().zip(a) {
                everyone[i] += a;
            }
            let block = family.block_rows();
            let support: Vec<usize> = (0..n).filter(|&i| everyone[i] != 0.0).collect();
            let parts: Vec<f64> = support
                .par_chunks(block)
                .map(|rows| {
                    let mut sum = 0.0;
                    family.for_rows(rows, |r, t| {
                        sum += everyone[rows[r]] * mixed_dot(t, &everyone);
                    });
                    sum
                })
                .collect();
            vec![factor * parts.iter().sum::<f64>()]
        }
        Map::Scaled(factor) => {
            let parts: Vec<f64> = starts(samples.len())
                .par_iter()
                .map(|&start| {
                    let mut sum = 0.0;
                    for_pairs(family, samples, a, start, |t, w| sum += mixed_dot(t, w));
                    sum
                })
                .collect();
            vec![factor * parts.iter().sum::<f64>()]
        }
        Map::Table(basis) => {
            let parts: Vec<grid::Histogram> = starts(samples.len())
                .par_iter()
                .map(|&start| {
                    let mut histogram = basis.histogram();
                    for_pairs(family, samples, a, start, |t, w| histogram.add(t, w));
                    histogram
                })
                .collect();
            let mut all = basis.histogram();
            for part in &parts {
                all.merge(part);
            }
            let mut out = vec![0.0; family.members.len()];
            basis.sums(&all, &mut out);
            out
        }
    }
}

/// Where chunks begin.
fn starts(samples: usize) -> Vec<usize> {
    (0..samples).step_by(CHUNK).collect()
}

/// Visits the pairs (i, j ≤ i) of samples with i in the chunk from `start`, for every i at once: the statistics, and the pairs' weights
/// a_i a_j, doubled off the diagonal, so that the symmetric half is visited once.
fn for_pairs(
    family: &Family,
    samples: &[usize],
    a: &[f64],
    start: usize,
    mut count: impl FnMut(&[f32], &[f64]),
) {
    let end = (start + CHUNK).min(samples.len());
    let block = family.block_rows();
    let (mut gathered, mut weights) = (Vec::with_capacity(end), Vec::with_capacity(end));
    // Looking for the values of most samples costs more than counting those of all, the others with weight 0.
    let known = samples.last().map_or(0, |&last| last + 1);
    let most = 2 * samples.len() > known && samples.windows(2).all(|pair| pair[0] < pair[1]);
    let mut spread = vec![0.0; if most { known } else { 0 }];
    if most {
        for (&i, &a) in samples.iter().zip(a) {
            spread[i] = a;
        }
    }
    for from in (start..end).step_by(block) {
        let to = (from + block).min(end);
        family.for_rows(&samples[from..to], |r, t| {
            let i = from + r;
            let before = if most { &spread[..samples[i]] } else { &a[..i] };
            weights.clear();
            weights.extend(before.iter().map(|aj| 2.0 * a[i] * aj));
            weights.push(a[i] * a[i]);
            if most {
                count(&t[..=samples[i]], &weights);
            } else {
                gathered.clear();
                gathered.extend(samples[..=i].iter().map(|&j| t[j]));
                count(&gathered, &weights);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, View, ViewData, Views, digits};
    use crate::kernel::KernelSpec;

    #[test]
    fn forms_are_those_of_the_matrix_for_few_samples_and_for_many_and_for_some_that_come_twice() {
        let n = 40;
        let values = (0..2 * n).map(|k| (k * k % 17) as f32).collect();
        let views = Views::new(vec![View {
            name: "x".into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(n, 2, values).unwrap()),
        }])
        .unwrap();
        let specs: Vec<KernelSpec> = ["rbf:width=3|9", "linear", "poly:normalize=spherical"]
            .iter()
            .flat_map(|s| KernelSpec::parse(s).unwrap())
            .collect();
        let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
        let few: Vec<usize> = (0..n).step_by(3).rev().collect();
        let many: Vec<usize> = (0..n - 3).rev().collect();
        let twice: Vec<usize> = (0..n - 5).chain([2, 2, 7]).collect();
        let filled: Vec<usize> = (0..n - 3).chain([2, 2, 7]).collect();
        for samples in [few, many, twice, filled] {
            let part = set.gram().subset(&samples);
            let a: Vec<f64> = (0..samples.len()).map(|i| (i % 7) as f64 - 2.5).collect();
            let forms = part.signed_quadratic_forms(Coefficients::single(&a));
            for (m, form) in forms.iter().enumerate() {
                let matrix = set.gram().kernel(m).matrix();
                let mut want = 0.0;
                for (&i, x) in samples.iter().zip(&a) {
                    for (&j, y) in samples.iter().zip(&a) {
                        want += x * y * f64::from(matrix[i * n + j]);
                    }
                }
                assert!(
                    (form - want).abs() < 1e-4 * want.abs().max(1.0),
                    "{m}: {form} {want}"
                );
            }
        }
    }

    #[test]
    fn kernels_of_one_column_are_as_defined() {
        let n = 30;
        let x: Vec<f32> = (0..n).map(|k| (k * k % 17) as f32 / 4.0 - 1.0).collect();
        let views = Views::new(vec![View {
            name: "x".into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(n, 1, x.clone()).unwrap()),
        }])
        .unwrap();
        let specs: Vec<KernelSpec> = [
            "linear",
            "rbf:gamma=0.1|1|4",
            "poly:degree=2,normalize=spherical",
            "rbf:gamma=0.5,normalize=center",
            "linear:normalize=multiplicative",
        ]
        .iter()
        .flat_map(|s| KernelSpec::parse(s).unwrap())
        .collect();
        // No memory for a matrix is asked for: rows cost nothing.
        let options = Options {
            memory: 1 << 20,
            ..Options::default()
        };
        let set = KernelSet::new(&specs, &views, &options, &()).unwrap();
        let gram = set.gram();
        let at = |k: usize, i: usize, j: usize| -> f64 {
            let (x, y) = (f64::from(x[i]), f64::from(x[j]));
            match k {
                0 => x * y,
                1..=3 => (-[0.1, 1.0, 4.0][k - 1] * (x - y) * (x - y)).exp(),
                _ => f64::from(gram.kernel(k).matrix()[i * n + j]),
            }
        };
        let few: Vec<usize> = vec![20, 3, 9, 11];
        let part = gram.subset(&few);
        let copied = gram.copied_subset(&few, u64::MAX);
        let a: Vec<f64> = (0..n)
            .map(|i| f64::from(i % 4 == 0) * (i as f64 - 9.5))
            .collect();
        let forms = gram.signed_quadratic_forms(Coefficients::single(&a));
        let all: Vec<usize> = (0..gram.n_kernels()).collect();
        let rows = [7, 0, 29];
        let exact = gram.kernel_scores(&rows, &all, Coefficients::single(&a));
        let fast = gram.fast_kernel_scores(&rows, &all, Coefficients::single(&a));
        for k in all {
            let form: f64 = (0..n * n)
                .map(|p| a[p / n] * a[p % n] * at(k, p / n, p % n))
                .sum();
            assert!(
                (form - forms[k]).abs() <= 1e-4 * form.abs().max(1.0),
                "{k}: {form}"
            );
            for (r, &i) in rows.iter().enumerate() {
                let score: f64 = (0..n).map(|j| a[j] * at(k, i, j)).sum();
                for found in [&exact, &fast] {
                    let found = found[r * gram.n_kernels() + k];
                    assert!(
                        (score - found).abs() <= 1e-4 * score.abs().max(1.0),
                        "{k}: {score}"
                    );
                }
            }
            let matrix = gram.kernel(k).matrix();
            assert_eq!(part.kernel(k).matrix(), copied.kernel(k).matrix());
            for (p, value) in matrix.iter().enumerate() {
                assert!(
                    (f64::from(*value) - at(k, p / n, p % n)).abs() <= 1e-5,
                    "{k}"
                );
                assert_eq!(*value, matrix[p % n * n + p / n]);
            }
        }
    }

    #[test]
    fn a_matrix_replaces_what_was_in_the_memory() {
        let data = digits().unwrap();
        let views = data.views.select(&(0..70).collect::<Vec<_>>()).unwrap();
        let specs = [
            "rbf:width=mean*0.5|mean",
            "linear:normalize=center",
            "poly:degree=2,normalize=spherical",
        ];
        let specs: Vec<KernelSpec> = specs
            .iter()
            .flat_map(|s| KernelSpec::parse(s).unwrap())
            .collect();
        let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
        let some: Vec<usize> = (0..70).step_by(3).collect();
        for gram in [
            set.gram().clone(),
            set.gram().subset(&some),
            set.gram().block(&some, &[5, 1]),
        ] {
            let mut memory = vec![f32::NAN; gram.n_rows() * gram.n_cols()];
            let all = vec![1.0; gram.n_kernels()];
            let alone = (0..gram.n_kernels()).map(|m| gram.kernel(m));
            for combined in alone.chain([gram.combine(&all)]) {
                combined.matrix_into(&mut memory);
                assert_eq!(memory, combined.matrix());
            }
        }
    }

    #[test]
    fn all_matrices_together_have_the_bits_of_each_alone() {
        let data = digits().unwrap();
        let views = data.views.select(&(0..70).collect::<Vec<_>>()).unwrap();
        // More of one family than are made together; families, centred and scaled ones, in turns.
        let many: String = (1..=70).map(|k| format!("|{k}")).collect();
        let specs = [
            "linear:normalize=center",
            &format!("rbf:view=upper_left,width=mean{many}"),
            "poly:degree=2,normalize=spherical",
            "poly:degree=2|3,view=upper_left",
            "rbf:width=mean*0.5|mean,normalize=center",
            "linear:view=upper_left",
        ];
        let specs: Vec<KernelSpec> = specs
            .iter()
            .flat_map(|s| KernelSpec::parse(s).unwrap())
            .collect();
        let some: Vec<usize> = (0..70).step_by(3).collect();
        let set = |memory: u64| {
            let options = Options {
                memory,
                ..Options::default()
            };
            KernelSet::new(&specs, &views, &options, &())
        };
        let Err(crate::error::Error::Memory { needed, .. }) = set(0) else {
            panic!("something needs memory");
        };
        // On the fly, and stored.
        for memory in [needed, u64::MAX] {
            let set = set(memory).unwrap();
            let computed = set.gram().families.iter().any(|f| f.computes_rows());
            assert_eq!(computed, memory == needed);
            for gram in [
                set.gram().clone(),
                set.gram().subset(&some),
                set.gram().block(&some, &[5, 1]),
                set.gram().block(&[], &[]),
            ] {
                let each = (0..gram.n_kernels()).flat_map(|m| gram.kernel(m).matrix());
                let each: Vec<f32> = each.collect();
                assert!(gram.matrices(&()).unwrap() == each);
                let mut memory = vec![f32::NAN; each.len()];
                gram.matrices_into(&mut memory, &()).unwrap();
                assert!(memory == each);
            }
        }
    }

    #[test]
    fn samples_without_a_direction_are_told_of() {
        let views = Views::new(vec![View {
            name: "x".into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(3, 2, vec![0.0, 0.0, 1.0, 2.0, 3.0, 1.0]).unwrap()),
        }])
        .unwrap();
        for text in [
            "linear:normalize=spherical",
            "poly:degree=2,coef0=0,normalize=spherical",
        ] {
            let specs = KernelSpec::parse(text);
            let set = KernelSet::new(&specs.unwrap(), &views, &Options::default(), &()).unwrap();
            assert_eq!(set.warnings().len(), 1, "{text}");
            assert!(
                set.warnings()[0].contains("1 of 3 samples have k(x, x) = 0"),
                "{:?}",
                set.warnings()
            );
            assert_eq!(set.gram().kernel(0).matrix()[..3], [0.0; 3]);
        }
    }

    #[test]
    fn some_kernels_in_any_order_keep_their_values() {
        let values = (0..40).map(|k| (k * k % 17) as f32).collect();
        let views = Views::new(vec![View {
            name: "x".into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(20, 2, values).unwrap()),
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
        let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
        let gram = set.gram();
        let order = [3, 1, 0, 2];
        let some = gram.select_kernels(&order);
        let a: Vec<f64> = (0..20).map(|i| f64::from(i % 3) - 0.5).collect();
        let (all_forms, forms) = (
            gram.quadratic_forms(Coefficients::single(&a)),
            some.quadratic_forms(Coefficients::single(&a)),
        );
        let scores = gram.kernel_scores(&[4], &order, Coefficients::single(&a));
        for (new, &m) in order.iter().enumerate() {
            assert_eq!(
                some.kernel(new).matrix(),
                gram.kernel(m).matrix(),
                "kernel {m}"
            );
            assert_eq!(some.self_values(new), gram.self_values(m));
            assert!((forms[new] - all_forms[m]).abs() <= 1e-12 * all_forms[m].abs());
            let expected = gram.kernel(m).product(Coefficients::single(&a))[4];
            assert!(
                (scores[new] - expected).abs() < 1e-4 * expected.abs().max(1.0),
                "kernel {m}"
            );
        }
    }
}
