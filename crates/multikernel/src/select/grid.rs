//! A grid over norms and C on the kernels of one bank.
//!
//! Every fold is one path: norm after norm, from the unweighted sum towards sparse weights, and for each of them C ascends. A
//! training starts from the coefficients for the last C (of the last norm, for the first C), and from the weights that the last norm
//! foretells, or the first fold, which all others follow. A result that is near enough to the optimum of the next C too needs no
//! training. Folds do not depend on each other, so results do not depend on the
//! number of threads.

use super::choose::{Rule, agreement, choose, mean_and_error};
use crate::data::{Folds, Targets};
use crate::error::{Error, Result};
use crate::gram::KernelSet;
use crate::loss::LossSpec;
use crate::measure::Metric;
use crate::norm::NormSpec;
use crate::observe::{Observer, Progress};
use crate::problem::{Certificate, Status};
use crate::record::{Point, Tuning};
use crate::train::{Forward, Mkl, Part, Parts, WarmStart};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Norms and C to be tried.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Norms, each with its matrix E if it is non-isotropic.
    pub norms: Vec<(NormSpec, Vec<f64>)>,
    /// C
    pub costs: Vec<f64>,
    /// What points are compared by.
    pub metric: Metric,
    /// Which point is taken.
    pub rule: Rule,
}

/// One training of a search: what a point of the grid is worth on a fold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The name of the bank of kernels.
    pub bank: String,
    /// The norm.
    pub norm: String,
    /// C
    #[serde(rename = "C")]
    pub cost: f64,
    /// The fold that was held out.
    pub fold: usize,
    /// The metric there.
    pub value: f64,
    /// Whether the gap was reached.
    pub converged: bool,
}

impl Fit {
    /// Whether it belongs to this point.
    fn is_of(&self, bank: &str, norm: &str, cost: f64) -> bool {
        self.bank == bank && self.norm == norm && self.cost == cost
    }
}

/// The trainings of a search.
#[derive(Debug, Clone, Default)]
pub struct Tried {
    /// Those that were done, now or before.
    pub fits: Vec<Fit>,
    /// Whether the observer stopped the search before its end.
    pub stopped: bool,
}

/// Weights found along a path, problem by problem: for every norm and C.
type Pilot = Vec<Vec<Option<Vec<Vec<f64>>>>>;

/// A training of a path.
struct Trained {
    c: f64,
    start: Option<WarmStart>,
    /// Of one problem whose dual objective does not depend on C.
    certificate: Option<Certificate>,
    /// The metric on the samples held out.
    value: f64,
    converged: bool,
}

impl Trained {
    /// Whether it is a result for a larger C too, as far as the gap asked for can tell: hardly any slack is left for C to multiply.
    fn serves(&self, cost: f64, tolerance: f64) -> bool {
        self.certificate
            .map(|certificate| certificate.for_larger_c(cost / self.c))
            .is_some_and(|there| there.relative_gap() <= tolerance)
    }
}

/// A search and what it needs.
pub(super) struct Search<'a> {
    pub(super) mkl: &'a Mkl,
    pub(super) grid: &'a Grid,
    pub(super) targets: &'a Targets,
    pub(super) folds: &'a Folds,
    /// Trainings that need not be done again.
    pub(super) known: &'a [Fit],
    /// Called for every new training.
    pub(super) told: &'a (dyn Fn(&Fit) + Sync),
    pub(super) observer: &'a dyn Observer,
    pub(super) done: AtomicU64,
    pub(super) total: u64,
}

impl Grid {
    /// Values that no grid can have.
    ///
    /// # Errors
    /// The first of them, in a sentence.
    pub fn check(&self) -> Result<()> {
        if self.norms.is_empty() || self.costs.is_empty() {
            return Err(Error::input(
                "grid",
                "there is no norm or no C",
                "give at least one of each",
            ));
        }
        if let Some(c) = self.costs.iter().find(|c| !(**c > 0.0 && c.is_finite())) {
            return Err(Error::input(
                "C",
                format!("it is {c}"),
                "give positive finite numbers",
            ));
        }
        for (k, c) in self.costs.iter().enumerate() {
            if self.costs[..k].contains(c) {
                return Err(Error::input(
                    "C",
                    format!("{c} is there twice"),
                    "give it once",
                ));
            }
        }
        for (k, (norm, _)) in self.norms.iter().enumerate() {
            if self.norms[..k].iter().any(|(other, _)| other == norm) {
                return Err(Error::input(
                    "norm",
                    format!("{norm} is there twice"),
                    "give it once",
                ));
            }
        }
        Ok(())
    }

    /// The norms in the order in which each helps the next: from the sum of the kernels, which has no weights to learn, to sparse
    /// weights; norms that are no block norms behind.
    fn along_norms(&self) -> impl Iterator<Item = &(NormSpec, Vec<f64>)> {
        let exponent = |norm: &NormSpec| {
            let of = |p: f64| {
                if p.is_finite() {
                    2.0 * p / (p + 1.0)
                } else {
                    2.0
                }
            };
            match norm {
                NormSpec::Lp(p) => of(p.value()),
                NormSpec::Block(r) => r.value(),
                _ => 0.0,
            }
        };
        let mut order: Vec<&(NormSpec, Vec<f64>)> = self.norms.iter().collect();
        order.sort_by(|a, b| exponent(&b.0).total_cmp(&exponent(&a.0)));
        order.into_iter()
    }

    /// What the trainings say, of points that were tried on all folds; none if there are none.
    pub(super) fn tuning(
        &self,
        banks: &[String],
        fits: &[Fit],
        folds: usize,
        seconds: f64,
    ) -> Option<Tuning> {
        let mut points = Vec::new();
        for (bank, name) in banks.iter().enumerate() {
            for (norm, (spec, _)) in self.norms.iter().enumerate() {
                let spec = spec.to_string();
                for (cost, c) in self.costs.iter().enumerate() {
                    let own = |f: usize| {
                        fits.iter()
                            .find(|fit| fit.fold == f && fit.is_of(name, &spec, *c))
                    };
                    let Some(found) = (0..folds).map(own).collect::<Option<Vec<&Fit>>>() else {
                        continue;
                    };
                    let values: Vec<f64> = found.iter().map(|fit| fit.value).collect();
                    let (mean, standard_error) = mean_and_error(&values);
                    points.push(Point {
                        bank,
                        norm,
                        cost,
                        folds: values,
                        mean,
                        standard_error,
                        converged: found.iter().all(|fit| fit.converged),
                    });
                }
            }
        }
        let chosen = choose(&points, &self.costs, self.rule)?;
        let best = &points[choose(&points, &self.costs, Rule::Best)?];
        let enough = best.mean - best.standard_error;
        Some(Tuning {
            metric: self.metric.to_string(),
            folds,
            rule: self.rule.to_string(),
            norms: self
                .norms
                .iter()
                .map(|(norm, _)| norm.to_string())
                .collect(),
            costs: self.costs.clone(),
            banks: banks.to_vec(),
            within_error: points.iter().filter(|p| p.mean >= enough).count(),
            agreement: agreement(&points, &self.costs, self.rule, chosen),
            points,
            chosen,
            nested: None,
            seconds,
        })
    }
}

impl Search<'_> {
    /// Tries all norms and C on the kernels of a bank.
    pub(super) fn bank(&self, name: &str, set: &KernelSet) -> Result<Tried> {
        let parts = Parts::new(set, self.folds)?;
        let (first, pilot) = self.path(name, set, &parts.part(0)?, 0, None)?;
        let mut found = vec![first];
        if !found[0].stopped {
            let others = parts.each(1..self.folds.count(), |fold, part| {
                Ok(self.path(name, set, part, fold, Some(&pilot))?.0)
            })?;
            found.extend(others);
        }
        Ok(Tried {
            stopped: found.iter().any(|path| path.stopped),
            fits: found.into_iter().flat_map(|path| path.fits).collect(),
        })
    }

    /// All norms and C on one fold, and the weights found; `pilot` has those of another fold.
    fn path(
        &self,
        bank: &str,
        set: &KernelSet,
        part: &Part,
        fold: usize,
        pilot: Option<&Pilot>,
    ) -> Result<(Tried, Pilot)> {
        let mut costs = self.grid.costs.clone();
        costs.sort_by(f64::total_cmp);
        let mut tried = Tried::default();
        // The last norm's results, one for each C.
        let mut last: Vec<Option<WarmStart>> = vec![None; costs.len()];
        let mut found: Pilot = Vec::new();
        for (row, (norm, matrix)) in self.grid.along_norms().enumerate() {
            found.push(vec![None; costs.len()]);
            let name = norm.to_string();
            let mut now: Vec<Option<WarmStart>> = vec![None; costs.len()];
            let mut before: Option<Trained> = None;
            for (k, &cost) in costs.iter().enumerate() {
                let known = self.known.iter();
                let mut known =
                    known.filter(|fit| fit.fold == fold && fit.is_of(bank, &name, cost));
                if let Some(fit) = known.next() {
                    tried.fits.push(fit.clone());
                    self.step();
                    continue;
                }
                let trained = match before.take() {
                    Some(before) if before.serves(cost, self.mkl.tolerance) => before,
                    _ => {
                        let mkl = Mkl {
                            norm: norm.clone(),
                            matrix: matrix.clone(),
                            c: cost,
                            start: foretold(&last, &now, k)
                                .map(|start| match pilot {
                                    Some(pilot) => led(start, norm, pilot, &found, row, k),
                                    None => start,
                                })
                                .map(Arc::new),
                            ..self.mkl.clone()
                        };
                        match self.train(&mkl, set, part, fold)? {
                            Some(trained) => trained,
                            None => {
                                tried.stopped = true;
                                return Ok((tried, found));
                            }
                        }
                    }
                };
                now[k] = trained.start.clone();
                found[row][k] = now[k].as_ref().map(|start| start.weights().to_vec());
                let fit = Fit {
                    bank: bank.to_owned(),
                    norm: name.clone(),
                    cost,
                    fold,
                    value: trained.value,
                    converged: trained.converged,
                };
                before = Some(trained);
                (self.told)(&fit);
                tried.fits.push(fit);
                if self.step() {
                    tried.stopped = true;
                    return Ok((tried, found));
                }
            }
            last = now;
        }
        Ok((tried, found))
    }

    /// One training and what it is worth on the samples held out; none if the observer stopped it.
    fn train(
        &self,
        mkl: &Mkl,
        set: &KernelSet,
        part: &Part,
        fold: usize,
    ) -> Result<Option<Trained>> {
        let fitted = part.fit(mkl, self.targets, &Forward(self.observer))?;
        if fitted.status == Status::Stopped {
            return Ok(None);
        }
        let scores = part.scores(set, &fitted.model);
        let predictions = fitted.model.predictions(&scores);
        let metric = self.grid.metric;
        let truth = self.targets.select(&part.out);
        let Some(value) = metric.of(&predictions, &scores, &truth) else {
            return Err(Error::input(
                "metric",
                format!("{metric} has no value on fold {}", fold + 1),
                "give fewer folds, or another metric",
            ));
        };
        let linear = match fitted.model.loss() {
            LossSpec::Scalar(loss) => loss.scales_with_c(),
            LossSpec::MulticlassHinge => true,
        };
        let alone = fitted.problems.len() == 1 && mkl.tikhonov.is_none();
        Ok(Some(Trained {
            c: mkl.c,
            start: WarmStart::of(&fitted),
            certificate: (linear && alone).then_some(fitted.certificate),
            value,
            converged: fitted.status == Status::Converged,
        }))
    }

    /// Counts one training; true: stop.
    fn step(&self) -> bool {
        let progress = Progress::Work {
            stage: "points of the grid",
            done: 1 + self.done.fetch_add(1, Ordering::Relaxed),
            total: self.total,
        };
        self.observer.progress(&progress).is_break()
    }
}

/// Where the k-th C of a norm starts, from what is known of the last norm and of this one so far.
fn foretold(last: &[Option<WarmStart>], now: &[Option<WarmStart>], k: usize) -> Option<WarmStart> {
    let before = |list: &[Option<WarmStart>]| k.checked_sub(1).and_then(|k| list[k].clone());
    match (&last[k], before(now), before(last)) {
        (Some(same), Some(before), Some(corner)) => Some(before.foretelling(same, &corner)),
        (_, Some(before), _) => Some(before),
        (same, None, _) => same.clone(),
    }
}

/// The start with the weights of the pilot at this point (the `row`-th norm, the k-th C), corrected by how this fold's own weights, in
/// `found`, differed from the pilot's at the point before.
fn led(
    start: WarmStart,
    norm: &NormSpec,
    pilot: &Pilot,
    found: &Pilot,
    row: usize,
    k: usize,
) -> WarmStart {
    let at = |of: &Pilot| of.get(row).and_then(|row| row[k].clone());
    let before = |of: &Pilot| match (k.checked_sub(1), row.checked_sub(1)) {
        (Some(k), _) => of.get(row).and_then(|row| row[k].clone()),
        (None, Some(row)) => of.get(row).and_then(|row| row[k].clone()),
        (None, None) => None,
    };
    let (Some(mut weights), own, its) = (at(pilot), before(found), before(pilot)) else {
        return start;
    };
    if let (Some(own), Some(its)) = (own, its) {
        let all = own.iter().flatten().zip(its.iter().flatten());
        for (weight, (own, its)) in weights.iter_mut().flatten().zip(all) {
            if *own > 0.0 && *its > 0.0 {
                *weight *= own / its;
            }
        }
    }
    start.with_weights(norm, weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_training_serves_a_larger_c_as_long_as_its_gap_is_small_enough_there() {
        let trained = |certificate| Trained {
            c: 2.0,
            start: None,
            certificate,
            value: 0.5,
            converged: true,
        };
        // P = 10 + (C'/2 − 1)·0.001 against D = 9.995.
        let some = trained(Some(Certificate {
            primal: 10.0,
            dual: 9.995,
            risk: 0.001,
            bias: 0.0,
        }));
        assert!(some.serves(2.0, 1e-3) && some.serves(11.9, 1e-3));
        assert!(!some.serves(12.1, 1e-3) && !some.serves(2.0, 1e-4));
        assert!(!trained(None).serves(2.0, 1.0));
    }
}
