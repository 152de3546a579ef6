//! A set of kernels fitted to training samples: widths chosen, normalisations measured, families formed.

use super::Gram;
use super::build::{Side, Sides, build};
use super::indefinite::{self, Given, Indefinite, Repair, Repaired};
use crate::data::{Pairwise, ViewData, Views};
use crate::error::{Error, Result};
use crate::kernel::statistic::{Operand, Statistic};
use crate::kernel::{KernelSpec, Kind, Normalize, Profile, Width, expand};
use crate::math;
use crate::observe::Observer;
use crate::random::Random;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
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

/// A kernel fitted to training samples: everything that is needed to evaluate it on new ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name, unique in its set.
    pub name: String,
    /// Its group.
    pub group: String,
    /// What it is, with its width as a number.
    pub spec: KernelSpec,
    /// The training statistics of its normalisation.
    pub normalizer: Normalizer,
    /// What was done because its training matrix was indefinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
}

/// The training statistics of a normalisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Normalizer {
    /// Nothing to be done.
    None,
    /// Values are divided by √(k(x,x) k(x',x')).
    Spherical {
        /// 1/√k(x,x) of the training samples; 0 where k(x,x) = 0.
        factors: Vec<f64>,
    },
    /// Values are multiplied by this.
    Factor(f64),
    /// Row means of the training samples and their mean are taken off.
    Center {
        /// Mean of each training sample's row.
        row_means: Vec<f64>,
        /// Mean of all values.
        grand_mean: f64,
    },
}

impl Normalizer {
    /// The same for some of the training samples, with the statistics of all.
    pub(crate) fn select(&self, rows: &[usize]) -> Normalizer {
        let pick = |values: &[f64]| rows.iter().map(|&i| values[i]).collect();
        match self {
            Normalizer::Spherical { factors } => Normalizer::Spherical {
                factors: pick(factors),
            },
            Normalizer::Center {
                row_means,
                grand_mean,
            } => Normalizer::Center {
                row_means: pick(row_means),
                grand_mean: *grand_mean,
            },
            Normalizer::None | Normalizer::Factor(_) => self.clone(),
        }
    }
}

/// Above this many samples, widths are chosen from a sample of pairs.
const ALL_PAIRS: usize = 2000;
/// About so many pairs are then looked at.
const SAMPLED_PAIRS: usize = 2_000_000;
/// From rows of at least so many samples.
const SAMPLED_ROWS: usize = 200;

impl Kernel {
    /// The statistic and profile; none for a product or sum of kernels. A repaired kernel is a given matrix, whatever
    /// it was made from.
    pub(crate) fn parts(&self) -> Option<(Statistic, Profile)> {
        match self.repair {
            Some(_) => Some((Statistic::Given, Profile::Identity)),
            None => self.described(),
        }
    }

    /// The statistic and profile as the user described them.
    fn described(&self) -> Option<(Statistic, Profile)> {
        let exp = |width: Width| match width {
            Width::Value(width) => Profile::Exp { width },
            Width::Gamma(gamma) => Profile::Exp { width: 1.0 / gamma },
            // Not reached once the set is fitted: widths are numbers then.
            Width::Mean(factor) | Width::Median(factor) => Profile::Exp { width: factor },
        };
        Some(match self.spec.kind {
            Kind::Linear if self.spec.normalize == Normalize::Spherical => {
                (Statistic::UnitDot, Profile::Identity)
            }
            Kind::Linear => (Statistic::Dot, Profile::Identity),
            Kind::Poly {
                degree,
                coef0,
                gamma,
            } => (
                Statistic::Dot,
                Profile::Poly {
                    gamma,
                    coef0,
                    degree,
                },
            ),
            Kind::Rbf(width) => (Statistic::SquaredDistance, exp(width)),
            Kind::Laplacian(width) => (Statistic::L1, exp(width)),
            Kind::Chi2(width) => (Statistic::Chi2, exp(width)),
            Kind::Intersection => (Statistic::Intersection, Profile::Identity),
            Kind::Distance(width) => (Statistic::Given, exp(width)),
            Kind::Spectrum { k } => (Statistic::Spectrum { k }, Profile::Identity),
            Kind::WeightedDegree { degree, shift } => (
                Statistic::WeightedDegree { degree, shift },
                Profile::Identity,
            ),
            Kind::Precomputed => (Statistic::Given, Profile::Identity),
            Kind::Product { .. } | Kind::Sum { .. } => return None,
        })
    }

    /// Whether spherical normalisation must scale rows and columns: not where k(x,x) = 1 already.
    pub(crate) fn needs_factors(&self) -> bool {
        self.spec.normalize == Normalize::Spherical
            && !matches!(
                self.parts(),
                Some((Statistic::UnitDot, _) | (_, Profile::Exp { .. }))
            )
    }

    /// The view it looks at.
    pub fn view(&self) -> &str {
        self.spec.view.as_deref().unwrap_or("")
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

impl Kernel {
    fn unfitted(spec: KernelSpec) -> Kernel {
        Kernel {
            name: spec.name.clone().unwrap_or_default(),
            group: spec.group.clone().unwrap_or_default(),
            normalizer: Normalizer::None,
            repair: None,
            spec,
        }
    }
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

/// Turns `mean` and `median` into numbers.
fn choose_widths(
    kernels: &mut [Kernel],
    sides: &[Side],
    seed: u64,
    notes: &mut Vec<String>,
) -> Result<()> {
    let mut known: Vec<((usize, Typical), f64)> = Vec::new();
    for kernel in kernels {
        let Some((statistic, _)) = kernel.parts() else {
            continue;
        };
        let view = kernel.view().to_owned();
        let place = sides.iter().position(|s| s.serves(kernel, statistic));
        let (Kind::Rbf(width) | Kind::Laplacian(width) | Kind::Chi2(width) | Kind::Distance(width)) =
            &mut kernel.spec.kind
        else {
            continue;
        };
        let (factor, which) = match *width {
            Width::Mean(factor) => (factor, Typical::Mean),
            Width::Median(factor) => (factor, Typical::Median),
            _ => continue,
        };
        let Some(s) = place else {
            continue;
        };
        let typical = match known.iter().find(|(key, _)| *key == (s, which)) {
            Some(&(_, typical)) => typical,
            None => {
                let (typical, pairs) = typical(&sides[s].operand, which, seed);
                let first = known.iter().all(|((side, _), _)| *side != s);
                if let Some(pairs) = pairs.filter(|_| first) {
                    notes.push(format!(
                        "view '{view}': widths are chosen from a sample of {pairs} pairs of samples (seed {seed})"
                    ));
                }
                known.push(((s, which), typical));
                typical
            }
        };
        let value = factor * typical;
        if !(value > 0.0 && value.is_finite()) {
            return Err(Error::input(
                format!("kernel '{}'", kernel.name),
                format!(
                    "the {} distance between samples in view '{view}' is {typical}",
                    match which {
                        Typical::Mean => "mean",
                        Typical::Median => "median",
                    }
                ),
                "give samples that differ there, or the width as a number, or leave this kernel out",
            ));
        }
        *width = Width::Value(value);
    }
    Ok(())
}

/// What widths are multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typical {
    Mean,
    Median,
}

/// Mean or median of the statistic over pairs of different samples; how many pairs, if not all.
fn typical(x: &Operand, which: Typical, seed: u64) -> (f64, Option<usize>) {
    let n = x.len();
    let everyone = n <= ALL_PAIRS;
    let rows: Vec<usize> = if everyone {
        (0..n).collect()
    } else {
        Random::new(seed).sample(n, (SAMPLED_PAIRS / n).max(SAMPLED_ROWS))
    };
    // The statistic is symmetric: of all pairs, half are enough.
    let blocks = rows.par_chunks(64).map(|rows| {
        let width = match rows.last() {
            Some(last) if everyone => last + 1,
            _ => n,
        };
        let mut block = vec![0.0; rows.len() * width];
        x.block(rows, x, 0..width, &mut block);
        (rows, block, width)
    });
    let pairs = |(rows, block, width): &(&[usize], Vec<f32>, usize),
                 each: &mut dyn FnMut(&[f32])| {
        for (row, &i) in block.chunks(*width).zip(*rows) {
            each(&row[..i]);
            if !everyone {
                each(&row[i + 1..]);
            }
        }
    };
    let count = match everyone {
        true => n * n.saturating_sub(1) / 2,
        false => rows.len() * (n - 1),
    };
    if count == 0 {
        return (0.0, None);
    }
    let typical = match which {
        Typical::Mean => {
            let sums = blocks.map(|block| {
                let mut sum = 0.0;
                pairs(&block, &mut |values| sum += math::sum(values));
                sum
            });
            // In the order of the blocks, so that bits do not depend on the number of threads.
            sums.collect::<Vec<f64>>().iter().sum::<f64>() / count as f64
        }
        Typical::Median => {
            let mut values = Vec::with_capacity(count);
            for block in blocks.collect::<Vec<_>>() {
                pairs(&block, &mut |some| values.extend_from_slice(some));
            }
            let (below, &mut upper, _) = values.select_nth_unstable_by(count / 2, f32::total_cmp);
            let lower = below.iter().copied().max_by(f32::total_cmp);
            match lower.filter(|_| count.is_multiple_of(2)) {
                Some(lower) => 0.5 * (f64::from(lower) + f64::from(upper)),
                None => f64::from(upper),
            }
        }
    };
    (typical, (!everyone).then_some(count))
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
