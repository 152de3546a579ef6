//! The histogram intersection kernel.

use super::{KernelSpec, KindInfo, LooksAt, Profile, Statistic, Values};

pub(super) const INTERSECTION: KindInfo = KindInfo {
    name: "intersection",
    formula: "Σ min(x, x')",
    keys: &[],
    looks_at: LooksAt::Numbers,
    also_called: &["histogram", "min"],
    values: Values::Of(|_, _| (Statistic::Intersection, Profile::Identity)),
};

impl KernelSpec {
    /// Σ min(x, x')
    pub fn intersection() -> KernelSpec {
        KernelSpec::of(&INTERSECTION, Vec::new())
    }
}
