//! What was erased, or would be, and why nothing was.

use dendrer::address::RecordAt;
use dendrer::care::erase::{ErasePlace, EraseReason, Erased};
use dendrer::care::problem::grouped;
use dendrer_object::document::As;
use dendrer_object::record::Record;
use dendrer_object::{Digest, Pointer, RunName, Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::count;

document! {
    /// Values that were destroyed, or would be
    pub object EraseDocument: "erase" (erased: &Erased) {
        let plan = &erased.plan;
        /// The run
        run: &RunName = &plan.run,
        /// The tick; null for a refusal
        tick: Option<u64> = plan.at.tick(),
        /// The number of the refusal, from 1, as RUN@refused:N names it; absent for a tick
        refused?: u64 = plan.at.refused(),
        /// The place, as a JSON pointer
        path: &Pointer = &plan.path,
        /// The reason that was given
        reason: &str = &plan.reason,
        /// Whether nothing was changed
        dry_run: bool = erased.record.is_none(),
        /// The id of the record of the erasure
        record: Option<Digest> = erased.record.as_ref().map(Record::id),
        /// The fields that were destroyed
        erased: Vec<As<ErasedField>> = fields(&plan.erased),
        /// The fields that stay although they may follow from the value
        although: Vec<As<ErasedField>> = fields(&plan.although),
        /// The runs whose exact imported file was destroyed in the vault as well
        vault: &[RunName] = &plan.vault[..],
        /// The puts and writes of threads whose exact bytes were destroyed in the vault as well, by the field that names them
        exact: Vec<As<ErasedField>> = plan.exact.iter().map(|(place, _)| As::new(place.to_value())).collect(),
        /// The number of records that were committed meanwhile and not searched
        not_searched: u64 = erased.not_searched,
    }

    /// A field of a record, with the reason why it is listed
    pub(crate) object ErasedField(found: &ErasePlace) {
        /// The field, as a JSON pointer
        place: &str = found.place.as_str(),
        /// The reason
        reason: EraseReason = found.reason,
        /// The id of the record
        record: Digest = found.record,
        /// The run
        run: Option<&RunName> = found.run.as_ref(),
        /// The tick; null for a record off the chain
        tick: Option<u64> = found.at.and_then(RecordAt::tick),
        /// The number of a refusal, from 1; absent for any other record
        refused?: u64 = found.at.and_then(RecordAt::refused),
    }
}

pub(crate) fn fields(places: &[ErasePlace]) -> Vec<As<ErasedField>> {
    places.iter().map(|place| As::new(place.to_value())).collect()
}

/// Writes the fields that go, a line for each place.
pub(crate) fn gone_lines(verb: &str, places: &[ErasePlace]) -> Vec<Line> {
    grouped(places).iter().map(|line| format!("{verb}  {line}").into()).collect()
}

/// Writes the fields that stay, although they may contain the value.
pub(crate) fn stays_lines(places: &[ErasePlace]) -> Vec<Line> {
    grouped(places).iter().map(|line| Line::styled(Style::Warn, format!("stays   {line}"))).collect()
}

impl Answer for Erased {
    fn document(&self) -> Value {
        EraseDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let plan = &self.plan;
        let verb = if self.record.is_some() { "erased" } else { "would go" };
        let mut lines = gone_lines(verb, &plan.erased);
        let of_vault = plan
            .vault
            .iter()
            .map(|run| format!("{verb}  {run}  the exact file in the vault  (contains the value)"));
        lines.extend(of_vault.map(Line::from));
        let exact: Vec<ErasePlace> = plan.exact.iter().map(|(place, _)| place.clone()).collect();
        let exact = grouped(&exact);
        lines.extend(exact.iter().map(|line| format!("{verb}  {line}, exact bytes in the vault").into()));
        lines.extend(stays_lines(&plan.although));
        match &self.record {
            Some(record) => {
                let fields = count(plan.erased.len() as u64, "field", "fields");
                let (run, id) = (&plan.run, record.id().short());
                lines.push(
                    format!("ERASED     {fields}; {run}@{} {}   hash {id}", plan.at, plan.path.dotted())
                        .into(),
                );
                lines.push(Line::note(
                    "copies outside the store are not reached: make backups and bundles again",
                ));
                lines.push(Line::help(["dendrer", "verify", run.as_str()]));
            }
            None => lines.push(Line::note("nothing was changed")),
        }
        if self.not_searched > 0 {
            let records = count(self.not_searched, "record", "records");
            lines.push(Line::styled(
                Style::Warn,
                format!("{records} committed meanwhile, not searched for copies"),
            ));
        }
        lines
    }
}
