//! A training that is kept in a file while it runs, so that it can go on after any end: slices of time, each longer than the one
//! before, each starting from the result of the last.

use crate::data::Targets;
use crate::error::{Error, Result};
use crate::gram::KernelSet;
use crate::observe::{Observer, is_stopped};
use crate::problem::Status;
use crate::train::{Fitted, Mkl, Setting, Solver, WarmStart};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Seconds of the first slice. Each is as long as all before: what a kill loses is at most half, and a slice will come that is
/// long enough for a step, however large the problem.
const FIRST_SLICE: f64 = 60.0;

/// Where a training is kept.
#[derive(Debug, Clone)]
pub struct KeptFit {
    file: PathBuf,
    resume: bool,
    first_slice: f64,
}

impl KeptFit {
    /// Keeps the training in `file`; with `resume` it goes on from what is there. The solver `auto` becomes `exact`.
    ///
    /// # Errors
    /// If the solver always starts from nothing.
    pub fn new(file: &Path, resume: bool, mkl: &mut Mkl) -> Result<KeptFit> {
        if mkl.solver == Solver::Auto {
            // What auto may take instead starts from nothing.
            mkl.solver = Solver::Exact;
        }
        mkl.solver.check(Setting::Checkpoint)?;
        if mkl.tikhonov.is_some() {
            return Err(Error::input(
                "checkpoint",
                "the Tikhonov form always starts from nothing",
                "leave out one of the two",
            ));
        }
        Ok(KeptFit {
            file: file.to_path_buf(),
            resume,
            first_slice: FIRST_SLICE,
        })
    }

    /// Trains, and keeps every slice.
    pub(super) fn fit(
        &self,
        mkl: &Mkl,
        set: &KernelSet,
        targets: &Targets,
        observer: &dyn Observer,
        notes: &mut Vec<String>,
    ) -> Result<Fitted> {
        let mut mkl = mkl.clone();
        let names: Vec<String> = set.kernels().iter().map(|k| k.name.clone()).collect();
        if self.resume && self.file.exists() {
            let start = WarmStart::load(&self.file, set.gram().n_rows(), &names)?;
            notes.push(format!("the training goes on from {}", self.file.display()));
            mkl.start = Some(Arc::new(start));
        }
        let allowed = mkl.max_seconds.unwrap_or(f64::INFINITY);
        let mut spent = 0.0;
        let mut before: Option<Fitted> = None;
        loop {
            let slice = self.first_slice.max(spent).min(allowed - spent);
            mkl.max_seconds = Some(slice.max(0.0));
            let mut fitted = mkl.fit(set, targets, observer)?;
            spent += fitted.seconds;
            if let Some(start) = WarmStart::of(&fitted) {
                start.save(&self.file, &names)?;
                mkl.start = Some(Arc::new(start));
            }
            if let Some(before) = before {
                follow(&mut fitted, before);
            }
            let over = fitted.status != Status::TimeLimit || spent >= allowed;
            if over || is_stopped(observer) {
                if fitted.status != Status::Converged {
                    notes.push(format!(
                        "the training is in {}; the same command with `resume` goes on from there",
                        self.file.display()
                    ));
                }
                return Ok(fitted);
            }
            before = Some(fitted);
        }
    }
}

/// Puts the rounds of the slices before in front of those of the last.
fn follow(fitted: &mut Fitted, before: Fitted) {
    for (problem, old) in fitted.problems.iter_mut().zip(before.problems) {
        for look in &mut problem.history {
            look.seconds += before.seconds;
            look.steps += old.steps;
        }
        problem.steps += old.steps;
        problem.history.splice(0..0, old.history);
    }
    fitted.seconds += before.seconds;
    fitted.iterations += before.iterations;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Task, digits};
    use crate::gram::Options;
    use crate::kernel::KernelSpec;

    #[test]
    fn slices_that_are_too_short_grow_until_it_is_done() {
        let data = digits().expect("inside the library");
        let rows: Vec<usize> = (0..150).collect();
        let views = data.views.select(&rows).expect("rows");
        let labels = data.labels.map(|labels| labels.select(&rows));
        let targets = Targets::new(labels.as_ref(), Task::Classify, 150).expect("classes");
        let specs = KernelSpec::parse("rbf").expect("kernels");
        let set = KernelSet::new(&specs, &views, &Options::default(), &()).expect("kernels");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("kept.json");
        let mut mkl = Mkl {
            tolerance: 1e-6,
            ..Mkl::default()
        };
        let kept = KeptFit {
            first_slice: 0.0,
            ..KeptFit::new(&file, false, &mut mkl).expect("exact goes on")
        };
        let mut notes = Vec::new();
        let fitted = kept
            .fit(&mkl, &set, &targets, &(), &mut notes)
            .expect("trained");
        assert_eq!(fitted.status, Status::Converged);
        assert!(fitted.relative_gap() <= 1e-6 && notes.is_empty());
        assert_eq!(fitted.problems[0].history.len(), fitted.iterations);
        let times: Vec<f64> = fitted.problems[0]
            .history
            .iter()
            .map(|l| l.seconds)
            .collect();
        assert!(times.is_sorted() && times.len() > 1, "{times:?}");
        let steps: Vec<u64> = fitted.problems[0].history.iter().map(|l| l.steps).collect();
        assert!(steps.is_sorted(), "{steps:?}");

        // From its end there is nothing more to do.
        let again = KeptFit {
            resume: true,
            first_slice: FIRST_SLICE,
            ..kept
        };
        let resumed = again
            .fit(&mkl, &set, &targets, &(), &mut notes)
            .expect("trained");
        assert!(notes[0].contains("goes on from"), "{notes:?}");
        assert_eq!(resumed.status, Status::Converged);
        assert!(resumed.problems[0].steps < fitted.problems[0].steps.max(1));
    }
}
