//! Writes, trees of inputs and what followed, as lines and as documents.

use dendrer::ask::why::gather::{Backtracked, BacktrackedWrite, Records, WhyAnswer};
use dendrer::ask::why::sources::SourceWrite;
use dendrer::why::{Because, Chain, Follower, Stops, UpstreamRecord, WhyNode};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::document::As;
use dendrer_object::record::Rel;
use dendrer_object::{Object, Pointer, Record, RunName, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::certainty::{Certainty, UnknownPlace, unknown_line, unknown_places};
use crate::change::{ChangeObject, ShownChange, place_text, whole_command};
use crate::conflicts::DecisionObject;
use crate::first_seen::{FirstSeenMembers, seen_lines};
use crate::layout::{columns, pad};
use crate::row::{Row, TransitionObject, row};
use crate::verdict::list;
use crate::{conflicts, count, quote};

/// The words for a delta without any other record of its inputs.
pub const UNKNOWN: &str =
    "inputs unknown: a delta says what it wrote, not what it read, and no link says more";

/// How sure it is that something is an input.
pub fn certainty(because: &Because) -> Certainty {
    match because {
        Because::StoodThere => Certainty::Exact,
        Because::Link(_) => Certainty::Recorded,
        Because::MayRead(_) | Because::MayReadWhole(_) => Certainty::Heuristic,
    }
}

/// Says why something is an input.
pub fn because_words(because: &Because) -> String {
    match because {
        Because::StoodThere => "built on what stood there (exact)".to_owned(),
        Because::Link(rel) => format!("{rel} (recorded)"),
        Because::MayRead(place) => format!("a rule may read {} (heuristic)", quote::path(place)),
        Because::MayReadWhole(place) => format!(
            "a rule may read {} as a whole, and this is the newest write in it (heuristic)",
            quote::path(place)
        ),
    }
}

/// Writes an operation on one line; the path only where it is not the place that was asked about.
pub fn op_words(op: &Op, place: Option<&Pointer>) -> String {
    let word = match op.action {
        Action::Set => "set",
        Action::Remove => "remove",
        Action::Append => "append",
        Action::Add => "add",
    };
    let path = if place == Some(&op.path) { String::new() } else { format!(" {}", quote::path(&op.path)) };
    match &op.value {
        Some(value) => format!("{word}{path} {}", quote::value(value)),
        None => format!("{word}{path}"),
    }
}

/// Writes operations on one line.
pub fn ops_words(ops: &[Op], place: Option<&Pointer>) -> String {
    let words: Vec<String> = ops.iter().map(|op| op_words(op, place)).collect();
    words.join("; ")
}

/// Says why a tree does not go on.
pub fn stops_words(stops: &Stops) -> &'static str {
    match stops {
        Stops::Depth => "(--depth goes further)",
        Stops::Above => "(its inputs are above)",
        Stops::OtherAgent => "(another agent's; --cross-agent goes on from there)",
        Stops::Size => "(the tree is as large as it may be)",
        Stops::Unknown => UNKNOWN,
        Stops::Nothing => "no input: the rules that write there look at nothing that any transition wrote",
    }
}

/// Returns the row of a tick that an answer names.
pub(crate) fn row_of(records: &Records, tick: u64) -> Row {
    row(&records[&tick])
}

/// Writes a tree of inputs, each deeper than what it is an input of; `written` is what the first write changed.
pub fn tree_lines(run: &RunName, records: &Records, node: &WhyNode, written: Option<Vec<Line>>) -> Vec<Line> {
    let row = row_of(records, node.tick);
    let more = whole_command(run, node.tick, None);
    let said = [row.type_name, row.agent, row.summary].into_iter().filter(|part| !part.is_empty());
    let said = said.collect::<Vec<_>>().join("  ");
    let mut lines = vec![Line::value(format!("tick {}  {said}", node.tick), more.clone())];
    match (written, &node.wrote) {
        (Some(written), _) => lines.extend(written),
        (None, Some((place, ops))) => {
            let ops = ops_words(ops, Some(place));
            lines.push(Line::value(format!("  {}: {ops}", quote::path(place)), more));
        }
        (None, None) => {}
    }
    lines.extend(input_lines(run, records, node, 1));
    lines
}

/// Returns which flags continue a tree where it ends.
fn ends_of(node: &WhyNode) -> Vec<&'static str> {
    let here = match node.stops {
        Some(Stops::Depth) => Some("--depth goes further back"),
        Some(Stops::OtherAgent) => Some("--cross-agent follows the inputs of other agents"),
        _ => None,
    };
    here.into_iter().chain(node.inputs.iter().flat_map(ends_of)).collect()
}

/// Writes the inputs of a node, or why they are not listed.
fn input_lines(run: &RunName, records: &Records, node: &WhyNode, level: usize) -> Vec<Line> {
    let lead = "  ".repeat(level);
    let mut lines = Vec::new();
    for input in &node.inputs {
        let row = row_of(records, input.tick);
        let why = input.because.as_ref().map(because_words).unwrap_or_default();
        let stops = if input.stops == Some(Stops::Above) { stops_words(&Stops::Above) } else { "" };
        let tick = format!("{lead}<- tick {}", input.tick);
        let head = [tick, row.type_name, row.agent, why, stops.to_owned()];
        let head: Vec<String> = head.into_iter().filter(|part| !part.is_empty()).collect();
        lines.push(head.join("  ").into());
        let more = whole_command(run, input.tick, None);
        let value = |text: String| Line::value(format!("{lead}   {text}"), more.clone());
        lines.extend((!row.summary.is_empty()).then(|| value(row.summary.clone())));
        if let Some((place, ops)) = &input.wrote {
            lines.push(value(format!("{}: {}", quote::path(place), ops_words(ops, Some(place)))));
        }
        lines.extend(input_lines(run, records, input, level + 1));
    }
    if let Some(stops @ (Stops::Unknown | Stops::Nothing | Stops::Size)) = &node.stops {
        lines.push(format!("{lead}{}", stops_words(stops)).into());
    }
    lines
}

document! {
    /// The reason why a transition is an input
    object BecauseObject(because: &Because, earlier: Option<u64>) {
        /// The way in which it is an input
        how: ["stood there" | "caused_by" | "evidence" | "may read"] = how_word(because),
        /// The certainty that it is one
        certainty: ["exact" | "recorded" | "heuristic"] = certainty(because).as_str(),
        /// The place that a rule may read
        path?: &Pointer = match because {
            Because::MayRead(place) | Because::MayReadWhole(place) => Some(place),
            _ => None,
        },
        /// Whether the rule may read the place as a whole
        whole?: bool = matches!(because, Because::MayReadWhole(_)).then_some(true),
        /// The tick of the input, in a causal chain
        tick?: u64 = earlier,
    }

    /// A transition in a tree of inputs
    pub object NodeObject(records: &Records, node: &WhyNode) {
        let (path, ops) = node.wrote.as_ref().map(|(place, ops)| (place, Delta(ops.clone()))).unzip();
        let inputs = node.inputs.iter().map(|input| NodeObject::of(records, input).into());
        ..TransitionObject = TransitionObject::of(&records[&node.tick]),
        /// The place that is followed; absent if a link led to the transition
        path?: &Pointer = path,
        /// The operations of the transition there
        ops?: Delta = ops,
        /// The reason why it is an input; absent for the write that was asked about
        because?: BecauseObject = node.because.as_ref().map(|because| BecauseObject::of(because, None)),
        /// The reason why the inputs are not listed; null if they are
        stops: Option<Stops> = node.stops,
        /// The inputs, each as this object
        inputs: As<Vec<Object>> = As::new(Value::array(inputs)),
    }

    /// The last write of a place, in the run or in a source of its merge
    object RootObject(run: Option<&RunName>, records: &Records, node: &WhyNode) {
        /// The run that the transition is of; absent for the one that was asked about
        run?: &RunName = run,
        ..NodeObject = NodeObject::of(records, node),
    }

    /// A write in a run from which a merge took a place
    pub object SourceObject(write: &SourceWrite) {
        /// The run
        run: &RunName = &write.run,
        /// The tick
        tick: u64 = write.tick,
        /// The place that was written
        path: &Pointer = &write.path,
    }

    /// A transition that the recorded links of an onset lead back to
    pub object UpstreamObject(records: &Records, found: &UpstreamRecord) {
        ..TransitionObject = TransitionObject::of(&records[&found.tick]),
        /// The links that name it
        named_by: Vec<NamingLink> =
            found.named_by.iter().map(|(tick, rel)| NamingLink::of(*tick, *rel)).collect(),
    }

    /// A link that names a transition
    object NamingLink(from: u64, rel: Rel) {
        /// The tick of the record that has the link
        tick: u64 = from,
        /// The relation
        link: Rel = rel,
    }

    /// The transitions that followed from an onset
    pub object ChainObject(records: &Records, chain: &Chain) {
        /// The certainty
        certainty: ["heuristic"] = Certainty::Heuristic.as_str(),
        /// The source of the places that a transition may read; unknown for recorded links alone
        reads: ["rules" | "unknown"] = reads_word(chain.rules),
        /// The last tick that was looked at
        looked_to: u64 = chain.looked_to,
        /// Whether more follow
        more: bool = chain.more,
        /// The transitions, the onset first
        items: Vec<FollowerObject> =
            chain.members.iter().map(|member| FollowerObject::of(records, chain, member)).collect(),
    }

    /// A transition of a causal chain
    object FollowerObject(records: &Records, chain: &Chain, member: &Follower) {
        let because = member.because.iter().map(|(tick, because)| BecauseObject::of(because, Some(*tick)));
        ..TransitionObject = TransitionObject::of(&records[&member.tick]),
        /// The members of the chain that it follows from
        because: Vec<BecauseObject> = because.collect(),
        /// The changes; null if a value was erased or withheld
        changes: Option<Vec<ChangeObject>> =
            member.changes.as_ref().map(|changes| changes.iter().map(ChangeObject::of).collect()),
        /// Whether it only comes after the onset
        temporal: bool = member.because.is_empty() && member.tick != chain.members[0].tick,
    }

    /// The transitions that a value follows from
    pub object WhyDocument: "why" reads (answer: &WhyAnswer) {
        let root = answer.why.root.as_ref();
        let certainty = if root.is_some_and(guesses) { Certainty::Heuristic } else { Certainty::Recorded };
        /// The run
        run: &RunName = &answer.run,
        /// The tick at which the value is looked at
        tick: u64 = answer.tick,
        /// The place that was asked about
        path: &Pointer = &answer.path,
        /// The place whose writes are followed: the list, for an item of one
        followed: &Pointer = &answer.followed,
        /// Whether there is a value at the place
        there: bool = answer.value.is_some(),
        /// The value; null if it is missing
        value: Option<&Value> = answer.value.as_ref(),
        /// The last write of the place; null if the run began with it and no merge took it from another
        root: Option<RootObject> =
            root.map(|root| RootObject::of(answer.from.as_ref(), &answer.records, root)),
        /// The last write of the place in each run from which a merge took it; absent if a transition of the run wrote it
        sources?: Vec<SourceObject> = (!answer.sources.is_empty())
            .then(|| answer.sources.iter().map(SourceObject::of).collect()),
        /// The ticks whose change was erased or withheld
        hidden: &[u64] = &answer.why.hidden,
        /// The source of the places that a transition read; unknown for recorded links alone
        reads: ["rules" | "unknown"] = reads_word(answer.why.rules),
        /// The certainty
        certainty: ["recorded" | "heuristic" | "unavailable"] =
            certainty.unless(!answer.unknown.is_empty()).as_str(),
        /// The unknown places that the answer reads; absent if every place is known
        unknown?: Vec<UnknownPlace> = unknown_places(&answer.unknown),
        ..?FirstSeenMembers = answer.first_seen.as_ref().map(FirstSeenMembers::of),
    }

    /// Every write of a place in the state
    pub object BacktrackDocument: "backtrack" reads (found: &Backtracked) {
        /// The run
        run: &RunName = &found.run,
        /// The place that was asked about
        path: &Pointer = &found.path,
        /// The place whose writes are listed: the list, for an item of one
        followed: &Pointer = &found.followed,
        /// The first tick that was looked at
        from: u64 = found.range.0,
        /// The last tick that was looked at
        to: u64 = found.range.1,
        /// The number of writes
        total: usize = found.total,
        /// Whether no write was left out because of the limit
        complete: bool = found.writes.len() == found.total,
        /// The ticks whose change was erased or withheld
        hidden: &[u64] = &found.hidden,
        /// The ticks of writes whose agent was erased or withheld, if one agent was asked for
        nameless: &[u64] = &found.nameless,
        /// The certainty
        certainty: ["exact" | "unavailable"] = Certainty::Exact.unless(!found.unknown.is_empty()).as_str(),
        /// The writes, newest first
        items: Vec<WriteObject> =
            found.writes.iter().map(|write| WriteObject::of(&found.records, write)).collect(),
        /// The unknown places that the answer reads; absent if every place is known
        unknown?: Vec<UnknownPlace> = unknown_places(&found.unknown),
    }

    /// A write of a place
    object WriteObject(records: &Records, write: &BacktrackedWrite) {
        let (before, after) = write.sides.as_ref().map(|(before, after)| (before, after)).unzip();
        let inputs = write.inputs.as_ref();
        let records = records_of(records, write);
        /// The run, if a merge took the value from it; absent for the one that was asked about
        run?: &RunName = write.from.as_ref().map(|(run, _)| run),
        ..TransitionObject = TransitionObject::of(&records[&write.tick]),
        /// The operations of the transition on the place
        ops: Delta = Delta(write.ops.clone()),
        /// The value before; absent if there was none or it was not asked for
        before?: &Value = before.and_then(Option::as_ref),
        /// The value after; absent if it is missing or it was not asked for
        after?: &Value = after.and_then(Option::as_ref),
        /// The conflicts of agents at the place that the write, of a sync node, kept or decided
        decided?: Vec<DecisionObject> = (!write.conflicts.is_empty())
            .then(|| write.conflicts.iter().map(DecisionObject::of).collect()),
        /// The inputs, if they were asked for
        inputs?: Vec<NodeObject> =
            inputs.map(|node| node.inputs.iter().map(|input| NodeObject::of(records, input)).collect()),
        /// The reason why the inputs are not listed; null if they are
        stops?: Option<Stops> = inputs.map(|node| node.stops),
    }
}

fn how_word(because: &Because) -> &'static str {
    match because {
        Because::StoodThere => "stood there",
        Because::Link(rel) => rel.as_str(),
        Because::MayRead(_) | Because::MayReadWhole(_) => "may read",
    }
}

fn reads_word(has_rules: bool) -> &'static str {
    if has_rules { "rules" } else { "unknown" }
}

/// Writes what followed from an onset; nothing if nothing did.
pub fn chain_lines(run: &RunName, records: &Records, chain: &Chain, page: &Page) -> Vec<Line> {
    let onset = chain.members.first().map(|member| member.tick);
    let followers: Vec<&Follower> =
        chain.members.iter().filter(|member| Some(member.tick) != onset).collect();
    if followers.is_empty() && !chain.more {
        return Vec::new();
    }
    let basis = match chain.rules {
        true => "by links, and what the rules of the pack may read",
        false => "by recorded links alone: what a delta read is not known",
    };
    let mut lines = vec![Line::styled(Style::Strong, "CAUSAL CHAIN (heuristic)").then(format!("  {basis}"))];
    for member in followers {
        let row = row_of(records, member.tick);
        let how = member.because.iter().map(|(tick, because)| format!("{tick} {}", because_words(because)));
        let how: Vec<String> = how.collect();
        let how = match how.is_empty() {
            true => "only comes after".to_owned(),
            false => format!("<- {}", how.join(", ")),
        };
        let more = |path: Option<&Pointer>| whole_command(run, member.tick, path);
        let text = format!("  tick {}  {}  {}", member.tick, row.type_name, row.summary);
        lines.push(Line::value(text.trim_end(), more(None)));
        lines.push(format!("      {how}").into());
        match &member.changes {
            Some(changes) => {
                let shown = changes.iter().map(|one| ShownChange::of_write(one, more(Some(&one.path))));
                lines.extend(page.changes(&shown.collect::<Vec<_>>(), 6));
            }
            None => lines.push("      changes not known: a value was erased or withheld".into()),
        }
    }
    if chain.more {
        lines.push("  (more follow; --chain-limit shows more)".into());
    }
    lines
}

/// Writes what the recorded links of an onset lead back to.
pub fn upstream_lines(records: &Records, upstream: &[UpstreamRecord]) -> Vec<Line> {
    let line = |one: &UpstreamRecord| {
        let row = row_of(records, one.tick);
        let by: Vec<String> = one.named_by.iter().map(|(tick, rel)| format!("{rel} of {tick}")).collect();
        let what = [row.type_name, upstream_words(&records[&one.tick], &row.summary), by.join(", ")];
        let what: Vec<String> = what.into_iter().filter(|part| !part.is_empty()).collect();
        Line::from(format!("  tick {}  {}", one.tick, what.join("  ")))
    };
    let head = (!upstream.is_empty()).then(|| Line::styled(Style::Strong, "UPSTREAM (recorded)"));
    head.into_iter().chain(upstream.iter().map(line)).collect()
}

/// Writes a transition that a link names: of a call the tool alone, since its parameters are read in its place.
fn upstream_words(record: &Record, summary: &str) -> String {
    let content = record.content();
    let tool = content.get("action").and_then(|action| action.get("tool")?.as_str().map(quote::name));
    let said =
        ["description", "content"].map(|name| content.get("intent").and_then(|intent| intent.get(name)));
    let is_said = |said: &Value| !matches!(said, Value::Null) && said.as_str() != Some("");
    let has_words = said.into_iter().flatten().any(is_said) || content.get("result").is_some();
    tool.filter(|_| !has_words).unwrap_or_else(|| summary.to_owned())
}

/// Writes the write in a source of a merge on one line.
pub(crate) fn source_line(write: &SourceWrite) -> String {
    let row = row(&write.record);
    let what = ops_words(&write.ops, Some(&write.path));
    let place = quote::path(&write.path);
    format!("  {}@{}  {}  {}  {place}: {what}", write.run, write.tick, row.agent, row.type_name)
}

/// The records that a write is named in.
fn records_of<'r>(records: &'r Records, write: &'r BacktrackedWrite) -> &'r Records {
    write.from.as_ref().map_or(records, |(_, records)| records)
}

/// Whether a tree contains an input that nothing on record names.
fn guesses(node: &WhyNode) -> bool {
    matches!(node.because, Some(Because::MayRead(_) | Because::MayReadWhole(_)))
        || node.inputs.iter().any(guesses)
}

/// Notes ticks whose writes are not known; `None` if every write is known.
fn hidden_line(hidden: &[u64]) -> Option<Line> {
    let ticks = list(&hidden.iter().map(ToString::to_string).collect::<Vec<_>>(), 12)?;
    Some(format!("not known: what ticks {ticks} wrote was erased or withheld").into())
}

/// Writes what the last write changed, if it is of a number; of other values the operation has all there is.
fn written_lines(answer: &WhyAnswer, run: &RunName, tick: u64, page: &Page) -> Option<Vec<Line>> {
    let moved = &answer.first_seen.as_ref()?.moved;
    let shown = moved.iter().filter(|write| write.tick == tick).map(|write| {
        let more = whole_command(run, tick, Some(&write.place));
        ShownChange::of(place_text(&write.place), write.before.as_ref(), Some(&write.after), more)
    });
    let shown: Vec<ShownChange> = shown.collect();
    (!shown.is_empty()).then(|| page.changes(&shown, 2))
}

/// Writes the value, since when it is there, and the place.
fn answer_line(answer: &WhyAnswer, page: &Page) -> Line {
    let path = quote::path(&answer.path);
    let shown = answer.value.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value);
    let root = answer.why.root.as_ref().filter(|_| answer.from.is_none());
    let since =
        root.map_or_else(|| "since the run began".to_owned(), |root| format!("since tick {}", root.tick));
    let rev = format!("{}@{}", answer.run, answer.tick);
    let more = ["dendrer", "state", &rev, "--path", &path, "--full"].map(str::to_owned).to_vec();
    let read = if page.is_usual { String::new() } else { page.read_from() };
    Line::value(format!("{shown} {since}  {path} of {}{read}", answer.run), more)
}

impl Answer for WhyAnswer {
    fn document(&self) -> Value {
        WhyDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let (path, followed) = (quote::path(&self.path), quote::path(&self.followed));
        let mut lines = vec![answer_line(self, page)];
        if let Some(from) = &self.from {
            lines.push(format!("the run began with it: a merge took it from {from}").into());
            lines.extend(self.sources.iter().map(|write| Line::from(source_line(write))));
            lines.push(format!("in {from}:").into());
        }
        match &self.why.root {
            Some(root) => {
                let run = self.from.as_ref().unwrap_or(&self.run);
                lines.extend(tree_lines(run, &self.records, root, written_lines(self, run, root.tick, page)));
            }
            None => lines.push("no transition wrote it: the run began with it".into()),
        }
        if self.followed != self.path {
            let line = format!(
                "{path} is in the list {followed}: the last write that changed what is there is shown"
            );
            lines.push(line.into());
        }
        lines.extend(hidden_line(&self.why.hidden));
        lines.extend(unknown_line(&self.unknown));
        let source = self.from.as_ref().unwrap_or(&self.run);
        lines.extend(self.first_seen.iter().flat_map(|found| seen_lines(source, found)));
        let ends = self.why.root.iter().flat_map(ends_of).collect::<std::collections::BTreeSet<_>>();
        lines.extend(ends.into_iter().map(|words| Line::note(format!("note: {words}"))));
        lines
    }

    fn end(&self) -> End {
        let is_known = self.why.hidden.is_empty() && self.unknown.is_empty();
        if is_known { End::Answered } else { End::Unknown }
    }
}

impl Answer for Backtracked {
    fn document(&self) -> Value {
        BacktrackDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut lines = write_lines(self, page);
        if self.followed != self.path {
            let (path, followed) = (quote::path(&self.path), quote::path(&self.followed));
            lines.push(format!("{path} is in a list, so every write of {followed} is listed").into());
        }
        let all = count(self.total as u64, "write", "writes");
        let shown = self.writes.len();
        let writes = match self.total == shown {
            true => all,
            false => format!("{shown} of {all} (use -n 0 for all)"),
        };
        let (from, to) = self.range;
        let ticks = count((to + 1).saturating_sub(from), "tick", "ticks");
        lines.push(format!("{writes} in {ticks}{}", page.of_run(&self.run)).into());
        lines.extend(hidden_line(&self.hidden));
        let nameless: Vec<String> = self.nameless.iter().map(ToString::to_string).collect();
        if let Some(ticks) = list(&nameless, 12) {
            let line = format!(
                "not known: whose writes those at ticks {ticks} are; the agent was erased or withheld"
            );
            lines.push(line.into());
        }
        lines.extend(unknown_line(&self.unknown));
        lines
    }

    fn end(&self) -> End {
        let is_known = self.hidden.is_empty() && self.nameless.is_empty() && self.unknown.is_empty();
        if is_known { End::Answered } else { End::Unknown }
    }
}

/// Writes each write with what it did, its columns lined up, and its inputs below it.
fn write_lines(found: &Backtracked, page: &Page) -> Vec<Line> {
    let row_of = |write: &BacktrackedWrite| row_of(records_of(&found.records, write), write.tick);
    let rows: Vec<(&BacktrackedWrite, Row)> =
        found.writes.iter().map(|write| (write, row_of(write))).collect();
    let widest = |size: &dyn Fn(&(&BacktrackedWrite, Row)) -> usize| rows.iter().map(size).max().unwrap_or(0);
    let ticks = widest(&|(write, _)| write.tick.to_string().len());
    let agents = widest(&|(_, row)| columns(&row.agent));
    let types = widest(&|(_, row)| row.type_name.len());
    let mut lines = Vec::new();
    for (write, row) in &rows {
        let (tick, agent, type_name) = (write.tick, pad(&row.agent, agents), &row.type_name);
        let run = write.from.as_ref().map(|(run, _)| run);
        let head = format!("tick {tick:>ticks$}  {agent}  {type_name:<types$}");
        let more = whole_command(run.unwrap_or(&found.run), tick, Some(&found.followed));
        let in_run = run.map(|run| format!("(in {run})")).unwrap_or_default();
        match &write.sides {
            Some((before, after)) => {
                let change = ShownChange::of(head, before.as_ref(), after.as_ref(), more);
                let note = if in_run.is_empty() { change.note.clone() } else { in_run };
                lines.extend(page.changes(&[ShownChange { note, ..change }], 0));
            }
            None => {
                let what = ops_words(&write.ops, Some(&found.followed));
                lines.push(Line::value(format!("  {head}  {what}  {in_run}").trim_end(), more));
            }
        }
        lines.extend(
            write.conflicts.iter().map(|one| Line::from(format!("      {}", conflicts::decision(one)))),
        );
        let Some(mut node) = write.inputs.clone() else { continue };
        // Only one step is listed here; `why` shows the rest.
        node.inputs.iter_mut().for_each(|input| input.stops = None);
        let records = records_of(&found.records, write);
        lines.extend(input_lines(run.unwrap_or(&found.run), records, &node, 3));
    }
    lines
}
