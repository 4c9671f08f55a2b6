//! The runs of a store as a table and as a document.

use dendrer::ask::runs::{ListedRun, RunsAnswer};
use dendrer::trust::LogTrust;
use dendrer_object::document::As;
use dendrer_object::{Digest, RunName, Timestamp, Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::certainty::{UnknownPlace, unknown_places, unknown_words};
use crate::table::{Align, Table};
use crate::verdict::list;
use crate::{count, layout, quote, thousands};

document! {
    /// The runs of a store
    pub object RunsDocument: "runs" (answer: &RunsAnswer) {
        /// The runs that are listed, newest first if no other order was asked for
        items: Vec<RunObject> = answer.runs.iter().map(RunObject::of).collect(),
        /// The number of runs that fit the conditions
        matching: usize = answer.matching,
        /// Whether no run was left out because of the limit
        complete: bool = answer.next.is_none(),
        /// The last run of the list, to go on after; null if none was left out because of the limit
        next: Option<&RunName> = answer.next.as_ref(),
        /// The number of runs in the store
        total: usize = answer.total,
        /// The number of runs that are left out because they are dropped
        hidden: usize = answer.dropped,
        /// How much of the log is signed and verified here; absent for a bundle
        trust?: TrustObject = answer.trust.as_ref().map(TrustObject::of),
        /// The runs for which the condition could not be judged
        unclear: Vec<UnclearRun> = answer.unclear.iter().map(|(run, why)| UnclearRun::of(run.as_str(), why)).collect(),
    }

    /// How much of a log is signed and verified, in numbers of records
    pub(crate) object TrustObject(trust: &LogTrust) {
        /// The records of the log
        size: u64 = trust.size,
        /// Those that are signed
        signed: u64 = trust.signed,
        /// Those that are signed, or in groups with the tag of a writer who may; null where neither key nor writer's secret is
        tagged: Option<u64> = trust.tagged,
        /// Those that a verification of the whole log on this machine found intact
        verified: u64 = trust.verified,
    }

    /// A run that could not be read or judged
    pub(crate) object UnclearRun(name: &str, reason: &str) {
        /// The run
        run: &str = name,
        /// The reason
        why: &str = reason,
    }

    /// The transition that a fork begins after
    object ForkPlace(parent: &str, at: u64) {
        /// The parent
        run: &str = parent,
        /// The last tick that is shared
        tick: u64 = at,
    }

    /// A run of a list
    object RunObject(listed: &ListedRun) {
        let summary = &listed.summary;
        /// Whether the run is the casebook
        casebook: bool = listed.casebook,
        /// Whether the run is left out of lists
        dropped: bool = listed.dropped,
        /// Whether the run was closed
        ended: bool = summary.ended,
        /// The place in the parent, for a fork
        forked_from: Option<ForkPlace> = listed.forked_from.as_ref().map(|(run, tick)| ForkPlace::of(run, *tick)),
        /// The goal, or the tag of a goal that was erased
        goal: As<Option<String>> = As::new(listed.goal.clone()),
        /// Whether it is a fork of a graph's run with substituted values of edges
        hypothetical: bool = listed.hypothetical,
        /// The name
        name: &RunName = &summary.name,
        /// The thread that it is of, if the name is made of a digest; absent otherwise
        thread?: As<String> = listed.thread.clone().map(As::new),
        /// The rules by which secrets are taken out
        redaction: As<Option<String>> = As::new(listed.redaction.clone()),
        /// The number of refusals
        refusals: u64 = summary.refusals,
        /// The stage at which the run is recorded
        stage: As<Option<u64>> = As::new(listed.stage.clone()),
        /// Whether the run was generated and not recorded
        synthetic: As<bool> = As::new(listed.synthetic.clone().unwrap_or(false.into())),
        /// The last tick; null if it is not known
        ticks: Option<u64> = summary.head.tick,
        /// The id of the newest record of the chain
        tip: Digest = summary.head.id,
        /// The time of the newest record
        updated: Timestamp = summary.last_ts,
        /// Whether a verification on this machine found the run intact as it is now
        verified_here: bool = listed.verified,
        /// Whether the last state was read to see if it has unknown places
        state_read: bool = listed.unknown.is_some(),
        /// The unknown places of the last state; absent if every place is known
        unknown?: Vec<UnknownPlace> = unknown_places(listed.unknown.as_deref().unwrap_or_default()),
        /// Whether the import of the run was stopped before its end; absent if it was not
        unfinished?: bool = listed.unfinished.map(|_| true),
    }
}

impl Answer for RunsAnswer {
    fn document(&self) -> Value {
        RunsDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut table = table(self, page);
        let folded = if self.runs.is_empty() { Vec::new() } else { table.fold() };
        let (mut lines, cut) = if self.runs.is_empty() { (Vec::new(), false) } else { page.list(&table) };
        lines.extend(layout::counted(&count_words(self, &folded), cut, page));
        lines.extend(unclear_line(self).map(Line::from));
        lines.extend(self.runs.iter().filter_map(|run| {
            let words = unknown_words(run.unknown.as_deref().unwrap_or_default())?;
            Some(Line::styled(Style::Warn, format!("UNKNOWN    in {}: {words}", run.summary.name)))
        }));
        lines.extend(self.runs.iter().filter_map(|run| {
            let words = run.unfinished?.words();
            Some(Line::styled(Style::Warn, format!("UNFINISHED {}: {words}", run.summary.name)))
        }));
        let unread = self.runs.iter().filter(|run| run.unknown.is_none()).count() as u64;
        lines.extend((unread > 0).then(|| {
            let runs = count(unread, "run", "runs");
            Line::note(format!(
                "note: the states of {runs} were not read, so whether they are complete is not said"
            ))
        }));
        lines.extend(self.trust.iter().filter(|_| self.total > 0).map(trust_line));
        lines.extend((self.total == 0).then(|| Line::note("help: dendrer demo")));
        lines
    }

    fn notes(&self) -> Vec<String> {
        unclear_line(self).into_iter().collect()
    }
}

/// Returns the line on how much of the log is signed and verified here.
pub(crate) fn trust_line(trust: &LogTrust) -> Line {
    let [size, signed, verified] = [trust.size, trust.signed, trust.verified].map(thousands);
    let records = if trust.size == 1 { "record" } else { "records" };
    format!("{signed} of {size} {records} signed, verified here to {verified}").into()
}

/// A word for runs, and which runs it is noted of below the list.
type RunMark = (&'static str, fn(&ListedRun) -> bool);

const MARKS: [RunMark; 4] = [
    ("casebook", |run| run.casebook),
    ("dropped", |run| run.dropped),
    ("hypothetical", |run| run.hypothetical),
    ("not redacted", |run| run.redaction == Some(Value::from("none"))),
];

/// Counts the runs, and names those with what a column of its own would have.
fn count_words(answer: &RunsAnswer, folded: &[(String, Option<String>)]) -> String {
    let shown = answer.runs.len();
    let more = if answer.next.is_some() { " (use -n 0 for all)" } else { "" };
    let (matching, total) = (thousands(answer.matching as u64), thousands(answer.total as u64));
    let fit = match answer.matching + answer.dropped < answer.total {
        true => format!(", {matching} match"),
        false => String::new(),
    };
    let hidden = match answer.dropped {
        0 => String::new(),
        hidden => format!(", {} dropped (--all shows them)", thousands(hidden as u64)),
    };
    let mut parts = vec![format!("{} of {total} runs{fit}{hidden}{more}", thousands(shown as u64))];
    let same = folded.iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
    parts.extend(same);
    parts.extend(stage_words(&answer.runs));
    let refused = answer.runs.iter().filter(|run| run.summary.refusals > 0);
    let refused: Vec<String> =
        refused.map(|run| format!("{} ({})", run.summary.name, thousands(run.summary.refusals))).collect();
    parts.extend(list(&refused, 3).map(|runs| format!("refused lines: {runs}")));
    for (word, has) in MARKS {
        let runs: Vec<String> =
            answer.runs.iter().filter(|run| has(run)).map(|run| run.summary.name.to_string()).collect();
        parts.extend(list(&runs, 3).map(|runs| format!("{word}: {runs}")));
    }
    parts.join("; ")
}

/// Writes how many runs have each stage.
fn stage_words(runs: &[ListedRun]) -> Option<String> {
    let mut stages: Vec<(String, usize)> = Vec::new();
    for run in runs {
        let stage = run.stage.as_ref().map_or_else(|| "unknown".to_owned(), quote::value);
        match stages.iter_mut().find(|(known, _)| *known == stage) {
            Some((_, number)) => *number += 1,
            None => stages.push((stage, 1)),
        }
    }
    stages.sort_by(|a, b| b.0.cmp(&a.0));
    let words = stages.iter().map(|(stage, number)| match stages.len() {
        1 => format!("stage {stage}"),
        _ => format!("stage {stage}: {}", thousands(*number as u64)),
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The columns at which times have their hours.
const WHOLE_TIMES: usize = 100;

fn table(answer: &RunsAnswer, page: &Page) -> Table {
    let mut table = Table::new([
        ("name", Align::Left),
        ("ticks", Align::Right),
        ("updated", Align::Left),
        ("goal", Align::Left),
    ]);
    for run in &answer.runs {
        let summary = &run.summary;
        let time = page.time(summary.last_ts);
        // A time in words has no day to be cut to.
        let is_date = time.as_bytes().get(4) == Some(&b'-');
        let short = is_date && page.width.is_some_and(|width| width < WHOLE_TIMES) && !page.full;
        table.row(vec![
            format!("{}{}", "  ".repeat(run.depth), summary.name),
            summary.head.tick.map_or_else(|| "?".to_owned(), thousands),
            if short { time.chars().take(10).collect() } else { time },
            goal_words(run),
        ]);
    }
    table
}

/// Writes the goal of a run, in front of it where a fork began, or the thread instead of it.
fn goal_words(run: &ListedRun) -> String {
    let goal = match &run.goal {
        Some(Value::String(text)) => quote::escape_drawn(text),
        Some(other) => quote::value(other),
        None => String::new(),
    };
    let thread = run.thread.as_ref().and_then(Value::as_str);
    let of_thread = thread.map(|thread| format!("thread {}", quote::quoted(thread)));
    let fork = run.forked_from.as_ref().map(|(parent, tick)| format!("from {parent}@{tick}"));
    let parts: Vec<String> =
        fork.into_iter().chain(of_thread).chain((!goal.is_empty()).then_some(goal)).collect();
    parts.join(": ")
}

/// Notes how many runs the condition could not be judged for; `None` if it could for all.
fn unclear_line(answer: &RunsAnswer) -> Option<String> {
    let (run, why) = answer.unclear.first()?;
    let runs = count(answer.unclear.len() as u64, "run", "runs");
    Some(format!("{runs} could not be judged; the first is {run}: {}", quote::escape(why)))
}
