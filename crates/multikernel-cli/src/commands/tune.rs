//! `multikernel tune`: chooses kernels, norm and C by cross-validation, and trains with them.

use super::Ending;
use super::train::{Options, finish, matrix, optional};
use crate::args::{CommonArgs, DataArgs, KernelArgs, parse_number};
use crate::output::{setting, table};
use crate::session::{self, Session};
use crate::training;
use anyhow::Result;
use clap::Args;
use multikernel::data::{Labels, Split, Targets};
use multikernel::gram;
use multikernel::measure::Metric;
use multikernel::norm::NormSpec;
use multikernel::pipeline::Training;
use multikernel::record::Tuning;
use multikernel::select::{Checkpoint, Grid, Identity, Recipe, Rule, SHARED};
use multikernel::{Error, Mkl};
use multikernel_io::{load_labels, load_numbers};
use std::collections::HashMap;
use std::path::PathBuf;

/// Choose kernels, norm and C by cross-validation, and train with them
///
/// Tries every norm with every C, and with every file of kernels, on folds of the samples: all share the same kernels, and along C
/// each training starts from the one before. Then trains on all samples at the point chosen, and says how sure the choice is.
/// Ctrl-C trains with the best of the points tried so far, without baselines and stability; with --checkpoint it keeps them all
/// instead, and --resume goes on from there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel tune --features table.csv --label-column class --scale standard --model best.mk
  multikernel tune --features views.npz --labels y.npy --C 0.1,1,10 --norm lp:1,lp:4/3,lp:2,lp:inf --folds 5 --model best.mk
  multikernel tune --features x.npz --labels y.txt --kernels narrow.toml --kernels wide.toml --nested 5 --model best.mk
  multikernel tune --features x.npz --labels y.txt --fold-groups patient.txt --checkpoint search.jsonl --resume --model best.mk")]
pub(crate) struct Arguments {
    /// Where the model goes
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    #[command(flatten)]
    data: DataArgs,

    #[command(flatten)]
    banks: BankArgs,

    #[command(flatten)]
    search: SearchArgs,

    #[command(flatten)]
    options: Options,

    #[command(flatten)]
    common: CommonArgs,
}

/// Which kernels to choose from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Kernels")]
struct BankArgs {
    /// A kernel, or several, as for 'train'; part of every choice; may be repeated
    #[arg(long = "kernel", value_name = "SPEC")]
    kernel: Vec<String>,

    /// A TOML file of kernels; several files are choices to be compared
    #[arg(long, value_name = "FILE")]
    kernels: Vec<PathBuf>,

    /// Group of each precomputed kernel, e.g. 0,0,1 [default: each its own]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    groups: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
struct SearchArgs {
    /// Prices of the loss to try
    #[arg(
        long = "C",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "0.01,0.1,1,10,100",
        allow_negative_numbers = true
    )]
    costs: Vec<String>,

    /// Norms to try
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "lp:1,lp:4/3,lp:2,lp:inf"
    )]
    norm: Vec<String>,

    /// Folds of the cross-validation; every class is in each of them
    #[arg(long, value_name = "K", default_value_t = 5)]
    folds: usize,

    /// A file with a group for each sample (patient, batch): samples of a group stay in one fold
    #[arg(long, value_name = "FILE")]
    fold_groups: Option<String>,

    /// What points are compared by: accuracy, balanced_accuracy, mcc, auc; r2, mae, rmse [default: accuracy; r2]
    #[arg(long)]
    metric: Option<String>,

    /// Which point is taken: best, or one-standard-error (the smallest C that is within one standard error of the best)
    #[arg(long, default_value = "best")]
    rule: String,

    /// Says what the whole search reaches on samples that it never saw, by doing it anew for each of K outer folds
    #[arg(long, value_name = "K")]
    nested: Option<usize>,

    /// Keeps every training of the search in this file
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,

    /// Goes on from the checkpoint, if it is there
    #[arg(long, requires = "checkpoint")]
    resume: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let session = arguments.common.start()?;
    session.run(|| tune(&session, arguments))
}

fn tune(session: &Session, arguments: &Arguments) -> Result<Ending> {
    let (options, search) = (&arguments.options, &arguments.search);
    let holdout = optional("holdout", options.holdout.as_deref())?;
    if holdout.is_some() && search.fold_groups.is_some() {
        return Err(Error::input(
            "holdout and fold-groups",
            "samples held out would be parted from others of their group",
            "give --validation with samples of other groups, or --nested",
        )
        .into());
    }
    let mut mkl = options.mkl()?;
    mkl.stochastic.seed = session.seed;
    let scale = arguments.data.scale_options()?;
    let indefinite = arguments.data.indefinite()?;
    arguments.data.task()?;
    let metric: Option<Metric> = search.metric.as_deref().map(str::parse).transpose()?;
    let mut grid = search.grid()?;
    let mut paths = options.paths(&arguments.common, &arguments.data, &arguments.model);
    paths
        .reads_all(&arguments.banks.kernels)
        .reads_all(&search.fold_groups);
    for (norm, _) in &grid.norms {
        paths.reads_norm(norm);
    }
    if let Some(file) = &search.checkpoint {
        paths.writes("checkpoint", file);
    }
    paths.check()?;
    for (norm, values) in &mut grid.norms {
        if let NormSpec::NonIsotropic(file) = norm {
            *values = matrix(session, file)?;
        }
    }
    let memory = session.memory_left();
    if let Some(file) = &options.sample_weight {
        mkl.sample_weight = Some(load_numbers(file, Some(memory), &session.watcher)?);
    }
    let groups = match &search.fold_groups {
        None => None,
        Some(file) => Some(numbered(&load_labels(
            file,
            Some(memory),
            &session.watcher,
        )?)),
    };

    let dataset = session.read(&arguments.data)?;
    let (views, mut notes) = (dataset.views, dataset.notes);
    let task = session::task(&arguments.data, dataset.labels.as_ref(), &mut notes)?;
    options.check(task)?;
    let targets = Targets::new(dataset.labels.as_ref(), task, views.len())?;
    grid.metric = metric.unwrap_or(Metric::usual(&targets));
    grid.metric.check(&targets)?;
    let validation = match options.validation.is_empty() {
        true => None,
        false => {
            Some(options.validation(session, &arguments.data, &views, &targets, &mut notes)?)
        }
    };
    let kernels = arguments.banks.each();
    let mut banks = Vec::with_capacity(kernels.len());
    for (name, bank) in &kernels {
        let (specs, _) = bank.choose(&views)?;
        banks.push((name.clone(), specs));
    }
    // The same split as training makes: samples held out are not searched on.
    let split = match holdout {
        Some(share) => Some(Split::holdout(share, &targets, views.len(), session.seed)?),
        None => None,
    };
    check_count(
        "sample-weight",
        mkl.sample_weight.as_ref().map(Vec::len),
        views.len(),
    )?;
    let mut recipe = Recipe {
        views: views.clone(),
        targets: targets.clone(),
        banks,
        scale: scale.clone(),
        options: gram::Options {
            memory: session.memory_left(),
            seed: session.seed,
            indefinite,
        },
        mkl: mkl.clone(),
        grid,
        folds: search.folds,
        groups,
        seed: session.seed,
    };
    if let Some(split) = &split {
        recipe = recipe.part(&split.training)?;
    }
    recipe.check()?;
    notes.push(SHARED.into());
    let before = session.elapsed();
    let Some(mut tuning) = look(session, &recipe, search, &mut notes)? else {
        return Ok(Ending::Stopped);
    };
    if let (Some(outer), false) = (search.nested, session.watcher.stopped()) {
        match recipe.nested(outer, &session.watcher) {
            Ok(interval) => tuning.nested = Some(interval),
            Err(Error::Stopped) => {
                notes.push("stopped before the nested cross-validation was done".into())
            }
            Err(error) => return Err(error.into()),
        }
        session.watcher.clear();
    }
    let stopped = session.watcher.stopped();
    if stopped {
        session.watcher.go_on();
    }
    let point = &tuning.points[tuning.chosen];
    let (norm, matrix) = recipe.grid.norms[point.norm].clone();
    let cost = recipe.grid.costs[point.cost];
    let bank = &kernels[point.bank].1;
    drop(recipe);
    let training = Training {
        mkl: Mkl {
            norm,
            matrix,
            c: cost,
            ..mkl
        },
        kernels: bank.specs()?,
        groups: bank.groups.clone(),
        scale,
        indefinite,
        validation,
        holdout,
        // Whoever stops a search wants its model now.
        baselines: !options.no_baselines && !stopped,
        probabilities: options.probabilities,
        stability: options.stability.filter(|_| !stopped),
        notes,
        ..Training::default()
    };
    let searched = session.elapsed() - before;
    let mut trained = training::train(training, views, targets, session)?;
    // What stands between reading and training is not reading.
    let seconds = &mut trained.outcome.result.seconds;
    seconds.load = (seconds.load - searched).max(0.0);
    let first = text(&tuning);
    trained.outcome.record.tuning = Some(tuning);
    finish(session, trained, &first, &arguments.model, options)
}

/// Searches, and keeps what was done in the checkpoint; none if that is all that is left of a search that was stopped.
fn look(
    session: &Session,
    recipe: &Recipe,
    search: &SearchArgs,
    notes: &mut Vec<String>,
) -> Result<Option<Tuning>> {
    let mut known = Vec::new();
    let checkpoint = match &search.checkpoint {
        None => None,
        Some(file) => {
            let identity = Identity::of(recipe);
            Some(match search.resume && file.exists() {
                true => {
                    let (checkpoint, fits) = Checkpoint::resume(file, &identity)?;
                    notes.push(format!(
                        "{} trainings of an earlier search are in {} and were not done again",
                        fits.len(),
                        file.display()
                    ));
                    known = fits;
                    checkpoint
                }
                false => Checkpoint::create(file, &identity)?,
            })
        }
    };
    let told = |fit: &multikernel::select::Fit| {
        if let Some(checkpoint) = &checkpoint {
            checkpoint.add(fit);
        }
    };
    let found = recipe.search(&known, &told, &session.watcher)?;
    session.watcher.clear();
    if let Some(checkpoint) = &checkpoint {
        checkpoint.finish()?;
    }
    let all = recipe.banks.len() * recipe.grid.norms.len() * recipe.grid.costs.len();
    match (found.stopped, found.tuning, &search.checkpoint) {
        (false, Some(tuning), _) => Ok(Some(tuning)),
        (true, _, Some(file)) => {
            session.output.text(&format!(
                "stopped: what was done is in {}; the same command with --resume goes on from there\n",
                file.display()
            ))?;
            Ok(None)
        }
        (true, Some(tuning), None) => {
            let best = format!(
                "the best of {} of {all} points, tried on {} of {} folds",
                tuning.points.len(),
                tuning.folds,
                recipe.folds
            );
            session.output.text(&format!(
                "stopped: now training with {best} (Ctrl-C ends that, too)\n"
            ))?;
            notes.push(format!(
                "stopped: the model is {best}, without baselines and stability (--checkpoint FILE keeps a search that is stopped)"
            ));
            Ok(Some(tuning))
        }
        (_, None, _) => Err(Error::Stopped.into()),
    }
}

impl SearchArgs {
    fn grid(&self) -> multikernel::Result<Grid> {
        let norm = |text: &String| -> multikernel::Result<(NormSpec, Vec<f64>)> {
            Ok((text.trim().parse()?, Vec::new()))
        };
        let cost = |text: &String| parse_number("C", text);
        let rule: Rule = self.rule.parse()?;
        Ok(Grid {
            norms: self.norm.iter().map(norm).collect::<Result<_, _>>()?,
            costs: self.costs.iter().map(cost).collect::<Result<_, _>>()?,
            metric: Metric::Accuracy,
            rule,
        })
    }
}

impl BankArgs {
    /// The choices by name; one without a name if there is no choice.
    fn each(&self) -> Vec<(String, KernelArgs)> {
        let with = |kernels: Option<PathBuf>| KernelArgs {
            kernel: self.kernel.clone(),
            kernels,
            groups: self.groups.clone(),
        };
        match &self.kernels[..] {
            [] => vec![(String::new(), with(None))],
            [one] => vec![(String::new(), with(Some(one.clone())))],
            several => several
                .iter()
                .map(|file| (file.display().to_string(), with(Some(file.clone()))))
                .collect(),
        }
    }
}

fn check_count(what: &str, found: Option<usize>, samples: usize) -> multikernel::Result<()> {
    match found {
        Some(found) if found != samples => Err(Error::input(
            what,
            format!("there are {found} for {samples} samples"),
            "give one for each sample, in the same order",
        )),
        _ => Ok(()),
    }
}

/// Groups as numbers.
fn numbered(labels: &Labels) -> Vec<u32> {
    let mut known: HashMap<&str, u32> = HashMap::new();
    (0..labels.len())
        .map(|i| {
            let next = known.len() as u32;
            *known.entry(labels.spelling(i)).or_insert(next)
        })
        .collect()
}

/// The grid, and what was chosen.
fn text(tuning: &Tuning) -> String {
    let mut out = match tuning.folds {
        1 => format!("\n{} on one fold:\n", tuning.metric),
        folds => format!("\n{} over {folds} folds:\n", tuning.metric),
    };
    for (bank, name) in tuning.banks.iter().enumerate() {
        let costs: Vec<String> = tuning
            .costs
            .iter()
            .map(|c| format!("C {}", setting(*c)))
            .collect();
        let mut header = vec![if name.is_empty() {
            "norm"
        } else {
            name.as_str()
        }];
        header.extend(costs.iter().map(String::as_str));
        let rows: Vec<Vec<String>> = tuning
            .norms
            .iter()
            .enumerate()
            .map(|(norm, spec)| {
                let cells = (0..tuning.costs.len()).map(|cost| {
                    let found = tuning.points.iter().position(|point| {
                        (point.bank, point.norm, point.cost) == (bank, norm, cost)
                    });
                    found.map_or("-".into(), |at| {
                        let mark = if at == tuning.chosen { "*" } else { "" };
                        format!("{mark}{:.4}", tuning.points[at].mean)
                    })
                });
                std::iter::once(spec.clone()).chain(cells).collect()
            })
            .collect();
        out.push_str(&table(&header, &rows));
    }
    let point = &tuning.points[tuning.chosen];
    let bank = match tuning.banks[point.bank].as_str() {
        "" => String::new(),
        name => format!(", kernels {name}"),
    };
    out.push_str(&format!(
        "\nchosen (*, {}): norm {}, C {}{bank}: {} {:.4}",
        tuning.rule,
        tuning.norms[point.norm],
        setting(tuning.costs[point.cost]),
        tuning.metric,
        point.mean
    ));
    out.push_str(&match tuning.folds {
        1 => "\n".to_owned(),
        _ => format!(
            " ± {:.4}\n{} of {} points are within one standard error of the best; the same point is chosen in {:.0} % of resampled folds\n",
            point.standard_error,
            tuning.within_error,
            tuning.points.len(),
            100.0 * tuning.agreement
        ),
    });
    match &tuning.nested {
        Some(nested) => out.push_str(&format!(
            "on samples that the search never saw (nested): {} {:.4} ({:.4} … {:.4})\n",
            tuning.metric, nested.value, nested.low, nested.high
        )),
        None => out.push_str(
            "the best of many points looks better than it is: --nested 5 or --holdout 0.2 give an honest estimate\n",
        ),
    }
    out.push_str(&format!("search: {:.2} s\n", tuning.seconds));
    out
}
