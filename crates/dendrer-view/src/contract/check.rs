//! A run checked against contracts, as lines and as a document.

use dendrer::contract::{CheckedContract, ContractPeriod, Judged};
use dendrer::kernel::predicate::{Verdict, Window};
use dendrer_object::Value;

use crate::answer::{Answer, End, Line, Page, Style};
use crate::bisect::{from_text_line, of_texts, standing_json, standing_words};
use crate::certainty::{reasons_json, reasons_words};
use crate::verdict::intervals_json;
use crate::{count, document, quote};

/// How many transitions that lack something are listed for people.
const LACKING_SHOWN: usize = 10;

/// A check of a run. The document has every stretch of a violation.
#[derive(Debug, Clone, Copy)]
pub struct ContractCheckAnswer<'c> {
    /// The check.
    pub checked: &'c CheckedContract,
    /// Whether every stretch of a violation is listed, and not only the first.
    pub all_violations: bool,
}

impl Answer for ContractCheckAnswer<'_> {
    fn document(&self) -> Value {
        let checked = self.checked;
        let lacking = checked.lacking.iter().map(|lacking| {
            let fields = lacking.lacks.iter().map(|lack| {
                Value::record([
                    ("name", Value::from(&*lack.name)),
                    ("why", Value::from(lack.why.to_string())),
                ])
            });
            Value::record([
                ("tick", Value::from(lacking.tick)),
                ("type", Value::from(lacking.type_name.as_str())),
                ("fields", Value::array(fields)),
            ])
        });
        let certainty = of_texts(checked.from_text).unless(checked.is_uncertain());
        document(
            "contract-check",
            [
                ("run", Value::from(checked.run.as_str())),
                ("from", Value::from(checked.from)),
                ("to", Value::from(checked.to)),
                ("stage", Value::from(checked.stage)),
                ("in_force", Value::array(checked.in_force.iter().map(terms_json))),
                ("governed", Value::from(checked.governed)),
                ("lacking", Value::array(lacking)),
                ("items", Value::array(checked.violations().map(judged_json))),
                ("certainty", Value::from(certainty)),
                ("status_from_text", Value::from(checked.from_text)),
            ],
        )
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
        let (style, mark) = match checked.lacking.is_empty() {
            true => (Style::Good, "OK  "),
            false => (Style::Bad, "FAIL"),
        };
        let lacking = checked.lacking.len();
        let head = Line::from("required  ")
            .then_styled(style, mark)
            .then(format!("  {lacking} of {governed} lacked what they require   {enforced}"));
        let mut lines = vec![head];
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

fn terms_json(terms: &ContractPeriod) -> Value {
    let extensions = terms.extensions.iter().map(|extension| {
        Value::record([
            ("id", Value::from(&*extension.id)),
            ("from", Value::from(extension.from)),
            ("approved_by", Value::from(&*extension.approved_by)),
        ])
    });
    Value::record([
        ("name", Value::from(&*terms.contracts.name)),
        ("version", Value::from(&*terms.contracts.version)),
        ("from", Value::from(terms.from)),
        ("to", Value::from(terms.to)),
        ("extensions", Value::array(extensions)),
    ])
}

fn judged_json(judged: &Judged) -> Value {
    let first_unjudged = judged.uncertain().map(|(tick, _)| tick);
    let uncertain = judged.uncertain().map_or(Value::Null, |(tick, why)| {
        Value::record([("tick", Value::from(tick)), ("why", Value::from(why))])
    });
    Value::record([
        ("name", Value::from(judged.predicate.name())),
        ("from", Value::from(judged.intervals.first().map(|interval| interval.from))),
        ("to", Value::from(judged.intervals.last().map(|interval| interval.to))),
        ("words", Value::from(judged.predicate.words())),
        ("ok", Value::from(judged.onset().is_none() && judged.uncertain().is_none())),
        // An earlier tick that cannot be judged may be the onset.
        (
            "onset",
            Value::from(judged.onset().filter(|tick| first_unjudged.is_none_or(|first| first > *tick))),
        ),
        ("uncertain", uncertain),
        ("intervals", intervals_json(&judged.intervals)),
        ("reasons", reasons_json(&judged.reasons)),
        ("obligation", standing_json(judged.standing.as_ref(), judged.ended)),
    ])
}
