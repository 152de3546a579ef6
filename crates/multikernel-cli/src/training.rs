//! What `train`, `tune` and `demo` share: from data to a trained model with everything that is said about it.

mod known;
mod slices;
mod trained;

pub(crate) use known::Known;
use known::metrics;
pub(crate) use slices::Kept;
use trained::Compared;
pub(crate) use trained::Trained;

use crate::args::KernelArgs;
use crate::progress::Watcher;
use crate::session::{Session, command_line};
use anyhow::Result;
use multikernel::baseline::{self, Holdout};
use multikernel::calibration::Calibration;
use multikernel::data::{ScaleOption, Scaling, Split, Targets, ViewData, Views};
use multikernel::gram::{Indefinite, KernelSet, Options};
use multikernel::inspect::{ALIGNED_SAMPLES, KernelSample, glance};
use multikernel::mkl::Watched;
use multikernel::observe::{Observer, Progress};
use multikernel::record::{Record, Stability};
use multikernel::result::ResultObject;
use multikernel::select::SHARED;
use multikernel::stability::{HeldOut, Settings, stability};
use multikernel::{Error, Fitted, Mkl};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

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
    /// Where the training is kept while it runs; none: nowhere.
    pub(crate) kept: Option<Kept>,
    /// What was chosen on the way here, in sentences.
    pub(crate) notes: Vec<String>,
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
        // Before the training, which may be long and in vain.
        session.watcher.clear();
        let seen = glance(&set);
        session.output.warnings(&seen)?;

        session.watcher.aim(self.mkl.tolerance);
        let mut fitted = match &held_out {
            _ if self.kept.is_some() => {
                let names = set.kernels().iter().map(|kernel| kernel.name.clone());
                let names: Vec<String> = names.collect();
                self.fit_kept(&set, &known.targets, &names, session)?
            }
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
        let warned = seen.len();
        result.warnings.splice(0..0, seen);
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
            let (targets, watcher) = (&known.targets, &session.watcher);
            let sample = KernelSample::of_trained(
                &set,
                targets,
                &fitted,
                ALIGNED_SAMPLES,
                &options,
                watcher,
                &mut notes,
            );
            record.alignment = sample.map(|sample| sample.alignments());
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
            warned,
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
