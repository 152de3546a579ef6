//! Scores (K_m A)_i of all kernels m, from one visit to each row of a statistic.

use super::family::{Family, Map};
use super::profile_table::{Basis, Histogram};
use super::profile_table_f32::Exponentials;
use super::{Coefficients, Gram, Precision};
use crate::math::mixed_dot;
use rayon::prelude::*;

impl Gram {
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
        self.scores_by(rows, kernels, a, Precision::Exact)
    }

    /// As [`Gram::kernel_scores`], from values as [`Combined::rows`] has them where that is faster.
    pub(crate) fn fast_kernel_scores(
        &self,
        rows: &[usize],
        kernels: &[usize],
        a: Coefficients<'_>,
    ) -> Vec<f64> {
        self.scores_by(rows, kernels, a, Precision::Fast)
    }

    fn scores_by(
        &self,
        rows: &[usize],
        kernels: &[usize],
        a: Coefficients<'_>,
        precision: Precision,
    ) -> Vec<f64> {
        assert_eq!(a.len(), self.n_cols());
        let support = a.support();
        let cols: Vec<usize> = support.iter().map(|&j| self.cols.get(j)).collect();
        let rows: Vec<usize> = rows.iter().map(|&i| self.rows.get(i)).collect();
        let mut question = Question {
            rows: &rows,
            cols: &cols,
            wanted: Vec::new(),
            width: kernels.len() * a.outputs,
            // Output after output, so that each output's pass over a row is contiguous.
            coefficients: (0..a.outputs)
                .flat_map(|y| support.iter().map(move |&j| a.row(j)[y]))
                .collect(),
            sums: a.sums(),
            precision,
        };
        let mut out = vec![0.0; rows.len() * question.width];
        let everyone: Vec<usize> = (0..rows.len().max(cols.len())).collect();
        for family in self.families.iter() {
            let member = |m: &usize| family.members.iter().position(|k| k == m);
            let wanted = kernels.iter().enumerate();
            question.wanted = wanted.filter_map(|(p, m)| Some((p, member(m)?))).collect();
            if question.wanted.is_empty() {
                continue;
            }
            match family.near(&rows, &cols) {
                Some(near) => Question {
                    rows: &everyone[..rows.len()],
                    cols: &everyone[..cols.len()],
                    ..question.clone()
                }
                .add_answers(&near, &mut out),
                None => question.add_answers(family, &mut out),
            }
        }
        out
    }
}

/// What is asked of a family.
#[derive(Clone)]
struct Question<'a> {
    rows: &'a [usize],
    /// Those with a coefficient.
    cols: &'a [usize],
    /// Place among the kernels asked for, and number in the family.
    wanted: Vec<(usize, usize)>,
    /// Numbers of a row of the answer.
    width: usize,
    /// Output after output.
    coefficients: Vec<f64>,
    /// Of all coefficients, per output.
    sums: Vec<f64>,
    precision: Precision,
}

impl Question<'_> {
    /// Writes the scores under the family's kernels to their places.
    fn add_answers(&self, family: &Family, out: &mut [f64]) {
        let members: Vec<usize> = self.wanted.iter().map(|&(_, c)| c).collect();
        let (n, k) = (self.cols.len(), self.sums.len());
        let along = mean_products(family, self.cols, &self.coefficients);
        let mut coefficients = self.coefficients.clone();
        if let Some((_, factors)) = &family.factors {
            for row in coefficients.chunks_mut(n.max(1)) {
                let each = row.iter_mut().zip(self.cols);
                each.for_each(|(v, &j)| *v *= factors[j]);
            }
        }
        let block = family.block_rows();
        out.par_chunks_mut(block * self.width)
            .zip(self.rows.par_chunks(block))
            .for_each(|(out, rows)| {
                let mut scorer = RowScorer::new(family, &members, self.cols, self.precision);
                family.for_rows(rows, |r, t| {
                    let row = &mut out[r * self.width..(r + 1) * self.width];
                    let factor = family.factors.as_ref().map_or(1.0, |f| f.0[rows[r]]);
                    for y in 0..k {
                        let scores = scorer.scores(t, &coefficients[y * n..(y + 1) * n]);
                        for (&(p, c), score) in self.wanted.iter().zip(scores) {
                            row[p * k + y] = factor * score;
                            if let Some(centring) = &family.centring {
                                let width = family.members.len();
                                let mean = centring.row_means[rows[r] * width + c];
                                row[p * k + y] -= along[y * width + c]
                                    + self.sums[y] * (mean - centring.grand[c]);
                            }
                        }
                    }
                });
            });
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
pub(super) struct RowScorer<'a> {
    members: &'a [usize],
    strategy: Strategy<'a>,
    cols: &'a [usize],
    /// The columns are those that rows begin with.
    first: bool,
    gathered: Vec<f32>,
    scores: Vec<f64>,
}

/// How a [`RowScorer`] does it.
enum Strategy<'a> {
    Scaled(f64),
    Histogram(&'a Basis, Histogram),
    /// Each member by itself, with room for its values.
    Each(Vec<Exponentials>, Vec<f32>),
}

impl<'a> RowScorer<'a> {
    /// For these columns.
    pub(super) fn new(
        family: &'a Family,
        members: &'a [usize],
        cols: &'a [usize],
        precision: Precision,
    ) -> Self {
        let values = cols.len();
        let strategy = match &family.map {
            Map::Scaled(factor) => Strategy::Scaled(*factor),
            Map::Table(basis) => {
                let each = (precision == Precision::Fast
                    && basis.is_expensive_for(values, members.len()))
                .then(|| members.iter().map(|&c| family.exponential(c)).collect());
                match each.flatten() {
                    Some(each) => Strategy::Each(each, vec![0.0; values]),
                    None => Strategy::Histogram(basis, basis.histogram()),
                }
            }
        };
        RowScorer {
            members,
            strategy,
            cols,
            first: cols.iter().enumerate().all(|(k, &j)| k == j),
            gathered: Vec::new(),
            scores: vec![0.0; members.len()],
        }
    }

    pub(super) fn scores(&mut self, t: &[f32], a: &[f64]) -> &[f64] {
        let t = if self.first {
            &t[..self.cols.len()]
        } else {
            self.gathered.clear();
            self.gathered.extend(self.cols.iter().map(|&j| t[j]));
            &self.gathered
        };
        match &mut self.strategy {
            Strategy::Scaled(factor) => self.scores[0] = *factor * mixed_dot(t, a),
            Strategy::Histogram(basis, histogram) => {
                self.scores.fill(0.0);
                histogram.clear();
                histogram.add(t, a);
                basis.sums_of(histogram, self.members, &mut self.scores);
            }
            Strategy::Each(each, values) => {
                for (score, one) in self.scores.iter_mut().zip(each) {
                    one.values(t, values);
                    *score = mixed_dot(values, a);
                }
            }
        }
        &self.scores
    }
}
