//! `dendrer runs`

use std::collections::BTreeMap;

use dendrer::Trace;
use dendrer::kernel::counters::Counters;
use dendrer::kernel::expr::{Budget, Env, Expr, Scope, Truth};
use dendrer::store::{RunSummary, Store};
use dendrer_object::{Digest, Value};
use dendrer_view::table::{Align, Table};
use dendrer_view::{document, quote, thousands};

use crate::address::Rev;
use crate::args::{Global, RunSort, Runs};
use crate::failure::{Failure, Result};
use crate::open::{self, Source};
use crate::out::{CUT, Out, accessible};
use crate::verified;

pub(crate) fn run(global: &Global, args: &Runs, out: &mut Out) -> Result {
    // What does not look like a bundle is to be read as one all the same: an answer about the store would be one to another
    // question.
    let rev = Rev { bundle: args.file.clone(), run: None, pos: None };
    let source = open::source(global, &rev, out)?;
    let store = source.store();
    let mut runs = all(store)?;
    let total = runs.len();
    let asked = args.filter.as_deref().map(Where::parse).transpose()?;
    let known = match &source {
        Source::Store(_) => verified::known(&open::find(global)?, store.info().id),
        Source::Bundle(_) => BTreeMap::new(),
    };
    let mut chosen = Vec::new();
    let mut unclear = Vec::new();
    for run in runs.drain(..) {
        let row = Row::read(store, run, &known)?;
        let at = row.start.get("stage").and_then(Value::as_u64);
        if args.stage.is_some_and(|stage| at != Some(stage)) || (args.unverified && row.verified) {
            continue;
        }
        match asked.as_ref().map_or(Ok(Ok(Truth::True)), |asked| asked.judge(store, &row))? {
            Ok(Truth::True) => chosen.push(row),
            Ok(Truth::False) => {}
            Ok(Truth::Uncertain(why)) => unclear.push((row.summary.name, why.to_string())),
            Ok(Truth::Exhausted) => unclear.push((row.summary.name, "it takes too many steps".to_owned())),
            Err(why) => unclear.push((row.summary.name, why)),
        }
    }
    // A condition that can judge none of them is no condition on runs.
    if let (true, Some((run, why))) = (!unclear.is_empty() && unclear.len() == total, unclear.first()) {
        return Err(Failure::new(
            "E0509",
            format!("the condition cannot be judged for any run, such as {run}"),
        )
        .at("why", why.clone())
        .note("a condition is true or false, like ticks > 100"));
    }
    let mut runs = chosen;
    let matching = runs.len();
    match args.sort {
        RunSort::Updated => runs.sort_by_key(|run| std::cmp::Reverse(run.summary.head_position)),
        RunSort::Ticks => runs.sort_by(|a, b| {
            let longer = b.summary.head.tick.cmp(&a.summary.head.tick);
            longer.then_with(|| a.summary.name.cmp(&b.summary.name))
        }),
        RunSort::Name => runs.sort_by(|a, b| a.summary.name.cmp(&b.summary.name)),
    }
    if args.tree {
        runs = tree(runs);
    }
    if args.limit > 0 {
        runs.truncate(args.limit);
    }
    let mut items = Vec::new();
    let mut table = Table::new([
        ("name", Align::Left),
        ("ticks", Align::Right),
        ("refused", Align::Right),
        ("stage", Align::Right),
        ("updated", Align::Left),
        ("goal", Align::Left),
    ]);
    for row in &runs {
        let run = &row.summary;
        let text = |name: &str| {
            let value = row.start.get(name);
            value
                .map(|value| value.as_str().map_or_else(|| quote::value(value), quote::escape))
                .unwrap_or_default()
        };
        let fork = match &row.forked_from {
            Some((parent, tick)) if args.tree => format!("  (from {parent}@{tick})"),
            _ if row.casebook => "  (casebook)".to_owned(),
            _ => String::new(),
        };
        table.row(vec![
            format!("{}{}{fork}", "  ".repeat(row.depth), run.name),
            run.head.tick.map_or_else(|| "?".to_owned(), thousands),
            if run.refusals == 0 { "-".to_owned() } else { thousands(run.refusals) },
            text("stage"),
            out.page().time(run.last_ts),
            text("goal"),
        ]);
        items.push(row.to_json());
    }
    let shown = runs.len();
    // Whoever is left out must not be missing without a word.
    let left_out = unclear.first().map(|(run, why)| {
        let count = dendrer_view::count(unclear.len() as u64, "run", "runs");
        format!("{count} could not be judged; the first is {run}: {}", quote::escape(why))
    });
    if !out.is_text() {
        if let Some(line) = left_out {
            out.say(line);
        }
        let unclear = Value::array(unclear.iter().map(|(run, why)| {
            Value::record([("run", Value::from(run.as_str())), ("why", Value::from(why.as_str()))])
        }));
        out.document(&document(
            "runs",
            [
                ("items", Value::array(items)),
                ("matching", Value::from(matching as u64)),
                ("total", Value::from(total as u64)),
                ("unclear", unclear),
            ],
        ))?;
        return Ok(0);
    }
    if shown > 0 {
        let (lines, cut) = if accessible() { (table.list(), false) } else { table.lines(out.width()) };
        for line in lines {
            out.line(line)?;
        }
        if cut {
            out.line(CUT)?;
        }
    }
    let more = if shown < matching { " (use -n 0 for all)" } else { "" };
    let fit =
        if matching < total { format!(", {} match", thousands(matching as u64)) } else { String::new() };
    out.line(format!("{} of {} runs{fit}{more}", thousands(shown as u64), thousands(total as u64)))?;
    if let Some(line) = left_out {
        out.line(line)?;
    }
    if total == 0 {
        out.say("help: dendrer demo");
    }
    Ok(0)
}

/// One run, with what a list says of it.
struct Row {
    summary: RunSummary,
    /// The content of the record it begins with.
    start: Value,
    forked_from: Option<(String, u64)>,
    /// Whether it was found intact here as it is now.
    verified: bool,
    /// Whether it is no run of an agent but the casebook of the store.
    casebook: bool,
    /// How far it stands below the run it comes from.
    depth: usize,
}

impl Row {
    fn read(store: &dyn Store, summary: RunSummary, known: &BTreeMap<String, Digest>) -> Result<Row> {
        let mut start = store.get(summary.begin)?.map_or(Value::object(), |record| record.content());
        let forked_from = forked_from(store, &summary)?;
        // A fork says neither goal nor `meta`: those of the run with which its lineage begins hold on.
        if forked_from.is_some()
            && let Ok(trace) = Trace::open(store, &summary.name)
        {
            let mut members = start.as_object().cloned().unwrap_or_default();
            for (name, path) in [("goal", "/goal"), ("meta", "/meta")] {
                if let Some(value) = trace.start().body().value(path) {
                    members.set(name, value);
                }
            }
            start = Value::Object(members);
        }
        let verified = known.get(summary.name.as_str()) == Some(&summary.head.id);
        let casebook = super::is_casebook(store, &summary.name)?;
        Ok(Row { summary, start, forked_from, verified, casebook, depth: 0 })
    }

    fn to_json(&self) -> Value {
        let item = dendrer_view::runs::to_json(&self.summary, &self.start, self.forked_from.clone());
        let mut item = item.as_object().cloned().unwrap_or_default();
        item.set("verified_here", Value::from(self.verified));
        item.set("casebook", Value::from(self.casebook));
        Value::Object(item)
    }
}

/// A condition on runs, in the language of predicates.
struct Where {
    expr: Expr,
    reads_state: bool,
}

/// What a condition on runs may speak of, besides the state.
const ROOTS: [&str; 9] =
    ["name", "ticks", "stage", "goal", "refusals", "ended", "synthetic", "forked", "verified"];

impl Where {
    fn parse(text: &str) -> Result<Where> {
        let scope = ROOTS.iter().fold(Scope::new(), |scope, root| scope.root(root));
        let expr = Expr::parse_condition(text, &scope)?;
        let reads_state = !expr.read_set().is_empty() || expr.reads_counters();
        Ok(Where { expr, reads_state })
    }

    /// Judges a run; the inner error says what keeps it from being judged.
    fn judge(&self, store: &dyn Store, row: &Row) -> Result<std::result::Result<Truth, String>> {
        let item = row.to_json();
        let field = |name: &str| item.get(name).cloned().unwrap_or(Value::Null);
        let values: Vec<Value> = ROOTS
            .iter()
            .map(|root| match *root {
                "forked" => Value::from(row.forked_from.is_some()),
                "verified" => Value::from(row.verified),
                name => field(name),
            })
            .collect();
        let others: Vec<(&str, &Value)> = ROOTS.iter().copied().zip(&values).collect();
        let (state, counters) = match self.reads_state {
            true => {
                let trace = Trace::open(store, &row.summary.name)?;
                let counters = match self.expr.reads_counters() {
                    true => trace.at(trace.tip())?.counters,
                    false => Counters::default(),
                };
                if let Some(hidden) = self.expr.hidden_counter(&counters) {
                    let (tick, place) = (hidden.tick, hidden.pointer.dotted());
                    return Ok(Err(format!("{place} of tick {tick} was erased or withheld")));
                }
                (trace.state(trace.tip())?, counters.to_value())
            }
            false => (Value::object(), Value::object()),
        };
        let env = Env { state: &state, counters: Some(&counters), others: &others };
        Ok(Ok(self.expr.holds(&env, &mut Budget::default())))
    }
}

/// Puts each fork behind the run it was forked from. A fork whose parent is not in the list stands by itself.
fn tree(runs: Vec<Row>) -> Vec<Row> {
    let mut waiting: Vec<Option<Row>> = runs.into_iter().map(Some).collect();
    let names: Vec<String> = waiting.iter().flatten().map(|row| row.summary.name.to_string()).collect();
    let parent =
        |row: &Row| row.forked_from.as_ref().and_then(|(run, _)| names.iter().position(|name| name == run));
    let parents: Vec<Option<usize>> = waiting.iter().map(|row| row.as_ref().and_then(parent)).collect();
    let mut placed = Vec::new();
    // A stack instead of recursion: forks of forks may be many.
    let mut next: Vec<(usize, usize)> =
        (0..names.len()).rev().filter(|at| parents[*at].is_none()).map(|at| (at, 0)).collect();
    while let Some((at, depth)) = next.pop() {
        if let Some(mut row) = waiting[at].take() {
            row.depth = depth;
            placed.push(row);
        }
        next.extend(
            (0..names.len())
                .rev()
                .filter(|child| parents[*child] == Some(at))
                .map(|child| (child, depth + 1)),
        );
    }
    placed
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
