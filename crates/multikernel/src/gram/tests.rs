//! Tests of the three questions.

use super::*;
use crate::data::{Dense, View, ViewData, Views, digits};
use crate::kernel::KernelSpec;

#[test]
fn forms_are_those_of_the_matrix_for_few_samples_and_for_many_and_for_some_that_come_twice() {
    let n = 40;
    let values = (0..2 * n).map(|k| (k * k % 17) as f32).collect();
    let views = Views::new(vec![View {
        name: "x".into(),
        columns: Vec::new(),
        data: ViewData::Dense(Dense::new(n, 2, values).unwrap()),
    }])
    .unwrap();
    let specs: Vec<KernelSpec> = ["rbf:width=3|9", "linear", "poly:normalize=spherical"]
        .iter()
        .flat_map(|s| KernelSpec::parse(s).unwrap())
        .collect();
    let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
    let few: Vec<usize> = (0..n).step_by(3).rev().collect();
    let many: Vec<usize> = (0..n - 3).rev().collect();
    let twice: Vec<usize> = (0..n - 5).chain([2, 2, 7]).collect();
    let filled: Vec<usize> = (0..n - 3).chain([2, 2, 7]).collect();
    for samples in [few, many, twice, filled] {
        let part = set.gram().subset(&samples);
        let a: Vec<f64> = (0..samples.len()).map(|i| (i % 7) as f64 - 2.5).collect();
        let forms = part.signed_quadratic_forms(Coefficients::single(&a));
        for (m, form) in forms.iter().enumerate() {
            let matrix = set.gram().kernel(m).matrix();
            let mut want = 0.0;
            for (&i, x) in samples.iter().zip(&a) {
                for (&j, y) in samples.iter().zip(&a) {
                    want += x * y * f64::from(matrix[i * n + j]);
                }
            }
            assert!(
                (form - want).abs() < 1e-4 * want.abs().max(1.0),
                "{m}: {form} {want}"
            );
        }
    }
}

#[test]
fn kernels_of_one_column_are_as_defined() {
    let n = 30;
    let x: Vec<f32> = (0..n).map(|k| (k * k % 17) as f32 / 4.0 - 1.0).collect();
    let views = Views::new(vec![View {
        name: "x".into(),
        columns: Vec::new(),
        data: ViewData::Dense(Dense::new(n, 1, x.clone()).unwrap()),
    }])
    .unwrap();
    let specs: Vec<KernelSpec> = [
        "linear",
        "rbf:gamma=0.1|1|4",
        "poly:degree=2,normalize=spherical",
        "rbf:gamma=0.5,normalize=center",
        "linear:normalize=multiplicative",
    ]
    .iter()
    .flat_map(|s| KernelSpec::parse(s).unwrap())
    .collect();
    // No memory for a matrix is asked for: rows cost nothing.
    let options = Options {
        memory: 1 << 20,
        ..Options::default()
    };
    let set = KernelSet::new(&specs, &views, &options, &()).unwrap();
    let gram = set.gram();
    let at = |k: usize, i: usize, j: usize| -> f64 {
        let (x, y) = (f64::from(x[i]), f64::from(x[j]));
        match k {
            0 => x * y,
            1..=3 => (-[0.1, 1.0, 4.0][k - 1] * (x - y) * (x - y)).exp(),
            _ => f64::from(gram.kernel(k).matrix()[i * n + j]),
        }
    };
    let few: Vec<usize> = vec![20, 3, 9, 11];
    let part = gram.subset(&few);
    let copied = gram.copied_subset(&few, u64::MAX);
    let a: Vec<f64> = (0..n)
        .map(|i| f64::from(i % 4 == 0) * (i as f64 - 9.5))
        .collect();
    let forms = gram.signed_quadratic_forms(Coefficients::single(&a));
    let all: Vec<usize> = (0..gram.n_kernels()).collect();
    let rows = [7, 0, 29];
    let exact = gram.kernel_scores(&rows, &all, Coefficients::single(&a));
    let fast = gram.fast_kernel_scores(&rows, &all, Coefficients::single(&a));
    for k in all {
        let form: f64 = (0..n * n)
            .map(|p| a[p / n] * a[p % n] * at(k, p / n, p % n))
            .sum();
        assert!(
            (form - forms[k]).abs() <= 1e-4 * form.abs().max(1.0),
            "{k}: {form}"
        );
        for (r, &i) in rows.iter().enumerate() {
            let score: f64 = (0..n).map(|j| a[j] * at(k, i, j)).sum();
            for found in [&exact, &fast] {
                let found = found[r * gram.n_kernels() + k];
                assert!(
                    (score - found).abs() <= 1e-4 * score.abs().max(1.0),
                    "{k}: {score}"
                );
            }
        }
        let matrix = gram.kernel(k).matrix();
        assert_eq!(part.kernel(k).matrix(), copied.kernel(k).matrix());
        for (p, value) in matrix.iter().enumerate() {
            assert!(
                (f64::from(*value) - at(k, p / n, p % n)).abs() <= 1e-5,
                "{k}"
            );
            assert_eq!(*value, matrix[p % n * n + p / n]);
        }
    }
}

#[test]
fn a_matrix_replaces_what_was_in_the_memory() {
    let data = digits().unwrap();
    let views = data.views.select(&(0..70).collect::<Vec<_>>()).unwrap();
    let specs = [
        "rbf:width=mean*0.5|mean",
        "linear:normalize=center",
        "poly:degree=2,normalize=spherical",
    ];
    let specs: Vec<KernelSpec> = specs
        .iter()
        .flat_map(|s| KernelSpec::parse(s).unwrap())
        .collect();
    let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
    let some: Vec<usize> = (0..70).step_by(3).collect();
    for gram in [
        set.gram().clone(),
        set.gram().subset(&some),
        set.gram().block(&some, &[5, 1]),
    ] {
        let mut memory = vec![f32::NAN; gram.n_rows() * gram.n_cols()];
        let all = vec![1.0; gram.n_kernels()];
        let alone = (0..gram.n_kernels()).map(|m| gram.kernel(m));
        for combined in alone.chain([gram.combine(&all)]) {
            combined.matrix_into(&mut memory);
            assert_eq!(memory, combined.matrix());
        }
    }
}

#[test]
fn all_matrices_together_have_the_bits_of_each_alone() {
    let data = digits().unwrap();
    let views = data.views.select(&(0..70).collect::<Vec<_>>()).unwrap();
    // More of one family than are made together; families, centred and scaled ones, in turns.
    let many: String = (1..=70).map(|k| format!("|{k}")).collect();
    let specs = [
        "linear:normalize=center",
        &format!("rbf:view=upper_left,width=mean{many}"),
        "poly:degree=2,normalize=spherical",
        "poly:degree=2|3,view=upper_left",
        "rbf:width=mean*0.5|mean,normalize=center",
        "linear:view=upper_left",
    ];
    let specs: Vec<KernelSpec> = specs
        .iter()
        .flat_map(|s| KernelSpec::parse(s).unwrap())
        .collect();
    let some: Vec<usize> = (0..70).step_by(3).collect();
    let set = |memory: u64| {
        let options = Options {
            memory,
            ..Options::default()
        };
        KernelSet::new(&specs, &views, &options, &())
    };
    let Err(crate::error::Error::Memory { needed, .. }) = set(0) else {
        panic!("something needs memory");
    };
    // On the fly, and stored.
    for memory in [needed, u64::MAX] {
        let set = set(memory).unwrap();
        let computed = set.gram().families.iter().any(|f| f.computes_rows());
        assert_eq!(computed, memory == needed);
        for gram in [
            set.gram().clone(),
            set.gram().subset(&some),
            set.gram().block(&some, &[5, 1]),
            set.gram().block(&[], &[]),
        ] {
            let each = (0..gram.n_kernels()).flat_map(|m| gram.kernel(m).matrix());
            let each: Vec<f32> = each.collect();
            assert!(gram.matrices(&()).unwrap() == each);
            let mut memory = vec![f32::NAN; each.len()];
            gram.matrices_into(&mut memory, &()).unwrap();
            assert!(memory == each);
        }
    }
}

#[test]
fn samples_without_a_direction_are_told_of() {
    let views = Views::new(vec![View {
        name: "x".into(),
        columns: Vec::new(),
        data: ViewData::Dense(Dense::new(3, 2, vec![0.0, 0.0, 1.0, 2.0, 3.0, 1.0]).unwrap()),
    }])
    .unwrap();
    for text in [
        "linear:normalize=spherical",
        "poly:degree=2,coef0=0,normalize=spherical",
    ] {
        let specs = KernelSpec::parse(text);
        let set = KernelSet::new(&specs.unwrap(), &views, &Options::default(), &()).unwrap();
        assert_eq!(set.warnings().len(), 1, "{text}");
        assert!(
            set.warnings()[0].contains("1 of 3 samples have k(x, x) = 0"),
            "{:?}",
            set.warnings()
        );
        assert_eq!(set.gram().kernel(0).matrix()[..3], [0.0; 3]);
    }
}

#[test]
fn some_kernels_in_any_order_keep_their_values() {
    let values = (0..40).map(|k| (k * k % 17) as f32).collect();
    let views = Views::new(vec![View {
        name: "x".into(),
        columns: Vec::new(),
        data: ViewData::Dense(Dense::new(20, 2, values).unwrap()),
    }])
    .unwrap();
    let specs: Vec<KernelSpec> = [
        "rbf:width=3|9,normalize=center",
        "poly:normalize=spherical",
        "rbf:width=20",
        "linear",
    ]
    .iter()
    .flat_map(|s| KernelSpec::parse(s).unwrap())
    .collect();
    let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
    let gram = set.gram();
    let order = [3, 1, 0, 2];
    let some = gram.select_kernels(&order);
    let a: Vec<f64> = (0..20).map(|i| f64::from(i % 3) - 0.5).collect();
    let (all_forms, forms) = (
        gram.quadratic_forms(Coefficients::single(&a)),
        some.quadratic_forms(Coefficients::single(&a)),
    );
    let scores = gram.kernel_scores(&[4], &order, Coefficients::single(&a));
    for (new, &m) in order.iter().enumerate() {
        assert_eq!(
            some.kernel(new).matrix(),
            gram.kernel(m).matrix(),
            "kernel {m}"
        );
        assert_eq!(some.self_values(new), gram.self_values(m));
        assert!((forms[new] - all_forms[m]).abs() <= 1e-12 * all_forms[m].abs());
        let expected = gram.kernel(m).product(Coefficients::single(&a))[4];
        assert!(
            (scores[new] - expected).abs() < 1e-4 * expected.abs().max(1.0),
            "kernel {m}"
        );
    }
}
