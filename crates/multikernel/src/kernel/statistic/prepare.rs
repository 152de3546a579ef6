//! Making views ready: checks that the statistic can look at the view, and the layout its block routine wants.

use super::formulas::Size;
use super::numbers::Numbers;
use super::{Of, Operand, Samples, Statistic, panels, product, sparse, spectrum, weighted_degree};
use crate::data::{Pairwise, ViewData};
use crate::error::{Error, Result};
use crate::math::sum_of_squares;
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

/// Sizes up to this leave room for sums of four of them in f32.
const LARGEST_SIZE: f64 = f32::MAX as f64 / 8.0;
/// Squares below this (all of a view's) are lost in f32.
const SMALLEST_SQUARE: f64 = 1e-30;
/// When at least one entry in this many is not 0, dense products beat the inverted index, and need no more memory.
const DENSE_FROM: usize = 6;

impl Statistic {
    /// Makes a view ready. New samples are made ready with the operand of the training samples as `reference`.
    ///
    /// Errors name rows and columns; the caller adds the name of the view.
    pub fn prepare(self, view: &ViewData, reference: Option<&Operand>) -> Result<Operand> {
        if let Some(reference) = reference
            && reference.statistic != self
        {
            return Err(Error::input(
                "",
                format!(
                    "{} was asked for, but the training samples were made ready for {}",
                    self.about().name,
                    reference.statistic.about().name
                ),
                "use one statistic for both",
            ));
        }
        match (self, self.about().of, view) {
            (_, Of::GivenMatrix, ViewData::Pairwise(matrix)) => given(matrix, reference),
            (Statistic::Spectrum { k }, _, ViewData::Strings(strings)) => {
                spectrum(k, strings, reference)
            }
            (Statistic::WeightedDegree { degree, shift }, _, ViewData::Strings(strings)) => {
                let training = match reference.map(|reference| &reference.samples) {
                    Some(Samples::Strings(strings)) => Some(strings),
                    _ => None,
                };
                let strings = weighted_degree::Strings::new(degree, shift, strings, training)?;
                Ok(Operand {
                    samples: Samples::Strings(strings),
                    ..Operand::without_sizes(self, reference)
                })
            }
            (_, Of::Numbers, ViewData::Dense(x)) => {
                let numbers = Numbers::Dense {
                    width: x.cols(),
                    values: x.values(),
                    rows: x.rows(),
                };
                numeric(self, numbers, None, reference)
            }
            (_, Of::Numbers, ViewData::Sparse(x)) => {
                numeric(self, Numbers::Sparse(Cow::Borrowed(x)), None, reference)
            }
            _ => Err(self.wrong_kind(view)),
        }
    }

    fn wrong_kind(self, view: &ViewData) -> Error {
        let needed = match self.about().of {
            Of::GivenMatrix => "a given matrix",
            Of::Strings => "strings",
            Of::Numbers => "numbers (a dense or a sparse view)",
        };
        let kind = match view {
            ViewData::Dense(_) | ViewData::Sparse(_) => "numbers",
            ViewData::Strings(_) => "strings",
            ViewData::Pairwise(_) => "a given matrix",
        };
        let name = self.about().name;
        Error::input(
            "",
            format!("{name} needs {needed} but the view is {kind}"),
            "name another view or kernel",
        )
    }
}

impl Operand {
    /// One of no samples, for statistics that need no sizes.
    fn without_sizes(statistic: Statistic, reference: Option<&Operand>) -> Operand {
        Operand {
            statistic,
            training: reference.is_none(),
            width: 0,
            sizes: Vec::new(),
            largest: 0.0,
            nonnegative: true,
            samples: Samples::Panels(panels::Panels::new(0, &[])),
        }
    }

    /// The column side of a given matrix whose rows are all new samples: their number, no values.
    pub(crate) fn given_columns(samples: usize) -> Result<Operand> {
        Ok(Operand {
            width: samples,
            samples: Samples::Given {
                matrix: Pairwise::new(samples, 0, Vec::new())?,
                range: (0.0, 0.0),
            },
            ..Operand::without_sizes(Statistic::Given, None)
        })
    }
}

fn given(matrix: &Pairwise, reference: Option<&Operand>) -> Result<Operand> {
    match reference {
        None if matrix.rows() != matrix.cols() => {
            return Err(Error::input(
                "",
                format!(
                    "it has {} rows and {} columns",
                    matrix.rows(),
                    matrix.cols()
                ),
                "a matrix between training samples must be square",
            ));
        }
        Some(training) if training.len() != matrix.cols() => {
            return Err(Error::input(
                "",
                format!(
                    "it has {} columns but there are {} training samples",
                    matrix.cols(),
                    training.len()
                ),
                "give one row for each new sample and one column for each training sample",
            ));
        }
        _ => {}
    }
    let nothing = (f32::INFINITY, f32::NEG_INFINITY);
    let ends = matrix.map_rows(|_, row| {
        row.iter()
            .fold(nothing, |(low, high), &v| (low.min(v), high.max(v)))
    });
    let ends = ends.into_iter().fold(nothing, |(low, high), row| {
        (low.min(row.0), high.max(row.1))
    });
    let range = if ends.0 <= ends.1 { ends } else { (0.0, 0.0) };
    Ok(Operand {
        width: matrix.cols(),
        nonnegative: range.0 >= 0.0,
        samples: Samples::Given {
            matrix: matrix.clone(),
            range,
        },
        ..Operand::without_sizes(Statistic::Given, reference)
    })
}

/// k-mer counts; of new samples those of the k-mers that the training samples have.
fn spectrum(k: usize, strings: &[Vec<u8>], reference: Option<&Operand>) -> Result<Operand> {
    let learned = match reference.map(|reference| &reference.samples) {
        Some(Samples::Rows { dictionary, .. } | Samples::Sparse { dictionary, .. }) => {
            dictionary.clone()
        }
        _ => None,
    };
    let (words, counts) = match learned {
        Some(words) => {
            let counts = words.count(strings)?;
            (words, counts)
        }
        None => {
            let (words, counts) = spectrum::Dictionary::learn(k, strings)?;
            (Arc::new(words), counts)
        }
    };
    let numbers = Numbers::Sparse(Cow::Owned(counts.known));
    let statistic = Statistic::Spectrum { k };
    let mut operand = numeric(statistic, numbers, Some(&counts.unknown), reference)?;
    if let Samples::Rows { dictionary, .. } | Samples::Sparse { dictionary, .. } =
        &mut operand.samples
    {
        *dictionary = Some(words);
    }
    Ok(operand)
}

/// `outside`: Σx² of values in columns that the training samples do not have and that `numbers` leaves out.
fn numeric(
    statistic: Statistic,
    numbers: Numbers<'_>,
    outside: Option<&[f64]>,
    reference: Option<&Operand>,
) -> Result<Operand> {
    check_shape(&numbers, reference)?;
    check_signs(statistic, &numbers)?;
    let about = statistic.about();
    let mut sizes: Vec<f64> = (0..numbers.rows())
        .into_par_iter()
        .map(|i| {
            let inside = match about.size {
                Size::Squares => sum_of_squares(numbers.values(i)),
                Size::Absolute => numbers.values(i).iter().map(|&x| f64::from(x.abs())).sum(),
            };
            outside.map_or(0.0, |outside| outside[i]) + inside
        })
        .collect();
    let scales = (statistic == Statistic::UnitDot).then(|| scales_to_unit(&mut sizes));
    let nonnegative = (0..numbers.rows())
        .into_par_iter()
        .all(|i| numbers.values(i).iter().all(|&x| x >= 0.0));
    let training = reference.map(|reference| &reference.samples);
    let samples = match (is_dense(&numbers, training), about.size) {
        (true, Size::Squares) => {
            dense_rows(statistic, &numbers, scales.as_deref(), training, &mut sizes)
        }
        (true, Size::Absolute) => {
            Samples::Panels(panels::Panels::new(numbers.width(), &numbers.to_dense()))
        }
        (false, _) => {
            let training = match training {
                Some(Samples::Sparse { sparse, .. }) => Some(sparse),
                _ => None,
            };
            let rows = numbers.to_sparse()?;
            Samples::Sparse {
                sparse: sparse::Sparse::new(rows.as_ref(), scales.as_deref(), training),
                dictionary: None,
            }
        }
    };
    check_sizes(statistic, &sizes, &numbers, reference.is_none())?;
    Ok(Operand {
        statistic,
        training: reference.is_none(),
        width: numbers.width(),
        largest: sizes.iter().copied().fold(0.0, f64::max),
        sizes,
        nonnegative,
        samples,
    })
}

/// Whether rows are written out: as those of the training samples, or where enough of their entries are not 0.
fn is_dense(numbers: &Numbers<'_>, training: Option<&Samples>) -> bool {
    match (training, numbers) {
        (Some(samples), _) => !matches!(samples, Samples::Sparse { .. }),
        (None, Numbers::Dense { .. }) => true,
        (None, Numbers::Sparse(x)) => numbers
            .rows()
            .checked_mul(numbers.width())
            .is_some_and(|places| x.entries().saturating_mul(DENSE_FROM) >= places),
    }
}

/// What makes rows of these Σx² unit rows, whose Σx² take their place; rows of zeros stay as they are.
fn scales_to_unit(sizes: &mut [f64]) -> Vec<f64> {
    let scale = |size: &mut f64| {
        let scale = if *size > 0.0 { 1.0 / size.sqrt() } else { 0.0 };
        *size = f64::from(u8::from(*size > 0.0));
        scale
    };
    sizes.iter_mut().map(scale).collect()
}

/// Dense rows for matrix products; for distances moved to the centre, which changes their sizes.
fn dense_rows(
    statistic: Statistic,
    numbers: &Numbers<'_>,
    scales: Option<&[f64]>,
    training: Option<&Samples>,
    sizes: &mut Vec<f64>,
) -> Samples {
    let (rows, width) = (numbers.rows(), numbers.width());
    let mut values = numbers.to_dense_copy();
    if let Some(scales) = scales {
        let scaled = values.par_chunks_exact_mut(width.max(1)).zip(scales);
        scaled.for_each(|(row, scale)| {
            row.iter_mut()
                .for_each(|x| *x = (f64::from(*x) * scale) as f32);
        });
    }
    let mut centre = Arc::default();
    if statistic.about().is_distance {
        centre = match training {
            Some(Samples::Rows { centre, .. }) => Arc::clone(centre),
            _ => Arc::new(product::centre(width, &values)),
        };
        *sizes = move_to(&centre, &mut values, rows);
    }
    Samples::Rows {
        rows: product::DenseRows { width, values },
        centre,
        dictionary: None,
    }
}

/// Subtracts the centre from every row; gives the rows' Σx² after that.
fn move_to(centre: &[f32], values: &mut [f32], rows: usize) -> Vec<f64> {
    let mut sizes = vec![0.0; rows];
    values
        .par_chunks_exact_mut(centre.len().max(1))
        .zip(&mut sizes)
        .for_each(|(row, size)| {
            row.iter_mut().zip(centre).for_each(|(x, c)| *x -= c);
            *size = sum_of_squares(row);
        });
    sizes
}

/// As wide as the training samples, and no more rows than can be numbered.
fn check_shape(numbers: &Numbers<'_>, reference: Option<&Operand>) -> Result<()> {
    let (rows, width) = (numbers.rows(), numbers.width());
    if let Some(reference) = reference
        && reference.width != width
    {
        return Err(Error::input(
            "",
            format!(
                "it has {width} columns but the training samples have {}",
                reference.width
            ),
            "give the same columns in the same order",
        ));
    }
    if rows > u32::MAX as usize {
        return Err(Error::input(
            "",
            format!("it has {rows} rows"),
            "at most 4294967295 are possible",
        ));
    }
    Ok(())
}

fn check_signs(statistic: Statistic, numbers: &Numbers<'_>) -> Result<()> {
    if !statistic.about().needs_nonnegative {
        return Ok(());
    }
    for i in 0..numbers.rows() {
        if let Some((column, x)) = numbers.row(i).find(|&(_, x)| x < 0.0) {
            return Err(Error::input(
                format!("column {}", column + 1),
                format!("the value is {x}"),
                format!("{} needs values ≥ 0", statistic.about().name),
            )
            .of_row(i));
        }
    }
    Ok(())
}

/// Sums must fit into f32 and squares must not vanish from it.
fn check_sizes(
    statistic: Statistic,
    sizes: &[f64],
    numbers: &Numbers<'_>,
    training: bool,
) -> Result<()> {
    let extreme = |i: usize| numbers.row(i).map(|(_, x)| x.abs()).fold(0.0, f32::max);
    let by_squares = statistic.about().size == Size::Squares;
    let sums = if by_squares {
        "sums of their squares"
    } else {
        "their sums"
    };
    if sizes.iter().any(|&size| size > LARGEST_SIZE) {
        // The row with the largest value, which need not be the first that is far from the others.
        let worst = (0..numbers.rows())
            .map(|i| (extreme(i), i))
            .reduce(|a, b| if b.0 > a.0 { b } else { a });
        let (value, i) = worst.unwrap_or_default();
        return Err(Error::input(
            "",
            format!("there are values up to {value:e}, and {sums} do not fit into 32-bit numbers"),
            "scale the view",
        )
        .of_row(i));
    }
    let largest = sizes.iter().copied().fold(0.0, f64::max);
    if training && by_squares && largest > 0.0 && largest < SMALLEST_SQUARE {
        let extreme = (0..numbers.rows()).map(extreme).fold(0.0, f32::max);
        return Err(Error::input(
            "",
            format!(
                "the largest value is {extreme:e}, and squares of such values vanish in 32-bit numbers"
            ),
            "scale the view",
        ));
    }
    Ok(())
}
