//! The engine against plain sums over kernel values, for every kernel, normalisation and way to get rows.

use multikernel::data::{Csr, Dense, Pairwise, View, ViewData, Views};
use multikernel::gram::{Coefficients, Gram, KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::random::Random;

const N: usize = 37;
const NEW: usize = 9;

fn view(name: &str, data: ViewData) -> View {
    View {
        name: name.into(),
        columns: Vec::new(),
        data,
    }
}

fn dense(random: &mut Random, rows: usize, cols: usize) -> Dense {
    let values = (0..rows * cols).map(|_| random.uniform() as f32);
    Dense::new(rows, cols, values.collect()).unwrap()
}

/// Half of the entries are zero.
fn sparse(random: &mut Random, rows: usize, cols: usize) -> Csr {
    let (mut starts, mut indices, mut values) = (vec![0], vec![], vec![]);
    for _ in 0..rows {
        for c in 0..cols {
            if random.uniform() < 0.5 {
                indices.push(c as u32);
                values.push(random.uniform() as f32);
            }
        }
        starts.push(indices.len());
    }
    Csr::new(cols, starts, indices, values).unwrap()
}

fn strings(random: &mut Random, rows: usize, length: usize) -> Vec<Vec<u8>> {
    (0..rows)
        .map(|_| (0..length).map(|_| b"ACGT"[random.below(4)]).collect())
        .collect()
}

/// Views of all kinds for N training samples, and the same views for NEW of them, the first ones.
fn samples() -> (Views, Views) {
    let mut random = Random::new(7);
    let points = dense(&mut random, N, 5);
    let matrix = |f: &dyn Fn(f32, f32) -> f32| -> Vec<f32> {
        let pairs = (0..N * N).map(|k| (points.row(k / N), points.row(k % N)));
        pairs
            .map(|(a, b)| a.iter().zip(b).map(|(&a, &b)| f(a, b)).sum())
            .collect()
    };
    let given = Pairwise::new(N, N, matrix(&|a, b| a * b)).unwrap();
    let distance = Pairwise::new(N, N, matrix(&|a, b| (a - b) * (a - b))).unwrap();
    let views = Views::new(vec![
        view("dense", ViewData::Dense(points)),
        view("sparse", ViewData::Sparse(sparse(&mut random, N, 12))),
        view("letters", ViewData::Strings(strings(&mut random, N, 40))),
        view("given", ViewData::Pairwise(given)),
        view("distance", ViewData::Pairwise(distance)),
    ])
    .unwrap();
    let first: Vec<usize> = (0..NEW).collect();
    let new = views.select(&first).unwrap();
    (views, new)
}

const KERNELS: [&str; 16] = [
    "linear:view=dense",
    "poly:view=dense,degree=2|3|6,gamma=0.5",
    "rbf:view=dense,width=mean*0.25|mean|median*3|0.7",
    "laplacian:view=dense,width=mean|2",
    "chi2:view=dense,gamma=0.5|2",
    "intersection:view=dense",
    "linear:view=sparse",
    "rbf:view=sparse,width=mean|median",
    "laplacian:view=sparse",
    "chi2:view=sparse",
    "intersection:view=sparse",
    "spectrum:view=letters,k=2|3",
    "weighted-degree:view=letters,degree=4|10",
    "weighted-degree:view=letters,degree=5,shift=3",
    "precomputed:from=given",
    "distance:from=distance,width=mean*0.5|mean",
];

/// All kernels with one normalisation; products and sums of some of them at the end.
fn specs(normalize: &str) -> Vec<KernelSpec> {
    let mut specs: Vec<KernelSpec> = KERNELS
        .iter()
        .flat_map(|s| KernelSpec::parse(&format!("{s},normalize={normalize}")).unwrap())
        .collect();
    specs[0].name = Some("a".into());
    specs[5].name = Some("b".into());
    for s in ["product:of=a*b", "sum:of=a+b"] {
        specs.extend(KernelSpec::parse(&format!("{s},normalize={normalize}")).unwrap());
    }
    specs
}

const NORMALIZATIONS: [&str; 5] = ["none", "spherical", "multiplicative", "trace", "center"];

fn set(normalize: &str, memory: u64) -> KernelSet {
    let options = Options {
        memory,
        ..Options::default()
    };
    KernelSet::new(&specs(normalize), &samples().0, &options, &()).unwrap()
}

fn values(gram: &Gram, m: usize) -> Vec<f64> {
    gram.kernel(m)
        .matrix()
        .iter()
        .map(|&v| f64::from(v))
        .collect()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |a, v| a.max(v.abs()))
}

fn assert_close(got: f64, want: f64, tolerance: f64, what: &str) {
    assert!(
        (got - want).abs() <= tolerance,
        "{what}: {got} instead of {want}"
    );
}

/// Whether K + shift·1 has a Cholesky factor.
fn positive(k: &[f64], n: usize, shift: f64) -> bool {
    let mut l = k.to_vec();
    for i in 0..n {
        l[i * n + i] += shift;
    }
    for j in 0..n {
        let d = l[j * n + j] - (0..j).map(|p| l[j * n + p] * l[j * n + p]).sum::<f64>();
        if d <= 0.0 {
            return false;
        }
        l[j * n + j] = d.sqrt();
        for i in j + 1..n {
            let s: f64 = (0..j).map(|p| l[i * n + p] * l[j * n + p]).sum();
            l[i * n + j] = (l[i * n + j] - s) / l[j * n + j];
        }
    }
    true
}

#[test]
fn every_kernel_with_every_normalisation_is_a_kernel() {
    let (_, new) = samples();
    for normalize in NORMALIZATIONS {
        let set = set(normalize, u64::MAX);
        // A given matrix does not hold k(x, x) of new samples; the others have a test of their own.
        let cross = (normalize != "spherical").then(|| set.cross(&new).unwrap());
        for (m, kernel) in set.kernels().iter().enumerate() {
            let what = format!("{} with {normalize}", kernel.name);
            let k = values(set.gram(), m);
            let tolerance = 2e-5 * largest(&k);
            let diagonal = set.gram().kernel(m).diagonal();
            let own = set.gram().self_values(m);
            for i in 0..N {
                assert_close(diagonal[i], k[i * N + i], tolerance, &what);
                assert_close(own[i], k[i * N + i], tolerance, &what);
                for j in 0..i {
                    assert_close(k[i * N + j], k[j * N + i], tolerance, &what);
                }
            }
            assert!(
                positive(&k, N, 1e-4 * largest(&k)),
                "{what} is not positive semidefinite"
            );
            if let Some(cross) = &cross {
                for (row, k) in values(cross, m).iter().zip(&k) {
                    assert_close(*row, *k, tolerance, &format!("{what}, new samples"));
                }
            }
            let trace = (0..N).map(|i| k[i * N + i]).sum::<f64>() / N as f64;
            match normalize {
                "spherical" => (0..N).for_each(|i| assert_close(k[i * N + i], 1.0, 1e-5, &what)),
                "trace" => assert_close(trace, 1.0, 1e-5, &what),
                "multiplicative" => {
                    let all = k.iter().sum::<f64>() / (N * N) as f64;
                    assert_close(trace - all, 1.0, 1e-4, &what);
                }
                "center" => {
                    for row in k.chunks(N) {
                        assert_close(row.iter().sum::<f64>() / N as f64, 0.0, tolerance, &what);
                    }
                }
                _ => {}
            }
        }
    }
}

#[test]
fn spherical_new_samples_match_the_training_rows() {
    let (views, new) = samples();
    let known: Vec<KernelSpec> = specs("spherical")
        .into_iter()
        .filter(|s| !s.to_string().starts_with("precomputed"))
        .collect();
    let set = KernelSet::new(&known, &views, &Options::default(), &()).unwrap();
    let cross = set.cross(&new).unwrap();
    for (m, kernel) in set.kernels().iter().enumerate() {
        for (row, k) in values(&cross, m).iter().zip(values(set.gram(), m)) {
            assert_close(*row, k, 2e-5, &kernel.name);
        }
    }
    let error = self::set("spherical", u64::MAX)
        .cross(&new)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("needs k(x, x) of the new samples"),
        "{error}"
    );
}

/// Coefficients of which a third are zero.
fn coefficients(outputs: usize, n: usize) -> Vec<f64> {
    let mut random = Random::new(11);
    let mut all: Vec<f64> = (0..n * outputs).map(|_| random.normal()).collect();
    for row in all.chunks_mut(outputs).step_by(3) {
        row.fill(0.0);
    }
    all
}

/// The least memory that is accepted.
fn minimum(normalize: &str) -> u64 {
    let options = Options {
        memory: 0,
        ..Options::default()
    };
    match KernelSet::new(&specs(normalize), &samples().0, &options, &()).unwrap_err() {
        multikernel::Error::Memory { needed, .. } => needed,
        other => panic!("{other}"),
    }
}

#[test]
fn the_three_questions_agree_with_plain_sums() {
    for normalize in NORMALIZATIONS {
        // Enough for everything, and just enough to compute rows when asked.
        for memory in [u64::MAX, minimum(normalize)] {
            let set = set(normalize, memory);
            for gram in [
                set.gram().clone(),
                set.gram().subset(&[30, 2, 3, 17, 9, 25, 1]),
            ] {
                three_questions(&gram, normalize);
            }
        }
    }
}

fn three_questions(gram: &Gram, what: &str) {
    let (n, kernels) = (gram.n_rows(), gram.n_kernels());
    let k: Vec<Vec<f64>> = (0..kernels).map(|m| values(gram, m)).collect();
    let beta: Vec<f64> = (0..kernels)
        .map(|m| if m % 4 == 3 { 0.0 } else { 0.1 + m as f64 })
        .collect();
    let combined = gram.combine(&beta);
    let matrix = combined.matrix();
    let want: Vec<f64> = (0..n * n)
        .map(|e| beta.iter().zip(&k).map(|(b, k)| b * k[e]).sum())
        .collect();
    let size = largest(&want);
    for (got, want) in matrix.iter().zip(&want) {
        assert_close(f64::from(*got), *want, 3e-5 * size, what);
    }
    for e in 0..n * n {
        assert_eq!(
            matrix[e],
            matrix[e % n * n + e / n],
            "{what}: not symmetric"
        );
    }
    let mut half = vec![f32::NAN; n * (n + 1) / 2];
    let alone = (0..kernels).map(|m| (gram.kernel(m), &k[m]));
    for (combined, k) in alone.chain([(gram.combine(&beta), &want)]) {
        combined.lower_into(&mut half);
        let lower = (0..n).flat_map(|i| (0..=i).map(move |j| i * n + j));
        for (got, e) in half.iter().zip(lower) {
            assert_close(f64::from(*got), k[e], 3e-5 * largest(k), what);
        }
    }
    let rows = [n - 1, 0, 3];
    let mut some = vec![0.0; 3 * n];
    combined.rows(&rows, &mut some);
    for (got, &i) in some.chunks(n).zip(&rows) {
        for (got, want) in got.iter().zip(&matrix[i * n..]) {
            assert_close(f64::from(*got), f64::from(*want), 1e-5 * size, what);
        }
    }
    for outputs in [1, 3] {
        let values = coefficients(outputs, n);
        let a = Coefficients::new(&values, outputs);
        let row_times = |k: &[f64], i: usize, y: usize| -> f64 {
            (0..n).map(|j| k[i * n + j] * values[j * outputs + y]).sum()
        };
        let mass: f64 = values.iter().map(|v| v.abs()).sum();
        let all: Vec<usize> = (0..kernels).collect();
        let scores = gram.kernel_scores(&rows, &all, a);
        let last = gram.kernel_scores(&rows, &[kernels - 1, 2], a);
        for (r, row) in last.chunks(2 * outputs).enumerate() {
            let of =
                |m: usize| &scores[(r * kernels + m) * outputs..(r * kernels + m + 1) * outputs];
            assert_eq!((&row[..outputs], &row[outputs..]), (of(kernels - 1), of(2)));
        }
        let forms = gram.signed_quadratic_forms(a);
        for (m, k) in k.iter().enumerate() {
            let tolerance = 1e-5 * mass * largest(k);
            for (r, &i) in rows.iter().enumerate() {
                for y in 0..outputs {
                    let got = scores[(r * kernels + m) * outputs + y];
                    assert_close(
                        got,
                        row_times(k, i, y),
                        tolerance,
                        &format!("{what} score {m}"),
                    );
                }
            }
            let want: f64 = (0..n * outputs)
                .map(|e| values[e] * row_times(k, e / outputs, e % outputs))
                .sum();
            assert_close(
                forms[m],
                want,
                tolerance * mass,
                &format!("{what} form {m}"),
            );
        }
        for (e, got) in combined.product(a).iter().enumerate() {
            let want = row_times(&want, e / outputs, e % outputs);
            assert_close(*got, want, 3e-5 * size * mass, what);
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let a = coefficients(2, N);
    let on = |threads: usize| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
    };
    let bits = |v: Vec<f64>| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let answer = |threads: usize, memory: u64| {
        on(threads).install(|| {
            let set = set("center", memory);
            let gram = set.gram();
            let a = Coefficients::new(&a, 2);
            let rows: Vec<usize> = (0..N).collect();
            let combined = gram.combine(&vec![0.3; gram.n_kernels()]);
            let matrix: Vec<f64> = combined.matrix().iter().map(|&v| f64::from(v)).collect();
            [
                bits(matrix),
                bits(gram.signed_quadratic_forms(a)),
                bits(gram.kernel_scores(&rows, &[0, 5, 7], a)),
                bits(combined.product(a)),
            ]
        })
    };
    // Three threads need the most memory for their blocks; all are given the same.
    let least = on(3).install(|| minimum("center"));
    for memory in [u64::MAX, least, least + 40_000] {
        let one = answer(1, memory);
        assert!(
            one == answer(2, memory) && one == answer(3, memory),
            "memory {memory}"
        );
    }
}

#[test]
fn kernels_over_one_statistic_are_one_family() {
    let (views, _) = samples();
    let families = |s: &str| {
        let specs = KernelSpec::parse(s).unwrap();
        let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
        (set.kernels().len(), set.gram().n_families())
    };
    let widths: Vec<String> = (1..=500).map(|w| w.to_string()).collect();
    assert_eq!(
        families(&format!("rbf:view=dense,width={}", widths.join("|"))),
        (500, 1)
    );
    assert_eq!(
        families("poly:view=dense,degree=1|2|3,normalize=trace|none"),
        (6, 1)
    );
    assert_eq!(
        families("poly:view=dense,degree=1|2|3,normalize=spherical"),
        (3, 3)
    );
    assert_eq!(
        families("rbf:view=dense,width=1|2,normalize=spherical|none"),
        (4, 1)
    );
}

#[test]
fn a_family_stays_within_its_stated_error() {
    let (views, _) = samples();
    let widths = [0.01, 0.1, 0.5, 1.0, 2.0, 8.0, 100.0];
    let beta = [0.5, 1.0, 0.25, 2.0, 0.125, 1.0, 3.0];
    let specs = KernelSpec::parse("rbf:view=dense,width=0.01|0.1|0.5|1|2|8|100").unwrap();
    let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
    let combined = set.gram().combine(&beta);
    let matrix = combined.matrix();
    let Some(ViewData::Dense(x)) = views.get("dense").map(|v| &v.data) else {
        panic!("no dense view")
    };
    let total: f64 = beta.iter().sum();
    assert!(
        combined.error_bound() < 1e-8 * total && combined.rows_error_bound() < 2e-6 * total,
        "{:e}",
        combined.error_bound()
    );
    for i in 0..N {
        for j in 0..N {
            let d: f64 = x
                .row(i)
                .iter()
                .zip(x.row(j))
                .map(|(a, b)| f64::from(a - b).powi(2))
                .sum();
            let want: f64 = beta
                .iter()
                .zip(widths)
                .map(|(b, w)| b * (-d / w).exp())
                .sum();
            // The statistic itself is an f32: relative error 1e-6 of d, felt most by t/w·exp(−t/w) ≤ 0.37.
            let tolerance = combined.rows_error_bound() + 1e-6 * total;
            assert_close(f64::from(matrix[i * N + j]), want, tolerance, "value");
        }
    }
}

#[test]
fn too_little_memory_is_said_before_any_work() {
    let options = Options {
        memory: 1000,
        seed: 0,
        ..Options::default()
    };
    let error = KernelSet::new(&specs("none"), &samples().0, &options, &()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("1000 bytes may be used") && text.contains("allow more memory"),
        "{text}"
    );
}

#[test]
fn a_view_without_distances_gives_no_width() {
    let same = Dense::new(4, 2, vec![1.0; 8]).unwrap();
    let views = Views::new(vec![view("same", ViewData::Dense(same))]).unwrap();
    let specs = KernelSpec::parse("rbf").unwrap();
    let error = KernelSet::new(&specs, &views, &Options::default(), &())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the mean distance between samples in view 'same' is 0"),
        "{error}"
    );
}

#[test]
fn blank_rows_become_zero_rows_with_one_warning() {
    let x = Dense::new(3, 2, vec![1.0, 2.0, 0.0, 0.0, 2.0, 1.0]).unwrap();
    let views = Views::new(vec![view("x", ViewData::Dense(x))]).unwrap();
    let specs = KernelSpec::parse("poly:coef0=0,degree=2,normalize=spherical").unwrap();
    let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
    let k = values(set.gram(), 0);
    assert_eq!(&k[3..6], [0.0; 3]);
    assert!((k[0] - 1.0).abs() < 1e-6 && (k[2] - 0.64).abs() < 1e-6);
    assert_eq!(set.warnings().len(), 1);
}
