//! The commitments of a run, as lines and as documents.

use dendrer::ask::commitments::CommitmentsAt;
use dendrer::kernel::commitment::{Commitment, CommitmentEdge, CommitmentStatus, EdgeKind};
use dendrer::kernel::expr::Expr;
use std::sync::Arc;

use dendrer_object::Value;

use crate::answer::{Answer, End, Line, Page, Style};
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
        let texts = |all: &[Arc<str>]| Value::array(all.iter().map(|text| Value::String(Arc::clone(text))));
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
        End::Answered
    }
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
