//! Secrets on record: what redaction would take out of runs and texts today, by its places and never by its text.

use std::ops::ControlFlow;

use dendrer_object::text::count;
use dendrer_object::value::differences;
use dendrer_object::{Value, question};

use crate::address::Address;
use crate::error::Error;
use crate::problem::Problem;
use crate::redact::{RedactionProfile, Redactor, RulesVersion};
use crate::repo;
use crate::run::trace::{Trace, all_runs};
use crate::source::{Asked, Desk};

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
        /// The tick.
        tick: u64,
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
            in_run(&redactor, &trace, &mut items)?;
            looked_at.push(trace.name().to_string());
        }
        if self.what.is_empty() {
            let store = desk.reader()?;
            let runs = all_runs(&*store)?;
            for run in &runs {
                in_run(&redactor, &Trace::open(&store, &run.name)?, &mut items)?;
            }
            looked_at.push(count(runs.len() as u64, "run", "runs"));
        }
        Ok(SecretsAnswer { rules: redactor.rules().clone(), items, looked_at })
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

fn in_run(redactor: &Redactor, trace: &Trace, items: &mut Vec<SecretFound>) -> Result<(), Error> {
    in_value(redactor, trace, 0, &trace.start().content(), items);
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        in_value(redactor, trace, tick, &record.content(), items);
        ControlFlow::Continue(())
    })?;
    Ok(())
}

fn in_value(redactor: &Redactor, trace: &Trace, tick: u64, content: &Value, items: &mut Vec<SecretFound>) {
    let (clean, taken) = redactor.value(content);
    if taken.is_empty() {
        return;
    }
    for difference in differences(content, &clean) {
        let place =
            || SecretPlace::Record { run: trace.name().to_string(), tick, path: difference.path.written() };
        let left = difference.left.as_ref().and_then(Value::as_str);
        let kind = difference
            .right
            .as_ref()
            .and_then(|right| right.get("$redacted")?.get("kind")?.as_str().map(str::to_owned));
        match (left, kind) {
            (Some(text), None) => items.extend(in_text(redactor, text, Some(place()))),
            // A member whose name holds a secret is another member, and counted where the old one was.
            (_, None) if difference.left.is_none() => {}
            (text, kind) => items.push(SecretFound {
                within: Some(place()),
                line: 1,
                column: 1,
                length: text.map_or(0, str::len) as u64,
                kind: kind.unwrap_or_else(|| "named".to_owned()),
            }),
        }
    }
}
