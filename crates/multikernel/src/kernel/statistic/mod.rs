//! Statistics: one number t for each pair of samples of a view.
//!
//! A view is made ready for a statistic once ([`Statistic::prepare`]); after that, blocks of t are asked for
//! ([`Operand::block`]). Dense rows go through matrix products or vectorised panels, sparse rows through an inverted
//! index, strings through k-mer counts or bit planes.

mod formulas;
mod lower;
mod numbers;
pub(crate) mod one_to_many;
mod panels;
mod prepare;
mod product;
mod sparse;
mod spectrum;
#[cfg(test)]
mod tests;
mod weighted_degree;

use crate::data::Pairwise;
pub(crate) use formulas::Size;
use formulas::{Formula, with_formula};
pub(crate) use product::OneColumn;
use std::ops::Range;
use std::sync::Arc;

/// The statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// x·x'
    Dot,
    /// x·x' of rows scaled to unit length; a row of zeros stays zero.
    UnitDot,
    /// ‖x−x'‖²
    SquaredDistance,
    /// ‖x−x'‖₁
    L1,
    /// Σ (x−x')²/(x+x'), 0/0 = 0; needs values ≥ 0
    Chi2,
    /// Σ min(x, x'); needs values ≥ 0
    Intersection,
    /// Dot product of k-mer counts.
    Spectrum {
        /// Length of the k-mers.
        k: usize,
    },
    /// Weighted degree with shifts.
    WeightedDegree {
        /// Longest k-mer.
        degree: usize,
        /// Largest shift.
        shift: usize,
    },
    /// The given matrix itself.
    Given,
}

/// What a statistic is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Numbers,
    Strings,
    GivenMatrix,
}

/// What there is to know about a statistic beside its formula.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About {
    /// Its name in messages.
    pub(crate) name: &'static str,
    pub(crate) of: Of,
    /// t(x, x) = 0; otherwise, for numbers, t(x, x) is the size of x.
    pub(crate) is_distance: bool,
    pub(crate) size: Size,
    /// It has no meaning for values below 0.
    pub(crate) needs_nonnegative: bool,
}

impl Statistic {
    pub(crate) fn about(self) -> About {
        let (name, of) = match self {
            Statistic::UnitDot => ("dot product of unit rows", Of::Numbers),
            Statistic::Spectrum { .. } => ("spectrum", Of::Strings),
            Statistic::WeightedDegree { .. } => {
                return About::without_formula("weighted-degree", Of::Strings);
            }
            Statistic::Given => {
                return About::without_formula("a given matrix's kernel", Of::GivenMatrix);
            }
            _ => (with_formula!(self, F => F::NAME), Of::Numbers),
        };
        with_formula!(self, F => About {
            name,
            of,
            is_distance: F::IS_DISTANCE,
            size: F::SIZE,
            needs_nonnegative: F::NEEDS_NONNEGATIVE,
        })
    }
}

impl About {
    fn without_formula(name: &'static str, of: Of) -> About {
        About {
            name,
            of,
            is_distance: false,
            size: Size::Squares,
            needs_nonnegative: false,
        }
    }
}

/// A view made ready for one statistic.
///
/// Of two operands that meet in [`block`](Operand::block), at least one must hold the training samples (or both the
/// same samples): features that no training sample has are kept only as far as they matter for
/// [`diagonal`](Operand::diagonal) and for t with training samples.
#[derive(Debug)]
pub struct Operand {
    statistic: Statistic,
    /// Samples of the training set (prepared without a reference).
    training: bool,
    /// Columns of the view, as the user counts them; 0 for strings.
    width: usize,
    /// Σx² of each row for products and squared distances, Σ|x| for ℓ1, χ² and intersection; else empty.
    sizes: Vec<f64>,
    /// The largest of the sizes.
    largest: f64,
    /// No value is negative.
    nonnegative: bool,
    samples: Samples,
}

/// The samples in the layout their block routine wants.
#[derive(Debug)]
enum Samples {
    /// For matrix products; distances are measured from the centre.
    Rows {
        rows: product::DenseRows,
        centre: Arc<Vec<f32>>,
        dictionary: Option<Arc<spectrum::Dictionary>>,
    },
    /// For panels.
    Panels(panels::Panels),
    /// For the inverted index.
    Sparse {
        sparse: sparse::Sparse,
        dictionary: Option<Arc<spectrum::Dictionary>>,
    },
    /// Strings of equal length.
    Strings(weighted_degree::Strings),
    /// A given matrix, with its lowest and highest value.
    Given { matrix: Pairwise, range: (f32, f32) },
}

impl Operand {
    /// Number of samples.
    pub fn len(&self) -> usize {
        match &self.samples {
            Samples::Strings(strings) => strings.len(),
            Samples::Given { matrix, .. } => matrix.rows(),
            _ => self.sizes.len(),
        }
    }

    /// No samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The statistic it is ready for.
    pub fn statistic(&self) -> Statistic {
        self.statistic
    }

    /// t between samples `rows` of this operand and samples `cols` of `other`, row after row into `out`.
    /// Runs on the calling thread; callers spread blocks over threads.
    ///
    /// The last bits of a dot product may depend on the shape of the block, so callers that promise the same bits cut
    /// their blocks the same way every time.
    ///
    /// # Panics
    /// If a sample does not exist, the operands belong to different statistics or views of different kinds, or `out`
    /// does not have one place for each pair.
    pub fn block(&self, rows: &[usize], other: &Operand, cols: Range<usize>, out: &mut [f32]) {
        assert_eq!(self.statistic, other.statistic, "operands of one statistic");
        assert_eq!(
            out.len(),
            rows.len() * cols.len(),
            "one place for each pair"
        );
        assert!(cols.end <= other.len(), "columns that exist");
        debug_assert!(
            self.training || other.training || std::ptr::eq(self, other),
            "one side is training"
        );
        match (&self.samples, &other.samples) {
            (Samples::Rows { rows: left, .. }, Samples::Rows { rows: right, .. }) => {
                if self.statistic == Statistic::SquaredDistance {
                    left.squared_distance(&self.sizes, rows, (right, &other.sizes), cols, out);
                } else {
                    left.dot(rows, right, cols, out);
                }
            }
            (Samples::Panels(left), Samples::Panels(right)) => {
                with_formula!(self.statistic, F => left.block::<F>(rows, right, cols, out));
            }
            (Samples::Sparse { sparse: left, .. }, Samples::Sparse { sparse: right, .. }) => {
                let (sizes, right) = (&self.sizes, (right, &other.sizes[..]));
                with_formula!(self.statistic, F => left.block::<F>(sizes, rows, right, cols, out));
            }
            (Samples::Strings(left), Samples::Strings(right)) => left.block(rows, right, cols, out),
            (Samples::Given { matrix: left, .. }, Samples::Given { matrix: right, .. }) => {
                if cols.is_empty() {
                    return;
                }
                for (&i, out) in rows.iter().zip(out.chunks_exact_mut(cols.len())) {
                    if other.training {
                        out.copy_from_slice(&left.row(i)[cols.clone()]);
                    } else {
                        // Training samples against new ones: the numbers stand in the rows of the new ones.
                        for (t, j) in out.iter_mut().zip(cols.clone()) {
                            *t = right.row(j)[i];
                        }
                    }
                }
            }
            _ => panic!("operands that were prepared apart from each other"),
        }
    }

    /// Its one column, where t of two numbers costs no more than reading it would.
    pub(crate) fn one_column(&self) -> Option<(&[f32], OneColumn)> {
        match &self.samples {
            Samples::Rows {
                rows, dictionary, ..
            } if rows.width == 1 && dictionary.is_none() => {
                Some((&rows.values, OneColumn(self.statistic)))
            }
            _ => None,
        }
    }

    /// Rows that [`Operand::lower`] is best asked for together.
    pub(crate) fn lower_rows(&self) -> usize {
        match &self.samples {
            Samples::Rows { .. } if lower::available() => lower::BLOCK,
            _ => 256,
        }
    }

    /// t of samples `rows` with samples 0 up to themselves into the fronts of full rows; what stands behind them there
    /// afterwards means nothing. On the calling thread.
    pub(crate) fn lower(&self, rows: Range<usize>, out: &mut [f32]) {
        /// Columns of a block: each block prepares its rows anew, so wide is cheap.
        const WIDE: usize = 1024;
        let n = self.len();
        assert_eq!(out.len(), rows.len() * n, "full rows");
        if let Samples::Rows { rows: x, .. } = &self.samples
            && self.statistic == Statistic::SquaredDistance
            && x.width == 1
        {
            for (i, out) in rows.zip(out.chunks_exact_mut(n)) {
                OneColumn(self.statistic).with_all(x.values[i], &x.values[..=i], out);
            }
            return;
        }
        if let Samples::Rows { rows: x, .. } = &self.samples
            && lower::available()
        {
            lower::dots(x, rows.clone(), out, n);
            if self.statistic == Statistic::SquaredDistance {
                for (i, out) in rows.zip(out.chunks_exact_mut(n)) {
                    x.distances(&self.sizes, i, (x, &self.sizes), 0..i + 1, &mut out[..=i]);
                }
            }
            return;
        }
        let list: Vec<usize> = rows.clone().collect();
        let mut block = vec![0.0; list.len() * WIDE];
        for start in (0..rows.end).step_by(WIDE) {
            let end = (start + WIDE).min(rows.end);
            let block = &mut block[..list.len() * (end - start)];
            self.block(&list, self, start..end, block);
            for (row, from) in out.chunks_mut(n).zip(block.chunks(end - start)) {
                row[start..end].copy_from_slice(from);
            }
        }
    }

    /// t of sample i with itself; none where it is not known (new samples of a given matrix).
    pub fn diagonal(&self, i: usize) -> Option<f32> {
        match &self.samples {
            Samples::Strings(strings) => Some(strings.diagonal[i]),
            Samples::Given { matrix, .. } => self.training.then(|| matrix.row(i)[i]),
            _ if self.statistic.about().is_distance => Some(0.0),
            _ => Some(self.sizes[i] as f32),
        }
    }

    /// Numbers between which t of these samples with those of `other` surely lies.
    pub fn range(&self, other: &Operand) -> (f64, f64) {
        // Sums of f32 may end a little beyond what exact sums could; the error of a sum of d products is at most
        // d·2⁻²³ of the product of the norms.
        let rounding = 1.0 + 1e-6 + self.width.max(1) as f64 * f64::from(f32::EPSILON);
        let (a, b) = (self.largest, other.largest);
        match (&self.samples, &other.samples) {
            (Samples::Strings(strings), _) => return (0.0, strings.highest() * rounding),
            (Samples::Given { range: own, .. }, Samples::Given { range, .. }) => {
                let new = if self.training && !other.training {
                    range
                } else {
                    own
                };
                return (f64::from(new.0), f64::from(new.1));
            }
            _ => {}
        }
        let about = self.statistic.about();
        match (about.size, about.is_distance) {
            (Size::Squares, true) => (0.0, (a.sqrt() + b.sqrt()).powi(2) * rounding),
            (Size::Absolute, true) => (0.0, (a + b) * rounding),
            (Size::Absolute, false) => (0.0, a.min(b) * rounding),
            (Size::Squares, false) => {
                let highest = (a * b).sqrt() * rounding;
                match self.nonnegative && other.nonnegative {
                    true => (0.0, highest),
                    false => (-highest, highest),
                }
            }
        }
    }

    /// The given matrix, if that is what it looks at.
    pub(crate) fn given(&self) -> Option<&Pairwise> {
        match &self.samples {
            Samples::Given { matrix, .. } => Some(matrix),
            _ => None,
        }
    }

    /// Bytes held (of a given matrix none: its values are shared with the view).
    pub fn bytes(&self) -> usize {
        let dictionary = |dictionary: &Option<Arc<spectrum::Dictionary>>| match dictionary {
            Some(dictionary) if self.training => dictionary.bytes(),
            _ => 0,
        };
        let samples = match &self.samples {
            Samples::Rows {
                rows,
                centre,
                dictionary: words,
            } => {
                (rows.values.capacity() + centre.capacity()) * size_of::<f32>() + dictionary(words)
            }
            Samples::Panels(panels) => panels.bytes(),
            Samples::Sparse {
                sparse,
                dictionary: words,
            } => sparse.bytes() + dictionary(words),
            Samples::Strings(strings) => strings.bytes(),
            Samples::Given { .. } => 0,
        };
        size_of::<Self>() + samples + self.sizes.capacity() * size_of::<f64>()
    }
}
