//! The state of a stream as a file: an ordinary model, with tensors and a text beside it from which the learner goes on to the
//! same bits.

use super::sample::Sample;
use super::support::{Slot, Support};
use super::{Online, Report, StreamSettings, Waiting};
use crate::data::{Csr, Dense, View, ViewData, Views};
use crate::error::{Error, Result};
use crate::files::replace_file;
use crate::gram::{Kernel, Normalizer};
use crate::model::{Model, Stored, Tensors, damaged};
use crate::solve::steps::omcl::Combiner;
use crate::solve::steps::{Algorithm, Lengths, Theta};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What is kept beside the model, apart from tensors.
#[derive(Serialize, Deserialize)]
struct State {
    version: u64,
    settings: StreamSettings,
    classes: Vec<String>,
    next: u64,
    since_refresh: u64,
    /// Rounds of Pegasos.
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
    /// The whole state as the bytes of a model file: [`Online::from_bytes`] goes on as if nothing had happened, and
    /// [`Model::load`] reads the same file.
    ///
    /// # Errors
    /// As [`Online::snapshot`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (model, order) = self.model()?;
        let mut tensors = Tensors::default();
        self.support.write(&order, &mut tensors);
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
        let samples = waiting.iter().map(|(_, w)| &w.sample);
        for (v, view) in self.bank.to_views(samples)?.iter().enumerate() {
            write_rows(&mut tensors, v, &view.data);
        }
        let state = State {
            version: VERSION,
            settings: self.settings.clone(),
            classes: self.classes.clone(),
            next: self.next,
            since_refresh: self.since_refresh,
            steps: match self.algorithm {
                Some(Algorithm::Stage2(pegasos)) => pegasos.rounds(),
                _ => 0,
            },
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
        Online::restored(&model, state, &tensors)
    }

    /// The learner of a state, part after part; every number in it is checked before it is believed.
    fn restored(model: &Model, state: State, tensors: &Stored<'_>) -> Result<Online> {
        let mut online = Online::with_kernels(
            state.settings,
            fitted_kernels(model),
            model.scaling().clone(),
            model.samples(),
        )?;
        for class in &state.classes {
            online.check_class(class, &online.classes)?;
            online.class_number(class);
        }
        if online.classes.len() != state.classes.len() || !state.report.is_sound() {
            return Err(wrong("its counts do not fit"));
        }
        let last = model.columns().last();
        if last.is_some_and(|&last| last as u64 >= state.next.max(1)) {
            return Err(wrong("its support holds examples that have not come"));
        }
        let samples = online.bank.samples(model.samples())?;
        online.restore_support(&samples, model.columns(), tensors)?;
        online.restore_theta(tensors, state.steps)?;
        online.restore_combiner(state.combiner)?;
        online.restore_waiting(state.waiting, tensors)?;
        let first = samples.into_iter().next();
        online.first = first.ok_or_else(|| wrong("it has no sample"))?;
        online.next = state.next;
        online.since_refresh = state.since_refresh;
        online.report = state.report;
        online.notes = state.notes;
        online.warnings = state.warnings;
        online.carried = state.carried;
        Ok(online)
    }

    /// The slots in their order; `samples` and their numbers stand in the order of the model.
    fn restore_support(
        &mut self,
        samples: &[Sample],
        numbers: &[usize],
        tensors: &Stored<'_>,
    ) -> Result<()> {
        let (order, born) = (tensors.u64("online.order")?, tensors.u64("online.born")?);
        let starts = tensors.u64("online.starts")?;
        let classes = tensors.u64("online.classes")?;
        let values = tensors.f64("online.values")?;
        let width = self.support.width();
        let outputs = self.outputs();
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
        for (j, &place) in order.iter().enumerate() {
            let range = starts[j]..starts[j + 1];
            let id = std::str::from_utf8(&ids[j]).map_err(|_| wrong("an id is not text"))?;
            let slot = Slot {
                number: numbers[place] as u64,
                born: born[j] as u64,
                classes: classes[range.clone()].iter().map(|c| *c as u32).collect(),
                values: values[range.start * width..range.end * width].to_vec(),
                id: (!id.is_empty()).then(|| id.to_owned()),
            };
            self.support.push(&samples[place], slot);
        }
        Ok(())
    }

    /// θ's lengths, and the rounds that its algorithm has done.
    fn restore_theta(&mut self, tensors: &Stored<'_>, rounds: u64) -> Result<()> {
        let kernels = self.bank.n_kernels();
        let theta = tensors.f64("online.theta")?;
        let squares = tensors.f64("online.squares")?;
        let weights = tensors.f64("online.weights")?;
        let mut numbers = theta.iter().chain(&squares).chain(&weights).copied();
        let sound = theta.len() == 2
            && theta[0] > 0.0
            && squares.len() == kernels
            && weights.len() == kernels
            && numbers.all(|v| v >= 0.0 && v.is_finite());
        if !sound {
            return Err(wrong("the lengths of its weight vectors do not fit"));
        }
        let lengths = Lengths {
            scale: theta[0],
            length: theta[1],
            squares,
            weights,
        };
        let rule = self.settings.rule;
        self.theta =
            Theta::restored(self.block_norm, lengths).with_link(rule.link(&self.block_norm));
        self.algorithm = rule.algorithm(&self.block_norm, rounds);
        Ok(())
    }

    fn restore_combiner(&mut self, combiner: Option<Combiner>) -> Result<()> {
        match (&combiner, &self.combiner) {
            (None, None) => {}
            (Some(kept), Some(_)) if kept.fits(self.classes.len(), self.bank.n_kernels()) => {}
            (Some(_), _) => return Err(wrong("its combiner does not fit")),
            (None, Some(_)) => return Err(wrong("its combiner is missing")),
        }
        self.combiner = combiner;
        Ok(())
    }

    fn restore_waiting(&mut self, waiting: Vec<WaitingState>, tensors: &Stored<'_>) -> Result<()> {
        if waiting.is_empty() {
            return Ok(());
        }
        let schemas = self.bank.views().iter().enumerate();
        let views = schemas.map(|(v, schema)| {
            Ok(View {
                name: schema.name.clone(),
                columns: schema.columns.clone(),
                data: read_rows(tensors, v, schema.width, waiting.len())?,
            })
        });
        let views = Views::new(views.collect::<Result<_>>()?)?;
        let samples = self.bank.samples(&views)?;
        if samples.len() != waiting.len() {
            return Err(wrong("examples that wait are missing"));
        }
        for (waiting, sample) in waiting.into_iter().zip(samples) {
            let prediction = waiting.prediction;
            let known = prediction.is_none_or(|k| (k as usize) < self.classes.len());
            if !known || waiting.scores.iter().any(|s| !s.is_finite()) {
                return Err(wrong("a prediction does not fit"));
            }
            self.queue.push_back((waiting.number, waiting.id.clone()));
            let kept = Waiting {
                number: waiting.number,
                sample,
                prediction,
                scores: waiting.scores,
            };
            if self.waiting.insert(waiting.id, kept).is_some() {
                return Err(wrong("two examples that wait have the same id"));
            }
        }
        Ok(())
    }
}

impl Support {
    /// Slots, but for their rows, which are the model's; `order` tells where in it.
    fn write(&self, order: &[usize], tensors: &mut Tensors) {
        let slots = self.slots();
        tensors.u64("online.order", order.iter().copied());
        tensors.u64("online.born", slots.iter().map(|s| s.born as usize));
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
    }
}

fn wrong(found: &str) -> Error {
    damaged(format!("the state of its stream: {found}"))
}

/// The model's kernels without what belongs to its samples.
fn fitted_kernels(model: &Model) -> Vec<Kernel> {
    let kernels = model.kernels().iter();
    kernels
        .map(|kernel| Kernel {
            normalizer: match &kernel.normalizer {
                Normalizer::Factor(factor) => Normalizer::Factor(*factor),
                _ => Normalizer::None,
            },
            ..kernel.clone()
        })
        .collect()
}

fn tensor_name(view: usize, what: &str) -> String {
    format!("online.waiting.{view}.{what}")
}

/// A view of the examples that wait.
fn write_rows(tensors: &mut Tensors, view: usize, data: &ViewData) {
    let name = |what: &str| tensor_name(view, what);
    match data {
        ViewData::Dense(x) => tensors.f32(&name("values"), &[x.values().len()], x.values()),
        ViewData::Sparse(x) => {
            let (mut indices, mut values, mut starts) = (Vec::new(), Vec::new(), vec![0]);
            for i in 0..x.rows() {
                let (columns, row) = x.row(i);
                indices.extend(columns.iter().flat_map(|c| c.to_le_bytes()));
                values.extend_from_slice(row);
                starts.push(values.len());
            }
            tensors.f32(&name("values"), &[values.len()], &values);
            tensors.u64(&name("starts"), starts.into_iter());
            tensors.indices(&name("indices"), indices);
        }
        ViewData::Strings(_) | ViewData::Pairwise(_) => {}
    }
}

/// The rows of `n` examples that wait in a view, dense with this width or sparse.
fn read_rows(
    tensors: &Stored<'_>,
    view: usize,
    width: Option<usize>,
    n: usize,
) -> Result<ViewData> {
    let name = |what: &str| tensor_name(view, what);
    let values = tensors.f32(&name("values"))?;
    Ok(match width {
        Some(width) => ViewData::Dense(Dense::new(n, width, values)?),
        None => {
            let starts = tensors.u64(&name("starts"))?;
            let indices = tensors.indices(&name("indices"))?;
            let widest = indices.iter().max().map_or(1, |c| *c as usize + 1);
            ViewData::Sparse(Csr::new(widest, starts, indices, values)?)
        }
    })
}
