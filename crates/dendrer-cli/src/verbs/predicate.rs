//! `dendrer predicate`: names for predicates, and the verdicts of a predicate on a run.

use std::sync::Arc;

use dendrer::Trace;
use dendrer::address::Address;
use dendrer::ask::named::{unfit, unknown, unknown_predicate, with_hint, with_unreadable};
use dendrer::ask::predicates::question::{
    PredicateListQuestion, PredicateShowQuestion, PredicateTestQuestion,
};
use dendrer::kernel::predicate::{Predicate, Verdict, Window};
use dendrer::registry::{self, RegisterError, Registered, Registration, Registry, Sample, Unfit};
use dendrer::repo::Repo;
use dendrer::store::Store;
use dendrer::trace::ReadHandle as _;
use dendrer::wasm::{MODULE_SIZE_MAX, ModuleRefused};
use dendrer_object::Code;
use dendrer_object::json;
use dendrer_object::text::behind_mark;
use dendrer_view::certainty::reasons_list;
use dendrer_view::predicate::{
    PredicateTestAnswer, RegistrationAnswer, RetirementAnswer, TickRow, sample_lines,
};

pub(crate) use self::args::PredicateVerb;
use crate::context::{self, desk, packs};
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::{Out, files};

mod args;

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
            let (file, run) = (args.file.clone(), args.run.clone());
            desk::answer(global, &PredicateListQuestion { file, all: args.all, run }, out)
        }
        PredicateVerb::Show(args) => {
            let (file, run) = (args.file.clone(), args.run.clone());
            desk::answer(global, &PredicateShowQuestion { name: args.name.clone(), file, run }, out)
        }
        PredicateVerb::Test(args) => {
            let question = PredicateTestQuestion {
                predicate: args.predicate.clone(),
                run: args.run.clone(),
                holds: args.holds,
                window: args.window,
                at: args.at.clone(),
                ticks: args.ticks,
                from: args.from.clone(),
                to: args.to.clone(),
            };
            let reply = desk::ask(global, &question, out)?;
            let rows = TickRow::listed(&reply)?;
            out.answer(&PredicateTestAnswer { tested: &reply.tested, rows: rows.as_deref() })
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
    window: Option<Window>,
    version: Option<&'a str>,
    lifts: bool,
    /// Whether it is refused unless it is shown that it cannot recover.
    must_be_verified: bool,
    /// The runs that it is verified on.
    samples: &'a [String],
}

fn register(global: &Global, wanted: &Wanted<'_>, out: &mut Out) -> Result {
    let name = wanted.name;
    if !registry::is_name(name) {
        return Err(not_registered(RegisterError::Name(name.to_owned())));
    }
    let repo = context::write_store(global)?;
    let store = repo.writer()?;
    let names = Registry::read(store)?;
    let predicate = asked_for(wanted, &names)?;
    let predicate = version(wanted, &names, predicate)?;
    let samples = samples(wanted, &store.to_handle(), &predicate, out)?;
    let registration = repo.register(&predicate, samples).map_err(not_registered)?;
    let Registration { entry, changed } = registration;
    close(repo, changed)?;
    let answer = RegistrationAnswer { entry, changed, is_verified: wanted.must_be_verified };
    let failure = answer.is_rejected().then(|| {
        let sample = wanted.samples.first().map_or("@", String::as_str);
        let failure = Failure::new(Code::E0503, format!("{name} is not prefix-monotone"))
            .note("bisect refuses it on every run where it recovers; predicate test and monitoring take it as it is")
            .help(&["dendrer", "predicate", "register", name, "--lift", "monotone"])
            .help(&["dendrer", "bisect", sample, "--predicate", "kernel.anomaly_free"]);
        Failure { changed, ..failure }
    });
    out.answer_or(&answer, failure)
}

/// Signs what was added, where the key is here, and closes.
fn close(repo: Repo, changed: bool) -> Result<()> {
    if changed { context::close(repo) } else { Ok(()) }
}

/// Makes the predicate that the flags describe, or takes up the newest one of the name.
fn asked_for(wanted: &Wanted<'_>, names: &Registry) -> Result<Predicate> {
    let made = match (wanted.holds, wanted.condition, wanted.file) {
        _ if let Some(path) = wanted.module => {
            let refused = |refused: ModuleRefused| {
                Failure::new(ModuleRefused::CODE, format!("{path} is not a module that is run here"))
                    .at("why", refused.to_string())
                    .note("nothing of it was run, and nothing was changed")
            };
            dendrer::wasm::predicate(wanted.name, &files::read(path, MODULE_SIZE_MAX)?).map_err(refused)?
        }
        (Some(text), ..) => Predicate::holds(wanted.name, text)?,
        (_, Some(text), _) => Predicate::condition(wanted.name, text)?,
        (.., Some(path)) => {
            let text = packs::read_file(path)?;
            let value =
                json::parse_door(behind_mark(&text)).map_err(|error| unfit(path, error.to_string()))?;
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
                let failure = Failure::new(Code::E0511, format!("there is no predicate {}", wanted.name))
                    .note("say what it is with --holds, --condition or --file");
                return Err(with_unreadable(failure, names.unreadable.len() as u64));
            }
        },
    };
    let made = wanted.window.map_or(made.clone(), |window| made.at_window(window));
    Ok(if wanted.lifts { made.lifted() } else { made })
}

/// Gives it a version: the one that is asked for, the one it has already, or the next.
fn version(wanted: &Wanted<'_>, names: &Registry, predicate: Predicate) -> Result<Predicate> {
    // Only a file has a version of its own.
    let own = Some(predicate.version()).filter(|version| wanted.file.is_some() && !version.is_empty());
    match names.version_for(wanted.name, &predicate, wanted.version.or(own)) {
        Ok(version) => Ok(predicate.named(wanted.name, &version)),
        Err(Registered { predicate: taken, .. }) => {
            let error = RegisterError::Taken(Box::new(taken.clone()));
            Err(not_registered(error).at("given", predicate.words()).note("nothing was changed"))
        }
    }
}

/// Shows a registration that was refused.
fn not_registered(error: RegisterError) -> Failure {
    let failure = Failure::new(error.code(), error.to_string());
    match error {
        RegisterError::Name(name) => failure.note(match name.split('.').next() {
            Some(taken @ ("kernel" | "state")) => {
                format!("names that begin with `{taken}.` are reserved; begin with another word")
            }
            _ => "write words joined by dots, like acme.tax_compliance_v2".to_owned(),
        }),
        RegisterError::Taken(taken) => failure.at("there", taken.words()),
        RegisterError::Failed(error) => error.into(),
        _ => failure,
    }
}

/// Judges the predicate on the sample runs, and prints how it did.
fn samples(
    wanted: &Wanted<'_>,
    store: &Arc<dyn Store>,
    predicate: &Predicate,
    out: &mut Out,
) -> Result<Vec<Sample>> {
    let by_construction = predicate.cannot_recover();
    if wanted.must_be_verified && wanted.samples.is_empty() && !by_construction {
        return Err(Failure::new(Code::E0106, "what is asked alone does not show that it cannot recover")
            .note("name runs to verify it on with --sample-trace")
            .note("nothing was changed"));
    }
    let mut samples = Vec::new();
    for text in wanted.samples {
        let run = Address::parse(text)?.run_in(store, &[])?;
        let trace = Trace::open(store, &run)?;
        if let (Some(expr), Some(pack)) = (predicate.expr(), dendrer::run::pack::of_run(&trace)?) {
            let checked = pack.check_expression(expr.text());
            checked.map_err(|error| {
                Failure::from(error).note(format!("{run} carries the pack {}", pack.name))
            })?;
        }
        // What goes on record is what the records say.
        let records = Trace::open(store, &run)?.without_snapshots();
        let (sample, line) = Sample::take(&records, predicate)?;
        out.ahead(sample_lines(predicate, &sample, &line))?;
        let uncertain = line.turns.iter().find_map(|(tick, verdict)| match verdict {
            Verdict::Uncertain(why) => Some((*tick, why.clone())),
            _ => None,
        });
        if let Some((tick, why)) = uncertain {
            let failure = Failure::new(
                Code::E0509,
                format!("{} cannot be judged at tick {tick} of {run}", wanted.name),
            )
            .at("why", reasons_list(&why, &line.reasons()))
            .note("uncertain is never taken for ok; nothing was registered");
            return Err(with_hint(failure, &trace, predicate, &why));
        }
        samples.push(sample);
    }
    Ok(samples)
}

fn retire(global: &Global, name: &str, out: &mut Out) -> Result {
    let repo = context::write_store(global)?;
    let store = repo.writer()?;
    if Predicate::built_in(name).is_some() {
        return Err(Failure::new(Code::E0513, format!("{name} is built in and cannot be retired"))
            .note("it is in every store, and no record says so; nothing was changed"));
    }
    let registry = Registry::read(store)?;
    let Some(entry) = registry.newest(name) else {
        return Err(unknown_predicate(&unknown(name, &registry, None)).note("nothing was changed"));
    };
    let mut entry = entry.clone();
    let ended = repo.retire(name)?;
    let changed = ended.is_some();
    entry.retired = ended.map(|record| record.id()).or(entry.retired);
    close(repo, changed)?;
    out.answer(&RetirementAnswer { entry, changed })
}
