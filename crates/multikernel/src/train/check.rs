//! What is wrong with settings before there are samples.

use super::solvers::Way;
use super::{ClassWeight, Mkl, Multiclass, Setting, Solver};
use crate::data::Task;
use crate::error::{Error, Result, check_positive};
use crate::norm::{Norm, NormSpec};
use crate::solve::stochastic::check_settings;

impl Mkl {
    /// Refuses settings that no samples could make right, and, where the task is known, those that do not fit it. Training
    /// refuses them too; who has yet to read samples asks here first.
    ///
    /// # Errors
    /// The first thing that is wrong, in a sentence.
    pub fn check(&self, task: Option<Task>) -> Result<()> {
        self.check_words()?;
        self.check_values()?;
        self.check_norm()?;
        let Some(task) = task else { return Ok(()) };
        if self.class_weight != ClassWeight::None && task != Task::Classify {
            return Err(Error::input(
                "class-weight",
                "there are no classes to weigh",
                "leave it out, or take the task classify",
            ));
        }
        if self.multiclass != Multiclass::Auto && task != Task::Classify {
            return Err(Error::input(
                "multiclass",
                format!("the task {task} has no classes"),
                "leave it out, or take the task classify",
            ));
        }
        // These have no loss, no bias or no scheme of their own, and say what they do not take.
        if let Way::Whole(_) = self.solver.info().way {
            return Ok(());
        }
        let mut notes = Vec::new();
        match task {
            // For three classes, where every scheme may be asked for.
            Task::Classify => self.scheme_for(3, &mut notes).map(|_| ()),
            Task::Regress | Task::OneClass => {
                self.loss_for(task)?;
                self.bias_for(task, &mut notes).map(|_| ())
            }
        }
    }

    /// Values that no problem can have.
    pub(super) fn check_values(&self) -> Result<()> {
        check_positive("C", self.c)?;
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            return Err(Error::input(
                "tol",
                format!("the relative gap asked for is {}", self.tolerance),
                "give a positive finite number such as 1e-3",
            ));
        }
        if self.tikhonov.is_some() {
            self.solver.check(Setting::Tikhonov)?;
        }
        if self.start_epochs > 0 {
            self.solver.check(Setting::StartEpochs)?;
        }
        if let Some(seconds) = self.max_seconds
            && (seconds.is_nan() || seconds < 0.0)
        {
            return Err(Error::input(
                "max-seconds",
                format!("it is {seconds}"),
                "give a number of seconds that is not negative",
            ));
        }
        if self.max_rounds == 0 {
            return Err(Error::input(
                "the largest number of rounds",
                "it is 0",
                "give at least 1",
            ));
        }
        if let ClassWeight::Given(weights) = &self.class_weight
            && let Some((name, weight)) =
                weights.iter().find(|(_, w)| !(**w >= 0.0 && w.is_finite()))
        {
            return Err(Error::input(
                "class-weight",
                format!("the weight of class '{name}' is {weight}"),
                "give finite numbers that are not negative",
            ));
        }
        Ok(())
    }

    /// A norm that the solver does not solve, whatever the kernels.
    fn check_norm(&self) -> Result<()> {
        let norm = match &self.norm {
            // Its exponent depends on the number of kernels, and the usual norm gives way to that of the solver.
            NormSpec::BlockAuto => return Ok(()),
            usual if *usual == NormSpec::default() => return Ok(()),
            // One kernel stands for all.
            asked => Norm::new(asked.clone(), 1, &[0], &[1.0])?,
        };
        match self.solver.info().way {
            // PA-I keeps the weights of the unweighted sum, whatever the norm.
            Way::Steps(_) if self.solver != Solver::Pa1 => {
                check_settings(&norm, &self.stochastic).map(|_| ())
            }
            Way::Search(method) => self.check_method(method, &norm),
            _ => Ok(()),
        }
    }
}
