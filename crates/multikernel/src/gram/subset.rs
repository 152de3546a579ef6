//! Some samples of a Gram with their statistics copied: many questions to a few samples then read those samples alone. And products of
//! kernels that have to be read.

use super::accumulate::{ScaledRow, TILE, add_rows};
use super::family::{Centring, Family, Map, Source};
use super::{Gram, Index};
use crate::huge_pages::zeros;
use rayon::prelude::*;
use std::sync::Arc;

impl Family {
    /// The same kernels between some samples and others, their statistic copied.
    pub(super) fn copied(&self, rows: &[usize], cols: &[usize]) -> Family {
        let source = match &*self.source {
            Source::OneColumn { left, right, t } => Source::OneColumn {
                left: rows.iter().map(|&i| left[i]).collect(),
                right: cols.iter().map(|&j| right[j]).collect(),
                t: *t,
            },
            _ => {
                let mut values = zeros(rows.len() * cols.len());
                values
                    .par_chunks_mut(cols.len().max(1))
                    .zip(rows)
                    .for_each(|(out, &i)| {
                        self.for_rows(&[i], |_, t| {
                            out.iter_mut().zip(cols).for_each(|(o, &j)| *o = t[j]);
                        });
                    });
                Source::Stored(values)
            }
        };
        let some = |all: &[f64], of: usize, samples: &[usize]| -> Arc<Vec<f64>> {
            let width = all.len() / of;
            let row = |&i: &usize| all[i * width..(i + 1) * width].iter().copied();
            Arc::new(samples.iter().flat_map(row).collect())
        };
        let some_rows = |all: &[f64]| some(all, self.n_rows, rows);
        let some_cols = |all: &[f64]| some(all, self.n_cols, cols);
        Family {
            members: self.members.clone(),
            source: Arc::new(source),
            profiles: self.profiles.clone(),
            map: self.map.clone(),
            n_rows: rows.len(),
            n_cols: cols.len(),
            diagonal: match self.diagonal.is_empty() {
                true => Vec::new(),
                false => rows.iter().map(|&i| self.diagonal[i]).collect(),
            },
            factors: self
                .factors
                .as_ref()
                .map(|(rows, cols)| (some_rows(rows), some_cols(cols))),
            centring: self.centring.as_ref().map(|centring| Centring {
                row_means: some_rows(&centring.row_means),
                col_means: some_cols(&centring.col_means),
                grand: centring.grand.clone(),
            }),
        }
    }
}

impl Gram {
    /// Adds K_m a, kernel after kernel with one number per sample, to `out`, reading the rows of samples with a
    /// coefficient only.
    ///
    /// # Panics
    /// If the kernels are not of the kind [`RowPlan::is_read_bound`](super::row_plan::RowPlan::is_read_bound).
    pub(crate) fn add_kernel_products(&self, a: &[f64], out: &mut [f64]) {
        let n = self.n_rows();
        let support: Vec<usize> = (0..n).filter(|&i| a[i] != 0.0).collect();
        let mut of_kernel: Vec<Option<&mut [f64]>> = out.chunks_mut(n).map(Some).collect();
        let mut tasks: Vec<(&Family, usize, &mut [f64])> = Vec::new();
        for family in &self.families {
            let own = of_kernel[family.members[0]].take().into_iter();
            for (t, tile) in own.flat_map(|own| own.chunks_mut(TILE)).enumerate() {
                tasks.push((family, t * TILE, tile));
            }
        }
        tasks.into_par_iter().for_each(|(family, start, sums)| {
            let Map::Scaled(factor) = &family.map else {
                unreachable!("a table is not bound by reading")
            };
            let rows: Vec<ScaledRow<'_>> = support
                .iter()
                .map(|&i| {
                    let row = family.held_row(i).expect("rows that only need to be read");
                    (&row[start..start + sums.len()], factor * a[i])
                })
                .collect();
            add_rows(&rows, sums);
        });
    }

    /// As [`Gram::copied_subset`]; none where something would have to be computed or read from a file.
    pub(crate) fn held_subset(&self, samples: &[usize], memory: u64) -> Option<Gram> {
        let is_held = |family: &Arc<Family>| match &*family.source {
            Source::Stored(_) | Source::Same(_) | Source::OneColumn { .. } => true,
            Source::Given(matrix) => !matrix.is_mapped(),
            Source::OnTheFly { .. } | Source::Composite { .. } => false,
        };
        let all = self.families.iter().all(is_held);
        all.then(|| self.copied_subset(samples, memory))
    }

    /// As [`Gram::subset`], with the statistics copied where they lie in memory and the copies fit into `memory` bytes:
    /// many questions to a few samples then read those samples alone.
    pub(crate) fn copied_subset(&self, samples: &[usize], memory: u64) -> Gram {
        let subset = self.subset(samples);
        match self.symmetric.then(|| subset.copied(memory)).flatten() {
            Some((copied, bytes)) => Gram {
                spare: self.spare.saturating_sub(bytes),
                ..copied
            },
            None => subset,
        }
    }

    /// As [`Gram::block`], copied under the same conditions, and the bytes that this takes; none where they are not met.
    pub(crate) fn copied_block(
        &self,
        rows: &[usize],
        cols: &[usize],
        memory: u64,
    ) -> Option<(Gram, u64)> {
        let block = self.block(rows, cols);
        self.symmetric.then(|| block.copied(memory)).flatten()
    }

    /// Some rows and columns of a training Gram with their statistics copied, if they lie in memory and the copies fit into `memory` bytes.
    fn copied(&self, memory: u64) -> Option<(Gram, u64)> {
        let (Index::Some(rows), Index::Some(cols)) = (&self.rows, &self.cols) else {
            return None;
        };
        let each = 4 * (rows.len() as u64).saturating_mul(cols.len() as u64);
        let bytes = each.saturating_mul(self.families.len() as u64);
        if bytes > memory || self.row_plan().computes() {
            return None;
        }
        let copied = |family: &Arc<Family>| Arc::new(family.copied(rows, cols));
        let gram = Gram {
            families: self.families.iter().map(copied).collect(),
            rows: Index::All(rows.len()),
            cols: Index::All(cols.len()),
            ..self.clone()
        };
        Some((gram, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Coefficients, KernelSet, Options};
    use crate::data::{Dense, Pairwise, View, ViewData, Views};
    use crate::kernel::KernelSpec;
    use crate::random::Random;

    fn given(n: usize, kernels: usize) -> KernelSet {
        let mut random = Random::new(3);
        let views = (0..kernels).map(|m| {
            let x: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            let values = (0..n * n)
                .map(|k| (x[k / n] * x[k % n] + f64::from(u8::from(k / n == k % n))) as f32);
            View {
                name: format!("k{m}"),
                columns: Vec::new(),
                data: ViewData::Pairwise(Pairwise::new(n, n, values.collect()).unwrap()),
            }
        });
        let views = Views::new(views.collect()).unwrap();
        let specs = KernelSpec::parse("precomputed").unwrap();
        KernelSet::new(&specs, &views, &Options::default(), &()).unwrap()
    }

    #[test]
    fn products_of_given_kernels_are_those_of_each_kernel() {
        // More samples than a tile has columns, kernels that do not come in fours.
        let (n, kernels) = (2100, 3);
        let set = given(n, kernels);
        let gram = set.gram();
        assert!(gram.row_plan().is_read_bound());
        let a: Vec<f64> = (0..n)
            .map(|i| {
                if i % 3 == 0 {
                    f64::from(i as u32 % 7) - 3.0
                } else {
                    0.0
                }
            })
            .collect();
        let mut out = vec![1.0; n * kernels];
        gram.add_kernel_products(&a, &mut out);
        for (m, out) in out.chunks(n).enumerate() {
            let expected = gram.kernel(m).product(Coefficients::single(&a));
            for (o, e) in out.iter().zip(expected) {
                assert!((o - 1.0 - e).abs() < 1e-9 * (1.0 + e.abs()), "{m}: {o} {e}");
            }
        }
    }

    #[test]
    fn a_copied_subset_answers_like_the_subset() {
        let values = (0..80).map(|k| (k * k % 17) as f32).collect();
        let views = Views::new(vec![View {
            name: "x".into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(40, 2, values).unwrap()),
        }])
        .unwrap();
        let specs: Vec<KernelSpec> = [
            "rbf:width=3|9,normalize=center",
            "poly:normalize=spherical",
            "linear",
        ]
        .iter()
        .flat_map(|s| KernelSpec::parse(s).unwrap())
        .collect();
        let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
        let gram = set.gram();
        let samples = [31, 2, 5, 17, 8, 22];
        let (subset, copied) = (
            gram.subset(&samples),
            gram.copied_subset(&samples, u64::MAX),
        );
        let a = [0.5, -1.0, 0.0, 2.0, 0.25, -0.5];
        for m in 0..4 {
            let (left, right) = (subset.kernel(m), copied.kernel(m));
            for (l, r) in left.matrix().iter().zip(right.matrix()) {
                assert!(
                    (l - r).abs() <= 2e-6 * l.abs().max(1.0),
                    "kernel {m}: {l} {r}"
                );
            }
            assert_eq!(left.diagonal(), right.diagonal());
        }
        let forms = |gram: &super::Gram| gram.quadratic_forms(Coefficients::single(&a));
        for (l, r) in forms(&subset).iter().zip(forms(&copied)) {
            assert!((l - r).abs() <= 1e-9 * l.abs().max(1.0), "{l} {r}");
        }
        let none = gram.copied_subset(&samples, 10);
        assert_eq!(none.kernel(0).matrix(), subset.kernel(0).matrix());
        // Between these and others.
        let others = [1, 39, 12];
        assert!(gram.copied_block(&samples, &others, 10).is_none());
        let (copied, bytes) = gram.copied_block(&samples, &others, u64::MAX).unwrap();
        assert_eq!(bytes, (4 * 6 * 3 * gram.n_families()) as u64);
        let some = [4, 0, 1];
        let rows: Vec<usize> = some.iter().map(|&k| samples[k]).collect();
        let (across, block) = (copied.only_rows(&some), gram.block(&others, &rows));
        let close = |l: f64, r: f64| (l - r).abs() <= 1e-5 * l.abs().max(1.0);
        for m in 0..4 {
            let a = Coefficients::new(&[0.5, 1.0, -2.0, 0.0, 0.25, 3.0], 2);
            let want = block.kernel(m).product(a);
            let got = across.kernel(m).fast_transposed_product(a);
            assert_eq!(want.len(), got.len());
            for (w, g) in want.iter().zip(got) {
                assert!(close(*w, g), "kernel {m}: {w} {g}");
            }
        }
    }
}
