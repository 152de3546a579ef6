//! The lower half of X·Xᵀ of dense rows, for processors with AVX2.
//!
//! A general matrix product does not know that half of its result is the other half, and prepares its operands anew for
//! every block. Here a block of [`BLOCK`] rows is prepared once (groups of [`GROUP`] rows side by side) and meets one
//! panel of [`LANES`] columns after another, up to the diagonal; 6 × 16 sums fill twelve of the sixteen registers. Long
//! rows are cut into pieces of at most [`PIECE`] values, so that block and panel stay in the caches.

use super::product::DenseRows;
use std::ops::Range;

/// Rows that share the work of preparing a panel.
pub(super) const BLOCK: usize = 384;
const GROUP: usize = 6;
const LANES: usize = 16;
const PIECE: usize = 1024;

/// Whether this processor can.
pub(super) fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Dot products of samples `rows` with samples 0 up to themselves, at least, into full rows of `stride` values.
#[cfg(target_arch = "x86_64")]
pub(super) fn dots(x: &DenseRows, rows: Range<usize>, out: &mut [f32], stride: usize) {
    assert!(available());
    if x.width == 0 {
        out.fill(0.0);
        return;
    }
    let pieces = x.width.div_ceil(PIECE);
    let length = x.width.div_ceil(pieces);
    let mut block = vec![[0.0f32; GROUP]; rows.len().div_ceil(GROUP) * length];
    let mut panel = vec![[0.0f32; LANES]; length];
    for start in (0..x.width).step_by(length) {
        let piece = start..(start + length).min(x.width);
        let width = piece.len();
        for (g, group) in block
            .chunks_exact_mut(width)
            .enumerate()
            .take(rows.len().div_ceil(GROUP))
        {
            let first = rows.start + g * GROUP;
            pack(x, first..(first + GROUP).min(rows.end), &piece, group);
        }
        for first in (0..rows.end).step_by(LANES) {
            let cols = first..(first + LANES).min(rows.end);
            pack_panel(x, cols.clone(), &piece, &mut panel[..width]);
            // Groups whose last row lies above the panel have nothing in it.
            let skip = first.saturating_sub(rows.start) / GROUP;
            for g in skip..rows.len().div_ceil(GROUP) {
                let group = &block[g * width..(g + 1) * width];
                // SAFETY: the processor has the features that the function is compiled for (asserted above); it has no
                // other requirement.
                #[allow(unsafe_code)]
                let sums = unsafe { products(group, &panel[..width]) };
                let place = &mut out[g * GROUP * stride..];
                for (row, sums) in place.chunks_mut(stride).zip(&sums) {
                    let row = &mut row[cols.clone()];
                    if start == 0 {
                        row.copy_from_slice(&sums[..row.len()]);
                    } else {
                        row.iter_mut().zip(sums).for_each(|(r, s)| *r += s);
                    }
                }
            }
        }
    }
}

/// No other processor gets here: [`available`] says so.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn dots(_: &DenseRows, _: Range<usize>, _: &mut [f32], _: usize) {
    unreachable!("asked for where it is not available");
}

/// Value k of every sample side by side; samples that are missing leave zeros.
#[cfg(target_arch = "x86_64")]
fn pack<const W: usize>(
    x: &DenseRows,
    samples: Range<usize>,
    piece: &Range<usize>,
    out: &mut [[f32; W]],
) {
    if samples.len() < W {
        out.fill([0.0; W]);
    }
    for (l, i) in samples.enumerate() {
        for (out, &v) in out.iter_mut().zip(&x.row(i)[piece.clone()]) {
            out[l] = v;
        }
    }
}

/// As [`pack`], for a panel: whole panels are turned eight by eight values.
#[cfg(target_arch = "x86_64")]
fn pack_panel(
    x: &DenseRows,
    samples: Range<usize>,
    piece: &Range<usize>,
    out: &mut [[f32; LANES]],
) {
    const TURNED: usize = 8;
    if samples.len() < LANES {
        return pack(x, samples, piece, out);
    }
    let whole = piece.len() / TURNED * TURNED;
    for half in 0..LANES / TURNED {
        let rows: [&[f32]; TURNED] =
            std::array::from_fn(|l| &x.row(samples.start + half * TURNED + l)[piece.clone()]);
        for (c, out) in out.chunks_exact_mut(TURNED).enumerate() {
            let eight: [[f32; TURNED]; TURNED] = rows.map(|row| {
                *row[c * TURNED..]
                    .first_chunk()
                    .expect("whole chunks lie inside of the piece")
            });
            // SAFETY: only reached where the processor has these features (see `available`); no other requirement.
            #[allow(unsafe_code)]
            let turned = unsafe { turn(&eight) };
            for (out, turned) in out.iter_mut().zip(&turned) {
                out[half * TURNED..(half + 1) * TURNED].copy_from_slice(turned);
            }
        }
        for (k, out) in out.iter_mut().enumerate().skip(whole) {
            for (l, row) in rows.iter().enumerate() {
                out[half * TURNED + l] = row[k];
            }
        }
    }
}

/// Rows become columns.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn turn(rows: &[[f32; 8]; 8]) -> [[f32; 8]; 8] {
    use std::arch::x86_64::*;
    let r: [__m256; 8] = rows.map(bytemuck::cast);
    let low = |a: usize| _mm256_unpacklo_ps(r[a], r[a + 1]);
    let high = |a: usize| _mm256_unpackhi_ps(r[a], r[a + 1]);
    let pairs = [
        low(0),
        high(0),
        low(2),
        high(2),
        low(4),
        high(4),
        low(6),
        high(6),
    ];
    let first = |a: usize| _mm256_shuffle_ps::<0x44>(pairs[a], pairs[a + 2]);
    let second = |a: usize| _mm256_shuffle_ps::<0xEE>(pairs[a], pairs[a + 2]);
    let fours = [
        first(0),
        second(0),
        first(1),
        second(1),
        first(4),
        second(4),
        first(5),
        second(5),
    ];
    std::array::from_fn(|k| {
        let (upper, lower) = (fours[k % 4], fours[k % 4 + 4]);
        bytemuck::cast(if k < 4 {
            _mm256_permute2f128_ps::<0x20>(upper, lower)
        } else {
            _mm256_permute2f128_ps::<0x31>(upper, lower)
        })
    })
}

/// Σ_k group[k][r] · panel[k][l] for all r and l.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn products(group: &[[f32; GROUP]], panel: &[[f32; LANES]]) -> [[f32; LANES]; GROUP] {
    use std::arch::x86_64::*;
    let mut sums = [[_mm256_setzero_ps(); 2]; GROUP];
    for (rows, cols) in group.iter().zip(panel) {
        let halves: [[f32; 8]; 2] = bytemuck::cast(*cols);
        let (low, high) = (bytemuck::cast(halves[0]), bytemuck::cast(halves[1]));
        for (sums, row) in sums.iter_mut().zip(rows) {
            let row = _mm256_set1_ps(*row);
            sums[0] = _mm256_fmadd_ps(row, low, sums[0]);
            sums[1] = _mm256_fmadd_ps(row, high, sums[1]);
        }
    }
    let mut out = [[0.0; LANES]; GROUP];
    for (out, sums) in out.iter_mut().zip(sums) {
        *out = bytemuck::cast(sums);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition_for_awkward_shapes() {
        if !available() {
            return;
        }
        for (n, width) in [
            (1, 1),
            (5, 3),
            (16, 8),
            (33, 449),
            (50, 17),
            (23, 1000),
            (7, 0),
        ] {
            let values = (0..n * width).map(|i| ((i * 7) % 11) as f32 - 5.0);
            let x = DenseRows {
                width,
                values: values.collect(),
            };
            for rows in [0..n, n / 2..n, n / 3..n / 3 + 1] {
                let mut out = vec![f32::NAN; rows.len() * n];
                dots(&x, rows.clone(), &mut out, n);
                for (i, row) in rows.zip(out.chunks(n)) {
                    for (j, value) in row.iter().enumerate().take(i + 1) {
                        // Small whole numbers: exact in any order.
                        let exact: f32 = x.row(i).iter().zip(x.row(j)).map(|(a, b)| a * b).sum();
                        assert_eq!(*value, exact, "{n}×{width} at {i}, {j}");
                    }
                }
            }
        }
    }
}
