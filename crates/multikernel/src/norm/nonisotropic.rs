//! Kloft's non-isotropic norm (section 3.5) for a positive definite M×M matrix E, small M.
//!
//! Ω(g)² = min over θ ≥ 0, θᵀE⁻¹θ ≤ 1 of Σ g_m²/θ_m, and Ω*(s)² = max over the same θ of Σ θ_m s_m²; the weights are
//! β = θ. Both are quadratic programs over θ ≥ 0 in F = E⁻¹, up to the length of θ, solved to rounding by an active set
//! (dual map) and by a projected Newton method (primal map). O(M³) per step.

use super::block::largest;
use super::spec::{NormInfo, NormSpec};
use crate::error::{Error, Result};

/// Newton steps before the primal map takes what it has; a handful is usual.
const MAX_NEWTON_STEPS: usize = 500;

pub(super) const NON_ISOTROPIC: NormInfo = NormInfo {
    name: "noniso",
    argument: Some("FILE.npy"),
    means: "Kloft's non-isotropic norm, with the matrix E in this file",
    read: |file| Ok(NormSpec::NonIsotropic(file.into())),
};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct NonIsotropic {
    /// E, row by row.
    matrix: Vec<f64>,
    /// F = E⁻¹.
    inverse: Vec<f64>,
    size: usize,
}

impl NonIsotropic {
    pub(super) fn new(matrix: &[f64], size: usize) -> Result<Self> {
        let refuse = |found: String| {
            let remedy =
                "give a symmetric positive definite matrix with one row and column per kernel";
            Err(Error::input("norm noniso", found, remedy))
        };
        if size == 0 || matrix.len() != size * size {
            return refuse(format!(
                "the matrix has {} entries for {size} kernels",
                matrix.len()
            ));
        }
        if let Some(at) = matrix.iter().position(|x| !x.is_finite()) {
            return refuse(format!(
                "row {}, column {} is {}",
                at / size + 1,
                at % size + 1,
                matrix[at]
            ));
        }
        let tolerance = 1e-9 * largest(matrix);
        for row in 0..size {
            for column in 0..row {
                let (x, y) = (matrix[row * size + column], matrix[column * size + row]);
                if (x - y).abs() > tolerance {
                    return refuse(format!(
                        "row {}, column {} is {x} but its mirror image is {y}",
                        row + 1,
                        column + 1
                    ));
                }
            }
        }
        let Some(factor) = Cholesky::new(matrix, size) else {
            return refuse("the matrix is not positive definite".into());
        };
        let mut inverse = vec![0.0; size * size];
        for (column, x) in inverse.chunks_exact_mut(size).enumerate() {
            x[column] = 1.0;
            factor.solve(x);
        }
        for row in 0..size {
            for column in 0..row {
                let mean = 0.5 * (inverse[row * size + column] + inverse[column * size + row]);
                inverse[row * size + column] = mean;
                inverse[column * size + row] = mean;
            }
        }
        Ok(Self {
            matrix: matrix.to_vec(),
            inverse,
            size,
        })
    }

    pub(super) fn matrix(&self) -> &[f64] {
        &self.matrix
    }

    pub(super) fn value(&self, g: &[f64]) -> f64 {
        let top = largest(g);
        if top == 0.0 || !top.is_finite() {
            return top;
        }
        let mut theta = vec![0.0; self.size];
        self.primal_map(g, &mut theta);
        // a group too small to be squared has θ = 0 and no say
        let sum: f64 = g
            .iter()
            .zip(&theta)
            .map(|(g, theta)| ((g / top) * (g / top), theta))
            .filter(|(g2, _)| *g2 > 0.0)
            .map(|(g2, theta)| g2 / theta)
            .sum();
        top * sum.sqrt()
    }

    pub(super) fn dual(&self, s: &[f64]) -> f64 {
        let top = largest(s);
        if top == 0.0 || !top.is_finite() {
            return top;
        }
        let mut theta = vec![0.0; self.size];
        self.dual_map(s, &mut theta);
        let sum: f64 = s
            .iter()
            .zip(&theta)
            .map(|(s, theta)| (s / top) * (s / top) * theta)
            .sum();
        top * sum.sqrt()
    }

    /// Minimises ½θᵀFθ − qᵀθ over θ ≥ 0, q = s², by Lawson and Hanson's active set; then scales θ to the ellipsoid.
    pub(super) fn dual_map(&self, s: &[f64], beta: &mut [f64]) {
        let top = largest(s);
        if top == 0.0 || !top.is_finite() {
            return self.dual_map(&vec![1.0; self.size], beta);
        }
        let n = self.size;
        let q: Vec<f64> = s.iter().map(|s| (s / top) * (s / top)).collect();
        let mut theta = times(&self.matrix, &q);
        if theta.iter().any(|theta| *theta < 0.0) {
            theta.fill(0.0);
            let mut free = vec![false; n];
            // Each round frees one kernel and lowers the objective: every set of free kernels appears at most once.
            for _ in 0..10 * n {
                let pull: Vec<f64> = times(&self.inverse, &theta)
                    .iter()
                    .zip(&q)
                    .map(|(f, q)| q - f)
                    .collect();
                let rounding = 1e-14 * largest(&self.inverse) * largest(&theta).max(1.0) * n as f64;
                let Some(enter) = (0..n)
                    .filter(|&m| !free[m] && pull[m] > rounding)
                    .max_by(|&a, &b| pull[a].total_cmp(&pull[b]))
                else {
                    break;
                };
                free[enter] = true;
                while let Some(target) = self.solve_free(&free, &q) {
                    let step = (0..n)
                        .filter(|&m| free[m] && target[m] <= 0.0)
                        .map(|m| theta[m] / (theta[m] - target[m]))
                        .fold(1.0, f64::min);
                    for m in 0..n {
                        theta[m] += step * (target[m] - theta[m]);
                        if free[m] && target[m] <= 0.0 && theta[m] <= f64::EPSILON {
                            free[m] = false;
                            theta[m] = 0.0;
                        }
                    }
                    if step == 1.0 {
                        break;
                    }
                }
            }
        }
        self.scale_to_ellipsoid(&theta, beta);
    }

    /// Minimises Σ g_m²/θ_m + ½θᵀFθ over θ ≥ 0 by Newton steps on the kernels that are not held at 0; then scales θ.
    pub(super) fn primal_map(&self, g: &[f64], beta: &mut [f64]) {
        let top = largest(g);
        if top == 0.0 || !top.is_finite() {
            return self.dual_map(&vec![1.0; self.size], beta);
        }
        let n = self.size;
        let g2: Vec<f64> = g.iter().map(|g| (g / top) * (g / top)).collect();
        let objective = |theta: &[f64]| -> f64 {
            let pull: f64 = (0..n)
                .filter(|&m| g2[m] > 0.0)
                .map(|m| g2[m] / theta[m])
                .sum();
            pull + 0.5 * dot(theta, &times(&self.inverse, theta))
        };
        let mut theta = vec![1.0 / largest(&self.inverse); n];
        let mut current = objective(&theta);
        for _ in 0..MAX_NEWTON_STEPS {
            let mut gradient = times(&self.inverse, &theta);
            let mut hessian = self.inverse.clone();
            for m in (0..n).filter(|&m| g2[m] > 0.0) {
                gradient[m] -= g2[m] / theta[m] / theta[m];
                hessian[m * n + m] += 2.0 * g2[m] / theta[m] / theta[m] / theta[m];
            }
            for m in 0..n {
                let held = theta[m] == 0.0 && gradient[m] >= 0.0;
                if !held {
                    continue;
                }
                gradient[m] = 0.0;
                for other in 0..n {
                    hessian[m * n + other] = 0.0;
                    hessian[other * n + m] = 0.0;
                }
                hessian[m * n + m] = 1.0;
            }
            let mut direction = gradient.clone();
            match Cholesky::new(&hessian, n) {
                Some(factor) => factor.solve(&mut direction),
                None => break,
            }
            // every weight counts, also those too small to be seen in the objective
            let settled = (0..n).all(|m| {
                let size = if g2[m] > 0.0 {
                    theta[m]
                } else {
                    largest(&theta)
                };
                direction[m].abs() <= 1e-13 * size
            });
            if settled {
                break;
            }
            let decrement = dot(&gradient, &direction);
            let mut step = 1.0;
            let mut moved = false;
            while step > 1e-12 {
                // Kernels with g_m > 0 stay inside (their term is a barrier), the others may be put to 0.
                let trial: Vec<f64> = (0..n)
                    .map(|m| {
                        let floor = if g2[m] > 0.0 { 0.01 * theta[m] } else { 0.0 };
                        (theta[m] - step * direction[m]).max(floor)
                    })
                    .collect();
                let value = objective(&trial);
                // near the optimum progress drowns in rounding: the full step is then the best there is
                if value < current
                    || (value <= current * (1.0 + 1e-15) && decrement < 1e-12 * current)
                {
                    moved = trial != theta;
                    theta = trial;
                    current = value;
                    break;
                }
                step *= 0.5;
            }
            if !moved {
                break;
            }
        }
        self.scale_to_ellipsoid(&theta, beta);
    }

    /// Scales weights that are not all 0 to the ellipsoid.
    pub(super) fn normalize(&self, beta: &mut [f64]) {
        let theta = beta.to_vec();
        self.scale_to_ellipsoid(&theta, beta);
    }

    fn scale_to_ellipsoid(&self, theta: &[f64], beta: &mut [f64]) {
        let top = largest(theta);
        let relative: Vec<f64> = theta.iter().map(|theta| theta / top).collect();
        let length = dot(&relative, &times(&self.inverse, &relative)).sqrt();
        for (beta, theta) in beta.iter_mut().zip(relative) {
            *beta = theta / length;
        }
    }

    /// The minimiser with all but the free kernels at 0.
    fn solve_free(&self, free: &[bool], q: &[f64]) -> Option<Vec<f64>> {
        let n = self.size;
        let chosen: Vec<usize> = (0..n).filter(|&m| free[m]).collect();
        let part: Vec<f64> = chosen
            .iter()
            .flat_map(|&row| chosen.iter().map(move |&column| row * n + column))
            .map(|at| self.inverse[at])
            .collect();
        let mut x: Vec<f64> = chosen.iter().map(|&m| q[m]).collect();
        Cholesky::new(&part, chosen.len())?.solve(&mut x);
        let mut target = vec![0.0; n];
        for (m, x) in chosen.into_iter().zip(x) {
            target[m] = x;
        }
        Some(target)
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn times(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix
        .chunks_exact(x.len())
        .map(|row| dot(row, x))
        .collect()
}

/// The lower factor L of A = LLᵀ, row by row.
struct Cholesky {
    lower: Vec<f64>,
    size: usize,
}

impl Cholesky {
    /// None if the matrix is not positive definite.
    fn new(matrix: &[f64], size: usize) -> Option<Self> {
        let mut lower = matrix.to_vec();
        for row in 0..size {
            for column in 0..=row {
                let rest = lower[row * size + column]
                    - dot(
                        &lower[row * size..row * size + column],
                        &lower[column * size..column * size + column],
                    );
                lower[row * size + column] = if row != column {
                    rest / lower[column * size + column]
                } else if rest > 0.0 {
                    rest.sqrt()
                } else {
                    return None;
                };
            }
        }
        Some(Self { lower, size })
    }

    /// Replaces x by A⁻¹x.
    fn solve(&self, x: &mut [f64]) {
        let n = self.size;
        for row in 0..n {
            x[row] = (x[row] - dot(&self.lower[row * n..row * n + row], &x[..row]))
                / self.lower[row * n + row];
        }
        for row in (0..n).rev() {
            x[row] /= self.lower[row * n + row];
            for column in 0..row {
                x[column] -= self.lower[row * n + column] * x[row];
            }
        }
    }
}
