//! What `train`, `tune` and `demo` share: the training, and a trained model in words: its weights, its certificate, what it reaches and how sure that is.

use crate::output::{number, setting, table, write_whole};
use crate::session::{Session, command_line};
use crate::weights::{self, Bar};
use anyhow::Result;
use multikernel::data::{Targets, Views};
use multikernel::machine;
use multikernel::observe::{Observer, Progress};
use multikernel::pipeline::{Outcome, Training};
use multikernel::problem::{Status, relative_gap};
use multikernel::record::{ResultObject, Stability, Tuning};
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::Path;

/// The stability of more kernels is not shown as text.
const SHOWN_KERNELS: usize = 20;

/// A model and what is to be said about it.
pub(crate) struct Trained {
    pub(crate) outcome: Outcome,
}

/// Trains as the library does, with this session's memory, bar and warnings.
pub(crate) fn train(
    training: Training<'_>,
    views: Views,
    targets: Targets,
    session: &Session,
) -> Result<Trained> {
    session.watcher.aim(training.mkl.tolerance);
    let before = session.elapsed();
    let training = Training {
        seed: session.seed,
        memory: &|| session.memory_left(),
        ..training
    };
    let mut outcome = training.run(views, targets, &Told { session })?;
    outcome.align();
    session.watcher.clear();
    outcome.result.seconds.load += before;
    outcome.record.command = Some(command_line());
    let mut trained = Trained { outcome };
    trained.account(session);
    Ok(trained)
}

/// Shows progress, and tells warnings before the training, which may be long and in vain.
struct Told<'a> {
    session: &'a Session,
}

impl Observer for Told<'_> {
    fn progress(&self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.session.watcher.progress(progress)
    }

    fn noticed(&self, warnings: &[String]) {
        self.session.watcher.clear();
        // Nobody may be reading any more; the result has them, too.
        let _ = self.session.output.warnings(warnings);
    }
}

/// The result object, with what was asked for beside it.
#[derive(Serialize)]
pub(crate) struct Object<'a> {
    #[serde(flatten)]
    result: &'a ResultObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    stability: Option<&'a Stability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuning: Option<&'a Tuning>,
}

impl Trained {
    /// Time and memory up to now.
    pub(crate) fn account(&mut self, session: &Session) {
        self.outcome.result.seconds.total = session.elapsed();
        self.outcome.result.peak_memory_bytes = machine::peak_memory();
    }

    /// The rounds of all problems as CSV.
    pub(crate) fn write_history(&self, file: &Path) -> Result<()> {
        let mut text =
            String::from("problem,round,seconds,primal,dual,relative_gap,steps,validation\n");
        for problem in &self.outcome.fitted.problems {
            for (round, look) in problem.history.iter().enumerate() {
                let gap = relative_gap(look.primal, look.dual);
                let validation = problem.validation.get(round);
                text.push_str(&format!(
                    "\"{}\",{},{:.6},{},{},{gap},{},{}\n",
                    problem.name.replace('"', "\"\""),
                    round + 1,
                    look.seconds,
                    look.primal,
                    look.dual,
                    look.steps,
                    validation.map(f64::to_string).unwrap_or_default()
                ));
            }
        }
        write_whole(file, text.as_bytes())
    }

    pub(crate) fn text(&self) -> String {
        let mut out = self.title();
        let sets = self.outcome.result.kernels.first();
        let sets = sets.map_or(1, |kernel| kernel.weight.0.len());
        out.push_str(&weights::text(&Bar::all(&self.outcome.result), sets));
        out.push_str(&self.certificate());
        out.push_str(&self.comparison());
        out.push_str(&self.stability());
        let seconds = &self.outcome.result.seconds;
        out.push_str(&format!(
            "\ntime: load {:.2} s, kernels {:.2} s, training {:.2} s, in all {:.2} s\n",
            seconds.load, seconds.kernels, seconds.train, seconds.total
        ));
        out
    }

    fn title(&self) -> String {
        let (model, result) = (&self.outcome.fitted.model, &self.outcome.result);
        let what = match model.classes().len() {
            0 => model.task().to_string(),
            classes => match result.multiclass {
                Some("joint") if result.solver == "lp-beta" => {
                    format!("{}, {classes} classes with the same mixture", model.task())
                }
                Some("joint") => format!("{}, {classes} classes jointly", model.task()),
                Some(scheme) => format!("{}, {classes} classes by {scheme}", model.task()),
                None => format!("{}, {classes} classes", model.task()),
            },
        };
        let held_out = match self.outcome.held_out {
            0 => String::new(),
            n => format!(" ({n} more held out)"),
        };
        let kernels = result.kernels.len();
        format!(
            "\n{what}: {} samples{held_out}, {kernels} {}\nnorm {}, loss {}, C {}, bias {}, solver {}\n",
            result.n_samples,
            if kernels == 1 { "kernel" } else { "kernels" },
            model.norm(),
            model.loss(),
            setting(model.c()),
            if model.has_bias() { "on" } else { "off" },
            result.solver
        )
    }

    fn certificate(&self) -> String {
        let result = &self.outcome.result;
        let gap = match (result.relative_gap, result.dual) {
            (Some(gap), Some(dual)) => format!(
                "relative gap {gap:.1e} (primal {}, dual {})",
                number(result.primal),
                number(dual)
            ),
            _ if result.primal.is_nan() => {
                format!("no objective and no gap: {} minimises none", result.solver)
            }
            _ => format!("primal {}, no dual bound", number(result.primal)),
        };
        let status = match self.outcome.fitted.status {
            Status::Converged if result.primal.is_nan() => "the SVMs of its kernels converged",
            Status::Converged => "converged",
            Status::MaxIterations if result.primal.is_nan() => "the passes are done",
            Status::MaxIterations if !self.outcome.fitted.solver.knows_c() => {
                "the passes are done; its steps do not know C (the solver exact reaches the gap)"
            }
            Status::MaxIterations if self.outcome.fitted.solver.is_stochastic() => {
                "NOT converged: the epochs are done (--epochs allows more, the solver exact reaches the gap)"
            }
            Status::MaxIterations => {
                "NOT converged: the rounds are done or rounding allows no further progress (scale the features, normalise the kernels, or lower C)"
            }
            Status::TimeLimit => "NOT converged: the time was up",
            Status::Stopped => "NOT converged: stopped by the user",
        };
        let rounds = result.iterations;
        format!(
            "\n{gap}\n{status} after {rounds} {}; {} of {} samples have coefficients\n",
            if rounds == 1 { "round" } else { "rounds" },
            result.n_support,
            result.n_samples
        )
    }

    /// The warnings that were not told yet.
    pub(crate) fn warnings(&self) -> &[String] {
        self.outcome
            .result
            .warnings
            .get(self.outcome.told..)
            .unwrap_or_default()
    }

    /// How sure the weights are.
    fn stability(&self) -> String {
        let Some(stability) = &self.outcome.record.stability else {
            return String::new();
        };
        let mut order: Vec<usize> = (0..stability.shares.len()).collect();
        let share = |m: &usize| stability.shares[*m].value;
        order.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cmp(b)));
        let left = order.len().saturating_sub(SHOWN_KERNELS);
        order.truncate(SHOWN_KERNELS);
        let percent = |value: f64| format!("{:.1} %", 100.0 * value);
        let interval = format!("{:.0} % interval", 100.0 * stability.level);
        let mut header = vec!["kernel", "share", &interval, "chosen"];
        if stability.shuffled.is_some() {
            header.extend(["shuffled", "p"]);
        }
        let without = stability.without.as_ref();
        let effect = without.map(|w| format!("{} without", w.metric));
        header.extend(effect.as_deref());
        let rows: Vec<Vec<String>> = order
            .iter()
            .map(|&m| {
                let own = stability.shares[m];
                let mut row = vec![
                    self.outcome
                        .result
                        .kernels
                        .get(m)
                        .map_or(String::new(), |k| k.name.clone()),
                    percent(own.value),
                    format!("{} … {}", percent(own.low), percent(own.high)),
                    percent(stability.chosen[m]),
                ];
                if let Some(shuffled) = &stability.shuffled {
                    row.push(percent(shuffled.mean[m]));
                    row.push(format!("{:.3}", shuffled.p_value[m]));
                }
                if let Some(without) = without {
                    let change = without.change.get(m).copied().flatten();
                    row.push(change.map_or("-".into(), |c| format!("{c:+.4}")));
                }
                row
            })
            .collect();
        let mut out = format!(
            "\nhow sure the weights are ({}, {} rounds):\n{}",
            stability.method,
            stability.rounds,
            table(&header, &rows)
        );
        if left > 0 {
            out.push_str(&format!("  … and {left} more kernels\n"));
        }
        out
    }

    /// The result object, with what was asked for beside it.
    pub(crate) fn object(&self) -> Object<'_> {
        Object {
            result: &self.outcome.result,
            stability: self.outcome.record.stability.as_ref(),
            tuning: self.outcome.record.tuning.as_ref(),
        }
    }

    /// What was reached, beside what simpler ways reach.
    fn comparison(&self) -> String {
        let columns: Vec<(&str, &str)> = [
            ("accuracy", "accuracy held out"),
            ("train_accuracy", "in training"),
            ("r2", "R² held out"),
            ("mae", "mean error held out"),
            ("train_r2", "R² in training"),
            ("train_mae", "mean error in training"),
            ("accepted", "accepted held out"),
            ("train_accepted", "accepted in training"),
        ]
        .into_iter()
        .filter(|(key, _)| self.outcome.result.metrics.contains_key(*key))
        .collect();
        if columns.is_empty() {
            return String::new();
        }
        let mut header = vec![""];
        header.extend(columns.iter().map(|c| c.1));
        let rows: Vec<Vec<String>> = self
            .outcome
            .compared
            .iter()
            .map(|line| {
                let mut row = vec![line.name.clone()];
                row.extend(columns.iter().map(|(key, _)| {
                    line.metrics
                        .get(*key)
                        .map_or("-".into(), |v| format!("{v:.4}"))
                }));
                row
            })
            .collect();
        format!("\n{}", table(&header, &rows))
    }
}
