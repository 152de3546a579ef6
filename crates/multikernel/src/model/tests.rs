//! Models predict what training said, and the same to the last bit after saving.

use super::file::write_checksum;
use super::*;
use crate::data::{Csr, Dense, Pairwise, ScaleOption, Targets, View, ViewData};
use crate::gram::{Coefficients, Indefinite, KernelSet, Normalizer, Options, Repair};
use crate::kernel::{KernelSpec, Normalize, Width};
use crate::random::Random;
use crate::train::{Bias, Fitted, Mkl, Multiclass};
use proptest::prelude::*;

const N: usize = 48;

/// Samples of every kind: view names `d` (dense, ≥ 0), `s` (sparse), `t` (strings), `g` (kernel), `e` (distances).
fn views() -> Views {
    let mut random = Random::new(7);
    let dense: Vec<f32> = (0..N * 5).map(|_| random.uniform() as f32).collect();
    let dense = Dense::new(N, 5, dense).unwrap();
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..N {
        for column in 0..40u32 {
            if random.below(8) == 0 || column as usize == i % 40 {
                indices.push(column);
                values.push(random.uniform() as f32 + 0.1);
            }
        }
        starts.push(indices.len());
    }
    let sparse = Csr::new(40, starts, indices, values).unwrap();
    let strings = (0..N)
        .map(|_| (0..12).map(|_| b"ACGT"[random.below(4)]).collect())
        .collect();
    let mut kernel = vec![0.0f32; N * N];
    let mut distance = vec![0.0f32; N * N];
    for i in 0..N {
        for j in 0..N {
            let (x, y) = (dense.row(i), dense.row(j));
            let dot: f32 = x.iter().zip(y).map(|(a, b)| a * b).sum();
            kernel[i * N + j] = dot * dot;
            distance[i * N + j] = x.iter().zip(y).map(|(a, b)| (a - b).abs()).sum();
        }
    }
    let pairwise = |values| ViewData::Pairwise(Pairwise::new(N, N, values).unwrap());
    let view = |name: &str, data| View {
        name: name.into(),
        columns: Vec::new(),
        data,
    };
    let mut views = Views::new(vec![
        view("d", ViewData::Dense(dense)),
        view("s", ViewData::Sparse(sparse)),
        view("t", ViewData::Strings(strings)),
        view("g", pairwise(kernel)),
        view("e", pairwise(distance)),
    ])
    .unwrap();
    views
        .set_ids((0..N).map(|i| format!("sample {i}")).collect())
        .unwrap();
    views
}

fn first(views: &Views) -> &Dense {
    match &views.get("d").unwrap().data {
        ViewData::Dense(x) => x,
        _ => unreachable!(),
    }
}

fn classes(views: &Views, k: usize) -> Targets {
    let x = first(views);
    let mut random = Random::new(3);
    Targets::Classes {
        names: (0..k).map(|c| format!("class {c}")).collect(),
        index: (0..N)
            .map(|i| {
                let noisy = x.row(i)[0] + 0.2 * random.uniform() as f32;
                ((noisy / 1.2 * k as f32) as u32).min(k as u32 - 1)
            })
            .collect(),
    }
}

fn values(views: &Views) -> Targets {
    let x = first(views);
    Targets::Real(
        (0..N)
            .map(|i| f64::from(x.row(i)[0] - 2.0 * x.row(i)[1]))
            .collect(),
    )
}

fn specs(texts: &[&str]) -> Vec<KernelSpec> {
    texts
        .iter()
        .flat_map(|text| KernelSpec::parse(text).unwrap())
        .collect()
}

fn train(texts: &[&str], views: &Views, targets: &Targets, mkl: &Mkl) -> (KernelSet, Fitted) {
    let set = KernelSet::new(&specs(texts), views, &Options::default(), &()).unwrap();
    let fitted = mkl.fit(&set, targets, &()).unwrap();
    assert!(
        fitted.relative_gap() <= mkl.tolerance,
        "{:e}",
        fitted.relative_gap()
    );
    (set, fitted)
}

/// Decision values of the training samples, from the training Gram.
fn on_training(set: &KernelSet, fitted: &Fitted) -> Vec<f64> {
    let outputs = fitted.model.n_scores();
    let mut values = vec![0.0; N * outputs];
    for k in 0..outputs {
        let mut a = vec![0.0; N];
        for (row, &i) in fitted
            .model
            .coefficients()
            .chunks(outputs)
            .zip(fitted.model.columns())
        {
            a[i] = row[k];
        }
        let beta: Vec<f64> = fitted
            .kernels
            .iter()
            .map(|kernel| kernel.weights[k % kernel.weights.len()])
            .collect();
        let scores = set.gram().combine(&beta).product(Coefficients::single(&a));
        for (i, score) in scores.iter().enumerate() {
            values[i * outputs + k] = score + fitted.model.biases()[k];
        }
    }
    values
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// Scores of the model are those of training, and the same bits after saving, also for some of the samples.
fn check(set: &KernelSet, fitted: &Fitted, views: &Views, what: &str) {
    let model = &fitted.model;
    let expected = on_training(set, fitted);
    let found = model.decision_values(views).unwrap();
    let size = expected.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    for (e, f) in expected.iter().zip(&found) {
        assert!((e - f).abs() <= 2e-5 * size, "{what}: {e} became {f}");
    }
    let bytes = model.to_bytes().unwrap();
    let again = Model::from_bytes(&bytes).unwrap();
    assert_eq!(bytes, again.to_bytes().unwrap(), "{what}");
    assert_eq!(
        bits(&found),
        bits(&again.decision_values(views).unwrap()),
        "{what}"
    );
    let some = views.select(&[5, 17, 3]).unwrap();
    assert_eq!(
        bits(&model.decision_values(&some).unwrap()),
        bits(&again.decision_values(&some).unwrap())
    );
    assert_eq!(model.predict(&some).unwrap(), again.predict(&some).unwrap());
    assert_eq!(
        again.ids().unwrap()[0],
        format!("sample {}", again.columns()[0])
    );
}

const KINDS: [&str; 15] = [
    "linear:view=d",
    "poly:view=d,degree=3",
    "rbf:view=d",
    "laplacian:view=d",
    "chi2:view=d",
    "intersection:view=d",
    "linear:view=s",
    "rbf:view=s",
    "laplacian:view=s",
    "intersection:view=s",
    "spectrum:view=t,k=2",
    "weighted-degree:view=t,degree=4,shift=1",
    "precomputed:from=g",
    "distance:from=e",
    "rbf:view=d,width=0.3",
];

#[test]
fn every_kernel_under_every_normalisation_and_task() {
    let views = views();
    for kind in KINDS {
        for normalize in Normalize::ALL {
            let text = format!("{kind},normalize={},name=k", normalize.word());
            let other = "rbf:view=d,width=1";
            let unusable = kind.starts_with("precomputed") && normalize == Normalize::Spherical;
            for bias in [Bias::On, Bias::Off] {
                let mkl = Mkl {
                    bias,
                    ..Mkl::default()
                };
                let (set, fitted) = train(&[&text, other], &views, &classes(&views, 2), &mkl);
                let what = format!("{text} {bias:?}");
                if unusable {
                    let error = fitted.model.scores(&views).unwrap_err().to_string();
                    assert!(error.contains("normalise the matrices before"), "{error}");
                    assert!(
                        fitted
                            .warnings
                            .iter()
                            .any(|w| w.contains("cannot be applied"))
                    );
                } else {
                    check(&set, &fitted, &views, &what);
                }
            }
        }
    }
}

#[test]
fn products_and_sums_of_normalised_kernels() {
    let views = views();
    for normalize in ["none", "spherical", "center", "trace"] {
        for inner in ["none", "spherical", "center", "multiplicative"] {
            let parts = [
                format!("poly:view=d,name=a,normalize={inner}"),
                "rbf:view=s,name=b".to_owned(),
                "precomputed:from=g,name=c".to_owned(),
            ];
            for of in ["product:of=a*b", "sum:of=a*b"] {
                let whole = format!("{of},name=p,normalize={normalize}");
                let texts = [&parts[0], &parts[1], &parts[2], &whole].map(|s| s.as_str());
                let (set, fitted) = train(&texts, &views, &values(&views), &Mkl::default());
                check(&set, &fitted, &views, &format!("{whole} of {inner}"));
                // Alone: its parts have no weight but are kept.
                let alone = Mkl::default()
                    .fit_kernels(&set, &[3], &values(&views), &())
                    .unwrap();
                assert_eq!(alone.model.kernels().len(), 3);
                assert_eq!(alone.model.weights(0)[..2], [0.0, 0.0]);
                check(&set, &alone, &views, &format!("{whole} of {inner} alone"));
            }
        }
    }
}

#[test]
fn a_model_that_cannot_be_applied_says_so_in_training() {
    let views = views();
    let texts = [
        "rbf:view=d,name=a",
        "precomputed:from=g,name=b",
        "product:of=a*b,name=c",
        "sum:of=a*c,normalize=spherical",
    ];
    let (_, fitted) = train(&texts, &views, &values(&views), &Mkl::default());
    assert_eq!(fitted.warnings.len(), 1, "{:?}", fitted.warnings);
    assert!(fitted.warnings[0].contains("cannot be applied to new samples"));
    assert!(fitted.model.predict(&views).is_err());
}

#[test]
fn every_task_and_scheme() {
    let views = views();
    let texts = [
        "rbf:view=d",
        "linear:view=s,normalize=center",
        "spectrum:view=t",
    ];
    let ovo = Mkl {
        multiclass: Multiclass::OneVsOne,
        ..Mkl::default()
    };
    for (targets, mkl) in [
        (values(&views), Mkl::default()),
        (Targets::None, Mkl::default()),
        (classes(&views, 3), Mkl::default()),
        (classes(&views, 3), ovr()),
        (classes(&views, 4), ovo),
    ] {
        let (set, fitted) = train(&texts, &views, &targets, &mkl);
        check(
            &set,
            &fitted,
            &views,
            &format!("{:?}", fitted.model.scheme()),
        );
        assert_eq!(fitted.model.scores(&views).unwrap().len(), N);
    }
}

#[test]
fn centring_without_bias_keeps_all_samples_and_says_so() {
    let views = views();
    let mkl = Mkl {
        bias: Bias::Off,
        c: 0.01,
        ..Mkl::default()
    };
    let targets = values(&views);
    let texts = ["linear:view=d,normalize=center"];
    let (_, fitted) = train(&texts, &views, &targets, &mkl);
    assert_eq!(fitted.model.columns().len(), N);
    assert!(
        fitted.n_support < N,
        "the test needs samples without coefficients"
    );
    assert!(
        fitted
            .notes
            .iter()
            .any(|n| n.contains("keeps all 48 training samples"))
    );
    let (_, fitted) = train(
        &texts,
        &views,
        &targets,
        &Mkl {
            bias: Bias::On,
            ..mkl
        },
    );
    assert_eq!(fitted.model.columns().len(), fitted.n_support);
}

#[test]
fn what_nobody_needs_is_dropped() {
    let views = views();
    let specs = specs(&["rbf:view=d", "linear:view=s"]);
    let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
    let fitted = Mkl::default()
        .fit_kernels(&set, &[0], &classes(&views, 2), &())
        .unwrap();
    let model = &fitted.model;
    assert_eq!(fitted.kernels[1].weights, [0.0]);
    assert_eq!(model.kernels().len(), 1);
    assert_eq!(model.needed_views(), [("d", false)]);
    assert_eq!(model.samples().iter().count(), 1);
    // Other views of new samples are not looked at.
    let only = views.only(|v| v.name == "d");
    assert_eq!(
        model.decision_values(&views).unwrap(),
        model.decision_values(&only).unwrap()
    );
}

#[test]
fn given_matrices_may_have_the_columns_kept_only() {
    let views = views();
    let (_, fitted) = train(
        &["precomputed:from=g"],
        &views,
        &classes(&views, 2),
        &Mkl::default(),
    );
    let model = &fitted.model;
    assert!(model.columns().len() < N);
    let ViewData::Pairwise(all) = &views.get("g").unwrap().data else {
        panic!()
    };
    let cut: Vec<f32> = (0..N)
        .flat_map(|i| model.columns().iter().map(move |&j| all.row(i)[j]))
        .collect();
    let given = |cols, values| {
        Views::new(vec![View {
            name: "g".into(),
            columns: Vec::new(),
            data: ViewData::Pairwise(Pairwise::new(N, cols, values).unwrap()),
        }])
        .unwrap()
    };
    let kept = model.columns().len();
    assert_eq!(
        model.decision_values(&views).unwrap(),
        model.decision_values(&given(kept, cut)).unwrap()
    );
    let error = model.scores(&given(kept + 1, vec![0.0; N * (kept + 1)]));
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains(&format!(
            "it has {} columns; give one column for each of the 48",
            kept + 1
        )),
        "{error}"
    );
}

#[test]
fn new_samples_are_scaled_as_in_training() {
    let raw = views();
    let scaling = Scaling::fit(
        &[
            "d=standard".parse::<ScaleOption>().unwrap(),
            "s=unit".parse().unwrap(),
        ],
        &raw,
    )
    .unwrap();
    let scaled = scaling.apply(raw.clone()).unwrap();
    let mkl = Mkl {
        scaling,
        ..Mkl::default()
    };
    let targets = classes(&raw, 2);
    let (set, fitted) = train(&["rbf:view=d", "linear:view=s"], &scaled, &targets, &mkl);
    check(&set, &fitted, &raw, "scaled");
}

#[test]
fn views_that_do_not_fit_are_named() {
    let views = views();
    let (_, fitted) = train(
        &["rbf:view=d", "linear:view=s", "spectrum:view=t"],
        &views,
        &classes(&views, 2),
        &Mkl::default(),
    );
    let says = |views: &Views, text: &str| {
        let error = fitted.model.predict(views).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    says(
        &views.only(|v| v.name != "s"),
        "view 's': the model needs it, but it is missing; the views given are 'd', 't', 'g', 'e'",
    );
    let replaced = |data: ViewData| {
        let mut out = views.only(|v| v.name != "d");
        out.push(View {
            name: "d".into(),
            columns: Vec::new(),
            data,
        })
        .unwrap();
        out
    };
    let wide = Dense::new(N, 6, vec![0.0; N * 6]).unwrap();
    says(
        &replaced(ViewData::Dense(wide)),
        "view 'd': it has 6 columns, in training it had 5",
    );
    says(
        &replaced(ViewData::Strings(vec![b"A".to_vec(); N])),
        "view 'd': it is of kind 'strings', in training it was 'dense'",
    );
    // A sparse view may lack the last columns.
    let narrow = Csr::new(2, vec![0; N + 1], vec![], vec![]).unwrap();
    assert_eq!(
        fitted
            .model
            .predict(&replaced(ViewData::Sparse(narrow)))
            .unwrap()
            .len(),
        N
    );
}

#[test]
fn many_rows_go_in_blocks_and_give_the_same() {
    let views = views();
    let (_, fitted) = train(&["rbf:view=d"], &views, &values(&views), &Mkl::default());
    let rows: Vec<usize> = (0..20_000).map(|i| (i * 7) % N).collect();
    let many = views.only(|v| v.name == "d").select(&rows).unwrap();
    let few = fitted.model.decision_values(&views).unwrap();
    let found = fitted.model.decision_values(&many).unwrap();
    assert_eq!(found.len(), rows.len());
    for (f, &i) in found.iter().zip(&rows) {
        assert!((f - few[i]).abs() < 1e-5);
    }
}

/// The samples, and two matrices far from kernels: `i` (values) and `u` (distances whose kernel is indefinite).
fn indefinite_views() -> Views {
    let mut random = Random::new(11);
    let (mut values, mut distances) = (vec![0.0f32; N * N], vec![0.0f32; N * N]);
    let x = views();
    let x = first(&x);
    for i in 0..N {
        for j in 0..=i {
            let dot: f32 = x.row(i).iter().zip(x.row(j)).map(|(a, b)| a * b).sum();
            let value = dot + 0.5 * random.normal() as f32;
            let distance = if i == j {
                0.0
            } else {
                3.0 * random.uniform() as f32
            };
            for at in [i * N + j, j * N + i] {
                values[at] = value;
                distances[at] = distance;
            }
        }
    }
    let mut views = views();
    for (name, values) in [("i", values), ("u", distances)] {
        let data = ViewData::Pairwise(Pairwise::new(N, N, values).unwrap());
        let name = name.to_owned();
        let columns = Vec::new();
        views
            .push(View {
                name,
                columns,
                data,
            })
            .unwrap();
    }
    views
}

fn repaired(texts: &[&str], views: &Views, indefinite: Indefinite) -> KernelSet {
    let options = Options {
        indefinite,
        ..Options::default()
    };
    KernelSet::new(&specs(texts), views, &options, &()).unwrap()
}

#[test]
fn clipped_kernels_predict_what_training_said() {
    let views = indefinite_views();
    for normalize in ["none", "center", "trace", "multiplicative"] {
        for bias in [Bias::On, Bias::Off] {
            let texts = [
                &format!("precomputed:from=i,name=i,normalize={normalize}"),
                &format!("distance:from=u,name=u,width=0.5|1,normalize={normalize}"),
                "rbf:view=d,name=r",
                "precomputed:from=g,name=g",
                "product:of=i*r,name=p",
                "sum:of=i*g",
            ];
            // The bar makes two kernels, which have one name each.
            let texts = texts.map(|t| t.replace("name=u,width=0.5|1", "width=0.5|1"));
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let set = repaired(&texts, &views, Indefinite::Clip);
            let told = set.notes().iter().filter(|n| n.contains("were set to 0"));
            assert_eq!(told.count(), 3, "{:?}", set.notes());
            let is_clipped = |k: &&Kernel| matches!(k.repair, Some(Repair::Clip(_)));
            assert_eq!(set.kernels().iter().filter(is_clipped).count(), 3);
            for k in [2, 3] {
                for multiclass in [Multiclass::OneVsRest, Multiclass::OneVsOne] {
                    let mkl = Mkl {
                        bias,
                        multiclass,
                        ..Mkl::default()
                    };
                    let fitted = mkl.fit(&set, &classes(&views, k), &()).unwrap();
                    check(
                        &set,
                        &fitted,
                        &views,
                        &format!("{normalize} {bias:?} {multiclass:?}"),
                    );
                }
            }
            // The cross Gram of the set says the same as the Gram of training.
            let cross = set.cross(&views).unwrap();
            for m in 0..set.kernels().len() {
                let (a, b) = (set.gram().kernel(m).matrix(), cross.kernel(m).matrix());
                let size = a.iter().fold(1.0f32, |s, v| s.max(v.abs()));
                for (a, b) in a.iter().zip(&b) {
                    assert!((a - b).abs() < 1e-5 * size, "kernel {m}: {a} {b}");
                }
            }
        }
    }
}

#[test]
fn kernels_of_distances_are_repaired_too() {
    let views = indefinite_views();
    let texts = ["distance:from=u,width=0.5"];
    let error = KernelSet::new(&specs(&texts), &views, &Options::default(), &());
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("kernel '") && error.contains("`indefinite` clip, shift or allow"),
        "{error}"
    );
    // Alone, so that it has a weight.
    for indefinite in [Indefinite::Clip, Indefinite::Shift] {
        let set = repaired(&texts, &views, indefinite);
        assert!(set.kernels()[0].repair.is_some());
        let fitted = Mkl::default().fit(&set, &classes(&views, 2), &()).unwrap();
        let again = Model::from_bytes(&fitted.model.to_bytes().unwrap()).unwrap();
        assert_eq!(
            bits(&fitted.model.decision_values(&views).unwrap()),
            bits(&again.decision_values(&views).unwrap())
        );
        if indefinite == Indefinite::Clip {
            check(&set, &fitted, &views, "distance");
        }
    }
}

#[test]
fn a_clipped_kernel_without_weight_costs_the_model_nothing() {
    let views = indefinite_views();
    let set = repaired(
        &["precomputed:from=i", "rbf:view=d"],
        &views,
        Indefinite::Clip,
    );
    let fit = |kernel| Mkl::default().fit_kernels(&set, &[kernel], &classes(&views, 2), &());
    let (clipped, plain) = (fit(0).unwrap(), fit(1).unwrap());
    assert_eq!(clipped.model.columns().len(), N);
    assert!(
        clipped
            .notes
            .iter()
            .any(|n| n.contains("clipping new samples"))
    );
    assert!(plain.model.columns().len() < N);
    // Older programs read models without clipping, and refuse those with.
    let has = |model: &Model, text: &str| {
        let bytes = model.to_bytes().unwrap();
        bytes.windows(text.len()).any(|w| w == text.as_bytes())
    };
    assert!(has(&plain.model, r#"\"version\":1,"#));
    assert!(has(&clipped.model, r#"\"version\":2,"#));
    assert!(!has(&plain.model, "repair"));
}

fn clipped_file() -> Vec<u8> {
    let views = indefinite_views();
    let texts = [
        "precomputed:from=i",
        "rbf:view=d",
        "distance:from=u,width=1",
    ];
    let set = repaired(&texts, &views, Indefinite::Clip);
    let fitted = Mkl::default().fit(&set, &classes(&views, 2), &()).unwrap();
    fitted.model.to_bytes().unwrap()
}

#[test]
fn directions_that_do_not_fit_are_refused() {
    let good = Model::from_bytes(&clipped_file()).unwrap();
    let refused = |change: &dyn Fn(&mut Parts)| {
        let mut parts = good.parts.clone();
        change(&mut parts);
        let error = Model::new(parts).unwrap_err().to_string();
        assert!(
            error.contains("clipped off new samples does not fit"),
            "{error}"
        );
    };
    let vectors = |change: &dyn Fn(&mut Vec<f32>)| {
        refused(&|p: &mut Parts| {
            if let Some(Repair::Clip(projection)) = p.kernels[0].repair.take() {
                let mut vectors = projection.vectors().to_vec();
                change(&mut vectors);
                p.kernels[0].repair = Some(Repair::Clip(projection.with_vectors(vectors)));
            }
        });
    };
    vectors(&|v| v[3] = f32::NAN);
    vectors(&|v| v[3] = 1e30);
    vectors(&|v| v.truncate(N));
    vectors(&|v| v.clear());
    refused(&|p| p.kernels[1].repair = p.kernels[0].repair.clone());
    refused(&|p| p.kernels[1].repair = Some(Repair::Shift));
}

fn ovr() -> Mkl {
    Mkl {
        multiclass: Multiclass::OneVsRest,
        ..Mkl::default()
    }
}

fn sample_file() -> Vec<u8> {
    let views = views();
    let texts = [
        "rbf:view=d",
        "linear:view=s,normalize=center",
        "poly:view=d,normalize=spherical,name=p",
        "spectrum:view=t",
        "precomputed:from=g,name=g,normalize=trace",
        "product:of=p*g",
    ];
    let (_, mut fitted) = train(&texts, &views, &classes(&views, 3), &ovr());
    fitted.model.set_training(serde_json::json!({"seed": 1}));
    fitted.model.to_bytes().unwrap()
}

#[test]
fn files_are_written_whole_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.mk");
    let model = Model::from_bytes(&sample_file()).unwrap();
    model.save(&path).unwrap();
    model.save(&path).unwrap();
    let again = Model::load(&path).unwrap();
    assert_eq!(again.training()["seed"], 1);
    assert_eq!(again.to_bytes().unwrap(), model.to_bytes().unwrap());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let missing = Model::load(dir.path().join("none.mk"))
        .unwrap_err()
        .to_string();
    assert!(missing.contains("none.mk"), "{missing}");
    assert!(
        model
            .save(dir.path().join("no folder").join("m.mk"))
            .is_err()
    );
}

#[test]
fn other_files_are_refused_with_a_reason() {
    let says = |bytes: &[u8], text: &str| {
        let error = Model::from_bytes(bytes).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    let good = sample_file();
    says(b"", "not a model file");
    says(b"prediction,score\n1,2\n", "not a model file");
    says(
        &good[..good.len() - 1],
        "the model file is damaged: it ends too early",
    );
    says(&good[..good.len() / 2], "damaged");
    let foreign =
        safetensors::serialize::<&str, safetensors::tensor::TensorView<'_>, _>([], None).unwrap();
    says(&foreign, "not a model file");
    // Whatever is changed, the checksum tells; the next ones lie about that too.
    for place in [9, good.len() / 2, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[place] ^= 1;
        assert!(Model::from_bytes(&bytes).is_err(), "byte {place}");
    }
    let mut bytes = good.clone();
    *bytes.last_mut().unwrap() ^= 1;
    says(
        &bytes,
        "damaged: its checksum is not that of its content; copy it again",
    );
    // The header is text of fixed length: changed in place.
    let replace = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = good
            .windows(from.len())
            .position(|w| w == from.as_bytes())
            .unwrap();
        let mut bytes = good.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        write_checksum(&mut bytes).unwrap();
        bytes
    };
    says(
        &replace(r#"\"version\":1,"#, r#"\"version\":7,"#),
        "the file has version 7 of the model format, this program reads versions 1 to 3",
    );
    says(
        &replace(
            r#"\"scheme\":\"one-vs-rest\""#,
            r#"\"scheme\":\"single\"     "#,
        ),
        "its 3 classes do not fit its task",
    );
    says(&replace("class 0", "class 1"), "do not fit its task");
    says(
        &replace(r#"\"n_training\":48"#, r#"\"n_training\":10"#),
        "do not ascend within the training data",
    );
    says(&replace("product", "produkt"), "its header says");
    // Ends of tensors that would overflow when added up.
    let header = r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[18446744073709551615,18446744073709551615]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    says(&bytes, "ends too early");
}

#[test]
fn a_joint_model_has_one_set_of_weights_and_the_newer_version() {
    let views = views();
    let texts = ["rbf:view=d", "spectrum:view=t"];
    let (_, fitted) = train(&texts, &views, &classes(&views, 3), &Mkl::default());
    let good = fitted.model.to_bytes().unwrap();
    let text = String::from_utf8_lossy(&good);
    assert!(text.contains(r#"\"version\":2,"#) && text.contains(r#"\"scheme\":\"joint\""#));
    let again = Model::from_bytes(&good).unwrap();
    assert_eq!(again.scheme(), Scheme::Joint);
    assert_eq!((again.n_problems(), again.n_scores()), (1, 3));
    let parts = &again.parts;
    assert_eq!(parts.weights.len(), parts.kernels.len());
    let mut wrong = parts.clone();
    wrong.weights.extend(parts.weights.clone());
    assert!(Model::new(wrong).is_err());
    let mut wrong = parts.clone();
    wrong.biases.pop();
    assert!(Model::new(wrong).is_err());
}

#[test]
fn numbers_that_are_none_are_refused() {
    let good = Model::from_bytes(&sample_file()).unwrap();
    let refused = |change: fn(&mut Parts), text: &str| {
        let mut parts = good.parts.clone();
        change(&mut parts);
        let error = Model::new(parts).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    refused(
        |p| p.coefficients[0] = f64::NAN,
        "is not a number it may be",
    );
    refused(|p| p.weights[0] = -1.0, "is not a number it may be");
    refused(|p| p.biases[0] = f64::INFINITY, "is not a number it may be");
    refused(|p| p.biases.push(0.0), "it has 4 biases for 3 classes");
    refused(|p| p.coefficients.truncate(5), "it has 5 coefficients");
    refused(|p| p.weights.truncate(5), "it has 5 weights for 6 kernels");
    refused(|p| p.columns.swap(0, 1), "do not ascend");
    refused(|p| p.kernels.swap(4, 5), "do not stand before it");
    refused(
        |p| p.kernels[0].spec.kind = KernelSpec::rbf(Width::Mean(1.0)).kind,
        "its width is not a positive number",
    );
    refused(
        |p| p.kernels[0].spec.view = Some("x".into()),
        "the view it looks at is not in the model",
    );
    refused(
        |p| p.kernels[1].normalizer = Normalizer::None,
        "the statistics of its normalisation do not fit",
    );
    refused(
        |p| p.kernels[1].name = p.kernels[0].name.clone(),
        "another kernel has the same name",
    );
    refused(|p| p.ids = Some(vec![]), "one id for each sample");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn damaged_files_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        in_header in any::<bool>(),
        cut in prop::option::of(any::<prop::sample::Index>()),
        clipped in any::<bool>(),
    ) {
        use std::sync::LazyLock;
        static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(sample_file);
        static CLIPPED: LazyLock<Vec<u8>> = LazyLock::new(clipped_file);
        static VIEWS: LazyLock<Views> = LazyLock::new(indefinite_views);
        let good: &Vec<u8> = if clipped { &CLIPPED } else { &SAMPLE };
        let mut bytes = good.clone();
        // Most of the file is numbers; the header is where lies do harm.
        let header = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize + 8;
        let reach = if in_header { header } else { bytes.len() };
        for (at, value) in flips {
            bytes[at.index(reach)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(good.len()));
        }
        let refused = Model::from_bytes(&bytes).is_err();
        prop_assert!(refused || bytes == *good, "a changed file is never taken for a whole one");
        // Then by someone who lies about the checksum too.
        let _ = write_checksum(&mut bytes);
        if let Ok(model) = Model::from_bytes(&bytes) {
            let _ = model.predict(&VIEWS);
        }
    }
}
