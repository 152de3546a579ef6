//! The commands, one file each.

pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod gram;
pub(crate) mod inspect;
mod inspect_model;
pub(crate) mod online;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod shell;
pub(crate) mod solvers;
pub(crate) mod train;
pub(crate) mod tune;

use crate::args::Command;
use anyhow::Result;

/// How a command that was not refused ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    /// Not converged, under `--strict`.
    NotConverged,
    /// The user stopped it, and was told what is left of it.
    Stopped,
}

pub(crate) fn run(command: Command) -> Result<Ending> {
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
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments),
    };
    done.map(|()| Ending::Done)
}
