//! The answer of `secrets`: the places of secrets that redaction would take out, and never the secrets.

use dendrer::ask::secrets::{SecretFound, SecretPlace, SecretsAnswer};
use dendrer::redact::RulesVersion;
use dendrer_object::{Digest, Value, document};

use crate::answer::{Answer, End, Line, Page};
use crate::{count, quote};

fn secret_line(found: &SecretFound) -> String {
    let SecretFound { within, line, column, length, kind } = found;
    match within {
        None => format!("{line}:{column}  {kind}, {length} bytes"),
        Some(SecretPlace::File(file)) => {
            format!("{}:{line}:{column}  {kind}, {length} bytes", quote::escape(file))
        }
        Some(SecretPlace::Record { run, tick, path }) => {
            format!("{run}@{tick}  {}  {kind}, {length} bytes", quote::escape(path))
        }
    }
}

document! {
    /// The secrets that redaction would take out
    pub object SecretsDocument: "secrets" (answer: &SecretsAnswer) {
        /// The number of secrets
        found: usize = answer.items.len(),
        /// The secrets
        items: Vec<SecretObject> = answer.items.iter().map(SecretObject::of).collect(),
        /// The rules that were used
        rules: SecretRules = SecretRules::of(&answer.rules),
    }

    /// A set of rules by which secrets are found
    object SecretRules(rules: &RulesVersion) {
        /// The name
        name: &str = &rules.name,
        /// The version
        version: &str = &rules.version,
        /// The digest of the rules
        digest: Digest = rules.digest,
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
        let RulesVersion { name, version, .. } = &self.rules;
        let looked_at: Vec<String> = self.looked_at.iter().map(|name| quote::escape(name)).collect();
        let mut lines: Vec<Line> = self.items.iter().map(|item| Line::from(secret_line(item))).collect();
        let found = count(self.items.len() as u64, "secret", "secrets");
        lines.push(Line::from(format!("{found} in {} (rules {name} {version})", looked_at.join(", "))));
        lines
    }

    fn end(&self) -> End {
        if self.items.is_empty() { End::Answered } else { End::No }
    }
}
