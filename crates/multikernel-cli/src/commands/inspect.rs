//! `multikernel inspect`: what is in data and kernels, and what a careful statistician would warn of.

use crate::args::{CommonArgs, DataArgs, KernelArgs};
use crate::output::{number, table};
use crate::paths::Paths;
use crate::session::{Cost, Loaded, Session};
use anyhow::Result;
use clap::Args;
use multikernel::data::Task;
use multikernel::error::check_positive;
use multikernel::gram::Options;
use multikernel::inspect::{
    DataReport, KernelReport, KernelSummary, Report, TargetReport, ViewContents, inspect,
};
use multikernel::kernel::{KernelSpec, choose};
use multikernel_io::holds_given_matrices;
use serde::Serialize;

/// Kernels, views and classes that are listed as text; JSON has all.
const LISTED: usize = 30;
/// All pairs of kernels are shown up to this number of kernels; of more, the most and the least alike.
const WHOLE_TABLE: usize = 8;
/// Pairs shown of the most alike, and of the least alike.
const EXTREME_PAIRS: usize = 5;

/// Look at a model, or at data and kernels: weights; shapes, classes, alignments, eigenvalues, warnings
///
/// A model (.mk) tells its kernels and weights, how it was trained and what it needs. Of data:
/// Kernels are those asked for, or the default ones. With many samples they are looked at on a seeded sample, and it
/// is said. Everything is in the result object (--json); text shows the most important part of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  multikernel inspect model.mk
  multikernel inspect gram.npz --labels y.npy
  multikernel inspect views.npz --labels views.npz:y --kernel 'rbf:width=mean*0.5|mean|mean*2'
  multikernel inspect views.npz --labels views.npz:y --rank 10
  multikernel inspect --features table.csv --label-column class --scale standard --json report.json")]
pub(crate) struct Arguments {
    /// A model, or files with kernels (square arrays, folders) or features; what they are is seen from their shapes
    #[arg(value_name = "FILE")]
    files: Vec<String>,

    /// Rank the kernels by what each predicts by itself: leave-one-out error of a least-squares SVM at this C (n³ for each)
    #[arg(long, value_name = "C", num_args = 0..=1, default_missing_value = "1", allow_negative_numbers = true)]
    rank: Option<f64>,

    #[command(flatten)]
    data: DataArgs,

    #[command(flatten)]
    kernels: KernelArgs,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct Outcome {
    task: Task,
    #[serde(flatten)]
    report: Report,
    #[serde(flatten)]
    cost: Cost,
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let session = arguments.common.start()?;
    Paths::of(&arguments.common)
        .reads_all(&arguments.files)
        .reads_data(&arguments.data.files)
        .reads_kernels(&arguments.kernels)
        .check()?;
    session.run(|| {
        if let [file] = &arguments.files[..]
            && file.to_ascii_lowercase().ends_with(".mk")
        {
            return super::inspect_model::look(&session, file);
        }
        arguments.data.check()?;
        let specs = arguments.kernels.specs()?;
        if let Some(cost) = arguments.rank {
            check_positive("rank", cost)?;
        }
        let mut data = arguments.data.clone();
        for file in &arguments.files {
            if holds_given_matrices(file)? {
                data.files.gram.push(file.clone());
            } else {
                data.files.features.push(file.clone());
            }
        }
        let loaded = session.load(&data)?;
        let (specs, notes) = choose(&specs, &arguments.kernels.groups, &loaded.views)?;
        look(&session, loaded, &specs, notes, arguments.rank)
    })
}

/// Looks at data and kernels, prints and writes what was found.
pub(crate) fn look(
    session: &Session,
    loaded: Loaded,
    specs: &[KernelSpec],
    chosen: Vec<String>,
    rank: Option<f64>,
) -> Result<()> {
    let load = session.elapsed();
    let options = Options {
        memory: session.memory_left(),
        seed: session.seed,
        ..Options::default()
    };
    let Loaded {
        views,
        targets,
        task,
        mut notes,
    } = loaded;
    let mut report = inspect(&views, &targets, specs, &options, rank, &session.watcher)?;
    notes.extend(chosen);
    notes.append(&mut report.notes);
    report.notes = notes;
    let outcome = Outcome {
        task,
        cost: session.cost(load, session.elapsed() - load),
        report,
        seed: session.seed,
    };
    let report = &outcome.report;
    session.output.notes(&report.notes)?;
    session.output.text(&data_text(&report.data))?;
    if let Some(kernels) = &report.kernels {
        session.output.text(&kernels_text(kernels))?;
        session.output.text(&alignments_text(kernels))?;
    }
    session.output.text(if report.warnings.is_empty() {
        "\nno warnings\n"
    } else {
        "\n"
    })?;
    session.output.warnings(&report.warnings)?;
    session.output.json(&outcome)
}

fn data_text(data: &DataReport) -> String {
    let mut out = format!(
        "\n{} samples, {}\n",
        data.n_samples,
        target_text(&data.target)
    );
    let rows: Vec<Vec<String>> = data.views.iter().take(LISTED).map(view_row).collect();
    out.push_str(&table(
        &[
            "view",
            "kind",
            "columns",
            "min",
            "max",
            "mean",
            "zeros",
            "constant columns",
        ],
        &rows,
    ));
    push_more(&mut out, data.views.len());
    out
}

fn push_more(out: &mut String, count: usize) {
    if count > LISTED {
        out.push_str(&format!("  … and {} more\n", count - LISTED));
    }
}

fn target_text(target: &TargetReport) -> String {
    match target {
        TargetReport::None => "no targets".into(),
        TargetReport::Classes { names, counts } => {
            let mut shown: Vec<String> = names
                .iter()
                .zip(counts)
                .take(LISTED)
                .map(|(name, count)| format!("{name}: {count}"))
                .collect();
            if names.len() > LISTED {
                shown.push(format!("and {} more", names.len() - LISTED));
            }
            format!("{} classes ({})", names.len(), shown.join(", "))
        }
        TargetReport::Real {
            min,
            max,
            mean,
            standard_deviation,
        } => format!(
            "targets from {} to {}, mean {}, standard deviation {}",
            number(*min),
            number(*max),
            number(*mean),
            number(*standard_deviation)
        ),
    }
}

fn view_row(view: &multikernel::inspect::ViewReport) -> Vec<String> {
    let mut row = vec![view.name.clone()];
    match &view.contents {
        ViewContents::Numbers {
            sparse,
            columns,
            min,
            max,
            mean,
            zeros,
            constant_columns,
            ..
        } => row.extend([
            if *sparse { "sparse" } else { "dense" }.into(),
            columns.to_string(),
            number(*min),
            number(*max),
            number(*mean),
            format!("{:.0}%", 100.0 * zeros),
            constant_columns.to_string(),
        ]),
        ViewContents::Strings {
            shortest,
            longest,
            alphabet,
        } => {
            let lengths = if shortest == longest {
                format!("length {shortest}")
            } else {
                format!("length {shortest} to {longest}")
            };
            let letters: String = alphabet.chars().take(LISTED).collect();
            row.extend(["strings".into(), lengths, letters]);
        }
        ViewContents::Matrix { columns } => row.extend(["matrix".into(), columns.to_string()]),
    }
    row
}

fn kernels_text(report: &KernelReport) -> String {
    let mut order: Vec<&KernelSummary> = report.kernels.iter().collect();
    let mut title = format!("\n{} kernels", order.len());
    if order.len() == 1 {
        title = "\n1 kernel".into();
    }
    let ranked = report
        .kernels
        .iter()
        .all(|k| k.leave_one_out_error.is_some());
    if ranked {
        let of = |k: &KernelSummary| k.leave_one_out_error.unwrap_or(f64::INFINITY);
        order.sort_by(|a, b| of(a).total_cmp(&of(b)));
        title.push_str(", those that predict best by themselves first");
    } else if order.len() > LISTED {
        order.sort_by(|a, b| {
            let of = |k: &KernelSummary| k.target_alignment.unwrap_or(k.variation);
            of(b).total_cmp(&of(a))
        });
        let by = if report.kernels[0].target_alignment.is_some() {
            "best aligned with the labels"
        } else {
            "with most variation"
        };
        title.push_str(&format!(", the {LISTED} {by}"));
    }
    let rows: Vec<Vec<String>> = order
        .iter()
        .take(LISTED)
        .map(|k| {
            let mut row = vec![k.name.clone()];
            row.extend(k.leave_one_out_error.map(|e| format!("{e:.4}")));
            row.extend([
                k.target_alignment.map_or("-".into(), |a| format!("{a:.3}")),
                number(k.min),
                number(k.max),
                number(k.mean_diagonal),
                number(k.mean_off_diagonal),
                number(k.smallest_eigenvalue),
                format!("{:.1}", k.effective_rank),
            ]);
            row
        })
        .collect();
    let mut header = vec!["kernel"];
    if ranked {
        header.push("left-out error");
    }
    header.extend([
        "alignment",
        "min",
        "max",
        "mean k(x,x)",
        "mean k(x,x')",
        "smallest eigenvalue",
        "effective rank",
    ]);
    format!("{title}\n{}", table(&header, &rows))
}

fn alignments_text(report: &KernelReport) -> String {
    let names: Vec<&str> = report.kernels.iter().map(|k| k.name.as_str()).collect();
    let count = names.len();
    if count < 2 {
        return String::new();
    }
    if count <= WHOLE_TABLE {
        let numbers: Vec<String> = (1..=count).map(|m| m.to_string()).collect();
        let mut header = vec!["alignment of pairs", "#"];
        header.extend(numbers.iter().map(String::as_str));
        let rows: Vec<Vec<String>> = report
            .alignments
            .iter()
            .enumerate()
            .map(|(m, row)| {
                let mut cells = vec![names[m].to_owned(), numbers[m].clone()];
                cells.extend(row[..=m].iter().map(|a| format!("{a:.3}")));
                cells
            })
            .collect();
        return format!("\n{}", table(&header, &rows));
    }
    let mut pairs: Vec<(f32, usize, usize)> = Vec::new();
    for (a, row) in report.alignments.iter().enumerate() {
        pairs.extend(row[..a].iter().enumerate().map(|(b, v)| (*v, b, a)));
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let shown = |pairs: &[(f32, usize, usize)]| {
        let rows: Vec<Vec<String>> = pairs
            .iter()
            .map(|&(v, a, b)| vec![format!("{} ~ {}", names[a], names[b]), format!("{v:.3}")])
            .collect();
        table(&["pair", "alignment"], &rows)
    };
    format!(
        "\nmost alike of {} pairs\n{}\nleast alike\n{}",
        pairs.len(),
        shown(&pairs[..EXTREME_PAIRS]),
        shown(&pairs[pairs.len() - EXTREME_PAIRS..])
    )
}
