//! What is to be learned and how: every word is checked here, before anybody looks at data.

use crate::errors::{guarded, to_json};
use crate::views::Matrix;
use multikernel::error::check_positive;
use multikernel::norm::NormSpec;
use multikernel::online::{self, Rule};
use multikernel::train::Mkl;
use pyo3::prelude::*;
use serde_json::json;

/// Settings of a training. What depends on the samples (their weights, those of their classes) is not among them.
#[pyclass(module = "multikernel._native", frozen)]
pub(crate) struct Settings {
    pub(crate) mkl: Mkl,
}

#[pymethods]
impl Settings {
    #[new]
    #[pyo3(signature = (*, task, norm, c, solver, loss, multiclass, bias, tol, max_iter, seed, norm_matrix=None))]
    #[allow(
        clippy::too_many_arguments,
        reason = "each is an option of the estimators"
    )]
    fn new(
        task: &str,
        norm: &str,
        c: f64,
        solver: &str,
        loss: Option<&str>,
        multiclass: &str,
        bias: &str,
        tol: f64,
        max_iter: Option<usize>,
        seed: u64,
        norm_matrix: Option<Matrix<'_>>,
    ) -> PyResult<Self> {
        let mut mkl = guarded(|| {
            Ok(Mkl {
                norm: norm.parse()?,
                c,
                solver: solver.parse()?,
                loss: loss.map(str::parse).transpose()?,
                multiclass: multiclass.parse()?,
                bias: bias.parse()?,
                tolerance: tol,
                ..Mkl::default()
            })
        })?;
        mkl.stochastic.seed = seed;
        if let Some(max_iter) = max_iter {
            match mkl.solver.is_stochastic() {
                true => mkl.stochastic.epochs = max_iter,
                false => mkl.max_rounds = max_iter,
            }
        }
        if let Some(matrix) = norm_matrix {
            mkl.norm = NormSpec::NonIsotropic("given".into());
            mkl.matrix = matrix.doubles();
        }
        guarded(|| mkl.check(Some(task.parse()?)))?;
        Ok(Settings { mkl })
    }

    /// The same settings with another norm and another C.
    fn at(&self, norm: &str, c: f64) -> PyResult<Self> {
        let norm = guarded(|| norm.parse())?;
        Ok(Settings {
            mkl: Mkl {
                norm,
                c,
                ..self.mkl.clone()
            },
        })
    }
}

/// Settings of a learner of a stream.
#[pyclass(module = "multikernel._native", frozen)]
pub(crate) struct OnlineSettings {
    pub(crate) inner: online::StreamSettings,
}

#[pymethods]
impl OnlineSettings {
    #[new]
    #[pyo3(signature = (*, solver, norm, c, budget=None))]
    fn new(solver: &str, norm: &str, c: f64, budget: Option<&str>) -> PyResult<Self> {
        let inner = guarded(|| {
            let rule: Rule = solver.parse()?;
            // A wrong C is wrong for solvers that do not use it, too, as in training.
            check_positive("C", c)?;
            let settings = online::StreamSettings {
                rule: match rule.has("C") {
                    true => rule.with("C", c)?,
                    false => rule,
                },
                norm: norm.parse()?,
                budget: budget.map(str::parse).transpose()?,
                ..online::StreamSettings::default()
            };
            settings.check()?;
            Ok(settings)
        })?;
        Ok(OnlineSettings { inner })
    }
}

/// The library's defaults as this package spells them, as JSON; the tests compare the estimators with them.
#[pyfunction]
pub(crate) fn defaults() -> PyResult<String> {
    let train = Mkl::default();
    let online = online::StreamSettings::default();
    // The words of these two are the names of their variants.
    let multiclass = format!("{:?}", train.multiclass).to_lowercase();
    let bias = format!("{:?}", train.bias).to_lowercase();
    let class_weight = match train.class_weight {
        multikernel::train::ClassWeight::None => None,
        other => Some(format!("{other:?}")),
    };
    let c = guarded(|| match "pa1".parse()? {
        Rule::PassiveAggressive { c } => Ok(c),
        _ => Ok(f64::NAN),
    })?;
    to_json(&json!({
        "train": {
            "norm": train.norm.to_string(),
            "C": train.c,
            "solver": train.solver.to_string(),
            "loss": train.loss.map(|loss| loss.to_string()),
            "multiclass": multiclass,
            "bias": bias,
            "class_weight": class_weight,
            "tol": train.tolerance,
            "max_iter": {"rounds": train.max_rounds, "epochs": train.stochastic.epochs},
            "random_state": train.stochastic.seed,
        },
        "online": {
            "norm": online.norm.to_string(),
            "C": c,
            "solver": online.rule.name(),
            "budget": online.budget.map(|budget| budget.to_string()),
        },
    }))
}
