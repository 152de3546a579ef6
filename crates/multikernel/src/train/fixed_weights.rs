//! Solvers that choose the weights first and train then: average, alignment with the targets, the best kernel by
//! cross-validation, and the product of all kernels.

use super::fitting::Fitting;
use super::solvers::Weights;
use super::{Fitted, Mkl, Solver};
use crate::data::{Folds, Targets};
use crate::error::{Error, Result};
use crate::gram::{Indefinite, KernelSet, Options};
use crate::kernel::KernelSpec;
use crate::measure::Metric;
use crate::observe;
use crate::problem::Certificate;
use crate::train::Parts;
use crate::train::baseline::{alignment, unweighted};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Folds of cross-validations inside of a training.
const FOLDS: usize = 5;
/// Off the diagonal a product is nearly nothing where its mean similarity is below this.
const NEARLY_DIAGONAL: f64 = 1e-3;

/// Chooses the weights, one for each kernel that is trained on.
pub(super) type FirstStage = fn(&Mkl, &mut Fitting<'_>) -> Result<Vec<f64>>;

pub(super) fn average(_: &Mkl, fit: &mut Fitting<'_>) -> Result<Vec<f64>> {
    let m = fit.gram.n_kernels();
    Ok(vec![1.0 / m as f64; m])
}

pub(super) fn align(_: &Mkl, fit: &mut Fitting<'_>) -> Result<Vec<f64>> {
    alignment::align(fit.gram, fit.targets)
}

pub(super) fn alignf(_: &Mkl, fit: &mut Fitting<'_>) -> Result<Vec<f64>> {
    alignment::alignf(fit.gram, fit.targets)
}

pub(super) fn best(mkl: &Mkl, fit: &mut Fitting<'_>) -> Result<Vec<f64>> {
    let mut weights = vec![0.0; fit.gram.n_kernels()];
    weights[mkl.best_by_folds(fit)?] = 1.0;
    Ok(weights)
}

impl Mkl {
    /// The weights of the first stage; none for solvers that learn theirs.
    pub(super) fn given_weights(&self, fit: &mut Fitting<'_>) -> Result<Option<Vec<f64>>> {
        match self.solver.info().weights {
            Weights::First(choose) => choose(self, fit).map(Some),
            _ => Ok(None),
        }
    }

    /// Folds that every class can fill.
    pub(super) fn inner_folds(&self, targets: &Targets, n: usize) -> Result<Folds> {
        let fewest = match targets {
            Targets::Classes { names, index } => {
                let mut counts = vec![0; names.len()];
                index.iter().for_each(|&c| counts[c as usize] += 1);
                counts.into_iter().min().unwrap_or(0)
            }
            _ => n,
        };
        if fewest < 2 {
            return Err(Error::input(
                format!("solver {}", self.solver),
                "it holds out a part of every class, and one class has a single sample",
                "give at least two samples of every class, or another solver",
            ));
        }
        Folds::new(FOLDS.min(fewest), targets, n, None, self.stochastic.seed)
    }

    /// The kernel that predicts held-out samples best.
    fn best_by_folds(&self, fit: &mut Fitting<'_>) -> Result<usize> {
        let (kernels, targets, observer) = (fit.set, fit.targets, fit.observer);
        let m = fit.gram.n_kernels();
        if matches!(targets, Targets::None) {
            return Err(Error::input(
                "solver best",
                "it chooses by cross-validation, and there is nothing to predict",
                "give labels, or the solver sum",
            ));
        }
        let metric = Metric::usual(targets);
        let folds = self.inner_folds(targets, kernels.gram().n_rows())?;
        let parts = Parts::new(kernels, &folds)?;
        let alone = unweighted(self)?;
        let done = AtomicUsize::new(0);
        let reached = parts.each(0..folds.count(), |_, part| {
            let truth = targets.select(&part.out);
            let of_kernel = |k: usize| {
                let done = done.fetch_add(1, Ordering::Relaxed);
                observe::work(observer, "kernels alone", done, m * folds.count())?;
                let fitted = part.fit_kernels(&alone, &[fit.place(k)], targets, observer)?;
                let scores = part.scores(kernels, &fitted.model);
                Ok(metric.of(&fitted.model.predictions(&scores), &scores, &truth))
            };
            (0..m).map(of_kernel).collect::<Result<Vec<_>>>()
        })?;
        let mut best: Option<(f64, usize)> = None;
        for at in 0..m {
            let known: Vec<f64> = reached.iter().filter_map(|fold| fold[at]).collect();
            let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
            if best.is_none_or(|(top, _)| mean > top) {
                best = Some((mean, at));
            }
        }
        let Some((reached, at)) = best else {
            return Err(Error::input(
                "kernels",
                "there are none",
                "give at least one",
            ));
        };
        fit.notes.push(format!(
            "kernel '{}' is the best of {m} by {} folds: {} {:.4}",
            kernels.kernels()[fit.place(at)].name,
            folds.count(),
            metric.name(),
            reached
        ));
        Ok(at)
    }

    /// Trains on the product of the kernels.
    pub(super) fn fit_product(&self, fit: Fitting<'_>) -> Result<Fitted> {
        let (kernels, gram, targets, observer) = (fit.set, fit.gram, fit.targets, fit.observer);
        let all = kernels.kernels();
        if gram.n_kernels() == 1 {
            // The product of one kernel is that kernel.
            let mut fitted =
                unweighted(self)?.fit_kernels(kernels, &[fit.place(0)], targets, observer)?;
            self.say_no_norm(&mut fitted.notes);
            return Ok(Fitted {
                solver: Solver::Product,
                ..fitted
            });
        }
        let name = "product of all".to_owned();
        if all.iter().any(|kernel| kernel.name == name) {
            return Err(Error::input(
                "solver product",
                format!("its kernel is named '{name}', but there is a kernel of that name"),
                "give the kernel another name",
            ));
        }
        let of = (0..gram.n_kernels()).map(|k| all[fit.place(k)].name.clone());
        let mut specs: Vec<KernelSpec> = all
            .iter()
            .map(|kernel| KernelSpec {
                name: Some(kernel.name.clone()),
                group: Some(kernel.group.clone()),
                ..kernel.spec.clone()
            })
            .collect();
        specs.push(KernelSpec {
            name: Some(name.clone()),
            group: Some(name),
            ..KernelSpec::product(of.collect())
        });
        let options = Options {
            memory: gram.spare_memory(),
            // The set was built once, with whatever the user wanted done.
            indefinite: Indefinite::Allow,
            ..Options::default()
        };
        let set = KernelSet::new(&specs, kernels.views(), &options, observer)?;
        let mut fitted = unweighted(self)?.fit_kernels(&set, &[all.len()], targets, observer)?;
        fitted.solver = Solver::Product;
        self.say_no_norm(&mut fitted.notes);
        let similarity = mean_similarity(&set, all.len());
        if similarity < NEARLY_DIAGONAL {
            fitted.warnings.push(format!(
                "the product of {} kernels is nearly diagonal (mean similarity of two samples {similarity:.1e}): it hardly generalises (give fewer kernels or larger widths)",
                gram.n_kernels()
            ));
        }
        Ok(fitted)
    }
}

/// Where nothing is minimised there are no bounds.
pub(super) fn nothing_to_certify() -> Certificate {
    Certificate {
        primal: f64::NAN,
        dual: f64::NAN,
        risk: f64::NAN,
        bias: 0.0,
    }
}

/// Mean of |k(x,x')|/√(k(x,x)k(x',x')) over pairs of some samples.
fn mean_similarity(set: &KernelSet, m: usize) -> f64 {
    const SAMPLES: usize = 200;
    let n = set.gram().n_rows();
    let some: Vec<usize> = (0..n).step_by(n.div_ceil(SAMPLES).max(1)).collect();
    let values = set.gram().subset(&some).kernel(m).matrix();
    let k = some.len();
    let at = |i: usize, j: usize| f64::from(values[i * k + j]);
    let pairs = (0..k).flat_map(|i| (0..i).map(move |j| (i, j)));
    let (sum, count) = pairs
        .filter(|&(i, j)| at(i, i) > 0.0 && at(j, j) > 0.0)
        .map(|(i, j)| at(i, j).abs() / (at(i, i) * at(j, j)).sqrt())
        .fold((0.0, 0), |(sum, count), v| (sum + v, count + 1));
    if count == 0 {
        1.0
    } else {
        sum / f64::from(count)
    }
}
