//! The job of `online`: lines in, learning, lines out, and a state that survives anything.

use crate::args::KernelArgs;
use crate::output::number;
use crate::session::Session;
use anyhow::{Context, Result};
use multikernel::data::{
    LineReader, ScaleKind, ScaleOption, StreamEvent, StreamExample, StreamLine, StreamOptions,
    StreamParser,
};
use multikernel::kernel::{KernelSpec, Kind, Normalize, Width};
use multikernel::online::{Online, Outcome, Settings};
use multikernel::{Error, Model};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Lines that are taken up together, if they wait.
const BATCH: usize = 256;
/// How often a source that gives nothing is asked whether the user wants to stop.
const PATIENCE: Duration = Duration::from_millis(50);
/// Wrong lines that are named; the others are counted.
const NAMED: u64 = 20;

/// Where lines come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

/// Where the source begins after an interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Resume {
    /// The source gives all lines again: those that were learned are passed over.
    Start,
    /// The source begins behind the last line that was learned.
    Position,
}

/// What is to be done.
pub(crate) struct Job<'a> {
    pub(crate) source: Source,
    pub(crate) options: StreamOptions,
    pub(crate) kernels: &'a KernelArgs,
    pub(crate) scale: Vec<ScaleOption>,
    pub(crate) settings: Settings,
    /// Examples by which widths are chosen.
    pub(crate) first_block: usize,
    pub(crate) epochs: u64,
    pub(crate) skip_bad: bool,
    pub(crate) scores: bool,
    pub(crate) checkpoint: Option<(PathBuf, u64)>,
    pub(crate) resume: Option<Resume>,
    pub(crate) comparator: Option<PathBuf>,
}

/// Where a run stands: kept with the state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Passes that are done.
    pub(crate) passes: u64,
    /// Passes that were begun.
    begun: u64,
    /// Lines of this pass that are done.
    pub(crate) lines: u64,
    /// Examples among them.
    pub(crate) examples: u64,
    /// Lines, of all passes, that were wrong and passed over.
    pub(crate) bad_lines: u64,
    /// What the first lines told.
    parser: serde_json::Value,
}

/// How it ended.
pub(crate) struct Done {
    pub(crate) online: Online,
    pub(crate) position: Position,
    pub(crate) stopped: bool,
    pub(crate) notes: Vec<String>,
    /// Seconds until the learner was there.
    pub(crate) ready: f64,
}

/// A run in progress.
struct Run<'a, 'w> {
    job: &'a Job<'a>,
    session: &'a Session,
    out: &'w mut dyn Write,
    parser: StreamParser,
    online: Option<Online>,
    position: Position,
    /// Examples that wait for the first block to be complete, or for the batch to end, and the lines they came from.
    block: Vec<(u64, StreamExample)>,
    /// Lines taken up so far, of this pass.
    taken: u64,
    since_checkpoint: u64,
    notes: Vec<String>,
    ready: f64,
}

/// What comes from the source.
enum Line {
    Text(u64, Vec<u8>),
    TooLong(u64),
    Failed(io::Error),
}

impl Job<'_> {
    pub(crate) fn run(&self, session: &Session, out: &mut dyn Write) -> Result<Done> {
        let (parser, online, position) = self.start()?;
        let mut run = Run {
            job: self,
            session,
            out,
            parser,
            online,
            position,
            block: Vec::new(),
            taken: 0,
            since_checkpoint: 0,
            notes: Vec::new(),
            ready: 0.0,
        };
        if run.online.is_some() {
            run.prepare()?;
            let position = &run.position;
            run.notes.push(format!(
                "going on after line {} of pass {}",
                position.lines,
                position.passes + 1
            ));
        }
        let stopped = run.passes()?;
        run.checkpoint()?;
        let Some(online) = run.online else {
            return Err(match stopped {
                true => Error::Stopped,
                false => Error::input(
                    &self.options.name,
                    "there is no example in it",
                    "give at least one example",
                ),
            }
            .into());
        };
        Ok(Done {
            online,
            position: run.position,
            stopped,
            notes: run.notes,
            ready: run.ready,
        })
    }

    /// Everything new, or as it was left.
    fn start(&self) -> Result<(StreamParser, Option<Online>, Position)> {
        let new = || {
            let parser = StreamParser::new(self.options.clone());
            (parser, None, Position::default())
        };
        let Some((file, _)) = &self.checkpoint else {
            return Ok(new());
        };
        match (self.resume, file.exists()) {
            (_, false) => Ok(new()),
            (None, true) => Err(Error::input(
                file.display().to_string(),
                "the file is there already, and would be lost",
                "give --resume to go on from it, or another name",
            )
            .into()),
            (Some(_), true) => {
                let online = Online::load(file)?;
                let position = serde_json::from_value(online.carried().clone());
                let position: Position = position.map_err(|_| {
                    Error::input(
                        file.display().to_string(),
                        "the state does not say which position of a stream it is at: this command did not write it",
                        "go on in Python with multikernel.load, or begin a new state",
                    )
                })?;
                if *online.settings() != self.settings {
                    return Err(Error::input(
                        file.display().to_string(),
                        "the state was made with other options (solver, norm, budget, classes)",
                        "give the same options as at first",
                    )
                    .into());
                }
                let parser = StreamParser::resume(self.options.clone(), &position.parser)?;
                Ok((parser, Some(online), position))
            }
        }
    }

    /// Lines of the source, read by a thread of their own; lines up to `skip` are passed over.
    fn lines(&self, skip: u64, before: u64) -> Result<Receiver<Line>> {
        let source: Box<dyn BufRead + Send> = match &self.source {
            Source::Stdin => Box::new(BufReader::new(io::stdin())),
            Source::File(path) => {
                let file = File::open(path).map_err(|e| Error::io(path, e))?;
                Box::new(BufReader::with_capacity(1 << 18, file))
            }
        };
        let (give, take) = sync_channel(4 * BATCH);
        std::thread::spawn(move || {
            let mut reader = LineReader::new(source, before);
            loop {
                let mut line = Vec::new();
                let told = match reader.read(&mut line) {
                    Ok(StreamLine::End) => return,
                    Ok(StreamLine::Line(n) | StreamLine::TooLong(n)) if n <= skip => continue,
                    Ok(StreamLine::Line(n)) => Line::Text(n, line),
                    Ok(StreamLine::TooLong(n)) => Line::TooLong(n),
                    Err(e) => Line::Failed(e),
                };
                let failed = matches!(told, Line::Failed(_));
                // nobody takes lines any more: the run has ended
                if give.send(told).is_err() || failed {
                    return;
                }
            }
        });
        Ok(take)
    }
}

impl Run<'_, '_> {
    /// All passes; true if the user stopped them.
    fn passes(&mut self) -> Result<bool> {
        while self.position.passes < self.job.epochs {
            if self.position.begun == self.position.passes {
                self.position.begun += 1;
                self.position.lines = 0;
                self.position.examples = 0;
                if let (Some(online), true) = (&mut self.online, self.position.passes > 0) {
                    online.begin_pass();
                }
            }
            if self.pass()? {
                return Ok(true);
            }
            self.position.passes += 1;
        }
        Ok(false)
    }

    fn pass(&mut self) -> Result<bool> {
        let done = self.position.lines;
        let lines = match self.job.resume {
            Some(Resume::Position) if self.position.passes == 0 => self.job.lines(done, done)?,
            _ => self.job.lines(done, 0)?,
        };
        self.taken = done;
        loop {
            if self.session.watcher.stopped() {
                // a first block that is not complete is learned nothing of: a resumed run begins before it
                if self.online.is_some() {
                    self.flush()?;
                }
                return Ok(true);
            }
            let mut next = match lines.recv_timeout(PATIENCE) {
                Ok(line) => Some(line),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut count = 0;
            while let Some(line) = next.take() {
                self.line(line)?;
                count += 1;
                if count < BATCH {
                    next = lines.try_recv().ok();
                }
            }
            if self.online.is_some() {
                self.flush()?;
            }
            self.checkpoint_if_due()?;
        }
        if self.online.is_none() && !self.block.is_empty() {
            self.begin()?;
        }
        self.flush()?;
        Ok(false)
    }

    fn line(&mut self, line: Line) -> Result<()> {
        let (number, text) = match line {
            Line::Text(number, text) => (number, text),
            Line::Failed(e) => {
                return Err(e).with_context(|| self.job.options.name.clone());
            }
            Line::TooLong(number) => {
                let error = Error::input(
                    format!("{} line {number}", self.job.options.name),
                    "the line is too long for an example",
                    "give lines of at most 64 MiB",
                );
                return self.bad(number, error);
            }
        };
        // the header was read in the first pass
        let begins = self.position.examples == 0 && self.block.is_empty();
        if self.position.passes > 0 && begins && self.parser.is_header(&text) {
            self.taken = number;
            return Ok(());
        }
        match self.parser.line(&text, number) {
            Ok(None) => {
                self.taken = number;
                Ok(())
            }
            Ok(Some(StreamEvent::Example(example))) => {
                self.block.push((number, example));
                self.taken = number;
                if self.online.is_none() && self.block.len() >= self.job.first_block {
                    self.begin()?;
                    self.flush()?;
                }
                Ok(())
            }
            Ok(Some(StreamEvent::Label { id, label })) => {
                if self.online.is_none() {
                    self.begin()?;
                }
                self.flush()?;
                self.teach(number, &id, &label)
            }
            Err(error) if self.parser.is_lost() => Err(error.into()),
            Err(error) => self.bad(number, error),
        }
    }

    /// A wrong line: passed over or fatal, as the user chose. What came before it is learned first.
    fn bad(&mut self, number: u64, error: Error) -> Result<()> {
        if !self.job.skip_bad {
            if self.online.is_some() {
                self.flush()?;
                self.checkpoint()?;
            }
            return Err(error.into());
        }
        self.taken = self.taken.max(number);
        self.position.bad_lines += 1;
        if self.position.bad_lines <= NAMED {
            writeln!(io::stderr(), "warning: {error}; the line is passed over")?;
        }
        Ok(())
    }

    /// Makes the learner from the examples of the first block.
    fn begin(&mut self) -> Result<()> {
        loop {
            let examples: Vec<&StreamExample> = self.block.iter().map(|(_, e)| e).collect();
            if examples.is_empty() {
                return Ok(());
            }
            let views = self.parser.views(&examples)?;
            let (specs, chosen) = self.job.kernels.choose(&views)?;
            let settings = self.job.settings.clone();
            let made = Online::scaled(settings, &specs, &self.job.scale, &views, self.session.seed);
            match made {
                Ok(online) => {
                    self.notes.extend(chosen);
                    self.notes.extend_from_slice(online.notes());
                    self.online = Some(online);
                    self.ready = self.session.elapsed();
                    return self.prepare();
                }
                Err(error) => match error.row().filter(|&row| row < self.block.len()) {
                    Some(row) => {
                        let (number, _) = self.block.remove(row);
                        self.taken_back(number, error)?;
                    }
                    None => return Err(error.into()),
                },
            }
        }
    }

    /// An example that turned out to be wrong when its values were looked at.
    fn taken_back(&mut self, number: u64, error: Error) -> Result<()> {
        let place = format!("{} line {number}", self.job.options.name);
        self.bad(number, error.without_row().within(&place))
    }

    fn prepare(&mut self) -> Result<()> {
        if let (Some(path), Some(online)) = (&self.job.comparator, &mut self.online) {
            online.compare_with(Model::load(path)?)?;
        }
        Ok(())
    }

    /// Learns what waits.
    fn flush(&mut self) -> Result<()> {
        while !self.block.is_empty() {
            let Some(online) = &mut self.online else {
                break;
            };
            let examples: Vec<&StreamExample> = self.block.iter().map(|(_, e)| e).collect();
            let views = self.parser.views(&examples)?;
            let labels: Vec<Option<&str>> = examples.iter().map(|e| e.label.as_deref()).collect();
            let learned = match self.position.passes {
                0 => online.learn(&views, &labels),
                _ => online.learn_again(&views, &labels, self.position.examples),
            };
            match learned {
                Ok(outcomes) => {
                    self.write(&outcomes)?;
                    self.position.examples += outcomes.len() as u64;
                    self.since_checkpoint += outcomes.len() as u64;
                    self.block.clear();
                }
                Err(error) => match error.row().filter(|&row| row < self.block.len()) {
                    Some(row) => {
                        // those before it are learned, then it is looked at
                        let rest = self.block.split_off(row);
                        self.flush()?;
                        let mut rest = rest.into_iter();
                        let Some((number, _)) = rest.next() else {
                            return Err(error.into());
                        };
                        self.taken = number - 1;
                        self.position.lines = number - 1;
                        self.taken_back(number, error)?;
                        self.block = rest.collect();
                        if let Some((last, _)) = self.block.last() {
                            self.taken = *last;
                        }
                    }
                    None => return Err(error.into()),
                },
            }
        }
        self.position.lines = self.position.lines.max(self.taken);
        self.out.flush()?;
        Ok(())
    }

    fn teach(&mut self, number: u64, id: &str, label: &str) -> Result<()> {
        let Some(online) = &mut self.online else {
            return Ok(());
        };
        match online.teach(id, label) {
            Ok(outcome) => {
                let line = Written::new(online, &outcome, Some(id), number, self.job.scores, true);
                self.out.write_all(&line.to_bytes()?)?;
                self.taken = number;
                self.since_checkpoint += 1;
                Ok(())
            }
            Err(error) => {
                let place = format!("{} line {number}", self.job.options.name);
                self.bad(number, error.within(&place))
            }
        }
    }

    fn write(&mut self, outcomes: &[Outcome]) -> Result<()> {
        let Some(online) = &self.online else {
            return Ok(());
        };
        for (outcome, (number, example)) in outcomes.iter().zip(&self.block) {
            let id = example.id.as_deref();
            let line = Written::new(online, outcome, id, *number, self.job.scores, false);
            self.out.write_all(&line.to_bytes()?)?;
        }
        Ok(())
    }

    fn checkpoint_if_due(&mut self) -> Result<()> {
        match &self.job.checkpoint {
            Some((_, every)) if self.since_checkpoint >= *every => self.checkpoint(),
            _ => Ok(()),
        }
    }

    fn checkpoint(&mut self) -> Result<()> {
        let (Some((file, _)), Some(online)) = (&self.job.checkpoint, &mut self.online) else {
            return Ok(());
        };
        self.position.parser = self.parser.learned();
        online.carry(serde_json::to_value(&self.position)?);
        online.save(file)?;
        self.since_checkpoint = 0;
        Ok(())
    }
}

/// Whether kernels or scaling are chosen by the samples of a first block.
pub(crate) fn needs_block(specs: &[KernelSpec], scale: &[ScaleOption]) -> bool {
    let scaled = scale
        .iter()
        .any(|s| matches!(s.kind, ScaleKind::Standard | ScaleKind::MinMax));
    let chosen = specs.iter().any(|spec| {
        let width = match spec.kind {
            Kind::Rbf(width) | Kind::Laplacian(width) | Kind::Chi2(width) => Some(width),
            _ => None,
        };
        let by_data = matches!(width, Some(Width::Mean(_) | Width::Median(_)));
        let normalised = matches!(
            spec.normalize,
            Normalize::Trace | Normalize::Multiplicative | Normalize::Center
        );
        by_data || normalised
    });
    scaled || chosen
}

/// The line that is written for an example.
#[derive(Serialize)]
struct Written<'a> {
    line: u64,
    id: Option<&'a str>,
    prediction: Option<&'a str>,
    correct: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    late: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<serde_json::Map<String, serde_json::Value>>,
}

impl<'a> Written<'a> {
    /// Written in one piece, so that a closed pipe is an error of the pipe.
    fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    fn new(
        online: &'a Online,
        outcome: &Outcome,
        id: Option<&'a str>,
        line: u64,
        scores: bool,
        late: bool,
    ) -> Self {
        let classes = online.classes();
        // a single score is the second class's
        let names = match online.settings().binary {
            true => classes.get(1..).unwrap_or_default(),
            false => classes,
        };
        Written {
            line,
            id,
            prediction: outcome
                .prediction
                .and_then(|k| classes.get(k as usize))
                .map(String::as_str),
            correct: outcome.correct,
            late,
            scores: scores.then(|| {
                let pairs = names.iter().zip(&outcome.scores);
                pairs.map(|(name, s)| (name.clone(), (*s).into())).collect()
            }),
        }
    }
}

/// `FILE` or `FILE:every`.
pub(crate) fn checkpoint_option(text: &str) -> multikernel::Result<(PathBuf, u64)> {
    const EVERY: u64 = 1000;
    let (file, every) = match text.rsplit_once(':') {
        Some((file, every)) if !file.is_empty() && every.parse::<u64>().is_ok() => {
            (file, every.parse::<u64>().unwrap_or(EVERY))
        }
        _ => (text, EVERY),
    };
    if every == 0 {
        return Err(Error::input(
            "checkpoint",
            "it is to be written every 0 examples",
            "give FILE:every with a positive number",
        ));
    }
    Ok((Path::new(file).to_path_buf(), every))
}

/// Words about the stream so far.
pub(crate) fn summary(done: &Done) -> String {
    let (online, report) = (&done.online, done.online.report());
    let mut out = format!(
        "\n{} examples, {} labelled, {} classes; {} support vectors after {} updates\n",
        report.examples,
        report.labelled,
        online.classes().len(),
        online.n_support(),
        report.updates
    );
    for (p, pass) in report.passes.iter().enumerate() {
        let name = match p {
            0 => "online error".to_owned(),
            p => format!("error of pass {}", p + 1),
        };
        out.push_str(&format!(
            "{name} {:.4} ({} mistakes of {})\n",
            pass.error(),
            pass.mistakes,
            pass.labelled
        ));
    }
    if let Some(bound) = online.mistake_bound() {
        out.push_str(&format!(
            "Theorem 1 for the comparator: {} rounds went wrong, at most {} may\n",
            bound.wrong_rounds,
            number(bound.bound)
        ));
    }
    for (count, what) in [
        (done.position.bad_lines, "wrong lines were passed over"),
        (
            report.removed,
            "support vectors were taken away by the budget",
        ),
        (
            report.given_up,
            "examples were given up waiting for a label",
        ),
        (online.n_waiting() as u64, "examples wait for a label"),
    ] {
        if count > 0 {
            out.push_str(&format!("{count} {what}\n"));
        }
    }
    out
}
