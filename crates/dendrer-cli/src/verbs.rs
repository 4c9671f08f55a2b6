//! The verbs, one file each.

mod backtrack;
mod backup;
mod bisect;
mod casebook;
mod cherrypick;
mod commit;
mod completions;
mod conflicts;
mod contract;
mod demo;
mod diff;
mod doctor;
mod explain;
mod export;
mod extend;
mod fork;
mod fsck;
mod gc;
mod help;
mod import;
mod init;
mod intents;
mod log;
mod man;
mod merge;
mod pack;
mod predicate;
mod rebase;
mod reduce;
mod replay;
mod restore;
mod runs;
mod schema;
pub(crate) mod shape;
mod show;
mod state;
mod verify;
mod version;
mod why;

use dendrer_object::Value;

use crate::args::{Global, Verb};
use crate::failure::Result;
use crate::out::{Out, now_ms};

pub(crate) use dendrer::ask_runs::all_runs;
pub(crate) use dendrer::casebook::is_casebook_run as is_casebook;

/// Runs a verb and returns the exit code.
pub(crate) fn run(global: &Global, verb: &Verb, out: &mut Out) -> Result {
    if shape::asks_for_fields(global) {
        return list_fields(verb, out);
    }
    match verb {
        Verb::Init(args) => init::run(global, args, out),
        Verb::Demo(args) => demo::run(global, args, out),
        Verb::Commit(args) => commit::run(global, args, out),
        Verb::Import(args) => import::run(global, args, out),
        Verb::Runs(args) => runs::run(global, args, out),
        Verb::Log(args) => log::run(global, args, out),
        Verb::Show(args) => show::run(global, args, out),
        Verb::State(args) => state::run(global, args, out),
        Verb::Verify(args) => verify::run(global, args, out),
        Verb::Replay(args) => replay::run(global, args, out),
        Verb::Diff(args) => diff::run(global, args, out),
        Verb::Bisect(args) => bisect::run(global, args, out),
        Verb::Backtrack(args) => backtrack::run(global, args, out),
        Verb::Why(args) => why::run(global, args, out),
        Verb::Predicate(verb) => predicate::run(global, verb, out),
        Verb::Export(args) => export::run(global, args, out),
        Verb::Pack(verb) => pack::run(global, verb, out),
        Verb::Cherrypick(args) => cherrypick::run(global, args, out),
        Verb::Contract(verb) => contract::run(global, verb, out),
        Verb::Fork(args) => fork::run(global, args, out),
        Verb::Rebase(args) => rebase::run(global, args, out),
        Verb::Merge(args) => merge::run(global, args, out),
        Verb::Conflicts(verb) => conflicts::run(global, verb, out),
        Verb::Label(args) => casebook::label(global, args, out),
        Verb::Note(args) => casebook::note(global, args, out),
        Verb::Reduce(args) => reduce::run(global, args, out),
        Verb::Backup(args) => backup::run(global, args, out),
        Verb::Restore(args) => restore::run(global, args, out),
        Verb::Fsck => fsck::run(global, out),
        Verb::Gc(args) => gc::run(global, args, out),
        Verb::Doctor(args) => doctor::run(global, args, out),
        Verb::Explain(args) => explain::run(args, out),
        Verb::Schema(args) => schema::run(args, out),
        Verb::Version => version::run(out),
        Verb::Man(args) => man::run(args, out),
        Verb::Completions(args) => completions::run(args, out),
        Verb::Help(args) => help::run(args, out),
    }
}

fn list_fields(verb: &Verb, out: &mut Out) -> Result {
    let fields = shape::fields(verb);
    if !out.is_text() {
        out.document(&fields)?;
        return Ok(0);
    }
    for field in fields.get("items").and_then(Value::as_array).into_iter().flat_map(|list| list.iter()) {
        out.line(field.get("name").and_then(Value::as_str).unwrap_or_default())?;
    }
    Ok(0)
}

/// What `dendrer` alone prints.
pub(crate) const WELCOME: &str = "\
dendrer: version control for the runs of AI agents

Records what an agent proposed, what was allowed and which state followed; proves that the record is
what was committed; replays it without a model or a tool; finds the first tick that went wrong.

  dendrer demo            make a sample store and take a tour
  dendrer init            create a store here
  dendrer commit --run R  record intents, as JSON lines on standard input
  dendrer import FILE     bring in a trace that another program wrote
  dendrer help            all verbs
";

/// Returns what stands behind a byte order mark, which belongs to a file and not to any value in it.
pub(crate) fn behind_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}
