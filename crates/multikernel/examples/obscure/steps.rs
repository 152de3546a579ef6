//! How many steps: beside Pegasos-MKL (Figure 2 of the paper) and with more informative kernels (Figure 5).

use crate::problems::{Problem, digits_of, views_of};
use multikernel::certificate::MulticlassProblem;
use multikernel::dual::Limits;
use multikernel::error::Result;
use multikernel::norm::Norm;
use multikernel::stochastic::{Objective, Radius, Settings, Solution, obscure};

fn train(problem: &Problem, p: f64, c: f64, settings: &Settings) -> Result<Solution> {
    let costs = vec![c; problem.classes.len()];
    let objective = Objective::Multiclass(MulticlassProblem {
        classes: &problem.classes,
        n_classes: problem.n_classes,
        costs: &costs,
    });
    let limits = Limits {
        tolerance: 0.0,
        max_rounds: usize::MAX,
        deadline: None,
        memory: u64::MAX,
    };
    let norm = Norm::block(p)?;
    obscure(
        &problem.gram,
        &norm,
        &objective,
        settings,
        &limits,
        None,
        &(),
    )
}

/// Steps (samples visited, both stages) after which the objective stays within `share` above the best known.
fn steps_to(solution: &Solution, best: f64, share: f64) -> Option<u64> {
    let enough = |primal: f64| primal <= (1.0 + share) * best;
    let last_bad = solution
        .history
        .iter()
        .rposition(|e| !enough(e.look.primal));
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
    let (seeds, epochs) = if quick { (3, 20) } else { (9, 200) };
    println!("\n| problem | p | C | within | OBSCURE | Pegasos-MKL |");
    println!("|---|---|---|---|---|---|");
    let problems = [
        ("digits, 20 kernels", digits_of(1000)?),
        ("17 classes, 7 kernels", views_of(3, 680, 17, 7, 12, 0.8)?),
    ];
    for (name, problem) in &problems {
        for (p, c) in [(1.05, 10.0), (1.25, 10.0), (1.25, 100.0), (2.0, 10.0)] {
            let run = |seed: u64, radius: Radius| {
                let settings = Settings {
                    epochs,
                    seed,
                    radius,
                    ..Settings::default()
                };
                train(problem, p, c, &settings)
            };
            let seeds = 0..seeds;
            let ours: Vec<Solution> = seeds
                .clone()
                .map(|s| run(s, Radius::FromStageOne))
                .collect::<Result<_>>()?;
            let pegasos: Vec<Solution> = seeds
                .map(|s| run(s, Radius::Infinite))
                .collect::<Result<_>>()?;
            // the best that anything below reached: a little above the optimum, for both alike
            let best = ours
                .iter()
                .chain(&pegasos)
                .flat_map(|s| &s.history)
                .map(|e| e.look.primal)
                .fold(f64::INFINITY, f64::min);
            for share in [1.0, 0.1, 0.02] {
                let steps = |all: &[Solution]| {
                    median(all.iter().map(|s| steps_to(s, best, share)).collect())
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
    let (seeds, epochs) = if quick { (3, 20) } else { (9, 200) };
    println!(
        "\n| kernels | p | R | updates of stage 1 | steps to 2 % above the best | objective |"
    );
    println!("|---|---|---|---|---|---|");
    let all = views_of(4, 600, 10, 24, 5, 0.7)?;
    for p in [1.01, 1.25] {
        for kernels in [1, 2, 4, 8, 16, 24] {
            let first: Vec<usize> = (0..kernels).collect();
            let problem = Problem {
                gram: all.gram.select_kernels(&first),
                classes: all.classes.clone(),
                n_classes: all.n_classes,
            };
            let runs: Vec<Solution> = (0..seeds)
                .map(|seed| {
                    let settings = Settings {
                        epochs,
                        seed,
                        online_epochs: 10,
                        ..Settings::default()
                    };
                    train(&problem, p, 10.0, &settings)
                })
                .collect::<Result<_>>()?;
            let best = runs
                .iter()
                .flat_map(|s| &s.history)
                .map(|e| e.look.primal)
                .fold(f64::INFINITY, f64::min);
            let steps = median(runs.iter().map(|s| steps_to(s, best, 0.02)).collect());
            let updates = median(runs.iter().map(|s| Some(s.history[9].updates)).collect());
            let mut radii: Vec<f64> = runs.iter().map(|s| s.bounds.radius).collect();
            radii.sort_by(f64::total_cmp);
            println!(
                "| {kernels} | {p} | {:.2} | {updates} | {steps} | {best:.2} |",
                radii[radii.len() / 2]
            );
        }
    }
    Ok(())
}
