//! Examples per second against the size of the support, beside what reading the support from memory would allow.

use crate::Wishes;
use multikernel::data::{Dense, View, ViewData, Views};
use multikernel::error::Result;
use multikernel::kernel::KernelSpec;
use multikernel::online::{Online, StreamSettings};
use multikernel::random::Random;
use rayon::prelude::*;
use std::time::Instant;

/// Repeats; the least time counts.
const REPEATS: usize = 3;

pub(crate) fn measure(wishes: &Wishes) -> Result<()> {
    let bandwidth = bandwidth(wishes.threads);
    println!(
        "\nreading memory: {:.1} GB/s with {} threads",
        bandwidth / 1e9,
        wishes.threads
    );
    println!(
        "\n| columns of the four views | support | predict, examples/s | learn, examples/s | updates among them, % | learn one at a time | reading the support for each example, examples/s |"
    );
    println!("|---|---|---|---|---|---|---|");
    let shapes: [(&str, [usize; 4]); 3] = [
        ("16, 16, 16, 16", [16; 4]),
        ("16, 16, 64, 256", [16, 16, 64, 256]),
        ("256, 256, 256, 256", [256; 4]),
    ];
    let sizes: &[usize] = match wishes.quick {
        true => &[1000],
        false => &[250, 1000, 4000],
    };
    for (name, widths) in shapes {
        for &size in sizes {
            one(name, widths, size, bandwidth)?;
        }
    }
    Ok(())
}

/// Ten clusters in every view; `wrong` is the share of labels that are drawn by chance.
fn samples(widths: [usize; 4], n: usize, wrong: f64, seed: u64) -> Result<(Views, Vec<String>)> {
    let mut centres = Random::new(1);
    let centres: Vec<Vec<f32>> = widths
        .iter()
        .map(|w| (0..10 * w).map(|_| centres.normal() as f32).collect())
        .collect();
    let mut random = Random::new(seed);
    let classes: Vec<usize> = (0..n).map(|_| random.below(10)).collect();
    let views = widths
        .iter()
        .zip(&centres)
        .enumerate()
        .map(|(v, (&width, centres))| {
            let values = classes.iter().flat_map(|&y| {
                let centre = &centres[y * width..(y + 1) * width];
                centre
                    .iter()
                    .map(|c| c + 0.7 * random.normal() as f32)
                    .collect::<Vec<_>>()
            });
            Ok(View {
                name: format!("v{v}"),
                columns: Vec::new(),
                data: ViewData::Dense(Dense::new(n, width, values.collect())?),
            })
        })
        .collect::<Result<Vec<View>>>()?;
    let labels = classes.iter().map(|&y| {
        let y = if random.uniform() < wrong {
            random.below(10)
        } else {
            y
        };
        y.to_string()
    });
    Ok((Views::new(views)?, labels.collect()))
}

fn one(name: &str, widths: [usize; 4], size: usize, bandwidth: f64) -> Result<()> {
    let count = (2_000_000 / size).clamp(300, 4000);
    // labels by chance fill the support, then the stream is easy
    let (first, by_chance) = samples(widths, size + size / 4 + 64, 1.0, 2)?;
    let (views, labels) = samples(widths, count, 0.0, 3)?;
    let settings = StreamSettings {
        budget: Some(format!("{size}:oldest").parse()?),
        ..StreamSettings::default()
    };
    let mut online = Online::new(
        settings,
        &KernelSpec::parse("rbf")?,
        &first.select(&(0..200).collect::<Vec<_>>())?,
    )?;
    let told: Vec<Option<&str>> = by_chance.iter().map(|l| Some(l.as_str())).collect();
    online.learn(&first, &told)?;
    let state = online.to_bytes()?;
    let told: Vec<Option<&str>> = labels.iter().map(|l| Some(l.as_str())).collect();
    let (mut predict, mut learn, mut alone) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    let mut updates = 0.0;
    let rows: Vec<Views> = (0..count.min(500))
        .map(|i| views.select(&[i]))
        .collect::<Result<_>>()?;
    for _ in 0..REPEATS {
        let mut online = Online::from_bytes(&state)?;
        let begin = Instant::now();
        std::hint::black_box(online.predict(&views)?);
        predict = predict.min(begin.elapsed().as_secs_f64());
        let before = online.report().updates;
        let begin = Instant::now();
        online.learn(&views, &told)?;
        learn = learn.min(begin.elapsed().as_secs_f64());
        updates = (online.report().updates - before) as f64 / count as f64;
        let mut online = Online::from_bytes(&state)?;
        let begin = Instant::now();
        for (row, label) in rows.iter().zip(&told) {
            online.learn(row, &[*label])?;
        }
        alone = alone.min(begin.elapsed().as_secs_f64());
    }
    let bytes = 4.0 * size as f64 * widths.iter().sum::<usize>() as f64;
    println!(
        "| {name} | {} | {:.0} | {:.0} | {:.1} | {:.0} | {:.0} |",
        online.n_support(),
        count as f64 / predict,
        count as f64 / learn,
        100.0 * updates,
        rows.len() as f64 / alone,
        bandwidth / bytes
    );
    Ok(())
}

/// Bytes per second that all threads together read from memory.
fn bandwidth(threads: usize) -> f64 {
    let values = vec![1.0f32; 64 << 20];
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let begin = Instant::now();
        let total: f32 = values
            .par_chunks(values.len() / threads.max(1))
            .map(|part| {
                let mut lanes = [0.0f32; 64];
                for chunk in part.as_chunks::<64>().0 {
                    lanes.iter_mut().zip(chunk).for_each(|(l, v)| *l += v);
                }
                lanes.iter().sum::<f32>()
            })
            .sum();
        std::hint::black_box(total);
        best = best.min(begin.elapsed().as_secs_f64());
    }
    4.0 * values.len() as f64 / best
}
