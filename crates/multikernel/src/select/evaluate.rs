//! What a model is worth on samples whose truth is known: metrics, and how far they may be off by chance.
//!
//! Intervals are those of the percentile bootstrap over the samples: the metric is computed again for so many as many samples
//! drawn with replacement, and the interval holds the middle 95 % of its values. They tell how much the metric depends on which
//! samples were looked at, not how much the model depends on its training samples.

use crate::data::{LabelKind, Labels, Task};
use crate::error::{Error, Result};
use crate::measure::metrics::{balanced_accuracy_of, confusion, mcc_of};
use crate::measure::{Predictions, Scores, Truth, measure};
use crate::model::Model;
use crate::random::Random;
use crate::record::{CalibrationBin, Evaluation, Interval};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Bins of the calibration check.
const BINS: usize = 10;
/// Pairs of truth and prediction that are kept of a regression.
const KEPT_RESIDUALS: usize = 2000;
/// Numbers that all rounds together may look at; beyond, there are fewer rounds
const MOST_LOOKS: usize = 20_000_000_000;
/// but at least so many.
const LEAST_ROUNDS: usize = 100;
/// Probabilities of 0 would make the log loss infinite.
const LEAST_PROBABILITY: f64 = 1e-15;

/// How intervals are computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Share of the values that an interval holds.
    pub level: f64,
    /// Number of resamplings.
    pub rounds: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Bootstrap {
            level: 0.95,
            rounds: 1000,
            seed: 0,
        }
    }
}

/// What is true of samples that a model has scored.
#[derive(Debug, Clone, PartialEq)]
pub enum Known {
    /// Classes as positions in the model's class names; none where the model does not know the label.
    Classes(Vec<Option<u32>>),
    /// Values.
    Real(Vec<f64>),
    /// Nothing: one-class.
    Nothing,
}

impl Known {
    /// What labels say to a model; a class that it does not know is noted, and always wrong.
    pub fn new(model: &Model, labels: Option<&Labels>, notes: &mut Vec<String>) -> Result<Known> {
        let missing = || {
            Error::input(
                "labels",
                "there are none, and predictions are compared with them",
                "give labels in a file of their own or as a column of the table",
            )
        };
        match (model.task(), labels) {
            (Task::OneClass, _) => Ok(Known::Nothing),
            (_, None) => Err(missing()),
            (Task::Classify, Some(labels)) => {
                let truth = labels.class_index(model.classes());
                let unknown = truth.iter().filter(|c| c.is_none()).count();
                if unknown > 0 {
                    notes.push(format!(
                        "{unknown} of {} labels are classes that the model does not know, and count as wrong",
                        truth.len()
                    ));
                }
                Ok(Known::Classes(truth))
            }
            (Task::Regress, Some(labels)) if labels.kind() == LabelKind::Text => Err(Error::input(
                "labels",
                format!(
                    "'{}' and others are no numbers, but the model predicts numbers",
                    labels.spelling(0)
                ),
                "give numbers",
            )),
            (Task::Regress, Some(labels)) => Ok(Known::Real(
                (0..labels.len()).filter_map(|i| labels.number(i)).collect(),
            )),
        }
    }

    /// As metrics see it.
    pub fn truth(&self) -> Truth<'_> {
        match self {
            Known::Classes(classes) => Truth::Classes(classes),
            Known::Real(values) => Truth::Real(values),
            Known::Nothing => Truth::None,
        }
    }
}

/// Compares what `model` says, by these scores, with what is true. `samples` names the samples, in words.
///
/// A model with probabilities is also asked whether they mean what they say: `log_loss`, `calibration_error` (the mean
/// distance of probability and share of right answers over ten bins) and the bins themselves.
///
/// # Panics
/// If there is not one truth for each sample.
pub fn evaluate(
    model: &Model,
    scores: &Scores,
    truth: Truth<'_>,
    samples: impl Into<String>,
    bootstrap: &Bootstrap,
) -> Evaluation {
    let predictions = model.predictions(scores);
    let mut metrics = measure(&predictions, scores, truth);
    let mut rounds = resampled(&predictions, scores, truth, bootstrap);
    let mut calibration = None;
    if let (Some(of), Truth::Classes(truth)) = (model.calibration(), truth) {
        let checked = Checked::new(&of.probabilities(scores), truth, model.classes().len());
        calibration = Some(checked.bins.clone());
        metrics.insert("log_loss".into(), checked.log_loss);
        metrics.insert("calibration_error".into(), checked.error);
        rounds.extend(checked.resampled(bootstrap));
    }
    let intervals = metrics
        .into_iter()
        .map(|(name, value)| {
            let values = rounds.remove(&name).unwrap_or_default();
            let interval = interval(value, values, bootstrap.level);
            (name, interval)
        })
        .collect();
    Evaluation {
        samples: samples.into(),
        given: false,
        n: predictions.len(),
        level: bootstrap.level,
        metrics: intervals,
        confusion: confusion_rows(&predictions, truth),
        residuals: residuals(&predictions, truth, bootstrap.seed),
        calibration,
    }
}

/// The percentile interval of a value, from what resamplings gave; it always holds the value.
pub(crate) fn interval(value: f64, mut values: Vec<f64>, level: f64) -> Interval {
    values.retain(|v| v.is_finite());
    values.sort_by(f64::total_cmp);
    let at = |share: f64| -> Option<f64> {
        let place = share * values.len().checked_sub(1)? as f64;
        let (low, part) = (place.floor() as usize, place.fract());
        let high = (low + 1).min(values.len() - 1);
        Some(values[low] + part * (values[high] - values[low]))
    };
    let tail = 0.5 * (1.0 - level);
    Interval {
        value,
        low: at(tail).unwrap_or(value).min(value),
        high: at(1.0 - tail).unwrap_or(value).max(value),
    }
}

/// The metrics of every resampling of the samples, in order.
pub(crate) fn resampled(
    predictions: &Predictions,
    scores: &Scores,
    truth: Truth<'_>,
    bootstrap: &Bootstrap,
) -> BTreeMap<String, Vec<f64>> {
    let n = predictions.len();
    match (predictions, truth) {
        (Predictions::Classes { names, index }, Truth::Classes(truth)) => {
            let classes = names.len();
            let truth: Vec<u32> = truth.iter().map(|c| c.unwrap_or(classes as u32)).collect();
            let side = classes + 1;
            let rankings = Ranking::all(&truth, scores, classes);
            in_rounds(n, 1 + rankings.len(), bootstrap, |counts| {
                let mut cells = vec![0; side * side];
                for ((&t, &p), &c) in truth.iter().zip(index).zip(counts) {
                    cells[t as usize * side + p as usize] += c as usize;
                }
                let right: usize = (0..side).map(|c| cells[c * side + c]).sum();
                let areas: Vec<f64> = rankings.iter().filter_map(|r| r.area(counts)).collect();
                let area =
                    (!areas.is_empty()).then(|| areas.iter().sum::<f64>() / areas.len() as f64);
                vec![
                    ("accuracy", Some(right as f64 / n as f64)),
                    ("balanced_accuracy", balanced_accuracy_of(&cells, side)),
                    ("mcc", mcc_of(&cells, side)),
                    ("auc", area),
                ]
            })
        }
        (Predictions::Real(values), Truth::Real(truth)) => {
            let mean = truth.iter().sum::<f64>() / truth.len().max(1) as f64;
            in_rounds(n, 1, bootstrap, |counts| {
                let (mut sum, mut squares, mut error, mut absolute) = (0.0, 0.0, 0.0, 0.0);
                for ((y, f), &c) in truth.iter().zip(values).zip(counts) {
                    let (c, centred) = (f64::from(c), y - mean);
                    sum += c * centred;
                    squares += c * centred * centred;
                    error += c * (y - f) * (y - f);
                    absolute += c * (y - f).abs();
                }
                let n = n as f64;
                let spread = squares - sum * sum / n;
                vec![
                    ("r2", (spread > 0.0).then(|| 1.0 - error / spread)),
                    ("mae", Some(absolute / n)),
                    ("rmse", Some((error / n).sqrt())),
                ]
            })
        }
        (Predictions::Inlier(inlier), _) => in_rounds(n, 1, bootstrap, |counts| {
            let inside = inlier.iter().zip(counts).filter(|(i, _)| **i);
            let inside: u32 = inside.map(|(_, &c)| c).sum();
            vec![("accepted", Some(f64::from(inside) / n as f64))]
        }),
        _ => BTreeMap::new(),
    }
}

/// Calls `metrics` with how often each of n samples was drawn, round by round.
fn in_rounds(
    n: usize,
    looks: usize,
    bootstrap: &Bootstrap,
    metrics: impl Fn(&[u32]) -> Vec<(&'static str, Option<f64>)> + Sync,
) -> BTreeMap<String, Vec<f64>> {
    if n == 0 {
        return BTreeMap::new();
    }
    let affordable = (MOST_LOOKS / (n * looks)).max(LEAST_ROUNDS);
    let rounds = bootstrap.rounds.min(affordable);
    let found: Vec<Vec<(&'static str, Option<f64>)>> = (0..rounds)
        .into_par_iter()
        .map(|round| {
            let mut random = Random::stream(bootstrap.seed, round as u64);
            let mut counts = vec![0; n];
            for _ in 0..n {
                counts[random.below(n)] += 1;
            }
            metrics(&counts)
        })
        .collect();
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, value) in found.into_iter().flatten() {
        let values = all.entry(name.to_owned()).or_default();
        values.push(value.unwrap_or(f64::NAN));
    }
    all
}

/// Samples in the order of a class's score, for areas under the ROC curve of many resamplings.
struct Ranking {
    /// Sample, whether it belongs to the class, and whether its score is that of the one before.
    order: Vec<(u32, bool, bool)>,
}

impl Ranking {
    /// One for two classes, else one for each class.
    fn all(truth: &[u32], scores: &Scores, classes: usize) -> Vec<Ranking> {
        let width = scores.names.len();
        let columns: Vec<(usize, u32)> = match width {
            1 => vec![(0, 1)],
            _ => (0..classes).map(|c| (c, c as u32)).collect(),
        };
        columns
            .into_iter()
            .map(|(column, class)| {
                let score = |i: u32| scores.values[i as usize * width + column];
                let mut order: Vec<u32> = (0..truth.len() as u32).collect();
                order.sort_by(|&a, &b| score(a).total_cmp(&score(b)).then(a.cmp(&b)));
                let tied = |k: usize| k > 0 && score(order[k]) == score(order[k - 1]);
                let order = order
                    .iter()
                    .enumerate()
                    .map(|(k, &i)| (i, truth[i as usize] == class, tied(k)))
                    .collect();
                Ranking { order }
            })
            .collect()
    }

    /// The probability that a sample of the class has the larger score; ties count half.
    fn area(&self, counts: &[u32]) -> Option<f64> {
        let (mut wins, mut positives, mut below) = (0.0, 0.0, 0.0);
        let (mut inside, mut outside) = (0.0, 0.0);
        for &(i, positive, tied) in &self.order {
            if !tied {
                wins += inside * (below + 0.5 * outside);
                positives += inside;
                below += outside;
                (inside, outside) = (0.0, 0.0);
            }
            let count = f64::from(counts[i as usize]);
            match positive {
                true => inside += count,
                false => outside += count,
            }
        }
        wins += inside * (below + 0.5 * outside);
        positives += inside;
        below += outside;
        (positives > 0.0 && below > 0.0).then(|| wins / (positives * below))
    }
}

/// Probabilities beside what came true.
struct Checked {
    log_loss: f64,
    error: f64,
    bins: Vec<CalibrationBin>,
    /// Of every sample: −ln of what the truth was given, bin, probability of the likeliest class, whether that was right.
    samples: Vec<(f64, usize, f64, bool)>,
}

impl Checked {
    fn new(probabilities: &[f64], truth: &[Option<u32>], classes: usize) -> Checked {
        let samples: Vec<(f64, usize, f64, bool)> = probabilities
            .chunks(classes)
            .zip(truth)
            .map(|(row, truth)| {
                let mut top = 0;
                for (k, p) in row.iter().enumerate() {
                    if *p > row[top] {
                        top = k;
                    }
                }
                let of_truth = truth.map_or(0.0, |t| row[t as usize]);
                let loss = -of_truth.max(LEAST_PROBABILITY).ln();
                let bin = ((row[top] * BINS as f64) as usize).min(BINS - 1);
                (loss, bin, row[top], *truth == Some(top as u32))
            })
            .collect();
        let once = vec![1; samples.len()];
        let (log_loss, error, bins) = checked(&samples, &once);
        Checked {
            log_loss,
            error,
            bins,
            samples,
        }
    }

    fn resampled(&self, bootstrap: &Bootstrap) -> BTreeMap<String, Vec<f64>> {
        in_rounds(self.samples.len(), 1, bootstrap, |counts| {
            let (log_loss, error, _) = checked(&self.samples, counts);
            vec![
                ("log_loss", Some(log_loss)),
                ("calibration_error", Some(error)),
            ]
        })
    }
}

/// Log loss, calibration error and the bins that are not empty.
fn checked(samples: &[(f64, usize, f64, bool)], counts: &[u32]) -> (f64, f64, Vec<CalibrationBin>) {
    let mut loss = 0.0;
    let mut bins = [(0.0, 0.0, 0); BINS];
    for (&(own, bin, probability, right), &count) in samples.iter().zip(counts) {
        loss += f64::from(count) * own;
        bins[bin].0 += f64::from(count) * probability;
        bins[bin].1 += f64::from(count) * f64::from(u8::from(right));
        bins[bin].2 += count as usize;
    }
    let n = samples.len().max(1) as f64;
    let error = bins
        .iter()
        .map(|(p, right, _)| (p - right).abs())
        .sum::<f64>()
        / n;
    let bins = bins
        .iter()
        .filter(|bin| bin.2 > 0)
        .map(|&(probability, right, count)| CalibrationBin {
            probability: probability / count as f64,
            observed: right / count as f64,
            count,
        })
        .collect();
    (loss / n, error, bins)
}

/// Counts of (true class, predicted class); samples of classes that the model does not know are left out.
fn confusion_rows(predictions: &Predictions, truth: Truth<'_>) -> Option<Vec<Vec<u64>>> {
    let (Predictions::Classes { names, index }, Truth::Classes(truth)) = (predictions, truth)
    else {
        return None;
    };
    let known: Vec<(u32, u32)> = truth
        .iter()
        .zip(index)
        .filter_map(|(t, &p)| Some(((*t)?, p)))
        .collect();
    let (truth, index): (Vec<u32>, Vec<u32>) = known.into_iter().unzip();
    let classes = names.len();
    let counts = confusion(&truth, &index, classes);
    Some(
        counts
            .chunks(classes)
            .map(|row| row.iter().map(|&c| c as u64).collect())
            .collect(),
    )
}

fn residuals(predictions: &Predictions, truth: Truth<'_>, seed: u64) -> Option<Vec<(f64, f64)>> {
    let (Predictions::Real(values), Truth::Real(truth)) = (predictions, truth) else {
        return None;
    };
    let shown = match truth.len() > KEPT_RESIDUALS {
        true => Random::new(seed).sample(truth.len(), KEPT_RESIDUALS),
        false => (0..truth.len()).collect(),
    };
    Some(shown.into_iter().map(|i| (truth[i], values[i])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::metrics::{accuracy, auc, balanced_accuracy, mae, mcc, r2, rmse};

    /// Classes, predictions and scores of n samples in `classes` classes, right about every second time.
    fn drawn(n: usize, classes: usize, seed: u64) -> (Vec<Option<u32>>, Predictions, Scores) {
        let mut random = Random::new(seed);
        let names: Vec<String> = (0..classes).map(|c| c.to_string()).collect();
        let truth: Vec<Option<u32>> = (0..n).map(|_| Some(random.below(classes) as u32)).collect();
        let width = if classes == 2 { 1 } else { classes };
        // Rounded, so that there are ties.
        let values: Vec<f64> = (0..n * width)
            .map(|k| {
                let own = truth[k / width] == Some((k % width + usize::from(width == 1)) as u32);
                (4.0 * (random.normal() + f64::from(u8::from(own)))).round() / 4.0
            })
            .collect();
        let index = values
            .chunks(width)
            .map(|row| match width {
                1 => u32::from(row[0] > 0.5),
                _ => (0..width).fold(0, |b, k| if row[k] > row[b] { k } else { b }) as u32,
            })
            .collect();
        let scores = Scores {
            names: names[classes - width..].to_vec(),
            values,
        };
        (truth, Predictions::Classes { names, index }, scores)
    }

    #[test]
    fn every_round_is_the_metric_of_the_samples_drawn() {
        for classes in [2, 3] {
            let n = 40;
            let (truth, predictions, scores) = drawn(n, classes, 3);
            let bootstrap = Bootstrap {
                rounds: 5,
                seed: 11,
                ..Bootstrap::default()
            };
            let rounds = resampled(&predictions, &scores, Truth::Classes(&truth), &bootstrap);
            let Predictions::Classes { index, .. } = &predictions else {
                panic!("classes")
            };
            for round in 0..5usize {
                let mut random = Random::stream(11, round as u64);
                let rows: Vec<usize> = (0..n).map(|_| random.below(n)).collect();
                let t: Vec<u32> = rows.iter().map(|&i| truth[i].unwrap()).collect();
                let p: Vec<u32> = rows.iter().map(|&i| index[i]).collect();
                let s: Vec<f64> = rows.iter().flat_map(|&i| scores.row(i)).copied().collect();
                let expected = [
                    ("accuracy", accuracy(&t, &p)),
                    ("balanced_accuracy", balanced_accuracy(&t, &p)),
                    ("mcc", mcc(&t, &p)),
                    ("auc", auc(&t, &s, classes)),
                ];
                for (name, value) in expected {
                    let (found, value) =
                        (rounds[name].get(round).copied().unwrap(), value.unwrap());
                    assert!((found - value).abs() < 1e-12, "{name}: {found} {value}");
                }
            }
        }
    }

    #[test]
    fn rounds_of_a_regression_are_the_metrics_of_the_samples_drawn() {
        let n = 30;
        let mut random = Random::new(4);
        let truth: Vec<f64> = (0..n).map(|_| 100.0 + random.normal()).collect();
        let values: Vec<f64> = truth.iter().map(|y| y + 0.3 * random.normal()).collect();
        let predictions = Predictions::Real(values.clone());
        let scores = Scores {
            names: vec!["score".into()],
            values: values.clone(),
        };
        let bootstrap = Bootstrap {
            rounds: 3,
            ..Bootstrap::default()
        };
        let rounds = resampled(&predictions, &scores, Truth::Real(&truth), &bootstrap);
        for round in 0..3usize {
            let mut random = Random::stream(0, round as u64);
            let rows: Vec<usize> = (0..n).map(|_| random.below(n)).collect();
            let t: Vec<f64> = rows.iter().map(|&i| truth[i]).collect();
            let p: Vec<f64> = rows.iter().map(|&i| values[i]).collect();
            for (name, value) in [
                ("r2", r2(&t, &p)),
                ("mae", mae(&t, &p)),
                ("rmse", rmse(&t, &p)),
            ] {
                assert!(
                    (rounds[name].get(round).copied().unwrap() - value.unwrap()).abs() < 1e-9,
                    "{name}"
                );
            }
        }
    }

    /// 95 % intervals hold the true accuracy about 95 times in 100.
    #[test]
    fn intervals_cover_what_they_claim() {
        let (n, sets, p) = (200, 300, 0.8);
        let mut covered = 0;
        for set in 0..sets {
            let mut random = Random::stream(9, set);
            let truth: Vec<Option<u32>> = (0..n).map(|i| Some(i % 2)).collect();
            let index: Vec<u32> = truth
                .iter()
                .map(|t| {
                    let t = t.unwrap();
                    if random.uniform() < p { t } else { 1 - t }
                })
                .collect();
            let scores = Scores {
                names: vec!["1".into()],
                values: index.iter().map(|&p| f64::from(p) - 0.5).collect(),
            };
            let names = vec!["0".into(), "1".into()];
            let predictions = Predictions::Classes { names, index };
            let bootstrap = Bootstrap {
                rounds: 300,
                seed: set,
                ..Bootstrap::default()
            };
            let mut rounds = resampled(&predictions, &scores, Truth::Classes(&truth), &bootstrap);
            let metrics = measure(&predictions, &scores, Truth::Classes(&truth));
            let found = interval(
                metrics["accuracy"],
                rounds.remove("accuracy").unwrap(),
                0.95,
            );
            covered += u64::from(found.low <= p && p <= found.high);
        }
        let share = covered as f64 / sets as f64;
        assert!((0.90..=0.98).contains(&share), "{share}");
    }

    #[test]
    fn intervals_hold_their_value_and_survive_rounds_without_one() {
        let found = interval(0.5, vec![f64::NAN, 0.6, 0.7], 0.95);
        assert_eq!((found.low, found.value), (0.5, 0.5));
        let alone = interval(0.5, Vec::new(), 0.95);
        assert_eq!((alone.low, alone.high), (0.5, 0.5));
    }
}
