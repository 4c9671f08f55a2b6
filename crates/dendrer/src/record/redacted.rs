//! Secrets are taken out of what is recorded before it is judged, so the kernel, rules and predicates see what is on record alone
//! (witness-log paper 2.4; design, section 2).
//!
//! Rule: whatever a recorder seals of a caller's text passes here; test `no_canary_is_in_any_file`.

use std::sync::Arc;

use dendrer_kernel::step::Start;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::record::{Body, Record, Seed, cut};
use dendrer_object::value::Object;
use dendrer_object::{Intent, Pointer, REDACTION, Value};

use crate::redact::{Redactor, TakenSecrets};

/// The value of the member [`REDACTION`] of a record.
pub fn sealed(redactor: &Redactor, taken: &TakenSecrets) -> Value {
    let rules = redactor.rules();
    let counts = taken.iter().map(|(kind, count)| (Arc::<str>::from(kind), Value::from(count)));
    let rules = Value::record([
        ("digest", Value::from(rules.digest)),
        ("name", Value::from(&*rules.name)),
        ("version", Value::from(&*rules.version)),
    ]);
    let tags = redactor.tag_id().map(|id| ("tags", Value::from(id)));
    Value::record([("rules", rules), ("taken", Value::record(counts))].into_iter().chain(tags))
}

/// The places at which a line names something: two names of which something was taken stay two, and each stays a text.
const NAMES: [&str; 13] = [
    "/action/tool",
    "/action/call_id",
    "/action/calls/*/tool",
    "/action/calls/*/call_id",
    "/result/call_id",
    "/result/tool",
    "/intent/step/step_id",
    "/intent/step/parent_id",
    "/intent/step/trace_id",
    "/evidence/*/id",
    "/commitments/*/id",
    "/meta/thread_id",
    "/meta/trace_id",
];

/// An intent without its secrets.
pub fn intent(redactor: &Redactor, intent: &Intent) -> Intent {
    let mut pass = Pass { redactor, taken: TakenSecrets::default() };
    let mut made = intent.clone();
    made.agent = pass.name(&intent.agent);
    made.goal = intent.goal.as_ref().map(|goal| pass.text(goal));
    for (name, value) in &mut made.members {
        *value = pass.member(name, value);
    }
    for noted in &mut made.noted {
        *noted = pass.value(noted);
    }
    made.delta = intent.delta.as_ref().map(|delta| pass.delta(delta));
    // Values that other rules took before are counted with it: a line may come from another record.
    made.carrying(REDACTION, sealed(redactor, &pass.taken))
}

/// The beginning of a run without its secrets. Texts of the pack and the graph are part of the program, and stay.
pub fn start(redactor: &Redactor, start: &Start) -> Start {
    let mut pass = Pass { redactor, taken: TakenSecrets::default() };
    let goal = start.goal.as_ref().map(|goal| pass.text(goal));
    let state = pass.value(&start.state);
    let meta = start.meta.as_ref().map(|meta| pass.member("meta", meta));
    let redaction = Some(sealed(redactor, &pass.taken));
    Start { goal, state, meta, redaction, ..start.clone() }
}

/// The content of a fork's marker, and its change, without their secrets; and the value of their [`REDACTION`].
pub fn fork(redactor: &Redactor, about: &Object, set: &Delta) -> (Object, Delta, Value) {
    let mut pass = Pass { redactor, taken: TakenSecrets::default() };
    let made = pass.value(&Value::Object(about.clone()));
    let about = made.as_object().cloned().unwrap_or_default();
    let set = pass.delta(set);
    (about, set, sealed(redactor, &pass.taken))
}

/// A record as an answer shows it, without its secrets; no store has it.
pub fn shown(redactor: &Redactor, record: &Record) -> Record {
    let (content, taken) = redactor.value(&record.content());
    let Some(members) = content.as_object().filter(|_| !taken.is_empty()) else { return record.clone() };
    let made = Body::commit(cut(members), Seed([0; 16]));
    let made = made.and_then(|body| Record::seal(record.header().clone(), body));
    // A record that cannot be sealed again is shown as nothing.
    made.unwrap_or_else(|_| record.without(&[Pointer::root()]))
}

/// Any value without its secrets.
pub fn value(redactor: &Redactor, value: &Value) -> Value {
    redactor.value(value).0
}

struct Pass<'r> {
    redactor: &'r Redactor,
    taken: TakenSecrets,
}

impl Pass<'_> {
    fn value(&mut self, value: &Value) -> Value {
        let (made, taken) = self.redactor.value(value);
        self.taken.add(&taken);
        made
    }

    /// A member of a line. Names in it are taken as names.
    fn member(&mut self, name: &str, value: &Value) -> Value {
        let mut names = Vec::new();
        for place in NAMES {
            let mut tokens = place[1..].split('/');
            if tokens.next() == Some(name) {
                texts_at(value, &tokens.collect::<Vec<_>>(), &mut Vec::new(), &mut names);
            }
        }
        let (made, taken) = self.redactor.value(value);
        if names.iter().all(|(path, text)| path.get(&made).and_then(Value::as_str) == Some(text)) {
            self.taken.add(&taken);
            return made;
        }
        let with = |value: &Value, texts: Vec<String>| {
            let set =
                names.iter().zip(texts).map(|((path, _), text)| Op::set(path.clone(), Value::from(text)));
            Delta(set.collect()).apply(value).unwrap_or_else(|_| value.clone())
        };
        let made = self.value(&with(value, names.iter().map(|_| String::new()).collect()));
        let clean = names.iter().map(|(_, text)| self.name(&Arc::from(*text)).to_string()).collect();
        with(&made, clean)
    }

    fn name(&mut self, text: &Arc<str>) -> Arc<str> {
        let (made, taken) = self.redactor.name(text);
        if taken.is_empty() {
            return Arc::clone(text);
        }
        self.taken.add(&taken);
        made.into()
    }

    fn text(&mut self, text: &Arc<str>) -> Arc<str> {
        let (made, taken) = self.redactor.text(text);
        if taken.is_empty() {
            return Arc::clone(text);
        }
        self.taken.add(&taken);
        made.into()
    }

    /// The last name of a path says what its value is, as the name beside a value does.
    fn delta(&mut self, delta: &Delta) -> Delta {
        Delta(delta.0.iter().map(|op| self.op(op)).collect())
    }

    fn op(&mut self, op: &Op) -> Op {
        let tokens = op.path.tokens().map(|token| self.name(&Arc::from(&*token))).collect::<Vec<_>>();
        let is_name = |token: &&Arc<str>| !token.bytes().all(|c| c.is_ascii_digit());
        let name = op.path.tokens().filter(|token| is_name(&&Arc::from(&**token))).last();
        let value = op.value.as_ref().map(|value| match &name {
            None => self.value(value),
            Some(name) => {
                let named = self.value(&Value::record([(name.to_string(), value.clone())]));
                let members = named.as_object().and_then(|members| members.iter().next());
                members.map_or(Value::Null, |(_, value)| value.clone())
            }
        });
        Op { action: op.action, path: Pointer::of(tokens.iter().map(|token| &**token)), value }
    }
}

/// Finds the texts at the places that a path with `*` for any item means.
fn texts_at<'v>(value: &'v Value, path: &[&str], at: &mut Vec<String>, found: &mut Vec<(Pointer, &'v str)>) {
    let Some((first, rest)) = path.split_first() else {
        found.extend(value.as_str().map(|text| (Pointer::of(at.iter().map(String::as_str)), text)));
        return;
    };
    let mut below = |name: String, value: &'v Value| {
        at.push(name);
        texts_at(value, rest, at, found);
        at.pop();
    };
    match (*first, value) {
        ("*", Value::Array(items)) => {
            items.iter().enumerate().for_each(|(index, item)| below(index.to_string(), item));
        }
        (name, value) => value.get(name).into_iter().for_each(|inner| below(name.to_owned(), inner)),
    }
}
