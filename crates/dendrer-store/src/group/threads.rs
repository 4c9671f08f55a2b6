//! Threads and what they wait on: those of the standard library, or with the feature `schedules` those of a scheduler that tries
//! the orders of threads (`tests/schedules.rs`).

#[cfg(not(feature = "schedules"))]
pub(super) use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
#[cfg(not(feature = "schedules"))]
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(feature = "schedules"))]
pub(super) use std::thread;

#[cfg(feature = "schedules")]
pub(super) use shuttle::sync::mpsc::{Receiver, SyncSender, sync_channel};
#[cfg(feature = "schedules")]
pub(super) use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(feature = "schedules")]
pub(super) use shuttle::thread;
