//! Every statistic against its definition, summed slowly in f64.

use super::*;
use crate::data::{Csr, Dense, ViewData};
use crate::error::Result;
use proptest::prelude::*;

const NUMERIC: [Statistic; 6] = [
    Statistic::Dot,
    Statistic::UnitDot,
    Statistic::SquaredDistance,
    Statistic::L1,
    Statistic::Chi2,
    Statistic::Intersection,
];

/// Numbers that repeat themselves (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Rows with zeros, a row of zeros, and duplicates; `density` is the share of values that are not 0.
fn rows(seed: u64, n: usize, width: usize, density: f64, negative: bool) -> Vec<Vec<f32>> {
    let mut random = Random(seed);
    let mut rows: Vec<Vec<f32>> = (0..n)
        .map(|_| {
            (0..width)
                .map(|_| {
                    let value = random.unit() * 4.0 - if negative { 1.5 } else { 0.0 };
                    if random.unit() < density {
                        value as f32
                    } else {
                        0.0
                    }
                })
                .collect()
        })
        .collect();
    if n > 3 {
        rows[1] = rows[n - 1].clone();
        rows[2] = vec![0.0; width];
    }
    rows
}

fn dense(rows: &[Vec<f32>], width: usize) -> ViewData {
    ViewData::Dense(Dense::new(rows.len(), width, rows.concat()).unwrap())
}

fn sparse(rows: &[Vec<f32>], width: usize) -> ViewData {
    let mut starts = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for row in rows {
        for (k, &x) in row.iter().enumerate().filter(|&(_, &x)| x != 0.0) {
            indices.push(k as u32);
            values.push(x);
        }
        starts.push(indices.len());
    }
    ViewData::Sparse(Csr::new(width, starts, indices, values).unwrap())
}

fn slow(statistic: Statistic, x: &[f32], y: &[f32]) -> f64 {
    let pairs = || x.iter().zip(y).map(|(&x, &y)| (f64::from(x), f64::from(y)));
    match statistic {
        Statistic::Dot => pairs().map(|(x, y)| x * y).sum(),
        Statistic::UnitDot => {
            let norm = |v: &[f32]| v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            let norms = norm(x) * norm(y);
            if norms > 0.0 {
                slow(Statistic::Dot, x, y) / norms
            } else {
                0.0
            }
        }
        Statistic::SquaredDistance => pairs().map(|(x, y)| (x - y).powi(2)).sum(),
        Statistic::L1 => pairs().map(|(x, y)| (x - y).abs()).sum(),
        Statistic::Chi2 => pairs()
            .filter(|&(x, y)| x + y > 0.0)
            .map(|(x, y)| (x - y).powi(2) / (x + y))
            .sum(),
        Statistic::Intersection => pairs().map(|(x, y)| x.min(y)).sum(),
        _ => unreachable!("not a statistic of numbers"),
    }
}

fn slow_spectrum(k: usize, x: &[u8], y: &[u8]) -> f64 {
    if k > x.len() || k > y.len() {
        return 0.0;
    }
    x.windows(k)
        .map(|a| y.windows(k).filter(|b| a == *b).count() as f64)
        .sum()
}

fn slow_weighted_degree(degree: usize, shift: usize, x: &[u8], y: &[u8]) -> f64 {
    let mut total = 0.0;
    for s in 0..=shift {
        for d in 1..=degree {
            let beta = 2.0 * (degree - d + 1) as f64 / (degree * (degree + 1)) as f64;
            let mut l = 0;
            while l + s + d <= x.len() {
                let ahead = x[l + s..l + s + d] == y[l..l + d];
                let behind = x[l..l + d] == y[l + s..l + s + d];
                total += beta * (f64::from(ahead as u8) + f64::from(behind as u8))
                    / (2.0 * (s as f64 + 1.0));
                l += 1;
            }
        }
    }
    total
}

fn full(left: &Operand, right: &Operand) -> Vec<f32> {
    let mut out = vec![f32::NAN; left.len() * right.len()];
    let rows: Vec<usize> = (0..left.len()).collect();
    left.block(&rows, right, 0..right.len(), &mut out);
    out
}

/// Values, diagonal, range and parts of `left` against `right`, where `expected(i, j)` and `itself(i)` are slow.
fn check(
    left: &Operand,
    right: &Operand,
    tolerance: f64,
    expected: impl Fn(usize, usize) -> f64,
    itself: impl Fn(usize) -> f64,
) {
    let block = full(left, right);
    let (low, high) = left.range(right);
    let scale = low.abs().max(high.abs());
    for i in 0..left.len() {
        for j in 0..right.len() {
            let (t, slow) = (f64::from(block[i * right.len() + j]), expected(i, j));
            assert!(
                (t - slow).abs() <= tolerance * (slow.abs() + 0.02 * scale),
                "{:?} at {i}, {j}: {t}, not {slow}",
                left.statistic()
            );
            assert!(
                low <= t && t <= high,
                "{:?}: {t} outside {low}..{high}",
                left.statistic()
            );
        }
        let diagonal = f64::from(left.diagonal(i).unwrap());
        assert!(
            (diagonal - itself(i)).abs() <= tolerance * itself(i).abs().max(1e-30),
            "{diagonal} on the diagonal"
        );
    }
    // Any list of rows and any range of columns is the same as the part of the whole.
    let mut random = Random(7);
    for _ in 0..8 {
        let some: Vec<usize> = (0..random.below(7))
            .map(|_| random.below(left.len()))
            .collect();
        let from = random.below(right.len());
        let to = from + random.below(right.len() - from + 1);
        let mut part = vec![f32::NAN; some.len() * (to - from)];
        left.block(&some, right, from..to, &mut part);
        for (r, &i) in some.iter().enumerate() {
            for j in from..to {
                let (t, whole) = (part[r * (to - from) + j - from], block[i * right.len() + j]);
                assert!(
                    (t - whole).abs() <= 1e-5 * (whole.abs() + 0.02 * scale as f32),
                    "{t} in a part, {whole} in the whole"
                );
            }
        }
    }
}

#[test]
fn numbers_in_every_form_agree_with_the_definition() {
    for (case, (n, width, density)) in [
        (9, 1, 0.7),
        (33, 5, 0.6),
        (21, 16, 0.9),
        (18, 37, 1.0),
        (40, 64, 0.05),
        (17, 300, 0.1),
        (5, 1031, 0.5),
    ]
    .into_iter()
    .enumerate()
    {
        for statistic in NUMERIC {
            let negative = !matches!(statistic, Statistic::Chi2 | Statistic::Intersection);
            let train = rows(case as u64, n, width, density, negative);
            let new = rows(case as u64 + 100, n / 2 + 1, width, density, negative);
            for form in [dense, sparse] {
                let left = statistic.prepare(&form(&train, width), None).unwrap();
                check(
                    &left,
                    &left,
                    1e-5,
                    |i, j| slow(statistic, &train[i], &train[j]),
                    |i| slow(statistic, &train[i], &train[i]),
                );
                for new_form in [dense, sparse] {
                    let right = statistic
                        .prepare(&new_form(&new, width), Some(&left))
                        .unwrap();
                    check(
                        &right,
                        &left,
                        1e-5,
                        |i, j| slow(statistic, &new[i], &train[j]),
                        |i| slow(statistic, &new[i], &new[i]),
                    );
                    check(
                        &left,
                        &right,
                        1e-5,
                        |i, j| slow(statistic, &train[i], &new[j]),
                        |i| slow(statistic, &train[i], &train[i]),
                    );
                }
            }
        }
    }
}

#[test]
fn identical_samples_are_at_distance_zero() {
    for statistic in [Statistic::SquaredDistance, Statistic::L1, Statistic::Chi2] {
        for density in [0.05, 1.0] {
            let some = rows(3, 6, 333, density, false);
            let twice = [some.clone(), some].concat();
            for form in [dense, sparse] {
                let operand = statistic.prepare(&form(&twice, 333), None).unwrap();
                let block = full(&operand, &operand);
                for i in 0..12 {
                    assert_eq!(block[i * 12 + i], 0.0);
                    assert_eq!(
                        block[i * 12 + (i + 6) % 12],
                        0.0,
                        "{statistic:?}, density {density}"
                    );
                }
            }
        }
    }
}

#[test]
fn distances_survive_a_large_offset_and_near_neighbours() {
    let mut random = Random(5);
    let base: Vec<f32> = (0..50)
        .map(|_| 10_000.0 + random.below(64) as f32)
        .collect();
    let train: Vec<Vec<f32>> = (0..20)
        .map(|i| base.iter().map(|&x| if i % 2 == 0 { x } else { x + random.below(64) as f32 } + random.below(2) as f32).collect())
        .collect();
    let operand = Statistic::SquaredDistance
        .prepare(&dense(&train, 50), None)
        .unwrap();
    let block = full(&operand, &operand);
    for i in 0..20 {
        for j in 0..20 {
            let exact = slow(Statistic::SquaredDistance, &train[i], &train[j]);
            let t = f64::from(block[i * 20 + j]);
            assert!((t - exact).abs() <= 1e-5 * exact, "{t}, not {exact}");
        }
    }
}

#[test]
fn a_sparse_view_may_be_very_wide() {
    let width = 4_000_000_000;
    let view = |columns: [u32; 4]| {
        ViewData::Sparse(
            Csr::new(
                width,
                vec![0, 2, 2, 4],
                columns.to_vec(),
                vec![1.0, 2.0, 3.0, 4.0],
            )
            .unwrap(),
        )
    };
    let train = Statistic::SquaredDistance
        .prepare(&view([5, 3_999_999_999, 5, 77]), None)
        .unwrap();
    assert!(train.bytes() < 10_000);
    // Column 6 is in no training sample, and still counts for the distance.
    let new = Statistic::SquaredDistance
        .prepare(&view([5, 6, 77, 3_999_999_999]), Some(&train))
        .unwrap();
    assert_eq!(
        full(&new, &train),
        [
            8.0,
            5.0,
            4.0 + 4.0 + 16.0,
            5.0,
            0.0,
            25.0,
            1.0 + 9.0 + 4.0,
            25.0,
            9.0 + 1.0 + 16.0
        ]
    );
}

fn strings(
    seed: u64,
    n: usize,
    length: impl Fn(&mut Random) -> usize,
    letters: &[u8],
) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    let mut strings: Vec<Vec<u8>> = (0..n)
        .map(|_| {
            (0..length(&mut random))
                .map(|_| letters[random.below(letters.len())])
                .collect()
        })
        .collect();
    // A relative of the first string, so that there are long matches.
    let mut relative = strings[0].clone();
    for _ in 0..relative.len() / 20 {
        let at = random.below(relative.len());
        relative[at] = letters[random.below(letters.len())];
    }
    strings[n - 1] = relative;
    strings
}

#[test]
fn spectrum_agrees_with_the_definition() {
    for (k, letters) in [
        (1, &b"ACGT"[..]),
        (3, b"ACGT"),
        (3, b"ACDEFGHIKLMNPQRSTVWY"),
        (5, b"ab"),
        (17, b"ab"),
        (40, b"a\xff"),
        (70, b"aaaaaaab"),
    ] {
        let train = strings(k as u64, 12, |random| random.below(150), letters);
        // New letters and new k-mers.
        let new = strings(
            k as u64 + 50,
            7,
            |random| random.below(150),
            &[letters, b"\0\0N"].concat(),
        );
        let statistic = Statistic::Spectrum { k };
        let left = statistic
            .prepare(&ViewData::Strings(train.clone()), None)
            .unwrap();
        check(
            &left,
            &left,
            1e-6,
            |i, j| slow_spectrum(k, &train[i], &train[j]),
            |i| slow_spectrum(k, &train[i], &train[i]),
        );
        let right = statistic
            .prepare(&ViewData::Strings(new.clone()), Some(&left))
            .unwrap();
        check(
            &right,
            &left,
            1e-6,
            |i, j| slow_spectrum(k, &new[i], &train[j]),
            |i| slow_spectrum(k, &new[i], &new[i]),
        );
        check(
            &left,
            &right,
            1e-6,
            |i, j| slow_spectrum(k, &train[i], &new[j]),
            |i| slow_spectrum(k, &train[i], &train[i]),
        );
    }
}

#[test]
fn weighted_degree_agrees_with_the_definition() {
    for (degree, shift, length, letters) in [
        (1, 0, 64, &b"ACGT"[..]),
        (3, 0, 63, b"ACGT"),
        (10, 0, 200, b"ACGT"),
        (10, 3, 129, b"ab"),
        (4, 70, 150, b"abcde"),
        (300, 2, 130, b"x"),
        (6, 200, 20, b"xy"),
        (5, 1, 0, b"x"),
    ] {
        let train = strings(degree as u64, 9, |_| length, letters);
        let new = strings(
            degree as u64 + 50,
            5,
            |_| length,
            &[letters, b"N-"].concat(),
        );
        let statistic = Statistic::WeightedDegree { degree, shift };
        let value = |x: &[u8], y: &[u8]| slow_weighted_degree(degree, shift, x, y);
        let left = statistic
            .prepare(&ViewData::Strings(train.clone()), None)
            .unwrap();
        check(
            &left,
            &left,
            1e-6,
            |i, j| value(&train[i], &train[j]),
            |i| value(&train[i], &train[i]),
        );
        let right = statistic
            .prepare(&ViewData::Strings(new.clone()), Some(&left))
            .unwrap();
        check(
            &right,
            &left,
            1e-6,
            |i, j| value(&new[i], &train[j]),
            |i| value(&new[i], &new[i]),
        );
        check(
            &left,
            &right,
            1e-6,
            |i, j| value(&train[i], &new[j]),
            |i| value(&train[i], &train[i]),
        );
    }
}

#[test]
fn a_given_matrix_is_read_from_the_rows_of_whoever_is_new() {
    let view = |rows, cols, values: &[f32]| {
        ViewData::Pairwise(Pairwise::new(rows, cols, values.to_vec()).unwrap())
    };
    let train = Statistic::Given
        .prepare(&view(2, 2, &[1.0, 2.0, 2.0, 5.0]), None)
        .unwrap();
    let new = Statistic::Given
        .prepare(&view(1, 2, &[7.0, -8.0]), Some(&train))
        .unwrap();
    assert_eq!(full(&train, &train), [1.0, 2.0, 2.0, 5.0]);
    assert_eq!(full(&new, &train), [7.0, -8.0]);
    assert_eq!(full(&train, &new), [7.0, -8.0]);
    assert_eq!((train.diagonal(1), new.diagonal(0)), (Some(5.0), None));
    assert_eq!(
        (train.range(&train), train.range(&new)),
        ((1.0, 5.0), (-8.0, 7.0))
    );
}

#[test]
fn errors_say_what_was_found_and_what_would_be_right() {
    let message = |result: Result<Operand>| result.unwrap_err().to_string();
    let numbers = |rows: &[Vec<f32>]| dense(rows, rows[0].len());
    let bad = numbers(&[vec![1.0, 2.0], vec![3.0, -0.5]]);
    assert_eq!(
        message(Statistic::Chi2.prepare(&bad, None)),
        "row 2, column 2: the value is -0.5; chi2 needs values ≥ 0"
    );
    assert_eq!(
        message(Statistic::Spectrum { k: 3 }.prepare(&bad, None)),
        "spectrum needs strings but the view is numbers; name another view or kernel"
    );
    let train = Statistic::Dot.prepare(&bad, None).unwrap();
    assert_eq!(
        message(Statistic::Dot.prepare(&numbers(&[vec![1.0; 3]]), Some(&train))),
        "it has 3 columns but the training samples have 2; give the same columns in the same order"
    );
    let huge =
        message(Statistic::SquaredDistance.prepare(&numbers(&[vec![0.0], vec![1e30]]), None));
    assert!(
        huge.contains("values up to 1e30") && huge.ends_with("scale the view"),
        "{huge}"
    );
    let tiny = message(Statistic::Dot.prepare(&numbers(&[vec![0.0], vec![1e-25]]), None));
    assert!(
        tiny.contains("1e-25") && tiny.ends_with("scale the view"),
        "{tiny}"
    );
    assert!(
        Statistic::UnitDot
            .prepare(&numbers(&[vec![1e-25], vec![1e30]]), None)
            .is_ok()
    );
    let ragged = ViewData::Strings(vec![b"abc".to_vec(), b"abcd".to_vec()]);
    let degree = Statistic::WeightedDegree {
        degree: 2,
        shift: 0,
    };
    assert_eq!(
        message(degree.prepare(&ragged, None)),
        "row 2: the string has 4 letters but the string of row 1 has 3; weighted-degree needs strings of equal length"
    );
    let oblong = ViewData::Pairwise(Pairwise::new(1, 2, vec![0.0; 2]).unwrap());
    assert!(message(Statistic::Given.prepare(&oblong, None)).contains("must be square"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_strings_agree_with_the_definition(
        k in 1_usize..40,
        train in prop::collection::vec(prop::collection::vec(prop::sample::select(&b"ab\0"[..]), 0..60), 1..6),
        new in prop::collection::vec(prop::collection::vec(prop::sample::select(&b"ab\0\xff"[..]), 0..60), 1..4),
    ) {
        let statistic = Statistic::Spectrum { k };
        let left = statistic.prepare(&ViewData::Strings(train.clone()), None).unwrap();
        let right = statistic.prepare(&ViewData::Strings(new.clone()), Some(&left)).unwrap();
        let block = full(&right, &left);
        for (i, x) in new.iter().enumerate() {
            for (j, y) in train.iter().enumerate() {
                prop_assert_eq!(f64::from(block[i * train.len() + j]), slow_spectrum(k, x, y));
            }
            prop_assert_eq!(f64::from(right.diagonal(i).unwrap()), slow_spectrum(k, x, x));
        }
    }

    #[test]
    fn any_numbers_stay_in_range(
        width in 1_usize..20,
        values in prop::collection::vec(prop_oneof![Just(0.0_f32), -1e15_f32..1e15, -1.0_f32..1.0], 20..200),
    ) {
        let n = values.len() / width;
        prop_assume!(n > 0);
        let values = values[..n * width].to_vec();
        for statistic in NUMERIC {
            let negative = !matches!(statistic, Statistic::Chi2 | Statistic::Intersection);
            let values = values.iter().map(|v| if negative { *v } else { v.abs() }).collect();
            let view = ViewData::Dense(Dense::new(n, width, values).unwrap());
            let operand = statistic.prepare(&view, None).unwrap();
            let (low, high) = operand.range(&operand);
            for t in full(&operand, &operand) {
                prop_assert!(low <= f64::from(t) && f64::from(t) <= high, "{:?}: {} outside {}..{}", statistic, t, low, high);
            }
        }
    }
}
