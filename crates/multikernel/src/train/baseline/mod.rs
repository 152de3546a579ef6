//! What simpler ways reach on the same data: the unweighted sum of the kernels, and the best kernel alone.
//!
//! Both are the same problem with the norm lp:inf (r = 2), on all kernels and on one. Beside them stand the ways to weights that
//! papers compare with: alignment with the targets, mixtures of SVMs (LP-β), and rankings of kernels by themselves.

pub(crate) mod alignment;
mod leave_one_out;
pub(crate) mod lp_beta;

pub use leave_one_out::leave_one_out;

use crate::data::{Targets, Views};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Gram, KernelSet};
use crate::measure::{Truth, measure};
use crate::norm::{Exponent, NormSpec};
use crate::observe::{Observer, Progress};
use crate::train::{Fitted, Mkl, Solver};

/// Kernels that are tried alone at most.
const TRIED: usize = 20;

/// Samples that were held out, to choose the best single kernel by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holdout<'a> {
    /// The samples, before scaling.
    pub(crate) views: &'a Views,
    /// What is true of them.
    pub(crate) truth: Truth<'a>,
}

/// The best kernel alone.
#[derive(Debug)]
pub(crate) struct BestSingle {
    /// Its name.
    pub(crate) name: String,
    /// Its model.
    pub(crate) fitted: Fitted,
    /// By what it was chosen, and from how many, as a sentence.
    pub(crate) chosen_by: String,
}

/// Trains on the unweighted sum of the kernels: `mkl` with the norm lp:inf.
pub(crate) fn sum(
    mkl: &Mkl,
    kernels: &KernelSet,
    targets: &Targets,
    observer: &dyn Observer,
) -> Result<Fitted> {
    unweighted(mkl)?.fit(kernels, targets, observer)
}

/// Trains on each kernel alone and keeps the best: by what it reaches on the samples held out (accuracy, or R² for
/// regression), or without them by the primal objective. Of more than 20 kernels, the 20 are tried whose centred values
/// agree best with the targets (ỹᵀKỹ over ‖ỹ‖² and the trace).
pub(crate) fn best_single(
    mkl: &Mkl,
    kernels: &KernelSet,
    targets: &Targets,
    holdout: Option<Holdout<'_>>,
    observer: &dyn Observer,
) -> Result<BestSingle> {
    let mkl = unweighted(mkl)?;
    let all = kernels.kernels().len();
    let candidates: Vec<usize> = if all > TRIED {
        let agreement = agreement(kernels.gram(), targets);
        let mut order: Vec<usize> = (0..all).collect();
        order.sort_by(|&a, &b| agreement[b].total_cmp(&agreement[a]).then(a.cmp(&b)));
        order.truncate(TRIED);
        order.sort_unstable();
        order
    } else {
        (0..all).collect()
    };
    let mut best: Option<(f64, usize, Fitted)> = None;
    let mut held_out = holdout.is_some();
    for (done, &m) in candidates.iter().enumerate() {
        let told = observer.progress(&Progress::Work {
            stage: "kernels alone",
            done: done as u64,
            total: candidates.len() as u64,
        });
        if told.is_break() && best.is_some() {
            break;
        }
        let fitted = mkl.fit_kernels(kernels, &[m], targets, observer)?;
        let reached = match holdout {
            Some(holdout) => reached(&fitted, holdout)?,
            None => None,
        };
        held_out &= reached.is_some();
        let value = reached.unwrap_or(-fitted.certificate.primal);
        if best.as_ref().is_none_or(|(top, ..)| value > *top) {
            best = Some((value, m, fitted));
        }
    }
    let Some((_, kernel, fitted)) = best else {
        return Err(Error::input(
            "kernels",
            "there are none",
            "give at least one",
        ));
    };
    let from = match candidates.len() < all {
        true => format!(
            "{} of {all} kernels that agree best with the targets",
            candidates.len()
        ),
        false => format!("{all} kernels"),
    };
    let by = match held_out {
        true => "what it reaches on the samples held out",
        false => "the training objective",
    };
    Ok(BestSingle {
        name: kernels.kernels()[kernel].name.clone(),
        fitted,
        chosen_by: format!("the best single kernel is chosen from {from} by {by}"),
    })
}

pub(crate) fn unweighted(mkl: &Mkl) -> Result<Mkl> {
    Ok(Mkl {
        norm: NormSpec::Lp(Exponent::new(f64::INFINITY)?),
        matrix: Vec::new(),
        tikhonov: None,
        start_epochs: 0,
        solver: Solver::Sum,
        ..mkl.clone()
    })
}

/// Accuracy or R² on the samples held out; none where neither applies.
fn reached(fitted: &Fitted, holdout: Holdout<'_>) -> Result<Option<f64>> {
    let scores = fitted.model.scores(holdout.views)?;
    let metrics = measure(&fitted.model.predictions(&scores), &scores, holdout.truth);
    Ok(metrics.get("accuracy").or(metrics.get("r2")).copied())
}

/// One row per sample: 1 for its class, 0 for the others.
fn indicators(index: &[u32], classes: usize) -> Vec<f64> {
    let mut y = vec![0.0; index.len() * classes];
    for (row, &c) in y.chunks_mut(classes).zip(index) {
        row[c as usize] = 1.0;
    }
    y
}

/// Targets less their mean, one number per sample or one for each class, and how many; none where there are none.
fn centred(targets: &Targets, n: usize) -> Option<(Vec<f64>, usize)> {
    let (mut y, outputs) = match targets {
        Targets::None => return None,
        Targets::Real(values) => (values.clone(), 1),
        Targets::Classes { names, index } => (indicators(index, names.len()), names.len()),
    };
    for k in 0..outputs {
        let mean = y.iter().skip(k).step_by(outputs).sum::<f64>() / n as f64;
        let own = y.iter_mut().skip(k).step_by(outputs);
        own.for_each(|v| *v -= mean);
    }
    Some((y, outputs))
}

/// ỹᵀK_mỹ / (‖ỹ‖² tr K̃_m) with centred targets ỹ and kernels K̃, summed over the classes; for one-class, where there are
/// no targets, 1ᵀK_m1 / (n tr K_m). Between 0 and 1, and one pass over the pairs for any number of kernels.
fn agreement(gram: &Gram, targets: &Targets) -> Vec<f64> {
    let n = gram.n_rows();
    let ones = vec![1.0; n];
    let totals = gram.quadratic_forms(Coefficients::single(&ones));
    let known = centred(targets, n);
    let is_centred = known.is_some();
    let (y, outputs) = known.unwrap_or((ones, 1));
    let size: f64 = y.iter().map(|v| v * v).sum();
    let along = gram.quadratic_forms(Coefficients::new(&y, outputs));
    (0..gram.n_kernels())
        .map(|m| {
            let mut trace: f64 = gram.self_values(m).iter().sum();
            if is_centred {
                trace -= totals[m] / n as f64;
            }
            let value = along[m] / (size * trace);
            if value.is_finite() { value } else { 0.0 }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, View, ViewData};
    use crate::gram::Options;
    use crate::kernel::KernelSpec;
    use crate::random::Random;

    const N: usize = 60;

    /// Views of noise, and one named `x` that holds the classes.
    fn data(noise: usize) -> (Views, Targets) {
        let mut random = Random::new(5);
        let index: Vec<u32> = (0..N).map(|_| random.below(2) as u32).collect();
        let mut view = |name: String, of: &dyn Fn(usize, f64) -> f64| View {
            name,
            columns: Vec::new(),
            data: ViewData::Dense(
                Dense::new(
                    N,
                    2,
                    (0..2 * N)
                        .map(|k| of(k / 2, random.normal()) as f32)
                        .collect(),
                )
                .unwrap(),
            ),
        };
        let mut views: Vec<View> = (0..noise)
            .map(|v| view(format!("n{v}"), &|_, z| z))
            .collect();
        let holds = |i: usize, z: f64| 3.0 * f64::from(index[i]) + z;
        views.insert(noise / 2, view("x".into(), &holds));
        let names = vec!["a".into(), "b".into()];
        (
            Views::new(views).unwrap(),
            Targets::Classes { names, index },
        )
    }

    fn set(views: &Views) -> KernelSet {
        let specs = KernelSpec::parse("rbf").unwrap();
        KernelSet::new(&specs, views, &Options::default(), &()).unwrap()
    }

    #[test]
    fn the_informative_kernel_is_found() {
        let (views, targets) = data(3);
        let set = set(&views);
        let mkl = Mkl {
            c: 0.2,
            ..Mkl::default()
        };
        let best = best_single(&mkl, &set, &targets, None, &()).unwrap();
        assert!(best.name.starts_with("x/"), "{}", best.name);
        assert_eq!(
            best.chosen_by,
            "the best single kernel is chosen from 4 kernels by the training objective"
        );
        assert_eq!(best.fitted.model.needed_views(), [("x", false)]);
        let Targets::Classes { index, .. } = &targets else {
            panic!()
        };
        let truth: Vec<Option<u32>> = index.iter().map(|&c| Some(c)).collect();
        let holdout = Holdout {
            views: &views,
            truth: Truth::Classes(&truth),
        };
        let best = best_single(&mkl, &set, &targets, Some(holdout), &()).unwrap();
        assert!(
            best.chosen_by
                .ends_with("by what it reaches on the samples held out")
        );
        let sum = sum(&mkl, &set, &targets, &()).unwrap();
        assert!(sum.kernels.iter().all(|k| k.weights == [1.0]));
        assert!(sum.relative_gap() <= 1e-3);
    }

    /// What was set for the training itself, and the sum would refuse, does not reach it.
    #[test]
    fn the_sum_does_not_start_as_the_training_does() {
        let (views, targets) = data(1);
        let mkl = Mkl {
            start_epochs: 3,
            tikhonov: Some(1.0),
            ..Mkl::default()
        };
        assert!(sum(&mkl, &set(&views), &targets, &()).is_ok());
    }

    #[test]
    fn of_many_kernels_the_most_promising_are_tried() {
        let (views, targets) = data(30);
        let set = set(&views);
        let best = best_single(&Mkl::default(), &set, &targets, None, &()).unwrap();
        assert!(best.name.starts_with("x/"), "{}", best.name);
        assert!(
            best.chosen_by
                .contains("from 20 of 31 kernels that agree best with the targets")
        );
        let agreement = agreement(set.gram(), &targets);
        assert!(
            agreement.iter().all(|v| (0.0..=1.0).contains(v)),
            "{agreement:?}"
        );
    }
}
