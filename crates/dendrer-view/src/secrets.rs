//! The answer of `secrets`: the places of secrets that redaction would take out, and never the secrets.

use dendrer_object::{Digest, Value, document};

use crate::answer::{Answer, End, Line, Page};
use crate::{count, quote};

/// A secret that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFound {
    /// The file or the run in which it is, where several were looked at.
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
    /// Name and version of the rules.
    pub rules: (String, String, Digest),
    /// The secrets.
    pub items: Vec<SecretFound>,
    /// The texts that were searched, in words.
    pub looked_at: String,
}

impl SecretFound {
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

document! {
    /// The secrets that redaction would take out
    pub object SecretsDocument: "secrets" reads (answer: &SecretsAnswer) {
        /// The number of secrets
        found: usize = answer.items.len(),
        /// The secrets
        items: Vec<SecretObject> = answer.items.iter().map(SecretObject::of).collect(),
        /// The rules that were used
        rules: SecretRules = SecretRules::of(&answer.rules),
    }

    /// A set of rules by which secrets are found
    object SecretRules(rules: &(String, String, Digest)) {
        let (id, edition, hash) = rules;
        /// The name
        name: &str = id,
        /// The version
        version: &str = edition,
        /// The digest of the rules
        digest: Digest = *hash,
    }

    /// A secret that was found
    object SecretObject(found: &SecretFound) {
        let (in_file, in_record) = match &found.within {
            None => (None, None),
            Some(SecretPlace::File(file)) => (Some(&**file), None),
            Some(SecretPlace::Record { run, tick, path }) => (None, Some((&**run, *tick, &**path))),
        };
        /// The file, if several were searched
        file?: &str = in_file,
        /// The run
        run?: &str = in_record.map(|(run, ..)| run),
        /// The tick
        tick?: u64 = in_record.map(|(_, tick, _)| tick),
        /// The place in the record, as a JSON pointer
        path?: &str = in_record.map(|(.., path)| path),
        /// The line of its text, from 1
        line: u64 = found.line,
        /// The column of its first character, from 1
        column: u64 = found.column,
        /// The number of its bytes; 0 for a value that is no text
        length: u64 = found.length,
        /// The id of the rule
        kind: &str = &found.kind,
    }
}

impl Answer for SecretsAnswer {
    fn document(&self) -> Value {
        SecretsDocument::of(self).into()
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
