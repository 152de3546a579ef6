//! The commands, one file each, and the command line that names them.

mod demo;
mod evaluate;
mod gram;
mod inspect;
mod inspect_model;
mod online;
mod options;
mod predict;
mod report;
mod shell;
mod solvers;
mod train;
mod tune;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

/// Multiple kernel learning: several kernels, one convex problem, a weight for every kernel.
#[derive(Debug, Parser)]
#[command(
    name = "multikernel",
    version,
    propagate_version = true,
    after_help = "Examples:
  multikernel demo                                             # see it work; writes demo-report.html
  multikernel train --features table.csv --label-column class --scale standard --holdout 0.2 --model model.mk
  multikernel predict --model model.mk --features new.csv --out predictions.csv
  multikernel report model.mk --out report.html                # what was learned, for the browser

Exit status: 0 done (also if Ctrl-C or SIGTERM ended it early, with a result), 1 wrong data or values, 2 wrong usage, 3 not
converged (with --strict), 130 stopped before there was a result."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Train(Box<train::Arguments>),
    Tune(Box<tune::Arguments>),
    Predict(predict::Arguments),
    Evaluate(evaluate::Arguments),
    Online(Box<online::Arguments>),
    Gram(gram::Arguments),
    Inspect(inspect::Arguments),
    Report(report::Arguments),
    Solvers(solvers::Arguments),
    Completions(shell::Completions),
    Man(shell::Man),
}

/// How a command that was not refused ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    /// Not converged, under `--strict`.
    NotConverged,
    /// The user stopped it, and was told what is left of it.
    Stopped,
}

pub(crate) fn run(Cli { command }: Cli) -> Result<Ending> {
    let done = match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Train(arguments) => return train::run(&arguments),
        Command::Tune(arguments) => return tune::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
        Command::Online(arguments) => online::run(&arguments),
        Command::Gram(arguments) => gram::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Solvers(arguments) => solvers::run(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments, Cli::command()),
        Command::Man(arguments) => shell::man(&arguments, Cli::command()),
    };
    done.map(|()| Ending::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
