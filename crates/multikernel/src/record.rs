//! What is kept with a model beyond its result object, so that a report can be drawn from the model file alone.
//!
//! In the file it stands among the keys of `training`, beside those of the [result object](crate::result::ResultObject). Every part may be missing: a report shows
//! what there is. Lists "for each kernel" are in the order of the result object's `kernels`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that a report shows and the result object has not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The command that trained the model, as one line for a shell.
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
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The rounds of one problem.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// What it separates; empty if it is the only one.
    pub problem: String,
    /// Seconds since training began, one for each round; so are the other lists.
    pub seconds: Vec<f64>,
    /// Primal objective.
    pub primal: Vec<f64>,
    /// Dual objective.
    pub dual: Vec<f64>,
    /// What the round was worth on validation samples; empty where there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation: Vec<f64>,
}

/// What a model is worth on samples whose truth is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Which samples, in words: `360 samples held out`.
    pub samples: String,
    /// Number of samples.
    pub n: usize,
    /// Level of the intervals, such as 0.95.
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

/// Samples that were given about the same probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CalibrationBin {
    /// Mean probability of the predicted class.
    pub probability: f64,
    /// Share of them for which it was right.
    pub observed: f64,
    /// Number of samples.
    pub count: usize,
}

/// How kernels resemble the targets and each other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Alignment {
    /// Centred alignment with the targets, for each kernel; none where there are no targets or the kernel is constant.
    pub targets: Vec<Option<f64>>,
    /// Kernels of the rows and columns of `pairwise`: all if they are few, else those with the largest weights.
    pub shown: Vec<usize>,
    /// Centred alignment of each pair of kernels shown.
    pub pairwise: Vec<Vec<f64>>,
}

/// How sure the weights are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stability {
    /// How samples were drawn, in words: `bootstrap`, `subsamples of 63 %`.
    pub method: String,
    /// Number of trainings.
    pub rounds: usize,
    /// Level of the intervals, such as 0.95.
    pub level: f64,
    /// Weight of each kernel as a share of all weights, with its interval.
    pub shares: Vec<Interval>,
    /// Share of the rounds in which each kernel had a weight.
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
pub struct Shuffled {
    /// Number of trainings.
    pub rounds: usize,
    /// Mean weight of each kernel, as a share.
    pub mean: Vec<f64>,
    /// For each kernel: share of trainings with shuffled targets whose weight was at least the real one, (1 + count)/(1 + rounds).
    pub p_value: Vec<f64>,
}

/// The effect of leaving one kernel out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Without {
    /// The metric.
    pub metric: String,
    /// Its value with all kernels.
    pub all: f64,
    /// Its change without each kernel; none where it was not tried.
    pub change: Vec<Option<f64>>,
}

/// A grid over norms and C, by cross-validation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    pub costs: Vec<f64>,
    /// Choices of kernels, one for each sheet of the grid; one, unnamed, if nothing was chosen there.
    pub banks: Vec<String>,
    /// Every point that was tried.
    pub points: Vec<Point>,
    /// The point taken, as a position in `points`.
    pub chosen: usize,
    /// Share of the folds' resamplings in which the same point was the best: how sure the choice is.
    pub agreement: f64,
    /// Points whose mean is within one standard error of the best.
    pub within_error: usize,
    /// What the whole procedure reaches on samples it never saw, by nested cross-validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested: Option<Interval>,
    /// Seconds of the search.
    pub seconds: f64,
}

/// One point of the grid.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Position in `banks`.
    pub bank: usize,
    /// Position in `norms`.
    pub norm: usize,
    /// Position in `costs`.
    pub cost: usize,
    /// The metric on every fold.
    pub folds: Vec<f64>,
    /// Mean over folds.
    pub mean: f64,
    /// Standard error of the mean.
    pub standard_error: f64,
    /// Whether all fits converged.
    pub converged: bool,
}

impl Record {
    /// What the training value of a model holds; empty where it holds nothing that can be read.
    pub fn of(training: &serde_json::Value) -> Record {
        Record::deserialize(training).unwrap_or_default()
    }
}
