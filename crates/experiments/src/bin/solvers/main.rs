//! Compares all solvers on the same problems. The tables are those of `docs/solvers.md`.
//!
//!     solvers table | growth              on data that lie in the library or are generated
//!     solvers flowers --data FOLDER       on flowers17_7views.npz: seven views of 17 kinds of flowers
//!     solvers uci --data FOLDER [--sets sonar,wdbc,liver,pima]   on NAME.csv.gz, whose column `y` is the class
//!     [--threads 2] [--quick]

mod flowers;
mod growth;
mod problems;
mod table;
mod uci;

use multikernel::error::{Error, Result};
use std::path::PathBuf;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str| {
        let at = words.iter().position(|w| w == name)?;
        words.get(at + 1).cloned()
    };
    let quick = words.iter().any(|w| w == "--quick");
    let threads = after("--threads").and_then(|t| t.parse().ok()).unwrap_or(2);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| Error::input("--threads", e.to_string(), ""))?;
    let data = || {
        after("--data")
            .map(PathBuf::from)
            .ok_or_else(|| Error::input("--data", "it is missing", "name the folder with the data"))
    };
    pool.install(|| match words.first().map_or("table", String::as_str) {
        "growth" => growth::measure(quick),
        "flowers" => flowers::measure(&data()?, quick),
        "uci" => {
            let sets = after("--sets").unwrap_or_else(|| uci::SETS.into());
            uci::measure(&data()?, &sets, quick)
        }
        _ => table::measure(quick),
    })
}
