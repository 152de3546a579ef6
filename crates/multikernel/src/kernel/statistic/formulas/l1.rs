//! ‖x − y‖₁

use super::{Formula, Number, Size};

pub(crate) struct L1;

impl Formula for L1 {
    const NAME: &'static str = "l1 distance";
    const IS_DISTANCE: bool = true;
    const SIZE: Size = Size::Absolute;
    const NEEDS_NONNEGATIVE: bool = false;

    #[inline(always)]
    fn term<N: Number>(x: N, y: N) -> N {
        (x - y).abs()
    }

    #[inline(always)]
    fn common(x: f64, y: f64) -> f64 {
        (x - y).abs() - x.abs() - y.abs()
    }
}
