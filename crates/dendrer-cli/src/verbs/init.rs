//! `dendrer init`

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use dendrer::redact::RedactionProfile;
use dendrer::repo::{self, Repo};
use dendrer::store::StoreError;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::trust::{self, Trust};
use dendrer_object::{Code, StoreId};
use dendrer_view::init::InitAnswer;
use dendrer_view::problem::in_store;
use dendrer_view::quote::shell;

use crate::context;
use crate::context::STORE_DIR;
use crate::context::keys;
use crate::context::server;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::{Global, profile_arg};
use crate::out::Out;
use crate::out::files;

/// `init`
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Where; here if not given
    pub(crate) dir: Option<String>,
    /// By which rules secrets are taken out of what is recorded here
    #[arg(long, value_name = "RULES", default_value = "default", value_parser = profile_arg)]
    pub(crate) redact: RedactionProfile,
    /// A store on a server: the role that records, which gets what it needs for that and nothing more
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// A store on a server: print the statements that make its tables, and do nothing
    #[arg(long)]
    pub(crate) print_sql: bool,
}

/// Tells whether a store was made, as far as that is known.
fn is_made(path: &Path, id: StoreId) -> bool {
    match Embedded::open(path, Options::read()) {
        Ok(store) => store.info().id == id,
        Err(_) => path.join("store.json").exists(),
    }
}

pub(crate) fn run(global: &Global, args: &Init, out: &mut Out) -> Result {
    let named = args.dir.as_deref().or(global.store.as_deref()).unwrap_or(".");
    if server::is_address(Path::new(named)) {
        return on_server(global, args, named, out);
    }
    if args.role.is_some() || args.print_sql {
        let what = "--role and --print-sql are of a store on a server: init --store postgres://HOST/DB/NAME";
        return Err(Failure::new(Code::E0106, what).note("nothing was made"));
    }
    let dir = Path::new(named);
    let path = if dir.ends_with(STORE_DIR) { dir.to_owned() } else { dir.join(STORE_DIR) };
    if path.join("store.json").exists() {
        return Err(Failure::new(Code::E0110, format!("{} is a store already", path.display()))
            .note("nothing was changed"));
    }
    // The restore may continue: a store is there.
    if let Some(failure) = context::cut_off(files::dir_of(&path)) {
        return Err(failure.note("nothing was made"));
    }
    // A copy of the store must not contain its key.
    let key_dir = |file: &str| Path::new(file).parent().map(std::path::absolute);
    if let Some(Ok(near)) = global.key.as_deref().and_then(key_dir)
        && std::path::absolute(&path).is_ok_and(|path| near.starts_with(path))
    {
        return Err(Failure::new(Code::E0106, "the key of a store does not lie in the store")
            .note("nothing was made"));
    }
    files::makes(&path)?;
    let trust = keys::trust(global);
    let id = repo::new_id().map_err(dendrer::Error::from)?;
    let key = Arc::new(trust::make_key(&id.origin()).map_err(dendrer::Error::from)?);
    let key_path = keys::path_of(global.key.as_deref(), id).unwrap_or_default();
    files::makes(&key_path)?;
    trust.keep_key(id, &key).map_err(dendrer::Error::from)?;
    let verifier = key.verifier_key().clone();
    let made = || -> Result<()> {
        let trust: Arc<dyn Trust> = trust.clone();
        let repo = Repo::create_with(&path, id, &key, &trust, args.redact).map_err(|error| match error {
            dendrer::Error::Store(StoreError::Io { action: "make", path, source }) => {
                Failure::new(Code::E0801, format!("cannot make {}", path.display()))
                    .at("cause", source.to_string())
            }
            error => error.into(),
        })?;
        context::close(repo)
    };
    if let Err(mut failure) = made() {
        // What is said of a store that was there before says nothing of this one.
        failure.notes.clear();
        let shown = path.display().to_string();
        if is_made(&path, id) {
            // Without its key nobody could sign it any more.
            return Err(failure
                .note(format!("the store is in {shown}, and the key of its log in {}", key_path.display()))
                .note("the log is not signed yet; the next commit signs it"));
        }
        // A key without a store is litter.
        let _ = std::fs::remove_file(&key_path);
        return Err(match failure.code {
            Code::E0801 => failure.note(format!(
                "no store was made; what is in {shown} counts for nothing, and the next init goes on there"
            )),
            _ => failure,
        });
    }
    let commit = ["dendrer", "commit", "--run", "first"].map(str::to_owned).to_vec();
    let there = args.dir.as_deref().or(global.store.as_deref()).filter(|dir| *dir != ".");
    out.answer(&InitAnswer {
        path: path.display().to_string(),
        server: None,
        id: id.to_string(),
        verifier: verifier.to_string(),
        key: key_path.display().to_string(),
        commit: shell(&in_store(commit, there)),
    })
}

/// Refuses a store on a server: this program was built without them.
#[cfg(not(feature = "postgres"))]
fn on_server(global: &Global, _: &Init, named: &str, _: &mut Out) -> Result {
    let mode = dendrer::repo::Mode::Write;
    server::open(global, Path::new(named), mode)
        .map(|_| 0)
        .map_err(|error| Failure::from(error).note("nothing was made"))
}

/// Makes a store on a server, or prints its tables.
#[cfg(feature = "postgres")]
fn on_server(global: &Global, args: &Init, named: &str, out: &mut Out) -> Result {
    let role = args.role.as_deref();
    let address = server::address(Path::new(named))?;
    if args.print_sql {
        out.bytes(dendrer_store_postgres::tables_sql(&address.schema(), role).as_bytes())?;
        return Ok(0);
    }
    let trust = keys::trust(global);
    let id = repo::new_id().map_err(dendrer::Error::from)?;
    let key = Arc::new(trust::make_key(&id.origin()).map_err(dendrer::Error::from)?);
    let key_path = keys::path_of(global.key.as_deref(), id).unwrap_or_default();
    files::makes(&key_path)?;
    trust.keep_key(id, &key).map_err(dendrer::Error::from)?;
    let info = dendrer::store::StoreInfo::new(id, key.verifier_key().clone());
    let made = server::create(&address, info, role, trust.clone(), args.redact);
    let (repo, version) = made.map_err(|error| {
        // The store may be there, and then its key is kept: it is the only one that signs its log.
        let is_there = server::open(global, Path::new(named), dendrer::repo::Mode::Read)
            .is_ok_and(|repo| repo.info().id == id);
        let failure = Failure::from(error);
        if is_there {
            return failure.note(format!(
                "the store is there, and the key of its log in {}; the next commit signs it",
                key_path.display()
            ));
        }
        // A key without a store is litter.
        let _ = std::fs::remove_file(&key_path);
        failure.note("nothing was made")
    })?;
    context::close(repo)?;
    let shown = address.to_string();
    let commit = ["dendrer", "commit", "--store", &shown, "--run", "first"].map(str::to_owned).to_vec();
    out.answer(&InitAnswer {
        path: shown.clone(),
        server: Some(version),
        id: id.to_string(),
        verifier: key.verifier_key().to_string(),
        key: key_path.display().to_string(),
        commit: shell(&commit),
    })
}
