//! What is in views and targets.

use super::list;
use crate::data::{Csr, Dense, Targets, View, ViewData, Views};
use serde::Serialize;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A class of fewer samples than this cannot be split into the usual five folds.
const TINY_CLASS: usize = 5;
/// The largest class has this many times the samples of the smallest: worth class weights.
const UNBALANCED: usize = 10;
/// Columns whose standard deviations differ by this factor: the largest decides every distance.
const UNEVEN_COLUMNS: f64 = 1000.0;
/// So many pairs of repeated samples are listed.
const LISTED_REPEATS: usize = 10;

/// What is in a data set.
#[derive(Debug, Clone, Serialize)]
pub struct DataReport {
    /// Number of samples.
    pub n_samples: usize,
    /// The views, in order.
    pub views: Vec<ViewReport>,
    /// What is to be learned.
    pub target: TargetReport,
    /// Samples that are the same in every view; none where all views are given matrices.
    pub repeated: Option<RepeatedSamples>,
    /// What deserves a look, in sentences.
    pub warnings: Vec<String>,
}

/// What is in one view.
#[derive(Debug, Clone, Serialize)]
pub struct ViewReport {
    /// Its name.
    pub name: String,
    /// Its contents.
    #[serde(flatten)]
    pub contents: ViewContents,
}

/// What is in one view, by its kind.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ViewContents {
    /// Rows of numbers, dense or sparse.
    Numbers {
        /// Stored as compressed sparse rows.
        sparse: bool,
        /// Number of columns.
        columns: usize,
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
        /// Mean of all values.
        mean: f64,
        /// Fraction of the values that are zero.
        zeros: f64,
        /// Columns that hold one value only.
        constant_columns: usize,
        /// Largest over smallest standard deviation of the other columns; none with fewer than two of them.
        column_scale_ratio: Option<f64>,
    },
    /// A string per sample.
    Strings {
        /// Length of the shortest.
        shortest: usize,
        /// Length of the longest.
        longest: usize,
        /// The different bytes that occur, as text.
        alphabet: String,
    },
    /// A given matrix between samples.
    Matrix {
        /// Number of reference samples.
        columns: usize,
    },
}

/// What is to be learned.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TargetReport {
    /// Nothing is known of the samples.
    None,
    /// Classes and the number of samples of each.
    Classes {
        /// Names of the classes.
        names: Vec<String>,
        /// Samples of each.
        counts: Vec<usize>,
    },
    /// Numbers.
    Real {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
        /// Mean.
        mean: f64,
        /// Standard deviation.
        standard_deviation: f64,
    },
}

/// Samples that are the same in every view.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RepeatedSamples {
    /// Samples that repeat an earlier one.
    pub count: usize,
    /// How many of them have another class or value than the one they repeat.
    pub contradicting: usize,
    /// The first few: (earlier sample, later sample), counted from 0.
    pub first: Vec<(usize, usize)>,
}

/// Looks at views and targets.
pub(super) fn inspect_data(views: &Views, targets: &Targets) -> DataReport {
    let reports: Vec<ViewReport> = views.iter().map(view).collect();
    let target = target(targets);
    let repeated = repeated(views, targets);
    let mut warnings = Vec::new();
    for report in &reports {
        warn_of_view(report, &mut warnings);
    }
    warn_of_target(&target, &mut warnings);
    if let Some(repeated) = &repeated {
        warn_of_repeats(repeated, views.len(), &mut warnings);
    }
    DataReport {
        n_samples: views.len(),
        views: reports,
        target,
        repeated,
        warnings,
    }
}

fn view(view: &View) -> ViewReport {
    let contents = match &view.data {
        ViewData::Dense(x) => dense(x),
        ViewData::Sparse(x) => sparse(x),
        ViewData::Strings(x) => strings(x),
        ViewData::Pairwise(x) => ViewContents::Matrix { columns: x.cols() },
    };
    ViewReport {
        name: view.name.clone(),
        contents,
    }
}

/// Sums over one column. Deviations are taken from the first value, so that large offsets cost no digits.
#[derive(Clone, Copy)]
struct Column {
    origin: f64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Column {
    fn new(origin: f64) -> Self {
        Column {
            origin,
            sum: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }

    fn add(&mut self, value: f64) {
        let d = value - self.origin;
        self.sum += d;
        self.squares += d * d;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds `count` zeros.
    fn add_zeros(&mut self, count: usize) {
        if count > 0 {
            self.sum -= self.origin * count as f64;
            self.squares += self.origin * self.origin * count as f64;
            self.min = self.min.min(0.0);
            self.max = self.max.max(0.0);
        }
    }

    fn mean(&self, n: usize) -> f64 {
        self.origin + self.sum / n as f64
    }

    fn deviation(&self, n: usize) -> f64 {
        let n = n as f64;
        (self.squares / n - (self.sum / n).powi(2)).max(0.0).sqrt()
    }
}

fn dense(x: &Dense) -> ViewContents {
    let mut columns: Vec<Column> = x.row(0).iter().map(|&v| Column::new(v.into())).collect();
    let mut zeros = 0;
    for i in 0..x.rows() {
        for (column, &v) in columns.iter_mut().zip(x.row(i)) {
            column.add(v.into());
            zeros += usize::from(v == 0.0);
        }
    }
    numbers(false, x.rows(), zeros, &columns)
}

fn sparse(x: &Csr) -> ViewContents {
    let mut columns = vec![Column::new(0.0); x.cols()];
    let mut filled = vec![0; x.cols()];
    let mut zeros = x.rows() * x.cols() - x.entries();
    for i in 0..x.rows() {
        let (indices, values) = x.row(i);
        for (&j, &v) in indices.iter().zip(values) {
            columns[j as usize].add(v.into());
            filled[j as usize] += 1;
            zeros += usize::from(v == 0.0);
        }
    }
    for (column, filled) in columns.iter_mut().zip(filled) {
        column.add_zeros(x.rows() - filled);
    }
    numbers(true, x.rows(), zeros, &columns)
}

fn numbers(sparse: bool, n: usize, zeros: usize, columns: &[Column]) -> ViewContents {
    let varying: Vec<f64> = columns
        .iter()
        .filter(|c| c.min < c.max)
        .map(|c| c.deviation(n))
        .collect();
    let largest = varying.iter().fold(0.0f64, |a, &b| a.max(b));
    let smallest = varying.iter().fold(f64::INFINITY, |a, &b| a.min(b));
    ViewContents::Numbers {
        sparse,
        columns: columns.len(),
        min: columns.iter().fold(f64::INFINITY, |a, c| a.min(c.min)),
        max: columns.iter().fold(f64::NEG_INFINITY, |a, c| a.max(c.max)),
        mean: columns.iter().map(|c| c.mean(n)).sum::<f64>() / columns.len() as f64,
        zeros: zeros as f64 / (n * columns.len()) as f64,
        constant_columns: columns.len() - varying.len(),
        column_scale_ratio: (varying.len() > 1).then_some(largest / smallest),
    }
}

fn strings(x: &[Vec<u8>]) -> ViewContents {
    let mut seen = [false; 256];
    for string in x {
        for &byte in string {
            seen[usize::from(byte)] = true;
        }
    }
    let alphabet: Vec<u8> = (0..=255).filter(|&b| seen[usize::from(b)]).collect();
    ViewContents::Strings {
        shortest: x.iter().map(Vec::len).min().unwrap_or(0),
        longest: x.iter().map(Vec::len).max().unwrap_or(0),
        alphabet: alphabet.escape_ascii().to_string(),
    }
}

fn target(targets: &Targets) -> TargetReport {
    match targets {
        Targets::None => TargetReport::None,
        Targets::Classes { names, index } => {
            let mut counts = vec![0; names.len()];
            for &c in index {
                counts[c as usize] += 1;
            }
            TargetReport::Classes {
                names: names.clone(),
                counts,
            }
        }
        Targets::Real(y) => {
            let mut column = Column::new(y.first().copied().unwrap_or(0.0));
            y.iter().for_each(|&v| column.add(v));
            TargetReport::Real {
                min: column.min,
                max: column.max,
                mean: column.mean(y.len()),
                standard_deviation: column.deviation(y.len()),
            }
        }
    }
}

/// Equal samples have equal hashes; those of equal hash are then compared in full.
fn repeated(views: &Views, targets: &Targets) -> Option<RepeatedSamples> {
    let views: Vec<&ViewData> = views
        .iter()
        .map(|v| &v.data)
        .filter(|v| !matches!(v, ViewData::Pairwise(_)))
        .collect();
    let n = views.first()?.len();
    let mut hashed: Vec<(u64, usize)> = (0..n)
        .map(|i| {
            let mut hasher = DefaultHasher::new();
            views.iter().for_each(|v| hash_sample(v, i, &mut hasher));
            (hasher.finish(), i)
        })
        .collect();
    hashed.sort_unstable();
    let mut pairs = Vec::new();
    for bucket in hashed.chunk_by(|a, b| a.0 == b.0) {
        // Different samples of one hash are next to impossible; each is compared with the first of its kind.
        let mut kinds: Vec<usize> = Vec::new();
        for &(_, i) in bucket {
            match kinds
                .iter()
                .find(|&&k| views.iter().all(|v| same_sample(v, k, i)))
            {
                Some(&k) => pairs.push((k, i)),
                None => kinds.push(i),
            }
        }
    }
    pairs.sort_unstable_by_key(|&(_, later)| later);
    let contradicting = pairs
        .iter()
        .filter(|&&(a, b)| match targets {
            Targets::None => false,
            Targets::Classes { index, .. } => index[a] != index[b],
            Targets::Real(y) => y[a] != y[b],
        })
        .count();
    Some(RepeatedSamples {
        count: pairs.len(),
        contradicting,
        first: pairs.into_iter().take(LISTED_REPEATS).collect(),
    })
}

fn hash_sample(view: &ViewData, i: usize, hasher: &mut DefaultHasher) {
    // Adding 0 makes −0 the same as 0.
    let bits = |v: f32| (v + 0.0).to_bits();
    match view {
        ViewData::Dense(x) => x.row(i).iter().for_each(|&v| bits(v).hash(hasher)),
        ViewData::Sparse(x) => {
            let (indices, values) = x.row(i);
            for (j, &v) in indices.iter().zip(values).filter(|(_, v)| **v != 0.0) {
                (j, bits(v)).hash(hasher);
            }
        }
        ViewData::Strings(x) => x[i].hash(hasher),
        ViewData::Pairwise(_) => {}
    }
}

fn same_sample(view: &ViewData, a: usize, b: usize) -> bool {
    match view {
        ViewData::Dense(x) => x.row(a) == x.row(b),
        ViewData::Sparse(x) => {
            let entries = |i| {
                let (indices, values) = x.row(i);
                indices.iter().zip(values).filter(|(_, v)| **v != 0.0)
            };
            entries(a).eq(entries(b))
        }
        ViewData::Strings(x) => x[a] == x[b],
        ViewData::Pairwise(_) => true,
    }
}

fn warn_of_view(report: &ViewReport, warnings: &mut Vec<String>) {
    let name = &report.name;
    match &report.contents {
        ViewContents::Numbers {
            columns,
            constant_columns,
            column_scale_ratio,
            ..
        } => {
            if constant_columns == columns {
                warnings.push(format!(
                    "view '{name}': every column is constant, so its kernels cannot tell samples apart"
                ));
            } else if let Some(ratio) = column_scale_ratio
                && *ratio >= UNEVEN_COLUMNS
            {
                warnings.push(format!(
                    "view '{name}': the spread of its columns differs by a factor of {ratio:.0}, so a few columns decide every distance; consider `scale` {name}=standard"
                ));
            }
        }
        ViewContents::Strings { shortest: 0, .. } => {
            warnings.push(format!("view '{name}': some strings are empty"));
        }
        ViewContents::Strings { .. } | ViewContents::Matrix { .. } => {}
    }
}

fn warn_of_target(target: &TargetReport, warnings: &mut Vec<String>) {
    match target {
        TargetReport::None => {}
        TargetReport::Classes { names, counts } => {
            if names.len() < 2 {
                warnings.push(format!(
                    "all samples are of class '{}'; there is nothing to tell apart",
                    names.first().map_or("", String::as_str)
                ));
                return;
            }
            let tiny: Vec<String> = names
                .iter()
                .zip(counts)
                .filter(|(_, count)| **count < TINY_CLASS)
                .map(|(name, count)| format!("'{name}' ({count})"))
                .collect();
            if !tiny.is_empty() {
                warnings.push(format!(
                    "{} fewer than {TINY_CLASS} samples: {}; what is learned of {} will not be reliable",
                    if tiny.len() == 1 { "one class has".into() } else { format!("{} classes have", tiny.len()) },
                    list(&tiny),
                    if tiny.len() == 1 { "it" } else { "them" },
                ));
            }
            let largest = counts.iter().max().copied().unwrap_or(0);
            let smallest = counts.iter().min().copied().unwrap_or(0);
            if tiny.is_empty() && largest >= UNBALANCED * smallest {
                warnings.push(format!(
                    "the largest class has {largest} samples and the smallest {smallest}; accuracy alone will mislead"
                ));
            }
        }
        TargetReport::Real { min, max, .. } if min == max => {
            warnings.push(format!("all targets are {min}; there is nothing to learn"));
        }
        TargetReport::Real { .. } => {}
    }
}

fn warn_of_repeats(repeated: &RepeatedSamples, n: usize, warnings: &mut Vec<String>) {
    let RepeatedSamples {
        count,
        contradicting,
        first,
    } = repeated;
    let Some(&(a, b)) = first.first() else {
        return;
    };
    let mut sentence = format!(
        "{count} of {n} samples {} an earlier one in every view (sample {} is sample {}, for one)",
        if *count == 1 { "repeats" } else { "repeat" },
        b + 1,
        a + 1
    );
    if *contradicting > 0 {
        sentence.push_str(&format!(", {contradicting} of them with another label"));
    }
    sentence.push_str("; keep repeats out of test folds, or the estimate of accuracy is too good");
    warnings.push(sentence);
}
