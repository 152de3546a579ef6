//! Quadratic forms Σ_y a_yᵀ K_m a_y of all kernels m.
//!
//! Of the pairs (i, j) of samples with coefficients only those with j ≤ i are visited, with the weight ⟨A_i, A_j⟩, doubled off the
//! diagonal. A family of many kernels counts the weights in a histogram over its statistic, which gives the forms of all of its kernels
//! (`profile_table.rs`). With one output the weight is a product of two numbers, and families go one after the other; with several
//! it costs as much as there are outputs, so it is computed once for all families.

use super::family::{Family, Map};
use super::profile_table::Histogram;
use super::{Coefficients, Gram};
use crate::math::{dot, mixed_dot};
use rayon::prelude::*;

/// Rows of a task; fixed, so that sums do not depend on the threads.
const CHUNK: usize = 64;
/// Chunks of rows in flight for several outputs: their histograms are merged before the next ones are made.
const TOGETHER: usize = 64;

/// What weighted pairs add to the forms of a family.
enum PairSums {
    /// Σ w t
    Linear(f64),
    Histogram(Histogram),
}

impl PairSums {
    fn new(family: &Family) -> PairSums {
        match &family.map {
            Map::Scaled(_) => PairSums::Linear(0.0),
            Map::Table(basis) => PairSums::Histogram(basis.histogram()),
        }
    }

    /// Pairs with statistics t and weights w.
    fn add(&mut self, t: &[f32], w: &[f64]) {
        match self {
            PairSums::Linear(sum) => *sum += mixed_dot(t, w),
            PairSums::Histogram(histogram) => histogram.add(t, w),
        }
    }

    fn merge(&mut self, other: &PairSums) {
        match (self, other) {
            (PairSums::Linear(sum), PairSums::Linear(other)) => *sum += other,
            (PairSums::Histogram(all), PairSums::Histogram(other)) => all.merge(other),
            _ => unreachable!("the sums of a family are of one kind"),
        }
    }

    /// The forms of the family's members.
    fn forms(&self, family: &Family) -> Vec<f64> {
        let mut forms = vec![0.0; family.members.len()];
        match (&family.map, self) {
            (Map::Scaled(factor), PairSums::Linear(sum)) => forms[0] = factor * sum,
            (Map::Table(basis), PairSums::Histogram(histogram)) => {
                basis.sums(histogram, &mut forms);
            }
            _ => unreachable!("the sums of a family are of its map's kind"),
        }
        forms
    }
}

impl Gram {
    /// Σ_y a_yᵀ K_m a_y for every kernel m of a training Gram, never negative.
    ///
    /// Cost: one visit per pair of samples with coefficients and statistic.
    ///
    /// # Panics
    /// If there is not one row of coefficients per sample, or rows and columns are different samples.
    pub fn quadratic_forms(&self, a: Coefficients<'_>) -> Vec<f64> {
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
        let compact: Vec<f64> = support.iter().flat_map(|&i| a.row(i)).copied().collect();
        let forms: Vec<Vec<f64>> = match a.outputs {
            1 => {
                let families = self.families.iter();
                families
                    .map(|f| f.scaled_forms(&samples, &compact))
                    .collect()
            }
            k => self.joint_forms(&samples, &compact, k),
        };
        let sums = a.sums();
        let mut q = vec![0.0; self.n_kernels];
        for (family, forms) in self.families.iter().zip(forms) {
            for (c, (&m, form)) in family.members.iter().zip(forms).enumerate() {
                q[m] = form;
                let Some(centring) = &family.centring else {
                    continue;
                };
                for (y, sum) in sums.iter().enumerate() {
                    let along: f64 = compact[y.min(compact.len())..]
                        .iter()
                        .step_by(a.outputs)
                        .zip(&samples)
                        .map(|(a, &s)| a * centring.row_means[s * family.members.len() + c])
                        .sum();
                    q[m] += -2.0 * sum * along + sum * sum * centring.grand[c];
                }
            }
        }
        q
    }

    /// The forms per family and member, before centring; `a` holds k numbers for each of `samples`.
    fn joint_forms(&self, samples: &[usize], a: &[f64], k: usize) -> Vec<Vec<f64>> {
        let families = || self.families.iter().map(|family| &**family);
        let mut totals: Vec<PairSums> = families().map(PairSums::new).collect();
        for batch in starts(samples.len()).chunks(TOGETHER) {
            let parts: Vec<Vec<PairSums>> = batch
                .par_iter()
                .map(|&start| self.chunk_sums(samples, a, k, start))
                .collect();
            for part in parts {
                let each = totals.iter_mut().zip(&part);
                each.for_each(|(total, part)| total.merge(part));
            }
        }
        let each = families().zip(&totals);
        each.map(|(family, total)| total.forms(family)).collect()
    }

    /// The pairs (i, j ≤ i) with i in the chunk from `start`, for every family.
    fn chunk_sums(&self, samples: &[usize], a: &[f64], k: usize, start: usize) -> Vec<PairSums> {
        let end = (start + CHUNK).min(samples.len());
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
        let mut each = |family: &Family| -> PairSums {
            let mut sums = PairSums::new(family);
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
                    sums.add(&gathered, weights);
                });
            }
            sums
        };
        self.families.iter().map(|family| each(family)).collect()
    }
}

impl Family {
    /// aᵀ K_m a of the members with the family's factors, before centring; `a` holds a number for each of `samples`.
    fn scaled_forms(&self, samples: &[usize], a: &[f64]) -> Vec<f64> {
        let mut a = a.to_vec();
        if let Some((factors, _)) = &self.factors {
            for (v, &i) in a.iter_mut().zip(samples) {
                *v *= factors[i];
            }
        }
        match self.near(samples, samples) {
            Some(near) => near.forms(&(0..samples.len()).collect::<Vec<_>>(), &a),
            None => self.forms(samples, &a),
        }
    }

    /// aᵀ K_m a of the members without factors and centring; `a` holds a number for each of `samples`.
    pub(super) fn forms(&self, samples: &[usize], a: &[f64]) -> Vec<f64> {
        match &self.map {
            // Most samples count: whole rows at the speed of memory beat half of them entry by entry.
            Map::Scaled(factor) if 2 * samples.len() > self.n_cols => {
                vec![factor * self.form_of_whole_rows(samples, a)]
            }
            _ => {
                let parts: Vec<PairSums> = starts(samples.len())
                    .par_iter()
                    .map(|&start| {
                        let mut sums = PairSums::new(self);
                        self.for_pairs(samples, a, start, |t, w| sums.add(t, w));
                        sums
                    })
                    .collect();
                let mut total = PairSums::new(self);
                parts.iter().for_each(|part| total.merge(part));
                total.forms(self)
            }
        }
    }

    /// Σ a_i a_j t_ij over all columns j of every row i.
    fn form_of_whole_rows(&self, samples: &[usize], a: &[f64]) -> f64 {
        // A sample may be there more than once.
        let mut everyone = vec![0.0; self.n_cols];
        for (&i, &a) in samples.iter().zip(a) {
            everyone[i] += a;
        }
        let support: Vec<usize> = (0..self.n_cols).filter(|&i| everyone[i] != 0.0).collect();
        let parts: Vec<f64> = support
            .par_chunks(self.block_rows())
            .map(|rows| {
                let mut sum = 0.0;
                self.for_rows(rows, |r, t| {
                    sum += everyone[rows[r]] * mixed_dot(t, &everyone);
                });
                sum
            })
            .collect();
        parts.iter().sum()
    }

    /// Visits the pairs (i, j ≤ i) of samples with i in the chunk from `start`, for every i at once: the statistics, and the pairs'
    /// weights.
    fn for_pairs(
        &self,
        samples: &[usize],
        a: &[f64],
        start: usize,
        mut count: impl FnMut(&[f32], &[f64]),
    ) {
        let end = (start + CHUNK).min(samples.len());
        let block = self.block_rows();
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
            self.for_rows(&samples[from..to], |r, t| {
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
}

/// Where chunks begin.
fn starts(samples: usize) -> Vec<usize> {
    (0..samples).step_by(CHUNK).collect()
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
