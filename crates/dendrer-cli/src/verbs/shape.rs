//! Which forms a verb's answer can have, which document it is, and whether it may be paged.
//!
//! Forms that exclude each other are refused here, before anything is read: an answer is never half-valid.

use dendrer_object::Value;
use dendrer_view::document;
use dendrer_view::fields::{Fields, available};

use crate::failure::{Failure, Result};
use crate::global::{Format, Global};
use crate::verbs::Verb;
use crate::verbs::conflicts::ConflictsVerb;
use crate::verbs::contract::ContractVerb;
use crate::verbs::pack::PackVerb;
use crate::verbs::predicate::PredicateVerb;

/// What a verb can answer.
struct Shape {
    /// The name on the command line.
    verb: &'static str,
    /// The document it prints with `--json`; the first where there are several.
    document: Option<&'static str>,
    /// What `--format` takes.
    forms: &'static [&'static str],
    /// Whether a long answer is paged on a terminal.
    pages: bool,
}

/// How the answer of this call is to be written.
pub(crate) struct Answer {
    /// As text, one document or a stream.
    pub(crate) format: Format,
    /// The fields that were asked for.
    pub(crate) fields: Option<Fields>,
    /// Whether a long answer may be paged.
    pub(crate) pages: bool,
}

const FORMS: &[&str] = &["text", "json", "jsonl"];

fn shape(verb: &Verb) -> Shape {
    let pages = |verb, document| Shape { verb, document: Some(document), forms: FORMS, pages: true };
    let flows = |verb, document| Shape { pages: false, ..pages(verb, document) };
    match verb {
        Verb::Init(_) => flows("init", "init"),
        Verb::Demo(_) => flows("demo", "demo"),
        Verb::Commit(_) => flows("commit", "commit"),
        Verb::Import(_) => flows("import", "import"),
        Verb::Pack(PackVerb::Check(_)) => pages("pack check", "pack-check"),
        Verb::Pack(PackVerb::Show(_)) => pages("pack show", "pack"),
        Verb::Pack(PackVerb::Test(_)) => pages("pack test", "pack-test"),
        Verb::Cherrypick(_) => flows("cherrypick", "cherrypick"),
        Verb::Contract(ContractVerb::Check(_)) => Shape {
            forms: &["text", "json", "jsonl", "sarif", "github", "junit"],
            ..pages("contract check", "contract-check")
        },
        Verb::Contract(ContractVerb::Extend(_)) => flows("contract extend", "contract-extend"),
        Verb::Contract(ContractVerb::Keygen(_)) => flows("contract keygen", "contract-keygen"),
        Verb::Contract(ContractVerb::List) => pages("contract list", "contracts"),
        Verb::Contract(ContractVerb::Show(_)) => pages("contract show", "contract"),
        Verb::Contract(ContractVerb::Diff(_)) => pages("contract diff", "contract-diff"),
        Verb::Contract(ContractVerb::Lint(_)) => pages("contract lint", "contract-lint"),
        Verb::Contract(ContractVerb::Suggest(_)) => pages("contract suggest", "contract-suggest"),
        Verb::Fork(_) => flows("fork", "fork"),
        Verb::Rebase(args) if args.plan => pages("rebase", "rebase"),
        Verb::Rebase(_) => flows("rebase", "rebase"),
        Verb::Merge(_) => flows("merge", "merge"),
        Verb::Conflicts(ConflictsVerb::List(_)) => pages("conflicts list", "conflicts"),
        Verb::Conflicts(ConflictsVerb::Show(_)) => pages("conflicts show", "conflicts"),
        Verb::Conflicts(ConflictsVerb::Resolve(_)) => flows("conflicts resolve", "resolved"),
        Verb::Reduce(_) => flows("reduce", "reduce"),
        Verb::Runs(_) => pages("runs", "runs"),
        Verb::Log(args) => Shape {
            forms: &["text", "json", "jsonl", "receipt"],
            pages: !args.follows(),
            ..pages("log", "log")
        },
        Verb::Show(args) if args.raw_json => pages("show", "record"),
        Verb::Show(_) => pages("show", "show"),
        Verb::State(args) if args.base.is_some() => pages("state", "state-difference"),
        Verb::State(_) => pages("state", "state"),
        Verb::Verify(args) if args.suite.is_some() => pages("verify", "suite"),
        Verb::Verify(args) if args.profile.is_some() => pages("verify", "profile"),
        Verb::Verify(_) => pages("verify", "verify"),
        Verb::Replay(_) => pages("replay", "replay"),
        Verb::Diff(_) => pages("diff", "diff"),
        Verb::Bisect(args) if args.all_of.is_some() || args.holds.len() > 1 => pages("bisect", "bisect-all"),
        Verb::Bisect(_) => pages("bisect", "bisect"),
        Verb::Backtrack(_) => pages("backtrack", "backtrack"),
        Verb::Why(_) => pages("why", "why"),
        Verb::Predicate(PredicateVerb::Register(_)) => flows("predicate register", "predicate"),
        Verb::Predicate(PredicateVerb::Retire(_)) => flows("predicate retire", "predicate"),
        Verb::Predicate(PredicateVerb::List(_)) => pages("predicate list", "predicates"),
        Verb::Predicate(PredicateVerb::Show(_)) => pages("predicate show", "predicates"),
        Verb::Predicate(PredicateVerb::Test(_)) => pages("predicate test", "predicate-test"),
        Verb::Export(_) => Shape { forms: &["bundle", "jsonl", "paper", "cfd"], ..flows("export", "export") },
        Verb::Label(_) => pages("label", "labels"),
        Verb::Note(_) => pages("note", "notes"),
        Verb::Backup(_) => flows("backup", "backup"),
        Verb::Restore(_) => flows("restore", "restore"),
        Verb::Fsck => pages("fsck", "fsck"),
        Verb::Gc(_) => pages("gc", "gc"),
        Verb::Doctor(_) => pages("doctor", "doctor"),
        Verb::Explain(_) => pages("explain", "explain"),
        Verb::Schema(_) => pages("schema", "schemas"),
        Verb::Version => flows("version", "version"),
        Verb::Man(_) => Shape { document: None, forms: &["text"], ..flows("man", "") },
        Verb::Completions(_) => Shape { document: None, forms: &["text"], ..flows("completions", "") },
        Verb::Help(args) if args.topic.as_deref() == Some("exit-codes") => pages("help", "exit-codes"),
        Verb::Help(_) => pages("help", "help"),
    }
}

/// Decides how the answer is written, or refuses flags that exclude each other.
pub(crate) fn answer(global: &Global, verb: &Verb) -> Result<Answer> {
    let shape = shape(verb);
    let given = [
        global.json.then_some("--json"),
        global.jsonl.then_some("--jsonl"),
        global.format.is_some().then_some("--format"),
    ];
    let given: Vec<&str> = given.into_iter().flatten().collect();
    if given.len() > 1 {
        return Err(Failure::new("E0106", format!("{} exclude each other", given.join(" and "))));
    }
    let special = match global.format.as_deref() {
        Some(form) if !shape.forms.contains(&form) => return Err(no_form(&shape, form)),
        Some(form) => !FORMS.contains(&form) || matches!(verb, Verb::Export(_)),
        None => false,
    };
    let format = match (global.json, global.jsonl, global.format.as_deref()) {
        _ if special => Format::Text,
        (true, ..) | (.., Some("json")) => Format::Json,
        (_, true, _) | (.., Some("jsonl")) => Format::Jsonl,
        _ => Format::Text,
    };
    if format != Format::Text && shape.document.is_none() {
        return Err(Failure::new("E0106", format!("{} prints a text and no document", shape.verb)));
    }
    if format == Format::Jsonl && matches!(verb, Verb::Export(_)) {
        return Err(Failure::new("E0106", "an export is no stream of items")
            .note("its events, one a line, are --format jsonl"));
    }
    let fields = match (global.fields.as_slice(), shape.document) {
        ([], _) => None,
        _ if special => {
            return Err(Failure::new("E0106", "--fields is for documents, and this form is none"));
        }
        (_, None) => return Err(Failure::new("E0106", format!("{} has no fields", shape.verb))),
        ([only], Some(_)) if only == "list" => None,
        (wanted, Some(document)) => Some(choose(document, wanted)?),
    };
    Ok(Answer { format, fields, pages: shape.pages })
}

fn no_form(shape: &Shape, form: &str) -> Failure {
    let failure = Failure::new("E0106", format!("{} has no form \"{form}\"", shape.verb))
        .at("forms", shape.forms.join(", "));
    match dendrer_object::text::nearest(form, shape.forms.iter().copied()) {
        Some(near) => failure.note(format!("did you mean {near}?")),
        None => failure,
    }
}

fn choose(document: &str, wanted: &[String]) -> Result<Fields> {
    Fields::choose(document, wanted).map_err(|unknown| {
        let failure = Failure::new("E0106", format!("{document} has no field \"{}\"", unknown.field));
        match unknown.near {
            Some(near) => failure.note(format!("did you mean {near}?")),
            None => failure.note("--fields list says which there are"),
        }
    })
}

/// Whether the call asks which fields there are.
pub(crate) fn asks_for_fields(global: &Global) -> bool {
    matches!(global.fields.as_slice(), [only] if only == "list")
}

/// Returns the fields of the verb's document: name, and whether it is one of the items or of the document.
pub(crate) fn fields(verb: &Verb) -> Value {
    let name = shape(verb).document.unwrap_or_default();
    let (items, own) = available(name);
    let item = |name: &String, of: &str| {
        Value::record([("name", Value::from(name.as_str())), ("of", Value::from(of))])
    };
    let items = items.iter().map(|name| item(name, "items"));
    let own = own.iter().map(|name| item(name, "document"));
    document("fields", [("document", Value::from(name)), ("items", Value::array(items.chain(own)))])
}
