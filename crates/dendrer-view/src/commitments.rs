//! The commitments of a run, as lines and as documents.

use dendrer::ask::commitments::question::{CommitmentsReply, JudgedCalls, ListedCommitments};
use dendrer::ask::commitments::{
    Admission, CallAgainst, CommitmentHistory, CommitmentsAt, CommitmentsDifference, DischargedBy,
    StatusDifference,
};
use dendrer::delegate::question::{AcceptReply, DelegateReply};
use dendrer::delegate::{AcceptReason, Accepted, Delegated};
use dendrer::kernel::commitment::{
    Atom, Authorized, Commitment, CommitmentEdge, CommitmentKind, CommitmentStatus, Commitments, EdgeKind,
    EvidenceMode, ParentSaid, UNKNOWN_ID, Violated, WithoutEffect,
};
use dendrer::kernel::expr::Expr;
use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::document::{As, Either, Fraction};
use dendrer_object::record::Author;
use dendrer_object::value::{Array, Object};
use dendrer_object::{Code, Digest, RunName, Value, document};

use crate::action::{AskedCommitmentObject, asked_line};
use crate::answer::{Answer, End, Line, Page, Style};
use crate::ccas::{ccas_text, listed_hard};
use crate::graph::{Drawing, DrawnArrow, DrawnBox};
use crate::{count, quote};

/// How many commitments are followed over `depends-on`.
const EDGES_MAX: usize = 1_000;

/// Returns the ids that edges of a kind from a commitment lead to.
fn named(all: &Commitments, one: &Commitment, kind: EdgeKind) -> Vec<Arc<str>> {
    let edges = all.edges_from(&one.id).filter(|edge| edge.kind == kind && !all.is_claimed(edge));
    edges.map(|edge| edge.to).collect()
}

/// Returns the edges about a commitment that have no effect on it.
fn claims(all: &Commitments, one: &Commitment) -> Vec<CommitmentEdge> {
    let edges = all.edges_from(&one.id).chain(all.edges_to(&one.id).filter(|edge| edge.from != edge.to));
    edges.filter(|edge| all.is_claimed(edge)).collect()
}

/// Returns the open conflicts between hard commitments that bind both.
fn ties(found: &CommitmentsAt) -> Vec<CommitmentEdge> {
    let is_open = |one: &Commitment| !found.status(one).is_over();
    found.all.ties(is_open)
}

/// Returns who claims a hard commitment that does not bind, and the atoms that it cites; `None` for others.
fn claimed_hard(all: &Commitments, one: &Commitment) -> Option<String> {
    if !one.is_hard || all.binds(one) {
        return None;
    }
    let cited = all.edges_to(&one.id).filter(|edge| edge.kind == EdgeKind::Supports);
    let cited: Vec<String> = cited.map(|edge| quote::escape(&edge.from)).collect();
    let cites = if cited.is_empty() { String::new() } else { format!(", cites {}", cited.join(", ")) };
    Some(format!("claimed by {}{cites}", quote::escape(&all.owner(one).to_string())))
}

/// Returns the edges of the conflicts of a commitment, whichever end states them.
fn conflicts<'c>(all: &'c Commitments, one: &'c Commitment) -> impl Iterator<Item = CommitmentEdge> + 'c {
    let edges = all.edges_from(&one.id).chain(all.edges_to(&one.id).filter(|edge| edge.from != edge.to));
    edges.filter(|edge| edge.kind == EdgeKind::ConflictsWith)
}

/// Returns the ids of commitments that one conflicts with, each once.
fn conflicting(all: &Commitments, one: &Commitment) -> Vec<Arc<str>> {
    let mut ids: Vec<Arc<str>> =
        conflicts(all, one).map(|edge| if edge.from == one.id { edge.to } else { edge.from }).collect();
    ids.sort();
    ids.dedup();
    ids
}

document! {
    /// The commitments of a run at a tick
    pub object CommitmentsDocument: "commitments" (answer: &ListedCommitments) {
        let found = &answer.found;
        /// The run
        run: &RunName = &found.run,
        /// The tick
        at: u64 = found.at,
        /// The stage at which the run is recorded
        stage: Option<u64> = found.stage,
        /// The agents, tools and contract that the commitments are made under
        context: CommitmentContext = CommitmentContext::of(found),
        /// The first tick whose lists were erased or withheld; what they brought is not counted
        hidden: Option<u64> = found.all.hidden(),
        /// The lines that changed no commitment
        without_effect: Vec<IgnoredLine> = found.all.ignored().map(|one| IgnoredLine::of(&one)).collect(),
        /// The open conflicts between hard commitments that bind both
        ties?: Vec<TieObject> = {
            let ties = ties(found);
            (!ties.is_empty()).then(|| ties.iter().map(TieObject::of).collect())
        },
        /// The commitments that fit the conditions
        items: Vec<CommitmentObject> = answer.listed.iter().map(|one| CommitmentObject::of(found, one)).collect(),
    }

    /// The agents, tools and contract that the commitments of a run are made under (CCAS paper 6.1)
    object CommitmentContext(found: &CommitmentsAt) {
        /// The agents of the run
        actors: &[Arc<str>] = &found.agents,
        /// The tools that the pack allows; null if it gates none
        tools: Option<&[Arc<str>]> = found.tools.as_deref(),
        /// The contract of a delegated run
        contract: As<Option<Object>> = As::new(found.all.contract().map(|contract| contract.written.clone())),
        /// How the contract ended: it permits no call
        ended?: ContractEnd = ended(found).map(ContractEnd::of),
    }

    /// How the contract of a delegated run ended
    object ContractEnd(said: &ParentSaid) {
        let (how, decided) = said.ended.clone().unwrap_or_default();
        /// The status, or over, missing or unreadable
        as: String = how.to_string(),
        /// The parent that says so
        run: &str = &said.run,
        /// The tick of the parent; null if none decided it
        tick: Option<u64> = decided,
    }

    /// A line that changed no commitment
    object IgnoredLine(one: &WithoutEffect) {
        /// The tick
        tick: u64 = one.tick,
        /// The id that the line names
        id: &str = &one.id,
        /// The reason, as a word
        why: &str = &one.why,
        /// The author of the line, who claims it without effect
        claimed?: &str = one.by.as_deref(),
    }

    /// An edge between two hard commitments that bind both: neither blocks the other, and a person decides
    object TieObject(edge: &CommitmentEdge) {
        /// The ids at its ends
        ids: Vec<&str> = vec![&*edge.from, &*edge.to],
        /// The author of the edge
        author: String = edge.writer().to_string(),
        /// The tick of the edge
        tick: u64 = edge.tick,
    }

    /// An edge without effect: its author has not the rank of the owner
    object ClaimObject(edge: &CommitmentEdge) {
        /// The author
        by: String = edge.writer().to_string(),
        /// The kind
        edge: EdgeKind = edge.kind,
        /// The id at its beginning
        from: &str = &edge.from,
        /// The id at its end
        to: &str = &edge.to,
        /// The tick
        tick: u64 = edge.tick,
    }

    /// A commitment of a list
    object CommitmentObject(found: &CommitmentsAt, one: &Commitment) {
        let all = &found.all;
        let cause = found.statuses.get(&one.id).map(|(_, cause)| &*cause.because);
        let support = all.edges_to(&one.id).filter(|edge| edge.kind == EdgeKind::Supports);
        /// The id
        id: &str = &one.id,
        /// The type
        type: CommitmentKind = one.kind,
        /// Whether an action that violates it is not admissible
        hard: bool = one.is_hard,
        /// The words for people
        gloss: &str = &one.gloss,
        /// The condition under which it applies
        guard: Option<&str> = one.guard.as_ref().map(Expr::text),
        /// The condition under which it is done
        discharge: Option<&str> = one.discharge.as_ref().map(Expr::text),
        /// The condition that an action must meet
        holds: Option<&str> = one.holds.as_ref().map(Expr::text),
        /// The condition that an action must not meet
        condition: Option<&str> = one.condition.as_ref().map(Expr::text),
        /// The names and places whose change makes it stale
        watch: &[Arc<str>] = &one.watch,
        /// The priority; a higher one wins
        priority: f64 = one.priority,
        /// The scope
        scope: &str = &one.scope,
        /// The ids of commitments that it conflicts with
        conflicts: Vec<Arc<str>> = conflicting(all, one),
        /// The edges of its conflicts, whichever end states them
        conflict_edges: Vec<ConflictEdge> =
            conflicts(all, one).map(|edge| ConflictEdge::of(&one.id, &edge)).collect(),
        /// The ids of commitments that it depends on
        depends_on: Vec<Arc<str>> = named(all, one, EdgeKind::DependsOn),
        /// The ids of commitments that it refines
        refines: Vec<Arc<str>> = named(all, one, EdgeKind::Refines),
        /// The commitment that it replaces
        supersedes: Option<&str> = one.supersedes.as_deref(),
        /// The actions that a delegation allows
        allowed: As<Option<Object>> = As::new(one.allowed().cloned()),
        /// The actions that it forbids
        forbidden: As<Option<Array>> = As::new(one.written.get("forbidden").cloned()),
        /// The status at the tick
        status: CommitmentStatus = found.status(one),
        /// Whether evidence from outside the agent grounds it
        grounded: bool = all.grounded_by(&one.id).is_some(),
        /// Whether it binds
        binds: bool = all.binds(one),
        /// The party that it is kept for
        owner: String = all.owner(one).to_string(),
        /// The author, if a user or the institution adopted it
        adopted_from?: String = one.adopted.as_ref().map(|_| one.writer().to_string()),
        /// The edges about it that have no effect, because their author has not the rank of the owner
        claimed?: Vec<ClaimObject> = {
            let claims = claims(all, one);
            (!claims.is_empty()).then(|| claims.iter().map(ClaimObject::of).collect())
        },
        /// The tick that brought it
        tick: u64 = one.tick,
        /// The tick of its newest change of status
        changed: Option<u64> = found.changed(&one.id),
        /// The ids that its status depends on
        because: &[Arc<str>] = cause.unwrap_or_default(),
        /// The evidence and commitments that support it
        support: Vec<SupportObject> = support.map(|edge| SupportObject::of(all, &edge.from)).collect(),
    }

    /// A conflict of a commitment
    object ConflictEdge(own: &str, edge: &CommitmentEdge) {
        /// The id at the other end
        id: &str = if *edge.from == *own { &edge.to } else { &edge.from },
        /// The author of the edge
        author: Author = edge.author,
        /// The tick of the edge
        tick: u64 = edge.tick,
    }

    /// The support of a commitment
    object SupportObject(all: &Commitments, from: &str) {
        let atom = all.atom(from);
        /// The id of the evidence or the commitment
        id: &str = from,
        /// The mode of evidence; null for a commitment
        mode: Option<EvidenceMode> = atom.as_ref().map(|atom| atom.mode),
        /// The party that attests it
        attestation: Option<&str> = atom.and_then(|atom| atom.attestation),
    }

    /// The causes of the status of a commitment
    pub object CommitmentWhyDocument: "commitment-why" (answer: &CommitmentWhyAnswer) {
        let all = &answer.found.all;
        let status = answer.found.statuses.get(&answer.id);
        let grounded = all.grounded_by(&answer.id);
        let edges = answer.edges();
        /// The id of the commitment
        id: &str = &answer.id,
        /// The status
        status: As<CommitmentStatus> = As::new(status.map(|(status, _)| *status)),
        /// Whether evidence from outside the agent grounds it
        grounded: bool = grounded.is_some(),
        /// The id of the evidence that grounds it
        attested_by: Option<&str> = grounded.map(|id| &**id),
        /// The edges that its status depends on
        closure: Vec<CauseEdge> = edges.iter().map(|edge| CauseEdge::of(all, &answer.id, edge)).collect(),
        /// The transition that discharged it; null if it is not discharged
        discharged: Option<DischargeObject> = answer.history.discharged.as_ref().map(DischargeObject::of),
        /// The calls that were refused because of it
        refusals: Vec<CallAgainstObject> = answer.against(true).map(CallAgainstObject::of).collect(),
        /// The calls that violated it and were committed all the same
        violations: Vec<CallAgainstObject> = answer.against(false).map(CallAgainstObject::of).collect(),
    }

    /// The transition that discharged a commitment
    object DischargeObject(found: &DischargedBy) {
        /// The tick
        tick: u64 = found.tick,
        /// The expression that became true; null if a line closed it
        expression: Option<&str> = found.expression.as_deref(),
        /// The author of the transition
        author: Author = found.author,
        /// The agent of the transition
        agent: Option<&str> = found.agent.as_deref(),
    }

    /// A call against a commitment
    object CallAgainstObject(call: &CallAgainst) {
        /// The tick of the transition; of a refusal that of the record that it was judged against
        tick: u64 = call.tick,
        /// The tool
        tool: Option<&str> = call.tool.as_deref(),
        /// The id of the refusal
        id?: Digest = call.refusal,
    }

    /// An edge that the status of a commitment depends on
    object CauseEdge(all: &Commitments, own: &str, edge: &CommitmentEdge) {
        // A dependency of a commitment is at the end of the edge, its support at the beginning.
        let leads_on = *edge.from == *own || *edge.to != *own && edge.kind == EdgeKind::DependsOn;
        let (near, other) = if leads_on { (&*edge.from, &*edge.to) } else { (&*edge.to, &*edge.from) };
        /// The id at the other end of the edge
        id: &str = other,
        /// The id at the near end; absent for the commitment that was asked about
        of?: &str = (*near != *own).then_some(near),
        /// The kind of the edge
        edge: EdgeKind = edge.kind,
        /// The mode of evidence; null for a commitment
        mode: Option<EvidenceMode> = all.atom(other).map(|atom| atom.mode),
        /// The author of the edge
        author: Author = edge.author,
        /// The tick of the edge
        tick: u64 = edge.tick,
        /// Whether it has no effect, because its author has not the rank of the owner
        claimed?: bool = all.is_claimed(edge).then_some(true),
        /// The reason for which an attestation grounds nothing; absent for one that does, and for other edges
        without_effect?: String = all.grounds_nothing(edge),
    }

    /// Calls, and whether each is admissible
    pub object AdmissibleDocument: "admissible" (answer: &JudgedCalls) {
        /// The run
        run: &RunName = &answer.run,
        /// The tick
        at: u64 = answer.at,
        /// The calls
        items: Vec<AdmissionObject> = answer.items.iter().map(AdmissionObject::of).collect(),
    }

    /// A call, and whether it is admissible
    object AdmissionObject(item: &Admission) {
        /// The call
        action: As<Object> = As::new(item.action.clone()),
        /// Whether the call is admissible
        admissible: bool = item.is_admissible,
        /// The ids of the commitments that the call violates
        violates: Vec<&str> = item.found.violates.iter().map(|(_, id)| &**id).collect(),
        /// The ids of the commitments that cannot be judged
        unjudged: Vec<&str> = item.found.unjudged.iter().map(|(id, _)| &**id).collect(),
        /// The hard commitments that are active for the call, with what each says of it
        commitments: Vec<AskedCommitmentObject> = item.asked.iter().map(AskedCommitmentObject::of).collect(),
        /// The reason for which the door would refuse the call; null if it would not
        refusal: Option<DoorRefusal> =
            item.refusal.as_ref().map(|(code, words)| DoorRefusal::of(*code, words)),
    }

    /// The reason for which the door would refuse a call
    object DoorRefusal(why: Code, words: &str) {
        /// The code
        code: Code = why,
        /// The reason in words
        message: &str = words,
    }

    /// The commitments of a run that differ between two ticks
    pub object CommitmentDiffDocument: "commitment-diff" (difference: &CommitmentsDifference) {
        let CommitmentsDifference { from, to, items, rejected } = difference;
        /// The run
        run: &RunName = &to.run,
        /// The first tick
        from: u64 = *from,
        /// The second tick
        to: u64 = to.at,
        /// The commitments whose status differs
        items: Vec<StatusDifferenceObject> =
            items.iter().map(|item| StatusDifferenceObject::of(&to.all, item)).collect(),
        /// The results of child runs that were rejected
        rejected: Vec<RejectedChild> =
            rejected.iter().map(|(child, ids)| RejectedChild::of(child, ids)).collect(),
    }

    /// A commitment whose status differs between two ticks
    object StatusDifferenceObject(all: &Commitments, item: &StatusDifference) {
        let one = all.get(&item.id);
        /// The id
        id: &str = &item.id,
        /// The type
        type: Option<CommitmentKind> = one.map(|one| one.kind),
        /// The words for people
        gloss: Option<&str> = one.map(|one| &*one.gloss),
        /// The kind of the change
        what: [
            "added" | "promoted" | "retracted" | "superseded" | "discharged" | "invalidated" | "blocked"
            | "changed"
        ] = CommitmentsDiffAnswer::word(item),
        /// The status at the first tick; null for a commitment that is new
        before: Option<CommitmentStatus> = item.before,
        /// The status at the second tick
        after: CommitmentStatus = item.after,
        /// The tick of the change
        tick: u64 = item.tick,
    }

    /// A child run whose result was rejected
    object RejectedChild(run: &str, ids: &[Arc<str>]) {
        /// The child run
        child: &str = run,
        /// The ids of the commitments that the result violates
        commitments: &[Arc<str>] = ids,
    }

    /// Commitments and evidence with the edges between them
    pub object CommitmentGraphDocument: "commitment-graph" (found: &CommitmentsAt) {
        let all = &found.all;
        let atoms = all.atoms().map(|atom| As::new(AtomNode::of(&atom)));
        let commitments = all.all().iter().map(|one| As::new(CommitmentNode::of(found, one)));
        /// The run
        run: &RunName = &found.run,
        /// The tick
        at: u64 = found.at,
        /// The evidence and the commitments
        nodes: Vec<As<Either<AtomNode, CommitmentNode>>> = atoms.chain(commitments).collect(),
        /// The edges
        edges: Vec<EdgeObject> = all.edges().map(|edge| EdgeObject::of(&edge)).collect(),
    }

    /// A piece of evidence
    object AtomNode(atom: &Atom) {
        /// The id
        id: &str = &atom.id,
        /// The kind of the node
        what: ["atom"] = "atom",
        /// The mode of evidence
        mode: EvidenceMode = atom.mode,
        /// The party that attests it
        attestation: Option<&str> = atom.attestation,
        /// The content
        content: &Value = &atom.content,
        /// The source in a few words
        source: Option<&str> = atom.source.as_deref(),
        /// The tick that brought it
        tick: u64 = atom.tick,
    }

    /// A commitment of a graph
    object CommitmentNode(found: &CommitmentsAt, one: &Commitment) {
        /// The id
        id: &str = &one.id,
        /// The kind of the node
        what: ["commitment"] = "commitment",
        /// The type
        type: CommitmentKind = one.kind,
        /// The words for people
        gloss: &str = &one.gloss,
        /// The status at the tick
        status: Option<CommitmentStatus> = found.statuses.get(&one.id).map(|(status, _)| *status),
        /// The tick that brought it
        tick: u64 = one.tick,
    }

    /// An edge between evidence and commitments
    object EdgeObject(edge: &CommitmentEdge) {
        /// The kind
        edge: EdgeKind = edge.kind,
        /// The id at its beginning
        from: &str = &edge.from,
        /// The id at its end
        to: &str = &edge.to,
        /// The author
        author: Author = edge.author,
        /// The tick
        tick: u64 = edge.tick,
    }

    /// The share of calls that the text within a budget decides otherwise than the run
    pub object EpsilonDocument: "epsilon" (answer: &EpsilonAnswer) {
        /// The run
        run: &str = &answer.run,
        /// The budget in tokens; null for the whole text
        budget: Option<usize> = answer.budget,
        /// The number of calls on record
        actions: u64 = answer.actions,
        /// The number of calls that the text alone judges otherwise
        differ: u64 = answer.differ,
        /// The number of calls that are judged otherwise because the text does not fit
        unfit: u64 = answer.unfit,
        /// The share of calls that are judged otherwise
        epsilon: Fraction = Fraction(answer.epsilon()),
    }

    /// A child run under a contract
    pub object DelegationDocument: "delegation" (made: &Delegated) {
        let member = |name: &str| made.contract.get(name).cloned();
        /// The id of the contract
        id: As<str> = As::new(member("id")),
        /// The parent run
        parent: &RunName = &made.parent,
        /// The child run
        child: &RunName = &made.child,
        /// The ids of the hard commitments that bind the child
        hard: As<Vec<String>> = As::new(member("hard")),
        /// The ids of the soft commitments
        soft: As<Vec<String>> = As::new(member("soft")),
        /// The actions that are allowed
        allowed: As<Option<Object>> = As::new(member("allowed")),
        /// The actions that are forbidden
        forbidden: As<Option<Vec<String>>> = As::new(member("forbidden")),
        /// The budget
        budget: As<Option<Object>> = As::new(member("budget")),
        /// The results that the child is to deliver
        deliverables: As<Option<Vec<String>>> = As::new(member("deliverables")),
        /// The rule for a child that fails
        failure: As<Option<String>> = As::new(member("failure")),
        /// The places where tools name files
        tools?: As<Object> = member("tools").map(As::new),
        /// When it ends by itself
        until?: As<String> = member("until").map(As::new),
        /// The scope of the calls: commitments of other scopes than it and `global` are not asked
        scope?: As<String> = member("scope").map(As::new),
    }

    /// The decision on the result of a child run
    pub object AcceptDocument: "accept" (accepted: &Accepted) {
        let Accepted { child, parent, reasons, already, record } = accepted;
        /// Whether the parent takes the result
        accepted: bool = reasons.is_empty(),
        /// Whether the parent took it before: nothing was written
        already?: bool = already.then_some(true),
        /// The child run
        child: &RunName = child,
        /// The parent run
        parent: &RunName = parent,
        /// The reason of a rejection
        reason: Option<RejectionObject> = (!reasons.is_empty()).then(|| RejectionObject::of(accepted)),
        /// The reasons of a rejection, one for each
        reasons: Vec<AcceptReasonObject> = reasons.iter().map(AcceptReasonObject::of).collect(),
        /// The tick of the decision in the parent
        tick: Option<u64> = record.as_ref().and_then(|record| record.header().tick),
        /// The id of the record of the decision
        id: Option<Digest> = record.as_ref().map(|record| record.id()),
    }

    /// The reason of a rejection
    object RejectionObject(accepted: &Accepted) {
        /// The code
        code: Code = Code::E0456,
        /// The ids of the commitments that the result violates
        commitments: Vec<Arc<str>> = accepted.violates(),
    }

    /// One reason of a rejection
    object AcceptReasonObject(reason: &AcceptReason) {
        /// The code
        code: Code = reason.code,
        /// The ids of the commitments that it is about
        commitments: &[Arc<str>] = &reason.commitments,
        /// The run that shows it
        run: &RunName = &reason.run,
        /// The tick of that run; null if none shows it
        tick: Option<u64> = reason.tick,
        /// The deliverable that is missing
        missing?: &Arc<str> = reason.missing.as_ref(),
    }
}

impl Answer for CommitmentsReply {
    fn document(&self) -> Value {
        match self {
            CommitmentsReply::Listed(answer) => answer.document(),
            CommitmentsReply::Judged(answer) => answer.document(),
        }
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        match self {
            CommitmentsReply::Listed(answer) => answer.lines(page),
            CommitmentsReply::Judged(answer) => answer.lines(page),
        }
    }

    fn end(&self) -> End {
        match self {
            CommitmentsReply::Listed(answer) => answer.end(),
            CommitmentsReply::Judged(answer) => answer.end(),
        }
    }
}

/// The parent that ended the contract of a delegated run.
fn ended(found: &CommitmentsAt) -> Option<&ParentSaid> {
    found.all.parents().iter().find(|said| said.ended.is_some())
}

impl Answer for ListedCommitments {
    fn document(&self) -> Value {
        CommitmentsDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        for one in &self.listed {
            let status = self.found.status(one);
            let hard = if one.is_hard { " hard" } else { "" };
            let because = self.found.statuses.get(&one.id).map(|(_, cause)| cause.because.join(", "));
            let because = because.filter(|ids| !ids.is_empty()).map(|ids| quote::escape(&ids));
            let because = because.into_iter().chain(claimed_hard(&self.found.all, one)).collect::<Vec<_>>();
            let because = (!because.is_empty()).then(|| format!("  ({})", because.join("; ")));
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
        lines.extend(ties(&self.found).iter().map(|edge| {
            let (from, to) = (quote::escape(&edge.from), quote::escape(&edge.to));
            let by = quote::escape(&edge.writer().to_string());
            let text = format!("open conflict  {from} and {to} both bind  by {by}, tick {}", edge.tick);
            Line::styled(Style::Warn, text)
        }));
        lines.push(Line::note(format!("{} of {all} at tick {}", self.listed.len(), self.found.at)));
        lines.extend(ended(&self.found).map(|said| {
            let (how, tick) = said.ended.clone().unwrap_or_default();
            let at = tick.map(|tick| format!("@{tick}")).unwrap_or_default();
            let id = quote::escape(&said.delegation);
            let run = quote::escape(&said.run);
            Line::styled(Style::Warn, format!("contract {id}  {how} at {run}{at}: no call is permitted"))
        }));
        lines.extend(hidden_line(&self.found.all));
        lines.extend(self.found.all.ignored().map(|one| {
            let why = match (&*one.why, &one.by) {
                ("id_used", None) => "the id was used before".to_owned(),
                ("id_used", Some(by)) => format!("{} used the id before", quote::escape(by)),
                ("rank", None) => "its author has not the rank of the owner".to_owned(),
                ("rank", Some(by)) => {
                    format!("claimed by {}, who has not the rank of the owner", quote::escape(by))
                }
                (_, by) => {
                    let by = by.as_ref().map(|by| format!(" (named by {})", quote::escape(by)));
                    format!("there is no item of this id{}", by.unwrap_or_default())
                }
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

/// Returns the line for lists that were erased or withheld; `None` without such lists.
fn hidden_line(all: &Commitments) -> Option<Line> {
    let tick = all.hidden()?;
    let text = format!(
        "UNKNOWN: lists of tick {tick} or later were erased or withheld; what they brought is not counted"
    );
    Some(Line::styled(Style::Warn, text))
}

/// The status of a commitment, and its causes.
#[derive(Debug)]
pub struct CommitmentWhyAnswer {
    /// The commitments.
    pub found: CommitmentsAt,
    /// The id.
    pub id: String,
    /// The calls against the commitment, and its discharge.
    pub history: CommitmentHistory,
}

impl CommitmentWhyAnswer {
    fn against(&self, is_refused: bool) -> impl Iterator<Item = &CallAgainst> {
        self.history.against.iter().filter(move |call| call.refusal.is_some() == is_refused)
    }

    fn edges(&self) -> Vec<CommitmentEdge> {
        let all = &self.found.all;
        let mut edges = all.closure(&self.id);
        // A dependency has dependencies as well, over any number of steps.
        let (mut open, mut seen) = (vec![Arc::<str>::from(&*self.id)], BTreeSet::new());
        while let Some(id) = open.pop().filter(|_| seen.len() < EDGES_MAX) {
            if !seen.insert(Arc::clone(&id)) {
                continue;
            }
            let depends = all.edges_from(&id).filter(|edge| edge.kind == EdgeKind::DependsOn);
            for edge in depends.collect::<Vec<_>>() {
                edges.extend(all.closure(&edge.to));
                open.push(Arc::clone(&edge.to));
                if *id != *self.id {
                    edges.push(edge);
                }
            }
        }
        let others =
            all.edges_from(&self.id).chain(all.edges_to(&self.id).filter(|edge| edge.from != edge.to));
        let mut others: Vec<_> = others.filter(|edge| edge.kind != EdgeKind::Supports).collect();
        others.sort_by_key(|edge| edge.tick);
        edges.extend(others);
        let mut listed = BTreeSet::new();
        edges.retain(|edge| {
            listed.insert((Arc::clone(&edge.from), Arc::clone(&edge.to), edge.kind.as_str(), edge.tick))
        });
        edges
    }
}

impl Answer for CommitmentWhyAnswer {
    fn document(&self) -> Value {
        CommitmentWhyDocument::of(self).into()
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
            lines.push(Line::from(format!("  on behalf of {}", quote::escape(&all.owner(one).to_string()))));
            if let Some(adopted) = &one.adopted {
                let (by, from) = (adopted.owner.to_string(), one.writer().to_string());
                let (by, from) = (quote::escape(&by), quote::escape(&from));
                lines.push(Line::from(format!("  tick {}  adopted by {by} from {from}", adopted.tick)));
            }
            lines.extend(claimed_hard(all, one).map(|text| Line::from(format!("  {text}, does not bind"))));
        }
        for edge in self.edges() {
            let mode = all.atom(&edge.from).map_or("", |atom| atom.mode.as_str());
            let (from, to) = (quote::escape(&edge.from), quote::escape(&edge.to));
            let why =
                all.grounds_nothing(&edge).map(|why| format!("  grounds nothing: {}", quote::escape(&why)));
            let is_claimed = why.is_none() && all.is_claimed(&edge);
            let claimed = if is_claimed { "  claimed, without effect" } else { "" };
            lines.push(Line::from(format!(
                "  tick {}  {from} {} {to}  by {}  {mode}{claimed}{}",
                edge.tick,
                edge.kind.as_str(),
                edge.author.as_str(),
                why.unwrap_or_default()
            )));
        }
        if let Some(found) = &self.history.discharged {
            let agent = found.agent.as_deref().map(quote::name).unwrap_or_default();
            let by = format!("by {agent} ({})", found.author.as_str());
            let what = match &found.expression {
                Some(text) => format!("{} became true", quote::escape(text)),
                None => "a line closed it".to_owned(),
            };
            lines.push(Line::from(format!("  discharged at tick {}  {by}: {what}", found.tick)));
        }
        for call in &self.history.against {
            let tool = call.tool.as_deref().map(quote::escape).unwrap_or_default();
            let word = if call.refusal.is_some() { "refused after" } else { "violated at" };
            lines.push(Line::from(format!("  {word} tick {}  {tool}", call.tick)));
        }
        lines
    }

    fn end(&self) -> End {
        End::Answered
    }
}

impl Answer for JudgedCalls {
    fn document(&self) -> Value {
        AdmissibleDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for item in &self.items {
            let ids = quote::escape(&item.found.ids().join(", "));
            let (word, because) = match (item.is_admissible, ids.is_empty()) {
                (true, true) => ("admissible", String::new()),
                (true, false) => ("admissible", format!("  (cannot be judged against {ids})")),
                (false, false) => ("not admissible", format!("  ({ids})")),
                (false, true) => {
                    let words =
                        item.refusal.as_ref().map(|(code, why)| format!("{code} {}", quote::escape(why)));
                    ("not admissible", format!("  ({})", words.unwrap_or_default()))
                }
            };
            let text = format!("{word:<14}  {}{because}", quote::value(&item.action));
            lines.push(if item.is_admissible { Line::from(text) } else { Line::styled(Style::Bad, text) });
            lines.extend(item.asked.iter().map(asked_line));
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

/// The difference between the commitments of a run at two ticks.
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
        CommitmentDiffDocument::of(&self.0).into()
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
        let drawn = |id: &str, kind: &str, word: &str, status, tick| DrawnBox {
            name: id.to_owned(),
            label: format!("{id} {word}"),
            kind: kind.to_owned(),
            tick: Some(tick),
            run: Some(self.found.run.clone()),
            status,
        };
        let atoms = all.atoms().map(|atom| drawn(&atom.id, "atom", atom.mode.as_str(), None, atom.tick));
        let commitments = all.all().iter().map(|one| {
            let status = self.found.statuses.get(&one.id).map(|(status, _)| status.as_str());
            let word = format!("{} {}", one.kind.as_str(), status.unwrap_or_default());
            drawn(&one.id, one.kind.as_str(), &word, status, one.tick)
        });
        let mut boxes: Vec<DrawnBox> = atoms.chain(commitments).collect();
        boxes.sort_by(|a, b| (&a.name, &a.label).cmp(&(&b.name, &b.label)));
        let at = |id: &str| boxes.binary_search_by(|one| (*one.name).cmp(id)).ok();
        let arrows = all.edges().filter_map(|edge| {
            Some(DrawnArrow { from: at(&edge.from)?, to: at(&edge.to)?, rel: edge.kind.as_str() })
        });
        let arrows = arrows.collect();
        Drawing { title: self.found.run.to_string(), boxes, arrows }
    }
}

impl Answer for CommitmentGraphAnswer {
    fn document(&self) -> Value {
        CommitmentGraphDocument::of(&self.found).into()
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

/// The share of calls that the text within a budget judges otherwise (CCAS paper, definition 4).
#[derive(Debug, Clone, Default)]
pub struct EpsilonAnswer {
    /// The run.
    pub run: String,
    /// The budget in tokens; `None` for the whole text.
    pub budget: Option<usize>,
    /// The calls that were recorded.
    pub actions: u64,
    /// Calls that the text alone judges otherwise.
    pub differ: u64,
    /// Calls that are judged otherwise because the text does not fit.
    pub unfit: u64,
}

impl EpsilonAnswer {
    /// Counts a call: the judgement of the run, and the judgement from the text alone.
    pub fn add(&mut self, at: &CommitmentsAt, found: &Authorized) {
        self.actions += 1;
        let fits = ccas_text(at, None, self.budget).is_ok();
        let listed = listed_hard(at, None);
        let is_told = |(rule, id): &(Violated, Arc<str>)| *rule != Violated::Hard || listed.contains(id);
        let told = fits && found.violates.iter().any(is_told);
        // Without a text there is no verdict from it, so the call counts as judged otherwise.
        let differs = !fits || told == found.violates.is_empty();
        self.differ += u64::from(differs);
        self.unfit += u64::from(!fits);
    }

    fn epsilon(&self) -> f64 {
        if self.actions == 0 { 0.0 } else { self.differ as f64 / self.actions as f64 }
    }
}

impl Answer for EpsilonAnswer {
    fn document(&self) -> Value {
        EpsilonDocument::of(self).into()
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

impl Answer for DelegateReply {
    fn document(&self) -> Value {
        DelegationDocument::of(&self.made).into()
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
        for name in ["allowed", "tools", "forbidden", "budget", "deliverables", "failure", "until", "scope"] {
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

impl Answer for AcceptReply {
    fn document(&self) -> Value {
        AcceptDocument::of(&self.accepted).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let Accepted { child, parent, reasons, already, .. } = &self.accepted;
        let dry = if self.dry_run { "nothing was written (dry run): " } else { "" };
        if *already {
            return vec![Line::from(format!(
                "{parent} took what {child} brought before; nothing was written"
            ))];
        }
        if reasons.is_empty() {
            return vec![Line::from(format!("{dry}{parent} takes what {child} brought"))];
        }
        let ids = quote::escape(&self.accepted.violates().join(", "));
        let head = format!("{dry}{}  {parent} does not take what {child} brought: {ids}", Code::E0456);
        let mut lines = vec![Line::styled(Style::Bad, head)];
        lines.extend(reasons.iter().map(|reason| Line::from(format!("  {}", reason_text(reason)))));
        lines
    }

    fn end(&self) -> End {
        if self.accepted.reasons.is_empty() { End::Answered } else { End::Refused }
    }
}

/// A reason of a rejection as text.
fn reason_text(reason: &AcceptReason) -> String {
    let AcceptReason { code, commitments, run, tick, missing } = reason;
    let ids = quote::escape(&commitments.join(", "));
    let at = match tick {
        Some(tick) => format!("{run}@{tick}"),
        None => run.to_string(),
    };
    let what = match (code, missing) {
        (_, Some(name)) => format!("{} of {ids} is missing", quote::escape(name)),
        (Code::E0451, _) => format!("violates {ids}, or cannot be judged by it"),
        (Code::E0452, _) => format!("outside of the contract {ids}, or after its end"),
        (Code::E0453, _) => format!("relies on {ids}, which no longer stands"),
        _ => format!("{ids} is not what the parent has on record"),
    };
    format!("{code}  {at}  {what}")
}
