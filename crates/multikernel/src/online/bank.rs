//! The kernels of a stream: fitted once, on the first block, and evaluated between any two samples.
//!
//! Kernels over one statistic of a view are a family: the statistic is computed once per pair, and each of them costs its
//! profile only.

use super::sample::{Row, Sample, Schema};
use super::support::Support;
use crate::data::{View, ViewData, Views};
use crate::error::{Error, Result};
use crate::gram::{Kernel, Normalizer};
use crate::kernel::statistic::{self, Statistic};
use crate::kernel::{Combine, Normalize, Profile};
use std::ops::Range;

/// Values of k(x, x) and Σx² up to this leave room for products in f32.
const LARGEST: f64 = 1e30;

/// Kernels and the views they look at.
#[derive(Debug)]
pub(super) struct Bank {
    kernels: Vec<Kernel>,
    views: Vec<Schema>,
    /// View and statistic of its rows as they are.
    statistics: Vec<(usize, Statistic)>,
    maps: Vec<Map>,
    spherical: bool,
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
            let of = bank.origin(kernel, &kernels, views)?;
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

    /// What a kernel's values are made from; its view and its statistic are added to those of the bank.
    fn origin(&mut self, kernel: &Kernel, kernels: &[Kernel], views: &Views) -> Result<Of> {
        let wrong = |found: &str, remedy: &str| {
            let place = format!("kernel '{}'", kernel.name);
            Err(Error::input(place, found, remedy))
        };
        if kernel.spec.normalize == Normalize::Center {
            return wrong(
                "centring needs all samples, and a stream has no end",
                "leave the normalisation out, or take spherical",
            );
        }
        let parts = |of: &[String]| -> Vec<usize> {
            let place = |name: &String| kernels.iter().position(|k| k.name == *name);
            of.iter().filter_map(place).collect()
        };
        if let Some((how, of)) = kernel.spec.kind.made_of() {
            return Ok(match how {
                Combine::Product => Of::Product(parts(of)),
                Combine::Sum => Of::Sum(parts(of)),
            });
        }
        let Some((statistic, profile)) = kernel.parts() else {
            return wrong("it is of a kind that streams do not know", "");
        };
        match statistic.about().of {
            statistic::Of::Numbers => {}
            statistic::Of::Strings => {
                return wrong(
                    "it looks at strings, and streams are of numbers",
                    "give a kernel of numbers",
                );
            }
            statistic::Of::GivenMatrix => {
                return wrong(
                    "a given matrix cannot come with a stream",
                    "give features, or train on the matrices with the command train",
                );
            }
        }
        let unit = statistic == Statistic::UnitDot;
        let base = if unit { Statistic::Dot } else { statistic };
        let wanted = (self.view(kernel, views)?, base);
        let known = self.statistics.iter().position(|s| *s == wanted);
        let statistic = known.unwrap_or_else(|| {
            self.statistics.push(wanted);
            self.statistics.len() - 1
        });
        Ok(Of::Statistic {
            statistic,
            unit,
            profile,
        })
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
        let mut sample = Sample {
            sizes: rows.iter().map(Row::sizes).collect(),
            units: Vec::new(),
            diagonal: Vec::with_capacity(self.maps.len()),
            roots: Vec::new(),
            rows,
        };
        self.check(&sample)?;
        sample.units = sample.sizes.iter().map(|s| s.to_unit()).collect();
        for (m, map) in self.maps.iter().enumerate() {
            let raw = self.self_value(map, &sample);
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
                sample.roots.push(if map.spherical { root } else { 1.0 });
            }
            sample.diagonal.push(match map.spherical {
                true => f64::from(u8::from(positive)),
                false => (map.factor * raw).max(0.0),
            });
        }
        Ok(sample)
    }

    /// Whether products fit into f32, and values are what the statistics need.
    fn check(&self, sample: &Sample) -> Result<()> {
        let wrong = |v: usize, found: String, remedy: String| {
            let place = format!("view '{}'", self.views[v].name);
            Err(Error::input(place, found, remedy))
        };
        let squares = sample.sizes.iter().map(|sizes| sizes.squares);
        if let Some((v, square)) = squares.enumerate().find(|(_, square)| *square > LARGEST) {
            let found = format!("the sum of its squared values is {square:.1e}");
            return wrong(v, found, "scale the view".into());
        }
        for &(v, statistic) in &self.statistics {
            if statistic.about().needs_nonnegative
                && let Some(value) = sample.rows[v].values().iter().find(|x| **x < 0.0)
            {
                let found = format!("a value is {value}");
                let name = statistic.about().name;
                return wrong(v, found, format!("{name} needs values ≥ 0"));
            }
        }
        Ok(())
    }

    /// k(x, x) before normalisation, from the diagonal of earlier kernels where it is made of them.
    fn self_value(&self, map: &Map, sample: &Sample) -> f64 {
        match &map.of {
            Of::Statistic {
                statistic,
                unit,
                profile,
            } => {
                let (view, statistic) = self.statistics[*statistic];
                let (about, sizes) = (statistic.about(), sample.sizes[view]);
                profile.value(match (about.is_distance, unit) {
                    (true, _) => 0.0,
                    (false, true) => f64::from(u8::from(sizes.squares > 0.0)),
                    (false, false) => sizes.get(about.size),
                })
            }
            Of::Product(parts) => parts.iter().map(|&k| sample.diagonal[k]).product(),
            Of::Sum(parts) => parts.iter().map(|&k| sample.diagonal[k]).sum(),
        }
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
        for (s, &(view, statistic)) in self.statistics.iter().enumerate() {
            let out = &mut scratch.statistics[s * n..(s + 1) * n];
            support.statistic(view, statistic, sample, slots.clone(), out);
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
                    if *unit {
                        let view = self.statistics[*statistic].0;
                        for ((out, t), j) in out.iter_mut().zip(t).zip(slots.clone()) {
                            let both = sample.units[view] * support.unit(view, j);
                            *out = (f64::from(*t) * both) as f32;
                        }
                    } else {
                        profile.values(t, out);
                    }
                }
                Of::Product(parts) | Of::Sum(parts) => {
                    let product = matches!(map.of, Of::Product(_));
                    out.fill(f32::from(u8::from(product)));
                    for &k in parts {
                        let part = &before[k * n..(k + 1) * n];
                        for (out, part) in out.iter_mut().zip(part) {
                            *out = if product { *out * part } else { *out + part };
                        }
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
