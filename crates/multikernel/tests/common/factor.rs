//! A factor of a small positive semi-definite matrix.

/// K = L Lᵀ by Jacobi rotations, without the directions that are 0 to rounding.
pub struct Factor {
    n: usize,
    pub rank: usize,
    /// Column after column.
    columns: Vec<f64>,
}

impl Factor {
    pub fn new(kernel: &[f64], n: usize) -> Self {
        assert_eq!(kernel.len(), n * n, "a kernel is n×n");
        let mut a = kernel.to_vec();
        let mut vectors = vec![0.0; n * n];
        (0..n).for_each(|i| vectors[i * n + i] = 1.0);
        let top = a.iter().fold(0.0f64, |top, x| top.max(x.abs()));
        for _sweep in 0..60 {
            let mut largest = 0.0f64;
            for p in 0..n {
                for q in p + 1..n {
                    let off = a[p * n + q];
                    largest = largest.max(off.abs());
                    if off.abs() <= 1e-18 * top {
                        continue;
                    }
                    let ratio = (a[q * n + q] - a[p * n + p]) / (2.0 * off);
                    let tangent = ratio.signum() / (ratio.abs() + (ratio * ratio + 1.0).sqrt());
                    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
                    let sine = tangent * cosine;
                    let rotate = |x: &mut f64, y: &mut f64| {
                        (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y)
                    };
                    for i in 0..n {
                        let (mut x, mut y) = (a[i * n + p], a[i * n + q]);
                        rotate(&mut x, &mut y);
                        (a[i * n + p], a[i * n + q]) = (x, y);
                    }
                    for i in 0..n {
                        let (mut x, mut y) = (a[p * n + i], a[q * n + i]);
                        rotate(&mut x, &mut y);
                        (a[p * n + i], a[q * n + i]) = (x, y);
                        let (mut x, mut y) = (vectors[p * n + i], vectors[q * n + i]);
                        rotate(&mut x, &mut y);
                        (vectors[p * n + i], vectors[q * n + i]) = (x, y);
                    }
                }
            }
            if largest <= 1e-17 * top {
                break;
            }
        }
        let values: Vec<f64> = (0..n).map(|i| a[i * n + i]).collect();
        let top = values.iter().fold(0.0, |top: f64, value| top.max(*value));
        let lowest = values.iter().fold(0.0, |low: f64, value| low.min(*value));
        assert!(
            lowest >= -1e-12 * top,
            "a kernel has the eigenvalue {lowest:e} beside {top:e}: round it with exact_in_f32"
        );
        let kept: Vec<usize> = (0..n)
            .filter(|i| values[*i] > n as f64 * f64::EPSILON * top)
            .collect();
        let columns = kept
            .iter()
            .flat_map(|i| {
                vectors[i * n..(i + 1) * n]
                    .iter()
                    .map(|x| x * values[*i].sqrt())
            })
            .collect();
        Self {
            n,
            rank: kept.len(),
            columns,
        }
    }

    pub fn columns(&self) -> impl Iterator<Item = &[f64]> {
        self.columns.chunks_exact(self.n)
    }
}
