//! Small random problems of every kind, the same everywhere and for ever.

use multikernel::loss::LossSpec;

use super::conic::{Omega, Problem, exact_in_f32};

/// Every loss; a new one is tested by adding it here.
pub const LOSSES: [&str; 8] = [
    "hinge",
    "squared-hinge",
    "logistic",
    "epsilon:0.1",
    "squared",
    "huber:0.5",
    "one-class",
    "multiclass-hinge",
];

/// The block norms r to be covered.
pub const EXPONENTS: [f64; 8] = [1.0, 1.05, 1.25, 4.0 / 3.0, 1.6, 2.0, 3.0, f64::INFINITY];

/// A linear congruential generator.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0…below−1.
    pub fn below(&mut self, below: usize) -> usize {
        (self.unit() * below as f64) as usize
    }

    /// Nearly normal, within ±6.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// Gaussian and linear kernels over random points, and now and then a rank-one kernel, a copy of the one before, or zeros.
///
/// All entries are exact in f32.
pub fn kernels(random: &mut Random, n: usize, count: usize) -> Vec<Vec<f64>> {
    let points: Vec<[f64; 3]> = (0..n)
        .map(|_| [random.normal(), random.normal(), random.normal()])
        .collect();
    let direction: Vec<f64> = (0..n).map(|_| (4.0 * random.normal()).round()).collect();
    let pairs = |value: &dyn Fn(usize, usize) -> f64| {
        (0..n * n)
            .map(|at| value(at / n, at % n))
            .collect::<Vec<f64>>()
    };
    let mut kernels: Vec<Vec<f64>> = Vec::new();
    for m in 0..count {
        let width = 4f64.powi(m as i32 - 1);
        let dot = |i: usize, j: usize| (0..3).map(|d| points[i][d] * points[j][d]).sum::<f64>();
        let distance = |i: usize, j: usize| dot(i, i) + dot(j, j) - 2.0 * dot(i, j);
        kernels.push(match random.below(7) {
            0 => exact_in_f32(&pairs(&dot)),
            1 => pairs(&|i, j| direction[i] * direction[j] / 16.0),
            2 if m > 0 => kernels[m - 1].clone(),
            3 if m > 0 => vec![0.0; n * n],
            _ => exact_in_f32(&pairs(&|i, j| (-distance(i, j) / width).exp())),
        });
    }
    kernels
}

/// A problem with this loss; everything else is drawn: 16 to 27 samples (12 in three classes), 2 to 5 kernels, C from
/// 1e-3 to 1e4, every second time with sample weights (some of them 0), with or without bias, any norm.
pub fn problem(random: &mut Random, loss: &str) -> Problem {
    let loss: LossSpec = loss.parse().unwrap();
    let multiclass = loss == LossSpec::MulticlassHinge;
    let n = if multiclass {
        12
    } else {
        16 + random.below(12)
    };
    let count = 2 + random.below(4);
    let kernels = kernels(random, n, count);
    let signs = loss.scalar().is_some_and(|loss| loss.needs_signs());
    let targets = (0..n)
        .map(|i| {
            if multiclass {
                (i % 3) as f64
            } else if signs {
                if i % 2 == 0 { 1.0 } else { -1.0 }
            } else {
                random.normal()
            }
        })
        .collect();
    let c = random.pick(&[1e-3, 0.1, 1.0, 30.0, 1e4]);
    let weighted = random.unit() < 0.5;
    let costs = (0..n)
        .map(|i| {
            if weighted {
                c * 0.5 * ((i / 2) % 4) as f64
            } else {
                c
            }
        })
        .collect();
    let omega = match random.below(8) {
        0 => Omega::Mixed((0..count).map(|m| m % 2).collect()),
        1 => Omega::Elastic(random.pick(&[0.1, 0.6])),
        _ => Omega::Block(random.pick(&EXPONENTS)),
    };
    let bias = !multiclass && loss.to_string() != "one-class" && random.unit() < 0.5;
    Problem {
        kernels,
        targets,
        loss,
        costs,
        bias,
        omega,
    }
}
