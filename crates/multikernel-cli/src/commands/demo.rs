//! `multikernel demo`: the main job on data inside the program.

use super::report;
use crate::args::CommonArgs;
use crate::paths::Paths;
use crate::training;
use anyhow::Result;
use clap::Args;
use multikernel::data::{Targets, Task, digits};
use multikernel::pipeline::Training;
use multikernel::train::{Mkl, Multiclass};
use std::path::PathBuf;

/// The share of the digits that is held out.
const HELD_OUT: f64 = 0.5;
/// The digits are clean: errors may cost more than usual.
const COST: f64 = 10.0;

/// The main job on data inside the program: handwritten digits, seen as four quadrants
///
/// Needs no files. Learns to tell ten digits from half of 1797 images, with the default kernels of each quadrant: how much
/// each kernel counts, how far the result is from the optimum, and what it is worth on the other half. Ends with a report, a
/// page for the browser that explains what was learned.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel demo
  multikernel demo --out digits.html --json digits.json")]
pub(crate) struct Arguments {
    /// Where the report goes
    #[arg(long, value_name = "FILE.html", default_value = "demo-report.html")]
    out: PathBuf,

    #[command(flatten)]
    common: CommonArgs,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let session = arguments.common.start()?;
    Paths::of(&arguments.common)
        .writes("out", &arguments.out)
        .check()?;
    session.run(|| {
        let output = &session.output;
        output.text(
            "1797 handwritten digits of 8×8 pixels, cut into four quadrants: each quadrant is a view of its own.\n",
        )?;
        let digits = digits()?;
        let targets = Targets::new(digits.labels.as_ref(), Task::Classify, digits.views.len())?;
        let training = Training {
            mkl: Mkl {
                c: COST,
                multiclass: Multiclass::Joint,
                ..Mkl::default()
            },
            holdout: Some(HELD_OUT),
            baselines: true,
            ..Training::default()
        };
        let mut trained = training::train(training, digits.views, targets, &session)?;
        trained.outcome.keep()?;
        report::write(&trained.outcome.fitted.model, &arguments.out)?;
        output.notes(&trained.outcome.notes)?;
        output.text(&trained.text())?;
        output.text(&format!(
            "report written to {}; open it in a browser\n",
            arguments.out.display()
        ))?;
        output.warnings(trained.warnings())?;
        output.json(&trained.outcome.result)
    })
}
