//! `dendrer key`: which keys of the log are here, the secret of those who only append, and changes of the key.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use dendrer::care::keys as care;
use dendrer::error::TrustError;
use dendrer::repo::{Repo, writer_secret};
use dendrer::source::clean_text;
use dendrer::store::{StoreError, WriterSecret};
use dendrer::trust::{Trust, VaultKey, WriterFile, write_writer};
use dendrer_object::Code;
use dendrer_object::note::SignedNote;
use dendrer_view::key::{KeyWriterAnswer, KeysAnswer};

use crate::context;
use crate::context::{keys, mark};
use crate::failure::{Failure, Result};
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
    /// Put a new key in the place of this one, which signs that and is destroyed
    #[command(
        after_help = "Examples:\n  dendrer key rotate\n  dendrer key rotate --key log.key --out new.key"
    )]
    Rotate(KeyRotate),
    /// Put a new key in the place of one that is lost
    #[command(
        after_help = "Examples:\n  dendrer key recover --reason \"the disk with the key is gone\"\n  dendrer key recover --reason \"lost\" --checkpoint kept"
    )]
    Recover(KeyRecover),
    /// Take back what an earlier key signed beyond a size
    #[command(after_help = "Examples:\n  dendrer key revoke 1f0c2a77 --at 812 --reason \"stolen\"")]
    Revoke(KeyRevoke),
}

/// `key rotate`
#[derive(Debug, Args)]
pub(crate) struct KeyRotate {
    /// A new file for the new key, where the old one is named with --key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

/// `key recover`
#[derive(Debug, Args)]
pub(crate) struct KeyRecover {
    /// The reason, which is put on record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// A checkpoint that the lost key signed; the newest of the store without it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) checkpoint: Option<String>,
}

/// `key revoke`
#[derive(Debug, Args)]
pub(crate) struct KeyRevoke {
    /// The key, as `key show` prints it, or the 8 hex digits of its id
    #[arg(value_name = "KEY")]
    pub(crate) revoked: String,
    /// The last size over which its signature counts
    #[arg(long, value_name = "SIZE")]
    pub(crate) at: u64,
    /// The reason, which is put on record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
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
        KeyVerb::Rotate(args) => rotate(global, args, out),
        KeyVerb::Recover(args) => recover(global, args, out),
        KeyVerb::Revoke(args) => revoke(global, args, out),
    }
}

fn show(global: &Global, out: &mut Out) -> Result {
    let (repo, _) = context::read_repo(global)?;
    let (log, trust) = (repo.log()?, repo.trust());
    let writer = writer_secret(&**trust, &*repo.reader()?)?;
    out.answer(&KeysAnswer {
        keys: repo.keys()?,
        signed: repo.log_trust()?.signed,
        signing: repo.signing_key()?.is_some(),
        writer: writer.is_some(),
        vault: trust.vault_key(log.id).map_err(dendrer::Error::from)?.is_some(),
    })
}

fn writer(global: &Global, args: &KeyWriter, out: &mut Out) -> Result {
    let (repo, _) = context::read_repo(global)?;
    let (id, trust) = (repo.info().id, keys::trust(global));
    let Some(key) = repo.signing_key()? else {
        return Err(dendrer::Error::from(StoreError::NoWriter).into());
    };
    refuse_existing(&args.out)?;
    let vault = if args.vault { Some(vault_key(&*trust, id)?) } else { None };
    let file = WriterFile { secret: WriterSecret::of(&key), vault };
    write_writer(&file, &args.out).map_err(dendrer::Error::from)?;
    out.answer(&KeyWriterAnswer { file: &args.out, vault: file.vault.is_some() })
}

fn rotate(global: &Global, args: &KeyRotate, out: &mut Out) -> Result {
    if let Some(file) = &args.out {
        if global.key.is_none() {
            return Err(Failure::new(
                Code::E0106,
                "--out is for a key that is named with --key: the new one takes its place otherwise",
            ));
        }
        refuse_existing(file)?;
    }
    let repo = write_repo(global)?;
    out.answer(&care::rotate(repo, args.out.as_deref())?)
}

fn recover(global: &Global, args: &KeyRecover, out: &mut Out) -> Result {
    let note = args.checkpoint.as_deref().map(read_note).transpose()?;
    let repo = write_repo(global)?;
    let reason = clean_text(&repo, None, &args.reason)?;
    out.answer(&care::recover(repo, &reason, note.as_ref())?)
}

fn revoke(global: &Global, args: &KeyRevoke, out: &mut Out) -> Result {
    let repo = write_repo(global)?;
    let reason = clean_text(&repo, None, &args.reason)?;
    let revoked = care::revoke(&repo, &args.revoked, args.at, &reason)?;
    context::close(repo)?;
    out.answer(&revoked)
}

/// Opens the store for a change of its key, also where that is not here.
fn write_repo(global: &Global) -> Result<Repo> {
    let path = context::find(global)?;
    context::write_at(global, &path).map_err(mark::refused)
}

/// Reads a checkpoint that was kept elsewhere.
fn read_note(path: &str) -> Result<SignedNote> {
    let text = keys::note_in(path)?;
    SignedNote::parse(text.as_bytes())
        .map_err(|error| Failure::new(Code::E0308, format!("not a checkpoint: {error}")))
}

fn refuse_existing(file: &Path) -> Result<()> {
    files::makes(file)?;
    if file.symlink_metadata().is_ok() {
        let source = std::io::ErrorKind::AlreadyExists.into();
        let error = TrustError::KeyNotWritten { path: file.to_owned(), source };
        return Err(dendrer::Error::from(error).into());
    }
    Ok(())
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
