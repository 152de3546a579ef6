//! What scores say and how good they are: predictions, probabilities, metrics.

mod calibration;
mod metric;
pub(crate) mod metrics;
mod scores;

pub use calibration::Calibration;
pub use metric::Metric;
pub use metrics::{Truth, measure};
pub use scores::{Predictions, Scores};
