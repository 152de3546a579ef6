//! The data sets, as streams: views and labels in a seeded order.

use crate::Wishes;
use multikernel::data::{Dense, View, ViewData, Views, digits};
use multikernel::error::{Error, Result};
use multikernel::random::Random;
use multikernel_io::{LoadOptions, load, load_numbers};

/// Samples to learn from and samples to test.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) training: Known,
    pub(crate) test: Known,
    /// The view that tells most by itself.
    pub(crate) informative: &'static str,
    /// Seeds of the orders that are averaged over.
    pub(crate) orders: u64,
}

/// Samples and their labels.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) views: Views,
    pub(crate) labels: Vec<String>,
}

impl Known {
    pub(crate) fn told(&self) -> Vec<Option<&str>> {
        self.labels.iter().map(|l| Some(l.as_str())).collect()
    }

    pub(crate) fn shuffled(&self, seed: u64) -> Result<Known> {
        let mut order: Vec<usize> = (0..self.labels.len()).collect();
        Random::new(seed).shuffle(&mut order);
        self.some(&order)
    }

    pub(crate) fn some(&self, rows: &[usize]) -> Result<Known> {
        Ok(Known {
            views: self.views.select(rows)?,
            labels: rows.iter().map(|&i| self.labels[i].clone()).collect(),
        })
    }

    /// One view of it, beside views of noise.
    pub(crate) fn one_among_noise(&self, view: &str, noise: usize, seed: u64) -> Result<Known> {
        let mut random = Random::new(seed);
        let mut views = self.views.only(|v| v.name == view);
        let n = self.labels.len();
        for k in 0..noise {
            let values = (0..n * 16).map(|_| random.normal() as f32).collect();
            views.push(View {
                name: format!("noise{k}"),
                columns: Vec::new(),
                data: ViewData::Dense(Dense::new(n, 16, values)?),
            })?;
        }
        Ok(Known {
            views,
            labels: self.labels.clone(),
        })
    }

    /// Its views cut into views of two columns.
    pub(crate) fn in_pairs(&self) -> Result<Known> {
        let mut views = Views::default();
        for view in self.views.iter() {
            let ViewData::Dense(x) = &view.data else {
                continue;
            };
            for first in (0..x.cols()).step_by(2) {
                let width = 2.min(x.cols() - first);
                let values = (0..x.rows()).flat_map(|i| &x.row(i)[first..first + width]);
                let values = values.copied().collect();
                views.push(View {
                    name: format!("{}_{}", view.name, first / 2),
                    columns: Vec::new(),
                    data: ViewData::Dense(Dense::new(x.rows(), width, values)?),
                })?;
            }
        }
        Ok(Known {
            views,
            labels: self.labels.clone(),
        })
    }
}

/// The digits, and pendigits if its folder was given.
pub(crate) fn sets(wishes: &Wishes) -> Result<Vec<Set>> {
    let mut sets = vec![digit_quadrants(wishes)?];
    if let Some(folder) = &wishes.data {
        sets.push(pendigits(
            &folder.join("pendigits4.npz").display().to_string(),
            wishes,
        )?);
    }
    Ok(sets)
}

fn digit_quadrants(wishes: &Wishes) -> Result<Set> {
    let data = digits()?;
    let labels = data.labels.ok_or(Error::Stopped)?;
    let all = Known {
        labels: (0..data.views.len())
            .map(|i| labels.spelling(i).to_owned())
            .collect(),
        views: data.views,
    };
    let mut order: Vec<usize> = (0..all.labels.len()).collect();
    Random::new(1).shuffle(&mut order);
    Ok(Set {
        name: "digits",
        training: all.some(&order[..1200])?,
        test: all.some(&order[1200..])?,
        informative: "upper_right",
        orders: if wishes.quick { 2 } else { 10 },
    })
}

fn pendigits(file: &str, wishes: &Wishes) -> Result<Set> {
    let part = |which: &str| -> Result<Known> {
        let names = ["dyn", "sta4", "sta8", "sta16"].map(|v| format!("{v}_{which}"));
        let options = LoadOptions {
            features: vec![format!("{file}:{}", names.join(","))],
            ..LoadOptions::default()
        };
        let loaded = load(&options, &())?.views;
        let views = loaded.iter().map(|view| View {
            name: view.name.replace(&format!("_{which}"), ""),
            ..view.clone()
        });
        let labels = load_numbers(&format!("{file}:y_{which}"), None, &())?;
        Ok(Known {
            views: Views::new(views.collect())?,
            labels: labels.iter().map(|y| y.to_string()).collect(),
        })
    };
    Ok(Set {
        name: "pendigits",
        training: part("train")?,
        test: part("test")?,
        informative: "dyn",
        orders: if wishes.quick { 1 } else { 5 },
    })
}
