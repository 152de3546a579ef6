//! Rows of a statistic that is computed when asked for, kept in bounded memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// Rows of a statistic, bounded in number; the one used longest ago goes first.
#[derive(Debug)]
pub(super) struct RowCache {
    capacity: usize,
    clock: u64,
    rows: HashMap<usize, (u64, Arc<[f32]>)>,
    by_age: BTreeMap<u64, usize>,
}

impl RowCache {
    pub(super) fn new(capacity: usize) -> Self {
        RowCache {
            capacity,
            clock: 0,
            rows: HashMap::new(),
            by_age: BTreeMap::new(),
        }
    }

    pub(super) fn find(&mut self, rows: &[usize]) -> Vec<Option<Arc<[f32]>>> {
        if self.rows.is_empty() {
            return vec![None; rows.len()];
        }
        rows.iter()
            .map(|i| {
                let (age, row) = self.rows.get_mut(i)?;
                self.by_age.remove(age);
                self.clock += 1;
                *age = self.clock;
                self.by_age.insert(self.clock, *i);
                Some(row.clone())
            })
            .collect()
    }

    pub(super) fn insert(&mut self, rows: &[usize], values: &[f32], n_cols: usize) {
        if rows.len() > self.capacity {
            return;
        }
        for (k, &i) in rows.iter().enumerate() {
            if self.rows.contains_key(&i) {
                continue;
            }
            if self.rows.len() == self.capacity
                && let Some((_, oldest)) = self.by_age.pop_first()
            {
                self.rows.remove(&oldest);
            }
            self.clock += 1;
            self.by_age.insert(self.clock, i);
            self.rows
                .insert(i, (self.clock, values[k * n_cols..(k + 1) * n_cols].into()));
        }
    }
}

/// A poisoned cache is still a cache: rows are inserted whole.
pub(super) fn lock(cache: &Mutex<RowCache>) -> std::sync::MutexGuard<'_, RowCache> {
    cache
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_forgets_what_was_used_longest_ago() {
        let mut cache = RowCache::new(4);
        for i in 0..4 {
            cache.insert(&[i], &[i as f32, 0.5], 2);
        }
        assert!(cache.find(&[0])[0].is_some());
        cache.insert(&[9], &[9.0, 0.5], 2);
        let found = cache.find(&[0, 1, 2, 3, 9]);
        let there: Vec<bool> = found.iter().map(Option::is_some).collect();
        assert_eq!(there, [true, false, true, true, true]);
        assert_eq!(found[4].as_deref(), Some(&[9.0, 0.5][..]));
        cache.insert(&[20, 21, 22, 23, 24], &[0.0; 10], 2);
        assert!(cache.find(&[20])[0].is_none(), "more than fits is not kept");
        assert_eq!(cache.rows.len(), cache.by_age.len());
    }
}
