//! What every command has at hand: threads, memory, progress, output; and the loading of data that they share.

use crate::args::{CommonArgs, DataArgs};
use crate::output::Output;
use crate::progress::Watcher;
use anyhow::{Context, Result};
use multikernel::data::{Dataset, Labels, Scaling, Targets, Task, Views, infer_task};
use multikernel::machine;
use multikernel_io::{Purpose, load};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// Bytes that are kept back for what nobody counts: the program itself, of which more is in memory the longer it runs, results, and
/// what the allocator loses. Of little memory a quarter is enough.
const RESERVE: u64 = 8 << 20;

/// A started command.
pub(crate) struct Session {
    pub(crate) watcher: Watcher,
    pub(crate) output: Output,
    pub(crate) seed: u64,
    /// Bound on the memory of the process.
    memory: u64,
    started: Instant,
    pool: rayon::ThreadPool,
}

/// Data, ready for kernels.
pub(crate) struct Loaded {
    pub(crate) views: Views,
    pub(crate) targets: Targets,
    pub(crate) task: Task,
    /// What was chosen or changed, in sentences.
    pub(crate) notes: Vec<String>,
}

/// Seconds of the parts of a command, and its peak memory: part of every result object.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cost {
    pub(crate) seconds: Seconds,
    pub(crate) peak_memory_bytes: Option<u64>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Seconds {
    pub(crate) load: f64,
    pub(crate) kernels: f64,
    pub(crate) total: f64,
}

impl CommonArgs {
    pub(crate) fn start(&self) -> Result<Session> {
        let threads = self.threads.map_or(0, usize::from);
        let memory = match self.memory {
            Some(size) => size.0,
            None => machine::resident_memory().unwrap_or(0) + machine::memory_to_use(),
        };
        Ok(Session {
            watcher: Watcher::new(self.quiet).context("listening to Ctrl-C")?,
            output: Output {
                quiet: self.quiet,
                stdout_is_taken: self.json.as_deref() == Some(Path::new("-")),
                json: self.json.clone(),
            },
            seed: self.seed,
            memory,
            started: Instant::now(),
            pool: rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .context("starting threads")?,
        })
    }
}

impl Session {
    /// Runs a job on this session's threads.
    pub(crate) fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        self.pool.install(job)
    }

    /// Bytes that may still be taken for data and kernels.
    pub(crate) fn memory_left(&self) -> u64 {
        let left = self
            .memory
            .saturating_sub(machine::resident_memory().unwrap_or(0));
        left - RESERVE.min(left / 4)
    }

    pub(crate) fn elapsed(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// What the command cost so far.
    pub(crate) fn cost(&self, load: f64, kernels: f64) -> Cost {
        Cost {
            seconds: Seconds {
                load,
                kernels,
                total: self.elapsed(),
            },
            peak_memory_bytes: machine::peak_memory(),
        }
    }

    /// Reads the files named, for training.
    pub(crate) fn read(&self, data: &DataArgs) -> Result<Dataset> {
        let options = data
            .files
            .load_options(Purpose::Training, self.memory_left())?;
        Ok(load(&options, &self.watcher)?)
    }

    /// Reads the files named, scales features and finds out what is to be learned.
    pub(crate) fn load(&self, data: &DataArgs) -> Result<Loaded> {
        let Dataset {
            mut views,
            labels,
            mut notes,
        } = self.read(data)?;
        let scaling = Scaling::fit(&data.scale_options()?, &views)?;
        if !scaling.is_none() {
            views = scaling.apply(views)?;
        }
        let task = task(data, labels.as_ref(), &mut notes)?;
        Ok(Loaded {
            targets: Targets::new(labels.as_ref(), task, views.len())?,
            task,
            views,
            notes,
        })
    }
}

/// The command that runs, as one line for a shell. The program goes by its name, wherever it stands.
pub(crate) fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("multikernel".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// What is to be learned: as asked, or as the labels suggest, which is said.
pub(crate) fn task(
    data: &DataArgs,
    labels: Option<&Labels>,
    notes: &mut Vec<String>,
) -> Result<Task> {
    let task = match data.task()? {
        Some(task) => task,
        None => {
            let (task, reason) = infer_task(labels);
            notes.push(reason);
            task
        }
    };
    if task == Task::Classify {
        notes.extend(labels.and_then(Labels::merged));
    }
    Ok(task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_needs_it() {
        assert_eq!(quoted("--norm=lp:4/3"), "--norm=lp:4/3");
        assert_eq!(quoted("rbf:width=mean|mean*2"), "'rbf:width=mean|mean*2'");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
