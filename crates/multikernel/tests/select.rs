//! Choosing by cross-validation, probabilities and the stability of weights, across modules.

use multikernel::data::{Dense, Folds, Split, Targets, Task, View, ViewData, Views, digits};
use multikernel::gram::{KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::loss::Loss;
use multikernel::measure::{Calibration, Metric, Truth};
use multikernel::norm::Norm;
use multikernel::observe::{Observer, Progress};
use multikernel::problem::{Limits, Problem, Start, certify};
use multikernel::random::Random;
use multikernel::record::Stability;
use multikernel::select::stability::{HeldOut, Settings, stability};
use multikernel::select::{
    Bootstrap, Checkpoint, Fit, Grid, Identity, Known, Recipe, Rule, evaluate,
};
use multikernel::solve::exact::solve;
use multikernel::train::{Mkl, Multiclass, WarmStart};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Two views of noise, and one where `classes` classes have different means.
fn samples(n: usize, classes: u32, seed: u64) -> (Views, Targets) {
    let mut random = Random::new(seed);
    let index: Vec<u32> = (0..n).map(|i| i as u32 % classes).collect();
    let mut view = |name: &str, shift: f64| {
        let values = (0..2 * n).map(|k| {
            let class = f64::from(index[k / 2]);
            let angle = std::f64::consts::TAU * class / f64::from(classes);
            let mean = shift * if k % 2 == 0 { angle.cos() } else { angle.sin() };
            (mean + random.normal()) as f32
        });
        View {
            name: name.into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(n, 2, values.collect()).unwrap()),
        }
    };
    let views = vec![
        view("noise", 0.0),
        view("good", 1.3),
        view("more noise", 0.0),
    ];
    let names = (0..classes).map(|c| format!("class {c}")).collect();
    (
        Views::new(views).unwrap(),
        Targets::Classes { names, index },
    )
}

fn kernels(spec: &str, views: &Views) -> KernelSet {
    let specs = KernelSpec::parse(spec).unwrap();
    KernelSet::new(&specs, views, &Options::default(), &()).unwrap()
}

fn recipe(views: &Views, targets: &Targets, spec: &str, norms: &[&str], costs: &[f64]) -> Recipe {
    Recipe {
        views: views.clone(),
        targets: targets.clone(),
        banks: vec![(String::new(), KernelSpec::parse(spec).unwrap())],
        scale: Vec::new(),
        options: Options::default(),
        mkl: Mkl::default(),
        grid: Grid {
            norms: norms
                .iter()
                .map(|n| (n.parse().unwrap(), Vec::new()))
                .collect(),
            costs: costs.to_vec(),
            metric: Metric::usual(targets),
            rule: Rule::Best,
        },
        folds: 3,
        groups: None,
        seed: 5,
    }
}

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.unwrap().install(work)
}

/// Values along the path, whatever their order.
fn sorted(fits: Vec<Fit>) -> Vec<Fit> {
    let mut fits = fits;
    fits.sort_by(|a, b| {
        let key = |f: &Fit| (f.norm.clone(), f.fold, f.cost.to_bits());
        key(a).cmp(&key(b))
    });
    fits
}

#[test]
fn a_warm_start_ends_where_a_cold_one_does() {
    let (views, classes) = samples(90, 2, 1);
    let (_, three) = samples(90, 3, 1);
    let values = Targets::Real(
        (0..90)
            .map(|i| f64::from(i % 7) + 0.1 * f64::from(i % 3))
            .collect(),
    );
    let set = kernels("rbf:width=mean*0.5|mean", &views);
    let of = |loss: &str, multiclass| Mkl {
        loss: (!loss.is_empty()).then(|| loss.parse().unwrap()),
        multiclass,
        ..Mkl::default()
    };
    let mut jobs = vec![
        (of("", Multiclass::Joint), &three),
        (of("", Multiclass::OneVsRest), &three),
        (of("", Multiclass::OneVsOne), &three),
    ];
    for loss in ["hinge", "squared-hinge", "logistic", "squared"] {
        jobs.push((of(loss, Multiclass::Auto), &classes));
    }
    for loss in ["epsilon:0.1", "squared", "huber:0.5"] {
        jobs.push((of(loss, Multiclass::Auto), &values));
    }
    jobs.push((of("", Multiclass::Auto), &Targets::None));
    for (base, targets) in jobs {
        let mut start: Option<Arc<WarmStart>> = None;
        for norm in ["lp:inf", "lp:2", "lp:4/3", "lp:1", "elastic:0.3", "lp:2"] {
            for c in [0.05, 5.0, 0.2] {
                let cold = Mkl {
                    norm: norm.parse().unwrap(),
                    c,
                    ..base.clone()
                };
                let warm = Mkl {
                    start: start.clone(),
                    ..cold.clone()
                };
                let cold = cold.fit(&set, targets, &()).unwrap();
                let warm = warm.fit(&set, targets, &()).unwrap();
                let what = format!("{norm}, C {c}, {:?}", base.loss);
                assert!(
                    warm.relative_gap() <= 1e-3,
                    "{what}: {}",
                    warm.relative_gap()
                );
                let (p, q) = (cold.certificate.primal, warm.certificate.primal);
                assert!(
                    (p - q).abs() <= 2e-3 * p.abs().max(q.abs()),
                    "{what}: {p} {q}"
                );
                start = WarmStart::of(&warm).map(Arc::new);
            }
        }
    }
}

/// A fold's value is what a model trained on its samples alone reaches, where kernels take nothing from the data.
#[test]
fn folds_on_one_gram_are_trainings_of_their_own() {
    for classes in [2, 3] {
        let (views, targets) = samples(120, classes, 2);
        let job = recipe(&views, &targets, "rbf:width=2|8", &["lp:4/3"], &[0.5]);
        let found = job.search(&[], &|_| (), &()).unwrap();
        let point = &found.tuning.unwrap().points[0];
        let folds = Folds::new(3, &targets, 120, None, 5).unwrap();
        for fold in 0..3 {
            let (training, out) = (folds.training(fold), folds.held_out(fold));
            let set = kernels("rbf:width=2|8", &views.part(&training, &training).unwrap());
            let mkl = Mkl {
                c: 0.5,
                ..Mkl::default()
            };
            let fitted = mkl.fit(&set, &targets.select(&training), &()).unwrap();
            let scores = fitted
                .model
                .scores(&views.part(&out, &training).unwrap())
                .unwrap();
            let predictions = fitted.model.predictions(&scores);
            let value = Metric::Accuracy.of(&predictions, &scores, &targets.select(&out));
            assert_eq!(value, Some(point.folds[fold]), "fold {fold}");
        }
    }
}

#[test]
fn given_matrices_are_searched_like_the_kernels_they_hold() {
    let (views, targets) = samples(90, 2, 3);
    let spec = "rbf:width=4,normalize=center";
    let set = kernels(spec, &views);
    let given = (0..3).map(|m| View {
        name: set.kernels()[m].name.clone(),
        columns: Vec::new(),
        data: ViewData::Pairwise(
            multikernel::data::Pairwise::new(90, 90, set.gram().kernel(m).matrix()).unwrap(),
        ),
    });
    let given = Views::new(given.collect()).unwrap();
    let norms = ["lp:1", "lp:2"];
    let direct = recipe(&views, &targets, spec, &norms, &[0.1, 1.0]);
    let matrices = recipe(&given, &targets, "precomputed", &norms, &[0.1, 1.0]);
    let means = |recipe: &Recipe| -> Vec<f64> {
        let tuning = recipe.search(&[], &|_| (), &()).unwrap().tuning.unwrap();
        tuning.points.iter().map(|p| p.mean).collect()
    };
    for (a, b) in means(&direct).iter().zip(means(&matrices)) {
        assert!((a - b).abs() < 0.03, "{a} {b}");
    }
}

#[test]
fn searches_do_not_depend_on_the_threads() {
    let (views, targets) = samples(100, 3, 4);
    let mut job = recipe(
        &views,
        &targets,
        "rbf:width=mean|mean*4",
        &["lp:1", "lp:2"],
        &[0.1, 2.0],
    );
    job.grid.rule = Rule::OneStandardError;
    let set = kernels("rbf:width=mean|mean*4", &views);
    let once = |threads| {
        with_threads(threads, || {
            let fits = Mutex::new(Vec::new());
            let told = |fit: &Fit| fits.lock().unwrap().push(fit.clone());
            let mut tuning = job.search(&[], &told, &()).unwrap().tuning.unwrap();
            tuning.seconds = 0.0;
            let nested = job.nested(2, &()).unwrap();
            let mkl = Mkl::default();
            let fitted = mkl.fit(&set, &targets, &()).unwrap();
            let settings = Settings {
                rounds: 5,
                ..Settings::default()
            };
            let stable = stability(&mkl, &set, &targets, &fitted, None, &settings, &()).unwrap();
            let calibration = mkl.calibrate(&set, &targets, 0, &()).unwrap();
            let fits = sorted(fits.into_inner().unwrap());
            (fits, tuning, nested, stable, calibration)
        })
    };
    let (one, three) = (once(1), once(3));
    assert_eq!(one.0, three.0);
    assert_eq!(one.1, three.1);
    assert_eq!(one.2, three.2);
    assert_eq!(one.3, three.3);
    assert_eq!(one.4, three.4);
}

#[test]
fn a_search_finds_what_is_good_and_nested_is_honest() {
    // C far too small gives the majority; the classes are told apart 8 times in 10 at best.
    let (views, targets) = samples(150, 2, 6);
    let mut job = recipe(
        &views,
        &targets,
        "linear",
        &["lp:1", "lp:inf"],
        &[1e-6, 1.0],
    );
    // Enough classes of unlike size that a tiny C is bad.
    let Targets::Classes { index, .. } = &mut job.targets else {
        panic!("classes")
    };
    index.iter_mut().take(30).for_each(|c| *c = 0);
    let tuning = job.search(&[], &|_| (), &()).unwrap().tuning.unwrap();
    assert_eq!(tuning.points.len(), 4);
    let chosen = &tuning.points[tuning.chosen];
    assert_eq!(tuning.costs[chosen.cost], 1.0);
    assert!(chosen.mean > 0.7, "{chosen:?}");
    assert!(tuning.agreement > 0.2 && tuning.within_error >= 1);
    let nested = job.nested(3, &()).unwrap();
    assert!(
        (nested.value - chosen.mean).abs() < 0.12,
        "{nested:?} {chosen:?}"
    );
    assert!(nested.low < nested.value && nested.value < nested.high);
}

#[test]
fn groups_are_not_parted_and_banks_are_compared() {
    let (views, targets) = samples(90, 2, 7);
    let mut job = recipe(&views, &targets, "linear:view=noise", &["lp:2"], &[1.0]);
    job.banks[0].0 = "noise".into();
    let good = KernelSpec::parse("linear:view=good").unwrap();
    job.banks.push(("good".into(), good));
    job.groups = Some((0..90).map(|i| i / 6).collect());
    let tuning = job.search(&[], &|_| (), &()).unwrap().tuning.unwrap();
    assert_eq!(tuning.banks, ["noise", "good"]);
    assert_eq!(tuning.points[tuning.chosen].bank, 1);
}

/// Asks to stop when so many trainings are done.
struct Impatient {
    after: usize,
    seen: AtomicUsize,
}

impl Observer for Impatient {
    fn progress(&self, progress: &Progress<'_>) -> ControlFlow<()> {
        if let Progress::Work {
            stage: "points of the grid",
            ..
        } = progress
        {
            self.seen.fetch_add(1, Ordering::Relaxed);
        }
        match self.seen.load(Ordering::Relaxed) >= self.after {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

#[test]
fn a_stopped_search_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("search.jsonl");
    let (views, targets) = samples(60, 2, 8);
    let job = recipe(
        &views,
        &targets,
        "rbf",
        &["lp:1", "lp:2"],
        &[0.1, 1.0, 10.0],
    );
    let whole = job.search(&[], &|_| (), &()).unwrap().tuning.unwrap();
    let identity = Identity::of(&job);
    let checkpoint = Checkpoint::create(&file, &identity).unwrap();
    let impatient = Impatient {
        after: 7,
        seen: AtomicUsize::new(0),
    };
    let found = with_threads(1, || {
        job.search(&[], &|fit| checkpoint.add(fit), &impatient)
    })
    .unwrap();
    checkpoint.finish().unwrap();
    assert!(found.stopped);
    // No point was tried on all folds, but some on the first.
    let best = found.tuning.unwrap();
    assert_eq!((best.folds, best.points.len()), (1, 6));
    assert!(best.points.iter().all(|point| point.folds.len() == 1));
    drop(checkpoint);
    assert!(
        Checkpoint::create(&file, &identity)
            .unwrap_err()
            .to_string()
            .contains("is there already")
    );
    // A line that was cut off is forgotten.
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str("{\"bank\":\"\",\"nor");
    std::fs::write(&file, &text).unwrap();
    let (checkpoint, known) = Checkpoint::resume(&file, &identity).unwrap();
    assert!(known.len() >= 6 && known.len() < 18, "{}", known.len());
    let again = AtomicUsize::new(0);
    let told = |fit: &Fit| {
        again.fetch_add(1, Ordering::Relaxed);
        checkpoint.add(fit);
    };
    let found = job.search(&known, &told, &()).unwrap();
    checkpoint.finish().unwrap();
    assert_eq!(again.into_inner() + known.len(), 18);
    let tuning = found.tuning.unwrap();
    for (a, b) in tuning.points.iter().zip(&whole.points) {
        // Starts differ, so answers may within the tolerance: at most a sample changes sides.
        assert!((a.mean - b.mean).abs() <= 1.0 / 60.0 + 1e-9, "{a:?} {b:?}");
    }
    let (_, all) = Checkpoint::resume(&file, &identity).unwrap();
    assert_eq!(all.len(), 18);
}

#[test]
fn foreign_checkpoints_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("search.jsonl");
    let (views, targets) = samples(60, 2, 8);
    let job = recipe(&views, &targets, "rbf", &["lp:1"], &[0.1]);
    let identity = Identity::of(&job);
    drop(Checkpoint::create(&file, &identity).unwrap());
    let good = std::fs::read_to_string(&file).unwrap();
    let said = |text: &str| {
        std::fs::write(&file, text).unwrap();
        Checkpoint::resume(&file, &identity)
            .unwrap_err()
            .to_string()
    };
    for foreign in [
        "",
        "\n",
        "hello\n",
        "{}\n",
        "\u{0}\u{0}",
        "[[[[\n",
        &good[..good.len() / 2],
    ] {
        assert!(
            said(foreign).contains("this is not a checkpoint of tune"),
            "{foreign:?}"
        );
    }
    let wrong = format!(
        "{good}{{\"bank\":\"\",\"norm\":\"lp:1\",\"C\":0.1,\"fold\":9,\"value\":0.5,\"converged\":true}}\n"
    );
    assert!(said(&wrong).contains("line 2: this is no training of the search"));
    assert!(said(&good.replace("\"version\":1", "\"version\":7")).contains("has version 7"));
    assert!(said(&"x".repeat(3 << 20)).contains("this is not a checkpoint of tune"));
    std::fs::write(&file, &good).unwrap();
    let mut other = job.clone();
    other.folds = 4;
    let differs = |other: &Recipe| {
        Checkpoint::resume(&file, &Identity::of(other))
            .unwrap_err()
            .to_string()
    };
    assert!(differs(&other).contains("another search: the number of folds is not the same"));
    let mut other = job.clone();
    other.targets = samples(60, 2, 8).1;
    let Targets::Classes { index, .. } = &mut other.targets else {
        panic!("classes")
    };
    index.swap(0, 1);
    assert!(
        differs(&other).contains("the labels is not the same")
            || differs(&other).contains("the labels")
    );
    other.targets = targets;
    other.views = samples(60, 2, 9).0;
    assert!(differs(&other).contains("the data"));
    // A larger grid is the same search.
    let mut larger = job.clone();
    larger.grid.costs.push(3.0);
    assert!(Checkpoint::resume(&file, &Identity::of(&larger)).is_ok());
}

#[test]
fn searches_that_cannot_be_are_refused_in_a_sentence() {
    let (views, targets) = samples(30, 2, 9);
    let said = |job: &Recipe| job.search(&[], &|_| (), &()).unwrap_err().to_string();
    let job = recipe(&views, &Targets::None, "rbf", &["lp:1"], &[1.0]);
    assert!(said(&job).starts_with("task: one-class has no labels"));
    let job = recipe(&views, &targets, "rbf", &["lp:1"], &[1.0, -1.0]);
    assert!(said(&job).starts_with("C: it is -1"));
    let job = recipe(&views, &targets, "rbf", &["lp:1", "lp:1"], &[1.0]);
    assert!(said(&job).starts_with("norm: lp:1 is there twice"));
    let mut job = recipe(&views, &targets, "rbf", &["lp:1"], &[1.0]);
    job.folds = 31;
    assert!(said(&job).starts_with("folds: there are 31 for 30 samples"));
    job.folds = 3;
    job.grid.metric = Metric::R2;
    assert!(said(&job).starts_with("metric: r2 is for numbers"));
}

#[test]
fn probabilities_mean_what_they_say_on_digits() {
    let data = digits().unwrap();
    let labels = data.labels.unwrap();
    let all = Targets::new(Some(&labels), Task::Classify, 1797).unwrap();
    let Targets::Classes { index, .. } = &all else {
        panic!("classes")
    };
    // 3 against 8 by their upper halves: hard enough that probabilities differ.
    let two: Vec<usize> = (0..1797)
        .filter(|&i| index[i] == 3 || index[i] == 8)
        .collect();
    let pair = Targets::Classes {
        names: vec!["3".into(), "8".into()],
        index: two.iter().map(|&i| u32::from(index[i] == 8)).collect(),
    };
    let upper = data.views.only(|v| v.name.starts_with("upper_left"));
    let cases = [
        (upper.select(&two).unwrap(), pair, 0.1),
        (
            data.views.only(|v| v.name.starts_with("upper")),
            all.clone(),
            1.0,
        ),
    ];
    for (views, targets, c) in cases {
        let n = views.len();
        let split = Split::holdout(0.5, &targets, n, 1).unwrap();
        let training = views.part(&split.training, &split.training).unwrap();
        let set = kernels("rbf", &training);
        let mkl = Mkl {
            c,
            ..Mkl::default()
        };
        let own = targets.select(&split.training);
        let mut fitted = mkl.fit(&set, &own, &()).unwrap();
        let calibration = mkl.calibrate(&set, &own, 0, &()).unwrap();
        fitted.model.set_calibration(Some(calibration)).unwrap();
        let loaded = multikernel::Model::from_bytes(&fitted.model.to_bytes().unwrap()).unwrap();
        assert_eq!(loaded.calibration(), Some(&calibration));
        let out = views.part(&split.held_out, &split.training).unwrap();
        let scores = loaded.scores(&out).unwrap();
        let Targets::Classes { index, names } = targets.select(&split.held_out) else {
            panic!("classes")
        };
        let truth: Vec<Option<u32>> = index.iter().map(|&c| Some(c)).collect();
        let found = evaluate(
            &loaded,
            &scores,
            Truth::Classes(&truth),
            "",
            &Bootstrap::default(),
        );
        let error = found.metrics["calibration_error"].value;
        assert!(error < 0.06, "{} classes: {error}", names.len());
        let p = loaded.probabilities(&scores).unwrap();
        assert!(
            p.chunks(names.len())
                .all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-9)
        );
        // Better than the shares of the classes, which have the log loss ln(classes).
        assert!(found.metrics["log_loss"].value < 0.6 * (names.len() as f64).ln());
    }
}

#[test]
fn probabilities_that_do_not_fit_are_refused() {
    let (views, targets) = samples(40, 2, 10);
    let set = kernels("rbf", &views);
    let mkl = Mkl::default();
    let mut model = mkl.fit(&set, &targets, &()).unwrap().model;
    let wrong = Calibration::Temperature { temperature: 1.0 };
    assert!(model.set_calibration(Some(wrong)).is_err());
    let wrong = Calibration::Sigmoid {
        slope: f64::NAN,
        offset: 0.0,
    };
    assert!(model.set_calibration(Some(wrong)).is_err());
    let scores = model.scores(&views).unwrap();
    assert_eq!(model.probabilities(&scores), None);
    let error = mkl
        .calibrate(&set, &Targets::Real(vec![0.0; 40]), 0, &())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("probabilities: there are no classes")
    );
}

fn looked_at(mkl: &Mkl, classes: u32, rounds: usize) -> (KernelSet, Stability) {
    let (views, targets) = samples(160, classes, 11);
    let set = kernels("rbf", &views);
    let fitted = mkl.fit(&set, &targets, &()).unwrap();
    let settings = Settings {
        rounds,
        ..Settings::default()
    };
    let found = stability(mkl, &set, &targets, &fitted, None, &settings, &()).unwrap();
    (set, found.unwrap())
}

#[test]
fn the_informative_kernel_is_told_from_noise() {
    for (multiclass, classes) in [
        (Multiclass::Auto, 2),
        (Multiclass::Joint, 3),
        (Multiclass::OneVsRest, 3),
        (Multiclass::OneVsOne, 3),
    ] {
        let mkl = Mkl {
            multiclass,
            ..Mkl::default()
        };
        let (_, found) = looked_at(&mkl, classes, 19);
        let what = format!("{multiclass:?}: {found:?}");
        assert_eq!(found.rounds, 19, "{what}");
        let share: f64 = found.shares.iter().map(|s| s.value).sum();
        assert!((share - 1.0).abs() < 1e-9, "{what}");
        assert!(
            found
                .shares
                .iter()
                .all(|s| s.low <= s.value && s.value <= s.high)
        );
        assert!(found.shares[1].low > found.shares[0].value, "{what}");
        let shuffled = found.shuffled.unwrap();
        assert_eq!(shuffled.p_value[1], 1.0 / 20.0, "{what}");
        assert!(shuffled.p_value[0] > 0.05, "{what}");
        let without = found.without.unwrap();
        assert!(without.change[1].unwrap() < -0.1, "{what}");
        assert!(without.change[0].unwrap().abs() < 0.1, "{what}");
    }
}

#[test]
fn a_kernel_without_weight_is_not_missed_and_solvers_without_weights_take_subsamples() {
    let sparse = Mkl {
        norm: "lp:1".parse().unwrap(),
        c: 0.05,
        ..Mkl::default()
    };
    let (_, found) = looked_at(&sparse, 2, 5);
    assert_eq!(found.method, "bootstrap");
    assert_eq!(found.shares[0].value, 0.0);
    assert_eq!(found.without.unwrap().change[0], Some(0.0));
    let omcl = Mkl {
        solver: "omcl".parse().unwrap(),
        ..Mkl::default()
    };
    let (_, found) = looked_at(&omcl, 3, 3);
    assert_eq!(found.method, "subsamples of 63 %");
}

#[test]
fn samples_held_out_tell_what_a_kernel_is_worth() {
    let (views, targets) = samples(240, 2, 12);
    let rows: Vec<usize> = (0..160).collect();
    let out: Vec<usize> = (160..240).collect();
    let set = kernels("linear", &views.part(&rows, &rows).unwrap());
    let mkl = Mkl::default();
    let own = targets.select(&rows);
    let fitted = mkl.fit(&set, &own, &()).unwrap();
    let (views, targets) = (views.part(&out, &rows).unwrap(), targets.select(&out));
    let held_out = HeldOut {
        views: &views,
        targets: &targets,
    };
    let settings = Settings {
        rounds: 2,
        ..Settings::default()
    };
    let found = stability(&mkl, &set, &own, &fitted, Some(held_out), &settings, &());
    let without = found.unwrap().unwrap().without.unwrap();
    let scores = fitted.model.scores(&views).unwrap();
    let predictions = fitted.model.predictions(&scores);
    assert_eq!(
        Some(without.all),
        Metric::Accuracy.of(&predictions, &scores, &targets)
    );
    assert!(without.change[1].unwrap() < -0.15, "{without:?}");
}

#[test]
fn what_a_model_is_worth_has_its_parts() {
    let (views, targets) = samples(80, 3, 13);
    let set = kernels("rbf", &views);
    let fitted = Mkl::default().fit(&set, &targets, &()).unwrap();
    let labels = multikernel::data::Labels::from_text((0..80).map(|i| match i {
        0 => "unheard of".to_owned(),
        _ => format!("class {}", i % 3),
    }))
    .unwrap();
    let mut notes = Vec::new();
    let known = Known::new(&fitted.model, Some(&labels), &mut notes).unwrap();
    assert!(notes[0].starts_with("1 of 80 labels are classes that the model does not know"));
    let scores = fitted.model.scores(&views).unwrap();
    let found = evaluate(
        &fitted.model,
        &scores,
        known.truth(),
        "80 samples",
        &Bootstrap::default(),
    );
    let counts = found.confusion.unwrap();
    assert_eq!(counts.iter().flatten().sum::<u64>(), 79);
    let right: u64 = (0..3).map(|c| counts[c][c]).sum();
    let accuracy = found.metrics["accuracy"];
    assert!((accuracy.value - right as f64 / 80.0).abs() < 1e-12);
    assert!(accuracy.low < accuracy.value && accuracy.value < accuracy.high);
    assert!(
        Known::new(&fitted.model, None, &mut notes)
            .unwrap_err()
            .to_string()
            .starts_with("labels: there are none")
    );
}

/// Two Gaussian classes whose means differ in some dimensions, each of which is a linear kernel (Kloft et al. 2011, §6.1, smaller).
fn toy(informative: usize, dimensions: usize, n: usize, seed: u64) -> (KernelSet, Targets) {
    let mut random = Random::stream(77, seed);
    let mean = 1.75 / (informative as f64).sqrt();
    let index: Vec<u32> = (0..n as u32).map(|i| i % 2).collect();
    let views = (0..dimensions).map(|d| {
        let shift = if d < informative { mean } else { 0.0 };
        let sign = |c: &u32| 2.0 * f64::from(*c) - 1.0;
        let values = index
            .iter()
            .map(|c| (shift * sign(c) + random.normal()) as f32);
        View {
            name: d.to_string(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(n, 1, values.collect()).unwrap()),
        }
    });
    let views = Views::new(views.collect()).unwrap();
    let names = vec!["minus".into(), "plus".into()];
    (
        kernels("linear:normalize=multiplicative", &views),
        Targets::Classes { names, index },
    )
}

/// Intervals of weights hold the mean over data sets about as often as they claim; `experiments` (weight_intervals) measures it well.
#[test]
fn intervals_of_weights_hold_the_truth() {
    let (informative, dimensions, n) = (3, 6, 80);
    let mkl = Mkl {
        c: 0.1,
        ..Mkl::default()
    };
    // Kernels with information are all alike: their mean share is the truth of each.
    let truth = (0..60).map(|set| {
        let (kernels, targets) = toy(informative, dimensions, n, 1000 + set);
        let fitted = mkl.fit(&kernels, &targets, &()).unwrap();
        let weight = |m: usize| fitted.kernels[m].weights[0];
        let total: f64 = (0..dimensions).map(weight).sum();
        (0..informative).map(weight).sum::<f64>() / total / informative as f64
    });
    let truth = truth.sum::<f64>() / 60.0;
    let mut held = 0;
    for set in 0..15 {
        let (kernels, targets) = toy(informative, dimensions, n, set);
        let fitted = mkl.fit(&kernels, &targets, &()).unwrap();
        let settings = Settings {
            rounds: 60,
            seed: set,
            shuffle: false,
            leave_out: false,
            ..Settings::default()
        };
        let found = stability(&mkl, &kernels, &targets, &fitted, None, &settings, &());
        let shares = found.unwrap().unwrap().shares;
        let own = shares[..informative].iter();
        held += own.filter(|s| s.low <= truth && truth <= s.high).count();
    }
    let share = held as f64 / 45.0;
    assert!((0.8..=1.0).contains(&share), "{share}");
}

#[test]
fn a_result_says_what_its_gap_is_for_a_larger_c() {
    let (views, targets) = samples(80, 2, 3);
    let Targets::Classes { index, .. } = &targets else {
        panic!("two classes");
    };
    let signs: Vec<f64> = index.iter().map(|&k| 2.0 * f64::from(k) - 1.0).collect();
    let values: Vec<f64> = (0..80).map(|i| f64::from(i % 9)).collect();
    for (loss, wanted, spec) in [
        (Loss::Hinge, &signs, "rbf:width=mean|mean*2"),
        (Loss::Hinge, &signs, "rbf:width=mean*0.001|mean*0.002"),
        (Loss::Epsilon(0.1), &values, "rbf:width=mean*0.1"),
    ] {
        let set = kernels(spec, &views);
        let norm = Norm::block(1.5).unwrap();
        let certificate = |cost: f64, start: Option<Start>| {
            let costs = vec![cost; 80];
            let problem = Problem {
                loss,
                targets: wanted,
                costs: &costs,
                bias: true,
            };
            let limits = Limits {
                tolerance: 1e-3,
                max_rounds: 1000,
                deadline: None,
                memory: u64::MAX,
                confirm: true,
            };
            match start {
                None => {
                    let found = solve(set.gram(), &norm, &problem, &limits, None, &());
                    let start = Start {
                        coefficients: found.coefficients,
                        weights: found.weights,
                    };
                    (found.certificate, start)
                }
                Some(start) => {
                    let (a, weights) = (&start.coefficients, &start.weights);
                    (certify(set.gram(), &norm, &problem, a, weights), start)
                }
            }
        };
        let (here, start) = certificate(2.0, None);
        let said = here.for_larger_c(25.0);
        // The kernels' own word at 25 times C; a bias of its own may only lower P.
        let (there, _) = certificate(50.0, Some(start));
        assert!((there.dual - said.dual).abs() <= 1e-9 * said.dual.abs());
        assert!(there.primal <= said.primal * (1.0 + 1e-9), "{loss}");
        assert!(there.relative_gap() <= said.relative_gap() + 1e-9);
    }
}

#[test]
fn where_c_changes_nothing_a_search_finds_what_cold_trainings_find() {
    let (views, targets) = samples(90, 2, 4);
    // So narrow that no coefficient comes to its bound.
    let spec = "rbf:width=0.1|0.25";
    let costs = [5.0, 50.0, 500.0, 5000.0];
    let recipe = recipe(&views, &targets, spec, &["lp:2", "lp:inf"], &costs);
    let tuning = recipe.search(&[], &|_| (), &()).unwrap().tuning.unwrap();
    let folds = Folds::new(3, &targets, 90, None, 5).unwrap();
    for point in &tuning.points {
        assert!(point.converged);
        for (fold, value) in point.folds.iter().enumerate() {
            let (rows, out) = (folds.training(fold), folds.held_out(fold));
            let set = kernels(spec, &views.select(&rows).unwrap());
            let mkl = Mkl {
                norm: ["lp:2", "lp:inf"][point.norm].parse().unwrap(),
                c: costs[point.cost],
                ..Mkl::default()
            };
            let fitted = mkl.fit(&set, &targets.select(&rows), &()).unwrap();
            let said = fitted.model.predict(&views.select(&out).unwrap()).unwrap();
            let Targets::Classes { names, index } = &targets else {
                panic!("two classes");
            };
            let right = |k: &usize| said.text(*k) == names[index[out[*k]] as usize];
            let accuracy = (0..out.len()).filter(right).count() as f64 / out.len() as f64;
            // Both are within the tolerance: one sample may lie between them.
            assert!((accuracy - value).abs() <= 1.01 / out.len() as f64);
        }
    }
    let worth = |cost: usize| -> Vec<&Vec<f64>> {
        let of_cost = tuning.points.iter().filter(|p| p.cost == cost);
        of_cost.map(|p| &p.folds).collect()
    };
    assert_eq!(worth(2), worth(3));
}
