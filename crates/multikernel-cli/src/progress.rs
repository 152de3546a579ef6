//! Progress bars on a terminal, and Ctrl-C.

use indicatif::{ProgressBar, ProgressStyle};
use multikernel::certificate::relative_gap;
use multikernel::observe::{Observer, Progress};
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

/// Shows long work on stderr if that is a terminal, and stops it when the user asks to.
pub(crate) struct Watcher {
    stop: Arc<AtomicBool>,
    bars: bool,
    stage: Mutex<Stage>,
}

/// What is being shown.
struct Stage {
    name: String,
    since: Instant,
    bar: Option<ProgressBar>,
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
            }),
        })
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
        if let Some(bar) = &stage.bar {
            bar.set_message(format!(
                "{}: round {round}, relative gap {gap:.1e}",
                stage.name
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
            if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {percent}% {eta}") {
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

impl Stage {
    fn clear(&mut self) {
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
