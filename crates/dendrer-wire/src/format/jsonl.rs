//! JSON lines of any kind, read by a mapping: from the members of a line to those of an intent. Runs are written as the events
//! of the dendrer paper, without hashes.
//!
//! A mapping has the shape of an intent. Where an intent has a value, it has a pointer into the line, a constant,
//! or a table of words. What no pointer names is kept in `intent.extra`, so nothing of a line is lost.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

use dendrer::kernel::ontology::{self, Class};
use dendrer::kernel::pack::PackEngine;
use dendrer::kernel::status;
use dendrer::kernel::unknown::SPEAKERS;
use dendrer_object::intent::line;
use dendrer_object::value::Object;
use dendrer_object::{Code, Delta, Intent, OBSERVED_AT, Pointer, Value, json};

use super::paper;
use crate::foreign::{Format, Steps, Visit};
use crate::import::account::{Account, KeptPlace, Of, Use};
use crate::import::calls::{Answers, Call, Calls, Paired};
use crate::import::error::ImportError;
use crate::import::found::Accounted;
use crate::import::items::{self, Around, Item};
use crate::import::layout::{self, Layout};
use crate::import::moment;
use crate::import::moment::moment;
use crate::import::note::{At, ImportNote, NoteKind};
use crate::import::outcome::{self, Outcome};
use crate::import::scan::Sizes;

use crate::import::transition::{Step, free_name, plain_object};
use crate::import::usage::Usage;

/// The format.
pub(super) static JSONL: Format = Format {
    detect: |has_map| has_map,
    accept: |map, engine| match (map, engine) {
        (None, _) => Err(ImportError::unfit("--kind jsonl needs --map FILE, which says what stands where")),
        (Some(map), Some(engine)) if engine != PackEngine::Delta && map.text.get("delta").is_some() => {
            Err(ImportError::unfit("the pack makes the states; leave `delta` out of the map"))
        }
        _ => Ok(()),
    },
    items: in_order,
    write: Some(|trace, _, line| paper::write(trace, false, line)),
    ..Format::new("jsonl", "One JSON object a line, read by --map", |map| {
        let map = map.expect("a mapping that was accepted");
        Box::new(Lines { map, usage: Usage::default(), account: Account::default() })
    })
};

/// Lines as steps.
struct Lines<'m> {
    map: &'m Map,
    usage: Usage,
    account: Account,
}

impl Steps for Lines<'_> {
    fn step<'i>(&mut self, item: &'i Item<'_>, calls: &mut Calls) -> Result<Step<'i>, ImportError> {
        let map = self.map.each.get(item.each).unwrap_or(self.map);
        let mut step = map.read(&item.value, item.at, calls, &self.map.kept, &mut self.account)?;
        self.usage.of_step(&mut step);
        Ok(step)
    }

    fn each(&self, value: &Value) -> Vec<usize> {
        let gives =
            |map: &Map| map.fields.iter().any(|(name, field)| &**name == "type" && gives(field, value));
        let each = self.map.each.iter().enumerate().filter(|(_, map)| gives(map));
        each.map(|(index, _)| index).collect()
    }

    fn places(&mut self) -> BTreeMap<String, Accounted> {
        std::mem::take(&mut self.account.places)
    }
}

fn gives(field: &Field, line: &Value) -> bool {
    field.take(line).is_some_and(|found| found != Value::Null)
}

/// Hands over the lines, in the order of a place if the mapping names one.
fn in_order(
    source: &mut dyn Read,
    layout: &Layout,
    hints: Sizes,
    visit: Visit<'_>,
) -> Result<Around, ImportError> {
    let Some(place) = &layout.order else { return items::read(source, layout, hints, visit) };
    let mut held: Vec<(Option<Rank>, Item<'static>)> = Vec::new();
    let around = items::read(source, layout, hints, &mut |item| {
        let rank = place.get(&item.value).and_then(Rank::of);
        let list: &'static str = "";
        let number = item.at.number.unwrap_or(0);
        let at = At::item(list, number);
        held.push((
            rank,
            Item { notes: item.notes, is_lost: item.is_lost, ..Item::new(item.value, at, item.size) },
        ));
        Ok(())
    })?;
    // A line without the place keeps that of the line before it.
    let mut last: Option<Rank> = None;
    for (rank, item) in &mut held {
        match rank {
            Some(rank) => last = Some(*rank),
            None => {
                let text = "this line has no number and no time at the place of the order";
                item.notes.push(ImportNote::new(NoteKind::NoOrder, item.at, text));
                *rank = last;
            }
        }
    }
    held.sort_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let list = layout::pointer(&layout.path);
    for (_, item) in held {
        let at = At { list: &list, ..item.at };
        let source = Some(Value::record([("index", Value::from(item.at.number.unwrap_or(0)))]));
        visit(Item {
            notes: item.notes,
            is_lost: item.is_lost,
            source,
            ..Item::new(item.value, at, item.size)
        })?;
    }
    Ok(around)
}

/// The place of a line in an order: a number, or nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Rank {
    Number(f64),
    Moment(i128),
}

impl Rank {
    fn of(value: &Value) -> Option<Rank> {
        match value {
            Value::Number(number) => number.as_f64().filter(|number| number.is_finite()).map(Rank::Number),
            Value::String(text) => moment(text).map(Rank::Moment),
            _ => None,
        }
    }
}

/// A mapping.
#[derive(Debug, Clone)]
pub struct Map {
    fields: Vec<(Arc<str>, Field)>,
    text: Value,
    /// Mappings of which each gives a transition of a line, if it gives a type.
    each: Vec<Map>,
    /// The place by which lines are ordered.
    order: Option<Pointer>,
    /// Places of a line that state nothing.
    kept: Vec<KeptPlace>,
    /// The time of a line.
    observed: Option<Field>,
}

/// The origin of a value.
#[derive(Debug, Clone)]
enum Field {
    At(Pointer),
    Constant(Value),
    Words(Pointer, Object),
    /// The first of these that gives a value.
    First(Vec<Field>),
    /// The value that a text is as JSON.
    Json(Pointer),
    Object(Vec<(Arc<str>, Field)>),
}

impl Map {
    /// Reads a mapping.
    pub fn from_value(value: &Value) -> Result<Map, ImportError> {
        let fail = |at: &str, message: String| Err(ImportError::refused(Code::E0215, message, at));
        let Some(object) = plain_object(value) else {
            return fail("", format!("a mapping is an object, not {}", value.described()));
        };
        let each = each_of(object)?;
        if !object.contains_key("type") && each.is_empty() {
            return fail("/type", "a mapping says where the transition type comes from".to_owned());
        }
        let mut fields = Vec::new();
        let (mut order, mut kept, mut observed) = (None, Vec::new(), None);
        for (name, value) in object.iter() {
            let at = format!("/{name}");
            match (&**name, value) {
                ("each", Value::Array(_)) if !each.is_empty() => continue,
                ("order", Value::String(text)) => {
                    order = Some(pointer(text, &at)?);
                    continue;
                }
                ("kept", Value::Array(places)) => {
                    for (index, place) in places.iter().enumerate() {
                        let place = place.as_str().and_then(KeptPlace::new);
                        let Some(place) = place else {
                            let text =
                                "this is a JSON pointer into the line, in which * is any name".to_owned();
                            return fail(&format!("{at}/{index}"), text);
                        };
                        kept.push(place);
                    }
                    continue;
                }
                ("each" | "order" | "kept", _) => {
                    let text = match &**name {
                        "order" => "the order is a pointer into the line",
                        "kept" => "the kept places are a list of pointers",
                        _ => "each is a list of mappings, and not empty",
                    };
                    return fail(&at, text.to_owned());
                }
                _ => {}
            }
            if matches!(&**name, OBSERVED_AT | "ts") {
                observed = Some(Field::read(value, &at)?);
                continue;
            }
            if !line::mapped().any(|known| known == &**name) {
                let near = dendrer_object::text::nearest(name, line::mapped());
                let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                return fail(&at, format!("an intent has no member {name:?}{hint}"));
            }
            fields.push((Arc::clone(name), Field::read(value, &at)?));
        }
        Ok(Map { fields, text: value.clone(), each, order, kept, observed })
    }

    /// The place by which lines are ordered.
    pub(crate) fn order(&self) -> Option<&Pointer> {
        self.order.as_ref()
    }

    /// The mapping as it was given.
    pub fn to_value(&self) -> &Value {
        &self.text
    }

    /// Reads one line.
    fn read(
        &self,
        item: &Value,
        at: At<'_>,
        open: &mut Calls,
        kept: &[KeptPlace],
        account: &mut Account,
    ) -> Result<Step<'static>, ImportError> {
        let Some(line) = plain_object(item) else {
            let text = format!("a line is an object, not {}", item.described());
            return Ok(Step::unreadable(item, at, text));
        };
        // A null for a member of the intent itself leaves it out.
        let member = |(name, field): &(Arc<str>, Field)| Some((Arc::clone(name), field.take(item)?));
        let members = self.fields.iter().filter_map(member).filter(|(_, value)| *value != Value::Null);
        let mapped = without_idle_result(members.collect::<Vec<_>>());
        let fail = |error| ImportError::Intent { error, at: at.to_string() };
        let mut intent = Intent::from_value(&mapped, None).map_err(fail)?;
        intent.delta = intent.delta.map(Delta::through_the_door);
        if ontology::class(&intent.type_name, &BTreeSet::new()) == Some(Class::Runtime) {
            intent = intent.by_runtime();
        }
        ontology::check_authorship(&intent.type_name, intent.author, &BTreeSet::new())
            .map_err(|error| ImportError::authorship(&error, at))?;
        let mut taken = BTreeSet::new();
        self.fields.iter().for_each(|(_, field)| field.names(item, &mut taken));
        self.observed.iter().for_each(|field| field.names(item, &mut taken));
        let is_taken = |name: &Arc<str>| taken.contains(&**name);
        let read = line.iter().filter(|(name, _)| is_taken(name));
        read.for_each(|(name, _)| account.member(name, Use::Read("by the mapping")));
        let rest = line.iter().filter(|(name, _)| !is_taken(name));
        let rest: Object = rest.map(|(name, value)| (Arc::clone(name), value.clone())).collect();
        let mut unread = Vec::new();
        self.account(&intent, &rest, at, (kept, account), &mut unread);
        let mut intent = keep_rest(intent, &rest);
        if let Some(stated) = self.observed.as_ref().and_then(|field| field.take(item)) {
            // A text that is no time is kept as it is written.
            let time = moment::observed_value(&stated).map_or(stated, Value::from);
            intent = intent.carrying(OBSERVED_AT, time);
        }
        let mut step = match intent.type_name.as_str() {
            "action.result" => {
                let (intent, note) = with_status(intent, &rest, at)?;
                let mut step = answer(intent, at, open);
                step.notes.extend(note);
                step
            }
            name => {
                let calls = if name == "action.request" { calls_of(&intent) } else { Vec::new() };
                let mut step = Step::new(intent);
                step.calls = calls;
                step
            }
        };
        self.fields.iter().for_each(|(_, field)| field.not_json(item, at, &mut step.notes));
        step.notes.append(&mut unread);
        Ok(step)
    }

    /// Notes the members that no pointer names and that may state something.
    fn account(
        &self,
        intent: &Intent,
        rest: &Object,
        at: At<'_>,
        (kept, account): (&[KeptPlace], &mut Account),
        notes: &mut Vec<ImportNote>,
    ) {
        let of = match intent.type_name.as_str() {
            ontology::RESULT => Of::Result,
            ontology::REQUEST | "plan.update" => Of::Model,
            _ => Of::Outside,
        };
        // The status of a result is read in members that no pointer names, and who speaks in the member of the mapping.
        let is_stated = |name: &str| of == Of::Result && outcome::STATING.contains(&name);
        let left = rest.iter().filter(|(name, _)| !is_stated(name));
        let left: Object = left.map(|(name, value)| (Arc::clone(name), value.clone())).collect();
        let before = notes.len();
        account.item(&[], of, &left, &at, notes);
        let names_agent = self.fields.iter().any(|(name, _)| &**name == "agent");
        let line = at.to_string();
        let is_kept = |note: &ImportNote| {
            let place = note.path.strip_prefix(&line).unwrap_or(&note.path);
            kept.iter().chain(&self.kept).any(|kept| kept.covers(place))
                || (names_agent && note.may() == [SPEAKERS])
        };
        let mut index = before;
        while index < notes.len() {
            if is_kept(&notes[index]) { drop(notes.remove(index)) } else { index += 1 }
        }
    }
}

/// The intent of a line. A mapping for calls and results may give every line a status: one without an output, on a line that is
/// no result, is left out.
fn without_idle_result(mut members: Vec<(Arc<str>, Value)>) -> Value {
    let is_result =
        members.iter().any(|(name, value)| &**name == "type" && value.as_str() == Some(ontology::RESULT));
    let is_idle = |(name, value): &(Arc<str>, Value)| {
        let output = value.get("output").filter(|output| **output != Value::Null);
        // A failure is never left out.
        let is_ok = value.get("status").is_none_or(|status| matches!(status.as_str(), None | Some("ok")));
        &**name == "result" && output.is_none() && is_ok
    };
    if !is_result {
        members.retain(|member| !is_idle(member));
    }
    Value::record(members)
}

/// Reads the mappings of which each gives a transition of a line.
fn each_of(object: &Object) -> Result<Vec<Map>, ImportError> {
    let each = object.get("each").and_then(Value::as_array).cloned().unwrap_or_default();
    let read = |(index, one): (usize, &Value)| {
        let inner = one.as_object().is_some_and(|one| one.contains_key("each") || one.contains_key("order"));
        match Map::from_value(one) {
            Err(ImportError::Refused { code, message, at }) => {
                Err(ImportError::refused(code, message, format!("/each/{index}{at}")))
            }
            Err(error) => Err(error),
            Ok(_) if inner => {
                let text = "a mapping of each is one of an intent".to_owned();
                Err(ImportError::refused(Code::E0215, text, format!("/each/{index}")))
            }
            Ok(map) => Ok(map),
        }
    };
    each.iter().enumerate().map(read).collect()
}

impl Field {
    fn read(value: &Value, at: &str) -> Result<Field, ImportError> {
        let fail = |message: &str| Err(ImportError::refused(Code::E0215, message.to_owned(), at));
        match value {
            Value::String(text) => Ok(Field::At(pointer(text, at)?)),
            Value::Object(object) if object.contains_key("const") => match object.len() {
                1 => Ok(Field::Constant(object.get("const").cloned().unwrap_or(Value::Null))),
                _ => fail("a constant is {\"const\": VALUE} and nothing else"),
            },
            Value::Object(object) if object.contains_key("first") => {
                match (object.get("first").and_then(Value::as_array), object.len()) {
                    (Some(forms), 1) => {
                        let read = |(index, form)| Field::read(form, &format!("{at}/first/{index}"));
                        Ok(Field::First(
                            forms.iter().enumerate().map(read).collect::<Result<_, ImportError>>()?,
                        ))
                    }
                    _ => fail("the first of several is {\"first\": [FORM, FORM]} and nothing else"),
                }
            }
            Value::Object(object) if object.contains_key("json") => {
                match (object.get("json").and_then(Value::as_str), object.len()) {
                    (Some(text), 1) => Ok(Field::Json(pointer(text, at)?)),
                    _ => fail("JSON in a text is {\"json\": POINTER} and nothing else"),
                }
            }
            Value::Object(object) if object.contains_key("from") => {
                let words = object.get("words").and_then(Value::as_object);
                match (object.get("from").and_then(Value::as_str), words, object.len()) {
                    (Some(from), Some(words), 2) => Ok(Field::Words(pointer(from, at)?, words.clone())),
                    _ => fail("a table is {\"from\": POINTER, \"words\": {WORD: VALUE}} and nothing else"),
                }
            }
            Value::Object(object) => {
                let read = |(name, value): (&Arc<str>, &Value)| {
                    Ok((Arc::clone(name), Field::read(value, &format!("{at}/{name}"))?))
                };
                Ok(Field::Object(object.iter().map(read).collect::<Result<_, ImportError>>()?))
            }
            _ => fail(
                "this is a pointer into the line like \"/a/b\", {\"const\": ...}, {\"from\": ..., \"words\": ...}, {\"first\": [...]}, {\"json\": ...} or an object of these",
            ),
        }
    }

    /// The value that a line gives; `None` where it has none.
    fn take(&self, line: &Value) -> Option<Value> {
        match self {
            Field::At(pointer) => pointer.get(line).cloned(),
            Field::Constant(value) => Some(value.clone()),
            Field::Words(pointer, words) => {
                let Some(found) = pointer.get(line) else { return words.get("null").cloned() };
                let word = word_of(found);
                Some(words.get(&word).or_else(|| words.get("*")).unwrap_or(found).clone())
            }
            Field::First(forms) => {
                forms.iter().find_map(|form| form.take(line).filter(|found| *found != Value::Null))
            }
            Field::Json(pointer) => {
                let found = pointer.get(line)?;
                let read = found.as_str().and_then(|text| json::parse_door(text.as_bytes()).ok());
                Some(read.unwrap_or_else(|| found.clone()))
            }
            Field::Object(fields) => {
                let member = |(name, field): &(Arc<str>, Field)| Some((Arc::clone(name), field.take(line)?));
                let found: Vec<(Arc<str>, Value)> = fields.iter().filter_map(member).collect();
                (!found.is_empty()).then(|| Value::record(found))
            }
        }
    }

    /// Adds the members of a line that are mapped whole; those of a form that was not chosen stay with what no pointer named.
    fn names<'f>(&'f self, line: &Value, taken: &mut BTreeSet<Cow<'f, str>>) {
        match self {
            Field::At(pointer) | Field::Words(pointer, _) | Field::Json(pointer) => {
                let mut names = pointer.tokens();
                if let (Some(only), None) = (names.next(), names.next()) {
                    taken.insert(only);
                }
            }
            Field::First(forms) => {
                let gives = |form: &&Field| form.take(line).is_some_and(|found| found != Value::Null);
                forms.iter().filter(gives).take(1).for_each(|form| form.names(line, taken));
            }
            Field::Object(fields) => fields.iter().for_each(|(_, field)| field.names(line, taken)),
            Field::Constant(_) => {}
        }
    }

    /// Notes the texts that are to be JSON and are not: they stay text.
    fn not_json(&self, line: &Value, at: At<'_>, notes: &mut Vec<ImportNote>) {
        match self {
            Field::Json(pointer) => {
                let text = pointer.get(line).and_then(Value::as_str);
                if let Some(Err(error)) = text.map(|text| json::parse_door(text.as_bytes())) {
                    let (path, words) =
                        (format!("{at}{}", pointer.written()), format!("this stays text: {error}"));
                    notes.push(ImportNote::new(NoteKind::ArgumentsNotJson, path, words));
                }
            }
            Field::First(forms) => forms.iter().for_each(|form| form.not_json(line, at, notes)),
            Field::Object(fields) => fields.iter().for_each(|(_, field)| field.not_json(line, at, notes)),
            Field::At(_) | Field::Constant(_) | Field::Words(..) => {}
        }
    }
}

/// A value as a word: text as it is, anything else as JSON.
fn word_of(value: &Value) -> String {
    value.as_str().map_or_else(|| json::to_string(value), str::to_owned)
}

fn pointer(text: &str, at: &str) -> Result<Pointer, ImportError> {
    Pointer::of_written(text).map_err(|error| {
        ImportError::refused(Code::E0215, format!("{text:?} is not a JSON pointer: {error}"), at)
    })
}

/// The calls of a request that can be answered: those with a tool or an id.
fn calls_of(intent: &Intent) -> Vec<Call> {
    let Some(action) = intent.member("action") else { return Vec::new() };
    let call = |(index, value): (usize, &Value)| Call {
        id: id_of(value).map(Arc::from),
        tool: value.get("tool").and_then(Value::as_str).map(Arc::from),
        params: value.get("params").cloned(),
        agent: Arc::clone(&intent.agent),
        index,
    };
    let calls: Vec<Call> = match action.get("calls").and_then(Value::as_array) {
        Some(calls) => calls.iter().enumerate().map(call).collect(),
        None => vec![call((0, action))],
    };
    calls.into_iter().filter(|call| call.id.is_some() || call.tool.is_some()).collect()
}

/// The id of a call: text, or a number.
fn id_of(action: &Value) -> Option<String> {
    match action.get("call_id")? {
        id @ (Value::String(_) | Value::Number(_)) => Some(word_of(id)),
        _ => None,
    }
}

/// Pairs a result with its call and repeats what the line itself does not say of it.
fn answer(mut intent: Intent, at: At<'_>, open: &mut Calls) -> Step<'static> {
    let mut notes = Vec::new();
    let mut action = intent.member("action").and_then(Value::as_object).cloned().unwrap_or_default();
    let id = intent.member("action").and_then(id_of);
    let tool = action.get("tool").and_then(Value::as_str).map(str::to_owned);
    let agent = Some(&*intent.agent);
    let Paired { call, cause, contested, .. } =
        open.pair(Answers { id: id.as_deref(), tool: tool.as_deref(), agent }, at, &mut notes);
    if let Some(call) = call {
        let told = [
            ("call_id", call.id.as_deref().map(Value::from)),
            ("params", call.params),
            ("tool", call.tool.as_deref().map(Value::from)),
        ];
        for (name, value) in told {
            if let (Some(value), false) = (value, action.contains_key(name)) {
                action.set(name, value);
            }
        }
    }
    if !action.is_empty() {
        intent = intent.with("action", Value::Object(action));
    }
    let mut step = Step::new(intent);
    (step.notes, step.cause, step.contested) = (notes, cause, contested);
    step
}

/// Gives a result one of the two words for its status: the mapping's, else that of a member of the line that the
/// mapping does not name, else what can be read in the output.
fn with_status(
    intent: Intent,
    rest: &Object,
    at: At<'_>,
) -> Result<(Intent, Option<ImportNote>), ImportError> {
    let Some(result) = intent.member("result").and_then(Value::as_object) else {
        return Ok((intent, None));
    };
    let mut result = result.clone();
    let stated = result.get("status").filter(|stated| **stated != Value::Null).cloned();
    let mut notes = Vec::new();
    let states = outcome::STATING.iter().any(|name| rest.contains_key(name));
    let found = match &stated {
        None => (states || result.contains_key("output"))
            .then(|| outcome::of_message(rest, result.get("output"), at, &mut notes)),
        Some(stated) => match stated.as_str().map(status::is_failure) {
            Some(Some(failed)) => Some(Outcome::Flag(failed)),
            _ => {
                let message = format!(
                    "{at} has the status {stated}, which is in no list: name it in a table of `words`"
                );
                return Err(ImportError::refused(Code::E0215, message, "/result/status"));
            }
        },
    };
    let Some((outcome, word)) = found.and_then(|found| Some((found, found.status()?))) else {
        return Ok((intent, notes.pop()));
    };
    if let Some(stated) = stated.filter(|stated| stated.as_str() != Some(word)) {
        result.set("stated", stated);
    }
    result.set("status", Value::from(word));
    result.set("status_from", Value::from(outcome.from()));
    Ok((intent.with("result", Value::Object(result)), notes.pop()))
}

/// Adds to the intent what no pointer named.
fn keep_rest(intent: Intent, rest: &Object) -> Intent {
    if rest.is_empty() {
        return intent;
    }
    let mut words = intent.member("intent").and_then(Value::as_object).cloned().unwrap_or_default();
    words.set(&free_name(&words, "extra"), Value::Object(rest.clone()));
    intent.with("intent", Value::Object(words))
}
