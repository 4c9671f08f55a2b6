//! What one thread uses at a time, and what a fork leaves behind.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A thing that one thread uses at a time, until it is closed. Unlike a mutex it can be held over a fork: by then no thread may be in
/// the middle of a write, since the child has the locks of the parent, and not its threads.
pub(crate) struct Gated<T> {
    open: Mutex<Option<T>>,
    taken: Mutex<Taken>,
    changed: Condvar,
}

/// Who is inside, and who waits.
#[derive(Default)]
struct Taken {
    is_taken: bool,
    waiting: usize,
}

/// The thing behind the gate, which is left at the end.
pub(crate) struct Inside<'g, T> {
    gate: &'g Gated<T>,
    /// `None` once it was left.
    open: Option<MutexGuard<'g, Option<T>>>,
}

impl<T> Gated<T> {
    pub(crate) fn new(open: T) -> Gated<T> {
        Gated { open: Mutex::new(Some(open)), taken: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until no other thread is inside.
    pub(crate) fn enter(&self) -> Inside<'_, T> {
        self.hold();
        Inside { gate: self, open: Some(self.open.lock().unwrap_or_else(PoisonError::into_inner)) }
    }

    /// Waits until no thread is inside, and keeps all out until [`Gated::release`].
    pub(crate) fn hold(&self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while taken.is_taken {
            taken.waiting += 1;
            taken = self.changed.wait(taken).unwrap_or_else(PoisonError::into_inner);
            taken.waiting -= 1;
        }
        taken.is_taken = true;
    }

    /// Runs `f` on what is behind a gate that the caller holds.
    pub(crate) fn held(&self, f: impl FnOnce(&mut T)) {
        if let Some(open) = self.open.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            f(open);
        }
    }

    /// Lets threads in again.
    pub(crate) fn release(&self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.is_taken = false;
        // A wake is a call of the system even if no thread waits.
        if taken.waiting > 0 {
            self.changed.notify_one();
        }
    }
}

impl<T> Deref for Inside<'_, T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        self.open.as_ref().expect("inside")
    }
}

impl<T> DerefMut for Inside<'_, T> {
    fn deref_mut(&mut self) -> &mut Option<T> {
        self.open.as_mut().expect("inside")
    }
}

impl<T> Drop for Inside<'_, T> {
    fn drop(&mut self) {
        // The lock first: behind the gate, a fork must find it free.
        self.open = None;
        self.gate.release();
    }
}
