//! How good predictions are: metrics, confusions, residuals, calibration, and what simpler ways reach.

use super::Section;
use super::draw::{Chart, Dot, Line, Scale, Strip, strips};
use super::facts::Facts;
use super::heat::{Cell, Heat};
use super::summary::{Where, ends, how_to_measure, worth};
use super::text::{count, esc, level, metric, metric_value, number, percent, several, short};
use multikernel::data::Task;
use multikernel::record::Evaluation;

/// Classes of a confusion matrix that can still be looked at.
const MOST_CLASSES: usize = 30;
/// Confusions that are listed.
const LISTED: usize = 6;
/// Points of a scatter plot.
const MOST_POINTS: usize = 1500;

pub(super) fn section(facts: &Facts) -> Section {
    let evaluation = facts.record.evaluation.as_ref();
    let lead = match (evaluation, worth(facts).map(|w| w.place)) {
        (Some(evaluation), _) => format!(
            "Measured on {}{}.{}",
            esc(&evaluation.samples),
            match evaluation.given {
                true => ": if some of them were trained on, they look better than new ones",
                false => ", none of which was trained on",
            },
            match evaluation.metrics.values().any(|i| ends(i).is_some()) {
                true => format!(
                    " Numbers in brackets and lines around points are {} intervals.",
                    level(evaluation.level)
                ),
                false => String::new(),
            }
        ),
        (None, Some(Where::Apart)) => {
            "Measured on samples held out, none of which was trained on.".into()
        }
        (None, Some(Where::Nested)) => {
            "Measured by nested cross-validation: the whole search, on samples left out of it."
                .into()
        }
        (None, Some(Where::Stream)) => {
            "Every example of the stream was predicted before its label was looked at.".into()
        }
        _ => format!(
            "There are no samples to measure it on. {}",
            how_to_measure(facts)
        ),
    };
    let mut body = String::from("<div class=\"figures\">");
    body.push_str(&metrics(facts));
    body.push_str(&comparison(facts));
    if let Some(evaluation) = evaluation {
        body.push_str(&confusion(facts, evaluation));
        body.push_str(&residuals(evaluation));
        body.push_str(&calibration(evaluation));
    }
    body.push_str(&stream(facts));
    body.push_str("</div>");
    Section {
        id: "quality",
        name: "Quality",
        title: "How well it predicts".into(),
        lead,
        body,
    }
}

/// A table of everything that was measured.
fn metrics(facts: &Facts) -> String {
    let known = facts.record.evaluation.as_ref().map(|e| &e.metrics);
    let mut names: Vec<&str> = facts
        .metrics
        .keys()
        .map(String::as_str)
        .filter(|name| *name != "labelled")
        .map(|name| name.strip_prefix("train_").unwrap_or(name))
        .chain(known.into_iter().flat_map(|m| m.keys().map(String::as_str)))
        .collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return String::new();
    }
    let value =
        |name: &str, value: Option<&f64>| value.map_or("–".into(), |v| metric_value(name, *v));
    let mut rows = String::new();
    let apart = known.is_some_and(|m| !m.is_empty())
        || facts.metrics.keys().any(|k| !k.starts_with("train_"));
    let trained = facts.metrics.keys().any(|k| k.starts_with("train_"));
    for name in names {
        let interval = known.and_then(|m| m.get(name));
        let held = match interval {
            Some(interval) => {
                let range = ends(interval).map_or(String::new(), |(low, high)| {
                    format!(
                        " <small>({} to {})</small>",
                        metric_value(name, low),
                        metric_value(name, high)
                    )
                });
                format!("{}{range}", value(name, Some(&interval.value)))
            }
            None => value(name, facts.metrics.get(name)),
        };
        rows.push_str(&format!("<tr><th scope=\"row\">{}</th>", metric(name)));
        if apart {
            rows.push_str(&format!("<td class=\"num\">{held}</td>"));
        }
        if trained {
            let training = facts.metrics.get(&format!("train_{name}"));
            rows.push_str(&format!("<td class=\"num\">{}</td>", value(name, training)));
        }
        rows.push_str("</tr>");
    }
    let place = match facts.stream {
        Some(_) => "along the stream",
        None if facts.record.evaluation.as_ref().is_some_and(|e| e.given) => "samples given",
        None => "unseen samples",
    };
    format!(
        "<figure><figcaption>What was measured</figcaption><table class=\"plain\"><thead><tr><th></th>{}{}</tr></thead><tbody>{rows}</tbody></table></figure>",
        match apart {
            true => format!("<th scope=\"col\" class=\"num\">{place}</th>"),
            false => String::new(),
        },
        match trained {
            true => "<th scope=\"col\" class=\"num\">in training</th>",
            false => "",
        }
    )
}

fn comparison(facts: &Facts) -> String {
    if facts.baselines.is_empty() || facts.task == Task::OneClass {
        return String::new();
    }
    let Some(worth) = worth(facts) else {
        return String::new();
    };
    let in_training = format!("train_{}", worth.metric);
    // What was measured otherwise cannot be compared with simpler ways; in training both were.
    let (key, place, value, interval) = match worth.place {
        Where::Apart => {
            let key = worth.metric.to_owned();
            (key, "on unseen samples", worth.value, worth.interval)
        }
        _ => match facts.metrics.get(&in_training) {
            Some(&value) => (in_training, "in training", value, None),
            None => return String::new(),
        },
    };
    let mut all = vec![Strip {
        name: format!("these weights ({})", facts.norm),
        words: metric_value(worth.metric, value),
        value,
        interval,
        class: "first",
    }];
    all.extend(facts.baselines.iter().filter_map(|baseline| {
        let value = *baseline.metrics.get(&key)?;
        Some(Strip {
            name: baseline.name.clone(),
            words: metric_value(worth.metric, value),
            value,
            interval: None,
            class: "second",
        })
    }));
    let title = format!(
        "{} of these weights and of simpler ways, {place}",
        metric(worth.metric)
    );
    format!(
        "<figure><figcaption>Beside simpler ways: {} {place}</figcaption>{}<p class=\"muted\">If equal weights do as well, the weights say which kernels matter, not how to predict better.</p></figure>",
        metric(worth.metric),
        strips(&title, &all, |v| metric_value(worth.metric, v))
    )
}

fn confusion(facts: &Facts, evaluation: &Evaluation) -> String {
    let Some(counts) = &evaluation.confusion else {
        return String::new();
    };
    let classes = counts.len();
    let square = classes > 0 && counts.iter().all(|row| row.len() == classes);
    if !square {
        return String::new();
    }
    let name = |c: usize| {
        facts
            .classes
            .get(c)
            .cloned()
            .unwrap_or_else(|| (c + 1).to_string())
    };
    let mut wrong: Vec<(u64, usize, usize)> = Vec::new();
    for (t, row) in counts.iter().enumerate() {
        let others = row.iter().enumerate().filter(|&(p, &n)| t != p && n > 0);
        wrong.extend(others.map(|(p, &n)| (n, t, p)));
    }
    wrong.sort_by(|a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut out =
        String::from("<figure><figcaption>Confusions: true class against prediction</figcaption>");
    if classes <= MOST_CLASSES {
        out.push_str(&confusion_map(counts, name));
    }
    match wrong.is_empty() {
        true => out.push_str("<p>No sample was confused.</p>"),
        false => {
            let listed: Vec<String> = wrong
                .iter()
                .take(LISTED)
                .map(|&(n, t, p)| {
                    format!(
                        "<b>{}</b> taken for <b>{}</b> ({})",
                        short(&name(t), 24),
                        short(&name(p), 24),
                        count(n)
                    )
                })
                .collect();
            out.push_str(&format!(
                "<p>Most frequent mistakes: {}.</p>",
                listed.join(", ")
            ));
        }
    }
    out.push_str("</figure>");
    out
}

/// A map of the counts, a row for each true class.
fn confusion_map(counts: &[Vec<u64>], name: impl Fn(usize) -> String) -> String {
    let mut cells = Vec::new();
    for (t, row) in counts.iter().enumerate() {
        let all: u64 = row.iter().fold(0, |sum, &n| sum.saturating_add(n));
        for (p, &n) in row.iter().enumerate() {
            let share = if all > 0 { n as f64 / all as f64 } else { 0.0 };
            let (class, strength) = match t == p {
                true => ("accent", share),
                false => ("wrong", (4.0 * share).min(1.0)),
            };
            cells.push(Cell {
                strength: (n > 0).then_some(strength),
                class,
                text: if n > 0 { n.to_string() } else { String::new() },
                tip: format!(
                    "{} of {} samples of {} were predicted as {}",
                    count(n),
                    count(all),
                    name(t),
                    name(p)
                ),
                framed: false,
            });
        }
    }
    let names: Vec<String> = (0..counts.len()).map(name).collect();
    let longest = names.iter().map(|n| n.chars().count()).max();
    let heat = Heat {
        title: "Counts of true and predicted classes; the diagonal is right",
        rows: "true",
        columns: "predicted",
        row_names: names.clone(),
        column_names: names,
        cells,
    };
    heat.svg(8.0 + 5.6 * longest.unwrap_or(1).min(14) as f64, 14)
}

fn residuals(evaluation: &Evaluation) -> String {
    let Some(points) = evaluation.residuals.as_ref().filter(|p| !p.is_empty()) else {
        return String::new();
    };
    let stride = points.len().div_ceil(MOST_POINTS);
    let shown: Vec<(f64, f64)> = points.iter().step_by(stride).copied().collect();
    let Some(scale) = Scale::around(shown.iter().flat_map(|p| [p.0, p.1])) else {
        return String::new();
    };
    let values = || {
        shown
            .iter()
            .flat_map(|p| [p.0, p.1])
            .filter(|v| v.is_finite())
    };
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let chart = Chart {
        title: "Predictions against true values; points on the dashed line are right",
        x: scale,
        y: scale,
        x_name: "true value",
        y_name: "prediction",
        lines: vec![Line {
            name: "prediction = truth".into(),
            points: vec![(low, low), (high, high)],
            class: "ideal".into(),
        }],
        dots: shown
            .iter()
            .map(|&(t, p)| Dot {
                x: t,
                y: p,
                radius: 2.4,
                class: "first faint".into(),
                tip: format!(
                    "true {}, predicted {}, off by {}",
                    number(t),
                    number(p),
                    number(p - t)
                ),
            })
            .collect(),
    };
    format!(
        "<figure><figcaption>Prediction against truth, {} of {}</figcaption>{}</figure>",
        count(shown.len() as u64),
        several(points.len(), "sample", "samples"),
        chart.svg()
    )
}

fn calibration(evaluation: &Evaluation) -> String {
    let Some(bins) = evaluation.calibration.as_ref() else {
        return String::new();
    };
    let bins: Vec<_> = bins
        .iter()
        .filter(|b| b.count > 0 && b.probability.is_finite() && b.observed.is_finite())
        .collect();
    if bins.is_empty() {
        return String::new();
    }
    let most = bins.iter().map(|b| b.count).max().unwrap_or(1).max(1) as f64;
    let chart = Chart {
        title: "Share that was right against the probability that was given",
        x: Scale::between(0.0, 1.0),
        y: Scale::between(0.0, 1.0),
        x_name: "probability of the predicted class",
        y_name: "share that was right",
        lines: vec![Line {
            name: "perfect probabilities".into(),
            points: vec![(0.0, 0.0), (1.0, 1.0)],
            class: "ideal".into(),
        }],
        dots: bins
            .iter()
            .map(|b| Dot {
                x: b.probability,
                y: b.observed,
                radius: 3.0 + 6.0 * (b.count as f64 / most).sqrt(),
                class: "first faint".into(),
                tip: format!(
                    "{}: probability {}, right {}",
                    several(b.count, "sample", "samples"),
                    percent(b.probability),
                    percent(b.observed)
                ),
            })
            .collect(),
    };
    format!(
        "<figure><figcaption>Calibration: do probabilities mean what they say?</figcaption>{}<p class=\"muted\">On the dashed line, of the samples given 80 % about 80 % are right. Larger points are more samples.</p></figure>",
        chart.svg()
    )
}

/// Mistakes along a stream.
fn stream(facts: &Facts) -> String {
    let Some(stream) = &facts.stream else {
        return String::new();
    };
    let points: Vec<(f64, f64)> = stream
        .curve
        .iter()
        .filter(|p| p.0 > 0.0)
        .map(|&(labelled, mistakes)| (labelled, mistakes / labelled))
        .collect();
    let (Some(x), Some(y)) = (
        Scale::around(points.iter().map(|p| p.0).chain([0.0])),
        Scale::around(points.iter().map(|p| p.1).chain([0.0])),
    ) else {
        return String::new();
    };
    if points.len() < 2 {
        return String::new();
    }
    let chart = Chart {
        title: "Share of mistakes so far, along the stream",
        x,
        y,
        x_name: "labelled examples",
        y_name: "share of mistakes so far",
        lines: vec![Line {
            name: "share of mistakes so far".into(),
            points,
            class: "first".into(),
        }],
        dots: Vec::new(),
    };
    format!(
        "<figure><figcaption>Mistakes along the stream</figcaption>{}</figure>",
        chart.svg()
    )
}
