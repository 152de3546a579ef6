//! What is known about the samples: labels as they were read, the task they suggest, and the targets of a task.

use crate::error::{Error, Result, some_of};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;

/// Integer labels with at most this many values (or √n) are taken for classes.
const FEW_INTEGERS: usize = 20;
/// Beyond 2⁵³ neighbouring integers share an f64.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// What is to be learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Which class a sample belongs to.
    Classify,
    /// A real value.
    Regress,
    /// Whether a sample is like the training samples.
    OneClass,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Task::Classify => "classify",
            Task::Regress => "regress",
            Task::OneClass => "one-class",
        })
    }
}

impl FromStr for Task {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "classify" => Ok(Task::Classify),
            "regress" => Ok(Task::Regress),
            "one-class" => Ok(Task::OneClass),
            other => Err(Error::input(
                "task",
                format!("there is no task '{other}'"),
                "give classify, regress or one-class",
            )),
        }
    }
}

/// What labels look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelKind {
    /// Words, or codes such as 007, which are numbers to nobody.
    Text,
    /// True and false only.
    Boolean,
    /// Whole numbers only.
    Integer,
    /// Numbers.
    Real,
}

/// One label for each sample, with its original spelling.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    kind: LabelKind,
    /// The distinct spellings, in order of appearance.
    spellings: Vec<String>,
    /// Their values; empty where some are no numbers.
    numbers: Vec<f64>,
    index: Vec<u32>,
}

impl Labels {
    /// Labels from text: numbers if all are numbers, booleans if all are true or false, else words.
    pub fn from_text<S: AsRef<str>>(labels: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut builder = LabelBuilder::default();
        for label in labels {
            builder.push(label.as_ref());
        }
        builder.finish("labels")
    }

    /// Labels from numbers, which must be finite.
    pub fn from_numbers(labels: impl IntoIterator<Item = f64>) -> Result<Self> {
        Self::from_text(labels.into_iter().map(|v| v.to_string()))
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// No labels at all.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// What they look like.
    pub fn kind(&self) -> LabelKind {
        self.kind
    }

    /// The label of sample `i` as it was written.
    pub fn spelling(&self, i: usize) -> &str {
        &self.spellings[self.index[i] as usize]
    }

    /// The label of sample `i` as a number (true is 1), unless some label is none.
    pub fn number(&self, i: usize) -> Option<f64> {
        self.numbers.get(self.index[i] as usize).copied()
    }

    /// The number of distinct labels; different spellings of a number count once.
    pub fn distinct(&self) -> usize {
        self.classes().0.len()
    }

    /// The labels of the samples named, in that order.
    pub fn select(&self, rows: &[usize]) -> Self {
        Labels {
            kind: self.kind,
            spellings: self.spellings.clone(),
            numbers: self.numbers.clone(),
            index: rows.iter().map(|&i| self.index[i]).collect(),
        }
    }

    /// The class of each label among the `names` of a model: the same spelling, or the same number unless there are codes
    /// such as 007.
    pub fn class_index(&self, names: &[String]) -> Vec<Option<u32>> {
        let codes = names.iter().chain(&self.spellings).any(|n| is_code(n));
        let parsed: Vec<Option<f64>> = names.iter().map(|n| number_of(n)).collect();
        let of_spelling: Vec<Option<u32>> = self
            .spellings
            .iter()
            .enumerate()
            .map(|(s, spelling)| {
                names
                    .iter()
                    .position(|name| name == spelling)
                    .or_else(|| {
                        let value = *self.numbers.get(s).filter(|_| !codes)?;
                        let mut classes = names.iter().zip(&parsed);
                        classes.position(|(name, parsed)| {
                            parsed.is_some_and(|p| same((spelling, value), (name, p)))
                        })
                    })
                    .map(|c| c as u32)
            })
            .collect();
        self.index
            .iter()
            .map(|&s| of_spelling[s as usize])
            .collect()
    }

    /// What is to be said where a number is spelled in several ways and taken for one class.
    pub fn merged(&self) -> Option<String> {
        let (names, class_of) = self.classes();
        let merged = self.spellings.iter().zip(&class_of).find(|(spelling, c)| {
            let name = names.get(**c as usize);
            self.kind != LabelKind::Text && name.is_some_and(|name| name != *spelling)
        });
        merged.map(|(spelling, &c)| {
            format!(
                "labels that are the same number are one class, however they are spelled: '{spelling}' is '{}'",
                names[c as usize]
            )
        })
    }

    /// Class names in order (by value if all are numbers, else by spelling) and the class of each spelling that
    /// occurs. A number spelled in several ways is one class, named as it was spelled first.
    fn classes(&self) -> (Vec<String>, Vec<u32>) {
        let mut occurs = vec![false; self.spellings.len()];
        for &s in &self.index {
            occurs[s as usize] = true;
        }
        let mut order: Vec<usize> = (0..self.spellings.len()).filter(|&s| occurs[s]).collect();
        let numeric = self.kind != LabelKind::Text;
        if numeric {
            let whole = |s: usize| whole_of(&self.spellings[s]);
            order.sort_by(|&a, &b| {
                let by_value = self.numbers[a].total_cmp(&self.numbers[b]);
                let large = self.numbers[a].abs() >= LARGEST_EXACT;
                let exactly = || match large {
                    true => whole(a).cmp(&whole(b)),
                    false => Ordering::Equal,
                };
                by_value.then_with(exactly).then(a.cmp(&b))
            });
        } else {
            order.sort_by(|&a, &b| self.spellings[a].cmp(&self.spellings[b]));
        }
        let mut names: Vec<String> = Vec::new();
        // No class for those that do not occur.
        let mut class_of = vec![u32::MAX; self.spellings.len()];
        let mut last: Option<usize> = None;
        for s in order {
            let number = |s: usize| (self.spellings[s].as_str(), self.numbers[s]);
            let again = numeric && last.is_some_and(|last| same(number(last), number(s)));
            if !again {
                names.push(self.spellings[s].clone());
                last = Some(s);
            }
            class_of[s] = names.len() as u32 - 1;
        }
        (names, class_of)
    }
}

fn number_of(text: &str) -> Option<f64> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Some(1.0),
        "false" => Some(0.0),
        other => other.parse().ok(),
    }
    // Minus zero and zero are the same label.
    .map(|v: f64| v + 0.0)
}

/// The whole number that is written here, exactly.
fn whole_of(text: &str) -> Option<i128> {
    let text = match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|b| b == b'0') => whole,
        _ => text,
    };
    text.parse().ok()
}

/// Whether two spellings with these values are the same number; large ones that differ may share a value.
fn same(a: (&str, f64), b: (&str, f64)) -> bool {
    a.1 == b.1
        && (a.1.abs() < LARGEST_EXACT
            || a.0 == b.0
            || whole_of(a.0).is_some_and(|whole| whole_of(b.0) == Some(whole)))
}

/// Digits behind a zero: numbers are not written so, codes are.
fn is_code(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit())
}

/// Collects labels one by one.
#[derive(Debug, Default)]
pub struct LabelBuilder {
    known: HashMap<String, u32>,
    spellings: Vec<String>,
    index: Vec<u32>,
}

impl LabelBuilder {
    /// Takes a label; returns the bytes that it cost beyond the four of its index.
    pub fn push(&mut self, label: &str) -> u64 {
        let label = label.trim();
        if let Some(&s) = self.known.get(label) {
            self.index.push(s);
            return 0;
        }
        let s = self.spellings.len() as u32;
        self.known.insert(label.to_owned(), s);
        self.spellings.push(label.to_owned());
        self.index.push(s);
        // Two strings, and a slot of the table with its share of empty ones.
        2 * (label.len() as u64 + 24) + 64
    }

    /// Labels taken so far.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// No label yet.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Decides what the labels are; `place` is for errors.
    pub fn finish(self, place: &str) -> Result<Labels> {
        let LabelBuilder {
            spellings, index, ..
        } = self;
        if index.is_empty() {
            return Err(Error::input(
                place,
                "there are no labels",
                "give one label for each sample",
            ));
        }
        let row_of = |s: usize| index.iter().position(|&i| i as usize == s).unwrap_or(0) + 1;
        if let Some(s) = spellings.iter().position(String::is_empty) {
            return Err(Error::input(
                format!("{place} row {}", row_of(s)),
                "the label is missing",
                "give one label for each sample",
            ));
        }
        let boolean = spellings
            .iter()
            .all(|s| s.eq_ignore_ascii_case("true") || s.eq_ignore_ascii_case("false"));
        let mut numbers: Vec<f64> = spellings.iter().map_while(|s| number_of(s)).collect();
        let some_word =
            |s: &String| s.eq_ignore_ascii_case("true") || s.eq_ignore_ascii_case("false");
        if numbers.len() < spellings.len() || (!boolean && spellings.iter().any(some_word)) {
            numbers.clear();
        }
        if let Some(s) = numbers.iter().position(|v| !v.is_finite()) {
            return Err(Error::input(
                format!("{place} row {}", row_of(s)),
                format!("the label is {}", spellings[s]),
                "give a finite number, or remove the sample",
            ));
        }
        let whole = |(s, v): (&String, &f64)| {
            v.fract() == 0.0 && (v.abs() < LARGEST_EXACT || whole_of(s).is_some())
        };
        let kind = if numbers.is_empty() || spellings.iter().any(|s| is_code(s)) {
            LabelKind::Text
        } else if boolean {
            LabelKind::Boolean
        } else if spellings.iter().zip(&numbers).all(whole) {
            LabelKind::Integer
        } else {
            LabelKind::Real
        };
        Ok(Labels {
            kind,
            spellings,
            numbers,
            index,
        })
    }
}

/// The task that the labels suggest, and why, as a sentence.
pub fn infer_task(labels: Option<&Labels>) -> (Task, String) {
    let Some(labels) = labels else {
        return (
            Task::OneClass,
            "task one-class, because there are no labels".into(),
        );
    };
    let n = labels.len();
    let distinct = labels.distinct();
    let few = FEW_INTEGERS.max(n.isqrt());
    match labels.kind() {
        LabelKind::Text if !labels.numbers.is_empty() => (
            Task::Classify,
            format!(
                "task classify, because some labels are digits behind a zero, which makes all of them names ({distinct} different)"
            ),
        ),
        LabelKind::Text => (
            Task::Classify,
            format!("task classify, because the labels are words ({distinct} different)"),
        ),
        LabelKind::Boolean => (
            Task::Classify,
            "task classify, because the labels are true or false".into(),
        ),
        LabelKind::Integer if distinct <= few => (
            Task::Classify,
            format!(
                "task classify, because the labels are whole numbers with {distinct} different values (at most {few})"
            ),
        ),
        LabelKind::Integer => (
            Task::Regress,
            format!(
                "task regress, because the labels are whole numbers with {distinct} different values (more than {few})"
            ),
        ),
        LabelKind::Real if labels.numbers.iter().all(|v| v.fract() == 0.0) => (
            Task::Regress,
            "task regress, because some labels are numbers beyond those that are written in digits"
                .into(),
        ),
        LabelKind::Real => (
            Task::Regress,
            "task regress, because not all labels are whole numbers".into(),
        ),
    }
}

/// What a solver is to reach.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// Nothing: one-class.
    None,
    /// A class for each sample.
    Classes {
        /// Names in order: by value if all are numbers, else by spelling.
        names: Vec<String>,
        /// The class of each sample, a position in `names`.
        index: Vec<u32>,
    },
    /// A value for each sample.
    Real(Vec<f64>),
}

impl Targets {
    /// What is learned from them.
    pub fn task(&self) -> Task {
        match self {
            Targets::Classes { .. } => Task::Classify,
            Targets::Real(_) => Task::Regress,
            Targets::None => Task::OneClass,
        }
    }

    /// The targets of a task for so many samples. One-class ignores the labels.
    pub fn new(labels: Option<&Labels>, task: Task, samples: usize) -> Result<Self> {
        if task == Task::OneClass {
            return Ok(Targets::None);
        }
        let Some(labels) = labels else {
            return Err(Error::input(
                "labels",
                format!("there are none, but the task is {task}"),
                "give labels, or take the task one-class",
            ));
        };
        check_count(labels.len(), samples)?;
        if task == Task::Regress {
            if labels.numbers.is_empty() {
                let row = (0..labels.len())
                    .find(|&i| number_of(labels.spelling(i)).is_none())
                    .unwrap_or(0);
                return Err(Error::input(
                    format!("labels row {}", row + 1),
                    format!(
                        "{} is not a number, but the task is regress",
                        some_of([labels.spelling(row)])
                    ),
                    "give numbers, or take the task classify",
                ));
            }
            return Ok(Targets::Real(
                (0..labels.len()).filter_map(|i| labels.number(i)).collect(),
            ));
        }
        let (names, class_of) = labels.classes();
        if names.len() < 2 {
            return Err(Error::input(
                "labels",
                format!("all samples have the same label {}", some_of(&names)),
                "to classify give samples of at least two classes, or take the task one-class",
            ));
        }
        let index = labels.index.iter().map(|&s| class_of[s as usize]).collect();
        Ok(Targets::Classes { names, index })
    }

    /// Classes, by the label of each sample.
    ///
    /// # Errors
    /// If there are fewer than two, or a label is empty.
    pub fn classes<S: AsRef<str>>(labels: impl IntoIterator<Item = S>) -> Result<Self> {
        let labels = Labels::from_text(labels)?;
        Targets::new(Some(&labels), Task::Classify, labels.len())
    }

    /// A number for each sample.
    ///
    /// # Errors
    /// If one is not finite.
    pub fn numbers(values: impl IntoIterator<Item = f64>) -> Result<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        match values.iter().position(|v| !v.is_finite()) {
            Some(i) => Err(Error::input(
                format!("labels row {}", i + 1),
                format!("the value is {}", values[i]),
                "give a finite number, or remove the sample",
            )),
            None => Ok(Targets::Real(values)),
        }
    }

    /// The targets of other samples for the same task, their classes numbered as here.
    pub fn of_others(&self, labels: Option<&Labels>, samples: usize) -> Result<Self> {
        let (Targets::Classes { names, .. }, Some(labels)) = (self, labels) else {
            return Targets::new(labels, self.task(), samples);
        };
        check_count(labels.len(), samples)?;
        let known = labels.class_index(names);
        if let Some(row) = known.iter().position(Option::is_none) {
            return Err(Error::input(
                format!("labels row {}", row + 1),
                format!(
                    "{} is no class of the training data, which has {}",
                    some_of([labels.spelling(row)]),
                    some_of(names)
                ),
                "leave such samples out",
            ));
        }
        Ok(Targets::Classes {
            names: names.clone(),
            index: known.into_iter().flatten().collect(),
        })
    }

    /// The targets of the samples named, in that order; all class names stay.
    pub fn select(&self, rows: &[usize]) -> Self {
        match self {
            Targets::None => Targets::None,
            Targets::Real(values) => Targets::Real(rows.iter().map(|&i| values[i]).collect()),
            Targets::Classes { names, index } => Targets::Classes {
                names: names.clone(),
                index: rows.iter().map(|&i| index[i]).collect(),
            },
        }
    }

    /// How many samples of each class, in the order of the names; empty without classes.
    pub fn class_counts(&self) -> Vec<(String, usize)> {
        match self {
            Targets::Classes { names, index } => {
                let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
                for &c in index {
                    *counts.entry(c).or_default() += 1;
                }
                names
                    .iter()
                    .enumerate()
                    .map(|(c, name)| (name.clone(), counts.get(&(c as u32)).copied().unwrap_or(0)))
                    .collect()
            }
            Targets::None | Targets::Real(_) => Vec::new(),
        }
    }
}

/// One label for each sample, or a sentence.
pub fn check_count(labels: usize, samples: usize) -> Result<()> {
    if labels == samples {
        return Ok(());
    }
    Err(Error::input(
        "labels",
        format!("there are {labels} labels for {samples} samples"),
        "give one label for each sample, in the same order",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(labels: &[&str]) -> Labels {
        Labels::from_text(labels).unwrap()
    }

    #[test]
    fn kinds_are_told_apart() {
        assert_eq!(words(&["a", "1"]).kind(), LabelKind::Text);
        assert_eq!(words(&["True", "false"]).kind(), LabelKind::Boolean);
        assert_eq!(words(&["+1", "-1", "1.0"]).kind(), LabelKind::Integer);
        assert_eq!(words(&["1", "0.5"]).kind(), LabelKind::Real);
        assert_eq!(words(&["1", "true"]).kind(), LabelKind::Text);
    }

    #[test]
    fn classes_are_ordered_by_value_and_keep_their_spelling() {
        let labels = words(&["10", "+9", "9.0", "-1"]);
        let targets = Targets::new(Some(&labels), Task::Classify, 4).unwrap();
        assert_eq!(
            targets,
            Targets::Classes {
                names: vec!["-1".into(), "+9".into(), "10".into()],
                index: vec![2, 1, 1, 0],
            }
        );
        let labels = words(&["b", "a", "10", "9"]);
        let Targets::Classes { names, .. } =
            Targets::new(Some(&labels), Task::Classify, 4).unwrap()
        else {
            panic!("classes expected");
        };
        assert_eq!(names, ["10", "9", "a", "b"]);
    }

    #[test]
    fn large_whole_numbers_are_not_mixed_up() {
        let large = [
            "10000000000000001",
            "10000000000000000",
            "-3",
            "10000000000000000.0",
        ];
        let labels = words(&large);
        assert_eq!(labels.kind(), LabelKind::Integer);
        assert_eq!(infer_task(Some(&labels)).0, Task::Classify);
        let targets = Targets::new(Some(&labels), Task::Classify, 4).unwrap();
        assert_eq!(
            targets,
            Targets::Classes {
                names: vec!["-3".into(), large[1].into(), large[0].into()],
                index: vec![2, 1, 0, 1],
            }
        );
        let Targets::Classes { names, .. } = &targets else {
            panic!("classes expected");
        };
        let others = words(&["10000000000000001.0", "10000000000000002", "-3.0"]);
        assert_eq!(others.class_index(names), [Some(2), None, Some(0)]);
        assert_eq!(words(&["1e300", "2"]).kind(), LabelKind::Real);
    }

    #[test]
    fn digits_behind_a_zero_are_names() {
        let labels = words(&["1", "01", "1.0", "2"]);
        assert_eq!((labels.kind(), labels.distinct()), (LabelKind::Text, 4));
        assert_eq!(labels.merged(), None);
        let (task, reason) = infer_task(Some(&labels));
        assert_eq!(task, Task::Classify);
        assert!(reason.contains("digits behind a zero"), "{reason}");
        // Whoever wants numbers gets them.
        assert_eq!(
            Targets::new(Some(&labels), Task::Regress, 4).unwrap(),
            Targets::Real(vec![1.0, 1.0, 1.0, 2.0])
        );
        let names = ["01".to_owned(), "02".to_owned()];
        assert_eq!(words(&["1", "01"]).class_index(&names), [None, Some(0)]);
        assert_eq!(words(&["0", "0.5", "-0.25"]).kind(), LabelKind::Real);
    }

    #[test]
    fn spellings_that_are_merged_are_told() {
        let labels = words(&["2", "1", "1.0"]);
        assert_eq!(labels.distinct(), 2);
        let said = labels.merged().unwrap();
        assert!(said.ends_with("'1.0' is '1'"), "{said}");
        assert_eq!(labels.select(&[0, 1, 1]).merged(), None);
        assert_eq!(words(&["2", "1"]).merged(), None);
        assert_eq!(words(&["b", "a"]).merged(), None);
    }

    #[test]
    fn the_task_follows_the_rule_and_says_why() {
        assert_eq!(infer_task(None).0, Task::OneClass);
        assert_eq!(infer_task(Some(&words(&["a", "b"]))).0, Task::Classify);
        assert_eq!(
            infer_task(Some(&words(&["true", "false"]))).0,
            Task::Classify
        );
        assert_eq!(infer_task(Some(&words(&["0.5", "1"]))).0, Task::Regress);
        let many = |n: i64, distinct: i64| {
            Labels::from_numbers((0..n).map(|i| (i % distinct) as f64)).unwrap()
        };
        assert_eq!(infer_task(Some(&many(100, 20))).0, Task::Classify);
        let (task, reason) = infer_task(Some(&many(100, 21)));
        assert_eq!(task, Task::Regress);
        assert_eq!(
            reason,
            "task regress, because the labels are whole numbers with 21 different values (more than 20)"
        );
        assert_eq!(infer_task(Some(&many(900, 30))).0, Task::Classify);
        assert_eq!(infer_task(Some(&many(900, 31))).0, Task::Regress);
    }

    #[test]
    fn bad_labels_are_named() {
        let error = Labels::from_text(["1", "2", "nan"])
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "labels row 3: the label is nan; give a finite number, or remove the sample"
        );
        let error = Labels::from_text(["1", "", "2"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "labels row 2: the label is missing; give one label for each sample"
        );
        let labels = words(&["a", "a"]);
        let error = Targets::new(Some(&labels), Task::Classify, 2)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("labels: all samples have the same label 'a'; to classify"),
            "{error}"
        );
        let error = Targets::new(Some(&labels), Task::Classify, 3)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "labels: there are 2 labels for 3 samples; give one label for each sample, in the same order"
        );
        let error = Targets::new(Some(&words(&["1", "x"])), Task::Regress, 2)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("labels row 2: 'x' is not a number, but the task is regress"),
            "{error}"
        );
        let error = Targets::new(None, Task::Regress, 2)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("labels: there are none, but the task is regress"),
            "{error}"
        );
        assert_eq!(
            Targets::new(Some(&labels), Task::OneClass, 2).unwrap(),
            Targets::None
        );
    }

    #[test]
    fn labels_meet_the_classes_of_a_model() {
        let names = ["-1".to_owned(), "+1".to_owned()];
        assert_eq!(
            words(&["1", "-1.0", "3"]).class_index(&names),
            [Some(1), Some(0), None]
        );
        assert_eq!(words(&["1", "2", "1"]).select(&[2, 1]).spelling(0), "1");
    }
}
