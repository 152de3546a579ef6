//! What is in kernels: scale, spectrum, alignment with the targets and with each other.

use super::pairs::{Packed, SameToAll};
use super::{kernels_are, list};
use crate::data::Targets;
use crate::eigen::extremes;
use crate::error::Result;
use crate::gram::{Gram, Kernel};
use crate::math::{self, mixed_dot, sum_of_squares};
use crate::observe::{self, Observer};
use rayon::prelude::*;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Mean |k(x,x')|/√(k(x,x)k(x',x')) over pairs below which a kernel relates no samples.
const IDENTITY: f64 = 1e-3;
/// ‖centred K‖/‖K‖ below which what varies in a kernel is about the rounding of f32.
pub(super) const CONSTANT: f64 = 1e-5;
/// Centred alignment from which two kernels say the same.
const SAME: f32 = 0.999;
/// Ratio of scales from which the larger kernel drowns the smaller.
const UNEVEN: f64 = 100.0;
/// Smallest eigenvalue over largest below which it is no rounding error.
const INDEFINITE: f64 = -1e-5;
/// Accuracy of the eigenvalues, relative to the largest.
const EIGEN_TOLERANCE: f64 = 1e-6;
/// Matrix-vector products that the eigenvalues of a kernel may cost.
const EIGEN_PRODUCTS: usize = 80;

/// What is in a set of kernels.
#[derive(Debug, Clone, Serialize)]
pub struct KernelReport {
    /// Number of samples looked at.
    pub n_samples: usize,
    /// Each kernel alone.
    pub kernels: Vec<KernelSummary>,
    /// Centred alignment of each pair of kernels, row after row; 0 where one of them is constant.
    pub alignments: Vec<Vec<f32>>,
    /// Groups of kernels that say the same, by number.
    pub near_duplicates: Vec<Vec<usize>>,
    /// Pairs of samples that no kernel tells apart.
    pub same_samples: u64,
    /// The first few of them, counted from 0.
    pub first_same_samples: Vec<(usize, usize)>,
    /// What deserves a look, in sentences.
    pub warnings: Vec<String>,
}

/// What is in one kernel.
#[derive(Debug, Clone, Serialize)]
pub struct KernelSummary {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Mean of k(x, x).
    pub mean_diagonal: f64,
    /// Mean of k(x, x') over pairs of different samples.
    pub mean_off_diagonal: f64,
    /// Mean of |k(x,x')|/√(k(x,x)k(x',x')) over pairs of different samples; 0 for the identity.
    pub mean_similarity: f64,
    /// Variance in feature space: mean of k(x, x) less the mean of all values.
    pub variance: f64,
    /// ‖centred K‖/‖K‖ (Frobenius); 0 for a constant kernel.
    pub variation: f64,
    /// Centred alignment with the targets (Cortes, Mohri, Rostamizadeh 2012); none without targets.
    pub target_alignment: Option<f64>,
    /// Share of wrong classes, or mean squared error, of a least-squares SVM on this kernel alone, each sample left out once; none if
    /// that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave_one_out_error: Option<f64>,
    /// Estimate of the smallest eigenvalue, not below the true one.
    pub smallest_eigenvalue: f64,
    /// Estimate of the largest eigenvalue, not above the true one.
    pub largest_eigenvalue: f64,
    /// (Σλ)²/Σλ²: about how many directions it has.
    pub effective_rank: f64,
}

/// Looks at the kernels of a training Gram. Holds 2·M·n² bytes for M kernels of n samples, and M² values.
pub fn inspect_kernels(
    gram: &Gram,
    kernels: &[Kernel],
    targets: &Targets,
    observer: &dyn Observer,
) -> Result<KernelReport> {
    let n = gram.n_rows();
    let target = TargetKernel::new(targets, n);
    let same = SameToAll::new(n);
    let mut packed = Packed::new(kernels.len(), n);
    let done = AtomicUsize::new(0);
    let total = kernels.len();
    let summaries: Vec<KernelSummary> = kernels
        .par_iter()
        .zip(packed.rows_mut())
        .enumerate()
        .map_init(Vec::new, |values, (m, (kernel, packed))| {
            values.resize(n * n, 0.0);
            gram.kernel(m).matrix_into(values);
            let summary = summarise(kernel, values, target.as_ref(), packed);
            same.keep(values);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            observe::work(observer, "inspecting kernels", done, total)?;
            Ok(summary)
        })
        .collect::<Result<_>>()?;
    let alignments = packed.products();
    drop(packed);
    let near_duplicates = near_duplicates(&summaries, &alignments);
    let (same_samples, first_same_samples) = same.pairs();
    let warnings = warnings(n, &summaries, &near_duplicates);
    Ok(KernelReport {
        n_samples: n,
        kernels: summaries,
        alignments,
        near_duplicates,
        same_samples,
        first_same_samples,
        warnings,
    })
}

/// The means of a symmetric matrix, by which it is centred.
pub(super) struct Means {
    pub(super) of_rows: Vec<f64>,
    pub(super) of_all: f64,
}

impl Means {
    /// Of n×n values.
    pub(super) fn new(values: &[f32], n: usize) -> Means {
        let of_row = |row: &[f32]| math::sum(row) / n as f64;
        let of_rows: Vec<f64> = values.chunks_exact(n).map(of_row).collect();
        let of_all = of_rows.iter().sum::<f64>() / n as f64;
        Means { of_rows, of_all }
    }

    /// Centred values of row i.
    pub(super) fn centre(&self, i: usize, row: &[f32], out: &mut [f32]) {
        centre_row(row, self.of_rows[i] - self.of_all, &self.of_rows, out);
    }
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn centre_row(row: &[f32], own: f64, others: &[f64], out: &mut [f32]) {
    for ((out, &v), other) in out.iter_mut().zip(row).zip(others) {
        *out = (f64::from(v) - own - other) as f32;
    }
}

/// 1/√k(x, x) of every sample of n×n values; 0 where it is not positive, which makes the sample similar to none.
pub(super) fn inverse_roots(values: &[f32], n: usize) -> Vec<f64> {
    let diagonal = (0..n).map(|i| f64::from(values[i * n + i]));
    diagonal
        .map(|d| if d > 0.0 { d.sqrt().recip() } else { 0.0 })
        .collect()
}

/// Σ_j |k(x_i, x_j)|/√(k(x_i, x_i) k(x_j, x_j)) over the other samples.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
pub(super) fn similarity(i: usize, row: &[f32], inverse_roots: &[f64]) -> f64 {
    let of = |v: f32, root: f64| f64::from(v.abs()) * root;
    let ((v, v_rest), (r, r_rest)) = (row.as_chunks::<8>(), inverse_roots.as_chunks::<8>());
    let mut lanes = [0.0; 8];
    for (v, r) in v.iter().zip(r) {
        lanes = std::array::from_fn(|l| lanes[l] + of(v[l], r[l]));
    }
    let rest = v_rest.iter().zip(r_rest).map(|(&v, &r)| of(v, r));
    let all = lanes.iter().sum::<f64>() + rest.sum::<f64>();
    (all - of(row[i], inverse_roots[i])) * inverse_roots[i]
}

/// Σ v_j over the samples j of a class.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn sum_of_class(values: &[f32], classes: &[u32], class: u32) -> f64 {
    let of = |v: f32, c: u32| f64::from(if c == class { v } else { 0.0 });
    let ((v, v_rest), (c, c_rest)) = (values.as_chunks::<8>(), classes.as_chunks::<8>());
    let mut lanes = [0.0; 8];
    for (v, c) in v.iter().zip(c) {
        lanes = std::array::from_fn(|l| lanes[l] + of(v[l], c[l]));
    }
    let rest = v_rest.iter().zip(c_rest).map(|(&v, &c)| of(v, c));
    lanes.iter().sum::<f64>() + rest.sum::<f64>()
}

/// The kernel of the targets, 1 for the same class or y·y', centred.
pub(super) struct TargetKernel<'a> {
    targets: &'a Targets,
    /// The targets less their mean, if they are numbers.
    centred: Vec<f64>,
    /// Frobenius norm of the centred kernel.
    pub(super) norm: f64,
}

impl<'a> TargetKernel<'a> {
    pub(super) fn new(targets: &'a Targets, n: usize) -> Option<Self> {
        match targets {
            Targets::None => None,
            Targets::Classes { names, index } => {
                let mut counts = vec![0.0; names.len()];
                for &c in index {
                    counts[c as usize] += 1.0;
                }
                // ‖H Y Yᵀ H‖ = ‖Yᵀ H Y‖ and Yᵀ H Y = diag(counts) − counts countsᵀ/n.
                let mut squares = 0.0;
                for (c, a) in counts.iter().enumerate() {
                    for (d, b) in counts.iter().enumerate() {
                        let diagonal = if c == d { *a } else { 0.0 };
                        squares += (diagonal - a * b / n as f64).powi(2);
                    }
                }
                Some(TargetKernel {
                    targets,
                    centred: Vec::new(),
                    norm: squares.sqrt(),
                })
            }
            Targets::Real(y) => {
                let mean = y.iter().sum::<f64>() / n as f64;
                let centred: Vec<f64> = y.iter().map(|v| v - mean).collect();
                let norm = centred.iter().map(|v| v * v).sum();
                Some(TargetKernel {
                    targets,
                    centred,
                    norm,
                })
            }
        }
    }

    /// The lower half of the centred kernel, row after row.
    pub(super) fn lower(&self) -> Vec<f64> {
        match self.targets {
            Targets::None => Vec::new(),
            Targets::Classes { names, index } => {
                let mut shares = vec![0.0; names.len()];
                let n = index.len() as f64;
                for &c in index {
                    shares[c as usize] += 1.0 / n;
                }
                let mean: f64 = shares.iter().map(|share| share * share).sum();
                let of_pair = |&a: &u32, &b: &u32| {
                    let same = f64::from(u8::from(a == b));
                    same - shares[a as usize] - shares[b as usize] + mean
                };
                lower_half(index, of_pair)
            }
            Targets::Real(_) => lower_half(&self.centred, |a, b| a * b),
        }
    }

    /// Σ_j of the centred values of row i with the target kernel's row i.
    pub(super) fn along(&self, i: usize, centred_row: &[f32]) -> f64 {
        match self.targets {
            Targets::None => 0.0,
            Targets::Classes { index, .. } => sum_of_class(centred_row, index, index[i]),
            Targets::Real(_) => mixed_dot(centred_row, &self.centred) * self.centred[i],
        }
    }
}

/// A value for each pair of an item and one that does not come after it, item after item.
fn lower_half<T>(items: &[T], of_pair: impl Fn(&T, &T) -> f64) -> Vec<f64> {
    let pairs = items
        .iter()
        .enumerate()
        .flat_map(|(i, a)| items[..=i].iter().map(move |b| (a, b)));
    pairs.map(|(a, b)| of_pair(a, b)).collect()
}

/// One kernel's numbers; its centred matrix, scaled to norm 1, goes into `packed`.
fn summarise(
    kernel: &Kernel,
    values: &[f32],
    target: Option<&TargetKernel<'_>>,
    packed: &mut [f32],
) -> KernelSummary {
    let n = values.len().isqrt();
    let rows = || values.chunks_exact(n);
    let (min, max) = values
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), &v| {
            (a.min(v), b.max(v))
        });
    let means = Means::new(values, n);
    let mean = means.of_all;
    let trace: f64 = (0..n).map(|i| f64::from(values[i * n + i])).sum();
    let pairs = (n * (n - 1)).max(1) as f64;

    let roots = inverse_roots(values, n);
    let mut similar = 0.0;
    let mut squares = 0.0;
    let mut centred_squares = 0.0;
    let mut along_target = 0.0;
    let mut centred = vec![0.0f32; n];
    let mut next = 0;
    for (i, row) in rows().enumerate() {
        means.centre(i, row, &mut centred);
        squares += sum_of_squares(row);
        centred_squares += sum_of_squares(&centred);
        similar += similarity(i, row, &roots);
        if let Some(target) = target {
            along_target += target.along(i, &centred);
        }
        packed[next..next + i + 1].copy_from_slice(&centred[..=i]);
        next += i + 1;
    }
    let norm = squares.sqrt();
    let variation = if norm > 0.0 {
        centred_squares.sqrt() / norm
    } else {
        0.0
    };
    let varies = variation >= CONSTANT;
    Packed::normalise(
        packed,
        if varies {
            centred_squares.sqrt().recip()
        } else {
            0.0
        },
    );

    let spectrum = extremes(
        n,
        |x, y| {
            for (y, row) in y.iter_mut().zip(rows()) {
                *y = mixed_dot(row, x);
            }
        },
        EIGEN_TOLERANCE,
        EIGEN_PRODUCTS,
    );
    KernelSummary {
        name: kernel.name.clone(),
        group: kernel.group.clone(),
        min: min.into(),
        max: max.into(),
        mean_diagonal: trace / n as f64,
        mean_off_diagonal: (mean * (n * n) as f64 - trace) / pairs,
        mean_similarity: similar / pairs,
        variance: trace / n as f64 - mean,
        variation,
        target_alignment: target.map(|target| {
            let scale = centred_squares.sqrt() * target.norm;
            if varies && scale > 0.0 {
                along_target / scale
            } else {
                0.0
            }
        }),
        leave_one_out_error: None,
        smallest_eigenvalue: spectrum.smallest,
        largest_eigenvalue: spectrum.largest,
        effective_rank: if squares > 0.0 {
            trace * trace / squares
        } else {
            0.0
        },
    }
}

/// Each kernel joins the first group whose first kernel it resembles.
fn near_duplicates(kernels: &[KernelSummary], alignments: &[Vec<f32>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for m in (0..kernels.len()).filter(|&m| kernels[m].variation >= CONSTANT) {
        match groups.iter_mut().find(|g| alignments[m][g[0]] >= SAME) {
            Some(group) => group.push(m),
            None => groups.push(vec![m]),
        }
    }
    groups.retain(|g| g.len() > 1);
    groups
}

/// What tells a kernel that is of little use.
pub(super) struct Vitals<'a> {
    pub(super) name: &'a str,
    pub(super) is_zero: bool,
    /// As those of [`KernelSummary`].
    pub(super) mean_similarity: f64,
    pub(super) variation: f64,
    pub(super) variance: f64,
}

/// What is wrong with kernels each by itself, on n samples.
pub(super) fn each(n: usize, kernels: &[Vitals<'_>]) -> Vec<String> {
    let mut out = Vec::new();
    let mut tell = |found: &dyn Fn(&Vitals<'_>) -> bool, what: &str| {
        let names: Vec<String> = kernels
            .iter()
            .filter(|k| found(k))
            .map(|k| k.name.to_owned())
            .collect();
        if !names.is_empty() {
            out.push(format!("{} {what}", kernels_are(&names)));
        }
    };
    tell(&|k| k.is_zero, "zero everywhere; leave it out");
    tell(
        &|k| !k.is_zero && k.variation < CONSTANT,
        "numerically constant: every pair of samples looks the same (is the width too large?)",
    );
    tell(
        &|k| n > 1 && !k.is_zero && k.mean_similarity < IDENTITY,
        "numerically the identity: no two samples look alike, so it fits any labels and predicts nothing (is the width too small?)",
    );
    out
}

/// Whether the scales of kernels differ by so much or more, so that the larger ones drown the others.
pub(super) fn uneven(kernels: &[Vitals<'_>], by: f64) -> Option<String> {
    let mut varying: Vec<&Vitals<'_>> = kernels
        .iter()
        .filter(|k| k.variation >= CONSTANT && k.variance > 0.0)
        .collect();
    varying.sort_by(|a, b| a.variance.total_cmp(&b.variance));
    match &varying[..] {
        [smallest, .., largest] if largest.variance >= by * smallest.variance => Some(format!(
            "the scales of the kernels differ by a factor of {:.0} (variance {:.3e} of '{}' against {:.3e} of '{}'), so the larger ones are favoured; consider normalize=multiplicative",
            largest.variance / smallest.variance,
            largest.variance,
            largest.name,
            smallest.variance,
            smallest.name
        )),
        _ => None,
    }
}

fn warnings(n: usize, kernels: &[KernelSummary], near_duplicates: &[Vec<usize>]) -> Vec<String> {
    let looks: Vec<Vitals<'_>> = kernels
        .iter()
        .map(|k| Vitals {
            name: &k.name,
            is_zero: k.min == 0.0 && k.max == 0.0,
            mean_similarity: k.mean_similarity,
            variation: k.variation,
            variance: k.variance,
        })
        .collect();
    let mut out = each(n, &looks);
    let names: Vec<String> = kernels
        .iter()
        .filter(|k| k.smallest_eigenvalue < INDEFINITE * k.largest_eigenvalue.abs())
        .map(|k| k.name.clone())
        .collect();
    if !names.is_empty() {
        let worst = kernels
            .iter()
            .min_by(|a, b| a.smallest_eigenvalue.total_cmp(&b.smallest_eigenvalue));
        out.push(format!(
            "{} not positive semidefinite (smallest eigenvalue about {:.3e}); training refuses it unless `indefinite` clip, shift or allow is given",
            kernels_are(&names),
            worst.map_or(0.0, |k| k.smallest_eigenvalue)
        ));
    }
    out.extend(uneven(&looks, UNEVEN));
    if !near_duplicates.is_empty() {
        let groups: Vec<String> = near_duplicates
            .iter()
            .map(|g| {
                let names: Vec<String> = g.iter().map(|&m| kernels[m].name.clone()).collect();
                format!("[{}]", list(&names))
            })
            .collect();
        out.push(format!(
            "some kernels say nearly the same (centred alignment ≥ {SAME}): {}; their weights can be exchanged freely, so do not read much into each",
            list(&groups)
        ));
    }
    out
}
