//! The weighted-degree kernel of strings.

use super::{KernelSpec, Key, KindInfo, LooksAt, Parameter, Profile, Statistic, Values};

pub(super) const WEIGHTED_DEGREE: KindInfo = KindInfo {
    name: "weighted-degree",
    formula: "matching k-mers at the same (or shifted) positions, k = 1…degree",
    keys: &[
        Key::count("degree", "10", 1, "longest k-mer"),
        Key::count("shift", "0", 0, "largest shift"),
    ],
    looks_at: LooksAt::Strings,
    also_called: &["wd"],
    values: Values::Of(|kind, _| {
        let (degree, shift) = (kind.count("degree"), kind.count("shift"));
        (
            Statistic::WeightedDegree { degree, shift },
            Profile::Identity,
        )
    }),
};

impl KernelSpec {
    /// Matching k-mers at positions that differ by at most `shift`, k = 1…`degree`.
    pub fn weighted_degree(degree: u32, shift: u32) -> KernelSpec {
        let parameters = [degree, shift].map(|count| Parameter::Count(u64::from(count)));
        KernelSpec::of(&WEIGHTED_DEGREE, parameters.to_vec())
    }
}
