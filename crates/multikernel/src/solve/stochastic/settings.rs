//! What may be asked of OBSCURE and its relatives, and what is refused.

use super::Storage;
use crate::error::{Error, Result};
use crate::norm::{BlockNorm, Norm};
use crate::problem::Objective;
use crate::random::Random;

/// How OBSCURE runs.
#[derive(Debug, Clone, PartialEq)]
pub struct StochasticSettings {
    /// The algorithm.
    pub method: Method,
    /// η of stage 1: larger is faster, and makes R less tight.
    pub eta: f64,
    /// Epochs of stage 1.
    pub online_epochs: usize,
    /// Epochs of stage 2.
    pub epochs: usize,
    /// R of stage 2.
    pub radius: Radius,
    /// How samples are drawn.
    pub sampling: Sampling,
    /// Which iterate is returned.
    pub average: Average,
    /// Seed of the draws.
    pub seed: u64,
    /// Where scores come from; by default stored if the memory allows.
    pub storage: Option<Storage>,
    /// Samples in a block; by default as many as work well together and the memory allows.
    pub block: Option<usize>,
}

impl Default for StochasticSettings {
    fn default() -> Self {
        StochasticSettings {
            method: Method::Obscure,
            eta: 2.0,
            online_epochs: 1,
            epochs: 50,
            radius: Radius::FromStageOne,
            sampling: Sampling::Permutation,
            average: Average::Last,
            seed: 0,
            storage: None,
            block: None,
        }
    }
}

/// The algorithms that step through samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// OBSCURE in its two stages, or Pegasos-MKL with [`Radius::Infinite`].
    Obscure,
    /// OM-2's steps, `epochs` passes over the samples; hinge losses only. It minimises no objective with a given C: the
    /// certificate tells how far its predictor is from the optimum of that.
    Om2,
    /// PA-I on the average kernel, `epochs` passes; hinge losses and r = 2 only.
    PassiveAggressive {
        /// C
        c: f64,
    },
}

impl StochasticSettings {
    /// Epochs of stage 1: Pegasos' first step forgets all that came before, and it needs no R.
    pub(super) fn stage_1_epochs(&self) -> usize {
        match self.radius {
            Radius::Infinite => 0,
            Radius::FromStageOne | Radius::Given(_) => self.online_epochs,
        }
    }
}

/// R, the bound of ‖w‖_{2,p} in stage 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Radius {
    /// √(2P) after stage 1, not more than √(2P(0)).
    FromStageOne,
    /// Pegasos-MKL: no bound, steps 1/(λt), no stage 1.
    Infinite,
    /// A bound that is known.
    Given(f64),
}

/// How an epoch's samples are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Every sample once, in a new order every time.
    Permutation,
    /// With replacement, as the theorem assumes.
    WithReplacement,
}

impl Sampling {
    /// An epoch of as many samples as there are.
    pub(super) fn draw(self, random: &mut Random, count: usize) -> Vec<usize> {
        match self {
            Sampling::Permutation => {
                let mut order: Vec<usize> = (0..count).collect();
                random.shuffle(&mut order);
                order
            }
            Sampling::WithReplacement => (0..count).map(|_| random.below(count)).collect(),
        }
    }
}

/// Which θ makes the result: w is the link of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Average {
    /// The last.
    Last,
    /// The mean of θ over stage 2.
    Whole,
    /// The mean of θ over the second half of stage 2.
    SecondHalf,
}

impl Average {
    /// The epoch of stage 2 with which the mean begins.
    pub(super) fn begins_at(self, epochs: usize) -> Option<usize> {
        match self {
            Average::Last => None,
            Average::Whole => Some(0),
            Average::SecondHalf => Some(epochs / 2),
        }
    }
}

pub(super) fn check_bias(objective: &Objective<'_>) -> Result<()> {
    match objective {
        Objective::Scalar(problem) if problem.bias => Err(Error::input(
            "OBSCURE",
            "a bias is asked for",
            "leave it out, or add a constant kernel",
        )),
        _ => Ok(()),
    }
}

/// Online steps are made for hinge losses and samples that count alike.
pub(super) fn check_method(
    objective: &Objective<'_>,
    settings: &StochasticSettings,
    norm: &BlockNorm,
) -> Result<()> {
    let name = match settings.method {
        Method::Obscure => return Ok(()),
        Method::Om2 => "om2",
        Method::PassiveAggressive { .. } => "pa1",
    };
    let wrong = |found: &str, remedy: &str| Err(Error::input(name, found, remedy));
    if let Method::PassiveAggressive { c } = settings.method
        && !(c > 0.0 && c.is_finite() && norm.r() == 2.0)
    {
        return wrong("it needs a positive C and the norm block:2", "give these");
    }
    let hinge = match objective {
        Objective::Scalar(problem) => problem.loss == crate::loss::Loss::Hinge,
        Objective::Multiclass(_) => true,
    };
    if !hinge {
        return wrong(
            "its steps tell classes apart, by hinge losses",
            "give labels of classes without another loss, or the solver exact or obscure",
        );
    }
    let costs = objective.costs();
    if costs.iter().any(|c| *c != costs[0]) {
        return wrong(
            "its steps know no weights of samples or classes",
            "leave the weights out, or give another solver",
        );
    }
    Ok(())
}

pub(crate) fn check_settings(norm: &Norm, settings: &StochasticSettings) -> Result<BlockNorm> {
    let block = norm
        .as_block()
        .filter(|block| block.r() > 1.0 && block.r() <= 2.0)
        .ok_or_else(|| {
            Error::input(
                "OBSCURE",
                format!("the norm is {norm}"),
                "give block:R with 1 < R ≤ 2, such as block:1.01 for few kernels, or block:auto",
            )
        })?;
    let positive = |name: &str, value: f64| {
        if value > 0.0 && !value.is_nan() {
            Ok(())
        } else {
            Err(Error::input(
                format!("OBSCURE, {name}"),
                format!("it is {value}"),
                "give a positive number",
            ))
        }
    };
    positive("eta", settings.eta)?;
    if settings.eta.is_infinite() {
        return Err(Error::input(
            "OBSCURE, eta",
            "it is infinite",
            "give a number",
        ));
    }
    if let Radius::Given(radius) = settings.radius {
        positive("radius", radius)?;
    }
    Ok(*block)
}
