//! The best row of coefficients for one sample of Crammer and Singer's problem, and rows made feasible.

/// A class that may end inside of its bounds.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    class: usize,
    /// Where it would go without bounds, b_k, and from which τ on it is inside, b_k − U_k.
    aim: f64,
    from: f64,
}

/// The row that maximises −⟨row, e⟩ − ½ d ‖row − a‖² over feasible rows: min(b_k − τ, U_k) with b = a − e/d, U_k = C [k = y]
/// and τ such that the sum is 0.
///
/// For any set S of classes, the τ at which the row would sum to 0 with those of S inside and the others at their bounds
/// is no less than the right one. So the classes inside now, and the lowest one alone, leave few candidates.
pub(super) fn best_row(
    a: &[f64],
    e: &[f64],
    d: f64,
    y: usize,
    cost: f64,
    out: &mut [f64],
    candidates: &mut Vec<Candidate>,
) {
    let lowest = screen(a, e, d, y, cost, out, candidates);
    let tau = threshold(y, cost, candidates);
    if candidates.is_empty() {
        // Round-off: the lowest class takes all.
        if lowest != y {
            out[lowest] = -cost;
        }
        return make_feasible(out, y, cost);
    }
    let mut own_inside = false;
    let mut total = 0.0;
    for c in candidates.iter() {
        if c.class == y {
            own_inside = true;
        } else {
            out[c.class] = (c.aim - tau).min(0.0);
            total -= out[c.class];
        }
    }
    if own_inside || total <= 0.0 {
        make_feasible(out, y, cost);
    } else {
        // At its bound, and no rounding of the sum may take it away from there.
        let factor = cost / total;
        out.iter_mut().for_each(|out| *out *= factor);
        out[y] = cost;
    }
}

/// The candidates for being inside, and the class that is nearest to it; `out` is zero afterwards.
fn screen(
    a: &[f64],
    e: &[f64],
    d: f64,
    y: usize,
    cost: f64,
    out: &mut [f64],
    candidates: &mut Vec<Candidate>,
) -> usize {
    let per_d = 1.0 / d;
    let mut lowest = Candidate {
        class: y,
        aim: 0.0,
        from: f64::INFINITY,
    };
    let (mut sum, mut inside) = (if a[y] < cost { 0.0 } else { cost }, 0.0);
    for (k, out) in out.iter_mut().enumerate() {
        let bound = if k == y { cost } else { 0.0 };
        let aim = a[k] - e[k] * per_d;
        *out = aim;
        if aim - bound < lowest.from {
            lowest = Candidate {
                class: k,
                aim,
                from: aim - bound,
            };
        }
        if a[k] < bound {
            sum += aim;
            inside += 1.0;
        }
    }
    let alone = match lowest.class == y {
        true => lowest.aim,
        false => cost + lowest.aim,
    };
    let highest = alone.min(if inside > 0.0 { sum / inside } else { alone });
    candidates.clear();
    for (k, out) in out.iter_mut().enumerate() {
        let bound = if k == y { cost } else { 0.0 };
        let aim = std::mem::replace(out, 0.0);
        if aim - bound < highest {
            candidates.push(Candidate {
                class: k,
                aim,
                from: aim - bound,
            });
        }
    }
    lowest.class
}

/// τ: classes leave for their bounds until those that stay agree on it (Michelot).
fn threshold(y: usize, cost: f64, candidates: &mut Vec<Candidate>) -> f64 {
    loop {
        let count = candidates.len();
        let bounded = candidates.iter().all(|c| c.class != y);
        let aims: f64 = candidates.iter().map(|c| c.aim).sum();
        let tau = (aims + if bounded { cost } else { 0.0 }) / count as f64;
        candidates.retain(|c| c.from < tau);
        if candidates.len() == count {
            return tau;
        }
    }
}

/// Makes a row feasible that is so up to rounding: no wrong class above 0, the sum 0, the own class at most C.
pub(super) fn make_feasible(row: &mut [f64], y: usize, cost: f64) {
    let moved = |row: &mut [f64]| -> f64 {
        let wrong = row.iter_mut().enumerate().filter(|(k, _)| *k != y);
        wrong
            .map(|(_, a)| {
                *a = a.min(0.0);
                -*a
            })
            .sum()
    };
    let mut total = moved(row);
    if total > cost {
        let factor = cost / total;
        row.iter_mut().for_each(|a| *a *= factor);
        total = moved(row);
    }
    row[y] = total.min(cost);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::multiclass::feasible;
    use crate::random::Random;

    #[test]
    fn the_best_row_is_feasible_and_no_pair_of_classes_improves_it() {
        let mut random = Random::new(4);
        for round in 0..5000 {
            let k = 2 + random.below(12);
            let y = random.below(k);
            let cost = [1e-3, 1.0, 1e6][random.below(3)];
            let d = [1e-9, 0.5, 30.0][random.below(3)];
            let mut a: Vec<f64> = (0..k)
                .map(|_| -cost * (random.uniform() - 0.5).max(0.0))
                .collect();
            make_feasible(&mut a, y, cost);
            let e: Vec<f64> = (0..k).map(|_| 3.0 * random.normal()).collect();
            let mut row = vec![0.0; k];
            best_row(&a, &e, d, y, cost, &mut row, &mut Vec::new());
            assert!(feasible(&row, y, cost), "round {round}: {row:?}");
            // The slope of every class that may rise is at most that of any other.
            let slope = |k: usize| -e[k] - d * (row[k] - a[k]);
            // Steep slopes leave no digits of the row below this.
            let least = 1e-12 * cost + 1e-14 / d;
            let rises = |k: usize| row[k] < if k == y { cost } else { 0.0 } - least;
            for up in (0..k).filter(|&k| rises(k)) {
                for down in 0..k {
                    let gain = slope(up) - slope(down);
                    let rounding = 1e-9 + 1e-14 * d * cost;
                    assert!(
                        gain <= rounding,
                        "round {round}: {gain} from {down} to {up}"
                    );
                }
            }
        }
    }
}
