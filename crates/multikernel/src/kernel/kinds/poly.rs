//! The polynomial kernel.

use super::{Holds, KernelSpec, Key, KindInfo, LooksAt, Parameter, Profile, Statistic, Values};

pub(super) const POLY: KindInfo = KindInfo {
    name: "poly",
    formula: "(γ x·x' + c)^d",
    keys: &[
        Key {
            name: "degree",
            default: "2",
            means: "d",
            // Polynomials beyond this leave the range of 32-bit numbers.
            holds: Holds::Count {
                least: 1,
                most: 100,
            },
        },
        Key {
            name: "coef0",
            default: "1",
            means: "c",
            holds: Holds::NotNegative,
        },
        Key {
            name: "gamma",
            default: "1",
            means: "γ",
            holds: Holds::Positive,
        },
    ],
    looks_at: LooksAt::Numbers,
    also_called: &["polynomial"],
    values: Values::Of(|kind, _| {
        let profile = Profile::Poly {
            gamma: kind.number("gamma"),
            coef0: kind.number("coef0"),
            degree: kind.count("degree") as u32,
        };
        (Statistic::Dot, profile)
    }),
};

impl KernelSpec {
    /// (γ x·x' + c)^d with c = `coef0`
    pub fn poly(degree: u32, coef0: f64, gamma: f64) -> KernelSpec {
        let degree = Parameter::Count(u64::from(degree));
        let numbers = [coef0, gamma].map(Parameter::Number);
        KernelSpec::of(&POLY, std::iter::once(degree).chain(numbers).collect())
    }
}
