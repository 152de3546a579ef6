//! From kernels and operands to the families of a Gram, within a bound of memory.

use super::family::{Family, Map, Source, block_rows, composite_rows};
use super::kernel::Kernel;
use super::normalize::normalize;
use super::profile_table::Basis;
use super::row_cache::RowCache;
use super::{Gram, Index, symmetric};
use crate::error::{Error, Result};
use crate::kernel::statistic::{Operand, Statistic};
use crate::kernel::{Combine, Profile};
use crate::observe::Observer;
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// A view made ready for a statistic.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) view: String,
    pub(super) statistic: Statistic,
    /// The kernel whose repaired values these are; none where they are the view's own.
    pub(super) repaired: Option<String>,
    pub(super) operand: Arc<Operand>,
}

impl Side {
    /// What the kernel, which has this statistic, looks at.
    pub(super) fn of(kernel: &Kernel, statistic: Statistic, operand: Operand) -> Side {
        Side {
            view: kernel.view().to_owned(),
            statistic,
            repaired: kernel.repair.as_ref().map(|_| kernel.name.clone()),
            operand: Arc::new(operand),
        }
    }

    pub(super) fn serves(&self, kernel: &Kernel, statistic: Statistic) -> bool {
        self.view == kernel.view()
            && self.statistic == statistic
            && self.repaired.as_ref() == kernel.repair.as_ref().map(|_| &kernel.name)
    }

    fn is(&self, other: &Side) -> bool {
        self.view == other.view
            && self.statistic == other.statistic
            && self.repaired == other.repaired
    }
}

/// Row samples and column samples.
pub(super) struct Sides<'a> {
    pub(super) rows: &'a [Side],
    pub(super) cols: &'a [Side],
    /// They are the same samples.
    pub(super) symmetric: bool,
}

/// The kernels of one family, before it is built.
struct Group {
    side: usize,
    members: Vec<usize>,
    /// Scales rows and columns, so it stays alone.
    alone: bool,
}

/// Builds the Gram of `kernels`. With `fit` the statistics of their normalisations are measured and kept in
/// them; without, those they have are used. Returns warnings too.
pub(super) fn build(
    kernels: &mut [Kernel],
    sides: Sides<'_>,
    memory: u64,
    fit: bool,
    observer: &dyn Observer,
) -> Result<(Gram, Vec<String>)> {
    let n_rows = sides.rows.first().map_or(0, |s| s.operand.len());
    let n_cols = sides.cols.first().map_or(0, |s| s.operand.len());
    let mut warnings = Vec::new();
    let groups = groups(kernels, sides.cols);
    let mut budget = MemoryBudget::new(kernels, &groups, &sides, memory)?;
    let mut families: Vec<Arc<Family>> = Vec::new();
    for group in groups {
        let mut family = raw_family(kernels, &group, &sides, n_cols, &mut budget, observer)?;
        normalize(&mut family, kernels, fit, &mut warnings)?;
        families.push(Arc::new(family));
    }
    let all = |n: usize| Index::All(n);
    for m in 0..kernels.len() {
        let Some((how, names)) = kernels[m].spec.kind.made_of() else {
            continue;
        };
        let product = how == Combine::Product;
        let of = Gram {
            families: families.clone(),
            n_kernels: kernels.len(),
            rows: all(n_rows),
            cols: all(n_cols),
            symmetric: sides.symmetric,
            spare: 0,
        };
        let parts: Vec<usize> = names
            .iter()
            .filter_map(|name| kernels.iter().position(|k| k.name == *name))
            .collect();
        let mut family = composite(m, of, parts, product, n_rows, n_cols, &mut budget);
        normalize(&mut family, kernels, fit, &mut warnings)?;
        families.push(Arc::new(family));
    }
    let gram = Gram {
        families,
        n_kernels: kernels.len(),
        rows: all(n_rows),
        cols: all(n_cols),
        symmetric: sides.symmetric,
        spare: budget.spare.saturating_add(budget.left),
    };
    Ok((gram, warnings))
}

/// Kernels over the same statistic go together.
fn groups(kernels: &[Kernel], sides: &[Side]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (m, kernel) in kernels.iter().enumerate() {
        let Some((statistic, _)) = kernel.parts() else {
            continue;
        };
        let Some(side) = sides.iter().position(|s| s.serves(kernel, statistic)) else {
            continue;
        };
        let alone = kernel.needs_factors();
        match groups
            .iter_mut()
            .find(|g| g.side == side && !g.alone && !alone)
        {
            Some(group) => group.members.push(m),
            None => groups.push(Group {
                side,
                members: vec![m],
                alone,
            }),
        }
    }
    groups
}

/// What is left of the memory.
struct MemoryBudget {
    left: u64,
    /// Share of each family that is not stored, for its row cache.
    cache_share: u64,
    /// Kept for whoever asks the Gram: rows of the combined kernel.
    spare: u64,
}

impl MemoryBudget {
    /// Refuses what cannot work before any work is done.
    fn new(
        kernels: &[Kernel],
        groups: &[Group],
        sides: &Sides<'_>,
        memory: u64,
    ) -> Result<MemoryBudget> {
        let n = sides.cols.first().map_or(0, |s| s.operand.len()) as u64;
        let tables: u64 = groups
            .iter()
            .map(|p| {
                let profiles = profiles(kernels, &p.members);
                let (_, high) = sides.rows[p.side]
                    .operand
                    .range(&sides.cols[p.side].operand);
                Basis::bytes(&profiles, high) as u64
            })
            .sum();
        let operands: u64 = sides.rows.iter().map(|s| s.operand.bytes() as u64).sum();
        // Blocks of rows in the hands of the threads: the statistic, its combination in f64, and in f32.
        let threads = rayon::current_num_threads() as u64;
        let working = threads * block_rows(n as usize) as u64 * n * 16;
        let needed = tables + operands + working;
        // A Gram between new samples and training samples must always be possible; what it may store is all that is
        // bounded.
        if !sides.symmetric {
            return Ok(MemoryBudget {
                left: memory,
                cache_share: 0,
                spare: 0,
            });
        }
        let left = memory.checked_sub(needed).ok_or_else(|| Error::Memory {
            what: format!("computing {} kernels of {n} samples", kernels.len()),
            needed,
            available: memory,
            remedy: "allow more memory, take fewer threads, or give fewer samples or kernels"
                .into(),
        })?;
        // A solver's combined matrix is as good a use as a stored statistic; when both do not fit they share.
        let spare = (left / 2).min(4 * n * n);
        let left = left - spare;
        Ok(MemoryBudget {
            left,
            cache_share: left / (groups.len() as u64).max(1),
            spare,
        })
    }

    /// Takes the bytes if they are there.
    fn take(&mut self, bytes: u64) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// A row cache for n columns from this family's share.
    fn cache(&mut self, n_cols: usize) -> RowCache {
        let bytes = self.cache_share.min(self.left);
        self.left -= bytes;
        // A row costs its values and a little bookkeeping.
        RowCache::new((bytes / (4 * n_cols as u64 + 128)) as usize)
    }
}

fn profiles(kernels: &[Kernel], members: &[usize]) -> Vec<(Profile, f64)> {
    members
        .iter()
        .filter_map(|&m| kernels[m].parts())
        .map(|(_, profile)| (profile, 1.0))
        .collect()
}

/// A family before normalisation.
fn raw_family(
    kernels: &[Kernel],
    group: &Group,
    sides: &Sides<'_>,
    n_cols: usize,
    budget: &mut MemoryBudget,
    observer: &dyn Observer,
) -> Result<Family> {
    let right = &sides.cols[group.side];
    let left = sides.rows.iter().find(|s| s.is(right)).unwrap_or(right);
    let (low, high) = left.operand.range(&right.operand);
    let n_rows = left.operand.len();
    let source = match left.operand.given() {
        Some(matrix) => Source::Given(matrix.clone()),
        None if let (Some((left, t)), Some((right, _))) =
            (left.operand.one_column(), right.operand.one_column()) =>
        {
            Source::OneColumn {
                left: left.to_vec(),
                right: right.to_vec(),
                t,
            }
        }
        None if budget.take(4 * n_rows as u64 * n_cols as u64) => {
            Source::Stored(if sides.symmetric {
                symmetric::statistic(&left.operand, observer)?
            } else {
                rectangle(&left.operand, &right.operand)
            })
        }
        None => Source::OnTheFly {
            left: left.operand.clone(),
            right: right.operand.clone(),
            cache: Mutex::new(if sides.symmetric {
                budget.cache(n_cols)
            } else {
                RowCache::new(0)
            }),
        },
    };
    let diagonal = match &source {
        Source::Stored(values) if sides.symmetric => {
            (0..n_rows).map(|i| values[i * n_cols + i]).collect()
        }
        Source::Given(matrix) if sides.symmetric => matrix.map_rows(|i, row| row[i]),
        _ => (0..n_rows)
            .filter_map(|i| left.operand.diagonal(i))
            .collect(),
    };
    let profiles = profiles(kernels, &group.members);
    Ok(Family {
        members: group.members.clone(),
        source: Arc::new(source),
        map: Map::new(&profiles, low, high),
        profiles,
        n_rows,
        n_cols,
        diagonal,
        factors: None,
        centring: None,
    })
}

/// The whole statistic between different samples.
fn rectangle(left: &Operand, right: &Operand) -> Vec<f32> {
    let n_cols = right.len();
    let mut values = vec![0.0; left.len() * n_cols];
    let block = block_rows(n_cols);
    values
        .par_chunks_mut((block * n_cols).max(1))
        .enumerate()
        .for_each(|(b, out)| {
            let rows: Vec<usize> = (b * block..b * block + out.len() / n_cols).collect();
            left.block(&rows, right, 0..n_cols, out);
        });
    values
}

/// A product or sum of kernels as a family of one.
fn composite(
    m: usize,
    of: Gram,
    kernels: Vec<usize>,
    product: bool,
    n_rows: usize,
    n_cols: usize,
    budget: &mut MemoryBudget,
) -> Family {
    let diagonals: Vec<Vec<f64>> = kernels.iter().map(|&k| of.self_values(k)).collect();
    let diagonal = if diagonals.iter().any(Vec::is_empty) {
        Vec::new()
    } else {
        (0..n_rows)
            .map(|i| {
                let values = diagonals.iter().map(|d| d[i]);
                if product {
                    values.product::<f64>() as f32
                } else {
                    values.sum::<f64>() as f32
                }
            })
            .collect()
    };
    let source = if of.symmetric && budget.take(4 * n_rows as u64 * n_cols as u64) {
        let mut values = vec![0.0; n_rows * n_cols];
        let block = block_rows(n_cols);
        values
            .par_chunks_mut(block * n_cols)
            .enumerate()
            .for_each(|(b, out)| {
                let rows: Vec<usize> = (b * block..(b * block + block).min(n_rows)).collect();
                out.copy_from_slice(&composite_rows(&of, &kernels, product, &rows));
            });
        Source::Stored(values)
    } else {
        Source::Composite {
            of,
            kernels,
            product,
        }
    };
    Family {
        members: vec![m],
        source: Arc::new(source),
        map: Map::Scaled(1.0),
        profiles: vec![(Profile::Identity, 1.0)],
        n_rows,
        n_cols,
        diagonal,
        factors: None,
        centring: None,
    }
}
