//! Rows of numbers, dense or sparse, seen alike.

use crate::data::Csr;
use crate::error::Result;
use crate::huge_pages::zeros;
use rayon::prelude::*;
use std::borrow::Cow;

/// Values that a task copies.
const COPIED: usize = 1 << 18;

/// Rows of numbers in either form.
pub(super) enum Numbers<'a> {
    Dense {
        width: usize,
        rows: usize,
        values: &'a [f32],
    },
    Sparse(Cow<'a, Csr>),
}

impl Numbers<'_> {
    pub(super) fn rows(&self) -> usize {
        match self {
            Numbers::Dense { rows, .. } => *rows,
            Numbers::Sparse(x) => x.rows(),
        }
    }

    pub(super) fn width(&self) -> usize {
        match self {
            Numbers::Dense { width, .. } => *width,
            Numbers::Sparse(x) => x.cols(),
        }
    }

    /// The stored values of row i.
    pub(super) fn values(&self, i: usize) -> &[f32] {
        match self {
            Numbers::Dense { width, values, .. } => &values[i * width..(i + 1) * width],
            Numbers::Sparse(x) => x.row(i).1,
        }
    }

    /// The stored values of row i with their columns.
    pub(super) fn row(&self, i: usize) -> impl Iterator<Item = (usize, f32)> {
        let (columns, values) = match self {
            Numbers::Dense { width, values, .. } => (None, &values[i * width..(i + 1) * width]),
            Numbers::Sparse(x) => {
                let (columns, values) = x.row(i);
                (Some(columns), values)
            }
        };
        values
            .iter()
            .enumerate()
            .map(move |(at, &x)| (columns.map_or(at, |columns| columns[at] as usize), x))
    }

    pub(super) fn to_dense_copy(&self) -> Vec<f32> {
        match self.to_dense() {
            Cow::Owned(values) => values,
            Cow::Borrowed(values) => {
                let mut copy = zeros(values.len());
                copy.par_chunks_mut(COPIED)
                    .zip(values.par_chunks(COPIED))
                    .for_each(|(copy, values)| copy.copy_from_slice(values));
                copy
            }
        }
    }

    pub(super) fn to_dense(&self) -> Cow<'_, [f32]> {
        match self {
            Numbers::Dense { values, .. } => Cow::Borrowed(values),
            Numbers::Sparse(x) => {
                let mut values = vec![0.0; x.rows() * x.cols()];
                for i in 0..x.rows() {
                    let (columns, row) = x.row(i);
                    for (&column, &value) in columns.iter().zip(row) {
                        values[i * x.cols() + column as usize] = value;
                    }
                }
                Cow::Owned(values)
            }
        }
    }

    pub(super) fn to_sparse(&self) -> Result<Cow<'_, Csr>> {
        match self {
            Numbers::Sparse(x) => Ok(Cow::Borrowed(x)),
            Numbers::Dense { .. } => {
                let mut starts = vec![0];
                let (mut indices, mut values) = (Vec::new(), Vec::new());
                for i in 0..self.rows() {
                    for (column, x) in self.row(i).filter(|&(_, x)| x != 0.0) {
                        // The reference is sparse and as wide, so its columns are numbered in u32 too.
                        indices.push(column as u32);
                        values.push(x);
                    }
                    starts.push(indices.len());
                }
                Ok(Cow::Owned(Csr::new(self.width(), starts, indices, values)?))
            }
        }
    }
}
