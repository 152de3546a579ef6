//! Memory for large results.

/// From so many bytes on, large pages are asked for.
const LARGE: usize = 4 << 20;

/// `len` zeros. A large vector comes in large pages where the system has them: a matrix that is written once costs more
/// in page faults of 4 KiB than in arithmetic.
pub(crate) fn zeros<T: Default + Clone>(len: usize) -> Vec<T> {
    let mut values = vec![T::default(); len];
    ask_for_large_pages(&mut values);
    values
}

#[cfg(target_os = "linux")]
fn ask_for_large_pages<T>(values: &mut [T]) {
    let bytes = size_of_val(values);
    if bytes < LARGE {
        return;
    }
    const PAGE: usize = 4096;
    let start = values.as_mut_ptr().cast::<libc::c_void>();
    let skip = start.align_offset(PAGE);
    let length = (bytes - skip) / PAGE * PAGE;
    // SAFETY: the range lies inside of the vector: `skip` is less than a page and the vector is larger. The advice
    // changes how the system backs the range, never what is read from it, and a refusal is harmless.
    #[allow(unsafe_code)]
    unsafe {
        libc::madvise(start.byte_add(skip), length, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages<T>(_values: &mut [T]) {
    let _ = LARGE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_of_any_size_are_zero_and_writable() {
        for len in [
            0,
            1,
            1000,
            LARGE / 4 - 1,
            LARGE / 4,
            LARGE / 4 + 1,
            3 * LARGE / 4 + 5,
        ] {
            let mut values: Vec<f32> = zeros(len);
            assert_eq!(values.len(), len);
            assert!(values.iter().all(|&v| v == 0.0));
            values.fill(1.0);
            values.push(2.0);
            assert_eq!(values.iter().sum::<f32>(), len as f32 + 2.0);
        }
    }
}
