//! The choices of training that are words.

use crate::error::{Error, Result};
use crate::solve::search::Method;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Solver {
    /// The one that suits the problem.
    #[default]
    Auto,
    /// Alternation of working-set steps and exact weight steps, to a duality gap.
    Exact,
    /// The wrapper of Kloft et al.: full solves, analytic weights.
    Wrapper,
    /// The interleaved chunking of Kloft et al.
    Interleaved,
    /// OBSCURE of Orabona, Jie and Caputo: stochastic steps in the primal, in two stages.
    Obscure,
    /// Pegasos-MKL: OBSCURE's second stage alone, without its bound.
    Pegasos,
    /// OM-2: online steps, several passes.
    Om2,
    /// PA-I on the average kernel.
    Pa1,
    /// OMCL: PA-I for every kernel, and a combiner of their scores.
    Omcl,
    /// The mirror descent of MixNorm-MKL: the mixed norm, or lp:1.
    Mirror,
    /// Cutting planes: lp:1.
    Silp,
    /// SimpleMKL, a reduced gradient: lp:1.
    Simple,
    /// HessianMKL, Newton steps: lp:1.
    Hessian,
    /// MC-MKL, cutting planes for all classes together: lp:1.
    McMkl,
    /// Cutting planes for lp:P, 1 < P < ∞.
    Sip,
    /// Newton steps for lp:P, 1 < P < ∞.
    Newton,
    /// LP-β: an SVM for every kernel, and a mixture of them.
    LpBeta,
    /// Weights by each kernel's alignment with the targets.
    Align,
    /// Weights of the combination that is best aligned with the targets.
    Alignf,
    /// The average of the kernels.
    Average,
    /// The product of the kernels.
    Product,
    /// The best kernel alone, by cross-validation.
    Best,
    /// The unweighted sum of the kernels: the norm lp:inf, whatever norm is set.
    Sum,
}

/// What a solver is for.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct SolverInfo {
    /// Its name.
    pub name: &'static str,
    /// The problem it solves.
    pub problem: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// What is known of its result.
    pub certifies: &'static str,
    #[serde(skip)]
    solver: Solver,
}

/// All solvers.
pub const SOLVERS: [SolverInfo; 23] = [
    SolverInfo {
        name: "auto",
        problem: "the one that suits the problem: exact, or obscure for a joint problem whose coefficients do not fit the memory; the choice is said",
        paper: "-",
        certifies: "relative duality gap",
        solver: Solver::Auto,
    },
    SolverInfo {
        name: "exact",
        problem: "½Ω² + CΣℓ for every norm and loss: two classes, regression, one-class; three or more classes jointly with one set of weights (multiclass hinge), or by ovr or ovo",
        paper: "problem: Kloft, Brefeld, Sonnenburg, Zien, JMLR 12 (2011), jointly Orabona, Luo, Caputo, CVPR (2010); working set: Fan, Chen, Lin, JMLR 6 (2005); multiclass hinge: Crammer, Singer, JMLR 2 (2001)",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Exact,
    },
    SolverInfo {
        name: "wrapper",
        problem: "as exact but never jointly: more classes by ovr or ovo; made for lp:P with 1 < P < inf, at lp:1 it may stand still",
        paper: "Kloft, Brefeld, Sonnenburg, Zien, JMLR 12 (2011), Algorithm 1",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Wrapper,
    },
    SolverInfo {
        name: "interleaved",
        problem: "as exact but never jointly: more classes by ovr or ovo; made for lp:P with 1 < P < inf, at lp:1 it may stand still",
        paper: "Kloft, Brefeld, Sonnenburg, Zien, JMLR 12 (2011), Algorithm 2",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Interleaved,
    },
    SolverInfo {
        name: "obscure",
        problem: "½Ω² + CΣℓ for lp:P with 1 < P or block:R with 1 < R ≤ 2, any loss, without a bias except of the joint problem, where it is one more kernel; three or more classes jointly; a fixed number of epochs, fast to a rough answer",
        paper: "Orabona, Luo, Caputo, CVPR (2010) and JMLR 13 (2012)",
        certifies: "relative duality gap of its coefficients made feasible; the bounds of its theorems are told, not certified",
        solver: Solver::Obscure,
    },
    SolverInfo {
        name: "pegasos",
        problem: "as obscure, with steps 1/(λt) and no bound of the weight vectors, for comparison",
        paper: "Shalev-Shwartz, Singer, Srebro, ICML (2007), for kernels as in Orabona, Luo, Caputo, JMLR 13 (2012)",
        certifies: "relative duality gap of its coefficients made feasible",
        solver: Solver::Pegasos,
    },
    SolverInfo {
        name: "om2",
        problem: "classes by hinge losses, lp:P with 1 < P or block:R with 1 < R ≤ 2, without a bias; passes over the data; the command 'online' for streams",
        paper: "Luo, Orabona, Fornoni, Caputo, Cesa-Bianchi, CVPR (2010)",
        certifies: "relative duality gap of its coefficients made feasible, to the optimum at C, which its steps do not know; on streams the mistake bound of its Theorem 1",
        solver: Solver::Om2,
    },
    SolverInfo {
        name: "pa1",
        problem: "PA-I on the average kernel: no weights are learned; passes over the data, or streams",
        paper: "Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, JMLR 7 (2006)",
        certifies: "relative duality gap of its coefficients made feasible, to the optimum of the unweighted sum at C",
        solver: Solver::Pa1,
    },
    SolverInfo {
        name: "omcl",
        problem: "PA-I for every kernel by itself, and PA-I on top of their scores; several classes; passes over the data, or streams",
        paper: "Luo, Orabona, Caputo, ACCV (2009)",
        certifies: "nothing: it minimises no objective",
        solver: Solver::Omcl,
    },
    SolverInfo {
        name: "mirror",
        problem: "½(max_j Σ_k ‖w_jk‖)² + CΣℓ: norm mixed over groups of kernels, or lp:1 as a single group; any loss; classes jointly, by ovr or ovo",
        paper: "Nath, Dinesh, Raman, Bhattacharyya, Ben-Tal, Ramakrishnan, NIPS (2009)",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Mirror,
    },
    SolverInfo {
        name: "silp",
        problem: "norm lp:1, by cutting planes; any loss; classes jointly, by ovr or ovo",
        paper: "Sonnenburg, Rätsch, Schäfer, Schölkopf, JMLR 7 (2006)",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Silp,
    },
    SolverInfo {
        name: "simple",
        problem: "norm lp:1, by reduced gradients; any loss; classes jointly, by ovr or ovo",
        paper: "SimpleMKL: Rakotomamonjy, Bach, Canu, Grandvalet, JMLR 9 (2008)",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Simple,
    },
    SolverInfo {
        name: "hessian",
        problem: "norm lp:1, by Newton steps on the simplex; any loss; classes jointly, by ovr or ovo",
        paper: "HessianMKL: Chapelle, Rakotomamonjy, NIPS workshop (2008)",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Hessian,
    },
    SolverInfo {
        name: "mc-mkl",
        problem: "norm lp:1 for all classes jointly, by cutting planes around a multiclass SVM",
        paper: "Zien, Ong, ICML (2007)",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::McMkl,
    },
    SolverInfo {
        name: "sip",
        problem: "norm lp:P with 1 < P < inf, by cutting planes; any loss; classes jointly, by ovr or ovo",
        paper: "Kloft, Brefeld, Sonnenburg, Laskov, Müller, Zien, NIPS (2009)",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Sip,
    },
    SolverInfo {
        name: "newton",
        problem: "norm lp:P with 1 < P < inf, by Newton steps; may fail near P = 1, and says so; any loss; classes jointly, by ovr or ovo",
        paper: "Kloft, Brefeld, Sonnenburg, Laskov, Müller, Zien, NIPS (2009)",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Newton,
    },
    SolverInfo {
        name: "lp-beta",
        problem: "classes: an SVM for every kernel by itself, then a linear program for their mixture; with ovr weights for every class (LP-B)",
        paper: "Gehler, Nowozin, ICCV (2009)",
        certifies: "nothing for the whole: it minimises no objective; its SVMs reach the tolerance each",
        solver: Solver::LpBeta,
    },
    SolverInfo {
        name: "align",
        problem: "weights by each kernel's centred alignment with the targets, then one SVM",
        paper: "Cortes, Mohri, Rostamizadeh, ICML (2010)",
        certifies: "relative duality gap of the SVM at these weights",
        solver: Solver::Align,
    },
    SolverInfo {
        name: "alignf",
        problem: "weights of the combination of kernels that is best aligned with the targets, then one SVM",
        paper: "Cortes, Mohri, Rostamizadeh, ICML (2010)",
        certifies: "relative duality gap of the SVM at these weights",
        solver: Solver::Alignf,
    },
    SolverInfo {
        name: "average",
        problem: "the average of the kernels: no weights are learned",
        paper: "Gehler, Nowozin, ICCV (2009)",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Average,
    },
    SolverInfo {
        name: "product",
        problem: "the product of the kernels: no weights are learned",
        paper: "Gehler, Nowozin, ICCV (2009)",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Product,
    },
    SolverInfo {
        name: "best",
        problem: "the best kernel alone, by cross-validation",
        paper: "-",
        certifies: "relative duality gap of its SVM",
        solver: Solver::Best,
    },
    SolverInfo {
        name: "sum",
        problem: "the unweighted sum of the kernels (lp:inf): no weights are learned",
        paper: "Cortes, Vapnik, Machine Learning 20 (1995)",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        solver: Solver::Sum,
    },
];

/// How several classes are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Multiclass {
    /// Three or more classes jointly where loss and solver allow it, else one-vs-rest; two classes by one score.
    #[default]
    Auto,
    /// One problem with a score for every class and one set of kernel weights.
    Joint,
    /// Each class against all others.
    OneVsRest,
    /// Each class against each other.
    OneVsOne,
}

/// Whether there is a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bias {
    /// On for problems of one score except one-class, off for the joint problem of several classes.
    #[default]
    Auto,
    /// There is one; in the joint problem it is one more kernel, which is constant.
    On,
    /// There is none.
    Off,
}

/// Weights of the classes: the cost of a sample is C times its class's weight times its own.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ClassWeight {
    /// All 1.
    #[default]
    None,
    /// n/(number of classes · samples of the class): every class costs the same.
    Balanced,
    /// By name; classes that are not named have weight 1.
    Given(BTreeMap<String, f64>),
}

fn unknown(option: &str, text: &str, remedy: &str) -> Error {
    Error::input(option, format!("'{text}' is not known"), remedy)
}

impl FromStr for Solver {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match SOLVERS.iter().find(|info| info.name == text) {
            Some(info) => Ok(info.solver),
            None => Err(unknown(
                "solver",
                text,
                &format!(
                    "the solvers are {}",
                    SOLVERS.map(|info| info.name).join(", ")
                ),
            )),
        }
    }
}

impl Solver {
    /// How it searches among the weights; none if it does not.
    pub fn method(self) -> Option<Method> {
        match self {
            Solver::Mirror => Some(Method::Mirror),
            Solver::Silp | Solver::McMkl => Some(Method::Silp),
            Solver::Simple => Some(Method::Simple),
            Solver::Hessian => Some(Method::Hessian),
            Solver::Sip => Some(Method::Sip),
            Solver::Newton => Some(Method::Newton),
            _ => None,
        }
    }

    /// Whether it takes stochastic steps in the primal, which know no bias.
    pub fn is_stochastic(self) -> bool {
        matches!(
            self,
            Solver::Obscure | Solver::Pegasos | Solver::Om2 | Solver::Pa1 | Solver::Omcl
        )
    }
}

impl fmt::Display for Solver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = SOLVERS.iter().find(|info| info.solver == *self);
        f.write_str(known.map_or("", |info| info.name))
    }
}

impl FromStr for Multiclass {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Multiclass::Auto),
            "ovr" => Ok(Multiclass::OneVsRest),
            "ovo" => Ok(Multiclass::OneVsOne),
            "joint" => Ok(Multiclass::Joint),
            _ => Err(unknown("multiclass", text, "give joint, ovr or ovo")),
        }
    }
}

impl FromStr for Bias {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Bias::Auto),
            "on" => Ok(Bias::On),
            "off" => Ok(Bias::Off),
            _ => Err(unknown("bias", text, "give auto, on or off")),
        }
    }
}

/// `none`, `balanced` or `a=2,b=1`.
impl FromStr for ClassWeight {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "none" => return Ok(ClassWeight::None),
            "balanced" => return Ok(ClassWeight::Balanced),
            _ => {}
        }
        let mut weights = BTreeMap::new();
        for part in text.split(',') {
            // A class's name may hold '=', a number may not.
            let parsed = part
                .rsplit_once('=')
                .and_then(|(name, weight)| Some((name.trim(), weight.trim().parse::<f64>().ok()?)));
            let Some((name, weight)) = parsed else {
                return Err(Error::input(
                    "class-weight",
                    format!("'{part}' is not a class and its weight"),
                    "give balanced, or weights such as a=2,b=1",
                ));
            };
            if weights.insert(name.to_owned(), weight).is_some() {
                return Err(Error::input(
                    "class-weight",
                    format!("class '{name}' has two weights"),
                    "give one",
                ));
            }
        }
        Ok(ClassWeight::Given(weights))
    }
}
