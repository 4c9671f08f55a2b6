//! The answer of `import`: a run that was made of a source, or that would be.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer::kernel::unknown::Since;
use dendrer::run::pack::{NotedRefusal, RuleNotes};
use dendrer_object::document::{As, Only};
use dendrer_object::{Code, Digest, Object, Pointer, Record, RunName, Value, document, tag};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::certainty::{UnknownPlace, unknown_line, unknown_places};
use crate::layout::{columns, cut, pad};
use crate::reduce::{ERRORS_SHOWN, RefusalIds, RuleError, error_lines, rule_errors};
use crate::{count, log, quote};

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
    /// Meanings that a part may have that was not read.
    pub may: &'static [&'static str],
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
    /// Notes of the rules of the pack.
    pub rules: RuleNotes,
    /// The places of the last state that are unknown, each with its cause.
    pub unknown: Vec<(Pointer, Since)>,
    /// The first transitions, each with its tick.
    pub first: Vec<(u64, Record)>,
    /// Of a chain: lines whose hash is wrong, and lines that redaction changes.
    pub rows: Option<(Vec<u64>, Vec<u64>)>,
    /// Other files whose items are in the run.
    pub gathered: Vec<std::path::PathBuf>,
    /// How many branches the source has, without the current one.
    pub branches: u64,
    /// The forks that they became.
    pub forks: Vec<RunName>,
    /// By place in an item: how often it was read, kept and not read, and what it may state.
    pub places: Vec<(String, u64, u64, u64, &'static [&'static str])>,
}

document! {
    /// What was imported, or would be
    pub object ImportDocument: "import" (answer: &ImportAnswer) {
        let counts = |pairs: &[(String, u64)]| {
            pairs.iter().map(|(name, count)| (tag::stored_name(name), *count)).collect()
        };
        let lines = answer.rows.clone().unzip();
        /// The run
        run: &RunName = &answer.run,
        /// Whether nothing was written
        dry_run: bool = answer.dry_run,
        /// The format of the source
        kind: ["claude-code" | "codex" | "openai-chat" | "anthropic" | "ai-sdk" | "openai-responses" | "jsonl" | "paper" | "cfd" | "carl" | "otlp" | "langsmith" | "langfuse" | "inspect" | "langgraph"] = answer.kind,
        /// The reason for that format
        why: &str = &answer.why,
        /// The stage of an imported run
        stage: Only<0> = Only,
        /// The number of transitions
        ticks: u64 = answer.ticks,
        /// The number of gaps
        gaps: u64 = answer.gaps,
        /// The number of calls that were asked for
        calls: u64 = answer.calls.0,
        /// The number of calls that have a result
        results_paired: u64 = answer.calls.1,
        /// The number of calls that failed
        results_failed: u64 = answer.calls.2,
        /// Transitions by type
        types: BTreeMap<Arc<str>, u64> = counts(&answer.types),
        /// Transitions by agent
        agents: BTreeMap<Arc<str>, u64> = counts(&answer.agents),
        /// Notes by kind
        noted: BTreeMap<&str, u64> = answer.noted.iter().copied().collect(),
        /// The first notes
        notes: Vec<ImportNoteObject> = answer.notes.iter().map(ImportNoteObject::of).collect(),
        /// Names of the members that belong to the run and to no tick
        meta: &[String] = answer.meta.as_deref().unwrap_or_default(),
        /// The digest of the source
        sha256: Digest = answer.sha256,
        /// The size of the source in bytes
        bytes: u64 = answer.bytes,
        /// The last record; null if nothing was written
        tip: Option<Digest> = answer.tip,
        /// The digest of the pack that the run was begun with
        pack: Option<Digest> = answer.pack,
        /// The ticks at which a rule of the pack failed
        errors: Vec<RuleError> = rule_errors(&answer.rules.errors),
        /// The transitions that stage 2 would have refused
        would_refuse?: Vec<ImportWouldRefuse> = Some(&answer.rules.would_refuse)
            .filter(|all| !all.is_empty())
            .map(|all| all.iter().map(ImportWouldRefuse::of).collect()),
        /// The first transitions
        items: Vec<ImportedItem> =
            answer.first.iter().map(|(tick, record)| ImportedItem::of(*tick, record)).collect(),
        /// Other files whose items are in the run
        gathered?: Vec<String> = Some(&answer.gathered)
            .filter(|files| !files.is_empty())
            .map(|files| files.iter().map(|file| file.display().to_string()).collect()),
        /// The number of branches without the current one
        branches?: u64 = Some(answer.branches).filter(|branches| *branches > 0),
        /// The forks that the branches became
        forks?: &[RunName] = Some(&*answer.forks).filter(|forks| !forks.is_empty()),
        /// Places in the items by what became of them
        accounted?: AccountedPlaces = answer.accounted(),
        /// Lines of a chain whose hash is wrong
        bad_hash?: Vec<u64> = lines.0,
        /// Lines of a chain that redaction changes
        changed?: Vec<u64> = lines.1,
        /// The unknown places of the last state; absent if every place is known
        unknown?: Vec<UnknownPlace> = unknown_places(&answer.unknown),
    }

    /// How many places of the items were read, kept and not read
    object AccountedPlaces(all: [u64; 3]) {
        /// The number of places that are read
        read: u64 = all[0],
        /// The number of places that are kept and state nothing
        kept: u64 = all[1],
        /// The number of places that are in no table and may state something
        not_read: u64 = all[2],
    }

    /// A note of an import on one place of its source
    object ImportNoteObject(note: &ImportNoteShown) {
        /// The tick that it concerns; 0 is the run itself
        tick: u64 = note.tick,
        /// The kind of the note
        kind: &str = note.kind,
        /// Whether something is missing there
        gap: bool = note.is_gap,
        /// The place in the source
        path: &str = &note.path,
        /// Meanings that a part may have that was not read
        may?: &[&str] = Some(note.may).filter(|may| !may.is_empty()),
        /// The text
        message: &str = &note.message,
    }

    /// A transition that was imported
    object ImportedItem(at: u64, record: &Record) {
        let row = log::row(record);
        let agent = record.body().value("/agent_id");
        let agent = agent.as_ref().and_then(Value::as_str).map(quote::escape).unwrap_or_default();
        /// The tick
        tick: u64 = at,
        /// The agent
        agent: &str = &agent,
        /// The type
        type: &str = &row.type_name,
        /// The transition in a few words
        summary: &str = &row.summary,
    }

    /// A transition that stage 2 would have refused
    object ImportWouldRefuse(noted: &NotedRefusal) {
        /// The tick
        tick: u64 = noted.tick,
        /// The codes with the rules and commitments that refuse it
        would_refuse: Vec<RefusalIds> = noted.reasons.iter().map(|(code, ids)| RefusalIds::of(*code, ids)).collect(),
    }

    /// The imports of a directory
    pub object ImportsDocument: "imports" (answer: &ImportsAnswer) {
        let failed_import = |(file, code, message): &(String, Code, String)| FailedImport::of(file, *code, message);
        /// The number of sources that are in the store already
        there: u64 = answer.there,
        /// Files that could not be imported
        failed: Vec<FailedImport> = answer.failed.iter().map(failed_import).collect(),
        /// Files that were imported, or would be
        files?: Vec<ImportedFile> = Some(&answer.made)
            .filter(|made| !made.is_empty())
            .map(|made| made.iter().map(|(file, made)| ImportedFile::of(file, made)).collect()),
        /// Files that are no trace that is recognised
        left?: Vec<LeftFile> = Some(&answer.left)
            .filter(|left| !left.is_empty())
            .map(|left| left.iter().map(|(file, why)| LeftFile::of(file, why)).collect()),
        /// A document `import` for each import
        items: Vec<As<Object>> = answer.made.iter().map(|(_, made)| made.document()).map(As::new).collect(),
    }

    /// A file that was imported, or would be
    object ImportedFile(path: &str, made: &ImportAnswer) {
        /// The file
        file: &str = path,
        /// The format
        kind: &str = made.kind,
        /// The run
        run: &RunName = &made.run,
        /// The number of transitions
        ticks: u64 = made.ticks,
        /// The number of gaps
        gaps: u64 = made.gaps,
    }

    /// A file that is not recognised as a trace
    object LeftFile(path: &str, reason: &str) {
        /// The file
        file: &str = path,
        /// The reason in one sentence
        why: &str = reason,
    }

    /// The places in the items of a file by what became of them
    pub object ImportExplainDocument: "import-explain" (answer: &ImportAnswer) {
        /// The format of the source
        kind: &str = answer.kind,
        /// The reason for that format
        why: &str = &answer.why,
        /// The number of transitions that would be made
        ticks: u64 = answer.ticks,
        /// The places
        items: Vec<ExplainedPlace> = answer.places.iter().map(ExplainedPlace::of).collect(),
    }

    /// A place in the items of a file
    object ExplainedPlace(one: &(String, u64, u64, u64, &[&str])) {
        /// The place in an item, as a JSON pointer in which * is any number
        place: String = format!("/{}", one.0),
        /// How often it is read
        read: u64 = one.1,
        /// How often it is kept and states nothing
        kept: u64 = one.2,
        /// How often it is in no table and may state something
        not_read: u64 = one.3,
        /// Meanings that it may have
        may_state: &[&str] = one.4,
        /// How often it is there
        count: u64 = one.1 + one.2 + one.3,
    }

    /// A file that could not be imported
    object FailedImport(path: &str, with: Code, why: &str) {
        /// The file
        file: &str = path,
        /// The code of the error
        code: Code = with,
        /// The error in one sentence
        message: &str = why,
    }
}

impl Answer for ImportAnswer {
    fn document(&self) -> Value {
        ImportDocument::of(self).into()
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
    /// Returns the lines of what the rules of the pack note.
    fn rule_lines(&self) -> impl Iterator<Item = Line> {
        error_lines(&self.rules.errors).into_iter().chain(would_refuse_lines(&self.rules.would_refuse))
    }

    /// How many places were read, kept and not read; `None` for a format without a table.
    fn accounted(&self) -> Option<AccountedPlaces> {
        let count = |of: fn(&(String, u64, u64, u64, &[&str])) -> u64| {
            self.places.iter().filter(|place| of(place) > 0).count() as u64
        };
        let all = [count(|place| place.1), count(|place| place.2), count(|place| place.3)];
        (!self.places.is_empty()).then(|| AccountedPlaces::of(all))
    }

    /// The line of what was read, kept and not read, and the ways on.
    fn account_lines(&self) -> Vec<Line> {
        if self.places.is_empty() {
            return Vec::new();
        }
        let names = |of: fn(&(String, u64, u64, u64, &[&str])) -> u64| {
            let all: Vec<String> = self
                .places
                .iter()
                .filter(|place| of(place) > 0)
                .map(|place| quote::escape(&place.0))
                .collect();
            if all.is_empty() { "nothing".to_owned() } else { cut(&all.join(", "), 60) }
        };
        let (read, kept, left) = (names(|place| place.1), names(|place| place.2), names(|place| place.3));
        let mut lines = vec![Line::from(format!("read {read}; kept {kept}; not read {left}"))];
        let first = self.notes.iter().find(|note| !note.may.is_empty());
        lines.extend(first.map(|note| {
            let place = pattern_of(&note.path);
            let may = note.may.join(" and ");
            Line::note(format!(
                "note: what depends on {may} is uncertain from tick {} on; --kept {} says that it states none, and --map reads it",
                note.tick,
                quote::shell(&[place])
            ))
        }));
        lines
    }

    fn done_lines(&self, tip: Digest) -> Vec<Line> {
        let (run, ticks) = (self.run.as_str(), count(self.ticks, "tick", "ticks"));
        let gaps = count(self.gaps, "gap", "gaps");
        let mut lines = vec![Line::from(format!("imported {run}: {ticks}, {gaps}, tip {}", tip.short()))];
        lines.extend(self.account_lines());
        lines.extend((!self.forks.is_empty()).then(|| {
            let names: Vec<&str> = self.forks.iter().map(RunName::as_str).collect();
            Line::from(format!("other branches of the source: {}", names.join(", ")))
        }));
        lines.extend(self.rule_lines());
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
            Line::from(cut(&line, page.width.unwrap_or(160)))
        }));
        lines.extend(self.account_lines());
        lines.extend((self.branches > 0).then(|| {
            let branches = count(self.branches, "branch", "branches");
            Line::from(format!("{branches} more would be forks of it"))
        }));
        lines.extend(self.rule_lines());
        lines.push("nothing was written (dry run)".into());
        lines
    }
}

/// Returns a line for each of the first transitions that stage 2 would have refused, and a note on all of them.
fn would_refuse_lines(all: &[NotedRefusal]) -> Vec<Line> {
    let line = |NotedRefusal { tick, reasons }: &NotedRefusal| {
        let reason = |(code, ids): &(Code, Vec<Arc<str>>)| {
            let ids = ids.iter().map(|id| quote::escape(id)).collect::<Vec<_>>().join(", ");
            if ids.is_empty() { code.to_string() } else { format!("{code} ({ids})") }
        };
        let reasons = reasons.iter().map(reason).collect::<Vec<_>>().join(", ");
        Line::styled(Style::Warn, format!("WARN       tick {tick}: would be refused: {reasons}"))
    };
    let note = (!all.is_empty()).then(|| {
        let transitions = count(all.len() as u64, "transition", "transitions");
        Line::note(format!("note: stage 2 would have refused {transitions}; they happened, and are kept"))
    });
    all.iter().take(ERRORS_SHOWN).map(line).chain(note).collect()
}

/// The place with `*` for each number.
fn pattern_of(path: &str) -> String {
    let names = path.split('/').map(|name| {
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { "*" } else { name }
    });
    names.collect::<Vec<_>>().join("/")
}

fn note_line(note: &ImportNoteShown) -> Line {
    let gap = if note.is_gap { " (a gap)" } else { "" };
    let text = format!(
        "WARN tick {}: {}{gap}: {} at {}",
        note.tick,
        note.kind,
        cut(&quote::escape(&note.message), 200),
        cut(&quote::escape(&note.path), 100)
    );
    Line::note(text).paint(Style::Warn)
}

/// The imports of a directory.
#[derive(Debug, Clone, Default)]
pub struct ImportsAnswer {
    /// The imports that were made, or would be.
    pub made: Vec<(String, ImportAnswer)>,
    /// Files that are no trace that is recognised, each with the reason.
    pub left: Vec<(String, String)>,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How many sources are in the store already.
    pub there: u64,
    /// Files that could not be imported, each with its code and message.
    pub failed: Vec<(String, Code, String)>,
}

impl Answer for ImportsAnswer {
    fn document(&self) -> Value {
        ImportsDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let row = |(file, made): &(String, ImportAnswer)| {
            let ticks = count(made.ticks, "tick", "ticks");
            let agents = count(made.agents.len() as u64, "agent", "agents");
            let gaps = count(made.gaps, "gap", "gaps");
            [made.kind.to_owned(), quote::escape(file).into(), made.run.to_string(), ticks, agents, gaps]
        };
        let rows: Vec<[String; 6]> = self.made.iter().map(row).collect();
        let width = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
        let widths: Vec<usize> = (0..6).map(width).collect();
        let line = |row: &[String; 6]| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| pad(cell, *width));
            Line::from(cells.collect::<Vec<_>>().join("  ").trim_end().to_owned())
        };
        let mut lines: Vec<Line> = rows.iter().map(line).collect();
        lines.extend(self.failed.iter().map(|(file, code, message)| {
            Line::styled(
                Style::Bad,
                format!("FAIL  {}: error[{code}]: {}", quote::escape(file), quote::escape(message)),
            )
        }));
        lines.extend(self.left.iter().map(|(file, why)| {
            Line::styled(Style::Dim, format!("left  {}  {}", quote::escape(file), quote::escape(why)))
        }));
        let dry = if self.dry_run { "; nothing was written (-n)" } else { "" };
        let files = count(self.made.len() as u64, "file", "files");
        let left = if self.left.is_empty() { String::new() } else { format!(", {} left", self.left.len()) };
        lines.push(Line::note(format!("{files}{left}{dry}")));
        if self.there > 0 {
            lines.push(Line::note(format!("{} of them were there already", self.there)));
        }
        lines
    }

    fn end(&self) -> End {
        match self.failed.first() {
            Some((_, code, _)) => End::Problem(*code),
            None if self.made.is_empty() && self.there == 0 => End::No,
            None => End::Answered,
        }
    }
}

/// Account of what an import would read, keep and not read of a file.
#[derive(Debug, Clone)]
pub struct ImportExplainAnswer(pub ImportAnswer);

impl Answer for ImportExplainAnswer {
    fn document(&self) -> Value {
        ImportExplainDocument::of(&self.0).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let answer = &self.0;
        let mut lines =
            vec![Line::from(format!("kind       {} ({})", answer.kind, quote::escape(&answer.why)))];
        let width =
            answer.places.iter().map(|place| columns(&quote::escape(&place.0)) + 1).max().unwrap_or(5).max(5);
        lines
            .push(Line::styled(Style::Dim, format!("{:width$}   read   kept  not read  may state", "place")));
        for (place, read, kept, not_read, may) in &answer.places {
            let place = pad(&quote::escape(&format!("/{place}")), width);
            let text = format!("{place} {read:6} {kept:6}  {not_read:8}  {}", may.join(", "));
            let text = text.trim_end().to_owned();
            lines.push(if *not_read > 0 { Line::styled(Style::Warn, text) } else { text.into() });
        }
        lines.push("nothing was written (--explain)".into());
        lines
    }
}
