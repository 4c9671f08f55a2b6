//! Groups: when one is full, when it is written, and when it is durable.
//!
//! A line waits in a group until a [`Grouper`] finds the group full; the group waits in [`Shared`](shared::Shared) until
//! a thread appends it, and then for a sync. Every limit on the way is in this folder.
//!
//! Never judges a line, and never makes bytes: the caller does the one, the store the other.

use std::thread::{self, Thread};
use std::time::Duration;

pub mod shared;
pub(crate) mod sync;
mod syncs;
mod threads;
mod together;

/// Lines in one group, at most. A group is acknowledged while the next one is judged: in a larger group a durable line
/// would wait longer for its reply, and throughput would hardly rise.
pub const LINES_MAX: usize = 100;

/// Bytes of lines in one group, at most.
const BYTES_MAX: usize = 8 << 20;

/// Groups of a run on their way to the disk, at most, while the next one is gathered: one is synced, one appended, and
/// if a sync takes longer than gathering a group, those that wait for it share the next.
pub const UNDER_WAY_MAX: usize = 4;

/// Time that lines of a group that is not full wait to be written out together.
const PAUSE: Duration = Duration::from_millis(5);

/// Counts the lines of a group: decides when the group is full, and whether the log is synced with it.
#[derive(Debug)]
pub struct Grouper {
    sync_every: u64,
    lines: usize,
    bytes: usize,
    /// Lines that were written out since the log was synced.
    unsynced: u64,
}

impl Default for Grouper {
    fn default() -> Grouper {
        Grouper::new(u64::MAX)
    }
}

impl Grouper {
    /// Begins an empty group. The log is synced after every `sync_every` lines, 1 at least.
    pub fn new(sync_every: u64) -> Grouper {
        Grouper { sync_every: sync_every.max(1), lines: 0, bytes: 0, unsynced: 0 }
    }

    /// Counts a line of so many bytes.
    pub fn add(&mut self, bytes: usize) {
        self.lines += 1;
        self.bytes += bytes;
    }

    /// Whether the group takes no further line.
    pub fn is_full(&self) -> bool {
        self.lines >= LINES_MAX || self.bytes > BYTES_MAX || self.lines as u64 >= self.sync_every
    }

    /// Whether the log is synced with this group.
    pub fn is_sync_due(&self) -> bool {
        self.unsynced.saturating_add(self.lines as u64) >= self.sync_every
    }

    /// Whether every line that was written out is synced.
    pub fn is_synced(&self) -> bool {
        self.unsynced == 0
    }

    /// Ends a group that was written out, and begins the next one.
    pub fn wrote(&mut self, is_synced: bool) {
        self.unsynced = if is_synced { 0 } else { self.unsynced + self.lines as u64 };
        self.discard();
    }

    /// Ends a group of which nothing was written, and begins the next one.
    pub fn discard(&mut self) {
        (self.lines, self.bytes) = (0, 0);
    }
}

/// Starts a thread that runs `write_out` a moment after it was unparked, until `write_out` returns false. `None` if the
/// system starts no thread.
pub fn after_pause(mut write_out: impl FnMut() -> bool + Send + 'static) -> Option<Thread> {
    let work = move || {
        loop {
            thread::park();
            thread::sleep(PAUSE);
            // Takes back what was signalled during the pause: those lines are written out, too.
            thread::park_timeout(Duration::ZERO);
            if !write_out() {
                return;
            }
        }
    };
    let started = thread::Builder::new().name("dendrer-lines".into()).spawn(work);
    started.ok().map(|started| started.thread().clone())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_group_is_full_by_lines_bytes_or_sync() {
        let lines_until_full = |mut grouper: Grouper, bytes: usize| {
            (1..).find(|_| {
                grouper.add(bytes);
                grouper.is_full()
            })
        };
        assert_eq!(lines_until_full(Grouper::default(), 1), Some(LINES_MAX));
        assert_eq!(lines_until_full(Grouper::default(), BYTES_MAX), Some(2));
        assert_eq!(lines_until_full(Grouper::new(7), 1), Some(7));
        assert_eq!(lines_until_full(Grouper::new(0), 1), Some(1));
    }

    #[test]
    fn a_sync_is_due_after_its_lines_whatever_their_groups() {
        let mut grouper = Grouper::new(150);
        (0..LINES_MAX).for_each(|_| grouper.add(1));
        assert!(grouper.is_full() && !grouper.is_sync_due());
        grouper.wrote(false);
        assert!(!grouper.is_synced() && !grouper.is_full());
        (0..50).for_each(|_| grouper.add(1));
        assert!(grouper.is_sync_due() && !grouper.is_full());
        grouper.discard();
        assert!(!grouper.is_sync_due() && !grouper.is_synced());
        (0..50).for_each(|_| grouper.add(1));
        grouper.wrote(true);
        assert!(grouper.is_synced() && !grouper.is_sync_due());
    }

    #[test]
    fn lines_are_written_out_after_each_signal_until_the_end() {
        let (write, is_written) = channel();
        let mut left = 2;
        let thread = after_pause(move || {
            left -= 1;
            write.send(left).is_ok() && left > 0
        });
        let thread = thread.expect("a thread");
        for left in [1, 0] {
            thread.unpark();
            assert_eq!(is_written.recv_timeout(Duration::from_secs(20)), Ok(left));
        }
        assert!(is_written.recv_timeout(Duration::from_secs(20)).is_err(), "the thread ended");
    }
}
