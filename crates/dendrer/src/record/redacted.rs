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
    Value::record([("rules", rules), ("taken", Value::record(counts))])
}

/// An intent without its secrets.
pub fn intent(redactor: &Redactor, intent: &Intent) -> Intent {
    let mut pass = Pass { redactor, taken: TakenSecrets::default() };
    let mut made = intent.clone();
    made.agent = pass.text(&intent.agent);
    made.goal = intent.goal.as_ref().map(|goal| pass.text(goal));
    for (name, value) in &mut made.members {
        *value = if &**name == "metrics" { pass.metrics(value) } else { pass.value(value) };
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
    let meta = start.meta.as_ref().map(|meta| pass.value(meta));
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

    fn metrics(&mut self, value: &Value) -> Value {
        let (made, taken) = self.redactor.metrics(value);
        self.taken.add(&taken);
        made
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
        let tokens = op.path.tokens().map(|token| self.text(&Arc::from(&*token))).collect::<Vec<_>>();
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
