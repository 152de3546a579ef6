//! The result object: what the program and the Python package report of a training, with stable keys.

use crate::data::Task;
use crate::model::Scheme;
use crate::norm::NormSpec;
use crate::online::{Online, Rule};
use crate::train::Fitted;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The result of a training. The names of its fields are the keys, and stay.
#[derive(Debug, Clone, Serialize)]
pub struct ResultObject {
    /// `converged`, `max-iterations`, `time-limit` or `stopped`.
    pub status: &'static str,
    /// `classify`, `regress` or `one-class`.
    pub task: Task,
    /// The algorithm that ran.
    pub solver: String,
    /// `joint`, `ovr` or `ovo`; null for a single score.
    pub multiclass: Option<&'static str>,
    /// How the kernels share.
    pub norm: NormObject,
    /// C
    #[serde(rename = "C")]
    pub c: f64,
    /// A number, or a list with one for each problem (for each class of a joint one); null where there is none.
    pub bias: Option<OneOrMany>,
    /// Primal objective, summed over the problems.
    pub primal: f64,
    /// Dual objective, summed over the problems; null where there is none.
    pub dual: Option<f64>,
    /// (P − D) / max(|P|, |D|); null where there is no dual.
    pub relative_gap: Option<f64>,
    /// `sum`: ½Ω² + CΣℓ.
    pub objective_scale: &'static str,
    /// All kernels.
    pub kernels: Vec<KernelObject>,
    /// Number of training samples.
    pub n_samples: usize,
    /// Number of classes; 0 without.
    pub n_classes: usize,
    /// Number of training samples with a coefficient.
    pub n_support: usize,
    /// Rounds of the solver, over all problems.
    pub iterations: usize,
    /// Where the time went.
    pub seconds: Seconds,
    /// Largest resident memory of the process; null where it is not known.
    pub peak_memory_bytes: Option<u64>,
    /// What was measured: `train_accuracy`, `accuracy`, …
    pub metrics: BTreeMap<String, f64>,
    /// What simpler ways reach.
    pub baselines: BTreeMap<String, serde_json::Value>,
    /// The seed of everything random.
    pub seed: u64,
    /// What the user should look at.
    pub warnings: Vec<String>,
}

/// A norm: its kind and parameter.
#[derive(Debug, Clone, Serialize)]
pub struct NormObject {
    /// `lp`, `block`, `mixed`, `elastic` or `noniso`.
    pub kind: &'static str,
    /// The exponent (infinity is `"inf"`, chosen by the number of kernels `"auto"`), μ, the file of E, or null.
    pub value: serde_json::Value,
}

/// A kernel's part.
#[derive(Debug, Clone, Serialize)]
pub struct KernelObject {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// β_m; a list with one for each problem where there are several.
    pub weight: OneOrMany,
    /// ‖w_m‖, likewise.
    pub group_norm: OneOrMany,
}

/// Seconds of the parts of a command; total is the whole command's wall time.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Seconds {
    /// Reading the data.
    pub load: f64,
    /// Computing kernels.
    pub kernels: f64,
    /// Training.
    pub train: f64,
    /// All of it.
    pub total: f64,
}

/// A number for a single problem, a list for several.
#[derive(Debug, Clone, PartialEq)]
pub struct OneOrMany(pub Vec<f64>);

impl Serialize for OneOrMany {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            many => many.serialize(serializer),
        }
    }
}

impl NormObject {
    /// The kind and parameter of a norm.
    pub fn new(spec: &NormSpec) -> Self {
        let number = |value: f64| match value.is_finite() {
            true => value.into(),
            false => "inf".into(),
        };
        NormObject {
            kind: spec.kind(),
            value: match spec {
                NormSpec::Lp(p) => number(p.value()),
                NormSpec::Block(r) => number(r.value()),
                NormSpec::BlockAuto => "auto".into(),
                NormSpec::Mixed => serde_json::Value::Null,
                NormSpec::Elastic(mu) => (*mu).into(),
                NormSpec::NonIsotropic(file) => file.display().to_string().into(),
            },
        }
    }
}

impl ResultObject {
    /// The result of a training. Seconds other than `train`, memory, metrics, baselines and seed are filled in by
    /// whoever knows them.
    pub fn new(fitted: &Fitted) -> Self {
        let model = &fitted.model;
        let finite = |value: f64| value.is_finite().then_some(value);
        ResultObject {
            status: fitted.status.name(),
            task: model.task(),
            solver: fitted.solver.to_string(),
            multiclass: match model.scheme() {
                Scheme::Single => None,
                Scheme::OneVsRest => Some("ovr"),
                Scheme::OneVsOne => Some("ovo"),
                Scheme::Joint => Some("joint"),
            },
            norm: NormObject::new(model.norm()),
            c: model.c(),
            bias: model.has_bias().then(|| OneOrMany(model.biases().to_vec())),
            primal: fitted.certificate.primal,
            dual: finite(fitted.certificate.dual),
            relative_gap: finite(fitted.relative_gap()),
            objective_scale: "sum",
            kernels: fitted
                .kernels
                .iter()
                .map(|kernel| KernelObject {
                    name: kernel.name.clone(),
                    group: kernel.group.clone(),
                    weight: OneOrMany(kernel.weights.clone()),
                    group_norm: OneOrMany(kernel.group_norms.clone()),
                })
                .collect(),
            n_samples: fitted.n_samples,
            n_classes: model.classes().len(),
            n_support: fitted.n_support,
            iterations: fitted.iterations,
            seconds: Seconds {
                train: fitted.seconds,
                total: fitted.seconds,
                ..Seconds::default()
            },
            peak_memory_bytes: None,
            metrics: BTreeMap::new(),
            baselines: BTreeMap::new(),
            seed: 0,
            warnings: fitted.warnings.clone(),
        }
    }
    /// What was learned of a stream so far: no objective, no gap. Seconds, memory and seed are filled in by whoever knows them.
    pub fn of_stream(online: &Online) -> Self {
        let (settings, report) = (online.settings(), online.report());
        let (norms, weights) = (online.group_norms(), online.weights());
        let first = report.passes.first();
        let mut metrics = BTreeMap::from([
            ("mistakes".into(), first.map_or(0, |p| p.mistakes) as f64),
            ("online_error".into(), report.online_error()),
            ("labelled".into(), first.map_or(0, |p| p.labelled) as f64),
        ]);
        if let [_, .., last] = &report.passes[..] {
            metrics.insert("last_pass_error".into(), last.error());
        }
        let kernels = online.kernels().iter().zip(weights).enumerate();
        ResultObject {
            status: "max-iterations",
            task: Task::Classify,
            solver: settings.rule.name().into(),
            multiclass: (!settings.binary).then_some("joint"),
            norm: NormObject::new(online.norm()),
            // Written as null where the rule has none, as is the objective.
            c: match settings.rule {
                Rule::PassiveAggressive { c } | Rule::Omcl { c } => c,
                _ => f64::NAN,
            },
            bias: None,
            primal: f64::NAN,
            dual: None,
            relative_gap: None,
            objective_scale: "sum",
            kernels: kernels
                .map(|(m, (kernel, weight))| KernelObject {
                    name: kernel.name.clone(),
                    group: kernel.group.clone(),
                    weight: OneOrMany(vec![weight]),
                    group_norm: OneOrMany(norms.iter().map(|norms| norms[m]).collect()),
                })
                .collect(),
            n_samples: online.n_seen() as usize,
            n_classes: online.classes().len(),
            n_support: online.n_support(),
            iterations: report.updates as usize,
            seconds: Seconds::default(),
            peak_memory_bytes: None,
            metrics,
            baselines: BTreeMap::new(),
            seed: 0,
            warnings: online.warnings().to_vec(),
        }
    }
}
