//! `dendrer contract extend`: adds to the contract of a run, with an approval.

use dendrer::address::Address;
use dendrer::change::extend::{Extended, extend, last_approver, text_to_sign};
use dendrer::error::Error;
use dendrer::kernel::pack::extend::EFFECTIVE_FROM;
use dendrer::kernel::step::ExtensionFault;
use dendrer::pack::yaml::Document;
use dendrer::recorder::World;
use dendrer::store::Shared;
use dendrer::trace::ReadHandle;
use dendrer_object::note::SignedNote;
use dendrer_object::{Code, RunName, Value};

use super::args::ContractExtend;
use crate::context;
use crate::context::keys;
use crate::context::packs::read_file;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;

/// An extension as the command line names it.
struct Asked<'a> {
    run: &'a str,
    file: &'a str,
    from: Option<u64>,
    by: Option<&'a str>,
    /// The file of the key of the approver.
    key: Option<&'a str>,
}

pub(super) fn run(global: &Global, args: &ContractExtend, out: &mut Out) -> Result {
    let rev = Address::parse(&args.run)?;
    if rev.bundle.is_some() || rev.pos.is_some() {
        return Err(Failure::new(Code::E0106, "a contract is extended at the end of a run of the store")
            .note("nothing was changed"));
    }
    let asked = Asked {
        run: &args.run,
        file: &args.file,
        from: args.effective_from,
        by: args.approved_by.as_deref(),
        key: args.approver_key.as_deref(),
    };
    let value = read(&asked)?;
    let note = args.signature.as_deref().map(read_file).transpose()?;
    let note = note.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let made = |store: &Shared| -> Result<Extended> {
        let name = rev.run_in(store, &[])?;
        let note = match asked.key {
            None => note,
            Some(path) => Some(sign(&asked, store, &name, &value, path)?),
        };
        let world = Box::new(World::default());
        let extended = extend(store, &name, &value, note.as_deref(), world, args.dry_run);
        extended.map_err(|error| refused(&asked, store, &name, error))
    };
    let extended = match args.dry_run {
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
    out.answer(&extended)
}

/// Words why a contract is not extended, with the command that would extend it.
fn refused(asked: &Asked<'_>, store: &impl ReadHandle, run: &RunName, error: Error) -> Failure {
    let Error::Extension(not) = &error else { return error.into() };
    let (mut from, mut by, mut key) = (asked.from, asked.by.map(str::to_owned), asked.key.map(str::to_owned));
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
        return failure.help(&["dendrer", "contract", "show", asked.run]);
    }
    if not_approved && by.is_none() {
        // A name that is made up here would be on record once the line is pasted.
        return failure.note("say who approves it with --approved-by, or as approved_by in the file");
    }
    let from = from.map(|from| from.to_string());
    let mut argv = vec!["dendrer", "contract", "extend", asked.run, "--file", asked.file];
    argv.extend(from.iter().flat_map(|from| ["--effective-from", "tick", from]));
    argv.extend(by.iter().flat_map(|by| ["--approved-by", by]));
    argv.extend(key.iter().flat_map(|key| ["--approver-key", key]));
    failure.help(&argv)
}

/// Reads the file, and replaces the members that the command line names.
fn read(asked: &Asked<'_>) -> Result<Value> {
    let document = Document::read(&read_file(asked.file)?).map_err(|problems| {
        let first = problems.into_iter().next();
        let (line, why) = first.map_or((1, String::new()), |problem| (problem.mark.line, problem.message));
        Failure::new(Code::E0420, format!("{} cannot be read: {why}", asked.file))
            .at("line", line.to_string())
            .note("nothing was changed; what an extension says is in docs/packs.md")
            .help(&["dendrer", "contract", "show", asked.run])
    })?;
    let Value::Object(mut members) = document.value else { return Ok(document.value) };
    if let Some(tick) = asked.from {
        members.set(EFFECTIVE_FROM, Value::from(tick));
    }
    if let Some(by) = asked.by {
        members.set("approved_by", Value::from(by));
    }
    Ok(Value::Object(members))
}

/// Signs the text of an extension with the key in a file, once the signature alone is missing.
fn sign(asked: &Asked<'_>, store: &Shared, run: &RunName, value: &Value, path: &str) -> Result<String> {
    let key = keys::read_signer(path)?;
    let text = text_to_sign(store, run, value, Box::new(World::default()))
        .map_err(|error| refused(asked, store, run, error))?;
    let Some(text) = text else {
        let what = "the contract names no approver with a key, so nothing would show whose signature it is";
        return Err(Failure::new(Code::E0423, what)
            .note("leave out --approver-key; the approval is recorded as it is said")
            .note("nothing was changed"));
    };
    let note = SignedNote::sign(&text, &key).map_err(|error| {
        Failure::new(Code::E0804, format!("the key in {path} cannot be used")).at("cause", error.to_string())
    })?;
    Ok(note.to_string())
}
