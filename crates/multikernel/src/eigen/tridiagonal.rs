//! Eigenvalues of a symmetric tridiagonal matrix by the implicit QL method (Bowdler, Martin, Reinsch and Wilkinson 1968;
//! `tql2` of the Handbook for Automatic Computation): sweeps of Givens rotations, each with Wilkinson's shift, until
//! the numbers beside the diagonal are gone. Eigenvectors belong to whoever turns along.

/// One eigenvalue takes fewer than two sweeps on average; whatever has not converged after this many never will.
const MOST_SWEEPS: usize = 60;

/// A rotation of two neighbours (x, y), which become (cx − sy, sx + cy).
pub(super) type Rotation = (f64, f64);

/// Turns neighbours x, y by (c, s).
#[inline(always)]
pub(super) fn turned((c, s): Rotation, x: f64, y: f64) -> (f64, f64) {
    (c * x - s * y, s * x + c * y)
}

/// Replaces the diagonal `d` by the eigenvalues, in no order; `e` are the numbers beside it, followed by one more
/// place. Returns whether all of them converged.
///
/// A number beside the diagonal counts as gone when it is below the rounding of its neighbours on it, or of `size`.
/// `turn(m, rotations)` is called for each sweep: its first rotation is of the coordinates m − 1 and m, its next of m − 2 and
/// m − 1, and so on. A matrix whose rows are turned along, starting from the unit matrix, ends with the
/// eigenvector of `d[i]` in row i.
pub(super) fn implicit_ql(
    d: &mut [f64],
    e: &mut [f64],
    size: f64,
    mut turn: impl FnMut(usize, &[Rotation]),
) -> bool {
    let n = d.len();
    let mut rotations = Vec::with_capacity(n);
    let mut converged = true;
    for l in 0..n {
        let mut sweeps = 0;
        loop {
            let gone =
                |m: &usize| e[*m].abs() <= f64::EPSILON * (d[*m].abs() + d[*m + 1].abs()).max(size);
            let m = (l..n - 1).find(gone).unwrap_or(n - 1);
            if m == l {
                break;
            }
            if sweeps == MOST_SWEEPS {
                converged = false;
                break;
            }
            sweeps += 1;
            sweep(d, e, l, m, &mut rotations);
            turn(m, &rotations);
        }
    }
    converged
}

/// One sweep over the coordinates l to m: Wilkinson's shift from the corner at l, then rotations chase it from m up to l.
fn sweep(d: &mut [f64], e: &mut [f64], l: usize, m: usize, rotations: &mut Vec<Rotation>) {
    rotations.clear();
    let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
    let mut g = d[m] - d[l] + e[l] / (g + g.hypot(1.0).copysign(g));
    let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
    for i in (l..m).rev() {
        let f = s * e[i];
        let b = c * e[i];
        let r = f.hypot(g);
        e[i + 1] = r;
        if r == 0.0 {
            // The matrix falls apart here.
            d[i + 1] -= p;
            e[m] = 0.0;
            return;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        let r = (d[i] - g) * s + 2.0 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        rotations.push((c, s));
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0.0;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_the_second_difference() {
        let n = 12;
        let (mut values, mut beside) = (vec![2.0; n], vec![-1.0; n]);
        assert!(implicit_ql(&mut values, &mut beside, 0.0, |_, _| {}));
        values.sort_by(f64::total_cmp);
        for (k, value) in values.iter().enumerate() {
            let angle = std::f64::consts::PI * (k + 1) as f64 / (n + 1) as f64;
            assert!((value - (2.0 - 2.0 * angle.cos())).abs() < 1e-12);
        }
    }
}
