//! A trained model: kernels, their weights, coefficients of some training samples, and what is needed to apply them.
//!
//! f_k(x) = Σ_m β_km Σ_j A_jk K_m(x, x_j) + b_k over the samples x_j that the model keeps; a joint problem has one β for all k. Kernels without weight are
//! dropped, and views that no kernel looks at. A model that was just trained, saved or loaded predicts by the same code
//! from the same numbers, so its scores are the same to the last bit.

mod arrange;
mod file;
mod predict;
#[cfg(test)]
mod tests;

pub(crate) use file::{Stored, Tensors, damaged};
pub use predict::{Predictions, Scores};

use arrange::TrainingView;

use crate::calibration::Calibration;
use crate::data::{Scaling, Task, Views};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Kernel, KernelSet, Normalizer, Reference, Repair};
use crate::kernel::{Kind, Normalize, Width};
use crate::loss::LossSpec;
use crate::norm::NormSpec;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// How the problems of a model belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// One problem: two classes, a real value, one class.
    Single,
    /// One problem for each class against the others.
    OneVsRest,
    /// One problem for each pair of classes, (0, 1), (0, 2) … (1, 2) …; the second of the pair is +1.
    OneVsOne,
    /// One problem with a score for every class and one set of kernel weights.
    Joint,
}

impl Scheme {
    /// The number of scores for so many classes; none if it is beyond counting.
    fn outputs(self, classes: usize) -> Option<usize> {
        match self {
            Scheme::Single => Some(1),
            Scheme::OneVsRest | Scheme::Joint => Some(classes),
            Scheme::OneVsOne => Some(classes.checked_mul(classes.checked_sub(1)?)? / 2),
        }
    }
}

/// A trained model.
#[derive(Debug)]
pub struct Model {
    parts: Parts,
    reference: Reference,
}

/// The numbers of a model, as they stand in its file.
#[derive(Debug, Clone)]
struct Parts {
    task: Task,
    scheme: Scheme,
    classes: Vec<String>,
    loss: LossSpec,
    norm: NormSpec,
    c: f64,
    /// Whether there is a bias.
    bias: bool,
    /// One per score.
    biases: Vec<f64>,
    /// Those with a weight, and those that products and sums are made of.
    kernels: Vec<Kernel>,
    /// β, problem after problem; once for a joint problem.
    weights: Vec<f64>,
    /// Rows of the training data that are kept, ascending.
    columns: Vec<usize>,
    n_training: usize,
    /// All views of the training data in order, also those that no kernel kept looks at.
    training_views: Vec<TrainingView>,
    /// The names of the samples kept, if they had any.
    ids: Option<Vec<String>>,
    /// A, sample after sample, one number per score.
    coefficients: Vec<f64>,
    /// Where every kernel has coefficients of its own (OMCL): kernel after kernel, each as `coefficients`, which then hold
    /// their weighted sum and are not used.
    separate: Option<Vec<f64>>,
    /// The samples kept, as the kernels saw them (after scaling); without given matrices.
    views: Views,
    scaling: Scaling,
    /// What turns scores into probabilities.
    calibration: Option<Calibration>,
    /// How it was trained, for people and programs that ask.
    training: serde_json::Value,
}

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
            .only(|v| used(&v.name) && !matches!(v.data, crate::data::ViewData::Pairwise(_)))
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

    /// Checks that everything fits together, and makes the samples ready.
    fn new(parts: Parts) -> Result<Model> {
        parts.check()?;
        let reference = Reference::new(parts.kernels.clone(), &parts.views, parts.columns.len())?;
        Ok(Model { parts, reference })
    }

    /// What it was trained for.
    pub fn task(&self) -> Task {
        self.parts.task
    }

    /// How its problems belong together.
    pub fn scheme(&self) -> Scheme {
        self.parts.scheme
    }

    /// The names of the classes, in order; empty without classes.
    pub fn classes(&self) -> &[String] {
        &self.parts.classes
    }

    /// The loss.
    pub fn loss(&self) -> LossSpec {
        self.parts.loss
    }

    /// The norm.
    pub fn norm(&self) -> &NormSpec {
        &self.parts.norm
    }

    /// C
    pub fn c(&self) -> f64 {
        self.parts.c
    }

    /// Whether there is a bias.
    pub fn has_bias(&self) -> bool {
        self.parts.bias
    }

    /// One bias per score (0 where there is none).
    pub fn biases(&self) -> &[f64] {
        &self.parts.biases
    }

    /// The kernels kept, in the order of the training set.
    pub fn kernels(&self) -> &[Kernel] {
        &self.parts.kernels
    }

    /// The weights of the kernels kept in problem `k`.
    ///
    /// # Panics
    /// If there is no such problem.
    pub fn weights(&self, k: usize) -> &[f64] {
        let m = self.parts.kernels.len();
        &self.parts.weights[k * m..(k + 1) * m]
    }

    /// Number of problems; a joint one counts once.
    pub fn n_problems(&self) -> usize {
        self.parts.problems()
    }

    /// Number of scores per sample: one per problem, in a joint one a score for every class.
    pub fn n_scores(&self) -> usize {
        self.parts.biases.len()
    }

    /// Rows of the training data that are kept, ascending.
    pub fn columns(&self) -> &[usize] {
        &self.parts.columns
    }

    /// The names of the samples kept, if they had any.
    pub fn ids(&self) -> Option<&[String]> {
        self.parts.ids.as_deref()
    }

    /// Coefficients of the samples kept: sample after sample, one number per score.
    pub fn coefficients(&self) -> &[f64] {
        &self.parts.coefficients
    }

    /// Coefficients of kernel m where every kernel has its own (OMCL), in the form of [`Model::coefficients`], which then hold
    /// their weighted sum; none where kernels share them.
    pub fn separate_coefficients(&self, m: usize) -> Option<&[f64]> {
        let one = self.parts.coefficients.len();
        let all = self.parts.separate.as_ref()?;
        all.get(m * one..(m + 1) * one)
    }

    /// ‖w_m‖ of the kernels kept, for a model of one problem.
    ///
    /// # Errors
    /// If the model is made of several problems, or looks at given matrices, which it does not keep.
    pub fn group_norms(&self) -> Result<Vec<f64>> {
        if self.n_problems() != 1 || self.needed_views().iter().any(|view| view.1) {
            return Err(Error::input(
                "model",
                "the lengths of its weight vectors cannot be computed",
                "give a model of one problem that keeps its samples",
            ));
        }
        let outputs = self.n_scores();
        let rows: Vec<usize> = (0..self.parts.columns.len()).collect();
        let gram = self.reference.cross(&self.parts.views, 0)?;
        let norms = (0..self.parts.kernels.len()).map(|m| {
            let own = self.separate_coefficients(m);
            let a = own.unwrap_or(&self.parts.coefficients);
            let scores = gram.kernel_scores(&rows, &[m], Coefficients::new(a, outputs));
            let square: f64 = a.iter().zip(scores).map(|(a, f)| a * f).sum();
            self.parts.weights[m] * square.max(0.0).sqrt()
        });
        Ok(norms.collect())
    }

    /// Number of training samples.
    pub fn n_training(&self) -> usize {
        self.parts.n_training
    }

    /// The scaling of the views that are needed.
    pub fn scaling(&self) -> &Scaling {
        &self.parts.scaling
    }

    /// The samples kept, as the kernels saw them (after scaling); given matrices are not among the views.
    pub fn samples(&self) -> &Views {
        &self.parts.views
    }

    /// The names of the views that new samples must have, and whether they are given matrices.
    pub fn needed_views(&self) -> Vec<(&str, bool)> {
        let mut views: Vec<(&str, bool)> = Vec::new();
        for kernel in &self.parts.kernels {
            let given = matches!(kernel.spec.kind, Kind::Precomputed | Kind::Distance(_));
            let composite = matches!(kernel.spec.kind, Kind::Product { .. } | Kind::Sum { .. });
            if !composite && !views.iter().any(|v| v.0 == kernel.view()) {
                views.push((kernel.view(), given));
            }
        }
        views
    }

    /// Says that the training samples were these rows of a set of `n` samples, the others having been held out. Rows of
    /// [`Model::columns`] and columns of given matrices are then counted in that set.
    pub fn trained_on(&mut self, rows: &[usize], n: usize) -> Result<()> {
        let ascending = rows.windows(2).all(|w| w[0] < w[1]);
        let inside = rows.last().is_some_and(|&last| last < n);
        if rows.len() != self.parts.n_training || !ascending || !inside {
            return Err(Error::input(
                "training rows",
                format!(
                    "{} rows of {n} samples for {} training samples",
                    rows.len(),
                    self.parts.n_training
                ),
                "give each row once, in ascending order",
            ));
        }
        for column in &mut self.parts.columns {
            *column = rows[*column];
        }
        self.parts.n_training = n;
        Ok(())
    }

    /// What turns its scores into probabilities, if that was asked for in training.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.parts.calibration.as_ref()
    }

    /// Gives the model probabilities, or takes them away; see [`Mkl::calibrate`](crate::Mkl::calibrate).
    ///
    /// # Errors
    /// If it does not fit the classes of the model.
    pub fn set_calibration(&mut self, calibration: Option<Calibration>) -> Result<()> {
        let fits = |c: &Calibration| c.fits(self.parts.classes.len());
        if !calibration.as_ref().is_none_or(fits) {
            return Err(Error::input(
                "probabilities",
                format!("they do not fit {} classes", self.parts.classes.len()),
                "give a sigmoid for two classes, a temperature for more",
            ));
        }
        self.parts.calibration = calibration;
        Ok(())
    }

    /// How it was trained: whatever [`Model::set_training`] was given, null before.
    pub fn training(&self) -> &serde_json::Value {
        &self.parts.training
    }

    /// Keeps with the model how it was trained (the result object, for instance).
    pub fn set_training(&mut self, training: serde_json::Value) {
        self.parts.training = training;
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
        if let (true, Kind::Product { of } | Kind::Sum { of }) = (needed[m], &all[m].spec.kind) {
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
    match &all[m].spec.kind {
        Kind::Precomputed | Kind::Distance(_) => true,
        // Parts stand before the kernels made of them, so this ends.
        Kind::Product { of } | Kind::Sum { of } => of.iter().any(|part| {
            let part = all[..m].iter().position(|k| k.name == *part);
            part.is_some_and(|k| looks_at_given(all, k))
        }),
        _ => false,
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
        .filter_map(|&m| match &all[m].spec.kind {
            Kind::Product { of } | Kind::Sum { of } => Some(of),
            _ => None,
        })
        .flatten()
        .collect();
    kept.iter().copied().find(|&m| {
        all[m].spec.normalize == Normalize::Center && (!balanced || parts.contains(&all[m].name))
    })
}

/// The kernel with the statistics of some training samples only.
fn cut(kernel: &Kernel, columns: &[usize]) -> Kernel {
    Kernel {
        normalizer: kernel.normalizer.select(columns),
        repair: match (&kernel.repair, &kernel.spec.kind) {
            // What was added to the diagonal of a given matrix means nothing for new samples.
            (Some(Repair::Shift), Kind::Precomputed) => None,
            (repair, _) => repair.clone(),
        },
        ..kernel.clone()
    }
}

impl Parts {
    fn problems(&self) -> usize {
        match self.scheme {
            Scheme::Joint => 1,
            Scheme::Single | Scheme::OneVsRest | Scheme::OneVsOne => self.biases.len(),
        }
    }

    /// Everything that prediction relies on.
    fn check(&self) -> Result<()> {
        let wrong = |found: String| Err(Error::input("model", found, ""));
        let classes_fit = match self.task {
            Task::Classify => {
                let distinct: HashSet<&String> = self.classes.iter().collect();
                let many = self.classes.len() > 2;
                distinct.len() == self.classes.len()
                    && self.classes.len() >= 2
                    && (self.scheme == Scheme::Joint || many == (self.scheme != Scheme::Single))
            }
            Task::Regress | Task::OneClass => {
                self.classes.is_empty() && self.scheme == Scheme::Single
            }
        };
        if !classes_fit {
            return wrong(format!(
                "its {} classes do not fit its task {}",
                self.classes.len(),
                self.task
            ));
        }
        let outputs = self.scheme.outputs(self.classes.len());
        if outputs != Some(self.biases.len()) {
            return wrong(format!(
                "it has {} biases for {} classes",
                self.biases.len(),
                self.classes.len()
            ));
        }
        let outputs = self.biases.len();
        let n = self.columns.len();
        if n == 0 || self.kernels.is_empty() {
            return wrong("it has no samples or no kernels".into());
        }
        if n.checked_mul(outputs) != Some(self.coefficients.len()) {
            return wrong(format!(
                "it has {} coefficients for {n} samples and {outputs} scores",
                self.coefficients.len()
            ));
        }
        if let Some(separate) = &self.separate
            && (self.kernels.len().checked_mul(self.coefficients.len()) != Some(separate.len())
                || !separate.iter().all(|v| v.is_finite())
                || (self.problems() != 1 && self.problems() != outputs))
        {
            return wrong("the coefficients of its kernels do not fit".into());
        }
        let problems = self.problems();
        if self.kernels.len().checked_mul(problems) != Some(self.weights.len()) {
            return wrong(format!(
                "it has {} weights for {} kernels and {problems} problems",
                self.weights.len(),
                self.kernels.len()
            ));
        }
        let finite = |values: &[f64]| values.iter().all(|v| v.is_finite());
        let numbers = finite(&self.coefficients)
            && finite(&self.biases)
            && self.weights.iter().all(|w| *w >= 0.0 && w.is_finite())
            && self.c > 0.0
            && self.c.is_finite();
        if !numbers {
            return wrong("a coefficient, bias, weight or C is not a number it may be".into());
        }
        let ascending = self.columns.windows(2).all(|w| w[0] < w[1]);
        if !ascending
            || self
                .columns
                .last()
                .is_none_or(|&last| last >= self.n_training)
        {
            return wrong(
                "the numbers of its samples do not ascend within the training data".into(),
            );
        }
        if self
            .calibration
            .is_some_and(|c| !c.fits(self.classes.len()))
        {
            return wrong("its probabilities do not fit its classes".into());
        }
        if self.ids.as_ref().is_some_and(|ids| ids.len() != n) {
            return wrong("it does not have one id for each sample".into());
        }
        if !self.views.is_empty() && self.views.len() != n {
            return wrong(format!(
                "its views have {} rows for {n} samples",
                self.views.len()
            ));
        }
        self.check_kernels()
    }

    fn check_kernels(&self) -> Result<()> {
        let n = self.columns.len();
        let mut names: HashSet<&String> = HashSet::new();
        for kernel in &self.kernels {
            let wrong = |found: &str| {
                Err(Error::input(
                    format!("model, kernel '{}'", kernel.name),
                    found,
                    "",
                ))
            };
            match &kernel.spec.kind {
                Kind::Product { of } | Kind::Sum { of } => {
                    if of.is_empty() || !of.iter().all(|part| names.contains(part)) {
                        return wrong("the kernels it is made of do not stand before it");
                    }
                }
                Kind::Precomputed | Kind::Distance(_) => {
                    if self.views.get(kernel.view()).is_some() {
                        return wrong(
                            "it looks at a given matrix, but the model has a view of that name",
                        );
                    }
                }
                kind => {
                    let view = self.views.get(kernel.view());
                    if view.is_none_or(|view| !kind.applies_to(&view.data)) {
                        return wrong(
                            "the view it looks at is not in the model, or of another kind",
                        );
                    }
                }
            }
            if let Kind::Rbf(width)
            | Kind::Laplacian(width)
            | Kind::Chi2(width)
            | Kind::Distance(width) = kernel.spec.kind
            {
                let width = match width {
                    Width::Value(width) => width,
                    Width::Gamma(gamma) => 1.0 / gamma,
                    Width::Mean(_) | Width::Median(_) => f64::NAN,
                };
                if !(width > 0.0 && width.is_finite()) {
                    return wrong("its width is not a positive number");
                }
            }
            let given = matches!(kernel.spec.kind, Kind::Precomputed | Kind::Distance(_));
            let repairable = match &kernel.repair {
                None => true,
                Some(Repair::Shift) => given,
                Some(Repair::Clip(projection)) => given && projection.fits(n),
            };
            if !repairable {
                return wrong("what is to be clipped off new samples does not fit");
            }
            let fits = match (&kernel.normalizer, kernel.spec.normalize) {
                (Normalizer::None, Normalize::Spherical) => !kernel.needs_factors(),
                (Normalizer::None, normalize) => normalize != Normalize::Center,
                (Normalizer::Spherical { factors }, Normalize::Spherical) => {
                    factors.len() == n && factors.iter().all(|f| *f >= 0.0 && f.is_finite())
                }
                (Normalizer::Factor(f), Normalize::Trace | Normalize::Multiplicative) => {
                    f.is_finite()
                }
                (
                    Normalizer::Center {
                        row_means,
                        grand_mean,
                    },
                    Normalize::Center,
                ) => {
                    row_means.len() == n
                        && row_means.iter().all(|m| m.is_finite())
                        && grand_mean.is_finite()
                }
                _ => false,
            };
            if !fits {
                return wrong("the statistics of its normalisation do not fit");
            }
            if !names.insert(&kernel.name) {
                return wrong("another kernel has the same name");
            }
        }
        Ok(())
    }
}
