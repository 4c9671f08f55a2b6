//! The answer of `secrets`: where redaction would take something, and never what.

use dendrer_object::Value;

use crate::answer::{Answer, End, Line, Page};
use crate::{count, document, quote};

/// A secret that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFound {
    /// The file or the run in which it is, where several were looked at.
    pub within: Option<SecretPlace>,
    /// The line of its text, from 1.
    pub line: u64,
    /// The column of its first character, from 1.
    pub column: u64,
    /// How many bytes it has.
    pub length: u64,
    /// The id of the rule.
    pub kind: String,
}

/// Where a secret was found.
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
    /// Name and version of the rules.
    pub rules: (String, String, dendrer_object::Digest),
    /// What was found.
    pub items: Vec<SecretFound>,
    /// What was looked at, in words.
    pub looked_at: String,
}

impl SecretFound {
    fn document(&self) -> Value {
        let mut members = vec![
            ("column", Value::from(self.column)),
            ("kind", Value::from(self.kind.as_str())),
            ("length", Value::from(self.length)),
            ("line", Value::from(self.line)),
        ];
        match &self.within {
            None => {}
            Some(SecretPlace::File(file)) => members.push(("file", Value::from(file.as_str()))),
            Some(SecretPlace::Record { run, tick, path }) => members.extend([
                ("path", Value::from(path.as_str())),
                ("run", Value::from(run.as_str())),
                ("tick", Value::from(*tick)),
            ]),
        }
        Value::record(members)
    }

    fn line(&self) -> String {
        let SecretFound { line, column, length, kind, .. } = self;
        match &self.within {
            None => format!("{line}:{column}  {kind}, {length} bytes"),
            Some(SecretPlace::File(file)) => {
                format!("{}:{line}:{column}  {kind}, {length} bytes", quote::escape(file))
            }
            Some(SecretPlace::Record { run, tick, path }) => {
                format!("{run}@{tick}  {}  {kind}, {length} bytes", quote::escape(path))
            }
        }
    }
}

impl Answer for SecretsAnswer {
    fn document(&self) -> Value {
        let (name, version, digest) = &self.rules;
        let rules = Value::record([
            ("digest", Value::from(*digest)),
            ("name", Value::from(name.as_str())),
            ("version", Value::from(version.as_str())),
        ]);
        document(
            "secrets",
            [
                ("found", Value::from(self.items.len() as u64)),
                ("items", Value::array(self.items.iter().map(SecretFound::document))),
                ("rules", rules),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let (name, version, _) = &self.rules;
        let mut lines: Vec<Line> = self.items.iter().map(|item| Line::from(item.line())).collect();
        let found = count(self.items.len() as u64, "secret", "secrets");
        lines.push(Line::from(format!("{found} in {} (rules {name} {version})", self.looked_at)));
        lines
    }

    fn end(&self) -> End {
        if self.items.is_empty() { End::Answered } else { End::No }
    }
}
