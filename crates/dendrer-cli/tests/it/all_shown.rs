//! Texts have every value and every place of their documents: `diff`, `show`, `state`, `bisect` and `why` at 60 and 80
//! columns, on the demo, on LangGraph threads and on the corpus. A value that a text counts instead of printing it is in
//! the answer of the command that the text names for it.
//!
//! `DENDRER_ALL_SHOWN=1` asks about every run, pair and tick; without it a part of them is asked about.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dendrer_object::{Object, Pointer, Value};
use dendrer_view::quote;

use crate::support::{Demo, at_home, demo, written};

/// Set to ask about every run, pair and tick.
const ALL: &str = "DENDRER_ALL_SHOWN";

const WIDTHS: [&str; 2] = ["60", "80"];

/// Members of documents that a text may lack, by their paths, each row with the reason. `*` at the beginning stands for any
/// path, at the end for all that is below.
const SKIPPED: [(&str, &str); 7] = [
    (
        "schema kind origin.kind *.certainty certainty *.as *.kind *.removed complete there reads chain.reads",
        "form of the document",
    ),
    ("run agent a b tick window path followed read_from align predicate.*", "asked by the command"),
    (
        "outcome outcome.state ends.verdict items.verdict items.type items.kinds first.cause markers.says \
         markers.changes_state chain.items.temporal chain.more diagnosis.* looked.* *.others *.unread hidden \
         status_from_text probes_max candidates only_a only_b unclear not_comparable counts.* a_range b_range \
         markers.tick left_out items.node content.messages.role content.redaction.rules.* content.redaction.tags",
        "words and counts that the text has in a sentence",
    ),
    (
        "chain.items.id chain.items.agent chain.items.summary items.a.* items.b.* markers.id markers.type upstream.* root.*.id root.id \
         origin.author root.summary root.inputs.* first_seen.type first_seen.agent moved.type moved.agent sources.*",
        "members of a transition that is named by its tick; `show` prints it",
    ),
    ("content.delta root.ops root.path", "writes, which are shown as changes with both sides"),
    (
        "content.state_root content.seq *.status_from ts origin.ts first_seen.place moved.place moved.change",
        "printed in another form, or by `state`",
    ),
    ("suggestions.* suggestion.*", "the first is printed, as a command"),
];

/// The store that is asked, and its user.
pub(crate) struct Asked {
    pub(crate) dir: PathBuf,
    pub(crate) home: PathBuf,
}

impl Asked {
    fn of_demo(demo: &Demo) -> Asked {
        Asked { dir: demo.dir(), home: demo.dir().parent().unwrap().to_owned() }
    }

    /// Runs a line in a shell, and returns stdout and stderr as one text.
    fn sh(&self, line: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_dendrer")).parent().unwrap().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(&self.dir).env_clear().env("TZ", "UTC");
        command.env("PATH", format!("{program}:{path}")).stdin(Stdio::null());
        let output = at_home(&mut command, &self.home).output().unwrap();
        let code = output.status.code().unwrap();
        assert!(matches!(code, 0 | 1 | 6), "{line}: {code}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn document(&self, line: &str) -> Value {
        let text = self.sh(&format!("{line} --json"));
        written(text.lines().next().unwrap())
    }
}

/// A text in which values are looked for.
struct Shown {
    /// The text without blanks: wrapping is undone.
    squeezed: String,
    /// The text with its lines joined by a blank, and by nothing: a line is wrapped at a blank or in a word.
    joined: [String; 2],
}

fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '\n')).collect()
}

impl Shown {
    fn of(text: &str) -> Shown {
        let join = |by: &str| text.lines().map(str::trim_start).collect::<Vec<_>>().join(by);
        Shown { squeezed: squeeze(text), joined: [join(" "), join("")] }
    }

    fn has(&self, text: &str) -> bool {
        self.squeezed.contains(&squeeze(text))
    }

    /// Whether a number or a word is in the text, and is no part of a longer one.
    fn has_word(&self, word: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.joined.iter().any(|text| {
            text.match_indices(word).any(|(at, _)| {
                let (before, after) = (&text[..at], &text[at + word.len()..]);
                let point = |text: &str| {
                    text.len() > 1 && text.as_bytes()[0] == b'.' && text.as_bytes()[1].is_ascii_digit()
                };
                !before.ends_with(|c| is_part(c) || c == '.') && !after.starts_with(is_part) && !point(after)
            })
        })
    }

    fn has_leaf(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => {
                let digest = text.strip_prefix("sha256:").unwrap_or(text);
                let is_digest = digest.len() == 64 && digest.bytes().all(|c| c.is_ascii_hexdigit());
                self.has(&quote::value(value))
                    || self.has(&quote::json(value))
                    || self.has(&quote::quoted(text))
                    || self.has(&quote::escape(text))
                    // A summary is escaped already.
                    || self.has(text)
                    || is_digest && self.has(&digest[..12])
                    || text.parse::<Pointer>().is_ok_and(|path| self.has_place(&path))
            }
            Value::Number(_) => {
                let confidence = value.as_f64().map(|number| format!("{number:.3}"));
                self.has_word(&quote::value(value)) || confidence.is_some_and(|text| self.has_word(&text))
            }
            other => self.has_word(&other.to_string()),
        }
    }

    /// Whether an operation of a delta is in the text, with its value.
    fn has_operation(&self, op: &Value) -> bool {
        let members = op.as_object().unwrap();
        let value = members.get("value").map(quote::value).unwrap_or_default();
        members.iter().filter(|(name, _)| &***name != "value").any(|(verb, path)| {
            let path: Pointer = path.as_str().unwrap().parse().unwrap();
            let places = spelled(&Pointer::of(std::iter::once("state"))).into_iter().chain(spelled(&path));
            self.has(&format!("{verb} {value}"))
                || places.into_iter().any(|place| self.has(&format!("{verb} {place} {value}")))
        })
    }

    fn has_place(&self, path: &Pointer) -> bool {
        spelled(path).iter().any(|place| self.has(place))
    }

    /// Whether a change is in the text: its place, and next to it both sides.
    fn has_change(&self, path: &Pointer, before: Option<&Value>, after: Option<&Value>) -> bool {
        let is_confidence = path.as_str().ends_with("confidence");
        let words = |value: &Value| {
            let confidence = value.as_f64().filter(|_| is_confidence).map(|number| format!("{number:.3}"));
            let held = value.as_str().and_then(quote::held_json).map(|held| format!("{held} (text)"));
            let words =
                [quote::value(value), quote::as_text(value)].into_iter().chain(held).chain(message(value));
            words.chain(confidence).map(Some).collect()
        };
        let forms = |side: Option<&Value>| side.map_or_else(|| vec![None], words);
        let gained = match (before, after) {
            (Some(Value::Array(before)), Some(Value::Array(after))) if after.len() == before.len() + 1 => {
                let is_longer = before.iter().zip(after.iter()).all(|(before, after)| before == after);
                after.get(before.len()).filter(|_| is_longer).map(|item| (before.len(), item))
            }
            _ => None,
        };
        spelled(path).iter().any(|place| {
            let one = |before: &Option<String>, after: &Option<String>| match (before, after) {
                (Some(before), Some(after)) => {
                    self.has(&format!("~ {place} {before} -> {after}"))
                        || self.has(&format!("~ {place} - {before} + {after}"))
                        || before == after && self.has(&format!("= {place} {after}"))
                }
                (None, Some(after)) => self.has(&format!("+ {place} {after}")),
                (Some(before), None) => self.has(&format!("- {place} {before}")),
                (None, None) => self.has(&format!("= {place} (made and removed)")),
            };
            let (befores, afters) = (forms(before), forms(after));
            befores.iter().any(|before| afters.iter().any(|after| one(before, after)))
                || gained
                    .is_some_and(|(at, item)| self.has(&format!("+ {place}[{at}] {}", quote::value(item))))
        })
    }
}

/// A message of a model framework as a text has it: who speaks, calls, what is said.
fn message(value: &Value) -> Option<String> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = text(value, "type").filter(|kind| ["human", "ai", "tool"].contains(&&**kind))?;
    let calls =
        value.get("tool_calls").and_then(Value::as_array).map(|calls| calls.iter().collect::<Vec<_>>());
    let call = |call: &&Value| {
        format!("{} {}", text(call, "name").unwrap(), quote::value(call.get("args").unwrap()))
    };
    let calls: Vec<String> = calls.unwrap_or_default().iter().map(call).collect();
    let said = value.get("content").filter(|said| said.as_str() != Some("")).map(quote::value);
    let name = text(value, "name");
    Some(
        [Some(format!("{kind}:")), name, Some(calls.join(", ")), said]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" "),
    )
}

/// The spellings of a place: whole, and below the state.
fn spelled(path: &Pointer) -> Vec<String> {
    let below = |path: &str| match path {
        "" => "state".to_owned(),
        path => quote::path(&path.parse().unwrap()),
    };
    let state = path.as_str().strip_prefix("/state").filter(|rest| rest.is_empty() || rest.starts_with('/'));
    [Some(below(path.as_str())), state.map(below)].into_iter().flatten().collect()
}

/// The commands that a text names for what it counts: `(N more lines: COMMAND)`, `(N more places)  COMMAND`.
fn named(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start();
        if !line.starts_with('(') || !line.contains(" more ") {
            continue;
        }
        let Some(at) = line.find("dendrer ") else { continue };
        let mut command = line[at..].to_owned();
        while command.ends_with('\\') {
            command.push('\n');
            command.push_str(lines.next().unwrap_or_default());
        }
        let is_closed = line[..at].ends_with(": ");
        found.insert(if is_closed { command.strip_suffix(')').unwrap().to_owned() } else { command });
    }
    found
}

/// What a text lacks of its document: paths of members with the values.
struct Search<'s> {
    texts: &'s [Shown],
    missing: Vec<(String, String)>,
    /// Leaves that were found once.
    found: BTreeSet<String>,
}

fn is_skipped(path: &str) -> bool {
    let mut names = SKIPPED.iter().flat_map(|(names, _)| names.split(' '));
    names.any(|name| match (name.strip_prefix("*."), name.strip_suffix(".*")) {
        (Some(end), _) => path.strip_suffix(end).is_some_and(|rest| rest.ends_with('.')),
        (_, Some(begin)) => path.strip_prefix(begin).is_some_and(|rest| rest.starts_with('.')),
        (None, None) => match name.split_once(".*.") {
            Some((begin, end)) => {
                path.starts_with(begin) && path.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'))
            }
            None => path == name,
        },
    })
}

/// Whether a member is a value of the record, in which null is a value.
fn is_of_record(path: &str) -> bool {
    ["content", "value", "state", "changes"].iter().any(|name| path.split('.').any(|part| part == *name))
}

impl Search<'_> {
    fn any(&self, holds: impl Fn(&Shown) -> bool) -> bool {
        self.texts.iter().any(holds)
    }

    fn walk(&mut self, path: &str, value: &Value) {
        if is_skipped(path) || *value == Value::Null && !is_of_record(path) {
            return;
        }
        match value {
            // Of transitions after the end of the other run the text has the range.
            Value::Object(pair) if path == "items" && is_alone(pair) => {}
            // The record before of the same agent follows from the agents.
            Value::Object(link)
                if path == "links" && link.get("rel").and_then(Value::as_str) == Some("predecessor") => {}
            Value::Object(change) if change.get("path").is_some() && path.ends_with("changes") => {
                if !self.any(|shown| has_change(shown, change)) {
                    self.missing.push((path.to_owned(), value.to_string()));
                }
            }
            Value::Object(_) | Value::Array(_)
                if is_of_record(path) && self.any(|shown| shown.has(&quote::json(value))) => {}
            Value::Object(members) => {
                for (name, member) in members.iter() {
                    self.walk(format!("{path}.{name}").trim_start_matches('.'), member);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.walk(path, item)),
            leaf => {
                let text = leaf.to_string();
                if !self.found.contains(&text) && !self.any(|shown| shown.has_leaf(leaf)) {
                    self.missing.push((path.to_owned(), text));
                } else {
                    self.found.insert(text);
                }
            }
        }
    }
}

/// Whether a pair has one side alone, and its sides are not steps.
fn is_alone(pair: &Object) -> bool {
    let is_null = |name: &str| pair.get(name) == Some(&Value::Null);
    pair.get("node").is_none() && is_null("a_tick") != is_null("b_tick")
}

/// Whether a change of a document is in the text.
fn has_change(shown: &Shown, change: &Object) -> bool {
    let path: Pointer = change.get("path").and_then(Value::as_str).unwrap().parse().unwrap();
    let side = |names: [&str; 2]| names.into_iter().find_map(|name| change.get(name));
    let (before, after) = (side(["before", "a"]), side(["after", "b"]));
    if change.get("as").and_then(Value::as_str) != Some("ops") {
        return shown.has_change(&path, before, after);
    }
    let ops = [before, after].into_iter().flatten().flat_map(|ops| ops.as_array().unwrap().iter());
    shown.has_place(&path) && ops.into_iter().all(|op| shown.has_operation(op))
}

/// Asks one question at each width, and returns what the texts lack.
fn lacks(asked: &Asked, line: &str) -> Vec<(String, String)> {
    let document = asked.document(line);
    let mut missing = Vec::new();
    for width in WIDTHS {
        let text = asked.sh(&format!("{line} --width {width}"));
        let mut texts = vec![Shown::of(&text)];
        for command in named(&text) {
            texts.push(Shown::of(&asked.sh(&format!("{command} --width {width}"))));
        }
        let mut search = Search { texts: &texts, missing: Vec::new(), found: BTreeSet::new() };
        search.walk("", &document);
        missing.extend(
            search
                .missing
                .into_iter()
                .map(|(path, value)| (path, format!("{line} --width {width}: {value}"))),
        );
    }
    missing
}

/// Every `step`th of some items, or all of them if that is asked for.
pub(crate) fn part<T: Clone>(items: &[T], step: usize) -> Vec<T> {
    let step = if std::env::var_os(ALL).is_some() { 1 } else { step };
    items.iter().step_by(step.max(1)).cloned().collect()
}

/// The places of leaves of a state.
fn places(path: &Pointer, value: &Value, found: &mut Vec<Pointer>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members.iter() {
                let names: Vec<_> = path.tokens().collect();
                places(&Pointer::of(names.iter().map(|name| &**name).chain([&**name])), value, found);
            }
        }
        _ => found.push(path.clone()),
    }
}

/// The questions about runs and pairs of them.
pub(crate) fn questions(asked: &Asked, runs: &[String], ticks: usize, pairs: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let word = |text: &str| quote::shell(&[text.to_owned()]);
    for (at, run) in runs.iter().enumerate() {
        let run_word = word(run);
        let state = asked.document(&format!("dendrer state {run_word}"));
        lines.push(format!("dendrer state {run_word}"));
        let last = state.get("tick").and_then(Value::as_u64).unwrap();
        let every: Vec<u64> =
            (0..=last).skip(if std::env::var_os(ALL).is_some() { 0 } else { at % 3 }).collect();
        lines.extend(
            part(&every, every.len().div_ceil(ticks))
                .iter()
                .map(|tick| format!("dendrer show {}", word(&format!("{run}@{tick}")))),
        );
        lines.push(format!("dendrer bisect {run_word} --predicate kernel.policy_compliant"));
        lines.push(format!("dendrer bisect {run_word} --holds 'state.counters.tool_errors == 0'"));
        let mut found = Vec::new();
        places(&Pointer::root(), state.get("value").unwrap(), &mut found);
        found.retain(|place| !place.as_str().is_empty());
        let found = part(&found, found.len().div_ceil(2));
        lines.extend(
            found.iter().map(|place| format!("dendrer why {run_word} {}", word(&quote::path(place)))),
        );
    }
    let pair = |a: usize, b: usize| if (a + b).is_multiple_of(2) { (a, b) } else { (b, a) };
    let all: Vec<(usize, usize)> =
        (0..runs.len()).flat_map(|a| (a + 1..runs.len()).map(move |b| pair(a, b))).collect();
    let chosen = part(&all, all.len().div_ceil(pairs));
    lines.extend(
        chosen.iter().map(|(a, b)| format!("dendrer diff {} {} -n 0", word(&runs[*a]), word(&runs[*b]))),
    );
    lines
}

/// Asks the questions, several at a time, and fails with what texts lack, by members.
pub(crate) fn check(asked: &Asked, lines: &[String]) {
    let next = AtomicUsize::new(0);
    let found: Mutex<BTreeMap<String, Vec<String>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).min(4) {
            scope.spawn(|| {
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for (path, value) in lacks(asked, line) {
                        found.lock().unwrap().entry(path).or_default().push(value);
                    }
                }
            });
        }
    });
    let mut wrong = String::new();
    for (path, values) in found.into_inner().unwrap() {
        let _ = writeln!(wrong, "{path}: {} values are in no text, such as", values.len());
        for value in values.iter().take(4) {
            let _ = writeln!(wrong, "    {}", value.chars().take(400).collect::<String>());
        }
    }
    assert!(wrong.is_empty(), "{} questions\n{wrong}", lines.len());
}

#[test]
fn each_value_of_the_demo_is_in_its_text() {
    let asked = Asked::of_demo(&demo());
    let runs = asked.document("dendrer runs -n 0");
    let runs = runs.get("items").unwrap().as_array().unwrap().clone();
    let name = |run: &Value| run.get("name").and_then(Value::as_str).unwrap().to_owned();
    let runs: Vec<String> = runs.iter().map(name).collect();
    check(&asked, &questions(&asked, &runs, 2, 10));
}

#[test]
fn each_value_of_two_threads_is_in_its_text() {
    let place = crate::threads::place();
    let asked = Asked { dir: place.path().to_owned(), home: place.path().to_owned() };
    let runs = ["t-a", "t-a+2", "m-1", "m-2"].map(|run| format!("threads.dnd#{run}"));
    check(&asked, &questions(&asked, &runs, 8, 12));
}

#[test]
fn each_turn_of_a_predicate_is_in_its_text() {
    let place = crate::support::Place::with_store();
    let line =
        |n: u64| format!("{{\"type\":\"plan.update\",\"delta\":[{{\"set\":\"/n\",\"value\":{}}}]}}\n", n % 2);
    let lines: String = (0..40).map(line).collect();
    assert_eq!(place.run_with(&["commit", "--run", "turns"], lines.as_bytes()).code, 0);
    let asked = Asked { dir: place.path().to_owned(), home: place.path().to_owned() };
    check(&asked, &["dendrer bisect turns --holds 'state.n == 0'".to_owned()]);
    let lifted = asked.sh("dendrer bisect turns --holds 'state.n == 0' --lift --width 60 --full");
    assert!(lifted.contains("not violated at") && lifted.contains("39"), "{lifted}");
}
