//! Blocks of statistics on one thread; "elements" are pairs × columns (or letters), so Gelem/s × 2 is GFLOP/s for dot
//! products.
//!
//! ```text
//! cargo run --release -p experiments --bin bench_statistics
//! ```

use multikernel::data::{Csr, Dense, ViewData};
use multikernel::kernel::statistic::Statistic;
use std::hint::black_box;
use std::time::{Duration, Instant};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn dense(n: usize, width: usize) -> ViewData {
    let mut random = Random(1);
    let values = (0..n * width)
        .map(|_| (random.next() >> 40) as f32 / (1 << 24) as f32)
        .collect();
    ViewData::Dense(Dense::new(n, width, values).expect("finite values"))
}

fn sparse(n: usize, width: usize, per_row: usize) -> ViewData {
    let mut random = Random(2);
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..n {
        let mut row: Vec<u32> = (0..per_row)
            .map(|_| (random.next() % width as u64) as u32)
            .collect();
        row.sort_unstable();
        row.dedup();
        values.extend(row.iter().map(|&k| 1.0 + (k % 7) as f32));
        indices.extend(row);
        starts.push(indices.len());
    }
    ViewData::Sparse(Csr::new(width, starts, indices, values).expect("sorted columns"))
}

fn strings(n: usize, length: usize) -> ViewData {
    let mut random = Random(3);
    ViewData::Strings(
        (0..n)
            .map(|_| {
                (0..length)
                    .map(|_| b"ACGT"[(random.next() >> 20) as usize % 4])
                    .collect()
            })
            .collect(),
    )
}

/// Each block is computed for at least this long.
const LONG_ENOUGH: Duration = Duration::from_secs(1);

/// Computes a block again and again, and tells the median time of one and what that is for an element.
fn measure(name: &str, elements: usize, mut block: impl FnMut()) {
    block();
    let begin = Instant::now();
    let mut times = Vec::new();
    while begin.elapsed() < LONG_ENOUGH {
        let start = Instant::now();
        block();
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    println!(
        "{name:45} {:10.3} ms {:8.3} Gelem/s",
        1e3 * median,
        elements as f64 / median / 1e9
    );
}

fn main() {
    let n = 1024;
    let rows: Vec<usize> = (0..256).collect();
    let jobs = [
        ("dot 784", Statistic::Dot, dense(n, 784), 784),
        (
            "squared distance 784",
            Statistic::SquaredDistance,
            dense(n, 784),
            784,
        ),
        (
            "squared distance 16",
            Statistic::SquaredDistance,
            dense(n, 16),
            16,
        ),
        ("l1 200", Statistic::L1, dense(n, 200), 200),
        ("chi2 200", Statistic::Chi2, dense(n, 200), 200),
        (
            "intersection 200",
            Statistic::Intersection,
            dense(n, 200),
            200,
        ),
        (
            "sparse dot 50 of 10000",
            Statistic::Dot,
            sparse(n, 10_000, 50),
            50,
        ),
        (
            "sparse chi2 50 of 10000",
            Statistic::Chi2,
            sparse(n, 10_000, 50),
            50,
        ),
        (
            "spectrum 3, 200 letters",
            Statistic::Spectrum { k: 3 },
            strings(n, 200),
            200,
        ),
        (
            "spectrum 8, 200 letters",
            Statistic::Spectrum { k: 8 },
            strings(n, 200),
            200,
        ),
        (
            "weighted degree 10, 200 letters",
            Statistic::WeightedDegree {
                degree: 10,
                shift: 0,
            },
            strings(n, 200),
            200,
        ),
        (
            "weighted degree 10, 200 letters, 5 shifts",
            Statistic::WeightedDegree {
                degree: 10,
                shift: 5,
            },
            strings(n, 200),
            200,
        ),
    ];
    for (name, statistic, view, width) in jobs {
        let operand = statistic.prepare(&view, None).expect("a view that fits");
        let mut out = vec![0.0; rows.len() * n];
        measure(name, rows.len() * n * width, || {
            operand.block(black_box(&rows), &operand, 0..n, &mut out)
        });
    }
    // One row at a time, as a solver without a stored matrix asks for them.
    for (name, statistic, width) in [
        ("one row, dot 784", Statistic::Dot, 784),
        ("one row, l1 200", Statistic::L1, 200),
        ("one row, chi2 200", Statistic::Chi2, 200),
    ] {
        let operand = statistic
            .prepare(&dense(n, width), None)
            .expect("a view that fits");
        let mut out = vec![0.0; n];
        measure(name, n * width, || {
            operand.block(black_box(&[7]), &operand, 0..n, &mut out)
        });
    }
}
