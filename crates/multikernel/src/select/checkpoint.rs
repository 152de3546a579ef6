//! The trainings of a search, kept in a file as they are done: JSON, one line each, behind a line that says what search it is.

use super::grid::Fit;
use super::nested::Recipe;
use crate::data::{Targets, ViewData};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const FORMAT: &str = "multikernel tune";
const VERSION: u64 = 1;
/// A longer line is not ours.
const LONGEST_LINE: u64 = 1 << 20;
/// Rows of every view that are looked at to know the data again.
const ROWS: usize = 4096;

/// What search a checkpoint belongs to. Norms and C are not part of it: a grid may grow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    samples: usize,
    folds: usize,
    seed: u64,
    metric: String,
    /// Numbers that change when the data does.
    data: String,
    targets: String,
    fold_groups: String,
    /// The kernels of every bank.
    kernels: Vec<(String, String)>,
    /// How points are trained.
    training: String,
}

#[derive(Serialize, Deserialize)]
struct Title {
    format: String,
    version: u64,
    search: Identity,
}

impl Identity {
    /// What search this is.
    pub fn of(recipe: &Recipe) -> Identity {
        let mkl = &recipe.mkl;
        let mut data = Hash::new();
        for view in &recipe.views {
            data.bytes(view.name.as_bytes());
            let n = view.data.len();
            for i in (0..n).step_by(n.div_ceil(ROWS).max(1)) {
                match &view.data {
                    ViewData::Dense(x) => data.numbers(x.row(i)),
                    ViewData::Pairwise(x) => data.numbers(x.row(i)),
                    ViewData::Sparse(x) => {
                        let (columns, values) = x.row(i);
                        columns.iter().for_each(|c| data.bytes(&c.to_le_bytes()));
                        data.numbers(values);
                    }
                    ViewData::Strings(x) => data.bytes(&x[i]),
                }
            }
        }
        let mut targets = Hash::new();
        match &recipe.targets {
            Targets::None => {}
            Targets::Real(values) => values.iter().for_each(|v| targets.bytes(&v.to_le_bytes())),
            Targets::Classes { names, index } => {
                names.iter().for_each(|name| targets.bytes(name.as_bytes()));
                index.iter().for_each(|c| targets.bytes(&c.to_le_bytes()));
            }
        }
        let mut groups = Hash::new();
        for group in recipe.groups.iter().flatten() {
            groups.bytes(&group.to_le_bytes());
        }
        let mut weights = Hash::new();
        for weight in mkl.sample_weight.iter().flatten() {
            weights.bytes(&weight.to_le_bytes());
        }
        let kernels = recipe.banks.iter().map(|(name, specs)| {
            let mut hash = Hash::new();
            hash.bytes(format!("{specs:?}").as_bytes());
            (name.clone(), hash.text())
        });
        Identity {
            samples: recipe.views.len(),
            folds: recipe.folds,
            seed: recipe.seed,
            metric: recipe.grid.metric.to_string(),
            data: data.text(),
            targets: targets.text(),
            fold_groups: groups.text(),
            kernels: kernels.collect(),
            training: format!(
                "solver {}, multiclass {:?}, loss {:?}, bias {:?}, class weights {:?}, sample weights {}, tikhonov {:?}, tolerance {}, scale {:?}, epochs {}",
                mkl.solver,
                mkl.multiclass,
                mkl.loss,
                mkl.bias,
                mkl.class_weight,
                weights.text(),
                mkl.tikhonov,
                mkl.tolerance,
                recipe.scale,
                mkl.stochastic.epochs
            ),
        }
    }

    /// What of another search is not as in this one; none if it is the same.
    fn difference(&self, other: &Identity) -> Option<&'static str> {
        let differences = [
            ("the number of samples", self.samples != other.samples),
            ("the number of folds", self.folds != other.folds),
            ("the seed", self.seed != other.seed),
            ("the metric", self.metric != other.metric),
            ("the data", self.data != other.data),
            ("the labels", self.targets != other.targets),
            (
                "the groups of the folds",
                self.fold_groups != other.fold_groups,
            ),
            ("the kernels", self.kernels != other.kernels),
            ("the way of training", self.training != other.training),
        ];
        let found = differences.into_iter().find(|(_, differs)| *differs);
        found.map(|(name, _)| name)
    }
}

/// FNV-1a: small, the same everywhere, and nobody is to be kept from forging it.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Hash(0xCBF2_9CE4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&[0xFF]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    fn numbers(&mut self, values: &[f32]) {
        values.iter().for_each(|v| self.bytes(&v.to_le_bytes()));
    }

    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// A file that trainings are added to.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    file: Mutex<(File, Option<io::Error>)>,
}

impl Checkpoint {
    /// Begins a new file.
    ///
    /// # Errors
    /// If there is one of that name: nobody's work is thrown away.
    pub fn create(path: &Path, identity: &Identity) -> Result<Checkpoint> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).open(path);
        let file = file.map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => Error::input(
                path.display().to_string(),
                "the checkpoint is there already",
                "give `resume` to go on from it, or another name",
            ),
            _ => Error::io(path, e),
        })?;
        let checkpoint = Checkpoint::of(path, file);
        let title = Title {
            format: FORMAT.into(),
            version: VERSION,
            search: identity.clone(),
        };
        checkpoint.write(&title);
        checkpoint.finish()?;
        Ok(checkpoint)
    }

    /// Goes on with a file, and gives the trainings that are in it.
    pub fn resume(path: &Path, identity: &Identity) -> Result<(Checkpoint, Vec<Fit>)> {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        let place = path.display().to_string();
        let (fits, length) = read(BufReader::new(file), identity).map_err(|e| match e {
            Error::Io { source, .. } => Error::io(path, source),
            other => other.within(&place),
        })?;
        let file = OpenOptions::new().append(true).open(path);
        let file = file.map_err(|e| Error::io(path, e))?;
        // A last line that was cut off is written again.
        file.set_len(length).map_err(|e| Error::io(path, e))?;
        Ok((Checkpoint::of(path, file), fits))
    }

    fn of(path: &Path, file: File) -> Checkpoint {
        Checkpoint {
            path: path.to_owned(),
            file: Mutex::new((file, None)),
        }
    }

    /// Adds a training. What the system says against it is told by [`Checkpoint::finish`].
    pub fn add(&self, fit: &Fit) {
        self.write(fit);
    }

    fn write(&self, line: &impl Serialize) {
        let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, failed) = &mut *guard;
        let written = serde_json::to_string(line)
            .map_err(io::Error::other)
            .and_then(|text| file.write_all(format!("{text}\n").as_bytes()));
        if let (Err(error), None) = (written, &failed) {
            *failed = Some(error);
        }
    }

    /// Whether everything was written.
    pub fn finish(&self) -> Result<()> {
        let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        match guard.1.take() {
            Some(error) => Err(Error::io(&self.path, error)),
            None => Ok(()),
        }
    }
}

/// The trainings of a checkpoint, and the length of its whole lines.
fn read(mut input: impl BufRead, identity: &Identity) -> Result<(Vec<Fit>, u64)> {
    let foreign = || {
        Error::input(
            "",
            "this is not a checkpoint of tune",
            "give a file that tune wrote, or another name without `resume`",
        )
    };
    let mut fits: Vec<Fit> = Vec::new();
    let (mut length, mut number) = (0, 0);
    loop {
        let mut line = String::new();
        let mut limited = (&mut input).take(LONGEST_LINE);
        let read = limited.read_line(&mut line).map_err(|e| match e.kind() {
            io::ErrorKind::InvalidData => foreign(),
            _ => Error::io("", e),
        })?;
        number += 1;
        if !line.ends_with('\n') {
            // A training whose line was cut off is done again; without a whole first line it is none of ours.
            return match number > 1 && (read as u64) < LONGEST_LINE {
                true => Ok((fits, length)),
                false => Err(foreign()),
            };
        }
        length += read as u64;
        if number == 1 {
            let title: Title = serde_json::from_str(&line).map_err(|_| foreign())?;
            if title.format != FORMAT {
                return Err(foreign());
            }
            if title.version != VERSION {
                return Err(Error::input(
                    "",
                    format!(
                        "the checkpoint has version {}, this program reads {VERSION}",
                        title.version
                    ),
                    "give another name and search anew",
                ));
            }
            if let Some(what) = identity.difference(&title.search) {
                return Err(Error::input(
                    "",
                    format!("the checkpoint belongs to another search: {what} is not the same"),
                    "go on as it was begun, or give another name",
                ));
            }
            continue;
        }
        let fit: Option<Fit> = serde_json::from_str(&line).ok();
        let good =
            fit.filter(|fit| fit.fold < identity.folds && fit.value.is_finite() && fit.cost > 0.0);
        match good {
            Some(fit) => fits.push(fit),
            None => {
                return Err(Error::input(
                    format!("line {number}"),
                    "this is no training of the search",
                    "remove the line, or give another name and search anew",
                ));
            }
        }
    }
}
