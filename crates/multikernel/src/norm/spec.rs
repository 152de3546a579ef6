//! What a user writes for a norm, kept as written.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{block, elastic, mixed, nonisotropic};
use crate::error::{Error, Result, one_of};

/// A number from 1 to infinity, kept as the fraction it was written as.
///
/// `4/3` stays 4 and 3, so that exponents derived from it (the 8 of its dual norm) come out as exact integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exponent {
    numerator: f64,
    denominator: f64,
}

impl Exponent {
    /// An exponent from a plain number; `f64::INFINITY` is allowed.
    pub fn new(value: f64) -> Result<Self> {
        Self::fraction(value, 1.0)
    }

    /// An exponent from a fraction.
    pub fn fraction(numerator: f64, denominator: f64) -> Result<Self> {
        if denominator == 0.0 {
            return Err(Error::input(
                "norm",
                format!("the exponent {numerator}/0 divides by 0"),
                "give a number from 1 on, a fraction like 4/3, or inf",
            ));
        }
        let value = numerator / denominator;
        if value >= 1.0 && denominator > 0.0 && denominator.is_finite() {
            Ok(Self {
                numerator,
                denominator,
            })
        } else {
            Err(Error::input(
                "norm",
                format!("the exponent is {value}"),
                "give a number from 1 to inf; fractions like 4/3 are allowed",
            ))
        }
    }

    /// Its value.
    pub fn value(self) -> f64 {
        self.numerator / self.denominator
    }

    /// Numerator and denominator as written; the denominator is 1 for a plain number.
    pub fn parts(self) -> (f64, f64) {
        (self.numerator, self.denominator)
    }
}

impl fmt::Display for Exponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.numerator)?;
        if self.denominator != 1.0 {
            write!(f, "/{}", self.denominator)?;
        }
        Ok(())
    }
}

impl FromStr for Exponent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "inf" {
            return Self::new(f64::INFINITY);
        }
        let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
        match (finite(numerator), finite(denominator)) {
            (Some(numerator), Some(denominator)) => Self::fraction(numerator, denominator),
            _ => Err(Error::input(
                "norm",
                format!("'{text}' is not an exponent"),
                "give a number from 1 to inf; fractions like 4/3 are allowed",
            )),
        }
    }
}

pub(super) fn finite(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
}

/// All norms that a user may name, in the order in which help and sentences list them; each row stands with its norm.
pub static NORMS: &[NormInfo] = &[
    block::LP,
    block::BLOCK,
    block::BLOCK_AUTO,
    mixed::MIXED,
    elastic::ELASTIC,
    nonisotropic::NON_ISOTROPIC,
];

/// How a user names a norm.
#[derive(Debug, Clone, Copy)]
pub struct NormInfo {
    /// What stands before the argument; of a norm without one all of it.
    pub name: &'static str,
    /// What its argument is called in help, if it has one.
    pub argument: Option<&'static str>,
    /// What it is.
    pub means: &'static str,
    /// The norm with this argument (empty where it has none).
    pub(super) read: fn(&str) -> Result<NormSpec>,
}

impl NormInfo {
    /// As it is written, with the name of its argument: `elastic:MU`.
    pub fn usage(&self) -> String {
        match self.argument {
            Some(argument) => format!("{}:{argument}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// The norm that `text` names, if it is this one.
    fn named(&self, text: &str) -> Option<Result<NormSpec>> {
        match (self.argument, text.split_once(':')) {
            (None, _) if text == self.name => Some((self.read)("")),
            (Some(_), Some((name, argument))) if name == self.name && !argument.is_empty() => {
                Some((self.read)(argument))
            }
            _ => None,
        }
    }
}

/// A norm as a user names it: `lp:4/3`, `lp:inf`, `block:1.25`, `block:auto`, `mixed`, `elastic:0.5`, `noniso:E.npy`.
///
/// Parsing what [`Display`](fmt::Display) shows gives the same value again.
/// [`Norm::new`](super::Norm::new) makes it computable for given kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum NormSpec {
    /// Kloft's p on the kernel weights: the block norm 2p/(p+1).
    Lp(Exponent),
    /// The exponent on the group norms themselves.
    Block(Exponent),
    /// The block norm that makes the price of M kernels logarithmic (OM-2's corollary).
    BlockAuto,
    /// The largest over groups of kernels of the sum within the group.
    Mixed,
    /// Ω² = (1−μ)‖g‖₁² + μ‖g‖₂², with this μ.
    Elastic(f64),
    /// Kloft's non-isotropic norm, with the matrix E in this file.
    NonIsotropic(PathBuf),
}

impl NormSpec {
    /// The part before the colon.
    pub fn kind(&self) -> &'static str {
        match self {
            NormSpec::Lp(_) => "lp",
            NormSpec::Block(_) | NormSpec::BlockAuto => "block",
            NormSpec::Mixed => "mixed",
            NormSpec::Elastic(_) => "elastic",
            NormSpec::NonIsotropic(_) => "noniso",
        }
    }
}

impl Default for NormSpec {
    /// `lp:4/3`
    fn default() -> Self {
        NormSpec::Lp(Exponent {
            numerator: 4.0,
            denominator: 3.0,
        })
    }
}

impl fmt::Display for NormSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        match self {
            NormSpec::Lp(exponent) | NormSpec::Block(exponent) => write!(f, ":{exponent}"),
            NormSpec::BlockAuto => f.write_str(":auto"),
            NormSpec::Mixed => Ok(()),
            NormSpec::Elastic(mu) => write!(f, ":{mu}"),
            NormSpec::NonIsotropic(file) => write!(f, ":{}", file.display()),
        }
    }
}

impl FromStr for NormSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // What is written out stands before what has an argument: block:auto is no exponent.
        let whole = NORMS.iter().filter(|info| info.argument.is_none());
        let others = NORMS.iter().filter(|info| info.argument.is_some());
        let known = whole.chain(others).find_map(|info| info.named(text));
        known.unwrap_or_else(|| {
            Err(Error::input(
                "norm",
                format!("'{text}' is not known"),
                format!("give {}", one_of(NORMS.iter().map(NormInfo::usage))),
            ))
        })
    }
}

impl TryFrom<String> for NormSpec {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<NormSpec> for String {
    fn from(spec: NormSpec) -> String {
        spec.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_by_zero_is_called_one() {
        let said = "lp:1/0".parse::<NormSpec>().unwrap_err().to_string();
        assert!(said.contains("1/0 divides by 0; give a number"), "{said}");
    }

    #[test]
    fn what_is_written_comes_back() {
        for text in [
            "lp:4/3",
            "lp:1",
            "lp:inf",
            "lp:1.0001",
            "block:1.25",
            "block:inf",
            "block:7/6",
            "block:auto",
            "mixed",
            "elastic:0.25",
            "noniso:some folder/E.npy",
        ] {
            let spec: NormSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
            let json = serde_json::to_string(&spec).unwrap();
            assert_eq!(serde_json::from_str::<NormSpec>(&json).unwrap(), spec);
        }
        assert_eq!(NormSpec::default().to_string(), "lp:4/3");
    }

    #[test]
    fn nonsense_is_refused_in_one_sentence() {
        for text in [
            "",
            "lp",
            "lp:",
            "lp:0.5",
            "lp:nan",
            "lp:-inf",
            "lp:1e999",
            "lp:4/0",
            "lp:4/-3",
            "lp:3/4",
            "lp:inf/inf",
            "lp:auto",
            "block:0",
            "mixed:2",
            "elastic:1.5",
            "elastic:nan",
            "noniso:",
            "l2:3",
        ] {
            let error = text.parse::<NormSpec>().unwrap_err().to_string();
            assert!(
                !error.contains('\n') && error.contains("; give"),
                "{text}: {error}"
            );
        }
    }
}
