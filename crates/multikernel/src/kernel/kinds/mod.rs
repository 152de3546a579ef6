//! The kinds of kernels: a kind is one file with one [`KindInfo`], and one line in [`KINDS`].
//!
//! SPEC strings, TOML, serde, names, error sentences, the program's help and completions and the tests over all kinds
//! follow from the table. Elsewhere a kernel is asked for what it needs (its parts, its width, its statistic), never for
//! which kind it is.

mod chi2;
mod distance;
mod intersection;
mod key;
mod laplacian;
mod linear;
mod poly;
mod precomputed;
mod product;
mod rbf;
mod spectrum;
mod sum;
#[cfg(test)]
mod toy;
mod weighted_degree;

pub(super) use key::Parameter;
pub use key::{Holds, Key, Width};

use super::statistic::Statistic;
use super::{KernelSpec, Normalize, Profile};
use crate::data::ViewData;
use serde::Serialize;
use std::fmt;

/// All kinds, in the order in which help and sentences list them.
pub static KINDS: &[KindInfo] = &[
    linear::LINEAR,
    poly::POLY,
    rbf::RBF,
    laplacian::LAPLACIAN,
    chi2::CHI2,
    intersection::INTERSECTION,
    distance::DISTANCE,
    spectrum::SPECTRUM,
    weighted_degree::WEIGHTED_DEGREE,
    precomputed::PRECOMPUTED,
    product::PRODUCT,
    sum::SUM,
    #[cfg(test)]
    toy::POWER,
];

/// What a kind of kernel is.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct KindInfo {
    /// Its word in SPEC strings.
    pub name: &'static str,
    /// k(x, x').
    pub formula: &'static str,
    /// Its own keys; `view`, `name`, `group` and `normalize` belong to every kind.
    pub keys: &'static [Key],
    /// What it looks at.
    pub looks_at: LooksAt,
    /// Words by which people know it from elsewhere.
    #[serde(skip)]
    also_called: &'static [&'static str],
    #[serde(skip)]
    values: Values,
}

/// What a kernel looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LooksAt {
    /// A dense or sparse view.
    Numbers,
    /// A view of strings.
    Strings,
    /// A matrix that was given.
    Matrix,
    /// Other kernels.
    Kernels,
}

/// How values are made.
#[derive(Debug, Clone, Copy)]
enum Values {
    /// From a statistic of the view and its profile, which may know how the kernel is normalised.
    Of(fn(&Kind, Normalize) -> (Statistic, Profile)),
    /// From the values of other kernels.
    Combined(Combine),
}

/// How a kernel is made of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combine {
    /// Their product.
    Product,
    /// Their sum.
    Sum,
}

/// A kind of kernel with its parameters.
#[derive(Clone)]
pub struct Kind {
    info: &'static KindInfo,
    /// One for each key.
    parameters: Vec<Parameter>,
}

impl Combine {
    /// The sign between the kernels' names.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Combine::Product => "*",
            Combine::Sum => "+",
        }
    }
}

impl LooksAt {
    /// Whether this is such a view. Products and sums look at kernels, not at views.
    fn sees(self, view: &ViewData) -> bool {
        match view {
            ViewData::Dense(_) | ViewData::Sparse(_) => self == LooksAt::Numbers,
            ViewData::Strings(_) => self == LooksAt::Strings,
            ViewData::Pairwise(_) => self == LooksAt::Matrix,
        }
    }

    /// In words.
    pub fn in_words(self) -> &'static str {
        match self {
            LooksAt::Numbers => "numbers (a dense or sparse view)",
            LooksAt::Strings => "strings",
            LooksAt::Matrix => "a given matrix",
            LooksAt::Kernels => "other kernels",
        }
    }
}

impl KindInfo {
    /// The kind of this name.
    pub(super) fn named(name: &str) -> Option<&'static KindInfo> {
        KINDS.iter().find(|info| info.name == name)
    }

    /// The kind that people call so elsewhere.
    pub(super) fn known_as(word: &str) -> Option<&'static str> {
        let called_so = |info: &&KindInfo| info.also_called.contains(&word);
        KINDS.iter().find(called_so).map(|info| info.name)
    }

    /// The SPEC with every key at its default, such as `poly:degree=2,coef0=1,gamma=1`.
    pub fn usage(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(Key::usage).collect();
        match keys.is_empty() {
            true => self.name.to_owned(),
            false => format!("{}:{}", self.name, keys.join(",")),
        }
    }

    /// The names of its own keys: a width may also be written as gamma, a matrix is named by `from`.
    pub(super) fn own_keys(&self) -> Vec<&'static str> {
        let mut keys: Vec<&str> = self
            .keys
            .iter()
            .flat_map(|key| key.names())
            .copied()
            .collect();
        if self.looks_at == LooksAt::Matrix {
            keys.push("from");
        }
        keys
    }
}

impl Kind {
    /// A kind of the table with one parameter for each of its keys.
    pub(super) fn new(info: &'static KindInfo, parameters: Vec<Parameter>) -> Kind {
        debug_assert_eq!(info.keys.len(), parameters.len(), "{}", info.name);
        Kind { info, parameters }
    }

    /// What it is.
    pub fn info(&self) -> &'static KindInfo {
        self.info
    }

    /// Its word in SPEC strings.
    pub fn word(&self) -> &'static str {
        self.info.name
    }

    /// Whether it can look at such a view. Products and sums look at kernels, not at views.
    pub fn applies_to(&self, view: &ViewData) -> bool {
        self.info.looks_at.sees(view)
    }

    /// Keys and parameters.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&'static Key, &Parameter)> {
        self.info.keys.iter().zip(&self.parameters)
    }

    /// The statistic of its view and the profile of that; none for a kernel made of others.
    pub(crate) fn statistic(&self, normalize: Normalize) -> Option<(Statistic, Profile)> {
        match self.info.values {
            Values::Of(values) => Some(values(self, normalize)),
            Values::Combined(_) => None,
        }
    }

    /// The names of the kernels it is made of, and how; none if it looks at a view.
    pub(crate) fn made_of(&self) -> Option<(Combine, &[String])> {
        let Values::Combined(combine) = self.info.values else {
            return None;
        };
        self.parameters
            .iter()
            .find_map(|parameter| match parameter {
                Parameter::Names(names) => Some((combine, &names[..])),
                _ => None,
            })
    }

    /// Whether it is made of other kernels.
    pub(crate) fn is_composite(&self) -> bool {
        self.info.looks_at == LooksAt::Kernels
    }

    /// Whether it looks at a matrix that was given.
    pub(crate) fn looks_at_matrix(&self) -> bool {
        self.info.looks_at == LooksAt::Matrix
    }

    /// Whether it is a given matrix as it is.
    pub(crate) fn is_precomputed(&self) -> bool {
        self.word() == precomputed::PRECOMPUTED.name
    }

    /// Its width, if it has one.
    pub fn width(&self) -> Option<Width> {
        self.parameters
            .iter()
            .find_map(|parameter| match parameter {
                Parameter::Width(width) => Some(*width),
                _ => None,
            })
    }

    /// Replaces the width, if it has one.
    pub(crate) fn set_width(&mut self, new: f64) {
        for parameter in &mut self.parameters {
            if let Parameter::Width(width) = parameter {
                *width = Width::Value(new);
            }
        }
    }

    /// exp(−t/w) of its width.
    fn exponential(&self) -> Profile {
        let width = self.width().unwrap_or_default();
        Profile::Exp {
            width: width.number(),
        }
    }

    /// The whole number under a key of its own.
    fn count(&self, key: &str) -> usize {
        match self.parameter(key) {
            Parameter::Count(count) => *count as usize,
            other => unreachable!("{key} of {} holds {other:?}", self.word()),
        }
    }

    /// The number under a key of its own.
    fn number(&self, key: &str) -> f64 {
        match self.parameter(key) {
            Parameter::Number(number) => *number,
            other => unreachable!("{key} of {} holds {other:?}", self.word()),
        }
    }

    fn parameter(&self, key: &str) -> &Parameter {
        let found = self.parameters().find(|(own, _)| own.name == key);
        found.map_or_else(
            || unreachable!("{} has no key {key}", self.word()),
            |(_, parameter)| parameter,
        )
    }
}

impl KernelSpec {
    /// A kernel of the table with these parameters, on every view it can look at.
    fn of(info: &'static KindInfo, parameters: Vec<Parameter>) -> KernelSpec {
        KernelSpec::new(Kind::new(info, parameters))
    }
}

/// Equal words and equal parameters.
impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.word() == other.word() && self.parameters == other.parameters
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        f.debug_list().entries(&self.parameters).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_with_its_usual_parameters_is_a_statistic_or_is_made_of_others() {
        for info in KINDS {
            let spec = match info.looks_at {
                LooksAt::Kernels => format!("{}:of=a*b", info.name),
                _ => info.name.to_owned(),
            };
            let kind = &KernelSpec::parse(&spec).unwrap()[0].kind;
            assert_eq!(
                kind.statistic(Normalize::None).is_some(),
                !kind.is_composite()
            );
            assert_eq!(
                kind.made_of().is_some(),
                kind.is_composite(),
                "{}",
                info.name
            );
            assert!(!info.formula.is_empty() && !info.formula.ends_with('.'));
            assert_eq!(
                KINDS.iter().filter(|other| other.name == info.name).count(),
                1
            );
        }
    }

    #[test]
    fn a_usage_is_a_spec() {
        for info in KINDS
            .iter()
            .filter(|info| info.looks_at != LooksAt::Kernels)
        {
            let read = &KernelSpec::parse(&info.usage()).unwrap()[0];
            assert_eq!(read, &KernelSpec::parse(info.name).unwrap()[0]);
        }
        assert_eq!(poly::POLY.usage(), "poly:degree=2,coef0=1,gamma=1");
        assert_eq!(sum::SUM.usage(), "sum:of=a+b");
    }
}
