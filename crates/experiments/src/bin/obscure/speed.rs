//! What an epoch costs, beside one pass over the rows and scores that it touches.

use crate::problems::{Problem, as_given, digits_of, views_of};
use multikernel::error::Result;
use multikernel::norm::Norm;
use multikernel::problem::{Limits, MulticlassProblem, Objective};
use multikernel::solve::stochastic::{Solution, StochasticSettings, Storage, obscure};
use std::time::Instant;

pub(crate) fn measure(quick: bool, threads: usize) -> Result<()> {
    let memory = crate::machine::read_bandwidth(threads);
    println!("Memory is read with {:.1} GB/s.\n", memory / 1e9);
    let row = |name: &str, problem: &Problem, storage: Option<Storage>| {
        row(name, problem, storage, memory)
    };
    println!(
        "| problem | scores | 10 + 10 epochs, s | an epoch, s | all kernels once, s | times that | its updates | their rows and the scores once, s | times that | gap |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let digits = digits_of(1000)?;
    row("digits, 20 kernels in 4 families", &digits, None)?;
    row(
        "digits, 20 kernels in 4 families",
        &digits,
        Some(Storage::OnTheFly),
    )?;
    row("digits, 20 given kernels", &as_given(&digits)?, None)?;
    if quick {
        return Ok(());
    }
    let pen = as_given(&views_of(1, 7494, 10, 4, 8, 1.0)?)?;
    row("7494 samples, 10 classes, 4 kernels", &pen, None)?;
    drop(pen);
    let caltech = as_given(&views_of(2, 3060, 102, 39, 40, 1.0)?)?;
    row("3060 samples, 102 classes, 39 kernels", &caltech, None)
}

fn row(name: &str, problem: &Problem, storage: Option<Storage>, memory: f64) -> Result<()> {
    let run = |online_epochs: usize, epochs: usize| -> Result<(f64, Solution)> {
        let costs = vec![1.0; problem.classes.len()];
        let objective = Objective::Multiclass(MulticlassProblem {
            classes: &problem.classes,
            n_classes: problem.n_classes,
            costs: &costs,
        });
        let settings = StochasticSettings {
            online_epochs,
            epochs,
            storage,
            ..StochasticSettings::default()
        };
        let limits = Limits {
            tolerance: 0.0,
            max_rounds: usize::MAX,
            deadline: None,
            memory: u64::MAX,
            confirm: true,
        };
        let norm = Norm::block(1.25)?;
        let begin = Instant::now();
        let solution = obscure(
            &problem.gram,
            &norm,
            &objective,
            &settings,
            &limits,
            None,
            &(),
        )?;
        Ok((begin.elapsed().as_secs_f64(), solution))
    };
    let mut seconds = f64::INFINITY;
    let mut epoch = f64::INFINITY;
    let mut best = None;
    for _ in 0..3 {
        let (time, solution) = run(10, 10)?;
        // Between looks: neither the certificate at the end nor the first rows are an epoch's. The least, because others
        // may use the machine; the epochs of stage 2 differ little in their updates.
        let times: Vec<f64> = solution.history.iter().map(|e| e.look.seconds).collect();
        let least = times[10..].windows(2).map(|w| w[1] - w[0]);
        epoch = least.fold(epoch, f64::min);
        if time < seconds {
            (seconds, best) = (time, Some(solution));
        }
    }
    let Some(solution) = best else { return Ok(()) };
    let updates = (solution.history[19].updates - solution.history[10].updates) as f64 / 9.0;
    // the rows of the samples that were updated, and for stored scores those of everyone
    let each = problem.gram.n_rows() as f64 * problem.gram.n_kernels() as f64;
    let bytes = match solution.storage {
        Storage::Stored => updates * 4.0 * each + 8.0 * each * problem.n_classes as f64,
        Storage::OnTheFly => 4.0 * each * problem.gram.n_rows() as f64,
    };
    let once = bytes / memory;
    let all = 4.0 * each * problem.gram.n_rows() as f64 / memory;
    println!(
        "| {name} | {:?} | {seconds:.3} | {epoch:.4} | {all:.4} | {:.1} | {updates:.0} | {once:.4} | {:.1} | {:.1e} |",
        solution.storage,
        epoch / all,
        epoch / once,
        solution.certificate.relative_gap()
    );
    Ok(())
}
