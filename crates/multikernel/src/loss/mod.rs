//! Losses ℓ(t, y) of a score t and a target y: value, subgradient, conjugate, and the bias that suits them best.
//!
//! A loss sees scores, never data. In the dual of ½Ω² + Σ C_i ℓ(f_i, y_i) a loss appears as −C_i ℓ*(−a_i/C_i, y_i), here
//! [`Loss::dual_term`], finite for a_i in [`Loss::feasible`]. [`Loss`] has one score per sample;
//! [`multiclass`] has one per class.

mod bias;
pub mod multiclass;
mod scalar;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use scalar::Loss;

use crate::error::{Error, Result};

/// A loss as a user names it: `hinge`, `squared-hinge`, `logistic`, `multiclass-hinge`, `epsilon:0.1`, `squared`, `huber:1`,
/// `one-class`.
///
/// Parsing what [`Display`](fmt::Display) shows gives the same value again; `epsilon` and `huber` alone take 0.1 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LossSpec {
    /// One score per sample.
    Scalar(Loss),
    /// Crammer and Singer's hinge on one score per class, see [`multiclass`].
    MulticlassHinge,
}

impl LossSpec {
    /// The loss, if it is one of a single score.
    pub fn scalar(self) -> Option<Loss> {
        match self {
            LossSpec::Scalar(loss) => Some(loss),
            LossSpec::MulticlassHinge => None,
        }
    }
}

impl fmt::Display for LossSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossSpec::Scalar(Loss::Hinge) => f.write_str("hinge"),
            LossSpec::Scalar(Loss::SquaredHinge) => f.write_str("squared-hinge"),
            LossSpec::Scalar(Loss::Logistic) => f.write_str("logistic"),
            LossSpec::Scalar(Loss::Epsilon(epsilon)) => write!(f, "epsilon:{epsilon}"),
            LossSpec::Scalar(Loss::Squared) => f.write_str("squared"),
            LossSpec::Scalar(Loss::Huber(delta)) => write!(f, "huber:{delta}"),
            LossSpec::Scalar(Loss::OneClass) => f.write_str("one-class"),
            LossSpec::MulticlassHinge => f.write_str("multiclass-hinge"),
        }
    }
}

impl FromStr for LossSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let scalar = match (name, parameter) {
            ("hinge", None) => Loss::Hinge,
            ("squared-hinge", None) => Loss::SquaredHinge,
            ("logistic", None) => Loss::Logistic,
            ("squared", None) => Loss::Squared,
            ("one-class", None) => Loss::OneClass,
            ("epsilon", parameter) => Loss::epsilon(number(text, parameter.unwrap_or("0.1"))?)?,
            ("huber", parameter) => Loss::huber(number(text, parameter.unwrap_or("1"))?)?,
            ("multiclass-hinge", None) => return Ok(LossSpec::MulticlassHinge),
            _ => {
                return Err(Error::input(
                    "loss",
                    format!("'{text}' is not known"),
                    "give hinge, squared-hinge, logistic, multiclass-hinge, epsilon:EPS, squared, huber:DELTA or one-class",
                ));
            }
        };
        Ok(LossSpec::Scalar(scalar))
    }
}

fn number(text: &str, parameter: &str) -> Result<f64> {
    parameter.trim().parse().map_err(|_| {
        Error::input(
            format!("loss {text}"),
            format!("'{parameter}' is not a number"),
            "give one, such as epsilon:0.1 or huber:1",
        )
    })
}

impl TryFrom<String> for LossSpec {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<LossSpec> for String {
    fn from(spec: LossSpec) -> String {
        spec.to_string()
    }
}

impl TryFrom<String> for Loss {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        let spec: LossSpec = text.parse()?;
        spec.scalar().ok_or_else(|| {
            Error::input(
                "loss",
                format!("'{text}' has one score per class"),
                "give a loss with one score per sample",
            )
        })
    }
}

impl From<Loss> for String {
    fn from(loss: Loss) -> String {
        loss.to_string()
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LossSpec::Scalar(*self).fmt(f)
    }
}

#[cfg(test)]
mod tests;
