//! The Gaussian kernel.

use super::{KernelSpec, Key, KindInfo, LooksAt, Parameter, Statistic, Values, Width};

pub(super) const RBF: KindInfo = KindInfo {
    name: "rbf",
    formula: "exp(−‖x−x'‖²/w)",
    keys: &[Key::width()],
    looks_at: LooksAt::Numbers,
    also_called: &["gaussian", "gauss"],
    values: Values::Of(|kind, _| (Statistic::SquaredDistance, kind.exponential())),
};

impl KernelSpec {
    /// exp(−‖x−x'‖²/w)
    pub fn rbf(width: Width) -> KernelSpec {
        KernelSpec::of(&RBF, vec![Parameter::Width(width)])
    }
}
