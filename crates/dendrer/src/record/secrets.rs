//! Secrets of a run: what was taken once is taken in every line after it, and pieces of a text that came line by line are read
//! together (design, 14.4).
//!
//! Rule: the secrets themselves are in memory alone; test `what_is_taken_once_is_taken_everywhere`.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use dendrer_object::delta::{Delta, Op};
use dendrer_object::marker::{self, TAG_DIGITS};
use dendrer_object::record::Record;
use dendrer_object::{Intent, Pointer, REDACTION, TypeName, Value};

use super::redacted;
use crate::redact::{KNOWN, NAMED, Redactor, SecretSpan, TakenSecrets, is_learnable};

/// How many secrets of a run a process holds.
const LEARNED_MAX: usize = 1_000;

/// How many bytes of the texts before it, and of a text itself, are read together.
const WINDOW: usize = 512;

/// How many of the newest records of a run are read for the tags of what they took.
const RECORDS_READ: u64 = 1_000;

/// How many lines may be pieces of one secret.
const PIECES_MAX: usize = 64;

/// The kind of the note that a secret came in pieces, of which the first are sealed.
pub const SECRET_IN_PIECES: &str = "secret_in_pieces";

/// The secrets of one run, and what is needed to find more of them.
#[derive(Debug)]
pub struct RunSecrets {
    /// The rules without what was learned.
    base: Arc<Redactor>,
    redactor: Arc<Redactor>,
    learned: Learned,
    /// Tags of what is not held here: of the state, of earlier records, and of what was forgotten.
    tags: BTreeSet<String>,
    /// The tick up to which the tags of records are among them, or their secrets are held.
    upto: u64,
    tail: Option<Tail>,
    /// The number of the next line.
    next: u64,
    /// The ticks of the newest lines, by their numbers.
    ticks: BTreeMap<u64, u64>,
}

/// Values that were taken. They are never printed.
#[derive(Default)]
struct Learned(Vec<String>);

impl std::fmt::Debug for Learned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Learned({})", self.0.len())
    }
}

/// The end of what the newest lines of one agent and type said, at each place of a text.
#[derive(Debug)]
struct Tail {
    agent: Arc<str>,
    type_name: TypeName,
    texts: BTreeMap<Pointer, TailText>,
}

/// The end of a text, and which line brought which part of it.
#[derive(Default)]
struct TailText {
    text: String,
    /// The number of the line, where its part begins here, and where that begins in the text of the line.
    parts: Vec<(u64, usize, usize)>,
}

impl std::fmt::Debug for TailText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TailText({} bytes, {:?})", self.text.len(), self.parts)
    }
}

/// A part of a text that belongs to a secret which several lines share.
#[derive(Debug, Clone)]
pub struct PieceCut {
    place: Pointer,
    range: Range<usize>,
    kind: Arc<str>,
    /// The text in its place.
    marker: String,
}

impl RunSecrets {
    /// Makes those of a run with this state: tags in it are of secrets that were taken before.
    pub fn new(redactor: Arc<Redactor>, state: &Value) -> RunSecrets {
        let mut tags = BTreeSet::new();
        if redactor.tag_id().is_some() {
            marker::for_each_tag(state, &mut |tag| {
                if tag.len() == TAG_DIGITS {
                    tags.insert(tag.to_owned());
                }
            });
        }
        let (base, learned) = (Arc::clone(&redactor), Learned::default());
        let (tail, next, ticks) = (None, 0, BTreeMap::new());
        RunSecrets { base, redactor, learned, tags, upto: 0, tail, next, ticks }
    }

    /// Adds the tags of a record of the run: what it took is known again by its words.
    pub(crate) fn know(&mut self, record: &Record) {
        marker::for_each_tag(&record.content(), &mut |tag| {
            if tag.len() == TAG_DIGITS {
                self.tags.insert(tag.to_owned());
            }
        });
        self.upto = self.upto.max(record.header().tick.unwrap_or(0));
    }

    /// The first of the records up to a tick whose tags are still to be read; `None` if lines have no word that may be a
    /// secret of one.
    pub(crate) fn unread(&self, intents: &[Intent], tick: u64) -> Option<u64> {
        if self.upto >= tick || self.redactor.tag_id().is_none() {
            return None;
        }
        let mut has_word = false;
        for intent in intents.iter().filter(|intent| intent.member(REDACTION).is_none()) {
            each_text(intent, &mut |text| has_word |= words(text).next().is_some());
        }
        has_word.then(|| (self.upto + 1).max((tick + 1).saturating_sub(RECORDS_READ)))
    }

    /// The redactor of a text about the run: it knows the secrets that the run took, too.
    pub(crate) fn redactor_over(&mut self, said: &Value) -> Arc<Redactor> {
        let mut found = Vec::new();
        texts_of(said, &mut |text| found.extend(self.known_by_tags(text)));
        self.learn(found, &[]);
        Arc::clone(&self.redactor)
    }

    /// The redactor with the values that were learned.
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Takes the secrets out of lines that are sealed together. One that was redacted before it came here is taken as it is.
    pub fn redact_each(&mut self, intents: &[Intent]) -> Vec<Intent> {
        let sealed = self.next;
        let intents: Vec<Cow<'_, Intent>> =
            intents.iter().map(|intent| without_typed_tags(&self.redactor, intent)).collect();
        let mut cuts: BTreeMap<u64, Vec<PieceCut>> = BTreeMap::new();
        let mut notes: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (intent, number) in intents.iter().zip(sealed..) {
            if intent.member(REDACTION).is_some() {
                continue;
            }
            let shared = self.cuts(number, intent);
            for (line, cut) in shared {
                match line < sealed {
                    false => cuts.entry(line).or_default().push(cut),
                    true => notes.entry(number).or_default().extend(self.ticks.get(&line)),
                }
            }
        }
        self.next += intents.len() as u64;
        let lines = intents.iter().zip(sealed..).map(|(intent, number)| {
            if intent.member(REDACTION).is_some() {
                return Intent::clone(intent);
            }
            let cuts = cuts.get(&number).map_or(&[][..], |cuts| cuts);
            let mut whole = without_pieces(intent, cuts);
            if let Some(ticks) = notes.get(&number) {
                let ticks: BTreeSet<u64> = ticks.iter().copied().collect();
                let kind = ("kind", Value::from(SECRET_IN_PIECES));
                let ticks = ("ticks", Value::array(ticks.into_iter().map(Value::from)));
                whole.noted.push(Value::record([kind, ticks]));
            }
            self.redact_after(&whole, cuts)
        });
        lines.collect()
    }

    /// Remembers the ticks of lines that [`RunSecrets::redact_each`] returned last.
    pub fn sealed<'r>(&mut self, records: impl ExactSizeIterator<Item = Option<&'r Record>>) {
        let first = self.next - records.len() as u64;
        for (record, number) in records.zip(first..) {
            let Some(tick) = record.and_then(|record| record.header().tick) else { continue };
            self.ticks.insert(number, tick);
            // Records of others in between are still to be read.
            self.upto = if tick == self.upto + 1 { tick } else { self.upto };
        }
        while self.ticks.len() > PIECES_MAX {
            self.ticks.pop_first();
        }
    }

    /// Takes the secrets out of a line, and learns those that it has.
    pub fn redact(&mut self, intent: &Intent) -> Intent {
        self.redact_after(&without_typed_tags(&self.redactor, intent), &[])
    }

    /// As [`RunSecrets::redact`], of a line whose parts of shared secrets are gone.
    fn redact_after(&mut self, intent: &Intent, cuts: &[PieceCut]) -> Intent {
        let mut pieces = TakenSecrets::default();
        cuts.iter().for_each(|cut| pieces.count(&cut.kind));
        let mut found = Vec::new();
        each_text(intent, &mut |text| found.extend(self.known_by_tags(text)));
        let tool = intent.member("action").and_then(|action| action.get("tool")?.as_str());
        let names = [Some(&*intent.agent), Some(intent.type_name.as_str()), tool];
        self.learn(found, &names);
        let (made, taken) = redacted::intent_taking(&self.redactor, intent, pieces.clone());
        // A secret of one part of a line is one in its other parts.
        match self.learn(taken.values().map(str::to_owned).collect(), &names) {
            true => redacted::intent_taking(&self.redactor, intent, pieces).0,
            false => made,
        }
    }

    /// The words of a text that were taken before and are not held here, by their tags.
    fn known_by_tags(&self, text: &str) -> Vec<String> {
        if self.tags.is_empty() {
            return Vec::new();
        }
        let has_tag = |word: &&str| self.redactor.tag_of(word).is_some_and(|tag| self.tags.contains(&tag));
        words(text).filter(has_tag).map(str::to_owned).collect()
    }

    /// Learns values, and what is written in them; none that is one of some names. Returns whether any is new.
    fn learn(&mut self, found: Vec<String>, names: &[Option<&str>]) -> bool {
        let mut new: Vec<String> = Vec::new();
        for value in found.iter().flat_map(|value| self.redactor.spellings(value)) {
            let is_new = !self.learned.0.contains(&value) && !new.contains(&value);
            if is_learnable(&value) && is_new && !names.contains(&Some(&*value)) {
                new.push(value);
            }
        }
        if new.is_empty() {
            return false;
        }
        self.learned.0.extend(new.iter().cloned());
        self.redactor = Arc::new(match self.learned.0.len() > LEARNED_MAX {
            false => self.redactor.knowing(&new),
            // The oldest half is forgotten at once, so that finders are seldom made anew. Their words are known by their tags.
            true => {
                let forgotten = self.learned.0.len() - LEARNED_MAX / 2;
                let forgotten: Vec<String> = self.learned.0.drain(..forgotten).collect();
                self.tags.extend(forgotten.iter().filter_map(|value| self.redactor.tag_of(value)));
                self.base.knowing(&self.learned.0)
            }
        });
        true
    }

    /// Finds the secrets that a line shares with those before it. Returns the parts of each, by the number of their line.
    pub fn cuts(&mut self, number: u64, intent: &Intent) -> Vec<(u64, PieceCut)> {
        let same = |tail: &Tail| tail.agent == intent.agent && tail.type_name == intent.type_name;
        let mut before = self.tail.take().filter(same).map(|tail| tail.texts).unwrap_or_default();
        let (mut texts, mut found) = (BTreeMap::new(), Vec::new());
        for (place, text) in places_of_texts(intent) {
            let mut tail = before.remove(&place).unwrap_or_default();
            if tail.may_go_on(text) && !self.shared(&place, &tail, number, text, &mut found) {
                // A secret that ends here ends for later lines, too.
                tail = TailText::default();
            }
            tail.push(number, text);
            texts.insert(place, tail);
        }
        self.tail =
            Some(Tail { agent: Arc::clone(&intent.agent), type_name: intent.type_name.clone(), texts });
        found
    }

    /// Finds the secrets that a text shares with the end of those before it. Returns whether it may go on with them: false if
    /// the texts before end in a secret that does not.
    fn shared(
        &self,
        place: &Pointer,
        tail: &TailText,
        number: u64,
        text: &str,
        found: &mut Vec<(u64, PieceCut)>,
    ) -> bool {
        let head = &text[..floor(text, WINDOW)];
        let joined = format!("{}{head}", tail.text);
        let border = tail.text.len();
        let alone = LazyCell::new(|| self.redactor.find(head));
        let is_known = |one: &SecretSpan| {
            one.start >= border
                && alone.iter().any(|own| own.start + border <= one.start && one.end <= own.end + border)
        };
        // A secret that is whole at the end of the texts before is not joined with the next text, but for a stream.
        let before = self.redactor.find(&tail.text);
        let ends = before.iter().find(|own| own.end + ENDING_MAX >= border);
        let is_by_name = |one: &SecretSpan| [NAMED, KNOWN].contains(&&*one.kind);
        let is_whole = |one: &SecretSpan| match ends {
            Some(own) if !tail.is_stream(head) => match is_by_name(own) {
                true => is_by_name(one),
                false => !crate::redact::is_cut(&tail.text[own.start..own.end]),
            },
            Some(_) => begins_sentence(&tail.text, head),
            None => false,
        };
        // The next text continues a token: it is drawn by chance, or ends it where tokens of its kind end.
        let goes_on = |one: &SecretSpan| {
            let part = &head[..(one.end - border).min(head.len())];
            tail.is_stream(head)
                || crate::redact::is_drawn_part(part)
                || (!crate::redact::is_cut(&joined[one.start..one.end])
                    && crate::redact::has_length(&joined[one.start..one.end]))
        };
        let crosses = |one: &SecretSpan| one.start < border && (is_whole(one) || !goes_on(one));
        let spans = self.redactor.find(&joined);
        let is_open = ends.is_none_or(|own| crate::redact::is_cut(&tail.text[own.start..own.end]));
        let may_go_on =
            is_open || spans.iter().any(|one| one.start < border && one.end > border && !crosses(one));
        let shared = spans.into_iter().filter(|one| one.end > border && !is_known(one) && !crosses(one));
        for one in shared {
            let marker = self.redactor.marker(&one.kind, &joined[one.start..one.end]);
            let mut parts = tail.parts_in(one.start..one.end.min(border));
            if one.end > border {
                parts.push((number, one.start.max(border) - border..one.end - border));
            }
            for (at, (line, range)) in parts.into_iter().enumerate() {
                let marker = if at == 0 { marker.clone() } else { String::new() };
                let kind = Arc::clone(&one.kind);
                found.push((line, PieceCut { place: place.clone(), range, kind, marker }));
            }
        }
        may_go_on
    }
}

impl TailText {
    fn push(&mut self, line: u64, text: &str) {
        self.parts.push((line, self.text.len(), 0));
        self.text.push_str(text);
        let cut = floor_back(&self.text, WINDOW);
        self.text.drain(..cut);
        let ends: Vec<usize> = self.parts.iter().skip(1).map(|part| part.1).chain([usize::MAX]).collect();
        let mut ends = ends.into_iter();
        self.parts.retain(|_| ends.next().is_some_and(|end| end > cut));
        for (_, at, from) in &mut self.parts {
            *from += cut.saturating_sub(*at);
            *at = at.saturating_sub(cut);
        }
        let many = self.parts.len().saturating_sub(PIECES_MAX);
        self.parts.drain(..many);
    }

    /// Whether a secret may begin here and end in a text that follows: within a run of characters, or after a name that says so.
    fn may_go_on(&self, next: &str) -> bool {
        let is_of_token =
            |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '=' | '.' | ':');
        let before: String = self.text.chars().rev().take_while(is_of_token).take(64).collect();
        let after: String = next.chars().take_while(is_of_token).take(64).collect();
        let is_one = !before.is_empty() && !after.is_empty();
        let has = |is: fn(char) -> bool| before.chars().chain(after.chars()).any(is);
        let is_token = is_one
            && before.len() + after.len() >= 8
            && has(|c| c.is_ascii_digit())
            && has(|c| c.is_ascii_alphabetic());
        let from = floor_back(&self.text, 40);
        is_token || (!self.text.is_empty() && crate::redact::has_hint(&self.text[from..]))
    }

    /// Whether the lines so far are pieces of one text: those of a stream begin or end with a blank now and then, and whole
    /// messages do not.
    fn is_stream(&self, next: &str) -> bool {
        let ends = self.parts.iter().skip(1).map(|part| part.1).chain([self.text.len()]);
        let parts = self.parts.iter().zip(ends).map(|((_, at, _), end)| &self.text[*at..end]);
        let parts: Vec<&str> = parts.chain([next]).collect();
        let cut = parts.iter().filter(|part| part.starts_with(' ') || part.ends_with(' ')).count();
        parts.len() > 3 && cut > 1
    }

    /// The parts of a range that lines brought, each as a range of the text of its line.
    fn parts_in(&self, range: Range<usize>) -> Vec<(u64, Range<usize>)> {
        let ends = self.parts.iter().skip(1).map(|part| part.1).chain([self.text.len()]);
        let parts = self.parts.iter().zip(ends).filter_map(|((line, at, from), end)| {
            let (start, end) = (range.start.max(*at), range.end.min(end));
            (start < end).then(|| (*line, start - at + from..end - at + from))
        });
        parts.collect()
    }
}

/// A line without its parts of secrets that it shares with others.
pub fn without_pieces(intent: &Intent, cuts: &[PieceCut]) -> Intent {
    let mut made = intent.clone();
    let mut by_place: BTreeMap<&Pointer, Vec<&PieceCut>> = BTreeMap::new();
    cuts.iter().for_each(|cut| by_place.entry(&cut.place).or_default().push(cut));
    for (place, mut cuts) in by_place {
        let mut tokens = place.tokens();
        let Some(first) = tokens.next() else { continue };
        let rest = tokens.collect::<Vec<_>>();
        let rest = Pointer::of(rest.iter().map(|token| &**token));
        let Some((_, value)) = made.members.iter_mut().find(|(name, _)| **name == *first) else { continue };
        let Some(text) = rest.get(value).and_then(Value::as_str) else { continue };
        // The cut that was found last has more of its pieces.
        cuts.reverse();
        cuts.sort_by_key(|cut| (cut.range.start, std::cmp::Reverse(cut.range.end)));
        let (mut clean, mut upto) = (String::new(), 0);
        for cut in cuts {
            if cut.range.start >= upto {
                clean.push_str(&text[upto..cut.range.start]);
                clean.push_str(&cut.marker);
            }
            upto = upto.max(cut.range.end);
        }
        clean.push_str(&text[upto..]);
        let set = Delta(vec![Op::set(rest, Value::from(clean))]);
        if let Ok(clean) = set.apply(value) {
            *value = clean;
        }
    }
    made
}

/// How many signs may end a sentence after a secret.
const ENDING_MAX: usize = 2;

/// Whether a text begins a sentence, and does not go on with the end of the one before it: after a full stop, or with a capital.
fn begins_sentence(before: &str, text: &str) -> bool {
    let rest = text.trim_start_matches(char::is_alphabetic);
    let word = &text[..text.len() - rest.len()];
    let is_word = !word.is_empty() && rest.starts_with(char::is_whitespace);
    let is_capital = word.len() > 2
        && word.starts_with(char::is_uppercase)
        && word.chars().skip(1).all(char::is_lowercase);
    is_word && (is_capital || before.ends_with(['.', '!', '?']))
}

/// The texts of a line that may be pieces of a larger one.
fn places_of_texts(intent: &Intent) -> Vec<(Pointer, &str)> {
    let mut found = Vec::new();
    for (name, value) in &intent.members {
        if matches!(&**name, "intent" | "result") {
            texts_with_places(value, &mut vec![name.to_string()], &mut found);
        }
    }
    found
}

/// How many texts of a line are looked at as pieces.
const TEXTS_MAX: usize = 8;

fn texts_with_places<'v>(value: &'v Value, at: &mut Vec<String>, found: &mut Vec<(Pointer, &'v str)>) {
    match value {
        _ if found.len() >= TEXTS_MAX => {}
        Value::String(text) => found.push((Pointer::of(at.iter().map(String::as_str)), text)),
        Value::Object(members) if at.len() < 4 => {
            for (name, value) in members.iter() {
                at.push(name.to_string());
                texts_with_places(value, at, found);
                at.pop();
            }
        }
        _ => {}
    }
}

/// A line in which no text claims to be what this store took: a marker with a tag of its key is written by this store alone.
fn without_typed_tags<'i>(redactor: &Redactor, intent: &'i Intent) -> Cow<'i, Intent> {
    let mut is_typed = false;
    let own = |tag: &str| redactor.tag_id().is_some_and(|id| marker::is_of_key(tag, id));
    each_text(intent, &mut |text| is_typed |= marker::has_tag(text, &own));
    if !is_typed || intent.member(REDACTION).is_some() {
        return Cow::Borrowed(intent);
    }
    let mut made = intent.clone();
    for (_, value) in &mut made.members {
        *value = marker::without_tags(value, &own);
    }
    for op in made.delta.iter_mut().flat_map(|delta| &mut delta.0) {
        op.value = op.value.as_ref().map(|value| marker::without_tags(value, &own));
    }
    Cow::Owned(made)
}

/// The texts of a line: of its members, and of its change.
fn each_text(intent: &Intent, f: &mut dyn FnMut(&str)) {
    let values = intent.members.iter().map(|(_, value)| value);
    let written = intent.delta.iter().flat_map(|delta| &delta.0).filter_map(|op| op.value.as_ref());
    values.chain(written).for_each(|value| texts_of(value, f));
}

/// The words of a text that may be secrets: as a whole, after the sign of an assignment, and between signs that join words.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| {
        c.is_whitespace()
            || matches!(c, '"' | '\'' | '`' | ',' | ';' | '(' | ')' | '<' | '>' | '{' | '}' | '[' | ']')
    };
    // A password may have any sign in it.
    let whole = text.split_whitespace().filter(move |word| word.contains(ends));
    let whole = whole.flat_map(|word| {
        let bare = word.trim_matches(['"', '\'', '`']);
        [bare, bare.trim_matches([',', ';', '(', ')', '<', '>'])]
    });
    let parts = text.split(ends).flat_map(|word| {
        let from = word.rfind(['=', ':']).map_or(0, |sign| sign + 1);
        let pieces = word
            .split(['-', '_', '/', '@', '.', '=', ':', '&', '?'])
            .filter(move |piece| piece.len() < word.len());
        [Some(word), (from > 0).then(|| &word[from..])].into_iter().flatten().chain(pieces)
    });
    parts
        .chain(whole)
        .map(|word| word.trim_end_matches(['.', '!', '?', '\\']))
        .filter(|word| is_learnable(word))
}

fn texts_of(value: &Value, f: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => f(text),
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, f)),
        Value::Object(members) => members.iter().for_each(|(_, member)| texts_of(member, f)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The last place at or before a byte at which a text can be cut.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The place so many bytes before the end of a text, or a little after it.
fn floor_back(text: &str, bytes: usize) -> usize {
    let mut at = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::{PackRules, RedactionProfile};
    use dendrer_object::json::parse_door;

    fn redactor() -> Arc<Redactor> {
        let made = Redactor::new(RedactionProfile::Default, &PackRules::default(), &[], Some([3; 32]));
        Arc::new(made.unwrap_or_else(|error| panic!("{error}")))
    }

    fn line(text: &str) -> Intent {
        let value = parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        Intent::from_value(&value, Some("a")).unwrap_or_else(|error| panic!("{error}"))
    }

    fn said(agent: &str, text: &str) -> Intent {
        line(&format!(r#"{{"type":"plan.update","agent":"{agent}","intent":{{"description":"{text}"}}}}"#))
    }

    fn shown(intents: &[Intent]) -> Vec<String> {
        let text = |intent: &Intent| Some(intent.member("intent")?.get("description")?.as_str()?.to_owned());
        intents.iter().map(|intent| text(intent).unwrap_or_default()).collect()
    }

    #[test]
    fn what_is_taken_once_is_taken_everywhere() {
        let mut secrets = RunSecrets::new(redactor(), &Value::object());
        let first = r#"{"type":"action.request","action":{"tool":"login","params":{"password":"Gr8pass99zz","note":"typed Gr8pass99zz"}}}"#;
        let made = secrets.redact_each(&[line(first), said("a", "as Gr8pass99zz, and R3I4cGFzczk5eno=")]);
        let all: String =
            made.iter().flat_map(|intent| &intent.members).map(|(_, value)| value.to_string()).collect();
        assert!(!all.contains("Gr8pass99zz") && !all.contains("R3I4cGFzczk5eno"), "{all}");
        // The name of a tool, a type or an agent stays.
        let tool = r#"{"type":"action.request","action":{"tool":"deploy2prod","params":{"password":"deploy2prod"}}}"#;
        let made = secrets.redact_each(&[line(tool), said("b", "called deploy2prod")]);
        assert_eq!(
            made[0]
                .member("action")
                .and_then(|action| action.get("tool")?.as_str().map(str::to_owned))
                .as_deref(),
            Some("deploy2prod")
        );
        assert_eq!(shown(&made[1..]), ["called deploy2prod"]);
    }

    fn answered(output: &str) -> Intent {
        let output = Value::from(output);
        line(&format!(r#"{{"type":"action.result","result":{{"status":"ok","output":{output}}}}}"#))
    }

    fn outputs(intents: &[Intent]) -> Vec<String> {
        let text = |intent: &Intent| Some(intent.member("result")?.get("output")?.to_string());
        intents.iter().map(|intent| text(intent).unwrap_or_default()).collect()
    }

    #[test]
    fn what_a_tool_answered_is_known_afterwards() {
        for (first, later) in [
            ("PORT=80\nDB_PASSWORD=Qz8rT2kLw9\n", "./migrate Qz8rT2kLw9"),
            (r#"{"password":"Qz8rT2kLw9"}"#, "with Qz8rT2kLw9."),
            ("Authorization: Bearer Qz8rT2kLw9mm", "with Qz8rT2kLw9mm"),
            ("kind: Secret\ndata:\n  password: UXo4clQya0x3OQ==\n", "so it is Qz8rT2kLw9"),
            ("url: postgres://app:Qz8rT2kLw9@db/x", "psql with Qz8rT2kLw9"),
        ] {
            let mut secrets = RunSecrets::new(redactor(), &Value::object());
            let made = secrets.redact_each(&[answered(first)]);
            assert!(!outputs(&made)[0].contains("Qz8rT2kLw9"), "{first}");
            let made = shown(&[secrets.redact(&said("b", later))]).concat();
            assert!(made.contains("<redacted:known"), "{first}: {made}");
        }
    }

    /// A message is destroyed if its first word is read as the end of the secret before it.
    #[test]
    fn a_message_after_a_whole_secret_stays() {
        let whole = [
            "export API_TOKEN=Wq7zLm3vXk9T",
            "STRIPE_KEY=sk_live_8fK2mmzQ0pLtVx8RbWcYdNsE",
            "AKIAQ7XKZ2M8LPWNVB4T",
            "the password is Kz81-mmq99",
            "token ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5",
            "mysql -u root -pWq7zLm3vXk9T",
        ];
        let next = [
            "rejected",
            "DENIED",
            "17 failed, 3 passed",
            "ok",
            "42",
            "/etc/passwd",
            "no",
            "Do not delete",
            "拒否しました",
        ];
        for (first, next) in whole.iter().flat_map(|first| next.iter().map(move |next| (*first, *next))) {
            let mut secrets = RunSecrets::new(redactor(), &Value::object());
            let made = outputs(&secrets.redact_each(&[answered(first), answered(next), answered("done")]));
            assert_eq!(made[1..], [Value::from(next).to_string(), "\"done\"".to_owned()], "{first}");
            assert!(made[0].contains("redacted"), "{first}");
            // The secret is known, and nothing joined to it.
            let secret = first.rsplit([' ', '=']).next().unwrap_or_default().trim_start_matches("-p");
            let made = shown(&[secrets.redact(&said("b", &format!("use {secret} now")))]).concat();
            assert!(!made.contains(secret), "{first}: {made}");
        }
    }

    /// A token that was cut by a tool does not go on with the next message.
    #[test]
    fn a_message_after_a_cut_secret_stays() {
        for lines in [
            &["token ghp_Qr7Lk2mZx91L", "deployed", "Invoice2024 paid"][..],
            &["token ghp_Qr7Lk2mZx91L", "main", "deployed", "v2", "ok"],
            &["key AKIAQ7RK2MZX", "DENIED", "2026-11-29"],
            &["slack xoxb-2345", "2026-11-29", "shipped"],
        ] {
            let mut secrets = RunSecrets::new(redactor(), &Value::object());
            let intents: Vec<Intent> = lines.iter().map(|line| answered(line)).collect();
            let made = outputs(&secrets.redact_each(&intents));
            let expected: Vec<String> = lines.iter().map(|line| Value::from(*line).to_string()).collect();
            assert_eq!(made[1..], expected[1..]);
        }
    }

    /// Several words are one secret, and so is one with any sign in it.
    #[test]
    fn a_secret_of_several_words_is_known_afterwards() {
        for (first, secret) in [
            (r#"password: "Plum 47 Kettle river""#, "Plum 47 Kettle river"),
            (r#"password: "Plum,47;Kettle(9)""#, "Plum,47;Kettle(9)"),
        ] {
            let redactor = redactor();
            let mut secrets = RunSecrets::new(Arc::clone(&redactor), &Value::object());
            let first = answered(first);
            let first = secrets.redact_each(std::slice::from_ref(&first));
            let made = shown(&[secrets.redact(&said("b", &format!("use {secret} now")))]).concat();
            assert!(!made.contains(secret), "{made}");
            if !secret.contains(' ') {
                let state = first[0].member("result").cloned().unwrap_or(Value::Null);
                let mut later = RunSecrets::new(redactor, &state);
                let made = shown(&[later.redact(&said("b", &format!("use {secret} now")))]).concat();
                assert!(!made.contains(secret), "{made}");
            }
        }
    }

    #[test]
    fn a_record_that_lost_a_piece_says_so() {
        let mut secrets = RunSecrets::new(redactor(), &Value::object());
        let made = secrets
            .redact_each(&[answered("token ghp_aB3dE5fG7hJ9k"), answered("L1mN3pQ5rS7tU9vW1xY3zA5 done")]);
        assert_eq!(outputs(&made)[1], "\" done\"");
        let taken = |intent: &Intent| intent.member(REDACTION).and_then(|one| one.get("taken").cloned());
        assert_eq!(taken(&made[1]).map(|taken| taken.to_string()).as_deref(), Some(r#"{"github-pat":1}"#));
        let made = shown(&[secrets.redact(&said("b", "it was ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5."))]);
        assert!(made[0].contains("<redacted:github-pat"));
    }

    #[test]
    fn a_marker_that_is_typed_has_no_tag_of_this_store() {
        let redactor = redactor();
        let mut secrets = RunSecrets::new(Arc::clone(&redactor), &Value::object());
        let own = redactor.marker("named", "Qz8rT2kLw9");
        let other = own.replace(&own[16..20], if own.contains("#ffff") { "eeee" } else { "ffff" });
        let made = shown(
            &secrets.redact_each(&[said("a", &format!("as {own}")), said("a", &format!("as {other}"))]),
        );
        assert_eq!(made, ["as <redacted:named>", &*format!("as {other}")]);
        let set = format!(r#"{{"type":"plan.update","delta":[{{"set":"/claimed","value":"{own}"}}]}}"#);
        let made = secrets.redact(&line(&set)).delta.unwrap_or_default();
        assert_eq!(made.0[0].value, Some(Value::from("<redacted:named>")));
    }

    #[test]
    fn the_oldest_values_are_forgotten() {
        let mut secrets = RunSecrets::new(redactor(), &Value::object());
        let typed = |n: usize| format!("Gr8pass{n:04}zz");
        for n in 0..=LEARNED_MAX {
            let set =
                format!(r#"{{"type":"plan.update","delta":[{{"set":"/password","value":"{}"}}]}}"#, typed(n));
            secrets.redact(&line(&set));
        }
        assert_eq!(secrets.learned.0.len(), LEARNED_MAX / 2);
        let mut later =
            |n: usize| shown(&[secrets.redact(&said("a", &format!("typed {} here", typed(n))))]).concat();
        assert!(later(LEARNED_MAX).starts_with("typed <redacted:"));
        // The tag of what was forgotten is kept.
        assert!(later(0).starts_with("typed <redacted:known#"));
        assert_eq!(later(LEARNED_MAX + 1), format!("typed {} here", typed(LEARNED_MAX + 1)));
    }

    #[test]
    fn a_later_process_knows_words_by_their_tags() {
        let redactor = redactor();
        let mut first = RunSecrets::new(Arc::clone(&redactor), &Value::object());
        let set = r#"{"type":"plan.update","delta":[{"set":"/password","value":"Gr8pass99zz"}]}"#;
        let made = first.redact(&line(set));
        let state = made.delta.and_then(|delta| delta.apply(&Value::object()).ok()).unwrap_or(Value::Null);
        let mut later = RunSecrets::new(redactor, &state);
        assert_eq!(
            shown(&[later.redact(&said("a", "typed Gr8pass99zz."))])[0].split('#').next(),
            Some("typed <redacted:known")
        );
    }

    #[test]
    fn pieces_of_a_stream_are_read_together() {
        let token = "ghp_8fK2mQ9sLw3vNx71bTgHpZ4cVdE5gH6iJk0a";
        for size in [1, 2, 3, 7, 20, 39] {
            let chars: Vec<char> = format!("The token is {token}, keep it.").chars().collect();
            let pieces: Vec<Intent> =
                chars.chunks(size).map(|piece| said("a", &piece.iter().collect::<String>())).collect();
            let mut secrets = RunSecrets::new(redactor(), &Value::object());
            let all = shown(&secrets.redact_each(&pieces)).concat();
            assert!(
                all.starts_with("The token is <redacted:github-pat#") && all.ends_with(">, keep it."),
                "{size}: {all}"
            );
        }
        let mut secrets = RunSecrets::new(redactor(), &Value::object());
        let two = [said("a", "The password is "), said("a", "Gr8pass99qq.")];
        assert!(shown(&secrets.redact_each(&two))[1].starts_with("<redacted:named#"));
        let two = [said("a", "The password is Gr8pass99qq."), said("a", "The rest is fine.")];
        assert_eq!(shown(&secrets.redact_each(&two))[1], "The rest is fine.");
        // Another agent says another thing.
        let two = [said("a", "The token is gh"), said("b", "p_8fK2mQ9sLw3vNx71bTgHpZ4cVdE5gH6iJk0a")];
        assert_eq!(
            shown(&secrets.redact_each(&two)),
            ["The token is gh", "p_8fK2mQ9sLw3vNx71bTgHpZ4cVdE5gH6iJk0a"]
        );
    }

    #[test]
    fn pieces_that_are_sealed_are_named() {
        let mut secrets = RunSecrets::new(redactor(), &Value::object());
        secrets.redact_each(&[said("a", "The token is ghp_8fK2mQ9s")]);
        secrets.ticks.insert(0, 7);
        let made = secrets.redact_each(&[said("a", "Lw3vNx71bTgHpZ4cVdE5gH6iJk0a, keep it.")]);
        assert_eq!(shown(&made), [", keep it."]);
        let note = made[0].noted.iter().map(Value::to_string).collect::<Vec<_>>();
        assert_eq!(note, [r#"{"kind":"secret_in_pieces","ticks":[7]}"#]);
    }
}
