//! `multikernel gram`: computes kernels once and saves them, one n×n array each.

use crate::args::{CommonArgs, DataArgs, KernelArgs};
use crate::output::table_left_from;
use crate::paths::Paths;
use crate::session::{Cost, Session};
use anyhow::Result;
use clap::Args;
use multikernel::Error;
use multikernel::data::{ViewData, Views};
use multikernel::gram::{KernelSet, Options};
use multikernel::kernel::choose;
use multikernel::observe::{self, Observer};
use multikernel_io::{ArraySink, ArrayWriter};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Bytes of the rows that are computed and written at a time, at most.
const BLOCK_BYTES: u64 = 16 << 20;
/// Kernels that are listed as text.
const LISTED: usize = 20;

/// Compute kernels once and save them, one n×n array per kernel
///
/// NumPy opens the result, and --gram reads it. Rows are computed and written in blocks, so that the whole never
/// needs to fit into memory; the file appears under its name when it is complete.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel gram --features x.npy --kernel 'rbf:width=mean*0.5|mean|mean*2' --out gram.npz
  multikernel gram --features table.csv --view 'shape=len,width' --view 'colour=c_*' --scale standard \\
      --kernel rbf --kernel linear:view=shape,normalize=spherical --out gram.npz
  multikernel gram --features genes.fasta --kernel 'spectrum:k=2|3|4,normalize=spherical' --memory 2GiB --out folder/")]
pub(crate) struct Arguments {
    /// Where the kernels go: a .npz archive, a folder of .npy files, or one .npy array (kernels × n × n)
    #[arg(long, value_name = "PATH")]
    out: PathBuf,

    #[command(flatten)]
    data: DataArgs,

    #[command(flatten)]
    kernels: KernelArgs,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Serialize)]
struct Outcome {
    out: PathBuf,
    n_samples: usize,
    kernels: Vec<Saved>,
    #[serde(flatten)]
    cost: Cost,
    seed: u64,
    notes: Vec<String>,
    warnings: Vec<String>,
}

/// A kernel and where it stands.
#[derive(Debug, Serialize)]
struct Saved {
    name: String,
    group: String,
    /// What it is, with its width as a number.
    spec: String,
    /// Its array's name; none in a single .npy array, where the order tells.
    array: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let session = arguments.common.start()?;
    session.run(|| compute(&session, arguments))
}

fn compute(session: &Session, arguments: &Arguments) -> Result<()> {
    let form = Form::of(&arguments.out)?;
    Paths::of(&arguments.common)
        .reads_data(&arguments.data.files)
        .reads_kernels(&arguments.kernels)
        .writes_arrays("out", &arguments.out)
        .check()?;
    arguments.data.check()?;
    let specs = arguments.kernels.specs()?;
    // Made first: a folder that does not exist is better said before the work than after it.
    let mut writer = ArrayWriter::create(&arguments.out)?;
    let loaded = session.load(&arguments.data)?;
    let (specs, chosen) = choose(&specs, &arguments.kernels.groups, &loaded.views)?;
    let load = session.elapsed();
    let mut notes = loaded.notes;
    notes.extend(chosen);

    let memory = session.memory_left();
    let block_bytes = BLOCK_BYTES.min(memory / 8);
    let options = Options {
        memory: memory - 2 * block_bytes,
        seed: session.seed,
        indefinite: arguments.data.indefinite()?,
    };
    let set = KernelSet::new(&specs, &loaded.views, &options, &session.watcher)?;
    notes.extend_from_slice(set.notes());
    let n = loaded.views.len();
    let arrays = form.names(&set);
    let total = n * arrays.len();
    let mut write = Rows {
        set: &set,
        views: &loaded.views,
        observer: &session.watcher,
        block_bytes: block_bytes as usize,
        done: 0,
        total,
    };
    match form {
        Form::Stack => {
            let shape = [arrays.len(), n, n];
            let shape = if arrays.len() == 1 {
                &shape[1..]
            } else {
                &shape[..]
            };
            writer.array("kernels", shape, |sink| {
                (0..arrays.len()).try_for_each(|m| write.kernel(m, sink))
            })?;
        }
        Form::Archive | Form::Folder => {
            for (m, name) in arrays.iter().enumerate() {
                writer.array(name, &[n, n], |sink| write.kernel(m, sink))?;
            }
        }
    }
    writer.finish()?;

    let kernels = set
        .kernels()
        .iter()
        .zip(arrays)
        .map(|(kernel, array)| Saved {
            name: kernel.name.clone(),
            group: kernel.group.clone(),
            spec: kernel.spec.to_string(),
            array: (form != Form::Stack).then_some(array),
        });
    let outcome = Outcome {
        out: arguments.out.clone(),
        n_samples: n,
        kernels: kernels.collect(),
        cost: session.cost(load, session.elapsed() - load),
        seed: session.seed,
        notes,
        warnings: set.warnings().to_vec(),
    };
    session.output.notes(&outcome.notes)?;
    session.output.warnings(&outcome.warnings)?;
    session.output.text(&outcome.text())?;
    session.output.json(&outcome)
}

/// Writes kernels, a block of rows at a time.
struct Rows<'a> {
    set: &'a KernelSet,
    views: &'a Views,
    observer: &'a dyn Observer,
    block_bytes: usize,
    done: usize,
    total: usize,
}

impl Rows<'_> {
    fn kernel(&mut self, m: usize, sink: &mut ArraySink<'_>) -> multikernel::Result<()> {
        let kernel = self.set.gram().kernel(m);
        let n = self.set.gram().n_cols();
        let block = (self.block_bytes / (4 * n.max(1))).clamp(1, n.max(1));
        let mut values = Vec::new();
        for start in (0..n).step_by(block) {
            let rows: Vec<usize> = (start..(start + block).min(n)).collect();
            values.resize(rows.len() * n, 0.0);
            kernel.rows(&rows, &mut values);
            sink.write(&values)?;
            // What was read of mapped files counts as memory until it is let go.
            for view in self.views {
                if let ViewData::Pairwise(matrix) = &view.data {
                    matrix.release();
                }
            }
            self.done += rows.len();
            observe::work(self.observer, "writing kernels", self.done, self.total)?;
        }
        Ok(())
    }
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Archive,
    Folder,
    /// One array of all kernels.
    Stack,
}

impl Form {
    fn of(out: &Path) -> multikernel::Result<Form> {
        let folder = out.to_string_lossy().ends_with(['/', '\\']);
        let extension = out
            .extension()
            .map(|e| e.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            _ if folder => Ok(Form::Folder),
            None => Ok(Form::Folder),
            Some("npz") => Ok(Form::Archive),
            Some("npy") => Ok(Form::Stack),
            Some(other) => Err(Error::input(
                out.display().to_string(),
                format!("kernels are not written to '.{other}' files"),
                "end the name in .npz or .npy, or in / for a folder of .npy files",
            )),
        }
    }

    /// The name of each kernel's array. Kernel names hold signs that file names may not.
    fn names(self, set: &KernelSet) -> Vec<String> {
        let names = set.kernels().iter().map(|k| k.name.as_str());
        match self {
            Form::Archive | Form::Stack => names.map(str::to_owned).collect(),
            Form::Folder => file_names(names),
        }
    }
}

/// File names that say what the kernel names say, all different.
fn file_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for name in names {
        let allowed = |c: char| c.is_alphanumeric() || "-_.+=()@".contains(c);
        let plain: String = name
            .chars()
            .map(|c| if allowed(c) { c } else { '_' })
            .collect();
        let plain = match plain.strip_prefix('.') {
            Some(rest) => format!("_{rest}"),
            None => plain,
        };
        let mut candidate = plain.clone();
        let mut number = 1;
        // Some systems do not tell upper from lower case.
        while out
            .iter()
            .any(|o| o.to_lowercase() == candidate.to_lowercase())
        {
            number += 1;
            candidate = format!("{plain}_{number}");
        }
        out.push(candidate);
    }
    out
}

impl Outcome {
    fn text(&self) -> String {
        let mut rows: Vec<Vec<String>> = self
            .kernels
            .iter()
            .take(LISTED)
            .map(|k| {
                let array = k.array.clone().unwrap_or_else(|| k.name.clone());
                vec![array, k.spec.clone()]
            })
            .collect();
        if let Some(more) = self.kernels.len().checked_sub(LISTED + 1) {
            rows.push(vec![format!("… and {} more", more + 1)]);
        }
        let one = self.kernels.len() == 1;
        format!(
            "{} {} of {} samples in {} ({:.2} s)\n{}",
            self.kernels.len(),
            if one { "kernel" } else { "kernels" },
            self.n_samples,
            self.out.display(),
            self.cost.seconds.total,
            table_left_from(1, &["array", "kernel"], rows)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain_and_different() {
        let names = ["x/rbf(mean*2)", "x|rbf(mean*2)", ".hidden", "a", "A"];
        assert_eq!(
            file_names(names.into_iter()),
            ["x_rbf(mean_2)", "x_rbf(mean_2)_2", "_hidden", "a", "A_2"]
        );
    }

    #[test]
    fn the_name_says_the_form() {
        let of = |name: &str| Form::of(Path::new(name)).ok();
        assert_eq!(of("a.npz"), Some(Form::Archive));
        assert_eq!(of("a.NPY"), Some(Form::Stack));
        assert_eq!(of("folder"), Some(Form::Folder));
        assert_eq!(of("v1.2/"), Some(Form::Folder));
        assert_eq!(of("a.txt"), None);
    }
}
