//! Trainings on some of the samples of a set, and their scores for the others, without computing a kernel again.

use crate::data::{Folds, Targets, ViewData};
use crate::error::{Error, Result};
use crate::gram::{Gram, KernelSet};
use crate::measure::Scores;
use crate::model::Model;
use crate::observe::{Observer, Progress};
use crate::problem::Status;
use crate::train::{Fitted, Mkl};
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};

/// One part in so many of the memory for copies may be used for the kernels between them.
const ACROSS: u64 = 8;

/// Samples to train on and others to predict.
pub(crate) struct Part {
    pub(crate) rows: Vec<usize>,
    pub(crate) out: Vec<usize>,
    set: KernelSet,
    /// The kernels between the samples to train on (rows) and those to predict, if there is memory for a copy.
    across: Option<Gram>,
}

impl Part {
    /// Copies of kernels take at most half of `memory` bytes; the rest is for a solver.
    pub(crate) fn new(
        set: &KernelSet,
        rows: Vec<usize>,
        out: Vec<usize>,
        memory: u64,
    ) -> Result<Part> {
        let copies = memory / 2;
        let across = set.gram().copied_block(&rows, &out, copies / ACROSS);
        let (across, used) = match across {
            Some((gram, bytes)) => (Some(gram), bytes),
            None => (None, 0),
        };
        Ok(Part {
            set: set.part(&rows, copies - used, memory - used)?,
            across,
            rows,
            out,
        })
    }

    /// Trains on its rows; `mkl` and `targets` are those of all samples.
    pub(crate) fn fit(
        &self,
        mkl: &Mkl,
        targets: &Targets,
        observer: &dyn Observer,
    ) -> Result<Fitted> {
        self.prepared(mkl)
            .fit(&self.set, &targets.select(&self.rows), observer)
    }

    /// As [`Part::fit`], on some of the kernels.
    pub(crate) fn fit_kernels(
        &self,
        mkl: &Mkl,
        which: &[usize],
        targets: &Targets,
        observer: &dyn Observer,
    ) -> Result<Fitted> {
        let targets = targets.select(&self.rows);
        self.prepared(mkl)
            .fit_kernels(&self.set, which, &targets, observer)
    }

    fn prepared(&self, mkl: &Mkl) -> Mkl {
        let weights = mkl.sample_weight.as_ref();
        Mkl {
            sample_weight: weights.map(|w| self.rows.iter().map(|&i| w[i]).collect()),
            confirm: false,
            ..mkl.clone()
        }
    }

    /// What a model of this part says about the samples held out; `set` is the set of all samples.
    pub(crate) fn scores(&self, set: &KernelSet, model: &Model) -> Scores {
        let kept: Vec<usize> = model
            .kernels()
            .iter()
            .filter_map(|kernel| set.kernels().iter().position(|k| k.name == kernel.name))
            .collect();
        let values = match &self.across {
            Some(across) => {
                let gram = across.only_rows(model.columns()).select_kernels(&kept);
                model.rounded_values_across(&gram)
            }
            None => {
                let columns: Vec<usize> = model.columns().iter().map(|&j| self.rows[j]).collect();
                let gram = set.gram().block(&self.out, &columns);
                model.rounded_values_by(&gram.select_kernels(&kept))
            }
        };
        model.scores_of(values)
    }
}

/// The folds of a set. The part of a fold, with its copies of kernels, is made when its turn comes and forgotten after it.
pub(crate) struct Parts<'a> {
    set: &'a KernelSet,
    folds: &'a Folds,
    /// Whether the memory is enough for all of them at once. It decides, and not the number of threads, so that bits do not
    /// depend on the latter.
    at_once: bool,
    /// Bytes for each part.
    memory: u64,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(set: &'a KernelSet, folds: &'a Folds) -> Result<Parts<'a>> {
        let count = folds.count() as u64;
        let n = set.gram().n_rows() as u64;
        // Parts copy the views; given matrices are shared.
        let copies = count * set.views().iter().map(|v| bytes(&v.data)).sum::<u64>();
        let spare = set.gram().spare_memory();
        if copies > spare {
            return Err(Error::Memory {
                what: "the samples of all folds".into(),
                needed: copies,
                available: spare,
                remedy: "allow more memory, or give fewer folds".into(),
            });
        }
        let spare = spare - copies;
        // A solver works best with the combined matrix of its samples in memory, as much again beside it, and statistics of its own.
        let matrix = 4 * n * n;
        let at_once = spare / count >= 2 * matrix * (1 + set.gram().n_families() as u64);
        Ok(Parts {
            set,
            folds,
            at_once,
            memory: if at_once { spare / count } else { spare },
        })
    }

    /// The part that a fold is held out of.
    pub(crate) fn part(&self, fold: usize) -> Result<Part> {
        let (rows, out) = (self.folds.training(fold), self.folds.held_out(fold));
        Part::new(self.set, rows, out, self.memory)
    }

    /// Calls `work` for these folds, at once where memory allows; results are in the order of the folds.
    pub(crate) fn each<T: Send>(
        &self,
        folds: Range<usize>,
        work: impl Fn(usize, &Part) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let one = |fold: usize| work(fold, &self.part(fold)?);
        match self.at_once {
            false => folds.map(one).collect(),
            true => folds.into_par_iter().map(one).collect(),
        }
    }
}

fn bytes(data: &ViewData) -> u64 {
    match data {
        ViewData::Pairwise(_) => 0,
        ViewData::Dense(x) => 4 * (x.rows() * x.cols()) as u64,
        ViewData::Sparse(x) => 8 * (x.entries() + x.rows()) as u64,
        ViewData::Strings(x) => x.iter().map(|s| 24 + s.len() as u64).sum(),
    }
}

/// Scores of every sample by a model that was trained on the other folds.
pub(crate) fn held_out_scores(
    mkl: &Mkl,
    set: &KernelSet,
    targets: &Targets,
    folds: &Folds,
    observer: &dyn Observer,
) -> Result<Scores> {
    let parts = Parts::new(set, folds)?;
    let quiet = Forward(observer);
    let done = std::sync::atomic::AtomicU64::new(0);
    let found = parts.each(0..folds.count(), |_, part| {
        let fitted = part.fit(mkl, targets, &quiet)?;
        let progress = Progress::Work {
            stage: "training on folds",
            done: 1 + done.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            total: folds.count() as u64,
        };
        if fitted.status == Status::Stopped || observer.progress(&progress).is_break() {
            return Err(Error::Stopped);
        }
        Ok(part.scores(set, &fitted.model))
    })?;
    let names = found[0].names.clone();
    let width = names.len();
    let mut values = vec![0.0; width * folds.samples()];
    for (fold, scores) in found.iter().enumerate() {
        for (k, &i) in folds.held_out(fold).iter().enumerate() {
            values[i * width..(i + 1) * width].copy_from_slice(scores.row(k));
        }
    }
    Ok(Scores { names, values })
}

/// Passes the wish to stop on, and no news: many trainings at once have too many.
pub(crate) struct Forward<'a>(pub(crate) &'a dyn Observer);

impl Observer for Forward<'_> {
    fn progress(&self, _: &Progress<'_>) -> ControlFlow<()> {
        self.0.progress(&Progress::Alive)
    }
}
