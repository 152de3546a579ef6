//! Tables over a statistic: many kernels of one family at the price of one.
//!
//! The problem. A family has M profiles φ_m over one number t per pair. Wanted, without touching M anywhere in
//! a loop over pairs:
//!   (a) Σ_m β_m φ_m(t) for every pair, and (b) Σ_pairs w φ_m(t) for every m.
//!
//! The way. u = t + shift lies in [u0, u1], u0 > 0. Each octave of u is cut into 8 cells of equal width, so the
//! cell's number is the exponent and the first three bits of the fraction of the float u, and the place inside
//! the cell, x ∈ [−½, ½), is made of the remaining bits: no logarithm is taken. In a cell φ_m is replaced by
//! the polynomial of degree 7 through its values at 8 Chebyshev nodes. Everything is linear in the coefficients of those
//! polynomials, Φ (8 per cell × M):
//!   (a) Φβ is one polynomial per cell, tabulated further as cubics on 64 cells per octave;
//!   (b) with a histogram h of the moments Σ w x^k (k = 0…7) per cell the sums are Φᵀh.
//!
//! Error. With cells of width H, degree d−1 through d Chebyshev nodes: |φ − p| ≤ 2 (H/4)^d/d! · max|φ^(d)|. For
//! exp(−t/w), d = 8: below 1e-12; the cubics (d = 4, H an eighth): below 3e-10. [`Basis::bounds`] computes the
//! bound per kernel from the profile's own derivatives.
//!
//! Cost. (a) about 20 operations per pair, (b) about 30; set-up 64 evaluations of each φ per octave of the statistic's range.

use super::profile_table_f32::{self, FastTable};
use crate::kernel::Profile;
use crate::math::dot;
use rayon::prelude::*;
use std::sync::LazyLock;

/// Chebyshev nodes (and moments) per cell.
pub(super) const NODES: usize = 8;
/// Cells per octave are 2^CELL_BITS.
const CELL_BITS: u32 = 3;
const CELL_MASK: u64 = (1 << CELL_BITS) - 1;
/// Precision-up cells per octave are 2^FINE_BITS.
const FINE_BITS: u32 = 6;
/// Precision-up cells in a cell.
const FINE_PER_CELL: usize = 1 << (FINE_BITS - CELL_BITS);
const FRACTION_BITS: u32 = 52;
const ONE_BITS: u64 = 0x3FF0_0000_0000_0000;
const FRACTION_MASK: u64 = (1 << FRACTION_BITS) - 1;
/// The round-off of an interpolated value is below this many units, by the size of the Lagrange coefficients.
const ROUND: f64 = 1024.0;
/// The widest range of u, in octaves: t below 2^−64 of the largest is told from 0 by no f32 statistic.
const MAX_OCTAVES: i32 = 64;

/// Where the cells lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    shift: f64,
    /// Number of the first cell, counted from u = 0.
    base: u64,
    cells: usize,
}

impl Grid {
    /// A grid for profiles that fall off like exp(−t/w), t ∈ [0, high]: fine near 0, where the narrowest bends.
    fn exponential(narrowest: f64, high: f64) -> Grid {
        let high = high.max(f64::MIN_POSITIVE);
        let low = narrowest.clamp(high * 2f64.powi(-MAX_OCTAVES), high);
        Grid::new(low, low, high + low)
    }

    /// A grid for polynomials on [low, high]: cells of equal width.
    fn uniform(low: f64, high: f64) -> Grid {
        let span = (high - low)
            .max(1e-6 * high.abs().max(low.abs()))
            .max(f64::MIN_POSITIVE);
        Grid::new(span - low, span, 2.0 * span)
    }

    fn new(shift: f64, u0: f64, u1: f64) -> Grid {
        // A cell more on either side: u rounded to f32 may fall just outside.
        let base = (u0.to_bits() >> (FRACTION_BITS - CELL_BITS)) - 1;
        let last = (u1.to_bits() >> (FRACTION_BITS - CELL_BITS)) + 1;
        Grid {
            shift,
            base,
            cells: (last - base) as usize + 1,
        }
    }

    /// u at the start of cell `c`.
    fn start(&self, c: usize) -> f64 {
        f64::from_bits((self.base + c as u64) << (FRACTION_BITS - CELL_BITS))
    }

    /// Number of the octave of cell `c`, counted from that of the first.
    fn octave(&self, c: usize) -> usize {
        ((self.base & CELL_MASK) as usize + c) >> CELL_BITS
    }

    /// Cell of t and the place x ∈ [−½, ½) in it.
    #[inline(always)]
    fn place(&self, t: f32) -> (usize, f64) {
        let bits = (f64::from(t) + self.shift).to_bits();
        let cell = (bits >> (FRACTION_BITS - CELL_BITS)).wrapping_sub(self.base) as usize;
        (cell, place_in_cell(bits, CELL_BITS))
    }
}

/// The bits of u after the cell's number, as a number in [−½, ½).
#[inline(always)]
fn place_in_cell(bits: u64, cell_bits: u32) -> f64 {
    f64::from_bits(((bits << cell_bits) & FRACTION_MASK) | ONE_BITS) - 1.5
}

/// Chebyshev nodes on [−½, ½].
fn nodes<const D: usize>() -> [f64; D] {
    std::array::from_fn(|j| {
        -0.5 * ((2 * j + 1) as f64 * std::f64::consts::PI / (2 * D) as f64).cos()
    })
}

/// Row j: the coefficients of the Lagrange polynomial that is 1 at node j.
fn lagrange<const D: usize>() -> [[f64; D]; D] {
    let x = nodes::<D>();
    std::array::from_fn(|j| {
        let mut c = [0.0; D];
        c[0] = 1.0;
        for (degree, i) in (0..D).filter(|&i| i != j).enumerate() {
            // c ← c·(x − x_i)/(x_j − x_i)
            for k in (0..=degree + 1).rev() {
                let lower = if k > 0 { c[k - 1] } else { 0.0 };
                let same = if k <= degree { c[k] } else { 0.0 };
                c[k] = (lower - x[i] * same) / (x[j] - x[i]);
            }
        }
        c
    })
}

/// The coefficients of the polynomial of degree 7 on [−½, ½] through f's values at the nodes; f takes x + ½.
fn through_nodes(f: impl Fn(f64) -> f64) -> [f64; NODES] {
    static LAGRANGE: LazyLock<[[f64; NODES]; NODES]> = LazyLock::new(lagrange);
    static AT: LazyLock<[f64; NODES]> = LazyLock::new(nodes);
    let mut sums = [0.0; NODES];
    for (x, basis) in AT.iter().zip(&*LAGRANGE) {
        let value = f(x + 0.5);
        sums.iter_mut()
            .zip(basis)
            .for_each(|(s, b)| *s += b * value);
    }
    sums
}

/// For every octave of the grid and every exponential exp(−t/w): the polynomial of exp(−(t − lo)/w) in its cells, which begin at lo and
/// are of one width.
fn octave_shapes(profiles: &[(Profile, f64)], grid: &Grid) -> Vec<[f64; NODES]> {
    let octaves = 0..grid.octave(grid.cells - 1) + 1;
    let of_octave = |octave: usize| {
        let first = (octave << CELL_BITS).saturating_sub((grid.base & CELL_MASK) as usize);
        let span = grid.start(first + 1) - grid.start(first);
        profiles.iter().map(move |(profile, _)| match profile {
            Profile::Exp { .. } => through_nodes(|x| profile.value(x * span)),
            _ => [0.0; NODES],
        })
    };
    octaves.flat_map(of_octave).collect()
}

/// The profiles of a family as polynomials on the cells of a grid.
#[derive(Debug, Clone)]
pub(super) struct Basis {
    grid: Grid,
    kernels: usize,
    /// Coefficients of φ_m, cell after cell, power after power, kernel after kernel.
    coefficients: Vec<f64>,
    /// Per kernel.
    bounds: Vec<Bounds>,
}

/// How far numbers may be off.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    /// A value looked up in f64.
    pub(super) value: f64,
    /// A value under the histogram.
    pub(super) moments: f64,
    /// A value of a row looked up in f32.
    pub(super) row: f64,
}

impl Bounds {
    fn scaled(self, factor: f64) -> Bounds {
        Bounds {
            value: self.value * factor.abs(),
            moments: self.moments * factor.abs(),
            row: self.row * factor.abs(),
        }
    }

    /// Of a profile on all cells of the grid.
    fn of(profile: &Profile, grid: &Grid) -> Bounds {
        let mut worst = Bounds::default();
        for c in 0..grid.cells {
            let (u0, u1) = (grid.start(c), grid.start(c + 1));
            let width = u1 - u0;
            let (lo, hi) = (u0 - grid.shift, u1 - grid.shift);
            let [value, slope, fourth, eighth] =
                profile.derivative_bounds([0, 1, 4, NODES as u32], lo, hi);
            let slope = u1 * slope;
            // 4! and 8!
            let seventh = 2.0 * (width / 4.0).powi(NODES as i32) / 40_320.0 * eighth;
            // The cubic interpolates the degree-7 polynomial, whose own error passes through with the
            // cubic's Lebesgue constant, below 2.
            let fine = width / FINE_PER_CELL as f64;
            let cubic = 2.0 * (fine / 4.0).powi(4) / 24.0 * fourth + 3.0 * seventh;
            // Round-off: of u = t + shift, and of sums of products with the Lagrange coefficients.
            let round = f64::EPSILON * (slope + ROUND * value);
            worst.value = worst.value.max(cubic + round);
            worst.moments = worst.moments.max(seventh + round);
            let round_off = profile_table_f32::ROUND_OFF * (slope + value);
            worst.row = worst.row.max(cubic + round_off);
        }
        worst
    }
}

impl Basis {
    /// Tabulates `profiles`, each times its factor, for t ∈ [low, high].
    pub(super) fn new(profiles: &[(Profile, f64)], low: f64, high: f64) -> Basis {
        let narrowest = profiles
            .iter()
            .filter_map(|(p, _)| match p {
                Profile::Exp { width } => Some(*width),
                _ => None,
            })
            .min_by(f64::total_cmp);
        let grid = match narrowest {
            Some(width) => Grid::exponential(width, high),
            None => Grid::uniform(low, high),
        };
        let width = profiles.len();
        let mut coefficients = vec![0.0; grid.cells * NODES * width];
        if width > 0 {
            let shapes = octave_shapes(profiles, &grid);
            let cells = coefficients.par_chunks_mut(NODES * width).enumerate();
            cells.for_each(|(c, cell)| {
                let (u0, u1) = (grid.start(c), grid.start(c + 1));
                let (lo, span) = (u0 - grid.shift, u1 - u0);
                let shapes = &shapes[grid.octave(c) * width..];
                for (m, (profile, factor)) in profiles.iter().enumerate() {
                    let polynomial = match profile {
                        // exp(−t/w) = exp(−lo/w)·exp(−(t − lo)/w), whose second factor is that of every cell of the octave.
                        Profile::Exp { .. } => {
                            let scale = factor * profile.value(lo);
                            shapes[m].map(|c| scale * c)
                        }
                        _ => through_nodes(|x| factor * profile.value(lo + x * span)),
                    };
                    for (k, c) in polynomial.into_iter().enumerate() {
                        cell[k * width + m] = c;
                    }
                }
            });
        }
        let bounds = profiles
            .par_iter()
            .map(|(profile, factor)| Bounds::of(profile, &grid).scaled(*factor))
            .collect();
        Basis {
            grid,
            kernels: width,
            coefficients,
            bounds,
        }
    }

    /// Bytes that a basis of these profiles takes at most for t up to `high`.
    pub(super) fn bytes(profiles: &[(Profile, f64)], high: f64) -> usize {
        let octaves = profiles
            .iter()
            .map(|(profile, _)| match profile {
                Profile::Exp { width } => {
                    (high / width).log2().clamp(0.0, f64::from(MAX_OCTAVES)) as usize + 2
                }
                _ => 2,
            })
            .max()
            .unwrap_or(0);
        octaves * (1 << CELL_BITS) * NODES * profiles.len() * size_of::<f64>()
    }

    /// Multiplies every kernel by its factor.
    pub(super) fn scale(&mut self, factors: &[f64]) {
        for row in self.coefficients.chunks_mut(self.kernels) {
            row.iter_mut().zip(factors).for_each(|(v, f)| *v *= f);
        }
        for (bound, f) in self.bounds.iter_mut().zip(factors) {
            *bound = bound.scaled(*f);
        }
    }

    /// The same for some of the kernels.
    pub(super) fn only(&self, kernels: &[usize]) -> Basis {
        Basis {
            grid: self.grid,
            kernels: kernels.len(),
            coefficients: self
                .coefficients
                .chunks(self.kernels.max(1))
                .flat_map(|row| kernels.iter().map(|&m| row[m]))
                .collect(),
            bounds: kernels.iter().map(|&m| self.bounds[m]).collect(),
        }
    }

    /// How far numbers of each kernel may be off.
    pub(super) fn bounds(&self) -> &[Bounds] {
        &self.bounds
    }

    /// (a): the table of Σ_m β_m φ_m.
    pub(super) fn combine(&self, beta: &[f64]) -> Table {
        Table {
            shift: self.grid.shift,
            base: self.grid.base << (FINE_BITS - CELL_BITS),
            cells: self.cells(beta).collect(),
        }
    }

    /// The same for values in f32.
    pub(super) fn combine_fast(&self, beta: &[f64]) -> RowTable {
        let count = self.grid.cells * FINE_PER_CELL;
        match FastTable::new(self.grid.shift, self.grid.start(0), count, self.cells(beta)) {
            Some(fast) => RowTable::Fast(fast),
            None => RowTable::Exact(self.combine(beta)),
        }
    }

    /// The cubics of Σ_m β_m φ_m, look-up cell after look-up cell.
    fn cells(&self, beta: &[f64]) -> impl Iterator<Item = [f64; 4]> {
        let cells = self.coefficients.chunks(NODES * self.kernels);
        cells.flat_map(|cell| fine_cells(cell, beta))
    }

    /// A table for each of the kernels, fast ones or exact.
    pub(super) fn each(&self, fast: bool) -> Vec<RowTable> {
        let mut beta = vec![0.0; self.kernels];
        (0..self.kernels)
            .map(|m| {
                beta[m] = 1.0;
                let table = match fast {
                    true => self.combine_fast(&beta),
                    false => RowTable::Exact(self.combine(&beta)),
                };
                beta[m] = 0.0;
                table
            })
            .collect()
    }

    /// An empty histogram.
    pub(super) fn histogram(&self) -> Histogram {
        Histogram {
            grid: self.grid,
            moments: vec![[0.0; NODES]; self.grid.cells],
        }
    }

    /// Whether a histogram of this number of values, and its sums for this number of kernels, take longer than computing these kernels
    /// one by one.
    pub(super) fn is_expensive_for(&self, values: usize, kernels: usize) -> bool {
        // In units of one value computed and summed; measured.
        let histogram = 3 * values + 2 * self.grid.cells * (kernels + 1);
        kernels * values < histogram
    }

    /// (b): Σ w φ_m(t) for every m, added to `out`, from a histogram of the pairs.
    pub(super) fn sums(&self, histogram: &Histogram, out: &mut [f64]) {
        debug_assert_eq!(out.len(), self.kernels);
        self.for_moments(histogram, |h, row| {
            for (o, v) in out.iter_mut().zip(row) {
                *o += h * v;
            }
        });
    }

    /// As [`Basis::sums`], for some of the kernels.
    pub(super) fn sums_of(&self, histogram: &Histogram, kernels: &[usize], out: &mut [f64]) {
        if kernels.iter().copied().eq(0..self.kernels) {
            return self.sums(histogram, out);
        }
        self.for_moments(histogram, |h, row| {
            for (o, &m) in out.iter_mut().zip(kernels) {
                *o += h * row[m];
            }
        });
    }

    /// Hands every moment and its coefficients of φ_m to `take`.
    #[inline(always)]
    fn for_moments(&self, histogram: &Histogram, mut take: impl FnMut(f64, &[f64])) {
        let cells = self.coefficients.chunks(NODES * self.kernels);
        for (moments, coefficients) in histogram.moments.iter().zip(cells) {
            if moments.iter().all(|&m| m == 0.0) {
                continue;
            }
            for (moment, row) in moments.iter().zip(coefficients.chunks(self.kernels)) {
                take(*moment, row);
            }
        }
    }
}

/// From the coefficients of a polynomial of degree 7 on a cell to those of the cubics on its look-up cells, one after the other: a row
/// for each power.
static CUBICS: LazyLock<[[f64; 4 * FINE_PER_CELL]; NODES]> = LazyLock::new(|| {
    let (nodes, lagrange) = (nodes::<4>(), lagrange::<4>());
    let mut rows = [[0.0; 4 * FINE_PER_CELL]; NODES];
    for (power, row) in rows.iter_mut().enumerate() {
        for (s, out) in row.chunks_mut(4).enumerate() {
            for (x, basis) in nodes.iter().zip(&lagrange) {
                let x = (s as f64 + x + 0.5) / FINE_PER_CELL as f64 - 0.5;
                for (o, b) in out.iter_mut().zip(basis) {
                    *o += x.powi(power as i32) * b;
                }
            }
        }
    }
    rows
});

/// The cubics in a cell, from the coefficients of the kernels' polynomials there.
fn fine_cells(coefficients: &[f64], beta: &[f64]) -> [[f64; 4]; FINE_PER_CELL] {
    let mut c = [0.0; NODES];
    for (c, row) in c.iter_mut().zip(coefficients.chunks(beta.len())) {
        // A few products are done before a function for many has begun.
        *c = match row.len() {
            0..16 => row.iter().zip(beta).map(|(r, b)| r * b).sum(),
            _ => dot(row, beta),
        };
    }
    cubics(&c)
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn cubics(c: &[f64; NODES]) -> [[f64; 4]; FINE_PER_CELL] {
    let mut sums = [[0.0; 4]; FINE_PER_CELL];
    for (c, row) in c.iter().zip(&*CUBICS) {
        let sums = sums.as_flattened_mut().iter_mut();
        sums.zip(row).for_each(|(s, v)| *s += c * v);
    }
    sums
}

/// The combined kernel of a family as a function of its statistic.
#[derive(Debug)]
pub(super) struct Table {
    shift: f64,
    base: u64,
    cells: Vec<[f64; 4]>,
}

/// The same for values in f32.
#[derive(Debug)]
pub(super) enum RowTable {
    Fast(FastTable),
    /// Where f32 cannot hold the numbers of the other.
    Exact(Table),
}

impl RowTable {
    /// The combined kernel at every t.
    pub(super) fn look_up(&self, t: &[f32], out: &mut [f32]) {
        match self {
            RowTable::Fast(fast) => fast.look_up(t, out),
            RowTable::Exact(table) => {
                for (out, t) in out.iter_mut().zip(t) {
                    *out = table.at(*t) as f32;
                }
            }
        }
    }
}

impl Table {
    /// Adds the combined kernel at every t to `sums`.
    pub(super) fn add(&self, t: &[f32], sums: &mut [f64]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature that the function is compiled for; it has no other requirement.
            #[allow(unsafe_code)]
            unsafe {
                self.add_avx2(t, sums);
            }
            return;
        }
        for (sum, t) in sums.iter_mut().zip(t) {
            *sum += self.at(*t);
        }
    }

    /// Four at a time, with the operations, and so the bits, of one at a time: four cells are turned into four vectors of coefficients.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn add_avx2(&self, t: &[f32], sums: &mut [f64]) {
        use std::arch::x86_64::*;
        const CELL_SHIFT: i32 = (FRACTION_BITS - FINE_BITS) as i32;
        let shift = _mm256_set1_pd(self.shift);
        let fraction = _mm256_set1_epi64x(FRACTION_MASK as i64);
        let (one, middle) = (_mm256_set1_epi64x(ONE_BITS as i64), _mm256_set1_pd(1.5));
        let last = self.cells.len() - 1;
        let (fours, rest) = t.as_chunks::<4>();
        let (outs, rest_out) = sums.as_chunks_mut::<4>();
        for (t, out) in fours.iter().zip(outs) {
            let u = _mm256_add_pd(_mm256_cvtps_pd(bytemuck::cast(*t)), shift);
            let bits = _mm256_castpd_si256(u);
            let place = _mm256_slli_epi64::<{ FINE_BITS as i32 }>(bits);
            let place = _mm256_or_si256(_mm256_and_si256(place, fraction), one);
            let x = _mm256_sub_pd(_mm256_castsi256_pd(place), middle);
            let cells: [u64; 4] = bytemuck::cast(_mm256_srli_epi64::<CELL_SHIFT>(bits));
            let [a, b, c, d]: [__m256d; 4] = cells.map(|cell| {
                let cell = cell.wrapping_sub(self.base) as usize;
                bytemuck::cast(self.cells[cell.min(last)])
            });
            let (ab_low, ab_high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            let (cd_low, cd_high) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
            let c0 = _mm256_permute2f128_pd::<0x20>(ab_low, cd_low);
            let c1 = _mm256_permute2f128_pd::<0x20>(ab_high, cd_high);
            let c2 = _mm256_permute2f128_pd::<0x31>(ab_low, cd_low);
            let c3 = _mm256_permute2f128_pd::<0x31>(ab_high, cd_high);
            let value = _mm256_add_pd(c2, _mm256_mul_pd(x, c3));
            let value = _mm256_add_pd(c1, _mm256_mul_pd(x, value));
            let value = _mm256_add_pd(c0, _mm256_mul_pd(x, value));
            *out = bytemuck::cast(_mm256_add_pd(bytemuck::cast(*out), value));
        }
        for (sum, t) in rest_out.iter_mut().zip(rest) {
            *sum += self.at(*t);
        }
    }

    /// The combined kernel at t.
    #[inline(always)]
    pub(super) fn at(&self, t: f32) -> f64 {
        let bits = (f64::from(t) + self.shift).to_bits();
        let cell = (bits >> (FRACTION_BITS - FINE_BITS)).wrapping_sub(self.base) as usize;
        let x = place_in_cell(bits, FINE_BITS);
        let c = &self.cells[cell.min(self.cells.len() - 1)];
        c[0] + x * (c[1] + x * (c[2] + x * c[3]))
    }
}

/// Moments of the statistic over weighted pairs, per cell.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    grid: Grid,
    moments: Vec<[f64; NODES]>,
}

impl Histogram {
    /// Counts pairs with statistics t and weights w.
    pub(super) fn add(&mut self, t: &[f32], w: &[f64]) {
        add_moments(self.grid, &mut self.moments, t, w);
    }

    /// Adds another histogram of the same grid.
    pub(super) fn merge(&mut self, other: &Histogram) {
        for (a, b) in self.moments.iter_mut().zip(&other.moments) {
            for (a, b) in a.iter_mut().zip(b) {
                *a += b;
            }
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.moments.fill([0.0; NODES]);
    }
}

/// Pairs that are placed together: that goes side by side, while what they add to the moments goes one after another.
const TOGETHER: usize = 64;

/// Adds w x^k, k < 8, to the moments of the cell of each t. No sum here is contracted, so that all versions have the same bits.
#[multiversion::multiversion(targets("x86_64+avx2", "x86_64+avx512f+avx512vl"))]
fn add_moments(grid: Grid, moments: &mut [[f64; NODES]], t: &[f32], w: &[f64]) {
    let last = moments.len() - 1;
    let (mut cells, mut places) = ([0usize; TOGETHER], [0.0f64; TOGETHER]);
    for (t, w) in t.chunks(TOGETHER).zip(w.chunks(TOGETHER)) {
        for ((cell, place), &t) in cells.iter_mut().zip(&mut places).zip(t) {
            (*cell, *place) = grid.place(t);
        }
        for ((&cell, &x), &w) in cells.iter().zip(&places).zip(w) {
            let m = &mut moments[cell.min(last)];
            let (x2, x4) = (x * x, x * x * (x * x));
            let low = [w, w * x, w * x2, w * x2 * x];
            for k in 0..4 {
                m[k] += low[k];
                m[k + 4] += low[k] * x4;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exps(widths: &[f64]) -> Vec<(Profile, f64)> {
        widths
            .iter()
            .map(|&width| (Profile::Exp { width }, 1.0))
            .collect()
    }

    fn check(
        profiles: &[(Profile, f64)],
        low: f64,
        high: f64,
        ts: &[f32],
        beta: &[f64],
    ) -> (f64, f64) {
        let basis = Basis::new(profiles, low, high);
        let table = basis.combine(beta);
        let exact = |m: usize, t: f32| profiles[m].1 * profiles[m].0.value(f64::from(t));
        let bound: f64 = beta
            .iter()
            .zip(basis.bounds())
            .map(|(b, e)| b.abs() * e.value)
            .sum();
        let mut worst = 0.0f64;
        for &t in ts {
            let want: f64 = beta.iter().enumerate().map(|(m, b)| b * exact(m, t)).sum();
            let error = (table.at(t) - want).abs();
            assert!(error <= bound, "at {t}: error {error:e}, bound {bound:e}");
            worst = worst.max(error);
        }
        // Many at a time have the bits of one.
        let mut sums: Vec<f64> = (0..ts.len()).map(|k| k as f64).collect();
        table.add(ts, &mut sums);
        for (k, (sum, &t)) in sums.iter().zip(ts).enumerate() {
            assert_eq!(*sum, k as f64 + table.at(t));
        }
        let mut row = vec![0.0; ts.len()];
        basis.combine_fast(beta).look_up(ts, &mut row);
        let in_f32: f64 = beta
            .iter()
            .zip(basis.bounds())
            .map(|(b, e)| b.abs() * e.row)
            .sum();
        for (got, &t) in row.iter().zip(ts) {
            let error = (f64::from(*got) - table.at(t)).abs();
            assert!(
                error <= in_f32,
                "row at {t}: error {error:e}, bound {in_f32:e}"
            );
        }
        let mut histogram = basis.histogram();
        let weight = |i: usize| ((i * 37) % 11) as f64 - 4.5;
        let weights: Vec<f64> = (0..ts.len()).map(weight).collect();
        histogram.add(ts, &weights);
        let mut sums = vec![0.0; profiles.len()];
        basis.sums(&histogram, &mut sums);
        let mut worst_sum = 0.0f64;
        for (m, got) in sums.iter().enumerate() {
            let want: f64 = ts
                .iter()
                .enumerate()
                .map(|(i, &t)| weight(i) * exact(m, t))
                .sum();
            let mass: f64 = (0..ts.len()).map(|i| weight(i).abs()).sum();
            assert!(
                (got - want).abs() <= basis.bounds()[m].moments * mass,
                "kernel {m}: {got} {want}"
            );
            worst_sum = worst_sum.max((got - want).abs() / mass);
        }
        (worst, worst_sum)
    }

    #[test]
    fn fifty_widths_stay_far_below_f32_round_off() {
        let widths: Vec<f64> = (0..50).map(|m| 1.2f64.powi(m)).collect();
        let ts: Vec<f32> = (0..20_000).map(|i| 0.011 * i as f32).collect();
        let beta: Vec<f64> = (0..50).map(|m| 1.0 / f64::from(m + 1)).collect();
        let (value, sum) = check(&exps(&widths), 0.0, 250.0, &ts, &beta);
        assert!(value < 1e-9 && sum < 1e-12, "{value:e} {sum:e}");
    }

    #[test]
    fn polynomials_up_to_degree_three_are_exact() {
        let poly = |degree| {
            (
                Profile::Poly {
                    gamma: 0.5,
                    coef0: 1.0,
                    degree,
                },
                1.0,
            )
        };
        let ts: Vec<f32> = (0..1000).map(|i| -3.0 + 0.01 * i as f32).collect();
        let (value, _) = check(
            &[(Profile::Identity, 2.0), poly(2), poly(3)],
            -3.0,
            7.0,
            &ts,
            &[1.0, 1.0, 1.0],
        );
        // The largest value is 2·7 + 4.5² + 4.5³ = 125.
        assert!(value < 125.0 * 1e-12, "{value:e}");
        check(&[poly(9)], -3.0, 7.0, &ts, &[1.0]);
    }

    #[test]
    fn zero_statistic_gives_one_for_any_width() {
        for width in [1e-12, 1e-3, 1.0, 1e12] {
            let table = Basis::new(&exps(&[width]), 0.0, 100.0).combine(&[1.0]);
            assert_eq!(table.at(0.0) as f32, 1.0, "width {width}");
        }
    }

    #[test]
    fn degenerate_ranges_do_not_fail() {
        check(&exps(&[1.0]), 0.0, 0.0, &[0.0], &[1.0]);
        check(
            &[
                (Profile::Identity, 1.0),
                (
                    Profile::Poly {
                        gamma: 1.0,
                        coef0: 0.0,
                        degree: 2,
                    },
                    1.0,
                ),
            ],
            3.0,
            3.0,
            &[3.0],
            &[1.0, 2.0],
        );
        check(
            &[(
                Profile::Poly {
                    gamma: 1.0,
                    coef0: 0.0,
                    degree: 2,
                },
                1.0,
            )],
            0.0,
            0.0,
            &[0.0],
            &[1.0],
        );
    }

    proptest! {
        #[test]
        fn errors_stay_below_the_stated_bound(
            widths in prop::collection::vec(-6.0f64..6.0, 1..6),
            ts in prop::collection::vec(-8.0f64..5.0, 1..60),
        ) {
            let widths: Vec<f64> = widths.iter().map(|w| 10f64.powf(*w)).collect();
            let ts: Vec<f32> = ts.iter().map(|t| 10f64.powf(*t) as f32).collect();
            let high = ts.iter().fold(0.0f32, |m, &t| m.max(t));
            let beta: Vec<f64> = (0..widths.len()).map(|m| 1.0 + m as f64).collect();
            check(&exps(&widths), 0.0, f64::from(high), &ts, &beta);
        }
    }
}
