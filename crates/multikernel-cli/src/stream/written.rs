//! What is said about a stream: a line for each example, and words at the end.

use super::Done;
use crate::output::number;
use anyhow::Result;
use multikernel::online::{Online, Prediction};
use serde::Serialize;

/// The line that is written for an example.
#[derive(Serialize)]
pub(super) struct Written<'a> {
    line: u64,
    id: Option<&'a str>,
    prediction: Option<&'a str>,
    correct: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    late: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<serde_json::Map<String, serde_json::Value>>,
}

impl<'a> Written<'a> {
    /// Written in one piece, so that a closed pipe is an error of the pipe.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    pub(super) fn new(
        online: &'a Online,
        outcome: &Prediction,
        id: Option<&'a str>,
        line: u64,
        scores: bool,
        late: bool,
    ) -> Self {
        let classes = online.classes();
        // a single score is the second class's
        let names = match online.settings().binary {
            true => classes.get(1..).unwrap_or_default(),
            false => classes,
        };
        Written {
            line,
            id,
            prediction: outcome
                .prediction
                .and_then(|k| classes.get(k as usize))
                .map(String::as_str),
            correct: outcome.correct,
            late,
            scores: scores.then(|| {
                let pairs = names.iter().zip(&outcome.scores);
                pairs.map(|(name, s)| (name.clone(), (*s).into())).collect()
            }),
        }
    }
}

/// Words about the stream so far.
pub(crate) fn summary(done: &Done) -> String {
    let (online, report) = (&done.online, done.online.report());
    let mut out = format!(
        "\n{} examples, {} labelled, {} classes; {} support vectors after {} updates\n",
        report.examples,
        report.labelled,
        online.classes().len(),
        online.n_support(),
        report.updates
    );
    for (p, pass) in report.passes.iter().enumerate() {
        let name = match p {
            0 => "online error".to_owned(),
            p => format!("error of pass {}", p + 1),
        };
        out.push_str(&format!(
            "{name} {:.4} ({} mistakes of {})\n",
            pass.error(),
            pass.mistakes,
            pass.labelled
        ));
    }
    if let Some(bound) = online.mistake_bound() {
        out.push_str(&format!(
            "Theorem 1 for the comparator: {} rounds went wrong, at most {} may\n",
            bound.wrong_rounds,
            number(bound.bound)
        ));
    }
    for (count, what) in [
        (done.position.bad_lines, "wrong lines were passed over"),
        (
            report.removed,
            "support vectors were taken away by the budget",
        ),
        (
            report.given_up,
            "examples were given up waiting for a label",
        ),
        (online.n_waiting() as u64, "examples wait for a label"),
    ] {
        if count > 0 {
            out.push_str(&format!("{count} {what}\n"));
        }
    }
    out
}
