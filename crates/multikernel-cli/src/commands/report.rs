//! `multikernel report`: a model as a page for the browser.

use super::train::check_folder;
use crate::args::{CommonArgs, FileArgs};
use crate::output::write_whole;
use crate::session::{Cost, Session};
use anyhow::{Context, Result};
use clap::Args;
use multikernel::data::{Dataset, LabelKind, Labels, Purpose, Task, load};
use multikernel::metrics::{Truth, confusion, measure};
use multikernel::model::{Predictions, Scores};
use multikernel::record::{Evaluation, Interval, Record};
use multikernel::{Error, Model, report};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Draw what a model learned, how well and how certain, as a page for the browser
///
/// One file of HTML without anything from elsewhere, for screens, phones and paper: kernel weights with intervals and groups, what
/// the model is worth, how settings were chosen, convergence, alignments, warnings, and the command to get it again. What the model
/// file does not hold is left out, or the page says how to get it. With data and labels the model is measured on them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel report model.mk --out report.html
  multikernel report model.mk --data test.csv --label-column class --out report.html
  multikernel report model.mk --features test.npz --labels y.npy --out report.html
  multikernel report state.mk --out report.html                # the state of a stream")]
pub(crate) struct Arguments {
    /// The model, as 'train', 'tune' or 'online' wrote it
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// Where the page goes
    #[arg(long, value_name = "FILE.html")]
    out: PathBuf,

    /// Samples to measure the model on, in the form of the training data; --labels, --label-column and the others below say more.
    /// The same as --features, or --gram for a model of given matrices
    #[arg(long, value_name = "FILE", num_args = 0..)]
    data: Vec<String>,

    #[command(flatten)]
    files: FileArgs,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct Outcome {
    out: PathBuf,
    task: Task,
    n_samples: usize,
    metrics: BTreeMap<String, f64>,
    #[serde(flatten)]
    cost: Cost,
    notes: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let session = arguments.common.start()?;
    session.run(|| draw(&session, arguments))
}

fn draw(session: &Session, arguments: &Arguments) -> Result<()> {
    check_folder(&arguments.out)?;
    let mut model = Model::load(&arguments.model)?;
    let files = arguments.files(&model);
    let mut outcome = Outcome {
        out: arguments.out.clone(),
        task: model.task(),
        n_samples: 0,
        metrics: BTreeMap::new(),
        cost: session.cost(0.0, 0.0),
        notes: Vec::new(),
    };
    let given = !(files.features.is_empty() && files.gram.is_empty());
    if given {
        let evaluation = evaluate(session, &model, &files, &mut outcome.notes)?;
        outcome.n_samples = evaluation.n;
        outcome.metrics = evaluation
            .metrics
            .iter()
            .map(|(name, interval)| (name.clone(), interval.value))
            .collect();
        let record = Record {
            evaluation: Some(evaluation),
            ..Record::of(model.training())
        };
        // A model without a training value gets one that holds nothing but this.
        let before = match model.training() {
            serde_json::Value::Object(keys) => keys.clone(),
            _ => serde_json::Map::new(),
        };
        let mut training = record.beside(&serde_json::json!({}))?;
        if let Some(keys) = training.as_object_mut() {
            for (key, value) in before {
                keys.entry(key).or_insert(value);
            }
            // The simpler ways were measured on other samples and cannot be compared.
            keys.remove("baselines");
        }
        model.set_training(training);
    } else if files.labels.is_some() || files.label_column.is_some() {
        return Err(Error::input(
            "labels",
            "there are no samples beside them",
            "give --features, --gram or --data too",
        )
        .into());
    }
    write(&model, &arguments.out)?;
    outcome.cost = session.cost(outcome.cost.seconds.load, 0.0);
    session.output.notes(&outcome.notes)?;
    session.output.text(&format!(
        "report written to {}; open it in a browser\n",
        arguments.out.display()
    ))?;
    session.output.json(&outcome)
}

/// Writes the page of a model.
pub(super) fn write(model: &Model, out: &Path) -> Result<()> {
    let page = report::html(model);
    write_whole(out, |file| file.write_all(page.as_bytes()))
        .with_context(|| out.display().to_string())
}

impl Arguments {
    /// The files named, those of `--data` among them.
    fn files(&self, model: &Model) -> FileArgs {
        let mut files = self.files.clone();
        let matrices = model.needed_views().iter().all(|(_, given)| *given);
        match matrices {
            true => files.gram.extend(self.data.iter().cloned()),
            false => files.features.extend(self.data.iter().cloned()),
        }
        files
    }
}

/// What the model is worth on the samples named.
fn evaluate(
    session: &Session,
    model: &Model,
    files: &FileArgs,
    notes: &mut Vec<String>,
) -> Result<Evaluation> {
    let purpose = Purpose::Prediction {
        references: Some(model.n_training()),
        kernels: None,
    };
    let options = files.load_options(purpose, session.memory_left())?;
    let Dataset {
        views,
        labels,
        notes: read,
    } = load(&options, &session.watcher)?;
    notes.extend(read);
    let Some(labels) = labels else {
        return Err(Error::input(
            "labels",
            "none are given, so there is nothing to compare predictions with",
            "give --labels FILE or --label-column NAME, or leave the data out",
        )
        .into());
    };
    let (views, arranged) = model.arrange(views)?;
    notes.extend(arranged);
    let scores = model.scores(&views)?;
    Ok(measured(model, &scores, &labels, views.len())?)
}

fn measured(
    model: &Model,
    scores: &Scores,
    labels: &Labels,
    n: usize,
) -> multikernel::Result<Evaluation> {
    let predictions = model.predictions(scores);
    let mut evaluation = Evaluation {
        samples: format!("{n} samples of another file"),
        n,
        level: 0.95,
        ..Evaluation::default()
    };
    let metrics = match (&predictions, model.task()) {
        (Predictions::Classes { index, .. }, _) => {
            let truth = labels.class_index(model.classes());
            let known: Vec<(u32, u32)> = truth
                .iter()
                .zip(index)
                .filter_map(|(t, p)| Some(((*t)?, *p)))
                .collect();
            let (t, p): (Vec<u32>, Vec<u32>) = known.into_iter().unzip();
            let classes = model.classes().len();
            let counts = confusion(&t, &p, classes);
            let rows = counts.chunks(classes.max(1));
            evaluation.confusion = Some(
                rows.map(|row| row.iter().map(|&n| n as u64).collect())
                    .collect(),
            );
            measure(&predictions, scores, Truth::Classes(&truth))
        }
        (Predictions::Real(values), _) => {
            if labels.kind() == LabelKind::Text {
                return Err(Error::input(
                    "labels",
                    "they are no numbers, but the model predicts a value",
                    "give the column of the values",
                ));
            }
            let truth: Vec<f64> = (0..labels.len()).filter_map(|i| labels.number(i)).collect();
            evaluation.residuals =
                Some(truth.iter().copied().zip(values.iter().copied()).collect());
            measure(&predictions, scores, Truth::Real(&truth))
        }
        (Predictions::Inlier(_), _) => measure(&predictions, scores, Truth::None),
    };
    evaluation.metrics = metrics
        .into_iter()
        .map(|(name, value)| {
            let interval = Interval {
                value,
                low: value,
                high: value,
            };
            (name, interval)
        })
        .collect();
    Ok(evaluation)
}
