//! The runs of a store as a table and as a document.

use dendrer::ask::runs::{ListedRun, RunsAnswer};
use dendrer_object::Value;

use crate::answer::{Answer, Line, Page, Style};
use crate::certainty::{unknown_member, unknown_words};
use crate::table::{Align, Table};
use crate::{count, document, quote, thousands};

impl Answer for RunsAnswer {
    fn document(&self) -> Value {
        let unclear = self.unclear.iter().map(|(run, why)| {
            Value::record([("run", Value::from(run.as_str())), ("why", Value::from(why.as_str()))])
        });
        let members = [
            ("items", Value::array(self.runs.iter().map(item))),
            ("matching", Value::from(self.matching as u64)),
            ("total", Value::from(self.total as u64)),
            ("hidden", Value::from(self.dropped as u64)),
            ("unclear", Value::array(unclear)),
        ];
        document("runs", members)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut lines = if self.runs.is_empty() { Vec::new() } else { page.table(&table(self, page)) };
        let shown = self.runs.len();
        let more = if shown < self.matching { " (use -n 0 for all)" } else { "" };
        let (matching, total) = (thousands(self.matching as u64), thousands(self.total as u64));
        let fit = if self.matching + self.dropped < self.total {
            format!(", {matching} match")
        } else {
            String::new()
        };
        let hidden = match self.dropped {
            0 => String::new(),
            hidden => format!(", {} dropped (--all shows them)", thousands(hidden as u64)),
        };
        lines.push(format!("{} of {total} runs{fit}{hidden}{more}", thousands(shown as u64)).into());
        lines.extend(unclear_line(self).map(Line::from));
        lines.extend(self.runs.iter().filter_map(|run| {
            let words = unknown_words(run.unknown.as_deref().unwrap_or_default())?;
            Some(Line::styled(Style::Warn, format!("UNKNOWN    in {}: {words}", run.summary.name)))
        }));
        let unread = self.runs.iter().filter(|run| run.unknown.is_none()).count() as u64;
        lines.extend((unread > 0).then(|| {
            let runs = count(unread, "run", "runs");
            Line::note(format!(
                "note: the states of {runs} were not read, so whether they are complete is not said"
            ))
        }));
        lines.extend((self.total == 0).then(|| Line::note("help: dendrer demo")));
        lines
    }

    fn notes(&self) -> Vec<String> {
        unclear_line(self).into_iter().collect()
    }
}

fn table(answer: &RunsAnswer, page: &Page) -> Table {
    let mut table = Table::new([
        ("name", Align::Left),
        ("ticks", Align::Right),
        ("refused", Align::Right),
        ("stage", Align::Right),
        ("updated", Align::Left),
        ("goal", Align::Left),
    ]);
    let text = |value: &Option<Value>| match value {
        Some(Value::String(text)) => quote::escape(text),
        Some(other) => quote::value(other),
        None => String::new(),
    };
    for run in &answer.runs {
        let fork = match &run.forked_from {
            Some((parent, tick)) if answer.tree => format!("  (from {parent}@{tick})"),
            _ if run.casebook => "  (casebook)".to_owned(),
            _ if run.dropped => "  (dropped)".to_owned(),
            _ if run.redaction == Some(Value::from("none")) => "  (not redacted)".to_owned(),
            _ => String::new(),
        };
        let summary = &run.summary;
        table.row(vec![
            format!("{}{}{fork}", "  ".repeat(run.depth), summary.name),
            summary.head.tick.map_or_else(|| "?".to_owned(), thousands),
            if summary.refusals == 0 { "-".to_owned() } else { thousands(summary.refusals) },
            text(&run.stage),
            page.time(summary.last_ts),
            text(&run.goal),
        ]);
    }
    table
}

/// Notes how many runs the condition could not be judged for; `None` if it could for all.
fn unclear_line(answer: &RunsAnswer) -> Option<String> {
    let (run, why) = answer.unclear.first()?;
    let runs = count(answer.unclear.len() as u64, "run", "runs");
    Some(format!("{runs} could not be judged; the first is {run}: {}", quote::escape(why)))
}

/// Returns a run as an item of `dendrer.runs/1`.
fn item(run: &ListedRun) -> Value {
    let parent = run.forked_from.as_ref().map(|(parent, tick)| {
        Value::record([("run", Value::from(parent.as_str())), ("tick", Value::from(*tick))])
    });
    let summary = &run.summary;
    let members = [
        ("casebook", Value::from(run.casebook)),
        ("dropped", Value::from(run.dropped)),
        ("ended", Value::from(summary.ended)),
        ("forked_from", Value::from(parent)),
        ("goal", Value::from(run.goal.clone())),
        ("name", Value::from(summary.name.as_str())),
        ("redaction", Value::from(run.redaction.clone())),
        ("refusals", Value::from(summary.refusals)),
        ("stage", Value::from(run.stage.clone())),
        ("synthetic", run.synthetic.clone().unwrap_or(false.into())),
        ("ticks", Value::from(summary.head.tick)),
        ("tip", Value::from(summary.head.id)),
        ("updated", Value::from(summary.last_ts.to_string())),
        ("verified_here", Value::from(run.verified)),
        ("state_read", Value::from(run.unknown.is_some())),
    ];
    Value::record(members.into_iter().chain(unknown_member(run.unknown.as_deref().unwrap_or_default())))
}
