//! MixNorm: Ω(g) = max over groups j of Σ_k g_jk, Ω*(s) = Σ_j max_k s_jk.
//!
//! The combined kernel is Σ_j (1/γ_j) Σ_k λ_jk K_jk with γ on the simplex over groups and λ_j on the simplex inside group j:
//! β_jk = λ_jk/γ_j. The group norms g alone do not determine γ, so there is no primal map.

use super::spec::{NormInfo, NormSpec};

pub(super) const MIXED: NormInfo = NormInfo {
    name: "mixed",
    argument: None,
    means: "the largest over groups of kernels of the sum within the group",
    read: |_| Ok(NormSpec::Mixed),
};

/// Which group each kernel belongs to; groups are numbered 0…n−1 without holes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Groups {
    of_kernel: Vec<usize>,
    n_groups: usize,
}

impl Groups {
    /// Renumbers the groups without holes, whatever their numbers were.
    pub(super) fn new(groups: &[usize]) -> Self {
        let mut names = groups.to_vec();
        names.sort_unstable();
        names.dedup();
        let of_kernel = groups
            .iter()
            .map(|group| names.partition_point(|name| name < group))
            .collect();
        Self {
            of_kernel,
            n_groups: names.len(),
        }
    }

    pub(super) fn of_kernel(&self) -> &[usize] {
        &self.of_kernel
    }

    fn fold(&self, x: &[f64], mut add: impl FnMut(&mut f64, f64)) -> Vec<f64> {
        let mut folded = vec![0.0; self.n_groups];
        for (&x, &group) in x.iter().zip(&self.of_kernel) {
            add(&mut folded[group], x.abs());
        }
        folded
    }

    fn largest(&self, x: &[f64]) -> Vec<f64> {
        self.fold(x, |largest, x| {
            *largest = if x > *largest || x.is_nan() {
                x
            } else {
                *largest
            }
        })
    }

    pub(super) fn value(&self, g: &[f64]) -> f64 {
        super::block::largest(&self.fold(g, |sum, g| *sum += g))
    }

    pub(super) fn dual(&self, s: &[f64]) -> f64 {
        self.largest(s).iter().sum()
    }

    /// λ is shared by equals inside a group; a group without any output gets weight 0.
    pub(super) fn dual_map(&self, s: &[f64], beta: &mut [f64]) {
        let largest = self.largest(s);
        let total: f64 = largest.iter().sum();
        if total == 0.0 {
            self.initial_weights(beta);
            return;
        }
        let mut ties = vec![0.0; self.n_groups];
        for (s, &group) in s.iter().zip(&self.of_kernel) {
            ties[group] += f64::from(u8::from(s.abs() == largest[group]));
        }
        for ((beta, s), &group) in beta.iter_mut().zip(s).zip(&self.of_kernel) {
            *beta = if largest[group] > 0.0 && s.abs() == largest[group] {
                (total / largest[group] / ties[group]).min(f64::MAX)
            } else {
                0.0
            };
        }
    }

    pub(super) fn initial_weights(&self, beta: &mut [f64]) {
        let mut sizes = vec![0.0; self.n_groups];
        for &group in &self.of_kernel {
            sizes[group] += 1.0;
        }
        for (beta, &group) in beta.iter_mut().zip(&self.of_kernel) {
            *beta = self.n_groups as f64 / sizes[group];
        }
    }

    /// One round of the alternation: λ_jk ∝ g_jk inside each group, then γ_j ∝ √W_j with W_j = Σ_k λ_jk s_jk².
    ///
    /// Both are exact minimisers, λ for fixed w and γ for fixed coefficients. A group may have no output at the optimum, where
    /// its weight would be infinite: outputs below `least_output` of the largest count as that, and no group's weight
    /// grows by more than `fastest_growth`, so that the coefficients can follow.
    pub(super) fn alternate(
        &self,
        s: &[f64],
        beta: &mut [f64],
        least_output: f64,
        fastest_growth: f64,
    ) {
        let top = super::block::largest(s);
        if top == 0.0 {
            return;
        }
        let before = self.fold(beta, |sum, b| *sum += b);
        let g: Vec<f64> = beta
            .iter()
            .zip(s)
            .map(|(b, s)| b * (s.abs() / top))
            .collect();
        let sums = self.fold(&g, |sum, g| *sum += g);
        let mut outputs = vec![0.0; self.n_groups];
        for (((beta, g), s), &group) in beta.iter_mut().zip(&g).zip(s).zip(&self.of_kernel) {
            // a group without output keeps its shares
            *beta = if sums[group] > 0.0 {
                g / sums[group]
            } else {
                *beta / before[group].max(f64::MIN_POSITIVE)
            };
            outputs[group] += *beta * (s / top) * (s / top);
        }
        let roots: Vec<f64> = outputs.iter().map(|w| w.sqrt()).collect();
        let least = least_output * super::block::largest(&roots);
        let roots: Vec<f64> = roots.iter().map(|w| w.max(least)).collect();
        let total: f64 = roots.iter().sum();
        for (beta, &group) in beta.iter_mut().zip(&self.of_kernel) {
            let mut weight = total / roots[group];
            if before[group] > 0.0 {
                weight = weight.min(fastest_growth * before[group]);
            }
            *beta *= weight;
        }
    }
}
