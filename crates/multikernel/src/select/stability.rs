//! How sure kernel weights are: what becomes of them with other samples, with shuffled targets, and without a kernel.
//!
//! * Bootstrap: training again on as many samples drawn with replacement, of every class as many as there are. A sample drawn
//!   several times counts so often (its weight is the count), so nothing is copied and all rounds share the Gram; each starts
//!   from the model. The interval of a weight's share holds the middle 95 % of the rounds.
//! * Shuffled targets: what weights kernels get when there is nothing to learn.
//! * Leaving a kernel out: what the metric loses when the others are trained without it.
//!
//! Of problems of two classes (ovr, ovo) a kernel's share is the mean over the problems.

use crate::data::{Folds, Targets, Views};
use crate::error::{Error, Result};
use crate::gram::KernelSet;
use crate::measure::Metric;
use crate::model::Model;
use crate::observe::{Observer, Progress};
use crate::problem::Status;
use crate::random::Random;
use crate::record::{Shuffled, Stability, Without};
use crate::select::interval;
use crate::train::{ClassWeight, Fitted, Forward, Mkl, Part, Parts, Solver, WarmStart};
use rayon::prelude::*;
use std::sync::Arc;

/// Trainings at once: a fixed number, so that their memory, and with it their bits, do not depend on the threads.
const AT_ONCE: usize = 4;
/// At most so many kernels are left out, those with the largest weights.
const MOST_LEFT_OUT: usize = 50;
/// Folds of the cross-validation where no samples were held out.
const FOLDS: usize = 5;
/// Of samples without copies, such a share is drawn: as many different ones as a bootstrap has.
const SUBSAMPLE: f64 = 0.632;

/// How stability is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Trainings on resampled samples, and as many with shuffled targets.
    pub rounds: usize,
    /// Share of the rounds that intervals hold.
    pub level: f64,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether targets are shuffled too.
    pub shuffle: bool,
    /// Whether kernels are left out too.
    pub leave_out: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            rounds: 200,
            level: 0.95,
            seed: 0,
            shuffle: true,
            leave_out: true,
        }
    }
}

/// Samples that were held out, to see what a kernel is worth.
#[derive(Debug, Clone, Copy)]
pub struct HeldOut<'a> {
    /// The samples, before scaling.
    pub views: &'a Views,
    /// What is true of them; classes numbered as in training.
    pub targets: &'a Targets,
}

/// What is trained again and again.
struct Trials<'a> {
    mkl: &'a Mkl,
    set: &'a KernelSet,
    targets: &'a Targets,
    fitted: &'a Fitted,
    settings: &'a Settings,
    observer: &'a dyn Observer,
    /// Bytes for each of the trainings at once.
    memory: u64,
}

/// Looks at the weights of `fitted`, which `mkl` found for these kernels and targets. None if it was stopped before there was
/// anything to tell.
///
/// The effect of leaving kernels out is measured on the samples held out, or without them by cross-validation; one-class has
/// none, and no targets to shuffle.
pub fn stability(
    mkl: &Mkl,
    set: &KernelSet,
    targets: &Targets,
    fitted: &Fitted,
    held_out: Option<HeldOut<'_>>,
    settings: &Settings,
    observer: &dyn Observer,
) -> Result<Option<Stability>> {
    if settings.rounds < 2 {
        return Err(Error::input(
            "stability",
            format!("{} rounds tell nothing", settings.rounds),
            "give at least 2, better 100 or more",
        ));
    }
    let trials = Trials {
        mkl,
        set,
        targets,
        fitted,
        settings,
        observer,
        memory: set.gram().spare_memory() / AT_ONCE as u64,
    };
    let copies = mkl.solver != Solver::Omcl;
    let rounds = trials.resampled(copies)?;
    if rounds.len() < 2 {
        return Ok(None);
    }
    let real = shares(fitted);
    let of_kernel = |m: usize| rounds.iter().map(move |shares: &Vec<f64>| shares[m]);
    let share = |count: usize| count as f64 / rounds.len() as f64;
    let complete = rounds.len() == settings.rounds;
    let possible = complete && !matches!(targets, Targets::None);
    let shuffled = match possible && settings.shuffle {
        true => trials.shuffled(&real)?,
        false => None,
    };
    let stopped = settings.shuffle && shuffled.is_none();
    let without = match possible && settings.leave_out && !stopped {
        true => trials.without(&real, held_out)?,
        false => None,
    };
    Ok(Some(Stability {
        method: match copies {
            true => "bootstrap".into(),
            false => format!("subsamples of {:.0} %", 100.0 * SUBSAMPLE),
        },
        rounds: rounds.len(),
        level: settings.level,
        shares: real
            .iter()
            .enumerate()
            .map(|(m, &value)| interval(value, of_kernel(m).collect(), settings.level))
            .collect(),
        chosen: (0..real.len())
            .map(|m| share(of_kernel(m).filter(|w| *w > 0.0).count()))
            .collect(),
        shuffled,
        without,
    }))
}

/// Each kernel's share of the weights, the mean over the problems.
fn shares(fitted: &Fitted) -> Vec<f64> {
    let problems = fitted.model.n_problems();
    let mut shares = vec![0.0; fitted.kernels.len()];
    for k in 0..problems {
        let weight = |m: usize| fitted.kernels[m].weights.get(k).copied().unwrap_or(0.0);
        let total: f64 = (0..shares.len()).map(weight).sum();
        if total > 0.0 {
            for (m, share) in shares.iter_mut().enumerate() {
                *share += weight(m) / total / problems as f64;
            }
        }
    }
    shares
}

impl Trials<'_> {
    fn n(&self) -> usize {
        self.set.gram().n_rows()
    }

    /// Calls `work` for 0..count, some at once, until it is told to stop; what was done before that, in order.
    fn rounds<T: Send>(
        &self,
        stage: &str,
        count: usize,
        work: impl Fn(usize) -> Result<Option<T>> + Sync,
    ) -> Result<Vec<T>> {
        let all: Vec<usize> = (0..count).collect();
        let mut found = Vec::with_capacity(count);
        for some in all.chunks(AT_ONCE) {
            let progress = Progress::Work {
                stage,
                done: found.len() as u64,
                total: count as u64,
            };
            if self.observer.progress(&progress).is_break() {
                break;
            }
            let results: Result<Vec<Option<T>>> = some.par_iter().map(|&k| work(k)).collect();
            let results = results?;
            let stopped = results.iter().any(Option::is_none);
            found.extend(results.into_iter().flatten());
            if stopped {
                break;
            }
        }
        let progress = Progress::Work {
            stage,
            done: count as u64,
            total: count as u64,
        };
        let _ = self.observer.progress(&progress);
        Ok(found)
    }

    /// Shares of the kernels on resampled samples, round by round.
    fn resampled(&self, copies: bool) -> Result<Vec<Vec<f64>>> {
        let n = self.n();
        let strata = self.strata();
        let weights = self.base_weights();
        let start = WarmStart::of(self.fitted);
        let kernels: Vec<usize> = (0..self.set.kernels().len()).collect();
        self.rounds("resampling", self.settings.rounds, |round| {
            let mut random = Random::stream(self.settings.seed, 2 * round as u64);
            let mut counts = vec![0u32; n];
            for stratum in &strata {
                if copies {
                    for _ in 0..stratum.len() {
                        counts[stratum[random.below(stratum.len())]] += 1;
                    }
                } else {
                    let some = (SUBSAMPLE * stratum.len() as f64).ceil() as usize;
                    for k in random.sample(stratum.len(), some) {
                        counts[stratum[k]] = 1;
                    }
                }
            }
            let rows: Vec<usize> = (0..n).filter(|&i| counts[i] > 0).collect();
            let mkl = match copies {
                true => Mkl {
                    sample_weight: Some(
                        weights
                            .iter()
                            .zip(&counts)
                            .map(|(w, c)| w * f64::from(*c))
                            .collect(),
                    ),
                    class_weight: ClassWeight::None,
                    start: start
                        .as_ref()
                        .map(|start| Arc::new(start.select(&rows, &kernels, kernels.len()))),
                    ..self.mkl.clone()
                },
                false => self.mkl.clone(),
            };
            let part = Part::new(self.set, rows, Vec::new(), self.memory)?;
            let fitted = part.fit(&mkl, self.targets, &Forward(self.observer))?;
            Ok((fitted.status != Status::Stopped).then(|| shares(&fitted)))
        })
    }

    /// Samples of each class, or all of them.
    fn strata(&self) -> Vec<Vec<usize>> {
        match self.targets {
            Targets::Classes { names, index } => (0..names.len())
                .map(|c| {
                    (0..index.len())
                        .filter(|&i| index[i] as usize == c)
                        .collect()
                })
                .collect(),
            Targets::Real(_) | Targets::None => vec![(0..self.n()).collect()],
        }
    }

    /// Weights of samples and classes as weights of the samples.
    fn base_weights(&self) -> Vec<f64> {
        let of_class = |c: u32| -> f64 {
            let Targets::Classes { names, index } = self.targets else {
                return 1.0;
            };
            match &self.mkl.class_weight {
                ClassWeight::None => 1.0,
                ClassWeight::Balanced => {
                    let own = index.iter().filter(|k| **k == c).count();
                    index.len() as f64 / (names.len() * own.max(1)) as f64
                }
                ClassWeight::Given(given) => given.get(&names[c as usize]).copied().unwrap_or(1.0),
            }
        };
        let classes: Vec<f64> = match self.targets {
            Targets::Classes { names, .. } => (0..names.len() as u32).map(of_class).collect(),
            Targets::Real(_) | Targets::None => Vec::new(),
        };
        (0..self.n())
            .map(|i| {
                let own = self.mkl.sample_weight.as_ref().map_or(1.0, |w| w[i]);
                match self.targets {
                    Targets::Classes { index, .. } => own * classes[index[i] as usize],
                    Targets::Real(_) | Targets::None => own,
                }
            })
            .collect()
    }

    /// Weights under shuffled targets; none if it was stopped.
    fn shuffled(&self, real: &[f64]) -> Result<Option<Shuffled>> {
        let all: Vec<usize> = (0..self.n()).collect();
        let mkl = Mkl {
            start: None,
            ..self.mkl.clone()
        };
        let found = self.rounds("shuffling targets", self.settings.rounds, |round| {
            let mut order = all.clone();
            Random::stream(self.settings.seed, 2 * round as u64 + 1).shuffle(&mut order);
            let targets = self.targets.select(&order);
            let part = Part::new(self.set, all.clone(), Vec::new(), self.memory)?;
            let fitted = part.fit(&mkl, &targets, &Forward(self.observer))?;
            Ok((fitted.status != Status::Stopped).then(|| shares(&fitted)))
        })?;
        if found.len() < self.settings.rounds {
            return Ok(None);
        }
        let rounds = found.len() as f64;
        let of_kernel = |m: usize| found.iter().map(move |shares: &Vec<f64>| shares[m]);
        Ok(Some(Shuffled {
            rounds: found.len(),
            mean: (0..real.len())
                .map(|m| of_kernel(m).sum::<f64>() / rounds)
                .collect(),
            p_value: real
                .iter()
                .enumerate()
                .map(|(m, share)| {
                    let reached = of_kernel(m).filter(|s| s >= share).count();
                    (1.0 + reached as f64) / (1.0 + rounds)
                })
                .collect(),
        }))
    }

    /// The effect of leaving each kernel out; none if it was stopped or there is one kernel only.
    fn without(&self, real: &[f64], held_out: Option<HeldOut<'_>>) -> Result<Option<Without>> {
        let m = self.set.kernels().len();
        if m < 2 {
            return Ok(None);
        }
        let mut order: Vec<usize> = (0..m).filter(|&k| real[k] > 0.0).collect();
        order.sort_by(|&a, &b| real[b].total_cmp(&real[a]).then(a.cmp(&b)));
        order.truncate(MOST_LEFT_OUT);
        order.sort_unstable();
        let metric = Metric::usual(self.targets);
        let found = match held_out {
            Some(held_out) => self.without_on(held_out, metric, &order)?,
            None => self.without_by_folds(metric, &order)?,
        };
        let Some((all, values)) = found else {
            return Ok(None);
        };
        // The optimum does not change when a kernel leaves that has no weight.
        let mut change: Vec<Option<f64>> = real
            .iter()
            .map(|share| (*share == 0.0).then_some(0.0))
            .collect();
        for (&k, value) in order.iter().zip(values) {
            change[k] = Some(value - all);
        }
        Ok(Some(Without {
            metric: metric.to_string(),
            all,
            change,
        }))
    }

    /// The metric on samples held out: with all kernels, and without each of those named.
    fn without_on(
        &self,
        held_out: HeldOut<'_>,
        metric: Metric,
        kernels: &[usize],
    ) -> Result<Option<(f64, Vec<f64>)>> {
        let worth = |model: &Model| -> Result<Option<f64>> {
            let scores = model.scores(held_out.views)?;
            Ok(metric.of(&model.predictions(&scores), &scores, held_out.targets))
        };
        let Some(all) = worth(&self.fitted.model)? else {
            return Ok(None);
        };
        let start = WarmStart::of(self.fitted);
        let rows: Vec<usize> = (0..self.n()).collect();
        let mut values = Vec::with_capacity(kernels.len());
        // One after another: these models predict from views, so they are trained on the set itself.
        for (done, &k) in kernels.iter().enumerate() {
            let progress = Progress::Work {
                stage: "leaving kernels out",
                done: done as u64,
                total: kernels.len() as u64,
            };
            if self.observer.progress(&progress).is_break() {
                return Ok(None);
            }
            let which = self.others(k);
            let mkl = self.reduced(start.as_ref(), &rows, &which);
            let fitted =
                mkl.fit_kernels(self.set, &which, self.targets, &Forward(self.observer))?;
            match worth(&fitted.model)? {
                Some(value) if fitted.status != Status::Stopped => values.push(value),
                _ => return Ok(None),
            }
        }
        Ok(Some((all, values)))
    }

    /// The same as a mean over folds.
    fn without_by_folds(
        &self,
        metric: Metric,
        kernels: &[usize],
    ) -> Result<Option<(f64, Vec<f64>)>> {
        // Classes too small for folds have no such effect to tell.
        let Ok(folds) = Folds::new(FOLDS, self.targets, self.n(), None, self.settings.seed) else {
            return Ok(None);
        };
        let parts = Parts::new(self.set, &folds)?;
        let every: Vec<usize> = (0..self.set.kernels().len()).collect();
        let whole = WarmStart::of(self.fitted);
        let quiet = Forward(self.observer);
        let done = std::sync::atomic::AtomicU64::new(0);
        let total = (FOLDS * (kernels.len() + 1)) as u64;
        let found = parts.each(0..folds.count(), |_, part| {
            let truth = self.targets.select(&part.out);
            let worth = |fitted: &Fitted| {
                let progress = Progress::Work {
                    stage: "leaving kernels out",
                    done: 1 + done.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
                    total,
                };
                let stopped = self.observer.progress(&progress).is_break();
                if stopped || fitted.status == Status::Stopped {
                    return None;
                }
                let scores = part.scores(self.set, &fitted.model);
                metric.of(&fitted.model.predictions(&scores), &scores, &truth)
            };
            let mkl = Mkl {
                start: whole
                    .as_ref()
                    .map(|start| Arc::new(start.select(&part.rows, &every, every.len()))),
                ..self.mkl.clone()
            };
            let fitted = part.fit(&mkl, self.targets, &quiet)?;
            let Some(all) = worth(&fitted) else {
                return Ok(None);
            };
            let start = WarmStart::of(&fitted);
            let own: Vec<usize> = (0..part.rows.len()).collect();
            let mut values = Vec::with_capacity(kernels.len());
            for &k in kernels {
                let which = self.others(k);
                let mkl = self.reduced(start.as_ref(), &own, &which);
                let fitted = part.fit_kernels(&mkl, &which, self.targets, &quiet)?;
                match worth(&fitted) {
                    Some(value) => values.push(value),
                    None => return Ok(None),
                }
            }
            Ok(Some((all, values)))
        })?;
        let Some(found) = found.into_iter().collect::<Option<Vec<(f64, Vec<f64>)>>>() else {
            return Ok(None);
        };
        let count = found.len() as f64;
        let all = found.iter().map(|fold| fold.0).sum::<f64>() / count;
        let of_kernel = |k: usize| found.iter().map(|fold| fold.1[k]).sum::<f64>() / count;
        Ok(Some((all, (0..kernels.len()).map(of_kernel).collect())))
    }

    fn others(&self, kernel: usize) -> Vec<usize> {
        let all = 0..self.set.kernels().len();
        all.filter(|&k| k != kernel).collect()
    }

    /// The same problem on some kernels, warm started.
    fn reduced(&self, start: Option<&WarmStart>, rows: &[usize], which: &[usize]) -> Mkl {
        let m = self.set.kernels().len();
        let mut matrix = self.mkl.matrix.clone();
        if matrix.len() == m * m {
            let cells = which
                .iter()
                .flat_map(|&a| which.iter().map(move |&b| a * m + b));
            matrix = cells.map(|at| self.mkl.matrix[at]).collect();
        }
        Mkl {
            matrix,
            start: start.map(|start| Arc::new(start.select(rows, which, m))),
            ..self.mkl.clone()
        }
    }
}
