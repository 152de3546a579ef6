//! How rows of a combination are made: chosen once, from where the statistics of its families are.

use super::family::{Family, Map};
use super::{Gram, Index};

/// Looking up a value of one family takes as long as reading this many values of stored matrices.
const LOOK_UP: usize = 12;
/// An entry is expensive when it takes longer than this many look-ups.
const EXPENSIVE: usize = 8;
/// Rows of a block in which no statistic has to be computed.
const ROWS: usize = 32;

/// The way to the rows of some families' combination, and what it costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPlan {
    pub(super) way: Way,
    /// The combination is one table over one statistic: its values need no sum and go straight into the result.
    pub(super) is_one_table: bool,
    /// Rows that are best asked for together.
    pub(super) block_rows: usize,
    /// What an entry costs, in values of stored matrices to be read.
    cost: usize,
    is_symmetric: bool,
    has_all_rows: bool,
}

/// How the terms of a combination are added to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Multiples of matrices in memory: read and added, four at a time.
    Stored,
    /// Multiples and tables over statistics that are in memory, or computed in the time of a read: tile after tile of the columns.
    Tiles,
    /// The same where values have factors, or columns are to be gathered: term after term.
    Terms,
    /// A statistic has to be computed, which is best done for a block of rows at once.
    Computed,
}

impl RowPlan {
    /// For the sum of these families' kernels between the rows and the columns of `gram`.
    pub(super) fn choose<'f>(families: impl Iterator<Item = &'f Family>, gram: &Gram) -> RowPlan {
        let has_all_cols = matches!(gram.cols, Index::All(_));
        let (mut count, mut cost, mut block_rows) = (0, 0, 0);
        let (mut is_stored, mut has_factors) = (has_all_cols, false);
        let (mut is_computed, mut is_one_table) = (false, has_all_cols);
        for family in families {
            let is_table = matches!(family.map, Map::Table(_));
            count += 1;
            cost += if is_table { LOOK_UP } else { 1 };
            block_rows = block_rows.max(family.block_rows());
            is_stored &= !is_table && family.is_plain() && family.is_held();
            is_one_table &= is_table && family.is_plain();
            is_computed |= family.computes_rows();
            has_factors |= family.factors.is_some();
        }
        RowPlan {
            way: match (is_stored, is_computed) {
                (true, _) => Way::Stored,
                (_, true) => Way::Computed,
                _ if has_all_cols && !has_factors => Way::Tiles,
                _ => Way::Terms,
            },
            is_one_table: is_one_table && count == 1,
            block_rows: if count == 0 { ROWS } else { block_rows },
            cost,
            is_symmetric: gram.symmetric,
            has_all_rows: matches!(gram.rows, Index::All(_)),
        }
    }

    /// Whether a statistic has to be computed for every row that is asked for.
    pub(super) fn computes(&self) -> bool {
        self.way == Way::Computed
    }

    /// Whether a whole matrix is made by computing one half and copying it to the other: copying takes about as long as looking up one
    /// family, so an entry must cost more than that.
    pub(crate) fn halves_matrices(&self) -> bool {
        self.is_symmetric && !self.computes() && self.cost > LOOK_UP
    }

    /// Whether a row takes so long that one that nobody will ask for should not be made.
    pub(crate) fn is_expensive(&self) -> bool {
        self.cost > EXPENSIVE * LOOK_UP
    }

    /// Whether every kernel of all samples lies in memory and shares nothing with others, so that reading it is all that an
    /// answer costs.
    pub(crate) fn is_read_bound(&self) -> bool {
        self.way == Way::Stored && self.is_symmetric && self.has_all_rows
    }
}

impl Gram {
    /// The plan for rows to which every kernel contributes.
    pub(crate) fn row_plan(&self) -> RowPlan {
        RowPlan::choose(self.families.iter().map(|family| &**family), self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Pairwise, View, ViewData, Views};
    use crate::gram::{KernelSet, Options};
    use crate::kernel::KernelSpec;

    const SAMPLES: usize = 30;

    fn set(specs: &[&str], memory: u64) -> KernelSet {
        let view = |name: &str, data| View {
            name: name.into(),
            columns: Vec::new(),
            data,
        };
        let n = SAMPLES;
        let numbers = (0..2 * n).map(|k| (k * k % 17) as f32).collect();
        let unit = (0..n * n).map(|k| f32::from(u8::from(k / n == k % n)));
        let views = Views::new(vec![
            view("x", ViewData::Dense(Dense::new(n, 2, numbers).unwrap())),
            view(
                "k",
                ViewData::Pairwise(Pairwise::new(n, n, unit.collect()).unwrap()),
            ),
        ]);
        let specs: Vec<KernelSpec> = specs
            .iter()
            .flat_map(|s| KernelSpec::parse(s).unwrap())
            .collect();
        let options = Options {
            memory,
            ..Options::default()
        };
        KernelSet::new(&specs, &views.unwrap(), &options, &()).unwrap()
    }

    fn plan(specs: &[&str], memory: u64) -> RowPlan {
        set(specs, memory).gram().row_plan()
    }

    #[test]
    fn the_way_follows_from_where_the_statistics_are() {
        let way = |specs: &[&str]| plan(specs, u64::MAX).way;
        assert_eq!(way(&["precomputed:view=k", "linear:view=x"]), Way::Stored);
        assert_eq!(way(&["rbf:view=x,width=3|9"]), Way::Tiles);
        assert_eq!(way(&["rbf:view=x,width=3,normalize=center"]), Way::Tiles);
        assert_eq!(way(&["poly:view=x,normalize=spherical"]), Way::Terms);
        assert!(plan(&["rbf:view=x,width=3|9"], u64::MAX).is_one_table);
        for specs in [
            &["rbf:view=x,width=3", "linear:view=x,normalize=spherical"][..],
            &["rbf:view=x,width=3,normalize=center"],
        ] {
            assert!(!plan(specs, u64::MAX).is_one_table, "{specs:?}");
        }
        // Other columns are gathered; other rows are there.
        let set = set(&["precomputed:view=k"], u64::MAX);
        let part = set.gram().only_rows(&[3, 1]).row_plan();
        assert!(part.way == Way::Stored && !part.is_read_bound());
        assert_eq!(set.gram().subset(&[3, 1]).row_plan().way, Way::Terms);
        assert!(set.gram().row_plan().is_read_bound());
    }

    #[test]
    fn what_costs_more_than_copying_is_done_by_halves() {
        let of_families = |count: usize| {
            let each: Vec<String> = (2..2 + count)
                .map(|k| format!("poly:view=x,degree={k},coef0=2,normalize=spherical"))
                .collect();
            let each: Vec<&str> = each.iter().map(String::as_str).collect();
            plan(&each, u64::MAX)
        };
        assert!(!of_families(1).halves_matrices() && !of_families(1).is_expensive());
        assert!(of_families(2).halves_matrices() && !of_families(8).is_expensive());
        assert!(of_families(9).is_expensive());
    }
}
