//! Metrics to choose by, and the rules by which a point of a grid is chosen.

use crate::error::{Error, Result};
use crate::random::Random;
use crate::record::Point;
use std::fmt;
use std::str::FromStr;

/// Resamplings of the folds that tell how sure a choice is.
const RESAMPLINGS: u64 = 1000;

/// Which point of a grid is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rule {
    /// The one with the largest mean; of equal ones that with the smallest C.
    #[default]
    Best,
    /// Of those whose mean is within one standard error of the largest, that with the smallest C: the plainest that is as good
    /// as one can tell. Of equal C the largest mean.
    OneStandardError,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Best => "best",
            Rule::OneStandardError => "one-standard-error",
        })
    }
}

impl FromStr for Rule {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "best" => Ok(Rule::Best),
            "one-standard-error" => Ok(Rule::OneStandardError),
            _ => Err(Error::input(
                "rule",
                format!("'{text}' is not known"),
                "give best or one-standard-error",
            )),
        }
    }
}

/// Mean and standard error of the mean.
pub(crate) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

/// The point that the rule takes, as a position; none without points.
pub fn choose(points: &[Point], costs: &[f64], rule: Rule) -> Option<usize> {
    let summary: Vec<(f64, f64)> = points.iter().map(|p| (p.mean, p.standard_error)).collect();
    chosen(&summary, points, costs, rule)
}

fn chosen(summary: &[(f64, f64)], points: &[Point], costs: &[f64], rule: Rule) -> Option<usize> {
    let cost = |k: usize| costs.get(points[k].cost).copied().unwrap_or(f64::INFINITY);
    let best = (0..points.len()).reduce(|best, k| {
        let order = summary[k].0.total_cmp(&summary[best].0);
        let order = order.then(cost(best).total_cmp(&cost(k)));
        if order.is_gt() { k } else { best }
    })?;
    if rule == Rule::Best {
        return Some(best);
    }
    let enough = summary[best].0 - summary[best].1;
    (0..points.len())
        .filter(|&k| summary[k].0 >= enough)
        .reduce(|taken, k| {
            let order = cost(taken).total_cmp(&cost(k));
            let order = order.then(summary[k].0.total_cmp(&summary[taken].0));
            if order.is_gt() { k } else { taken }
        })
}

/// Share of resamplings of the folds in which the rule takes the same point.
pub(crate) fn agreement(points: &[Point], costs: &[f64], rule: Rule, taken: usize) -> f64 {
    let folds = points[taken].folds.len();
    let same = (0..RESAMPLINGS).filter(|&round| {
        let mut random = Random::stream(0, round);
        let drawn: Vec<usize> = (0..folds).map(|_| random.below(folds)).collect();
        let summary: Vec<(f64, f64)> = points
            .iter()
            .map(|point| {
                let values: Vec<f64> = drawn.iter().map(|&f| point.folds[f]).collect();
                mean_and_error(&values)
            })
            .collect();
        chosen(&summary, points, costs, rule) == Some(taken)
    });
    same.count() as f64 / RESAMPLINGS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(cost: usize, folds: &[f64]) -> Point {
        let (mean, standard_error) = mean_and_error(folds);
        Point {
            cost,
            folds: folds.to_vec(),
            mean,
            standard_error,
            converged: true,
            ..Point::default()
        }
    }

    #[test]
    fn rules_take_what_they_say() {
        let costs = [10.0, 1.0, 0.1];
        let points = [
            point(0, &[0.90, 0.92, 0.94]), // mean 0.92, standard error 0.0115
            point(1, &[0.91, 0.91, 0.92]), // within it
            point(2, &[0.80, 0.82, 0.81]),
        ];
        assert_eq!(choose(&points, &costs, Rule::Best), Some(0));
        assert_eq!(choose(&points, &costs, Rule::OneStandardError), Some(1));
        assert_eq!(choose(&[], &costs, Rule::Best), None);
        // Equal means: the smaller C.
        let equal = [
            point(0, &[0.9, 0.9]),
            point(2, &[0.9, 0.9]),
            point(1, &[0.9, 0.9]),
        ];
        assert_eq!(choose(&equal, &costs, Rule::Best), Some(1));
    }

    #[test]
    fn a_clear_winner_is_sure_and_a_close_one_is_not() {
        let costs = [1.0, 2.0];
        let clear = [point(0, &[0.9, 0.91, 0.92]), point(1, &[0.5, 0.51, 0.52])];
        assert_eq!(agreement(&clear, &costs, Rule::Best, 0), 1.0);
        let close = [point(0, &[0.9, 0.8, 0.95]), point(1, &[0.8, 0.9, 0.9])];
        let share = agreement(&close, &costs, Rule::Best, 0);
        assert!((0.4..0.95).contains(&share), "{share}");
    }
}
