//! The program `multikernel`: main → arguments → command → print. All logic is in the library.

mod args;
mod commands;
mod output;
mod paths;
mod progress;
mod samples;
mod session;
mod stream;
mod training;
mod weights;

use clap::Parser;
use commands::{Cli, Ending};
use multikernel::Error;
use std::process::ExitCode;

/// The data, a SPEC or a value is wrong, or the system said no.
const WRONG: u8 = 1;
/// Training did not reach the gap asked for, and the user wants that to count.
const NOT_CONVERGED: u8 = 3;
/// 128 + the number of SIGINT, as shells have it.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    match commands::run(Cli::parse()) {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::NotConverged) => ExitCode::from(NOT_CONVERGED),
        Ok(Ending::Stopped) => ExitCode::from(INTERRUPTED),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if matches!(error.downcast_ref(), Some(Error::Stopped)) => {
            eprintln!("stopped; nothing was written");
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            // Errors of the library say everything in one sentence; others say more in what caused them.
            match error.downcast_ref::<Error>() {
                Some(error) => eprintln!("error: {}", output::with_flags(&error.to_string())),
                None => eprintln!("error: {error:#}"),
            }
            ExitCode::from(WRONG)
        }
    }
}

/// Whoever reads our output has seen enough (`multikernel … | head`): no failure of ours.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
