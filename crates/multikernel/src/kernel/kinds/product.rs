//! The product of kernels.

use super::{Combine, KernelSpec, Key, KindInfo, LooksAt, Parameter, Values};

pub(super) const PRODUCT: KindInfo = KindInfo {
    name: "product",
    formula: "the product of named kernels",
    keys: &[Key::made_of("a*b")],
    looks_at: LooksAt::Kernels,
    also_called: &[],
    values: Values::Combined(Combine::Product),
};

impl KernelSpec {
    /// The product of the kernels of these names.
    pub fn product(of: Vec<String>) -> KernelSpec {
        KernelSpec::of(&PRODUCT, vec![Parameter::Names(of)])
    }
}
