//! `multikernel train`: learns a predictor and a weight for every kernel, and writes the model.

use super::Ending;
use super::options::{Options, matrix, optional};
use crate::args::{CommonArgs, DataArgs, KernelArgs, Listed, norms};
use crate::session::Session;
use crate::training::{self, Trained};
use anyhow::Result;
use clap::Args;
use multikernel::Error;
use multikernel::norm::NormSpec;
use multikernel::pipeline::{KeptFit, Training};
use multikernel::problem::Status;
use std::path::{Path, PathBuf};

/// Learn a predictor and a weight for every kernel, and write the model
///
/// Says how far the result is from the optimum (the relative duality gap), what it reaches in training and on samples
/// held out, and what two simpler ways reach: the unweighted sum of the kernels and the best kernel alone. Ctrl-C ends
/// the training and keeps the best model so far.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel train --features table.csv --label-column class --scale standard --holdout 0.2 --model model.mk
  multikernel train --features views.npz --labels y.npy --kernel 'rbf:width=mean*0.5|mean|mean*2' --norm lp:1 \\
      --C 10 --model model.mk
  multikernel train --features table.csv --label-column class --holdout 0.2 --probabilities --stability 200 --model model.mk
  multikernel train --gram gram.npz --labels y.txt --class-weight balanced --tol 1e-5 --model model.mk --json -
  multikernel train --features x.npz --labels y.txt --checkpoint run.json --resume --model model.mk   # again after any end")]
pub(crate) struct Arguments {
    /// Where the model goes
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    #[command(flatten)]
    data: DataArgs,

    #[command(flatten)]
    kernels: KernelArgs,

    #[command(flatten)]
    point: Point,

    /// Keeps the training in this file, at the latest after every doubling of its time, and when Ctrl-C or --max-seconds ends it
    /// (solvers exact, wrapper and interleaved)
    #[arg(long, value_name = "FILE", help_heading = "Training")]
    checkpoint: Option<PathBuf>,

    /// Goes on from the checkpoint, if it is there
    #[arg(long, requires = "checkpoint", help_heading = "Training")]
    resume: bool,

    #[command(flatten)]
    options: Options,

    #[command(flatten)]
    common: CommonArgs,
}

/// The problem, as one point of what 'tune' searches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
struct Point {
    /// How kernels share [default: lp:4/3, or what the solver is for]
    #[arg(long, value_parser = Listed(norms))]
    norm: Option<String>,

    /// Price of the loss: ½Ω² + CΣℓ [default: 1]
    #[arg(long = "C", value_name = "C", allow_negative_numbers = true)]
    c: Option<String>,

    /// Instead of C: 1/(C·N) for N training samples
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    lambda: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let session = arguments.common.start()?;
    session.run(|| train(&session, arguments))
}

fn train(session: &Session, arguments: &Arguments) -> Result<Ending> {
    let Arguments { data, options, .. } = arguments;
    let mut training = arguments.training(session)?;
    let mut paths = options.paths(&arguments.common, data, &arguments.model);
    paths
        .reads_kernels(&arguments.kernels)
        .reads_norm(&training.mkl.norm);
    if let Some(file) = &arguments.checkpoint {
        paths.writes("checkpoint", file);
    }
    paths.check()?;
    training.kernels = arguments.kernels.specs()?;
    training.check(data.task()?)?;
    if let Some(file) = &arguments.checkpoint {
        let kept = KeptFit::new(file, arguments.resume, &mut training.mkl)?;
        training.kept = Some(kept);
    }
    if let NormSpec::NonIsotropic(file) = &training.mkl.norm {
        training.mkl.matrix = matrix(session, file)?;
    }
    options.read_weights(session, &mut training.mkl)?;
    let (views, targets) = options.read(session, data, &mut training)?;
    training.check(Some(targets.task()))?;
    let trained = training::train(training, views, targets, session)?;
    finish(session, trained, "", &arguments.model, options)
}

impl Arguments {
    /// What these words say, before any file is read.
    fn training(&self, session: &Session) -> multikernel::Result<Training<'static>> {
        let Point { norm, c, lambda } = &self.point;
        if c.is_some() && lambda.is_some() {
            return Err(Error::input(
                "C and lambda",
                "both are given, but lambda is 1/(C·N)",
                "give one of them",
            ));
        }
        let mut training = self.options.training(session, &self.data)?;
        training.lambda = optional("lambda", lambda.as_deref())?;
        training.groups = self.kernels.groups.clone();
        let mkl = &mut training.mkl;
        if let Some(norm) = norm {
            mkl.norm = norm.parse()?;
            // What was asked for is not to be taken for the default, which gives way to the solver's own norm.
            if mkl.norm == NormSpec::default() {
                mkl.check_usual_norm()?;
            }
        }
        if let Some(c) = optional("C", c.as_deref())? {
            mkl.c = c;
        }
        Ok(training)
    }
}

/// Keeps the model and says what it is; `first` is text that stands before.
pub(super) fn finish(
    session: &Session,
    mut trained: Trained,
    first: &str,
    model: &Path,
    options: &Options,
) -> Result<Ending> {
    trained.outcome.keep()?;
    trained.outcome.fitted.model.save(model)?;
    if let Some(file) = &options.history {
        trained.write_history(file)?;
    }
    trained.account(session);
    let output = &session.output;
    output.notes(&trained.outcome.notes)?;
    output.text(first)?;
    output.text(&trained.text())?;
    output.text(&format!("model written to {}\n", model.display()))?;
    output.warnings(trained.warnings())?;
    output.json(&trained.object())?;
    // What minimises nothing has no gap to reach.
    let certified = !trained.outcome.result.primal.is_nan();
    Ok(match trained.outcome.fitted.status {
        Status::Converged if certified => Ending::Done,
        _ if options.strict => Ending::NotConverged,
        _ => Ending::Done,
    })
}
