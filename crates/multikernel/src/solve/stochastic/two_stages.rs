//! OBSCURE over a training set, whatever its outputs: Algorithm 1, its R, Algorithm 2.

use super::{Radius, Stage, StochasticSettings};
use crate::problem::Status;
use crate::solve::steps::Algorithm;
use crate::solve::steps::obscure::{Stage2, radius};
use std::ops::ControlFlow;

/// Both stages. `epoch` does the n-th epoch of a stage, counted from 0, and gives P after it, or why the run ends with it.
/// Gives why the run ended, and R: ∞ as long as it was not known.
pub(super) fn two_stages(
    settings: &StochasticSettings,
    lambda: f64,
    q: f64,
    at_zero: f64,
    mut epoch: impl FnMut(Stage, usize, &mut Algorithm) -> ControlFlow<Status, f64>,
) -> (Status, f64) {
    let mut primal = at_zero;
    let mut stage_1 = Algorithm::Stage1 { eta: settings.eta };
    for n in 0..settings.stage_1_epochs() {
        match epoch(Stage::Online, n, &mut stage_1) {
            ControlFlow::Continue(now) => primal = now,
            ControlFlow::Break(status) => return (status, f64::INFINITY),
        }
    }
    let radius = match settings.radius {
        Radius::FromStageOne => radius(primal, at_zero),
        Radius::Infinite => f64::INFINITY,
        Radius::Given(radius) => radius,
    };
    let mut stage_2 = Algorithm::Stage2(Stage2::new(lambda, q, radius));
    for n in 0..settings.epochs {
        if let ControlFlow::Break(status) = epoch(Stage::Batch, n, &mut stage_2) {
            return (status, radius);
        }
    }
    (Status::MaxIterations, radius)
}
