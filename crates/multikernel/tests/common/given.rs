//! Problems of the oracle as the library takes them: kernels given as matrices.

use multikernel::data::{Pairwise, View, ViewData, Views};
use multikernel::gram::{Gram, Indefinite, KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::norm::Norm;
use multikernel::observe::Observer;
use multikernel::problem::Problem as Scalar;
use multikernel::problem::{Limits, Solution, Start};
use multikernel::solve::exact::solve;

use super::conic::{Omega, Problem};

/// The Gram of kernels given row by row; their entries must be exact in f32.
pub fn gram(kernels: &[Vec<f64>]) -> Gram {
    gram_as(kernels, Indefinite::Error)
}

/// The same for kernels that may be indefinite.
pub fn gram_as(kernels: &[Vec<f64>], indefinite: Indefinite) -> Gram {
    let n = kernels[0].len().isqrt();
    let views = kernels.iter().enumerate().map(|(m, kernel)| {
        let values = kernel.iter().map(|&k| k as f32).collect();
        View {
            name: format!("k{m}"),
            columns: Vec::new(),
            data: ViewData::Pairwise(Pairwise::new(n, n, values).unwrap()),
        }
    });
    let views = Views::new(views.collect()).unwrap();
    let specs: Vec<KernelSpec> = (0..kernels.len())
        .flat_map(|m| KernelSpec::parse(&format!("precomputed:from=k{m},normalize=none")).unwrap())
        .collect();
    let options = Options {
        indefinite,
        ..Options::default()
    };
    let set = KernelSet::new(&specs, &views, &options, &()).unwrap();
    set.gram().clone()
}

/// The library's name for the oracle's norm.
pub fn norm(omega: &Omega) -> Norm {
    match omega {
        Omega::Block(r) => Norm::block(*r),
        Omega::Mixed(groups) => Norm::mixed(groups),
        Omega::Elastic(mu) => Norm::elastic(*mu),
    }
    .unwrap()
}

/// The part of the problem that the losses see.
pub fn scalar(problem: &Problem) -> Scalar<'_> {
    Scalar {
        loss: problem.loss.scalar().unwrap(),
        targets: &problem.targets,
        costs: &problem.costs,
        bias: problem.bias,
    }
}

/// Enough of everything, with a bound on the rounds so that no test hangs.
pub fn limits(tolerance: f64) -> Limits {
    Limits {
        tolerance,
        max_rounds: 500,
        deadline: None,
        memory: u64::MAX,
        confirm: true,
    }
}

/// The exact solver's answer.
pub fn exact(problem: &Problem, limits: &Limits) -> Solution {
    exact_from(problem, limits, None, &())
}

/// The exact solver's answer from a start, watched.
pub fn exact_from(
    problem: &Problem,
    limits: &Limits,
    start: Option<Start>,
    observer: &dyn Observer,
) -> Solution {
    let gram = gram(&problem.kernels);
    solve(
        &gram,
        &norm(&problem.omega),
        &scalar(problem),
        limits,
        start,
        observer,
    )
}
