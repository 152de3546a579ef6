//! Probabilities from scores: Platt's sigmoid for two classes, a temperature for more.
//!
//! Both minimise the negative log-likelihood of the classes of samples whose scores come from models that did not see them.
//! Two classes: p = 1/(1 + exp(−(slope·f + offset))), with the targets of Platt (1999), which keep p from 0 and 1, by Newton
//! steps with backtracking (Lin, Lin and Weng 2007). More classes: the softmax of f/T; the likelihood is concave in 1/T, whose
//! derivative is bisected.

use super::Scores;
use serde::{Deserialize, Serialize};

/// Newton steps at most; a dozen are usual.
const MOST_STEPS: usize = 100;
/// Halvings of a Newton step at most.
const MOST_HALVINGS: usize = 40;
/// Keeps the Hessian of separable scores invertible.
const RIDGE: f64 = 1e-12;
/// Steps of the bisection: all bits of 1/T.
const BISECTIONS: usize = 100;
/// 1/T lies within e^±7 of one over the spread of the scores.
const RANGE: f64 = 7.0;

/// What turns scores into probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Calibration {
    /// p of the second of two classes is 1/(1 + exp(−(slope·f + offset))), f its score (less that of the first, if there are two).
    Sigmoid {
        /// Multiplies the score.
        slope: f64,
        /// Added to it.
        offset: f64,
    },
    /// p is the softmax of the scores divided by this.
    Temperature {
        /// T > 0
        temperature: f64,
    },
}

impl Calibration {
    /// The likeliest calibration of scores of samples that were not trained on; `weights` are those of the samples.
    ///
    /// # Panics
    /// If there is not one score (two classes) or one for each class, one class and one weight for each sample.
    pub fn fit(scores: &Scores, classes: &[u32], weights: &[f64], n_classes: usize) -> Calibration {
        assert!(scores.len() == classes.len() && weights.len() == classes.len());
        match n_classes {
            2 => sigmoid(&differences(scores), classes, weights),
            _ => temperature(&scores.values, classes, weights, n_classes),
        }
    }

    /// Probabilities of all classes, sample after sample.
    pub fn probabilities(&self, scores: &Scores) -> Vec<f64> {
        match *self {
            Calibration::Sigmoid { slope, offset } => differences(scores)
                .into_iter()
                .flat_map(|f| {
                    let z = slope * f + offset;
                    [logistic(-z), logistic(z)]
                })
                .collect(),
            Calibration::Temperature { temperature } => {
                let mut values = scores.values.clone();
                for row in values.chunks_mut(scores.names.len().max(1)) {
                    softmax(row, 1.0 / temperature);
                }
                values
            }
        }
    }

    /// Whether it belongs to so many classes, with numbers that it may have.
    pub(crate) fn fits(&self, classes: usize) -> bool {
        match *self {
            Calibration::Sigmoid { slope, offset } => {
                classes == 2 && slope.is_finite() && offset.is_finite()
            }
            Calibration::Temperature { temperature } => {
                classes > 2 && temperature > 0.0 && temperature.is_finite()
            }
        }
    }
}

/// One score for each sample of two classes.
fn differences(scores: &Scores) -> Vec<f64> {
    match scores.names.len() {
        2 => scores.values.chunks(2).map(|row| row[1] - row[0]).collect(),
        _ => scores.values.clone(),
    }
}

fn logistic(z: f64) -> f64 {
    match z >= 0.0 {
        true => 1.0 / (1.0 + (-z).exp()),
        false => z.exp() / (1.0 + z.exp()),
    }
}

/// ln(1 + exp(z)).
fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

fn softmax(row: &mut [f64], factor: f64) {
    let top = row.iter().fold(f64::NEG_INFINITY, |t, v| t.max(*v));
    row.iter_mut()
        .for_each(|v| *v = (factor * (*v - top)).exp());
    let total: f64 = row.iter().sum();
    row.iter_mut().for_each(|v| *v /= total);
}

fn sigmoid(scores: &[f64], classes: &[u32], weights: &[f64]) -> Calibration {
    let weight_of = |class: u32| -> f64 {
        let own = classes.iter().zip(weights).filter(|(c, _)| **c == class);
        own.map(|(_, w)| w).sum()
    };
    let (ones, others) = (weight_of(1), weight_of(0));
    let target = |class: u32| match class {
        1 => (ones + 1.0) / (ones + 2.0),
        _ => 1.0 / (others + 2.0),
    };
    // Scores of any size are looked at as numbers up to 1.
    let scale = scores.iter().fold(1e-12f64, |top, f| top.max(f.abs()));
    let samples: Vec<(f64, f64, f64)> = scores
        .iter()
        .zip(classes.iter().zip(weights))
        .map(|(f, (&c, &w))| (f / scale, target(c), w))
        .collect();
    let loss = |x: [f64; 2]| -> f64 {
        let of = |&(f, t, w): &(f64, f64, f64)| {
            let z = x[0] * f + x[1];
            w * (t * softplus(-z) + (1.0 - t) * softplus(z))
        };
        samples.iter().map(of).sum()
    };
    let mut x = [0.0, ((ones + 1.0) / (others + 1.0)).ln()];
    let mut value = loss(x);
    for _ in 0..MOST_STEPS {
        let (mut g, mut h) = ([0.0; 2], [0.0; 3]);
        for &(f, t, w) in &samples {
            let p = logistic(x[0] * f + x[1]);
            let (slope, curvature) = (w * (p - t), w * p * (1.0 - p));
            g[0] += slope * f;
            g[1] += slope;
            h[0] += curvature * f * f;
            h[1] += curvature * f;
            h[2] += curvature;
        }
        let ridge = RIDGE * (h[0] + h[2]).max(f64::MIN_POSITIVE);
        let (a, b, c) = (h[0] + ridge, h[1], h[2] + ridge);
        let determinant = a * c - b * b;
        let step = [
            (b * g[1] - c * g[0]) / determinant,
            (b * g[0] - a * g[1]) / determinant,
        ];
        let along = g[0] * step[0] + g[1] * step[1];
        if !along.is_finite() || along >= -1e-14 * value.abs().max(1e-300) {
            break;
        }
        let mut length = 1.0;
        let taken = (0..MOST_HALVINGS).find_map(|_| {
            let next = [x[0] + length * step[0], x[1] + length * step[1]];
            let then = loss(next);
            let found = (then <= value + 1e-4 * length * along).then_some((next, then));
            length *= 0.5;
            found
        });
        let Some((next, then)) = taken else { break };
        (x, value) = (next, then);
    }
    Calibration::Sigmoid {
        slope: x[0] / scale,
        offset: x[1],
    }
}

fn temperature(scores: &[f64], classes: &[u32], weights: &[f64], n_classes: usize) -> Calibration {
    let spread = scores.chunks(n_classes).fold(1e-12f64, |top, row| {
        let mean = row.iter().sum::<f64>() / n_classes as f64;
        row.iter().fold(top, |top, f| top.max((f - mean).abs()))
    });
    let mut buffer = vec![0.0; n_classes];
    // d/du of the negative log-likelihood at u = 1/T: never falls with u.
    let mut slope = |u: f64| -> f64 {
        let mut sum = 0.0;
        for (row, (&y, &w)) in scores.chunks(n_classes).zip(classes.iter().zip(weights)) {
            buffer.copy_from_slice(row);
            softmax(&mut buffer, u);
            let mean: f64 = buffer.iter().zip(row).map(|(p, f)| p * f).sum();
            sum += w * (mean - row[y as usize]);
        }
        sum
    };
    let (mut low, mut high) = (-RANGE, RANGE);
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        match slope(middle.exp() / spread) > 0.0 {
            true => high = middle,
            false => low = middle,
        }
    }
    Calibration::Temperature {
        temperature: spread * (-0.5 * (low + high)).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn scores(width: usize, values: Vec<f64>) -> Scores {
        Scores {
            names: (0..width).map(|k| k.to_string()).collect(),
            values,
        }
    }

    #[test]
    fn a_sigmoid_is_found_again() {
        let mut random = Random::new(1);
        let (slope, offset, n) = (0.02, -0.7, 40_000);
        let values: Vec<f64> = (0..n).map(|_| 100.0 * random.normal()).collect();
        let classes: Vec<u32> = values
            .iter()
            .map(|f| u32::from(random.uniform() < logistic(slope * f + offset)))
            .collect();
        let found = Calibration::fit(&scores(1, values.clone()), &classes, &vec![1.0; n], 2);
        let Calibration::Sigmoid {
            slope: s,
            offset: o,
        } = found
        else {
            panic!("{found:?}")
        };
        assert!(
            (s / slope - 1.0).abs() < 0.05 && (o - offset).abs() < 0.05,
            "{found:?}"
        );
        // Two scores are as good as their difference.
        let pairs = values.iter().flat_map(|f| [-0.5 * f, 0.5 * f]).collect();
        let twice = Calibration::fit(&scores(2, pairs), &classes, &vec![1.0; n], 2);
        let Calibration::Sigmoid { slope: t, .. } = twice else {
            panic!("{twice:?}")
        };
        assert!((t - s).abs() < 1e-9 * s);
        let p = found.probabilities(&scores(1, vec![35.0]));
        assert!(
            (p[0] + p[1] - 1.0).abs() < 1e-12 && (p[1] - 0.5).abs() < 0.02,
            "{p:?}"
        );
    }

    #[test]
    fn scores_that_separate_the_classes_give_no_certainty() {
        let found = Calibration::fit(
            &scores(1, vec![-1.0, -2.0, 1.0, 2.0]),
            &[0, 0, 1, 1],
            &[1.0; 4],
            2,
        );
        let p = found.probabilities(&scores(1, vec![1.5]));
        // Platt's targets are 1/4 and 3/4 here.
        assert!((0.7..0.85).contains(&p[1]), "{found:?} {p:?}");
    }

    #[test]
    fn a_temperature_is_found_again() {
        let mut random = Random::new(2);
        let (n, k, true_temperature) = (20_000, 4, 0.3);
        let values: Vec<f64> = (0..n * k).map(|_| random.normal()).collect();
        let classes: Vec<u32> = values
            .chunks(k)
            .map(|row| {
                let mut p = row.to_vec();
                softmax(&mut p, 1.0 / true_temperature);
                let mut left = random.uniform();
                (0..k - 1)
                    .find(|&c| {
                        left -= p[c];
                        left < 0.0
                    })
                    .unwrap_or(k - 1) as u32
            })
            .collect();
        let found = Calibration::fit(&scores(k, values), &classes, &vec![1.0; n], k);
        let Calibration::Temperature { temperature } = found else {
            panic!("{found:?}")
        };
        assert!(
            (temperature / true_temperature - 1.0).abs() < 0.03,
            "{temperature}"
        );
        let p = found.probabilities(&scores(k, vec![1e6, 0.0, -1e6, 0.0]));
        assert_eq!(p, [1.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn weights_count_as_copies() {
        let values = vec![-1.0, 0.3, 0.2, 2.0, -0.5];
        let classes = [0, 0, 1, 1, 1];
        let weighted = Calibration::fit(
            &scores(1, values.clone()),
            &classes,
            &[1.0, 3.0, 1.0, 1.0, 2.0],
            2,
        );
        let rows = [0, 1, 1, 1, 2, 3, 4, 4];
        let copied = Calibration::fit(
            &scores(1, rows.map(|i| values[i]).to_vec()),
            &rows.map(|i| classes[i]),
            &[1.0; 8],
            2,
        );
        let (Calibration::Sigmoid { slope: a, .. }, Calibration::Sigmoid { slope: b, .. }) =
            (weighted, copied)
        else {
            panic!("sigmoids")
        };
        assert!((a - b).abs() < 1e-7 * a.abs(), "{a} {b}");
    }
}
