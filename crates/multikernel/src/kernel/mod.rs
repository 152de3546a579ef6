//! Kernels: what each one is, and how its values are made.
//!
//! A kernel is a *statistic* of one view (one number t for each pair of samples) and a scalar *profile* of it:
//! k(x, x') = φ(t(x, x')). Kernels over the same statistic are a family and cost what one kernel costs.

mod kinds;
mod profile;
mod spec;
pub mod statistic;

pub(crate) use kinds::Combine;
pub use kinds::{Holds, KINDS, Key, Kind, KindInfo, LooksAt, Width};
pub use profile::Profile;
pub use spec::{KernelSpec, Normalize, choose, default_bank, default_bank_in_words, expand};
