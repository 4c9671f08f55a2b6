//! Secrets of a run: what was taken once is taken in every line after it, and pieces of a text that came line by line are read
//! together (design, 14.4).
//!
//! Rule: the secrets themselves are in memory alone; test `what_is_taken_once_is_taken_everywhere`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use dendrer_object::delta::{Delta, Op};
use dendrer_object::marker::{self, TAG_DIGITS};
use dendrer_object::record::Record;
use dendrer_object::{Intent, Pointer, REDACTION, TypeName, Value};

use super::redacted;
use crate::redact::{Redactor, SecretSpan};

/// How many secrets of a run a process holds.
const LEARNED_MAX: usize = 1_000;

/// How many characters a secret has that is looked for, at least and at most.
const LEARNED: Range<usize> = 8..4_097;

/// How many bytes of the texts before it, and of a text itself, are read together.
const WINDOW: usize = 512;

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
    /// Tags of markers that another process left in the state.
    tags: BTreeSet<String>,
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
        RunSecrets { base, redactor, learned, tags, tail: None, next: 0, ticks: BTreeMap::new() }
    }

    /// The redactor with the values that were learned.
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Takes the secrets out of lines that are sealed together. One that was redacted before it came here is taken as it is.
    pub fn redact_each(&mut self, intents: &[Intent]) -> Vec<Intent> {
        let sealed = self.next;
        let mut cuts: BTreeMap<u64, Vec<PieceCut>> = BTreeMap::new();
        let mut notes: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (intent, number) in intents.iter().zip(sealed..) {
            if intent.member(REDACTION).is_some() {
                continue;
            }
            for (line, cut) in self.cuts(number, intent) {
                match line < sealed {
                    false => cuts.entry(line).or_default().push(cut),
                    true => notes.entry(number).or_default().extend(self.ticks.get(&line)),
                }
            }
        }
        self.next += intents.len() as u64;
        let lines = intents.iter().zip(sealed..).map(|(intent, number)| {
            if intent.member(REDACTION).is_some() {
                return intent.clone();
            }
            let mut whole = without_pieces(intent, cuts.get(&number).map_or(&[], |cuts| cuts));
            if let Some(ticks) = notes.get(&number) {
                let ticks: BTreeSet<u64> = ticks.iter().copied().collect();
                let kind = ("kind", Value::from(SECRET_IN_PIECES));
                let ticks = ("ticks", Value::array(ticks.into_iter().map(Value::from)));
                whole.noted.push(Value::record([kind, ticks]));
            }
            self.redact(&whole)
        });
        lines.collect()
    }

    /// Remembers the ticks of lines that [`RunSecrets::redact_each`] returned last.
    pub fn sealed<'r>(&mut self, records: impl ExactSizeIterator<Item = Option<&'r Record>>) {
        let first = self.next - records.len() as u64;
        for (record, number) in records.zip(first..) {
            self.ticks.extend(record.and_then(|record| Some((number, record.header().tick?))));
        }
        while self.ticks.len() > PIECES_MAX {
            self.ticks.pop_first();
        }
    }

    /// Takes the secrets out of a line, and learns those that it has.
    pub fn redact(&mut self, intent: &Intent) -> Intent {
        self.learn_by_tags(intent);
        let made = redacted::intent(&self.redactor, intent);
        let mut found = Vec::new();
        taken_from(&self.redactor, intent, &made, &mut found);
        // A secret of one part of a line is one in its other parts.
        if self.learn(found, intent) { redacted::intent(&self.redactor, intent) } else { made }
    }

    /// Learns words whose tags another process left.
    fn learn_by_tags(&mut self, intent: &Intent) {
        if self.tags.is_empty() {
            return;
        }
        let mut found = Vec::new();
        let mut look = |text: &str| {
            let ends = |c: char| {
                c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',' | ';' | '(' | ')' | '<' | '>')
            };
            for word in text.split(ends) {
                let from = word.rfind(['=', ':']).map_or(0, |sign| sign + 1);
                let words = [word, &word[from..]].map(|word| word.trim_end_matches(['.', '!', '?']));
                let known = words.into_iter().filter(|word| is_learnable(word));
                let has_tag =
                    |word: &&str| self.redactor.tag_of(word).is_some_and(|tag| self.tags.contains(&tag));
                found.extend(known.filter(has_tag).map(str::to_owned));
            }
        };
        let values = intent.members.iter().map(|(_, value)| value);
        let written = intent.delta.iter().flat_map(|delta| &delta.0).filter_map(|op| op.value.as_ref());
        values.chain(written).for_each(|value| texts_of(value, &mut look));
        self.learn(found, intent);
    }

    /// Learns values; none that names the agent, the tool or the type of a line. Returns whether any is new.
    fn learn(&mut self, found: Vec<String>, intent: &Intent) -> bool {
        let tool = intent.member("action").and_then(|action| action.get("tool")?.as_str());
        let names = [Some(&*intent.agent), Some(intent.type_name.as_str()), tool];
        let mut new: Vec<String> = Vec::new();
        for value in found {
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
            // The oldest half is forgotten at once, so that finders are seldom made anew.
            true => {
                let forgotten = self.learned.0.len() - LEARNED_MAX / 2;
                self.learned.0.drain(..forgotten);
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
            if tail.may_go_on(text) {
                self.shared(&place, &tail, number, text, &mut found);
            }
            tail.push(number, text);
            texts.insert(place, tail);
        }
        self.tail =
            Some(Tail { agent: Arc::clone(&intent.agent), type_name: intent.type_name.clone(), texts });
        found
    }

    /// Finds the secrets that a text shares with the end of those before it.
    fn shared(
        &self,
        place: &Pointer,
        tail: &TailText,
        number: u64,
        text: &str,
        found: &mut Vec<(u64, PieceCut)>,
    ) {
        let head = &text[..floor(text, WINDOW)];
        let joined = format!("{}{head}", tail.text);
        let border = tail.text.len();
        let alone = self.redactor.find(head);
        let is_known = |one: &SecretSpan| {
            one.start >= border
                && alone.iter().any(|own| own.start + border <= one.start && one.end <= own.end + border)
        };
        let spans = self.redactor.find(&joined);
        // A secret that ended with the text before it does not go on with the first word of a sentence.
        let is_sentence = begins_sentence(&tail.text, head)
            && self.redactor.find(&tail.text).iter().any(|own| own.end + ENDING_MAX >= border);
        let crosses = |one: &SecretSpan| one.start < border && is_sentence;
        let shared = spans.into_iter().filter(|one| one.end > border && !is_known(one) && !crosses(one));
        for one in shared {
            let marker = self.redactor.marker(&one.kind, &joined[one.start..one.end]);
            let mut parts = tail.parts_in(one.start..one.end.min(border));
            if one.end > border {
                parts.push((number, one.start.max(border) - border..one.end - border));
            }
            for (at, (line, range)) in parts.into_iter().enumerate() {
                let marker = if at == 0 { marker.clone() } else { String::new() };
                found.push((line, PieceCut { place: place.clone(), range, marker }));
            }
        }
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

fn texts_of(value: &Value, f: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => f(text),
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, f)),
        Value::Object(members) => members.iter().for_each(|(_, member)| texts_of(member, f)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a value is looked for in other places: long enough, of letters and digits, and no path or address.
fn is_learnable(value: &str) -> bool {
    LEARNED.contains(&value.chars().count())
        && value.bytes().any(|c| c.is_ascii_digit())
        && value.chars().any(char::is_alphabetic)
        && !value.contains(char::is_whitespace)
        && !value.contains("://")
        && !value.starts_with(['/', '.', '~'])
        && !marker::has_marker(value)
}

/// Collects the texts that were taken out of a line.
fn taken_from(redactor: &Redactor, intent: &Intent, clean: &Intent, found: &mut Vec<String>) {
    for ((_, value), (_, made)) in intent.members.iter().zip(&clean.members) {
        taken(redactor, value, made, found);
    }
    let ops = |intent: &Intent| intent.delta.as_ref().map_or_else(Vec::new, |delta| delta.0.clone());
    for (op, made) in ops(intent).iter().zip(&ops(clean)) {
        if let (Some(value), Some(made)) = (&op.value, &made.value) {
            taken(redactor, value, made, found);
        }
    }
}

fn taken(redactor: &Redactor, value: &Value, clean: &Value, found: &mut Vec<String>) {
    match (value, clean) {
        (Value::String(text), Value::String(made)) if text != made => {
            found.extend(redactor.find(text).iter().map(|one| text[one.start..one.end].to_owned()));
        }
        (Value::String(text), Value::Object(_)) => {
            // A scheme is no part of the secret.
            found.push(text.split_once(' ').map_or(&**text, |(_, rest)| rest).to_owned());
        }
        (Value::Array(items), Value::Array(made)) => {
            items.iter().zip(made.iter()).for_each(|(item, made)| taken(redactor, item, made, found));
        }
        (Value::Object(members), Value::Object(made)) => {
            for (name, member) in members.iter() {
                if let Some(made) = made.get(name) {
                    taken(redactor, member, made, found);
                }
            }
        }
        _ => {}
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
        assert_eq!(later(0), "typed Gr8pass0000zz here");
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
