//! Named views of the same samples.

use super::{Csr, Dense, Pairwise};
use crate::error::{Error, Result};
use std::sync::Arc;

/// One way to describe the samples.
#[derive(Debug, Clone)]
pub struct View {
    /// Its name, unique among the views.
    pub name: String,
    /// The names of its columns where the file gave them; else empty.
    pub columns: Vec<String>,
    /// The description of every sample.
    pub data: ViewData,
}

/// The kinds of description.
#[derive(Debug, Clone)]
pub enum ViewData {
    /// Rows of numbers.
    Dense(Dense),
    /// Sparse rows of numbers.
    Sparse(Csr),
    /// A string (a sequence) per sample, as bytes.
    Strings(Vec<Vec<u8>>),
    /// A given matrix: numbers between each sample and the training samples.
    Pairwise(Pairwise),
}

impl View {
    /// Numbers, sample after sample, `columns` for each.
    ///
    /// ```
    /// use multikernel::data::View;
    ///
    /// let view = View::dense("petal", 2, [1.4, 0.2, 4.7, 1.4, 5.1, 2.3])?;
    /// assert_eq!(view.data.len(), 3);
    /// # Ok::<(), multikernel::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the numbers do not fill whole rows, or one is not finite.
    pub fn dense(
        name: impl Into<String>,
        columns: usize,
        values: impl Into<Vec<f32>>,
    ) -> Result<View> {
        let values = values.into();
        let rows = values.len().checked_div(columns).unwrap_or(0);
        let data = Dense::new(rows, columns, values).map(ViewData::Dense);
        View::unnamed(name.into(), data)
    }

    /// A string, such as a sequence, for each sample.
    pub fn strings<S: Into<Vec<u8>>>(
        name: impl Into<String>,
        strings: impl IntoIterator<Item = S>,
    ) -> View {
        View {
            name: name.into(),
            columns: Vec::new(),
            data: ViewData::Strings(strings.into_iter().map(Into::into).collect()),
        }
    }

    /// A kernel or distance matrix that is there already, row after row: between the training samples, and to predict between
    /// new samples (rows) and those of training.
    ///
    /// # Errors
    /// If the numbers do not fill whole rows, or one is not finite.
    pub fn matrix(
        name: impl Into<String>,
        columns: usize,
        values: impl Into<Vec<f32>>,
    ) -> Result<View> {
        let values = values.into();
        let rows = values.len().checked_div(columns).unwrap_or(0);
        let data = Pairwise::new(rows, columns, values).map(ViewData::Pairwise);
        View::unnamed(name.into(), data)
    }

    /// Data whose columns have no names.
    fn unnamed(name: String, data: Result<ViewData>) -> Result<View> {
        Ok(View {
            data: data.map_err(|e| e.within(&format!("view '{name}'")))?,
            columns: Vec::new(),
            name,
        })
    }
}

impl ViewData {
    /// Number of samples.
    pub fn len(&self) -> usize {
        match self {
            ViewData::Dense(x) => x.rows(),
            ViewData::Sparse(x) => x.rows(),
            ViewData::Strings(x) => x.len(),
            ViewData::Pairwise(x) => x.rows(),
        }
    }

    /// No samples at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The samples named, in that order. A given matrix keeps all its columns.
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        Ok(match self {
            ViewData::Dense(x) => ViewData::Dense(x.select(rows)),
            ViewData::Sparse(x) => ViewData::Sparse(x.select(rows)),
            ViewData::Strings(x) => ViewData::Strings(rows.iter().map(|&i| x[i].clone()).collect()),
            ViewData::Pairwise(x) => {
                let mut values = Vec::with_capacity(rows.len() * x.cols());
                for &i in rows {
                    values.extend_from_slice(x.row(i));
                }
                ViewData::Pairwise(Pairwise::new(rows.len(), x.cols(), values)?)
            }
        })
    }

    /// What it is, in a word or two.
    pub fn kind(&self) -> &'static str {
        match self {
            ViewData::Dense(_) => "dense",
            ViewData::Sparse(_) => "sparse",
            ViewData::Strings(_) => "strings",
            ViewData::Pairwise(_) => "given matrix",
        }
    }
}

/// Views of the same samples, all with the same number of rows, at least one of each.
///
/// Clones share the data.
#[derive(Debug, Clone, Default)]
pub struct Views {
    views: Vec<Arc<View>>,
    ids: Option<Vec<String>>,
}

impl Views {
    /// Views in the order given; names must differ and row counts agree.
    pub fn new(views: Vec<View>) -> Result<Self> {
        let mut out = Views::default();
        for view in views {
            out.push(view)?;
        }
        Ok(out)
    }

    /// Adds a view.
    pub fn push(&mut self, view: View) -> Result<()> {
        let place = format!("view '{}'", view.name);
        if self.get(&view.name).is_some() {
            return Err(Error::input(
                place,
                "there are two views of this name",
                "rename one",
            ));
        }
        if view.data.is_empty() {
            return Err(Error::input(
                place,
                "it has no rows",
                "give at least one sample",
            ));
        }
        if let Some(first) = self.views.first()
            && first.data.len() != view.data.len()
        {
            return Err(Error::input(
                place,
                format!(
                    "it has {} rows but view '{}' has {}",
                    view.data.len(),
                    first.name,
                    first.data.len()
                ),
                "all views must describe the same samples in the same order (or join them by an id column)",
            ));
        }
        self.views.push(Arc::new(view));
        Ok(())
    }

    /// Names for the samples, one each.
    pub fn set_ids(&mut self, ids: Vec<String>) -> Result<()> {
        if ids.len() != self.len() {
            return Err(Error::input(
                "ids",
                format!("{} ids for {} samples", ids.len(), self.len()),
                "give one id for each sample",
            ));
        }
        self.ids = Some(ids);
        Ok(())
    }

    /// Names of the samples, if they have any.
    pub fn ids(&self) -> Option<&[String]> {
        self.ids.as_deref()
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.views.first().map_or(0, |v| v.data.len())
    }

    /// No view at all.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// The views, in order.
    pub fn iter(&self) -> ViewsIter<'_> {
        self.views.iter().map(|view| &**view)
    }

    /// The view of that name.
    pub fn get(&self, name: &str) -> Option<&View> {
        self.iter().find(|v| v.name == name)
    }

    /// The same samples with every view changed by `f`.
    pub(crate) fn map(self, f: impl FnMut(View) -> Result<View>) -> Result<Self> {
        let views = self
            .views
            .into_iter()
            .map(Arc::unwrap_or_clone)
            .map(f)
            .collect::<Result<_>>()?;
        let mut out = Views::new(views)?;
        out.ids = self.ids;
        Ok(out)
    }

    /// The same samples with those views only for which `wanted` holds.
    pub fn only(&self, wanted: impl Fn(&View) -> bool) -> Self {
        Views {
            views: self.views.iter().filter(|v| wanted(v)).cloned().collect(),
            ids: self.ids.clone(),
        }
    }

    /// The same views under other names, which must differ.
    pub(crate) fn renamed(self, name: impl Fn(&str) -> String) -> Result<Self> {
        self.map(|mut view| {
            view.name = name(&view.name);
            Ok(view)
        })
    }

    /// The samples named, in that order, with the columns of given matrices that belong to the samples `columns`: what
    /// is needed to train on some samples, or to predict others by those.
    pub fn part(&self, rows: &[usize], columns: &[usize]) -> Result<Self> {
        self.pick(rows, |data| match data {
            ViewData::Pairwise(x) => {
                let mut values = Vec::with_capacity(rows.len() * columns.len());
                for &i in rows {
                    let row = x.row(i);
                    values.extend(columns.iter().map(|&j| row[j]));
                }
                let cut = Pairwise::new(rows.len(), columns.len(), values)?;
                Ok(ViewData::Pairwise(cut))
            }
            other => other.select(rows),
        })
    }

    /// The samples named, in that order. Given matrices keep all their columns.
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        self.pick(rows, |data| data.select(rows))
    }

    fn pick(&self, rows: &[usize], data: impl Fn(&ViewData) -> Result<ViewData>) -> Result<Self> {
        let views = self
            .views
            .iter()
            .map(|v| {
                Ok(Arc::new(View {
                    name: v.name.clone(),
                    columns: v.columns.clone(),
                    data: data(&v.data)?,
                }))
            })
            .collect::<Result<_>>()?;
        Ok(Views {
            views,
            ids: self
                .ids
                .as_ref()
                .map(|ids| rows.iter().map(|&i| ids[i].clone()).collect()),
        })
    }
}

/// Iterator over views.
pub type ViewsIter<'a> =
    std::iter::Map<std::slice::Iter<'a, Arc<View>>, fn(&'a Arc<View>) -> &'a View>;

impl<'a> IntoIterator for &'a Views {
    type Item = &'a View;
    type IntoIter = ViewsIter<'a>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_made_of_plain_lists() {
        let view = View::matrix("k", 2, [1.0, 0.5, 0.5, 1.0]).unwrap();
        assert_eq!((view.data.len(), view.data.kind()), (2, "given matrix"));
        let view = View::strings("dna", ["ACGT", "AC"]);
        assert_eq!((view.data.len(), view.data.kind()), (2, "strings"));
        for (columns, values, said) in [
            (
                2,
                vec![1.0; 5],
                "view 'x': 5 values do not make 2 rows of 2",
            ),
            (0, vec![1.0], "view 'x': 1 values do not make 0 rows of 0"),
            (
                2,
                vec![1.0, 2.0, 3.0, f32::NAN],
                "view 'x', row 2, column 2: the value is NaN; give a finite number (remove the row, or fill in the missing value)",
            ),
        ] {
            let error = View::dense("x", columns, values).unwrap_err();
            assert_eq!(error.to_string(), said);
        }
    }
}
