//! `dendrer diff`

use std::ops::ControlFlow;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use dendrer::Trace;
use dendrer::casebook::{self, Moment};
use dendrer::diff::{self, Align, Kind, MEMBERS, Pair, Question, Report, STATE};
use dendrer::store::Store;
use dendrer_object::record::Record;
use dendrer_object::{Pointer, Value};
use dendrer_view::casebook::{recorded_json, recorded_lines};
use dendrer_view::diff::{
    Line, count_line, found_line, head_lines, headline, ignored_line, item_json, lines, members,
    outcome_lines, shift_words, side_by_side, type_table, types_json,
};
use dendrer_view::table::{Align as Column, Table};
use dendrer_view::{count, document, thousands};

use crate::address;
use crate::address::Pos;
use crate::address::Rev;
use crate::address::state_path;
use crate::context;
use crate::context::Source;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Format;
use crate::global::Global;
use crate::global::tick_arg;
use crate::offers;
use crate::out::CUT;
use crate::out::Out;
use crate::out::Style;
use crate::out::accessible;
use crate::progress::Progress;

/// `diff`
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// One run, or RUN@TICK to end it there; called a in the answer
    #[arg(value_name = "RUN_A", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) a: String,
    /// The other, called b
    #[arg(value_name = "RUN_B", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) b: String,
    /// The first tick of a to compare
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Pos>,
    /// The last tick of a; what b has behind the transition beside it is left alone
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Pos>,
    /// Only these kinds of difference
    #[arg(long = "type", value_enum, value_delimiter = ',', value_name = "KIND")]
    pub(crate) kinds: Vec<KindChoice>,
    /// How transitions are lined up: one by one behind what is shared, or by what they mean
    #[arg(long, value_enum, default_value = "tick")]
    pub(crate) align: AlignChoice,
    /// Leave out what differs there, like agent_id or state.memory
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) ignore: Vec<String>,
    /// Only what differs there
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) path: Option<String>,
    /// Print the differences alone, without headline and counts
    #[arg(long, conflicts_with_all = ["stat", "summary"])]
    pub(crate) only_changes: bool,
    /// Count by type of transition, and list no pairs
    #[arg(long, conflicts_with = "summary")]
    pub(crate) stat: bool,
    /// Only the counts
    #[arg(long)]
    pub(crate) summary: bool,
    /// End with exit code 1 if the runs differ
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Both transitions of each pair in two columns
    #[arg(long, conflicts_with_all = ["stat", "summary"])]
    pub(crate) side_by_side: bool,
    /// Write the answer, without the pairs, into the casebook of the store
    #[arg(long)]
    pub(crate) record: bool,
    /// At most N pairs; 0 for all
    #[arg(short = 'n', long = "limit", default_value_t = 1000)]
    pub(crate) limit: usize,
}

/// A kind of difference (dendrer paper 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindChoice {
    /// Another type of transition at the same place, or none.
    Structural,
    /// The same type, and another intent, action, result, policy or change of state.
    Semantic,
    /// Another confidence.
    Confidence,
    /// Another state in the end.
    Outcome,
}

impl KindChoice {
    /// The kind that is meant.
    pub(crate) fn kind(self) -> Kind {
        match self {
            KindChoice::Structural => Kind::Structural,
            KindChoice::Semantic => Kind::Semantic,
            KindChoice::Confidence => Kind::Confidence,
            KindChoice::Outcome => Kind::Outcome,
        }
    }
}

/// How transitions are lined up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlignChoice {
    /// One by one behind what is shared, markers passed over.
    Tick,
    /// By the longest sequence of transitions that mean the same.
    Content,
}

/// How many places of one pair are listed where lines are cut to a width anyway.
const PLACES: usize = 8;

pub(crate) fn run(global: &Global, args: &Diff, out: &mut Out) -> Result {
    refuse_pairs(args, out)?;
    let (rev_a, rev_b) = (Rev::parse(&args.a)?, Rev::parse(&args.b)?);
    if args.record && (rev_a.bundle.is_some() || rev_b.bundle.is_some()) {
        return Err(Failure::new("E0601", "a bundle has no casebook to write into")
            .note("--record writes into the store that both runs are recorded in"));
    }
    let source_a = context::sound(global, &rev_a, out)?;
    // Two runs of one place are read from one place.
    let other = (rev_a.bundle != rev_b.bundle).then(|| context::sound(global, &rev_b, out)).transpose()?;
    let source_b = other.as_ref().unwrap_or(&source_a);
    let progress = Progress::start(global, "diff", "records", None);
    let (store_a, store_b) = (counted_of(&source_a, &progress), counted_of(source_b, &progress));
    let rev_a = rev_a.resolve(source_a.store())?;
    let rev_b = rev_b.resolve(source_b.store())?;
    let a = Trace::open(&store_a, &rev_a.run_in(source_a.store(), source_a.named())?)?;
    let b = Trace::open(&store_b, &rev_b.run_in(source_b.store(), source_b.named())?)?;
    let question = question(args, (&a, &rev_a), (&b, &rev_b))?;
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let mut listed = Listed::new(args, out.format(), question.align, limit);
    let mut failed = None;
    let report = diff::diff(&a, &b, &question, &mut |pair| match listed.take(pair, out) {
        Ok(()) => ControlFlow::Continue(()),
        Err(failure) => {
            failed = Some(failure);
            ControlFlow::Break(())
        }
    })?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    drop(progress);
    let part = is_part(&question, &report);
    let recorded = match args.record {
        true => record(global, (&a, &b), &report, &question, part)?,
        false => Vec::new(),
    };
    match out.format() {
        Format::Text => {
            listed.text(args, &report, &question, part, out)?;
            recorded_lines(&recorded).into_iter().try_for_each(|line| out.line(line))?;
        }
        _ => listed.document(args, (&a, &b), &report, &question, (part, &recorded), out)?,
    }
    Ok(match () {
        () if report.hidden > 0 => 6,
        () if args.exit_code && report.differs() => 1,
        () => 0,
    })
}

/// Writes the answer into the casebook, without the pairs that make it up.
fn record(
    global: &Global,
    (a, b): (&Trace, &Trace),
    report: &Report,
    question: &Question,
    part: bool,
) -> Result<Vec<Record>> {
    let at = |trace, tick| Moment::of(trace, Some(tick));
    let runs = [at(a, question.ends.0)?, at(b, question.ends.1)?];
    let path = |path: &Pointer| Value::from(path.as_str());
    let mut said = members(report, &question.kinds, question.align, part);
    said.extend([
        ("a", Value::from(a.name().as_str())),
        ("b", Value::from(b.name().as_str())),
        ("a_tip", Value::from(runs[0].id)),
        ("b_tip", Value::from(runs[1].id)),
        ("ignore", Value::array(question.ignore.iter().map(path))),
        ("path", Value::from(question.path.as_ref().map(path))),
    ]);
    let said = Value::record(said);
    context::write_down(global, |store, world| {
        casebook::record_diff(store, [&runs[0], &runs[1]], &said, world)
    })
}

fn counted_of<'s>(source: &'s Source, progress: &Progress) -> Arc<dyn Store> {
    progress.watch().over(source.store())
}

/// Refuses forms that exclude each other and that the argument parser knows nothing of.
fn refuse_pairs(args: &Diff, out: &Out) -> Result<()> {
    let form = match out.format() {
        Format::Text => return Ok(()),
        Format::Json => "one document",
        Format::Jsonl => "a stream of items",
    };
    let stream = out.format() == Format::Jsonl;
    let flags = [
        ("--stat", args.stat && stream),
        ("--summary", args.summary && stream),
        ("--only-changes", args.only_changes),
        ("--side-by-side", args.side_by_side),
    ];
    match flags.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(Failure::new("E0106", format!("{flag} is another form of the answer than {form}")))
        }
        None => Ok(()),
    }
}

fn question(args: &Diff, a: (&Trace, &Rev), b: (&Trace, &Rev)) -> Result<Question> {
    let end = |(trace, rev): (&Trace, &Rev)| rev.pos.as_ref().map_or(Ok(trace.tip()), |pos| pos.tick(trace));
    let ends = (end(a)?, end(b)?);
    let tick = |pos: &Option<Pos>| pos.as_ref().map(|pos| pos.tick(a.0)).transpose();
    let (from, to) = (tick(&args.from)?, tick(&args.to)?);
    address::in_order(from.unwrap_or(0), to.unwrap_or(ends.0))?;
    let to = to.map(|to| to.min(ends.0));
    address::in_order(from.unwrap_or(0), to.unwrap_or(ends.0))?;
    let kinds = match args.kinds.as_slice() {
        [] => Kind::ALL.to_vec(),
        kinds => kinds.iter().copied().map(KindChoice::kind).collect(),
    };
    let ignore = args.ignore.iter().map(|text| match place(text)? {
        whole if whole.as_str().is_empty() => {
            Err(Failure::new("E0106", "--ignore leaves nothing out that is whole").at("path", text.as_str()))
        }
        place => Ok(place),
    });
    Ok(Question {
        ends,
        from,
        to,
        align: match args.align {
            AlignChoice::Tick => Align::Tick,
            AlignChoice::Content => Align::Content,
        },
        kinds,
        ignore: ignore.collect::<Result<_>>()?,
        path: args.path.as_deref().map(place).transpose()?,
    })
}

/// Reads a place of a transition or of the state: a path that begins with the name of a member of transitions is one of
/// those, `state.x` and anything else one of the state.
fn place(text: &str) -> Result<Pointer> {
    // All below a place is the place.
    let text = text.strip_suffix(".*").filter(|_| !text.starts_with('/')).unwrap_or(text);
    let path = state_path(text)?;
    let first = path.tokens().next().map(|first| first.into_owned());
    let of_state = text == "state" || ["state.", "state["].iter().any(|start| text.starts_with(start));
    let first = first.filter(|_| !of_state);
    match first.as_deref() {
        None if text.is_empty() => Ok(path),
        Some("state") => Ok(path),
        Some(member) if MEMBERS.contains(&member) => Ok(path),
        _ => Ok(format!("{STATE}{}", path.as_str()).parse().expect("a pointer behind a name is one")),
    }
}

/// Whether the question leaves something out, so that the first difference found need not be where the runs diverged.
fn is_part(question: &Question, report: &Report) -> bool {
    let behind = report.shared.map_or(0, |shared| shared + 1);
    question.from.is_some_and(|from| from > behind)
        || question.kinds.len() < Kind::ALL.len()
        || !question.ignore.is_empty()
        || question.path.is_some()
}

/// What is listed, up to a limit.
struct Listed {
    format: Format,
    limit: usize,
    /// Whether pairs are listed at all.
    lists: bool,
    side_by_side: bool,
    /// Whether those that one run has behind the end of the other are told of in one line.
    tail_in_one: bool,
    items: Vec<Value>,
    rows: Vec<Vec<Line>>,
    table: Vec<Vec<String>>,
    shown: usize,
    total: u64,
    /// The ticks that one run has behind the end of the other, first and last, and how many.
    tail: Option<Tail>,
}

struct Tail {
    in_b: bool,
    from: u64,
    to: u64,
    count: u64,
}

impl Listed {
    fn new(args: &Diff, format: Format, align: Align, limit: usize) -> Listed {
        Listed {
            format,
            limit,
            lists: !args.stat && !args.summary,
            side_by_side: args.side_by_side,
            tail_in_one: align == Align::Tick && format == Format::Text && !args.side_by_side,
            items: Vec::new(),
            rows: Vec::new(),
            table: Vec::new(),
            shown: 0,
            total: 0,
            tail: None,
        }
    }

    fn take(&mut self, pair: &Pair, out: &mut Out) -> Result<()> {
        if !self.lists || self.tail_in_one && self.take_tail(pair) {
            return Ok(());
        }
        self.total += 1;
        if self.shown == self.limit {
            return Ok(());
        }
        self.shown += 1;
        match self.format {
            Format::Jsonl => out.item(&item_json(pair))?,
            Format::Json => self.items.push(item_json(pair)),
            Format::Text if self.side_by_side => self.table.push(side_by_side(pair)),
            Format::Text => self.rows.push(lines(pair)),
        }
        Ok(())
    }

    /// Takes in a transition that one run has behind the end of the other.
    fn take_tail(&mut self, pair: &Pair) -> bool {
        let (record, in_b) = match (&pair.a, &pair.b) {
            (Some(record), None) => (record, false),
            (None, Some(record)) => (record, true),
            _ => return false,
        };
        if !pair.kinds.is_empty() {
            let tick = record.header().tick.unwrap_or(0);
            let tail = self.tail.get_or_insert(Tail { in_b, from: tick, to: tick, count: 0 });
            (tail.to, tail.count) = (tick, tail.count + 1);
        }
        true
    }

    fn document(
        self,
        args: &Diff,
        (a, b): (&Trace, &Trace),
        report: &Report,
        question: &Question,
        (part, recorded): (bool, &[Record]),
        out: &mut Out,
    ) -> Result<()> {
        let mut members = members(report, &question.kinds, question.align, part);
        if args.record {
            members.push(("recorded", recorded_json(recorded)));
        }
        members.push(("a", Value::from(a.name().as_str())));
        members.push(("b", Value::from(b.name().as_str())));
        members.push(("complete", Value::from(self.shown as u64 == self.total)));
        if args.stat {
            members.extend([("types", types_json(report)), ("note", Value::from("types only"))]);
        }
        if args.summary {
            members.push(("note", Value::from("summary only")));
        }
        if self.format == Format::Jsonl {
            return out.summary("diff", members);
        }
        members.push(("items", Value::array(self.items)));
        out.document(&document("diff", members))
    }

    fn text(
        mut self,
        args: &Diff,
        report: &Report,
        question: &Question,
        part: bool,
        out: &mut Out,
    ) -> Result<()> {
        if !args.only_changes {
            let line = headline(report, part);
            let line = out.fit(&line, out.width());
            let line = out.paint(Style::Strong, &line);
            out.line(line)?;
            for line in head_lines(report, question.align) {
                let line = out.fit(&line, out.width());
                out.line(line)?;
            }
            out.line(found_line(report, &question.kinds))?;
            ignored_line(report).map_or(Ok(()), |line| out.line(line))?;
        }
        if args.stat {
            let (lines, cut) = type_table(report).lines(out.width());
            // A table without a row has a heading all the same.
            let lines = if accessible() { type_table(report).list() } else { lines };
            lines.into_iter().try_for_each(|line| out.line(line))?;
            if cut {
                out.line(CUT)?;
            }
        }
        if !args.stat && !args.summary {
            self.list(args, report, out)?;
        }
        if !args.only_changes {
            if self.shown as u64 != self.total {
                out.line(format!(
                    "{} of {} listed (use -n 0 for all)",
                    thousands(self.shown as u64),
                    count(self.total, "pair", "pairs")
                ))?;
            }
            out.line(count_line(report))?;
            if let Some(words) = shift_words(report) {
                out.say(format!("help: {words}"));
            }
        }
        Ok(())
    }

    fn list(&mut self, args: &Diff, report: &Report, out: &mut Out) -> Result<()> {
        let mut rows = std::mem::take(&mut self.rows);
        if self.side_by_side {
            let left = Column::Left;
            let mut table = Table::new([("a", left), ("differs", left), ("b", left)]);
            self.table.drain(..).for_each(|cells| table.row(cells));
            let (lines, cut) = table.lines(out.width());
            let lines = if accessible() { table.list() } else { lines };
            lines.into_iter().try_for_each(|line| out.line(line))?;
            if cut {
                out.line(CUT)?;
            }
        }
        rows.extend(self.tail.as_ref().map(|tail| vec![tail.line()]));
        rows.extend(report.outcome.as_ref().map(outcome_lines));
        if !args.only_changes && rows.iter().any(|lines| !lines.is_empty()) {
            out.line("")?;
        }
        print(&rows, out)
    }
}

/// Prints lines under each other: place, kind, type, and what differs.
fn print(rows: &[Vec<Line>], out: &mut Out) -> Result<()> {
    let place_of = |line: &Line| match line.kind {
        "outcome" => ("outcome".to_owned(), format!("at {}", line.ticks)),
        kind => (format!("tick {}", line.ticks), kind.to_owned()),
    };
    let all = || rows.iter().flatten();
    let size = |text: &str| text.chars().count();
    let widest = |part: &dyn Fn(&Line) -> usize| all().map(part).max().unwrap_or(0);
    let first = widest(&|line| size(&place_of(line).0));
    let second = widest(&|line| size(&place_of(line).1)).max(10);
    let third = widest(&|line| if line.place.is_empty() { 0 } else { size(&line.type_name) });
    let fourth = widest(&|line| size(&line.place)).min(44);
    let full = out.width().is_none();
    for lines in rows {
        let shown = if full { lines.len() } else { lines.len().min(PLACES) };
        let mut before = None;
        for line in &lines[..shown] {
            let (place, kind) = place_of(line);
            let type_name = &line.type_name;
            let same = before.replace((place.clone(), kind.clone()));
            // What is said on the line above is not said again, but to a reader who hears the lines.
            let same = same.filter(|_| !accessible());
            let again = same.as_ref().map(|(place, _)| place) == Some(&place);
            let head = match (again, same.as_ref() == Some(&(place.clone(), kind.clone()))) {
                (true, true) => format!("  {:first$}  {:second$}  {:third$}", "", "", ""),
                (true, false) => format!("  {:first$}  {kind:second$}  {:third$}", "", ""),
                _ => format!("  {place:first$}  {kind:second$}  {type_name:third$}"),
            };
            let what = match &line.sides {
                Some((a, b)) => {
                    let width = out.width().map(|width| width / 3);
                    let (a, b) = (out.fit(a, width), out.fit(b, width));
                    format!("{:fourth$}  {a} -> {b}", line.place)
                }
                None if line.note.is_empty() => line.place.clone(),
                None if line.place.is_empty() => line.note.clone(),
                None => format!("{:fourth$}  {}", line.place, line.note),
            };
            let text = format!("{head}  {what}");
            let text = out.fit(text.trim_end(), out.width());
            let text = out.paint(Style::Warn, &text);
            out.line(text)?;
        }
        if shown < lines.len() {
            out.line(format!("  {:first$}  ({} more; --full shows them)", "", lines.len() - shown))?;
        }
    }
    Ok(())
}

impl Tail {
    fn line(&self) -> Line {
        let span = match self.count {
            1 => self.from.to_string(),
            _ => format!("{}..{}", self.from, self.to),
        };
        let side = if self.in_b { "b" } else { "a" };
        let transitions = count(self.count, "transition", "transitions");
        Line {
            ticks: if self.in_b { format!("-|{span}") } else { format!("{span}|-") },
            kind: Kind::Structural.as_str(),
            type_name: format!("only in {side}: {transitions}"),
            place: String::new(),
            sides: None,
            note: String::new(),
        }
    }
}
