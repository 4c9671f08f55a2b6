//! The answer of `import`: a run that was made of a source, or that would be.

use dendrer::kernel::unknown::Since;
use dendrer_object::{Code, Digest, Pointer, Record, RunName, Value, tag};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::certainty::{unknown_line, unknown_member};
use crate::reduce::{error_lines, errors_json};
use crate::{count, document, log, quote};

/// A note of an import on one place of its source.
#[derive(Debug, Clone)]
pub struct ImportNoteShown {
    /// The tick that it concerns; 0 is the run itself.
    pub tick: u64,
    /// The kind of the note.
    pub kind: &'static str,
    /// Whether something is missing there.
    pub is_gap: bool,
    /// The text.
    pub message: String,
    /// The place in the source.
    pub path: String,
}

/// An import.
#[derive(Debug, Clone)]
pub struct ImportAnswer {
    /// The run.
    pub run: RunName,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// The kind of the source.
    pub kind: &'static str,
    /// The reasons for that kind.
    pub why: String,
    /// The number of transitions.
    pub ticks: u64,
    /// The number of gaps.
    pub gaps: u64,
    /// The calls that were asked for, those that have a result, and those that failed.
    pub calls: (u64, u64, u64),
    /// Transitions by type.
    pub types: Vec<(String, u64)>,
    /// Transitions by agent.
    pub agents: Vec<(String, u64)>,
    /// Notes by kind.
    pub noted: Vec<(&'static str, u64)>,
    /// The first notes.
    pub notes: Vec<ImportNoteShown>,
    /// Names of what belongs to the run and to no tick; `None` if the source has nothing of the kind.
    pub meta: Option<Vec<String>>,
    /// The digest of the source.
    pub sha256: Digest,
    /// The size of the source in bytes.
    pub bytes: u64,
    /// The last record; `None` if nothing was written.
    pub tip: Option<Digest>,
    /// The pack.
    pub pack: Option<Digest>,
    /// The ticks at which a rule of the pack failed.
    pub errors: Vec<(u64, String)>,
    /// The places of the last state that are unknown, each with its cause.
    pub unknown: Vec<(Pointer, Since)>,
    /// The first transitions, each with its tick.
    pub first: Vec<(u64, Record)>,
    /// Of a chain: lines whose hash is wrong, and lines that redaction changes.
    pub rows: Option<(Vec<u64>, Vec<u64>)>,
}

impl Answer for ImportAnswer {
    fn document(&self) -> Value {
        let counts = |pairs: Vec<(&str, u64)>| {
            Value::record(pairs.into_iter().map(|(name, count)| (tag::stored_name(name), Value::from(count))))
        };
        let by_name = |pairs: &[(String, u64)]| {
            let pairs = pairs.iter().map(|(name, count)| (name.as_str(), *count));
            counts(pairs.collect())
        };
        let (calls, paired, failed) = self.calls;
        let meta = self.meta.iter().flatten().map(|name| Value::from(name.as_str()));
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("dry_run", Value::from(self.dry_run)),
            ("kind", Value::from(self.kind)),
            ("why", Value::from(self.why.as_str())),
            ("stage", Value::from(0u64)),
            ("ticks", Value::from(self.ticks)),
            ("gaps", Value::from(self.gaps)),
            ("calls", Value::from(calls)),
            ("results_paired", Value::from(paired)),
            ("results_failed", Value::from(failed)),
            ("types", by_name(&self.types)),
            ("agents", by_name(&self.agents)),
            ("noted", counts(self.noted.clone())),
            ("notes", Value::array(self.notes.iter().map(note_json))),
            ("meta", Value::array(meta)),
            ("sha256", Value::from(self.sha256)),
            ("bytes", Value::from(self.bytes)),
            ("tip", Value::from(self.tip)),
            ("pack", Value::from(self.pack)),
            ("errors", errors_json(&self.errors)),
            ("items", Value::array(self.first.iter().map(|(_, record)| item(record)))),
        ];
        let lines = |lines: &[u64]| Value::array(lines.iter().map(|line| Value::from(*line)));
        let rows = self
            .rows
            .iter()
            .flat_map(|(bad, changed)| [("bad_hash", lines(bad)), ("changed", lines(changed))]);
        document("import", members.into_iter().chain(rows).chain(unknown_member(&self.unknown)))
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut lines = match self.tip {
            Some(tip) => self.done_lines(tip),
            None => self.dry_run_lines(page),
        };
        lines.extend(self.notes.iter().map(note_line));
        let all: u64 = self.noted.iter().map(|(_, count)| count).sum();
        let rest = all - self.notes.len() as u64;
        if rest > 0 {
            lines.push(Line::note(format!("WARN and {rest} more; --json counts them by kind")));
        }
        if let Some((_, changed)) = self.rows.as_ref().filter(|(_, changed)| !changed.is_empty()) {
            let changed = count(changed.len() as u64, "line", "lines");
            lines.push(Line::note(format!(
                "secrets were taken out of {changed}; the exact file is in the vault"
            )));
        }
        lines
    }
}

impl ImportAnswer {
    fn done_lines(&self, tip: Digest) -> Vec<Line> {
        let (run, ticks) = (self.run.as_str(), count(self.ticks, "tick", "ticks"));
        let gaps = count(self.gaps, "gap", "gaps");
        let mut lines = vec![Line::from(format!("imported {run}: {ticks}, {gaps}, tip {}", tip.short()))];
        lines.extend(error_lines(&self.errors));
        lines.extend(unknown_line(&self.unknown));
        lines.push(Line::note(
            "note: stage 0: the record is what the source says; nothing was enforced when it was made",
        ));
        lines.push(match self.calls.2 {
            0 => Line::help(["dendrer", "log", run]),
            _ => Line::help(["dendrer", "bisect", run, "--holds", "state.counters.tool_errors == 0"]),
        });
        lines
    }

    fn dry_run_lines(&self, page: &Page) -> Vec<Line> {
        let (calls, paired, failed) = self.calls;
        let types: Vec<String> = self.types.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let mut lines = vec![
            Line::from(format!("kind       {} ({})", self.kind, self.why)),
            Line::from(format!(
                "would make run  {}   stage 0, {}, {}",
                self.run,
                count(self.ticks, "tick", "ticks"),
                count(self.agents.len() as u64, "agent", "agents")
            )),
            Line::from(format!("types      {}", types.join(", "))),
            Line::from(format!("calls      {calls} asked for, {paired} answered, {failed} failed")),
        ];
        lines.extend(self.meta.as_ref().map(|names| {
            let names: Vec<String> = names.iter().map(|name| quote::escape(name)).collect();
            Line::from(format!("meta       {}", names.join(", ")))
        }));
        lines.extend(self.first.iter().map(|(tick, record)| {
            let row = log::row(record);
            let line = format!("tick {tick}  {}  {}  {}", row.agent, row.type_name, row.summary);
            Line::from(quote::shorten(&line, page.width.unwrap_or(160)))
        }));
        lines.extend(error_lines(&self.errors));
        lines.push("nothing was written (dry run)".into());
        lines
    }
}

fn item(record: &Record) -> Value {
    let row = log::row(record);
    Value::record([
        ("agent", Value::from(row.agent.as_str())),
        ("summary", Value::from(row.summary.as_str())),
        ("tick", Value::from(row.tick)),
        ("type", Value::from(record.header().type_name.as_ref().map(|name| name.to_string()))),
    ])
}

fn note_json(note: &ImportNoteShown) -> Value {
    Value::record([
        ("gap", Value::from(note.is_gap)),
        ("kind", Value::from(note.kind)),
        ("message", Value::from(note.message.as_str())),
        ("path", Value::from(note.path.as_str())),
        ("tick", Value::from(note.tick)),
    ])
}

fn note_line(note: &ImportNoteShown) -> Line {
    let gap = if note.is_gap { " (a gap)" } else { "" };
    let text = format!(
        "WARN tick {}: {}{gap}: {} at {}",
        note.tick,
        note.kind,
        quote::shorten(&quote::escape(&note.message), 200),
        quote::shorten(&quote::escape(&note.path), 100)
    );
    Line::note(text).paint(Style::Warn)
}

/// The imports of a directory.
#[derive(Debug, Clone, Default)]
pub struct ImportsAnswer {
    /// What was imported, or would be.
    pub made: Vec<ImportAnswer>,
    /// How many sources are in the store already.
    pub there: u64,
    /// Files that could not be imported, each with its code and message.
    pub failed: Vec<(String, Code, String)>,
}

impl Answer for ImportsAnswer {
    fn document(&self) -> Value {
        let failed = self.failed.iter().map(|(file, code, message)| {
            let members = [
                ("file", Value::from(file.as_str())),
                ("code", Value::from(*code)),
                ("message", Value::from(message.as_str())),
            ];
            Value::record(members)
        });
        let members = [
            ("there", Value::from(self.there)),
            ("failed", Value::array(failed)),
            ("items", Value::array(self.made.iter().map(Answer::document))),
        ];
        document("imports", members)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut lines: Vec<Line> = self.made.iter().flat_map(|made| made.lines(page)).collect();
        lines.extend(self.failed.iter().map(|(file, code, message)| {
            Line::styled(
                Style::Bad,
                format!("FAIL  {}: error[{code}]: {}", quote::escape(file), quote::escape(message)),
            )
        }));
        if self.there > 0 {
            lines.push(Line::note(format!("{} of them were there already", self.there)));
        }
        lines
    }

    fn end(&self) -> End {
        self.failed.first().map_or(End::Answered, |(_, code, _)| End::Problem(*code))
    }
}
