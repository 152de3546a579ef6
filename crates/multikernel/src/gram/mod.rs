//! The engine: what solvers and models ask of the kernels, answered without ever showing them a matrix.
//!
//! Three questions, each answered in blocks, on rayon's current pool, with the same bits for any number of threads:
//! 1. combined rows Σ_m β_m K_m[i, :] ([`Combined::rows`], [`Combined::matrix`]);
//! 2. quadratic forms Σ_y a_yᵀ K_m a_y ([`Gram::quadratic_forms`]) and per-kernel scores (K_m A)_i
//!    ([`Gram::kernel_scores`]) for all m;
//! 3. products K_β A ([`Combined::product`]).
//!
//! Kernels over one statistic are a family: one table look-up or one histogram entry per pair, whatever their
//! number (`profile_table.rs`). f32 is stored, f64 is summed. How a row is made is chosen once per combination (`row_plan.rs`).

mod accumulate;
mod build;
mod clip;
mod combined;
mod combined_rows;
mod family;
mod indefinite;
mod kernel;
mod kernel_rows;
mod matrices;
mod normalize;
mod profile_table;
mod profile_table_f32;
mod quadratic_forms;
mod row_cache;
mod row_plan;
mod scores;
mod set;
mod subset;
mod symmetric;
mod term;
mod widths;

pub use clip::Projection;
pub use combined::Combined;
pub use indefinite::{Indefinite, Repair};
pub use kernel::{Kernel, Normalizer};
pub(crate) use kernel_rows::KernelRows;
pub use set::{KernelSet, Options, Reference};

use family::{Family, Map};
use std::sync::Arc;

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

/// How exact kernel values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precision {
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

    /// Bytes of the memory given to the set that it does not use itself: for a solver.
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
}

#[cfg(test)]
mod tests;
