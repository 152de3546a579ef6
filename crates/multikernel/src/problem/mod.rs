//! What is to be solved, when to stop, and how far a result is from the optimum.

mod certificate;
mod objective;
mod progress;

pub use certificate::*;
pub(crate) use objective::Gradient;
pub use objective::Objective;
pub use progress::{Limits, Round, Solution, Start, Status};
