//! OMCL (Luo, Orabona, Caputo, ACCV 2009): PA-I for every kernel by itself, and PA-I on top of all their scores.
//!
//! Lower layer: kernel m has a score u_{km}(x) for every class k, with coefficients of its own. Upper layer: f_k(x) = V_k · u(x),
//! where u holds the score of every kernel for every class; V starts from the mean of the kernels' scores for class k. A round
//! takes one step in each layer, both seeing the same u: class after class, in it one score per kernel.

use super::passive_aggressive::tau;
use crate::loss::multiclass::violator;
use serde::{Deserialize, Serialize};

/// A change of kernel m's coefficient of the sample for a class.
pub(crate) struct KernelChange {
    pub(crate) class: usize,
    pub(crate) m: usize,
    pub(crate) change: f64,
}

/// The lower layer's round: what changes in the kernels whose own margin is below 1, given k_m(x, x).
pub(crate) fn kernel_changes(c: f64, u: &[f64], y: usize, diagonal: &[f64]) -> Vec<KernelChange> {
    let kernels = diagonal.len();
    let mut changes = Vec::new();
    for (m, d) in diagonal.iter().enumerate() {
        let own: Vec<f64> = u.iter().skip(m).step_by(kernels).copied().collect();
        let Some(rival) = violator(&own, y) else {
            continue;
        };
        let (loss, square) = (1.0 - (own[y] - own[rival]), 2.0 * d);
        if loss > 0.0 && square > 0.0 {
            let step = tau(c, loss, square);
            for (class, change) in [(y, step), (rival, -step)] {
                changes.push(KernelChange { class, m, change });
            }
        }
    }
    changes
}

/// The upper layer: V, class after class.
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

    /// The upper layer's round, at these scores of the classes; gives whether anything changed.
    pub(crate) fn step(&mut self, c: f64, u: &[f64], scores: &[f64], y: usize) -> bool {
        let Some(rival) = violator(scores, y) else {
            return false;
        };
        let margin = scores[y] - scores[rival];
        let square: f64 = 2.0 * u.iter().map(|u| u * u).sum::<f64>();
        if margin >= 1.0 || square == 0.0 {
            return false;
        }
        let step = tau(c, 1.0 - margin, square);
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

    /// The weights as a model has them: never 0, because a kernel's coefficients are divided by its weight.
    pub(crate) fn model_weights(&self) -> Vec<f64> {
        let weights = self.weights().into_iter();
        weights.map(|w| if w == 0.0 { 1.0 } else { w }).collect()
    }

    /// Whether it was made for these classes and kernels.
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
