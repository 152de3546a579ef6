//! Times the Gram engine for `bench/run`: reads the data that the peers read, prints one JSON line per job.
//!
//!     bench_gram FOLDER --threads 2 --widths 50 --size 4000 --size 8000
//!
//! Without widths X·Xᵀ alone is timed. Every time is the median of several repeats after one that is not counted. Beside it
//! stand the operations and the bytes that the job cannot avoid, so that the caller can say which of the machine's limits
//! bounds it.

mod machine;

use multikernel::data::{Pairwise, View, ViewData, Views};
use multikernel::error::{Error, Result};
use multikernel::gram::{Coefficients, Gram, KernelSet, Options};
use multikernel::kernel::{KernelSpec, Width};
use multikernel::random::Random;
use multikernel_io::{LoadOptions, load};
use serde_json::json;
use std::hint::black_box;
use std::time::Instant;

/// Numbers of widths whose cost should be nearly the same.
const FAMILIES: [usize; 4] = [5, 50, 500, 5000];

struct Arguments {
    folder: String,
    threads: usize,
    widths: usize,
    sizes: Vec<usize>,
}

fn main() -> Result<()> {
    let arguments = parse(std::env::args().skip(1))?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads)
        .build()
        .map_err(|e| Error::input("--threads", e.to_string(), ""))?;
    pool.install(|| run(&arguments))
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments> {
    let mut out = Arguments {
        folder: String::new(),
        threads: 1,
        widths: 50,
        sizes: Vec::new(),
    };
    while let Some(word) = words.next() {
        if !word.starts_with("--") {
            out.folder = word;
            continue;
        }
        let value = words.next().and_then(|v| v.parse().ok());
        let value = value.ok_or_else(|| Error::input(&word, "no number follows", ""))?;
        match word.as_str() {
            "--threads" => out.threads = value,
            "--widths" => out.widths = value,
            "--size" => out.sizes.push(value),
            _ => return Err(Error::input(word, "unknown option", "")),
        }
    }
    Ok(out)
}

fn run(arguments: &Arguments) -> Result<()> {
    machine(arguments.threads);
    for &n in &arguments.sizes {
        products(&read(&arguments.folder, n)?)?;
    }
    let Some(&n) = arguments.sizes.first().filter(|_| arguments.widths > 0) else {
        return Ok(());
    };
    let views = read(&arguments.folder, n)?;
    cube(&views, arguments.widths)?;
    for widths in FAMILIES {
        let set = family(&views, widths)?;
        questions(
            set.gram(),
            &format!("family of {widths} widths"),
            (4 * n * n) as f64,
        );
    }
    stored(&views, arguments.widths)
}

fn machine(threads: usize) {
    println!(
        "{}",
        json!({
            "job": "machine",
            "flops": machine::peak_flops(threads),
            "read_bytes": machine::read_bandwidth(threads),
            "write_bytes": machine::write_bandwidth(threads),
        })
    );
}

fn read(folder: &str, n: usize) -> Result<Views> {
    let options = LoadOptions {
        features: vec![format!("{folder}/x{n}.npy")],
        ..LoadOptions::default()
    };
    Ok(load(&options, &())?.views)
}

/// X·Xᵀ, from the view to the matrix in memory.
fn products(views: &Views) -> Result<()> {
    let n = views.len() as f64;
    let seconds = median(5, || {
        let linear = KernelSpec::linear().on(name(views)).named("linear");
        KernelSet::new(&[linear], views, &Options::default(), &())
    })?;
    // Multiply-adds of the symmetric half.
    let flops = n * (n + 1.0) * columns(views) as f64;
    print(&Job {
        name: "xxt",
        title: format!("X·Xᵀ, n = {n}, d = {}", columns(views)),
        n: views.len(),
        kernels: 1,
        seconds,
        flops,
        read: 0.0,
        write: 4.0 * n * n,
    });
    Ok(())
}

/// Every kernel of a family as a matrix, from the view to the last of them: all of them side by side in new memory, which the system has
/// to clear; one after the other in the same memory; and one after the other, each in new memory.
fn cube(views: &Views, widths: usize) -> Result<()> {
    let n = views.len();
    let cube = median(3, || family(views, widths)?.gram().matrices(&()))?;
    let mut memory = vec![0.0; n * n];
    let same = median(3, || {
        let set = family(views, widths)?;
        for m in 0..widths {
            set.gram().kernel(m).matrix_into(&mut memory);
            black_box(&memory);
        }
        Ok(())
    })?;
    drop(memory);
    let new = median(3, || {
        let set = family(views, widths)?;
        for m in 0..widths {
            black_box(set.gram().kernel(m).matrix());
        }
        Ok(())
    })?;
    let entries = (n * n * widths) as f64;
    for (memory, seconds) in [
        ("side by side in new memory", cube),
        ("one after the other in the same memory", same),
        ("one after the other, each in new memory", new),
    ] {
        print(&Job {
            name: "cube",
            title: format!(
                "{widths} RBF matrices, n = {n}, d = {}, {memory}",
                columns(views)
            ),
            n,
            kernels: widths,
            seconds,
            flops: (n * (n + 1) * columns(views)) as f64,
            read: 4.0 * entries,
            write: 4.0 * entries,
        });
    }
    Ok(())
}

/// The combined matrix and all quadratic forms; `bytes` of the kernels must be read for each.
fn questions(gram: &Gram, title: &str, bytes: f64) {
    let n = gram.n_rows();
    let mut random = Random::new(1);
    let beta: Vec<f64> = (0..gram.n_kernels()).map(|_| random.uniform()).collect();
    let a: Vec<f64> = (0..n).map(|_| random.normal()).collect();
    let seconds = |job: &mut dyn FnMut()| {
        median(5, || {
            job();
            Ok(())
        })
        .unwrap_or(f64::NAN)
    };
    let mut combined = Job {
        name: "combined",
        title: format!("combined matrix, n = {n}, {title}"),
        n,
        kernels: gram.n_kernels(),
        seconds: 0.0,
        flops: 0.0,
        read: bytes,
        write: (4 * n * n) as f64,
    };
    combined.seconds = seconds(&mut || {
        black_box(gram.combine(&beta).matrix());
    });
    print(&combined);
    let forms = seconds(&mut || {
        black_box(gram.quadratic_forms(Coefficients::single(&a)));
    });
    print(&Job {
        name: "forms",
        title: format!("all quadratic forms, n = {n}, {title}"),
        seconds: forms,
        // The symmetric half is enough.
        read: bytes / 2.0,
        write: 0.0,
        ..combined
    });
}

/// The same questions to as many stored matrices.
fn stored(views: &Views, widths: usize) -> Result<()> {
    let n = views.len();
    let mut matrices = Views::default();
    let set = family(views, widths)?;
    for m in 0..widths {
        matrices.push(View {
            name: format!("k{m}"),
            columns: Vec::new(),
            data: ViewData::Pairwise(Pairwise::new(n, n, set.gram().kernel(m).matrix())?),
        })?;
    }
    drop(set);
    let specs: Vec<KernelSpec> = matrices
        .iter()
        .map(|view| KernelSpec::precomputed().on(&view.name).named(&view.name))
        .collect();
    let set = KernelSet::new(&specs, &matrices, &Options::default(), &())?;
    let bytes = (4 * n * n * widths) as f64;
    questions(set.gram(), &format!("{widths} stored kernels"), bytes);
    Ok(())
}

/// RBF kernels of width mean · 1.2^(m − M/2) for 50 of them; more of them fill the same range more densely.
fn family(views: &Views, widths: usize) -> Result<KernelSet> {
    let step = 1.2_f64.powf(50.0 / widths as f64);
    let specs: Vec<KernelSpec> = (0..widths)
        .map(|m| {
            let factor = step.powf(m as f64 - widths as f64 / 2.0);
            let kernel = KernelSpec::rbf(Width::Mean(factor));
            kernel.on(name(views)).named(format!("rbf{m}"))
        })
        .collect();
    KernelSet::new(&specs, views, &Options::default(), &())
}

/// The first view's name.
fn name(views: &Views) -> &str {
    views.iter().next().map_or("", |view| &view.name)
}

fn columns(views: &Views) -> usize {
    views.iter().next().map_or(0, |view| match &view.data {
        ViewData::Dense(x) => x.cols(),
        _ => 0,
    })
}

/// Median seconds of `repeats` runs, after one that is not counted.
fn median<T>(repeats: usize, mut job: impl FnMut() -> Result<T>) -> Result<f64> {
    job()?;
    let mut times = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let start = Instant::now();
        // Freeing the result counts, as it does for the peers.
        drop(black_box(job()?));
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[repeats / 2])
}

/// One line of the result.
struct Job {
    name: &'static str,
    title: String,
    n: usize,
    kernels: usize,
    seconds: f64,
    /// Floating-point operations that no method avoids.
    flops: f64,
    /// Bytes that must come from memory.
    read: f64,
    /// Bytes that must go to memory.
    write: f64,
}

fn print(job: &Job) {
    println!(
        "{}",
        json!({
            "job": job.name,
            "title": job.title,
            "n": job.n,
            "kernels": job.kernels,
            "seconds": job.seconds,
            "flops": job.flops,
            "read_bytes": job.read,
            "write_bytes": job.write,
        })
    );
}
