//! All solvers on the same ten problems: objective, gap, SVM solves and time.

use crate::problems::{Problem, all};
use multikernel::data::Targets;
use multikernel::error::Result;
use multikernel::train::{Fitted, Mkl};
use std::time::Instant;

/// The solvers of each norm, as users name them.
const NORMS: [(&str, &[&str]); 4] = [
    (
        "lp:1",
        &[
            "exact", "silp", "simple", "hessian", "mirror", "mc-mkl", "wrapper",
        ],
    ),
    (
        "lp:4/3",
        &[
            "exact",
            "wrapper",
            "interleaved",
            "sip",
            "newton",
            "obscure",
            "pegasos",
            "om2",
        ],
    ),
    ("mixed", &["exact", "mirror"]),
    (
        "lp:inf",
        &[
            "sum", "average", "best", "align", "alignf", "product", "lp-beta", "pa1", "omcl",
        ],
    ),
];

pub(crate) fn measure(quick: bool) -> Result<()> {
    for problem in all(quick)? {
        let n = problem.set.gram().n_rows();
        println!(
            "\n### {} ({n} samples, {} kernels)\n\n| norm | solver | objective | relative gap | solves | ms | status |\n|---|---|--:|--:|--:|--:|---|",
            problem.name,
            problem.set.kernels().len()
        );
        for (norm, solvers) in NORMS {
            for solver in solvers {
                row(&problem, norm, solver)?;
            }
        }
    }
    Ok(())
}

/// Best time of three; what a solver refuses is left out.
fn row(problem: &Problem, norm: &str, solver: &str) -> Result<()> {
    let mkl = Mkl {
        norm: norm.parse()?,
        solver: solver.parse()?,
        max_seconds: Some(60.0),
        ..problem.mkl.clone()
    };
    let several = matches!(&problem.targets, Targets::Classes { names, .. } if names.len() > 2);
    if solver == "mc-mkl" && !several {
        return Ok(()); // for two classes it is another problem, without a bias
    }
    let mut best: Option<(f64, Fitted)> = None;
    for _ in 0..3 {
        let begin = Instant::now();
        match mkl.fit(&problem.set, &problem.targets, &()) {
            Ok(fitted) => {
                let seconds = begin.elapsed().as_secs_f64();
                if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
                    best = Some((seconds, fitted));
                }
                if seconds > 0.5 {
                    break;
                }
            }
            Err(_) => return Ok(()),
        }
    }
    if let Some((seconds, fitted)) = best {
        let number = |value: f64| match value.is_finite() {
            true => format!("{value:.4}"),
            false => "-".into(),
        };
        let gap = fitted.relative_gap();
        println!(
            "| {norm} | {solver} | {} | {} | {} | {:.1} | {} |",
            number(fitted.certificate.primal),
            if gap.is_finite() {
                format!("{gap:.0e}")
            } else {
                "-".into()
            },
            fitted.iterations,
            1e3 * seconds,
            fitted.status.name()
        );
    }
    Ok(())
}
