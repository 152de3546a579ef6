//! Times the exact solver for `bench/mkl`: MNIST, odd against even digits, Gaussian kernels exp(−‖x−x'‖²/1.2^m),
//! m ∈ [0, 50), C = 1, with a bias. Prints one JSON line per job.
//!
//!     bench_mkl FOLDER [--threads 2] [--quick] [--given]
//!
//! FOLDER holds MNIST's IDX files. A job's time runs from raw pixels to the certified result; it is the median of
//! three repeats. `to` holds the seconds after which the history first shows a gap below 1e-2, 1e-3 and 1e-5.

use multikernel::data::{Dense, Pairwise, View, ViewData, Views};
use multikernel::error::{Error, Result};
use multikernel::gram::{Indefinite, KernelSet, Options};
use multikernel::kernel::{KernelSpec, Width};
use multikernel::loss::Loss;
use multikernel::norm::Norm;
use multikernel::problem::{Limits, Problem, Solution};
use multikernel::solve::exact::solve;
use serde_json::json;
use std::time::Instant;

const REPEATS: usize = 3;

struct Digits {
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let quick = words.iter().any(|w| w == "--quick");
    let folder = words.iter().find(|w| !w.starts_with("--"));
    let folder =
        folder.ok_or_else(|| Error::input("", "no folder is named", "give MNIST's folder"))?;
    let after = |name: &str| {
        let place = words.iter().position(|w| w == name)?;
        words.get(place + 1)?.parse::<usize>().ok()
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(after("--threads").unwrap_or(2))
        .build()
        .map_err(|e| Error::input("--threads", e.to_string(), ""))?;
    let read = |name: &str| {
        let path = format!("{folder}/{name}");
        std::fs::read(&path).map_err(|e| Error::io(&path, e))
    };
    let digits = Digits {
        pixels: read("train-images-idx3-ubyte")?.split_off(16),
        labels: read("train-labels-idx1-ubyte")?.split_off(8),
    };
    pool.install(|| {
        if words.iter().any(|w| w == "--given") {
            return given(&digits, 4000, 50);
        }
        if quick {
            for p in [1.0, 4.0 / 3.0, 2.0] {
                family(&digits, 500, 50, p, 1e-3)?;
            }
            return given(&digits, 500, 5);
        }
        for p in [2.0, 4.0 / 3.0, 1.0] {
            for n in [1000, 2000, 4000, 8000] {
                family(&digits, n, 50, p, 1e-3)?;
            }
        }
        for kernels in [200, 1000, 10_000] {
            family(&digits, 1000, kernels, 2.0, 1e-3)?;
        }
        for kernels in [500, 5000] {
            family(&digits, 4000, kernels, 2.0, 1e-3)?;
        }
        for p in [2.0, 4.0 / 3.0, 1.0] {
            family(&digits, 4000, 50, p, 1e-5)?;
        }
        given(&digits, 4000, 50)
    })
}

fn views(digits: &Digits, n: usize) -> Result<Views> {
    let values = digits.pixels[..784 * n]
        .iter()
        .map(|&v| f32::from(v) / 255.0);
    let pixels = Dense::new(n, 784, values.collect())?;
    Views::new(vec![View {
        name: "pixels".into(),
        columns: Vec::new(),
        data: ViewData::Dense(pixels),
    }])
}

fn targets(digits: &Digits, n: usize) -> Vec<f64> {
    let sign = |label: &u8| if label % 2 == 1 { 1.0 } else { -1.0 };
    digits.labels[..n].iter().map(sign).collect()
}

fn train(set: &KernelSet, targets: &[f64], p: f64, tolerance: f64) -> Result<Solution> {
    let costs = vec![1.0; targets.len()];
    let problem = Problem {
        loss: Loss::Hinge,
        targets,
        costs: &costs,
        bias: true,
    };
    let limits = Limits {
        tolerance,
        max_rounds: 500,
        deadline: None,
        memory: set.gram().spare_memory(),
        confirm: true,
    };
    Ok(solve(
        set.gram(),
        &Norm::lp(p)?,
        &problem,
        &limits,
        None,
        &(),
    ))
}

/// Widths 1.2^m, m evenly in [0, 50): one family.
fn specs(kernels: usize) -> Vec<KernelSpec> {
    let width = |m: usize| 1.2f64.powf(50.0 * m as f64 / kernels as f64);
    (0..kernels)
        .map(|m| KernelSpec::rbf(Width::Value(width(m))))
        .collect()
}

fn family(digits: &Digits, n: usize, kernels: usize, p: f64, tolerance: f64) -> Result<()> {
    let targets = targets(digits, n);
    let mut runs = Vec::new();
    for _ in 0..REPEATS {
        let start = Instant::now();
        let set = KernelSet::new(
            &specs(kernels),
            &views(digits, n)?,
            &Options::default(),
            &(),
        )?;
        let ready = start.elapsed().as_secs_f64();
        let solution = train(&set, &targets, p, tolerance)?;
        runs.push((start.elapsed().as_secs_f64(), ready, solution));
    }
    report("family", n, kernels, p, tolerance, runs);
    Ok(())
}

/// The same kernels as matrices of their own: nothing is shared, every value must be read.
fn given(digits: &Digits, n: usize, kernels: usize) -> Result<()> {
    let targets = targets(digits, n);
    let set = KernelSet::new(
        &specs(kernels),
        &views(digits, n)?,
        &Options::default(),
        &(),
    )?;
    let mut matrices = Views::default();
    for m in 0..kernels {
        let values = set.gram().kernel(m).matrix();
        matrices.push(View {
            name: format!("k{m}"),
            columns: Vec::new(),
            data: ViewData::Pairwise(Pairwise::new(n, n, values)?),
        })?;
    }
    drop(set);
    let specs = [KernelSpec::precomputed()];
    let options = Options {
        // They are Gaussian: what is timed is the training.
        indefinite: Indefinite::Allow,
        ..Options::default()
    };
    let set = KernelSet::new(&specs, &matrices, &options, &())?;
    let mut runs = Vec::new();
    for _ in 0..REPEATS {
        let start = Instant::now();
        let solution = train(&set, &targets, 2.0, 1e-3)?;
        runs.push((start.elapsed().as_secs_f64(), 0.0, solution));
    }
    report("given", n, kernels, 2.0, 1e-3, runs);
    Ok(())
}

fn report(
    job: &str,
    n: usize,
    kernels: usize,
    p: f64,
    tolerance: f64,
    mut runs: Vec<(f64, f64, Solution)>,
) {
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (seconds, ready, solution) = &runs[runs.len() / 2];
    let reached = |gap: f64| {
        let first = solution
            .history
            .iter()
            .find(|l| (l.primal - l.dual) <= gap * l.primal.abs().max(l.dual.abs()));
        first.map(|l| ready + l.seconds)
    };
    println!(
        "{}",
        json!({
            "job": job, "n": n, "kernels": kernels, "p": p, "tolerance": tolerance,
            "seconds": seconds, "gram_seconds": ready,
            "to": {"1e-2": reached(1e-2), "1e-3": reached(1e-3), "1e-5": reached(1e-5)},
            "rounds": solution.history.len(), "steps": solution.steps,
            "primal": solution.certificate.primal, "dual": solution.certificate.dual,
            "relative_gap": solution.certificate.relative_gap(),
            "status": solution.status.name(),
        })
    );
}
