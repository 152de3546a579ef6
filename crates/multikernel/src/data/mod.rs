//! Samples described by named views, and what is to be learned about them.

mod matrix;
mod pairwise;
mod views;

pub use matrix::{Csr, Dense};
pub use pairwise::Pairwise;
pub use views::{View, ViewData, Views};
