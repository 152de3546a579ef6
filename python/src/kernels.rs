//! Kernels fitted to training samples: their matrices, their alignments, and training on them.

use crate::errors::{guarded, to_json};
use crate::job;
use crate::model::{Model, Start, Training};
use crate::settings::Settings;
use crate::targets::GivenTargets;
use crate::views::Views;
use multikernel::data::Targets;
use multikernel::gram::{Gram, Indefinite, KernelSet, Options};
use multikernel::inspect::{ALIGNED_SAMPLES, inspect_kernels};
use multikernel::kernel::{KernelSpec, choose};
use multikernel::machine::memory_to_use;
use multikernel::observe::Observer;
use multikernel::pipeline;
use multikernel::train::{ClassWeight, Mkl, leave_one_out};
use multikernel::{Error, Result};
use numpy::ndarray::{Array2, Array3};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyReadonlyArray1};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::time::Instant;

/// Alignments of fewer samples say little.
const FEWEST_ALIGNED: usize = 50;
/// Bytes that an estimator may keep for alignments that nobody has asked for yet.
const KEPT_FOR_ALIGNMENTS: usize = 8 << 20;

/// The kernels of a SPEC string, each as JSON.
#[pyfunction]
pub(crate) fn parse_kernels(spec: &str) -> PyResult<Vec<String>> {
    let specs = guarded(|| KernelSpec::parse(spec))?;
    specs.iter().map(to_json).collect()
}

/// A kernel in JSON as a SPEC string.
#[pyfunction]
pub(crate) fn spec_text(json: &str) -> PyResult<String> {
    guarded(|| Ok(from_json(json)?.to_string()))
}

/// Refuses kernels (JSON) that cannot be, and words for indefinite matrices that mean nothing, before there are samples.
#[pyfunction]
pub(crate) fn check_kernels(kernels: Vec<String>, indefinite: &str) -> PyResult<()> {
    guarded(|| {
        all_from_json(&kernels)?;
        wish(indefinite)?;
        Ok(())
    })
}

/// What to do with matrices that are not positive semidefinite.
fn wish(indefinite: &str) -> Result<Indefinite> {
    match indefinite {
        "error" => Ok(Indefinite::Error),
        other => other.parse(),
    }
}

pub(crate) fn all_from_json(kernels: &[String]) -> Result<Vec<KernelSpec>> {
    kernels.iter().map(|kernel| from_json(kernel)).collect()
}

fn from_json(json: &str) -> Result<KernelSpec> {
    serde_json::from_str(json).map_err(|error| {
        // The sentence is the library's; the position in the JSON means nothing to the user.
        let text = error.to_string();
        let end = text.rfind(" at line ").unwrap_or(text.len());
        Error::input("kernels", text[..end].to_owned(), "")
    })
}

/// Kernels fitted to training samples.
#[pyclass(module = "multikernel._native", frozen)]
pub(crate) struct Kernels {
    set: KernelSet,
    /// What was chosen on the way here, in sentences.
    notes: Vec<String>,
    /// Seconds that it took.
    seconds: f64,
}

#[pymethods]
impl Kernels {
    /// Fits kernels (JSON; none: the default bank) to samples.
    #[new]
    #[pyo3(signature = (views, kernels, indefinite="error", seed=0, threads=1, listener=None))]
    fn new(
        py: Python<'_>,
        views: &Views,
        kernels: Vec<String>,
        indefinite: &str,
        seed: u64,
        threads: usize,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let (specs, indefinite) = guarded(|| Ok((all_from_json(&kernels)?, wish(indefinite)?)))?;
        let options = Options {
            memory: memory_to_use(),
            seed,
            indefinite,
        };
        let views = &views.inner;
        job::run(py, threads, listener.as_ref(), |reporter| {
            let begin = Instant::now();
            let (specs, notes) = choose(&specs, &[], views)?;
            let set = KernelSet::new(&specs, views, &options, reporter)?;
            Ok(Kernels {
                set,
                notes,
                seconds: begin.elapsed().as_secs_f64(),
            })
        })
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.set.kernels().iter().map(|k| k.name.clone()).collect()
    }

    #[getter]
    fn groups(&self) -> Vec<String> {
        self.set.kernels().iter().map(|k| k.group.clone()).collect()
    }

    /// The fitted kernels, each as JSON.
    #[getter]
    fn specs(&self) -> PyResult<Vec<String>> {
        let kernels = self.set.kernels().iter();
        kernels.map(|k| to_json(&k.spec)).collect()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.iter().chain(self.set.notes()).cloned().collect()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.set.warnings().to_vec()
    }

    /// All matrices, (kernels, rows, training samples): of the training samples, or of new ones.
    #[pyo3(signature = (rows=None, threads=1, listener=None))]
    fn matrices<'py>(
        &self,
        py: Python<'py>,
        rows: Option<&Views>,
        threads: usize,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let array = job::run(py, threads, listener.as_ref(), |reporter| {
            let cross = rows.map(|views| self.set.cross(&views.inner)).transpose()?;
            stacked(cross.as_ref().unwrap_or_else(|| self.set.gram()), reporter)
        })?;
        Ok(array.into_pyarray(py))
    }

    /// Centred alignment of every kernel with the targets (empty without), and of every pair of kernels.
    #[pyo3(signature = (targets=None, threads=1, listener=None))]
    #[allow(clippy::type_complexity, reason = "a tuple of two arrays for Python")]
    fn alignments<'py>(
        &self,
        py: Python<'py>,
        targets: Option<GivenTargets<'py>>,
        threads: usize,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f32>>)> {
        let targets = GivenTargets::targets(targets.as_ref());
        let (own, pairs) = job::run(py, threads, listener.as_ref(), |reporter| {
            check_count(&targets, self.set.gram().n_rows())?;
            let report = inspect_kernels(self.set.gram(), self.set.kernels(), &targets, reporter)?;
            let own: Vec<f64> = report
                .kernels
                .iter()
                .filter_map(|k| k.target_alignment)
                .collect();
            let m = report.kernels.len();
            let pairs = report.alignments.concat();
            let pairs = Array2::from_shape_vec((m, m), pairs).map_err(shape)?;
            Ok((own, pairs))
        })?;
        Ok((own.into_pyarray(py), pairs.into_pyarray(py)))
    }

    /// Leave-one-out error of each kernel by itself.
    #[pyo3(signature = (targets, c, threads=1, listener=None))]
    fn leave_one_out<'py>(
        &self,
        py: Python<'py>,
        targets: Option<GivenTargets<'py>>,
        c: f64,
        threads: usize,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let targets = GivenTargets::targets(targets.as_ref());
        let errors = job::run(py, threads, listener.as_ref(), |reporter| {
            check_count(&targets, self.set.gram().n_rows())?;
            leave_one_out(self.set.gram(), &targets, c, reporter)
        })?;
        Ok(errors.into_pyarray(py))
    }

    /// Trains on these kernels; `start` is the result for another C or norm, `look` asks for warnings and what a report shows
    /// of kernels, `probability` for a model with probabilities.
    #[pyo3(signature = (targets, settings, *, class_weight=None, sample_weight=None, training_rows=None, start=None, look=false,
        probability=false, threads=1, listener=None))]
    #[allow(
        clippy::too_many_arguments,
        reason = "a function of Python with arguments that have names"
    )]
    fn fit<'py>(
        &self,
        py: Python<'py>,
        targets: Option<GivenTargets<'py>>,
        settings: &Settings,
        class_weight: Option<GivenClassWeight>,
        sample_weight: Option<PyReadonlyArray1<'py, f64>>,
        training_rows: Option<(Vec<usize>, usize)>,
        start: Option<&Start>,
        look: bool,
        probability: bool,
        threads: usize,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<(Model, Training)> {
        let mkl = Mkl {
            class_weight: match class_weight {
                None => ClassWeight::None,
                Some(GivenClassWeight::Word(word)) => guarded(|| word.parse())?,
                Some(GivenClassWeight::Each(weights)) => ClassWeight::Given(weights),
            },
            sample_weight: sample_weight.map(|w| w.as_array().to_vec()),
            start: start.map(|start| start.inner.clone()),
            ..settings.mkl.clone()
        };
        let targets = GivenTargets::targets(targets.as_ref());
        let each = 4 * self.set.gram().n_families().max(1);
        let most = (KEPT_FOR_ALIGNMENTS / each).isqrt();
        let training = pipeline::Training {
            seed: mkl.stochastic.seed,
            memory: &memory_to_use,
            probabilities: probability,
            aligned: look.then(|| most.clamp(FEWEST_ALIGNED, ALIGNED_SAMPLES)),
            notes: self.notes.clone(),
            mkl,
            ..pipeline::Training::default()
        };
        let mut outcome = job::run(py, threads, listener.as_ref(), |reporter| {
            check_count(&targets, self.set.gram().n_rows())?;
            training.run_on(&self.set, &targets, reporter)
        })?;
        let seconds = &mut outcome.result.seconds;
        seconds.kernels += self.seconds;
        seconds.total += self.seconds;
        if let Some((rows, n)) = training_rows {
            guarded(|| outcome.fitted.model.trained_on(&rows, n))?;
        }
        let training = Training::new(py, &mut outcome)?;
        Ok((Model::from(outcome.fitted.model), training))
    }
}

/// `balanced`, or a weight for each class named.
#[derive(FromPyObject)]
enum GivenClassWeight {
    Word(String),
    Each(BTreeMap<String, f64>),
}

/// All matrices of a Gram.
fn stacked(gram: &Gram, observer: &dyn Observer) -> Result<Array3<f32>> {
    let (m, rows, cols) = (gram.n_kernels(), gram.n_rows(), gram.n_cols());
    let needed = (m as u64)
        .saturating_mul(rows as u64)
        .saturating_mul(cols as u64 * 4);
    let available = memory_to_use();
    if needed > available {
        return Err(Error::Memory {
            what: format!("{m} kernel matrices of {rows} rows and {cols} columns"),
            needed,
            available,
            remedy: "take fewer kernels or samples".into(),
        });
    }
    let values = gram.matrices(observer)?;
    Array3::from_shape_vec((m, rows, cols), values).map_err(shape)
}

fn shape(error: numpy::ndarray::ShapeError) -> Error {
    Error::input(
        "",
        format!("the result does not fit its shape ({error})"),
        "",
    )
}

/// Targets and samples must be as many.
fn check_count(targets: &Targets, n: usize) -> Result<()> {
    let found = match targets {
        Targets::None => return Ok(()),
        Targets::Classes { index, .. } => index.len(),
        Targets::Real(values) => values.len(),
    };
    if found == n {
        return Ok(());
    }
    Err(Error::input(
        "y",
        format!("there are {found} targets for {n} samples"),
        "give one for each sample, in the same order",
    ))
}
