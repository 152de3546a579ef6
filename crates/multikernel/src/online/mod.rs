//! Learning from a stream, one example at a time, with several kernels: OM-2 and its relatives.
//!
//! Problem: examples come one after another; each is predicted, then its label may be told, and the learner steps. It never
//! needs to see an example twice, may stop at any time, and its state is a file.
//!
//! Method: θ = Σ_j c_j φ(x_j, ·) over the examples that caused a step (the support), w_m = (1/q)(‖θ_m‖/‖θ‖_{2,q})^{q−2} θ_m. The
//! step rules are in [`Rule`]; OM-2's mistakes are bounded by its Theorem 1 ([`MistakeBound`]). A [`Budget`] bounds the support.
//!
//! Cost of an example: support × kernels, and support × columns for the statistics that the kernels share. Examples that wait
//! together are scored together, and only chunks of the support that changed since are summed again, so the results are the
//! same to the last bit whatever the blocks, the threads, or interruptions.
//!
//! ```
//! use multikernel::data::digits;
//! use multikernel::kernel::KernelSpec;
//! use multikernel::online::{Online, StreamSettings};
//!
//! let data = digits()?;
//! let labels = data.labels.ok_or(multikernel::Error::Stopped)?;
//! let rows: Vec<usize> = (0..400).collect();
//! let views = data.views.select(&rows)?;
//! let mut online = Online::new(StreamSettings::default(), &KernelSpec::parse("rbf")?, &views)?;
//! let known: Vec<Option<&str>> = rows.iter().map(|&i| Some(labels.spelling(i))).collect();
//! let outcomes = online.learn(&views, &known)?;
//! assert_eq!(outcomes.len(), 400);
//! assert!(online.report().online_error() < 0.5);
//! let model = online.snapshot()?; // an ordinary model
//! # assert_eq!(model.predict(&views)?.len(), 400);
//! # Ok::<(), multikernel::Error>(())
//! ```

mod bank;
mod bound;
mod budget;
mod learn;
mod report;
mod rules;
mod sample;
mod snapshot;
mod state;
mod step;
mod support;
#[cfg(test)]
mod tests;

pub use bound::MistakeBound;
pub use budget::{Budget, Keep};
pub use report::{Curve, Pass, Report};
pub use rules::Rule;

use crate::data::{ScaleOption, Scaling, Views};
use crate::error::{Error, Result};
use crate::gram::{Kernel, KernelSet, Options};
use crate::kernel::{KernelSpec, Width};
use crate::norm::{BlockNorm, NormSpec};
use crate::solve::steps::omcl::Combiner;
use crate::solve::steps::{Algorithm, Theta};
use bank::Bank;
use bound::Comparator;
use sample::Sample;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use support::Support;

/// What is to be learned and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamSettings {
    /// The step rule.
    pub rule: Rule,
    /// How kernels share; OM-2's corollary chooses p by their number (`block:auto`).
    pub norm: NormSpec,
    /// One score for two classes instead of a score for each class; a third class is then an error.
    pub binary: bool,
    /// Classes that are known from the start; others may appear in the stream.
    pub classes: Vec<String>,
    /// The largest support.
    pub budget: Option<Budget>,
    /// Examples without a label that wait for one, at most; the oldest is given up first.
    pub waiting: usize,
}

impl Default for StreamSettings {
    fn default() -> Self {
        StreamSettings {
            rule: Rule::Om2,
            norm: NormSpec::BlockAuto,
            binary: false,
            classes: Vec::new(),
            budget: None,
            waiting: 10_000,
        }
    }
}

impl StreamSettings {
    /// Refuses settings that no stream could make right.
    ///
    /// # Errors
    /// The first thing that is wrong, in a sentence.
    pub fn check(&self) -> Result<()> {
        self.rule.check()?;
        if self.binary && matches!(self.rule, Rule::Omcl { .. }) {
            return Err(Error::input(
                "omcl",
                "it combines the scores of all classes, and has no form with one score",
                "leave binary out: two classes have two scores then",
            ));
        }
        if let Some(budget) = &self.budget
            && budget.size < 2
        {
            return Err(Error::input(
                "budget",
                format!("{} support vectors", budget.size),
                "give at least 2",
            ));
        }
        // The exponent of block:auto depends on the number of kernels; whether it is one that is learned in does not.
        self.rule.norm(&self.norm, 2).map(|_| ())
    }
}

/// Widths that are to be chosen by distances need two samples.
fn check_first(kernels: &[KernelSpec], samples: usize) -> Result<()> {
    let by_data = |spec: &&KernelSpec| spec.kind.width().is_some_and(Width::is_chosen_by_data);
    let chosen = kernels.iter().find(by_data);
    match chosen {
        Some(spec) if samples < 2 => Err(Error::input(
            match &spec.name {
                Some(name) => format!("kernel '{name}'"),
                None => format!("kernel '{spec}'"),
            },
            format!(
                "its width is chosen by the distances between the first samples, and there is {samples} sample"
            ),
            "begin with at least two samples that differ, or give kernels with numbers as widths, such as rbf:width=1",
        )),
        _ => Ok(()),
    }
}

/// What was said about an example, and whether it was right.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The class predicted before the label was seen, a position in [`Online::classes`]; none while no class is known.
    pub prediction: Option<u32>,
    /// Whether that was right; none without a label.
    pub correct: Option<bool>,
    /// Scores when it was predicted: one for each class known then; a single one of the second class in binary learning.
    pub scores: Vec<f64>,
}

/// A learner of a stream.
#[derive(Debug)]
pub struct Online {
    settings: StreamSettings,
    norm: NormSpec,
    block_norm: BlockNorm,
    scaling: Scaling,
    bank: Bank,
    support: Support,
    theta: Theta,
    /// What steps in θ; none for OMCL.
    algorithm: Option<Algorithm>,
    /// OMCL's upper layer.
    combiner: Option<Combiner>,
    classes: Vec<String>,
    class_of: HashMap<String, u32>,
    waiting: HashMap<String, Waiting>,
    /// Arrival number and id of those that wait, oldest first; some may have gone.
    queue: VecDeque<(u64, String)>,
    /// Number of the next new example.
    next: u64,
    since_refresh: u64,
    report: Report,
    comparator: Option<Comparator>,
    notes: Vec<String>,
    warnings: Vec<String>,
    /// A sample of the first block: what a model without support shows of its views.
    first: Sample,
    carried: serde_json::Value,
}

/// An example that waits for its label.
#[derive(Debug, Clone, PartialEq)]
struct Waiting {
    number: u64,
    sample: Sample,
    prediction: Option<u32>,
    scores: Vec<f64>,
}

impl Online {
    /// A learner that has seen nothing. Widths of kernels and factors of normalisations are chosen by the samples of `first`,
    /// usually the first block of the stream; they are not learned from here. Kernels must be expanded to views or are
    /// expanded to all of them.
    ///
    /// # Errors
    /// If a kernel cannot be evaluated on a stream, or a setting makes no sense.
    pub fn new(settings: StreamSettings, kernels: &[KernelSpec], first: &Views) -> Result<Online> {
        Self::scaled(settings, kernels, &[], first, 0)
    }

    /// As [`Online::new`], with features scaled by statistics of `first`; `seed` serves width heuristics on large blocks.
    pub fn scaled(
        settings: StreamSettings,
        kernels: &[KernelSpec],
        scale: &[ScaleOption],
        first: &Views,
        seed: u64,
    ) -> Result<Online> {
        let scaling = Scaling::fit(scale, first)?;
        let first = scaling.apply(first.clone())?;
        let options = Options {
            seed,
            ..Options::default()
        };
        check_first(kernels, first.len())?;
        let set = KernelSet::new(kernels, &first, &options, &())?;
        let mut online = Self::with_kernels(settings, set.kernels().to_vec(), scaling, &first)?;
        online.notes.extend_from_slice(set.notes());
        online.warnings.extend_from_slice(set.warnings());
        Ok(online)
    }

    /// A learner for kernels that are fitted already; `first` shows what samples look like after scaling.
    pub fn with_kernels(
        settings: StreamSettings,
        kernels: Vec<Kernel>,
        scaling: Scaling,
        first: &Views,
    ) -> Result<Online> {
        settings.check()?;
        let bank = Bank::new(kernels, first)?;
        let sample = bank.samples(first)?.into_iter().next().ok_or_else(|| {
            Error::input(
                "stream",
                "the first block is empty",
                "give at least one example",
            )
        })?;
        let count = bank.n_kernels();
        let (norm, block_norm) = settings.rule.norm(&settings.norm, count)?;
        let mut notes = Vec::new();
        // the usual ones, here and of training, are nothing that somebody asked for
        let usual = [NormSpec::BlockAuto, NormSpec::default()];
        if !settings.rule.uses_norm() && !usual.contains(&settings.norm) {
            notes.push(format!(
                "solver {} learns in no norm; the norm {} is not used",
                settings.rule, settings.norm
            ));
        }
        let mut online = Online {
            support: Support::new(&bank, matches!(settings.rule, Rule::Omcl { .. })),
            theta: Theta::new(block_norm, count).with_link(settings.rule.link(&block_norm)),
            algorithm: settings.rule.algorithm(&block_norm, 0),
            combiner: matches!(settings.rule, Rule::Omcl { .. }).then(|| Combiner::new(count)),
            norm,
            block_norm,
            scaling,
            bank,
            classes: Vec::new(),
            class_of: HashMap::new(),
            waiting: HashMap::new(),
            queue: VecDeque::new(),
            next: 0,
            since_refresh: 0,
            report: Report::default(),
            comparator: None,
            notes,
            warnings: Vec::new(),
            first: sample,
            carried: serde_json::Value::Null,
            settings,
        };
        for class in online.settings.classes.clone() {
            online.check_class(&class, &online.classes)?;
            online.class_number(&class);
        }
        Ok(online)
    }

    /// What it was asked to do.
    pub fn settings(&self) -> &StreamSettings {
        &self.settings
    }

    /// The classes known so far, in the order in which they came.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The kernels.
    pub fn kernels(&self) -> &[Kernel] {
        self.bank.kernels()
    }

    /// The norm that is learned in.
    pub fn norm(&self) -> &NormSpec {
        &self.norm
    }

    pub(super) fn block_norm(&self) -> &BlockNorm {
        &self.block_norm
    }

    /// The weight of every kernel now.
    pub fn weights(&self) -> Vec<f64> {
        match (&self.settings.rule, &self.combiner) {
            (_, Some(combiner)) => combiner.weights(),
            (Rule::PassiveAggressive { .. }, _) => {
                vec![1.0 / self.bank.n_kernels() as f64; self.bank.n_kernels()]
            }
            _ => self.theta.weights().to_vec(),
        }
    }

    /// ‖w_m‖ of every kernel now; none for OMCL, which keeps no lengths.
    pub fn group_norms(&self) -> Option<Vec<f64>> {
        if self.combiner.is_some() {
            return None;
        }
        let forms = self.theta.model_forms();
        let pairs = forms.iter().zip(self.theta.weights());
        Some(pairs.map(|(q, beta)| beta * q.sqrt()).collect())
    }

    /// Number of support vectors.
    pub fn n_support(&self) -> usize {
        self.support.len()
    }

    /// Number of examples seen as new ones: what the next one will be called.
    pub fn n_seen(&self) -> u64 {
        self.next
    }

    /// Ids of the examples that wait for a label.
    pub fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the example of this id waits for a label.
    pub fn is_waiting(&self, id: &str) -> bool {
        self.waiting.contains_key(id)
    }

    /// Mistakes, curve, counts.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// How features are scaled.
    pub fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    /// What was chosen automatically, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What the user should look at, in sentences.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Something that belongs to the stream and is kept with the state: where its source stands, for instance.
    pub fn carried(&self) -> &serde_json::Value {
        &self.carried
    }

    /// Keeps something with the state.
    pub fn carry(&mut self, value: serde_json::Value) {
        self.carried = value;
    }

    /// A fixed predictor whose loss is added up from here on, for [`Online::mistake_bound`].
    ///
    /// # Errors
    /// If it is no point of the learner's spaces: other kernels, a bias, several problems.
    pub fn compare_with(&mut self, model: crate::model::Model) -> Result<()> {
        self.comparator = Some(Comparator::new(model, self)?);
        Ok(())
    }

    /// The bound of Theorem 1 for the comparator; none without one, for rules other than OM-2, and once a budget took
    /// something away.
    pub fn mistake_bound(&self) -> Option<MistakeBound> {
        let comparator = self.comparator.as_ref()?;
        self.bound_for(comparator.norm)
    }

    fn bound_for(&self, comparator_norm: f64) -> Option<MistakeBound> {
        if !self.settings.rule.is_bounded(&self.block_norm) || self.report.removed > 0 {
            return None;
        }
        Some(MistakeBound::new(
            &self.block_norm,
            self.bank.n_kernels(),
            self.settings.binary,
            comparator_norm,
            &self.report,
        ))
    }

    fn check_class(&self, class: &str, known: &[String]) -> Result<()> {
        if class.is_empty() {
            return Err(Error::input(
                "label",
                "it is empty",
                "give a label, or leave it out for an example without one",
            ));
        }
        let new = !known.iter().any(|c| c == class);
        if self.settings.binary && new && known.len() >= 2 {
            return Err(Error::input(
                "label",
                format!(
                    "'{class}' is a third class beside '{}' and '{}', and one score tells two apart",
                    known[0], known[1]
                ),
                "learn without binary",
            ));
        }
        Ok(())
    }

    /// The number of a class; a new one gets the next.
    fn class_number(&mut self, class: &str) -> u32 {
        if let Some(known) = self.class_of.get(class) {
            return *known;
        }
        let number = self.classes.len() as u32;
        self.classes.push(class.to_owned());
        self.class_of.insert(class.to_owned(), number);
        if let Some(combiner) = &mut self.combiner {
            combiner.add_class();
        }
        number
    }

    /// Scores per sample: one for each class, or one.
    fn outputs(&self) -> usize {
        match self.settings.binary {
            true => 1,
            false => self.classes.len(),
        }
    }
}
