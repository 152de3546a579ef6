//! [`Mkl`] in one line: what is to be learned, then one setting after another.
//!
//! Settings that are words are given as the program and the Python package spell them. A word that nobody knows does not break
//! the chain: [`Mkl::fit`] refuses it, with the sentence that reading it gave.

use super::{Mkl, Solver};
use crate::data::Task;
use crate::error::{Error, Result};
use std::str::FromStr;

impl Mkl {
    /// Tells classes apart.
    ///
    /// ```
    /// use multikernel::Mkl;
    ///
    /// let mkl = Mkl::classifier().norm("lp:4/3").c(10.0).class_weight("balanced");
    /// assert_eq!(mkl.norm.to_string(), "lp:4/3");
    /// ```
    pub fn classifier() -> Mkl {
        Mkl::of_task(Task::Classify)
    }

    /// Predicts numbers.
    pub fn regressor() -> Mkl {
        Mkl::of_task(Task::Regress)
    }

    /// Tells whether a sample is like those of training, which need no labels.
    pub fn one_class() -> Mkl {
        Mkl::of_task(Task::OneClass)
    }

    fn of_task(task: Task) -> Mkl {
        Mkl {
            task: Some(task),
            ..Mkl::default()
        }
    }

    /// How the kernels share: `lp:4/3`, `lp:1`, `lp:inf`, `block:1.5`, `block:auto`, `mixed`, `elastic:0.1`.
    pub fn norm(self, norm: &str) -> Mkl {
        self.read(norm, |mkl, norm| mkl.norm = norm)
    }

    /// The loss: `hinge`, `squared-hinge`, `logistic`, `multiclass-hinge`, `epsilon:0.1`, `squared`, `huber:1`.
    pub fn loss(self, loss: &str) -> Mkl {
        self.read(loss, |mkl, loss| mkl.loss = Some(loss))
    }

    /// The algorithm, by its name among [`SOLVERS`](super::SOLVERS).
    pub fn solver(self, solver: &str) -> Mkl {
        self.read(solver, |mkl, solver: Solver| mkl.solver = solver)
    }

    /// How several classes are told apart: `joint`, `ovr` or `ovo`.
    pub fn multiclass(self, multiclass: &str) -> Mkl {
        self.read(multiclass, |mkl, multiclass| mkl.multiclass = multiclass)
    }

    /// Whether there is a bias: `auto`, `on` or `off`.
    pub fn bias(self, bias: &str) -> Mkl {
        self.read(bias, |mkl, bias| mkl.bias = bias)
    }

    /// Weights of the classes: `none`, `balanced` or `a=2,b=1`.
    pub fn class_weight(self, weights: &str) -> Mkl {
        self.read(weights, |mkl, weights| mkl.class_weight = weights)
    }

    /// C, the price of an error.
    pub fn c(self, c: f64) -> Mkl {
        Mkl { c, ..self }
    }

    /// The relative duality gap to reach.
    pub fn tolerance(self, tolerance: f64) -> Mkl {
        Mkl { tolerance, ..self }
    }

    /// One weight for each sample.
    pub fn sample_weight(self, weights: impl Into<Vec<f64>>) -> Mkl {
        Mkl {
            sample_weight: Some(weights.into()),
            ..self
        }
    }

    /// Seconds after which the solver stops with the best that it has.
    pub fn max_seconds(self, seconds: f64) -> Mkl {
        Mkl {
            max_seconds: Some(seconds),
            ..self
        }
    }

    /// Takes a word. Of several that cannot be read the first is kept.
    fn read<T: FromStr<Err = Error>>(mut self, word: &str, set: impl FnOnce(&mut Mkl, T)) -> Mkl {
        match word.parse() {
            Ok(value) => set(&mut self, value),
            Err(Error::Input(error)) if self.misread.is_none() => self.misread = Some(error),
            Err(_) => {}
        }
        self
    }

    /// Refuses words that could not be read.
    pub(crate) fn check_words(&self) -> Result<()> {
        match &self.misread {
            Some(error) => Err(Error::Input(error.clone())),
            None => Ok(()),
        }
    }

    /// Refuses targets of another task than it was made for.
    pub(super) fn check_task(&self, task: Task) -> Result<()> {
        match self.task {
            Some(own) if own != task => Err(Error::input(
                "targets",
                format!("they are those of the task {task}, but this learns to {own}"),
                "give classes to a classifier, numbers to a regressor",
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Targets, View, Views};
    use crate::gram::{KernelSet, Options};
    use crate::kernel::KernelSpec;
    use crate::train::{Bias, ClassWeight, Multiclass};

    fn set() -> KernelSet {
        let view = View::dense("x", 1, [0.0, 0.1, 0.9, 1.0]).unwrap();
        let views = Views::new(vec![view]).unwrap();
        let specs = KernelSpec::parse("rbf").unwrap();
        KernelSet::new(&specs, &views, &Options::default(), &()).unwrap()
    }

    #[test]
    fn settings_are_those_of_the_words() {
        let mkl = Mkl::classifier()
            .norm("block:1.5")
            .loss("squared-hinge")
            .solver("wrapper")
            .multiclass("ovo")
            .bias("off")
            .class_weight("balanced")
            .c(2.0)
            .tolerance(1e-4)
            .max_seconds(5.0)
            .sample_weight([1.0, 2.0]);
        mkl.check_words().unwrap();
        assert_eq!(mkl.norm.to_string(), "block:1.5");
        assert_eq!(mkl.loss.unwrap().to_string(), "squared-hinge");
        assert_eq!(
            (mkl.solver, mkl.multiclass),
            (Solver::Wrapper, Multiclass::OneVsOne)
        );
        assert_eq!(
            (mkl.bias, mkl.class_weight),
            (Bias::Off, ClassWeight::Balanced)
        );
        assert_eq!(
            (mkl.c, mkl.tolerance, mkl.max_seconds),
            (2.0, 1e-4, Some(5.0))
        );
        assert_eq!(mkl.sample_weight.unwrap(), [1.0, 2.0]);
    }

    #[test]
    fn the_first_word_that_nobody_knows_is_refused_by_fit() {
        let targets = Targets::classes(["a", "a", "b", "b"]).unwrap();
        let mkl = Mkl::classifier().solver("fast").bias("maybe").c(3.0);
        let error = mkl.fit(&set(), &targets, &()).unwrap_err().to_string();
        assert!(error.starts_with("solver: 'fast' is not known"), "{error}");
    }

    #[test]
    fn each_task_wants_its_targets() {
        let classes = Targets::classes(["a", "a", "b", "b"]).unwrap();
        let numbers = Targets::numbers([0.0, 0.1, 0.9, 1.0]).unwrap();
        let set = set();
        let error = Mkl::regressor().fit(&set, &classes, &()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "targets: they are those of the task classify, but this learns to regress; give classes to a classifier, numbers to a regressor"
        );
        assert!(Mkl::classifier().fit(&set, &numbers, &()).is_err());
        assert!(Mkl::regressor().fit(&set, &numbers, &()).is_ok());
        assert!(Mkl::classifier().fit(&set, &classes, &()).is_ok());
        // It learns from all samples, whatever they are called.
        let fitted = Mkl::one_class().fit(&set, &classes, &()).unwrap();
        assert!(fitted.model.classes().is_empty());
    }
}
