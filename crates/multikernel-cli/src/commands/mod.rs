//! The commands, one file each.

pub(crate) mod demo;
pub(crate) mod gram;
pub(crate) mod inspect;

use crate::args::Command;
use anyhow::Result;

pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Gram(arguments) => gram::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
    }
}
