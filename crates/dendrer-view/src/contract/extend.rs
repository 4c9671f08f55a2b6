//! An extension of a contract, and the key of an approver, as lines and documents.

use dendrer::change::extend::Extended;
use dendrer::kernel::step::Approval;
use dendrer_object::{Value, tag};

use crate::answer::{Answer, Line, Page};
use crate::{document, quote};

/// The members of an extension that name what it adds, and the words for them.
const ADDED: [(&str, &str); 6] = [
    ("types", "for"),
    ("adds_state", "declares"),
    ("adds_rules", "changes"),
    ("adds_required", "requires"),
    ("adds_hash_seeds", "binds"),
    ("adds_violations", "forbids"),
];

impl Answer for Extended {
    fn document(&self) -> Value {
        let signature = match self.extension.approval() {
            Approval::Signed(note) => Value::from(&**note),
            Approval::Unsigned => Value::Null,
        };
        let written = |value: Value| if self.dry_run { Value::Null } else { value };
        document(
            "contract-extend",
            [
                ("run", Value::from(self.run.as_str())),
                ("tick", written(Value::from(self.record.header().tick))),
                ("id", written(Value::from(self.record.id()))),
                ("holds_from", Value::from(self.holds_from())),
                ("extension", self.extension.value().clone()),
                ("signature", signature),
                ("enforced", Value::from(self.is_enforced)),
                ("dry_run", Value::from(self.dry_run)),
            ],
        )
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
        let members = [("name", Value::from(self.name)), ("verifier", Value::from(self.verifier))];
        document("contract-keygen", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        vec![
            Line::from(format!("wrote {}; keep it, nobody else may read it", self.file)),
            Line::from("approvers:"),
            Line::from(format!("  {}: {}", self.name, self.verifier)),
        ]
    }
}
