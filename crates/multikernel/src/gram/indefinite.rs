//! Given kernel matrices that are not positive semidefinite: found before any work is lost, and what may be done.
//!
//! A matrix counts as indefinite when its smallest eigenvalue is below −1e-4·max|K|·n. Up to [`EXACT`] samples that
//! eigenvalue is estimated by Lanczos on the whole matrix. Above, a scan of all pairs for |k_ij|² > k_ii k_jj (two
//! samples are enough to prove it) and a seeded principal submatrix decide whether the whole matrix is looked at.

use super::clip::{self, Projection};
use crate::data::Pairwise;
use crate::eigen::extremes;
use crate::error::{Error, Result};
use crate::kernel::Profile;
use crate::math::mixed_dot;
use crate::observe::{self, Observer};
use crate::random::Random;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::str::FromStr;

/// Up to this many samples the whole matrix is always looked at.
const EXACT: usize = 1000;
/// Share of max|K|·n by which the smallest eigenvalue may be below 0.
const TOLERATED: f64 = 1e-4;

/// What to do with an indefinite matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indefinite {
    /// Refuse it.
    #[default]
    Error,
    /// Take the nearest positive semidefinite matrix instead: negative eigenvalues become 0.
    Clip,
    /// Add the size of the smallest eigenvalue to the diagonal.
    Shift,
    /// Take it as it is: the problem may have no optimum, and the certificate says how far one got.
    Allow,
}

impl FromStr for Indefinite {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "error" => Ok(Indefinite::Error),
            "clip" => Ok(Indefinite::Clip),
            "shift" => Ok(Indefinite::Shift),
            "allow" => Ok(Indefinite::Allow),
            _ => Err(Error::input(
                "indefinite",
                format!("'{text}' is not known"),
                "write error, clip, shift or allow",
            )),
        }
    }
}

/// What was done with a kernel whose training matrix was indefinite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Repair {
    /// Its negative eigenvalues became 0; this takes the same directions off the rows of new samples.
    Clip(Projection),
    /// Something was added to its diagonal. New samples are not on it.
    Shift,
}

/// A matrix that was made positive semidefinite.
pub(super) struct Repaired {
    pub(super) matrix: Pairwise,
    pub(super) repair: Repair,
    /// What was done, in a sentence.
    pub(super) note: String,
}

impl Repaired {
    /// Bytes that it holds for good.
    pub(super) fn bytes(&self) -> u64 {
        let directions = match &self.repair {
            Repair::Clip(projection) => projection.bytes(),
            Repair::Shift => 0,
        };
        self.matrix.bytes_in_memory() + directions
    }
}

/// The kernel φ(t) of a given matrix of t.
pub(super) struct Given<'a> {
    pub(super) matrix: &'a Pairwise,
    pub(super) profile: Profile,
}

impl Given<'_> {
    pub(super) fn row(&self, i: usize) -> Cow<'_, [f32]> {
        let row = self.matrix.row(i);
        match self.profile {
            Profile::Identity => Cow::Borrowed(row),
            profile => row
                .iter()
                .map(|&t| profile.value(f64::from(t)) as f32)
                .collect(),
        }
    }

    fn map_rows<T: Send>(&self, f: impl Fn(usize, &[f32]) -> T + Sync) -> Vec<T> {
        self.matrix.map_rows(|i, _| f(i, &self.row(i)))
    }

    /// All rows, one after the other.
    pub(super) fn values(&self) -> Vec<f32> {
        let mut values = Vec::with_capacity(self.matrix.rows() * self.matrix.cols());
        for i in 0..self.matrix.rows() {
            values.extend_from_slice(&self.row(i));
            self.matrix.release_rows(i..i + 1);
        }
        values
    }
}

/// Checks a square symmetric matrix and repairs it as asked, within `memory` bytes; none if it stays as it is.
/// `name` says what it is, as in: kernel matrix 'a'.
pub(super) fn check(
    given: &Given<'_>,
    name: &str,
    policy: Indefinite,
    memory: u64,
    observer: &dyn Observer,
) -> Result<Option<Repaired>> {
    if policy == Indefinite::Allow {
        return Ok(None);
    }
    if policy == Indefinite::Error && given.profile != Profile::Identity {
        refuse_negative_distances(given.matrix, name)?;
    }
    let n = given.matrix.rows();
    let largest = largest_entry(given);
    let floor = -TOLERATED * largest * n as f64;
    if n > EXACT && !suspicious(given, largest) {
        return Ok(None);
    }
    let everyone: Vec<usize> = (0..n).collect();
    let smallest = smallest_eigenvalue(given, &everyone);
    if smallest >= floor {
        return Ok(None);
    }
    let fits = |needed: u64, remedy: &str| match needed <= memory {
        true => Ok(()),
        false => Err(Error::Memory {
            what: format!("making {name} of {n} samples positive semidefinite"),
            needed,
            available: memory,
            remedy: remedy.into(),
        }),
    };
    match policy {
        Indefinite::Allow => Ok(None),
        Indefinite::Error => Err(Error::input(
            name,
            format!(
                "it is not positive semidefinite: its smallest eigenvalue is about {smallest:.3}, its largest entry {largest:.3}"
            ),
            "repair the matrix, or say what to do with it: `indefinite` clip, shift or allow",
        )),
        Indefinite::Shift => {
            fits(4 * (n as u64).pow(2), "allow more memory")?;
            shifted(given, name, smallest).map(Some)
        }
        Indefinite::Clip => {
            fits(
                clip::bytes(n),
                "allow more memory, or take `indefinite` shift, which needs less",
            )?;
            clipped(given, name, largest, observer)
        }
    }
}

/// With enough added to the diagonal that no eigenvalue is below 0.
fn shifted(given: &Given<'_>, name: &str, smallest: f64) -> Result<Repaired> {
    let n = given.matrix.rows();
    // The estimate is never below the true eigenvalue: a little more makes it safe.
    let shift = -1.01 * smallest;
    let mut values = given.values();
    for value in values.iter_mut().step_by(n + 1) {
        *value += shift as f32;
    }
    Ok(Repaired {
        matrix: Pairwise::new(n, n, values)?,
        repair: Repair::Shift,
        note: format!("{name} is indefinite: {shift:.3} was added to its diagonal"),
    })
}

/// With 0 in the place of its negative eigenvalues; none if there are none.
fn clipped(
    given: &Given<'_>,
    name: &str,
    largest: f64,
    observer: &dyn Observer,
) -> Result<Option<Repaired>> {
    let stage = &format!("clipping {name}");
    observe::work(observer, stage, 0, 1)?;
    let clipped = clip::clip(given.matrix.rows(), |i| given.row(i), largest);
    let clipped = clipped.map_err(|e| e.within(name))?;
    observe::work(observer, stage, 1, 1)?;
    Ok(clipped.map(|clipped| Repaired {
        note: format!(
            "{name} is indefinite: its {} negative eigenvalues were set to 0, which changed it by {:.2} % (Frobenius norm)",
            clipped.projection.directions(),
            100.0 * clipped.change
        ),
        matrix: clipped.matrix,
        repair: Repair::Clip(clipped.projection),
    }))
}

fn largest_entry(given: &Given<'_>) -> f64 {
    let of_row = |_, row: &[f32]| row.iter().fold(0.0f32, |a, v| a.max(v.abs()));
    given
        .map_rows(of_row)
        .into_iter()
        .fold(0.0, f32::max)
        .into()
}

/// The kernel of a distance below 0 is above that of a sample with itself: more likely the matrix is none of distances.
fn refuse_negative_distances(matrix: &Pairwise, name: &str) -> Result<()> {
    let extremes = matrix.map_rows(|_, row| {
        let least = |least: (usize, f32), (j, &t): (usize, &f32)| match t < least.1 {
            true => (j, t),
            false => least,
        };
        let largest = row.iter().fold(0.0f32, |most, t| most.max(t.abs()));
        (row.iter().enumerate().fold((0, 0.0), least), largest)
    });
    let largest = extremes.iter().fold(0.0f32, |most, row| most.max(row.1));
    let slack = (TOLERATED * f64::from(largest)) as f32;
    match extremes
        .iter()
        .enumerate()
        .find(|(_, row)| row.0.1 < -slack)
    {
        None => Ok(()),
        Some((i, ((j, distance), _))) => Err(Error::input(
            name,
            format!(
                "the distance of samples {} and {} is {distance}",
                i + 1,
                j + 1
            ),
            "give distances of 0 or more; or a matrix of similarities as it is, with the kernel precomputed",
        )),
    }
}

/// Whether two samples prove, or a sample of the samples suggests, that the matrix is indefinite.
fn suspicious(given: &Given<'_>, largest: f64) -> bool {
    let n = given.matrix.rows();
    let diagonal: Vec<f32> = given.map_rows(|i, row| row[i]);
    let slack = (TOLERATED * largest) as f32;
    let proved = given.map_rows(|i, row| {
        let own = diagonal[i];
        own < -slack
            || row
                .iter()
                .zip(&diagonal)
                .any(|(k, other)| k.abs() > (own.max(0.0) * other.max(0.0)).sqrt() + slack)
    });
    if proved.contains(&true) {
        return true;
    }
    let some = Random::new(0).sample(n, EXACT);
    smallest_eigenvalue(given, &some) < -TOLERATED * largest * some.len() as f64
}

/// An estimate, never below the truth, for the principal submatrix of the samples named.
fn smallest_eigenvalue(given: &Given<'_>, samples: &[usize]) -> f64 {
    let m = samples.len();
    let everyone = m == given.matrix.rows();
    let part: Vec<f32> = if everyone {
        Vec::new()
    } else {
        let mut values = Vec::with_capacity(m * m);
        for some in samples.chunks(16) {
            for &i in some {
                let row = given.row(i);
                values.extend(samples.iter().map(|&j| row[j]));
            }
            // The system reads ahead, so more than these rows is in memory by now.
            given.matrix.release();
        }
        values
    };
    let multiply = |x: &[f64], out: &mut [f64]| {
        if everyone {
            out.copy_from_slice(&given.map_rows(|_, row| mixed_dot(row, x)));
        } else {
            out.par_iter_mut()
                .zip(part.par_chunks(m))
                .for_each(|(o, row)| *o = mixed_dot(row, x));
        }
    };
    // The threshold is loose, so a loose estimate will do.
    extremes(m, multiply, 1e-4, 60).smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n: usize, entry: impl Fn(usize, usize) -> f32) -> Pairwise {
        Pairwise::new(n, n, (0..n * n).map(|k| entry(k / n, k % n)).collect()).unwrap()
    }

    fn checked(matrix: &Pairwise, policy: Indefinite, memory: u64) -> Result<Option<Repaired>> {
        let profile = Profile::Identity;
        check(&Given { matrix, profile }, "it", policy, memory, &())
    }

    fn repaired(matrix: &Pairwise, policy: Indefinite) -> Repaired {
        checked(matrix, policy, u64::MAX).unwrap().unwrap()
    }

    fn passes(matrix: &Pairwise, policy: Indefinite) -> bool {
        checked(matrix, policy, u64::MAX).unwrap().is_none()
    }

    #[test]
    fn distances_below_zero_are_named() {
        let profile = Profile::Exp { width: 2.0 };
        let said = |least: f32, policy| {
            let matrix = matrix(3, |i, j| match (i.min(j), i.max(j)) {
                (1, 2) => least,
                (a, b) => f32::from(u8::from(a != b)),
            });
            let matrix = &matrix;
            check(
                &Given { matrix, profile },
                "kernel 'd'",
                policy,
                u64::MAX,
                &(),
            )
            .err()
            .map(|error| error.to_string())
        };
        let error = said(-0.5, Indefinite::Error).unwrap();
        assert!(
            error
                .starts_with("kernel 'd': the distance of samples 2 and 3 is -0.5; give distances"),
            "{error}"
        );
        assert_eq!(said(-1e-6, Indefinite::Error), None, "rounding");
        assert_eq!(said(-0.5, Indefinite::Allow), None);
    }

    #[test]
    fn kernels_pass_and_others_are_named() {
        for n in [2, 50, 1200] {
            let good = matrix(n, |i, j| (-((i as f32 - j as f32) / 5.0).powi(2)).exp());
            for policy in [Indefinite::Error, Indefinite::Clip, Indefinite::Shift] {
                assert!(passes(&good, policy), "{n} {policy:?}");
            }
            // One pair that no kernel can have.
            let bad = matrix(n, |i, j| match (i, j) {
                (0, 1) | (1, 0) => 3.0,
                _ if i == j => 1.0,
                _ => 0.0,
            });
            let error = checked(&bad, Indefinite::Error, u64::MAX).err().unwrap();
            let error = error.to_string();
            assert!(
                error.starts_with("it: ") && error.contains("eigenvalue is about -2.000"),
                "{error}"
            );
            assert!(passes(&bad, Indefinite::Allow));
            let shifted = repaired(&bad, Indefinite::Shift);
            assert!(
                shifted.note.contains("was added to its diagonal"),
                "{}",
                shifted.note
            );
            assert!(passes(&shifted.matrix, Indefinite::Error));
            let clipped = repaired(&bad, Indefinite::Clip);
            assert!(
                clipped.note.contains("its 1 negative eigenvalues were set"),
                "{}",
                clipped.note
            );
            assert!(passes(&clipped.matrix, Indefinite::Error));
            // (1 + 3)/2 in the only direction that is left of the pair.
            for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                assert!((clipped.matrix.row(i)[j] - 2.0).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn repairs_stay_within_the_memory() {
        let n = 60;
        let bad = matrix(n, |i, j| if i == j { 0.0 } else { 1.0 });
        for (policy, needed) in [
            (Indefinite::Clip, clip::bytes(n)),
            (Indefinite::Shift, 4 * 60 * 60),
        ] {
            assert!(checked(&bad, policy, needed).is_ok());
            let error = checked(&bad, policy, needed - 1).err().unwrap();
            assert!(matches!(error, Error::Memory { .. }), "{error}");
        }
    }

    #[test]
    fn a_spread_negative_direction_is_found_in_a_large_matrix() {
        let n = 1500;
        let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        let bad = matrix(n, |i, j| {
            f32::from(u8::from(i == j)) * 2.0 - 0.01 * sign(i) * sign(j)
        });
        assert!(checked(&bad, Indefinite::Error, u64::MAX).is_err());
    }
}
