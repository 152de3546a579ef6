//! How often bootstrap intervals of kernel weights hold the truth: the toy data of Kloft et al. (JMLR 2011, §6.1).
//!
//! ```text
//! cargo run --release -p experiments --bin weight_intervals
//! ```
//!
//! Two Gaussian classes in 20 dimensions, means apart in some of them; every dimension is a linear kernel, multiplicatively
//! normalised. The truth for a kernel's share of the weights is its mean over many data sets of the same size; kernels with
//! information are all alike, and so are those without.

use multikernel::data::{Dense, Targets, View, ViewData, Views};
use multikernel::gram::{KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::random::Random;
use multikernel::select::stability::{Settings, stability};
use multikernel::train::{Fitted, Mkl};

const DIMENSIONS: usize = 20;
/// Distance of each mean from the middle, as in the paper.
const RHO: f64 = 1.75;
const SAMPLES: usize = 200;
const TRUTH_SETS: u64 = 200;
const SETS: u64 = 30;
const ROUNDS: usize = 100;

fn data(informative: usize, seed: u64) -> multikernel::Result<(KernelSet, Targets)> {
    let mut random = Random::stream(seed, informative as u64);
    let index: Vec<u32> = (0..SAMPLES as u32).map(|i| i % 2).collect();
    let mean = RHO / (informative as f64).sqrt();
    let views = (0..DIMENSIONS)
        .map(|d| {
            let shift = if d < informative { mean } else { 0.0 };
            let value = |c: &u32| (shift * (2.0 * f64::from(*c) - 1.0) + random.normal()) as f32;
            let values: Vec<f32> = index.iter().map(value).collect();
            Ok(View {
                name: format!("{d}"),
                columns: Vec::new(),
                data: ViewData::Dense(Dense::new(SAMPLES, 1, values)?),
            })
        })
        .collect::<multikernel::Result<Vec<View>>>()?;
    let specs = KernelSpec::parse("linear:normalize=multiplicative")?;
    let kernels = KernelSet::new(&specs, &Views::new(views)?, &Options::default(), &())?;
    let names = vec!["minus".into(), "plus".into()];
    Ok((kernels, Targets::Classes { names, index }))
}

fn shares(fitted: &Fitted) -> Vec<f64> {
    let total: f64 = fitted.kernels.iter().map(|k| k.weights[0]).sum();
    let kernels = fitted.kernels.iter();
    kernels.map(|k| k.weights[0] / total).collect()
}

fn main() -> multikernel::Result<()> {
    println!(
        "share of 95 % intervals that hold the truth, for kernels with and without information"
    );
    for norm in ["lp:4/3"] {
        for informative in [20, 10, 4] {
            let mkl = Mkl {
                norm: norm.parse()?,
                c: 0.1,
                ..Mkl::default()
            };
            let mut truth = [0.0; 2];
            for set in 0..TRUTH_SETS {
                let (kernels, targets) = data(informative, 1000 + set)?;
                for (d, share) in shares(&mkl.fit(&kernels, &targets, &())?)
                    .iter()
                    .enumerate()
                {
                    truth[usize::from(d >= informative)] += share / TRUTH_SETS as f64;
                }
            }
            truth[0] /= informative as f64;
            truth[1] /= (DIMENSIONS - informative).max(1) as f64;
            let mut held = [0usize; 2];
            let mut width = [0.0; 2];
            for set in 0..SETS {
                let (kernels, targets) = data(informative, set)?;
                let fitted = mkl.fit(&kernels, &targets, &())?;
                let settings = Settings {
                    rounds: ROUNDS,
                    seed: set,
                    shuffle: false,
                    leave_out: false,
                    ..Settings::default()
                };
                let found = stability(&mkl, &kernels, &targets, &fitted, None, &settings, &())?;
                for (d, share) in found.into_iter().flat_map(|f| f.shares).enumerate() {
                    let kind = usize::from(d >= informative);
                    held[kind] +=
                        usize::from(share.low <= truth[kind] && truth[kind] <= share.high);
                    width[kind] += share.high - share.low;
                }
            }
            let of = |kind: usize, count: usize| match count {
                0 => "-".to_owned(),
                _ => {
                    let all = count as f64 * SETS as f64;
                    let covered = 100.0 * held[kind] as f64 / all;
                    format!(
                        "{covered:.0} % (truth {:.4}, width {:.4})",
                        truth[kind],
                        width[kind] / all
                    )
                }
            };
            println!(
                "{norm}, {informative} of {DIMENSIONS} kernels with information: {} and {}",
                of(0, informative),
                of(1, DIMENSIONS - informative)
            );
        }
    }
    Ok(())
}
