//! Quadratic forms of several outputs at once: the weight ⟨A_i, A_j⟩ of a pair costs as much as there are outputs, so it is
//! computed once for all families.

use super::family::{Family, Map};
use super::{CHUNK, Gram, grid};
use crate::math::{dot, mixed_dot};
use rayon::prelude::*;

/// Chunks of rows in flight: their histograms are merged before the next ones are made.
const TOGETHER: usize = 64;

/// What a chunk of rows adds to the forms of a family.
enum Part {
    Sum(f64),
    Histogram(grid::Histogram),
}

impl Gram {
    /// Σ_y a_yᵀ K_m a_y per family and member, before centring; `a` holds k numbers for each of `samples`.
    pub(super) fn joint_forms(&self, samples: &[usize], a: &[f64], k: usize) -> Vec<Vec<f64>> {
        let mut totals: Vec<Part> = self
            .families
            .iter()
            .map(|family| match &family.map {
                Map::Scaled(_) => Part::Sum(0.0),
                Map::Table(basis) => Part::Histogram(basis.histogram()),
            })
            .collect();
        let starts: Vec<usize> = (0..samples.len()).step_by(CHUNK).collect();
        for batch in starts.chunks(TOGETHER) {
            let parts: Vec<Vec<Part>> = batch
                .par_iter()
                .map(|&start| self.chunk_forms(samples, a, k, start))
                .collect();
            for parts in parts {
                for (total, part) in totals.iter_mut().zip(parts) {
                    match (total, part) {
                        (Part::Sum(total), Part::Sum(part)) => *total += part,
                        (Part::Histogram(total), Part::Histogram(part)) => total.merge(&part),
                        _ => unreachable!("a family's parts are all of one kind"),
                    }
                }
            }
        }
        let families = self.families.iter().zip(totals);
        families
            .map(|(family, total)| match (&family.map, total) {
                (Map::Scaled(factor), Part::Sum(sum)) => vec![factor * sum],
                (Map::Table(basis), Part::Histogram(histogram)) => {
                    let mut out = vec![0.0; family.members.len()];
                    basis.sums(&histogram, &mut out);
                    out
                }
                _ => unreachable!("a family's parts are of its map's kind"),
            })
            .collect()
    }

    /// The pairs (i, j ≤ i) with i in the chunk from `start`, for every family.
    fn chunk_forms(&self, samples: &[usize], a: &[f64], k: usize, start: usize) -> Vec<Part> {
        let end = (start + CHUNK).min(samples.len());
        // weights of the pairs, doubled off the diagonal, so that the symmetric half is visited once
        let weights: Vec<Vec<f64>> = (start..end)
            .map(|i| {
                let own = &a[i * k..(i + 1) * k];
                let mut row: Vec<f64> = a[..i * k].chunks(k).map(|b| 2.0 * dot(own, b)).collect();
                row.push(dot(own, own));
                row
            })
            .collect();
        let mut gathered = Vec::new();
        let mut scaled = Vec::new();
        let mut each = |family: &Family| -> Part {
            let mut part = match &family.map {
                Map::Scaled(_) => Part::Sum(0.0),
                Map::Table(basis) => Part::Histogram(basis.histogram()),
            };
            let block = family.block_rows();
            for from in (start..end).step_by(block) {
                let rows = &samples[from..(from + block).min(end)];
                family.for_rows(rows, |r, t| {
                    let i = from + r;
                    let mut weights = &weights[i - start];
                    if let Some((factors, _)) = &family.factors {
                        scaled.clear();
                        let pairs = weights.iter().zip(samples);
                        scaled.extend(pairs.map(|(w, &j)| factors[samples[i]] * factors[j] * w));
                        weights = &scaled;
                    }
                    gathered.clear();
                    gathered.extend(samples[..=i].iter().map(|&j| t[j]));
                    match &mut part {
                        Part::Sum(sum) => *sum += mixed_dot(&gathered, weights),
                        Part::Histogram(histogram) => histogram.add(&gathered, weights),
                    }
                });
            }
            part
        };
        self.families.iter().map(|family| each(family)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::data::{Dense, View, ViewData, Views};
    use crate::gram::{Coefficients, KernelSet, Options};
    use crate::kernel::KernelSpec;
    use crate::random::Random;

    #[test]
    fn forms_of_several_outputs_are_the_sums_of_single_ones() {
        let mut random = Random::new(3);
        let n = 150;
        let values = (0..2 * n).map(|_| random.normal() as f32).collect();
        let views = Views::new(vec![View {
            name: "x".into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(n, 2, values).unwrap()),
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
        let some: Vec<usize> = (0..n).rev().step_by(2).collect();
        for gram in [set.gram().clone(), set.gram().subset(&some)] {
            for sparse in [1, 3] {
                let a: Vec<f64> = (0..3 * gram.n_rows())
                    .map(|at| match (at / 3) % sparse {
                        0 => random.normal(),
                        _ => 0.0,
                    })
                    .collect();
                let got = gram.signed_quadratic_forms(Coefficients::new(&a, 3));
                let mut want = vec![0.0; gram.n_kernels()];
                for y in 0..3 {
                    let single: Vec<f64> = a.iter().skip(y).step_by(3).copied().collect();
                    let forms = gram.signed_quadratic_forms(Coefficients::single(&single));
                    want.iter_mut().zip(forms).for_each(|(w, f)| *w += f);
                }
                for (got, want) in got.iter().zip(&want) {
                    assert!((got - want).abs() <= 1e-9 * want.abs(), "{got} {want}");
                }
            }
        }
    }
}
