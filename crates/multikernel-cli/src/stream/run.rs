//! A run over a stream: lines taken up, learned, answered, and kept.

use super::written::Written;
use super::{BATCH, Job, Line, Mark, Position, Resume};
use crate::session::Session;
use anyhow::{Context, Result};
use multikernel::kernel::choose;
use multikernel::online::{Online, Prediction};
use multikernel::{Error, Model};
use multikernel_io::{StreamEvent, StreamExample, StreamParser};
use std::io::{self, Write};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// How often a source that gives nothing is asked whether the user wants to stop.
const PATIENCE: Duration = Duration::from_millis(50);
/// Wrong lines that are named; the others are counted.
const NAMED: u64 = 20;

/// A run in progress.
pub(super) struct Run<'a, 'w> {
    pub(super) job: &'a Job,
    pub(super) session: &'a Session,
    pub(super) out: &'w mut dyn Write,
    pub(super) parser: StreamParser,
    pub(super) online: Option<Online>,
    pub(super) position: Position,
    /// Examples that wait for the first block to be complete, or for the batch to end, and the lines they came from.
    pub(super) block: Vec<(u64, StreamExample)>,
    /// Lines taken up so far, of this pass.
    pub(super) taken: u64,
    pub(super) since_checkpoint: u64,
    pub(super) notes: Vec<String>,
    pub(super) ready: f64,
    /// Nobody reads the answers any more.
    pub(super) deaf: bool,
}

impl Run<'_, '_> {
    /// All passes; true if the user stopped them. A state that was loaded stands within a pass, or where its input ended:
    /// what came behind since belongs to that pass, and the next one begins after it.
    pub(super) fn passes(&mut self) -> Result<bool> {
        loop {
            if self.pass()? {
                return Ok(true);
            }
            let Some(online) = &mut self.online else {
                return Ok(false);
            };
            if self.position.pass >= self.job.epochs {
                return Ok(false);
            }
            if online.n_seen() != self.position.seen {
                return Err(Error::input(
                    &self.job.options.name,
                    format!(
                        "the state has learned {} examples, but {} of this stream",
                        online.n_seen(),
                        self.position.seen
                    ),
                    "further passes need a state that learned from this stream only",
                )
                .into());
            }
            online.begin_pass();
            self.position.pass += 1;
            self.position.lines = 0;
            self.position.examples = 0;
        }
    }

    fn pass(&mut self) -> Result<bool> {
        let done = self.position.lines;
        let before = match self.job.resume {
            Some(Resume::Position) => done,
            _ => 0,
        };
        let lines = self.job.lines(done, before, self.position.first)?;
        self.taken = done;
        loop {
            if self.session.watcher.stopped() || self.deaf {
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
        Ok(self.deaf)
    }

    fn line(&mut self, line: Line) -> Result<()> {
        let (number, text) = match line {
            Line::Text(number, text) => (number, text),
            Line::Failed(e) => {
                return Err(e).with_context(|| self.job.options.name.clone());
            }
            Line::Other(error) => return Err(error.into()),
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
        if self.position.pass > 1 && begins && self.parser.is_header(&text) {
            self.taken = number;
            return Ok(());
        }
        match self.parser.line(&text, number) {
            Ok(None) => {
                self.taken = number;
                Ok(())
            }
            Ok(Some(StreamEvent::Example(example))) => {
                let first = &mut self.position.first;
                first.get_or_insert_with(|| Mark::new(number, &text));
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
            let (specs, chosen) = choose(&self.job.specs, &self.job.groups, &views)?;
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

    pub(super) fn prepare(&mut self) -> Result<()> {
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
            // behind the examples that earlier passes saw come new ones, if the file has grown
            let from = self.position.examples;
            let repeated = self.position.seen.saturating_sub(from);
            let count = match repeated {
                0 => self.block.len(),
                _ => self
                    .block
                    .len()
                    .min(usize::try_from(repeated).unwrap_or(usize::MAX)),
            };
            let block = &self.block[..count];
            let examples: Vec<&StreamExample> = block.iter().map(|(_, e)| e).collect();
            let views = self.parser.views(&examples)?;
            let labels: Vec<Option<&str>> = examples.iter().map(|e| e.label.as_deref()).collect();
            let learned = match repeated {
                0 => online.learn(&views, &labels),
                _ => online.learn_again(&views, &labels, from),
            };
            match learned {
                Ok(outcomes) => {
                    self.write(&outcomes)?;
                    self.position.examples += outcomes.len() as u64;
                    self.position.seen = self.position.seen.max(self.position.examples);
                    self.since_checkpoint += outcomes.len() as u64;
                    self.block.drain(..count);
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
        let flushed = self.out.flush();
        self.heard(flushed)
    }

    /// A closed pipe is no failure, but the end of the run: what was learned is kept. Other failures leave the state as it
    /// was written last, so that a resumed run answers again.
    fn heard(&mut self, written: io::Result<()>) -> Result<()> {
        match written {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.deaf = true;
                Ok(())
            }
            written => Ok(written?),
        }
    }

    fn teach(&mut self, number: u64, id: &str, label: &str) -> Result<()> {
        let Some(online) = &mut self.online else {
            return Ok(());
        };
        match online.teach(id, label) {
            Ok(outcome) => {
                let line = Written::new(online, &outcome, Some(id), number, self.job.scores, true);
                let line = line.to_bytes()?;
                self.taken = number;
                self.since_checkpoint += 1;
                let written = self.out.write_all(&line);
                self.heard(written)
            }
            Err(error) => {
                let place = format!("{} line {number}", self.job.options.name);
                self.bad(number, error.within(&place))
            }
        }
    }

    fn write(&mut self, outcomes: &[Prediction]) -> Result<()> {
        let Some(online) = &self.online else {
            return Ok(());
        };
        for (outcome, (number, example)) in outcomes.iter().zip(&self.block) {
            let id = example.id.as_deref();
            let line = Written::new(online, outcome, id, *number, self.job.scores, false);
            let written = self.out.write_all(&line.to_bytes()?);
            if written.is_err() {
                return self.heard(written);
            }
        }
        Ok(())
    }

    fn checkpoint_if_due(&mut self) -> Result<()> {
        match &self.job.checkpoint {
            Some((_, every)) if self.since_checkpoint >= *every => self.checkpoint(),
            _ => Ok(()),
        }
    }

    pub(super) fn checkpoint(&mut self) -> Result<()> {
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
