//! The answer of `secrets`: the places of secrets that redaction would take out, and never the secrets.

use std::collections::BTreeMap;

use dendrer::ask::secrets::{SecretFound, SecretPlace, SecretsAnswer};
use dendrer::redact::{NotKnown, RulesVersion};
use dendrer::repo::SecretVariable;
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
        Some(SecretPlace::Record { run, at, path }) => {
            format!("{run}@{at}  {}  {kind}, {length} bytes", quote::escape(path))
        }
    }
}

/// The command that destroys the secret of a record.
fn erase_help(found: &SecretFound) -> Option<Line> {
    let Some(SecretPlace::Record { run, at, path }) = &found.within else { return None };
    Some(Line::help(["dendrer", "erase", &format!("{run}@{at}"), path, "--reason", "TEXT"]))
}

document! {
    /// The secrets that redaction would take out
    pub object SecretsDocument: "secrets" (answer: &SecretsAnswer) {
        /// The number of secrets
        found: usize = answer.items.len(),
        /// The secrets
        items: Vec<SecretObject> = answer.items.iter().map(SecretObject::of).collect(),
        /// The number of secrets by the rule that takes them today
        rules: BTreeMap<&str, u64> = answer.by_kind(),
        /// The rules that were used
        rules_version: SecretRules = SecretRules::of(&answer.rules),
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

    /// The variables of the environment whose names are those of secrets
    pub object SecretVariablesDocument: "secrets-env" (variables: &[SecretVariable]) {
        /// The variables, without their values
        items: Vec<SecretVariableObject> = variables.iter().map(SecretVariableObject::of).collect(),
    }

    /// A variable of the environment
    object SecretVariableObject(variable: &SecretVariable) {
        /// The name
        name: &str = &variable.name,
        /// Whether its value is taken wherever it is
        taken: bool = variable.why.is_none(),
        /// Why its value is not taken; null if it is
        why: Option<NotKnown> = variable.why,
    }

    /// A secret that was found
    object SecretObject(found: &SecretFound) {
        let (in_file, in_record) = match &found.within {
            None => (None, None),
            Some(SecretPlace::File(file)) => (Some(&**file), None),
            Some(SecretPlace::Record { run, at, path }) => (None, Some((&**run, *at, &**path))),
        };
        /// The file, if several were searched
        file?: &str = in_file,
        /// The run
        run?: &str = in_record.map(|(run, ..)| run),
        /// The tick; absent for a refusal
        tick?: u64 = in_record.and_then(|(_, at, _)| at.tick()),
        /// The number of a refusal, from 1, as RUN@refused:N names it
        refused?: u64 = in_record.and_then(|(_, at, _)| at.refused()),
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

/// The variables of the environment whose values are secrets by their names.
#[derive(Debug, Clone, Copy)]
pub struct SecretVariablesAnswer<'v>(pub &'v [SecretVariable]);

impl Answer for SecretVariablesAnswer<'_> {
    fn document(&self) -> Value {
        SecretVariablesDocument::of(self.0).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let line = |variable: &SecretVariable| match variable.why {
            None => format!("{}  taken", quote::escape(&variable.name)),
            Some(why) => format!("{}  not taken: {}", quote::escape(&variable.name), why_words(why)),
        };
        let mut lines: Vec<Line> = self.0.iter().map(|variable| line(variable).into()).collect();
        let taken = self.0.iter().filter(|variable| variable.why.is_none()).count();
        let all = count(self.0.len() as u64, "variable", "variables");
        lines.push(
            format!(
                "{taken} of {all} with the name of a secret: a value that is taken is taken wherever it is"
            )
            .into(),
        );
        lines
    }
}

fn why_words(why: NotKnown) -> &'static str {
    match why {
        NotKnown::Short => "fewer than 8 characters (short)",
        NotKnown::OneCase => "letters of one case alone (one_case)",
        NotKnown::NameOfTool => "the name of a tool or a type in the pack (name_of_tool)",
        NotKnown::Placeholder => "a placeholder or a reference (placeholder)",
        NotKnown::Path => "the path of a file (path)",
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
        let kinds: Vec<String> =
            self.by_kind().iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        // A text that is tested lists each secret, with its rule.
        let is_scan = self.items.iter().any(|item| item.within.is_some());
        lines.extend(is_scan.then(|| Line::from(format!("by rule   {}", kinds.join(", ")))));
        lines.extend(self.items.iter().find_map(erase_help));
        lines
    }

    fn end(&self) -> End {
        if self.items.is_empty() { End::Answered } else { End::No }
    }
}
