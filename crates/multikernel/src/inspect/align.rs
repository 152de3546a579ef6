//! How trained kernels resemble the targets and each other, at a bounded price: on a sample of the samples.

use super::among;
use super::kernels::{CONSTANT, TargetKernel};
use super::pairs::Packed;
use crate::data::Targets;
use crate::error::{Error, Result};
use crate::gram::{Gram, Indefinite, KernelSet, Options};
use crate::kernel::KernelSpec;
use crate::math::{mixed_dot, sum_of_squares};
use crate::observe::Observer;
use crate::random::Random;
use crate::record::Alignment;
use crate::train::Fitted;
use rayon::prelude::*;

/// Samples that alignments need at most: more would change the second decimal at best, and cost n².
pub const ALIGNED_SAMPLES: usize = 400;
/// Fewer samples say too little to be shown.
const FEWEST_SAMPLES: usize = 50;
/// M·n² of the kernel values that are computed.
const MOST_ENTRIES: usize = 1 << 26;
/// Kernels that are compared with each other at most: nobody looks at more of them on a page.
const MOST_SHOWN: usize = 40;

/// Kernels on a sample of the samples, from which alignments are computed when somebody asks for them.
#[derive(Debug)]
pub struct KernelSample {
    kernels: Gram,
    targets: Targets,
    /// Those that are compared with each other.
    shown: Vec<usize>,
}

impl KernelSample {
    /// A seeded sample of at most `most` samples ([`ALIGNED_SAMPLES`] are enough, and it is never more), within `options.memory` bytes.
    /// The kernels with the largest `weights` (all if they are few) will be compared with each other. None, and why, where so many
    /// kernels cannot be looked at.
    ///
    /// # Panics
    /// If there is not one weight for each kernel.
    pub fn new(
        set: &KernelSet,
        targets: &Targets,
        weights: &[f64],
        most: usize,
        options: &Options,
        observer: &dyn Observer,
    ) -> Result<std::result::Result<KernelSample, String>> {
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
                "alignments of {} kernels were not computed: they would cost more than the training should; inspecting the kernels computes them",
                all.len()
            )));
        }
        let samples = Random::new(options.seed).sample(n, size);
        let kernels = match set.gram().held_subset(&samples, options.memory) {
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
        Ok(Ok(KernelSample {
            kernels,
            targets: targets.select(&samples),
            shown,
        }))
    }

    /// That of a trained model, with its mean weights over the problems. None where it would cost too much; `notes` then says why,
    /// unless the observer stopped it.
    pub fn of_trained(
        set: &KernelSet,
        targets: &Targets,
        fitted: &Fitted,
        most: usize,
        options: &Options,
        observer: &dyn Observer,
        notes: &mut Vec<String>,
    ) -> Option<KernelSample> {
        let mean = |weights: &[f64]| weights.iter().sum::<f64>() / weights.len().max(1) as f64;
        let mut weights: Vec<f64> = fitted.kernels.iter().map(|k| mean(&k.weights)).collect();
        // With a bias a joint problem has one more kernel, which aligns with nothing.
        weights.resize(set.kernels().len(), 0.0);
        match KernelSample::new(set, targets, &weights, most, options, observer) {
            Ok(Ok(sample)) => return Some(sample),
            Ok(Err(why)) => notes.push(why),
            Err(Error::Stopped) => {}
            Err(error) => notes.push(format!("alignments were not computed: {error}")),
        }
        None
    }

    /// Centred alignments of all kernels with the targets, and of those shown with each other.
    pub fn alignments(&self) -> Alignment {
        let (size, all) = (self.kernels.n_rows(), self.kernels.n_kernels());
        let target =
            TargetKernel::new(&self.targets, size).map(|target| (target.lower(), target.norm));
        let mut packed = Packed::new(self.shown.len(), size);
        let mut places: Vec<Option<&mut [f32]>> = (0..all).map(|_| None).collect();
        for (half, &m) in packed.halves_mut().zip(&self.shown) {
            places[m] = Some(half);
        }
        let aligned: Vec<Option<f64>> = places
            .into_par_iter()
            .enumerate()
            .map_init(
                || vec![0.0; size * (size + 1) / 2],
                |room, (m, place)| {
                    let is_shown = place.is_some();
                    let half = place.unwrap_or(room);
                    self.kernels.kernel(m).lower_into(half);
                    let sums = Sums::new(half, size, target.as_ref().map(|(half, _)| &half[..]));
                    if is_shown {
                        sums.centre(half);
                    }
                    sums.alignment(target.as_ref()?.1)
                },
            )
            .collect();
        let products = packed.products();
        Alignment {
            samples: size,
            targets: aligned,
            shown: self.shown.clone(),
            pairwise: products
                .iter()
                .map(|row| row.iter().map(|&v| in_f32(v)).collect())
                .collect(),
        }
    }
}

/// Without the digits that f32 does not have: they would fill the files that keep it.
fn in_f32(value: f32) -> f64 {
    (1e6 * f64::from(value)).round() / 1e6
}

/// The kernels with the largest weights, in their order.
fn largest(weights: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    order.truncate(MOST_SHOWN);
    order.sort_unstable();
    order
}

/// Sums over a symmetric matrix K of which the lower half is read, row after row.
struct Sums {
    row_means: Vec<f64>,
    mean: f64,
    /// ‖K‖²
    squares: f64,
    /// ‖K‖² of K centred.
    centred_squares: f64,
    /// ⟨K, T⟩ with the targets' kernel T.
    along: f64,
}

impl Sums {
    /// Of the lower half of K, and that of T if there are targets.
    fn new(half: &[f32], n: usize, target: Option<&[f64]>) -> Sums {
        let mut rows = row_sums(half, n);
        // Both without the second of each pair.
        let once = sum_of_squares(half);
        let along = target.map_or(0.0, |target| mixed_dot(half, target));
        let (mut on_diagonal, mut along_diagonal) = (0.0, 0.0);
        let mut place = 0;
        for i in 0..n {
            let k = f64::from(half[place]);
            on_diagonal += k * k;
            along_diagonal += target.map_or(0.0, |target| k * target[place]);
            place += i + 2;
        }
        let (squares, along) = (2.0 * once - on_diagonal, 2.0 * along - along_diagonal);
        let n = n as f64;
        rows.iter_mut().for_each(|sum| *sum /= n);
        let mean = rows.iter().sum::<f64>() / n;
        // ‖HKH‖² = ‖K‖² − 2n Σ (row means)² + n² mean², as a sum of squares about the mean so that it does not cancel twice.
        let spread: f64 = rows.iter().map(|r| (r - mean).powi(2)).sum();
        Sums {
            centred_squares: (squares - n * (2.0 * spread + n * mean * mean)).max(0.0),
            row_means: rows,
            mean,
            squares,
            along,
        }
    }

    /// Whether what varies in the kernel is more than rounding.
    fn varies(&self) -> bool {
        self.centred_squares.sqrt() > CONSTANT * self.squares.sqrt()
    }

    /// Alignment with targets whose kernel has this norm.
    fn alignment(&self, norm: f64) -> Option<f64> {
        let product = self.centred_squares.sqrt() * norm;
        (self.varies() && product > 0.0).then(|| self.along / product)
    }

    /// Centres the lower half and scales it for [`Packed`]; what does not vary becomes nothing.
    fn centre(&self, half: &mut [f32]) {
        if !self.varies() {
            half.fill(0.0);
            return;
        }
        let mut start = 0;
        for (i, own) in self.row_means.iter().enumerate() {
            let row = &mut half[start..start + i + 1];
            start += i + 1;
            for (v, other) in row.iter_mut().zip(&self.row_means) {
                *v = (f64::from(*v) - (own - self.mean) - other) as f32;
            }
        }
        Packed::normalise(half, self.centred_squares.sqrt().recip());
    }
}

/// The sums of the rows of a symmetric matrix of which the lower half is given.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn row_sums(half: &[f32], n: usize) -> Vec<f64> {
    const LANES: usize = 16;
    let mut sums = vec![0.0; n];
    let mut half = half;
    for i in 0..n {
        let (row, rest) = half.split_at(i + 1);
        half = rest;
        let (before, after) = sums.split_at_mut(i);
        let (row, diagonal) = row.split_at(i);
        let ((k, k_rest), (c, c_rest)) =
            (row.as_chunks::<LANES>(), before.as_chunks_mut::<LANES>());
        let mut lanes = [0.0; LANES];
        for (k, c) in k.iter().zip(c) {
            let k = k.map(f64::from);
            *c = std::array::from_fn(|l| c[l] + k[l]);
            lanes = std::array::from_fn(|l| lanes[l] + k[l]);
        }
        let mut sum = f64::from(diagonal[0]);
        for (k, c) in k_rest.iter().zip(c_rest) {
            *c += f64::from(*k);
            sum += f64::from(*k);
        }
        after[0] = sum + lanes.iter().sum::<f64>();
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Task, digits};
    use crate::inspect::inspect_kernels;

    fn align(
        set: &KernelSet,
        targets: &Targets,
        weights: &[f64],
        memory: u64,
    ) -> Result<Alignment, String> {
        let options = Options {
            memory,
            ..Options::default()
        };
        let sample = KernelSample::new(set, targets, weights, 400, &options, &()).unwrap();
        sample.map(|sample| sample.alignments())
    }

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
        let found = align(&set, &targets, &weights, u64::MAX).unwrap();
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
        let found = align(&set, &targets, &weights, 1000);
        assert!(found.unwrap_err().contains("8 kernels"));
    }

    #[test]
    fn a_trained_model_has_alignments_or_a_note() {
        let (set, targets) = quarter();
        let fitted = crate::Mkl::default().fit(&set, &targets, &()).unwrap();
        let mut notes = Vec::new();
        let options = Options::default();
        let found =
            KernelSample::of_trained(&set, &targets, &fitted, 100, &options, &(), &mut notes);
        let found = found.unwrap().alignments();
        assert_eq!((found.samples, found.targets.len()), (100, 8));
        assert!(notes.is_empty());
        let options = Options {
            memory: 1000,
            ..options
        };
        let found =
            KernelSample::of_trained(&set, &targets, &fitted, 100, &options, &(), &mut notes);
        assert!(found.is_none() && notes[0].contains("8 kernels"));
    }

    #[test]
    fn a_constant_kernel_aligns_with_nothing() {
        let n = 60;
        let value = |k: usize| ((k % 7) as f32 - 3.0) * ((k % 7) as f32 - 2.5);
        let views: Vec<_> = [1e-9, 1.0, 1e4]
            .into_iter()
            .enumerate()
            .map(|(v, scale)| crate::data::View {
                name: format!("v{v}"),
                columns: Vec::new(),
                data: crate::data::ViewData::Dense(
                    crate::data::Dense::new(n, 1, (0..n).map(|k| scale * value(k)).collect())
                        .unwrap(),
                ),
            })
            .collect();
        let views = crate::data::Views::new(views).unwrap();
        let specs = KernelSpec::parse("rbf:gamma=1").unwrap();
        let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
        let targets = Targets::Real((0..n).map(|k| f64::from(value(k))).collect());
        let found = align(&set, &targets, &[1.0; 3], u64::MAX).unwrap();
        assert_eq!(found.targets[0], None, "it is 1 everywhere");
        assert!(found.targets[1].unwrap() > 0.2 && found.targets[2].unwrap() > 0.2);
        assert_eq!(found.pairwise[0], [0.0; 3]);
        assert!((found.pairwise[1][1] - 1.0).abs() < 1e-5);
        // The second is told from the third by what the samples of one value have in common with others.
        assert!((0.1..0.999).contains(&found.pairwise[1][2]));
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
