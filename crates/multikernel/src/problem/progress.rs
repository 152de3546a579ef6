//! When a solver stops, where it starts, and what it gives back.

use super::Certificate;
use std::time::Instant;

/// When to stop, and what may be used.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Relative duality gap asked for.
    pub tolerance: f64,
    /// Largest number of weight steps.
    pub max_rounds: usize,
    /// When to stop at the latest.
    pub deadline: Option<Instant>,
    /// Bytes the solver may hold for rows of the combined kernel.
    pub memory: u64,
    /// Whether the gap is confirmed by the kernels themselves at the end, for the coefficients that are returned. If not, that of scores
    /// from rows in f32 is believed where it is far above their rounding, and other coefficients may bound the optimum from below: enough
    /// for trainings that are only compared with others.
    pub confirm: bool,
}

/// Why a solver stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The gap asked for is reached.
    Converged,
    /// The largest number of rounds is done, or round-off allows no further progress.
    MaxIterations,
    /// The time is up.
    TimeLimit,
    /// The observer asked to stop.
    Stopped,
}

impl Status {
    /// As it stands in result objects.
    pub fn name(self) -> &'static str {
        match self {
            Status::Converged => "converged",
            Status::MaxIterations => "max-iterations",
            Status::TimeLimit => "time-limit",
            Status::Stopped => "stopped",
        }
    }
}

/// One round of a solver, as it stood at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Seconds since the solver started.
    pub seconds: f64,
    /// Primal objective.
    pub primal: f64,
    /// Dual objective.
    pub dual: f64,
    /// Working-set steps so far.
    pub steps: u64,
}

/// Coefficients and weights, where they stand and how they got there.
#[derive(Debug, Clone)]
pub struct Solution {
    /// a
    pub coefficients: Vec<f64>,
    /// β
    pub weights: Vec<f64>,
    /// P, D and the bias, from the kernels.
    pub certificate: Certificate,
    /// Other coefficients, whose dual objective is the certificate's; none where it is that of `coefficients`.
    pub witness: Option<Vec<f64>>,
    /// Why it stopped.
    pub status: Status,
    /// Working-set steps.
    pub steps: u64,
    /// One entry per round.
    pub history: Vec<Round>,
    /// q_m = aᵀK_m a, where the solver has them.
    pub forms: Option<Vec<f64>>,
}

/// Where to start.
#[derive(Debug, Clone)]
pub struct Start {
    /// Coefficients, feasible for the problem.
    pub coefficients: Vec<f64>,
    /// Kernel weights.
    pub weights: Vec<f64>,
}
