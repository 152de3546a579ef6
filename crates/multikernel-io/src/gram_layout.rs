//! How kernel matrices lie in an array: which axis counts kernels, and in which order the file walks through the cells.

use super::load::Purpose;
use super::npy::Header;
use multikernel::error::{Error, Result};

/// How the kernels lie in an array, counted in the order of the file.
pub(super) struct Layout {
    pub(super) kernels: usize,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Each matrix is contiguous, row after row (for a symmetric one: or column after column).
    pub(super) contiguous: bool,
    /// The axes of the file, slowest first.
    axes: Vec<Axis>,
}

/// An axis of the file.
#[derive(Debug, Clone, Copy)]
struct Axis {
    size: usize,
    /// How far a step along it goes among the kernels.
    kernel_step: usize,
    /// How far it goes inside of a matrix.
    cell_step: usize,
}

impl Layout {
    /// The layout that the shape tells, and a note if another one would be possible.
    pub(super) fn of(
        header: &Header,
        purpose: Purpose,
        place: &str,
    ) -> Result<(Self, Option<String>)> {
        let (kernel_axis, ambiguous) = kernel_axis(&header.shape, purpose).map_err(|remedy| {
            let found = format!("the array has the shape {}", header.shape_text());
            Error::input(place, found, remedy)
        })?;
        let taken_as = match purpose {
            Purpose::Training => "(kernels, n, n)",
            Purpose::Prediction { .. } => "(kernels, new samples, training samples)",
        };
        let note = ambiguous.then(|| {
            format!(
                "{place} has the shape {}: taken as {taken_as}",
                header.shape_text()
            )
        });
        let mut sizes = header.shape.clone();
        let kernels = kernel_axis.map(|axis| (axis, sizes.remove(axis)));
        let (rows, cols) = (sizes[0], sizes[1]);
        let inside = |size, cell_step| Axis {
            size,
            kernel_step: 0,
            cell_step,
        };
        let mut axes = vec![inside(rows, cols), inside(cols, 1)];
        if let Some((axis, size)) = kernels {
            let among = Axis {
                size,
                kernel_step: 1,
                cell_step: 0,
            };
            axes.insert(axis, among);
        }
        if header.fortran {
            axes.reverse();
        }
        let kernels_outside = axes.iter().skip(1).all(|axis| axis.kernel_step == 0);
        let symmetric = purpose == Purpose::Training;
        let layout = Layout {
            kernels: kernels.map_or(1, |(_, size)| size),
            rows,
            cols,
            contiguous: kernels_outside && (!header.fortran || symmetric),
            axes,
        };
        Ok((layout, note))
    }

    /// Kernel and cell of each element, in the order of the file.
    pub(super) fn walk(&self) -> impl Iterator<Item = (usize, usize)> + use<'_> {
        let mut index = vec![0; self.axes.len()];
        let (mut m, mut cell) = (0, 0);
        let all = self.kernels * self.rows * self.cols;
        (0..all).map(move |_| {
            let here = (m, cell);
            // Count on like an odometer.
            for (position, axis) in index.iter_mut().zip(&self.axes).rev() {
                *position += 1;
                m += axis.kernel_step;
                cell += axis.cell_step;
                if *position < axis.size {
                    break;
                }
                *position = 0;
                m -= axis.kernel_step * axis.size;
                cell -= axis.cell_step * axis.size;
            }
            here
        })
    }
}

/// The axis that counts kernels, none in a single matrix, and whether it could be another one; or what to give instead.
fn kernel_axis(shape: &[usize], purpose: Purpose) -> Result<(Option<usize>, bool), String> {
    if shape.contains(&0) {
        return Err("give matrices with at least one entry".into());
    }
    let unless = |wanted: Option<usize>, size: usize| wanted.is_none_or(|w| w == size);
    // Whether matrices of this size, and this many of them, are what is wanted.
    let fits = |rows: usize, cols: usize, count: Option<usize>| match purpose {
        Purpose::Training => rows == cols,
        Purpose::Prediction {
            references,
            kernels,
        } => unless(references, cols) && count.is_none_or(|count| unless(kernels, count)),
    };
    match (shape, purpose) {
        (&[rows, cols], _) if fits(rows, cols, None) => Ok((None, false)),
        (&[a, b, c], _) if fits(b, c, Some(a)) => Ok((Some(0), fits(a, b, Some(c)))),
        (&[a, b, c], _) if fits(a, b, Some(c)) => Ok((Some(2), false)),
        ([_, _], Purpose::Training) => {
            Err("a kernel between training samples must be square (n, n)".into())
        }
        ([_, _], Purpose::Prediction { references, .. }) => Err(format!(
            "give one column for each of the {} training samples",
            any_number(references)
        )),
        ([_, _, _], Purpose::Training) => {
            Err("give square matrices stacked as (kernels, n, n) or (n, n, kernels)".into())
        }
        (
            [_, _, _],
            Purpose::Prediction {
                references,
                kernels,
            },
        ) => Err(format!(
            "give (kernels, new samples, training samples) with {} kernels and {} training samples",
            any_number(kernels),
            any_number(references)
        )),
        _ => Err("give a matrix (n, n), or a stack (kernels, n, n) or (n, n, kernels)".into()),
    }
}

fn any_number(count: Option<usize>) -> String {
    count.map_or("any number of".into(), |count| count.to_string())
}
