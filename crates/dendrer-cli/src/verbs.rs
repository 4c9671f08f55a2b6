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

use std::time::{Duration, SystemTime};

use dendrer_object::{Timestamp, Value};

use crate::args::Verb;
use crate::failure::Result;
use crate::global::{Global, TimeChoice};
use crate::out::Out;

pub(crate) use casebook::is_casebook;
pub(crate) use runs::all as all_runs;

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

/// The time of the clock in milliseconds since 1970, whatever it is set to.
fn now_ms() -> i64 {
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    SystemTime::UNIX_EPOCH.elapsed().map_or_else(|before| -ms(before.duration()), ms)
}

/// Writes a time as asked; nothing for `--time none`.
fn time(ts: Timestamp, choice: TimeChoice) -> String {
    match choice {
        TimeChoice::None => String::new(),
        TimeChoice::Utc => ts.to_string(),
        TimeChoice::Relative => relative(ts.ms(), now_ms()),
        TimeChoice::Local => {
            let ms = i64::try_from(ts.ms()).unwrap_or(i64::MAX);
            match jiff::Timestamp::from_millisecond(ms) {
                Ok(time) => {
                    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
                }
                Err(_) => ts.to_string(),
            }
        }
    }
}

/// Says how long ago a time was. A clock that went back since shows times to come.
fn relative(ms: u64, now: i64) -> String {
    let passed = now.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX));
    let seconds = passed.unsigned_abs() / 1000;
    let units = [(86_400 * 365, "year"), (86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds >= *size).unwrap_or((1, "second"));
    let text = dendrer_view::count(seconds / size, unit, &format!("{unit}s"));
    if passed < 0 { format!("in {text}") } else { format!("{text} ago") }
}

/// Writes a value over several lines, two blanks a level, as deep as asked.
fn pretty(value: &Value, indent: usize, depth: Option<usize>, lines: &mut Vec<String>, lead: &str) {
    use dendrer_view::quote;
    let pad = "  ".repeat(indent);
    let closed = depth == Some(0);
    match value {
        Value::Object(object) if closed && !object.is_empty() => {
            lines.push(format!("{pad}{lead}{{... {} members}}", object.len()))
        }
        Value::Array(array) if closed && !array.is_empty() => {
            lines.push(format!("{pad}{lead}[... {} items]", array.len()))
        }
        Value::Object(object) if !object.is_empty() => {
            lines.push(format!("{pad}{lead}{{"));
            for (name, member) in object.iter() {
                pretty(
                    member,
                    indent + 1,
                    depth.map(|depth| depth - 1),
                    lines,
                    &format!("{}: ", quote::quoted(name)),
                );
            }
            lines.push(format!("{pad}}}"));
        }
        Value::Array(array) if !array.is_empty() => {
            lines.push(format!("{pad}{lead}["));
            for item in array.iter() {
                pretty(item, indent + 1, depth.map(|depth| depth - 1), lines, "");
            }
            lines.push(format!("{pad}]"));
        }
        other => lines.push(format!("{pad}{lead}{}", quote::value(other))),
    }
}

/// Returns what stands behind a byte order mark, which belongs to a file and not to any value in it.
pub(crate) fn behind_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_times_take_the_largest_unit_that_fits() {
        for (passed, text) in [
            (0, "0 seconds ago"),
            (1_000, "1 second ago"),
            (59_999, "59 seconds ago"),
            (60_000, "1 minute ago"),
            (7_300_000, "2 hours ago"),
            (86_400_000 * 364, "364 days ago"),
            (86_400_000 * 800, "2 years ago"),
            (-61_000, "in 1 minute"),
        ] {
            assert_eq!(relative(1_771_833_600_000, 1_771_833_600_000 + passed), text);
        }
    }
}
