//! How the settings were chosen, and how the solver got to its answer.

use super::Section;
use super::draw::{Chart, Line, Scale};
use super::facts::Facts;
use super::heat::{Cell, Heat};
use super::summary::ends;
use super::text::{duration, esc, metric, metric_value, number, percent, several};
use multikernel::problem::relative_gap;
use multikernel::record::{Point, Rounds, Tuning};

/// Points of a line.
const MOST_POINTS: usize = 400;
/// Problems whose rounds are drawn; of more, those with the largest gaps.
const MOST_PROBLEMS: usize = 8;
/// Sheets of the grid that are drawn.
const MOST_BANKS: usize = 6;
/// Rows and columns of a grid that can be looked at.
const MOST_SIDE: usize = 40;

pub(super) fn tuning(facts: &Facts) -> Option<Section> {
    let tuning = facts.record.tuning.as_ref()?;
    let chosen = tuning.points.get(tuning.chosen);
    let tried = several(
        tuning.points.len(),
        "combination of settings was",
        "combinations of settings were",
    );
    let mut lead = match tuning.folds {
        1 => format!("{tried} tried on one fold of the samples, where the search was stopped,"),
        folds => format!("{tried} tried by {folds}-fold cross-validation"),
    };
    if tuning.seconds.is_finite() && tuning.seconds > 0.0 {
        lead.push_str(&format!(" in {}", duration(tuning.seconds)));
    }
    lead.push('.');
    if let Some(point) = chosen {
        let error = metric_value(&tuning.metric, point.standard_error);
        lead.push_str(&format!(
            " Chosen by the rule “{}”: <b>{}</b> with a mean {} of {}{}.",
            esc(&tuning.rule),
            place(tuning, point),
            metric(&tuning.metric),
            metric_value(&tuning.metric, point.mean),
            match tuning.folds {
                1 => String::new(),
                _ => format!(" ± {error} (standard error)"),
            }
        ));
    }
    lead.push_str(&sureness(tuning));
    let mut body = String::from("<div class=\"figures\">");
    let banks = tuning.banks.len().clamp(1, MOST_BANKS);
    for bank in 0..banks {
        body.push_str(&sheet(tuning, bank));
    }
    body.push_str("</div>");
    if tuning.banks.len() > banks {
        body.push_str(&format!(
            "<p class=\"muted\">{} more choices of kernels are not drawn.</p>",
            tuning.banks.len() - banks
        ));
    }
    Some(Section {
        id: "tuning",
        name: "Settings",
        title: "How the settings were chosen".into(),
        lead,
        body,
    })
}

/// How sure the choice is, in words.
fn sureness(tuning: &Tuning) -> String {
    if tuning.folds == 1 {
        return " One fold does not tell how sure that is.".into();
    }
    let mut out = String::new();
    let others = tuning.within_error.saturating_sub(1);
    out.push_str(&match others {
        0 => " No other point is within one standard error of the best.".to_owned(),
        n => format!(
            " {} within one standard error of the best: the data do not tell them apart.",
            several(n, "other point is", "other points are")
        ),
    });
    if tuning.agreement.is_finite() && tuning.agreement > 0.0 {
        out.push_str(&format!(
            " When the folds are drawn anew, the same point is the best in {} of the draws.",
            percent(tuning.agreement)
        ));
    }
    if let Some(nested) = &tuning.nested {
        let range = ends(nested).map_or(String::new(), |(low, high)| {
            format!(
                " ({} to {})",
                metric_value(&tuning.metric, low),
                metric_value(&tuning.metric, high)
            )
        });
        out.push_str(&format!(
            " The whole search reaches <b>{}{range}</b> on samples it never saw (nested cross-validation), which is the honest number: the best of many looks better than it is.",
            metric_value(&tuning.metric, nested.value)
        ));
    }
    out
}

fn place(tuning: &Tuning, point: &Point) -> String {
    let norm = tuning.norms.get(point.norm).map_or("?", String::as_str);
    let cost = tuning.costs.get(point.cost).copied().unwrap_or(f64::NAN);
    let bank = match tuning.banks.get(point.bank) {
        Some(bank) if !bank.is_empty() => format!(", {}", esc(bank)),
        _ => String::new(),
    };
    format!("norm {}, C = {}{bank}", esc(norm), number(cost))
}

fn sheet(tuning: &Tuning, bank: usize) -> String {
    let (rows, columns) = (tuning.norms.len(), tuning.costs.len());
    if rows == 0 || columns == 0 || rows > MOST_SIDE || columns > MOST_SIDE {
        return String::new();
    }
    let mut at: Vec<Option<usize>> = vec![None; rows * columns];
    for (k, point) in tuning.points.iter().enumerate() {
        if point.bank == bank && point.norm < rows && point.cost < columns {
            at[point.norm * columns + point.cost] = Some(k);
        }
    }
    // One scale for all sheets, so that they can be compared.
    let means = || {
        tuning
            .points
            .iter()
            .map(|p| p.mean)
            .filter(|m| m.is_finite())
    };
    let low = means().fold(f64::INFINITY, f64::min);
    let high = means().fold(f64::NEG_INFINITY, f64::max);
    let strength = |mean: f64| {
        mean.is_finite().then(|| match high > low {
            true => (mean - low) / (high - low),
            false => 1.0,
        })
    };
    let cells = at.iter().map(|found| {
        let untried = Cell {
            strength: None,
            class: "accent",
            text: String::new(),
            tip: "not tried".into(),
            framed: false,
        };
        let point = found.and_then(|k| Some((k, tuning.points.get(k)?)));
        point.map_or(untried, |(k, point)| Cell {
            strength: strength(point.mean),
            ..tried(tuning, point, k == tuning.chosen)
        })
    });
    let cells = cells.collect();
    let heat = Heat {
        title: "Mean over the folds for every norm and C; the chosen one is framed",
        rows: "norm",
        columns: "C",
        row_names: tuning.norms.clone(),
        column_names: tuning.costs.iter().map(|c| number(*c)).collect(),
        cells,
    };
    let name = match tuning.banks.get(bank) {
        Some(bank) if !bank.is_empty() => format!("{}: ", esc(bank)),
        _ => String::new(),
    };
    let unit = match &tuning.metric[..] {
        "accuracy" | "balanced_accuracy" => " in %",
        _ => "",
    };
    format!(
        "<figure class=\"wide\"><figcaption>{name}{}{unit}, a stronger colour is better; the frame is the choice</figcaption>{}</figure>",
        metric(&tuning.metric),
        heat.svg(58.0, 10)
    )
}

/// The field of a point that was tried; how strong its colour is, its neighbours must tell.
fn tried(tuning: &Tuning, point: &Point, chosen: bool) -> Cell {
    Cell {
        strength: None,
        class: "accent",
        text: match &tuning.metric[..] {
            "accuracy" | "balanced_accuracy" => super::text::fixed(100.0 * point.mean, 1),
            _ => super::text::fixed(point.mean, 2),
        },
        tip: format!(
            "{}norm {}, C = {}: {} ± {} over {} folds{}",
            if chosen { "chosen: " } else { "" },
            tuning.norms.get(point.norm).map_or("", String::as_str),
            number(tuning.costs.get(point.cost).copied().unwrap_or(f64::NAN)),
            metric_value(&tuning.metric, point.mean),
            metric_value(&tuning.metric, point.standard_error),
            point.folds.len(),
            if point.converged {
                ""
            } else {
                "; not all fits converged"
            }
        ),
        framed: chosen,
    }
}

pub(super) fn convergence(facts: &Facts) -> Option<Section> {
    let history = &facts.record.history;
    let rounds = history
        .iter()
        .map(|problem| problem.primal.len())
        .max()
        .unwrap_or(0);
    if rounds == 0 {
        return None;
    }
    let mut order: Vec<usize> = (0..history.len()).collect();
    order.sort_by(|&a, &b| last_gap(&history[b]).total_cmp(&last_gap(&history[a])));
    order.truncate(MOST_PROBLEMS);
    order.sort_unstable();
    let mut body = String::from("<div class=\"figures\">");
    body.push_str(&gaps(history, &order, rounds));
    if let [only] = &history[..] {
        body.push_str(&objectives(only));
    }
    body.push_str(&validation(history));
    body.push_str("</div>");
    let several = match history.len() > order.len() {
        true => format!(
            " Of {} problems those with the largest gaps are drawn.",
            history.len()
        ),
        false => String::new(),
    };
    Some(Section {
        id: "convergence",
        name: "Convergence",
        title: "How the solver got there".into(),
        lead: format!(
            "The optimum is never above the objective of the answer at hand (primal) and never below the bound (dual). What lies between them is the gap: it proves how far the answer can be from the best one.{several}"
        ),
        body,
    })
}

fn last_gap(rounds: &Rounds) -> f64 {
    let last = rounds.primal.last().zip(rounds.dual.last());
    last.map_or(0.0, |(p, d)| relative_gap(*p, *d))
}

/// Places of a long list, evenly spread, and the last.
fn places(length: usize) -> Vec<usize> {
    let stride = length.div_ceil(MOST_POINTS).max(1);
    let mut places: Vec<usize> = (0..length).step_by(stride).collect();
    if places.last().is_some_and(|&last| last + 1 < length) {
        places.push(length - 1);
    }
    places
}

fn gaps(history: &[Rounds], order: &[usize], rounds: usize) -> String {
    let lines: Vec<Line> = order
        .iter()
        .enumerate()
        .map(|(k, &problem)| {
            let rounds = &history[problem];
            let length = rounds.primal.len().min(rounds.dual.len());
            let points = places(length).into_iter().map(|r| {
                let gap = relative_gap(rounds.primal[r], rounds.dual[r]);
                (r as f64 + 1.0, gap)
            });
            Line {
                name: match rounds.problem.is_empty() {
                    true => "relative gap".into(),
                    false => format!("relative gap, {}", rounds.problem),
                },
                points: points.collect(),
                class: format!("s{k}"),
            }
        })
        .collect();
    let all = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|p| p.1));
    let Some(y) = Scale::powers(all.filter(|gap| gap.is_finite())) else {
        return String::new();
    };
    let chart = Chart {
        title: "Relative gap after every round",
        x: Scale::rounds(rounds),
        y,
        x_name: "round",
        y_name: "relative gap",
        lines,
        dots: Vec::new(),
    };
    format!(
        "<figure><figcaption>Relative gap, round by round</figcaption>{}</figure>",
        chart.svg()
    )
}

fn objectives(rounds: &Rounds) -> String {
    let length = rounds.primal.len().min(rounds.seconds.len());
    // One round is a point, not a course.
    if length < 2 {
        return String::new();
    }
    let line = |name: &str, values: &[f64], class: &str| Line {
        name: name.into(),
        points: places(length.min(values.len()))
            .into_iter()
            .map(|r| (rounds.seconds[r], values[r]))
            .collect(),
        class: class.into(),
    };
    let lines = vec![
        line("primal objective", &rounds.primal, "first"),
        line("dual bound", &rounds.dual, "second dashed"),
    ];
    // The first rounds may be far off; what counts is where both end.
    let value = |l: &Line| l.points.iter().map(|p| p.1).collect::<Vec<f64>>();
    let (primal, dual) = (value(&lines[0]), value(&lines[1]));
    let (Some(x), Some(y)) = (
        Scale::around(rounds.seconds.iter().copied().take(length)),
        Scale::around(primal.into_iter().chain(dual)),
    ) else {
        return String::new();
    };
    let chart = Chart {
        title: "Primal and dual objective over time",
        x,
        y,
        x_name: "seconds",
        y_name: "objective",
        lines,
        dots: Vec::new(),
    };
    format!(
        "<figure><figcaption>Objective over time: <span class=\"word first\">primal, solid</span>, <span class=\"word second\">dual bound, dashed</span></figcaption>{}</figure>",
        chart.svg()
    )
}

fn validation(history: &[Rounds]) -> String {
    let Some(rounds) = history.iter().find(|rounds| rounds.validation.len() > 1) else {
        return String::new();
    };
    let points: Vec<(f64, f64)> = places(rounds.validation.len())
        .into_iter()
        .map(|r| (r as f64 + 1.0, rounds.validation[r]))
        .collect();
    let Some(y) = Scale::around(points.iter().map(|p| p.1)) else {
        return String::new();
    };
    let chart = Chart {
        title: "What every round was worth on samples held out",
        x: Scale::rounds(rounds.validation.len()),
        y,
        x_name: "round",
        y_name: "on samples held out",
        lines: vec![Line {
            name: "on samples held out".into(),
            points,
            class: "first".into(),
        }],
        dots: Vec::new(),
    };
    format!(
        "<figure><figcaption>Worth on samples held out, round by round</figcaption>{}</figure>",
        chart.svg()
    )
}
