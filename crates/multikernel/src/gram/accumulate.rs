//! Sums in f64 of rows in f32, bound by memory: sums are read and written once for several rows, and stay in the first cache.

/// Columns summed at a time: their sums stay in the first cache.
pub(super) const TILE: usize = 2048;
/// Rows that go into a sum together, so that sums are read and written once for all of them.
pub(super) const TOGETHER: usize = 4;

/// A row of values and what it is multiplied by.
pub(super) type ScaledRow<'a> = (&'a [f32], f64);

/// sums += Σ factor · row.
pub(super) fn add_rows(rows: &[ScaledRow<'_>], sums: &mut [f64]) {
    let n = sums.len();
    for start in (0..n).step_by(TILE) {
        let tile = start..(start + TILE).min(n);
        let sums = &mut sums[tile.clone()];
        let (fours, rest) = rows.as_chunks::<TOGETHER>();
        for four in fours {
            add_four(four.map(|(row, factor)| (&row[tile.clone()], factor)), sums);
        }
        for (row, factor) in rest {
            add_scaled(*factor, &row[tile.clone()], sums);
        }
    }
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn add_four(rows: [ScaledRow<'_>; TOGETHER], sums: &mut [f64]) {
    let [(a, fa), (b, fb), (c, fc), (d, fd)] = rows;
    let rows = a.iter().zip(b).zip(c.iter().zip(d));
    for (sum, ((a, b), (c, d))) in sums.iter_mut().zip(rows) {
        let two = fa * f64::from(*a) + fb * f64::from(*b);
        *sum += two + (fc * f64::from(*c) + fd * f64::from(*d));
    }
}

/// sums += factor · values.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
pub(super) fn add_scaled(factor: f64, values: &[f32], sums: &mut [f64]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += factor * f64::from(*value);
    }
}

/// sums += a · values, all in f64.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
pub(super) fn add_multiple(a: f64, values: &[f64], sums: &mut [f64]) {
    for (sum, v) in sums.iter_mut().zip(values) {
        *sum += a * v;
    }
}

/// The sums, rounded to f32.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
pub(super) fn round(sums: &[f64], out: &mut [f32]) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = *sum as f32;
    }
}
