//! Secrets are taken out of what is recorded before it is judged, so the kernel, rules and predicates see what is on record alone
//! (witness-log paper 2.4; design, section 2).
//!
//! Rule: whatever a recorder seals of a caller's text passes here; test `no_canary_is_in_any_file`.

use std::sync::Arc;

use dendrer_kernel::step::{LineFault, Start};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::record::{Body, Record, Seed, cut};
use dendrer_object::value::{Object, differences};
use dendrer_object::{Intent, Pointer, READS, REDACTION, TypeName, Value};

use crate::redact::{Redactor, TakenSecrets, is_learnable};

/// The value of the member [`REDACTION`] of a record.
pub fn sealed(redactor: &Redactor, taken: &TakenSecrets) -> Value {
    // Most records have no secret, and the same value.
    if taken.is_empty() { redactor.of_nothing(|| made(redactor, taken)) } else { made(redactor, taken) }
}

fn made(redactor: &Redactor, taken: &TakenSecrets) -> Value {
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
/// The member, and the way below it, in which `*` is any item of a list.
const NAMES: [(&str, &[&str]); 13] = [
    ("action", &["tool"]),
    ("action", &["call_id"]),
    ("action", &["calls", "*", "tool"]),
    ("action", &["calls", "*", "call_id"]),
    ("result", &["call_id"]),
    ("result", &["tool"]),
    ("intent", &["step", "step_id"]),
    ("intent", &["step", "parent_id"]),
    ("intent", &["step", "trace_id"]),
    ("evidence", &["*", "id"]),
    ("commitments", &["*", "id"]),
    ("meta", &["thread_id"]),
    ("meta", &["trace_id"]),
];

/// An intent without its secrets.
pub fn intent(redactor: &Redactor, intent: &Intent) -> Intent {
    intent_taking(redactor, intent, TakenSecrets::default()).0
}

/// As [`intent`], with what was taken; `taken` is what was taken out of it before.
pub(crate) fn intent_taking(
    redactor: &Redactor,
    intent: &Intent,
    taken: TakenSecrets,
) -> (Intent, TakenSecrets) {
    let mut pass = Pass { redactor, taken };
    let mut made = intent.clone();
    made.type_name = pass.type_name(&intent.type_name);
    made.agent = pass.name(&intent.agent);
    made.goal = intent.goal.as_ref().map(|goal| pass.text(goal));
    for (name, value) in &mut made.members {
        *value = if &**name == "metrics" { pass.metrics(value) } else { pass.member(name, value) };
    }
    for noted in &mut made.noted {
        *noted = pass.value(noted);
    }
    made.delta = intent.delta.as_ref().map(|delta| pass.delta(delta));
    // Values that other rules took before are counted with it: a line may come from another record.
    (made.carrying(REDACTION, sealed(redactor, &pass.taken)), pass.taken)
}

/// The beginning of a run without its secrets. Texts of the pack and the graph are part of the program, and stay.
pub fn start(redactor: &Redactor, start: &Start) -> Start {
    // A secret of one part is one in the others.
    let mut first = Pass { redactor, taken: TakenSecrets::default() };
    start_by(&mut first, start);
    let found: Vec<String> = first
        .taken
        .values()
        .flat_map(|value| redactor.spellings(value))
        .filter(|one| is_learnable(one))
        .collect();
    match found.is_empty() {
        true => start_by(&mut Pass { redactor, taken: TakenSecrets::default() }, start),
        false => {
            let redactor = redactor.knowing(&found);
            start_by(&mut Pass { redactor: &redactor, taken: TakenSecrets::default() }, start)
        }
    }
}

fn start_by(pass: &mut Pass<'_>, start: &Start) -> Start {
    let redactor = pass.redactor;
    let goal = start.goal.as_ref().map(|goal| pass.text(goal));
    let state = pass.value(&start.state);
    let meta = start.meta.as_ref().map(|meta| pass.member("meta", meta));
    let redaction = Some(sealed(redactor, &pass.taken));
    Start { goal, state, meta, redaction, ..start.clone() }
}

/// A value without its secrets, redacted by the last name of its place.
pub(crate) fn beside(redactor: &Redactor, path: &Pointer, value: Value) -> Value {
    let name = path.tokens().last().map(|name| name.into_owned()).unwrap_or_default();
    Pass { redactor, taken: TakenSecrets::default() }.beside(&name, &value)
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

/// The content of a record without its secrets, with what was taken: changes of the state are redacted as those of an intent are,
/// also those of a refused line.
pub fn content(redactor: &Redactor, content: &Value) -> (Value, TakenSecrets) {
    let mut pass = Pass { redactor, taken: TakenSecrets::default() };
    let made = pass.members(content, true);
    (made, pass.taken)
}

/// A line without its secrets, as its refusal keeps it, and the fault without what the line has of them: the place of a fault may
/// be the name of a member, and its sentence may quote a value.
pub fn refused(redactor: &Redactor, line: &Value, fault: LineFault) -> (Value, LineFault) {
    let mut pass = Pass { redactor, taken: TakenSecrets::default() };
    let clean = pass.members(line, false);
    let fault = match fault {
        LineFault::Schema { code, path, message } => LineFault::Schema {
            code,
            path: place(redactor, &path).0,
            message: quoted(redactor, &message, line, &clean),
        },
        author @ LineFault::Author(..) => author,
    };
    (clean, fault)
}

/// A place, or a name of several parts, without its secrets: a shape is looked for at the beginning of each part as well, since a
/// text that a `/` or a `.` precedes is no token of its own elsewhere.
pub fn place(redactor: &Redactor, place: &str) -> (String, TakenSecrets) {
    let (mut made, mut taken) = by_names(redactor, place);
    let mut at = 0;
    for _ in 0..PARTS_MAX {
        let Some(next) = made[at..].find(SEPARATORS).map(|next| at + next + 1) else { break };
        at = next;
        let rest = &made[at..];
        let Some(secret) = redactor.find(rest).into_iter().next().filter(|secret| secret.start == 0) else {
            continue;
        };
        let (clean, one) = redactor.text(&rest[..secret.end]);
        taken.add(&one);
        let end = at + secret.end;
        made.replace_range(at..end, &clean);
        at += clean.len();
    }
    (made, taken)
}

/// A text without its secrets; of a pointer, each name is a text of its own as well.
fn by_names(redactor: &Redactor, place: &str) -> (String, TakenSecrets) {
    let mut taken = TakenSecrets::default();
    let pointer: Option<Pointer> = place.starts_with('/').then(|| place.parse().ok()).flatten();
    let names: Vec<String> = pointer
        .iter()
        .flat_map(Pointer::tokens)
        .map(|name| {
            let (clean, more) = redactor.text(&name);
            taken.add(&more);
            clean
        })
        .collect();
    let pointer = (!taken.is_empty()).then(|| Pointer::of(names.iter().map(String::as_str)));
    let (made, more) = redactor.text(pointer.as_ref().map_or(place, Pointer::as_str));
    taken.add(&more);
    (made, taken)
}

/// Characters between the parts of a place or a name.
const SEPARATORS: [char; 8] = ['/', '.', '-', '+', '[', ']', '"', ':'];

/// How many parts of a place are looked at.
const PARTS_MAX: usize = 64;

/// A sentence about a line, without the texts of the line that were taken out of it.
fn quoted(redactor: &Redactor, sentence: &str, line: &Value, clean: &Value) -> String {
    let mut made = redactor.text(sentence).0;
    if line != clean {
        for difference in differences(line, clean) {
            let taken = difference.left.as_ref().and_then(Value::as_str).filter(|taken| !taken.is_empty());
            let Some(taken) = taken.filter(|taken| made.contains(*taken)) else { continue };
            made = made.replace(taken, "<redacted>");
        }
    }
    made
}

/// Any value without its secrets.
pub fn value(redactor: &Redactor, value: &Value) -> Value {
    redactor.value(value).0
}

/// Members of a record with changes of the state.
const CHANGES: [&str; 2] = ["delta", "proposed"];

/// The member of a refusal with the line that was refused.
const LINE: &str = "line";

/// The member of a record with what was asked of a tool.
const ACTION: &str = "action";

/// The member of a change with what it sets.
const VALUE: &str = "value";

/// The last name of a place as a line writes it; `None` if the text is no place, or has no name.
fn name_of_place(place: &str) -> Option<String> {
    last_of(&Pointer::from_place(place)?.ok()?)
}

/// The last name of a path that is not the index of a list.
fn last_of(path: &Pointer) -> Option<String> {
    let is_name = |token: &std::borrow::Cow<'_, str>| !token.bytes().all(|c| c.is_ascii_digit());
    path.tokens().filter(is_name).last().map(|name| name.into_owned())
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
        for (_, path) in NAMES.into_iter().filter(|(member, _)| *member == name) {
            texts_at(value, path, &mut Vec::new(), &mut names);
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
        let made = self.redactor.name(text);
        self.counted(text, made)
    }

    fn metrics(&mut self, value: &Value) -> Value {
        let (made, taken) = self.redactor.metrics(value);
        self.taken.add(&taken);
        made
    }

    fn text(&mut self, text: &Arc<str>) -> Arc<str> {
        let made = self.redactor.text(text);
        self.counted(text, made)
    }

    /// Adds what was taken out of a text. Returns the text itself where that is nothing.
    fn counted(&mut self, text: &Arc<str>, (made, taken): (String, TakenSecrets)) -> Arc<str> {
        if taken.is_empty() {
            return Arc::clone(text);
        }
        self.taken.add(&taken);
        made.into()
    }

    /// The name of a type: one that holds a secret is unknown, and refused under the name of its rule.
    fn type_name(&mut self, name: &TypeName) -> TypeName {
        let found = self.redactor.find(name.as_str());
        let Some(secret) = found.iter().find(|secret| *secret.kind != *crate::redact::KNOWN) else {
            return name.clone();
        };
        let (_, taken) = self.redactor.text(name.as_str());
        self.taken.add(&taken);
        let words = secret.kind.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        format!("redacted.{words}").parse().or_else(|_| "redacted".parse()).unwrap_or_else(|_| name.clone())
    }

    /// Redacts the members of a record or of a line; those of a refused line in a record as well.
    fn members(&mut self, content: &Value, is_record: bool) -> Value {
        let Value::Object(members) = content else { return self.value(content) };
        let is_apart = |name: &str, value: &Value| match value {
            Value::Array(_) => CHANGES.contains(&name) || name == READS,
            Value::Object(_) => name == ACTION || is_record && name == LINE,
            _ => false,
        };
        let (apart, rest): (Vec<_>, Vec<_>) = members.iter().partition(|(name, value)| is_apart(name, value));
        let rest = rest.into_iter().map(|(name, value)| (Arc::clone(name), value.clone()));
        let made = self.value(&Value::record(rest));
        let mut made = made.as_object().cloned().unwrap_or_default();
        for (name, value) in apart {
            let clean = match value {
                Value::Array(items) if **name == *READS => {
                    Value::array(items.iter().map(|item| self.place(item)))
                }
                Value::Array(items) => Value::array(items.iter().map(|item| self.change(item))),
                action if **name == *ACTION => self.member(ACTION, action),
                line => self.members(line, false),
            };
            made.set(name, clean);
        }
        Value::Object(made)
    }

    /// Redacts a change of the state as a line writes it, which may be none.
    fn change(&mut self, item: &Value) -> Value {
        let Some(members) = item.as_object() else { return self.value(item) };
        let paths = members.iter().filter(|(name, _)| ***name != *VALUE);
        let name = paths.filter_map(|(_, path)| path.as_str()).find_map(name_of_place);
        let (Some(value), Some(name)) = (members.get(VALUE), name) else {
            return Value::Object(self.places(members));
        };
        let mut rest = members.clone();
        rest.remove(VALUE);
        let mut made = self.places(&rest);
        made.set(VALUE, self.beside(&name, value));
        Value::Object(made)
    }

    /// Redacts the members of a change but its value: an action, and its path.
    fn places(&mut self, members: &Object) -> Object {
        let made = self.value(&Value::Object(members.clone()));
        let mut made = made.as_object().cloned().unwrap_or_default();
        let texts: Vec<_> = made.iter().map(|(name, path)| (Arc::clone(name), path.clone())).collect();
        texts.iter().for_each(|(name, path)| made.set(name, self.place(path)));
        made
    }

    /// Redacts a place that a line names; any other value as usual.
    fn place(&mut self, value: &Value) -> Value {
        match value.as_str().map(|text| (text, place(self.redactor, text))) {
            Some((text, (clean, _))) if clean == *text => value.clone(),
            Some((text, _))
                if self.redactor.find(text).first().is_some_and(|one| one.end - one.start == text.len()) =>
            {
                self.value(value)
            }
            Some((_, (clean, taken))) => {
                self.taken.add(&taken);
                Value::from(clean)
            }
            None => self.value(value),
        }
    }

    /// Redacts the value of a name.
    fn beside(&mut self, name: &str, value: &Value) -> Value {
        let named = self.value(&Value::record([(name.to_owned(), value.clone())]));
        let members = named.as_object().and_then(|members| members.iter().next());
        members.map_or(Value::Null, |(_, value)| value.clone())
    }

    /// The last name of a path says what its value is, as the name beside a value does.
    fn delta(&mut self, delta: &Delta) -> Delta {
        Delta(delta.0.iter().map(|op| self.op(op)).collect())
    }

    fn op(&mut self, op: &Op) -> Op {
        let tokens = op.path.tokens().map(|token| self.name(&Arc::from(&*token))).collect::<Vec<_>>();
        let name = last_of(&op.path);
        let value = op.value.as_ref().map(|value| match &name {
            None => self.value(value),
            Some(name) => self.beside(name, value),
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
