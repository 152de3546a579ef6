//! Losses of one score per sample: the table, and what each file answers.
//!
//! Hinge, squared hinge and logistic look at the margin m = y t with y = ±1; one-class is the hinge with y = 1 whatever the
//! target; ε-insensitive, squared and Huber look at the residual d = t − y.
//! With α = y a the dual terms are those of the usual duals: α for the hinge, α − α²/(4C) for the squared hinge, C times the
//! entropy of α/C for the logistic loss, y a − ε|a|, y a − a²/(2C) (squared and Huber), a for one-class.

use super::bias::{self, Sample};
use super::spec::LossSpec;
use super::{epsilon, hinge, huber, logistic, multiclass, one_class, squared, squared_hinge};
use crate::data::Task;
use crate::error::Result;
use serde::{Deserialize, Serialize};

/// From the table to the enum, the list of what is known of each, and the file that answers for it.
macro_rules! losses {
    ($($(#[cfg($cfg:meta)])? $file:ident::$name:ident$(($x:ident: $type:ty))? = $formula:literal,)*) => {
        /// A convex loss ℓ(t, y) of one score and one target.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum Loss {
            $($(#[cfg($cfg)])? #[doc = $formula] $name$(($type))?,)*
        }

        /// All losses, in the order in which help and sentences list them.
        pub static LOSSES: &[&LossInfo] = &[
            $($(#[cfg($cfg)])? &$file::INFO,)*
            &multiclass::INFO,
        ];

        /// The formula of each loss, in the same order.
        const FORMULAS: &[&str] = &[
            $($(#[cfg($cfg)])? $formula,)*
            multiclass::FORMULA,
        ];

        impl Loss {
            /// What its file answers.
            #[inline(always)]
            fn ask<R>(self, question: impl FnOnce(&dyn Formula) -> R) -> R {
                match self {
                    $($(#[cfg($cfg)])? Loss::$name$(($x))? => question(&$file::$name$(($x))?),)*
                }
            }
        }
    };
}

#[cfg(test)]
use super::toy;

losses! {
    hinge::Hinge = "max(0, 1 − y t)",
    squared_hinge::SquaredHinge = "max(0, 1 − y t)²",
    logistic::Logistic = "ln(1 + e^(−y t))",
    epsilon::Epsilon(width: f64) = "max(0, |t − y| − ε)",
    squared::Squared = "½ (t − y)²",
    huber::Huber(delta: f64) = "½ d² for |d| ≤ δ, else δ (|d| − δ/2), d = t − y",
    one_class::OneClass = "max(0, 1 − t), whatever the target",
    #[cfg(test)] toy::Absolute = "|t − y|",
}

/// What is known of a loss.
#[derive(Debug, Clone, Copy)]
pub struct LossInfo {
    /// Its name, without a parameter.
    pub name: &'static str,
    /// What a user gets by naming it.
    pub(super) made: Made,
    /// The tasks that it suits as a loss of one score.
    pub tasks: &'static [Task],
    /// Targets must be +1 or −1.
    pub(super) needs_signs: bool,
    /// What the solvers make use of.
    pub(super) traits: Traits,
}

/// How a loss is made from what a user writes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Made {
    /// It has no parameter.
    Plain(LossSpec),
    /// It has one.
    With {
        /// Its name in help.
        parameter: &'static str,
        /// What it usually is.
        usual: &'static str,
        /// The loss with this parameter.
        make: fn(f64) -> Result<Loss>,
    },
}

/// What solvers make use of, where it is so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traits {
    /// Coefficients never reach the ends of the feasible interval, where the dual's slope is infinite.
    pub(super) stays_inside: bool,
    /// The dual term has a kink at a = 0.
    pub(super) dual_kink: bool,
    /// The dual term itself does not depend on C, only the feasible interval does, so that a certificate at one C bounds the
    /// objective at another.
    pub(super) scales_with_c: bool,
    /// ℓ(u) ≥ 1 + u·∂ℓ(w) where ℓ(w) > 0, and w·∂ℓ(w) ≥ −1.
    pub(super) counts_mistakes: bool,
}

impl Traits {
    /// None of them.
    pub(super) const NONE: Traits = Traits {
        stays_inside: false,
        dual_kink: false,
        scales_with_c: false,
        counts_mistakes: false,
    };
}

/// The answers of a loss: those of [`Loss`] of the same names. Where `c` is asked for it is positive, and `a` feasible.
pub(super) trait Formula {
    fn info(&self) -> &'static LossInfo;
    fn parameter(&self) -> Option<f64> {
        None
    }
    fn lipschitz(&self) -> Option<f64>;
    fn value(&self, t: f64, y: f64) -> f64;
    fn slopes(&self, t: f64, y: f64) -> (f64, f64);
    fn feasible(&self, c: f64, y: f64) -> (f64, f64);
    fn dual_term(&self, a: f64, c: f64, y: f64) -> f64;
    fn dual_slopes(&self, a: f64, c: f64, y: f64) -> (f64, f64);
    fn dual_curvature(&self, a: f64, c: f64, y: f64) -> f64;
    /// Whether a prediction by this score is right, or how wrong it is.
    fn right(&self, t: f64, y: f64) -> f64 {
        match self.info().needs_signs {
            true => f64::from(u8::from(t * y > 0.0)),
            false => (t - y).powi(2),
        }
    }
    /// The target as the loss sees it.
    fn sign(&self, y: f64) -> f64 {
        y
    }
    /// The best bias, of at least one sample.
    fn best_bias(&self, samples: &[Sample]) -> f64;
}

impl LossInfo {
    /// ℓ of a score t (or of scores f) and a target y.
    pub fn formula(&self) -> &'static str {
        let place = LOSSES.iter().position(|info| info.name == self.name);
        place.map_or("", |place| FORMULAS[place])
    }

    /// As it is written, with the name of its parameter: `huber:DELTA`.
    pub fn usage(&self) -> String {
        match self.made {
            Made::Plain(_) => self.name.to_owned(),
            Made::With { parameter, .. } => format!("{}:{parameter}", self.name),
        }
    }
}

impl Loss {
    /// Every loss of one score, with its usual parameter: for tests over all losses.
    #[cfg(test)]
    pub(crate) fn one_of_each() -> impl Iterator<Item = Loss> {
        let usual = |info: &&LossInfo| info.name.parse().ok().and_then(LossSpec::scalar);
        LOSSES.iter().filter_map(usual)
    }

    /// What is known of it.
    pub fn info(self) -> &'static LossInfo {
        self.ask(|loss| loss.info())
    }

    /// Its parameter, if it has one.
    pub(super) fn parameter(self) -> Option<f64> {
        self.ask(|loss| loss.parameter())
    }

    /// Whether targets must be +1 or −1.
    pub fn needs_signs(self) -> bool {
        self.info().needs_signs
    }

    /// Whether coefficients never reach the ends of the feasible interval, where the dual's slope is infinite.
    pub(crate) fn stays_inside(self) -> bool {
        self.info().traits.stays_inside
    }

    /// Whether the dual term has a kink at a = 0.
    pub(crate) fn has_dual_kink(self) -> bool {
        self.info().traits.dual_kink
    }

    /// Whether a certificate at one C bounds the objective at another: the dual term itself does not depend on C.
    pub(crate) fn scales_with_c(self) -> bool {
        self.info().traits.scales_with_c
    }

    /// Whether ℓ(u) ≥ 1 + u·∂ℓ(w) where ℓ(w) > 0, and w·∂ℓ(w) ≥ −1.
    pub(crate) fn counts_mistakes(self) -> bool {
        self.info().traits.counts_mistakes
    }

    /// 1 or 0 where a score is right or wrong; where targets are numbers, the squared error.
    pub(crate) fn right(self, t: f64, y: f64) -> f64 {
        self.ask(|loss| loss.right(t, y))
    }

    /// Bound on the slope; none for the squared ones.
    pub fn lipschitz(self) -> Option<f64> {
        self.ask(|loss| loss.lipschitz())
    }

    /// ℓ(t, y).
    pub fn value(self, t: f64, y: f64) -> f64 {
        self.ask(|loss| loss.value(t, y))
    }

    /// Left and right derivative in t; they differ at a kink only.
    pub fn slopes(self, t: f64, y: f64) -> (f64, f64) {
        self.ask(|loss| loss.slopes(t, y))
    }

    /// One subgradient in t: the derivative, or at a kink the slope nearest to 0.
    pub fn subgradient(self, t: f64, y: f64) -> f64 {
        let (left, right) = self.slopes(t, y);
        0.0f64.max(left).min(right)
    }

    /// The conjugate ℓ*(u, y) = sup over t of u t − ℓ(t, y); ∞ outside its domain.
    pub fn conjugate(self, u: f64, y: f64) -> f64 {
        // the sup is what the dual term of C = 1 at a = −u is the negative of
        -self.dual_term(-u, 1.0, y)
    }

    /// The interval of a_i in which the dual term is finite, for C_i = c ≥ 0.
    pub fn feasible(self, c: f64, y: f64) -> (f64, f64) {
        if c == 0.0 {
            return (0.0, 0.0);
        }
        self.ask(|loss| loss.feasible(c, y))
    }

    /// What sample i adds to the dual: −c ℓ*(−a/c, y) with c = C_i; −∞ where a is not feasible.
    pub fn dual_term(self, a: f64, c: f64, y: f64) -> f64 {
        let (low, high) = self.feasible(c, y);
        if !(low <= a && a <= high) {
            return f64::NEG_INFINITY;
        }
        if c == 0.0 {
            return 0.0;
        }
        self.ask(|loss| loss.dual_term(a, c, y))
    }

    /// Left and right derivative of the dual term in a, for a inside the feasible interval and c > 0.
    ///
    /// At an end of the interval the derivative from inside is given for both sides.
    pub fn dual_slopes(self, a: f64, c: f64, y: f64) -> (f64, f64) {
        self.ask(|loss| loss.dual_slopes(a, c, y))
    }

    /// Minus the second derivative of the dual term in a: not negative, 0 for the piecewise linear ones.
    pub fn dual_curvature(self, a: f64, c: f64, y: f64) -> f64 {
        self.ask(|loss| loss.dual_curvature(a, c, y))
    }

    /// The bias b that minimises Σ_i C_i ℓ(f_i + b, y_i), to rounding; one entry per sample in each slice.
    ///
    /// Where a whole interval is best, its middle; where the loss falls for ever (logistic with labels all alike), a bias with
    /// which it is 0; 0 if no sample counts.
    pub fn best_bias(self, scores: &[f64], targets: &[f64], costs: &[f64]) -> f64 {
        self.ask(|loss| {
            let samples = bias::samples(scores, targets, costs, |y| loss.sign(y));
            match samples.is_empty() {
                true => 0.0,
                false => loss.best_bias(&samples),
            }
        })
    }
}

/// max(0, x), but NaN stays NaN.
pub(super) fn positive(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

pub(super) fn both(slope: f64) -> (f64, f64) {
    (slope, slope)
}

/// Slopes of a function with one kink, which lies `ahead` of us.
pub(super) fn one_kink(ahead: f64, below: f64, above: f64) -> (f64, f64) {
    if ahead > 0.0 {
        (below, below)
    } else if ahead < 0.0 {
        (above, above)
    } else {
        (below, above)
    }
}
