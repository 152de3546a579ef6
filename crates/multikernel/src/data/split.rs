//! Samples held out from training, to see what a model is worth on samples that it does not know.

use super::Targets;
use crate::error::{Error, Result};
use crate::random::Random;

/// Rows for training and rows held out, both ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// To be trained on.
    pub training: Vec<usize>,
    /// To be predicted.
    pub held_out: Vec<usize>,
}

impl Split {
    /// Refuses a share that leaves nothing on one side.
    pub(crate) fn check_share(share: f64) -> Result<()> {
        match share > 0.0 && share < 1.0 {
            true => Ok(()),
            false => Err(Error::input(
                "holdout",
                format!("the share is {share}"),
                "give a number between 0 and 1, such as 0.2",
            )),
        }
    }

    /// Holds out this share of the samples, drawn with a seed. Of every class it is the same share as nearly as whole
    /// numbers allow, and every class keeps a sample for training.
    pub fn holdout(share: f64, targets: &Targets, samples: usize, seed: u64) -> Result<Split> {
        Self::check_share(share)?;
        let mut strata: Vec<Vec<usize>> = match targets {
            Targets::Classes { names, index } => {
                let mut strata = vec![Vec::new(); names.len()];
                for (i, &c) in index.iter().enumerate() {
                    strata[c as usize].push(i);
                }
                strata
            }
            Targets::Real(_) | Targets::None => vec![(0..samples).collect()],
        };
        let mut random = Random::new(seed);
        let mut out = vec![false; samples];
        // What rounding takes from one class the next one gives back, so that the whole has the share asked for.
        let mut owed = 0.0;
        for stratum in &mut strata {
            random.shuffle(stratum);
            let wanted = share * stratum.len() as f64 + owed;
            let count = (wanted.round().max(0.0) as usize).min(stratum.len().saturating_sub(1));
            owed = wanted - count as f64;
            for &i in &stratum[..count] {
                out[i] = true;
            }
        }
        let (held_out, training): (Vec<usize>, Vec<usize>) = (0..samples).partition(|&i| out[i]);
        if held_out.is_empty() && samples > 0 && strata.iter().all(|stratum| stratum.len() < 2) {
            return Err(Error::input(
                "holdout",
                format!(
                    "each of the {samples} samples is the only one of its class, and has to stay for training"
                ),
                "give more samples of the classes, or leave the holdout out",
            ));
        }
        if held_out.is_empty() {
            return Err(Error::input(
                "holdout",
                format!("a share of {share} of {samples} samples is none"),
                "give a larger share, or more samples",
            ));
        }
        Ok(Split { training, held_out })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(counts: &[usize]) -> Targets {
        let index = counts
            .iter()
            .enumerate()
            .flat_map(|(c, &n)| std::iter::repeat_n(c as u32, n))
            .collect();
        let names = (0..counts.len()).map(|c| c.to_string()).collect();
        Targets::Classes { names, index }
    }

    #[test]
    fn every_class_gives_its_share_and_keeps_a_sample() {
        let targets = classes(&[50, 10, 3, 1]);
        let split = Split::holdout(0.2, &targets, 64, 7).unwrap();
        let Targets::Classes { index, .. } = &targets else {
            panic!("classes")
        };
        let mut counts = [0; 4];
        for &i in &split.held_out {
            counts[index[i] as usize] += 1;
        }
        assert_eq!(counts, [10, 2, 1, 0]);
        let mut all = [split.training.clone(), split.held_out.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..64).collect::<Vec<_>>());
        assert_eq!(split, Split::holdout(0.2, &targets, 64, 7).unwrap());
        assert_ne!(split, Split::holdout(0.2, &targets, 64, 8).unwrap());
    }

    #[test]
    fn many_small_classes_give_the_share_together() {
        let split = Split::holdout(0.2, &classes(&[2; 50]), 100, 0).unwrap();
        assert_eq!(split.held_out.len(), 20);
    }

    #[test]
    fn shares_that_leave_nothing_are_refused() {
        for share in [0.0, 1.0, -0.5, f64::NAN, 1e-3] {
            assert!(
                Split::holdout(share, &Targets::None, 10, 0).is_err(),
                "{share}"
            );
        }
        let said = Split::holdout(0.2, &classes(&[1; 80]), 80, 0).unwrap_err();
        assert!(
            said.to_string()
                .contains("each of the 80 samples is the only one of its class"),
            "{said}"
        );
        let whole = Split::holdout(0.99, &Targets::None, 10, 0).unwrap();
        assert_eq!(whole.training.len(), 1);
    }
}
