//! The job of `online`: lines in, learning, lines out, and a state that survives anything.

mod run;
mod written;

pub(crate) use written::summary;

use crate::session::Session;
use anyhow::Result;
use multikernel::Error;
use multikernel::data::{ScaleKind, ScaleOption};
use multikernel::kernel::{KernelSpec, Normalize, Width};
use multikernel::online::{Online, StreamSettings};
use multikernel_io::{LineReader, StreamLine, StreamOptions, StreamParser};
use run::Run;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
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

impl Source {
    /// A file by its name; stdin without one, and for -.
    pub(crate) fn named(name: Option<&String>) -> Source {
        match name.map_or("-", String::as_str) {
            "-" => Source::Stdin,
            file => Source::File(PathBuf::from(file)),
        }
    }

    /// What it is called in sentences.
    pub(crate) fn name(&self) -> String {
        match self {
            Source::Stdin => "stdin".into(),
            Source::File(path) => path.display().to_string(),
        }
    }

    /// What its only view is called, where the lines name none: as the file, without its endings.
    pub(crate) fn view(&self) -> String {
        let Source::File(path) = self else {
            return "stream".into();
        };
        let name = path.file_name().map(|n| n.to_string_lossy());
        let name = name.as_deref().unwrap_or_default();
        name.split('.').next().unwrap_or("stream").to_owned()
    }
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
pub(crate) struct Job {
    pub(crate) source: Source,
    pub(crate) options: StreamOptions,
    /// The kernels as they were written.
    pub(crate) specs: Vec<KernelSpec>,
    /// The group of each given matrix; empty: each its own.
    pub(crate) groups: Vec<String>,
    pub(crate) scale: Vec<ScaleOption>,
    pub(crate) settings: StreamSettings,
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
///
/// The end of the input is no part of it: it is where the input ended this time, and more may come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The pass, from 1.
    #[serde(rename = "begun")]
    pub(crate) pass: u64,
    /// Lines of this pass that are done.
    pub(crate) lines: u64,
    /// Examples among them.
    pub(crate) examples: u64,
    /// Examples of the stream that were learned as new ones; those up to here are repeated in later passes.
    #[serde(default)]
    seen: u64,
    /// Lines, of all passes, that were wrong and passed over.
    pub(crate) bad_lines: u64,
    /// What the first lines told.
    parser: serde_json::Value,
    /// The line of the first example, by which the same stream is known again.
    #[serde(default)]
    first: Option<Mark>,
    /// What the learner was made from.
    #[serde(default)]
    asked: Option<Asked>,
}

/// A line, by its number and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    line: u64,
    hash: u64,
}

impl Mark {
    /// By FNV-1a: small, the same everywhere, and nobody is to be kept from forging it.
    fn new(line: u64, text: &[u8]) -> Self {
        let hash = text.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        Mark { line, hash }
    }
}

/// Kernels and scaling as the user wrote them: a state holds them fitted, and takes no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    kernels: Vec<String>,
    scale: Vec<String>,
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
    /// The source does not hold what a resumed run has learned.
    Other(Error),
}

/// Everything that a run begins with.
pub(crate) struct Start {
    parser: StreamParser,
    online: Option<Online>,
    position: Position,
    notes: Vec<String>,
}

impl Job {
    pub(crate) fn run(&self, start: Start, session: &Session, out: &mut dyn Write) -> Result<Done> {
        let Start {
            parser,
            online,
            position,
            notes,
        } = start;
        let before = online.is_some().then(|| position.clone());
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
            notes,
            ready: 0.0,
            deaf: false,
        };
        run.prepare()?;
        let stopped = run.passes()?;
        if let Some(before) = before.filter(|before| !stopped && run.position == *before) {
            run.notes.push(format!(
                "nothing came after line {} of pass {}: the state is as it was",
                before.lines, before.pass
            ));
        }
        if run.deaf {
            run.notes.push(format!(
                "nobody reads the answers any more: stopped after line {} of pass {}",
                run.position.lines, run.position.pass
            ));
        }
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
    pub(crate) fn start(&self) -> Result<Start> {
        let new = || Start {
            parser: StreamParser::new(self.options.clone()),
            online: None,
            position: Position {
                pass: 1,
                asked: Some(self.asked()),
                ..Position::default()
            },
            notes: Vec::new(),
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
            (Some(_), true) => self.go_on(file),
        }
    }

    /// As it was left.
    fn go_on(&self, file: &Path) -> Result<Start> {
        let wrong =
            |found: String, remedy: &str| Error::input(file.display().to_string(), found, remedy);
        let online = Online::load(file)?;
        let position = serde_json::from_value(online.carried().clone());
        let mut position: Position = position.map_err(|_| {
            wrong(
                "the state does not say which position of a stream it is at: this command did not write it".into(),
                "go on in Python with multikernel.load, or begin a new state",
            )
        })?;
        if *online.settings() != self.settings {
            return Err(wrong(
                "the state was made with other options (solver, norm, budget, classes)".into(),
                "give the same options as at first",
            )
            .into());
        }
        if position.seen == 0 {
            // an older state did not count them
            position.seen = online.n_seen();
        }
        let mut notes = vec![format!(
            "going on after line {} of pass {}",
            position.lines, position.pass
        )];
        if let Some(held) = &position.asked {
            let given = self.asked();
            for (what, held, given) in [
                ("kernels", &held.kernels, given.kernels),
                ("scaling", &held.scale, given.scale),
            ] {
                let (held, given) = (held.join(" "), given.join(" "));
                if given.is_empty() {
                    if !held.is_empty() {
                        notes.push(format!("the {what} of the state: {held}"));
                    }
                    continue;
                }
                let held = match (&held[..], what) {
                    ("", "kernels") => "the usual bank",
                    ("", _) => "none",
                    (held, _) => held,
                };
                if given != held {
                    return Err(wrong(
                        format!("the state was made with other {what} ({held}) than {given}"),
                        "give the same as at first or leave them out, or begin a new state",
                    )
                    .into());
                }
            }
        }
        Ok(Start {
            parser: StreamParser::resume(self.options.clone(), &position.parser)?,
            online: Some(online),
            position,
            notes,
        })
    }

    /// Kernels and scaling as the words say.
    fn asked(&self) -> Asked {
        fn all<T: Display>(things: &[T]) -> Vec<String> {
            things.iter().map(T::to_string).collect()
        }
        Asked {
            kernels: all(&self.specs),
            scale: all(&self.scale),
        }
    }

    /// Lines of the source, read by a thread of their own, the first being number `before` + 1; lines up to `skip`, which
    /// must be there, are passed over.
    fn lines(&self, skip: u64, before: u64, first: Option<Mark>) -> Result<Receiver<Line>> {
        let source: Box<dyn BufRead + Send> = match &self.source {
            Source::Stdin => Box::new(BufReader::new(io::stdin())),
            Source::File(path) => {
                let file = File::open(path).map_err(|e| Error::io(path, e))?;
                Box::new(BufReader::with_capacity(1 << 18, file))
            }
        };
        let name = self.options.name.clone();
        let another = move |place: String, found: String| {
            let remedy = format!(
                "give all lines again from the first one, or --resume position if the source begins behind line {skip}"
            );
            Line::Other(Error::input(place, found, remedy))
        };
        let (give, take) = sync_channel(4 * BATCH);
        std::thread::spawn(move || {
            let mut reader = LineReader::new(source, before);
            let mut last = before;
            loop {
                let mut line = Vec::new();
                let read = reader.read(&mut line);
                if let Ok(StreamLine::Line(n) | StreamLine::TooLong(n)) = read {
                    last = n;
                }
                let told = match read {
                    Ok(StreamLine::End) if last < skip => another(
                        name.clone(),
                        format!("it ends after line {last}, but the state stands at line {skip}"),
                    ),
                    Ok(StreamLine::End) => return,
                    Ok(StreamLine::Line(n) | StreamLine::TooLong(n)) if n <= skip => {
                        match first.filter(|first| first.line == n) {
                            Some(first) if Mark::new(n, &line) != first => another(
                                format!("{name} line {n}"),
                                "it is not the example that the state began with".into(),
                            ),
                            _ => continue,
                        }
                    }
                    Ok(StreamLine::Line(n)) => Line::Text(n, line),
                    Ok(StreamLine::TooLong(n)) => Line::TooLong(n),
                    Err(e) => Line::Failed(e),
                };
                let ended = matches!(told, Line::Failed(_) | Line::Other(_));
                // nobody takes lines any more: the run has ended
                if give.send(told).is_err() || ended {
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
        let by_data = spec.kind.width().is_some_and(Width::is_chosen_by_data);
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
