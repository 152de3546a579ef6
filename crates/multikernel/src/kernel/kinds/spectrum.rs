//! The spectrum kernel of strings.

use super::{KernelSpec, Key, KindInfo, LooksAt, Parameter, Profile, Statistic, Values};

pub(super) const SPECTRUM: KindInfo = KindInfo {
    name: "spectrum",
    formula: "dot product of k-mer counts",
    keys: &[Key::count("k", "3", 1, "length of the k-mers")],
    looks_at: LooksAt::Strings,
    also_called: &["kmer"],
    values: Values::Of(|kind, _| {
        let k = kind.count("k");
        (Statistic::Spectrum { k }, Profile::Identity)
    }),
};

impl KernelSpec {
    /// The dot product of the counts of k-mers.
    pub fn spectrum(k: u32) -> KernelSpec {
        KernelSpec::of(&SPECTRUM, vec![Parameter::Count(u64::from(k))])
    }
}
