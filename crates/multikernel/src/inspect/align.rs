//! How trained kernels resemble the targets and each other, at a bounded price: on a sample of the samples.

use super::kernels::{CONSTANT, Means, TargetKernel};
use super::pairs::Packed;
use super::{among, targets_of};
use crate::data::Targets;
use crate::error::{Error, Result};
use crate::gram::{Indefinite, KernelSet, Options};
use crate::kernel::KernelSpec;
use crate::math::sum_of_squares;
use crate::mkl::Fitted;
use crate::observe::Observer;
use crate::random::Random;
use crate::record::Alignment;
use rayon::prelude::*;

/// Samples that alignments need at most: more would change the second decimal at best, and cost n².
pub const ALIGNED_SAMPLES: usize = 400;
/// Fewer samples say too little to be shown.
const FEWEST_SAMPLES: usize = 50;
/// M·n² of the kernel values that are computed.
const MOST_ENTRIES: usize = 1 << 26;
/// So many kernels are compared with each other; more can not be looked at on a page.
const MOST_SHOWN: usize = 40;

/// Centred alignments of all kernels with the targets, and of the kernels with the largest `weights` (all if they are few) with
/// each other.
///
/// Looks at a seeded sample of at most `most` samples ([`ALIGNED_SAMPLES`] are enough, and it never looks at more), within
/// `options.memory` bytes. None, and why, where so many kernels cannot be looked at.
///
/// # Panics
/// If there is not one weight for each kernel.
pub fn align(
    set: &KernelSet,
    targets: &Targets,
    weights: &[f64],
    most: usize,
    options: &Options,
    observer: &dyn Observer,
) -> Result<std::result::Result<Alignment, String>> {
    let all = set.kernels();
    assert_eq!(all.len(), weights.len(), "one weight for each kernel");
    let n = set.gram().n_rows();
    let size = n
        .min(most.min(ALIGNED_SAMPLES))
        .min((MOST_ENTRIES / all.len().max(1)).isqrt());
    let shown = largest(weights);
    let families = set.gram().n_families() as u64;
    // Statistics of the sample, half of every kernel shown, and a few whole ones at a time.
    let bytes = (4 * families + 2 * shown.len() as u64 + 32) * (size * size) as u64;
    if size < FEWEST_SAMPLES.min(n) || bytes > options.memory {
        return Ok(Err(format!(
            "alignments of {} kernels were not computed: they would cost too much (inspect --gram computes them)",
            all.len()
        )));
    }
    let samples = Random::new(options.seed).sample(n, size);
    let small = match set.gram().held_subset(&samples, options.memory) {
        Some(held) => held,
        None => {
            let specs: Vec<KernelSpec> = all.iter().map(|kernel| kernel.spec.clone()).collect();
            let options = Options {
                // Training has looked at the matrices already, and mended them if it was asked to.
                indefinite: Indefinite::Allow,
                ..*options
            };
            let views = among(set.views(), &samples)?;
            KernelSet::new(&specs, &views, &options, observer)?
                .gram()
                .clone()
        }
    };
    let targets = targets_of(targets, &samples);
    let target = TargetKernel::new(&targets, size);
    let mut packed = Packed::new(shown.len(), size);
    let mut places: Vec<Option<&mut [f32]>> = (0..all.len()).map(|_| None).collect();
    for (half, &m) in packed.halves_mut().zip(&shown) {
        places[m] = Some(half);
    }
    let aligned: Vec<Option<f64>> = places
        .into_par_iter()
        .enumerate()
        .map_init(
            || vec![0.0; size * size],
            |values, (m, place)| {
                small.kernel(m).matrix_into(values);
                one(values, target.as_ref(), place)
            },
        )
        .collect();
    let products = packed.products();
    Ok(Ok(Alignment {
        samples: size,
        targets: aligned,
        shown,
        pairwise: products
            .iter()
            .map(|row| row.iter().map(|&v| f64::from(v)).collect())
            .collect(),
    }))
}

/// The alignments that a report of a trained model shows ([`align`], with its mean weights over the problems). None where they
/// were not computed; `notes` then says why, unless the observer stopped them.
pub fn align_trained(
    set: &KernelSet,
    targets: &Targets,
    fitted: &Fitted,
    most: usize,
    options: &Options,
    observer: &dyn Observer,
    notes: &mut Vec<String>,
) -> Option<Alignment> {
    let mean = |weights: &[f64]| weights.iter().sum::<f64>() / weights.len().max(1) as f64;
    let mut weights: Vec<f64> = fitted.kernels.iter().map(|k| mean(&k.weights)).collect();
    // With a bias a joint problem has one more kernel, which aligns with nothing.
    weights.resize(set.kernels().len(), 0.0);
    match align(set, targets, &weights, most, options, observer) {
        Ok(Ok(alignment)) => return Some(alignment),
        Ok(Err(why)) => notes.push(why),
        Err(Error::Stopped) => {}
        Err(error) => notes.push(format!("alignments were not computed: {error}")),
    }
    None
}

/// The kernels with the largest weights, in their order.
fn largest(weights: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    order.truncate(MOST_SHOWN);
    order.sort_unstable();
    order
}

/// Alignment of a kernel with the targets; its centred matrix, scaled to norm 1, goes into `half`.
fn one(values: &[f32], target: Option<&TargetKernel<'_>>, half: Option<&mut [f32]>) -> Option<f64> {
    let n = values.len().isqrt();
    let means = Means::new(values, n);
    let (mut squares, mut centred_squares, mut along) = (0.0, 0.0, 0.0);
    let mut centred = vec![0.0f32; n];
    let mut lower = Vec::with_capacity(half.as_ref().map_or(0, |half| half.len()));
    for (i, row) in values.chunks_exact(n).enumerate() {
        means.centre(i, row, &mut centred);
        squares += sum_of_squares(row);
        centred_squares += sum_of_squares(&centred);
        along += target.map_or(0.0, |target| target.along(i, &centred));
        if half.is_some() {
            lower.extend_from_slice(&centred[..=i]);
        }
    }
    let norm = centred_squares.sqrt();
    let varies = norm > CONSTANT * squares.sqrt();
    if let (Some(half), true) = (half, varies) {
        half.copy_from_slice(&lower);
        Packed::normalise(half, norm.recip());
    }
    let target = target.filter(|target| varies && target.norm > 0.0)?;
    Some(along / (norm * target.norm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Task, digits};
    use crate::inspect::inspect_kernels;

    fn quarter() -> (KernelSet, Targets) {
        let digits = digits().unwrap();
        let rows: Vec<usize> = (0..240).collect();
        let views = digits.views.select(&rows).unwrap();
        let labels = digits.labels.map(|labels| labels.select(&rows));
        let specs = KernelSpec::parse("rbf:width=mean*0.5|mean,normalize=multiplicative").unwrap();
        let targets = Targets::new(labels.as_ref(), Task::Classify, rows.len()).unwrap();
        let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
        (set, targets)
    }

    #[test]
    fn few_samples_give_the_alignments_of_inspect() {
        let (set, targets) = quarter();
        let weights = vec![1.0; set.kernels().len()];
        let found = align(&set, &targets, &weights, 400, &Options::default(), &())
            .unwrap()
            .unwrap();
        let expected = inspect_kernels(set.gram(), set.kernels(), &targets, &()).unwrap();
        assert_eq!(found.samples, 240);
        assert_eq!(found.shown, (0..8).collect::<Vec<_>>());
        for (m, kernel) in expected.kernels.iter().enumerate() {
            let difference = found.targets[m].unwrap() - kernel.target_alignment.unwrap();
            assert!(difference.abs() < 1e-6, "{m}: {difference}");
            for (a, b) in found.pairwise[m].iter().zip(&expected.alignments[m]) {
                assert!((a - f64::from(*b)).abs() < 1e-4, "{m}: {a} is not {b}");
            }
        }
    }

    #[test]
    fn without_memory_it_says_so() {
        let (set, targets) = quarter();
        let weights = vec![1.0; set.kernels().len()];
        let options = Options {
            memory: 1000,
            ..Options::default()
        };
        let found = align(&set, &targets, &weights, 400, &options, &()).unwrap();
        assert!(found.unwrap_err().contains("8 kernels"));
    }

    #[test]
    fn a_trained_model_has_alignments_or_a_note() {
        let (set, targets) = quarter();
        let fitted = crate::Mkl::default().fit(&set, &targets, &()).unwrap();
        let mut notes = Vec::new();
        let options = Options::default();
        let found = align_trained(&set, &targets, &fitted, 100, &options, &(), &mut notes);
        let found = found.unwrap();
        assert_eq!((found.samples, found.targets.len()), (100, 8));
        assert!(notes.is_empty());
        let options = Options {
            memory: 1000,
            ..options
        };
        let found = align_trained(&set, &targets, &fitted, 100, &options, &(), &mut notes);
        assert!(found.is_none() && notes[0].contains("8 kernels"));
    }

    #[test]
    fn the_heaviest_kernels_are_compared() {
        let weights: Vec<f64> = (0..100).map(|m| f64::from(m % 50)).collect();
        let shown = largest(&weights);
        assert_eq!(shown.len(), MOST_SHOWN);
        assert!(shown.contains(&49) && shown.contains(&99) && !shown.contains(&0));
        assert!(shown.is_sorted());
    }
}
