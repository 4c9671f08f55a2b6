//! A run that was reduced again under another pack, and the errors of its rules.

use dendrer::kernel::pack::Pack;
use dendrer::reduce::question::ReduceReply;
use dendrer::reduce::{Reduced, Retold};
use dendrer_object::document::Positive;
use dendrer_object::{Code, Digest, RunName, Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::certainty::{UnknownPlace, unknown_line, unknown_places};
use crate::{count, quote};

/// How many errors of rules are printed for people; the run has them all.
pub(crate) const ERRORS_SHOWN: usize = 10;

document! {
    /// A run that was reduced again
    pub object ReduceDocument: "reduce" (new: &RunName, old: &RunName, under: &Pack, reduced: &Reduced) {
        /// The new run
        run: &RunName = new,
        /// The run that was reduced again
        source: &RunName = old,
        /// The digest of the pack of the new run
        pack: Digest = under.digest(),
        /// The number of transitions
        ticks: u64 = reduced.ticks,
        /// The number of transitions that wrote to the state
        wrote: u64 = reduced.wrote,
        /// The id of the last record
        tip: Digest = reduced.tip,
        /// The ticks at which a rule failed
        errors: Vec<RuleError> = rule_errors(&reduced.errors),
        /// The extensions of the contract of the source, which govern the new run as well
        extensions: Vec<ReducedExtension> = reduced.extensions.iter().map(ReducedExtension::of).collect(),
        /// The stage of the new run
        stage: u64 = reduced.stage as u64,
        /// The first tick at which contracts and violations are enforced; null below stage 2
        enforced_from: Option<u64> = reduced.enforced_from,
        /// The transitions that the door of that stage would have refused; they happened, and are kept
        refused: Vec<WouldRefuse> =
            reduced.refused.iter().map(WouldRefuse::of).collect(),
        /// The unknown places of the last state; absent if every place is known
        unknown?: Vec<UnknownPlace> = unknown_places(&reduced.unknown),
    }

    /// A tick at which a rule failed
    pub(crate) object RuleError(at: u64, why: &str) {
        /// The tick
        tick: u64 = at,
        /// The reason
        message: &str = why,
    }

    /// An extension of the contract of the source
    object ReducedExtension(one: &Retold) {
        /// The id
        id: &str = &one.id,
        /// The tick of the extension
        tick: Positive = Positive(one.tick),
        /// The first tick that it governs
        from: Positive = Positive(one.from),
    }

    /// A transition that the door would have refused
    object WouldRefuse(one: &dendrer::reduce::WouldRefuse) {
        /// The tick
        tick: Positive = Positive(one.tick),
        /// The code of the refusal
        code: Code = one.code,
        /// The codes with the rules and commitments that refuse it
        would_refuse: Vec<RefusalIds> = vec![RefusalIds::of(one.code, &one.ids)],
        /// The reason
        message: &str = &one.message,
    }

    /// A code with the rules and commitments that refuse
    pub(crate) object RefusalIds(with: Code, rules: &[std::sync::Arc<str>]) {
        /// The code of the refusal
        code: Code = with,
        /// The ids of rules and commitments
        ids: Vec<&str> = rules.iter().map(|id| &**id).collect(),
    }
}

impl Answer for ReduceReply {
    fn document(&self) -> Value {
        ReduceDocument::of(&self.run, &self.source, &self.pack, &self.reduced).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let Reduced { ticks, tip, errors, wrote, extensions, stage, enforced_from, refused, unknown } =
            &self.reduced;
        let (run, source, ticks) = (&self.run, &self.source, count(*ticks, "tick", "ticks"));
        let pack = format!("{} {}", self.pack.name, self.pack.version);
        let first = format!(
            "reduced    {ticks} of {source} again under {pack}, as {run}; {wrote} wrote to the state"
        );
        let mut lines = vec![Line::from(first)];
        lines.extend(extensions.iter().map(|Retold { id, tick, from }| {
            Line::from(format!("extension  {} at tick {tick}, holds from tick {from} on", quote::escape(id)))
        }));
        if let Some(from) = enforced_from {
            let stage = *stage as u64;
            lines.push(
                format!("stage      {stage}: contracts and violations are enforced from tick {from} on")
                    .into(),
            );
        }
        let line = |one: &dendrer::reduce::WouldRefuse| {
            let (code, tick) = (one.code, one.tick);
            Line::styled(Style::Warn, format!("{code}      tick {tick}: {}", quote::escape(&one.message)))
        };
        lines.extend(refused.iter().take(ERRORS_SHOWN).map(line));
        if enforced_from.is_some() || !refused.is_empty() {
            lines.push(match refused.len() {
                0 => "would have refused nothing of what happened".into(),
                n => {
                    let transitions = count(n as u64, "transition", "transitions");
                    format!("would have refused {transitions}; they happened, and are kept").into()
                }
            });
        }
        lines.push(format!("tip        {tip}").into());
        lines.extend(error_lines(errors));
        lines.extend(unknown_line(unknown));
        lines.push(Line::help(["dendrer", "verify", run.as_str(), "--replay"]));
        lines
    }
}

/// Returns the ticks at which a rule failed, for a document.
pub(crate) fn rule_errors(errors: &[(u64, String)]) -> Vec<RuleError> {
    errors.iter().map(|(tick, why)| RuleError::of(*tick, why)).collect()
}

/// Returns a line for each tick at which a rule failed, and a note on all of them.
pub fn error_lines(errors: &[(u64, String)]) -> Vec<Line> {
    let line = |(tick, why): &(u64, String)| {
        Line::styled(Style::Warn, format!("WARN       tick {tick}: {}", quote::escape(why)))
    };
    let note = (!errors.is_empty()).then(|| {
        let ticks = count(errors.len() as u64, "tick", "ticks");
        Line::note(format!(
            "note: at {ticks} a rule met an error; the state does not change there, and the transition notes it"
        ))
    });
    errors.iter().take(ERRORS_SHOWN).map(line).chain(note).collect()
}
