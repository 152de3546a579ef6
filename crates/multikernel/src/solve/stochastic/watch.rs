//! Deadline and observer of a run over samples.

use crate::observe::{Observer, Progress};
use crate::problem::{Limits, Status};
use std::time::{Duration, Instant};

/// The time between two reports of unfinished epochs, at least.
const QUIET: Duration = Duration::from_millis(100);

/// Says whether a run has to end early; asked at every block of samples, it tells the observer now and then.
pub(super) struct Watch<'a> {
    observer: &'a dyn Observer,
    deadline: Option<Instant>,
    begin: Instant,
    told: Instant,
}

impl<'a> Watch<'a> {
    pub(super) fn new(deadline: Option<Instant>, observer: &'a dyn Observer) -> Self {
        let begin = Instant::now();
        Watch {
            observer,
            deadline,
            begin,
            told: begin,
        }
    }

    pub(super) fn of(limits: &Limits, observer: &'a dyn Observer) -> Self {
        Self::new(limits.deadline, observer)
    }

    pub(super) fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// Why the run ends before its samples do, if it does.
    pub(super) fn interrupted(&mut self, stage: &str, done: usize, total: usize) -> Option<Status> {
        if self.deadline.is_some_and(|d| Instant::now() >= d) {
            return Some(Status::TimeLimit);
        }
        if self.told.elapsed() < QUIET {
            return None;
        }
        self.told = Instant::now();
        let (done, total) = (done as u64, total as u64);
        self.tell(&Progress::Work { stage, done, total })
    }

    /// Tells the observer; a status if it asks to stop.
    pub(super) fn tell(&self, progress: &Progress<'_>) -> Option<Status> {
        let told = self.observer.progress(progress);
        told.is_break().then_some(Status::Stopped)
    }
}
