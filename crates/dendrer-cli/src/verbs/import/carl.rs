//! Sources of `carl-core`: a chain, a session, or the directory of both; a file, or the id of one.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use dendrer::Repo;
use dendrer::run::witness::EXACT;
use dendrer_chain::check_chain_id;
use dendrer_object::{Code, RunName, Value, json};
use dendrer_view::import::{ImportAnswer, ImportsAnswer};
use dendrer_wire::import::SourceKind;

use super::{Import, Source, import_one};
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::{Out, files};

/// Where chains are, in the directory of `carl`.
const CHAINS: &str = "interactions";
/// Where sessions are.
const SESSIONS: &str = "sessions";

/// Imports a file, the chain or session with an id, or all of a directory.
pub(super) fn import(global: &Global, args: &Import, out: &mut Out) -> Result {
    let path = find(&args.file)?;
    if !path.is_dir() {
        let made = one(global, args, &path, out)?;
        return out.answer(&made);
    }
    if args.run.is_some() || args.index.is_some() {
        return Err(Failure::new(Code::E0106, "--run and --index are for one file, and this is a directory"));
    }
    let found = all(&path)?;
    if found.is_empty() {
        let message = format!("{} has no chains in {CHAINS} and no sessions in {SESSIONS}", path.display());
        return Err(Failure::new(Code::E0108, message));
    }
    let mut answer = ImportsAnswer::default();
    for file in found {
        match one_of_many(global, args, &file, out) {
            Ok(made) => answer.made.push(made),
            // What is in the store already is passed over.
            Err(failure) if failure.code == Code::E0214 => answer.there += 1,
            Err(failure) => {
                answer.failed.push((file.display().to_string(), failure.code, failure.message.into()))
            }
        }
    }
    out.answer(&answer)
}

/// As [`one`], under another name where another run has the name of the file.
fn one_of_many(global: &Global, args: &Import, path: &Path, out: &mut Out) -> Result<ImportAnswer> {
    let mut named = args.clone();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    for number in 2.. {
        match one(global, &named, path, out) {
            Err(failure) if failure.code == Code::E0111 && number < 1_000 => {
                named.run = Some(super::clean_name(&format!("{stem}-{number}")));
            }
            made => return made,
        }
    }
    unreachable!("the last number returns")
}

fn one(global: &Global, args: &Import, path: &Path, out: &mut Out) -> Result<ImportAnswer> {
    let mut args = Import { file: path.display().to_string(), ..args.clone() };
    if path.extension().is_none_or(|extension| extension != "json") {
        return import_one(global, &args, SourceKind::Chain, out);
    }
    check_session(path)?;
    args.messages.get_or_insert_with(|| "/messages".to_owned());
    import_one(global, &args, SourceKind::Chat, out)
}

/// The file that is named: as a path, or as the id of a chain or a session under the user's directory.
fn find(named: &str) -> Result<PathBuf> {
    let path = PathBuf::from(named);
    if named == "-" || path.exists() {
        return Ok(path);
    }
    // A path that is mistyped is a file that is missing; an id has no path in it.
    let is_path = path.is_absolute()
        || named.starts_with("./")
        || [".jsonl", ".json"].iter().any(|end| named.ends_with(end));
    if is_path {
        return Err(Failure::new(Code::E0108, format!("there is no file {named}")));
    }
    check_chain_id(named).map_err(|error| Failure::new(Code::E0461, error.to_string()))?;
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(".carl");
    let places =
        [home.join(CHAINS).join(format!("{named}.jsonl")), home.join(SESSIONS).join(format!("{named}.json"))];
    let found = places.iter().find(|place| place.exists()).cloned();
    found.ok_or_else(|| {
        let message =
            format!("there is no file {named}, and no chain or session of this id in {}", home.display());
        Failure::new(Code::E0108, message)
    })
}

/// All chains and sessions of a directory, in the order of their names.
fn all(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for (room, extension) in [(CHAINS, "jsonl"), (SESSIONS, "json")] {
        let Ok(entries) = std::fs::read_dir(directory.join(room)) else { continue };
        let mut paths = Vec::new();
        for entry in entries {
            let entry =
                entry.map_err(|error| files::cannot_read(&directory.display().to_string(), &error))?;
            paths
                .extend(Some(entry.path()).filter(|path| path.extension().is_some_and(|is| is == extension)));
        }
        paths.sort();
        found.extend(paths);
    }
    Ok(found)
}

/// Refuses a session of a version that is not known: `schema_version` is "1", 1 or absent.
fn check_session(path: &Path) -> Result<()> {
    let name = path.display().to_string();
    let mut text = Vec::new();
    let read = files::open(&name)?.read_to_end(&mut text);
    read.map_err(|error| files::cannot_read(&name, &error))?;
    let session = json::parse_door(&text)
        .map_err(|error| Failure::new(error.code(), error.to_string()).at("file", name.as_str()))?;
    match session.get("schema_version") {
        None => Ok(()),
        Some(Value::Null) => Ok(()),
        Some(version) if version.as_str() == Some("1") || version.as_u64() == Some(1) => Ok(()),
        Some(version) => {
            let message = format!("{name}: schema_version {version} is not known; 1 is");
            Err(Failure::new(Code::E0803, message).note("nothing was imported"))
        }
    }
}

/// Puts the exact bytes of a chain into the vault, and returns what the record has in their place.
pub(super) fn keep_exact(repo: &Repo, run: &RunName, source: &mut Source) -> Result<Value> {
    let mut bytes = Vec::new();
    let read = source.seek(SeekFrom::Start(0)).and_then(|_| source.read_to_end(&mut bytes));
    read.map_err(|error| files::cannot_read("the source", &error))?;
    let mut vault = repo.vault()?;
    let kept = vault.put(run, EXACT, &bytes);
    let kept =
        kept.map_err(|error| Failure::new(error.code(), error.to_string()).note("nothing was imported"))?;
    Ok(kept.to_value())
}
