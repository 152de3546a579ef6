//! Metrics that choices are made by.

use super::metrics::{self, Truth};
use super::{Predictions, Scores};
use crate::data::{Targets, Task};
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// What points are compared by; larger is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Share of right answers.
    Accuracy,
    /// Mean over the classes of the share of right answers.
    BalancedAccuracy,
    /// Matthews' correlation.
    Mcc,
    /// Area under the ROC curve, the mean over classes where there are several.
    Auc,
    /// R²
    R2,
    /// Minus the mean absolute error.
    Mae,
    /// Minus the root of the mean squared error.
    Rmse,
}

const METRICS: [(Metric, &str); 7] = [
    (Metric::Accuracy, "accuracy"),
    (Metric::BalancedAccuracy, "balanced_accuracy"),
    (Metric::Mcc, "mcc"),
    (Metric::Auc, "auc"),
    (Metric::R2, "r2"),
    (Metric::Mae, "-mae"),
    (Metric::Rmse, "-rmse"),
];

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Metric {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let known = METRICS
            .iter()
            .find(|(_, name)| name.trim_start_matches('-') == text.trim_start_matches('-'));
        known.map(|(metric, _)| *metric).ok_or_else(|| {
            Error::input(
                "metric",
                format!("'{text}' is not known"),
                "give accuracy, balanced_accuracy, mcc or auc for classes, r2, mae or rmse for numbers",
            )
        })
    }
}

impl Metric {
    /// Its name in results; errors have a minus, since larger is better.
    pub fn name(self) -> &'static str {
        METRICS
            .iter()
            .find(|(metric, _)| *metric == self)
            .map_or("", |(_, name)| name)
    }

    /// What is usual for the targets: accuracy or R².
    pub fn usual(targets: &Targets) -> Metric {
        match targets {
            Targets::Real(_) => Metric::R2,
            Targets::Classes { .. } | Targets::None => Metric::Accuracy,
        }
    }

    /// Whether it measures what the task predicts.
    ///
    /// # Errors
    /// If it does not.
    pub fn check(self, task: Task) -> Result<()> {
        let of_numbers = matches!(self, Metric::R2 | Metric::Mae | Metric::Rmse);
        match task {
            Task::OneClass => Err(Error::input(
                "task",
                "one-class has no labels that predictions could be compared with, so nothing can be chosen by them",
                "train with several C and compare what is accepted, or give labels and the task classify or regress",
            )),
            Task::Classify if of_numbers => Err(Error::input(
                "metric",
                format!("{self} is for numbers, but the task is classify"),
                "give accuracy, balanced_accuracy, mcc or auc",
            )),
            Task::Regress if !of_numbers => Err(Error::input(
                "metric",
                format!("{self} is for classes, but the task is regress"),
                "give r2, mae or rmse",
            )),
            _ => Ok(()),
        }
    }

    /// Its value; none where there is none, such as the AUC of samples of one class.
    pub fn of(self, predictions: &Predictions, scores: &Scores, targets: &Targets) -> Option<f64> {
        let key = self.name().trim_start_matches('-');
        let classes: Vec<Option<u32>>;
        let truth = match targets {
            Targets::Classes { index, .. } => {
                classes = index.iter().map(|&c| Some(c)).collect();
                Truth::Classes(&classes)
            }
            Targets::Real(values) => Truth::Real(values),
            Targets::None => Truth::None,
        };
        let found = metrics::measure(predictions, scores, truth);
        found.get(key).map(|value| self.sign() * value)
    }

    /// −1 for errors.
    pub fn sign(self) -> f64 {
        match self {
            Metric::Mae | Metric::Rmse => -1.0,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_known_by_name_and_larger_is_better() {
        assert_eq!("mae".parse::<Metric>().unwrap(), Metric::Mae);
        assert_eq!("-mae".parse::<Metric>().unwrap(), Metric::Mae);
        assert!(
            "loss"
                .parse::<Metric>()
                .unwrap_err()
                .to_string()
                .starts_with("metric: 'loss' is not known")
        );
        let scores = Scores {
            names: vec!["score".into()],
            values: vec![1.0, 2.0],
        };
        let predictions = Predictions::Real(vec![1.0, 2.0]);
        let targets = Targets::Real(vec![1.0, 3.0]);
        assert_eq!(Metric::Mae.of(&predictions, &scores, &targets), Some(-0.5));
        assert!(Metric::Accuracy.check(targets.task()).is_err());
        assert!(Metric::R2.check(targets.task()).is_ok());
        assert!(
            Metric::Accuracy
                .check(Task::OneClass)
                .unwrap_err()
                .to_string()
                .starts_with("task: one-class has no labels")
        );
    }
}
