//! Normalisations of a family's kernels: measured on the training samples, then applied to whatever is asked.

use super::Precision;
use super::family::{Centring, Family};
use super::kernel::{Kernel, Normalizer};
use super::scores::RowScorer;
use crate::error::{Error, Result};
use crate::kernel::Normalize;
use rayon::prelude::*;
use std::sync::Arc;

/// Applies the normalisations of a family's kernels, measuring their statistics first if `fit`.
pub(super) fn normalize(
    family: &mut Family,
    kernels: &mut [Kernel],
    fit: bool,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let asked = |kernels: &[Kernel], wanted: &[Normalize]| {
        family
            .members
            .iter()
            .any(|&m| wanted.contains(&kernels[m].spec.normalize))
    };
    if fit && asked(kernels, &[Normalize::Trace, Normalize::Multiplicative]) {
        measure_factors(family, kernels, warnings);
    }
    let factors: Vec<f64> = family
        .members
        .iter()
        .map(|&m| match kernels[m].normalizer {
            Normalizer::Factor(f) => f,
            _ => 1.0,
        })
        .collect();
    let alone = family.members.len() == 1 && kernels[family.members[0]].needs_factors();
    let centred = asked(kernels, &[Normalize::Center]);
    family.scale(&factors);
    if alone {
        spherical(family, &mut kernels[family.members[0]], fit)?;
    }
    if centred {
        centre(family, kernels, fit);
    }
    Ok(())
}

/// The factors of trace and multiplicative normalisation.
fn measure_factors(family: &Family, kernels: &mut [Kernel], warnings: &mut Vec<String>) {
    let n = family.diagonal.len();
    let samples: Vec<usize> = (0..n).collect();
    let multiplicative = |m: &usize| kernels[*m].spec.normalize == Normalize::Multiplicative;
    let means = match family.members.iter().any(multiplicative) {
        true => family.forms(&samples, &vec![1.0 / n as f64; n]),
        false => vec![0.0; family.members.len()],
    };
    for (c, &m) in family.members.iter().enumerate() {
        let trace = family.self_values(c).sum::<f64>() / n as f64;
        let size = match kernels[m].spec.normalize {
            Normalize::Trace => trace,
            Normalize::Multiplicative => trace - means[c],
            _ => continue,
        };
        // Below round-off of the diagonal the samples do not differ: there is nothing to scale.
        if size > 1e-7 * trace.abs() && size.is_finite() {
            kernels[m].normalizer = Normalizer::Factor(1.0 / size);
        } else {
            warnings.push(format!(
                "kernel '{}' does not vary over the samples (its normaliser is {size:.1e}): it is left as it is",
                kernels[m].name
            ));
        }
    }
}

/// Factors 1/√k(x,x) for rows and columns.
fn spherical(family: &mut Family, kernel: &mut Kernel, fit: bool) -> Result<()> {
    if family.diagonal.is_empty() {
        return Err(Error::input(
            format!("kernel '{}'", kernel.name),
            "spherical normalisation needs k(x, x) of the new samples, which a given matrix does not hold",
            "normalise the matrices before they are given, for training and for prediction",
        ));
    }
    let inverse_roots: Vec<f64> = family
        .self_values(0)
        .map(|k| if k > 0.0 { 1.0 / k.sqrt() } else { 0.0 })
        .collect();
    if fit {
        kernel.normalizer = Normalizer::Spherical {
            factors: inverse_roots.clone(),
        };
    }
    let cols = match &kernel.normalizer {
        Normalizer::Spherical { factors } => factors.clone(),
        _ => vec![1.0; family.n_cols],
    };
    family.factors = Some((Arc::new(inverse_roots), Arc::new(cols)));
    Ok(())
}

/// Row means of the members that are to be centred.
fn centre(family: &mut Family, kernels: &mut [Kernel], fit: bool) {
    let width = family.members.len();
    let wanted: Vec<bool> = family
        .members
        .iter()
        .map(|&m| kernels[m].spec.normalize == Normalize::Center)
        .collect();
    let row_means = Arc::new(row_means(family, &wanted));
    let (col_means, grand) = if fit {
        let n = family.n_cols;
        let grand: Vec<f64> = (0..width)
            .map(|c| row_means.iter().skip(c).step_by(width).sum::<f64>() / n as f64)
            .collect();
        for (c, &m) in family
            .members
            .iter()
            .enumerate()
            .filter(|(c, _)| wanted[*c])
        {
            kernels[m].normalizer = Normalizer::Center {
                row_means: row_means.iter().skip(c).step_by(width).copied().collect(),
                grand_mean: grand[c],
            };
        }
        (row_means.clone(), grand)
    } else {
        let mut means = vec![0.0; family.n_cols * width];
        let mut grand = vec![0.0; width];
        for (c, &m) in family.members.iter().enumerate() {
            if let Normalizer::Center {
                row_means,
                grand_mean,
            } = &kernels[m].normalizer
            {
                grand[c] = *grand_mean;
                for (j, mean) in row_means.iter().enumerate() {
                    means[j * width + c] = *mean;
                }
            }
        }
        (Arc::new(means), grand)
    };
    family.centring = Some(Centring {
        row_means,
        col_means,
        grand,
    });
}

/// (1/n) Σ_j k_m(x_i, x_j) over the columns, row after row, one number per member; 0 where not wanted.
fn row_means(family: &Family, wanted: &[bool]) -> Vec<f64> {
    let n_rows = family.n_rows;
    let width = wanted.len();
    let cols: Vec<usize> = (0..family.n_cols).collect();
    let weights = vec![1.0 / family.n_cols as f64; family.n_cols];
    let members: Vec<usize> = (0..width).collect();
    let mut means = vec![0.0; n_rows * width];
    let block = family.block_rows();
    means
        .par_chunks_mut(block * width)
        .enumerate()
        .for_each(|(b, out)| {
            let rows: Vec<usize> = (b * block..b * block + out.len() / width).collect();
            let mut scorer = RowScorer::new(family, &members, &cols, Precision::Exact);
            family.for_rows(&rows, |r, t| {
                let scores = scorer.scores(t, &weights);
                for (c, wanted) in wanted.iter().enumerate() {
                    if *wanted {
                        out[r * width + c] = scores[c];
                    }
                }
            });
        });
    means
}
