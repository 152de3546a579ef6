//! How kernels resemble the targets and each other.

use super::Section;
use super::draw::{Chart, Dot, Scale};
use super::facts::Facts;
use super::heat::{Cell, Heat};
use super::text::{esc, fixed, percent, several, short};
use multikernel::record::Alignment;

/// Kernels of the map of pairs, also where a file has more.
const MOST_SHOWN: usize = 40;
/// Points of the picture of all kernels.
const MOST_DOTS: usize = 1500;
/// Pairs that are listed.
const LISTED: usize = 5;
/// Pairs that are so alike say the same.
const SAME: f64 = 0.95;

pub(super) fn section(facts: &Facts) -> Option<Section> {
    let alignment = facts.record.alignment.as_ref()?;
    let mut body = String::from("<div class=\"figures\">");
    body.push_str(&with_targets(facts, alignment));
    body.push_str(&pairs(facts, alignment));
    body.push_str("</div>");
    let on = match alignment.samples > 0 && alignment.samples < facts.n_samples {
        true => format!(" Computed on a sample of {} samples.", alignment.samples),
        false => String::new(),
    };
    Some(Section {
        id: "alignments",
        name: "Alignments",
        title: "What kernels have in common".into(),
        lead: format!(
            "Alignment compares two similarities: 1 if they agree on every pair of samples, 0 if they have nothing in common. Kernels that are much alike share their weight: do not read much into how it is divided between them.{on}"
        ),
        body,
    })
}

fn with_targets(facts: &Facts, alignment: &Alignment) -> String {
    let dots: Vec<Dot> = facts
        .by_weight()
        .into_iter()
        .filter_map(|m| {
            let kernel = &facts.kernels[m];
            let x = (*alignment.targets.get(m)?)?;
            let colour = if facts.grouped() {
                facts.group(kernel).colour
            } else {
                0
            };
            Some(Dot {
                x,
                y: 100.0 * kernel.share,
                radius: 4.0,
                class: format!("g{colour} faint"),
                tip: format!(
                    "{}: alignment {}, share {}",
                    kernel.name,
                    fixed(x, 2),
                    percent(kernel.share)
                ),
            })
        })
        .take(MOST_DOTS)
        .collect();
    let (Some(x), Some(y)) = (
        Scale::around(dots.iter().map(|d| d.x).chain([0.0])),
        Scale::around(dots.iter().map(|d| d.y).chain([0.0])),
    ) else {
        return String::new();
    };
    if dots.is_empty() {
        return String::new();
    }
    let chart = Chart {
        title: "Share of the weights against the alignment of the kernel alone with the targets",
        x,
        y,
        x_name: "alignment with the targets, alone",
        y_name: "share of the weights, %",
        lines: Vec::new(),
        dots,
    };
    format!(
        "<figure><figcaption>Weight against alignment with the targets</figcaption>{}<p class=\"muted\">A kernel far to the right with a small share is good alone, but others say the same.</p></figure>",
        chart.svg()
    )
}

fn pairs(facts: &Facts, alignment: &Alignment) -> String {
    let shown: Vec<(usize, usize)> = alignment
        .shown
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, m)| *m < facts.kernels.len())
        .take(MOST_SHOWN)
        .collect();
    if shown.len() < 2 {
        return String::new();
    }
    let name = |m: usize| &facts.kernels[m].name;
    let mut listed: Vec<(f64, usize, usize)> = Vec::new();
    for &(a, m) in &shown {
        let later = shown.iter().filter(|(b, _)| a < *b);
        listed.extend(later.filter_map(|&(b, k)| Some((value(alignment, a, b)?, m, k))));
    }
    listed.sort_by(|a, b| b.0.total_cmp(&a.0));
    let alike = listed.iter().filter(|pair| pair.0 >= SAME).count();
    let most: Vec<String> = listed
        .iter()
        .take(LISTED)
        .map(|&(v, m, k)| {
            format!(
                "<li>{} and {}: {}</li>",
                short(name(m), 40),
                short(name(k), 40),
                fixed(v, 3)
            )
        })
        .collect();
    format!(
        "<figure><figcaption>Alignment of pairs{}</figcaption>{}<details><summary>{} alike to {} or more; the most alike</summary><ul>{}</ul></details></figure>",
        match shown.len() < facts.kernels.len() {
            true => esc(&format!(", of the {} heaviest kernels", shown.len())),
            false => String::new(),
        },
        pairs_map(facts, alignment, &shown),
        several(alike, "pair is", "pairs are"),
        SAME,
        most.join("")
    )
}

/// The alignment of two of the kernels that it is known of.
fn value(alignment: &Alignment, a: usize, b: usize) -> Option<f64> {
    let value = alignment.pairwise.get(a)?.get(b).copied();
    value.filter(|v| v.is_finite())
}

/// A map of all pairs; `shown` are places in the alignment and the kernels that they are of.
fn pairs_map(facts: &Facts, alignment: &Alignment, shown: &[(usize, usize)]) -> String {
    let name = |m: usize| &facts.kernels[m].name;
    let mut cells = Vec::new();
    for &(a, m) in shown {
        for &(b, k) in shown {
            let found = value(alignment, a, b);
            cells.push(Cell {
                strength: found.map(f64::abs),
                class: match found {
                    Some(v) if v < 0.0 => "wrong",
                    _ => "accent",
                },
                text: found.map_or(String::new(), |v| fixed(v, 2)),
                tip: format!(
                    "{} and {}: {}",
                    name(m),
                    name(k),
                    fixed(found.unwrap_or(f64::NAN), 3)
                ),
                framed: false,
            });
        }
    }
    let heat = Heat {
        title: "Alignment of each pair of kernels",
        rows: "",
        columns: "the same kernels",
        row_names: shown
            .iter()
            .enumerate()
            .map(|(place, &(_, m))| format!("{} · {}", name(m), place + 1))
            .collect(),
        column_names: (1..=shown.len()).map(|k| k.to_string()).collect(),
        cells,
    };
    heat.svg(132.0, 24)
}
