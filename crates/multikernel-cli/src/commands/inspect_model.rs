//! `multikernel inspect model.mk`: what a model is made of, how it was trained and what it needs.

use crate::output::{number, setting, table};
use crate::session::{Cost, Session};
use crate::weights::{self, Bar};
use anyhow::Result;
use multikernel::Model;
use multikernel::data::Task;
use multikernel::norm::NormSpec;
use serde::Serialize;

/// Views and classes that are listed as text.
const LISTED: usize = 30;

#[derive(Serialize)]
struct Outcome {
    task: Task,
    classes: Vec<String>,
    norm: NormSpec,
    loss: String,
    #[serde(rename = "C")]
    c: f64,
    biases: Vec<f64>,
    kernels: Vec<KernelOutcome>,
    needed_views: Vec<ViewOutcome>,
    n_training: usize,
    n_kept: usize,
    /// The result object of the training; null if the model was not written by this program.
    training: serde_json::Value,
    #[serde(flatten)]
    cost: Cost,
}

#[derive(Serialize)]
struct KernelOutcome {
    name: String,
    group: String,
    /// What it is, with its width as a number.
    spec: String,
    /// One for each problem.
    weights: Vec<f64>,
}

#[derive(Serialize)]
struct ViewOutcome {
    name: String,
    given_matrix: bool,
    scale: String,
}

/// Looks at a model, prints and writes what was found.
pub(super) fn look(session: &Session, file: &str) -> Result<()> {
    let model = Model::load(file)?;
    let problems = model.n_problems();
    let kernels: Vec<KernelOutcome> = model
        .kernels()
        .iter()
        .enumerate()
        .map(|(m, kernel)| KernelOutcome {
            name: kernel.name.clone(),
            group: kernel.group.clone(),
            spec: kernel.spec.to_string(),
            weights: (0..problems).map(|k| model.weights(k)[m]).collect(),
        })
        .collect();
    let needed_views = model
        .needed_views()
        .into_iter()
        .map(|(name, given_matrix)| ViewOutcome {
            name: name.to_owned(),
            given_matrix,
            scale: model.scaling().kind(name).to_string(),
        })
        .collect();
    let outcome = Outcome {
        task: model.task(),
        classes: model.classes().to_vec(),
        norm: model.norm().clone(),
        loss: model.loss().to_string(),
        c: model.c(),
        biases: model.biases().to_vec(),
        kernels,
        needed_views,
        n_training: model.n_training(),
        n_kept: model.columns().len(),
        training: model.training().clone(),
        cost: session.cost(session.elapsed(), 0.0),
    };
    session.output.text(&outcome.text(file))?;
    session.output.json(&outcome)
}

impl Outcome {
    fn problems(&self) -> usize {
        self.kernels.first().map_or(1, |k| k.weights.len())
    }

    fn text(&self, file: &str) -> String {
        let mut out = format!("{file}: model for the task {}", self.task);
        if !self.classes.is_empty() {
            let shown: Vec<&str> = self
                .classes
                .iter()
                .take(LISTED)
                .map(String::as_str)
                .collect();
            let more = match self.classes.len() > LISTED {
                true => ", …",
                false => "",
            };
            out.push_str(&format!(
                ", {} classes ({}{more})",
                self.classes.len(),
                shown.join(", ")
            ));
        }
        out.push_str(&format!(
            "\nnorm {}, loss {}, C {}, {}\n",
            self.norm,
            self.loss,
            setting(self.c),
            match &self.biases[..] {
                [one] => format!("bias {}", number(*one)),
                biases if self.problems() > 1 => format!("{} problems", biases.len()),
                biases if biases.iter().all(|b| *b == 0.0) => "all classes jointly, no bias".into(),
                _ => "all classes jointly, with a bias for each".into(),
            }
        ));
        out.push_str(&self.record());
        let bars: Vec<Bar> = self
            .kernels
            .iter()
            .map(|kernel| Bar::new(&kernel.name, &kernel.group, &kernel.weights))
            .collect();
        out.push_str(&weights::text(&bars, self.problems()));
        out.push_str(&format!(
            "\nkeeps {} of {} training samples; new samples need\n",
            self.n_kept, self.n_training
        ));
        let rows: Vec<Vec<String>> = self
            .needed_views
            .iter()
            .take(LISTED)
            .map(|view| {
                let kind = match view.given_matrix {
                    true => "given matrix",
                    false => "features",
                };
                vec![view.name.clone(), kind.into(), view.scale.clone()]
            })
            .collect();
        out.push_str(&table(&["view", "kind", "scaling"], &rows));
        if self.needed_views.len() > LISTED {
            out.push_str(&format!(
                "  … and {} more\n",
                self.needed_views.len() - LISTED
            ));
        }
        out
    }

    /// What the training said of itself.
    fn record(&self) -> String {
        let record = &self.training;
        if !record.is_object() {
            return "how it was trained is not recorded\n".into();
        }
        let value = |key: &str| record.get(key).and_then(serde_json::Value::as_f64);
        let word = |key: &str| record.get(key).and_then(serde_json::Value::as_str);
        let solver = word("solver").unwrap_or("?");
        let mut out = match value("n_seen") {
            Some(seen) => format!("learned by {solver} from a stream of {seen} examples"),
            None => format!(
                "trained by {solver} on {} samples with {} kernels, {}",
                value("n_samples").unwrap_or(f64::NAN),
                record
                    .get("kernels")
                    .and_then(serde_json::Value::as_array)
                    .map_or(0, Vec::len),
                word("status").unwrap_or("?"),
            ),
        };
        if let Some(seconds) = record["seconds"]["train"].as_f64() {
            out.push_str(&format!(" in {seconds:.2} s"));
        }
        if let (Some(gap), Some(primal), Some(dual)) =
            (value("relative_gap"), value("primal"), value("dual"))
        {
            out.push_str(&format!(
                "\nrelative gap {gap:.1e} (primal {}, dual {})",
                number(primal),
                number(dual)
            ));
        }
        let metrics: Vec<String> = record["metrics"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| {
                Some(format!(
                    "{} {}",
                    name.replace('_', " "),
                    number(value.as_f64()?)
                ))
            })
            .collect();
        if !metrics.is_empty() {
            out.push_str(&format!("\n{}", metrics.join(", ")));
        }
        out.push('\n');
        out
    }
}
