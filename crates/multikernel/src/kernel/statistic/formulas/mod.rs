//! Formulas of statistics that are sums over the columns, t(x, y) = Σ_k term(x_k, y_k): each stands here once, whatever it is summed by.
//!
//! Dense rows are summed in panels (`panels.rs`), or against one new sample (`one_to_many.rs`); sparse rows through an inverted index
//! (`sparse.rs`) or side by side. Products and squared distances of many dense rows are matrix products instead (`product.rs`).
//!
//! To add a statistic of numbers: a file like the others here, its name in the enum [`Statistic`](super::Statistic), and its line in
//! [`with_formula`].

mod chi2;
mod dot;
mod intersection;
mod l1;
mod number;
mod squared_distance;

pub(super) use chi2::Chi2;
pub(super) use dot::Dot;
pub(super) use intersection::Intersection;
pub(super) use l1::L1;
#[cfg(target_arch = "x86_64")]
pub(super) use number::Eight;
pub(super) use number::Number;
pub(super) use squared_distance::SquaredDistance;

/// Terms that are summed in f32 before the sum goes on in f64.
pub(super) const TERMS_IN_F32: usize = 256;

/// A statistic that is a sum over the columns.
pub(super) trait Formula {
    /// Its name in messages.
    const NAME: &'static str;
    /// t(x, x) = 0; otherwise t(x, x) is the size of x.
    const IS_DISTANCE: bool;
    /// What the size of a sample is.
    const SIZE: Size;
    /// It has no meaning for values below 0.
    const NEEDS_NONNEGATIVE: bool;

    /// The term of a column.
    fn term<N: Number>(x: N, y: N) -> N;

    /// What a column in which neither value is 0 adds to the sum of the samples' sizes (of a distance), or to 0.
    fn common(x: f64, y: f64) -> f64;
}

/// The size of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// Σx²
    Squares,
    /// Σ|x|
    Absolute,
}

/// Evaluates an expression with the formula of a statistic as a type.
macro_rules! with_formula {
    ($statistic:expr, $formula:ident => $body:expr) => {{
        use crate::kernel::statistic::{Statistic, formulas};
        match $statistic {
            Statistic::Dot | Statistic::UnitDot | Statistic::Spectrum { .. } => {
                type $formula = formulas::Dot;
                $body
            }
            Statistic::SquaredDistance => {
                type $formula = formulas::SquaredDistance;
                $body
            }
            Statistic::L1 => {
                type $formula = formulas::L1;
                $body
            }
            Statistic::Chi2 => {
                type $formula = formulas::Chi2;
                $body
            }
            Statistic::Intersection => {
                type $formula = formulas::Intersection;
                $body
            }
            Statistic::WeightedDegree { .. } | Statistic::Given => {
                unreachable!("only statistics of numbers are sums over columns")
            }
        }
    }};
}
pub(super) use with_formula;
