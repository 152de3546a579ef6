//! The description of a kernel: plain data, as users write it.

use serde::{Deserialize, Serialize};

/// What a user asks for: one kernel (or one per view, if no view is named).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelSpec {
    /// The formula and its parameters.
    pub kind: Kind,
    /// The view it looks at; none: one kernel for every view it can look at.
    pub view: Option<String>,
    /// Its name; none: made from view, kind and parameters.
    pub name: Option<String>,
    /// Its group; none: the name of the view.
    pub group: Option<String>,
    /// How its values are normalised.
    pub normalize: Normalize,
}

/// The formulas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    /// x·x'
    Linear,
    /// (γ x·x' + c)^d
    Poly {
        /// d
        degree: u32,
        /// c
        coef0: f64,
        /// γ
        gamma: f64,
    },
    /// exp(−‖x−x'‖²/w)
    Rbf(Width),
    /// exp(−‖x−x'‖₁/w)
    Laplacian(Width),
    /// exp(−Σ(x−x')²/(x+x')/w)
    Chi2(Width),
    /// Σ min(x, x')
    Intersection,
    /// exp(−d/w) of a given distance matrix.
    Distance(Width),
    /// Dot product of k-mer counts.
    Spectrum {
        /// Length of the k-mers.
        k: usize,
    },
    /// Matching k-mers at (shifted) positions, k = 1…degree.
    WeightedDegree {
        /// Longest k-mer.
        degree: usize,
        /// Largest shift.
        shift: usize,
    },
    /// A given kernel matrix.
    Precomputed,
    /// The product of named kernels.
    Product {
        /// Their names.
        of: Vec<String>,
    },
    /// The sum of named kernels.
    Sum {
        /// Their names.
        of: Vec<String>,
    },
}

/// The width w of an exponential kernel exp(−t/w).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Width {
    /// So many times the mean of t over pairs of different training samples.
    Mean(f64),
    /// So many times the median of t over pairs of different training samples.
    Median(f64),
    /// This number.
    Value(f64),
    /// One over this number.
    Gamma(f64),
}

/// How kernel values are normalised, with the statistics of the training samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// Not at all.
    #[default]
    None,
    /// k(x,x') / √(k(x,x) k(x',x'))
    Spherical,
    /// Divided by the variance in feature space, (1/n)Σk(x,x) − (1/n²)Σk(x,x').
    Multiplicative,
    /// Divided by the mean of the diagonal.
    Trace,
    /// Centred in feature space.
    Center,
}
