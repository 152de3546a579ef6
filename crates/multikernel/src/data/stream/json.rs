//! One line of JSON: `{"id": …, "<view>": [numbers], …, "label": …}`.

use super::super::source::some_of;
use super::{StreamEvent, StreamExample, StreamParser, StreamRow, some_text};
use crate::error::{Error, Result};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A line as it stands.
#[derive(Debug, Default, PartialEq)]
struct JsonLine {
    id: Option<String>,
    label: Option<String>,
    views: Vec<(String, Vec<f32>)>,
}

/// Which keys are no views.
#[derive(Debug, Clone, Copy)]
struct Keys<'k> {
    id: &'k str,
    label: &'k str,
}

/// Reads a line; the error says what is wrong, and where.
fn parse(line: &[u8], keys: Keys<'_>) -> Result<JsonLine, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let read = deserializer
        .deserialize_map(LineVisitor { keys })
        .and_then(|read| deserializer.end().map(|()| read));
    // the line of the file is told by whoever knows it
    read.map_err(|e| {
        e.to_string()
            .replace(" at line 1 column ", ", at character ")
    })
}

struct LineVisitor<'k> {
    keys: Keys<'k>,
}

impl<'de> Visitor<'de> for LineVisitor<'_> {
    type Value = JsonLine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of views, id and label")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonLine, A::Error> {
        let mut line = JsonLine::default();
        let (mut id, mut label) = (false, false);
        while let Some(key) = map.next_key::<String>()? {
            let twice = || de::Error::custom(format_args!("the key {} occurs twice", shown(&key)));
            if key == self.keys.id {
                if std::mem::replace(&mut id, true) {
                    return Err(twice());
                }
                line.id = map.next_value::<Option<Name>>()?.map(|name| name.0);
            } else if key == self.keys.label {
                if std::mem::replace(&mut label, true) {
                    return Err(twice());
                }
                line.label = map.next_value::<Option<Name>>()?.map(|name| name.0);
            } else {
                if line.views.iter().any(|(name, _)| *name == key) {
                    return Err(twice());
                }
                let numbers = map.next_value::<Numbers>()?;
                line.views.push((key, numbers.0));
            }
        }
        Ok(line)
    }
}

/// A key as far as it may stand in a message.
fn shown(key: &str) -> String {
    let mut out: String = key.chars().take(60).collect();
    out.insert(0, '\'');
    out.push('\'');
    out
}

/// An id or a label: text, a number, true or false.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a number as id or label")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Name, E> {
        Ok(Name(text.to_owned()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Name, E> {
        Ok(Name(number.to_string()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Name, E> {
        Ok(Name(number.to_string()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Name, E> {
        Ok(Name(number.to_string()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Name, E> {
        Ok(Name(value.to_string()))
    }
}

/// A list of finite numbers, or one number.
struct Numbers(Vec<f32>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumbersVisitor)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers as a view")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Numbers, A::Error> {
        // nothing is reserved: a list says nothing of its length before it is read
        let mut numbers = Vec::new();
        while let Some(value) = list.next_element::<f64>()? {
            numbers.push(single(value)?);
        }
        Ok(Numbers(numbers))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Numbers, E> {
        Ok(Numbers(vec![single(value)?]))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Numbers, E> {
        Ok(Numbers(vec![single(value as f64)?]))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Numbers, E> {
        Ok(Numbers(vec![single(value as f64)?]))
    }
}

fn single<E: de::Error>(value: f64) -> Result<f32, E> {
    let single = value as f32;
    match single.is_finite() {
        true => Ok(single),
        false => Err(E::custom(format_args!(
            "the value {value:e} does not fit into 32-bit numbers"
        ))),
    }
}

impl StreamParser {
    pub(super) fn json(&mut self, line: &[u8]) -> Result<StreamEvent> {
        let keys = Keys {
            id: self.id_key(),
            label: self.label_key(),
        };
        let read = parse(line, keys).map_err(|found| {
            let remedy = r#"write {"id": …, "<view>": [numbers], "label": …}"#;
            Error::input("", found, remedy)
        })?;
        if read.views.is_empty() {
            return self.label_only(read.id, read.label);
        }
        if self.views.is_empty() {
            if let Some((name, _)) = read.views.iter().find(|(_, values)| values.is_empty()) {
                return Err(Error::input(
                    format!("view {}", some_of([name])),
                    "it is empty",
                    "give at least one number",
                ));
            }
            let views = read.views.iter();
            self.views = views
                .map(|(name, v)| (name.clone(), Some(v.len())))
                .collect();
        }
        let mut given = read.views;
        let mut rows = Vec::with_capacity(self.views.len());
        for (name, width) in &self.views {
            let place = || format!("view {}", some_of([name]));
            let Some(at) = given.iter().position(|(n, _)| n == name) else {
                return Err(Error::input(
                    place(),
                    "it is missing",
                    "give every example all views",
                ));
            };
            let (_, values) = given.swap_remove(at);
            if Some(values.len()) != *width {
                return Err(Error::input(
                    place(),
                    format!(
                        "it has {} numbers, in the first example it had {}",
                        values.len(),
                        width.unwrap_or(0)
                    ),
                    "give every example the same columns",
                ));
            }
            rows.push(StreamRow::Dense(values));
        }
        if let Some((name, _)) = given.first() {
            return Err(Error::input(
                format!("view {}", some_of([name])),
                "the first example did not have it",
                "give every example the same views",
            ));
        }
        Ok(StreamEvent::Example(StreamExample {
            id: some_text(read.id),
            label: some_text(read.label),
            rows,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{example, parser};
    use super::*;
    use proptest::prelude::*;

    const KEYS: Keys<'_> = Keys {
        id: "id",
        label: "label",
    };

    fn read(text: &str) -> Result<JsonLine, String> {
        parse(text.as_bytes(), KEYS)
    }

    #[test]
    fn lines_are_read_as_they_are_meant() {
        let line = read(r#"{"id": 7, "a": [1, 2.5, -3e2], "b": 4, "label": "cat"}"#).unwrap();
        assert_eq!(line.id.as_deref(), Some("7"));
        assert_eq!(line.label.as_deref(), Some("cat"));
        assert_eq!(
            line.views,
            [
                ("a".into(), vec![1.0, 2.5, -300.0]),
                ("b".into(), vec![4.0])
            ]
        );
        let line = read(r#" {"x": [], "label": null, "id": null} "#).unwrap();
        assert_eq!((line.id, line.label), (None, None));
        assert_eq!(
            read(r#"{"label": true, "id": -1.5}"#)
                .unwrap()
                .label
                .as_deref(),
            Some("true")
        );
    }

    #[test]
    fn hostile_lines_are_refused() {
        let deep = format!("{{\"x\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let objects = format!("{{\"id\": {}", "{\"a\":".repeat(100_000));
        for bad in [
            "",
            "{",
            "[]",
            "null",
            "3",
            "\"x\"",
            "{} {}",
            "{}x",
            r#"{"x": [1, 2"#,
            r#"{"x": [1, NaN]}"#,
            r#"{"x": [1, Infinity]}"#,
            r#"{"x": [1e400]}"#,
            r#"{"x": [1e39]}"#,
            r#"{"x": [null]}"#,
            r#"{"x": null}"#,
            r#"{"x": ["1"]}"#,
            r#"{"x": [[1]]}"#,
            r#"{"x": {"y": 1}}"#,
            r#"{"x": "1"}"#,
            r#"{"x": true}"#,
            r#"{"x": [1], "x": [2]}"#,
            r#"{"id": 1, "id": 2}"#,
            r#"{"label": 1, "label": 1}"#,
            r#"{"label": [1]}"#,
            r#"{"id": {}}"#,
            r#"{x: [1]}"#,
            deep.as_str(),
            objects.as_str(),
        ] {
            let said = read(bad).unwrap_err();
            assert!(said.len() < 300, "{said}");
        }
        assert!(parse(b"{\"x\": [1], \"label\": \"\xff\"}", KEYS).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, KEYS);
        }

        #[test]
        fn anything_like_json_is_read_or_refused(text in r#"[{}\[\]:,"0-9eEx.+\- truefalsn]{0,80}"#) {
            if let Ok(line) = parse(text.as_bytes(), KEYS) {
                prop_assert!(line.views.iter().all(|(_, v)| v.iter().all(|v| v.is_finite())));
            }
        }

        #[test]
        fn what_was_written_is_read(
            values in prop::collection::vec(-1e30f32..1e30, 0..20),
            id in ".{0,12}",
            label in ".{0,12}",
        ) {
            let text = serde_json::json!({ "id": id, "x": values, "label": label }).to_string();
            let line = parse(text.as_bytes(), KEYS).unwrap();
            prop_assert_eq!(line.id, Some(id));
            prop_assert_eq!(line.label, Some(label));
            prop_assert_eq!(line.views, vec![("x".to_owned(), values)]);
        }
    }

    #[test]
    fn json_lines_must_have_the_views_of_the_first() {
        let mut parser = parser(None);
        let first = example(
            parser
                .line(br#"{"a": [1, 2], "b": [3], "label": 1}"#, 1)
                .unwrap(),
        );
        assert_eq!(first.label.as_deref(), Some("1"));
        let other = example(parser.line(br#"{"b": [4], "a": [5, 6]}"#, 2).unwrap());
        assert_eq!(other.rows[0], StreamRow::Dense(vec![5.0, 6.0]));
        for bad in [
            r#"{"a": [1, 2]}"#,
            r#"{"a": [1], "b": [3]}"#,
            r#"{"a": [1, 2], "b": [3], "c": [4]}"#,
            r#"{"label": 1}"#,
            r#"{"id": 1}"#,
            "{}",
        ] {
            assert!(parser.line(bad.as_bytes(), 3).is_err(), "{bad}");
        }
        assert!(matches!(
            parser.line(br#"{"id": 1, "label": 2}"#, 4),
            Ok(Some(StreamEvent::Label { .. }))
        ));
    }
}
