//! An extension of a contract, and the key of an approver, as lines and documents.

use dendrer::change::extend::Extended;
use dendrer::kernel::step::Approval;
use dendrer_object::document::{As, Positive};
use dendrer_object::value::Object;
use dendrer_object::{Digest, RunName, Value, document, tag};

use crate::answer::{Answer, Line, Page};
use crate::quote;

/// The members of an extension that name what it adds, and the words for them.
const ADDED: [(&str, &str); 6] = [
    ("types", "for"),
    ("adds_state", "declares"),
    ("adds_rules", "changes"),
    ("adds_required", "requires"),
    ("adds_hash_seeds", "binds"),
    ("adds_violations", "forbids"),
];

document! {
    /// An extension of the contract of a run
    pub object ContractExtendDocument: "contract-extend" (extended: &Extended) {
        let written = (!extended.dry_run).then_some(&extended.record);
        let note = match extended.extension.approval() {
            Approval::Signed(note) => Some(&**note),
            Approval::Unsigned => None,
        };
        /// The run
        run: &RunName = &extended.run,
        /// The tick of the record; null in a dry run
        tick: Option<Positive> = written.and_then(|record| record.header().tick).map(Positive),
        /// The id of the record; null in a dry run
        id: Option<Digest> = written.map(|record| record.id()),
        /// The first tick that it governs: never its own
        holds_from: Positive = Positive(extended.holds_from()),
        /// The extension, as it is recorded
        extension: As<Object> = As::new(extended.extension.value().clone()),
        /// The signature of the approver
        signature: Option<&str> = note,
        /// Whether contracts are enforced in the run
        enforced: bool = extended.is_enforced,
        /// Whether nothing was written
        dry_run: bool = extended.dry_run,
    }

    /// The key of an approver
    pub object ContractKeygenDocument: "contract-keygen" (key: &KeygenAnswer<'_>) {
        /// The name of the approver
        name: &str = key.name,
        /// The public half, as a pack names it
        verifier: &str = key.verifier,
    }
}

impl Answer for Extended {
    fn document(&self) -> Value {
        ContractExtendDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let value = self.extension.value();
        let text = |name: &str| quote::escape(value.get(name).and_then(Value::as_str).unwrap_or_default());
        let done = if self.dry_run { "would extend" } else { "extended" };
        let (contract, id, from) = (text("target_contract"), text("id"), self.holds_from());
        let mut lines = vec![Line::from(format!("{done}  {contract} with {id}, from tick {from} on"))];
        for (name, what) in ADDED {
            let names: Vec<String> = match value.get(name) {
                Some(Value::Object(fields)) => {
                    fields.iter().map(|(name, _)| quote::escape(tag::user_name(name))).collect()
                }
                Some(Value::Array(list)) => list
                    .iter()
                    .filter_map(|item| {
                        let named =
                            ["id", "words", "when_type"].iter().find_map(|name| item.get(name)?.as_str());
                        item.as_str().or(named)
                    })
                    .map(quote::escape)
                    .collect(),
                _ => continue,
            };
            lines.push(format!("{what:<9} {}", names.join(", ")).into());
        }
        let signed = match self.extension.approval() {
            Approval::Signed(_) => "signed with their key",
            Approval::Unsigned => "not signed: the contract names no approver with a key",
        };
        lines.push(format!("approved  by {}   {signed}", text("approved_by")).into());
        lines.push(match (self.dry_run, self.record.header().tick) {
            (false, Some(tick)) => format!("tick {tick}  {}  of {}", self.record.id(), self.run).into(),
            _ => Line::note("note: nothing was written"),
        });
        if !self.is_enforced {
            lines.push(Line::note(
                "note: contracts are enforced from stage 2 on; in this run `contract check` says what would have been refused",
            ));
        }
        lines
    }
}

/// The key of an approver that was made.
#[derive(Debug, Clone, Copy)]
pub struct KeygenAnswer<'k> {
    /// The name of the approver.
    pub name: &'k str,
    /// The file of the key.
    pub file: &'k str,
    /// The public half, as a pack names it.
    pub verifier: &'k str,
}

impl Answer for KeygenAnswer<'_> {
    fn document(&self) -> Value {
        ContractKeygenDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        vec![
            Line::from(format!("wrote {}; keep it, nobody else may read it", self.file)),
            Line::from("approvers:"),
            Line::from(format!("  {}: {}", self.name, self.verifier)),
        ]
    }
}
