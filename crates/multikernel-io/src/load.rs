//! Loading: all files of a job become one set of views, with labels and ids in the same order.

use super::budget::Budget;
use super::gram_files::GivenReader;
use super::join::{collect_names, join, join_order};
use super::label_file::{self, Where};
use super::npy::{self, Header};
use super::npz::Archive;
use super::source::{Files, Format, Source, format_of, readable, split_pick, stem};
use super::table::{FileSamples, LabelWish, TableJob, ViewCut};
use super::{csv, fasta, libsvm};
use multikernel::data::{Dataset, Dense, Labels, View, ViewData, Views, check_count};
use multikernel::error::{Error, Result, some_of};
use multikernel::observe::Observer;
use std::collections::BTreeMap;
use std::io::Read;

/// Numeric columns of these names are pointed out if they become features.
const LIKE_A_LABEL: [&str; 5] = ["label", "labels", "target", "class", "y"];

/// What is to be loaded, and within which bounds.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Files with features: `.npy`, `.npz` (`F.npz:a,b` picks arrays), `.csv`, `.tsv`, LIBSVM text, FASTA, Parquet.
    pub features: Vec<String>,
    /// Given matrices: `.npz` (with picks), `.npy`, a folder of `.npy` files.
    pub gram: Vec<String>,
    /// A file with labels: `.npy`, `F.npz:name`, a table, FASTA, LIBSVM text, or text with one label per line.
    pub labels: Option<String>,
    /// The column of a table (or the array of an archive) that holds the labels.
    pub label_column: Option<String>,
    /// The key of labels in FASTA headers; `label` if not given.
    pub label_key: Option<String>,
    /// The column (or array) of ids, by which rows of several files are joined.
    pub id_column: Option<String>,
    /// Views cut out of the columns of tables.
    pub views: Vec<ViewCut>,
    /// What the data is for.
    pub purpose: Purpose,
    /// Bytes that the data may take in memory; more is refused before it is allocated.
    pub memory: Option<u64>,
    /// Given matrices of more bytes than this are memory-mapped, where the file holds them as f32 in C order.
    pub map_above: Option<u64>,
}

/// What the data is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// Training: given matrices are square and symmetric, labels that are named must be there.
    #[default]
    Training,
    /// Prediction: given matrices hold a row for each new sample and a column for each training sample, and a label
    /// column may be missing.
    Prediction {
        /// The number of training samples, if known.
        references: Option<usize>,
        /// The number of kernels, if known.
        kernels: Option<usize>,
    },
}

/// Loads files.
pub fn load(options: &LoadOptions, observer: &dyn Observer) -> Result<Dataset> {
    Loader::new(
        options,
        Files {
            memory: None,
            observer,
        },
    )
    .run()
}

/// Loads files that are in memory, by name.
pub fn load_from(
    options: &LoadOptions,
    files: &BTreeMap<String, Vec<u8>>,
    observer: &dyn Observer,
) -> Result<Dataset> {
    let files = Files {
        memory: Some(files),
        observer,
    };
    Loader::new(options, files).run()
}

/// Reads one number for each sample (weights, say) from a file: `.npy`, `F.npz:name`, a table with one column, or text
/// with one number per line. `memory` is the number of bytes it may take.
pub fn load_numbers(name: &str, memory: Option<u64>, observer: &dyn Observer) -> Result<Vec<f64>> {
    let labels = load_labels(name, memory, observer).map_err(|e| match e {
        // What is read as labels are is none here.
        Error::Input(mut e) if e.found.starts_with("the label is") => {
            e.found = e.found.replacen("label", "number", 1);
            e.remedy = e.remedy.replacen("label", "number", 1);
            Error::Input(e)
        }
        other => other,
    })?;
    let value = |i: usize| {
        labels.number(i).ok_or_else(|| {
            Error::input(
                format!("{name} row {}", i + 1),
                format!("{} is not a number", some_of([labels.spelling(i)])),
                "give one number for each sample",
            )
        })
    };
    (0..labels.len()).map(value).collect()
}

/// Reads one word or number for each sample from a file of the same kinds as [`load_numbers`].
pub fn load_labels(name: &str, memory: Option<u64>, observer: &dyn Observer) -> Result<Labels> {
    let files = Files {
        memory: None,
        observer,
    };
    let place = Where {
        label_column: None,
        label_key: None,
        id_column: None,
    };
    let part = label_file::read(&files, name, place, &mut Budget::new(memory))?;
    part.labels.ok_or_else(|| {
        Error::input(
            name,
            "there is nothing in the file",
            "give one line for each sample",
        )
    })
}

#[cfg(not(feature = "parquet"))]
pub(super) fn no_parquet(name: &str) -> Error {
    Error::input(
        name,
        "this build does not read Parquet",
        "build with the feature 'parquet', or convert the file to .npy or .csv",
    )
}

struct Loader<'l> {
    options: &'l LoadOptions,
    files: Files<'l>,
    budget: Budget,
    notes: Vec<String>,
}

/// A file of features, looked at but not read.
struct FeatureFile<'l> {
    source: Source<'l>,
    picks: Vec<String>,
    format: Format,
    /// The columns of a table.
    columns: Option<Vec<String>>,
    cuts: Vec<&'l ViewCut>,
}

impl<'l> Loader<'l> {
    fn new(options: &'l LoadOptions, files: Files<'l>) -> Self {
        Loader {
            options,
            files,
            budget: Budget::new(options.memory),
            notes: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Dataset> {
        if self.options.features.is_empty() && self.options.gram.is_empty() {
            return Err(Error::input(
                "data",
                "no data is given",
                "give files with features or given matrices",
            ));
        }
        let files = self.feature_files()?;
        let mut parts = Vec::new();
        for file in &files {
            let part = self.features(file)?;
            self.mention_text_columns(&part);
            parts.push(part);
        }
        join(
            &mut parts,
            self.options.id_column.is_some(),
            &mut self.budget,
        )?;
        let (ids, inner_labels) = collect_names(&mut parts)?;
        let mut views = Views::default();
        for part in parts {
            for view in part.views {
                views.push(view)?;
            }
        }
        let mut given = GivenReader {
            files: self.files,
            purpose: self.options.purpose,
            map_above: self.options.map_above,
            budget: &mut self.budget,
            notes: &mut self.notes,
            views: Vec::new(),
        };
        for name in &self.options.gram {
            given.read(name)?;
        }
        for view in given.views {
            views.push(view)?;
        }
        let labels = match &self.options.labels {
            Some(name) => Some(self.label_file(name, ids.as_deref(), files.len())?),
            None => inner_labels,
        };
        if let (None, Some(column), Purpose::Training) =
            (&labels, &self.options.label_column, self.options.purpose)
        {
            return Err(Error::input(
                "labels",
                format!("no file has a label column '{column}'"),
                "name a column of one of the tables",
            ));
        }
        if let Some(labels) = &labels {
            check_count(labels.len(), views.len())?;
        }
        if let Some(ids) = ids {
            views.set_ids(ids)?;
        }
        Ok(Dataset {
            views,
            labels,
            notes: self.notes,
        })
    }

    /// Opens all files of features and finds the table that each cut belongs to.
    fn feature_files(&self) -> Result<Vec<FeatureFile<'l>>> {
        let mut files = Vec::new();
        for name in &self.options.features {
            let (path, picks) = split_pick(name);
            let format = format_of(&path)?;
            let source = self.files.source(&path)?;
            let columns = match format {
                Format::Table { delimiter } => {
                    Some(csv::columns(&source, delimiter, &self.budget)?)
                }
                #[cfg(feature = "parquet")]
                Format::Parquet => Some(super::parquet::columns(&source)?),
                _ => None,
            };
            files.push(FeatureFile {
                source,
                picks,
                format,
                columns,
                cuts: Vec::new(),
            });
        }
        for cut in &self.options.views {
            let mut homes = Vec::new();
            let mut why = None;
            for (f, file) in files.iter().enumerate() {
                let Some(columns) = &file.columns else {
                    continue;
                };
                let reserved: Vec<usize> = self
                    .not_features()
                    .iter()
                    .filter_map(|name| columns.iter().position(|c| c == name))
                    .collect();
                match cut.resolve(columns, &reserved) {
                    Ok(_) => homes.push(f),
                    Err(found) => why = why.or(Some((found, columns))),
                }
            }
            let place = format!("view '{}'", cut.name);
            match (homes[..].len(), homes.first(), why) {
                (1, Some(&f), _) => files[f].cuts.push(cut),
                (0, _, Some((found, columns))) => {
                    return Err(Error::input(
                        place,
                        found,
                        format!("the columns are {}", some_of(columns)),
                    ));
                }
                (0, _, None) => {
                    return Err(Error::input(
                        place,
                        "there is no table to cut it from",
                        "views are cut out of the columns of CSV or Parquet files",
                    ));
                }
                _ => {
                    return Err(Error::input(
                        place,
                        format!(
                            "its columns are in several files ({})",
                            some_of(homes.iter().map(|&f| &files[f].source.name))
                        ),
                        "name columns that are in one file only",
                    ));
                }
            }
        }
        Ok(files)
    }

    fn not_features(&self) -> Vec<&'l str> {
        let options = self.options;
        [&options.label_column, &options.id_column]
            .into_iter()
            .filter_map(|name| name.as_deref())
            .collect()
    }

    fn features(&mut self, file: &FeatureFile<'l>) -> Result<FileSamples> {
        let options = self.options;
        let source = &file.source;
        let view = stem(&source.name);
        let id_column = options.id_column.as_deref();
        if let (Some(column), Format::Npy | Format::Libsvm) = (id_column, file.format) {
            return Err(Error::input(
                &source.name,
                "this kind of file holds no ids",
                format!(
                    "leave out the id column '{column}', or give the file as a table or archive with it"
                ),
            ));
        }
        match file.format {
            Format::Npy => {
                let (header, mut input) = npy::open(source)?;
                let data = self.array(&header, &mut input, &source.name)?;
                Ok(FileSamples {
                    place: source.name.clone(),
                    rows: data.len(),
                    views: vec![unnamed(view, data)],
                    ..FileSamples::default()
                })
            }
            Format::Npz => self.npz(file),
            Format::Table { .. } | Format::Parquet => self.table(file, view),
            Format::Libsvm => libsvm::read(source, &view, &mut self.budget),
            Format::Fasta => {
                let training = options.purpose == Purpose::Training;
                let required = options.label_key.is_some() && options.labels.is_none() && training;
                let key = options.label_key.as_deref().unwrap_or(fasta::LABEL_KEY);
                fasta::read(source, &view, key, required, &mut self.budget)
            }
            Format::Text => Err(Error::input(
                &source.name,
                "features are not read from plain text",
                format!("give {} (rename LIBSVM text to end in .libsvm)", readable()),
            )),
        }
    }

    fn table(&mut self, file: &FeatureFile<'l>, whole: String) -> Result<FileSamples> {
        let options = self.options;
        let tables = options.features.len();
        let label = match (&options.labels, &options.label_column) {
            (None, Some(column)) if tables == 1 && options.purpose == Purpose::Training => {
                LabelWish::Column(column)
            }
            (None, Some(column)) => LabelWish::IfThere(column),
            _ => LabelWish::No,
        };
        let job = TableJob {
            features: true,
            cuts: file.cuts.clone(),
            whole,
            label,
            id_column: options.id_column.as_deref(),
            needs_ids: true,
            not_features: self.not_features(),
        };
        let part = match file.format {
            Format::Table { delimiter } => {
                csv::read(&file.source, delimiter, &job, &mut self.budget)?
            }
            #[cfg(feature = "parquet")]
            _ => super::parquet::read(&file.source, &job, &mut self.budget)?,
            #[cfg(not(feature = "parquet"))]
            _ => return Err(no_parquet(&file.source.name)),
        };
        if !options.views.is_empty() && file.cuts.is_empty() {
            self.notes.push(format!(
                "no view is cut from {}: all of its columns are view '{}'",
                file.source.name, job.whole
            ));
        }
        for view in part.views.iter().filter(|_| file.cuts.is_empty()) {
            let like = |c: &&String| LIKE_A_LABEL.contains(&c.to_ascii_lowercase().as_str());
            if let Some(column) = view.columns.iter().find(like) {
                self.notes.push(format!(
                    "column '{column}' of {} is used as a feature; if it is the label, name it as the label column",
                    file.source.name
                ));
            }
        }
        Ok(part)
    }

    fn mention_text_columns(&mut self, part: &FileSamples) {
        for view in &part.views {
            if let (ViewData::Strings(_), [column]) = (&view.data, &view.columns[..]) {
                self.notes.push(format!(
                    "column '{column}' of {} holds text: view '{}' is a view of strings",
                    part.place, view.name
                ));
            }
        }
    }

    fn npz(&mut self, file: &FeatureFile<'l>) -> Result<FileSamples> {
        let options = self.options;
        let source = &file.source;
        let mut archive = Archive::open(source)?;
        let names = archive.names();
        let mut others: Vec<String> = self.not_features().into_iter().map(str::to_owned).collect();
        if let Some(labels) = &options.labels {
            let (path, picks) = split_pick(labels);
            if path == source.name {
                others.extend(picks);
            }
        }
        let wanted: Vec<&String> = match file.picks.is_empty() {
            true => names.iter().filter(|n| !others.contains(n)).collect(),
            false => file.picks.iter().collect(),
        };
        let mut part = FileSamples {
            place: source.name.clone(),
            ..FileSamples::default()
        };
        for name in wanted {
            let mut member = archive.member(name)?;
            let data = self.array(&member.header, &mut member.input, &member.place)?;
            if let Some(first) = part.views.first()
                && first.data.len() != data.len()
            {
                return Err(Error::input(
                    member.place,
                    format!(
                        "it has {} rows but array '{}' has {}",
                        data.len(),
                        first.name,
                        first.data.len()
                    ),
                    "pick arrays of the same samples by file.npz:a,b",
                ));
            }
            part.rows = data.len();
            part.views.push(unnamed(name.clone(), data));
        }
        if part.views.is_empty() {
            return Err(Error::input(
                &source.name,
                "no array is left for features",
                "give at least one array besides labels and ids",
            ));
        }
        if let Some(column) = &options.id_column {
            part.ids = Some(label_file::ids(&mut archive, column, &mut self.budget)?);
        }
        if let (None, Some(column)) = (&options.labels, &options.label_column)
            && names.contains(column)
        {
            let mut member = archive.member(column)?;
            part.labels = Some(label_file::array(
                &member.header,
                &mut member.input,
                &member.place,
                &mut self.budget,
            )?);
        }
        part.check_counts()?;
        Ok(part)
    }

    /// An array as a view: (n, d) numbers, or (n,) text.
    fn array(&mut self, header: &Header, input: &mut impl Read, place: &str) -> Result<ViewData> {
        let empty = header.shape.contains(&0);
        match (header.shape.len(), header.element.is_text()) {
            (2, false) if !empty => {
                let values = header.matrix(input, place, &mut self.budget)?;
                let dense = Dense::new(header.shape[0], header.shape[1], values)?;
                Ok(ViewData::Dense(dense))
            }
            (1, true) if !empty => Ok(ViewData::Strings(header.texts(
                input,
                place,
                &mut self.budget,
            )?)),
            _ => Err(Error::input(
                place,
                format!(
                    "the array has the shape {}{}",
                    header.shape_text(),
                    if header.element.is_text() {
                        " and holds text"
                    } else {
                        ""
                    }
                ),
                "a view is an array of shape (samples, columns), or (samples,) of text; name labels and ids as such, or \
                 pick arrays by file.npz:a,b",
            )),
        }
    }

    fn label_file(
        &mut self,
        name: &str,
        ids: Option<&[String]>,
        feature_files: usize,
    ) -> Result<Labels> {
        let options = self.options;
        let place = Where {
            label_column: options.label_column.as_deref(),
            label_key: options.label_key.as_deref(),
            id_column: options.id_column.as_deref(),
        };
        let part = label_file::read(&self.files, name, place, &mut self.budget)?;
        let Some(labels) = part.labels else {
            return Err(Error::input(
                part.place,
                "there are no labels in the file",
                "",
            ));
        };
        match (&options.id_column, ids, &part.ids) {
            (Some(_), Some(wanted), Some(found)) => {
                let order = join_order("the features", wanted, &part.place, found, false)?;
                if found.len() > wanted.len() {
                    self.notes.push(format!(
                        "{} has labels for {} samples; those of the {} samples with features are used",
                        part.place,
                        found.len(),
                        wanted.len()
                    ));
                }
                Ok(labels.select(&order))
            }
            (Some(_), Some(_), None) if feature_files > 1 => {
                self.notes.push(format!(
                    "{} has no ids: its labels are taken in the order of {}",
                    part.place, options.features[0]
                ));
                Ok(labels)
            }
            _ => Ok(labels),
        }
    }
}

fn unnamed(name: String, data: ViewData) -> View {
    View {
        name,
        columns: Vec::new(),
        data,
    }
}
