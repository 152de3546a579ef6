//! The choices of training that are words.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::str::FromStr;

/// How several classes are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Multiclass {
    /// Three or more classes jointly where loss and solver allow it, else one-vs-rest; two classes by one score.
    #[default]
    Auto,
    /// One problem with a score for every class and one set of kernel weights.
    Joint,
    /// Each class against all others.
    OneVsRest,
    /// Each class against each other.
    OneVsOne,
}

/// Whether there is a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bias {
    /// On for problems of one score except one-class, off for the joint problem of several classes.
    #[default]
    Auto,
    /// There is one; in the joint problem it is one more kernel, which is constant.
    On,
    /// There is none.
    Off,
}

/// Weights of the classes: the cost of a sample is C times its class's weight times its own.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ClassWeight {
    /// All 1.
    #[default]
    None,
    /// n/(number of classes · samples of the class): every class costs the same.
    Balanced,
    /// By name; classes that are not named have weight 1.
    Given(BTreeMap<String, f64>),
}

pub(super) fn unknown(option: &str, text: &str, remedy: &str) -> Error {
    Error::input(option, format!("'{text}' is not known"), remedy)
}

impl FromStr for Multiclass {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Multiclass::Auto),
            "ovr" => Ok(Multiclass::OneVsRest),
            "ovo" => Ok(Multiclass::OneVsOne),
            "joint" => Ok(Multiclass::Joint),
            _ => Err(unknown("multiclass", text, "give joint, ovr or ovo")),
        }
    }
}

impl FromStr for Bias {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Bias::Auto),
            "on" => Ok(Bias::On),
            "off" => Ok(Bias::Off),
            _ => Err(unknown("bias", text, "give auto, on or off")),
        }
    }
}

/// `none`, `balanced` or `a=2,b=1`.
impl FromStr for ClassWeight {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "none" => return Ok(ClassWeight::None),
            "balanced" => return Ok(ClassWeight::Balanced),
            _ => {}
        }
        let mut weights = BTreeMap::new();
        for part in text.split(',') {
            // A class's name may hold '=', a number may not.
            let parsed = part
                .rsplit_once('=')
                .and_then(|(name, weight)| Some((name.trim(), weight.trim().parse::<f64>().ok()?)));
            let Some((name, weight)) = parsed else {
                return Err(Error::input(
                    "class-weight",
                    format!("'{part}' is not a class and its weight"),
                    "give balanced, or weights such as a=2,b=1",
                ));
            };
            if weights.insert(name.to_owned(), weight).is_some() {
                return Err(Error::input(
                    "class-weight",
                    format!("class '{name}' has two weights"),
                    "give one",
                ));
            }
        }
        Ok(ClassWeight::Given(weights))
    }
}
