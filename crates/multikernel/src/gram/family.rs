//! A family: the kernels over one statistic, and where the rows of that statistic come from.

use super::Gram;
use super::profile_table::Basis;
use super::profile_table_f32::Exponentials;
use super::row_cache::{RowCache, lock};
use crate::data::Pairwise;
use crate::kernel::Profile;
use crate::kernel::statistic::{OneColumn, Operand};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Requests of at most this many rows go through the row cache.
pub(super) const CACHED_ROWS: usize = 4;

/// Where the rows of a statistic come from.
#[derive(Debug)]
pub(super) enum Source {
    /// All of it in memory, row after row.
    Stored(Vec<f32>),
    /// Every row is this one.
    Same(Vec<f32>),
    /// Of one column of a view: computing a value takes less time than reading it.
    OneColumn {
        left: Vec<f32>,
        right: Vec<f32>,
        t: OneColumn,
    },
    /// A given matrix, in memory or mapped from a file.
    Given(Pairwise),
    /// Computed when asked for, with a bounded cache of rows.
    OnTheFly {
        left: Arc<Operand>,
        right: Arc<Operand>,
        cache: Mutex<RowCache>,
    },
    /// The product or sum of other kernels, computed when asked for.
    Composite {
        of: Gram,
        kernels: Vec<usize>,
        product: bool,
    },
}

/// How kernel values follow from the statistic.
#[derive(Debug, Clone)]
pub(super) enum Map {
    /// One kernel that is a multiple of the statistic.
    Scaled(f64),
    /// Any number of profiles, tabulated.
    Table(Arc<Basis>),
}

/// K̃ = K − r̄ 1ᵀ − 1 r̄'ᵀ + c, member by member (zeros where a member is not centred).
#[derive(Debug, Clone)]
pub(super) struct Centring {
    /// Mean of each row over the training samples, row after row, one number per member.
    pub(super) row_means: Arc<Vec<f64>>,
    /// The same for the columns.
    pub(super) col_means: Arc<Vec<f64>>,
    /// Mean over all pairs of training samples, per member.
    pub(super) grand: Vec<f64>,
}

/// Factors of the rows and of the columns.
pub(super) type Factors = (Arc<Vec<f64>>, Arc<Vec<f64>>);

#[derive(Debug)]
pub(super) struct Family {
    /// Numbers of its kernels.
    pub(super) members: Vec<usize>,
    pub(super) source: Arc<Source>,
    /// The members' profiles and their factors.
    pub(super) profiles: Vec<(Profile, f64)>,
    pub(super) map: Map,
    pub(super) n_rows: usize,
    pub(super) n_cols: usize,
    /// t(x_i, x_i) of the row samples; empty where it is not known.
    pub(super) diagonal: Vec<f32>,
    /// Factors of rows and columns (spherical normalisation of a family of one).
    pub(super) factors: Option<Factors>,
    pub(super) centring: Option<Centring>,
}

impl Map {
    /// The map for these profiles over t ∈ [low, high].
    pub(super) fn new(profiles: &[(Profile, f64)], low: f64, high: f64) -> Map {
        match profiles {
            [(Profile::Identity, factor)] => Map::Scaled(*factor),
            _ => Map::Table(Arc::new(Basis::new(profiles, low, high))),
        }
    }
}

impl Family {
    /// The same family with those of its kernels that are in the list, which also numbers them; none if there is none.
    pub(super) fn restricted(&self, kernels: &[usize]) -> Option<Family> {
        let (members, kept): (Vec<usize>, Vec<usize>) = kernels
            .iter()
            .enumerate()
            .filter_map(|(new, m)| Some((new, self.members.iter().position(|k| k == m)?)))
            .unzip();
        if members.is_empty() {
            return None;
        }
        let width = self.members.len();
        let columns = |means: &[f64]| -> Arc<Vec<f64>> {
            Arc::new(
                means
                    .chunks(width)
                    .flat_map(|row| kept.iter().map(|&c| row[c]))
                    .collect(),
            )
        };
        Some(Family {
            members,
            source: self.source.clone(),
            profiles: kept.iter().map(|&c| self.profiles[c]).collect(),
            map: match &self.map {
                Map::Scaled(factor) => Map::Scaled(*factor),
                Map::Table(basis) => Map::Table(Arc::new(basis.only(&kept))),
            },
            n_rows: self.n_rows,
            n_cols: self.n_cols,
            diagonal: self.diagonal.clone(),
            factors: self.factors.clone(),
            centring: self.centring.as_ref().map(|centring| Centring {
                row_means: columns(&centring.row_means),
                col_means: columns(&centring.col_means),
                grand: kept.iter().map(|&c| centring.grand[c]).collect(),
            }),
        })
    }

    /// Multiplies every member by its factor.
    pub(super) fn scale(&mut self, factors: &[f64]) {
        for (profile, f) in self.profiles.iter_mut().zip(factors) {
            profile.1 *= f;
        }
        match &mut self.map {
            Map::Scaled(factor) => *factor *= factors[0],
            Map::Table(basis) => Arc::make_mut(basis).scale(factors),
        }
    }

    /// Member c itself, before centring, if it is an exponential.
    pub(super) fn exponential(&self, c: usize) -> Option<Exponentials> {
        match self.profiles[c] {
            (Profile::Exp { width }, factor) => Exponentials::new(&[(factor, width)]),
            _ => None,
        }
    }

    /// The same family between these samples alone, where that costs next to nothing.
    pub(super) fn near(&self, rows: &[usize], cols: &[usize]) -> Option<Family> {
        matches!(&*self.source, Source::OneColumn { .. }).then(|| self.copied(rows, cols))
    }

    /// k(x_i, x_i) of the row samples under member c, as normalised so far; none where it is not known.
    pub(super) fn self_values(&self, c: usize) -> impl Iterator<Item = f64> {
        let (profile, factor) = self.profiles[c];
        self.diagonal.iter().enumerate().map(move |(i, &t)| {
            let root = self.factors.as_ref().map_or(1.0, |f| f.0[i]);
            let value = factor * root * root * profile.value(f64::from(t));
            match &self.centring {
                None => value,
                Some(centring) => {
                    let mean = centring.row_means[i * self.members.len() + c];
                    value - 2.0 * mean + centring.grand[c]
                }
            }
        })
    }

    /// Hands the statistic's rows to `take`, in the order asked: position in `rows`, values.
    pub(super) fn for_rows(&self, rows: &[usize], mut take: impl FnMut(usize, &[f32])) {
        match &*self.source {
            Source::Stored(values) => {
                for (k, &i) in rows.iter().enumerate() {
                    take(k, &values[i * self.n_cols..(i + 1) * self.n_cols]);
                }
            }
            Source::Same(row) => (0..rows.len()).for_each(|k| take(k, row)),
            Source::OneColumn { left, right, t } => {
                let mut row = vec![0.0; self.n_cols];
                for (k, &i) in rows.iter().enumerate() {
                    t.with_all(left[i], right, &mut row);
                    take(k, &row);
                }
            }
            Source::Given(matrix) => {
                for (k, &i) in rows.iter().enumerate() {
                    take(k, matrix.row(i));
                }
            }
            // A pass over many rows leaves the cache alone: its order would depend on the threads, and so would
            // the shapes of later blocks and the last bits of their products.
            Source::OnTheFly { left, right, .. } if rows.len() > CACHED_ROWS => {
                let mut fresh = vec![0.0; rows.len() * self.n_cols];
                left.block(rows, right, 0..self.n_cols, &mut fresh);
                for (k, row) in fresh.chunks(self.n_cols).enumerate() {
                    take(k, row);
                }
            }
            Source::OnTheFly { left, right, cache } => {
                let known = lock(cache).find(rows);
                let missing: Vec<usize> = rows
                    .iter()
                    .zip(&known)
                    .filter_map(|(&i, row)| row.is_none().then_some(i))
                    .collect();
                let mut fresh = vec![0.0; missing.len() * self.n_cols];
                if !missing.is_empty() {
                    left.block(&missing, right, 0..self.n_cols, &mut fresh);
                }
                let mut next = 0;
                for (k, row) in known.iter().enumerate() {
                    match row {
                        Some(row) => take(k, row),
                        None => {
                            take(k, &fresh[next * self.n_cols..(next + 1) * self.n_cols]);
                            next += 1;
                        }
                    }
                }
                lock(cache).insert(&missing, &fresh, self.n_cols);
            }
            Source::Composite {
                of,
                kernels,
                product,
            } => {
                let values = composite_rows(of, kernels, *product, rows);
                for (k, row) in values.chunks(self.n_cols).enumerate() {
                    take(k, row);
                }
            }
        }
    }

    /// Row i of the statistic, if it lies in memory.
    pub(super) fn held_row(&self, i: usize) -> Option<&[f32]> {
        match &*self.source {
            Source::Stored(values) => Some(&values[i * self.n_cols..(i + 1) * self.n_cols]),
            Source::Same(row) => Some(row),
            Source::Given(matrix) => Some(matrix.row(i)),
            Source::OneColumn { .. } | Source::OnTheFly { .. } | Source::Composite { .. } => None,
        }
    }

    /// Whether its rows lie in memory.
    pub(super) fn is_held(&self) -> bool {
        matches!(
            &*self.source,
            Source::Stored(_) | Source::Same(_) | Source::Given(_)
        )
    }

    /// Whether values need nothing after they follow from the statistic.
    pub(super) fn is_plain(&self) -> bool {
        self.factors.is_none() && self.centring.is_none()
    }

    /// The largest product of a row's and a column's factor.
    pub(super) fn largest_factor(&self) -> f64 {
        let largest = |f: &[f64]| f.iter().fold(0.0f64, |m, &v| m.max(v));
        let of_both = |(rows, cols): &Factors| largest(rows) * largest(cols);
        self.factors.as_ref().map_or(1.0, of_both)
    }

    /// Some columns of row i of the statistic, if they are in memory or computed in the time of a read; then they go into `room`.
    pub(super) fn piece<'a>(
        &'a self,
        i: usize,
        cols: Range<usize>,
        room: &'a mut [f32],
    ) -> Option<&'a [f32]> {
        match &*self.source {
            Source::OneColumn { left, right, t } => {
                let room = &mut room[..cols.len()];
                t.with_all(left[i], &right[cols], room);
                Some(room)
            }
            _ => self.held_row(i).map(|row| &row[cols]),
        }
    }

    /// Whether its rows must be computed at a price, which is best done for many at once.
    pub(super) fn computes_rows(&self) -> bool {
        matches!(
            &*self.source,
            Source::OnTheFly { .. } | Source::Composite { .. }
        )
    }

    /// Rows that are best asked for together.
    pub(super) fn block_rows(&self) -> usize {
        // Enough rows that a block is a matrix product, few enough that it stays in a cache.
        if self.computes_rows() {
            block_rows(self.n_cols)
        } else {
            16
        }
    }
}

/// Rows of the product or sum of some kernels.
pub(super) fn composite_rows(
    of: &Gram,
    kernels: &[usize],
    product: bool,
    rows: &[usize],
) -> Vec<f32> {
    let mut values = vec![f32::from(u8::from(product)); rows.len() * of.n_cols()];
    let mut factor = vec![0.0; values.len()];
    for &m in kernels {
        of.kernel(m).rows_on_this_thread(rows, &mut factor);
        for (v, f) in values.iter_mut().zip(&factor) {
            *v = if product { *v * f } else { *v + f };
        }
    }
    values
}

/// Rows of a block on the fly of n columns.
pub(super) fn block_rows(n_cols: usize) -> usize {
    const BYTES: usize = 4 << 20;
    (BYTES / (4 * n_cols.max(1))).clamp(8, 256)
}
