//! `dendrer contract extend` and `contract keygen`: what an institution adds to the contract of a run, and by which key.

use dendrer::change::extend::{Extended, extend};
use dendrer::error::Error;
use dendrer::kernel::pack::extend::{EFFECTIVE_FROM, all, governs_behind};
use dendrer::kernel::step::{Approval, ExtensionFault, Stage};
use dendrer::pack::yaml::Document;
use dendrer::recorder::World;
use dendrer::store::Shared;
use dendrer::trace::ReadHandle;
use dendrer::trace::Trace;
use dendrer_object::note::SignedNote;
use dendrer_object::{RunName, Value};
use dendrer_view::{document, quote};

use crate::address::Rev;
use crate::context;
use crate::context::packs::read_file;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::keys;
use crate::out::Out;
use crate::verbs::contract::args::ContractExtend;
use crate::verbs::contract::args::ContractKeygen;

pub(crate) fn run(global: &Global, args: &ContractExtend, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.run)?;
    if rev.bundle.is_some() || rev.pos.is_some() {
        return Err(Failure::new("E0106", "a contract is extended at the end of a run of the store")
            .note("nothing was changed"));
    }
    let value = read(args)?;
    let note = args.signature.as_deref().map(read_file).transpose()?;
    let note = note.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let made = |store: &Shared| -> Result<(RunName, Extended, Option<u64>)> {
        let name = rev.run_in(store, &[])?;
        let note = match &args.approver_key {
            None => note,
            Some(path) => sign(args, store, &name, &value, path)?,
        };
        let world = Box::new(World::default());
        let extended = extend(store, &name, &value, note.as_deref(), world, args.dry_run);
        let extended = extended.map_err(|error| refused(args, store, &name, error))?;
        let stage = Trace::open(store, &name)?.start().body().value("/stage");
        Ok((name, extended, stage.and_then(|stage| stage.as_u64())))
    };
    let (name, extended, stage) = match args.dry_run {
        true => made(&context::rehearse(global)?)?,
        false => {
            let repo = context::write_store(global)?;
            let store = repo.writer()?;
            repo.signing_key()?;
            let made = made(store)?;
            context::close(repo)?;
            made
        }
    };
    let enforced = stage.and_then(Stage::from_number).is_some_and(|stage| stage >= Stage::Contracts);
    match out.is_text() {
        true => print(args, &name, &extended, enforced, out)?,
        false => out.document(&to_json(args, &name, &extended, enforced))?,
    }
    Ok(0)
}

/// Who approved the extension before, where there is one.
fn last_approver(store: &impl ReadHandle, run: &RunName) -> Option<String> {
    let trace = Trace::open(store, run).ok()?;
    let state = trace.state(trace.tip()).ok()?;
    all(&state).last()?.get("approved_by")?.as_str().map(str::to_owned)
}

/// Says why a contract is not extended, and with which command it would be.
fn refused(args: &ContractExtend, store: &impl ReadHandle, run: &RunName, error: Error) -> Failure {
    let Error::Extension(not) = &error else { return error.into() };
    let (mut from, mut by, mut key) =
        (args.effective_from, args.approved_by.clone(), args.approver_key.clone());
    let mut is_content = false;
    for fault in &not.faults {
        match fault {
            ExtensionFault::Past { tick, .. } => from = Some(tick + 1),
            ExtensionFault::NoApprover => by = last_approver(store, run),
            ExtensionFault::UnknownApprover { known, .. } => {
                by = known.split(", ").next().map(str::to_owned);
                key = key.or_else(|| Some("KEY".to_owned()));
            }
            ExtensionFault::Signature { .. } => key = key.or_else(|| Some("KEY".to_owned())),
            // The file itself is to be changed.
            _ => is_content = true,
        }
    }
    let not_approved = not.faults.contains(&ExtensionFault::NoApprover);
    let failure = Failure::from(error);
    if is_content {
        return failure.help(&["dendrer", "contract", "show", &args.run]);
    }
    if not_approved && by.is_none() {
        // A name that is made up here would be on record once the line is pasted.
        return failure.note("say who approves it with --approved-by, or as approved_by in the file");
    }
    let from = from.map(|from| from.to_string());
    let mut argv = vec!["dendrer", "contract", "extend", &args.run, "--file", &args.file];
    argv.extend(from.iter().flat_map(|from| ["--effective-from", "tick", from]));
    argv.extend(by.iter().flat_map(|by| ["--approved-by", by]));
    argv.extend(key.iter().flat_map(|key| ["--approver-key", key]));
    failure.help(&argv)
}

/// Reads the file, and puts what the command line says in its place.
fn read(args: &ContractExtend) -> Result<Value> {
    let document = Document::read(&read_file(&args.file)?).map_err(|problems| {
        let first = problems.into_iter().next();
        let (line, why) = first.map_or((1, String::new()), |problem| (problem.mark.line, problem.message));
        Failure::new("E0420", format!("{} cannot be read: {why}", args.file))
            .at("line", line.to_string())
            .note("nothing was changed; what an extension says is in docs/packs.md")
            .help(&["dendrer", "contract", "show", &args.run])
    })?;
    let Value::Object(mut members) = document.value else { return Ok(document.value) };
    if let Some(tick) = args.effective_from {
        members.set(EFFECTIVE_FROM, Value::from(tick));
    }
    if let Some(by) = &args.approved_by {
        members.set("approved_by", Value::from(by.as_str()));
    }
    Ok(Value::Object(members))
}

/// Signs the text of an extension with the key in a file, once all else about it is in order.
fn sign(
    args: &ContractExtend,
    store: &Shared,
    run: &RunName,
    value: &Value,
    path: &str,
) -> Result<Option<String>> {
    let bad =
        |why: String| Failure::new("E0804", format!("the key in {path} cannot be used")).at("cause", why);
    let key = keys::read_signer(path)?;
    match extend(store, run, value, None, Box::new(World::default()), true) {
        Err(Error::Extension(unsigned)) if unsigned.faults.iter().all(|fault| fault.code() == "E0423") => {
            let note = SignedNote::sign(&unsigned.text, &key).map_err(|error| bad(error.to_string()))?;
            Ok(Some(note.to_string()))
        }
        Err(error) => Err(refused(args, store, run, error)),
        Ok(_) => Err(Failure::new(
            "E0423",
            "the contract names no approver with a key, so nothing would show whose \
            signature it is",
        )
        .note("leave out --approver-key; the approval is recorded as it is said")
        .note("nothing was changed")),
    }
}

fn print(
    args: &ContractExtend,
    run: &RunName,
    extended: &Extended,
    enforced: bool,
    out: &mut Out,
) -> Result<()> {
    let (extension, header) = (&extended.extension, extended.record.header());
    let value = extension.value();
    let text = |name: &str| quote::escape(value.get(name).and_then(Value::as_str).unwrap_or_default());
    let from = holds_from(extended);
    let done = if args.dry_run { "would extend" } else { "extended" };
    out.line(format!("{done}  {} with {}, from tick {from} on", text("target_contract"), text("id")))?;
    for (name, what) in [
        ("types", "for"),
        ("adds_required", "requires"),
        ("adds_hash_seeds", "binds"),
        ("adds_violations", "forbids"),
    ] {
        let names: Vec<String> = match value.get(name) {
            Some(Value::Object(fields)) => fields.iter().map(|(name, _)| quote::escape(name)).collect(),
            Some(Value::Array(list)) => list
                .iter()
                .filter_map(|item| item.as_str().or_else(|| item.get("id")?.as_str()))
                .map(quote::escape)
                .collect(),
            _ => continue,
        };
        out.line(format!("{what:<9} {}", names.join(", ")))?;
    }
    let signed = match extension.approval() {
        Approval::Signed(_) => "signed with their key",
        Approval::Unsigned => "not signed: the contract names no approver with a key",
    };
    out.line(format!("approved  by {}   {signed}", text("approved_by")))?;
    match (args.dry_run, header.tick) {
        (false, Some(tick)) => out.line(format!("tick {tick}  {}  of {run}", extended.record.id()))?,
        _ => out.say("note: nothing was written"),
    }
    if !enforced {
        out.say(
            "note: contracts are enforced from stage 2 on; in this run `contract check` says what would have been refused",
        );
    }
    Ok(())
}

/// The first tick that it governs: never its own.
fn holds_from(extended: &Extended) -> u64 {
    let own = extended.record.header().tick.unwrap_or_default();
    governs_behind(extended.extension.value(), own).unwrap_or_default()
}

fn to_json(args: &ContractExtend, run: &RunName, extended: &Extended, enforced: bool) -> Value {
    let signature = match extended.extension.approval() {
        Approval::Signed(note) => Value::from(&**note),
        Approval::Unsigned => Value::Null,
    };
    let written = |value: Value| if args.dry_run { Value::Null } else { value };
    document(
        "contract-extend",
        [
            ("run", Value::from(run.as_str())),
            ("tick", written(Value::from(extended.record.header().tick))),
            ("id", written(Value::from(extended.record.id()))),
            ("holds_from", Value::from(holds_from(extended))),
            ("extension", extended.extension.value().clone()),
            ("signature", signature),
            ("enforced", Value::from(enforced)),
            ("dry_run", Value::from(args.dry_run)),
        ],
    )
}

/// Makes the key of an approver.
pub(crate) fn keygen(args: &ContractKeygen, out: &mut Out) -> Result {
    let key = keys::make(&args.name, std::path::Path::new(&args.file))?;
    let verifier = key.verifier_key().to_string();
    match out.is_text() {
        true => {
            out.line(format!("wrote {}; keep it, nobody else may read it", args.file))?;
            out.line("approvers:")?;
            out.line(format!("  {}: {verifier}", args.name))?;
        }
        false => out.document(&document(
            "contract-keygen",
            [("name", Value::from(args.name.as_str())), ("verifier", Value::from(verifier))],
        ))?,
    }
    Ok(0)
}
