//! A toy: powers of the dot product. Only tests know it; the guide shows it as the way to add a kind of kernel.

use super::{Holds, Key, KindInfo, LooksAt, Profile, Statistic, Values};

pub(super) const POWER: KindInfo = KindInfo {
    name: "power",
    formula: "(x·x')^d",
    keys: &[Key {
        name: "degree",
        default: "2",
        means: "d",
        holds: Holds::Count { least: 1, most: 9 },
    }],
    looks_at: LooksAt::Numbers,
    also_called: &["monomial"],
    values: Values::Of(|kind, _| {
        let profile = Profile::Poly {
            gamma: 1.0,
            coef0: 0.0,
            degree: kind.count("degree") as u32,
        };
        (Statistic::Dot, profile)
    }),
};
