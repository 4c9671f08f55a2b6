//! `dendrer gc`: removes what follows from the log and is not needed. Never the log, so every state stays readable.

use std::sync::Arc;

use clap::Args;
use clap::ValueEnum;
use dendrer::care::spare;
use dendrer::care::spare::Rule;
use dendrer::care::spare::Why;
use dendrer::store::embedded::IndexState;
use dendrer::store::embedded::KeptRow;
use dendrer::store::embedded::KeptWhat;
use dendrer::store::embedded::Leftover;
use dendrer::store::embedded::Options;
use dendrer::store::prelude::*;
use dendrer_object::Timestamp;
use dendrer_object::Value;
use dendrer_view::count;
use dendrer_view::document;
use dendrer_view::quote;
use dendrer_view::thousands;

use crate::context;
use crate::failure::Result;
use crate::global::Global;
use crate::global::now_ms;
use crate::out::Out;
use crate::out::Style;
use crate::progress::Progress;

/// `gc`
#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Say what would go, and remove nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Keep what is derived only of runs that were written to within this time, like 30d, 12h or 2w
    #[arg(long, value_name = "TIME", value_parser = age_arg)]
    pub(crate) keep: Option<u64>,
    /// Keep fewer snapshots of states: it takes up to eight times as long to read one
    #[arg(long, value_enum)]
    pub(crate) snapshots: Option<SnapshotsChoice>,
}

/// How many snapshots are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SnapshotsChoice {
    /// Where the records since the last one outweigh the state four times.
    All,
    /// Where they outweigh it 32 times.
    Thin,
}

/// Reads a time like `30d` as milliseconds.
fn age_arg(text: &str) -> std::result::Result<u64, String> {
    let units = [('h', 3_600_000), ('d', 86_400_000), ('w', 604_800_000u64)];
    let parsed = units.iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        number.checked_mul(*ms)
    });
    parsed.ok_or_else(|| "a number of hours, days or weeks, like 12h, 30d or 2w".to_owned())
}

pub(crate) fn run(global: &Global, args: &Gc, out: &mut Out) -> Result {
    let path = context::find(global)?;
    let options = if args.dry_run { Options::read() } else { Options::write() };
    let store = Arc::new(context::embedded(global, &path, options)?);
    context::refuse_damage(&*store)?;
    let now = u64::try_from(now_ms()).unwrap_or(0);
    let rule = Rule {
        thin: args.snapshots == Some(SnapshotsChoice::Thin),
        since_ms: args.keep.map_or(0, |age| now.saturating_sub(age)),
    };
    let progress = Progress::start(global, "gc", "records", None);
    let counted = progress.watch().over(&store);
    let spare = spare::spare(&counted, &store.kept_rows()?, rule)?;
    drop((counted, progress));
    let mut store = Arc::into_inner(store).expect("no trace is open any more");
    let mut room = store.index_room()?;
    let leftovers = match args.dry_run {
        true => store.leftovers()?,
        false => {
            let rows: Vec<KeptRow> = spare.iter().map(|(row, _)| row.clone()).collect();
            store.remove_kept(&rows)?;
            store.remove_leftovers()?
        }
    };
    if !args.dry_run && store.index_room()? > 0 {
        match store.compact_index() {
            // What was removed from it is told by itself.
            Ok(freed) => room = freed.saturating_sub(spare.iter().map(|(row, _)| row.bytes).sum()),
            Err(error) => {
                room = 0;
                out.say(format!(
                    "note: the index is in use, so its file stays as large as it is for now ({})",
                    quote::escape(&error.to_string())
                ));
            }
        }
    }
    if matches!(store.index_state(), IndexState::Corrupt(_)) {
        out.say("note: the index does not open; dendrer doctor --fix makes it again");
    }
    AppendLog::close(Box::new(store))?;
    say(args, rule, &spare, &leftovers, room, out)?;
    Ok(0)
}

/// A row as an item of the answer: what, of what, how much, why.
fn row_item((row, why): &(KeptRow, Why)) -> Value {
    let (what, tick) = match row.what {
        KeptWhat::Snapshot(tick) => ("snapshot", Some(tick)),
        KeptWhat::Verdicts(_) => ("verdicts", None),
    };
    Value::record([
        ("what", Value::from(what)),
        ("run", Value::from(row.run.as_str())),
        ("tick", Value::from(tick)),
        ("file", Value::Null),
        ("bytes", Value::from(row.bytes)),
        ("why", Value::from(words(*why))),
    ])
}

fn file_item(file: &Leftover) -> Value {
    Value::record([
        ("what", Value::from("file")),
        ("run", Value::Null),
        ("tick", Value::Null),
        ("file", Value::from(file.file.as_str())),
        ("bytes", Value::from(file.bytes)),
        ("why", Value::from("left by interrupted work")),
    ])
}

fn words(why: Why) -> &'static str {
    match why {
        Why::NoSuchTick => "the log has no such run or tick",
        Why::DoesNotFit => "not the state on record, so nobody uses it",
        Why::NotSigned => "not what the key of the store signed",
        Why::TooClose => "too little changed since the one before",
        Why::Old => "nothing was written to the run for so long",
    }
}

fn say(
    args: &Gc,
    rule: Rule,
    spare: &[(KeptRow, Why)],
    leftovers: &[Leftover],
    room: u64,
    out: &mut Out,
) -> Result<()> {
    let bytes =
        spare.iter().map(|(row, _)| row.bytes).chain(leftovers.iter().map(|file| file.bytes)).sum::<u64>();
    if !out.is_text() {
        let items = spare.iter().map(row_item).chain(leftovers.iter().map(file_item));
        return out.document(&document(
            "gc",
            [
                ("dry_run", Value::from(args.dry_run)),
                ("bytes", Value::from(bytes)),
                ("room", Value::from(room)),
                ("items", Value::array(items)),
            ],
        ));
    }
    let verb = if args.dry_run { "would go" } else { "removed" };
    for why in [Why::NoSuchTick, Why::DoesNotFit, Why::NotSigned, Why::TooClose, Why::Old] {
        for (one, many, is) in [
            ("snapshot", "snapshots", true),
            ("kept answer of a predicate", "kept answers of predicates", false),
        ] {
            let of = |(row, found): &&(KeptRow, Why)| {
                *found == why && matches!(row.what, KeptWhat::Snapshot(_)) == is
            };
            let rows: Vec<_> = spare.iter().filter(of).collect();
            if !rows.is_empty() {
                let size = rows.iter().map(|(row, _)| row.bytes).sum::<u64>();
                let rows = count(rows.len() as u64, one, many);
                out.line(format!("{verb}  {rows}, {}: {}", count(size, "byte", "bytes"), words(why)))?;
            }
        }
    }
    for file in leftovers {
        let name = quote::escape(&file.file);
        out.line(format!(
            "{verb}  {name}, {}: left by interrupted work",
            count(file.bytes, "byte", "bytes")
        ))?;
    }
    if room > 0 {
        out.line(format!("{verb}  {} of the index that hold nothing", count(room, "byte", "bytes")))?;
    }
    if spare.is_empty() && leftovers.is_empty() && room == 0 {
        let done = out.paint(Style::Good, "nothing to remove");
        return out.line(done);
    }
    out.line(format!("{} bytes; the log is as it was", thousands(bytes.saturating_add(room))))?;
    if rule.since_ms > 0 {
        out.say(format!(
            "note: runs count as old where nothing was written since {}",
            Timestamp::from_ms(rule.since_ms)
        ));
    }
    if args.dry_run {
        out.say("note: nothing was removed (-n)");
    }
    Ok(())
}
