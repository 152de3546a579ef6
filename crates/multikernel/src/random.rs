//! A seeded stream of random numbers that gives the same bits on every machine and in every version.

/// SplitMix64 (Steele, Lea, Flood 2014): small, fast, passes the usual batteries.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// One of many streams of a seed, each for a task of its own: what it gives does not depend on the order of the tasks.
    pub fn stream(seed: u64, task: u64) -> Self {
        let mut random = Random::new(seed);
        random.state = random.bits() ^ task.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        Random::new(random.bits())
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A standard normal number (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A whole number in 0..n, n > 0 (Lemire's method without its rejection: off by less than n/2⁶⁴).
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Shuffles a list (Fisher and Yates).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i + 1));
        }
    }

    /// `count` different numbers of 0..n, ascending.
    pub fn sample(&mut self, n: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        let count = count.min(n);
        for i in 0..count {
            let j = i + self.below(n - i);
            all.swap(i, j);
        }
        all.truncate(count);
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        let mut random = Random::new(1234567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(
            first,
            [
                6457827717110365317,
                3203168211198807973,
                9817491932198370423
            ]
        );
    }

    #[test]
    fn samples_are_different_and_in_range() {
        let mut random = Random::new(3);
        for (n, count) in [(1, 1), (10, 3), (10, 10), (5, 9)] {
            let sample = random.sample(n, count);
            assert_eq!(sample.len(), count.min(n));
            assert!(sample.windows(2).all(|w| w[0] < w[1]) && sample.iter().all(|&i| i < n));
        }
    }
}
