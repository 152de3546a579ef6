//! Samples of a stream, and the views that their rows belong to.

use crate::data::{Csr, Dense, ViewData};
use crate::error::{Error, Result};
use crate::kernel::statistic::Size;
use crate::kernel::statistic::one_to_many::LANES;

/// What a view looks like.
#[derive(Debug, Clone)]
pub(super) struct Schema {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    /// Columns of a dense view; none if it is sparse.
    pub(super) width: Option<usize>,
}

/// A sample as the kernels see it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) rows: Vec<Row>,
    /// k_m(x, x)
    pub(super) diagonal: Vec<f64>,
    /// 1/√k_m(x, x) before spherical normalisation, 0 where that is 0; empty if no kernel needs it.
    pub(super) roots: Vec<f64>,
    /// 1/√Σx² of each view
    pub(super) units: Vec<f64>,
    pub(super) sizes: Vec<Sizes>,
}

/// A row of a view.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row {
    /// Padded with zeros to whole lanes.
    Dense(Vec<f32>),
    Sparse(Vec<u32>, Vec<f32>),
}

/// What statistics call the size of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sizes {
    /// Σx²
    pub(super) squares: f64,
    /// Σ|x|
    pub(super) absolute: f64,
}

impl Sizes {
    pub(super) fn get(&self, size: Size) -> f64 {
        match size {
            Size::Squares => self.squares,
            Size::Absolute => self.absolute,
        }
    }

    /// 1/√Σx², 0 of zeros.
    pub(super) fn to_unit(self) -> f64 {
        match self.squares > 0.0 {
            true => 1.0 / self.squares.sqrt(),
            false => 0.0,
        }
    }
}

impl Schema {
    pub(super) fn check(&self, data: &ViewData) -> Result<()> {
        let place = || format!("view '{}'", self.name);
        match (data, self.width) {
            (ViewData::Dense(x), Some(width)) if x.cols() != width => Err(Error::input(
                place(),
                format!("it has {} columns, at first it had {width}", x.cols()),
                "give every example the same columns",
            )),
            (ViewData::Dense(_), _) | (ViewData::Sparse(_), None) => Ok(()),
            (ViewData::Sparse(x), Some(width)) if x.cols() <= width => Ok(()),
            (other, _) => Err(Error::input(
                place(),
                format!("it is of kind '{}', at first it was not", other.kind()),
                "give every example the same views",
            )),
        }
    }

    /// Rows put together again, without their padding.
    pub(super) fn data<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> Result<ViewData> {
        match self.width {
            Some(width) => {
                let mut values = Vec::new();
                let mut n = 0;
                for row in rows {
                    values.extend_from_slice(&row.values()[..width]);
                    n += 1;
                }
                Ok(ViewData::Dense(Dense::new(n, width, values)?))
            }
            None => {
                let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
                for row in rows {
                    if let Row::Sparse(columns, numbers) = row {
                        indices.extend_from_slice(columns);
                        values.extend_from_slice(numbers);
                    }
                    starts.push(values.len());
                }
                let cols = indices.iter().max().map_or(1, |c| *c as usize + 1);
                Ok(ViewData::Sparse(Csr::new(cols, starts, indices, values)?))
            }
        }
    }

    /// Row `i` of a view of this kind, made ready.
    pub(super) fn row(&self, data: &ViewData, i: usize) -> Row {
        match (data, self.width) {
            (ViewData::Sparse(x), Some(width)) => {
                let mut dense = vec![0.0; width.next_multiple_of(LANES)];
                let (columns, values) = x.row(i);
                for (c, v) in columns.iter().zip(values) {
                    dense[*c as usize] = *v;
                }
                Row::Dense(dense)
            }
            (ViewData::Dense(x), None) => {
                let row = x.row(i).iter().enumerate().filter(|(_, v)| **v != 0.0);
                let (columns, values) = row.map(|(c, v)| (c as u32, *v)).unzip();
                Row::Sparse(columns, values)
            }
            _ => Row::new(data, i),
        }
    }
}

impl Row {
    fn new(data: &ViewData, i: usize) -> Row {
        match data {
            ViewData::Dense(x) => {
                let mut row = x.row(i).to_vec();
                row.resize(row.len().next_multiple_of(LANES), 0.0);
                Row::Dense(row)
            }
            ViewData::Sparse(x) => {
                let (columns, values) = x.row(i);
                Row::Sparse(columns.to_vec(), values.to_vec())
            }
            ViewData::Strings(_) | ViewData::Pairwise(_) => Row::Sparse(Vec::new(), Vec::new()),
        }
    }

    pub(super) fn values(&self) -> &[f32] {
        match self {
            Row::Dense(values) | Row::Sparse(_, values) => values,
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        let values = self.values();
        Sizes {
            squares: values.iter().map(|&v| f64::from(v) * f64::from(v)).sum(),
            absolute: values.iter().map(|&v| f64::from(v.abs())).sum(),
        }
    }
}
