//! Measures OBSCURE: what an epoch costs, and how many steps it needs beside Pegasos-MKL and with more kernels.
//!
//!     obscure speed | steps | kernels | all  [--threads 2] [--quick]
//!     obscure compare --folder F  [--threads 2] [--quick]
//!
//! All data are generated or lie in the library; the tables are those of `docs/obscure.md`. `compare` is called by
//! `bench/multiclass`.

mod compare;
#[path = "../bench_gram/machine.rs"]
#[allow(dead_code)]
mod machine;
mod problems;
mod speed;
mod steps;

use multikernel::error::{Error, Result};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let quick = words.iter().any(|w| w == "--quick");
    let threads = words
        .iter()
        .position(|w| w == "--threads")
        .and_then(|at| words.get(at + 1)?.parse().ok())
        .unwrap_or(2);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| Error::input("--threads", e.to_string(), ""))?;
    let what = words.first().map_or("all", String::as_str);
    let folder = words
        .iter()
        .position(|w| w == "--folder")
        .and_then(|at| words.get(at + 1));
    pool.install(|| {
        if let ("compare", Some(folder)) = (what, folder) {
            compare::measure(folder, quick)?;
        }
        if matches!(what, "speed" | "all" | "--quick") {
            speed::measure(quick, threads)?;
        }
        if matches!(what, "steps" | "all") {
            steps::beside_pegasos(quick)?;
        }
        if matches!(what, "kernels" | "all") {
            steps::with_more_kernels(quick)?;
        }
        Ok(())
    })
}
