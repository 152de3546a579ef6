//! Dense linear algebra: products of matrices; sums in a fixed order; the Cholesky factor; sums brought to 0.

mod product;

pub(crate) use product::{Matrix, multiply, rows_times_rows};
use rayon::prelude::*;

/// Σ v_k a_k, summed in f64 in a fixed order.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
pub(crate) fn mixed_dot(values: &[f32], a: &[f64]) -> f64 {
    const LANES: usize = 16;
    let mut lanes = [0.0f64; LANES];
    let (vc, ac) = (values.chunks_exact(LANES), a.chunks_exact(LANES));
    let rest = vc.remainder().iter().zip(ac.remainder());
    let rest: f64 = rest.map(|(v, a)| f64::from(*v) * a).sum();
    for (v, a) in vc.zip(ac) {
        for k in 0..LANES {
            lanes[k] += f64::from(v[k]) * a[k];
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// Σ v_k, summed in f64 in a fixed order.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
pub(crate) fn sum(values: &[f32]) -> f64 {
    let (whole, rest) = values.as_chunks::<16>();
    let mut lanes = [0.0f64; 16];
    for v in whole {
        lanes = std::array::from_fn(|l| lanes[l] + f64::from(v[l]));
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|&v| f64::from(v)).sum::<f64>()
}

/// Σ v_k², summed in f64 in a fixed order.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
pub(crate) fn sum_of_squares(values: &[f32]) -> f64 {
    let (whole, rest) = values.as_chunks::<16>();
    let mut lanes = [0.0f64; 16];
    for v in whole {
        lanes = std::array::from_fn(|l| lanes[l] + f64::from(v[l]) * f64::from(v[l]));
    }
    let rest: f64 = rest.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
    lanes.iter().sum::<f64>() + rest
}

/// Σ a_k b_k in a fixed order.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 16;
    let mut lanes = [0.0; LANES];
    let (ac, bc) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = ac
        .remainder()
        .iter()
        .zip(bc.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in ac.zip(bc) {
        for k in 0..LANES {
            lanes[k] += a[k] * b[k];
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// Replaces the lower half of a symmetric n×n matrix by its Cholesky factor; none if it is not positive definite.
///
/// Columns in blocks: the rows below a block do not depend on each other, so they are spread over the threads.
pub(crate) fn cholesky(matrix: &mut [f64], n: usize) -> Option<()> {
    const BLOCK: usize = 64;
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        let (above, below) = matrix.split_at_mut(end * n);
        for i in start..end {
            let (done, row) = above.split_at_mut(i * n);
            finish_row(&mut row[..n], done, start, i, n);
            let d = row[i] - dot(&row[..i], &row[..i]);
            if !(d > 0.0 && d.is_finite()) {
                return None;
            }
            row[i] = d.sqrt();
        }
        let above = &*above;
        below
            .par_chunks_mut(n)
            .for_each(|row| finish_row(row, above, start, end, n));
    }
    Some(())
}

/// Entries `from..to` of a row of the factor, given the rows of the factor above.
fn finish_row(row: &mut [f64], factor: &[f64], from: usize, to: usize, n: usize) {
    for j in from..to {
        let other = &factor[j * n..j * n + j + 1];
        row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
    }
}

/// Replaces b by L⁻¹b for a factor made by [`cholesky`].
pub(crate) fn solve_lower(factor: &[f64], b: &mut [f64]) {
    let n = b.len();
    for i in 0..n {
        let row = &factor[i * n..i * n + i + 1];
        b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
    }
}

/// Columns that are solved for together.
const COLUMNS: usize = 32;

/// As [`solve_lower`] for every column of `b`, which has k of them and is given row after row: the factor is read once for many columns.
pub(crate) fn solve_lower_columns(factor: &[f64], b: &mut [f64], k: usize) {
    let starts: Vec<usize> = (0..k).step_by(COLUMNS).collect();
    let rows = &*b;
    let solve = |&start: &usize| {
        let width = COLUMNS.min(k - start);
        let mut block = vec![[0.0; COLUMNS]; rows.len() / k];
        for (out, row) in block.iter_mut().zip(rows.chunks(k)) {
            out[..width].copy_from_slice(&row[start..start + width]);
        }
        substitute(factor, &mut block);
        block
    };
    let solved: Vec<Vec<[f64; COLUMNS]>> = starts.par_iter().map(solve).collect();
    for (start, block) in starts.into_iter().zip(solved) {
        for (row, solved) in b.chunks_mut(k).zip(block) {
            let row = &mut row[start..];
            let width = COLUMNS.min(row.len());
            row[..width].copy_from_slice(&solved[..width]);
        }
    }
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn substitute(factor: &[f64], block: &mut [[f64; COLUMNS]]) {
    let n = block.len();
    for i in 0..n {
        let (done, rest) = block.split_at_mut(i);
        let mut sums = rest[0];
        for (l, solved) in factor[i * n..].iter().zip(done.iter()) {
            sums = std::array::from_fn(|c| sums[c] - l * solved[c]);
        }
        let inverse = factor[i * n + i].recip();
        rest[0] = sums.map(|sum| sum * inverse);
    }
}

/// ZᵀZ for Z with k columns, given row after row; both halves.
pub(crate) fn products_of_columns(z: &[f64], k: usize) -> Vec<f64> {
    const ROWS: usize = 32;
    let mut out = vec![0.0; k * k];
    out.par_chunks_mut((ROWS * k).max(1))
        .enumerate()
        .for_each(|(b, out)| {
            for four in z.chunks(4 * k) {
                for (i, out) in (b * ROWS..).zip(out.chunks_mut(k)) {
                    add_products(four, k, i, out);
                }
            }
        });
    for i in 0..k {
        for j in 0..i {
            out[j * k + i] = out[i * k + j];
        }
    }
    out
}

/// Adds to row i of the lower half what up to four rows of Z give.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn add_products(rows: &[f64], k: usize, i: usize, out: &mut [f64]) {
    let out = &mut out[..=i];
    if rows.len() == 4 * k {
        let (a, b, c, d) = (
            &rows[..k],
            &rows[k..2 * k],
            &rows[2 * k..3 * k],
            &rows[3 * k..],
        );
        let (ai, bi, ci, di) = (a[i], b[i], c[i], d[i]);
        let rows = a.iter().zip(b).zip(c.iter().zip(d));
        for (out, ((a, b), (c, d))) in out.iter_mut().zip(rows) {
            *out += (ai * a + bi * b) + (ci * c + di * d);
        }
        return;
    }
    for row in rows.chunks(k) {
        for (out, v) in out.iter_mut().zip(row) {
            *out += row[i] * v;
        }
    }
}

/// Replaces b by L⁻ᵀb for a factor made by [`cholesky`].
pub(crate) fn solve_upper(factor: &[f64], b: &mut [f64]) {
    let n = b.len();
    for i in (0..n).rev() {
        b[i] /= factor[i * n + i];
        let (before, value) = (&factor[i * n..i * n + i], b[i]);
        b[..i]
            .iter_mut()
            .zip(before)
            .for_each(|(b, l)| *b -= value * l);
    }
}

/// Makes Σ a = 0, which a bias asks of coefficients: the side that is too large shrinks, and so stays feasible.
pub(crate) fn balance(a: &mut [f64]) {
    let side = |a: &[f64], sign: f64| -> f64 { a.iter().map(|a| (sign * a).max(0.0)).sum() };
    let (plus, minus) = (side(a, 1.0), side(a, -1.0));
    let (sign, factor) = match plus > minus {
        true => (1.0, minus / plus),
        false => (-1.0, if minus > 0.0 { plus / minus } else { 1.0 }),
    };
    for a in a.iter_mut().filter(|a| sign * **a > 0.0) {
        *a *= factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_together_are_solved_as_each_alone() {
        for (n, k) in [(1, 1), (7, 3), (40, 70), (65, 32)] {
            let mut factor: Vec<f64> = (0..n * n)
                .map(|p| ((p * 7 % 11) as f64 - 5.0) / 20.0)
                .collect();
            for i in 0..n {
                factor[i * n + i] = 2.0 + i as f64 / 10.0;
            }
            let b: Vec<f64> = (0..n * k).map(|p| ((p * 5 % 13) as f64) - 6.0).collect();
            let mut together = b.clone();
            solve_lower_columns(&factor, &mut together, k);
            let products = products_of_columns(&b, k);
            for c in 0..k {
                let column = |of: usize| -> Vec<f64> { (0..n).map(|i| b[i * k + of]).collect() };
                let mut alone = column(c);
                solve_lower(&factor, &mut alone);
                for i in 0..n {
                    let apart = (alone[i] - together[i * k + c]).abs();
                    assert!(
                        apart <= 1e-12 * alone[i].abs().max(1.0),
                        "{n}×{k} at {i}, {c}"
                    );
                }
                for d in 0..k {
                    // Small whole numbers: exact in any order.
                    assert_eq!(products[c * k + d], dot(&column(c), &column(d)));
                }
            }
        }
    }

    #[test]
    fn the_larger_side_shrinks() {
        let mut a = [1.0, 2.0, -1.0, 0.0];
        balance(&mut a);
        assert_eq!(a, [1.0 / 3.0, 2.0 / 3.0, -1.0, 0.0]);
        let mut a = [0.5, -4.0];
        balance(&mut a);
        assert_eq!(a, [0.5, -0.5]);
        let mut a = [0.0, -4.0];
        balance(&mut a);
        assert_eq!(a, [0.0, 0.0]);
        let mut a = [0.0, 0.0];
        balance(&mut a);
        assert_eq!(a, [0.0, 0.0]);
    }
}
