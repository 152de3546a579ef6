//! Step rules: what a labelled example does to θ.

use crate::error::{Error, Result};
use crate::norm::{BlockNorm, Exponent, Norm, NormSpec};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How the learner steps.
///
/// With ŷ the best class other than y, z = φ(x, y) − φ(x, ŷ) and ℓ = max(0, 1 − w·z):
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// OM-2 (Jie, Orabona, Fornoni, Caputo, Cesa-Bianchi 2010): θ ← θ + η z with η = 1 − 2 w·z/‖z‖²_{2,q}, held between 0 and 1.
    /// It has no parameter beside the norm, and a mistake bound ([`MistakeBound`](super::MistakeBound)).
    Om2,
    /// Stage 1 of OBSCURE: θ ← θ + η z.
    Obscure {
        /// η
        eta: f64,
    },
    /// Pegasos-MKL: θ ← (1 − 1/t) θ + q/(λt) z at the t-th labelled example; the weight vectors follow the regularised
    /// objective λ/2·‖w‖² + mean loss.
    Pegasos {
        /// λ
        lambda: f64,
    },
    /// PA-I on the average kernel (Crammer et al. 2006): w ← w + min(C, ℓ/‖z‖²) z. Kernels are not weighted: the norm is
    /// not used.
    PassiveAggressive {
        /// C
        c: f64,
    },
    /// OMCL (Jie, Orabona, Caputo 2009): PA-I for every kernel by itself, and PA-I on top of all their scores, which starts
    /// from their mean. The norm is not used.
    Omcl {
        /// C of both layers
        c: f64,
    },
}

impl Rule {
    /// Its name among the solvers.
    pub fn name(&self) -> &'static str {
        match self {
            Rule::Om2 => "om2",
            Rule::Obscure { .. } => "obscure",
            Rule::Pegasos { .. } => "pegasos",
            Rule::PassiveAggressive { .. } => "pa1",
            Rule::Omcl { .. } => "omcl",
        }
    }

    /// Whether kernels are weighted by a norm.
    pub fn uses_norm(&self) -> bool {
        matches!(
            self,
            Rule::Om2 | Rule::Obscure { .. } | Rule::Pegasos { .. }
        )
    }

    /// The rule's parameter as the model keeps it: C, or 1.
    pub(super) fn cost(&self) -> f64 {
        match self {
            Rule::PassiveAggressive { c } | Rule::Omcl { c } => *c,
            _ => 1.0,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let (name, value) = match *self {
            Rule::Om2 => return Ok(()),
            Rule::Obscure { eta } => ("eta", eta),
            Rule::Pegasos { lambda } => ("lambda", lambda),
            Rule::PassiveAggressive { c } | Rule::Omcl { c } => ("C", c),
        };
        match value > 0.0 && value.is_finite() {
            true => Ok(()),
            false => Err(Error::input(
                name,
                format!("it is {value}"),
                "give a positive finite number",
            )),
        }
    }

    /// The norm that is learned in: r = 2 where kernels are not weighted.
    pub(super) fn norm(&self, asked: &NormSpec, kernels: usize) -> Result<(NormSpec, BlockNorm)> {
        let spec = match self.uses_norm() {
            true => asked.clone(),
            false => NormSpec::Block(Exponent::new(2.0)?),
        };
        let refused = |spec: &NormSpec| {
            Error::input(
                "norm",
                format!("the norm is {spec}"),
                "online learning takes block:auto, block:R with 1 < R ≤ 2, or lp:P with 1 < P",
            )
        };
        if matches!(spec, NormSpec::Mixed | NormSpec::NonIsotropic(_)) {
            return Err(refused(&spec));
        }
        let norm = Norm::new(spec.clone(), kernels, &[], &[])?;
        let block = norm
            .as_block()
            .filter(|block| block.r() > 1.0 && block.r() <= 2.0)
            .ok_or_else(|| refused(&spec))?;
        Ok((spec, *block))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// OM-2's η: at a margin w·z below 1, for a z of this squared length.
pub(crate) fn om2_step(margin: f64, square: f64) -> f64 {
    (1.0 - 2.0 * margin / square).clamp(0.0, 1.0)
}

/// PA-I's τ.
pub(crate) fn passive_aggressive_step(c: f64, loss: f64, square: f64) -> f64 {
    c.min(loss / square)
}
