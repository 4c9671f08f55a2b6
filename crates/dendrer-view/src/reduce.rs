//! A run that was reduced again under another pack, and the errors of its rules.

use dendrer::kernel::pack::Pack;
use dendrer::reduce::{Reduced, Retold};
use dendrer_object::{Code, RunName, Value};

use crate::answer::{Answer, Line, Page, Style};
use crate::certainty::{unknown_line, unknown_member};
use crate::{count, document, quote};

/// How many errors of rules are printed for people; the run has them all.
const ERRORS_SHOWN: usize = 10;

/// A new run with the transitions of another one under another pack.
#[derive(Debug, Clone, Copy)]
pub struct ReduceAnswer<'r> {
    /// The new run.
    pub run: &'r RunName,
    /// The run that was reduced again.
    pub source: &'r RunName,
    /// The pack of the new run.
    pub pack: &'r Pack,
    /// Counts, tip, errors and extensions of the new run.
    pub reduced: &'r Reduced,
}

impl Answer for ReduceAnswer<'_> {
    fn document(&self) -> Value {
        let Reduced { ticks, tip, errors, wrote, extensions, stage, enforced_from, refused, unknown } =
            self.reduced;
        let refused = refused.iter().map(|(tick, code, why)| {
            Value::record([
                ("tick", Value::from(*tick)),
                ("code", Value::from(*code)),
                ("message", Value::from(why.as_str())),
            ])
        });
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("source", Value::from(self.source.as_str())),
            ("pack", Value::from(self.pack.digest())),
            ("ticks", Value::from(*ticks)),
            ("wrote", Value::from(*wrote)),
            ("tip", Value::from(*tip)),
            ("errors", errors_json(errors)),
            ("extensions", Value::array(extensions.iter().map(extension_json))),
            ("stage", Value::from(*stage as u64)),
            ("enforced_from", Value::from(*enforced_from)),
            ("refused", Value::array(refused)),
        ];
        document("reduce", members.into_iter().chain(unknown_member(unknown)))
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let Reduced { ticks, tip, errors, wrote, extensions, stage, enforced_from, refused, unknown } =
            self.reduced;
        let (run, source, ticks) = (self.run, self.source, count(*ticks, "tick", "ticks"));
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
            let line = |(tick, code, why): &(u64, Code, String)| {
                Line::styled(Style::Warn, format!("{code}      tick {tick}: {}", quote::escape(why)))
            };
            lines.extend(refused.iter().take(ERRORS_SHOWN).map(line));
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

fn extension_json(one: &Retold) -> Value {
    Value::record([
        ("id", Value::from(&*one.id)),
        ("tick", Value::from(one.tick)),
        ("from", Value::from(one.from)),
    ])
}

/// Returns the ticks at which a rule failed, with the reasons.
pub fn errors_json(errors: &[(u64, String)]) -> Value {
    Value::array(errors.iter().map(|(tick, why)| {
        Value::record([("tick", Value::from(*tick)), ("message", Value::from(why.as_str()))])
    }))
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
