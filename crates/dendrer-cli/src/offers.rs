//! Values that a shell offers for a flag when Tab is pressed: runs, paths of the state, codes, schemas, verbs.
//!
//! A shell calls the program again for each Tab, so an offer is never older than the store. An error while reading
//! offers nothing: a shell is no place for an error. Names from a trace are offered only if they are plain,
//! because shells differ in how they quote the rest.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;

use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use clap_complete::{CompletionCandidate, engine};
use dendrer::address::Address;
use dendrer::address::Position;
use dendrer::address::is_bundle_name;
use dendrer::kernel::predicate::BUILT_IN;
use dendrer_object::{Code, Value};
use dendrer_view::schemas;

use crate::context;
use crate::global::Global;

/// The variable by which a shell asks.
pub(crate) const ASKED: &str = "COMPLETE";

/// The shells that are known.
pub(crate) const SHELLS: &[&str] = &["bash", "zsh", "fish", "powershell", "nushell", "elvish"];

/// How many names are offered at most.
const OFFERS_MAX: usize = 500;

/// The shells that completions are written for.
pub(crate) fn shells() -> Shells<'static> {
    Shells(&[&Bash, &Zsh, &Fish, &Powershell, &Nushell, &Elvish])
}

/// Writes the script that makes a shell ask.
pub(crate) fn script(shell: &str) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let shells = shells();
    let completer = shells.completer(shell)?;
    completer.write_registration(ASKED, "dendrer", "dendrer", "dendrer", &mut text).ok()?;
    Some(text)
}

struct Nushell;

impl EnvCompleter for Nushell {
    fn name(&self) -> &'static str {
        "nushell"
    }

    fn is(&self, name: &str) -> bool {
        matches!(name, "nushell" | "nu")
    }

    fn write_registration(
        &self,
        var: &str,
        _: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> std::io::Result<()> {
        // Nushell has one external completer for all programs: other programs go to the completer that was set before.
        writeln!(
            buf,
            "let dendrer_before = ($env.config | get -o completions.external.completer)
$env.config.completions.external.enable = true
$env.config.completions.external.completer = {{|spans|
    if ($spans | first) == \"{bin}\" {{
        with-env {{ {var}: nushell }} {{ ^{completer} -- ...$spans }} | from json
    }} else if $dendrer_before != null {{
        do $dendrer_before $spans
    }}
}}"
        )
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        args: Vec<OsString>,
        here: Option<&Path>,
        buf: &mut dyn Write,
    ) -> std::io::Result<()> {
        let last = args.len().saturating_sub(1);
        let offers = engine::complete(command, args, last, here)?;
        let offers = offers.iter().map(|offer| {
            let help = offer.get_help().map(|help| help.to_string()).unwrap_or_default();
            Value::record([
                ("value", Value::from(offer.get_value().to_string_lossy().as_ref())),
                ("description", Value::from(help.lines().next().unwrap_or_default())),
            ])
        });
        writeln!(buf, "{}", Value::array(offers))
    }
}

/// The words of the command line that is being completed.
fn words() -> Vec<String> {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The flags among those words that name the store.
fn global() -> Global {
    let mut global = Global::unset();
    let words = words();
    for (at, word) in words.iter().enumerate() {
        if let Some(dir) = word.strip_prefix("--store=") {
            global.store = Some(dir.to_owned());
        } else if word == "--store" || word == "-C" && global.store.is_none() {
            global.store = words.get(at + 1).cloned();
        }
    }
    global
}

fn candidates<'n>(names: impl IntoIterator<Item = &'n str>, current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fitting = names.into_iter().filter(|name| name.starts_with(&*current));
    fitting.take(OFFERS_MAX).map(CompletionCandidate::new).collect()
}

/// Runs, and bundles in the directory.
pub(crate) fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut names = run_names().unwrap_or_default();
    let here = std::fs::read_dir(".").into_iter().flatten().flatten();
    let bundles = here.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.extend(bundles.filter(|name| is_bundle_name(name) && plain(name)));
    candidates(names.iter().map(String::as_str), current)
}

fn run_names() -> Option<Vec<String>> {
    let store = context::read_store(&global()).ok()?;
    let mut runs = context::all_runs(&*store).ok()?;
    runs.sort_by_key(|run| std::cmp::Reverse(run.head_position));
    Some(runs.into_iter().map(|run| run.name.to_string()).collect())
}

/// Names of the state of the run that the words name, one level below the path so far.
pub(crate) fn paths(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let base = current.rfind('.').map_or("", |at| &current[..=at]);
    let names = names_below(base).unwrap_or_default();
    let names: Vec<String> = names.iter().map(|name| format!("{base}{name}")).collect();
    candidates(names.iter().map(String::as_str), OsStr::new(&*current))
}

fn names_below(base: &str) -> Option<Vec<String>> {
    let store = context::read_store(&global()).ok()?;
    let (rev, run) = words().iter().find_map(|word| {
        let rev = Address::parse(word).ok().filter(|rev| rev.bundle.is_none())?;
        let run = rev.run_in(&store, &[]).ok()?;
        Some((rev, run))
    })?;
    let trace = dendrer::Trace::open(&store, &run).ok()?;
    let tick = rev.pos.as_ref().unwrap_or(&Position::Tip).tick(&trace).ok()?;
    let state = trace.state(tick).ok()?;
    let place = dendrer::address::state_path(base.trim_end_matches('.')).ok()?;
    let object = place.get(&state)?.as_object()?;
    Some(object.iter().map(|(name, _)| name.to_string()).filter(|name| plain(name)).collect())
}

fn plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-.".contains(&c))
}

/// Predicates that are always there.
pub(crate) fn predicates(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(BUILT_IN.iter().copied(), current)
}

/// Codes.
pub(crate) fn codes(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(Code::ALL.iter().map(|code| code.as_str()), current)
}

/// Names of schemas.
pub(crate) fn schema_names(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(schemas::names().into_iter(), current)
}

/// Shells.
pub(crate) fn shell_names(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(SHELLS.iter().copied(), current)
}

/// Returns an offer of fixed names.
pub(crate) fn names(names: Vec<String>) -> impl Fn(&OsStr) -> Vec<CompletionCandidate> {
    move |current| candidates(names.iter().map(String::as_str), current)
}
