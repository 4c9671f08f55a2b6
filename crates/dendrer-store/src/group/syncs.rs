//! The syncs that a handle was asked for, one at a time.
//!
//! A thread that waits for a sync does it itself, unless another thread is doing it: passing it to another thread
//! takes longer than some disks do. The threads that come meanwhile share the next one.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use super::threads::{Condvar, Mutex, MutexGuard};
use crate::error::StoreError;
use crate::store::{Ticket, WaitForSync};

/// Work that makes durable all that was asked for before it.
pub(crate) type Work = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// One line of syncs.
#[derive(Debug, Default)]
pub(crate) struct Syncs {
    line: Mutex<Line>,
    changed: Condvar,
}

#[derive(Default)]
struct Line {
    /// The newest request: its number and the last segment that it covers.
    asked: (u64, u32),
    /// The newest request that is done.
    done: (u64, u32),
    /// The work of the newest request, if no thread has begun it.
    next: Option<Work>,
    is_running: bool,
    /// Why one failed. The system reports a failure once: a later sync that succeeds would not report it.
    failed: Option<String>,
}

impl WaitForSync for Syncs {
    fn wait_for_sync(&self, ticket: &Ticket) -> Result<(), StoreError> {
        self.wait(ticket.number).map(drop).map_err(|why| StoreError::SyncFailed { why })
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Line { asked, done, failed, .. } = self;
        f.debug_struct("Line").field("asked", asked).field("done", done).field("failed", failed).finish()
    }
}

impl Syncs {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a sync that covers all before it, up to a segment, and returns its number. It is done by the first thread
    /// that waits for it or for a later one.
    pub(crate) fn ask(&self, segment: u32, work: Work) -> u64 {
        let mut line = self.line();
        line.next = Some(work);
        line.asked = (line.asked.0 + 1, segment);
        line.asked.0
    }

    /// Waits until one is done, or does it. Returns the last segment that was synced by then.
    pub(crate) fn wait(&self, number: u64) -> Result<u32, String> {
        let mut line = self.line();
        loop {
            if line.done.0 >= number {
                return Ok(line.done.1);
            }
            if let Some(why) = &line.failed {
                return Err(why.clone());
            }
            let is_free = !line.is_running;
            line = match line.next.take_if(|_| is_free) {
                Some(work) => {
                    let covered = line.asked;
                    self.run(line, covered, work)
                }
                None => self.changed.wait(line).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Whether so many syncs were asked for.
    pub(crate) fn is_asked(&self, number: u64) -> bool {
        self.line().asked.0 >= number
    }

    /// Whether a request is not done.
    pub(crate) fn is_open(&self) -> bool {
        let line = self.line();
        line.done < line.asked
    }

    /// Waits until every request is done. A failure without a waiting thread must not be lost.
    pub(crate) fn wait_for_all(&self) -> Result<(), String> {
        let (asked, _) = self.line().asked;
        self.wait(asked).map(drop)
    }

    fn run<'a>(
        &'a self,
        mut line: MutexGuard<'a, Line>,
        covered: (u64, u32),
        work: impl FnOnce() -> io::Result<()>,
    ) -> MutexGuard<'a, Line> {
        line.is_running = true;
        drop(line);
        // A panic would leave the waiting threads without an answer.
        let result =
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(io::Error::other("a panic")));
        let mut line = self.line();
        line.is_running = false;
        match result {
            Ok(()) => line.done = covered,
            Err(error) => line.failed = Some(error.to_string()),
        }
        self.changed.notify_all();
        line
    }

    /// Runs a sync that covers no request, but is of the same files. If it fails, every request fails: the system may report
    /// nothing to a later sync.
    pub(crate) fn run_beside(&self, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut line = self.line();
        while line.is_running {
            line = self.changed.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        if line.failed.is_none() {
            let done = line.done;
            line = self.run(line, done, work);
        }
        line.failed.clone().map_or(Ok(()), |why| Err(io::Error::other(why)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn those_who_come_while_one_runs_share_the_next() {
        let (syncs, runs) = (Syncs::default(), AtomicUsize::new(0));
        let runs: &'static AtomicUsize = Box::leak(Box::new(runs));
        let (begun, has_begun) = channel();
        let (go_on, goes_on) = channel::<()>();
        let first = syncs.ask(
            7,
            Box::new(move || {
                runs.fetch_add(1, Ordering::SeqCst);
                begun.send(()).unwrap();
                goes_on.recv_timeout(LONG).unwrap();
                Ok(())
            }),
        );
        std::thread::scope(|scope| {
            scope.spawn(|| syncs.wait(first).unwrap());
            has_begun.recv_timeout(LONG).unwrap();
            for _ in 0..5 {
                let number = syncs.ask(
                    7,
                    Box::new(|| {
                        runs.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    }),
                );
                let syncs = &syncs;
                scope.spawn(move || syncs.wait(number).unwrap());
            }
            assert_eq!(runs.load(Ordering::SeqCst), 1, "one at a time");
            go_on.send(()).unwrap();
        });
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        syncs.wait_for_all().unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn after_a_failure_none_succeeds_but_those_before() {
        let syncs = Syncs::default();
        let good = syncs.ask(7, Box::new(|| Ok(())));
        syncs.wait(good).unwrap();
        let bad = syncs.ask(7, Box::new(|| Err(io::Error::other("no answer"))));
        assert_eq!(syncs.wait(bad), Err("no answer".into()));
        let later = syncs.ask(7, Box::new(|| panic!("it would say nothing about the first")));
        assert_eq!(syncs.wait(later), Err("no answer".into()));
        assert_eq!(syncs.wait_for_all(), Err("no answer".into()));
        assert_eq!(syncs.wait(good), Ok(7));
    }

    #[test]
    fn one_beside_the_line_waits_for_its_turn_and_fails_for_all_who_wait() {
        let syncs = Arc::new(Syncs::default());
        let (begun, has_begun) = channel();
        let (go_on, goes_on) = channel::<()>();
        let first = syncs.ask(
            7,
            Box::new(move || {
                begun.send(()).unwrap();
                goes_on.recv_timeout(LONG).unwrap();
                Ok(())
            }),
        );
        std::thread::scope(|scope| {
            scope.spawn(|| syncs.wait(first).unwrap());
            has_begun.recv_timeout(LONG).unwrap();
            let second = syncs.ask(7, Box::new(|| Ok(())));
            let beside = scope.spawn(|| syncs.run_beside(|| Ok(())));
            assert!(!beside.is_finished());
            go_on.send(()).unwrap();
            beside.join().unwrap().unwrap();
            assert_eq!(syncs.line().done.0, first, "it covers nothing");
            syncs.wait(second).unwrap();
        });
        let third = syncs.ask(7, Box::new(|| Ok(())));
        let error = syncs.run_beside(|| Err(io::Error::other("no answer"))).unwrap_err();
        assert_eq!(error.to_string(), "no answer");
        assert_eq!(syncs.wait(third), Err("no answer".into()));
        assert!(syncs.run_beside(|| panic!("it would say nothing about the first")).is_err());
    }

    #[test]
    fn a_panic_leaves_nobody_waiting() {
        let syncs = Syncs::default();
        let number = syncs.ask(7, Box::new(|| panic!("a disk of somebody else")));
        assert_eq!(syncs.wait(number), Err("a panic".into()));
    }

    #[test]
    fn a_request_without_a_waiting_thread_is_done_in_the_end() {
        let syncs = Syncs::default();
        let (done, is_done) = channel();
        syncs.ask(
            7,
            Box::new(move || {
                done.send(()).unwrap();
                Err(io::Error::other("no answer"))
            }),
        );
        assert!(syncs.is_open());
        assert_eq!(syncs.wait_for_all(), Err("no answer".into()));
        is_done.recv_timeout(LONG).unwrap();
    }
}
