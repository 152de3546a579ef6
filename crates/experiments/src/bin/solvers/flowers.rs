//! MixNorm's object categorisation: seven views × nine widths, groups by view, one-vs-one as the paper, and jointly.

use multikernel::data::{Dense, Split, Targets, Task, View, ViewData, Views};
use multikernel::error::Result;
use multikernel::gram::{KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::measure::{Truth, measure as metrics};
use multikernel::train::Mkl;
use multikernel_io::{LoadOptions, load};
use std::path::Path;
use std::time::Instant;

const VIEWS: [&str; 7] = [
    "colour_hsv",
    "colour_lab",
    "sift_interior",
    "sift_boundary",
    "sift_keypoint",
    "texture_lbp",
    "hog",
];

/// Weights below this share of the largest count as none.
const NONE: f64 = 1e-3;

pub(crate) fn measure(folder: &Path, quick: bool) -> Result<()> {
    let file = folder.join("flowers17_7views.npz").display().to_string();
    let data = load(
        &LoadOptions {
            features: vec![format!("{file}:{}", VIEWS.join(","))],
            labels: Some(format!("{file}:y")),
            ..LoadOptions::default()
        },
        &(),
    )?;
    let views = histograms(&data.views)?;
    let targets = Targets::new(data.labels.as_ref(), Task::Classify, views.len())?;
    let widths: Vec<String> = (-4..=4).map(|e| format!("mean*{}", 2f64.powi(e))).collect();
    let specs = KernelSpec::parse(&format!("chi2:width={}", widths.join("|")))?;
    println!(
        "| classes | norm | solver | accuracy, % (splits) | kernels without weight, % | views in use | s |"
    );
    println!("|---|---|---|---|--:|--:|--:|");
    let seeds: Vec<u64> = if quick { vec![0] } else { vec![0, 1, 2] };
    let rows: &[(&str, &str, &str)] = &[
        ("ovo", "mixed", "mirror"),
        ("ovo", "lp:1", "exact"),
        ("ovo", "lp:inf", "sum"),
        ("joint", "mixed", "mirror"),
        ("joint", "lp:1", "exact"),
        ("joint", "lp:4/3", "exact"),
        ("joint", "lp:inf", "sum"),
        ("joint", "lp:inf", "alignf"),
    ];
    let splits = seeds.iter().map(|&seed| {
        let split = Split::holdout(0.25, &targets, views.len(), seed)?;
        let training = views.select(&split.training)?;
        let set = KernelSet::new(&specs, &training, &Options::default(), &())?;
        Ok((set, views.select(&split.held_out)?, split))
    });
    let splits = splits.collect::<Result<Vec<_>>>()?;
    for (multiclass, norm, solver) in rows {
        let mkl = Mkl {
            norm: norm.parse()?,
            solver: solver.parse()?,
            multiclass: multiclass.parse()?,
            c: 100.0,
            ..Mkl::default()
        };
        let (mut accuracies, mut zeros, mut used, mut seconds) = (Vec::new(), 0.0, 0.0, 0.0);
        for (set, held_out, split) in &splits {
            let begin = Instant::now();
            let fitted = mkl.fit(set, &targets.select(&split.training), &())?;
            seconds += begin.elapsed().as_secs_f64();
            let scores = fitted.model.scores(held_out)?;
            let truth: Vec<Option<u32>> = match targets.select(&split.held_out) {
                Targets::Classes { index, .. } => index.into_iter().map(Some).collect(),
                _ => Vec::new(),
            };
            let found = metrics(
                &fitted.model.predictions(&scores),
                &scores,
                Truth::Classes(&truth),
            );
            accuracies.push(100.0 * found["accuracy"]);
            let problems = fitted.kernels[0].weights.len();
            for k in 0..problems {
                let weights = fitted.kernels.iter().map(|kernel| kernel.weights[k]);
                let largest = weights.clone().fold(0.0, f64::max);
                let none = weights.clone().filter(|w| *w <= NONE * largest).count();
                zeros += 100.0 * none as f64 / fitted.kernels.len() as f64 / problems as f64;
                let in_use = VIEWS.iter().filter(|view| {
                    let own = fitted
                        .kernels
                        .iter()
                        .filter(|kernel| kernel.group == **view);
                    own.clone().any(|kernel| kernel.weights[k] > NONE * largest)
                });
                used += in_use.count() as f64 / problems as f64;
            }
        }
        let n = splits.len() as f64;
        let mean = accuracies.iter().sum::<f64>() / n;
        let list: Vec<String> = accuracies.iter().map(|a| format!("{a:.1}")).collect();
        println!(
            "| {multiclass} | {norm} | {solver} | **{mean:.1}** ({}) | {:.0} | {:.1} of 7 | {:.1} |",
            list.join(", "),
            zeros / n,
            used / n,
            seconds / n
        );
    }
    Ok(())
}

/// Rows of sum 1; gradients (hog) by their roots first.
fn histograms(views: &Views) -> Result<Views> {
    let list = views.iter().map(|view| {
        let ViewData::Dense(x) = &view.data else {
            return Ok(view.clone());
        };
        let mut values = x.values().to_vec();
        for row in values.chunks_mut(x.cols()) {
            if view.name == "hog" {
                row.iter_mut().for_each(|v| *v = v.max(0.0).sqrt());
            }
            let total: f32 = row.iter().sum();
            if total > 0.0 {
                row.iter_mut().for_each(|v| *v /= total);
            }
        }
        Ok(View {
            data: ViewData::Dense(Dense::new(x.rows(), x.cols(), values)?),
            ..view.clone()
        })
    });
    Views::new(list.collect::<Result<_>>()?)
}
