//! A conic program written row by row, and the solver behind it.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, IPSolver,
    SupportedConeT::{self, NonnegativeConeT, PowerConeT, SecondOrderConeT, ZeroConeT},
};

/// A constant and the coefficients of variables.
pub type Row = (f64, Vec<(usize, f64)>);

/// min ½ Σ quadratic x² + linear·x  subject to affine rows in cones.
#[derive(Default)]
pub struct Program {
    quadratic: Vec<f64>,
    linear: Vec<f64>,
    pub rows: Vec<Row>,
    cones: Vec<SupportedConeT<f64>>,
}

impl Program {
    /// The first of so many new variables.
    pub fn variables(&mut self, count: usize) -> usize {
        let first = self.linear.len();
        self.linear.resize(first + count, 0.0);
        self.quadratic.resize(first + count, 0.0);
        first
    }

    pub fn linear(&mut self, variable: usize, coefficient: f64) {
        self.linear[variable] += coefficient;
    }

    pub fn quadratic(&mut self, variable: usize, coefficient: f64) {
        self.quadratic[variable] += coefficient;
    }

    pub fn cone(&mut self, cone: SupportedConeT<f64>, rows: Vec<Row>) {
        self.cones.push(cone);
        self.rows.extend(rows);
    }

    pub fn zero(&mut self, constant: f64, row: Vec<(usize, f64)>) {
        self.cone(ZeroConeT(1), vec![(constant, row)]);
    }

    pub fn nonnegative(&mut self, constant: f64, row: Vec<(usize, f64)>) {
        self.cone(NonnegativeConeT(1), vec![(constant, row)]);
    }

    /// ‖x‖_exponent ≤ t for `count` non-negative variables from x on.
    pub fn norm_bound(&mut self, t: usize, x: usize, count: usize, exponent: f64) {
        if exponent.is_infinite() {
            (0..count).for_each(|m| self.nonnegative(0.0, vec![(t, 1.0), (x + m, -1.0)]));
        } else if exponent == 1.0 {
            let mut row = vec![(t, 1.0)];
            row.extend((0..count).map(|m| (x + m, -1.0)));
            self.nonnegative(0.0, row);
        } else if exponent == 2.0 {
            let mut rows = vec![(0.0, vec![(t, 1.0)])];
            rows.extend((0..count).map(|m| (0.0, vec![(x + m, 1.0)])));
            self.cone(SecondOrderConeT(rows.len()), rows);
        } else {
            // x_m ≤ u_m^(1/e) t^(1−1/e) with Σ u_m = t
            let u = self.variables(count);
            for m in 0..count {
                let rows = [u + m, t, x + m].map(|variable| (0.0, vec![(variable, 1.0)]));
                self.cone(PowerConeT(1.0 / exponent), rows.to_vec());
            }
            let mut row = vec![(t, 1.0)];
            row.extend((0..count).map(|m| (u + m, -1.0)));
            self.zero(0.0, row);
        }
    }

    /// The point found and the multipliers of the rows, whatever the solver thinks of them: the caller evaluates them.
    pub fn solve(&self, tolerance: f64) -> Option<(Vec<f64>, Vec<f64>)> {
        let n = self.linear.len();
        let mut triplets = (Vec::new(), Vec::new(), Vec::new());
        for (at, (_, row)) in self.rows.iter().enumerate() {
            for (variable, coefficient) in row.iter().filter(|(_, coefficient)| *coefficient != 0.0)
            {
                triplets.0.push(at);
                triplets.1.push(*variable);
                triplets.2.push(-coefficient);
            }
        }
        let constraints =
            CscMatrix::new_from_triplets(self.rows.len(), n, triplets.0, triplets.1, triplets.2);
        let constants: Vec<f64> = self.rows.iter().map(|(constant, _)| *constant).collect();
        let curved: Vec<usize> = (0..n)
            .filter(|variable| self.quadratic[*variable] != 0.0)
            .collect();
        let curvature = curved
            .iter()
            .map(|variable| self.quadratic[*variable])
            .collect();
        let quadratic = CscMatrix::new_from_triplets(n, n, curved.clone(), curved, curvature);
        let settings = DefaultSettings {
            verbose: false,
            max_threads: 1,
            tol_gap_abs: tolerance,
            tol_gap_rel: tolerance,
            tol_feas: tolerance,
            ..DefaultSettings::default()
        };
        let mut solver = DefaultSolver::new(
            &quadratic,
            &self.linear,
            &constraints,
            &constants,
            &self.cones,
            settings,
        )
        .ok()?;
        solver.solve();
        let (x, z) = (solver.solution.x, solver.solution.z);
        let finite = x.iter().chain(&z).all(|x| x.is_finite());
        finite.then_some((x, z))
    }
}
