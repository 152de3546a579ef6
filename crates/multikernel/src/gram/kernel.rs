//! A kernel fitted to training samples.

use super::indefinite::Repair;
use crate::kernel::statistic::Statistic;
use crate::kernel::{KernelSpec, Normalize, Profile};
use serde::{Deserialize, Serialize};

/// A kernel fitted to training samples: everything that is needed to evaluate it on new ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name, unique in its set.
    pub name: String,
    /// Its group.
    pub group: String,
    /// What it is, with its width as a number.
    pub spec: KernelSpec,
    /// The training statistics of its normalisation.
    pub normalizer: Normalizer,
    /// What was done because its training matrix was indefinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
}

/// The training statistics of a normalisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Normalizer {
    /// Nothing to be done.
    None,
    /// Values are divided by √(k(x,x) k(x',x')).
    Spherical {
        /// 1/√k(x,x) of the training samples; 0 where k(x,x) = 0.
        factors: Vec<f64>,
    },
    /// Values are multiplied by this.
    Factor(f64),
    /// Row means of the training samples and their mean are taken off.
    Center {
        /// Mean of each training sample's row.
        row_means: Vec<f64>,
        /// Mean of all values.
        grand_mean: f64,
    },
}

impl Normalizer {
    /// The same for some of the training samples, with the statistics of all.
    pub(crate) fn select(&self, rows: &[usize]) -> Normalizer {
        let pick = |values: &[f64]| rows.iter().map(|&i| values[i]).collect();
        match self {
            Normalizer::Spherical { factors } => Normalizer::Spherical {
                factors: pick(factors),
            },
            Normalizer::Center {
                row_means,
                grand_mean,
            } => Normalizer::Center {
                row_means: pick(row_means),
                grand_mean: *grand_mean,
            },
            Normalizer::None | Normalizer::Factor(_) => self.clone(),
        }
    }
}

impl Kernel {
    pub(super) fn unfitted(spec: KernelSpec) -> Kernel {
        Kernel {
            name: spec.name.clone().unwrap_or_default(),
            group: spec.group.clone().unwrap_or_default(),
            normalizer: Normalizer::None,
            repair: None,
            spec,
        }
    }

    /// The statistic and profile; none for a product or sum of kernels. A repaired kernel is a given matrix, whatever
    /// it was made from.
    pub(crate) fn parts(&self) -> Option<(Statistic, Profile)> {
        match self.repair {
            Some(_) => Some((Statistic::Given, Profile::Identity)),
            None => self.described(),
        }
    }

    /// The statistic and profile as the user described them.
    pub(super) fn described(&self) -> Option<(Statistic, Profile)> {
        self.spec.kind.statistic(self.spec.normalize)
    }

    /// Whether spherical normalisation must scale rows and columns: not where k(x,x) = 1 already.
    pub(crate) fn needs_factors(&self) -> bool {
        self.spec.normalize == Normalize::Spherical
            && !matches!(
                self.parts(),
                Some((Statistic::UnitDot, _) | (_, Profile::Exp { .. }))
            )
    }

    /// The view it looks at.
    pub fn view(&self) -> &str {
        self.spec.view.as_deref().unwrap_or("")
    }
}
