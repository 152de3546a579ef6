//! A search over kernels, norms and C, and the training at the point that it chooses.

use super::Training;
use crate::data::{Folds, Split, Targets, Task, Views};
use crate::error::{Error, Result};
use crate::kernel::{KernelSpec, choose};
use crate::measure::Metric;
use crate::norm::NormSpec;
use crate::observe::{Observer, is_stopped};
use crate::record::Tuning;
use crate::select::{Checkpoint, Fit, Found, Grid, Identity, Recipe, Rule, SHARED};
use crate::train::Mkl;
use std::path::PathBuf;

/// Kernels to choose from.
#[derive(Debug, Clone, Default)]
pub struct Bank {
    /// Its name; may be empty where there is no other.
    pub name: String,
    /// The kernels; empty: the default bank.
    pub kernels: Vec<KernelSpec>,
    /// The group of each given matrix; empty: each its own.
    pub groups: Vec<String>,
}

/// Where the trainings of a search are kept.
#[derive(Debug, Clone)]
pub struct KeptSearch {
    /// The file.
    pub file: PathBuf,
    /// Whether to go on from it, if it is there.
    pub resume: bool,
}

/// What is to be tried, and what is then to be trained.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    /// The training; its kernels, norm and C are those of the point that is chosen.
    pub training: Training<'a>,
    /// Choices of kernels.
    pub banks: Vec<Bank>,
    /// Norms, each with its matrix E if it is non-isotropic.
    pub norms: Vec<(NormSpec, Vec<f64>)>,
    /// C
    pub costs: Vec<f64>,
    /// What points are compared by; none: what is usual for the task.
    pub metric: Option<Metric>,
    /// Which point is taken.
    pub rule: Rule,
    /// Number of folds.
    pub folds: usize,
    /// The group of each sample, if samples of one group must not be parted.
    pub fold_groups: Option<Vec<u32>>,
    /// Outer folds that tell what the whole search reaches on samples that it never saw; none: not told.
    pub nested: Option<usize>,
    /// Where its trainings are kept; none: nowhere.
    pub kept: Option<KeptSearch>,
}

impl<'a> Search<'a> {
    /// Refuses what no samples could make right, and, where the task is known, what does not fit it: before samples are read.
    ///
    /// # Errors
    /// The first thing that is wrong, in a sentence.
    pub fn check(&self, task: Option<Task>) -> Result<()> {
        if self.training.holdout.is_some() && self.fold_groups.is_some() {
            return Err(Error::input(
                "holdout and fold-groups",
                "samples held out would be parted from others of their group",
                "give `validation` with samples of other groups, or `nested`",
            ));
        }
        self.grid(Metric::Accuracy).check()?;
        Folds::check_count(self.folds)?;
        if let Some(outer) = self.nested {
            Folds::check_count(outer).map_err(|e| e.within("nested"))?;
        }
        if let (Some(metric), Some(task)) = (self.metric, task) {
            metric.check(task)?;
        }
        self.training.check(task)?;
        self.norms.iter().try_for_each(|(norm, matrix)| {
            let point = Mkl {
                norm: norm.clone(),
                matrix: matrix.clone(),
                ..self.training.mkl.clone()
            };
            point.check(task)
        })
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.banks.len() * self.norms.len() * self.costs.len()
    }

    /// Tries all points. A search that is stopped gives the best of those it tried.
    ///
    /// # Errors
    /// Whatever is wrong with the data or the settings, in a sentence; [`Error::Stopped`] before there is a choice.
    pub fn find(
        &mut self,
        views: &Views,
        targets: &Targets,
        observer: &dyn Observer,
    ) -> Result<Found> {
        let recipe = self.recipe(views, targets)?;
        self.training.notes.push(SHARED.into());
        let mut found = self.tried(&recipe, observer)?;
        let (Some(outer), Some(tuning), false) = (
            self.nested,
            &mut found.tuning,
            found.stopped || is_stopped(observer),
        ) else {
            return Ok(found);
        };
        match recipe.nested(outer, observer) {
            Ok(interval) => tuning.nested = Some(interval),
            Err(Error::Stopped) => {
                let note = "stopped before the nested cross-validation was done";
                self.training.notes.push(note.into());
            }
            Err(error) => return Err(error),
        }
        Ok(found)
    }

    /// The training at the point chosen. Whoever stopped the search wants its model now, without baselines and stability.
    pub fn training(self, tuning: &Tuning, stopped: bool) -> Training<'a> {
        let Search {
            training,
            mut banks,
            mut norms,
            costs,
            ..
        } = self;
        let point = &tuning.points[tuning.chosen];
        let (norm, matrix) = norms.swap_remove(point.norm);
        let bank = banks.swap_remove(point.bank);
        Training {
            mkl: Mkl {
                norm,
                matrix,
                c: costs[point.cost],
                ..training.mkl
            },
            kernels: bank.kernels,
            groups: bank.groups,
            baselines: training.baselines && !stopped,
            stability: training.stability.filter(|_| !stopped),
            ..training
        }
    }

    fn grid(&self, metric: Metric) -> Grid {
        Grid {
            norms: self.norms.clone(),
            costs: self.costs.clone(),
            metric,
            rule: self.rule,
        }
    }

    /// What is tried on these samples: not on those that the training will hold out.
    fn recipe(&self, views: &Views, targets: &Targets) -> Result<Recipe> {
        let training = &self.training;
        let metric = self.metric.unwrap_or(Metric::usual(targets));
        metric.check(targets.task())?;
        training.check_weights(views.len())?;
        let bank = |bank: &Bank| {
            let (specs, _) = choose(&bank.kernels, &bank.groups, views)?;
            Ok((bank.name.clone(), specs))
        };
        let recipe = Recipe {
            views: views.clone(),
            targets: targets.clone(),
            banks: self.banks.iter().map(bank).collect::<Result<_>>()?,
            scale: training.scale.clone(),
            options: training.options(),
            mkl: training.mkl.clone(),
            grid: self.grid(metric),
            folds: self.folds,
            groups: self.fold_groups.clone(),
            seed: training.seed,
        };
        let recipe = match training.holdout {
            None => recipe,
            Some(share) => {
                // The same split as the training makes.
                let split = Split::holdout(share, targets, views.len(), training.seed)?;
                recipe.part(&split.training)?
            }
        };
        recipe.check()?;
        Ok(recipe)
    }

    /// The search itself, kept in a file where that was asked for.
    fn tried(&mut self, recipe: &Recipe, observer: &dyn Observer) -> Result<Found> {
        let Some(KeptSearch { file, resume }) = &self.kept else {
            return recipe.search(&[], &|_| (), observer);
        };
        let identity = Identity::of(recipe);
        let mut known = Vec::new();
        let checkpoint = match *resume && file.exists() {
            true => {
                let (checkpoint, fits) = Checkpoint::resume(file, &identity)?;
                self.training.notes.push(format!(
                    "{} trainings of an earlier search are in {} and were not done again",
                    fits.len(),
                    file.display()
                ));
                known = fits;
                checkpoint
            }
            false => Checkpoint::create(file, &identity)?,
        };
        let found = recipe.search(&known, &|fit: &Fit| checkpoint.add(fit), observer)?;
        checkpoint.finish()?;
        Ok(found)
    }
}
