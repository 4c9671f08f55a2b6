//! `dendrer contract`: runs against the contracts of their packs, and contracts by themselves.

use std::path::Path;
use std::sync::Arc;

use dendrer::Trace;
use dendrer::address::{Address, Position};
use dendrer::contract::compare::compare;
use dendrer::contract::find::list;
use dendrer::contract::lint::lint;
use dendrer::contract::suggest::{SuggestQuestion, suggest};
use dendrer::contract::terms::terms;
use dendrer::contract::{CheckedContract, check};
use dendrer::pack::{Files, text_of};
use dendrer::run::declared;
use dendrer::store::Store;
use dendrer_object::text::nearest;
use dendrer_object::{Code, TypeName};
use dendrer_view::contract::check::ContractCheckAnswer;
use dendrer_view::contract::extend::KeygenAnswer;
use dendrer_view::contract::found::{ContractAnswer, ContractDiffAnswer};
use dendrer_view::contract::lint::LintAnswer;
use dendrer_view::contract::suggest::SuggestAnswer;
use dendrer_view::forms::{FindingsAnswer, FindingsForm};

use self::find::resolve;
use crate::context::keys;
use crate::context::packs::is_file;
use crate::context::ticks;
use crate::context::{self, packs};
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;
use crate::progress::Progress;

pub(crate) use self::args::ContractVerb;

mod args;
mod extend;
mod find;

pub(crate) fn run(global: &Global, verb: &ContractVerb, out: &mut Out) -> Result {
    match verb {
        ContractVerb::Check(args) => {
            let range = (args.from.as_ref(), args.to.as_ref());
            let (contract, only) = (args.contract.as_deref(), args.type_name.as_deref());
            let checked = check_run(global, &args.run, range, contract, only, out)?;
            let answer = ContractCheckAnswer { checked: &checked, all_violations: args.all_violations };
            match global.format.as_deref().and_then(FindingsForm::parse) {
                None => out.answer(&answer),
                Some(form) => out.findings(form, &FindingsAnswer { form, answer }),
            }
        }
        ContractVerb::Extend(args) => extend::run(global, args, out),
        ContractVerb::Keygen { name, file } => {
            let key = keys::make(name, Path::new(file))?;
            let verifier = &key.verifier_key().to_string();
            out.answer(&KeygenAnswer { name, file, verifier })
        }
        ContractVerb::List => out.answer(&list(&context::read_store(global)?)?),
        ContractVerb::Show(args) => show(global, &args.contract, args.type_name.as_deref(), out),
        ContractVerb::Diff(args) => {
            let old = resolve(global, &args.a, true, out)?;
            let new = resolve(global, &args.b, true, out)?;
            let changes = &compare(&old.terms.pack, &new.terms.pack);
            out.answer(&ContractDiffAnswer { old: &old, new: &new, changes, fails: args.exit_code })
        }
        ContractVerb::Lint { contract: file } => {
            let linted = match is_file(file) {
                true => lint(&packs::read_file(file)?, packs::beside(file)),
                false => {
                    let found = resolve(global, file, false, out)?;
                    let pack = found.terms.pack.value();
                    // Without the text that people wrote, lines are those of the one-line form.
                    lint(found.text.unwrap_or_else(|| text_of(pack)).as_bytes(), Files::Of(pack))
                }
            };
            out.answer(&LintAnswer { file, linted: &linted })
        }
        ContractVerb::Suggest(args) => {
            suggest_fields(global, &args.runs, args.type_name.as_deref(), args.tries, out)
        }
    }
}

/// Reads the name of a type.
fn type_name(text: Option<&str>) -> Result<Option<TypeName>> {
    let parsed = text.map(str::parse::<TypeName>).transpose();
    parsed.map_err(|error| Failure::new(Code::E0210, error.to_string()))
}

fn check_run(
    global: &Global,
    run: &str,
    (from, to): (Option<&Position>, Option<&Position>),
    contract: Option<&str>,
    only: Option<&str>,
    out: &mut Out,
) -> Result<CheckedContract> {
    let rev = Address::parse(run)?;
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(&source.store)?;
    let (_progress, counted) = context::watched(global, &source, "contract");
    let trace = source.trace_through(&counted, &rev)?;
    out.asks(&trace);
    let from = from.map_or(Ok(0), |pos| pos.tick(&trace))?;
    let to = match (to, &rev.pos) {
        (Some(_), Some(_)) => {
            return Err(Failure::new(Code::E0106, "say once where it ends: --to, or RUN@N"));
        }
        (Some(pos), None) | (None, Some(pos)) => pos.tick(&trace)?,
        (None, None) => trace.tip(),
    };
    ticks::in_order(from, to)?;
    let only = type_name(only)?;
    let under = contract.map(|contract| resolve(global, contract, true, out)).transpose()?;
    let checked = check(&trace, under.as_ref().map(|found| &found.terms.pack), from, to, only.as_ref())?;
    if let Some(only) = &only
        && checked.in_force.iter().all(|terms| !terms.contracts.types.contains_key(only))
    {
        let shown = contract.unwrap_or(trace.name().as_str());
        let failure = Failure::new(Code::E0415, format!("no contract of {} is for {only}", trace.name()))
            .help(&["dendrer", "contract", "show", shown]);
        let names = checked.in_force.iter().flat_map(|terms| terms.contracts.types.keys());
        let near = nearest(only.as_str(), names.map(TypeName::as_str));
        return Err(near.map_or(failure.clone(), |near| failure.note(format!("did you mean {near}?"))));
    }
    Ok(checked)
}

fn show(global: &Global, contract: &str, only: Option<&str>, out: &mut Out) -> Result {
    let found = resolve(global, contract, true, out)?;
    let only = type_name(only)?;
    if let Some(only) = &only {
        let terms = terms(&found.terms.pack, &found.terms.marks);
        let names = || terms.types.iter().map(|one| one.name.as_str());
        if names().all(|name| name != only.as_str()) {
            let what = format!("{} says nothing of {only} by name", found.terms.title());
            let failure = Failure::new(Code::E0415, what).help(&["dendrer", "contract", "show", contract]);
            let near = nearest(only.as_str(), names());
            return Err(near.map_or(failure.clone(), |near| failure.note(format!("did you mean {near}?"))));
        }
    }
    out.answer(&ContractAnswer { found: &found, only: only.as_ref() })
}

fn suggest_fields(global: &Global, runs: &[String], only: Option<&str>, tries: u64, out: &mut Out) -> Result {
    let only = type_name(only)?;
    let mut sources = Vec::new();
    for run in runs {
        let rev = Address::parse(run)?;
        if rev.pos.is_some() {
            return Err(Failure::new(Code::E0106, format!("{run} names a tick; whole runs are looked at")));
        }
        sources.push((context::sound(global, &rev, out)?, rev));
    }
    let progress = Progress::start(global, "contract", "records", None);
    let counted: Vec<Arc<dyn Store>> =
        sources.iter().map(|(source, _)| progress.watch().over(&source.store)).collect();
    let mut traces = Vec::new();
    for ((source, rev), counted) in sources.iter().zip(&counted) {
        let trace = source.trace_through(counted, rev)?;
        if traces.iter().any(|known: &Trace| known.name() == trace.name() && rev.bundle.is_none()) {
            return Err(Failure::new(Code::E0106, format!("{} is named twice", trace.name())));
        }
        traces.push(trace);
    }
    if let (Some(only), Some(first)) = (&only, traces.first())
        && traces.iter().all(|trace| declared::types(trace, [only.as_str()]).is_err())
    {
        declared::types(first, [only.as_str()])?;
    }
    let found = suggest(&traces, SuggestQuestion { only: only.as_ref(), tries })?;
    drop(progress);
    out.answer(&SuggestAnswer { runs, found: &found })
}
