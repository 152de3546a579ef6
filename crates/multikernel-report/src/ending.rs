//! Warnings and notes, how to get the same again, what the report could also say, and what the words mean.

use super::Section;
use super::facts::Facts;
use super::text::{bytes, count, duration, esc, number, several};
use multikernel::data::Task;

/// Sentences that are listed of notes and warnings.
const MOST_SENTENCES: usize = 50;

fn sentences(list: &[String]) -> String {
    let shown: String = list
        .iter()
        .take(MOST_SENTENCES)
        .map(|sentence| format!("<li>{}</li>", esc(sentence)))
        .collect();
    match list.len().saturating_sub(MOST_SENTENCES) {
        0 => shown,
        more => format!("{shown}<li>… and {} more</li>", count(more as u64)),
    }
}

/// What the reader must know before believing the rest: stands at the top.
pub(super) fn warnings(facts: &Facts) -> String {
    if facts.warnings.is_empty() {
        return String::new();
    }
    format!(
        "<aside class=\"warnings\"><h2>{}</h2><ul>{}</ul></aside>",
        several(facts.warnings.len(), "warning", "warnings"),
        sentences(&facts.warnings)
    )
}

pub(super) fn again(facts: &Facts) -> Section {
    let record = &facts.record;
    let mut body = String::new();
    match &record.command {
        Some(command) => body.push_str(&format!(
            "<div class=\"command\"><pre><code id=\"command\">{}</code></pre><button type=\"button\" class=\"js-only plain\" id=\"copy\">copy</button></div>",
            words_of(command)
        )),
        None => body.push_str("<p>The command is not recorded in this model.</p>"),
    }
    let rows: String = settings(facts)
        .iter()
        .map(|(name, value)| format!("<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>"))
        .collect();
    body.push_str(&format!(
        "<table class=\"plain settings\"><tbody>{rows}</tbody></table>"
    ));
    if !record.notes.is_empty() {
        body.push_str(&format!(
            "<h3>Chosen automatically</h3><ul>{}</ul>",
            sentences(&record.notes)
        ));
    }
    Section {
        id: "again",
        name: "Reproduce",
        title: "How to get the same again".into(),
        lead: "The same data, command and version give the same model, to the last bit, for any number of threads.".into(),
        body,
    }
}

/// What was asked for and what came of it, by name.
fn settings(facts: &Facts) -> Vec<(&'static str, String)> {
    let mut rows: Vec<(&'static str, String)> = vec![
        ("task", facts.task.to_string()),
        ("norm", esc(&facts.norm)),
        ("C", number(facts.c)),
        ("loss", esc(&facts.loss)),
        ("bias", if facts.bias { "on" } else { "off" }.into()),
    ];
    let mut add = |name, value: Option<String>| {
        if let Some(value) = value {
            rows.push((name, value));
        }
    };
    let word = |text: &str| (!text.is_empty()).then(|| esc(text));
    add("solver", word(&facts.solver));
    add(
        "several classes",
        facts.multiclass.as_deref().and_then(word),
    );
    add("seed", facts.seed.map(|seed| seed.to_string()));
    add("version", facts.record.version.as_deref().and_then(word));
    match &facts.stream {
        Some(stream) => {
            add("examples seen", Some(count(stream.seen)));
            add("updates", Some(count(stream.updates)));
            add("waiting for a label", Some(count(stream.waiting)));
        }
        None => add("training samples", Some(count(facts.n_samples as u64))),
    }
    add(
        "samples with coefficients",
        Some(count(facts.n_support as u64)),
    );
    add(
        "samples in the file",
        Some(format!(
            "{} of {}",
            count(facts.kept as u64),
            count(facts.n_training as u64)
        )),
    );
    let views: Vec<String> = facts.views.iter().take(20).map(|view| esc(view)).collect();
    let more = match facts.views.len() > views.len() {
        true => format!(" and {} more", facts.views.len() - views.len()),
        false => String::new(),
    };
    add(
        "new samples need the views",
        Some(format!("{}{more}", views.join(", "))),
    );
    add("objective", facts.primal.map(number));
    add("dual bound", facts.dual.map(number));
    add("time to train", facts.train_seconds.map(duration));
    add("time in all", facts.total_seconds.map(duration));
    add("memory", facts.memory.map(bytes));
    rows
}

/// A command whose lines break between its words only, where there is room for them.
fn words_of(command: &str) -> String {
    let words: Vec<String> = command
        .split(' ')
        .map(|word| format!("<span>{}</span>", esc(word)))
        .collect();
    words.join(" ")
}

/// What was not looked at, and how the program can be asked to.
pub(super) fn more(facts: &Facts) -> String {
    let record = &facts.record;
    if facts.stream.is_some() {
        return String::new();
    }
    if !facts.is_of_program() {
        return String::new();
    }
    let mut out = Vec::new();
    let measured = record.evaluation.is_some()
        || facts.metrics.contains_key("accuracy")
        || facts.metrics.contains_key("r2");
    if !measured {
        out.push("<b>What it is worth on new samples:</b> train with <code>--holdout 0.2</code>, or <code>multikernel report model.mk --data new.csv --label-column y --out report.html</code>.");
    }
    if record.stability.is_none() {
        out.push("<b>How sure the weights are:</b> train with <code>--stability 200</code>. Before writing “this kernel matters”, look at its interval, and at what happens without it.");
    }
    if record.tuning.is_none() {
        out.push("<b>Whether other settings do better:</b> <code>multikernel tune</code> tries norms and C by cross-validation, shares all kernels between them and keeps the grid for this report.");
    }
    if record.alignment.is_none() {
        out.push("<b>What kernels have in common:</b> <code>multikernel inspect</code> on the data and kernels.");
    }
    // What was measured on other samples later cannot be compared with them.
    if facts.baselines.is_empty() && !record.evaluation.as_ref().is_some_and(|e| e.given) {
        out.push("<b>What simpler ways reach:</b> train without <code>--no-baselines</code>.");
    }
    if out.is_empty() {
        return String::new();
    }
    let items: String = out.iter().map(|item| format!("<li>{item}</li>")).collect();
    format!(
        "<section id=\"more\"><h2>What this report could also say</h2><ul class=\"more\">{items}</ul></section>"
    )
}

/// Words a newcomer would ask about, two sentences each.
pub(super) fn glossary(facts: &Facts) -> String {
    let record = &facts.record;
    let measured = record.evaluation.is_some();
    let words: [(bool, &str, &str); 13] = [
        (
            true,
            "Kernel",
            "A measure of how alike two samples are. Different kernels look at different features, or at the same features more or less closely.",
        ),
        (
            true,
            "Weight, share",
            "How much a kernel adds to the combined similarity that predictions rest on. The share is its part of the sum of all weights.",
        ),
        (
            true,
            "Group",
            "Kernels that belong together, usually because they look at the same view of the samples. The share of a group is steadier than those of its members, which can stand in for each other.",
        ),
        (
            facts.gap.is_some(),
            "Gap, optimum",
            "Training solves a problem that has one best value. The gap is a proven bound on how far from it this model is; 0.1 % is plenty for predictions.",
        ),
        (
            true,
            "Norm",
            "The rule by which kernels compete for weight. lp:1 gives few kernels a weight, lp:inf the same to all, and lp:4/3 lies between.",
        ),
        (
            true,
            "C",
            "The price of mistakes in training. A large C fits the training samples closely, a small one keeps the model simple.",
        ),
        (
            measured || !facts.metrics.is_empty(),
            "Held out, unseen",
            "Samples that were put aside before training. Only they show how the model does on new samples; in training nearly everything looks good.",
        ),
        (
            measured || record.stability.is_some(),
            "Interval",
            "A range that would hold the true value in, say, 95 of 100 repetitions with other samples. A wide interval means that there were too few samples to tell.",
        ),
        (
            !facts.baselines.is_empty(),
            "Simpler ways",
            "The same learner with all kernels weighted equally, and with the best kernel alone. They are what learned weights have to beat.",
        ),
        (
            record.alignment.is_some(),
            "Alignment",
            "How well a similarity agrees with another, or with the targets, over all pairs of samples. It looks at each kernel alone, while weights are learned together.",
        ),
        (
            record.stability.is_some(),
            "Chosen, p shuffled",
            "In how many repeated trainings a kernel had weight, and how often shuffled targets gave it as much. A kernel that matters is chosen nearly always, and hardly ever by chance.",
        ),
        (
            record
                .evaluation
                .as_ref()
                .is_some_and(|e| e.confusion.is_some()),
            "Confusion matrix",
            "Rows are what samples are, columns what they were taken for. Everything beside the diagonal is a mistake.",
        ),
        (
            facts.task == Task::Regress,
            "R²",
            "The part of the variation of the target that predictions explain. 1 is perfect, 0 is no better than always saying the mean.",
        ),
    ];
    let items: String = words
        .iter()
        .filter(|word| word.0)
        .map(|(_, word, meaning)| format!("<dt>{word}</dt><dd>{meaning}</dd>"))
        .collect();
    format!("<section id=\"glossary\"><h2>What the words mean</h2><dl>{items}</dl></section>")
}
