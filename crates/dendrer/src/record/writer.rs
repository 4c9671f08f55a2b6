//! One line at a time onto a run, for a program that records itself.
//!
//! [`LineWriter`] takes lines as [`Recording`](crate::record::lines::Recording) does, each when it comes. Where each line is synced, its reply
//! comes once it is durable. Otherwise a line is judged when it comes, and lines are written out together: by
//! [`LineWriter::write_out`], which the caller calls when no line has come for a while, and when there are many; every so many lines the
//! log is synced.
//!
//! Rule: what was written out is in the log, and what was flushed is on disk; tests `what_was_written_out_is_read_by_another_handle`,
//! `lines_that_wait_are_judged_again_where_another_writer_moved_the_run_on`.

use std::collections::BTreeMap;

use dendrer_kernel::step::{Anomaly, Outcome, RunState};
use dendrer_object::record::Record;
use dendrer_object::{Code, Digest, Intent, Value};

use crate::error::Error;
use crate::record::lines::{LineOptions, LineRead, Reply, TurnedLine, answer, is_guarded};
use crate::record::recorder::{Guarded, Recorder};

/// How many lines wait at most.
const WAITING_MAX: usize = 100;

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
    /// Lines that were judged, and wait to be written out.
    waiting: Vec<Waiting>,
}

/// A line that was judged, and what came out.
#[derive(Debug)]
struct Waiting {
    line: LineRead,
    id: Option<Digest>,
}

impl LineWriter {
    /// Continues a run, or begins it. The beginning of a run is durable when this returns. The log is synced after every
    /// `sync_every` lines, 1 at least.
    pub fn new(mut recorder: Recorder, reading: LineOptions, sync_every: u64) -> Result<LineWriter, Error> {
        if recorder.pending() > 0 {
            recorder.commit()?;
        }
        let durable = recorder.head().tick();
        let (sync_every, waiting) = (sync_every.max(1), Vec::new());
        Ok(LineWriter { recorder, reading, sync_every, taken: 0, unsynced: 0, durable, waiting })
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
        match &read {
            LineRead::Intent(intent) if is_guarded(intent) => {
                self.write_out()?;
                self.take_guarded(number, intent)
            }
            _ if self.sync_every > 1 => self.judge(number, read),
            _ => {
                let records = self.put_again(&mut |recorder| propose(recorder, &read).map(drop))?;
                Ok(reply(number, records))
            }
        }
    }

    /// Judges a line, which then waits to be written out.
    fn judge(&mut self, number: u64, line: LineRead) -> Result<Reply, Error> {
        let outcome = propose(&mut self.recorder, &line)?;
        let records: Vec<Record> = outcome.records().into_iter().cloned().collect();
        self.waiting.push(Waiting { line, id: records.first().map(Record::id) });
        if self.waiting.len() >= WAITING_MAX.min(usize::try_from(self.sync_every).unwrap_or(usize::MAX)) {
            self.write_out()?;
        }
        Ok(reply(number, records))
    }

    /// How many lines wait to be written out.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether lines wait to be written out.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes out the lines that wait: a kill of the process does not take them any more. Where another process moved the run on
    /// meanwhile, they are judged again on what is there now, and have other ticks than their replies said.
    pub fn write_out(&mut self) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let count = self.waiting.len() as u64;
        for _ in 0..ATTEMPTS {
            match self.put(count) {
                Ok(_) => {
                    self.waiting.clear();
                    return Ok(());
                }
                Err(error) if has_moved(&error) => {
                    if let Err(error) = self.judge_again() {
                        // Lines that are told to be lost are not written with later ones.
                        self.recorder.discard();
                        return Err(error);
                    }
                }
                Err(error) => {
                    self.waiting.clear();
                    return Err(error);
                }
            }
        }
        self.waiting.clear();
        Err(Error::Moved { run: self.head().run().clone(), tick: self.head().tick() })
    }

    /// Judges the lines that wait once more. Links among them lead to what they are now.
    fn judge_again(&mut self) -> Result<(), Error> {
        self.recorder.catch_up()?;
        let mut now: BTreeMap<Digest, Digest> = BTreeMap::new();
        let mut waiting = std::mem::take(&mut self.waiting);
        for one in &mut waiting {
            if let LineRead::Intent(intent) = &mut one.line {
                for link in &mut intent.links {
                    link.hash = now.get(&link.hash).copied().unwrap_or(link.hash);
                }
            }
            let outcome = propose(&mut self.recorder, &one.line)?;
            let id = outcome.records().first().map(|record| record.id());
            now.extend(one.id.zip(id));
            one.id = id;
        }
        self.waiting = waiting;
        Ok(())
    }

    /// Puts an anomaly that the recording program saw on record, as a `kernel.anomaly`.
    pub fn note(&mut self, anomaly: &Anomaly) -> Result<(), Error> {
        self.write_out()?;
        self.put_again(&mut |recorder| recorder.note_anomaly(anomaly).map(drop)).map(drop)
    }

    /// Makes everything that was taken durable, and returns the newest tick.
    pub fn flush(&mut self) -> Result<u64, Error> {
        self.write_out()?;
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
            match self.put(1) {
                Ok(records) => return Ok(reply(number, records)),
                Err(error) if has_moved(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Moved { run: self.head().run().clone(), tick: self.head().tick() })
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
            match self.put(1) {
                Err(error) if has_moved(&error) => self.recorder.catch_up()?,
                put => return put,
            }
        }
        Err(Error::Moved { run: self.head().run().clone(), tick: self.head().tick() })
    }

    /// Puts what was gathered of some lines into the log, and syncs it where it is time.
    fn put(&mut self, lines: u64) -> Result<Vec<Record>, Error> {
        if self.unsynced + lines < self.sync_every {
            let records = self.recorder.append()?;
            self.unsynced += lines;
            return Ok(records);
        }
        let records = self.recorder.commit()?;
        (self.unsynced, self.durable) = (0, self.recorder.head().tick());
        Ok(records)
    }
}

fn propose(recorder: &mut Recorder, line: &LineRead) -> Result<Outcome, Error> {
    match line {
        LineRead::Intent(intent) => recorder.propose(intent),
        LineRead::Fault(line, fault) => recorder.refuse_line(line, fault.clone()),
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
