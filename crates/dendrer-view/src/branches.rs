//! Branches of agents, of a run or of a file: the lines of the forensic debugger specification (5), and a document.

use dendrer::evidence::branches::{BranchFault, BranchReport, BranchRule, BranchesAnswer, OPEN};
use dendrer_object::{Code, Digest, RunName, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::{count, quote};

/// The code of a branch that breaks a rule.
pub const BRANCH: Code = Code::E0303;

/// How many faults of a branch are printed.
const FAULTS_SHOWN: usize = 20;

/// Writes the branches, each with its faults, and the sentence that sums them up.
pub fn branch_lines(branches: &[BranchReport]) -> Vec<Line> {
    let mut lines = Vec::new();
    for branch in branches {
        let agent = quote::name(&branch.agent);
        if branch.faults.is_empty() {
            lines.push(format!("  Branch '{agent}': VALID").into());
            continue;
        }
        lines.push(Line::styled(Style::Bad, format!("  Branch '{agent}': INVALID")));
        let faults = branch.faults.iter().take(FAULTS_SHOWN);
        lines.extend(faults.map(|fault| Line::styled(Style::Bad, fault_line(fault))));
        if branch.faults.len() > FAULTS_SHOWN {
            let more = branch.faults.len() - FAULTS_SHOWN;
            lines.push(format!("    and {more} more; --json has all of them").into());
        }
    }
    let bad = branches.iter().filter(|branch| !branch.faults.is_empty()).count();
    lines.push(match bad {
        0 => "[SUCCESS] All branches verified successfully.".into(),
        bad => {
            let line = format!(
                "[FAILED] {bad} of {} did not verify.",
                count(branches.len() as u64, "branch", "branches")
            );
            Line::styled(Style::Bad, line)
        }
    });
    lines
}

fn fault_line(fault: &BranchFault) -> String {
    let BranchFault { tick, node, rule, expected, got } = fault;
    let (node, expected, got) = (quote::escape(node), quote::escape(expected), quote::escape(got));
    format!("    {node} ({tick})  {}: expected {expected}, got {got}", rule.as_str())
}

document! {
    /// The branches of the agents of a run
    pub object BranchesDocument: "branches" (answer: &BranchesAnswer) {
        /// The run
        run: &RunName = &answer.run,
        /// The branches, in the order of their first nodes
        branches: Vec<RunBranch> = answer.branches.iter().map(RunBranch::of).collect(),
        /// The ticks whose agent or place was erased or withheld: they are in no branch
        hidden: &[u64] = &answer.hidden,
        /// The claims that the rules do not prove
        open: Vec<OpenClaim> = OPEN.iter().map(|(code, text)| OpenClaim::of(code, text)).collect(),
    }

    /// A claim that the rules do not prove
    object OpenClaim(word: &str, text: &str) {
        /// The word for programs
        code: &str = word,
        /// The claim in words
        words: &str = text,
    }

    /// The branch of an agent in a run
    object RunBranch(branch: &BranchReport) {
        ..BranchSum = BranchSum::of(branch),
        /// The faults, in order
        faults: Vec<RunFault> = branch.faults.iter().map(RunFault::of).collect(),
        /// Records of other runs that caused the first node: the agent begins with the run
        begins?: &[Digest] = (!branch.begins.is_empty()).then_some(&*branch.begins),
    }

    /// The branch of an agent in a file
    pub object FileBranch(branch: &BranchReport) {
        ..BranchSum = BranchSum::of(branch),
        /// The faults, in order
        faults: Vec<FileFault> = branch.faults.iter().map(FileFault::of).collect(),
    }

    /// The result for a branch
    object BranchSum(branch: &BranchReport) {
        /// The agent
        agent: &str = &branch.agent,
        /// The number of nodes
        nodes: u64 = branch.nodes,
        /// Whether no rule is broken
        ok: bool = branch.faults.is_empty(),
    }

    /// A fault of a branch in a run
    object RunFault(fault: &BranchFault) {
        /// The tick of the node
        tick: u64 = fault.tick,
        ..BrokenRule = BrokenRule::of(fault),
    }

    /// A fault of a branch in a file
    object FileFault(fault: &BranchFault) {
        /// The line of the node
        line: u64 = fault.tick,
        ..BrokenRule = BrokenRule::of(fault),
    }

    /// A rule that a node breaks
    object BrokenRule(fault: &BranchFault) {
        /// The node
        node: &str = &fault.node,
        /// The rule
        rule: BranchRule = fault.rule,
        /// The value that the rule demands
        expected: &str = &fault.expected,
        /// The value of the node
        got: &str = &fault.got,
    }
}

impl Answer for BranchesAnswer {
    fn document(&self) -> Value {
        BranchesDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let nodes: u64 = self.branches.iter().map(|branch| branch.nodes).sum();
        let of = page.of_run(&self.run);
        let mut lines = vec![
            format!(
                "{} in {}{of}",
                count(nodes, "node", "nodes"),
                count(self.branches.len() as u64, "branch", "branches")
            )
            .into(),
        ];
        lines.extend(branch_lines(&self.branches));
        if !self.hidden.is_empty() {
            let ticks = count(self.hidden.len() as u64, "tick", "ticks");
            lines.push(
                format!("not known: the branch of {ticks}; agent or place was erased or withheld").into(),
            );
        }
        for branch in self.branches.iter().filter(|branch| !branch.begins.is_empty()) {
            let named: Vec<String> = branch.begins.iter().map(|id| id.short()).collect();
            let (agent, named) = (quote::name(&branch.agent), named.join(", "));
            lines.push(format!("begins     {agent} with this run: it names {named}, of another run").into());
        }
        lines.extend(OPEN.iter().map(|(_, words)| Line::note(format!("not shown: {words}"))));
        lines
    }

    fn end(&self) -> End {
        match self.is_valid() {
            true if self.hidden.is_empty() => End::Answered,
            true => End::Unknown,
            false => End::Problem(BRANCH),
        }
    }
}
