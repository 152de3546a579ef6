//! One sample against many rows: the statistic of every pair, and exponentials.
//!
//! The number of a pair depends on the pair alone, never on what is computed beside it: sums have a fixed order, and products
//! are not fused. That is why blocks of any size, any number of threads and a resumed run give the same bits.

/// Numbers side by side in a sum.
pub(super) const LANES: usize = 8;
/// Columns whose terms are summed in f32 before they are added up in f64.
const PIECE: usize = 256;

/// What a term of the sum looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// Σ x y
    Dot,
    /// Σ (x − y)²
    SquaredDistance,
    /// Σ |x − y|
    L1,
    /// Σ (x − y)²/(x + y), 0/0 = 0
    Chi2,
    /// Σ min(x, y)
    Intersection,
}

/// The statistic of `x` with each of the rows of `stride` numbers, padded with zeros to a multiple of [`LANES`].
pub(super) fn dense(base: Base, x: &[f32], rows: &[f32], stride: usize, out: &mut [f32]) {
    match base {
        Base::Dot => pairs::<DOT>(x, rows, stride, out),
        Base::SquaredDistance => pairs::<SQUARED_DISTANCE>(x, rows, stride, out),
        Base::L1 => pairs::<L1>(x, rows, stride, out),
        Base::Chi2 => pairs::<CHI2>(x, rows, stride, out),
        Base::Intersection => pairs::<INTERSECTION>(x, rows, stride, out),
    }
}

// The kinds as numbers, for code of its own for each.
const DOT: u8 = 0;
const SQUARED_DISTANCE: u8 = 1;
const L1: u8 = 2;
const CHI2: u8 = 3;
const INTERSECTION: u8 = 4;

fn pairs<const KIND: u8>(x: &[f32], rows: &[f32], stride: usize, out: &mut [f32]) {
    let x = vectors(&x[..stride]);
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature that the function is compiled for; it has no other requirement.
        #[allow(unsafe_code)]
        unsafe {
            pairs_avx2::<KIND>(x, rows, stride, out);
        }
        return;
    }
    plain_pairs::<KIND>(x, rows, stride, out);
}

/// As many sums as a vector register of AVX2 holds.
type Vector = [f32; LANES];

fn vectors(values: &[f32]) -> &[Vector] {
    values.as_chunks().0
}

fn plain_pairs<const KIND: u8>(x: &[Vector], rows: &[f32], stride: usize, out: &mut [f32]) {
    for (row, out) in rows.chunks(stride.max(1)).zip(out) {
        let mut total = 0.0;
        let pieces = vectors(row).chunks(PIECE / LANES);
        for (x, y) in x.chunks(PIECE / LANES).zip(pieces) {
            let mut sums = [0.0; LANES];
            for (x, y) in x.iter().zip(y) {
                for l in 0..LANES {
                    sums[l] += term::<KIND>(x[l], y[l]);
                }
            }
            total += added_up(sums);
        }
        *out = total as f32;
    }
}

fn term<const KIND: u8>(a: f32, b: f32) -> f32 {
    match KIND {
        DOT => a * b,
        SQUARED_DISTANCE => (a - b) * (a - b),
        L1 => (a - b).abs(),
        // 0/0: the numerator is 0, so any positive denominator gives the 0 we want
        CHI2 => (a - b) * ((a - b) / (a + b).max(f32::MIN_POSITIVE)),
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

fn added_up(lanes: Vector) -> f64 {
    let mut total = 0.0;
    for v in lanes {
        total += f64::from(v);
    }
    total
}

/// [`plain_pairs`], four rows at a time. By hand, since compilers turn the plain loops into anything from this to code ten times
/// slower.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pairs_avx2<const KIND: u8>(x: &[Vector], rows: &[f32], stride: usize, out: &mut [f32]) {
    use std::arch::x86_64::*;
    const SIDE: usize = 4;
    let load = |v: &Vector| -> __m256 { bytemuck::cast(*v) };
    let (fours, rest) = out.as_chunks_mut::<SIDE>();
    let (rows, last) = rows.split_at(fours.len() * SIDE * stride);
    for (rows, out) in rows.chunks((SIDE * stride).max(1)).zip(fours) {
        let (ab, cd) = rows.split_at(2 * stride);
        let ((a, b), (c, d)) = (ab.split_at(stride), cd.split_at(stride));
        let mut totals = [0.0f64; SIDE];
        let pieces = |row| vectors(row).chunks(PIECE / LANES);
        let x = x.chunks(PIECE / LANES);
        for ((x, (a, b)), (c, d)) in x
            .zip(pieces(a).zip(pieces(b)))
            .zip(pieces(c).zip(pieces(d)))
        {
            let zero = _mm256_setzero_ps();
            let (mut p, mut q, mut r, mut s) = (zero, zero, zero, zero);
            for ((x, (a, b)), (c, d)) in x.iter().zip(a.iter().zip(b)).zip(c.iter().zip(d)) {
                let x = load(x);
                p = _mm256_add_ps(p, term_avx2::<KIND>(x, load(a)));
                q = _mm256_add_ps(q, term_avx2::<KIND>(x, load(b)));
                r = _mm256_add_ps(r, term_avx2::<KIND>(x, load(c)));
                s = _mm256_add_ps(s, term_avx2::<KIND>(x, load(d)));
            }
            for (total, sums) in totals.iter_mut().zip([p, q, r, s]) {
                *total += added_up(bytemuck::cast(sums));
            }
        }
        *out = totals.map(|t| t as f32);
    }
    plain_pairs::<KIND>(x, last, stride, rest);
}

/// [`term`] of eight pairs.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn term_avx2<const KIND: u8>(
    a: std::arch::x86_64::__m256,
    b: std::arch::x86_64::__m256,
) -> std::arch::x86_64::__m256 {
    use std::arch::x86_64::*;
    let difference = _mm256_sub_ps(a, b);
    match KIND {
        DOT => _mm256_mul_ps(a, b),
        SQUARED_DISTANCE => _mm256_mul_ps(difference, difference),
        L1 => _mm256_andnot_ps(_mm256_set1_ps(-0.0), difference),
        CHI2 => {
            let sum = _mm256_max_ps(_mm256_add_ps(a, b), _mm256_set1_ps(f32::MIN_POSITIVE));
            _mm256_mul_ps(difference, _mm256_div_ps(difference, sum))
        }
        _ => _mm256_min_ps(a, b),
    }
}

/// The statistic of two sparse rows.
///
/// `absolute` is Σ|x| of the first, `squares` Σx² of both.
pub(super) fn sparse(
    base: Base,
    x: (&[u32], &[f32]),
    absolute: f64,
    squares: (f64, f64),
    row: (&[u32], &[f32]),
) -> f32 {
    let mut from = 0;
    // columns ascend in both, so one pass over the first serves all of the second
    let mut at = |c: &u32| {
        while x.0.get(from).is_some_and(|own| own < c) {
            from += 1;
        }
        match x.0.get(from) {
            Some(own) if own == c => f64::from(x.1[from]),
            _ => 0.0,
        }
    };
    let terms = row.0.iter().zip(row.1);
    let total: f64 = match base {
        Base::Dot => terms.map(|(c, &y)| at(c) * f64::from(y)).sum(),
        Base::SquaredDistance => {
            let dot: f64 = terms.map(|(c, &y)| at(c) * f64::from(y)).sum();
            (squares.0 + squares.1 - 2.0 * dot).max(0.0)
        }
        // columns that only the sample has add their own value; those of the row are put right
        Base::L1 => {
            absolute
                + terms
                    .map(|(c, &y)| {
                        let x = at(c);
                        (x - f64::from(y)).abs() - x.abs()
                    })
                    .sum::<f64>()
        }
        Base::Chi2 => {
            absolute
                + terms
                    .map(|(c, &y)| {
                        let (x, y) = (at(c), f64::from(y));
                        let sum = x + y;
                        if sum > 0.0 {
                            (x - y) * (x - y) / sum - x
                        } else {
                            0.0
                        }
                    })
                    .sum::<f64>()
        }
        Base::Intersection => terms.map(|(c, &y)| at(c).min(f64::from(y))).sum(),
    };
    match base {
        Base::L1 | Base::Chi2 => total.max(0.0) as f32,
        _ => total as f32,
    }
}

/// exp(−t/w) for t ≥ 0, to about 1e-7 of the value; 1 at t = 0, and 0 below the smallest normal number.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
pub(super) fn exponentials(t: &[f32], width: f64, out: &mut [f32]) {
    let slope = (-1.0 / width) as f32;
    for (out, t) in out.iter_mut().zip(t) {
        *out = exponential(slope * t);
    }
}

/// eˣ for x ≤ 0: 2ⁿ·eʳ with |r| ≤ ½ ln 2, whose Taylor series to the seventh power is right to 6e-9.
#[inline(always)]
fn exponential(x: f32) -> f32 {
    /// Adding it leaves a float's whole part in its last bits.
    const ROUNDING: f32 = 12_582_912.0;
    /// ln 2 in two parts, the first with so few bits that n times it is exact.
    const LN2_HIGH: f32 = 355.0 / 512.0;
    const LN2_LOW: f32 = (std::f64::consts::LN_2 - 355.0 / 512.0) as f32;
    let held = x.max(-87.0);
    let shifted = held * std::f32::consts::LOG2_E + ROUNDING;
    let n = shifted - ROUNDING;
    let r = (held - n * LN2_HIGH) - n * LN2_LOW;
    let mut series = 1.0 / 5040.0;
    series = series * r + 1.0 / 720.0;
    series = series * r + 1.0 / 120.0;
    series = series * r + 1.0 / 24.0;
    series = series * r + 1.0 / 6.0;
    series = series * r + 0.5;
    series = series * r + 1.0;
    series = series * r + 1.0;
    // the last bits of `shifted` are n; a float's exponent stands above its 23 bits
    let power = shifted.to_bits().wrapping_sub(ROUNDING.to_bits());
    let two_to_n = f32::from_bits(power.wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { series * two_to_n }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const ALL: [Base; 5] = [
        Base::Dot,
        Base::SquaredDistance,
        Base::L1,
        Base::Chi2,
        Base::Intersection,
    ];

    fn exact(base: Base, x: f64, y: f64) -> f64 {
        match base {
            Base::Dot => x * y,
            Base::SquaredDistance => (x - y).powi(2),
            Base::L1 => (x - y).abs(),
            Base::Chi2 if x + y == 0.0 => 0.0,
            Base::Chi2 => (x - y).powi(2) / (x + y),
            Base::Intersection => x.min(y),
        }
    }

    #[test]
    fn pairs_are_exact_and_do_not_depend_on_their_neighbours() {
        let mut random = Random::new(1);
        for width in [1usize, 7, 8, 16, 100, 256, 300, 1000] {
            let stride = width.next_multiple_of(LANES);
            let mut row = || {
                let mut row: Vec<f32> = (0..width)
                    .map(|_| (random.uniform() * 3.0).max(1.0) as f32 - 1.0)
                    .collect();
                row.resize(stride, 0.0);
                row
            };
            let x = row();
            let rows: Vec<f32> = (0..11).flat_map(|_| row()).collect();
            for base in ALL {
                let mut out = vec![0.0; 11];
                dense(base, &x, &rows, stride, &mut out);
                for (j, t) in out.iter().enumerate() {
                    let y = &rows[j * stride..(j + 1) * stride];
                    let want: f64 = x
                        .iter()
                        .zip(y)
                        .map(|(x, y)| exact(base, f64::from(*x), f64::from(*y)))
                        .sum();
                    assert!(
                        (f64::from(*t) - want).abs() <= 1e-5 * want.max(1.0),
                        "{base:?}"
                    );
                    let mut alone = [0.0];
                    dense(base, &x, y, stride, &mut alone);
                    assert_eq!(alone[0].to_bits(), t.to_bits());
                    let plain = match base {
                        Base::Dot => plain_pairs::<DOT>,
                        Base::SquaredDistance => plain_pairs::<SQUARED_DISTANCE>,
                        Base::L1 => plain_pairs::<L1>,
                        Base::Chi2 => plain_pairs::<CHI2>,
                        Base::Intersection => plain_pairs::<INTERSECTION>,
                    };
                    plain(vectors(&x), y, stride, &mut alone);
                    assert_eq!(alone[0].to_bits(), t.to_bits());
                    let (columns, values): (Vec<u32>, Vec<f32>) = y[..width]
                        .iter()
                        .enumerate()
                        .filter(|(_, v)| **v != 0.0)
                        .map(|(c, v)| (c as u32, *v))
                        .unzip();
                    let absolute = x.iter().map(|v| f64::from(v.abs())).sum();
                    let square = |x: &[f32]| x.iter().map(|v| f64::from(*v).powi(2)).sum();
                    let squares = (square(&x), square(y));
                    let (own, numbers): (Vec<u32>, Vec<f32>) = x
                        .iter()
                        .enumerate()
                        .filter(|(_, v)| **v != 0.0)
                        .map(|(c, v)| (c as u32, *v))
                        .unzip();
                    let same = sparse(
                        base,
                        (&own, &numbers),
                        absolute,
                        squares,
                        (&columns, &values),
                    );
                    assert!(
                        (same - t).abs() <= 1e-4 * t.abs().max(1.0),
                        "{base:?} {same} {t}"
                    );
                }
            }
        }
    }

    #[test]
    fn exponentials_are_right_to_single_precision() {
        let t: Vec<f32> = (0..200_000).map(|k| k as f32 * 5e-4).collect();
        let mut out = vec![0.0; t.len()];
        exponentials(&t, 1.0, &mut out);
        assert_eq!(out[0], 1.0);
        for (t, v) in t.iter().zip(&out) {
            let want = (-f64::from(*t)).exp();
            if *t > 87.0 {
                assert_eq!(*v, 0.0);
            } else {
                assert!(
                    (f64::from(*v) - want).abs() <= 3e-7 * want,
                    "{t}: {v} {want}"
                );
            }
        }
        let mut far = [1.0];
        exponentials(&[f32::INFINITY], 1.0, &mut far);
        assert_eq!(far, [0.0]);
    }
}
