//! Kernel weights as bars.

use crate::output::{number, table_left_from};
use multikernel::record::ResultObject;

/// Kernels and groups that are shown; JSON and the model have all.
const LISTED: usize = 20;
/// Blocks of the longest bar.
const LONGEST: usize = 24;

/// A kernel and its weight, the mean over the problems where there are several.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) weight: f64,
}

impl Bar {
    pub(crate) fn new(name: &str, group: &str, weights: &[f64]) -> Bar {
        Bar {
            name: name.to_owned(),
            group: group.to_owned(),
            weight: weights.iter().sum::<f64>() / weights.len().max(1) as f64,
        }
    }

    /// Those of all kernels of a result.
    pub(crate) fn all(result: &ResultObject) -> Vec<Bar> {
        let kernels = result.kernels.iter();
        kernels
            .map(|kernel| Bar::new(&kernel.name, &kernel.group, &kernel.weight.0))
            .collect()
    }
}

/// The weights of kernels and, where groups hold several of them, of groups.
pub(crate) fn text(bars: &[Bar], problems: usize) -> String {
    let mean = match problems {
        0 | 1 => String::new(),
        problems => format!(", mean over {problems} problems"),
    };
    let mut out = format!("\nkernel weights{mean}\n");
    let mut order: Vec<&Bar> = bars.iter().collect();
    order.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let largest = order.first().map_or(0.0, |bar| bar.weight);
    let used = order.iter().filter(|bar| bar.weight > 0.0).count();
    let shown = used.min(LISTED);
    let groups = groups(bars);
    let with_groups = groups.len() > 1 && groups.len() < bars.len();
    let rows: Vec<Vec<String>> = order[..shown]
        .iter()
        .map(|bar| {
            let mut row = vec![
                bar.name.clone(),
                number(bar.weight),
                drawn(bar.weight, largest),
            ];
            if with_groups {
                row.push(bar.group.clone());
            }
            row
        })
        .collect();
    let header = ["kernel", "weight", "", "group"];
    let header = &header[..3 + usize::from(with_groups)];
    // Bars, and what follows them, begin where their columns begin.
    out.push_str(&table_left_from(2, header, rows));
    if used > shown {
        let rest: f64 = order[shown..used].iter().map(|bar| bar.weight).sum();
        out.push_str(&format!(
            "  … and {} more with weights together {}\n",
            used - shown,
            number(rest)
        ));
    }
    if used < bars.len() {
        out.push_str(&format!(
            "  {} of {} kernels have weight 0\n",
            bars.len() - used,
            bars.len()
        ));
    }
    if with_groups && groups.len() <= LISTED {
        let total: f64 = groups.iter().map(|g| g.1).sum();
        let largest = groups.iter().map(|g| g.1).fold(0.0, f64::max);
        let rows = groups
            .iter()
            .map(|(name, weight)| {
                let share = if total > 0.0 { weight / total } else { 0.0 };
                vec![
                    (*name).to_owned(),
                    format!("{:.1}%", 100.0 * share),
                    drawn(*weight, largest),
                ]
            })
            .collect();
        out.push_str("\nshare of all weights by group\n");
        out.push_str(&table_left_from(2, &["group", "share", ""], rows));
    }
    out
}

/// Groups in order of appearance and the sums of their weights.
fn groups(bars: &[Bar]) -> Vec<(&str, f64)> {
    let mut groups: Vec<(&str, f64)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for bar in bars {
        let place = *places.entry(bar.group.as_str()).or_insert(groups.len());
        if place == groups.len() {
            groups.push((&bar.group, 0.0));
        }
        groups[place].1 += bar.weight;
    }
    groups
}

/// A bar, to an eighth of a block.
fn drawn(value: f64, largest: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if !(value > 0.0 && largest > 0.0) {
        return String::new();
    }
    let eighths = ((value / largest) * (8 * LONGEST) as f64).round() as usize;
    let eighths = eighths.clamp(1, 8 * LONGEST);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(weights: &[f64], groups: usize) -> Vec<Bar> {
        weights
            .iter()
            .enumerate()
            .map(|(m, &weight)| Bar {
                name: format!("k{m}"),
                group: format!("g{}", m % groups),
                weight,
            })
            .collect()
    }

    #[test]
    fn the_largest_stands_first_and_zeros_are_counted() {
        let text = text(&bars(&[0.25, 0.5, 0.0], 3), 1);
        let lines: Vec<&str> = text.trim().lines().collect();
        assert!(lines[2].contains("k1") && lines[2].ends_with(&"█".repeat(LONGEST)));
        assert!(lines[3].contains("k0") && lines[3].ends_with(&"█".repeat(LONGEST / 2)));
        assert!(lines[4].contains("1 of 3 kernels have weight 0"), "{text}");
        assert!(
            !text.contains("group"),
            "every kernel is its own group: {text}"
        );
    }

    #[test]
    fn a_thousand_kernels_are_a_page() {
        let text = text(&bars(&[0.1; 1000], 4), 10);
        assert!(text.lines().count() < 40, "{text}");
        assert!(
            text.contains("980 more with weights together 98.0"),
            "{text}"
        );
        assert!(text.contains("mean over 10 problems"));
        assert_eq!(text.matches("25.0%").count(), 4);
    }

    #[test]
    fn nothing_has_weight() {
        assert!(text(&bars(&[0.0, 0.0], 2), 1).contains("2 of 2 kernels have weight 0"));
    }
}
