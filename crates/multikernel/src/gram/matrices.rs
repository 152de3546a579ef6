//! All kernels as matrices. Kernels of a family are made together: each needs a table of its own, but they share the statistic.

use super::family::Family;
use super::term::Mixture;
use super::{Combined, Gram};
use crate::error::Result;
use crate::huge_pages::zeros;
use crate::observe::{self, Observer};
use rayon::prelude::*;

/// Matrices that are made together.
const MATRICES: usize = 64;

impl Gram {
    /// All kernels as matrices, kernel after kernel, row after row, in new memory.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::error::Error::Stopped) if the observer asks to stop.
    pub fn matrices(&self, observer: &dyn Observer) -> Result<Vec<f32>> {
        let mut out = zeros(self.n_kernels * self.n_rows() * self.n_cols());
        self.matrices_into(&mut out, observer)?;
        Ok(out)
    }

    /// The same into memory that is given. Kernels of one family share the reading, or the computing, of their statistic.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::error::Error::Stopped) if the observer asks to stop.
    ///
    /// # Panics
    /// If `out` is not as long as the matrices together.
    pub fn matrices_into(&self, out: &mut [f32], observer: &dyn Observer) -> Result<()> {
        let each = self.n_rows() * self.n_cols();
        assert_eq!(out.len(), self.n_kernels * each);
        if each == 0 {
            return Ok(());
        }
        let mut outs: Vec<Option<&mut [f32]>> = out.chunks_mut(each).map(Some).collect();
        let mut done = 0;
        for members in self
            .families
            .iter()
            .flat_map(|f| f.members.chunks(MATRICES))
        {
            observe::work(observer, "computing kernels", done, self.n_kernels)?;
            let kernels: Vec<Combined<'_>> = members.iter().map(|&m| self.kernel(m)).collect();
            let outs = members.iter().filter_map(|&m| outs[m].take()).collect();
            matrices_of_family(&kernels, outs);
            done += members.len();
        }
        Ok(())
    }
}

/// The whole matrices of kernels of one family, each into its own memory.
fn matrices_of_family(kernels: &[Combined<'_>], outs: Vec<&mut [f32]>) {
    let tables = kernels.iter().map(Combined::only_table);
    match (tables.collect::<Option<Vec<_>>>(), kernels.first()) {
        (Some(tables), Some(first)) => {
            matrices_of_tables(&tables, first.gram(), first.row_plan().block_rows, outs);
        }
        _ => {
            for (one, out) in kernels.iter().zip(outs) {
                one.matrix_into(out);
            }
        }
    }
}

/// The matrices of tables over one statistic: each of its rows is fetched once for all of them.
fn matrices_of_tables(
    tables: &[(&Family, &Mixture<'_>)],
    gram: &Gram,
    block: usize,
    outs: Vec<&mut [f32]>,
) {
    let n = gram.n_cols();
    let rows: Vec<usize> = (0..gram.n_rows()).map(|i| gram.rows.get(i)).collect();
    let mut tasks: Vec<(&[usize], Vec<&mut [f32]>)> = rows
        .chunks(block)
        .map(|rows| (rows, Vec::with_capacity(outs.len())))
        .collect();
    for out in outs {
        for (task, part) in tasks.iter_mut().zip(out.chunks_mut(block * n)) {
            task.1.push(part);
        }
    }
    tasks.into_par_iter().for_each(|(rows, mut outs)| {
        tables[0].0.for_rows(rows, |r, t| {
            for ((_, mixture), out) in tables.iter().zip(&mut outs) {
                mixture.values(t, &mut out[r * n..(r + 1) * n]);
            }
        });
    });
}
