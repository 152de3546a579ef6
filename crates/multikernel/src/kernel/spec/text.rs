//! SPEC strings: `kind[:key=value[,key=value]…]`, where a bar makes several kernels.
//!
//! Names that hold a comma, a bar, a quote (or, among the kernels of a product or sum, `*` or `+`) are written in double
//! quotes, with a backslash before quotes and backslashes.

use super::super::kinds::Width;
use super::KernelSpec;
use super::fields::Value;
use crate::error::{Error, Result};
use std::fmt;

/// Kernels that one SPEC (or one file) may make.
pub(super) const MOST_KERNELS: usize = 100_000;

/// Letters of a SPEC shown in a message.
const SHOWN: usize = 60;

impl KernelSpec {
    /// Reads a SPEC string; every combination of barred values is one kernel, the last key changing fastest.
    ///
    /// ```
    /// use multikernel::kernel::KernelSpec;
    /// let kernels = KernelSpec::parse("rbf:width=mean*0.5|mean|mean*2,view=pixels")?;
    /// assert_eq!(kernels.len(), 3);
    /// assert_eq!(kernels[0].to_string(), "rbf:width=mean*0.5,view=pixels");
    /// # Ok::<(), multikernel::Error>(())
    /// ```
    pub fn parse(spec: &str) -> Result<Vec<KernelSpec>> {
        read(spec).map_err(|error| within(error, &format!("kernel '{}'", shortened(spec))))
    }
}

/// Adds a place to an error that has none yet.
pub(super) fn within(error: Error, place: &str) -> Error {
    match error {
        Error::Input(mut input) if input.position().is_empty() => {
            input.place = place.to_owned();
            Error::Input(input)
        }
        other => other,
    }
}

pub(super) fn shortened(spec: &str) -> String {
    let mut letters = spec
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter });
    let start: String = letters.by_ref().take(SHOWN).collect();
    if letters.next().is_some() {
        format!("{start}…")
    } else {
        start
    }
}

fn read(spec: &str) -> Result<Vec<KernelSpec>> {
    let (kind, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let mut choices = Vec::new();
    if !rest.trim().is_empty() {
        for field in split(rest, &[','])? {
            let Some((key, value)) = field.split_once('=') else {
                return Err(Error::input(
                    "",
                    format!("'{}' is not a key with a value", shortened(field.trim())),
                    "write key=value, with commas between the keys",
                ));
            };
            let key = key.trim();
            let values = split(value, &['|'])?
                .into_iter()
                .map(|value| match key {
                    "view" | "name" | "group" | "from" => Ok(Value::Text(unquoted(value)?)),
                    "of" => Ok(Value::List(parse_operands(value)?)),
                    _ => Ok(Value::Text(value.trim().to_owned())),
                })
                .collect::<Result<Vec<_>>>()?;
            choices.push((key.to_owned(), values));
        }
    }
    combinations(kind.trim(), &choices)
}

/// A kernel for every combination of values.
pub(super) fn combinations(
    kind: &str,
    choices: &[(String, Vec<Value>)],
) -> Result<Vec<KernelSpec>> {
    let count = choices.iter().try_fold(1_usize, |count, (_, values)| {
        count.checked_mul(values.len())
    });
    let Some(count) = count.filter(|&count| count <= MOST_KERNELS) else {
        return Err(Error::input(
            "",
            "its bars make too many kernels",
            format!("at most {MOST_KERNELS} are possible"),
        ));
    };
    let barred = |key: &str| {
        choices
            .iter()
            .any(|(other, values)| other != "name" && other == key && values.len() > 1)
    };
    (0..count)
        .map(|mut number| {
            let mut fields = Vec::with_capacity(choices.len());
            for (key, values) in choices.iter().rev() {
                fields.push((key.clone(), values[number % values.len()].clone()));
                number /= values.len();
            }
            fields.reverse();
            let mut spec = KernelSpec::from_fields(kind, fields)?;
            // Kernels of one name are told apart by what differs.
            if let Some(name) = &spec.name {
                let different: Vec<String> = spec
                    .fields()
                    .into_iter()
                    .filter(|(key, _)| barred(key) || (*key == "from" && barred("view")))
                    .map(|(key, value)| spec.field_text(key, &value, false))
                    .collect();
                if !different.is_empty() {
                    spec.name = Some(format!("{name}({})", different.join(",")));
                }
            }
            Ok(spec)
        })
        .collect()
}

impl KernelSpec {
    /// The value of a field as it stands in a SPEC string (`quotes`), or as people read it.
    fn field_text(&self, key: &str, value: &Value, quotes: bool) -> String {
        match value {
            Value::Count(count) => count.to_string(),
            Value::Number(value) => number(*value),
            Value::Text(text) => match key {
                "view" | "name" | "group" | "from" if quotes => quoted(text, &[]),
                _ => text.clone(),
            },
            Value::List(names) => {
                let names: Vec<String> = names
                    .iter()
                    .map(|name| {
                        if quotes {
                            quoted(name, &['*', '+'])
                        } else {
                            name.clone()
                        }
                    })
                    .collect();
                names.join(self.kind.made_of().map_or("*", |(how, _)| how.sign()))
            }
        }
    }
}

/// The SPEC string, with every parameter of the kernel.
impl fmt::Display for KernelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.word())?;
        for (i, (key, value)) in self.fields().iter().enumerate() {
            let sign = if i == 0 { ':' } else { ',' };
            write!(f, "{sign}{key}={}", self.field_text(key, value, true))?;
        }
        Ok(())
    }
}

/// The pieces between separators that stand outside quotes.
fn split<'a>(text: &'a str, separators: &[char]) -> Result<Vec<&'a str>> {
    let mut pieces = Vec::new();
    let (mut start, mut inside, mut escaped) = (0, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            _ if !inside && separators.contains(&letter) => {
                pieces.push(&text[start..at]);
                start = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    if inside {
        return Err(Error::input(
            "",
            "a quote is not closed",
            "put a second \" after the name",
        ));
    }
    pieces.push(&text[start..]);
    Ok(pieces)
}

/// A name without the quotes around it.
fn unquoted(text: &str) -> Result<String> {
    let text = text.trim();
    let wrong = || {
        Error::input(
            "",
            format!("the quotes of {} do not stand around it", shortened(text)),
            "quote the whole name",
        )
    };
    let Some(inner) = text.strip_prefix('"') else {
        return if text.contains('"') {
            Err(wrong())
        } else {
            Ok(text.to_owned())
        };
    };
    let mut name = String::new();
    let mut letters = inner.chars();
    loop {
        match letters.next() {
            Some('\\') => name.extend(letters.next()),
            Some('"') => break,
            Some(letter) => name.push(letter),
            None => return Err(wrong()),
        }
    }
    if letters.next().is_some() {
        Err(wrong())
    } else {
        Ok(name)
    }
}

/// A name as it must be written so that it is read back.
fn quoted(name: &str, also: &[char]) -> String {
    let special = |letter: char| matches!(letter, ',' | '|' | '"') || also.contains(&letter);
    if !name.is_empty() && name.trim() == name && !name.contains(special) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The names of `a*b` or `a+b`.
pub(super) fn parse_operands(text: &str) -> Result<Vec<String>> {
    let factors = split(text, &['*'])?;
    let terms = split(text, &['+'])?;
    if factors.len() > 1 && terms.len() > 1 {
        return Err(Error::input(
            "",
            format!("of={} mixes * and +", shortened(text.trim())),
            "use one sign (and quotes around names that hold the other)",
        ));
    }
    let pieces = if factors.len() > 1 { factors } else { terms };
    pieces.into_iter().map(unquoted).collect()
}

/// `2`, `0.5`, `1e-3`, `1/3`; only finite numbers.
pub(super) fn parse_number(text: &str) -> Option<f64> {
    let plain = |text: &str| {
        let text = text.trim();
        // Rust also reads "inf" and "nan".
        let digits = text
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
        text.parse::<f64>()
            .ok()
            .filter(|number| digits && number.is_finite())
    };
    match text.split_once('/') {
        None => plain(text),
        Some((above, below)) => {
            Some(plain(above)? / plain(below)?).filter(|number| number.is_finite())
        }
    }
}

/// `mean`, `mean*0.5`, `0.5*mean`, `mean/4`, the same with `median`, or a number.
pub(super) fn parse_width(text: &str) -> Option<Width> {
    let basis = |word: &str| match word.trim() {
        "mean" => Some(Width::Mean as fn(f64) -> Width),
        "median" => Some(Width::Median as fn(f64) -> Width),
        _ => None,
    };
    if let Some(width) = basis(text) {
        return Some(width(1.0));
    }
    if let Some((left, right)) = text.split_once('*') {
        let (width, factor) = match (basis(left), basis(right)) {
            (Some(width), _) => (width, right),
            (_, Some(width)) => (width, left),
            _ => return None,
        };
        return Some(width(parse_number(factor)?));
    }
    if let Some((left, right)) = text.split_once('/')
        && let Some(width) = basis(left)
    {
        return Some(width(1.0 / parse_number(right)?));
    }
    parse_number(text).map(Width::Value)
}

/// A number with all its digits and no more.
pub(in super::super) fn number(value: f64) -> String {
    if value == 0.0 || (1e-5..1e16).contains(&value.abs()) || !value.is_finite() {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// A number in at most four digits.
pub(in super::super) fn short(value: f64) -> String {
    let all = number(value);
    if all.len() <= 6 {
        return all;
    }
    let rounded = format!("{value:.3e}").parse().unwrap_or(value);
    number(rounded)
}
