//! Work that is the same for many items, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does work for each item on at most `jobs` threads, and returns what it made in the order of the items.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], jobs: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let made: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let take = || {
        while let Some((item, place)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).zip(made.get(at))
        } {
            let one = work(item);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(one);
        }
    };
    std::thread::scope(|scope| {
        // If the system has no thread left, fewer do the work.
        let help = || std::thread::Builder::new().spawn_scoped(scope, take).is_ok();
        let _ = (1..jobs.min(items.len())).take_while(|_| help()).count();
        take();
    });
    let filled = |place: Mutex<Option<R>>| {
        place.into_inner().unwrap_or_else(PoisonError::into_inner).expect("each place was filled")
    };
    made.into_iter().map(filled).collect()
}
