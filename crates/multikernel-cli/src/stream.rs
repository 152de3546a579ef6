//! The job of `online`: lines in, learning, lines out, and a state that survives anything.

mod run;
mod written;

pub(crate) use written::summary;

use crate::args::KernelArgs;
use crate::session::Session;
use anyhow::Result;
use multikernel::Error;
use multikernel::data::{
    LineReader, ScaleKind, ScaleOption, StreamLine, StreamOptions, StreamParser,
};
use multikernel::kernel::{KernelSpec, Kind, Normalize, Width};
use multikernel::online::{Online, Settings};
use run::Run;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};

/// Lines that are taken up together, if they wait.
const BATCH: usize = 256;

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
