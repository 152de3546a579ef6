//! Scores and predictions for new samples, in blocks of rows, so that memory does not grow with their number.

use super::{Model, Scheme, pairs};
use crate::data::{Pairwise, Task, View, ViewData, Views};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Combined, Gram};
use crate::measure::{Predictions, Scores};

/// About so many bytes of new samples are looked at together.
const BLOCK_BYTES: usize = 32 << 20;
/// And at most so many rows.
const BLOCK_ROWS: usize = 8192;
/// About so many bytes of statistics are stored, where that helps.
const STORED_BYTES: usize = 16 << 20;

/// Scores that share kernel weights, and their coefficients.
struct Together<'a> {
    weights: &'a [f64],
    scores: Vec<usize>,
    coefficients: Vec<f64>,
}

impl Model {
    /// Decision values for new samples, row after row: f + b, one number per score.
    ///
    /// The samples must have the views of the training data, before scaling. A given matrix has one row for each new
    /// sample and a column for each training sample, or for each sample of [`Model::columns`].
    pub fn decision_values(&self, views: &Views) -> Result<Vec<f64>> {
        let parts = &self.parts;
        let needed = self.needed_views();
        let used = self.find_views(views, &needed)?;
        let outputs = self.n_scores();
        let together = self.together();
        let n = views.len();
        // Problems with weights of their own ask for every pair again: then statistics are stored, for fewer rows.
        let (step, memory) = if together.len() > 1 {
            let per_row = 4 * parts.columns.len() * self.reference.n_statistics();
            let rows = (STORED_BYTES / per_row.max(1)).clamp(16, BLOCK_ROWS);
            (block_rows(&used).min(rows), STORED_BYTES as u64)
        } else {
            (block_rows(&used), 0)
        };
        let mut values = Vec::with_capacity(n * outputs);
        for from in (0..n).step_by(step) {
            let rows: Vec<usize> = (from..(from + step).min(n)).collect();
            let block = used
                .iter()
                .map(|view| self.block(view, &rows))
                .collect::<Result<Vec<View>>>()?;
            let block = parts
                .scaling
                .apply(Views::new(block)?)
                .map_err(|e| shifted(e, from))?;
            let gram = self
                .reference
                .cross(&block, memory)
                .map_err(|e| shifted(e, from))?;
            let start = values.len();
            values.extend(rows.iter().flat_map(|_| &parts.biases));
            self.add_kernels(&gram, &together, |k, a| k.product(a), &mut values[start..]);
        }
        Ok(values)
    }

    /// Decision values of the row samples of a Gram whose columns are the samples kept and whose kernels are those kept, from kernel
    /// values in f32: for comparisons.
    pub(crate) fn rounded_values_by(&self, gram: &Gram) -> Vec<f64> {
        self.rounded_values(gram, gram.n_rows(), |k, a| k.fast_product(a))
    }

    /// The same of the column samples of a Gram whose rows are the samples kept.
    pub(crate) fn rounded_values_across(&self, gram: &Gram) -> Vec<f64> {
        self.rounded_values(gram, gram.n_cols(), |k, a| k.fast_transposed_product(a))
    }

    fn rounded_values(
        &self,
        gram: &Gram,
        samples: usize,
        product: impl Fn(&Combined<'_>, Coefficients<'_>) -> Vec<f64>,
    ) -> Vec<f64> {
        let biases = (0..samples).flat_map(|_| &self.parts.biases);
        let mut values: Vec<f64> = biases.copied().collect();
        self.add_kernels(gram, &self.together(), product, &mut values);
        values
    }

    /// Adds to every score what the kernels say.
    fn add_kernels(
        &self,
        gram: &Gram,
        together: &[Together<'_>],
        product: impl Fn(&Combined<'_>, Coefficients<'_>) -> Vec<f64>,
        values: &mut [f64],
    ) {
        let (parts, outputs) = (&self.parts, self.n_scores());
        if parts.separate.is_some() {
            for m in 0..parts.kernels.len() {
                let own = self.separate_coefficients(m).unwrap_or_default();
                let scores = product(&gram.kernel(m), Coefficients::new(own, outputs));
                // Every problem has its own weights, a joint one the same for all scores.
                let problems = parts.problems();
                let weight = |p: usize| parts.weights[(p % problems) * parts.kernels.len() + m];
                for (at, (value, score)) in values.iter_mut().zip(scores).enumerate() {
                    *value += weight(at % outputs) * score;
                }
            }
            return;
        }
        for group in together {
            let k = group.scores.len();
            let coefficients = Coefficients::new(&group.coefficients, k);
            let scores = product(&gram.combine(group.weights), coefficients);
            for (row, scores) in values.chunks_mut(outputs).zip(scores.chunks(k)) {
                for (&p, score) in group.scores.iter().zip(scores) {
                    row[p] += score;
                }
            }
        }
    }

    /// Scores of new samples; see [`Model::decision_values`] for what they must look like.
    ///
    /// For one-vs-one the score of a class is the number of pairs it wins, plus less than ½ by how clearly.
    pub fn scores(&self, views: &Views) -> Result<Scores> {
        Ok(self.scores_of(self.decision_values(views)?))
    }

    /// Probabilities of the classes by scores of this model, sample after sample; none if it was not
    /// [calibrated](crate::Mkl::calibrate).
    pub fn probabilities(&self, scores: &Scores) -> Option<Vec<f64>> {
        Some(self.parts.calibration?.probabilities(scores))
    }

    /// Scores by their names, from decision values.
    pub(crate) fn scores_of(&self, values: Vec<f64>) -> Scores {
        let classes = &self.parts.classes;
        match (self.parts.task, self.parts.scheme) {
            (Task::Classify, Scheme::Single) => Scores {
                names: classes[1..].to_vec(),
                values,
            },
            (Task::Classify, Scheme::OneVsRest | Scheme::Joint) => Scores {
                names: classes.clone(),
                values,
            },
            (Task::Classify, Scheme::OneVsOne) => Scores {
                names: classes.clone(),
                values: values
                    .chunks(self.n_scores())
                    .flat_map(|row| votes(row, classes.len()))
                    .collect(),
            },
            (Task::Regress | Task::OneClass, _) => Scores {
                names: vec!["score".into()],
                values,
            },
        }
    }

    /// Predictions for new samples; see [`Model::decision_values`] for what they must look like.
    pub fn predict(&self, views: &Views) -> Result<Predictions> {
        Ok(self.predictions(&self.scores(views)?))
    }

    /// The predictions that follow from scores of this model.
    pub fn predictions(&self, scores: &Scores) -> Predictions {
        let names = self.parts.classes.clone();
        match (self.parts.task, self.parts.scheme) {
            (Task::Regress, _) => Predictions::Real(scores.values.clone()),
            (Task::OneClass, _) => {
                Predictions::Inlier(scores.values.iter().map(|f| *f >= 1.0).collect())
            }
            (Task::Classify, Scheme::Single) => Predictions::Classes {
                names,
                index: scores.values.iter().map(|f| u32::from(*f > 0.0)).collect(),
            },
            (Task::Classify, Scheme::OneVsRest | Scheme::OneVsOne | Scheme::Joint) => {
                Predictions::Classes {
                    index: scores
                        .values
                        .chunks(names.len())
                        .map(|row| largest(row) as u32)
                        .collect(),
                    names,
                }
            }
        }
    }

    fn together(&self) -> Vec<Together<'_>> {
        let scores = self.n_scores();
        let mut groups: Vec<(&[f64], Vec<usize>)> = Vec::new();
        for p in 0..self.n_problems() {
            let weights = self.weights(p);
            let own = match self.parts.scheme {
                Scheme::Joint => (0..scores).collect(),
                Scheme::Single | Scheme::OneVsRest | Scheme::OneVsOne => vec![p],
            };
            match groups.iter_mut().find(|group| group.0 == weights) {
                Some(group) => group.1.extend(own),
                None => groups.push((weights, own)),
            }
        }
        groups
            .into_iter()
            .map(|(weights, own)| Together {
                weights,
                coefficients: self
                    .parts
                    .coefficients
                    .chunks(scores)
                    .flat_map(|row| own.iter().map(|&k| row[k]))
                    .collect(),
                scores: own,
            })
            .collect()
    }

    /// The views that the kernels look at, of the right shape.
    fn find_views<'v>(&self, views: &'v Views, needed: &[(&str, bool)]) -> Result<Vec<&'v View>> {
        needed
            .iter()
            .map(|&(name, given)| {
                let place = || format!("view '{name}'");
                let Some(view) = views.get(name) else {
                    let there: Vec<String> =
                        views.iter().map(|v| format!("'{}'", v.name)).collect();
                    return Err(Error::input(
                        place(),
                        "the model needs it, but it is missing",
                        match there.is_empty() {
                            true => "no views were given".into(),
                            false => format!("the views given are {}", there.join(", ")),
                        },
                    ));
                };
                self.check_view(view, given)
                    .map_err(|e| e.within(&place()))?;
                Ok(view)
            })
            .collect()
    }

    fn check_view(&self, view: &View, given: bool) -> Result<()> {
        let width = |columns: usize, training: usize, more_only: bool| {
            if columns == training || (more_only && columns < training) {
                return Ok(());
            }
            Err(Error::input(
                "",
                format!("it has {columns} columns, in training it had {training}"),
                "give the columns of the training data in the same order",
            ))
        };
        let known = self.parts.views.get(&view.name).map(|v| &v.data);
        let cols = match known {
            Some(ViewData::Dense(x)) => x.cols(),
            Some(ViewData::Sparse(x)) => x.cols(),
            _ => 0,
        };
        match (&view.data, known) {
            (ViewData::Pairwise(matrix), None) if given => {
                let (all, kept) = (self.parts.n_training, self.parts.columns.len());
                if matrix.cols() == all || matrix.cols() == kept {
                    return Ok(());
                }
                Err(Error::input(
                    "",
                    format!("it has {} columns", matrix.cols()),
                    format!(
                        "give one column for each of the {all} training samples, or for each of the {kept} that the model keeps"
                    ),
                ))
            }
            (ViewData::Dense(x), Some(ViewData::Dense(_) | ViewData::Sparse(_))) => {
                width(x.cols(), cols, false)
            }
            // A sparse file of new samples may not use the last columns.
            (ViewData::Sparse(x), Some(ViewData::Dense(_) | ViewData::Sparse(_))) => {
                width(x.cols(), cols, true)
            }
            (ViewData::Strings(_), Some(ViewData::Strings(_))) => Ok(()),
            (data, known) => Err(Error::input(
                "",
                format!(
                    "it is of kind '{}', in training it was '{}'",
                    data.kind(),
                    known.map_or("given matrix", ViewData::kind)
                ),
                "give the view as in training",
            )),
        }
    }

    /// Some rows of a view, in the form the samples of the model have.
    fn block(&self, view: &View, rows: &[usize]) -> Result<View> {
        let known = self.parts.views.get(&view.name).map(|v| &v.data);
        let data = match (&view.data, known) {
            (ViewData::Dense(x), _) => ViewData::Dense(x.select(rows)),
            (ViewData::Sparse(x), Some(ViewData::Dense(training))) => {
                ViewData::Sparse(x.select(rows).widen(training.cols()))
            }
            (ViewData::Sparse(x), Some(ViewData::Sparse(training))) => {
                ViewData::Sparse(x.select(rows).widen(training.cols()))
            }
            (ViewData::Sparse(x), _) => ViewData::Sparse(x.select(rows)),
            (ViewData::Strings(x), _) => {
                ViewData::Strings(rows.iter().map(|&i| x[i].clone()).collect())
            }
            (ViewData::Pairwise(x), _) => {
                let columns = &self.parts.columns;
                let cut = x.cols() != columns.len();
                let mut values = Vec::with_capacity(rows.len() * columns.len());
                for &i in rows {
                    let row = x.row(i);
                    if cut {
                        values.extend(columns.iter().map(|&j| row[j]));
                    } else {
                        values.extend_from_slice(row);
                    }
                }
                ViewData::Pairwise(Pairwise::new(rows.len(), columns.len(), values)?)
            }
        };
        Ok(View {
            name: view.name.clone(),
            columns: Vec::new(),
            data,
        })
    }
}

/// Rows of a block.
fn block_rows(views: &[&View]) -> usize {
    let per_row: usize = views
        .iter()
        .map(|view| match &view.data {
            ViewData::Dense(x) => 4 * x.cols(),
            ViewData::Sparse(x) => 8 * x.entries() / x.rows().max(1),
            ViewData::Strings(x) => 24 + x.iter().map(Vec::len).sum::<usize>() / x.len().max(1),
            ViewData::Pairwise(x) => 4 * x.cols(),
        })
        .sum();
    (BLOCK_BYTES / per_row.max(1)).clamp(16, BLOCK_ROWS)
}

/// Errors inside of a block count rows from its start; people count from the first.
fn shifted(error: Error, from: usize) -> Error {
    match error {
        Error::Input(mut e) if e.row.is_some() => {
            e.row = e.row.map(|row| from + row);
            Error::Input(e)
        }
        other if from == 0 => other,
        other => other.within(&format!("rows after the first {from}")),
    }
}

/// The first of the largest.
fn largest(row: &[f64]) -> usize {
    let mut best = 0;
    for (k, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = k;
        }
    }
    best
}

/// Pairs won by each class, and as a fraction how clearly.
fn votes(row: &[f64], classes: usize) -> Vec<f64> {
    let mut won = vec![0.0; classes];
    let mut margin = vec![0.0f64; classes];
    for ((a, b), &f) in pairs(classes).zip(row) {
        won[if f > 0.0 { b } else { a }] += 1.0;
        margin[b] += f;
        margin[a] -= f;
    }
    // Between −⅓ and ⅓ and growing with the margin: it decides between equal votes, and only there.
    won.iter()
        .zip(&margin)
        .map(|(won, m)| won + m / (3.0 * (m.abs() + 1.0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_are_counted_and_ties_go_to_the_clearest() {
        // Pairs (0,1), (0,2), (1,2): 1 beats 0, 0 beats 2, 2 beats 1: one vote each.
        let scores = votes(&[0.5, -2.0, 0.25], 3);
        assert_eq!(largest(&scores), 0);
        assert!(scores.iter().all(|s| (s - 1.0).abs() < 0.34));
        let scores = votes(&[0.1, 5.0, -0.1], 3);
        assert_eq!(largest(&scores), 1, "two votes beat any margin");
    }
}
