//! HessianMKL (Chapelle, Rakotomamonjy, NIPS workshop on kernel learning 2008).
//!
//! Problem: min over β on the simplex of J(β) (r = 1).
//! Round: gradient −½ q_m and Hessian of J (`solve/exact/newton.rs`) give a quadratic model, whose minimiser on the simplex is the
//! next point; while J has not fallen there, the step is halved.
//! Stop: relative duality gap.
//! Cost: per round one SVM, |F|³/3 for the factor of the free samples and |F|² for each kernel that matters (at most 64).

use crate::solve::exact::newton::Newton;
use crate::solve::exact::svm::Svm;

/// Searches from `weights` on the simplex.
pub(super) fn search(svm: &mut Svm<'_>, mut weights: Vec<f64>) {
    let mut newton = Newton::new();
    while let Some(at) = svm.at(&weights) {
        let before = weights.clone();
        newton.step(at.forms(), at.value, &mut weights, |weights| {
            svm.newton_point(weights, at.forms())
        });
        if weights == before && !svm.sharpen() {
            return;
        }
    }
}
