//! Losses of one score per sample.
//!
//! Hinge, squared hinge and logistic look at the margin m = y t with y = ±1; one-class is the hinge with y = 1 whatever the
//! target; ε-insensitive, squared and Huber look at the residual d = t − y.
//! With α = y a the dual terms are those of the usual duals: α for the hinge, α − α²/(4C) for the squared hinge, C times the
//! entropy of α/C for the logistic loss, y a − ε|a|, y a − a²/(2C) (squared and Huber), a for one-class.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A convex loss ℓ(t, y) of one score and one target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Loss {
    /// max(0, 1 − y t)
    Hinge,
    /// max(0, 1 − y t)²
    SquaredHinge,
    /// ln(1 + e^(−y t))
    Logistic,
    /// max(0, |t − y| − ε)
    Epsilon(f64),
    /// ½ (t − y)²
    Squared,
    /// ½ d² for |d| ≤ δ, else δ (|d| − δ/2), d = t − y
    Huber(f64),
    /// max(0, 1 − t), whatever the target
    OneClass,
}

impl Loss {
    /// The ε-insensitive loss, ε ≥ 0.
    pub fn epsilon(epsilon: f64) -> Result<Self> {
        if epsilon >= 0.0 && epsilon.is_finite() {
            Ok(Loss::Epsilon(epsilon))
        } else {
            Err(Error::input(
                "loss epsilon",
                format!("ε is {epsilon}"),
                "give a number that is not negative",
            ))
        }
    }

    /// The Huber loss, δ > 0.
    pub fn huber(delta: f64) -> Result<Self> {
        if delta > 0.0 && delta.is_finite() {
            Ok(Loss::Huber(delta))
        } else {
            Err(Error::input(
                "loss huber",
                format!("δ is {delta}"),
                "give a positive number",
            ))
        }
    }

    /// Whether targets must be +1 or −1.
    pub fn needs_signs(self) -> bool {
        matches!(self, Loss::Hinge | Loss::SquaredHinge | Loss::Logistic)
    }

    /// Bound on the slope; none for the squared ones.
    pub fn lipschitz(self) -> Option<f64> {
        match self {
            Loss::Hinge | Loss::Logistic | Loss::Epsilon(_) | Loss::OneClass => Some(1.0),
            Loss::Huber(delta) => Some(delta),
            Loss::SquaredHinge | Loss::Squared => None,
        }
    }

    /// ℓ(t, y).
    pub fn value(self, t: f64, y: f64) -> f64 {
        match self {
            Loss::Hinge => positive(1.0 - y * t),
            Loss::SquaredHinge => positive(1.0 - y * t).powi(2),
            // ln(1 + e^x) = max(x, 0) + ln(1 + e^−|x|) does not overflow
            Loss::Logistic => positive(-y * t) + (-(y * t).abs()).exp().ln_1p(),
            Loss::Epsilon(epsilon) => positive((t - y).abs() - epsilon),
            Loss::Squared => 0.5 * (t - y) * (t - y),
            Loss::Huber(delta) => {
                let d = (t - y).abs();
                if d <= delta {
                    0.5 * d * d
                } else {
                    delta * (d - 0.5 * delta)
                }
            }
            Loss::OneClass => positive(1.0 - t),
        }
    }

    /// Left and right derivative in t; they differ at a kink only.
    pub fn slopes(self, t: f64, y: f64) -> (f64, f64) {
        match self {
            Loss::Hinge | Loss::OneClass => {
                let y = self.sign(y);
                let (below, above) = if y > 0.0 { (-y, 0.0) } else { (0.0, -y) };
                one_kink(y - t, below, above)
            }
            Loss::SquaredHinge => both(-2.0 * y * positive(1.0 - y * t)),
            Loss::Logistic => both(-y / (1.0 + (y * t).exp())),
            Loss::Epsilon(epsilon) => {
                let d = t - y;
                let left = one_kink(-epsilon - d, -1.0, 0.0);
                let right = one_kink(epsilon - d, 0.0, 1.0);
                (left.0 + right.0, left.1 + right.1)
            }
            Loss::Squared => both(t - y),
            Loss::Huber(delta) => both((t - y).clamp(-delta, delta)),
        }
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
        match self {
            Loss::Hinge | Loss::Logistic | Loss::OneClass if self.sign(y) > 0.0 => (0.0, c),
            Loss::Hinge | Loss::Logistic | Loss::OneClass => (-c, 0.0),
            Loss::SquaredHinge if y > 0.0 => (0.0, f64::INFINITY),
            Loss::SquaredHinge => (f64::NEG_INFINITY, 0.0),
            Loss::Epsilon(_) => (-c, c),
            Loss::Squared => (f64::NEG_INFINITY, f64::INFINITY),
            Loss::Huber(delta) => (-c * delta, c * delta),
        }
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
        match self {
            Loss::Hinge => y * a,
            Loss::SquaredHinge => y * a - a * a / (4.0 * c),
            Loss::Logistic => {
                let u = y * a / c;
                c * (entropy_part(u) + rest_of_entropy(u))
            }
            Loss::Epsilon(epsilon) => y * a - epsilon * a.abs(),
            Loss::Squared | Loss::Huber(_) => y * a - a * a / (2.0 * c),
            Loss::OneClass => a,
        }
    }

    /// Left and right derivative of the dual term in a, for a inside the feasible interval and c > 0.
    ///
    /// At an end of the interval the derivative from inside is given for both sides.
    pub fn dual_slopes(self, a: f64, c: f64, y: f64) -> (f64, f64) {
        match self {
            Loss::Hinge => both(y),
            Loss::SquaredHinge => both(y - a / (2.0 * c)),
            Loss::Logistic => {
                let u = y * a / c;
                both(y * ((-u).ln_1p() - u.ln()))
            }
            Loss::Epsilon(epsilon) => {
                let (left, right) = one_kink(-a, epsilon, -epsilon);
                (y + left, y + right)
            }
            Loss::Squared | Loss::Huber(_) => both(y - a / c),
            Loss::OneClass => both(1.0),
        }
    }

    /// Minus the second derivative of the dual term in a: not negative, 0 for the piecewise linear ones.
    pub fn dual_curvature(self, a: f64, c: f64, y: f64) -> f64 {
        match self {
            Loss::Hinge | Loss::Epsilon(_) | Loss::OneClass => 0.0,
            Loss::SquaredHinge => 0.5 / c,
            Loss::Logistic => {
                let u = y * a / c;
                1.0 / (c * u * (1.0 - u))
            }
            Loss::Squared | Loss::Huber(_) => 1.0 / c,
        }
    }

    /// The bias b that minimises Σ_i C_i ℓ(f_i + b, y_i), to rounding; one entry per sample in each slice.
    ///
    /// Where a whole interval is best, its middle; where the loss falls for ever (logistic with labels all alike), a bias with
    /// which it is 0; 0 if no sample counts.
    pub fn best_bias(self, scores: &[f64], targets: &[f64], costs: &[f64]) -> f64 {
        super::bias::best(self, scores, targets, costs)
    }

    /// The target as the loss sees it: one-class has only one class.
    pub(super) fn sign(self, y: f64) -> f64 {
        if self == Loss::OneClass { 1.0 } else { y }
    }
}

/// max(0, x), but NaN stays NaN.
fn positive(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

fn both(slope: f64) -> (f64, f64) {
    (slope, slope)
}

/// Slopes of a function with one kink, which lies `ahead` of us.
fn one_kink(ahead: f64, below: f64, above: f64) -> (f64, f64) {
    if ahead > 0.0 {
        (below, below)
    } else if ahead < 0.0 {
        (above, above)
    } else {
        (below, above)
    }
}

/// −u ln u
fn entropy_part(u: f64) -> f64 {
    if u == 0.0 { 0.0 } else { -u * u.ln() }
}

/// −(1−u) ln(1−u), with all digits for small u
fn rest_of_entropy(u: f64) -> f64 {
    if u == 1.0 {
        0.0
    } else {
        -(1.0 - u) * (-u).ln_1p()
    }
}
