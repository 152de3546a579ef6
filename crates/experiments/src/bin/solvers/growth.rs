//! Time of the solvers of lp:1 as the number of kernels grows (MixNorm's Figure 2).

use crate::problems::one_among;
use multikernel::error::Result;
use multikernel::gram::{KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::train::Mkl;
use std::time::Instant;

const SOLVERS: [&str; 5] = ["exact", "mirror", "simple", "silp", "hessian"];

pub(crate) fn measure(quick: bool) -> Result<()> {
    let n = if quick { 100 } else { 400 };
    let sizes: &[usize] = if quick { &[10, 40] } else { &[10, 30, 100] };
    println!(
        "| kernels | {} | simple / mirror |",
        SOLVERS.map(|s| format!("{s}, ms (solves)")).join(" | ")
    );
    println!("|--:|{}--:|", "--:|".repeat(SOLVERS.len()));
    for &m in sizes {
        // Every view is another kernel: no family makes them cheap.
        let (views, targets) = one_among(m - 1, n, 3, 3)?;
        let set = KernelSet::new(&KernelSpec::parse("rbf")?, &views, &Options::default(), &())?;
        let mut times = Vec::new();
        let mut cells = Vec::new();
        for solver in SOLVERS {
            let mkl = Mkl {
                norm: "lp:1".parse()?,
                solver: solver.parse()?,
                max_seconds: Some(300.0),
                ..Mkl::default()
            };
            let mut least = f64::INFINITY;
            let mut solves = 0;
            let mut status = "";
            for _ in 0..3 {
                let begin = Instant::now();
                let fitted = mkl.fit(&set, &targets, &())?;
                least = least.min(begin.elapsed().as_secs_f64());
                solves = fitted.iterations;
                status = if fitted.relative_gap() <= mkl.tolerance {
                    ""
                } else {
                    " *"
                };
                if least > 10.0 {
                    break;
                }
            }
            times.push(least);
            cells.push(format!("{:.0} ({solves}{status})", 1e3 * least));
        }
        println!(
            "| {m} | {} | {:.1} |",
            cells.join(" | "),
            times[2] / times[1]
        );
    }
    println!("\n\\* stopped before the gap was reached");
    Ok(())
}
