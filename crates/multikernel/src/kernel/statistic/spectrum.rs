//! k-mer counts of strings.
//!
//! Every k-mer gets a number. Up to 16 bytes a k-mer is its own key; longer ones are named step by step from two
//! overlapping shorter ones, so equal names mean equal k-mers, for any k and any bytes, without hashing text.

use crate::data::Csr;
use crate::error::{Error, Result};
use std::collections::HashMap;

/// Bytes that fit into one key.
const KEY: usize = 16;

/// The numbers of the training samples' k-mers.
#[derive(Debug)]
pub(super) struct Dictionary {
    k: usize,
    levels: Vec<HashMap<u128, u32>>,
}

/// k-mer counts, and for each string Σ count² of the k-mers that no training sample has.
pub(super) struct Counts {
    pub(super) known: Csr,
    pub(super) unknown: Vec<f64>,
}

impl Dictionary {
    pub(super) fn bytes(&self) -> usize {
        let entry = size_of::<(u128, u32)>() + 1;
        self.levels
            .iter()
            .map(|level| level.capacity() * entry)
            .sum()
    }

    /// Numbers all k-mers of the training strings and counts them.
    pub(super) fn learn(k: usize, strings: &[Vec<u8>]) -> Result<(Self, Counts)> {
        if k == 0 {
            return Err(Error::input("", "k is 0", "spectrum needs k ≥ 1"));
        }
        let (levels, counts) = count(k, strings, &[])?;
        Ok((Dictionary { k, levels }, counts))
    }

    /// Counts the k-mers of new strings.
    pub(super) fn count(&self, strings: &[Vec<u8>]) -> Result<Counts> {
        Ok(count(self.k, strings, &self.levels)?.1)
    }
}

/// How many levels of names lead to length k.
fn depth(k: usize) -> usize {
    let (mut length, mut levels) = (KEY, 1);
    while length < k {
        length += length.min(k - length);
        levels += 1;
    }
    levels
}

/// Numbers k-mers by the levels known, and by levels of its own (which are returned) where those know nothing.
fn count(
    k: usize,
    strings: &[Vec<u8>],
    known: &[HashMap<u128, u32>],
) -> Result<(Vec<HashMap<u128, u32>>, Counts)> {
    let positions = strings
        .iter()
        .map(|string| (string.len() + 1).saturating_sub(k))
        .try_fold(0_usize, |sum, n| sum.checked_add(n));
    if positions.is_none_or(|n| n >= u32::MAX as usize / 2) {
        return Err(Error::input(
            "",
            "the strings hold more than two thousand million k-mers",
            "use fewer or shorter strings",
        ));
    }
    let mut own = vec![HashMap::new(); depth(k)];
    let mut name = |level: usize, key: u128| -> u32 {
        let known = known.get(level);
        if let Some(&number) = known.and_then(|level| level.get(&key)) {
            return number;
        }
        let next = known.map_or(0, HashMap::len) + own[level].len();
        *own[level].entry(key).or_insert(next as u32)
    };
    let columns = known.last().map(HashMap::len);
    let mut starts = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    let mut unknown = Vec::with_capacity(strings.len());
    let mut names: Vec<u32> = Vec::new();
    for string in strings {
        names.clear();
        if string.len() >= k {
            let mut length = k.min(KEY);
            names.extend(string.windows(length).map(|bytes| {
                let mut key = [0; KEY];
                key[..length].copy_from_slice(bytes);
                name(0, u128::from_le_bytes(key))
            }));
            let mut level = 1;
            while length < k {
                let step = length.min(k - length);
                for l in 0..names.len() - step {
                    names[l] = name(
                        level,
                        u128::from(names[l]) << 64 | u128::from(names[l + step]),
                    );
                }
                names.truncate(names.len() - step);
                length += step;
                level += 1;
            }
        }
        names.sort_unstable();
        let mut outside = 0.0;
        for equal in names.chunk_by(|a, b| a == b) {
            if columns.is_some_and(|columns| equal[0] as usize >= columns) {
                outside += (equal.len() as f64).powi(2);
            } else {
                indices.push(equal[0]);
                values.push(equal.len() as f32);
            }
        }
        starts.push(indices.len());
        unknown.push(outside);
    }
    let columns = columns.unwrap_or_else(|| own.last().map_or(0, HashMap::len));
    let known = Csr::new(columns, starts, indices, values)?;
    Ok((own, Counts { known, unknown }))
}
