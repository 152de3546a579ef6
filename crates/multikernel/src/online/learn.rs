//! Predicting and learning.

use super::bank::Scratch;
use super::sample::Sample;
use super::step::Arrival;
use super::support::Partial;
use super::{Online, Prediction, Waiting};
use crate::data::Views;
use crate::error::{Error, Result};

/// Examples scored together, at most.
const BLOCK: usize = 64;
/// Bytes that their sums may take.
const BLOCK_BYTES: usize = 64 << 20;

impl Online {
    /// What it would say about samples; nothing is learned or counted.
    ///
    /// # Errors
    /// If the views are not those of the stream.
    pub fn predict(&self, views: &Views) -> Result<Vec<Prediction>> {
        let samples = self.samples(views)?;
        let mut outcomes = Vec::with_capacity(samples.len());
        let mut scratch = Scratch::default();
        for block in samples.chunks(self.block_size()) {
            let mut partials = self.support.partials(&self.bank, block, self.outputs());
            for (sample, partial) in block.iter().zip(&mut partials) {
                let kernel_scores = self.kernel_scores(sample, partial, &mut scratch);
                let scores = self.scores(&kernel_scores);
                outcomes.push(Prediction {
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
    pub fn learn(&mut self, views: &Views, labels: &[Option<&str>]) -> Result<Vec<Prediction>> {
        let from = self.next;
        let outcomes = self.learn_numbered(views, labels, from)?;
        self.next = from + labels.len() as u64;
        Ok(outcomes)
    }

    /// As [`Online::learn`] for examples that were seen before, the first of them as number `from` (counted from 0): their
    /// coefficients change, they are no new support vectors. [`Online::begin_pass`] tells where passes begin.
    ///
    /// # Errors
    /// As [`Online::learn`]; and if fewer examples have been seen.
    ///
    /// # Panics
    /// As [`Online::learn`].
    pub fn learn_again(
        &mut self,
        views: &Views,
        labels: &[Option<&str>],
        from: u64,
    ) -> Result<Vec<Prediction>> {
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
    pub fn teach(&mut self, id: &str, label: &str) -> Result<Prediction> {
        self.check_class(label, &self.classes)?;
        if !self.waiting.contains_key(id) {
            return Err(Error::input(
                format!("id '{id}'"),
                "no example of this id waits for a label",
                "give the example first, without a label",
            ));
        }
        if self.comparator.is_some() {
            if !self.scaling.is_none() {
                // the comparator's own model scales
                return Err(Error::input(
                    "comparator",
                    "late labels and scaled features do not go together with it",
                    "leave one of them out",
                ));
            }
            let sample = std::iter::once(&self.waiting[id].sample);
            let views = Views::new(self.bank.to_views(sample)?)?;
            self.add_comparator_loss(&views, &[Some(label)])?;
        }
        let Some(waiting) = self.waiting.remove(id) else {
            return Err(Error::Stopped);
        };
        self.queue.retain(|(number, _)| *number != waiting.number);
        let arrival = Arrival {
            number: waiting.number,
            id: Some(id.to_owned()),
            prediction: waiting.prediction,
        };
        let (mut partial, mut scratch) = (Partial::default(), Scratch::default());
        let correct = self.step(&waiting.sample, &mut partial, arrival, label, &mut scratch);
        Ok(Prediction {
            prediction: waiting.prediction,
            correct: Some(correct),
            scores: waiting.scores,
        })
    }

    /// Adds ℓ(u, x, y) of the comparator, if there is one.
    fn add_comparator_loss(&mut self, views: &Views, labels: &[Option<&str>]) -> Result<()> {
        let Some(comparator) = &self.comparator else {
            return Ok(());
        };
        let mut known = self.classes.clone();
        for label in labels.iter().flatten() {
            if !known.iter().any(|c| c == label) {
                known.push((*label).to_owned());
            }
        }
        for loss in comparator.losses(views, labels, &known)? {
            self.report.comparator_loss += loss;
        }
        Ok(())
    }

    /// Whether the labels and ids may be learned from.
    fn check_examples(&self, views: &Views, labels: &[Option<&str>]) -> Result<()> {
        let mut known = self.classes.clone();
        let mut fresh = std::collections::HashSet::new();
        for (i, label) in labels.iter().enumerate() {
            if let Some(label) = label {
                self.check_class(label, &known).map_err(|e| e.of_row(i))?;
                if self.settings.binary && !known.iter().any(|c| c == label) {
                    known.push((*label).to_owned());
                }
            } else if let Some(id) = id_of(views, i)
                && (self.waiting.contains_key(&id) || !fresh.insert(id.clone()))
            {
                return Err(Error::input(
                    "",
                    format!("an example of id '{id}' waits for its label already"),
                    "give every example an id of its own",
                )
                .of_row(i));
            }
        }
        Ok(())
    }

    fn learn_numbered(
        &mut self,
        views: &Views,
        labels: &[Option<&str>],
        from: u64,
    ) -> Result<Vec<Prediction>> {
        assert_eq!(
            labels.len(),
            views.len(),
            "one label or none for each example"
        );
        // Everything that can be wrong is looked at before anything is learned.
        let samples = self.samples(views)?;
        self.check_examples(views, labels)?;
        self.add_comparator_loss(views, labels)?;
        let mut outcomes = Vec::with_capacity(samples.len());
        let mut scratch = Scratch::default();
        let mut start = 0;
        while start < samples.len() {
            let end = (start + self.block_size()).min(samples.len());
            let block = &samples[start..end];
            let mut partials = self.support.partials(&self.bank, block, self.outputs());
            for (k, (sample, partial)) in block.iter().zip(&mut partials).enumerate() {
                let i = start + k;
                let (number, id) = (from + i as u64, id_of(views, i));
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
    ) -> Prediction {
        self.report.examples += 1;
        let kernel_scores = self.kernel_scores(sample, partial, scratch);
        let scores = self.scores(&kernel_scores);
        let prediction = self.prediction(&scores);
        let Some(label) = label else {
            if let Some(id) = id {
                self.wait(id, number, sample, prediction, &scores);
            }
            return Prediction {
                prediction,
                correct: None,
                scores,
            };
        };
        let arrival = Arrival {
            number,
            id,
            prediction,
        };
        let correct = self.step(sample, partial, arrival, label, scratch);
        Prediction {
            prediction,
            correct: Some(correct),
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

    pub(super) fn block_size(&self) -> usize {
        let bytes = self.support.partial_bytes(self.outputs().max(2));
        (BLOCK_BYTES / bytes).clamp(1, BLOCK)
    }

    pub(super) fn kernel_scores(
        &self,
        sample: &Sample,
        partial: &mut Partial,
        scratch: &mut Scratch,
    ) -> Vec<f64> {
        let outputs = self.outputs();
        self.support
            .kernel_scores(&self.bank, sample, outputs, partial, scratch)
    }

    pub(super) fn scores(&self, kernel_scores: &[f64]) -> Vec<f64> {
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
            (false, _) => (0..scores.len())
                .reduce(|best, k| if scores[k] > scores[best] { k } else { best })
                .map(|k| k as u32),
        }
    }
}

fn id_of(views: &Views, i: usize) -> Option<String> {
    let id = views.ids().map(|ids| ids[i].clone());
    id.filter(|id| !id.is_empty())
}
