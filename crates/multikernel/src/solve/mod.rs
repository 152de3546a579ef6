//! Solvers. Each room stands on those before it: [`exact`] and `steps` on nothing here, [`search`] on the exact solver's
//! coefficients, [`stochastic`] on the steps.

pub mod exact;
pub mod search;
pub(crate) mod steps;
pub mod stochastic;
