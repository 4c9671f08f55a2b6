//! The answer of `import` for a bundle: its runs as foreign runs.

use dendrer::change::foreign::{ForeignRun, ForeignRuns};
use dendrer::verify::VerifyVerdict;
use dendrer_object::{Digest, RunName, Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::count;

/// Runs of a bundle that were taken in, or that would be.
#[derive(Debug, Clone)]
pub struct ForeignAnswer {
    /// The runs.
    pub taken: ForeignRuns,
    /// Whether nothing was written.
    pub dry_run: bool,
}

document! {
    /// The runs of a bundle that were imported as foreign runs
    pub object ImportBundleDocument: "import-bundle" (answer: &ForeignAnswer) {
        /// Whether nothing was written
        dry_run: bool = answer.dry_run,
        /// The id of the store that the bundle is of
        store: String = answer.taken.store.to_string(),
        /// The verdict on the bundle
        verdict: VerifyVerdict = answer.taken.verified,
        /// The runs, by name
        items: Vec<ForeignRunObject> = answer.taken.runs.iter().map(ForeignRunObject::of).collect(),
        /// The number of links to records that the bundle does not have
        links_left_out: u64 = answer.taken.links_left_out,
        /// The number of records that are of no run, like labels and findings, and were left in the bundle
        left: u64 = answer.taken.left,
    }

    /// A foreign run
    object ForeignRunObject(taken: &ForeignRun) {
        /// The name here
        run: &RunName = &taken.run,
        /// The name in its own store
        of: &RunName = &taken.of,
        /// The last tick
        ticks: u64 = taken.ticks,
        /// The number of ticks that were not here before
        added: u64 = taken.added,
        /// The id of its newest record here
        tip: Digest = taken.tip,
        /// The records that the bundle lacks of it, in words; absent if it lacks nothing
        incomplete?: String = taken.lost.map(|lost| lost.words()),
    }
}

impl Answer for ForeignAnswer {
    fn document(&self) -> Value {
        ImportBundleDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let verb = if self.dry_run { "would import" } else { "imported" };
        let mut lines: Vec<Line> = self
            .taken
            .runs
            .iter()
            .map(|taken| {
                let (ticks, tip) = (count(taken.ticks, "tick", "ticks"), taken.tip.short());
                let new = match taken.added {
                    _ if !taken.was_here => String::new(),
                    0 => ", all of them here before".to_owned(),
                    added => format!(", {added} of them new"),
                };
                format!("{verb} {}: {ticks}{new}, tip {tip}", taken.run).into()
            })
            .collect();
        let partial = self.taken.runs.iter().filter_map(|taken| Some((&taken.run, taken.lost?)));
        lines.extend(partial.map(|(run, lost)| {
            Line::styled(Style::Warn, format!("PARTIAL   {run}: {}; it stays on record", lost.words()))
        }));
        let (store, verdict) = (self.taken.store, self.taken.verified.as_str());
        let style =
            if self.taken.verified == VerifyVerdict::Unverifiable { Style::Warn } else { Style::Good };
        lines.push(Line::styled(style, verdict).then(format!("  the bundle, of store {store}")));
        if self.taken.links_left_out > 0 {
            let links = count(self.taken.links_left_out, "link", "links");
            lines.push(Line::styled(
                Style::Warn,
                format!("LEFT OUT  {links} to records that the bundle does not have"),
            ));
        }
        if self.taken.left > 0 {
            let left = count(self.taken.left, "record is", "records are");
            lines.push(Line::note(format!(
                "note: {left} of no run (labels, findings, registrations), and left in the bundle"
            )));
        }
        match self.dry_run {
            true => lines.push(Line::note("nothing was written (dry run)")),
            false => lines.extend(
                self.taken
                    .runs
                    .first()
                    .map(|taken| Line::help(["dendrer", "fork", taken.run.as_str(), "--from", "tip"])),
            ),
        }
        lines
    }
}
