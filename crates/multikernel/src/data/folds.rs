//! Folds: every sample is held out once.

use crate::data::Targets;
use crate::error::{Error, Result};
use crate::random::Random;

/// A fold for each sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folds {
    count: usize,
    of: Vec<u32>,
}

impl Folds {
    /// Refuses folds of which none is left to train on.
    pub(crate) fn check_count(count: usize) -> Result<()> {
        match count {
            0 | 1 => Err(Error::input(
                "folds",
                format!("there are {count}"),
                "give at least 2, such as 5",
            )),
            _ => Ok(()),
        }
    }

    /// Deals the samples out at random, every class evenly. Samples of one group stay together; then classes are spread as
    /// evenly as the groups allow.
    pub fn new(
        count: usize,
        targets: &Targets,
        samples: usize,
        groups: Option<&[u32]>,
        seed: u64,
    ) -> Result<Folds> {
        let wrong = |found: String, remedy: &str| Err(Error::input("folds", found, remedy));
        Self::check_count(count)?;
        if samples < count {
            return wrong(
                format!("there are {count} for {samples} samples"),
                "give fewer folds or more samples",
            );
        }
        let ones = vec![0; samples];
        let (strata, classes): (&[u32], usize) = match targets {
            Targets::Classes { index, names } => (index, names.len()),
            Targets::Real(_) | Targets::None => (&ones, 1),
        };
        let mut random = Random::new(seed);
        let of = match groups {
            None => dealt(count, strata, classes, &mut random),
            Some(groups) => {
                if groups.len() != samples {
                    return Err(Error::input(
                        "fold-groups",
                        format!("there are {} groups for {samples} samples", groups.len()),
                        "give one for each sample, in the same order",
                    ));
                }
                kept_together(count, strata, classes, groups, &mut random)?
            }
        };
        let folds = Folds { count, of };
        if let Targets::Classes { names, .. } = targets {
            folds.check(strata, names, groups.is_some())?;
        }
        Ok(folds)
    }

    /// Number of folds.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.of.len()
    }

    /// The samples of a fold, ascending.
    pub fn held_out(&self, fold: usize) -> Vec<usize> {
        (0..self.of.len())
            .filter(|&i| self.of[i] as usize == fold)
            .collect()
    }

    /// All others, ascending.
    pub fn training(&self, fold: usize) -> Vec<usize> {
        (0..self.of.len())
            .filter(|&i| self.of[i] as usize != fold)
            .collect()
    }

    /// Every class must be there to be learned, whatever is held out.
    fn check(&self, strata: &[u32], names: &[String], grouped: bool) -> Result<()> {
        let mut first: Vec<Option<u32>> = vec![None; names.len()];
        let mut several = vec![false; names.len()];
        for (&class, &fold) in strata.iter().zip(&self.of) {
            let class = class as usize;
            several[class] |= first[class].is_some_and(|f| f != fold);
            first[class].get_or_insert(fold);
        }
        match several.iter().position(|several| !several) {
            None => Ok(()),
            Some(class) => Err(Error::input(
                format!("class '{}'", names[class]),
                match grouped {
                    true => {
                        "all its samples are in one fold, so it cannot be learned when that is held out"
                    }
                    false => {
                        "it has one sample only, so it cannot be learned when that is held out"
                    }
                },
                match grouped {
                    true => "give it samples of more groups, or leave the class out",
                    false => "give it more samples, or leave the class out",
                },
            )),
        }
    }
}

/// Every class is shuffled and dealt out, one class going on where the last one ended.
fn dealt(count: usize, strata: &[u32], classes: usize, random: &mut Random) -> Vec<u32> {
    let mut of = vec![0; strata.len()];
    let mut next = 0;
    for class in 0..classes {
        let mut members: Vec<usize> = (0..strata.len())
            .filter(|&i| strata[i] as usize == class)
            .collect();
        random.shuffle(&mut members);
        for i in members {
            of[i] = (next % count) as u32;
            next += 1;
        }
    }
    of
}

/// Whole groups, the largest first, each to the fold where it disturbs the balance of the classes least.
fn kept_together(
    count: usize,
    strata: &[u32],
    classes: usize,
    groups: &[u32],
    random: &mut Random,
) -> Result<Vec<u32>> {
    let mut known: std::collections::HashMap<u32, usize> = std::collections::HashMap::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        let place = *known.entry(*group).or_insert_with(|| {
            members.push(Vec::new());
            members.len() - 1
        });
        members[place].push(i);
    }
    if members.len() < count {
        return Err(Error::input(
            "fold-groups",
            format!("there are {} groups for {count} folds", members.len()),
            "give fewer folds, or more groups",
        ));
    }
    let mut totals = vec![0usize; classes];
    strata.iter().for_each(|&c| totals[c as usize] += 1);
    random.shuffle(&mut members);
    members.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let mut filled = vec![vec![0usize; classes]; count];
    let mut of = vec![0; strata.len()];
    for group in members {
        let mut own = vec![0usize; classes];
        group.iter().for_each(|&i| own[strata[i] as usize] += 1);
        // The sum of the squares of all folds' shares of the classes grows least where the group's classes are rarest.
        let cost = |fold: &Vec<usize>| -> f64 {
            let parts = fold.iter().zip(&own).zip(&totals).filter(|(_, t)| **t > 0);
            parts
                .map(|((&there, &own), &total)| {
                    let (before, after) = (there as f64, (there + own) as f64);
                    (after * after - before * before) / (total * total) as f64
                })
                .sum()
        };
        let mut best = 0;
        for fold in 1..count {
            if cost(&filled[fold]) < cost(&filled[best]) {
                best = fold;
            }
        }
        filled[best].iter_mut().zip(&own).for_each(|(f, o)| *f += o);
        group.iter().for_each(|&i| of[i] = best as u32);
    }
    Ok(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn classes(index: Vec<u32>, count: usize) -> Targets {
        Targets::Classes {
            names: (0..count).map(|c| format!("c{c}")).collect(),
            index,
        }
    }

    proptest! {
        #[test]
        fn every_sample_is_held_out_once_and_classes_are_even(
            counts in proptest::collection::vec(2usize..40, 2..5), folds in 2usize..6, seed in 0u64..100
        ) {
            let index: Vec<u32> = counts.iter().enumerate().flat_map(|(c, &n)| std::iter::repeat_n(c as u32, n)).collect();
            let n = index.len();
            prop_assume!(n >= folds);
            let found = Folds::new(folds, &classes(index.clone(), counts.len()), n, None, seed).unwrap();
            let mut seen = vec![0; n];
            for fold in 0..folds {
                let (out, training) = (found.held_out(fold), found.training(fold));
                prop_assert_eq!(out.len() + training.len(), n);
                out.iter().for_each(|&i| seen[i] += 1);
                for (c, &all) in counts.iter().enumerate() {
                    let own = out.iter().filter(|&&i| index[i] as usize == c).count();
                    prop_assert!(own >= all / folds && own <= all.div_ceil(folds));
                }
            }
            prop_assert!(seen.iter().all(|&s| s == 1));
        }

        #[test]
        fn groups_stay_together(sizes in proptest::collection::vec(1usize..8, 12..30), seed in 0u64..100) {
            let groups: Vec<u32> = sizes.iter().enumerate().flat_map(|(g, &n)| std::iter::repeat_n(7 * g as u32, n)).collect();
            let n = groups.len();
            let found = Folds::new(3, &Targets::Real(vec![0.0; n]), n, Some(&groups), seed).unwrap();
            let mut largest = 0;
            for fold in 0..3 {
                let out = found.held_out(fold);
                largest = largest.max(out.len());
                for &i in &out {
                    prop_assert!((0..n).filter(|&j| groups[j] == groups[i]).all(|j| out.contains(&j)));
                }
            }
            prop_assert!(largest <= n.div_ceil(3) + 8, "{} of {}", largest, n);
        }
    }

    #[test]
    fn the_seed_decides_and_nothing_else() {
        let targets = classes((0..60).map(|i| i % 3).collect(), 3);
        let of = |seed| Folds::new(5, &targets, 60, None, seed).unwrap();
        assert_eq!(of(4), of(4));
        assert_ne!(of(4), of(5));
    }

    #[test]
    fn what_cannot_be_folded_is_said() {
        let said = |count, index: Vec<u32>, groups: Option<&[u32]>| {
            let n = index.len();
            Folds::new(count, &classes(index, 2), n, groups, 0)
                .unwrap_err()
                .to_string()
        };
        assert!(said(1, vec![0, 1, 0, 1], None).starts_with("folds: there are 1; give at least 2"));
        assert!(said(5, vec![0, 1, 0, 1], None).starts_with("folds: there are 5 for 4 samples"));
        assert!(said(2, vec![0, 0, 0, 1], None).starts_with("class 'c1': it has one sample only"));
        assert!(
            said(2, vec![0, 0, 1, 1], Some(&[1, 1, 1, 1]))
                .starts_with("fold-groups: there are 1 groups for 2 folds")
        );
        assert!(
            said(2, vec![0, 0, 1, 1], Some(&[0, 1, 2, 2]))
                .starts_with("class 'c1': all its samples are in one fold")
        );
        assert!(
            said(2, vec![0, 0, 1, 1], Some(&[0, 1]))
                .starts_with("fold-groups: there are 2 groups for 4 samples")
        );
    }
}
