//! Gates over the steps of a run, as lines, as a document, and in the forms of other programs.

use dendrer::ask::gate::question::GateAnswer;
use dendrer::ask::gate::{GateStep, GateVerdict, JudgedGate};
use dendrer::run::witness::StepDoubt;
use dendrer_chain::ActionType;
use dendrer_object::record::Author;
use dendrer_object::{Code, Pointer, RunName, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::bisect::from_text_line;
use crate::{count, quote};

/// How many steps of a gate are printed.
const SHOWN: usize = 20;

/// The values that a gate over states read: `state.total is 3 at tick 53`. `None` for one over steps.
fn read_words(gate: &JudgedGate) -> Option<String> {
    if gate.places.is_empty() || !gate.steps.is_empty() {
        return None;
    }
    let place = |(path, value): &(Pointer, Option<Value>)| {
        let value = value.as_ref().map_or_else(|| "absent".to_owned(), quote::json);
        format!("{} is {}", path.in_state(), value)
    };
    let places: Vec<String> = gate.places.iter().map(place).collect();
    Some(format!("{} at tick {}", places.join(", "), gate.tick))
}

/// Why a gate has its verdict, in words.
pub(crate) fn why(gate: &JudgedGate) -> String {
    let failed: Vec<&GateStep> = gate.steps.iter().filter(|step| step.success == Some(false)).collect();
    let steps = count(gate.steps.len() as u64, "step", "steps");
    let first = failed.first().map(|step| format!(", {} failed, first at tick {}", failed.len(), step.tick));
    let rests = read_words(gate).unwrap_or_else(|| {
        format!("rests on {steps}{}", first.unwrap_or_else(|| ", none failed".to_owned()))
    });
    match &gate.verdict {
        GateVerdict::Passed => rests,
        GateVerdict::Failed => format!("does not hold; {rests}"),
        GateVerdict::NoSteps(why) | GateVerdict::Uncertain(why) => why.clone(),
    }
}

document! {
    /// Gates over the steps of a run
    pub object AssertDocument: "assert" (answer: &GateAnswer) {
        /// The run
        run: &RunName = &answer.run,
        /// Whether every gate passed
        passed: bool = answer.gates.iter().all(|gate| gate.verdict == GateVerdict::Passed),
        /// The gates, in the order in which they were asked
        items: Vec<GateObject> = answer.gates.iter().map(GateObject::of).collect(),
    }

    /// A gate and its verdict
    object GateObject(gate: &JudgedGate) {
        /// The expression
        expression: &str = &gate.expression,
        /// Whether the gate passed; null if it would pass on nothing, or cannot be judged
        ok: Option<bool> = match gate.verdict {
            GateVerdict::Passed => Some(true),
            GateVerdict::Failed => Some(false),
            GateVerdict::NoSteps(_) | GateVerdict::Uncertain(_) => None,
        },
        /// The steps that the gate depends on
        steps: Vec<StepObject> = gate.steps.iter().map(StepObject::of).collect(),
        /// The reason for the verdict
        why: String = why(gate),
        /// The number of results whose status was read from prose
        status_from_text: u64 = gate.from_text,
    }

    /// A step that a gate depends on
    object StepObject(step: &GateStep) {
        /// The tick
        tick: u64 = step.tick,
        /// The kind of action; null if it is not known
        action: Option<ActionType> = step.action,
        /// The name of the step
        name: &str = &step.name,
        /// Whether the step succeeded; null if it is not known
        success: Option<bool> = step.success,
        /// The author of the step: `unstated` for an imported row, which states none
        author: &str = author(step),
        /// The agent of the step; null if it is not known
        agent: Option<&str> = step.agent.as_deref(),
        /// Why the step is not taken for what it says; null where it is
        doubt: Option<&str> = step.doubt.map(StepDoubt::words),
    }
}

/// The author of a step as answers name it.
fn author(step: &GateStep) -> &'static str {
    step.author.map_or("unstated", Author::as_str)
}

impl Answer for GateAnswer {
    fn document(&self) -> Value {
        AssertDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        for gate in &self.gates {
            let (word, style) = match gate.verdict {
                GateVerdict::Passed => ("PASS", Style::Good),
                GateVerdict::Failed => ("FAIL", Style::Bad),
                GateVerdict::NoSteps(_) => ("NONE", Style::Warn),
                GateVerdict::Uncertain(_) => ("OPEN", Style::Warn),
            };
            let (first, second) = match read_words(gate) {
                Some(read) if matches!(gate.verdict, GateVerdict::Passed | GateVerdict::Failed) => {
                    (read, gate.expression.clone())
                }
                _ => (gate.expression.clone(), why(gate)),
            };
            lines.push(Line::styled(style, format!("{word}  {}", quote::escape(&first))));
            lines.push(Line::from(format!("      {}", quote::escape(&second))));
            for step in gate.steps.iter().take(SHOWN) {
                let success = match step.success {
                    Some(true) => "ok",
                    Some(false) => "failed",
                    None => "-",
                };
                let action = step.action.map_or("not known", ActionType::as_str);
                let name = quote::escape(&step.name);
                let doubt = step.doubt.map(|doubt| format!("; in doubt: {}", doubt.words()));
                let said = format!("{}{}", author(step), doubt.unwrap_or_default());
                let line = format!("      {:>6}  {action:<15}  {success:<6}  {name}  ({said})", step.tick);
                lines.push(Line::from(line));
            }
            let rest = gate.steps.len().saturating_sub(SHOWN);
            if rest > 0 {
                lines.push(Line::from(format!("      and {rest} more; --json has all")));
            }
        }
        let from_text = self.gates.iter().map(|gate| gate.from_text).max().unwrap_or(0);
        lines.extend(from_text_line(from_text).map(Line::from));
        lines
    }

    fn end(&self) -> End {
        let is = |verdict: fn(&GateVerdict) -> bool| self.gates.iter().any(|gate| verdict(&gate.verdict));
        match () {
            _ if is(|verdict| matches!(verdict, GateVerdict::Failed)) => End::No,
            _ if is(|verdict| matches!(verdict, GateVerdict::NoSteps(_))) => End::Problem(Code::E0464),
            _ if is(|verdict| matches!(verdict, GateVerdict::Uncertain(_))) => End::Unknown,
            _ => End::Answered,
        }
    }
}
