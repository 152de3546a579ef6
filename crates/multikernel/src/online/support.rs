//! The samples that θ is made of: rows in contiguous memory, sparse coefficients, and which chunks of them changed when.
//!
//! A slot's place decides where its terms stand in every sum, so it is part of the state. Sums over the support are made of
//! sums over chunks of [`CHUNK`] slots: a chunk that did not change need not be summed again, and the bits are the same.

use super::bank::{Bank, Scratch};
use super::sample::{Row, Sample, Sizes};
use crate::kernel::statistic::Statistic;
use crate::kernel::statistic::one_to_many::{self, LANES};
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

/// Slots whose terms are summed together.
pub(super) const CHUNK: usize = 64;
/// Chunks in a task.
const CHUNKS_IN_TASK: usize = 16;
/// Samples in a task: a chunk is read from memory once for all of them.
const SAMPLES_IN_TASK: usize = 8;
/// A loop over fewer pairs is over before other threads would have woken up.
const FEW_PAIRS: usize = 512;

/// The support of θ.
#[derive(Debug)]
pub(super) struct Support {
    kernels: usize,
    /// Numbers per class and slot: 1, or one for each kernel.
    width: usize,
    rows: Vec<ViewRows>,
    /// k_m(x, x), slot after slot
    diagonal: Vec<f64>,
    /// Slot after slot; empty if no kernel needs them.
    roots: Vec<f64>,
    spherical: bool,
    slots: Vec<Slot>,
    /// Slot of each sample number.
    places: HashMap<u64, usize>,
    /// The clock when each chunk changed last.
    changed: Vec<u64>,
    clock: u64,
}

/// Rows of one view.
#[derive(Debug)]
struct ViewRows {
    form: RowForm,
    /// 1/√Σx²
    units: Vec<f64>,
    sizes: Vec<Sizes>,
}

#[derive(Debug)]
enum RowForm {
    Dense { stride: usize, values: Vec<f32> },
    Sparse(Vec<(Vec<u32>, Vec<f32>)>),
}

/// What a slot holds beside its rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Slot {
    /// The number of its example in the stream, from 0.
    pub(super) number: u64,
    /// The update that brought it.
    pub(super) born: u64,
    /// Classes with a coefficient, in the order in which they came.
    pub(super) classes: Vec<u32>,
    /// ĉ, class after class.
    pub(super) values: Vec<f64>,
    pub(super) id: Option<String>,
}

/// A change of a slot's coefficients: class and what is added, one number or one for each kernel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    pub(super) class: u32,
    pub(super) values: Vec<f64>,
}

/// (K_m ĉ) of a sample, chunk after chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct Partial {
    /// Classes that the sums know of.
    outputs: usize,
    /// When each chunk was summed.
    summed: Vec<u64>,
    /// Chunk after chunk, in it class after class, in it kernel after kernel.
    sums: Vec<f64>,
}

impl Support {
    pub(super) fn new(bank: &Bank, separate: bool) -> Support {
        Support {
            kernels: bank.n_kernels(),
            width: if separate { bank.n_kernels() } else { 1 },
            rows: bank
                .views()
                .iter()
                .map(|view| ViewRows {
                    form: match view.width {
                        Some(width) => RowForm::Dense {
                            stride: width.next_multiple_of(LANES),
                            values: Vec::new(),
                        },
                        None => RowForm::Sparse(Vec::new()),
                    },
                    units: Vec::new(),
                    sizes: Vec::new(),
                })
                .collect(),
            diagonal: Vec::new(),
            roots: Vec::new(),
            spherical: bank.spherical(),
            slots: Vec::new(),
            places: HashMap::new(),
            changed: Vec::new(),
            clock: 1,
        }
    }

    /// Numbers per class and slot: 1, or one for each kernel.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(super) fn unit(&self, view: usize, slot: usize) -> f64 {
        self.rows[view].units[slot]
    }

    pub(super) fn root(&self, kernel: usize, slot: usize) -> f64 {
        self.roots[slot * self.kernels + kernel]
    }

    fn touch(&mut self, slot: usize) {
        self.clock += 1;
        self.changed.resize(self.slots.len().div_ceil(CHUNK), 0);
        if let Some(changed) = self.changed.get_mut(slot / CHUNK) {
            *changed = self.clock;
        }
    }

    fn touch_all(&mut self) {
        self.clock += 1;
        self.changed.resize(self.slots.len().div_ceil(CHUNK), 0);
        self.changed.fill(self.clock);
    }

    /// A new slot at the end.
    pub(super) fn push(&mut self, sample: &Sample, slot: Slot) {
        for (view, row) in self.rows.iter_mut().zip(&sample.rows) {
            match (&mut view.form, row) {
                (RowForm::Dense { values, .. }, Row::Dense(row)) => values.extend_from_slice(row),
                (RowForm::Sparse(rows), Row::Sparse(columns, values)) => {
                    rows.push((columns.clone(), values.clone()));
                }
                _ => unreachable!("samples have the form of their views"),
            }
        }
        for ((view, unit), size) in self.rows.iter_mut().zip(&sample.units).zip(&sample.sizes) {
            view.units.push(*unit);
            view.sizes.push(*size);
        }
        self.diagonal.extend_from_slice(&sample.diagonal);
        if self.spherical {
            self.roots.extend_from_slice(&sample.roots);
        }
        self.places.insert(slot.number, self.slots.len());
        self.slots.push(slot);
        self.touch(self.slots.len() - 1);
    }

    /// Adds to the coefficients of an example, which is a support vector from then on.
    pub(super) fn add(&mut self, sample: &Sample, newcomer: Slot, changes: &[Change]) {
        let place = self.places.get(&newcomer.number).copied();
        let slot = place.unwrap_or_else(|| {
            self.push(sample, newcomer);
            self.slots.len() - 1
        });
        self.change(slot, changes);
    }

    /// Adds to a slot's coefficients.
    pub(super) fn change(&mut self, slot: usize, changes: &[Change]) {
        let own = &mut self.slots[slot];
        for change in changes {
            match own.classes.iter().position(|c| *c == change.class) {
                Some(e) => {
                    let values = &mut own.values[e * self.width..(e + 1) * self.width];
                    values
                        .iter_mut()
                        .zip(&change.values)
                        .for_each(|(v, c)| *v += c);
                }
                None => {
                    own.classes.push(change.class);
                    own.values.extend_from_slice(&change.values);
                }
            }
        }
        self.touch(slot);
    }

    /// Takes a slot out; the last one takes its place.
    pub(super) fn remove(&mut self, slot: usize) {
        let last = self.slots.len() - 1;
        for view in &mut self.rows {
            match &mut view.form {
                RowForm::Dense { stride, values } => {
                    values.copy_within(last * *stride.., slot * *stride);
                    values.truncate(last * *stride);
                }
                RowForm::Sparse(rows) => {
                    rows.swap_remove(slot);
                }
            }
            view.units.swap_remove(slot);
            view.sizes.swap_remove(slot);
        }
        for list in [&mut self.diagonal, &mut self.roots] {
            if !list.is_empty() {
                list.copy_within(last * self.kernels.., slot * self.kernels);
                list.truncate(last * self.kernels);
            }
        }
        let gone = self.slots.swap_remove(slot);
        self.places.remove(&gone.number);
        if let Some(moved) = self.slots.get(slot) {
            self.places.insert(moved.number, slot);
        }
        self.touch(slot);
        self.touch(last);
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        while !self.slots.is_empty() {
            self.remove(self.slots.len() - 1);
        }
        self.touch_all();
    }

    /// Multiplies every coefficient.
    pub(super) fn fold(&mut self, factor: f64) {
        for slot in &mut self.slots {
            slot.values.iter_mut().for_each(|v| *v *= factor);
        }
        self.touch_all();
    }

    /// The sample in a slot.
    pub(super) fn sample(&self, slot: usize) -> Sample {
        let all = slot * self.kernels..(slot + 1) * self.kernels;
        Sample {
            rows: self
                .rows
                .iter()
                .map(|view| match &view.form {
                    RowForm::Dense { stride, values } => {
                        Row::Dense(values[slot * stride..(slot + 1) * stride].to_vec())
                    }
                    RowForm::Sparse(rows) => {
                        Row::Sparse(rows[slot].0.clone(), rows[slot].1.clone())
                    }
                })
                .collect(),
            diagonal: self.diagonal[all.clone()].to_vec(),
            roots: match self.spherical {
                true => self.roots[all].to_vec(),
                false => Vec::new(),
            },
            units: self.rows.iter().map(|view| view.units[slot]).collect(),
            sizes: self.rows.iter().map(|view| view.sizes[slot]).collect(),
        }
    }

    pub(super) fn diagonal(&self, slot: usize) -> &[f64] {
        &self.diagonal[slot * self.kernels..(slot + 1) * self.kernels]
    }

    /// The changes that would take a slot's coefficients away.
    pub(super) fn negated(&self, slot: usize) -> Vec<Change> {
        let own = &self.slots[slot];
        let values = own.values.chunks(self.width);
        own.classes
            .iter()
            .zip(values)
            .map(|(class, values)| Change {
                class: *class,
                values: values.iter().map(|v| -v).collect(),
            })
            .collect()
    }

    /// A statistic of a sample with some slots.
    pub(super) fn statistic(
        &self,
        view: usize,
        statistic: Statistic,
        sample: &Sample,
        slots: Range<usize>,
        out: &mut [f32],
    ) {
        let rows = &self.rows[view];
        match (&rows.form, &sample.rows[view]) {
            (RowForm::Dense { stride, values }, Row::Dense(x)) => {
                let rows = &values[slots.start * stride..slots.end * stride];
                one_to_many::dense(statistic, x, rows, *stride, out);
            }
            (RowForm::Sparse(all), Row::Sparse(columns, values)) => {
                let size = statistic.about().size;
                let x = (&columns[..], &values[..], sample.sizes[view].get(size));
                for (out, j) in out.iter_mut().zip(slots) {
                    let row = (&all[j].0[..], &all[j].1[..], rows.sizes[j].get(size));
                    *out = one_to_many::sparse(statistic, x, row);
                }
            }
            _ => unreachable!("samples have the form of their views"),
        }
    }

    /// Adds up (K_m ĉ) of a sample over one chunk.
    fn sum_chunk(
        &self,
        bank: &Bank,
        sample: &Sample,
        chunk: usize,
        scratch: &mut Scratch,
        sums: &mut [f64],
    ) {
        let slots = chunk * CHUNK..((chunk + 1) * CHUNK).min(self.slots.len());
        bank.values(sample, self, slots.clone(), scratch);
        sums.fill(0.0);
        let rows = scratch.by_slot.chunks_exact(self.kernels);
        for (slot, values) in self.slots[slots].iter().zip(rows) {
            add_terms(slot, values, self.width, sums);
        }
    }

    /// The sums of samples over all chunks, computed together on rayon's current pool.
    pub(super) fn partials(&self, bank: &Bank, samples: &[Sample], outputs: usize) -> Vec<Partial> {
        let chunks = self.slots.len().div_ceil(CHUNK);
        let width = outputs * self.kernels;
        let task = |samples: &[Sample], chunks: Range<usize>| -> Vec<f64> {
            let mut scratch = Scratch::default();
            let mut sums = vec![0.0; samples.len() * chunks.len() * width];
            let count = chunks.len();
            for (c, chunk) in chunks.enumerate() {
                for (s, sample) in samples.iter().enumerate() {
                    let at = (s * count + c) * width;
                    let sums = &mut sums[at..at + width];
                    self.sum_chunk(bank, sample, chunk, &mut scratch, sums);
                }
            }
            sums
        };
        let mut tasks: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        for from in (0..samples.len()).step_by(SAMPLES_IN_TASK) {
            let to = (from + SAMPLES_IN_TASK).min(samples.len());
            for first in (0..chunks).step_by(CHUNKS_IN_TASK) {
                tasks.push((from..to, first..(first + CHUNKS_IN_TASK).min(chunks)));
            }
        }
        let run = |(some, chunks): &(Range<usize>, Range<usize>)| {
            task(&samples[some.clone()], chunks.clone())
        };
        let few = samples.len() * self.slots.len() < FEW_PAIRS;
        let done: Vec<Vec<f64>> = match few {
            true => tasks.iter().map(run).collect(),
            false => tasks.par_iter().map(run).collect(),
        };
        let mut partials: Vec<Partial> = samples
            .iter()
            .map(|_| Partial {
                outputs,
                summed: vec![self.clock; chunks],
                sums: vec![0.0; chunks * width],
            })
            .collect();
        for ((some, chunks), sums) in tasks.into_iter().zip(done) {
            let piece = chunks.len() * width;
            for (s, sums) in some.zip(sums.chunks(piece.max(1))) {
                partials[s].sums[chunks.start * width..chunks.end * width].copy_from_slice(sums);
            }
        }
        partials
    }

    /// (K_m ĉ) of a sample, class after class, in it kernel after kernel; what changed since `partial` was made is summed
    /// again.
    pub(super) fn kernel_scores(
        &self,
        bank: &Bank,
        sample: &Sample,
        outputs: usize,
        partial: &mut Partial,
        scratch: &mut Scratch,
    ) -> Vec<f64> {
        let chunks = self.slots.len().div_ceil(CHUNK);
        let width = outputs * self.kernels;
        if partial.outputs != outputs {
            let old = partial.outputs * self.kernels;
            let mut sums = vec![0.0; partial.summed.len() * width];
            if old > 0 {
                for (new, old) in sums.chunks_mut(width).zip(partial.sums.chunks(old)) {
                    new[..old.len()].copy_from_slice(old);
                }
            }
            partial.sums = sums;
            partial.outputs = outputs;
        }
        partial.summed.resize(chunks, 0);
        partial.sums.resize(chunks * width, 0.0);
        let mut total = vec![0.0; width];
        if width == 0 {
            return total;
        }
        let all = partial.sums.chunks_mut(width).zip(&mut partial.summed);
        for (chunk, (sums, summed)) in all.enumerate() {
            if *summed < self.changed[chunk] {
                self.sum_chunk(bank, sample, chunk, scratch, sums);
                *summed = self.clock;
            }
            total.iter_mut().zip(&*sums).for_each(|(t, s)| *t += s);
        }
        total
    }

    /// Bytes of the sums of one sample.
    pub(super) fn partial_bytes(&self, outputs: usize) -> usize {
        self.slots.len().div_ceil(CHUNK) * outputs * self.kernels * size_of::<f64>() + 64
    }
}

/// Adds the terms of a slot, class after class.
#[inline]
fn add_terms(slot: &Slot, values: &[f64], width: usize, sums: &mut [f64]) {
    let kernels = values.len();
    for (class, c) in slot.classes.iter().zip(slot.values.chunks_exact(width)) {
        let at = *class as usize * kernels;
        let sums = &mut sums[at..at + kernels];
        match c {
            [c] => sums.iter_mut().zip(values).for_each(|(s, v)| *s += c * v),
            c => {
                let terms = c.iter().zip(values);
                sums.iter_mut()
                    .zip(terms)
                    .for_each(|(s, (c, v))| *s += c * v);
            }
        }
    }
}
