//! From samples to a choice: a search over banks of kernels, norms and C, and an honest estimate of what it reaches.

use super::grid::{Fit, Grid, Search, Tried};
use crate::data::{Folds, ScaleOption, Scaling, Targets, Views};
use crate::error::{Error, Result};
use crate::gram::{KernelSet, Options};
use crate::kernel::KernelSpec;
use crate::measure::Truth;
use crate::observe::{Observer, Progress};
use crate::problem::Status;
use crate::record::{Interval, Tuning};
use crate::select::{Bootstrap, interval, resampled};
use crate::train::{Forward, Mkl};
use std::sync::atomic::AtomicU64;
use std::time::Instant;

/// Everything that a search needs.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The samples, before scaling.
    pub views: Views,
    /// What is to be learned.
    pub targets: Targets,
    /// Choices of kernels, by name.
    pub banks: Vec<(String, Vec<KernelSpec>)>,
    /// How views are scaled, with the statistics of the samples.
    pub scale: Vec<ScaleOption>,
    /// How kernels are built.
    pub options: Options,
    /// How points are trained; C and norm are those of the grid.
    pub mkl: Mkl,
    /// Norms and C.
    pub grid: Grid,
    /// Number of folds.
    pub folds: usize,
    /// The group of each sample, if samples of one group must not be parted.
    pub groups: Option<Vec<u32>>,
    /// Seed of the folds.
    pub seed: u64,
}

/// What a search found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The points that were tried on all folds, and the one taken. Of a search that was stopped: the points that were tried on so many
    /// of the first folds that most trainings count; none if there was no training at all.
    pub tuning: Option<Tuning>,
    /// Whether the observer stopped the search before its end.
    pub stopped: bool,
}

impl Recipe {
    /// What is wrong before anything is computed.
    pub fn check(&self) -> Result<()> {
        self.grid.metric.check(self.targets.task())?;
        self.grid.check()?;
        if self.banks.is_empty() {
            return Err(Error::input(
                "kernels",
                "there are none",
                "give at least one",
            ));
        }
        self.split().map(|_| ())
    }

    fn split(&self) -> Result<Folds> {
        let groups = self.groups.as_deref();
        Folds::new(
            self.folds,
            &self.targets,
            self.views.len(),
            groups,
            self.seed,
        )
    }

    /// Tries all banks, norms and C by cross-validation. Trainings that are `known` are not done again; `told` hears of every
    /// new one.
    pub fn search(
        &self,
        known: &[Fit],
        told: &(dyn Fn(&Fit) + Sync),
        observer: &dyn Observer,
    ) -> Result<Found> {
        self.check()?;
        let begin = Instant::now();
        let folds = self.split()?;
        let (points, count) = (self.grid.norms.len() * self.grid.costs.len(), folds.count());
        let search = Search {
            mkl: &self.mkl,
            grid: &self.grid,
            targets: &self.targets,
            folds: &folds,
            known,
            told,
            observer,
            done: AtomicU64::new(0),
            total: (self.banks.len() * points * count) as u64,
        };
        let scaling = Scaling::fit(&self.scale, &self.views)?;
        let views = scaling.apply(self.views.clone())?;
        let mut all = Tried::default();
        for (name, specs) in &self.banks {
            let set = KernelSet::new(specs, &views, &self.options, observer)?;
            let tried = search.bank(name, &set)?;
            all.fits.extend(tried.fits);
            if tried.stopped {
                all.stopped = true;
                break;
            }
        }
        let names: Vec<String> = self.banks.iter().map(|(name, _)| name.clone()).collect();
        let seconds = begin.elapsed().as_secs_f64();
        let tuning = |folds| self.grid.tuning(&names, &all.fits, folds, seconds);
        Ok(Found {
            // A search goes fold by fold: of one that was stopped, few points or none were tried on the last ones.
            tuning: match all.stopped {
                false => tuning(count),
                true => (1..=count)
                    .filter_map(tuning)
                    .max_by_key(|tuning| tuning.points.len() * tuning.folds),
            },
            stopped: all.stopped,
        })
    }

    /// What the whole procedure (scaling, widths of kernels, search and refit) reaches on samples that it never saw: it is done
    /// anew for the samples outside of each of `outer` folds. The mean over the folds, with an interval of the percentile
    /// bootstrap over the samples of every fold.
    pub fn nested(&self, outer: usize, observer: &dyn Observer) -> Result<Interval> {
        self.check()?;
        let groups = self.groups.as_deref();
        let n = self.views.len();
        let folds = Folds::new(outer, &self.targets, n, groups, self.seed.wrapping_add(1))
            .map_err(|e| e.within("nested"))?;
        let bootstrap = Bootstrap::default();
        let metric = self.grid.metric;
        let key = metric.name().trim_start_matches('-');
        let mut values = Vec::new();
        let mut sums = vec![0.0; bootstrap.rounds];
        for fold in 0..outer {
            let progress = Progress::Work {
                stage: "outer folds",
                done: fold as u64,
                total: outer as u64,
            };
            if observer.progress(&progress).is_break() {
                return Err(Error::Stopped);
            }
            let (training, out) = (folds.training(fold), folds.held_out(fold));
            let inner = self.part(&training)?;
            let found = inner.search(&[], &|_| (), &Forward(observer))?;
            let tuning = match (found.stopped, found.tuning) {
                (false, Some(tuning)) => tuning,
                _ => return Err(Error::Stopped),
            };
            let model = inner.refit(&tuning, &Forward(observer))?;
            let scores = model.scores(&self.views.part(&out, &training)?)?;
            let predictions = model.predictions(&scores);
            let targets = self.targets.select(&out);
            let Some(value) = metric.of(&predictions, &scores, &targets) else {
                return Err(Error::input(
                    "nested",
                    format!("{metric} has no value on outer fold {}", fold + 1),
                    "give fewer folds, or another metric",
                ));
            };
            values.push(value);
            let classes: Vec<Option<u32>>;
            let truth = match &targets {
                Targets::Classes { index, .. } => {
                    classes = index.iter().map(|&c| Some(c)).collect();
                    Truth::Classes(&classes)
                }
                Targets::Real(values) => Truth::Real(values),
                Targets::None => Truth::None,
            };
            let own = Bootstrap {
                seed: fold as u64,
                ..bootstrap
            };
            let rounds = resampled(&predictions, &scores, truth, &own);
            for (sum, value) in sums.iter_mut().zip(&rounds[key]) {
                *sum += metric.sign() * value / outer as f64;
            }
        }
        let mean = values.iter().sum::<f64>() / outer as f64;
        Ok(interval(mean, sums, bootstrap.level))
    }

    /// The same for some of the samples.
    pub fn part(&self, rows: &[usize]) -> Result<Recipe> {
        let pick = |values: &[f64]| rows.iter().map(|&i| values[i]).collect();
        Ok(Recipe {
            views: self.views.part(rows, rows)?,
            targets: self.targets.select(rows),
            mkl: Mkl {
                sample_weight: self.mkl.sample_weight.as_deref().map(pick),
                ..self.mkl.clone()
            },
            groups: self
                .groups
                .as_ref()
                .map(|groups| rows.iter().map(|&i| groups[i]).collect()),
            ..self.clone()
        })
    }

    /// Trains on all samples at the point that was chosen.
    fn refit(&self, tuning: &Tuning, observer: &dyn Observer) -> Result<crate::model::Model> {
        let point = &tuning.points[tuning.chosen];
        let scaling = Scaling::fit(&self.scale, &self.views)?;
        let views = scaling.apply(self.views.clone())?;
        let (norm, matrix) = self.grid.norms[point.norm].clone();
        let set = KernelSet::new(&self.banks[point.bank].1, &views, &self.options, observer)?;
        let mkl = Mkl {
            norm,
            matrix,
            c: self.grid.costs[point.cost],
            scaling,
            ..self.mkl.clone()
        };
        let fitted = mkl.fit(&set, &self.targets, observer)?;
        match fitted.status {
            Status::Stopped => Err(Error::Stopped),
            _ => Ok(fitted.model),
        }
    }
}
