//! Options that `train` and `tune` share, and the reading of what they name.

use crate::args::{CommonArgs, DataArgs, Listed, losses, parse_number, solvers};
use crate::paths::Paths;
use crate::session::{self, Session};
use anyhow::Result;
use clap::Args;
use multikernel::data::{Dataset, Targets, ViewData, Views};
use multikernel::pipeline::{Labelled, Training};
use multikernel::solve::stochastic::{Average, Sampling};
use multikernel::train::Solver;
use multikernel::{Error, Mkl};
use multikernel_io::{LoadOptions, Purpose, load, load_numbers};
use std::path::{Path, PathBuf};

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
    sample_weight: Option<String>,

    /// auto (on, except for one-class and joint), on or off; for joint it is one more kernel, which is constant
    #[arg(long, default_value = "auto")]
    bias: String,

    /// Relative duality gap to reach
    #[arg(long, default_value = "1e-3", allow_negative_numbers = true)]
    tol: String,

    /// Ends the training after this many seconds; the model is the best so far
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

    /// The exact solver of the joint problem starts from this many epochs of obscure [default: 0, a cold start]
    #[arg(long, value_name = "N", default_value_t = 0)]
    start_epochs: usize,

    /// Writes objective, gap and, with obscure and samples held out, what the model is worth after every round, as CSV
    #[arg(long, value_name = "FILE.csv")]
    pub(super) history: Option<PathBuf>,

    /// Holds out this share of the samples (of every class), to see what the model is worth
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    holdout: Option<String>,

    /// Other samples to see what the model is worth, in the form of the training data (given matrices: a row for each of them,
    /// a column for each training sample); may be repeated, as --features or --gram
    #[arg(long, value_name = "FILE", conflicts_with = "holdout")]
    validation: Vec<String>,

    /// Labels of the validation samples, where their files do not hold them
    #[arg(long, value_name = "FILE", requires = "validation")]
    validation_labels: Option<String>,

    /// Gives the model probabilities of the classes, by training five times more on four fifths of the samples
    #[arg(long)]
    probabilities: bool,

    /// Looks at how sure the weights are: trains this many times on resampled samples and with shuffled targets, and once without
    /// each kernel (100 or more make good intervals)
    #[arg(long, value_name = "N")]
    stability: Option<usize>,

    /// Does not train the unweighted sum and the best single kernel for comparison
    #[arg(long)]
    no_baselines: bool,

    /// Exit status 3 if the gap was not reached
    #[arg(long)]
    pub(super) strict: bool,
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

    /// What these words say of a training, with those of the data; kernels, norm and C are the command's to fill in.
    pub(super) fn training(
        &self,
        session: &Session,
        data: &DataArgs,
    ) -> multikernel::Result<Training<'static>> {
        let mut mkl = self.mkl()?;
        mkl.stochastic.seed = session.seed;
        Ok(Training {
            mkl,
            scale: data.scale_options()?,
            indefinite: data.indefinite()?,
            holdout: optional("holdout", self.holdout.as_deref())?,
            baselines: !self.no_baselines,
            probabilities: self.probabilities,
            stability: self.stability,
            seed: session.seed,
            ..Training::default()
        })
    }

    /// Reads the weights of the samples, which stand in a file of their own.
    pub(super) fn read_weights(&self, session: &Session, mkl: &mut Mkl) -> Result<()> {
        if let Some(file) = &self.sample_weight {
            let weights = load_numbers(file, Some(session.memory_left()), &session.watcher)?;
            mkl.sample_weight = Some(weights);
        }
        Ok(())
    }

    /// Reads the samples to train on and, into the training, those to see what the model is worth.
    pub(super) fn read(
        &self,
        session: &Session,
        data: &DataArgs,
        training: &mut Training<'_>,
    ) -> Result<(Views, Targets)> {
        let Dataset {
            views,
            labels,
            notes,
        } = session.read(data)?;
        training.notes.extend(notes);
        let task = session::task(data, labels.as_ref(), &mut training.notes)?;
        let targets = Targets::new(labels.as_ref(), task, views.len())?;
        if !self.validation.is_empty() {
            let notes = &mut training.notes;
            training.validation = Some(self.validation(session, data, &views, &targets, notes)?);
        }
        Ok((views, targets))
    }

    /// The samples of `--validation` in the form of the training data.
    fn validation(
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

    fn mkl(&self) -> multikernel::Result<Mkl> {
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
