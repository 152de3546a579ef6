//! From targets to problems, with the checks at the door.

use super::{Bias, ClassWeight, Mkl, Multiclass, Setting, solvers};
use crate::data::{Targets, Task, check_count};
use crate::error::{Error, Result};
use crate::gram::Gram;
use crate::loss::{Loss, LossSpec};
use crate::model::{Scheme, pairs};
use crate::problem::{Problem, best_bias, risk};

/// What is to be solved.
pub(super) enum Work {
    /// Problems of one score per sample, one after another.
    Each(Vec<ScalarProblem>),
    /// One problem with a score for every class.
    Joint(JointProblem),
}

/// The joint problem of several classes.
pub(super) struct JointProblem {
    pub(super) classes: Vec<u32>,
    pub(super) n_classes: usize,
    pub(super) costs: Vec<f64>,
}

/// One problem of one score per sample.
pub(super) struct ScalarProblem {
    /// What it separates; empty if it is the only one.
    pub(super) name: String,
    /// Its samples; none: all.
    pub(super) samples: Option<Vec<usize>>,
    pub(super) targets: Vec<f64>,
    pub(super) costs: Vec<f64>,
}

impl ScalarProblem {
    /// The kernels of its samples.
    pub(super) fn gram(&self, gram: &Gram) -> Gram {
        match &self.samples {
            None => gram.clone(),
            Some(samples) => gram.subset(samples),
        }
    }

    /// As the certificate sees it.
    pub(super) fn problem(&self, loss: Loss, bias: bool) -> Problem<'_> {
        Problem {
            loss,
            targets: &self.targets,
            costs: &self.costs,
            bias,
        }
    }

    /// The objective of the model that gives every sample the same score.
    pub(super) fn null_objective(&self, loss: Loss, bias: bool) -> f64 {
        let (problem, scores) = (self.problem(loss, bias), vec![0.0; self.targets.len()]);
        risk(&problem, &scores, best_bias(&problem, &scores))
    }

    /// Puts its coefficients into column `k` of the coefficients of all samples.
    pub(super) fn scatter(&self, own: &[f64], all: &mut [f64], k: usize, outputs: usize) {
        for (i, &a) in own.iter().enumerate() {
            let sample = self.samples.as_ref().map_or(i, |samples| samples[i]);
            all[sample * outputs + k] = a;
        }
    }
}

/// What targets ask for.
pub(super) struct Plan {
    pub(super) task: Task,
    pub(super) scheme: Scheme,
    pub(super) classes: Vec<String>,
    pub(super) work: Work,
}

impl Plan {
    /// One problem of all samples, without classes.
    fn without_classes(task: Task, targets: Vec<f64>, costs: Vec<f64>) -> Plan {
        Plan {
            task,
            scheme: Scheme::Single,
            classes: Vec::new(),
            work: Work::Each(vec![ScalarProblem {
                name: String::new(),
                samples: None,
                targets,
                costs,
            }]),
        }
    }
}

impl Mkl {
    /// What is to be solved for n samples.
    pub(super) fn plan(
        &self,
        n: usize,
        targets: &Targets,
        notes: &mut Vec<String>,
    ) -> Result<Plan> {
        if !matches!(targets, Targets::Classes { .. }) {
            self.check_no_classes()?;
        }
        match targets {
            Targets::None => Ok(Plan::without_classes(
                Task::OneClass,
                vec![0.0; n],
                self.costs(n, |_| 1.0),
            )),
            Targets::Real(values) => {
                check_count(values.len(), n)?;
                Targets::numbers(values.iter().copied())?;
                let costs = self.costs(n, |_| 1.0);
                Ok(Plan::without_classes(Task::Regress, values.clone(), costs))
            }
            Targets::Classes { names, index } => {
                check_count(index.len(), n)?;
                self.plan_classes(names, index, notes)
            }
        }
    }

    fn plan_classes(
        &self,
        names: &[String],
        index: &[u32],
        notes: &mut Vec<String>,
    ) -> Result<Plan> {
        let counts = check_classes(names, index)?;
        let weights = self.class_weights(names, &counts)?;
        let costs = self.costs(index.len(), |i| weights[index[i] as usize]);
        for (c, name) in names.iter().enumerate() {
            let mut own = index.iter().zip(&costs).filter(|(k, _)| **k as usize == c);
            if own.all(|(_, cost)| *cost == 0.0) {
                return Err(Error::input(
                    format!("class '{name}'"),
                    "all its samples have weight 0",
                    "give some of them a positive weight, or remove the class",
                ));
            }
        }
        let scheme = self.scheme_for(names.len(), notes)?;
        let work = match scheme {
            Scheme::Joint => Work::Joint(JointProblem {
                classes: index.to_vec(),
                n_classes: names.len(),
                costs,
            }),
            scheme => Work::Each(scalar_problems(scheme, names, index, costs)),
        };
        Ok(Plan {
            task: Task::Classify,
            scheme,
            classes: names.to_vec(),
            work,
        })
    }

    /// What every sample costs: C times its weight, times that of its class.
    fn costs(&self, n: usize, of_class: impl Fn(usize) -> f64) -> Vec<f64> {
        let own = |i: usize| self.c * self.sample_weight.as_ref().map_or(1.0, |w| w[i]);
        (0..n).map(|i| own(i) * of_class(i)).collect()
    }

    /// Refuses what needs classes.
    fn check_no_classes(&self) -> Result<()> {
        if self.solver.info().joint == solvers::Joint::Only {
            return Err(Error::input(
                "solver",
                format!("{} tells classes apart, and there are none", self.solver),
                "give the solver silp, or labels of classes",
            ));
        }
        if self.class_weight != ClassWeight::None {
            return Err(Error::input(
                "class-weight",
                "there are no classes to weigh",
                "leave it out, or take the task classify",
            ));
        }
        Ok(())
    }

    /// How so many classes are told apart.
    pub(super) fn scheme_for(&self, classes: usize, notes: &mut Vec<String>) -> Result<Scheme> {
        // Why the joint problem cannot be, if it cannot.
        let joint = self.solver.info().joint;
        let only_joint = joint == solvers::Joint::Only;
        let obstacle = match (self.loss, joint, self.tikhonov) {
            (Some(LossSpec::Scalar(loss)), ..) => Some(format!("the loss {loss} has one score")),
            (_, solvers::Joint::Never, _) => Some(format!("solver {} has one score", self.solver)),
            (_, _, Some(_)) => Some("the Tikhonov form has one score".into()),
            _ => None,
        };
        let asked = self.loss == Some(LossSpec::MulticlassHinge) || only_joint;
        match (self.multiclass, obstacle) {
            (Multiclass::OneVsRest | Multiclass::OneVsOne, _) if only_joint => Err(Error::input(
                "solver",
                format!("{} solves the joint problem of all classes", self.solver),
                "leave out ovr and ovo, or give the solver silp",
            )),
            (Multiclass::Joint, Some(obstacle)) => Err(Error::input(
                "multiclass",
                format!("{obstacle} per problem, the joint problem has one for every class"),
                "give ovr or ovo, or leave loss, solver and tikhonov at what is usual",
            )),
            (Multiclass::Auto, Some(obstacle)) if asked => Err(Error::input(
                "loss",
                format!("multiclass-hinge has a score for every class, {obstacle} per problem"),
                "leave out one of the two",
            )),
            (Multiclass::OneVsRest | Multiclass::OneVsOne, _) if asked => Err(Error::input(
                "loss",
                "multiclass-hinge belongs to the joint problem of all classes",
                format!(
                    "give {} with ovr or ovo",
                    LossSpec::that_suit(Task::Classify)
                ),
            )),
            (Multiclass::Joint, None) => Ok(Scheme::Joint),
            (Multiclass::Auto, None) if asked => Ok(Scheme::Joint),
            _ if classes == 2 => Ok(Scheme::Single),
            (Multiclass::Auto, None) => {
                notes.push(format!(
                    "{classes} classes: one problem for all of them, with one set of kernel weights (joint)"
                ));
                Ok(Scheme::Joint)
            }
            (Multiclass::Auto, Some(obstacle)) => {
                notes.push(format!(
                    "{classes} classes: one problem for each class against the others (ovr), since {obstacle} per problem"
                ));
                Ok(Scheme::OneVsRest)
            }
            (Multiclass::OneVsRest, _) => Ok(Scheme::OneVsRest),
            (Multiclass::OneVsOne, _) => Ok(Scheme::OneVsOne),
        }
    }

    /// One weight per class.
    fn class_weights(&self, names: &[String], counts: &[usize]) -> Result<Vec<f64>> {
        match &self.class_weight {
            ClassWeight::None => Ok(vec![1.0; names.len()]),
            ClassWeight::Balanced => {
                let n: usize = counts.iter().sum();
                Ok(counts
                    .iter()
                    .map(|&count| n as f64 / (names.len() * count) as f64)
                    .collect())
            }
            ClassWeight::Given(given) => {
                for name in given.keys() {
                    if !names.contains(name) {
                        return Err(Error::input(
                            "class-weight",
                            format!("there is no class '{name}'"),
                            format!("the classes are {}", some_names(names)),
                        ));
                    }
                }
                Ok(names
                    .iter()
                    .map(|name| given.get(name).copied().unwrap_or(1.0))
                    .collect())
            }
        }
    }

    /// The loss, if it fits the task.
    pub(super) fn loss_for(&self, task: Task) -> Result<Loss> {
        let usual = match task {
            Task::Classify => Loss::Hinge,
            Task::Regress => Loss::Epsilon(0.1),
            Task::OneClass => Loss::OneClass,
        };
        let Some(spec) = self.loss else {
            return Ok(usual);
        };
        match spec.scalar() {
            Some(loss) if loss.info().tasks.contains(&task) => Ok(loss),
            _ => Err(Error::input(
                "loss",
                format!("{spec} does not fit the task {task}"),
                match task {
                    Task::OneClass => "one-class has its own loss: leave it out".to_owned(),
                    task => format!("give {}", LossSpec::that_suit(task)),
                },
            )),
        }
    }

    pub(super) fn bias_for(&self, task: Task, notes: &mut Vec<String>) -> Result<bool> {
        match (self.bias, task) {
            (Bias::On, Task::OneClass) => Err(Error::input(
                "bias",
                "with a bias one-class accepts everything, whatever the data",
                "give auto or off",
            )),
            (Bias::Auto, Task::Classify | Task::Regress) if !self.solver.takes(Setting::Bias) => {
                notes.push(format!("no bias: solver {} has none", self.solver));
                Ok(false)
            }
            (Bias::Off, _) | (Bias::Auto, Task::OneClass) => Ok(false),
            (Bias::On, _) => self.solver.check(Setting::Bias).map(|()| true),
            (Bias::Auto, _) => Ok(true),
        }
    }
}

/// The problems of one score per sample.
fn scalar_problems(
    scheme: Scheme,
    names: &[String],
    index: &[u32],
    costs: Vec<f64>,
) -> Vec<ScalarProblem> {
    let sign = |positive: bool| if positive { 1.0 } else { -1.0 };
    let against_others = |c: usize, name: String| ScalarProblem {
        name,
        samples: None,
        targets: index.iter().map(|&k| sign(k as usize == c)).collect(),
        costs: costs.clone(),
    };
    match scheme {
        Scheme::Single | Scheme::Joint => vec![against_others(1, String::new())],
        Scheme::OneVsRest => names
            .iter()
            .enumerate()
            .map(|(c, name)| against_others(c, format!("'{name}' against the others")))
            .collect(),
        Scheme::OneVsOne => pairs(names.len())
            .map(|(a, b)| {
                let samples: Vec<usize> = (0..index.len())
                    .filter(|&i| index[i] as usize == a || index[i] as usize == b)
                    .collect();
                ScalarProblem {
                    name: format!("'{}' against '{}'", names[b], names[a]),
                    targets: samples
                        .iter()
                        .map(|&i| sign(index[i] as usize == b))
                        .collect(),
                    costs: samples.iter().map(|&i| costs[i]).collect(),
                    samples: Some(samples),
                }
            })
            .collect(),
    }
}

/// Samples per class.
fn check_classes(names: &[String], index: &[u32]) -> Result<Vec<usize>> {
    if names.len() < 2 {
        return Err(Error::input(
            "labels",
            format!("there is only one class, {}", some_names(names)),
            "give samples of at least two classes, or take the task one-class",
        ));
    }
    let mut counts = vec![0; names.len()];
    for (i, &c) in index.iter().enumerate() {
        match counts.get_mut(c as usize) {
            Some(count) => *count += 1,
            None => {
                return Err(Error::input(
                    format!("labels row {}", i + 1),
                    format!(
                        "the class has number {c} but there are {} classes",
                        names.len()
                    ),
                    "give a name for every class",
                ));
            }
        }
    }
    match counts.iter().position(|&count| count == 0) {
        None => Ok(counts),
        Some(c) => Err(Error::input(
            format!("class '{}'", names[c]),
            "no training sample belongs to it",
            "give some, or leave the class out",
        )),
    }
}

/// Names in quotes, not more than a line of them.
fn some_names(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("'{n}'")).collect();
    if names.len() > SHOWN {
        shown.push("…".into());
    }
    shown.join(", ")
}
