//! Online errors beside those of the baselines, passes beside the exact model, and the price of a budget.

use crate::Wishes;
use crate::data::{Known, Set, sets};
use crate::plot::{Chart, Line};
use multikernel::Mkl;
use multikernel::data::{Labels, Targets, Task, Views};
use multikernel::error::Result;
use multikernel::gram::{KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::online::{Online, Rule, StreamSettings};
use multikernel::train::Multiclass;

/// Views of noise in the sparse case.
const NOISE: usize = 15;
/// Examples by which widths are chosen.
const FIRST: usize = 256;

/// One way to learn: mistakes of every order and the mean curve.
struct Way {
    name: String,
    errors: Vec<f64>,
    /// Labelled examples and the sum of online errors there.
    curve: Vec<(u64, f64)>,
}

impl Way {
    fn mean(&self) -> f64 {
        self.errors.iter().sum::<f64>() / self.errors.len() as f64
    }

    fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.errors.iter().map(|e| (e - mean).powi(2)).sum();
        (squares / (self.errors.len().max(2) - 1) as f64).sqrt()
    }

    fn add(&mut self, online: &Online) {
        self.errors.push(online.report().online_error());
        let points = online.report().curve.points();
        if self.curve.is_empty() {
            self.curve = points.iter().map(|p| (p.0, 0.0)).collect();
        }
        for (sum, point) in self.curve.iter_mut().zip(points) {
            sum.1 += point.1 as f64 / point.0 as f64;
        }
    }

    fn line(&self) -> Line {
        let orders = self.errors.len() as f64;
        let mut last = 0.0;
        let mut points = Vec::new();
        for &(labelled, sum) in &self.curve {
            let x = labelled as f64;
            // on a logarithmic axis, points nearer than this are one
            if x >= 10.0 && x >= last * 1.03 {
                points.push((x, sum / orders));
                last = x;
            }
        }
        Line {
            name: self.name.clone(),
            points,
        }
    }
}

fn learner(rule: Rule, norm: &str, kernels: &[KernelSpec], views: &Views) -> Result<Online> {
    let settings = StreamSettings {
        rule,
        norm: norm.parse()?,
        ..StreamSettings::default()
    };
    let first: Vec<usize> = (0..FIRST.min(views.len())).collect();
    Online::new(settings, kernels, &views.select(&first)?)
}

/// The best of several parameters, in hindsight.
fn best(
    name: &str,
    tries: &[(String, Rule, &str)],
    kernels: &[KernelSpec],
    orders: &[Known],
) -> Result<Way> {
    let mut found: Option<Way> = None;
    for (parameter, rule, norm) in tries {
        let mut way = Way {
            name: match parameter.is_empty() {
                true => name.to_owned(),
                false => format!("{name}, {parameter}"),
            },
            errors: Vec::new(),
            curve: Vec::new(),
        };
        for known in orders {
            let mut online = learner(*rule, norm, kernels, &known.views)?;
            online.learn(&known.views, &known.told())?;
            way.add(&online);
        }
        if found.as_ref().is_none_or(|f| way.mean() < f.mean()) {
            found = Some(way);
        }
    }
    found.ok_or(multikernel::Error::Stopped)
}

fn passive_aggressive() -> Vec<(String, Rule, &'static str)> {
    [0.25, 0.5, 1.0, 10.0]
        .map(|c| (format!("C {c}"), Rule::PassiveAggressive { c }, "block:2"))
        .to_vec()
}

pub(crate) fn beside_baselines(wishes: &Wishes) -> Result<()> {
    println!("\n| stream | examples | way | online error, % | deviation |");
    println!("|---|---|---|---|---|");
    for set in sets(wishes)? {
        let all: Vec<Known> = (0..set.orders)
            .map(|seed| set.training.shuffled(seed))
            .collect::<Result<_>>()?;
        let sparse: Vec<Known> = all
            .iter()
            .zip(0..)
            .map(|(known, seed)| known.one_among_noise(set.informative, NOISE, seed))
            .collect::<Result<_>>()?;
        one_stream(wishes, &set, "four views", "full", &all)?;
        let name = format!("{} and {NOISE} views of noise", set.informative);
        one_stream(wishes, &set, &name, "sparse", &sparse)?;
        let pairs: Vec<Known> = sparse.iter().map(Known::in_pairs).collect::<Result<_>>()?;
        let name = format!("{name}, a kernel for every two columns");
        in_pairs(&set, &name, &pairs)?;
    }
    Ok(())
}

/// The sparse case with kernels that each see a little of a view: no one of them can do it alone.
fn in_pairs(set: &Set, name: &str, orders: &[Known]) -> Result<()> {
    let width = ["mean"];
    let bank = KernelSpec::parse("rbf:width=mean")?;
    let mut ways = vec![by_corollary(&bank, orders)?, by_average(&bank, orders)?];
    ways.extend(best_single(&width, orders)?);
    ways.push(with_link(&bank, orders)?);
    print(set, name, orders, &ways);
    Ok(())
}

fn by_corollary(bank: &[KernelSpec], orders: &[Known]) -> Result<Way> {
    let tries = [(String::new(), Rule::Om2, "block:auto")];
    best("OM-2, p by Corollary 1", &tries, bank, orders)
}

fn with_link(bank: &[KernelSpec], orders: &[Known]) -> Result<Way> {
    let rule = Rule::Om2Link { link: 0.5 };
    let tries = [(String::new(), rule, block("1.05"))];
    best("OM-2, link ½, p 1.05", &tries, bank, orders)
}

fn by_average(bank: &[KernelSpec], orders: &[Known]) -> Result<Way> {
    best("PA-I, average kernel", &passive_aggressive(), bank, orders)
}

/// Every kernel by itself; the best is known afterwards only.
fn best_single(widths: &[&str], orders: &[Known]) -> Result<Option<Way>> {
    let names: Vec<String> = orders[0].views.iter().map(|v| v.name.clone()).collect();
    let mut single: Option<Way> = None;
    for view in names.iter().filter(|n| !n.starts_with("noise")) {
        for width in widths {
            let spec = KernelSpec::parse(&format!("rbf:width={width},view={view}"))?;
            let way = best("", &passive_aggressive(), &spec, orders)?;
            if single.as_ref().is_none_or(|s| way.mean() < s.mean()) {
                single = Some(Way {
                    name: format!("PA-I, best single kernel ({view}, {width})"),
                    ..way
                });
            }
        }
    }
    Ok(single)
}

fn print(set: &Set, name: &str, orders: &[Known], ways: &[Way]) {
    for way in ways {
        println!(
            "| {}, {name} | {} | {} | {:.2} | {:.2} |",
            set.name,
            orders[0].labels.len(),
            way.name,
            100.0 * way.mean(),
            100.0 * way.deviation()
        );
    }
}

fn one_stream(wishes: &Wishes, set: &Set, name: &str, short: &str, orders: &[Known]) -> Result<()> {
    let widths = ["mean*0.5", "mean", "mean*2"];
    let bank = KernelSpec::parse(&format!("rbf:width={}", widths.join("|")))?;
    let mut ways = vec![
        by_corollary(&bank, orders)?,
        best(
            "OM-2, best p",
            &["1.01", "1.05", "1.1", "1.25", "1.5", "2"]
                .map(|p| (format!("p {p}"), Rule::Om2, p))
                .map(|(text, rule, p)| (text, rule, block(p))),
            &bank,
            orders,
        )?,
        by_average(&bank, orders)?,
    ];
    ways.extend(best_single(&widths, orders)?);
    ways.push(with_link(&bank, orders)?);
    ways.push(best(
        "OMCL",
        &[0.1, 1.0].map(|c| (format!("C {c}"), Rule::Omcl { c }, "block:2")),
        &bank,
        orders,
    )?);
    ways.push(best(
        "OBSCURE's stage 1",
        &[(String::new(), Rule::Obscure { eta: 2.0 }, "block:auto")],
        &bank,
        orders,
    )?);
    ways.push(best(
        "Pegasos-MKL",
        &[1e-4, 1e-3, 1e-2].map(|l| (format!("λ {l}"), Rule::Pegasos { lambda: l }, "block:auto")),
        &bank,
        orders,
    )?);
    print(set, name, orders, &ways);
    if let Some(folder) = &wishes.plots {
        let title = format!(
            "{}, {name}: mistakes so far, mean of {} orders",
            set.name,
            orders.len()
        );
        let short_names = [
            "OM-2, auto p",
            "OM-2, best p",
            "PA-I, average",
            "PA-I, single",
            "OM-2, link ½",
            "OMCL",
            "OBSCURE 1",
            "Pegasos-MKL",
        ];
        let mut lines: Vec<Line> = ways.iter().map(Way::line).collect();
        lines
            .iter_mut()
            .zip(short_names)
            .for_each(|(l, n)| l.name = n.to_owned());
        Chart {
            title: &title,
            x: "examples",
            y: "online error",
            lines,
        }
        .write(&folder.join(format!("online-{}-{short}.svg", set.name)))?;
    }
    Ok(())
}

fn block(p: &str) -> &'static str {
    match p {
        "1.01" => "block:1.01",
        "1.05" => "block:1.05",
        "1.1" => "block:1.1",
        "1.25" => "block:1.25",
        "1.5" => "block:1.5",
        _ => "block:2",
    }
}

fn accuracy(online: &Online, test: &Known) -> Result<f64> {
    let said = online.predict(&test.views)?;
    let right = said.iter().zip(&test.labels).filter(|(said, label)| {
        said.prediction
            .is_some_and(|k| online.classes()[k as usize] == **label)
    });
    Ok(right.count() as f64 / test.labels.len() as f64)
}

pub(crate) fn with_passes(wishes: &Wishes) -> Result<()> {
    let passes = if wishes.quick { 5 } else { 30 };
    println!(
        "\n| data | exact model: best of C, test accuracy, % | OM-2 after 1 | 2 | 5 | 10 | {passes} passes |"
    );
    println!("|---|---|---|---|---|---|---|");
    for set in sets(wishes)? {
        let bank = KernelSpec::parse("rbf:width=mean*0.5|mean|mean*2")?;
        let training = set.training.shuffled(0)?;
        let mut online = learner(Rule::Om2, "block:1.25", &bank, &training.views)?;
        let mut reached = Vec::new();
        for pass in 0..passes {
            match pass {
                0 => {
                    online.learn(&training.views, &training.told())?;
                }
                _ => {
                    online.begin_pass();
                    online.learn_again(&training.views, &training.told(), 0)?;
                }
            }
            reached.push(accuracy(&online, &set.test)?);
        }
        let mut exact: f64 = 0.0;
        // the exact solver's kernels of all samples, so fewer of them where there are many
        let few: Vec<usize> =
            (0..training
                .labels
                .len()
                .min(if wishes.quick { 1000 } else { 7494 }))
                .collect();
        let known = training.some(&few)?;
        let kernels = KernelSet::new(&bank, &known.views, &Options::default(), &())?;
        let labels = Labels::from_text(&known.labels)?;
        let targets = Targets::new(Some(&labels), Task::Classify, known.labels.len())?;
        for c in [1.0, 10.0, 100.0] {
            let mkl = Mkl {
                norm: "block:1.25".parse()?,
                c,
                multiclass: Multiclass::Joint,
                tolerance: 1e-2,
                ..Mkl::default()
            };
            let fitted = mkl.fit(&kernels, &targets, &())?;
            let said = fitted.model.predict(&set.test.views)?;
            let right = (0..said.len()).filter(|&i| said.text(i) == set.test.labels[i].as_str());
            exact = exact.max(right.count() as f64 / said.len() as f64);
        }
        let at = |pass: usize| {
            reached
                .get(pass - 1)
                .map_or(String::from("-"), |a| format!("{:.2}", 100.0 * a))
        };
        println!(
            "| {} | {:.2} | {} | {} | {} | {} | {} |",
            set.name,
            100.0 * exact,
            at(1),
            at(2),
            at(5),
            at(10),
            at(passes)
        );
    }
    Ok(())
}

pub(crate) fn with_budgets(wishes: &Wishes) -> Result<()> {
    println!("\n| stream | budget | oldest: online error, % | smallest | project |");
    println!("|---|---|---|---|---|");
    for set in sets(wishes)? {
        let orders: Vec<Known> = (0..set.orders.min(3))
            .map(|seed| set.training.shuffled(seed))
            .collect::<Result<_>>()?;
        let bank = KernelSpec::parse("rbf:width=mean*0.5|mean|mean*2")?;
        for size in [50usize, 100, 200, 400, 800] {
            let mut cells = Vec::new();
            for rule in ["oldest", "smallest", "project"] {
                let mut sum = 0.0;
                for known in &orders {
                    let settings = StreamSettings {
                        budget: Some(format!("{size}:{rule}").parse()?),
                        ..StreamSettings::default()
                    };
                    let first: Vec<usize> = (0..FIRST).collect();
                    let mut online = Online::new(settings, &bank, &known.views.select(&first)?)?;
                    online.learn(&known.views, &known.told())?;
                    sum += online.report().online_error();
                }
                cells.push(format!("{:.2}", 100.0 * sum / orders.len() as f64));
            }
            println!("| {} | {size} | {} |", set.name, cells.join(" | "));
        }
        let mut sum = (0.0, 0);
        for known in &orders {
            let mut online = learner(Rule::Om2, "block:auto", &bank, &known.views)?;
            online.learn(&known.views, &known.told())?;
            sum.0 += online.report().online_error();
            sum.1 += online.n_support();
        }
        let n = orders.len();
        let (error, support) = (100.0 * sum.0 / n as f64, sum.1 / n);
        println!(
            "| {} | none ({support} support vectors) | {error:.2} | {error:.2} | {error:.2} |",
            set.name
        );
    }
    Ok(())
}
