//! LP-β behind the same door as the others: an SVM for every kernel, and a mixture of them (`baseline/lp_beta.rs`).
//!
//! It minimises no objective of all kernels together and has no certificate; its SVMs are solved to the tolerance each.

use super::two_stage::nothing_to_certify;
use super::{Fitted, KernelReport, Mkl, Multiclass, ProblemReport, worst};
use crate::data::{Targets, Task};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Gram, KernelSet};
use crate::loss::LossSpec;
use crate::model::{Model, Scheme, Trained};
use crate::norm::{Exponent, NormSpec};
use crate::observe::{self, Observer, Progress};
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
    pub(super) fn fit_lp_beta(
        &self,
        kernels: &KernelSet,
        gram: &Gram,
        which: Option<&[usize]>,
        targets: &Targets,
        observer: &dyn Observer,
    ) -> Result<Fitted> {
        let begin = Instant::now();
        let Targets::Classes { names, index } = targets else {
            return Err(Error::input(
                "solver lp-beta",
                "it tells classes apart, and there are none",
                "give labels of classes, or the solver exact, which solves regression and one-class",
            ));
        };
        let several = names.len() > 2;
        let by_class = match self.multiclass {
            Multiclass::OneVsOne => {
                return Err(Error::input(
                    "multiclass",
                    "lp-beta mixes the scores of classes, and ovo has scores of pairs",
                    "give joint (the same weights for all classes) or ovr (weights for each class, LP-B)",
                ));
            }
            Multiclass::OneVsRest => several,
            Multiclass::Auto | Multiclass::Joint => false,
        };
        let (n, k, m) = (gram.n_rows(), names.len(), gram.n_kernels());
        let all = kernels.kernels().len();
        let place = |kernel: usize| which.map_or(kernel, |which| which[kernel]);
        let alone = Mkl {
            multiclass: match several {
                true => Multiclass::OneVsRest,
                false => Multiclass::Auto,
            },
            ..unweighted(self)?
        };
        let folds = self.inner_folds(targets, n)?;
        let parts = Parts::new(kernels, &folds)?;
        let outputs = if several { k } else { 1 };
        let done = AtomicUsize::new(0);
        let found = parts.each(0..folds.count(), |_, part| {
            let of_kernel = |kernel: usize| {
                let done = done.fetch_add(1, Ordering::Relaxed);
                observe::work(observer, "kernels alone", done, m * folds.count())?;
                let fitted = part.fit_kernels(&alone, &[place(kernel)], targets, observer)?;
                Ok(part.scores(kernels, &fitted.model))
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
        let scores = Scores {
            kernels: &scores,
            classes: index,
            n_classes: k,
        };
        let deadline = self.deadline(begin);
        let mut stop = || {
            deadline.is_some_and(|d| Instant::now() >= d)
                || observer.progress(&Progress::Alive).is_break()
        };
        let nu = chosen_share(&scores, by_class, &mut stop)?;
        let mixed = mixture(&scores, nu, by_class, &mut stop)?;
        let over = stop();
        // Weights class after class for LP-B, once for LP-β.
        let sets = mixed.len() / m;
        let mut weights = vec![0.0; sets * all];
        for (row, own) in weights.chunks_mut(all).zip(mixed.chunks(m)) {
            own.iter()
                .enumerate()
                .for_each(|(kernel, w)| row[place(kernel)] = *w);
        }
        let mut separate = vec![0.0; all * n * outputs];
        let mut together = vec![0.0; n * outputs];
        let mut biases = vec![0.0; outputs];
        let mut group_norms = vec![0.0; sets * all];
        let mut problems: Vec<ProblemReport> = Vec::new();
        let mut bias = false;
        for kernel in 0..m {
            let at = place(kernel);
            let weight = |p: usize| weights[(p % sets) * all + at];
            if (0..sets).all(|set| weight(set) == 0.0) {
                continue;
            }
            let fitted = alone.fit_kernels(kernels, &[at], targets, observer)?;
            let model = &fitted.model;
            bias |= model.has_bias();
            let own = &mut separate[at * n * outputs..(at + 1) * n * outputs];
            for (&i, row) in model
                .columns()
                .iter()
                .zip(model.coefficients().chunks(outputs))
            {
                own[i * outputs..(i + 1) * outputs].copy_from_slice(row);
            }
            for (p, b) in biases.iter_mut().enumerate() {
                *b += weight(p) * model.biases()[p];
            }
            for (at, (t, a)) in together.iter_mut().zip(&*own).enumerate() {
                *t += weight(at % outputs) * a;
            }
            for set in 0..sets {
                let column: Vec<f64> = match sets {
                    1 => own.to_vec(),
                    _ => own.iter().skip(set).step_by(outputs).copied().collect(),
                };
                let a = Coefficients::new(&column, column.len() / n);
                let form = gram.select_kernels(&[kernel]).quadratic_forms(a)[0];
                group_norms[set * all + at] = weight(set) * form.sqrt();
            }
            problems.extend(fitted.problems.into_iter().map(|problem| ProblemReport {
                name: match problem.name.is_empty() {
                    true => kernels.kernels()[at].name.clone(),
                    false => format!("{}: {}", kernels.kernels()[at].name, problem.name),
                },
                ..problem
            }));
        }
        let mut notes = kernels.notes().to_vec();
        notes.push(format!(
            "lp-beta: ν = {nu}, by held-out samples; on scores of {} folds the mixture errs on {:.2} % of the training samples",
            folds.count(),
            100.0 * scores.error(&mixed)
        ));
        notes.push(
            "lp-beta minimises no objective of all kernels together: there is no duality gap"
                .into(),
        );
        self.say_no_norm(&mut notes);
        let mut warnings = kernels.warnings().to_vec();
        // Of its SVMs; the linear program has an end.
        let status = match over {
            true => Status::TimeLimit,
            false => worst(&problems),
        };
        let n_support = together
            .chunks(outputs)
            .filter(|row| row.iter().any(|a| *a != 0.0))
            .count();
        let loss = match self.loss {
            Some(loss) => loss,
            None => LossSpec::Scalar(self.loss_for(Task::Classify)?),
        };
        let model = Model::trained(
            Trained {
                kernels,
                task: Task::Classify,
                scheme: match (several, by_class) {
                    (false, _) => Scheme::Single,
                    (true, true) => Scheme::OneVsRest,
                    (true, false) => Scheme::Joint,
                },
                classes: names.clone(),
                loss,
                norm: NormSpec::Lp(Exponent::new(f64::INFINITY)?),
                c: self.c,
                bias,
                biases,
                weights: &weights,
                coefficients: &together,
                separate: Some(&separate),
                scaling: &self.scaling,
            },
            &mut notes,
            &mut warnings,
        )?;
        let pick =
            |values: &[f64], at: usize| values.iter().skip(at).step_by(all).copied().collect();
        Ok(Fitted {
            model,
            certificate: nothing_to_certify(),
            status,
            kernels: kernels
                .kernels()
                .iter()
                .enumerate()
                .map(|(at, kernel)| KernelReport {
                    name: kernel.name.clone(),
                    group: kernel.group.clone(),
                    weights: pick(&weights, at),
                    group_norms: pick(&group_norms, at),
                })
                .collect(),
            n_samples: n,
            n_support,
            iterations: problems.iter().map(|p| p.history.len()).sum(),
            problems,
            seconds: begin.elapsed().as_secs_f64(),
            solver: self.solver,
            notes,
            warnings,
        })
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
