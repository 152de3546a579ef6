//! Whole rows in f32, eight entries at a time where the processor has AVX2: looked up, or, of a few exponentials, computed.
//!
//! Looking up. The same cells as the f64 table (`profile_table.rs`), found from the bits of u = t + shift as f32. A cell is four coefficients
//! side by side, so an entry costs one 16-byte load; eight of them are turned by shuffles into four vectors of
//! coefficients, which beats four gathers. Everything else is the same arithmetic for all eight.
//!
//! Error, beside that of the f64 table: the round-off of u and of the cubic, each below a few 2⁻²⁴ (see [`ROUND_OFF`]).

/// Precision-up cells per octave are 2^FINE_BITS, as in the f64 table.
const FINE_BITS: u32 = 6;
const FRACTION_BITS: u32 = 23;
const CELL_SHIFT: u32 = FRACTION_BITS - FINE_BITS;
const FRACTION_MASK: u32 = (1 << FRACTION_BITS) - 1;
const ONE_BITS: u32 = 0x3F80_0000;
/// Room for few cells and for many: powers of two, so that a masked number is always inside.
const FEWEST: usize = 512;
const FEW: usize = 1024;
const MANY: usize = 8192;

/// A looked-up value is off by at most this share of max(|φ| + u|φ'|).
pub(super) const ROUND_OFF: f64 = 1.0 / (1 << 21) as f64;

/// Computing this number of exponentials takes no longer than a look-up, which needs a table first.
const FEW_EXPONENTIALS: usize = 2;

/// Σ c·exp(−t/w) of a few kernels: computing it is no dearer than looking it up.
#[derive(Debug, Clone)]
pub(super) struct Exponentials(Vec<Exponential>);

#[derive(Debug, Clone, Copy)]
struct Exponential {
    factor: f32,
    /// −8 log₂(e)/w
    rate: f32,
}

impl Exponentials {
    /// Of factors c and widths w; none where there are many, or where f32 cannot hold their numbers.
    pub(super) fn new(each: &[(f64, f64)]) -> Option<Exponentials> {
        let inside = |v: f64| (1e-30..1e30).contains(&v.abs());
        let one = |&(factor, width): &(f64, f64)| {
            let rate = -8.0 * std::f64::consts::LOG2_E / width;
            (inside(factor) && inside(rate)).then_some(Exponential {
                factor: factor as f32,
                rate: rate as f32,
            })
        };
        let few = (1..=FEW_EXPONENTIALS).contains(&each.len());
        let all = few.then(|| each.iter().map(one).collect::<Option<_>>());
        all.flatten().map(Exponentials)
    }

    /// The sum at every t; its error is below that of a look-up (see [`ROUND_OFF`]).
    pub(super) fn values(&self, t: &[f32], out: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature that the functions are compiled for; they have no other requirement.
            #[allow(unsafe_code)]
            unsafe {
                match self.0[..] {
                    [a] => exponentials_avx2(t, [a], out),
                    [a, b] => exponentials_avx2(t, [a, b], out),
                    _ => unreachable!("no more than a few"),
                }
            }
            return;
        }
        for (out, t) in out.iter_mut().zip(t) {
            *out = sum(*t, &self.0);
        }
    }
}

/// Adding it rounds to a whole number, which then stands in the lowest bits.
const ROUND: f32 = 12_582_912.0;
/// The exponents of 2 that f32 holds, in eighths.
const EIGHTHS: f32 = 8.0 * 126.0;
/// 2^(k/8)
const ROOTS: [f32; 8] = [
    1.0,
    1.090_507_7,
    1.189_207_1,
    1.296_839_6,
    std::f32::consts::SQRT_2,
    1.542_210_8,
    1.681_792_9,
    1.834_008_1,
];
/// 2^(f/8) for f ∈ [−½, ½], off by at most 3e-8 of it.
const CUBIC: [f32; 4] = [1.0, 0.086_643_405, 0.003_754_025_6, 0.000_108_391_06];

/// c·2^(y/8), y = rate·t. The whole part of y goes into the bits of the result, its last three bits through a table, the rest
/// through a cubic. No fused operations: the same bits on every processor.
#[inline(always)]
fn exponential(t: f32, Exponential { factor, rate }: Exponential) -> f32 {
    let y = rate * t;
    let clamped = y.clamp(-EIGHTHS, EIGHTHS);
    let rounded = clamped + ROUND;
    let f = clamped - (rounded - ROUND);
    let whole = rounded.to_bits();
    let root = ROOTS[(whole % 8) as usize];
    let power = f32::from_bits(((whole >> 3) << 23).wrapping_add(root.to_bits()));
    let p = CUBIC[0] + f * (CUBIC[1] + f * (CUBIC[2] + f * CUBIC[3]));
    if y < -EIGHTHS {
        0.0
    } else {
        factor * p * power
    }
}

/// In the order of the eight at a time.
#[inline(always)]
fn sum(t: f32, each: &[Exponential]) -> f32 {
    let values = each.iter().map(|one| exponential(t, *one));
    values.reduce(|sum, value| sum + value).unwrap_or(0.0)
}

/// Eight at a time: the table is one register.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn exponentials_avx2<const K: usize>(t: &[f32], each: [Exponential; K], out: &mut [f32]) {
    use std::arch::x86_64::*;
    let (least, most) = (_mm256_set1_ps(-EIGHTHS), _mm256_set1_ps(EIGHTHS));
    let (round, roots) = (_mm256_set1_ps(ROUND), bytemuck::cast(ROOTS));
    let cubic = CUBIC.map(|c| _mm256_set1_ps(c));
    let one = |t: __m256, one: Exponential| -> __m256 {
        let y = _mm256_mul_ps(_mm256_set1_ps(one.rate), t);
        let clamped = _mm256_max_ps(_mm256_min_ps(y, most), least);
        let rounded = _mm256_add_ps(clamped, round);
        let f = _mm256_sub_ps(clamped, _mm256_sub_ps(rounded, round));
        let whole = _mm256_castps_si256(rounded);
        // Looks at the last three bits only.
        let root = _mm256_castps_si256(_mm256_permutevar8x32_ps(roots, whole));
        let whole = _mm256_slli_epi32::<23>(_mm256_srli_epi32::<3>(whole));
        let power = _mm256_castsi256_ps(_mm256_add_epi32(whole, root));
        let p = _mm256_add_ps(cubic[2], _mm256_mul_ps(f, cubic[3]));
        let p = _mm256_add_ps(cubic[1], _mm256_mul_ps(f, p));
        let p = _mm256_add_ps(cubic[0], _mm256_mul_ps(f, p));
        let value = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(one.factor), p), power);
        let nothing = _mm256_cmp_ps::<_CMP_LT_OQ>(y, least);
        _mm256_andnot_ps(nothing, value)
    };
    let (chunks, rest) = t.as_chunks::<8>();
    let (outs, last) = out.as_chunks_mut::<8>();
    for (t, out) in chunks.iter().zip(outs) {
        let t = bytemuck::cast(*t);
        let mut total = one(t, each[0]);
        for &other in &each[1..] {
            total = _mm256_add_ps(total, one(t, other));
        }
        *out = bytemuck::cast(total);
    }
    for (out, t) in last.iter_mut().zip(rest) {
        *out = sum(*t, &each);
    }
}

/// The combined kernel of a family as cubics in f32.
#[derive(Debug)]
pub(super) struct FastTable {
    shift: f32,
    /// Number of the first cell, counted from u = 0.
    base: i32,
    last: i32,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    Fewest(Box<[Cell; FEWEST]>),
    Few(Box<[Cell; FEW]>),
    Many(Box<[Cell; MANY]>),
}

type Cell = [f32; 4];

/// Room for N cells, the first of which are these.
fn room<const N: usize>(cells: impl Iterator<Item = [f64; 4]>) -> Option<Box<[Cell; N]>> {
    let mut room: Vec<Cell> = Vec::with_capacity(N);
    room.extend(cells.map(|cell| cell.map(|c| c as f32)));
    room.resize(N, [0.0; 4]);
    room.try_into().ok()
}

impl FastTable {
    /// From this number of cells of an f64 table, which begin at u = `start`; none where f32 cannot hold them.
    pub(super) fn new(
        shift: f64,
        start: f64,
        count: usize,
        cells: impl Iterator<Item = [f64; 4]>,
    ) -> Option<FastTable> {
        let inside = |v: f64| v == 0.0 || (1e-30..1e30).contains(&v.abs());
        let end = start * 2f64.powf(count as f64 / f64::from(1 << FINE_BITS) + 1.0);
        if !(inside(shift) && inside(start) && inside(end)) || count > MANY {
            return None;
        }
        Some(FastTable {
            shift: shift as f32,
            base: ((start as f32).to_bits() >> CELL_SHIFT) as i32,
            last: count as i32 - 1,
            cells: match count {
                count if count <= FEWEST => Cells::Fewest(room(cells)?),
                count if count <= FEW => Cells::Few(room(cells)?),
                _ => Cells::Many(room(cells)?),
            },
        })
    }

    /// The combined kernel at every t.
    pub(super) fn look_up(&self, t: &[f32], out: &mut [f32]) {
        match &self.cells {
            Cells::Fewest(cells) => self.look_up_in(cells, t, out),
            Cells::Few(cells) => self.look_up_in(cells, t, out),
            Cells::Many(cells) => self.look_up_in(cells, t, out),
        }
    }

    fn look_up_in<const N: usize>(&self, cells: &[Cell; N], t: &[f32], out: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the features that the function is compiled for; it has no other requirement.
            #[allow(unsafe_code)]
            unsafe {
                self.look_up_avx2(cells, t, out);
            }
            return;
        }
        for (out, t) in out.iter_mut().zip(t) {
            *out = self.at(cells, *t);
        }
    }

    fn at<const N: usize>(&self, cells: &[Cell; N], t: f32) -> f32 {
        let bits = (t + self.shift).to_bits();
        let cell = ((bits >> CELL_SHIFT) as i32 - self.base).clamp(0, self.last);
        let x = f32::from_bits(((bits << FINE_BITS) & FRACTION_MASK) | ONE_BITS) - 1.5;
        let c = &cells[cell as usize % N];
        c[0] + x * (c[1] + x * (c[2] + x * c[3]))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn look_up_avx2<const N: usize>(&self, table: &[Cell; N], t: &[f32], out: &mut [f32]) {
        use std::arch::x86_64::*;
        let shift = _mm256_set1_ps(self.shift);
        let base = _mm256_set1_epi32(self.base);
        let (first, last) = (_mm256_setzero_si256(), _mm256_set1_epi32(self.last));
        let fraction = _mm256_set1_epi32(FRACTION_MASK as i32);
        let (one, middle) = (_mm256_set1_epi32(ONE_BITS as i32), _mm256_set1_ps(1.5));
        let eight = |t: [f32; 8]| -> [f32; 8] {
            let u = _mm256_add_ps(bytemuck::cast(t), shift);
            let bits = _mm256_castps_si256(u);
            let cell = _mm256_sub_epi32(_mm256_srli_epi32::<{ CELL_SHIFT as i32 }>(bits), base);
            let cell = _mm256_min_epi32(_mm256_max_epi32(cell, first), last);
            let place = _mm256_slli_epi32::<{ FINE_BITS as i32 }>(bits);
            let place = _mm256_or_si256(_mm256_and_si256(place, fraction), one);
            let x = _mm256_sub_ps(_mm256_castsi256_ps(place), middle);
            let cells: [u32; 8] = bytemuck::cast(cell);
            let at = |k: usize| -> __m128 { bytemuck::cast(table[cells[k] as usize % N]) };
            let a = _mm256_set_m128(at(4), at(0));
            let b = _mm256_set_m128(at(5), at(1));
            let c = _mm256_set_m128(at(6), at(2));
            let d = _mm256_set_m128(at(7), at(3));
            let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
            let c0 = _mm256_shuffle_ps::<0x44>(ab_low, cd_low);
            let c1 = _mm256_shuffle_ps::<0xEE>(ab_low, cd_low);
            let c2 = _mm256_shuffle_ps::<0x44>(ab_high, cd_high);
            let c3 = _mm256_shuffle_ps::<0xEE>(ab_high, cd_high);
            let value = _mm256_fmadd_ps(_mm256_fmadd_ps(c3, x, c2), x, c1);
            bytemuck::cast(_mm256_fmadd_ps(value, x, c0))
        };
        let (chunks, rest) = t.as_chunks::<8>();
        let (outs, rest_out) = out.as_chunks_mut::<8>();
        for (t, out) in chunks.iter().zip(outs) {
            *out = eight(*t);
        }
        // In the same way, so that a value does not depend on its place in the row.
        let mut last = [0.0; 8];
        last[..rest.len()].copy_from_slice(rest);
        rest_out.copy_from_slice(&eight(last)[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_stay_within_the_stated_round_off() {
        for width in [1e-6, 0.7, 3.0, 1e4] {
            let widths = [width, 3.0 * width];
            for count in 1..=FEW_EXPONENTIALS {
                let each: Vec<(f64, f64)> = widths[..count].iter().map(|&w| (2.5, w)).collect();
                let few = Exponentials::new(&each).unwrap();
                let t: Vec<f32> = (0..20_001)
                    .map(|i| (f64::from(i) * 0.01 * width) as f32)
                    .collect();
                let mut out = vec![f32::NAN; t.len()];
                few.values(&t, &mut out);
                for (t, value) in t.iter().zip(&out) {
                    let exact = each.iter().map(|(c, w)| c * (-f64::from(*t) / w).exp());
                    let exact: f64 = exact.sum();
                    // max(|φ| + t|φ'|) of exp(−t) is below 1 + 1/e.
                    let bound = ROUND_OFF * 2.5 * count as f64;
                    assert!(
                        (f64::from(*value) - exact).abs() <= bound,
                        "{t} {width}: {value} {exact}"
                    );
                }
                assert_eq!(out[0], 2.5 * count as f32);
                // The same bits wherever a value stands, and one at a time.
                for (t, value) in t.iter().zip(&out) {
                    assert_eq!(sum(*t, &few.0), *value);
                }
            }
        }
        let mut out = [1.0; 3];
        Exponentials::new(&[(1.0, 1.0)])
            .unwrap()
            .values(&[1e30, 88.0, f32::MAX], &mut out);
        assert_eq!([out[0], out[2]], [0.0; 2]);
        assert!(out[1] < 1e-37);
        assert!(Exponentials::new(&[(1.0, 1e-40)]).is_none());
        assert!(Exponentials::new(&[]).is_none());
        assert!(Exponentials::new(&[(1.0, 1.0); FEW_EXPONENTIALS + 1]).is_none());
    }
}
