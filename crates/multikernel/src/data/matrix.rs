//! The two numeric matrices: dense rows and compressed sparse rows, both stored as f32.

use crate::error::{Error, Result};

/// A dense matrix, row after row.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    rows: usize,
    cols: usize,
    values: Vec<f32>,
}

impl Dense {
    /// Takes `rows × cols` finite values, row after row.
    pub fn new(rows: usize, cols: usize, values: Vec<f32>) -> Result<Self> {
        if rows.checked_mul(cols) != Some(values.len()) {
            return Err(Error::input(
                "",
                format!("{} values do not make {rows} rows of {cols}", values.len()),
                "",
            ));
        }
        if let Some(bad) = super::pairwise::first_not_finite(&values) {
            return Err(Error::input(
                format!("column {}", bad % cols + 1),
                format!("the value is {}", values[bad]),
                "give a finite number (remove the row, or fill in the missing value)",
            )
            .of_row(bad / cols));
        }
        Ok(Dense { rows, cols, values })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.cols..(i + 1) * self.cols]
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values, for reuse.
    pub(super) fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// The rows named, in that order.
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut values = Vec::with_capacity(rows.len() * self.cols);
        for &i in rows {
            values.extend_from_slice(self.row(i));
        }
        Dense {
            rows: rows.len(),
            cols: self.cols,
            values,
        }
    }
}

/// A sparse matrix in compressed rows; the column numbers of a row ascend strictly.
#[derive(Debug, Clone, PartialEq)]
pub struct Csr {
    cols: usize,
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Csr {
    /// Row `i` holds entries `starts[i]..starts[i + 1]`; everything is checked.
    pub fn new(
        cols: usize,
        starts: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<f32>,
    ) -> Result<Self> {
        let ordered = starts.first() == Some(&0)
            && starts.last() == Some(&values.len())
            && indices.len() == values.len()
            && starts.windows(2).all(|w| w[0] <= w[1]);
        if !ordered {
            return Err(Error::input(
                "",
                "the row starts of a sparse matrix do not fit its entries",
                "starts must begin at 0, not fall, and end at the number of entries",
            ));
        }
        for (i, w) in starts.windows(2).enumerate() {
            let columns = &indices[w[0]..w[1]];
            let ascending = columns.windows(2).all(|c| c[0] < c[1]);
            let inside = columns.last().is_none_or(|&c| (c as usize) < cols);
            if !ascending || !inside {
                return Err(Error::input(
                    "",
                    format!("its column numbers do not ascend within 0..{cols}"),
                    "sort them and add up repeated ones",
                )
                .of_row(i));
            }
            if let Some(k) = values[w[0]..w[1]].iter().position(|v| !v.is_finite()) {
                return Err(Error::input(
                    format!("column {}", columns[k] + 1),
                    format!("the value is {}", values[w[0] + k]),
                    "give a finite number",
                )
                .of_row(i));
            }
        }
        Ok(Csr {
            cols,
            starts,
            indices,
            values,
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Column numbers and values of row `i`.
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// The same rows with at least `cols` columns: a file of new samples may not use the last ones.
    pub fn widen(mut self, cols: usize) -> Self {
        self.cols = self.cols.max(cols);
        self
    }

    /// Every row divided by its length; empty rows stay empty.
    pub(super) fn unit_rows(mut self) -> Self {
        for w in self.starts.windows(2) {
            super::scaling::unit_length(&mut self.values[w[0]..w[1]]);
        }
        self
    }

    /// The rows named, in that order.
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut out = Csr {
            cols: self.cols,
            starts: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
        };
        for &i in rows {
            let (indices, values) = self.row(i);
            out.indices.extend_from_slice(indices);
            out.values.extend_from_slice(values);
            out.starts.push(out.indices.len());
        }
        out
    }
}
