//! Why an action was taken, as lines and as a document.

use dendrer::ask::why::action::{ActionWhy, AskedCommitment, CallWhy, DecisionWhy};
use dendrer::ask::why::question::WhyReply;
use dendrer::kernel::predicate::Verdict;
use dendrer_object::record::Author;
use dendrer_object::{Pointer, RunName, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::quote;
use crate::verdict::word;

document! {
    /// Why an action was taken
    pub object ActionWhyDocument: "action-why" (answer: &ActionWhy) {
        /// The run
        run: &RunName = &answer.run,
        /// The tick
        tick: u64 = answer.tick,
        /// The author of the transition
        author: Author = answer.author,
        /// The agent; null if the record names none
        agent: Option<&str> = answer.agent.as_deref(),
        /// The calls; empty for a transition without one
        calls: Vec<CallWhyObject> = answer.calls.iter().map(CallWhyObject::of).collect(),
        /// The policy rules and violations in force, with what each says
        rules: Vec<RuleVerdict> = answer.rules.iter().map(|(id, verdict)| RuleVerdict::of(id, verdict)).collect(),
        /// The decision about the transition; null if there is none
        decision: Option<DecisionWhyObject> = answer.decision.as_ref().map(DecisionWhyObject::of),
        /// The ids that the intent states it relies on
        relies_on: &[String] = &answer.relies_on,
        /// The places that rules read for the transition
        reads: Vec<ReadPlace> = answer.reads.iter().map(|(path, at)| ReadPlace::of(path, *at)).collect(),
    }

    /// A call, and the commitments that were asked of it
    object CallWhyObject(call: &CallWhy) {
        /// The tool
        tool: Option<&str> = call.tool.as_deref(),
        /// The parameters; null if there are none
        params: Option<&Value> = call.params.as_ref(),
        /// The id of the call
        call_id: Option<&str> = call.call_id.as_deref(),
        /// The commitments that decided
        commitments: Vec<AskedCommitmentObject> =
            call.commitments.iter().map(AskedCommitmentObject::of).collect(),
    }

    /// A commitment, and what it says of a call
    pub object AskedCommitmentObject(asked: &AskedCommitment) {
        /// The id
        id: &str = &asked.id,
        /// The party that it is kept for; null for what is no commitment of the run
        owner: Option<String> = asked.owner.as_ref().map(ToString::to_string),
        /// The verdict on the call
        verdict: ["ok" | "violation" | "uncertain"] = word(&asked.verdict),
    }

    /// A rule, and what it says
    object RuleVerdict(name: &str, said: &Verdict) {
        /// The id
        id: &str = name,
        /// The verdict
        verdict: ["ok" | "violation" | "uncertain"] = word(said),
    }

    /// A decision about an action
    object DecisionWhyObject(found: &DecisionWhy) {
        /// The tick
        tick: u64 = found.tick,
        /// The author
        author: Author = found.author,
        /// The decision
        decision: &str = &found.decision,
    }

    /// A place that a transition read
    object ReadPlace(place: &Pointer, at: Option<u64>) {
        /// The place
        path: &Pointer = place,
        /// The tick that wrote it last; null if the run began with it
        tick: Option<u64> = at,
    }
}

impl Answer for ActionWhy {
    fn document(&self) -> Value {
        ActionWhyDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let agent = self.agent.as_deref().map(quote::name).unwrap_or_default();
        let author = self.author.as_str();
        let head = format!("{}@{}  by {agent} ({author}){}", self.run, self.tick, page.of_run(&self.run));
        let mut lines = vec![Line::from(head)];
        if self.calls.is_empty() {
            lines.push("no call".into());
        }
        for call in &self.calls {
            let params = call.params.as_ref().map(quote::value).unwrap_or_default();
            let tool = call.tool.as_deref().map(quote::escape).unwrap_or_default();
            lines.push(Line::styled(Style::Strong, format!("call       {tool}  {params}")));
            lines.extend(call.commitments.iter().map(asked_line));
        }
        for (id, verdict) in &self.rules {
            lines.push(format!("rule       {}  {}", quote::escape(id), verdict_words(verdict)).into());
        }
        lines.push(match &self.decision {
            Some(found) => {
                let (said, author) = (quote::escape(&found.decision), found.author.as_str());
                format!("decision   {said} at tick {} by {author}", found.tick).into()
            }
            None => "decision   none on record".into(),
        });
        if !self.relies_on.is_empty() {
            lines.push(format!("relies on  {}", quote::escape(&self.relies_on.join(", "))).into());
        }
        for (path, at) in &self.reads {
            let at = at.map_or_else(|| "the run began with it".to_owned(), |at| format!("written at {at}"));
            lines.push(format!("read       {}  {at}", quote::path(path)).into());
        }
        lines
    }

    fn end(&self) -> End {
        End::Answered
    }
}

/// Writes a commitment that was asked of a call.
pub(crate) fn asked_line(asked: &AskedCommitment) -> Line {
    let owner = asked.owner.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    Line::from(format!("  {}  of {owner}  {}", quote::escape(&asked.id), verdict_words(&asked.verdict)))
}

fn verdict_words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Uncertain(why) => format!("uncertain: {}", quote::escape(why)),
        verdict => verdict.to_string(),
    }
}

impl Answer for WhyReply {
    fn document(&self) -> Value {
        match self {
            WhyReply::Place(answer) => answer.document(),
            WhyReply::Action(answer) => answer.document(),
        }
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        match self {
            WhyReply::Place(answer) => answer.lines(page),
            WhyReply::Action(answer) => answer.lines(page),
        }
    }

    fn end(&self) -> End {
        match self {
            WhyReply::Place(answer) => answer.end(),
            WhyReply::Action(answer) => answer.end(),
        }
    }
}
