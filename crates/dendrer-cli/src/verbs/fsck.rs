//! `dendrer fsck`: every file of a store against its log. What `verify` answers for runs and proofs, this answers for
//! files: which are damaged, what that costs, which follow from the log and which do not belong.

use clap::Args;
use dendrer::care::spare::{self, Fit};
use dendrer::store::embedded::{Embedded, IndexState, KeptWhat, Report, TilesState, VerifyOptions};
use dendrer::store::prelude::*;
use dendrer::store::{Damage, DamageKind};
use dendrer_object::Value;
use dendrer_view::{count, document, quote};
use std::sync::Arc;

use crate::context;
use crate::failure::Result;
use crate::global::Global;
use crate::keys;
use crate::keys::ANOTHER_LOG;
use crate::mark;
use crate::mark::Mark;
use crate::out::Out;
use crate::out::Style;
use crate::progress::Progress;
use dendrer::care::restore::other_log;

/// `fsck`
#[derive(Debug, Args)]
pub(crate) struct Fsck {}

/// What was found out about one kind of file.
struct Line {
    file: String,
    /// `ok`, `damaged`, `derived` for what is wrong and follows from the log, `left over`, `foreign`, `note`.
    state: &'static str,
    code: Option<&'static str>,
    what: String,
}

impl Line {
    fn new(file: &str, state: &'static str, what: impl Into<String>) -> Line {
        Line { file: file.to_owned(), state, code: None, what: what.into() }
    }
}

pub(crate) fn run(global: &Global, out: &mut Out) -> Result {
    let path = context::find(global)?;
    let mut store = Arc::new(context::embedded(global, &path, global.reads())?);
    let progress = Progress::start(global, "fsck", "records", Some(store.tree().size));
    let options = VerifyOptions { index: true, done: Some(progress.counter()), ..VerifyOptions::default() };
    let report = store.verify(&options)?;
    drop(progress);
    let mut lines = log_lines(&store, &report);
    if let Some(other) = other_log(&store) {
        let failure = crate::failure::Failure::from(other);
        let place = failure.place.iter().map(|(what, value)| format!("{what} {value}")).collect::<Vec<_>>();
        let what = format!("{}: {}", failure.message, place.join(", "));
        lines.push(Line { code: Some(failure.code), ..Line::new("backup.json", "damaged", what) });
    }
    let mark = store.mark()?;
    let hidden = mark.as_ref().is_some_and(Mark::hides);
    if let Some(mark) = &mark {
        let line = |state, what| Line::new("backup.json", state, what);
        let hidden = mark::hides(mark).map(|why| Line { code: Some(ANOTHER_LOG), ..line("damaged", why) });
        lines.extend(hidden);
        lines.extend(mark::closes(mark).or_else(|| mark::unfinished(mark)).map(|what| line("note", what)));
    }
    // The files of a log that was put back to before are whole.
    lines.extend(
        keys::doubt(Arc::get_mut(&mut store).expect("no trace is open yet"))?
            .map(|(_, why)| Line::new("heads", "note", why)),
    );
    lines.push(index_line(&store, &report));
    lines.extend(snapshot_lines(global, &store)?);
    lines.push(match store.tiles_state()? {
        TilesState::Absent => Line::new("log/", "ok", "no tiles; they are laid out when the log is signed"),
        TilesState::Ready(size) => Line::new("log/", "ok", format!("tiles of {}", records(size))),
        TilesState::Wrong => Line::new(
            "log/",
            "derived",
            "tiles that are not those of the log; laid out again when it is signed",
        ),
    });
    let held = if store.is_lock_free()? { "free" } else { "held: somebody is writing" };
    lines.push(Line::new("lock", "ok", held));
    lines.extend(store.leftovers()?.into_iter().map(|file| {
        Line::new(
            &file.file,
            "left over",
            format!("{}, of interrupted work", count(file.bytes, "byte", "bytes")),
        )
    }));
    lines.extend(
        store.foreign()?.into_iter().map(|file| Line::new(&file.file, "foreign", "no file of a store")),
    );
    let damaged = lines.iter().any(|line| line.code.is_some());
    let lost = lost(&report).filter(|lost| *lost > 0 || !hidden);
    if !out.is_text() {
        out.document(&to_json(&path.display().to_string(), &report, &lines, lost, damaged))?;
        return Ok(if damaged { 4 } else { 0 });
    }
    print(&path.display().to_string(), &lines, lost, damaged, hidden, out)?;
    if hidden {
        out.say("note: without the mark it is a store again, with all of its records");
        out.help(&mark::unmark(&path).each_ref().map(String::as_str));
    }
    Ok(if damaged { 4 } else { 0 })
}

fn records(size: u64) -> String {
    count(size, "record", "records")
}

/// How many records of the log do not open as they were committed. Of another log than the one that was signed each may open, and
/// how many are others is not known.
fn lost(report: &Report) -> Option<u64> {
    let is_of_another = |damage: &Damage| matches!(damage.kind, DamageKind::Root | DamageKind::Loss);
    match report.tree.size.max(report.checkpoint.unwrap_or(0)).saturating_sub(report.records) {
        0 if report.findings.iter().any(is_of_another) => None,
        lost => Some(lost),
    }
}

fn is_of_index(damage: &Damage) -> bool {
    damage.kind == DamageKind::Index
}

fn log_lines(store: &Embedded, report: &Report) -> Vec<Line> {
    let mut lines = Vec::new();
    for damage in report.findings.iter().filter(|damage| !is_of_index(damage)) {
        lines.push(Line {
            code: Some(damage.code()),
            ..Line::new(&damage.place.file, "damaged", damage.to_string())
        });
    }
    if lines.iter().all(|line| !line.file.starts_with("segments")) {
        let root =
            if report.root_checked { format!(", root {}", report.tree.root.short()) } else { String::new() };
        lines.push(Line::new("segments/", "ok", format!("{}{root}", records(report.tree.size))));
    }
    if report.unfinished {
        lines.push(Line::new(
            "segments/",
            "note",
            "bytes behind the last group, never acknowledged; the next writer cuts them",
        ));
    }
    if lines.iter().all(|line| line.file != "checkpoint") {
        lines.push(match report.checkpoint {
            Some(size) => Line::new("checkpoint", "ok", format!("signed up to {}", records(size))),
            None => Line::new("checkpoint", "ok", "nothing was signed yet"),
        });
    }
    lines.push(Line::new("store.json", "ok", format!("store {}", store.info().id)));
    lines
}

fn damaged(why: &str) -> Line {
    Line::new(
        "index.sqlite",
        "derived",
        format!("damaged ({why}), so nobody believes it; dendrer doctor --fix makes it anew"),
    )
}

fn index_line(store: &Embedded, report: &Report) -> Line {
    const FILE: &str = "index.sqlite";
    let of_index = |damage: &&Damage| is_of_index(damage);
    if let Some(damage) = report.findings.iter().find(of_index) {
        return match damage.what {
            "index" => damaged(&damage.found),
            _ => Line { code: Some(damage.code()), ..Line::new(FILE, "derived", damage.to_string()) },
        };
    }
    match store.index_state() {
        IndexState::Ready(size) => Line::new(FILE, "ok", format!("{} as the log says", records(size))),
        IndexState::Absent => Line::new(FILE, "ok", "none yet; a small store needs none"),
        IndexState::Corrupt(why) => damaged(&why),
        IndexState::Newer(version) => {
            Line::new(FILE, "note", format!("of a newer version ({version}), not looked at"))
        }
        IndexState::Unreadable(why) => Line::new(FILE, "note", format!("cannot be opened here ({why})")),
        IndexState::Unused => {
            Line::new(FILE, "note", "not looked at, because the log cannot be read to its end")
        }
    }
}

/// Checks each state that is kept against the record that it is of.
fn snapshot_lines(global: &Global, store: &Arc<Embedded>) -> Result<Vec<Line>> {
    let rows = store.kept_rows()?;
    let snapshots: Vec<_> = rows
        .iter()
        .filter_map(|row| match row.what {
            KeptWhat::Snapshot(tick) => Some((&row.run, tick)),
            KeptWhat::Verdicts(_) => None,
        })
        .collect();
    let progress = Progress::start(global, "fsck", "snapshots", Some(snapshots.len() as u64));
    let mut lines = Vec::new();
    for (at, (run, tick)) in (1..).zip(&snapshots) {
        let what = match spare::judge_snapshot(store, run, *tick).unwrap_or(Fit::Nothing) {
            Fit::Whole => None,
            Fit::StateAlone => Some(format!(
                "a snapshot of {run}@{tick} whose counters are not what the key of the store signed; nobody rests on those"
            )),
            Fit::Nothing => Some(format!("a snapshot that is not the state of {run}@{tick}; nobody uses it")),
        };
        lines.extend(what.map(|what| Line::new("index.sqlite", "derived", what)));
        progress.set(at);
    }
    if lines.is_empty() && !snapshots.is_empty() {
        let what =
            format!("{}, each the state on record", count(snapshots.len() as u64, "snapshot", "snapshots"));
        lines.push(Line::new("index.sqlite", "ok", what));
    }
    Ok(lines)
}

fn to_json(path: &str, report: &Report, lines: &[Line], lost: Option<u64>, damaged: bool) -> Value {
    let item = |line: &Line| {
        Value::record([
            ("file", Value::from(line.file.as_str())),
            ("state", Value::from(line.state)),
            ("code", line.code.map_or(Value::Null, Value::from)),
            ("what", Value::from(line.what.as_str())),
        ])
    };
    document(
        "fsck",
        [
            ("name", Value::from(path)),
            ("intact", Value::from(!damaged)),
            ("records", Value::from(report.tree.size)),
            ("lost", Value::from(lost)),
            ("items", Value::array(lines.iter().map(item))),
        ],
    )
}

fn print(
    path: &str,
    lines: &[Line],
    lost: Option<u64>,
    damaged: bool,
    hidden: bool,
    out: &mut Out,
) -> Result<()> {
    let width = lines.iter().map(|line| line.file.chars().count()).max().unwrap_or(0).min(30);
    for line in lines {
        let style = match line.state {
            "ok" => Style::Good,
            "damaged" => Style::Bad,
            _ => Style::Warn,
        };
        let state = out.paint(style, &format!("{:<9}", line.state));
        let code = line.code.map(|code| format!("error[{code}]: ")).unwrap_or_default();
        out.line(format!(
            "{state}  {:<width$}  {code}{}",
            quote::escape(&line.file),
            quote::escape(&line.what)
        ))?;
    }
    let ill = lines.iter().filter(|line| line.state == "damaged").count();
    if ill > 0 {
        let what = match lost {
            None if hidden => "not known: nothing behind the mark was looked at".to_owned(),
            None => {
                "not known: each record opens, and together they are not the log that was signed".to_owned()
            }
            Some(0) => "no record: each still opens as it was committed".to_owned(),
            Some(lost) => format!("{}; every other one opens as it was committed", records(lost)),
        };
        out.line(format!("lost       {what}"))?;
    }
    let word = if damaged { out.paint(Style::Bad, "DAMAGED") } else { out.paint(Style::Good, "INTACT") };
    out.line(format!("{word}   {}", quote::escape(path)))?;
    if lines.iter().any(|line| matches!(line.state, "derived" | "left over")) {
        out.help(&["dendrer", "doctor", "--fix"]);
    }
    if ill > usize::from(hidden) {
        out.help(&["dendrer", "restore", "BACKUP", "--replace"]);
    }
    Ok(())
}
