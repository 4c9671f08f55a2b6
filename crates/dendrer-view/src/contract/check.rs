//! A run checked against contracts, as lines and as a document.

use dendrer::contract::{CheckedContract, ContractExtension, ContractPeriod, Judged, Lacking};
use dendrer::kernel::contract::Lack;
use dendrer::kernel::predicate::{Verdict, Window};
use dendrer_object::document::Positive;
use dendrer_object::{RunName, TypeName, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::bisect::{ObligationObject, from_text_line, of_texts, standing_words};
use crate::certainty::{ReasonObject, reasons, reasons_words};
use crate::verdict::{Stretch, stretches};
use crate::{count, quote};

/// The largest number of incomplete transitions that are listed for people.
const LACKING_SHOWN: usize = 10;

/// A check of a run. The document has every stretch of a violation.
#[derive(Debug, Clone, Copy)]
pub struct ContractCheckAnswer<'c> {
    /// The check.
    pub checked: &'c CheckedContract,
    /// Whether every stretch of a violation is listed, and not only the first.
    pub all_violations: bool,
}

document! {
    /// A run checked against contracts
    pub object ContractCheckDocument: "contract-check" reads (checked: &CheckedContract) {
        let sure = of_texts(checked.from_text).unless(checked.is_uncertain());
        /// The run
        run: &RunName = &checked.run,
        /// The first tick
        from: u64 = checked.from,
        /// The last tick
        to: u64 = checked.to,
        /// The stage at which the run is recorded
        stage: Option<u64> = checked.stage,
        /// The contracts, each with its ticks
        in_force: Vec<PeriodObject> = checked.in_force.iter().map(PeriodObject::of).collect(),
        /// The number of transitions that a contract governs
        governed: u64 = checked.governed,
        /// The transitions that lack required fields
        lacking: Vec<LackingObject> = checked.lacking.iter().map(LackingObject::of).collect(),
        /// The violations that are forbidden
        items: Vec<JudgedObject> = checked.violations().map(JudgedObject::of).collect(),
        /// The certainty of the answer
        certainty: ["exact" | "heuristic" | "unavailable"] = sure.as_str(),
        /// The number of results that the answer depends on whose status was read from prose
        status_from_text: u64 = checked.from_text,
    }

    /// A contract and the ticks for which it is in force
    object PeriodObject(terms: &ContractPeriod) {
        /// The name
        name: &str = &terms.contracts.name,
        /// The version
        version: &str = &terms.contracts.version,
        /// The first tick
        from: u64 = terms.from,
        /// The last tick
        to: u64 = terms.to,
        /// The extensions that hold
        extensions: Vec<HoldingExtension> = terms.extensions.iter().map(HoldingExtension::of).collect(),
    }

    /// An extension that holds
    object HoldingExtension(extension: &ContractExtension) {
        /// The id
        id: &str = &extension.id,
        /// The first tick that it governs
        from: Positive = Positive(extension.from),
        /// The approver
        approved_by: &str = &extension.approved_by,
    }

    /// A transition that lacks required fields
    object LackingObject(lacking: &Lacking) {
        /// The tick
        tick: Positive = Positive(lacking.tick),
        /// The type
        type: &TypeName = &lacking.type_name,
        /// The fields
        fields: Vec<LackObject> = lacking.lacks.iter().map(LackObject::of).collect(),
    }

    /// A required field that a transition lacks
    object LackObject(lack: &Lack) {
        /// The name
        name: &str = &lack.name,
        /// The fault in words
        why: String = lack.why.to_string(),
    }

    /// A violation that is forbidden, and its verdicts
    object JudgedObject(judged: &Judged) {
        let unjudged = judged.uncertain();
        let standing = judged.standing.as_ref();
        /// The name of the predicate
        name: &str = judged.predicate.name(),
        /// The first tick that was judged
        from: Option<u64> = judged.intervals.first().map(|interval| interval.from),
        /// The last tick that was judged
        to: Option<u64> = judged.intervals.last().map(|interval| interval.to),
        /// The question in words
        words: String = judged.predicate.words(),
        /// Whether no tick is in violation and each could be judged
        ok: bool = judged.onset().is_none() && unjudged.is_none(),
        /// The first tick in violation; null if an earlier tick cannot be judged
        onset: Option<u64> = judged.onset().filter(|tick| unjudged.is_none_or(|(first, _)| first > *tick)),
        /// The first tick that cannot be judged
        uncertain: Option<UnjudgedTick> = unjudged.map(|(tick, why)| UnjudgedTick::of(tick, why)),
        /// The stretches of ticks with one verdict
        intervals: Vec<Stretch<'_>> = stretches(&judged.intervals),
        /// The reasons why ticks cannot be judged, each with its first and last tick
        reasons: Vec<ReasonObject> = reasons(&judged.reasons),
        /// The state of an obligation at the last tick; null for a predicate
        obligation: Option<ObligationObject> = standing.map(|one| ObligationObject::of(one, judged.ended)),
    }

    /// A tick that cannot be judged
    object UnjudgedTick(at: u64, reason: &str) {
        /// The tick
        tick: u64 = at,
        /// The reason
        why: &str = reason,
    }
}

impl Answer for ContractCheckAnswer<'_> {
    fn document(&self) -> Value {
        ContractCheckDocument::of(self.checked).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let checked = self.checked;
        let mut lines: Vec<Line> = checked.in_force.iter().map(|terms| self.terms_line(terms)).collect();
        lines.extend(self.required_lines());
        let width = checked.violations().map(|judged| judged.predicate.name().len()).max().unwrap_or(0);
        for terms in &checked.in_force {
            if checked.in_force.len() > 1 {
                lines.push(format!("ticks {}..{}", terms.from, terms.to).into());
            }
            lines.extend(terms.violations.iter().flat_map(|judged| self.violation_lines(judged, width)));
        }
        let violated = checked.violations().filter(|judged| judged.onset().is_some()).count();
        let all = checked.violations().count();
        lines.push(format!("{violated} of {all} violated{}", page.of_run(&checked.run)).into());
        lines.extend(from_text_line(checked.from_text).map(Line::from));
        // Bisect knows the predicates of the pack at the tip.
        let newest = checked.in_force.last().into_iter().flat_map(|terms| &terms.violations);
        let onset = newest.into_iter().find(|judged| judged.onset().is_some());
        lines.extend(onset.filter(|_| !checked.is_given).map(|judged| {
            Line::help(["dendrer", "bisect", checked.run.as_str(), "--predicate", judged.predicate.name()])
        }));
        lines
    }

    fn end(&self) -> End {
        match (self.checked.is_broken(), self.checked.is_uncertain()) {
            (_, true) => End::Unknown,
            (true, _) => End::No,
            (false, false) => End::Answered,
        }
    }
}

impl ContractCheckAnswer<'_> {
    fn terms_line(&self, terms: &ContractPeriod) -> Line {
        let contracts = &terms.contracts;
        let name = match contracts.name.is_empty() {
            true => "none".to_owned(),
            false => format!("{}/{}", contracts.name, contracts.version),
        };
        let added = terms.extensions.iter().map(|extension| {
            format!(", + extension {} from tick {}", quote::escape(&extension.id), extension.from)
        });
        let added: String = added.collect();
        let how = if self.checked.is_given { "asked of" } else { "in force for" };
        format!("contract  {name} ({how} ticks {}..{}){added}", terms.from, terms.to).into()
    }

    fn required_lines(&self) -> Vec<Line> {
        let checked = self.checked;
        let enforced = match checked.stage {
            _ if checked.is_given => "another contract than the one in force may be asked".to_owned(),
            Some(stage) if stage >= 2 => format!("enforced when it was recorded, at stage {stage}"),
            Some(stage) => format!("not enforced when it was recorded, at stage {stage}"),
            None => "the stage it was recorded at is not known".to_owned(),
        };
        let governed = count(checked.governed, "transition", "transitions");
        let (style, mark) = match (checked.lacking.is_empty(), checked.missing) {
            (true, None) => (Style::Good, "OK  "),
            (true, Some(_)) => (Style::Warn, "WARN"),
            (false, _) => (Style::Bad, "FAIL"),
        };
        let lacking = checked.lacking.len();
        let head = Line::from("required  ")
            .then_styled(style, mark)
            .then(format!("  {lacking} of {governed} lacked what they require   {enforced}"));
        let mut lines = vec![head];
        let missing = checked.missing.map(|found| format!("  {}", quote::escape(&found.words())));
        lines.extend(missing.map(|words| Line::styled(Style::Warn, words)));
        lines.extend(checked.lacking.iter().take(LACKING_SHOWN).map(|lacking| {
            let fields = lacking.lacks.iter().map(|lack| format!("{}: {}", lack.name, lack.why));
            let fields = fields.collect::<Vec<_>>().join(", ");
            let (tick, name) = (lacking.tick, &lacking.type_name);
            Line::from(format!("  tick {tick}  {name}  {}", quote::escape(&fields)))
        }));
        if let Some(more) = lacking.checked_sub(LACKING_SHOWN).filter(|more| *more > 0) {
            lines.push(format!("  ({more} more; --json has all)").into());
        }
        lines
    }

    fn violation_lines(&self, judged: &Judged, width: usize) -> Vec<Line> {
        let name = judged.predicate.name();
        let window = match judged.predicate.window() {
            Window::After => "after",
            Window::Before => "before",
        };
        let (style, mark, what) = match (judged.onset(), judged.uncertain()) {
            (Some(tick), unjudged) => {
                let words = quote::escape(&judged.predicate.words());
                let from = match unjudged.filter(|(first, _)| *first < tick) {
                    Some((first, _)) => format!("at tick {tick}, perhaps from tick {first} on"),
                    None => format!("from tick {tick}"),
                };
                (Style::Bad, "FAIL", format!("{from}   {words}  ({window})"))
            }
            (None, Some((tick, why))) => {
                let what = format!("cannot be judged at tick {tick}: {}", quote::escape(why));
                (Style::Warn, "WARN", what)
            }
            (None, None) => {
                let standing = judged.standing.as_ref();
                let words = standing.map(|standing| standing_words(standing, judged.ended));
                (Style::Good, "OK  ", words.unwrap_or_default())
            }
        };
        let text = format!("  {name:<width$}  {what}");
        let mut lines = vec![Line::from("  ").then_styled(style, mark).then(text.trim_end())];
        if self.all_violations {
            let stretches = judged.intervals.iter().filter(|interval| interval.verdict == Verdict::Violation);
            lines.extend(stretches.map(|one| Line::from(format!("        ticks {}..{}", one.from, one.to))));
        }
        // Each reason with its ticks, where the line above does not name them all.
        let reasons = reasons_words(&judged.reasons);
        if reasons.len() > 1 || judged.onset().is_some() {
            let line =
                |words: String| Line::styled(Style::Warn, format!("        {}", quote::escape(&words)));
            lines.extend(reasons.into_iter().map(line));
        }
        lines
    }
}
