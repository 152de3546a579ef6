//! A bounded support: what goes when there is no room.

use super::bank::Scratch;
use super::support::{CHUNK, Change, Partial};
use super::{Online, Rule};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A largest support and what goes beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Support vectors, at most; at least 2.
    pub size: usize,
    /// Which one goes, and where its part of θ goes.
    pub keep: Keep,
}

/// The rule by which a support vector goes when a new one has come. The new one always stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// The one that became a support vector first goes: the learner follows a stream that changes.
    #[default]
    Oldest,
    /// The one whose coefficients have the smallest sum of squares goes: θ changes least.
    Smallest,
    /// The same one goes, and its part of θ is projected on the support vector x_n that is most like it in the combined
    /// kernel K_β: its coefficients times K_β(x, x_n)/K_β(x_n, x_n) are added to those of x_n.
    Project,
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Keep::Oldest => "oldest",
            Keep::Smallest => "smallest",
            Keep::Project => "project",
        })
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.size, self.keep)
    }
}

/// `N` or `N:oldest|smallest|project`.
impl FromStr for Budget {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::input(
                "budget",
                format!("'{text}' is not a number of support vectors and a rule"),
                "give N, N:oldest, N:smallest or N:project, with N at least 2",
            )
        };
        let (size, keep) = text.split_once(':').unwrap_or((text, "oldest"));
        let size: usize = size.trim().parse().map_err(|_| wrong())?;
        let keep = match keep.trim() {
            "oldest" => Keep::Oldest,
            "smallest" => Keep::Smallest,
            "project" => Keep::Project,
            _ => return Err(wrong()),
        };
        match size {
            0 | 1 => Err(wrong()),
            _ => Ok(Budget { size, keep }),
        }
    }
}

impl Online {
    /// Takes support vectors away until the budget is kept; the newest stays.
    pub(super) fn keep_budget(&mut self, scratch: &mut Scratch) {
        let Some(budget) = self.settings.budget else {
            return;
        };
        while self.support.len() > budget.size {
            let newest = self.support.len() - 1;
            let slots = &self.support.slots()[..newest];
            let key = |slot: &super::support::Slot| match budget.keep {
                Keep::Oldest => slot.born as f64,
                Keep::Smallest | Keep::Project => slot.values.iter().map(|v| v * v).sum(),
            };
            let mut goes = 0;
            let mut least = f64::INFINITY;
            for (j, slot) in slots.iter().enumerate() {
                let value = key(slot);
                if value < least {
                    (goes, least) = (j, value);
                }
            }
            self.take_away(goes, budget.keep == Keep::Project, scratch);
            self.report.removed += 1;
        }
    }

    fn take_away(&mut self, slot: usize, project: bool, scratch: &mut Scratch) {
        let gone = self.support.sample(slot);
        let negated = self.support.negated(slot);
        self.change_lengths(&gone, &negated, scratch);
        self.support.remove(slot);
        if !project {
            return;
        }
        let Some((place, values)) = self.most_like(&gone, scratch) else {
            return;
        };
        let heir = self.support.sample(place);
        // K_m(gone, heir)/K_m(heir, heir): with shared coefficients of the combined kernel, else kernel by kernel
        let own = self.support.diagonal(place).to_vec();
        let shares: Vec<f64> = match self.settings.rule {
            Rule::Omcl { .. } => {
                let pairs = values.iter().zip(&own);
                pairs
                    .map(|(v, d)| if *d > 0.0 { v / d } else { 0.0 })
                    .collect()
            }
            _ => {
                let beta = self.theta.weights();
                let sum = |x: &[f64]| x.iter().zip(beta).map(|(x, b)| x * b).sum::<f64>();
                vec![sum(&values) / sum(&own)]
            }
        };
        let changes: Vec<Change> = negated
            .into_iter()
            .map(|change| Change {
                class: change.class,
                values: change
                    .values
                    .iter()
                    .zip(&shares)
                    .map(|(c, share)| -c * share)
                    .collect(),
            })
            .collect();
        self.change_lengths(&heir, &changes, scratch);
        self.support.change(place, &changes);
    }

    /// The support vector on which a sample's projection in K_β is longest, and its kernel values with the sample.
    fn most_like(
        &self,
        sample: &super::sample::Sample,
        scratch: &mut Scratch,
    ) -> Option<(usize, Vec<f64>)> {
        let kernels = self.bank.n_kernels();
        let beta = match self.combiner {
            Some(_) => vec![1.0; kernels],
            None => self.theta.weights().to_vec(),
        };
        let sum = |x: &[f64]| x.iter().zip(&beta).map(|(x, b)| x * b).sum::<f64>();
        let mut best: Option<(usize, f64, Vec<f64>)> = None;
        for from in (0..self.support.len()).step_by(CHUNK) {
            let slots = from..(from + CHUNK).min(self.support.len());
            self.bank
                .values(sample, &self.support, slots.clone(), scratch);
            for (j, values) in slots.zip(scratch.by_slot.chunks_exact(kernels)) {
                let own = sum(self.support.diagonal(j));
                if own <= 0.0 {
                    continue;
                }
                let long = sum(values).powi(2) / own;
                if best.as_ref().is_none_or(|b| long > b.1) {
                    best = Some((j, long, values.to_vec()));
                }
            }
        }
        best.map(|(j, _, values)| (j, values))
    }

    /// The lengths of θ follow a change of coefficients at a sample.
    fn change_lengths(
        &mut self,
        sample: &super::sample::Sample,
        changes: &[Change],
        scratch: &mut Scratch,
    ) {
        if self.combiner.is_some() {
            return;
        }
        let outputs = self.outputs();
        let scores = self.support.kernel_scores(
            &self.bank,
            sample,
            outputs,
            &mut Partial::default(),
            scratch,
        );
        let kernels = sample.diagonal.len();
        let changes = changes.iter().map(|change| {
            let row = &scores[change.class as usize * kernels..][..kernels];
            (change.values[0], row)
        });
        self.theta.add(changes, &sample.diagonal);
    }
}
