//! One sample against many others, for streams, whose samples come one at a time.
//!
//! The number of a pair depends on the pair alone, never on what is computed beside it: sums have a fixed order, and products
//! are not fused. That is why blocks of any size, any number of threads and a resumed run give the same bits.

use super::Statistic;
use super::formulas::{Formula, TERMS_IN_F32, with_formula};

/// Numbers side by side in a sum: as many as a register of AVX2 holds.
pub(crate) const LANES: usize = 8;

type Vector = [f32; LANES];
/// Vectors whose terms are summed in f32.
const PIECE: usize = TERMS_IN_F32 / LANES;

/// The statistic of `x` with each of the rows of `stride` numbers, padded with zeros to a multiple of [`LANES`].
pub(crate) fn dense(statistic: Statistic, x: &[f32], rows: &[f32], stride: usize, out: &mut [f32]) {
    with_formula!(statistic, F => pairs::<F>(&x[..stride], rows, out));
}

fn pairs<F: Formula>(x: &[f32], rows: &[f32], out: &mut [f32]) {
    let x = vectors(x);
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature that the function is compiled for; it has no other requirement.
        #[allow(unsafe_code)]
        unsafe {
            pairs_avx2::<F>(x, rows, out);
        }
        return;
    }
    plain_pairs::<F>(x, rows, out);
}

fn vectors(values: &[f32]) -> &[Vector] {
    values.as_chunks().0
}

fn plain_pairs<F: Formula>(x: &[Vector], rows: &[f32], out: &mut [f32]) {
    for (row, out) in rows.chunks((x.len() * LANES).max(1)).zip(out) {
        let mut total = 0.0;
        for (x, y) in x.chunks(PIECE).zip(vectors(row).chunks(PIECE)) {
            let mut sums = [0.0; LANES];
            for (x, y) in x.iter().zip(y) {
                for l in 0..LANES {
                    sums[l] += F::term(x[l], y[l]);
                }
            }
            total += added_up(sums);
        }
        *out = total as f32;
    }
}

fn added_up(lanes: Vector) -> f64 {
    let mut total = 0.0;
    for v in lanes {
        total += f64::from(v);
    }
    total
}

/// [`plain_pairs`], four rows at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pairs_avx2<F: Formula>(x: &[Vector], rows: &[f32], out: &mut [f32]) {
    use super::formulas::Eight;
    const SIDE: usize = 4;
    let stride = x.len() * LANES;
    let pieces = |row| vectors(row).chunks(PIECE);
    let (fours, rest) = out.as_chunks_mut::<SIDE>();
    let (rows, last) = rows.split_at(fours.len() * SIDE * stride);
    for (rows, out) in rows.chunks((SIDE * stride).max(1)).zip(fours) {
        let (ab, cd) = rows.split_at(2 * stride);
        let ((a, b), (c, d)) = (ab.split_at(stride), cd.split_at(stride));
        let mut totals = [0.0f64; SIDE];
        let rows = pieces(a).zip(pieces(b)).zip(pieces(c).zip(pieces(d)));
        for (x, ((a, b), (c, d))) in x.chunks(PIECE).zip(rows) {
            // In variables, not in an array: that is what stays in registers.
            let zero = Eight::zero();
            let (mut p, mut q, mut r, mut s) = (zero, zero, zero, zero);
            for ((x, (a, b)), (c, d)) in x.iter().zip(a.iter().zip(b)).zip(c.iter().zip(d)) {
                let x = Eight::load(x);
                p = p + F::term(x, Eight::load(a));
                q = q + F::term(x, Eight::load(b));
                r = r + F::term(x, Eight::load(c));
                s = s + F::term(x, Eight::load(d));
            }
            for (total, sums) in totals.iter_mut().zip([p, q, r, s]) {
                *total += added_up(sums.values());
            }
        }
        *out = totals.map(|t| t as f32);
    }
    for (row, out) in last.chunks(stride.max(1)).zip(rest) {
        let mut total = 0.0;
        for (x, y) in x.chunks(PIECE).zip(pieces(row)) {
            let mut sums = Eight::zero();
            for (x, y) in x.iter().zip(y) {
                sums = sums + F::term(Eight::load(x), Eight::load(y));
            }
            total += added_up(sums.values());
        }
        *out = total as f32;
    }
}

/// Columns and values of a sparse row, and its size.
pub(crate) type SparseRow<'a> = (&'a [u32], &'a [f32], f64);

/// The statistic of two sparse rows.
pub(crate) fn sparse(statistic: Statistic, x: SparseRow<'_>, y: SparseRow<'_>) -> f32 {
    with_formula!(statistic, F => sparse_pair::<F>(x, y))
}

fn sparse_pair<F: Formula>(x: SparseRow<'_>, y: SparseRow<'_>) -> f32 {
    let mut from = 0;
    let mut sum = 0.0;
    // Columns ascend in both, so one pass over the first serves all of the second.
    for (column, &value) in y.0.iter().zip(y.1) {
        while x.0.get(from).is_some_and(|own| own < column) {
            from += 1;
        }
        if x.0.get(from) == Some(column) {
            sum += F::common(f64::from(x.1[from]), f64::from(value));
        }
    }
    if F::IS_DISTANCE {
        (x.2 + y.2 + sum).max(0.0) as f32
    } else {
        sum as f32
    }
}

#[cfg(test)]
mod tests {
    use super::super::Size;
    use super::*;
    use crate::random::Random;

    const ALL: [Statistic; 5] = [
        Statistic::Dot,
        Statistic::SquaredDistance,
        Statistic::L1,
        Statistic::Chi2,
        Statistic::Intersection,
    ];

    fn exact(statistic: Statistic, x: f64, y: f64) -> f64 {
        match statistic {
            Statistic::Dot => x * y,
            Statistic::SquaredDistance => (x - y).powi(2),
            Statistic::L1 => (x - y).abs(),
            Statistic::Chi2 if x + y == 0.0 => 0.0,
            Statistic::Chi2 => (x - y).powi(2) / (x + y),
            _ => x.min(y),
        }
    }

    /// Columns, values and size of a row without its zeros.
    fn without_zeros(statistic: Statistic, row: &[f32]) -> (Vec<u32>, Vec<f32>, f64) {
        let (columns, values) = row
            .iter()
            .enumerate()
            .filter(|(_, v)| **v != 0.0)
            .map(|(c, v)| (c as u32, *v))
            .unzip();
        let size = |v: &f32| match statistic.about().size {
            Size::Squares => f64::from(*v) * f64::from(*v),
            Size::Absolute => f64::from(v.abs()),
        };
        (columns, values, row.iter().map(size).sum())
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
            for statistic in ALL {
                let mut out = vec![0.0; 11];
                dense(statistic, &x, &rows, stride, &mut out);
                for (j, t) in out.iter().enumerate() {
                    let y = &rows[j * stride..(j + 1) * stride];
                    let want: f64 = x
                        .iter()
                        .zip(y)
                        .map(|(x, y)| exact(statistic, f64::from(*x), f64::from(*y)))
                        .sum();
                    assert!(
                        (f64::from(*t) - want).abs() <= 1e-5 * want.max(1.0),
                        "{statistic:?}"
                    );
                    let mut alone = [0.0];
                    dense(statistic, &x, y, stride, &mut alone);
                    assert_eq!(alone[0].to_bits(), t.to_bits());
                    with_formula!(statistic, F => plain_pairs::<F>(vectors(&x), y, &mut alone));
                    assert_eq!(alone[0].to_bits(), t.to_bits());
                    let of = |row: &[f32]| without_zeros(statistic, row);
                    let ((a, b, size), (c, d, other)) = (of(&x), of(y));
                    let same = sparse(statistic, (&a, &b, size), (&c, &d, other));
                    assert!(
                        (same - t).abs() <= 1e-4 * t.abs().max(1.0),
                        "{statistic:?} {same} {t}"
                    );
                    let itself = sparse(statistic, (&a, &b, size), (&a, &b, size));
                    let want = match statistic.about().is_distance {
                        true => 0.0,
                        false => size as f32,
                    };
                    assert_eq!(itself, want, "{statistic:?}");
                }
            }
        }
    }
}
