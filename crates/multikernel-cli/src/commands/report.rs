//! `multikernel report`: a model as a page for the browser.

use crate::args::{CommonArgs, FileArgs};
use crate::output::{print, write_whole};
use crate::paths::Paths;
use crate::samples;
use crate::session::{Cost, Session};
use anyhow::Result;
use clap::Args;
use multikernel::data::Task;
use multikernel::record::{Evaluation, Record};
use multikernel::{Error, Model};
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

    /// Where the page goes: a file, or - for stdout (text then goes to stderr)
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
    let mut session = arguments.common.start()?;
    if arguments.out == Path::new("-") {
        session.output.take_stdout()?;
    }
    session.run(|| draw(&session, arguments))
}

fn draw(session: &Session, arguments: &Arguments) -> Result<()> {
    Paths::of(&arguments.common)
        .reads(&arguments.model)
        .reads_all(&arguments.data)
        .reads_data(&arguments.files)
        .writes_or_prints("out", &arguments.out)
        .check()?;
    let given = arguments.check()?;
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
    if given {
        let judged = samples::judge(session, &model, &files, " of another file")?;
        let evaluation = judged.evaluation;
        outcome.notes = judged.notes;
        outcome.n_samples = evaluation.n;
        outcome.metrics = evaluation.values();
        let record = Record {
            evaluation: Some(Evaluation {
                given: true,
                ..evaluation
            }),
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
    }
    write(&model, &arguments.out)?;
    outcome.cost = session.cost(outcome.cost.seconds.load, 0.0);
    session.output.notes(&outcome.notes)?;
    if arguments.out != Path::new("-") {
        session.output.text(&format!(
            "report written to {}; open it in a browser\n",
            arguments.out.display()
        ))?;
    }
    session.output.json(&outcome)
}

/// Writes the page of a model; - is stdout.
pub(super) fn write(model: &Model, out: &Path) -> Result<()> {
    let page = multikernel_report::html(model);
    if out == Path::new("-") {
        return print(page.as_bytes());
    }
    write_whole(out, page.as_bytes())
}

impl Arguments {
    /// Refuses words that mean nothing; says whether there are samples to measure the model on.
    fn check(&self) -> multikernel::Result<bool> {
        let files = &self.files;
        files.cuts()?;
        let given = !(self.data.is_empty() && files.features.is_empty() && files.gram.is_empty());
        match given || (files.labels.is_none() && files.label_column.is_none()) {
            true => Ok(given),
            false => Err(Error::input(
                "labels",
                "there are no samples beside them",
                "give --features, --gram or --data too",
            )),
        }
    }

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
