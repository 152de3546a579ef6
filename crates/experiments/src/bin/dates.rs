//! Reading handwritten dates: chains of eight digits (YYYYMMDD) whose images are spoilt, labelled by OBSCURE with Viterbi's
//! algorithm as its oracle, beside the same kernels without neighbours.
//!
//!     cargo run --release -p experiments --bin dates
//!
//! The images are those of `data::digits` (scikit-learn's 8×8 digits), in four quadrants; of every image each quadrant is lost
//! with probability 0.35. Training and test dates are written with different images.

use multikernel::data::{Dense, View, ViewData, Views, digits};
use multikernel::error::{Error, Result};
use multikernel::gram::{KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::norm::{Norm, NormSpec};
use multikernel::problem::Limits;
use multikernel::random::Random;
use multikernel::solve::stochastic::{
    Chains, Neighbours, StochasticSettings, Structured, obscure_structured,
};

const PLACES: usize = 8;
const LOST: f64 = 0.35;
const TRAIN: usize = 150;
const TEST: usize = 300;
const SEEDS: u64 = 5;

fn main() -> Result<()> {
    println!("{TRAIN} dates to learn from, {TEST} to read; means of {SEEDS} seeds");
    println!("| model | digits read right | dates read right | relative gap |");
    println!("|---|---|---|---|");
    let every = [Neighbours::Pairs, Neighbours::PairsAtPlace];
    let mut weights = Vec::new();
    for (name, neighbours) in [
        ("each digit by itself", &[][..]),
        ("with pairs of neighbours", &every[..1]),
        ("with pairs and pairs at their place", &every[..]),
    ] {
        let mut sums = [0.0; 3];
        for seed in 0..SEEDS {
            let (result, names) = run(seed, neighbours)?;
            sums.iter_mut().zip(result).for_each(|(s, r)| *s += r);
            weights = names;
        }
        let [digits, dates, gap] = sums.map(|s| s / SEEDS as f64);
        println!(
            "| {name} | {:.1} % | {:.1} % | {gap:.3} |",
            100.0 * digits,
            100.0 * dates
        );
    }
    println!("\nKernel weights of the last model:");
    for (name, weight) in weights {
        println!("  {name:<24} {weight:.3}");
    }
    Ok(())
}

/// Shares of digits and dates read right and the gap.
type Reached = [f64; 3];

/// What is reached, and the kernels' weights.
fn run(seed: u64, neighbours: &[Neighbours]) -> Result<(Reached, Vec<(String, f64)>)> {
    let mut random = Random::new(seed);
    let mut dates =
        |count: usize| -> Vec<Vec<u32>> { (0..count).map(|_| date(&mut random)).collect() };
    let (train, test) = (dates(TRAIN), dates(TEST));
    let train_views = written(&train, 0..1000, &mut random)?;
    let test_views = written(&test, 1000..1797, &mut random)?;
    let specs = KernelSpec::parse("rbf:width=mean*0.5")?;
    let set = KernelSet::new(&specs, &train_views, &Options::default(), &())?;
    let chains = Chains::new(set.gram(), train, 10, neighbours)?;
    let kernels = set.kernels().len() + neighbours.len();
    let norm: NormSpec = "block:1.5".parse()?;
    let norm = Norm::new(norm, kernels, &[], &[])?;
    let samples: Vec<usize> = (0..TRAIN).collect();
    let limits = Limits {
        tolerance: 1e-3,
        max_rounds: usize::MAX,
        deadline: None,
        memory: 1 << 30,
        confirm: true,
    };
    let settings = StochasticSettings {
        epochs: 30,
        seed,
        ..StochasticSettings::default()
    };
    let costs = vec![1.0; TRAIN];
    let model: Structured<Chains<'_>> =
        obscure_structured(&chains, &samples, &costs, &norm, &settings, &limits, &())?;
    let read = chains.label(&model, &set.cross(&test_views)?, &[PLACES; TEST])?;
    let right = |(a, b): (&Vec<u32>, &Vec<u32>)| a.iter().zip(b).filter(|(a, b)| a == b).count();
    let digits: usize = read.iter().zip(&test).map(right).sum();
    let whole = read.iter().zip(&test).filter(|(a, b)| a == b).count();
    let names = set.kernels().iter().map(|kernel| kernel.name.clone());
    let names = names.chain(neighbours.iter().map(|kind| format!("{kind:?}")));
    Ok((
        [
            digits as f64 / (TEST * PLACES) as f64,
            whole as f64 / TEST as f64,
            model.certificate.relative_gap(),
        ],
        names.zip(model.weights).collect(),
    ))
}

/// A day between 1900 and 2099.
fn date(random: &mut Random) -> Vec<u32> {
    let (year, month) = (1900 + random.below(200), 1 + random.below(12));
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 => 28 + usize::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let number = year * 10_000 + month * 100 + 1 + random.below(days);
    (0..PLACES as u32)
        .rev()
        .map(|power| (number / 10usize.pow(power) % 10) as u32)
        .collect()
}

/// The dates in images drawn from a range, each quadrant of each image lost now and then.
fn written(
    dates: &[Vec<u32>],
    images: std::ops::Range<usize>,
    random: &mut Random,
) -> Result<Views> {
    let data = digits()?;
    let labels = data.labels.ok_or(Error::Stopped)?;
    let of_digit: Vec<Vec<usize>> = (0..10)
        .map(|digit: u32| {
            let wanted = digit.to_string();
            let images = images.clone();
            images.filter(|&i| labels.spelling(i) == wanted).collect()
        })
        .collect();
    let drawn: Vec<usize> = dates
        .iter()
        .flatten()
        .map(|&digit| {
            let own = &of_digit[digit as usize];
            own[random.below(own.len())]
        })
        .collect();
    let mut views = Views::default();
    for view in data.views.select(&drawn)?.iter() {
        let ViewData::Dense(x) = &view.data else {
            continue;
        };
        let mut values = x.values().to_vec();
        for row in values.chunks_mut(x.cols()) {
            if random.uniform() < LOST {
                row.fill(0.0);
            }
        }
        views.push(View {
            name: view.name.clone(),
            columns: view.columns.clone(),
            data: ViewData::Dense(Dense::new(drawn.len(), x.cols(), values)?),
        })?;
    }
    Ok(views)
}
