//! A description as a kind and named fields: the names, their defaults, and what they may hold.

use super::suggest::did_you_mean;
use super::{KernelSpec, Kind, Normalize, Width, listed, text};
use crate::error::{Error, Result};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The kinds and the fields that are theirs alone.
pub(super) const KINDS: [(&str, &[&str]); 12] = [
    ("linear", &[]),
    ("poly", &["degree", "coef0", "gamma"]),
    ("rbf", &["width", "gamma"]),
    ("laplacian", &["width", "gamma"]),
    ("chi2", &["width", "gamma"]),
    ("intersection", &[]),
    ("distance", &["width", "gamma", "from"]),
    ("spectrum", &["k"]),
    ("weighted-degree", &["degree", "shift"]),
    ("precomputed", &["from"]),
    ("product", &["of"]),
    ("sum", &["of"]),
];

/// Polynomials beyond this leave the range of 32-bit numbers.
const LARGEST_POLY_DEGREE: u64 = 100;

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Value {
    Count(u64),
    Number(f64),
    Text(String),
    List(Vec<String>),
}

impl Value {
    /// As in a SPEC string.
    fn text(&self) -> String {
        match self {
            Value::Count(count) => count.to_string(),
            Value::Number(number) => text::number(*number),
            Value::Text(text) => text.clone(),
            Value::List(list) => list.join(", "),
        }
    }
}

/// The fields every kernel of the kind may have.
pub(super) fn allowed(kind: &str, own: &[&'static str]) -> Vec<&'static str> {
    let mut keys = own.to_vec();
    if !matches!(kind, "product" | "sum") {
        keys.push("view");
    }
    keys.extend(["name", "group", "normalize"]);
    keys
}

impl KernelSpec {
    /// Its fields in their usual order; `kind` is not among them.
    pub(super) fn fields(&self) -> Vec<(&'static str, Value)> {
        let mut fields = Vec::new();
        match &self.kind {
            Kind::Linear | Kind::Intersection | Kind::Precomputed => {}
            Kind::Poly {
                degree,
                coef0,
                gamma,
            } => fields.extend([
                ("degree", Value::Count(u64::from(*degree))),
                ("coef0", Value::Number(*coef0)),
                ("gamma", Value::Number(*gamma)),
            ]),
            Kind::Rbf(width)
            | Kind::Laplacian(width)
            | Kind::Chi2(width)
            | Kind::Distance(width) => {
                fields.push(match *width {
                    Width::Mean(factor) => ("width", Value::Text(text::times("mean", factor))),
                    Width::Median(factor) => ("width", Value::Text(text::times("median", factor))),
                    Width::Value(width) => ("width", Value::Number(width)),
                    Width::Gamma(gamma) => ("gamma", Value::Number(gamma)),
                });
            }
            Kind::Spectrum { k } => fields.push(("k", Value::Count(*k as u64))),
            Kind::WeightedDegree { degree, shift } => fields.extend([
                ("degree", Value::Count(*degree as u64)),
                ("shift", Value::Count(*shift as u64)),
            ]),
            Kind::Product { of } | Kind::Sum { of } => fields.push(("of", Value::List(of.clone()))),
        }
        let given = matches!(self.kind, Kind::Distance(_) | Kind::Precomputed);
        let names = [
            (if given { "from" } else { "view" }, &self.view),
            ("name", &self.name),
            ("group", &self.group),
        ];
        for (key, value) in names {
            if let Some(value) = value {
                fields.push((key, Value::Text(value.clone())));
            }
        }
        if self.normalize != Normalize::None {
            fields.push(("normalize", Value::Text(self.normalize.word().to_owned())));
        }
        fields
    }

    /// From a kind and fields, each named once.
    pub(super) fn from_fields(kind: &str, fields: Vec<(String, Value)>) -> Result<Self> {
        let Some(&(word, own)) = KINDS.iter().find(|(word, _)| *word == kind) else {
            let words = || KINDS.iter().map(|(word, _)| *word);
            return Err(Error::input(
                "",
                format!("there is no kind of kernel '{kind}'"),
                format!(
                    "the kinds are {}{}",
                    listed(words()),
                    did_you_mean(kind, words())
                ),
            ));
        };
        let keys = allowed(word, own);
        let mut fields = Fields {
            of: BTreeMap::new(),
        }
        .fill(word, &keys, fields)?;
        let kind = match word {
            "linear" => Kind::Linear,
            "intersection" => Kind::Intersection,
            "precomputed" => Kind::Precomputed,
            "poly" => Kind::Poly {
                degree: u32::try_from(fields.count("degree", 2, 1..=LARGEST_POLY_DEGREE)?)
                    .unwrap_or(u32::MAX),
                coef0: fields.number("coef0", 1.0)?,
                gamma: fields.number("gamma", 1.0)?,
            },
            "rbf" => Kind::Rbf(fields.width()?),
            "laplacian" => Kind::Laplacian(fields.width()?),
            "chi2" => Kind::Chi2(fields.width()?),
            "distance" => Kind::Distance(fields.width()?),
            "spectrum" => Kind::Spectrum {
                k: fields.size("k", 3, 1)?,
            },
            "weighted-degree" => Kind::WeightedDegree {
                degree: fields.size("degree", 10, 1)?,
                shift: fields.size("shift", 0, 0)?,
            },
            "product" => Kind::Product {
                of: fields.list("of")?,
            },
            _ => Kind::Sum {
                of: fields.list("of")?,
            },
        };
        let view = match (fields.name("view")?, fields.name("from")?) {
            (Some(_), Some(_)) => {
                return Err(Error::input(
                    "",
                    "both from and view are given",
                    "give the matrix once, by from",
                ));
            }
            (view, from) => view.or(from),
        };
        let spec = KernelSpec {
            kind,
            view,
            name: fields.name("name")?,
            group: fields.name("group")?,
            normalize: fields.normalize()?,
        };
        spec.check()?;
        Ok(spec)
    }

    /// Whether all values are in the ranges where the kernel is one.
    pub fn check(&self) -> Result<()> {
        let positive = |key: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                return Ok(());
            }
            Err(out_of_range(key, &text::number(value), "a number above 0"))
        };
        let at_least_one = |key: &str, value: usize| match value {
            0 => Err(out_of_range(key, "0", "1 or more")),
            _ => Ok(()),
        };
        match &self.kind {
            Kind::Linear | Kind::Intersection | Kind::Precomputed => {}
            Kind::Poly {
                degree,
                coef0,
                gamma,
            } => {
                if !(1..=LARGEST_POLY_DEGREE).contains(&u64::from(*degree)) {
                    let range = format!("between 1 and {LARGEST_POLY_DEGREE}");
                    return Err(out_of_range("degree", &degree.to_string(), &range));
                }
                if !(coef0.is_finite() && *coef0 >= 0.0) {
                    let reason =
                        "0 or more (below 0 the kernel matrix is not positive semidefinite)";
                    return Err(out_of_range("coef0", &text::number(*coef0), reason));
                }
                positive("gamma", *gamma)?;
            }
            Kind::Rbf(width)
            | Kind::Laplacian(width)
            | Kind::Chi2(width)
            | Kind::Distance(width) => match *width {
                Width::Mean(value) | Width::Median(value) | Width::Value(value) => {
                    positive("width", value)?
                }
                Width::Gamma(gamma) => positive("gamma", gamma)?,
            },
            Kind::Spectrum { k } => at_least_one("k", *k)?,
            Kind::WeightedDegree { degree, .. } => at_least_one("degree", *degree)?,
            Kind::Product { of } | Kind::Sum { of } => {
                if of.len() < 2 || of.iter().any(String::is_empty) {
                    return Err(Error::input(
                        "",
                        format!(
                            "of names {} kernels",
                            of.iter().filter(|name| !name.is_empty()).count()
                        ),
                        format!("a {} needs at least two, as in of=a*b", self.kind.word()),
                    ));
                }
                if self.view.is_some() {
                    return Err(Error::input(
                        "",
                        format!("a {} has no view", self.kind.word()),
                        "leave view out",
                    ));
                }
            }
        }
        for (key, name) in [
            ("view", &self.view),
            ("name", &self.name),
            ("group", &self.group),
        ] {
            if name.as_deref() == Some("") {
                return Err(Error::input(
                    "",
                    format!("{key} is empty"),
                    "give a name or leave it out",
                ));
            }
        }
        Ok(())
    }
}

fn out_of_range(key: &str, value: &str, right: &str) -> Error {
    Error::input(
        "",
        format!("{key} is {value}"),
        format!("{key} must be {right}"),
    )
}

/// Fields that are taken out one by one.
struct Fields {
    of: BTreeMap<String, Value>,
}

impl Fields {
    fn fill(
        mut self,
        kind: &str,
        keys: &[&'static str],
        fields: Vec<(String, Value)>,
    ) -> Result<Self> {
        for (key, value) in fields {
            if !keys.contains(&key.as_str()) {
                return Err(Error::input(
                    "",
                    format!("there is no key '{key}'"),
                    format!(
                        "{kind} knows {}{}",
                        listed(keys.iter().copied()),
                        did_you_mean(&key, keys.iter().copied())
                    ),
                ));
            }
            if self.of.insert(key.clone(), value).is_some() {
                return Err(Error::input(
                    "",
                    format!("{key} is given twice"),
                    "give it once (a bar makes several kernels)",
                ));
            }
        }
        Ok(self)
    }

    fn number(&mut self, key: &str, default: f64) -> Result<f64> {
        match self.of.remove(key) {
            None => Ok(default),
            Some(Value::Number(number)) => Ok(number),
            Some(Value::Count(count)) => Ok(count as f64),
            Some(other) => text::parse_number(&other.text()).ok_or_else(|| {
                out_of_range(
                    key,
                    &format!("'{}'", other.text()),
                    "a number like 2, 0.5, 1/3 or 1e-3",
                )
            }),
        }
    }

    /// A whole number; [`KernelSpec::check`] says what is wrong with one below the range.
    fn count(&mut self, key: &str, default: u64, range: RangeInclusive<u64>) -> Result<u64> {
        let Some(value) = self.of.remove(key) else {
            return Ok(default);
        };
        let count = match &value {
            Value::Count(count) => Some(*count),
            Value::Number(number) => whole(*number),
            other => other
                .text()
                .parse()
                .ok()
                .or_else(|| text::parse_number(&other.text()).and_then(whole)),
        };
        count.filter(|count| count <= range.end()).ok_or_else(|| {
            out_of_range(
                key,
                &format!("'{}'", value.text()),
                &format!("a whole number from {} to {}", range.start(), range.end()),
            )
        })
    }

    fn size(&mut self, key: &str, default: u64, least: u64) -> Result<usize> {
        // Kept below what u32 holds, so that a description means the same on every machine.
        Ok(self.count(key, default, least..=u64::from(u32::MAX))? as usize)
    }

    fn width(&mut self) -> Result<Width> {
        if self.of.contains_key("width") && self.of.contains_key("gamma") {
            return Err(Error::input(
                "",
                "both width and gamma are given",
                "give one of them (gamma is 1/width)",
            ));
        }
        if self.of.contains_key("gamma") {
            return self.number("gamma", 1.0).map(Width::Gamma);
        }
        match self.of.remove("width") {
            None => Ok(Width::Mean(1.0)),
            Some(Value::Number(number)) => Ok(Width::Value(number)),
            Some(Value::Count(count)) => Ok(Width::Value(count as f64)),
            Some(other) => text::parse_width(&other.text()).ok_or_else(|| {
                let words = ["mean", "median"];
                let hint = did_you_mean(
                    other
                        .text()
                        .split(['*', '/'])
                        .next()
                        .unwrap_or_default()
                        .trim(),
                    words,
                );
                let right = format!(
                    "a number, mean, median, or one of these times a number, as in mean*0.5{hint}"
                );
                out_of_range("width", &format!("'{}'", other.text()), &right)
            }),
        }
    }

    fn name(&mut self, key: &str) -> Result<Option<String>> {
        match self.of.remove(key) {
            None => Ok(None),
            Some(Value::List(_)) => Err(out_of_range(key, "a list", "one name")),
            Some(other) => Ok(Some(other.text())),
        }
    }

    fn list(&mut self, key: &str) -> Result<Vec<String>> {
        match self.of.remove(key) {
            None => Ok(Vec::new()),
            Some(Value::List(list)) => Ok(list),
            Some(other) => text::parse_operands(&other.text()),
        }
    }

    fn normalize(&mut self) -> Result<Normalize> {
        let Some(value) = self.of.remove("normalize") else {
            return Ok(Normalize::None);
        };
        let word = value.text();
        let words = || Normalize::ALL.iter().map(|normalize| normalize.word());
        Normalize::ALL
            .into_iter()
            .find(|normalize| normalize.word() == word)
            .ok_or_else(|| {
                let right = format!("one of {}{}", listed(words()), did_you_mean(&word, words()));
                out_of_range("normalize", &format!("'{word}'"), &right)
            })
    }
}

fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=2_f64.powi(53)).contains(&number)).then_some(number as u64)
}

impl Serialize for KernelSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.fields();
        let mut map = serializer.serialize_map(Some(fields.len() + 1))?;
        map.serialize_entry("kind", self.kind.word())?;
        for (key, value) in &fields {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for KernelSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = BTreeMap::<String, Value>::deserialize(deserializer)?;
        let kind = fields
            .remove("kind")
            .ok_or_else(|| D::Error::missing_field("kind"))?;
        KernelSpec::from_fields(&kind.text(), fields.into_iter().collect())
            .map_err(D::Error::custom)
    }
}
