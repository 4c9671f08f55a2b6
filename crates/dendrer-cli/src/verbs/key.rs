//! `dendrer key`: which keys of the log are here, and the secret of those who only append.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use dendrer::error::TrustError;
use dendrer::repo::writer_secret;
use dendrer::store::{StoreError, WriterSecret};
use dendrer::trust::{Trust, VaultKey, WriterFile, write_writer};
use dendrer_view::key::{KeyWriterAnswer, KeysAnswer};

use crate::context;
use crate::context::keys;
use crate::failure::Result;
use crate::global::Global;
use crate::out::{Out, files};

/// `key`
#[derive(Debug, Subcommand)]
pub(crate) enum KeyVerb {
    /// Show the keys of the log, and which are on this machine
    #[command(after_help = "Examples:\n  dendrer key show\n  dendrer key show --json")]
    Show,
    /// Write the secret of a writer to a file: with it one appends, and signs nothing
    #[command(
        after_help = "Examples:\n  dendrer key writer --out shop.key\n  dendrer key writer --out shop.key --vault"
    )]
    Writer(KeyWriter),
}

/// `key writer`
#[derive(Debug, Args)]
pub(crate) struct KeyWriter {
    /// The file, which must not be there yet
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// Add the key of the vault: who has it reads exact values
    #[arg(long)]
    pub(crate) vault: bool,
}

pub(crate) fn run(global: &Global, verb: &KeyVerb, out: &mut Out) -> Result {
    match verb {
        KeyVerb::Show => show(global, out),
        KeyVerb::Writer(args) => writer(global, args, out),
    }
}

fn show(global: &Global, out: &mut Out) -> Result {
    let (repo, _) = context::read_repo(global)?;
    let (info, trust) = (repo.info(), repo.trust());
    let writer = writer_secret(&**trust, &*repo.reader()?)?;
    out.answer(&KeysAnswer {
        verifier: info.key.to_string(),
        signed: repo.log_trust()?.signed,
        signing: repo.signing_key()?.is_some(),
        writer: writer.is_some(),
        vault: trust.vault_key(info.id).map_err(dendrer::Error::from)?.is_some(),
    })
}

fn writer(global: &Global, args: &KeyWriter, out: &mut Out) -> Result {
    let (repo, _) = context::read_repo(global)?;
    let (id, trust) = (repo.info().id, keys::trust(global));
    let Some(key) = repo.signing_key()? else {
        return Err(dendrer::Error::from(StoreError::NoWriter).into());
    };
    files::makes(&args.out)?;
    if args.out.symlink_metadata().is_ok() {
        let source = std::io::ErrorKind::AlreadyExists.into();
        let error = TrustError::KeyNotWritten { path: args.out.clone(), source };
        return Err(dendrer::Error::from(error).into());
    }
    let vault = if args.vault { Some(vault_key(&*trust, id)?) } else { None };
    let file = WriterFile { secret: WriterSecret::of(&key), vault };
    write_writer(&file, &args.out).map_err(dendrer::Error::from)?;
    out.answer(&KeyWriterAnswer { file: &args.out, vault: file.vault.is_some() })
}

/// The key of the vault. One that begins a vault later is made now, so that its owner reads what the writer puts.
fn vault_key(trust: &dyn Trust, id: dendrer_object::StoreId) -> Result<VaultKey> {
    if let Some(key) = trust.vault_key(id).map_err(dendrer::Error::from)? {
        return Ok(key);
    }
    let key = VaultKey::generate().map_err(dendrer::Error::from)?;
    trust.keep_vault_key(id, &key).map_err(dendrer::Error::from)?;
    Ok(key)
}
