//! Questions on threads of their own: four at a time, the others wait, and one whose connection closes is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use dendrer::watch::Watch;
use tokio::sync::Semaphore;

use crate::answer::Refusal;

/// How many questions run at a time.
const RUNNING_MAX: usize = 4;
/// How many questions wait.
const WAITING_MAX: usize = 32;

/// The questions that run and wait.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    turns: Arc<Semaphore>,
    taken: Arc<AtomicUsize>,
}

/// Stops the reads of a question when it is dropped.
struct Stops(Watch);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A place among the questions that run or wait.
struct Taken(Arc<AtomicUsize>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Work {
    /// No question runs.
    pub(crate) fn new() -> Work {
        Work { turns: Arc::new(Semaphore::new(RUNNING_MAX)), taken: Arc::default() }
    }

    /// Runs a question on a thread of its own. When the connection closes, the future is dropped, and the next read of the
    /// question fails.
    ///
    /// # Errors
    ///
    /// 503 if too many wait; else the refusal of the question.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        ask: impl FnOnce(Watch) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.run_under(Watch::new(), ask).await
    }

    /// As [`Work::run`], with a watch that counts for the caller as well.
    ///
    /// # Errors
    ///
    /// 503 if too many wait; else the refusal of the question.
    pub(crate) async fn run_under<T: Send + 'static>(
        &self,
        watch: Watch,
        ask: impl FnOnce(Watch) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        if self.taken.fetch_add(1, Ordering::SeqCst) >= RUNNING_MAX + WAITING_MAX {
            self.taken.fetch_sub(1, Ordering::SeqCst);
            return Err(busy());
        }
        let taken = Taken(Arc::clone(&self.taken));
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| busy())?;
        let stops = Stops(watch.clone());
        let asked = tokio::task::spawn_blocking(move || {
            // A question that was stopped keeps its turn until its thread has ended.
            let _held = (taken, turn);
            ask(watch)
        });
        let answer = asked.await.map_err(|_| Refusal::failed())?;
        drop(stops);
        answer
    }
}

fn busy() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the server answers as many questions as it takes; ask again",
    )
}
