//! What a search over norms and C costs, beside training every point of it cold: digits, odd against even, 5 folds.
//!
//! ```text
//! cargo run --release -p experiments --bin bench_tune
//! ```
//!
//! A cold fit is what every point costs where nothing is shared: the kernels of all samples from their features, and a training that starts
//! from nothing, the mean over all points of the grid. Times are those of one thread, as the system accounts them to the process, so
//! that others on the machine do not count. The search is done twice, and the second one counts: like the cold fits after it, it then has memory
//! that the system need not clear first.

use multikernel::data::{Targets, digits};
use multikernel::gram::{KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::measure::Metric;
use multikernel::select::{Grid, Recipe, Rule};
use multikernel::train::{Mkl, WarmStart};
use std::sync::Arc;

/// Times that the kernels are made: the system accounts time in hundredths of a second.
const REPEATS: usize = 10;

/// Seconds of processor time of this process; none where the system does not tell.
fn processor_time() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name in brackets: user and system time are the 12th and 13th, in hundredths of a second.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |k: usize| fields.get(k)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

/// What happens, and the seconds it takes.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let (begin, clock) = (processor_time(), std::time::Instant::now());
    let found = work();
    let seconds = processor_time().zip(begin).map(|(end, begin)| end - begin);
    (found, seconds.unwrap_or(clock.elapsed().as_secs_f64()))
}

fn main() -> multikernel::Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    match pool {
        Ok(pool) => pool.install(measure),
        Err(_) => measure(),
    }
}

fn measure() -> multikernel::Result<()> {
    let data = digits()?;
    let labels = data.labels.as_ref().ok_or(multikernel::Error::Stopped)?;
    let index: Vec<u32> = (0..labels.len())
        .map(|i| labels.number(i).map_or(0, |v| v as u32 % 2))
        .collect();
    let names = vec!["even".to_owned(), "odd".to_owned()];
    let targets = Targets::Classes { names, index };
    let specs = KernelSpec::parse("rbf:width=mean*0.25|mean*0.5|mean|mean*2|mean*4")?;
    let norms = [
        "lp:1", "lp:1.1", "lp:4/3", "lp:2", "lp:4", "lp:16", "lp:inf",
    ];
    let costs = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0];
    let grid = Grid {
        norms: norms
            .iter()
            .map(|norm| Ok((norm.parse()?, Vec::new())))
            .collect::<multikernel::Result<_>>()?,
        costs: costs.to_vec(),
        metric: Metric::Accuracy,
        rule: Rule::Best,
    };
    let recipe = Recipe {
        views: data.views.clone(),
        targets: targets.clone(),
        banks: vec![(String::new(), specs.clone())],
        scale: Vec::new(),
        options: Options::default(),
        mkl: Mkl::default(),
        grid: grid.clone(),
        folds: 5,
        groups: None,
        seed: 0,
    };
    recipe.search(&[], &|_| (), &())?;
    let (found, search) = timed(|| recipe.search(&[], &|_| (), &()));
    let tuning = found?.tuning.ok_or(multikernel::Error::Stopped)?;
    let point = &tuning.points[tuning.chosen];
    let converged = tuning.points.iter().filter(|p| p.converged).count();
    println!(
        "search: {search:.2} s, {} points on {} folds, {converged} of them converged; best {} {} at {:.4}",
        tuning.points.len(),
        tuning.folds,
        norms[point.norm],
        costs[point.cost],
        point.mean
    );

    let mut made = 0.0;
    let mut kernels = None;
    for _ in 0..REPEATS {
        let (set, seconds) =
            timed(|| KernelSet::new(&specs, &data.views, &Options::default(), &()));
        kernels = Some(set?);
        made += seconds / REPEATS as f64;
    }
    let kernels = kernels.ok_or(multikernel::Error::Stopped)?;
    let mut cold = 0.0;
    let mut last = None;
    println!(
        "mean over C, on all samples: seconds (rounds) of cold fits and of fits that start from the last C"
    );
    for (spec, name) in grid.norms.iter().zip(norms) {
        // Cold, warm.
        let (mut seconds, mut rounds) = ([0.0; 2], [0; 2]);
        let mut start = None;
        for &c in &costs {
            for (k, start) in [None, start.take()].into_iter().enumerate() {
                let mkl = Mkl {
                    norm: spec.0.clone(),
                    c,
                    start,
                    ..Mkl::default()
                };
                let (fitted, taken) = timed(|| mkl.fit(&kernels, &targets, &()));
                let fitted = fitted?;
                seconds[k] += taken;
                rounds[k] += fitted.iterations;
                last = WarmStart::of(&fitted).map(Arc::new);
            }
            start = last.take();
        }
        let n = costs.len() as f64;
        println!(
            "{name}: {:.3} ({:.1}), {:.3} ({:.1})",
            seconds[0] / n,
            rounds[0] as f64 / n,
            seconds[1] / n,
            rounds[1] as f64 / n
        );
        cold += seconds[0];
    }
    let trained = cold / (norms.len() * costs.len()) as f64;
    println!(
        "a cold fit: {:.3} s, {made:.3} of it for the kernels; the search took the time of {:.1} of them, {:.1} without their kernels \
         ({} trainings)",
        made + trained,
        search / (made + trained),
        search / trained,
        norms.len() * costs.len() * tuning.folds
    );
    Ok(())
}
