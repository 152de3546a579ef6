//! Inspection finds what is there: numbers against a slow computation, and every warning on data made for it.

use multikernel::data::{Csr, Dense, Pairwise, Targets, View, ViewData, Views};
use multikernel::error::Result;
use multikernel::gram::Options;
use multikernel::inspect::{Report, TargetReport, ViewContents, inspect};
use multikernel::kernel::{KernelSpec, expand};
use multikernel::random::Random;

fn view(name: &str, data: ViewData) -> View {
    View {
        name: name.into(),
        columns: Vec::new(),
        data,
    }
}

fn dense(name: &str, cols: usize, values: Vec<f32>) -> View {
    let rows = values.len() / cols;
    view(
        name,
        ViewData::Dense(Dense::new(rows, cols, values).expect("dense")),
    )
}

fn normal(name: &str, rows: usize, cols: usize, seed: u64) -> View {
    let mut random = Random::new(seed);
    dense(
        name,
        cols,
        (0..rows * cols).map(|_| random.normal() as f32).collect(),
    )
}

fn matrix(name: &str, n: usize, value: impl Fn(usize, usize) -> f64) -> View {
    let values = (0..n * n).map(|k| value(k / n, k % n) as f32).collect();
    view(
        name,
        ViewData::Pairwise(Pairwise::new(n, n, values).expect("matrix")),
    )
}

fn classes(index: Vec<u32>) -> Targets {
    let count = index.iter().max().map_or(0, |m| m + 1);
    Targets::Classes {
        names: (0..count).map(|c| format!("class{c}")).collect(),
        index,
    }
}

fn look_with(views: Vec<View>, targets: &Targets, specs: &str, memory: u64) -> Result<Report> {
    let views = Views::new(views)?;
    let mut all = Vec::new();
    for spec in specs.split_whitespace() {
        all.extend(KernelSpec::parse(spec)?);
    }
    let options = Options {
        memory,
        seed: 1,
        ..Options::default()
    };
    inspect(&views, targets, &expand(&all, &views)?, &options, None, &())
}

fn look(views: Vec<View>, targets: &Targets, specs: &str) -> Report {
    look_with(views, targets, specs, u64::MAX).expect("a report")
}

fn warned(report: &Report, of: &str) -> bool {
    report.warnings.iter().any(|w| w.contains(of))
}

/// ⟨A, B⟩/(‖A‖‖B‖) of two matrices after centring, in f64, without any trick.
fn slow_alignment(n: usize, a: &[f64], b: &[f64]) -> f64 {
    let centred = |k: &[f64]| -> Vec<f64> {
        let row: Vec<f64> = (0..n)
            .map(|i| k[i * n..(i + 1) * n].iter().sum::<f64>() / n as f64)
            .collect();
        let all = row.iter().sum::<f64>() / n as f64;
        (0..n * n)
            .map(|p| k[p] - row[p / n] - row[p % n] + all)
            .collect()
    };
    let (a, b) = (centred(a), centred(b));
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()
}

#[test]
fn alignments_agree_with_a_slow_computation() {
    let n = 60;
    let (x, z) = (normal("x", n, 3, 1), normal("z", n, 2, 2));
    let slow = |view: &View, k: &dyn Fn(&[f32], &[f32]) -> f64| -> Vec<f64> {
        let ViewData::Dense(x) = &view.data else {
            panic!("dense");
        };
        (0..n * n).map(|p| k(x.row(p / n), x.row(p % n))).collect()
    };
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum();
    let gauss = |a: &[f32], b: &[f32]| {
        let d: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        (-d / 1.5).exp()
    };
    let matrices = [slow(&x, &dot), slow(&z, &gauss)];
    let specs = "linear:view=x rbf:view=z,width=1.5";

    let index: Vec<u32> = (0..n as u32).map(|i| i % 3).collect();
    let same: Vec<f64> = (0..n * n)
        .map(|p| f64::from(u8::from(index[p / n] == index[p % n])))
        .collect();
    let report = look(vec![x.clone(), z.clone()], &classes(index), specs);
    let kernels = report.kernels.expect("kernels");
    let expected = slow_alignment(n, &matrices[0], &matrices[1]);
    assert!((f64::from(kernels.alignments[0][1]) - expected).abs() < 1e-5);
    assert!((kernels.alignments[1][1] - 1.0).abs() < 1e-5);
    for (summary, k) in kernels.kernels.iter().zip(&matrices) {
        let expected = slow_alignment(n, k, &same);
        let found = summary.target_alignment.expect("targets");
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }

    let y: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
    let products: Vec<f64> = (0..n * n).map(|p| y[p / n] * y[p % n]).collect();
    let report = look(vec![x, z], &Targets::Real(y), specs);
    for (summary, k) in report
        .kernels
        .expect("kernels")
        .kernels
        .iter()
        .zip(&matrices)
    {
        let expected = slow_alignment(n, k, &products);
        assert!((summary.target_alignment.expect("targets") - expected).abs() < 1e-5);
    }
}

#[test]
fn eigenvalues_and_scales_are_those_of_the_matrix() {
    // diag(2, …, 2) + 1 has eigenvalues 2 and 2 + n.
    let n = 40;
    let k = matrix("k", n, |i, j| if i == j { 3.0 } else { 1.0 });
    let report = look(vec![k], &Targets::None, "precomputed");
    let kernels = report.kernels.expect("kernels");
    let k = &kernels.kernels[0];
    assert!((k.smallest_eigenvalue - 2.0).abs() < 1e-6);
    assert!((k.largest_eigenvalue - (2.0 + n as f64)).abs() < 1e-4);
    assert_eq!((k.min, k.max, k.mean_diagonal), (1.0, 3.0, 3.0));
    assert!((k.mean_off_diagonal - 1.0).abs() < 1e-12);
    assert!((k.mean_similarity - 1.0 / 3.0).abs() < 1e-9);
    let trace = 3.0 * n as f64;
    let squares = 9.0 * n as f64 + (n * (n - 1)) as f64;
    assert!((k.effective_rank - trace * trace / squares).abs() < 1e-6);
    assert_eq!(k.target_alignment, None);
}

#[test]
fn degenerate_kernels_are_named() {
    let n = 50;
    let report = look(
        vec![
            normal("x", n, 4, 3),
            matrix("zero", n, |_, _| 0.0),
            matrix("indefinite", n, |i, j| if i == j { 0.5 } else { -1.0 }),
        ],
        &Targets::None,
        "rbf:width=1e-4,name=narrow rbf:width=1e9,name=wide rbf:width=4,name=good precomputed",
    );
    let named = |of: &str| {
        let found: Vec<&String> = report.warnings.iter().filter(|w| w.contains(of)).collect();
        assert_eq!(found.len(), 1, "{of}: {:?}", report.warnings);
        found[0].clone()
    };
    assert!(named("numerically the identity").starts_with("kernel 'narrow' is"));
    assert!(named("numerically constant").starts_with("kernel 'wide' is"));
    assert!(named("zero everywhere").starts_with("kernel 'zero' is"));
    assert!(named("not positive semidefinite").starts_with("kernel 'indefinite' is"));
    assert!(
        !report.warnings.iter().any(|w| w.contains("'good'")),
        "{:?}",
        report.warnings
    );
}

#[test]
fn near_duplicates_and_scales_are_seen() {
    let report = look(
        vec![normal("x", 60, 4, 4)],
        &Targets::None,
        "rbf:width=8,name=a rbf:width=8.05,name=b rbf:width=0.5,name=c poly:degree=5,gamma=9,name=large",
    );
    assert!(warned(&report, "[a, b]"), "{:?}", report.warnings);
    assert!(
        warned(&report, "scales of the kernels differ"),
        "{:?}",
        report.warnings
    );
    assert_eq!(report.kernels.expect("kernels").near_duplicates, [[0, 1]]);
    let quiet = look(
        vec![normal("x", 60, 4, 4)],
        &Targets::None,
        "rbf:width=8 rbf:width=1",
    );
    assert!(quiet.warnings.is_empty(), "{:?}", quiet.warnings);
}

#[test]
fn repeated_samples_are_found_and_contradictions_counted() {
    // 0 = 3 (another label) and 1 = 4 (the same label); −0 is 0.
    let x = dense(
        "x",
        2,
        vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, -0.0, 1.0, 2.0, 3.0],
    );
    let strings = |s: &[&str]| {
        view(
            "s",
            ViewData::Strings(s.iter().map(|s| s.as_bytes().to_vec()).collect()),
        )
    };
    let same = strings(&["ab", "cd", "ef", "ab", "cd"]);
    let targets = classes(vec![0, 1, 0, 1, 1]);
    let report = look(vec![x.clone(), same], &targets, "rbf:width=1 spectrum:k=1");
    let repeated = report.data.repeated.as_ref().expect("looked for");
    assert_eq!((repeated.count, repeated.contradicting), (2, 1));
    assert_eq!(repeated.first, [(0, 3), (1, 4)]);
    assert!(warned(
        &report,
        "2 of 5 samples repeat an earlier one in every view (sample 4 is sample 1"
    ));
    assert!(
        !warned(&report, "the same to every kernel"),
        "said once is enough: {:?}",
        report.warnings
    );

    let other = strings(&["ab", "cd", "ef", "xy", "cd"]);
    let report = look(vec![x, other], &targets, "rbf:width=1");
    assert_eq!(report.data.repeated.expect("looked for").count, 1);

    let entries = |rows: &[&[(u32, f32)]]| {
        let mut starts = vec![0];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for row in rows {
            indices.extend(row.iter().map(|e| e.0));
            values.extend(row.iter().map(|e| e.1));
            starts.push(indices.len());
        }
        view(
            "sparse",
            ViewData::Sparse(Csr::new(9, starts, indices, values).expect("sparse")),
        )
    };
    let sparse = entries(&[&[(1, 2.0)], &[(1, 2.0), (5, 0.0)], &[(2, 2.0)]]);
    let report = look(vec![sparse], &Targets::None, "linear");
    assert_eq!(report.data.repeated.expect("looked for").count, 1);
}

#[test]
fn given_matrices_reveal_samples_that_no_kernel_tells_apart() {
    // Samples 2 and 7 are the same to both.
    let place = |i: usize| if i == 7 { 2.0 } else { i as f64 };
    let report = look(
        vec![
            matrix("a", 12, |i, j| (-(place(i) - place(j)).powi(2)).exp()),
            matrix("b", 12, |i, j| (-(place(i) - place(j)).abs()).exp()),
        ],
        &Targets::None,
        "precomputed",
    );
    assert!(
        warned(
            &report,
            "one pair of samples looks the same to every kernel (samples 3 and 8"
        ),
        "{:?}",
        report.warnings
    );
}

#[test]
fn classes_and_columns_are_judged() {
    let n = 120;
    let mut index = vec![0; n];
    index[..3].fill(1);
    let mut values: Vec<f32> = Vec::new();
    let mut random = Random::new(6);
    for _ in 0..n {
        values.extend([random.normal() as f32, 1e5 * random.normal() as f32, 7.0]);
    }
    let report = look(vec![dense("x", 3, values)], &classes(index), "linear");
    assert!(
        warned(&report, "one class has fewer than 5 samples: 'class1' (3)"),
        "{:?}",
        report.warnings
    );
    assert!(
        warned(&report, "consider `scale` x=standard"),
        "{:?}",
        report.warnings
    );
    let ViewContents::Numbers {
        constant_columns,
        columns,
        ..
    } = report.data.views[0].contents
    else {
        panic!("numbers");
    };
    assert_eq!((columns, constant_columns), (3, 1));
    let TargetReport::Classes { counts, .. } = &report.data.target else {
        panic!("classes");
    };
    assert_eq!(counts, &[117, 3]);

    let report = look(
        vec![dense("x", 1, vec![3.0; 8])],
        &classes(vec![0; 8]),
        "linear",
    );
    assert!(
        warned(&report, "every column is constant") && warned(&report, "all samples are of class")
    );
    let report = look(
        vec![normal("x", 8, 1, 1)],
        &Targets::Real(vec![2.0; 8]),
        "linear",
    );
    assert!(warned(&report, "all targets are 2"));
}

#[test]
fn a_thousand_kernels_of_many_samples_are_looked_at_on_a_sample() {
    let n = 1500;
    let specs: Vec<String> = (0..1000)
        .map(|m| format!("rbf:width={}", 1.0 + m as f64))
        .collect();
    let index = (0..n as u32).map(|i| i % 2).collect();
    let report = look(
        vec![normal("x", n, 3, 8)],
        &classes(index),
        &specs.join(" "),
    );
    let kernels = report.kernels.expect("kernels");
    assert_eq!(
        (kernels.kernels.len(), kernels.alignments.len()),
        (1000, 1000)
    );
    assert!(
        kernels.n_samples < n && kernels.n_samples > 100,
        "{}",
        kernels.n_samples
    );
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.contains("on a sample of")),
        "{:?}",
        report.notes
    );
}

#[test]
fn too_little_memory_is_said() {
    let n = 500;
    let specs = "rbf:width=1|2|3|4|5|6|7|8|9";
    let error = look_with(vec![normal("x", n, 3, 8)], &Targets::None, specs, 20_000)
        .expect_err("too little");
    assert!(error.to_string().contains("allow more memory"), "{error}");
}

#[test]
fn one_sample_is_no_disaster() {
    let report = look(
        vec![dense("x", 2, vec![1.0, 2.0])],
        &Targets::None,
        "linear poly",
    );
    let kernels = report.kernels.expect("kernels");
    assert!(kernels.kernels.iter().all(|k| k.mean_diagonal > 0.0));
}
