//! What led to an onset, what it looks like, what a person takes it for, and writing that down.

use std::io::{BufRead, IsTerminal, Write};

use dendrer::Trace;
use dendrer::ask_why::{Records, add_records};
use dendrer::bisect::{Outcome, Question, Report};
use dendrer::casebook::{self, Bisected, Moment};
use dendrer::contributors::{Contributors, Found, WORK_MAX, contributors};
use dendrer::diagnosis::{self, Class, Offer};
use dendrer_object::record::Record;
use dendrer_object::value::Object;
use dendrer_object::Value;
use dendrer_view::contributors as view;

use crate::address::Rev;
use crate::args::{Bisect, DiagnosisChoice, Global};
use crate::failure::{Failure, Result};
use crate::out::{Out, Style};
use crate::verbs::casebook::write_down;

/// What is said of an onset beside where it is.
#[derive(Default)]
pub(super) struct Causes {
    contributors: Option<Contributors>,
    offer: Option<Offer>,
    decided: Option<Class>,
}

/// Refuses to write down what cannot be, before anything is worked out.
pub(super) fn refuse(args: &Bisect, rev: &Rev) -> Result<()> {
    let several = args.holds.len() > 1;
    let flags = [
        ("--contributors", args.contributors && several),
        ("--diagnosis", args.diagnosis.is_some() && several),
        ("--record", args.record && several),
    ];
    if let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) {
        return Err(Failure::new("E0106", format!("{flag} is for one --holds, and there are several")));
    }
    if args.record && rev.bundle.is_some() {
        return Err(Failure::new("E0601", "a bundle has no casebook to write into")
            .note("--record writes into the store that the run is recorded in"));
    }
    Ok(())
}

impl Causes {
    pub(super) fn find(
        args: &Bisect,
        trace: &Trace<'_>,
        question: &Question,
        report: &Report,
    ) -> Result<Causes> {
        let mut causes = Causes::default();
        let onset = report.onset();
        if let (true, Some(onset), Some(predicate)) = (args.contributors, onset, question.predicate()) {
            causes.contributors = Some(contributors(trace, predicate, report.low.0, onset, WORK_MAX)?);
        }
        causes.offer = diagnosis::offer(trace, question, report)?;
        causes.decided = match (args.diagnosis, &causes.offer) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(Failure::new("E0106", "there is no onset, so there is nothing to diagnose")
                    .note("leave --diagnosis out to see the answer"));
            }
            (Some(DiagnosisChoice::Ask), Some(offer)) => ask(args, offer)?,
            (Some(DiagnosisChoice::ContingentState), _) => Some(Class::ContingentState),
            (Some(DiagnosisChoice::ContingentPolicy), _) => Some(Class::ContingentPolicy),
            (Some(DiagnosisChoice::Foundational), _) => Some(Class::Foundational),
        };
        Ok(causes)
    }

    /// The class that counts: a person's, or else what is offered.
    pub(super) fn class(&self) -> Option<Class> {
        self.decided.or(self.offer.as_ref().map(|offer| offer.class))
    }

    pub(super) fn add_to(&self, trace: &Trace<'_>, document: &mut Object) -> Result<()> {
        let found = self
            .contributors
            .as_ref()
            .map(|found| Ok::<_, Failure>(view::to_json(&records(trace, found)?, found)))
            .transpose()?;
        document.set("contributors", Value::from(found));
        let offer = self.offer.as_ref().map(|offer| view::diagnosis_json(offer, self.decided));
        document.set("diagnosis", Value::from(offer));
        Ok(())
    }

    pub(super) fn print_contributors(&self, trace: &Trace<'_>, out: &mut Out) -> Result<()> {
        let Some(found) = &self.contributors else { return Ok(()) };
        for line in view::lines(&records(trace, found)?, found) {
            let line = out.fit(&line, out.width());
            out.line(line)?;
        }
        Ok(())
    }

    pub(super) fn print_diagnosis(&self, args: &Bisect, question: &Question, out: &mut Out) -> Result<()> {
        let Some(offer) = &self.offer else { return Ok(()) };
        let name = match question.predicate() {
            Some(predicate) if predicate.name() == "expression" => {
                predicate.expr().map_or_else(|| question.name(), |expr| expr.text().to_owned())
            }
            _ => question.name(),
        };
        for line in view::diagnosis_lines(offer, self.decided, &name) {
            let bold = line.starts_with("DIAGNOSIS") || line.starts_with("DECIDED");
            let line = if bold { out.paint(Style::Strong, &line) } else { line };
            out.line(line)?;
        }
        if self.class() == Some(Class::Foundational) && !args.record {
            let argv = again(args, Class::Foundational);
            out.help(&argv.iter().map(String::as_str).collect::<Vec<_>>());
        }
        Ok(())
    }
}

/// The same question once more, with a class that is written down.
fn again(args: &Bisect, class: Class) -> Vec<String> {
    let mut argv = vec!["dendrer".to_owned(), "bisect".to_owned(), args.run.clone()];
    let asked = [
        ("--predicate", args.predicate.as_ref()),
        ("--holds", args.holds.first()),
        ("--anomaly", args.anomaly.as_ref()),
        ("--policy-flip", args.policy_flip.as_ref()),
    ];
    for (flag, text) in asked {
        argv.extend(text.into_iter().flat_map(|text| [flag.to_owned(), text.clone()]));
    }
    argv.extend(args.lift.then(|| "--lift".to_owned()));
    argv.extend(["--diagnosis", class.word(), "--record"].map(str::to_owned));
    argv
}

/// Asks a person for a class. Without a keyboard there is nobody to ask.
fn ask(args: &Bisect, offer: &Offer) -> Result<Option<Class>> {
    let failed = |error: std::io::Error| {
        Failure::new("E0801", "the question could not be asked").at("cause", error.to_string())
    };
    if !std::io::stdin().is_terminal() {
        let argv = again(args, offer.class);
        return Err(Failure::new("E0106", "--diagnosis ask asks on a terminal, and this is none")
            .note("say which: contingent-state, contingent-policy or foundational")
            .help(&argv.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let mut stderr = std::io::stderr();
    for line in view::diagnosis_lines(offer, None, "the predicate") {
        writeln!(stderr, "{line}").map_err(failed)?;
    }
    for (number, class) in (1..).zip(Class::ALL) {
        writeln!(stderr, "  {number}  {class}").map_err(failed)?;
    }
    loop {
        write!(stderr, "What do you take it for? 1, 2, 3, or Enter to leave it open: ").map_err(failed)?;
        stderr.flush().map_err(failed)?;
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer).map_err(failed)?;
        match answer.trim() {
            "" => return Ok(None),
            _ if read == 0 => return Ok(None),
            "1" => return Ok(Some(Class::ContingentState)),
            "2" => return Ok(Some(Class::ContingentPolicy)),
            "3" => return Ok(Some(Class::Foundational)),
            _ => {}
        }
    }
}

/// Writes the answer into the casebook.
pub(super) fn record(
    global: &Global,
    trace: &Trace<'_>,
    report: &Report,
    document: &Value,
) -> Result<Vec<Record>> {
    let onset = match report.outcome {
        Outcome::Onset(tick) => Some(tick),
        _ => report.onset(),
    };
    let mut answer = document.as_object().cloned().unwrap_or_default();
    let chain = answer.remove("chain").filter(|chain| *chain != Value::Null);
    let found = Bisected {
        run: Moment::of(trace, Some(report.high.0))?,
        onset: onset.map(|tick| Moment::of(trace, Some(tick))).transpose()?,
        answer: Value::Object(answer),
        chain,
    };
    write_down(global, |store, surroundings| casebook::record_bisect(store, &found, surroundings))
}

fn records(trace: &Trace<'_>, found: &Contributors) -> Result<Records> {
    let mut records = Records::new();
    if let Found::Set { ticks, .. } = &found.found {
        add_records(trace, ticks.iter().copied(), &mut records)?;
    }
    Ok(records)
}
