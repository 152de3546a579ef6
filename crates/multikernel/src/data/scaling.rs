//! Scaling of features: statistics of the training data, applied to any data.

use super::{Dense, View, ViewData, Views};
use crate::error::{Error, InputError, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The ways to scale a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScaleKind {
    /// As it is.
    #[default]
    None,
    /// Each column to mean 0 and standard deviation 1 on the training data.
    Standard,
    /// Each column to 0…1 on the training data.
    MinMax,
    /// Each row to length 1.
    Unit,
}

impl fmt::Display for ScaleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ScaleKind::None => "none",
            ScaleKind::Standard => "standard",
            ScaleKind::MinMax => "minmax",
            ScaleKind::Unit => "unit",
        })
    }
}

impl FromStr for ScaleKind {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "none" => Ok(ScaleKind::None),
            "standard" => Ok(ScaleKind::Standard),
            "minmax" => Ok(ScaleKind::MinMax),
            "unit" => Ok(ScaleKind::Unit),
            other => Err(Error::input(
                "scale",
                format!("there is no scaling '{other}'"),
                "give standard, minmax, unit or none",
            )),
        }
    }
}

/// A wish: `kind` for all views, or `view=kind` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleOption {
    /// The view; `None` for all.
    pub view: Option<String>,
    /// How to scale it.
    pub kind: ScaleKind,
}

impl fmt::Display for ScaleOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.view {
            Some(view) => write!(f, "{view}={}", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl FromStr for ScaleOption {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        // A view's name may hold '=', a kind may not.
        let (view, kind) = match text.rsplit_once('=') {
            Some((view, kind)) => (Some(view.to_owned()), kind),
            None => (None, text),
        };
        Ok(ScaleOption {
            view,
            kind: kind.parse()?,
        })
    }
}

/// The fitted scaling of all views.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Scaling {
    views: Vec<ViewScaling>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ViewScaling {
    view: String,
    #[serde(flatten)]
    how: How,
}

/// Columns become (x − shift)/divisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum How {
    Standard { shift: Vec<f64>, divisor: Vec<f64> },
    MinMax { shift: Vec<f64>, divisor: Vec<f64> },
    Unit,
}

impl Scaling {
    /// Takes the statistics of the training data. A later option wins over an earlier one, and one for a view
    /// over one for all; an option for all leaves strings and given matrices alone.
    pub fn fit(options: &[ScaleOption], views: &Views) -> Result<Self> {
        for option in options {
            if let Some(name) = &option.view
                && views.get(name).is_none()
            {
                let known: Vec<&str> = views.iter().map(|v| v.name.as_str()).collect();
                return Err(Error::input(
                    "scale",
                    format!("there is no view '{name}'"),
                    format!("the views are {}", crate::error::some_of(known)),
                ));
            }
        }
        let for_all = options.iter().rev().find(|o| o.view.is_none());
        let mut fitted = Vec::new();
        for view in views {
            let own = options
                .iter()
                .rev()
                .find(|o| o.view.as_ref() == Some(&view.name));
            let kind = own.or(for_all).map_or(ScaleKind::None, |o| o.kind);
            let how = match (kind, &view.data) {
                (ScaleKind::None, _) => continue,
                (ScaleKind::Standard, ViewData::Dense(x)) => standard(x),
                (ScaleKind::MinMax, ViewData::Dense(x)) => minmax(x),
                (ScaleKind::Unit, ViewData::Dense(_) | ViewData::Sparse(_)) => How::Unit,
                (_, ViewData::Sparse(_)) => {
                    return Err(Error::input(
                        format!("view '{}'", view.name),
                        format!("the view is sparse, and scaling '{kind}' would fill its zeros"),
                        "take unit or none, or give the view as a dense array",
                    ));
                }
                (_, ViewData::Strings(_) | ViewData::Pairwise(_)) if own.is_none() => continue,
                (_, ViewData::Strings(_) | ViewData::Pairwise(_)) => {
                    return Err(Error::input(
                        format!("view '{}'", view.name),
                        format!(
                            "a view of kind '{}' has no columns to scale",
                            view.data.kind()
                        ),
                        "take none",
                    ));
                }
            };
            fitted.push(ViewScaling {
                view: view.name.clone(),
                how,
            });
        }
        Ok(Scaling { views: fitted })
    }

    /// Scales data of any size that has the views and columns of the training data.
    pub fn apply(&self, views: Views) -> Result<Views> {
        for scaling in &self.views {
            if views.get(&scaling.view).is_none() {
                return Err(Error::input(
                    format!("view '{}'", scaling.view),
                    "it was scaled in training but is missing",
                    "give the views of the training data",
                ));
            }
        }
        views.map(|view| {
            let Some(scaling) = self.views.iter().find(|s| s.view == view.name) else {
                return Ok(view);
            };
            let place = format!("view '{}'", view.name);
            let data = match (&scaling.how, view.data) {
                (
                    How::Standard { shift, divisor } | How::MinMax { shift, divisor },
                    ViewData::Dense(x),
                ) => {
                    if x.cols() != shift.len() || divisor.len() != shift.len() {
                        return Err(Error::input(
                            place,
                            format!(
                                "it has {} columns, in training it had {}",
                                x.cols(),
                                shift.len()
                            ),
                            "give the columns of the training data in the same order",
                        ));
                    }
                    ViewData::Dense(
                        shift_and_divide(x, shift, divisor).map_err(|e| within(&place, e))?,
                    )
                }
                (How::Unit, ViewData::Dense(x)) => {
                    ViewData::Dense(unit_rows(x).map_err(|e| within(&place, e))?)
                }
                (How::Unit, ViewData::Sparse(x)) => ViewData::Sparse(x.unit_rows()),
                (_, other) => {
                    return Err(Error::input(
                        place,
                        format!("it is of kind '{}', in training it was not", other.kind()),
                        "give the view as in training",
                    ));
                }
            };
            Ok(View { data, ..view })
        })
    }

    /// The scaling of those views only for which `wanted` holds.
    pub fn only(&self, wanted: impl Fn(&str) -> bool) -> Self {
        Scaling {
            views: self
                .views
                .iter()
                .filter(|s| wanted(&s.view))
                .cloned()
                .collect(),
        }
    }

    /// Whether nothing is scaled.
    pub fn is_none(&self) -> bool {
        self.views.is_empty()
    }

    /// How the view of that name is scaled.
    pub fn kind(&self, view: &str) -> ScaleKind {
        match self.views.iter().find(|s| s.view == view).map(|s| &s.how) {
            None => ScaleKind::None,
            Some(How::Standard { .. }) => ScaleKind::Standard,
            Some(How::MinMax { .. }) => ScaleKind::MinMax,
            Some(How::Unit) => ScaleKind::Unit,
        }
    }
}

fn within(place: &str, error: Error) -> Error {
    match error {
        Error::Input(e) => Error::Input(InputError {
            remedy: "check the column for values far outside of the training data".into(),
            ..e
        })
        .within(&format!("{place} after scaling")),
        other => other,
    }
}

/// Smallest and largest value of each column.
fn range(x: &Dense) -> (Vec<f32>, Vec<f32>) {
    let mut low = x.row(0).to_vec();
    let mut high = low.clone();
    for i in 1..x.rows() {
        for ((low, high), &v) in low.iter_mut().zip(&mut high).zip(x.row(i)) {
            *low = low.min(v);
            *high = high.max(v);
        }
    }
    (low, high)
}

fn minmax(x: &Dense) -> How {
    let (low, high) = range(x);
    let divisor = low
        .iter()
        .zip(&high)
        .map(|(&l, &h)| divisor(f64::from(h) - f64::from(l), l == h))
        .collect();
    How::MinMax {
        shift: low.into_iter().map(f64::from).collect(),
        divisor,
    }
}

/// Two passes: the mean, then the deviations from it, so that a large mean costs no digits.
fn standard(x: &Dense) -> How {
    let (low, high) = range(x);
    let n = x.rows() as f64;
    let mut mean = vec![0.0f64; x.cols()];
    for i in 0..x.rows() {
        for (m, &v) in mean.iter_mut().zip(x.row(i)) {
            *m += f64::from(v);
        }
    }
    mean.iter_mut().for_each(|m| *m /= n);
    let mut square = vec![0.0f64; x.cols()];
    for i in 0..x.rows() {
        for ((s, &m), &v) in square.iter_mut().zip(&mean).zip(x.row(i)) {
            *s += (f64::from(v) - m).powi(2);
        }
    }
    let divisor = square
        .iter()
        .zip(low.iter().zip(&high))
        .map(|(&s, (&l, &h))| divisor((s / n).sqrt(), l == h))
        .collect();
    How::Standard {
        shift: mean,
        divisor,
    }
}

/// A constant column is shifted only.
fn divisor(spread: f64, constant: bool) -> f64 {
    if constant || spread == 0.0 {
        1.0
    } else {
        spread
    }
}

fn shift_and_divide(x: Dense, shift: &[f64], divisor: &[f64]) -> Result<Dense> {
    let (rows, cols) = (x.rows(), x.cols());
    let mut values = x.into_values();
    if cols > 0 {
        for row in values.chunks_exact_mut(cols) {
            for ((v, &s), &d) in row.iter_mut().zip(shift).zip(divisor) {
                *v = ((f64::from(*v) - s) / d) as f32;
            }
        }
    }
    Dense::new(rows, cols, values)
}

fn unit_rows(x: Dense) -> Result<Dense> {
    let (rows, cols) = (x.rows(), x.cols());
    let mut values = x.into_values();
    if cols > 0 {
        values.chunks_exact_mut(cols).for_each(unit_length);
    }
    Dense::new(rows, cols, values)
}

/// Divides by the length; zeros stay zeros.
pub(super) fn unit_length(row: &mut [f32]) {
    let length = row
        .iter()
        .map(|&v| f64::from(v).powi(2))
        .sum::<f64>()
        .sqrt();
    if length > 0.0 {
        row.iter_mut()
            .for_each(|v| *v = (f64::from(*v) / length) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;
    use proptest::prelude::*;

    fn dense(name: &str, rows: usize, cols: usize, values: Vec<f32>) -> View {
        View {
            name: name.into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(rows, cols, values).unwrap()),
        }
    }

    fn values(views: &Views, name: &str) -> Vec<f32> {
        match &views.get(name).unwrap().data {
            ViewData::Dense(x) => x.values().to_vec(),
            _ => panic!("dense expected"),
        }
    }

    fn fit_apply(option: &str, train: Vec<f32>, new: Vec<f32>) -> (Vec<f32>, Vec<f32>) {
        let cols = 2;
        let train = Views::new(vec![dense("a", train.len() / cols, cols, train)]).unwrap();
        let new = Views::new(vec![dense("a", new.len() / cols, cols, new)]).unwrap();
        let scaling = Scaling::fit(&[option.parse().unwrap()], &train).unwrap();
        let again: Scaling =
            serde_json::from_str(&serde_json::to_string(&scaling).unwrap()).unwrap();
        assert_eq!(again, scaling);
        (
            values(&scaling.apply(train).unwrap(), "a"),
            values(&scaling.apply(new).unwrap(), "a"),
        )
    }

    #[test]
    fn statistics_come_from_the_training_data() {
        let (train, new) = fit_apply("standard", vec![1.0, 7.0, 3.0, 7.0], vec![5.0, 8.0]);
        assert_eq!(train, [-1.0, 0.0, 1.0, 0.0]);
        assert_eq!(
            new,
            [3.0, 1.0],
            "the constant column is shifted, not divided"
        );
        let (train, new) = fit_apply("a=minmax", vec![1.0, 7.0, 3.0, 7.0], vec![5.0, 8.0]);
        assert_eq!(train, [0.0, 0.0, 1.0, 0.0]);
        assert_eq!(new, [2.0, 1.0]);
        let (train, new) = fit_apply("unit", vec![3.0, 4.0, 0.0, 0.0], vec![0.0, -2.0]);
        assert_eq!(train, [0.6, 0.8, 0.0, 0.0]);
        assert_eq!(new, [0.0, -1.0]);
        let (train, _) = fit_apply("none", vec![3.0, 4.0], vec![0.0, -2.0]);
        assert_eq!(train, [3.0, 4.0]);
    }

    #[test]
    fn a_view_wins_over_all_and_strings_are_left_alone() {
        let text = View {
            name: "s".into(),
            columns: Vec::new(),
            data: ViewData::Strings(vec![b"a".to_vec(), b"b".to_vec()]),
        };
        let views = Views::new(vec![
            dense("a", 2, 1, vec![0.0, 4.0]),
            dense("b", 2, 1, vec![0.0, 4.0]),
            text,
        ])
        .unwrap();
        let options: Vec<ScaleOption> = ["a=none", "minmax"]
            .iter()
            .map(|o| o.parse().unwrap())
            .collect();
        let scaling = Scaling::fit(&options, &views).unwrap();
        assert_eq!(scaling.kind("a"), ScaleKind::None);
        assert_eq!(scaling.kind("b"), ScaleKind::MinMax);
        let scaled = scaling.apply(views.clone()).unwrap();
        assert_eq!(values(&scaled, "a"), [0.0, 4.0]);
        assert_eq!(values(&scaled, "b"), [0.0, 1.0]);
        let error = Scaling::fit(&["s=unit".parse().unwrap()], &views)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("'strings' has no columns to scale"),
            "{error}"
        );
        let error = Scaling::fit(&["x=unit".parse().unwrap()], &views)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "scale: there is no view 'x'; the views are 'a', 'b', 's'"
        );
        let error = "a=big".parse::<ScaleOption>().unwrap_err().to_string();
        assert_eq!(
            error,
            "scale: there is no scaling 'big'; give standard, minmax, unit or none"
        );
    }

    #[test]
    fn sparse_views_take_unit_only() {
        let sparse = Csr::new(3, vec![0, 2, 2], vec![0, 2], vec![3.0, 4.0]).unwrap();
        let views = Views::new(vec![View {
            name: "s".into(),
            columns: Vec::new(),
            data: ViewData::Sparse(sparse),
        }])
        .unwrap();
        let error = Scaling::fit(&["standard".parse().unwrap()], &views)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "view 's': the view is sparse, and scaling 'standard' would fill its zeros; \
             take unit or none, or give the view as a dense array"
        );
        let scaling = Scaling::fit(&["unit".parse().unwrap()], &views).unwrap();
        let scaled = scaling.apply(views).unwrap();
        let ViewData::Sparse(x) = &scaled.get("s").unwrap().data else {
            panic!("sparse expected");
        };
        assert_eq!(x.row(0), (&[0u32, 2][..], &[0.6f32, 0.8][..]));
    }

    #[test]
    fn other_columns_than_in_training_are_refused() {
        let train = Views::new(vec![dense("a", 2, 2, vec![1.0, 2.0, 3.0, 4.0])]).unwrap();
        let scaling = Scaling::fit(&["standard".parse().unwrap()], &train).unwrap();
        let new = Views::new(vec![dense("a", 1, 3, vec![0.0; 3])]).unwrap();
        let error = scaling.apply(new).unwrap_err().to_string();
        assert!(
            error.starts_with("view 'a': it has 3 columns, in training it had 2"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn standard_gives_mean_zero_deviation_one(column in proptest::collection::vec(-1e3f32..1e3, 2..50)) {
            prop_assume!(column.iter().any(|&v| (v - column[0]).abs() > 1e-2));
            let n = column.len();
            let views = Views::new(vec![dense("a", n, 1, column)]).unwrap();
            let scaling = Scaling::fit(&["standard".parse().unwrap()], &views).unwrap();
            let scaled = values(&scaling.apply(views).unwrap(), "a");
            let mean = scaled.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64;
            let square = scaled.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / n as f64;
            prop_assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-5, "{mean} {square}");
        }
    }
}
