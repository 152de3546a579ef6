//! The kernels of a stream: fitted once, on the first block, and evaluated between any two samples.
//!
//! Kernels over one statistic of a view are a family: the statistic is computed once per pair, and each of them costs its
//! profile only.

use super::support::Support;
use super::tiles::{self, Base, LANES};
use crate::data::{Csr, Dense, View, ViewData, Views};
use crate::error::{Error, Result};
use crate::gram::{Kernel, Normalizer};
use crate::kernel::statistic::Statistic;
use crate::kernel::{Kind, Normalize, Profile};
use std::ops::Range;

/// Values of k(x, x) and Σx² up to this leave room for products in f32.
const LARGEST: f64 = 1e30;

/// Kernels and the views they look at.
#[derive(Debug)]
pub(super) struct Bank {
    kernels: Vec<Kernel>,
    views: Vec<Schema>,
    /// View and kind of sum.
    statistics: Vec<(usize, Base)>,
    maps: Vec<Map>,
    spherical: bool,
}

/// What a view looks like.
#[derive(Debug, Clone)]
pub(super) struct Schema {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    /// Columns of a dense view; none if it is sparse.
    pub(super) width: Option<usize>,
}

/// From statistics, or other kernels, to a kernel's value.
#[derive(Debug)]
struct Map {
    of: Of,
    factor: f64,
    /// Divided by √(k(x,x) k(x',x')).
    spherical: bool,
}

#[derive(Debug)]
enum Of {
    Statistic {
        statistic: usize,
        /// Of rows scaled to length 1.
        unit: bool,
        profile: Profile,
    },
    Product(Vec<usize>),
    Sum(Vec<usize>),
}

/// A sample as the kernels see it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) rows: Vec<Row>,
    /// k_m(x, x)
    pub(super) diagonal: Vec<f64>,
    /// 1/√k_m(x, x) before spherical normalisation, 0 where that is 0; empty if no kernel needs it.
    pub(super) roots: Vec<f64>,
    /// 1/√Σx² of each view
    pub(super) units: Vec<f64>,
    /// Σx² and Σ|x| of each view
    pub(super) sizes: Vec<(f64, f64)>,
}

/// A row of a view.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row {
    /// Padded with zeros to whole lanes.
    Dense(Vec<f32>),
    Sparse(Vec<u32>, Vec<f32>),
}

/// Room for the values of one chunk.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    statistics: Vec<f32>,
    values: Vec<f32>,
    /// Slot after slot, in it kernel after kernel.
    pub(super) by_slot: Vec<f64>,
}

impl Bank {
    /// The bank of fitted kernels; `views` shows what samples look like.
    pub(super) fn new(kernels: Vec<Kernel>, views: &Views) -> Result<Bank> {
        let mut bank = Bank {
            views: Vec::new(),
            statistics: Vec::new(),
            maps: Vec::with_capacity(kernels.len()),
            spherical: kernels.iter().any(Kernel::needs_factors),
            kernels: Vec::new(),
        };
        for kernel in &kernels {
            let wrong = |found: &str, remedy: &str| {
                Err(Error::input(
                    format!("kernel '{}'", kernel.name),
                    found,
                    remedy,
                ))
            };
            if kernel.spec.normalize == Normalize::Center {
                return wrong(
                    "centring needs all samples, and a stream has no end",
                    "leave the normalisation out, or take spherical",
                );
            }
            let of = match (&kernel.spec.kind, kernel.parts()) {
                (Kind::Product { of }, _) | (Kind::Sum { of }, _) => {
                    let place = |name: &String| kernels.iter().position(|k| k.name == *name);
                    let parts: Vec<usize> = of.iter().filter_map(place).collect();
                    match kernel.spec.kind {
                        Kind::Product { .. } => Of::Product(parts),
                        _ => Of::Sum(parts),
                    }
                }
                (_, Some((statistic, profile))) => {
                    let (base, unit) = match statistic {
                        Statistic::Dot => (Base::Dot, false),
                        Statistic::UnitDot => (Base::Dot, true),
                        Statistic::SquaredDistance => (Base::SquaredDistance, false),
                        Statistic::L1 => (Base::L1, false),
                        Statistic::Chi2 => (Base::Chi2, false),
                        Statistic::Intersection => (Base::Intersection, false),
                        Statistic::Spectrum { .. } | Statistic::WeightedDegree { .. } => {
                            return wrong(
                                "it looks at strings, and streams are of numbers",
                                "give a kernel of numbers",
                            );
                        }
                        Statistic::Given => {
                            return wrong(
                                "a given matrix cannot come with a stream",
                                "give features, or train on the matrices with the command train",
                            );
                        }
                    };
                    let view = bank.view(kernel, views)?;
                    let statistic = (view, base);
                    let known = bank.statistics.iter().position(|s| *s == statistic);
                    let statistic = known.unwrap_or_else(|| {
                        bank.statistics.push(statistic);
                        bank.statistics.len() - 1
                    });
                    Of::Statistic {
                        statistic,
                        unit,
                        profile,
                    }
                }
                (_, None) => return wrong("it is of a kind that streams do not know", ""),
            };
            bank.maps.push(Map {
                of,
                factor: match kernel.normalizer {
                    Normalizer::Factor(factor) => factor,
                    _ => 1.0,
                },
                spherical: kernel.needs_factors(),
            });
        }
        bank.kernels = kernels;
        Ok(bank)
    }

    /// The place of a kernel's view among those of the bank.
    fn view(&mut self, kernel: &Kernel, views: &Views) -> Result<usize> {
        let name = kernel.view();
        if let Some(known) = self.views.iter().position(|v| v.name == name) {
            return Ok(known);
        }
        let view = views.get(name).ok_or_else(|| {
            Error::input(
                format!("kernel '{}'", kernel.name),
                format!("there is no view '{name}'"),
                "",
            )
        })?;
        let width = match &view.data {
            ViewData::Dense(x) => Some(x.cols()),
            ViewData::Sparse(_) => None,
            ViewData::Strings(_) | ViewData::Pairwise(_) => {
                return Err(Error::input(
                    format!("view '{name}'"),
                    format!("it is of kind '{}'", view.data.kind()),
                    "streams are of numbers",
                ));
            }
        };
        self.views.push(Schema {
            name: name.to_owned(),
            columns: view.columns.clone(),
            width,
        });
        Ok(self.views.len() - 1)
    }

    pub(super) fn n_kernels(&self) -> usize {
        self.maps.len()
    }

    pub(super) fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    pub(super) fn views(&self) -> &[Schema] {
        &self.views
    }

    /// Whether samples keep roots for spherical normalisation.
    pub(super) fn spherical(&self) -> bool {
        self.spherical
    }

    /// Every row of the views as a sample; all of them are checked.
    pub(super) fn samples(&self, views: &Views) -> Result<Vec<Sample>> {
        let found = self
            .views
            .iter()
            .map(|schema| {
                let view = views.get(&schema.name).ok_or_else(|| {
                    Error::input(
                        format!("view '{}'", schema.name),
                        "a kernel looks at it, but it is missing",
                        "give every example all views",
                    )
                })?;
                schema.check(&view.data)?;
                Ok(&view.data)
            })
            .collect::<Result<Vec<&ViewData>>>()?;
        (0..views.len())
            .map(|i| {
                let views = self.views.iter().zip(&found);
                let rows = views.map(|(schema, data)| schema.row(data, i)).collect();
                self.sample(rows).map_err(|e| e.of_row(i))
            })
            .collect()
    }

    /// A sample from its rows, one for each view of the bank.
    pub(super) fn sample(&self, rows: Vec<Row>) -> Result<Sample> {
        let sizes: Vec<(f64, f64)> = rows.iter().map(Row::sizes).collect();
        for (v, (square, _)) in sizes.iter().enumerate() {
            if *square > LARGEST {
                return Err(Error::input(
                    format!("view '{}'", self.views[v].name),
                    format!("the sum of its squared values is {square:.1e}"),
                    "scale the view",
                ));
            }
        }
        for &(v, base) in &self.statistics {
            if matches!(base, Base::Chi2 | Base::Intersection)
                && let Some(value) = rows[v].values().iter().find(|x| **x < 0.0)
            {
                return Err(Error::input(
                    format!("view '{}'", self.views[v].name),
                    format!("a value is {value}"),
                    "chi2 and intersection need values ≥ 0",
                ));
            }
        }
        let mut diagonal: Vec<f64> = Vec::with_capacity(self.maps.len());
        let mut roots = Vec::new();
        for (m, map) in self.maps.iter().enumerate() {
            let raw = match &map.of {
                Of::Statistic {
                    statistic,
                    unit,
                    profile,
                } => {
                    let (view, base) = self.statistics[*statistic];
                    let t = match base {
                        Base::Dot if *unit => f64::from(u8::from(sizes[view].0 > 0.0)),
                        Base::Dot => sizes[view].0,
                        Base::Intersection => sizes[view].1,
                        Base::SquaredDistance | Base::L1 | Base::Chi2 => 0.0,
                    };
                    profile.value(t)
                }
                Of::Product(parts) => parts.iter().map(|&k| diagonal[k]).product(),
                Of::Sum(parts) => parts.iter().map(|&k| diagonal[k]).sum(),
            };
            if raw.is_nan() || raw.abs() > LARGEST {
                return Err(Error::input(
                    format!("kernel '{}'", self.kernels[m].name),
                    format!("k(x, x) is {raw:.1e}"),
                    "scale the view",
                ));
            }
            let positive = raw > 0.0;
            if self.spherical {
                let root = if positive { 1.0 / raw.sqrt() } else { 0.0 };
                roots.push(if map.spherical { root } else { 1.0 });
            }
            diagonal.push(match map.spherical {
                true => f64::from(u8::from(positive)),
                false => (map.factor * raw).max(0.0),
            });
        }
        Ok(Sample {
            units: sizes
                .iter()
                .map(|s| if s.0 > 0.0 { 1.0 / s.0.sqrt() } else { 0.0 })
                .collect(),
            rows,
            diagonal,
            roots,
            sizes,
        })
    }

    /// k_m(x, x_j) of all kernels for some slots of the support, into `scratch.by_slot`.
    pub(super) fn values(
        &self,
        sample: &Sample,
        support: &Support,
        slots: Range<usize>,
        scratch: &mut Scratch,
    ) {
        let (n, kernels) = (slots.len(), self.maps.len());
        scratch.statistics.resize(self.statistics.len() * n, 0.0);
        scratch.values.resize(kernels * n, 0.0);
        scratch.by_slot.resize(kernels * n, 0.0);
        for (s, &(view, base)) in self.statistics.iter().enumerate() {
            let out = &mut scratch.statistics[s * n..(s + 1) * n];
            support.statistic(view, base, sample, slots.clone(), out);
        }
        for (m, map) in self.maps.iter().enumerate() {
            let (before, rest) = scratch.values.split_at_mut(m * n);
            let out = &mut rest[..n];
            match &map.of {
                Of::Statistic {
                    statistic,
                    unit,
                    profile,
                } => {
                    let t = &scratch.statistics[statistic * n..(statistic + 1) * n];
                    match profile {
                        Profile::Exp { width } => tiles::exponentials(t, *width, out),
                        Profile::Identity if *unit => {
                            let view = self.statistics[*statistic].0;
                            for ((out, t), j) in out.iter_mut().zip(t).zip(slots.clone()) {
                                let both = sample.units[view] * support.unit(view, j);
                                *out = (f64::from(*t) * both) as f32;
                            }
                        }
                        Profile::Identity => out.copy_from_slice(t),
                        Profile::Poly { .. } => {
                            for (out, t) in out.iter_mut().zip(t) {
                                *out = profile.value(f64::from(*t)) as f32;
                            }
                        }
                    }
                }
                Of::Product(parts) => {
                    out.fill(1.0);
                    for &k in parts {
                        let part = &before[k * n..(k + 1) * n];
                        out.iter_mut().zip(part).for_each(|(o, p)| *o *= p);
                    }
                }
                Of::Sum(parts) => {
                    out.fill(0.0);
                    for &k in parts {
                        let part = &before[k * n..(k + 1) * n];
                        out.iter_mut().zip(part).for_each(|(o, p)| *o += p);
                    }
                }
            }
            if map.spherical {
                for (out, j) in out.iter_mut().zip(slots.clone()) {
                    let both = sample.roots[m] * support.root(m, j);
                    *out = (f64::from(*out) * both) as f32;
                }
            } else if map.factor != 1.0 {
                let factor = map.factor as f32;
                out.iter_mut().for_each(|o| *o *= factor);
            }
        }
        for (m, values) in scratch.values.chunks(n.max(1)).take(kernels).enumerate() {
            for (by_slot, v) in scratch.by_slot.chunks_mut(kernels).zip(values) {
                by_slot[m] = f64::from(*v);
            }
        }
    }

    /// The rows of samples as views.
    pub(super) fn to_views<'s>(
        &self,
        samples: impl Iterator<Item = &'s Sample> + Clone,
    ) -> Result<Vec<View>> {
        let views = self.views.iter().enumerate();
        views
            .map(|(v, schema)| {
                let rows = samples.clone().map(|s| &s.rows[v]);
                Ok(View {
                    name: schema.name.clone(),
                    columns: schema.columns.clone(),
                    data: schema.data(rows)?,
                })
            })
            .collect()
    }
}

impl Schema {
    fn check(&self, data: &ViewData) -> Result<()> {
        let place = || format!("view '{}'", self.name);
        match (data, self.width) {
            (ViewData::Dense(x), Some(width)) if x.cols() != width => Err(Error::input(
                place(),
                format!("it has {} columns, at first it had {width}", x.cols()),
                "give every example the same columns",
            )),
            (ViewData::Dense(_), _) | (ViewData::Sparse(_), None) => Ok(()),
            (ViewData::Sparse(x), Some(width)) if x.cols() <= width => Ok(()),
            (other, _) => Err(Error::input(
                place(),
                format!("it is of kind '{}', at first it was not", other.kind()),
                "give every example the same views",
            )),
        }
    }

    /// Rows put together again, without their padding.
    fn data<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> Result<ViewData> {
        match self.width {
            Some(width) => {
                let mut values = Vec::new();
                let mut n = 0;
                for row in rows {
                    values.extend_from_slice(&row.values()[..width]);
                    n += 1;
                }
                Ok(ViewData::Dense(Dense::new(n, width, values)?))
            }
            None => {
                let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
                for row in rows {
                    if let Row::Sparse(columns, numbers) = row {
                        indices.extend_from_slice(columns);
                        values.extend_from_slice(numbers);
                    }
                    starts.push(values.len());
                }
                let cols = indices.iter().max().map_or(1, |c| *c as usize + 1);
                Ok(ViewData::Sparse(Csr::new(cols, starts, indices, values)?))
            }
        }
    }

    /// Row `i` of a view of this kind, made ready.
    pub(super) fn row(&self, data: &ViewData, i: usize) -> Row {
        match (data, self.width) {
            (ViewData::Sparse(x), Some(width)) => {
                let mut dense = vec![0.0; width.next_multiple_of(LANES)];
                let (columns, values) = x.row(i);
                for (c, v) in columns.iter().zip(values) {
                    dense[*c as usize] = *v;
                }
                Row::Dense(dense)
            }
            (ViewData::Dense(x), None) => {
                let row = x.row(i).iter().enumerate().filter(|(_, v)| **v != 0.0);
                let (columns, values) = row.map(|(c, v)| (c as u32, *v)).unzip();
                Row::Sparse(columns, values)
            }
            _ => Row::new(data, i),
        }
    }
}

impl Row {
    fn new(data: &ViewData, i: usize) -> Row {
        match data {
            ViewData::Dense(x) => {
                let mut row = x.row(i).to_vec();
                row.resize(row.len().next_multiple_of(LANES), 0.0);
                Row::Dense(row)
            }
            ViewData::Sparse(x) => {
                let (columns, values) = x.row(i);
                Row::Sparse(columns.to_vec(), values.to_vec())
            }
            ViewData::Strings(_) | ViewData::Pairwise(_) => Row::Sparse(Vec::new(), Vec::new()),
        }
    }

    pub(super) fn values(&self) -> &[f32] {
        match self {
            Row::Dense(values) | Row::Sparse(_, values) => values,
        }
    }

    /// Σx² and Σ|x|.
    fn sizes(&self) -> (f64, f64) {
        let values = self.values();
        (
            values.iter().map(|&v| f64::from(v) * f64::from(v)).sum(),
            values.iter().map(|&v| f64::from(v.abs())).sum(),
        )
    }
}
