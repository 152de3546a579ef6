//! How many steps: beside Pegasos-MKL (Figure 2 of the paper) and with more informative kernels (Figure 5).

use crate::problems::{Problem, digits_of, views_of};
use multikernel::error::Result;
use multikernel::norm::Norm;
use multikernel::problem::{Limits, MulticlassProblem, Objective};
use multikernel::solve::exact::multiclass;
use multikernel::solve::stochastic::{
    Epoch, Radius, Solution, Stage, StochasticSettings, Validation, obscure,
};

const LIMITS: Limits = Limits {
    tolerance: 0.0,
    max_rounds: usize::MAX,
    deadline: None,
    memory: u64::MAX,
    confirm: true,
};

fn task<'a>(problem: &'a Problem, costs: &'a [f64]) -> MulticlassProblem<'a> {
    MulticlassProblem {
        classes: &problem.classes,
        n_classes: problem.n_classes,
        costs,
    }
}

fn train(
    problem: &Problem,
    p: f64,
    c: f64,
    settings: &StochasticSettings,
    test: Option<&Problem>,
) -> Result<Solution> {
    let costs = vec![c; problem.classes.len()];
    let test_costs = vec![c; test.map_or(0, |test| test.classes.len())];
    let validation = test.map(|test| Validation {
        gram: &test.gram,
        objective: Objective::Multiclass(task(test, &test_costs)),
    });
    obscure(
        &problem.gram,
        &Norm::block(p)?,
        &Objective::Multiclass(task(problem, &costs)),
        settings,
        &LIMITS,
        validation.as_ref(),
        &(),
    )
}

/// The optimum, to a thousandth.
fn optimum(problem: &Problem, p: f64, c: f64) -> Result<f64> {
    let costs = vec![c; problem.classes.len()];
    let limits = Limits {
        tolerance: 1e-3,
        max_rounds: 1000,
        ..LIMITS
    };
    let norm = Norm::block(p)?;
    let solution = multiclass::solve(
        &problem.gram,
        &norm,
        &task(problem, &costs),
        &limits,
        None,
        &(),
    );
    let certificate = solution.certificate;
    if certificate.relative_gap() > 1e-2 {
        println!(
            "(the optimum is known to {:.1e} only)",
            certificate.relative_gap()
        );
    }
    Ok(certificate.primal)
}

/// Steps (samples visited, both stages) after which `enough` holds for good.
fn steps_to(solution: &Solution, enough: impl Fn(&Epoch) -> bool) -> Option<u64> {
    let last_bad = solution.history.iter().rposition(|e| !enough(e));
    let first = last_bad.map_or(0, |at| at + 1);
    solution.history.get(first).map(|e| e.look.steps)
}

fn median(mut values: Vec<Option<u64>>) -> String {
    // what was never reached comes last
    values.sort_by_key(|v| v.unwrap_or(u64::MAX));
    match values[values.len() / 2] {
        Some(steps) => steps.to_string(),
        None => "not reached".into(),
    }
}

pub(crate) fn beside_pegasos(quick: bool) -> Result<()> {
    let (seeds, epochs) = if quick { (3, 20) } else { (5, 200) };
    println!("\n| problem | p | C | above the optimum | OBSCURE | Pegasos-MKL |");
    println!("|---|---|---|---|---|---|");
    let problems = [
        ("digits, 20 kernels", digits_of(1000)?),
        ("17 classes, 7 kernels", views_of(3, 680, 17, 7, 12, 0.8)?),
    ];
    for (name, problem) in &problems {
        for (p, c) in [(1.05, 10.0), (1.25, 10.0), (1.25, 100.0), (2.0, 10.0)] {
            let run = |seed: u64, radius: Radius| {
                let settings = StochasticSettings {
                    epochs,
                    seed,
                    radius,
                    ..StochasticSettings::default()
                };
                train(problem, p, c, &settings, None)
            };
            let seeds = 0..seeds;
            let ours: Vec<Solution> = seeds
                .clone()
                .map(|s| run(s, Radius::FromStageOne))
                .collect::<Result<_>>()?;
            let pegasos: Vec<Solution> = seeds
                .map(|s| run(s, Radius::Infinite))
                .collect::<Result<_>>()?;
            let best = optimum(problem, p, c)?;
            for share in [9.0, 3.0, 1.0, 0.1] {
                let steps = |all: &[Solution]| {
                    let enough = |e: &Epoch| e.look.primal <= (1.0 + share) * best;
                    median(all.iter().map(|s| steps_to(s, enough)).collect())
                };
                println!(
                    "| {name} | {p} | {c} | {:.0} % | {} | {} |",
                    100.0 * share,
                    steps(&ours),
                    steps(&pegasos)
                );
            }
        }
    }
    Ok(())
}

/// The same samples with more and more views, each of which knows some of the classes.
pub(crate) fn with_more_kernels(quick: bool) -> Result<()> {
    let (seeds, epochs) = if quick { (3, 20) } else { (5, 100) };
    println!(
        "\n| kernels | p | R | updates of stage 1 | epochs of stage 1 with updates | steps to 80 % right on new samples \
         | steps to an objective of 10 % of P(0) | steps to 10 % above the optimum |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let all = views_of(4, 1200, 10, 24, 5, 0.7)?;
    let (c, samples) = (10.0, 600);
    let (train_rows, test_rows): (Vec<usize>, Vec<usize>) =
        ((0..samples).collect(), (samples..1200).collect());
    for p in [1.05, 1.25] {
        for kernels in [1, 4, 8, 16, 24] {
            let first: Vec<usize> = (0..kernels).collect();
            let some = all.gram.select_kernels(&first);
            let problem = Problem {
                gram: some.subset(&train_rows),
                classes: all.classes[..samples].to_vec(),
                n_classes: all.n_classes,
            };
            let test = Problem {
                gram: some.block(&test_rows, &train_rows),
                classes: all.classes[samples..].to_vec(),
                n_classes: all.n_classes,
            };
            let best = optimum(&problem, p, c)?;
            let runs: Vec<Solution> = (0..seeds)
                .map(|seed| {
                    let settings = StochasticSettings {
                        epochs,
                        seed,
                        online_epochs: 50,
                        ..StochasticSettings::default()
                    };
                    train(&problem, p, c, &settings, Some(&test))
                })
                .collect::<Result<_>>()?;
            let of_all = |measure: &dyn Fn(&Solution) -> Option<u64>| {
                median(runs.iter().map(measure).collect())
            };
            let online = |s: &Solution| -> Vec<u64> {
                let epochs = s.history.iter().filter(|e| e.stage == Stage::Online);
                epochs.map(|e| e.updates).collect()
            };
            let updates = of_all(&|s| online(s).last().copied());
            // the first epoch after which nothing changed any more
            let busy = of_all(&|s| {
                let updates = online(s);
                let quiet = updates.iter().position(|u| Some(u) == updates.last())?;
                (quiet + 1 < updates.len()).then_some(quiet as u64 + 1)
            });
            let right = of_all(&|s| steps_to(s, |e| e.validation.is_some_and(|v| v >= 0.8)));
            let at_zero = c * samples as f64;
            let given = of_all(&|s| steps_to(s, |e| e.look.primal <= 0.1 * at_zero));
            let near = of_all(&|s| steps_to(s, |e| e.look.primal <= 1.1 * best));
            let mut radii: Vec<f64> = runs.iter().map(|s| s.bounds.radius).collect();
            radii.sort_by(f64::total_cmp);
            println!(
                "| {kernels} | {p} | {:.1} | {updates} | {busy} | {right} | {given} | {near} |",
                radii[radii.len() / 2]
            );
        }
    }
    Ok(())
}
