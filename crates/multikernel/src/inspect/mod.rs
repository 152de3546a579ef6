//! What is in data and kernels, before anything is learned: shapes, ranges, class counts, alignments, spectra, and
//! the warnings that a careful statistician would give.

mod align;
mod data;
mod kernels;
mod pairs;
mod quick_check;

pub use align::{ALIGNED_SAMPLES, KernelSample};
use data::inspect_data;
pub use data::{DataReport, RepeatedSamples, TargetReport, ViewContents, ViewReport};
pub use kernels::{KernelReport, KernelSummary, inspect_kernels};
pub(crate) use quick_check::quick_check;

use crate::data::{Pairwise, Targets, View, ViewData, Views};
use crate::error::{Error, Result};
use crate::gram::{Indefinite, KernelSet, Options};
use crate::kernel::{KernelSpec, expand};
use crate::observe::Observer;
use crate::random::Random;
use crate::train::leave_one_out;
use serde::Serialize;

/// Kernels are looked at on at most so many samples: more would change no conclusion and cost n².
const MOST_SAMPLES: usize = 4000;
/// M·n² of the kernels that are held to compare them with each other (half of it is stored, in f32).
const MOST_ENTRIES: u64 = 1 << 28;
/// Fewer samples than this say little; below it, too little memory is an error.
const FEWEST_SAMPLES: usize = 50;
/// Rows of a mapped matrix that are looked at before their memory is given back.
const ROWS_BETWEEN_RELEASES: usize = 16;
/// So many names are listed in a warning; the rest is counted.
const NAMES_IN_A_WARNING: usize = 5;

/// What is in a data set and in kernels of it.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The data.
    pub data: DataReport,
    /// The kernels; none if none were asked for.
    pub kernels: Option<KernelReport>,
    /// What was chosen automatically, in sentences.
    pub notes: Vec<String>,
    /// What deserves a look, in sentences: that of the data, then that of the kernels.
    pub warnings: Vec<String>,
}

/// Looks at data and at the kernels described; for many samples, at the kernels of a seeded sample of them. With `rank_at`, a C,
/// also at what each kernel predicts by itself ([`leave_one_out`]).
pub fn inspect(
    views: &Views,
    targets: &Targets,
    specs: &[KernelSpec],
    options: &Options,
    rank_at: Option<f64>,
    observer: &dyn Observer,
) -> Result<Report> {
    let data = inspect_data(views, targets);
    let mut report = Report {
        notes: Vec::new(),
        warnings: data.warnings.clone(),
        data,
        kernels: None,
    };
    if specs.is_empty() {
        return Ok(report);
    }
    // A matrix that is not fit for training is what one wants to look at.
    let options = &Options {
        indefinite: Indefinite::Allow,
        ..*options
    };
    let n = views.len();
    let specs = expand(specs, views)?;
    let size = sample_size(n, specs.len(), options.memory)?;
    let set;
    let mut kernels;
    if size == n {
        set = KernelSet::new(&specs, views, options, observer)?;
        kernels = inspect_kernels(set.gram(), set.kernels(), targets, observer)?;
        rank(&mut kernels, &set, targets, rank_at, observer)?;
    } else {
        let samples = Random::new(options.seed).sample(n, size);
        report.notes.push(format!(
            "kernels are inspected on a sample of {size} of the {n} samples (seed {})",
            options.seed
        ));
        let views = among(views, &samples)?;
        let targets = targets.select(&samples);
        set = KernelSet::new(&specs, &views, options, observer)?;
        kernels = inspect_kernels(set.gram(), set.kernels(), &targets, observer)?;
        rank(&mut kernels, &set, &targets, rank_at, observer)?;
        for (a, b) in &mut kernels.first_same_samples {
            (*a, *b) = (samples[*a], samples[*b]);
        }
    }
    report.notes.extend_from_slice(set.notes());
    report.warnings.extend_from_slice(set.warnings());
    report.warnings.extend_from_slice(&kernels.warnings);
    let known = report.data.repeated.as_ref().map_or(0, |r| r.count as u64);
    if let Some((a, b)) = kernels.first_same_samples.first()
        && kernels.same_samples > known
    {
        report.warnings.push(format!(
            "{} of samples {} the same to every kernel (samples {} and {}, for one)",
            if kernels.same_samples == 1 {
                "one pair".into()
            } else {
                format!("{} pairs", kernels.same_samples)
            },
            if kernels.same_samples == 1 {
                "looks"
            } else {
                "look"
            },
            a + 1,
            b + 1
        ));
    }
    report.kernels = Some(kernels);
    Ok(report)
}

/// Fills in what each kernel predicts by itself, if that is asked for.
fn rank(
    kernels: &mut KernelReport,
    set: &KernelSet,
    targets: &Targets,
    at: Option<f64>,
    observer: &dyn Observer,
) -> Result<()> {
    let Some(c) = at else { return Ok(()) };
    let errors = leave_one_out(set.gram(), targets, c, observer)?;
    for (kernel, error) in kernels.kernels.iter_mut().zip(errors) {
        kernel.leave_one_out_error = Some(error);
    }
    Ok(())
}

/// How many of n samples `n_kernels` kernels can be looked at on.
fn sample_size(n: usize, n_kernels: usize, memory: u64) -> Result<usize> {
    let kernels = n_kernels.max(1) as u64;
    // Half of every kernel is kept, and while one is looked at the whole of it, and its statistic.
    let bytes = |s: u64| (2 * kernels + 16) * s * s + 8 * kernels * kernels;
    let entries = (MOST_ENTRIES / kernels).isqrt() as usize;
    let mut size = n.min(MOST_SAMPLES).min(entries.max(FEWEST_SAMPLES));
    let half = memory / 2;
    while size > FEWEST_SAMPLES && bytes(size as u64) > half {
        size = (size * 9 / 10).max(FEWEST_SAMPLES);
    }
    let needed = bytes(size as u64);
    if needed > half {
        return Err(Error::Memory {
            what: format!("comparing {n_kernels} kernels on {size} samples"),
            needed: 2 * needed,
            available: memory,
            remedy: "allow more memory, or give fewer kernels".into(),
        });
    }
    Ok(size)
}

/// The views of some samples; given matrices keep their columns of these samples.
fn among(views: &Views, samples: &[usize]) -> Result<Views> {
    let mut out = Views::default();
    for view in views {
        let data = match &view.data {
            ViewData::Dense(x) => ViewData::Dense(x.select(samples)),
            ViewData::Sparse(x) => ViewData::Sparse(x.select(samples)),
            ViewData::Strings(x) => {
                ViewData::Strings(samples.iter().map(|&i| x[i].clone()).collect())
            }
            ViewData::Pairwise(x) => {
                let mut values = Vec::with_capacity(samples.len() * samples.len());
                for some in samples.chunks(ROWS_BETWEEN_RELEASES) {
                    for &i in some {
                        let row = x.row(i);
                        values.extend(samples.iter().map(|&j| row[j]));
                    }
                    x.release();
                }
                ViewData::Pairwise(Pairwise::new(samples.len(), samples.len(), values)?)
            }
        };
        out.push(View {
            name: view.name.clone(),
            columns: view.columns.clone(),
            data,
        })?;
    }
    Ok(out)
}

/// "a, b, c and 7 more", at most [`NAMES_IN_A_WARNING`] names.
fn list(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_IN_A_WARNING)].join(", ");
    match names.len().saturating_sub(NAMES_IN_A_WARNING) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// "kernel 'a' is" or "kernels 'a', 'b' are".
fn kernels_are(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("'{n}'")).collect();
    if names.len() == 1 {
        format!("kernel {} is", quoted[0])
    } else {
        format!("kernels {} are", list(&quoted))
    }
}
