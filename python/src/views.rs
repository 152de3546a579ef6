//! Named views of samples, taken from NumPy arrays in one pass: the library stores f32, so one copy is needed, and only one.

use crate::errors::guarded;
use crate::targets::GivenTargets;
use multikernel::data::{Csr, Dense, Pairwise, View, ViewData};
use multikernel::{Error, Result};
use numpy::ndarray::{ArrayView2, ArrayView3, Axis};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// A matrix of numbers as Python hands it over. The commoner type first: to find that it is another takes longer than a small view does.
#[derive(FromPyObject)]
pub(crate) enum Matrix<'py> {
    Double(PyReadonlyArray2<'py, f64>),
    Single(PyReadonlyArray2<'py, f32>),
}

/// A stack of matrices as Python hands it over.
#[derive(FromPyObject)]
pub(crate) enum Stack<'py> {
    Single(PyReadonlyArray3<'py, f32>),
    Double(PyReadonlyArray3<'py, f64>),
}

impl Matrix<'_> {
    fn shape(&self) -> (usize, usize) {
        match self {
            Matrix::Single(x) => x.as_array().dim(),
            Matrix::Double(x) => x.as_array().dim(),
        }
    }

    /// Row after row.
    fn singles(&self) -> Vec<f32> {
        fn all<T: Copy>(x: ArrayView2<'_, T>, single: impl Fn(T) -> f32) -> Vec<f32> {
            match x.as_slice() {
                Some(values) => values.iter().map(|&v| single(v)).collect(),
                None => x.iter().map(|&v| single(v)).collect(),
            }
        }
        match self {
            Matrix::Single(x) => all(x.as_array(), |v| v),
            Matrix::Double(x) => all(x.as_array(), |v| v as f32),
        }
    }

    /// Row after row, in full precision.
    pub(crate) fn doubles(&self) -> Vec<f64> {
        match self {
            Matrix::Single(x) => x.as_array().iter().map(|&v| f64::from(v)).collect(),
            Matrix::Double(x) => x.as_array().iter().copied().collect(),
        }
    }
}

impl Stack<'_> {
    /// The matrices, each row after row; `axis` counts them.
    fn matrices(&self, axis: usize) -> Vec<(usize, usize, Vec<f32>)> {
        fn all<T: Copy>(
            x: ArrayView3<'_, T>,
            axis: usize,
            single: impl Fn(T) -> f32,
        ) -> Vec<(usize, usize, Vec<f32>)> {
            let mut order = [0, 1, 2].into_iter().filter(|&a| a != axis);
            let (Some(rows), Some(cols)) = (order.next(), order.next()) else {
                return Vec::new();
            };
            let x = x.permuted_axes([axis, rows, cols]);
            let (_, n, columns) = x.dim();
            let whole =
                |m: ArrayView2<'_, T>| Some(m.as_slice()?.iter().map(|&v| single(v)).collect());
            let whole: Option<Vec<Vec<f32>>> = x.axis_iter(Axis(0)).map(whole).collect();
            if let Some(stack) = whole {
                return stack.into_iter().map(|m| (n, columns, m)).collect();
            }
            let mut stack: Vec<Vec<f32>> = x
                .axis_iter(Axis(0))
                .map(|_| Vec::with_capacity(n * columns))
                .collect();
            // Row by row over all matrices: where kernels stand last, a row of all of them lies together in memory.
            for row in x.axis_iter(Axis(1)) {
                for (values, row) in stack.iter_mut().zip(row.axis_iter(Axis(0))) {
                    values.extend(row.iter().map(|&v| single(v)));
                }
            }
            stack.into_iter().map(|m| (n, columns, m)).collect()
        }
        match self {
            Stack::Single(x) => all(x.as_array(), axis, |v| v),
            Stack::Double(x) => all(x.as_array(), axis, |v| v as f32),
        }
    }
}

/// Samples described by named views.
#[pyclass(module = "multikernel._native", frozen)]
pub(crate) struct Views {
    pub(crate) inner: multikernel::data::Views,
    /// What was changed on the way in, in sentences.
    notes: Vec<String>,
}

/// A view as Python hands it over: name, names of the columns (or none), and the data.
#[derive(FromPyObject)]
enum Part<'py> {
    Strings(String, Vec<PyBackedBytes>),
    Dense(String, Vec<String>, Matrix<'py>),
    Sparse(
        String,
        Vec<String>,
        usize,
        PyReadonlyArray1<'py, i64>,
        PyReadonlyArray1<'py, i64>,
        PyReadonlyArray1<'py, f32>,
    ),
}

#[pymethods]
impl Views {
    /// Views of features: tuples (name, strings), (name, columns, array), or
    /// (name, columns, width, starts, indices, values) for a sparse matrix.
    #[new]
    fn new(parts: Vec<Part<'_>>) -> PyResult<Self> {
        guarded(|| {
            let mut inner = multikernel::data::Views::default();
            for part in parts {
                inner.push(part.view()?)?;
            }
            Ok(Views {
                inner,
                notes: Vec::new(),
            })
        })
    }

    /// The same samples with given matrices as well. Training matrices must be symmetric.
    fn with_matrices(
        &self,
        names: Vec<String>,
        matrices: Vec<Matrix<'_>>,
        training: bool,
    ) -> PyResult<Self> {
        guarded(|| {
            let parts = matrices.iter().map(|matrix| {
                let (rows, cols) = matrix.shape();
                (rows, cols, matrix.singles())
            });
            self.with_given(names, parts, training)
        })
    }

    /// The same samples with the matrices of a stack as well, along this axis.
    fn with_stack(
        &self,
        names: Vec<String>,
        stack: Stack<'_>,
        axis: usize,
        training: bool,
    ) -> PyResult<Self> {
        guarded(|| self.with_given(names, stack.matrices(axis).into_iter(), training))
    }

    /// The samples named; given matrices keep the columns named.
    fn part(&self, rows: Vec<usize>, columns: Vec<usize>) -> PyResult<Self> {
        guarded(|| {
            Ok(Views {
                inner: self.inner.part(&rows, &columns)?,
                notes: Vec::new(),
            })
        })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner.iter().map(|view| view.name.clone()).collect()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

impl Views {
    fn with_given(
        &self,
        names: Vec<String>,
        matrices: impl Iterator<Item = (usize, usize, Vec<f32>)>,
        training: bool,
    ) -> Result<Self> {
        let mut inner = self.inner.clone();
        let mut notes = self.notes.clone();
        for (name, (rows, cols, values)) in names.into_iter().zip(matrices) {
            let place = format!("kernel matrix '{name}'");
            let mut matrix =
                Pairwise::new(rows, cols, values).map_err(|error| error.within(&place))?;
            if training {
                if rows != cols {
                    return Err(Error::input(
                        place,
                        format!("it has the shape ({rows}, {cols})"),
                        "a kernel between training samples must be square (n, n)",
                    ));
                }
                let note;
                (matrix, note) = matrix.into_symmetric(&name, &place, &())?;
                notes.extend(note);
            }
            inner.push(View {
                name,
                columns: Vec::new(),
                data: ViewData::Pairwise(matrix),
            })?;
        }
        Ok(Views { inner, notes })
    }
}

impl Part<'_> {
    fn view(self) -> Result<View> {
        let place = |name: &str| format!("view '{name}'");
        Ok(match self {
            Part::Strings(name, strings) => View {
                name,
                columns: Vec::new(),
                data: ViewData::Strings(strings.iter().map(|s| s.to_vec()).collect()),
            },
            Part::Dense(name, columns, matrix) => {
                let (rows, cols) = matrix.shape();
                let dense = Dense::new(rows, cols, matrix.singles())
                    .map_err(|error| error.within(&place(&name)))?;
                View {
                    name,
                    columns,
                    data: ViewData::Dense(dense),
                }
            }
            Part::Sparse(name, columns, width, starts, indices, values) => {
                let wrong = || {
                    Error::input(
                        place(&name),
                        "its column numbers are negative or too large",
                        "give a matrix in SciPy's CSR form",
                    )
                };
                let starts: Option<Vec<usize>> = starts
                    .as_array()
                    .iter()
                    .map(|&s| usize::try_from(s).ok())
                    .collect();
                let indices: Option<Vec<u32>> = indices
                    .as_array()
                    .iter()
                    .map(|&s| u32::try_from(s).ok())
                    .collect();
                let csr = Csr::new(
                    width,
                    starts.ok_or_else(wrong)?,
                    indices.ok_or_else(wrong)?,
                    values.as_array().to_vec(),
                )
                .map_err(|error| error.within(&place(&name)))?;
                View {
                    name,
                    columns,
                    data: ViewData::Sparse(csr),
                }
            }
        })
    }
}

/// The rows and weights of the samples without copies and without samples of weight 0; none if nothing would change.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "a tuple of two arrays for Python")]
pub(crate) fn merge_copies<'py>(
    py: Python<'py>,
    views: &Views,
    targets: Option<GivenTargets<'py>>,
    sample_weight: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Option<(Bound<'py, PyArray1<usize>>, Bound<'py, PyArray1<f64>>)>> {
    let targets = GivenTargets::targets(targets.as_ref());
    let weights = sample_weight.map(|w| w.as_array().to_vec());
    let merged = guarded(|| {
        Ok(multikernel::data::merge_copies(
            &views.inner,
            &targets,
            weights.as_deref(),
        ))
    })?;
    Ok(merged.map(|merged| {
        (
            PyArray1::from_vec(py, merged.rows),
            PyArray1::from_vec(py, merged.weights),
        )
    }))
}
