//! A count of work, and a flag that stops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::StoreError;

/// Counts what long work has done, and stops it when asked. Clones are of the same work.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    done: Arc<AtomicU64>,
    is_cancelled: Arc<AtomicBool>,
}

impl Meter {
    /// Counts into a number that the caller has.
    pub fn counting(done: Arc<AtomicU64>) -> Meter {
        Meter { done, ..Meter::default() }
    }

    /// How much was done so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Counts `count` more. Fails with [`StoreError::Cancelled`] once the work was cancelled.
    pub fn add(&self, count: u64) -> Result<(), StoreError> {
        self.done.fetch_add(count, Ordering::Relaxed);
        self.check()
    }

    /// Fails with [`StoreError::Cancelled`] once the work was cancelled.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.is_cancelled() { Err(StoreError::Cancelled) } else { Ok(()) }
    }

    /// Makes the next [`Meter::add`] and [`Meter::check`] of the work fail.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether [`Meter::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}
