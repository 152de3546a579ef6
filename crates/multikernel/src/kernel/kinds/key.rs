//! Keys of kernels: what a parameter may hold, how it is read, checked and shown.

use super::super::spec::{Fields, Value, number, out_of_range, short};
use crate::error::{Error, Result};
use serde::Serialize;

/// A parameter of a kind of kernel.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it is where it is left out, as it would be written; for names of kernels an example.
    pub default: &'static str,
    /// What it means.
    pub means: &'static str,
    /// What it may hold.
    #[serde(skip)]
    pub holds: Holds,
}

/// What the parameter under a key may be.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Holds {
    /// A whole number from `least` to `most`.
    Count {
        /// The smallest that is possible.
        least: u32,
        /// The largest that is possible.
        most: u32,
    },
    /// A number above 0.
    Positive,
    /// A number from 0 on; below it the kernel matrix is not positive semidefinite.
    NotNegative,
    /// A width, or gamma, which is one over a width.
    Width,
    /// Names of at least two kernels.
    Names,
}

/// The width w of an exponential kernel exp(−t/w).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Width {
    /// This number times the mean of t over pairs of different training samples.
    Mean(f64),
    /// This number times the median of t over pairs of different training samples.
    Median(f64),
    /// This number.
    Value(f64),
    /// One over this number.
    Gamma(f64),
}

/// What stands under a key.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Parameter {
    Count(u64),
    Number(f64),
    Width(Width),
    Names(Vec<String>),
}

impl Default for Width {
    /// `mean`
    fn default() -> Self {
        Width::Mean(1.0)
    }
}

impl Width {
    /// Whether it is chosen by the distances between samples.
    pub fn is_chosen_by_data(self) -> bool {
        matches!(self, Width::Mean(_) | Width::Median(_))
    }

    /// The number it stands for; the factor while it is not yet chosen by the data.
    pub(crate) fn number(self) -> f64 {
        match self {
            Width::Value(number) | Width::Mean(number) | Width::Median(number) => number,
            Width::Gamma(gamma) => 1.0 / gamma,
        }
    }

    /// `mean` or `mean*0.5`, with a factor other than 1 by `shown`; a number alone.
    #[allow(clippy::float_cmp, reason = "exactly 1 is what is left out")]
    fn times(self, shown: impl Fn(f64) -> String) -> String {
        let word = match self {
            Width::Mean(_) => "mean",
            Width::Median(_) => "median",
            Width::Value(_) | Width::Gamma(_) => return shown(self.number()),
        };
        match self.number() {
            1.0 => word.to_owned(),
            factor => format!("{word}*{}", shown(factor)),
        }
    }
}

/// The key of a width and its second spelling.
const WIDTH: [&str; 2] = ["width", "gamma"];

impl Key {
    /// The key of a whole number without an upper bound. (Kept below what u32 holds, so that a description means the
    /// same on every machine.)
    pub(super) const fn count(
        name: &'static str,
        default: &'static str,
        least: u32,
        means: &'static str,
    ) -> Key {
        Key {
            name,
            default,
            means,
            holds: Holds::Count {
                least,
                most: u32::MAX,
            },
        }
    }

    /// The key of the width of an exponential kernel.
    pub(super) const fn width() -> Key {
        Key {
            name: WIDTH[0],
            default: "mean",
            means: "w: a number, mean, mean*0.5, median … of the distances between training samples; or gamma, which is 1/w",
            holds: Holds::Width,
        }
    }

    /// The key of the kernels that a kernel is made of; `example` shows the sign between them.
    pub(super) const fn made_of(example: &'static str) -> Key {
        Key {
            name: "of",
            default: example,
            means: "names of at least two kernels that stand before it",
            holds: Holds::Names,
        }
    }

    /// `degree=2`
    pub(super) fn usage(&self) -> String {
        format!("{}={}", self.name, self.default)
    }

    /// Its spellings.
    pub(super) fn names(&'static self) -> &'static [&'static str] {
        match self.holds {
            Holds::Width => &WIDTH,
            _ => std::slice::from_ref(&self.name),
        }
    }

    /// Takes its parameter out of the fields of a description.
    pub(in super::super) fn take(&self, fields: &mut Fields) -> Result<Parameter> {
        Ok(match self.holds {
            Holds::Count { least, most } => {
                let range = u64::from(least)..=u64::from(most);
                let given = fields.count(self.name, range)?;
                Parameter::Count(given.or(self.default.parse().ok()).unwrap_or(0))
            }
            Holds::Positive | Holds::NotNegative => {
                let given = fields.number(self.name)?;
                Parameter::Number(given.or(self.default.parse().ok()).unwrap_or(f64::NAN))
            }
            Holds::Width => Parameter::Width(fields.width()?.unwrap_or_default()),
            Holds::Names => Parameter::Names(fields.list(self.name)?),
        })
    }

    /// Whether the parameter is in the range where the kernel of this kind is one.
    pub(in super::super) fn check(&self, parameter: &Parameter, kind: &str) -> Result<()> {
        let positive = |key: &str, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(out_of_range(key, &number(value), "a number above 0")),
        };
        match (parameter, self.holds) {
            (Parameter::Count(count), Holds::Count { least, most }) => {
                if (u64::from(least)..=u64::from(most)).contains(count) {
                    return Ok(());
                }
                let range = match most {
                    u32::MAX => format!("{least} or more"),
                    _ => format!("between {least} and {most}"),
                };
                Err(out_of_range(self.name, &count.to_string(), &range))
            }
            (Parameter::Number(value), Holds::NotNegative) => {
                if value.is_finite() && *value >= 0.0 {
                    return Ok(());
                }
                let range = "0 or more (below 0 the kernel matrix is not positive semidefinite)";
                Err(out_of_range(self.name, &number(*value), range))
            }
            (Parameter::Number(value), _) => positive(self.name, *value),
            (Parameter::Width(Width::Gamma(gamma)), _) => positive(WIDTH[1], *gamma),
            (Parameter::Width(width), _) => positive(WIDTH[0], width.number()),
            (Parameter::Names(names), _) => {
                let named = names.iter().filter(|name| !name.is_empty()).count();
                if named >= 2 && named == names.len() {
                    return Ok(());
                }
                Err(Error::input(
                    "",
                    format!("{} names {named} kernels", self.name),
                    format!("a {kind} needs at least two, as in {}=a*b", self.name),
                ))
            }
            (parameter, holds) => unreachable!("{parameter:?} under a key of {holds:?}"),
        }
    }

    /// The parameter as a field of a description.
    pub(in super::super) fn field(&self, parameter: &Parameter) -> (&'static str, Value) {
        match parameter {
            Parameter::Count(count) => (self.name, Value::Count(*count)),
            Parameter::Number(value) => (self.name, Value::Number(*value)),
            Parameter::Width(Width::Value(width)) => (WIDTH[0], Value::Number(*width)),
            Parameter::Width(Width::Gamma(gamma)) => (WIDTH[1], Value::Number(*gamma)),
            Parameter::Width(width) => (WIDTH[0], Value::Text(width.times(number))),
            Parameter::Names(names) => (self.name, Value::List(names.clone())),
        }
    }

    /// The parameter in a kernel's name: the first of a kind without its key, the others where they are not what is usual.
    pub(in super::super) fn in_name(&self, parameter: &Parameter, first: bool) -> Option<String> {
        let shown = match parameter {
            Parameter::Count(count) => count.to_string(),
            Parameter::Number(value) => short(*value),
            Parameter::Width(Width::Value(width)) => short(*width),
            Parameter::Width(Width::Gamma(gamma)) => format!("{}={}", WIDTH[1], short(*gamma)),
            Parameter::Width(width) => width.times(short),
            Parameter::Names(_) => return None,
        };
        let usual = shown == self.default;
        match first {
            true => Some(shown),
            false => (!usual).then(|| format!("{}={shown}", self.name)),
        }
    }
}
