//! From what training or a stream hands over to a model: what of it is kept.

use super::match_views::TrainingView;
use super::{Model, Parts, Scheme};
use crate::data::{Scaling, Task, ViewData, Views};
use crate::error::Result;
use crate::gram::{Kernel, KernelSet, Repair};
use crate::kernel::Normalize;
use crate::loss::LossSpec;
use crate::norm::NormSpec;
use std::collections::HashSet;

/// What training hands over.
pub(crate) struct Trained<'a> {
    pub(crate) kernels: &'a KernelSet,
    pub(crate) task: Task,
    pub(crate) scheme: Scheme,
    pub(crate) classes: Vec<String>,
    pub(crate) loss: LossSpec,
    pub(crate) norm: NormSpec,
    pub(crate) c: f64,
    pub(crate) bias: bool,
    pub(crate) biases: Vec<f64>,
    /// Problem after problem, one for each kernel.
    pub(crate) weights: &'a [f64],
    /// Sample after sample, one for each score.
    pub(crate) coefficients: &'a [f64],
    /// Where every kernel has its own: kernel after kernel, each as `coefficients`.
    pub(crate) separate: Option<&'a [f64]>,
    pub(crate) scaling: &'a Scaling,
}

/// What a stream hands over: everything that it keeps, as it stands.
pub(crate) struct Streamed {
    pub(crate) scheme: Scheme,
    pub(crate) classes: Vec<String>,
    pub(crate) loss: LossSpec,
    pub(crate) norm: NormSpec,
    pub(crate) c: f64,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) weights: Vec<f64>,
    /// Numbers of the examples kept, ascending.
    pub(crate) columns: Vec<usize>,
    pub(crate) n_training: usize,
    pub(crate) ids: Option<Vec<String>>,
    pub(crate) coefficients: Vec<f64>,
    pub(crate) separate: Option<Vec<f64>>,
    pub(crate) views: Views,
    pub(crate) scaling: Scaling,
}

/// Σ a_i counts as zero up to this share of Σ|a_i|: then centring needs no row mean of a new sample.
const BALANCE: f64 = 1e-9;

impl Model {
    /// Keeps what is needed of a training result.
    pub(crate) fn trained(
        from: Trained<'_>,
        notes: &mut Vec<String>,
        warnings: &mut Vec<String>,
    ) -> Result<Model> {
        let outputs = from.biases.len();
        let all = from.kernels.kernels();
        let kept = needed_kernels(all, from.weights);
        let n = from.kernels.gram().n_rows();
        let every = |i: usize| {
            let lists = std::iter::once(from.coefficients);
            let own = from.separate.map(|all| all.chunks(n * outputs));
            let lists = lists.chain(own.into_iter().flatten());
            lists.flat_map(move |list| &list[i * outputs..(i + 1) * outputs])
        };
        let mut columns: Vec<usize> = (0..n).filter(|&i| every(i).any(|&a| a != 0.0)).collect();
        let centred = match from.separate {
            Some(_) => kept
                .iter()
                .copied()
                .find(|&m| all[m].spec.normalize == Normalize::Center),
            None => needs_all_samples(all, &kept, from.coefficients, outputs),
        };
        if let Some(kernel) = centred
            && columns.len() < n
        {
            notes.push(format!(
                "the model keeps all {n} training samples, not only the {} with coefficients: centring new samples for kernel '{}' needs them",
                columns.len(),
                all[kernel].name
            ));
            columns = (0..n).collect();
        }
        let clipped = |m: &&usize| matches!(all[**m].repair, Some(Repair::Clip(_)));
        if let Some(&kernel) = kept.iter().find(clipped)
            && columns.len() < n
        {
            notes.push(format!(
                "the model keeps all {n} training samples, not only the {} with coefficients: clipping new samples for kernel '{}' needs them",
                columns.len(),
                all[kernel].name
            ));
            columns = (0..n).collect();
        }
        if columns.is_empty() {
            // A model without samples would not know what its views look like.
            columns.push(0);
        }
        for &m in kept
            .iter()
            .filter(|&&m| all[m].needs_factors() && looks_at_given(all, m))
        {
            warnings.push(format!(
                "kernel '{}' looks at a given matrix under spherical normalisation, which needs k(x, x) of new samples: the model cannot be applied to new samples (normalise the matrices before they are given)",
                all[m].name
            ));
        }
        let kernels: Vec<Kernel> = kept.iter().map(|&m| cut(&all[m], &columns)).collect();
        let used = |name: &str| kernels.iter().any(|k| k.view() == name);
        let views = from
            .kernels
            .views()
            .only(|v| used(&v.name) && !matches!(v.data, ViewData::Pairwise(_)))
            .select(&columns)?;
        let ids = from
            .kernels
            .views()
            .ids()
            .map(|ids| columns.iter().map(|&i| ids[i].clone()).collect());
        let separate = from.separate.map(|list| {
            let rows = kept
                .iter()
                .flat_map(|&m| columns.iter().map(move |&i| (m * n + i) * outputs));
            rows.flat_map(|at| &list[at..at + outputs])
                .copied()
                .collect()
        });
        let parts = Parts {
            task: from.task,
            scheme: from.scheme,
            classes: from.classes,
            loss: from.loss,
            norm: from.norm,
            c: from.c,
            bias: from.bias,
            biases: from.biases,
            weights: from
                .weights
                .chunks(all.len())
                .flat_map(|row| kept.iter().map(|&m| row[m]))
                .collect(),
            coefficients: columns
                .iter()
                .flat_map(|&i| &from.coefficients[i * outputs..(i + 1) * outputs])
                .copied()
                .collect(),
            scaling: from.scaling.only(used),
            kernels,
            columns,
            n_training: n,
            training_views: TrainingView::all(from.kernels.views()),
            ids,
            separate,
            views,
            calibration: None,
            training: serde_json::Value::Null,
        };
        Model::new(parts)
    }

    /// The model of a stream; kernels without weight stay, since they may get some later.
    pub(crate) fn streamed(from: Streamed) -> Result<Model> {
        let outputs = from.scheme.outputs(from.classes.len()).unwrap_or(0);
        Model::new(Parts {
            task: Task::Classify,
            scheme: from.scheme,
            classes: from.classes,
            loss: from.loss,
            norm: from.norm,
            c: from.c,
            bias: false,
            biases: vec![0.0; outputs],
            kernels: from.kernels,
            weights: from.weights,
            columns: from.columns,
            n_training: from.n_training,
            training_views: TrainingView::all(&from.views),
            ids: from.ids,
            coefficients: from.coefficients,
            separate: from.separate,
            views: from.views,
            scaling: from.scaling,
            calibration: None,
            training: serde_json::Value::Null,
        })
    }
}

/// Kernels with a weight in some problem and the parts of products and sums among them; at least one.
fn needed_kernels(all: &[Kernel], weights: &[f64]) -> Vec<usize> {
    let mut needed = vec![false; all.len()];
    for row in weights.chunks(all.len().max(1)) {
        for (needed, &w) in needed.iter_mut().zip(row) {
            *needed |= w != 0.0;
        }
    }
    if let Some(first) = needed.first_mut()
        && weights.iter().all(|&w| w == 0.0)
    {
        *first = true;
    }
    // Parts stand before the kernels made of them, so one pass from the back finds parts of parts.
    for m in (0..all.len()).rev().collect::<Vec<_>>() {
        if let (true, Some((_, of))) = (needed[m], all[m].spec.kind.made_of()) {
            for part in of {
                if let Some(k) = all.iter().position(|k| k.name == *part) {
                    needed[k] = true;
                }
            }
        }
    }
    (0..all.len()).filter(|&m| needed[m]).collect()
}

/// Whether the kernel, or one that it is made of, is a given matrix.
fn looks_at_given(all: &[Kernel], m: usize) -> bool {
    let kind = &all[m].spec.kind;
    match kind.made_of() {
        None => kind.looks_at_matrix(),
        // Parts stand before the kernels made of them, so this ends.
        Some((_, of)) => of.iter().any(|part| {
            let part = all[..m].iter().position(|k| k.name == *part);
            part.is_some_and(|k| looks_at_given(all, k))
        }),
    }
}

/// A centred kernel that needs all training samples at prediction.
///
/// The row mean of a new sample is over all of them. It enters the score as −r̄(x) Σ a_i, so it is not needed where
/// Σ a_i = 0; inside of a product or sum it always is.
fn needs_all_samples(
    all: &[Kernel],
    kept: &[usize],
    coefficients: &[f64],
    outputs: usize,
) -> Option<usize> {
    let balanced = (0..outputs).all(|k| {
        let a = || coefficients.iter().skip(k).step_by(outputs);
        a().sum::<f64>().abs() <= BALANCE * a().map(|a| a.abs()).sum::<f64>()
    });
    let parts: HashSet<&String> = kept
        .iter()
        .filter_map(|&m| all[m].spec.kind.made_of())
        .flat_map(|(_, of)| of)
        .collect();
    kept.iter().copied().find(|&m| {
        all[m].spec.normalize == Normalize::Center && (!balanced || parts.contains(&all[m].name))
    })
}

/// The kernel with the statistics of some training samples only.
fn cut(kernel: &Kernel, columns: &[usize]) -> Kernel {
    Kernel {
        normalizer: kernel.normalizer.select(columns),
        repair: match &kernel.repair {
            // What was added to the diagonal of a given matrix means nothing for new samples.
            Some(Repair::Shift) if kernel.spec.kind.is_precomputed() => None,
            repair => repair.clone(),
        },
        ..kernel.clone()
    }
}
