//! Progress of long work, and the way to stop it.

use crate::error::{Error, Result};
use std::ops::ControlFlow;

/// What an observer is told.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Work whose amount is known beforehand (reading, computing kernels).
    Work {
        /// What is being done, as a short phrase.
        stage: &'a str,
        /// How much is done.
        done: u64,
        /// How much there is.
        total: u64,
    },
    /// A round of a solver.
    Round {
        /// Its number, from 1.
        round: usize,
        /// Primal objective.
        primal: f64,
        /// Dual objective.
        dual: f64,
    },
    /// What a round is worth on samples that are not trained on.
    Validation {
        /// The round's number, from 1.
        round: usize,
        /// Share of right answers, or mean squared error where targets are numbers.
        value: f64,
    },
    /// Nothing new: work goes on, and asks whether it should.
    Alive,
}

/// Told of progress, possibly from several threads; may ask to stop.
///
/// Answering [`ControlFlow::Break`] stops the work at the next safe point.
pub trait Observer: Sync {
    /// Called now and then; the default goes on.
    fn progress(&self, progress: &Progress<'_>) -> ControlFlow<()> {
        let _ = progress;
        ControlFlow::Continue(())
    }

    /// What the user should look at before long work begins, in sentences; the default lets it pass.
    fn noticed(&self, warnings: &[String]) {
        let _ = warnings;
    }
}

/// Whether the observer asks to stop.
pub(crate) fn is_stopped(observer: &dyn Observer) -> bool {
    observer.progress(&Progress::Alive).is_break()
}

/// Tells of work that has nothing to give before it is complete.
///
/// # Errors
/// [`Error::Stopped`] if the observer asks to stop.
pub fn work(observer: &dyn Observer, stage: &str, done: usize, total: usize) -> Result<()> {
    let progress = Progress::Work {
        stage,
        done: done as u64,
        total: total as u64,
    };
    match observer.progress(&progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped),
    }
}

/// Watches nothing, never stops.
impl Observer for () {}
