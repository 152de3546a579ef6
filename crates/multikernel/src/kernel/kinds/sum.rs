//! The sum of kernels.

use super::{Combine, KernelSpec, Key, KindInfo, LooksAt, Parameter, Values};

pub(super) const SUM: KindInfo = KindInfo {
    name: "sum",
    formula: "the sum of named kernels",
    keys: &[Key::made_of("a+b")],
    looks_at: LooksAt::Kernels,
    also_called: &[],
    values: Values::Combined(Combine::Sum),
};

impl KernelSpec {
    /// The sum of the kernels of these names.
    pub fn sum(of: Vec<String>) -> KernelSpec {
        KernelSpec::of(&SUM, vec![Parameter::Names(of)])
    }
}
