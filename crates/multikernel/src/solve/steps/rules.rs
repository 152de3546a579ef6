//! Step rules: how much θ shrinks and how far it goes along −z.

/// What a rule asks for: θ ← shrink·θ − step·z.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    pub(crate) shrink: f64,
    pub(crate) step: f64,
}

/// A step rule and what it remembers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// Stage 1: θ ← θ − η z.
    Constant(f64),
    /// Stage 2.
    Adaptive(Adaptive),
    /// OM-2.
    Om2,
    /// PA-I on the average kernel, with its C, as steps of θ at r = 2.
    PassiveAggressive(f64),
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    /// ‖θ‖_{2,q}
    pub(crate) length: f64,
    /// ‖z‖_{2,q}
    pub(crate) gradient: f64,
    /// −w·z
    pub(crate) margin: f64,
    /// Σ slope² of z in the scores
    pub(crate) slopes: f64,
    /// k_m(x, x)
    pub(crate) diagonal: &'a [f64],
}

/// OBSCURE's step size (Algorithm 2, lines 6–8):
///
/// ```text
/// d = λt + s_{t−1},  s_t = s_{t−1} + ½(√(d² + q(λ/q·‖θ‖ + ‖z‖)²/R²) − d),  η_t = q/(λt + s_t)
/// ```
///
/// R = ∞ leaves s at 0: Pegasos' 1/(λt).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Adaptive {
    pub(crate) lambda: f64,
    pub(crate) q: f64,
    pub(crate) radius: f64,
    /// Steps done.
    pub(crate) t: u64,
    s: f64,
}

impl Seen<'_> {
    /// For rules that look at lengths only.
    pub(crate) fn lengths(length: f64, gradient: f64) -> Self {
        Seen {
            length,
            gradient,
            margin: 0.0,
            slopes: 0.0,
            diagonal: &[],
        }
    }
}

impl Adaptive {
    pub(crate) fn new(lambda: f64, q: f64, radius: f64) -> Self {
        Adaptive {
            lambda,
            q,
            radius,
            t: 0,
            s: 0.0,
        }
    }

    /// The next step, at ‖θ‖_{2,q} = `length` with ‖z‖_{2,q} = `gradient`.
    pub(crate) fn next(&mut self, length: f64, gradient: f64) -> Step {
        self.t += 1;
        let t = self.t as f64;
        let d = self.lambda * t + self.s;
        let slope = (self.lambda / self.q * length + gradient) / self.radius;
        let x = self.q * slope * slope;
        // √(d² + x) − d without its cancellation
        self.s += 0.5 * x / ((d * d + x).sqrt() + d);
        let whole = self.lambda * t + self.s;
        Step {
            // 1 − λη/q, exactly 0 for the first step with R = ∞
            shrink: (self.lambda * (t - 1.0) + self.s) / whole,
            step: self.q / whole,
        }
    }
}

impl Rule {
    /// The next step.
    pub(crate) fn next(&mut self, seen: &Seen<'_>) -> Step {
        let plain = |step: f64| Step { shrink: 1.0, step };
        match self {
            Rule::Constant(eta) => plain(*eta),
            Rule::Adaptive(adaptive) => adaptive.next(seen.length, seen.gradient),
            Rule::Om2 if seen.gradient > 0.0 => plain(om2_step(seen.margin, seen.gradient.powi(2))),
            Rule::PassiveAggressive(c) if seen.gradient > 0.0 => {
                let kernels = seen.diagonal.len() as f64;
                let square = seen.slopes * seen.diagonal.iter().sum::<f64>() / kernels;
                let loss = (1.0 - seen.margin).max(0.0);
                plain(2.0 * passive_aggressive_step(*c, loss, square) / kernels)
            }
            Rule::Om2 | Rule::PassiveAggressive(_) => plain(0.0),
        }
    }

    /// The largest ‖θ‖_{2,q} allowed: q R in stage 2.
    pub(crate) fn longest(&self) -> f64 {
        match self {
            Rule::Constant(_) | Rule::Om2 | Rule::PassiveAggressive(_) => f64::INFINITY,
            Rule::Adaptive(adaptive) => adaptive.q * adaptive.radius,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula as it stands in the paper.
    fn plain(lambda: f64, q: f64, radius: f64, seen: &[(f64, f64)]) -> Vec<Step> {
        let mut s = 0.0;
        let seen = seen.iter().enumerate();
        seen.map(|(t, &(length, gradient))| {
            let t = t as f64 + 1.0;
            let d = lambda * t + s;
            let slope = lambda / q * length + gradient;
            s += 0.5 * ((d * d + q * slope * slope / (radius * radius)).sqrt() - d);
            let step = q / (lambda * t + s);
            Step {
                shrink: 1.0 - lambda * step / q,
                step,
            }
        })
        .collect()
    }

    #[test]
    fn steps_are_the_papers() {
        let seen: Vec<(f64, f64)> = (0..200)
            .map(|t| (f64::from(t % 17), f64::from(t % 3) * 0.7))
            .collect();
        for (lambda, q, radius) in [(0.01, 2.0, 3.0), (1e-4, 11.0, 40.0), (0.3, 10001.0, 1.0)] {
            let mut rule = Rule::Adaptive(Adaptive::new(lambda, q, radius));
            for (want, &(length, gradient)) in plain(lambda, q, radius, &seen).iter().zip(&seen) {
                let got = rule.next(&Seen::lengths(length, gradient));
                assert!((got.step - want.step).abs() <= 1e-9 * want.step);
                assert!((got.shrink - want.shrink).abs() <= 1e-9);
            }
        }
    }

    #[test]
    fn without_a_radius_the_steps_are_those_of_pegasos() {
        let (lambda, q) = (0.02, 4.0);
        let mut rule = Rule::Adaptive(Adaptive::new(lambda, q, f64::INFINITY));
        for t in 1..50 {
            let got = rule.next(&Seen::lengths(3.0, 1.4));
            let t = f64::from(t);
            assert!((got.step - q / (lambda * t)).abs() <= 1e-12 * got.step);
            assert!((got.shrink - (1.0 - 1.0 / t)).abs() <= 1e-15);
            if t == 1.0 {
                assert_eq!(got.shrink, 0.0);
            }
        }
        // a radius that grows gives the same in the limit
        for (radius, close) in [(1e3, 1e-2), (1e6, 1e-7)] {
            let mut near = Rule::Adaptive(Adaptive::new(lambda, q, radius));
            let mut far = Rule::Adaptive(Adaptive::new(lambda, q, f64::INFINITY));
            for _ in 0..50 {
                let (near, far) = (
                    near.next(&Seen::lengths(3.0, 1.4)),
                    far.next(&Seen::lengths(3.0, 1.4)),
                );
                assert!((near.step - far.step).abs() <= close * far.step);
            }
        }
    }
}
