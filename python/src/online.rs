//! A learner of a stream.

use crate::errors::{guarded, to_json};
use crate::job;
use crate::kernels::all_from_json;
use crate::model::Model;
use crate::settings::OnlineSettings;
use crate::views::Views;
use multikernel::kernel::choose;
use multikernel::observe;
use multikernel::online::{Rule, StreamSettings};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use std::path::PathBuf;

/// Examples between two looks at signals.
const BLOCK: usize = 256;

/// A learner of a stream.
#[pyclass(module = "multikernel._native")]
pub(crate) struct Online {
    inner: multikernel::online::Online,
    /// What was chosen on the way here, in sentences.
    notes: Vec<String>,
}

#[pymethods]
impl Online {
    /// A learner that has seen nothing; widths are chosen by the first samples.
    #[new]
    #[pyo3(signature = (first, kernels, settings, *, classes, seed=0, threads=1, listener=None))]
    #[allow(
        clippy::too_many_arguments,
        reason = "a function of Python with arguments that have names"
    )]
    fn new(
        py: Python<'_>,
        first: &Views,
        kernels: Vec<String>,
        settings: &OnlineSettings,
        classes: Vec<String>,
        seed: u64,
        threads: usize,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let specs = guarded(|| all_from_json(&kernels))?;
        let settings = StreamSettings {
            classes,
            ..settings.inner.clone()
        };
        let views = &first.inner;
        job::run(py, threads, listener.as_ref(), |_| {
            let (specs, notes) = choose(&specs, &[], views)?;
            let inner = multikernel::online::Online::scaled(settings, &specs, &[], views, seed)?;
            Ok(Online { inner, notes })
        })
    }

    /// Reads a state.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let inner = guarded(|| multikernel::online::Online::load(path))?;
        Ok(Online {
            inner,
            notes: Vec::new(),
        })
    }

    /// Writes the state, which is a model file too.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        guarded(|| self.inner.save(path))
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let inner = guarded(|| multikernel::online::Online::from_bytes(bytes))?;
        Ok(Online {
            inner,
            notes: Vec::new(),
        })
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &guarded(|| self.inner.to_bytes())?))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let make = py.get_type::<Online>().getattr("from_bytes")?;
        Ok((make, (self.to_bytes(py)?,)))
    }

    /// Learns examples in their order, as new ones, or as those from a number on that were seen before.
    #[pyo3(signature = (views, labels, again_from=None, threads=1, listener=None))]
    fn learn(
        &mut self,
        py: Python<'_>,
        views: &Views,
        labels: Vec<String>,
        again_from: Option<u64>,
        threads: usize,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let (online, views) = (&mut self.inner, &views.inner);
        let n = views.len();
        if labels.len() != n {
            let text = format!("y: there are {} labels for {n} samples", labels.len());
            return Err(PyValueError::new_err(text));
        }
        job::run(py, threads, listener.as_ref(), |reporter| {
            for from in (0..n).step_by(BLOCK) {
                observe::work(reporter, "learning", from, n)?;
                let rows: Vec<usize> = (from..(from + BLOCK).min(n)).collect();
                let block = views.select(&rows)?;
                let known: Vec<Option<&str>> = rows.iter().map(|&i| Some(&labels[i][..])).collect();
                match again_from {
                    Some(first) => online.learn_again(&block, &known, first + from as u64)?,
                    None => online.learn(&block, &known)?,
                };
            }
            Ok(())
        })
    }

    /// Counts what follows as one more pass over the data.
    fn begin_pass(&mut self) {
        self.inner.begin_pass();
    }

    /// What samples score, (samples, classes).
    #[pyo3(signature = (views, threads=1, listener=None))]
    fn scores<'py>(
        &self,
        py: Python<'py>,
        views: &Views,
        threads: usize,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (online, views) = (&self.inner, &views.inner);
        let (n, classes) = (views.len(), online.classes().len());
        let values = job::run(py, threads, listener.as_ref(), |reporter| {
            let mut values = Vec::with_capacity(n * classes);
            for from in (0..n).step_by(BLOCK) {
                observe::work(reporter, "predicting", from, n)?;
                let rows: Vec<usize> = (from..(from + BLOCK).min(n)).collect();
                for outcome in online.predict(&views.select(&rows)?)? {
                    match *outcome.scores {
                        // one score tells two classes apart
                        [score] if classes == 2 => values.extend([0.0, score]),
                        _ => values.extend(outcome.scores),
                    }
                }
            }
            Ok(values)
        })?;
        let array = Array2::from_shape_vec((n, classes), values)
            .map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(array.into_pyarray(py))
    }

    /// An ordinary model of what has been learned so far.
    fn snapshot(&self) -> PyResult<Model> {
        Ok(Model::from(guarded(|| self.inner.snapshot())?))
    }

    /// Everything about it that is not an array, as JSON.
    fn description(&self) -> PyResult<String> {
        let online = &self.inner;
        let kernels: Vec<serde_json::Value> = online
            .kernels()
            .iter()
            .map(|k| json!({"name": k.name, "group": k.group, "spec": k.spec}))
            .collect();
        let report = online.report();
        let (rule, notes) = (&online.settings().rule, online.notes());
        to_json(&json!({
            "classes": online.classes(),
            "kernels": kernels,
            "weights": online.weights(),
            "norms": online.group_norms(),
            "n_support": online.n_support(),
            "n_seen": online.n_seen(),
            "mistakes": report.mistakes,
            "online_error": report.online_error(),
            "updates": report.updates,
            "removed": report.removed,
            "passes": report.passes,
            "curve": report.curve.points(),
            "solver": rule.name(),
            "C": match rule {
                Rule::PassiveAggressive { c } | Rule::Omcl { c } => Some(c),
                _ => None,
            },
            "norm": online.norm(),
            "budget": online.settings().budget.map(|b| b.to_string()),
            "carried": online.carried(),
            "notes": self.notes.iter().chain(notes).collect::<Vec<_>>(),
            "warnings": online.warnings(),
        }))
    }

    /// Keeps JSON with the state.
    fn carry(&mut self, json: &str) -> PyResult<()> {
        let value = serde_json::from_str(json).map_err(|e| PyValueError::new_err(e.to_string()))?;
        self.inner.carry(value);
        Ok(())
    }
}
