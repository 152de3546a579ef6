//! Runs work of the library while Python stays responsive.
//!
//! The work runs on threads of its own, without the GIL. The calling thread waits, and now and then takes the GIL: to let
//! signals be handled (Ctrl-C), and to hand progress to the user's function. So that function always runs on the thread
//! that called, whatever thread the news came from.

use crate::errors::{exception, from_panic};
use multikernel::observe::{Observer, Progress};
use multikernel::problem::relative_gap;
use multikernel::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// How often signals are looked at: well below the second in which Ctrl-C must work.
const TICK: Duration = Duration::from_millis(50);
/// Work that counts up tells of it at most so often.
const BETWEEN_NEWS: Duration = Duration::from_millis(50);

/// News for the calling thread.
enum News {
    Work {
        stage: String,
        done: u64,
        total: u64,
    },
    Round {
        round: usize,
        primal: f64,
        dual: f64,
    },
}

enum Message<T> {
    News(News),
    /// What the work gave, or what it panicked with.
    Done(std::thread::Result<Result<T>>),
}

/// Watches the work: passes news on, and stops it when it was asked to.
pub(crate) struct Reporter<'a> {
    stop: &'a AtomicBool,
    /// None: nobody listens.
    tell: Option<&'a (dyn Fn(News) + Sync)>,
    started: Instant,
    /// Milliseconds after the start at which work last told of itself, plus one.
    last: AtomicU64,
}

impl Reporter<'_> {
    /// Whether it is time for news of work that counts up.
    fn is_time(&self) -> bool {
        let now = self.started.elapsed().as_millis() as u64 + 1;
        let last = self.last.load(Ordering::Relaxed);
        (last == 0 || now - last >= BETWEEN_NEWS.as_millis() as u64)
            && self
                .last
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

impl Observer for Reporter<'_> {
    fn progress(&self, progress: &Progress<'_>) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if let Some(tell) = self.tell {
            match *progress {
                Progress::Work { stage, done, total } if self.is_time() => tell(News::Work {
                    stage: stage.to_owned(),
                    done,
                    total,
                }),
                Progress::Round {
                    round,
                    primal,
                    dual,
                } => tell(News::Round {
                    round,
                    primal,
                    dual,
                }),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}

/// Runs `job` on `threads` threads. `listener` is called with a dictionary of news; if it answers with something true, the
/// job is asked to stop. An exception of the listener, or of a signal's handler, stops the job and is returned.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    threads: usize,
    listener: Option<&Py<PyAny>>,
    job: impl FnOnce(&Reporter<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    // A pool of its own: it is gone when the job is, so a process that forks later is not surprised.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| {
            exception(Error::input(
                "n_jobs",
                format!("{threads} threads could not be started ({e})"),
                "give fewer",
            ))
        })?;
    let stop = AtomicBool::new(false);
    let mut raised: Option<PyErr> = None;
    let ending = py.detach(|| {
        let (sender, receiver) = mpsc::channel::<Message<T>>();
        pool.in_place_scope(|scope| {
            let stop = &stop;
            let is_heard = listener.is_some();
            scope.spawn(move |_| work(stop, is_heard, &sender, job));
            loop {
                let heard = match receiver.recv_timeout(TICK) {
                    Ok(Message::Done(ending)) => return Some(ending),
                    Ok(Message::News(news)) => Some(news),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return None,
                };
                // After the first exception only the end is waited for.
                if raised.is_some() {
                    continue;
                }
                match Python::attach(|py| attend(py, heard, listener)) {
                    Ok(true) => stop.store(true, Ordering::Relaxed),
                    Ok(false) => {}
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        raised = Some(error);
                    }
                }
            }
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    match ending {
        Some(Ok(result)) => result.map_err(exception),
        Some(Err(payload)) => Err(from_panic(&*payload)),
        None => Err(from_panic(&"the thread of the work ended early")),
    }
}

/// The work, on a thread of the pool.
fn work<T: Send>(
    stop: &AtomicBool,
    is_heard: bool,
    sender: &Sender<Message<T>>,
    job: impl FnOnce(&Reporter<'_>) -> Result<T> + Send,
) {
    let tell = |news: News| {
        // Nobody listens any more: then there is nobody to tell.
        let _ = sender.send(Message::News(news));
    };
    let reporter = Reporter {
        stop,
        tell: is_heard.then_some(&tell as &(dyn Fn(News) + Sync)),
        started: Instant::now(),
        last: AtomicU64::new(0),
    };
    let ending = catch_unwind(AssertUnwindSafe(|| job(&reporter)));
    let _ = sender.send(Message::Done(ending));
}

/// Handles signals and passes news on; true: stop.
fn attend(py: Python<'_>, news: Option<News>, listener: Option<&Py<PyAny>>) -> PyResult<bool> {
    py.check_signals()?;
    let (Some(news), Some(listener)) = (news, listener) else {
        return Ok(false);
    };
    let told = PyDict::new(py);
    match news {
        News::Work { stage, done, total } => {
            told.set_item("stage", stage)?;
            told.set_item("done", done)?;
            told.set_item("total", total)?;
        }
        News::Round {
            round,
            primal,
            dual,
        } => {
            told.set_item("stage", "training")?;
            told.set_item("round", round)?;
            told.set_item("primal", primal)?;
            told.set_item("dual", dual)?;
            told.set_item("gap", relative_gap(primal, dual))?;
        }
    }
    listener.call1(py, (told,))?.is_truthy(py)
}
