//! Online learning beside its relatives: what streams and stored data have in common, and what the papers promise.

use multikernel::data::{Dense, Labels, Targets, Task, View, ViewData, Views, digits};
use multikernel::gram::{KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::online::{Online, Rule, StreamSettings};
use multikernel::random::Random;
use multikernel::solve::stochastic;
use multikernel::train::{Mkl, Multiclass, Solver};

struct Known {
    views: Views,
    labels: Vec<String>,
}

impl Known {
    fn told(&self) -> Vec<Option<&str>> {
        self.labels.iter().map(|l| Some(l.as_str())).collect()
    }

    fn some(&self, rows: &[usize]) -> Known {
        Known {
            views: self.views.select(rows).unwrap(),
            labels: rows.iter().map(|&i| self.labels[i].clone()).collect(),
        }
    }

    fn shuffled(&self, seed: u64) -> Known {
        let mut order: Vec<usize> = (0..self.labels.len()).collect();
        Random::new(seed).shuffle(&mut order);
        self.some(&order)
    }
}

fn all_digits() -> Known {
    let data = digits().unwrap();
    let labels = data.labels.unwrap();
    Known {
        labels: (0..data.views.len())
            .map(|i| labels.spelling(i).to_owned())
            .collect(),
        views: data.views,
    }
}

fn accuracy(online: &Online, test: &Known) -> f64 {
    let said = online.predict(&test.views).unwrap();
    let right = said
        .iter()
        .zip(&test.labels)
        .filter(|(said, label)| online.classes()[said.prediction.unwrap() as usize] == **label);
    right.count() as f64 / test.labels.len() as f64
}

#[test]
fn a_pass_over_stored_data_is_a_stream_in_the_same_order() {
    let known = all_digits().shuffled(1).some(&(0..250).collect::<Vec<_>>());
    let test = all_digits()
        .shuffled(1)
        .some(&(1000..1100).collect::<Vec<_>>());
    let specs = KernelSpec::parse("rbf:width=mean*0.5|mean").unwrap();
    let kernels = KernelSet::new(&specs, &known.views, &Options::default(), &()).unwrap();
    let labels = Labels::from_text(&known.labels).unwrap();
    let targets = Targets::new(Some(&labels), Task::Classify, 250).unwrap();
    let Targets::Classes { names, .. } = &targets else {
        panic!("classes");
    };
    let seed = 5;
    let same_order = known.shuffled(seed);
    for (solver, rule) in [
        (Solver::Om2, Rule::Om2),
        (Solver::Pa1, Rule::PassiveAggressive { c: 0.5 }),
        (Solver::Omcl, Rule::Omcl { c: 0.5 }),
    ] {
        let mkl = Mkl {
            norm: "block:1.5".parse().unwrap(),
            solver,
            c: 0.5,
            multiclass: Multiclass::Joint,
            stochastic: stochastic::StochasticSettings {
                epochs: 1,
                seed,
                ..stochastic::StochasticSettings::default()
            },
            ..Mkl::default()
        };
        let fitted = mkl.fit(&kernels, &targets, &()).unwrap();
        let settings = StreamSettings {
            rule,
            norm: "block:1.5".parse().unwrap(),
            classes: names.clone(),
            ..StreamSettings::default()
        };
        let mut online = Online::new(settings, &specs, &known.views).unwrap();
        online.learn(&same_order.views, &same_order.told()).unwrap();
        let scores = fitted.model.scores(&test.views).unwrap();
        assert_eq!(scores.names, online.classes());
        for (i, said) in online.predict(&test.views).unwrap().iter().enumerate() {
            for (own, batch) in said.scores.iter().zip(scores.row(i)) {
                assert!((own - batch).abs() < 2e-3, "{solver}: {own} {batch}");
            }
        }
        assert_eq!(fitted.n_support, online.n_support());
        // a certificate where there is an objective
        let gap = fitted.relative_gap();
        match solver {
            Solver::Omcl => assert!(gap.is_infinite() && fitted.certificate.primal.is_nan()),
            _ => assert!(gap > 0.0 && gap.is_finite(), "{solver}"),
        }
        let bytes = fitted.model.to_bytes().unwrap();
        let again = multikernel::Model::from_bytes(&bytes).unwrap();
        assert_eq!(again.scores(&test.views).unwrap(), scores);
    }
}

#[test]
fn one_view_among_noise_is_found() {
    // OM-2's price for kernels of noise is logarithmic; the average kernel pays for each of them.
    let base = all_digits();
    let (mut om2, mut average) = (0.0, 0.0);
    for seed in 0..3 {
        let known = base.shuffled(seed).some(&(0..1000).collect::<Vec<_>>());
        let mut views = known.views.only(|v| v.name == "upper_right");
        let mut random = Random::new(seed);
        for k in 0..15 {
            let values = (0..1000 * 16).map(|_| random.normal() as f32).collect();
            views
                .push(View {
                    name: format!("noise{k}"),
                    columns: Vec::new(),
                    data: ViewData::Dense(Dense::new(1000, 16, values).unwrap()),
                })
                .unwrap();
        }
        let specs = KernelSpec::parse("rbf:width=mean*0.5|mean").unwrap();
        let first = views.select(&(0..256).collect::<Vec<_>>()).unwrap();
        let error = |rule: Rule| {
            let settings = StreamSettings {
                rule,
                ..StreamSettings::default()
            };
            let mut online = Online::new(settings, &specs, &first).unwrap();
            online.learn(&views, &known.told()).unwrap();
            let weights = online.weights();
            if rule == Rule::Om2 {
                // the kernels of the view that tells something come first
                let best = weights[..2].iter().copied().fold(0.0, f64::max);
                let noise = weights[2..].iter().copied().fold(0.0, f64::max);
                assert!(best > 2.0 * noise, "{weights:?}");
            }
            online.report().online_error()
        };
        om2 += error(Rule::Om2);
        average += [0.1, 0.5, 1.0, 10.0]
            .map(|c| error(Rule::PassiveAggressive { c }))
            .into_iter()
            .fold(f64::INFINITY, f64::min);
    }
    assert!(
        om2 < 0.9 * average,
        "OM-2 {om2}, PA-I on the average kernel {average}"
    );
}

#[test]
fn kernels_of_parts_of_one_view_are_found_among_noise_and_do_what_none_can_alone() {
    let known = all_digits().shuffled(3).some(&(0..800).collect::<Vec<_>>());
    let mut random = Random::new(3);
    let mut views = Views::default();
    let informative = known.views.only(|v| v.name == "upper_right");
    let ViewData::Dense(pixels) = &informative.iter().next().unwrap().data else {
        panic!("digits are dense");
    };
    // Every kernel sees two columns: of the one view that tells something, or of three views of noise.
    for pair in 0..32 {
        let values = match pair {
            0..8 => (0..800)
                .flat_map(|i| pixels.row(i)[2 * pair..2 * pair + 2].to_vec())
                .collect(),
            _ => (0..1600).map(|_| random.normal() as f32).collect(),
        };
        views
            .push(View {
                name: format!("v{pair}"),
                columns: Vec::new(),
                data: ViewData::Dense(Dense::new(800, 2, values).unwrap()),
            })
            .unwrap();
    }
    let error = |rule: Rule, kernels: &str| {
        let settings = StreamSettings {
            rule,
            ..StreamSettings::default()
        };
        let kernels = KernelSpec::parse(kernels).unwrap();
        let mut online = Online::new(settings, &kernels, &views).unwrap();
        online.learn(&views, &known.told()).unwrap();
        online.report().online_error()
    };
    let best = |kernels: &str| {
        [0.1, 0.5, 1.0, 10.0]
            .map(|c| error(Rule::PassiveAggressive { c }, kernels))
            .into_iter()
            .fold(f64::INFINITY, f64::min)
    };
    let om2 = error(Rule::Om2, "rbf");
    let average = best("rbf");
    let single = (0..8).map(|pair| best(&format!("rbf:view=v{pair}")));
    let single = single.fold(f64::INFINITY, f64::min);
    assert!(
        om2 < 0.95 * average && om2 < 0.9 * single,
        "OM-2 {om2}, PA-I on the average {average}, on the best kernel alone {single}"
    );
}

#[test]
fn after_some_passes_it_is_as_good_as_the_exact_model() {
    let all = all_digits().shuffled(2);
    let training = all.some(&(0..1000).collect::<Vec<_>>());
    let test = all.some(&(1000..1797).collect::<Vec<_>>());
    let specs = KernelSpec::parse("rbf:width=mean*0.5|mean|mean*2").unwrap();
    let settings = StreamSettings {
        norm: "block:1.25".parse().unwrap(),
        ..StreamSettings::default()
    };
    let mut online = Online::new(settings, &specs, &training.views).unwrap();
    online.learn(&training.views, &training.told()).unwrap();
    for _ in 0..10 {
        online.begin_pass();
        online
            .learn_again(&training.views, &training.told(), 0)
            .unwrap();
    }
    let kernels = KernelSet::new(&specs, &training.views, &Options::default(), &()).unwrap();
    let labels = Labels::from_text(&training.labels).unwrap();
    let targets = Targets::new(Some(&labels), Task::Classify, 1000).unwrap();
    let mut exact: f64 = 0.0;
    for c in [1.0, 10.0] {
        let mkl = Mkl {
            norm: "block:1.25".parse().unwrap(),
            c,
            multiclass: Multiclass::Joint,
            ..Mkl::default()
        };
        let model = mkl.fit(&kernels, &targets, &()).unwrap().model;
        let said = model.predict(&test.views).unwrap();
        let right = (0..said.len()).filter(|&i| said.text(i) == test.labels[i].as_str());
        exact = exact.max(right.count() as f64 / said.len() as f64);
    }
    let online = accuracy(&online, &test);
    assert!(online >= exact - 0.01, "OM-2 {online}, exact {exact}");
}
