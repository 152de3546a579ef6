//! The native half of the Python package: NumPy arrays in, the library's work without the GIL, NumPy arrays out.
//!
//! `job` runs work while Python stays responsive, `views` and `targets` take data in, `settings` checks
//! words, `kernels`, `model` and `online` wrap the library's nouns. What users call is in `multikernel/`, in Python.

mod errors;
mod job;
mod kernels;
mod model;
mod online;
mod settings;
mod targets;
mod views;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::kernels::{Kernels, check_kernels, parse_kernels, spec_text};
    #[pymodule_export]
    use super::model::{Alignments, Model, Start};
    #[pymodule_export]
    use super::online::Online;
    #[pymodule_export]
    use super::settings::{OnlineSettings, Settings, defaults};
    #[pymodule_export]
    use super::views::{Views, merge_copies};
    #[pymodule_export]
    use super::{kernel_kinds, panic_on_purpose, solvers};
}

/// Name, problem, paper and what it certifies of every solver, as JSON.
#[pyfunction]
fn solvers() -> PyResult<String> {
    errors::to_json(&multikernel::train::SOLVERS)
}

/// Name, formula, what it looks at and keys of every kind of kernel, as JSON.
#[pyfunction]
fn kernel_kinds() -> PyResult<String> {
    errors::to_json(&multikernel::kernel::KINDS)
}

/// Panics inside of a job: the tests see that it becomes a RuntimeError.
#[pyfunction]
fn panic_on_purpose(py: Python<'_>) -> PyResult<()> {
    job::run(py, 1, None, |_| -> multikernel::Result<()> {
        panic!("this panic was asked for")
    })
}
