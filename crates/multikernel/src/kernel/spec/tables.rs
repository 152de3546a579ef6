//! Descriptions in a TOML file: one `[[kernel]]` table each, with the keys of the SPEC strings. Where a SPEC has bars, a
//! table has an array (or bars).

use super::fields::Value;
use super::suggest::did_you_mean;
use super::text::{MOST_KERNELS, combinations, within};
use super::{KernelSpec, text};
use crate::error::{Error, Result};
use std::fmt::Write;

impl KernelSpec {
    /// Reads the `[[kernel]]` tables of a TOML file.
    ///
    /// ```
    /// use multikernel::kernel::KernelSpec;
    /// let kernels = KernelSpec::parse_toml(r#"
    ///     [[kernel]]
    ///     kind = "rbf"
    ///     width = ["mean*0.5", "mean", 3.5]
    ///     view = "pixels"
    /// "#)?;
    /// assert_eq!(kernels, KernelSpec::parse("rbf:width=mean*0.5|mean|3.5,view=pixels")?);
    /// # Ok::<(), multikernel::Error>(())
    /// ```
    pub fn parse_toml(file: &str) -> Result<Vec<KernelSpec>> {
        let mut table: toml::Table = file.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map(|span| {
                let before = &file.as_bytes()[..span.start.min(file.len())];
                before.iter().filter(|&&byte| byte == b'\n').count() + 1
            });
            Error::input(
                line.map_or_else(String::new, |line| format!("line {line}")),
                format!(
                    "this is not TOML: {}",
                    error.message().lines().next().unwrap_or_default()
                ),
                "write [[kernel]] tables with lines like kind = \"rbf\"",
            )
        })?;
        let kernels = match table.remove("kernel") {
            Some(toml::Value::Array(kernels)) => kernels,
            Some(_) => {
                return Err(Error::input(
                    "",
                    "kernel is not a list of tables",
                    "write [[kernel]] before each kernel",
                ));
            }
            None => Vec::new(),
        };
        if let Some(key) = table.keys().next() {
            return Err(Error::input(
                "",
                format!("there is no key '{key}' at the top of the file"),
                format!("write [[kernel]] tables{}", did_you_mean(key, ["kernel"])),
            ));
        }
        if kernels.is_empty() {
            return Err(Error::input(
                "",
                "there is no kernel in it",
                "write [[kernel]] tables with lines like kind = \"rbf\"",
            ));
        }
        let mut specs = Vec::new();
        for (i, kernel) in kernels.into_iter().enumerate() {
            let place = format!("kernel {}", i + 1);
            specs.extend(read(kernel).map_err(|error| within(error, &place))?);
            if specs.len() > MOST_KERNELS {
                return Err(Error::input(
                    place,
                    "the file makes too many kernels",
                    format!("at most {MOST_KERNELS} are possible"),
                ));
            }
        }
        Ok(specs)
    }

    /// The TOML file of these kernels.
    pub fn to_toml(specs: &[KernelSpec]) -> String {
        let mut file = String::new();
        for spec in specs {
            if !file.is_empty() {
                file.push('\n');
            }
            let kind = ("kind", Value::Text(spec.kind.word().to_owned()));
            file.push_str("[[kernel]]\n");
            for (key, value) in std::iter::once(kind).chain(spec.fields()) {
                let string = |text: String| toml::Value::String(text);
                let value = match value {
                    // Beyond i64 there are no integers in TOML; as text it is read back all the same.
                    Value::Count(count) => i64::try_from(count)
                        .map_or_else(|_| string(count.to_string()), toml::Value::Integer),
                    Value::Number(number) => toml::Value::Float(number),
                    Value::Text(text) => string(text),
                    Value::List(list) => toml::Value::Array(list.into_iter().map(string).collect()),
                };
                // Writing to a string cannot fail.
                let _ = writeln!(file, "{key} = {value}");
            }
        }
        file
    }
}

fn read(kernel: toml::Value) -> Result<Vec<KernelSpec>> {
    let toml::Value::Table(mut table) = kernel else {
        return Err(Error::input(
            "",
            "it is not a table",
            "write [[kernel]] before each kernel",
        ));
    };
    let kind = match table.remove("kind") {
        Some(toml::Value::String(kind)) => kind,
        Some(_) => {
            return Err(Error::input(
                "",
                "its kind is not a string",
                "write kind = \"rbf\"",
            ));
        }
        None => return Err(Error::input("", "it has no kind", "write kind = \"rbf\"")),
    };
    let mut choices = Vec::with_capacity(table.len());
    for (key, value) in table {
        let values = match value {
            // The kernels of a product are a list; a list of lists makes several.
            toml::Value::Array(values)
                if key == "of" && !values.iter().any(toml::Value::is_array) =>
            {
                vec![list(&key, values)?]
            }
            toml::Value::Array(values) if values.is_empty() => {
                return Err(Error::input(
                    "",
                    format!("{key} is an empty list"),
                    "give at least one value",
                ));
            }
            toml::Value::Array(values) => values
                .into_iter()
                .map(|value| single(&key, value))
                .collect::<Result<_>>()?,
            toml::Value::String(text)
                if !matches!(key.as_str(), "view" | "name" | "group" | "from" | "of") =>
            {
                text.split('|')
                    .map(|text| Value::Text(text.trim().to_owned()))
                    .collect()
            }
            other => vec![single(&key, other)?],
        };
        choices.push((key, values));
    }
    combinations(&kind, &choices)
}

fn list(key: &str, values: Vec<toml::Value>) -> Result<Value> {
    let names = values.into_iter().map(|value| match value {
        toml::Value::String(name) => Ok(name),
        other => Err(not_a_value(key, &other)),
    });
    Ok(Value::List(names.collect::<Result<_>>()?))
}

fn single(key: &str, value: toml::Value) -> Result<Value> {
    match value {
        toml::Value::String(text) if key == "of" => Ok(Value::List(text::parse_operands(&text)?)),
        toml::Value::String(text) => Ok(Value::Text(text)),
        toml::Value::Integer(number) => {
            Ok(u64::try_from(number).map_or(Value::Number(number as f64), Value::Count))
        }
        toml::Value::Float(number) => Ok(Value::Number(number)),
        toml::Value::Array(values) if key == "of" => list(key, values),
        other => Err(not_a_value(key, &other)),
    }
}

fn not_a_value(key: &str, value: &toml::Value) -> Error {
    Error::input(
        "",
        format!("{key} holds a {}", value.type_str()),
        "give a string or a number",
    )
}
