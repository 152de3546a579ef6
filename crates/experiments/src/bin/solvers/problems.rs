//! Ten problems of different kinds.

use multikernel::data::{Dense, Targets, Task, View, ViewData, Views, digits};
use multikernel::error::Result;
use multikernel::gram::{KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::random::Random;
use multikernel::train::Mkl;

pub(crate) struct Problem {
    pub(crate) name: &'static str,
    pub(crate) set: KernelSet,
    pub(crate) targets: Targets,
    pub(crate) mkl: Mkl,
}

fn set(views: &Views, spec: &str) -> Result<KernelSet> {
    let mut specs = Vec::new();
    for spec in spec.split(' ') {
        specs.extend(KernelSpec::parse(spec)?);
    }
    KernelSet::new(&specs, views, &Options::default(), &())
}

/// Digits of some classes.
fn some_digits(wanted: &[&str], at_most: usize) -> Result<(Views, Targets)> {
    let data = digits()?;
    let Some(labels) = data.labels else {
        return Ok((data.views, Targets::None));
    };
    let rows: Vec<usize> = (0..labels.len())
        .filter(|&i| wanted.is_empty() || wanted.contains(&labels.spelling(i)))
        .take(at_most)
        .collect();
    let labels = labels.select(&rows);
    let targets = match wanted.len() {
        1 => Targets::None,
        _ => Targets::new(Some(&labels), Task::Classify, rows.len())?,
    };
    Ok((data.views.select(&rows)?, targets))
}

fn view(name: String, rows: usize, columns: usize, values: Vec<f32>) -> Result<View> {
    Ok(View {
        name,
        columns: Vec::new(),
        data: ViewData::Dense(Dense::new(rows, columns, values)?),
    })
}

/// Two classes; the first of the views tells them apart, the others are noise.
pub(crate) fn one_among(
    noise: usize,
    n: usize,
    columns: usize,
    seed: u64,
) -> Result<(Views, Targets)> {
    let mut random = Random::new(seed);
    let index: Vec<u32> = (0..n).map(|_| random.below(2) as u32).collect();
    let mut views = Vec::new();
    for v in 0..=noise {
        let values = (0..n * columns).map(|at| {
            let shift = if v == 0 {
                f64::from(index[at / columns])
            } else {
                0.0
            };
            (shift + random.normal()) as f32
        });
        let values = values.collect();
        views.push(view(format!("v{v}"), n, columns, values)?);
    }
    let names = vec!["a".into(), "b".into()];
    Ok((Views::new(views)?, Targets::Classes { names, index }))
}

/// Friedman's function of five columns among ten, each a view.
fn friedman(n: usize) -> Result<(Views, Targets)> {
    let mut random = Random::new(5);
    let x: Vec<f64> = (0..10 * n).map(|_| random.uniform()).collect();
    let at = |i: usize, d: usize| x[d * n + i];
    let y = (0..n).map(|i| {
        let wave = 10.0 * (std::f64::consts::PI * at(i, 0) * at(i, 1)).sin();
        wave + 20.0 * (at(i, 2) - 0.5).powi(2) + 10.0 * at(i, 3) + 5.0 * at(i, 4) + random.normal()
    });
    let y: Vec<f64> = y.collect();
    let views = (0..10).map(|d| {
        view(
            format!("x{d}"),
            n,
            1,
            x[d * n..(d + 1) * n].iter().map(|&v| v as f32).collect(),
        )
    });
    Ok((Views::new(views.collect::<Result<_>>()?)?, Targets::Real(y)))
}

/// Odd and even.
fn parity(targets: Targets) -> Targets {
    match targets {
        Targets::Classes { names, index } => Targets::Classes {
            index: index
                .iter()
                .map(|&c| names[c as usize].parse::<u32>().unwrap_or(0) % 2)
                .collect(),
            names: vec!["even".into(), "odd".into()],
        },
        other => other,
    }
}

/// The problems, at C = `c` of their own.
pub(crate) fn all(quick: bool) -> Result<Vec<Problem>> {
    let n = |size: usize| if quick { size / 4 } else { size };
    let five = "rbf:width=mean*0.25|mean*0.5|mean|mean*2|mean*4";
    let mkl = |c: f64| Mkl {
        c,
        ..Mkl::default()
    };
    let mut problems = Vec::new();
    let mut add =
        |name: &'static str, data: (Views, Targets), spec: &str, mkl: Mkl| -> Result<()> {
            problems.push(Problem {
                name,
                set: set(&data.0, spec)?,
                targets: data.1,
                mkl,
            });
            Ok(())
        };
    add(
        "3 or 8, four quadrants × 5 widths, C = 1",
        some_digits(&["3", "8"], n(357))?,
        five,
        mkl(1.0),
    )?;
    add(
        "the same, C = 100",
        some_digits(&["3", "8"], n(357))?,
        five,
        mkl(100.0),
    )?;
    let (views, targets) = some_digits(&[], n(1000))?;
    add(
        "odd or even, 20 kernels",
        (views, parity(targets)),
        five,
        mkl(10.0),
    )?;
    let (views, targets) = some_digits(&[], n(600))?;
    let spec = format!("{five} linear:normalize=spherical poly:gamma=0.001");
    add(
        "odd or even, 28 kernels of three kinds",
        (views, parity(targets)),
        &spec,
        mkl(1.0),
    )?;
    add(
        "one view among 20 of noise",
        one_among(20, n(400), 5, 1)?,
        "rbf",
        mkl(1.0),
    )?;
    let widths: Vec<String> = (0..50)
        .map(|k| format!("mean*{:.4}", 1.2f64.powi(k - 25)))
        .collect();
    let spec = format!("rbf:width={}", widths.join("|"));
    add(
        "one view, 50 widths",
        one_among(0, n(800), 5, 2)?,
        &spec,
        mkl(1.0),
    )?;
    add(
        "three digits jointly, 20 kernels",
        some_digits(&["3", "5", "8"], n(500))?,
        five,
        mkl(1.0),
    )?;
    add(
        "ten digits jointly, 20 kernels",
        some_digits(&[], n(800))?,
        five,
        mkl(1.0),
    )?;
    add(
        "regression, ten columns × 3 widths",
        friedman(n(500))?,
        "rbf:width=mean*0.5|mean|mean*2",
        mkl(10.0),
    )?;
    add(
        "one class, 20 kernels",
        some_digits(&["0"], n(178))?,
        five,
        mkl(0.1),
    )?;
    Ok(problems)
}
