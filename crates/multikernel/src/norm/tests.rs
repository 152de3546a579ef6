use std::time::Instant;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

const SPARSE_EXPONENTS: [f64; 6] = [1.0, 1.0001, 1.05, 1.25, 4.0 / 3.0, 1.6];

fn seeded(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn block_norms() -> Vec<Norm> {
    let mut norms: Vec<Norm> = SPARSE_EXPONENTS
        .iter()
        .map(|&r| Norm::block(r).unwrap())
        .collect();
    norms.extend([2.0, 2.5, 3.0, 8.0, f64::INFINITY].map(|r| Norm::block(r).unwrap()));
    norms.extend([1.0, 1.1, 4.0 / 3.0, 1.5, 2.0, 4.0, f64::INFINITY].map(|p| Norm::lp(p).unwrap()));
    norms.push(Norm::block_auto(6));
    norms
}

/// Every kind of norm, for six kernels.
fn all_norms() -> Vec<Norm> {
    let mut norms = block_norms();
    norms.extend([0.0, 1e-9, 0.1, 0.5, 0.99, 1.0].map(|mu| Norm::elastic(mu).unwrap()));
    norms.push(Norm::mixed(&[0, 0, 0, 0, 0, 0]).unwrap());
    norms.push(Norm::mixed(&[7, 2, 2, 7, 2, 5]).unwrap());
    let mut diagonal = vec![0.0; 36];
    let mut positive = vec![0.3; 36];
    let mut negative = vec![0.0; 36];
    for m in 0..6 {
        diagonal[m * 7] = 1.0 + m as f64;
        positive[m * 7] = 1.0;
        negative[m * 7] = 1.0;
        if m > 0 {
            negative[m * 7 - 1] = -0.45;
            negative[m * 7 - 6] = -0.45;
        }
    }
    for matrix in [diagonal, positive, negative] {
        norms.push(Norm::non_isotropic("E.npy", &matrix, 6).unwrap());
    }
    norms
}

fn groups() -> impl Strategy<Value = Vec<f64>> {
    let size = prop_oneof![
        6 => 0.0..10.0f64,
        1 => Just(0.0),
        1 => Just(1.0),
        1 => (-8.0..8.0f64).prop_map(|x| 10f64.powf(x)),
    ];
    prop::collection::vec(size, 6)
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn scaled(x: &[f64], by: f64) -> Vec<f64> {
    x.iter().map(|x| x * by).collect()
}

fn dual_weights(norm: &Norm, s: &[f64]) -> Vec<f64> {
    let mut beta = vec![f64::NAN; s.len()];
    norm.dual_map(s, &mut beta);
    beta
}

#[track_caller]
fn assert_close(x: f64, y: f64, tolerance: f64, what: &str) {
    assert!(
        x == y || (x - y).abs() <= tolerance * x.abs().max(y.abs()),
        "{what}: {x} and {y}"
    );
}

proptest! {
    #![proptest_config(seeded(200))]

    #[test]
    fn norms_are_norms_and_duals_are_dual(g in groups(), s in groups(), factor in 1e-3..1e3f64) {
        for norm in all_norms() {
            let name = format!("{norm} {g:?} {s:?}");
            let slack = 1.0 + 1e-12;
            prop_assert!(dot(&g, &s) <= norm.value(&g) * norm.dual(&s) * slack, "{}", name);
            assert_close(norm.value(&scaled(&g, factor)), factor * norm.value(&g), 1e-9, &name);
            assert_close(norm.dual(&scaled(&s, factor)), factor * norm.dual(&s), 1e-9, &name);
            let sum: Vec<f64> = g.iter().zip(&s).map(|(g, s)| g + s).collect();
            prop_assert!(norm.value(&sum) <= (norm.value(&g) + norm.value(&s)) * slack, "{}", name);
            prop_assert!(norm.dual(&sum) <= (norm.dual(&g) + norm.dual(&s)) * slack, "{}", name);
        }
    }

    #[test]
    fn equality_holds_at_the_mapped_point_and_the_maps_agree_there(s in groups()) {
        for norm in all_norms() {
            let name = format!("{norm} {s:?}");
            let beta = dual_weights(&norm, &s);
            let g: Vec<f64> = beta.iter().zip(&s).map(|(beta, s)| beta * s).collect();
            let dual = norm.dual(&s);
            assert_close(norm.value(&g), dual, 1e-9, &name);
            assert_close(dot(&g, &s), dual * dual, 1e-9, &name);
            let mut primal = vec![f64::NAN; 6];
            if s.iter().any(|s| *s > 0.0) && norm.primal_map(&g, &mut primal) {
                for m in (0..6).filter(|&m| g[m] > 1e-200) {
                    assert_close(primal[m], beta[m], 1e-6, &format!("{name} kernel {m}"));
                }
            }
        }
    }

    #[test]
    fn the_dual_map_is_the_gradient(s in groups(), direction in groups()) {
        let half_square = |norm: &Norm, s: &[f64]| 0.5 * norm.dual(s).powi(2);
        for norm in all_norms() {
            // a convex function lies above its tangent: holds at kinks too, and for any length of step
            let g: Vec<f64> = dual_weights(&norm, &s).iter().zip(&s).map(|(beta, s)| beta * s).collect();
            let here = half_square(&norm, &s);
            for step in [1e-6, 1e-2, 1.0] {
                let there: Vec<f64> = s.iter().zip(&direction).map(|(s, d)| s + step * d).collect();
                let back: Vec<f64> = s.iter().zip(&direction).map(|(s, d)| (s - step * d).max(0.0)).collect();
                for other in [there, back] {
                    let moved: Vec<f64> = other.iter().zip(&s).map(|(x, s)| x - s).collect();
                    let rise = half_square(&norm, &other) - here;
                    let slack = 1e-12 * (here + half_square(&norm, &other));
                    prop_assert!(rise >= dot(&g, &moved) - slack, "{} {:?} {:?}", norm, s, other);
                }
            }
        }
    }

    #[test]
    fn the_primal_map_minimises_and_its_minimum_is_the_norm(g in groups(), nudge in prop::collection::vec(-0.3..0.3f64, 6)) {
        for norm in all_norms() {
            let mut beta = vec![0.0; 6];
            let r = norm.as_block().map_or(1.0, BlockNorm::r);
            if r > 2.0 || g.iter().all(|g| *g == 0.0) || !norm.primal_map(&g, &mut beta) {
                continue;
            }
            let cost = |beta: &[f64]| -> f64 {
                (0..6).filter(|&m| g[m] > 0.0).map(|m| g[m] * g[m] / beta[m]).sum()
            };
            assert_close(cost(&beta).sqrt(), norm.value(&g), 1e-9, &format!("{norm} {g:?}"));
            // other weights of the same set, made by the map from other groups, cost at least as much
            let other: Vec<f64> = g.iter().zip(&nudge).map(|(g, x)| g * x.exp()).collect();
            let mut worse = vec![0.0; 6];
            prop_assert!(norm.primal_map(&other, &mut worse));
            prop_assert!(cost(&worse) >= cost(&beta) * (1.0 - 1e-10), "{} {:?}", norm, g);
        }
    }

    #[test]
    fn derivatives_along_a_line(
        q in prop::collection::vec(0.01..10.0f64, 1..11),
        slope in prop::collection::vec(-0.9..0.9f64, 10),
        curvature in prop::collection::vec(0.01..10.0f64, 10),
        h in -0.5..0.5f64,
    ) {
        let n = q.len();
        let r = &curvature[..n];
        let g: Vec<f64> = (0..n).map(|m| slope[m] * (q[m] * r[m]).sqrt()).collect();
        for norm in block_norms() {
            let block = norm.as_block().unwrap();
            let here = block.along(&q, &g, r, h);
            let s: Vec<f64> = (0..n).map(|m| (q[m] + 2.0 * h * g[m] + h * h * r[m]).sqrt()).collect();
            let name = format!("{norm} {q:?} {g:?} {r:?} {h}");
            assert_close(here.value, 0.5 * norm.dual(&s).powi(2), 1e-12, &name);
            prop_assert!(here.second >= 0.0);
            if block.r() == 1.0 || block.r_dual() > 1000.0 {
                continue; // a kink may lie inside the difference
            }
            let step = 1e-5;
            let (low, high) = (block.along(&q, &g, r, h - step), block.along(&q, &g, r, h + step));
            let scale = here.value + here.second + here.first.abs();
            let first = (high.value - low.value) / (2.0 * step);
            prop_assert!((first - here.first).abs() < 1e-6 * scale, "{} {} {:?}", name, first, here);
            let second = (high.first - low.first) / (2.0 * step);
            prop_assert!((second - here.second).abs() < 1e-4 * scale, "{} {} {:?}", name, second, here);
            let beta = dual_weights(&norm, &s);
            let v: Vec<f64> = (0..n).map(|m| g[m] + h * r[m]).collect();
            prop_assert!((dot(&beta, &v) - here.first).abs() <= 1e-11 * scale, "{}", name);
        }
    }

    #[test]
    fn the_block_norm_is_continuous_in_r(s in groups()) {
        let near = |r: f64, other: f64, tolerance: f64| {
            let (a, b) = (Norm::block(r).unwrap(), Norm::block(other).unwrap());
            assert_close(a.value(&s), b.value(&s), tolerance, &format!("value {r} {other} {s:?}"));
            assert_close(a.dual(&s), b.dual(&s), tolerance, &format!("dual {r} {other} {s:?}"));
        };
        near(1.0, 1.0 + 1e-9, 1e-7);
        near(2.0, 2.0 + 1e-9, 1e-7);
        near(2.0, 2.0 - 1e-9, 1e-7);
        near(f64::INFINITY, 1e9, 1e-7);
        let mut beta = dual_weights(&Norm::block(2.0 - 1e-9).unwrap(), &s);
        beta.iter_mut().zip(&s).filter(|(_, s)| **s == 0.0).for_each(|(beta, _)| *beta = 1.0);
        for beta in beta {
            assert_close(beta, 1.0, 1e-6, "weights near r = 2");
        }
    }
}

#[test]
fn exponents_of_the_papers() {
    let block = |norm: &Norm| *norm.as_block().unwrap();
    let written = |text: &str| block(&Norm::new(text.parse().unwrap(), 100, &[], &[]).unwrap());
    assert_eq!(
        (written("lp:4/3").r(), written("lp:4/3").r_dual()),
        (8.0 / 7.0, 8.0)
    );
    assert_eq!(written("lp:1").r(), 1.0);
    assert_eq!(written("lp:1").r_dual(), f64::INFINITY);
    assert_eq!(
        (written("lp:inf").r(), written("lp:inf").r_dual()),
        (2.0, 2.0)
    );
    assert_eq!(written("lp:1.1").r_dual(), 22.0);
    assert_eq!(block(&Norm::lp(4.0 / 3.0).unwrap()).r_dual(), 8.0);
    assert_eq!(written("block:1.2").r_dual(), 6.0);
    assert_eq!(written("block:inf").r_dual(), 1.0);
    assert_close(
        written("block:1.0001").r_dual(),
        10001.0,
        1e-11,
        "r* of 1.0001",
    );
    assert_close(written("lp:1e308").r(), 2.0, 1e-15, "r of a huge p");
    assert_close(
        written("block:auto").r_dual(),
        2.0 * 100f64.ln(),
        1e-15,
        "automatic r*",
    );
    assert_eq!(block(&Norm::block_auto(2)).r(), 2.0);
    for p in [1.0, 1.1, 4.0 / 3.0, 2.0, 5.0, f64::INFINITY] {
        assert_close(block(&Norm::lp(p).unwrap()).p().unwrap(), p, 1e-14, "p");
    }
    assert_eq!(block(&Norm::block(3.0).unwrap()).p(), None);
}

#[test]
fn extreme_sizes_neither_overflow_nor_vanish() {
    for scale in [1e-300, 1e-150, 1.0, 1e150, 1e300] {
        let s = scaled(&[1.0, 0.5, 0.0, 0.25, 1e-3, 1.0], scale);
        for norm in all_norms() {
            let unit = scaled(&s, 1.0 / scale);
            let name = format!("{norm} at {scale}");
            assert_close(norm.value(&s), norm.value(&unit) * scale, 1e-12, &name);
            assert_close(norm.dual(&s), norm.dual(&unit) * scale, 1e-12, &name);
            for (a, b) in dual_weights(&norm, &s)
                .iter()
                .zip(dual_weights(&norm, &unit))
            {
                assert_close(*a, b, 1e-12, &name);
            }
        }
    }
    let mixed_sizes = [1e300, 1e-300, 5e-324, 0.0, 1.0, 1e-150];
    for norm in all_norms() {
        assert!(norm.value(&mixed_sizes).is_finite() && norm.dual(&mixed_sizes).is_finite());
        let mut beta = dual_weights(&norm, &mixed_sizes);
        assert!(
            beta.iter().all(|beta| beta.is_finite() && *beta >= 0.0),
            "{norm} {beta:?}"
        );
        if norm.as_block().is_none_or(|block| block.r() <= 2.0)
            && norm.primal_map(&mixed_sizes, &mut beta)
        {
            assert!(
                beta.iter().all(|beta| beta.is_finite() && *beta >= 0.0),
                "{norm} {beta:?}"
            );
        }
        assert!(
            norm.value(&[f64::NAN; 6]).is_nan()
                && norm.dual(&[1.0, 1.0, 1.0, 1.0, 1.0, f64::NAN]).is_nan()
        );
    }
    for norm in block_norms() {
        for scale in [1e-290, 1e290] {
            let q = scaled(&[1.0, 0.5, 0.0, 0.25, 1e-3], scale);
            let g = scaled(&[0.1, -0.2, 0.0, 0.25, 1e-3], scale);
            let r = scaled(&[1.0, 1.0, 1.0, 0.5, 0.1], scale);
            let line = norm.as_block().unwrap().along(&q, &g, &r, 0.5);
            assert!(
                line.value > 0.0 && line.value.is_finite() && line.first.is_finite(),
                "{norm} {line:?}"
            );
            assert!(line.second.is_finite(), "{norm} {line:?}");
        }
    }
}

#[test]
fn a_line_from_nothing_is_a_parabola() {
    let r = [1.0, 3.0, 0.5, 0.0, 2.0];
    let zero = [0.0; 5];
    for norm in block_norms() {
        let block = norm.as_block().unwrap();
        let at_zero = block.along(&zero, &zero, &r, 0.0);
        let further = block.along(&zero, &zero, &r, 0.3);
        assert_eq!((at_zero.value, at_zero.first), (0.0, 0.0));
        assert_close(
            further.value,
            0.5 * 0.09 * at_zero.second,
            1e-13,
            &norm.to_string(),
        );
        assert_close(
            further.first,
            0.3 * at_zero.second,
            1e-13,
            &norm.to_string(),
        );
        assert_close(further.second, at_zero.second, 1e-12, &norm.to_string());
    }
}

#[test]
fn at_r_1_the_line_gives_the_right_derivative_of_the_largest() {
    let line = Norm::block(1.0).unwrap().as_block().unwrap().along(
        &[2.0, 2.0, 1.0],
        &[-1.0, 0.5, 9.0],
        &[1.0, 2.0, 3.0],
        0.0,
    );
    assert_eq!(
        line,
        AlongLine {
            value: 1.0,
            first: 0.5,
            second: 2.0
        }
    );
}

#[test]
fn a_kernel_of_a_large_r_that_is_switched_on_has_infinite_curvature() {
    for r in [3.0, f64::INFINITY] {
        let line = Norm::block(r).unwrap().as_block().unwrap().along(
            &[1.0, 0.0],
            &[0.5, 0.0],
            &[1.0, 1.0],
            0.0,
        );
        assert!(line.second == f64::INFINITY && line.first.is_finite());
    }
}

#[test]
fn weights_start_as_the_dual_map_of_equals_and_stay_while_nothing_is_learned() {
    for norm in all_norms() {
        let start = norm.initial_weights(6);
        for (start, mapped) in start.iter().zip(dual_weights(&norm, &[2.5; 6])) {
            assert_close(*start, mapped, 1e-12, &norm.to_string());
        }
        let mut beta = start.clone();
        norm.weights(&[0.0; 6], &mut beta);
        assert_eq!(beta, start);
    }
    assert_eq!(Norm::block(1.0).unwrap().initial_weights(4), vec![0.25; 4]);
    assert_eq!(
        Norm::block(f64::INFINITY).unwrap().initial_weights(4),
        vec![4.0; 4]
    );
}

#[test]
fn the_weight_rule_has_the_dual_map_as_fixed_point() {
    let s = [1.0, 2.0, 0.5, 1.5, 0.25, 2.0];
    for norm in all_norms() {
        let fixed = dual_weights(&norm, &s);
        let mut beta = fixed.clone();
        norm.weights(&s, &mut beta);
        for (next, fixed) in beta.iter().zip(&fixed) {
            assert_close(*next, *fixed, 1e-7, &norm.to_string());
        }
    }
}

#[test]
fn special_cases_of_one_norm_are_another() {
    let g = [1.0, 2.0, 0.5, 1.5, 0.0, 2.0];
    let same = |a: &Norm, b: &Norm| {
        assert_close(a.value(&g), b.value(&g), 1e-12, &format!("{a} {b}"));
        assert_close(a.dual(&g), b.dual(&g), 1e-12, &format!("{a} {b}"));
    };
    let block = |r| Norm::block(r).unwrap();
    same(&Norm::mixed(&[0; 6]).unwrap(), &block(1.0));
    same(
        &Norm::mixed(&[0, 1, 2, 3, 4, 5]).unwrap(),
        &block(f64::INFINITY),
    );
    same(&Norm::elastic(0.0).unwrap(), &block(1.0));
    same(&Norm::elastic(1.0).unwrap(), &block(2.0));
    // θᵀθ ≤ 1 is Kloft's p = 2
    let identity: Vec<f64> = (0..36).map(|at| f64::from(u8::from(at % 7 == 0))).collect();
    same(
        &Norm::non_isotropic("I.npy", &identity, 6).unwrap(),
        &Norm::lp(2.0).unwrap(),
    );
}

#[test]
fn mixed_by_hand() {
    let norm = Norm::mixed(&[4, 4, 9]).unwrap();
    assert_eq!(norm.value(&[1.0, 2.0, 2.5]), 3.0);
    assert_eq!(norm.dual(&[1.0, 2.0, 2.5]), 4.5);
    let beta = dual_weights(&norm, &[1.0, 2.0, 2.5]);
    assert_eq!(beta, vec![0.0, 2.25, 1.8]);
}

#[test]
fn stored_norms_come_back() {
    for norm in all_norms() {
        let json = serde_json::to_string(&norm).unwrap();
        assert_eq!(serde_json::from_str::<Norm>(&json).unwrap(), norm, "{json}");
    }
    for bad in [
        r#"{"written":"lp:0.5"}"#,
        r#"{"written":"mixed","n_kernels":2,"groups":[0]}"#,
        r#"{"written":"noniso:E.npy","n_kernels":2,"matrix":[1,2,2,1]}"#,
        r#"{"written":"noniso:E.npy","n_kernels":2,"matrix":[1,0.5,0.2,1]}"#,
    ] {
        assert!(serde_json::from_str::<Norm>(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_million_kernels_take_less_than_a_second() {
    let n = 1_000_000;
    let s: Vec<f64> = (0..n)
        .map(|m| 1.0 + ((m * 7919) % 1000) as f64 * 1e-3)
        .collect();
    let g = vec![0.1; n];
    let mut beta = vec![0.0; n];
    for text in [
        "lp:1",
        "lp:4/3",
        "lp:1.0001",
        "lp:1.37",
        "lp:inf",
        "block:auto",
        "elastic:0.3",
        "block:3",
    ] {
        let norm = Norm::new(text.parse().unwrap(), n, &[], &[]).unwrap();
        let start = Instant::now();
        norm.dual_map(&s, &mut beta);
        let products: Vec<f64> = beta.iter().zip(&s).map(|(beta, s)| beta * s).collect();
        assert_close(norm.value(&products), norm.dual(&s), 1e-8, text);
        assert!(norm.primal_map(&s, &mut beta));
        if let Some(block) = norm.as_block() {
            assert!(block.along(&s, &g, &s, 0.1).value > 0.0);
        }
        assert!(
            start.elapsed().as_secs_f64() < 1.0,
            "{text} took {:?}",
            start.elapsed()
        );
    }
}

#[test]
fn scaled_weights_are_where_the_maps_put_theirs() {
    for r in [
        1.0,
        1.05,
        1.25,
        4.0 / 3.0,
        1.9,
        2.0,
        2.5,
        3.0,
        8.0,
        f64::INFINITY,
    ] {
        let norm = Norm::block(r).unwrap();
        let block = norm.as_block().unwrap();
        let mut beta = vec![0.0; 4];
        block.dual_map(&[0.3, 2.0, 0.0, 1.1], &mut beta);
        let mut scaled: Vec<f64> = beta
            .iter()
            .map(|b| if r == 2.0 { *b } else { 7.5 * b })
            .collect();
        block.normalize_weights(&mut scaled);
        for (a, b) in scaled.iter().zip(&beta) {
            assert!(
                (a - b).abs() <= 1e-12 * b.abs(),
                "r = {r}: {scaled:?} {beta:?}"
            );
        }
    }
}

#[test]
fn a_kernel_without_output_for_a_while_gets_its_weight_back() {
    let mut norms = [1.05, 1.25, 4.0 / 3.0, 1.6]
        .map(|r| Norm::block(r).unwrap())
        .to_vec();
    norms.push(Norm::elastic(0.5).unwrap());
    for norm in norms {
        let mut beta = norm.initial_weights(6);
        norm.weights(&[1.0, 0.0, 1.0, 1.0, 1.0, 1.0], &mut beta);
        assert_eq!(beta[1], 0.0, "{norm}");
        for _ in 0..500 {
            norm.weights(&[1.0; 6], &mut beta);
        }
        for (beta, wanted) in beta.iter().zip(norm.initial_weights(6)) {
            assert!(
                (beta - wanted).abs() <= 1e-6,
                "{norm}: {beta}, not {wanted}"
            );
        }
    }
}
