//! Samples that a model is shown: read, put into the order it knows, scored block by block, compared with the truth.

use crate::args::FileArgs;
use crate::session::Session;
use anyhow::Result;
use multikernel::data::{Dataset, Labels, Views};
use multikernel::measure::Scores;
use multikernel::observe::{self, Observer};
use multikernel::record::Evaluation;
use multikernel::select::{Bootstrap, Known, evaluate};
use multikernel::{Error, Model};
use multikernel_io::{Purpose, load};

/// Samples that are predicted at a time.
const BLOCK: usize = 8192;

/// Samples with the views of a model.
pub(crate) struct Samples {
    pub(crate) views: Views,
    pub(crate) labels: Option<Labels>,
    /// What was done to make them fit, in sentences.
    pub(crate) notes: Vec<String>,
    /// Seconds until they were there.
    pub(crate) loaded: f64,
}

/// What a model is worth on samples.
pub(crate) struct Judged {
    pub(crate) evaluation: Evaluation,
    pub(crate) known: Known,
    pub(crate) scores: Scores,
    pub(crate) notes: Vec<String>,
    pub(crate) loaded: f64,
}

impl Samples {
    /// Reads the files as samples for the model.
    pub(crate) fn read(session: &Session, model: &Model, files: &FileArgs) -> Result<Samples> {
        let purpose = Purpose::Prediction {
            references: Some(model.n_training()),
            kernels: None,
        };
        let options = files.load_options(purpose, session.memory_left())?;
        let Dataset {
            views,
            labels,
            mut notes,
        } = load(&options, &session.watcher)?;
        let (views, arranged) = model.arrange(views)?;
        notes.extend(arranged);
        Ok(Samples {
            views,
            labels,
            notes,
            loaded: session.elapsed(),
        })
    }
}

/// What the model is worth on the samples of the files, whose truth must be known; `whose` follows their number in words.
pub(crate) fn judge(
    session: &Session,
    model: &Model,
    files: &FileArgs,
    whose: &str,
) -> Result<Judged> {
    let mut samples = Samples::read(session, model, files)?;
    let known = Known::new(model, samples.labels.as_ref(), &mut samples.notes)?;
    let scores = all_scores(model, &samples.views, &session.watcher)?;
    session.watcher.clear();
    let bootstrap = Bootstrap {
        seed: session.seed,
        ..Bootstrap::default()
    };
    let name = format!("{} samples{whose}", samples.views.len());
    Ok(Judged {
        evaluation: evaluate(model, &scores, known.truth(), name, &bootstrap),
        known,
        scores,
        notes: samples.notes,
        loaded: samples.loaded,
    })
}

/// Scores of a block of samples from `start` on.
pub(crate) fn block_scores(
    model: &Model,
    views: &Views,
    start: usize,
    observer: &dyn Observer,
) -> Result<Scores, Error> {
    let n = views.len();
    observe::work(observer, "predicting", start, n)?;
    let rows: Vec<usize> = (start..(start + BLOCK).min(n)).collect();
    if rows.len() == n {
        return model.scores(views);
    }
    model.scores(&views.select(&rows)?)
}

/// Scores of all samples, a block at a time.
fn all_scores(model: &Model, views: &Views, observer: &dyn Observer) -> Result<Scores, Error> {
    let mut all = block_scores(model, views, 0, observer)?;
    while all.len() < views.len() && !all.is_empty() {
        let more = block_scores(model, views, all.len(), observer)?;
        all.values.extend(more.values);
    }
    Ok(all)
}
