//! One line of JSON: `{"id": …, "<view>": [numbers], …, "label": …}`.

use super::{StreamEvent, StreamExample, StreamParser, StreamRow, some_text};
use multikernel::error::{Error, Result, some_of};
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::fmt;

/// What a line looks like.
const LINE: &str = r#"write {"id": …, "<view>": [numbers], "label": …} on one line"#;
const NAME: &str = "give text or a number";
const NUMBERS: &str = "give a list of finite numbers, such as [0.5, 2]";

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

/// Reads a line; the error says which key is wrong, what was found, and what would be right.
fn parse(line: &[u8], keys: Keys<'_>) -> Result<JsonLine> {
    let Ok(text) = std::str::from_utf8(line) else {
        return Err(Error::input(
            "",
            "the line is not UTF-8",
            "save the file as UTF-8",
        ));
    };
    if !text.trim_start().starts_with('{') {
        let found = format!("{} is no JSON object", beginning(text.trim()));
        return Err(Error::input("", found, LINE));
    }
    let at = Cell::new(None);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = deserializer
        .deserialize_map(LineVisitor { keys, at: &at })
        .and_then(|read| deserializer.end().map(|()| read));
    read.map_err(|error| wrong(text, keys, at.into_inner(), &error))
}

/// The sentence for what the parser could not read; `key` is the one whose value it was at.
fn wrong(text: &str, keys: Keys<'_>, key: Option<String>, error: &serde_json::Error) -> Error {
    let (place, value) = match &key {
        None => (String::new(), LINE),
        Some(key) if key == keys.id || key == keys.label => {
            (format!("key {}", some_of([key])), NAME)
        }
        Some(key) => (format!("view {}", some_of([key])), NUMBERS),
    };
    let said = error.to_string();
    // where the parser was is told in our words
    let said = said
        .rfind(" at line ")
        .map_or(&said[..], |end| &said[..end]);
    if error.is_data() {
        return Error::input(place, said, value);
    }
    if error.is_eof() {
        return Error::input(place, "the line ends before the JSON object does", LINE);
    }
    let mut at = error.column().saturating_sub(1).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let word = word_at(text, at, said == "expected ident");
    let (found, remedy) = match said {
        "trailing characters" => (format!("{word} stands behind the JSON object"), LINE),
        "trailing comma" => ("there is a comma with nothing behind it".into(), value),
        "key must be a string" => (format!("the key {word} is not in quotes"), LINE),
        "number out of range" => (
            "a number is too large for 32 bits".into(),
            "give finite numbers below 3.4e38",
        ),
        _ => {
            let character = text[..at].chars().count() + 1;
            (
                format!("{word} at character {character} is not JSON"),
                value,
            )
        }
    };
    Error::input(place, found, remedy)
}

/// The word or the sign at a byte; where a `word` broke off, that word.
fn word_at(text: &str, at: usize, word: bool) -> String {
    // all of one byte: a word begins one byte behind them
    let parts = |c: char| c.is_ascii_whitespace() || "[]{},:".contains(c);
    match text[at..].chars().next() {
        Some(sign) if parts(sign) && !word => some_of([sign.to_string()]),
        _ => {
            let start = text[..at].rfind(parts).map_or(0, |before| before + 1);
            beginning(text[start..].split(parts).next().unwrap_or(""))
        }
    }
}

/// Text as far as it may stand in a message.
fn beginning(text: &str) -> String {
    let mut out: String = text.chars().take(20).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    some_of([out])
}

struct LineVisitor<'k, 'c> {
    keys: Keys<'k>,
    /// The key whose value turned out to be wrong.
    at: &'c Cell<Option<String>>,
}

impl<'de> Visitor<'de> for LineVisitor<'_, '_> {
    type Value = JsonLine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of views, id and label")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonLine, A::Error> {
        let mut line = JsonLine::default();
        let (mut id, mut label) = (false, false);
        while let Some(key) = map.next_key::<String>()? {
            let twice = || Err(de::Error::custom("it occurs twice"));
            let read = if key == self.keys.id {
                match std::mem::replace(&mut id, true) {
                    true => twice(),
                    false => map
                        .next_value()
                        .map(|id: Option<Name>| line.id = id.map(|id| id.0)),
                }
            } else if key == self.keys.label {
                match std::mem::replace(&mut label, true) {
                    true => twice(),
                    false => map
                        .next_value()
                        .map(|label: Option<Name>| line.label = label.map(|label| label.0)),
                }
            } else {
                match line.views.iter().any(|(name, _)| *name == key) {
                    true => twice(),
                    false => map
                        .next_value()
                        .map(|numbers: Numbers| line.views.push((key.clone(), numbers.0))),
                }
            };
            read.inspect_err(|_| self.at.set(Some(key)))?;
        }
        Ok(line)
    }
}

/// An id or a label: text, a number, true or false.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
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

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Name, A::Error> {
        Err(de::Error::custom("it is a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Name, A::Error> {
        Err(de::Error::custom("it is an object"))
    }
}

/// A list of finite numbers, or one number.
struct Numbers(Vec<f32>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match (ValueOfView { in_list: false }).deserialize(deserializer)? {
            Value::List(numbers) => Ok(Numbers(numbers)),
            single => {
                let number = single.number();
                let number =
                    number.map_err(|what| <D::Error as de::Error>::custom(format!("it is {what}")));
                Ok(Numbers(vec![number?]))
            }
        }
    }
}

/// What was found as a view or in its list.
enum Value {
    Number(f64),
    List(Vec<f32>),
    /// Something else, in words.
    Other(String),
}

impl Value {
    /// As a number of 32 bits; else what it is.
    fn number(self) -> Result<f32, String> {
        match self {
            Value::Number(value) if (value as f32).is_finite() => Ok(value as f32),
            Value::Number(value) => Err(format!("{value:e}, too large for 32 bits")),
            Value::List(_) => Err("a list".into()),
            Value::Other(what) => Err(what),
        }
    }
}

/// Reads a view, or an item of its list.
struct ValueOfView {
    in_list: bool,
}

impl<'de> DeserializeSeed<'de> for ValueOfView {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueOfView {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers as a view")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Other(format!("the text {}", beginning(text))))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Other(value.to_string()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Other("null".into()))
    }

    // what is in an inner list is not looked at: the parser would object, and its objection is not what is wrong
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        if self.in_list {
            return Err(de::Error::custom("there is a list within the list"));
        }
        // nothing is reserved: a list says nothing of its length before it is read
        let mut numbers = Vec::new();
        while let Some(item) = list.next_element_seed(ValueOfView { in_list: true })? {
            numbers.push(item.number().map_err(|what| {
                let place = numbers.len() + 1;
                <A::Error as de::Error>::custom(format_args!("item {place} of the list is {what}"))
            })?);
        }
        Ok(Value::List(numbers))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Value, A::Error> {
        Err(de::Error::custom(match self.in_list {
            true => "there is an object within the list",
            false => "it is an object",
        }))
    }
}

impl StreamParser {
    pub(super) fn json(&mut self, line: &[u8]) -> Result<StreamEvent> {
        let keys = Keys {
            id: self.id_key(),
            label: self.label_key(),
        };
        let read = parse(line, keys)?;
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
        parse(text.as_bytes(), KEYS).map_err(|e| e.to_string())
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
            "{\"x\": [1,\u{a0}y]}",
            "{\"x\": [\u{2003}\u{2003}nul\u{2003}]}",
            deep.as_str(),
            objects.as_str(),
        ] {
            let said = read(bad).unwrap_err();
            assert!(said.len() < 300, "{said}");
            for word in ["expected", "ident", "f64", "invalid type", "column"] {
                assert!(!said.contains(word), "{said}");
            }
        }
        assert!(parse(b"{\"x\": [1], \"label\": \"\xff\"}", KEYS).is_err());
    }

    #[test]
    fn wrong_lines_are_told_in_sentences() {
        for (line, said) in [
            ("not json", "'not json' is no JSON object; write {"),
            ("[1, 2]", "'[1, 2]' is no JSON object; write {"),
            (
                r#"{"a": [1, "x"]}"#,
                "view 'a': item 2 of the list is the text 'x'; give a list of finite numbers, such as [0.5, 2]",
            ),
            (
                r#"{"a": [1, null]}"#,
                "view 'a': item 2 of the list is null; ",
            ),
            (
                r#"{"a": [[1]]}"#,
                "view 'a': there is a list within the list; ",
            ),
            (r#"{"a": "1 2"}"#, "view 'a': it is the text '1 2'; "),
            (
                r#"{"a": [1, NaN]}"#,
                "view 'a': 'NaN' at character 11 is not JSON; give a list of finite numbers",
            ),
            (
                r#"{"a": [1, 2}"#,
                "view 'a': '}' at character 12 is not JSON; ",
            ),
            (
                r#" {"ä": [1, nul]}"#,
                "view 'ä': 'nul' at character 15 is not JSON; ",
            ),
            (
                r#"{"a": [1e39]}"#,
                "view 'a': item 1 of the list is 1e39, too large for 32 bits; ",
            ),
            (
                r#"{"a": [1e999]}"#,
                "view 'a': a number is too large for 32 bits; give finite numbers",
            ),
            (
                r#"{"id": [1]}"#,
                "key 'id': it is a list; give text or a number",
            ),
            (r#"{"a": [1], "a": [2]}"#, "view 'a': it occurs twice; "),
            (
                r#"{"a": [1, 2"#,
                "view 'a': the line ends before the JSON object does; write {",
            ),
            (r#"{a: [1]}"#, "the key 'a' is not in quotes; write {"),
            (r#"{"a": [1]} x"#, "'x' stands behind the JSON object; "),
            (
                r#"{"a": [1,]}"#,
                "view 'a': there is a comma with nothing behind it; ",
            ),
        ] {
            let found = read(line).unwrap_err();
            assert!(found.starts_with(said), "{line}: {found}");
        }
        let said = parser(None).line(br#"{"a": ["x"]}"#, 7).unwrap_err();
        let said = said.to_string();
        assert!(said.starts_with("s line 7, view 'a': item 1"), "{said}");
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
