//! What `train` and `demo` share: from data to a trained model with everything that is said about it.

use crate::args::KernelArgs;
use crate::machine;
use crate::output::{number, table, write_whole};
use crate::progress::Watcher;
use crate::session::{Session, command_line};
use crate::weights::{self, Bar};
use anyhow::{Context, Result};
use multikernel::baseline::{self, Holdout};
use multikernel::calibration::Calibration;
use multikernel::certificate::relative_gap;
use multikernel::data::{ScaleOption, Scaling, Split, Targets, ViewData, Views};
use multikernel::dual::Status;
use multikernel::evaluate::{Bootstrap, evaluate};
use multikernel::gram::{Indefinite, KernelSet, Options};
use multikernel::inspect::align;
use multikernel::metrics::{Truth, measure};
use multikernel::mkl::{ProblemReport, Watched};
use multikernel::observe::{Observer, Progress};
use multikernel::record::{Evaluation, Record, Stability, Tuning};
use multikernel::result::ResultObject;
use multikernel::select::SHARED;
use multikernel::stability::{HeldOut, Settings, stability};
use multikernel::{Error, Fitted, Mkl, Model};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

/// The stability of more kernels is not shown as text.
const SHOWN_KERNELS: usize = 20;

/// What is to be trained on which samples.
pub(crate) struct Job<'a> {
    /// All samples, before scaling.
    pub(crate) views: Views,
    pub(crate) targets: Targets,
    pub(crate) kernels: &'a KernelArgs,
    pub(crate) scale: Vec<ScaleOption>,
    pub(crate) indefinite: Indefinite,
    /// Memory and scaling are filled in.
    pub(crate) mkl: Mkl,
    /// λ = 1/(C·N), instead of C.
    pub(crate) lambda: Option<f64>,
    /// Samples that are not trained on, in the form of those that are.
    pub(crate) validation: Option<Known>,
    /// Or the share of the samples that is not.
    pub(crate) holdout: Option<f64>,
    pub(crate) baselines: bool,
    /// Whether the model is to have probabilities.
    pub(crate) probabilities: bool,
    /// Rounds of looking at how sure the weights are; none: not at all.
    pub(crate) stability: Option<usize>,
    /// What was chosen on the way here, in sentences.
    pub(crate) notes: Vec<String>,
}

/// A model and what is to be said about it.
pub(crate) struct Trained {
    pub(crate) model: Model,
    pub(crate) status: Status,
    pub(crate) result: ResultObject,
    pub(crate) notes: Vec<String>,
    /// What is kept in the model beside the result object; its notes are filled in when it is kept.
    pub(crate) record: Record,
    held_out: usize,
    problems: Vec<ProblemReport>,
    /// Lines of the table of baselines.
    compared: Vec<Compared>,
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

/// A way to learn and what it reaches.
struct Compared {
    name: String,
    metrics: BTreeMap<String, f64>,
}

/// Samples and what is true of them.
pub(crate) struct Known {
    pub(crate) views: Views,
    pub(crate) targets: Targets,
}

impl Job<'_> {
    pub(crate) fn run(mut self, session: &Session) -> Result<Trained> {
        let n = self.views.len();
        let (specs, chosen) = self.kernels.choose(&self.views)?;
        self.notes.extend(chosen);
        if let Some(weights) = &self.mkl.sample_weight
            && weights.len() != n
        {
            return Err(Error::input(
                "sample-weight",
                format!("there are {} weights for {n} samples", weights.len()),
                "give one weight for each sample, in the same order",
            )
            .into());
        }
        let split = match self.holdout {
            Some(share) => Some(Split::holdout(share, &self.targets, n, session.seed)?),
            None => None,
        };
        let (known, held_out) = self.parts(split.as_ref(), session)?;
        let held_out = held_out.or(self.validation.take());
        let samples = known.views.len();
        if let (Some(split), Some(weights)) = (&split, &mut self.mkl.sample_weight) {
            *weights = split.training.iter().map(|&i| weights[i]).collect();
        }
        if let Some(lambda) = self.lambda {
            self.mkl.c = cost_of(lambda, samples)?;
        }
        let load = session.elapsed();

        let scaling = Scaling::fit(&self.scale, &known.views)?;
        let options = Options {
            memory: session.memory_left(),
            seed: session.seed,
            indefinite: self.indefinite,
        };
        let set = KernelSet::new(
            &specs,
            &scaling.apply(known.views.clone())?,
            &options,
            &session.watcher,
        )?;
        let kernels = session.elapsed() - load;
        self.mkl.scaling = scaling;

        session.watcher.aim(self.mkl.tolerance);
        let mut fitted = match &held_out {
            Some(held_out) if self.mkl.solver.is_stochastic() => {
                let views = self.mkl.scaling.apply(held_out.views.clone())?;
                let watched = Watched {
                    gram: &set.cross(&views)?,
                    targets: &held_out.targets,
                };
                let watcher = &session.watcher;
                self.mkl
                    .fit_watched(&set, &known.targets, &watched, watcher)?
            }
            _ => self.mkl.fit(&set, &known.targets, &session.watcher)?,
        };
        session.watcher.clear();
        let mut result = ResultObject::new(&fitted);
        result.metrics = metrics(&fitted.model, &known, held_out.as_ref())?;
        let mut notes = self.notes.clone();
        notes.append(&mut fitted.notes);
        if let Some(mu) = self.mkl.tikhonov {
            notes.push(format!(
                "Tikhonov form with μ = {mu}: primal and dual are CΣℓ + ½Σ‖w‖²/β + μ‖β‖² and its dual"
            ));
        }
        let mut compared = vec![Compared {
            name: format!("these weights ({})", self.mkl_name(&fitted)),
            metrics: result.metrics.clone(),
        }];
        if self.probabilities {
            self.calibrate(&mut fitted, &set, &known.targets, session, &mut notes)?;
        }
        let mut record = Record {
            evaluation: match &held_out {
                Some(held_out) => Some(held_out.judged(&fitted.model, session.seed)?),
                None => None,
            },
            command: Some(command_line()),
            ..Record::new(&fitted)
        };
        if self.baselines && !session.watcher.stopped() {
            let found = self.baselines(&set, &known, held_out.as_ref(), session, &mut notes)?;
            for (key, name, metrics, kernel) in found {
                let mut object: serde_json::Map<String, serde_json::Value> = metrics
                    .iter()
                    .map(|(name, value)| (name.clone(), (*value).into()))
                    .collect();
                if let Some(kernel) = kernel {
                    object.insert("kernel".into(), kernel.into());
                }
                result.baselines.insert(key.into(), object.into());
                compared.push(Compared { name, metrics });
            }
            session.watcher.clear();
        }
        if let Some(rounds) = self.stability {
            let held_out = held_out.as_ref();
            record.stability =
                self.stability(rounds, &set, &known, &fitted, held_out, session, &mut notes)?;
        }
        if !session.watcher.stopped() {
            let options = Options {
                memory: session.memory_left(),
                ..options
            };
            let weights: Vec<f64> = bars(&result).iter().map(|bar| bar.weight).collect();
            // With --bias on, a joint problem has one more kernel, which aligns with nothing.
            let weights = &weights[..set.kernels().len()];
            match align(&set, &known.targets, weights, &options, &session.watcher) {
                Ok(Ok(alignment)) => record.alignment = Some(alignment),
                Ok(Err(why)) => notes.push(why),
                Err(Error::Stopped) => {}
                Err(error) => notes.push(format!("alignments were not computed: {error}")),
            }
            session.watcher.clear();
        }
        result.seconds.load = load;
        result.seconds.kernels = kernels;
        result.seed = session.seed;
        let mut model = fitted.model;
        if let Some(split) = &split {
            model.trained_on(&split.training, n)?;
        }
        let mut trained = Trained {
            model,
            status: fitted.status,
            result,
            notes,
            record,
            held_out: held_out.map_or(0, |known| known.views.len()),
            problems: fitted.problems,
            compared,
        };
        trained.account(session);
        Ok(trained)
    }

    /// Looks at how sure the weights are; a stop leaves what there is.
    #[allow(
        clippy::too_many_arguments,
        reason = "one call, and every argument is another noun"
    )]
    fn stability(
        &self,
        rounds: usize,
        set: &KernelSet,
        known: &Known,
        fitted: &Fitted,
        held_out: Option<&Known>,
        session: &Session,
        notes: &mut Vec<String>,
    ) -> Result<Option<Stability>> {
        let settings = Settings {
            rounds,
            seed: session.seed,
            ..Settings::default()
        };
        let held_out = held_out.map(|known| HeldOut {
            views: &known.views,
            targets: &known.targets,
        });
        let (targets, watcher) = (&known.targets, &session.watcher);
        let found = stability(
            &self.mkl, set, targets, fitted, held_out, &settings, watcher,
        )?;
        if watcher.stopped() {
            notes.push(match &found {
                Some(found) => format!(
                    "stopped: the stability of the weights is told from {} of {rounds} rounds",
                    found.rounds
                ),
                None => "stopped before the stability of the weights was known".into(),
            });
        }
        session.watcher.clear();
        Ok(found)
    }

    /// Gives the model probabilities; a stop leaves it without.
    fn calibrate(
        &self,
        fitted: &mut Fitted,
        set: &KernelSet,
        targets: &Targets,
        session: &Session,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        match self
            .mkl
            .calibrate(set, targets, session.seed, &session.watcher)
        {
            Ok(calibration) => {
                fitted.model.set_calibration(Some(calibration))?;
                notes.push(match calibration {
                    Calibration::Sigmoid { .. } => {
                        "probabilities: a sigmoid fitted to scores of 5 folds (Platt)".into()
                    }
                    Calibration::Temperature { temperature } => format!(
                        "probabilities: the softmax of scores over {temperature:.3}, fitted to scores of 5 folds"
                    ),
                });
                if !notes.iter().any(|note| note == SHARED) {
                    notes.push(SHARED.into());
                }
            }
            Err(Error::Stopped) => {
                notes.push("stopped before the model had probabilities: it has none".into());
            }
            Err(error) => return Err(error.into()),
        }
        session.watcher.clear();
        Ok(())
    }

    fn mkl_name(&self, fitted: &Fitted) -> String {
        match self.mkl.tikhonov {
            Some(mu) => format!("{}, tikhonov {mu}", fitted.model.norm()),
            None => fitted.model.norm().to_string(),
        }
    }

    /// Samples to train on and samples held out.
    fn parts(&self, split: Option<&Split>, session: &Session) -> Result<(Known, Option<Known>)> {
        let Some(Split { training, held_out }) = split else {
            let all = Known {
                views: self.views.clone(),
                targets: self.targets.clone(),
            };
            return Ok((all, None));
        };
        let (given, own) = self
            .views
            .iter()
            .fold((0, 0), |(given, own), v| match &v.data {
                ViewData::Pairwise(_) => (given + 1, own),
                ViewData::Dense(x) => (given, own + 4 * x.cols()),
                ViewData::Sparse(x) => (given, own + 8 * x.entries() / x.rows().max(1) + 8),
                ViewData::Strings(x) => {
                    let bytes: usize = x.iter().map(Vec::len).sum();
                    (given, own + 24 + bytes / x.len().max(1))
                }
            });
        let n = self.views.len() as u64;
        let needed = n * (own as u64 + 4 * given * training.len() as u64);
        if needed > session.memory_left() {
            return Err(Error::Memory {
                what: "a copy of the samples, split for the holdout,".into(),
                needed,
                available: session.memory_left(),
                remedy: "allow more memory, or train without a holdout".into(),
            }
            .into());
        }
        let part = |rows: &[usize]| -> Result<Known> {
            Ok(Known {
                views: self.views.part(rows, training)?,
                targets: self.targets.select(rows),
            })
        };
        Ok((part(training)?, Some(part(held_out)?)))
    }

    /// Key, name, what it reaches, and the kernel if it is one.
    #[allow(clippy::type_complexity, reason = "read once, right where it is made")]
    fn baselines(
        &self,
        set: &KernelSet,
        known: &Known,
        held_out: Option<&Known>,
        session: &Session,
        notes: &mut Vec<String>,
    ) -> Result<Vec<(&'static str, String, BTreeMap<String, f64>, Option<String>)>> {
        let patience = Patience {
            watcher: &session.watcher,
            until: self
                .mkl
                .max_seconds
                .and_then(|s| Instant::now().checked_add(Duration::try_from_secs_f64(s).ok()?)),
        };
        let sum = baseline::sum(&self.mkl, set, &known.targets, &patience)?;
        let sum_metrics = metrics(&sum.model, known, held_out)?;
        let truth = held_out.map(|known| Known::truth(&known.targets));
        let holdout = held_out.zip(truth.as_ref()).map(|(known, truth)| Holdout {
            views: &known.views,
            truth: truth.as_truth(&known.targets),
        });
        let best = baseline::best_single(&self.mkl, set, &known.targets, holdout, &patience)?;
        if session.watcher.stopped() {
            notes.push("the baselines were stopped and are not shown".into());
            return Ok(Vec::new());
        }
        if patience.is_over() {
            notes.push(
                "the baselines took longer than training may take and are not shown (--no-baselines leaves them out)"
                    .into(),
            );
            return Ok(Vec::new());
        }
        let best_metrics = metrics(&best.fitted.model, known, held_out)?;
        notes.push(best.chosen_by);
        Ok(vec![
            ("sum", "unweighted sum".into(), sum_metrics, None),
            (
                "best_single",
                format!("best single kernel, {}", best.name),
                best_metrics,
                Some(best.name),
            ),
        ])
    }
}

/// Watches the baselines, and stops them when the time is up.
struct Patience<'a> {
    watcher: &'a Watcher,
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
        self.watcher.progress(progress)
    }
}

/// Classes as metrics want them.
struct Classes(Vec<Option<u32>>);

impl Classes {
    fn as_truth<'a>(&'a self, targets: &'a Targets) -> Truth<'a> {
        match targets {
            Targets::None => Truth::None,
            Targets::Real(values) => Truth::Real(values),
            Targets::Classes { .. } => Truth::Classes(&self.0),
        }
    }
}

impl Known {
    fn truth(targets: &Targets) -> Classes {
        match targets {
            Targets::Classes { index, .. } => Classes(index.iter().map(|&c| Some(c)).collect()),
            Targets::None | Targets::Real(_) => Classes(Vec::new()),
        }
    }

    fn measured(&self, model: &Model) -> Result<BTreeMap<String, f64>> {
        let scores = model.scores(&self.views)?;
        let truth = Self::truth(&self.targets);
        Ok(measure(
            &model.predictions(&scores),
            &scores,
            truth.as_truth(&self.targets),
        ))
    }
}

/// The weights of all kernels.
fn bars(result: &ResultObject) -> Vec<Bar> {
    let kernels = result.kernels.iter();
    kernels
        .map(|kernel| Bar {
            name: kernel.name.clone(),
            group: kernel.group.clone(),
            weight: kernel.weight.0.iter().sum::<f64>() / kernel.weight.0.len().max(1) as f64,
        })
        .collect()
}

impl Known {
    /// What the model is worth on samples that were held out, with intervals.
    fn judged(&self, model: &Model, seed: u64) -> Result<Evaluation> {
        let scores = model.scores(&self.views)?;
        let truth = Self::truth(&self.targets);
        let bootstrap = Bootstrap {
            seed,
            ..Bootstrap::default()
        };
        let samples = format!("{} samples held out", self.views.len());
        let truth = truth.as_truth(&self.targets);
        Ok(evaluate(model, &scores, truth, samples, &bootstrap))
    }
}

/// What the model reaches in training (`train_…`) and on the samples held out.
fn metrics(
    model: &Model,
    known: &Known,
    held_out: Option<&Known>,
) -> Result<BTreeMap<String, f64>> {
    let training = known.measured(model)?;
    let mut all: BTreeMap<String, f64> = training
        .into_iter()
        .map(|(name, value)| (format!("train_{name}"), value))
        .collect();
    if let Some(held_out) = held_out {
        all.extend(held_out.measured(model)?);
    }
    Ok(all)
}

/// C = 1/(λN).
fn cost_of(lambda: f64, samples: usize) -> multikernel::Result<f64> {
    if lambda > 0.0 && lambda.is_finite() {
        return Ok(1.0 / (lambda * samples as f64));
    }
    Err(Error::input(
        "lambda",
        format!("it is {lambda}"),
        "give a positive finite number",
    ))
}

impl Trained {
    /// Time and memory up to now.
    pub(crate) fn account(&mut self, session: &Session) {
        self.result.seconds.total = session.elapsed();
        self.result.peak_memory_bytes = machine::peak_memory();
    }

    /// Keeps the result object with the model, and what a report shows besides.
    pub(crate) fn keep_result(&mut self) -> Result<()> {
        self.record.notes = self.notes.clone();
        let training = self.record.beside(&self.result)?;
        self.model.set_training(training);
        Ok(())
    }

    /// The rounds of all problems as CSV.
    pub(crate) fn write_history(&self, file: &Path) -> Result<()> {
        let mut text =
            String::from("problem,round,seconds,primal,dual,relative_gap,steps,validation\n");
        for problem in &self.problems {
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
        write_whole(file, |out| out.write_all(text.as_bytes()))
            .with_context(|| file.display().to_string())
    }

    pub(crate) fn text(&self) -> String {
        let mut out = self.title();
        out.push_str(&weights::text(&bars(&self.result), self.problems.len()));
        out.push_str(&self.certificate());
        out.push_str(&self.comparison());
        out.push_str(&self.stability());
        let seconds = &self.result.seconds;
        out.push_str(&format!(
            "\ntime: load {:.2} s, kernels {:.2} s, training {:.2} s, in all {:.2} s\n",
            seconds.load, seconds.kernels, seconds.train, seconds.total
        ));
        out
    }

    fn title(&self) -> String {
        let (model, result) = (&self.model, &self.result);
        let what = match model.classes().len() {
            0 => model.task().to_string(),
            classes => match result.multiclass {
                Some("joint") => format!("{}, {classes} classes jointly", model.task()),
                Some(scheme) => format!("{}, {classes} classes by {scheme}", model.task()),
                None => format!("{}, {classes} classes", model.task()),
            },
        };
        let held_out = match self.held_out {
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
            model.c(),
            if model.has_bias() { "on" } else { "off" },
            result.solver
        )
    }

    fn certificate(&self) -> String {
        let result = &self.result;
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
        let status = match self.status {
            Status::Converged => "converged",
            Status::MaxIterations if result.primal.is_nan() => "the passes are done",
            Status::MaxIterations if matches!(&result.solver[..], "om2" | "pa1") => {
                "the passes are done; its steps do not know C (the solver exact reaches the gap)"
            }
            Status::MaxIterations if matches!(&result.solver[..], "obscure" | "pegasos") => {
                "NOT converged: the epochs are done (--epochs allows more, the solver exact reaches the gap)"
            }
            Status::MaxIterations => "NOT converged: no further progress is possible",
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

    /// How sure the weights are.
    fn stability(&self) -> String {
        let Some(stability) = &self.record.stability else {
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
                    self.result
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
            result: &self.result,
            stability: self.record.stability.as_ref(),
            tuning: self.record.tuning.as_ref(),
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
        .filter(|(key, _)| self.result.metrics.contains_key(*key))
        .collect();
        if columns.is_empty() {
            return String::new();
        }
        let mut header = vec![""];
        header.extend(columns.iter().map(|c| c.1));
        let rows: Vec<Vec<String>> = self
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
