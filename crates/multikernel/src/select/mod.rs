//! Choosing by cross-validation: folds, and what models trained on some of the samples are worth on the others.
//!
//! All folds and all points of a grid share one Gram: a fold is a subset of its rows and columns, nothing is computed twice.
//! What kernels take from the data as a whole (widths such as `mean`, factors and means of normalisations) then comes from all
//! samples, those of the fold's other part included. It never sees a target, and the note [`SHARED`] says so; the nested
//! cross-validation of [`Recipe::nested`] fits it anew for every outer fold.

mod calibrate;
mod checkpoint;
mod choose;
mod evaluate;
mod grid;
mod nested;
pub mod stability;

pub use checkpoint::{Checkpoint, Identity};
pub use choose::{Rule, choose};
pub use evaluate::{Bootstrap, Known, evaluate};
pub(crate) use evaluate::{interval, resampled};
pub use grid::{Fit, Grid, Tried};
pub use nested::{Found, Recipe};

/// What is to be known of folds that share a Gram.
pub const SHARED: &str = "all folds share one set of kernels, whose widths and normalisations come from all samples (never from their targets)";
