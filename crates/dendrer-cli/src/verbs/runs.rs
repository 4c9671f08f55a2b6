//! `dendrer runs`

use dendrer::store::{RunSummary, Store};
use dendrer_object::Value;
use dendrer_view::table::{Align, Table};
use dendrer_view::{document, quote, thousands};

use crate::address::Rev;
use crate::args::{Global, RunSort, Runs};
use crate::failure::Result;
use crate::open;
use crate::out::{Format, Out};

pub(crate) fn run(global: &Global, args: &Runs, out: &mut Out) -> Result {
    let rev = args.file.as_deref().map(Rev::parse).transpose()?.unwrap_or(Rev {
        bundle: None,
        run: None,
        pos: None,
    });
    let source = open::source(global, &rev)?;
    let store = source.store();
    let mut runs = all(store)?;
    let total = runs.len();
    match args.sort {
        RunSort::Updated => runs.sort_by_key(|run| std::cmp::Reverse(run.head_position)),
        RunSort::Ticks => {
            runs.sort_by(|a, b| b.head.tick.cmp(&a.head.tick).then_with(|| a.name.cmp(&b.name)))
        }
        RunSort::Name => runs.sort_by(|a, b| a.name.cmp(&b.name)),
    }
    if args.limit > 0 {
        runs.truncate(args.limit);
    }
    let mut items = Vec::new();
    let mut table = Table::new(&[
        ("name", Align::Left),
        ("ticks", Align::Right),
        ("refused", Align::Right),
        ("stage", Align::Right),
        ("updated", Align::Left),
        ("goal", Align::Left),
    ]);
    for run in &runs {
        let start = store.get(run.begin)?.map_or(Value::object(), |record| record.content());
        let item = dendrer_view::runs::to_json(run, &start, forked_from(store, run)?);
        let text = |name: &str| {
            start
                .get(name)
                .map(|value| value.as_str().map_or_else(|| quote::value(value), quote::escape))
                .unwrap_or_default()
        };
        table.row(vec![
            run.name.to_string(),
            run.head.tick.map_or_else(|| "?".to_owned(), thousands),
            if run.refusals == 0 { "-".to_owned() } else { thousands(run.refusals) },
            text("stage"),
            super::time(run.last_ts, global.time),
            text("goal"),
        ]);
        items.push(item);
    }
    let shown = runs.len();
    match out.format() {
        Format::Json => out.document(&document(
            "runs",
            [("items", Value::array(items)), ("total", Value::from(total as u64))],
        ))?,
        Format::Jsonl => {
            for item in &items {
                out.item(item)?;
            }
            out.summary("runs", [("total", Value::from(total as u64))])?;
        }
        Format::Text => {
            if shown > 0 {
                let (lines, cut) = table.lines(out.width());
                for line in lines {
                    out.line(line)?;
                }
                if cut {
                    out.line("(lines are cut at the width of the terminal; --full shows all)")?;
                }
            }
            let more = if shown < total { " (use -n 0 for all)" } else { "" };
            out.line(format!("{} of {} runs{more}", thousands(shown as u64), thousands(total as u64)))?;
            if total == 0 {
                out.say("help: dendrer demo");
            }
        }
    }
    Ok(0)
}

/// Reads the list of runs, whole.
pub(crate) fn all(store: &dyn Store) -> Result<Vec<RunSummary>> {
    let mut runs = Vec::new();
    let mut from = 0;
    loop {
        let batch = store.runs(from, 1024)?;
        let Some(last) = batch.last() else { return Ok(runs) };
        from = last.begin + 1;
        runs.extend(batch);
    }
}

fn forked_from(store: &dyn Store, run: &RunSummary) -> Result<Option<(String, u64)>> {
    let Some(parent) = run.parent else { return Ok(None) };
    let Some(position) = store.find(&parent)? else { return Ok(None) };
    let record = store.get(position)?;
    Ok(record.and_then(|record| Some((record.header().run.as_ref()?.to_string(), record.header().tick?))))
}
