//! LP-β behind the same door as the others: an SVM for every kernel, and a mixture of them (`baseline/lp_beta.rs`).
//!
//! It minimises no objective of all kernels together and has no certificate; its SVMs are solved to the tolerance each.

use super::fitting::{Fitting, Found, Summary};
use super::fixed_weights::nothing_to_certify;
use super::{Fitted, Mkl, Multiclass, ProblemReport};
use crate::data::{Folds, Targets, Task};
use crate::error::{Error, Result};
use crate::loss::LossSpec;
use crate::model::Scheme;
use crate::norm::{Exponent, NormSpec};
use crate::observe::{self, Progress};
use crate::problem::Status;
use crate::train::Parts;
use crate::train::baseline::lp_beta::{Scores, mixture};
use crate::train::baseline::unweighted;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The share of samples that may miss the margin: the one is taken whose mixture of one half of the samples errs least on
/// the other.
const SHARES: [f64; 4] = [0.05, 0.1, 0.2, 0.5];

impl Mkl {
    pub(super) fn fit_lp_beta(&self, mut fit: Fitting<'_>) -> Result<Fitted> {
        let Targets::Classes { names, index } = fit.targets else {
            return Err(Error::input(
                "solver lp-beta",
                "it tells classes apart, and there are none",
                "give labels of classes, or the solver exact, which solves regression and one-class",
            ));
        };
        let several = names.len() > 2;
        let by_class = self.has_weights_by_class()? && several;
        let alone = Mkl {
            multiclass: match several {
                true => Multiclass::OneVsRest,
                false => Multiclass::Auto,
            },
            ..unweighted(self)?
        };
        let folds = self.inner_folds(fit.targets, fit.gram.n_rows())?;
        let outputs = if several { names.len() } else { 1 };
        let scores = Scores {
            kernels: &alone.held_out_by_kernel(&fit, &folds, outputs)?,
            classes: index,
            n_classes: names.len(),
        };
        let (deadline, observer) = (fit.deadline(self), fit.observer);
        let mut stop = || {
            deadline.is_some_and(|d| Instant::now() >= d)
                || observer.progress(&Progress::Alive).is_break()
        };
        let nu = chosen_share(&scores, by_class, &mut stop)?;
        let weights = mixture(&scores, nu, by_class, &mut stop)?;
        let is_late = stop();
        fit.notes.push(format!(
            "lp-beta: ν = {nu}, by held-out samples; on scores of {} folds the mixture errs on {:.2} % of the training samples",
            folds.count(),
            100.0 * scores.error(&weights)
        ));
        fit.notes.push(
            "lp-beta minimises no objective of all kernels together: there is no duality gap"
                .into(),
        );
        self.say_no_norm(&mut fit.notes);
        let sets = weights.chunks(fit.gram.n_kernels()).map(<[f64]>::to_vec);
        let found = self.mixed(&alone, &fit, sets.collect(), outputs)?;
        let summary = Summary {
            task: Task::Classify,
            scheme: match (several, by_class) {
                (false, _) => Scheme::Single,
                (true, true) => Scheme::OneVsRest,
                (true, false) => Scheme::Joint,
            },
            classes: names.clone(),
            norm: NormSpec::Lp(Exponent::new(f64::INFINITY)?),
            solver: self.solver,
        };
        let fitted = fit.finish(self, summary, found)?;
        Ok(Fitted {
            certificate: nothing_to_certify(),
            // Otherwise that of its SVMs; the linear program has an end.
            status: if is_late {
                Status::TimeLimit
            } else {
                fitted.status
            },
            ..fitted
        })
    }

    /// Whether several classes get weights of their own each (LP-B).
    fn has_weights_by_class(&self) -> Result<bool> {
        match self.multiclass {
            Multiclass::OneVsOne => Err(Error::input(
                "multiclass",
                "lp-beta mixes the scores of classes, and ovo has scores of pairs",
                "give joint (the same weights for all classes) or ovr (weights for each class, LP-B)",
            )),
            Multiclass::OneVsRest => Ok(true),
            Multiclass::Auto | Multiclass::Joint => Ok(false),
        }
    }

    /// For each kernel the scores of all samples by an SVM on it alone that did not see them.
    fn held_out_by_kernel(
        &self,
        fit: &Fitting<'_>,
        folds: &Folds,
        outputs: usize,
    ) -> Result<Vec<Vec<f64>>> {
        let (n, m) = (fit.gram.n_rows(), fit.gram.n_kernels());
        let done = AtomicUsize::new(0);
        let found = Parts::new(fit.set, folds)?.each(0..folds.count(), |_, part| {
            let of_kernel = |k: usize| {
                let done = done.fetch_add(1, Ordering::Relaxed);
                observe::work(fit.observer, "kernels alone", done, m * folds.count())?;
                let fitted = part.fit_kernels(self, &[fit.place(k)], fit.targets, fit.observer)?;
                Ok(part.scores(fit.set, &fitted.model))
            };
            (0..m).map(of_kernel).collect::<Result<Vec<_>>>()
        })?;
        let mut scores = vec![vec![0.0; n * outputs]; m];
        for (fold, found) in found.iter().enumerate() {
            let out = folds.held_out(fold);
            for (own, found) in scores.iter_mut().zip(found) {
                for (&i, row) in out.iter().zip(found.values.chunks(outputs)) {
                    own[i * outputs..(i + 1) * outputs].copy_from_slice(row);
                }
            }
        }
        Ok(scores)
    }

    /// The SVMs of the kernels with a weight, on all samples, and their mixture. Weights stand class after class for LP-B, once for LP-β.
    fn mixed(
        &self,
        alone: &Mkl,
        fit: &Fitting<'_>,
        weights: Vec<Vec<f64>>,
        outputs: usize,
    ) -> Result<Found> {
        let (n, m) = (fit.gram.n_rows(), fit.gram.n_kernels());
        let loss = match self.loss {
            Some(loss) => loss,
            None => LossSpec::Scalar(self.loss_for(Task::Classify)?),
        };
        let mut found = Found::new(n, outputs, loss, false);
        let mut separate = vec![0.0; m * n * outputs];
        for (k, own) in separate.chunks_mut(n * outputs).enumerate() {
            if weights.iter().all(|set| set[k] == 0.0) {
                continue;
            }
            let at = fit.place(k);
            let name = &fit.set.kernels()[at].name;
            let fitted = alone.fit_kernels(fit.set, &[at], fit.targets, fit.observer)?;
            let model = &fitted.model;
            found.bias |= model.has_bias();
            let rows = model.coefficients().chunks(outputs);
            for (&i, row) in model.columns().iter().zip(rows) {
                own[i * outputs..(i + 1) * outputs].copy_from_slice(row);
            }
            for (p, b) in found.biases.iter_mut().enumerate() {
                *b += weights[p % weights.len()][k] * model.biases()[p];
            }
            let named = |problem: ProblemReport| ProblemReport {
                name: match problem.name.is_empty() {
                    true => name.clone(),
                    false => format!("{name}: {}", problem.name),
                },
                ..problem
            };
            found
                .problems
                .extend(fitted.problems.into_iter().map(named));
        }
        found.combine(fit.gram, separate, weights);
        Ok(found)
    }
}

fn chosen_share(
    scores: &Scores<'_>,
    by_class: bool,
    stop: &mut dyn FnMut() -> bool,
) -> Result<f64> {
    let n = scores.classes.len();
    let halves: [Vec<usize>; 2] = [(0..n).step_by(2).collect(), (1..n).step_by(2).collect()];
    let part = |rows: &[usize]| -> (Vec<Vec<f64>>, Vec<u32>) {
        let columns = scores.kernels[0].len() / n;
        let cut = |list: &Vec<f64>| {
            let rows = rows.iter().map(|&i| &list[i * columns..(i + 1) * columns]);
            rows.flatten().copied().collect()
        };
        (
            scores.kernels.iter().map(cut).collect(),
            rows.iter().map(|&i| scores.classes[i]).collect(),
        )
    };
    let parts = halves.map(|rows| part(&rows));
    let view = |part: usize| Scores {
        kernels: &parts[part].0,
        classes: &parts[part].1,
        n_classes: scores.n_classes,
    };
    let mut best = (f64::INFINITY, SHARES[1]);
    for nu in SHARES {
        let mut error = 0.0;
        for half in 0..2 {
            let weights = mixture(&view(half), nu, by_class, stop)?;
            error += view(1 - half).error(&weights);
        }
        if error < best.0 {
            best = (error, nu);
        }
    }
    Ok(best.1)
}
