//! What the user may write. Groups of options that several commands share are structs here; a command's own options
//! stand in its file.

use clap::Args;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::Error as UsageError;
use multikernel::Error;
use multikernel::data::{ScaleOption, Task};
use multikernel::gram::Indefinite;
use multikernel::kernel::{KINDS, KernelSpec};
use multikernel::loss::LOSSES;
use multikernel::norm::NORMS;
use multikernel::train::SOLVERS;
use multikernel_io::{LoadOptions, Purpose, ViewCut};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where the samples are.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct FileArgs {
    /// Features: .npy, .npz (one view per 2-D array; F.npz:a,b picks some), .csv[.gz], LIBSVM text, FASTA or
    /// Parquet; may be repeated, one file per view
    #[arg(long, value_name = "FILE")]
    pub(crate) features: Vec<String>,

    /// Precomputed kernels (or distances): .npz with one n×n array per kernel or one 3-D array, .npy, or a folder of
    /// .npy files; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) gram: Vec<String>,

    /// Labels: .npy, F.npz:name, .csv[.gz] with --label-column, FASTA, or text with one label per line
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<String>,

    /// Column of a table that holds the labels
    #[arg(long, value_name = "NAME")]
    pub(crate) label_column: Option<String>,

    /// Key of the label in FASTA headers [default: label]
    #[arg(long, value_name = "KEY")]
    pub(crate) label_key: Option<String>,

    /// Column of ids by which the rows of several files are joined, in any order
    #[arg(long, value_name = "NAME")]
    pub(crate) id_column: Option<String>,

    /// Cuts a view out of the columns of a table: name=col1,col2 or name=prefix* or name=3..17; may be repeated
    #[arg(long = "view", value_name = "NAME=COLUMNS")]
    pub(crate) views: Vec<String>,
}

/// Where the samples are, and what is done with them before training.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,

    /// Scales features with the statistics of the training data: standard, minmax, unit or none, for all views or
    /// as view=KIND for one; may be repeated
    #[arg(long, value_name = "[VIEW=]KIND")]
    pub(crate) scale: Vec<String>,

    /// What the labels are for: classify, regress or one-class [default: by what the labels look like, and said]
    #[arg(long)]
    pub(crate) task: Option<String>,

    /// What to do with a precomputed or distance kernel that is not positive semidefinite: clip (set its negative
    /// eigenvalues to 0, for new samples too), shift (add to its diagonal) or allow [default: an error]
    #[arg(long, value_name = "WHAT")]
    pub(crate) indefinite: Option<String>,
}

/// Which kernels.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Kernels")]
pub(crate) struct KernelArgs {
    /// A kernel, or several: kind[:key=value,…], e.g. rbf:width=mean*0.5|mean|mean*2 or linear:view=a; may be repeated
    #[arg(long = "kernel", value_name = "SPEC", value_parser = Listed(kinds))]
    pub(crate) kernel: Vec<String>,

    /// A TOML file of kernels with the same fields
    #[arg(long, value_name = "FILE")]
    pub(crate) kernels: Option<PathBuf>,

    /// Group of each precomputed kernel, e.g. 0,0,1 [default: each its own]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) groups: Vec<String>,
}

/// What every command understands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct CommonArgs {
    /// Threads to use [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,

    /// Bound on the memory of the whole process, e.g. 4GiB or 500MB [default: three quarters of what is available]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// No progress and no text; warnings and errors remain
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Writes the result as JSON to a file, or to stdout with -; text then goes to stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl FileArgs {
    /// The views that are cut out of columns.
    pub(crate) fn cuts(&self) -> multikernel::Result<Vec<ViewCut>> {
        self.views.iter().map(|view| view.parse()).collect()
    }

    /// What the library is to load, within `memory` bytes.
    pub(crate) fn load_options(
        &self,
        purpose: Purpose,
        memory: u64,
    ) -> multikernel::Result<LoadOptions> {
        let named = self.features.iter().chain(&self.gram).chain(&self.labels);
        if named.into_iter().any(|file| file == "-") {
            return Err(Error::input(
                "-",
                "data is not read from stdin",
                "save it to a file and name that (only 'online' reads a stream)",
            ));
        }
        Ok(LoadOptions {
            features: self.features.clone(),
            gram: self.gram.clone(),
            labels: self.labels.clone(),
            label_column: self.label_column.clone(),
            label_key: self.label_key.clone(),
            id_column: self.id_column.clone(),
            views: self.cuts()?,
            purpose,
            memory: Some(memory),
            // What would fill the memory is read from the file when it is needed.
            map_above: Some(memory / 4),
        })
    }
}

impl DataArgs {
    /// Refuses words that mean nothing, before any file is read.
    pub(crate) fn check(&self) -> multikernel::Result<()> {
        self.files.cuts()?;
        self.scale_options()?;
        self.indefinite()?;
        self.task().map(|_| ())
    }

    pub(crate) fn scale_options(&self) -> multikernel::Result<Vec<ScaleOption>> {
        self.scale.iter().map(|s| s.parse()).collect()
    }

    pub(crate) fn indefinite(&self) -> multikernel::Result<Indefinite> {
        self.indefinite
            .as_deref()
            .map_or(Ok(Indefinite::Error), str::parse)
    }

    pub(crate) fn task(&self) -> multikernel::Result<Option<Task>> {
        self.task.as_deref().map(str::parse).transpose()
    }
}

impl KernelArgs {
    /// The kernels as they were written.
    pub(crate) fn specs(&self) -> multikernel::Result<Vec<KernelSpec>> {
        let mut specs = Vec::new();
        for spec in &self.kernel {
            specs.extend(KernelSpec::parse(spec)?);
        }
        if let Some(path) = &self.kernels {
            let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
            let read = KernelSpec::parse_toml(&text);
            specs.extend(read.map_err(|e| e.within(&path.display().to_string()))?);
        }
        Ok(specs)
    }
}

/// Words of a table of the library, for help and completions. Whatever is written goes to the library, which knows what may
/// stand behind a word and says what is wrong.
#[derive(Debug, Clone)]
pub(crate) struct Listed(pub(crate) fn() -> Vec<PossibleValue>);

impl TypedValueParser for Listed {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, UsageError> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter()))
    }
}

/// The kinds of kernels, each with its formula and its keys.
fn kinds() -> Vec<PossibleValue> {
    let of = |info: &multikernel::kernel::KindInfo| match info.keys {
        [] => info.formula.to_owned(),
        _ => format!("{}; {}", info.formula, info.usage()),
    };
    KINDS
        .iter()
        .map(|info| PossibleValue::new(info.name).help(of(info)))
        .collect()
}

/// The norms.
pub(crate) fn norms() -> Vec<PossibleValue> {
    NORMS
        .iter()
        .map(|info| PossibleValue::new(info.name).help(format!("{}: {}", info.usage(), info.means)))
        .collect()
}

/// The losses.
pub(crate) fn losses() -> Vec<PossibleValue> {
    LOSSES
        .iter()
        .map(|info| {
            PossibleValue::new(info.name).help(format!("{}: {}", info.usage(), info.formula()))
        })
        .collect()
}

/// The solvers.
pub(crate) fn solvers() -> Vec<PossibleValue> {
    let of = SOLVERS.iter();
    of.map(|info| PossibleValue::new(info.name).help(info.problem))
        .collect()
}

/// The number that was written for an option, or a sentence.
pub(crate) fn parse_number(option: &str, text: &str) -> multikernel::Result<f64> {
    text.trim().parse().map_err(|_| {
        Error::input(
            option,
            format!("'{text}' is not a number"),
            "give a number such as 0.5 or 1e-3",
        )
    })
}

/// A number of bytes as people write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is no size; write a number and a unit, e.g. 4GiB, 500MB or 1.5G");
        let text = text.trim();
        let split = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (value, unit) = text.split_at(split);
        let value: f64 = value.parse().map_err(|_| wrong())?;
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "kb" => 1000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(wrong()),
        };
        Ok(ByteSize((value * factor as f64) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let of = |text: &str| text.parse::<ByteSize>().map(|b| b.0);
        assert_eq!(of("4GiB"), Ok(4 << 30));
        assert_eq!(of("1.5G"), Ok(3 << 29));
        assert_eq!(of("500 MB"), Ok(500_000_000));
        assert_eq!(of("1000"), Ok(1000));
        for wrong in ["", "GiB", "4 apples", "-1G", "1.2.3k"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
