//! `multikernel train`: learns a predictor and a weight for every kernel, and writes the model.

use super::Ending;
use crate::args::{CommonArgs, DataArgs, KernelArgs, Listed, losses, norms, parse_number, solvers};
use crate::paths::Paths;
use crate::session::{self, Session};
use crate::training::{self, Trained};
use anyhow::Result;
use clap::Args;
use multikernel::data::{Targets, Task, ViewData, Views};
use multikernel::norm::NormSpec;
use multikernel::pipeline::{KeptFit, Labelled, Training};
use multikernel::problem::Status;
use multikernel::solve::stochastic::{Average, Sampling};
use multikernel::train::Solver;
use multikernel::{Error, Mkl};
use multikernel_io::{LoadOptions, Purpose, load, load_numbers};
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

/// Which iterates are averaged.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum AveragePart {
    Whole,
    Half,
}

/// What 'train' and 'tune' share.
#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(super) struct Options {
    /// Prices the size of the kernel weights by this μ instead of bounding it
    #[arg(long, value_name = "MU", allow_negative_numbers = true)]
    tikhonov: Option<String>,

    /// The algorithm; the command 'solvers' lists them
    #[arg(long, default_value = "auto", value_parser = Listed(solvers), hide_possible_values = true)]
    solver: String,

    /// Several classes: joint (one problem with one set of weights), or as problems of two, ovr (each against the others)
    /// or ovo (each pair) [default: joint where loss and solver allow it, else ovr]
    #[arg(long, value_name = "WAY")]
    multiclass: Option<String>,

    /// The loss [default: hinge for two classes, multiclass-hinge for several, epsilon:0.1 for numbers]
    #[arg(long, value_parser = Listed(losses))]
    loss: Option<String>,

    /// Weights of the classes: balanced, or a=2,b=1
    #[arg(long, value_name = "WEIGHTS")]
    class_weight: Option<String>,

    /// A file with a weight for each sample: .npy, F.npz:name, .csv or text with one number per line
    #[arg(long, value_name = "FILE")]
    pub(super) sample_weight: Option<String>,

    /// auto (on, except for one-class and joint), on or off; for joint it is one more kernel, which is constant
    #[arg(long, default_value = "auto")]
    bias: String,

    /// Relative duality gap to reach
    #[arg(long, default_value = "1e-3", allow_negative_numbers = true)]
    tol: String,

    /// Ends the training after so many seconds; the model is the best so far
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    max_seconds: Option<String>,

    /// Passes over the samples of obscure, pegasos, om2, pa1 and omcl (obscure: in its second stage) [default: 50]
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// Passes of obscure's first stage, which finds a bound of the weight vectors [default: 1]
    #[arg(long, value_name = "N")]
    online_epochs: Option<usize>,

    /// Step of obscure's first stage [default: 2]
    #[arg(long, value_name = "ETA", allow_negative_numbers = true)]
    eta: Option<String>,

    /// The mean of all iterates of obscure's second stage, or of pegasos, makes the model, or of their second half (half)
    /// [default: the last iterate]
    #[arg(long, value_name = "PART", num_args = 0..=1, default_missing_value = "whole")]
    average: Option<AveragePart>,

    /// Draws samples with replacement, as the theorems assume, instead of each once in every pass: for obscure, pegasos, om2 and pa1
    #[arg(long)]
    replacement: bool,

    /// The exact solver of the joint problem starts from so many epochs of obscure [default: 0, a cold start]
    #[arg(long, value_name = "N", default_value_t = 0)]
    start_epochs: usize,

    /// Writes objective, gap and, with obscure and samples held out, what the model is worth after every round, as CSV
    #[arg(long, value_name = "FILE.csv")]
    pub(super) history: Option<PathBuf>,

    /// Holds out this share of the samples (of every class), to see what the model is worth
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub(super) holdout: Option<String>,

    /// Other samples to see what the model is worth, in the form of the training data (given matrices: a row for each of them,
    /// a column for each training sample); may be repeated, as --features or --gram
    #[arg(long, value_name = "FILE", conflicts_with = "holdout")]
    pub(super) validation: Vec<String>,

    /// Labels of the validation samples, where their files do not hold them
    #[arg(long, value_name = "FILE", requires = "validation")]
    validation_labels: Option<String>,

    /// Gives the model probabilities of the classes, by training five times more on four fifths of the samples
    #[arg(long)]
    pub(super) probabilities: bool,

    /// Looks at how sure the weights are: trains so many times on resampled samples and with shuffled targets, and once without
    /// each kernel (100 or more make good intervals)
    #[arg(long, value_name = "N")]
    pub(super) stability: Option<usize>,

    /// Does not train the unweighted sum and the best single kernel for comparison
    #[arg(long)]
    pub(super) no_baselines: bool,

    /// Exit status 3 if the gap was not reached
    #[arg(long)]
    pub(super) strict: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let session = arguments.common.start()?;
    session.run(|| train(&session, arguments))
}

fn train(session: &Session, arguments: &Arguments) -> Result<Ending> {
    let options = &arguments.options;
    // All words are looked at before the data, which may take long to read.
    let lambda = match (&arguments.point.c, &arguments.point.lambda) {
        (Some(_), Some(_)) => {
            return Err(Error::input(
                "C and lambda",
                "both are given, but lambda is 1/(C·N)",
                "give one of them",
            )
            .into());
        }
        (_, Some(lambda)) => Some(parse_number("lambda", lambda)?),
        (_, None) => None,
    };
    let holdout = optional("holdout", options.holdout.as_deref())?;
    let mut mkl = options.mkl()?;
    if let Some(norm) = &arguments.point.norm {
        mkl.norm = norm.parse()?;
        // What was asked for is not to be taken for the default, which gives way to the solver's own norm.
        if mkl.norm == NormSpec::default() {
            mkl.check_usual_norm()?;
        }
    }
    if let Some(c) = &arguments.point.c {
        mkl.c = parse_number("C", c)?;
    }
    mkl.stochastic.seed = session.seed;
    let mut paths = options.paths(&arguments.common, &arguments.data, &arguments.model);
    paths
        .reads_kernels(&arguments.kernels)
        .reads_norm(&mkl.norm);
    if let Some(file) = &arguments.checkpoint {
        paths.writes("checkpoint", file);
    }
    paths.check()?;
    let kept = match &arguments.checkpoint {
        None => None,
        Some(file) => Some(KeptFit::new(file, arguments.resume, &mut mkl)?),
    };
    let scale = arguments.data.scale_options()?;
    let indefinite = arguments.data.indefinite()?;
    arguments.data.task()?;
    if let NormSpec::NonIsotropic(file) = &mkl.norm {
        mkl.matrix = matrix(session, file)?;
    }
    if let Some(file) = &options.sample_weight {
        let weights = load_numbers(file, Some(session.memory_left()), &session.watcher)?;
        mkl.sample_weight = Some(weights);
    }

    let dataset = session.read(&arguments.data)?;
    let mut notes = dataset.notes;
    let task = session::task(&arguments.data, dataset.labels.as_ref(), &mut notes)?;
    options.check(task)?;
    let targets = Targets::new(dataset.labels.as_ref(), task, dataset.views.len())?;
    let validation = match options.validation.is_empty() {
        true => None,
        false => Some(options.validation(
            session,
            &arguments.data,
            &dataset.views,
            &targets,
            &mut notes,
        )?),
    };
    let training = Training {
        mkl,
        lambda,
        kernels: arguments.kernels.specs()?,
        groups: arguments.kernels.groups.clone(),
        scale,
        indefinite,
        validation,
        holdout,
        baselines: !options.no_baselines,
        probabilities: options.probabilities,
        stability: options.stability,
        kept,
        notes,
        ..Training::default()
    };
    let trained = training::train(training, dataset.views, targets, session)?;
    finish(session, trained, "", &arguments.model, options)
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

impl Options {
    /// What 'train' and 'tune' read and write.
    pub(super) fn paths(&self, common: &CommonArgs, data: &DataArgs, model: &Path) -> Paths {
        let mut paths = Paths::of(common);
        paths
            .reads_data(&data.files)
            .reads_all(&self.sample_weight)
            .reads_all(&self.validation)
            .reads_all(&self.validation_labels)
            .writes("model", model);
        if let Some(history) = &self.history {
            paths.writes("history", history);
        }
        paths
    }

    /// The samples of `--validation` in the form of the training data.
    pub(super) fn validation(
        &self,
        session: &Session,
        data: &DataArgs,
        training: &Views,
        targets: &Targets,
        notes: &mut Vec<String>,
    ) -> Result<Labelled> {
        let mut files = data.files.clone();
        let named = self.validation.clone();
        (files.features, files.gram) = match (files.features.is_empty(), files.gram.is_empty()) {
            (false, true) => (named, Vec::new()),
            (true, _) => (Vec::new(), named),
            (false, false) => {
                return Err(Error::input(
                    "validation",
                    "the training data has features and given matrices, and which of them a file holds cannot be told",
                    "train with --holdout instead",
                )
                .into());
            }
        };
        files.labels = self.validation_labels.clone();
        let purpose = Purpose::Prediction {
            references: Some(training.len()),
            kernels: None,
        };
        let options = files.load_options(purpose, session.memory_left())?;
        let dataset = load(&options, &session.watcher).map_err(|e| e.within("validation"))?;
        notes.extend(dataset.notes);
        let arranged = dataset.views.arranged_like(training);
        let (views, changed) = arranged.map_err(|e| e.within("validation"))?;
        notes.extend(changed);
        let targets = targets.of_others(dataset.labels.as_ref(), views.len());
        Ok(Labelled {
            targets: targets.map_err(|e| e.within("validation"))?,
            views,
        })
    }

    /// Wishes that the task cannot fulfil.
    pub(super) fn check(&self, task: Task) -> multikernel::Result<()> {
        if self.probabilities && task != Task::Classify {
            return Err(Error::input(
                "probabilities",
                format!("the task {task} has no classes"),
                "leave them out, or take the task classify",
            ));
        }
        if self.multiclass.is_some() && task != Task::Classify {
            return Err(Error::input(
                "multiclass",
                format!("the task {task} has no classes"),
                "leave it out, or take the task classify",
            ));
        }
        if self.stability.is_some_and(|rounds| rounds < 2) {
            return Err(Error::input(
                "stability",
                "one round or none tells nothing",
                "give at least 2 rounds, better 100 or more",
            ));
        }
        Ok(())
    }

    /// Refuses settings of steps that the solver does not take.
    fn check_steps(&self, solver: Solver) -> multikernel::Result<()> {
        use Solver::{Obscure, Om2, Omcl, Pa1, Pegasos};
        // A start by OBSCURE has its first stage, and its own number of epochs.
        let starts = self.start_epochs > 0;
        let settings: [(&str, bool, bool, &[Solver]); 5] = [
            (
                "epochs",
                self.epochs.is_some(),
                false,
                &[Obscure, Pegasos, Om2, Pa1, Omcl],
            ),
            (
                "online-epochs",
                self.online_epochs.is_some(),
                starts,
                &[Obscure],
            ),
            ("eta", self.eta.is_some(), starts, &[Obscure]),
            (
                "average",
                self.average.is_some(),
                false,
                &[Obscure, Pegasos],
            ),
            (
                "replacement",
                self.replacement,
                starts,
                &[Obscure, Pegasos, Om2, Pa1],
            ),
        ];
        for (name, given, of_start, solvers) in settings {
            if given && !of_start && !solvers.contains(&solver) {
                let names: Vec<String> = solvers.iter().map(Solver::to_string).collect();
                let names = match &names[..] {
                    [one] => one.clone(),
                    [first @ .., last] => format!("{} or {last}", first.join(", ")),
                    [] => String::new(),
                };
                return Err(Error::input(
                    name,
                    format!("solver {solver} has none"),
                    format!("leave it out, or give the solver {names}"),
                ));
            }
        }
        Ok(())
    }

    /// What these words say; norm and C are filled in later, and so are weights of samples, which stand in a file.
    pub(super) fn mkl(&self) -> multikernel::Result<Mkl> {
        let mut mkl = Mkl {
            tikhonov: optional("tikhonov", self.tikhonov.as_deref())?,
            solver: self.solver.parse()?,
            bias: self.bias.parse()?,
            tolerance: parse_number("tol", &self.tol)?,
            max_seconds: optional("max-seconds", self.max_seconds.as_deref())?,
            start_epochs: self.start_epochs,
            ..Mkl::default()
        };
        self.check_steps(mkl.solver)?;
        mkl.stochastic.average = match self.average {
            None => Average::Last,
            Some(AveragePart::Whole) => Average::Whole,
            Some(AveragePart::Half) => Average::SecondHalf,
        };
        if self.replacement {
            mkl.stochastic.sampling = Sampling::WithReplacement;
        }
        if let Some(epochs) = self.epochs {
            mkl.stochastic.epochs = epochs;
        }
        if let Some(epochs) = self.online_epochs {
            mkl.stochastic.online_epochs = epochs;
        }
        if let Some(eta) = &self.eta {
            mkl.stochastic.eta = parse_number("eta", eta)?;
        }
        if let Some(multiclass) = &self.multiclass {
            mkl.multiclass = multiclass.parse()?;
        }
        if let Some(loss) = &self.loss {
            mkl.loss = Some(loss.parse()?);
        }
        if let Some(weights) = &self.class_weight {
            mkl.class_weight = weights.parse()?;
        }
        Ok(mkl)
    }
}

pub(super) fn optional(option: &str, text: Option<&str>) -> multikernel::Result<Option<f64>> {
    text.map(|text| parse_number(option, text)).transpose()
}

/// The matrix E of a non-isotropic norm.
pub(super) fn matrix(session: &Session, file: &Path) -> Result<Vec<f64>> {
    let options = LoadOptions {
        features: vec![file.display().to_string()],
        memory: Some(session.memory_left()),
        ..LoadOptions::default()
    };
    let views = load(&options, &session.watcher)?.views;
    let data = views.iter().next().map(|view| &view.data);
    match (data, views.iter().count()) {
        (Some(ViewData::Dense(x)), 1) => Ok(x.values().iter().map(|&v| f64::from(v)).collect()),
        _ => Err(Error::input(
            file.display().to_string(),
            "this is not one matrix of numbers",
            "give a .npy file of shape (kernels, kernels)",
        )
        .into()),
    }
}
