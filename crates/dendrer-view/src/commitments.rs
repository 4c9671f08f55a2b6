//! The commitments of a run, as lines and as documents.

use dendrer::ask::commitments::{Admission, CommitmentsAt, CommitmentsDifference, StatusDifference};
use dendrer::delegate::{Accepted, Delegated};
use dendrer::kernel::commitment::{
    Authorized, Commitment, CommitmentEdge, CommitmentStatus, Commitments, EdgeKind, UNKNOWN_ID, Violated,
};
use dendrer::kernel::expr::Expr;
use std::sync::Arc;

use dendrer_object::{Code, Value};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::ccas::{ccas_text, listed_hard};
use crate::graph::Drawing;
use crate::{count, document, quote};

/// Which commitments are listed.
#[derive(Debug, Clone, Default)]
pub struct CommitmentFilter {
    /// Of this type.
    pub kind: Option<String>,
    /// With this status.
    pub status: Option<String>,
    /// In this scope.
    pub scope: Option<String>,
    /// With a conflict.
    pub conflicts: bool,
    /// Stale.
    pub stale: bool,
}

/// The commitments of a run at a tick.
#[derive(Debug)]
pub struct CommitmentsAnswer {
    /// The commitments.
    pub found: CommitmentsAt,
    /// Which are listed.
    pub filter: CommitmentFilter,
}

impl CommitmentsAnswer {
    fn status(&self, one: &Commitment) -> CommitmentStatus {
        self.found.statuses.get(&one.id).map_or(CommitmentStatus::Tentative, |(status, _)| *status)
    }

    fn listed(&self) -> impl Iterator<Item = &Commitment> {
        let filter = &self.filter;
        self.found.all.all().iter().map(|one| &**one).filter(move |one| {
            let is =
                |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
            let status = self.status(one);
            let has_conflict = || {
                let all = &self.found.all;
                let mut edges = all.edges_from(&one.id).chain(all.edges_to(&one.id));
                edges.any(|edge| edge.kind == EdgeKind::ConflictsWith)
            };
            is(&filter.kind, one.kind.as_str())
                && is(&filter.status, status.as_str())
                && is(&filter.scope, &one.scope)
                && (!filter.conflicts || has_conflict())
                && (!filter.stale || status == CommitmentStatus::Stale)
        })
    }

    /// Who acts, and within what (CCAS paper 6.1): the agents, the tools that the pack gates, and the contract of a delegated run.
    fn context(&self) -> Value {
        let contract = self.found.all.contract().map(|contract| contract.written.clone());
        Value::record([
            ("actors", texts(&self.found.agents)),
            ("tools", Value::from(self.found.tools.as_deref().map(texts))),
            ("contract", Value::from(contract)),
        ])
    }

    fn support(&self, one: &Commitment) -> Value {
        let edges = self.found.all.edges_to(&one.id).filter(|edge| edge.kind == EdgeKind::Supports);
        Value::array(edges.map(|edge| {
            let atom = self.found.all.atom(&edge.from);
            Value::record([
                ("id", Value::from(&*edge.from)),
                ("mode", Value::from(atom.as_ref().map(|atom| atom.mode.as_str()))),
                ("attestation", Value::from(atom.and_then(|atom| atom.attestation))),
            ])
        }))
    }

    /// What edges of a kind that begin at a commitment name.
    fn named(&self, one: &Commitment, kind: EdgeKind) -> Value {
        let edges = self.found.all.edges_from(&one.id).filter(|edge| edge.kind == kind);
        Value::array(edges.map(|edge| Value::String(edge.to)))
    }

    fn item(&self, one: &Commitment) -> Value {
        let all = &self.found.all;
        let cause =
            self.found.statuses.get(&one.id).map(|(_, cause)| cause.because.clone()).unwrap_or_default();
        let text = |expr: &Option<Expr>| Value::from(expr.as_ref().map(Expr::text));
        Value::record([
            ("id", Value::from(&*one.id)),
            ("type", Value::from(one.kind.as_str())),
            ("hard", Value::from(one.is_hard)),
            ("gloss", Value::from(&*one.gloss)),
            ("guard", text(&one.guard)),
            ("discharge", text(&one.discharge)),
            ("holds", text(&one.holds)),
            ("condition", text(&one.condition)),
            ("watch", Value::array(one.watch.iter().map(|name| Value::from(&**name)))),
            ("priority", Value::from(one.priority)),
            ("scope", Value::from(&*one.scope)),
            ("conflicts", self.named(one, EdgeKind::ConflictsWith)),
            ("depends_on", self.named(one, EdgeKind::DependsOn)),
            ("refines", self.named(one, EdgeKind::Refines)),
            ("supersedes", Value::from(one.supersedes.as_deref())),
            ("allowed", Value::from(one.allowed().cloned())),
            ("forbidden", Value::from(one.written.get("forbidden").cloned())),
            ("status", Value::from(self.status(one).as_str())),
            ("grounded", Value::from(all.grounded_by(&one.id).is_some())),
            ("binds", Value::from(all.binds(one))),
            ("owner", Value::from(all.owner(one).as_str())),
            ("tick", Value::from(one.tick)),
            ("changed", Value::from(self.found.changed(&one.id))),
            ("because", Value::array(cause.iter().map(|id| Value::from(&**id)))),
            ("support", self.support(one)),
        ])
    }
}

impl Answer for CommitmentsAnswer {
    fn document(&self) -> Value {
        let ignored = self.found.all.ignored().map(|one| {
            let members = [
                ("tick", Value::from(one.tick)),
                ("id", Value::from(&*one.id)),
                ("why", Value::from(&*one.why)),
            ];
            Value::record(members)
        });
        let members = [
            ("run", Value::from(self.found.run.as_str())),
            ("at", Value::from(self.found.at)),
            ("stage", Value::from(self.found.stage)),
            ("context", self.context()),
            ("hidden", Value::from(self.found.all.hidden())),
            ("without_effect", Value::array(ignored)),
            ("items", Value::array(self.listed().map(|one| self.item(one)))),
        ];
        document("commitments", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        for one in self.listed() {
            let status = self.status(one);
            let hard = if one.is_hard { " hard" } else { "" };
            let because = self.found.statuses.get(&one.id).map(|(_, cause)| cause.because.join(", "));
            let because =
                because.filter(|ids| !ids.is_empty()).map(|ids| format!("  ({})", quote::escape(&ids)));
            let text = format!(
                "{:<10}  {:<5}{hard}  {}  {}{}",
                status.as_str(),
                one.kind.as_str(),
                quote::escape(&one.id),
                quote::escape(&one.gloss),
                because.unwrap_or_default()
            );
            lines.push(match status {
                CommitmentStatus::Active => Line::from(text),
                CommitmentStatus::Stale | CommitmentStatus::Blocked => Line::styled(Style::Warn, text),
                _ => Line::styled(Style::Dim, text),
            });
        }
        let all = count(self.found.all.all().len() as u64, "commitment", "commitments");
        lines.push(Line::note(format!("{} of {all} at tick {}", self.listed().count(), self.found.at)));
        lines.extend(hidden_line(&self.found.all));
        lines.extend(self.found.all.ignored().map(|one| {
            let why = match &*one.why {
                "id_used" => "the id was used before",
                "rank" => "its author has not the rank of the owner",
                _ => "there is no commitment of this id",
            };
            Line::styled(
                Style::Warn,
                format!("tick {}  {} has no effect: {why}", one.tick, quote::escape(&one.id)),
            )
        }));
        lines
    }

    fn end(&self) -> End {
        if self.found.all.hidden().is_some() { End::Unknown } else { End::Answered }
    }
}

/// Says that what was erased or withheld is not counted.
fn hidden_line(all: &Commitments) -> Option<Line> {
    let tick = all.hidden()?;
    let text = format!(
        "UNKNOWN: lists of tick {tick} or later were erased or withheld; what they brought is not counted"
    );
    Some(Line::styled(Style::Warn, text))
}

/// Why a commitment has its status.
#[derive(Debug)]
pub struct CommitmentWhyAnswer {
    /// The commitments.
    pub found: CommitmentsAt,
    /// The id.
    pub id: String,
}

impl CommitmentWhyAnswer {
    fn edges(&self) -> Vec<CommitmentEdge> {
        let all = &self.found.all;
        let mut edges = all.closure(&self.id);
        let others =
            all.edges_from(&self.id).chain(all.edges_to(&self.id).filter(|edge| edge.from != edge.to));
        let mut others: Vec<_> = others.filter(|edge| edge.kind != EdgeKind::Supports).collect();
        others.sort_by_key(|edge| edge.tick);
        edges.extend(others);
        edges
    }
}

impl Answer for CommitmentWhyAnswer {
    fn document(&self) -> Value {
        let all = &self.found.all;
        let status = self.found.statuses.get(&self.id);
        let closure = self.edges().into_iter().map(|edge| {
            let other = if *edge.from == *self.id { &edge.to } else { &edge.from };
            Value::record([
                ("id", Value::from(&**other)),
                ("edge", Value::from(edge.kind.as_str())),
                ("mode", Value::from(all.atom(other).map(|atom| atom.mode.as_str()))),
                ("author", Value::from(edge.author.as_str())),
                ("tick", Value::from(edge.tick)),
            ])
        });
        let grounded = all.grounded_by(&self.id);
        let members = [
            ("id", Value::from(self.id.as_str())),
            ("status", Value::from(status.map(|(status, _)| status.as_str()))),
            ("grounded", Value::from(grounded.is_some())),
            ("attested_by", Value::from(grounded.map(|id| &**id))),
            ("closure", Value::array(closure)),
        ];
        document("commitment-why", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let all = &self.found.all;
        let status = self.found.statuses.get(&self.id);
        let mut lines = Vec::new();
        if let (Some(one), Some((status, cause))) = (all.get(&self.id), status) {
            let because = match cause.because.is_empty() {
                true => String::new(),
                false => format!("  because of {}", quote::escape(&cause.because.join(", "))),
            };
            let since = cause.since.map(|tick| format!(" since tick {tick}")).unwrap_or_default();
            lines.push(Line::from(format!(
                "{}  {}{since}{because}",
                quote::escape(&one.id),
                status.as_str()
            )));
            let grounded = all.grounded_by(&self.id).map(|id| format!("grounded by {}", quote::escape(id)));
            lines.push(Line::from(format!("  {}", grounded.unwrap_or_else(|| "not grounded".to_owned()))));
            lines.push(Line::from(format!("  on behalf of {}", all.owner(one).as_str())));
        }
        for edge in self.edges() {
            let mode = all.atom(&edge.from).map_or("", |atom| atom.mode.as_str());
            let (from, to) = (quote::escape(&edge.from), quote::escape(&edge.to));
            lines.push(Line::from(format!(
                "  tick {}  {from} {} {to}  by {}  {mode}",
                edge.tick,
                edge.kind.as_str(),
                edge.author.as_str()
            )));
        }
        lines
    }

    fn end(&self) -> End {
        End::Answered
    }
}

fn texts(all: &[Arc<str>]) -> Value {
    Value::array(all.iter().map(|text| Value::String(Arc::clone(text))))
}

/// Which calls are admissible.
#[derive(Debug)]
pub struct AdmissibleAnswer {
    /// The run.
    pub run: String,
    /// The tick.
    pub at: u64,
    /// The calls.
    pub items: Vec<Admission>,
}

impl Answer for AdmissibleAnswer {
    fn document(&self) -> Value {
        let items = self.items.iter().map(|item| {
            let unjudged: Vec<Arc<str>> = item.found.unjudged.iter().map(|(id, _)| Arc::clone(id)).collect();
            let violates: Vec<Arc<str>> = item.found.violates.iter().map(|(_, id)| Arc::clone(id)).collect();
            Value::record([
                ("action", item.action.clone()),
                ("admissible", Value::from(item.is_admissible)),
                ("violates", texts(&violates)),
                ("unjudged", texts(&unjudged)),
            ])
        });
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("at", Value::from(self.at)),
            ("items", Value::array(items)),
        ];
        document("admissible", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for item in &self.items {
            let ids = quote::escape(&item.found.ids().join(", "));
            let (word, because) = match (item.is_admissible, ids.is_empty()) {
                (true, true) => ("admissible", String::new()),
                (true, false) => ("admissible", format!("  (cannot be judged against {ids})")),
                (false, _) => ("not admissible", format!("  ({ids})")),
            };
            let text = format!("{word:<14}  {}{because}", quote::value(&item.action));
            lines.push(if item.is_admissible { Line::from(text) } else { Line::styled(Style::Bad, text) });
        }
        let yes = self.items.iter().filter(|item| item.is_admissible).count();
        let all = count(self.items.len() as u64, "action", "actions");
        lines.push(Line::note(format!("{yes} of {all} admissible at tick {}", self.at)));
        lines
    }

    fn end(&self) -> End {
        let is_unknown = |item: &Admission| item.found.unjudged.iter().any(|(id, _)| **id == *UNKNOWN_ID);
        match self.items.iter().all(|item| item.is_admissible) {
            false => End::No,
            true if self.items.iter().any(is_unknown) => End::Unknown,
            true => End::Answered,
        }
    }
}

/// What differs between the commitments of a run at two ticks.
#[derive(Debug)]
pub struct CommitmentsDiffAnswer(pub CommitmentsDifference);

impl CommitmentsDiffAnswer {
    fn word(item: &StatusDifference) -> &'static str {
        use CommitmentStatus as S;
        match (item.before, item.after, item.grounded) {
            (_, S::Retracted, _) => "retracted",
            (_, S::Superseded, _) => "superseded",
            (_, S::Discharged, _) => "discharged",
            (None, ..) => "added",
            (_, S::Stale, _) => "invalidated",
            (_, S::Blocked, _) => "blocked",
            (_, _, (false, true)) => "promoted",
            _ => "changed",
        }
    }
}

impl Answer for CommitmentsDiffAnswer {
    fn document(&self) -> Value {
        let CommitmentsDifference { from, to, items, rejected } = &self.0;
        let items = items.iter().map(|item| {
            let one = to.all.get(&item.id);
            Value::record([
                ("id", Value::String(Arc::clone(&item.id))),
                ("type", Value::from(one.map(|one| one.kind.as_str()))),
                ("gloss", Value::from(one.map(|one| &*one.gloss))),
                ("what", Value::from(CommitmentsDiffAnswer::word(item))),
                ("before", Value::from(item.before.map(CommitmentStatus::as_str))),
                ("after", Value::from(item.after.as_str())),
                ("tick", Value::from(item.tick)),
            ])
        });
        let rejected = rejected.iter().map(|(child, ids)| {
            Value::record([("child", Value::from(child.as_str())), ("commitments", texts(ids))])
        });
        let members = [
            ("run", Value::from(to.run.as_str())),
            ("from", Value::from(*from)),
            ("to", Value::from(to.at)),
            ("items", Value::array(items)),
            ("rejected", Value::array(rejected)),
        ];
        document("commitment-diff", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let CommitmentsDifference { from, to, items, rejected } = &self.0;
        let line = |item: &StatusDifference| {
            let gloss = to.all.get(&item.id).map_or("", |one| &one.gloss);
            let before = item.before.map_or("-", CommitmentStatus::as_str);
            let (word, after) = (CommitmentsDiffAnswer::word(item), item.after.as_str());
            let (id, gloss) = (quote::escape(&item.id), quote::escape(gloss));
            Line::from(format!("{word:<11}  tick {}  {id}  {before} -> {after}  {gloss}", item.tick))
        };
        let mut lines: Vec<Line> = items.iter().map(line).collect();
        lines.extend(rejected.iter().map(|(child, ids)| {
            let text = format!(
                "rejected     {}  because of {}",
                quote::escape(child),
                quote::escape(&ids.join(", "))
            );
            Line::styled(Style::Warn, text)
        }));
        let all = count((items.len() + rejected.len()) as u64, "change", "changes");
        lines.push(Line::note(format!("{all} from tick {from} to {}", to.at)));
        lines
    }

    fn end(&self) -> End {
        End::Answered
    }
}

/// Commitments and evidence with the edges between them.
#[derive(Debug)]
pub struct CommitmentGraphAnswer {
    /// The commitments.
    pub found: CommitmentsAt,
}

impl CommitmentGraphAnswer {
    /// Returns the drawing: a box for each, an arrow for each edge.
    pub fn drawing(&self) -> Drawing {
        let all = &self.found.all;
        let atoms =
            all.atoms().map(|atom| (atom.id.to_string(), format!("{} {}", atom.id, atom.mode.as_str())));
        let commitments = all.all().iter().map(|one| {
            let status = self.found.statuses.get(&one.id).map_or("", |(status, _)| status.as_str());
            (one.id.to_string(), format!("{} {} {status}", one.id, one.kind.as_str()))
        });
        let mut boxes: Vec<(String, String)> = atoms.chain(commitments).collect();
        boxes.sort();
        let at = |id: &str| boxes.binary_search_by(|(name, _)| (**name).cmp(id)).ok();
        let arrows = all.edges().filter_map(|edge| Some((at(&edge.from)?, at(&edge.to)?))).collect();
        Drawing { title: self.found.run.to_string(), boxes, arrows }
    }
}

impl Answer for CommitmentGraphAnswer {
    fn document(&self) -> Value {
        let all = &self.found.all;
        let atoms = all.atoms().map(|atom| {
            Value::record([
                ("id", Value::String(atom.id)),
                ("what", Value::from("atom")),
                ("mode", Value::from(atom.mode.as_str())),
                ("attestation", Value::from(atom.attestation)),
                ("content", atom.content),
                ("source", Value::from(atom.source.as_deref())),
                ("tick", Value::from(atom.tick)),
            ])
        });
        let commitments = all.all().iter().map(|one| {
            let status = self.found.statuses.get(&one.id).map(|(status, _)| status.as_str());
            Value::record([
                ("id", Value::String(Arc::clone(&one.id))),
                ("what", Value::from("commitment")),
                ("type", Value::from(one.kind.as_str())),
                ("gloss", Value::from(&*one.gloss)),
                ("status", Value::from(status)),
                ("tick", Value::from(one.tick)),
            ])
        });
        let edges = all.edges().map(|edge| {
            Value::record([
                ("edge", Value::from(edge.kind.as_str())),
                ("from", Value::String(edge.from)),
                ("to", Value::String(edge.to)),
                ("author", Value::from(edge.author.as_str())),
                ("tick", Value::from(edge.tick)),
            ])
        });
        let members = [
            ("run", Value::from(self.found.run.as_str())),
            ("at", Value::from(self.found.at)),
            ("nodes", Value::array(atoms.chain(commitments))),
            ("edges", Value::array(edges)),
        ];
        document("commitment-graph", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let all = &self.found.all;
        let mut lines: Vec<Line> = Vec::new();
        for edge in all.edges() {
            let (from, to) = (quote::escape(&edge.from), quote::escape(&edge.to));
            let (kind, author) = (edge.kind.as_str(), edge.author.as_str());
            lines.push(Line::from(format!("tick {}  {from} {kind} {to}  by {author}", edge.tick)));
        }
        let nodes = count((all.atoms().count() + all.all().len()) as u64, "node", "nodes");
        let edges = count(lines.len() as u64, "edge", "edges");
        lines.push(Line::note(format!("{nodes}, {edges} at tick {}", self.found.at)));
        lines
    }

    fn end(&self) -> End {
        End::Answered
    }
}

/// How often the text within a budget decides otherwise than the run (CCAS paper, definition 4).
#[derive(Debug, Clone, Default)]
pub struct EpsilonAnswer {
    /// The run.
    pub run: String,
    /// The budget in tokens; `None` for the whole text.
    pub budget: Option<usize>,
    /// The calls that were recorded.
    pub actions: u64,
    /// Those of which the text says otherwise.
    pub differ: u64,
    /// Those of which it says otherwise because it did not fit at all.
    pub unfit: u64,
}

impl EpsilonAnswer {
    /// Counts one call: what the run says of it, and what who knows the text alone can say.
    pub fn add(&mut self, at: &CommitmentsAt, found: &Authorized) {
        self.actions += 1;
        let fits = ccas_text(at, None, self.budget).is_ok();
        let listed = listed_hard(at, None);
        let is_told = |(rule, id): &(Violated, Arc<str>)| *rule != Violated::Hard || listed.contains(id);
        let told = fits && found.violates.iter().any(is_told);
        let differs = told == found.violates.is_empty();
        self.differ += u64::from(differs);
        self.unfit += u64::from(differs && !fits);
    }

    fn epsilon(&self) -> f64 {
        if self.actions == 0 { 0.0 } else { self.differ as f64 / self.actions as f64 }
    }
}

impl Answer for EpsilonAnswer {
    fn document(&self) -> Value {
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("budget", Value::from(self.budget.map(|budget| budget as u64))),
            ("actions", Value::from(self.actions)),
            ("differ", Value::from(self.differ)),
            ("unfit", Value::from(self.unfit)),
            ("epsilon", Value::from(self.epsilon())),
        ];
        document("epsilon", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let budget = self.budget.map_or("the whole text".to_owned(), |budget| format!("{budget} tokens"));
        let (differ, actions) = (self.differ, count(self.actions, "action", "actions"));
        let unfit =
            if self.unfit == 0 { String::new() } else { format!(", {} where it does not fit", self.unfit) };
        let text = format!(
            "epsilon {:.3} with {budget}: of {actions} {differ} judged otherwise{unfit}",
            self.epsilon()
        );
        vec![Line::from(text)]
    }

    fn end(&self) -> End {
        End::Answered
    }
}

/// A delegation.
#[derive(Debug)]
pub struct DelegationAnswer {
    /// The delegation.
    pub made: Delegated,
    /// Whether nothing was recorded.
    pub dry_run: bool,
}

impl Answer for DelegationAnswer {
    fn document(&self) -> Value {
        let Delegated { parent, child, contract } = &self.made;
        let member = |name: &'static str| (name, contract.get(name).cloned().unwrap_or(Value::Null));
        let members = [
            member("id"),
            ("parent", Value::from(parent.as_str())),
            ("child", Value::from(child.as_str())),
            member("hard"),
            member("soft"),
            member("allowed"),
            member("forbidden"),
            member("budget"),
            member("deliverables"),
            member("failure"),
        ];
        document("delegation", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let Delegated { parent, child, contract } = &self.made;
        let list = |name: &str| contract.get(name).map(quote::value).unwrap_or_else(|| "[]".to_owned());
        let id = contract.get("id").and_then(Value::as_str).map(quote::escape).unwrap_or_default();
        let dry = if self.dry_run { "nothing was written (dry run): " } else { "" };
        let mut lines = vec![
            Line::from(format!("{dry}{child} begun under contract {id} of {parent}")),
            Line::from(format!("  hard  {}", list("hard"))),
            Line::from(format!("  soft  {}", list("soft"))),
        ];
        for name in ["allowed", "forbidden", "budget", "deliverables", "failure"] {
            lines.extend(
                contract.get(name).map(|value| Line::from(format!("  {name}  {}", quote::value(value)))),
            );
        }
        lines
    }

    fn end(&self) -> End {
        End::Answered
    }
}

/// What became of the result of a child.
#[derive(Debug)]
pub struct AcceptAnswer {
    /// The decision.
    pub accepted: Accepted,
    /// Whether nothing was recorded.
    pub dry_run: bool,
}

impl Answer for AcceptAnswer {
    fn document(&self) -> Value {
        let Accepted { child, parent, violates, record } = &self.accepted;
        let reason = (!violates.is_empty())
            .then(|| Value::record([("code", Value::from(Code::E0456)), ("commitments", texts(violates))]));
        let members = [
            ("accepted", Value::from(violates.is_empty())),
            ("child", Value::from(child.as_str())),
            ("parent", Value::from(parent.as_str())),
            ("reason", Value::from(reason)),
            ("tick", Value::from(record.as_ref().and_then(|record| record.header().tick))),
            ("id", Value::from(record.as_ref().map(|record| record.id()))),
        ];
        document("accept", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let Accepted { child, parent, violates, .. } = &self.accepted;
        let dry = if self.dry_run { "nothing was written (dry run): " } else { "" };
        vec![match violates.is_empty() {
            true => Line::from(format!("{dry}{parent} takes what {child} brought")),
            false => {
                let ids = quote::escape(&violates.join(", "));
                Line::styled(
                    Style::Bad,
                    format!("{dry}{}  {parent} does not take what {child} brought: {ids}", Code::E0456),
                )
            }
        }]
    }

    fn end(&self) -> End {
        if self.accepted.violates.is_empty() { End::Answered } else { End::Refused }
    }
}
