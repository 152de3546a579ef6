//! The upper layer of OMCL: PA-I on the scores of all kernels for all classes.
//!
//! f_k(x) = V_k · u(x), where u holds the score of every kernel for every class. It starts from the mean of the kernels'
//! scores for class k.

use super::passive_aggressive_step;
use serde::{Deserialize, Serialize};

/// V, class after class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Combiner {
    kernels: usize,
    /// One row per class; a row is as long as there are classes times kernels.
    rows: Vec<Vec<f64>>,
}

impl Combiner {
    pub(crate) fn new(kernels: usize) -> Self {
        Combiner {
            kernels,
            rows: Vec::new(),
        }
    }

    /// One more class: its own scores count, nothing else.
    pub(crate) fn add_class(&mut self) {
        let classes = self.rows.len() + 1;
        let width = classes * self.kernels;
        for row in &mut self.rows {
            row.resize(width, 0.0);
        }
        let mut row = vec![0.0; width];
        row[width - self.kernels..].fill(1.0 / self.kernels as f64);
        self.rows.push(row);
    }

    /// Scores of the classes.
    pub(crate) fn scores(&self, u: &[f64], out: &mut [f64]) {
        for (out, row) in out.iter_mut().zip(&self.rows) {
            *out = row.iter().zip(u).map(|(v, u)| v * u).sum();
        }
    }

    /// A step for class y against its rival; gives whether anything changed.
    pub(crate) fn step(&mut self, c: f64, y: usize, rival: usize, margin: f64, u: &[f64]) -> bool {
        let square: f64 = 2.0 * u.iter().map(|u| u * u).sum::<f64>();
        if margin >= 1.0 || square == 0.0 {
            return false;
        }
        let step = passive_aggressive_step(c, 1.0 - margin, square);
        for (class, sign) in [(y, step), (rival, -step)] {
            let pairs = self.rows[class].iter_mut().zip(u);
            pairs.for_each(|(v, u)| *v += sign * u);
        }
        true
    }

    /// What class k's score takes of kernel m's score for class `from`.
    pub(crate) fn share(&self, k: usize, from: usize, m: usize) -> f64 {
        self.rows[k][from * self.kernels + m]
    }

    /// How much each kernel counts for its own class, in the mean over the classes.
    pub(crate) fn weights(&self) -> Vec<f64> {
        let classes = self.rows.len();
        (0..self.kernels)
            .map(|m| match classes {
                0 => 1.0 / self.kernels as f64,
                _ => (0..classes).map(|k| self.share(k, k, m).abs()).sum::<f64>() / classes as f64,
            })
            .collect()
    }

    /// Whether it fits so many classes and kernels.
    pub(crate) fn fits(&self, classes: usize, kernels: usize) -> bool {
        let width = classes * kernels;
        self.kernels == kernels
            && self.rows.len() == classes
            && self
                .rows
                .iter()
                .all(|row| row.len() == width && row.iter().all(|v| v.is_finite()))
    }
}
