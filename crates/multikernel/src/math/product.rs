//! Dense products of matrices, behind a safe door.

/// The routine of the gemm crates: sizes m, n, k; the result, the left and the right matrix, each as pointer, column step
/// and row step; then the factor of the result's old values and the factor of the product.
type Gemm<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    gemm_common::Parallelism,
);

/// Numbers whose matrices can be multiplied.
pub(crate) trait Element: Copy + 'static {
    /// 0, which stands for "the result's old values are not read".
    const ZERO: Self;

    /// The fastest routine of this machine.
    fn gemm() -> Gemm<Self>;
}

impl Element for f32 {
    const ZERO: f32 = 0.0;

    fn gemm() -> Gemm<f32> {
        gemm_f32::gemm::f32::get_gemm_fn()
    }
}

impl Element for f64 {
    const ZERO: f64 = 0.0;

    fn gemm() -> Gemm<f64> {
        gemm_f64::gemm::f64::get_gemm_fn()
    }
}

/// A matrix in a slice: element (i, j) stands at i·`row_step` + j·`column_step`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    cols: usize,
    row_step: usize,
    column_step: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Rows of `cols` values, each starting `row_step` values after the one before.
    pub(crate) fn new(values: &'a [T], rows: usize, cols: usize, row_step: usize) -> Self {
        assert!(fits(values.len(), rows, cols, row_step), "whole rows");
        Matrix {
            values,
            rows,
            cols,
            row_step,
            column_step: 1,
        }
    }

    /// Rows of `cols` values, one directly after the other.
    pub(crate) fn of_rows(values: &'a [T], cols: usize) -> Self {
        let rows = values.len().checked_div(cols).unwrap_or(0);
        assert_eq!(values.len(), rows * cols, "whole rows");
        Matrix::new(values, rows, cols, cols)
    }

    /// Its transpose.
    pub(crate) fn transposed(self) -> Self {
        Matrix {
            rows: self.cols,
            cols: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }
}

/// Whether rows of `cols` values, `row_step` apart, lie within `length` values without overlap.
fn fits(length: usize, rows: usize, cols: usize, row_step: usize) -> bool {
    let last = rows.saturating_sub(1).checked_mul(row_step);
    cols <= row_step
        && (rows == 0 || last.and_then(|l| l.checked_add(cols)) <= Some(length))
        && last.is_some()
}

/// out = `keep`·out + `factor`·A·B on the calling thread, where the rows of `out` start `row_step` values apart; what is
/// in `out` is not read if `keep` is 0.
pub(crate) fn multiply<T: Element + PartialEq>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    factor: T,
    keep: T,
    out: &mut [T],
    row_step: usize,
) {
    let (m, n, k) = (a.rows, b.cols, a.cols);
    assert_eq!(k, b.rows, "the left has a column for each row of the right");
    assert!(fits(out.len(), m, n, row_step), "one place for each pair");
    let step = |count: usize| isize::try_from(count).expect("a slice is never longer than isize");
    // The routine prefers to write columns, so the result's rows are given to it as columns: outᵀ = BᵀAᵀ. A single
    // column is its own transpose.
    let (m, n, column, row, left, right) = match row_step > 1 {
        true => (n, m, row_step, 1, b.transposed(), a.transposed()),
        false => (m, n, 1, row_step, a, b),
    };
    // SAFETY: `Matrix::new` and the asserts above give the three matrices exactly the extents that the pointers and
    // steps describe: every element that is reached lies in its slice. `out` is borrowed mutably, so it overlaps
    // neither of the others.
    #[allow(unsafe_code)]
    unsafe {
        T::gemm()(
            m,
            n,
            k,
            out.as_mut_ptr(),
            step(column),
            step(row),
            keep != T::ZERO,
            left.values.as_ptr(),
            step(left.column_step),
            step(left.row_step),
            right.values.as_ptr(),
            step(right.column_step),
            step(right.row_step),
            keep,
            factor,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

/// out = A·Bᵀ on the calling thread, where `a` and `b` hold rows of `width` values and `out` one row for each row of
/// `a`, one column for each row of `b`.
pub(crate) fn rows_times_rows(a: &[f32], b: &[f32], width: usize, out: &mut [f32]) {
    if width == 0 {
        out.fill(0.0);
        return;
    }
    let (a, b) = (Matrix::of_rows(a, width), Matrix::of_rows(b, width));
    assert_eq!(out.len(), a.rows * b.rows, "one place for each pair");
    multiply(a, b.transposed(), 1.0, 0.0, out, b.rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, step: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * step) % 11) as f64 - 5.0).collect()
    }

    #[test]
    fn parts_of_matrices_are_multiplied_and_the_rest_stays() {
        for (m, n, k, wider) in [(1, 1, 1, 0), (5, 3, 7, 2), (40, 33, 65, 1), (3, 1, 4, 0)] {
            let (a, b) = (numbers(m * (k + wider), 7), numbers(n * (k + wider), 5));
            let before = numbers(m * (n + wider), 3);
            let mut out = before.clone();
            let left = Matrix::new(&a, m, k, k + wider);
            let right = Matrix::new(&b, n, k, k + wider);
            multiply(left, right.transposed(), -2.0, 1.0, &mut out, n + wider);
            for (at, (found, before)) in out.iter().zip(&before).enumerate() {
                let (i, j) = (at / (n + wider), at % (n + wider));
                let term = |l: usize| a[i * (k + wider) + l] * b[j * (k + wider) + l];
                // Behind the row nothing is added.
                let product: f64 = (0..if j < n { k } else { 0 }).map(term).sum();
                let expected = before - 2.0 * product;
                // Small whole numbers: exact in any order.
                assert_eq!(*found, expected, "{m}×{n}×{k} at {i}, {j}");
            }
        }
    }

    #[test]
    fn agrees_with_the_definition_for_awkward_shapes() {
        for (m, n, width) in [
            (1, 1, 1),
            (3, 5, 2),
            (17, 1, 9),
            (1, 33, 300),
            (40, 41, 0),
            (0, 3, 2),
            (64, 65, 129),
        ] {
            let a: Vec<f32> = (0..m * width)
                .map(|i| ((i * 7) % 11) as f32 - 5.0)
                .collect();
            let b: Vec<f32> = (0..n * width)
                .map(|i| ((i * 5) % 13) as f32 - 6.0)
                .collect();
            let mut out = vec![f32::NAN; m * n];
            rows_times_rows(&a, &b, width, &mut out);
            for i in 0..m {
                for j in 0..n {
                    let exact: f32 = (0..width)
                        .map(|k| a[i * width + k] * b[j * width + k])
                        .sum();
                    assert_eq!(out[i * n + j], exact, "{m}×{n}×{width} at {i}, {j}");
                }
            }
        }
    }
}
