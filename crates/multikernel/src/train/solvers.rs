//! The solvers: one row each, and one line in the table. Names, help, `multikernel solvers`, which settings a solver takes
//! and how training calls it follow from the rows.

use super::fitting::Fitting;
use super::{Fitted, Mkl, fixed_weights};
use crate::error::{Error, Result};
use crate::gram::Gram;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{Limits, Problem, Solution, Start};
use crate::solve::stochastic::{self, Method, Radius};
use crate::solve::{exact, search};
use Setting::{Bias, Checkpoint, Epochs, StartEpochs, Tikhonov};
use std::fmt;
use std::str::FromStr;

/// From the table to the enum and the list of rows, in the same order.
macro_rules! solvers {
    ($usual:ident = $of_usual:path, $doc_of_usual:literal; $($(#[cfg($cfg:meta)])? $name:ident = $info:path, $doc:literal;)*) => {
        /// The algorithms; the first is the default.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum Solver {
            #[default]
            #[doc = $doc_of_usual]
            $usual,
            $($(#[cfg($cfg)])? #[doc = $doc] $name,)*
        }

        /// All solvers.
        pub static SOLVERS: &[SolverInfo] = &[$of_usual, $($(#[cfg($cfg)])? $info,)*];

        /// The solver of each row.
        const OF_ROWS: &[Solver] = &[Solver::$usual, $($(#[cfg($cfg)])? Solver::$name,)*];
    };
}

#[cfg(test)]
use super::toy;

solvers! {
    Auto = AUTO, "The one that suits the problem.";
    Exact = EXACT, "Alternation of working-set steps and exact weight steps, to a duality gap.";
    Wrapper = WRAPPER, "The wrapper of Kloft et al.: full solves, analytic weights.";
    Interleaved = INTERLEAVED, "The interleaved chunking of Kloft et al.";
    Obscure = OBSCURE, "OBSCURE of Orabona, Jie and Caputo: stochastic steps in the primal, in two stages.";
    Pegasos = PEGASOS, "Pegasos-MKL: OBSCURE's second stage alone, without its bound.";
    Om2 = OM2, "OM-2: online steps, several passes.";
    Pa1 = PA1, "PA-I on the average kernel.";
    Omcl = OMCL, "OMCL: PA-I for every kernel, and a combiner of their scores.";
    Mirror = MIRROR, "The mirror descent of MixNorm-MKL: the mixed norm, or lp:1.";
    Silp = SILP, "Cutting planes: lp:1.";
    Simple = SIMPLE, "SimpleMKL, a reduced gradient: lp:1.";
    Hessian = HESSIAN, "HessianMKL, Newton steps: lp:1.";
    McMkl = MC_MKL, "MC-MKL, cutting planes for all classes together: lp:1.";
    Sip = SIP, "Cutting planes for lp:P, 1 < P < ∞.";
    Newton = NEWTON, "Newton steps for lp:P, 1 < P < ∞.";
    LpBeta = LP_BETA, "LP-β: an SVM for every kernel, and a mixture of them.";
    Align = ALIGN, "Weights by each kernel's alignment with the targets.";
    Alignf = ALIGNF, "Weights of the combination that is best aligned with the targets.";
    Average = AVERAGE, "The average of the kernels.";
    Product = PRODUCT, "The product of the kernels.";
    Best = BEST, "The best kernel alone, by cross-validation.";
    Sum = SUM, "The unweighted sum of the kernels: the norm lp:inf, whatever norm is set.";
    #[cfg(test)] Turns = toy::TURNS, "An SVM and a weight step in turns: a toy.";
}

/// What is known of a solver.
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
    /// How training calls it.
    #[serde(skip)]
    pub(super) way: Way,
    /// Where the weights come from.
    #[serde(skip)]
    pub(super) weights: Weights,
    /// Whether it solves the joint problem of several classes.
    #[serde(skip)]
    pub(super) joint: Joint,
    /// The settings that not every solver takes and it does.
    #[serde(skip)]
    pub(super) takes: &'static [Setting],
    /// Whether its steps make the objective at C small.
    #[serde(skip)]
    pub(super) knows_c: bool,
}

/// Solves one problem of one score per sample.
pub(super) type OneScore =
    fn(&Gram, &Norm, &Problem<'_>, &Limits, Option<Start>, &dyn Observer) -> Solution;

/// Trains in a way of its own.
type Whole = for<'a> fn(&Mkl, Fitting<'a>) -> Result<Fitted>;

/// How training calls a solver.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// For problems of one score; jointly it is the exact solver.
    OneScore(OneScore),
    /// A search among the weights, around an SVM.
    Search(search::Method),
    /// Steps over the samples, set up for a C.
    Steps(fn(&mut stochastic::StochasticSettings, f64)),
    /// Problems, norm and model are its own affair.
    Whole(Whole),
}

/// Where the weights of the kernels come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Weights {
    /// They are learned under the norm that was asked for.
    Learned,
    /// They stay 1: the norm is lp:inf, whatever was asked for.
    Sum,
    /// They are chosen first and stay.
    First(fixed_weights::FirstStage),
}

/// Whether a solver solves the joint problem of several classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// Its problems have one score.
    Never,
    /// That too.
    Possible,
    /// Nothing else.
    Only,
}

/// Settings that not every solver takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// The Tikhonov form.
    Tikhonov,
    /// A start from epochs of OBSCURE.
    StartEpochs,
    /// To go on from a checkpoint.
    Checkpoint,
    /// A bias.
    Bias,
    /// A number of passes over the samples.
    Epochs,
}

impl Setting {
    /// Its name, and why a solver may not take it.
    fn refused(self) -> (&'static str, &'static str) {
        match self {
            Tikhonov => ("tikhonov", "does not solve this form"),
            StartEpochs => ("start-epochs", "starts by itself"),
            Checkpoint => ("checkpoint", "always starts from nothing"),
            Bias => ("bias", "has none"),
            Epochs => ("epochs", "makes no passes"),
        }
    }
}

impl SolverInfo {
    /// What is so of most solvers.
    pub(super) const USUAL: SolverInfo = SolverInfo {
        name: "",
        problem: "",
        paper: "-",
        certifies: "relative duality gap, recomputed from coefficients and kernels alone",
        way: Way::OneScore(exact::solve),
        weights: Weights::Learned,
        joint: Joint::Possible,
        takes: &[Bias],
        knows_c: true,
    };
}

impl Solver {
    /// What is known of it.
    pub fn info(self) -> &'static SolverInfo {
        &SOLVERS[self as usize]
    }

    /// How it searches among the weights; none if it does not.
    pub fn method(self) -> Option<search::Method> {
        match self.info().way {
            Way::Search(method) => Some(method),
            _ => None,
        }
    }

    /// Whether it takes stochastic steps in the primal, which know no bias.
    pub fn is_stochastic(self) -> bool {
        self.takes(Epochs)
    }

    /// Whether the objective at C is what its steps make small.
    pub fn knows_c(self) -> bool {
        self.info().knows_c
    }

    pub(crate) fn takes(self, setting: Setting) -> bool {
        self.info().takes.contains(&setting)
    }

    /// # Errors
    /// If it does not take the setting.
    pub(crate) fn check(self, setting: Setting) -> Result<()> {
        if self.takes(setting) {
            return Ok(());
        }
        let (name, why) = setting.refused();
        Err(Error::input(
            name,
            format!("solver {self} {why}"),
            "leave it out, or give the solver exact",
        ))
    }
}

impl FromStr for Solver {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let known = SOLVERS.iter().position(|info| info.name == text);
        known.map(|row| OF_ROWS[row]).ok_or_else(|| {
            let names: Vec<&str> = SOLVERS.iter().map(|info| info.name).collect();
            super::choices::unknown(
                "solver",
                text,
                &format!("the solvers are {}", names.join(", ")),
            )
        })
    }
}

impl fmt::Display for Solver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

const AUTO: SolverInfo = SolverInfo {
    name: "auto",
    problem: "the one that suits the problem: exact, or obscure for a joint problem whose coefficients do not fit the memory; the choice is said",
    paper: "-",
    certifies: "relative duality gap",
    way: Way::OneScore(exact::solve),
    takes: &[Tikhonov, StartEpochs, Checkpoint, Bias],
    ..SolverInfo::USUAL
};

const EXACT: SolverInfo = SolverInfo {
    name: "exact",
    problem: "½Ω² + CΣℓ for every norm and loss: two classes, regression, one-class; three or more classes jointly with one set of weights (multiclass hinge), or by ovr or ovo",
    paper: "problem: Kloft, Brefeld, Sonnenburg, Zien, JMLR 12 (2011), jointly Orabona, Luo, Caputo, CVPR (2010); working set: Fan, Chen, Lin, JMLR 6 (2005); multiclass hinge: Crammer, Singer, JMLR 2 (2001)",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::OneScore(exact::solve),
    takes: &[Tikhonov, StartEpochs, Checkpoint, Bias],
    ..SolverInfo::USUAL
};

const WRAPPER: SolverInfo = SolverInfo {
    name: "wrapper",
    problem: "as exact but never jointly: more classes by ovr or ovo; made for lp:P with 1 < P < inf, at lp:1 it may stand still",
    paper: "Kloft, Brefeld, Sonnenburg, Zien, JMLR 12 (2011), Algorithm 1",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::OneScore(exact::wrapper::solve),
    joint: Joint::Never,
    takes: &[Checkpoint, Bias],
    ..SolverInfo::USUAL
};

const INTERLEAVED: SolverInfo = SolverInfo {
    name: "interleaved",
    problem: "as exact but never jointly: more classes by ovr or ovo; made for lp:P with 1 < P < inf, at lp:1 it may stand still",
    paper: "Kloft, Brefeld, Sonnenburg, Zien, JMLR 12 (2011), Algorithm 2",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::OneScore(exact::interleaved::solve),
    joint: Joint::Never,
    takes: &[Checkpoint, Bias],
    ..SolverInfo::USUAL
};

const OBSCURE: SolverInfo = SolverInfo {
    name: "obscure",
    problem: "½Ω² + CΣℓ for lp:P with 1 < P or block:R with 1 < R ≤ 2, any loss, without a bias except of the joint problem, where it is one more kernel; three or more classes jointly; a fixed number of epochs, fast to a rough answer",
    paper: "Orabona, Luo, Caputo, CVPR (2010) and JMLR 13 (2012)",
    certifies: "relative duality gap of its coefficients made feasible; the bounds of its theorems are told, not certified",
    way: Way::Steps(|settings, _| settings.method = Method::Obscure),
    takes: &[Epochs],
    ..SolverInfo::USUAL
};

const PEGASOS: SolverInfo = SolverInfo {
    name: "pegasos",
    problem: "as obscure, with steps 1/(λt) and no bound of the weight vectors, for comparison",
    paper: "Shalev-Shwartz, Singer, Srebro, ICML (2007), for kernels as in Orabona, Luo, Caputo, JMLR 13 (2012)",
    certifies: "relative duality gap of its coefficients made feasible",
    way: Way::Steps(|settings, _| {
        settings.method = Method::Obscure;
        settings.radius = Radius::Infinite;
    }),
    takes: &[Epochs],
    ..SolverInfo::USUAL
};

const OM2: SolverInfo = SolverInfo {
    name: "om2",
    problem: "classes by hinge losses, lp:P with 1 < P or block:R with 1 < R ≤ 2, without a bias; passes over the data; the command 'online' for streams",
    paper: "Luo, Orabona, Fornoni, Caputo, Cesa-Bianchi, CVPR (2010)",
    certifies: "relative duality gap of its coefficients made feasible, to the optimum at C, which its steps do not know; on streams the mistake bound of its Theorem 1",
    way: Way::Steps(|settings, _| settings.method = Method::Om2),
    takes: &[Epochs],
    knows_c: false,
    ..SolverInfo::USUAL
};

const PA1: SolverInfo = SolverInfo {
    name: "pa1",
    problem: "PA-I on the average kernel: no weights are learned; passes over the data, or streams",
    paper: "Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, JMLR 7 (2006)",
    certifies: "relative duality gap of its coefficients made feasible, to the optimum of the unweighted sum at C",
    way: Way::Steps(|settings, c| settings.method = Method::PassiveAggressive { c }),
    weights: Weights::Sum,
    takes: &[Epochs],
    knows_c: false,
    ..SolverInfo::USUAL
};

const OMCL: SolverInfo = SolverInfo {
    name: "omcl",
    problem: "PA-I for every kernel by itself, and PA-I on top of their scores; several classes; passes over the data, or streams",
    paper: "Luo, Orabona, Caputo, ACCV (2009)",
    certifies: "nothing: it minimises no objective",
    way: Way::Whole(Mkl::fit_omcl),
    weights: Weights::Sum,
    takes: &[Epochs],
    ..SolverInfo::USUAL
};

const MIRROR: SolverInfo = SolverInfo {
    name: "mirror",
    problem: "½(max_j Σ_k ‖w_jk‖)² + CΣℓ: norm mixed over groups of kernels, or lp:1 as a single group; any loss; classes jointly, by ovr or ovo",
    paper: "Nath, Dinesh, Raman, Bhattacharyya, Ben-Tal, Ramakrishnan, NIPS (2009)",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::Search(search::Method::Mirror),
    ..SolverInfo::USUAL
};

const SILP: SolverInfo = SolverInfo {
    name: "silp",
    problem: "norm lp:1, by cutting planes; any loss; classes jointly, by ovr or ovo",
    paper: "Sonnenburg, Rätsch, Schäfer, Schölkopf, JMLR 7 (2006)",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::Search(search::Method::Silp),
    ..SolverInfo::USUAL
};

const SIMPLE: SolverInfo = SolverInfo {
    name: "simple",
    problem: "norm lp:1, by reduced gradients; any loss; classes jointly, by ovr or ovo",
    paper: "SimpleMKL: Rakotomamonjy, Bach, Canu, Grandvalet, JMLR 9 (2008)",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::Search(search::Method::Simple),
    ..SolverInfo::USUAL
};

const HESSIAN: SolverInfo = SolverInfo {
    name: "hessian",
    problem: "norm lp:1, by Newton steps on the simplex; any loss; classes jointly, by ovr or ovo",
    paper: "HessianMKL: Chapelle, Rakotomamonjy, NIPS workshop (2008)",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::Search(search::Method::Hessian),
    ..SolverInfo::USUAL
};

const MC_MKL: SolverInfo = SolverInfo {
    name: "mc-mkl",
    problem: "norm lp:1 for all classes jointly, by cutting planes around a multiclass SVM",
    paper: "Zien, Ong, ICML (2007)",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::Search(search::Method::Silp),
    joint: Joint::Only,
    ..SolverInfo::USUAL
};

const SIP: SolverInfo = SolverInfo {
    name: "sip",
    problem: "norm lp:P with 1 < P < inf, by cutting planes; any loss; classes jointly, by ovr or ovo",
    paper: "Kloft, Brefeld, Sonnenburg, Laskov, Müller, Zien, NIPS (2009)",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::Search(search::Method::Sip),
    ..SolverInfo::USUAL
};

const NEWTON: SolverInfo = SolverInfo {
    name: "newton",
    problem: "norm lp:P with 1 < P < inf, by Newton steps; may fail near P = 1, and says so; any loss; classes jointly, by ovr or ovo",
    paper: "Kloft, Brefeld, Sonnenburg, Laskov, Müller, Zien, NIPS (2009)",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::Search(search::Method::Newton),
    ..SolverInfo::USUAL
};

const LP_BETA: SolverInfo = SolverInfo {
    name: "lp-beta",
    problem: "classes: an SVM for every kernel by itself, then a linear program for their mixture; with ovr weights for every class (LP-B)",
    paper: "Gehler, Nowozin, ICCV (2009)",
    certifies: "nothing for the whole: it minimises no objective; its SVMs reach the tolerance each",
    way: Way::Whole(Mkl::fit_lp_beta),
    ..SolverInfo::USUAL
};

const ALIGN: SolverInfo = SolverInfo {
    name: "align",
    problem: "weights by each kernel's centred alignment with the targets, then one SVM",
    paper: "Cortes, Mohri, Rostamizadeh, ICML (2010)",
    certifies: "relative duality gap of the SVM at these weights",
    way: Way::OneScore(exact::solve),
    weights: Weights::First(fixed_weights::align),
    ..SolverInfo::USUAL
};

const ALIGNF: SolverInfo = SolverInfo {
    name: "alignf",
    problem: "weights of the combination of kernels that is best aligned with the targets, then one SVM",
    paper: "Cortes, Mohri, Rostamizadeh, ICML (2010)",
    certifies: "relative duality gap of the SVM at these weights",
    way: Way::OneScore(exact::solve),
    weights: Weights::First(fixed_weights::alignf),
    ..SolverInfo::USUAL
};

const AVERAGE: SolverInfo = SolverInfo {
    name: "average",
    problem: "the average of the kernels: no weights are learned",
    paper: "Gehler, Nowozin, ICCV (2009)",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::OneScore(exact::solve),
    weights: Weights::First(fixed_weights::average),
    ..SolverInfo::USUAL
};

const PRODUCT: SolverInfo = SolverInfo {
    name: "product",
    problem: "the product of the kernels: no weights are learned",
    paper: "Gehler, Nowozin, ICCV (2009)",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::Whole(Mkl::fit_product),
    ..SolverInfo::USUAL
};

const BEST: SolverInfo = SolverInfo {
    name: "best",
    problem: "the best kernel alone, by cross-validation",
    paper: "-",
    certifies: "relative duality gap of its SVM",
    way: Way::OneScore(exact::solve),
    weights: Weights::First(fixed_weights::best),
    ..SolverInfo::USUAL
};

const SUM: SolverInfo = SolverInfo {
    name: "sum",
    problem: "the unweighted sum of the kernels (lp:inf): no weights are learned",
    paper: "Cortes, Vapnik, Machine Learning 20 (1995)",
    certifies: "relative duality gap, recomputed from coefficients and kernels alone",
    way: Way::OneScore(exact::solve),
    weights: Weights::Sum,
    ..SolverInfo::USUAL
};
