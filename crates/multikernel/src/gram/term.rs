//! A family's share of the combined kernel: a multiple of its statistic, or one function of it that stands for all its kernels.

use super::Precision;
use super::accumulate::add_scaled;
use super::family::{Family, Map};
use super::profile_table::{Basis, RowTable, Table};
use super::profile_table_f32::Exponentials;
use crate::kernel::Profile;
use std::sync::OnceLock;

/// Values that are found in f32 before they are added in f64: they stay in the first cache.
pub(super) const TILE: usize = 512;
/// Most kernels of a family that are summed for a single value; for more of them a table is made.
const SUMMED: usize = 16;

/// A family's share of the combination.
#[derive(Debug)]
pub(super) enum Term<'g> {
    Multiple(&'g Family, f64),
    Mixture(&'g Family, Mixture<'g>),
}

impl<'g> Term<'g> {
    /// The family's kernels with these weights.
    pub(super) fn new(family: &'g Family, beta: Vec<f64>) -> Term<'g> {
        match &family.map {
            Map::Scaled(factor) => Term::Multiple(family, beta[0] * factor),
            Map::Table(basis) => Term::Mixture(family, Mixture::new(family, basis, beta)),
        }
    }

    pub(super) fn family(&self) -> &'g Family {
        match self {
            Term::Multiple(family, _) | Term::Mixture(family, _) => family,
        }
    }

    /// Its value at t in f64, before the family's factors: for single values.
    pub(super) fn at(&self, t: f32) -> f64 {
        match self {
            Term::Multiple(_, factor) => factor * f64::from(t),
            Term::Mixture(family, mixture) => mixture.at(family, t),
        }
    }

    /// Adds its values at each t.
    pub(super) fn add(&self, t: &[f32], precision: Precision, sums: &mut [f64]) {
        match (self, precision) {
            (Term::Multiple(_, factor), _) => add_scaled(*factor, t, sums),
            (Term::Mixture(_, mixture), Precision::Exact) => mixture.table().add(t, sums),
            (Term::Mixture(_, mixture), Precision::Fast) => {
                let mut values = [0.0f32; TILE];
                for (t, sums) in t.chunks(TILE).zip(sums.chunks_mut(TILE)) {
                    let values = &mut values[..t.len()];
                    mixture.values(t, values);
                    add_scaled(1.0, values, sums);
                }
            }
        }
    }

    /// As [`Term::add`] in f64, where the values have factors of their own.
    pub(super) fn add_times(&self, pairs: impl Iterator<Item = (f32, f64)>, sums: &mut [f64]) {
        for (sum, (t, factor)) in sums.iter_mut().zip(pairs) {
            let value = match self {
                Term::Multiple(_, own) => own * f64::from(t),
                Term::Mixture(_, mixture) => mixture.table().at(t),
            };
            *sum += factor * value;
        }
    }
}

/// Σ_m β_m φ_m over the kernels of a family.
#[derive(Debug)]
pub(super) struct Mixture<'g> {
    basis: &'g Basis,
    beta: Vec<f64>,
    fast: FastValues,
    /// For values in f64: made when it is first asked for, which most combinations never are.
    table: OnceLock<Table>,
}

/// How values in f32 are found.
#[derive(Debug)]
enum FastValues {
    /// The sum is one of a few exponentials, which are computed.
    Exponentials(Exponentials),
    Table(RowTable),
}

impl<'g> Mixture<'g> {
    fn new(family: &'g Family, basis: &'g Basis, beta: Vec<f64>) -> Self {
        let fast = match few_exponentials(family, &beta) {
            Some(few) => FastValues::Exponentials(few),
            None => FastValues::Table(basis.combine_fast(&beta)),
        };
        Mixture {
            basis,
            beta,
            fast,
            table: OnceLock::new(),
        }
    }

    fn table(&self) -> &Table {
        self.table.get_or_init(|| self.basis.combine(&self.beta))
    }

    /// Its value at t, from the family's own profiles if they are not many.
    fn at(&self, family: &Family, t: f32) -> f64 {
        if self.beta.len() > SUMMED {
            return self.table().at(t);
        }
        weighted(family, &self.beta)
            .map(|(b, profile, factor)| b * factor * profile.value(f64::from(t)))
            .sum()
    }

    /// Its values in f32.
    pub(super) fn values(&self, t: &[f32], out: &mut [f32]) {
        match &self.fast {
            FastValues::Exponentials(few) => few.values(t, out),
            FastValues::Table(table) => table.look_up(t, out),
        }
    }
}

/// Weight, profile and factor of the kernels whose weight is not 0.
fn weighted(family: &Family, beta: &[f64]) -> impl Iterator<Item = (f64, Profile, f64)> {
    let each = beta.iter().zip(&family.profiles);
    each.filter(|(b, _)| **b != 0.0)
        .map(|(b, (profile, factor))| (*b, *profile, *factor))
}

/// The kernels of the family with a weight, if they are few and exponentials.
fn few_exponentials(family: &Family, beta: &[f64]) -> Option<Exponentials> {
    let each = weighted(family, beta).map(|(b, profile, factor)| match profile {
        Profile::Exp { width } => Some((b * factor, width)),
        _ => None,
    });
    Exponentials::new(&each.collect::<Option<Vec<_>>>()?)
}
