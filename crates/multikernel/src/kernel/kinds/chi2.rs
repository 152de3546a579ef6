//! The exponential χ² kernel of histograms.

use super::{KernelSpec, Key, KindInfo, LooksAt, Parameter, Statistic, Values, Width};

pub(super) const CHI2: KindInfo = KindInfo {
    name: "chi2",
    formula: "exp(−Σ(x−x')²/(x+x')/w)",
    keys: &[Key::width()],
    looks_at: LooksAt::Numbers,
    also_called: &["chi-squared"],
    values: Values::Of(|kind, _| (Statistic::Chi2, kind.exponential())),
};

impl KernelSpec {
    /// exp(−Σ(x−x')²/(x+x')/w)
    pub fn chi2(width: Width) -> KernelSpec {
        KernelSpec::of(&CHI2, vec![Parameter::Width(width)])
    }
}
