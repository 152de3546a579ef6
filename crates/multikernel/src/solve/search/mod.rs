//! Methods that search among the kernel weights, with an SVM solved at every step: the systems that papers compare with.
//!
//! All minimise J(β), the value of the SVM at weights β (`solve/exact/svm.rs`), over the weights that the norm allows: the simplex
//! at r = 1, simplexes inside of groups for the mixed norm, the unit ball of ‖·‖_p for lp:P. They differ in where they go
//! next, and each is one file. The exact solver (`solve/exact`) solves the same problems, mostly in less time.

mod hessian;
mod mirror;
mod newton;
mod silp;
mod simple;
mod sip;

use crate::gram::Gram;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{Limits, Objective, Solution};
use crate::solve::exact::svm::{Plane, Svm};

/// The methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Mirror descent of MixNorm-MKL: mixed norms, and r = 1 as a single group.
    Mirror,
    /// Cutting planes of Sonnenburg et al.: r = 1.
    Silp,
    /// Reduced gradient of SimpleMKL: r = 1.
    Simple,
    /// Newton steps of HessianMKL: r = 1.
    Hessian,
    /// Cutting planes of Kloft et al.: lp:P, 1 < P < ∞.
    Sip,
    /// Newton steps of Kloft et al.: lp:P, 1 < P < ∞.
    Newton,
}

impl Method {
    /// Whether it solves problems of this norm.
    pub fn solves(self, norm: &Norm) -> bool {
        let r = norm.as_block().map(|block| block.r());
        match self {
            Method::Mirror => r == Some(1.0) || norm.groups().is_some(),
            Method::Silp | Method::Simple | Method::Hessian => r == Some(1.0),
            Method::Sip | Method::Newton => r.is_some_and(|r| r > 1.0 && r < 2.0),
        }
    }
}

/// Solves the problem by this method; one entry of the history for every SVM.
///
/// # Panics
/// If the method is not made for the norm ([`Method::solves`]).
pub fn solve(
    method: Method,
    gram: &Gram,
    norm: &Norm,
    objective: &Objective<'_>,
    limits: &Limits,
    observer: &dyn Observer,
) -> Solution {
    assert!(method.solves(norm), "{method:?} does not solve {norm}");
    let mut svm = Svm::new(gram, norm, *objective, limits, observer);
    let weights = norm.initial_weights(gram.n_kernels());
    match method {
        Method::Mirror => mirror::search(&mut svm, weights.len(), norm.groups()),
        Method::Silp => silp::search(&mut svm, weights),
        Method::Simple => simple::search(&mut svm, weights),
        Method::Hessian => hessian::search(&mut svm, weights),
        Method::Sip => sip::search(&mut svm, weights, exponent(norm)),
        Method::Newton => newton::search(&mut svm, weights, exponent(norm)),
    }
    svm.finish()
}

/// Kloft's p of a block norm 1 < r < 2.
fn exponent(norm: &Norm) -> f64 {
    norm.as_block()
        .map_or(2.0, |block| block.r() / (2.0 - block.r()))
}

/// Σ_i μ_i a_i: D is concave, so that a mixture of coefficients bounds the optimum at least as well as the same mixture of
/// their planes.
fn mix(planes: &[Plane], mu: &[f64]) -> Vec<f64> {
    let mut mixed = vec![0.0; planes.first().map_or(0, |plane| plane.coefficients().len())];
    for (plane, &mu) in planes.iter().zip(mu).filter(|(_, mu)| **mu > 0.0) {
        let each = mixed.iter_mut().zip(plane.coefficients());
        each.for_each(|(x, a)| *x += mu * a);
    }
    mixed
}
