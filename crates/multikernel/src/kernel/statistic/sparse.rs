//! Statistics of sparse rows, by an inverted index of the column side.
//!
//! Every distance is size(x) + size(y) + Σ common(x_k, y_k) over the columns k that both have, other statistics are the sum alone
//! (`formulas`), so a row costs what the entries in its columns cost, however wide the view is.

use super::formulas::Formula;
use crate::data::Csr;
use std::ops::Range;
use std::sync::Arc;

/// Sparse samples by row and by column. Columns that no training sample has are left out: they never meet anything.
#[derive(Debug)]
pub(super) struct Sparse {
    /// The columns in use, ascending, where they are few among many; none: all of them.
    in_use: Option<Arc<Vec<u32>>>,
    by_row: Lists,
    by_column: Lists,
}

/// Lists of (place, value), one after the other.
#[derive(Debug)]
struct Lists {
    starts: Vec<usize>,
    places: Vec<u32>,
    values: Vec<f32>,
}

impl Lists {
    fn get(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.places[range.clone()], &self.values[range])
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Rows to columns (and back); the places of each new list ascend.
    fn transposed(&self, width: usize) -> Lists {
        let mut starts = vec![0; width + 1];
        for &place in &self.places {
            starts[place as usize + 1] += 1;
        }
        for k in 0..width {
            starts[k + 1] += starts[k];
        }
        let mut next = starts.clone();
        let mut places = vec![0; self.places.len()];
        let mut values = vec![0.0; self.values.len()];
        for i in 0..self.len() {
            let (columns, row) = self.get(i);
            for (&k, &x) in columns.iter().zip(row) {
                let at = &mut next[k as usize];
                // Checked in `Sparse::new`: fewer than 2³² samples.
                places[*at] = i as u32;
                values[*at] = x;
                *at += 1;
            }
        }
        Lists {
            starts,
            places,
            values,
        }
    }

    fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<usize>()
            + self.places.capacity() * size_of::<u32>()
            + self.values.capacity() * size_of::<f32>()
    }
}

impl Sparse {
    /// Row i is multiplied by `scales[i]`, if there are scales.
    pub(super) fn new(rows: &Csr, scales: Option<&[f64]>, reference: Option<&Sparse>) -> Self {
        let in_use = match reference {
            Some(reference) => reference.in_use.clone(),
            // An index over all columns must not cost more than the entries themselves.
            None => (rows.cols() > 4 * rows.entries() + 1024).then(|| {
                let mut columns: Vec<u32> = (0..rows.rows())
                    .flat_map(|i| rows.row(i).0)
                    .copied()
                    .collect();
                columns.sort_unstable();
                columns.dedup();
                Arc::new(columns)
            }),
        };
        let mut by_row = Lists {
            starts: vec![0],
            places: Vec::new(),
            values: Vec::new(),
        };
        for i in 0..rows.rows() {
            let (columns, values) = rows.row(i);
            for (&column, &x) in columns.iter().zip(values) {
                let place = match &in_use {
                    None => Some(column),
                    Some(in_use) => in_use.binary_search(&column).ok().map(|place| place as u32),
                };
                if let (Some(place), true) = (place, x != 0.0) {
                    by_row.places.push(place);
                    by_row
                        .values
                        .push(scales.map_or(x, |scales| (f64::from(x) * scales[i]) as f32));
                }
            }
            by_row.starts.push(by_row.places.len());
        }
        let width = in_use.as_ref().map_or(rows.cols(), |in_use| in_use.len());
        let by_column = by_row.transposed(width);
        Sparse {
            in_use,
            by_row,
            by_column,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let in_use = self
            .in_use
            .as_ref()
            .map_or(0, |columns| columns.capacity() * size_of::<u32>());
        self.by_row.bytes() + self.by_column.bytes() + in_use
    }

    /// `sizes` (and the other's) are Σx² or Σ|x| of whole rows, as the statistic asks. The sums run in the order of the columns, as the
    /// sizes do, so that equal rows have distance 0 exactly.
    pub(super) fn block<F: Formula>(
        &self,
        sizes: &[f64],
        rows: &[usize],
        (other, other_sizes): (&Sparse, &[f64]),
        cols: Range<usize>,
        out: &mut [f32],
    ) {
        if cols.is_empty() {
            return;
        }
        let everything = cols == (0..other.by_row.len());
        let (first, end) = (cols.start as u32, cols.end as u32);
        let mut sums = vec![0.0_f64; cols.len()];
        for (&i, out) in rows.iter().zip(out.chunks_exact_mut(cols.len())) {
            sums.fill(0.0);
            let (columns, values) = self.by_row.get(i);
            for (&k, &x) in columns.iter().zip(values) {
                let (mut samples, mut others) = other.by_column.get(k as usize);
                if !everything {
                    let from = samples.partition_point(|&j| j < first);
                    let to = from + samples[from..].partition_point(|&j| j < end);
                    (samples, others) = (&samples[from..to], &others[from..to]);
                }
                for (&j, &y) in samples.iter().zip(others) {
                    sums[(j - first) as usize] += F::common(f64::from(x), f64::from(y));
                }
            }
            let others = &other_sizes[cols.clone()];
            for ((t, &sum), &size) in out.iter_mut().zip(&sums).zip(others) {
                *t = if F::IS_DISTANCE {
                    (sizes[i] + size + sum).max(0.0) as f32
                } else {
                    sum as f32
                };
            }
        }
    }
}
