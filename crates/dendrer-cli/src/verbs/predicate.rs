//! `dendrer predicate`: names for predicates, and the verdicts of a predicate on a run. Also resolves names.

use dendrer::Trace;
use dendrer::ask_predicates::{PredicateTested, PredicatesAnswer, near_field};
use dendrer::kernel::expr::ExprError;
use dendrer::kernel::pack::{Pack, extend};
use dendrer::kernel::predicate::{BUILT_IN, Monotone, Polarity, Predicate, Verdict, Window};
use dendrer::recorder::World;
use dendrer::registry::{self, Known, Registered, Registry, Sample, Unfit};
use dendrer::store::Store;
use dendrer::store::embedded::Embedded;
use dendrer::wasm::{MODULE_SIZE_MAX, Refused};
use dendrer_object::text::nearest;
use dendrer_object::{Digest, Pointer, json};
use dendrer_view::count;
use dendrer_view::predicate::{
    BuiltInAnswer, PredicateTestAnswer, RegistrationAnswer, RetirementAnswer, TickRow, sample_lines,
};

use super::pack;
use crate::address::{self, Rev};
use crate::args::{Global, PredicateVerb, WindowChoice};
use crate::failure::{Failure, Result};
use crate::files;
use crate::out::Out;
use crate::{keys, open};

pub(crate) fn run(global: &Global, verb: &PredicateVerb, out: &mut Out) -> Result {
    match verb {
        PredicateVerb::Register(args) => {
            let forms = [&args.holds, &args.condition, &args.file, &args.module];
            let has_form = forms.iter().any(|form| form.is_some());
            // `register MODULE.wasm` is short for the name of the file and `--module` (dendrer paper, appendix C).
            let stem = args.name.strip_suffix(".wasm").filter(|_| !has_form);
            let named = stem.and_then(|stem| stem.rsplit(std::path::is_separator).next());
            let wanted = Wanted {
                name: named.unwrap_or(&args.name),
                holds: args.holds.as_deref(),
                condition: args.condition.as_deref(),
                file: args.file.as_deref(),
                module: if named.is_some() { Some(&args.name) } else { args.module.as_deref() },
                window: args.window,
                version: args.version.as_deref(),
                lifts: args.lift.is_some(),
                must_be_verified: args.verify_monotone,
                samples: &args.sample_trace,
            };
            register(global, &wanted, out)
        }
        PredicateVerb::List(args) => {
            let place = (args.file.as_deref(), args.run.as_deref());
            list(global, place, args.all, out)
        }
        PredicateVerb::Show(args) => {
            show(global, (args.file.as_deref(), args.run.as_deref()), &args.name, out)
        }
        PredicateVerb::Test(args) => {
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
            let tip = args.to.as_ref().or(rev.pos.as_ref());
            let tip = tip.map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
            let at = args.at.as_ref().map(|pos| pos.tick(&trace)).transpose()?;
            let from = args.from.as_ref().map_or(Ok(0), |pos| pos.tick(&trace))?;
            let (from, to) = at.map_or((from, tip), |at| (at, at));
            address::in_order(from, to)?;
            let mut tested = PredicateTested::of(&trace, meant.predicate, from, to, at)?;
            (tested.registered, tested.other_in_pack) = (meant.registered, meant.other);
            drop(progress);
            let rows = args.ticks.then(|| tick_rows(&trace, &tested)).transpose()?;
            out.answer(&PredicateTestAnswer { tested: &tested, rows: rows.as_deref() })
        }
        PredicateVerb::Retire(args) => retire(global, &args.name, out),
    }
}

/// A predicate that is to be registered.
struct Wanted<'a> {
    name: &'a str,
    holds: Option<&'a str>,
    condition: Option<&'a str>,
    file: Option<&'a str>,
    module: Option<&'a str>,
    window: Option<WindowChoice>,
    version: Option<&'a str>,
    lifts: bool,
    /// Whether it is refused unless it is shown that it cannot recover.
    must_be_verified: bool,
    /// The runs that it is verified on.
    samples: &'a [String],
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

fn tick_rows(trace: &Trace<'_>, tested: &PredicateTested) -> Result<Vec<TickRow>> {
    let line = &tested.line;
    let row = |tick| Ok(TickRow::of(tick, &trace.record(tick)?, line.at(tick)));
    (line.from..=line.to).map(row).collect()
}

fn register(global: &Global, wanted: &Wanted<'_>, out: &mut Out) -> Result {
    let name = wanted.name;
    if !registry::is_name(name) {
        let note = match name.split('.').next() {
            Some(taken @ ("kernel" | "state")) => {
                format!("names that begin with `{taken}.` are reserved; begin with another word")
            }
            _ => "write words joined by dots, like acme.tax_compliance_v2".to_owned(),
        };
        return Err(Failure::new("E0513", format!("\"{name}\" is not a name for a predicate")).note(note));
    }
    let mut store = open::write_store(global)?;
    open::refuse_trouble(&mut store)?;
    let names = Registry::read(&store)?;
    let predicate = asked_for(wanted, &names)?;
    let predicate = version(wanted, &names, predicate)?;
    let (known, uncertain) = prove(wanted, &store, &predicate, out)?;
    if let Some(failure) = uncertain {
        return Err(failure);
    }
    let predicate = match &known {
        Known::ByConstruction => predicate.known_monotone(true),
        _ => predicate,
    };
    let newest = names.newest(name);
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
    let answer = RegistrationAnswer { entry, changed };
    let failure = answer.is_rejected().then(|| {
        let sample = wanted.samples.first().map_or("@", String::as_str);
        let failure = Failure::new("E0503", format!("{name} is not prefix-monotone"))
            .note("bisect refuses it on every run where it recovers; predicate test and monitoring take it as it is")
            .help(&["dendrer", "predicate", "register", name, "--lift", "monotone"])
            .help(&["dendrer", "bisect", sample, "--predicate", "kernel.anomaly_free"]);
        Failure { changed, ..failure }
    });
    out.answer_or(&answer, failure)
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
fn asked_for(wanted: &Wanted<'_>, names: &Registry) -> Result<Predicate> {
    let made = match (wanted.holds, wanted.condition, wanted.file) {
        _ if let Some(path) = wanted.module => {
            let refused = |refused: Refused| {
                Failure::new(Refused::CODE, format!("{path} is not a module that is run here"))
                    .at("why", refused.to_string())
                    .note("nothing of it was run, and nothing was changed")
            };
            dendrer::wasm::predicate(wanted.name, &files::read(path, MODULE_SIZE_MAX)?).map_err(refused)?
        }
        (Some(text), ..) => Predicate::holds(wanted.name, text)?,
        (_, Some(text), _) => Predicate::condition(wanted.name, text)?,
        (.., Some(path)) => {
            let text = pack::read_file(path)?;
            let value = json::parse_door(super::behind_mark(&text))
                .map_err(|error| unfit(path, error.to_string()))?;
            match registry::from_value(&value, wanted.name, "") {
                Ok(predicate) if predicate.name() == wanted.name => predicate,
                Ok(predicate) => {
                    return Err(unfit(
                        path,
                        format!("it is named {}, not {}", predicate.name(), wanted.name),
                    ));
                }
                Err(Unfit::Shape(why)) => return Err(unfit(path, why)),
                Err(Unfit::Expr(error)) => return Err(Failure::from(error).at("where", path)),
            }
        }
        _ => match names.newest(wanted.name) {
            Some(entry) => entry.predicate.clone().named(wanted.name, ""),
            None => {
                let failure = Failure::new("E0511", format!("there is no predicate {}", wanted.name))
                    .note("say what it is with --holds, --condition or --file");
                return Err(hidden(names, failure));
            }
        },
    };
    let made = wanted.window.map_or(made.clone(), |choice| made.at_window(window(choice)));
    Ok(if wanted.lifts { made.lifted() } else { made })
}

/// Gives it a version: the one that is asked for, the one it has already, or the next.
fn version(wanted: &Wanted<'_>, names: &Registry, predicate: Predicate) -> Result<Predicate> {
    let said = wanted
        .version
        .map(str::to_owned)
        .or_else(|| Some(predicate.version().to_owned()).filter(|v| !v.is_empty()));
    // An expression given on the command line has no version of its own.
    let said = if wanted.file.is_some() || wanted.version.is_some() { said } else { None };
    let known =
        names.versions(wanted.name).filter(|entry| entry.predicate.digest() == predicate.digest()).last();
    let version = match (said, known) {
        (Some(said), _) => said,
        (None, Some(known)) => known.predicate.version().to_owned(),
        (None, None) => names.next_version(wanted.name),
    };
    let taken = names
        .versions(wanted.name)
        .find(|entry| entry.predicate.version() == version && entry.predicate.digest() != predicate.digest());
    if let Some(taken) = taken {
        return Err(Failure::new("E0514", format!("{} {version} is another predicate", wanted.name))
            .at("there", taken.predicate.words())
            .at("given", predicate.words())
            .note("nothing was changed"));
    }
    Ok(predicate.named(wanted.name, &version))
}

/// Finds out how it is known that the predicate does not recover, and says what it saw. The second part is why it
/// could not be judged.
fn prove(
    wanted: &Wanted<'_>,
    store: &dyn Store,
    predicate: &Predicate,
    out: &mut Out,
) -> Result<(Known, Option<Failure>)> {
    let by_construction = predicate.cannot_recover();
    if wanted.must_be_verified && wanted.samples.is_empty() && !by_construction {
        return Err(Failure::new("E0106", "what is asked alone does not show that it cannot recover")
            .note("name runs to verify it on with --sample-trace")
            .note("nothing was changed"));
    }
    let mut samples = Vec::new();
    for text in wanted.samples {
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
            out.print(sample_lines(predicate, &sample, &line))?;
        }
        let uncertain = line.turns.iter().find_map(|(tick, verdict)| match verdict {
            Verdict::Uncertain(why) => Some((*tick, why.clone())),
            _ => None,
        });
        if let Some((tick, why)) = uncertain {
            let failure =
                Failure::new("E0509", format!("{} cannot be judged at tick {tick} of {run}", wanted.name))
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
    match (near_field(trace, predicate), predicate.read_set().first()) {
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

/// Reads the names of a bundle, or else of the store.
fn registry_of(global: &Global, bundle: Option<&str>) -> Result<Registry> {
    Ok(match bundle {
        Some(path) => Registry::read(&open::open_bundle(Some(global), path)?.store)?,
        None => Registry::read(&*open::read_store(global)?)?,
    })
}

fn list(global: &Global, (bundle, run): (Option<&str>, Option<&str>), all: bool, out: &mut Out) -> Result {
    let registry = registry_of(global, bundle)?;
    let declared = declared_by(global, bundle, run, out)?;
    out.answer(&PredicatesAnswer::of(registry, declared, all))
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

fn show(global: &Global, (bundle, run): (Option<&str>, Option<&str>), name: &str, out: &mut Out) -> Result {
    let registry = registry_of(global, bundle)?;
    let declared = declared_by(global, bundle, run, out)?;
    match PredicatesAnswer::named(&registry, declared, name) {
        Some(answer) => out.answer(&answer),
        None => match Predicate::built_in(name) {
            Some(built_in) => out.answer(&BuiltInAnswer(built_in)),
            None => Err(hidden(&registry, unknown(name, &registry, None))),
        },
    }
}

fn retire(global: &Global, name: &str, out: &mut Out) -> Result {
    let mut store = open::write_store(global)?;
    open::refuse_trouble(&mut store)?;
    if Predicate::built_in(name).is_some() {
        return Err(Failure::new("E0513", format!("{name} is built in and cannot be retired"))
            .note("it is in every store, and no record says so; nothing was changed"));
    }
    let registry = Registry::read(&store)?;
    let Some(entry) = registry.newest(name) else {
        return Err(hidden(&registry, unknown(name, &registry, None)).note("nothing was changed"));
    };
    let mut entry = entry.clone();
    let changed = entry.retired.is_none();
    if changed {
        entry.retired = Some(registry::retire(&mut store, name, &mut World::default())?.id());
    }
    close(global, store, changed)?;
    out.answer(&RetirementAnswer { entry, changed })
}
