//! `dendrer bisect`

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dendrer::Trace;
use dendrer::ask_show::{PlaceChange, changes};
use dendrer::ask_why::chain_records;
use dendrer::bisect::{Divergence, Outcome, Question, Range, Report, bisect_each};
use dendrer::diagnosis::Class;
use dendrer::kernel::predicate::{Monotone, Polarity, Predicate, Verdict};
use dendrer::kernel::progress::Evaluation;
use dendrer::registry::Known;
use dendrer::why::Chain;
use dendrer_object::{TypeName, Value};
use dendrer_view::bisect::{
    evaluation_json, evaluation_words, head_lines, list, probe_lines, standing_json, standing_words, to_json,
};
use dendrer_view::casebook::{recorded_json, recorded_lines};
use dendrer_view::diff::{item_json, lines};
use dendrer_view::show::change_json;
use dendrer_view::table::{Align, Table};
use dendrer_view::why::{chain_json, chain_lines};
use dendrer_view::{document, quote, thousands};

use self::causes::Causes;
use super::predicate::{Meant, ended, expression, has_hint, of_file, registration_line, resolve};
use crate::address::{self, Rev};
use crate::args::{Bisect, Global};
use crate::failure::{Failure, Result, shell};
use crate::open::{self, Source};
use crate::out::{Out, Style};
use crate::progress::{Counted, Progress};

mod causes;
mod regression;

/// One question, and what is known of it from elsewhere.
struct Asked {
    question: Question,
    meant: Option<Meant>,
}

pub(crate) fn run(global: &Global, args: &Bisect, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.run)?;
    let source = open::sound(global, &rev, out)?;
    causes::refuse(args, &rev)?;
    let rev = rev.settle(source.store())?;
    let run = rev.run_in(source.store(), source.named())?;
    // How many records the probes take depends on where snapshots lie, so no remaining time is told.
    let progress = Progress::start(global, "bisect", "records", None);
    let counted = Counted::new(source.store(), progress.counter());
    let trace = Trace::open(&counted, &run)?;
    let from = args.from.as_ref().map_or(Ok(0), |pos| pos.tick(&trace))?;
    let to = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    address::in_order(from, to)?;
    let range = Range { scan: args.scan, ..Range::new(from, to) };
    if let Some(questions) = several(args, &trace)? {
        return each(&questions, &trace, &range, progress, out);
    }
    if let Some(metric) = &args.regression {
        return regression::run(args, &trace, metric, &range, progress, out);
    }
    let asked = match &args.divergence {
        Some(other) => divergence(global, &source, &rev, &trace, other, progress.counter(), out)?,
        None => question(args, &trace)?,
    };
    let since = since(args, &asked);
    let range = match since {
        // What came before it was judged by the contract of its time.
        Some(since) if since > to => {
            let text = args.predicate.as_deref().unwrap_or_default();
            let what = format!(
                "{text} is part of the contract from tick {since} on, and the range ends at tick {to}"
            );
            return Err(Failure::new("E0106", what).note("--from 0 asks of the ticks before, too"));
        }
        Some(since) => {
            out.say(format!(
                "note: it is part of the contract from tick {since} on; --from 0 asks of the ticks before"
            ));
            Range { scan: range.scan, ..Range::since(since, to) }
        }
        None => range,
    };
    let report = ask(&trace, std::slice::from_ref(&asked.question), &range)?.remove(0);
    drop(progress);
    if let (true, Some(tick)) = (global.verbose, report.known_to) {
        let known = format!("verdicts up to tick {} were worked out before", thousands(tick));
        // Nobody can be told that stderr is closed.
        let _ = writeln!(std::io::stderr(), "{known}, and signed by the key of the store");
    }
    one(global, args, &trace, &asked, &report, out)
}

/// The tick from which on it is part of the contract, where an extension brought it in and nobody said where to begin.
fn since(args: &Bisect, asked: &Asked) -> Option<u64> {
    asked.meant.as_ref().and_then(|meant| meant.since).filter(|_| args.from.is_none())
}

/// Looks where the run first differs from another, which may stand in another place.
fn divergence(
    global: &Global,
    source: &Source,
    rev: &Rev,
    trace: &Trace<'_>,
    other: &str,
    counter: Arc<AtomicU64>,
    out: &mut Out,
) -> Result<Asked> {
    let named = Rev::parse(other)?;
    let elsewhere = (named.bundle != rev.bundle).then(|| open::sound(global, &named, out)).transpose()?;
    let place = elsewhere.as_ref().unwrap_or(source);
    let named = named.settle(place.store())?;
    if named.pos.is_some() {
        return Err(Failure::new("E0106", "--divergence takes a run, and this is a place in one")
            .note("RUN@TICK ends the run that is asked about, and --to as well"));
    }
    let counted = Counted::new(place.store(), counter);
    let other = Trace::open(&counted, &named.run_in(place.store(), place.named())?)?;
    Ok(Asked { question: dendrer::bisect::divergence(trace, &other)?, meant: None })
}

fn ask(trace: &Trace<'_>, questions: &[Question], range: &Range) -> Result<Vec<Report>> {
    Ok(bisect_each(trace, questions, range)?)
}

fn one(
    global: &Global,
    args: &Bisect,
    trace: &Trace<'_>,
    asked: &Asked,
    report: &Report,
    out: &mut Out,
) -> Result {
    let question = &asked.question;
    let refusal = refusal(args, trace, question, report);
    let causes = Causes::find(args, trace, question, report)?;
    let chain = chain_of(args, trace, report)?;
    let document = match out.is_text() && !args.record {
        true => None,
        false => Some(document_of(args, trace, asked, report, &causes, chain.as_ref())?),
    };
    let recorded = match (&document, args.record && refusal.is_none()) {
        (Some(document), true) => causes::record(global, trace, report, document)?,
        _ => Vec::new(),
    };
    if out.is_text() {
        text(args, trace, asked, report, (&causes, chain.as_ref()), out)?;
        for line in recorded_lines(&recorded) {
            out.line(line)?;
        }
        if let Some(failure) = refusal {
            return Err(failure);
        }
    } else if let Some(document) = document {
        let mut document = document.as_object().cloned().unwrap_or_default();
        document.set("recorded", recorded_json(&recorded));
        out.document(&Value::Object(document))?;
        if let Some(failure) = refusal {
            return Ok(failure.exit());
        }
    }
    let found = report.onset();
    if let Some(expected) = args.expect_onset {
        if found != Some(expected) {
            let found = found.map_or_else(|| "no onset".to_owned(), |tick| format!("tick {tick}"));
            let failure =
                Failure::new("E0510", format!("expected the onset at tick {expected}, found {found}"));
            return if out.is_text() { Err(failure) } else { Ok(failure.exit()) };
        }
        return Ok(0);
    }
    Ok(exit(report))
}

/// The whole answer as a document.
fn document_of(
    args: &Bisect,
    trace: &Trace<'_>,
    asked: &Asked,
    report: &Report,
    causes: &Causes,
    chain: Option<&Chain>,
) -> Result<Value> {
    let question = &asked.question;
    let document = report_json(trace, question, report)?;
    let mut document = document.as_object().cloned().unwrap_or_default();
    document.set("since", Value::from(since(args, asked)));
    document.set(
        "chain",
        Value::from(
            chain
                .map(|chain| Ok::<_, Failure>(chain_json(&chain_records(trace, chain)?, chain)))
                .transpose()?,
        ),
    );
    causes.add_to(trace, &mut document)?;
    if let Some(said) = evaluations(trace, question, report)? {
        document.set("evaluations", Value::array(said.iter().map(|(at, said)| evaluation_json(*at, said))));
    }
    if let Some(argv) = suggestion(args, trace, report, causes)? {
        let words = argv.iter().map(|word| Value::from(word.as_str()));
        document.set("suggestion", Value::record([("argv", Value::array(words))]));
    }
    if let Question::Divergence(found) = question {
        document.set("divergence", Value::from(found.first.as_ref().map(item_json)));
    }
    let document = Value::Object(document);
    Ok(match &asked.meant {
        Some(meant) => meant.add_other(document),
        None => document,
    })
}

/// What a progress contract says of both ends, and of the tick where it is violated first.
fn evaluations(
    trace: &Trace<'_>,
    question: &Question,
    report: &Report,
) -> Result<Option<Vec<(u64, Evaluation)>>> {
    let Some(contract) = question.predicate().filter(|one| one.progress().is_some()) else { return Ok(None) };
    let mut ticks = vec![report.low.0, report.high.0];
    ticks.extend(report.onset().filter(|onset| !ticks.contains(onset)));
    ticks.sort_unstable();
    let said = ticks.into_iter().map(|tick| {
        let counters = match contract.reads_counters() {
            true => Some(trace.at(tick)?.counters.to_value()),
            false => None,
        };
        Ok((tick, contract.evaluate(&trace.state(tick)?, counters.as_ref())))
    });
    Ok(Some(said.collect::<Result<_>>()?))
}

/// The exit code of an answer: found, not there, or none that can be relied on.
fn exit(report: &Report) -> u8 {
    match report.outcome {
        Outcome::Onset(_) | Outcome::Initial => 0,
        Outcome::Never => 1,
        Outcome::Recovers(_) | Outcome::Uncertain(..) => 6,
    }
}

fn report_json(trace: &Trace<'_>, question: &Question, report: &Report) -> Result<Value> {
    let origin = report.onset().map(|tick| origin_json(trace, tick)).transpose()?;
    let document = to_json(trace.name().as_str(), question, report, origin);
    let mut document = document.as_object().cloned().unwrap_or_default();
    document.set("obligation", standing_json(report.standing.as_ref(), ended(trace, report.high.0)));
    Ok(Value::Object(document))
}

/// The fork from before the onset, as a command that can be pasted. None where the problem was there before the first
/// transition, because then no state of the run is from before it; nor for a run that is only read from a bundle.
fn suggestion(
    args: &Bisect,
    trace: &Trace<'_>,
    report: &Report,
    causes: &Causes,
) -> Result<Option<Vec<String>>> {
    let Some(tick) = report.onset().filter(|tick| *tick > 1) else { return Ok(None) };
    // Where two runs part is no failure of either.
    let class = match causes.class() {
        None | Some(Class::Foundational) => return Ok(None),
        Some(class) => class,
    };
    if Rev::parse(&args.run)?.bundle.is_some() {
        return Ok(None);
    }
    let record = trace.record(tick)?;
    let type_name = record.header().type_name.as_ref().map_or("", |name| name.as_str());
    let (flag, words) = match (class, type_name) {
        (Class::ContingentPolicy, "policy.decision") => {
            ("--policy", "review each policy.decision before it is committed".to_owned())
        }
        (Class::ContingentPolicy, other) => ("--policy", format!("review what policy allows for {other}")),
        (_, "observation.add") => {
            ("--tool-policy", "require source verification before observation.add".to_owned())
        }
        (_, "action.request" | "action.result") => {
            ("--tool-policy", "review each call before it is made".to_owned())
        }
        (_, other) => ("--policy", format!("review each {other} before it is committed")),
    };
    let before = (tick - 1).to_string();
    let argv = ["dendrer", "fork", "--run", trace.name().as_str(), "--from", "tick", &before, flag, &words];
    Ok(Some(argv.map(str::to_owned).to_vec()))
}

/// Follows the onset forward, where there is one and nobody asked not to.
fn chain_of(args: &Bisect, trace: &Trace<'_>, report: &Report) -> Result<Option<Chain>> {
    match report.outcome {
        Outcome::Onset(tick) if !args.no_chain && args.chain_limit > 0 => {
            Ok(Some(dendrer::why::chain(trace, tick, report.high.0, args.chain_limit)?))
        }
        _ => Ok(None),
    }
}

/// Makes the questions where there is more than one answer to give: all predicates of a file, or several expressions.
fn several(args: &Bisect, trace: &Trace<'_>) -> Result<Option<Vec<Question>>> {
    let predicates = match &args.all_of {
        Some(path) => {
            let predicates = of_file(path, trace)?;
            if predicates.is_empty() {
                return Err(Failure::new("E0512", format!("{path} has no predicates")));
            }
            predicates
        }
        None if args.holds.len() < 2 => return Ok(None),
        None if args.expect_onset.is_some() => {
            return Err(Failure::new("E0106", "--expect-onset is for one --holds, and there are several"));
        }
        None => {
            let made = args.holds.iter().map(|text| {
                let failure = |failure: Failure| failure.at("expression", text.as_str());
                let made = expression(trace, Polarity::Holds, text).map_err(failure)?;
                Ok(Meant::plain(made).at_window(args.window)?.predicate)
            });
            made.collect::<Result<Vec<_>>>()?
        }
    };
    let lift = |predicate: Predicate| if args.lift { predicate.lifted() } else { predicate };
    Ok(Some(predicates.into_iter().map(|predicate| Question::Predicate(lift(predicate))).collect()))
}

/// Gives each of several questions its answer. The worst exit code counts.
fn each(
    questions: &[Question],
    trace: &Trace<'_>,
    range: &Range,
    progress: Progress,
    out: &mut Out,
) -> Result {
    let reports = ask(trace, questions, range)?;
    drop(progress);
    let worst = reports.iter().map(exit).max().unwrap_or(0);
    let run = ("run", Value::from(trace.name().as_str()));
    if out.is_text() {
        table(trace, questions, &reports, out)?;
    } else {
        let items =
            questions.iter().zip(&reports).map(|(question, report)| report_json(trace, question, report));
        let items = Value::array(items.collect::<Result<Vec<_>>>()?);
        out.document(&document(
            "bisect-all",
            [run, ("exit", Value::from(u64::from(worst))), ("items", items)],
        ))?;
    }
    Ok(worst)
}

/// What a row of the table calls a question: its name, or the text of one that has none.
fn label(question: &Question) -> String {
    match question.predicate() {
        Some(predicate) if predicate.name() == "expression" => {
            predicate.expr().map_or_else(|| question.name(), |expr| expr.text().to_owned())
        }
        _ => question.name(),
    }
}

fn table(trace: &Trace<'_>, questions: &[Question], reports: &[Report], out: &mut Out) -> Result<()> {
    let left = Align::Left;
    let mut table = Table::new([
        ("predicate", left),
        ("digest", left),
        ("onset", Align::Right),
        ("probes", Align::Right),
        ("answer", left),
    ]);
    for (question, report) in questions.iter().zip(reports) {
        let answer = match &report.outcome {
            Outcome::Onset(tick) => {
                let row = dendrer_view::log::row(&trace.record(*tick)?);
                format!("{} by {}", row.type_name, row.agent)
            }
            Outcome::Initial => "the initial state of the range is in violation".to_owned(),
            Outcome::Never => match &report.standing {
                Some(standing) => standing_words(standing, ended(trace, report.high.0)),
                None => "never violated".to_owned(),
            },
            Outcome::Recovers(turns) => {
                let ticks: Vec<String> = turns.iter().map(|(tick, _)| tick.to_string()).collect();
                format!("REFUSED: it recovers (turns at {})", list(&ticks, 8).unwrap_or_default())
            }
            Outcome::Uncertain(tick, why) => format!("REFUSED: uncertain at tick {tick}: {why}"),
        };
        let lifted = report.recoveries.as_ref().is_some_and(|recoveries| !recoveries.is_empty());
        table.row(vec![
            quote::escape(&label(question)),
            question.digest().short(),
            report.onset().map_or_else(|| "-".to_owned(), |tick| tick.to_string()),
            report.probes.len().to_string(),
            format!("{}{}", quote::escape(&answer), if lifted { "   (lifted: it recovers)" } else { "" }),
        ]);
    }
    for line in table.lines(out.width()).0 {
        out.line(line)?;
    }
    let with = |code| reports.iter().filter(|report| exit(report) == code).count();
    out.line(format!(
        "{} of {} violated, {} never, {} refused",
        with(0),
        thousands(reports.len() as u64),
        with(1),
        with(6)
    ))
}

/// Finds or makes what was asked for.
fn question(args: &Bisect, trace: &Trace<'_>) -> Result<Asked> {
    if let Some(about) = &args.policy_flip {
        let about: TypeName = about.parse().map_err(|_| {
            Failure::new("E0210", format!("\"{about}\" is not a transition type"))
                .note("types are lower-case words joined by dots, like action.request")
        })?;
        return Ok(Asked { question: Question::PolicyFlip(about), meant: None });
    }
    let meant = match (&args.anomaly, args.holds.first(), &args.predicate) {
        (Some(kind), ..) => Meant::plain(Predicate::anomaly(kind)),
        (_, Some(text), _) => Meant::plain(expression(trace, Polarity::Holds, text)?),
        (.., text) => resolve(trace, text.as_deref().unwrap_or_default())?,
    };
    let meant = meant.at_window(args.window)?;
    let predicate = meant.predicate.clone();
    let predicate = if args.lift { predicate.lifted() } else { predicate };
    Ok(Asked { question: Question::Predicate(predicate), meant: Some(meant) })
}

/// What ends without an answer, and why.
fn refusal(args: &Bisect, trace: &Trace<'_>, question: &Question, report: &Report) -> Option<Failure> {
    match &report.outcome {
        Outcome::Recovers(turns) => {
            let turns: Vec<String> =
                turns.iter().map(|(tick, verdict)| format!("tick {tick} {verdict}")).collect();
            let mut failure = Failure::new("E0504", "refusing to bisect with a predicate that can recover")
                .at("turns", list(&turns, 8).unwrap_or_default())
                .note("a wrong tick would look exactly like a right one");
            let (flag, text) = match (args.holds.first(), &args.predicate) {
                (Some(text), _) => ("--holds", text.as_str()),
                (_, Some(text)) => ("--predicate", text.as_str()),
                _ => return Some(failure),
            };
            failure = failure.help(&["dendrer", "bisect", &args.run, flag, text, "--lift"]);
            let mut test = vec!["dendrer", "predicate", "test", text, &args.run];
            if !args.holds.is_empty() {
                test.push("--holds");
            }
            Some(failure.help(&test))
        }
        Outcome::Uncertain(tick, why) => {
            let failure = Failure::new(
                "E0509",
                format!("the predicate cannot be judged at tick {tick} of {}", trace.name()),
            )
            .at("why", why.clone())
            .note("uncertain is never taken for ok");
            Some(match question.predicate() {
                Some(predicate) => has_hint(failure, trace, predicate),
                None => failure,
            })
        }
        _ => None,
    }
}

fn text(
    args: &Bisect,
    trace: &Trace<'_>,
    asked: &Asked,
    report: &Report,
    (causes, chain): (&Causes, Option<&Chain>),
    out: &mut Out,
) -> Result<()> {
    let question = &asked.question;
    let mut head = head_lines(question, report);
    let meant = asked.meant.as_ref();
    if let Some(line) = meant.and_then(Meant::other_line) {
        head.insert(2, line);
    }
    if let Some(registered) = meant.and_then(|meant| meant.registered.as_ref()) {
        let here = match (&registered.known, &report.outcome) {
            (Known::Recovers(_), Outcome::Recovers(_)) => "",
            (Known::Recovers(_), _) if question.monotone() == Monotone::Unknown => ", and not on this run",
            _ => "",
        };
        head.insert(2, format!("           {}{here}", registration_line(registered)));
    }
    if let Some(standing) = &report.standing {
        let words = standing_words(standing, ended(trace, report.high.0));
        head.push(format!("owed       {words} (at tick {})", report.high.0));
    }
    for line in head {
        out.line(line)?;
    }
    for (tick, said) in evaluations(trace, question, report)?.into_iter().flatten() {
        out.line(format!("evaluated  tick {tick}  {}", evaluation_words(&said)))?;
    }
    probes(report, out)?;
    match &report.outcome {
        Outcome::Onset(tick) => {
            origin(trace, *tick, "exact", out)?;
            if let Question::Divergence(found) = question {
                differences(found, out)?;
            }
            causes.print_contributors(trace, out)?;
            if let Some(chain) = chain {
                for line in chain_lines(&chain_records(trace, chain)?, chain) {
                    let line = out.width().map_or(line.clone(), |width| quote::shorten(&line, width));
                    out.line(line)?;
                }
            }
            causes.print_diagnosis(args, question, out)?;
            if let Some(argv) = suggestion(args, trace, report, causes)? {
                out.line(format!("SUGGESTION  {}", shell(&argv)))?;
            }
        }
        Outcome::Initial if report.low.0 == 0 => {
            out.line("ORIGIN (exact)  tick 0  the initial state of the range is in violation")?;
            out.line("  no transition brought it about: the run began with it")?;
            causes.print_diagnosis(args, question, out)?;
        }
        Outcome::Initial => {
            let tick = report.low.0;
            out.line(match since(args, asked) {
                Some(since) => format!(
                    "IN VIOLATION already at tick {tick}, from tick {since} on part of the contract: no transition under it brought that about"
                ),
                None => format!(
                    "IN VIOLATION already at tick {tick}, where the range begins: the origin is there or before"
                ),
            })?;
            let mut again = vec!["dendrer", "bisect", &args.run];
            for text in &args.holds {
                again.extend(["--holds", text]);
            }
            let named = [
                ("--predicate", &args.predicate),
                ("--anomaly", &args.anomaly),
                ("--policy-flip", &args.policy_flip),
                ("--divergence", &args.divergence),
            ];
            again.extend(named.iter().filter_map(|(flag, text)| Some([*flag, text.as_ref()?])).flatten());
            again.extend(args.lift.then_some("--lift"));
            out.help(&[&again[..], &["--from", "0"]].concat());
        }
        Outcome::Never => out.line(never(question, report))?,
        Outcome::Recovers(turns) => {
            for (tick, verdict) in turns.iter().take(12) {
                let mark = if *verdict == Verdict::Violation {
                    "FAIL"
                } else {
                    "OK     <- recovered: binary search could return a wrong tick"
                };
                out.line(format!("  tick {tick}  {:<9}  {mark}", verdict.to_string()))?;
            }
            if turns.len() > 12 {
                out.line(format!("  ({} more turns)", turns.len() - 12))?;
            }
        }
        Outcome::Uncertain(..) => {}
    }
    if let Some(found) = report.scan {
        let word =
            found.map_or_else(|| "no violation".to_owned(), |tick| format!("first violation at tick {tick}"));
        out.line(format!("scan       {} ticks judged: {word}", thousands(report.high.0 - report.low.0 + 1)))?;
    }
    if let Outcome::Onset(tick) = &report.outcome {
        let run = args.run.split('@').next().unwrap_or(&args.run);
        out.help(&["dendrer", "show", &format!("{run}@{tick}")]);
    }
    Ok(())
}

fn probes(report: &Report, out: &mut Out) -> Result<()> {
    for line in probe_lines(report) {
        let style = if line.contains("  FAIL") { Style::Bad } else { Style::Good };
        let line = if line.starts_with("  ") { out.paint(style, &line) } else { line };
        out.line(line)?;
    }
    Ok(())
}

fn never(question: &Question, report: &Report) -> String {
    if let Question::Divergence(found) = question {
        let other = &found.from;
        return match &found.first {
            Some(pair) if pair.a.is_none() => {
                format!("no divergence: only {other} goes on behind tick {}", report.high.0)
            }
            _ => format!(
                "no divergence: each transition up to tick {} is what {other} has beside it",
                report.high.0
            ),
        };
    }
    if let Question::PolicyFlip(about) = question {
        return match report.allowed {
            Some(tick) => format!(
                "no violation: {about} was allowed at tick {tick}, and never denied or escalated after"
            ),
            None => format!("no violation: {about} was never allowed, so nothing flipped"),
        };
    }
    let why = match question.monotone() {
        _ if report.standing.is_some() => {
            return format!("no violation: nothing was missed up to tick {}", report.high.0);
        }
        Monotone::ByConstruction => "the predicate cannot recover in between",
        Monotone::Lifted | Monotone::Unknown => "every tick that wrote what it reads was checked",
    };
    format!("no violation: tick {} and tick {} are both compliant, and {why}", report.low.0, report.high.0)
}

/// Prints how the transition at the onset differs from the one beside it.
fn differences(found: &Divergence, out: &mut Out) -> Result<()> {
    for line in found.first.iter().flat_map(lines) {
        let what = match &line.sides {
            Some((a, b)) => {
                let width = out.width().map(|width| width / 3);
                format!("{}  {} -> {}", line.place, out.fit(a, width), out.fit(b, width))
            }
            None => format!("{} {}{}", line.type_name, line.place, line.note),
        };
        out.line(format!("  differs from {} ({})  {}", found.from, line.kind, what.trim_end()))?;
    }
    Ok(())
}

/// Prints the transition at the onset: what it said and what it wrote.
fn origin(trace: &Trace<'_>, tick: u64, certainty: &str, out: &mut Out) -> Result<()> {
    let record = trace.record(tick)?;
    let content = record.content();
    let row = dendrer_view::log::row(&record);
    let title = out.paint(Style::Strong, &format!("ORIGIN ({certainty})  tick {tick}  {}", row.type_name));
    out.line(format!("{title}  by {}   hash {}", row.agent, record.id().short()))?;
    let at = |outer: &str, inner: &str| content.get(outer).and_then(|value| value.get(inner));
    if let Some(description) = at("intent", "description") {
        out.line(format!("  intent {}", quote::value(description)))?;
    }
    if let Some(confidence) = at("intent", "confidence").and_then(Value::as_f64) {
        out.line(format!("  confidence {confidence:.3}"))?;
    }
    if let Some(notes) = at("intent", "uncertainty_notes").filter(|notes| **notes != Value::Null) {
        out.line(format!("  uncertainty {}", quote::value(notes)))?;
    }
    for change in origin_changes(trace, tick)? {
        out.print(vec![out.page().change(&change).after("  ")])?;
    }
    Ok(())
}

fn origin_changes(trace: &Trace<'_>, tick: u64) -> Result<Vec<PlaceChange>> {
    let record = trace.record(tick)?;
    Ok(changes(&record, &trace.state(tick - 1)?, &trace.state(tick)?))
}

fn origin_json(trace: &Trace<'_>, tick: u64) -> Result<Value> {
    let record = trace.record(tick)?;
    let row = dendrer_view::log::row(&record).to_json(&record);
    let writes = if tick == 0 { Vec::new() } else { origin_changes(trace, tick)? };
    let mut origin = row.as_object().cloned().unwrap_or_default();
    origin.set("changes", Value::array(writes.iter().map(change_json)));
    Ok(Value::Object(origin))
}
