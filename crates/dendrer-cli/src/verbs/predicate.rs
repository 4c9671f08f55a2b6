//! `dendrer predicate`: names for predicates, and what a predicate says of a run. Also finds what a name means.

use dendrer::Trace;
use dendrer::ask_bisect::is_last;
use dendrer::bisect::Question;
use dendrer::kernel::counters;
use dendrer::kernel::expr::ExprError;
use dendrer::kernel::pack::{Pack, extend};
use dendrer::kernel::predicate::{BUILT_IN, Monotone, Polarity, Predicate, Verdict, Window};
use dendrer::recorder::World;
use dendrer::registry::{self, Known, Registered, Registry, Sample, Unfit};
use dendrer::store::Store;
use dendrer::store::embedded::Embedded;
use dendrer::timeline::{self, Timeline};
use dendrer::wasm::{MODULE_SIZE_MAX, Refused};
use dendrer_object::text::nearest;
use dendrer_object::{Digest, Pointer, Value, json};
use dendrer_view::bisect::{
    candidate_ticks, interval_lines, question_lines, standing_json, standing_words, sum_up, timeline_json,
    word, words,
};
use dendrer_view::predicate::{declared_json, declared_words, entry_json, known_words, registration_line};
use dendrer_view::table::{Align, Table};
use dendrer_view::{count, document, quote, thousands};

use super::pack;
use crate::address::{self, Rev};
use crate::args::{
    Global, PredicateList, PredicateRegister, PredicateRetire, PredicateShow, PredicateTest, PredicateVerb,
    WindowChoice,
};
use crate::failure::{Failure, Result};
use crate::files;
use crate::out::{Out, Style};
use crate::{keys, open};

/// How many turns are printed for people; documents have them all.
const TURNS_SHOWN: usize = 40;

pub(crate) fn run(global: &Global, verb: &PredicateVerb, out: &mut Out) -> Result {
    match verb {
        PredicateVerb::Register(args) => register(global, &named_by_file(args), out),
        PredicateVerb::List(args) => list(global, args, out),
        PredicateVerb::Show(args) => show(global, args, out),
        PredicateVerb::Test(args) => test(global, args, out),
        PredicateVerb::Retire(args) => retire(global, args, out),
    }
}

/// `register MODULE.wasm` is short for the name of the file and `--module` (dendrer paper, appendix C).
fn named_by_file(args: &PredicateRegister) -> PredicateRegister {
    let mut args = args.clone();
    let is_form = [&args.holds, &args.condition, &args.file, &args.module].iter().any(|form| form.is_some());
    if let (false, Some(stem)) = (is_form, args.name.strip_suffix(".wasm")) {
        let name = stem.rsplit(std::path::is_separator).next().unwrap_or(stem).to_owned();
        args.module = Some(std::mem::replace(&mut args.name, name));
    }
    args
}

/// A predicate that was asked for, and what its registration says of it.
pub(super) struct Meant {
    pub(super) predicate: Predicate,
    /// The registration that the name resolved to.
    pub(super) registered: Option<Registered>,
    /// The predicate of the run's pack that has the same name and says something else.
    pub(super) other: Option<Digest>,
    /// The tick from which on it is part of the contract, where an extension added it.
    pub(super) since: Option<u64>,
}

impl Meant {
    pub(super) fn plain(predicate: Predicate) -> Meant {
        Meant { predicate, registered: None, other: None, since: None }
    }

    /// Whether it has a name of its own, and so a window of its own.
    fn is_named(&self) -> bool {
        self.registered.is_some() || self.predicate.name() != "expression"
    }

    /// Lets an expression look at the side that is asked for. What has a name has a window, too.
    pub(super) fn at_window(self, choice: Option<WindowChoice>) -> Result<Meant> {
        let Some(asked) = choice.map(window).filter(|asked| *asked != self.predicate.window()) else {
            return Ok(self);
        };
        if self.is_named() {
            let name = self.predicate.name();
            return Err(Failure::new("E0106", format!("--window is for expressions, and {name} has a name"))
                .note("its window is part of what it says; `dendrer predicate register` gives another name to another"));
        }
        Ok(Meant { predicate: self.predicate.clone().at_window(asked), ..self })
    }

    /// Says that the name means something else in the pack of the run.
    pub(super) fn other_line(&self) -> Option<String> {
        let other = self.other?;
        Some(format!(
            "           the pack of this run has another predicate of this name, digest {}",
            other.short()
        ))
    }

    /// As [`Meant::other_line`], for documents.
    pub(super) fn add_other(&self, document: Value) -> Value {
        match (self.other, document) {
            (Some(other), Value::Object(mut members)) => {
                members.set("other_in_pack", Value::from(other));
                Value::Object(members)
            }
            (_, document) => document,
        }
    }
}

/// Finds what a name means, or reads an expression that names the violation: built-in, registered, declared by the
/// pack of the run, expression.
pub(super) fn resolve(trace: &Trace<'_>, text: &str) -> Result<Meant> {
    if let Some(built_in) = Predicate::built_in(text) {
        return Ok(Meant::plain(built_in));
    }
    let registry = Registry::read(trace.store())?;
    let found = registry.newest(text);
    let pack = dendrer::pack::of_run(trace)?;
    if let Some(entry) = found.filter(|entry| entry.retired.is_none()) {
        let (predicate, registered) = (entry.predicate.clone(), Some(entry.clone()));
        let declared = pack.as_ref().and_then(|pack| pack.predicate(text));
        let other = declared.filter(|declared| !declared.means_the_same(&predicate)).map(Predicate::digest);
        return Ok(Meant { predicate, registered, other, since: None });
    }
    if let Some(declared) = pack.as_ref().and_then(|pack| pack.predicate(text)) {
        let since = dendrer::pack::declared_since(trace, declared)?;
        return Ok(Meant { since, ..Meant::plain(declared.clone()) });
    }
    // What an extension added is looked for last, because the state has to be read for it.
    if pack.is_some() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c)) {
        let tip = trace.tip();
        let state = trace.state(tip)?;
        let extended = dendrer::pack::in_force(trace, tip + 1, &state)?;
        if let Some(added) = extended.as_ref().and_then(|pack| pack.predicate(text)) {
            let since = pack.as_ref().and_then(|pack| extend::added(pack.value(), &state, tip + 1, text));
            return Ok(Meant { since, ..Meant::plain(added.clone()) });
        }
    }
    if registry::is_name(text) || text.starts_with("kernel.") {
        let failure = match found {
            Some(_) => Failure::new("E0511", format!("{text} was retired"))
                .note("registering it again takes the name up again"),
            None => unknown(text, &registry, pack.as_ref()),
        };
        return Err(hidden(&registry, failure));
    }
    Ok(Meant::plain(expression(trace, Polarity::Condition, text)?))
}

/// Reads an expression that is asked of a run. What stands for itself is the same predicate on every run; any other may
/// use the constants and definitions of the run's pack. Either is held against the fields that the pack declares.
pub(super) fn expression(trace: &Trace<'_>, polarity: Polarity, text: &str) -> Result<Predicate> {
    Ok(under(dendrer::pack::of_run(trace)?.as_ref(), polarity, text)?)
}

fn under(pack: Option<&Pack>, polarity: Polarity, text: &str) -> std::result::Result<Predicate, ExprError> {
    let plain = match polarity {
        Polarity::Holds => Predicate::holds("expression", text),
        Polarity::Condition => Predicate::condition("expression", text),
    };
    match (plain, pack) {
        (Err(_), Some(pack)) => pack.expression(polarity, text),
        (Ok(plain), Some(pack)) => pack.check_expression(text).map(|()| plain),
        (plain, None) => plain,
    }
}

fn unknown(text: &str, registry: &Registry, pack: Option<&Pack>) -> Failure {
    let declared = pack.into_iter().flat_map(Pack::declared).map(|one| one.predicate.name());
    let live = registry.entries.iter().filter(|entry| entry.retired.is_none());
    let known: Vec<&str> =
        BUILT_IN.iter().copied().chain(live.map(|entry| entry.predicate.name())).chain(declared).collect();
    let failure = Failure::new("E0511", format!("there is no predicate {text}"));
    match nearest(text, known.iter().copied()) {
        Some(near) => failure.note(format!("did you mean {near}?")),
        None => failure.note(format!("there are {}, or write an expression over state", known.join(", "))),
    }
    .help(&["dendrer", "predicate", "list"])
}

/// Says that a registration cannot be read, where it might be the one that is missing.
fn hidden(registry: &Registry, failure: Failure) -> Failure {
    match registry.unreadable.len() as u64 {
        0 => failure,
        n => failure.note(format!(
            "{} cannot be read any more, and may be of this name",
            count(n, "registration", "registrations")
        )),
    }
}

/// Reads the predicates of a file that are asked of a run: a pack, or a list of them as JSON, which may use the names of
/// the run's pack.
pub(super) fn of_file(path: &str, trace: &Trace<'_>) -> Result<Vec<Predicate>> {
    let text = pack::read_file(path)?;
    let value = json::parse_door(super::behind_mark(&text)).ok();
    let listed =
        value.as_ref().and_then(|value| value.get("predicates")?.as_array().map(|list| (value, list)));
    let Some((value, listed)) = listed else {
        let source = pack::load(path)?;
        return Ok(source.pack.declared().map(|declared| declared.predicate.clone()).collect());
    };
    if let Some((other, _)) =
        value.as_object().into_iter().flat_map(|o| o.iter()).find(|(n, _)| &***n != "predicates")
    {
        return Err(unfit(path, format!("a list of predicates has no \"{other}\" beside it")));
    }
    let bound = dendrer::pack::of_run(trace)?;
    let make = |polarity, text: &str| under(bound.as_ref(), polarity, text);
    let mut found: Vec<Predicate> = Vec::with_capacity(listed.len());
    for (at, item) in listed.iter().enumerate() {
        let place = |why: String| unfit(path, format!("predicates[{at}]: {why}"));
        let predicate = match registry::read_value(item, "", "v1", &make) {
            Ok(predicate) => predicate,
            Err(Unfit::Shape(why)) => return Err(place(why)),
            Err(Unfit::Expr(error)) => {
                return Err(Failure::from(error).at("where", format!("{path}, predicates[{at}]")));
            }
        };
        if predicate.name().is_empty() {
            return Err(place("a predicate has a name".to_owned()));
        }
        if found.iter().any(|other| other.name() == predicate.name()) {
            return Err(place(format!("there is another predicate named {}", predicate.name())));
        }
        found.push(predicate);
    }
    Ok(found)
}

fn unfit(path: &str, why: String) -> Failure {
    Failure::new("E0512", format!("{path} does not describe predicates")).at("why", why)
}

/// Turns the flag into what the kernel calls it.
pub(super) fn window(choice: WindowChoice) -> Window {
    match choice {
        WindowChoice::After => Window::After,
        WindowChoice::Before => Window::Before,
    }
}

fn test(global: &Global, args: &PredicateTest, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.run)?;
    let source = open::sound(global, &rev, out)?;
    let rev = rev.settle(source.store())?;
    let (progress, counted) = source.watched(global, "predicate");
    let trace = source.trace_through(&counted, &rev)?;
    let meant = match args.holds {
        true => Meant::plain(expression(&trace, Polarity::Holds, &args.predicate)?),
        false => resolve(&trace, &args.predicate)?,
    };
    let meant = meant.at_window(args.window)?;
    let predicate = meant.predicate.clone();
    let tip = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    let at = args.at.as_ref().map(|pos| pos.tick(&trace)).transpose()?;
    let from = args.from.as_ref().map_or(Ok(0), |pos| pos.tick(&trace))?;
    let (from, to) = at.map_or((from, tip), |at| (at, at));
    address::in_order(from, to)?;
    let line = timeline::judge(&trace, &predicate, from, to)?;
    drop(progress);
    let question = Question::Predicate(predicate);
    if !out.is_text() {
        let document = timeline_json(trace.name().as_str(), &question, &line, at);
        let mut document = document.as_object().cloned().unwrap_or_default();
        document.set("obligation", standing_json(line.standing.as_ref(), is_last(&trace, line.to)));
        if args.ticks {
            document.set("items", Value::array(tick_rows(&trace, &line)?.iter().map(TickRow::to_json)));
        }
        out.document(&meant.add_other(Value::Object(document)))?;
    } else {
        let monotone = match question.monotone() {
            Monotone::ByConstruction => "by construction",
            Monotone::Lifted => "lifted; shown as it is",
            Monotone::Unknown => "seen below",
        };
        for head in question_lines(&question, monotone) {
            out.line(head)?;
        }
        if let Some(registered) = &meant.registered {
            out.line(format!("           {}", registration_line(registered)))?;
        }
        if let Some(other) = meant.other_line() {
            out.line(other)?;
        }
        if args.ticks {
            tick_table(&tick_rows(&trace, &line)?, out)?;
        } else {
            for (text, interval) in interval_lines(&line).into_iter().zip(line.intervals()) {
                let style = if interval.verdict == Verdict::Ok { Style::Good } else { Style::Bad };
                let text = out.paint(style, &text);
                out.line(text)?;
            }
        }
        if at.is_none() {
            out.line(format!(
                "{}   ({} of {} judged)",
                sum_up(&line),
                candidate_ticks(line.judged + 1),
                count(to - from + 1, "tick", "ticks")
            ))?;
        }
        if let Some(standing) = &line.standing {
            out.line(format!("at tick {}  {}", line.to, standing_words(standing, is_last(&trace, line.to))))?;
        }
        let judged = |(_, verdict): &(u64, Verdict)| !matches!(verdict, Verdict::Uncertain(_));
        if !line.turns.iter().any(judged)
            && let Some(meant) = question.predicate().and_then(|predicate| meant_field(&trace, predicate))
        {
            out.say(format!("note: did you mean {}?", quote::escape(&meant)));
        }
    }
    Ok(match at.map(|at| line.at(at)) {
        None if line.may_hide_onset() => 6,
        None | Some(Verdict::Ok) => 0,
        Some(Verdict::Violation) => 1,
        Some(Verdict::Uncertain(_)) => 6,
    })
}

/// A row of the table of the dendrer paper, 4.8: `tick | transition_type | predicate | notes`.
struct TickRow {
    tick: u64,
    type_name: String,
    verdict: Verdict,
    notes: String,
}

impl TickRow {
    fn to_json(&self) -> Value {
        Value::record([
            ("tick", Value::from(self.tick)),
            ("transition_type", Value::from(self.type_name.as_str())),
            ("predicate", Value::from(word(&self.verdict))),
            ("notes", Value::from(self.notes.as_str())),
        ])
    }
}

fn tick_rows(trace: &Trace<'_>, line: &Timeline) -> Result<Vec<TickRow>> {
    let row = |tick| {
        let row = dendrer_view::log::row(&trace.record(tick)?);
        Ok(TickRow { tick, type_name: row.type_name, verdict: line.at(tick).clone(), notes: row.summary })
    };
    (line.from..=line.to).map(row).collect()
}

fn tick_table(rows: &[TickRow], out: &mut Out) -> Result<()> {
    let left = Align::Left;
    let columns = [("tick", Align::Right), ("transition_type", left), ("predicate", left), ("notes", left)];
    let mut table = Table::new(columns);
    for TickRow { tick, type_name, verdict, notes } in rows {
        let verdict = format!("{:<9}  {}", word(verdict), words(verdict).1);
        table.row(vec![tick.to_string(), quote::escape(type_name), verdict, notes.clone()]);
    }
    table.lines(out.width()).0.into_iter().try_for_each(|line| out.line(line))
}

fn register(global: &Global, args: &PredicateRegister, out: &mut Out) -> Result {
    if !registry::is_name(&args.name) {
        let note = match args.name.split('.').next() {
            Some(taken @ ("kernel" | "state")) => {
                format!("names that begin with `{taken}.` are reserved; begin with another word")
            }
            _ => "write words joined by dots, like acme.tax_compliance_v2".to_owned(),
        };
        return Err(
            Failure::new("E0513", format!("\"{}\" is not a name for a predicate", args.name)).note(note)
        );
    }
    let mut store = open::write_store(global)?;
    open::refuse_trouble(&mut store)?;
    let names = Registry::read(&store)?;
    let predicate = asked_for(args, &names)?;
    let predicate = version(args, &names, predicate)?;
    let (known, uncertain) = prove(args, &store, &predicate, out)?;
    if let Some(failure) = uncertain {
        return Err(failure);
    }
    let predicate = match &known {
        Known::ByConstruction => predicate.known_monotone(true),
        _ => predicate,
    };
    let newest = names.newest(&args.name);
    let same = newest.filter(|entry| {
        entry.retired.is_none()
            && entry.known == known
            && entry.predicate.digest() == predicate.digest()
            && entry.predicate.version() == predicate.version()
    });
    let (entry, changed) = match same {
        Some(entry) => (entry.clone(), false),
        None => {
            let record = registry::register(&mut store, &predicate, &known, &mut World::default())?;
            let (id, ts) = (record.id(), record.header().ts);
            (Registered { predicate, known, id, ts, retired: None }, true)
        }
    };
    close(global, store, changed)?;
    let rejected = matches!(entry.known, Known::Recovers(_));
    if !out.is_text() {
        out.document(&entry_document(&entry, changed))?;
        return Ok(u8::from(rejected));
    }
    if rejected {
        let word = out.paint(Style::Bad, "REJECTED for bisect");
        out.line(format!("{word}   (kept for monitoring and diff)   record {}", entry.id.short()))?;
        let mut failure = Failure::new("E0503", format!("{} is not prefix-monotone", args.name))
            .note("bisect refuses it on every run where it recovers; predicate test and monitoring take it as it is")
            .help(&["dendrer", "predicate", "register", &args.name, "--lift", "monotone"])
            .help(&[
                "dendrer",
                "bisect",
                args.sample_trace.first().map_or("@", String::as_str),
                "--predicate",
                "kernel.anomaly_free",
            ]);
        failure.changed = changed;
        return Err(failure);
    }
    let word = if changed { "registered" } else { "was registered already:" };
    let word = out.paint(Style::Good, word);
    out.line(format!(
        "{word} {} {}",
        quote::escape(entry.predicate.name()),
        quote::escape(entry.predicate.version())
    ))?;
    out.line(format!("  {}", quote::escape(&entry.predicate.words())))?;
    out.line(format!(
        "  pure: by construction   monotone: {}",
        known_words(&entry.known, entry.predicate.monotone())
    ))?;
    out.line(format!("  digest {}   record {}", entry.predicate.digest().short(), entry.id.short()))?;
    Ok(0)
}

/// Signs what was added, where the key is here, and closes.
fn close(global: &Global, store: Embedded, changed: bool) -> Result<()> {
    if !changed {
        return Ok(Store::close(Box::new(store))?);
    }
    let key = keys::of(global.key.as_deref(), &store)?;
    keys::close(store, key.as_deref())
}

/// Makes the predicate that the flags describe, or takes up the newest one of the name.
fn asked_for(args: &PredicateRegister, names: &Registry) -> Result<Predicate> {
    let made = match (&args.holds, &args.condition, &args.file) {
        _ if args.module.is_some() => {
            let path = args.module.as_deref().expect("it is some");
            let refused = |refused: Refused| {
                Failure::new(Refused::CODE, format!("{path} is not a module that is run here"))
                    .at("why", refused.to_string())
                    .note("nothing of it was run, and nothing was changed")
            };
            dendrer::wasm::predicate(&args.name, &files::read(path, MODULE_SIZE_MAX)?).map_err(refused)?
        }
        (Some(text), ..) => Predicate::holds(&args.name, text)?,
        (_, Some(text), _) => Predicate::condition(&args.name, text)?,
        (.., Some(path)) => {
            let text = pack::read_file(path)?;
            let value = json::parse_door(super::behind_mark(&text))
                .map_err(|error| unfit(path, error.to_string()))?;
            match registry::from_value(&value, &args.name, "") {
                Ok(predicate) if predicate.name() == args.name => predicate,
                Ok(predicate) => {
                    return Err(unfit(path, format!("it is named {}, not {}", predicate.name(), args.name)));
                }
                Err(Unfit::Shape(why)) => return Err(unfit(path, why)),
                Err(Unfit::Expr(error)) => return Err(Failure::from(error).at("where", path)),
            }
        }
        _ => match names.newest(&args.name) {
            Some(entry) => entry.predicate.clone().named(&args.name, ""),
            None => {
                let failure = Failure::new("E0511", format!("there is no predicate {}", args.name))
                    .note("say what it is with --holds, --condition or --file");
                return Err(hidden(names, failure));
            }
        },
    };
    let made = args.window.map_or(made.clone(), |choice| made.at_window(window(choice)));
    Ok(if args.lift.is_some() { made.lifted() } else { made })
}

/// Gives it a version: the one that is asked for, the one it has already, or the next.
fn version(args: &PredicateRegister, names: &Registry, predicate: Predicate) -> Result<Predicate> {
    let said =
        args.version.clone().or_else(|| Some(predicate.version().to_owned()).filter(|v| !v.is_empty()));
    // An expression given on the command line has no version of its own.
    let said = if args.file.is_some() || args.version.is_some() { said } else { None };
    let known =
        names.versions(&args.name).filter(|entry| entry.predicate.digest() == predicate.digest()).last();
    let version = match (said, known) {
        (Some(said), _) => said,
        (None, Some(known)) => known.predicate.version().to_owned(),
        (None, None) => names.next_version(&args.name),
    };
    let taken = names
        .versions(&args.name)
        .find(|entry| entry.predicate.version() == version && entry.predicate.digest() != predicate.digest());
    if let Some(taken) = taken {
        return Err(Failure::new("E0514", format!("{} {version} is another predicate", args.name))
            .at("there", taken.predicate.words())
            .at("given", predicate.words())
            .note("nothing was changed"));
    }
    Ok(predicate.named(&args.name, &version))
}

/// Finds out how it is known that the predicate does not recover, and says what it saw. The second part is why it
/// could not be judged.
fn prove(
    args: &PredicateRegister,
    store: &dyn Store,
    predicate: &Predicate,
    out: &mut Out,
) -> Result<(Known, Option<Failure>)> {
    let by_construction = predicate.cannot_recover();
    if args.verify_monotone && args.sample_trace.is_empty() && !by_construction {
        return Err(Failure::new("E0106", "what is asked alone does not show that it cannot recover")
            .note("name runs to verify it on with --sample-trace")
            .note("nothing was changed"));
    }
    let mut samples = Vec::new();
    for text in &args.sample_trace {
        let run = Rev::parse(text)?.run_in(store, &[])?;
        let trace = Trace::open(store, &run)?;
        if let (Some(expr), Some(pack)) = (predicate.expr(), dendrer::pack::of_run(&trace)?) {
            let checked = pack.check_expression(expr.text());
            checked.map_err(|error| {
                Failure::from(error).note(format!("{run} carries the pack {}", pack.name))
            })?;
        }
        // What goes on record is what the records say.
        let records = Trace::open(store, &run)?.without_snapshots();
        let (sample, line) = Sample::take(&records, predicate)?;
        if out.is_text() {
            sample_lines(predicate, &sample, &line, out)?;
        }
        let uncertain = line.turns.iter().find_map(|(tick, verdict)| match verdict {
            Verdict::Uncertain(why) => Some((*tick, why.clone())),
            _ => None,
        });
        if let Some((tick, why)) = uncertain {
            let failure =
                Failure::new("E0509", format!("{} cannot be judged at tick {tick} of {run}", args.name))
                    .at("why", why)
                    .note("uncertain is never taken for ok; nothing was registered");
            return Ok((Known::Untested, Some(has_hint(failure, &trace, predicate))));
        }
        samples.push(sample);
    }
    let known = match (by_construction, predicate.monotone()) {
        (true, _) => Known::ByConstruction,
        (_, Monotone::Lifted) => Known::Lifted,
        _ => Known::of_samples(samples),
    };
    Ok((known, None))
}

/// Says what a missing field was probably meant to be, or else offers to say what its absence means.
pub(super) fn has_hint(failure: Failure, trace: &Trace<'_>, predicate: &Predicate) -> Failure {
    if predicate.expr().is_none() {
        return failure.note("the module is to say ok or violation of every state, whatever a state has not");
    }
    match (meant_field(trace, predicate), predicate.read_set().first()) {
        (Some(meant), _) => failure.note(format!("did you mean {meant}?")),
        (None, Some(_)) if predicate.progress().is_some() => {
            failure.note("a score is a number from 0 to 1: mend the expression of the progress contract")
        }
        // Any other reason than that something is missing would stand after `has` as well.
        (None, Some(path)) if failure.place.iter().any(|(_, why)| why.ends_with(" is missing")) => {
            // What lies deeper may be missing because what it lies in is. As an expression names it: with one `$`.
            let names: Vec<String> =
                path.tokens().map(|name| name.strip_prefix("$").unwrap_or(&name).to_owned()).collect();
            let has = |count: usize| {
                let place =
                    Pointer::of(std::iter::once("state").chain(names[..count].iter().map(String::as_str)));
                format!("has({})", place.dotted())
            };
            let asked: Vec<String> = (1..=names.len().min(3)).map(has).collect();
            failure.note(format!("say what a missing field means, like: {} && ...", asked.join(" && ")))
        }
        (None, _) => failure,
    }
}

/// Finds what a name was probably meant to be that the state of a run does not have: a counter, or a field that it has
/// at the tip.
fn meant_field(trace: &Trace<'_>, predicate: &Predicate) -> Option<String> {
    let first = |path: &Pointer| path.tokens().next().map(|name| name.into_owned());
    let names: Vec<String> = predicate.read_set().iter().filter_map(first).collect();
    if let Some(name) = names.iter().find(|name| counters::NAMES.contains(&name.as_str())) {
        return Some(format!("state.counters.{name}"));
    }
    // No verdict rests on this: a state that cannot be read any more gives no hint.
    let state = trace.state(trace.tip()).ok()?;
    let fields = state.as_object()?;
    let known = || fields.entries().map(|entry| &*entry.key);
    let mut missing = names.iter().filter(|name| !fields.contains_key(name));
    let near = missing.find_map(|name| nearest(name, known()))?;
    Some(Pointer::of(["state", near]).dotted())
}

fn sample_lines(predicate: &Predicate, sample: &Sample, line: &Timeline, out: &mut Out) -> Result<()> {
    out.line(format!(
        "testing {} on {} ({}, {})",
        quote::escape(predicate.name()),
        sample.run,
        count(sample.ticks, "tick", "ticks"),
        candidate_ticks(line.judged + 1)
    ))?;
    let mut violated = false;
    for (tick, verdict) in sample.turns.iter().take(TURNS_SHOWN) {
        let (_, mark) = words(verdict);
        let recovered = violated && *verdict == Verdict::Ok;
        violated |= *verdict == Verdict::Violation;
        let note = if recovered { "     <- recovered: binary search could return a wrong tick" } else { "" };
        let word = word(verdict);
        let style = if *verdict == Verdict::Ok { Style::Good } else { Style::Bad };
        let text = out.paint(style, &format!("  tick {tick}  {word:<9}  {mark}{note}"));
        out.line(text)?;
    }
    if sample.turns.len() > TURNS_SHOWN {
        out.line(format!("  ({} more turns)", thousands((sample.turns.len() - TURNS_SHOWN) as u64)))?;
    }
    match sample.turns.len() {
        0 => out.line(format!("  {}", sum_up(line))),
        1 => out.line("  does not recover"),
        _ => Ok(()),
    }
}

fn entry_document(entry: &Registered, changed: bool) -> Value {
    let mut members = entry_json(entry).as_object().cloned().unwrap_or_default();
    members.set("changed", Value::from(changed));
    members.set("schema", Value::from("dendrer.predicate/1"));
    Value::Object(members)
}

/// Reads the names of a bundle, or else of the store.
fn registry_of(global: &Global, bundle: Option<&str>) -> Result<Registry> {
    Ok(match bundle {
        Some(path) => Registry::read(&open::open_bundle(Some(global), path)?.store)?,
        None => Registry::read(&*open::read_store(global)?)?,
    })
}

fn list(global: &Global, args: &PredicateList, out: &mut Out) -> Result {
    let registry = registry_of(global, args.file.as_deref())?;
    let is_newest = |entry: &Registered| {
        registry.newest(entry.predicate.name()).is_some_and(|newest| newest.id == entry.id)
    };
    let shown: Vec<&Registered> = registry
        .entries
        .iter()
        .filter(|entry| args.all || (entry.retired.is_none() && is_newest(entry)))
        .collect();
    let declared = declared_by(global, args.file.as_deref(), args.run.as_deref(), out)?;
    let declared: Vec<&Predicate> = declared.iter().collect();
    listing(&registry, &shown, &declared, args.all, out)
}

/// Returns what the pack of a run declares, each under its full name.
fn declared_by(
    global: &Global,
    bundle: Option<&str>,
    run: Option<&str>,
    out: &mut Out,
) -> Result<Vec<Predicate>> {
    let Some(run) = run else { return Ok(Vec::new()) };
    let named = bundle.map_or_else(|| run.to_owned(), |bundle| format!("{bundle}#{run}"));
    let rev = Rev::parse(&named)?;
    let source = open::sound(global, &rev, out)?;
    let rev = rev.settle(source.store())?;
    let trace = source.trace(&rev)?;
    // With what extensions have added up to the end.
    let tip = trace.tip();
    let Some(pack) = dendrer::pack::in_force(&trace, tip + 1, &trace.state(tip)?)? else {
        return Err(Failure::new("E0511", format!("{} carries no pack", trace.name()))
            .note("what a pack declares is known of the runs that were begun with it"));
    };
    // What the pack itself declares is known by the digest of that, as everywhere it is asked.
    let own = dendrer::pack::of_run(&trace)?;
    let full = |one: &Predicate| {
        let one = own.as_ref().and_then(|own| own.predicate(one.name())).unwrap_or(one);
        one.clone().named(&format!("{}/{}", pack.name, one.name()), one.version())
    };
    Ok(pack.declared().map(|one| full(&one.predicate)).collect())
}

fn listing(
    registry: &Registry,
    shown: &[&Registered],
    declared: &[&Predicate],
    all: bool,
    out: &mut Out,
) -> Result {
    let unreadable = Value::array(registry.unreadable.iter().map(|id| Value::from(*id)));
    if !out.is_text() {
        let declared = declared.iter().map(|predicate| declared_json(predicate));
        let items = Value::array(shown.iter().map(|entry| entry_json(entry)).chain(declared));
        out.document(&document("predicates", [("items", items), ("unreadable", unreadable)]))?;
        return Ok(0);
    }
    let left = Align::Left;
    let mut table = Table::new([
        ("name", left),
        ("version", left),
        ("digest", left),
        ("monotone", left),
        ("predicate", left),
    ]);
    for entry in shown {
        let retired = if entry.retired.is_some() { "   (retired)" } else { "" };
        table.row(vec![
            quote::escape(entry.predicate.name()),
            quote::escape(entry.predicate.version()),
            entry.predicate.digest().short(),
            known_words(&entry.known, entry.predicate.monotone()),
            format!("{}{retired}", quote::escape(&entry.predicate.words())),
        ]);
    }
    for predicate in declared {
        table.row(vec![
            quote::escape(predicate.name()),
            quote::escape(predicate.version()),
            predicate.digest().short(),
            declared_words(predicate.monotone()).to_owned(),
            quote::escape(&predicate.words()),
        ]);
    }
    if !shown.is_empty() || !declared.is_empty() {
        for line in table.lines(out.width()).0 {
            out.line(line)?;
        }
    }
    let names = if all { ("registration", "registrations") } else { ("name", "names") };
    let by_pack = match declared.len() as u64 {
        0 => String::new(),
        n => format!(", {} by the pack", thousands(n)),
    };
    out.line(format!(
        "{}{by_pack}, and built in: {}",
        count(shown.len() as u64, names.0, names.1),
        BUILT_IN.join(", ")
    ))?;
    if !registry.unreadable.is_empty() {
        out.line(format!(
            "{} cannot be read any more",
            count(registry.unreadable.len() as u64, "registration", "registrations")
        ))?;
    }
    Ok(0)
}

fn show(global: &Global, args: &PredicateShow, out: &mut Out) -> Result {
    let registry = registry_of(global, args.file.as_deref())?;
    let versions: Vec<&Registered> = registry.versions(&args.name).collect();
    let declared = declared_by(global, args.file.as_deref(), args.run.as_deref(), out)?;
    let named = |one: &&Predicate| {
        one.name() == args.name || one.name().rsplit_once('/').is_some_and(|(_, name)| name == args.name)
    };
    let declared: Vec<&Predicate> = declared.iter().filter(named).collect();
    if versions.is_empty() && declared.is_empty() {
        return match Predicate::built_in(&args.name) {
            Some(built_in) if out.is_text() => {
                for line in question_lines(&Question::Predicate(built_in), "by construction") {
                    out.line(line)?;
                }
                out.line("built in: it is in every store, and no record says so")?;
                Ok(0)
            }
            Some(built_in) => {
                let items = Value::array([declared_json(&built_in)]);
                out.document(&document("predicates", [("items", items), ("unreadable", Value::array([]))]))?;
                Ok(0)
            }
            None => Err(hidden(&registry, unknown(&args.name, &registry, None))),
        };
    }
    listing(&registry, &versions, &declared, true, out)
}

fn retire(global: &Global, args: &PredicateRetire, out: &mut Out) -> Result {
    let mut store = open::write_store(global)?;
    open::refuse_trouble(&mut store)?;
    if Predicate::built_in(&args.name).is_some() {
        return Err(Failure::new("E0513", format!("{} is built in and cannot be retired", args.name))
            .note("it is in every store, and no record says so; nothing was changed"));
    }
    let registry = Registry::read(&store)?;
    let Some(entry) = registry.newest(&args.name) else {
        return Err(hidden(&registry, unknown(&args.name, &registry, None)).note("nothing was changed"));
    };
    let mut entry = entry.clone();
    let changed = entry.retired.is_none();
    if changed {
        entry.retired = Some(registry::retire(&mut store, &args.name, &mut World::default())?.id());
    }
    close(global, store, changed)?;
    if out.is_text() {
        let word = if changed { "retired" } else { "was retired already:" };
        out.line(format!("{word} {}   what was registered stays on record", quote::escape(&args.name)))?;
    } else {
        out.document(&entry_document(&entry, changed))?;
    }
    Ok(0)
}
