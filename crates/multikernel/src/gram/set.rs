//! A set of kernels fitted to training samples: widths chosen, normalisations measured, families formed.

use super::Gram;
use super::build::{Side, Sides, build};
use super::indefinite::{self, Given, Indefinite, Repair, Repaired};
use super::kernel::Kernel;
use super::widths::choose_widths;
use crate::data::{Pairwise, ViewData, Views};
use crate::error::{Error, Result};
use crate::kernel::statistic::{Operand, Statistic};
use crate::kernel::{KernelSpec, Normalize, Profile, expand};
use crate::observe::Observer;
use std::sync::Arc;

/// How a set is built.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Bytes the engine may hold at any time, beside the views themselves: a hard bound.
    pub memory: u64,
    /// Seed of the samples of pairs for width heuristics.
    pub seed: u64,
    /// What to do with given kernel matrices that are not positive semidefinite.
    pub indefinite: Indefinite,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory: u64::MAX,
            seed: 0,
            indefinite: Indefinite::Error,
        }
    }
}

/// Kernels fitted to training samples, and the engine that answers for them.
#[derive(Debug)]
pub struct KernelSet {
    kernels: Vec<Kernel>,
    columns: Arc<Vec<Side>>,
    views: Views,
    gram: Gram,
    notes: Vec<String>,
    warnings: Vec<String>,
}

impl KernelSet {
    /// Fits kernels to the samples of `views`.
    pub fn new(
        specs: &[KernelSpec],
        views: &Views,
        options: &Options,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let specs = expand(specs, views)?;
        let mut kernels: Vec<Kernel> = specs.into_iter().map(Kernel::unfitted).collect();
        let mut notes = Vec::new();
        let mut columns = prepare(&kernels, views, None)?;
        choose_widths(&mut kernels, &columns, options.seed, &mut notes)?;
        let repaired = repair(&mut kernels, views, options, observer, &mut notes)?;
        if !repaired.sides.is_empty() {
            columns.extend(repaired.sides);
            columns = in_order(&kernels, columns);
        }
        let memory = options.memory.saturating_sub(repaired.bytes);
        let columns = Arc::new(columns);
        let sides = Sides {
            rows: &columns,
            cols: &columns,
            symmetric: true,
        };
        let (gram, mut warnings) = build(&mut kernels, sides, memory, true, observer)?;
        tell_of_blank_samples(&gram, &kernels, &mut notes, &mut warnings);
        Ok(KernelSet {
            kernels,
            columns,
            views: views.clone(),
            gram,
            notes,
            warnings,
        })
    }

    /// The kernels, in order.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The training Gram.
    pub fn gram(&self) -> &Gram {
        &self.gram
    }

    /// The kernels between new samples (rows) and the training samples (columns), with the training statistics.
    /// Rows are computed when asked for.
    pub fn cross(&self, views: &Views) -> Result<Gram> {
        cross(&self.kernels, &self.columns, views, 0)
    }

    /// Some of the training samples as a set of their own, with the statistics of all. Nothing is computed again: what the Gram holds
    /// is copied where `copies` bytes are enough, which makes every later question faster, and shared otherwise; what the copy leaves of
    /// `memory` bytes is for a solver. Given matrices are left out of its views: its models do not predict from views.
    pub(crate) fn part(&self, rows: &[usize], copies: u64, memory: u64) -> Result<KernelSet> {
        let kernels = self.kernels.iter().map(|kernel| Kernel {
            normalizer: kernel.normalizer.select(rows),
            repair: None,
            ..kernel.clone()
        });
        let own = |view: &crate::data::View| !matches!(view.data, ViewData::Pairwise(_));
        let all = &self.gram;
        let gram = match rows.len() == all.n_rows() && rows.is_sorted() {
            true => all.clone(),
            false => all.copied_subset(rows, copies.min(all.spare_memory())),
        };
        let copied = all.spare_memory() - gram.spare_memory();
        Ok(KernelSet {
            kernels: kernels.collect(),
            columns: self.columns.clone(),
            views: self.views.only(own).select(rows)?,
            gram: gram.with_spare_memory(memory.saturating_sub(copied)),
            notes: Vec::new(),
            warnings: Vec::new(),
        })
    }

    /// The training samples.
    pub fn views(&self) -> &Views {
        &self.views
    }

    /// What was chosen automatically, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What the user should look at, in sentences.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Fitted kernels and some training samples as columns: what is left of a [`KernelSet`] for prediction.
#[derive(Debug)]
pub struct Reference {
    kernels: Vec<Kernel>,
    columns: Vec<Side>,
}

impl Reference {
    /// Kernels whose statistics are those of the training samples in `views`, of which there are `samples`.
    /// Given matrices need no view: their values come with the new samples.
    pub fn new(kernels: Vec<Kernel>, views: &Views, samples: usize) -> Result<Self> {
        let mut columns = Vec::new();
        for kernel in &kernels {
            let Some((statistic, _)) = kernel.parts() else {
                continue;
            };
            if columns.iter().any(|s: &Side| s.serves(kernel, statistic)) {
                continue;
            }
            columns.push(match statistic {
                Statistic::Given => Side::of(kernel, statistic, Operand::given_columns(samples)?),
                _ => side(kernel, statistic, views, None)?,
            });
        }
        Ok(Reference { kernels, columns })
    }

    /// The kernels, in order.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The kernels between new samples (rows) and the samples kept (columns). Statistics are stored within `memory`
    /// bytes, which pays if the Gram is asked more than once; the others are computed when asked for.
    pub fn cross(&self, views: &Views, memory: u64) -> Result<Gram> {
        cross(&self.kernels, &self.columns, views, memory)
    }

    /// Number of statistics that are not given: what could be stored.
    pub fn n_statistics(&self) -> usize {
        self.columns
            .iter()
            .filter(|side| side.statistic != Statistic::Given)
            .count()
    }
}

fn cross(kernels: &[Kernel], columns: &[Side], views: &Views, memory: u64) -> Result<Gram> {
    let rows = prepare(kernels, views, Some(columns))?;
    let sides = Sides {
        rows: &rows,
        cols: columns,
        symmetric: false,
    };
    let (gram, _) = build(&mut kernels.to_vec(), sides, memory, false, &())?;
    Ok(gram)
}

/// What kernels that were repaired look at, and the bytes it takes.
#[derive(Default)]
struct Repairs {
    sides: Vec<Side>,
    bytes: u64,
}

/// Checks the kernels of given matrices and, where asked for, makes them positive semidefinite.
fn repair(
    kernels: &mut [Kernel],
    views: &Views,
    options: &Options,
    observer: &dyn Observer,
    notes: &mut Vec<String>,
) -> Result<Repairs> {
    let mut repairs = Repairs::default();
    // Kernels that differ in their normalisation only share the work.
    let mut known: Vec<(String, Profile, Option<Repaired>)> = Vec::new();
    for kernel in kernels {
        let (Some((Statistic::Given, profile)), view) = (kernel.described(), kernel.view()) else {
            continue;
        };
        let Some(ViewData::Pairwise(matrix)) = views.get(view).map(|v| &v.data) else {
            continue;
        };
        let found = match known.iter().position(|k| k.0 == view && k.1 == profile) {
            Some(found) => found,
            None => {
                let name = match profile {
                    Profile::Identity => format!("kernel matrix '{view}'"),
                    _ => format!("kernel '{}'", kernel.name),
                };
                let memory = options.memory.saturating_sub(repairs.bytes);
                let given = Given { matrix, profile };
                let repaired =
                    indefinite::check(&given, &name, options.indefinite, memory, observer)?;
                if let Some(repaired) = &repaired {
                    repairs.bytes += repaired.bytes();
                    notes.push(repaired.note.clone());
                }
                known.push((view.to_owned(), profile, repaired));
                known.len() - 1
            }
        };
        if let Some(repaired) = &known[found].2 {
            kernel.repair = Some(repaired.repair.clone());
            let data = ViewData::Pairwise(repaired.matrix.clone());
            let operand = Statistic::Given.prepare(&data, None)?;
            repairs
                .sides
                .push(Side::of(kernel, Statistic::Given, operand));
        }
    }
    Ok(repairs)
}

/// Of these sides, those that the kernels look at, in the order in which [`prepare`] makes them: the sides of rows and
/// columns are matched by their places.
fn in_order(kernels: &[Kernel], mut sides: Vec<Side>) -> Vec<Side> {
    let mut ordered: Vec<Side> = Vec::new();
    for kernel in kernels {
        if let Some((statistic, _)) = kernel.parts()
            && let Some(found) = sides.iter().position(|s| s.serves(kernel, statistic))
        {
            ordered.push(sides.remove(found));
        }
    }
    ordered
}

/// Makes every view ready for every statistic that looks at it.
fn prepare(kernels: &[Kernel], views: &Views, reference: Option<&[Side]>) -> Result<Vec<Side>> {
    let mut sides: Vec<Side> = Vec::new();
    for kernel in kernels {
        let Some((statistic, _)) = kernel.parts() else {
            continue;
        };
        if sides.iter().any(|s| s.serves(kernel, statistic)) {
            continue;
        }
        sides.push(side(kernel, statistic, views, reference)?);
    }
    Ok(sides)
}

/// Makes a kernel's view ready for its statistic.
fn side(
    kernel: &Kernel,
    statistic: Statistic,
    views: &Views,
    reference: Option<&[Side]>,
) -> Result<Side> {
    let name = kernel.view();
    let view = views.get(name).ok_or_else(|| {
        let there: Vec<&str> = views.iter().map(|v| v.name.as_str()).collect();
        Error::input(
            format!("kernel '{}'", kernel.name),
            format!("there is no view '{name}'"),
            format!("the views are: {}", there.join(", ")),
        )
    })?;
    let training = reference.and_then(|sides| sides.iter().find(|s| s.serves(kernel, statistic)));
    let training = training.map(|s| &*s.operand);
    let within = |error: Error| error.within(&format!("view '{name}'"));
    let operand = statistic.prepare(&view.data, training).map_err(within)?;
    let operand = match (&kernel.repair, &view.data) {
        (Some(repair), ViewData::Pairwise(matrix)) => {
            let data = ViewData::Pairwise(as_repaired(kernel, repair, matrix)?);
            statistic.prepare(&data, training).map_err(within)?
        }
        _ => operand,
    };
    Ok(Side::of(kernel, statistic, operand))
}

/// The values of a repaired kernel between new samples and the training samples.
fn as_repaired(kernel: &Kernel, repair: &Repair, matrix: &Pairwise) -> Result<Pairwise> {
    let profile = match kernel.described() {
        Some((Statistic::Given, profile)) => profile,
        _ => Profile::Identity,
    };
    let values = Given { matrix, profile }.values();
    let values = match repair {
        Repair::Clip(projection) => projection.apply(&values),
        Repair::Shift => values,
    };
    Pairwise::new(matrix.rows(), matrix.cols(), values)
}

/// Samples with k(x, x) = 0 have no direction that spherical normalisation could keep. A few are usual, such as empty corners of
/// images; many are not.
fn tell_of_blank_samples(
    gram: &Gram,
    kernels: &[Kernel],
    notes: &mut Vec<String>,
    warnings: &mut Vec<String>,
) {
    let blank = |m: usize| gram.self_values(m).iter().filter(|&&k| k <= 0.0).count();
    let found: Vec<(&str, usize)> = kernels
        .iter()
        .enumerate()
        .filter(|(_, kernel)| kernel.spec.normalize == Normalize::Spherical)
        .map(|(m, kernel)| (kernel.name.as_str(), blank(m)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let Some((name, most)) = found.iter().max_by_key(|(_, count)| *count) else {
        return;
    };
    let others = match found.len() - 1 {
        0 => "",
        _ => ", and so it is with other kernels",
    };
    let sentence = format!(
        "kernel '{name}': {most} of {} samples have k(x, x) = 0; spherical normalisation leaves their rows zero{others}",
        gram.n_rows()
    );
    match most * 100 < gram.n_rows() {
        true => notes.push(sentence),
        false => warnings.push(sentence),
    }
}
