//! What a user writes for a loss.

use super::{LOSSES, Loss, LossInfo, multiclass, scalar::Made};
use crate::data::Task;
use crate::error::{Error, Result, one_of};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A loss as a user names it: a name of [`LOSSES`], with a parameter behind a colon where it has one.
///
/// Parsing what [`Display`](fmt::Display) shows gives the same value again; a parameter that is left out is the usual one.
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

    /// The losses of one score that suit a task, as they are written: "hinge, squared-hinge, logistic or squared".
    pub fn that_suit(task: Task) -> String {
        let suits = |info: &&&LossInfo| info.tasks.contains(&task);
        one_of(LOSSES.iter().filter(suits).map(|info| info.usage()))
    }
}

impl fmt::Display for LossSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossSpec::Scalar(loss) => loss.fmt(f),
            LossSpec::MulticlassHinge => f.write_str(multiclass::INFO.name),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)?;
        self.parameter()
            .map_or(Ok(()), |value| write!(f, ":{value}"))
    }
}

impl FromStr for LossSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let info = LOSSES.iter().find(|info| info.name == name);
        match (info.map(|info| info.made), parameter) {
            (Some(Made::Plain(loss)), None) => Ok(loss),
            (Some(Made::With { usual, make, .. }), parameter) => {
                let value = number(text, parameter.unwrap_or(usual))?;
                make(value).map(LossSpec::Scalar)
            }
            _ => Err(Error::input(
                "loss",
                format!("'{text}' is not known"),
                format!("give {}", one_of(LOSSES.iter().map(|info| info.usage()))),
            )),
        }
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
