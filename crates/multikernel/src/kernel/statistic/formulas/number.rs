//! What formulas are written in: a number, or eight of them side by side.

use std::ops::{Add, Div, Mul, Sub};

/// The operations that formulas are made of. None is fused with another, so that a value has the same bits however many stand side by
/// side.
pub(crate) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    fn abs(self) -> Self;

    /// The smaller one.
    fn least(self, other: Self) -> Self;

    /// The same, or the smallest positive number in its place where it is below that.
    fn at_least_tiny(self) -> Self;
}

macro_rules! one_number {
    ($number:ident) => {
        impl Number for $number {
            #[inline(always)]
            fn abs(self) -> Self {
                self.abs()
            }

            #[inline(always)]
            fn least(self, other: Self) -> Self {
                if self < other { self } else { other }
            }

            #[inline(always)]
            fn at_least_tiny(self) -> Self {
                self.max($number::MIN_POSITIVE)
            }
        }
    };
}

one_number!(f32);
one_number!(f64);

#[cfg(target_arch = "x86_64")]
pub(crate) use eight::Eight;

#[cfg(target_arch = "x86_64")]
mod eight {
    use super::Number;
    use std::arch::x86_64::*;
    use std::ops::{Add, Div, Mul, Sub};

    /// Eight numbers in a register of AVX2. By hand, since compilers turn plain loops over eight sums into anything from this to code
    /// ten times slower.
    ///
    /// Only [`Eight::zero`] and [`Eight::load`] make one from something else, and they can only be called where the processor has AVX2:
    /// whoever has an `Eight` may use its instructions.
    #[derive(Clone, Copy)]
    pub(crate) struct Eight(__m256);

    impl Eight {
        #[target_feature(enable = "avx2")]
        #[inline]
        pub(crate) fn zero() -> Eight {
            Eight(_mm256_setzero_ps())
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        pub(crate) fn load(values: &[f32; 8]) -> Eight {
            Eight(bytemuck::cast(*values))
        }

        #[inline(always)]
        pub(crate) fn values(self) -> [f32; 8] {
            bytemuck::cast(self.0)
        }
    }

    macro_rules! operator {
        ($operator:ident $method:ident $instruction:ident) => {
            impl $operator for Eight {
                type Output = Eight;

                #[inline(always)]
                fn $method(self, other: Eight) -> Eight {
                    // SAFETY: the processor has AVX2, since there is an `Eight`; the instruction has no other requirement.
                    #[allow(unsafe_code)]
                    unsafe {
                        Eight($instruction(self.0, other.0))
                    }
                }
            }
        };
    }

    operator!(Add add _mm256_add_ps);
    operator!(Sub sub _mm256_sub_ps);
    operator!(Mul mul _mm256_mul_ps);
    operator!(Div div _mm256_div_ps);

    // SAFETY, in all three: the processor has AVX2, since there is an `Eight`; the instructions have no other requirement.
    #[allow(unsafe_code)]
    impl Number for Eight {
        #[inline(always)]
        fn abs(self) -> Eight {
            unsafe { Eight(_mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0)) }
        }

        #[inline(always)]
        fn least(self, other: Eight) -> Eight {
            unsafe { Eight(_mm256_min_ps(self.0, other.0)) }
        }

        #[inline(always)]
        fn at_least_tiny(self) -> Eight {
            unsafe { Eight(_mm256_max_ps(self.0, _mm256_set1_ps(f32::MIN_POSITIVE))) }
        }
    }
}
