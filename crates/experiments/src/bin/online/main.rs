//! Measures online learning: errors beside the baselines, passes beside the exact model, budgets, and speed.
//!
//!     online errors | passes | budget | speed | all  [--data FOLDER] [--plots FOLDER] [--threads 2] [--quick]
//!
//! The digits lie in the library. `--data` is a folder with `pendigits4.npz` (arrays dyn, sta4, sta8, sta16 and y, each as
//! `_train` and `_test`), which adds that data set. The tables are those of `docs/online.md`; `--plots` writes its pictures.

mod data;
mod errors;
mod plot;
mod speed;

use multikernel::error::{Error, Result};
use std::path::PathBuf;

/// What was asked for.
struct Wishes {
    what: String,
    data: Option<PathBuf>,
    plots: Option<PathBuf>,
    threads: usize,
    quick: bool,
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str| {
        let at = words.iter().position(|w| w == name)?;
        words.get(at + 1).cloned()
    };
    let wishes = Wishes {
        what: words
            .first()
            .filter(|w| !w.starts_with("--"))
            .cloned()
            .unwrap_or_else(|| "all".into()),
        data: after("--data").map(PathBuf::from),
        plots: after("--plots").map(PathBuf::from),
        threads: after("--threads").and_then(|n| n.parse().ok()).unwrap_or(2),
        quick: words.iter().any(|w| w == "--quick"),
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(wishes.threads)
        .build()
        .map_err(|e| Error::input("--threads", e.to_string(), ""))?;
    pool.install(|| {
        let wants = |name: &str| wishes.what == name || wishes.what == "all";
        if wants("errors") {
            errors::beside_baselines(&wishes)?;
        }
        if wants("passes") {
            errors::with_passes(&wishes)?;
        }
        if wants("budget") {
            errors::with_budgets(&wishes)?;
        }
        if wants("speed") {
            speed::measure(&wishes)?;
        }
        Ok(())
    })
}
