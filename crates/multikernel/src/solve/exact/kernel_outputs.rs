//! Outputs F_m = K_m a of every kernel on every sample, for kernels that must be read.
//!
//! With them the quadratic forms aᵀF_m and the scores Σ β_m F_m of any weights cost no further reading, and a change of a
//! reads the rows of the samples that changed alone.

use crate::gram::Gram;
use crate::math::dot;

/// Fewer values than this (32 MiB) stay in the caches, where reading them costs little.
const WORTH: u64 = 8 << 20;

/// F_m of coefficients a, kernel after kernel.
pub(super) struct KernelOutputs {
    a: Vec<f64>,
    values: Vec<f64>,
}

impl KernelOutputs {
    /// For a = 0; none where the kernels need not be read or `memory` bytes cannot hold them beside a combined matrix.
    pub(super) fn new(gram: &Gram, memory: u64) -> Option<KernelOutputs> {
        let (n, m) = (gram.n_rows() as u64, gram.n_kernels() as u64);
        let bytes = n * (4 * n + 8 * m);
        (n * n * m >= WORTH && bytes <= memory && gram.row_plan().is_read_bound()).then(|| {
            KernelOutputs {
                a: vec![0.0; gram.n_rows()],
                values: vec![0.0; gram.n_rows() * gram.n_kernels()],
            }
        })
    }

    /// Follows the coefficients to `a`.
    pub(super) fn follow(&mut self, gram: &Gram, a: &[f64]) {
        let change: Vec<f64> = a.iter().zip(&self.a).map(|(new, old)| new - old).collect();
        gram.add_kernel_products(&change, &mut self.values);
        self.a.copy_from_slice(a);
    }

    /// aᵀK_m a of every kernel, never negative.
    pub(super) fn forms(&self) -> Vec<f64> {
        let of_kernel = self.values.chunks(self.a.len());
        of_kernel.map(|f| dot(&self.a, f).max(0.0)).collect()
    }

    /// K_m a of these kernels at these samples, sample after sample.
    pub(super) fn at(&self, samples: &[usize], kernels: &[usize]) -> Vec<f64> {
        let n = self.a.len();
        let of_sample = |&i: &usize| kernels.iter().map(move |m| self.values[m * n + i]);
        samples.iter().flat_map(of_sample).collect()
    }

    /// K_β a.
    pub(super) fn scores(&self, weights: &[f64]) -> Vec<f64> {
        let mut scores = vec![0.0; self.a.len()];
        let of_kernel = self.values.chunks(self.a.len()).zip(weights);
        for (f, b) in of_kernel.filter(|(_, b)| **b != 0.0) {
            scores.iter_mut().zip(f).for_each(|(s, f)| *s += b * f);
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use crate::data::{Pairwise, View, ViewData, Views, digits};
    use crate::gram::{Indefinite, KernelSet, Options};
    use crate::kernel::KernelSpec;
    use crate::loss::Loss;
    use crate::norm::{Norm, NormSpec};
    use crate::problem::{Limits, Problem, Start, Status, certify};
    use crate::solve::exact::solve;

    /// The same kernels as families and as matrices that must be read.
    fn both(n: usize) -> (KernelSet, KernelSet) {
        let data = digits().unwrap();
        let views = data.views.select(&(0..n).collect::<Vec<_>>()).unwrap();
        let specs = KernelSpec::parse(
            "rbf:width=mean*0.1|mean*0.2|mean*0.3|mean*0.5|mean|mean*2|mean*3|mean*5|mean*9",
        )
        .unwrap();
        let families = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
        let gram = families.gram();
        let matrices = (0..gram.n_kernels()).map(|m| View {
            name: format!("k{m}"),
            columns: Vec::new(),
            data: ViewData::Pairwise(Pairwise::new(n, n, gram.kernel(m).matrix()).unwrap()),
        });
        let matrices = Views::new(matrices.collect()).unwrap();
        let specs = KernelSpec::parse("precomputed").unwrap();
        let options = Options {
            indefinite: Indefinite::Allow,
            ..Options::default()
        };
        let given = KernelSet::new(&specs, &matrices, &options, &()).unwrap();
        (families, given)
    }

    #[test]
    fn kernels_that_are_read_have_the_optimum_of_their_families() {
        let n = 500;
        let (families, given) = both(n);
        let limits = Limits {
            tolerance: 1e-6,
            max_rounds: 1000,
            deadline: None,
            memory: 1 << 30,
            confirm: true,
        };
        assert!(super::KernelOutputs::new(given.gram(), limits.memory).is_some());
        assert!(super::KernelOutputs::new(given.gram(), 1000).is_none());
        assert!(super::KernelOutputs::new(families.gram(), limits.memory).is_none());
        let labels = digits().unwrap().labels.unwrap();
        let digit = |i: usize| labels.spelling(i).parse::<f64>().unwrap();
        let signs: Vec<f64> = (0..n).map(|i| 2.0 * (digit(i) % 2.0) - 1.0).collect();
        let values: Vec<f64> = (0..n).map(digit).collect();
        let costs = vec![1.0; n];
        for (loss, norm, bias) in [
            (Loss::Hinge, "lp:2", true),
            (Loss::Hinge, "lp:1", true),
            (Loss::Logistic, "lp:4/3", false),
            (Loss::Epsilon(0.1), "block:3", true),
            (Loss::Squared, "lp:inf", true),
        ] {
            let problem = Problem {
                loss,
                targets: if loss.needs_signs() { &signs } else { &values },
                costs: &costs,
                bias,
            };
            let spec: NormSpec = norm.parse().unwrap();
            let norm = Norm::new(spec, given.gram().n_kernels(), &[], &[]).unwrap();
            let family = solve(families.gram(), &norm, &problem, &limits, None, &());
            let read = solve(given.gram(), &norm, &problem, &limits, None, &());
            for solution in [&family, &read] {
                assert_eq!(solution.status, Status::Converged, "{loss} {norm:?}");
                let apart = (solution.certificate.primal - family.certificate.primal).abs();
                assert!(apart <= 2e-6 * family.certificate.primal, "{loss} {norm:?}");
            }
            // What was kept up to date says what the kernels say.
            let (a, weights) = (read.coefficients.clone(), read.weights.clone());
            let fresh = certify(given.gram(), &norm, &problem, &a, &weights);
            assert!((fresh.primal - read.certificate.primal).abs() <= 1e-9 * fresh.primal);
            assert!((fresh.dual - read.certificate.dual).abs() <= 1e-9 * fresh.primal);
            let start = Some(Start {
                coefficients: a,
                weights,
            });
            let again = solve(given.gram(), &norm, &problem, &limits, start, &());
            assert!(again.history.len() <= 2, "{loss} {norm:?}");
        }
    }
}
