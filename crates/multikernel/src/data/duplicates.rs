//! Samples that stand several times in the data, and samples that do not count.
//!
//! A sample of weight w is worth w copies of itself, one of weight 0 is worth none: the optimum is the same. Written once,
//! with the weights added up and in an order that does not depend on how the data was written, both forms are the same
//! problem to the last bit; and a problem with many copies is a smaller one.

use super::{Targets, ViewData, Views};
use std::collections::BTreeMap;

/// Which samples are left, and what they weigh.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The rows that are left, in the order of their values (of given matrices: of the data).
    pub rows: Vec<usize>,
    /// The weight of each: the sum over its copies.
    pub weights: Vec<f64>,
}

/// The samples without those of weight 0, and with copies (the same in every view, with the same target) written once.
///
/// None where that would change little: no weight is 0, and fewer than half of the samples are copies of others. Between
/// samples of given matrices copies are not looked for. Weights that are not numbers of at least 0 are left to whoever
/// trains with them, and so are numbers of weights and targets that do not fit.
pub fn merge_copies(views: &Views, targets: &Targets, weights: Option<&[f64]>) -> Option<Merged> {
    let n = views.len();
    let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
    let fits = match targets {
        Targets::None => true,
        Targets::Classes { index, .. } => index.len() == n,
        Targets::Real(values) => values.len() == n,
    };
    let usable = weights.is_none_or(|w| w.len() == n && w.iter().all(|w| *w >= 0.0));
    if !fits || !usable {
        return None;
    }
    let counting: Vec<usize> = (0..n).filter(|&i| weight(i) > 0.0).collect();
    let dropped = counting.len() < n;
    let given = views
        .iter()
        .any(|view| matches!(view.data, ViewData::Pairwise(_)));
    if counting.is_empty() || (given && !dropped) {
        return None;
    }
    if given {
        let weights = counting.iter().map(|&i| weight(i)).collect();
        return Some(Merged {
            rows: counting,
            weights,
        });
    }
    let mut found: BTreeMap<Vec<u8>, (usize, f64)> = BTreeMap::new();
    for &i in &counting {
        found.entry(key(views, targets, i)).or_insert((i, 0.0)).1 += weight(i);
    }
    if !dropped && 2 * found.len() > n {
        return None;
    }
    let (rows, weights) = found.into_values().unzip();
    Some(Merged { rows, weights })
}

/// Everything that is known of a sample, as bytes.
fn key(views: &Views, targets: &Targets, i: usize) -> Vec<u8> {
    // Both zeros are one number.
    let bytes = |v: f32| (v + 0.0).to_be_bytes();
    let mut key = Vec::new();
    match targets {
        Targets::None => {}
        Targets::Classes { index, .. } => key.extend(index[i].to_be_bytes()),
        Targets::Real(values) => key.extend((values[i] + 0.0).to_be_bytes()),
    }
    for view in views {
        match &view.data {
            ViewData::Dense(x) => key.extend(x.row(i).iter().flat_map(|&v| bytes(v))),
            ViewData::Sparse(x) => {
                let (indices, values) = x.row(i);
                // Stored zeros are no entries.
                let entries = indices.iter().zip(values).filter(|(_, v)| **v != 0.0);
                let start = key.len();
                for (&c, &v) in entries {
                    key.extend(c.to_be_bytes());
                    key.extend(bytes(v));
                }
                end(&mut key, start);
            }
            ViewData::Strings(x) => {
                let start = key.len();
                key.extend(&x[i]);
                end(&mut key, start);
            }
            ViewData::Pairwise(_) => {}
        }
    }
    key
}

/// Closes a part of no fixed length with its length, so that no two rows of parts have the same bytes.
fn end(key: &mut Vec<u8>, start: usize) {
    let length = key.len() - start;
    key.extend((length as u64).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense, Pairwise, View};

    fn views(data: Vec<ViewData>) -> Views {
        let view = |(k, data)| View {
            name: format!("v{k}"),
            columns: Vec::new(),
            data,
        };
        Views::new(data.into_iter().enumerate().map(view).collect()).expect("views")
    }

    fn dense(values: &[f32]) -> ViewData {
        ViewData::Dense(Dense::new(values.len(), 1, values.to_vec()).expect("dense"))
    }

    fn classes(index: &[u32]) -> Targets {
        Targets::Classes {
            names: vec!["a".into(), "b".into()],
            index: index.to_vec(),
        }
    }

    #[test]
    fn weights_and_copies_become_the_same_problem() {
        let copies = views(vec![dense(&[3.0, 3.0, 1.0, 1.0, 1.0, 2.0])]);
        let copies = merge_copies(&copies, &classes(&[0, 0, 1, 1, 1, 0]), None).expect("half");
        assert_eq!(copies.weights, [1.0, 2.0, 3.0]);
        assert_eq!(copies.rows, [5, 0, 2]);
        // The same samples in another order, with weights; one of them does not count.
        let weighted = views(vec![dense(&[1.0, 9.0, 2.0, 3.0])]);
        let weights = [3.0, 0.0, 1.0, 2.0];
        let weighted = merge_copies(&weighted, &classes(&[1, 0, 0, 0]), Some(&weights));
        let weighted = weighted.expect("a weight is 0");
        assert_eq!(weighted.weights, copies.weights);
        assert_eq!(weighted.rows, [2, 3, 0]);
    }

    #[test]
    fn a_few_copies_are_left_alone_and_other_targets_are_no_copies() {
        let few = views(vec![dense(&[1.0, 1.0, 2.0])]);
        assert_eq!(merge_copies(&few, &Targets::None, None), None);
        let two = views(vec![dense(&[1.0, 1.0])]);
        assert_eq!(merge_copies(&two, &classes(&[0, 1]), None), None);
        assert_eq!(
            merge_copies(&two, &Targets::Real(vec![0.5, 0.25]), None),
            None
        );
        let merged = merge_copies(&two, &Targets::Real(vec![0.0, -0.0]), None).expect("copies");
        assert_eq!(merged.weights, [2.0]);
    }

    #[test]
    fn every_kind_of_view_is_compared() {
        let strings = |texts: [&str; 2]| {
            ViewData::Strings(texts.iter().map(|t| t.as_bytes().to_vec()).collect())
        };
        let merged = |data: Vec<ViewData>| merge_copies(&views(data), &Targets::None, None);
        assert!(merged(vec![strings(["ac", "ac"])]).is_some());
        assert!(merged(vec![strings(["ac", "a"]), strings(["", "c"])]).is_none());
        // A stored zero is no entry.
        let sparse = Csr::new(3, vec![0, 1, 3], vec![1, 1, 2], vec![4.0, 4.0, 0.0]).expect("csr");
        assert!(merged(vec![ViewData::Sparse(sparse)]).is_some());
        let sparse = Csr::new(3, vec![0, 1, 2], vec![1, 2], vec![4.0, 4.0]).expect("csr");
        assert!(merged(vec![ViewData::Sparse(sparse)]).is_none());
    }

    #[test]
    fn of_given_matrices_only_what_does_not_count_goes() {
        let matrix = || Pairwise::new(2, 2, vec![1.0; 4]).map(ViewData::Pairwise);
        let given = views(vec![matrix().expect("matrix")]);
        assert_eq!(merge_copies(&given, &Targets::None, None), None);
        let merged = merge_copies(&given, &Targets::None, Some(&[0.0, 2.0])).expect("a zero");
        assert_eq!(
            (&merged.rows[..], &merged.weights[..]),
            (&[1][..], &[2.0][..])
        );
    }

    #[test]
    fn what_does_not_fit_is_left_alone() {
        let two = views(vec![dense(&[1.0, 1.0])]);
        for weights in [&[1.0][..], &[-1.0, 0.0], &[f64::NAN, 0.0], &[0.0, 0.0]] {
            assert_eq!(merge_copies(&two, &Targets::None, Some(weights)), None);
        }
        assert_eq!(merge_copies(&two, &classes(&[0]), None), None);
    }
}
