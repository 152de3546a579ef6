//! Losses ℓ(t, y) of a score t and a target y: value, subgradient, conjugate, and the bias that suits them best.
//!
//! A loss sees scores, never data. In the dual of ½Ω² + Σ C_i ℓ(f_i, y_i) a loss appears as −C_i ℓ*(−a_i/C_i, y_i), here
//! [`Loss::dual_term`], finite for a_i in [`Loss::feasible`]. [`Loss`] has one score per sample, and each is a file with
//! its [`LossInfo`] and its `Formula`, and a line in the table below; [`multiclass`] has one score per class.

mod bias;
mod epsilon;
mod hinge;
mod huber;
mod logistic;
pub mod multiclass;
mod one_class;
mod scalar;
mod spec;
mod squared;
mod squared_hinge;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod toy;

pub use scalar::{LOSSES, Loss, LossInfo};
pub use spec::LossSpec;
