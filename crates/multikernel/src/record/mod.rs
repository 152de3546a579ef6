//! What is kept with a model beyond its result object, so that a report can be drawn from the model file alone.
//!
//! In the file it stands among the keys of `training`, beside those of the [result object](ResultObject). Every part may be missing: a report shows
//! what there is. Lists "for each kernel" are in the order of the result object's `kernels`.

mod result;

pub use result::{KernelObject, NormObject, OneOrMany, ResultObject, Seconds};

use crate::train::Fitted;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Everything that a report shows and the result object has not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// What trained the model, as one line: a command for a shell, or an expression of Python.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The version of the program or package that trained it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What was chosen automatically, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The rounds of every problem.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Rounds>,
    /// What the model is worth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    /// How kernels resemble the targets and each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<Alignment>,
    /// How sure the weights are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stability: Option<Stability>,
    /// How C and the norm were chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
}

/// A number and where it may lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The number.
    #[serde(deserialize_with = "number")]
    pub value: f64,
    /// Lower end.
    #[serde(deserialize_with = "number")]
    pub low: f64,
    /// Upper end.
    #[serde(deserialize_with = "number")]
    pub high: f64,
}

/// The rounds of one problem.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rounds {
    /// What it separates; empty if it is the only one.
    pub problem: String,
    /// Seconds since training began, one for each round; so are the other lists.
    #[serde(deserialize_with = "numbers")]
    pub seconds: Vec<f64>,
    /// Primal objective.
    #[serde(deserialize_with = "numbers")]
    pub primal: Vec<f64>,
    /// Dual objective.
    #[serde(deserialize_with = "numbers")]
    pub dual: Vec<f64>,
    /// What the round was worth on validation samples; empty where there were none.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "numbers")]
    pub validation: Vec<f64>,
}

/// What a model is worth on samples whose truth is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evaluation {
    /// Which samples, in words: `360 samples held out`.
    pub samples: String,
    /// They came after the training, from whoever asked: nothing is known of whether they were trained on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// Number of samples.
    pub n: usize,
    /// Level of the intervals, such as 0.95.
    #[serde(deserialize_with = "number")]
    pub level: f64,
    /// Metrics by the names of the result object.
    pub metrics: BTreeMap<String, Interval>,
    /// Counts of (true class, predicted class), one list for each true class; classes in the model's order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confusion: Option<Vec<Vec<u64>>>,
    /// (truth, prediction) of a regression; a sample of them where there are very many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residuals: Option<Vec<(f64, f64)>>,
    /// Whether probabilities mean what they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Vec<CalibrationBin>>,
}

impl Evaluation {
    /// The metrics without their intervals.
    pub fn values(&self) -> BTreeMap<String, f64> {
        let metrics = self.metrics.iter();
        metrics.map(|(name, m)| (name.clone(), m.value)).collect()
    }
}

/// Samples that were given about the same probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CalibrationBin {
    /// Mean probability of the predicted class.
    #[serde(deserialize_with = "number")]
    pub probability: f64,
    /// Share of them for which it was right.
    #[serde(deserialize_with = "number")]
    pub observed: f64,
    /// Number of samples.
    pub count: usize,
}

/// How kernels resemble the targets and each other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Alignment {
    /// Number of samples that were looked at.
    pub samples: usize,
    /// Centred alignment with the targets, for each kernel; none where there are no targets or the kernel is constant.
    pub targets: Vec<Option<f64>>,
    /// Kernels of the rows and columns of `pairwise`: all if they are few, else those with the largest weights.
    pub shown: Vec<usize>,
    /// Centred alignment of each pair of kernels shown.
    pub pairwise: Vec<Vec<f64>>,
}

/// How sure the weights are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stability {
    /// How samples were drawn, in words: `bootstrap`, `subsamples of 63 %`.
    pub method: String,
    /// Number of trainings.
    pub rounds: usize,
    /// Level of the intervals, such as 0.95.
    #[serde(deserialize_with = "number")]
    pub level: f64,
    /// Weight of each kernel as a share of all weights, with its interval.
    pub shares: Vec<Interval>,
    /// Share of the rounds in which each kernel had a weight.
    #[serde(deserialize_with = "numbers")]
    pub chosen: Vec<f64>,
    /// What happens to the weights when targets are shuffled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shuffled: Option<Shuffled>,
    /// What happens without each kernel: the metric's change when it is left out and the rest is trained anew (negative: worse without it).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without: Option<Without>,
}

/// Weights under shuffled targets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shuffled {
    /// Number of trainings.
    pub rounds: usize,
    /// Mean weight of each kernel, as a share.
    #[serde(deserialize_with = "numbers")]
    pub mean: Vec<f64>,
    /// For each kernel: share of trainings with shuffled targets whose weight was at least the real one, (1 + count)/(1 + rounds).
    #[serde(deserialize_with = "numbers")]
    pub p_value: Vec<f64>,
}

/// The effect of leaving one kernel out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Without {
    /// The metric.
    pub metric: String,
    /// Its value with all kernels.
    #[serde(deserialize_with = "number")]
    pub all: f64,
    /// Its change without each kernel; none where it was not tried.
    pub change: Vec<Option<f64>>,
}

/// A grid over norms and C, by cross-validation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tuning {
    /// The metric that was looked at; larger is better (errors are negated by name: `-mae`).
    pub metric: String,
    /// Number of folds.
    pub folds: usize,
    /// How the point was chosen: `best` or `one-standard-error`.
    pub rule: String,
    /// Norms, one for each row of the grid.
    pub norms: Vec<String>,
    /// C, one for each column of the grid.
    #[serde(deserialize_with = "numbers")]
    pub costs: Vec<f64>,
    /// Choices of kernels, one for each sheet of the grid; one, unnamed, if nothing was chosen there.
    pub banks: Vec<String>,
    /// Every point that was tried.
    pub points: Vec<Point>,
    /// The point taken, as a position in `points`.
    pub chosen: usize,
    /// Share of the folds' resamplings in which the same point was the best: how sure the choice is.
    #[serde(deserialize_with = "number")]
    pub agreement: f64,
    /// Points whose mean is within one standard error of the best.
    pub within_error: usize,
    /// What the whole procedure reaches on samples it never saw, by nested cross-validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested: Option<Interval>,
    /// Seconds of the search.
    #[serde(deserialize_with = "number")]
    pub seconds: f64,
}

/// One point of the grid.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// Position in `banks`.
    pub bank: usize,
    /// Position in `norms`.
    pub norm: usize,
    /// Position in `costs`.
    pub cost: usize,
    /// The metric on every fold.
    #[serde(deserialize_with = "numbers")]
    pub folds: Vec<f64>,
    /// Mean over folds.
    #[serde(deserialize_with = "number")]
    pub mean: f64,
    /// Standard error of the mean.
    #[serde(deserialize_with = "number")]
    pub standard_error: f64,
    /// Whether all fits converged.
    pub converged: bool,
}

impl Record {
    /// What a training says of itself: version, notes and rounds.
    pub fn new(fitted: &Fitted) -> Record {
        Record {
            version: Some(env!("CARGO_PKG_VERSION").into()),
            notes: fitted.notes.clone(),
            history: fitted
                .problems
                .iter()
                .map(|problem| {
                    let rounds = || problem.history.iter();
                    Rounds {
                        problem: problem.name.clone(),
                        seconds: rounds().map(|look| look.seconds).collect(),
                        primal: rounds().map(|look| look.primal).collect(),
                        dual: rounds().map(|look| look.dual).collect(),
                        validation: problem.validation.clone(),
                    }
                })
                .collect(),
            ..Record::default()
        }
    }

    /// What the training value of a model holds. A part that cannot be read is left out, and the others are read all the same.
    pub fn of(training: &Value) -> Record {
        fn part<T: DeserializeOwned + Default>(training: &Value, key: &str) -> T {
            let value = training.get(key);
            value
                .and_then(|value| T::deserialize(value).ok())
                .unwrap_or_default()
        }
        Record {
            command: part(training, "command"),
            version: part(training, "version"),
            notes: part(training, "notes"),
            history: part(training, "history"),
            evaluation: part(training, "evaluation"),
            alignment: part(training, "alignment"),
            stability: part(training, "stability"),
            tuning: part(training, "tuning"),
        }
    }

    /// The training value of a model: the keys of its result object and of this record.
    ///
    /// # Errors
    /// If the result object is no object.
    pub fn beside(&self, result: &impl Serialize) -> serde_json::Result<Value> {
        #[derive(Serialize)]
        struct Both<'a, R> {
            #[serde(flatten)]
            result: &'a R,
            #[serde(flatten)]
            record: &'a Record,
        }
        serde_json::to_value(Both {
            result,
            record: self,
        })
    }
}

/// JSON has no NaN and no infinity: they are written as null, and read as NaN.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

fn numbers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let values: Vec<Option<f64>> = Vec::deserialize(from)?;
    Ok(values.into_iter().map(|v| v.unwrap_or(f64::NAN)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_comes_back_also_where_numbers_are_none() {
        let record = Record {
            command: Some("multikernel train".into()),
            history: vec![Rounds {
                primal: vec![2.0, 1.5],
                dual: vec![f64::NEG_INFINITY, 1.0],
                seconds: vec![0.1, 0.2],
                ..Rounds::default()
            }],
            alignment: Some(Alignment {
                samples: 10,
                targets: vec![Some(0.5), None],
                ..Alignment::default()
            }),
            ..Record::default()
        };
        let value = record.beside(&json!({"status": "converged"})).unwrap();
        assert_eq!(value["status"], "converged");
        assert!(value.get("stability").is_none());
        let back = Record::of(&value);
        assert_eq!(back.command, record.command);
        assert_eq!(back.alignment, record.alignment);
        assert_eq!(back.history[0].primal, [2.0, 1.5]);
        assert!(back.history[0].dual[0].is_nan() && back.history[0].dual[1] == 1.0);
    }

    #[test]
    fn a_part_that_is_wrong_takes_no_other_with_it() {
        let value = json!({"notes": ["one"], "tuning": {"folds": "five"}, "history": 3});
        let record = Record::of(&value);
        assert_eq!(record.notes, ["one"]);
        assert!(record.tuning.is_none() && record.history.is_empty());
        for other in [Value::Null, json!([1]), json!("text")] {
            assert_eq!(Record::of(&other), Record::default());
        }
    }
}
