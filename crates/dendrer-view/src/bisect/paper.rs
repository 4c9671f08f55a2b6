//! A bisect in the lines of the dendrer paper: 4.3 for a flip or an anomaly, appendix C for a predicate. Its word for
//! the onset is ORIGIN.

use dendrer::ask::bisect::gather::{BisectAnswer, BisectFound, BisectOrigin};
use dendrer::bisect::{BisectOutcome, BisectSubject};
use dendrer::casebook::diagnosis::DiagnosisClass;
use dendrer::kernel::predicate::{Monotone, Verdict};
use dendrer::why::Chain;
use dendrer_object::Value;

use crate::answer::Line;
use crate::bisect::words;
use crate::verdict::{self, list};
use crate::why::row_of;
use crate::{quote, row};

/// Returns the answer in the lines of the paper.
pub(super) fn lines(answer: &BisectAnswer) -> Vec<Line> {
    let is_predicate = matches!(answer.found.question, BisectSubject::Predicate(_));
    let mut lines = if is_predicate { head_lines(&answer.found) } else { Vec::new() };
    lines.extend(answer.found.report.probes.iter().map(|probe| {
        let (word, mark) = verdict::words(&probe.verdict);
        let tick = probe.tick;
        Line::from(match is_predicate {
            true => format!("tick {tick:02} → {word} {mark}"),
            false => {
                format!("→ BISECT: testing tick {tick}... {} {mark}", value(&answer.found, &probe.verdict))
            }
        })
    }));
    lines.extend(outcome_lines(answer, is_predicate));
    lines
}

/// The head of appendix C: how the predicate was verified, and how long the run is.
fn head_lines(found: &BisectFound) -> Vec<Line> {
    let BisectFound { question, report, .. } = found;
    let name = quote::escape(&question.name());
    let name = if name == "expression" { quote::escape(&question.words()) } else { name };
    let monotone = match (question.monotone(), &report.outcome, report.candidates) {
        (_, BisectOutcome::Recovers(_), _) => "FAIL not prefix-monotone (it recovers on this run)".to_owned(),
        (Monotone::ByConstruction, ..) => {
            "OK prefix-monotone (verified against registration contract)".to_owned()
        }
        (Monotone::Lifted, ..) => "OK prefix-monotone (lifted to the first violation)".to_owned(),
        (Monotone::Unknown, _, Some(ticks)) => {
            format!("OK prefix-monotone (on this run, {ticks} ticks checked)")
        }
        (Monotone::Unknown, _, None) => "SKIP prefix-monotone (not checked)".to_owned(),
    };
    let length = report.high.0 - report.low.0;
    [
        format!("verifying predicate: {name}"),
        "OK pure function (no I/O detected)".to_owned(),
        monotone,
        String::new(),
        format!("bisect over {length} transitions | predicate: {name}"),
        String::new(),
    ]
    .map(Line::from)
    .to_vec()
}

/// The value that a probe found, as 4.3 has it.
fn value(found: &BisectFound, verdict: &Verdict) -> &'static str {
    match (&found.question, verdict) {
        (BisectSubject::PolicyFlip(_), Verdict::Ok) => "policy=allow",
        (BisectSubject::PolicyFlip(_), Verdict::Violation) => "policy=deny",
        (_, judged) => verdict::words(judged).0,
    }
}

fn outcome_lines(answer: &BisectAnswer, is_predicate: bool) -> Vec<Line> {
    let report = &answer.found.report;
    let arrow = if is_predicate { "" } else { "→ " };
    let mut lines: Vec<Line> = vec!["".into()];
    match (&report.outcome, &answer.found.origin) {
        (BisectOutcome::Onset(_), Some(origin)) => lines.extend(origin_lines(origin, is_predicate)),
        (BisectOutcome::Initial, _) => lines.push(
            format!("{arrow}ORIGIN: tick {} | the initial state of the range is in violation", report.low.0)
                .into(),
        ),
        (BisectOutcome::Never, _) => lines.push(words::never_words(&answer.found.question, report).into()),
        (BisectOutcome::Recovers(turns), _) => {
            let ticks: Vec<String> = turns.iter().map(|(tick, _)| tick.to_string()).collect();
            let ticks = list(&ticks, 12).unwrap_or_default();
            lines.push(format!("{arrow}no origin: the predicate recovers (turns at {ticks})").into());
        }
        _ => lines.extend(words::unjudged_lines(report)),
    }
    lines.extend(answer.chain.iter().flat_map(|chain| chain_lines(answer, chain, arrow)));
    lines.extend(remedy_lines(answer, is_predicate));
    lines
}

/// ORIGIN: what the transition said, how sure it was, and what it wrote.
fn origin_lines(origin: &BisectOrigin, is_predicate: bool) -> Vec<Line> {
    let (tick, content) = (origin.tick, origin.record.content());
    let row = row::row(&origin.record);
    let title = match is_predicate {
        true => format!("ORIGIN: tick {tick:02} | {}", row.type_name),
        false => format!("→ ORIGIN: tick {tick} | transition_type={}", row.type_name),
    };
    let at =
        |name: &str| content.get("intent").and_then(|intent| intent.get(name)).filter(|v| **v != Value::Null);
    let mut said = Vec::new();
    said.extend(at("confidence").and_then(Value::as_f64).map(|value| format!("confidence: {value:.2}")));
    for name in ["source", "uncertainty_notes"] {
        said.extend(at(name).map(|value| format!("{name}: {}", quote::value(value))));
    }
    let wrote: Vec<String> = origin
        .changes
        .iter()
        .filter_map(|change| {
            let after = change.after.as_ref().map(quote::value)?;
            Some(format!("{}={after}", quote::path(&change.path)))
        })
        .collect();
    let mut lines = vec![Line::from(title)];
    lines.extend(at("description").map(|said| Line::from(format!("  intent: {}", quote::value(said)))));
    lines.extend((!said.is_empty()).then(|| Line::from(format!("  {}", said.join(" | ")))));
    lines.extend(list(&wrote, 8).map(|wrote| Line::from(format!("  effect: {wrote}"))));
    lines
}

fn chain_lines(answer: &BisectAnswer, chain: &Chain, arrow: &str) -> Vec<Line> {
    let line = |tick: u64| {
        let row = row_of(&answer.records, tick);
        Line::from(format!("  tick {tick} {:<17} → {}", row.type_name, row.summary))
    };
    let head = [Line::from(""), Line::from(format!("{arrow}CAUSAL CHAIN:"))];
    head.into_iter().chain(chain.members.iter().map(|member| line(member.tick))).collect()
}

/// DIAGNOSIS and REMEDIATION of appendix C, or the SUGGESTION of 4.3.
fn remedy_lines(answer: &BisectAnswer, is_predicate: bool) -> Vec<Line> {
    let command = |lead: &str, argv: Vec<String>| Line::command(lead, argv);
    let fork =
        answer.fork_for(answer.class().unwrap_or(DiagnosisClass::ContingentState)).or(answer.suggestion());
    if !is_predicate {
        let Some(fork) = fork else { return Vec::new() };
        return vec!["".into(), command("→ SUGGESTION: ", fork)];
    }
    let (Some(offer), Some(class)) = (&answer.offer, answer.class()) else { return Vec::new() };
    let mut lines = vec![
        Line::from(""),
        Line::from(format!("DIAGNOSIS: {}", class.title())),
        Line::from(quote::escape(&offer.evidence)),
        Line::from(""),
        Line::from("REMEDIATION:"),
    ];
    if class != DiagnosisClass::Foundational {
        lines.extend(fork.map(|fork| command("  ", fork)));
        return lines;
    }
    let asked = quote::escape(&words::label(&answer.found.question));
    lines.extend(
        [
            "  DO NOT fork — forking from within this run will not resolve the issue.".to_owned(),
            "  This trace is a post-mortem artifact.".to_owned(),
            String::new(),
            "Recommended actions:".to_owned(),
            format!("  (a) review the goal for what {asked} requires"),
            "  (b) update the policy of the pack".to_owned(),
            "  (c) run again from the start with the revised goal".to_owned(),
            "  (d) use this trace as a reference for what to avoid".to_owned(),
        ]
        .map(Line::from),
    );
    lines
}
