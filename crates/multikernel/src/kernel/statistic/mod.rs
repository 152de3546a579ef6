//! Statistics: one number t for each pair of samples of a view.

use crate::data::ViewData;
use crate::error::Result;
use std::ops::Range;

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

/// A view made ready for one statistic.
#[derive(Debug)]
pub struct Operand {}

impl Statistic {
    /// Makes a view ready. New samples are made ready with the operand of the training samples as `reference`.
    pub fn prepare(self, view: &ViewData, reference: Option<&Operand>) -> Result<Operand> {
        let _ = (view, reference);
        Ok(Operand {})
    }
}

impl Operand {
    /// Number of samples.
    pub fn len(&self) -> usize {
        0
    }

    /// No samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// t between samples `rows` of this operand and samples `cols` of `other`, row after row into `out`.
    /// Runs on the calling thread; callers spread blocks over threads.
    pub fn block(&self, rows: &[usize], other: &Operand, cols: Range<usize>, out: &mut [f32]) {
        let _ = (rows, other, cols, out);
    }

    /// t of sample i with itself; none where it is not known (new samples of a given matrix).
    pub fn diagonal(&self, i: usize) -> Option<f32> {
        let _ = i;
        None
    }

    /// Numbers between which t of these samples with those of `other` surely lies.
    pub fn range(&self, other: &Operand) -> (f64, f64) {
        let _ = other;
        (0.0, 0.0)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        0
    }
}
