//! `multikernel demo`: the main job on data inside the program.

use crate::args::{CommonArgs, KernelArgs};
use crate::training::Job;
use anyhow::Result;
use clap::Args;
use multikernel::data::{Targets, Task, digits};
use multikernel::gram::Indefinite;
use multikernel::mkl::{Mkl, Multiclass};

/// The share of the digits that is held out.
const HELD_OUT: f64 = 0.5;
/// The digits are clean: errors may cost more than usual.
const COST: f64 = 10.0;

/// The main job on data inside the program: handwritten digits, seen as four quadrants
///
/// Needs no files. Learns to tell ten digits from half of 1797 images, with the default kernels of each quadrant: how much
/// each kernel counts, how far the result is from the optimum, and what it is worth on the other half.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    common: CommonArgs,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let session = arguments.common.start()?;
    session.run(|| {
        let output = &session.output;
        output.text(
            "1797 handwritten digits of 8×8 pixels, cut into four quadrants: each quadrant is a view of its own.\n",
        )?;
        let digits = digits()?;
        let targets = Targets::new(digits.labels.as_ref(), Task::Classify, digits.views.len())?;
        let job = Job {
            views: digits.views,
            targets,
            kernels: &KernelArgs::default(),
            scale: Vec::new(),
            indefinite: Indefinite::Error,
            mkl: Mkl {
                c: COST,
                multiclass: Multiclass::Joint,
                ..Mkl::default()
            },
            lambda: None,
            validation: None,
            holdout: Some(HELD_OUT),
            baselines: true,
            probabilities: false,
            stability: None,
            notes: Vec::new(),
        };
        let trained = job.run(&session)?;
        output.notes(&trained.notes)?;
        output.text(&trained.text())?;
        output.warnings(&trained.result.warnings)?;
        output.json(&trained.result)
    })
}
