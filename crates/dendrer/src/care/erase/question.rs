//! The question of `erase` as data.

use dendrer_object::{Code, question};

use super::{EraseTerms, Erased, plan};
use crate::address::Address;
use crate::care::problem::goes_anyway;
use crate::care::{CareNote, Follow};
use crate::change::findings::PERSON;
use crate::problem::Problem;
use crate::source::{Asked, Desk};
use crate::watch::Watch;

question! {
    /// Asks for a value of a committed record to be destroyed, with its copies and the digests over it
    pub struct EraseQuestion: "erase-question" {
        /// The tick or the refusal, as an address
        pub rev: String,
        /// The place: of the record, or of the state that the tick wrote
        pub path: String,
        /// The reason, which stays on record
        pub reason: String,
        /// Places that are erased as well: PLACE, TICK:PLACE or RUN@TICK:PLACE; refused:N names a refusal in place of a tick
        pub also: Vec<String>,
        /// Places that stay, although they may follow from the value
        pub although: Vec<String>,
        /// Whether copies before the tick and in other runs are erased as well
        pub everywhere: bool,
        /// Whether nothing is changed
        pub dry_run: bool,
        /// The name of the person who erases, not checked; person if not given
        pub by: Option<String>,
    }
}

/// Counts the records that are searched, and passes notes on places on.
struct Counted<'d>(&'d mut dyn Desk);

impl Follow for Counted<'_> {
    fn stage(&mut self, unit: &'static str, total: Option<u64>) -> Watch {
        self.0.stage("erase", unit, total)
    }

    fn note(&mut self, note: &CareNote) {
        if let CareNote::GoesAnyway(place) = note {
            self.0.note(goes_anyway(place));
        }
    }
}

impl Asked for EraseQuestion {
    type Reply = Erased;

    fn ask(&self, desk: &mut dyn Desk) -> Result<Erased, Problem> {
        let terms = EraseTerms {
            at: Address::parse(&self.rev)?,
            path: self.path.clone(),
            reason: self.reason.clone(),
            by: self.by.as_deref().unwrap_or(PERSON).to_owned(),
            also: self.also.clone(),
            although: self.although.clone(),
            everywhere: self.everywhere,
        };
        let repo = match self.dry_run {
            true => {
                let source = desk.open(&Address { bundle: None, run: None, pos: None })?;
                let bundle = || Problem::new(Code::E0601, "a bundle is read and never written to");
                let repo = source.repo.ok_or_else(bundle)?;
                // A key that cannot be used is reported before anything is planned.
                repo.signing_key()?;
                repo
            }
            false => desk.writable()?,
        };
        let planned = plan(&repo, &terms, &mut Counted(desk))?;
        if self.dry_run {
            return Ok(planned.dry());
        }
        let erased = planned.carry_out(&repo)?;
        desk.close(repo)?;
        Ok(erased)
    }
}
