//! Samples described by named views, and what is to be learned about them.
//!
//! [`infer_task`] and [`Targets`] make of [`Labels`] what a solver needs, [`Scaling`] changes features by statistics of the
//! training data, [`Split`] and [`Folds`] hold samples out.

mod dataset;
mod digits;
mod duplicates;
mod folds;
mod labels;
mod matrix;
mod pairwise;
mod scaling;
mod split;
mod views;

pub use dataset::Dataset;
pub use digits::digits;
pub use duplicates::{Merged, merge_copies};
pub use folds::Folds;
pub use labels::{LabelBuilder, LabelKind, Labels, Targets, Task, check_count, infer_task};
pub use matrix::{Csr, Dense};
pub use pairwise::{Mapped, Pairwise};
pub use scaling::{ScaleKind, ScaleOption, Scaling};
pub use split::Split;
pub use views::{View, ViewData, Views, ViewsIter};
