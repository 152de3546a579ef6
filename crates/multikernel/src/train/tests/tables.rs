//! Everything in the tables, the toys of the guide among it, trained together: solvers that take any loss agree.

use super::super::solvers::{Way, Weights};
use super::*;
use crate::kernel::{KINDS, LooksAt};
use crate::loss::LOSSES;

/// A kernel of every kind that looks at numbers, with its usual parameters.
fn every_kind(views: &Views) -> KernelSet {
    let numbers = KINDS
        .iter()
        .filter(|info| info.looks_at == LooksAt::Numbers);
    let specs: Vec<String> = numbers
        .map(|info| match info.keys.is_empty() {
            true => format!("{}:normalize=spherical", info.name),
            false => format!("{},normalize=spherical", info.usage()),
        })
        .collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    assert!(specs.contains(&"power:degree=2,normalize=spherical"));
    kernels(&specs, views)
}

#[test]
fn solvers_for_every_loss_agree_on_every_kind_of_kernel() {
    let (views, labels) = some_digits(&["3", "8"], 60);
    let set = every_kind(&views);
    let numbers: Vec<f64> = (0..labels.len())
        .map(|i| labels.spelling(i).parse::<f64>().unwrap() + 0.1 * (i % 7) as f64)
        .collect();
    for info in LOSSES {
        let targets = match info.tasks {
            [Task::Classify, ..] => targets(&labels),
            [Task::Regress, ..] => Targets::Real(numbers.clone()),
            [Task::OneClass, ..] => Targets::None,
            [] => continue,
        };
        let mut highest_dual = f64::NEG_INFINITY;
        let mut lowest_primal = f64::INFINITY;
        let mut asked = Vec::new();
        for solver in SOLVERS {
            if !matches!(
                (solver.way, solver.weights),
                (Way::OneScore(_), Weights::Learned)
            ) {
                continue;
            }
            let mkl = Mkl {
                loss: Some(info.name.parse().unwrap()),
                solver: solver.name.parse().unwrap(),
                ..Mkl::default()
            };
            let fitted = mkl.fit(&set, &targets, &()).unwrap();
            let found = fitted.certificate;
            assert_eq!(
                fitted.status,
                Status::Converged,
                "{} by {}",
                info.name,
                solver.name
            );
            highest_dual = highest_dual.max(found.dual);
            lowest_primal = lowest_primal.min(found.primal);
            asked.push(solver.name);
        }
        assert!(asked.contains(&"exact") && asked.contains(&"turns"));
        assert!(
            highest_dual <= lowest_primal + 1e-9 * lowest_primal.abs(),
            "{}: a dual of {highest_dual} and a primal of {lowest_primal}",
            info.name
        );
    }
}

#[test]
fn a_setting_that_a_solver_does_not_take_is_named() {
    for info in SOLVERS {
        let solver: Solver = info.name.parse().unwrap();
        assert_eq!(solver.to_string(), info.name);
        for setting in [Setting::Tikhonov, Setting::StartEpochs, Setting::Checkpoint] {
            match solver.check(setting) {
                Ok(()) => assert!(solver.takes(setting)),
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains(&format!("solver {solver} ")), "{said}");
                }
            }
        }
    }
    let both = Mkl {
        tikhonov: Some(0.5),
        solver: Solver::Turns,
        ..Mkl::default()
    };
    let said = both.check(None).unwrap_err().to_string();
    assert_eq!(
        said,
        "tikhonov: solver turns does not solve this form; leave it out, or give the solver exact"
    );
}
