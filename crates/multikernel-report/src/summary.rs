//! The answer first: what was learned, how well, how certain.

use super::facts::Facts;
use super::text::{esc, level, metric, metric_value, number, percent, several, short};
use multikernel::data::Task;

/// Where a number was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// On samples that were not trained on.
    Apart,
    /// On samples that were given for it.
    Given,
    /// By nested cross-validation.
    Nested,
    /// On a stream, every example before its label was looked at.
    Stream,
    /// On the training samples, which says little of new ones.
    Training,
}

/// What the model is worth, in one number.
pub(super) struct Worth {
    pub(super) metric: &'static str,
    pub(super) value: f64,
    pub(super) interval: Option<(f64, f64)>,
    pub(super) level: f64,
    pub(super) place: Where,
    /// Which samples, in words.
    pub(super) samples: String,
}

impl Worth {
    pub(super) fn text(&self) -> String {
        metric_value(self.metric, self.value)
    }

    fn interval_text(&self) -> Option<String> {
        let (low, high) = self.interval?;
        Some(format!(
            "with {} confidence between {} and {}",
            level(self.level),
            metric_value(self.metric, low),
            metric_value(self.metric, high)
        ))
    }
}

/// The number that tells most, from where it can be believed most.
pub(super) fn worth(facts: &Facts) -> Option<Worth> {
    let (metric, in_training) = match facts.task {
        Task::Classify => ("accuracy", "train_accuracy"),
        Task::Regress => ("r2", "train_r2"),
        Task::OneClass => ("accepted", "train_accepted"),
    };
    let record = &facts.record;
    if let Some(evaluation) = &record.evaluation
        && let Some(found) = evaluation.metrics.get(metric)
        && found.value.is_finite()
    {
        return Some(Worth {
            metric,
            value: found.value,
            interval: ends(found),
            level: evaluation.level,
            place: match evaluation.given {
                true => Where::Given,
                false => Where::Apart,
            },
            samples: evaluation.samples.clone(),
        });
    }
    let simple = |value: &f64, place, samples: &str| Worth {
        metric,
        value: *value,
        interval: None,
        level: f64::NAN,
        place,
        samples: samples.into(),
    };
    if let Some(value) = facts.metrics.get(metric) {
        return Some(simple(value, Where::Apart, "samples held out"));
    }
    if let Some(tuning) = &record.tuning
        && let Some(nested) = &tuning.nested
        && tuning.metric == metric
        && nested.value.is_finite()
    {
        return Some(Worth {
            interval: ends(nested),
            level: 0.95,
            ..simple(
                &nested.value,
                Where::Nested,
                "samples left out of the search",
            )
        });
    }
    if let Some(error) = facts.metrics.get("online_error") {
        return Some(simple(
            &(1.0 - error),
            Where::Stream,
            "examples of the stream",
        ));
    }
    let value = facts.metrics.get(in_training)?;
    Some(simple(value, Where::Training, "the training samples"))
}

/// An interval that is more than its number.
pub(super) fn ends(interval: &multikernel::record::Interval) -> Option<(f64, f64)> {
    let (low, high) = (interval.low, interval.high);
    (low.is_finite() && high.is_finite() && low < high).then_some((low, high))
}

/// Title, first paragraph and the cards below it.
pub(super) fn top(facts: &Facts) -> (String, String) {
    let worth = worth(facts);
    let title = title(facts, worth.as_ref());
    let mut out = format!(
        "<header class=\"hero\"><p class=\"eyebrow\">multikernel report</p><h1>{title}</h1><p class=\"lede\">{}</p></header>",
        lede(facts, worth.as_ref())
    );
    out.push_str("<div class=\"cards\">");
    out.push_str(&how_well(facts, worth.as_ref()));
    out.push_str(&how_certain(facts));
    out.push_str(&what_counts(facts));
    out.push_str(&compared(facts, worth.as_ref()));
    out.push_str("</div>");
    let plain = title.replace("<em>", "").replace("</em>", "");
    (plain, out)
}

fn title(facts: &Facts, worth: Option<&Worth>) -> String {
    let what = match (facts.task, &facts.classes[..]) {
        (Task::Classify, [a, b]) if a.chars().count().max(b.chars().count()) <= 20 => {
            format!("{} and {} told apart", esc(a), esc(b))
        }
        (Task::Classify, classes) => {
            format!("{} told apart", several(classes.len(), "class", "classes"))
        }
        (Task::Regress, _) => "A value predicted".into(),
        (Task::OneClass, _) => "What is usual, learned".into(),
    };
    let Some(worth) = worth else {
        return what;
    };
    let value = format!("<em>{}</em>", worth.text());
    let place = match worth.place {
        Where::Apart | Where::Nested => "on samples never seen in training",
        Where::Given => "on the samples given",
        Where::Stream => "along the stream",
        Where::Training => "in training",
    };
    match facts.task {
        Task::Classify => format!("{what}, {value} right {place}"),
        Task::Regress => format!("{what} with R² {value} {place}"),
        Task::OneClass => format!("{what}: {value} look usual {place}"),
    }
}

fn lede(facts: &Facts, worth: Option<&Worth>) -> String {
    let kernels = several(facts.kernels.len(), "kernel", "kernels");
    let groups = match facts.grouped() {
        true => format!(" in {}", several(facts.groups.len(), "group", "groups")),
        false => String::new(),
    };
    let from = match &facts.stream {
        Some(stream) => format!(
            "a stream of {}",
            several(stream.seen as usize, "example", "examples")
        ),
        None => several(facts.n_samples, "sample", "samples"),
    };
    let mut out = format!("Learned from {from} with {kernels}{groups}.");
    if let Some(worth) = worth {
        let name = metric(worth.metric);
        match worth.place {
            Where::Apart | Where::Given => {
                out.push_str(&format!(" The {name} was measured on {}", esc(&worth.samples)));
                match worth.interval_text() {
                    Some(interval) => out.push_str(&format!("; {interval}.")),
                    None => out.push('.'),
                }
            }
            Where::Nested => {
                out.push_str(&format!(" The {name} is that of the whole search, by nested cross-validation"));
                match worth.interval_text() {
                    Some(interval) => out.push_str(&format!("; {interval}.")),
                    None => out.push('.'),
                }
            }
            Where::Stream => out.push_str(" Every example was predicted before its label was looked at."),
            Where::Training => out.push_str(
                " How well it does on new samples was not measured: training samples always look better than new ones.",
            ),
        }
    }
    if let Some(gap) = facts.gap {
        out.push_str(&format!(
            " For these samples, kernels and settings no other weights could lower the objective by more than {}.",
            percent(gap.max(0.0))
        ));
    }
    out
}

fn card(kind: &str, heading: &str, value: &str, text: &str) -> String {
    format!(
        "<section class=\"card {kind}\"><h2>{heading}</h2><p class=\"big\">{value}</p><p>{text}</p></section>"
    )
}

fn how_well(facts: &Facts, worth: Option<&Worth>) -> String {
    let Some(worth) = worth else {
        return card("", "How well", "not measured", how_to_measure(facts));
    };
    let name = metric(worth.metric);
    let (kind, text) = match worth.place {
        Where::Training => (
            "attention",
            format!("{name} in training only. {}", how_to_measure(facts)),
        ),
        Where::Stream => {
            let mistakes = facts.metrics.get("mistakes").copied().unwrap_or(f64::NAN);
            (
                "",
                format!("right along the stream, {} mistakes", number(mistakes)),
            )
        }
        Where::Apart | Where::Given | Where::Nested => {
            let interval = worth.interval.map_or(String::new(), |(low, high)| {
                format!(
                    ", {} interval {} to {}",
                    level(worth.level),
                    metric_value(worth.metric, low),
                    metric_value(worth.metric, high)
                )
            });
            ("", format!("{name} on {}{interval}", esc(&worth.samples)))
        }
    };
    card(kind, "How well", &worth.text(), &text)
}

pub(super) fn how_to_measure(facts: &Facts) -> &'static str {
    match facts.is_of_program() {
        true => {
            "<code>--holdout 0.2</code> at training keeps a fifth of the samples apart to measure it."
        }
        false => "Samples that were not trained on, given to the report, measure it.",
    }
}

fn how_certain(facts: &Facts) -> String {
    let (kind, state) = match &facts.status[..] {
        "converged" => ("good", "It converged"),
        "max-iterations" if facts.gap.is_none() => ("", "All passes are done"),
        "max-iterations" => (
            "attention",
            "Not converged: no rounds were left, or no progress was possible",
        ),
        "time-limit" => ("attention", "Not converged: the time was up"),
        "stopped" => ("attention", "Not converged: it was stopped"),
        _ => ("", "How training ended is not recorded"),
    };
    let Some(gap) = facts.gap else {
        let text = match facts.stream {
            Some(_) => {
                "A stream has no optimum to compare with; its mistakes are the measure.".into()
            }
            None => {
                format!("{state}. This solver gives no bound on how far it is from the optimum.")
            }
        };
        return card(kind, "How certain", "no certificate", &text);
    };
    let rounds = facts.iterations.map_or(String::new(), |rounds| {
        format!(" after {}", several(rounds as usize, "round", "rounds"))
    });
    card(
        kind,
        "How certain",
        &format!("≤ {}", percent(gap.max(0.0))),
        &format!(
            "from the optimum, at most. {state}{rounds}; the bound is computed from the result alone, whatever the solver did."
        ),
    )
}

fn what_counts(facts: &Facts) -> String {
    let used = facts.used();
    let all = facts.kernels.len();
    let order = facts.by_weight();
    let Some(first) = order
        .first()
        .map(|&m| &facts.kernels[m])
        .filter(|_| used > 0)
    else {
        return card(
            "attention",
            "What counts",
            "nothing",
            "No kernel has a weight: the model predicts the same for all samples.",
        );
    };
    let value = match used == all {
        true => format!("all {all}"),
        false => format!("{used} of {all}"),
    };
    let mut text = format!(
        "{} weight. The largest share has <b>{}</b> with {}",
        if all == 1 {
            "kernel has"
        } else {
            "kernels have"
        },
        short(&first.name, 60).replace('/', "/<wbr>"),
        percent(first.share)
    );
    match facts.groups.first().filter(|_| facts.grouped()) {
        Some(group) => text.push_str(&format!(
            ", the heaviest group is <b>{}</b> with {}.",
            short(&group.name, 40),
            percent(group.share)
        )),
        None => text.push('.'),
    }
    card("", "What counts", &value, &text)
}

/// Against the sum of all kernels, the way to beat.
fn compared(facts: &Facts, worth: Option<&Worth>) -> String {
    let Some(worth) = worth.filter(|w| {
        facts.task != Task::OneClass && matches!(w.place, Where::Apart | Where::Training)
    }) else {
        return String::new();
    };
    let key = match worth.place {
        Where::Training => format!("train_{}", worth.metric),
        _ => worth.metric.to_owned(),
    };
    let known: Vec<(&str, f64)> = facts
        .baselines
        .iter()
        .filter_map(|b| Some((b.name.as_str(), *b.metrics.get(&key)?)))
        .collect();
    let Some((sum, value)) = known.iter().max_by(|a, b| a.1.total_cmp(&b.1)).copied() else {
        return String::new();
    };
    let difference = worth.value - value;
    let shown = match worth.metric {
        "accuracy" => format!("{} points", super::text::fixed(100.0 * difference.abs(), 1)),
        _ => number(difference.abs()),
    };
    // Without intervals there is no telling chance; with them, one that holds the other value is no difference.
    let within = worth
        .interval
        .is_some_and(|(low, high)| low <= value && value <= high);
    let (big, verdict) = if difference == 0.0 {
        ("equal".to_owned(), "As good as")
    } else if within {
        (
            "about equal".to_owned(),
            "The samples are too few to tell it from",
        )
    } else if difference > 0.0 {
        (format!("+ {shown}"), "Better than")
    } else {
        (format!("− {shown}"), "Worse than")
    };
    let hint = match within || difference <= 0.0 {
        true => {
            " The weights still say which kernels matter; that they predict better is not shown."
        }
        false => "",
    };
    let place = match worth.place {
        Where::Training => ", in training",
        _ => "",
    };
    card(
        "",
        "Against simpler ways",
        &big,
        &format!(
            "{verdict} {}, the best simpler way ({}{place}).{hint}",
            short(sum, 80),
            metric_value(worth.metric, value)
        ),
    )
}
