//! Σ (x − y)²/(x + y), 0/0 = 0

use super::{Formula, Number, Size};

pub(crate) struct Chi2;

impl Formula for Chi2 {
    const NAME: &'static str = "chi2";
    const IS_DISTANCE: bool = true;
    const SIZE: Size = Size::Absolute;
    const NEEDS_NONNEGATIVE: bool = true;

    #[inline(always)]
    fn term<N: Number>(x: N, y: N) -> N {
        // 0/0: the numerator is 0, so any positive denominator gives the 0 we want.
        (x - y) * ((x - y) / (x + y).at_least_tiny())
    }

    #[inline(always)]
    fn common(x: f64, y: f64) -> f64 {
        // (x − y)²/(x + y) − x − y
        -4.0 * x * y / (x + y).at_least_tiny()
    }
}
