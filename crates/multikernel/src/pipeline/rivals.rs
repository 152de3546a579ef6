//! What two simpler ways reach: the unweighted sum of the kernels and the best kernel alone.

use super::labelled::{Classes, Labelled, metrics};
use super::outcome::{Compared, Outcome};
use super::{Stage, Training};
use crate::error::Result;
use crate::observe::{Observer, Progress, is_stopped};
use crate::train::baseline::{self, Holdout};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

impl Training<'_> {
    /// Trains the rivals, for as long as the training itself may take; a stop leaves them out.
    pub(super) fn rivals(
        &self,
        stage: &Stage<'_>,
        samples: &Labelled,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let limit = self.mkl.max_seconds;
        let patience = Patience {
            observer: stage.observer,
            until: limit
                .and_then(|s| Instant::now().checked_add(Duration::try_from_secs_f64(s).ok()?)),
        };
        let (set, held_out) = (stage.set, stage.held_out);
        let reached = |model| metrics(model, Some(samples), held_out);
        let sum = baseline::sum(&self.mkl, set, stage.targets, &patience)?;
        let sum = Compared {
            name: "unweighted sum".into(),
            metrics: reached(&sum.model)?,
        };
        let classes = held_out.map(|held_out| Classes::of(&held_out.targets));
        let holdout = held_out.zip(classes.as_ref());
        let holdout = holdout.map(|(held_out, classes)| Holdout {
            views: &held_out.views,
            truth: classes.as_truth(&held_out.targets),
        });
        let best = baseline::best_single(&self.mkl, set, stage.targets, holdout, &patience)?;
        if is_stopped(stage.observer) {
            let note = "the baselines were stopped and are not shown";
            outcome.notes.push(note.into());
            return Ok(());
        }
        if patience.is_over() {
            let note = "the baselines took longer than training may take and are not shown (`no_baselines` leaves them out)";
            outcome.notes.push(note.into());
            return Ok(());
        }
        let single = Compared {
            name: format!("best single kernel, {}", best.name),
            metrics: reached(&best.fitted.model)?,
        };
        outcome.notes.push(best.chosen_by);
        let baselines = &mut outcome.result.baselines;
        baselines.insert("sum".into(), object(&sum.metrics, None));
        baselines.insert(
            "best_single".into(),
            object(&single.metrics, Some(best.name)),
        );
        outcome.compared.extend([sum, single]);
        Ok(())
    }
}

/// Metrics as the result object has them, with the kernel where it is one.
fn object(metrics: &BTreeMap<String, f64>, kernel: Option<String>) -> serde_json::Value {
    let numbers = metrics
        .iter()
        .map(|(name, value)| (name.clone(), (*value).into()));
    let mut object: serde_json::Map<String, serde_json::Value> = numbers.collect();
    if let Some(kernel) = kernel {
        object.insert("kernel".into(), kernel.into());
    }
    object.into()
}

/// Watches the rivals, and stops them when the time is up.
struct Patience<'a> {
    observer: &'a dyn Observer,
    until: Option<Instant>,
}

impl Patience<'_> {
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

impl Observer for Patience<'_> {
    fn progress(&self, progress: &Progress<'_>) -> ControlFlow<()> {
        if self.is_over() {
            return ControlFlow::Break(());
        }
        self.observer.progress(progress)
    }
}
