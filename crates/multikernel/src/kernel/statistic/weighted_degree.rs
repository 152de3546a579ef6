//! The weighted degree kernel with shifts (Rätsch, Sonnenburg, Schölkopf 2005), for strings of equal length L:
//!
//! t(x, y) = Σ_{s=0..S} δ_s Σ_{d=1..D} β_d Σ_l ( [x_{l+s} = y_l over d letters] + [x_l = y_{l+s} over d letters] ),
//! β_d = 2(D−d+1)/(D(D+1)), δ_s = 1/(2(s+1)); for S = 0 the two brackets are equal and t = Σ_d β_d Σ_l [match].
//!
//! Letters are written as bits of a few planes, so 64 positions are compared at once. Of a word of matches, d-mers are
//! counted by shifting and counting bits for d ≤ [`COUNTED`]; longer ones are rare in random strings and come in long
//! runs in related ones, and are summed run by run. A pair costs about (2S+1)·L/64·(planes + COUNTED) steps and a few
//! for each long run.

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
    /// Plane p of word w of string i stands at (i·words + w)·planes + p.
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
        let length = length_of_all(strings, reference)?;
        let letters = match reference {
            Some(reference) => reference.letters.clone(),
            None => letters_of(strings),
        };
        let planes = letters.len().max(2).next_power_of_two().trailing_zeros() as usize;
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
                            bits[(i * words + l / 64) * planes + p] |=
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
}

/// The length of the training strings, which all strings must have.
fn length_of_all(strings: &[Vec<u8>], reference: Option<&Strings>) -> Result<usize> {
    let (length, whose) = match reference {
        Some(reference) => (reference.length, "the training strings have"),
        None => (
            strings.first().map_or(0, Vec::len),
            "the string of row 1 has",
        ),
    };
    match strings.iter().position(|string| string.len() != length) {
        None => Ok(length),
        Some(i) => Err(Error::input(
            "",
            format!(
                "the string has {} letters but {whose} {length}",
                strings[i].len()
            ),
            "weighted-degree needs strings of equal length",
        )
        .of_row(i)),
    }
}

/// The letters that there are, in order.
fn letters_of(strings: &[Vec<u8>]) -> Vec<u8> {
    let mut present = [false; 256];
    for &letter in strings.iter().flatten() {
        present[usize::from(letter)] = true;
    }
    (0..=255)
        .filter(|&letter| present[usize::from(letter)])
        .collect()
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

/// One string, moved by some positions, ready to be compared with many: for each word the positions that count, then
/// the planes.
struct Moved {
    weight: f64,
    words: Vec<u64>,
}

impl Strings {
    /// String i as it is, and moved back and forth by every shift.
    fn moved(&self, i: usize) -> Vec<Moved> {
        let stride = self.planes + 1;
        let inside = |w: usize| match self.length - w * 64 {
            left @ 0..64 => (1_u64 << left) - 1,
            _ => u64::MAX,
        };
        // The string itself: all positions count but those of strange letters.
        let mut words = vec![0; self.words * stride];
        for (w, word) in words.chunks_exact_mut(stride).enumerate() {
            word[0] = inside(w) & !self.strange.get(i * self.words + w).copied().unwrap_or(0);
            word[1..]
                .copy_from_slice(&self.bits[(i * self.words + w) * self.planes..][..self.planes]);
        }
        let mut all = Vec::with_capacity(2 * self.shift + 1);
        for s in 1..=self.shift {
            // Positions that are moved in from outside are zeros and do not count, nor do those moved beyond the end.
            let (skip, bit) = (s / 64, s % 64);
            let at = |w: Option<usize>, p: usize| {
                w.and_then(|w| words.get(w * stride + p))
                    .copied()
                    .unwrap_or(0)
            };
            let carried = |word: u64, by: usize, left: bool| match (by, left) {
                (64, _) => 0,
                (by, true) => word << by,
                (by, false) => word >> by,
            };
            for back in [true, false] {
                let place = |k: usize| {
                    let (w, p) = (k / stride, k % stride);
                    let kept = if p == 0 { inside(w) } else { u64::MAX };
                    kept & if back {
                        carried(at(w.checked_add(skip), p), bit, false)
                            | carried(at(w.checked_add(skip + 1), p), 64 - bit, true)
                    } else {
                        carried(at(w.checked_sub(skip), p), bit, true)
                            | carried(at(w.checked_sub(skip + 1), p), 64 - bit, false)
                    }
                };
                all.push(Moved {
                    weight: shift_weight(s),
                    words: (0..words.len()).map(place).collect(),
                });
            }
        }
        all.insert(0, Moved { weight: 1.0, words });
        all
    }
}

#[multiversion(targets("x86_64+popcnt+bmi1+bmi2+lzcnt", "x86_64+popcnt"))]
fn block(left: &Strings, rows: &[usize], right: &Strings, cols: Range<usize>, out: &mut [f32]) {
    let size = right.planes * right.words;
    for (&i, out) in rows.iter().zip(out.chunks_exact_mut(cols.len())) {
        let moved = left.moved(i);
        for (j, out) in cols.clone().zip(out) {
            let y = &right.bits[j * size..(j + 1) * size];
            let strange = right
                .strange
                .get(j * right.words..(j + 1) * right.words)
                .unwrap_or(&[]);
            let total: f64 = moved
                .iter()
                .map(|x| x.weight * value(&left.weights, right.planes, &x.words, y, strange))
                .sum();
            *out = total as f32;
        }
    }
}

/// Σ_d β_d · (number of places where d letters in a row match).
#[inline(always)]
fn value(weights: &Weights, planes: usize, x: &[u64], y: &[u64], strange: &[u64]) -> f64 {
    let mut strange = strange.iter();
    let mut matches = x
        .chunks_exact(planes + 1)
        .zip(y.chunks_exact(planes))
        .map(|(x, y)| {
            let different = x[1..]
                .iter()
                .zip(y)
                .fold(0, |different, (x, y)| different | (x ^ y));
            x[0] & !different & !strange.next().copied().unwrap_or(0)
        });
    let Some(mut here) = matches.next() else {
        return 0.0;
    };
    let mut counts = [0_u32; COUNTED];
    let (mut total, mut run) = (0.0, 0);
    loop {
        let next = matches.next();
        // Where one letter, two letters, … match from here on, some of them in the next word.
        let mut starts = here;
        counts[0] += starts.count_ones();
        for (d, count) in counts.iter_mut().enumerate().skip(1) {
            starts &= here >> d | next.unwrap_or(0) << (64 - d);
            *count += starts.count_ones();
        }
        // Runs of what is left, which may go on in the next word.
        if starts != 0 || run > 0 {
            let mut left = 64;
            while left > 0 {
                let ones = starts.trailing_ones().min(left);
                run += ones as usize;
                if ones == left {
                    break;
                }
                total += weights.runs[run];
                run = 0;
                starts >>= ones;
                let zeros = starts.trailing_zeros().min(left - ones);
                starts = starts.checked_shr(zeros).unwrap_or(0);
                left -= ones + zeros;
            }
        }
        match next {
            Some(word) => here = word,
            None => break,
        }
    }
    total += weights.runs[run];
    total
        + counts
            .iter()
            .zip(&weights.counted)
            .map(|(&count, weight)| weight * f64::from(count))
            .sum::<f64>()
}
