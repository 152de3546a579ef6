//! Multiple kernel learning: several kernels, one convex problem, a predictor and a weight for every kernel.
#![deny(missing_docs)]

pub mod baseline;
pub mod certificate;
pub mod data;
pub mod dual;
mod eigen;
pub mod error;
pub mod gram;
pub mod inspect;
pub mod kernel;
pub mod loss;
mod math;
pub mod metrics;
pub mod mkl;
pub mod model;
pub mod norm;
pub mod observe;
pub mod random;
pub mod result;

pub use error::{Error, Result};
pub use mkl::{Fitted, Mkl};
pub use model::Model;
