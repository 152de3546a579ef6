//! How good predictions are.
//!
//! Classes are numbers `0..classes`; truth may also hold numbers beyond, for labels that the model does not know.

use crate::measure::{Predictions, Scores};
use std::collections::BTreeMap;

/// What is true of the samples that were predicted.
#[derive(Debug, Clone, Copy)]
pub enum Truth<'a> {
    /// Classes as positions in the model's class names; none where the model does not know the label (always wrong).
    Classes(&'a [Option<u32>]),
    /// Values.
    Real(&'a [f64]),
    /// Nothing is known.
    None,
}

/// The metrics that apply, by the names of result objects: `accuracy`, `balanced_accuracy`, `mcc`, `auc`; `r2`, `mae`,
/// `rmse`; `accepted`, the share of inliers, for one-class. Metrics without a value (the AUC of a single class) are left out.
///
/// # Panics
/// If truth and predictions are not of the same number.
pub fn measure(
    predictions: &Predictions,
    scores: &Scores,
    truth: Truth<'_>,
) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value.filter(|v| v.is_finite()) {
            metrics.insert(name.to_owned(), value);
        }
    };
    match (predictions, truth) {
        (Predictions::Classes { names, index }, Truth::Classes(truth)) => {
            let classes = names.len();
            let truth: Vec<u32> = truth.iter().map(|c| c.unwrap_or(classes as u32)).collect();
            put("accuracy", accuracy(&truth, index));
            put("balanced_accuracy", balanced_accuracy(&truth, index));
            put("mcc", mcc(&truth, index));
            put("auc", auc(&truth, &scores.values, classes));
        }
        (Predictions::Real(values), Truth::Real(truth)) => {
            put("r2", r2(truth, values));
            put("mae", mae(truth, values));
            put("rmse", rmse(truth, values));
        }
        (Predictions::Inlier(inlier), _) => {
            let share = inlier.iter().filter(|i| **i).count() as f64 / inlier.len() as f64;
            put("accepted", Some(share));
        }
        _ => {}
    }
    metrics
}

/// Share of samples whose class is right; none without samples.
pub(crate) fn accuracy(truth: &[u32], predicted: &[u32]) -> Option<f64> {
    assert_eq!(
        truth.len(),
        predicted.len(),
        "one prediction for each truth"
    );
    let right = truth.iter().zip(predicted).filter(|(t, p)| t == p).count();
    (!truth.is_empty()).then(|| right as f64 / truth.len() as f64)
}

/// Counts of (true class, predicted class): `classes` rows of `classes`.
///
/// # Panics
/// If a class is not below `classes`.
pub(crate) fn confusion(truth: &[u32], predicted: &[u32], classes: usize) -> Vec<usize> {
    assert_eq!(
        truth.len(),
        predicted.len(),
        "one prediction for each truth"
    );
    let mut counts = vec![0; classes * classes];
    for (&t, &p) in truth.iter().zip(predicted) {
        counts[t as usize * classes + p as usize] += 1;
    }
    counts
}

/// The confusion matrix with room for every class that occurs, and its side.
fn square(truth: &[u32], predicted: &[u32]) -> (Vec<usize>, usize) {
    let largest = truth.iter().chain(predicted).max();
    let classes = largest.map_or(0, |&c| c as usize + 1);
    (confusion(truth, predicted, classes), classes)
}

/// Mean over the true classes of the share of their samples that are right; none without samples.
pub(crate) fn balanced_accuracy(truth: &[u32], predicted: &[u32]) -> Option<f64> {
    let (counts, classes) = square(truth, predicted);
    balanced_accuracy_of(&counts, classes)
}

/// The same from the counts of (true class, predicted class).
pub(crate) fn balanced_accuracy_of(counts: &[usize], classes: usize) -> Option<f64> {
    let recalls: Vec<f64> = (0..classes)
        .filter_map(|c| {
            let row = &counts[c * classes..(c + 1) * classes];
            let all: usize = row.iter().sum();
            (all > 0).then(|| row[c] as f64 / all as f64)
        })
        .collect();
    (!recalls.is_empty()).then(|| recalls.iter().sum::<f64>() / recalls.len() as f64)
}

/// Matthews' correlation coefficient, for any number of classes (Gorodkin's R_K); 0 where truth or predictions are all
/// alike; none without samples.
pub(crate) fn mcc(truth: &[u32], predicted: &[u32]) -> Option<f64> {
    let (counts, classes) = square(truth, predicted);
    mcc_of(&counts, classes)
}

/// The same from the counts of (true class, predicted class).
pub(crate) fn mcc_of(counts: &[usize], classes: usize) -> Option<f64> {
    let n = counts.iter().sum::<usize>() as f64;
    if n == 0.0 {
        return None;
    }
    let right: usize = (0..classes).map(|c| counts[c * classes + c]).sum();
    let (mut both, mut true_squares, mut predicted_squares) = (0.0, 0.0, 0.0);
    for c in 0..classes {
        let t: usize = counts[c * classes..(c + 1) * classes].iter().sum();
        let p: usize = (0..classes).map(|t| counts[t * classes + c]).sum();
        let (t, p) = (t as f64, p as f64);
        both += t * p;
        true_squares += t * t;
        predicted_squares += p * p;
    }
    let size = ((n * n - predicted_squares) * (n * n - true_squares)).sqrt();
    Some(match size > 0.0 {
        true => (right as f64 * n - both) / size,
        false => 0.0,
    })
}

/// Area under the ROC curve. Two classes: `scores` has one number per sample, large for class 1. More: one per class
/// and sample, and the mean over the classes that have samples inside and outside. None if there are no such classes.
pub(crate) fn auc(truth: &[u32], scores: &[f64], classes: usize) -> Option<f64> {
    if classes == 2 {
        return auc_of(truth.iter().map(|&c| c == 1), scores.iter().copied());
    }
    let areas: Vec<f64> = (0..classes)
        .filter_map(|c| {
            auc_of(
                truth.iter().map(|&t| t as usize == c),
                scores.iter().skip(c).step_by(classes).copied(),
            )
        })
        .collect();
    (!areas.is_empty()).then(|| areas.iter().sum::<f64>() / areas.len() as f64)
}

/// The probability that a positive sample has the larger score; ties count half.
fn auc_of(positive: impl Iterator<Item = bool>, scores: impl Iterator<Item = f64>) -> Option<f64> {
    let mut pairs: Vec<(f64, bool)> = scores.zip(positive).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let positives = pairs.iter().filter(|p| p.1).count() as f64;
    let negatives = pairs.len() as f64 - positives;
    if positives == 0.0 || negatives == 0.0 {
        return None;
    }
    let (mut below, mut wins) = (0.0, 0.0);
    for tied in pairs.chunk_by(|a, b| a.0 == b.0) {
        let inside = tied.iter().filter(|p| p.1).count() as f64;
        let outside = tied.len() as f64 - inside;
        wins += inside * (below + 0.5 * outside);
        below += outside;
    }
    Some(wins / (positives * negatives))
}

/// 1 − Σ(y−f)²/Σ(y−ȳ)²; none if all values are alike.
pub(crate) fn r2(truth: &[f64], predicted: &[f64]) -> Option<f64> {
    let mean = truth.iter().sum::<f64>() / truth.len() as f64;
    let spread: f64 = truth.iter().map(|y| (y - mean).powi(2)).sum();
    (spread > 0.0).then(|| 1.0 - squares(truth, predicted) / spread)
}

/// Mean of |y − f|; none without samples.
pub(crate) fn mae(truth: &[f64], predicted: &[f64]) -> Option<f64> {
    assert_eq!(
        truth.len(),
        predicted.len(),
        "one prediction for each truth"
    );
    let sum: f64 = truth
        .iter()
        .zip(predicted)
        .map(|(y, f)| (y - f).abs())
        .sum();
    (!truth.is_empty()).then(|| sum / truth.len() as f64)
}

/// Root of the mean of (y − f)²; none without samples.
pub(crate) fn rmse(truth: &[f64], predicted: &[f64]) -> Option<f64> {
    (!truth.is_empty()).then(|| (squares(truth, predicted) / truth.len() as f64).sqrt())
}

fn squares(truth: &[f64], predicted: &[f64]) -> f64 {
    assert_eq!(
        truth.len(),
        predicted.len(),
        "one prediction for each truth"
    );
    truth
        .iter()
        .zip(predicted)
        .map(|(y, f)| (y - f).powi(2))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: Option<f64>, expected: f64) {
        let value = value.unwrap();
        assert!(
            (value - expected).abs() < 1e-12,
            "{value} is not {expected}"
        );
    }

    #[test]
    fn two_classes_by_hand() {
        // 3 true positives, 1 false negative, 2 false positives, 4 true negatives.
        let truth = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0];
        let predicted = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0];
        assert_eq!(confusion(&truth, &predicted, 2), [4, 2, 1, 3]);
        close(accuracy(&truth, &predicted), 0.7);
        close(
            balanced_accuracy(&truth, &predicted),
            0.5 * (3.0 / 4.0 + 4.0 / 6.0),
        );
        // (TP·TN − FP·FN)/√((TP+FP)(TP+FN)(TN+FP)(TN+FN))
        close(
            mcc(&truth, &predicted),
            (12.0 - 2.0) / (5.0f64 * 4.0 * 6.0 * 5.0).sqrt(),
        );
    }

    #[test]
    fn three_classes_by_hand() {
        let truth = [0, 0, 1, 1, 2, 2];
        let predicted = [0, 1, 1, 1, 2, 0];
        close(
            balanced_accuracy(&truth, &predicted),
            (0.5 + 1.0 + 0.5) / 3.0,
        );
        // c = 4, s = 6, t = (2,2,2), p = (2,3,1): (24 − 12)/√((36 − 14)(36 − 12)).
        close(mcc(&truth, &predicted), 12.0 / (22.0f64 * 24.0).sqrt());
        // Class 0: positives 3, 1 against −1, 0, 0, 2 → 7 of 8 pairs; class 1: 4 of 4·2 …
        let scores = [
            3.0, 0.0, 0.0, // class 0
            1.0, 2.0, 0.0, // class 0
            -1.0, 1.0, 0.0, // class 1
            0.0, 1.0, 0.0, // class 1
            0.0, 0.0, 5.0, // class 2
            2.0, 0.0, 0.0, // class 2
        ];
        // Class 0: 3 beats all 4, 1 beats 3 of 4: 7/8. Class 1: 1 beats 0, 0, 0 and loses to 2, twice: 6/8.
        // Class 2: 5 beats 4, 0 ties with 4: (4 + 2)/8.
        close(
            auc(&truth, &scores, 3),
            (7.0 / 8.0 + 6.0 / 8.0 + 6.0 / 8.0) / 3.0,
        );
    }

    #[test]
    fn ties_of_the_auc_count_half() {
        close(
            auc(&[0, 1, 0, 1], &[0.1, 0.1, 0.3, 0.4], 2),
            (0.5 + 2.0) / 4.0,
        );
        assert_eq!(auc(&[1, 1], &[0.1, 0.2], 2), None);
        close(auc(&[0, 1], &[1.0, 1.0], 2), 0.5);
    }

    #[test]
    fn values_by_hand() {
        let (truth, predicted) = ([1.0, 2.0, 3.0], [1.0, 2.5, 2.0]);
        close(mae(&truth, &predicted), 0.5);
        close(rmse(&truth, &predicted), (1.25f64 / 3.0).sqrt());
        close(r2(&truth, &predicted), 1.0 - 1.25 / 2.0);
        assert_eq!(r2(&[1.0, 1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn labels_the_model_does_not_know_are_wrong() {
        let predictions = Predictions::Classes {
            names: vec!["a".into(), "b".into()],
            index: vec![0, 1, 1],
        };
        let scores = Scores {
            names: vec!["b".into()],
            values: vec![-1.0, 2.0, 1.0],
        };
        let truth = [Some(0), Some(1), None];
        let metrics = measure(&predictions, &scores, Truth::Classes(&truth));
        assert!((metrics["accuracy"] - 2.0 / 3.0).abs() < 1e-12);
        assert!((metrics["balanced_accuracy"] - 2.0 / 3.0).abs() < 1e-12);
    }
}
