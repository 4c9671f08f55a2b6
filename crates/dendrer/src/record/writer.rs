//! One line at a time onto a run, for a program that records itself.
//!
//! [`LineWriter`] takes lines as [`Recording`](crate::lines::Recording) does, each when it comes. A reply is returned once the
//! line is in the log, so that a kill of the process takes nothing that was answered; every so many lines the log is synced, so that a
//! power cut takes no more than those.
//!
//! Rule: what was answered is in the log; test `what_was_answered_is_read_by_another_handle`.

use dendrer_kernel::step::{Anomaly, LineFault, RunState};
use dendrer_object::record::Record;
use dendrer_object::{Code, Intent, Value};

use crate::error::Error;
use crate::lines::{LineOptions, LineRead, Reply, TurnedLine, answer, is_guarded};
use crate::recorder::{Guarded, Recorder};

/// How often a line is judged again because other processes move the run on.
const ATTEMPTS: usize = 1000;

/// Takes lines onto a run, one by one.
#[derive(Debug)]
pub struct LineWriter {
    recorder: Recorder,
    reading: LineOptions,
    sync_every: u64,
    /// Lines taken so far.
    taken: u64,
    /// Lines since the log was synced.
    unsynced: u64,
    /// The newest tick that a power cut does not take.
    durable: u64,
}

impl LineWriter {
    /// Continues a run, or begins it. The beginning of a run is durable when this returns. The log is synced after every
    /// `sync_every` lines, 1 at least.
    pub fn new(mut recorder: Recorder, reading: LineOptions, sync_every: u64) -> Result<LineWriter, Error> {
        if recorder.pending() > 0 {
            recorder.commit()?;
        }
        let durable = recorder.head().tick();
        Ok(LineWriter { recorder, reading, sync_every: sync_every.max(1), taken: 0, unsynced: 0, durable })
    }

    /// The state at the last tick of the run.
    pub fn head(&self) -> &RunState {
        self.recorder.head()
    }

    /// Takes a line. A line that is not JSON of an intent is refused, and the refusal is kept. Where another process moved the run
    /// on meanwhile, a line without `base` is judged again on what is there now.
    ///
    /// # Errors
    ///
    /// Fails where nothing of the line is on record, or where the disk failed.
    pub fn take(&mut self, line: &Value) -> Result<Reply, Error> {
        let read = self.reading.read_value(line);
        self.taken += 1;
        let number = self.taken;
        match read {
            LineRead::Intent(intent) if is_guarded(&intent) => self.take_guarded(number, &intent),
            LineRead::Intent(intent) => {
                self.again(number, &mut |recorder| recorder.propose(&intent).map(drop))
            }
            LineRead::Fault(line, fault) => self.refuse(number, &line, &fault),
        }
    }

    fn refuse(&mut self, number: u64, line: &Value, fault: &LineFault) -> Result<Reply, Error> {
        self.again(number, &mut |recorder| recorder.refuse_line(line, fault.clone()).map(drop))
    }

    /// Puts an anomaly that the recording program saw on record, as a `kernel.anomaly`.
    pub fn note(&mut self, anomaly: &Anomaly) -> Result<(), Error> {
        self.put_again(&mut |recorder| recorder.note_anomaly(anomaly).map(drop)).map(drop)
    }

    /// Makes everything that was taken durable, and returns the newest tick.
    pub fn flush(&mut self) -> Result<u64, Error> {
        if self.unsynced > 0 {
            self.recorder.commit()?;
            self.unsynced = 0;
        }
        self.durable = self.durable.max(self.recorder.head().tick());
        Ok(self.durable)
    }

    fn take_guarded(&mut self, number: u64, intent: &Intent) -> Result<Reply, Error> {
        for _ in 0..ATTEMPTS {
            match self.recorder.propose_guarded(intent, false, None)? {
                Guarded::Proposed(_) => {}
                Guarded::Repeated(record) => return Ok(Reply::Repeated { line: number, record }),
                Guarded::KeyUsed(first) => {
                    let why = TurnedLine::KeyUsed(first.header().tick.unwrap_or(0));
                    return Ok(Reply::Turned { line: number, why });
                }
                Guarded::Stale { base, head, changed } => {
                    let why = TurnedLine::Stale { base, head, changed };
                    return Ok(Reply::Turned { line: number, why });
                }
            }
            match self.put() {
                Ok(records) => return Ok(reply(number, records)),
                Err(error) if has_moved(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Moved { run: self.head().run().clone(), tick: self.head().tick() })
    }

    fn again(
        &mut self,
        number: u64,
        judge: &mut dyn FnMut(&mut Recorder) -> Result<(), Error>,
    ) -> Result<Reply, Error> {
        Ok(reply(number, self.put_again(judge)?))
    }

    /// Judges and puts into the log, again where the run moved on meanwhile.
    fn put_again(
        &mut self,
        judge: &mut dyn FnMut(&mut Recorder) -> Result<(), Error>,
    ) -> Result<Vec<Record>, Error> {
        for _ in 0..ATTEMPTS {
            if let Err(error) = judge(&mut self.recorder) {
                // Nothing of a line that failed is kept.
                self.recorder.discard();
                return Err(error);
            }
            match self.put() {
                Err(error) if has_moved(&error) => self.recorder.catch_up()?,
                put => return put,
            }
        }
        Err(Error::Moved { run: self.head().run().clone(), tick: self.head().tick() })
    }

    /// Puts what was gathered into the log, and syncs it where it is time.
    fn put(&mut self) -> Result<Vec<Record>, Error> {
        if self.unsynced + 1 < self.sync_every {
            let records = self.recorder.append()?;
            self.unsynced += 1;
            return Ok(records);
        }
        let records = self.recorder.commit()?;
        (self.unsynced, self.durable) = (0, self.recorder.head().tick());
        Ok(records)
    }
}

fn has_moved(error: &Error) -> bool {
    error.code() == Code::E0407
}

fn reply(number: u64, records: Vec<Record>) -> Reply {
    let mut replies = Vec::with_capacity(1);
    answer(vec![number], records, &mut replies);
    replies.pop().expect("a reply to each line")
}
