//! The linear kernel, a dot product.

use super::{KernelSpec, KindInfo, LooksAt, Normalize, Profile, Statistic, Values};

pub(super) const LINEAR: KindInfo = KindInfo {
    name: "linear",
    formula: "x·x'",
    keys: &[],
    looks_at: LooksAt::Numbers,
    also_called: &["dot"],
    values: Values::Of(|_, normalize| {
        // Rows of unit length have the same values as k(x,x')/√(k(x,x) k(x',x')), and cost no factors.
        let statistic = match normalize {
            Normalize::Spherical => Statistic::UnitDot,
            _ => Statistic::Dot,
        };
        (statistic, Profile::Identity)
    }),
};

impl KernelSpec {
    /// x·x'
    pub fn linear() -> KernelSpec {
        KernelSpec::of(&LINEAR, Vec::new())
    }
}
