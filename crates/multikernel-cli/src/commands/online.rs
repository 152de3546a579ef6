//! `multikernel online`: learns from a stream, one example at a time.

use crate::args::{CommonArgs, KernelArgs, parse_number};
use crate::paths::Paths;
use crate::session::Session;
use crate::stream::{Done, Job, Resume, Source, checkpoint_option, needs_block, summary};
use crate::weights::{self, Bar};
use anyhow::Result;
use clap::Args;
use multikernel::Error;
use multikernel::data::ScaleOption;
use multikernel::machine;
use multikernel::online::{Budget, MistakeBound, Pass, Rule, StreamSettings};
use multikernel::record::{ResultObject, Seconds};
use multikernel_io::{StreamOptions, ViewCut};
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Examples by which widths are chosen.
const FIRST_BLOCK: usize = 256;

/// Learn from a stream, one example at a time
///
/// Every line is an example: JSON ({"id": …, "<view>": [numbers], "label": …}), a row of CSV, or LIBSVM text. It is
/// predicted, then learned from if it has a label, and one JSON line is written: line, id, prediction, correct. An example
/// without a label is predicted only, and a later line with its id and a label teaches it. The state goes to a file that
/// 'predict' and 'inspect' read, now and then and at the end, at Ctrl-C too; --resume goes on from there to exactly the
/// model of an uninterrupted run. After a kill, lines behind the last state are learned, and written, again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel online --features stream.csv --label-column class --checkpoint state.mk
  camera | multikernel online --kernel 'rbf:width=mean*0.5|mean|mean*2' --checkpoint state.mk:100 --skip-bad
  multikernel online --features stream.jsonl --budget 2000:project --checkpoint state.mk --resume --json result.json")]
pub(crate) struct Arguments {
    /// The stream: a file, or - for stdin
    #[arg(value_name = "STREAM", conflicts_with = "features")]
    stream: Option<String>,

    /// The same as STREAM
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    features: Option<String>,

    /// jsonl, csv or libsvm [default: as the first line looks]
    #[arg(long, value_name = "FORMAT", help_heading = "Data")]
    format: Option<String>,

    /// Column, or key, of the label [default: label]
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    label_column: Option<String>,

    /// Column, or key, of the id [default: id]
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    id_column: Option<String>,

    /// Cuts a view out of the columns of CSV: name=col1,col2 or name=prefix* or name=3..17; may be repeated
    #[arg(long = "view", value_name = "NAME=COLUMNS", help_heading = "Data")]
    views: Vec<String>,

    /// Scales features with the statistics of the first block: standard, minmax, unit or none, for all views or as
    /// view=KIND for one; may be repeated
    #[arg(long, value_name = "[VIEW=]KIND", help_heading = "Data")]
    scale: Vec<String>,

    /// Passes over wrong lines, naming and counting them
    #[arg(long, conflicts_with = "fail_bad", help_heading = "Data")]
    skip_bad: bool,

    /// Ends at the first wrong line, with what came before learned and kept; this is the default
    #[arg(long, help_heading = "Data")]
    fail_bad: bool,

    #[command(flatten)]
    kernels: KernelArgs,

    #[command(flatten)]
    options: Options,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Learning")]
struct Options {
    /// om2 (the same as auto; om2:link=0.5 with --norm block:1.05 often errs less), obscure (its first stage), pegasos, pa1 (on the average kernel) or omcl (every kernel by itself and a combiner)
    #[arg(long, default_value = "om2")]
    solver: String,

    /// How kernels share: block:R with 1 < R ≤ 2, block:auto by their number, or lp:P with 1 < P
    #[arg(long, default_value = "block:auto")]
    norm: String,

    /// C of pa1 and omcl [default: 1]
    #[arg(long = "C", value_name = "C", allow_negative_numbers = true)]
    c: Option<String>,

    /// λ of pegasos [default: 1e-3]
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    lambda: Option<String>,

    /// Step of obscure [default: 2]
    #[arg(long, value_name = "ETA", allow_negative_numbers = true)]
    eta: Option<String>,

    /// One score for two classes, instead of a score for each class
    #[arg(long)]
    binary: bool,

    /// Classes that are known from the start; others may appear
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    classes: Vec<String>,

    /// The largest number of support vectors; beyond, the oldest goes, the smallest, or the smallest projected on the one most like
    /// it
    #[arg(long, value_name = "N[:oldest|smallest|project]")]
    budget: Option<String>,

    /// Passes over a file
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    epochs: u64,

    /// Examples at the start by which widths and scales are chosen, if any are; their lines come together
    #[arg(long, value_name = "N", default_value_t = FIRST_BLOCK as u64, value_parser = clap::value_parser!(u64).range(1..))]
    block: u64,

    /// Examples with an id that wait for a label, at most; the oldest is given up first
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    waiting: usize,

    /// Keeps the state in a file, which is a model, every EVERY examples [default: 1000] and at the end
    #[arg(long, value_name = "FILE[:EVERY]")]
    checkpoint: Option<String>,

    /// Goes on from the state, if there is one: the source gives all lines again, and more behind them (start: a file that
    /// grows), or only those behind the position that was told (position, without a header: a pipe that does not repeat
    /// itself)
    #[arg(long, num_args = 0..=1, default_missing_value = "start", value_name = "WHERE", requires = "checkpoint")]
    resume: Option<Resume>,

    /// A model, trained without bias on the same kernels, by which Theorem 1 bounds om2's mistakes
    #[arg(long, value_name = "MODEL")]
    comparator: Option<PathBuf>,

    /// Where the lines go: a file, or - for stdout (text then goes to stderr)
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,

    /// Writes the scores of the classes, too
    #[arg(long)]
    scores: bool,
}

/// The result object, with what only streams have.
#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    result: ResultObject,
    classes: Vec<String>,
    passes: Vec<Pass>,
    /// Labelled examples, mistakes up to there, size of the support.
    curve: Vec<(u64, u64, u64)>,
    mistake_bound: Option<MistakeBound>,
    stream: Stream,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Stream {
    /// Lines of the last pass that are done: where a source may go on.
    position: u64,
    passes: u64,
    bad_lines: u64,
    waiting: usize,
    given_up: u64,
    removed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut session = arguments.common.start()?;
    let lines_to_stdout = arguments.options.out == Path::new("-");
    session.output.stdout_is_taken |= lines_to_stdout;
    session.run(|| online(&session, arguments, lines_to_stdout))
}

fn online(session: &Session, arguments: &Arguments, lines_to_stdout: bool) -> Result<()> {
    let job = arguments.job()?;
    let options = &arguments.options;
    // before the file of the lines is touched: what is refused changes nothing
    let start = job.start()?;
    let done = if lines_to_stdout {
        let mut out = BufWriter::new(io::stdout());
        job.run(start, session, &mut out)?
    } else {
        let file = &options.out;
        let out = std::fs::OpenOptions::new()
            .create(true)
            .write(true)
            // a resumed run goes on behind what was written
            .append(job.resume.is_some())
            .truncate(job.resume.is_none())
            .open(file)
            .map_err(|e| Error::io(file, e))?;
        job.run(start, session, &mut BufWriter::new(out))?
    };
    session.watcher.clear();
    let output = &session.output;
    output.notes(&done.notes)?;
    output.text(&summary(&done))?;
    let result = outcome(session, &done);
    output.text(&weights::text(&Bar::all(&result.result), 1))?;
    if let Some((file, _)) = &job.checkpoint {
        output.text(&format!(
            "state after line {} of pass {} written to {}\n",
            done.position.lines,
            done.position.pass,
            file.display()
        ))?;
    }
    output.warnings(done.online.warnings())?;
    match &output.json {
        // stdout holds a JSON line for every example: one more for the result
        Some(path) if path == Path::new("-") && lines_to_stdout => {
            let mut line = serde_json::to_vec(&result)?;
            line.push(b'\n');
            io::stdout().write_all(&line)?;
            Ok(())
        }
        _ => output.json(&result),
    }
}

impl Arguments {
    /// What these words say, before anything is read.
    fn job(&self) -> Result<Job> {
        let options = &self.options;
        let source = Source::named(self.stream.as_ref().or(self.features.as_ref()));
        options.check_passes(&source)?;
        let views: multikernel::Result<Vec<ViewCut>> =
            self.views.iter().map(|v| v.parse()).collect();
        let scale: multikernel::Result<Vec<ScaleOption>> =
            self.scale.iter().map(|s| s.parse()).collect();
        let (views, scale) = (views?, scale?);
        let settings = options.settings()?;
        settings.check()?;
        let specs = self.kernels.specs()?;
        let chosen = specs.is_empty() || needs_block(&specs, &scale);
        let checkpoint = options.checkpoint.as_deref().map(checkpoint_option);
        let checkpoint = checkpoint.transpose()?;
        let format = self.format.as_deref().map(str::parse).transpose()?;
        let mut paths = Paths::of(&self.common);
        if let Source::File(file) = &source {
            paths.reads(file);
        }
        paths
            .reads_kernels(&self.kernels)
            .reads_all(&options.comparator)
            .writes_or_prints("out", &options.out);
        if let Some((file, _)) = &checkpoint {
            paths.writes("checkpoint", file);
        }
        paths.check()?;
        Ok(Job {
            options: StreamOptions {
                name: source.name(),
                format,
                label_column: self.label_column.clone(),
                id_column: self.id_column.clone(),
                views,
                whole: source.view(),
            },
            source,
            specs,
            groups: self.kernels.groups.clone(),
            scale,
            settings,
            first_block: match chosen {
                true => options.block as usize,
                false => 1,
            },
            epochs: options.epochs,
            skip_bad: self.skip_bad,
            scores: options.scores,
            checkpoint,
            resume: options.resume,
            comparator: options.comparator.clone(),
        })
    }
}

impl Options {
    /// Several passes need all lines again.
    fn check_passes(&self, source: &Source) -> multikernel::Result<()> {
        let wrong = |found: &str, remedy: &str| Err(Error::input("epochs", found, remedy));
        match (self.epochs, source, self.resume) {
            (0 | 1, ..) => Ok(()),
            (_, Source::Stdin, _) => wrong(
                "a stream from stdin comes once",
                "give a file for several passes",
            ),
            (_, _, Some(Resume::Position)) => wrong(
                "further passes need all lines, and --resume position says that the source begins behind some",
                "give --resume with the whole file",
            ),
            _ => Ok(()),
        }
    }

    fn settings(&self) -> multikernel::Result<StreamSettings> {
        let mut rule: Rule = self.solver.parse()?;
        let parameters = [("C", &self.c), ("lambda", &self.lambda), ("eta", &self.eta)];
        for (name, text) in parameters {
            if let Some(text) = text {
                rule = rule.with(name, parse_number(name, text)?)?;
            }
        }
        Ok(StreamSettings {
            rule,
            norm: self.norm.parse()?,
            binary: self.binary,
            classes: self.classes.clone(),
            budget: self
                .budget
                .as_deref()
                .map(str::parse::<Budget>)
                .transpose()?,
            waiting: self.waiting,
        })
    }
}

fn outcome(session: &Session, done: &Done) -> Outcome {
    let (online, report) = (&done.online, done.online.report());
    let total = session.elapsed();
    let mut result = ResultObject::of_stream(online);
    if done.stopped {
        result.status = "stopped";
    }
    result.seconds = Seconds {
        load: 0.0,
        kernels: done.ready,
        train: total - done.ready,
        total,
    };
    result.peak_memory_bytes = machine::peak_memory();
    result.seed = session.seed;
    Outcome {
        result,
        classes: online.classes().to_vec(),
        passes: report.passes.clone(),
        curve: report.curve.points().to_vec(),
        mistake_bound: online.mistake_bound(),
        stream: Stream {
            position: done.position.lines,
            passes: done.position.pass - u64::from(done.stopped),
            bad_lines: done.position.bad_lines,
            waiting: online.n_waiting(),
            given_up: report.given_up,
            removed: report.removed,
        },
        notes: done.notes.clone(),
    }
}
