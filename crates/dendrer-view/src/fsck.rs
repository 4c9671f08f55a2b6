//! The files of a store, compared with its log.

use std::path::Path;

use dendrer::care::check::{FileFact, FilesReport};
use dendrer::care::problem::unsound;
use dendrer::store::{IndexState, TilesState};
use dendrer_object::{Code, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::care::doubt_words;
use crate::layout::{columns, pad};
use crate::{count, mark, quote};

/// A fact in words.
struct FileLine {
    file: String,
    /// `ok`, `damaged`, `derived` for a fault in what follows from the log, `left over`, `foreign` or `note`.
    state: &'static str,
    code: Option<Code>,
    what: String,
}

impl FileLine {
    fn new(file: &str, state: &'static str, what: impl Into<String>) -> FileLine {
        FileLine { file: file.to_owned(), state, code: None, what: what.into() }
    }

    fn with(self, code: Code) -> FileLine {
        FileLine { code: Some(code), ..self }
    }
}

document! {
    /// The files of a store, compared with its log
    pub object FsckDocument: "fsck" (report: &FilesReport) {
        let lines = file_lines(report);
        /// The path of the store
        name: &Path = &report.path,
        /// Whether no file is damaged
        intact: bool = lines.iter().all(|line| line.code.is_none()),
        /// The number of records in the log
        records: u64 = report.size,
        /// The number of records that do not open; null if it is not known
        lost: Option<u64> = report.lost,
        /// The files
        items: Vec<FileObject> = lines.iter().map(FileObject::of).collect(),
    }

    /// A file of a store
    object FileObject(line: &FileLine) {
        /// The file, below the store
        file: &str = &line.file,
        /// The state of the file; derived is a fault in what follows from the log
        state: ["ok" | "damaged" | "derived" | "left over" | "foreign" | "note"] = line.state,
        /// The code of the fault
        code: Option<Code> = line.code,
        /// The finding in words
        what: &str = &line.what,
    }
}

impl Answer for FilesReport {
    fn document(&self) -> Value {
        FsckDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let found = file_lines(self);
        let width = found.iter().map(|line| columns(&quote::escape(&line.file))).max().unwrap_or(0).min(30);
        let mut lines: Vec<Line> = found.iter().map(|line| text_line(line, width)).collect();
        let ill = found.iter().filter(|line| line.state == "damaged").count();
        if ill > 0 {
            let what = match self.lost {
                None if self.is_hidden => "not known: nothing behind the mark was looked at".to_owned(),
                None => "not known: each record opens, and together they are not the log that was signed"
                    .to_owned(),
                Some(0) => "no record: each still opens as it was committed".to_owned(),
                Some(lost) => format!("{}; every other one opens as it was committed", records(lost)),
            };
            lines.push(format!("lost       {what}").into());
        }
        let word = match found.iter().any(|line| line.code.is_some()) {
            true => Line::styled(Style::Bad, "DAMAGED"),
            false => Line::styled(Style::Good, "INTACT"),
        };
        lines.push(word.then(format!("   {}", quote::escape(&self.path.display().to_string()))));
        if found.iter().any(|line| matches!(line.state, "derived" | "left over")) {
            lines.push(Line::help(["dendrer", "doctor", "--fix"]));
        }
        if ill > usize::from(self.is_hidden) {
            lines.push(Line::help(["dendrer", "restore", "BACKUP", "--replace"]));
        }
        if self.is_hidden {
            lines.push(Line::note("note: without the mark it is a store again, with all of its records"));
            lines.push(Line::help(mark::unmark(&self.path)));
        }
        lines
    }

    fn end(&self) -> End {
        let code = file_lines(self).iter().find_map(|line| line.code);
        code.map_or(End::Answered, End::Problem)
    }
}

fn text_line(line: &FileLine, width: usize) -> Line {
    let style = match line.state {
        "ok" => Style::Good,
        "damaged" => Style::Bad,
        _ => Style::Warn,
    };
    let code = line.code.map(|code| format!("error[{code}]: ")).unwrap_or_default();
    let (file, what) = (pad(&quote::escape(&line.file), width), quote::escape(&line.what));
    Line::styled(style, format!("{:<9}", line.state)).then(format!("  {file}  {code}{what}"))
}

fn records(size: u64) -> String {
    count(size, "record", "records")
}

fn file_lines(report: &FilesReport) -> Vec<FileLine> {
    report.facts.iter().filter_map(file_line).collect()
}

fn file_line(fact: &FileFact) -> Option<FileLine> {
    const INDEX: &str = "index.sqlite";
    const MARK: &str = "backup.json";
    const VAULT: &str = "vault/";
    Some(match fact {
        FileFact::Damage(damage) => {
            FileLine::new(&damage.place.file, "damaged", damage.to_string()).with(damage.code())
        }
        FileFact::Log { size, root } => {
            let root = root.map(|root| format!(", root {}", root.short())).unwrap_or_default();
            FileLine::new("segments/", "ok", format!("{}{root}", records(*size)))
        }
        FileFact::Unfinished => FileLine::new(
            "segments/",
            "note",
            "bytes behind the last group, never acknowledged; the next writer cuts them",
        ),
        FileFact::Checkpoint(Some(size)) => {
            FileLine::new("checkpoint", "ok", format!("signed up to {}", records(*size)))
        }
        FileFact::Checkpoint(None) => FileLine::new("checkpoint", "ok", "nothing was signed yet"),
        FileFact::Descriptor(id) => FileLine::new("store.json", "ok", format!("store {id}")),
        FileFact::Unsound(why) => {
            let problem = unsound(why);
            let place: Vec<String> =
                problem.place.iter().map(|(what, value)| format!("{what} {value}")).collect();
            let what = format!("{}: {}", problem.message, place.join(", "));
            FileLine::new(MARK, "damaged", what).with(why.code())
        }
        FileFact::Mark(found) => match mark::hides(found) {
            Some(why) => FileLine::new(MARK, "damaged", why).with(Code::E0307),
            None => FileLine::new(MARK, "note", mark::closes(found).or_else(|| mark::unfinished(found))?),
        },
        FileFact::Doubt(warning) => FileLine::new("heads", "note", doubt_words(warning)),
        FileFact::IndexDiffers(damage) => {
            FileLine::new(INDEX, "derived", damage.to_string()).with(damage.code())
        }
        FileFact::Index(state) => match state {
            IndexState::Ready(size) => {
                FileLine::new(INDEX, "ok", format!("{} as the log says", records(*size)))
            }
            IndexState::Absent => FileLine::new(INDEX, "ok", "none yet; a small store needs none"),
            IndexState::Corrupt(why) => FileLine::new(
                INDEX,
                "derived",
                format!("damaged ({why}), so nobody believes it; dendrer doctor --fix makes it anew"),
            ),
            IndexState::Newer(version) => {
                FileLine::new(INDEX, "note", format!("of a newer version ({version}), not looked at"))
            }
            IndexState::Locked => FileLine::new(INDEX, "note", "locked by another program, so not looked at"),
            IndexState::Unreadable(why) => {
                FileLine::new(INDEX, "note", format!("cannot be opened here ({why})"))
            }
            IndexState::Unused => {
                FileLine::new(INDEX, "note", "not looked at, because the log cannot be read to its end")
            }
        },
        FileFact::Snapshot { run, tick, is_state } => {
            let what = match is_state {
                true => format!(
                    "a snapshot of {run}@{tick} whose counters are not what the key of the store signed; nobody rests on those"
                ),
                false => {
                    format!("a snapshot that is not the state of {run}@{tick}; nobody uses it")
                }
            };
            FileLine::new(INDEX, "derived", what)
        }
        FileFact::Snapshots(number) => {
            let what = format!("{}, each the state on record", count(*number, "snapshot", "snapshots"));
            FileLine::new(INDEX, "ok", what)
        }
        FileFact::Tiles(TilesState::Absent) => {
            FileLine::new("log/", "ok", "no tiles; they are laid out when the log is signed")
        }
        FileFact::Tiles(TilesState::Ready(size)) => {
            FileLine::new("log/", "ok", format!("tiles of {}", records(*size)))
        }
        FileFact::Tiles(TilesState::Wrong) => FileLine::new(
            "log/",
            "derived",
            "tiles that are not those of the log; laid out again when it is signed",
        ),
        FileFact::Vault(report) => match report.damaged.as_slice() {
            [] => {
                let values = count(report.entries, "value", "values");
                let parts = count(report.files, "part", "parts");
                let how = if report.was_read { "each read" } else { "not read: its key is not here" };
                FileLine::new(VAULT, "ok", format!("{values} in {parts}, {how}"))
            }
            [first, more @ ..] => {
                let file = format!("{VAULT}{}", first.hex());
                let more = match more.len() {
                    0 => String::new(),
                    more => format!(", and {}", count(more as u64, "other part", "other parts")),
                };
                let what = format!("not what was put there, or missing{more}; the log is whole without it");
                FileLine::new(&file, "damaged", what).with(Code::E0305)
            }
        },
        FileFact::Lock(is_free) => {
            FileLine::new("lock", "ok", if *is_free { "free" } else { "held: somebody is writing" })
        }
        FileFact::Leftover(file) => {
            let size = count(file.bytes, "byte", "bytes");
            FileLine::new(&file.file, "left over", format!("{size}, of interrupted work"))
        }
        FileFact::Foreign(file) => FileLine::new(&file.file, "foreign", "no file of a store"),
    })
}
