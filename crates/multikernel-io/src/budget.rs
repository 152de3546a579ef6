//! How much memory data may become.

use multikernel::error::{Error, Result};

/// A single line or record longer than this is taken for damage (an unclosed quote, a binary file).
const LONGEST_RECORD: u64 = 1 << 30;

/// The bytes that the data may take, counted before they are allocated.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    limit: Option<u64>,
    used: u64,
}

impl Budget {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Budget { limit, used: 0 }
    }

    /// Counts `bytes`, or refuses.
    pub(super) fn charge(&mut self, what: &str, bytes: u64) -> Result<()> {
        let needed = self.used.saturating_add(bytes);
        if let Some(limit) = self.limit
            && needed > limit
        {
            return Err(self.refusal(what, needed));
        }
        self.used = needed;
        Ok(())
    }

    fn refusal(&self, what: &str, needed: u64) -> Error {
        Error::Memory {
            what: format!("reading {what} (all data so far included)"),
            needed,
            available: self.limit.unwrap_or(0),
            remedy: "allow more memory, or give fewer rows, columns or matrices".into(),
        }
    }

    pub(super) fn refund(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Room for `more` elements at once, and no more than that.
    pub(super) fn reserve_exact<T>(
        &mut self,
        values: &mut Vec<T>,
        more: usize,
        what: &str,
    ) -> Result<()> {
        let wanted = values.len().saturating_add(more);
        self.grow_to(values, wanted, what)
    }

    /// Room for `more` elements, growing by half where the end is unknown.
    pub(super) fn reserve<T>(
        &mut self,
        values: &mut Vec<T>,
        more: usize,
        what: &str,
    ) -> Result<()> {
        let wanted = values.len().saturating_add(more);
        if wanted <= values.capacity() {
            return Ok(());
        }
        let generous = wanted
            .max(values.capacity() + values.capacity() / 2)
            .max(64);
        match self.grow_to(values, generous, what) {
            Ok(()) => Ok(()),
            Err(_) => self.grow_to(values, wanted, what),
        }
    }

    fn grow_to<T>(&mut self, values: &mut Vec<T>, capacity: usize, what: &str) -> Result<()> {
        let Some(more) = capacity.checked_sub(values.capacity()) else {
            return Ok(());
        };
        let bytes = (more as u64).saturating_mul(size_of::<T>() as u64);
        self.charge(what, bytes)?;
        if values.try_reserve_exact(capacity - values.len()).is_err() {
            self.refund(bytes);
            return Err(self.refusal(what, self.used.saturating_add(bytes)));
        }
        Ok(())
    }

    /// Gives back the room that was not needed.
    pub(super) fn settle<T>(&mut self, values: &mut Vec<T>) {
        let spare = values.capacity() - values.len();
        values.shrink_to_fit();
        self.refund((spare * size_of::<T>()) as u64);
    }

    /// Bytes of the longest line or record that may be read.
    pub(super) fn longest_record(&self) -> u64 {
        self.limit.unwrap_or(LONGEST_RECORD).min(LONGEST_RECORD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_refuses_before_it_allocates_and_gives_back() {
        let mut budget = Budget::new(Some(1000));
        let mut values: Vec<f32> = Vec::new();
        budget.reserve_exact(&mut values, 200, "x").unwrap();
        let error = budget.reserve_exact(&mut values, 1 << 60, "x").unwrap_err();
        assert!(
            matches!(
                error,
                Error::Memory {
                    available: 1000,
                    ..
                }
            ),
            "{error}"
        );
        values.push(1.0);
        budget.settle(&mut values);
        assert_eq!(budget.used, 4);
        budget.reserve_exact(&mut values, 240, "x").unwrap();
    }
}
