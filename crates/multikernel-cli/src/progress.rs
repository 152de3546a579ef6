//! Progress bars on a terminal, and Ctrl-C.

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use multikernel::observe::{Observer, Progress};
use multikernel::problem::relative_gap;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(300);
/// The stage of rounds that belong to no other.
const TRAINING: &str = "training";
/// A line without an end in sight shows that it is alive so often.
const TICK: Duration = Duration::from_millis(200);

/// A gap that would need longer does not fall.
const MOST_LEFT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Shows long work on stderr if that is a terminal, and stops it when the user asks to.
pub(crate) struct Watcher {
    stop: Arc<AtomicBool>,
    bars: bool,
    stage: Mutex<Stage>,
    /// The relative gap that solvers are to reach.
    aim: Mutex<f64>,
}

/// What is being shown.
struct Stage {
    name: String,
    since: Instant,
    bar: Option<ProgressBar>,
    /// Time and relative gap of the first round, from which the time left is told.
    first: Option<(Instant, f64)>,
}

impl Watcher {
    /// Listens to Ctrl-C from now on. The first asks for a clean stop, the second ends the process at once.
    pub(crate) fn new(quiet: bool) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, 128 + signal, stop.clone())?;
            flag::register(signal, stop.clone())?;
        }
        Ok(Watcher {
            stop,
            bars: !quiet && io::stderr().is_terminal(),
            stage: Mutex::new(Stage {
                name: String::new(),
                since: Instant::now(),
                bar: None,
                first: None,
            }),
            aim: Mutex::new(0.0),
        })
    }

    /// Says which relative gap solvers are to reach, so that the time left can be told.
    pub(crate) fn aim(&self, gap: f64) {
        *self.aim.lock().unwrap_or_else(PoisonError::into_inner) = gap;
    }

    /// The user asked to stop.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Goes on after a stop: the next Ctrl-C asks again.
    pub(crate) fn go_on(&self) {
        self.stop.store(false, Ordering::Relaxed);
    }

    /// Takes away what is being shown, so that text does not stand behind it.
    pub(crate) fn clear(&self) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        stage.clear();
        stage.name.clear();
    }

    /// A round of a solver: part of the stage that is shown, or a line of its own.
    fn round(&self, round: usize, gap: f64) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if stage.name.is_empty() {
            stage.name = TRAINING.into();
            stage.since = Instant::now();
        }
        // Rounds of a stage that knows its end belong to its bar.
        let own_line = stage.name == TRAINING && stage.since.elapsed() >= PATIENCE;
        if stage.bar.is_none() && own_line {
            let line = ProgressBar::new_spinner();
            line.enable_steady_tick(TICK);
            stage.bar = Some(line);
        }
        let now = Instant::now();
        // A gap that grew is a problem that began.
        let first = match stage.first {
            Some(first) if gap <= first.1 => first,
            _ => *stage.first.insert((now, gap)),
        };
        let aim = *self.aim.lock().unwrap_or_else(PoisonError::into_inner);
        let left = match left(now - first.0, first.1, gap, aim) {
            Some(left) => format!(", about {} left", HumanDuration(left)),
            None => String::new(),
        };
        if let Some(bar) = &stage.bar {
            bar.set_message(format!(
                "{}: round {round}, relative gap {gap:.1e}, {}{left}",
                stage.name,
                HumanDuration(stage.since.elapsed())
            ));
        }
    }

    fn show(&self, name: &str, done: u64, total: u64) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if stage.name != name {
            stage.clear();
            stage.name = name.to_owned();
            stage.since = Instant::now();
        }
        if stage.bar.is_none() && done < total && stage.since.elapsed() >= PATIENCE {
            let bar = ProgressBar::new(total).with_message(name.to_owned());
            if let Ok(style) =
                ProgressStyle::with_template("{msg} [{bar:30}] {percent}%, {eta} left")
            {
                bar.set_style(style);
            }
            stage.bar = Some(bar);
        }
        if let Some(bar) = &stage.bar {
            bar.set_length(total);
            // Threads report in any order; a bar only goes forward.
            bar.set_position(done.max(bar.position()));
        }
        if done >= total {
            stage.clear();
            stage.name.clear();
        }
    }
}

/// The time until a gap is reached that fell from `first` to `gap` in `passed`, if it goes on falling by the same factor.
fn left(passed: Duration, first: f64, gap: f64, aim: f64) -> Option<Duration> {
    if !(aim > 0.0 && gap > aim && first > gap && first.is_finite()) {
        return None;
    }
    let seconds = passed.as_secs_f64() * (gap / aim).ln() / (first / gap).ln();
    let left = Duration::try_from_secs_f64(seconds).ok()?;
    (left < MOST_LEFT).then_some(left)
}

impl Stage {
    fn clear(&mut self) {
        self.first = None;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Watcher {
    fn progress(&self, progress: &Progress<'_>) -> ControlFlow<()> {
        if self.stopped() {
            return ControlFlow::Break(());
        }
        if self.bars {
            match *progress {
                Progress::Work { stage, done, total } => self.show(stage, done, total),
                Progress::Round {
                    round,
                    primal,
                    dual,
                } => self.round(round, relative_gap(primal, dual)),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}

/// An error must not stand behind a half-drawn bar.
impl Drop for Watcher {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_a_gap_that_goes_on_falling() {
        let second = Duration::from_secs(1);
        // A hundredth in a second: to a ten-thousandth it takes one more.
        let told = left(second, 1.0, 1e-2, 1e-4).unwrap();
        assert!((told.as_secs_f64() - 1.0).abs() < 1e-9);
        for (first, gap, aim) in [
            (1.0, 1.0, 1e-3),
            (1.0, 1e-4, 1e-3),
            (1.0, 0.5, 0.0),
            (f64::INFINITY, 1.0, 1e-3),
            (f64::NAN, f64::NAN, 1e-3),
            (1.0, 1.0 - 1e-16, 1e-300),
        ] {
            assert_eq!(left(second, first, gap, aim), None, "{first} {gap} {aim}");
        }
    }
}
