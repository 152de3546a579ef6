//! The Laplacian kernel.

use super::{KernelSpec, Key, KindInfo, LooksAt, Parameter, Statistic, Values, Width};

pub(super) const LAPLACIAN: KindInfo = KindInfo {
    name: "laplacian",
    formula: "exp(−‖x−x'‖₁/w)",
    keys: &[Key::width()],
    looks_at: LooksAt::Numbers,
    also_called: &["l1"],
    values: Values::Of(|kind, _| (Statistic::L1, kind.exponential())),
};

impl KernelSpec {
    /// exp(−‖x−x'‖₁/w)
    pub fn laplacian(width: Width) -> KernelSpec {
        KernelSpec::of(&LAPLACIAN, vec![Parameter::Width(width)])
    }
}
