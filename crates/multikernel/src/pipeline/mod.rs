//! From views and labels to a model with its record: kernels, training, measures, rivals, probabilities, stability.
//!
//! The program, the Python package and users of this crate call the same [`Training`]:
//!
//! ```
//! use multikernel::data::{Targets, Task, digits};
//! use multikernel::pipeline::Training;
//!
//! let data = digits()?;
//! let rows: Vec<usize> = (0..200).collect();
//! let (views, labels) = (data.views.select(&rows)?, data.labels.map(|l| l.select(&rows)));
//! let targets = Targets::new(labels.as_ref(), Task::Classify, views.len())?;
//!
//! let training = Training { holdout: Some(0.5), baselines: true, ..Training::default() };
//! let outcome = training.run(views, targets, &())?;
//! assert!(outcome.result.metrics["accuracy"] > 0.8);
//! assert_eq!(outcome.compared.len(), 3);
//! # Ok::<(), multikernel::Error>(())
//! ```

mod checkpointed_fit;
mod labelled;
mod outcome;
mod rivals;
mod search;

pub use checkpointed_fit::KeptFit;
pub use labelled::Labelled;
pub use outcome::{Compared, Outcome};
pub use search::{Bank, KeptSearch, Search};

use crate::data::{ScaleOption, Scaling, Split, Targets, Task, ViewData, Views};
use crate::error::{Error, Result, check_positive};
use crate::gram::{Indefinite, KernelSet, Options};
use crate::inspect::{ALIGNED_SAMPLES, KernelSample, quick_check};
use crate::kernel::{KernelSpec, choose};
use crate::measure::Calibration;
use crate::observe::{Observer, is_stopped};
use crate::problem::Status;
use crate::record::Stability;
use crate::select::SHARED;
use crate::select::stability::{HeldOut, Settings, stability};
use crate::train::{Fitted, Mkl, Watched};
use std::fmt;
use std::time::Instant;

/// What is to be done with samples; the default trains [`Mkl::default`] on the default kernels and measures nothing else.
#[derive(Clone)]
pub struct Training<'a> {
    /// What is trained. Its scaling is filled in, and so are its sample weights where samples are held out.
    pub mkl: Mkl,
    /// λ = 1/(C·N), instead of C.
    pub lambda: Option<f64>,
    /// The kernels; empty: the default bank.
    pub kernels: Vec<KernelSpec>,
    /// The group of each given matrix; empty: each its own.
    pub groups: Vec<String>,
    /// How features are scaled, by statistics of the training samples.
    pub scale: Vec<ScaleOption>,
    /// What to do with given matrices that are not positive semidefinite.
    pub indefinite: Indefinite,
    /// The seed of everything random.
    pub seed: u64,
    /// Bytes that may be taken, asked again whenever something large is about to be.
    pub memory: &'a (dyn Fn() -> u64 + Sync),
    /// Samples that are not trained on, in the form of those that are.
    pub validation: Option<Labelled>,
    /// Or the share of the samples that is not.
    pub holdout: Option<f64>,
    /// Whether the unweighted sum and the best single kernel are trained, too.
    pub baselines: bool,
    /// Whether the model is to have probabilities.
    pub probabilities: bool,
    /// Rounds of looking at how sure the weights are; none: not at all.
    pub stability: Option<usize>,
    /// Largest number of samples whose kernels are kept to tell how kernels resemble each other; none: not at all.
    pub aligned: Option<usize>,
    /// Where the training is kept while it runs; none: nowhere.
    pub kept: Option<KeptFit>,
    /// What was chosen before, in sentences; it comes first in the outcome's.
    pub notes: Vec<String>,
}

impl Default for Training<'_> {
    fn default() -> Self {
        Training {
            mkl: Mkl::default(),
            lambda: None,
            kernels: Vec::new(),
            groups: Vec::new(),
            scale: Vec::new(),
            indefinite: Indefinite::Error,
            seed: 0,
            memory: &|| u64::MAX,
            validation: None,
            holdout: None,
            baselines: false,
            probabilities: false,
            stability: None,
            aligned: Some(ALIGNED_SAMPLES),
            kept: None,
            notes: Vec::new(),
        }
    }
}

impl fmt::Debug for Training<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Training")
            .field("mkl", &self.mkl)
            .field("kernels", &self.kernels)
            .finish_non_exhaustive()
    }
}

/// What the steps after the kernels work on.
struct Stage<'s> {
    set: &'s KernelSet,
    targets: &'s Targets,
    /// The samples of the kernels, where they are at hand and are to be measured.
    samples: Option<&'s Labelled>,
    held_out: Option<&'s Labelled>,
    observer: &'s dyn Observer,
}

impl Training<'_> {
    /// Trains this, on the default kernels unless others are named.
    pub fn new(mkl: Mkl) -> Self {
        Training {
            mkl,
            ..Training::default()
        }
    }

    /// Refuses what no samples could make right, and, where the task is known, what does not fit it: before samples are read.
    ///
    /// # Errors
    /// The first thing that is wrong, in a sentence.
    pub fn check(&self, task: Option<Task>) -> Result<()> {
        self.mkl.check(task)?;
        if let Some(lambda) = self.lambda {
            check_positive("lambda", lambda)?;
        }
        if let Some(share) = self.holdout {
            Split::check_share(share)?;
        }
        if self.stability.is_some_and(|rounds| rounds < 2) {
            return Err(Error::input(
                "stability",
                "one round or none tells nothing",
                "give at least 2 rounds, better 100 or more",
            ));
        }
        match task {
            Some(task @ (Task::Regress | Task::OneClass)) if self.probabilities => {
                Err(Error::input(
                    "probabilities",
                    format!("the task {task} has no classes"),
                    "leave them out, or take the task classify",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Trains on samples, before scaling.
    ///
    /// # Errors
    /// Whatever is wrong with the data or the settings, in a sentence; [`Error::Stopped`] before there is a model.
    pub fn run(
        mut self,
        views: Views,
        targets: Targets,
        observer: &dyn Observer,
    ) -> Result<Outcome> {
        let begin = Instant::now();
        self.mkl.check_words()?;
        let n = views.len();
        let (specs, chosen) = choose(&self.kernels, &self.groups, &views)?;
        self.notes.extend(chosen);
        self.check_weights(n)?;
        let split = match self.holdout {
            Some(share) => Some(Split::holdout(share, &targets, n, self.seed)?),
            None => None,
        };
        let (samples, held_out) = self.parts(split.as_ref(), views, targets)?;
        let held_out = held_out.or(self.validation.take());
        if let (Some(split), Some(weights)) = (&split, &mut self.mkl.sample_weight) {
            *weights = split.training.iter().map(|&i| weights[i]).collect();
        }
        if let Some(lambda) = self.lambda {
            check_positive("lambda", lambda)?;
            self.mkl.c = 1.0 / (lambda * samples.views.len() as f64);
        }
        let load = begin.elapsed().as_secs_f64();

        let options = self.options();
        let scaling = Scaling::fit(&self.scale, &samples.views)?;
        let scaled = scaling.apply(samples.views.clone())?;
        let set = KernelSet::new(&specs, &scaled, &options, observer)?;
        drop(scaled);
        self.mkl.scaling = scaling;
        let kernels = begin.elapsed().as_secs_f64() - load;

        let mut outcome = self.train(&Stage {
            set: &set,
            targets: &samples.targets,
            samples: Some(&samples),
            held_out: held_out.as_ref(),
            observer,
        })?;
        if let Some(split) = &split {
            outcome.fitted.model.trained_on(&split.training, n)?;
        }
        outcome.result.seconds.load = load;
        outcome.result.seconds.kernels += kernels;
        outcome.result.seconds.total += load + kernels;
        Ok(outcome)
    }

    /// Trains on kernels that are there already, whose samples are not measured again: nothing is held out, and the settings that
    /// make kernels are not used.
    ///
    /// # Errors
    /// As [`Training::run`].
    pub fn run_on(
        mut self,
        set: &KernelSet,
        targets: &Targets,
        observer: &dyn Observer,
    ) -> Result<Outcome> {
        self.check_weights(set.gram().n_rows())?;
        self.train(&Stage {
            set,
            targets,
            samples: None,
            held_out: None,
            observer,
        })
    }

    /// Everything after the kernels.
    fn train(&mut self, stage: &Stage<'_>) -> Result<Outcome> {
        let begin = Instant::now();
        // Before the training, which may be long and in vain.
        let seen = match self.aligned {
            Some(_) => quick_check(stage.set),
            None => Vec::new(),
        };
        stage.observer.noticed(&seen);
        let checked = begin.elapsed().as_secs_f64();

        let fitted = self.fit(stage)?;
        let mut outcome = Outcome::new(fitted, std::mem::take(&mut self.notes), seen);
        outcome.result.seed = self.seed;
        outcome.result.seconds.kernels = checked;
        outcome.result.seconds.total += checked;
        outcome.held_out = stage.held_out.map_or(0, |held_out| held_out.views.len());
        if let Some(mu) = self.mkl.tikhonov {
            outcome.notes.push(format!(
                "Tikhonov form with μ = {mu}: primal and dual are CΣℓ + ½Σ‖w‖²/β + μ‖β‖² and its dual"
            ));
        }
        outcome.measure(stage.samples, stage.held_out, &self.mkl)?;
        if self.probabilities {
            self.calibrate(stage, &mut outcome)?;
        }
        if let Some(held_out) = stage.held_out {
            let judged = held_out.judged(&outcome.fitted.model, self.seed)?;
            outcome.record.evaluation = Some(judged);
        }
        if let (true, Some(samples)) = (self.baselines, stage.samples)
            && !is_stopped(stage.observer)
        {
            self.rivals(stage, samples, &mut outcome)?;
        }
        if let Some(rounds) = self.stability {
            let fitted = &outcome.fitted;
            let found = self.stability(rounds, stage, fitted, &mut outcome.notes)?;
            outcome.record.stability = found;
        }
        let stopped = outcome.fitted.status == Status::Stopped || is_stopped(stage.observer);
        if let (Some(most), false) = (self.aligned, stopped) {
            outcome.sample = KernelSample::of_trained(
                stage.set,
                stage.targets,
                &outcome.fitted,
                most,
                &self.options(),
                stage.observer,
                &mut outcome.notes,
            );
        }
        Ok(outcome)
    }

    /// The training itself.
    fn fit(&mut self, stage: &Stage<'_>) -> Result<Fitted> {
        let (set, targets, observer) = (stage.set, stage.targets, stage.observer);
        match (&self.kept, stage.held_out) {
            (Some(kept), _) => kept.fit(&self.mkl, set, targets, observer, &mut self.notes),
            (None, Some(held_out)) if self.mkl.solver.is_stochastic() => {
                let views = self.mkl.scaling.apply(held_out.views.clone())?;
                let watched = Watched {
                    gram: &set.cross(&views)?,
                    targets: &held_out.targets,
                };
                self.mkl.fit_watched(set, targets, &watched, observer)
            }
            _ => self.mkl.fit(set, targets, observer),
        }
    }

    /// Gives the model probabilities; a stop leaves it without.
    fn calibrate(&self, stage: &Stage<'_>, outcome: &mut Outcome) -> Result<()> {
        let notes = &mut outcome.notes;
        let found = self
            .mkl
            .calibrate(stage.set, stage.targets, self.seed, stage.observer);
        match found {
            Ok(calibration) => {
                outcome.fitted.model.set_calibration(Some(calibration))?;
                notes.push(match calibration {
                    Calibration::Sigmoid { .. } => {
                        "probabilities: a sigmoid fitted to scores of 5 folds (Platt)".into()
                    }
                    Calibration::Temperature { temperature } => format!(
                        "probabilities: the softmax of scores over {temperature:.3}, fitted to scores of 5 folds"
                    ),
                });
                if !notes.iter().any(|note| note == SHARED) {
                    notes.push(SHARED.into());
                }
                Ok(())
            }
            Err(Error::Stopped) => {
                notes.push("stopped before the model had probabilities: it has none".into());
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Looks at how sure the weights are; a stop leaves what there is.
    fn stability(
        &self,
        rounds: usize,
        stage: &Stage<'_>,
        fitted: &Fitted,
        notes: &mut Vec<String>,
    ) -> Result<Option<Stability>> {
        let settings = Settings {
            rounds,
            seed: self.seed,
            ..Settings::default()
        };
        let held_out = stage.held_out.map(|held_out| HeldOut {
            views: &held_out.views,
            targets: &held_out.targets,
        });
        let (set, targets, observer) = (stage.set, stage.targets, stage.observer);
        let found = stability(
            &self.mkl, set, targets, fitted, held_out, &settings, observer,
        )?;
        if is_stopped(observer) {
            notes.push(match &found {
                Some(found) => format!(
                    "stopped: the stability of the weights is told from {} of {rounds} rounds",
                    found.rounds
                ),
                None => "stopped before the stability of the weights was known".into(),
            });
        }
        Ok(found)
    }

    fn options(&self) -> Options {
        Options {
            memory: (self.memory)(),
            seed: self.seed,
            indefinite: self.indefinite,
        }
    }

    fn check_weights(&self, n: usize) -> Result<()> {
        match &self.mkl.sample_weight {
            Some(weights) if weights.len() != n => Err(Error::input(
                "sample-weight",
                format!("there are {} weights for {n} samples", weights.len()),
                "give one weight for each sample, in the same order",
            )),
            _ => Ok(()),
        }
    }

    /// Samples to train on and samples held out.
    fn parts(
        &self,
        split: Option<&Split>,
        views: Views,
        targets: Targets,
    ) -> Result<(Labelled, Option<Labelled>)> {
        let Some(Split { training, held_out }) = split else {
            return Ok((Labelled { views, targets }, None));
        };
        let (needed, available) = (copy_of(&views, training.len()), (self.memory)());
        if needed > available {
            return Err(Error::Memory {
                what: "a copy of the samples, split for the holdout,".into(),
                needed,
                available,
                remedy: "allow more memory, or train without a holdout".into(),
            });
        }
        let part = |rows: &[usize]| -> Result<Labelled> {
            Ok(Labelled {
                views: views.part(rows, training)?,
                targets: targets.select(rows),
            })
        };
        Ok((part(training)?, Some(part(held_out)?)))
    }
}

/// Bytes of a copy of all samples, where given matrices keep the columns of `training` samples.
fn copy_of(views: &Views, training: usize) -> u64 {
    let each: usize = views
        .iter()
        .map(|view| match &view.data {
            ViewData::Pairwise(_) => 4 * training,
            ViewData::Dense(x) => 4 * x.cols(),
            ViewData::Sparse(x) => 8 * x.entries() / x.rows().max(1) + 8,
            ViewData::Strings(x) => 24 + x.iter().map(Vec::len).sum::<usize>() / x.len().max(1),
        })
        .sum();
    views.len() as u64 * each as u64
}
