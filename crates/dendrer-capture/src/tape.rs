//! Makes transitions of what passed: each message once, each answer, each call that failed.
//!
//! Rule: nothing that is wrong with a copy stops the record, and nothing that is wrong with the record stops the program. A
//! missing part is marked in its place, and counted.

mod mcp;
mod servers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dendrer::Trace;
use dendrer::kernel::step::Outcome;
use dendrer::recorder::Recorder;
use dendrer::vault::{Vault, VaultRef};
use dendrer_object::record::Record;
use dendrer_object::value::Object;
use dendrer_object::{Digest, Intent, RunName, TypeName, UNATTESTED, Value, json};
use dendrer_wire::ImportError;
use tokio::sync::oneshot;

use crate::api::{self, Api};
use crate::around::AroundPeer;
use crate::bases::Base;
use crate::body::{self, BodyFault};
use crate::conversation::{Conversations, Place};
use crate::exact;
use crate::exchange::{AnsweredCall, AskedCall, CallNumber, CopiedBody, Ended, FAILED};
use crate::mcp::is_mcp;
use crate::proxy::PassedCopy;
use crate::read::{self, ReadAnswer};
use crate::spoken::Said;
use crate::volatile::VolatilePlace;

use self::servers::{Claim, McpTape};

/// The author of what no agent said.
const RUNTIME: &str = "dendrer";

/// How many bytes of a body that no API is read of are kept in the record.
const OTHER_MAX: usize = 64 << 10;

/// Counts of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TapeTally {
    /// Agents that were distinguished.
    pub agents: u64,
    /// Calls over HTTP, and those to servers of MCP.
    pub calls: u64,
    /// Calls that failed, or were not answered to their end.
    pub failed: u64,
    /// Parts that are missing.
    pub gaps: u64,
}

/// Why nothing more is recorded.
#[derive(Debug, thiserror::Error)]
pub enum TapeError {
    /// The store or the kernel did not take a record.
    #[error(transparent)]
    Record(#[from] dendrer::Error),
    /// A message could not be read.
    #[error(transparent)]
    Message(#[from] ImportError),
}

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramEnd {
    /// Its exit code; `None` if a signal ended it.
    pub exit: Option<u8>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Requests to the server without its token.
    pub refused: u64,
    /// The other addresses that it asked; `None` if they were not looked at.
    pub around: Option<Vec<AroundPeer>>,
}

/// The metadata of the run of a program: its command, the variables of its APIs, the commands that are read as servers of MCP,
/// volatile places, and what records it.
pub fn meta(
    command: &[String],
    bases: &[Base],
    servers: &[String],
    volatile: &[VolatilePlace],
    recorder: &str,
) -> Value {
    let volatile = volatile.iter().map(|place| Value::from(place.to_string()));
    let volatile = (volatile.len() > 0).then(|| ("volatile", Value::array(volatile)));
    let capture = [
        ("argv", Value::array(command.iter().map(|word| Value::from(word.as_str())))),
        ("bases", Value::array(bases.iter().map(Base::to_value))),
        ("mcp", Value::array(servers.iter().map(|name| Value::from(name.as_str())))),
        ("program", Value::from(recorder)),
    ];
    Value::record([("capture", Value::record(capture.into_iter().chain(volatile)))])
}

/// The recording of one program.
pub struct Tape {
    recorder: Recorder,
    run: RunName,
    vault: Option<Vault>,
    /// Ends of answers that are let go once what came before is durable.
    due: Vec<oneshot::Sender<()>>,
    /// Places of requests that are left out when one is known again.
    volatile: Vec<VolatilePlace>,
    conversations: Conversations,
    /// Calls that are not answered yet.
    open: BTreeMap<CallNumber, Open>,
    mcp: McpTape,
    tally: TapeTally,
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tape").field("run", &self.run).field("tally", &self.tally).finish_non_exhaustive()
    }
}

/// A call that is not answered yet.
struct Open {
    api: Option<&'static Api>,
    asked: AskedCall,
    /// Its conversation, if its request was read.
    place: Option<Place>,
    /// Terms that no message of the request carries.
    terms: Option<Value>,
    /// The call before it, if that failed and this one asks the same.
    retry_of: Option<CallNumber>,
    exact: Option<VaultRef>,
    /// A keyed digest, by which the same request is known again.
    known: Option<Digest>,
    /// The records of the request, if it is read from the record.
    recorded: Option<RecordedItems>,
    /// Results over MCP that its request repeats.
    seen_again: Vec<Value>,
}

impl Open {
    /// Whether it is a call of an API that has not failed.
    fn is_of(&self, api: &Api) -> bool {
        self.api.is_some_and(|own| own.name == api.name)
    }
}

/// The records that a part of a call has already.
type RecordedItems = VecDeque<Digest>;

impl Tape {
    /// Begins to record with a recorder of a new run. With a vault, exact bytes are kept in it.
    pub fn new(recorder: Recorder, vault: Option<Vault>) -> Tape {
        let run = recorder.head().run().clone();
        let (conversations, tally) = (Conversations::default(), TapeTally::default());
        let (volatile, mcp) = (Vec::new(), McpTape::default());
        let due = Vec::new();
        Tape { recorder, run, vault, due, volatile, conversations, open: BTreeMap::new(), mcp, tally }
    }

    /// Leaves out places when a request is known again.
    pub fn without(mut self, volatile: Vec<VolatilePlace>) -> Tape {
        self.volatile = volatile;
        self
    }

    /// The counts so far.
    pub fn tally(&self) -> TapeTally {
        TapeTally { agents: self.conversations.agents(), ..self.tally.clone() }
    }

    /// The recorder.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Takes a copy, and returns the records that are durable by now.
    ///
    /// # Errors
    ///
    /// The store or the kernel does not take a record; none of this copy is on record then.
    pub fn take(&mut self, seen: PassedCopy) -> Result<Vec<Record>, TapeError> {
        match self.in_turn(seen) {
            Ok(()) => {
                let records = self.recorder.commit()?;
                // Ignored: the program waits no more.
                for due in self.due.drain(..) {
                    let _ = due.send(());
                }
                Ok(records)
            }
            Err(error) => {
                self.due.clear();
                self.recorder.discard();
                Err(error)
            }
        }
    }

    fn one(&mut self, seen: PassedCopy) -> Result<(), TapeError> {
        match seen {
            PassedCopy::Asked(asked) => self.asked(asked, None),
            PassedCopy::Failing(call) => {
                self.failing(call);
                Ok(())
            }
            PassedCopy::Answered(answered) => {
                self.answered(answered, None)?;
                self.settle()
            }
            PassedCopy::Due(due) => {
                self.due.push(due);
                Ok(())
            }
            PassedCopy::Mcp(copy) => self.take_mcp(copy),
        }
    }

    /// Ends the run: records the end of the program, and closes it.
    ///
    /// # Errors
    ///
    /// As [`Tape::take`].
    pub fn end(&mut self, end: &ProgramEnd) -> Result<Vec<Record>, TapeError> {
        self.end_mcp()?;
        // Calls that were not answered when the program ended.
        while let Some(call) = self.open.keys().next().copied() {
            let (body, ended) = (CopiedBody::default(), Ended::Program);
            self.answered(AnsweredCall { call, at: 0, head: None, body, ended }, None)?;
        }
        let around = end.around.as_ref().map(|peers| Value::array(peers.iter().map(AroundPeer::to_value)));
        let ended = Value::record([
            ("around", around.unwrap_or(Value::Null)),
            ("calls", Value::from(self.tally.calls)),
            ("exit", end.exit.map_or(Value::Null, |exit| Value::from(u64::from(exit)))),
            ("refused", Value::from(end.refused)),
            ("signal", end.signal.map_or(Value::Null, |signal| Value::from(i64::from(signal)))),
        ]);
        let words = Value::record([("ended", ended)]);
        self.propose(observation(RUNTIME).with("intent", words))?;
        self.recorder.end()?;
        Ok(self.recorder.commit()?)
    }

    /// Continues from a tick of another run, whose fork the recorder writes: reads again the calls up to there, so that later
    /// requests continue their conversations. Messages that are on record are not recorded again.
    ///
    /// # Errors
    ///
    /// A record of the parent cannot be read, or as for [`Tape::take`].
    pub fn resume(mut self, parent: &Trace, tick: u64) -> Result<Tape, TapeError> {
        let Some(vault) = self.vault.take() else { return Ok(self) };
        let mut parts: Vec<(RecordedPart, RecordedItems)> = Vec::new();
        for at in 1..=tick {
            let record = parent.record(at)?;
            let Some(part) = RecordedPart::of(&record) else { continue };
            let known = parts
                .iter_mut()
                .find(|(known, _)| known.call == part.call && known.is_answer == part.is_answer);
            match known {
                Some((_, items)) => items.push_back(record.id()),
                None => parts.push((part, VecDeque::from([record.id()]))),
            }
        }
        self.mcp.resume(parent, tick)?;
        let mut asked = BTreeSet::new();
        for (part, items) in parts {
            let bytes = |name: &str| vault.get(&part.run, &exact::locator(part.call, name)).ok();
            if asked.insert(part.call) {
                let request = bytes("request").and_then(|bytes| exact::read_request(part.call, &bytes));
                let Some(request) = request else { continue };
                let recorded = if part.is_answer { RecordedItems::new() } else { items.clone() };
                self.asked(request, Some(recorded))?;
            }
            if part.is_answer {
                let answer = bytes("answer").and_then(|bytes| exact::ServedAnswer::read(&bytes));
                let Some(answer) = answer else { continue };
                self.answered(answer.as_answered(part.call), Some(items))?;
            }
        }
        self.open.clear();
        self.mcp.resumed();
        self.tally = TapeTally::default();
        self.vault = Some(vault);
        self.recorder.commit()?;
        Ok(self)
    }

    fn propose(&mut self, intent: Intent) -> Result<Digest, dendrer::Error> {
        propose(&mut self.recorder, intent)
    }

    /// Puts exact bytes into the vault. Nothing is kept without its key, or if they are too many.
    fn keep(&mut self, call: CallNumber, part: &str, bytes: &[u8]) -> Option<VaultRef> {
        self.vault.as_mut()?.put(&self.run, &exact::locator(call, part), bytes).ok()
    }

    /// As [`Tape::keep`], for a body. One that was not copied whole is not exact.
    fn keep_whole(
        &mut self,
        call: CallNumber,
        part: &str,
        body: &CopiedBody,
        bytes: impl FnOnce() -> Vec<u8>,
    ) -> Option<VaultRef> {
        if body.left_out > 0 { None } else { self.keep(call, part, &bytes()) }
    }

    /// Records a request, or reads it again with the records that it has.
    fn asked(&mut self, asked: AskedCall, recorded: Option<RecordedItems>) -> Result<(), TapeError> {
        self.tally.calls += 1;
        let api = api::of_path(&asked.method, &asked.path);
        let exact = self.keep_whole(asked.call, "request", &asked.body, || exact::of_request(&asked));
        let known = read::known(&asked, &self.volatile);
        let known = self.vault.as_mut().and_then(|vault| vault.known_by(&self.run, &known).ok());
        let (retry_of, seen_again) = (None, Vec::new());
        let mut open =
            Open { api, asked, place: None, terms: None, retry_of, exact, known, recorded, seen_again };
        if let Some(api) = api {
            match read::request(&open.asked) {
                Ok(body) => self.request(api, &mut open, &body)?,
                Err(why) if open.recorded.is_none() => self.gap(open.asked.call, why)?,
                Err(_) => {}
            }
        }
        self.open.insert(open.asked.call, open);
        Ok(())
    }

    /// Records the messages of a request that are new.
    fn request(&mut self, api: &'static Api, open: &mut Open, body: &Object) -> Result<(), TapeError> {
        let request = api.read_request(&open.asked.path, body);
        let (place, new) = self.conversations.find(&request)?;
        let agent = self.conversations.agent(place).to_owned();
        let conversation = self.conversations.at(place);
        let mut terms = conversation.changed(&request.terms);
        let branch = conversation.branch;
        open.retry_of = conversation.failed.take();
        let (recorder, recorded, mcp) = (&mut self.recorder, &mut open.recorded, &mut self.mcp);
        let capture = capture(open.asked.call, api.name, branch, "request");
        let seen_again = &mut open.seen_again;
        let over_mcp = if recorded.is_some() { mcp.told_ids() } else { Vec::new() };
        for kept in new {
            // The messages after the tick of a fork are not of it. A result over MCP has its record elsewhere.
            if recorded.as_ref().is_some_and(VecDeque::is_empty) && !kept.answers_one_of(&over_mcp) {
                break;
            }
            let is_result = kept.is_result();
            let capture = match kept.answers_one_of(&open.asked.changed) {
                true => with_members(capture.clone(), vec![("changed_in_request", Value::from(true))]),
                false => capture.clone(),
            };
            conversation.add(kept, std::slice::from_ref(kept), &mut |intent| {
                let intent = named(intent, &agent);
                let is_claim = is_result && intent.type_name.as_str() == "action.result";
                let claim = if is_claim { mcp.claim(&intent) } else { Claim::New };
                if let Claim::Again(call, record) = claim {
                    seen_again.push(servers::again(call, record));
                    return Ok(record);
                }
                if let Some(id) = recorded.as_mut().and_then(VecDeque::pop_front) {
                    terms.take();
                    mcp.asked(id, branch, &intent);
                    return Ok(id);
                }
                let capture = with_seen(capture.clone(), seen_again);
                let intent = with_word(with_word(intent, "request", terms.take()), "capture", Some(capture));
                match claim {
                    Claim::Differs(call, record) => Tape::differs(recorder, intent, (call, record)),
                    _ if is_claim => propose(recorder, intent.carrying(UNATTESTED, Value::from(true))),
                    _ => {
                        let record = propose(recorder, intent.clone())?;
                        mcp.asked(record, branch, &intent);
                        Ok(record)
                    }
                }
            })?;
        }
        open.terms = terms;
        open.place = Some(Place { shared: conversation.len(), ..place });
        Ok(())
    }

    /// Records an answer, or reads it again with the records that it has.
    fn answered(&mut self, answered: AnsweredCall, recorded: Option<RecordedItems>) -> Result<(), TapeError> {
        let Some(open) = self.open.remove(&answered.call) else { return Ok(()) };
        let exact = self.keep_whole(answered.call, "answer", &answered.body, || exact::of_answer(&answered));
        let exact = [("answer", exact), ("request", open.exact)];
        let exact: Vec<(&str, Value)> =
            exact.into_iter().filter_map(|(part, found)| Some((part, found?.to_value()))).collect();
        let asked = open.known.map(|known| ("asked", Value::from(known)));
        let exact = (!exact.is_empty()).then(|| ("exact", Value::record(exact)));
        let exact: Vec<(&str, Value)> = asked.into_iter().chain(exact).collect();
        let Some(api) = open.api else {
            return if recorded.is_some() { Ok(()) } else { self.other(&open, &answered, exact) };
        };
        let said = said(api, &answered);
        let open = Open { recorded, ..open };
        match (said, open.place) {
            (Ok(said), Some(place)) => self.say(api, open, place, said, exact),
            (Err(_), Some(place)) if open.recorded.is_some() => {
                self.conversations.at(place).failed = Some(answered.call);
                Ok(())
            }
            (Err(_), None) if open.recorded.is_some() => Ok(()),
            (Ok(_), None) if open.recorded.is_some() => Ok(()),
            (Ok(said), None) => self.unplaced(api, answered.call, said, exact),
            (Err(why), _) => self.fail(api, open, &answered, why, exact),
        }
    }

    /// Notes that a call fails: the next request with the same messages asks it again.
    fn failing(&mut self, call: CallNumber) {
        if let Some(place) = self.open.get(&call).and_then(|open| open.place) {
            self.conversations.at(place).failed = Some(call);
        }
    }

    /// Records the answer of a model.
    fn say(
        &mut self,
        api: &'static Api,
        open: Open,
        place: Place,
        said: Said,
        exact: Vec<(&str, Value)>,
    ) -> Result<(), TapeError> {
        // Another answer to the same messages may have come meanwhile.
        let place = self.conversations.branch_at(place)?;
        let agent = self.conversations.agent(place).to_owned();
        let conversation = self.conversations.at(place);
        let branch = conversation.branch;
        let mut capture = capture(open.asked.call, api.name, branch, "answer");
        if open.asked.is_given {
            capture = with_members(capture, vec![("given", Value::from(true))]);
        }
        let mut seen_again = open.seen_again;
        // The first of several records has the exact bytes.
        let mut first = Some(with_seen(with_members(capture.clone(), exact), &mut seen_again));
        let (mut terms, mut recorded, recorder) = (open.terms, open.recorded, &mut self.recorder);
        let mcp = &mut self.mcp;
        conversation.add(&said.answer, &said.items, &mut |intent| {
            let intent = named(intent, &agent);
            if let Some(id) = recorded.as_mut().and_then(VecDeque::pop_front) {
                terms.take();
                mcp.asked(id, branch, &intent);
                return Ok(id);
            }
            let intent = with_word(intent, "request", terms.take());
            let capture = first.take().unwrap_or_else(|| capture.clone());
            let intent = with_word(intent, "capture", Some(capture));
            let record = propose(recorder, intent.clone())?;
            mcp.asked(record, branch, &intent);
            Ok(record)
        })?;
        conversation.failed = None;
        if let Some(id) = said.id {
            self.conversations.answered(place, id);
        }
        Ok(())
    }

    /// Records an answer whose request was not read, so that its agent is not known.
    fn unplaced(
        &mut self,
        api: &'static Api,
        call: CallNumber,
        said: Said,
        exact: Vec<(&str, Value)>,
    ) -> Result<(), TapeError> {
        let capture = with_members(capture(call, api.name, 0, "answer"), exact);
        let words = [("answer", said.answer.value), ("capture", capture)];
        self.propose(observation(RUNTIME).with("intent", Value::record(words)))?;
        Ok(())
    }

    /// Records that a call failed.
    fn fail(
        &mut self,
        api: &'static Api,
        open: Open,
        answered: &AnsweredCall,
        why: Failed,
        exact: Vec<(&str, Value)>,
    ) -> Result<(), TapeError> {
        self.tally.failed += 1;
        let (call, mut agent, mut branch) = (answered.call, RUNTIME.to_owned(), 0);
        if let Some(place) = open.place {
            agent = self.conversations.agent(place).to_owned();
            let conversation = self.conversations.at(place);
            // A call that asked it again may have been answered meanwhile.
            if conversation.len() == place.shared && !answered.is_refused() {
                conversation.failed = Some(call);
            }
            branch = conversation.branch;
        }
        let number = |number: Option<u64>| number.map_or(Value::Null, Value::from);
        let anomaly = Value::record([
            ("ended", Value::from(answered.ended.as_str())),
            ("kind", Value::from("model_call_failed")),
            ("retry_of", number(open.retry_of)),
            ("status", number(answered.head.as_ref().map(|(status, _)| u64::from(*status)))),
        ]);
        let capture = with_members(capture(call, api.name, branch, "answer"), exact);
        let capture = with_seen(capture, &mut { open.seen_again });
        let mut words = vec![("capture", capture)];
        words.extend(why.answer.map(|answer| ("answer", answer)));
        words.extend(open.terms.map(|terms| ("request", terms)));
        let mut intent = observation(&agent).with("intent", Value::record(words));
        intent.noted.push(anomaly);
        if let Some(why) = why.gap {
            self.tally.gaps += 1;
            intent.noted.push(gap_note(call, why));
        }
        self.propose(intent)?;
        Ok(())
    }

    /// Records a call of no API that is read.
    fn other(
        &mut self,
        open: &Open,
        answered: &AnsweredCall,
        exact: Vec<(&str, Value)>,
    ) -> Result<(), TapeError> {
        let is_failed =
            answered.ended != Ended::Whole || status(answered).is_none_or(|status| status >= FAILED);
        self.tally.failed += u64::from(is_failed);
        let path = exact::without_query(&open.asked.path);
        let body = |bytes: &[u8], encoding: Option<&str>| {
            let plain = body::plain(bytes, encoding).ok().filter(|plain| plain.len() <= OTHER_MAX)?;
            json::parse_door(&plain).ok()
        };
        let request = body(&open.asked.body.bytes, open.asked.encoding.as_deref());
        let answer = body(&answered.body.bytes, answered.header("content-encoding"));
        let http = [
            ("answer", answer),
            ("method", Some(Value::from(open.asked.method.as_str()))),
            ("path", Some(Value::from(path))),
            ("request", request),
            ("status", status(answered).map(|status| Value::from(u64::from(status)))),
        ];
        let http = http.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let capture = with_members(capture(answered.call, "http", 0, "answer"), exact);
        let words = Value::record([("capture", capture), ("http", Value::record(http))]);
        let mut intent = observation(RUNTIME).with("intent", words);
        if open.asked.body.left_out > 0 || answered.body.left_out > 0 {
            self.tally.gaps += 1;
            intent.noted.push(gap_note(answered.call, BodyFault::TooLarge.word()));
        }
        self.propose(intent)?;
        Ok(())
    }

    /// Records that a part is missing.
    fn gap(&mut self, call: CallNumber, why: &'static str) -> Result<(), TapeError> {
        self.tally.gaps += 1;
        let words = Value::record([("capture", Value::record([("call", Value::from(call))]))]);
        let mut intent = observation(RUNTIME).with("intent", words);
        intent.noted.push(gap_note(call, why));
        self.propose(intent)?;
        Ok(())
    }
}

/// A part of a call that is on record.
struct RecordedPart {
    call: CallNumber,
    is_answer: bool,
    /// The run under whose name its exact bytes are.
    run: RunName,
}

impl RecordedPart {
    fn of(record: &Record) -> Option<RecordedPart> {
        let content = record.content();
        let capture = content.get("intent")?.get("capture").filter(|capture| !is_mcp(capture))?;
        let is_answer = capture.get("seen")?.as_str()? == "answer";
        Some(RecordedPart {
            call: capture.get("call")?.as_u64()?,
            is_answer,
            run: record.header().run.clone()?,
        })
    }
}

fn propose(recorder: &mut Recorder, intent: Intent) -> Result<Digest, dendrer::Error> {
    match recorder.propose(&intent)? {
        Outcome::Committed(record) | Outcome::Violated { record, .. } => Ok(record.id()),
        // A value that no record takes leaves a gap in its place.
        Outcome::Refused(refused) => {
            let code = refused.reason.code().as_str().to_owned();
            let mut instead = observation(&intent.agent);
            instead.noted.push(Value::record([
                ("code", Value::from(code)),
                ("gap", Value::from(true)),
                ("kind", Value::from("capture_gap")),
            ]));
            match recorder.propose(&instead)? {
                Outcome::Committed(record) | Outcome::Violated { record, .. } => Ok(record.id()),
                Outcome::Refused(_) => Ok(Digest([0; 32])),
            }
        }
    }
}

fn observation(agent: &str) -> Intent {
    let type_name: TypeName = "observation.add".parse().expect("a type of the ontology");
    Intent::new(type_name, agent).by_runtime()
}

/// An intent of a model or of a tool that its agent asked, under the name of the agent. APIs name the model by either word.
fn named(mut intent: Intent, agent: &str) -> Intent {
    if matches!(&*intent.agent, "assistant" | "model") {
        intent.agent = agent.into();
    }
    intent
}

/// Adds a member to `intent.intent`.
fn with_word(intent: Intent, name: &str, value: Option<Value>) -> Intent {
    let Some(value) = value.filter(|value| *value != Value::Null) else { return intent };
    let words = intent.member("intent").cloned().unwrap_or_else(Value::object);
    intent.with("intent", with_members(words, vec![(name, value)]))
}

fn with_members(object: Value, more: Vec<(&str, Value)>) -> Value {
    match object {
        Value::Object(mut members) => {
            more.into_iter().for_each(|(name, value)| members.set(name, value));
            Value::Object(members)
        }
        other => other,
    }
}

/// Adds results over MCP that are repeated.
fn with_seen(capture: Value, seen_again: &mut Vec<Value>) -> Value {
    match seen_again.is_empty() {
        true => capture,
        false => with_members(capture, vec![("seen_again", Value::array(seen_again.drain(..)))]),
    }
}

fn capture(call: CallNumber, api: &str, branch: u64, seen: &str) -> Value {
    Value::record([
        ("api", Value::from(api)),
        ("branch", Value::from(branch)),
        ("call", Value::from(call)),
        ("seen", Value::from(seen)),
    ])
}

fn gap_note(call: CallNumber, why: &str) -> Value {
    Value::record([
        ("calls", Value::array([Value::from(call)])),
        ("gap", Value::from(true)),
        ("kind", Value::from("capture_gap")),
        ("why", Value::from(why)),
    ])
}

fn status(answered: &AnsweredCall) -> Option<u16> {
    answered.head.as_ref().map(|(status, _)| *status)
}

/// Why a call has no answer of a model.
struct Failed {
    /// The error that came, as far as it can be read.
    answer: Option<Value>,
    /// A part that should be there and cannot be read.
    gap: Option<&'static str>,
}

/// Reads an answer.
fn said(api: &Api, answered: &AnsweredCall) -> Result<Said, Failed> {
    let failed = |answer: Option<Value>, gap| Failed { answer, gap };
    let Some(status) = status(answered) else { return Err(failed(None, None)) };
    if answered.body.left_out > 0 {
        return Err(failed(None, Some(BodyFault::TooLarge.word())));
    }
    let (encoding, kind) = (answered.header("content-encoding"), answered.header("content-type"));
    let is_answer = status < FAILED && answered.ended == Ended::Whole;
    match read::answer(api, &answered.body.bytes, encoding, kind) {
        // A stream may be whole before its connection is.
        ReadAnswer::Said(said) if status < FAILED => Ok(*said),
        ReadAnswer::Said(_) => Err(failed(None, None)),
        ReadAnswer::Cut(error) => Err(failed(error, None)),
        ReadAnswer::Other(value) => Err(failed(Some(value), None)),
        ReadAnswer::Unread(why) => Err(failed(None, Some(why).filter(|_| is_answer))),
    }
}
