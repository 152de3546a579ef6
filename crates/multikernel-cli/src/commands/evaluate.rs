//! `multikernel evaluate`: what a model is worth on samples whose truth is known.

use crate::args::{CommonArgs, FileArgs};
use crate::output::{number, table};
use crate::paths::Paths;
use crate::samples::{self, Judged};
use crate::session::{Cost, Session};
use anyhow::Result;
use clap::Args;
use multikernel::Model;
use multikernel::data::Task;
use multikernel::record::Evaluation;
use multikernel::select::Known;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Metrics and what they are called in words, in the order in which they are shown.
const METRICS: [(&str, &str); 10] = [
    ("accuracy", "accuracy"),
    ("balanced_accuracy", "balanced accuracy"),
    ("mcc", "Matthews correlation"),
    ("auc", "AUC"),
    ("log_loss", "log loss"),
    ("calibration_error", "calibration error"),
    ("r2", "R²"),
    ("mae", "mean absolute error"),
    ("rmse", "root mean square error"),
    ("accepted", "accepted"),
];

/// A confusion matrix of more classes is not shown as text.
const SHOWN_CLASSES: usize = 20;

/// Say what a model is worth on samples whose labels are known
///
/// Metrics with intervals (95 %, from 1000 resamplings of the samples), the confusion matrix of classes or a summary of the
/// residuals of a regression; and of a model with probabilities whether they mean what they say. Views are found by their names,
/// or by their order where the files are named otherwise than in training.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel evaluate --model model.mk --features test.csv --label-column class
  multikernel evaluate --model model.mk --features test.npz --labels y.npy --json result.json
  multikernel evaluate --model model.mk --gram test_gram.npz --labels y.txt   # rows new, columns training samples")]
pub(crate) struct Arguments {
    /// The model, as 'train' wrote it
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    #[command(flatten)]
    files: FileArgs,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct Outcome {
    model: PathBuf,
    task: Task,
    n_samples: usize,
    metrics: BTreeMap<String, f64>,
    /// The same with intervals, and the rest.
    evaluation: Evaluation,
    classes: Vec<String>,
    /// Of truth minus prediction; null for classes.
    residuals: Option<Residuals>,
    #[serde(flatten)]
    cost: Cost,
    seed: u64,
    notes: Vec<String>,
    warnings: Vec<String>,
}

/// Truth minus prediction, over all samples.
#[derive(Serialize)]
struct Residuals {
    mean: f64,
    minimum: f64,
    lower_quartile: f64,
    median: f64,
    upper_quartile: f64,
    maximum: f64,
}

impl Residuals {
    fn new(truth: &[f64], predicted: &[f64]) -> Option<Residuals> {
        let mut all: Vec<f64> = truth.iter().zip(predicted).map(|(y, f)| y - f).collect();
        all.sort_by(f64::total_cmp);
        let last = all.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let (low, high) = (place.floor() as usize, place.ceil() as usize);
            all[low] + place.fract() * (all[high] - all[low])
        };
        Some(Residuals {
            mean: all.iter().sum::<f64>() / all.len() as f64,
            minimum: at(0.0),
            lower_quartile: at(0.25),
            median: at(0.5),
            upper_quartile: at(0.75),
            maximum: at(1.0),
        })
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let session = arguments.common.start()?;
    session.run(|| judge(&session, arguments))
}

fn judge(session: &Session, arguments: &Arguments) -> Result<()> {
    Paths::of(&arguments.common)
        .reads(&arguments.model)
        .reads_data(&arguments.files)
        .check()?;
    arguments.files.cuts()?;
    let model = Model::load(&arguments.model)?;
    let Judged {
        evaluation,
        known,
        scores,
        notes,
        loaded,
    } = samples::judge(session, &model, &arguments.files, "")?;
    let residuals = match &known {
        Known::Real(truth) => Residuals::new(truth, &scores.values),
        Known::Classes(_) | Known::Nothing => None,
    };
    let outcome = Outcome {
        model: arguments.model.clone(),
        task: model.task(),
        n_samples: evaluation.n,
        metrics: evaluation.values(),
        evaluation,
        classes: model.classes().to_vec(),
        residuals,
        cost: session.cost(loaded, 0.0),
        seed: session.seed,
        notes,
        warnings: Vec::new(),
    };
    session.output.notes(&outcome.notes)?;
    session.output.text(&outcome.text())?;
    session.output.json(&outcome)
}

/// Metrics with their intervals as a table.
fn metrics_text(evaluation: &Evaluation) -> String {
    let rows: Vec<Vec<String>> = METRICS
        .iter()
        .filter_map(|(key, name)| {
            let metric = evaluation.metrics.get(*key)?;
            let interval = format!("{} … {}", number(metric.low), number(metric.high));
            Some(vec![(*name).to_owned(), number(metric.value), interval])
        })
        .collect();
    let level = format!("{:.0} % interval", 100.0 * evaluation.level);
    table(&["", "value", &level], &rows)
}

impl Outcome {
    fn text(&self) -> String {
        let mut out = format!("\n{}, {} samples\n\n", self.task, self.n_samples);
        out.push_str(&metrics_text(&self.evaluation));
        if let Some(counts) = &self.evaluation.confusion {
            out.push_str(&self.confusion(counts));
        }
        if let Some(r) = &self.residuals {
            let shown = [
                ("mean", r.mean),
                ("minimum", r.minimum),
                ("lower quartile", r.lower_quartile),
                ("median", r.median),
                ("upper quartile", r.upper_quartile),
                ("maximum", r.maximum),
            ];
            let rows: Vec<Vec<String>> = shown
                .map(|(name, value)| vec![name.to_owned(), number(value)])
                .into();
            out.push_str(&format!("\n{}", table(&["truth − prediction", ""], &rows)));
        }
        if let Some(bins) = &self.evaluation.calibration {
            let rows: Vec<Vec<String>> = bins
                .iter()
                .map(|bin| {
                    let (p, seen) = (bin.probability, bin.observed);
                    vec![
                        format!("{p:.3}"),
                        format!("{seen:.3}"),
                        bin.count.to_string(),
                    ]
                })
                .collect();
            out.push_str(&format!(
                "\n{}",
                table(&["probability said", "came true", "samples"], &rows)
            ));
        }
        out.push_str(&format!("\ntime: {:.2} s\n", self.cost.seconds.total));
        out
    }

    fn confusion(&self, counts: &[Vec<u64>]) -> String {
        if counts.len() > SHOWN_CLASSES {
            return format!(
                "\nthe confusion matrix of {} classes is in the result (--json FILE)\n",
                counts.len()
            );
        }
        let mut header = vec!["true class ↓ predicted →"];
        header.extend(self.classes.iter().map(String::as_str));
        let rows: Vec<Vec<String>> = counts
            .iter()
            .zip(&self.classes)
            .map(|(row, name)| {
                let cells = row.iter().map(u64::to_string);
                std::iter::once(name.clone()).chain(cells).collect()
            })
            .collect();
        format!("\n{}", table(&header, &rows))
    }
}
