//! Signals that are sent to dendrer while a program runs: they are the program's.

use std::io;

use tokio::runtime::Runtime;

/// Signals that were taken over.
#[derive(Debug)]
pub struct HeldSignals {
    #[cfg(unix)]
    each: Vec<(rustix::process::Signal, tokio::signal::unix::Signal)>,
}

#[cfg(unix)]
impl HeldSignals {
    /// Takes over the signals that would end this process and are sent by people and programs.
    pub(crate) fn new() -> io::Result<HeldSignals> {
        use rustix::process::Signal;
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [
            (Signal::INT, SignalKind::interrupt()),
            (Signal::TERM, SignalKind::terminate()),
            (Signal::HUP, SignalKind::hangup()),
            (Signal::QUIT, SignalKind::quit()),
            (Signal::USR1, SignalKind::user_defined1()),
            (Signal::USR2, SignalKind::user_defined2()),
            (Signal::ALARM, SignalKind::alarm()),
        ];
        let each = kinds.into_iter().map(|(number, kind)| Ok((number, signal(kind)?)));
        Ok(HeldSignals { each: each.collect::<io::Result<_>>()? })
    }

    /// Sends each to a process. A terminal sends its own to all processes in front of it, and so to the program as well.
    pub(crate) fn forward(self, runtime: &Runtime, process: u32, of_terminal: bool) {
        use rustix::process::{Pid, Signal, kill_process};
        let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return };
        for (number, mut signal) in self.each {
            let is_sent = !(of_terminal && matches!(number, Signal::INT | Signal::QUIT));
            runtime.spawn(async move {
                while signal.recv().await.is_some() {
                    if is_sent {
                        // Ignored: the program has ended.
                        let _ = kill_process(process, number);
                    }
                }
            });
        }
    }
}

#[cfg(not(unix))]
impl HeldSignals {
    /// Takes over none: the console sends its own to all programs.
    pub(crate) fn new() -> io::Result<HeldSignals> {
        Ok(HeldSignals {})
    }

    /// Sends none.
    pub(crate) fn forward(self, _: &Runtime, _: u32, _: bool) {}
}
