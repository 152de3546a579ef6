//! The library's errors as the exceptions that Python's users expect, and panics as errors.

use multikernel::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use serde::Serialize;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Settings that this package spells otherwise than the library.
const SPELLED: [(&str, &str); 3] = [
    ("class-weight", "class_weight"),
    ("sample-weight", "sample_weight"),
    ("probabilities", "probability"),
];

/// The exception for an error: its sentence, in the words of this package.
pub(crate) fn exception(mut error: Error) -> PyErr {
    if let Error::Input(input) = &mut error
        && let Some((_, own)) = SPELLED.iter().find(|(theirs, _)| *theirs == input.place)
    {
        input.place = (*own).into();
    }
    // Options of the program have other names here.
    let text = error
        .to_string()
        .replace(
            "`indefinite` clip, shift or allow",
            "kernels='precomputed:indefinite=clip' (or shift, allow)",
        )
        .replace("`indefinite` shift", "indefinite=shift")
        .replace(
            "such as `groups` a,a,b",
            "by kernels.precomputed(matrix, group=…)",
        );
    match error {
        Error::Io { source, .. } => std::io::Error::new(source.kind(), text).into(),
        Error::Memory { .. } => PyMemoryError::new_err(text),
        Error::Stopped => PyRuntimeError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// A panic is a fault of ours; it must not end the user's session.
pub(crate) fn from_panic(payload: &(dyn Any + Send)) -> PyErr {
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    PyRuntimeError::new_err(format!(
        "multikernel failed inside ({message}); this is a fault of the package, please report it"
    ))
}

/// Short work on the calling thread: errors and panics become exceptions.
pub(crate) fn guarded<T>(work: impl FnOnce() -> multikernel::Result<T>) -> Result<T, PyErr> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(exception),
        Err(payload) => Err(from_panic(&*payload)),
    }
}

/// A value as JSON; what cannot be written so is a fault of ours.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, PyErr> {
    serde_json::to_string(value).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}
