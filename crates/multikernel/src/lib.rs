//! Multiple kernel learning: several kernels, one convex problem, a predictor and a weight for every kernel.
//!
//! # Quick start
//!
//! Flowers in two views, four known and two to be told:
//!
//! ```
//! use multikernel::{Mkl, Targets, Training, View, Views};
//!
//! let petal = View::dense("petal", 2, [1.4, 0.2, 1.3, 0.3, 4.7, 1.4, 5.1, 1.8])?;
//! let sepal = View::dense("sepal", 2, [5.1, 3.5, 4.9, 3.0, 7.0, 3.2, 6.3, 3.3])?;
//! let names = Targets::classes(["setosa", "setosa", "other", "other"])?;
//!
//! let mkl = Mkl::classifier().norm("lp:4/3").c(10.0);
//! let fitted = Training::new(mkl).run(Views::new(vec![petal, sepal])?, names, &())?.fitted;
//! println!("at most {:.1e} above the optimum", fitted.relative_gap());
//! for kernel in &fitted.kernels {
//!     println!("{} has weight {:?}", kernel.name, kernel.weights);
//! }
//!
//! let petal = View::dense("petal", 2, [1.5, 0.2, 4.9, 1.5])?;
//! let sepal = View::dense("sepal", 2, [5.0, 3.4, 6.5, 3.0])?;
//! let told = fitted.model.predict(&Views::new(vec![petal, sepal])?)?;
//! assert_eq!([told.text(0), told.text(1)], ["setosa", "other"]);
//! # assert!(fitted.relative_gap() <= 1e-3);
//! # Ok::<(), multikernel::Error>(())
//! ```
//!
//! A [`Training`] takes the default kernels unless others are named, measures what is held out, compares and calibrates, as asked.
//!
//! # The problem
//!
//! There are M kernels K_1 … K_M on N samples; kernel m has the weight vector w_m in its own feature space.
//!
//! ```text
//! min over w, b of  ½ Ω(‖w_1‖, …, ‖w_M‖)² + C Σ_i ℓ(f(x_i), y_i),     f(x) = Σ_m ⟨w_m, ψ_m(x)⟩ + b
//! ```
//!
//! Four nouns make a problem: [kernels](kernel), a [loss] ℓ, a [norm] Ω, and a solver. Every model has the same form: coefficients
//! a of the samples, shared by all kernels, weights β ≥ 0 of the kernels, a bias:
//! f(x) = Σ_m β_m Σ_i a_i k_m(x_i, x) + b. Every answer comes with a [certificate](problem::Certificate): primal and dual objective, computed from the
//! kernels alone; the optimum lies between them.
//!
//! | solver | problem | paper | certifies |
//! |---|---|---|---|
//! | [`solve::exact::solve`] | any scalar loss, block norms 1 ≤ r ≤ ∞ (`lp:1` … `lp:inf`), elastic, mixed, non-isotropic | ours, on Kloft et al. 2011 | duality gap |
//! | [`solve::exact::multiclass::solve`] | several classes jointly (Crammer and Singer's hinge), the same norms | ours | duality gap |
//! | [`solve::exact::wrapper::solve`], [`solve::exact::interleaved::solve`] | as the first, as published | Kloft et al. 2011: [Algorithm 1](../src/multikernel/solve/exact/wrapper.rs.html) and [Algorithm 2](../src/multikernel/solve/exact/interleaved.rs.html) | duality gap |
//! | [`solve::search::solve`] | weights searched around an SVM: SILP, SimpleMKL, HessianMKL, MC-MKL, SIP, Newton; for groups of kernels MixNorm-MKL | Nath et al. 2009: [Algorithm 1](../src/multikernel/solve/search/mirror.rs.html) in `solve/search/mirror.rs`; the others beside it | duality gap |
//! | [`solve::stochastic::obscure`] | any loss, several classes jointly, block norms 1 < r ≤ 2; a fixed number of epochs | Orabona, Luo, Caputo 2010, 2012: [Algorithms 1 and 2](../src/multikernel/solve/steps/obscure.rs.html) in `solve/steps/obscure.rs` | duality gap |
//! | [`solve::stochastic::obscure_structured`] | structured outputs through an oracle, block norms 1 < r ≤ 2 | the same | duality gap |
//! | [`online::Online`] | streams: OM-2, OBSCURE's stage 1, Pegasos-MKL, PA-I, OMCL | Luo et al. 2010: [Algorithm 1](../src/multikernel/solve/steps/om2.rs.html) in `solve/steps/om2.rs`; the others beside it | OM-2: a mistake bound |
//!
//! # From data to predictions, step by step
//!
//! [`Views`] → [`KernelSet`](gram::KernelSet) → [`Mkl`] → [`Fitted`] → [`Model`]:
//!
//! ```
//! use multikernel::data::{Targets, Task, digits};
//! use multikernel::gram::{KernelSet, Options};
//! use multikernel::kernel::KernelSpec;
//! use multikernel::Mkl;
//!
//! // Handwritten digits in four views, the quadrants of the image.
//! let data = digits()?;
//! let targets = Targets::new(data.labels.as_ref(), Task::Classify, data.views.len())?;
//! let rows: Vec<usize> = (0..200).collect();
//! let (views, targets) = (data.views.select(&rows)?, targets.select(&rows));
//!
//! // Three widths for every view: twelve kernels in four families.
//! let specs = KernelSpec::parse("rbf:width=mean*0.5|mean|mean*2")?;
//! let kernels = KernelSet::new(&specs, &views, &Options::default(), &())?;
//! let fitted = Mkl::classifier().fit(&kernels, &targets, &())?;
//! assert!(fitted.relative_gap() <= 1e-3);
//! let predictions = fitted.model.predict(&views)?;
//! assert_eq!(predictions.text(0), "0");
//! # Ok::<(), multikernel::Error>(())
//! ```
//!
//! The library prints nothing, reads no environment and owns no threads: it uses rayon's current pool, tells an
//! [observer](observe::Observer) how far it is, and stops when that asks it to. The same input gives the same bits for any
//! number of threads.
#![deny(missing_docs)]

pub mod data;
mod eigen;
pub mod error;
pub mod files;
pub mod gram;
mod huge_pages;
pub mod inspect;
pub mod kernel;
pub mod loss;
pub mod machine;
mod math;
pub mod measure;
pub mod model;
pub mod norm;
pub mod observe;
pub mod online;
pub mod pipeline;
pub mod problem;
pub mod random;
pub mod record;
pub mod select;
pub mod solve;
pub mod train;

pub use data::{Targets, View, Views};
pub use error::{Error, Result};
pub use model::Model;
pub use pipeline::Training;
pub use train::{Fitted, Mkl};
