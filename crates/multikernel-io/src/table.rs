//! Tables with named columns (CSV, Parquet): which column is what, and how views are cut out of columns.

use super::budget::Budget;
use multikernel::data::{Dense, LabelBuilder, Labels, View, ViewData};
use multikernel::error::{Error, Result, some_of};
use std::str::FromStr;

/// A view cut out of the columns of a table: `name=col1,col2`, `name=prefix*`, `name=3..17`, or several of these
/// separated by `,` or `|`.
///
/// Ranges count the columns of the file from 1 and include both ends. A name with special characters is written
/// in double quotes (`""` is a quote inside of it). Prefixes and ranges pass over the label and the id column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewCut {
    /// The view's name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ColumnPick>,
}

/// Some columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnPick {
    /// The column of this name.
    Name(String),
    /// All columns whose names begin so.
    Prefix(String),
    /// Columns from … to …, counted from 1.
    Range(usize, usize),
}

impl FromStr for ViewCut {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |found: String| {
            Error::input(
                "view",
                found,
                "write name=col1,col2 or name=prefix* or name=3..17 (names with special characters in double quotes)",
            )
        };
        let (name, picks) = text
            .split_once('=')
            .ok_or_else(|| wrong(format!("'{text}' has no '='")))?;
        if name.trim().is_empty() {
            return Err(wrong(format!("'{text}' gives the view no name")));
        }
        let mut columns = Vec::new();
        let mut rest = picks.trim();
        loop {
            let (pick, after) = match rest.strip_prefix('"') {
                Some(quoted) => {
                    let (name, after) = unquote(quoted)
                        .ok_or_else(|| wrong(format!("a quote in '{text}' is not closed")))?;
                    (ColumnPick::Name(name), after.trim_start())
                }
                None => {
                    let end = rest.find([',', '|']).unwrap_or(rest.len());
                    let pick = plain_pick(rest[..end].trim())
                        .map_err(|found| wrong(format!("'{text}': {found}")))?;
                    (pick, &rest[end..])
                }
            };
            columns.push(pick);
            match after.strip_prefix([',', '|']) {
                Some(more) => rest = more.trim_start(),
                None if after.is_empty() => break,
                None => return Err(wrong(format!("'{text}' goes on after a closing quote"))),
            }
        }
        Ok(ViewCut {
            name: name.trim().to_owned(),
            columns,
        })
    }
}

/// The text up to the closing quote, and what follows it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

fn plain_pick(text: &str) -> Result<ColumnPick, String> {
    if text.is_empty() {
        return Err("a column has no name".into());
    }
    if let Some((from, to)) = text.split_once("..")
        && let (Ok(from), Ok(to)) = (from.parse::<usize>(), to.parse::<usize>())
    {
        if from == 0 || to < from {
            return Err(format!("the range '{text}' does not ascend from 1"));
        }
        return Ok(ColumnPick::Range(from, to));
    }
    Ok(match text.strip_suffix('*') {
        Some(prefix) => ColumnPick::Prefix(prefix.to_owned()),
        None => ColumnPick::Name(text.to_owned()),
    })
}

impl ViewCut {
    /// The positions of the columns among `names`, or what is missing.
    pub(super) fn resolve(
        &self,
        names: &[String],
        reserved: &[usize],
    ) -> Result<Vec<usize>, String> {
        let mut out = Vec::new();
        for pick in &self.columns {
            let before = out.len();
            match pick {
                ColumnPick::Name(name) => match names.iter().position(|n| n == name) {
                    Some(c) if reserved.contains(&c) => {
                        return Err(format!("column '{name}' is the label or id column"));
                    }
                    Some(c) => out.push(c),
                    None => return Err(format!("there is no column '{name}'")),
                },
                ColumnPick::Prefix(prefix) => {
                    let free = |c: &usize| !reserved.contains(c) && names[*c].starts_with(prefix);
                    out.extend((0..names.len()).filter(free));
                    if out.len() == before {
                        return Err(format!("no column begins with '{prefix}'"));
                    }
                }
                ColumnPick::Range(from, to) => {
                    if *to > names.len() {
                        return Err(format!("there is no column {to}"));
                    }
                    out.extend((from - 1..*to).filter(|c| !reserved.contains(c)));
                    if out.len() == before {
                        return Err(format!(
                            "the range {from}..{to} holds only the label or id column"
                        ));
                    }
                }
            }
        }
        let mut sorted = out.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|w| w[0] == w[1]) {
            return Err(format!("column '{}' is taken twice", names[twice[0]]));
        }
        Ok(out)
    }
}

/// What is wanted from a table.
#[derive(Debug, Clone, Default)]
pub(super) struct TableJob<'j> {
    /// Views are wanted (else labels and ids only).
    pub(super) features: bool,
    /// The cuts that belong to this table; none: all columns are one view.
    pub(super) cuts: Vec<&'j ViewCut>,
    /// The view's name if there are no cuts.
    pub(super) whole: String,
    pub(super) label: LabelWish<'j>,
    pub(super) id_column: Option<&'j str>,
    /// The id column must be there.
    pub(super) needs_ids: bool,
    /// These columns never become features.
    pub(super) not_features: Vec<&'j str>,
}

/// Whether and where there are labels.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum LabelWish<'j> {
    /// None are wanted.
    #[default]
    No,
    /// In this column, which must be there.
    Column(&'j str),
    /// In this column if it is there.
    IfThere(&'j str),
    /// In the only column besides the id.
    TheOnlyColumn,
}

/// Columns by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) id: Option<usize>,
    pub(super) label: Option<usize>,
    pub(super) views: Vec<(String, Vec<usize>)>,
}

impl Plan {
    /// What was read according to it.
    pub(super) fn samples(
        self,
        place: &str,
        columns: &[String],
        growing: Vec<Growing>,
        names: Names,
        rows: usize,
        budget: &mut Budget,
    ) -> Result<FileSamples> {
        let mut views = Vec::with_capacity(growing.len());
        for ((name, own), view) in self.views.into_iter().zip(growing) {
            views.push(View {
                name,
                data: view.finish(budget, rows, own.len())?,
                columns: own.iter().map(|&c| columns[c].clone()).collect(),
            });
        }
        let labels = self.label.map(|_| names.labels.finish(place));
        Ok(FileSamples {
            place: place.to_owned(),
            rows,
            views,
            ids: self.id.map(|_| names.ids),
            labels: labels.transpose()?,
        })
    }
}

impl TableJob<'_> {
    /// Gives every column its part.
    pub(super) fn plan(&self, place: &str, names: &[String]) -> Result<Plan> {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|w| w[0] == w[1]) {
            return Err(Error::input(
                place,
                format!("there are two columns named {}", some_of([twice[0]])),
                "rename one",
            ));
        }
        let find = |name: &str| names.iter().position(|n| n == name);
        let required = |name: &str, what: &str| {
            find(name).ok_or_else(|| {
                Error::input(
                    place,
                    format!("there is no {what} column '{name}'"),
                    format!("the columns are {}", some_of(names)),
                )
            })
        };
        let id = match self.id_column {
            Some(name) if self.needs_ids => Some(required(name, "id")?),
            Some(name) => find(name),
            None => None,
        };
        let label = match self.label {
            LabelWish::No => None,
            LabelWish::Column(name) => Some(required(name, "label")?),
            LabelWish::IfThere(name) => find(name),
            LabelWish::TheOnlyColumn => {
                let others: Vec<usize> = (0..names.len()).filter(|c| Some(*c) != id).collect();
                match others[..] {
                    [only] => Some(only),
                    _ => {
                        return Err(Error::input(
                            place,
                            format!("there are {} columns that could be the label", others.len()),
                            format!(
                                "name the label column, one of {}",
                                some_of(others.iter().map(|&c| &names[c]))
                            ),
                        ));
                    }
                }
            }
        };
        let mut reserved: Vec<usize> = self.not_features.iter().filter_map(|n| find(n)).collect();
        reserved.extend(id);
        reserved.extend(label);
        let mut views = Vec::new();
        for cut in &self.cuts {
            let columns = cut.resolve(names, &reserved).map_err(|found| {
                Error::input(
                    format!("{place} view '{}'", cut.name),
                    found,
                    format!("the columns are {}", some_of(names)),
                )
            })?;
            views.push((cut.name.clone(), columns));
        }
        if self.features && self.cuts.is_empty() {
            let rest: Vec<usize> = (0..names.len()).filter(|c| !reserved.contains(c)).collect();
            if rest.is_empty() {
                return Err(Error::input(
                    place,
                    "there is no column left for features",
                    "give at least one column besides label and id",
                ));
            }
            views.push((self.whole.clone(), rest));
        }
        Ok(Plan { id, label, views })
    }
}

/// What one file gave: views, ids and labels of the same samples.
#[derive(Debug, Default)]
pub(super) struct FileSamples {
    pub(super) place: String,
    pub(super) rows: usize,
    pub(super) views: Vec<View>,
    pub(super) ids: Option<Vec<String>>,
    pub(super) labels: Option<Labels>,
}

impl FileSamples {
    /// Ids and labels that stand in arrays of their own must be as many as the samples.
    pub(super) fn check_counts(&self) -> Result<()> {
        let counts = [
            ("ids", self.ids.as_ref().map(Vec::len)),
            ("labels", self.labels.as_ref().map(Labels::len)),
        ];
        for (what, count) in counts {
            if let Some(count) = count
                && count != self.rows
            {
                return Err(Error::input(
                    &self.place,
                    format!("there are {count} {what} for {} samples", self.rows),
                    format!("give as many {what} as samples, in the same order"),
                ));
            }
        }
        Ok(())
    }
}

/// Labels where every sample has one; none where no sample has.
pub(super) fn some_labels(labels: LabelBuilder, place: &str) -> Result<Option<Labels>> {
    match labels.len() {
        0 => Ok(None),
        _ => labels.finish(place).map(Some),
    }
}

/// The error of columns of text that would be one view with others.
pub(super) fn text_columns(place: &str, columns: &[&String]) -> Error {
    Error::input(
        place,
        format!(
            "columns {} hold text, where numbers are needed",
            some_of(columns)
        ),
        "name them as label or id column, or cut views out of the other columns (view name=col1,col2)",
    )
}

/// One view of a table while it grows.
#[derive(Debug)]
pub(super) enum Growing {
    /// A single column whose first cell has not been seen.
    Undecided,
    /// Rows of numbers.
    Numbers(Vec<f32>),
    /// One text for each row.
    Texts(Vec<Vec<u8>>),
}

impl Growing {
    /// A view of one column may be text; several columns are numbers.
    pub(super) fn new(columns: usize) -> Self {
        match columns {
            1 => Growing::Undecided,
            _ => Growing::Numbers(Vec::new()),
        }
    }

    pub(super) fn finish(self, budget: &mut Budget, rows: usize, cols: usize) -> Result<ViewData> {
        Ok(match self {
            Growing::Undecided => ViewData::Strings(Vec::new()),
            Growing::Numbers(mut values) => {
                budget.settle(&mut values);
                ViewData::Dense(Dense::new(rows, cols, values)?)
            }
            Growing::Texts(mut texts) => {
                budget.settle(&mut texts);
                ViewData::Strings(texts)
            }
        })
    }
}

/// Ids and labels of a table while they grow.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) ids: Vec<String>,
    pub(super) labels: LabelBuilder,
}

impl Names {
    pub(super) fn id(&mut self, place: &str, text: &str, budget: &mut Budget) -> Result<()> {
        budget.reserve(&mut self.ids, 1, place)?;
        budget.charge(place, text.len() as u64)?;
        self.ids.push(text.trim().to_owned());
        Ok(())
    }

    pub(super) fn label(&mut self, place: &str, text: &str, budget: &mut Budget) -> Result<()> {
        let cost = self.labels.push(text);
        budget.charge(place, cost + 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&n| n.to_owned()).collect()
    }

    #[test]
    fn cuts_are_parsed() {
        let cut: ViewCut = "a = x, \"odd, \"\"name\"\"\" | pre* |3..17"
            .parse()
            .unwrap();
        assert_eq!(cut.name, "a");
        assert_eq!(
            cut.columns,
            [
                ColumnPick::Name("x".into()),
                ColumnPick::Name("odd, \"name\"".into()),
                ColumnPick::Prefix("pre".into()),
                ColumnPick::Range(3, 17),
            ]
        );
        let cut: ViewCut = "a=\"3..4\",b..c".parse().unwrap();
        assert_eq!(
            cut.columns,
            [
                ColumnPick::Name("3..4".into()),
                ColumnPick::Name("b..c".into())
            ]
        );
        for (text, said) in [
            ("columns", "'columns' has no '='"),
            ("=x", "gives the view no name"),
            ("a=x,,y", "a column has no name"),
            ("a=", "a column has no name"),
            ("a=\"x", "is not closed"),
            ("a=\"x\"y", "goes on after a closing quote"),
            ("a=0..3", "does not ascend from 1"),
            ("a=5..3", "does not ascend from 1"),
        ] {
            let error = text.parse::<ViewCut>().unwrap_err().to_string();
            assert!(
                error.contains(said) && error.contains("write name=col1,col2"),
                "{error}"
            );
        }
    }

    #[test]
    fn columns_are_found_and_label_and_id_left_out() {
        let header = names(&["id", "p1", "p2", "y", "z"]);
        let resolve = |cut: &str| cut.parse::<ViewCut>().unwrap().resolve(&header, &[0, 3]);
        assert_eq!(resolve("v=z,p*"), Ok(vec![4, 1, 2]));
        assert_eq!(resolve("v=1..5"), Ok(vec![1, 2, 4]));
        assert_eq!(
            resolve("v=y").unwrap_err(),
            "column 'y' is the label or id column"
        );
        assert_eq!(resolve("v=q").unwrap_err(), "there is no column 'q'");
        assert_eq!(resolve("v=q*").unwrap_err(), "no column begins with 'q'");
        assert_eq!(resolve("v=2..6").unwrap_err(), "there is no column 6");
        assert_eq!(
            resolve("v=p1,p*").unwrap_err(),
            "column 'p1' is taken twice"
        );
    }

    #[test]
    fn every_column_has_its_part() {
        let header = names(&["id", "a", "y"]);
        let job = TableJob {
            features: true,
            whole: "t".into(),
            label: LabelWish::Column("y"),
            id_column: Some("id"),
            needs_ids: true,
            ..TableJob::default()
        };
        assert_eq!(
            job.plan("t.csv", &header).unwrap(),
            Plan {
                id: Some(0),
                label: Some(2),
                views: vec![("t".into(), vec![1])]
            }
        );
        let said = |job: TableJob<'_>, header: &[&str]| {
            job.plan("t.csv", &names(header)).unwrap_err().to_string()
        };
        assert_eq!(
            said(job.clone(), &["id", "a"]),
            "t.csv: there is no label column 'y'; the columns are 'id', 'a'"
        );
        assert_eq!(
            said(job.clone(), &["a", "a"]),
            "t.csv: there are two columns named 'a'; rename one"
        );
        assert!(said(job, &["id", "y"]).contains("no column left for features"));
        let only = TableJob {
            label: LabelWish::TheOnlyColumn,
            ..TableJob::default()
        };
        assert!(said(only, &["a", "b"]).contains("name the label column, one of 'a', 'b'"));
    }
}
