use super::*;
use crate::data::{Csr, Dense, Labels, View, ViewData, digits};
use crate::gram::Normalizer;
use crate::kernel::Normalize;
use crate::loss::Loss;
use crate::model::Model;
use crate::norm::{Exponent, Norm};
use crate::problem::{Limits, MulticlassProblem, Objective, Problem};
use crate::random::Random;
use crate::solve::stochastic;

const RULES: [Rule; 6] = [
    Rule::Om2,
    Rule::Om2Link { link: 0.5 },
    Rule::Obscure { eta: 2.0 },
    Rule::Pegasos { lambda: 1e-2 },
    Rule::PassiveAggressive { c: 0.5 },
    Rule::Omcl { c: 0.5 },
];

fn specs(text: &str) -> Vec<KernelSpec> {
    text.split_whitespace()
        .flat_map(|s| KernelSpec::parse(s).unwrap())
        .collect()
}

fn view(name: &str, rows: usize, values: Vec<f32>) -> View {
    View {
        name: name.into(),
        columns: Vec::new(),
        data: ViewData::Dense(Dense::new(rows, values.len() / rows, values).unwrap()),
    }
}

/// Some digits in a seeded order, with ids.
fn some_digits(count: usize, seed: u64) -> (Views, Vec<String>) {
    let data = digits().unwrap();
    let labels: Labels = data.labels.unwrap();
    let mut order: Vec<usize> = (0..data.views.len()).collect();
    Random::new(seed).shuffle(&mut order);
    order.truncate(count);
    let mut views = data.views.select(&order).unwrap();
    views
        .set_ids(order.iter().map(|i| format!("digit {i}")).collect())
        .unwrap();
    let labels = order
        .iter()
        .map(|&i| labels.spelling(i).to_owned())
        .collect();
    (views, labels)
}

fn known(labels: &[String]) -> Vec<Option<&str>> {
    labels.iter().map(|l| Some(l.as_str())).collect()
}

fn part(views: &Views, from: usize, to: usize) -> Views {
    views.select(&(from..to).collect::<Vec<_>>()).unwrap()
}

/// Learns in blocks of these sizes, again and again; every seventh example has its label told later.
fn run(online: &mut Online, views: &Views, labels: &[String], blocks: &[usize]) -> Vec<Prediction> {
    let mut outcomes = Vec::new();
    let mut at = online.n_seen() as usize;
    let mut sizes = blocks.iter().cycle();
    while at < views.len() {
        // late labels come at fixed places of the stream, so blocks end there
        let next_late = (at / 50 + 1) * 50;
        let to = (at + sizes.next().unwrap()).min(views.len()).min(next_late);
        let told: Vec<Option<&str>> = (at..to)
            .map(|i| (i % 7 != 3).then_some(labels[i].as_str()))
            .collect();
        outcomes.extend(online.learn(&part(views, at, to), &told).unwrap());
        if to == next_late {
            let ids = views.ids().unwrap();
            for i in (to - 50..to).filter(|i| i % 7 == 3) {
                outcomes.push(online.teach(&ids[i], &labels[i]).unwrap());
            }
        }
        at = to;
    }
    outcomes
}

fn learner(rule: Rule, budget: Option<Budget>, views: &Views) -> Online {
    let settings = StreamSettings {
        rule,
        budget,
        ..StreamSettings::default()
    };
    let kernels = specs(
        "rbf:width=mean*0.3|mean|mean*3 linear:normalize=spherical poly:normalize=spherical,view=upper_left chi2:view=lower_left,normalize=trace",
    );
    Online::new(settings, &kernels, &part(views, 0, 60)).unwrap()
}

#[test]
fn blocks_threads_and_interruptions_do_not_change_a_bit() {
    let (views, labels) = some_digits(330, 1);
    for rule in RULES {
        for budget in [
            None,
            Some("60:oldest"),
            Some("60:smallest"),
            Some("60:project"),
        ] {
            let budget = budget.map(|b| b.parse().unwrap());
            let mut one = learner(rule, budget, &views);
            let outcomes = run(&mut one, &views, &labels, &[1]);
            let bytes = one.to_bytes().unwrap();
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                let same = pool.install(|| {
                    let mut many = learner(rule, budget, &views);
                    assert_eq!(run(&mut many, &views, &labels, &[64, 5, 330]), outcomes);
                    many.to_bytes().unwrap()
                });
                assert!(same == bytes, "{rule} {budget:?} {threads} threads");
            }
            let mut resumed = learner(rule, budget, &views);
            for stop in [0, 1, 2, 59, 150, 151, 260, 330] {
                run(
                    &mut resumed,
                    &part(&views, 0, stop.max(1)),
                    &labels[..stop.max(1)],
                    &[17],
                );
                resumed = Online::from_bytes(&resumed.to_bytes().unwrap()).unwrap();
            }
            assert!(
                resumed.to_bytes().unwrap() == bytes,
                "{rule} {budget:?} resumed"
            );
            if let Some(budget) = budget {
                assert_eq!(one.n_support(), budget.size);
                assert!(one.report().removed > 0);
            }
        }
    }
}

#[test]
fn kept_lengths_are_those_of_the_coefficients() {
    let (views, labels) = some_digits(300, 2);
    for rule in RULES
        .into_iter()
        .filter(|r| !matches!(r, Rule::Omcl { .. }))
    {
        for budget in [
            None,
            Some("50:oldest"),
            Some("50:smallest"),
            Some("50:project"),
        ] {
            let mut online = learner(rule, budget.map(|b| b.parse().unwrap()), &views);
            run(&mut online, &views, &labels, &[64]);
            let kept = online.theta.lengths().squares.clone();
            for (kept, fresh) in kept.iter().zip(online.squares()) {
                assert!(
                    (kept - fresh).abs() <= 1e-5 * fresh.max(1e-9),
                    "{rule} {budget:?}: {kept} {fresh}"
                );
            }
        }
    }
}

#[test]
fn a_snapshot_predicts_what_the_learner_predicts() {
    let (views, labels) = some_digits(500, 3);
    let (seen, new) = (part(&views, 0, 400), part(&views, 400, 500));
    for rule in RULES {
        let mut online = learner(rule, None, &views);
        run(&mut online, &seen, &labels[..400], &[64]);
        let file = Model::from_bytes(&online.to_bytes().unwrap()).unwrap();
        for model in [online.snapshot().unwrap(), file] {
            let said = online.predict(&new).unwrap();
            let scores = model.scores(&new).unwrap();
            assert_eq!(scores.names, online.classes());
            for (i, said) in said.iter().enumerate() {
                let largest = said.scores.iter().fold(0.0f64, |a, s| a.max(s.abs()));
                for (own, model) in said.scores.iter().zip(scores.row(i)) {
                    assert!(
                        (own - model).abs() <= 1e-4 * largest,
                        "{rule}: {own} {model}"
                    );
                }
            }
            assert_eq!(model.n_training(), 400);
            assert_eq!(model.columns().len(), online.n_support());
            assert_eq!(model.group_norms().unwrap().len(), online.kernels().len());
        }
        if let Some(norms) = online.group_norms() {
            let model = online.snapshot().unwrap().group_norms().unwrap();
            for (own, model) in norms.iter().zip(model) {
                assert!(
                    (own - model).abs() <= 1e-4 * own.max(1e-6),
                    "{rule} {own} {model}"
                );
            }
        }
    }
}

/// OM-2 in its feature spaces, as the paper writes it.
struct Explicit {
    q: f64,
    dims: usize,
    /// kernel after kernel, class after class
    theta: Vec<Vec<Vec<f64>>>,
}

impl Explicit {
    fn scores(&self, x: &[Vec<f64>]) -> Vec<f64> {
        let lengths: Vec<f64> = self
            .theta
            .iter()
            .map(|t| t.iter().flatten().map(|v| v * v).sum::<f64>().sqrt())
            .collect();
        let all = lengths
            .iter()
            .map(|l| l.powf(self.q))
            .sum::<f64>()
            .powf(1.0 / self.q);
        let classes = self.theta[0].len();
        (0..classes)
            .map(|k| {
                let terms = self.theta.iter().zip(&lengths).zip(x);
                terms
                    .map(|((theta, length), x)| {
                        if all == 0.0 || *length == 0.0 {
                            return 0.0;
                        }
                        let dot: f64 = theta[k].iter().zip(x).map(|(a, b)| a * b).sum();
                        (length / all).powf(self.q - 2.0) / self.q * dot
                    })
                    .sum()
            })
            .collect()
    }

    fn learn(&mut self, x: &[Vec<f64>], y: usize) {
        let scores = self.scores(x);
        let others = (0..scores.len()).filter(|k| *k != y);
        let Some(rival) = others.reduce(|a, b| if scores[b] > scores[a] { b } else { a }) else {
            return;
        };
        let margin = scores[y] - scores[rival];
        if margin >= 1.0 {
            return;
        }
        let lengths = x
            .iter()
            .map(|x| (2.0 * x.iter().map(|v| v * v).sum::<f64>()).sqrt());
        let z = lengths
            .map(|l| l.powf(self.q))
            .sum::<f64>()
            .powf(1.0 / self.q);
        let eta = (1.0 - 2.0 * margin / (z * z)).clamp(0.0, 1.0);
        for (theta, x) in self.theta.iter_mut().zip(x) {
            for d in 0..self.dims {
                theta[y][d] += eta * x[d];
                theta[rival][d] -= eta * x[d];
            }
        }
    }
}

#[test]
fn om2_is_the_papers_algorithm() {
    let mut random = Random::new(5);
    let (n, dims, kernels, classes) = (150, 4, 3, 3);
    for p in [1.05, 1.3, 2.0] {
        let rows: Vec<Vec<f32>> = (0..kernels)
            .map(|_| {
                (0..n * dims)
                    .map(|_| random.normal() as f32 * 0.4)
                    .collect()
            })
            .collect();
        let labels: Vec<usize> = (0..n).map(|_| random.below(classes)).collect();
        let names: Vec<String> = (0..classes).map(|k| k.to_string()).collect();
        let views = Views::new(
            rows.iter()
                .enumerate()
                .map(|(m, values)| view(&format!("v{m}"), n, values.clone()))
                .collect(),
        )
        .unwrap();
        let settings = StreamSettings {
            norm: NormSpec::Block(Exponent::new(p).unwrap()),
            classes: names.clone(),
            ..StreamSettings::default()
        };
        let mut online = Online::new(settings, &specs("linear"), &views).unwrap();
        let told: Vec<Option<&str>> = labels.iter().map(|&y| Some(names[y].as_str())).collect();
        let outcomes = online.learn(&views, &told).unwrap();
        let mut explicit = Explicit {
            q: p / (p - 1.0),
            dims,
            theta: vec![vec![vec![0.0; dims]; classes]; kernels],
        };
        for (i, outcome) in outcomes.iter().enumerate() {
            let x: Vec<Vec<f64>> = rows
                .iter()
                .map(|v| {
                    v[i * dims..(i + 1) * dims]
                        .iter()
                        .map(|&v| f64::from(v))
                        .collect()
                })
                .collect();
            for (own, want) in outcome.scores.iter().zip(explicit.scores(&x)) {
                assert!((own - want).abs() <= 1e-4, "p = {p}, {i}: {own} {want}");
            }
            explicit.learn(&x, labels[i]);
        }
    }
}

#[test]
fn theorem_1_is_never_broken() {
    // Random streams of examples with k(x, x) ≤ 1, random comparators of many lengths: M ≤ C + L + √(LC) − Σ η.
    let mut random = Random::new(11);
    let mut tight = f64::INFINITY;
    for _ in 0..3000 {
        let (n, dims) = (20 + random.below(60), 1 + random.below(4));
        let (kernels, classes) = (1 + random.below(6), 2 + random.below(4));
        let binary = classes == 2 && random.below(2) == 0;
        let p = [1.01, 1.1, 1.3, 1.5, 1.8, 2.0][random.below(6)];
        let noise = random.uniform();
        let labels: Vec<usize> = (0..n).map(|_| random.below(classes)).collect();
        let signal = random.below(kernels);
        let rows: Vec<Vec<f32>> = (0..kernels)
            .map(|m| {
                let rows = labels.iter().map(|&y| {
                    let mut row: Vec<f64> = (0..dims).map(|_| noise * random.normal()).collect();
                    if m == signal {
                        row[y % dims] += if y < dims { 1.0 } else { -1.0 };
                    }
                    let length = row.iter().map(|v| v * v).sum::<f64>().sqrt().max(1e-9);
                    let most = 0.999_999 * random.uniform().sqrt().max(0.3) / length;
                    row.iter().map(|v| (v * most) as f32).collect::<Vec<f32>>()
                });
                rows.collect::<Vec<_>>().concat()
            })
            .collect();
        let views = rows.iter().enumerate();
        let views = views
            .map(|(m, v)| view(&format!("v{m}"), n, v.clone()))
            .collect();
        let views = Views::new(views).unwrap();
        let names: Vec<String> = (0..classes).map(|k| k.to_string()).collect();
        // The paper's link, and larger factors.
        let rule = match random.below(3) {
            0 => Rule::Om2,
            1 => Rule::Om2Link { link: 0.5 },
            _ => Rule::Om2Link {
                link: 0.5 + 4.0 * random.uniform(),
            },
        };
        let settings = StreamSettings {
            rule,
            norm: NormSpec::Block(Exponent::new(p).unwrap()),
            classes: names.clone(),
            binary,
            ..StreamSettings::default()
        };
        let mut online = Online::new(settings, &specs("linear"), &views).unwrap();
        let told: Vec<Option<&str>> = labels.iter().map(|&y| Some(names[y].as_str())).collect();
        online.learn(&views, &told).unwrap();
        assert!(online.report().wrong_rounds >= online.report().mistakes);
        let outputs = if binary { 1 } else { classes };
        for _ in 0..6 {
            let size = 4f64.powf(3.0 * random.uniform() - 1.0);
            let clever = random.below(2) == 0;
            let u: Vec<Vec<f64>> = (0..kernels)
                .map(|m| {
                    (0..outputs * dims)
                        .map(|at| {
                            let (k, d) = (at / dims, at % dims);
                            let hint = match (clever && m == signal, binary) {
                                (false, _) => 0.1 * random.normal(),
                                (true, true) => [-1.0, 1.0][d % 2],
                                (true, false) if k < dims => f64::from(u8::from(k == d)),
                                (true, false) => -f64::from(u8::from(k % dims == d)),
                            };
                            size * hint
                        })
                        .collect()
                })
                .collect();
            let lengths: Vec<f64> = u
                .iter()
                .map(|u| u.iter().map(|v| v * v).sum::<f64>().sqrt())
                .collect();
            let mut loss = 0.0;
            for (i, &y) in labels.iter().enumerate() {
                let score = |k: usize| -> f64 {
                    let kernels = u.iter().zip(&rows);
                    kernels
                        .map(|(u, rows)| {
                            let x = &rows[i * dims..(i + 1) * dims];
                            let u = &u[k * dims..(k + 1) * dims];
                            u.iter().zip(x).map(|(u, x)| u * f64::from(*x)).sum::<f64>()
                        })
                        .sum()
                };
                let margin = match binary {
                    true => score(0) * if y == 1 { 1.0 } else { -1.0 },
                    false => {
                        let others = (0..classes).filter(|k| *k != y).map(score);
                        score(y) - others.fold(f64::NEG_INFINITY, f64::max)
                    }
                };
                loss += (1.0 - margin).max(0.0);
            }
            online.report.comparator_loss = loss;
            let norm = online.block_norm.value(&lengths);
            let bound = online.bound_for(norm).unwrap();
            assert_eq!(bound.wrong_rounds, online.report.wrong_rounds);
            let slack = bound.bound - bound.wrong_rounds as f64;
            assert!(slack >= -1e-9, "broken: {bound:?}");
            tight = tight.min(slack / bound.wrong_rounds.max(1) as f64);
        }
    }
    assert!(
        tight < 1.0,
        "some bound must be near its count, or nothing was tested: {tight}"
    );
}

#[test]
fn the_bound_of_a_model_is_that_of_its_weight_vectors() {
    let (views, labels) = some_digits(300, 4);
    let first = part(&views, 0, 100);
    let kernels = specs("rbf:width=400");
    let mut other = Online::new(StreamSettings::default(), &kernels, &first).unwrap();
    other.learn(&views, &known(&labels)).unwrap();
    let model = other.snapshot().unwrap();
    let norm = other.block_norm.value(&other.group_norms().unwrap());
    let mut online = Online::new(StreamSettings::default(), &kernels, &first).unwrap();
    assert!(online.mistake_bound().is_none());
    online.compare_with(model).unwrap();
    online.learn(&views, &known(&labels)).unwrap();
    let bound = online.mistake_bound().unwrap();
    assert!((bound.comparator_norm - norm).abs() <= 1e-4 * norm);
    let mut loss = 0.0;
    for (said, label) in other.predict(&views).unwrap().iter().zip(&labels) {
        let y = other.classes().iter().position(|c| c == label).unwrap();
        let rest = said.scores.iter().enumerate().filter(|(k, _)| *k != y);
        let best = rest.map(|(_, s)| *s).fold(f64::NEG_INFINITY, f64::max);
        loss += (1.0 - said.scores[y] + best).max(0.0);
    }
    assert!(
        (bound.comparator_loss - loss).abs() <= 1e-3 * loss,
        "{bound:?} {loss}"
    );
    assert!(bound.wrong_rounds as f64 <= bound.bound);
    // kernels that the learner does not have
    let mut strange =
        Online::new(StreamSettings::default(), &specs("rbf:width=3"), &first).unwrap();
    assert!(strange.compare_with(other.snapshot().unwrap()).is_err());
}

#[test]
fn with_one_kernel_and_link_one_half_om2_is_pa1_for_every_p() {
    let (views, labels) = some_digits(500, 9);
    let first = part(&views, 0, 100);
    let kernels = specs("rbf:view=upper_left");
    let learned = |rule: Rule, norm: &str| {
        let settings = StreamSettings {
            rule,
            norm: norm.parse().unwrap(),
            ..StreamSettings::default()
        };
        let mut online = Online::new(settings, &kernels, &first).unwrap();
        let said = online.learn(&views, &known(&labels)).unwrap();
        (said, online.n_support())
    };
    let (pa1, support) = learned(Rule::PassiveAggressive { c: 0.5 }, "block:2");
    for norm in ["block:1.02", "block:1.3", "block:2"] {
        let (om2, own) = learned(Rule::Om2Link { link: 0.5 }, norm);
        for (a, b) in pa1.iter().zip(&om2) {
            assert_eq!(a.prediction, b.prediction, "{norm}");
            for (a, b) in a.scores.iter().zip(&b.scores) {
                assert!((a - b).abs() <= 1e-5, "{norm}: {a} {b}");
            }
        }
        assert_eq!(own, support);
    }
    // With the paper's link more examples are updates near p = 1.
    assert!(learned(Rule::Om2, "block:1.02").1 > support);
    // Below 1/q nothing is promised.
    let norm = Norm::new("block:1.5".parse().unwrap(), 3, &[], &[]).unwrap();
    let norm = norm.as_block().unwrap();
    for (link, bounded) in [(0.34, true), (0.33, false)] {
        assert_eq!(Rule::Om2Link { link }.is_bounded(norm), bounded);
    }
}

#[test]
fn at_p_2_om2_is_pa1_on_the_average_kernel() {
    let (views, labels) = some_digits(800, 6);
    for text in ["rbf", "rbf:width=mean*0.3|mean laplacian"] {
        let first = part(&views, 0, 100);
        let settings = StreamSettings {
            rule: Rule::PassiveAggressive { c: 0.5 },
            ..StreamSettings::default()
        };
        let mut pa1 = Online::new(settings, &specs(text), &first).unwrap();
        let count = pa1.kernels().len();
        let divided: Vec<Kernel> = pa1
            .kernels()
            .iter()
            .map(|kernel| {
                let mut kernel = kernel.clone();
                kernel.spec.normalize = Normalize::Trace;
                kernel.normalizer = Normalizer::Factor(1.0 / count as f64);
                kernel
            })
            .collect();
        let settings = StreamSettings {
            norm: NormSpec::Block(Exponent::new(2.0).unwrap()),
            ..StreamSettings::default()
        };
        let mut om2 = Online::with_kernels(settings, divided, Scaling::default(), &first).unwrap();
        let (a, b) = (
            pa1.learn(&views, &known(&labels)).unwrap(),
            om2.learn(&views, &known(&labels)).unwrap(),
        );
        for (a, b) in a.iter().zip(&b) {
            assert_eq!(a.prediction, b.prediction);
            for (a, b) in a.scores.iter().zip(&b.scores) {
                assert!((a - b).abs() <= 1e-5, "{a} {b}");
            }
        }
        assert_eq!(pa1.n_support(), om2.n_support());
        assert!(
            pa1.report().mistakes > 20,
            "a test that nobody fails tells nothing"
        );
    }
}

/// The same samples in the same order give the same θ, to rounding. Numbers of few bits keep the kernels exact in f32, whichever
/// way they are computed.
#[test]
fn stream_and_batch_take_the_same_steps() {
    let mut random = Random::new(2);
    let (n, kernels, seed) = (90, 3, 3);
    for classes in [2, 3] {
        let binary = classes == 2;
        let labels: Vec<u32> = (0..n).map(|_| random.below(classes) as u32).collect();
        let names: Vec<String> = (0..classes).map(|k| k.to_string()).collect();
        let mut views = Vec::new();
        for m in 0..kernels {
            let values = labels.iter().flat_map(|&y| {
                let hint = f64::from(y) * m as f64;
                [0; 4].map(|_| ((hint + 4.0 * random.normal()).round() / 8.0) as f32)
            });
            views.push(view(&format!("v{m}"), n, values.collect()));
        }
        let views = Views::new(views).unwrap();
        let mut order: Vec<usize> = (0..n).collect();
        Random::new(seed).shuffle(&mut order);
        let told: Vec<Option<&str>> = order
            .iter()
            .map(|&i| Some(names[labels[i] as usize].as_str()))
            .collect();
        let set = KernelSet::new(&specs("linear"), &views, &Options::default(), &()).unwrap();
        let costs = vec![1.0; n];
        let signs: Vec<f64> = labels.iter().map(|&y| 2.0 * f64::from(y) - 1.0).collect();
        let objective = match binary {
            true => Objective::Scalar(Problem {
                targets: &signs,
                costs: &costs,
                loss: Loss::Hinge,
                bias: false,
            }),
            false => Objective::Multiclass(MulticlassProblem {
                classes: &labels,
                n_classes: classes,
                costs: &costs,
            }),
        };
        let batch = stochastic::StochasticSettings {
            epochs: 1,
            seed,
            ..stochastic::StochasticSettings::default()
        };
        let (eta, c) = (0.7, 0.5);
        let pairs = [
            (
                Rule::Om2,
                stochastic::StochasticSettings {
                    method: stochastic::Method::Om2,
                    ..batch.clone()
                },
            ),
            (
                Rule::PassiveAggressive { c },
                stochastic::StochasticSettings {
                    method: stochastic::Method::PassiveAggressive { c },
                    ..batch.clone()
                },
            ),
            (
                Rule::Obscure { eta },
                stochastic::StochasticSettings {
                    eta,
                    online_epochs: 1,
                    epochs: 0,
                    ..batch.clone()
                },
            ),
            (
                Rule::Pegasos {
                    lambda: 1.0 / n as f64,
                },
                stochastic::StochasticSettings {
                    radius: stochastic::Radius::Infinite,
                    ..batch.clone()
                },
            ),
        ];
        for (rule, batch) in pairs {
            let r = if rule.uses_norm() { 1.3 } else { 2.0 };
            let settings = StreamSettings {
                rule,
                norm: NormSpec::Block(Exponent::new(r).unwrap()),
                binary,
                classes: names.clone(),
                ..StreamSettings::default()
            };
            let mut online = Online::new(settings, &specs("linear"), &views).unwrap();
            online.learn(&views.select(&order).unwrap(), &told).unwrap();
            let outputs = online.outputs();
            let mut coefficients = vec![0.0; n * outputs];
            for slot in online.support.slots() {
                let row = &mut coefficients[order[slot.number as usize] * outputs..];
                for (class, value) in slot.classes.iter().zip(&slot.values) {
                    row[*class as usize] = online.theta.score_factor() * value;
                }
            }
            let found = stochastic::obscure(
                set.gram(),
                &Norm::block(r).unwrap(),
                &objective,
                &batch,
                &Limits {
                    tolerance: 0.0,
                    max_rounds: usize::MAX,
                    deadline: None,
                    memory: u64::MAX,
                    confirm: true,
                },
                None,
                &(),
            )
            .unwrap();
            assert!(found.updates > 10, "{rule}: {} updates", found.updates);
            assert_eq!(found.updates, online.report().updates, "{rule}");
            let pairs = coefficients.iter().zip(&found.coefficients);
            let weights = online.theta.weights().iter().zip(&found.weights);
            for (stream, batch) in pairs.chain(weights) {
                assert!((stream - batch).abs() <= 1e-9, "{rule}: {stream} {batch}");
            }
        }
    }
}

#[test]
fn a_separable_stream_ends_without_errors() {
    let (views, labels) = some_digits(400, 7);
    for rule in [
        Rule::Om2,
        Rule::PassiveAggressive { c: 10.0 },
        Rule::Obscure { eta: 1.0 },
    ] {
        for binary in [false, true] {
            let settings = StreamSettings {
                rule,
                binary,
                ..StreamSettings::default()
            };
            let labels: Vec<String> = match binary {
                true => labels
                    .iter()
                    .map(|l| (l.parse::<u8>().unwrap() % 2).to_string())
                    .collect(),
                false => labels.clone(),
            };
            let mut online =
                Online::new(settings, &specs("rbf:width=mean*0.5|mean"), &views).unwrap();
            online.learn(&views, &known(&labels)).unwrap();
            let mut support = Vec::new();
            for _ in 0..60 {
                online.begin_pass();
                online.learn_again(&views, &known(&labels), 0).unwrap();
                support.push(online.n_support());
                if online.report().passes.last().unwrap().updates == 0 {
                    break;
                }
            }
            let last = online.report().passes.last().unwrap();
            assert_eq!((last.mistakes, last.labelled), (0, 400), "{rule} {binary}");
            assert!(
                *support.last().unwrap() <= 400,
                "examples are support vectors once"
            );
            let said = online.predict(&views).unwrap();
            for (said, label) in said.iter().zip(&labels) {
                assert_eq!(online.classes()[said.prediction.unwrap() as usize], *label);
            }
        }
    }
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_learned() {
    let (views, labels) = some_digits(100, 8);
    let mut online = learner(Rule::Om2, None, &views);
    online
        .learn(&part(&views, 0, 50), &known(&labels[..50]))
        .unwrap();
    let before = online.to_bytes().unwrap();
    let data = |value: f32| {
        let names = ["upper_left", "upper_right", "lower_left", "lower_right"];
        Views::new(names.iter().map(|n| view(n, 2, vec![value; 32])).collect()).unwrap()
    };
    let two = [Some("1"), Some("2")];
    // chi2 of negative values, squares that do not fit, an empty label: the sample is told
    let row = |views: Views, labels: &[Option<&str>], online: &mut Online| {
        online.learn(&views, labels).unwrap_err().row()
    };
    assert_eq!(row(data(-1.0), &two, &mut online), Some(0));
    assert_eq!(row(data(1e30), &two, &mut online), Some(0));
    let second = [Some("1"), Some("")];
    assert_eq!(row(data(1.0), &second, &mut online), Some(1));
    let other = Views::new(vec![view("x", 2, vec![1.0; 4])]).unwrap();
    assert_eq!(row(other, &two, &mut online), None);
    assert!(online.teach("nobody", "1").is_err());
    assert!(
        online
            .learn_again(&part(&views, 0, 60), &known(&labels[..60]), 0)
            .is_err()
    );
    assert!(online.to_bytes().unwrap() == before);
    let mut binary = Online::new(
        StreamSettings {
            binary: true,
            ..StreamSettings::default()
        },
        &specs("rbf"),
        &views,
    )
    .unwrap();
    let three = [Some("a"), Some("b"), Some("c")];
    assert_eq!(row(part(&views, 0, 3), &three, &mut binary), Some(2));
    assert_eq!(binary.report().examples, 0);
    for (text, settings) in [
        ("rbf:normalize=center", StreamSettings::default()),
        (
            "rbf",
            StreamSettings {
                rule: Rule::Obscure { eta: 0.0 },
                ..StreamSettings::default()
            },
        ),
        (
            "rbf",
            StreamSettings {
                norm: "lp:1".parse().unwrap(),
                ..StreamSettings::default()
            },
        ),
        (
            "rbf",
            StreamSettings {
                norm: "mixed".parse().unwrap(),
                ..StreamSettings::default()
            },
        ),
        (
            "rbf",
            StreamSettings {
                binary: true,
                rule: Rule::Omcl { c: 1.0 },
                ..StreamSettings::default()
            },
        ),
    ] {
        assert!(
            Online::new(settings, &specs(text), &views).is_err(),
            "{text}"
        );
    }
    for wrong in ["", "x", "1", "10:newest", "-3", "0:oldest"] {
        assert!(wrong.parse::<Budget>().is_err(), "{wrong}");
    }
}

#[test]
fn widths_by_distances_need_two_samples_at_first() {
    let (views, labels) = some_digits(3, 1);
    let one = part(&views, 0, 1);
    let made = |kernel: &str, first: &Views| {
        let made = Online::new(StreamSettings::default(), &specs(kernel), first);
        made.map_err(|e| e.to_string())
    };
    let said = made("rbf", &one).unwrap_err();
    assert!(said.contains("there is 1 sample"), "{said}");
    assert!(said.contains("at least two samples that differ"), "{said}");
    let mut alone = made("rbf:width=3", &one).unwrap();
    alone.learn(&one, &known(&labels[..1])).unwrap();
    // two of the same
    let same = views.select(&[0, 0]).unwrap();
    let said = made("rbf", &same).unwrap_err();
    assert!(said.contains("is 0; give samples that differ"), "{said}");
}

#[test]
fn labels_may_come_late_and_waiting_is_bounded() {
    let (views, labels) = some_digits(60, 9);
    let settings = StreamSettings {
        waiting: 20,
        ..StreamSettings::default()
    };
    let mut online = Online::new(settings, &specs("rbf"), &views).unwrap();
    let none = vec![None; 30];
    let said = online.learn(&part(&views, 0, 30), &none).unwrap();
    assert!(
        said.iter()
            .all(|o| o.prediction.is_none() && o.correct.is_none())
    );
    assert_eq!((online.n_waiting(), online.report().given_up), (20, 10));
    let ids = views.ids().unwrap();
    assert!(online.teach(&ids[0], "1").is_err(), "given up");
    assert!(
        online.learn(&part(&views, 29, 31), &[None, None]).is_err(),
        "waits already"
    );
    for i in 10..30 {
        let outcome = online.teach(&ids[i], &labels[i]).unwrap();
        assert_eq!(outcome.correct, Some(false), "it could not have known");
    }
    assert_eq!(online.n_waiting(), 0);
    assert_eq!(
        (online.report().labelled, online.report().mistakes),
        (20, 20)
    );
    assert!(online.n_support() > 5);
    assert!(
        online
            .support
            .slots()
            .iter()
            .all(|s| s.id.is_some() && s.number >= 10)
    );
}

#[test]
fn sparse_views_do_what_dense_ones_do() {
    let (views, labels) = some_digits(250, 10);
    let sparse = views
        .clone()
        .map(|mut view| {
            if let ViewData::Dense(x) = &view.data {
                let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
                for i in 0..x.rows() {
                    for (c, v) in x.row(i).iter().enumerate().filter(|(_, v)| **v != 0.0) {
                        indices.push(c as u32);
                        values.push(*v);
                    }
                    starts.push(values.len());
                }
                view.data = ViewData::Sparse(Csr::new(x.cols(), starts, indices, values).unwrap());
            }
            Ok(view)
        })
        .unwrap();
    let kernels =
        specs("rbf laplacian chi2 intersection:normalize=spherical linear:normalize=spherical");
    let first = |views: &Views| {
        Online::new(StreamSettings::default(), &kernels, &part(views, 0, 80)).unwrap()
    };
    let (mut a, mut b) = (first(&views), first(&sparse));
    let (said, same) = (
        a.learn(&views, &known(&labels)).unwrap(),
        b.learn(&sparse, &known(&labels)).unwrap(),
    );
    for (a, b) in said.iter().zip(&same) {
        assert_eq!(a.prediction, b.prediction);
    }
    let waits = b.learn(&part(&sparse, 0, 5), &[None; 5]).unwrap();
    assert_eq!(waits.len(), 5);
    let again = Online::from_bytes(&b.to_bytes().unwrap()).unwrap();
    assert!(again.to_bytes().unwrap() == b.to_bytes().unwrap());
    assert_eq!(again.n_waiting(), 5);
}

#[test]
fn products_and_sums_are_kernels_too() {
    let (views, labels) = some_digits(300, 12);
    let kernels = specs(
        "rbf:view=upper_left,name=a linear:view=lower_left,normalize=spherical,name=b product:of=a*b,name=p sum:of=a*b,name=s,normalize=spherical",
    );
    let mut online =
        Online::new(StreamSettings::default(), &kernels, &part(&views, 0, 80)).unwrap();
    online.learn(&views, &known(&labels)).unwrap();
    let (said, model) = (online.predict(&views).unwrap(), online.snapshot().unwrap());
    let scores = model.scores(&views).unwrap();
    for (i, said) in said.iter().enumerate() {
        for (own, model) in said.scores.iter().zip(scores.row(i)) {
            assert!((own - model).abs() <= 1e-3, "{own} {model}");
        }
    }
}

#[test]
fn damaged_states_are_refused() {
    let (views, labels) = some_digits(80, 13);
    let mut online = learner(Rule::Omcl { c: 1.0 }, None, &views);
    run(&mut online, &views, &labels, &[64]);
    let bytes = online.to_bytes().unwrap();
    for cut in [0, 7, 100, bytes.len() / 2, bytes.len() - 1] {
        assert!(Online::from_bytes(&bytes[..cut]).is_err());
    }
    // Most of the file is numbers; the container's header and the state's text are where lies do harm.
    let header = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize + 8;
    let told: serde_json::Value = serde_json::from_slice(&bytes[8..header]).unwrap();
    let offset =
        |k: usize| header + told["online.state"]["data_offsets"][k].as_u64().unwrap() as usize;
    let parts = [8..header, offset(0)..offset(1), header..bytes.len()];
    let mut random = Random::new(1);
    for k in 0..1500 {
        let mut broken = bytes.clone();
        let among = &parts[k % 3];
        let at = among.start + random.below(among.len());
        broken[at] = match broken[at].is_ascii_digit() {
            true => b'0' + random.below(10) as u8,
            false => broken[at] ^ (1 << random.below(8)),
        };
        // refused, or a learner that can go on: never a panic
        if let Ok(mut online) = Online::from_bytes(&broken) {
            let _ = online.learn(&part(&views, 0, 3), &known(&labels[..3]));
        }
    }
    let model = online.snapshot().unwrap().to_bytes().unwrap();
    assert!(
        Online::from_bytes(&model).is_err(),
        "a model without a state"
    );
}
