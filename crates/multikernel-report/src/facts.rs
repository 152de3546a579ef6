//! What a model and its training value say, read with care: nothing in the value is trusted to be there, finite or of a
//! fitting length.

use multikernel::data::Task;
use multikernel::model::Model;
use multikernel::record::Record;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Groups have so many colours; beyond them colours repeat, and names tell.
const COLOURS: usize = 8;

/// What a report draws.
pub(super) struct Facts {
    pub(super) task: Task,
    pub(super) classes: Vec<String>,
    pub(super) norm: String,
    pub(super) loss: String,
    pub(super) c: f64,
    pub(super) bias: bool,
    /// Names of the views that new samples must have.
    pub(super) views: Vec<String>,
    /// Training samples that the model keeps.
    pub(super) kept: usize,
    pub(super) n_training: usize,

    pub(super) status: String,
    pub(super) solver: String,
    pub(super) multiclass: Option<String>,
    pub(super) gap: Option<f64>,
    pub(super) primal: Option<f64>,
    pub(super) dual: Option<f64>,
    pub(super) n_samples: usize,
    pub(super) n_support: usize,
    pub(super) iterations: Option<u64>,
    pub(super) train_seconds: Option<f64>,
    pub(super) total_seconds: Option<f64>,
    pub(super) memory: Option<u64>,
    pub(super) seed: Option<u64>,
    pub(super) metrics: BTreeMap<String, f64>,
    pub(super) baselines: Vec<Baseline>,
    pub(super) warnings: Vec<String>,

    pub(super) kernels: Vec<KernelFact>,
    /// In the order of their shares.
    pub(super) groups: Vec<Group>,
    /// Sets of weights that were learned.
    pub(super) problems: usize,
    pub(super) stream: Option<Stream>,
    pub(super) record: Record,
}

/// A kernel and its part.
pub(super) struct KernelFact {
    pub(super) name: String,
    /// Position in [`Facts::groups`].
    pub(super) group: usize,
    /// Mean over the problems.
    pub(super) weight: f64,
    /// One for each problem.
    pub(super) weights: Vec<f64>,
    /// Of the weights of all kernels.
    pub(super) share: f64,
}

/// Kernels that belong together.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) kernels: usize,
    pub(super) share: f64,
    pub(super) colour: usize,
}

/// A simpler way to learn and what it reaches.
pub(super) struct Baseline {
    pub(super) name: String,
    pub(super) metrics: BTreeMap<String, f64>,
}

/// What a learner of a stream says.
pub(super) struct Stream {
    pub(super) seen: u64,
    pub(super) updates: u64,
    pub(super) waiting: u64,
    /// Labelled examples, mistakes up to there.
    pub(super) curve: Vec<(f64, f64)>,
}

impl Facts {
    /// Whether the program trained the model, as far as is known: others have no command line to be told about.
    pub(super) fn is_of_program(&self) -> bool {
        let command = self.record.command.as_deref();
        command.is_none_or(|command| command.starts_with("multikernel "))
    }

    pub(super) fn new(model: &Model) -> Facts {
        let training = model.training();
        let number = |key: &str| finite(training.get(key));
        let word = |key: &str| {
            let word = training.get(key).and_then(Value::as_str);
            word.map(str::to_owned)
        };
        let whole = |key: &str| training.get(key).and_then(Value::as_u64);
        let seconds = |key: &str| finite(training.get("seconds").and_then(|s| s.get(key)));
        let named = weights_of_training(training).unwrap_or_else(|| weights_of_model(model));
        let problems = named.iter().map(|kernel| kernel.2.len()).max();
        let (kernels, groups) = shares(named);
        Facts {
            task: model.task(),
            classes: model.classes().to_vec(),
            norm: model.norm().to_string(),
            loss: model.loss().to_string(),
            c: model.c(),
            bias: model.has_bias(),
            views: model
                .needed_views()
                .into_iter()
                .map(|(name, _)| name.to_owned())
                .collect(),
            kept: model.columns().len(),
            n_training: model.n_training(),
            status: word("status").unwrap_or_default(),
            solver: word("solver").unwrap_or_default(),
            multiclass: word("multiclass"),
            gap: number("relative_gap"),
            primal: number("primal"),
            dual: number("dual"),
            n_samples: whole("n_samples").map_or(model.n_training(), |n| n as usize),
            n_support: whole("n_support").map_or(model.columns().len(), |n| n as usize),
            iterations: whole("iterations"),
            train_seconds: seconds("train"),
            total_seconds: seconds("total"),
            memory: whole("peak_memory_bytes"),
            seed: whole("seed"),
            metrics: metrics(training.get("metrics")),
            baselines: baselines(training.get("baselines")),
            warnings: list(training.get("warnings"))
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            kernels,
            groups,
            problems: problems.unwrap_or(1).max(1),
            stream: whole("n_seen").map(|seen| Stream {
                seen,
                updates: whole("updates").unwrap_or(0),
                waiting: whole("n_waiting").unwrap_or(0),
                curve: list(training.get("curve"))
                    .filter_map(|point| Some((finite(point.get(0))?, finite(point.get(1))?)))
                    .collect(),
            }),
            record: Record::of(training),
        }
    }

    /// Kernels by their positions, the largest weight first.
    pub(super) fn by_weight(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.kernels.len()).collect();
        order.sort_by(|&a, &b| self.kernels[b].weight.total_cmp(&self.kernels[a].weight));
        order
    }

    /// Number of kernels with a weight.
    pub(super) fn used(&self) -> usize {
        self.kernels.iter().filter(|k| k.weight > 0.0).count()
    }

    /// Groups say something that kernels do not.
    pub(super) fn grouped(&self) -> bool {
        self.groups.len() > 1 && self.groups.len() < self.kernels.len()
    }

    pub(super) fn group(&self, kernel: &KernelFact) -> &Group {
        &self.groups[kernel.group]
    }
}

fn finite(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::as_f64).filter(|v| v.is_finite())
}

fn list(value: Option<&Value>) -> std::slice::Iter<'_, Value> {
    let list = value.and_then(Value::as_array);
    list.map_or(&[][..], |list| &list[..]).iter()
}

fn metrics(value: Option<&Value>) -> BTreeMap<String, f64> {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries
        .filter_map(|(name, value)| Some((name.clone(), finite(Some(value))?)))
        .collect()
}

fn baselines(value: Option<&Value>) -> Vec<Baseline> {
    let of = |key: &str| value.and_then(|all| all.get(key));
    let mut out = Vec::new();
    if let Some(sum) = of("sum") {
        out.push(Baseline {
            name: "all kernels with equal weights".into(),
            metrics: metrics(Some(sum)),
        });
    }
    if let Some(best) = of("best_single") {
        let kernel = best.get("kernel").and_then(Value::as_str);
        out.push(Baseline {
            name: match kernel {
                Some(kernel) => format!("the best kernel alone, {kernel}"),
                None => "the best kernel alone".into(),
            },
            metrics: metrics(Some(best)),
        });
    }
    out.retain(|baseline| !baseline.metrics.is_empty());
    out
}

/// Name, group and weights of every kernel of the result object; none if it has no kernels.
fn weights_of_training(training: &Value) -> Option<Vec<(String, String, Vec<f64>)>> {
    let kernels: Vec<_> = list(training.get("kernels"))
        .filter_map(|kernel| {
            let name = kernel.get("name")?.as_str()?.to_owned();
            let group = kernel.get("group").and_then(Value::as_str);
            let weights = match kernel.get("weight")? {
                Value::Array(many) => many.iter().map(|w| finite(Some(w))).collect(),
                one => finite(Some(one)).map(|w| vec![w]),
            };
            let group = group.unwrap_or(&name).to_owned();
            Some((name, group, weights.unwrap_or_default()))
        })
        .collect();
    (!kernels.is_empty()).then_some(kernels)
}

fn weights_of_model(model: &Model) -> Vec<(String, String, Vec<f64>)> {
    let kernels = model.kernels().iter().enumerate();
    kernels
        .map(|(m, kernel)| {
            let weights = (0..model.n_problems()).map(|k| model.weights(k)[m]);
            (kernel.name.clone(), kernel.group.clone(), weights.collect())
        })
        .collect()
}

fn shares(named: Vec<(String, String, Vec<f64>)>) -> (Vec<KernelFact>, Vec<Group>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut kernels: Vec<KernelFact> = named
        .into_iter()
        .map(|(name, group, weights)| {
            let place = *places.entry(group.clone()).or_insert_with(|| {
                groups.push(Group {
                    name: group,
                    kernels: 0,
                    share: 0.0,
                    colour: groups.len() % COLOURS,
                });
                groups.len() - 1
            });
            let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
            KernelFact {
                name,
                group: place,
                // No weight is negative or infinite; a file that says so is wrong, and a bar cannot show it.
                weight: if mean.is_finite() { mean.max(0.0) } else { 0.0 },
                weights,
                share: 0.0,
            }
        })
        .collect();
    let largest = kernels.iter().map(|k| k.weight).fold(0.0, f64::max);
    // Divided by the largest first: the sum of numbers that are nearly infinite is infinite.
    let total: f64 = kernels.iter().map(|k| k.weight / largest).sum();
    for kernel in &mut kernels {
        if largest > 0.0 && total > 0.0 {
            kernel.share = kernel.weight / largest / total;
        }
        groups[kernel.group].share += kernel.share;
        groups[kernel.group].kernels += 1;
    }
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by(|&a, &b| groups[b].share.total_cmp(&groups[a].share));
    let mut rank = vec![0; groups.len()];
    for (place, &g) in order.iter().enumerate() {
        rank[g] = place;
    }
    for kernel in &mut kernels {
        kernel.group = rank[kernel.group];
    }
    let mut sorted: Vec<(usize, Group)> = rank.into_iter().zip(groups).collect();
    sorted.sort_by_key(|(place, _)| *place);
    (
        kernels,
        sorted.into_iter().map(|(_, group)| group).collect(),
    )
}
