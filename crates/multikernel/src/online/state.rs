//! Snapshots and the state of a stream. Both are one file: an ordinary model, with tensors and a text beside it from which the
//! learner goes on to the same bits.

use super::bank::Bank;
use super::sample::{Row, Sample};
use super::support::{Slot, Support};
use super::{Online, Report, Rule, Settings, Waiting};
use crate::data::{ViewData, Views};
use crate::error::{Error, Result};
use crate::files::replace_file;
use crate::gram::{Kernel, Normalizer};
use crate::loss::{Loss, LossSpec};
use crate::model::{Model, Scheme, Stored, Streamed, Tensors, damaged};
use crate::solve::steps::{Combiner, Lengths, Theta};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What stands in for classes that have not come: a model has two at least.
const NOT_SEEN: [&str; 2] = ["(not seen yet)", "(not seen yet either)"];

/// What is kept beside the model, apart from tensors.
#[derive(Serialize, Deserialize)]
struct State {
    version: u64,
    settings: Settings,
    classes: Vec<String>,
    next: u64,
    since_refresh: u64,
    /// Steps of Pegasos.
    steps: u64,
    combiner: Option<Combiner>,
    report: Report,
    waiting: Vec<WaitingState>,
    notes: Vec<String>,
    warnings: Vec<String>,
    carried: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
struct WaitingState {
    id: String,
    number: u64,
    prediction: Option<u32>,
    scores: Vec<f64>,
}

/// The version of the state.
const VERSION: u64 = 1;

impl Online {
    /// An ordinary model of what has been learned so far.
    ///
    /// # Errors
    /// If it cannot be put together, which a stream's examples have no way to cause.
    pub fn snapshot(&self) -> Result<Model> {
        let (mut model, _) = self.model()?;
        model.set_training(self.training());
        Ok(model)
    }

    /// The whole state as the bytes of a model file: [`Online::from_bytes`] goes on as if nothing had happened, and
    /// [`Model::load`] reads the same file.
    ///
    /// # Errors
    /// As [`Online::snapshot`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (mut model, order) = self.model()?;
        model.set_training(self.training());
        let mut tensors = Tensors::default();
        let slots = self.support.slots();
        // the place in the model of the sample of each slot
        tensors.u64("online.order", order.into_iter());
        let born: Vec<usize> = slots.iter().map(|s| s.born as usize).collect();
        tensors.u64("online.born", born.into_iter());
        let mut starts = vec![0];
        let (mut classes, mut values) = (Vec::new(), Vec::new());
        for slot in slots {
            classes.extend(slot.classes.iter().map(|c| *c as usize));
            values.extend_from_slice(&slot.values);
            starts.push(classes.len());
        }
        tensors.u64("online.starts", starts.into_iter());
        tensors.u64("online.classes", classes.into_iter());
        tensors.f64("online.values", &[values.len()], &values);
        if slots.iter().any(|slot| slot.id.is_some()) {
            let ids = slots.iter().map(|slot| slot.id.as_deref().unwrap_or(""));
            tensors.strings("online.ids", ids.map(str::as_bytes));
        }
        let lengths = self.theta.lengths();
        tensors.f64("online.theta", &[2], &[lengths.scale, lengths.length]);
        let kernels = lengths.squares.len();
        tensors.f64("online.squares", &[kernels], &lengths.squares);
        tensors.f64("online.weights", &[kernels], &lengths.weights);
        let waiting: Vec<(&String, &Waiting)> = self
            .queue
            .iter()
            .filter_map(|(_, id)| self.waiting.get_key_value(id))
            .collect();
        write_rows(
            &mut tensors,
            &self.bank,
            waiting.iter().map(|w| &w.1.sample),
        );
        let state = State {
            version: VERSION,
            settings: self.settings.clone(),
            classes: self.classes.clone(),
            next: self.next,
            since_refresh: self.since_refresh,
            steps: self.adaptive.map_or(0, |a| a.t),
            combiner: self.combiner.clone(),
            report: self.report.clone(),
            waiting: waiting
                .iter()
                .map(|(id, w)| WaitingState {
                    id: (*id).clone(),
                    number: w.number,
                    prediction: w.prediction,
                    scores: w.scores.clone(),
                })
                .collect(),
            notes: self.notes.clone(),
            warnings: self.warnings.clone(),
            carried: self.carried.clone(),
        };
        let text = serde_json::to_string(&state)
            .map_err(|e| Error::input("state", format!("it cannot be written: {e}"), ""))?;
        model.to_bytes_with(tensors, Some(text))
    }

    /// Writes the state; an older file of that name is replaced only by a complete new one, which is on the disk before.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self
            .to_bytes()
            .map_err(|e| e.within(&path.display().to_string()))?;
        replace_file(path, &bytes)
    }

    /// Goes on where [`Online::save`] stood.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or is a model without a stream's state.
    pub fn load(path: impl AsRef<Path>) -> Result<Online> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        Online::from_bytes(&bytes).map_err(|e| e.within(&path.display().to_string()))
    }

    /// As [`Online::load`], from the bytes of a file.
    ///
    /// # Errors
    /// As [`Online::load`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Online> {
        let (model, state) = Model::from_bytes_with(bytes)?;
        let Some((text, tensors)) = state else {
            return Err(Error::input(
                "",
                "this is a model, but not the state of a stream",
                "give a file that online learning wrote",
            ));
        };
        let state: State = serde_json::from_str(&text)
            .map_err(|e| damaged(format!("the state of the stream says: {e}")))?;
        if state.version != VERSION {
            return Err(Error::input(
                "",
                format!(
                    "the state of the stream has version {}, this program reads version {VERSION}",
                    state.version
                ),
                "take a program as new as the one that wrote it",
            ));
        }
        restore(&model, state, &tensors)
    }

    /// The model, and the place in it of every slot's sample.
    fn model(&self) -> Result<(Model, Vec<usize>)> {
        let slots = self.support.slots();
        let mut by_number: Vec<usize> = (0..slots.len()).collect();
        by_number.sort_unstable_by_key(|&j| slots[j].number);
        let mut order = vec![0; slots.len()];
        for (place, &j) in by_number.iter().enumerate() {
            order[j] = place;
        }
        let mut samples: Vec<Sample> = by_number.iter().map(|&j| self.support.sample(j)).collect();
        let mut columns: Vec<usize> = by_number
            .iter()
            .map(|&j| slots[j].number as usize)
            .collect();
        let mut ids: Option<Vec<String>> = by_number.iter().map(|&j| slots[j].id.clone()).collect();
        let mut classes = self.classes.clone();
        for name in NOT_SEEN {
            if classes.len() < 2 {
                classes.push(name.to_owned());
            }
        }
        let outputs = if self.settings.binary {
            1
        } else {
            classes.len()
        };
        let empty = samples.is_empty();
        if empty {
            // a model without samples would not know what its views look like
            samples.push(self.first.clone());
            columns.push(0);
            ids = None;
        }
        let weights = self.model_weights();
        let (coefficients, separate) = match empty {
            true => {
                let none = vec![0.0; outputs];
                let all = vec![0.0; outputs * self.bank.n_kernels()];
                (none, self.combiner.is_some().then_some(all))
            }
            false => self.model_coefficients(&by_number, outputs, &weights),
        };
        let model = Model::streamed(Streamed {
            scheme: match self.settings.binary {
                true => Scheme::Single,
                false => Scheme::Joint,
            },
            classes,
            loss: match self.settings.binary {
                true => LossSpec::Scalar(Loss::Hinge),
                false => LossSpec::MulticlassHinge,
            },
            norm: self.norm.clone(),
            c: self.settings.rule.cost(),
            kernels: kept_kernels(self.bank.kernels(), &samples),
            weights,
            columns,
            n_training: (self.next as usize).max(1),
            ids,
            coefficients,
            separate,
            views: Views::new(self.bank.to_views(samples.iter())?)?,
            scaling: self.scaling.clone(),
        })?;
        Ok((model, order))
    }

    /// β as the model has it: never all zero, so that nothing is divided by it.
    fn model_weights(&self) -> Vec<f64> {
        let mut weights = self.weights();
        if self.combiner.is_some() {
            for weight in &mut weights {
                if *weight == 0.0 {
                    *weight = 1.0;
                }
            }
        }
        weights
    }

    /// A, sample after sample; and kernel after kernel where each has its own.
    fn model_coefficients(
        &self,
        by_number: &[usize],
        outputs: usize,
        weights: &[f64],
    ) -> (Vec<f64>, Option<Vec<f64>>) {
        let slots = self.support.slots();
        let n = by_number.len();
        let Some(combiner) = &self.combiner else {
            // PA-I: θ/2 with weight 1 for every kernel is θ·F/2 with weight 1/F
            let factor = match self.settings.rule {
                Rule::PassiveAggressive { .. } => {
                    self.theta.score_factor() * self.bank.n_kernels() as f64
                }
                _ => self.theta.score_factor(),
            };
            let mut all = vec![0.0; n * outputs];
            for (row, &j) in all.chunks_mut(outputs).zip(by_number) {
                for (class, value) in slots[j].classes.iter().zip(&slots[j].values) {
                    row[*class as usize] = factor * value;
                }
            }
            return (all, None);
        };
        let kernels = self.bank.n_kernels();
        let known = self.classes.len();
        let mut separate = vec![0.0; kernels * n * outputs];
        let mut together = vec![0.0; n * outputs];
        for (i, &j) in by_number.iter().enumerate() {
            let slot = &slots[j];
            for (from, values) in slot.classes.iter().zip(slot.values.chunks(kernels)) {
                for (m, value) in values.iter().enumerate() {
                    for k in 0..known {
                        let part = combiner.share(k, *from as usize, m) * value;
                        separate[(m * n + i) * outputs + k] += part / weights[m];
                        together[i * outputs + k] += part;
                    }
                }
            }
        }
        (together, Some(separate))
    }

    /// How the model came to be, for people and programs that ask.
    fn training(&self) -> serde_json::Value {
        let report = &self.report;
        serde_json::json!({
            "solver": self.settings.rule.name(),
            "settings": &self.settings,
            "n_seen": self.next,
            "n_support": self.support.len(),
            "n_waiting": self.waiting.len(),
            "updates": report.updates,
            "metrics": { "mistakes": report.mistakes, "online_error": report.online_error() },
            "curve": report.curve.points(),
        })
    }
}

/// The kernels with the factors of the samples kept.
fn kept_kernels(kernels: &[Kernel], samples: &[Sample]) -> Vec<Kernel> {
    let all = kernels.iter().enumerate();
    all.map(|(m, kernel)| Kernel {
        normalizer: match kernel.needs_factors() {
            true => Normalizer::Spherical {
                factors: samples.iter().map(|s| s.roots[m]).collect(),
            },
            false => kernel.normalizer.clone(),
        },
        ..kernel.clone()
    })
    .collect()
}

/// The rows of examples that wait.
fn write_rows<'s>(
    tensors: &mut Tensors,
    bank: &Bank,
    samples: impl Iterator<Item = &'s Sample> + Clone,
) {
    for (v, schema) in bank.views().iter().enumerate() {
        let name = |what: &str| format!("online.waiting.{v}.{what}");
        let rows = samples.clone().map(|s| &s.rows[v]);
        let mut values: Vec<f32> = Vec::new();
        let mut indices: Vec<u8> = Vec::new();
        let mut starts = vec![0];
        for row in rows {
            match (row, schema.width) {
                (Row::Dense(row), Some(width)) => values.extend_from_slice(&row[..width]),
                (Row::Sparse(columns, row), _) => {
                    indices.extend(columns.iter().flat_map(|c| c.to_le_bytes()));
                    values.extend_from_slice(row);
                }
                (Row::Dense(_), None) => {}
            }
            starts.push(values.len());
        }
        tensors.f32(&name("values"), &[values.len()], &values);
        if schema.width.is_none() {
            tensors.u64(&name("starts"), starts.into_iter());
            tensors.indices(&name("indices"), indices);
        }
    }
}

/// The rows of `n` examples that wait, view after view.
fn read_rows(tensors: &Stored<'_>, bank: &Bank, n: usize) -> Result<Vec<ViewData>> {
    let views = bank.views().iter().enumerate();
    views
        .map(|(v, schema)| {
            let name = |what: &str| format!("online.waiting.{v}.{what}");
            let values = tensors.f32(&name("values"))?;
            Ok(match schema.width {
                Some(width) => ViewData::Dense(crate::data::Dense::new(n, width, values)?),
                None => {
                    let starts = tensors.u64(&name("starts"))?;
                    let indices = tensors.indices(&name("indices"))?;
                    let widest = indices.iter().max().map_or(1, |c| *c as usize + 1);
                    ViewData::Sparse(crate::data::Csr::new(widest, starts, indices, values)?)
                }
            })
        })
        .collect()
}

fn restore(model: &Model, state: State, tensors: &Stored<'_>) -> Result<Online> {
    let wrong = |found: &str| damaged(format!("the state of its stream: {found}"));
    let kernels: Vec<Kernel> = model
        .kernels()
        .iter()
        .map(|kernel| Kernel {
            normalizer: match &kernel.normalizer {
                Normalizer::Factor(factor) => Normalizer::Factor(*factor),
                _ => Normalizer::None,
            },
            ..kernel.clone()
        })
        .collect();
    let mut online = Online::with_kernels(
        state.settings,
        kernels,
        model.scaling().clone(),
        model.samples(),
    )?;
    for class in &state.classes {
        online.check_class(class, &online.classes)?;
        online.class_number(class);
    }
    let samples = online.bank.samples(model.samples())?;
    let (known, kernels) = (online.classes.len(), online.bank.n_kernels());
    if known != state.classes.len() || !state.report.is_sound() {
        return Err(wrong("its counts do not fit"));
    }
    let (order, born) = (tensors.u64("online.order")?, tensors.u64("online.born")?);
    let (starts, classes) = (
        tensors.u64("online.starts")?,
        tensors.u64("online.classes")?,
    );
    let values = tensors.f64("online.values")?;
    let width = match online.settings.rule {
        Rule::Omcl { .. } => kernels,
        _ => 1,
    };
    let outputs = online.outputs();
    let mut seen: Vec<usize> = order.clone();
    seen.sort_unstable();
    let all_once = seen.iter().enumerate().all(|(i, j)| i == *j);
    let there = order.len() == samples.len() || (order.is_empty() && samples.len() == 1);
    let fits = all_once
        && there
        && born.len() == order.len()
        && starts.len() == order.len() + 1
        && starts.first() == Some(&0)
        && starts.last() == Some(&classes.len())
        && starts.windows(2).all(|w| w[0] <= w[1])
        && classes.len().checked_mul(width) == Some(values.len())
        && classes.iter().all(|c| *c < outputs)
        && values.iter().all(|v| v.is_finite());
    if !fits {
        return Err(wrong("its support does not fit"));
    }
    let ids = match tensors.strings("online.ids") {
        Ok(ids) if ids.len() == order.len() => ids,
        Ok(_) => return Err(wrong("its ids do not fit")),
        Err(_) => vec![Vec::new(); order.len()],
    };
    online.support = Support::new(&online.bank, width > 1 || online.combiner.is_some());
    for (j, &place) in order.iter().enumerate() {
        let range = starts[j]..starts[j + 1];
        let id = std::str::from_utf8(&ids[j]).map_err(|_| wrong("an id is not text"))?;
        online.support.push(
            &samples[place],
            Slot {
                number: model.columns()[place] as u64,
                born: born[j] as u64,
                classes: classes[range.clone()].iter().map(|c| *c as u32).collect(),
                values: values[range.start * width..range.end * width].to_vec(),
                id: (!id.is_empty()).then(|| id.to_owned()),
            },
        );
    }
    let theta = tensors.f64("online.theta")?;
    let (squares, weights) = (
        tensors.f64("online.squares")?,
        tensors.f64("online.weights")?,
    );
    let numbers = theta.iter().chain(&squares).chain(&weights);
    let sound = theta.len() == 2
        && theta[0] > 0.0
        && squares.len() == kernels
        && weights.len() == kernels
        && numbers.copied().all(|v| v >= 0.0 && v.is_finite());
    if !sound {
        return Err(wrong("the lengths of its weight vectors do not fit"));
    }
    online.theta = Theta::restored(
        online.block_norm,
        Lengths {
            scale: theta[0],
            length: theta[1],
            squares,
            weights,
        },
    )
    .with_link(online.settings.rule.link(&online.block_norm));
    if let Some(adaptive) = &mut online.adaptive {
        adaptive.t = state.steps;
    }
    if let Some(combiner) = state.combiner {
        if online.combiner.is_none() || !combiner.fits(known, kernels) {
            return Err(wrong("its combiner does not fit"));
        }
        online.combiner = Some(combiner);
    } else if online.combiner.is_some() {
        return Err(wrong("its combiner is missing"));
    }
    let views = read_rows(tensors, &online.bank, state.waiting.len())?;
    for (i, waiting) in state.waiting.into_iter().enumerate() {
        let rows: Vec<Row> = online
            .bank
            .views()
            .iter()
            .zip(&views)
            .map(|(schema, data)| match i < data.len() {
                true => Ok(schema.row(data, i)),
                false => Err(wrong("examples that wait are missing")),
            })
            .collect::<Result<_>>()?;
        let known = waiting.prediction.is_none_or(|k| (k as usize) < known);
        if !known || waiting.scores.iter().any(|s| !s.is_finite()) {
            return Err(wrong("a prediction does not fit"));
        }
        let sample = online.bank.sample(rows)?;
        let id = waiting.id.clone();
        online.queue.push_back((waiting.number, id.clone()));
        let kept = Waiting {
            number: waiting.number,
            sample,
            prediction: waiting.prediction,
            scores: waiting.scores,
        };
        if online.waiting.insert(id, kept).is_some() {
            return Err(wrong("two examples that wait have the same id"));
        }
    }
    if model
        .columns()
        .last()
        .is_some_and(|&last| last as u64 >= state.next.max(1))
    {
        return Err(wrong("its support holds examples that have not come"));
    }
    online.first = samples
        .into_iter()
        .next()
        .ok_or_else(|| wrong("it has no sample"))?;
    online.next = state.next;
    online.since_refresh = state.since_refresh;
    online.report = state.report;
    online.notes = state.notes;
    online.warnings = state.warnings;
    online.carried = state.carried;
    Ok(online)
}
