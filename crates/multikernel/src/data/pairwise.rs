//! A given matrix of numbers between samples: a precomputed kernel or a distance.

use crate::error::{Error, Result};
use std::sync::Arc;

/// One number for each pair (row sample, reference sample). For training data the references are the samples
/// themselves and the matrix is square and symmetric; for new data they are the training samples.
///
/// The values are shared, so that clones and views of it cost nothing.
#[derive(Debug, Clone)]
pub struct Pairwise {
    rows: usize,
    cols: usize,
    values: Arc<Vec<f32>>,
}

impl Pairwise {
    /// Takes `rows × cols` finite values, row after row.
    pub fn new(rows: usize, cols: usize, values: Vec<f32>) -> Result<Self> {
        if rows.checked_mul(cols) != Some(values.len()) {
            return Err(Error::input(
                "",
                format!("{} values do not make {rows} rows of {cols}", values.len()),
                "",
            ));
        }
        if let Some(bad) = values.iter().position(|v| !v.is_finite()) {
            return Err(Error::input(
                format!("row {}, column {}", bad / cols + 1, bad % cols + 1),
                format!("the value is {}", values[bad]),
                "give a finite number",
            ));
        }
        Ok(Pairwise {
            rows,
            cols,
            values: Arc::new(values),
        })
    }

    /// Number of row samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of reference samples.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.cols..(i + 1) * self.cols]
    }
}
