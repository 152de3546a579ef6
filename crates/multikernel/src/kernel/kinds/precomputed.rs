//! A kernel matrix that was given.

use super::{KernelSpec, KindInfo, LooksAt, Profile, Statistic, Values};

pub(super) const PRECOMPUTED: KindInfo = KindInfo {
    name: "precomputed",
    formula: "a given kernel matrix",
    keys: &[],
    looks_at: LooksAt::Matrix,
    also_called: &["gram"],
    values: Values::Of(|_, _| (Statistic::Given, Profile::Identity)),
};

impl KernelSpec {
    /// A given kernel matrix.
    pub fn precomputed() -> KernelSpec {
        KernelSpec::of(&PRECOMPUTED, Vec::new())
    }
}
