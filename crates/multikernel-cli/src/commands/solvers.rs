//! `multikernel solvers`: what there is to solve with.

use crate::output::Output;
use crate::paths::Paths;
use anyhow::Result;
use clap::Args;
use multikernel::train::SOLVERS;
use std::path::{Path, PathBuf};

/// List the solvers: the problem each solves, its paper, what it certifies
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel solvers
  multikernel solvers --json - | jq -r '.[].name'")]
pub(crate) struct Arguments {
    /// Writes the list as JSON to a file, or to stdout with -; text then goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let output = Output {
        quiet: false,
        stdout_is_taken: arguments.json.as_deref() == Some(Path::new("-")),
        json: arguments.json.clone(),
    };
    if let Some(json) = &output.json {
        Paths::default().writes_or_prints("json", json).check()?;
    }
    for info in SOLVERS {
        output.text(&format!(
            "{}\n  problem    {}\n  paper      {}\n  certifies  {}\n",
            info.name, info.problem, info.paper, info.certifies
        ))?;
    }
    output.json(&SOLVERS)
}
