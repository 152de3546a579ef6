//! What this machine can do at most: f32 multiply-adds per second, and bytes read from memory per second.
//!
//! Every job of the benchmark is then judged by the bound that it meets first.

use multiversion::multiversion;
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// Floating-point operations per second of `threads` threads: multiply-adds on registers, nothing else.
/// Known for processors with AVX2 or AVX-512 only.
pub(crate) fn peak_flops(threads: usize) -> Option<f64> {
    const ROUNDS: usize = 20_000_000;
    fused::flops_per_round()?;
    let mut best = f64::INFINITY;
    let mut flops = 0;
    for _ in 0..3 {
        let start = Instant::now();
        flops = (0..threads)
            .into_par_iter()
            .with_max_len(1)
            .filter_map(|_| {
                fused::run(black_box(ROUNDS));
                fused::flops_per_round()
            })
            .sum::<usize>()
            * ROUNDS;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Some(flops as f64 / best)
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod fused {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    /// Independent sums: they hide the latency of a multiply-add (4 cycles on 2 units) and fit into 16 registers.
    const SUMS: usize = 12;

    pub(super) fn flops_per_round() -> Option<usize> {
        if is_x86_feature_detected!("avx512f") {
            Some(SUMS * 16 * 2)
        } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            Some(SUMS * 8 * 2)
        } else {
            None
        }
    }

    pub(super) fn run(rounds: usize) {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the feature that the function is compiled for.
            unsafe { avx512(rounds) }
        } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the features that the function is compiled for.
            unsafe { avx2(rounds) }
        }
    }

    #[target_feature(enable = "avx512f")]
    fn avx512(rounds: usize) {
        let factor = _mm512_set1_ps(black_box(0.999));
        let mut sums = [_mm512_set1_ps(black_box(1.0)); SUMS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, factor, factor);
            }
        }
        black_box(sums);
    }

    #[target_feature(enable = "avx2,fma")]
    fn avx2(rounds: usize) {
        let factor = _mm256_set1_ps(black_box(0.999));
        let mut sums = [_mm256_set1_ps(black_box(1.0)); SUMS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, factor, factor);
            }
        }
        black_box(sums);
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod fused {
    pub(super) fn flops_per_round() -> Option<usize> {
        None
    }
    pub(super) fn run(_rounds: usize) {}
}

/// Bytes per second that `threads` threads together read from an array far larger than any cache.
pub(crate) fn read_bandwidth(threads: usize) -> f64 {
    const FLOATS: usize = 1 << 28;
    let values = vec![1.0_f32; FLOATS];
    let part = FLOATS.div_ceil(threads);
    let best = (0..5)
        .map(|_| {
            let start = Instant::now();
            let total: f32 = black_box(&values).par_chunks(part).map(sum).sum();
            black_box(total);
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    (FLOATS * size_of::<f32>()) as f64 / best
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn sum(values: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 64];
    for chunk in values.chunks_exact(64) {
        for (s, v) in sums.iter_mut().zip(chunk) {
            *s += v;
        }
    }
    sums.iter().sum()
}

/// Bytes per second that `threads` threads together write to an array far larger than any cache.
pub(crate) fn write_bandwidth(threads: usize) -> f64 {
    const FLOATS: usize = 1 << 28;
    let mut values = vec![0.0_f32; FLOATS];
    let part = FLOATS.div_ceil(threads);
    let best = (0..5)
        .map(|round| {
            let start = Instant::now();
            let value = black_box(round as f32);
            values
                .par_chunks_mut(part)
                .for_each(|part| part.fill(value));
            black_box(&values);
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    (FLOATS * size_of::<f32>()) as f64 / best
}
