//! Pure work on a sequence, done by several processors and handed over in order.
//!
//! The calling thread reads, and gets the results; only the work between is done on other threads, or on the calling
//! thread if no other has begun it. The number of threads changes no result. Never runs ahead of the receiver of the
//! results by more than a few jobs, and keeps no thread for later.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Scope};

/// More helpers than this would wait for the one thread that reads.
const HELPERS_MAX: usize = 3;

/// So many jobs are done before any help is called: most questions are answered by then.
const ALONE: usize = 2;

/// A job, and where its result goes.
type Sent<J, R> = (J, SyncSender<R>);

/// Jobs that no thread has begun.
struct Queue<J, R> {
    jobs: Mutex<(VecDeque<Sent<J, R>>, bool)>,
    changed: Condvar,
}

impl<J, R> Queue<J, R> {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Sent<J, R>>, bool)> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does jobs until there will be no more.
    fn help(&self, work: &(dyn Fn(J) -> R + Sync)) {
        let mut jobs = self.lock();
        loop {
            if jobs.1 {
                return;
            }
            match jobs.0.pop_front() {
                Some((job, to)) => {
                    drop(jobs);
                    // The receiver may be gone.
                    let _ = to.send(work(job));
                    jobs = self.lock();
                }
                None => jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

enum Waiting<R> {
    Done(R),
    Sent(Receiver<R>),
}

/// Jobs on their way, oldest first.
pub(crate) struct Line<'scope, 'env, J, R> {
    scope: &'scope Scope<'scope, 'env>,
    queue: &'env Queue<J, R>,
    work: &'env (dyn Fn(J) -> R + Sync),
    waiting: VecDeque<Waiting<R>>,
    given: usize,
    /// How many threads help; `None` before it was tried to have any.
    helpers: Option<usize>,
}

/// Hands `f` a line on which `work` is done, and returns what `f` does.
pub(crate) fn in_order<J: Send, R: Send, T>(
    work: &(dyn Fn(J) -> R + Sync),
    f: impl for<'scope, 'env> FnOnce(&mut Line<'scope, 'env, J, R>) -> T,
) -> T {
    let queue = Queue { jobs: Mutex::new((VecDeque::new(), false)), changed: Condvar::new() };
    thread::scope(|scope| {
        let waiting = VecDeque::new();
        f(&mut Line { scope, queue: &queue, work, waiting, given: 0, helpers: None })
    })
}

impl<J: Send, R: Send> Line<'_, '_, J, R> {
    /// Puts a job at the end of the line.
    pub(crate) fn push(&mut self, job: J) {
        self.given += 1;
        let waiting = match self.given > ALONE && self.helpers() > 0 {
            false => Waiting::Done((self.work)(job)),
            true => {
                let (to, from) = sync_channel(1);
                self.queue.lock().0.push_back((job, to));
                self.queue.changed.notify_one();
                Waiting::Sent(from)
            }
        };
        self.waiting.push_back(waiting);
    }

    /// Takes the oldest result, if as many jobs are on their way as there should be; else there is time for another job.
    pub(crate) fn take(&mut self) -> Option<R> {
        let room = self.helpers.map_or(0, |helpers| 2 * helpers);
        if self.waiting.len() > room { self.take_any() } else { None }
    }

    /// Takes the oldest result, if there is any job on its way.
    pub(crate) fn take_any(&mut self) -> Option<R> {
        let from = match self.waiting.pop_front()? {
            Waiting::Done(result) => return Some(result),
            Waiting::Sent(from) => from,
        };
        loop {
            match from.try_recv() {
                Ok(result) => return Some(result),
                Err(TryRecvError::Disconnected) => panic!("a job is lost only where its work panicked"),
                Err(TryRecvError::Empty) => {}
            }
            let job = self.queue.lock().0.pop_front();
            match job {
                // Nothing is waited for that could be done here.
                Some((job, to)) => to.send((self.work)(job)).unwrap_or_default(),
                None => return Some(from.recv().expect("a job is lost only where its work panicked")),
            }
        }
    }

    fn helpers(&mut self) -> usize {
        let (queue, work, scope) = (self.queue, self.work, self.scope);
        *self.helpers.get_or_insert_with(|| {
            let help = |n| {
                let thread = thread::Builder::new().name(format!("dendrer-helper-{n}"));
                thread.spawn_scoped(scope, || queue.help(work)).is_ok()
            };
            // Without a thread, the work is done here.
            (0..other_processors()).take_while(|n| help(*n)).count()
        })
    }
}

impl<J, R> Drop for Line<'_, '_, J, R> {
    /// Lets the helpers go, whatever is left to do.
    fn drop(&mut self) {
        let mut jobs = self.queue.lock();
        jobs.1 = true;
        jobs.0.clear();
        drop(jobs);
        self.queue.changed.notify_all();
    }
}

fn other_processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let count = || thread::available_parallelism().map_or(1, NonZero::get);
    (PROCESSORS.get_or_init(count) - 1).min(HELPERS_MAX)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn all(jobs: u64, work: &(dyn Fn(u64) -> u64 + Sync)) -> Vec<u64> {
        in_order(work, |line| {
            let mut results = Vec::new();
            for job in 0..jobs {
                line.push(job);
                results.extend(std::iter::from_fn(|| line.take()));
            }
            results.extend(std::iter::from_fn(|| line.take_any()));
            results
        })
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        for jobs in [0, 1, 2, 3, 4, 500] {
            // Every third job takes longer than those behind it.
            let work = |n: u64| {
                let turns = if n.is_multiple_of(3) { 40_000 } else { 1 };
                (0..turns).fold(n, |n, turn| std::hint::black_box(n ^ turn ^ turn))
            };
            assert_eq!(all(jobs, &work), (0..jobs).collect::<Vec<_>>());
        }
    }

    #[test]
    fn whoever_stops_early_waits_for_nothing() {
        let first = in_order(&|n: u64| n, |line| {
            (0..100).for_each(|n| line.push(n));
            line.take_any()
        });
        assert_eq!(first, Some(0));
    }

    #[test]
    fn a_panic_of_the_work_is_one_of_whoever_asked() {
        let broken = |n: u64| {
            assert!(n < 50, "broken work");
            n
        };
        assert!(catch_unwind(AssertUnwindSafe(|| all(100, &broken))).is_err());
    }
}
