//! The weighted degree kernel with shifts (Rätsch, Sonnenburg, Schölkopf 2005), for strings of equal length L:
//!
//! t(x, y) = Σ_{s=0..S} δ_s Σ_{d=1..D} β_d Σ_l ( [x_{l+s} = y_l over d letters] + [x_l = y_{l+s} over d letters] ),
//! β_d = 2(D−d+1)/(D(D+1)), δ_s = 1/(2(s+1)); for S = 0 the two brackets are equal and t = Σ_d β_d Σ_l [match].
//!
//! Letters are written as bits of a few planes, so 64 positions are compared at once. Of the word of matches, d-mers
//! are counted by shifting and counting bits for d ≤ [`COUNTED`]; longer ones are rare in random strings and long in
//! related ones, and are summed run by run. A pair costs about (S+1)·L/32·(planes + COUNTED) steps and one per long run.

use crate::error::{Error, Result};
use multiversion::multiversion;
use std::ops::Range;

/// d-mers up to this length are counted by bits.
const COUNTED: usize = 4;

/// Strings of equal length as planes of bits.
#[derive(Debug)]
pub(super) struct Strings {
    length: usize,
    /// Letters of the training strings; the number of one is its place.
    letters: Vec<u8>,
    planes: usize,
    words: usize,
    /// Plane p of string i stands at (i·planes + p)·words.
    bits: Vec<u64>,
    /// Where a string has a letter that no training string has, if any string has: they match nothing.
    strange: Vec<u64>,
    weights: Weights,
    shift: usize,
    pub(super) diagonal: Vec<f32>,
}

#[derive(Debug)]
struct Weights {
    /// β_d of d = 1…COUNTED (0 beyond D).
    counted: [f64; COUNTED],
    /// What the d-mers longer than COUNTED in a run of q starts of COUNTED-mers add up to; q = 0…L.
    runs: Vec<f64>,
    /// What a string of each length 0…L has with itself.
    whole: Vec<f64>,
}

impl Weights {
    fn new(degree: usize, length: usize) -> Self {
        let (largest, total) = (degree as f64, degree as f64 * (degree as f64 + 1.0));
        let weight = |d: usize| {
            if d <= degree {
                2.0 * (largest - d as f64 + 1.0) / total
            } else {
                0.0
            }
        };
        // Adding a letter to a run of r letters adds one d-mer for each d ≤ r + 1.
        let run = |from: usize| {
            let (mut sum, mut per_letter) = (0.0, 0.0);
            let mut sums = vec![0.0];
            for letters in 1..=length {
                if letters >= from {
                    per_letter += weight(letters);
                }
                sum += per_letter;
                sums.push(sum);
            }
            sums
        };
        let long = run(COUNTED + 1);
        let runs = (0..=length)
            .map(|q| {
                if q == 0 {
                    0.0
                } else {
                    long[(q + COUNTED - 1).min(length)]
                }
            })
            .collect();
        Weights {
            counted: std::array::from_fn(|d| weight(d + 1)),
            runs,
            whole: run(1),
        }
    }
}

/// δ_s
fn shift_weight(shift: usize) -> f64 {
    0.5 / (shift as f64 + 1.0)
}

impl Strings {
    pub(super) fn new(
        degree: usize,
        shift: usize,
        strings: &[Vec<u8>],
        reference: Option<&Strings>,
    ) -> Result<Self> {
        if degree == 0 {
            return Err(Error::input(
                "",
                "degree is 0",
                "weighted-degree needs degree ≥ 1",
            ));
        }
        let length = reference.map_or_else(
            || strings.first().map_or(0, Vec::len),
            |reference| reference.length,
        );
        if let Some(i) = strings.iter().position(|string| string.len() != length) {
            let whose = if reference.is_some() {
                "the training strings have"
            } else {
                "the string of row 1 has"
            };
            return Err(Error::input(
                format!("row {}", i + 1),
                format!(
                    "the string has {} letters but {whose} {length}",
                    strings[i].len()
                ),
                "weighted-degree needs strings of equal length",
            ));
        }
        let letters = match reference {
            Some(reference) => reference.letters.clone(),
            None => {
                let mut present = [false; 256];
                for &letter in strings.iter().flatten() {
                    present[usize::from(letter)] = true;
                }
                (0..=255)
                    .filter(|&letter| present[usize::from(letter)])
                    .collect()
            }
        };
        let planes = letters.len().max(1).next_power_of_two().trailing_zeros() as usize;
        let words = length.div_ceil(64);
        let mut numbers = [None; 256];
        for (number, &letter) in letters.iter().enumerate() {
            numbers[usize::from(letter)] = Some(number);
        }
        let mut bits = vec![0; strings.len() * planes * words];
        let mut strange = Vec::new();
        for (i, string) in strings.iter().enumerate() {
            for (l, &letter) in string.iter().enumerate() {
                match numbers[usize::from(letter)] {
                    Some(number) => {
                        for p in 0..planes {
                            bits[(i * planes + p) * words + l / 64] |=
                                ((number >> p & 1) as u64) << (l % 64);
                        }
                    }
                    None => {
                        strange.resize(strings.len() * words, 0);
                        strange[i * words + l / 64] |= 1 << (l % 64);
                    }
                }
            }
        }
        let weights = Weights::new(degree, length);
        let shift = shift.min(length.saturating_sub(1));
        // By letters, not by bits: strange letters match one another here.
        let diagonal = strings
            .iter()
            .map(|string| with_itself(&weights, shift, string) as f32)
            .collect();
        Ok(Strings {
            length,
            letters,
            planes,
            words,
            bits,
            strange,
            weights,
            shift,
            diagonal,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.diagonal.len()
    }

    pub(super) fn bytes(&self) -> usize {
        (self.bits.capacity()
            + self.strange.capacity()
            + self.weights.runs.capacity()
            + self.weights.whole.capacity())
            * size_of::<u64>()
            + self.diagonal.capacity() * size_of::<f32>()
    }

    /// No pair has more: every letter matches at every shift.
    pub(super) fn highest(&self) -> f64 {
        let whole = &self.weights.whole;
        (0..=self.shift)
            .map(|s| 2.0 * shift_weight(s) * whole[self.length - s])
            .sum()
    }

    pub(super) fn block(
        &self,
        rows: &[usize],
        other: &Strings,
        cols: Range<usize>,
        out: &mut [f32],
    ) {
        if !cols.is_empty() {
            block(self, rows, other, cols, out);
        }
    }

    fn planes(&self, i: usize) -> &[u64] {
        &self.bits[i * self.planes * self.words..(i + 1) * self.planes * self.words]
    }

    fn strange(&self, i: usize) -> Option<&[u64]> {
        self.strange
            .get(i * self.words..(i + 1) * self.words)
            .filter(|words| !words.is_empty())
    }
}

fn with_itself(weights: &Weights, shift: usize, string: &[u8]) -> f64 {
    let mut total = weights.whole[string.len()];
    for s in 1..=shift {
        let (mut run, mut sum) = (0, 0.0);
        for (a, b) in string.iter().zip(&string[s..]) {
            if a == b {
                run += 1;
            } else {
                sum += weights.whole[run];
                run = 0;
            }
        }
        total += 2.0 * shift_weight(s) * (sum + weights.whole[run]);
    }
    total
}

#[multiversion(targets("x86_64+popcnt+bmi1+bmi2+lzcnt+avx2", "x86_64+popcnt"))]
fn block(left: &Strings, rows: &[usize], right: &Strings, cols: Range<usize>, out: &mut [f32]) {
    let mut matches = vec![0_u64; left.words + 1];
    for (&i, out) in rows.iter().zip(out.chunks_exact_mut(cols.len())) {
        for (j, out) in cols.clone().zip(out) {
            let (x, y) = (
                (left.planes(i), left.strange(i)),
                (right.planes(j), right.strange(j)),
            );
            compare(left, x, 0, y, &mut matches);
            let mut total = value(&left.weights, &mut matches);
            for s in 1..=left.shift {
                compare(left, x, s, y, &mut matches);
                let ahead = value(&left.weights, &mut matches);
                compare(left, y, s, x, &mut matches);
                total += shift_weight(s) * (ahead + value(&left.weights, &mut matches));
            }
            *out = total as f32;
        }
    }
}

/// A string's planes, and where it has strange letters.
type Bits<'a> = (&'a [u64], Option<&'a [u64]>);

/// Marks the positions l with ahead[l + s] = behind[l]; `matches` has one word of zeros more than it needs.
#[inline(always)]
fn compare(of: &Strings, ahead: Bits<'_>, s: usize, behind: Bits<'_>, matches: &mut [u64]) {
    let positions = of.length - s.min(of.length);
    let (skip, bit) = (s / 64, s % 64);
    let shifted = |words: &[u64], w: usize| {
        let low = words.get(w + skip).copied().unwrap_or(0);
        if bit == 0 {
            return low;
        }
        let high = words.get(w + skip + 1).copied().unwrap_or(0);
        low >> bit | high << (64 - bit)
    };
    for w in 0..of.words {
        let mut different = 0;
        for p in 0..of.planes {
            let plane = p * of.words..(p + 1) * of.words;
            different |= shifted(&ahead.0[plane.clone()], w) ^ behind.0[plane][w];
        }
        different |= ahead.1.map_or(0, |strange| shifted(strange, w));
        different |= behind.1.map_or(0, |strange| strange[w]);
        let inside = match positions.saturating_sub(w * 64) {
            0 => 0,
            left @ 1..64 => (1 << left) - 1,
            _ => u64::MAX,
        };
        matches[w] = !different & inside;
    }
    matches[of.words] = 0;
}

/// Σ_d β_d · (number of runs of d matches); uses up `matches`.
#[inline(always)]
fn value(weights: &Weights, matches: &mut [u64]) -> f64 {
    let words = matches.len() - 1;
    let mut total = 0.0;
    for (d, weight) in weights.counted.iter().enumerate() {
        if d > 0 {
            // A (d+1)-mer starts where a d-mer starts here and at the next position.
            for w in 0..words {
                matches[w] &= matches[w] >> 1 | matches[w + 1] << 63;
            }
        }
        let count: u32 = matches[..words].iter().map(|word| word.count_ones()).sum();
        if count == 0 {
            return total;
        }
        total += weight * f64::from(count);
    }
    // Runs of what is left, across words.
    let mut run = 0;
    for &word in &matches[..words] {
        let mut rest = word;
        let mut left = 64;
        while left > 0 {
            let ones = rest.trailing_ones().min(left);
            run += ones as usize;
            if ones == left {
                break;
            }
            total += weights.runs[run];
            run = 0;
            rest >>= ones;
            let zeros = rest.trailing_zeros().min(left - ones);
            rest = rest.checked_shr(zeros).unwrap_or(0);
            left -= ones + zeros;
        }
    }
    total + weights.runs[run]
}
