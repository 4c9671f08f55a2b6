//! How far long work has come, on stderr: after half a second, with count, rate and remaining time.
//!
//! Work counts into one number; a thread looks at it. The work never waits for that thread, and its answer does
//! not depend on whether anybody watches.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dendrer::watch::Watch;
use dendrer_object::Value;
use dendrer_view::progress::ProgressDocument;
use dendrer_view::{quote, thousands};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::global::Global;
use crate::global::ProgressChoice;
use crate::out::accessible;

/// What is quicker than this is not spoken of.
const PATIENCE: Duration = Duration::from_millis(500);

/// Work under way.
pub(crate) struct Progress {
    done: Arc<AtomicU64>,
    watcher: Option<(Sender<()>, JoinHandle<()>)>,
}

/// What is shown while one waits.
enum Show {
    Line(ProgressBar),
    Plain(Duration),
    Json,
}

struct Work {
    what: &'static str,
    unit: &'static str,
    total: Option<u64>,
}

impl Progress {
    /// Begins to watch. `what` is the verb, `unit` what is counted, `total` how much there is, if that is known.
    pub(crate) fn start(
        global: &Global,
        what: &'static str,
        unit: &'static str,
        total: Option<u64>,
    ) -> Progress {
        let done = Arc::new(AtomicU64::new(0));
        let work = Work { what, unit, total };
        let watcher = show(global).and_then(|show| {
            let (stop, stopped) = channel();
            let done = Arc::clone(&done);
            // Nobody is told how far it is where no thread is to be had; the work goes on.
            let thread = std::thread::Builder::new().spawn(move || watch(&show, &work, &done, &stopped));
            thread.ok().map(|thread| (stop, thread))
        });
        Progress { done, watcher }
    }

    /// The number that work counts into.
    pub(crate) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.done)
    }

    /// A watch that counts into the same number.
    pub(crate) fn watch(&self) -> Watch {
        Watch::counting(self.counter())
    }

    /// Says how much is done.
    pub(crate) fn set(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.watcher.take() {
            drop(stop);
            // A watcher that broke has nothing to say about the work.
            let _ = thread.join();
        }
    }
}

fn show(global: &Global) -> Option<Show> {
    match global.progress {
        ProgressChoice::Never => None,
        ProgressChoice::Json => Some(Show::Json),
        _ if global.quiet => None,
        // Whoever asks for no repaint gets a sign of life twice a minute.
        ProgressChoice::Plain | ProgressChoice::Auto if accessible() => {
            Some(Show::Plain(Duration::from_secs(30)))
        }
        ProgressChoice::Plain => Some(Show::Plain(Duration::from_secs(5))),
        ProgressChoice::Auto => {
            let plain = std::env::var("TERM").as_deref() == Ok("dumb");
            (io::stderr().is_terminal() && !plain).then(|| Show::Line(line()))
        }
    }
}

fn line() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // The words are ours, the same as in plain lines; drawing them over and cutting them is not.
    if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
        bar.set_style(style);
    }
    bar
}

fn watch(show: &Show, work: &Work, done: &AtomicU64, stopped: &std::sync::mpsc::Receiver<()>) {
    let began = Instant::now();
    let mut wait = PATIENCE;
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
        let done = done.load(Ordering::Relaxed);
        let done = work.total.map_or(done, |total| done.min(total));
        wait = match show {
            Show::Line(bar) => {
                bar.set_message(plain(work, done, began.elapsed()));
                Duration::from_millis(200)
            }
            Show::Plain(every) => {
                let _ = writeln!(io::stderr(), "{}", plain(work, done, began.elapsed()));
                *every
            }
            Show::Json => {
                let _ = writeln!(io::stderr(), "{}", quote::json(&json(work, done, began.elapsed())));
                Duration::from_secs(1)
            }
        };
    }
    if let Show::Line(bar) = show {
        bar.finish_and_clear();
    }
}

/// Units a second, and the seconds that are left at that rate, if that can be said.
fn rate(work: &Work, done: u64, elapsed: Duration) -> (f64, Option<u64>) {
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    let left = work.total.filter(|_| rate > 0.0).map(|total| (total - done) as f64 / rate);
    (rate, left.map(|seconds| seconds.ceil() as u64))
}

fn plain(work: &Work, done: u64, elapsed: Duration) -> String {
    let (rate, left) = rate(work, done, elapsed);
    if done == 0 {
        // Nothing was counted yet, or nothing can be: then at least what is going on.
        return format!("{}: {} ...", work.what, work.unit);
    }
    let total = work.total.map(|total| format!(" of {}", thousands(total))).unwrap_or_default();
    let left = left.map(|seconds| format!(", about {seconds} s left")).unwrap_or_default();
    format!(
        "{}: {}{total} {}, {} a second{left}",
        work.what,
        thousands(done),
        work.unit,
        thousands(rate as u64)
    )
}

fn json(work: &Work, done: u64, elapsed: Duration) -> Value {
    let (rate, left) = rate(work, done, elapsed);
    ProgressDocument::of(work.what, work.unit, done, work.total, rate as u64, left).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_rate_and_remaining_time_are_said() {
        let work = |total| Work { what: "verify", unit: "records", total };
        let ten = Duration::from_secs(10);
        assert_eq!(
            plain(&work(Some(4_000)), 1_000, ten),
            "verify: 1,000 of 4,000 records, 100 a second, about 30 s left"
        );
        assert_eq!(plain(&work(None), 1_000, ten), "verify: 1,000 records, 100 a second");
        assert_eq!(
            quote::json(&json(&work(Some(4_000)), 1_000, ten)),
            r#"{"done":1000,"rate":100,"remaining_s":30,"schema":"dendrer.progress/1","total":4000,"unit":"records","what":"verify"}"#
        );
        assert_eq!(plain(&work(None), 0, ten), "verify: records ...");
        // Nothing done yet: no rate, so nobody can say how long it takes.
        assert_eq!(json(&work(Some(5)), 0, ten).get("remaining_s"), Some(&Value::Null));
    }
}
