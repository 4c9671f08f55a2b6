//! One line at a time onto a run, for a program that records itself.
//!
//! [`LineWriter`] takes lines as [`Recording`](crate::record::lines::Recording) does, each when it comes. If each line is synced, its reply
//! comes once it is durable. Otherwise a line is judged when it comes, and lines are written out together: by
//! [`LineWriter::write_out`], which the caller calls when no line has come for a while, and when there are many; every so many lines the
//! log is synced.
//!
//! Rule: what was written out is in the log, and what was flushed is on disk; tests `what_was_written_out_is_read_by_another_handle`,
//! `lines_that_wait_are_judged_again_where_another_writer_moved_the_run_on`.

use std::collections::BTreeMap;

use dendrer_kernel::step::{Anomaly, RunState};
use dendrer_object::record::Record;
use dendrer_object::{Code, Digest, Intent, Value};
use dendrer_store::group::Grouper;

use crate::error::Error;
use crate::record::lines::{
    ATTEMPTS, Authors, LineOptions, LineRead, Reply, answer, is_guarded, propose, turned,
};
use crate::record::recorder::Recorder;

pub use dendrer_store::group::after_pause;

/// Takes lines onto a run, one by one.
#[derive(Debug)]
pub struct LineWriter {
    recorder: Recorder,
    reading: LineOptions,
    grouper: Grouper,
    /// Lines taken so far.
    taken: u64,
    /// The newest tick that a power cut does not take.
    durable: u64,
    /// Lines that were judged, and wait to be written out.
    waiting: Vec<Waiting>,
    /// The ticks that other processes added while the newest line was judged: the last tick that was read before, and the
    /// last of theirs. `None` if it was judged once.
    read: Option<(u64, u64)>,
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
        let (grouper, waiting) = (Grouper::new(sync_every), Vec::new());
        Ok(LineWriter { recorder, reading, grouper, taken: 0, durable, waiting, read: None })
    }

    /// The state at the last tick of the run.
    pub fn head(&self) -> &RunState {
        self.recorder.head()
    }

    /// Takes a line. A line that is not JSON of an intent is refused, and the refusal is kept. If another process moved the run
    /// on meanwhile, a line without `base` is judged again on what is there now.
    ///
    /// # Errors
    ///
    /// Fails if nothing of the line is on record, or if the disk failed.
    pub fn take(&mut self, line: &Value) -> Result<Reply, Error> {
        let read = self.recorder.with_parents(self.reading.read_value(line), || line.clone())?;
        self.take_read(read)
    }

    /// As [`LineWriter::take`], of a line in the words of the user: its author is the user, whatever authors write here otherwise.
    ///
    /// # Errors
    ///
    /// As [`LineWriter::take`].
    pub fn take_of_user(&mut self, line: &Value) -> Result<Reply, Error> {
        let reading = LineOptions { authors: Authors::User, scope: None, ..self.reading.clone() };
        let read = self.recorder.with_parents(reading.read_value(line), || line.clone())?;
        self.take_read(read)
    }

    fn take_read(&mut self, line: LineRead) -> Result<Reply, Error> {
        self.taken += 1;
        if let LineRead::Intent(intent) = &line
            && is_guarded(intent)
        {
            self.write_out()?;
            return self.take_guarded(intent);
        }
        self.read = None;
        let mut records = self.judge(&line)?;
        self.waiting.push(Waiting { id: records.first().map(Record::id), line });
        self.grouper.add(0);
        if self.grouper.is_full() {
            let (written, last) = self.write_waiting()?;
            records = written.into_iter().skip_while(|record| Some(record.id()) != last).collect();
        }
        self.reply(records)
    }

    /// Judges a line, which is gathered after those that wait.
    fn judge(&mut self, line: &LineRead) -> Result<Vec<Record>, Error> {
        let outcome = propose(&mut self.recorder, line);
        let outcome = if self.waiting.is_empty() { self.or_discard(outcome) } else { outcome };
        Ok(outcome?.records().into_iter().cloned().collect())
    }

    /// How many lines wait to be written out.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether lines wait to be written out.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes out the lines that wait: a kill of the process does not take them any more. If another process moved the run on
    /// meanwhile, they are judged again on what is there now, and have other ticks than their replies said.
    pub fn write_out(&mut self) -> Result<(), Error> {
        if self.waiting.is_empty() { Ok(()) } else { self.write_waiting().map(drop) }
    }

    /// Writes out the lines that wait. Returns their records, and the id of the first record of the last line.
    fn write_waiting(&mut self) -> Result<(Vec<Record>, Option<Digest>), Error> {
        // Lines that are reported as lost are not written with later ones.
        let mut waiting = std::mem::take(&mut self.waiting);
        let records = self.put(&mut |recorder| judge_again(recorder, &mut waiting))?;
        Ok((records, waiting.last().and_then(|last| last.id)))
    }

    /// Puts an anomaly that the recording program saw on record, as a `kernel.anomaly`.
    pub fn note(&mut self, anomaly: &Anomaly) -> Result<(), Error> {
        self.write_out()?;
        let mut judge = |recorder: &mut Recorder| recorder.note_anomaly(anomaly).map(drop);
        let noted = judge(&mut self.recorder);
        self.or_discard(noted)?;
        self.grouper.add(0);
        self.put(&mut judge).map(drop)
    }

    /// Makes everything that was taken durable, and returns the newest tick.
    pub fn flush(&mut self) -> Result<u64, Error> {
        self.write_out()?;
        if !self.grouper.is_synced() {
            self.recorder.commit()?;
            self.grouper.wrote(true);
        }
        self.durable = self.durable.max(self.recorder.head().tick());
        Ok(self.durable)
    }

    fn take_guarded(&mut self, intent: &Intent) -> Result<Reply, Error> {
        self.grouper.add(0);
        let read = self.head().tick();
        for _ in 0..ATTEMPTS {
            let guarded = self.recorder.propose_guarded(intent, false, None);
            if let Some(reply) = turned(self.taken, self.or_discard(guarded)?) {
                self.grouper.discard();
                return Ok(reply);
            }
            let upto = self.recorder.head().tick();
            self.read = intent.base.is_none().then_some((read, upto));
            match self.put_once() {
                Err(error) if has_moved(&error) => {}
                put => return self.or_discard(put).and_then(|records| self.reply(records)),
            }
        }
        self.or_discard(Err(self.moved()))
    }

    /// Puts what was gathered into the log. If the run moved on meanwhile, `again` judges it once more.
    fn put(
        &mut self,
        again: &mut dyn FnMut(&mut Recorder) -> Result<(), Error>,
    ) -> Result<Vec<Record>, Error> {
        for _ in 0..ATTEMPTS {
            match self.put_once() {
                Err(error) if has_moved(&error) => {}
                put => return self.or_discard(put),
            }
            let read = self.read.map_or(self.head().tick(), |(read, _)| read);
            let caught_up = self.recorder.catch_up();
            self.read = Some((read, self.head().tick()));
            let judged = caught_up.and_then(|()| again(&mut self.recorder));
            self.or_discard(judged)?;
        }
        self.or_discard(Err(self.moved()))
    }

    /// Puts what was gathered into the log, and syncs the log if that is due.
    fn put_once(&mut self) -> Result<Vec<Record>, Error> {
        let is_synced = self.grouper.is_sync_due();
        let records = if is_synced { self.recorder.commit() } else { self.recorder.append() }?;
        self.grouper.wrote(is_synced);
        if is_synced {
            self.durable = self.recorder.head().tick();
        }
        Ok(records)
    }

    /// Takes back what was gathered of lines that failed.
    fn or_discard<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.recorder.discard();
            self.grouper.discard();
        }
        result
    }

    fn moved(&self) -> Error {
        Error::Moved { run: self.head().run().clone(), tick: self.head().tick() }
    }

    /// The reply to the newest line.
    fn reply(&mut self, records: Vec<Record>) -> Result<Reply, Error> {
        let mut replies = Vec::with_capacity(1);
        answer(vec![self.taken], records, &mut replies);
        self.recorder.note_judged(&mut replies);
        if let Some((read, upto)) = self.read {
            self.recorder.note_overtaken(read, upto, &mut replies)?;
        }
        Ok(replies.pop().expect("a reply to each line"))
    }
}

/// Judges lines once more. Links among them lead to what they are now.
fn judge_again(recorder: &mut Recorder, waiting: &mut [Waiting]) -> Result<(), Error> {
    let mut now: BTreeMap<Digest, Digest> = BTreeMap::new();
    for one in waiting {
        if let LineRead::Intent(intent) = &mut one.line {
            for link in &mut intent.links {
                link.hash = now.get(&link.hash).copied().unwrap_or(link.hash);
            }
        }
        let outcome = propose(recorder, &one.line)?;
        let id = outcome.records().first().map(|record| record.id());
        now.extend(one.id.zip(id));
        one.id = id;
    }
    Ok(())
}

fn has_moved(error: &Error) -> bool {
    error.code() == Code::E0407
}
