//! θ̂ over a training set: its coefficients, the scores computed from them, and the mean of the iterates.

use super::scores::Scores;
use crate::solve::steps::{Expansion, Rescale};

/// ĉ of all samples, and what follows from it.
#[derive(Debug)]
pub(super) struct SampleExpansion<'g> {
    outputs: usize,
    /// ĉ: sample after sample, one number per output.
    coefficients: Vec<f64>,
    pub(super) scores: Scores<'g>,
    mean: Option<IterateMean>,
}

/// Σ_t θ_t = Σ_t σ_t θ̂_t without touching every coefficient in every round: θ̂ at the end counts with Σ σ_t, and what was
/// added to it on the way is taken back for the rounds before.
#[derive(Debug)]
struct IterateMean {
    rounds: u64,
    scales: f64,
    late: Vec<f64>,
}

/// The expansion at the sample visited, and its place in the block.
#[derive(Debug)]
pub(super) struct AtSample<'a, 'g> {
    all: &'a mut SampleExpansion<'g>,
    sample: usize,
    place: usize,
}

impl<'g> SampleExpansion<'g> {
    pub(super) fn new(scores: Scores<'g>, samples: usize, outputs: usize) -> Self {
        SampleExpansion {
            outputs,
            coefficients: vec![0.0; samples * outputs],
            scores,
            mean: None,
        }
    }

    /// ĉ: coefficients in the unit in which scores are kept.
    pub(super) fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// Begins a block of visits.
    pub(super) fn begin(&mut self, block: &[usize]) {
        self.scores.begin(block, &self.coefficients);
    }

    /// The sample at this place of the block is visited.
    pub(super) fn at(&mut self, sample: usize, place: usize) -> AtSample<'_, 'g> {
        AtSample {
            all: self,
            sample,
            place,
        }
    }

    /// From here on θ is summed after every round.
    pub(super) fn start_mean(&mut self) {
        self.mean = Some(IterateMean {
            rounds: 0,
            scales: 0.0,
            late: vec![0.0; self.coefficients.len()],
        });
    }

    /// A round has ended, at this σ.
    pub(super) fn end_round(&mut self, scale: f64) {
        if let Some(mean) = &mut self.mean {
            mean.rounds += 1;
            mean.scales += scale;
        }
    }

    /// The coefficients of the mean θ, divided by q; none if nothing was summed.
    pub(super) fn mean_coefficients(&self, q: f64) -> Option<Vec<f64>> {
        let mean = self.mean.as_ref().filter(|mean| mean.rounds > 0)?;
        let factor = 1.0 / (mean.rounds as f64 * q);
        let pairs = self.coefficients.iter().zip(&mean.late);
        Some(
            pairs
                .map(|(c, late)| factor * (c * mean.scales - late))
                .collect(),
        )
    }
}

impl Expansion for AtSample<'_, '_> {
    fn rescale(&mut self, rescale: Rescale) {
        let all = &mut *self.all;
        match rescale {
            Rescale::Nothing => {}
            Rescale::By(factor) => {
                all.coefficients.iter_mut().for_each(|c| *c *= factor);
                if let Some(mean) = &mut all.mean {
                    mean.scales /= factor;
                }
                all.scores.fold(factor);
            }
            Rescale::Reset => {
                if let Some(mean) = &mut all.mean {
                    // what was summed so far must survive without θ̂
                    for (late, c) in mean.late.iter_mut().zip(&all.coefficients) {
                        *late -= c * mean.scales;
                    }
                    mean.scales = 0.0;
                }
                all.coefficients.fill(0.0);
                all.scores.forget();
            }
        }
    }

    fn kernel_scores(&mut self, k: usize, out: &mut [f64]) {
        self.all.scores.of_class(self.place, k, out);
    }

    fn add(&mut self, changes: &[(usize, f64)]) {
        let all = &mut *self.all;
        for &(k, change) in changes {
            let at = self.sample * all.outputs + k;
            all.coefficients[at] += change;
            if let Some(mean) = &mut all.mean {
                mean.late[at] += change * mean.scales;
            }
        }
        all.scores.update(self.place, changes);
    }
}
