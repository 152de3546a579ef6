//! Step rules: what a labelled example does to θ.

use crate::error::{Error, Result, check_positive};
use crate::norm::{BlockNorm, Exponent, Norm, NormSpec};
use crate::solve::steps::Algorithm;
use crate::solve::steps::obscure::Stage2;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How the learner steps.
///
/// With ŷ the best class other than y, z = φ(x, y) − φ(x, ŷ) and ℓ = max(0, 1 − w·z):
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// OM-2 (Luo, Orabona, Fornoni, Caputo, Cesa-Bianchi 2010): θ ← θ + η z with η = 1 − 2 w·z/‖z‖²_{2,q}, held between 0 and 1.
    /// It has no parameter beside the norm, and a mistake bound ([`MistakeBound`](super::MistakeBound)).
    Om2,
    /// OM-2 with another factor c than 1/q in the link w_m = c (‖θ_m‖/‖θ‖_{2,q})^{q−2} θ_m. Near p = 1 the factor 1/q makes w so small that
    /// nearly every example is an update; c = ½ is PA-I at C = ½ for one kernel, whatever p is.
    ///
    /// Theorem 1 holds for every c ≥ 1/q: with m the paper's margin and η = 1 − 2cqm/‖z‖², a step adds
    /// 2qηm + qη²‖z‖² = qη(‖z‖² − 2(cq − 1)m) ≤ qη‖z‖² to ‖θ‖² where m > 0, and what it adds at a mistake does not depend on c.
    #[serde(rename = "om2-link")]
    Om2Link {
        /// c
        link: f64,
    },
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
    /// OMCL (Luo, Orabona, Caputo 2009): PA-I for every kernel by itself, and PA-I on top of all their scores, which starts
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
            Rule::Om2 | Rule::Om2Link { .. } => "om2",
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
            Rule::Om2 | Rule::Om2Link { .. } | Rule::Obscure { .. } | Rule::Pegasos { .. }
        )
    }

    /// What steps in θ, after this many rounds; none for OMCL.
    pub(super) fn algorithm(&self, norm: &BlockNorm, rounds: u64) -> Option<Algorithm> {
        Some(match *self {
            Rule::Om2 | Rule::Om2Link { .. } => Algorithm::Om2,
            Rule::Obscure { eta } => Algorithm::Stage1 { eta },
            Rule::Pegasos { lambda } => {
                Algorithm::Stage2(Stage2::pegasos(lambda, norm.r_dual(), rounds))
            }
            Rule::PassiveAggressive { c } => Algorithm::PassiveAggressive { c },
            Rule::Omcl { .. } => return None,
        })
    }

    /// The factor of the link.
    pub(super) fn link(&self, norm: &BlockNorm) -> f64 {
        match self {
            Rule::Om2Link { link } => *link,
            _ => 1.0 / norm.r_dual(),
        }
    }

    /// Whether Theorem 1 bounds its mistakes.
    pub(super) fn is_bounded(&self, norm: &BlockNorm) -> bool {
        match self {
            Rule::Om2 => true,
            Rule::Om2Link { link } => link * norm.r_dual() >= 1.0,
            _ => false,
        }
    }

    /// The rule's parameter as the model keeps it: C, or 1.
    pub(super) fn cost(&self) -> f64 {
        match self {
            Rule::PassiveAggressive { c } | Rule::Omcl { c } => *c,
            _ => 1.0,
        }
    }

    /// Its parameter: the name, and where the value stands.
    fn parameter(&mut self) -> Option<(&'static str, &mut f64)> {
        match self {
            Rule::Om2 => None,
            Rule::Om2Link { link } => Some(("link", link)),
            Rule::Obscure { eta } => Some(("eta", eta)),
            Rule::Pegasos { lambda } => Some(("lambda", lambda)),
            Rule::PassiveAggressive { c } | Rule::Omcl { c } => Some(("C", c)),
        }
    }

    /// The same rule with another value of its parameter: `link`, `eta`, `lambda` or `C`.
    ///
    /// # Errors
    /// If it has no parameter of this name, or the value is not positive and finite.
    pub fn with(mut self, parameter: &str, value: f64) -> Result<Rule> {
        if self == Rule::Om2 && parameter == "link" {
            self = Rule::Om2Link { link: value };
        }
        match self.parameter() {
            Some((name, place)) if name == parameter => {
                *place = value;
                self.check()?;
                Ok(self)
            }
            _ => Err(Error::input(
                parameter,
                format!("solver {self} has none"),
                "leave it out, or give another solver",
            )),
        }
    }

    /// Whether it has a parameter of this name.
    pub fn has(mut self, parameter: &str) -> bool {
        let own = self.parameter().map(|(name, _)| name);
        own == Some(parameter) || (self == Rule::Om2 && parameter == "link")
    }

    pub(super) fn check(&self) -> Result<()> {
        let mut rule = *self;
        let Some((name, &mut value)) = rule.parameter() else {
            return Ok(());
        };
        check_positive(name, value)
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

/// `om2` (or `auto`), `obscure`, `pegasos`, `pa1` or `omcl`, with the usual value of the parameter, or one that is written behind:
/// `om2:link=0.5`, `obscure:eta=2`, `pegasos:lambda=0.001`. C, which is an option of its own everywhere, is 1 ([`Rule::with`] sets it).
impl FromStr for Rule {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::input(
                "solver",
                format!("'{text}' does not learn from a stream"),
                "give om2 (or auto), om2:link=0.5, pa1, omcl, obscure, obscure:eta=2, pegasos or pegasos:lambda=0.001",
            )
        };
        let (name, parameter) = match text.split_once(':') {
            None => (text, None),
            Some((name, parameter)) => (name, Some(parameter)),
        };
        let rule = match name {
            "auto" | "om2" => Rule::Om2,
            "obscure" => Rule::Obscure { eta: 2.0 },
            "pegasos" => Rule::Pegasos { lambda: 1e-3 },
            "pa1" => Rule::PassiveAggressive { c: 1.0 },
            "omcl" => Rule::Omcl { c: 1.0 },
            _ => return Err(wrong()),
        };
        match parameter {
            None => Ok(rule),
            Some(parameter) => {
                let (key, value) = parameter.split_once('=').ok_or_else(wrong)?;
                let value = value.parse().map_err(|_| wrong())?;
                match rule.has(key) && key != "C" {
                    true => rule.with(key, value),
                    false => Err(wrong()),
                }
            }
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_known_by_their_names() {
        for name in ["om2", "obscure", "pegasos", "pa1", "omcl"] {
            let rule: Rule = name.parse().unwrap();
            assert_eq!(rule.name(), name);
            rule.check().unwrap();
        }
        let read = |text: &str| text.parse::<Rule>();
        assert_eq!(read("auto").unwrap(), Rule::Om2);
        assert_eq!(read("obscure:eta=0.5").unwrap(), Rule::Obscure { eta: 0.5 });
        assert_eq!(read("om2:link=0.5").unwrap(), Rule::Om2Link { link: 0.5 });
        assert!(read("om2:link=0").is_err());
        assert_eq!(
            read("pegasos:lambda=1e-2").unwrap(),
            Rule::Pegasos { lambda: 1e-2 }
        );
        for wrong in [
            "",
            "exact",
            "omcl:C=3",
            "om2:eta=1",
            "obscure:eta",
            "obscure:eta=x",
            "pegasos:eta=1",
        ] {
            let said = read(wrong).unwrap_err().to_string();
            assert!(
                said.contains(&format!("'{wrong}' does not learn")),
                "{said}"
            );
        }
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(read("pa1").unwrap().with("C", wrong).is_err());
        }
        let said = read("obscure:eta=-2").unwrap_err().to_string();
        assert_eq!(said, "eta: it is -2; give a positive finite number");
    }

    #[test]
    fn a_parameter_belongs_to_its_rule() {
        let pegasos: Rule = "pegasos".parse().unwrap();
        assert!(pegasos.has("lambda") && !pegasos.has("C"));
        assert_eq!(
            pegasos.with("lambda", 2.0).unwrap(),
            Rule::Pegasos { lambda: 2.0 }
        );
        let said = pegasos.with("C", 2.0).unwrap_err().to_string();
        assert_eq!(
            said,
            "C: solver pegasos has none; leave it out, or give another solver"
        );
    }
}
