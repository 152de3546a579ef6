//! A description as a kind and named fields: the names, their defaults, and what they may hold.

use super::super::kinds::{KINDS, Kind, KindInfo, LooksAt, Width};
use super::suggest::did_you_mean;
use super::{KernelSpec, Normalize, listed, text};
use crate::error::{Error, Result};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(in super::super) enum Value {
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

/// The fields that a kernel of the kind may have.
fn allowed(info: &KindInfo) -> Vec<&'static str> {
    let mut keys = info.own_keys();
    if info.looks_at != LooksAt::Kernels {
        keys.push("view");
    }
    keys.extend(["name", "group", "normalize"]);
    keys
}

impl KernelSpec {
    /// Its fields in their usual order; `kind` is not among them.
    pub(super) fn fields(&self) -> Vec<(&'static str, Value)> {
        let parameters = self.kind.parameters();
        let mut fields: Vec<_> = parameters.map(|(key, value)| key.field(value)).collect();
        let view = match self.kind.looks_at_matrix() {
            true => "from",
            false => "view",
        };
        let names = [
            (view, &self.view),
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
        let Some(info) = KindInfo::named(kind) else {
            let words = || KINDS.iter().map(|info| info.name);
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
        let mut fields = Fields::new(info, fields)?;
        let parameters = info.keys.iter().map(|key| key.take(&mut fields));
        let kind = Kind::new(info, parameters.collect::<Result<_>>()?);
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
        for (key, parameter) in self.kind.parameters() {
            key.check(parameter, self.kind.word())?;
        }
        if self.kind.is_composite() && self.view.is_some() {
            return Err(Error::input(
                "",
                format!("a {} has no view", self.kind.word()),
                "leave view out",
            ));
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

pub(in super::super) fn out_of_range(key: &str, value: &str, right: &str) -> Error {
    Error::input(
        "",
        format!("{key} is {value}"),
        format!("{key} must be {right}"),
    )
}

/// Fields that are taken out one by one.
pub(in super::super) struct Fields {
    of: BTreeMap<String, Value>,
}

impl Fields {
    /// Fields of a kernel of this kind, each named once.
    fn new(info: &KindInfo, fields: Vec<(String, Value)>) -> Result<Self> {
        let keys = allowed(info);
        let mut of = BTreeMap::new();
        for (key, value) in fields {
            if !keys.contains(&key.as_str()) {
                return Err(Error::input(
                    "",
                    format!("there is no key '{key}'"),
                    format!(
                        "{} knows {}{}",
                        info.name,
                        listed(keys.iter().copied()),
                        did_you_mean(&key, keys.iter().copied())
                    ),
                ));
            }
            if of.insert(key.clone(), value).is_some() {
                return Err(Error::input(
                    "",
                    format!("{key} is given twice"),
                    "give it once (a bar makes several kernels)",
                ));
            }
        }
        Ok(Fields { of })
    }

    pub(in super::super) fn number(&mut self, key: &str) -> Result<Option<f64>> {
        match self.of.remove(key) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number)),
            Some(Value::Count(count)) => Ok(Some(count as f64)),
            Some(other) => match text::parse_number(&other.text()) {
                Some(number) => Ok(Some(number)),
                None => Err(out_of_range(
                    key,
                    &format!("'{}'", other.text()),
                    "a number like 2, 0.5, 1/3 or 1e-3",
                )),
            },
        }
    }

    /// A whole number; [`KernelSpec::check`] says what is wrong with one below the range.
    pub(in super::super) fn count(
        &mut self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>> {
        let Some(value) = self.of.remove(key) else {
            return Ok(None);
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
        match count.filter(|count| count <= range.end()) {
            Some(count) => Ok(Some(count)),
            None => Err(out_of_range(
                key,
                &format!("'{}'", value.text()),
                &format!("a whole number from {} to {}", range.start(), range.end()),
            )),
        }
    }

    pub(in super::super) fn width(&mut self) -> Result<Option<Width>> {
        if self.of.contains_key("width") && self.of.contains_key("gamma") {
            return Err(Error::input(
                "",
                "both width and gamma are given",
                "give one of them (gamma is 1/width)",
            ));
        }
        if let Some(gamma) = self.number("gamma")? {
            return Ok(Some(Width::Gamma(gamma)));
        }
        match self.of.remove("width") {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(Width::Value(number))),
            Some(Value::Count(count)) => Ok(Some(Width::Value(count as f64))),
            Some(other) => text::parse_width(&other.text()).map(Some).ok_or_else(|| {
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

    pub(in super::super) fn list(&mut self, key: &str) -> Result<Vec<String>> {
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
