//! Making views ready: checks that the statistic can look at the view, and the layout its block routine wants.

use super::numbers::Numbers;
use super::{Operand, Samples, Statistic, product, sparse, spectrum, tiles, weighted_degree};
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
/// From one entry in so many on, dense products beat the inverted index, and need no more memory.
const DENSE_FROM: usize = 6;

impl Statistic {
    /// Its name in messages.
    fn name(self) -> &'static str {
        match self {
            Statistic::Dot => "dot product",
            Statistic::UnitDot => "dot product of unit rows",
            Statistic::SquaredDistance => "squared distance",
            Statistic::L1 => "l1 distance",
            Statistic::Chi2 => "chi2",
            Statistic::Intersection => "intersection",
            Statistic::Spectrum { .. } => "spectrum",
            Statistic::WeightedDegree { .. } => "weighted-degree",
            Statistic::Given => "a given matrix's kernel",
        }
    }

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
                    self.name(),
                    reference.statistic.name()
                ),
                "use one statistic for both",
            ));
        }
        match (self, view) {
            (Statistic::Given, ViewData::Pairwise(matrix)) => given(matrix, reference),
            (Statistic::WeightedDegree { degree, shift }, ViewData::Strings(strings)) => {
                let reference_strings = match reference.map(|reference| &reference.samples) {
                    Some(Samples::Strings(strings)) => Some(strings),
                    _ => None,
                };
                let strings =
                    weighted_degree::Strings::new(degree, shift, strings, reference_strings)?;
                Ok(Operand {
                    statistic: self,
                    training: reference.is_none(),
                    width: 0,
                    sizes: Vec::new(),
                    largest: 0.0,
                    nonnegative: true,
                    samples: Samples::Strings(strings),
                })
            }
            (Statistic::Spectrum { k }, ViewData::Strings(strings)) => {
                let learned = match reference.map(|reference| &reference.samples) {
                    Some(Samples::Rows { dictionary, .. } | Samples::Sparse { dictionary, .. }) => {
                        dictionary.clone()
                    }
                    _ => None,
                };
                let (dictionary, counts) = match learned {
                    Some(dictionary) => {
                        let counts = dictionary.count(strings)?;
                        (dictionary, counts)
                    }
                    None => {
                        let (dictionary, counts) = spectrum::Dictionary::learn(k, strings)?;
                        (Arc::new(dictionary), counts)
                    }
                };
                let mut operand = numeric(
                    self,
                    Numbers::Sparse(Cow::Owned(counts.known)),
                    Some(&counts.unknown),
                    reference,
                )?;
                if let Samples::Rows {
                    dictionary: place, ..
                }
                | Samples::Sparse {
                    dictionary: place, ..
                } = &mut operand.samples
                {
                    *place = Some(dictionary);
                }
                Ok(operand)
            }
            (
                Statistic::Given | Statistic::Spectrum { .. } | Statistic::WeightedDegree { .. },
                _,
            )
            | (_, ViewData::Strings(_) | ViewData::Pairwise(_)) => Err(self.wrong_kind(view)),
            (_, ViewData::Dense(x)) => numeric(
                self,
                Numbers::Dense {
                    width: x.cols(),
                    values: x.values(),
                    rows: x.rows(),
                },
                None,
                reference,
            ),
            (_, ViewData::Sparse(x)) => {
                numeric(self, Numbers::Sparse(Cow::Borrowed(x)), None, reference)
            }
        }
    }

    fn wrong_kind(self, view: &ViewData) -> Error {
        let needed = match self {
            Statistic::Given => "a given matrix",
            Statistic::Spectrum { .. } | Statistic::WeightedDegree { .. } => "strings",
            _ => "numbers (a dense or a sparse view)",
        };
        let kind = match view {
            ViewData::Dense(_) | ViewData::Sparse(_) => "numbers",
            ViewData::Strings(_) => "strings",
            ViewData::Pairwise(_) => "a given matrix",
        };
        Error::input(
            "",
            format!("{} needs {needed} but the view is {kind}", self.name()),
            "name another view or kernel",
        )
    }

    /// Sizes are sums of squares (else of absolute values).
    fn by_squares(self) -> bool {
        !matches!(
            self,
            Statistic::L1 | Statistic::Chi2 | Statistic::Intersection
        )
    }
}

impl Operand {
    /// The column side of a given matrix whose rows are all new samples: so many training samples, no values.
    pub(crate) fn given_columns(samples: usize) -> Result<Operand> {
        Ok(Operand {
            statistic: Statistic::Given,
            training: true,
            width: samples,
            sizes: Vec::new(),
            largest: 0.0,
            nonnegative: true,
            samples: Samples::Given {
                matrix: Pairwise::new(samples, 0, Vec::new())?,
                lowest: 0.0,
                highest: 0.0,
            },
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
    let (lowest, highest) = ends.into_iter().fold(nothing, |(low, high), row| {
        (low.min(row.0), high.max(row.1))
    });
    let (lowest, highest) = if lowest <= highest {
        (lowest, highest)
    } else {
        (0.0, 0.0)
    };
    Ok(Operand {
        statistic: Statistic::Given,
        training: reference.is_none(),
        width: matrix.cols(),
        sizes: Vec::new(),
        largest: 0.0,
        nonnegative: lowest >= 0.0,
        samples: Samples::Given {
            matrix: matrix.clone(),
            lowest,
            highest,
        },
    })
}

/// `outside`: Σx² of values in columns that the training samples do not have and that `numbers` leaves out.
fn numeric(
    statistic: Statistic,
    numbers: Numbers<'_>,
    outside: Option<&[f64]>,
    reference: Option<&Operand>,
) -> Result<Operand> {
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
    check_signs(statistic, &numbers)?;
    let dense = match (reference.map(|reference| &reference.samples), &numbers) {
        (Some(samples), _) => !matches!(samples, Samples::Sparse { .. }),
        (None, Numbers::Dense { .. }) => true,
        (None, Numbers::Sparse(x)) => rows
            .checked_mul(width)
            .is_some_and(|places| x.entries().saturating_mul(DENSE_FROM) >= places),
    };
    let squares = statistic.by_squares();
    let mut sizes: Vec<f64> = (0..rows)
        .into_par_iter()
        .map(|i| {
            let outside = outside.map_or(0.0, |outside| outside[i]);
            outside
                + if squares {
                    sum_of_squares(numbers.values(i))
                } else {
                    numbers.values(i).iter().map(|&x| f64::from(x.abs())).sum()
                }
        })
        .collect();
    let scales: Option<Vec<f64>> = (statistic == Statistic::UnitDot).then(|| {
        let scales = sizes
            .iter()
            .map(|&size| if size > 0.0 { 1.0 / size.sqrt() } else { 0.0 })
            .collect();
        for size in &mut sizes {
            *size = if *size > 0.0 { 1.0 } else { 0.0 };
        }
        scales
    });
    let nonnegative = (0..rows)
        .into_par_iter()
        .all(|i| numbers.values(i).iter().all(|&x| x >= 0.0));

    let samples = if dense {
        if squares {
            let mut values = numbers.to_dense_copy();
            if let Some(scales) = &scales {
                values
                    .par_chunks_exact_mut(width.max(1))
                    .zip(scales)
                    .for_each(|(row, scale)| {
                        row.iter_mut()
                            .for_each(|x| *x = (f64::from(*x) * scale) as f32);
                    });
            }
            let mut centre = Arc::default();
            if statistic == Statistic::SquaredDistance {
                centre = match reference.map(|reference| &reference.samples) {
                    Some(Samples::Rows { centre, .. }) => Arc::clone(centre),
                    _ => Arc::new(product::centre(width, &values)),
                };
                sizes = move_to(&centre, &mut values, rows);
            }
            Samples::Rows {
                rows: product::Rows { width, values },
                centre,
                dictionary: None,
            }
        } else {
            Samples::Panels(tiles::Panels::new(width, &numbers.to_dense()))
        }
    } else {
        let reference = match reference.map(|reference| &reference.samples) {
            Some(Samples::Sparse { sparse, .. }) => Some(sparse),
            _ => None,
        };
        let sparse =
            sparse::Sparse::new(numbers.to_sparse()?.as_ref(), scales.as_deref(), reference);
        Samples::Sparse {
            sparse,
            dictionary: None,
        }
    };
    check_sizes(statistic, &sizes, &numbers, reference.is_none())?;
    Ok(Operand {
        statistic,
        training: reference.is_none(),
        width,
        largest: sizes.iter().copied().fold(0.0, f64::max),
        sizes,
        nonnegative,
        samples,
    })
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

fn check_signs(statistic: Statistic, numbers: &Numbers<'_>) -> Result<()> {
    if !matches!(statistic, Statistic::Chi2 | Statistic::Intersection) {
        return Ok(());
    }
    for i in 0..numbers.rows() {
        if let Some((column, x)) = numbers.row(i).find(|&(_, x)| x < 0.0) {
            return Err(Error::input(
                format!("column {}", column + 1),
                format!("the value is {x}"),
                format!("{} needs values ≥ 0", statistic.name()),
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
    let sums = if statistic.by_squares() {
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
    if training && statistic.by_squares() && largest > 0.0 && largest < SMALLEST_SQUARE {
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
