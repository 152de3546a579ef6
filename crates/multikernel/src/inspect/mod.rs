//! What is in data and kernels, before anything is learned: shapes, ranges, class counts, alignments, spectra, and
//! the warnings that a careful statistician would give.

mod data;
mod kernels;
mod pairs;

pub use data::{
    DataReport, RepeatedSamples, TargetReport, ViewContents, ViewReport, inspect_data,
};
pub use kernels::{KernelOptions, KernelReport, KernelSummary, inspect_kernels};

/// So many names are listed in a warning; the rest is counted.
const NAMES_IN_A_WARNING: usize = 5;

/// "a, b, c and 7 more", at most [`NAMES_IN_A_WARNING`] names.
fn list(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_IN_A_WARNING)].join(", ");
    match names.len().saturating_sub(NAMES_IN_A_WARNING) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// "kernel 'a' is" or "kernels 'a', 'b' are".
fn kernels_are(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("'{n}'")).collect();
    if names.len() == 1 {
        format!("kernel {} is", quoted[0])
    } else {
        format!("kernels {} are", list(&quoted))
    }
}
