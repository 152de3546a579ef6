//! A trained model: kernels, their weights, coefficients of some training samples, and what is needed to apply them.
//!
//! f_k(x) = Σ_m β_km Σ_j A_jk K_m(x, x_j) + b_k over the samples x_j that the model keeps; a joint problem has one β for all k. Kernels without weight are
//! dropped, and views that no kernel looks at. A model that was just trained, saved or loaded predicts by the same code
//! from the same numbers, so its scores are the same to the last bit.

mod check;
mod file;
mod make;
mod match_views;
mod predict;
mod tensors;
#[cfg(test)]
mod tests;

pub(crate) use make::{Streamed, Trained};
pub(crate) use tensors::{Stored, Tensors, damaged};

use match_views::TrainingView;

use crate::data::{Scaling, Task, Views};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Kernel, Reference};
use crate::loss::LossSpec;
use crate::measure::Calibration;
use crate::norm::NormSpec;
use serde::{Deserialize, Serialize};

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

/// The pairs of classes in the order of one-vs-one problems.
pub(crate) fn pairs(classes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..classes).flat_map(move |a| (a + 1..classes).map(move |b| (a, b)))
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

impl Model {
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
            let given = kernel.spec.kind.looks_at_matrix();
            if !kernel.spec.kind.is_composite() && !views.iter().any(|v| v.0 == kernel.view()) {
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
