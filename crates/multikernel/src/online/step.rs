//! One round: what a labelled example does to θ, or to the layers of OMCL, and to the support.

use super::Online;
use super::bank::Scratch;
use super::sample::Sample;
use super::support::{Change, Partial, Slot, Support};
use crate::loss::multiclass::violator;
use crate::problem::Gradient;
use crate::solve::steps::omcl::{KernelChange, kernel_changes};
use crate::solve::steps::{Algorithm, Expansion, Rescale, Subgradient, Visit};

/// Lengths of θ are computed from scratch after this many updates, and one more for every support vector: round-off
/// stays small, and the cost of an update linear.
const REFRESH: u64 = 4096;

/// How an example came, before its label.
pub(super) struct Arrival {
    pub(super) number: u64,
    pub(super) id: Option<String>,
    pub(super) prediction: Option<u32>,
}

/// θ̂ over the support, at the example of the round.
struct AtExample<'a> {
    support: &'a mut Support,
    sample: &'a Sample,
    /// (K_m ĉ) of the example, class after class, in it kernel after kernel.
    kernel_scores: &'a mut [f64],
    /// What the example is as a support vector, if it is none yet.
    newcomer: Slot,
}

impl Expansion for AtExample<'_> {
    fn rescale(&mut self, rescale: Rescale) {
        match rescale {
            Rescale::Nothing => {}
            Rescale::By(factor) => {
                self.support.fold(factor);
                self.kernel_scores.iter_mut().for_each(|f| *f *= factor);
            }
            Rescale::Reset => {
                self.support.clear();
                self.kernel_scores.fill(0.0);
            }
        }
    }

    fn kernel_scores(&mut self, k: usize, out: &mut [f64]) {
        out.copy_from_slice(&self.kernel_scores[k * out.len()..][..out.len()]);
    }

    fn add(&mut self, changes: &[(usize, f64)]) {
        let changes = changes.iter().map(|&(k, change)| Change {
            class: k as u32,
            values: vec![change],
        });
        let newcomer = std::mem::take(&mut self.newcomer);
        self.support
            .add(self.sample, newcomer, &changes.collect::<Vec<_>>());
    }
}

impl Online {
    /// Learns from a labelled example. Gives whether it was predicted right when it came.
    pub(super) fn step(
        &mut self,
        sample: &Sample,
        partial: &mut Partial,
        arrival: Arrival,
        label: &str,
        scratch: &mut Scratch,
    ) -> bool {
        let new = !self.class_of.contains_key(label);
        let class = self.class_number(label);
        let y = class as usize;
        let correct = arrival.prediction == Some(class);
        // scores again: a new class, or a label that came late
        let mut kernel_scores = self.kernel_scores(sample, partial, scratch);
        let scores = self.scores(&kernel_scores);
        let largest = sample.diagonal.iter().copied().fold(0.0, f64::max);
        self.report.largest_self_value = self.report.largest_self_value.max(largest);
        let newcomer = Slot {
            number: arrival.number,
            born: self.report.updates,
            id: arrival.id,
            ..Slot::default()
        };
        let updated = match self.margin(&scores, y) {
            // the only class so far has no rival to learn against
            None => false,
            Some((margin, slopes)) => {
                self.report.wrong_rounds += u64::from(margin <= 0.0);
                match self.combiner {
                    Some(_) => self.omcl_step(sample, &kernel_scores, &scores, y, newcomer),
                    None => self.theta_step(sample, &mut kernel_scores, margin, slopes, newcomer),
                }
            }
        };
        let support = self.support.len();
        self.report.count(!correct, new, updated, support);
        if updated {
            self.keep_budget(scratch);
            self.keep_lengths();
        }
        correct
    }

    /// The margin of class y, and where the hinge loss falls: its slopes in the scores. None without a rival.
    fn margin(&self, scores: &[f64], y: usize) -> Option<(f64, Gradient)> {
        if self.settings.binary {
            let sign = if y == 1 { 1.0 } else { -1.0 };
            return Some((sign * scores[0], Gradient::scalar(-sign)));
        }
        let rival = violator(scores, y)?;
        Some((scores[y] - scores[rival], Gradient::multiclass(y, rival)))
    }

    /// A round of the algorithms that step in θ.
    fn theta_step(
        &mut self,
        sample: &Sample,
        kernel_scores: &mut [f64],
        margin: f64,
        slopes: Gradient,
        newcomer: Slot,
    ) -> bool {
        let Some(algorithm) = &mut self.algorithm else {
            return false;
        };
        let lossy = 1.0 - margin > 0.0;
        let z = Subgradient {
            slopes: if lossy { slopes } else { Gradient::NONE },
            margin,
            diagonal: &sample.diagonal,
            sample_length: if lossy {
                self.theta.length_of(&sample.diagonal)
            } else {
                0.0
            },
        };
        let expansion = AtExample {
            support: &mut self.support,
            sample,
            kernel_scores,
            newcomer,
        };
        let eta = algorithm.step(&mut Visit {
            theta: &mut self.theta,
            expansion,
            z,
        });
        if matches!(algorithm, Algorithm::Om2) && margin > 0.0 {
            self.report.margin_steps += eta;
        }
        eta != 0.0
    }

    /// A round of OMCL.
    fn omcl_step(
        &mut self,
        sample: &Sample,
        kernel_scores: &[f64],
        scores: &[f64],
        y: usize,
        newcomer: Slot,
    ) -> bool {
        let c = self.settings.rule.cost();
        let mut changes: Vec<Change> = Vec::new();
        for KernelChange { class, m, change } in
            kernel_changes(c, kernel_scores, y, &sample.diagonal)
        {
            let class = class as u32;
            let place = changes.iter().position(|change| change.class == class);
            let place = place.unwrap_or_else(|| {
                changes.push(Change {
                    class,
                    values: vec![0.0; sample.diagonal.len()],
                });
                changes.len() - 1
            });
            changes[place].values[m] += change;
        }
        let combiner = self.combiner.as_mut();
        let combined = combiner.is_some_and(|combiner| combiner.step(c, kernel_scores, scores, y));
        if !changes.is_empty() {
            self.support.add(sample, newcomer, &changes);
        }
        combined || !changes.is_empty()
    }

    /// ‖θ_m‖² from scratch now and then.
    fn keep_lengths(&mut self) {
        self.since_refresh += 1;
        let often = REFRESH + self.support.len() as u64;
        if self.combiner.is_some() || self.since_refresh < often {
            return;
        }
        self.since_refresh = 0;
        self.theta.refresh(self.squares());
    }

    /// Σ_j Σ_k ĉ_jk (K_m ĉ)_jk, slot after slot.
    pub(super) fn squares(&self) -> Vec<f64> {
        let kernels = self.bank.n_kernels();
        let outputs = self.outputs();
        let mut squares = vec![0.0; kernels];
        let mut scratch = Scratch::default();
        let all: Vec<usize> = (0..self.support.len()).collect();
        for block in all.chunks(self.block_size()) {
            let samples: Vec<Sample> = block.iter().map(|&j| self.support.sample(j)).collect();
            let mut partials = self.support.partials(&self.bank, &samples, outputs);
            for ((&j, sample), partial) in block.iter().zip(&samples).zip(&mut partials) {
                let scores = self.kernel_scores(sample, partial, &mut scratch);
                let slot = &self.support.slots()[j];
                for (class, c) in slot.classes.iter().zip(&slot.values) {
                    let at = *class as usize * kernels;
                    let row = &scores[at..at + kernels];
                    squares.iter_mut().zip(row).for_each(|(q, f)| *q += c * f);
                }
            }
        }
        squares
    }
}
