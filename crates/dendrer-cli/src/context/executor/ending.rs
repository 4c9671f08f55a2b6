//! The commands that are under way, to which a signal that asks the program to end is passed on.
//!
//! Rule: a command does not outlive the program that was asked to end, and its end is on record; test
//! `a_signal_ends_the_command_too`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
#[cfg(unix)]
use std::time::Duration;

/// The process groups of commands under way.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// The signal that asked the program to end; 0 before.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// How long a command may take to end by the signal, and then how long answers are still recorded.
#[cfg(unix)]
const GRACE_TIME: Duration = Duration::from_secs(5);

/// Whether the program was asked to end.
pub(super) fn is_asked() -> bool {
    ASKED.load(Ordering::SeqCst) != 0
}

/// Adds a command. The signal that came while it began is passed on.
pub(super) fn begun(id: u32) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    #[cfg(unix)]
    if let Some(signal) = rustix::process::Signal::from_named_raw(ASKED.load(Ordering::SeqCst)) {
        kill(id, signal);
    }
}

/// Takes a command out that has ended.
pub(super) fn ended(id: u32) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
}

/// Sends a signal to a command and all that it began.
#[cfg(unix)]
pub(super) fn kill(id: u32, signal: rustix::process::Signal) {
    if let Some(group) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
        // Ignored: the group may have ended meanwhile.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

#[cfg(unix)]
fn kill_all(signal: rustix::process::Signal) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|id| kill(*id, signal));
}

/// Whether `nohup` or a shell had the program ignore a hangup.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|ignored| ignored & 1 == 1)
}

/// Passes the signals that ask the program to end on to the commands under way, from the return on. The program ends by itself once
/// their ends are on record, and after a while in any case.
#[cfg(unix)]
pub(crate) fn pass_on_signals() {
    use rustix::process::Signal;
    let mut numbers = vec![Signal::TERM.as_raw(), Signal::INT.as_raw()];
    numbers.extend((!ignores_hangup()).then_some(Signal::HUP.as_raw()));
    let (begun, begins) = std::sync::mpsc::channel();
    let wait = move || {
        // Ignored: the receiver is there until it has this.
        let Ok(number) = dendrer_server::ending_signal(&numbers, || _ = begun.send(())) else { return };
        // A shell has what it runs in the background ignore an interrupt.
        let passed = if number == Signal::INT.as_raw() { Signal::TERM.as_raw() } else { number };
        ASKED.store(passed, Ordering::SeqCst);
        Signal::from_named_raw(passed).into_iter().for_each(kill_all);
        std::thread::sleep(GRACE_TIME);
        kill_all(Signal::KILL);
        std::thread::sleep(GRACE_TIME);
        std::process::exit(128 + number);
    };
    if std::thread::Builder::new().spawn(wait).is_ok() {
        // Ignored: an error means that signals cannot be caught.
        let _ = begins.recv();
    }
}

/// Other systems end what a program began in their own way.
#[cfg(not(unix))]
pub(crate) fn pass_on_signals() {}
