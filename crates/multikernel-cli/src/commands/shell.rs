//! `multikernel completions` and `multikernel man`: for the shell around the program, from the same definition as its options.

use crate::output::{print, write_whole};
use anyhow::{Context, Result};
use clap::Args;
use clap_complete::Shell;
use multikernel::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Print completions for a shell
///
/// The shell then completes commands and options of multikernel when Tab is pressed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel completions bash > ~/.local/share/bash-completion/completions/multikernel
  multikernel completions zsh > ~/.zfunc/_multikernel          # with fpath+=~/.zfunc before compinit
  multikernel completions fish > ~/.config/fish/completions/multikernel.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print the manual page of the program or of a command
///
/// With --all a folder gets the pages of the program and of every command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel man train | man -l -
  multikernel man --all ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// A command; the program itself if none is named
    #[arg(conflicts_with = "all")]
    command: Option<String>,

    /// Writes all pages to this folder
    #[arg(long, value_name = "FOLDER")]
    all: Option<PathBuf>,
}

pub(crate) fn completions(arguments: &Completions, mut program: clap::Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "multikernel", &mut text);
    print(&text)
}

pub(crate) fn man(arguments: &Man, mut program: clap::Command) -> Result<()> {
    // Built first: pages then know the full names of commands and the options all of them share.
    program.build();
    if let Some(folder) = &arguments.all {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        write_page(folder, "multikernel.1", &program)?;
        for command in visible(&program) {
            write_page(
                folder,
                &format!("multikernel-{}.1", command.get_name()),
                command,
            )?;
        }
        return Ok(());
    }
    let Some(name) = &arguments.command else {
        return print(&page(&program)?);
    };
    let Some(command) = visible(&program).find(|command| command.get_name() == name) else {
        let names: Vec<&str> = visible(&program).map(clap::Command::get_name).collect();
        return Err(Error::input(
            "command",
            format!("there is no '{name}'"),
            format!("give one of {}", names.join(", ")),
        )
        .into());
    };
    print(&page(command)?)
}

/// Commands that have a page: `help` explains the others.
fn visible(program: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    program
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
}

fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    Ok(text)
}

fn write_page(folder: &Path, name: &str, command: &clap::Command) -> Result<()> {
    let text = page(command)?;
    let file = folder.join(name);
    write_whole(&file, &text)
}
