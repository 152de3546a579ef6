//! ‖x − y‖²

use super::{Formula, Number, Size};

pub(crate) struct SquaredDistance;

impl Formula for SquaredDistance {
    const NAME: &'static str = "squared distance";
    const IS_DISTANCE: bool = true;
    const SIZE: Size = Size::Squares;
    const NEEDS_NONNEGATIVE: bool = false;

    #[inline(always)]
    fn term<N: Number>(x: N, y: N) -> N {
        (x - y) * (x - y)
    }

    #[inline(always)]
    fn common(x: f64, y: f64) -> f64 {
        -2.0 * x * y
    }
}
