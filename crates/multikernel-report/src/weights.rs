//! Which kernels count, how sure that is, and what groups have together.

use super::Section;
use super::draw::bar;
use super::facts::{Facts, KernelFact};
use super::heat::{Cell, Heat};
use super::summary::ends;
use super::text::{
    esc, fixed, level, metric, name, number, percent, several, short, short_percent,
};
use multikernel::record::{Stability, Without};

/// Kernels beyond this are not listed: a page of them is of no use, and the model file has all.
const MOST_ROWS: usize = 5000;
/// Groups that are drawn.
const MOST_GROUPS: usize = 24;
/// Kernels and problems of the map of weights by problem.
const MAP_KERNELS: usize = 24;
const MAP_PROBLEMS: usize = 45;

/// A column of the table beyond name, group, bar and share.
struct Column {
    key: &'static str,
    head: &'static str,
    /// What it means, in a sentence.
    help: String,
    /// Number to sort by and text, for each kernel.
    cells: Vec<(f64, String)>,
}

pub(super) fn section(facts: &Facts) -> Section {
    let stability = facts.record.stability.as_ref();
    let mean = match facts.problems {
        1 => String::new(),
        problems => format!(
            " Weights are means over {} that were solved one by one.",
            several(problems, "problem", "problems")
        ),
    };
    let mut lead = format!(
        "Each bar is the kernel’s share of all weights: how much of the combined similarity comes from it.{mean}"
    );
    match stability {
        Some(stability) => lead.push_str(&format!(
            " Whiskers are {} intervals over {} ({}).",
            level(stability.level),
            several(stability.rounds, "training", "trainings"),
            esc(&stability.method)
        )),
        None if facts.stream.is_none() => lead.push_str(match facts.is_of_program() {
            true => " How sure they are was not looked at: <code>--stability 200</code> at training adds intervals.",
            false => " How sure they are was not looked at.",
        }),
        None => {}
    }
    let mut body = String::new();
    if facts.grouped() {
        body.push_str(&groups(facts));
    }
    body.push_str(&table(facts));
    body.push_str(&by_problem(facts));
    Section {
        id: "weights",
        name: "Weights",
        title: "Which kernels count".into(),
        lead,
        body,
    }
}

fn groups(facts: &Facts) -> String {
    let shown = &facts.groups[..facts.groups.len().min(MOST_GROUPS)];
    let largest = shown.first().map_or(0.0, |g| g.share);
    let mut out = String::from(
        "<figure class=\"groups\"><figcaption>Share of each group of kernels</figcaption><table class=\"bars\"><tbody>",
    );
    for group in shown {
        out.push_str(&format!(
            "<tr><th scope=\"row\"><i class=\"key g{}\"></i>{}</th><td class=\"track\">{}</td><td class=\"num\">{}</td><td class=\"few\">{}</td></tr>",
            group.colour,
            short(&group.name, 60),
            bar(group.share, None, largest, &format!("g{}", group.colour)),
            percent(group.share),
            several(group.kernels, "kernel", "kernels")
        ));
    }
    out.push_str("</tbody></table>");
    if facts.groups.len() > shown.len() {
        let rest: f64 = facts.groups[shown.len()..].iter().map(|g| g.share).sum();
        out.push_str(&format!(
            "<p class=\"muted\">… and {} more with {} together.</p>",
            facts.groups.len() - shown.len(),
            percent(rest)
        ));
    }
    out.push_str("</figure>");
    out
}

fn table(facts: &Facts) -> String {
    let stability = facts.record.stability.as_ref();
    let columns = columns(facts);
    let order = facts.by_weight();
    let listed = &order[..order.len().min(MOST_ROWS)];
    let grouped = facts.grouped();
    let interval = |m: usize| stability.and_then(|s| s.shares.get(m)).and_then(ends);
    let full = listed
        .iter()
        .map(|&m| facts.kernels[m].share.max(interval(m).map_or(0.0, |i| i.1)))
        .fold(0.0, f64::max);

    let mut options =
        String::from("<option value=\"share\">share</option><option value=\"name\">name</option>");
    let mut head = sort_head("name", "kernel", false);
    if grouped {
        options.push_str("<option value=\"group\">group</option>");
        head.push_str(&sort_head("group", "group", false));
    }
    head.push_str("<th class=\"track\"></th>");
    head.push_str(&sort_head("share", "share", true));
    for column in &columns {
        options.push_str(&format!(
            "<option value=\"{}\">{}</option>",
            column.key, column.head
        ));
        head.push_str(&sort_head(column.key, column.head, true));
    }
    let mut out = format!(
        "<div class=\"panel\"><div class=\"tools js-only\"><label>Find <input type=\"search\" id=\"filter\" placeholder=\"part of a name or group\" autocomplete=\"off\"></label><label>Sort by <select id=\"sort\">{options}</select></label><span id=\"shown\" class=\"muted\" aria-live=\"polite\"></span></div>"
    );
    out.push_str(&format!(
        "<table class=\"bars kernels{}\" id=\"kernels\"><thead><tr>{head}</tr></thead><tbody>",
        if columns.len() > 2 { " many" } else { "" }
    ));
    for &m in listed {
        let kernel = &facts.kernels[m];
        out.push_str(&row(facts, kernel, grouped, full, interval(m)));
        for column in &columns {
            let (value, text) = &column.cells[m];
            out.push_str(&format!(
                "<td class=\"num\" data-n=\"{}\" data-label=\"{}\">{text}</td>",
                sortable(*value),
                column.head
            ));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table><button type=\"button\" class=\"js-only plain\" id=\"all\" hidden></button>");
    if order.len() > listed.len() {
        let rest: f64 = order[listed.len()..]
            .iter()
            .map(|&m| facts.kernels[m].share)
            .sum();
        out.push_str(&format!(
            "<p class=\"muted\">{} more kernels with {} together are not listed here; the model file has all.</p>",
            order.len() - listed.len(),
            percent(rest)
        ));
    }
    out.push_str("</div>");
    let help: String = columns
        .iter()
        .map(|column| format!("<li><b>{}</b>: {}</li>", column.head, column.help))
        .collect();
    if !help.is_empty() {
        out.push_str(&format!("<ul class=\"help\">{help}</ul>"));
    }
    out
}

/// For browsers: NaN is empty, and sorts last.
fn sortable(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value:e}"),
        false => String::new(),
    }
}

fn sort_head(key: &str, text: &str, number: bool) -> String {
    format!(
        "<th scope=\"col\" data-key=\"{key}\"{}><button type=\"button\" class=\"plain\">{text}</button></th>",
        if number { " class=\"num\"" } else { "" }
    )
}

fn row(
    facts: &Facts,
    kernel: &KernelFact,
    grouped: bool,
    full: f64,
    interval: Option<(f64, f64)>,
) -> String {
    let group = facts.group(kernel);
    let colour = if grouped { group.colour } else { 0 };
    let zero = if kernel.weight > 0.0 {
        ""
    } else {
        " class=\"zero\""
    };
    let mut out = format!("<tr{zero}><th scope=\"row\">{}</th>", name(&kernel.name));
    if grouped {
        out.push_str(&format!(
            "<td class=\"group\"><i class=\"key g{colour}\"></i>{}</td>",
            esc(&group.name)
        ));
    }
    let class = format!("g{colour}");
    out.push_str(&format!(
        "<td class=\"track\">{}</td><td class=\"num\" data-n=\"{}\" data-label=\"share\">{}</td>",
        bar(kernel.share, interval, full, &class),
        sortable(kernel.share),
        short_percent(kernel.share)
    ));
    out
}

/// A number and its text for each kernel; a list from a file may be too short.
fn cells(values: &[f64], kernels: usize, text: fn(f64) -> String) -> Vec<(f64, String)> {
    let known = |m: usize| {
        values
            .get(m)
            .map_or((f64::NAN, "–".into()), |&v| (v, text(v)))
    };
    (0..kernels).map(known).collect()
}

fn columns(facts: &Facts) -> Vec<Column> {
    let kernels = || facts.kernels.iter().enumerate();
    let mut out = vec![Column {
        key: "weight",
        head: "weight β",
        help: "the combined kernel is the sum of weight times kernel, on the kernels as they were normalised.".into(),
        cells: kernels().map(|(_, k)| (k.weight, number(k.weight))).collect(),
    }];
    if let Some(stability) = &facts.record.stability {
        stability_columns(stability, facts.kernels.len(), &mut out);
    }
    if let Some(alignment) = &facts.record.alignment
        && alignment.targets.iter().any(Option::is_some)
    {
        let values: Vec<f64> = alignment
            .targets
            .iter()
            .map(|t| t.unwrap_or(f64::NAN))
            .collect();
        out.push(Column {
            key: "alignment",
            head: "alignment",
            help: "how well the kernel alone agrees with the targets, 1 at best (centred alignment). A small weight beside a large alignment: other kernels say the same.".into(),
            cells: cells(&values, facts.kernels.len(), |v| fixed(v, 2)),
        });
    }
    out
}

fn stability_columns(stability: &Stability, kernels: usize, out: &mut Vec<Column>) {
    if stability.shares.iter().any(|share| ends(share).is_some()) {
        let widths: Vec<f64> = stability.shares.iter().map(|s| s.high - s.low).collect();
        let mut written = cells(&widths, kernels, number);
        for (cell, share) in written.iter_mut().zip(&stability.shares) {
            if let Some((low, high)) = ends(share) {
                cell.1 = format!("{} to {}", fixed(100.0 * low, 1), short_percent(high));
            }
        }
        out.push(Column {
            key: "interval",
            head: "interval",
            help: format!(
                "where the share lies in {} of the repeated trainings; sorts by its width.",
                level(stability.level)
            ),
            cells: written,
        });
    }
    if !stability.chosen.is_empty() {
        out.push(Column {
            key: "chosen",
            head: "chosen",
            help: "share of the repeated trainings in which the kernel had a weight at all.".into(),
            cells: cells(&stability.chosen, kernels, short_percent),
        });
    }
    if let Some(shuffled) = &stability.shuffled {
        out.push(Column {
            key: "p",
            head: "p shuffled",
            help: format!(
                "how often a training on shuffled targets gave the kernel at least this weight ({}). A large value says that targets without meaning give it as much.",
                several(shuffled.rounds, "training", "trainings")
            ),
            cells: cells(&shuffled.p_value, kernels, |p| fixed(p, 3)),
        });
    }
    if let Some(without) = &stability.without {
        out.push(without_column(without, kernels));
    }
}

fn without_column(without: &Without, kernels: usize) -> Column {
    let values: Vec<f64> = without
        .change
        .iter()
        .map(|c| c.unwrap_or(f64::NAN))
        .collect();
    Column {
        key: "without",
        head: "without it",
        help: format!(
            "change of the {} (with all kernels {}) when the kernel is left out and the rest trained anew; negative: worse without it.",
            metric(&without.metric),
            number(without.all)
        ),
        cells: cells(&values, kernels, |v| match v > 0.0 {
            true => format!("+{}", fixed(v, 3)),
            false => fixed(v, 3),
        }),
    }
}

/// Where each problem has weights of its own, a map of them.
fn by_problem(facts: &Facts) -> String {
    if facts.problems < 2 {
        return String::new();
    }
    let kernels: Vec<usize> = facts.by_weight().into_iter().take(MAP_KERNELS).collect();
    let problems = facts.problems.min(MAP_PROBLEMS);
    let largest = kernels
        .iter()
        .flat_map(|&m| &facts.kernels[m].weights)
        .copied()
        .fold(0.0, f64::max);
    let name = |k: usize| match facts.record.history.get(k).map(|rounds| &rounds.problem) {
        Some(name) if !name.is_empty() => name.clone(),
        _ => (k + 1).to_string(),
    };
    let cells = kernels.iter().flat_map(|&m| {
        let kernel = &facts.kernels[m];
        (0..problems).map(move |k| {
            let weight = kernel.weights.get(k).copied();
            Cell {
                strength: weight.map(|w| if largest > 0.0 { w / largest } else { 0.0 }),
                class: "accent",
                text: String::new(),
                tip: format!(
                    "{}, {}: weight {}",
                    kernel.name,
                    name(k),
                    number(weight.unwrap_or(f64::NAN))
                ),
                framed: false,
            }
        })
    });
    let heat = Heat {
        title: "Weights of the kernels in each problem",
        rows: "",
        columns: "problems",
        row_names: kernels
            .iter()
            .map(|&m| facts.kernels[m].name.clone())
            .collect(),
        column_names: (1..=problems).map(|k| k.to_string()).collect(),
        cells: cells.collect(),
    };
    format!(
        "<figure><figcaption>Weights in each of the problems{}</figcaption>{}</figure>",
        match problems < facts.problems {
            true => format!(", the first {problems}"),
            false => String::new(),
        },
        heat.svg(132.0, 24)
    )
}
