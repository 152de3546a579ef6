//! What is to be learned: `None`, numbers, or class names with a class for each sample.

use multikernel::data::Targets;
use numpy::PyReadonlyArray1;
use pyo3::FromPyObject;

/// As Python hands it over.
#[derive(FromPyObject)]
pub(crate) enum GivenTargets<'py> {
    /// Names of the classes in order, and the class of each sample.
    Classes(Vec<String>, PyReadonlyArray1<'py, u32>),
    /// A value for each sample.
    Real(PyReadonlyArray1<'py, f64>),
}

impl GivenTargets<'_> {
    pub(crate) fn targets(given: Option<&Self>) -> Targets {
        match given {
            None => Targets::None,
            Some(GivenTargets::Classes(names, index)) => Targets::Classes {
                names: names.clone(),
                index: index.as_array().to_vec(),
            },
            Some(GivenTargets::Real(values)) => Targets::Real(values.as_array().to_vec()),
        }
    }
}
