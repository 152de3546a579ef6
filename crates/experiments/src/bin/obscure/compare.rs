//! OBSCURE, the exact solver and one-vs-rest on the same problems: seconds to an objective and to a gap.
//!
//! Prints one JSON line per problem and solver, and writes the sum of the kernels and the classes of every problem into a
//! folder, for peers to be timed on.

use crate::problems::{Problem, as_given, digits_of, views_of};
use multikernel::error::{Error, Result};
use multikernel::loss::Loss;
use multikernel::norm::{Norm, NormSpec};
use multikernel::problem::{self, Limits, MulticlassProblem, Objective, Round};
use multikernel::solve::exact::{self, multiclass};
use multikernel::solve::stochastic::{StochasticSettings, obscure};
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};

const TOLERANCE: f64 = 1e-3;
/// Of the optimum.
const NEAR: f64 = 1.01;
/// OBSCURE stops after so many seconds or epochs if it does not reach the gap.
const PATIENCE: Duration = Duration::from_secs(60);
const EPOCHS: usize = 300;

pub(crate) fn measure(folder: &str, quick: bool) -> Result<()> {
    if quick {
        return problem("digits", "first 300 digits", &digits_of(300)?, folder);
    }
    let digits = digits_of(1797)?;
    problem("digits", "digits, 4 families of 5", &digits, folder)?;
    problem("digits", "digits, given", &as_given(&digits)?, folder)?;
    drop(digits);
    let pen = views_of(1, 7494, 10, 4, 8, 1.0)?;
    problem("pendigits", "pendigits' size", &pen, folder)?;
    drop(pen);
    let caltech = as_given(&views_of(2, 3060, 102, 39, 40, 1.0)?)?;
    problem("caltech", "Caltech's size, given", &caltech, folder)
}

fn limits(tolerance: f64, deadline: Option<Instant>) -> Limits {
    Limits {
        tolerance,
        max_rounds: usize::MAX,
        deadline,
        memory: 8 << 30,
        confirm: true,
    }
}

fn problem(file: &str, name: &str, problem: &Problem, folder: &str) -> Result<()> {
    let gram = &problem.gram;
    write(file, problem, folder).map_err(|e| Error::input(folder, e.to_string(), ""))?;
    let spec: NormSpec = "lp:4/3".parse()?;
    let norm = Norm::new(spec, gram.n_kernels(), &[], &[])?;
    let costs = vec![1.0; problem.classes.len()];
    let joint = MulticlassProblem {
        classes: &problem.classes,
        n_classes: problem.n_classes,
        costs: &costs,
    };
    let optimum = multiclass::solve(gram, &norm, &joint, &limits(1e-5, None), None, &());
    let near = NEAR * optimum.certificate.dual;
    let report = |solver: &str, seconds: f64, gap: f64, looks: &[Round]| {
        let first = |when: &dyn Fn(&Round) -> bool| {
            let look = looks.iter().find(|look| when(look));
            look.map(|look| look.seconds)
        };
        let line = json!({
            "file": file, "problem": name, "solver": solver, "n": gram.n_rows(),
            "kernels": gram.n_kernels(), "classes": problem.n_classes, "seconds": seconds, "gap": gap,
            "near": first(&|look| look.primal <= near),
            "reached": first(&|look| problem::relative_gap(look.primal, look.dual) <= TOLERANCE),
            "rounds": looks.len(),
        });
        println!("{line}");
    };

    let begin = Instant::now();
    let exact = multiclass::solve(gram, &norm, &joint, &limits(TOLERANCE, None), None, &());
    let gap = exact.certificate.relative_gap();
    report("exact", begin.elapsed().as_secs_f64(), gap, &exact.history);

    let begin = Instant::now();
    let settings = StochasticSettings {
        online_epochs: 1,
        epochs: EPOCHS,
        ..StochasticSettings::default()
    };
    let limited = limits(TOLERANCE, Some(begin + PATIENCE));
    let objective = Objective::Multiclass(joint);
    let found = obscure(gram, &norm, &objective, &settings, &limited, None, &())?;
    let looks: Vec<Round> = found.history.iter().map(|epoch| epoch.look).collect();
    let gap = found.certificate.relative_gap();
    report("obscure", begin.elapsed().as_secs_f64(), gap, &looks);

    // One problem per class; its objective is another one, so only its time to the gap compares.
    let begin = Instant::now();
    let (mut primal, mut dual) = (0.0, 0.0);
    for class in 0..problem.n_classes {
        let sign = |y: &u32| if *y as usize == class { 1.0 } else { -1.0 };
        let targets: Vec<f64> = problem.classes.iter().map(sign).collect();
        let one = problem::Problem {
            loss: Loss::Hinge,
            targets: &targets,
            costs: &costs,
            bias: false,
        };
        let solution = exact::solve(gram, &norm, &one, &limits(TOLERANCE, None), None, &());
        primal += solution.certificate.primal;
        dual += solution.certificate.dual;
    }
    let gap = problem::relative_gap(primal, dual);
    report("one-vs-rest", begin.elapsed().as_secs_f64(), gap, &[]);
    Ok(())
}

/// The sum of the kernels and the classes as .npy files.
fn write(file: &str, problem: &Problem, folder: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let n = problem.gram.n_rows();
    let sum = problem.gram.combine(&vec![1.0; problem.gram.n_kernels()]);
    let values: Vec<u8> = sum.matrix().iter().flat_map(|v| v.to_le_bytes()).collect();
    npy(
        &format!("{folder}/{file}.npy"),
        "<f4",
        &format!("({n}, {n})"),
        &values,
    )?;
    let classes: Vec<u8> = problem
        .classes
        .iter()
        .flat_map(|y| y.to_le_bytes())
        .collect();
    npy(
        &format!("{folder}/{file}_y.npy"),
        "<u4",
        &format!("({n},)"),
        &classes,
    )
}

fn npy(path: &str, kind: &str, shape: &str, bytes: &[u8]) -> std::io::Result<()> {
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    header.push_str(&" ".repeat(63 - (header.len() + 10) % 64));
    header.push('\n');
    let mut file = std::fs::File::create(path)?;
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&(header.len() as u16).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    file.write_all(bytes)
}
