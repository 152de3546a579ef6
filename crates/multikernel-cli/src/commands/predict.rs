//! `multikernel predict`: what a model says about new samples, as CSV.

use crate::args::{CommonArgs, FileArgs};
use crate::output::number;
use crate::paths::Paths;
use crate::samples::{Samples, block_scores};
use crate::session::{Cost, Session};
use anyhow::Result;
use clap::Args;
use multikernel::data::{Labels, Task, Views};
use multikernel::files::WholeFile;
use multikernel::measure::{Predictions, Scores, measure};
use multikernel::observe::Observer;
use multikernel::select::Known;
use multikernel::{Error, Model};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Predict new samples with a model
///
/// Writes CSV with the column 'prediction', which holds labels as they were spelled in training; with --scores a column for
/// each class too, with --probabilities one for each class's probability; and first a column 'id' where the samples have ids. With labels it also says how many predictions are
/// right. Views are found by their names, or by their order where the files are named otherwise than in training.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel predict --model model.mk --features new.csv --out predictions.csv --scores
  multikernel predict --model model.mk --features new.csv --out predictions.csv --probabilities   # after train --probabilities
  multikernel predict --model model.mk --features test.npz --labels y.npy --out -
  multikernel predict --model model.mk --gram test_gram.npz --out predictions.csv   # rows new, columns training samples")]
pub(crate) struct Arguments {
    /// The model, as 'train' wrote it
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    /// Where the predictions go: a CSV file, or - for stdout (text then goes to stderr)
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Writes the scores of the classes, too
    #[arg(long)]
    scores: bool,

    /// Writes probabilities of the classes, which need a model that was calibrated in training
    #[arg(long)]
    probabilities: bool,

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
    warnings: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut session = arguments.common.start()?;
    let stdout = arguments.out == Path::new("-");
    if stdout {
        session.output.take_stdout()?;
    }
    session.run(|| predict(&session, arguments))
}

fn predict(session: &Session, arguments: &Arguments) -> Result<()> {
    Paths::of(&arguments.common)
        .reads(&arguments.model)
        .reads_data(&arguments.files)
        .writes_or_prints("out", &arguments.out)
        .check()?;
    arguments.files.cuts()?;
    let model = Model::load(&arguments.model)?;
    if arguments.probabilities && model.calibration().is_none() {
        return Err(Error::input(
            arguments.model.display().to_string(),
            "this model was not calibrated and has no probabilities",
            match model.task() {
                Task::Classify => "train it with --probabilities, or ask for --scores instead",
                Task::Regress | Task::OneClass => "ask for --scores instead",
            },
        )
        .into());
    }
    let stdout = arguments.out == Path::new("-");
    let Samples {
        views,
        labels,
        mut notes,
        loaded,
    } = Samples::read(session, &model, &arguments.files)?;

    // The first block is computed before anything is written, so that views that do not fit leave nothing behind.
    let mut writer = Writer {
        model: &model,
        views: &views,
        with_scores: arguments.scores,
        with_probabilities: arguments.probabilities,
        observer: &session.watcher,
        kept: None,
    };
    let first = writer.block(0)?;
    writer.kept = labels.is_some().then(|| Scores {
        names: first.names.clone(),
        values: Vec::new(),
    });
    let out = &arguments.out;
    if stdout {
        let mut stdout = BufWriter::new(io::stdout().lock());
        writer.write(first, &mut stdout)?;
        // No context: a closed pipe must be seen as such.
        stdout.flush()?;
    } else {
        let mut file = WholeFile::create(out)?;
        let written = writer.write(first, &mut file);
        written.map_err(|error| match error.downcast::<io::Error>() {
            Ok(error) => Error::io(out, error).into(),
            Err(error) => error,
        })?;
        file.finish()?;
    }
    session.watcher.clear();
    let metrics = match (labels, writer.kept) {
        (Some(labels), Some(scores)) => measured(&model, &labels, &scores, &mut notes),
        _ => BTreeMap::new(),
    };
    let outcome = Outcome {
        out: out.clone(),
        task: model.task(),
        n_samples: views.len(),
        metrics,
        cost: session.cost(loaded, 0.0),
        notes,
        warnings: Vec::new(),
    };
    session.output.notes(&outcome.notes)?;
    session.output.text(&outcome.text())?;
    session.output.json(&outcome)
}

/// Predicts and writes, a block at a time.
struct Writer<'a> {
    model: &'a Model,
    views: &'a Views,
    with_scores: bool,
    with_probabilities: bool,
    observer: &'a dyn Observer,
    /// All scores, where they are to be compared with labels.
    kept: Option<Scores>,
}

impl Writer<'_> {
    /// Scores of the samples from `start` on.
    fn block(&self, start: usize) -> multikernel::Result<Scores> {
        block_scores(self.model, self.views, start, self.observer)
    }

    /// Writes all, from the first block on.
    fn write(&mut self, first: Scores, out: &mut dyn Write) -> Result<()> {
        self.header(&first, out)?;
        let n = self.views.len();
        let mut scores = first;
        let mut start = 0;
        loop {
            self.rows(start, &scores, out)?;
            start += scores.len();
            if let Some(kept) = &mut self.kept {
                kept.values.append(&mut scores.values);
            }
            if start >= n || scores.names.is_empty() {
                return Ok(());
            }
            scores = self.block(start)?;
        }
    }

    fn header(&self, scores: &Scores, out: &mut dyn Write) -> io::Result<()> {
        if self.views.ids().is_some() {
            out.write_all(b"id,")?;
        }
        out.write_all(b"prediction")?;
        for name in scores.names.iter().filter(|_| self.with_scores) {
            match self.model.task() {
                Task::Classify => write!(out, ",{}", field(&format!("score_{name}")))?,
                Task::Regress | Task::OneClass => write!(out, ",{}", field(name))?,
            }
        }
        let classes = self.model.classes().iter();
        for name in classes.filter(|_| self.with_probabilities) {
            write!(out, ",{}", field(&format!("p_{name}")))?;
        }
        out.write_all(b"\n")
    }

    fn rows(&self, start: usize, scores: &Scores, out: &mut dyn Write) -> io::Result<()> {
        let predictions: Predictions = self.model.predictions(scores);
        let classes = self.model.classes().len();
        let probabilities = match self.with_probabilities {
            true => self.model.probabilities(scores).unwrap_or_default(),
            false => Vec::new(),
        };
        for i in 0..scores.len() {
            if let Some(ids) = self.views.ids() {
                write!(out, "{},", field(&ids[start + i]))?;
            }
            write!(out, "{}", field(&predictions.text(i)))?;
            for score in scores.row(i).iter().filter(|_| self.with_scores) {
                write!(out, ",{score}")?;
            }
            for p in probabilities.chunks(classes.max(1)).nth(i).unwrap_or(&[]) {
                write!(out, ",{p}")?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// A field of a CSV line, in quotes where it must be.
fn field(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

/// How good the predictions are.
fn measured(
    model: &Model,
    labels: &Labels,
    scores: &Scores,
    notes: &mut Vec<String>,
) -> BTreeMap<String, f64> {
    let predictions = model.predictions(scores);
    match Known::new(model, Some(labels), notes) {
        Ok(known) => measure(&predictions, scores, known.truth()),
        Err(_) => {
            notes
                .push("the labels are no numbers and are not compared with the predictions".into());
            BTreeMap::new()
        }
    }
}

impl Outcome {
    fn text(&self) -> String {
        let mut out = String::new();
        let shown = [
            ("accuracy", "accuracy"),
            ("balanced_accuracy", "balanced accuracy"),
            ("auc", "AUC"),
            ("r2", "R²"),
            ("mae", "mean absolute error"),
            ("accepted", "accepted"),
        ];
        for (key, name) in shown {
            if let Some(value) = self.metrics.get(key) {
                out.push_str(&format!("{name} {}\n", number(*value)));
            }
        }
        let to = match self.out == Path::new("-") {
            true => String::new(),
            false => format!(" in {}", self.out.display()),
        };
        out.push_str(&format!(
            "{} predictions{to} ({:.2} s)\n",
            self.n_samples, self.cost.seconds.total
        ));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(field("plain text"), "plain text");
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("say \"no\""), "\"say \"\"no\"\"\"");
    }
}
