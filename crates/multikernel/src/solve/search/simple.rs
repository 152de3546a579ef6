//! SimpleMKL (Rakotomamonjy, Bach, Canu, Grandvalet, JMLR 2008, Algorithm 1).
//!
//! Problem: min over β on the simplex of J(β) (r = 1); ∂J/∂β_m = −½ q_m (their eq. 11).
//! Round: the reduced gradient with respect to the largest weight (eq. 12) gives a direction D on the simplex. As long as J
//! falls at the largest step that D allows, the step is taken, and the weight that became 0 leaves D; then a search by
//! golden sections finds the step between 0 and the largest.
//! Stop: relative duality gap (their section 3.4).
//! Cost: one SVM for every value of J, mostly one for each golden section.

use crate::solve::exact::svm::{Plane, Svm};

/// (1 + √5)/2
const GOLDEN: f64 = 1.618_033_988_749_895;
/// A search ends when its bracket is this share of its first length; where that does not lower J, ten times finer.
const BRACKET: f64 = 0.1;
const LEAST_BRACKET: f64 = 1e-8;
/// Weights below this are 0.
const ZERO: f64 = 1e-12;
/// Weights below this may go where J does not show it.
const NEARLY_ZERO: f64 = 1e-4;

/// Searches from `weights` on the simplex.
pub(super) fn search(svm: &mut Svm<'_>, mut weights: Vec<f64>) {
    let Some(mut at) = svm.at(&weights) else {
        return;
    };
    let mut bracket = BRACKET;
    loop {
        let before = at.value;
        let Some(next) = round(svm, &mut weights, at, bracket) else {
            return;
        };
        at = next;
        // Below the accuracy of the values nothing can be seen.
        if at.value >= before - 1e-12 * before.abs() {
            let finer = bracket > LEAST_BRACKET;
            bracket = (0.1 * bracket).max(LEAST_BRACKET);
            if !svm.sharpen() && !finer {
                return;
            }
            // The gradient may have been too rough to lead down.
            match svm.at(&weights) {
                Some(now) => at = now,
                None => return,
            }
        }
    }
}

/// One direction and the step along it.
fn round(svm: &mut Svm<'_>, weights: &mut Vec<f64>, mut at: Plane, bracket: f64) -> Option<Plane> {
    let (mut direction, largest) = reduced_gradient(weights, at.forms());
    let (mut far, mut end, mut there);
    loop {
        let Some((step, emptied)) = largest_step(weights, &direction) else {
            return svm.at(weights); // no direction leads down: more accuracy is all that helps
        };
        far = step;
        end = moved(weights, &direction, far);
        end[emptied] = 0.0;
        there = svm.at(&end)?;
        // A weight that is nearly 0 already changes J by less than can be seen: it goes too.
        let unseen = weights[emptied] < NEARLY_ZERO && there.value < at.value + svm.accuracy();
        if there.value >= at.value && !unseen {
            break;
        }
        *weights = end;
        at = there;
        direction[largest] += direction[emptied];
        direction[emptied] = 0.0;
    }
    let start = weights.clone();
    let (mut low, mut high) = ((0.0, at), (far, there));
    // One of the two inner points of a bracket was an inner point of the last one.
    let mut known: Option<(f64, Plane)> = None;
    while high.0 - low.0 > bracket * far {
        let right = low.0 + (high.0 - low.0) / GOLDEN;
        let left = low.0 + (right - low.0) / GOLDEN;
        let mut inner = |step: f64| match &known {
            Some((at, value)) if (at - step).abs() <= 1e-9 * far => Some(value.clone()),
            _ => svm.at(&moved(&start, &direction, step)),
        };
        let (at_right, at_left) = (inner(right)?, inner(left)?);
        let values = [low.1.value, at_left.value, at_right.value, high.1.value];
        let least = (0..4).fold(0, |best, k| if values[k] < values[best] { k } else { best });
        match least {
            0 => high = (left, at_left),
            1 => {
                known = Some((left, at_left));
                high = (right, at_right);
            }
            2 => {
                known = Some((right, at_right));
                low = (left, at_left);
            }
            _ => low = (right, at_right),
        }
    }
    let (step, at) = if low.1.value <= high.1.value {
        low
    } else {
        high
    };
    *weights = match step == far {
        true => end,
        false => moved(&start, &direction, step),
    };
    Some(at)
}

/// The direction, and the largest weight, which gives and takes what the others do.
fn reduced_gradient(weights: &[f64], forms: &[f64]) -> (Vec<f64>, usize) {
    let largest =
        (0..weights.len()).fold(0, |top, m| if weights[m] > weights[top] { m } else { top });
    // −(∂_m − ∂_largest) with ∂_m = −½ q_m
    let mut direction: Vec<f64> = forms.iter().map(|q| 0.5 * (q - forms[largest])).collect();
    for (d, w) in direction.iter_mut().zip(weights) {
        if *w <= ZERO && *d < 0.0 {
            *d = 0.0;
        }
    }
    direction[largest] = 0.0;
    direction[largest] = -direction.iter().sum::<f64>();
    (direction, largest)
}

/// How far the direction may be followed, and which weight is 0 there; none without a direction.
fn largest_step(weights: &[f64], direction: &[f64]) -> Option<(f64, usize)> {
    let steps = weights.iter().zip(direction).enumerate();
    steps
        .filter(|(_, (w, d))| **d < 0.0 && **w > ZERO)
        .map(|(m, (w, d))| (-w / d, m))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(step, _)| *step > 0.0 && step.is_finite())
}

fn moved(weights: &[f64], direction: &[f64], step: f64) -> Vec<f64> {
    let mut next: Vec<f64> = weights
        .iter()
        .zip(direction)
        .map(|(w, d)| (w + step * d).max(0.0))
        .collect();
    let total: f64 = next.iter().sum();
    next.iter_mut().for_each(|w| *w /= total);
    next
}
