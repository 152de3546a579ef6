//! x·y

use super::{Formula, Number, Size};

pub(crate) struct Dot;

impl Formula for Dot {
    const NAME: &'static str = "dot product";
    const IS_DISTANCE: bool = false;
    const SIZE: Size = Size::Squares;
    const NEEDS_NONNEGATIVE: bool = false;

    #[inline(always)]
    fn term<N: Number>(x: N, y: N) -> N {
        x * y
    }

    #[inline(always)]
    fn common(x: f64, y: f64) -> f64 {
        x * y
    }
}
