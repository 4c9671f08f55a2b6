//! `dendrer contract`: runs against the contracts of their packs, and contracts by themselves.

use std::path::Path;

use dendrer::contract::lint::lint;
use dendrer::contract::question::{
    ContractCheckQuestion, ContractDiffQuestion, ContractLintQuestion, ContractListQuestion,
    ContractShowQuestion, ContractSuggestQuestion,
};
use dendrer::source::Asked;
use dendrer_object::Value;
use dendrer_view::contract::check::ContractCheckAnswer;
use dendrer_view::contract::extend::KeygenAnswer;
use dendrer_view::contract::found::{ContractAnswer, ContractDiffAnswer};
use dendrer_view::contract::lint::LintAnswer;
use dendrer_view::contract::suggest::SuggestAnswer;
use dendrer_view::forms::{FindingsAnswer, FindingsForm};

use crate::context::desk::CommandDesk;
use crate::context::packs::is_file;
use crate::context::{desk, keys, packs};
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

pub(crate) use self::args::ContractVerb;

mod args;
mod extend;

pub(crate) fn run(global: &Global, verb: &ContractVerb, out: &mut Out) -> Result {
    match verb {
        ContractVerb::Check(args) => {
            let named = args.contract.as_deref().map(named).transpose()?;
            let (contract, pack) = named.unwrap_or_default();
            let question = ContractCheckQuestion {
                run: args.run.clone(),
                contract,
                pack,
                from: args.from.clone(),
                to: args.to.clone(),
                r#type: args.type_name.clone(),
            };
            let checked = ask(global, &question, &[("pack", args.contract.as_deref())], out)?;
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
        ContractVerb::List => desk::answer(global, &ContractListQuestion {}, out),
        ContractVerb::Show(args) => {
            let (contract, pack) = named(&args.contract)?;
            let question = ContractShowQuestion { contract, pack, r#type: args.type_name.clone() };
            let shown = ask(global, &question, &[("pack", Some(&args.contract))], out)?;
            out.answer(&ContractAnswer { found: &shown.found, only: shown.only.as_ref() })
        }
        ContractVerb::Diff(args) => {
            let ((a, pack_a), (b, pack_b)) = (named(&args.a)?, named(&args.b)?);
            let question = ContractDiffQuestion { a, pack_a, b, pack_b };
            let names = [("pack_a", Some(&*args.a)), ("pack_b", Some(&*args.b))];
            let found = ask(global, &question, &names, out)?;
            let (old, new, changes) = (&found.old, &found.new, &found.changes);
            out.answer(&ContractDiffAnswer { old, new, changes, fails: args.exit_code })
        }
        ContractVerb::Lint { contract: file } => {
            let linted = match is_file(file) {
                // A text that is no pack has findings as well, with their places in it.
                true => lint(&packs::read_file(file)?, packs::beside(file)),
                false => {
                    let question = ContractLintQuestion { contract: Some(file.clone()), pack: None };
                    desk::ask(global, &question, out)?.linted
                }
            };
            out.answer(&LintAnswer { file, linted: &linted })
        }
        ContractVerb::Suggest(args) => {
            let question = ContractSuggestQuestion {
                runs: args.runs.clone(),
                r#type: args.type_name.clone(),
                tries: Some(args.tries),
            };
            let found = desk::ask(global, &question, out)?;
            out.answer(&SuggestAnswer { runs: &args.runs, found: &found })
        }
    }
}

/// Returns a contract as a question names it: by an address, or as the pack of a file.
fn named(text: &str) -> Result<(Option<String>, Option<Value>)> {
    Ok(match is_file(text) {
        true => (None, Some(packs::value(text)?)),
        false => (Some(text.to_owned()), None),
    })
}

/// Asks a question whose members contain packs; each is known by the name of its file.
fn ask<Q: Asked>(
    global: &Global,
    question: &Q,
    names: &[(&'static str, Option<&str>)],
    out: &mut Out,
) -> Result<Q::Reply> {
    let mut desk = CommandDesk::new(global, out);
    names.iter().for_each(|(member, path)| desk.names(*member, *path));
    question.ask(&mut desk)
}
