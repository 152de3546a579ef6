//! Predicting and learning.

use super::bank::Scratch;
use super::sample::Sample;
use super::support::{Change, Partial, Slot};
use super::{Online, Outcome, Rule, Waiting};
use crate::data::Views;
use crate::error::{Error, Result};
use crate::solve::steps::{Follow, om2_step, passive_aggressive_step};

/// Examples scored together, at most.
const BLOCK: usize = 64;
/// Bytes that their sums may take.
const BLOCK_BYTES: usize = 64 << 20;
/// Lengths of θ are computed from scratch after so many updates, and one more for every support vector: round-off
/// stays small, and the cost of an update linear.
const REFRESH: u64 = 4096;

/// How an example stands to the learner when its label comes.
struct Round {
    number: u64,
    id: Option<String>,
    class: usize,
    /// The class is new.
    new: bool,
    /// Predicted when it came.
    prediction: Option<u32>,
}

impl Online {
    /// What it would say about samples; nothing is learned or counted.
    ///
    /// # Errors
    /// If the views are not those of the stream.
    pub fn predict(&self, views: &Views) -> Result<Vec<Outcome>> {
        let samples = self.samples(views)?;
        let mut outcomes = Vec::with_capacity(samples.len());
        let mut scratch = Scratch::default();
        for block in samples.chunks(self.block_size()) {
            let mut partials = self.support.partials(&self.bank, block, self.outputs());
            for (sample, partial) in block.iter().zip(&mut partials) {
                let kernel_scores = self.kernel_scores(sample, partial, &mut scratch);
                let scores = self.scores(&kernel_scores);
                outcomes.push(Outcome {
                    prediction: self.prediction(&scores),
                    correct: None,
                    scores,
                });
            }
        }
        Ok(outcomes)
    }

    /// Predicts every example and then learns from it, in order: exactly what as many calls with one example each would do.
    ///
    /// An example without a label is predicted only; if it has an id ([`Views::set_ids`]) it waits for [`Online::teach`].
    ///
    /// # Errors
    /// If an example or label is wrong: the error names its row ([`Error::row`]), and nothing has been learned of any of them.
    ///
    /// # Panics
    /// If there is not one label (or none) for each example.
    pub fn learn(&mut self, views: &Views, labels: &[Option<&str>]) -> Result<Vec<Outcome>> {
        let from = self.next;
        let outcomes = self.learn_numbered(views, labels, from)?;
        self.next = from + labels.len() as u64;
        Ok(outcomes)
    }

    /// As [`Online::learn`] for examples that were seen before, the first of them as number `from` (counted from 0): their
    /// coefficients change, they are no new support vectors. [`Online::begin_pass`] tells where passes begin.
    ///
    /// # Errors
    /// As [`Online::learn`]; and if so many have not been seen.
    ///
    /// # Panics
    /// As [`Online::learn`].
    pub fn learn_again(
        &mut self,
        views: &Views,
        labels: &[Option<&str>],
        from: u64,
    ) -> Result<Vec<Outcome>> {
        if from + labels.len() as u64 > self.next {
            return Err(Error::input(
                "stream",
                format!("only {} examples have been seen", self.next),
                "repeat the examples of the first pass",
            ));
        }
        self.learn_numbered(views, labels, from)
    }

    /// Counts what follows as one more pass over the data; nothing waits for a label any more.
    pub fn begin_pass(&mut self) {
        self.waiting.clear();
        self.queue.clear();
        self.report.passes.push(super::Pass::default());
    }

    /// The label of an example that waits for it.
    ///
    /// The outcome tells of the prediction that was made when the example came.
    ///
    /// # Errors
    /// If no example of this id waits, or the label is wrong.
    pub fn teach(&mut self, id: &str, label: &str) -> Result<Outcome> {
        self.check_class(label, &self.classes)?;
        if !self.waiting.contains_key(id) {
            return Err(Error::input(
                format!("id '{id}'"),
                "no example of this id waits for a label",
                "give the example first, without a label",
            ));
        }
        if let Some(comparator) = &self.comparator {
            let sample = &self.waiting[id].sample;
            // the comparator's own model scales
            let views = Views::new(self.bank.to_views(std::iter::once(sample))?)?;
            if !self.scaling.is_none() {
                return Err(Error::input(
                    "comparator",
                    "late labels and scaled features do not go together with it",
                    "leave one of them out",
                ));
            }
            let known = self.with_class(label);
            let loss: f64 = comparator
                .losses(&views, &[Some(label)], &known)?
                .iter()
                .sum();
            self.report.comparator_loss += loss;
        }
        let Some(waiting) = self.waiting.remove(id) else {
            return Err(Error::Stopped);
        };
        self.queue.retain(|(number, _)| *number != waiting.number);
        let new = !self.class_of.contains_key(label);
        let class = self.class_number(label) as usize;
        let round = Round {
            number: waiting.number,
            id: Some(id.to_owned()),
            class,
            new,
            prediction: waiting.prediction,
        };
        let correct = waiting.prediction == Some(class as u32);
        let mut partial = Partial::default();
        self.step(
            &waiting.sample,
            &mut partial,
            round,
            &mut Scratch::default(),
        );
        Ok(Outcome {
            prediction: waiting.prediction,
            correct: Some(correct),
            scores: waiting.scores,
        })
    }

    /// The classes, and this one if it is new.
    fn with_class(&self, label: &str) -> Vec<String> {
        let mut known = self.classes.clone();
        if !self.class_of.contains_key(label) {
            known.push(label.to_owned());
        }
        known
    }

    fn learn_numbered(
        &mut self,
        views: &Views,
        labels: &[Option<&str>],
        from: u64,
    ) -> Result<Vec<Outcome>> {
        assert_eq!(
            labels.len(),
            views.len(),
            "one label or none for each example"
        );
        // Everything that can be wrong is looked at before anything is learned.
        let samples = self.samples(views)?;
        let mut known = self.classes.clone();
        let ids = views.ids();
        let mut fresh = std::collections::HashSet::new();
        for (i, label) in labels.iter().enumerate() {
            if let Some(label) = label {
                self.check_class(label, &known).map_err(|e| e.of_row(i))?;
                if self.settings.binary && !known.iter().any(|c| c == label) {
                    known.push((*label).to_owned());
                }
            } else if let Some(id) = ids.map(|ids| &ids[i])
                && !id.is_empty()
                && (self.waiting.contains_key(id) || !fresh.insert(id))
            {
                return Err(Error::input(
                    "",
                    format!("an example of id '{id}' waits for its label already"),
                    "give every example an id of its own",
                )
                .of_row(i));
            }
        }
        let losses = match &self.comparator {
            Some(comparator) => {
                let mut known = self.classes.clone();
                for label in labels.iter().flatten() {
                    if !known.iter().any(|c| c == label) {
                        known.push((*label).to_owned());
                    }
                }
                comparator.losses(views, labels, &known)?
            }
            None => Vec::new(),
        };
        self.report.comparator_loss = losses
            .iter()
            .fold(self.report.comparator_loss, |sum, loss| sum + loss);
        let mut outcomes = Vec::with_capacity(samples.len());
        let mut scratch = Scratch::default();
        let mut start = 0;
        while start < samples.len() {
            let end = (start + self.block_size()).min(samples.len());
            let block = &samples[start..end];
            let mut partials = self.support.partials(&self.bank, block, self.outputs());
            for (k, (sample, partial)) in block.iter().zip(&mut partials).enumerate() {
                let i = start + k;
                let id = ids.map(|ids| ids[i].clone()).filter(|id| !id.is_empty());
                let number = from + i as u64;
                outcomes.push(self.example(sample, partial, labels[i], number, id, &mut scratch));
            }
            start = end;
        }
        Ok(outcomes)
    }

    /// One example of a block.
    fn example(
        &mut self,
        sample: &Sample,
        partial: &mut Partial,
        label: Option<&str>,
        number: u64,
        id: Option<String>,
        scratch: &mut Scratch,
    ) -> Outcome {
        self.report.examples += 1;
        let kernel_scores = self.kernel_scores(sample, partial, scratch);
        let scores = self.scores(&kernel_scores);
        let prediction = self.prediction(&scores);
        let Some(label) = label else {
            if let Some(id) = id {
                self.wait(id, number, sample, prediction, &scores);
            }
            return Outcome {
                prediction,
                correct: None,
                scores,
            };
        };
        let new = !self.class_of.contains_key(label);
        let class = self.class_number(label) as usize;
        let round = Round {
            number,
            id,
            class,
            new,
            prediction,
        };
        self.step(sample, partial, round, scratch);
        Outcome {
            prediction,
            correct: Some(prediction == Some(class as u32)),
            scores,
        }
    }

    fn wait(
        &mut self,
        id: String,
        number: u64,
        sample: &Sample,
        prediction: Option<u32>,
        scores: &[f64],
    ) {
        if self.settings.waiting == 0 {
            return;
        }
        while self.waiting.len() >= self.settings.waiting {
            let Some((_, oldest)) = self.queue.pop_front() else {
                break;
            };
            self.waiting.remove(&oldest);
            self.report.given_up += 1;
        }
        self.queue.push_back((number, id.clone()));
        self.waiting.insert(
            id,
            Waiting {
                number,
                sample: sample.clone(),
                prediction,
                scores: scores.to_vec(),
            },
        );
    }

    /// The samples of views, scaled.
    fn samples(&self, views: &Views) -> Result<Vec<Sample>> {
        match self.scaling.is_none() {
            true => self.bank.samples(views),
            false => self.bank.samples(&self.scaling.apply(views.clone())?),
        }
    }

    fn block_size(&self) -> usize {
        let bytes = self.support.partial_bytes(self.outputs().max(2));
        (BLOCK_BYTES / bytes).clamp(1, BLOCK)
    }

    fn kernel_scores(
        &self,
        sample: &Sample,
        partial: &mut Partial,
        scratch: &mut Scratch,
    ) -> Vec<f64> {
        let outputs = self.outputs();
        self.support
            .kernel_scores(&self.bank, sample, outputs, partial, scratch)
    }

    fn scores(&self, kernel_scores: &[f64]) -> Vec<f64> {
        let mut scores = vec![0.0; self.outputs()];
        match &self.combiner {
            Some(combiner) => combiner.scores(kernel_scores, &mut scores),
            None => self.theta.scores(kernel_scores, &mut scores),
        }
        scores
    }

    fn prediction(&self, scores: &[f64]) -> Option<u32> {
        match (self.settings.binary, self.classes.len()) {
            (_, 0) => None,
            (true, 2) => Some(u32::from(scores[0] > 0.0)),
            (true, _) => Some(0),
            (false, _) => largest(scores, None).map(|k| k as u32),
        }
    }

    /// Learns from a labelled example.
    fn step(
        &mut self,
        sample: &Sample,
        partial: &mut Partial,
        round: Round,
        scratch: &mut Scratch,
    ) {
        let y = round.class;
        // scores again: a new class, or a label that came late
        let kernel_scores = self.kernel_scores(sample, partial, scratch);
        let scores = self.scores(&kernel_scores);
        let wrong = round.prediction != Some(y as u32);
        let (margin, rival) = match self.settings.binary {
            true => {
                let sign = if y == 1 { 1.0 } else { -1.0 };
                (sign * scores[0], Some(1 - y.min(1)))
            }
            false => {
                let rival = largest(&scores, Some(y));
                (rival.map_or(1.0, |k| scores[y] - scores[k]), rival)
            }
        };
        let largest = sample.diagonal.iter().copied().fold(0.0, f64::max);
        self.report.largest_self_value = self.report.largest_self_value.max(largest);
        let new = round.new;
        let updated = match rival {
            // the only class so far has no rival to learn against
            None => false,
            Some(rival) => {
                self.report.wrong_rounds += u64::from(margin <= 0.0);
                match self.combiner {
                    Some(_) => self.omcl_step(sample, &kernel_scores, y, rival, margin, round),
                    None => self.theta_step(sample, &kernel_scores, y, rival, margin, round),
                }
            }
        };
        self.report.count(wrong, new, updated, self.support.len());
        if updated {
            self.keep_budget(scratch);
            self.keep_lengths();
        }
    }

    /// Steps of the rules that share coefficients.
    fn theta_step(
        &mut self,
        sample: &Sample,
        kernel_scores: &[f64],
        y: usize,
        rival: usize,
        margin: f64,
        round: Round,
    ) -> bool {
        let kernels = self.bank.n_kernels();
        let loss = (1.0 - margin).max(0.0);
        // −z: where the loss falls
        let slopes: &[(usize, f64)] = match (self.settings.binary, y) {
            (true, 1) => &[(0, -1.0)],
            (true, _) => &[(0, 1.0)],
            (false, _) => &[(y, -1.0), (rival, 1.0)],
        };
        let sides = slopes.len() as f64;
        let step = match self.settings.rule {
            Rule::Om2 | Rule::Om2Link { .. } => {
                let mut spare = vec![0.0; kernels];
                let length = self.theta.length_of(&sample.diagonal, &mut spare);
                let square = sides * length * length;
                if loss == 0.0 || square == 0.0 {
                    return false;
                }
                let step = om2_step(margin, square);
                if margin > 0.0 {
                    self.report.margin_steps += step;
                }
                step
            }
            Rule::Obscure { eta } if loss > 0.0 => eta,
            Rule::Obscure { .. } => return false,
            Rule::PassiveAggressive { c } => {
                let mean = sample.diagonal.iter().sum::<f64>() / kernels as f64;
                let square = sides * mean;
                if loss == 0.0 || square == 0.0 {
                    return false;
                }
                // w of the average kernel is θ/2 of the sum at r = 2, times the number of kernels
                2.0 * passive_aggressive_step(c, loss, square) / kernels as f64
            }
            Rule::Pegasos { .. } => {
                let mut spare = vec![0.0; kernels];
                let length = self.theta.length_of(&sample.diagonal, &mut spare);
                let gradient = if loss > 0.0 {
                    sides.sqrt() * length
                } else {
                    0.0
                };
                let at = self.theta.length();
                let Some(adaptive) = &mut self.adaptive else {
                    return false;
                };
                let step = adaptive.next(at, gradient);
                let mut follow = Follow::Nothing;
                if step.shrink < 1.0 {
                    follow = self.theta.shrink(step.shrink);
                }
                match follow {
                    Follow::Nothing => {}
                    Follow::Fold(factor) => {
                        self.support.fold(factor);
                        if loss > 0.0 {
                            let folded: Vec<f64> =
                                kernel_scores.iter().map(|f| f * factor).collect();
                            return self.add(sample, &folded, slopes, step.step, round);
                        }
                    }
                    Follow::Forget => {
                        self.support.clear();
                        if loss > 0.0 {
                            let none = vec![0.0; kernel_scores.len()];
                            return self.add(sample, &none, slopes, step.step, round);
                        }
                    }
                }
                if loss == 0.0 {
                    return false;
                }
                step.step
            }
            Rule::Omcl { .. } => return false,
        };
        self.add(sample, kernel_scores, slopes, step, round)
    }

    /// θ ← θ − step·slopes at the sample.
    fn add(
        &mut self,
        sample: &Sample,
        kernel_scores: &[f64],
        slopes: &[(usize, f64)],
        step: f64,
        round: Round,
    ) -> bool {
        if step == 0.0 {
            return false;
        }
        let changes: Vec<(usize, f64)> = slopes
            .iter()
            .map(|&(k, slope)| (k, self.theta.change(step, slope)))
            .collect();
        let kernels = sample.diagonal.len();
        let changed = changes
            .iter()
            .map(|&(k, change)| (change, &kernel_scores[k * kernels..][..kernels]));
        self.theta.add(changed, &sample.diagonal);
        let changes = changes.into_iter().map(|(k, change)| Change {
            class: k as u32,
            values: vec![change],
        });
        self.put(sample, &changes.collect::<Vec<_>>(), round);
        true
    }

    /// OMCL: every kernel by itself, then the combiner.
    fn omcl_step(
        &mut self,
        sample: &Sample,
        kernel_scores: &[f64],
        y: usize,
        rival: usize,
        margin: f64,
        round: Round,
    ) -> bool {
        let Rule::Omcl { c } = self.settings.rule else {
            return false;
        };
        let kernels = self.bank.n_kernels();
        let mut changes: Vec<Change> = Vec::new();
        for (m, diagonal) in sample.diagonal.iter().enumerate() {
            let own: Vec<f64> = kernel_scores
                .iter()
                .skip(m)
                .step_by(kernels)
                .copied()
                .collect();
            let Some(rival) = largest(&own, Some(y)) else {
                continue;
            };
            let loss = 1.0 - (own[y] - own[rival]);
            let square = 2.0 * diagonal;
            if loss <= 0.0 || square == 0.0 {
                continue;
            }
            let step = passive_aggressive_step(c, loss, square);
            for (class, sign) in [(y, step), (rival, -step)] {
                let class = class as u32;
                let place = changes.iter().position(|change| change.class == class);
                let place = place.unwrap_or_else(|| {
                    changes.push(Change {
                        class,
                        values: vec![0.0; kernels],
                    });
                    changes.len() - 1
                });
                changes[place].values[m] += sign;
            }
        }
        let combined = match &mut self.combiner {
            Some(combiner) => combiner.step(c, y, rival, margin, kernel_scores),
            None => false,
        };
        let stepped = !changes.is_empty();
        if stepped {
            self.put(sample, &changes, round);
        }
        stepped || combined
    }

    /// Changes the coefficients of an example, which is a support vector from then on.
    fn put(&mut self, sample: &Sample, changes: &[Change], round: Round) {
        let slot = self.support.place(round.number).unwrap_or_else(|| {
            let slot = Slot {
                number: round.number,
                born: self.report.updates,
                id: round.id,
                ..Slot::default()
            };
            self.support.push(sample, slot);
            self.support.len() - 1
        });
        self.support.change(slot, changes);
    }

    /// ‖θ_m‖² from scratch now and then.
    fn keep_lengths(&mut self) {
        self.since_refresh += 1;
        let often = REFRESH + self.support.len() as u64;
        if self.combiner.is_some() || self.since_refresh < often {
            return;
        }
        self.since_refresh = 0;
        self.theta.refresh(self.squares());
    }

    /// Σ_j Σ_k ĉ_jk (K_m ĉ)_jk, slot after slot.
    pub(super) fn squares(&self) -> Vec<f64> {
        let kernels = self.bank.n_kernels();
        let outputs = self.outputs();
        let mut squares = vec![0.0; kernels];
        let mut scratch = Scratch::default();
        let all: Vec<usize> = (0..self.support.len()).collect();
        for block in all.chunks(self.block_size()) {
            let samples: Vec<Sample> = block.iter().map(|&j| self.support.sample(j)).collect();
            let mut partials = self.support.partials(&self.bank, &samples, outputs);
            for ((&j, sample), partial) in block.iter().zip(&samples).zip(&mut partials) {
                let scores = self.kernel_scores(sample, partial, &mut scratch);
                let slot = &self.support.slots()[j];
                for (class, c) in slot.classes.iter().zip(&slot.values) {
                    let at = *class as usize * kernels;
                    let row = &scores[at..at + kernels];
                    squares.iter_mut().zip(row).for_each(|(q, f)| *q += c * f);
                }
            }
        }
        squares
    }
}

/// The first of the largest, passing over one.
fn largest(values: &[f64], except: Option<usize>) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (k, value) in values.iter().enumerate() {
        if Some(k) != except && best.is_none_or(|b| *value > values[b]) {
            best = Some(k);
        }
    }
    best
}
