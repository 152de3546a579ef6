//! Widths that are chosen from the data: multiples of the mean or the median distance between samples.

use super::build::Side;
use super::kernel::Kernel;
use crate::error::{Error, Result};
use crate::kernel::Width;
use crate::kernel::statistic::Operand;
use crate::math;
use crate::random::Random;
use rayon::prelude::*;

/// Above this many samples, widths are chosen from a sample of pairs.
const ALL_PAIRS: usize = 2000;
/// About this many pairs are then looked at.
const SAMPLED_PAIRS: usize = 2_000_000;
/// The pairs of at least this many samples with all others are looked at.
const SAMPLED_ROWS: usize = 200;

/// Turns `mean` and `median` into numbers.
pub(super) fn choose_widths(
    kernels: &mut [Kernel],
    sides: &[Side],
    seed: u64,
    notes: &mut Vec<String>,
) -> Result<()> {
    let mut known: Vec<((usize, Typical), f64)> = Vec::new();
    for kernel in kernels {
        let Some((statistic, _)) = kernel.parts() else {
            continue;
        };
        let view = kernel.view().to_owned();
        let place = sides.iter().position(|s| s.serves(kernel, statistic));
        let (factor, which) = match kernel.spec.kind.width() {
            Some(Width::Mean(factor)) => (factor, Typical::Mean),
            Some(Width::Median(factor)) => (factor, Typical::Median),
            _ => continue,
        };
        let Some(s) = place else {
            continue;
        };
        let typical = match known.iter().find(|(key, _)| *key == (s, which)) {
            Some(&(_, typical)) => typical,
            None => {
                let (typical, pairs) = typical(&sides[s].operand, which, seed);
                let first = known.iter().all(|((side, _), _)| *side != s);
                if let Some(pairs) = pairs.filter(|_| first) {
                    notes.push(format!(
                        "view '{view}': widths are chosen from a sample of {pairs} pairs of samples (seed {seed})"
                    ));
                }
                known.push(((s, which), typical));
                typical
            }
        };
        let value = factor * typical;
        if !(value > 0.0 && value.is_finite()) {
            return Err(Error::input(
                format!("kernel '{}'", kernel.name),
                format!(
                    "the {} distance between samples in view '{view}' is {typical}",
                    match which {
                        Typical::Mean => "mean",
                        Typical::Median => "median",
                    }
                ),
                "give samples that differ there, or the width as a number, or leave this kernel out",
            ));
        }
        kernel.spec.kind.set_width(value);
    }
    Ok(())
}

/// What widths are multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typical {
    Mean,
    Median,
}

/// Mean or median of the statistic over pairs of different samples; how many pairs, if not all.
fn typical(x: &Operand, which: Typical, seed: u64) -> (f64, Option<usize>) {
    let n = x.len();
    let everyone = n <= ALL_PAIRS;
    let rows: Vec<usize> = if everyone {
        (0..n).collect()
    } else {
        Random::new(seed).sample(n, (SAMPLED_PAIRS / n).max(SAMPLED_ROWS))
    };
    // The statistic is symmetric: of all pairs, half are enough.
    let blocks = rows.par_chunks(64).map(|rows| {
        let width = match rows.last() {
            Some(last) if everyone => last + 1,
            _ => n,
        };
        let mut block = vec![0.0; rows.len() * width];
        x.block(rows, x, 0..width, &mut block);
        (rows, block, width)
    });
    let pairs = |(rows, block, width): &(&[usize], Vec<f32>, usize),
                 each: &mut dyn FnMut(&[f32])| {
        for (row, &i) in block.chunks(*width).zip(*rows) {
            each(&row[..i]);
            if !everyone {
                each(&row[i + 1..]);
            }
        }
    };
    let count = match everyone {
        true => n * n.saturating_sub(1) / 2,
        false => rows.len() * (n - 1),
    };
    if count == 0 {
        return (0.0, None);
    }
    let typical = match which {
        Typical::Mean => {
            let sums = blocks.map(|block| {
                let mut sum = 0.0;
                pairs(&block, &mut |values| sum += math::sum(values));
                sum
            });
            // In the order of the blocks, so that bits do not depend on the number of threads.
            sums.collect::<Vec<f64>>().iter().sum::<f64>() / count as f64
        }
        Typical::Median => {
            let mut values = Vec::with_capacity(count);
            for block in blocks.collect::<Vec<_>>() {
                pairs(&block, &mut |some| values.extend_from_slice(some));
            }
            let (below, &mut upper, _) = values.select_nth_unstable_by(count / 2, f32::total_cmp);
            let lower = below.iter().copied().max_by(f32::total_cmp);
            match lower.filter(|_| count.is_multiple_of(2)) {
                Some(lower) => 0.5 * (f64::from(lower) + f64::from(upper)),
                None => f64::from(upper),
            }
        }
    };
    (typical, (!everyone).then_some(count))
}
