//! A test oracle: the optimum of  ½Ω(g)² + Σ C_i ℓ(f_i, y_i)  by a general conic solver.
//!
//! Shares no formula with the library. The primal (in the feature space of a factor K_m = L_m L_mᵀ) is solved as a conic
//! program, and where its multipliers are not good enough the dual as another one; the points found are made feasible and
//! evaluated here in plain arithmetic, so that the optimum lies between `lower` and `upper` whatever the solver's
//! tolerances were. Small problems only: n ≤ 60, M ≤ 6.

use clarabel::solver::SupportedConeT::{ExponentialConeT, SecondOrderConeT};
use multikernel::loss::{Loss, LossSpec};

use super::factor::Factor;
use super::program::{Program, Row};

/// The relative distance of `lower` and `upper` that [`Problem::optimum`] insists on.
pub const ACCURACY: f64 = 1e-7;

/// Tried in this order: asked for too much, the solver may end with less.
const TOLERANCES: [f64; 3] = [1e-10, 1e-12, 1e-8];

/// How kernels share.
#[derive(Debug, Clone)]
pub enum Omega {
    /// ‖g‖_r, 1 ≤ r ≤ ∞
    Block(f64),
    /// max over groups of the sum within; the group of each kernel
    Mixed(Vec<usize>),
    /// Ω² = (1−μ)‖g‖₁² + μ‖g‖₂²
    Elastic(f64),
}

/// ½Ω(g)² + Σ C_i ℓ(f_i, y_i).
#[derive(Debug, Clone)]
pub struct Problem {
    /// n×n each, row by row, positive semi-definite to rounding of f64 (see [`exact_in_f32`]).
    pub kernels: Vec<Vec<f64>>,
    /// Signs, numbers, or classes 0, 1, … for the multiclass hinge.
    pub targets: Vec<f64>,
    pub loss: LossSpec,
    /// C_i
    pub costs: Vec<f64>,
    /// Only for losses of one score.
    pub bias: bool,
    pub omega: Omega,
}

/// A proven enclosure of the optimal value, and the dual point that proves the lower end.
#[derive(Debug, Clone)]
pub struct Optimum {
    pub lower: f64,
    pub upper: f64,
    /// a_i, or A_ik at i·K + k.
    pub coefficients: Vec<f64>,
    /// g_m at the primal point.
    pub group_norms: Vec<f64>,
}

impl Optimum {
    fn unknown() -> Self {
        Self {
            lower: f64::NEG_INFINITY,
            upper: f64::INFINITY,
            coefficients: Vec::new(),
            group_norms: Vec::new(),
        }
    }

    pub fn value(&self) -> f64 {
        0.5 * (self.lower + self.upper)
    }

    pub fn relative_gap(&self) -> f64 {
        (self.upper - self.lower)
            / self
                .upper
                .abs()
                .max(self.lower.abs())
                .max(f64::MIN_POSITIVE)
    }
}

/// Adds the ridge that keeps a positive semi-definite matrix one when its entries are rounded to f32, and rounds.
///
/// Without it rounding leaves negative eigenvalues near 1e-8, which a large C turns into visible differences.
pub fn exact_in_f32(kernel: &[f64]) -> Vec<f64> {
    let n = kernel.len().isqrt();
    let top = kernel.iter().fold(0.0f64, |top, x| top.max(x.abs()));
    let ridge = n as f64 * f64::from(f32::EPSILON) * top;
    kernel
        .iter()
        .enumerate()
        .map(|(at, x)| f64::from((x + if at % (n + 1) == 0 { ridge } else { 0.0 }) as f32))
        .collect()
}

impl Problem {
    fn n(&self) -> usize {
        self.targets.len()
    }

    /// Scores per sample.
    fn outputs(&self) -> usize {
        match self.loss {
            LossSpec::Scalar(_) => 1,
            LossSpec::MulticlassHinge => {
                1 + self.targets.iter().fold(1.0, |top: f64, y| top.max(*y)) as usize
            }
        }
    }

    /// The optimum, with `lower` and `upper` at most [`ACCURACY`] apart; panics if the solver does not get there.
    pub fn optimum(&self) -> Optimum {
        let optimum = self.enclosure(ACCURACY);
        assert!(
            optimum.relative_gap() <= ACCURACY,
            "the oracle only found [{}, {}] (relative gap {:e}) for loss {}, {:?}, costs from {}, bias {}, n {}",
            optimum.lower,
            optimum.upper,
            optimum.relative_gap(),
            self.loss,
            self.omega,
            self.costs[0],
            self.bias,
            self.n(),
        );
        optimum
    }

    /// As good an enclosure as the solver gives, after at most a few attempts to reach the relative gap asked for.
    pub fn enclosure(&self, gap: f64) -> Optimum {
        assert!(
            !self.bias || self.outputs() == 1,
            "a joint multiclass problem has no bias"
        );
        let factors = self.factors();
        let mut best = Optimum::unknown();
        // Kernels times κ with C/κ divide the objective by κ: solve where the optimum is about 1. The first guess is P(0).
        let mut scale: f64 = (0..self.n())
            .map(|i| self.costs[i] * self.loss_value(i, &vec![0.0; self.outputs()]))
            .sum();
        for attempt in 0..4 {
            for tolerance in TOLERANCES {
                self.solve_primal(&factors, scale, tolerance, &mut best);
                if best.relative_gap() > 0.1 * gap {
                    self.solve_dual(&factors, scale, tolerance, &mut best);
                }
                if best.relative_gap() <= 0.1 * gap || (attempt > 0 && best.relative_gap() <= gap) {
                    return best;
                }
            }
            let middle = if best.lower > 0.0 {
                (best.lower * best.upper).sqrt()
            } else {
                0.1 * scale
            };
            scale = if (0.2..5.0).contains(&(middle / scale)) {
                middle * [1.0, 10.0, 0.1, 100.0][attempt]
            } else {
                middle
            };
        }
        best
    }

    /// The lower bound by the dual program alone, given the size of the optimum.
    pub fn dual_program(&self, scale: f64) -> f64 {
        let factors = self.factors();
        let mut best = Optimum::unknown();
        // Which size suits the solver best cannot be told beforehand; every answer is a bound, so the best one counts.
        for size in [1.0, 10.0, 0.1] {
            for tolerance in TOLERANCES {
                self.solve_dual(&factors, size * scale, tolerance, &mut best);
            }
        }
        best.lower
    }

    fn factors(&self) -> Vec<Factor> {
        self.kernels
            .iter()
            .map(|kernel| Factor::new(kernel, self.n()))
            .collect()
    }

    // ----- the dual: max Σ dual terms − ½Ω*(s)², s_m = ‖L_mᵀa‖ -----

    fn solve_dual(&self, factors: &[Factor], scale: f64, tolerance: f64, best: &mut Optimum) {
        let (n, k) = (self.n(), self.outputs());
        let mut program = Program::default();
        let a = program.variables(n * k);
        let costs: Vec<f64> = self.costs.iter().map(|c| c / scale).collect();
        for (i, c) in costs.iter().enumerate() {
            self.dual_term(&mut program, a, i, *c);
        }
        if self.bias {
            program.zero(0.0, (0..n).map(|i| (a + i, 1.0)).collect());
        }
        // ‖L_mᵀa‖ ≤ the given affine form
        let bounded = |program: &mut Program, m: usize, bound: Row| {
            let mut rows = vec![bound];
            for output in 0..k {
                for column in factors[m].columns() {
                    let row = (0..n).map(|i| (a + i * k + output, scale.sqrt() * column[i]));
                    rows.push((0.0, row.collect()));
                }
            }
            program.cone(SecondOrderConeT(rows.len()), rows);
        };
        let m_all = 0..factors.len();
        match &self.omega {
            Omega::Elastic(mu) if *mu > 0.0 && *mu < 1.0 => {
                // ½Ω*² is the least ‖s¹‖∞²/(2(1−μ)) + ‖s²‖²/(2μ) over s = s¹ + s²
                let top = program.variables(1);
                program.quadratic(top, 1.0 / (1.0 - mu));
                for m in m_all {
                    let rest = program.variables(1);
                    program.quadratic(rest, 1.0 / mu);
                    program.nonnegative(0.0, vec![(rest, 1.0)]);
                    bounded(&mut program, m, (0.0, vec![(top, 1.0), (rest, 1.0)]));
                }
            }
            _ => {
                let t = program.variables(1);
                program.quadratic(t, 1.0);
                let s = program.variables(factors.len());
                for m in m_all.clone() {
                    bounded(&mut program, m, (0.0, vec![(s + m, 1.0)]));
                }
                let r_dual = match &self.omega {
                    Omega::Block(r) if r.is_infinite() => 1.0,
                    Omega::Block(r) => r / (r - 1.0),
                    Omega::Elastic(mu) => {
                        if *mu == 0.0 {
                            f64::INFINITY
                        } else {
                            2.0
                        }
                    }
                    Omega::Mixed(groups) => {
                        let largest = program.variables(groups.iter().max().unwrap() + 1);
                        for (m, group) in groups.iter().enumerate() {
                            program.nonnegative(0.0, vec![(largest + group, 1.0), (s + m, -1.0)]);
                        }
                        let mut row = vec![(t, 1.0)];
                        row.extend(
                            (0..=*groups.iter().max().unwrap()).map(|j| (largest + j, -1.0)),
                        );
                        program.nonnegative(0.0, row);
                        f64::NAN
                    }
                };
                if !r_dual.is_nan() {
                    program.norm_bound(t, s, factors.len(), r_dual);
                }
            }
        }
        if let Some((x, _)) = program.solve(tolerance) {
            self.offer(factors, x[a..a + n * k].to_vec(), scale, best);
        }
    }

    /// Takes the coefficients of the scaled problem if they prove a better lower bound.
    fn offer(
        &self,
        factors: &[Factor],
        mut coefficients: Vec<f64>,
        scale: f64,
        best: &mut Optimum,
    ) {
        // back to the unscaled problem: a is scaled like C
        coefficients.iter_mut().for_each(|a| *a *= scale);
        self.make_feasible(&mut coefficients);
        let value = self.dual_value(factors, &coefficients);
        if value > best.lower {
            best.lower = value;
            best.coefficients = coefficients;
        }
    }

    /// Constrains a_i and adds minus its dual term to the objective.
    fn dual_term(&self, program: &mut Program, a: usize, i: usize, c: f64) {
        let y = self.targets[i];
        let k = self.outputs();
        let LossSpec::Scalar(loss) = self.loss else {
            let class = y as usize;
            let row = a + i * k;
            program.linear(row + class, -1.0);
            program.nonnegative(c, vec![(row + class, -1.0)]);
            (0..k)
                .filter(|other| *other != class)
                .for_each(|other| program.nonnegative(0.0, vec![(row + other, -1.0)]));
            program.zero(0.0, (0..k).map(|k| (row + k, 1.0)).collect());
            return;
        };
        let at = a + i;
        let between = |program: &mut Program, low: f64, high: f64| {
            program.nonnegative(-low, vec![(at, 1.0)]);
            program.nonnegative(high, vec![(at, -1.0)]);
        };
        if c == 0.0 {
            return program.zero(0.0, vec![(at, 1.0)]);
        }
        match loss {
            Loss::Hinge => {
                program.linear(at, -y);
                program.nonnegative(0.0, vec![(at, y)]);
                program.nonnegative(c, vec![(at, -y)]);
            }
            Loss::SquaredHinge => {
                program.linear(at, -y);
                program.quadratic(at, 0.5 / c);
                program.nonnegative(0.0, vec![(at, y)]);
            }
            Loss::Logistic => {
                // h ≥ u ln u  ⇔  u e^(−h/u) ≤ 1
                let h = program.variables(2);
                program.linear(h, c);
                program.linear(h + 1, c);
                let one: Row = (1.0, vec![]);
                let u = (0.0, vec![(at, y / c)]);
                let rest = (1.0, vec![(at, -y / c)]);
                program.cone(
                    ExponentialConeT(),
                    vec![(0.0, vec![(h, -1.0)]), u, one.clone()],
                );
                program.cone(
                    ExponentialConeT(),
                    vec![(0.0, vec![(h + 1, -1.0)]), rest, one],
                );
            }
            Loss::Epsilon(epsilon) => {
                let size = program.variables(1);
                program.linear(at, -y);
                program.linear(size, epsilon);
                program.nonnegative(0.0, vec![(size, 1.0), (at, 1.0)]);
                program.nonnegative(0.0, vec![(size, 1.0), (at, -1.0)]);
                between(program, -c, c);
            }
            Loss::Squared => {
                program.linear(at, -y);
                program.quadratic(at, 1.0 / c);
            }
            Loss::Huber(delta) => {
                program.linear(at, -y);
                program.quadratic(at, 1.0 / c);
                between(program, -c * delta, c * delta);
            }
            Loss::OneClass => {
                program.linear(at, -1.0);
                between(program, 0.0, c);
            }
        }
    }

    /// The interval of a_i.
    fn interval(&self, i: usize, c: f64) -> (f64, f64) {
        let y = self.targets[i];
        let high = match self.loss.scalar() {
            Some(Loss::SquaredHinge | Loss::Squared) if c > 0.0 => f64::INFINITY,
            Some(Loss::Huber(delta)) => c * delta,
            _ => c,
        };
        match self.loss.scalar() {
            Some(Loss::Hinge | Loss::SquaredHinge | Loss::Logistic) if y > 0.0 => (0.0, high),
            Some(Loss::Hinge | Loss::SquaredHinge | Loss::Logistic) => (-high, 0.0),
            Some(Loss::OneClass) => (0.0, high),
            _ => (-high, high),
        }
    }

    /// Moves a point that is feasible up to the solver's tolerance to one that is feasible.
    fn make_feasible(&self, a: &mut [f64]) {
        let costs = &self.costs;
        let k = self.outputs();
        if k > 1 {
            for (i, row) in a.chunks_exact_mut(k).enumerate() {
                let class = self.targets[i] as usize;
                row.iter_mut().for_each(|a| *a = a.min(0.0));
                row[class] = 0.0;
                let sum = -row.iter().sum::<f64>();
                let shrink = if sum > costs[i] { costs[i] / sum } else { 1.0 };
                row.iter_mut().for_each(|a| *a *= shrink);
                row[class] = (-row.iter().sum::<f64>()).min(costs[i]);
            }
            return;
        }
        for (i, a) in a.iter_mut().enumerate() {
            let (low, high) = self.interval(i, costs[i]);
            *a = a.clamp(low, high);
        }
        // the excess of the sum goes where there is room, in proportion to it
        for _ in 0..if self.bias { 100 } else { 0 } {
            let excess: f64 = a.iter().sum();
            let rooms: Vec<f64> = (0..a.len())
                .map(|i| {
                    let (low, high) = self.interval(i, costs[i]);
                    let room = if excess > 0.0 {
                        a[i] - low
                    } else {
                        high - a[i]
                    };
                    room.min(1.0 + a[i].abs())
                })
                .collect();
            let total: f64 = rooms.iter().sum();
            if excess == 0.0 || total <= 0.0 {
                break;
            }
            for (i, room) in rooms.iter().enumerate() {
                let (low, high) = self.interval(i, costs[i]);
                a[i] = (a[i] - excess * room / total).clamp(low, high);
            }
        }
    }

    /// D(a), by the formulas of the duals.
    fn dual_value(&self, factors: &[Factor], a: &[f64]) -> f64 {
        let (n, k) = (self.n(), self.outputs());
        let terms: f64 = (0..n)
            .map(|i| {
                let (y, c) = (self.targets[i], self.costs[i]);
                let LossSpec::Scalar(loss) = self.loss else {
                    return a[i * k + y as usize];
                };
                let a = a[i];
                let x_ln_x = |x: f64| if x > 0.0 { x * x.ln() } else { 0.0 };
                match loss {
                    _ if c == 0.0 => 0.0,
                    Loss::Hinge => y * a,
                    Loss::SquaredHinge => y * a - a * a / (4.0 * c),
                    Loss::Logistic => -c * (x_ln_x(y * a / c) + x_ln_x(1.0 - y * a / c)),
                    Loss::Epsilon(epsilon) => y * a - epsilon * a.abs(),
                    Loss::Squared | Loss::Huber(_) => y * a - a * a / (2.0 * c),
                    Loss::OneClass => a,
                }
            })
            .sum();
        let s: Vec<f64> = factors
            .iter()
            .map(|factor| {
                let parts = (0..k).flat_map(|output| {
                    factor.columns().map(move |column| {
                        (0..n).map(|i| column[i] * a[i * k + output]).sum::<f64>()
                    })
                });
                parts.map(|x| x * x).sum::<f64>().sqrt()
            })
            .collect();
        let square = match &self.omega {
            Omega::Block(r) => {
                length(&s, if r.is_infinite() { 1.0 } else { r / (r - 1.0) }).powi(2)
            }
            Omega::Mixed(groups) => {
                let mut largest = vec![0.0f64; groups.iter().max().unwrap() + 1];
                s.iter()
                    .zip(groups)
                    .for_each(|(s, j)| largest[*j] = largest[*j].max(*s));
                largest.iter().sum::<f64>().powi(2)
            }
            Omega::Elastic(mu) if *mu == 0.0 => length(&s, f64::INFINITY).powi(2),
            Omega::Elastic(mu) if *mu == 1.0 => length(&s, 2.0).powi(2),
            Omega::Elastic(mu) => {
                // least over the threshold τ of τ²/(1−μ) + Σ (s − τ)₊²/μ: a convex function of one number, by bisection on its slope
                let slope = |tau: f64| {
                    tau / (1.0 - mu) - s.iter().map(|s| (s - tau).max(0.0)).sum::<f64>() / mu
                };
                let (mut low, mut high) = (0.0, length(&s, f64::INFINITY));
                for _ in 0..200 {
                    let middle = 0.5 * (low + high);
                    if slope(middle) > 0.0 {
                        high = middle
                    } else {
                        low = middle
                    }
                }
                let rest = s.iter().map(|s| (s - low).max(0.0).powi(2)).sum::<f64>() / mu;
                low * low / (1.0 - mu) + rest
            }
        };
        terms - 0.5 * square
    }

    // ----- the primal: min ½Ω(g)² + Σ C_i ℓ(f_i), f = Σ L_m w_m + b -----

    fn solve_primal(&self, factors: &[Factor], scale: f64, tolerance: f64, best: &mut Optimum) {
        let (n, k) = (self.n(), self.outputs());
        let mut program = Program::default();
        // w_m, output after output
        let w: Vec<usize> = factors
            .iter()
            .map(|factor| program.variables(k * factor.rank))
            .collect();
        let f = program.variables(n * k);
        let b = program.variables(usize::from(self.bias));
        let mut score_rows = Vec::new();
        for i in 0..n {
            for output in 0..k {
                let mut row = vec![(f + i * k + output, -1.0)];
                for (factor, w) in factors.iter().zip(&w) {
                    let start = w + output * factor.rank;
                    row.extend(
                        factor
                            .columns()
                            .enumerate()
                            .map(|(at, column)| (start + at, scale.sqrt() * column[i])),
                    );
                }
                if self.bias {
                    row.push((b, 1.0));
                }
                score_rows.push(program.rows.len());
                program.zero(0.0, row);
            }
            self.loss_term(&mut program, f + i * k, i, self.costs[i] / scale);
        }
        let g = program.variables(factors.len());
        for (m, factor) in factors.iter().enumerate() {
            let mut rows: Vec<Row> = vec![(0.0, vec![(g + m, 1.0)])];
            rows.extend((0..k * factor.rank).map(|at| (0.0, vec![(w[m] + at, 1.0)])));
            program.cone(SecondOrderConeT(rows.len()), rows);
        }
        let t = program.variables(1);
        match &self.omega {
            Omega::Block(r) => {
                program.quadratic(t, 1.0);
                program.norm_bound(t, g, factors.len(), *r);
            }
            Omega::Mixed(groups) => {
                program.quadratic(t, 1.0);
                for j in 0..=*groups.iter().max().unwrap() {
                    let mut row = vec![(t, 1.0)];
                    row.extend(
                        (0..groups.len())
                            .filter(|m| groups[*m] == j)
                            .map(|m| (g + m, -1.0)),
                    );
                    program.nonnegative(0.0, row);
                }
            }
            Omega::Elastic(mu) => {
                program.quadratic(t, 1.0 - mu);
                program.norm_bound(t, g, factors.len(), 1.0);
                (0..factors.len()).for_each(|m| program.quadratic(g + m, *mu));
            }
        }
        let Some((x, multipliers)) = program.solve(tolerance) else {
            return;
        };
        // The multiplier of f_i = … is −C_i ℓ'(f_i) = a_i: near r = 1, where the dual's cones are too flat for the solver, the better
        // dual point.
        self.offer(
            factors,
            score_rows.iter().map(|row| multipliers[*row]).collect(),
            scale,
            best,
        );
        // back to the unscaled problem: w is scaled by √κ
        let weights: Vec<Vec<f64>> = factors
            .iter()
            .zip(&w)
            .map(|(factor, w)| {
                x[*w..w + k * factor.rank]
                    .iter()
                    .map(|x| x * scale.sqrt())
                    .collect()
            })
            .collect();
        let bias = if self.bias { x[b] } else { 0.0 };
        let group_norms: Vec<f64> = weights.iter().map(|w| length(w, 2.0)).collect();
        let mut value = 0.5 * self.omega_value(&group_norms).powi(2);
        for i in 0..n {
            let scores: Vec<f64> = (0..k)
                .map(|output| {
                    let parts = factors.iter().zip(&weights).flat_map(|(factor, w)| {
                        factor
                            .columns()
                            .enumerate()
                            .map(move |(at, column)| column[i] * w[output * factor.rank + at])
                    });
                    parts.sum::<f64>() + bias
                })
                .collect();
            value += self.costs[i] * self.loss_value(i, &scores);
        }
        if value < best.upper {
            best.upper = value;
            best.group_norms = group_norms;
        }
    }

    /// Adds c ℓ(f_i, y_i) to the objective.
    fn loss_term(&self, program: &mut Program, f: usize, i: usize, c: f64) {
        let y = self.targets[i];
        if c == 0.0 {
            return;
        }
        let LossSpec::Scalar(loss) = self.loss else {
            let class = y as usize;
            let excess = program.variables(1);
            program.linear(excess, c);
            program.nonnegative(0.0, vec![(excess, 1.0)]);
            for other in (0..self.outputs()).filter(|other| *other != class) {
                program.nonnegative(
                    -1.0,
                    vec![(excess, 1.0), (f + other, -1.0), (f + class, 1.0)],
                );
            }
            return;
        };
        let y = if loss == Loss::OneClass { 1.0 } else { y };
        match loss {
            Loss::Hinge | Loss::OneClass | Loss::SquaredHinge => {
                let excess = program.variables(1);
                program.nonnegative(0.0, vec![(excess, 1.0)]);
                program.nonnegative(-1.0, vec![(excess, 1.0), (f, y)]);
                if loss == Loss::SquaredHinge {
                    program.quadratic(excess, 2.0 * c);
                } else {
                    program.linear(excess, c);
                }
            }
            Loss::Logistic => {
                // ξ ≥ ln(1 + e^(−yf))  ⇔  e^(−yf−ξ) + e^(−ξ) ≤ 1
                let excess = program.variables(1);
                let parts = program.variables(2);
                program.linear(excess, c);
                program.nonnegative(1.0, vec![(parts, -1.0), (parts + 1, -1.0)]);
                let one: Row = (1.0, vec![]);
                let miss = (0.0, vec![(f, -y), (excess, -1.0)]);
                program.cone(
                    ExponentialConeT(),
                    vec![miss, one.clone(), (0.0, vec![(parts, 1.0)])],
                );
                let hit = (0.0, vec![(excess, -1.0)]);
                program.cone(
                    ExponentialConeT(),
                    vec![hit, one, (0.0, vec![(parts + 1, 1.0)])],
                );
            }
            Loss::Epsilon(epsilon) => {
                let excess = program.variables(1);
                program.linear(excess, c);
                program.nonnegative(0.0, vec![(excess, 1.0)]);
                program.nonnegative(epsilon - y, vec![(excess, 1.0), (f, 1.0)]);
                program.nonnegative(epsilon + y, vec![(excess, 1.0), (f, -1.0)]);
            }
            Loss::Squared => {
                let residual = program.variables(1);
                program.zero(-y, vec![(f, 1.0), (residual, -1.0)]);
                program.quadratic(residual, c);
            }
            Loss::Huber(delta) => {
                // f − y = inner + outer, cost ½ inner² + δ |outer|
                let inner = program.variables(2);
                let outer = inner + 1;
                program.quadratic(inner, c);
                program.linear(outer, c * delta);
                program.nonnegative(-y, vec![(f, 1.0), (inner, -1.0), (outer, 1.0)]);
                program.nonnegative(y, vec![(f, -1.0), (inner, 1.0), (outer, 1.0)]);
            }
        }
    }

    fn omega_value(&self, g: &[f64]) -> f64 {
        match &self.omega {
            Omega::Block(r) => length(g, *r),
            Omega::Mixed(groups) => {
                let mut sums = vec![0.0; groups.iter().max().unwrap() + 1];
                g.iter().zip(groups).for_each(|(g, j)| sums[*j] += g);
                length(&sums, f64::INFINITY)
            }
            Omega::Elastic(mu) => {
                ((1.0 - mu) * length(g, 1.0).powi(2) + mu * length(g, 2.0).powi(2)).sqrt()
            }
        }
    }

    fn loss_value(&self, i: usize, scores: &[f64]) -> f64 {
        let (t, y) = (scores[0], self.targets[i]);
        let LossSpec::Scalar(loss) = self.loss else {
            let class = y as usize;
            let wrong = (0..scores.len())
                .filter(|k| *k != class)
                .map(|k| 1.0 + scores[k] - scores[class]);
            return wrong.fold(0.0, f64::max);
        };
        match loss {
            Loss::Hinge => (1.0 - y * t).max(0.0),
            Loss::SquaredHinge => (1.0 - y * t).max(0.0).powi(2),
            Loss::Logistic => (-y * t).max(0.0) + (-t.abs()).exp().ln_1p(),
            Loss::Epsilon(epsilon) => ((t - y).abs() - epsilon).max(0.0),
            Loss::Squared => 0.5 * (t - y).powi(2),
            Loss::Huber(delta) if (t - y).abs() > delta => delta * ((t - y).abs() - 0.5 * delta),
            Loss::Huber(_) => 0.5 * (t - y).powi(2),
            Loss::OneClass => (1.0 - t).max(0.0),
        }
    }
}

fn length(x: &[f64], exponent: f64) -> f64 {
    let top = x.iter().fold(0.0f64, |top, x| top.max(x.abs()));
    if exponent.is_infinite() || top == 0.0 {
        return top;
    }
    top * x
        .iter()
        .map(|x| (x.abs() / top).powf(exponent))
        .sum::<f64>()
        .powf(1.0 / exponent)
}
