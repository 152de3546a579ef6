//! Generated problems, and digits.

use multikernel::data::{Dense, Pairwise, View, ViewData, Views, digits};
use multikernel::error::{Error, Result};
use multikernel::gram::{Gram, Indefinite, KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::random::Random;

/// Kernels and classes.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) gram: Gram,
    pub(crate) classes: Vec<u32>,
    pub(crate) n_classes: usize,
}

/// The first digits in four views with five widths each: 20 kernels in four families.
pub(crate) fn digits_of(count: usize) -> Result<Problem> {
    let data = digits()?;
    let labels = data.labels.ok_or(Error::Stopped)?;
    let rows: Vec<usize> = (0..count).collect();
    let specs = KernelSpec::parse("rbf:width=mean*0.25|mean*0.5|mean|mean*2|mean*4")?;
    let options = Options::default();
    let set = KernelSet::new(&specs, &data.views.select(&rows)?, &options, &())?;
    let classes = rows.iter().map(|&i| labels.spelling(i).parse());
    Ok(Problem {
        gram: set.gram().clone(),
        classes: classes
            .collect::<Result<_, _>>()
            .map_err(|_| Error::Stopped)?,
        n_classes: 10,
    })
}

/// The same kernels as matrices that were given: nothing to compute, everything to read.
pub(crate) fn as_given(problem: &Problem) -> Result<Problem> {
    let kernels = 0..problem.gram.n_kernels();
    let matrices = kernels.map(|m| problem.gram.kernel(m).matrix());
    Ok(Problem {
        gram: given(matrices)?,
        classes: problem.classes.clone(),
        n_classes: problem.n_classes,
    })
}

fn given(matrices: impl Iterator<Item = Vec<f32>>) -> Result<Gram> {
    let mut views = Vec::new();
    let mut specs = Vec::new();
    for (m, values) in matrices.enumerate() {
        let n = values.len().isqrt();
        let name = format!("k{m}");
        specs.extend(KernelSpec::parse(&format!(
            "precomputed:from={name},normalize=none"
        ))?);
        views.push(View {
            name,
            columns: Vec::new(),
            data: ViewData::Pairwise(Pairwise::new(n, n, values)?),
        });
    }
    let options = Options {
        indefinite: Indefinite::Allow,
        ..Options::default()
    };
    let set = KernelSet::new(&specs, &Views::new(views)?, &options, &())?;
    Ok(set.gram().clone())
}

/// `views` views of eight numbers around centres of the classes, `apart` from each other; a view tells `known` of the classes
/// from the rest, as image descriptors do. Gaussian kernels of the mean width, one per view.
pub(crate) fn views_of(
    seed: u64,
    samples: usize,
    classes: usize,
    views: usize,
    known: usize,
    apart: f64,
) -> Result<Problem> {
    let mut random = Random::new(seed);
    let labels: Vec<u32> = (0..samples).map(|i| (i % classes) as u32).collect();
    let mut all = Vec::new();
    let mut specs = Vec::new();
    for v in 0..views {
        let known = random.sample(classes, known);
        let centres: Vec<Vec<f64>> = (0..classes)
            .map(|y| {
                let size = if known.contains(&y) { apart } else { 0.0 };
                (0..8).map(|_| size * random.normal()).collect()
            })
            .collect();
        let values = labels
            .iter()
            .flat_map(|&y| &centres[y as usize])
            .map(|c| (c + random.normal()) as f32)
            .collect();
        let name = format!("v{v}");
        specs.extend(KernelSpec::parse(&format!("rbf:width=mean,view={name}"))?);
        all.push(View {
            name,
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(samples, 8, values)?),
        });
    }
    let set = KernelSet::new(&specs, &Views::new(all)?, &Options::default(), &())?;
    Ok(Problem {
        gram: set.gram().clone(),
        classes: labels,
        n_classes: classes,
    })
}
