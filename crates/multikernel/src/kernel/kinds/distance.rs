//! The exponential kernel of distances that were given.

use super::{KernelSpec, Key, KindInfo, LooksAt, Parameter, Statistic, Values, Width};

pub(super) const DISTANCE: KindInfo = KindInfo {
    name: "distance",
    formula: "exp(−d/w) of a given distance matrix",
    keys: &[Key::width()],
    looks_at: LooksAt::Matrix,
    also_called: &[],
    values: Values::Of(|kind, _| (Statistic::Given, kind.exponential())),
};

impl KernelSpec {
    /// exp(−d/w) of a given distance matrix
    pub fn distance(width: Width) -> KernelSpec {
        KernelSpec::of(&DISTANCE, vec![Parameter::Width(width)])
    }
}
