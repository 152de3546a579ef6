use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

/// Every loss of one score of the table, those with a parameter with several.
fn losses() -> Vec<Loss> {
    let mut losses = Vec::new();
    for info in LOSSES {
        match info.made {
            scalar::Made::Plain(spec) => losses.extend(spec.scalar()),
            scalar::Made::With { make, .. } => {
                losses.extend(
                    [0.0, 0.3, 0.7, 3.0]
                        .into_iter()
                        .filter_map(|x| make(x).ok()),
                );
            }
        }
    }
    losses
}

fn seeded() -> ProptestConfig {
    ProptestConfig {
        cases: 300,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![8 => -4.0..4.0f64, 1 => Just(1.0), 1 => Just(-1.0), 1 => Just(0.0), 1 => -500.0..500.0f64]
}

fn target(loss: Loss, y: f64) -> f64 {
    if loss.needs_signs() {
        if y < 0.0 { -1.0 } else { 1.0 }
    } else {
        y
    }
}

fn total(loss: Loss, scores: &[f64], targets: &[f64], costs: &[f64], bias: f64) -> f64 {
    (0..scores.len())
        .map(|i| costs[i] * loss.value(scores[i] + bias, targets[i]))
        .sum()
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn convex_with_subgradients(t in score(), other in score(), y in score()) {
        for loss in losses() {
            let y = target(loss, y);
            let (left, right) = loss.slopes(t, y);
            prop_assert!(left <= right && loss.value(t, y) >= 0.0, "{}", loss);
            let rounding = 1e-12 * (1.0 + loss.value(t, y) + loss.value(other, y));
            for slope in [left, right, loss.subgradient(t, y)] {
                prop_assert!(left <= slope && slope <= right);
                let tangent = loss.value(t, y) + slope * (other - t);
                prop_assert!(loss.value(other, y) >= tangent - rounding, "{} at {} seen from {}", loss, t, other);
                if let Some(bound) = loss.lipschitz() {
                    prop_assert!(slope.abs() <= bound);
                }
            }
        }
    }

    #[test]
    fn subgradients_are_derivatives_away_from_kinks(t in -4.0..4.0f64, y in -3.0..3.0f64) {
        let step = 1e-6;
        for loss in losses() {
            let y = target(loss, y);
            let numerical = (loss.value(t + step, y) - loss.value(t - step, y)) / (2.0 * step);
            let (left, right) = (loss.slopes(t - step, y).0, loss.slopes(t + step, y).1);
            prop_assert!(left - 1e-8 <= numerical && numerical <= right + 1e-8, "{}", loss);
            if right - left < 1e-3 {
                prop_assert!((loss.subgradient(t, y) - numerical).abs() < 1e-5, "{}", loss);
            }
        }
    }

    #[test]
    fn fenchel_and_young(t in score(), u in -1.5..1.5f64, y in score()) {
        for loss in losses() {
            let y = target(loss, y);
            let rounding = 1e-12 * (1.0 + loss.value(t, y) + (t * u).abs());
            prop_assert!(loss.value(t, y) + loss.conjugate(u, y) >= t * u - rounding, "{}", loss);
            for slope in [loss.slopes(t, y).0, loss.slopes(t, y).1, loss.subgradient(t, y)] {
                let gap = loss.value(t, y) + loss.conjugate(slope, y) - t * slope;
                let rounding = 1e-12 * (1.0 + loss.value(t, y) + (t * slope).abs());
                prop_assert!(gap.abs() <= rounding, "{} t {} y {} slope {} gap {}", loss, t, y, slope, gap);
            }
        }
    }

    #[test]
    fn the_dual_term_is_the_scaled_conjugate(share in 0.0..1.0f64, c in 1e-3..1e3f64, y in score()) {
        for loss in losses() {
            let y = target(loss, y);
            let (low, high) = loss.feasible(c, y);
            let (low, high) = (low.max(-10.0 * c), high.min(10.0 * c));
            let a = low + share * (high - low);
            let term = loss.dual_term(a, c, y);
            let conjugate = -c * loss.conjugate(-a / c, y);
            prop_assert!((term - conjugate).abs() <= 1e-11 * (c + term.abs() + a.abs() * y.abs()), "{}", loss);
            prop_assert_eq!(loss.dual_term(high + 1e-9 * c, c, y).is_finite(), loss.feasible(c, y).1.is_infinite() || high < loss.feasible(c, y).1);
            prop_assert!(!loss.dual_term(f64::NAN, c, y).is_finite());
            // derivatives of the dual term
            if (0.05..0.95).contains(&share) && a.abs() > 1e-3 * c {
                let step = 1e-5 * c;
                let change = (loss.dual_term(a + step, c, y) - loss.dual_term(a - step, c, y)) / (2.0 * step);
                let (left, right) = loss.dual_slopes(a, c, y);
                prop_assert_eq!(left, right);
                prop_assert!((change - left).abs() < 1e-6 * (1.0 + y.abs()), "{} {} {}", loss, change, left);
                let bend = (loss.dual_slopes(a + step, c, y).0 - loss.dual_slopes(a - step, c, y).0) / (2.0 * step);
                let curvature = loss.dual_curvature(a, c, y);
                prop_assert!((bend + curvature).abs() < 1e-5 * (1.0 + y.abs()) / c, "{} {} {}", loss, bend, curvature);
            }
        }
    }

    #[test]
    fn the_table_of_dual_terms(alpha in 0.0..1.0f64, c in 0.1..10.0f64, positive in any::<bool>(), y in -2.0..2.0f64) {
        let sign = if positive { 1.0 } else { -1.0 };
        let alpha = alpha * c;
        let u = alpha / c;
        let signed = sign * alpha;
        let expected = [
            (Loss::Hinge, sign, signed, alpha),
            (Loss::SquaredHinge, sign, signed, alpha - alpha * alpha / (4.0 * c)),
            (Loss::Logistic, sign, signed, -c * (u * u.ln() + (1.0 - u) * (1.0 - u).ln())),
            (Loss::Huber(1.0), y, signed, y * signed - alpha * alpha / (2.0 * c)),
            (Loss::Epsilon(0.3), y, signed, y * signed - 0.3 * alpha),
            (Loss::Squared, y, signed, y * signed - alpha * alpha / (2.0 * c)),
            (Loss::OneClass, y, alpha, alpha),
        ];
        for (loss, y, a, term) in expected {
            prop_assert!((loss.dual_term(a, c, y) - term).abs() < 1e-12 * (1.0 + c), "{}", loss);
        }
    }

    #[test]
    fn the_best_bias_is_best(
        samples in prop::collection::vec((score(), -3.0..3.0f64, prop_oneof![4 => Just(1.0), 3 => 0.01..5.0f64, 1 => Just(0.0)]), 1..30),
        elsewhere in -5.0..5.0f64,
        offset in prop_oneof![Just(0.0), Just(1e6)],
    ) {
        let costs: Vec<f64> = samples.iter().map(|sample| sample.2).collect();
        for loss in losses() {
            let scores: Vec<f64> = samples.iter().map(|sample| sample.0 + offset).collect();
            let targets: Vec<f64> = samples.iter().map(|sample| target(loss, sample.1)).collect();
            let bias = loss.best_bias(&scores, &targets, &costs);
            prop_assert!(bias.is_finite());
            let here = total(loss, &scores, &targets, &costs, bias);
            let carried: f64 = scores.iter().zip(&costs).map(|(score, cost)| cost * (1.0 + score.abs()) * (1.0 + here)).sum();
            for step in [1e-9, 1e-6, 1e-3, 0.1, 1.0, elsewhere, bias] {
                for other in [bias - step, bias + step] {
                    let there = total(loss, &scores, &targets, &costs, other);
                    // every score carries its own rounding
                    let rounding = 1e-13 * there + 1e-15 * carried;
                    prop_assert!(here <= there + rounding, "{} bias {} {} other {} {}", loss, bias, here, other, there);
                }
            }
        }
    }

    #[test]
    fn multiclass_fenchel_and_young(
        scores in prop::collection::vec(prop_oneof![4 => -3.0..3.0f64, 1 => Just(0.0)], 2..6),
        other in prop::collection::vec(-3.0..3.0f64, 5),
        weights in prop::collection::vec(0.0..1.0f64, 5),
        class in 0usize..6,
    ) {
        let n = scores.len();
        let class = class % n;
        let other = &other[..n];
        let value = multiclass::value(&scores, class);
        let by_definition = (0..n).map(|k| f64::from(u8::from(k != class)) + scores[k] - scores[class]).fold(f64::MIN, f64::max);
        prop_assert!((value - by_definition).abs() < 1e-13);
        // at the subgradient: equality, and the tangent lies below
        let mut u = vec![0.0; n];
        if let Some(wrong) = multiclass::subgradient(&scores, class) {
            u[wrong] += 1.0;
            u[class] -= 1.0;
        }
        let product = |u: &[f64], f: &[f64]| u.iter().zip(f).map(|(u, f)| u * f).sum::<f64>();
        prop_assert!((value + multiclass::conjugate(&u, class) - product(&u, &scores)).abs() < 1e-12);
        prop_assert!(multiclass::value(other, class) + multiclass::conjugate(&u, class) >= product(&u, other) - 1e-12);
        prop_assert!(u.iter().map(|u| u * u).sum::<f64>().sqrt() <= multiclass::LIPSCHITZ);
        // anywhere in the domain: the inequality, and the dual term of A = −C u
        let sum: f64 = weights[..n].iter().sum::<f64>() + 0.1;
        let mut u: Vec<f64> = weights[..n].iter().map(|w| w / sum).collect();
        u[class] = 0.0;
        u[class] = -u.iter().sum::<f64>();
        let conjugate = multiclass::conjugate(&u, class);
        prop_assert!(conjugate.is_finite() && value + conjugate >= product(&u, &scores) - 1e-12);
        let row: Vec<f64> = u.iter().map(|u| -2.5 * u).collect();
        prop_assert!(multiclass::feasible(&row, class, 2.5));
        prop_assert!((multiclass::dual_term(&row, class, 2.5) + 2.5 * conjugate).abs() < 1e-12);
    }
}

#[test]
fn multiclass_by_hand() {
    assert_eq!(multiclass::value(&[1.0, 2.0, 2.0], 0), 2.0);
    assert_eq!(multiclass::violator(&[1.0, 2.0, 2.0], 0), Some(1));
    assert_eq!(multiclass::violator(&[9.0, 2.0, 3.0], 0), Some(2));
    assert_eq!(multiclass::subgradient(&[9.0, 2.0, 3.0], 0), None);
    assert_eq!(multiclass::violator(&[9.0], 0), None);
    assert_eq!(multiclass::value(&[9.0], 0), 0.0);
    for (row, feasible) in [
        ([1.0, -0.5, -0.5], true),
        ([0.0, 0.0, 0.0], true),
        ([1.1, -0.6, -0.5], false),
        ([1.0, -0.5, -0.4], false),
        ([0.5, 0.5, -1.0], false),
    ] {
        assert_eq!(multiclass::feasible(&row, 0, 1.0), feasible, "{row:?}");
    }
}

#[test]
fn extreme_scores_give_finite_losses_and_ends_of_the_interval_finite_duals() {
    for loss in losses() {
        for t in [-1e100, -1e3, 1e3, 1e100] {
            assert!(
                loss.value(t, 1.0).is_finite() && loss.subgradient(t, 1.0).is_finite(),
                "{loss}"
            );
        }
        assert!(loss.value(f64::NAN, 1.0).is_nan(), "{loss}");
        for y in [-1.0, 1.0] {
            let (low, high) = loss.feasible(0.3, y);
            for end in [low, high] {
                assert!(
                    end.is_infinite() || loss.dual_term(end, 0.3, y).is_finite(),
                    "{loss}"
                );
            }
            assert_eq!(loss.feasible(0.0, y), (0.0, 0.0));
            assert_eq!(loss.dual_term(0.0, 0.0, y), 0.0);
        }
    }
}

#[test]
fn a_bias_for_labels_that_are_all_alike_or_do_not_count() {
    let scores = [0.5, -2.0, 1.0];
    for loss in losses() {
        for y in [1.0, -1.0] {
            let bias = loss.best_bias(&scores, &[y; 3], &[1.0, 2.0, 0.5]);
            if loss.needs_signs() || loss == Loss::OneClass {
                assert_eq!(
                    total(loss, &scores, &[y; 3], &[1.0, 2.0, 0.5], bias),
                    0.0,
                    "{loss}"
                );
            }
        }
        assert_eq!(loss.best_bias(&scores, &[1.0; 3], &[0.0; 3]), 0.0);
        assert_eq!(loss.best_bias(&[], &[], &[]), 0.0);
    }
}

#[test]
fn the_middle_of_equally_good_biases() {
    // margins 1 for b in [−1, 1]
    assert_eq!(
        Loss::Hinge.best_bias(&[2.0, -2.0], &[1.0, -1.0], &[0.1, 0.1]),
        0.0
    );
    assert_eq!(
        Loss::SquaredHinge.best_bias(&[2.0, -2.0], &[1.0, -1.0], &[0.3, 0.1]),
        0.0
    );
    assert_eq!(
        Loss::Epsilon(0.5).best_bias(&[0.0, 0.0], &[4.0, 4.0], &[0.3, 0.1]),
        4.0
    );
    // the median of an odd number, whatever its distance
    assert_eq!(
        Loss::Epsilon(0.0).best_bias(&[0.0; 3], &[4.0, 1e9, -7.0], &[1.0; 3]),
        4.0
    );
}

#[test]
fn the_logistic_bias_is_exact_far_out() {
    // two samples: the optimum is where both pull alike, C₊ σ(−f₊−b) = C₋ σ(f₋+b)
    let scores = [400.0, -300.0];
    let bias = Loss::Logistic.best_bias(&scores, &[1.0, -1.0], &[1.0, 1.0]);
    assert!((bias + 50.0).abs() < 1e-9, "{bias}");
}

#[test]
fn what_is_written_comes_back() {
    for text in [
        "hinge",
        "squared-hinge",
        "logistic",
        "multiclass-hinge",
        "epsilon:0.1",
        "squared",
        "huber:1.5",
        "one-class",
    ] {
        let spec: LossSpec = text.parse().unwrap();
        assert_eq!(spec.to_string(), text);
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<LossSpec>(&json).unwrap(), spec);
        assert_eq!(serde_json::from_str::<Loss>(&json).ok(), spec.scalar());
    }
    assert_eq!(
        "epsilon".parse::<LossSpec>().unwrap().to_string(),
        "epsilon:0.1"
    );
    assert_eq!("huber".parse::<LossSpec>().unwrap().to_string(), "huber:1");
    for text in [
        "",
        "Hinge",
        "hinge:1",
        "epsilon:",
        "epsilon:-1",
        "epsilon:nan",
        "huber:0",
        "huber:inf",
        "one_class",
    ] {
        let error = text.parse::<LossSpec>().unwrap_err().to_string();
        assert!(error.contains("; give"), "{text}: {error}");
    }
}
