//! A trained model, and how its training went.

use crate::errors::{guarded, to_json};
use crate::job;
use crate::views::Views;
use multikernel::data::ViewData;
use multikernel::inspect::KernelSample;
use multikernel::measure::Scores;
use multikernel::observe::{self, Observer};
use multikernel::pipeline::Outcome;
use multikernel::problem::relative_gap;
use multikernel::record::Evaluation;
use multikernel::select::{Bootstrap, Known, evaluate};
use multikernel::train::WarmStart;
use multikernel::{Error, Result};
use numpy::ndarray::Array2;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Samples that are predicted between two looks at signals.
const BLOCK: usize = 1024;
/// Samples are predicted in multiples of this number. Matrix products of a few rows round otherwise than those of many, and a
/// sample's score must not depend on its company.
const ROWS: usize = 64;

/// A trained model.
#[pyclass(module = "multikernel._native")]
pub(crate) struct Model {
    inner: multikernel::Model,
}

impl From<multikernel::Model> for Model {
    fn from(inner: multikernel::Model) -> Self {
        Model { inner }
    }
}

#[pymethods]
impl Model {
    /// Reads a model file.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        Ok(guarded(|| multikernel::Model::load(path))?.into())
    }

    /// Writes the model file.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        guarded(|| self.inner.save(path))
    }

    /// A model from the bytes of a model file.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        Ok(guarded(|| multikernel::Model::from_bytes(bytes))?.into())
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &guarded(|| self.inner.to_bytes())?))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let make = py.get_type::<Model>().getattr("from_bytes")?;
        Ok((make, (self.to_bytes(py)?,)))
    }

    /// What new samples score, (samples, scores), and what was changed to make them fit, in sentences.
    #[pyo3(signature = (views, threads=1, listener=None))]
    fn scores<'py>(
        &self,
        py: Python<'py>,
        views: &Views,
        threads: usize,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Vec<String>)> {
        let model = &self.inner;
        let given = views.inner.clone();
        let (scores, notes) = job::run(py, threads, listener.as_ref(), |reporter| {
            let (views, notes) = model.arrange(given)?;
            Ok((all_scores(model, &views, reporter)?, notes))
        })?;
        Ok((scores.into_pyarray(py), notes))
    }

    /// Keeps JSON with the model.
    fn set_training(&mut self, json: &str) -> PyResult<()> {
        let value = serde_json::from_str(json).map_err(|e| PyValueError::new_err(e.to_string()))?;
        self.inner.set_training(value);
        Ok(())
    }

    /// What the model is worth by these scores, (samples, scores), as JSON. Classes are positions among the model's, negative where
    /// it does not know them; without classes and values nothing is known.
    #[pyo3(signature = (scores, classes, values, samples, seed=0, threads=1))]
    #[allow(
        clippy::too_many_arguments,
        reason = "a function of Python with arguments that have names"
    )]
    fn evaluation(
        &self,
        py: Python<'_>,
        scores: PyReadonlyArray2<'_, f64>,
        classes: Option<PyReadonlyArray1<'_, i64>>,
        values: Option<PyReadonlyArray1<'_, f64>>,
        samples: String,
        seed: u64,
        threads: usize,
    ) -> PyResult<String> {
        let model = &self.inner;
        let (n, width) = (scores.shape()[0], scores.shape()[1]);
        let names = score_names(model, width);
        let known = classes.as_ref().map(|c| c.len());
        let known = known.or(values.as_ref().map(|v| v.len()));
        if known.unwrap_or(n) != n || width != names.len() {
            return Err(PyValueError::new_err(format!(
                "y: there are {} targets for {n} samples",
                known.unwrap_or(0)
            )));
        }
        let scores = Scores {
            names,
            values: scores.as_array().iter().copied().collect(),
        };
        let known = match (classes, values) {
            (Some(classes), _) => Known::Classes(
                classes
                    .as_array()
                    .iter()
                    .map(|&c| {
                        u32::try_from(c)
                            .ok()
                            .filter(|c| (*c as usize) < model.classes().len())
                    })
                    .collect(),
            ),
            (None, Some(values)) => Known::Real(values.as_array().to_vec()),
            (None, None) => Known::Nothing,
        };
        let bootstrap = Bootstrap {
            seed,
            ..Bootstrap::default()
        };
        let evaluation = job::run(py, threads, None, |_| {
            Ok(Evaluation {
                given: true,
                ..evaluate(model, &scores, known.truth(), samples, &bootstrap)
            })
        })?;
        to_json(&evaluation)
    }

    /// The report, a page of HTML.
    fn report_html(&self) -> String {
        multikernel_report::html(&self.inner)
    }

    /// Gives the model probabilities (JSON, as in the model file), or takes them away.
    fn set_calibration(&mut self, json: Option<&str>) -> PyResult<()> {
        let parsed = json.map(serde_json::from_str).transpose();
        let calibration = parsed.map_err(|e| PyValueError::new_err(e.to_string()))?;
        guarded(|| self.inner.set_calibration(calibration))
    }

    /// Probabilities, (samples, classes), by scores, (samples, scores); none where the model has none.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        scores: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let scores = Scores {
            names: score_names(&self.inner, scores.shape()[1]),
            values: scores.as_array().iter().copied().collect(),
        };
        let found = self.inner.probabilities(&scores);
        found
            .map(|p| matrix(py, &p, self.inner.classes().len()))
            .transpose()
    }

    /// Everything about the model that is not an array, as JSON.
    fn description(&self) -> PyResult<String> {
        let model = &self.inner;
        let kernels: Vec<serde_json::Value> = model
            .kernels()
            .iter()
            .map(|k| json!({"name": k.name, "group": k.group, "spec": k.spec}))
            .collect();
        let needed: Vec<serde_json::Value> = model
            .needed_views()
            .iter()
            .map(|&(name, given)| {
                let view = model.samples().get(name);
                let (kind, width) = match view.map(|v| &v.data) {
                    Some(ViewData::Dense(x)) => ("dense", Some(x.cols())),
                    Some(ViewData::Sparse(x)) => ("sparse", Some(x.cols())),
                    Some(ViewData::Strings(_)) => ("strings", None),
                    _ => ("matrix", None),
                };
                let columns = view.map(|v| v.columns.clone()).unwrap_or_default();
                json!({"name": name, "given": given, "kind": kind, "width": width, "columns": columns})
            })
            .collect();
        to_json(&json!({
            "task": model.task(),
            "scheme": model.scheme(),
            "classes": model.classes(),
            "loss": model.loss(),
            "norm": model.norm(),
            "C": model.c(),
            "bias": model.has_bias(),
            "n_training": model.n_training(),
            "kernels": kernels,
            "views": needed,
            "calibration": model.calibration(),
            "training": model.training(),
        }))
    }

    /// Rows of the training data that are kept.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<usize>> {
        PyArray1::from_slice(py, self.inner.columns())
    }

    /// Coefficients of the samples kept, (samples, scores).
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let values = self.inner.coefficients();
        matrix(py, values, self.inner.n_scores())
    }

    /// One bias for each score.
    #[getter]
    fn biases<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.inner.biases())
    }

    /// Weights of the kernels kept, (problems, kernels).
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let all: Vec<f64> = (0..self.inner.n_problems())
            .flat_map(|k| self.inner.weights(k))
            .copied()
            .collect();
        matrix(py, &all, self.inner.kernels().len())
    }
}

fn matrix<'py>(
    py: Python<'py>,
    values: &[f64],
    columns: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let rows = values.len() / columns.max(1);
    let array = Array2::from_shape_vec((rows, columns), values.to_vec())
        .map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(array.into_pyarray(py))
}

/// The names of a model's scores, by their number.
fn score_names(model: &multikernel::Model, width: usize) -> Vec<String> {
    match model.classes() {
        [_, second] if width == 1 => vec![second.clone()],
        classes if width == classes.len() => classes.to_vec(),
        _ => vec!["score".into()],
    }
}

/// The scores of all samples, block after block, so that a signal is seen in between.
fn all_scores(
    model: &multikernel::Model,
    views: &multikernel::data::Views,
    observer: &dyn Observer,
) -> Result<Array2<f64>> {
    let n = views.len();
    let mut values = Vec::new();
    for from in (0..n).step_by(BLOCK) {
        observe::work(observer, "predicting", from, n)?;
        let last = (from + BLOCK).min(n);
        let padded = (last - from).next_multiple_of(ROWS);
        let rows: Vec<usize> = (from..from + padded).map(|i| i.min(last - 1)).collect();
        let scores = model.scores(&views.select(&rows)?)?;
        let columns = scores.names.len();
        values.extend(&scores.values[..(last - from) * columns]);
    }
    let columns = values.len() / n.max(1);
    Array2::from_shape_vec((n, columns), values)
        .map_err(|e| Error::input("", format!("scores do not fit their shape ({e})"), ""))
}

/// Where another training on the same kernels may start.
#[pyclass(module = "multikernel._native", name = "WarmStart", frozen)]
pub(crate) struct Start {
    pub(crate) inner: Arc<WarmStart>,
}

/// How the kernels of a training resemble the targets and each other, not computed yet.
#[pyclass(module = "multikernel._native", frozen)]
pub(crate) struct Alignments {
    sample: KernelSample,
}

#[pymethods]
impl Alignments {
    /// As JSON.
    fn json(&self, py: Python<'_>, threads: usize) -> PyResult<String> {
        let found = job::run(py, threads, None, |_| Ok(self.sample.alignments()))?;
        to_json(&found)
    }
}

/// How a training went.
#[derive(IntoPyObject)]
pub(crate) struct Training {
    /// The result object, as JSON.
    result: String,
    /// What was chosen automatically, in sentences.
    notes: Vec<String>,
    history: Py<PyDict>,
    /// What a report shows besides, as JSON.
    record: String,
    /// What it shows of how the kernels resemble each other, when it is asked for.
    alignments: Option<Py<Alignments>>,
    /// None where the next training cannot start from this one.
    start: Option<Py<Start>>,
}

impl Training {
    pub(crate) fn new(py: Python<'_>, outcome: &mut Outcome) -> PyResult<Self> {
        let start = WarmStart::of(&outcome.fitted);
        let sample = outcome.sample.take();
        let fitted = &outcome.fitted;
        let looks = || {
            let problems = fitted.problems.iter().enumerate();
            problems.flat_map(|(k, p)| p.history.iter().enumerate().map(move |(r, l)| (k, r, l)))
        };
        let history = PyDict::new(py);
        let numbers = |f: fn(&multikernel::problem::Round) -> f64| {
            PyArray1::from_vec(py, looks().map(|(_, _, look)| f(look)).collect())
        };
        let problem: Vec<usize> = looks().map(|(problem, _, _)| problem).collect();
        let round: Vec<usize> = looks().map(|(_, round, _)| round + 1).collect();
        let steps: Vec<u64> = looks().map(|(_, _, look)| look.steps).collect();
        history.set_item("problem", PyArray1::from_vec(py, problem))?;
        history.set_item("round", PyArray1::from_vec(py, round))?;
        history.set_item("seconds", numbers(|look| look.seconds))?;
        history.set_item("primal", numbers(|look| look.primal))?;
        history.set_item("dual", numbers(|look| look.dual))?;
        history.set_item("gap", numbers(|look| relative_gap(look.primal, look.dual)))?;
        history.set_item("steps", PyArray1::from_vec(py, steps))?;
        let start = start.map(|start| Start {
            inner: Arc::new(start),
        });
        Ok(Training {
            result: to_json(&outcome.result)?,
            notes: std::mem::take(&mut outcome.notes),
            history: history.unbind(),
            record: to_json(&outcome.record)?,
            alignments: sample
                .map(|sample| Py::new(py, Alignments { sample }))
                .transpose()?,
            start: start.map(|start| Py::new(py, start)).transpose()?,
        })
    }
}
