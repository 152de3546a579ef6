//! The description of a kernel: plain data, as users write it.
//!
//! A description has one form, a kind and named fields, and three spellings of it: SPEC strings ([`KernelSpec::parse`],
//! `Display`), TOML tables ([`KernelSpec::parse_toml`], [`KernelSpec::to_toml`]) and serde (JSON in model files). All
//! three read and write through `fields.rs`, where the names of the fields and what they may hold stand once.

mod bank;
mod choose;
mod fields;
mod suggest;
mod tables;
#[cfg(test)]
mod tests;
mod text;

pub use bank::{default_bank, default_bank_in_words, expand};
pub use choose::choose;
pub(super) use fields::{Fields, Value, out_of_range};
pub(super) use text::{number, short};

use super::kinds::Kind;
use serde::{Deserialize, Serialize};

/// What a user asks for: one kernel (or one per view, if no view is named).
///
/// Through serde it is a flat map, `{"kind": "rbf", "width": "mean*0.5", "view": "x"}`, with the keys and values of the
/// SPEC strings.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelSpec {
    /// The formula and its parameters.
    pub kind: Kind,
    /// The view (or given matrix) it looks at; none: one kernel for every view it can look at.
    pub view: Option<String>,
    /// Its name; none: made from view, kind and parameters.
    pub name: Option<String>,
    /// Its group; none: the name of the view.
    pub group: Option<String>,
    /// How its values are normalised.
    pub normalize: Normalize,
}

/// How kernel values are normalised, with the statistics of the training samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// Not at all.
    #[default]
    None,
    /// k(x,x') / √(k(x,x) k(x',x'))
    Spherical,
    /// Divided by the variance in feature space, (1/n)Σk(x,x) − (1/n²)Σk(x,x').
    Multiplicative,
    /// Divided by the mean of the diagonal.
    Trace,
    /// Centred in feature space.
    Center,
}

/// Names joined by commas, the last one by "and".
fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}

impl KernelSpec {
    /// A kernel of this kind on every view it can look at, not normalised.
    pub fn new(kind: Kind) -> Self {
        KernelSpec {
            kind,
            view: None,
            name: None,
            group: None,
            normalize: Normalize::None,
        }
    }

    /// The same on one view.
    pub fn on(mut self, view: impl Into<String>) -> Self {
        self.view = Some(view.into());
        self
    }

    /// The same under a name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same, normalised.
    pub fn normalized(mut self, normalize: Normalize) -> Self {
        self.normalize = normalize;
        self
    }
}

impl Normalize {
    /// All of them.
    pub const ALL: [Normalize; 5] = [
        Normalize::None,
        Normalize::Spherical,
        Normalize::Multiplicative,
        Normalize::Trace,
        Normalize::Center,
    ];

    /// Its word in SPEC strings.
    pub fn word(self) -> &'static str {
        match self {
            Normalize::None => "none",
            Normalize::Spherical => "spherical",
            Normalize::Multiplicative => "multiplicative",
            Normalize::Trace => "trace",
            Normalize::Center => "center",
        }
    }
}
