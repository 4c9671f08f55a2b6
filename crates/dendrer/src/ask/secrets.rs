//! Secrets on record: what redaction would take out of runs and texts today, by its places and never by its text.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_object::text::count;
use dendrer_object::value::differences;
use dendrer_object::{Pointer, Record, Value, marker, question};

use crate::address::{Address, RecordAt};
use crate::error::Error;
use crate::problem::Problem;
use crate::redact::{RedactionProfile, Redactor, RulesVersion};
use crate::repo;
use crate::run::pack;
use crate::run::trace::{Trace, all_runs};
use crate::source::{Asked, Desk, clean_content};

question! {
    /// Asks for what is on record and would be taken out today
    pub struct SecretsScanQuestion: "secrets-scan-question" {
        /// The runs, as addresses; all runs of the store if none is given
        pub what: Vec<String>,
    }
}

/// A secret that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFound {
    /// The file or the run in which it is, if several were looked at.
    pub within: Option<SecretPlace>,
    /// The line of its text, from 1.
    pub line: u64,
    /// The column of its first character, from 1.
    pub column: u64,
    /// The number of its bytes.
    pub length: u64,
    /// The id of the rule.
    pub kind: String,
}

/// The place of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// In a file.
    File(String),
    /// In a record of a run.
    Record {
        /// The run.
        run: String,
        /// The record of the run.
        at: RecordAt,
        /// The place in the record, as a JSON pointer.
        path: String,
    },
}

/// The secrets that were found.
#[derive(Debug, Clone)]
pub struct SecretsAnswer {
    /// The rules that were used.
    pub rules: RulesVersion,
    /// The secrets.
    pub items: Vec<SecretFound>,
    /// The texts and runs that were searched, by their names.
    pub looked_at: Vec<String>,
}

impl Asked for SecretsScanQuestion {
    type Reply = SecretsAnswer;

    fn ask(&self, desk: &mut dyn Desk) -> Result<SecretsAnswer, Problem> {
        self.scan(desk, &mut |_| Ok(None))
    }
}

impl SecretsScanQuestion {
    /// As [`Asked::ask`], for a caller whose names may be those of files: `text` returns the text of a file, and `None` for a
    /// run.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if a run or a file cannot be read.
    pub fn scan(
        &self,
        desk: &mut dyn Desk,
        text: &mut dyn FnMut(&str) -> Result<Option<String>, Problem>,
    ) -> Result<SecretsAnswer, Problem> {
        let redactor = repo::redactor(RedactionProfile::Default, None, None)?;
        let (mut items, mut looked_at) = (Vec::new(), Vec::new());
        for name in &self.what {
            if let Some(text) = text(name)? {
                items.extend(in_text(&redactor, &text, Some(SecretPlace::File(name.clone()))));
                looked_at.push(name.clone());
                continue;
            }
            let address = Address::parse(name)?;
            let source = desk.open(&address)?;
            let trace = source.trace(&address.resolve(&source.store)?)?;
            in_run(&trace, &mut items)?;
            looked_at.push(trace.name().to_string());
        }
        if self.what.is_empty() {
            let store = desk.reader()?;
            let runs = all_runs(&*store)?;
            for run in &runs {
                in_run(&Trace::open(&store, &run.name)?, &mut items)?;
            }
            looked_at.push(count(runs.len() as u64, "run", "runs"));
        }
        Ok(SecretsAnswer { rules: redactor.rules().clone(), items, looked_at })
    }
}

impl SecretsAnswer {
    /// Counts the secrets by the rule that found them.
    pub fn by_kind(&self) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        self.items.iter().for_each(|item| *counts.entry(&*item.kind).or_default() += 1);
        counts
    }
}

/// Finds the secrets of a text.
pub fn in_text(redactor: &Redactor, text: &str, within: Option<SecretPlace>) -> Vec<SecretFound> {
    let (mut line, mut column, mut upto) = (1, 1, 0);
    let mut items = Vec::new();
    for span in redactor.find(text) {
        // Counted from the secret before, so that many in one long line take linear time.
        let between = &text[upto..span.start];
        let lines = between.bytes().filter(|c| *c == b'\n').count() as u64;
        let last = between.rfind('\n').map_or(between, |newline| &between[newline + 1..]);
        let width = last.chars().count() as u64;
        line += lines;
        column = if lines == 0 { column + width } else { 1 + width };
        upto = span.start;
        items.push(SecretFound {
            within: within.clone(),
            line,
            column,
            length: (span.end - span.start) as u64,
            kind: span.kind.to_string(),
        });
    }
    items
}

/// Finds the secrets of a run: in its beginning, its transitions and its refusals.
fn in_run(trace: &Trace, items: &mut Vec<SecretFound>) -> Result<(), Error> {
    let run = trace.name().to_string();
    // The pack of the run adds rules of its own.
    let pack = pack::of_run(trace)?;
    let redactor = repo::redactor(RedactionProfile::Default, pack.as_ref().map(|pack| pack.value()), None)?;
    let mut look = |at: RecordAt, record: &Record| {
        let place = |path| SecretPlace::Record { run: run.clone(), at, path };
        in_value(&redactor, &record.content(), &place, items);
    };
    look(RecordAt::Tick(0), trace.start());
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        look(RecordAt::Tick(tick), &record);
        ControlFlow::Continue(())
    })?;
    for (number, record) in trace.numbered_refusals()? {
        look(RecordAt::Refusal(number), &record);
    }
    Ok(())
}

/// Finds the secrets of the content of a record: what a recorder would take out of it today.
fn in_value(
    redactor: &Redactor,
    content: &Value,
    place: &dyn Fn(String) -> SecretPlace,
    items: &mut Vec<SecretFound>,
) {
    let (clean, taken) = clean_content(redactor, content);
    if taken.is_empty() {
        return;
    }
    for difference in differences(content, &clean) {
        let within = Some(place(shown_place(redactor, &difference.path)));
        let left = difference.left.as_ref().and_then(Value::as_str);
        let right = difference.right.as_ref();
        let kind = right.and_then(|right| right.get("$redacted")?.get("kind")?.as_str().map(str::to_owned));
        let whole = |kind: Option<String>| SecretFound {
            within: within.clone(),
            line: 1,
            column: 1,
            length: left.map_or(0, str::len) as u64,
            kind: kind.unwrap_or_else(|| "named".to_owned()),
        };
        match (left, kind) {
            (Some(text), None) => {
                let found = in_text(redactor, text, within.clone());
                // A text that is JSON is redacted as JSON, and has no secret of its own then.
                let is_inside = found.is_empty();
                items.extend(found);
                items.extend(is_inside.then(|| whole(right.and_then(Value::as_str).and_then(first_kind))));
            }
            // A member whose name holds a secret is another member, and counted where the old one was.
            (_, None) if difference.left.is_none() => {}
            (_, kind) => items.push(whole(kind)),
        }
    }
}

/// A place as an answer shows it: up to the first name that holds a secret itself.
fn shown_place(redactor: &Redactor, path: &Pointer) -> String {
    let tokens: Vec<_> = path.tokens().collect();
    let names = tokens.iter().take_while(|token| redactor.find(token).is_empty());
    Pointer::of(names.map(|token| &**token)).written()
}

/// The kind of the first marker of a text that has one.
fn first_kind(text: &str) -> Option<String> {
    marker::markers(text).find_map(|one| one.kind).map(str::to_owned)
}
