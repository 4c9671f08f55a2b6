//! Gates over the steps of a run, as lines, as a document, and in the forms of other programs.

use dendrer::ask::gate::{GateStep, GateVerdict, JudgedGate};
use dendrer_chain::ActionType;
use dendrer_object::{Code, RunName, Value};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::bisect::from_text_line;
use crate::{count, document, quote};

/// How many steps of a gate are printed.
const SHOWN: usize = 20;

/// The gates of a run.
#[derive(Debug, Clone)]
pub struct GateAnswer {
    /// The run.
    pub run: RunName,
    /// The gates, in the order in which they were asked.
    pub gates: Vec<JudgedGate>,
}

/// Why a gate has its verdict, in words.
pub(crate) fn why(gate: &JudgedGate) -> String {
    let failed: Vec<&GateStep> = gate.steps.iter().filter(|step| step.success == Some(false)).collect();
    let steps = count(gate.steps.len() as u64, "step", "steps");
    let first = failed.first().map(|step| format!(", {} failed, first at tick {}", failed.len(), step.tick));
    let rests = format!("rests on {steps}{}", first.unwrap_or_else(|| ", none failed".to_owned()));
    match &gate.verdict {
        GateVerdict::Passed => rests,
        GateVerdict::Failed => format!("does not hold; {rests}"),
        GateVerdict::NoSteps(why) | GateVerdict::Uncertain(why) => why.clone(),
    }
}

fn step(step: &GateStep) -> Value {
    Value::record([
        ("tick", Value::from(step.tick)),
        ("action", Value::from(step.action)),
        ("name", Value::from(step.name.as_str())),
        ("success", Value::from(step.success)),
    ])
}

impl Answer for GateAnswer {
    fn document(&self) -> Value {
        let items = self.gates.iter().map(|gate| {
            let ok = match gate.verdict {
                GateVerdict::Passed => Value::from(true),
                GateVerdict::Failed => Value::from(false),
                GateVerdict::NoSteps(_) | GateVerdict::Uncertain(_) => Value::Null,
            };
            let members = [
                ("expression", Value::from(gate.expression.as_str())),
                ("ok", ok),
                ("steps", Value::array(gate.steps.iter().map(step))),
                ("why", Value::from(why(gate))),
                ("status_from_text", Value::from(gate.from_text)),
            ];
            Value::record(members)
        });
        let passed = self.gates.iter().all(|gate| gate.verdict == GateVerdict::Passed);
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("passed", Value::from(passed)),
            ("items", Value::array(items)),
        ];
        document("assert", members)
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
            lines.push(Line::styled(style, format!("{word}  {}", quote::escape(&gate.expression))));
            lines.push(Line::from(format!("      {}", quote::escape(&why(gate)))));
            for step in gate.steps.iter().take(SHOWN) {
                let success = match step.success {
                    Some(true) => "ok",
                    Some(false) => "failed",
                    None => "-",
                };
                let action = step.action.map_or("not known", ActionType::as_str);
                let name = quote::escape(&step.name);
                lines.push(Line::from(format!("      {:>6}  {action:<15}  {success:<6}  {name}", step.tick)));
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
