//! Scores of samples, and what a model makes of them.

use std::borrow::Cow;

/// Scores of new samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// What the numbers of a row belong to: for two classes the second one's name, for more every class's name, else
    /// `score`.
    pub names: Vec<String>,
    /// Row after row.
    pub values: Vec<f64>,
}

impl Scores {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.values.len() / self.names.len().max(1)
    }

    /// No samples.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The scores of sample `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.names.len()..(i + 1) * self.names.len()]
    }
}

/// What the model says about new samples.
#[derive(Debug, Clone, PartialEq)]
pub enum Predictions {
    /// A class for each sample.
    Classes {
        /// Names of the classes, in their original spelling.
        names: Vec<String>,
        /// The class of each sample, a position in `names`.
        index: Vec<u32>,
    },
    /// A value for each sample.
    Real(Vec<f64>),
    /// Whether each sample is like the training samples (its score is at least 1).
    Inlier(Vec<bool>),
}

impl Predictions {
    /// Number of samples.
    pub fn len(&self) -> usize {
        match self {
            Predictions::Classes { index, .. } => index.len(),
            Predictions::Real(values) => values.len(),
            Predictions::Inlier(values) => values.len(),
        }
    }

    /// No samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The prediction for sample `i` as text: the class, the number, or `inlier` or `outlier`.
    pub fn text(&self, i: usize) -> Cow<'_, str> {
        match self {
            Predictions::Classes { names, index } => Cow::Borrowed(&names[index[i] as usize]),
            Predictions::Real(values) => Cow::Owned(values[i].to_string()),
            Predictions::Inlier(values) => {
                Cow::Borrowed(if values[i] { "inlier" } else { "outlier" })
            }
        }
    }
}
