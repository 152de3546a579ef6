//! Two views of handwritten digits, trained with three norms: how much each kernel counts, and what it reaches on digits that
//! were not trained on.
//!
//!     cargo run --release -p multikernel --example quick_start

use multikernel::data::{Task, digits};
use multikernel::{Mkl, Result, Targets, Training};

fn main() -> Result<()> {
    let data = digits()?;
    let rows: Vec<usize> = (0..600).collect();
    let views = data.views.only(|view| view.name.starts_with("upper"));
    let targets = Targets::new(data.labels.as_ref(), Task::Classify, views.len())?;
    for norm in ["lp:1", "lp:4/3", "lp:inf"] {
        let training = Training {
            holdout: Some(0.5),
            ..Training::new(Mkl::classifier().norm(norm).c(10.0))
        };
        let outcome = training.run(views.select(&rows)?, targets.select(&rows), &())?;
        println!(
            "{norm}: relative gap {:.1e}, accuracy {:.3}",
            outcome.fitted.relative_gap(),
            outcome.result.metrics["accuracy"]
        );
        for kernel in &outcome.fitted.kernels {
            println!("    {:<28} {:.4}", kernel.name, kernel.weights[0]);
        }
    }
    Ok(())
}
