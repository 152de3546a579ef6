//! `multikernel tune`: chooses kernels, norm and C by cross-validation, and trains with them.

use super::Ending;
use super::options::{Options, matrix};
use super::train::finish;
use crate::args::{CommonArgs, DataArgs, KernelArgs, parse_number};
use crate::output::{setting, table};
use crate::session::Session;
use crate::training;
use anyhow::Result;
use clap::Args;
use multikernel::Error;
use multikernel::data::Labels;
use multikernel::norm::NormSpec;
use multikernel::pipeline::{Bank, KeptSearch, Search};
use multikernel::record::Tuning;
use multikernel_io::load_labels;
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
    let Arguments { data, options, .. } = arguments;
    let memory = || session.memory_left();
    let mut search = arguments.search(session)?;
    search.training.memory = &memory;
    let mut paths = options.paths(&arguments.common, data, &arguments.model);
    paths
        .reads_all(&arguments.banks.kernels)
        .reads_all(&arguments.search.fold_groups);
    for (norm, _) in &search.norms {
        paths.reads_norm(norm);
    }
    if let Some(file) = &arguments.search.checkpoint {
        paths.writes("checkpoint", file);
    }
    paths.check()?;
    search.banks = arguments.banks.each()?;
    search.check(data.task()?)?;
    for (norm, values) in &mut search.norms {
        if let NormSpec::NonIsotropic(file) = norm {
            *values = matrix(session, file)?;
        }
    }
    options.read_weights(session, &mut search.training.mkl)?;
    if let Some(file) = &arguments.search.fold_groups {
        let groups = load_labels(file, Some(session.memory_left()), &session.watcher)?;
        search.fold_groups = Some(numbered(&groups));
    }
    let (views, targets) = options.read(session, data, &mut search.training)?;
    search.check(Some(targets.task()))?;

    let before = session.elapsed();
    let found = search.find(&views, &targets, &session.watcher)?;
    session.watcher.clear();
    if found.stopped
        && let Some(KeptSearch { file, .. }) = &search.kept
    {
        session.output.text(&format!(
            "stopped: what was done is in {}; the same command with --resume goes on from there\n",
            file.display()
        ))?;
        return Ok(Ending::Stopped);
    }
    let tuning = found.tuning.ok_or(Error::Stopped)?;
    if found.stopped {
        let best = format!(
            "the best of {} of {} points, tried on {} of {} folds",
            tuning.points.len(),
            search.points(),
            tuning.folds,
            search.folds
        );
        session.output.text(&format!(
            "stopped: now training with {best} (Ctrl-C ends that, too)\n"
        ))?;
        search.training.notes.push(format!(
            "stopped: the model is {best}, without baselines and stability (--checkpoint FILE keeps a search that is stopped)"
        ));
    }
    let stopped = session.watcher.stopped();
    if stopped {
        session.watcher.go_on();
    }
    let training = search.training(&tuning, stopped);
    let searched = session.elapsed() - before;
    let mut trained = training::train(training, views, targets, session)?;
    // What stands between reading and training is not reading.
    let seconds = &mut trained.outcome.result.seconds;
    seconds.load = (seconds.load - searched).max(0.0);
    let first = text(&tuning);
    trained.outcome.record.tuning = Some(tuning);
    finish(session, trained, &first, &arguments.model, options)
}

impl Arguments {
    /// What these words say, before any file is read; groups of the folds stand in a file, and are as good as there.
    fn search(&self, session: &Session) -> multikernel::Result<Search<'static>> {
        let words = &self.search;
        let norm = |text: &String| -> multikernel::Result<(NormSpec, Vec<f64>)> {
            Ok((text.trim().parse()?, Vec::new()))
        };
        let cost = |text: &String| parse_number("C", text);
        Ok(Search {
            training: self.options.training(session, &self.data)?,
            banks: Vec::new(),
            norms: words.norm.iter().map(norm).collect::<Result<_, _>>()?,
            costs: words.costs.iter().map(cost).collect::<Result<_, _>>()?,
            metric: words.metric.as_deref().map(str::parse).transpose()?,
            rule: words.rule.parse()?,
            folds: words.folds,
            fold_groups: words.fold_groups.as_ref().map(|_| Vec::new()),
            nested: words.nested,
            kept: words.checkpoint.clone().map(|file| KeptSearch {
                file,
                resume: words.resume,
            }),
        })
    }
}

impl BankArgs {
    /// The choices by name; one without a name if there is no choice.
    fn each(&self) -> multikernel::Result<Vec<Bank>> {
        let bank = |file: Option<&PathBuf>| {
            let kernels = KernelArgs {
                kernel: self.kernel.clone(),
                kernels: file.cloned(),
                groups: self.groups.clone(),
            };
            Ok(Bank {
                name: match file {
                    Some(file) if self.kernels.len() > 1 => file.display().to_string(),
                    _ => String::new(),
                },
                kernels: kernels.specs()?,
                groups: kernels.groups,
            })
        };
        match &self.kernels[..] {
            [] => Ok(vec![bank(None)?]),
            files => files.iter().map(Some).map(bank).collect(),
        }
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
        out.push_str(&grid_text(tuning, bank, name));
    }
    out.push_str(&choice_text(tuning));
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

/// What every norm and C reached with the kernels of a bank.
fn grid_text(tuning: &Tuning, bank: usize, name: &str) -> String {
    let mut header = vec![match name {
        "" => "norm".to_owned(),
        name => name.to_owned(),
    }];
    header.extend(tuning.costs.iter().map(|c| format!("C {}", setting(*c))));
    let cell = |norm: usize, cost: usize| {
        let mut points = tuning.points.iter();
        let found = points.position(|p| (p.bank, p.norm, p.cost) == (bank, norm, cost));
        found.map_or("-".into(), |at| {
            let mark = if at == tuning.chosen { "*" } else { "" };
            format!("{mark}{:.4}", tuning.points[at].mean)
        })
    };
    let norms = tuning.norms.iter().enumerate();
    let rows: Vec<Vec<String>> = norms
        .map(|(norm, spec)| {
            let cells = (0..tuning.costs.len()).map(|cost| cell(norm, cost));
            std::iter::once(spec.clone()).chain(cells).collect()
        })
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    table(&header, &rows)
}

/// The point that was taken, and how sure that is.
fn choice_text(tuning: &Tuning) -> String {
    let point = &tuning.points[tuning.chosen];
    let bank = match tuning.banks[point.bank].as_str() {
        "" => String::new(),
        name => format!(", kernels {name}"),
    };
    let mut out = format!(
        "\nchosen (*, {}): norm {}, C {}{bank}: {} {:.4}",
        tuning.rule,
        tuning.norms[point.norm],
        setting(tuning.costs[point.cost]),
        tuning.metric,
        point.mean
    );
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
    out
}
