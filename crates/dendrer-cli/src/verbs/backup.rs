//! `dendrer backup`

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use dendrer::store::StoreError;
use dendrer::store::embedded::{Copied, CopyAs, Embedded, Options};
use dendrer_object::Value;
use dendrer_view::{count, document, quote, thousands};

use crate::context;
use crate::context::STORE_DIR;
use crate::context::copies::make;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::keys;
use crate::mark;
use crate::out::Out;
use crate::out::Style;
use crate::out::files;

/// `backup`
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// A directory that is new or empty, or an earlier backup of the same store
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: String,
}

pub(crate) fn run(global: &Global, args: &Backup, out: &mut Out) -> Result {
    let path = context::find(global)?;
    let to = PathBuf::from(&args.dir);
    refuse_place(&path, &to)?;
    files::makes(&to)?;
    let mut store = Embedded::open(&path, Options::read())?;
    context::speak(global, &store, &path);
    // What is copied may be less than there was.
    if let Some((code, why)) = keys::doubt(&mut store)? {
        out.warn(code, &why);
    }
    context::refuse_damage(&store).map_err(|failure| failure.help(&["dendrer", "fsck"]))?;
    mark::refuse(&store, "nothing was copied")?;
    let copying = store.start_copy(&to, CopyAs::Backup).map_err(refused)?;
    let copied = make(global, "backup", copying).map_err(|failure| {
        let failure = failure.note("what is there does not count as a backup of the store as it is now");
        if failure.code == "E0801" { failure } else { failure.help(&["dendrer", "fsck"]) }
    })?;
    say(&to, &copied, out)?;
    Ok(0)
}

/// Says what to do where a backup does not go on from what is there.
fn refused(error: StoreError) -> Failure {
    let failure = Failure::from(error);
    match failure.code {
        "E0113" | "E0110" | "E0115" => {
            failure.note("nothing was changed; name a directory that is new or empty")
        }
        _ => failure,
    }
}

/// Refuses a place that is the store, in it or around it, a file, or one of links that lead elsewhere.
fn refuse_place(store: &Path, to: &Path) -> Result<()> {
    let shown = to.display();
    if to.is_file() {
        return Err(Failure::new("E0115", format!("{shown} is a file, and a backup is a directory")));
    }
    // Where that is a store already, or a backup, whoever copies says so.
    if to.file_name().is_some_and(|name| name == STORE_DIR) && !to.join("store.json").exists() {
        return Err(Failure::new("E0106", format!("{shown} is the name of a store, and a backup is none"))
            .note("nothing was made; name another directory"));
    }
    let (inner, outer) = (resolved(to), resolved(store));
    if inner.starts_with(&outer) || outer.starts_with(&inner) {
        return Err(Failure::new("E0106", "a backup does not lie in what it is a backup of, nor around it")
            .note("name a directory beside the store, better one on another disk"));
    }
    let inside =
        ["segments", "log", "checkpoint", "store.json", "backup.json", "lock"].map(|name| to.join(name));
    let segments = std::fs::read_dir(to.join("segments")).into_iter().flatten().flatten();
    let links = inside.into_iter().chain(segments.map(|entry| entry.path()));
    for path in links {
        // What is written through a link is written somewhere else: in the worst case to the store itself.
        if std::fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink()) {
            return Err(Failure::new("E0113", format!("{} is a link", path.display()))
                .note("nothing was changed; a backup has files and directories of its own"));
        }
    }
    Ok(())
}

/// The path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for known in absolute.ancestors() {
        if let (Ok(real), Ok(rest)) = (known.canonicalize(), absolute.strip_prefix(known)) {
            return real.join(rest);
        }
    }
    absolute
}

fn say(to: &Path, copied: &Copied, out: &mut Out) -> Result<()> {
    let path = to.display().to_string();
    if !out.is_text() {
        return out.document(&document(
            "backup",
            [
                ("path", Value::from(path)),
                ("records", Value::from(copied.tree.size)),
                ("root", Value::from(copied.tree.root)),
                ("before", Value::from(copied.before)),
                ("signed", Value::from(copied.signed)),
                ("bytes", Value::from(copied.bytes)),
                ("erased", Value::from(copied.voided > 0)),
            ],
        ));
    }
    let word = out.paint(Style::Good, "BACKED UP");
    let records = count(copied.tree.size, "record", "records");
    out.line(format!(
        "{word}  {records}, root {}, every one verified in the copy",
        copied.tree.root.short()
    ))?;
    let new = copied.tree.size.saturating_sub(copied.before);
    let what = match copied.before {
        0 => "all of them".to_owned(),
        _ => format!("{} since the last backup", thousands(new)),
    };
    out.line(format!("copied     {what}, {} of the log", count(copied.bytes, "byte", "bytes")))?;
    if copied.voided > 0 && copied.before > 0 {
        out.line("erased     what was erased in the store since then")?;
    }
    let signed = match copied.signed {
        Some(size) => format!("up to {}", count(size, "record", "records")),
        None => "not yet".to_owned(),
    };
    out.line(format!("signed     {signed}"))?;
    out.say(format!("note: the key of the log is no part of {}; keep it elsewhere", quote::escape(&path)));
    out.help(&["dendrer", "verify", "--all", "--store", &path]);
    out.help(&["dendrer", "restore", &path, "DIR"]);
    Ok(())
}
