//! Σ min(x, y)

use super::{Formula, Number, Size};

pub(crate) struct Intersection;

impl Formula for Intersection {
    const NAME: &'static str = "intersection";
    const IS_DISTANCE: bool = false;
    const SIZE: Size = Size::Absolute;
    const NEEDS_NONNEGATIVE: bool = true;

    #[inline(always)]
    fn term<N: Number>(x: N, y: N) -> N {
        x.least(y)
    }

    #[inline(always)]
    fn common(x: f64, y: f64) -> f64 {
        x.least(y)
    }
}
