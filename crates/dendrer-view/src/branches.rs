//! Branches of agents, of a run or of a file: the lines of the forensic debugger specification (5), and a document.

use dendrer::evidence::branches::{BranchFault, BranchReport, BranchesAnswer, OPEN};
use dendrer_object::{Code, Value};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::{count, document, quote};

/// The code of a branch that breaks a rule.
pub const BRANCH: Code = Code::E0303;

/// How many faults of a branch are printed.
const FAULTS_SHOWN: usize = 20;

/// Writes the branches, each with its faults, and the sentence that sums them up.
pub fn branch_lines(branches: &[BranchReport]) -> Vec<Line> {
    let mut lines = Vec::new();
    for branch in branches {
        let agent = quote::escape(&branch.agent);
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

/// Writes branches as a document does; `place` is the name of the number of a fault: `tick` or `line`.
pub fn branches_json(branches: &[BranchReport], place: &'static str) -> Value {
    let fault = |fault: &BranchFault| {
        Value::record([
            (place, Value::from(fault.tick)),
            ("node", Value::from(fault.node.as_str())),
            ("rule", Value::from(fault.rule.as_str())),
            ("expected", Value::from(fault.expected.as_str())),
            ("got", Value::from(fault.got.as_str())),
        ])
    };
    Value::array(branches.iter().map(|branch| {
        Value::record([
            ("agent", Value::from(branch.agent.as_str())),
            ("nodes", Value::from(branch.nodes)),
            ("ok", Value::from(branch.faults.is_empty())),
            ("faults", Value::array(branch.faults.iter().map(fault))),
        ])
    }))
}

impl Answer for BranchesAnswer {
    fn document(&self) -> Value {
        let open = OPEN.iter().map(|(code, words)| {
            Value::record([("code", Value::from(*code)), ("words", Value::from(*words))])
        });
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("branches", branches_json(&self.branches, "tick")),
            ("hidden", Value::array(self.hidden.iter().map(|tick| Value::from(*tick)))),
            ("open", Value::array(open)),
        ];
        document("branches", members)
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
