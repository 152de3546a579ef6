use multikernel::certificate::*;
use multikernel::data::*;
use multikernel::dual::*;
use multikernel::gram::*;
use multikernel::kernel::*;
use multikernel::loss::Loss;
use multikernel::norm::Norm;
use std::time::Instant;
fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().unwrap();
    let n: usize = args.next().unwrap().parse().unwrap();
    let m: usize = args.next().unwrap().parse().unwrap();
    let p: f64 = args.next().unwrap().parse().unwrap();
    let tol: f64 = args.next().unwrap().parse().unwrap();
    let img = std::fs::read(format!("{dir}/train-images-idx3-ubyte")).unwrap();
    let lab = std::fs::read(format!("{dir}/train-labels-idx1-ubyte")).unwrap();
    let x: Vec<f32> = img[16..16 + n * 784]
        .iter()
        .map(|&v| v as f32 / 255.0)
        .collect();
    let y: Vec<f64> = lab[8..8 + n]
        .iter()
        .map(|&v| if v % 2 == 1 { 1.0 } else { -1.0 })
        .collect();
    let t0 = Instant::now();
    let views = Views::new(vec![View {
        name: "x".into(),
        columns: vec![],
        data: ViewData::Dense(Dense::new(n, 784, x).unwrap()),
    }])
    .unwrap();
    let specs: Vec<KernelSpec> = (0..m)
        .map(|i| KernelSpec {
            kind: Kind::Rbf(Width::Value(1.2f64.powf(i as f64 * 50.0 / m as f64))),
            view: Some("x".into()),
            name: Some(format!("k{i}")),
            group: Some("x".into()),
            normalize: Normalize::None,
        })
        .collect();
    let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
    println!("kernels {:.3}", t0.elapsed().as_secs_f64());
    let costs = vec![1.0; n];
    let problem = Problem {
        loss: Loss::Hinge,
        targets: &y,
        costs: &costs,
        bias: true,
    };
    let norm = Norm::lp(p).unwrap();
    let s = solve(
        set.gram(),
        &norm,
        &problem,
        &Limits {
            tolerance: tol,
            max_rounds: 300,
            deadline: None,
            memory: 1 << 34,
        },
        None,
        &(),
    );
    for l in &s.history {
        println!(
            "{:.3} steps {} P {:.5} D {:.5} gap {:.2e}",
            l.seconds,
            l.steps,
            l.primal,
            l.dual,
            (l.primal - l.dual) / l.primal
        );
    }
    println!(
        "{:?} {:?} gap {:.3e} total {:.3} nsv {}",
        s.status,
        s.certificate,
        s.certificate.relative_gap(),
        t0.elapsed().as_secs_f64(),
        s.coefficients.iter().filter(|&&a| a != 0.0).count()
    );
}
