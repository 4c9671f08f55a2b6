//! One line at a time onto a run, for a program that records itself.
//!
//! [`LineWriter`] takes lines as [`Recording`](crate::record::lines::Recording) does, each when it comes. If each line is synced, its reply
//! comes once it is durable. Otherwise lines are written out together, and those on whose outcome no other depends are judged together
//! ([`LineWriter::take_later`]): by
//! [`LineWriter::write_out`], which the caller calls when no line has come for a while, and when there are many; every so many lines the
//! log is synced.
//!
//! Rule: what was written out is in the log, and what was flushed is on disk; tests `what_was_written_out_is_read_by_another_handle`,
//! `lines_that_wait_are_judged_again_where_another_writer_moved_the_run_on`. A reply that is final is of a record in the log, or of a
//! line that is not there; test `a_reply_is_of_the_record_that_was_written`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use dendrer_kernel::ontology::{self, Class, REQUEST};
use dendrer_kernel::step::{Anomaly, RunState, Stage};
use dendrer_object::record::Record;
use dendrer_object::{COMMITMENT_LISTS, Code, Digest, Intent, Timestamp, Value};
use dendrer_store::group::Grouper;

use crate::error::Error;
use crate::record::chain::STEP;
use crate::record::lines::{
    ATTEMPTS, Authors, FailedLine, LineOptions, LineRead, Reply, answer, is_guarded, propose, turned,
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
    /// Whether lines may be judged later than they come: not where each is synced.
    may_wait: bool,
    /// Lines that came, and are judged together.
    unjudged: Unjudged,
    /// How many lines of those that were judged later failed, and why the first did.
    failed: Option<(u64, Error)>,
    /// Lines that were judged, and wait to be written out.
    waiting: Vec<Waiting>,
    /// The ticks that other processes added while the newest line was judged: the last tick that was read before, and the
    /// last of theirs. `None` if it was judged once.
    read: Option<(u64, u64)>,
}

/// A line that was taken.
#[derive(Debug)]
pub enum TakenLine {
    /// It was judged.
    Judged(Reply),
    /// It is judged with the lines after it.
    Later(LaterReply),
}

/// The reply to a line that is written out with the lines after it, and may be judged with them.
#[derive(Debug, Clone, Default)]
pub struct LaterReply(Arc<Slot>);

/// A reply once it is known, and whether it is final.
type Slot = Mutex<(Option<Reply>, bool)>;

impl LaterReply {
    /// The reply, and whether it is final; `None` until the line is judged, see [`LineWriter::judge_waiting`]. Until the line is
    /// written out another process may move the run on, so that its record is another one, and the disk may fail.
    pub fn get(&self) -> Option<(Reply, bool)> {
        let (reply, is_final) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reply.clone().map(|reply| (reply, *is_final))
    }
}

/// Changes a reply, unless it was dropped.
fn tell(slot: &Weak<Slot>, change: impl FnOnce(&mut (Option<Reply>, bool))) {
    if let Some(slot) = slot.upgrade() {
        change(&mut slot.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Lines that came and are not judged yet, member by member.
#[derive(Debug, Default)]
struct Unjudged {
    numbers: Vec<u64>,
    intents: Vec<Intent>,
    came: Vec<Timestamp>,
    replies: Vec<Weak<Slot>>,
}

impl Unjudged {
    /// Takes away the first `count` lines.
    fn take(&mut self, count: usize) -> Unjudged {
        Unjudged {
            numbers: self.numbers.drain(..count).collect(),
            intents: self.intents.drain(..count).collect(),
            came: self.came.drain(..count).collect(),
            replies: self.replies.drain(..count).collect(),
        }
    }
}

/// A line that was judged, and what came out.
#[derive(Debug)]
struct Waiting {
    number: u64,
    line: LineRead,
    id: Option<Digest>,
    reply: Weak<Slot>,
}

impl LineWriter {
    /// Continues a run, or begins it. The beginning of a run is durable when this returns. The log is synced after every
    /// `sync_every` lines, 1 at least.
    pub fn new(mut recorder: Recorder, reading: LineOptions, sync_every: u64) -> Result<LineWriter, Error> {
        if recorder.pending() > 0 {
            recorder.commit()?;
        }
        let durable = recorder.head().tick();
        Ok(LineWriter {
            recorder,
            reading,
            grouper: Grouper::new(sync_every),
            taken: 0,
            durable,
            may_wait: sync_every > 1,
            unjudged: Unjudged::default(),
            failed: None,
            waiting: Vec::new(),
            read: None,
        })
    }

    /// The state at the last tick of the run, without the lines that are not judged yet.
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
        let read = self.read(line, false)?;
        self.take_read(read)
    }

    /// As [`LineWriter::take`], of a line in the words of the user: its author is the user, whatever authors write here otherwise.
    ///
    /// # Errors
    ///
    /// As [`LineWriter::take`].
    pub fn take_of_user(&mut self, line: &Value) -> Result<Reply, Error> {
        let read = self.read(line, true)?;
        self.take_read(read)
    }

    /// As [`LineWriter::take`], or with `is_user` as [`LineWriter::take_of_user`], but a line on whose outcome no other depends is judged
    /// with those after it: when its reply is asked for, or when they are written out. It has the time at which it came. Judged at
    /// once are lines with `base` or `key`, calls and their results, steps of witness chains, commitments, types that are not an agent's,
    /// every line of a run with a pack, a policy or a contract, and every line where each is synced.
    ///
    /// # Errors
    ///
    /// As [`LineWriter::take`]; a line that is judged later and fails is counted by [`LineWriter::take_failed`].
    pub fn take_later(&mut self, line: &Value, is_user: bool) -> Result<TakenLine, Error> {
        let intent = match self.read(line, is_user)? {
            LineRead::Intent(intent) if self.may_wait && is_plain(&intent, line) && is_free(self.head()) => {
                intent
            }
            read => {
                let reply = self.take_read(read)?;
                let is_committed = matches!(&reply, Reply::Committed { .. });
                return Ok(match self.waiting.last_mut().filter(|_| is_committed) {
                    Some(last) => {
                        let later = LaterReply(Arc::new(Mutex::new((Some(reply), false))));
                        last.reply = Arc::downgrade(&later.0);
                        TakenLine::Later(later)
                    }
                    None => TakenLine::Judged(reply),
                });
            }
        };
        self.taken += 1;
        self.read = None;
        let reply = LaterReply::default();
        self.unjudged.numbers.push(self.taken);
        self.unjudged.came.push(self.recorder.now());
        self.unjudged.intents.push(*intent);
        self.unjudged.replies.push(Arc::downgrade(&reply.0));
        self.grouper.add(0);
        if self.grouper.is_full() {
            self.write_out()?;
        }
        Ok(TakenLine::Later(reply))
    }

    /// Judges the lines that came and were not judged yet.
    pub fn judge_waiting(&mut self) {
        while !self.unjudged.intents.is_empty() {
            let before = self.recorder.pending();
            let judged = self.recorder.propose_each_at(&self.unjudged.intents, &self.unjudged.came);
            let error = judged.err();
            let taken = error.as_ref().map_or(self.unjudged.intents.len(), |(at, _)| *at);
            let lines = self.unjudged.take(taken + usize::from(error.is_some()));
            let mut replies = Vec::with_capacity(lines.numbers.len());
            let records = self.recorder.gathered(before).to_vec();
            answer(lines.numbers[..taken].to_vec(), records, &mut replies);
            self.recorder.note_judged(&mut replies);
            // The line that failed is the last, and has no record.
            for (at, (intent, reply)) in lines.intents.into_iter().zip(&replies).enumerate() {
                let id = reply.records().next().map(Record::id);
                let (number, asks) = (lines.numbers[at], lines.replies[at].clone());
                let line = LineRead::Intent(Box::new(intent));
                self.waiting.push(Waiting { number, line, id, reply: asks });
            }
            if let Some((_, error)) = error {
                replies.push(Reply::Failed(FailedLine::of(lines.numbers[taken], &error)));
                self.failed = Some(match self.failed.take() {
                    Some((count, first)) => (count + 1, first),
                    None => (1, error),
                });
            }
            for (reply, asks) in replies.into_iter().zip(&lines.replies) {
                let is_final = matches!(reply, Reply::Failed(_));
                tell(asks, |told| *told = (Some(reply), is_final));
            }
        }
    }

    /// How many lines that were judged later failed since this was asked, and why the first did.
    pub fn take_failed(&mut self) -> Option<(u64, Error)> {
        self.failed.take()
    }

    /// Reads a line; one in the words of the user is by the user.
    fn read(&mut self, line: &Value, is_user: bool) -> Result<LineRead, Error> {
        let read = if is_user {
            let reading = LineOptions { authors: Authors::User, scope: None, ..self.reading.clone() };
            reading.read_value(line)
        } else {
            self.reading.read_value(line)
        };
        self.recorder.with_parents(read, || line.clone())
    }

    fn take_read(&mut self, line: LineRead) -> Result<Reply, Error> {
        self.judge_waiting();
        self.taken += 1;
        if let LineRead::Intent(intent) = &line
            && is_guarded(intent)
        {
            self.write_out()?;
            return self.take_guarded(intent);
        }
        self.read = None;
        let mut records = self.judge(&line)?;
        let id = records.first().map(Record::id);
        self.waiting.push(Waiting { number: self.taken, line, id, reply: Weak::new() });
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
        self.waiting.len() + self.unjudged.intents.len()
    }

    /// Whether lines wait to be written out.
    pub fn is_waiting(&self) -> bool {
        self.waiting() > 0
    }

    /// Writes out the lines that wait: a kill of the process does not take them any more. If another process moved the run on
    /// meanwhile, they are judged again on what is there now, and have other ticks than their replies said.
    pub fn write_out(&mut self) -> Result<(), Error> {
        self.judge_waiting();
        if self.waiting.is_empty() { Ok(()) } else { self.write_waiting().map(drop) }
    }

    /// Writes out the lines that wait. Returns their records, and the id of the first record of the last line.
    fn write_waiting(&mut self) -> Result<(Vec<Record>, Option<Digest>), Error> {
        // Lines that are reported as lost are not written with later ones.
        let mut waiting = std::mem::take(&mut self.waiting);
        let put = self.put(&mut |recorder| judge_again(recorder, &mut waiting));
        for one in &waiting {
            tell(&one.reply, |told| {
                if let Err(error) = &put {
                    told.0 = Some(Reply::Failed(FailedLine::of(one.number, error)));
                }
                told.1 = true;
            });
        }
        Ok((put?, waiting.last().and_then(|last| last.id)))
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

/// Whether no other line depends on the outcome of a line by itself.
fn is_plain(intent: &Intent, line: &Value) -> bool {
    let asks =
        ["action", "result", STEP].iter().chain(COMMITMENT_LISTS.iter()).any(|name| line.get(name).is_some());
    let is_agents = ontology::class(&intent.type_name, &BTreeSet::new()) == Some(Class::Agent);
    is_agents && !asks && !is_guarded(intent) && intent.type_name.as_str() != REQUEST
}

/// Whether nothing in a run judges lines but the rules of the kernel.
fn is_free(head: &RunState) -> bool {
    let is_bound = head.commitments().contract().is_some() || head.commitments().hears_parents();
    head.stage() < Stage::Contracts && head.pack().is_none() && head.policy().is_empty() && !is_bound
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
        let records: Vec<Record> = outcome.records().into_iter().cloned().collect();
        let id = records.first().map(Record::id);
        now.extend(one.id.zip(id));
        one.id = id;
        let mut replies = Vec::with_capacity(1);
        answer(vec![one.number], records, &mut replies);
        recorder.note_judged(&mut replies);
        tell(&one.reply, |told| told.0 = replies.pop());
    }
    Ok(())
}

fn has_moved(error: &Error) -> bool {
    error.code() == Code::E0407
}
