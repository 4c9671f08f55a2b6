//! Lists what a put or a write adds to the messages of a thread: `messages` of its transition.
//!
//! A message is listed once by its id, also if a later checkpoint repeats it or another namespace has it. One without an id is listed when
//! it comes; the put that gives it an id lists it as `repeated`. An interrupt and the failure of a node are messages as well. Reads no
//! bytes: the caller decodes them.
//!
//! Rule: the list is derived from what this transition and those before it have on record, so another process continues it; test
//! `messages_are_listed_once_in_each_line_of_a_thread`.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::record::Record;
use dendrer_object::value::Object;
use dendrer_object::{Digest, MESSAGES, Pointer, Value, json};

use super::Decode;
use super::index::Thread;
use crate::record::redacted;
use crate::redact::Redactor;
use crate::run::thread::{ERROR, INTERRUPT, START, TASKS, agent_of, node_of, node_of_task};

/// Channels of the framework that hold no messages.
const OWN: [&str; 4] = [TASKS, "__resume__", "__scheduled__", "__no_writes__"];

/// Messages that were read from a value of a channel.
#[derive(Debug, Clone, Default)]
pub struct ReadMessages {
    /// The messages, in the form of an imported chat: `role`, and as they have them `id`, `name`, `content`, `calls`, `result`, `usage`.
    pub messages: Vec<Value>,
    /// Parts that may state something that counters read.
    pub not_read: Vec<NotRead>,
}

/// A part of a value that is not read as a message and may state something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRead {
    /// The kind of fact that it may state: `calls`, `failures` or `usage`.
    pub may: &'static str,
    /// The id of the message in it: one that the thread has states nothing new.
    pub id: Option<Arc<str>>,
}

/// A run by number, and a tick of it.
type At = (usize, u64);

/// A message with an id, as a transition has it.
#[derive(Debug, Clone)]
struct Named {
    at: At,
    /// `None` if it was recorded before messages were listed.
    signature: Option<Digest>,
    calls: Vec<Value>,
    usage: [Option<f64>; 2],
}

/// A message without an id.
#[derive(Debug)]
struct Unnamed {
    at: At,
    /// Its place in the list of its transition.
    item: u64,
    /// The transitions that give it an id.
    named: Vec<At>,
}

/// A task that failed.
#[derive(Debug)]
struct Failed {
    at: At,
    namespace: Arc<str>,
    said: Digest,
    /// The transitions in which the node around it fails by it.
    again: Vec<At>,
}

/// A namespace, and the signature of a message.
type Said = (Arc<str>, Digest);

/// The messages of a thread.
#[derive(Debug, Default)]
pub(super) struct MessageIndex {
    /// Whether a transition with a list was met.
    has_list: bool,
    /// The transitions with messages that are not listed: they were recorded before messages were.
    unlisted: Vec<At>,
    named: BTreeMap<Arc<str>, Vec<Named>>,
    unnamed: BTreeMap<Said, Vec<Unnamed>>,
    interrupts: BTreeMap<Digest, Vec<At>>,
    /// The tools of calls, by the id of the call.
    tools: BTreeMap<Arc<str>, Vec<(At, Arc<str>)>>,
    failed: Vec<Failed>,
    /// The places of which it was noted that they may state something.
    noted: BTreeMap<Arc<str>, Vec<At>>,
    /// The nodes of the tasks that were asked for, by namespace and checkpoint.
    sends: BTreeMap<(Arc<str>, Arc<str>), Vec<Arc<str>>>,
    /// By namespace, the newest checkpoint whose writes ask for tasks, and their nodes by the path of the task that asks: what it
    /// leads to may be written to before it is put.
    asked: BTreeMap<Arc<str>, (Arc<str>, BTreeMap<Arc<str>, Vec<Arc<str>>>)>,
    /// How often each message without an id is in a channel that this process put last.
    held: BTreeMap<(Arc<str>, Arc<str>), BTreeMap<Digest, u64>>,
}

/// The transitions that a new one follows.
#[derive(Debug, Clone, Copy)]
pub(super) enum View {
    /// Those of a run, by number.
    Run(usize),
    /// Those of a run up to a tick.
    Upto(usize, u64),
    /// None.
    Nothing,
}

/// A value that a channel is given.
pub(super) struct Given {
    pub(super) channel: Arc<str>,
    /// The whole of it, or the items that a list grew by; `None` if it cannot be decoded.
    pub(super) value: Option<Value>,
    pub(super) is_grown: bool,
}

/// The source of what is given.
pub(super) enum From<'p> {
    /// A checkpoint.
    Put,
    /// A task, by its path, with the checkpoint that it writes to.
    Task { path: &'p str, checkpoint: &'p Arc<str> },
}

/// The list of new messages, and the notes.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// The node that writes, after the nodes around it; `None` for a put and for a task without a node.
    pub(super) agent: Option<String>,
    pub(super) messages: Vec<Value>,
    pub(super) noted: Vec<Value>,
    held: Vec<(Arc<str>, BTreeMap<Digest, u64>)>,
}

/// Lists the new messages of the values that channels of a namespace are given.
pub(super) fn list(
    thread: &Thread,
    view: View,
    namespace: &Arc<str>,
    from: &From<'_>,
    given: &[Given],
    (decode, redactor): (&dyn Decode, &Redactor),
) -> Listed {
    let node = match from {
        From::Put => None,
        From::Task { path, checkpoint, .. } => {
            node_of(path, &thread.messages.nodes_at(namespace, checkpoint))
        }
    };
    let agent = node.map(|node| agent_of(namespace, &node));
    // A put may come before a write that it has already.
    let late = match (from, view) {
        (From::Task { checkpoint, .. }, View::Run(run)) => thread
            .follower(run, namespace, checkpoint)
            .and_then(|follower| thread.stored(namespace, follower))
            .map(|stored| stored.tick),
        _ => None,
    };
    let mut lister = Lister {
        thread,
        view,
        namespace,
        agent,
        late,
        redactor,
        here: Here::default(),
        done: Listed::default(),
    };
    if thread.messages.unlisted.iter().any(|at| lister.sees(*at)) {
        // They may have stated anything, and earlier counters do not have them.
        lister.note("not_read", "", &["calls", "failures", "usage"]);
    }
    for one in given {
        match from {
            From::Put => lister.put(one, decode),
            From::Task { .. } => lister.write(one, decode),
        }
    }
    lister.add_node();
    Listed { agent: lister.agent, ..lister.done }
}

/// The messages that the new transition lists.
#[derive(Default)]
struct Here {
    named: BTreeMap<Arc<str>, Named>,
    unnamed: BTreeMap<Digest, u64>,
    tools: BTreeMap<Arc<str>, Arc<str>>,
    /// The messages without an id that were given one.
    taken: Vec<(At, u64)>,
}

struct Lister<'l> {
    thread: &'l Thread,
    view: View,
    namespace: &'l Arc<str>,
    agent: Option<String>,
    /// The tick of the put that has what is written, if it came first.
    late: Option<u64>,
    redactor: &'l Redactor,
    here: Here,
    done: Listed,
}

impl Lister<'_> {
    fn sees(&self, (run, tick): At) -> bool {
        match self.view {
            View::Run(own) => self.thread.sees(own, run, tick),
            View::Upto(own, upto) => self.thread.sees(own, run, tick) && (run != own || tick <= upto),
            View::Nothing => false,
        }
    }

    fn put(&mut self, given: &Given, decode: &dyn Decode) {
        let place = (Arc::clone(self.namespace), Arc::clone(&given.channel));
        let before = match given.is_grown {
            true => self.thread.messages.held.get(&place).cloned().unwrap_or_default(),
            false => BTreeMap::new(),
        };
        let found = self.read(given, decode);
        // A message without an id is new if the channel has it more often than it was listed.
        let mut has = before;
        for message in found {
            match id_of(&message) {
                Some(id) => self.take_named(&id, message),
                None => {
                    let said = signature(&message);
                    let count = has.entry(said).or_default();
                    *count += 1;
                    let listed = self.listed(&said) + self.here.unnamed.get(&said).copied().unwrap_or(0);
                    if *count > listed {
                        self.push_unnamed(said, message);
                    }
                }
            }
        }
        self.done.held.push((Arc::clone(&given.channel), has));
    }

    fn write(&mut self, given: &Given, decode: &dyn Decode) {
        match &*given.channel {
            INTERRUPT => self.take_interrupts(given.value.as_ref()),
            ERROR => self.take_error(given.value.as_ref()),
            _ => {
                let mut has: BTreeMap<Digest, u64> = BTreeMap::new();
                for message in self.read(given, decode) {
                    match id_of(&message) {
                        Some(id) => self.take_named(&id, message),
                        None => {
                            let said = signature(&message);
                            let count = has.entry(said).or_default();
                            *count += 1;
                            // One message that is written to two channels is one.
                            let is_here = *count <= self.here.unnamed.get(&said).copied().unwrap_or(0);
                            if !is_here && !self.was_put(&said) {
                                self.push_unnamed(said, message);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Reads the messages of a channel, without their secrets, and notes what else it may state.
    fn read(&mut self, given: &Given, decode: &dyn Decode) -> Vec<Value> {
        if OWN.contains(&&*given.channel) || given.channel.starts_with("branch:") {
            return Vec::new();
        }
        let Some(value) = &given.value else {
            self.note("message_unreadable", &given.channel, &["calls", "failures", "usage"]);
            return Vec::new();
        };
        let found = match value.as_object().filter(|_| *given.channel == *START) {
            // The input of a graph names channels.
            Some(channels) => {
                let each = channels.iter().map(|(_, value)| decode.messages(value));
                each.fold(ReadMessages::default(), |mut all, one| {
                    all.messages.extend(one.messages);
                    all.not_read.extend(one.not_read);
                    all
                })
            }
            None => decode.messages(value),
        };
        let messages: Vec<Value> =
            found.messages.iter().map(|message| redacted::value(self.redactor, message)).collect();
        let is_known = |one: &NotRead| one.id.as_ref().is_some_and(|id| self.known(id).is_some());
        let mut may: Vec<&str> =
            found.not_read.iter().filter(|one| !is_known(one)).map(|one| one.may).collect();
        may.sort_unstable();
        may.dedup();
        if !may.is_empty() {
            self.note("not_read", &given.channel, &may);
        }
        messages
    }

    fn note(&mut self, kind: &str, channel: &str, may: &[&str]) {
        let path = match channel {
            "" => Pointer::of(["values"]),
            channel => super::place_of(self.namespace, channel),
        };
        let noted = self.thread.messages.noted.get(path.as_str());
        let is_noted = noted.is_some_and(|noted| noted.iter().any(|at| self.sees(*at)));
        let path = redacted::value(self.redactor, &Value::from(path.as_str()));
        if is_noted || self.done.noted.iter().any(|one| one.get("path") == Some(&path)) {
            return;
        }
        self.done.noted.push(Value::record([
            ("gap", Value::Bool(true)),
            ("kind", Value::from(kind)),
            ("may", Value::array(may.iter().map(|word| Value::from(*word)))),
            ("path", path),
        ]));
    }

    /// The message with an id, as the transitions that are seen have it: the signature of its newest version, every call, and all usage.
    fn known(&self, id: &str) -> Option<Named> {
        let seen = self.thread.messages.named.get(id).into_iter().flatten().filter(|one| self.sees(one.at));
        let mut versions = seen.chain(self.here.named.get(id)).cloned();
        let first = versions.next()?;
        Some(versions.fold(first, |known, next| Named {
            at: next.at,
            signature: next.signature,
            calls: known.calls.into_iter().chain(next.calls).collect(),
            usage: [0, 1].map(|at| match (known.usage[at], next.usage[at]) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            }),
        }))
    }

    fn take_named(&mut self, id: &Arc<str>, message: Value) {
        let said = signature(&message);
        if is_removal(&message) {
            return self.push(message);
        }
        match self.known(id) {
            Some(known) if known.signature.is_none_or(|known| known == said) => {}
            Some(known) => {
                let edited = edited(message, &known);
                self.keep_named(id, said, &edited);
                self.push(edited);
            }
            None => match self.unnamed(&said) {
                Some((at, item)) => {
                    self.here.taken.push((at, item));
                    self.keep_named(id, said, &message);
                    let of = Value::record([("item", Value::from(item)), ("tick", Value::from(at.1))]);
                    let role = message.get("role").cloned().unwrap_or(Value::Null);
                    self.push(Value::record([
                        ("id", Value::from(&**id)),
                        ("of", of),
                        ("repeated", Value::Bool(true)),
                        ("role", role),
                    ]));
                }
                None => {
                    self.keep_named(id, said, &message);
                    self.push(message);
                }
            },
        }
    }

    fn keep_named(&mut self, id: &Arc<str>, signature: Digest, message: &Value) {
        let own = Named {
            at: (usize::MAX, u64::MAX),
            signature: Some(signature),
            calls: calls_of(message),
            usage: usage_of(message),
        };
        match self.here.named.get_mut(id) {
            None => drop(self.here.named.insert(Arc::clone(id), own)),
            Some(known) => {
                known.signature = own.signature;
                known.calls.extend(own.calls);
            }
        }
    }

    /// The oldest equal message without an id that was given none since.
    fn unnamed(&self, said: &Digest) -> Option<(At, u64)> {
        let all = self.thread.messages.unnamed.get(&(Arc::clone(self.namespace), *said))?;
        let open = |one: &&Unnamed| {
            self.sees(one.at)
                && !one.named.iter().any(|at| self.sees(*at))
                && !self.here.taken.contains(&(one.at, one.item))
        };
        all.iter().find(open).map(|one| (one.at, one.item))
    }

    /// How often a message without an id was listed.
    fn listed(&self, said: &Digest) -> u64 {
        let all = self.thread.messages.unnamed.get(&(Arc::clone(self.namespace), *said));
        let seen = all.into_iter().flatten().filter(|one| self.sees(one.at));
        seen.filter(|one| !one.named.iter().any(|at| self.sees(*at))).count() as u64
    }

    /// Whether the put that follows a write came first, and has the message by its id.
    fn was_put(&self, said: &Digest) -> bool {
        let Some(late) = self.late else { return false };
        let named = self.thread.messages.named.values().flatten();
        let unnamed =
            self.thread.messages.unnamed.get(&(Arc::clone(self.namespace), *said)).into_iter().flatten();
        let is_new = |at: At| at.1 >= late && self.sees(at);
        named.filter(|one| one.signature == Some(*said)).any(|one| is_new(one.at))
            || unnamed.into_iter().any(|one| is_new(one.at))
    }

    fn push_unnamed(&mut self, said: Digest, message: Value) {
        *self.here.unnamed.entry(said).or_default() += 1;
        self.push(message);
    }

    fn take_interrupts(&mut self, value: Option<&Value>) {
        let single = value.filter(|value| value.as_array().is_none());
        let listed = value.and_then(Value::as_array).into_iter().flat_map(|list| list.iter());
        for one in single.into_iter().chain(listed) {
            let content = one.get("value").unwrap_or(one).clone();
            let mut members = vec![("content", content), ("role", Value::from("interrupt"))];
            members.extend(one.get("id").and_then(Value::as_str).map(|id| ("id", Value::from(id))));
            let message = redacted::value(self.redactor, &Value::record(members));
            let known = self.thread.messages.interrupts.get(&interrupt_signature(&message));
            // It is raised once more by each node around the one that asks.
            if !known.is_some_and(|known| known.iter().any(|at| self.sees(*at))) {
                self.push(message);
            }
        }
    }

    fn take_error(&mut self, value: Option<&Value>) {
        let result = Value::record([("status", Value::from("error")), ("status_from", Value::from("flag"))]);
        let mut members = vec![("result", result), ("role", Value::from("error"))];
        members.extend(value.map(|value| ("content", value.clone())));
        let message = redacted::value(self.redactor, &Value::record(members));
        let inner = self
            .thread
            .messages
            .inner_failure(self.namespace, &failure_signature(&message), &|at| self.sees(at));
        let Value::Object(mut members) = message else { return };
        // The failure of a node inside of a node is one.
        if inner.is_some() {
            members.set("repeated", Value::Bool(true));
        }
        self.push(Value::Object(members));
    }

    /// Adds a message, with who speaks and the tool of a result.
    fn push(&mut self, message: Value) {
        let Value::Object(mut members) = message else { return };
        let word = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        let role = word("role").unwrap_or_default();
        let is_repeated = members.get("repeated").is_some() && role != "error";
        let speaker = self.agent.clone().or_else(|| word("name")).unwrap_or(role);
        if !is_repeated && !is_removal(&Value::Object(members.clone())) {
            members.set("agent", Value::from(&*speaker));
        }
        if let Some(result) = members.get("result").and_then(Value::as_object)
            && result.get("tool").is_none()
            && let Some(tool) = result.get("call_id").and_then(Value::as_str).and_then(|id| self.tool_of(id))
        {
            let mut result = result.clone();
            result.set("tool", Value::from(&*tool));
            members.set("result", Value::Object(result));
        }
        let message = Value::Object(members);
        for (id, tool) in tools_of(&message) {
            self.here.tools.insert(id, tool);
        }
        self.done.messages.push(message);
    }

    /// The tool of the newest call with an id.
    fn tool_of(&self, call: &str) -> Option<Arc<str>> {
        self.here.tools.get(call).cloned().or_else(|| {
            let known = self.thread.messages.tools.get(call)?;
            known.iter().rev().find(|(at, _)| self.sees(*at)).map(|(_, tool)| Arc::clone(tool))
        })
    }

    /// Names the node of a task without messages.
    fn add_node(&mut self) {
        let Some(agent) = &self.agent else { return };
        let agent = Value::from(&**agent);
        if !self.done.messages.iter().any(|message| message.get("agent") == Some(&agent)) {
            self.done.messages.push(Value::record([("agent", agent), ("role", Value::from("node"))]));
        }
    }
}

impl MessageIndex {
    /// Takes in the messages of a transition.
    pub(super) fn apply(&mut self, at: At, namespace: &Arc<str>, record: &Record) {
        let body = record.body();
        let noted = body.value("/anomalies");
        for note in noted.as_ref().and_then(Value::as_array).into_iter().flat_map(|list| list.iter()) {
            if let Some(path) = note.get("path").and_then(Value::as_str) {
                self.noted.entry(path.into()).or_default().push(at);
            }
        }
        let Some(messages) = body.value(&format!("/{MESSAGES}")) else {
            if !self.has_list {
                self.apply_unlisted(at, record);
            }
            return;
        };
        self.has_list = true;
        for (item, message) in messages.as_array().into_iter().flat_map(|list| list.iter()).enumerate() {
            self.apply_message(at, item as u64, namespace, message);
        }
    }

    /// Takes in the ids of messages that a channel is given, of a transition without a list.
    fn apply_unlisted(&mut self, at: At, record: &Record) {
        let mut ids = Vec::new();
        let values = record.delta().into_iter().flat_map(|delta| delta.0).filter_map(|op| op.value);
        values.for_each(|value| ids_in(&value, &mut ids));
        if !ids.is_empty() {
            self.unlisted.push(at);
        }
        for id in ids {
            let old = Named { at, signature: None, calls: Vec::new(), usage: [None; 2] };
            self.named.entry(id).or_default().push(old);
        }
    }

    fn apply_message(&mut self, at: At, item: u64, namespace: &Arc<str>, message: &Value) {
        for (id, tool) in tools_of(message) {
            self.tools.entry(id).or_default().push((at, tool));
        }
        match message.get("role").and_then(Value::as_str) {
            Some("node" | "remove") => return,
            Some("interrupt") => {
                return self.interrupts.entry(interrupt_signature(message)).or_default().push(at);
            }
            Some("error") => return self.apply_error(at, namespace, message),
            _ => {}
        }
        let Some(id) = id_of(message) else {
            let said = (Arc::clone(namespace), signature(message));
            return self.unnamed.entry(said).or_default().push(Unnamed { at, item, named: Vec::new() });
        };
        let mut named = Named {
            at,
            signature: Some(signature(message)),
            calls: calls_of(message),
            usage: usage_of(message),
        };
        // Its signature is that of the message that it gives an id to.
        if let Some(of) = message.get("of") {
            let place = of.get("tick").and_then(Value::as_u64).zip(of.get("item").and_then(Value::as_u64));
            let found = self.unnamed.iter_mut().find_map(|((_, said), all)| {
                let one = all.iter_mut().find(|one| Some((one.at.1, one.item)) == place);
                one.map(|one| (*said, one))
            });
            let Some((said, one)) = found else { return };
            one.named.push(at);
            named.signature = Some(said);
        }
        self.named.entry(id).or_default().push(named);
    }

    fn apply_error(&mut self, at: At, namespace: &Arc<str>, message: &Value) {
        let said = failure_signature(message);
        if message.get("repeated").is_some()
            && let Some(inner) = self.inner_failure(namespace, &said, &|_| true)
        {
            self.failed[inner].again.push(at);
        }
        self.failed.push(Failed { at, namespace: Arc::clone(namespace), said, again: Vec::new() });
    }

    /// The newest failure with the same text in a namespace directly inside of one, if no node around it has failed by it yet.
    fn inner_failure(&self, around: &str, said: &Digest, sees: &dyn Fn(At) -> bool) -> Option<usize> {
        let is_inside = |namespace: &str| {
            let inside = match around.is_empty() {
                true => Some(namespace),
                false => namespace.strip_prefix(around).and_then(|rest| rest.strip_prefix('|')),
            };
            inside.is_some_and(|inside| !inside.is_empty() && !inside.contains('|'))
        };
        self.failed.iter().rposition(|one| {
            one.said == *said
                && is_inside(&one.namespace)
                && sees(one.at)
                && !one.again.iter().any(|at| sees(*at))
        })
    }

    /// The nodes of the tasks that a checkpoint asks for.
    fn nodes_at(&self, namespace: &Arc<str>, checkpoint: &Arc<str>) -> Vec<Arc<str>> {
        if let Some(nodes) = self.sends.get(&(Arc::clone(namespace), Arc::clone(checkpoint))) {
            return nodes.clone();
        }
        let asked = self.asked.get(namespace).filter(|(before, _)| **before < **checkpoint);
        asked.map_or_else(Vec::new, |(_, paths)| paths.values().flatten().cloned().collect())
    }

    /// Keeps the nodes of the tasks that a task asks for.
    pub(super) fn keep_asked(
        &mut self,
        namespace: &Arc<str>,
        checkpoint: &Arc<str>,
        path: Arc<str>,
        values: &Value,
    ) {
        let values = values.as_array().into_iter().flat_map(|list| list.iter());
        let tasks = values.filter(|one| one.get("channel").and_then(Value::as_str) == Some(TASKS));
        let nodes = tasks.map(|one| one.get("value").and_then(node_of_task).unwrap_or_default());
        let nodes: Vec<Arc<str>> = nodes.collect();
        if nodes.is_empty() {
            return;
        }
        let known = self
            .asked
            .entry(Arc::clone(namespace))
            .or_insert_with(|| (Arc::clone(checkpoint), BTreeMap::new()));
        if known.0 != *checkpoint {
            *known = (Arc::clone(checkpoint), BTreeMap::new());
        }
        known.1.insert(path, nodes);
    }

    /// Keeps the nodes of the tasks that a checkpoint asks for: after those of the checkpoint `before`, if it is named.
    pub(super) fn keep_sends(
        &mut self,
        namespace: &Arc<str>,
        checkpoint: &Arc<str>,
        before: Option<&Arc<str>>,
        tasks: &Value,
    ) {
        let of = |checkpoint: &Arc<str>| (Arc::clone(namespace), Arc::clone(checkpoint));
        let mut nodes = before.and_then(|before| self.sends.get(&of(before)).cloned()).unwrap_or_default();
        nodes.extend(
            tasks
                .as_array()
                .into_iter()
                .flat_map(|list| list.iter())
                .map(|task| node_of_task(task).unwrap_or_default()),
        );
        self.sends.insert(of(checkpoint), nodes);
    }

    /// Keeps what the channels of a put hold now.
    pub(super) fn hold(&mut self, namespace: &Arc<str>, listed: Listed) {
        for (channel, held) in listed.held {
            self.held.insert((Arc::clone(namespace), channel), held);
        }
    }
}

fn id_of(message: &Value) -> Option<Arc<str>> {
    message.get("id").and_then(Value::as_str).map(Arc::from)
}

/// The ids of the messages in a value of a channel.
fn ids_in(value: &Value, ids: &mut Vec<Arc<str>>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| ids_in(item, ids)),
        Value::Object(members) => {
            let says = |name: &str| members.get(name).is_some_and(|value| value.as_str().is_some());
            if members.contains_key("content") && (says("type") || says("role")) {
                ids.extend(id_of(value));
            }
        }
        _ => {}
    }
}

fn is_removal(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str) == Some("remove")
}

fn calls_of(message: &Value) -> Vec<Value> {
    let calls = message.get("calls").and_then(Value::as_array);
    calls.into_iter().flat_map(|calls| calls.iter().cloned()).collect()
}

fn usage_of(message: &Value) -> [Option<f64>; 2] {
    USAGE.map(|name| message.get("usage")?.get(name)?.as_f64())
}

/// The members of a usage.
const USAGE: [&str; 2] = ["tokens_used", "cost_usd"];

/// The tools that a message calls, by the id of the call.
fn tools_of(message: &Value) -> Vec<(Arc<str>, Arc<str>)> {
    let text = |call: &Value, name: &str| call.get(name).and_then(Value::as_str).map(Arc::<str>::from);
    calls_of(message).iter().filter_map(|call| text(call, "call_id").zip(text(call, "tool"))).collect()
}

/// A digest of the content of a message: agent, id and what is added here make no difference.
fn signature(message: &Value) -> Digest {
    let mut said = message.as_object().cloned().unwrap_or_default();
    for name in ["agent", "edited", "id", "usage"] {
        said.remove(name);
    }
    if let Some(calls) = said.get("calls").and_then(Value::as_array) {
        let calls = Value::array(calls.iter().map(|call| without(call, "repeated")));
        said.set("calls", calls);
    }
    if let Some(result) = said.get("result").map(|result| without(result, "tool")) {
        said.set("result", result);
    }
    Digest::of(&json::to_vec(&Value::Object(said)))
}

fn interrupt_signature(message: &Value) -> Digest {
    Digest::of(&json::to_vec(&without(message, "agent")))
}

/// A digest of the text of a failure.
fn failure_signature(message: &Value) -> Digest {
    let text = message.get("content").map(json::to_vec).unwrap_or_default();
    Digest::of(&text)
}

fn without(value: &Value, name: &str) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let mut members: Object = members.clone();
    members.remove(name);
    Value::Object(members)
}

/// A message with other content under an id that is known: earlier calls are repeated, and usage is the difference.
fn edited(message: Value, known: &Named) -> Value {
    let Value::Object(mut members) = message else { return message };
    members.set("edited", Value::Bool(true));
    let is_same = |call: &Value, other: &Value| match call.get("call_id") {
        Some(id) => other.get("call_id") == Some(id),
        None => call == other,
    };
    let calls: Vec<Value> = calls_of(&Value::Object(members.clone()));
    let calls =
        calls.into_iter().map(|call| match (known.calls.iter().any(|other| is_same(&call, other)), call) {
            (true, Value::Object(mut call)) => {
                call.set("repeated", Value::Bool(true));
                Value::Object(call)
            }
            (_, call) => call,
        });
    let calls: Vec<Value> = calls.collect();
    if !calls.is_empty() {
        members.set("calls", Value::array(calls));
    }
    let stated = usage_of(&Value::Object(members.clone()));
    let usage: Vec<(&str, Value)> = (0..USAGE.len())
        .filter_map(|at| {
            let differs = stated[at]? - known.usage[at].unwrap_or(0.0);
            (differs != 0.0).then(|| (USAGE[at], Value::from(differs)))
        })
        .collect();
    members.remove("usage");
    if !usage.is_empty() {
        members.set("usage", Value::record(usage));
    }
    Value::Object(members)
}
