//! A quick check of kernels before they are trained on: cheap enough for every training.

use super::kernels::{Means, Vitals, each, inverse_roots, similarity, uneven};
use crate::gram::KernelSet;
use crate::math::sum_of_squares;
use crate::random::Random;

/// Samples that show whether a kernel is constant, the identity, or of another scale than the others.
const SAMPLES: usize = 48;
/// Ratio of scales from which the larger kernel surely drowns the smaller: nobody asked for this look, so it tells of less.
const UNEVEN: f64 = 1000.0;

/// What deserves a look before training, in sentences: kernels that are zero, constant or the identity, and large differences of
/// scale. [`super::inspect_kernels`] looks closer, at many times the price.
pub(crate) fn quick_check(kernels: &KernelSet) -> Vec<String> {
    let gram = kernels.gram();
    let n = gram.n_rows();
    let samples = Random::new(0).sample(n, SAMPLES.min(n));
    // Copied, so that kernels of a few samples do not go through the statistics of all.
    let part = gram.copied_subset(&samples, u64::MAX);
    let all: Vec<Vitals<'_>> = kernels
        .kernels()
        .iter()
        .enumerate()
        .map(|(m, kernel)| {
            let values = part.kernel(m).matrix();
            // Rare features are zero among few samples.
            let is_zero = values.iter().all(|&v| v == 0.0)
                && gram.kernel(m).diagonal().iter().all(|&v| v == 0.0);
            vitals(&kernel.name, &values, is_zero)
        })
        .collect();
    let mut found = each(samples.len(), &all);
    found.extend(uneven(&all, UNEVEN));
    // That a kernel is zero was seen on all samples.
    let of_some = usize::from(all.iter().any(|kernel| kernel.is_zero));
    if samples.len() < n {
        for sentence in &mut found[of_some..] {
            *sentence += &format!(" (as {} of the {n} samples show)", samples.len());
        }
    }
    found
}

fn vitals<'a>(name: &'a str, values: &[f32], is_zero: bool) -> Vitals<'a> {
    let n = values.len().isqrt();
    let means = Means::new(values, n);
    let trace: f64 = (0..n).map(|i| f64::from(values[i * n + i])).sum();
    let roots = inverse_roots(values, n);
    let (mut squares, mut centred_squares, mut similar) = (0.0, 0.0, 0.0);
    let mut centred = vec![0.0; n];
    for (i, row) in values.chunks_exact(n).enumerate() {
        means.centre(i, row, &mut centred);
        squares += sum_of_squares(row);
        centred_squares += sum_of_squares(&centred);
        similar += similarity(i, row, &roots);
    }
    Vitals {
        name,
        is_zero,
        mean_similarity: similar / (n * (n - 1)).max(1) as f64,
        // A kernel that is zero among these samples only says nothing here.
        variation: if squares > 0.0 {
            (centred_squares / squares).sqrt()
        } else {
            1.0
        },
        variance: trace / n as f64 - means.of_all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, View, ViewData, Views};
    use crate::gram::Options;
    use crate::kernel::KernelSpec;

    fn seen(n: usize, kernels: &str) -> Vec<String> {
        let mut random = Random::new(3);
        let view = |name: &str, scale: f64, random: &mut Random| View {
            name: name.into(),
            columns: Vec::new(),
            data: ViewData::Dense(
                Dense::new(
                    n,
                    2,
                    (0..2 * n)
                        .map(|_| (scale * random.normal()) as f32)
                        .collect(),
                )
                .unwrap(),
            ),
        };
        let views = vec![
            view("a", 1.0, &mut random),
            view("b", 1000.0, &mut random),
            view("none", 0.0, &mut random),
        ];
        let specs = KernelSpec::parse(kernels).unwrap();
        let views = Views::new(views).unwrap();
        quick_check(&KernelSet::new(&specs, &views, &Options::default(), &()).unwrap())
    }

    #[test]
    fn what_is_fine_is_passed_over() {
        assert_eq!(seen(100, "rbf:view=a,width=1|2|4"), Vec::<String>::new());
        assert_eq!(seen(2, "linear:view=a"), Vec::<String>::new());
    }

    #[test]
    fn useless_kernels_are_told_by_few_samples() {
        let found = seen(500, "linear:view=none");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("linear") && found[0].ends_with("is zero everywhere; leave it out")
        );
        let found = seen(40, "rbf:view=a,width=1e9|2");
        assert!(
            found[0].contains("constant") && found.len() == 1,
            "{found:?}"
        );
        let found = seen(500, "rbf:view=b,width=1");
        assert!(found[0].contains("numerically the identity"), "{found:?}");
        assert!(
            found[0].ends_with("(as 48 of the 500 samples show)"),
            "{found:?}"
        );
    }

    #[test]
    fn no_memory_to_spare_is_no_trouble() {
        let x = (0..60).map(|i| (i % 7) as f32).collect();
        let views = Views::new(vec![View {
            name: "x".into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(60, 1, x).unwrap()),
        }])
        .unwrap();
        let specs = KernelSpec::parse("rbf:gamma=0.1|1").unwrap();
        let set = |memory: u64| {
            let options = Options {
                memory,
                ..Options::default()
            };
            KernelSet::new(&specs, &views, &options, &())
        };
        let Err(crate::error::Error::Memory { needed, .. }) = set(0) else {
            panic!("something needs memory");
        };
        let set = set(needed).unwrap();
        assert_eq!(set.gram().spare_memory(), 0);
        assert_eq!(quick_check(&set), Vec::<String>::new());
    }

    #[test]
    fn scales_far_apart_are_told() {
        let found = seen(200, "linear:view=a|b");
        assert!(
            found[0].contains("the scales of the kernels differ by a factor of"),
            "{found:?}"
        );
        let found = seen(200, "linear:view=a|b,normalize=multiplicative");
        assert_eq!(found, Vec::<String>::new());
    }
}
