//! `multikernel demo`: the main job on data inside the program.

use super::inspect::look;
use crate::args::{CommonArgs, DataArgs, KernelArgs};
use anyhow::Result;
use clap::Args;
use multikernel::data::digits;

/// The main job on data inside the program: handwritten digits, seen as four quadrants
///
/// Needs no files. Computes the default kernels of each quadrant of 1797 images and says which of them know most
/// about the digit that was written.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    common: CommonArgs,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let session = arguments.common.start()?;
    session.run(|| {
        session.output.text(
            "1797 handwritten digits of 8×8 pixels, cut into four quadrants: each quadrant is a view of its own.\n",
        )?;
        let loaded = session.prepare(digits()?, &DataArgs::default())?;
        let (specs, notes) = KernelArgs::default().choose(&loaded.views)?;
        look(&session, loaded, &specs, notes)
    })
}
