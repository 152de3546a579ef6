//! What a stream has shown so far: every prediction is made before its label is seen.

use serde::{Deserialize, Serialize};

/// Points of the curve, at most.
const POINTS: usize = 512;

/// Counts of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Examples seen, with and without labels; of repeated passes too.
    pub examples: u64,
    /// Examples with labels.
    pub labelled: u64,
    /// Labelled examples whose prediction, made before the label was known, was wrong. Those of a class that nobody had seen
    /// are among them.
    pub mistakes: u64,
    /// Of these, those whose class had not been seen before.
    pub new_class_mistakes: u64,
    /// Steps that changed θ.
    pub updates: u64,
    /// Support vectors that the budget took away.
    pub removed: u64,
    /// Examples that waited for a label and were given up for newer ones.
    pub given_up: u64,
    /// The online error as it developed.
    pub curve: Curve,
    /// One entry for every pass over the data; the first is the stream itself.
    pub passes: Vec<Pass>,
    /// Rounds in which w, as it was when the label came, did not prefer the right class: what Theorem 1 counts.
    pub wrong_rounds: u64,
    /// Σ η over rounds that were right with too small a margin.
    pub margin_steps: f64,
    /// The largest k(x, x) of a labelled example.
    pub largest_self_value: f64,
    /// Σ ℓ(u, x, y) of the comparator over the labelled examples.
    pub comparator_loss: f64,
}

/// One pass over the data.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Pass {
    /// Labelled examples.
    pub labelled: u64,
    /// Wrong predictions among them.
    pub mistakes: u64,
    /// Steps that changed θ.
    pub updates: u64,
}

impl Pass {
    /// Mistakes over labelled examples; 0 without any.
    pub fn error(&self) -> f64 {
        self.mistakes as f64 / self.labelled.max(1) as f64
    }
}

/// Mistakes against labelled examples, at most 512 points: when they are full, every second one goes and twice as many
/// examples stand between them from then on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    step: u64,
    points: Vec<(u64, u64, u64)>,
}

impl Curve {
    /// Labelled examples, mistakes up to there, size of the support.
    pub fn points(&self) -> &[(u64, u64, u64)] {
        &self.points
    }

    fn add(&mut self, labelled: u64, mistakes: u64, support: u64) {
        if !labelled.is_multiple_of(self.step) {
            return;
        }
        self.points.push((labelled, mistakes, support));
        if self.points.len() >= POINTS {
            self.step *= 2;
            let step = self.step;
            self.points.retain(|p| p.0.is_multiple_of(step));
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Report {
            examples: 0,
            labelled: 0,
            mistakes: 0,
            new_class_mistakes: 0,
            updates: 0,
            removed: 0,
            given_up: 0,
            curve: Curve {
                step: 1,
                points: Vec::new(),
            },
            passes: vec![Pass::default()],
            wrong_rounds: 0,
            margin_steps: 0.0,
            largest_self_value: 0.0,
            comparator_loss: 0.0,
        }
    }
}

impl Report {
    /// Mistakes over labelled examples of the stream itself, without repeated passes; 0 without any.
    pub fn online_error(&self) -> f64 {
        self.passes.first().map_or(0.0, Pass::error)
    }

    /// A labelled example has been learned.
    pub(super) fn count(&mut self, wrong: bool, new_class: bool, updated: bool, support: usize) {
        self.labelled += 1;
        self.mistakes += u64::from(wrong);
        self.new_class_mistakes += u64::from(wrong && new_class);
        self.updates += u64::from(updated);
        if let Some(pass) = self.passes.last_mut() {
            pass.labelled += 1;
            pass.mistakes += u64::from(wrong);
            pass.updates += u64::from(updated);
        }
        let (labelled, mistakes) = (self.labelled, self.mistakes);
        self.curve.add(labelled, mistakes, support as u64);
    }

    /// Whether the numbers may stand in a file.
    pub(super) fn is_sound(&self) -> bool {
        self.curve.step > 0
            && !self.passes.is_empty()
            && [
                self.margin_steps,
                self.largest_self_value,
                self.comparator_loss,
            ]
            .iter()
            .all(|v| v.is_finite() && *v >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_stays_short_and_keeps_what_it_shows() {
        let mut report = Report::default();
        for t in 1..=100_000u64 {
            report.count(t.is_multiple_of(10), false, false, 7);
        }
        let points = report.curve.points();
        assert!(points.len() < POINTS && points.len() >= POINTS / 4);
        for (labelled, mistakes, support) in points {
            assert_eq!((*mistakes, *support), (labelled / 10, 7));
        }
        assert_eq!(report.online_error(), 0.1);
    }
}
