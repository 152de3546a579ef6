//! Weights by alignment with the targets: two stages, no SVM in the first.
//!
//! With K_mc the centred kernel matrices and K_Y the kernel of the targets (y yᵀ for numbers and two classes, Σ_k y_k y_kᵀ of the classes'
//! indicators for more), Cortes, Mohri, Rostamizadeh (ICML 2010, JMLR 2012) propose
//! * `align`: β_m ∝ ⟨K_mc, K_Y⟩ / ‖K_mc‖, each kernel by itself (negative ones are 0);
//! * `alignf`: β ∝ argmin over v ≥ 0 of vᵀMv − 2vᵀa, M_ml = ⟨K_mc, K_lc⟩, a_m = ⟨K_mc, K_Y⟩: the combination that is best aligned.
//!
//! Scaled to Σ β = 1, so that C means the same as for the average kernel.
//!
//! Cost: one visit to every pair and kernel, M²n² products for the matrix M of `alignf`.

use crate::data::Targets;
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Combined, Gram};
use crate::math::rows_times_rows;
use rayon::prelude::*;

/// Entries of all kernels that are computed together.
const ENTRIES: usize = 1 << 22;
/// Entries per kernel that are multiplied in f32 before the sum goes on in f64, about.
const WIDTH: usize = 4096;
/// Sweeps over the weights at most,
const SWEEPS: usize = 20_000;
/// which end when no weight changes by this share of the largest.
const STILL: f64 = 1e-12;
/// ‖K_mc‖² below this share of ‖K_m‖² is rounding: the kernel is constant.
const CONSTANT: f64 = 1e-10;

/// Weights of `align`.
pub(crate) fn align(gram: &Gram, targets: &Targets) -> Result<Vec<f64>> {
    let along = along_targets(gram, targets)?;
    let sizes = products(gram, true);
    let weights = along.iter().zip(&sizes).map(|(a, size)| match *size > 0.0 {
        true => (a / size.sqrt()).max(0.0),
        false => 0.0,
    });
    scaled(weights.collect())
}

/// Weights of `alignf`.
pub(crate) fn alignf(gram: &Gram, targets: &Targets) -> Result<Vec<f64>> {
    let along = along_targets(gram, targets)?;
    scaled(nonnegative(&products(gram, false), &along))
}

fn scaled(mut weights: Vec<f64>) -> Result<Vec<f64>> {
    let total: f64 = weights.iter().sum();
    if !(total > 0.0 && total.is_finite()) {
        return Err(Error::input(
            "kernels",
            "none of them is aligned with the targets",
            "give other kernels, or the solver average",
        ));
    }
    weights.iter_mut().for_each(|w| *w /= total);
    Ok(weights)
}

/// ⟨K_mc, K_Y⟩ = Σ_k ỹ_kᵀ K_m ỹ_k with centred targets ỹ.
fn along_targets(gram: &Gram, targets: &Targets) -> Result<Vec<f64>> {
    let Some((y, outputs)) = super::centred(targets, gram.n_rows()) else {
        return Err(Error::input(
            "labels",
            "there are none to align kernels with",
            "give labels, or the solver average",
        ));
    };
    Ok(gram.quadratic_forms(Coefficients::new(&y, outputs)))
}

/// ⟨K_mc, K_lc⟩, row after row, or only those with m = l.
fn products(gram: &Gram, only_own: bool) -> Vec<f64> {
    let (n, m) = (gram.n_rows(), gram.n_kernels());
    let kernels: Vec<Combined<'_>> = (0..m).map(|k| gram.kernel(k)).collect();
    let ones = vec![1.0; n];
    let means: Vec<Vec<f64>> = kernels
        .iter()
        .map(|kernel| {
            let sums = kernel.product(Coefficients::single(&ones));
            sums.iter().map(|s| s / n as f64).collect()
        })
        .collect();
    let grand: Vec<f64> = means
        .iter()
        .map(|r| r.iter().sum::<f64>() / n as f64)
        .collect();
    let block = (ENTRIES / (n * m).max(1)).clamp(1, n.max(1));
    let mut sums = vec![0.0; if only_own { m } else { m * m }];
    let mut whole = vec![0.0; m];
    let mut part = vec![0.0f32; m * m];
    let mut values = vec![0.0f32; m * block * n];
    let mut together = Vec::with_capacity(m * WIDTH);
    for from in (0..n).step_by(block) {
        let rows: Vec<usize> = (from..(from + block).min(n)).collect();
        let size = rows.len() * n;
        let squares: Vec<(f64, f64)> = values[..m * size]
            .par_chunks_mut(size)
            .zip(&kernels)
            .enumerate()
            .map(|(k, (out, kernel))| {
                kernel.rows(&rows, out);
                let (mut before, mut after) = (0.0, 0.0);
                for (row, &i) in out.chunks_mut(n).zip(&rows) {
                    let shift = means[k][i] - grand[k];
                    for (v, mean) in row.iter_mut().zip(&means[k]) {
                        let value = f64::from(*v);
                        let centred = value - shift - mean;
                        before += value * value;
                        after += centred * centred;
                        *v = centred as f32;
                    }
                }
                (before, after)
            })
            .collect();
        whole.iter_mut().zip(&squares).for_each(|(w, s)| *w += s.0);
        if only_own {
            sums.iter_mut()
                .zip(&squares)
                .for_each(|(sum, s)| *sum += s.1);
            continue;
        }
        for start in (0..size).step_by(WIDTH) {
            let end = (start + WIDTH).min(size);
            together.clear();
            for own in values[..m * size].chunks(size) {
                together.extend_from_slice(&own[start..end]);
            }
            rows_times_rows(&together, &together, end - start, &mut part);
            sums.iter_mut()
                .zip(&part)
                .for_each(|(sum, p)| *sum += f64::from(*p));
        }
    }
    for k in 0..m {
        let own = if only_own { k } else { k * m + k };
        if sums[own] > CONSTANT * whole[k] {
            continue;
        }
        if only_own {
            sums[k] = 0.0;
        } else {
            for l in 0..m {
                sums[k * m + l] = 0.0;
                sums[l * m + k] = 0.0;
            }
        }
    }
    sums
}

/// argmin over v ≥ 0 of vᵀMv − 2vᵀa, one weight at a time.
fn nonnegative(matrix: &[f64], a: &[f64]) -> Vec<f64> {
    let m = a.len();
    let mut v = vec![0.0; m];
    // a − Mv
    let mut rest = a.to_vec();
    for _ in 0..SWEEPS {
        let mut largest_change = 0.0f64;
        for k in 0..m {
            let bend = matrix[k * m + k];
            if bend <= 0.0 {
                continue;
            }
            let next = (v[k] + rest[k] / bend).max(0.0);
            let change = next - v[k];
            if change != 0.0 {
                let row = &matrix[k * m..(k + 1) * m];
                rest.iter_mut().zip(row).for_each(|(r, q)| *r -= change * q);
                largest_change = largest_change.max(change.abs());
                v[k] = next;
            }
        }
        let largest = v.iter().fold(0.0f64, |a, &b| a.max(b));
        if largest_change <= STILL * largest {
            break;
        }
    }
    v
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Pairwise, View, ViewData, Views};
    use crate::gram::{KernelSet, Options};
    use crate::kernel::KernelSpec;
    use crate::random::Random;

    const N: usize = 24;

    fn gram(kernels: &[Vec<f64>]) -> Gram {
        let views = kernels.iter().enumerate().map(|(m, kernel)| View {
            name: format!("k{m}"),
            columns: Vec::new(),
            data: ViewData::Pairwise(
                Pairwise::new(N, N, kernel.iter().map(|&k| k as f32).collect()).unwrap(),
            ),
        });
        let views = Views::new(views.collect()).unwrap();
        let specs = KernelSpec::parse("precomputed").unwrap();
        KernelSet::new(&specs, &views, &Options::default(), &())
            .unwrap()
            .gram()
            .clone()
    }

    /// Linear kernels of random points, a copy, a constant one and one of the targets.
    fn problem() -> (Vec<Vec<f64>>, Targets) {
        let mut random = Random::new(3);
        let index: Vec<u32> = (0..N).map(|i| (i % 3) as u32).collect();
        let linear = |points: &[f64]| -> Vec<f64> {
            (0..N * N)
                .map(|at| points[at / N] * points[at % N])
                .collect()
        };
        let mut kernels: Vec<Vec<f64>> = (0..3)
            .map(|_| {
                linear(
                    &(0..N)
                        .map(|_| random.normal().round())
                        .collect::<Vec<f64>>(),
                )
            })
            .collect();
        kernels.push(kernels[0].clone());
        kernels.push(vec![1.0; N * N]);
        kernels.push(
            (0..N * N)
                .map(|at| f64::from(u8::from(index[at / N] == index[at % N])))
                .collect(),
        );
        let names = vec!["a".into(), "b".into(), "c".into()];
        (kernels, Targets::Classes { names, index })
    }

    /// Centred kernels by definition.
    fn centred(kernel: &[f64]) -> Vec<f64> {
        let mean =
            |at: &dyn Fn(usize) -> usize| (0..N).map(|j| kernel[at(j)]).sum::<f64>() / N as f64;
        let rows: Vec<f64> = (0..N).map(|i| mean(&|j| i * N + j)).collect();
        let all = rows.iter().sum::<f64>() / N as f64;
        (0..N * N)
            .map(|at| kernel[at] - rows[at / N] - rows[at % N] + all)
            .collect()
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn weights_are_those_of_the_definitions() {
        let (kernels, targets) = problem();
        let gram = gram(&kernels);
        let centre: Vec<Vec<f64>> = kernels.iter().map(|k| centred(k)).collect();
        let target = centred(&kernels[5]);
        let along: Vec<f64> = centre.iter().map(|k| dot(k, &target)).collect();
        let found = align(&gram, &targets).unwrap();
        let claims: Vec<f64> = centre
            .iter()
            .zip(&along)
            .map(|(k, a)| match dot(k, k) > 1e-9 {
                true => a / dot(k, k).sqrt(),
                false => 0.0,
            })
            .collect();
        let total: f64 = claims.iter().sum();
        for (w, c) in found.iter().zip(&claims) {
            assert!((w - c / total).abs() < 1e-6, "{found:?}");
        }
        assert_eq!(found[4], 0.0, "a constant kernel says nothing");
        assert!((found[0] - found[3]).abs() < 1e-9, "copies share");
        // The targets' own kernel is the best combination, and no step from it helps.
        let best = alignf(&gram, &targets).unwrap();
        assert!(best[5] > 0.99, "{best:?}");
        // Without it: the optimality conditions, in the scale that the sum of weights hides.
        let some = gram.select_kernels(&[0, 1, 2, 3]);
        let best = alignf(&some, &targets).unwrap();
        let combined: Vec<f64> = (0..N * N)
            .map(|at| (0..4).map(|m| best[m] * centre[m][at]).sum())
            .collect();
        let scale = dot(&combined, &target) / dot(&combined, &combined);
        for m in 0..4 {
            let slope = scale * dot(&centre[m], &combined) - along[m];
            let size = 1e-5 * along[m].abs().max(1.0);
            assert!(
                slope >= -size && (best[m] == 0.0 || slope <= size),
                "{m}: {slope}"
            );
        }
        assert!((best.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_to_align_with_is_said() {
        let (kernels, _) = problem();
        let gram = gram(&kernels);
        let error = align(&gram, &Targets::None).unwrap_err().to_string();
        assert!(
            error.contains("there are none to align kernels with"),
            "{error}"
        );
        let constant = gram.select_kernels(&[4]);
        let targets = Targets::Real((0..N).map(|i| i as f64).collect());
        let error = alignf(&constant, &targets).unwrap_err().to_string();
        assert!(error.contains("none of them is aligned"), "{error}");
    }
}
