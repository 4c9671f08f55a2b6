//! Answers on keys: which there are, the file of a writer, and groups that were appended without a tag.

use std::path::Path;

use dendrer::care::keys::KeyChanged;
use dendrer::care::tags::{Adopted, UntaggedRun};
use dendrer::store::SetAside;
use dendrer_object::keys::{KeyHow, KeySpan, LogKeys};
use dendrer_object::{Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::{count, quote};

/// The keys of a log.
#[derive(Debug, Clone)]
pub struct KeysAnswer {
    /// The keys.
    pub keys: LogKeys,
    /// How many records are signed.
    pub signed: u64,
    /// Whether the signing key is here.
    pub signing: bool,
    /// Whether the secret of writers is here: it follows from the signing key.
    pub writer: bool,
    /// Whether the key of the vault is here.
    pub vault: bool,
}

document! {
    /// The keys of a log
    pub object KeyDocument: "key" (answer: &KeysAnswer) {
        /// The keys, by the sizes of the log that they signed
        items: Vec<KeySpanObject> = spans(Some(&answer.keys), Some(answer.signed)),
        /// The keys on this machine
        here: KeysHere = KeysHere::of(answer),
    }

    /// A key of a log
    pub object KeySpanObject(span: &KeySpan, signed: Option<u64>) {
        /// The verifier key, which checks checkpoints
        key: String = span.key.to_string(),
        /// How it came into force, or whether it was revoked
        how: KeyHow = span.how(),
        /// The size of the log from which on it signs
        from: u64 = span.from,
        /// The last size over which its signature counts; of the key in force the size that it has signed, null if none
        to: Option<u64> = span.counts_to().or(signed),
    }

    /// A change of the keys of a log
    pub object KeyChangeDocument: "key-change" (changed: &KeyChanged) {
        /// The key that was in force; of a revocation the one that was revoked
        old: String = changed.old.to_string(),
        /// The key in force
        new: String = changed.new.to_string(),
        /// The position of the record
        position: u64 = changed.position,
        /// The kind of the change
        how: KeyHow = changed.how,
    }

    /// The keys on this machine
    object KeysHere(answer: &KeysAnswer) {
        /// The signing key: it signs, and appends
        signing: bool = answer.signing,
        /// A writer's secret: it appends
        writer: bool = answer.writer,
        /// The key of the vault: it reads exact values
        vault: bool = answer.vault,
    }

    /// The file of a writer
    pub object KeyWriterDocument: "key-writer" (answer: &KeyWriterAnswer<'_>) {
        /// The file
        file: &Path = answer.file,
        /// Whether it has the key of the vault as well
        vault: bool = answer.vault,
    }

    /// Groups without a tag that were adopted, or would be
    pub object AdoptDocument: "adopt" (adopted: &Adopted) {
        let untagged = &adopted.untagged;
        /// The position of the first record; the size of the log without one
        from: u64 = untagged.from,
        /// The size of the log with the last
        to: u64 = untagged.to,
        /// The number of groups
        groups: usize = untagged.groups,
        /// The number of records
        records: u64 = untagged.records,
        /// The runs that they are of
        runs: Vec<AdoptedRun> = untagged.runs.iter().map(|(name, run)| AdoptedRun::of(name, run)).collect(),
        /// The position of the record of the adoption; null if nothing was signed
        record: Option<u64> = adopted.record,
    }

    /// The records of one run
    object AdoptedRun(name: &str, run: &UntaggedRun) {
        /// The run; null for records of none
        run: Option<&str> = (!name.is_empty()).then_some(name),
        /// The number of records
        records: u64 = run.records,
        /// The authors that they name
        authors: Vec<&str> = run.authors.iter().map(String::as_str).collect(),
    }

    /// Groups without a tag that were set aside, or would be
    pub object SetAsideDocument: "set-aside" (answer: &SetAsideAnswer<'_>) {
        let moved = answer.moved.as_ref();
        /// The directory that has them; null if there was none
        dir: Option<&Path> = moved.map(|_| answer.dir),
        /// The position of the first record
        from: Option<u64> = moved.map(|moved| moved.from),
        /// The size of the log with the last
        to: Option<u64> = moved.map(|moved| moved.to),
        /// The number of groups
        groups: usize = moved.map_or(0, |moved| moved.groups),
        /// The number of records
        records: u64 = moved.map_or(0, |moved| moved.to - moved.from),
        /// The number of bytes
        bytes: u64 = moved.map_or(0, |moved| moved.bytes),
        /// Whether nothing was done
        dry_run: bool = answer.dry_run,
    }
}

impl Answer for KeysAnswer {
    fn document(&self) -> Value {
        KeyDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let here = [
            (self.signing, "signing key"),
            (self.writer, "writer's secret"),
            (self.vault, "key of the vault"),
        ];
        let here: Vec<&str> =
            here.into_iter().filter_map(|(is_here, what)| is_here.then_some(what)).collect();
        let here = if here.is_empty() { "nothing".to_owned() } else { here.join(", ") };
        let mut lines: Vec<Line> = Vec::new();
        for span in self.keys.spans() {
            let to = match (span.counts_to(), span.to) {
                (None, _) => format!("signed to {}", count(self.signed, "record", "records")),
                (Some(to), _) => format!("to {}", count(to, "record", "records")),
            };
            let from = if span.from == 0 { String::new() } else { format!("from {} ", span.from) };
            let (how, key) = (span.how().as_str(), quote::escape(&span.key.to_string()));
            lines.push(format!("{how:<9} {key}, {from}{to}").into());
        }
        lines.push(format!("here      {here}").into());
        lines
    }
}

/// Returns the keys of a log as objects.
pub(crate) fn spans(keys: Option<&LogKeys>, signed: Option<u64>) -> Vec<KeySpanObject> {
    keys.iter().flat_map(|keys| keys.spans()).map(|span| KeySpanObject::of(span, signed)).collect()
}

impl Answer for KeyChanged {
    fn document(&self) -> Value {
        KeyChangeDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let (old, new, position) = (self.old.id(), self.new.id(), self.position);
        let what = match (self.how, self.at) {
            (KeyHow::Revoked, Some(at)) => format!("{old} beyond size {at}"),
            _ => format!("{old} by {new}"),
        };
        let word = self.how.as_str();
        let gap = " ".repeat(10 - word.len());
        let mut lines =
            vec![Line::styled(Style::Good, word).then(format!("{gap}{what}, on record at {position}"))];
        if self.how != KeyHow::Revoked {
            lines.push(Line::note(
                "note: a writer needs the secret of the new key: dendrer key writer --out FILE",
            ));
        }
        lines
    }
}

/// A file of a writer that was made.
#[derive(Debug, Clone)]
pub struct KeyWriterAnswer<'a> {
    /// The file.
    pub file: &'a Path,
    /// Whether it has the key of the vault as well.
    pub vault: bool,
}

impl Answer for KeyWriterAnswer<'_> {
    fn document(&self) -> Value {
        KeyWriterDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let vault = if self.vault { ", and reads exact values" } else { "" };
        let file = quote::escape(&self.file.display().to_string());
        vec![
            Line::styled(Style::Good, "written")
                .then(format!("   {file}: its holder appends to this log{vault}, and signs nothing")),
            Line::note(
                "note: readable by you alone; copy it to the machine that writes, and name it there with --key",
            ),
        ]
    }
}

impl Answer for Adopted {
    fn document(&self) -> Value {
        AdoptDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let untagged = &self.untagged;
        if untagged.records == 0 {
            return vec!["every group has its tag, or is signed; there is nothing to adopt".into()];
        }
        let mut lines: Vec<Line> = Vec::new();
        for (name, run) in &untagged.runs {
            let name = if name.is_empty() { "(no run)" } else { name };
            let authors: Vec<String> = run.authors.iter().map(|author| quote::escape(author)).collect();
            let records = count(run.records, "record", "records");
            lines.push(format!("{}  {records} by {}", quote::escape(name), authors.join(", ")).into());
        }
        let records = count(untagged.records, "record", "records");
        let groups = count(untagged.groups as u64, "group", "groups");
        let what =
            format!("{records} in {groups} without tag, from position {} to {}", untagged.from, untagged.to);
        match self.record {
            Some(position) => {
                lines.push(
                    Line::styled(Style::Warn, "adopted")
                        .then(format!("   {what}: signed, and put on record at {position}")),
                );
            }
            None => {
                lines.push(format!("{what}; nothing was signed").into());
                let to = untagged.to.to_string();
                lines.push(Line::help(["dendrer", "doctor", "--adopt", "--to", &to, "--reason", "TEXT"]));
                lines.push(Line::help(["dendrer", "doctor", "--set-aside", "DIR"]));
            }
        }
        lines
    }
}

/// Groups that were set aside, or would be.
#[derive(Debug, Clone)]
pub struct SetAsideAnswer<'a> {
    /// The groups; `None` if every group has its tag.
    pub moved: Option<SetAside>,
    /// The directory.
    pub dir: &'a Path,
    /// Whether nothing was done.
    pub dry_run: bool,
}

impl Answer for SetAsideAnswer<'_> {
    fn document(&self) -> Value {
        SetAsideDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let Some(moved) = &self.moved else {
            return vec!["every group has its tag, or is signed; there is nothing to set aside".into()];
        };
        let records = count(moved.to - moved.from, "record", "records");
        let what = format!(
            "{records} in {}, {}",
            count(moved.groups as u64, "group", "groups"),
            count(moved.bytes, "byte", "bytes")
        );
        let dir = quote::escape(&self.dir.display().to_string());
        match self.dry_run {
            true => vec![format!("would set aside {what}, to {dir}; nothing was done").into()],
            false => vec![
                Line::styled(Style::Warn, "set aside")
                    .then(format!(" {what}, in {dir}; the log ends at {}", moved.from)),
            ],
        }
    }
}
