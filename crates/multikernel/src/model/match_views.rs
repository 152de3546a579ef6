//! New samples brought into the form of the training data: which view is which, and which column is which.
//!
//! Files of one view name it after themselves, so that the view `train` of train.csv is `test` in test.csv. Such views are
//! told by their order; and columns that have names are told by them, whatever their order.

use super::Model;
use crate::data::{Dense, ViewData, Views};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Names that a sentence lists.
const LISTED: usize = 8;

/// A view of the training data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrainingView {
    name: String,
    kind: ViewKind,
}

/// Kinds that cannot stand for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ViewKind {
    Numbers,
    Strings,
    Matrix,
}

impl ViewKind {
    const ALL: [ViewKind; 3] = [ViewKind::Numbers, ViewKind::Strings, ViewKind::Matrix];

    fn of(data: &ViewData) -> Self {
        match data {
            ViewData::Dense(_) | ViewData::Sparse(_) => ViewKind::Numbers,
            ViewData::Strings(_) => ViewKind::Strings,
            ViewData::Pairwise(_) => ViewKind::Matrix,
        }
    }
}

impl TrainingView {
    pub(super) fn all(views: &Views) -> Vec<Self> {
        views
            .iter()
            .map(|view| TrainingView {
                name: view.name.clone(),
                kind: ViewKind::of(&view.data),
            })
            .collect()
    }
}

impl Model {
    /// New samples in the form of the training data, and what was changed, in sentences.
    ///
    /// Views of which none has a name that the training data had are taken in their order, if there are as many of each
    /// kind. Columns with names are put into the order of the training data, and columns that it did not have are left
    /// out; columns that are missing are an error.
    pub fn arrange(&self, views: Views) -> Result<(Views, Vec<String>)> {
        let training = KnownViews {
            all: &self.parts.training_views,
            known: &self.parts.views,
        };
        training.arrange(views)
    }
}

impl Views {
    /// These samples in the form of the training data, as [`Model::arrange`] does it where there is no model yet.
    pub fn arranged_like(self, training: &Views) -> Result<(Views, Vec<String>)> {
        let training = KnownViews {
            all: &TrainingView::all(training),
            known: training,
        };
        training.arrange(self)
    }
}

/// What is known of the training data.
struct KnownViews<'a> {
    all: &'a [TrainingView],
    /// Views whose columns are known.
    known: &'a Views,
}

impl KnownViews<'_> {
    fn arrange(&self, views: Views) -> Result<(Views, Vec<String>)> {
        let mut notes = Vec::new();
        let views = self.name_views(views, &mut notes)?;
        let views = views.map(|mut view| {
            let known = self.known.get(&view.name);
            if let (Some(known), ViewData::Dense(x)) = (known, &view.data)
                && !known.columns.is_empty()
                && !view.columns.is_empty()
                && known.columns != view.columns
            {
                let place = format!("view '{}'", view.name);
                let columns =
                    find_columns(&known.columns, &view.columns).map_err(|e| e.within(&place))?;
                let values = (0..x.rows())
                    .flat_map(|i| {
                        let row = x.row(i);
                        columns.iter().map(|&c| row[c])
                    })
                    .collect();
                let extra: Vec<&String> = view
                    .columns
                    .iter()
                    .filter(|c| !known.columns.contains(c))
                    .collect();
                notes.push(match extra.is_empty() {
                    true => format!("{place}: its columns are put into the order of training"),
                    false => format!(
                        "{place}: columns that training did not have are left out ({})",
                        some(&extra)
                    ),
                });
                view.data = ViewData::Dense(Dense::new(x.rows(), columns.len(), values)?);
                view.columns = known.columns.clone();
            }
            Ok(view)
        })?;
        Ok((views, notes))
    }

    fn name_views(&self, views: Views, notes: &mut Vec<String>) -> Result<Views> {
        let training = self.all;
        if training.iter().any(|t| views.get(&t.name).is_some()) {
            return Ok(views);
        }
        let mut names: HashMap<String, String> = HashMap::new();
        for kind in ViewKind::ALL {
            let wanted = training.iter().filter(|t| t.kind == kind);
            let given = views.iter().filter(|v| ViewKind::of(&v.data) == kind);
            let (wanted, given): (Vec<_>, Vec<_>) = (wanted.collect(), given.collect());
            if !wanted.is_empty() && wanted.len() != given.len() {
                // Which is which cannot be told: prediction will name the view that is missing.
                return Ok(views);
            }
            for (wanted, given) in wanted.iter().zip(given) {
                names.insert(given.name.clone(), wanted.name.clone());
            }
        }
        let mut taken: Vec<String> = views
            .iter()
            .filter_map(|v| Some(format!("'{}' as '{}'", v.name, names.get(&v.name)?)))
            .collect();
        if taken.len() > LISTED {
            taken.truncate(LISTED);
            taken.push("…".into());
        }
        notes.push(format!(
            "views are taken in the order of training: {}",
            taken.join(", ")
        ));
        let wanted = views.only(|v| names.contains_key(&v.name));
        // The last other owner goes, so that renaming copies nothing.
        drop(views);
        wanted.renamed(|name| names[name].clone())
    }
}

/// Where the columns of training stand.
fn find_columns(training: &[String], given: &[String]) -> Result<Vec<usize>> {
    let places: HashMap<&String, usize> = given
        .iter()
        .enumerate()
        .map(|(c, name)| (name, c))
        .collect();
    let missing: Vec<&String> = training
        .iter()
        .filter(|c| !places.contains_key(c))
        .collect();
    if !missing.is_empty() {
        let one = missing.len() == 1;
        return Err(Error::input(
            "",
            format!(
                "{} of training {} missing: {}",
                if one { "a column" } else { "columns" },
                if one { "is" } else { "are" },
                some(&missing)
            ),
            "give every column that the training data had, in any order",
        ));
    }
    Ok(training.iter().map(|c| places[c]).collect())
}

fn some(names: &[&String]) -> String {
    let mut shown: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|n| format!("'{n}'"))
        .collect();
    if names.len() > LISTED {
        shown.push("…".into());
    }
    shown.join(", ")
}
